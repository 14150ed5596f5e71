/* board.h - one layer on an emulated board: inputs by chance, the run between markers, and a hash
 * of its outputs told. The firmware that bench/layers/count writes has LAYER_RUN for each layer. */
#ifndef LAYERS_BOARD_H
#define LAYERS_BOARD_H

#include "markers.h"
#include "semihosting.h"

/* bytes by chance; floats are whole numbers of -128..127 */
static inline void layer_fill(int8_t *bytes, uint32_t count, uint32_t seed)
{
    for (uint32_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        bytes[i] = (int8_t)(seed >> 24);
    }
}

static inline void layer_fill_floats(float *elements, uint32_t count, uint32_t seed)
{
    for (uint32_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        elements[i] = (float)(int8_t)(seed >> 24);
    }
}

/* FNV-1a */
static inline void layer_tell(const uint8_t *bytes, uint32_t count)
{
    uint32_t hash = 2166136261u;

    for (uint32_t i = 0; i < count; i++)
        hash = (hash ^ bytes[i]) * 16777619u;
    host_print_number(HOST_STDOUT, hash);
    host_print(HOST_STDOUT, "\n");
}

#endif

/* firmware.h - what every firmware of the examples does: memory for good, and a last word. */
#ifndef FIRMWARE_H
#define FIRMWARE_H

#include "mur_status.h"
#include "semihosting.h"

extern uint8_t heap_start[], heap_end[]; /* the linker script's */

static uint8_t *heap; /* the first byte that nobody has taken; main sets it to heap_start */

static inline void stop(const char *what, mur_status status)
{
    static const char *const meanings[] = {
#define MEANING(name, value, meaning) [value] = meaning,
        MUR_STATUS_TABLE(MEANING)
#undef MEANING
    };

    host_print(HOST_STDERR, what);
    host_print(HOST_STDERR, ": ");
    host_print(HOST_STDERR, meanings[status]);
    host_print(HOST_STDERR, "\n");
    host_exit(status);
}

/* A device has no need to give any back. */
static inline void *take(uint32_t bytes)
{
    uint8_t *taken = heap;

    bytes = (bytes + 15) & ~15u;
    if (bytes > (uint32_t)(heap_end - heap))
        stop("memory", MUR_E_NOFIT);
    heap += bytes;
    return taken;
}

#endif

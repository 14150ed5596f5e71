/* uthinker_sim_parts.h - what the simulator's instructions share: their fields, checks of ranges
 * and buffers. */
#ifndef MUR_SIM_PARTS_H
#define MUR_SIM_PARTS_H

#include <string.h>

#include "uthinker_sim_execute.h"

enum opcode {
#define MUR_INSN(name, opcode, words, engine, meaning) OP_##name = opcode,
#include "mur_isa.def"
};

/* a field's place, as one constant */
enum field {
#define MUR_FIELD(insn, name, word, shift, width, unit) \
    insn##_##name = (word) << 16 | (shift) << 8 | (width),
#include "mur_isa.def"
};

static inline uint32_t get(const uint32_t *words, enum field field)
{
    uint32_t place = (uint32_t)field;

    return words[place >> 16] >> (place >> 8 & 255u) & (0xffffffffu >> (32u - (place & 255u)));
}

static inline float get_float(const uint32_t *words, enum field field)
{
    uint32_t bits = get(words, field);
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* reasons of a fault */
extern const char mur_sim_outside_buffer[], mur_sim_outside_region[], mur_sim_bad_operand[];

static inline int inside(uint32_t size, uint32_t start, uint32_t length)
{
    return start <= size && length <= size - start;
}

/* rows of `length` each, `pitch` apart, from the first to the end of the last */
static inline int rows_inside(uint32_t size, uint32_t start, uint32_t rows, uint32_t pitch,
                              uint32_t length)
{
    return rows == 0 || inside(size, start, (rows - 1) * pitch + length);
}

static inline int gb_inside(const mur_sim *sim, uint32_t start, uint32_t rows, uint32_t pitch,
                            uint32_t length)
{
    return rows_inside(sim->memory.buffer_bytes[MUR_GB] / 4, start, rows, pitch, length);
}

static inline int overlap(uint32_t start, uint32_t length, uint32_t other, uint32_t other_length)
{
    return start < other + other_length && other < start + length;
}

static inline uint32_t block_elems(uint32_t k, uint32_t at)
{
    return k - at < MUR_BLOCK_ELEMS ? k - at : MUR_BLOCK_ELEMS;
}

static inline float power_of_two(int32_t exponent) /* -126..127 */
{
    uint32_t bits = (uint32_t)(exponent + 127) << 23;
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* `len` bytes of a buffer, as they are now but for those that are `all` to be written. */
uint8_t *mur_sim_buffer_bytes(mur_sim *sim, uint32_t buffer, uint32_t addr, uint32_t len, int all);

/* The instructions: each returns the reason of a fault, or NULL. */
#define MUR_INSN(name, opcode, words, engine, meaning) \
    const char *mur_sim_run_##name(mur_sim *sim, const uint32_t *w);
#include "mur_isa.def"

#endif

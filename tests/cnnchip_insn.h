/* cnnchip_insn.h - instructions of the CNN chip from their fields, for tests. */
#ifndef CNNCHIP_INSN_H
#define CNNCHIP_INSN_H

#include <stdint.h>
#include <string.h>

enum { END = 0x7f, CONV = 1, MAXPOOL = 2, ADD = 3, DENSE = 4 };
enum { DSP = 1, ACT = 2, SRC32 = 4, DST32 = 8, ONE = 16, CONST1 = 32 };

typedef struct insn {
    uint32_t opcode, flags;
#define MUC_CNNCHIP_OPERAND(name) uint32_t name;
#include "targets/cnnchip/isa/chip_isa.def"
} insn;

enum { WORDS = 20 };

static inline uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, 4);
    return bits;
}

static inline void put_word(uint8_t *p, uint32_t word)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(word >> 8 * i);
}

/* Writes i and returns how many bytes it has. */
static inline uint32_t put_insn(uint8_t *out, const insn *i)
{
    uint32_t words[WORDS] = { i->opcode | i->flags << 8 }, count = 1;

#define MUC_CNNCHIP_FIELD(insn, name, word, shift, width, kind, meaning) \
    if (i->opcode == insn) { \
        words[word] |= (i->name & (uint32_t)((1ull << (width)) - 1)) << (shift); \
        count = (word) + 1; \
    }
#include "targets/cnnchip/isa/chip_isa.def"
    for (uint32_t w = 0; w < count; w++)
        put_word(out + 4 * w, words[w]);
    return 4 * count;
}

#endif

/* mur_code.h - taking the words of the CODE section apart. */
#ifndef MUR_CODE_H
#define MUR_CODE_H

#include <stdint.h>

enum mur_item {
#define MUR_ITEM(name, kind, words, meaning) MUR_##name = kind, MUR_WORDS_##name = words,
#include "mur_code.def"
    MUR_KIND_WIDTH = 4 /* bits of the kind */
};

enum {
#define MUR_BITS(item, name, shift, width) \
    MUR_SHIFT_##item##_##name = shift, MUR_WIDTH_##item##_##name = width,
#include "mur_code.def"
    MUR_BITS_END
};

/* Bits shift..shift+width-1 of a word, 1 <= width <= 32. */
static inline uint32_t mur_bits(uint32_t word, uint32_t shift, uint32_t width)
{
    return word >> shift & UINT32_MAX >> (32 - width);
}

#define MUR_CODE_GET(word, item, name) \
    mur_bits((word), MUR_SHIFT_##item##_##name, MUR_WIDTH_##item##_##name)

/* The operators of EVAL. */
enum mur_op {
#define MUR_EVAL(name, number, operands, meaning) MUR_OP_##name = number,
#include "mur_eval.def"
#undef MUR_EVAL
    MUR_OPS
};

/* a op b modulo 2^32, as mur_eval takes it: what a verified program needs. */
static inline uint32_t mur_eval_word(uint32_t op, uint32_t a, uint32_t b)
{
    switch (op) {
    case MUR_OP_ADD:
        return a + b;
    case MUR_OP_SUB:
        return a > b ? a - b : 0;
    case MUR_OP_MUL:
        return a * b;
    case MUR_OP_CDIV:
        return a / b + (a % b != 0);
    case MUR_OP_DIV:
        return a / b;
    case MUR_OP_MOD:
        return a % b;
    case MUR_OP_MIN:
        return a < b ? a : b;
    case MUR_OP_MAX:
        return a > b ? a : b;
    case MUR_OP_AND:
        return a & b;
    case MUR_OP_EQ:
        return a == b;
    case MUR_OP_LT:
        return a < b;
    case MUR_OP_SHL:
        return a << b;
    default: /* MUR_OP_SHR */
        return a >> b;
    }
}

/* a op b in 64 bits, for every op of two operands. The right operand of CDIV, DIV and MOD is not 0,
 * that of SHL and SHR at most 31. */
uint64_t mur_eval(uint32_t op, uint32_t a, uint32_t b);

#endif

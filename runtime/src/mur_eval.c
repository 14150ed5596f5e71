/* mur_eval.c - the operators of mur_eval.def without overflow, for the verifier. */
#include "mur_code.h"

uint64_t mur_eval(uint32_t op, uint32_t a, uint32_t b)
{
    switch (op) {
    case MUR_OP_ADD:
        return (uint64_t)a + b;
    case MUR_OP_MUL:
        return (uint64_t)a * b;
    case MUR_OP_SHL:
        return (uint64_t)a << b;
    default: /* the others are never larger than an operand */
        return mur_eval_word(op, a, b);
    }
}

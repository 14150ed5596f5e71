/* mur_eval.c - the operators of mur_eval.def, for the interpreter and for the verifier. */
#include "mur_code.h"

uint64_t mur_eval(uint32_t op, uint32_t a, uint32_t b)
{
    switch (op) {
    case MUR_OP_ADD:
        return (uint64_t)a + b;
    case MUR_OP_SUB:
        return a > b ? a - b : 0;
    case MUR_OP_MUL:
        return (uint64_t)a * b;
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
        return (uint64_t)a << b;
    default: /* MUR_OP_SHR */
        return a >> b;
    }
}

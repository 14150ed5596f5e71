/* quotients_int8.c - quotients of int8 as products with a table of inverses.
 *
 * TFLite's quotient of all a by one b is a line but for halves, which go where its roundings take
 * them: each result narrows what the inverse of b may be, and what is left gives all of them.
 */
#include "targets/mcu/loops/quotients_int8.h"

#include "graph/scales.h"
#include "targets/mcu/loops/loop_nest.h"

typedef struct quotient {
    const muc_node *node;
    muc_integer_scales scales;
    int32_t a_zero, zero, least, most, offset;
} quotient;

static int64_t floor_of(int64_t x, int64_t by)
{
    int64_t y = x / by;

    return y - (x % by != 0 && (x < 0) != (by < 0));
}

/* p times the inverse is to be at least, or at most, x */
static void narrow(int64_t p, int64_t x, bool at_least, int64_t *low, int64_t *high)
{
    if (at_least == (p > 0)) {
        int64_t least = -floor_of(-x, p);

        *low = least > *low ? least : *low;
    } else {
        int64_t most = floor_of(x, p);

        *high = most < *high ? most : *high;
    }
}

static bool find_inverse(const quotient *of, int32_t q, int32_t *inverse)
{
    const int64_t one = INT64_C(1) << MUC_MCU_INVERSE_PLACES;
    const int64_t unit = INT64_C(1) << MUC_MCU_PRODUCT_PLACES;
    int64_t low = INT32_MIN, high = INT32_MAX;

    for (int32_t a = INT8_MIN; a <= INT8_MAX; a++) {
        const int32_t p = a - of->a_zero;
        const int64_t y = muc_scale_elements(of->node->op, &of->scales, p, q) + (int64_t)of->zero;

        if (p == 0) /* the offset alone */
            continue;
        if (y > of->least)
            narrow(p, ((y < of->most ? y : of->most) * one - of->offset) * unit, true, &low, &high);
        if (y < of->most)
            narrow(p, (((y > of->least ? y : of->least) + 1) * one - of->offset) * unit - 1, false,
                   &low, &high);
    }
    *inverse = (int32_t)((low + high) / 2);
    return low <= high;
}

bool muc_mcu_find_inverses(const muc_mcu_lowering *l, const muc_node *node, int32_t least,
                           int32_t most, int32_t inverses[256], int32_t *offset)
{
    const uint64_t many = 1024; /* as the bytes of a table */
    const muc_tensor *a = muc_mcu_input(l, node, 0), *b = muc_mcu_input(l, node, 1);
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    quotient of;

    if (!muc_scale_is_quotient(node->op) || !muc_mcu_is_s8(a) || !muc_mcu_is_s8(b) ||
        !muc_mcu_is_s8(y) || muc_mcu_most_elements(l, y) < many)
        return false;
    of = (quotient){ .node = node,
                     .scales = muc_scale_integers(node, a, b, y),
                     .a_zero = muc_zero_of(a),
                     .zero = muc_zero_of(y),
                     .least = least,
                     .most = most };
    of.offset = of.zero * (1 << MUC_MCU_INVERSE_PLACES) + (1 << (MUC_MCU_INVERSE_PLACES - 1));
    for (int32_t i = INT8_MIN; i <= INT8_MAX; i++)
        if (!find_inverse(&of, i - muc_zero_of(b), &inverses[(uint8_t)i]))
            return false;
    *offset = of.offset;
    return true;
}

/* factors_int8.c - quotients of int8 as products with a table of inverses, and PReLU of int8 as
 * products with two slopes.
 *
 * What TFLite makes of all a with one b is a line but for halves, which go where its roundings take
 * them: each result narrows what the factor may be, and what is left gives all of them.
 */
#include "targets/mcu/loops/factors_int8.h"

#include "graph/scales.h"
#include "targets/mcu/loops/loop_nest.h"

/* all results of one factor */
typedef struct line {
    const muc_node *node;
    muc_integer_scales scales;
    int32_t a_zero, zero, least, most, places, offset;
} line;

static int64_t floor_of(int64_t x, int64_t by)
{
    int64_t y = x / by;

    return y - (x % by != 0 && (x < 0) != (by < 0));
}

/* p times the factor is to be at least, or at most, x */
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

/* The factor that gives the results of a's bytes from `from` to `to`, and this q. */
static bool find_factor(const line *of, int32_t q, int32_t from, int32_t to, int32_t *factor)
{
    const int64_t one = INT64_C(1) << of->places;
    const int64_t unit = INT64_C(1) << MUC_MCU_PRODUCT_PLACES;
    int64_t low = INT32_MIN, high = INT32_MAX;

    for (int32_t a = from; a <= to; a++) {
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
    *factor = (int32_t)((low + high) / 2);
    return low <= high;
}

/* quotients by each byte */
static bool find_inverses(const muc_mcu_lowering *l, const line *of, muc_mcu_factors *found)
{
    const int32_t zero = muc_zero_of(muc_mcu_input(l, of->node, 1));

    found->count = 256;
    found->falls = false;
    found->offsets[0] = of->offset;
    for (int32_t i = INT8_MIN; i <= INT8_MAX; i++)
        if (!find_factor(of, i - zero, INT8_MIN, INT8_MAX, &found->factors[(uint8_t)i]))
            return false;
    return true;
}

/* What is rounded twice, before and after a shift to the right, leaves 0 that much earlier. */
static int32_t rounding_of(muc_multiplier m, int32_t places)
{
    return m.shift < 0 && m.shift > -places ? 1 << (places - 1 + m.shift) : 0;
}

/* of a PReLU, whose slopes are constant */
static bool find_slopes(const muc_mcu_lowering *l, const line *of, muc_mcu_factors *found)
{
    const muc_tensor *b = muc_mcu_input(l, of->node, 1);
    const int32_t below = rounding_of(of->scales.factor, of->places);
    line part = *of;

    found->count = (uint32_t)muc_mcu_most_elements(l, b);
    found->falls = false;
    for (uint32_t i = 0; i < found->count; i++) {
        const int32_t q = (int8_t)b->data[i] - muc_zero_of(b);

        found->falls = found->falls || q < 0;
        part.offset = found->offsets[i] = of->offset + (q < 0 ? below : -below);
        if (!find_factor(&part, q, INT8_MIN, of->a_zero - 1, &found->factors[i]))
            return false;
    }
    part.offset = found->above_offset = of->offset + rounding_of(of->scales.above, of->places);
    return find_factor(&part, 0, of->a_zero, INT8_MAX, &found->above);
}

bool muc_mcu_find_factors(const muc_mcu_lowering *l, const muc_node *node, int32_t least,
                          int32_t most, muc_mcu_factors *found)
{
    enum { LEAST_PLACES = 6, MOST_PLACES = 14 };
    const muc_tensor *a = muc_mcu_input(l, node, 0), *b = muc_mcu_input(l, node, 1);
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    const uint64_t count = muc_mcu_most_elements(l, y);
    const bool is_quotient = muc_scale_is_quotient(node->op);
    line of;

    if (!muc_mcu_is_s8(a) || !muc_mcu_is_s8(b) || !muc_mcu_is_s8(y))
        return false;
    if (is_quotient ? count < sizeof(found->factors)
                    : node->op != MUC_OP_PRELU || !b->data ||
                          muc_mcu_most_elements(l, b) > MUC_COUNT(found->factors) ||
                          muc_mcu_most_elements(l, b) * 2 * sizeof(int32_t) > count)
        return false;
    of = (line){ .node = node,
                 .scales = muc_scale_integers(node, a, b, y),
                 .a_zero = muc_zero_of(a),
                 .zero = muc_zero_of(y),
                 .least = least,
                 .most = most };
    for (of.places = is_quotient ? LEAST_PLACES : MOST_PLACES; of.places >= LEAST_PLACES;
         of.places--) {
        of.offset = of.zero * (1 << of.places) + (1 << (of.places - 1));
        found->places = of.places;
        if (is_quotient ? find_inverses(l, &of, found) : find_slopes(l, &of, found))
            return true;
    }
    return false;
}

/* sums_int8.c - additions of int8 as one line, or nearly one.
 *
 * TFLite rounds each side, their sum and what is left of it, to 2^-20 or so of an output's step. A
 * line with factors of 21 bits behind the point is as near to the exact sum, and meets all 65,536
 * results if its offset lies between bounds that each of them narrows. Where the bounds cross,
 * steeper and flatter lines are tried, until halves that go away from zero fit, too. Scales
 * such as 0.02, 0.031 and 0.05 give many sums that are halves, which go where TFLite's roundings
 * happen to take them: a line meets all others, and those near a half are computed as TFLite does.
 */
#include "targets/mcu/loops/sums_int8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/scales.h"
#include "mur_nn_arith.h"

enum { BYTES = 256, MOST_STEPS = 3, MOST_FACTOR = 1 << 23 };

mur_add_s8 muc_mcu_add_of(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *a = muc_mcu_input(l, node, 0), *b = muc_mcu_input(l, node, 1);
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    const muc_integer_scales scales = muc_scale_integers(node, a, b, y);
    int32_t least, most;

    muc_scale_clamp(node, y, &least, &most);
    return (mur_add_s8){
        .count = (int32_t)muc_mcu_most_elements(l, a),
        .b_count = (int32_t)muc_mcu_most_elements(l, b),
        .a_mul = scales.operands[0].mantissa,
        .a_shift = scales.operands[0].shift,
        .b_mul = scales.operands[1].mantissa,
        .b_shift = scales.operands[1].shift,
        .mul = scales.factor.mantissa,
        .shift = scales.factor.shift,
        .left_shift = (uint8_t)scales.left_shift,
        .subtract = muc_op_has(node->op, MUC_OP_SUBTRACTS),
        .a_zero = (int8_t)muc_zero_of(a),
        .b_zero = (int8_t)muc_zero_of(b),
        .zero = (int8_t)muc_zero_of(y),
        .min = (int8_t)least,
        .max = (int8_t)most,
    };
}

/* The offsets with which a line of such factors gives the results of all pairs. */
typedef struct offsets {
    int64_t least, most;
} offsets;

static void narrow(offsets *range, int64_t least, int64_t most)
{
    range->least = least > range->least ? least : range->least;
    range->most = most < range->most ? most : range->most;
}

static offsets find_offsets(const mur_add_s8 *add, int64_t a_mul, int64_t b_mul)
{
    const int64_t one = INT64_C(1) << MUR_LINE_PLACES;
    offsets range = { INT32_MIN, INT32_MAX };
    int8_t a[BYTES], b[BYTES], y[BYTES];
    mur_add_s8 row = *add;

    row.count = row.b_count = BYTES;
    for (int i = 0; i < BYTES; i++)
        b[i] = (int8_t)(i + INT8_MIN);
    for (int p = INT8_MIN; p <= INT8_MAX && range.least <= range.most; p++) {
        memset(a, p, sizeof(a));
        mur_ref_add_s8(&row, a, b, y);
        for (int i = 0; i < BYTES; i++) {
            int64_t sum = p * a_mul + b[i] * b_mul;

            narrow(&range, INT32_MIN - sum, INT32_MAX - sum);
            if (y[i] > add->min)
                narrow(&range, y[i] * one - sum, INT64_MAX);
            if (y[i] < add->max)
                narrow(&range, INT64_MIN, (y[i] + 1) * one - 1 - sum);
        }
    }
    return range;
}

/* a side's share of the output's step, in a line's units */
static int64_t factor_of(const mur_add_s8 *add, int32_t mul, int32_t shift)
{
    int exponent = shift + add->shift + add->left_shift + MUR_LINE_PLACES - 62;
    double factor = ldexp((double)mul * (double)add->mul, exponent);

    return llround(fmin(factor, MOST_FACTOR));
}

bool muc_mcu_find_line(const mur_add_s8 *add, mur_add_s8 *sum)
{
    const int64_t a_mul = factor_of(add, add->a_mul, add->a_shift);
    const int64_t b_mul = factor_of(add, add->b_mul, add->b_shift) * (add->subtract ? -1 : 1);

    if (a_mul + MOST_STEPS >= MOST_FACTOR || llabs(b_mul) + MOST_STEPS >= MOST_FACTOR)
        return false;
    for (int64_t steps = 0; steps <= MOST_STEPS; steps++)
        for (int64_t i = -steps; i <= steps; i++)
            for (int64_t j = -steps; j <= steps; j++) {
                offsets range;

                if (llabs(i) != steps && llabs(j) != steps)
                    continue;
                range = find_offsets(add, a_mul + i, b_mul + j);
                if (range.least > range.most)
                    continue;
                *sum = (mur_add_s8){
                    .count = add->count,
                    .b_count = add->b_count,
                    .a_mul = (int32_t)(a_mul + i),
                    .b_mul = (int32_t)(b_mul + j),
                    .mul = (int32_t)((range.least + range.most) / 2),
                    .min = add->min,
                    .max = add->max,
                };
                return true;
            }
    return false;
}

/* How far the sums of a line with this offset are from where they would give the results of all
 * pairs. */
static int64_t find_miss(const mur_add_s8 *add, const mur_add_s8 *sum)
{
    const int64_t one = INT64_C(1) << MUR_LINE_PLACES;
    int8_t a[BYTES], b[BYTES], y[BYTES];
    mur_add_s8 row = *add;
    int64_t miss = 0;

    row.count = row.b_count = BYTES;
    for (int i = 0; i < BYTES; i++)
        b[i] = (int8_t)(i + INT8_MIN);
    for (int p = INT8_MIN; p <= INT8_MAX; p++) {
        memset(a, p, sizeof(a));
        mur_ref_add_s8(&row, a, b, y);
        for (int i = 0; i < BYTES; i++) {
            int64_t x = (int64_t)p * sum->a_mul + (int64_t)b[i] * sum->b_mul + sum->mul;
            int64_t below = y[i] > add->min ? y[i] * one - x : 0;
            int64_t above = y[i] < add->max ? x - (y[i] + 1) * one + 1 : 0;

            if (llabs(x) > INT32_MAX - one)
                return one;
            miss = below > miss ? below : miss;
            miss = above > miss ? above : miss;
        }
    }
    return miss;
}

bool muc_mcu_find_near_line(const muc_mcu_lowering *l, const muc_node *node, mur_add_s8 *sum,
                            int32_t *mask)
{
    enum { ONE = 1 << MUR_LINE_PLACES, MOST_MISS = 1 << 11 };
    const mur_add_s8 add = muc_mcu_add_of(l, node);
    const int64_t a_mul = factor_of(&add, add.a_mul, add.a_shift);
    const int64_t b_mul = factor_of(&add, add.b_mul, add.b_shift) * (add.subtract ? -1 : 1);
    int32_t near = 1;
    int64_t miss;

    *sum = add;
    if (muc_mcu_most_elements(l, muc_mcu_output(l, node, 0)) < BYTES || a_mul >= MOST_FACTOR ||
        llabs(b_mul) >= MOST_FACTOR || muc_mcu_find_line(&add, sum))
        return false;
    sum->a_mul = (int32_t)a_mul;
    sum->b_mul = (int32_t)b_mul;
    sum->mul = (int32_t)(add.zero * ONE + ONE / 2 - a_mul * add.a_zero - b_mul * add.b_zero);
    miss = find_miss(&add, sum);
    while (near < miss)
        near *= 2;
    sum->mul += near;
    *mask = ONE - 2 * near;
    return near <= MOST_MISS;
}

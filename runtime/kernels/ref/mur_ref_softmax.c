/* mur_ref_softmax.c - TensorFlow Lite's softmax of int8: gemmlowp's fixed point, Qi.f with f = 31 -
 * i. The exponential is a polynomial on (-1/4, 0] times one factor for each higher bit; the
 * reciprocal is three steps of Newton's. */
#include "mur_nn_arith.h"

/* x * 2^by, saturated */
static int32_t shift_saturated(int32_t x, int32_t by)
{
    int64_t wide = (int64_t)x * (1 << by);

    return wide > INT32_MAX ? INT32_MAX : wide < INT32_MIN ? INT32_MIN : (int32_t)wide;
}

/* e^a for a in (-1/4, 0], Q0.31 to Q0.31 */
static int32_t exp_of_fraction(int32_t a)
{
    const int32_t exp_eighth = 1895147668, third = 715827883;
    int32_t x = a + (1 << 28), x2 = mur_high_q31(x, x); /* about -1/8 */
    int32_t x3 = mur_high_q31(x2, x), x4 = mur_high_q31(x2, x2);
    int32_t rest = mur_divide_pot(mur_high_q31(mur_divide_pot(x4, 2) + x3, third) + x2, 1);

    return exp_eighth + mur_high_q31(exp_eighth, x + rest);
}

/* e^a for a <= 0, Q5.26 to Q0.31 */
static int32_t exp_of(int32_t a)
{
    /* e^-(1/4), e^-(1/2), e^-1 .. e^-16 */
    static const int32_t factors[7] = { 1672461947, 1302514674, 790015084, 290630308,
                                        39332535,   720401,     242 };
    const int32_t quarter = 1 << 24;
    int32_t fraction = (a & (quarter - 1)) - quarter, rest = fraction - a;
    int32_t result;

    if (a == 0)
        return INT32_MAX;
    result = exp_of_fraction(shift_saturated(fraction, 5));
    for (int32_t i = 0; i < 7; i++)
        if (rest & quarter << i)
            result = mur_high_q31(result, factors[i]);
    return result;
}

/* 1 / (1 + a) for a in [0, 1), Q0.31 to Q0.31 */
static int32_t reciprocal_of_one_plus(int32_t a)
{
    const int32_t one = 1 << 29; /* of Q2.29 */
    int32_t half = (int32_t)(((int64_t)a + INT32_MAX + 1) / 2);
    int32_t x = 1515870810 + mur_high_q31(half, -1010580540); /* (48 - 32 half) / 17 */

    for (int32_t i = 0; i < 3; i++)
        x += shift_saturated(mur_high_q31(x, one - mur_high_q31(half, x)), 2);
    return shift_saturated(x, 1);
}

/* of other numbers than 0 */
static int32_t leading_zeros(uint32_t x)
{
    int32_t count = 0;

    for (int32_t bits = 16; bits > 0; bits >>= 1)
        if (x >> (32 - bits) == 0) {
            x <<= bits;
            count += bits;
        }
    return count;
}

/* e^(below * scale), Q0.31 */
static int32_t exp_below(const mur_softmax_s8 *layer, int32_t below)
{
    return layer->exps ? layer->exps[-below]
                       : exp_of(mur_scale_q31(below, layer->mul, layer->shift));
}

enum { HELD = 32 }; /* exponentials of a row's first elements, which are not computed twice */

/* A row at work: e^(q - greatest) times scale is its share, in 2^-shift, beyond 31 nothing. */
typedef struct row {
    int32_t greatest, scale, shift;
    int32_t held[HELD];
} row;

/* e^(q - greatest), 0 where it is too small to count */
static int32_t exp_at(const mur_softmax_s8 *layer, const row *r, int32_t q)
{
    int32_t below = q - r->greatest;

    return below < layer->diff_min ? 0 : exp_below(layer, below);
}

/* shares of `bits` bits */
static void begin_row(const mur_softmax_s8 *layer, const int8_t *in, int32_t bits, row *r)
{
    int32_t sum = 0, zeros;

    r->greatest = INT8_MIN;
    for (int32_t i = 0; i < layer->columns; i++)
        r->greatest = in[i] > r->greatest ? in[i] : r->greatest;
    for (int32_t i = 0; i < layer->columns; i++) {
        int32_t e = exp_at(layer, r, in[i]);

        if (i < HELD)
            r->held[i] = e;
        sum += mur_divide_pot(e, 12);
    }
    zeros = leading_zeros((uint32_t)sum);
    r->scale = reciprocal_of_one_plus((int32_t)(((uint32_t)sum << zeros) - (1u << 31)));
    r->shift = 12 - zeros + 31 - bits;
}

/* of element i, which is q */
static int32_t share_of(const mur_softmax_s8 *layer, const row *r, int32_t i, int32_t q)
{
    int32_t e = i < HELD ? r->held[i] : exp_at(layer, r, q);

    return r->shift > 31 ? 0 : mur_divide_pot(mur_high_q31(r->scale, e), r->shift);
}

void mur_ref_softmax_s8(const mur_softmax_s8 *layer, const int8_t *in, int8_t *out)
{
    row r;

    for (int32_t y = 0; y < layer->rows; y++, in += layer->columns, out += layer->columns) {
        begin_row(layer, in, 8, &r);
        for (int32_t i = 0; i < layer->columns; i++)
            out[i] = (int8_t)mur_clamp(share_of(layer, &r, i, in[i]) - 128, INT8_MIN, INT8_MAX);
    }
}

void mur_ref_softmax_s16(const mur_softmax_s8 *layer, const int8_t *in, int16_t *out)
{
    row r;

    for (int32_t y = 0; y < layer->rows; y++, in += layer->columns, out += layer->columns) {
        begin_row(layer, in, 16, &r);
        for (int32_t i = 0; i < layer->columns; i++)
            out[i] =
                (int16_t)mur_clamp(share_of(layer, &r, i, in[i]) - 32768, INT16_MIN, INT16_MAX);
    }
}

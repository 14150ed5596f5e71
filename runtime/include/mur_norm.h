/* mur_norm.h - what norms of int8 rows (mur_norm_s8 of mur_nn.h) compute once a row, and how an
 * element becomes a result, in plain C. */
#ifndef MUR_NORM_H
#define MUR_NORM_H

#include "mur_nn_arith.h"

/* What all elements of a row share: what they are n times less, the inverse of their deviation, and
 * what results are shifted by. */
typedef struct mur_norm_row {
    int32_t centre, inverse, shift;
} mur_norm_row;

#if defined(__ARM_FP) && (__ARM_FP & 4) && !defined(__ARM_ARCH_ISA_A64)

/* floor(sqrt(x)) of an x of 2^30 or more: the FPU's is near enough to be one off */
static inline uint32_t mur_norm_root(uint32_t x)
{
    float real = (float)x;
    uint32_t root;

    __asm__("vsqrt.f32 %0, %0" : "+t"(real));
    root = real < 65535.0f ? (uint32_t)real : 65535;
    root -= root * root > x;
    root += x - root * root > 2 * root;
    return root;
}

#else

/* floor(sqrt(x)), 2^15 or more of an x of 2^30 or more, bit by bit */
static inline uint32_t mur_norm_root(uint32_t x)
{
    uint32_t root = 0, bit = 1u << 30;

    for (int i = 0; i < 16; i++, bit >>= 2) {
        const uint32_t tried = root + bit;

        root >>= 1;
        if (x >= tried) {
            x -= tried;
            root += bit;
        }
    }
    return root;
}

#endif

static inline int32_t mur_norm_high(int32_t a, int32_t b)
{
    return (int32_t)(((int64_t)a * b) >> 32);
}

/* 1 / sqrt(w) in 31 bits, and what results are shifted by */
static inline int32_t mur_norm_inverse(const mur_norm_s8 *layer, uint64_t w, int32_t *shift)
{
    uint32_t high, quotient;

    *shift = layer->shift;
    for (; w >> 32; *shift += 1)
        w >>= 2;
    for (high = (uint32_t)w; high < 1u << 30; *shift -= 1)
        high <<= 2;
    quotient = (1u << 31) / mur_norm_root(high);
    return quotient < 1u << 16 ? (int32_t)(quotient << 15) : INT32_MAX;
}

/* sum, squares: of the row's q - in_zero and their squares, below 2^32 */
static inline mur_norm_row mur_norm_row_of(const mur_norm_s8 *layer, int32_t sum, uint32_t squares)
{
    const int32_t n = layer->columns;
    uint64_t w;
    mur_norm_row r;

    r.centre = layer->is_centred ? sum : 0;
    w = (uint64_t)(uint32_t)n * squares - (uint64_t)((int64_t)r.centre * r.centre);
    w = (w << 8) + (uint64_t)layer->epsilon;
    r.centre = (r.centre + n * layer->in_zero) * (1 << layer->head);
    r.inverse = mur_norm_inverse(layer, w ? w : 1, &r.shift);
    return r;
}

/* the results of a row whose shift is below 0: nearly constant ones */
static __attribute__((noinline, cold)) void
mur_norm_put_flat(const mur_norm_s8 *layer, const mur_norm_row *r, const int8_t *in, int8_t *out,
                  const int32_t *gains, const int32_t *biases)
{
    const int32_t step = layer->columns * (1 << layer->head), each = !layer->of_runs;
    const int32_t by = 1 << (r->shift > -10 ? -r->shift : 10);

    for (int32_t run = 0; run < layer->runs; run++, in += layer->step, out += layer->step)
        for (int32_t i = 0; i < layer->width; i++) {
            const int32_t gain = each ? i : run;
            int32_t v = mur_norm_high(in[i] * step - r->centre, r->inverse);

            v = mur_clamp(mur_norm_high(v, gains[gain]), -(1 << 20), 1 << 20);
            v = v * by + biases[gain];
            out[i] = (int8_t)mur_clamp(mur_asr(v, 8), layer->min, layer->max);
        }
}

/* v within bounds that few leave */
static inline int8_t mur_norm_byte(int32_t v, int32_t min, int32_t max)
{
    if ((uint32_t)(v - min) <= (uint32_t)(max - min))
        return (int8_t)v;
    return (int8_t)(v < min ? min : max);
}

/* a run of all others: a function of its own, for which there are just enough registers */
static __attribute__((noinline)) void mur_norm_put_run(const mur_norm_s8 *layer,
                                                       const mur_norm_row *r, const int8_t *in,
                                                       int8_t *out, const int32_t *gains,
                                                       const int32_t *biases)
{
    const int32_t step = layer->columns * (1 << layer->head), each = !layer->of_runs;
    const int32_t by = r->shift < 31 ? r->shift : 31, min = layer->min, max = layer->max;
    const int32_t centre = r->centre, inverse = r->inverse;

    for (const int8_t *end = in + layer->width; in != end; gains += each, biases += each) {
        int32_t v = mur_norm_high(*in++ * step - centre, inverse);

        v = mur_asr(mur_norm_high(v, *gains), by) + *biases;
        *out++ = mur_norm_byte(mur_asr(v, 8), min, max);
    }
}

/* a row of single elements, whose gain is one */
static __attribute__((noinline)) void mur_norm_put_column(const mur_norm_s8 *layer,
                                                          const mur_norm_row *r, const int8_t *in,
                                                          int8_t *out, int32_t gain, int32_t bias)
{
    const int32_t step = layer->columns * (1 << layer->head), next = layer->step;
    const int32_t by = r->shift < 31 ? r->shift : 31, min = layer->min, max = layer->max;
    const int32_t centre = r->centre, inverse = r->inverse;

    for (int32_t left = layer->runs; left > 0; left--, in += next, out += next) {
        int32_t v = mur_norm_high(*in * step - centre, inverse);

        v = mur_asr(mur_norm_high(v, gain), by) + bias;
        *out = mur_norm_byte(mur_asr(v, 8), min, max);
    }
}

static inline int mur_norm_is_column(const mur_norm_s8 *layer)
{
    return layer->width == 1 && !layer->of_runs;
}

static inline void mur_norm_put_plain(const mur_norm_s8 *layer, const mur_norm_row *r,
                                      const int8_t *in, int8_t *out, const int32_t *gains,
                                      const int32_t *biases)
{
    if (mur_norm_is_column(layer)) {
        mur_norm_put_column(layer, r, in, out, *gains, *biases);
        return;
    }
    for (int32_t run = 0; run < layer->runs; run++) {
        mur_norm_put_run(layer, r, in, out, gains, biases);
        in += layer->step;
        out += layer->step;
        gains += layer->of_runs;
        biases += layer->of_runs;
    }
}

/* What a kernel makes rows with: what a row shares, and the results of one of a shift of 0 or more.
 */
typedef mur_norm_row mur_norm_row_function(const mur_norm_s8 *layer, const int8_t *in);
typedef void mur_norm_put_function(const mur_norm_s8 *layer, const mur_norm_row *r,
                                   const int8_t *in, int8_t *out, const int32_t *gains,
                                   const int32_t *biases);

static inline __attribute__((always_inline)) void mur_norm_rows(const mur_norm_s8 *layer,
                                                                const int8_t *in, int8_t *out,
                                                                mur_norm_row_function *row_of,
                                                                mur_norm_put_function *put_row)
{
    const int32_t gains = layer->of_runs ? layer->runs : layer->width;

    for (int32_t n = 0, group = 0, image = 0; n < layer->rows; n++) {
        const int32_t at = image + group * layer->next, gain = group * gains;
        const mur_norm_row r = row_of(layer, in + at);

        if (r.shift < 0)
            mur_norm_put_flat(layer, &r, in + at, out + at, layer->gains + gain,
                              layer->biases + gain);
        else
            put_row(layer, &r, in + at, out + at, layer->gains + gain, layer->biases + gain);
        if (++group == layer->groups) {
            group = 0;
            image += layer->groups * layer->columns;
        }
    }
}

/* of sums of all elements and of their squares, which the zero point is taken off */
static inline mur_norm_row mur_norm_row_of_sums(const mur_norm_s8 *layer, int32_t sum,
                                                uint32_t squares)
{
    const int32_t n = layer->columns, zero = layer->in_zero;

    squares += (uint32_t)zero * ((uint32_t)(n * zero) - 2 * (uint32_t)sum);
    return mur_norm_row_of(layer, sum - n * zero, squares);
}

static inline mur_norm_row mur_norm_plain_row(const mur_norm_s8 *layer, const int8_t *in)
{
    const int32_t n = layer->columns, step = layer->step;
    uint32_t squares = 0;
    int32_t sum = 0;

    if (mur_norm_is_column(layer)) {
#pragma GCC unroll 4
        for (int32_t left = n; left > 0; left--, in += step) {
            sum += *in;
            squares += (uint32_t)(*in * *in);
        }
    } else {
        for (int32_t run = layer->runs; run > 0; run--, in += step)
#pragma GCC unroll 4
            for (const int8_t *p = in, *end = in + layer->width; p != end; p++) {
                sum += *p;
                squares += (uint32_t)(*p * *p);
            }
    }
    return mur_norm_row_of_sums(layer, sum, squares);
}

static inline void mur_norm_plain(const mur_norm_s8 *layer, const int8_t *in, int8_t *out)
{
    mur_norm_rows(layer, in, out, mur_norm_plain_row, mur_norm_put_plain);
}

#endif

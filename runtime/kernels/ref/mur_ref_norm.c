/* mur_ref_norm.c - norms and logarithms of softmax of int8 rows by integers alone. */
#include "mur_nn_arith.h"

/* floor(sqrt(x)), 2^15 or more of an x of 2^30 or more, bit by bit */
static uint32_t root_of(uint32_t x)
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

static inline int32_t high_product(int32_t a, int32_t b)
{
    return (int32_t)(((int64_t)a * b) >> 32);
}

/* 1 / sqrt(w) in 31 bits, and what results are shifted by */
static int32_t inverse_of(const mur_norm_s8 *layer, uint64_t w, int32_t *shift)
{
    uint32_t high, quotient;

    *shift = layer->shift;
    for (; w >> 32; *shift += 1)
        w >>= 2;
    for (high = (uint32_t)w; high < 1u << 30; *shift -= 1)
        high <<= 2;
    quotient = (1u << 31) / root_of(high);
    return quotient < 1u << 16 ? (int32_t)(quotient << 15) : INT32_MAX;
}

/* What all elements of a row share: what they are n times less, the inverse of their deviation, and
 * what results are shifted by. */
typedef struct norm_row {
    int32_t centre, inverse, shift;
} norm_row;

static norm_row row_of(const mur_norm_s8 *layer, const int8_t *in)
{
    const int32_t n = layer->columns;
    int32_t sum = 0;
    uint32_t squares = 0;
    uint64_t w;
    norm_row r;

    for (int32_t run = 0; run < layer->runs; run++, in += layer->step)
        for (int32_t i = 0; i < layer->width; i++) {
            const int32_t q = in[i] - layer->in_zero;

            sum += q;
            squares += (uint32_t)(q * q);
        }
    r.centre = layer->is_centred ? sum : 0;
    w = (uint64_t)(uint32_t)n * squares - (uint64_t)((int64_t)r.centre * r.centre);
    w = (w << 8) + (uint64_t)layer->epsilon;
    r.centre = (r.centre + n * layer->in_zero) * (1 << layer->head);
    r.inverse = inverse_of(layer, w ? w : 1, &r.shift);
    return r;
}

static void put_run(const mur_norm_s8 *layer, const norm_row *r, const int8_t *in, int8_t *out,
                    const int32_t *gains, const int32_t *biases)
{
    const int32_t step = layer->columns * (1 << layer->head), each = !layer->of_runs;
    int32_t by = r->shift < 31 ? r->shift : 31;

    if (r->shift >= 0) {
        for (int32_t i = 0; i < layer->width; i++, gains += each, biases += each) {
            int32_t v = high_product(in[i] * step - r->centre, r->inverse);

            v = mur_asr(high_product(v, *gains), by) + *biases;
            out[i] = (int8_t)mur_clamp(mur_asr(v, 8), layer->min, layer->max);
        }
        return;
    }
    by = 1 << (r->shift > -10 ? -r->shift : 10);
    for (int32_t i = 0; i < layer->width; i++, gains += each, biases += each) {
        int32_t v = high_product(in[i] * step - r->centre, r->inverse); /* nearly constant rows */

        v = mur_clamp(high_product(v, *gains), -(1 << 20), 1 << 20);
        v = v * by + *biases;
        out[i] = (int8_t)mur_clamp(mur_asr(v, 8), layer->min, layer->max);
    }
}

void mur_ref_norm_s8(const mur_norm_s8 *layer, const int8_t *in, int8_t *out)
{
    const int32_t gains = layer->of_runs ? layer->runs : layer->width;

    for (int32_t n = 0, group = 0, image = 0; n < layer->rows; n++) {
        int32_t at = image + group * layer->next, gain = group * gains;
        const norm_row r = row_of(layer, in + at);

        for (int32_t run = 0; run < layer->runs; run++, at += layer->step) {
            put_run(layer, &r, in + at, out + at, layer->gains + gain, layer->biases + gain);
            gain += layer->of_runs;
        }
        if (++group == layer->groups) {
            group = 0;
            image += layer->groups * layer->columns;
        }
    }
}

/* log2(x) in 2^-16ths, x at least 2^20 */
static int32_t logarithm_of(uint32_t x)
{
    int32_t log = 31;

    for (; x < 1u << 31; x <<= 1)
        log--;
    for (int bit = 0; bit < 16; bit++) {
        const uint64_t square = (uint64_t)x * x >> 31;

        log = (log << 1) + (int32_t)(square >> 32);
        x = square >> 32 ? (uint32_t)(square >> 1) : (uint32_t)square;
    }
    return log;
}

void mur_ref_log_softmax_s8(const mur_log_softmax_s8 *layer, const int8_t *in, int8_t *out)
{
    const int32_t n = layer->columns;

    for (int32_t row = 0; row < layer->rows; row++, in += n, out += n) {
        int32_t greatest = INT8_MIN, log;
        uint32_t sum = 0;

        for (int32_t i = 0; i < n; i++)
            greatest = in[i] > greatest ? in[i] : greatest;
        for (int32_t i = 0; i < n; i++)
            sum += layer->exps[greatest - in[i]];
        log = logarithm_of(sum) - (20 << 16);
        log = (1 << 15) - (int32_t)(((int64_t)log * layer->log_step) >> 16);
        for (int32_t i = 0; i < n; i++) {
            const int32_t y = mur_asr(log - (greatest - in[i]) * layer->step, 16) + layer->zero;

            out[i] = (int8_t)mur_clamp(y, layer->min, layer->max);
        }
    }
}

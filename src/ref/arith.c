/* arith.c - dot products, exp, and the division of work among threads. */
#include "ref/kernels.h"

#include <math.h>

#include "base/threads.h"

enum { LANES = 8, STEP = 2 * LANES, ROW_BLOCK = 4, WORTH_THREADS = 1 << 21, PARTS = 4 };

/* Element-wise IEEE operations: the compiler's choice of instructions cannot change a bit. */
typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

static inline const lanes *at(const float *p)
{
    return (const lanes *)(const void *)p;
}

static inline float tree(const lanes *low, const lanes *high)
{
    lanes s = *low + *high;

    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

float muc_ref_dot(const float *a, const float *b, size_t n)
{
    lanes low = { 0 }, high = { 0 };
    size_t i = 0;
    float sum;

    for (; i + STEP <= n; i += STEP) {
        low += *at(a + i) * *at(b + i);
        high += *at(a + i + LANES) * *at(b + i + LANES);
    }
    if (i + LANES <= n) {
        low += *at(a + i) * *at(b + i);
        i += LANES;
    }
    sum = tree(&low, &high);
    for (; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* four dot products with one w, each in the order of muc_ref_dot */
static void dot4(const float *x, size_t stride, const float *w, size_t n, float out[ROW_BLOCK])
{
    lanes low[ROW_BLOCK] = { { 0 } }, high[ROW_BLOCK] = { { 0 } };
    size_t i = 0;

    for (; i + STEP <= n; i += STEP) {
        lanes w_low = *at(w + i), w_high = *at(w + i + LANES);

        for (unsigned r = 0; r < ROW_BLOCK; r++) {
            low[r] += *at(x + r * stride + i) * w_low;
            high[r] += *at(x + r * stride + i + LANES) * w_high;
        }
    }
    if (i + LANES <= n) {
        for (unsigned r = 0; r < ROW_BLOCK; r++)
            low[r] += *at(x + r * stride + i) * *at(w + i);
        i += LANES;
    }
    for (unsigned r = 0; r < ROW_BLOCK; r++) {
        out[r] = tree(&low[r], &high[r]);
        for (size_t j = i; j < n; j++)
            out[r] += x[r * stride + j] * w[j];
    }
}

void muc_ref_matmul(const float *x, size_t rows, const float *w, size_t columns, size_t k,
                    const float *bias, float *out, size_t out_stride)
{
    for (size_t c = 0; c < columns; c++) {
        const float *weight = w + c * k;
        float start = bias ? bias[c] : 0, sums[ROW_BLOCK];
        size_t r = 0;

        for (; r + ROW_BLOCK <= rows; r += ROW_BLOCK) {
            dot4(x + r * k, k, weight, k, sums);
            for (unsigned i = 0; i < ROW_BLOCK; i++)
                out[(r + i) * out_stride + c] = sums[i] + start;
        }
        for (; r < rows; r++)
            out[r * out_stride + c] = muc_ref_dot(x + r * k, weight, k) + start;
    }
}

void muc_ref_axpy(float *y, float a, const float *x, size_t n)
{
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        *(lanes *)(void *)(y + i) += a * *at(x + i);
    for (; i < n; i++)
        y[i] += a * x[i];
}

float muc_ref_exp(float x)
{
    /* ln(2)^i / i! */
    static const double c[] = { 1.0,
                                0.69314718055994530942,
                                0.24022650695910071233,
                                0.055504108664821579953,
                                0.0096181291076284771619,
                                0.0013333558146428443423,
                                0.00015403530393381609954,
                                0.000015252733804059840280 };
    double t = (double)x * 1.44269504088896340736, n, f, p;
    union {
        uint64_t bits;
        double value;
    } power;

    if (!(t > -151))
        return x != x ? x : 0;
    if (t > 129)
        return INFINITY;
    n = floor(t + 0.5);
    f = t - n; /* |f| <= 1/2: the series is cut below 2^-27 */
    p = c[7];
    for (int i = 6; i >= 0; i--)
        p = p * f + c[i];
    power.bits = (uint64_t)((int)n + 1023) << 52;
    return (float)(p * power.value);
}

typedef struct split {
    muc_ref_range *body;
    void *arg;
    size_t count, parts;
} split;

static muc_status run_part(void *arg, size_t part)
{
    const split *s = arg;

    s->body(s->arg, part, s->count * part / s->parts, s->count * (part + 1) / s->parts);
    return MUC_OK;
}

size_t muc_ref_parts(muc_context *ctx)
{
    return (size_t)muc_context_threads(ctx) * PARTS;
}

muc_status muc_ref_split(muc_context *ctx, size_t count, size_t work, muc_ref_range *body,
                         void *arg)
{
    split s = { body, arg, count, muc_ref_parts(ctx) };

    if (work < WORTH_THREADS || muc_context_threads(ctx) == 1) {
        body(arg, 0, 0, count);
        return MUC_OK;
    }
    if (s.parts > count)
        s.parts = count;
    return muc_parallel_for(ctx, s.parts, run_part, &s);
}

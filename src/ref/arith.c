/* arith.c - dot products, exp, the division of work among threads, failures. */
#include "ref/kernels.h"

#include <stdio.h>
#include <string.h>

#include "base/threads.h"

enum { LANES = 4, STEP = 2 * LANES, ROWS = 4, WORTH_THREADS = 1 << 21, PARTS = 4 };

/* Element-wise IEEE operations: the compiler's choice of instructions cannot change a bit. */
typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));
typedef uint32_t bit_lanes __attribute__((vector_size(LANES * sizeof(uint32_t))));

static inline const lanes *at(const float *p)
{
    return (const lanes *)(const void *)p;
}

/* Eight interleaved sums added as a tree, then the tail: the order of every dot product here. */
static inline float finish(lanes low, lanes high, const float *a, const float *b, size_t i,
                           size_t n)
{
    lanes s = low + high;
    float sum = (s[0] + s[2]) + (s[1] + s[3]);

    for (; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

float muc_ref_dot(const float *a, const float *b, size_t n)
{
    lanes low = { 0 }, high = { 0 };
    size_t i = 0;

    for (; i + STEP <= n; i += STEP) {
        low += *at(a + i) * *at(b + i);
        high += *at(a + i + LANES) * *at(b + i + LANES);
    }
    return finish(low, high, a, b, i, n);
}

/* four rows' dot products with v, each in the order of muc_ref_dot */
static void four_dots(const float *row, size_t stride, const float *v, size_t n, float *out,
                      size_t out_stride)
{
    const float *r0 = row, *r1 = r0 + stride, *r2 = r1 + stride, *r3 = r2 + stride;
    lanes low0 = { 0 }, low1 = { 0 }, low2 = { 0 }, low3 = { 0 };
    lanes high0 = { 0 }, high1 = { 0 }, high2 = { 0 }, high3 = { 0 };
    size_t i = 0;

    for (; i + STEP <= n; i += STEP) {
        lanes v_low = *at(v + i), v_high = *at(v + i + LANES);

        low0 += *at(r0 + i) * v_low;
        low1 += *at(r1 + i) * v_low;
        low2 += *at(r2 + i) * v_low;
        low3 += *at(r3 + i) * v_low;
        high0 += *at(r0 + i + LANES) * v_high;
        high1 += *at(r1 + i + LANES) * v_high;
        high2 += *at(r2 + i + LANES) * v_high;
        high3 += *at(r3 + i + LANES) * v_high;
    }
    out[0] = finish(low0, high0, r0, v, i, n);
    out[out_stride] = finish(low1, high1, r1, v, i, n);
    out[2 * out_stride] = finish(low2, high2, r2, v, i, n);
    out[3 * out_stride] = finish(low3, high3, r3, v, i, n);
}

void muc_ref_dots(const float *rows, size_t stride, size_t count, const float *v, size_t n,
                  float *out, size_t out_stride)
{
    size_t r = 0;

    for (; r + ROWS <= count; r += ROWS)
        four_dots(rows + r * stride, stride, v, n, out + r * out_stride, out_stride);
    for (; r < count; r++)
        out[r * out_stride] = muc_ref_dot(rows + r * stride, v, n);
}

void muc_ref_matmul(const float *x, size_t rows, const float *w, size_t columns, size_t k,
                    float *out, size_t out_stride)
{
    if (rows < ROWS) {
        for (size_t r = 0; r < rows; r++)
            muc_ref_dots(w, k, columns, x + r * k, k, out + r * out_stride, 1);
        return;
    }
    for (size_t c = 0; c < columns; c++)
        muc_ref_dots(x, k, rows, w + c * k, k, out + c, out_stride);
}

void muc_ref_axpy(float *y, float a, const float *x, size_t n)
{
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        *(lanes *)(void *)(y + i) += a * *at(x + i);
    for (; i < n; i++)
        y[i] += a * x[i];
}

/* 2^(x / ln 2): the exponent is rounded off by adding 1.5 * 2^23, the rest is a series */
static inline lanes exp_lanes(lanes x)
{
    const lanes magic = { 12582912, 12582912, 12582912, 12582912 };
    const bit_lanes magic_bits = { 0x4b400000, 0x4b400000, 0x4b400000, 0x4b400000 };
    lanes shifted, n, r, p, power;
    bit_lanes bits;

    shifted = x * 1.44269504f + magic;
    n = shifted - magic;
    r = x - n * 0.693359375f + n * 2.12194440e-4f; /* ln 2 in two parts; |r| <= 0.35 */
    p = r * (1 / 5040.0f) + 1 / 720.0f;
    p = p * r + 1 / 120.0f;
    p = p * r + 1 / 24.0f;
    p = p * r + 1 / 6.0f;
    p = p * r + 0.5f;
    p = p * r * r + r + 1;
    memcpy(&bits, &shifted, sizeof(bits));
    bits = (bits - magic_bits + 127) << 23;
    memcpy(&power, &bits, sizeof(power));
    return p * power;
}

void muc_ref_exp(float *x, size_t n)
{
    size_t i = 0;
    lanes last = { 0 };

    for (size_t j = 0; j < n; j++)
        x[j] = x[j] < -87 ? -87 : x[j] > 88 ? 88 : x[j];
    for (; i + LANES <= n; i += LANES)
        *(lanes *)(void *)(x + i) = exp_lanes(*at(x + i));
    memcpy(&last, x + i, (n - i) * sizeof(float));
    last = exp_lanes(last);
    memcpy(x + i, &last, (n - i) * sizeof(float));
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

int64_t muc_ref_integer(const muc_ref_value *value, size_t i)
{
    uint32_t width = muc_dtype_get(value->dtype)->block_bytes;

    return muc_dtype_integer(value->dtype, (const uint8_t *)value->read + i * width);
}

double muc_ref_real(const muc_ref_value *value, size_t i)
{
    if (value->dtype == MUC_F32)
        return (double)((const float *)value->read)[i];
    if (value->dtype == MUC_F64)
        return ((const double *)value->read)[i];
    if (value->dtype == MUC_U64)
        return (double)(uint64_t)muc_ref_integer(value, i);
    return (double)muc_ref_integer(value, i);
}

muc_status muc_ref_expr(const muc_ref_call *call, muc_expr e, size_t *out)
{
    uint32_t value;

    MUC_TRY(muc_expr_eval(call->ctx, call->graph->pool, e, call->bindings, &value));
    *out = value;
    return MUC_OK;
}

muc_status muc_ref_fail(const muc_ref_call *call, const char *format, ...)
{
    char message[256];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    return muc_fail(call->ctx, MUC_MALFORMED, call->graph->name, MUC_NO_OFFSET, "node '%s': %s",
                    call->node->name, message);
}

/* arith.c - exp, the division of work among threads, failures. */
#include "ref/kernels.h"

#include <string.h>

#include "base/threads.h"
#include "base/vector_loop.h"

enum { LANES = 8, WORTH_THREADS = 1 << 21, PARTS = 4 };

/* Element-wise IEEE operations: the compiler's choice of instructions cannot change a bit. */
typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));
typedef uint32_t bit_lanes __attribute__((vector_size(LANES * sizeof(uint32_t))));

/* 2^(x / ln 2) of LANES elements, each in -87..88: the exponent is rounded off by adding 1.5 *
 * 2^23, the rest is a series. A macro, because a vector that passes a function's boundary is cut to
 * the size that all processors have. */
#define EXP_LANES(x) \
    { \
        lanes *at_ = (lanes *)(void *)(x), shifted_ = *at_ * 1.44269504f + 12582912.0f, power_; \
        lanes n_ = shifted_ - 12582912.0f; \
        /* ln 2 in two parts; |r| <= 0.35 */ \
        lanes r_ = *at_ - n_ * 0.693359375f + n_ * 2.12194440e-4f; \
        lanes p_ = r_ * (1 / 5040.0f) + 1 / 720.0f; \
        bit_lanes bits_; \
        p_ = p_ * r_ + 1 / 120.0f; \
        p_ = p_ * r_ + 1 / 24.0f; \
        p_ = p_ * r_ + 1 / 6.0f; \
        p_ = p_ * r_ + 0.5f; \
        p_ = p_ * r_ * r_ + r_ + 1; \
        memcpy(&bits_, &shifted_, sizeof(bits_)); \
        bits_ = (bits_ - 0x4b400000u + 127) << 23; \
        memcpy(&power_, &bits_, sizeof(power_)); \
        *at_ = p_ * power_; \
    }

MUC_VECTOR_LOOP void muc_ref_exp(float *x, size_t n)
{
    float last[LANES] = { 0 };
    size_t i = 0;

    for (size_t j = 0; j < n; j++)
        x[j] = x[j] < -87 ? -87 : x[j] > 88 ? 88 : x[j];
    for (; i + LANES <= n; i += LANES)
        EXP_LANES(x + i)
    memcpy(last, x + i, (n - i) * sizeof(float));
    EXP_LANES(last)
    memcpy(x + i, last, (n - i) * sizeof(float));
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

/* arith.c - exp, the division of work among threads, failures. */
#include "ref/kernels.h"

#include <stdio.h>
#include <string.h>

#include "base/threads.h"

enum { LANES = 4, WORTH_THREADS = 1 << 21, PARTS = 4 };

/* Element-wise IEEE operations: the compiler's choice of instructions cannot change a bit. */
typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));
typedef uint32_t bit_lanes __attribute__((vector_size(LANES * sizeof(uint32_t))));

static inline const lanes *at(const float *p)
{
    return (const lanes *)(const void *)p;
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

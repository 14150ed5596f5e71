/* product.c - matrix products: stacks of matrices as numpy multiplies them. */
#include <string.h>

#include "ref/walk.h"

/* Stacks of [m, k] times [k, n], a vector being one row or column. */
typedef struct product {
    const muc_ref_call *call;
    size_t m, k, n;
    const uint8_t *a, *b;
    uint8_t *out;
    float *transposed; /* [n][k], of the matrix b at work */
    size_t stacks;     /* done */
} product;

static void transpose(const float *b, size_t k, size_t n, float *out)
{
    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j < n; j++)
            out[j * k + i] = b[i * n + j];
}

static void rows_f32(void *arg, size_t part, size_t first, size_t end)
{
    const product *p = arg;
    float *out = (float *)(void *)p->out;

    (void)part;
    muc_ref_matmul((const float *)(const void *)p->a, p->m, p->transposed + first * p->k,
                   end - first, p->k, out + first, p->n);
}

#define PRODUCT(sum_type, id, type) \
    case MUC_##id: { \
        const type *a = (const type *)(const void *)p->a, *b = (const type *)(const void *)p->b; \
        type *out = (type *)(void *)p->out; \
        for (size_t i = 0; i < p->m; i++) \
            for (size_t j = 0; j < p->n; j++) { \
                sum_type sum = 0; \
                for (size_t l = 0; l < p->k; l++) \
                    sum += (sum_type)a[i * p->k + l] * (sum_type)b[l * p->n + j]; \
                out[i * p->n + j] = (type)sum; \
            } \
        break; \
    }

static void multiply_others(const product *p, muc_dtype dtype)
{
    switch ((unsigned)dtype) {
        PRODUCT(double, F64, double)
        MUC_REF_INTEGERS(PRODUCT, uint64_t)
    }
}

static void multiply(void *arg, size_t n, const size_t *at, const size_t *step)
{
    product *p = arg, one;
    muc_dtype dtype = p->call->output->dtype;
    size_t width = muc_ref_width(p->call->output);

    for (size_t i = 0; i < n; i++, p->stacks++) {
        one = *p;
        one.a += (at[0] + i * step[0]) * p->m * p->k * width;
        one.b += (at[1] + i * step[1]) * p->k * p->n * width;
        one.out += p->stacks * p->m * p->n * width;
        if (dtype != MUC_F32) {
            multiply_others(&one, dtype);
            continue;
        }
        transpose((const float *)(const void *)one.b, p->k, p->n, p->transposed);
        /* cannot fail: its bodies do not */
        (void)muc_ref_split(p->call->ctx, p->n, p->m * p->n * p->k, rows_f32, &one);
    }
}

/* the dimensions of a value before its matrices; of a vector none */
static muc_ref_value stack_of(const muc_ref_value *value)
{
    muc_ref_value stack = *value;

    stack.rank = value->rank > 2 ? value->rank - 2 : 0;
    return stack;
}

muc_status muc_kernel_matmul(const muc_ref_call *call)
{
    const muc_ref_value *a = call->inputs[0], *b = call->inputs[1];
    product p = { .call = call,
                  .m = a->rank > 1 ? a->dims[a->rank - 2] : 1,
                  .k = a->dims[a->rank - 1],
                  .n = b->rank > 1 ? b->dims[b->rank - 1] : 1,
                  .a = a->read,
                  .b = b->read,
                  .out = call->output->data };
    muc_ref_value stacks[3] = { stack_of(a), stack_of(b), *call->output };
    const muc_ref_value *const operands[] = { &stacks[0], &stacks[1] };
    muc_ref_walk walk;
    void *transposed;

    stacks[2].rank -= (a->rank > 1) + (uint32_t)(b->rank > 1);
    MUC_TRY(muc_ref_reserve(call, p.k * p.n * sizeof(float), &transposed));
    p.transposed = transposed;
    muc_ref_walk_of(&stacks[2], operands, 2, &walk);
    muc_ref_walk_each(&walk, multiply, &p);
    return MUC_OK;
}

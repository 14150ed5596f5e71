/* product.c - matrix products: stacks of matrices as numpy multiplies them. */
#include <string.h>

#include "ref/walk.h"

/* Stacks of [m, k] times [k, n], a vector being one row or column. */
typedef struct product {
    muc_context *ctx;
    muc_dtype dtype;
    size_t m, k, n, width; /* width: bytes of an element */
    const uint8_t *a, *b;
    uint8_t *out, *transposed; /* transposed: [n][k], of the matrix b at work */
    size_t stacks;             /* done */
} product;

#define TRANSPOSE(type) \
    for (size_t i = 0; i < p->k; i++) \
        for (size_t j = 0; j < p->n; j++) \
            memcpy(p->transposed + (j * p->k + i) * sizeof(type), \
                   p->b + (i * p->n + j) * sizeof(type), sizeof(type));

static void transpose(const product *p)
{
    if (p->width == 1)
        TRANSPOSE(uint8_t)
    else if (p->width == 2)
        TRANSPOSE(uint16_t)
    else if (p->width == 4)
        TRANSPOSE(uint32_t)
    else
        TRANSPOSE(uint64_t)
}

#define COLUMNS(sum_type, id, type) \
    case MUC_##id: { \
        const type *a = (const type *)(const void *)p->a; \
        const type *b = (const type *)(const void *)p->transposed; \
        type *out = (type *)(void *)p->out; \
        for (size_t i = 0; i < p->m; i++) \
            for (size_t j = first; j < end; j++) { \
                sum_type sum = 0; \
                for (size_t l = 0; l < p->k; l++) \
                    sum += (sum_type)a[i * p->k + l] * (sum_type)b[j * p->k + l]; \
                out[i * p->n + j] = (type)sum; \
            } \
        break; \
    }

static void columns(void *arg, size_t part, size_t first, size_t end)
{
    const product *p = arg;

    (void)part;
    switch ((unsigned)p->dtype) {
    case MUC_F32:
        muc_ref_matmul((const float *)(const void *)p->a, p->m,
                       (const float *)(const void *)p->transposed + first * p->k, p->k, end - first,
                       p->k, (float *)(void *)p->out + first, p->n);
        break;
        COLUMNS(double, F64, double)
        COLUMNS(uint64_t, I64, int64_t)
        COLUMNS(uint64_t, U64, uint64_t)
        COLUMNS(uint32_t, I32, int32_t)
        COLUMNS(uint32_t, U32, uint32_t)
        COLUMNS(uint32_t, I16, int16_t)
        COLUMNS(uint32_t, U16, uint16_t)
        COLUMNS(uint32_t, I8, int8_t)
        COLUMNS(uint32_t, U8, uint8_t)
    }
}

static void multiply(void *arg, size_t n, const size_t *at, const size_t *step)
{
    product *p = arg, one;

    for (size_t i = 0; i < n; i++, p->stacks++) {
        one = *p;
        one.a += (at[0] + i * step[0]) * p->m * p->k * p->width;
        one.b += (at[1] + i * step[1]) * p->k * p->n * p->width;
        one.out += p->stacks * p->m * p->n * p->width;
        transpose(&one);
        /* cannot fail: its bodies do not */
        (void)muc_ref_split(p->ctx, p->n, p->m * p->n * p->k, columns, &one);
    }
}

/* the dimensions of a value before its matrices; of a vector none */
static muc_ref_value stack_of(const muc_ref_value *value)
{
    muc_ref_value stack = *value;

    stack.rank = value->rank > 2 ? value->rank - 2 : 0;
    return stack;
}

muc_status muc_ref_product(const muc_ref_call *call, const muc_ref_value *a, const muc_ref_value *b,
                           const muc_ref_value *out)
{
    product p = { .ctx = call->ctx,
                  .dtype = out->dtype,
                  .m = a->rank > 1 ? a->dims[a->rank - 2] : 1,
                  .k = a->dims[a->rank - 1],
                  .n = b->rank > 1 ? b->dims[b->rank - 1] : 1,
                  .width = muc_ref_width(out),
                  .a = a->read,
                  .b = b->read,
                  .out = out->data };
    muc_ref_value stacks[3] = { stack_of(a), stack_of(b), *out };
    const muc_ref_value *const operands[] = { &stacks[0], &stacks[1] };
    muc_ref_walk walk;
    void *transposed;

    stacks[2].rank -= (a->rank > 1) + (uint32_t)(b->rank > 1);
    MUC_TRY(muc_ref_reserve_inner(call, p.k * p.n * p.width, &transposed));
    p.transposed = transposed;
    muc_ref_walk_of(&stacks[2], operands, 2, &walk);
    muc_ref_walk_each(&walk, multiply, &p);
    return MUC_OK;
}

muc_status muc_kernel_matmul(const muc_ref_call *call)
{
    return muc_ref_product(call, call->inputs[0], call->inputs[1], call->output);
}

/* Element [i][j] of a product: rows of a and columns of b, each with a step between elements. */
typedef struct gemm {
    const muc_ref_call *call;
    size_t k, n, a_row, a_step, b_column, b_step;
    double alpha, beta;
    muc_ref_walk c; /* of input 2, if it is there */
    size_t done;
} gemm;

static double real_product(const gemm *g, size_t i, size_t j)
{
    const muc_ref_value *a = g->call->inputs[0], *b = g->call->inputs[1];
    double sum = 0;

    for (size_t l = 0; l < g->k; l++)
        sum += muc_ref_real(a, i * g->a_row + l * g->a_step) *
               muc_ref_real(b, j * g->b_column + l * g->b_step);
    return sum;
}

static int64_t integer_product(const gemm *g, size_t i, size_t j)
{
    const muc_ref_value *a = g->call->inputs[0], *b = g->call->inputs[1];
    uint64_t sum = 0;

    for (size_t l = 0; l < g->k; l++)
        sum += (uint64_t)muc_ref_integer(a, i * g->a_row + l * g->a_step) *
               (uint64_t)muc_ref_integer(b, j * g->b_column + l * g->b_step);
    return (int64_t)sum;
}

static void gemm_run(void *arg, size_t n, const size_t *at, const size_t *step)
{
    gemm *g = arg;
    const muc_ref_value *c = muc_ref_input_of(g->call, 2), *out = g->call->output;

    for (size_t l = 0; l < n; l++, g->done++) {
        size_t i = g->done / g->n, j = g->done % g->n, from = at[0] + l * step[0];

        if (muc_ref_is_real(out)) {
            double value = g->alpha * real_product(g, i, j);

            if (c)
                value += g->beta * muc_ref_real(c, from);
            muc_ref_store_reals(out, g->done, 1, &value);
        } else {
            int64_t value = integer_product(g, i, j);

            if (g->alpha != 1)
                value = (int64_t)(g->alpha * (double)value);
            if (c)
                value += g->beta == 1 ? muc_ref_integer(c, from)
                                      : (int64_t)(g->beta * (double)muc_ref_integer(c, from));
            muc_ref_store_integers(out, g->done, 1, &value);
        }
    }
}

muc_status muc_kernel_gemm(const muc_ref_call *call)
{
    const muc_ref_value *a = call->inputs[0], *b = call->inputs[1];
    const muc_ref_value *c = call->output;
    bool ta = muc_node_integer_or(call->node, MUC_KEY_TRANSPOSE_A, 0) == 1;
    bool tb = muc_node_integer_or(call->node, MUC_KEY_TRANSPOSE_B, 0) == 1;
    gemm g = { .call = call,
               .k = a->dims[!ta],
               .n = b->dims[!tb],
               .a_row = ta ? 1 : a->dims[1],
               .a_step = ta ? a->dims[1] : 1,
               .b_column = tb ? b->dims[1] : 1,
               .b_step = tb ? 1 : b->dims[1],
               .alpha = muc_node_real_or(call->node, MUC_KEY_ALPHA, 1),
               .beta = muc_node_real_or(call->node, MUC_KEY_BETA, 1) };
    const muc_ref_value *const operands[] = { muc_ref_input_of(call, 2) ? call->inputs[2] : c };

    muc_ref_walk_of(call->output, operands, 1, &g.c);
    muc_ref_walk_each(&g.c, gemm_run, &g);
    return MUC_OK;
}

/* linear of other types than f32: x w^T + b */
muc_status muc_ref_linear_others(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0], *w = call->inputs[1];
    const muc_ref_value *bias = muc_ref_input_of(call, 2);

    for (size_t i = 0; i < call->output->elements; i++) {
        size_t row = i / w->rows, column = i % w->rows;
        double sum = 0;

        for (size_t l = 0; l < w->columns; l++)
            sum += muc_ref_real(x, row * w->columns + l) * muc_ref_real(w, column * w->columns + l);
        if (bias)
            sum += muc_ref_real(bias, column);
        muc_ref_store_reals(call->output, i, 1, &sum);
    }
    return MUC_OK;
}

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

/* int8_decompose.c - writes operators that have no int8 form as several that have one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/sampling.h"
#include "passes/int8/int8_pass.h"
#include "passes/simplify/fold.h"

enum { MOST_WINDOW = 64 };

static const muc_tensor *in(const muc_rewrite *r, const muc_node *node, uint32_t i)
{
    return muc_rewrite_old(r, node->inputs[i]);
}

static const muc_tensor *out(const muc_rewrite *r, const muc_node *node)
{
    return muc_rewrite_old(r, node->outputs[0]);
}

/* a constant of more than one element, with which an operator is no function of one tensor */
static bool is_many(const muc_rewrite *r, uint32_t id)
{
    return muc_rewrite_is_constant(r, id) && muc_rewrite_old(r, id)->bytes > sizeof(float);
}

/* a node of one output between those that there were */
static muc_status add(muc_rewrite *r, const muc_node *node, muc_op op, const uint32_t *inputs,
                      uint32_t count, uint32_t *made)
{
    return muc_rewrite_add(r, op, node->name, inputs, count, NULL, 0, NULL, made);
}

static muc_status add_number(muc_rewrite *r, const muc_node *node, float value, uint32_t *made)
{
    const muc_tensor like = { .dtype = MUC_F32 };

    return muc_rewrite_constant(r, node->name, &like, &value, sizeof(value), made);
}

/* x op a number */
static muc_status add_with(muc_rewrite *r, const muc_node *node, muc_op op, uint32_t x, float value,
                           uint32_t *made)
{
    uint32_t inputs[2] = { x };

    MUC_TRY(add_number(r, node, value, &inputs[1]));
    return add(r, node, op, inputs, 2, made);
}

/* the new tensors of all inputs of a node that has at most two */
static muc_status get_inputs(muc_rewrite *r, const muc_node *node, uint32_t inputs[2])
{
    for (uint32_t i = 0; i < node->input_count && i < 2; i++)
        MUC_TRY(muc_rewrite_tensor(r, node->inputs[i], &inputs[i]));
    return MUC_OK;
}

/* ---- element by element ---- */

/* sums, means, and the least or greatest of many: two after two */
static muc_status split_many(muc_rewrite *r, const muc_node *node, bool *done)
{
    const bool mean = node->op == MUC_OP_MEAN, sum = mean || node->op == MUC_OP_SUM;
    const bool most = node->op == MUC_OP_MIN || node->op == MUC_OP_MAX;
    const muc_op op = sum ? MUC_OP_ADD : node->op;
    uint32_t inputs[2];

    if (!(sum || (most && node->input_count > 2)))
        return MUC_OK;
    *done = true;
    MUC_TRY(muc_rewrite_tensor(r, node->inputs[0], &inputs[0]));
    for (uint32_t i = 1; i < node->input_count; i++) {
        MUC_TRY(muc_rewrite_tensor(r, node->inputs[i], &inputs[1]));
        if (!mean && i + 1 == node->input_count)
            return muc_rewrite_change(r, node, op, inputs, 2, NULL, 0);
        MUC_TRY(add(r, node, op, inputs, 2, &inputs[0]));
    }
    MUC_TRY(add_number(r, node, 1 / (float)node->input_count, &inputs[1]));
    return muc_rewrite_change(r, node, MUC_OP_MUL, inputs, 2, NULL, 0);
}

static bool is_pair(muc_op op)
{
    return op == MUC_OP_ADD || op == MUC_OP_SUB || op == MUC_OP_MUL || op == MUC_OP_DIV;
}

/* kernels repeat one operand: where both repeat, one is made as large as the result */
static muc_status widen_pair(muc_rewrite *r, const muc_node *node, bool *done)
{
    const muc_tensor *y = out(r, node);
    muc_attribute shape = { .key = MUC_KEY_SHAPE, .value.exprs = { y->dims, y->rank } };
    bool swaps = muc_op_get(node->op)->flags & MUC_OP_COMMUTES;
    uint32_t inputs[2], side;

    if (!is_pair(node->op) || same_dims(in(r, node, 0), y) ||
        (swaps && same_dims(in(r, node, 1), y)))
        return MUC_OK;
    side = muc_rewrite_is_constant(r, node->inputs[0]);
    if (side == 1 && !swaps)
        return MUC_OK;
    *done = true;
    MUC_TRY(get_inputs(r, node, inputs));
    MUC_TRY(muc_rewrite_add(r, MUC_OP_EXPAND, node->name, &inputs[side], 1, &shape, 1, NULL,
                            &inputs[side]));
    return muc_rewrite_change(r, node, node->op, inputs, 2, node->attributes,
                              node->attribute_count);
}

/* constants less x, or over x: what kernels read first is computed */
static muc_status turn_pair(muc_rewrite *r, const muc_node *node, bool *done)
{
    const bool sub = node->op == MUC_OP_SUB;
    uint32_t inputs[2], x;

    if ((!sub && node->op != MUC_OP_DIV) || !is_many(r, node->inputs[0]) ||
        muc_rewrite_is_constant(r, node->inputs[1]))
        return MUC_OK;
    *done = true;
    MUC_TRY(get_inputs(r, node, inputs));
    MUC_TRY(add(r, node, sub ? MUC_OP_NEG : MUC_OP_RECIPROCAL, &inputs[1], 1, &x));
    inputs[1] = inputs[0];
    inputs[0] = x;
    return muc_rewrite_change(r, node, sub ? MUC_OP_ADD : MUC_OP_MUL, inputs, 2, NULL, 0);
}

/* 1 where it is true, else 0 */
static muc_status choose_truth(muc_rewrite *r, const muc_node *node, bool *done)
{
    uint32_t inputs[3];

    if (node->op != MUC_OP_CAST || in(r, node, 0)->dtype != MUC_BOOL)
        return MUC_OK;
    *done = true;
    MUC_TRY(muc_rewrite_tensor(r, node->inputs[0], &inputs[0]));
    MUC_TRY(add_number(r, node, 1, &inputs[1]));
    MUC_TRY(add_number(r, node, 0, &inputs[2]));
    return muc_rewrite_change(r, node, MUC_OP_WHERE, inputs, 3, NULL, 0);
}

/* ---- products ---- */

/* with the last two dimensions in turns */
static muc_status add_turned(muc_rewrite *r, const muc_node *node, uint32_t rank, uint32_t x,
                             uint32_t *made)
{
    int64_t perm[MUC_GRAPH_MAX_RANK];
    const muc_attribute order = { .key = MUC_KEY_PERM, .value.integers = { perm, rank } };

    for (uint32_t i = 0; i < rank; i++)
        perm[i] = i;
    perm[rank - 1] = rank - 2;
    perm[rank - 2] = rank - 1;
    return muc_rewrite_add(r, MUC_OP_TRANSPOSE, node->name, &x, 1, &order, 1, NULL, made);
}

/* a constant matrix times x: x's columns are rows of a linear layer */
static muc_status turn_product(muc_rewrite *r, const muc_node *node, bool *done)
{
    uint32_t inputs[2], rank;
    int64_t perm[MUC_GRAPH_MAX_RANK];
    muc_attribute order = { .key = MUC_KEY_PERM };

    if (node->op != MUC_OP_MATMUL || !muc_rewrite_is_constant(r, node->inputs[0]) ||
        in(r, node, 0)->rank != 2 || in(r, node, 1)->rank < 2)
        return MUC_OK;
    *done = true;
    rank = in(r, node, 1)->rank;
    MUC_TRY(muc_rewrite_tensor(r, node->inputs[1], &inputs[0]));
    MUC_TRY(muc_rewrite_tensor(r, node->inputs[0], &inputs[1]));
    MUC_TRY(add_turned(r, node, rank, inputs[0], &inputs[0]));
    MUC_TRY(add(r, node, MUC_OP_LINEAR, inputs, 2, &inputs[0]));
    for (uint32_t i = 0; i < rank; i++)
        perm[i] = i + 2 < rank ? i : 2 * rank - 3 - i;
    order.value.integers.items = perm;
    order.value.integers.count = rank;
    return muc_rewrite_change(r, node, MUC_OP_TRANSPOSE, inputs, 1, &order, 1);
}

/* linear and gemm of two computed matrices */
static muc_status split_product(muc_rewrite *r, const muc_node *node, bool *done)
{
    const float alpha = (float)muc_node_real_or(node, MUC_KEY_ALPHA, 1);
    const float beta = (float)muc_node_real_or(node, MUC_KEY_BETA, 1);
    bool turned[] = { muc_node_integer_or(node, MUC_KEY_TRANSPOSE_A, 0) == 1,
                      node->op == MUC_OP_LINEAR ||
                          muc_node_integer_or(node, MUC_KEY_TRANSPOSE_B, 0) == 1 };
    uint32_t bias = muc_node_input(node, 2), inputs[2];

    if ((node->op != MUC_OP_LINEAR && node->op != MUC_OP_GEMM) ||
        muc_rewrite_is_constant(r, node->inputs[1]))
        return MUC_OK;
    *done = true;
    MUC_TRY(get_inputs(r, node, inputs));
    for (uint32_t i = 0; i < 2; i++)
        if (turned[i])
            MUC_TRY(add_turned(r, node, in(r, node, i)->rank, inputs[i], &inputs[i]));
    if (bias == MUC_NO_ID && alpha == 1)
        return muc_rewrite_change(r, node, MUC_OP_MATMUL, inputs, 2, NULL, 0);
    MUC_TRY(add(r, node, MUC_OP_MATMUL, inputs, 2, &inputs[0]));
    if (bias == MUC_NO_ID) {
        MUC_TRY(add_number(r, node, alpha, &inputs[1]));
        return muc_rewrite_change(r, node, MUC_OP_MUL, inputs, 2, NULL, 0);
    }
    if (alpha != 1)
        MUC_TRY(add_with(r, node, MUC_OP_MUL, inputs[0], alpha, &inputs[0]));
    MUC_TRY(muc_rewrite_tensor(r, bias, &inputs[1]));
    if (beta != 1)
        MUC_TRY(add_with(r, node, MUC_OP_MUL, inputs[1], beta, &inputs[1]));
    return muc_rewrite_change(r, node, MUC_OP_ADD, inputs, 2, NULL, 0);
}

/* ---- rows ---- */

/* integers are along the last dimension */
static muc_status turn_rows(muc_rewrite *r, const muc_node *node, bool *done)
{
    const uint32_t rank = in(r, node, 0)->rank;
    int64_t perm[MUC_GRAPH_MAX_RANK], axis;
    const muc_attribute order = { .key = MUC_KEY_PERM, .value.integers = { perm, rank } };
    muc_attribute_list a;
    uint32_t x;

    if ((node->op != MUC_OP_SOFTMAX && node->op != MUC_OP_LOG_SOFTMAX &&
         node->op != MUC_OP_LP_NORM) ||
        muc_node_integer(node, MUC_KEY_AXIS) + 1 == rank || !muc_attribute_list_of(&a, node))
        return MUC_OK;
    *done = true;
    axis = muc_node_integer(node, MUC_KEY_AXIS);
    for (uint32_t i = 0; i < rank; i++)
        perm[i] = i == axis ? (int64_t)rank - 1 : i + 1 == rank ? axis : (int64_t)i;
    muc_attribute_list_set(&a, (muc_attribute){ .key = MUC_KEY_AXIS, .value.integer = rank - 1 });
    MUC_TRY(muc_rewrite_tensor(r, node->inputs[0], &x));
    MUC_TRY(muc_rewrite_add(r, MUC_OP_TRANSPOSE, node->name, &x, 1, &order, 1, NULL, &x));
    MUC_TRY(muc_rewrite_add(r, node->op, node->name, &x, 1, a.items, a.count, NULL, &x));
    return muc_rewrite_change(r, node, MUC_OP_TRANSPOSE, &x, 1, &order, 1);
}

/* x over its length is x over the root of its mean square, of sqrt(columns) less */
static muc_status divide_by_length(muc_rewrite *r, const muc_node *node, bool *done)
{
    const muc_tensor *x = in(r, node, 0);
    const muc_attribute epsilon = { .key = MUC_KEY_EPSILON, .value.real = 1e-30 };
    int64_t axis = (int64_t)x->rank - 1;
    const muc_attribute along[] = { { .key = MUC_KEY_AXES, .value.integers = { &axis, 1 } },
                                    { .key = MUC_KEY_KEEP_DIMS, .value.integer = 1 } };
    muc_tensor like = { .dtype = MUC_F32, .rank = 1 };
    uint32_t columns, inputs[2];
    muc_status status;
    float *gains;

    if (node->op != MUC_OP_LP_NORM || muc_node_integer(node, MUC_KEY_AXIS) != axis ||
        !muc_rewrite_dim(&r->old, x, (uint32_t)axis, &columns) || columns == 0)
        return MUC_OK;
    *done = true;
    MUC_TRY(get_inputs(r, node, inputs));
    if (muc_node_integer(node, MUC_KEY_P) == 1) {
        MUC_TRY(muc_rewrite_add(r, MUC_OP_REDUCE_L1, node->name, inputs, 1, along, 2, NULL,
                                &inputs[1]));
        return muc_rewrite_change(r, node, MUC_OP_DIV, inputs, 2, NULL, 0);
    }
    like.dims[0] = x->dims[axis];
    MUC_TRY(MUC_NEW_ARRAY(r->ctx, r->old.name, columns, &gains));
    for (uint32_t i = 0; i < columns; i++)
        gains[i] = (float)(1 / sqrt((double)columns));
    status =
        muc_rewrite_constant(r, node->name, &like, gains, columns * sizeof(*gains), &inputs[1]);
    free(gains);
    MUC_TRY(status);
    return muc_rewrite_change(r, node, MUC_OP_RMSNORM, inputs, 2, &epsilon, 1);
}

/* ---- reductions ---- */

/* a sum of a function of the elements, and a function of the sum */
static muc_status split_reduction(muc_rewrite *r, const muc_node *node, bool *done)
{
    const bool squares = node->op == MUC_OP_REDUCE_L2 || node->op == MUC_OP_REDUCE_SUM_SQUARE;
    const bool magnitudes = node->op == MUC_OP_REDUCE_L1, root = node->op == MUC_OP_REDUCE_L2;
    const bool log = node->op == MUC_OP_REDUCE_LOG_SUM;
    uint32_t inputs[2];

    if (!squares && !magnitudes && !log)
        return MUC_OK;
    *done = true;
    MUC_TRY(get_inputs(r, node, inputs));
    inputs[1] = inputs[0];
    if (squares || magnitudes)
        MUC_TRY(add(r, node, squares ? MUC_OP_MUL : MUC_OP_ABS, inputs, squares ? 2 : 1, inputs));
    if (!root && !log)
        return muc_rewrite_change(r, node, MUC_OP_REDUCE_SUM, inputs, 1, node->attributes,
                                  node->attribute_count);
    MUC_TRY(muc_rewrite_add(r, MUC_OP_REDUCE_SUM, node->name, inputs, 1, node->attributes,
                            node->attribute_count, NULL, inputs));
    return muc_rewrite_change(r, node, root ? MUC_OP_SQRT : MUC_OP_LOG, inputs, 1, NULL, 0);
}

/* log sum e^x = most + log sum e^(x - most) */
static muc_status split_log_sum_exp(muc_rewrite *r, const muc_node *node, bool *done)
{
    muc_attribute_list a;
    uint32_t inputs[2], sum[2];

    if (node->op != MUC_OP_REDUCE_LOG_SUM_EXP || !muc_attribute_list_of(&a, node))
        return MUC_OK;
    *done = true;
    MUC_TRY(get_inputs(r, node, inputs));
    muc_attribute_list_set(&a, (muc_attribute){ .key = MUC_KEY_KEEP_DIMS, .value.integer = 1 });
    MUC_TRY(muc_rewrite_add(r, MUC_OP_REDUCE_MAX, node->name, inputs, 1, a.items, a.count, NULL,
                            &inputs[1]));
    MUC_TRY(muc_rewrite_add_view(r, node->name, inputs[1], out(r, node)->dims, out(r, node)->rank,
                                 &sum[1]));
    MUC_TRY(add(r, node, MUC_OP_SUB, inputs, 2, &inputs[0]));
    MUC_TRY(add(r, node, MUC_OP_EXP, inputs, 1, &inputs[0]));
    MUC_TRY(muc_rewrite_add(r, MUC_OP_REDUCE_SUM, node->name, inputs, 1, node->attributes,
                            node->attribute_count, NULL, &sum[0]));
    MUC_TRY(add(r, node, MUC_OP_LOG, sum, 1, &sum[0]));
    return muc_rewrite_change(r, node, MUC_OP_ADD, sum, 2, NULL, 0);
}

/* ---- windows ---- */

static bool fixed_size(const muc_rewrite *r, const muc_tensor *t, uint32_t first, uint32_t end,
                       uint32_t *size)
{
    *size = 1;
    for (uint32_t d = first; d < end; d++) {
        uint32_t dim;

        if (!muc_rewrite_dim(&r->old, t, d, &dim) || dim == 0 || *size > UINT32_MAX / dim)
            return false;
        *size *= dim;
    }
    return true;
}

/* local response norms: the mean square of a window of channels, a power of it, a product */
static muc_status split_lrn(muc_rewrite *r, const muc_node *node, bool *done)
{
    const muc_tensor *x = in(r, node, 0);
    const int64_t window = muc_node_integer_or(node, MUC_KEY_WINDOW, 0);
    const int64_t kernel[] = { 1, window };
    const int64_t pads[] = { 0, (window - 1) / 2, 0, window / 2 };
    const muc_attribute pool[] = { { .key = MUC_KEY_KERNEL, .value.integers = { kernel, 2 } },
                                   { .key = MUC_KEY_PADS, .value.integers = { pads, 4 } },
                                   { .key = MUC_KEY_COUNT_INCLUDE_PAD, .value.integer = 1 },
                                   { .key = MUC_KEY_CHANNELS_LAST, .value.integer = 1 } };
    muc_expr rows[4];
    uint32_t inputs[2], pixels, channels;

    if (node->op != MUC_OP_LRN || muc_node_integer_or(node, MUC_KEY_CHANNELS_LAST, 0) != 1 ||
        window > MOST_WINDOW || !fixed_size(r, x, 0, x->rank - 1, &pixels) ||
        !fixed_size(r, x, x->rank - 1, x->rank, &channels) || window / 2 >= channels)
        return MUC_OK;
    *done = true;
    for (uint32_t i = 0; i < 4; i++)
        rows[i] = muc_expr_const(r->graph->pool, i == 1 ? pixels : i == 2 ? channels : 1);
    MUC_TRY(get_inputs(r, node, inputs));
    inputs[1] = inputs[0];
    MUC_TRY(add(r, node, MUC_OP_MUL, inputs, 2, &inputs[1]));
    MUC_TRY(muc_rewrite_add_view(r, node->name, inputs[1], rows, 4, &inputs[1]));
    MUC_TRY(muc_rewrite_add(r, MUC_OP_AVERAGE_POOL, node->name, &inputs[1], 1, pool, 4, NULL,
                            &inputs[1]));
    MUC_TRY(add_with(r, node, MUC_OP_MUL, inputs[1], (float)muc_node_real(node, MUC_KEY_ALPHA),
                     &inputs[1]));
    MUC_TRY(add_with(r, node, MUC_OP_ADD, inputs[1], (float)muc_node_real(node, MUC_KEY_BIAS),
                     &inputs[1]));
    MUC_TRY(add_with(r, node, MUC_OP_POW, inputs[1], -(float)muc_node_real(node, MUC_KEY_BETA),
                     &inputs[1]));
    MUC_TRY(muc_rewrite_add_view(r, node->name, inputs[1], x->dims, x->rank, &inputs[1]));
    return muc_rewrite_change(r, node, MUC_OP_MUL, inputs, 2, NULL, 0);
}

/* between centres of pixels as PyTorch has them: TFLite's where there is more than one */
static bool is_between_centres(const muc_node *node, uint32_t size)
{
    muc_word between = muc_node_word_or(node, MUC_KEY_COORDINATES, MUC_WORD_HALF_PIXEL);

    return between == MUC_WORD_HALF_PIXEL || (between == MUC_WORD_PYTORCH_HALF_PIXEL && size > 1);
}

/* a linear resize of one dimension is one of an image of one row, two neighbours' that of one of
 * them after the other's */
static muc_status resize_lines(muc_rewrite *r, const muc_node *node, bool *done)
{
    const muc_tensor *x = in(r, node, 0), *y = out(r, node);
    const muc_word coordinates = muc_node_word_or(node, MUC_KEY_COORDINATES, MUC_WORD_HALF_PIXEL);
    const uint32_t rank = x->rank;
    uint32_t first = rank, end = 0, size, before, after, id, unused;
    muc_expr lines[4], sizes[4], one = muc_expr_const(r->graph->pool, 1);
    muc_attribute how[] = { { .key = MUC_KEY_MODE, .value.integer = MUC_WORD_LINEAR },
                            { .key = MUC_KEY_SIZES, .value.exprs = { sizes, 4 } },
                            { .key = MUC_KEY_COORDINATES, .value.integer = coordinates } };

    if (node->op != MUC_OP_RESIZE ||
        muc_node_word_or(node, MUC_KEY_MODE, MUC_WORD_NEAREST) != MUC_WORD_LINEAR ||
        muc_resize_as_tflite(&r->old, node, &unused))
        return MUC_OK;
    for (uint32_t d = 0; d < rank; d++)
        if (x->dims[d] != y->dims[d]) {
            first = first < d ? first : d;
            end = d + 1;
        }
    if (end <= first || end - first > 2 || muc_node_integer_or(node, MUC_KEY_ANTIALIAS, 0) ||
        muc_resize_has_own_scales(&r->old, node) || !fixed_size(r, x, 0, first, &before) ||
        !fixed_size(r, x, end, rank, &after) || !fixed_size(r, y, first, end, &size))
        return MUC_OK;
    for (uint32_t d = first; d < end; d++) {
        if (!fixed_size(r, y, d, d + 1, &size))
            return MUC_OK;
        if (is_between_centres(node, size))
            how[2].value.integer = MUC_WORD_HALF_PIXEL;
        else if (coordinates != MUC_WORD_ALIGN_CORNERS && coordinates != MUC_WORD_ASYMMETRIC)
            return MUC_OK;
    }
    *done = true;
    lines[0] = sizes[0] = muc_expr_const(r->graph->pool, before);
    lines[1] = end - first == 2 ? x->dims[first] : one;
    sizes[1] = end - first == 2 ? y->dims[first] : one;
    lines[2] = x->dims[end - 1];
    sizes[2] = y->dims[end - 1];
    lines[3] = sizes[3] = muc_expr_const(r->graph->pool, after);
    MUC_TRY(muc_rewrite_tensor(r, node->inputs[0], &id));
    MUC_TRY(muc_rewrite_add_view(r, node->name, id, lines, 4, &id));
    MUC_TRY(muc_rewrite_add(r, MUC_OP_RESIZE, node->name, &id, 1, how, 3, NULL, &id));
    return muc_rewrite_change_to_view(r, node, id);
}

static muc_rewrite_rule *const rules[] = {
    split_many, widen_pair,       turn_pair,       choose_truth,      turn_product, split_product,
    turn_rows,  divide_by_length, split_reduction, split_log_sum_exp, split_lrn,    resize_lines,
};

static muc_status decompose(muc_rewrite *r, const char *keep)
{
    for (uint32_t n = 0; n < r->old.node_count; n++) {
        const muc_node *node = &r->old.nodes[n];
        bool done = !r->needed[n];

        for (size_t i = 0; i < MUC_COUNT(rules) && !done; i++)
            if (out(r, node)->dtype == MUC_F32 && node->output_count == 1 && node->input_count &&
                !muc_int8_is_kept(r, node, keep))
                MUC_TRY(rules[i](r, node, &done));
        r->changed = r->changed || (done && r->needed[n]);
        if (!done)
            MUC_TRY(muc_rewrite_keep(r, node));
    }
    return muc_rewrite_end(r);
}

muc_status muc_int8_decompose(muc_context *ctx, muc_graph *graph, const char *keep)
{
    bool changed = true, any = false;

    while (changed) { /* each rule leaves operators that no rule before it takes */
        muc_rewrite r;
        muc_status status = muc_rewrite_begin(ctx, graph, &r);

        if (status == MUC_OK)
            status = decompose(&r, keep);
        muc_rewrite_free(&r);
        MUC_TRY(status);
        changed = r.changed;
        any = any || changed;
    }
    return any ? muc_fold(ctx, graph) : MUC_OK; /* steps of constants alone */
}

/* int8_decompose.c - writes operators that have no int8 form as several that have one, as SPLIT in
 * graph/ops.def says. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/sampling.h"
#include "passes/int8/int8_pass.h"
#include "passes/simplify/fold.h"
#include "passes/simplify/write_steps.h"

enum { MOST_WINDOW = 64, MOST_SPLITS = 3 };

static const muc_tensor *in(const muc_rewrite *r, const muc_node *node, uint32_t i)
{
    return muc_rewrite_old(r, node->inputs[i]);
}

static const muc_tensor *out(const muc_rewrite *r, const muc_node *node)
{
    return muc_rewrite_old(r, node->outputs[0]);
}

/* the new tensors of a node's first inputs, and no numbers */
static muc_status read_inputs(muc_rewrite *r, const muc_node *node, muc_steps *steps)
{
    *steps = (muc_steps){ .numbers = { NAN, NAN, NAN } };
    for (uint32_t i = 0; i < MUC_COUNT(steps->tensors); i++)
        MUC_TRY(muc_rewrite_tensor(r, muc_node_input(node, i), &steps->tensors[i]));
    return MUC_OK;
}

/* the steps with the node's attributes */
static muc_status split_always(muc_rewrite *r, const muc_node *node, const char *text, bool *done)
{
    muc_steps steps;

    *done = true;
    MUC_TRY(read_inputs(r, node, &steps));
    steps.attributes = node->attributes;
    steps.attribute_count = node->attribute_count;
    return muc_steps_change(r, node, text, &steps);
}

/* ---- element by element ---- */

/* x and y are two inputs, then what they became and the next; a second item is of them all, as x,
 * and ?a is one over their number */
static muc_status split_many(muc_rewrite *r, const muc_node *node, const char *text, bool *done)
{
    const char *end = muc_steps_skip(text);
    muc_steps steps;

    if (node->op == muc_steps_operator(text) && node->input_count <= 2)
        return MUC_OK;
    *done = true;
    MUC_TRY(read_inputs(r, node, &steps));
    for (uint32_t i = 1; i < node->input_count; i++) {
        MUC_TRY(muc_rewrite_tensor(r, node->inputs[i], &steps.tensors[1]));
        if (!*end && i + 1 == node->input_count)
            return muc_steps_change(r, node, text, &steps);
        MUC_TRY(muc_steps_add(r, node, text, &steps, &steps.tensors[0]));
    }
    steps.numbers[0] = 1 / (float)node->input_count;
    return *end ? muc_steps_change(r, node, end, &steps)
                : muc_rewrite_change_to_view(r, node, steps.tensors[0]);
}

/* kernels repeat one operand: where both repeat, one is made as large as the result */
static muc_status split_widened(muc_rewrite *r, const muc_node *node, const char *text, bool *done)
{
    const muc_tensor *y = out(r, node);
    muc_attribute shape = { .key = MUC_KEY_SHAPE, .value.exprs = { y->dims, y->rank } };
    bool swaps = muc_op_has(node->op, MUC_OP_COMMUTES);
    uint32_t side = muc_rewrite_is_constant(r, node->inputs[0]);
    muc_steps steps;

    (void)text;
    if (muc_tensor_same_dims(in(r, node, 0), y) ||
        (swaps && muc_tensor_same_dims(in(r, node, 1), y)) || (side == 1 && !swaps))
        return MUC_OK;
    *done = true;
    MUC_TRY(read_inputs(r, node, &steps));
    MUC_TRY(muc_rewrite_add(r, MUC_OP_EXPAND, node->name, &steps.tensors[side], 1, &shape, 1, NULL,
                            &steps.tensors[side]));
    return muc_rewrite_change(r, node, node->op, steps.tensors, 2, node->attributes,
                              node->attribute_count);
}

/* constants less y, or over y: what kernels read first is computed */
static muc_status split_constant(muc_rewrite *r, const muc_node *node, const char *text, bool *done)
{
    if (!muc_rewrite_is_constant(r, node->inputs[0]) || in(r, node, 0)->bytes <= sizeof(float) ||
        muc_rewrite_is_constant(r, node->inputs[1]))
        return MUC_OK;
    return split_always(r, node, text, done);
}

static muc_status split_truth(muc_rewrite *r, const muc_node *node, const char *text, bool *done)
{
    return in(r, node, 0)->dtype == MUC_BOOL ? split_always(r, node, text, done) : MUC_OK;
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

/* y constant and x: x's columns are rows of the step, which multiplies rows */
static muc_status split_columns(muc_rewrite *r, const muc_node *node, const char *text, bool *done)
{
    const uint32_t rank = in(r, node, 1)->rank;
    int64_t perm[MUC_GRAPH_MAX_RANK];
    const muc_attribute order = { .key = MUC_KEY_PERM, .value.integers = { perm, rank } };
    muc_steps steps;
    uint32_t constant;

    if (!muc_rewrite_is_constant(r, node->inputs[0]) || in(r, node, 0)->rank != 2 || rank < 2)
        return MUC_OK;
    *done = true;
    MUC_TRY(read_inputs(r, node, &steps));
    constant = steps.tensors[0];
    MUC_TRY(add_turned(r, node, rank, steps.tensors[1], &steps.tensors[0]));
    steps.tensors[1] = constant;
    MUC_TRY(muc_steps_add(r, node, text, &steps, &steps.tensors[0]));
    for (uint32_t i = 0; i < rank; i++)
        perm[i] = i + 2 < rank ? i : 2 * rank - 3 - i;
    return muc_rewrite_change(r, node, MUC_OP_TRANSPOSE, steps.tensors, 1, &order, 1);
}

static float factor_of(const muc_node *node, muc_attribute_key key)
{
    const float factor = (float)muc_node_real_or(node, key, 1);

    return factor == 1 ? (float)NAN : factor;
}

/* two computed matrices x and y, as matmul has them; z is the bias, ?a and ?b are factors but 1 */
static muc_status split_computed(muc_rewrite *r, const muc_node *node, const char *text, bool *done)
{
    const bool turned[] = { muc_node_integer_or(node, MUC_KEY_TRANSPOSE_A, 0) == 1,
                            muc_op_product(node->op)->kind == MUC_PRODUCT_ROWS ||
                                muc_node_integer_or(node, MUC_KEY_TRANSPOSE_B, 0) == 1 };
    muc_steps steps;

    if (muc_rewrite_is_constant(r, node->inputs[1]))
        return MUC_OK;
    *done = true;
    MUC_TRY(read_inputs(r, node, &steps));
    for (uint32_t i = 0; i < 2; i++)
        if (turned[i])
            MUC_TRY(add_turned(r, node, in(r, node, i)->rank, steps.tensors[i], &steps.tensors[i]));
    steps.numbers[0] = factor_of(node, MUC_KEY_ALPHA);
    steps.numbers[1] = factor_of(node, MUC_KEY_BETA);
    return muc_steps_change(r, node, text, &steps);
}

/* ---- rows ---- */

/* integers are along the last dimension */
static muc_status split_turned(muc_rewrite *r, const muc_node *node, const char *text, bool *done)
{
    const uint32_t rank = in(r, node, 0)->rank;
    const int64_t axis = muc_node_integer(node, MUC_KEY_AXIS);
    int64_t perm[MUC_GRAPH_MAX_RANK];
    const muc_attribute order = { .key = MUC_KEY_PERM, .value.integers = { perm, rank } };
    muc_attribute_list a;
    uint32_t x;

    (void)text;
    if (axis + 1 == rank || !muc_attribute_list_of(&a, node))
        return MUC_OK;
    *done = true;
    for (uint32_t i = 0; i < rank; i++)
        perm[i] = i == axis ? (int64_t)rank - 1 : i + 1 == rank ? axis : (int64_t)i;
    muc_attribute_list_set(&a, (muc_attribute){ .key = MUC_KEY_AXIS, .value.integer = rank - 1 });
    MUC_TRY(muc_rewrite_tensor(r, node->inputs[0], &x));
    MUC_TRY(muc_rewrite_add(r, MUC_OP_TRANSPOSE, node->name, &x, 1, &order, 1, NULL, &x));
    MUC_TRY(muc_rewrite_add(r, node->op, node->name, &x, 1, a.items, a.count, NULL, &x));
    return muc_rewrite_change(r, node, MUC_OP_TRANSPOSE, &x, 1, &order, 1);
}

/* x over its length, the first item if that is a sum of magnitudes; else, the second, it is x over
 * the root of its mean square, with gains y of 1 / sqrt(columns) */
static muc_status split_length(muc_rewrite *r, const muc_node *node, const char *text, bool *done)
{
    const muc_tensor *x = in(r, node, 0);
    int64_t axis = (int64_t)x->rank - 1;
    const muc_attribute along[] = { { .key = MUC_KEY_AXES, .value.integers = { &axis, 1 } },
                                    { .key = MUC_KEY_KEEP_DIMS, .value.integer = 1 },
                                    { .key = MUC_KEY_EPSILON, .value.real = 1e-30 } };
    muc_tensor like = { .dtype = MUC_F32, .rank = 1 };
    uint32_t columns;
    muc_status status;
    muc_steps steps;
    float *gains;

    if (muc_node_integer(node, MUC_KEY_AXIS) != axis ||
        !muc_rewrite_dim(&r->old, x, (uint32_t)axis, &columns) || columns == 0)
        return MUC_OK;
    *done = true;
    MUC_TRY(read_inputs(r, node, &steps));
    steps.attributes = along;
    steps.attribute_count = MUC_COUNT(along);
    if (muc_node_integer(node, MUC_KEY_P) == 1)
        return muc_steps_change(r, node, text, &steps);
    like.dims[0] = x->dims[axis];
    MUC_TRY(MUC_NEW_ARRAY(r->ctx, r->old.name, columns, &gains));
    for (uint32_t i = 0; i < columns; i++)
        gains[i] = (float)(1 / sqrt((double)columns));
    status = muc_rewrite_constant(r, node->name, &like, gains, columns * sizeof(*gains),
                                  &steps.tensors[1]);
    free(gains);
    MUC_TRY(status);
    return muc_steps_change(r, node, muc_steps_skip(text), &steps);
}

/* ---- reductions ---- */

/* the first item, with dimensions kept, is y, and in the shape of the output z of the second */
static muc_status split_above(muc_rewrite *r, const muc_node *node, const char *text, bool *done)
{
    const muc_tensor *sum = out(r, node);
    muc_attribute_list a;
    muc_steps steps;

    if (!muc_attribute_list_of(&a, node))
        return MUC_OK;
    *done = true;
    MUC_TRY(read_inputs(r, node, &steps));
    muc_attribute_list_set(&a, (muc_attribute){ .key = MUC_KEY_KEEP_DIMS, .value.integer = 1 });
    steps.attributes = a.items;
    steps.attribute_count = a.count;
    MUC_TRY(muc_steps_add(r, node, text, &steps, &steps.tensors[1]));
    MUC_TRY(muc_rewrite_add_view(r, node->name, steps.tensors[1], sum->dims, sum->rank,
                                 &steps.tensors[2]));
    steps.attributes = node->attributes;
    steps.attribute_count = node->attribute_count;
    return muc_steps_change(r, node, muc_steps_skip(text), &steps);
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

/* the first item, as an image of one row with pixels' channels in its columns, is y; the second, a
 * mean of windows of channels, is z of the third; ?a, ?b, ?c: alpha, bias, -beta */
static muc_status split_channels(muc_rewrite *r, const muc_node *node, const char *text, bool *done)
{
    const muc_tensor *x = in(r, node, 0);
    const int64_t window = muc_node_integer_or(node, MUC_KEY_WINDOW, 0);
    const int64_t kernel[] = { 1, window };
    const int64_t pads[] = { 0, (window - 1) / 2, 0, window / 2 };
    const muc_attribute pool[] = { { .key = MUC_KEY_KERNEL, .value.integers = { kernel, 2 } },
                                   { .key = MUC_KEY_PADS, .value.integers = { pads, 4 } },
                                   { .key = MUC_KEY_COUNT_INCLUDE_PAD, .value.integer = 1 },
                                   { .key = MUC_KEY_CHANNELS_LAST, .value.integer = 1 } };
    uint32_t pixels, channels, *y, *z;
    muc_expr rows[4];
    muc_steps steps;

    if (muc_node_integer_or(node, MUC_KEY_CHANNELS_LAST, 0) != 1 || window > MOST_WINDOW ||
        !fixed_size(r, x, 0, x->rank - 1, &pixels) ||
        !fixed_size(r, x, x->rank - 1, x->rank, &channels) || window / 2 >= channels)
        return MUC_OK;
    *done = true;
    for (uint32_t i = 0; i < 4; i++)
        rows[i] = muc_expr_const(r->graph->pool, i == 1 ? pixels : i == 2 ? channels : 1);
    MUC_TRY(read_inputs(r, node, &steps));
    y = &steps.tensors[1];
    z = &steps.tensors[2];
    MUC_TRY(muc_steps_add(r, node, text, &steps, y));
    MUC_TRY(muc_rewrite_add_view(r, node->name, *y, rows, 4, y));
    steps.attributes = pool;
    steps.attribute_count = MUC_COUNT(pool);
    text = muc_steps_skip(text);
    MUC_TRY(muc_steps_add(r, node, text, &steps, z));
    MUC_TRY(muc_rewrite_add_view(r, node->name, *z, x->dims, x->rank, z));
    steps.attribute_count = 0;
    steps.numbers[0] = (float)muc_node_real(node, MUC_KEY_ALPHA);
    steps.numbers[1] = (float)muc_node_real(node, MUC_KEY_BIAS);
    steps.numbers[2] = -(float)muc_node_real(node, MUC_KEY_BETA);
    return muc_steps_change(r, node, muc_steps_skip(text), &steps);
}

/* between centres of pixels as PyTorch has them: TFLite's where there is more than one */
static bool is_between_centres(const muc_node *node, uint32_t size)
{
    muc_word between = muc_node_word_or(node, MUC_KEY_COORDINATES, MUC_WORD_HALF_PIXEL);

    return between == MUC_WORD_HALF_PIXEL || (between == MUC_WORD_PYTORCH_HALF_PIXEL && size > 1);
}

/* a linear resize of one dimension is one of an image of one row, two neighbours' that of one of
 * them after the other's */
static muc_status split_lines(muc_rewrite *r, const muc_node *node, const char *text, bool *done)
{
    const muc_tensor *x = in(r, node, 0), *y = out(r, node);
    const muc_word coordinates = muc_node_word_or(node, MUC_KEY_COORDINATES, MUC_WORD_HALF_PIXEL);
    const uint32_t rank = x->rank;
    uint32_t first = rank, end = 0, size, before, after, id, unused;
    muc_expr lines[4], sizes[4], one = muc_expr_const(r->graph->pool, 1);
    muc_attribute how[] = { { .key = MUC_KEY_MODE, .value.integer = MUC_WORD_LINEAR },
                            { .key = MUC_KEY_SIZES, .value.exprs = { sizes, 4 } },
                            { .key = MUC_KEY_COORDINATES, .value.integer = coordinates } };

    (void)text;
    if (muc_node_word_or(node, MUC_KEY_MODE, MUC_WORD_NEAREST) != MUC_WORD_LINEAR ||
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
    MUC_TRY(muc_rewrite_add(r, node->op, node->name, &id, 1, how, 3, NULL, &id));
    return muc_rewrite_change_to_view(r, node, id);
}

/* ---- what SPLIT in graph/ops.def says ---- */

typedef struct split {
    /* writes the node as others and sets *done, or leaves it to the next one */
    muc_status (*rule)(muc_rewrite *r, const muc_node *node, const char *steps, bool *done);
    const char *steps;
} split;

static const split splits[MUC_OP_COUNT][MOST_SPLITS] = {
#define MUC_OP(id, name, least, most, least_out, most_out, rule, flags, facts, meaning) \
    [MUC_OP_##id] = { MUC_FACTS facts{ NULL, NULL } },
#define SPLIT(rule, steps) { split_##rule, steps },
#include "graph/ops.def"
};

static muc_status decompose(muc_rewrite *r, const char *keep)
{
    for (uint32_t n = 0; n < r->old.node_count; n++) {
        const muc_node *node = &r->old.nodes[n];
        bool done = !r->needed[n];

        for (const split *s = splits[node->op]; s->rule && !done; s++)
            if (out(r, node)->dtype == MUC_F32 && node->output_count == 1 &&
                !muc_int8_is_kept(r, node, keep))
                MUC_TRY(s->rule(r, node, s->steps, &done));
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

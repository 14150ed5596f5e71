/* fold_qdq.c - tensors get the quantization of the steps around them, then operators go between
 * them. */
#include "passes/integer/fold_qdq.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/scales.h"
#include "passes/integer/shift_unsigned.h"
#include "passes/rewrite.h"

enum { MOST_INPUTS = 64, MOST_SCALES = 65536 };

/* ---- steps with constant scales ---- */

typedef struct step {
    muc_quantization q;
    float *scales;
    int32_t *zeros;
} step;

static void free_step(step *s)
{
    free(s->scales);
    free(s->zeros);
}

static bool count_of(const muc_rewrite *r, const muc_tensor *t, uint32_t *count)
{
    *count = 1;
    return t->rank == 0 || (t->rank == 1 && muc_rewrite_dim(&r->old, t, 0, count));
}

/* scale and zero point, inputs 1 and 2, of a node, to be freed; *is: they are constants of f32, 1
 * or one each along axis */
static muc_status read_step(const muc_rewrite *r, const muc_node *node, step *s, bool *is)
{
    const muc_tensor *scale = muc_rewrite_old(r, node->inputs[1]), *zero = NULL;
    uint32_t count, zeros = muc_node_input(node, 2);

    memset(s, 0, sizeof(*s));
    *is = false;
    if (!muc_rewrite_is_constant(r, node->inputs[1]) || scale->dtype != MUC_F32 ||
        !count_of(r, scale, &count) || count == 0 || count > MOST_SCALES)
        return MUC_OK;
    if (zeros != MUC_NO_ID) {
        zero = muc_rewrite_old(r, zeros);
        if (!muc_rewrite_is_constant(r, zeros))
            return MUC_OK;
    }
    MUC_TRY(MUC_NEW_ARRAY(r->ctx, node->name, count, &s->scales));
    MUC_TRY(MUC_NEW_ARRAY(r->ctx, node->name, count, &s->zeros));
    memcpy(s->scales, scale->data, count * sizeof(*s->scales));
    for (uint32_t i = 0; i < count; i++) {
        size_t width = zero ? muc_dtype_get(zero->dtype)->block_bytes : 0;

        s->zeros[i] = zero ? (int32_t)muc_dtype_integer(zero->dtype, zero->data + i * width) : 0;
        if (!(isfinite(s->scales[i]) && s->scales[i] > 0))
            return MUC_OK;
    }
    s->q.count = count;
    s->q.axis = count > 1 ? (uint32_t)muc_node_integer_or(node, MUC_KEY_AXIS, 1) : 0;
    s->q.scales = s->scales;
    s->q.zero_points = s->zeros;
    *is = true;
    return MUC_OK;
}

/* Bytes without a sign are signed ones less 128, and so are their zero points: what they stand for
 * is the same, and int8 has the better kernels. */
static muc_dtype sign(muc_dtype dtype, step *s)
{
    if (dtype != MUC_U8)
        return dtype;
    for (uint32_t i = 0; i < s->q.count; i++)
        s->zeros[i] -= 128;
    return MUC_I8;
}

/* the node dequantizes its first input with these numbers */
static muc_status dequantizes(const muc_rewrite *r, const muc_node *node, const step *s, bool *out)
{
    step other;
    muc_status status;

    *out = false;
    if (node->op != MUC_OP_DEQUANTIZE_LINEAR)
        return MUC_OK;
    status = read_step(r, node, &other, out);
    *out = *out && muc_scale_is_same(&s->q, &other.q);
    free_step(&other);
    return status;
}

/* everybody who reads the tensor dequantizes it with these numbers */
static muc_status all_dequantize(const muc_rewrite *r, uint32_t tensor, const step *s, bool *all)
{
    *all = !r->is_output[tensor];
    for (uint32_t n = 0; n < r->old.node_count && *all; n++) {
        const muc_node *node = &r->old.nodes[n];

        for (uint32_t i = 0; r->needed[n] && i < node->input_count && *all; i++)
            if (node->inputs[i] == tensor && i == 0)
                MUC_TRY(dequantizes(r, node, s, all));
            else if (node->inputs[i] == tensor)
                *all = false;
    }
    return MUC_OK;
}

/* integers of an old tensor's type, with a sign */
static muc_status add_quantize(muc_rewrite *r, const char *name, uint32_t x, uint32_t old, step *s,
                               uint32_t *out)
{
    const muc_attribute to = { .key = MUC_KEY_TO,
                               .value.integer = sign(muc_rewrite_old(r, old)->dtype, s) };

    return muc_rewrite_add(r, MUC_OP_QUANTIZE, name, &x, 1, &to, 1, &s->q, out);
}

/* the real tensor was dequantized from one that carries quantization */
static bool is_settled(const muc_rewrite *r, uint32_t tensor)
{
    const muc_node *before = muc_rewrite_producer(r, tensor);

    return before && before->op == MUC_OP_DEQUANTIZE;
}

/* an output of the network stays what it is: of a tensor with quantization */
static muc_status settle_output(muc_rewrite *r, const muc_node *node, uint32_t x, step *s)
{
    uint32_t inputs[3] = { x, MUC_NO_ID, MUC_NO_ID };

    MUC_TRY(add_quantize(r, node->name, x, node->outputs[0], s, &x));
    MUC_TRY(muc_rewrite_add(r, MUC_OP_DEQUANTIZE, node->name, &x, 1, NULL, 0, NULL, &inputs[0]));
    for (uint32_t i = 1; i < node->input_count; i++)
        MUC_TRY(muc_rewrite_tensor(r, node->inputs[i], &inputs[i]));
    return muc_rewrite_change(r, node, node->op, inputs, node->input_count, node->attributes,
                              node->attribute_count);
}

/* an input of the network, dequantized: by way of a tensor with quantization */
static muc_status settle_input(muc_rewrite *r, const muc_node *node, step *s)
{
    uint32_t inputs[3] = { MUC_NO_ID, MUC_NO_ID, MUC_NO_ID }, x;

    for (uint32_t i = 0; i < node->input_count; i++)
        MUC_TRY(muc_rewrite_tensor(r, node->inputs[i], &inputs[i]));
    MUC_TRY(muc_rewrite_add(r, node->op, node->name, inputs, node->input_count, node->attributes,
                            node->attribute_count, NULL, &x));
    MUC_TRY(add_quantize(r, node->name, x, node->inputs[0], s, &x));
    return muc_rewrite_change(r, node, MUC_OP_DEQUANTIZE, &x, 1, NULL, 0);
}

static muc_status quantize(muc_rewrite *r, const muc_node *node, bool *done)
{
    const muc_tensor *out = muc_rewrite_old(r, node->outputs[0]);
    muc_status status;
    step s;
    bool is_output = r->is_output[node->outputs[0]], folds;
    uint32_t x;

    if (node->op != MUC_OP_QUANTIZE_LINEAR ||
        muc_rewrite_old(r, node->inputs[0])->dtype != MUC_F32 || out->dtype == MUC_U16)
        return MUC_OK;
    status = read_step(r, node, &s, &folds);
    folds = folds && s.q.count == 1;
    if (folds && is_output)
        folds = !is_settled(r, node->inputs[0]);
    else if (folds)
        status = all_dequantize(r, node->outputs[0], &s, &folds);
    if (status == MUC_OK && folds) {
        *done = true;
        status = muc_rewrite_tensor(r, node->inputs[0], &x);
        if (status == MUC_OK && is_output)
            status = settle_output(r, node, x, &s);
        else if (status == MUC_OK)
            status = muc_rewrite_add_named(
                r, MUC_OP_QUANTIZE, node->name, &x, 1,
                &(muc_attribute){ .key = MUC_KEY_TO, .value.integer = sign(out->dtype, &s) }, 1,
                &s.q, &r->map[node->outputs[0]]);
    }
    free_step(&s);
    return status;
}

/* the constant with its step; bytes get a sign */
static muc_status add_constant(muc_rewrite *r, const muc_tensor *x, const step *s, uint32_t *out)
{
    muc_tensor like = *x;

    like.quantization = &s->q;
    return x->dtype == MUC_U8 ? muc_shift_constant(r, &like, false, out)
                              : muc_rewrite_constant(r, x->name, &like, x->data, x->bytes, out);
}

/* what settle_input made */
static bool is_quantized_again(const muc_rewrite *r, uint32_t tensor)
{
    const muc_node *reader = muc_rewrite_only_reader(r, tensor);

    return reader && reader->op == MUC_OP_QUANTIZE;
}

/* of what quantize made, or of a constant */
static muc_status dequantize(muc_rewrite *r, const muc_node *node, bool *done)
{
    const muc_tensor *x;
    muc_status status;
    step s;
    bool is;
    uint32_t id;

    if (node->op != MUC_OP_DEQUANTIZE_LINEAR)
        return MUC_OK;
    x = muc_rewrite_old(r, node->inputs[0]);
    status = read_step(r, node, &s, &is);
    if (x->kind == MUC_TENSOR_CONST && x->data && is && (s.q.count == 1 || s.q.axis < x->rank)) {
        *done = true;
        status = add_constant(r, x, &s, &id);
        if (status == MUC_OK)
            status = muc_rewrite_change(r, node, MUC_OP_DEQUANTIZE, &id, 1, NULL, 0);
    } else if (x->kind == MUC_TENSOR_INPUT && muc_dtype_get(x->dtype)->block_bytes == 1 && is &&
               s.q.count == 1 && !is_quantized_again(r, node->outputs[0])) {
        *done = true;
        status = settle_input(r, node, &s);
    } else if (status == MUC_OK && x->kind == MUC_TENSOR_ACTIVATION &&
               r->map[node->inputs[0]] != MUC_NO_ID &&
               r->graph->tensors[r->map[node->inputs[0]]].quantization) {
        *done = true;
        id = r->map[node->inputs[0]];
        status = muc_rewrite_change(r, node, MUC_OP_DEQUANTIZE, &id, 1, NULL, 0);
    }
    free_step(&s);
    return status;
}

/* ---- operators between ---- */

typedef enum kind { NONE, ANY_SCALE, ONE_SCALE, OUTPUT_SCALE, SHARES, WEIGHTED } kind;

static kind kind_of(muc_op op)
{
    static const struct {
        muc_op op;
        kind kind;
    } rows[] = {
#define MUC_OP(id, name, least, most, least_out, most_out, rule, flags, facts, meaning) \
    { .op = MUC_OP_##id, MUC_FACTS facts },
#define QDQ(scales) .kind = scales,
#include "graph/ops.def"
    };

    return rows[op].kind;
}

/* the bias as integers of the sums' scale */
static muc_status add_bias(muc_rewrite *r, const muc_node *op, const muc_tensor *x,
                           const muc_tensor *w, uint32_t *out)
{
    uint32_t id = op->inputs[2], integers = muc_graph_integers_of(&r->old, id), count;
    const muc_tensor *b = muc_rewrite_old(r, id);
    muc_tensor like;
    int32_t *stored;
    muc_status status;

    if (integers != MUC_NO_ID) {
        like = *muc_rewrite_old(r, integers);
        like.quantization = NULL;
        return muc_rewrite_constant(r, like.name, &like, like.data, like.bytes, out);
    }
    like = *b;
    like.dtype = MUC_I32;
    count = (uint32_t)(b->bytes / sizeof(float));
    stored = malloc((size_t)b->bytes + 1);
    if (!stored)
        return muc_fail_nomem(r->ctx, r->old.name, (size_t)b->bytes);
    for (uint32_t i = 0; i < count; i++) {
        double scale = (double)muc_scale_of(x) *
                       (double)w->quantization->scales[w->quantization->count > 1 ? i : 0];
        float real;

        memcpy(&real, b->data + i * sizeof(float), sizeof(float));
        stored[i] = (int32_t)fmax(-2147483648.0, fmin(2147483647.0, round((double)real / scale)));
    }
    status = muc_rewrite_constant(r, b->name, &like, stored, b->bytes, out);
    free(stored);
    return status;
}

/* weights of 8 bits with a scale for all or one an output, and a bias that can be integers */
static bool has_integer_weights(const muc_rewrite *r, const muc_node *op, uint32_t weighted)
{
    bool spreads = muc_op_real_product(op->op) == MUC_PRODUCT_SPREAD;
    uint32_t w = muc_graph_integers_of(&r->old, weighted), bias = muc_node_input(op, 2);
    const muc_tensor *weights, *b;
    uint32_t integers;

    if (w == MUC_NO_ID || !muc_rewrite_is_constant(r, w))
        return false;
    weights = muc_rewrite_old(r, w);
    if (muc_dtype_get(weights->dtype)->block_bytes != 1 ||
        (weights->quantization->count > 1 && weights->quantization->axis != spreads) ||
        (spreads && muc_node_integer_or(op, MUC_KEY_GROUPS, 1) != 1))
        return false;
    if (bias == MUC_NO_ID)
        return true;
    integers = muc_graph_integers_of(&r->old, bias);
    b = muc_rewrite_old(r, bias);
    if (integers != MUC_NO_ID)
        return muc_rewrite_is_constant(r, integers) &&
               muc_rewrite_old(r, integers)->dtype == MUC_I32;
    return muc_rewrite_is_constant(r, bias) && b->dtype == MUC_F32;
}

/* parts of one along the last dimension, in the scale that their kernel has */
static bool has_shares(const muc_node *op, const muc_tensor *out)
{
    return muc_node_integer(op, MUC_KEY_AXIS) + 1 == (int64_t)out->rank && out->dtype == MUC_I8 &&
           muc_scale_of(out) == 1 / 256.0f && muc_zero_of(out) == -128;
}

static bool is_of_one_scale(const muc_rewrite *r, uint32_t tensor, muc_dtype dtype)
{
    const muc_tensor *t = muc_rewrite_old(r, tensor);

    return t->dtype == dtype && t->quantization->count == 1;
}

static bool can_fold(const muc_rewrite *r, const muc_node *op, const muc_node *quantize)
{
    const muc_tensor *out = muc_rewrite_old(r, quantize->outputs[0]);
    kind k = op ? kind_of(op->op) : NONE;
    uint32_t activations = k == WEIGHTED ? 1 : op ? op->input_count : 0;

    if (k == NONE ||
        (muc_op_has(op->op, MUC_OP_BY_TABLE) && muc_dtype_get(out->dtype)->block_bytes != 1) ||
        (k == SHARES && !has_shares(op, out)) || op->output_count != 1 ||
        op->input_count > MOST_INPUTS || !muc_rewrite_only_reader(r, quantize->inputs[0]))
        return false;
    for (uint32_t i = 0; i < activations; i++) {
        uint32_t id = muc_graph_integers_of(&r->old, op->inputs[i]);

        if (id == MUC_NO_ID || !is_of_one_scale(r, id, out->dtype) ||
            (k == ONE_SCALE &&
             !muc_scale_is_same(muc_rewrite_old(r, id)->quantization, out->quantization)))
            return false;
    }
    return k != WEIGHTED || has_integer_weights(r, op, op->inputs[1]);
}

/* the tensor in the scale of a quantize's output */
static muc_status change_scale(muc_rewrite *r, const muc_node *quantize, uint32_t *tensor)
{
    const muc_tensor *out = muc_rewrite_old(r, quantize->outputs[0]);

    if (muc_scale_is_same(r->graph->tensors[*tensor].quantization, out->quantization))
        return MUC_OK;
    return muc_rewrite_add(r, MUC_OP_QUANTIZE, quantize->name, tensor, 1, quantize->attributes,
                           quantize->attribute_count, out->quantization, tensor);
}

/* what only moves dequantized numbers moves their integers, and is dequantized behind that */
static muc_status move_integers(muc_rewrite *r, const muc_node *node, bool *done)
{
    uint32_t x =
        node->input_count == 1 ? muc_graph_integers_of(&r->old, node->inputs[0]) : MUC_NO_ID;
    uint32_t flags = muc_op_get(node->op)->flags;
    const muc_node *reader = muc_rewrite_only_reader(r, node->outputs[0]);

    if (x == MUC_NO_ID || muc_rewrite_old(r, x)->quantization->count > 1 ||
        muc_rewrite_is_constant(r, x) || !(flags & MUC_OP_MOVES) || flags & MUC_OP_STATEFUL ||
        node->output_count != 1 || (reader && reader->op == MUC_OP_QUANTIZE))
        return MUC_OK;
    *done = true;
    MUC_TRY(muc_rewrite_tensor(r, x, &x));
    MUC_TRY(muc_rewrite_add(r, node->op, node->name, &x, 1, node->attributes, node->attribute_count,
                            r->graph->tensors[x].quantization, &x));
    return muc_rewrite_change(r, node, MUC_OP_DEQUANTIZE, &x, 1, NULL, 0);
}

static muc_status fold_between(muc_rewrite *r, const muc_node *node, bool *done)
{
    const muc_node *op =
        node->op == MUC_OP_QUANTIZE ? muc_rewrite_producer(r, node->inputs[0]) : NULL;
    uint32_t inputs[MOST_INPUTS];

    if (!can_fold(r, op, node))
        return MUC_OK;
    *done = true;
    for (uint32_t i = 0; i < op->input_count; i++) {
        bool bias = kind_of(op->op) == WEIGHTED && i == 2;

        inputs[i] = MUC_NO_ID;
        if (bias && op->inputs[i] != MUC_NO_ID)
            MUC_TRY(add_bias(
                r, op, muc_rewrite_old(r, muc_graph_integers_of(&r->old, op->inputs[0])),
                muc_rewrite_old(r, muc_graph_integers_of(&r->old, op->inputs[1])), &inputs[i]));
        else if (!bias)
            MUC_TRY(
                muc_rewrite_tensor(r, muc_graph_integers_of(&r->old, op->inputs[i]), &inputs[i]));
        if (kind_of(op->op) == OUTPUT_SCALE)
            MUC_TRY(change_scale(r, node, &inputs[i]));
    }
    return muc_rewrite_change(r, node, op->op, inputs, op->input_count, op->attributes,
                              op->attribute_count);
}

/* A bound of a clip as an integer of a quantization, which is monotonic; absent ones stay so. */
static muc_status quantize_bound(muc_rewrite *r, uint32_t bound, const muc_tensor *out,
                                 uint32_t *id)
{
    muc_tensor like = { .dtype = out->dtype, .quantization = out->quantization };
    uint8_t byte;
    float real;

    *id = MUC_NO_ID;
    if (bound == MUC_NO_ID)
        return MUC_OK;
    memcpy(&real, muc_rewrite_old(r, bound)->data, sizeof(real));
    if (real != real) /* bounds nothing */
        return MUC_OK;
    byte = (uint8_t)muc_scale_quantize(out, real);
    return muc_rewrite_constant(r, "bound", &like, &byte, 1, id);
}

/* bounds are constants of one f32, or absent */
static bool has_constant_bounds(const muc_rewrite *r, const muc_node *clip)
{
    for (uint32_t i = 1; i < 3; i++) {
        uint32_t id = muc_node_input(clip, i);

        if (id != MUC_NO_ID &&
            (!muc_rewrite_is_constant(r, id) || muc_rewrite_old(r, id)->dtype != MUC_F32 ||
             muc_rewrite_old(r, id)->bytes != sizeof(float)))
            return false;
    }
    return true;
}

/* quantize(relu(x)) or of a clip, of an x that could be integers: quantize x, and bound those; a
 * clip of what was integers brings them to its scale itself, and a relu is one operator of them
 * (fold_between) */
static muc_status quantize_before_relu(muc_rewrite *r, const muc_node *node, bool *done)
{
    const muc_node *relu =
        node->op == MUC_OP_QUANTIZE ? muc_rewrite_producer(r, node->inputs[0]) : NULL;
    const muc_tensor *out = muc_rewrite_old(r, node->outputs[0]);
    const muc_node *op;
    muc_node early = *node;
    uint32_t x, inputs[3];
    bool at_zero, of_integers;

    if (!relu || !muc_rewrite_only_reader(r, node->inputs[0]) ||
        !muc_op_bounds(relu->op, &at_zero) ||
        (!at_zero &&
         (!has_constant_bounds(r, relu) || muc_dtype_get(out->dtype)->block_bytes != 1)))
        return MUC_OK;
    op = muc_rewrite_producer(r, relu->inputs[0]);
    early.inputs = relu->inputs;
    of_integers = op && op->op == MUC_OP_DEQUANTIZE;
    if (of_integers ? at_zero || !is_of_one_scale(r, op->inputs[0], out->dtype)
                    : !can_fold(r, op, &early))
        return MUC_OK;
    *done = true;
    MUC_TRY(muc_rewrite_tensor(r, of_integers ? op->inputs[0] : relu->inputs[0], &x));
    if (!of_integers)
        MUC_TRY(muc_rewrite_add(r, MUC_OP_QUANTIZE, relu->name, &x, 1, node->attributes,
                                node->attribute_count,
                                muc_rewrite_old(r, node->outputs[0])->quantization, &x));
    inputs[0] = x;
    for (uint32_t i = 1; i < 3; i++)
        MUC_TRY(quantize_bound(r, muc_node_input(relu, i), out, &inputs[i]));
    return muc_rewrite_change(r, node, relu->op, inputs, at_zero ? 1 : 3, NULL, 0);
}

/* constant weights [in, out] of bytes with a scale, or one per column */
static bool has_columns(const muc_rewrite *r, uint32_t weights)
{
    uint32_t id = muc_graph_integers_of(&r->old, weights);
    const muc_tensor *w = id == MUC_NO_ID ? NULL : muc_rewrite_old(r, id);

    return w && muc_rewrite_is_constant(r, id) && w->rank == 2 &&
           muc_dtype_get(w->dtype)->block_bytes == 1 &&
           (w->quantization->count == 1 || w->quantization->axis == 1);
}

/* the matrix of a product, before a transpose, and whether its rows are the outputs' */
static uint32_t matrix_of(const muc_rewrite *r, const muc_node *node, bool *rows)
{
    const muc_node *turn = muc_rewrite_producer(r, node->inputs[1]);

    *rows = muc_node_integer_or(node, MUC_KEY_TRANSPOSE_B, 0);
    if (!turn || turn->op != MUC_OP_TRANSPOSE || muc_rewrite_old(r, turn->outputs[0])->rank != 2 ||
        muc_node_integers(turn, MUC_KEY_PERM)[0] == 0)
        return node->inputs[1];
    *rows = !*rows;
    return turn->inputs[0];
}

/* products with constant matrices are linear */
static muc_status product_is_linear(muc_rewrite *r, const muc_node *node, bool *done)
{
    uint32_t inputs[3], matrix;
    bool rows;

    if (muc_op_real_product(node->op) != MUC_PRODUCT_COLUMNS ||
        muc_rewrite_old(r, node->inputs[0])->rank < 2)
        return MUC_OK;
    matrix = matrix_of(r, node, &rows);
    if (!(rows ? has_integer_weights(r, node, matrix) : has_columns(r, matrix)))
        return MUC_OK;
    if (muc_node_integer_or(node, MUC_KEY_TRANSPOSE_A, 0) ||
        muc_node_real_or(node, MUC_KEY_ALPHA, 1) != 1 ||
        muc_node_real_or(node, MUC_KEY_BETA, 1) != 1 ||
        (muc_node_input(node, 2) != MUC_NO_ID && muc_rewrite_old(r, node->inputs[2])->rank != 1))
        return MUC_OK;
    *done = true;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (i != 1 || rows)
            MUC_TRY(muc_rewrite_tensor(r, i == 1 ? matrix : node->inputs[i], &inputs[i]));
    if (!rows) {
        const muc_tensor *w = muc_rewrite_old(r, muc_graph_integers_of(&r->old, matrix));

        MUC_TRY(muc_rewrite_transpose_bytes(r, w, &inputs[1]));
        MUC_TRY(muc_rewrite_add(r, MUC_OP_DEQUANTIZE, w->name, &inputs[1], 1, NULL, 0, NULL,
                                &inputs[1]));
    }
    return muc_rewrite_change(r, node, MUC_OP_LINEAR, inputs, node->input_count, NULL, 0);
}

/* a constant of one number an output that is added to a linear is its bias */
static muc_status sum_is_bias(muc_rewrite *r, const muc_node *node, bool *done)
{
    for (uint32_t side = 0; node->op == MUC_OP_ADD && side < 2 && !*done; side++) {
        const muc_node *linear = muc_rewrite_producer(r, node->inputs[side]);
        const muc_tensor *b = muc_rewrite_old(r, node->inputs[1 - side]);
        uint32_t inputs[3];

        if (!linear || linear->op != MUC_OP_LINEAR || muc_node_input(linear, 2) != MUC_NO_ID ||
            !muc_rewrite_only_reader(r, node->inputs[side]) ||
            !has_integer_weights(r, linear, linear->inputs[1]) ||
            !muc_rewrite_is_constant(r, node->inputs[1 - side]) || b->rank != 1 ||
            b->dims[0] != muc_rewrite_old(r, linear->inputs[1])->dims[0])
            continue;
        *done = true;
        for (uint32_t i = 0; i < 2; i++)
            MUC_TRY(muc_rewrite_tensor(r, linear->inputs[i], &inputs[i]));
        MUC_TRY(muc_rewrite_tensor(r, node->inputs[1 - side], &inputs[2]));
        MUC_TRY(muc_rewrite_change(r, node, MUC_OP_LINEAR, inputs, 3, NULL, 0));
    }
    return MUC_OK;
}

muc_status muc_fold_quantization(muc_context *ctx, muc_graph *graph)
{
    static muc_rewrite_rule *const tensors[] = { quantize, dequantize };
    static muc_rewrite_rule *const products[] = { product_is_linear, sum_is_bias };
    static muc_rewrite_rule *const operators[] = { quantize_before_relu, fold_between,
                                                   move_integers };

    MUC_TRY(muc_rewrite_with(ctx, graph, tensors, MUC_COUNT(tensors), NULL));
    MUC_TRY(muc_rewrite_with(ctx, graph, products, MUC_COUNT(products), NULL));
    return muc_rewrite_with(ctx, graph, operators, MUC_COUNT(operators), NULL);
}

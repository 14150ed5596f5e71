/* qdq.c - see qdq.h: first tensors get their quantization, then operators go between them. */
#include "passes/qdq.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* scale and zero point, inputs 1 and 2, of a node; false if they are no constants of f32, 1 or one
 * each along axis. To be freed. */
static bool read_step(const muc_rewrite *r, const muc_node *node, step *s)
{
    const muc_tensor *scale = muc_rewrite_old(r, node->inputs[1]), *zero = NULL;
    uint32_t count, zeros = muc_node_input(node, 2);

    memset(s, 0, sizeof(*s));
    if (!muc_rewrite_is_constant(r, node->inputs[1]) || scale->dtype != MUC_F32 ||
        !count_of(r, scale, &count) || count == 0 || count > MOST_SCALES)
        return false;
    if (zeros != MUC_NO_ID) {
        zero = muc_rewrite_old(r, zeros);
        if (!muc_rewrite_is_constant(r, zeros))
            return false;
    }
    s->scales = malloc(count * sizeof(*s->scales));
    s->zeros = malloc(count * sizeof(*s->zeros));
    if (!s->scales || !s->zeros)
        return false;
    memcpy(s->scales, scale->data, count * sizeof(*s->scales));
    for (uint32_t i = 0; i < count; i++) {
        size_t width = zero ? muc_dtype_get(zero->dtype)->block_bytes : 0;

        s->zeros[i] = zero ? (int32_t)muc_dtype_integer(zero->dtype, zero->data + i * width) : 0;
        if (!(isfinite(s->scales[i]) && s->scales[i] > 0))
            return false;
    }
    s->q.count = count;
    s->q.axis = count > 1 ? (uint32_t)muc_node_integer_or(node, MUC_KEY_AXIS, 1) : 0;
    s->q.scales = s->scales;
    s->q.zero_points = s->zeros;
    return true;
}

static bool same_step(const step *a, const step *b)
{
    return a->q.count == 1 && b->q.count == 1 && a->scales[0] == b->scales[0] &&
           a->zeros[0] == b->zeros[0];
}

/* everybody who reads the tensor dequantizes it with these numbers */
static bool all_dequantize(const muc_rewrite *r, uint32_t tensor, const step *s)
{
    bool all = !r->is_output[tensor];

    for (uint32_t n = 0; n < r->old.node_count && all; n++) {
        const muc_node *node = &r->old.nodes[n];

        for (uint32_t i = 0; r->needed[n] && i < node->input_count && all; i++) {
            step other;

            if (node->inputs[i] != tensor)
                continue;
            all = i == 0 && node->op == MUC_OP_DEQUANTIZE_LINEAR && read_step(r, node, &other);
            if (i == 0 && node->op == MUC_OP_DEQUANTIZE_LINEAR) {
                all = all && same_step(s, &other);
                free_step(&other);
            }
        }
    }
    return all;
}

static muc_status quantize(muc_rewrite *r, const muc_node *node, bool *done)
{
    const char *name = node->name;
    const muc_tensor *out = muc_rewrite_old(r, node->outputs[0]);
    muc_attribute to = { .key = MUC_KEY_TO, .value.integer = out->dtype };
    const muc_quantization *q;
    muc_status status = MUC_OK;
    step s = { .scales = NULL };
    uint32_t x;

    if (node->op != MUC_OP_QUANTIZE_LINEAR ||
        muc_rewrite_old(r, node->inputs[0])->dtype != MUC_F32 || out->dtype == MUC_U16)
        return MUC_OK;
    if (read_step(r, node, &s) && s.q.count == 1 && all_dequantize(r, node->outputs[0], &s)) {
        muc_new_node added = { .op = MUC_OP_QUANTIZE,
                               .name = name,
                               .input_count = 1,
                               .inputs = &x,
                               .attribute_count = 1,
                               .attributes = &to,
                               .output_count = 1,
                               .quantization = &q };

        *done = true;
        q = &s.q;
        status = muc_rewrite_tensor(r, node->inputs[0], &x);
        if (status == MUC_OK)
            status = muc_graph_add(r->ctx, r->graph, &added, &r->map[node->outputs[0]]);
    }
    free_step(&s);
    return status;
}

/* of what quantize made, or of a constant */
static muc_status dequantize(muc_rewrite *r, const muc_node *node, bool *done)
{
    const muc_tensor *x;
    muc_status status = MUC_OK;
    step s = { .scales = NULL };
    uint32_t id;

    if (node->op != MUC_OP_DEQUANTIZE_LINEAR)
        return MUC_OK;
    x = muc_rewrite_old(r, node->inputs[0]);
    if (x->kind == MUC_TENSOR_CONST && x->data && read_step(r, node, &s) &&
        (s.q.count == 1 || s.q.axis < x->rank)) {
        muc_tensor like = *x;

        like.quantization = &s.q;
        *done = true;
        status = muc_rewrite_constant(r, x->name, &like, x->data, x->bytes, &id);
        if (status == MUC_OK)
            status = muc_rewrite_change(r, node, MUC_OP_DEQUANTIZE, &id, 1, NULL, 0);
    } else if (x->kind == MUC_TENSOR_ACTIVATION && r->map[node->inputs[0]] != MUC_NO_ID &&
               r->graph->tensors[r->map[node->inputs[0]]].quantization) {
        *done = true;
        id = r->map[node->inputs[0]];
        status = muc_rewrite_change(r, node, MUC_OP_DEQUANTIZE, &id, 1, NULL, 0);
    }
    free_step(&s);
    return status;
}

/* ---- operators between ---- */

/* the quantized tensor that an old real one was dequantized from, or MUC_NO_ID */
static uint32_t integers_of(const muc_rewrite *r, uint32_t tensor)
{
    const muc_node *node = tensor == MUC_NO_ID ? NULL : muc_rewrite_producer(r, tensor);

    return node && node->op == MUC_OP_DEQUANTIZE ? node->inputs[0] : MUC_NO_ID;
}

static bool same_scale(const muc_quantization *a, const muc_quantization *b)
{
    return a && b && a->count == 1 && b->count == 1 && a->scales[0] == b->scales[0] &&
           a->zero_points[0] == b->zero_points[0];
}

typedef enum kind { NONE, ANY_SCALE, ONE_SCALE, WEIGHTED } kind;

static kind kind_of(muc_op op)
{
    switch ((unsigned)op) {
    case MUC_OP_CONV:
    case MUC_OP_LINEAR:
        return WEIGHTED;
    case MUC_OP_ADD:
    case MUC_OP_SUB:
    case MUC_OP_MUL:
    case MUC_OP_MATMUL:
    case MUC_OP_REDUCE_MEAN:
    case MUC_OP_RELU:
    case MUC_OP_LEAKY_RELU:
    case MUC_OP_SIGMOID:
    case MUC_OP_TANH:
    case MUC_OP_GELU:
    case MUC_OP_SILU:
    case MUC_OP_HARD_SIGMOID:
    case MUC_OP_HARD_SWISH:
        return ANY_SCALE;
    case MUC_OP_MAX_POOL:
    case MUC_OP_AVERAGE_POOL:
    case MUC_OP_RESHAPE:
    case MUC_OP_TRANSPOSE:
    case MUC_OP_CONCAT:
    case MUC_OP_SLICE:
        return ONE_SCALE;
    default:
        return NONE;
    }
}

/* the bias as integers of the sums' scale */
static muc_status add_bias(muc_rewrite *r, const muc_node *op, const muc_tensor *x,
                           const muc_tensor *w, uint32_t *out)
{
    uint32_t id = op->inputs[2], integers = integers_of(r, id), count;
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
        double scale = (double)x->quantization->scales[0] *
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
static bool has_integer_weights(const muc_rewrite *r, const muc_node *op)
{
    uint32_t w = integers_of(r, op->inputs[1]), bias = muc_node_input(op, 2);
    const muc_tensor *weights, *b;
    uint32_t integers;

    if (w == MUC_NO_ID || !muc_rewrite_is_constant(r, w))
        return false;
    weights = muc_rewrite_old(r, w);
    if (muc_dtype_get(weights->dtype)->block_bytes != 1 ||
        (weights->quantization->count > 1 && weights->quantization->axis != 0))
        return false;
    if (bias == MUC_NO_ID)
        return true;
    integers = integers_of(r, bias);
    b = muc_rewrite_old(r, bias);
    if (integers != MUC_NO_ID)
        return muc_rewrite_is_constant(r, integers) &&
               muc_rewrite_old(r, integers)->dtype == MUC_I32;
    return muc_rewrite_is_constant(r, bias) && b->dtype == MUC_F32;
}

static bool can_fold(const muc_rewrite *r, const muc_node *op, const muc_node *quantize)
{
    const muc_tensor *out = muc_rewrite_old(r, quantize->outputs[0]);
    kind k = op ? kind_of(op->op) : NONE;
    uint32_t activations = k == WEIGHTED ? 1 : op ? op->input_count : 0;

    if (k == NONE || op->output_count != 1 || op->input_count > MOST_INPUTS ||
        !muc_rewrite_only_reader(r, quantize->inputs[0]))
        return false;
    for (uint32_t i = 0; i < activations; i++) {
        uint32_t id = integers_of(r, op->inputs[i]);
        const muc_tensor *t;

        if (id == MUC_NO_ID)
            return false;
        t = muc_rewrite_old(r, id);
        if (t->dtype != out->dtype || t->quantization->count > 1 ||
            (k == ONE_SCALE && !same_scale(t->quantization, out->quantization)))
            return false;
    }
    return k != WEIGHTED || has_integer_weights(r, op);
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
            MUC_TRY(add_bias(r, op, muc_rewrite_old(r, integers_of(r, op->inputs[0])),
                             muc_rewrite_old(r, integers_of(r, op->inputs[1])), &inputs[i]));
        else if (!bias)
            MUC_TRY(muc_rewrite_tensor(r, integers_of(r, op->inputs[i]), &inputs[i]));
    }
    return muc_rewrite_change(r, node, op->op, inputs, op->input_count, op->attributes,
                              op->attribute_count);
}

/* quantize(relu(x)) of an x that could be integers: quantize x, and bound those */
static muc_status quantize_before_relu(muc_rewrite *r, const muc_node *node, bool *done)
{
    const muc_node *relu =
        node->op == MUC_OP_QUANTIZE ? muc_rewrite_producer(r, node->inputs[0]) : NULL;
    const muc_node *op;
    muc_node early = *node;
    uint32_t x;

    if (!relu || relu->op != MUC_OP_RELU || !muc_rewrite_only_reader(r, node->inputs[0]))
        return MUC_OK;
    op = muc_rewrite_producer(r, relu->inputs[0]);
    early.inputs = relu->inputs;
    if (!op || op->op == MUC_OP_DEQUANTIZE || !can_fold(r, op, &early))
        return MUC_OK;
    *done = true;
    MUC_TRY(muc_rewrite_tensor(r, relu->inputs[0], &x));
    MUC_TRY(muc_rewrite_add(r, MUC_OP_QUANTIZE, relu->name, &x, 1, node->attributes,
                            node->attribute_count,
                            muc_rewrite_old(r, node->outputs[0])->quantization, &x));
    return muc_rewrite_change(r, node, MUC_OP_RELU, &x, 1, NULL, 0);
}

/* gemm with weights [out, in] is linear */
static muc_status gemm_is_linear(muc_rewrite *r, const muc_node *node, bool *done)
{
    uint32_t inputs[3];

    if (node->op != MUC_OP_GEMM || muc_node_integer_or(node, MUC_KEY_TRANSPOSE_A, 0) ||
        !muc_node_integer_or(node, MUC_KEY_TRANSPOSE_B, 0) ||
        muc_node_real_or(node, MUC_KEY_ALPHA, 1) != 1 ||
        muc_node_real_or(node, MUC_KEY_BETA, 1) != 1 || !has_integer_weights(r, node) ||
        (muc_node_input(node, 2) != MUC_NO_ID && muc_rewrite_old(r, node->inputs[2])->rank != 1))
        return MUC_OK;
    *done = true;
    for (uint32_t i = 0; i < node->input_count; i++)
        MUC_TRY(muc_rewrite_tensor(r, node->inputs[i], &inputs[i]));
    return muc_rewrite_change(r, node, MUC_OP_LINEAR, inputs, node->input_count, NULL, 0);
}

muc_status muc_fold_quantization(muc_context *ctx, muc_graph *graph)
{
    static muc_rewrite_rule *const tensors[] = { quantize, dequantize };
    static muc_rewrite_rule *const operators[] = { gemm_is_linear, quantize_before_relu,
                                                   fold_between };

    MUC_TRY(muc_rewrite_with(ctx, graph, tensors, MUC_COUNT(tensors), NULL));
    return muc_rewrite_with(ctx, graph, operators, MUC_COUNT(operators), NULL);
}

/* llama.c - one decoder layer, written as the formula it is, and the model around it. */
#include "models/llama.h"

#include <math.h>
#include <string.h>

#include "formats/format.h"

enum { DEFAULT_MAX_TOKENS = 64, MAX_TABLE = 1 << 27 };

typedef struct builder {
    muc_context *ctx;
    const muc_checkpoint *checkpoint;
    const muc_model_config *config;
    muc_model_config sizes; /* of the layer's nodes */
    bool level;             /* layers differ and must not */
    bool shapes;            /* no data */
    muc_graph *graph;
    uint32_t context;
    uint32_t layer; /* whose weights */
    uint32_t place; /* of the layer among all that are run */
    muc_expr pos, m;
    uint32_t cosines[2], sines[2]; /* tensors, of global and of local angles */
} builder;

static muc_layer_view view_of(const builder *b)
{
    const muc_layer_view everything = { 0 };

    return b->config->layer_views ? b->config->layer_views[b->layer] : everything;
}

static muc_status name_of(builder *b, const char *stage, const char **out)
{
    return muc_arena_format(b->ctx, &b->graph->arena, out, "layers.%u.%s", b->place, stage);
}

/* A tensor of the greatest layer's size, zeros where the layer has nothing. What is added
 * contributes nothing: its columns of o and down are zeros. New heads come after the old, so groups
 * of queries must be as large as the greatest layer's, unless there is one head of keys. */
static muc_status pad(builder *b, const muc_tensor_view *view, unsigned row, muc_tensor *tensor,
                      const float **scales)
{
    const muc_model_config one = muc_config_of_layer(b->config, b->layer);
    const muc_llama_tensor wanted = muc_llama_tensor_of(b->config, row);
    const muc_dtype_info *type = muc_dtype_get(view->dtype);
    uint64_t rows = wanted.dims[0], columns = wanted.dims[1] ? wanted.dims[1] : 1;
    uint64_t has = view->rank == 2 ? view->dims[1] : 1, size = type->block_bytes;
    uint8_t *data;
    float *all;

    if (view->dims[0] == rows && has == columns)
        return MUC_OK;
    if (type->block_elements != 1 ||
        (b->config->kv_heads > 1 &&
         one.heads / one.kv_heads != b->config->heads / b->config->kv_heads))
        return muc_fail(b->ctx, MUC_UNSUPPORTED, view->file, view->offset,
                        "tensor '%s' of type %s, with %u heads of which %u have keys, cannot be "
                        "filled up with zeros to what other layers have",
                        view->name, type->name, one.heads, one.kv_heads);
    tensor->bytes = rows * columns * size;
    for (uint32_t i = 0; i < view->rank; i++)
        tensor->dims[i] = muc_expr_const(b->graph->pool, wanted.dims[i]);
    if (b->shapes)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(b->ctx, &b->graph->arena, (size_t)tensor->bytes, &data));
    for (uint64_t r = 0; r < view->dims[0]; r++)
        memcpy(data + r * columns * size, view->data + r * has * size, (size_t)(has * size));
    tensor->data = data;
    if (!view->scales)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(b->ctx, &b->graph->arena, (size_t)rows, &all));
    for (uint64_t r = 0; r < rows; r++)
        all[r] = r < view->dims[0] ? view->scales[r] : 1;
    *scales = all;
    return MUC_OK;
}

/* the checkpoint's tensor of a row of llama_tensors.def, as a constant; it may be there already */
static muc_status weight(builder *b, unsigned row, uint32_t *out)
{
    const muc_tensor_view *view;
    muc_tensor tensor = { .kind = MUC_TENSOR_CONST };
    muc_quantization quantization = { 0 };
    int32_t *zeros;

    MUC_TRY(muc_llama_tensor_name(b->ctx, &b->graph->arena, row, b->layer, &tensor.name));
    *out = muc_graph_find(b->graph, tensor.name);
    if (*out != MUC_NO_ID)
        return MUC_OK;
    view = muc_checkpoint_find(b->checkpoint, tensor.name);
    if (!view)
        return muc_fail(b->ctx, MUC_MALFORMED, b->checkpoint->path, MUC_NO_OFFSET, "no tensor '%s'",
                        tensor.name);
    tensor.dtype = view->dtype;
    tensor.rank = view->rank;
    for (uint32_t i = 0; i < view->rank; i++) {
        if (view->dims[i] > UINT32_MAX)
            return muc_fail(b->ctx, MUC_UNSUPPORTED, view->file, view->offset,
                            "tensor '%s': dimension %u does not fit in 32 bits", view->name, i);
        tensor.dims[i] = muc_expr_const(b->graph->pool, (uint32_t)view->dims[i]);
    }
    tensor.data = view->data;
    tensor.bytes = view->bytes;
    quantization.scales = view->scales;
    if (b->level)
        MUC_TRY(pad(b, view, row, &tensor, &quantization.scales));
    if (row == MUC_LLAMA_POSITIONS) { /* the first of them */
        tensor.bytes = view->bytes / view->dims[0] * b->context;
        tensor.dims[0] = muc_expr_const(b->graph->pool, b->context);
    }
    if (b->shapes)
        tensor.data = NULL;
    if (view->scales && b->shapes) { /* without scales they can only be what they are widened to */
        tensor.bytes *= sizeof(float);
        tensor.dtype = MUC_F32;
    } else if (view->scales) {
        quantization.count = muc_expr_get(b->graph->pool, tensor.dims[0])->lo;
        MUC_TRY(MUC_ARENA_NEW(b->ctx, &b->graph->arena, quantization.count, &zeros));
        quantization.zero_points = zeros;
        tensor.quantization = &quantization;
    }
    return muc_graph_add_tensor(b->ctx, b->graph, &tensor, out);
}

static muc_status node(builder *b, muc_op op, const char *name, const uint32_t *inputs,
                       uint32_t input_count, const muc_attribute *attributes, uint32_t count,
                       uint32_t *out)
{
    return muc_graph_add_node(b->ctx, b->graph, op, name, inputs, input_count, attributes, count,
                              out);
}

/* a layer's node without attributes on two tensors */
static muc_status combine(builder *b, muc_op op, const char *stage, uint32_t x, uint32_t y,
                          uint32_t *out)
{
    const uint32_t inputs[] = { x, y };
    const char *name;

    MUC_TRY(name_of(b, stage, &name));
    return node(b, op, name, inputs, 2, NULL, 0, out);
}

/* bias_row is 0 (the embedding, which is not a bias) if there is none */
static muc_status linear(builder *b, const char *stage, uint32_t x, unsigned row, unsigned bias_row,
                         uint32_t *out)
{
    uint32_t inputs[3] = { x };
    const char *name;

    MUC_TRY(name_of(b, stage, &name));
    MUC_TRY(weight(b, row, &inputs[1]));
    if (bias_row)
        MUC_TRY(weight(b, bias_row, &inputs[2]));
    return node(b, MUC_OP_LINEAR, name, inputs, bias_row ? 3 : 2, NULL, 0, out);
}

/* group 0: all columns together; bias_row: as linear's, of a LayerNorm */
static muc_status norm(builder *b, const char *name, uint32_t x, unsigned row, unsigned bias_row,
                       uint32_t group, uint32_t *out)
{
    const muc_attribute axis[] = {
        { .key = MUC_KEY_EPSILON, .value.real = b->config->norm_epsilon },
        { .key = MUC_KEY_AXIS, .value.integer = 1 },
    };
    const muc_attribute attributes[] = {
        { .key = MUC_KEY_EPSILON, .value.real = b->config->norm_epsilon },
        { .key = MUC_KEY_GROUP, .value.integer = group },
    };
    uint32_t inputs[3] = { x };

    MUC_TRY(weight(b, row, &inputs[1]));
    if (bias_row && b->config->norm == MUC_NORM_LAYER) {
        MUC_TRY(weight(b, bias_row, &inputs[2]));
        return node(b, MUC_OP_LAYER_NORM, name, inputs, 3, axis, MUC_COUNT(axis), out);
    }
    return node(b, MUC_OP_RMSNORM, name, inputs, 2, attributes, group ? 2 : 1, out);
}

/* a factor of 0 is none, and 1 changes nothing */
static bool is_factor(double factor)
{
    return factor > 0 && (factor < 1 || factor > 1);
}

/* x times a number */
static muc_status scale(builder *b, const char *name, uint32_t x, double factor, uint32_t *out)
{
    muc_tensor tensor = { .kind = MUC_TENSOR_CONST, .dtype = MUC_F32, .bytes = sizeof(float) };
    uint32_t inputs[2] = { x };
    float *value;

    MUC_TRY(muc_arena_format(b->ctx, &b->graph->arena, &tensor.name, "%s.factor", name));
    MUC_TRY(MUC_ARENA_NEW(b->ctx, &b->graph->arena, 1, &value));
    *value = (float)factor;
    tensor.data = (const uint8_t *)value;
    MUC_TRY(muc_graph_add_tensor(b->ctx, b->graph, &tensor, &inputs[1]));
    return node(b, MUC_OP_MUL, name, inputs, 2, NULL, 0, out);
}

static muc_status stage_norm(builder *b, const char *stage, uint32_t x, unsigned row,
                             unsigned bias_row, uint32_t group, uint32_t *out)
{
    const char *name;

    MUC_TRY(name_of(b, stage, &name));
    return norm(b, name, x, row, bias_row, group, out);
}

static muc_status rope(builder *b, const char *stage, uint32_t x, uint32_t heads, uint32_t *out)
{
    const muc_attribute attributes[] = {
        { .key = MUC_KEY_HEADS, .value.integer = heads },
        { .key = MUC_KEY_HEAD_DIM, .value.integer = b->config->head_dim },
        { .key = MUC_KEY_POSITION, .value.expr = b->pos },
    };
    bool local = view_of(b).angles == MUC_ANGLES_LOCAL;
    const uint32_t inputs[] = { x, b->cosines[local], b->sines[local] };
    const char *name;

    MUC_TRY(name_of(b, stage, &name));
    return node(b, MUC_OP_ROPE, name, inputs, 3, attributes, MUC_COUNT(attributes), out);
}

static muc_status cache(builder *b, const char *stage, uint32_t *out)
{
    muc_tensor tensor = { .kind = MUC_TENSOR_STATE, .dtype = MUC_F32, .rank = 2 };

    MUC_TRY(name_of(b, stage, &tensor.name));
    tensor.dims[0] = muc_expr_const(b->graph->pool, b->context);
    tensor.dims[1] = muc_expr_const(b->graph->pool, b->sizes.kv_heads * b->sizes.head_dim);
    return muc_graph_add_tensor(b->ctx, b->graph, &tensor, out);
}

static muc_status attend(builder *b, uint32_t q, uint32_t k, uint32_t v, uint32_t *out)
{
    double factor = b->config->attention_factor, cap = b->config->attention_cap;
    uint32_t window = view_of(b).window, count = 5;
    muc_attribute attributes[7] = {
        { .key = MUC_KEY_HEADS, .value.integer = b->sizes.heads },
        { .key = MUC_KEY_KV_HEADS, .value.integer = b->sizes.kv_heads },
        { .key = MUC_KEY_HEAD_DIM, .value.integer = b->config->head_dim },
        { .key = MUC_KEY_SCALE,
          .value.real = factor > 0 ? factor : 1 / sqrt((double)b->config->head_dim) },
        { .key = MUC_KEY_POSITION, .value.expr = b->pos },
    };
    uint32_t inputs[5] = { q, k, v };
    const char *name;

    if (window > 0 && window < b->context) /* a longer one hides nothing */
        attributes[count++] = (muc_attribute){ .key = MUC_KEY_SEEN, .value.integer = window };
    if (cap > 0)
        attributes[count++] = (muc_attribute){ .key = MUC_KEY_CAP, .value.real = cap };
    MUC_TRY(name_of(b, "attention", &name));
    MUC_TRY(cache(b, "k_cache", &inputs[3]));
    MUC_TRY(cache(b, "v_cache", &inputs[4]));
    return node(b, MUC_OP_ATTENTION, name, inputs, 5, attributes, count, out);
}

/* q or k, normalised and turned as the family does it */
static muc_status prepare_heads(builder *b, const char *norm_stage, const char *rope_stage,
                                unsigned row, uint32_t heads, uint32_t *x)
{
    const muc_model_config *c = &b->sizes;

    if (c->whole_norm)
        MUC_TRY(stage_norm(b, norm_stage, *x, row, 0, 0, x));
    else if (c->head_norm && !(c->head_norm_turns && view_of(b).angles == MUC_ANGLES_NONE))
        MUC_TRY(stage_norm(b, norm_stage, *x, row, 0, c->head_dim, x));
    if (c->position != MUC_POSITION_ROPE || view_of(b).angles == MUC_ANGLES_NONE)
        return MUC_OK;
    return rope(b, rope_stage, *x, heads, x);
}

/* the norm before attention or the FFN, if the family has one */
static muc_status input_norm(builder *b, const char *stage, uint32_t x, unsigned row,
                             unsigned bias_row, uint32_t *out)
{
    *out = x;
    return b->config->no_input_norms ? MUC_OK : stage_norm(b, stage, x, row, bias_row, 0, out);
}

/* what attention or the FFN gives, as it is added to x */
static muc_status contribution(builder *b, const char *norm_stage, const char *scale_stage,
                               unsigned row, uint32_t *y)
{
    double factor = b->config->residual_factor;
    const char *name;

    if (b->config->output_norms)
        MUC_TRY(stage_norm(b, norm_stage, *y, row, 0, 0, y));
    if (!is_factor(factor))
        return MUC_OK;
    MUC_TRY(name_of(b, scale_stage, &name));
    return scale(b, name, *y, factor, y);
}

/* O(attention(norm x)) */
static muc_status attention_block(builder *b, uint32_t x, uint32_t *out)
{
    const muc_model_config *c = &b->sizes;
    uint32_t normed, q, k, v, y;

    MUC_TRY(input_norm(b, "attention_norm", x, MUC_LLAMA_INPUT_NORM, MUC_LLAMA_INPUT_NORM_BIAS,
                       &normed));
    MUC_TRY(linear(b, "q", normed, MUC_LLAMA_Q, c->qkv_bias ? MUC_LLAMA_Q_BIAS : 0, &q));
    MUC_TRY(linear(b, "k", normed, MUC_LLAMA_K, c->qkv_bias ? MUC_LLAMA_K_BIAS : 0, &k));
    MUC_TRY(linear(b, "v", normed, MUC_LLAMA_V, c->qkv_bias ? MUC_LLAMA_V_BIAS : 0, &v));
    MUC_TRY(prepare_heads(b, "q_norm", "q_rope", MUC_LLAMA_Q_NORM, c->heads, &q));
    MUC_TRY(prepare_heads(b, "k_norm", "k_rope", MUC_LLAMA_K_NORM, c->kv_heads, &k));
    MUC_TRY(attend(b, q, k, v, &y));
    if (c->inner_norms)
        MUC_TRY(stage_norm(b, "attention_inner_norm", y, MUC_LLAMA_ATTENTION_INNER_NORM, 0, 0, &y));
    MUC_TRY(linear(b, "o", y, MUC_LLAMA_O, c->output_bias ? MUC_LLAMA_O_BIAS : 0, out));
    return contribution(b, "attention_output_norm", "attention_scaled",
                        MUC_LLAMA_ATTENTION_OUTPUT_NORM, out);
}

static muc_status activate(builder *b, uint32_t x, uint32_t *out)
{
    const muc_attribute mode = { .key = MUC_KEY_MODE, .value.integer = MUC_WORD_TANH };
    const muc_activation_info *info = muc_activation_get(b->config->activation);
    const char *name;

    MUC_TRY(name_of(b, muc_op_get(info->op)->name, &name));
    MUC_TRY(node(b, info->op, name, &x, 1, &mode, info->by_tanh, out));
    return info->is_squared ? combine(b, MUC_OP_MUL, "squared", *out, *out, out) : MUC_OK;
}

/* activation(gate n) * up n */
static muc_status gated(builder *b, uint32_t normed, uint32_t *out)
{
    bool bias = b->config->ffn_bias;
    uint32_t gate, up;

    MUC_TRY(linear(b, "gate", normed, MUC_LLAMA_GATE, bias ? MUC_LLAMA_GATE_BIAS : 0, &gate));
    MUC_TRY(linear(b, "up", normed, MUC_LLAMA_UP, bias ? MUC_LLAMA_UP_BIAS : 0, &up));
    MUC_TRY(activate(b, gate, &gate));
    return combine(b, MUC_OP_MUL, "gated", gate, up, out);
}

/* down(neurons of norm x) */
static muc_status feed_forward_block(builder *b, uint32_t x, uint32_t *out)
{
    bool bias = b->config->ffn_bias;
    uint32_t normed, y;

    MUC_TRY(input_norm(b, "ffn_norm", x, MUC_LLAMA_FFN_NORM, MUC_LLAMA_FFN_NORM_BIAS, &normed));
    if (b->config->ffn == MUC_FFN_GATED) {
        MUC_TRY(gated(b, normed, &y));
    } else {
        MUC_TRY(linear(b, "up", normed, MUC_LLAMA_UP, bias ? MUC_LLAMA_UP_BIAS : 0, &y));
        MUC_TRY(activate(b, y, &y));
    }
    if (b->config->inner_norms)
        MUC_TRY(stage_norm(b, "ffn_inner_norm", y, MUC_LLAMA_FFN_INNER_NORM, 0, 0, &y));
    MUC_TRY(linear(b, "down", y, MUC_LLAMA_DOWN, bias ? MUC_LLAMA_DOWN_BIAS : 0, out));
    return contribution(b, "ffn_output_norm", "ffn_scaled", MUC_LLAMA_FFN_OUTPUT_NORM, out);
}

/* x with what attention and FFN add to it */
static muc_status layer(builder *b, uint32_t x, uint32_t *out)
{
    uint32_t attention, middle, neurons;

    MUC_TRY(attention_block(b, x, &attention));
    MUC_TRY(combine(b, MUC_OP_ADD, "attention_residual", x, attention, &middle));
    MUC_TRY(feed_forward_block(b, b->config->parallel ? x : middle, &neurons));
    return combine(b, MUC_OP_ADD, "residual", middle, neurons, out);
}

/* the tables of global or local angles */
static muc_status rope_tables(builder *b, bool local)
{
    uint32_t half = muc_llama_rotary(b->config) / 2;
    size_t count = (size_t)b->context * half;
    muc_tensor tensor = { .kind = MUC_TENSOR_CONST, .dtype = MUC_F32, .rank = 2 };
    float *tables[2] = { NULL, NULL };

    if (count > MAX_TABLE)
        return muc_fail(b->ctx, MUC_UNSUPPORTED, b->checkpoint->path, MUC_NO_OFFSET,
                        "a context of %u needs RoPE tables of %zu elements, at most %d: ask for "
                        "a shorter one",
                        b->context, count, MAX_TABLE);
    for (unsigned i = 0; i < 2 && !b->shapes; i++)
        MUC_TRY(MUC_ARENA_NEW(b->ctx, &b->graph->arena, count, &tables[i]));
    if (!b->shapes)
        MUC_TRY(muc_llama_rope(b->ctx, b->config, local, b->context, tables[0], tables[1]));
    tensor.dims[0] = muc_expr_const(b->graph->pool, b->context);
    tensor.dims[1] = muc_expr_const(b->graph->pool, half);
    tensor.bytes = count * sizeof(float);
    for (unsigned i = 0; i < 2; i++) {
        static const char *const names[2][2] = { { "rope.cos", "rope.sin" },
                                                 { "rope.local.cos", "rope.local.sin" } };

        tensor.name = names[local][i];
        tensor.data = (const uint8_t *)tables[i];
        MUC_TRY(muc_graph_add_tensor(b->ctx, b->graph, &tensor,
                                     i ? &b->sines[local] : &b->cosines[local]));
    }
    return MUC_OK;
}

/* those that a layer asks for */
static muc_status add_rope_tables(builder *b)
{
    for (unsigned angles = MUC_ANGLES_GLOBAL; angles <= MUC_ANGLES_LOCAL; angles++) {
        bool used = false;

        for (b->layer = 0; b->layer < b->config->layers; b->layer++)
            used = used || view_of(b).angles == angles;
        if (used)
            MUC_TRY(rope_tables(b, angles == MUC_ANGLES_LOCAL));
    }
    return MUC_OK;
}

/* pos, pos + 1, .. of the call's tokens: [m] */
static muc_status positions(builder *b, uint32_t *out)
{
    static const int32_t one = 1;
    const muc_tensor step = { .name = "positions.step",
                              .kind = MUC_TENSOR_CONST,
                              .dtype = MUC_I32,
                              .data = (const uint8_t *)&one,
                              .bytes = sizeof(one) };
    const muc_attribute first[] = {
        { .key = MUC_KEY_VALUES, .value.exprs = { &b->pos, 1 } },
        { .key = MUC_KEY_TO, .value.integer = MUC_I32 },
    };
    const muc_attribute scalar = { .key = MUC_KEY_SHAPE };
    const muc_attribute size = { .key = MUC_KEY_SIZE, .value.expr = b->m };
    uint32_t inputs[2];

    MUC_TRY(muc_graph_add_tensor(b->ctx, b->graph, &step, &inputs[1]));
    MUC_TRY(node(b, MUC_OP_EXPRESSIONS, "positions.first", NULL, 0, first, 2, &inputs[0]));
    MUC_TRY(node(b, MUC_OP_RESHAPE, "positions.scalar", inputs, 1, &scalar, 1, &inputs[0]));
    return node(b, MUC_OP_RANGE, "positions", inputs, 2, &size, 1, out);
}

/* the rows of tokens, and of their positions where those are learned */
static muc_status embed(builder *b, uint32_t tokens, uint32_t *out)
{
    uint32_t inputs[2] = { tokens }, sum[2];

    MUC_TRY(weight(b, MUC_LLAMA_EMBED, &inputs[1]));
    MUC_TRY(node(b, MUC_OP_EMBED, "embed", inputs, 2, NULL, 0, out));
    if (is_factor(b->config->embedding_factor))
        MUC_TRY(scale(b, "embed_scaled", *out, b->config->embedding_factor, out));
    if (b->config->position == MUC_POSITION_ROPE)
        return add_rope_tables(b);
    sum[0] = *out;
    MUC_TRY(positions(b, &inputs[0]));
    MUC_TRY(weight(b, MUC_LLAMA_POSITIONS, &inputs[1]));
    MUC_TRY(node(b, MUC_OP_EMBED, "embed_positions", inputs, 2, NULL, 0, &sum[1]));
    return node(b, MUC_OP_ADD, "embed_sum", sum, 2, NULL, 0, out);
}

/* some of the call's rows */
static muc_status take_rows(builder *b, const char *name, muc_expr start, muc_expr size, uint32_t x,
                            uint32_t *out)
{
    const int64_t axis = 0;
    const muc_attribute attributes[] = {
        { .key = MUC_KEY_AXES, .value.integers = { &axis, 1 } },
        { .key = MUC_KEY_STARTS, .value.exprs = { &start, 1 } },
        { .key = MUC_KEY_SIZES, .value.exprs = { &size, 1 } },
    };

    return node(b, MUC_OP_SLICE, name, &x, 1, attributes, MUC_COUNT(attributes), out);
}

/* the rows whose logits are wanted */
static muc_status take_wanted(builder *b, const muc_llama_options *options, uint32_t max_tokens,
                              uint32_t x, uint32_t *out)
{
    muc_expr_pool *pool = b->graph->pool;
    muc_expr skip;

    *out = x;
    if (options->last_only)
        return take_rows(b, "last", muc_expr_sub_const(pool, b->m, 1), muc_expr_const(pool, 1), x,
                         out);
    if (!options->skips)
        return MUC_OK;
    skip = muc_expr_new_input(pool, "skip", 0, max_tokens - 1, 1);
    return take_rows(b, "asked", skip, muc_expr_sub(pool, b->m, skip), x, out);
}

/* the logits: cap * tanh(factor * (w x) / cap); the last node is "head", whatever it is */
static muc_status head(builder *b, uint32_t x, uint32_t *out)
{
    double factor = b->config->logit_factor, cap = b->config->logit_cap;
    uint32_t inputs[2];

    MUC_TRY(
        norm(b, "final_norm", x, MUC_LLAMA_FINAL_NORM, MUC_LLAMA_FINAL_NORM_BIAS, 0, &inputs[0]));
    MUC_TRY(weight(b, b->config->tied ? MUC_LLAMA_EMBED : MUC_LLAMA_HEAD, &inputs[1]));
    MUC_TRY(node(b, MUC_OP_LINEAR, is_factor(factor) || cap > 0 ? "head.product" : "head", inputs,
                 2, NULL, 0, out));
    if (is_factor(factor))
        MUC_TRY(scale(b, cap > 0 ? "head.scaled" : "head", *out, factor, out));
    if (!(cap > 0))
        return MUC_OK;
    MUC_TRY(scale(b, "head.uncapped", *out, 1 / cap, out));
    MUC_TRY(node(b, MUC_OP_TANH, "head.tanh", out, 1, NULL, 0, out));
    return scale(b, "head", *out, cap, out);
}

static muc_status build(builder *b, const muc_llama_options *options, uint32_t max_tokens)
{
    muc_expr_pool *pool = b->graph->pool;
    muc_tensor tokens = { .name = "tokens", .kind = MUC_TENSOR_INPUT, .dtype = MUC_I32, .rank = 1 };
    uint32_t x, times = b->config->layers_twice ? 2 : 1;

    b->pos = muc_expr_new_input(pool, "pos", 0, b->context - 1, 1);
    b->m = muc_expr_new_input(pool, "m", 1, max_tokens, 1);
    MUC_TRY(muc_expr_assume(pool, muc_expr_add(pool, b->pos, b->m), b->context));
    tokens.dims[0] = b->m;
    MUC_TRY(muc_graph_add_tensor(b->ctx, b->graph, &tokens, &x));
    MUC_TRY(embed(b, x, &x));
    for (; b->place < b->config->layers * times; b->place++) {
        b->layer = b->place / times;
        b->sizes = b->level ? *b->config : muc_config_of_layer(b->config, b->layer);
        MUC_TRY(layer(b, x, &x));
    }
    MUC_TRY(take_wanted(b, options, max_tokens, x, &x));
    MUC_TRY(head(b, x, &x));
    MUC_TRY(muc_graph_add_output(b->ctx, b->graph, x));
    return muc_graph_verify(b->ctx, b->graph);
}

muc_status muc_llama_build(muc_context *ctx, const muc_checkpoint *checkpoint,
                           const muc_llama_options *options, muc_graph **out)
{
    const muc_model_config *config = &checkpoint->config;
    builder b = { .ctx = ctx, .checkpoint = checkpoint, .config = config, .sizes = *config };
    uint32_t max_tokens = options->max_tokens ? options->max_tokens : DEFAULT_MAX_TOKENS;
    muc_status status;

    b.level = options->level && config->layer_sizes;
    b.shapes = options->shapes;
    b.context = options->context ? options->context : config->context;
    if (b.context > config->context)
        return muc_fail(ctx, MUC_USAGE, checkpoint->path, MUC_NO_OFFSET,
                        "a context of %u, but the model was made for %u", b.context,
                        config->context);
    MUC_TRY(muc_graph_new(ctx, "llama", &b.graph));
    status = build(&b, options, max_tokens < b.context ? max_tokens : b.context);
    if (status == MUC_OK)
        *out = b.graph;
    else
        muc_graph_free(b.graph);
    return status;
}

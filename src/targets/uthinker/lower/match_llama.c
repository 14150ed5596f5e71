/* match_llama.c - sizes, weights and vectors of a recognised Llama, and what must be the same in
 * every layer. */
#include "targets/uthinker/lower/match_llama.h"

#include <string.h>

#include "base/bytes.h"
#include "quant/bd_sequence.h"
#include "targets/uthinker/lower/match_nodes.h"

enum { MAX_SIZE = 65535 };

const char *muc_matrix_name(muc_matrix_kind kind)
{
    static const char *const names[] = {
#define MUC_UTHINKER_MATRIX(id, name) name,
        MUC_UTHINKER_MATRICES(MUC_UTHINKER_MATRIX)
#undef MUC_UTHINKER_MATRIX
    };

    return names[kind];
}

/* ---- sizes and weights ---- */

static const muc_tensor *input_of(const matching *m, const muc_node *node, uint32_t input)
{
    return &m->graph->tensors[node->inputs[input]];
}

/* the gate's activation has one word, its approximation by tanh, or none */
static bool is_gelu(const layer_nodes *layer)
{
    return muc_node_attribute(layer->silu, MUC_KEY_MODE) != NULL;
}

/* dimension of a constant: the graph's verifier found it constant */
static uint32_t dim(const matching *m, const muc_tensor *tensor, uint32_t i)
{
    return muc_expr_get(m->graph->pool, tensor->dims[i])->lo;
}

static uint32_t attribute(const muc_node *node, muc_attribute_key key)
{
    return (uint32_t)muc_node_integer(node, key);
}

/* the number that such a product has; 1 if there is none */
static float factor_of(const matching *m, const muc_node *scaled)
{
    float factor = 1;

    if (scaled)
        memcpy(&factor, input_of(m, scaled, 1)->data, sizeof(factor));
    return factor;
}

/* columns that a norm takes together */
static uint32_t norm_columns(const matching *m, const muc_node *norm)
{
    return muc_node_attribute(norm, MUC_KEY_GROUP) ? attribute(norm, MUC_KEY_GROUP)
                                                   : dim(m, input_of(m, norm, 1), 0);
}

/* elements of a head that turn, in the first layer where any do; else all, by angles of 0 */
static uint32_t rotary_of(const matching *m, uint32_t head_width)
{
    for (size_t l = m->layer_count; l-- > 0;)
        if (m->layers[l].q_rope)
            return 2 * dim(m, input_of(m, m->layers[l].q_rope, 1), 1);
    return head_width;
}

static muc_status measure(matching *m, muc_uthinker_model *out)
{
    const layer_nodes *layer = &m->layers[m->layer_count - 1];

    out->layers = (uint32_t)m->layer_count;
    out->heads = attribute(layer->attention, MUC_KEY_HEADS);
    out->kv_heads = attribute(layer->attention, MUC_KEY_KV_HEADS);
    out->head_width = attribute(layer->attention, MUC_KEY_HEAD_DIM);
    out->vocabulary = dim(m, input_of(m, m->embed, 1), 0);
    out->width = dim(m, input_of(m, m->embed, 1), 1);
    out->ffn_width = dim(m, input_of(m, layer->gate, 1), 0);
    out->context = dim(m, input_of(m, layer->attention, 3), 0);
    out->ffn_parts = out->o_parts = 1;
    out->tied = m->head->inputs[1] == m->embed->inputs[1];
    out->epsilon = (float)muc_node_real(m->final_norm, MUC_KEY_EPSILON);
    out->scale = (float)muc_node_real(layer->attention, MUC_KEY_SCALE);
    out->gelu = is_gelu(layer);
    out->input_norms = layer->attention_norm != NULL;
    out->whole_norms = layer->q_norm && norm_columns(m, layer->q_norm) != out->head_width;
    out->rotary = rotary_of(m, out->head_width);
    out->embedding_factor = factor_of(m, m->embed_scaled);
    out->residual_factor = factor_of(m, layer->o_scaled);
    out->logit_factor = factor_of(m, m->head_scaled);
    if (m->head_capped) {
        out->logit_uncap = factor_of(m, m->head_uncapped);
        out->logit_cap = factor_of(m, m->head_capped);
    }
    if (muc_node_attribute(layer->attention, MUC_KEY_CAP)) {
        double cap = muc_node_real(layer->attention, MUC_KEY_CAP);

        out->score_factor = (float)(muc_node_real(layer->attention, MUC_KEY_SCALE) / cap);
        out->score_cap = (float)cap;
    }
    if (out->layers > MAX_SIZE || out->width > MAX_SIZE || out->ffn_width > MAX_SIZE ||
        (uint64_t)out->heads * out->head_width > MAX_SIZE || out->vocabulary >= 1u << 24)
        return muc_fail(m->ctx, MUC_UNSUPPORTED, m->graph->name, MUC_NO_OFFSET,
                        "a model of %u layers, width %u, %u heads of %u, feed-forward width %u, "
                        "vocabulary %u is larger than instructions can express",
                        out->layers, out->width, out->heads, out->head_width, out->ffn_width,
                        out->vocabulary);
    return MUC_OK;
}

/* the sequence of a node's weight must be that of a [n][k] matrix; its offsets are checked, its
 * blocks were when it was made or read */
static muc_status take_weight(const matching *m, const muc_node *node, muc_matrix_shape shape,
                              muc_uthinker_weight *out)
{
    const muc_tensor *tensor = input_of(m, node, 1);
    uint64_t tiles = ((uint64_t)shape.n + 7) / 8 * ((shape.k + 63) / 64);
    const uint8_t *off = tensor->sequence;

    if (dim(m, tensor, 0) != shape.n || dim(m, tensor, 1) != shape.k)
        return muc_fail_on(muc_node_subject(m->ctx, m->graph, node), MUC_UNSUPPORTED,
                           "weight '%s' is [%u, %u], other layers have [%u, %u]", tensor->name,
                           dim(m, tensor, 0), dim(m, tensor, 1), shape.n, shape.k);
    if (m->shapes) {
        uint64_t columns = shape.n * muc_bd_least_column_bytes(shape.k);

        *out = (muc_uthinker_weight){ .name = tensor->name,
                                      .bytes = muc_bd_index_bytes(shape.n, shape.k) + columns };
        return MUC_OK;
    }
    if (!off)
        return muc_fail_on(muc_node_subject(m->ctx, m->graph, node), MUC_UNSUPPORTED,
                           "weight '%s' is not quantized", tensor->name);
    if (tensor->sequence_bytes > UINT32_MAX || tensor->sequence_bytes < 4 * (tiles + 1) ||
        muc_load_u32(off) != 4 * (tiles + 1) ||
        muc_load_u32(off + 4 * tiles) != tensor->sequence_bytes)
        return muc_fail(m->ctx, MUC_MALFORMED, tensor->name, 0,
                        "not the sequence of a matrix of %u columns of %u", shape.n, shape.k);
    for (uint64_t i = 0; i < tiles; i++)
        if (muc_load_u32(off + 4 * i) > muc_load_u32(off + 4 * i + 4))
            return muc_fail(m->ctx, MUC_MALFORMED, tensor->name, 4 * i,
                            "the offset of tile %llu falls", (unsigned long long)i + 1);
    *out = (muc_uthinker_weight){ .name = tensor->name,
                                  .sequence = off,
                                  .bytes = tensor->sequence_bytes,
                                  .resting = tensor->sequence_rests ? tensor->sequence_bytes : 0 };
    return MUC_OK;
}

static const muc_node *node_of_kind(const matching *m, const layer_nodes *layer,
                                    muc_matrix_kind kind)
{
    switch (kind) {
    case MUC_MATRIX_EMBEDDING:
        return m->embed;
    case MUC_MATRIX_HEAD:
        return m->head;
    case MUC_MATRIX_DOWN:
        return layer->down;
    case MUC_MATRIX_GATE:
        return layer->gate;
    case MUC_MATRIX_UP:
        return layer->up;
    case MUC_MATRIX_O:
        return layer->o;
    case MUC_MATRIX_Q:
        return layer->q;
    case MUC_MATRIX_K:
        return layer->k;
    case MUC_MATRIX_V:
        return layer->v;
    case MUC_MATRIX_COUNT:
        break;
    }
    return NULL;
}

/* The node and input that hold a layer's vector; NULL: it has none. */
static const muc_node *node_of_vector(const layer_nodes *layer, muc_vector_kind kind,
                                      uint32_t *input)
{
    const muc_node *const nodes[MUC_VECTOR_COUNT] = {
        [MUC_VECTOR_Q_BIAS] = layer->q,
        [MUC_VECTOR_K_BIAS] = layer->k,
        [MUC_VECTOR_V_BIAS] = layer->v,
        [MUC_VECTOR_O_BIAS] = layer->o,
        [MUC_VECTOR_GATE_BIAS] = layer->gate,
        [MUC_VECTOR_UP_BIAS] = layer->up,
        [MUC_VECTOR_DOWN_BIAS] = layer->down,
        [MUC_VECTOR_Q_NORM] = layer->q_norm,
        [MUC_VECTOR_K_NORM] = layer->k_norm,
        [MUC_VECTOR_O_NORM] = layer->o_norm,
        [MUC_VECTOR_DOWN_NORM] = layer->down_norm,
    };
    const muc_node *node = nodes[kind];

    *input = node && node->op == MUC_OP_LINEAR ? 2 : 1;
    return node && node->input_count > *input ? node : NULL;
}

/* layer number l, from the first on, of those with weights of their own */
static const layer_nodes *own_layer(const matching *m, const muc_uthinker_model *model, uint32_t l)
{
    return &m->layers[m->layer_count - 1 - l * (model->layers / model->own_layers)];
}

/* where there are norms */
static bool have_same_gain(const muc_node *a, const muc_node *b)
{
    return !a || !b || a->inputs[1] == b->inputs[1];
}

/* whether a layer computes what the one before it does, from the same constants */
static bool is_same(const matching *m, const layer_nodes *a, const layer_nodes *b)
{
    for (uint32_t i = MUC_MATRIX_DOWN; i < MUC_MATRIX_COUNT; i++)
        if (node_of_kind(m, a, (muc_matrix_kind)i)->inputs[1] !=
            node_of_kind(m, b, (muc_matrix_kind)i)->inputs[1])
            return false;
    for (uint32_t i = 0; i < MUC_VECTOR_COUNT; i++) {
        uint32_t input;
        const muc_node *of_a = node_of_vector(a, (muc_vector_kind)i, &input);
        const muc_node *of_b = node_of_vector(b, (muc_vector_kind)i, &input);

        if (of_a && of_b && of_a->inputs[input] != of_b->inputs[input])
            return false;
    }
    return have_same_gain(a->attention_norm, b->attention_norm) &&
           have_same_gain(a->ffn_norm, b->ffn_norm);
}

/* layers come in runs of the same one, all as long; else each one has weights of its own */
static uint32_t count_own(const matching *m)
{
    const layer_nodes *first = &m->layers[m->layer_count - 1];
    uint32_t count = (uint32_t)m->layer_count, run = 1;

    while (run < count && is_same(m, first - run, first))
        run++;
    if (count % run != 0)
        return count;
    for (uint32_t l = 1; l < count; l++)
        if (is_same(m, first - l, first - l + 1) != (l % run != 0))
            return count;
    return count / run;
}

static muc_status take_weights(const matching *m, muc_uthinker_model *out)
{
    for (uint32_t i = 0; i < MUC_MATRIX_COUNT; i++) {
        muc_matrix_kind kind = (muc_matrix_kind)i;
        muc_matrix_shape shape = muc_uthinker_matrix_shape(out, kind);

        MUC_TRY(MUC_ARENA_NEW(m->ctx, m->arena, shape.count, &out->weights[kind]));
        for (uint32_t l = 0; l < shape.count; l++)
            MUC_TRY(take_weight(m, node_of_kind(m, own_layer(m, out, l), kind), shape,
                                &out->weights[kind][l]));
    }
    return MUC_OK;
}

/* elements first.. of a constant, as binary32 */
static muc_status take_floats(const matching *m, const muc_node *node, uint32_t input,
                              uint64_t first, uint64_t count, float *out)
{
    const muc_tensor *tensor = input_of(m, node, input);

    if (!tensor->data || !muc_dtype_to_f32(tensor->dtype, tensor->data, first, count, out))
        return muc_fail_on(muc_node_subject(m->ctx, m->graph, node), MUC_UNSUPPORTED,
                           "'%s' has no values", tensor->name);
    return MUC_OK;
}

static muc_status take_gains(const matching *m, muc_uthinker_model *out)
{
    float *attention, *ffn, *final;

    MUC_TRY(MUC_ARENA_NEW(m->ctx, m->arena, (size_t)out->own_layers * out->width, &attention));
    MUC_TRY(MUC_ARENA_NEW(m->ctx, m->arena, (size_t)out->own_layers * out->width, &ffn));
    MUC_TRY(MUC_ARENA_NEW(m->ctx, m->arena, out->width, &final));
    for (uint32_t l = 0; out->input_norms && l < out->own_layers; l++) {
        const layer_nodes *layer = own_layer(m, out, l);

        MUC_TRY(take_floats(m, layer->attention_norm, 1, 0, out->width,
                            attention + (size_t)l * out->width));
        MUC_TRY(take_floats(m, layer->ffn_norm, 1, 0, out->width, ffn + (size_t)l * out->width));
    }
    MUC_TRY(take_floats(m, m->final_norm, 1, 0, out->width, final));
    out->gain_attention = attention;
    out->gain_ffn = ffn;
    out->gain_final = final;
    return MUC_OK;
}

/* which vectors there are, and that they are the same ones in every layer */
static muc_status measure_vectors(const matching *m, muc_uthinker_model *out)
{
    const uint32_t d = out->width, hd = out->head_width;
    const uint32_t q = out->heads * hd, kv = out->kv_heads * hd, f = out->ffn_width;
    const uint32_t qn = out->whole_norms ? q : hd, kn = out->whole_norms ? kv : hd;
    const uint32_t elements[] = {
#define MUC_UTHINKER_VECTOR(id, elements, meaning) elements,
        MUC_UTHINKER_VECTORS(MUC_UTHINKER_VECTOR)
#undef MUC_UTHINKER_VECTOR
    };

    for (uint32_t i = 0; i < MUC_VECTOR_COUNT; i++) {
        muc_vector_kind kind = (muc_vector_kind)i;
        uint32_t input;
        bool has = node_of_vector(&m->layers[m->layer_count - 1], kind, &input) != NULL;

        for (size_t l = 0; l < m->layer_count; l++)
            if ((node_of_vector(&m->layers[l], kind, &input) != NULL) != has)
                return muc_match_refuse(m, m->layers[l].attention,
                                        "its layer has other biases or norms than the first one");
        out->vector_elements[i] = has ? elements[i] : 0;
        out->row_elements += out->vector_elements[i];
    }
    return MUC_OK;
}

static muc_status take_vectors(const matching *m, muc_uthinker_model *out)
{
    float *at;

    if (out->row_elements == 0)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(m->ctx, m->arena, (size_t)out->own_layers * out->row_elements, &at));
    out->vectors = at;
    for (uint32_t l = 0; l < out->own_layers; l++)
        for (uint32_t i = 0; i < MUC_VECTOR_COUNT; at += out->vector_elements[i++]) {
            uint32_t input;
            const muc_node *node = node_of_vector(own_layer(m, out, l), (muc_vector_kind)i, &input);

            if (node)
                MUC_TRY(take_floats(m, node, input, 0, out->vector_elements[i], at));
        }
    return MUC_OK;
}

/* cosines and sines side by side, as a row of ROPE's table has them */
static muc_status take_angles(const matching *m, const muc_uthinker_model *model,
                              const muc_node *rope, float *rows)
{
    uint32_t half = model->rotary / 2;

    for (uint32_t i = 0; i < model->context; i++, rows += model->rotary) {
        for (uint32_t k = 0; k < half && !rope; k++) { /* no rotation */
            rows[k] = 1;
            rows[half + k] = 0;
        }
        if (!rope)
            continue;
        MUC_TRY(take_floats(m, rope, 1, (uint64_t)i * half, half, rows));
        MUC_TRY(take_floats(m, rope, 2, (uint64_t)i * half, half, rows + half));
    }
    return MUC_OK;
}

/* the first layer that has the table of RoPE that layer l has */
static uint32_t first_with_angles(const matching *m, uint32_t l)
{
    const layer_nodes *first = &m->layers[m->layer_count - 1];
    const muc_node *mine = (first - l)->q_rope;

    for (uint32_t i = 0; i < l; i++) {
        const muc_node *other = (first - i)->q_rope;

        if (mine && other
                ? mine->inputs[1] == other->inputs[1] && mine->inputs[2] == other->inputs[2]
                : !mine && !other)
            return i;
    }
    return l;
}

/* which table of RoPE each layer has, and how far its queries see */
static muc_status measure_layers(const matching *m, muc_uthinker_model *out)
{
    uint32_t *windows, *sums, *number;
    bool any = false;

    MUC_TRY(MUC_ARENA_NEW(m->ctx, m->arena, out->layers + 1, &windows));
    MUC_TRY(MUC_ARENA_NEW(m->ctx, m->arena, out->layers + 1, &sums));
    MUC_TRY(MUC_ARENA_NEW(m->ctx, m->arena, out->layers, &number));
    for (uint32_t l = 0; l < out->layers; l++) {
        const muc_node *attention = m->layers[m->layer_count - 1 - l].attention;
        bool has = muc_node_attribute(attention, MUC_KEY_SEEN) != NULL;
        uint32_t first = first_with_angles(m, l);

        number[l] = first < l ? number[first] : out->angles++;
        sums[l + 1] = sums[l] + number[l];
        windows[l + 1] = windows[l] + (has ? attribute(attention, MUC_KEY_SEEN) : out->context);
        any = any || has;
    }
    out->windows = any ? windows : NULL;
    out->angle_sums = out->angles > 1 ? sums : NULL;
    return MUC_OK;
}

static muc_status take_rope(const matching *m, muc_uthinker_model *out)
{
    size_t table = (size_t)out->context * out->rotary;
    uint32_t taken = 0;
    uint8_t *room;
    float *rows;

    MUC_TRY(muc_arena_new_large(m->ctx, m->arena, out->angles * table * sizeof(*rows) + 1, &room));
    rows = (float *)(void *)room;
    out->rope = rows;
    for (uint32_t l = 0; l < out->layers; l++)
        if (first_with_angles(m, l) == l)
            MUC_TRY(take_angles(m, out, m->layers[m->layer_count - 1 - l].q_rope,
                                rows + taken++ * table));
    return MUC_OK;
}

/* ---- what must be the same in every layer ---- */

static muc_status check_position(const matching *m, const muc_node *node)
{
    muc_expr position = muc_node_expr(node, MUC_KEY_POSITION);

    if (muc_expr_get(m->graph->pool, position)->op == MUC_EXPR_INPUT &&
        muc_expr_get(m->graph->pool, position)->immediate == 0)
        return MUC_OK;
    return muc_match_refuse(m, node, "its position is not that of the call's first token");
}

static muc_status check_rope(const matching *m, const muc_node *node, uint32_t heads,
                             const muc_uthinker_model *model)
{
    if (!node)
        return MUC_OK;
    MUC_TRY(check_position(m, node));
    if (attribute(node, MUC_KEY_HEADS) != heads ||
        attribute(node, MUC_KEY_HEAD_DIM) != model->head_width)
        return muc_match_refuse(m, node, "its heads are not those of the attention");
    if (2 * dim(m, input_of(m, node, 1), 1) != model->rotary)
        return muc_match_refuse(m, node, "it turns another part of each head than the first one");
    return MUC_OK;
}

/* of rows of k columns, if there is one */
static muc_status check_norm(const matching *m, const muc_node *norm, uint32_t k,
                             const muc_uthinker_model *model)
{
    if (!norm)
        return MUC_OK;
    if (norm_columns(m, norm) != k)
        return muc_match_refuse(
            m, norm, "it normalises other groups of columns than uthinker's schedule does");
    if ((float)muc_node_real(norm, MUC_KEY_EPSILON) != model->epsilon)
        return muc_match_refuse(m, norm, "its epsilon is not that of the final norm");
    return MUC_OK;
}

static muc_status check_norms(const matching *m, const layer_nodes *layer,
                              const muc_uthinker_model *model)
{
    uint32_t heads = model->whole_norms ? model->heads : 1;
    uint32_t kv_heads = model->whole_norms ? model->kv_heads : 1;

    if (model->whole_norms && !layer->k_norm)
        return muc_match_refuse(m, layer->q_norm, "of queries alone, over all their heads");
    MUC_TRY(check_norm(m, layer->attention_norm, model->width, model));
    MUC_TRY(check_norm(m, layer->ffn_norm, model->width, model));
    MUC_TRY(check_norm(m, layer->q_norm, heads * model->head_width, model));
    MUC_TRY(check_norm(m, layer->k_norm, kv_heads * model->head_width, model));
    MUC_TRY(check_norm(m, layer->o_norm, model->width, model));
    return check_norm(m, layer->down_norm, model->width, model);
}

/* every attention has caches of its own, as every layer has in region KV */
static muc_status check_caches(const matching *m, size_t layer)
{
    const muc_node *attention = m->layers[layer].attention;

    for (size_t other = layer + 1; other < m->layer_count; other++)
        for (uint32_t i = 0; i < 4; i++)
            if (m->layers[other].attention->inputs[3 + i % 2] == attention->inputs[3 + i / 2])
                return muc_match_refuse(m, attention, "its caches are those of another attention");
    return attention->inputs[3] != attention->inputs[4]
               ? MUC_OK
               : muc_match_refuse(m, attention, "its keys and values are in one cache");
}

static muc_status check_cap(const matching *m, const muc_node *attention)
{
    const muc_node *first = m->layers[m->layer_count - 1].attention;
    bool has = muc_node_attribute(attention, MUC_KEY_CAP) != NULL;

    if (has != (muc_node_attribute(first, MUC_KEY_CAP) != NULL) ||
        (has && muc_node_real(attention, MUC_KEY_CAP) != muc_node_real(first, MUC_KEY_CAP)))
        return muc_match_refuse(m, attention,
                                "its scores are capped in another way than the first layer's");
    return MUC_OK;
}

static muc_status check_layer(const matching *m, size_t index, const muc_uthinker_model *model)
{
    const layer_nodes *layer = &m->layers[index];
    const muc_node *attention = layer->attention;

    if (attribute(attention, MUC_KEY_HEADS) != model->heads ||
        attribute(attention, MUC_KEY_KV_HEADS) != model->kv_heads ||
        attribute(attention, MUC_KEY_HEAD_DIM) != model->head_width ||
        (float)muc_node_real(attention, MUC_KEY_SCALE) != model->scale)
        return muc_match_refuse(m, attention,
                                "its heads or scale are not those of the first layer");
    MUC_TRY(check_caches(m, index));
    if (!layer->attention_norm != !model->input_norms || !layer->ffn_norm != !model->input_norms)
        return muc_match_refuse(m, attention,
                                "its layer's norms stand elsewhere than the first one's");
    MUC_TRY(check_norms(m, layer, model));
    if (is_gelu(layer) != model->gelu)
        return muc_match_refuse(m, layer->silu, "it is not the activation of the first layer");
    if (factor_of(m, layer->o_scaled) != model->residual_factor ||
        factor_of(m, layer->down_scaled) != model->residual_factor)
        return muc_match_refuse(m, layer->residual,
                                "its summand is scaled in another way than the first's");
    MUC_TRY(check_cap(m, attention));
    MUC_TRY(check_position(m, attention));
    if (layer->q_rope && (layer->q_rope->inputs[1] != layer->k_rope->inputs[1] ||
                          layer->q_rope->inputs[2] != layer->k_rope->inputs[2]))
        return muc_match_refuse(m, layer->k_rope, "its table is not that of the queries");
    MUC_TRY(check_rope(m, layer->q_rope, model->heads, model));
    return check_rope(m, layer->k_rope, model->kv_heads, model);
}

static muc_status match(matching *m, muc_uthinker_model *out)
{
    memset(out, 0, sizeof(*out));
    out->source = m->graph->name;
    MUC_TRY(MUC_ARENA_NEW(m->ctx, m->arena, m->graph->node_count, &m->seen));
    MUC_TRY(muc_match_nodes(m));
    MUC_TRY(measure(m, out));
    MUC_TRY(check_norm(m, m->final_norm, out->width, out));
    MUC_TRY(measure_vectors(m, out));
    MUC_TRY(measure_layers(m, out));
    out->own_layers = count_own(m);
    for (size_t l = 0; l < m->layer_count; l++)
        MUC_TRY(check_layer(m, m->layer_count - 1 - l, out));
    return take_weights(m, out);
}

muc_status muc_uthinker_match(muc_context *ctx, muc_arena *arena, const muc_graph *graph,
                              muc_uthinker_model *out)
{
    matching m = { .ctx = ctx, .arena = arena, .graph = graph };

    MUC_TRY(match(&m, out));
    MUC_TRY(take_gains(&m, out));
    MUC_TRY(take_vectors(&m, out));
    return take_rope(&m, out);
}

muc_status muc_uthinker_match_shapes(muc_context *ctx, muc_arena *arena, const muc_graph *graph,
                                     muc_uthinker_model *out)
{
    matching m = { .ctx = ctx, .arena = arena, .graph = graph, .shapes = true };

    return match(&m, out);
}

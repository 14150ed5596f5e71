/* forward.c - the layers of a Llama or a GPT-2 over a batch, keeping what the way back needs. */
#include "train/pass.h"

typedef struct step {
    muc_train_pass *pass;
    const muc_train_batch *batch;
    const muc_scalar *weights;
    const muc_train_layer *layer;
    muc_train_kept *kept;
    uint32_t number;
} step;

/* NULL if the model has no such tensor */
static const muc_scalar *weight(const step *s, unsigned id)
{
    size_t at = s->layer->at[id];

    return at == MUC_TRAIN_ABSENT ? NULL : s->weights + at;
}

static void add(size_t count, const muc_scalar *x, muc_scalar *y)
{
    for (size_t i = 0; i < count; i++)
        y[i] += x[i];
}

/* positions NULL: none are learned */
static muc_status embed(const muc_train_pass *pass, const muc_train_batch *batch,
                        const muc_scalar *table, const muc_scalar *positions, muc_scalar *x)
{
    const muc_model_config *config = &pass->shape->config;

    for (size_t r = 0; r < batch->rows; r++) {
        if (batch->tokens[r] >= config->vocabulary || batch->positions[r] >= config->context)
            return muc_fail(pass->ctx, MUC_MALFORMED, "train", MUC_NO_OFFSET,
                            "token %u at position %u, expected below %u and %u", batch->tokens[r],
                            batch->positions[r], config->vocabulary, config->context);
        memcpy(x + r * config->dim, table + (size_t)batch->tokens[r] * config->dim,
               config->dim * sizeof(*x));
        if (positions)
            add(config->dim, positions + (size_t)batch->positions[r] * config->dim,
                x + r * config->dim);
    }
    return MUC_OK;
}

/* q or k of all heads: product, and where the family has them norm of heads, rotation */
static muc_status queries(const step *s, unsigned row, unsigned bias_row, unsigned norm_row,
                          uint32_t heads, muc_scalar *raw, muc_scalar *factors, muc_scalar *out)
{
    muc_context *ctx = s->pass->ctx;
    const muc_model_config *config = &s->pass->shape->config;
    const muc_scalar *gain = weight(s, norm_row);
    size_t rows = s->batch->rows, columns = (size_t)heads * config->head_dim;

    MUC_TRY(muc_train_linear(ctx, rows, config->dim, columns, s->kept->normed, weight(s, row),
                             weight(s, bias_row), gain ? raw : out));
    if (gain)
        MUC_TRY(muc_train_norm(ctx, rows * heads, config->head_dim, config->norm_epsilon, raw, gain,
                               NULL, factors, out));
    if (config->position != MUC_POSITION_ROPE)
        return MUC_OK;
    return muc_train_rope(ctx, rows, heads, config->head_dim / 2, s->batch->positions,
                          s->pass->cosines, s->pass->sines, false, out);
}

/* kept->middle = kept->in + O(attention(norm in)) */
static muc_status attention_block(const step *s)
{
    const muc_model_config *config = &s->pass->shape->config;
    muc_context *ctx = s->pass->ctx;
    muc_train_kept *kept = s->kept;
    muc_train_heads heads = { s->layer->heads, s->layer->kv_heads, config->head_dim };
    size_t rows = s->batch->rows, wide = heads.heads * heads.width;

    MUC_TRY(muc_train_norm(ctx, rows, config->dim, config->norm_epsilon, kept->in,
                           weight(s, MUC_LLAMA_INPUT_NORM), weight(s, MUC_LLAMA_INPUT_NORM_BIAS),
                           kept->in_factors, kept->normed));
    MUC_TRY(muc_train_hook_forward(s->pass, MUC_TRAIN_SITE_ATTENTION, s->number, rows, config->dim,
                                   kept->normed));
    MUC_TRY(queries(s, MUC_LLAMA_Q, MUC_LLAMA_Q_BIAS, MUC_LLAMA_Q_NORM, s->layer->heads,
                    kept->q_raw, kept->q_factors, kept->q));
    MUC_TRY(queries(s, MUC_LLAMA_K, MUC_LLAMA_K_BIAS, MUC_LLAMA_K_NORM, s->layer->kv_heads,
                    kept->k_raw, kept->k_factors, kept->k));
    MUC_TRY(muc_train_linear(ctx, rows, config->dim, heads.kv_heads * heads.width, kept->normed,
                             weight(s, MUC_LLAMA_V), weight(s, MUC_LLAMA_V_BIAS), kept->v));
    MUC_TRY(muc_train_attend(ctx, &heads, &s->batch->documents, kept->q, kept->k, kept->v,
                             kept->lse, kept->heads));
    MUC_TRY(
        muc_train_hook_forward(s->pass, MUC_TRAIN_SITE_HEADS, s->number, rows, wide, kept->heads));
    MUC_TRY(muc_train_linear(ctx, rows, wide, config->dim, kept->heads, weight(s, MUC_LLAMA_O),
                             weight(s, MUC_LLAMA_O_BIAS), kept->middle));
    add(rows * config->dim, kept->in, kept->middle);
    return MUC_OK;
}

/* kept->gated = silu(gate n) * up n, or gelu(up n); n = kept->ffn */
static muc_status neurons_of(const step *s)
{
    const muc_model_config *config = &s->pass->shape->config;
    muc_context *ctx = s->pass->ctx;
    muc_train_kept *kept = s->kept;
    size_t rows = s->batch->rows, neurons = s->layer->ffn_dim;

    MUC_TRY(muc_train_linear(ctx, rows, config->dim, neurons, kept->ffn, weight(s, MUC_LLAMA_UP),
                             weight(s, MUC_LLAMA_UP_BIAS), kept->up));
    if (config->ffn == MUC_FFN_PLAIN)
        return muc_train_gelu(ctx, rows * neurons, muc_activation_get(config->activation)->by_tanh,
                              kept->up, kept->gated);
    MUC_TRY(muc_train_linear(ctx, rows, config->dim, neurons, kept->ffn, weight(s, MUC_LLAMA_GATE),
                             NULL, kept->gate));
    return muc_train_gate(ctx, rows * neurons, kept->gate, kept->up, kept->gated);
}

/* out = kept->middle + down(neurons of norm middle) */
static muc_status feed_forward_block(const step *s, muc_scalar *out)
{
    const muc_model_config *config = &s->pass->shape->config;
    muc_context *ctx = s->pass->ctx;
    muc_train_kept *kept = s->kept;
    size_t rows = s->batch->rows, neurons = s->layer->ffn_dim;

    MUC_TRY(muc_train_norm(ctx, rows, config->dim, config->norm_epsilon, kept->middle,
                           weight(s, MUC_LLAMA_FFN_NORM), weight(s, MUC_LLAMA_FFN_NORM_BIAS),
                           kept->middle_factors, kept->ffn));
    MUC_TRY(muc_train_hook_forward(s->pass, MUC_TRAIN_SITE_FFN, s->number, rows, config->dim,
                                   kept->ffn));
    MUC_TRY(neurons_of(s));
    MUC_TRY(muc_train_hook_forward(s->pass, MUC_TRAIN_SITE_NEURONS, s->number, rows, neurons,
                                   kept->gated));
    MUC_TRY(muc_train_linear(ctx, rows, neurons, config->dim, kept->gated,
                             weight(s, MUC_LLAMA_DOWN), weight(s, MUC_LLAMA_DOWN_BIAS), out));
    add(rows * config->dim, kept->middle, out);
    return MUC_OK;
}

muc_status muc_train_forward(muc_train_pass *pass, const muc_train_batch *batch,
                             const muc_scalar *weights)
{
    const muc_train_shape *shape = pass->shape;
    uint32_t layers = shape->config.layers;

    MUC_TRY(embed(pass, batch, weights + shape->embed,
                  shape->positions == MUC_TRAIN_ABSENT ? NULL : weights + shape->positions,
                  layers ? pass->kept[0].in : pass->last));
    for (uint32_t i = 0; i < layers; i++) {
        step s = { pass, batch, weights, &shape->layers[i], &pass->kept[i], i };

        MUC_TRY(attention_block(&s));
        MUC_TRY(feed_forward_block(&s, i + 1 < layers ? pass->kept[i + 1].in : pass->last));
    }
    MUC_TRY(muc_train_norm(
        pass->ctx, batch->rows, shape->config.dim, shape->config.norm_epsilon, pass->last,
        weights + shape->final_norm,
        shape->final_norm_bias == MUC_TRAIN_ABSENT ? NULL : weights + shape->final_norm_bias,
        pass->last_factors, pass->normed));
    return muc_train_hook_forward(pass, MUC_TRAIN_SITE_OUTPUT, layers, batch->rows,
                                  shape->config.dim, pass->normed);
}

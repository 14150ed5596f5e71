/* backward.c - the layers of a Llama or a GPT-2 in reverse: each gradient where its formula is. */
#include "train/pass.h"

typedef struct step {
    muc_train_pass *pass;
    const muc_train_batch *batch;
    const muc_scalar *weights;
    muc_scalar *gradients;
    const muc_train_layer *layer;
    muc_train_kept *kept;
    uint32_t number;
} step;

static const muc_scalar *weight(const step *s, unsigned id)
{
    return s->weights + s->layer->at[id];
}

/* NULL if the model has no such tensor */
static muc_scalar *gradient(const step *s, unsigned id)
{
    size_t at = s->layer->at[id];

    return at == MUC_TRAIN_ABSENT ? NULL : s->gradients + at;
}

/* of a product of a layer's matrix (and bias; 0: none) with x, given dy */
static muc_status product(const step *s, unsigned row, unsigned bias_row, size_t in, size_t out,
                          const muc_scalar *x, const muc_scalar *dy, bool add, muc_scalar *dx)
{
    return muc_train_linear_back(s->pass->ctx, s->batch->rows, in, out, x, weight(s, row), dy, add,
                                 dx, gradient(s, row), bias_row ? gradient(s, bias_row) : NULL);
}

/* pass->dwide: the gradient by kept->gated; pass->dnormed becomes that by kept->ffn */
static muc_status neurons_back(const step *s)
{
    muc_train_pass *pass = s->pass;
    const muc_model_config *config = &pass->shape->config;
    muc_train_kept *kept = s->kept;
    size_t elements = s->batch->rows * s->layer->ffn_dim, neurons = s->layer->ffn_dim;
    bool is_gated = config->ffn == MUC_FFN_GATED;

    if (is_gated) {
        MUC_TRY(muc_train_gate_back(pass->ctx, elements, pass->dwide, kept->gate, kept->up));
        MUC_TRY(product(s, MUC_LLAMA_GATE, 0, config->dim, neurons, kept->ffn, kept->gate, false,
                        pass->dnormed));
    } else {
        MUC_TRY(muc_train_gelu_back(pass->ctx, elements,
                                    muc_activation_get(config->activation)->by_tanh, pass->dwide,
                                    kept->up));
    }
    return product(s, MUC_LLAMA_UP, MUC_LLAMA_UP_BIAS, config->dim, neurons, kept->ffn, kept->up,
                   is_gated, pass->dnormed);
}

/* pass->dx: the gradient by the layer's result, becomes that by kept->middle */
static muc_status feed_forward_back(const step *s)
{
    muc_train_pass *pass = s->pass;
    muc_train_kept *kept = s->kept;
    size_t rows = s->batch->rows, dim = pass->shape->config.dim, neurons = s->layer->ffn_dim;

    MUC_TRY(product(s, MUC_LLAMA_DOWN, MUC_LLAMA_DOWN_BIAS, neurons, dim, kept->gated, pass->dx,
                    false, pass->dwide));
    MUC_TRY(muc_train_hook_back(pass, MUC_TRAIN_SITE_NEURONS, s->number, rows, neurons, kept->gated,
                                pass->dwide));
    MUC_TRY(neurons_back(s));
    MUC_TRY(muc_train_hook_back(pass, MUC_TRAIN_SITE_FFN, s->number, rows, dim, kept->ffn,
                                pass->dnormed));
    return muc_train_norm_back(pass->ctx, rows, dim, kept->middle, weight(s, MUC_LLAMA_FFN_NORM),
                               kept->middle_factors, pass->dnormed, true, pass->dx,
                               gradient(s, MUC_LLAMA_FFN_NORM),
                               gradient(s, MUC_LLAMA_FFN_NORM_BIAS));
}

/* dy, the gradient by rotated q or k, becomes that by their product */
static muc_status queries_back(const step *s, unsigned norm_row, uint32_t heads,
                               const muc_scalar *raw, const muc_scalar *factors, muc_scalar *dy)
{
    muc_train_pass *pass = s->pass;
    uint32_t width = pass->shape->config.head_dim;

    if (pass->shape->config.position == MUC_POSITION_ROPE)
        MUC_TRY(muc_train_rope(pass->ctx, s->batch->rows, heads, width / 2, s->batch->positions,
                               pass->cosines, pass->sines, true, dy));
    if (!gradient(s, norm_row))
        return MUC_OK;
    return muc_train_norm_back(pass->ctx, s->batch->rows * heads, width, raw, weight(s, norm_row),
                               factors, dy, false, dy, gradient(s, norm_row), NULL);
}

/* pass->dx: the gradient by kept->middle, becomes that by kept->in */
static muc_status attention_back(const step *s)
{
    muc_train_pass *pass = s->pass;
    muc_train_kept *kept = s->kept;
    muc_train_heads h = { s->layer->heads, s->layer->kv_heads, pass->shape->config.head_dim };
    size_t rows = s->batch->rows, dim = pass->shape->config.dim;
    size_t wide = h.heads * h.width, narrow = h.kv_heads * h.width;

    MUC_TRY(product(s, MUC_LLAMA_O, MUC_LLAMA_O_BIAS, wide, dim, kept->heads, pass->dx, false,
                    pass->dwide));
    MUC_TRY(muc_train_hook_back(pass, MUC_TRAIN_SITE_HEADS, s->number, rows, wide, kept->heads,
                                pass->dwide));
    MUC_TRY(muc_train_attend_back(pass->ctx, &h, &s->batch->documents, kept->q, kept->k, kept->v,
                                  kept->lse, pass->dwide, pass->dq, pass->dk, pass->dv));
    MUC_TRY(
        queries_back(s, MUC_LLAMA_Q_NORM, s->layer->heads, kept->q_raw, kept->q_factors, pass->dq));
    MUC_TRY(queries_back(s, MUC_LLAMA_K_NORM, s->layer->kv_heads, kept->k_raw, kept->k_factors,
                         pass->dk));
    MUC_TRY(product(s, MUC_LLAMA_Q, MUC_LLAMA_Q_BIAS, dim, wide, kept->normed, pass->dq, false,
                    pass->dnormed));
    MUC_TRY(product(s, MUC_LLAMA_K, MUC_LLAMA_K_BIAS, dim, narrow, kept->normed, pass->dk, true,
                    pass->dnormed));
    MUC_TRY(product(s, MUC_LLAMA_V, MUC_LLAMA_V_BIAS, dim, narrow, kept->normed, pass->dv, true,
                    pass->dnormed));
    MUC_TRY(muc_train_hook_back(pass, MUC_TRAIN_SITE_ATTENTION, s->number, rows, dim, kept->normed,
                                pass->dnormed));
    return muc_train_norm_back(pass->ctx, rows, dim, kept->in, weight(s, MUC_LLAMA_INPUT_NORM),
                               kept->in_factors, pass->dnormed, true, pass->dx,
                               gradient(s, MUC_LLAMA_INPUT_NORM),
                               gradient(s, MUC_LLAMA_INPUT_NORM_BIAS));
}

/* in the order of rows: tokens, and positions, repeat */
static void embed_back(const uint32_t *ids, size_t rows, size_t dim, const muc_scalar *dx,
                       muc_scalar *dtable)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < dim; i++)
            dtable[ids[r] * dim + i] += dx[r * dim + i];
}

muc_status muc_train_backward(muc_train_pass *pass, const muc_train_batch *batch,
                              const muc_scalar *weights, muc_scalar *gradients)
{
    const muc_train_shape *shape = pass->shape;
    size_t dim = shape->config.dim;

    MUC_TRY(muc_train_hook_back(pass, MUC_TRAIN_SITE_OUTPUT, shape->config.layers, batch->rows, dim,
                                pass->normed, pass->dnormed));
    MUC_TRY(muc_train_norm_back(
        pass->ctx, batch->rows, dim, pass->last, weights + shape->final_norm, pass->last_factors,
        pass->dnormed, false, pass->dx, gradients + shape->final_norm,
        shape->final_norm_bias == MUC_TRAIN_ABSENT ? NULL : gradients + shape->final_norm_bias));
    for (uint32_t i = shape->config.layers; i-- > 0;) {
        step s = { pass, batch, weights, gradients, &shape->layers[i], &pass->kept[i], i };

        MUC_TRY(feed_forward_back(&s));
        MUC_TRY(attention_back(&s));
    }
    embed_back(batch->tokens, batch->rows, dim, pass->dx, gradients + shape->embed);
    if (shape->positions != MUC_TRAIN_ABSENT)
        embed_back(batch->positions, batch->rows, dim, pass->dx, gradients + shape->positions);
    return MUC_OK;
}

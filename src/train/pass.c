/* pass.c - memory of a pass, and the head, whose logits exist a piece of rows at a time. */
#include "models/llama.h"
#include "train/pass.h"

/* rows of logits at a time: at 32,000 columns 64 MiB */
enum { HEAD_ROWS = 512 };

static muc_status room(muc_train_pass *pass, size_t columns, muc_scalar **out)
{
    size_t cells;

    if (__builtin_mul_overflow(pass->capacity, columns, &cells))
        return muc_fail_nomem(pass->ctx, "train", SIZE_MAX);
    return MUC_ARENA_NEW(pass->ctx, &pass->arena, cells, out);
}

/* numbers that a norm keeps of each row, for the way back */
static size_t factors_of(const muc_model_config *config)
{
    return config->norm == MUC_NORM_LAYER ? 2 : 1;
}

static muc_status keep_layer(muc_train_pass *pass, const muc_train_layer *layer,
                             muc_train_kept *kept)
{
    const muc_model_config *config = &pass->shape->config;
    size_t wide = (size_t)layer->heads * config->head_dim;
    size_t narrow = (size_t)layer->kv_heads * config->head_dim, factors = factors_of(config);
    const struct {
        muc_scalar **out;
        size_t columns;
    } rooms[] = {
        { &kept->in, config->dim },
        { &kept->in_factors, factors },
        { &kept->normed, config->dim },
        { &kept->q, wide },
        { &kept->k, narrow },
        { &kept->v, narrow },
        { &kept->lse, layer->heads },
        { &kept->heads, wide },
        { &kept->middle, config->dim },
        { &kept->middle_factors, factors },
        { &kept->ffn, config->dim },
        { &kept->gate, config->ffn == MUC_FFN_GATED ? layer->ffn_dim : 0 },
        { &kept->up, layer->ffn_dim },
        { &kept->gated, layer->ffn_dim },
        { &kept->q_raw, wide },
        { &kept->k_raw, narrow },
        { &kept->q_factors, layer->heads },
        { &kept->k_factors, layer->kv_heads },
    };
    size_t count = config->head_norm ? MUC_COUNT(rooms) : MUC_COUNT(rooms) - 4;

    for (size_t i = 0; i < count; i++)
        MUC_TRY(room(pass, rooms[i].columns, rooms[i].out));
    return MUC_OK;
}

static muc_status gradients_room(muc_train_pass *pass, size_t heads, size_t kv_heads, size_t widest)
{
    const muc_model_config *config = &pass->shape->config;
    size_t width = config->head_dim;

    MUC_TRY(room(pass, config->dim, &pass->dx));
    MUC_TRY(room(pass, config->dim, &pass->dnormed));
    MUC_TRY(room(pass, heads * width, &pass->dq));
    MUC_TRY(room(pass, kv_heads * width, &pass->dk));
    MUC_TRY(room(pass, kv_heads * width, &pass->dv));
    return room(pass, widest, &pass->dwide);
}

static muc_status make(muc_train_pass *pass)
{
    const muc_model_config *config = &pass->shape->config;
    size_t table = (size_t)config->context * (config->head_dim / 2);
    size_t heads = 0, kv_heads = 0, widest = 0;

    if (config->position == MUC_POSITION_ROPE) {
        MUC_TRY(MUC_ARENA_NEW(pass->ctx, &pass->arena, table, &pass->cosines));
        MUC_TRY(MUC_ARENA_NEW(pass->ctx, &pass->arena, table, &pass->sines));
        MUC_TRY(
            muc_llama_rope(pass->ctx, config, false, config->context, pass->cosines, pass->sines));
    }
    MUC_TRY(MUC_ARENA_NEW(pass->ctx, &pass->arena, config->layers, &pass->kept));
    for (uint32_t i = 0; i < config->layers; i++) {
        const muc_train_layer *layer = &pass->shape->layers[i];
        size_t wide = (size_t)layer->heads * config->head_dim;

        heads = layer->heads > heads ? layer->heads : heads;
        kv_heads = layer->kv_heads > kv_heads ? layer->kv_heads : kv_heads;
        wide = layer->ffn_dim > wide ? layer->ffn_dim : wide;
        widest = wide > widest ? wide : widest;
        MUC_TRY(keep_layer(pass, layer, &pass->kept[i]));
    }
    MUC_TRY(room(pass, config->dim, &pass->last));
    MUC_TRY(room(pass, factors_of(config), &pass->last_factors));
    MUC_TRY(room(pass, config->dim, &pass->normed));
    MUC_TRY(MUC_ARENA_NEW(pass->ctx, &pass->arena, pass->capacity, &pass->losses));
    MUC_TRY(MUC_ARENA_NEW(pass->ctx, &pass->arena, HEAD_ROWS * (size_t)config->vocabulary,
                          &pass->logits));
    return gradients_room(pass, heads, kv_heads, widest);
}

muc_status muc_train_pass_make(muc_context *ctx, const muc_train_shape *shape, size_t capacity,
                               muc_train_pass *out)
{
    muc_status status;

    *out = (muc_train_pass){ .ctx = ctx, .shape = shape, .capacity = capacity };
    MUC_TRY(muc_train_open_blas(ctx));
    status = make(out);
    if (status != MUC_OK)
        muc_train_pass_free(out);
    return status;
}

void muc_train_pass_free(muc_train_pass *pass)
{
    muc_arena_free(&pass->arena);
}

/* (1 - s) (p - t) + s (p - q) = (p - t) - s (q - t): p predicted, q by the teacher, t the target */
static muc_status follow_guide(muc_train_pass *pass, const muc_train_batch *batch, size_t first,
                               size_t rows)
{
    const muc_train_guide *guide = pass->guide;
    muc_train_pass *teacher = guide->pass;
    const muc_model_config *config = &teacher->shape->config;

    MUC_TRY(muc_train_linear(pass->ctx, rows, config->dim, config->vocabulary,
                             teacher->normed + first * config->dim,
                             guide->weights + teacher->shape->head, NULL, teacher->logits));
    MUC_TRY(muc_train_entropy(pass->ctx, rows, config->vocabulary, batch->targets + first,
                              -guide->share * batch->weight, teacher->logits,
                              teacher->losses + first));
    for (size_t i = 0; i < rows * config->vocabulary; i++)
        pass->logits[i] += teacher->logits[i];
    return MUC_OK;
}

/* the loss of a piece of rows and, on the way back, their pass->dnormed */
static muc_status head_piece(muc_train_pass *pass, const muc_train_batch *batch, size_t first,
                             size_t rows, const muc_scalar *weights, muc_scalar *gradients)
{
    const muc_model_config *config = &pass->shape->config;
    const muc_scalar *w = weights + pass->shape->head, *x = pass->normed + first * config->dim;

    MUC_TRY(muc_train_linear(pass->ctx, rows, config->dim, config->vocabulary, x, w, NULL,
                             pass->logits));
    MUC_TRY(muc_train_entropy(pass->ctx, rows, config->vocabulary, batch->targets + first,
                              batch->weight, pass->logits, pass->losses + first));
    if (!gradients)
        return MUC_OK;
    if (pass->guide)
        MUC_TRY(follow_guide(pass, batch, first, rows));
    return muc_train_linear_back(pass->ctx, rows, config->dim, config->vocabulary, x, w,
                                 pass->logits, false, pass->dnormed + first * config->dim,
                                 gradients + pass->shape->head, NULL);
}

muc_status muc_train_run(muc_train_pass *pass, const muc_train_batch *batch,
                         const muc_scalar *weights, muc_scalar *gradients, double *loss)
{
    if (batch->rows > pass->capacity)
        return muc_fail(pass->ctx, MUC_BUG, "train", MUC_NO_OFFSET,
                        "a batch of %zu rows, room for %zu", batch->rows, pass->capacity);
    MUC_TRY(muc_train_forward(pass, batch, weights));
    if (gradients && pass->guide)
        MUC_TRY(muc_train_forward(pass->guide->pass, batch, pass->guide->weights));
    for (size_t first = 0; first < batch->rows; first += HEAD_ROWS) {
        size_t rows = batch->rows - first < HEAD_ROWS ? batch->rows - first : HEAD_ROWS;

        MUC_TRY(head_piece(pass, batch, first, rows, weights, gradients));
    }
    *loss = 0;
    for (size_t r = 0; r < batch->rows; r++)
        *loss += pass->losses[r];
    return gradients ? muc_train_backward(pass, batch, weights, gradients) : MUC_OK;
}

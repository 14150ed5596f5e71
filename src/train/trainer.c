/* trainer.c - takes one step of training, measures a loss, and saves and loads what goes on. */
#include "train/trainer.h"

#include <stdlib.h>

static muc_status make(muc_train_trainer *trainer, const muc_train_corpus *corpus, size_t window,
                       size_t rows, const muc_train_place *place)
{
    muc_context *ctx = trainer->ctx;
    size_t elements = trainer->shape->elements;

    MUC_TRY(MUC_NEW_ARRAY(ctx, "train", elements, &trainer->weights));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "train", elements, &trainer->gradients));
    memset(trainer->weights, 0, elements * sizeof(*trainer->weights));
    MUC_TRY(muc_train_adam_make(ctx, elements, &trainer->adam));
    MUC_TRY(muc_train_loader_make(ctx, corpus, window, rows, place, &trainer->loader));
    return muc_train_pass_make(ctx, trainer->shape, rows, &trainer->pass);
}

muc_status muc_train_trainer_make(muc_context *ctx, const muc_train_shape *shape,
                                  const muc_train_recipe *recipe, const muc_train_corpus *corpus,
                                  size_t window, size_t rows, const muc_train_place *place,
                                  muc_train_trainer *out)
{
    muc_status status;

    *out = (muc_train_trainer){ .ctx = ctx, .shape = shape, .recipe = *recipe };
    status = make(out, corpus, window, rows, place);
    if (status != MUC_OK)
        muc_train_trainer_free(out);
    return status;
}

void muc_train_trainer_free(muc_train_trainer *trainer)
{
    free(trainer->weights);
    free(trainer->gradients);
    muc_train_adam_free(&trainer->adam);
    muc_train_loader_free(&trainer->loader);
    muc_train_pass_free(&trainer->pass);
}

muc_status muc_train_step(muc_train_trainer *trainer, muc_train_note *note)
{
    const muc_train_method *method = &trainer->method;
    const muc_scalar *used = trainer->weights;
    uint64_t step = trainer->adam.step;
    muc_train_batch batch;
    double loss;

    note->step = step + 1;
    note->rate = muc_train_rate(&trainer->recipe, step);
    MUC_TRY(muc_train_loader_next(&trainer->loader, &batch, &note->counted));
    note->tokens = batch.rows;
    if (method->prepare)
        MUC_TRY(method->prepare(method->arg, step, trainer->weights, &used));
    memset(trainer->gradients, 0, trainer->shape->elements * sizeof(*trainer->gradients));
    MUC_TRY(muc_train_run(&trainer->pass, &batch, used, trainer->gradients, &loss));
    note->loss = loss / (double)note->counted;
    if (method->adjust)
        MUC_TRY(method->adjust(method->arg, step, trainer->weights, trainer->gradients));
    return muc_train_update(trainer->ctx, trainer->shape, &trainer->recipe, &trainer->adam,
                            trainer->gradients, trainer->weights, &note->norm);
}

muc_status muc_train_measure(muc_train_pass *pass, const muc_train_corpus *corpus, size_t window,
                             const muc_scalar *weights, double *loss, uint64_t *counted)
{
    muc_train_loader loader;
    muc_status status;

    *loss = 0;
    *counted = 0;
    MUC_TRY(muc_train_loader_make(pass->ctx, corpus, window, pass->capacity, NULL, &loader));
    do {
        muc_train_batch batch;
        size_t targets;
        double sum = 0;

        status = muc_train_loader_next(&loader, &batch, &targets);
        if (status == MUC_OK)
            status = muc_train_run(pass, &batch, weights, NULL, &sum);
        *loss += sum;
        *counted += targets;
    } while (status == MUC_OK && loader.place.next < loader.piece_count);
    muc_train_loader_free(&loader);
    return status;
}

muc_status muc_train_trainer_save(const muc_train_trainer *trainer, uint32_t recipe_crc32,
                                  const char *path)
{
    muc_train_trainer t = *trainer;
    const muc_train_state state = { t.shape->elements, t.weights, &t.adam,      &t.loader.place,
                                    recipe_crc32,      t.extra,   t.extra_bytes };

    return muc_train_state_save(t.ctx, &state, path);
}

muc_status muc_train_trainer_load(muc_train_trainer *trainer, uint32_t recipe_crc32,
                                  const char *path)
{
    muc_train_loader *old = &trainer->loader, loader;
    muc_train_place place = old->place;
    const muc_train_state state = {
        trainer->shape->elements, trainer->weights,    &trainer->adam, &place, recipe_crc32,
        trainer->extra,           trainer->extra_bytes
    };

    MUC_TRY(muc_train_state_load(trainer->ctx, path, &state));
    MUC_TRY(
        muc_train_loader_make(trainer->ctx, old->corpus, old->window, old->rows, &place, &loader));
    muc_train_loader_free(old);
    *old = loader;
    return MUC_OK;
}

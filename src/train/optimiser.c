/* optimiser.c - AdamW over one buffer, in pieces that do not depend on threads. */
#include "train/optimiser.h"

#include <stdlib.h>

#include "base/threads.h"

enum { PIECE = 1 << 14 };

static const double PI = 3.14159265358979323846;

double muc_train_rate(const muc_train_recipe *recipe, uint64_t step)
{
    double share;

    if (step < recipe->warm_up)
        return recipe->rate * (double)(step + 1) / (double)recipe->warm_up;
    if (step >= recipe->steps)
        return recipe->least_rate;
    share = (double)(step - recipe->warm_up) / (double)(recipe->steps - recipe->warm_up);
    return recipe->least_rate +
           (recipe->rate - recipe->least_rate) * 0.5 * (1 + muc_cos(PI * share));
}

muc_status muc_train_adam_make(muc_context *ctx, size_t elements, muc_train_adam *out)
{
    muc_train_adam adam = { .elements = elements };
    muc_status status = MUC_NEW_ARRAY(ctx, "train", elements, &adam.means);

    if (status == MUC_OK)
        status = MUC_NEW_ARRAY(ctx, "train", elements, &adam.squares);
    if (status != MUC_OK) {
        muc_train_adam_free(&adam);
        return status;
    }
    memset(adam.means, 0, elements * sizeof(*adam.means));
    memset(adam.squares, 0, elements * sizeof(*adam.squares));
    *out = adam;
    return MUC_OK;
}

void muc_train_adam_free(muc_train_adam *adam)
{
    free(adam->means);
    free(adam->squares);
}

typedef struct update {
    const muc_train_shape *shape;
    muc_train_adam *adam;
    const muc_scalar *gradients;
    muc_scalar *weights;
    double *sums; /* of squares, one a piece */
    muc_scalar rate, factor, keep_mean, keep_square, mean_scale, square_scale, epsilon, shrink;
} update;

static size_t end_of(const update *u, size_t piece)
{
    return (piece + 1) * PIECE < u->adam->elements ? (piece + 1) * PIECE : u->adam->elements;
}

MUC_VECTOR_LOOP static muc_status sum_piece(void *arg, size_t piece)
{
    const update *u = arg;
    double lanes[8] = { 0 };

    for (size_t i = piece * PIECE; i < end_of(u, piece); i++)
        lanes[i % 8] += (double)u->gradients[i] * (double)u->gradients[i];
    u->sums[piece] = 0;
    for (size_t i = 0; i < 8; i++)
        u->sums[piece] += lanes[i];
    return MUC_OK;
}

MUC_VECTOR_LOOP static void update_range(const update *u, size_t first, size_t end, muc_scalar keep)
{
    muc_scalar *means = u->adam->means, *squares = u->adam->squares;

    for (size_t i = first; i < end; i++) {
        muc_scalar g = u->gradients[i] * u->factor, mean, square;

        mean = means[i] * u->keep_mean + g * (1 - u->keep_mean);
        square = squares[i] * u->keep_square + g * g * (1 - u->keep_square);
        means[i] = mean;
        squares[i] = square;
        u->weights[i] =
            u->weights[i] * keep - u->rate * (mean * u->mean_scale) /
                                       (muc_train_sqrt(square * u->square_scale) + u->epsilon);
    }
}

static muc_status update_tensor_piece(void *arg, size_t piece)
{
    const update *u = arg;
    size_t first = piece * PIECE, end = end_of(u, piece);

    for (size_t t = 0; t < u->shape->tensor_count; t++) {
        const muc_train_tensor *tensor = &u->shape->tensors[t];
        size_t from = tensor->first > first ? tensor->first : first;
        size_t to = tensor->first + tensor->elements;

        to = to < end ? to : end;
        if (from < to)
            update_range(u, from, to, tensor->decays ? u->shrink : 1);
    }
    return MUC_OK;
}

static muc_status norm_of(muc_context *ctx, update *u, size_t pieces, double *norm)
{
    double sum = 0;

    MUC_TRY(muc_parallel_for(ctx, pieces, sum_piece, u));
    for (size_t i = 0; i < pieces; i++)
        sum += u->sums[i];
    *norm = sqrt(sum);
    if (isfinite(sum))
        return MUC_OK;
    return muc_fail(ctx, MUC_MALFORMED, "train", MUC_NO_OFFSET,
                    "the gradients of step %llu are not finite: the learning rate is too high",
                    (unsigned long long)u->adam->step);
}

muc_status muc_train_update(muc_context *ctx, const muc_train_shape *shape,
                            const muc_train_recipe *recipe, muc_train_adam *adam,
                            const muc_scalar *gradients, muc_scalar *weights, double *norm)
{
    update u = { .shape = shape, .adam = adam, .gradients = gradients, .weights = weights };
    size_t pieces = (adam->elements + PIECE - 1) / PIECE;
    double rate = muc_train_rate(recipe, adam->step), done = (double)adam->step + 1;
    muc_status status;

    MUC_TRY(MUC_NEW_ARRAY(ctx, "train", pieces, &u.sums));
    status = norm_of(ctx, &u, pieces, norm);
    if (status == MUC_OK) {
        u.factor =
            (muc_scalar)(recipe->clip > 0 && *norm > recipe->clip ? recipe->clip / *norm : 1);
        u.rate = (muc_scalar)rate;
        u.shrink = (muc_scalar)(1 - rate * recipe->decay);
        u.keep_mean = (muc_scalar)recipe->beta1;
        u.keep_square = (muc_scalar)recipe->beta2;
        u.mean_scale = (muc_scalar)(1 / (1 - muc_pow(recipe->beta1, done)));
        u.square_scale = (muc_scalar)(1 / (1 - muc_pow(recipe->beta2, done)));
        u.epsilon = (muc_scalar)recipe->epsilon;
        status = muc_parallel_for(ctx, pieces, update_tensor_piece, &u);
        adam->step++;
    }
    free(u.sums);
    return status;
}

static bool ends_with(const char *name, const char *end)
{
    size_t size = strlen(name), end_size = strlen(end);

    return size >= end_size && strcmp(name + size - end_size, end) == 0;
}

void muc_train_initialise(const muc_train_shape *shape, muc_train_random *random,
                          muc_scalar *weights)
{
    double residual = 0.02 / sqrt(2.0 * shape->config.layers);

    memset(weights, 0, shape->elements * sizeof(*weights));
    for (size_t t = 0; t < shape->tensor_count; t++) {
        const muc_train_tensor *tensor = &shape->tensors[t];
        bool is_residual = tensor->id == MUC_LLAMA_O || tensor->id == MUC_LLAMA_DOWN;
        bool is_bias = ends_with(tensor->name, ".bias");

        for (size_t i = 0; i < tensor->elements; i++)
            if (tensor->columns)
                weights[tensor->first + i] =
                    (muc_scalar)(muc_train_random_normal(random) * (is_residual ? residual : 0.02));
            else
                weights[tensor->first + i] = is_bias ? 0 : 1;
    }
}

/* weights.c - where Keras 1 and 2, and where Keras 3 put a layer's arrays. */
#include "formats/keras/weights.h"

#include <ctype.h>
#include <string.h>

enum { MAX_ARRAYS = 64, MAX_CLASS = 100 };

muc_status muc_keras_weights_open(muc_keras_weights *weights)
{
    /* the second since Keras 3, the third of the .keras files that TensorFlow 2.12 and 2.13 wrote
     */
    static const char *const roots[] = { "model_weights", "layers",
                                         "_layer_checkpoint_dependencies" };
    bool found = false;

    weights->root = "";
    weights->numbered = false;
    for (size_t i = 0; i < MUC_COUNT(roots) && !found; i++) {
        MUC_TRY(muc_hdf5_exists(weights->file, roots[i], &found));
        if (found) {
            weights->root = roots[i];
            weights->numbered = i > 0;
        }
    }
    return MUC_OK;
}

/* Keras's own to_snake_case: MaxPooling2D is max_pooling2d, LeakyReLU leaky_re_lu */
static void snake_case(const char *name, char *out)
{
    size_t length = 0;

    for (size_t i = 0; name[i] && i < MAX_CLASS; i++) {
        unsigned char c = (unsigned char)name[i];

        if (i > 0 && isupper(c) &&
            (islower((unsigned char)name[i - 1]) || islower((unsigned char)name[i + 1])))
            out[length++] = '_';
        out[length++] = (char)tolower(c);
    }
    out[length] = '\0';
}

static muc_status numbered_arrays(muc_keras_weights *w, const muc_keras_layer *layer,
                                  const char **paths, size_t *count)
{
    char class_name[2 * MAX_CLASS + 1];
    const char *folder;
    bool more = true;

    snake_case(layer->class_name, class_name);
    if (layer->ordinal == 0)
        MUC_TRY(muc_arena_format(w->ctx, w->arena, &folder, "%s/%s", w->root, class_name));
    else
        MUC_TRY(muc_arena_format(w->ctx, w->arena, &folder, "%s/%s_%u", w->root, class_name,
                                 layer->ordinal));
    for (*count = 0; *count < MAX_ARRAYS; ++*count) {
        MUC_TRY(muc_arena_format(w->ctx, w->arena, &paths[*count], "%s/vars/%zu", folder, *count));
        MUC_TRY(muc_hdf5_exists(w->file, paths[*count], &more));
        if (!more)
            break;
    }
    return MUC_OK;
}

static muc_status named_arrays(muc_keras_weights *w, const muc_keras_layer *layer,
                               const char **paths, size_t *count)
{
    const char *group, *const *names;
    bool found;

    *count = 0;
    MUC_TRY(muc_arena_format(w->ctx, w->arena, &group, "%s%s%s", w->root, w->root[0] ? "/" : "",
                             layer->name));
    MUC_TRY(muc_hdf5_exists(w->file, group, &found));
    if (!found) /* a layer without weights may have no group */
        return MUC_OK;
    MUC_TRY(muc_hdf5_strings(w->file, group, "weight_names", &found, &names, count));
    if (*count > MAX_ARRAYS)
        return muc_fail(w->ctx, MUC_UNSUPPORTED, w->name, MUC_NO_OFFSET,
                        "layer '%.200s': %zu arrays of weights, at most %d", layer->name, *count,
                        MAX_ARRAYS);
    for (size_t i = 0; i < *count; i++)
        MUC_TRY(muc_arena_format(w->ctx, w->arena, &paths[i], "%s/%s", group, names[i]));
    return MUC_OK;
}

muc_status muc_keras_weights_of(muc_keras_weights *weights, const muc_keras_layer *layer,
                                const char *const **paths, size_t *count)
{
    const char **list;

    MUC_TRY(MUC_ARENA_NEW(weights->ctx, weights->arena, MAX_ARRAYS, &list));
    *paths = list;
    return weights->numbered ? numbered_arrays(weights, layer, list, count)
                             : named_arrays(weights, layer, list, count);
}

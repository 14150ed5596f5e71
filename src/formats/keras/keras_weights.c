/* keras_weights.c - finds a layer's arrays, where Keras 1 and 2, and where Keras 3 put them. */
#include "formats/keras/keras_weights.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

enum { MAX_ARRAYS = 64, MAX_CLASS = 100 };

/* Whether an attribute of the file's root begins with text; *out stays where there is none. */
static muc_status root_begins(muc_keras_weights *w, const char *attribute, const char *text,
                              bool *out)
{
    const char *const *strings;
    size_t count;
    bool found;

    MUC_TRY(muc_hdf5_strings(w->file, "", attribute, &found, &strings, &count));
    if (found && count == 1)
        *out = strncmp(strings[0], text, strlen(text)) == 0;
    return MUC_OK;
}

muc_status muc_keras_weights_open(muc_keras_weights *weights)
{
    /* the second since Keras 3, the third of the .keras files that TensorFlow 2.12 and 2.13 wrote
     */
    static const char *const roots[] = { "model_weights", "layers",
                                         "_layer_checkpoint_dependencies" };
    bool found = false;

    weights->root = "";
    weights->group = NULL;
    weights->numbered = false;
    for (size_t i = 0; i < MUC_COUNT(roots) && !found; i++) {
        MUC_TRY(muc_hdf5_exists(weights->file, roots[i], &found));
        if (found) {
            weights->root = roots[i];
            weights->numbered = i > 0;
        }
    }
    weights->theano = false;
    MUC_TRY(root_begins(weights, "backend", "theano", &weights->theano));
    return root_begins(weights, "keras_version", "3", &weights->third);
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

/* classes are counted in the order of layers */
static muc_status numbered_folder(muc_keras_weights *w, const muc_keras_layer *layer,
                                  const char **out)
{
    char class_name[2 * MAX_CLASS + 1];

    snake_case(layer->class_name, class_name);
    return layer->ordinal == 0
               ? muc_arena_format(w->ctx, w->arena, out, "%s/%s", w->root, class_name)
               : muc_arena_format(w->ctx, w->arena, out, "%s/%s_%u", w->root, class_name,
                                  layer->ordinal);
}

static muc_status named_group(muc_keras_weights *w, const muc_keras_layer *layer, const char **out)
{
    return muc_arena_format(w->ctx, w->arena, out, "%s%s%s", w->root, w->root[0] ? "/" : "",
                            layer->name);
}

muc_status muc_keras_weights_inner(muc_keras_weights *weights, const muc_keras_layer *layer,
                                   muc_keras_weights *inner)
{
    const char *folder, *name = strrchr(weights->root, '/');

    *inner = *weights;
    if (!weights->numbered)
        return weights->group ? MUC_OK : named_group(weights, layer, &inner->group);
    MUC_TRY(numbered_folder(weights, layer, &folder));
    return muc_arena_format(weights->ctx, weights->arena, &inner->root, "%s/%s", folder,
                            name ? name + 1 : weights->root);
}

static muc_status numbered_arrays(muc_keras_weights *w, const muc_keras_layer *layer,
                                  const char **paths, size_t *count)
{
    const char *folder;
    bool more = true;

    MUC_TRY(numbered_folder(w, layer, &folder));
    for (*count = 0; *count < MAX_ARRAYS; ++*count) {
        MUC_TRY(muc_arena_format(w->ctx, w->arena, &paths[*count], "%s/vars/%zu", folder, *count));
        MUC_TRY(muc_hdf5_exists(w->file, paths[*count], &more));
        if (!more)
            break;
    }
    return MUC_OK;
}

/* "../LAYER/kernel:0", or of Keras 1 "LAYER_W" */
static bool is_of_layer(const char *weight, const char *layer)
{
    size_t length = strlen(layer);
    const char *last = strrchr(weight, '/');

    if (!last)
        return strncmp(weight, layer, length) == 0 && weight[length] == '_';
    return (size_t)(last - weight) >= length && strncmp(last - length, layer, length) == 0 &&
           ((size_t)(last - weight) == length || last[-(ptrdiff_t)length - 1] == '/');
}

/* the group of an inner model's outermost one lists the weights of all layers in it */
static muc_status named_arrays(muc_keras_weights *w, const muc_keras_layer *layer,
                               const char **paths, size_t *count)
{
    const char *group = w->group, *const * names;
    size_t all;
    bool found;

    *count = 0;
    if (!group)
        MUC_TRY(named_group(w, layer, &group));
    MUC_TRY(muc_hdf5_exists(w->file, group, &found));
    if (!found) /* a layer without weights may have no group */
        return MUC_OK;
    MUC_TRY(muc_hdf5_strings(w->file, group, "weight_names", &found, &names, &all));
    for (size_t i = 0; i < all; i++) {
        if (w->group && !is_of_layer(names[i], layer->name))
            continue;
        if (*count == MAX_ARRAYS)
            return muc_fail(w->ctx, MUC_UNSUPPORTED, w->name, MUC_NO_OFFSET,
                            "layer '%.200s': more than %d arrays of weights", layer->name,
                            MAX_ARRAYS);
        MUC_TRY(muc_arena_format(w->ctx, w->arena, &paths[(*count)++], "%s/%s", group, names[i]));
    }
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

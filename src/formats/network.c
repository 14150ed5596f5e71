/* network.c - what readers of networks share: files beside them, arrays by name, refusals. */
#include "formats/network.h"

#include <string.h>

#include "base/text.h"
#include "muc/guess.h"

/* an array of that name; for an input that int8 has renamed, of the name that the file gave it */
static const muc_tensor_view *find_array(const muc_tensor_view *arrays, size_t count,
                                         const char *name)
{
    static const char renamed[] = ".int8";
    size_t length = strlen(name), end = sizeof(renamed) - 1;

    for (size_t i = 0; i < count; i++)
        if (strcmp(arrays[i].name, name) == 0)
            return &arrays[i];
    if (length <= end || strcmp(name + length - end, renamed) != 0)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (strlen(arrays[i].name) == length - end &&
            strncmp(arrays[i].name, name, length - end) == 0)
            return &arrays[i];
    return NULL;
}

const muc_tensor_view *muc_network_match(const muc_tensor_view *arrays, size_t array_count,
                                         const char *const *names, size_t count, size_t i)
{
    for (size_t j = 0; j < count; j++)
        if (find_array(arrays, array_count, names[j]))
            return find_array(arrays, array_count, names[i]);
    return i < array_count ? &arrays[i] : NULL;
}

muc_status muc_network_refuse_input(muc_context *ctx, const char *path,
                                    const muc_tensor_view *arrays, size_t array_count,
                                    const char *name)
{
    enum { MOST_TOLD = 20 };
    muc_guess guess = { .word = name };
    muc_text text = { 0 };
    muc_status status;

    muc_text_add(&text, "input '%s' has no array", name);
    if (array_count == 0)
        muc_text_add(&text, ": give a .npz or .npy file with --input");
    else
        muc_text_add(&text, "; the file has ");
    for (size_t i = 0; i < array_count; i++) {
        if (i < MOST_TOLD)
            muc_text_add(&text, "%s'%s'", i ? ", " : "", arrays[i].name);
        muc_guess_try(&guess, arrays[i].name);
    }
    if (array_count)
        muc_text_add(&text, "%s: give one of each input's name, or one for each in their order",
                     array_count > MOST_TOLD ? ", ..." : "");
    if (guess.best)
        muc_text_add(&text, "; is '%s' meant for it?", guess.best);
    status = muc_text_status(ctx, &text);
    if (status == MUC_OK)
        status = muc_fail(ctx, MUC_USAGE, path, MUC_NO_OFFSET, "%s", text.data);
    muc_text_free(&text);
    return status;
}

/* its folder with its slash, for the root folder is nothing else */
muc_status muc_network_map(muc_context *ctx, const char *path, muc_network *network,
                           muc_source *out)
{
    const char *slash = strrchr(path, '/');

    *out = (muc_source){ .folder = "." };
    MUC_TRY(muc_arena_string(ctx, &network->arena, path, strlen(path), &out->path));
    if (slash)
        MUC_TRY(
            muc_arena_string(ctx, &network->arena, path, (size_t)(slash - path) + 1, &out->folder));
    return muc_mapped_open(ctx, &network->arena, &network->files, out->path, &out->bytes);
}

muc_status muc_network_open_arch(muc_context *ctx, const muc_source *source,
                                 const muc_network_options *options, muc_network *network,
                                 muc_source *out)
{
    if (!options->arch)
        return muc_fail(ctx, MUC_USAGE, source->path, MUC_NO_OFFSET,
                        "weights without the network they belong to: give it with --arch FILE");
    network->arch_used = true;
    return muc_network_map(ctx, options->arch, network, out);
}

muc_status muc_network_refuse_shapes(muc_context *ctx, const muc_source *source,
                                     const muc_network_options *options)
{
    return options->dim_count || options->type_count
               ? muc_fail(ctx, MUC_USAGE, source->path, MUC_NO_OFFSET,
                          "the file says itself which lengths and types it has; --dim and --type "
                          "are for ONNX files, which may leave them open")
               : MUC_OK;
}

void muc_network_hint(muc_context *ctx, const muc_graph *graph)
{
    const char *first = NULL;

    for (uint32_t i = 0; i < muc_expr_input_count(graph->pool); i++) {
        const muc_expr_input *input = muc_expr_get_input(graph->pool, i);

        if (input->lo != 1 || input->hi != MUC_NETWORK_MOST_DIM)
            continue;
        muc_hint(ctx, "dimension '%s' is open, 1..%d", input->name, MUC_NETWORK_MOST_DIM);
        first = first ? first : input->name;
    }
    if (first)
        muc_hint(ctx, "--dim %s=1 sets it, --dim %s=1..16 narrows it", first, first);
}

void muc_network_close(muc_network *network)
{
    muc_graph_free(network->graph);
    muc_mapped_close(network->files);
    muc_arena_free(&network->arena);
    memset(network, 0, sizeof(*network));
}

/* network.c - the registry of networks' formats, opening and closing. */
#include "formats/network.h"

#include <string.h>

#include "base/text.h"
#include "muc/guess.h"

/* the last row ends the list, which optional rows may leave empty */
static const muc_network_format formats[] = {
#define MUC_NETWORK(name, meaning) \
    { #name, meaning, muc_##name##_probe_network, muc_##name##_read_network },
#include "formats/networks.def"
#undef MUC_NETWORK
    { NULL, NULL, NULL, NULL },
};

size_t muc_network_format_count(void)
{
    return MUC_COUNT(formats) - 1;
}

const muc_network_format *muc_network_format_get(size_t i)
{
    return &formats[i];
}

const muc_network_format *muc_network_recognise(const muc_source *source)
{
    for (const muc_network_format *format = formats; format->name; format++)
        if (format->probe(source))
            return format;
    return NULL;
}

static const muc_tensor_view *find_array(const muc_tensor_view *arrays, size_t count,
                                         const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(arrays[i].name, name) == 0)
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

static muc_status read_source(muc_context *ctx, const muc_source *source,
                              const muc_network_options *options, muc_network *network)
{
    static const muc_network_options none;
    const muc_network_format *format = muc_network_recognise(source);

    if (!format)
        return muc_fail(ctx, MUC_UNSUPPORTED, source->path, MUC_NO_OFFSET,
                        "no network of a format that this muc reads");
    network->format = format->name;
    MUC_TRY(format->read(ctx, source, options ? options : &none, network));
    if (options && options->arch && !network->arch_used)
        return muc_fail(ctx, MUC_USAGE, source->path, MUC_NO_OFFSET,
                        "the file holds a network of its own; --arch is for weights alone");
    return network->listing.lacks ? MUC_OK : muc_graph_verify(ctx, network->graph);
}

/* its folder with its slash, for the root folder is nothing else */
static muc_status map_source(muc_context *ctx, const char *path, muc_network *network,
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
    return map_source(ctx, options->arch, network, out);
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

static muc_status open_path(muc_context *ctx, const char *path, const muc_network_options *options,
                            muc_network *network)
{
    muc_source source;

    MUC_TRY(map_source(ctx, path, network, &source));
    network->path = source.path;
    return read_source(ctx, &source, options, network);
}

muc_status muc_network_open(muc_context *ctx, const char *path, const muc_network_options *options,
                            muc_network *out)
{
    muc_status status;

    memset(out, 0, sizeof(*out));
    status = open_path(ctx, path, options, out);
    if (status != MUC_OK)
        muc_network_close(out);
    return status;
}

muc_status muc_network_open_bytes(muc_context *ctx, muc_bytes bytes,
                                  const muc_network_options *options, muc_network *out)
{
    const muc_source source = { .path = bytes.name, .bytes = bytes };
    muc_status status;

    memset(out, 0, sizeof(*out));
    out->path = bytes.name;
    status = read_source(ctx, &source, options, out);
    if (status != MUC_OK)
        muc_network_close(out);
    return status;
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
        muc_hint(ctx, "--dim sets it, as %s=1 or %s=1..16", first, first);
}

void muc_network_close(muc_network *network)
{
    muc_graph_free(network->graph);
    muc_mapped_close(network->files);
    muc_arena_free(&network->arena);
    memset(network, 0, sizeof(*network));
}

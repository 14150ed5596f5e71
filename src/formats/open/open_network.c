/* open_network.c - opens a network by the first format that recognises it. */
#include <string.h>

#include "formats/network.h"

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

static muc_status open_path(muc_context *ctx, const char *path, const muc_network_options *options,
                            muc_network *network)
{
    muc_source source;

    MUC_TRY(muc_network_map(ctx, path, network, &source));
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

/* keras.c - reads .h5 and .keras files as networks. */
#include <string.h>

#include "formats/keras/archive.h"
#include "formats/keras/keras_import.h"
#include "formats/network.h"

bool muc_keras_probe_network(const muc_source *source)
{
    return !source->is_folder &&
           (muc_hdf5_probe(source->bytes) || muc_keras_archive_probe(source->bytes));
}

/* Some meanings changed with Keras 3. A .keras file says its version in metadata.json, a .h5 in an
 * attribute, a configuration alone by having no version but modules. */
static muc_status is_third(muc_context *ctx, const muc_keras_archive *archive,
                           const json_t *document, bool *out)
{
    const char *version = json_string_value(json_object_get(document, "keras_version"));
    json_t *metadata;

    *out = version ? version[0] == '3' : json_object_get(document, "module") != NULL;
    if (!archive->metadata.data)
        return MUC_OK;
    MUC_TRY(muc_json_parse(ctx, archive->metadata, 0, &metadata));
    version = json_string_value(json_object_get(metadata, "keras_version"));
    *out = !version || version[0] == '3';
    json_decref(metadata);
    return MUC_OK;
}

static muc_status import_document(muc_context *ctx, const char *path, const json_t *document,
                                  muc_hdf5 *file, bool third, bool may_list, muc_network *network)
{
    muc_keras_model model;
    muc_keras_weights weights = {
        .ctx = ctx, .arena = &network->arena, .file = file, .name = path, .third = third
    };
    muc_keras_import im = {
        .ctx = ctx, .model = &model, .weights = &weights, .arena = &network->arena
    };

    MUC_TRY(muc_keras_model_read(ctx, &network->arena, path, document, &model));
    MUC_TRY(muc_keras_list_model(&im, may_list, &network->listing));
    if (network->listing.lacks)
        return MUC_OK;
    MUC_TRY(muc_keras_weights_open(&weights));
    MUC_TRY(muc_graph_new(ctx, path, &network->graph));
    im.graph = network->graph;
    return muc_keras_import_model(&im);
}

/* The configuration of a .h5 is an attribute of its root; of weights alone it is another file, as
 * Model.to_json() gives it. */
static muc_status find_config(muc_context *ctx, muc_hdf5 *file, const muc_source *source,
                              const muc_network_options *options, muc_network *network,
                              muc_bytes *config)
{
    const char *const *strings;
    muc_source arch;
    size_t count;
    bool found;

    MUC_TRY(muc_hdf5_strings(file, "", "model_config", &found, &strings, &count));
    if (!found || count != 1) {
        MUC_TRY(muc_network_open_arch(ctx, source, options, network, &arch));
        *config = arch.bytes;
    } else {
        *config = (muc_bytes){ (const uint8_t *)strings[0], strlen(strings[0]), source->path };
    }
    return MUC_OK;
}

muc_status muc_keras_read_network(muc_context *ctx, const muc_source *source,
                                  const muc_network_options *options, muc_network *network)
{
    muc_keras_archive archive = { .weights = source->bytes };
    json_t *document;
    muc_status status;
    muc_hdf5 *file;
    bool third;

    MUC_TRY(muc_network_refuse_shapes(ctx, source, options));
    if (!muc_hdf5_probe(source->bytes))
        MUC_TRY(muc_keras_archive_read(ctx, &network->arena, source->bytes, &archive));
    MUC_TRY(muc_hdf5_open(ctx, &network->arena, archive.weights, &file));
    if (!archive.config.data)
        MUC_TRY(find_config(ctx, file, source, options, network, &archive.config));
    MUC_TRY(muc_json_parse(ctx, archive.config, 0, &document));
    status = is_third(ctx, &archive, document, &third);
    if (status == MUC_OK)
        status =
            import_document(ctx, source->path, document, file, third, options->may_list, network);
    json_decref(document);
    return status;
}

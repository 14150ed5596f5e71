/* fingerprint.c - computes a checksum of a graph, and checks that a network is the one that a
 * folder names. */
#include "run/fingerprint.h"

#include <string.h>

#include "base/text.h"

muc_status muc_graph_fingerprint(muc_context *ctx, const muc_graph *graph, uint32_t *out)
{
    muc_text text = { 0 };
    muc_status status;
    const char *body;

    muc_graph_print(graph, &text);
    status = muc_text_status(ctx, &text);
    body = text.data ? strchr(text.data, '\n') : NULL; /* after the graph's name */
    *out = 0;
    if (status == MUC_OK && body)
        *out = muc_crc32(0, (const uint8_t *)body, strlen(body));
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        if (graph->tensors[i].kind == MUC_TENSOR_CONST && graph->tensors[i].data)
            *out = muc_crc32(*out, graph->tensors[i].data, (size_t)graph->tensors[i].bytes);
    muc_text_free(&text);
    return status;
}

muc_status muc_other_network(muc_context *ctx, const char *path, const json_t *json,
                             const char *network)
{
    const char *options = json_string_value(json_object_get(json, "options"));

    return muc_fail(ctx, MUC_MISMATCH, path, MUC_NO_OFFSET,
                    "it was made of another network than '%s', or with other options: muc "
                    "compile was given %s",
                    network, options && *options ? options : "none");
}

muc_status muc_check_fingerprint(muc_context *ctx, const char *path, const json_t *json,
                                 const muc_graph *graph, const char *network)
{
    const json_t *told = json_object_get(json, "fingerprint");
    uint32_t found;

    MUC_TRY(muc_graph_fingerprint(ctx, graph, &found));
    return told && json_integer_value(told) != (json_int_t)found
               ? muc_other_network(ctx, path, json, network)
               : MUC_OK;
}

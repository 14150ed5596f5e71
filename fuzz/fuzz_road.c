/* The whole road: any file is opened, compiled for a microcontroller or the CNN chip, and the
 * folder read back, which has to succeed, and run. The first byte says what for; of what begins
 * with '{' behind it, a language model's folder, config.json ends at the first zero byte, and
 * model.safetensors follows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "run/opened_model.h"
#include "fuzz.h"
#include "muc/compile.h"
#include "muc/folder.h"

enum {
    MOST_BYTES = 1 << 16,
    MOST_NODES = 200
}; /* of the tensors together; so that no run is long */

static const muc_compile_options ways[] = {
    { .target = "mcu" },
    { .target = "cnnchip" },
    { .target = "mcu", .machine = "siracusa" },
    { .target = "cnnchip", .pes = "4" },
    { .target = "mcu", .machine = "mps2-an500", .patch = "least" },
    { .target = "cnnchip", .element = "fp16" },
    { .target = "mcu", .machine = "rv32", .fuse = "least" },
    { .target = "mcu", .machine = "mps3-an547" },
};

static char folder[] = "/tmp/muc-road-XXXXXX", network[64], model[64], config[96], weights[96],
            made[64];

static void remove_folder(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -r %s", folder);
    if (system(command) != 0)
        perror(folder);
}

static void make_folder(void)
{
    if (!mkdtemp(folder))
        abort();
    atexit(remove_folder);
    snprintf(network, sizeof(network), "%s/network", folder);
    snprintf(model, sizeof(model), "%s/model", folder);
    snprintf(config, sizeof(config), "%s/config.json", model);
    snprintf(weights, sizeof(weights), "%s/model.safetensors", model);
    snprintf(made, sizeof(made), "%s/made", folder);
    if (mkdir(model, 0777) != 0)
        abort();
}

static void write_file(const char *path, const uint8_t *data, size_t size)
{
    FILE *file = fopen(path, "wb");

    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0)
        abort();
}

/* the path to be opened */
static const char *write_input(const uint8_t *data, size_t size)
{
    const uint8_t *end = size && data[0] == '{' ? memchr(data, 0, size) : NULL;

    if (!end) {
        write_file(network, data, size);
        return network;
    }
    write_file(config, data, (size_t)(end - data));
    write_file(weights, end + 1, size - (size_t)(end - data) - 1);
    return model;
}

/* whether all that may take long is short */
static bool is_small(muc_context *ctx, const muc_model *opened)
{
    const muc_graph *graph = opened->network.graph;
    uint32_t most[MUC_EXPR_MAX_INPUTS] = { 0 };
    uint64_t total = 0, elements, bytes;

    if (opened->kind != MUC_MODEL_NETWORK)
        return opened->context <= 64;
    for (uint32_t i = 0; i < muc_expr_input_count(graph->pool); i++)
        most[i] = muc_expr_get_input(graph->pool, i)->hi;
    for (uint32_t i = 0; i < graph->tensor_count && total <= MOST_BYTES; i++) {
        if (muc_tensor_measure_bound(ctx, graph, &graph->tensors[i], most, &elements, &bytes) !=
            MUC_OK)
            return false;
        total += bytes <= MOST_BYTES ? bytes : MOST_BYTES + (uint64_t)1;
    }
    return total <= MOST_BYTES && graph->node_count <= MOST_NODES;
}

static void read_back(muc_context *ctx)
{
    muc_report *report = NULL;

    if (muc_report_folder(ctx, made, NULL, &report) != MUC_OK) {
        fprintf(stderr, "the folder cannot be read back: %s\n", muc_error_message(ctx));
        abort();
    }
    muc_report_free(report);
}

/* Runs what was made beside its network: the chip's on its simulator; C, each of which takes a
 * compiler, where MUC_FUZZ_VERIFY is set. */
static void verify(muc_context *ctx, const muc_model *opened, bool is_chip)
{
    muc_report *report = NULL; /* one that fails may be begun */
    muc_status status;

    if (!is_chip && !getenv("MUC_FUZZ_VERIFY"))
        return;
    status = opened->kind == MUC_MODEL_NETWORK
                 ? muc_verify_folder(ctx, made, opened, NULL, &report)
                 : muc_verify_language_folder(ctx, made, opened, NULL, &report);
    if (status == MUC_BUG || status == MUC_MALFORMED) {
        fprintf(stderr, "%s\n", muc_error_message(ctx));
        abort();
    }
    muc_report_free(report);
    muc_error_clear(ctx);
}

static void drive(muc_context *ctx, const char *path, const muc_compile_options *options)
{
    const muc_model_options how = { .tokenizer =
                                        MUC_SOURCE_ROOT "/fuzz/corpus/tokenizer/huggingface" };
    muc_report *report = NULL;
    muc_model *opened;
    muc_status status;

    if (muc_model_open(ctx, path, path == model ? &how : NULL, &opened) != MUC_OK)
        return;
    if (is_small(ctx, opened)) {
        status = muc_compile(ctx, opened, options, made, &report);
        if (status == MUC_BUG) {
            fprintf(stderr, "%s\n", muc_error_message(ctx));
            abort();
        }
        muc_report_free(report);
        if (status == MUC_OK) {
            read_back(ctx);
            verify(ctx, opened, strcmp(options->target, "cnnchip") == 0);
        }
    }
    muc_model_close(opened);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    muc_context *ctx = muc_context_new(1);

    if (!network[0])
        make_folder();
    if (size > 1)
        drive(ctx, write_input(data + 1, size - 1), &ways[data[0] % MUC_COUNT(ways)]);
    muc_context_free(ctx);
    return 0;
}

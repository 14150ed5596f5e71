/* A file of a folder that muc wrote, changed: the first line says which, the rest is what it holds
 * instead. The folder is read as report, run and a further compile read it, and put back. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "targets/cnnchip/run/chip_folder.h"
#include "targets/mcu/emit/code_folder.h"
#include "fuzz.h"
#include "muc/compile.h"
#include "muc/folder.h"

/* a convolution, a host step, a pool */
static const char network[] = "graph tiny\n"
                              "tensor x = input f32 [1, 1, 2, 2]\n"
                              "tensor w = const f32 [1, 1, 3, 3] values 1, 2, 3, 4, 5, 6, 7, 8, 9\n"
                              "node a f32 [1, 1, 2, 2] = conv x, w pads=[1, 1, 1, 1]\n"
                              "node t f32 [1, 1, 2, 2] = tanh a\n"
                              "node y f32 [1, 1, 2, 2] = max_pool t kernel=[1, 1]\n"
                              "output y\n";

/* each stays open: file systems write a file that is emptied at once */
static struct file {
    const char *name;
    bool is_chip;
    int handle;
    uint8_t *data;
    size_t size;
} files[] = {
    { "chip/map.json", true, -1, NULL, 0 },     { "chip/FILES", true, -1, NULL, 0 },
    { "chip/host_0.graph", true, -1, NULL, 0 }, { "chip/host.bin", true, -1, NULL, 0 },
    { "chip/program.bin", true, -1, NULL, 0 },  { "chip/frame.bin", true, -1, NULL, 0 },
    { "chip/filter.bin", true, -1, NULL, 0 },   { "mcu/tiny.json", false, -1, NULL, 0 },
    { "mcu/FILES", false, -1, NULL, 0 },
};

static char folder[] = "/tmp/muc-fuzz-XXXXXX", graph[64], targets[2][64];

static void remove_folder(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -r %s", folder);
    if (system(command) != 0)
        perror(folder);
}

static muc_status make(muc_context *ctx, bool is_chip)
{
    const muc_compile_options options = { .target = is_chip ? "cnnchip" : "mcu" };
    muc_report *report = NULL;
    muc_model *model;
    muc_status status = muc_model_open(ctx, graph, NULL, &model);

    if (status != MUC_OK)
        abort();
    status = muc_compile(ctx, model, &options, targets[is_chip], &report);
    muc_report_free(report);
    muc_model_close(model);
    return status;
}

static void put(const struct file *file, const uint8_t *data, size_t size)
{
    if (pwrite(file->handle, data, size, 0) != (ssize_t)size ||
        ftruncate(file->handle, (off_t)size) != 0)
        abort();
}

static void take(muc_context *ctx, struct file *file)
{
    char path[96];
    muc_file mapped;

    snprintf(path, sizeof(path), "%s/%s", folder, file->name);
    if (access(path, F_OK) != 0)
        return; /* the network needs none */
    if (muc_file_open(ctx, path, &mapped) != MUC_OK)
        abort();
    file->size = mapped.bytes.size;
    file->data = malloc(file->size + 1);
    memcpy(file->data, mapped.bytes.data, file->size);
    muc_file_close(&mapped);
    file->handle = open(path, O_RDWR);
}

static void make_folders(muc_context *ctx)
{
    if (!mkdtemp(folder))
        abort();
    atexit(remove_folder);
    snprintf(graph, sizeof(graph), "%s/tiny.graph", folder);
    snprintf(targets[0], sizeof(targets[0]), "%s/mcu", folder);
    snprintf(targets[1], sizeof(targets[1]), "%s/chip", folder);
    if (muc_file_write(ctx, graph, network, sizeof(network) - 1) != MUC_OK ||
        make(ctx, false) != MUC_OK || make(ctx, true) != MUC_OK)
        abort();
    for (size_t i = 0; i < MUC_COUNT(files); i++)
        take(ctx, &files[i]);
}

/* as run does, but for what takes a compiler */
static void read_code(muc_context *ctx)
{
    muc_arena arena = { 0 };
    muc_code_folder code;
    muc_bytes gathered;

    if (muc_code_open(ctx, targets[0], &code) == MUC_OK) {
        if (muc_code_bind_most(ctx, &code) == MUC_OK)
            (void)muc_code_gather(ctx, &code, NULL, 0, &arena, &gathered);
        muc_code_close(&code);
    }
    muc_arena_free(&arena);
    muc_error_clear(ctx);
}

static void read_chip(muc_context *ctx)
{
    const muc_array_run how = { .input = NULL };
    muc_report *report = NULL;

    (void)muc_run_folder(ctx, targets[1], &how, NULL, &report);
    muc_report_free(report);
    muc_error_clear(ctx);
}

static void read_folder(muc_context *ctx, bool is_chip)
{
    muc_report *report = NULL; /* one that fails may be begun */

    if (is_chip)
        read_chip(ctx);
    else
        read_code(ctx);
    (void)muc_report_folder(ctx, targets[is_chip], NULL, &report);
    muc_report_free(report);
    muc_error_clear(ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool ready;
    const uint8_t *line = size ? memchr(data, '\n', size) : NULL;
    size_t length = line ? (size_t)(line - data) : 0;
    muc_context *ctx = muc_context_new(1);

    if (!ready)
        make_folders(ctx);
    ready = true;
    for (size_t i = 0; line && i < MUC_COUNT(files); i++)
        if (files[i].handle >= 0 && strlen(files[i].name) == length &&
            memcmp(files[i].name, data, length) == 0) {
            put(&files[i], line + 1, size - length - 1);
            read_folder(ctx, files[i].is_chip);
            put(&files[i], files[i].data, files[i].size);
        }
    muc_context_free(ctx);
    return 0;
}

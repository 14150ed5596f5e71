/* The map of a folder for the CNN chip, beside the other files of a folder as muc wrote it: it is
 * opened, run on zeros and drawn. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "driver/chip.h"
#include "fuzz.h"
#include "muc/compile.h"
#include "muc/model.h"
#include "muc/report.h"

/* a convolution, a host step, a pool */
static const char network[] = "graph tiny\n"
                              "tensor x = input f32 [1, 1, 2, 2]\n"
                              "tensor w = const f32 [1, 1, 3, 3] values 1, 2, 3, 4, 5, 6, 7, 8, 9\n"
                              "node a f32 [1, 1, 2, 2] = conv x, w pads=[1, 1, 1, 1]\n"
                              "node t f32 [1, 1, 2, 2] = tanh a\n"
                              "node y f32 [1, 1, 2, 2] = max_pool t kernel=[1, 1]\n"
                              "output y\n";

static char folder[] = "/tmp/muc-fuzz-XXXXXX", chip[64];

static void remove_folder(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -r %s", folder);
    if (system(command) != 0)
        perror(folder);
}

/* returns its map.json, to be written */
static int make_folder(muc_context *ctx)
{
    const muc_compile_options options = { .target = "cnnchip" };
    char graph[64], map[80];
    muc_report *report;
    muc_model *model;
    int file;

    if (!mkdtemp(folder))
        abort();
    atexit(remove_folder);
    snprintf(graph, sizeof(graph), "%s/tiny.graph", folder);
    snprintf(chip, sizeof(chip), "%s/chip", folder);
    snprintf(map, sizeof(map), "%s/map.json", chip);
    if (muc_file_write(ctx, graph, network, sizeof(network) - 1) != MUC_OK ||
        muc_model_open(ctx, graph, NULL, &model) != MUC_OK ||
        muc_compile(ctx, model, &options, chip, &report) != MUC_OK)
        abort();
    muc_report_free(report);
    muc_model_close(model);
    file = open(map, O_RDWR);
    if (file < 0)
        abort();
    return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    muc_context *ctx = muc_context_new(1);
    static int map = -1;       /* stays open: file systems write a file that is emptied at once */
    muc_report *report = NULL; /* one that fails may be begun */

    if (map < 0)
        map = make_folder(ctx);
    if (pwrite(map, data, size, 0) != (ssize_t)size || ftruncate(map, (off_t)size) != 0)
        abort();
    muc_chip_report(ctx, chip, &report);
    muc_report_free(report);
    muc_context_free(ctx);
    return 0;
}

/* What muc merge reads: a part of an evaluation or of a quantized model, or two of them, of which
 * the first has as many bytes as the first four say. What blocks become is opened. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "fuzz.h"
#include "muc/compile.h"
#include "muc/eval.h"

enum { SIZE_BYTES = 4 };

static char folder[] = "/tmp/muc-fuzz-XXXXXX", paths[2][64], merged[64];

static void remove_folder(void)
{
    unlink(paths[0]);
    unlink(paths[1]);
    unlink(merged);
    rmdir(folder);
}

static void make_folder(void)
{
    if (!mkdtemp(folder))
        abort();
    snprintf(paths[0], sizeof(paths[0]), "%s/0", folder);
    snprintf(paths[1], sizeof(paths[1]), "%s/1", folder);
    snprintf(merged, sizeof(merged), "%s/merged", folder);
    atexit(remove_folder);
}

static void put(const char *path, const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + 1);
    FILE *file = fopen(path, "wb");

    if (!copy || !file)
        abort();
    memcpy(copy, data, size);
    fuzz_seal_bdt(copy, size);
    if (fwrite(copy, 1, size, file) != size || fclose(file) != 0)
        abort();
    free(copy);
}

static void merge(muc_context *ctx, size_t count)
{
    const char *const parts[] = { paths[0], paths[1] };
    muc_report *report = NULL;
    muc_model *model;

    if (muc_merge_parts(ctx, parts, count, &report) == MUC_OK)
        muc_report_free(report);
    muc_error_clear(ctx);
    if (muc_merge_blocks(ctx, parts, count, merged, &report) == MUC_OK) {
        muc_report_free(report);
        if (muc_model_open(ctx, merged, NULL, &model) == MUC_OK)
            muc_model_close(model);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t first = size >= SIZE_BYTES ? muc_load_u32(data) : 0;
    muc_context *ctx = muc_context_new(1);

    if (!ctx)
        abort();
    if (!*merged)
        make_folder();
    if (size >= SIZE_BYTES && first <= size - SIZE_BYTES) {
        data += SIZE_BYTES;
        size -= SIZE_BYTES;
        put(paths[0], data, first);
        put(paths[1], data + first, size - first);
        merge(ctx, size > first ? 2 : 1);
    }
    muc_context_free(ctx);
    return 0;
}

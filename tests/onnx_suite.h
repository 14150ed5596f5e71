/* onnx_suite.h - the tests of ONNX's own suite as Debian has them, and lists of names of them. */
#ifndef TEST_ONNX_SUITE_H
#define TEST_ONNX_SUITE_H

#include <dirent.h>

#include "base/file.h"
#include "base/text.h"
#include "check.h"
#include "run/network_run.h"
#include "formats/onnx/onnx_tensor.h"

#define ROOT "/usr/share/libonnx-testdata/data"
enum { MAX_TESTS = 2048, MAX_ARRAYS = 64 };

static const char *const groups[] = { "node", "simple", "pytorch-operator", "pytorch-converted" };

typedef struct suite {
    char *names[MAX_TESTS];
    size_t count;
} suite;

static inline int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static inline void find_tests(suite *out)
{
    for (size_t g = 0; g < MUC_COUNT(groups); g++) {
        char path[512];
        struct dirent *entry;
        DIR *dir;

        snprintf(path, sizeof(path), ROOT "/%s", groups[g]);
        dir = opendir(path);
        while (dir && (entry = readdir(dir)) && out->count < MAX_TESTS) {
            if (strncmp(entry->d_name, "test_", 5) != 0)
                continue;
            snprintf(path, sizeof(path), "%s/%s", groups[g], entry->d_name);
            out->names[out->count++] = strdup(path);
        }
        if (dir)
            closedir(dir);
    }
    qsort(out->names, out->count, sizeof(out->names[0]), by_text);
}

static inline void free_tests(suite *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->names[i]);
}

/* What is read of one test's folder. */
typedef struct onnx_files {
    muc_context *ctx;
    muc_arena arena;
    muc_mapped_file *files;
    const char *folder;
} onnx_files;

/* "input" or "output" arrays of a set of data */
static inline muc_status read_arrays(onnx_files *f, const char *set, const char *kind,
                                     muc_tensor_view *out, size_t *count)
{
    for (*count = 0; *count < MAX_ARRAYS; ++*count) {
        char path[512];
        muc_bytes bytes;

        snprintf(path, sizeof(path), "%s/%s/%s_%zu.pb", f->folder, set, kind, *count);
        if (!muc_path_exists(path))
            return MUC_OK;
        MUC_TRY(muc_mapped_open(f->ctx, &f->arena, &f->files, path, &bytes));
        MUC_TRY(muc_onnx_read_tensor(f->ctx, &f->arena, bytes, &out[*count]));
    }
    return MUC_OK;
}

/* numpy had no bf16 when the files were written: their arrays are of its bits */
static inline void mend_bf16(const muc_graph *graph, muc_tensor_view *inputs, size_t input_count,
                             muc_tensor_view *outputs)
{
    size_t at = 0;

    for (uint32_t i = 0; i < graph->tensor_count && at < input_count; i++) {
        if (graph->tensors[i].kind != MUC_TENSOR_INPUT)
            continue;
        if (graph->tensors[i].dtype == MUC_BF16 && inputs[at].dtype == MUC_U16)
            inputs[at].dtype = MUC_BF16;
        at++;
    }
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (graph->tensors[graph->outputs[i]].dtype == MUC_BF16 && outputs[i].dtype == MUC_U16)
            outputs[i].dtype = MUC_BF16;
}

static inline void read_list(const char *path, suite *out)
{
    FILE *file = fopen(path, "r");
    char line[256];

    assert_non_null(file);
    while (fgets(line, sizeof(line), file) && out->count < MAX_TESTS) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] != '\0' && line[0] != '#')
            out->names[out->count++] = strdup(line);
    }
    fclose(file);
}

static inline bool is_listed(const suite *list, const char *name)
{
    return bsearch(&name, list->names, list->count, sizeof(list->names[0]), by_text) != NULL;
}

#endif

/* ONNX's own tests of operators: models with inputs and outputs that its authors computed.
 *
 * tests/onnx_passing.txt lists those that pass, and may only grow: a listed one that fails fails
 * here, one that passes and is not listed is told. With --all every test is told with its result,
 * with a name that one alone.
 */
#include <dirent.h>
#include <math.h>

#include "base/file.h"
#include "base/text.h"
#include "check.h"
#include "driver/network.h"
#include "formats/onnx/tensor.h"

#define ROOT "/usr/share/libonnx-testdata/data"
#define LIST "tests/onnx_passing.txt"
enum { MAX_TESTS = 2048, MAX_ARRAYS = 64, LEAST_PASSING = 780 };

static const char *const groups[] = { "node", "simple", "pytorch-operator", "pytorch-converted" };

typedef struct suite {
    char *names[MAX_TESTS];
    size_t count;
} suite;

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void find_tests(suite *out)
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

static void free_tests(suite *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->names[i]);
}

/* ---- one test ---- */

typedef struct trial {
    muc_context *ctx;
    muc_arena arena;
    muc_mapped_file *files;
    const char *folder;
    char reason[512]; /* why it fails */
} trial;

static muc_status read_arrays(trial *t, const char *set, const char *kind, muc_tensor_view *out,
                              size_t *count)
{
    for (*count = 0; *count < MAX_ARRAYS; ++*count) {
        char path[512];
        muc_bytes bytes;

        snprintf(path, sizeof(path), "%s/%s/%s_%zu.pb", t->folder, set, kind, *count);
        if (!muc_path_exists(path))
            return MUC_OK;
        MUC_TRY(muc_mapped_open(t->ctx, &t->arena, &t->files, path, &bytes));
        MUC_TRY(muc_onnx_read_tensor(t->ctx, &t->arena, bytes, &out[*count]));
    }
    return MUC_OK;
}

/* numpy's allclose with the tolerances of ONNX's runner */
static bool close_enough(double found, double expected)
{
    if (isnan(found) || isnan(expected))
        return isnan(found) && isnan(expected);
    return found == expected || fabs(found - expected) <= 1e-7 + 1e-3 * fabs(expected);
}

static bool same(trial *t, const muc_tensor_view *found, const muc_tensor_view *expected)
{
    muc_dtype dtype = expected->dtype == MUC_BF16 ? MUC_F32 : expected->dtype;
    bool exact = muc_dtype_get(dtype)->kind == MUC_DTYPE_INTEGER;

    if (found->dtype != dtype || found->rank != expected->rank ||
        memcmp(found->dims, expected->dims, found->rank * sizeof(found->dims[0])) != 0) {
        snprintf(t->reason, sizeof(t->reason), "'%s' has another type or shape", found->name);
        return false;
    }
    for (uint64_t i = 0; i < found->elements; i++) {
        double x = muc_array_element(found, i), y = muc_array_element(expected, i);

        if (exact ? x == y : close_enough(x, y))
            continue;
        snprintf(t->reason, sizeof(t->reason), "'%s': element %llu is %.9g, expected %.9g",
                 found->name, (unsigned long long)i, x, y);
        return false;
    }
    return true;
}

/* numpy had no bf16 when the files were written: their arrays are of its bits */
static void mend_bf16(const muc_graph *graph, muc_tensor_view *inputs, size_t input_count,
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

static bool run_set(trial *t, const char *set)
{
    muc_tensor_view inputs[MAX_ARRAYS], expected[MAX_ARRAYS], *found;
    size_t input_count, expected_count;
    muc_network network = { 0 };
    muc_network_options options = { 0 };
    char path[512];
    bool passed = true;

    snprintf(path, sizeof(path), "%s/model.onnx", t->folder);
    if (read_arrays(t, set, "input", inputs, &input_count) != MUC_OK ||
        read_arrays(t, set, "output", expected, &expected_count) != MUC_OK)
        return false;
    options.known = inputs;
    options.known_count = input_count;
    if (muc_network_open(t->ctx, path, &options, &network) != MUC_OK)
        return false;
    passed = expected_count == network.graph->output_count;
    if (passed)
        mend_bf16(network.graph, inputs, input_count, expected);
    passed = passed && muc_network_run(t->ctx, network.graph, inputs, input_count, &t->arena,
                                       &found) == MUC_OK;
    for (size_t i = 0; i < expected_count && passed; i++)
        passed = same(t, &found[i], &expected[i]);
    muc_network_close(&network);
    return passed;
}

static bool try_test(const char *name, char *reason, size_t size)
{
    char folder[384], set[32], path[512];
    trial t = { .ctx = muc_context_new(1), .folder = folder };
    bool passed = true;
    int sets = 0;

    snprintf(folder, sizeof(folder), ROOT "/%s", name);
    for (; passed; sets++) {
        snprintf(set, sizeof(set), "test_data_set_%d", sets);
        snprintf(path, sizeof(path), "%s/%s", folder, set);
        if (!muc_path_is_dir(path))
            break;
        passed = run_set(&t, set);
    }
    snprintf(reason, size, "%s", t.reason[0] ? t.reason : muc_error_message(t.ctx));
    muc_mapped_close(t.files);
    muc_arena_free(&t.arena);
    muc_context_free(t.ctx);
    return passed && sets > 0;
}

/* ---- the list ---- */

static void read_list(suite *out)
{
    FILE *file = fopen(LIST, "r");
    char line[256];

    assert_non_null(file);
    while (fgets(line, sizeof(line), file) && out->count < MAX_TESTS) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] != '\0' && line[0] != '#')
            out->names[out->count++] = strdup(line);
    }
    fclose(file);
}

static bool is_listed(const suite *list, const char *name)
{
    return bsearch(&name, list->names, list->count, sizeof(list->names[0]), by_text) != NULL;
}

static void every_test_of_the_list_passes(void **state)
{
    static suite tests, list;
    unsigned failed = 0;
    char reason[512];

    (void)state;
    if (!muc_path_is_dir(ROOT)) {
        print_message("skipped: " ROOT " is not at hand (Debian: libonnx-testdata)\n");
        skip();
    }
    find_tests(&tests);
    read_list(&list);
    for (size_t i = 1; i < list.count; i++)
        CHECK(strcmp(list.names[i - 1], list.names[i]) < 0); /* sorted, each once */
    for (size_t i = 0; i < tests.count; i++) {
        bool passed = try_test(tests.names[i], reason, sizeof(reason));

        if (passed && !is_listed(&list, tests.names[i]))
            print_message("%s passes: add it to " LIST "\n", tests.names[i]);
        if (!passed && is_listed(&list, tests.names[i])) {
            print_message("%s failed: %s\n", tests.names[i], reason);
            failed++;
        }
    }
    free_tests(&tests);
    CHECK_EQ(failed, 0);
    free_tests(&list);
}

static void the_list_is_long_enough(void **state)
{
    static suite list;
    size_t nodes = 0;

    (void)state;
    read_list(&list);
    for (size_t i = 0; i < list.count; i++)
        nodes += strncmp(list.names[i], "node/", 5) == 0;
    free_tests(&list);
    CHECK(nodes >= LEAST_PASSING);
}

static int tell(const char *name)
{
    char reason[512];
    bool passed = try_test(name, reason, sizeof(reason));

    printf("%s %s%s%s\n", passed ? "pass" : "FAIL", name, passed ? "" : ": ", passed ? "" : reason);
    return passed ? 0 : 1;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_test_of_the_list_passes),
        cmocka_unit_test(the_list_is_long_enough),
    };
    static suite all;

    if (argc < 2)
        return cmocka_run_group_tests(tests, NULL, NULL);
    if (strcmp(argv[1], "--all") != 0)
        return tell(argv[1]);
    find_tests(&all);
    for (size_t i = 0; i < all.count; i++)
        tell(all.names[i]);
    free_tests(&all);
    return 0;
}

/* ONNX's own tests of operators: models with inputs and outputs that its authors computed.
 *
 * tests/onnx_passing.txt lists those that pass, and may only grow: a listed one that fails fails
 * here, one that passes and is not listed is told. With --all every test is told with its result,
 * with a name that one alone.
 */
#include <math.h>

#include "onnx_suite.h"

#define LIST "tests/onnx_passing.txt"
enum { LEAST_PASSING = 780 };

/* ---- one test ---- */

typedef struct trial {
    onnx_files f;
    char reason[512]; /* why it fails */
} trial;

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

static bool run_set(trial *t, const char *set)
{
    muc_tensor_view inputs[MAX_ARRAYS], expected[MAX_ARRAYS], *found;
    size_t input_count, expected_count;
    muc_network network = { 0 };
    muc_network_options options = { 0 };
    char path[512];
    bool passed = true;

    snprintf(path, sizeof(path), "%s/model.onnx", t->f.folder);
    if (read_arrays(&t->f, set, "input", inputs, &input_count) != MUC_OK ||
        read_arrays(&t->f, set, "output", expected, &expected_count) != MUC_OK)
        return false;
    options.known = inputs;
    options.known_count = input_count;
    if (muc_network_open(t->f.ctx, path, &options, &network) != MUC_OK)
        return false;
    passed = expected_count == network.graph->output_count;
    if (passed)
        mend_bf16(network.graph, inputs, input_count, expected);
    passed = passed && muc_network_run(t->f.ctx, network.graph, inputs, input_count, &t->f.arena,
                                       &found) == MUC_OK;
    for (size_t i = 0; i < expected_count && passed; i++)
        passed = same(t, &found[i], &expected[i]);
    muc_network_close(&network);
    return passed;
}

static bool try_test(const char *name, char *reason, size_t size)
{
    char folder[384], set[32], path[512];
    trial t = { .f = { .ctx = muc_context_new(1), .folder = folder } };
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
    snprintf(reason, size, "%s", t.reason[0] ? t.reason : muc_error_message(t.f.ctx));
    muc_mapped_close(t.f.files);
    muc_arena_free(&t.f.arena);
    muc_context_free(t.f.ctx);
    return passed && sets > 0;
}

/* ---- the list ---- */

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
    read_list(LIST, &list);
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
    read_list(LIST, &list);
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

/* Every network of Deeploy's test suite at hand, read and run against its expected outputs:
 * integers exactly, real numbers within 1e-4 (bf16: one unit in the last place). */
#include <dirent.h>
#include <sys/stat.h>

#include "deeploy_folder.h"

enum { MAX_FOLDERS = 256 };

static char *folders[MAX_FOLDERS];
static size_t folder_count;

static void find_folders(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    char child[1024];

    while (dir && (entry = readdir(dir))) {
        struct stat st;

        snprintf(child, sizeof(child), "%s/%s", path, entry->d_name);
        if (entry->d_name[0] == '.' || stat(child, &st) != 0)
            continue;
        if (S_ISDIR(st.st_mode))
            find_folders(child);
        else if (strcmp(entry->d_name, "network.onnx") == 0 && folder_count < MAX_FOLDERS)
            folders[folder_count++] = strdup(path);
    }
    if (dir)
        closedir(dir);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static float bf16_of(double x)
{
    float single = (float)x;
    uint32_t bits;

    memcpy(&bits, &single, sizeof(bits));
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000; /* nearest, ties to even */
    memcpy(&single, &bits, sizeof(bits));
    return single;
}

/* distance in units in the last place of bf16 */
static double bf16_steps(double a, double b)
{
    float fa = bf16_of(a), fb = bf16_of(b);
    int32_t ia, ib;

    memcpy(&ia, &fa, sizeof(ia));
    memcpy(&ib, &fb, sizeof(ib));
    return fabs((double)(ia >> 16) - (double)(ib >> 16));
}

/* Outputs of bf16 networks are stored as those of float32 inputs; Deeploy's bench works them out
 * anew from the inputs as bf16. All of them are one sum. */
static double expected_of(const folder *f, size_t which, size_t i, bool bf16)
{
    const muc_graph *graph = f->network.graph;

    if (!bf16)
        return folder_number(&f->outputs[which], i);
    CHECK(graph->node_count == 1 && graph->nodes[0].op == MUC_OP_ADD && f->input_count == 2);
    return (double)bf16_of(folder_number(&f->inputs[0], i)) +
           (double)bf16_of(folder_number(&f->inputs[1], i));
}

static void compare_output(const folder *f, size_t which, const muc_ref_view *value)
{
    const muc_tensor_view *golden = &f->outputs[which];
    const muc_graph *graph = f->network.graph;
    bool bf16 = graph->tensors[graph->outputs[which]].dtype == MUC_BF16;
    bool exact = muc_dtype_get(value->dtype)->kind == MUC_DTYPE_INTEGER;

    CHECK_EQ(value->elements, golden->elements);
    CHECK(exact || !strstr(f->path, "/Int")); /* what is called so, computes integers */
    for (size_t i = 0; i < value->elements; i++) {
        double found = folder_value(value, i), expected = expected_of(f, which, i, bf16);
        bool same = bf16    ? bf16_steps(found, expected) <= 1
                    : exact ? found == expected
                            : fabs(found - expected) <= 1e-4;

        if (!same)
            fail_msg("%s: output %zu, element %zu: %.9g, expected %.9g", f->path, which, i, found,
                     expected);
    }
}

static void run_folder(muc_context *ctx, const char *path, bool by_value)
{
    muc_ref_input inputs[FOLDER_MAX_INPUTS];
    muc_ref *ref;
    folder f;

    folder_open(ctx, path, by_value, &f);
    CHECK(f.input_count >= f.graph_input_count);
    for (uint32_t i = 0; i < f.graph_input_count; i++) {
        const muc_tensor *tensor = &f.network.graph->tensors[f.graph_inputs[i]];

        inputs[i].name = tensor->name;
        inputs[i].data = folder_convert(&f.inputs[i], tensor->dtype, &inputs[i].bytes);
    }
    CHECK_OK(ctx, muc_ref_open(ctx, f.network.graph, &ref));
    CHECK_OK(ctx, muc_ref_run(ref, (const uint32_t[MUC_EXPR_MAX_INPUTS]){ 0 }, inputs,
                              f.graph_input_count));
    CHECK_EQ(f.network.graph->output_count, f.output_count);
    for (size_t i = 0; i < f.output_count; i++) {
        muc_ref_view value;

        CHECK(muc_ref_get(ref, f.network.graph->outputs[i], &value));
        compare_output(&f, i, &value);
    }
    muc_ref_close(ref);
    for (uint32_t i = 0; i < f.graph_input_count; i++)
        free((void *)(uintptr_t)inputs[i].data);
    folder_close(&f);
}

static void conforms(void **state)
{
    muc_context *ctx;

    ctx = muc_context_new(1);
    run_folder(ctx, *state, true);
    muc_context_free(ctx);
}

/* What operators of QuantLib tell is enough: no types are given. */
static void operators_alone_tell_the_types(void **state)
{
    static const char *const names[] = { "Models/microLlama/INT8/microLlama8",
                                         "Models/CCT/Int/ICCT", "Models/MLPerf/KeywordSpotting",
                                         "Kernels/Integer/Conv/PW_2D_RQ/Regular_RQ",
                                         "Kernels/Integer/TrueIntegerDiv" };
    muc_context *ctx;

    (void)state;
    ctx = muc_context_new(1);
    for (size_t i = 0; i < MUC_COUNT(names); i++) {
        char path[512];

        snprintf(path, sizeof(path), "%s/%s", shared_data("deeploy"), names[i]);
        run_folder(ctx, path, false);
    }
    muc_context_free(ctx);
}

int main(void)
{
    static struct CMUnitTest tests[MAX_FOLDERS + 1];
    const char *root = "../shared/data/deeploy";

    find_folders(root);
    qsort(folders, folder_count, sizeof(*folders), by_name);
    for (size_t i = 0; i < folder_count; i++)
        tests[i] = (struct CMUnitTest){ .name = folders[i] + strlen(root) + 1,
                                        .test_func = conforms,
                                        .initial_state = folders[i] };
    tests[folder_count] = (struct CMUnitTest)cmocka_unit_test(operators_alone_tell_the_types);
    return _cmocka_run_group_tests("deeploy", tests, folder_count + 1, NULL, NULL);
}

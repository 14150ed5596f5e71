/* ONNX's own tests of operators as C code: each compiles for mcu, and what the code computes on the
 * host is what the reference does.
 *
 * tests/onnx_mcu_passing.txt lists those that do, and may only grow. Here every listed one is
 * lowered, and one in SAMPLE is built and run; with --all every test that the reference passes is,
 * and told.
 */
#include "base/half.h"
#include "targets/target.h"
#include "mcu_network.h"
#include "onnx_suite.h"

#define REFERENCE "tests/onnx_passing.txt"
#define LIST "tests/onnx_mcu_passing.txt"
enum { SAMPLE = 20, BATCH = 64 };

/* A network of the suite with the arrays of its first set. */
typedef struct trial {
    const char *name;
    char folder[384];
    onnx_files f;
    muc_network network;
    muc_tensor_view inputs[MAX_ARRAYS];
    size_t input_count;
    size_t index; /* in the batch */
    bool lowered;
} trial;

/* ---- one test ---- */

static muc_status open_trial(trial *t)
{
    muc_network_options options = { 0 };
    muc_tensor_view expected[MAX_ARRAYS];
    size_t expected_count;
    char path[512];

    MUC_TRY(read_arrays(&t->f, "test_data_set_0", "input", t->inputs, &t->input_count));
    MUC_TRY(read_arrays(&t->f, "test_data_set_0", "output", expected, &expected_count));
    options.known = t->inputs;
    options.known_count = t->input_count;
    snprintf(path, sizeof(path), "%s/model.onnx", t->folder);
    MUC_TRY(muc_network_open(t->f.ctx, path, &options, &t->network));
    mend_bf16(t->network.graph, t->inputs, t->input_count, expected);
    return muc_prepare_mcu(t->f.ctx, t->network.graph);
}

static muc_status lower_trial(trial *t, const char *name, mcu_batch *batch)
{
    t->f.ctx = muc_context_new(1);
    t->f.folder = t->folder;
    snprintf(t->folder, sizeof(t->folder), ROOT "/%s", name);
    t->name = name;
    MUC_TRY(open_trial(t));
    MUC_TRY(mcu_batch_try(batch, t->f.ctx, t->network.graph, "host"));
    t->index = batch->count - 1;
    t->lowered = true;
    return MUC_OK;
}

static void close_trial(trial *t)
{
    muc_network_close(&t->network);
    muc_mapped_close(t->f.files);
    muc_arena_free(&t->f.arena);
    muc_context_free(t->f.ctx);
}

/* the bytes of a value as the generated code has them; the reference keeps 16-bit reals as f32 */
static const void *bytes_of(const muc_ref *ref, const muc_graph *graph, const muc_tensor *tensor,
                            muc_arena *arena, muc_context *ctx)
{
    muc_ref_view view;
    uint16_t *narrow;

    CHECK(muc_ref_get(ref, (uint32_t)(tensor - graph->tensors), &view));
    if (view.dtype == tensor->dtype)
        return view.data;
    CHECK_OK(ctx, muc_arena_new(ctx, arena, view.elements + 1, 2, (void **)&narrow));
    for (size_t i = 0; i < view.elements; i++)
        narrow[i] = tensor->dtype == MUC_F16 ? muc_f16_of_f32(((const float *)view.data)[i])
                                             : muc_bf16_of_f32(((const float *)view.data)[i]);
    return narrow;
}

/* numpy's allclose with the tolerances of ONNX's runner; all but f32 is exact */
static bool is_same(const muc_tensor *tensor, const void *found, const void *expected, size_t bytes,
                    char *reason, size_t size)
{
    const uint8_t *f = found, *e = expected;
    uint32_t width = muc_dtype_get(tensor->dtype)->block_bytes;

    for (size_t at = 0; at < bytes; at += width) {
        if (memcmp(f + at, e + at, width) == 0)
            continue;
        if (tensor->dtype == MUC_F32) {
            float x, y;

            memcpy(&x, f + at, sizeof(x));
            memcpy(&y, e + at, sizeof(y));
            if (x == y || (x != x && y != y) || fabsf(x - y) <= 1e-7f + 1e-3f * fabsf(y))
                continue;
        }
        snprintf(reason, size, "'%s' differs at byte %zu", tensor->name, at);
        return false;
    }
    return true;
}

/* the code beside the reference, on the suite's arrays */
static bool run_trial(trial *t, mcu_batch *batch, char *reason, size_t size)
{
    const muc_mcu_program *program = &batch->networks[t->index].build->program;
    const muc_graph *graph = t->network.graph;
    muc_arena arena = { 0 };
    mcu_arena code;
    muc_ref *ref;
    bool same = true;

    snprintf(reason, size, "the lengths of dimensions are arguments");
    if (program->arguments)
        return false;
    if (muc_network_evaluate(t->f.ctx, t->network.graph, t->inputs, t->input_count, &arena, &ref) !=
        MUC_OK) {
        snprintf(reason, size, "%s", muc_error_message(t->f.ctx));
        return false;
    }
    code = mcu_arena_new(batch, t->index);
    for (uint32_t i = 0; i < program->inputs.count; i++) {
        const muc_mcu_value *value = &program->values[program->inputs.values[i]];

        memcpy(code.in[i], bytes_of(ref, graph, value->tensor, &arena, t->f.ctx), value->bytes);
    }
    code.run(code.arena);
    for (uint32_t i = 0; i < program->outputs.count && same; i++) {
        const muc_mcu_value *value = &program->values[program->outputs.values[i]];

        same = is_same(value->tensor, code.out[i],
                       bytes_of(ref, graph, value->tensor, &arena, t->f.ctx), value->bytes, reason,
                       size);
    }
    mcu_arena_free(&code);
    muc_ref_close(ref);
    muc_arena_free(&arena);
    return same;
}

/* ---- many ---- */

typedef struct tally {
    const suite *list;
    bool told; /* of every test */
    unsigned passed, failed;
} tally;

static void tell(tally *t, const char *name, bool passed, const char *reason)
{
    bool listed = is_listed(t->list, name);

    t->passed += passed;
    t->failed += !passed && listed;
    if (t->told)
        printf("%s %s%s%s\n", passed ? "pass" : "FAIL", name, passed ? "" : ": ",
               passed ? "" : reason);
    else if (!passed && listed)
        print_message("%s failed: %s\n", name, reason);
    else if (passed && !listed)
        print_message("%s passes: add it to " LIST "\n", name);
}

/* lowers tests first, first + step, .. of s until a batch is full; runs them if asked */
static size_t try_batch(const suite *s, size_t first, size_t step, bool runs, tally *t)
{
    mcu_batch batch = mcu_batch_new();
    trial *trials = calloc(BATCH, sizeof(*trials));
    size_t count = 0, i = first;
    char reason[512];

    for (; i < s->count && count < BATCH; i += step, count++)
        if (lower_trial(&trials[count], s->names[i], &batch) != MUC_OK)
            tell(t, s->names[i], false, muc_error_message(trials[count].f.ctx));
    if (runs && batch.count)
        mcu_batch_build(&batch, "cc");
    for (size_t k = 0; k < count; k++)
        if (trials[k].lowered)
            tell(t, trials[k].name, !runs || run_trial(&trials[k], &batch, reason, sizeof(reason)),
                 reason);
    for (size_t k = 0; k < batch.count; k++)
        batch.networks[k].graph = NULL; /* the trial's own */
    mcu_batch_free(&batch);
    for (size_t k = 0; k < count; k++)
        close_trial(&trials[k]);
    free(trials);
    return i;
}

static void skip_without_tests(void)
{
    if (muc_path_is_dir(ROOT))
        return;
    print_message("skipped: " ROOT " is not at hand (Debian: libonnx-testdata)\n");
    skip();
}

static void every_test_of_the_list_has_code(void **state)
{
    static suite list;
    tally t = { .list = &list };

    (void)state;
    skip_without_tests();
    read_list(LIST, &list);
    for (size_t i = 0; i < list.count;)
        i = try_batch(&list, i, 1, false, &t);
    CHECK_EQ(t.failed, 0);
    free_tests(&list);
}

static void code_of_a_sample_computes_what_ref_computes(void **state)
{
    static suite list;
    tally t = { .list = &list };

    (void)state;
    skip_without_tests();
    read_list(LIST, &list);
    for (size_t i = 0; i < list.count;)
        i = try_batch(&list, i, SAMPLE, true, &t);
    CHECK_EQ(t.failed, 0);
    free_tests(&list);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_test_of_the_list_has_code),
        cmocka_unit_test(code_of_a_sample_computes_what_ref_computes),
    };
    static suite list, all;
    tally t = { .list = &list, .told = true };

    if (argc < 2)
        return cmocka_run_group_tests(tests, NULL, NULL);
    read_list(LIST, &list);
    if (strcmp(argv[1], "--all") == 0 || strcmp(argv[1], "--lower") == 0)
        read_list(REFERENCE, &all);
    else
        all.names[all.count++] = strdup(argv[1]);
    for (size_t i = 0; i < all.count;)
        i = try_batch(&all, i, 1, strcmp(argv[1], "--lower") != 0, &t);
    printf("%u of %zu pass\n", t.passed, all.count);
    free_tests(&list);
    free_tests(&all);
    return t.failed != 0;
}

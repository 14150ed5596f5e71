/* test_one_program.c - one program for all lengths: the exports of microLlama in Deeploy's suite
 * become one graph, which with each export's calibration record and caches gives that export's
 * expected outputs, caches included, bit for bit: in ref, and as the C code of one compilation. */
#include "deeploy_folder.h"
#include "targets/target.h"
#include "mcu_network.h"
#include "muc/compile.h"
#include "muc/model.h"
#include "passes/unify/unify.h"

enum { EXPORTS = 4 };

static const char *const names[EXPORTS] = { "microLlama1", "microLlama8", "microLlama64",
                                            "microLlama8_parallel" };

typedef struct exports {
    muc_context *ctx;
    folder folders[EXPORTS];
    muc_unified unified;
} exports;

static exports *open_exports(void)
{
    static exports e;
    muc_graph *graphs[EXPORTS];
    const char *paths[EXPORTS];
    const muc_unify_options options = { 0 };

    e.ctx = muc_context_new(2);
    for (unsigned i = 0; i < EXPORTS; i++) {
        char path[512];

        snprintf(path, sizeof(path), "%s/%s", shared_data("deeploy/Models/microLlama/INT8"),
                 names[i]);
        folder_open(e.ctx, path, false, &e.folders[i]);
        graphs[i] = e.folders[i].network.graph;
        paths[i] = e.folders[i].path;
    }
    CHECK_OK(e.ctx, muc_unify(e.ctx, graphs, paths, EXPORTS, &options, &e.unified));
    return &e;
}

static void close_exports(exports *e)
{
    muc_unified_free(&e->unified);
    for (unsigned i = 0; i < EXPORTS; i++)
        folder_close(&e->folders[i]);
    muc_context_free(e->ctx);
}

static bool is_cache(const muc_unified *u, const char *name)
{
    for (uint32_t i = 0; i < u->cache_count; i++)
        if (strcmp(u->caches[i].name, name) == 0)
            return true;
    return false;
}

/* an export's cache [1, heads, pos, columns] as the first rows of the state [1, heads, context,
 * columns]; the rest is noise, which no result may depend on */
static void fill_state(exports *e, muc_ref *ref, const muc_tensor_view *cache, const char *name)
{
    const muc_graph *graph = e->unified.graph;
    uint32_t id = muc_graph_find(graph, name);
    size_t heads = (size_t)cache->dims[1], rows = (size_t)cache->dims[2];
    size_t columns = (size_t)cache->dims[3], context = e->unified.context, bytes;
    int8_t *values = folder_convert(cache, MUC_I8, &bytes);
    int8_t *state = malloc(heads * context * columns);

    memset(state, 0x55, heads * context * columns);
    for (size_t h = 0; h < heads; h++)
        memcpy(state + h * context * columns, values + h * rows * columns, rows * columns);
    CHECK_OK(e->ctx, muc_ref_set_state(ref, id, state, heads * context * columns));
    free(values);
    free(state);
}

static void check_outputs(const exports *e, muc_ref *ref, const folder *f)
{
    const muc_graph *graph = e->unified.graph;

    CHECK_EQ(graph->output_count, f->output_count);
    for (uint32_t i = 0; i < graph->output_count; i++) {
        muc_ref_view value;

        CHECK(muc_ref_get(ref, graph->outputs[i], &value));
        CHECK_EQ(value.elements, f->outputs[i].elements);
        for (size_t k = 0; k < value.elements; k++)
            if (folder_value(&value, k) != folder_number(&f->outputs[i], k))
                fail_msg("%s: output %u, element %zu: %g, expected %g", f->path, i, k,
                         folder_value(&value, k), folder_number(&f->outputs[i], k));
    }
}

static void run_export(exports *e, muc_ref *ref, unsigned which)
{
    const muc_unified_export *lengths = &e->unified.exports[which];
    const muc_graph *graph = e->unified.graph;
    const folder *f = &e->folders[which];
    uint32_t bindings[MUC_EXPR_MAX_INPUTS] = { 0 }, count = 0;
    muc_ref_input inputs[FOLDER_MAX_INPUTS + 1];

    bindings[muc_expr_find_input(graph->pool, "pos")] = lengths->pos;
    bindings[muc_expr_find_input(graph->pool, "m")] = lengths->m;
    for (uint32_t i = 0; i < f->graph_input_count; i++) {
        const muc_tensor *tensor = &f->network.graph->tensors[f->graph_inputs[i]];
        /* names are those of the first export */
        const char *name = e->folders[0].network.graph->tensors[e->folders[0].graph_inputs[i]].name;

        if (is_cache(&e->unified, name)) {
            fill_state(e, ref, &f->inputs[i], name);
            continue;
        }
        inputs[count].name = name;
        inputs[count].data = folder_convert(&f->inputs[i], tensor->dtype, &inputs[count].bytes);
        count++;
    }
    inputs[count] = (muc_ref_input){ MUC_UNIFY_RECORD, lengths->record,
                                     e->unified.record_words * sizeof(*lengths->record) };
    CHECK_OK(e->ctx, muc_ref_run(ref, bindings, inputs, count + 1));
    check_outputs(e, ref, f);
    for (uint32_t i = 0; i < count; i++)
        free((void *)(uintptr_t)inputs[i].data);
}

static void every_export_is_the_one_program_with_its_record(void **state)
{
    exports *e = open_exports();
    muc_ref *ref;

    (void)state;
    print_message("%u nodes, %u words of calibration, %u caches of %u rows\n",
                  e->unified.graph->node_count, e->unified.record_words, e->unified.cache_count,
                  e->unified.context);
    CHECK_EQ(e->unified.cache_count, 16);
    CHECK_EQ(e->unified.context, 65);
    CHECK(e->unified.record_words > 100 && e->unified.record_words <= 256);
    CHECK_EQ(e->unified.exports[2].pos, 64);
    CHECK_EQ(e->unified.exports[3].m, 8);
    CHECK_OK(e->ctx, muc_ref_open(e->ctx, e->unified.graph, &ref));
    for (unsigned i = 0; i < EXPORTS; i++)
        run_export(e, ref, i);
    muc_ref_close(ref);
    close_exports(e);
}

/* the value of the C program that a tensor of the graph is */
static const muc_mcu_value *value_of(const muc_mcu_program *program, const char *name)
{
    uint32_t tensor = muc_graph_find(program->graph, name);

    CHECK(tensor != MUC_NO_ID && program->value_of[tensor] != MUC_NO_ID);
    return &program->values[program->value_of[tensor]];
}

/* which of the C program's inputs, or outputs, a value is */
static uint32_t port_of(const muc_mcu_program *program, const muc_mcu_value *value)
{
    const muc_mcu_ports *ports = value->is_output ? &program->outputs : &program->inputs;
    uint32_t port = 0;

    while (port < ports->count && &program->values[ports->values[port]] != value)
        port++;
    CHECK(port < ports->count);
    return port;
}

/* fills the state of the C program with an export's cache, as fill_state does */
static void fill_arena(const exports *e, const muc_mcu_value *state, uint8_t *arena,
                       const muc_tensor_view *cache)
{
    size_t heads = (size_t)cache->dims[1], rows = (size_t)cache->dims[2];
    size_t columns = (size_t)cache->dims[3], context = e->unified.context, bytes;
    int8_t *values = folder_convert(cache, MUC_I8, &bytes);

    CHECK_EQ(state->bytes, heads * context * columns);
    memset(arena + state->address, 0x55, state->bytes);
    for (size_t h = 0; h < heads; h++)
        memcpy(arena + state->address + h * context * columns, values + h * rows * columns,
               rows * columns);
    free(values);
}

/* element k of an output of the C program: packed, or rows of a state, which has room for more */
static double code_element(const exports *e, const muc_mcu_value *value, const void *data,
                           const muc_tensor_view *golden, size_t k)
{
    if (value->layout) {
        size_t row = (size_t)(golden->dims[2] * golden->dims[3]);

        k = k / row * (size_t)(e->unified.context * golden->dims[3]) + k % row;
    }
    CHECK_EQ(value->tensor->dtype, MUC_I8);
    return ((const int8_t *)data)[k];
}

static void run_code(exports *e, mcu_batch *batch, unsigned which)
{
    const muc_mcu_program *program = &batch->networks[0].build->program;
    const muc_unified_export *lengths = &e->unified.exports[which];
    const folder *f = &e->folders[which];
    mcu_arena arena = mcu_arena_new(batch, 0);
    unsigned (*run)(void *, uint32_t, uint32_t);

    CHECK(muc_expr_find_input(program->graph->pool, "m") <
          muc_expr_find_input(program->graph->pool, "pos"));
    memcpy(&run, &arena.run, sizeof(run));
    for (uint32_t i = 0; i < f->graph_input_count; i++) {
        const char *name = e->folders[0].network.graph->tensors[e->folders[0].graph_inputs[i]].name;
        const muc_mcu_value *value = value_of(program, name);

        if (is_cache(&e->unified, name)) {
            fill_arena(e, value, arena.arena, &f->inputs[i]);
        } else {
            size_t bytes;
            void *data = folder_convert(&f->inputs[i], value->tensor->dtype, &bytes);

            CHECK(bytes <= value->bytes);
            memcpy(arena.in[port_of(program, value)], data, bytes);
            free(data);
        }
    }
    memcpy(arena.in[port_of(program, value_of(program, MUC_UNIFY_RECORD))], lengths->record,
           e->unified.record_words * sizeof(int32_t));
    CHECK_EQ(run(arena.arena, lengths->m, lengths->pos), 0);
    for (size_t i = 0; i < f->output_count; i++) {
        const muc_mcu_value *value =
            value_of(program, program->graph->tensors[program->graph->outputs[i]].name);

        for (size_t k = 0; k < f->outputs[i].elements; k++)
            CHECK(code_element(e, value, arena.out[port_of(program, value)], &f->outputs[i], k) ==
                  folder_number(&f->outputs[i], k));
    }
    mcu_arena_free(&arena);
}

static void one_compilation_is_every_export(void **state)
{
    exports *e = open_exports();
    mcu_batch batch = mcu_batch_new();

    (void)state;
    CHECK_OK(e->ctx, muc_prepare_mcu(e->ctx, e->unified.graph));
    mcu_batch_add(&batch, e->unified.graph, "host");
    mcu_batch_build(&batch, "cc");
    print_message("%llu bytes of arena, caches included; bound %llu\n",
                  (unsigned long long)batch.networks[0].build->program.plan.peak,
                  (unsigned long long)batch.networks[0].build->program.plan.least);
    for (unsigned i = 0; i < EXPORTS; i++)
        run_code(e, &batch, i);
    e->unified.graph = NULL; /* the batch's */
    mcu_batch_free(&batch);
    close_exports(e);
}

/* muc compile A.onnx B.onnx ... -o FOLDER */
static void compiling_exports_writes_their_records(void **state)
{
    exports *e = open_exports();
    char folder_path[] = "/tmp/muc_exports_XXXXXX", names_of[EXPORTS][600], path[700];
    const char *others[EXPORTS];
    muc_model_options options = { .exports = others + 1, .export_count = EXPORTS - 1 };
    const muc_compile_options how = { .target = "mcu" };
    muc_report *report;
    muc_model *model;
    muc_file file;

    (void)state;
    CHECK(mkdtemp(folder_path) != NULL);
    for (unsigned i = 0; i < EXPORTS; i++) {
        snprintf(names_of[i], sizeof(names_of[i]), "%s/network.onnx", e->folders[i].path);
        others[i] = names_of[i];
    }
    CHECK_OK(e->ctx, muc_model_open(e->ctx, others[0], &options, &model));
    snprintf(path, sizeof(path), "%s/out", folder_path);
    CHECK_OK(e->ctx, muc_compile(e->ctx, model, &how, path, &report));
    muc_report_free(report);
    muc_model_close(model);
    for (unsigned i = 0; i < EXPORTS; i++) {
        snprintf(path, sizeof(path), "%s/out/record_%u_pos%u_m%u.i32", folder_path, i,
                 e->unified.exports[i].pos, e->unified.exports[i].m);
        CHECK_OK(e->ctx, muc_file_open(e->ctx, path, &file));
        CHECK_EQ(file.bytes.size, e->unified.record_words * sizeof(int32_t));
        assert_memory_equal(file.bytes.data, e->unified.exports[i].record, file.bytes.size);
        muc_file_close(&file);
    }
    /* another network is refused by its name */
    options.export_count = 1;
    others[1] = shared_data("deeploy/Models/CNN_Linear1/network.onnx");
    CHECK_FAILS(e->ctx, MUC_UNSUPPORTED, "CNN_Linear1/network.onnx: no export of the same network",
                muc_model_open(e->ctx, others[0], &options, &model));
    snprintf(path, sizeof(path), "rm -r %s", folder_path);
    CHECK_EQ(system(path), 0);
    close_exports(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_export_is_the_one_program_with_its_record),
        cmocka_unit_test(one_compilation_is_every_export),
        cmocka_unit_test(compiling_exports_writes_their_records),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_one_program.c - one program for all lengths: the exports of microLlama in Deeploy's suite
 * become one graph, which with each export's calibration record and caches gives that export's
 * expected outputs, caches included, bit for bit. */
#include "deeploy_folder.h"
#include "passes/unify.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_export_is_the_one_program_with_its_record),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

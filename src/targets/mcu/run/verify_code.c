/* verify_code.c - generated C compared with the reference, tensor by tensor; a program of several
 * exports with each of them.
 *
 * The code is built with a function that it tells of every result, which writes them down: the
 * graph's tensor, the bytes, the data. The graph is the one that the code was made of.
 *
 * Integers must be the reference's, real numbers near them: sums have another order. Where such a
 * sum is rounded to 16 bits, the code may have the neighbour of the reference's number, and the
 * reference goes on from the code's, so that only the roundings of a layer itself count.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "targets/mcu/emit/code_folder.h"
#include "targets/mcu/lower/lower_nodes.h"
#include "targets/target.h"
#include "run/fingerprint.h"
#include "run/random_inputs.h"
#include "run/network_run.h"
#include "report/report_builder.h"

static const char trace_source[] =
    "#include <stdint.h>\n"
    "#include <stdio.h>\n"
    "\n"
    "void muc_trace(unsigned tensor, const uint8_t *data, size_t bytes);\n"
    "\n"
    "void muc_trace(unsigned tensor, const uint8_t *data, size_t bytes)\n"
    "{\n"
    "    const uint32_t head[2] = { tensor, (uint32_t)bytes };\n"
    "\n"
    "    fwrite(head, sizeof(head), 1, stdout);\n"
    "    fwrite(data, 1, bytes, stdout);\n"
    "}\n";

enum { MOST_FIRST = 256 };
static const double tolerance = 1e-4; /* of a tensor's greatest number */

/* a result that the code told of */
typedef struct record {
    uint32_t tensor, bytes;
    const uint8_t *data;
    double moved; /* the most that a number of the reference was from the code's, its neighbour */
} record;

typedef struct comparison {
    muc_context *ctx;
    muc_code_folder *folder;
    const muc_model *network;
    muc_graph *graph; /* as it was compiled */
    muc_ref *ref;
    record *records; /* as the code wrote them, of this run */
    size_t record_count;
    muc_report *report, *rows; /* rows: gets one for each tensor, or NULL */
    size_t tensors, wrong;
    char first[MOST_FIRST];
} comparison;

static double number_at(muc_dtype dtype, const uint8_t *data, uint64_t i)
{
    const muc_tensor_view view = { .dtype = dtype, .elements = i + 1, .data = data };

    return muc_array_element(&view, i);
}

static record *find_record(const comparison *c, uint32_t tensor)
{
    for (size_t i = 0; i < c->record_count; i++)
        if (c->records[i].tensor == tensor)
            return &c->records[i];
    return NULL;
}

static void compare(comparison *c, const muc_tensor *tensor, const char *what,
                    const muc_ref_view *view, const uint8_t *data)
{
    bool is_real = muc_dtype_get(tensor->dtype)->kind == MUC_DTYPE_FLOAT;
    const record *told = find_record(c, (uint32_t)(tensor - c->graph->tensors));
    double greatest = 0, error = told ? told->moved : 0;
    uint64_t wrong = 0, first = 0;

    for (size_t i = 0; i < view->elements; i++)
        greatest = fmax(greatest, fabs(number_at(view->dtype, view->data, i)));
    for (size_t i = 0; i < view->elements; i++) {
        double e = number_at(view->dtype, view->data, i), f = number_at(tensor->dtype, data, i);
        double difference = isnan(e) && isnan(f) ? 0 : e == f ? 0 : fabs(e - f);

        if (!(difference <= (is_real ? tolerance * fmax(1, greatest) : 0)) && wrong++ == 0)
            first = i;
        error = difference > error || isnan(difference) ? difference : error;
    }
    if (wrong && !c->first[0])
        snprintf(c->first, sizeof(c->first), "'%.200s'[%llu]", tensor->name,
                 (unsigned long long)first);
    c->tensors++;
    c->wrong += wrong != 0;
    if (!c->rows)
        return;
    muc_report_begin_row(c->rows);
    muc_report_add_text(c->rows, "node", "%.48s", tensor->name);
    muc_report_add_text(c->rows, "operator", "%s", what);
    muc_report_add_count(c->rows, "values", view->elements);
    muc_report_add_count(c->rows, "wrong", wrong);
    muc_report_add_real(c->rows, "error", error);
    muc_report_end(c->rows);
}

static muc_status other_network(const comparison *c)
{
    return muc_other_network(c->ctx, c->folder->path, c->folder->json, c->network->path);
}

/* the records that trace_source wrote */
static muc_status read_records(comparison *c, const uint8_t *data, size_t bytes, muc_arena *arena)
{
    MUC_TRY(MUC_ARENA_NEW(c->ctx, arena, bytes / 8 + 1, &c->records));
    c->record_count = 0;
    for (size_t at = 0; bytes - at >= 8;) {
        record *r = &c->records[c->record_count++];

        *r = (record){ muc_load_u32(data + at), muc_load_u32(data + at + 4), data + at + 8, 0 };
        at += 8;
        if (r->tensor >= c->graph->tensor_count || r->bytes > bytes - at)
            return other_network(c);
        at += r->bytes;
    }
    return MUC_OK;
}

/* whether no number of 16 bits lies between two */
static bool are_neighbours(muc_dtype dtype, const float numbers[2])
{
    const muc_ref_view view = { .elements = 2, .data = numbers };
    uint8_t bits[4];
    int32_t at[2];

    muc_ref_narrow(dtype, &view, bits);
    for (int i = 0; i < 2; i++) {
        at[i] = muc_load_u16(bits + 2 * i) & 0x7fff;
        at[i] = signbit(numbers[i]) ? -at[i] : at[i];
    }
    return !isnan(numbers[0]) && !isnan(numbers[1]) && abs(at[0] - at[1]) == 1;
}

static bool is_half(const comparison *c, uint32_t tensor)
{
    return c->graph->tensors[tensor].dtype == MUC_F16 ||
           c->graph->tensors[tensor].dtype == MUC_BF16;
}

/* a probe of the reference */
static void take_neighbours(void *arg, const muc_node *node, const char *name, const float *data,
                            size_t rows, size_t columns)
{
    const comparison *c = arg;
    muc_dtype dtype = c->graph->tensors[node->outputs[0]].dtype;
    float *numbers = muc_ref_numbers(c->ref, node->outputs[0]);
    record *told = find_record(c, node->outputs[0]);

    (void)name;
    (void)data;
    if (!is_half(c, node->outputs[0]) || !told || told->bytes < 2 * rows * columns)
        return;
    for (size_t i = 0; i < rows * columns; i++) {
        double found = number_at(dtype, told->data, i), apart = fabs(found - (double)numbers[i]);
        const float pair[2] = { numbers[i], (float)found };

        if (!are_neighbours(dtype, pair))
            continue;
        numbers[i] = pair[1];
        told->moved = apart > told->moved ? apart : told->moved;
    }
}

static muc_status compare_records(comparison *c)
{
    for (size_t i = 0; i < c->record_count; i++) {
        const record *r = &c->records[i];
        const muc_tensor *tensor = &c->graph->tensors[r->tensor];
        muc_ref_view view;

        if (tensor->producer == MUC_NO_ID || !muc_ref_get(c->ref, r->tensor, &view))
            continue;
        if (view.elements * muc_dtype_get(tensor->dtype)->block_bytes > r->bytes)
            return other_network(c);
        compare(c, tensor, muc_op_get(c->graph->nodes[tensor->producer].op)->name, &view, r->data);
    }
    return MUC_OK;
}

/* what the code gives for an output of the graph: integers, if that is dequantized last */
static uint32_t given_output(const muc_graph *graph, uint32_t output)
{
    uint32_t integers = muc_graph_integers_of(graph, output);

    return integers == MUC_NO_ID ? output : integers;
}

/* the code's output of this name, and where its bytes begin */
static bool find_output(const comparison *c, uint32_t tensor, const muc_port **out, size_t *at)
{
    *at = 0;
    for (size_t i = 0; i < c->folder->output_count; i++) {
        *out = &c->folder->outputs[i];
        if (strcmp((*out)->name, c->graph->tensors[tensor].name) == 0)
            return true;
        *at += (size_t)(*out)->bytes;
    }
    return false;
}

/* what main.c writes at the end: a network may have no other results */
static muc_status compare_outputs(comparison *c, const uint8_t *data)
{
    for (uint32_t i = 0; i < c->graph->output_count; i++) {
        uint32_t id = given_output(c->graph, c->graph->outputs[i]);
        const muc_port *port;
        const muc_tensor *tensor;
        muc_ref_view view;
        size_t at;

        if (!find_output(c, id, &port, &at)) {
            id = c->graph->outputs[i]; /* real after all */
            if (!find_output(c, id, &port, &at))
                return other_network(c);
        }
        tensor = &c->graph->tensors[id];
        if (!muc_ref_get(c->ref, id, &view) ||
            view.elements * muc_dtype_get(tensor->dtype)->block_bytes != port->bytes)
            return other_network(c);
        compare(c, tensor, "output", &view, data + at);
    }
    return MUC_OK;
}

static void close_run(comparison *c)
{
    muc_ref_close(c->ref);
    c->ref = NULL;
}

/* the session is c->ref, to be closed */
static muc_status evaluate(comparison *c, const muc_tensor_view *arrays, size_t count,
                           muc_ref_probe *probe, muc_arena *arena)
{
    const muc_unified *u = &c->network->unified;

    close_run(c);
    return muc_exports_evaluate(c->ctx, c->graph, u->export_count ? u : NULL, arrays, count, probe,
                                c, arena, &c->ref);
}

/* whether the reference is to go on from the code's numbers; exports are compared with each alone,
 * too */
static bool has_halves(const comparison *c)
{
    for (size_t i = 0; i < c->record_count && !c->network->unified.export_count; i++)
        if (is_half(c, c->records[i].tensor))
            return true;
    return false;
}

/* the reference beside what the code wrote, the outputs of main.c last */
static muc_status compare_all(comparison *c, const muc_tensor_view *arrays, size_t count,
                              const uint8_t *data, size_t bytes, muc_arena *arena)
{
    size_t outputs = 0;

    for (size_t i = 0; i < c->folder->output_count; i++)
        outputs += (size_t)c->folder->outputs[i].bytes;
    if (bytes < outputs)
        return muc_fail(c->ctx, MUC_BUG, c->folder->path, MUC_NO_OFFSET,
                        "the code wrote %zu bytes, fewer than its outputs have", bytes);
    MUC_TRY(read_records(c, data, bytes - outputs, arena));
    if (has_halves(c))
        MUC_TRY(evaluate(c, arrays, count, take_neighbours, arena));
    MUC_TRY(compare_records(c));
    return compare_outputs(c, data + bytes - outputs);
}

/* evaluates arrays, builds and runs the code on them, and compares what it tells */
static muc_status compare_run(comparison *c, const muc_tensor_view *arrays, size_t count,
                              muc_arena *arena)
{
    muc_tensor_view *reals;
    uint8_t *data = NULL;
    muc_bytes gathered;
    muc_status status;
    size_t bytes;

    MUC_TRY(muc_code_bind(c->ctx, c->folder, arrays, count, NULL, arena));
    MUC_TRY(muc_code_reals(c->ctx, c->folder, arrays, count, arena, &reals));
    MUC_TRY(evaluate(c, reals, count, NULL, arena));
    MUC_TRY(muc_code_gather(c->ctx, c->folder, arrays, count, arena, &gathered));
    status = muc_code_run(c->ctx, c->folder, trace_source, gathered, &data, &bytes);
    if (status == MUC_OK)
        status = compare_all(c, reals, count, data, bytes, arena);
    free(data);
    return status;
}

/* ---- one network ---- */

static muc_status compare_network(comparison *c, muc_arena *arena)
{
    muc_tensor_view *arrays = c->network->arrays;
    size_t count = c->network->array_count;
    muc_status status;

    if (!count)
        MUC_TRY(muc_made_arrays(c->ctx, c->graph, NULL, 0, arena, &arrays, &count));
    c->rows = c->report;
    muc_report_begin_table(c->report, "layers");
    status = compare_run(c, arrays, count, arena);
    muc_report_end(c->report);
    close_run(c);
    return status;
}

/* ---- several exports ---- */

/* the export itself, opened alone, must compute what the program's graph does */
static muc_status compare_alone(comparison *c, uint32_t export, const muc_tensor_view *arrays,
                                size_t count, muc_arena *arena)
{
    const char *path = c->network->exports[export];
    muc_tensor_view *expected, *found;
    muc_network alone;
    muc_status status;

    MUC_TRY(muc_network_results(c->ctx, c->graph, c->ref, arena, &found));
    MUC_TRY(muc_network_open(c->ctx, path, &c->network->how, &alone));
    status = muc_network_run(c->ctx, alone.graph, arrays, count, arena, &expected);
    for (uint32_t i = 0; status == MUC_OK && i < c->graph->output_count; i++)
        if (found[i].bytes != expected[i].bytes ||
            memcmp(found[i].data, expected[i].data, (size_t)found[i].bytes) != 0)
            status =
                muc_fail(c->ctx, MUC_MISMATCH, path, MUC_NO_OFFSET,
                         "computes another '%s' than the program of all exports", expected[i].name);
    muc_network_close(&alone);
    return status;
}

static muc_status compare_export(comparison *c, uint32_t export, muc_arena *arena)
{
    const muc_unified *u = &c->network->unified;
    size_t tensors = c->tensors, wrong = c->wrong, count;
    muc_tensor_view *arrays;
    muc_status status;

    MUC_TRY(muc_made_arrays(c->ctx, c->graph, u, export, arena, &arrays, &count));
    status = compare_run(c, arrays, count, arena);
    if (status == MUC_OK)
        status = compare_alone(c, export, arrays, count, arena);
    close_run(c);
    MUC_TRY(status);
    muc_report_begin_row(c->report);
    muc_report_add_text(c->report, "export", "%s", c->network->exports[export]);
    muc_report_add_count(c->report, "pos", u->exports[export].pos);
    muc_report_add_count(c->report, "m", u->exports[export].m);
    muc_report_add_count(c->report, "tensors", c->tensors - tensors);
    muc_report_add_count(c->report, "wrong", c->wrong - wrong);
    muc_report_end(c->report);
    return MUC_OK;
}

static muc_status compare_exports(comparison *c)
{
    muc_status status = MUC_OK;

    muc_report_begin_table(c->report, "exports");
    for (uint32_t i = 0; status == MUC_OK && i < c->network->unified.export_count; i++) {
        muc_arena arena = { 0 };

        status = compare_export(c, i, &arena);
        muc_arena_free(&arena);
    }
    muc_report_end(c->report);
    return status;
}

static muc_status verify(comparison *c, muc_arena *arena, muc_report **out)
{
    muc_mcu_core core = MUC_MCU_CORE_HOST;

    muc_mcu_core_find(muc_member_text(c->folder->json, "core"), &core);
    MUC_TRY(muc_mcu_prepare(c->ctx, c->graph, core,
                            json_object_get(c->folder->json, "tile_memory") != NULL));
    MUC_TRY(muc_check_fingerprint(c->ctx, c->folder->path, c->folder->json, c->graph,
                                  c->network->path));
    MUC_TRY(muc_report_new(c->ctx, out));
    c->report = *out;
    /* arrays have the lengths of one export */
    if (c->network->unified.export_count && !c->network->array_count)
        MUC_TRY(compare_exports(c));
    else
        MUC_TRY(compare_network(c, arena));
    muc_report_add_bool(c->report, "exact", !c->first[0]);
    muc_report_add_count(c->report, "tensors", c->tensors);
    if (c->first[0])
        muc_report_add_text(c->report, "first_divergence", "%s", c->first);
    MUC_TRY(muc_report_status(c->ctx, c->report));
    if (!c->first[0])
        return MUC_OK;
    return muc_fail(c->ctx, MUC_MISMATCH, c->folder->path, MUC_NO_OFFSET,
                    "the code and the reference differ at %s", c->first);
}

muc_status muc_verify_mcu(muc_context *ctx, const char *path, const muc_model *network,
                          const char *trace, muc_report **out)
{
    comparison c = { .ctx = ctx, .network = network, .graph = network->network.graph };
    muc_arena arena = { 0 };
    muc_code_folder folder;
    muc_status status;

    if (trace)
        return muc_fail(ctx, MUC_USAGE, path, MUC_NO_OFFSET,
                        "--trace is for folders of the CNN chip");
    MUC_TRY(muc_code_open(ctx, path, &folder));
    c.folder = &folder;
    status = verify(&c, &arena, out);
    muc_arena_free(&arena);
    muc_code_close(&folder);
    return status;
}

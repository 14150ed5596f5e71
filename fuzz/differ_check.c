/* differ_check.c - one network from its text to a verdict. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "differ.h"
#include "passes/weights/hybrid_decoder.h"
#include "targets/cnnchip/run/chip_folder.h"
#include "targets/target.h"
#include "run/network_int8.h"
#include "run/network_run.h"
#include "ref/ref.h"
#include "targets/cnnchip/compile/build_cnnchip.h"

enum { MOST_INPUTS = 64, RUNS = 4, SECONDS = 10, TRIALS = 16, SAMPLES = 4 };

/* of a tensor's greatest number; in_half: on the chip in fp16 */
static const double near = 1e-5, near_in_half = 2e-2;

typedef struct check {
    muc_context *ctx;
    const fuzz_how *how;
    char *message;
    muc_graph *written, *prepared;
    muc_ref *first, *second; /* of either */
    muc_mcu_build *build;
    fuzz_code *code;
    fuzz_chance chance;
    muc_arena arena;
    uint32_t bindings[RUNS][MUC_EXPR_MAX_INPUTS];
    muc_ref_input inputs[RUNS][MOST_INPUTS];
    size_t input_count;
    uint32_t runs;
    bool has_nan; /* in what was run with noise; or more than fp16 on the chip holds */
} check;

/* ---- arrays ---- */

/* "x3:-2:2" holds -2..2; other names what is harmless for the type */
static void range_of_input(const muc_tensor *t, double *lo, double *hi)
{
    const char *colon = strchr(t->name, ':');
    char *end;

    *lo = muc_dtype_get(t->dtype)->kind == MUC_DTYPE_FLOAT ? -2 : 0;
    *hi = t->dtype == MUC_BOOL ? 1 : 2;
    if (!colon)
        return;
    *lo = strtod(colon + 1, &end);
    *hi = *end == ':' ? strtod(end + 1, NULL) : *lo;
}

static void fill(check *c, const muc_tensor *t, uint8_t *data, uint64_t count)
{
    bool is_real = muc_dtype_get(t->dtype)->kind == MUC_DTYPE_FLOAT;
    double lo, hi;

    range_of_input(t, &lo, &hi);
    for (uint64_t i = 0; i < count; i++) {
        double unit = fuzz_draw(&c->chance, 1 << 20) / (double)(1 << 20);

        fuzz_store(t->dtype, data, i,
                   is_real ? lo + (hi - lo) * floor(unit * 4096) / 4096
                           : lo + floor(unit * (hi - lo + 1)));
    }
}

static bool draw_inputs(check *c, uint32_t run)
{
    const muc_graph *graph = c->written;

    c->input_count = 0;
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        const muc_tensor *t = &graph->tensors[i];
        uint64_t elements, bytes;
        uint8_t *data;

        if (t->kind != MUC_TENSOR_INPUT)
            continue;
        if (c->input_count == MOST_INPUTS ||
            muc_tensor_measure_bound(c->ctx, graph, t, c->bindings[run], &elements, &bytes) !=
                MUC_OK ||
            muc_arena_new(c->ctx, &c->arena, (size_t)bytes + 1, 1, (void **)&data) != MUC_OK)
            return false;
        fill(c, t, data, elements);
        c->inputs[run][c->input_count++] = (muc_ref_input){ t->name, data, (size_t)bytes };
    }
    return true;
}

/* Whether a run may begin at its position: not behind what the run before left of its tokens, as
 * caches have nothing there. */
static bool follows(const check *c)
{
    const muc_expr_pool *pool = c->written->pool;
    uint32_t pos = muc_expr_find_input(pool, "pos"), m = muc_expr_find_input(pool, "m");
    const uint32_t *last = c->runs ? c->bindings[c->runs - 1] : NULL;

    return pos == MUC_NO_ID || m == MUC_NO_ID ||
           c->bindings[c->runs][pos] <= (last ? last[pos] + last[m] : 0);
}

/* least, greatest, then any lengths; each run has arrays of its own */
static bool draw_runs(check *c)
{
    const muc_expr_pool *pool = c->written->pool;
    uint32_t lengths = muc_expr_input_count(pool);

    for (uint32_t tries = 0; c->runs < RUNS && tries < 8 * RUNS; tries++) {
        uint32_t *b = c->bindings[c->runs];

        for (uint32_t i = 0; i < lengths; i++) {
            const muc_expr_input *in = muc_expr_get_input(pool, i);
            uint32_t steps = (in->hi - in->lo) / in->multiple;

            b[i] = tries == 0   ? in->lo
                   : tries == 1 ? in->hi
                                : in->lo + in->multiple * fuzz_draw(&c->chance, steps + 1);
        }
        if (muc_expr_check_bindings(c->ctx, pool, b) != MUC_OK || !follows(c)) {
            muc_error_clear(c->ctx);
            continue;
        }
        if (!draw_inputs(c, c->runs))
            return false;
        c->runs += 1;
        if (lengths == 0 && c->runs == 2)
            break;
    }
    return c->runs > 0;
}

/* ---- comparison ---- */

static double number_at(muc_dtype dtype, const void *data, uint64_t i)
{
    const muc_tensor_view view = { .dtype = dtype, .elements = i + 1, .data = data };

    return muc_array_element(&view, i);
}

static bool is_half(const check *c)
{
    return c->how->chip && c->how->element == MUC_CNNCHIP_fp16;
}

static double difference(double a, double b)
{
    return (isnan(a) && isnan(b)) || a == b ? 0 : fabs(a - b);
}

/* the first element that is off by more than `near` of the greatest, or the count */
static uint64_t first_wrong(const check *c, const muc_ref_view *expected, muc_dtype dtype,
                            const void *found)
{
    bool is_real = muc_dtype_get(dtype)->kind == MUC_DTYPE_FLOAT;
    double greatest = 1, bound = dtype == MUC_F16 ? 1e-3 : dtype == MUC_BF16 ? 1e-2 : near;

    bound = is_half(c) ? near_in_half : bound;

    for (uint64_t i = 0; i < expected->elements; i++) {
        double e = fabs(number_at(expected->dtype, expected->data, i));

        greatest = isfinite(e) && e > greatest ? e : greatest;
    }
    for (uint64_t i = 0; i < expected->elements; i++) {
        double e = number_at(expected->dtype, expected->data, i), f = number_at(dtype, found, i);

        /* what comes of NaN is not promised */
        if (!(difference(e, f) <= (is_real ? bound * greatest : 0)) && !isnan(e))
            return i;
    }
    return expected->elements;
}

/* ---- noise: what rounding in another order would have changed ---- */

static bool has_noise(const muc_graph *graph, const muc_node *node)
{
    muc_dtype dtype = graph->tensors[node->outputs[0]].dtype;

    switch ((int)node->op) {
    case MUC_OP_RELU:
    case MUC_OP_ABS:
    case MUC_OP_NEG:
    case MUC_OP_MIN:
    case MUC_OP_MAX:
    case MUC_OP_WHERE:
    case MUC_OP_DEQUANTIZE:
    case MUC_OP_CAST:
        return false;
    default:
        return muc_dtype_get(dtype)->kind == MUC_DTYPE_FLOAT &&
               !(muc_op_get(node->op)->flags & MUC_OP_MOVES);
    }
}

/* The chip computes a clip as hi - relu(hi - x), whose last bit is that of the bound. */
static double greatest_bound(const check *c, const muc_graph *graph, const muc_node *node)
{
    double greatest = 0;

    for (uint32_t i = 1; c->how->chip && node->op == MUC_OP_CLIP && i < node->input_count; i++) {
        const muc_tensor *t =
            node->inputs[i] == MUC_NO_ID ? NULL : &graph->tensors[node->inputs[i]];

        if (t && t->data && isfinite(number_at(t->dtype, t->data, 0)))
            greatest = fmax(greatest, fabs(number_at(t->dtype, t->data, 0)));
    }
    return greatest;
}

/* a part in 2^21, and of the greatest a part in 2^23; of 16-bit floats in 2^10 and 2^12 */
static void add_noise(check *c, const muc_graph *graph, const muc_node *node,
                      const muc_ref_view *view)
{
    float *data = (float *)(uintptr_t)view->data; /* the session's own, between two nodes */
    double greatest = greatest_bound(c, graph, node), part = is_half(c) ? 1024 : 2097152;

    for (size_t i = 0; view->dtype == MUC_F32 && i < view->elements; i++)
        c->has_nan = c->has_nan || isnan(data[i]) || (is_half(c) && !(fabsf(data[i]) < 65504));
    if (view->dtype != MUC_F32 || !has_noise(graph, node))
        return;
    for (size_t i = 0; i < view->elements; i++)
        greatest = fmax(greatest, isfinite(data[i]) ? fabs((double)data[i]) : 0);
    for (size_t i = 0; i < view->elements; i++) {
        double r = (fuzz_draw(&c->chance, 2048) - 1023.5) / 1024;

        data[i] = (float)((double)data[i] * (1 + r / part) + r * greatest / (4 * part));
    }
}

static bool run_with_noise(check *c, const muc_graph *graph, muc_ref *ref, uint32_t last)
{
    muc_ref_reset(ref);
    for (uint32_t run = 0; run <= last; run++)
        for (uint32_t i = 0; i < graph->node_count; i++) {
            muc_ref_set_range(ref, i, i + 1);
            if (muc_ref_run(ref, c->bindings[run], c->inputs[run], c->input_count) != MUC_OK)
                return false;
            for (uint32_t o = 0; o < graph->nodes[i].output_count; o++) {
                muc_ref_view view;

                if (muc_ref_get(ref, graph->nodes[i].outputs[o], &view))
                    add_noise(c, graph, &graph->nodes[i], &view);
            }
        }
    return true;
}

/* whether noise in the graph moves an element as far as it was found from what is expected */
static bool noise_explains(check *c, muc_graph *graph, uint32_t run, uint32_t tensor,
                           const muc_ref_view *expected, muc_dtype dtype, const void *found)
{
    double *reach = calloc(expected->elements + 1, sizeof(*reach));
    bool explained = true;
    muc_ref *ref;

    if (!reach || muc_ref_open(c->ctx, graph, &ref) != MUC_OK)
        abort();
    for (uint32_t t = 0; t < TRIALS; t++) {
        muc_ref_view view;
        bool ran = run_with_noise(c, graph, ref, run) && muc_ref_get(ref, tensor, &view) &&
                   view.elements == expected->elements;

        for (size_t i = 0; i < expected->elements; i++) {
            double e = number_at(expected->dtype, expected->data, i);
            double d = ran ? difference(e, number_at(view.dtype, view.data, i)) : INFINITY;

            reach[i] = isnan(d) ? INFINITY : fmax(reach[i], d);
        }
    }
    for (size_t i = 0; i < expected->elements; i++) {
        double e = number_at(expected->dtype, expected->data, i);

        if (!(difference(e, number_at(dtype, found, i)) <= 16 * reach[i] + near * fabs(e)))
            explained = false;
    }
    muc_error_clear(c->ctx);
    muc_ref_close(ref);
    free(reach);
    return explained || c->has_nan; /* what comes of NaN is not promised */
}

/* found: of tensor t of the graph, which computed what is expected */
static fuzz_verdict judge(check *c, fuzz_verdict verdict, muc_graph *graph, uint32_t run,
                          const muc_tensor *t, const muc_ref_view *expected, const void *found)
{
    uint64_t at = first_wrong(c, expected, t->dtype, found);

    if (at == expected->elements)
        return FUZZ_SAME;
    if (is_half(c) && muc_dtype_get(t->dtype)->kind != MUC_DTYPE_FLOAT)
        return FUZZ_UNSTABLE; /* rounded of what fp16 has rounded */
    if (noise_explains(c, graph, run, (uint32_t)(t - graph->tensors), expected, t->dtype, found))
        return FUZZ_UNSTABLE;
    snprintf(c->message, FUZZ_MESSAGE, "run %u: '%s'[%llu] is %.9g, expected %.9g", run, t->name,
             (unsigned long long)at, number_at(t->dtype, found, at),
             number_at(expected->dtype, expected->data, at));
    return verdict;
}

static fuzz_verdict worse(fuzz_verdict a, fuzz_verdict b)
{
    return a > b ? a : b;
}

/* what passes left of each output beside what it was */
static fuzz_verdict compare_passes(check *c, uint32_t run)
{
    fuzz_verdict verdict = FUZZ_SAME;

    for (uint32_t i = 0; i < c->written->output_count && verdict < FUZZ_WRONG; i++) {
        const muc_tensor *t = &c->written->tensors[c->written->outputs[i]];
        uint32_t id = muc_graph_find(c->prepared, t->name);
        muc_ref_view expected, found;

        if (id == MUC_NO_ID || c->prepared->tensors[id].dtype != t->dtype ||
            !muc_ref_get(c->first, c->written->outputs[i], &expected) ||
            !muc_ref_get(c->second, id, &found))
            continue;
        if (found.elements != expected.elements) {
            snprintf(c->message, FUZZ_MESSAGE, "'%s' has another shape", t->name);
            return FUZZ_PASSES;
        }
        if (found.dtype == t->dtype)
            verdict =
                worse(verdict, judge(c, FUZZ_PASSES, c->written, run, t, &expected, found.data));
    }
    return verdict;
}

static fuzz_verdict compare_code(check *c, uint32_t run)
{
    const muc_mcu_program *program = &c->build->program;
    fuzz_verdict verdict = FUZZ_SAME;

    for (uint32_t p = 0; p < program->outputs.count && verdict < FUZZ_WRONG; p++) {
        const muc_tensor *t = program->values[program->outputs.values[p]].tensor;
        muc_ref_view expected;

        if (muc_ref_get(c->second, (uint32_t)(t - c->prepared->tensors), &expected))
            verdict = worse(verdict, judge(c, FUZZ_WRONG, c->prepared, run, t, &expected,
                                           fuzz_code_output(c->code, p)));
    }
    if (verdict < FUZZ_WRONG && !fuzz_code_is_whole(c->code)) {
        snprintf(c->message, FUZZ_MESSAGE, "bytes around the arena were written");
        verdict = FUZZ_BROKEN;
    }
    return verdict;
}

/* the code's inputs: the network's, or what it first makes of them, where the reference ran */
static void give_inputs(check *c, uint32_t run, bool ran)
{
    const muc_mcu_program *program = &c->build->program;

    for (uint32_t p = 0; p < program->inputs.count; p++) {
        const muc_tensor *t = program->values[program->inputs.values[p]].tensor;
        muc_ref_view view;
        bool given = false;

        for (size_t i = 0; i < c->input_count; i++)
            if (strcmp(c->inputs[run][i].name, t->name) == 0) {
                memcpy(fuzz_code_input(c->code, p), c->inputs[run][i].data,
                       c->inputs[run][i].bytes);
                given = true;
            }
        if (!given && ran && muc_ref_get(c->second, (uint32_t)(t - c->prepared->tensors), &view))
            memcpy(fuzz_code_input(c->code, p), view.data,
                   view.elements * muc_dtype_get(view.dtype)->block_bytes);
    }
}

/* whether passes may change a result by roundings */
static bool folds_pairs(const muc_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        muc_op op = graph->nodes[i].op;

        if (op == MUC_OP_QUANTIZE_LINEAR || op == MUC_OP_DEQUANTIZE_LINEAR ||
            op == MUC_OP_QLINEAR_CONV || op == MUC_OP_QLINEAR_MATMUL)
            return true;
    }
    return false;
}

static fuzz_verdict compare_run(check *c, uint32_t run)
{
    muc_status first = muc_ref_run(c->first, c->bindings[run], c->inputs[run], c->input_count);
    fuzz_verdict verdict = FUZZ_SAME;
    muc_status second;
    int status;

    if (first != MUC_OK)
        snprintf(c->message, FUZZ_MESSAGE, "run %u: %.200s", run, muc_error_message(c->ctx));
    muc_error_clear(c->ctx);
    second = muc_ref_run(c->second, c->bindings[run], c->inputs[run], c->input_count);
    muc_error_clear(c->ctx);
    if (first == MUC_OK && second != MUC_OK) {
        snprintf(c->message, FUZZ_MESSAGE, "run %u: refused after passes", run);
        return FUZZ_PASSES;
    }
    give_inputs(c, run, second == MUC_OK);
    status = fuzz_code_run(c->code, c->bindings[run]);
    if (first != MUC_OK)
        return status == 0 ? FUZZ_ANSWERED : FUZZ_BOTH;
    if (status != 0) {
        snprintf(c->message, FUZZ_MESSAGE, "run %u: status %d", run, status);
        return FUZZ_STOPPED;
    }
    verdict = compare_code(c, run);
    if (verdict < FUZZ_WRONG && !folds_pairs(c->written))
        verdict = worse(verdict, compare_passes(c, run));
    return verdict;
}

/* ---- the road ---- */

static muc_graph *open_text(check *c, const char *text)
{
    const muc_bytes bytes = { (const uint8_t *)text, strlen(text), "n.graph" };
    muc_graph *graph = NULL;

    return muc_graph_parse(c->ctx, bytes, &graph) == MUC_OK ? graph : NULL;
}

static bool make_int8(check *c, muc_graph *graph)
{
    muc_tensor_view arrays[MOST_INPUTS];
    size_t count = 0;

    for (uint32_t i = 0; i < graph->tensor_count && count < MOST_INPUTS; i++) {
        const muc_tensor *t = &graph->tensors[i];
        muc_tensor_view *view = &arrays[count];
        uint64_t elements, bytes;
        uint8_t *data;

        if (t->kind != MUC_TENSOR_INPUT)
            continue;
        if (muc_tensor_measure_bound(c->ctx, graph, t, c->bindings[0], &elements, &bytes) !=
                MUC_OK ||
            muc_arena_new(c->ctx, &c->arena, (size_t)bytes * SAMPLES + 1, 1, (void **)&data) !=
                MUC_OK)
            return false;
        fill(c, t, data, SAMPLES * elements);
        *view = (muc_tensor_view){ .name = t->name, .file = "fuzz", .dtype = t->dtype, .rank = 2 };
        view->dims[0] = SAMPLES;
        view->dims[1] = elements;
        view->elements = SAMPLES * elements;
        view->bytes = SAMPLES * bytes;
        view->data = data;
        count++;
    }
    return muc_network_to_int8(c->ctx, graph, arrays, count, NULL) == MUC_OK;
}

/* as --quant says */
static bool quantize(check *c, muc_graph *graph)
{
    const muc_hybrid_levels levels =
        c->how->quant == FUZZ_QUANT_BLOCKS ? MUC_HYBRID_BLOCKS : MUC_HYBRID_INT8;
    muc_hybrid_result ignored = { 0 };

    switch (c->how->quant) {
    case FUZZ_QUANT_INT8:
        return make_int8(c, graph);
    case FUZZ_QUANT_HYBRID:
    case FUZZ_QUANT_BLOCKS:
        return muc_hybrid_quantize(c->ctx, graph, levels, &ignored) == MUC_OK;
    case FUZZ_QUANT_NONE:
    default:
        return true;
    }
}

static fuzz_verdict refuse(check *c, fuzz_verdict verdict)
{
    snprintf(c->message, FUZZ_MESSAGE, "%.250s", muc_error_message(c->ctx));
    return verdict;
}

static fuzz_verdict open_both(check *c, const char *text)
{
    uint64_t state = c->chance.state;

    c->written = open_text(c, text);
    if (!c->written)
        return refuse(c, FUZZ_INVALID);
    if (!quantize(c, c->written))
        return refuse(c, FUZZ_REFUSED);
    if (muc_ref_open(c->ctx, c->written, &c->first) != MUC_OK)
        return refuse(c, FUZZ_INVALID);
    c->chance.state = state;
    c->prepared = open_text(c, text);
    if (!c->prepared || !quantize(c, c->prepared) ||
        muc_mcu_prepare_for(c->ctx, c->prepared, c->how->machine) != MUC_OK)
        return refuse(c, FUZZ_REFUSED);
    if (muc_ref_open(c->ctx, c->prepared, &c->second) == MUC_OK)
        return FUZZ_SAME;
    refuse(c, FUZZ_PASSES);
    muc_error_clear(c->ctx);
    return muc_mcu_compile_as(c->ctx, c->prepared, "n", c->how->machine, &c->how->choices,
                              &c->build) == MUC_OK
               ? FUZZ_PASSES
               : FUZZ_REFUSED;
}

/* ---- the CNN chip ---- */

/* what the chip computed beside the network as it was written */
static fuzz_verdict compare_chip(check *c, const muc_chip *chip, const muc_tensor_view *outputs)
{
    fuzz_verdict verdict = FUZZ_SAME;

    for (size_t i = 0; i < chip->output_count && verdict < FUZZ_WRONG; i++) {
        uint32_t id = muc_graph_find(c->written, outputs[i].name);
        muc_ref_view expected;

        if (id != MUC_NO_ID && c->written->tensors[id].dtype == outputs[i].dtype &&
            muc_graph_find(c->prepared, outputs[i].name) != MUC_NO_ID &&
            muc_ref_get(c->first, id, &expected) && expected.elements >= outputs[i].elements) {
            expected.elements = outputs[i].elements; /* the first image */
            verdict = worse(verdict, judge(c, FUZZ_WRONG, c->written, 0, &c->written->tensors[id],
                                           &expected, outputs[i].data));
        }
    }
    return verdict;
}

/* int8, which is not TFLite's: each layer beside the reference in the chip's arithmetic, bit for
 * bit, on inputs of its own */
static fuzz_verdict check_layers(check *c, const char *folder)
{
    muc_chip_check found;

    if (muc_chip_self_check(c->ctx, folder, c->prepared, &found) != MUC_OK)
        return refuse(c, FUZZ_BROKEN);
    if (found.agrees)
        return FUZZ_SAME;
    snprintf(c->message, FUZZ_MESSAGE, "layer %.100s differs", found.first);
    return FUZZ_WRONG;
}

/* the folder is read back and run, on the first of several images */
static fuzz_verdict run_chip(check *c, const char *folder)
{
    muc_tensor_view arrays[MOST_INPUTS], *outputs;
    fuzz_verdict verdict = FUZZ_BROKEN;
    muc_chip chip;

    for (size_t i = 0; i < c->input_count; i++) {
        uint32_t id = muc_graph_find(c->written, c->inputs[0][i].name);
        uint32_t own = muc_graph_find(c->prepared, c->inputs[0][i].name);
        const muc_tensor *t = &c->written->tensors[id];

        arrays[i] = (muc_tensor_view){ .name = t->name, .file = "fuzz", .dtype = t->dtype };
        arrays[i].rank = t->rank;
        for (uint32_t d = 0; d < t->rank; d++)
            arrays[i].dims[d] = muc_expr_get(c->written->pool, t->dims[d])->hi;
        arrays[i].bytes = c->inputs[0][i].bytes;
        if (own != MUC_NO_ID && t->rank && arrays[i].dims[0]) {
            const muc_tensor *one = &c->prepared->tensors[own];
            uint64_t images = arrays[i].dims[0];

            arrays[i].dims[0] = muc_expr_get(c->prepared->pool, one->dims[0])->hi;
            arrays[i].bytes = arrays[i].bytes / images * arrays[i].dims[0];
        }
        arrays[i].elements = arrays[i].bytes / muc_dtype_get(t->dtype)->block_bytes;
        arrays[i].data = c->inputs[0][i].data;
    }
    if (muc_chip_open(c->ctx, folder, &chip) != MUC_OK)
        return refuse(c, verdict);
    if (muc_chip_run(c->ctx, &chip, arrays, c->input_count, &outputs) == MUC_OK)
        verdict = c->how->element == MUC_CNNCHIP_int8 ? check_layers(c, folder)
                                                      : compare_chip(c, &chip, outputs);
    else
        refuse(c, verdict);
    muc_chip_close(&chip);
    return verdict;
}

static fuzz_verdict check_chip(check *c, const char *text)
{
    char folder[] = "/tmp/muc_chip_XXXXXX", command[64];
    muc_cnnchip_build *build = NULL;
    muc_cnnchip_machine machine;
    fuzz_verdict verdict = FUZZ_REFUSED;

    c->written = open_text(c, text);
    c->prepared = open_text(c, text);
    if (!c->written || !c->prepared || muc_ref_open(c->ctx, c->written, &c->first) != MUC_OK ||
        !draw_runs(c) ||
        muc_ref_run(c->first, c->bindings[0], c->inputs[0], c->input_count) != MUC_OK)
        return refuse(c, FUZZ_INVALID);
    if (!quantize(c, c->prepared) || muc_prepare_cnnchip(c->ctx, c->prepared) != MUC_OK ||
        muc_cnnchip_find_machine(c->ctx, &c->arena, NULL, &machine) != MUC_OK)
        return refuse(c, verdict);
    machine.pes = (uint32_t)strtoul(c->how->chip, NULL, 10);
    machine.element = c->how->element;
    if (muc_cnnchip_compile(c->ctx, c->prepared, "n", &machine, &build) != MUC_OK ||
        !mkdtemp(folder) || rmdir(folder) != 0)
        return refuse(c, verdict);
    if (muc_cnnchip_write_folder(c->ctx, build, folder, NULL, NULL) == MUC_OK)
        verdict = run_chip(c, folder);
    else
        refuse(c, verdict);
    muc_cnnchip_build_free(build);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command) == 0 ? verdict : FUZZ_BROKEN;
}

static fuzz_verdict run_all(check *c, const char *text)
{
    fuzz_verdict verdict = open_both(c, text);

    if (verdict != FUZZ_SAME)
        return verdict;
    if (!draw_runs(c))
        return refuse(c, FUZZ_INVALID);
    if (muc_mcu_compile_as(c->ctx, c->prepared, "n", c->how->machine, &c->how->choices,
                           &c->build) != MUC_OK)
        return refuse(c, FUZZ_REFUSED);
    c->code = fuzz_code_new(c->build, c->message);
    if (!c->code)
        return FUZZ_BROKEN;
    fuzz_code_reset(c->code);
    for (uint32_t run = 0; run < c->runs && verdict < FUZZ_WRONG; run++)
        verdict = worse(verdict, compare_run(c, run));
    return verdict;
}

fuzz_verdict fuzz_check(const char *text, const fuzz_how *how, char message[FUZZ_MESSAGE])
{
    check *c = calloc(1, sizeof(*c));
    fuzz_verdict verdict;

    if (!c)
        abort();
    message[0] = '\0';
    c->ctx = muc_context_new(1);
    c->how = how;
    c->message = message;
    c->chance.state = how->seed;
    verdict = how->chip ? check_chip(c, text) : run_all(c, text);
    fuzz_code_free(c->code);
    muc_mcu_build_free(c->build);
    muc_ref_close(c->first);
    muc_ref_close(c->second);
    muc_graph_free(c->written);
    muc_graph_free(c->prepared);
    muc_arena_free(&c->arena);
    muc_context_free(c->ctx);
    free(c);
    return verdict;
}

fuzz_verdict fuzz_check_apart(const char *text, const fuzz_how *how, char message[FUZZ_MESSAGE])
{
    struct shared {
        fuzz_verdict verdict;
        char message[FUZZ_MESSAGE];
    } *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fuzz_verdict verdict;
    int status = 0;
    pid_t child;

    if (shared == MAP_FAILED)
        abort();
    fflush(NULL);
    child = fork();
    if (child == 0) {
        alarm(SECONDS);
        shared->verdict = fuzz_check(text, how, shared->message);
        exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        abort();
    verdict = WIFEXITED(status)             ? shared->verdict
              : WTERMSIG(status) == SIGALRM ? FUZZ_SLOW
                                            : FUZZ_CRASHED;
    memcpy(message, shared->message, FUZZ_MESSAGE);
    munmap(shared, sizeof(*shared));
    return verdict;
}

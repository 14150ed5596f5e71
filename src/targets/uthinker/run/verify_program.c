/* verify_program.c - a program on the simulated machine beside its checkpoint's graph, stage by
 * stage.
 *
 * Two references run the same tokens in the same calls: the graph in the machine's arithmetic, with
 * the blocks taken from the program itself, which must agree in every bit, and the graph in
 * float32, from which the distance is told. A watcher on the simulator compares buffer GB with both
 * whenever an instruction has completed a stage.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/large.h"
#include "base/real.h"
#include "run/engine.h"
#include "run/model_graph.h"
#include "targets/uthinker/run/engine_machine.h"
#include "quant/bd_sequence.h"
#include "mur_stages.h"
#include "ref/golden/uthinker_golden.h"
#include "report/report_builder.h"
#include "targets/target.h"
#include "targets/uthinker/clock/dram_classes.h"
#include "targets/uthinker/lower/retile.h"
#include "targets/uthinker/run/open_program.h"
#include "text/tokenizer.h"

enum { MOST_NAME = 96 };

static const struct {
    const char *name, *node; /* of the graph; "%u" is the layer */
} stages[MUR_STAGES] = {
#define MUR_STAGE(name, words, node) { words, node },
#include "mur_stages.def"
};

typedef struct stage_sums {
    uint64_t values, wrong;
    double error;         /* largest difference from float32 */
    double noise, signal; /* sums of its square and of the float32 value's */
} stage_sums;

typedef struct watcher {
    muc_context *ctx;
    muc_ref *exact, *real; /* the machine's arithmetic; float32 */
    stage_sums sums[MUR_STAGES];
    char first[256];           /* the first difference, in words */
    uint32_t position;         /* of the call */
    size_t first_row, end_row; /* the tokens that both references have run last */
    mur_stages seen;
    muc_status status;
} watcher;

/* ---- comparing ---- */

static void tell_first(watcher *w, enum mur_stage stage, uint32_t layer, size_t row, size_t column,
                       float found, float expected)
{
    if (w->first[0])
        return;
    snprintf(w->first, sizeof(w->first),
             "position %zu, layer %u, %s, column %zu: found %08x (%g), expected %08x (%g)",
             w->first_row + row, layer, stages[stage].name, column, muc_f32_bits(found),
             (double)found, muc_f32_bits(expected), (double)expected);
}

/* The node whose result is the stage's: some models scale what they embed, and layers that do not
 * rotate queries and keys take them as they are. */
static void find_node(const watcher *w, enum mur_stage stage, uint32_t layer, char node[MOST_NAME])
{
    static const char *const others[MUR_STAGES][3] = {
        [MUR_STAGE_EMBEDDING] = { "embed_scaled" },
        [MUR_STAGE_QUERIES] = { "layers.%u.q_rope", "layers.%u.q_norm", "layers.%u.q" },
        [MUR_STAGE_KEYS] = { "layers.%u.k_rope", "layers.%u.k_norm", "layers.%u.k" },
    };
    size_t rows, columns;

    for (size_t i = 0; i < MUC_COUNT(others[stage]) && others[stage][i]; i++) {
        snprintf(node, MOST_NAME, others[stage][i], layer);
        if (muc_ref_read(w->exact, node, &rows, &columns))
            return;
    }
    snprintf(node, MOST_NAME, stages[stage].node, layer);
}

/* count values of a row, from a column on, of the stage's result */
static void compare(watcher *w, enum mur_stage stage, uint32_t layer, size_t row, size_t column,
                    const float *found, size_t count)
{
    stage_sums *sums = &w->sums[stage];
    char node[MOST_NAME];
    size_t rows, columns;
    const float *exact, *real;

    find_node(w, stage, layer, node);
    exact = muc_ref_read(w->exact, node, &rows, &columns);
    real = muc_ref_read(w->real, node, &rows, &columns);
    row += w->position - w->first_row; /* of the references' call */
    if (!exact || !real || row >= rows || column + count > columns) {
        w->status = muc_fail(w->ctx, MUC_MISMATCH, "verify", MUC_NO_OFFSET,
                             "the program computes a stage '%s' that the graph has not", node);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        size_t at = row * columns + column + i;
        double error = (double)found[i] - (double)real[at];

        sums->values++;
        sums->noise += error * error;
        sums->signal += (double)real[at] * (double)real[at];
        error = error < 0 ? -error : error;
        sums->error = error > sums->error ? error : sums->error;
        if (muc_f32_bits(found[i]) != muc_f32_bits(exact[at])) {
            sums->wrong++;
            tell_first(w, stage, layer, row, column + i, found[i], exact[at]);
        }
    }
}

/* ---- watching ---- */

static void watch(void *arg, mur_sim *sim, enum mur_engine engine, const uint32_t *words)
{
    watcher *w = arg;
    mur_stage_values found[MUR_STAGE_MOST];
    uint32_t count = w->status == MUC_OK ? mur_stages_add(&w->seen, words, found) : 0;

    (void)engine;
    if (count > 0)
        mur_sim_do_kept(sim);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t r = 0; r < found[i].rows; r++)
            compare(w, found[i].stage, found[i].layer, found[i].row + r, found[i].column,
                    sim->memory.gb + found[i].address + (size_t)r * found[i].pitch,
                    found[i].columns);
}

/* ---- the program's blocks ---- */

/* As the kinds lie in region WGTS (SPEC.md section 8); k and n are of one layer's matrix: d the
 * width, v the vocabulary, f the feed-forward width, q and h all heads of Q, and of K or V. */
static const struct {
    const char *tensor;
    char k, n;
} matrices[] = {
    { "model.embed_tokens.weight", 'd', 'v' },
    { "lm_head.weight", 'd', 'v' },
    { "model.layers.%u.mlp.down_proj.weight", 'f', 'd' },
    { "model.layers.%u.mlp.gate_proj.weight", 'd', 'f' },
    { "model.layers.%u.mlp.up_proj.weight", 'd', 'f' },
    { "model.layers.%u.self_attn.o_proj.weight", 'q', 'd' },
    { "model.layers.%u.self_attn.q_proj.weight", 'd', 'q' },
    { "model.layers.%u.self_attn.k_proj.weight", 'd', 'h' },
    { "model.layers.%u.self_attn.v_proj.weight", 'd', 'h' },
};

static uint32_t dimension(const mur_meta *meta, char letter)
{
    switch (letter) {
    case 'd':
        return meta->width;
    case 'v':
        return meta->vocabulary;
    case 'f':
        return meta->ffn_width;
    case 'q':
        return meta->heads * meta->head_width;
    default:
        return meta->kv_heads * meta->head_width;
    }
}

typedef struct cutter {
    muc_context *ctx;
    const char *program_name;
    muc_graph *graph;
    muc_reader reader; /* of region WGTS */
    muc_tile_shape shape;
    uint32_t own_layers; /* with matrices of their own */
} cutter;

/* The tiles of a matrix whose rows come in parts, column by column: the index and the blocks. Their
 * own index says where they lie from `base` on, up to byte `end`; the sequence has room for
 * `bytes`. */
static muc_status join_parts(const cutter *c, const uint8_t *index, size_t base, uint32_t end,
                             uint32_t count, uint32_t across, uint32_t parts, uint8_t *sequence,
                             size_t bytes)
{
    uint32_t down = count / across / parts, at = 4 * (count + 1);

    for (uint32_t t = 0; t < count; t++) {
        uint32_t column = t / (down * parts), part = t / down % parts;
        uint32_t tile = (part * across + column) * down + t % down;
        uint32_t from = muc_load_u32(index + 4 * (size_t)tile);
        uint32_t to = muc_load_u32(index + 4 * (size_t)tile + 4);

        if (from > to || to > end || at + (to - from) > bytes)
            return muc_fail(c->ctx, MUC_MALFORMED, c->program_name, MUC_NO_OFFSET,
                            "a tile lies from %u to %u in WGTS", from, to);
        muc_store_u32(sequence + 4 * (size_t)t, at);
        memcpy(sequence + at, c->reader.bytes.data + base + from, to - from);
        at += to - from;
    }
    muc_store_u32(sequence + 4 * (size_t)count, at);
    return MUC_OK;
}

/* The same sequence in tiles of 64 by 8. */
static muc_status retile(const cutter *c, uint32_t n, uint32_t k, muc_bytes *sequence)
{
    const muc_tile_shape to = { MUC_BD_TILE_K, MUC_BD_TILE_N };
    const muc_bytes from = *sequence;

    if (c->shape.k == to.k && c->shape.n == to.n)
        return MUC_OK;
    MUC_TRY(muc_retile(c->ctx, &c->graph->arena, from, k, n, c->shape, to, sequence));
    muc_large_rest(from.data, from.size);
    return MUC_OK;
}

/* Gives a tensor of the graph the tiles first..first+count-1 of the sequence at `start`, as a
 * sequence of its own in tiles of 64 by 8. */
static muc_status cut_tensor(cutter *c, const char *name, size_t start, uint32_t first,
                             uint32_t count, uint32_t n, uint32_t k, uint32_t parts)
{
    uint32_t across = (n + c->shape.n - 1) / c->shape.n;
    uint32_t id = muc_graph_find(c->graph, name), from, to, own = 4 * (count + 1);
    const uint8_t *index = c->reader.bytes.data + start + 4 * (size_t)first;
    uint8_t *sequence;
    muc_bytes bytes;

    if (id == MUC_NO_ID)
        return muc_fail(c->ctx, MUC_MISMATCH, c->program_name, MUC_NO_OFFSET,
                        "the checkpoint has no tensor '%s'", name);
    from = muc_load_u32(index);
    to = muc_load_u32(index + 4 * (size_t)count);
    if (from > to || to > c->reader.bytes.size - start)
        return muc_fail(c->ctx, MUC_MALFORMED, c->program_name, MUC_NO_OFFSET,
                        "the tiles of '%s' lie from %u to %u in WGTS", name, from, to);
    MUC_TRY(muc_arena_new_large(c->ctx, &c->graph->arena, (size_t)own + to - from, &sequence));
    MUC_TRY(
        join_parts(c, index, start, to, count, across, parts, sequence, (size_t)own + to - from));
    bytes = (muc_bytes){ sequence, (size_t)own + to - from, c->program_name };
    MUC_TRY(retile(c, n, k, &bytes));
    MUC_TRY(muc_bd_check(c->ctx, bytes, 0, n, k));
    muc_large_rest(bytes.data, bytes.size);
    c->graph->tensors[id].sequence = bytes.data;
    c->graph->tensors[id].sequence_bytes = bytes.size;
    c->graph->tensors[id].sequence_rests = true;
    return MUC_OK;
}

/* one kind of matrix: its tiles' index, then the blocks of all layers */
static muc_status cut_kind(cutter *c, const mur_meta *meta, unsigned kind)
{
    uint32_t k = dimension(meta, matrices[kind].k), n = dimension(meta, matrices[kind].n);
    uint32_t layers = strstr(matrices[kind].tensor, "%u") ? c->own_layers : 1;
    uint64_t across = (n + c->shape.n - 1) / c->shape.n;
    uint64_t tiles = across * ((k + c->shape.k - 1) / c->shape.k);
    uint32_t parts = strstr(matrices[kind].tensor, ".down_proj") ? meta->ffn_parts
                     : strstr(matrices[kind].tensor, ".o_proj")  ? meta->o_parts
                                                                 : 1;
    size_t start = c->reader.at;
    const uint8_t *index;
    uint64_t end;

    if (parts > 1 && k % (parts * c->shape.k) != 0)
        return muc_fail(c->ctx, MUC_MALFORMED, c->program_name, MUC_NO_OFFSET,
                        "%u parts of %u rows are not whole tiles", parts, k);

    MUC_TRY(muc_read_span(&c->reader, 4 * (tiles * layers + 1), "tile index", &index));
    for (uint32_t layer = 0; layer < layers; layer++) {
        char name[MOST_NAME];

        snprintf(name, sizeof(name), matrices[kind].tensor, layer);
        MUC_TRY(
            cut_tensor(c, name, start, (uint32_t)(layer * tiles), (uint32_t)tiles, n, k, parts));
    }
    /* the next kind begins at the next multiple of 16 */
    end = start + muc_load_u32(index + 4 * tiles * layers);
    c->reader.at = (size_t)((end + 15) / 16 * 16);
    if (c->reader.at > c->reader.bytes.size)
        c->reader.at = c->reader.bytes.size;
    return MUC_OK;
}

static muc_status attach_blocks(muc_context *ctx, const muc_model *program, muc_graph *graph)
{
    const mur_program *p = muc_model_program(program);
    const muc_bytes wgts = { p->section[MUR_SECTION_WGTS], p->section_bytes[MUR_SECTION_WGTS],
                             program->path };
    cutter c = { .ctx = ctx,
                 .program_name = program->path,
                 .graph = graph,
                 .reader = muc_reader_of(ctx, wgts),
                 .shape = { mur_tile_rows(p->mach->isa), mur_tile_columns(p->mach->isa) },
                 .own_layers = muc_dram_own_layers(p) };

    for (unsigned kind = 0; kind < MUC_COUNT(matrices); kind++) {
        bool is_head = strcmp(matrices[kind].tensor, "lm_head.weight") == 0;

        if (!is_head || !p->meta->tied)
            MUC_TRY(cut_kind(&c, p->meta, kind));
    }
    return MUC_OK;
}

/* ---- running ---- */

typedef struct trial {
    muc_context *ctx;
    const muc_model *program, *model;
    uint32_t *tokens;
    size_t count;
    uint32_t most_tokens; /* of a call */
    muc_graph *exact_graph, *real_graph;
    muc_engine *engine;
    watcher watcher;
} trial;

static muc_status need_same_shape(trial *t)
{
    const muc_model_config *config = &t->model->checkpoint.config;
    const mur_meta *meta;

    meta = muc_model_program(t->program)->meta;
    if (meta->vocabulary != config->vocabulary ||
        meta->layers != config->layers * (config->layers_twice ? 2 : 1) ||
        meta->width != config->dim || meta->heads != config->heads ||
        meta->kv_heads != config->kv_heads || meta->head_width != config->head_dim ||
        meta->ffn_width != config->ffn_dim || (meta->tied != 0) != config->tied ||
        meta->context > config->context)
        return muc_fail(t->ctx, MUC_MISMATCH, t->program->path, MUC_NO_OFFSET,
                        "the program was made from a model of another shape than %s",
                        t->model->path);
    return MUC_OK;
}

static muc_ref_terms terms_of(const mur_program *program, uint32_t layer)
{
    const muc_uthinker_terms terms = muc_layer_terms_of(program, layer);

    return (muc_ref_terms){
#define TERM(letter, meaning) .letter = terms.letter,
        MUC_UTHINKER_TERMS(TERM)
#undef TERM
            .step = (uint8_t)mur_tile_tokens(program->mach->isa),
    };
}

static muc_status open_exact(trial *t)
{
    const mur_program *program = muc_model_program(t->program);
    muc_ref_terms terms = terms_of(program, 0), *layers;
    muc_status status;

    MUC_TRY(MUC_NEW_ARRAY(t->ctx, t->program->path, program->meta->layers, &layers));
    for (uint32_t l = 0; l < program->meta->layers; l++)
        layers[l] = terms_of(program, l);
    terms.layers = layers;
    terms.layer_count = program->meta->layers;
    status = muc_ref_open_machine(t->ctx, t->exact_graph, &terms, &t->watcher.exact);
    free(layers);
    return status;
}

/* A call has as many tokens as leave both references' values some room beside the models. */
static muc_status limit_calls(trial *t)
{
    enum { MOST_BYTES = 64 << 20 };
    static const uint32_t one_token[MUC_EXPR_MAX_INPUTS] = { 0, 1 };
    const muc_graph *graph = t->real_graph;
    uint64_t token = 1, elements, bytes;

    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        if (graph->tensors[i].kind != MUC_TENSOR_ACTIVATION)
            continue;
        MUC_TRY(muc_tensor_measure_bound(t->ctx, graph, &graph->tensors[i], one_token, &elements,
                                         &bytes));
        token += 2 * bytes;
    }
    t->most_tokens = token < MOST_BYTES ? (uint32_t)(MOST_BYTES / token) : 1;
    if (t->most_tokens > MUC_ENGINE_MOST_TOKENS)
        t->most_tokens = MUC_ENGINE_MOST_TOKENS;
    return MUC_OK;
}

static muc_status set_up(trial *t)
{
    const mur_meta *meta = muc_model_program(t->program)->meta;

    MUC_TRY(muc_model_graph(t->ctx, t->model, &t->real_graph));
    MUC_TRY(muc_model_graph(t->ctx, t->model, &t->exact_graph));
    MUC_TRY(attach_blocks(t->ctx, t->program, t->exact_graph));
    MUC_TRY(limit_calls(t));
    MUC_TRY(muc_ref_open(t->ctx, t->real_graph, &t->watcher.real));
    MUC_TRY(open_exact(t));
    MUC_TRY(muc_engine_new(t->ctx, t->program, &t->engine));
    t->watcher.ctx = t->ctx;
    t->watcher.seen.meta = meta;
    muc_engine_watch(t->engine, watch, &t->watcher);
    return MUC_OK;
}

/* Runs the call's tokens on both references, and with a single token those that follow: matrices
 * are decoded once for all of them, and their bits do not depend on the call. */
static muc_status run_references(trial *t, size_t at, uint32_t count)
{
    watcher *w = &t->watcher;
    int32_t tokens[MUC_ENGINE_MOST_TOKENS];

    if (at >= w->first_row && at + count <= w->end_row)
        return MUC_OK;
    if (count == 1)
        count = (uint32_t)(t->count - at < t->most_tokens ? t->count - at : t->most_tokens);
    for (uint32_t i = 0; i < count; i++)
        tokens[i] = (int32_t)t->tokens[at + i];
    MUC_TRY(muc_ref_run_tokens(w->real, (uint32_t)at, tokens, count));
    MUC_TRY(muc_ref_run_tokens(w->exact, (uint32_t)at, tokens, count));
    w->first_row = at;
    w->end_row = at + count;
    return MUC_OK;
}

/* one call of count tokens: both references first, then the machine under watch */
static muc_status run_call(trial *t, size_t at, uint32_t count)
{
    watcher *w = &t->watcher;
    const float *logits;

    MUC_TRY(run_references(t, at, count));
    w->position = (uint32_t)at;
    MUC_TRY(muc_engine_feed(t->engine, t->tokens + at, count, false, &logits));
    if (w->status == MUC_OK)
        compare(w, MUR_STAGE_LOGITS, w->seen.meta->layers - 1, count - 1, 0, logits,
                w->seen.meta->vocabulary);
    return w->status;
}

static muc_status run_all(trial *t)
{
    size_t at = 0;

    while (at < t->count) {
        uint32_t count = muc_program_call_tokens(t->program, at, t->count);

        count = count < t->most_tokens ? count : t->most_tokens;
        muc_progress(t->ctx, "positions", at, t->count);
        MUC_TRY(run_call(t, at, count));
        at += count;
    }
    muc_progress(t->ctx, "positions", t->count, t->count);
    return MUC_OK;
}

/* infinite, which a report shows as none, where there is no noise */
static double decibels(double signal, double noise)
{
    return noise > 0 ? 10 / muc_log(10) * muc_log(signal / noise) : INFINITY;
}

static muc_status report_trial(const trial *t, muc_report **out)
{
    const watcher *w = &t->watcher;
    muc_report *report;

    MUC_TRY(muc_report_new(t->ctx, out));
    report = *out;
    muc_report_add_bool(report, "exact", !w->first[0]);
    muc_report_add_count(report, "positions", t->count);
    if (w->first[0])
        muc_report_add_text(report, "first_divergence", "%s", w->first);
    muc_report_begin_table(report, "stages");
    for (unsigned i = 0; i < MUR_STAGES; i++) {
        muc_report_begin_row(report);
        muc_report_add_text(report, "stage", "%s", stages[i].name);
        muc_report_add_count(report, "values", w->sums[i].values);
        muc_report_add_count(report, "wrong", w->sums[i].wrong);
        muc_report_add_real(report, "error", w->sums[i].error);
        muc_report_add_real(report, "snr_db", decibels(w->sums[i].signal, w->sums[i].noise));
        muc_report_end(report);
    }
    muc_report_end(report);
    return muc_report_status(t->ctx, report);
}

muc_status muc_verify_language_uthinker(muc_context *ctx, const muc_model *program,
                                        const muc_model *model, const char *prompt,
                                        muc_report **out)
{
    trial t = { .ctx = ctx, .program = program, .model = model };
    muc_status status = need_same_shape(&t);

    if (status == MUC_OK)
        status = muc_program_tokens(ctx, program, prompt, &t.tokens, &t.count);
    if (status == MUC_OK)
        status = set_up(&t);
    if (status == MUC_OK)
        status = run_all(&t);
    if (status == MUC_OK)
        status = report_trial(&t, out);
    if (status == MUC_OK && t.watcher.first[0])
        status =
            muc_fail(ctx, MUC_MISMATCH, program->path, MUC_NO_OFFSET,
                     "the machine and the graph in its arithmetic differ at %s", t.watcher.first);
    muc_engine_free(t.engine);
    muc_ref_close(t.watcher.exact);
    muc_ref_close(t.watcher.real);
    muc_graph_free(t.exact_graph);
    muc_graph_free(t.real_graph);
    free(t.tokens);
    return status;
}

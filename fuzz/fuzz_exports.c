/* Exports of a network that is drawn by chance, each at a length of its own: the one graph that
 * unify makes of them computes what each of them does, bit for bit. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "maker.h"
#include "passes/unify/unify.h"
#include "ref/ref.h"

enum { MOST_EXPORTS = 4, MOST_INPUTS = 64, MOST_SUM = 8 };

/* tokens of an export, in its caches and new; the pool of the network has other names for them */
typedef struct lengths {
    uint32_t pos, m;
} lengths;

typedef struct road {
    muc_context *ctx;
    fuzz_chance chance;
    muc_graph *graphs[MOST_EXPORTS];
    uint32_t count;
    muc_unified unified;
    muc_arena arena;
    muc_ref_input inputs[MOST_INPUTS + 1]; /* of the run at work, and its record */
    size_t input_count;
} road;

/* ---- a network at one length ---- */

static size_t word_length(const char *at)
{
    size_t length = 0;

    while (isalnum((unsigned char)at[length]) || (at[length] && strchr("_./:-", at[length])))
        length++;
    return length ? length : 1;
}

/* a word, or the number that it is */
static void put_word(muc_text *out, const char *word, size_t length, const lengths *l)
{
    if (length == 3 && strncmp(word, "pos", 3) == 0)
        muc_text_add(out, "%u", l->pos);
    else if ((length == 1 && *word == 'm') || (length == 5 && strncmp(word, "len_n", 5) == 0))
        muc_text_add(out, "%u", l->m);
    else
        muc_text_add_bytes(out, word, length);
}

/* a line in which lengths are numbers, a state an input of pos rows, and append a concat */
static void put_line(muc_text *out, const char *line, const lengths *l)
{
    const char *state = strstr(line, " = state "), *append = strstr(line, " = append ");
    const char *end = append ? strstr(line, " position=") : line + strlen(line);

    if (strncmp(line, "input ", 6) == 0 || strncmp(line, "assume ", 7) == 0)
        return;
    while (line < end) {
        size_t length = word_length(line);

        if (state && line == state + 3) {
            const char *open = strchr(line, '['), *row = strpbrk(line, ",]");

            if (!open || !row)
                break;
            muc_text_add(out, "input%.*s[%u", (int)(open - line - 5), line + 5, l->pos);
            line = row;
            continue;
        }
        if (append && line == append + 3)
            muc_text_add(out, "concat");
        else
            put_word(out, line, length, l);
        line += length;
    }
    muc_text_add(out, "\n");
}

/* Constants that exports are calibrated with: some of those of i32. */
static void vary(muc_graph *graph, uint32_t which, uint32_t export)
{
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        const muc_tensor *t = &graph->tensors[i];
        int32_t *words = (int32_t *)(uintptr_t)t->data; /* the graph's own */

        if (t->kind == MUC_TENSOR_CONST && t->dtype == MUC_I32 && i % 4 == which)
            for (uint64_t w = 0; w < t->bytes / sizeof(*words) && (i % 8 < 4 || w == 0); w++)
                words[w] += (int32_t) export;
    }
}

static bool add_export(road *r, const muc_text *whole, const lengths *l, uint32_t varied)
{
    char *lines = strdup(whole->data), *save = NULL;
    muc_text text = { 0 };
    muc_bytes bytes;
    bool ok;

    for (char *line = strtok_r(lines, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        put_line(&text, line, l);
    bytes = (muc_bytes){ (const uint8_t *)text.data, text.size, "n.graph" };
    ok = muc_graph_parse(r->ctx, bytes, &r->graphs[r->count]) == MUC_OK;
    if (ok) {
        vary(r->graphs[r->count], varied, r->count);
        r->count++;
    }
    muc_text_free(&text);
    free(lines);
    return ok;
}

/* No length is so at another network's: what a shape rule refuses at one length ends the road. */
static bool draw_exports(road *r)
{
    fuzz_style style = fuzz_draw(&r->chance, 3) ? FUZZ_IN_EXPORT : FUZZ_IN_OPEN;
    muc_graph *graph = fuzz_make_network(r->ctx, &r->chance, &style);
    uint32_t count = 2 + fuzz_draw(&r->chance, MOST_EXPORTS - 1);
    uint32_t varied = fuzz_draw(&r->chance, 8); /* 4 and more: none */
    muc_text whole = { 0 };
    bool ok = true;

    muc_graph_print_whole(graph, &whole);
    muc_graph_free(graph);
    for (uint32_t i = 0; ok && i < count; i++) {
        lengths l = { .m = 1 + fuzz_draw(&r->chance, MOST_SUM) };

        l.pos = fuzz_draw(&r->chance, MOST_SUM + 1 - l.m);
        ok = add_export(r, &whole, &l, varied);
    }
    muc_text_free(&whole);
    return ok;
}

/* ---- an export beside the one graph ---- */

static bool draw_inputs(road *r, const muc_graph *graph)
{
    static const uint32_t none[MUC_EXPR_MAX_INPUTS];

    r->input_count = 0;
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        const muc_tensor *t = &graph->tensors[i];
        uint64_t elements, bytes;
        uint8_t *data;

        if (t->kind != MUC_TENSOR_INPUT)
            continue;
        if (r->input_count == MOST_INPUTS ||
            muc_tensor_measure_bound(r->ctx, graph, t, none, &elements, &bytes) != MUC_OK ||
            muc_arena_new(r->ctx, &r->arena, (size_t)bytes + 1, 1, (void **)&data) != MUC_OK)
            return false;
        for (uint64_t e = 0; e < elements; e++)
            fuzz_store(t->dtype, data, e, (double)fuzz_draw(&r->chance, 256) - 128);
        r->inputs[r->input_count++] = (muc_ref_input){ t->name, data, (size_t)bytes };
    }
    return true;
}

static bool is_cache(const muc_unified *unified, const char *name)
{
    for (uint32_t i = 0; i < unified->cache_count; i++)
        if (strcmp(unified->caches[i].name, name) == 0)
            return true;
    return false;
}

/* the first rows are what the export's input has */
static bool fill_cache(road *r, muc_ref *ref, const muc_ref_input *rows)
{
    static const uint32_t none[MUC_EXPR_MAX_INPUTS];
    const muc_graph *graph = r->unified.graph;
    uint32_t id = muc_graph_find(graph, rows->name);
    uint64_t elements, bytes;
    uint8_t *state;

    if (muc_tensor_measure_bound(r->ctx, graph, &graph->tensors[id], none, &elements, &bytes) !=
            MUC_OK ||
        muc_arena_new(r->ctx, &r->arena, (size_t)bytes + 1, 1, (void **)&state) != MUC_OK)
        return false;
    memset(state, 0x55, (size_t)bytes);
    memcpy(state, rows->data, rows->bytes);
    return muc_ref_set_state(ref, id, state, (size_t)bytes) == MUC_OK;
}

/* the inputs that the one graph has of them, and the record */
static bool run_unified(road *r, muc_ref *ref, uint32_t export)
{
    const muc_unified_export *e = &r->unified.exports[export];
    const muc_expr_pool *pool = r->unified.graph->pool;
    uint32_t bindings[MUC_EXPR_MAX_INPUTS] = { 0 };
    uint32_t pos = muc_expr_find_input(pool, "pos"), m = muc_expr_find_input(pool, "m");
    size_t count = 0;

    if (pos != UINT32_MAX)
        bindings[pos] = e->pos;
    if (m != UINT32_MAX)
        bindings[m] = e->m;
    for (size_t i = 0; i < r->input_count; i++)
        if (!is_cache(&r->unified, r->inputs[i].name))
            r->inputs[count++] = r->inputs[i];
        else if (!fill_cache(r, ref, &r->inputs[i]))
            return false;
    if (r->unified.record_words)
        r->inputs[count++] = (muc_ref_input){ MUC_UNIFY_RECORD, e->record,
                                              r->unified.record_words * sizeof(*e->record) };
    return muc_ref_run(ref, bindings, r->inputs, count) == MUC_OK;
}

_Noreturn static void fail(road *r, uint32_t export, const char *what)
{
    muc_text text = { 0 };

    for (uint32_t i = 0; i < r->count; i++)
        muc_graph_print_whole(r->graphs[i], &text);
    muc_graph_print_whole(r->unified.graph, &text);
    fprintf(stderr, "%sexport %u: %s: %s\n", text.data, export, what, muc_error_message(r->ctx));
    abort();
}

static void compare(road *r, uint32_t export, const muc_ref *own, const muc_ref *ref)
{
    const muc_graph *graph = r->graphs[export];

    for (uint32_t i = 0; i < graph->output_count; i++) {
        muc_ref_view a, b;

        if (!muc_ref_get(own, graph->outputs[i], &a) ||
            !muc_ref_get(ref, r->unified.graph->outputs[i], &b) || a.dtype != b.dtype ||
            a.elements != b.elements ||
            memcmp(a.data, b.data, a.elements * muc_dtype_get(a.dtype)->block_bytes) != 0)
            fail(r, export, graph->tensors[graph->outputs[i]].name);
    }
}

static void compare_export(road *r, uint32_t export)
{
    static const uint32_t none[MUC_EXPR_MAX_INPUTS];
    muc_ref *own = NULL, *ref = NULL;

    if (muc_ref_open(r->ctx, r->graphs[export], &own) == MUC_OK &&
        draw_inputs(r, r->graphs[export]) &&
        muc_ref_run(own, none, r->inputs, r->input_count) == MUC_OK) {
        if (muc_ref_open(r->ctx, r->unified.graph, &ref) != MUC_OK || !run_unified(r, ref, export))
            fail(r, export, "the one graph refuses it");
        compare(r, export, own, ref);
    }
    muc_error_clear(r->ctx);
    muc_ref_close(own);
    muc_ref_close(ref);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[MOST_EXPORTS] = { "a", "b", "c", "d" };
    road r = { .ctx = muc_context_new(1), .chance = { .bytes = data, .left = size } };
    muc_unify_options options = { 0 };
    muc_status status;

    if (draw_exports(&r)) {
        options.context = fuzz_draw(&r.chance, 2) ? 2 * MOST_SUM : 0;
        status = muc_unify(r.ctx, r.graphs, names, r.count, &options, &r.unified);
        if (status == MUC_BUG) {
            fprintf(stderr, "%s\n", muc_error_message(r.ctx));
            abort();
        }
        for (uint32_t i = 0; status == MUC_OK && i < r.count; i++)
            compare_export(&r, i);
        muc_unified_free(&r.unified);
    }
    for (uint32_t i = 0; i < r.count; i++)
        muc_graph_free(r.graphs[i]);
    muc_arena_free(&r.arena);
    muc_context_free(r.ctx);
    return 0;
}

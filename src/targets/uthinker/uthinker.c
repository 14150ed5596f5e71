/* uthinker.c - the passes of this back end, in order. */
#include "targets/uthinker/uthinker.h"

#include <stdlib.h>

#include "base/large.h"
#include "base/threads.h"
#include "quant/bd_sequence.h"
#include "targets/uthinker/clock/clock.h"
#include "targets/uthinker/lower/retile.h"

enum { MOST_PARTS = 8 }; /* of the feed-forward part */

const muc_uthinker_options muc_uthinker_defaults = {
    .terms = { .x = 2, .q = 2, .k = 2, .p = 2, .v = 2, .o = 2, .f = 2, .h = 2, .l = 2 },
};

/* more: what else would help */
static muc_status check_flash(muc_context *ctx, const muc_uthinker_layout *layout, uint64_t bytes,
                              const char *more)
{
    uint64_t has = layout->machine.flash_bytes;

    if (has == 0 || bytes <= has)
        return MUC_OK;
    return muc_fail(ctx, MUC_NOFIT, layout->source, MUC_NO_OFFSET,
                    "flash needs %llu bytes, %llu more than the machine has; the weights take %u "
                    "of them; %s the machine (--machine FILE) must have flash of at least %llu",
                    (unsigned long long)bytes, (unsigned long long)(bytes - has),
                    layout->wgts_bytes, more, (unsigned long long)bytes);
}

muc_status muc_uthinker_write(muc_context *ctx, muc_uthinker_build *build)
{
    MUC_TRY(muc_container_write(ctx, &build->arena, &build->sections, &build->program));
    /* RoPE's tables, which emission put into large memory: the program has them now */
    muc_large_rest(build->sections.section[MUR_SECTION_PARM].data,
                   build->sections.section[MUR_SECTION_PARM].size);
    return check_flash(ctx, &build->layout, build->program.size,
                       "fewer bits (--bits) would help, or");
}

/* Tries the splits that a model can have, the simplest first. */
typedef muc_status split_visit(muc_context *ctx, void *arg, muc_uthinker_split split);

static muc_status each_split(muc_context *ctx, const muc_uthinker_model *model,
                             const muc_uthinker_machine *machine, split_visit *visit, void *arg)
{
    for (uint32_t parts = 1; parts <= MOST_PARTS; parts++)
        for (unsigned by_head = 0; by_head < 2; by_head++) {
            const muc_uthinker_split split = { .ffn_parts = parts, .o_by_head = by_head };

            if (muc_uthinker_can_split(model, machine, split))
                MUC_TRY(visit(ctx, arg, split));
        }
    return MUC_OK;
}

/* that a split does not fit is not a failure yet */
static muc_status forgive(muc_context *ctx, muc_status status)
{
    if (status != MUC_NOFIT)
        return status;
    muc_error_clear(ctx);
    return MUC_OK;
}

typedef struct shape_check {
    const muc_uthinker_model *model;
    const muc_uthinker_machine *machine;
    const muc_uthinker_options *options;
    muc_uthinker_split last; /* the finest */
    bool fits;
} shape_check;

static muc_status check_split(muc_context *ctx, const shape_check *check, muc_uthinker_split split)
{
    muc_uthinker_model model;
    muc_uthinker_layout layout;
    muc_arena arena = { 0 };
    muc_status status =
        muc_uthinker_split_rows(ctx, &arena, check->model, check->machine, split, &model);

    if (status == MUC_OK)
        status = muc_uthinker_lay_out_least(ctx, &model, check->machine, check->options, &layout);
    if (status == MUC_OK)
        status = check_flash(ctx, &layout, (uint64_t)layout.wgts_bytes + layout.parm_bytes,
                             "with the fewest bits there are;");
    muc_arena_free(&arena);
    return status;
}

static muc_status try_shapes(muc_context *ctx, void *arg, muc_uthinker_split split)
{
    shape_check *check = arg;
    muc_status status;

    if (check->fits)
        return MUC_OK;
    check->last = split;
    status = check_split(ctx, check, split);
    check->fits = status == MUC_OK;
    return forgive(ctx, status);
}

muc_status muc_uthinker_check_shapes(muc_context *ctx, const muc_graph *graph,
                                     const muc_uthinker_machine *machine,
                                     const muc_uthinker_options *options)
{
    muc_uthinker_model model;
    muc_arena arena = { 0 };
    shape_check check = { .model = &model, .machine = machine, .options = options };
    muc_status status = muc_uthinker_match_shapes(ctx, &arena, graph, &model);

    if (status == MUC_OK)
        status = each_split(ctx, &model, machine, try_shapes, &check);
    if (status == MUC_OK && !check.fits)
        status = check_split(ctx, &check, check.last);
    muc_arena_free(&arena);
    return status;
}

/* The weights in the machine's tiles, where those are not the ones of BlockDialect sequences. */
static muc_status retile_weights(muc_context *ctx, muc_arena *arena,
                                 const muc_uthinker_machine *machine, muc_uthinker_model *model)
{
    const muc_tile_shape from = { MUC_BD_TILE_K, MUC_BD_TILE_N };
    const muc_tile_shape to = { machine->tile_k, machine->tile_n };

    if (from.k == to.k && from.n == to.n)
        return MUC_OK;
    for (uint32_t i = 0; i < MUC_MATRIX_COUNT; i++) {
        muc_matrix_shape shape = muc_uthinker_matrix_shape(model, (muc_matrix_kind)i);

        for (uint32_t w = 0; w < shape.count; w++) {
            muc_uthinker_weight *weight = &model->weights[i][w];
            const muc_bytes sequence = { weight->sequence, (size_t)weight->bytes, weight->name };
            muc_bytes tiles;

            MUC_TRY(muc_retile(ctx, arena, sequence, shape.k, shape.n, from, to, &tiles));
            muc_large_rest(sequence.data, weight->resting);
            muc_large_rest(tiles.data, tiles.size);
            weight->sequence = tiles.data;
            weight->resting = weight->bytes = tiles.size;
        }
    }
    return MUC_OK;
}

/* Schedules a split model: everything of the build but the file. */
static muc_status schedule(muc_context *ctx, const muc_uthinker_model *whole,
                           const muc_uthinker_machine *machine, const muc_uthinker_options *options,
                           muc_uthinker_build *build,
                           muc_uthinker_entry entries[MUC_UTHINKER_ENTRIES])
{
    static const muc_entry_kind kinds[] = { MUC_ENTRY_DECODE, MUC_ENTRY_PREFILL };
    const muc_flatten_options passes = { .streamed = options->split.streamed };

    MUC_TRY(
        muc_uthinker_split_rows(ctx, &build->arena, whole, machine, options->split, &build->model));
    MUC_TRY(
        muc_uthinker_lay_out(ctx, &build->arena, &build->model, machine, options, &build->layout));
    for (uint32_t i = 0; i < MUC_UTHINKER_ENTRIES; i++) {
        muc_template *template = &build->templates[i];

        MUC_TRY(muc_uthinker_lower(ctx, &build->arena, &build->layout, kinds[i], template));
        MUC_TRY(muc_uthinker_flatten(ctx, &build->arena, template, &passes, &build->flat[i]));
        entries[i] =
            (muc_uthinker_entry){ kinds[i], template->min_m, template->max_m, &build->flat[i] };
    }
    return MUC_OK;
}

/* ---- the split with the shortest calls ---- */

typedef struct choice {
    const muc_uthinker_model *model;
    const muc_uthinker_machine *machine; /* with times */
    const muc_uthinker_options *options;
    uint64_t best_ps; /* UINT64_MAX: none fits yet */
    muc_uthinker_split split;
} choice;

/* picoseconds for a token that is read, in a call of as many as there may be which others follow,
 * and one that is written, in the middle of the context */
static muc_status time_tokens(muc_context *ctx, const choice *c, const mur_program *program,
                              uint64_t *ps)
{
    uint32_t context = program->meta->context, rows = program->meta->rows;
    uint32_t middle = context / 2 < context - rows ? context / 2 : context - rows;
    muc_clock_sums read = { 0 }, write = { 0 };

    MUC_TRY(muc_clock_call(ctx, program, c->machine, middle, rows, MUC_CLOCK_NOTHING, &read));
    MUC_TRY(muc_clock_call(ctx, program, c->machine, middle, 1, MUC_CLOCK_LIKELIEST, &write));
    *ps = read.ps / rows + write.ps;
    return MUC_OK;
}

static muc_status time_split(muc_context *ctx, const choice *c, muc_uthinker_split split,
                             muc_uthinker_build *build, uint64_t *ps)
{
    static const muc_uthinker_tokens none;
    muc_uthinker_options options = *c->options;
    muc_uthinker_entry entries[MUC_UTHINKER_ENTRIES];
    const muc_container *sections = &build->sections;
    const muc_uthinker_layout *layout = &build->layout;
    mur_program program = { .steps = UINT32_MAX, .entry_count = MUC_UTHINKER_ENTRIES };

    options.split = split;
    MUC_TRY(schedule(ctx, c->model, c->machine, &options, build, entries));
    MUC_TRY(muc_uthinker_emit_code(ctx, &build->arena, &build->layout, entries, &none,
                                   &build->sections));
    program.meta = (const mur_meta *)(const void *)sections->section[MUR_SECTION_META].data;
    program.entries = (const mur_entr *)(const void *)sections->section[MUR_SECTION_ENTR].data;
    program.code = (const uint32_t *)(const void *)sections->section[MUR_SECTION_CODE].data;
    program.tables = (const uint32_t *)(const void *)sections->section[MUR_SECTION_TABL].data;
    program.region_bytes[MUR_WGTS] = layout->wgts_bytes;
    program.region_bytes[MUR_PARM] = layout->parm_bytes;
    program.region_bytes[MUR_KV] = layout->kv_bytes;
    program.region_bytes[MUR_IO] = layout->io_bytes;
    return time_tokens(ctx, c, &program, ps);
}

static muc_status try_split(muc_context *ctx, const choice *c, muc_uthinker_split split,
                            uint64_t *ps)
{
    muc_uthinker_build *build;
    muc_status status;

    MUC_TRY(MUC_NEW_ARRAY(ctx, "uthinker", 1, &build));
    status = time_split(ctx, c, split, build, ps);
    muc_uthinker_build_free(build);
    return status;
}

/* Takes another split if it is faster. */
static muc_status compare_split(muc_context *ctx, void *arg, muc_uthinker_split split)
{
    choice *c = arg;
    uint64_t ps = UINT64_MAX;
    muc_status status = try_split(ctx, c, split, &ps);

    if (status == MUC_OK && ps < c->best_ps) {
        c->best_ps = ps;
        c->split = split;
    }
    return forgive(ctx, status);
}

typedef struct candidates {
    muc_context *ctx;
    const choice *choice;
    muc_uthinker_split split[2 * MOST_PARTS];
    uint64_t ps[2 * MOST_PARTS]; /* UINT64_MAX: does not fit */
    size_t count;
} candidates;

static muc_status add_candidate(muc_context *ctx, void *arg, muc_uthinker_split split)
{
    candidates *all = arg;

    (void)ctx;
    all->split[all->count] = split;
    all->ps[all->count++] = UINT64_MAX;
    return MUC_OK;
}

static muc_status time_candidate(void *arg, size_t i)
{
    candidates *all = arg;
    muc_status status = try_split(all->ctx, all->choice, all->split[i], &all->ps[i]);

    return status == MUC_NOFIT ? MUC_OK : status;
}

/* The fastest of those that fit, the first of equals. */
static muc_status choose_candidate(muc_context *ctx, choice *c)
{
    candidates all = { .ctx = ctx, .choice = c };
    muc_status status;

    MUC_TRY(each_split(ctx, c->model, c->machine, add_candidate, &all));
    status = muc_parallel_for(ctx, all.count, time_candidate, &all);
    muc_error_clear(ctx);
    if (status != MUC_OK) /* one after the other, so that the message is of the one that failed */
        return each_split(ctx, c->model, c->machine, compare_split, c);
    for (size_t i = 0; i < all.count; i++)
        if (all.ps[i] < c->best_ps) {
            c->best_ps = all.ps[i];
            c->split = all.split[i];
        }
    return MUC_OK;
}

muc_status muc_uthinker_timed_machine(muc_context *ctx, const muc_uthinker_machine *machine,
                                      muc_uthinker_machine *out)
{
    muc_uthinker_machine usual;
    muc_arena arena = { 0 };
    muc_status status = muc_uthinker_find_machine(ctx, &arena, NULL, &usual);

    *out = *machine;
    if (status == MUC_OK && !machine->costs.has_time)
        out->costs = usual.costs;
    muc_arena_free(&arena);
    return status;
}

/* small: for a flash that has no room for the code of heads that are made together */
static muc_status choose_split(muc_context *ctx, const muc_uthinker_model *model,
                               const muc_uthinker_machine *machine,
                               const muc_uthinker_options *options, muc_uthinker_split *out,
                               muc_uthinker_split *small)
{
    muc_uthinker_machine timed;
    choice c = { model, &timed, options, UINT64_MAX, { .ffn_parts = 1 } };
    muc_uthinker_split other;
    muc_status status = muc_uthinker_timed_machine(ctx, machine, &timed);

    if (status == MUC_OK)
        status = choose_candidate(ctx, &c);
    *small = other = c.split;
    other.o_by_head = false;
    other.together = true;
    if (status == MUC_OK && muc_uthinker_can_split(model, machine, other))
        status = compare_split(ctx, &c, other);
    other = c.split;
    other.late = true;
    if (status == MUC_OK)
        status = compare_split(ctx, &c, other);
    other = c.split;
    other.gains_once = true;
    if (status == MUC_OK)
        status = compare_split(ctx, &c, other);
    other = c.split;
    other.streamed = true;
    if (status == MUC_OK && timed.costs.time.sequencer_word != 0)
        status = compare_split(ctx, &c, other);
    small->late = c.split.late; /* what is faster with heads together is so with heads apart */
    small->gains_once = c.split.gains_once;
    small->streamed = c.split.streamed;
    *out = c.split;
    return status;
}

static muc_status put_together(muc_context *ctx, const muc_uthinker_model *whole,
                               const muc_uthinker_machine *machine,
                               const muc_uthinker_options *options,
                               const muc_uthinker_tokens *tokens, muc_uthinker_build *build)
{
    muc_uthinker_entry entries[MUC_UTHINKER_ENTRIES];

    MUC_TRY(schedule(ctx, whole, machine, options, build, entries));
    MUC_TRY(muc_uthinker_emit(ctx, &build->arena, &build->model, &build->layout, entries, tokens,
                              &build->sections));
    build->stripped = tokens->strip;
    return muc_uthinker_write(ctx, build);
}

/* without names and checksums of stages where flash has no room for them */
static muc_status put_into_flash(muc_context *ctx, const muc_uthinker_model *whole,
                                 const muc_uthinker_machine *machine,
                                 const muc_uthinker_options *options,
                                 const muc_uthinker_tokens *tokens, muc_uthinker_build *build)
{
    muc_uthinker_tokens stripped = *tokens;
    muc_status status = put_together(ctx, whole, machine, options, tokens, build);

    if (status != MUC_NOFIT || tokens->strip)
        return status;
    muc_error_clear(ctx);
    stripped.strip = true;
    return put_together(ctx, whole, machine, options, &stripped, build);
}

static muc_status compile(muc_context *ctx, const muc_graph *graph,
                          const muc_uthinker_machine *machine, const muc_uthinker_options *options,
                          const muc_uthinker_tokens *tokens, muc_uthinker_build *build)
{
    muc_uthinker_options chosen = *options;
    muc_uthinker_split small = options->split;
    muc_uthinker_model whole;
    muc_status status;

    MUC_TRY(muc_uthinker_match(ctx, &build->arena, graph, &whole));
    MUC_TRY(retile_weights(ctx, &build->arena, machine, &whole));
    if (chosen.split.ffn_parts == 0)
        MUC_TRY(choose_split(ctx, &whole, machine, options, &chosen.split, &small));
    status = put_into_flash(ctx, &whole, machine, &chosen, tokens, build);
    if (status != MUC_NOFIT || chosen.split.together == small.together)
        return status;
    muc_error_clear(ctx);
    chosen.split = small;
    return put_into_flash(ctx, &whole, machine, &chosen, tokens, build);
}

muc_status muc_uthinker_compile(muc_context *ctx, const muc_graph *graph,
                                const muc_uthinker_machine *machine,
                                const muc_uthinker_options *options,
                                const muc_uthinker_tokens *tokens, muc_uthinker_build **out)
{
    muc_uthinker_build *build;
    muc_status status;

    MUC_TRY(MUC_NEW_ARRAY(ctx, "uthinker", 1, &build));
    status = compile(ctx, graph, machine, options, tokens, build);
    if (status != MUC_OK) {
        muc_uthinker_build_free(build);
        return status;
    }
    *out = build;
    return MUC_OK;
}

void muc_uthinker_build_free(muc_uthinker_build *build)
{
    if (!build)
        return;
    muc_arena_free(&build->arena);
    free(build);
}

void muc_uthinker_set_section(muc_uthinker_build *build, enum mur_section section,
                              const uint8_t *data, size_t size)
{
    build->sections.section[section].data = data;
    build->sections.section[section].size = data ? size : 0;
}

/* uthinker.c - the passes of this back end, in order. */
#include "targets/uthinker/uthinker.h"

#include <stdlib.h>

#include "quant/bd_sequence.h"
#include "targets/uthinker/lower/retile.h"

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

static muc_status write_program(muc_context *ctx, muc_uthinker_build *build)
{
    MUC_TRY(muc_container_write(ctx, &build->arena, &build->sections, &build->program));
    return check_flash(ctx, &build->layout, build->program.size,
                       "fewer bits (--bits) would help, or");
}

muc_status muc_uthinker_check_shapes(muc_context *ctx, const muc_graph *graph,
                                     const muc_uthinker_machine *machine,
                                     const muc_uthinker_options *options)
{
    muc_uthinker_model model;
    muc_uthinker_layout layout;
    muc_arena arena = { 0 };
    muc_status status = muc_uthinker_match_shapes(ctx, &arena, graph, &model);

    if (status == MUC_OK)
        status = muc_uthinker_lay_out_least(ctx, &model, machine, options, &layout);
    if (status == MUC_OK)
        status = check_flash(ctx, &layout, (uint64_t)layout.wgts_bytes + layout.parm_bytes,
                             "with the fewest bits there are;");
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
            weight->sequence = tiles.data;
            weight->bytes = tiles.size;
        }
    }
    return MUC_OK;
}

static muc_status compile(muc_context *ctx, const muc_graph *graph,
                          const muc_uthinker_machine *machine, const muc_uthinker_options *options,
                          const muc_uthinker_tokens *tokens, muc_uthinker_build *build)
{
    static const muc_entry_kind kinds[] = { MUC_ENTRY_DECODE, MUC_ENTRY_PREFILL };
    const muc_flatten_options all_passes = { 0 };
    muc_uthinker_entry entries[MUC_UTHINKER_ENTRIES];

    MUC_TRY(muc_uthinker_match(ctx, &build->arena, graph, &build->model));
    MUC_TRY(retile_weights(ctx, &build->arena, machine, &build->model));
    MUC_TRY(
        muc_uthinker_lay_out(ctx, &build->arena, &build->model, machine, options, &build->layout));
    for (uint32_t i = 0; i < MUC_UTHINKER_ENTRIES; i++) {
        muc_template *template = &build->templates[i];

        MUC_TRY(muc_uthinker_lower(ctx, &build->arena, &build->layout, kinds[i], template));
        MUC_TRY(muc_uthinker_flatten(ctx, &build->arena, template, &all_passes, &build->flat[i]));
        entries[i] =
            (muc_uthinker_entry){ kinds[i], template->min_m, template->max_m, &build->flat[i] };
    }
    MUC_TRY(muc_uthinker_emit(ctx, &build->arena, &build->model, &build->layout, entries, tokens,
                              &build->sections));
    return write_program(ctx, build);
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

muc_status muc_uthinker_set_section(muc_context *ctx, muc_uthinker_build *build,
                                    enum mur_section section, const uint8_t *data, size_t size)
{
    build->sections.section[section].data = data;
    build->sections.section[section].size = data ? size : 0;
    return write_program(ctx, build);
}

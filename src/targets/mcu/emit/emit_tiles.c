/* emit_tiles.c - tiles of all steps together: their places in the small memory, and as C. */
#include <inttypes.h>

#include "targets/mcu/tiles/chains.h"
#include "targets/mcu/plan/plan_arena.h"
#include "targets/mcu/tiles/tiles.h"

/* ---- places ---- */

muc_status muc_mcu_add_tile_buffer(muc_context *ctx, muc_mcu_program *program,
                                   const muc_plan_buffer *at, const char *name)
{
    muc_plan *plan = &program->tiles;

    MUC_TRY(muc_arena_grow(ctx, &program->arena, plan->count + 1, sizeof(*at),
                           &program->tiles_capacity, (void **)&plan->buffers));
    plan->buffers[plan->count] = *at;
    plan->buffers[plan->count++].name = name;
    return MUC_OK;
}

static muc_status add_buffer(muc_context *ctx, muc_mcu_program *program, uint32_t step,
                             const char *role, uint32_t copy, uint64_t bytes)
{
    const char *name;

    MUC_TRY(muc_arena_format(ctx, &program->arena, &name, "%s_%s_%" PRIu32,
                             program->steps[step].name, role, copy));
    return muc_mcu_add_tile_buffer(
        ctx, program, &(muc_plan_buffer){ .bytes = bytes, .first = step, .last = step }, name);
}

static muc_status add_step(muc_context *ctx, muc_mcu_program *program, uint32_t step)
{
    const muc_mcu_tiled *tiled = program->steps[step].tiled;
    const muc_mcu_tiling *tiling = &tiled->tiling;

    for (uint32_t i = 0; i < tiled->layer.operand_count; i++)
        for (uint32_t copy = 0; copy < tiling->plan.copies[i]; copy++)
            MUC_TRY(add_buffer(ctx, program, step, tiled->layer.operands[i].name, copy,
                               tiling->bytes[i]));
    if (tiled->layer.scratch_bytes)
        MUC_TRY(add_buffer(ctx, program, step, "scratch", 0,
                           (uint64_t)tiling->tiles.scratch_bytes * tiling->tiles.cores));
    return MUC_OK;
}

muc_status muc_mcu_place_tiles(muc_context *ctx, muc_mcu_program *program)
{
    const muc_mcu_memory *memory = muc_mcu_memory_for(program->machine, MUC_MCU_TILES);
    muc_plan *plan = &program->tiles;

    for (uint32_t i = 0; i < program->step_count; i++)
        if (program->steps[i].tiled && !muc_mcu_chain_of(program, i))
            MUC_TRY(add_step(ctx, program, i));
    for (uint32_t i = 0; i < program->chain_count; i++)
        MUC_TRY(muc_mcu_add_chain_buffers(ctx, program, &program->chains[i]));
    if (!plan->count)
        return MUC_OK;
    plan->arena = memory->name;
    plan->capacity = memory->bytes ? memory->bytes : UINT32_MAX;
    plan->alignment = MUC_MCU_ALIGNMENT;
    /* what fits will do: nothing else lies there */
    MUC_TRY(muc_plan_fit(ctx, plan));
    return muc_plan_check(ctx, plan);
}

/* ---- as C ---- */

void muc_mcu_emit_tile_memory(const muc_mcu_program *program, muc_text *text)
{
    const muc_plan *plan = &program->tiles;

    if (!plan->count)
        return;
    muc_text_add(text,
                 "#ifndef MUR_TILE_MEMORY /* a section of the small memory, %s */\n"
                 "#define MUR_TILE_MEMORY\n"
                 "#endif\n"
                 "static uint8_t tile_memory[%" PRIu64 "] __attribute__((aligned(%d))) "
                 "MUR_TILE_MEMORY;\n\nenum {\n",
                 plan->arena, plan->peak, MUC_MCU_ALIGNMENT);
    for (size_t i = 0; i < plan->count; i++)
        muc_text_add(text, "    %s = %" PRIu64 ",\n", plan->buffers[i].name,
                     plan->buffers[i].address);
    muc_text_add(text, "};\n\n");
}

static void print_operand(const char *step, const muc_mcu_tile_operand *from,
                          const mur_tiles_operand *operand, uint32_t copies, muc_text *text)
{
    muc_text_add(text, "        { ");
    if (copies)
        muc_text_add(text, ".at = { %s_%s_0, %s_%s_%u },\n          ", step, from->name, step,
                     from->name, copies > 1 ? 1u : 0u);
    muc_text_add(text,
                 ".part_bytes = %" PRIu32 ", .pixel_bytes = %" PRIu32 ", .pixels = %" PRIu32
                 ", .channel_bytes = %" PRIu32 ",\n          .rows = %" PRIu32
                 ", .stride = %" PRIu32 ", .window = %" PRIu32 ", .pad = %" PRIu32,
                 operand->part_bytes, operand->pixel_bytes, operand->pixels, operand->channel_bytes,
                 operand->rows, operand->stride, operand->window, operand->pad);
    if (operand->depth_bytes)
        muc_text_add(text, ", .depth_bytes = %" PRIu32, operand->depth_bytes);
    muc_text_add(text, "%s },\n", operand->rows_are_depth ? ", .rows_are_depth = 1" : "");
}

void muc_mcu_print_tiles(const muc_mcu_step *step, const mur_tiles *tiles, const uint32_t *copies,
                         muc_text *text)
{
    const muc_mcu_tile_layer *layer = &step->tiled->layer;

    muc_text_add(text,
                 "static const mur_tiles %s_tiles = {\n    .rows = %" PRIu32
                 ", .channels = %" PRIu32 ", .row_tile = %" PRIu32 ",\n    .part = %" PRIu32
                 ", .parts = %" PRIu32 ", .channels_outer = %u, .double_buffered = %u,\n"
                 "    .cores = %u, .operand_count = %u,\n",
                 step->name, tiles->rows, tiles->channels, tiles->row_tile, tiles->part,
                 tiles->parts, tiles->channels_outer, tiles->double_buffered, tiles->cores,
                 tiles->operand_count);
    if (layer->scratch_bytes)
        muc_text_add(text, "    .scratch = %s_scratch_0, .scratch_bytes = %" PRIu32 ",\n",
                     step->name, tiles->scratch_bytes);
    if (tiles->depth)
        muc_text_add(text, "    .depth = %" PRIu32 ", .depth_tile = %" PRIu32 ",\n", tiles->depth,
                     tiles->depth_tile);
    muc_text_add(text, "    .operands = {\n");
    for (uint32_t i = 0; i < layer->operand_count; i++)
        print_operand(step->name, &layer->operands[i], &tiles->operands[i], copies ? copies[i] : 0,
                      text);
    muc_text_add(text, "    },\n};\n\n");
}

void muc_mcu_emit_tiles(const muc_mcu_step *step, muc_text *text)
{
    const muc_mcu_tiled *tiled = step->tiled;

    muc_mcu_print_tiles(step, &tiled->tiling.tiles, tiled->tiling.plan.copies, text);
    muc_text_add(text, "%s", tiled->runner ? tiled->runner : "");
}

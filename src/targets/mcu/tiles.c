/* tiles.c - a step's tiles: from the cheapest plan of plan/tile.h to what mur_tiles_run reads. */
#include "targets/mcu/tiles.h"

#include <inttypes.h>

#include "targets/mcu/memory.h"
#include "targets/mcu/runtime.h"

enum { DIM_ROWS, DIM_CHANNELS, DIMS };
enum { MOST_ROWS = 4096 }; /* more are cut in multiples */

bool muc_mcu_has_tiles(const muc_mcu_machine *machine)
{
    return machine->has_dma && muc_mcu_memory_for(machine, MUC_MCU_TILES);
}

static uint64_t align(uint64_t bytes)
{
    return (bytes + MUC_MCU_ALIGNMENT - 1) / MUC_MCU_ALIGNMENT * MUC_MCU_ALIGNMENT;
}

/* ---- the question ---- */

static muc_tile_operand ask_operand(const muc_mcu_tile_layer *layer, uint32_t i)
{
    const muc_mcu_tile_operand *from = &layer->operands[i];
    muc_tile_operand operand = {
        .name = from->name,
        .role = i + 1 == layer->operand_count ? MUC_TILE_OUTPUT : MUC_TILE_INPUT,
        .unit_bytes = from->pixels,
    };

    if (from->is_weights) {
        /* parts of the least size need the most bytes in all */
        uint64_t least = align(layer->packed_bytes(layer->subject, layer->multiple));

        operand.unit_bytes = (least + layer->multiple - 1) / layer->multiple;
    } else {
        operand.unit_bytes *= from->channel_bytes ? from->channel_bytes : from->pixel_bytes;
    }
    if (from->window)
        operand.axes[operand.axis_count++] = (muc_tile_axis){ .dim = DIM_ROWS,
                                                              .stride = from->stride,
                                                              .window = from->window,
                                                              .pad = from->pad,
                                                              .limit = from->rows };
    else if (!from->is_weights)
        operand.unit_bytes *= from->rows;
    if (from->is_weights || from->channel_bytes)
        operand.axes[operand.axis_count++] =
            (muc_tile_axis){ .dim = DIM_CHANNELS, .stride = 1, .window = 1 };
    return operand;
}

static muc_tile_node ask_node(const char *name, const muc_mcu_tile_layer *layer, uint32_t cores)
{
    muc_tile_node node = {
        .name = name,
        .dim_count = DIMS,
        .operand_count = layer->operand_count,
        .dims = { [DIM_ROWS] = { .name = "rows",
                                 .extent = layer->rows,
                                 .multiple = layer->rows / MOST_ROWS + 1,
                                 .lanes = layer->rows < cores ? 1 : cores },
                  [DIM_CHANNELS] = { .name = "channels",
                                     .extent = layer->channels,
                                     .multiple = layer->multiple } },
    };

    for (uint32_t i = 0; i < layer->operand_count; i++)
        node.operands[i] = ask_operand(layer, i);
    if (layer->scratch_bytes)
        node.operands[node.operand_count++] =
            (muc_tile_operand){ .name = "scratch",
                                .role = MUC_TILE_SCRATCH,
                                .unit_bytes = align(layer->scratch_bytes) * cores };
    return node;
}

/* Cycles of a core for four units of work, by the plain kernels' instructions. */
enum { CYCLES_FOR_FOUR = 16, CALL_CYCLES = 200 };

static uint64_t capacity_of(const muc_mcu_memory *memory)
{
    return memory->bytes ? memory->bytes : UINT32_MAX;
}

static muc_tile_machine ask_machine(const muc_mcu_machine *machine, uint64_t work, uint32_t cores)
{
    const muc_mcu_memory *memory = muc_mcu_memory_for(machine, MUC_MCU_TILES);
    uint32_t speed = 1024 / machine->dma_cycles_per_kb;
    uint64_t cycles = work * CYCLES_FOR_FOUR;

    return (muc_tile_machine){
        .capacity_bytes = capacity_of(memory),
        .alignment = MUC_MCU_ALIGNMENT,
        .dma_bytes_per_cycle = speed ? speed : 1,
        .dma_setup_cycles = machine->dma_setup_cycles,
        .double_buffers = true,
        .call_cycles = CALL_CYCLES,
        .cycles = cycles < UINT32_MAX ? (uint32_t)cycles : UINT32_MAX,
        .units_per_cycles = 4 * cores,
    };
}

/* ---- the answer ---- */

/* most rows of an operand that a tile of so many result rows has */
static uint32_t most_rows(const muc_mcu_tile_operand *operand, uint32_t rows)
{
    uint64_t most = (uint64_t)(rows - 1) * operand->stride + operand->window;

    return operand->window && most < operand->rows ? (uint32_t)most : operand->rows;
}

/* the operands' buffers; all bytes together */
static uint64_t size_buffers(const muc_mcu_tile_layer *layer, const muc_tile_plan *plan,
                             mur_tiles *tiles, uint64_t *bytes)
{
    uint64_t sum = align(layer->scratch_bytes) * tiles->cores;

    for (uint32_t i = 0; i < layer->operand_count; i++) {
        const muc_mcu_tile_operand *from = &layer->operands[i];
        mur_tiles_operand *to = &tiles->operands[i];
        uint32_t rows = from->is_weights ? 1 : most_rows(from, tiles->row_tile);
        uint64_t part = (uint64_t)rows * from->pixels * tiles->part * from->channel_bytes;

        if (from->is_weights)
            part = align(layer->packed_bytes(layer->subject, tiles->part));
        *to = (mur_tiles_operand){
            .part_bytes = (uint32_t)part,
            .pixel_bytes = from->pixel_bytes,
            .pixels = from->pixels,
            .channel_bytes = from->channel_bytes,
            .rows = from->rows,
            .stride = from->stride,
            .window = from->window,
            .pad = from->pad,
        };
        bytes[i] =
            align(part ? part * tiles->parts : (uint64_t)rows * from->pixels * from->pixel_bytes);
        sum += bytes[i] * plan->copies[i];
    }
    return sum;
}

/* Cores share a tile by rows if there are enough of them, else by parts of the channels. */
static uint64_t divide(const muc_mcu_tile_layer *layer, const muc_tile_plan *plan,
                       uint64_t capacity, mur_tiles *tiles, uint64_t *bytes)
{
    uint32_t channels = plan->tile[DIM_CHANNELS], parts = 1;
    uint64_t sum;

    if (tiles->row_tile < tiles->cores)
        parts = tiles->cores < MUR_TILES_MOST_PARTS ? tiles->cores : MUR_TILES_MOST_PARTS;
    tiles->part = (channels + parts - 1) / parts;
    tiles->part = (tiles->part + layer->multiple - 1) / layer->multiple * layer->multiple;
    if (tiles->part > channels)
        tiles->part = channels;
    tiles->parts = (channels + tiles->part - 1) / tiles->part;
    sum = size_buffers(layer, plan, tiles, bytes);
    if (sum > capacity && tiles->parts > 1) { /* the last part, which is smaller, took too much */
        tiles->parts--;
        tiles->double_buffered = false; /* more tiles than the plan counted buffers for */
        sum = size_buffers(layer, plan, tiles, bytes);
    }
    return sum;
}

static muc_status add_buffer(muc_mcu_lowering *l, const char *role, uint32_t copy, uint64_t bytes)
{
    muc_mcu_program *program = l->program;
    muc_plan *plan = &program->tiles;
    uint32_t step = program->step_count - 1;
    muc_plan_buffer *buffer;

    MUC_TRY(muc_arena_grow(l->ctx, &program->arena, plan->count + 1, sizeof(*buffer),
                           &program->tiles_capacity, (void **)&plan->buffers));
    buffer = &plan->buffers[plan->count++];
    *buffer = (muc_plan_buffer){ .bytes = bytes, .first = step, .last = step };
    return muc_arena_format(l->ctx, &program->arena, &buffer->name, "%s_%s_%" PRIu32, l->step->name,
                            role, copy);
}

static void print_operand(const muc_mcu_lowering *l, const muc_mcu_tile_operand *from,
                          const mur_tiles_operand *operand, uint32_t copies, muc_text *text)
{
    muc_text_add(text, "        { .at = { %s_%s_0, %s_%s_%u },\n", l->step->name, from->name,
                 l->step->name, from->name, copies > 1 ? 1u : 0u);
    muc_text_add(text,
                 "          .part_bytes = %" PRIu32 ", .pixel_bytes = %" PRIu32
                 ", .pixels = %" PRIu32 ", .channel_bytes = %" PRIu32
                 ",\n          .rows = %" PRIu32 ", .stride = %" PRIu32 ", .window = %" PRIu32
                 ", .pad = %" PRIu32 " },\n",
                 operand->part_bytes, operand->pixel_bytes, operand->pixels, operand->channel_bytes,
                 operand->rows, operand->stride, operand->window, operand->pad);
}

static void print_tiles(const muc_mcu_lowering *l, const muc_mcu_tile_layer *layer,
                        const muc_mcu_tiling *tiling, muc_text *text)
{
    const mur_tiles *tiles = &tiling->tiles;
    const char *name = l->step->name;

    muc_text_add(text,
                 "static const mur_tiles %s_tiles = {\n    .rows = %" PRIu32
                 ", .channels = %" PRIu32 ", .row_tile = %" PRIu32 ",\n    .part = %" PRIu32
                 ", .parts = %" PRIu32 ", .channels_outer = %u, .double_buffered = %u,\n"
                 "    .cores = %u, .operand_count = %u,\n",
                 name, tiles->rows, tiles->channels, tiles->row_tile, tiles->part, tiles->parts,
                 tiles->channels_outer, tiles->double_buffered, tiles->cores, tiles->operand_count);
    if (layer->scratch_bytes)
        muc_text_add(text, "    .scratch = %s_scratch_0, .scratch_bytes = %" PRIu32 ",\n", name,
                     tiles->scratch_bytes);
    muc_text_add(text, "    .operands = {\n");
    for (uint32_t i = 0; i < layer->operand_count; i++)
        print_operand(l, &layer->operands[i], &tiles->operands[i], tiling->plan.copies[i], text);
    muc_text_add(text, "    },\n};\n\n");
}

/* ---- what is moved ---- */

static uint32_t divide_up(uint32_t a, uint32_t b)
{
    return a / b + (a % b != 0);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t down_of(const mur_tiles *t)
{
    return divide_up(t->rows, t->row_tile);
}

static uint32_t across_of(const mur_tiles *t)
{
    return divide_up(divide_up(t->channels, t->part), t->parts);
}

/* bytes of operand i that tile n moves, or 0 if they are there already */
static uint64_t moved_by(const mur_tiles *t, uint32_t i, uint32_t n)
{
    const mur_tiles_operand *o = &t->operands[i];
    uint32_t down = down_of(t), across = across_of(t);
    uint32_t row_index = t->channels_outer ? n % down : n / across;
    uint32_t column = t->channels_outer ? n / down : n % across;
    uint32_t first_channel = column * t->part * t->parts;
    uint32_t channels = smaller(t->part * t->parts, t->channels - first_channel);
    bool down_changes = t->channels_outer ? down > 1 : column == 0;
    bool across_changes = t->channels_outer ? row_index == 0 : across > 1;
    bool is_output = i + 1u == t->operand_count;
    uint64_t rows = o->rows;

    if (n > 0 && !is_output && !(o->window && down_changes) && !(o->part_bytes && across_changes))
        return 0;
    if (o->window) {
        uint32_t row = row_index * t->row_tile, count = smaller(t->row_tile, t->rows - row);
        int64_t begin = (int64_t)row * o->stride - o->pad;
        int64_t end = begin + (int64_t)(count - 1) * o->stride + o->window;

        begin = begin < 0 ? 0 : begin;
        end = end > o->rows ? o->rows : end;
        rows = end > begin ? (uint64_t)(end - begin) : 0;
    }
    if (o->part_bytes && !o->channel_bytes)
        return (uint64_t)divide_up(channels, t->part) * o->part_bytes;
    return rows * o->pixels *
           (o->part_bytes ? (uint64_t)channels * o->channel_bytes : o->pixel_bytes);
}

/* ---- the search ---- */

/* tiles on a number of cores; *least is what the smallest need */
static muc_status find_on(muc_mcu_lowering *l, const muc_mcu_tile_layer *layer, uint32_t cores,
                          muc_mcu_tiling *out, uint64_t *least)
{
    const muc_tile_machine machine = ask_machine(l->program->machine, layer->work, cores);
    const muc_tile_node node = ask_node(layer->name, layer, cores);
    muc_tile_result result;

    MUC_TRY(muc_tile_least(l->ctx, &node, &machine, least));
    if (*least > machine.capacity_bytes)
        return MUC_OK;
    MUC_TRY(muc_tile_search(l->ctx, &node, &machine, &result));
    out->plan = result.best;
    out->tiles = (mur_tiles){
        .rows = layer->rows,
        .channels = layer->channels,
        .row_tile = result.best.tile[DIM_ROWS],
        .channels_outer = result.best.loops[0] == DIM_CHANNELS,
        .double_buffered = result.best.double_buffered,
        .cores = (uint8_t)cores,
        .operand_count = (uint8_t)layer->operand_count,
        .scratch_bytes = (uint32_t)align(layer->scratch_bytes),
    };
    *least = divide(layer, &result.best, machine.capacity_bytes, &out->tiles, out->bytes);
    return MUC_OK;
}

muc_status muc_mcu_find_tiles(muc_mcu_lowering *l, const muc_mcu_tile_layer *layer,
                              muc_mcu_tiling *out, bool *fits)
{
    const muc_mcu_machine *machine = l->program->machine;
    const muc_mcu_memory *memory = muc_mcu_memory_for(machine, MUC_MCU_TILES);
    uint64_t capacity = capacity_of(memory), least;

    *fits = false;
    for (uint32_t cores = machine->cores; cores > 0; cores /= 2) {
        MUC_TRY(find_on(l, layer, cores, out, &least));
        *fits = least <= capacity;
        if (*fits)
            return MUC_OK;
    }
    return muc_arena_format(l->ctx, &l->program->arena, &l->note,
                            "the smallest tiles take %" PRIu64 " bytes of %s, %" PRIu64
                            " more than there are",
                            least, memory->name, least - capacity);
}

/* what is moved in all, by the loop of mur_tiles_run */
static void count_moves(const mur_tiles *t, const muc_tile_plan *plan, muc_mcu_step_tiles *out)
{
    uint32_t count = down_of(t) * across_of(t);

    *out = (muc_mcu_step_tiles){
        .rows = t->rows,
        .channels = t->channels,
        .row_tile = t->row_tile,
        .channel_tile = t->part * t->parts < t->channels ? t->part * t->parts : t->channels,
        .count = count,
        .cores = t->cores,
        .channels_outer = t->channels_outer,
        .double_buffered = t->double_buffered,
        .compute_cycles = plan->compute_cycles,
        .dma_cycles = plan->dma_cycles,
        .cycles = plan->cycles,
    };
    for (uint32_t i = 0; i < t->operand_count; i++) {
        bool is_output = i + 1u == t->operand_count;

        for (uint32_t n = 0; n < count; n++)
            *(is_output ? &out->out_bytes : &out->in_bytes) += moved_by(t, i, n);
    }
}

muc_status muc_mcu_use_tiles(muc_mcu_lowering *l, const muc_mcu_tile_layer *layer,
                             const muc_mcu_tiling *tiling, muc_text *text)
{
    static const char *const needed[] = { "mur_tiles_run", "mur_hal_start" };
    muc_mcu_step_tiles *summary;

    for (size_t i = 0; i < MUC_COUNT(needed); i++)
        MUC_TRY(muc_mcu_need_function(l->ctx, l->program, needed[i]));
    for (uint32_t i = 0; i < layer->operand_count; i++)
        for (uint32_t copy = 0; copy < tiling->plan.copies[i]; copy++)
            MUC_TRY(add_buffer(l, layer->operands[i].name, copy, tiling->bytes[i]));
    if (layer->scratch_bytes)
        MUC_TRY(add_buffer(l, "scratch", 0,
                           (uint64_t)tiling->tiles.scratch_bytes * tiling->tiles.cores));
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, 1, &summary));
    count_moves(&tiling->tiles, &tiling->plan, summary);
    for (uint32_t i = 0; i < layer->operand_count; i++)
        summary->small_bytes += tiling->bytes[i] * tiling->plan.copies[i];
    summary->small_bytes += (uint64_t)tiling->tiles.scratch_bytes * tiling->tiles.cores;
    l->step->tiles = summary;
    print_tiles(l, layer, tiling, text);
    return muc_text_status(l->ctx, text);
}

muc_status muc_mcu_begin_pieces(muc_mcu_lowering *l, const muc_mcu_tile_layer *layer,
                                const muc_mcu_tiling *tiling)
{
    muc_mcu_pieces *pieces;
    muc_text text = { 0 };
    muc_status status;

    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, 1, &pieces));
    pieces->count = layer->operand_count;
    for (uint32_t i = 0; i < layer->operand_count; i++)
        pieces->names[i] = layer->operands[i].name;
    status = muc_mcu_use_tiles(l, layer, tiling, &text);
    if (status == MUC_OK)
        status = muc_arena_string(l->ctx, &l->program->arena, text.data, text.size, &pieces->text);
    muc_text_free(&text);
    l->pieces = pieces;
    return status;
}

/* ---- all steps together ---- */

muc_status muc_mcu_place_tiles(muc_context *ctx, muc_mcu_program *program)
{
    const muc_mcu_memory *memory = muc_mcu_memory_for(program->machine, MUC_MCU_TILES);
    muc_plan *plan = &program->tiles;

    if (!plan->count)
        return MUC_OK;
    plan->arena = memory->name;
    plan->capacity = capacity_of(memory);
    plan->alignment = MUC_MCU_ALIGNMENT;
    MUC_TRY(muc_plan_place(ctx, plan));
    return muc_plan_check(ctx, plan);
}

void muc_mcu_emit_tiles(const muc_mcu_program *program, muc_text *text)
{
    const muc_plan *plan = &program->tiles;

    if (!plan->count)
        return;
    muc_text_add(text,
                 "#ifndef MUR_TILE_MEMORY /* a section of the small memory, %s */\n"
                 "#define MUR_TILE_MEMORY\n"
                 "#endif\n"
                 "static uint8_t tile_memory[%" PRIu64 "] MUR_ALIGNED MUR_TILE_MEMORY;\n\nenum {\n",
                 plan->arena, plan->peak);
    for (size_t i = 0; i < plan->count; i++)
        muc_text_add(text, "    %s = %" PRIu64 ",\n", plan->buffers[i].name,
                     plan->buffers[i].address);
    muc_text_add(text, "};\n\n");
}

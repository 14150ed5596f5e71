/* tiles.c - a step's tiles: from the cheapest plan of plan/tile.h to what mur_tiles_run reads. */
#include "targets/mcu/tiles/tiles.h"

#include <inttypes.h>

#include "targets/mcu/program/runtime_files.h"

enum { DIM_ROWS, DIM_CHANNELS, DIM_DEPTH, DIMS };
enum { MOST_ROWS = 4096, MOST_EXTENT = 1 << 24 }; /* more rows are cut in multiples; not at all */

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
    } else if (from->depth_bytes) {
        operand.unit_bytes *= from->depth_bytes;
    } else {
        operand.unit_bytes *= from->channel_bytes ? from->channel_bytes : from->pixel_bytes;
    }
    if (from->window)
        operand.axes[operand.axis_count++] = (muc_tile_axis){ .dim = DIM_ROWS,
                                                              .stride = from->stride,
                                                              .window = from->window,
                                                              .pad = from->pad,
                                                              .limit = from->rows };
    else if (!from->is_weights && !from->rows_are_depth)
        operand.unit_bytes *= from->rows;
    if (from->depth_bytes || from->rows_are_depth)
        operand.axes[operand.axis_count++] =
            (muc_tile_axis){ .dim = DIM_DEPTH, .stride = 1, .window = 1 };
    if (from->is_weights || from->channel_bytes)
        operand.axes[operand.axis_count++] =
            (muc_tile_axis){ .dim = DIM_CHANNELS, .stride = 1, .window = 1 };
    return operand;
}

/* Cores share a tile by rows if there are enough of them, else by parts of the channels. */
static bool by_channels(const muc_mcu_tile_layer *layer, uint32_t rows, uint32_t cores)
{
    return layer->by_parts || rows < cores;
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
                                 .lanes = by_channels(layer, layer->rows, cores) ? 1 : cores },
                  [DIM_CHANNELS] = { .name = "channels",
                                     .extent = layer->channels,
                                     .multiple = layer->multiple,
                                     .lanes = layer->by_parts ? layer->multiple * cores : 1 },
                  [DIM_DEPTH] = { .name = "depth",
                                  .extent = layer->depth ? layer->depth : 1,
                                  .multiple = layer->depth / MOST_ROWS + 1,
                                  .reduction = true } },
    };

    for (uint32_t i = 0; i < layer->operand_count; i++)
        node.operands[i] = ask_operand(layer, i);
    if (layer->depth) /* partial sums lie where the result will */
        node.operands[node.operand_count++] =
            (muc_tile_operand){ .name = "sums", .role = MUC_TILE_ACCUMULATOR };
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

muc_tile_machine muc_mcu_tile_machine(const muc_mcu_machine *machine, uint64_t work, uint32_t cores)
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
static uint64_t size_buffers(const muc_mcu_tile_layer *layer, const uint32_t *copies,
                             mur_tiles *tiles, uint64_t *bytes)
{
    uint64_t sum = align(layer->scratch_bytes) * tiles->cores;

    for (uint32_t i = 0; i < layer->operand_count; i++) {
        const muc_mcu_tile_operand *from = &layer->operands[i];
        mur_tiles_operand *to = &tiles->operands[i];
        uint32_t rows = from->is_weights       ? 1
                        : from->rows_are_depth ? tiles->depth_tile
                                               : most_rows(from, tiles->row_tile);
        uint64_t depths = (uint64_t)tiles->depth_tile * from->depth_bytes;
        uint64_t part = (uint64_t)rows * from->pixels * tiles->part *
                        (from->channel_bytes && depths ? depths : from->channel_bytes);

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
            .depth_bytes = from->depth_bytes,
            .rows_are_depth = from->rows_are_depth,
        };
        bytes[i] = align(part ? part * tiles->parts
                              : rows * from->pixels * (depths ? depths : from->pixel_bytes));
        sum += bytes[i] * copies[i];
    }
    return sum;
}

uint64_t muc_mcu_divide_tiles(const muc_mcu_tile_layer *layer, const uint32_t *copies,
                              uint32_t channels, uint32_t parts, mur_tiles *tiles, uint64_t *bytes)
{
    tiles->part = (channels + parts - 1) / parts;
    tiles->part = (tiles->part + layer->multiple - 1) / layer->multiple * layer->multiple;
    if (tiles->part > channels)
        tiles->part = channels;
    tiles->parts = (channels + tiles->part - 1) / tiles->part;
    return size_buffers(layer, copies, tiles, bytes);
}

static uint64_t divide(const muc_mcu_tile_layer *layer, const muc_tile_plan *plan,
                       uint64_t capacity, mur_tiles *tiles, uint64_t *bytes)
{
    uint32_t parts = 1;
    uint64_t sum;

    if (by_channels(layer, tiles->row_tile, tiles->cores))
        parts = tiles->cores < MUR_TILES_MOST_PARTS ? tiles->cores : MUR_TILES_MOST_PARTS;
    sum = muc_mcu_divide_tiles(layer, plan->copies, plan->tile[DIM_CHANNELS], parts, tiles, bytes);
    if (sum > capacity && tiles->parts > 1) { /* the last part, which is smaller, took too much */
        tiles->parts--;
        tiles->double_buffered = false; /* more tiles than the plan counted buffers for */
        sum = size_buffers(layer, plan->copies, tiles, bytes);
    }
    return sum;
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

static uint32_t turns_of(const mur_tiles *t)
{
    return t->depth ? divide_up(t->depth, t->depth_tile) : 1;
}

/* bytes of operand i that an iteration moves, or 0 if they are there already */
static uint64_t moved_by(const mur_tiles *t, uint32_t i, uint32_t iteration)
{
    const mur_tiles_operand *o = &t->operands[i];
    uint32_t turns = turns_of(t), n = iteration / turns, turn = iteration % turns;
    uint32_t depths = t->depth ? smaller(t->depth_tile, t->depth - turn * t->depth_tile) : 0;
    bool by_depth = o->depth_bytes || o->rows_are_depth;
    uint32_t down = down_of(t), across = across_of(t);
    uint32_t row_index = t->channels_outer ? n % down : n / across;
    uint32_t column = t->channels_outer ? n / down : n % across;
    uint32_t first_channel = column * t->part * t->parts;
    uint32_t channels = smaller(t->part * t->parts, t->channels - first_channel);
    bool down_changes = t->channels_outer ? down > 1 : column == 0;
    bool across_changes = t->channels_outer ? row_index == 0 : across > 1;
    bool is_output = i + 1u == t->operand_count;
    uint64_t rows = o->rows;

    if (is_output && turn + 1 < turns)
        return 0;
    if (iteration > 0 && !is_output && !(by_depth && turns > 1) &&
        (turn > 0 || (!(o->window && down_changes) && !(o->part_bytes && across_changes))))
        return 0;
    if (o->rows_are_depth)
        rows = depths;
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
    if (o->depth_bytes)
        return rows * o->pixels * (o->part_bytes ? channels : 1u) * depths * o->depth_bytes;
    return rows * o->pixels *
           (o->part_bytes ? (uint64_t)channels * o->channel_bytes : o->pixel_bytes);
}

/* ---- the search ---- */

/* is one dimension's loop outside another's? */
static bool comes_before(const muc_tile_plan *plan, uint32_t dim, uint32_t other)
{
    uint32_t i = 0;

    while (plan->loops[i] != dim && plan->loops[i] != other)
        i++;
    return plan->loops[i] == dim;
}

/* tiles on a number of cores; *least is what the smallest need */
static muc_status find_on(muc_mcu_lowering *l, const muc_mcu_tile_layer *layer, uint32_t cores,
                          muc_mcu_tiling *out, uint64_t *least)
{
    const muc_tile_machine machine = muc_mcu_tile_machine(l->program->machine, layer->work, cores);
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
        .channels_outer = comes_before(&result.best, DIM_CHANNELS, DIM_ROWS),
        .double_buffered = result.best.double_buffered,
        .cores = (uint8_t)cores,
        .operand_count = (uint8_t)layer->operand_count,
        .scratch_bytes = (uint32_t)align(layer->scratch_bytes),
        .depth = layer->depth,
        .depth_tile = layer->depth ? result.best.tile[DIM_DEPTH] : 0,
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
    if (layer->rows > MOST_EXTENT || layer->channels > MOST_EXTENT || layer->depth > MOST_EXTENT)
        return MUC_OK;
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
static void count_moves(const muc_mcu_tile_layer *layer, const mur_tiles *t,
                        const muc_tile_plan *plan, muc_mcu_step_tiles *out)
{
    uint32_t count = down_of(t) * across_of(t) * turns_of(t);

    *out = (muc_mcu_step_tiles){
        .rows = t->rows,
        .channels = t->channels,
        .row_tile = t->row_tile,
        .channel_tile = t->part * t->parts < t->channels ? t->part * t->parts : t->channels,
        .depth = t->depth,
        .depth_tile = t->depth_tile,
        .count = count,
        .cores = t->cores,
        .channels_outer = t->channels_outer,
        .double_buffered = t->double_buffered,
        .compute_cycles = plan->compute_cycles,
        .dma_cycles = plan->dma_cycles,
        .cycles = plan->cycles,
    };
    for (uint32_t i = 0; i < t->operand_count; i++) {
        uint64_t moved = 0;

        for (uint32_t n = 0; n < count; n++)
            moved += moved_by(t, i, n);
        *(i + 1u == t->operand_count ? &out->out_bytes : &out->in_bytes) += moved;
        out->constant_bytes += layer->operands[i].is_constant ? moved : 0;
    }
}

muc_status muc_mcu_use_tiles(muc_mcu_lowering *l, const muc_mcu_tile_layer *layer,
                             const muc_mcu_tiling *tiling, const char *compute)
{
    static const char *const needed[] = { "mur_tiles_run", "mur_tiles_share", "mur_hal_start" };
    muc_mcu_step_tiles *summary;
    muc_mcu_tiled *tiled;

    for (size_t i = 0; i < MUC_COUNT(needed); i++)
        MUC_TRY(muc_mcu_need_function(l->ctx, l->program, needed[i]));
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, 1, &tiled));
    *tiled = (muc_mcu_tiled){ .layer = *layer, .tiling = *tiling, .compute = compute };
    for (uint32_t i = 0; i < MUR_TILES_OPERANDS; i++)
        tiled->values[i] = MUC_NO_ID;
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, 1, &summary));
    count_moves(layer, &tiling->tiles, &tiling->plan, summary);
    for (uint32_t i = 0; i < layer->operand_count; i++)
        summary->small_bytes += tiling->bytes[i] * tiling->plan.copies[i];
    summary->small_bytes += (uint64_t)tiling->tiles.scratch_bytes * tiling->tiles.cores;
    l->step->tiles = summary;
    l->step->tiled = tiled;
    return MUC_OK;
}

muc_status muc_mcu_begin_pieces(muc_mcu_lowering *l, const muc_mcu_tile_layer *layer,
                                const muc_mcu_tiling *tiling)
{
    muc_mcu_pieces *pieces;
    const char *compute;

    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, 1, &pieces));
    pieces->count = layer->operand_count;
    for (uint32_t i = 0; i < layer->operand_count; i++)
        pieces->names[i] = layer->operands[i].name;
    MUC_TRY(muc_arena_format(l->ctx, &l->program->arena, &compute, "%s_piece", l->step->name));
    l->pieces = pieces;
    return muc_mcu_use_tiles(l, layer, tiling, compute);
}

muc_status muc_mcu_begin_tiled_function(muc_mcu_lowering *l, const muc_node *node,
                                        const muc_mcu_tile_layer *layer, bool *fits)
{
    muc_mcu_tiling tiling;

    *fits = muc_mcu_has_tiles(l->program->machine);
    if (*fits)
        MUC_TRY(muc_mcu_find_tiles(l, layer, &tiling, fits));
    if (!*fits)
        return MUC_OK;
    MUC_TRY(muc_mcu_begin_step(l, node, NULL));
    return muc_mcu_begin_pieces(l, layer, &tiling);
}

muc_mcu_tile_layer muc_mcu_rows_layer(const muc_node *node, uint32_t inputs, uint64_t rows,
                                      uint64_t bytes, bool b_stays)
{
    static const char *const names[] = { "a", "b" };
    muc_mcu_tile_layer layer = {
        .name = node->name,
        .rows = rows < UINT32_MAX ? (uint32_t)rows : UINT32_MAX,
        .channels = 1,
        .multiple = 1,
        .work = bytes,
    };
    const muc_mcu_tile_operand row = {
        .rows = layer.rows, .stride = 1, .window = 1, .pixels = 1, .pixel_bytes = (uint32_t)bytes
    };

    for (uint32_t i = 0; i < inputs && i < MUC_COUNT(names); i++) {
        muc_mcu_tile_operand *operand = &layer.operands[layer.operand_count++];

        *operand = row;
        operand->name = names[i];
        if (i == 1 && b_stays) {
            operand->rows = 1;
            operand->window = 0;
        }
    }
    layer.operands[layer.operand_count] = row;
    layer.operands[layer.operand_count++].name = "y";
    return layer;
}

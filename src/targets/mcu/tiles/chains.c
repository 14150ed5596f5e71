/* chains.c - which steps become chains.
 *
 * Design
 *
 * 1. Every run of steps that work in tiles is described to plan/chain.h. Operands are told in bytes
 *    of the value that they lie in, so it does not matter whether its maker counts rows of pixels
 *    and its reader elements, or a view lies between.
 * 2. A step's text is that of a piece, whatever the tiles are: rows are cut as the chain's turns
 *    want, channels are there as a whole. A vector, which has one row, is divided over the cores
 *    by parts of its channels, as these lie one behind another.
 * 3. Chains end before steps that work where their data lie. Of all ways to cut the program into
 *    chains and single steps the cheapest is found from left to right.
 * 4. The bound of plan/chain.h on the small memory is reached by placement as a rule; a chain whose
 *    columns cannot be placed is forbidden, and the cheapest way found anew.
 */
#include "targets/mcu/tiles/chains.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "targets/mcu/program/runtime_files.h"
#include "targets/mcu/tiles/tiles.h"

enum {
    MOST_MISSES = 4,    /* steps by which a chain that does not fit may grow, to fit again */
    MOST_ATTEMPTS = 64, /* to place a chain's columns */
};

/* where a column's bytes are from */
typedef struct origin {
    uint32_t root; /* value */
    uint64_t offset, bytes;
    bool is_dense; /* its bytes lie as in the large memory */
    uint32_t step, operand;
} origin;

/* a chain as it is described */
typedef struct draft {
    muc_chain chain;
    muc_chain_plan plan;
    origin origins[MUC_CHAIN_COLUMNS];
    muc_mcu_link links[MUC_CHAIN_LINKS];
} draft;

typedef struct range {
    uint32_t first, end;
} range;

typedef struct search {
    muc_context *ctx;
    muc_mcu_program *program;
    muc_mcu_fuse mode;
    muc_chain_machine machine;
    draft *draft;
    uint32_t *last_reader; /* [value_count]: of a root, the last step that is given it */
    uint32_t *maker;       /* [value_count]: of a root, the only step that writes it */
    uint64_t *best;        /* [step_count + 1]: cost of the steps before */
    uint32_t *from;        /* [step_count + 1]: the first step of the last chain of these */
    uint32_t *turns;       /* [step_count + 1]: its turns */
    range forbidden[MOST_ATTEMPTS];
    uint32_t forbidden_count;
} search;

const muc_mcu_chain *muc_mcu_chain_of(const muc_mcu_program *program, uint32_t step)
{
    for (uint32_t i = 0; i < program->chain_count; i++)
        if (program->chains[i].first <= step && step < program->chains[i].end)
            return &program->chains[i];
    return NULL;
}

static uint32_t root_of(const muc_mcu_program *program, uint32_t value, uint64_t *offset)
{
    return muc_mcu_root(program, value, offset);
}

static void find_uses(search *s)
{
    muc_mcu_program *program = s->program;
    uint64_t offset;

    for (uint32_t i = 0; i < program->value_count; i++) {
        s->last_reader[i] = 0;
        s->maker[i] = MUC_NO_ID;
    }
    for (uint32_t i = 0; i < program->step_count; i++)
        for (uint32_t k = 0; k < program->steps[i].argument_count; k++) {
            const muc_mcu_argument *argument = &program->steps[i].arguments[k];
            uint32_t root;

            if (argument->kind == MUC_MCU_TEXT)
                continue;
            root = root_of(program, argument->value, &offset);
            s->last_reader[root] = i;
            if (argument->kind == MUC_MCU_WRITE)
                s->maker[root] = s->maker[root] == MUC_NO_ID ? i : program->step_count;
        }
    for (uint32_t i = 0; i < program->value_count; i++)
        if (program->values[i].is_output)
            s->last_reader[root_of(program, i, &offset)] = program->step_count;
}

/* ---- a chain's description ---- */

static uint64_t row_bytes_of(const muc_mcu_tile_operand *operand)
{
    return (uint64_t)operand->pixels * operand->pixel_bytes;
}

/* a step that may be a link: it makes one tensor of its own, and all that it uses are operands */
static bool can_link(const search *s, uint32_t step)
{
    const muc_mcu_program *program = s->program;
    const muc_mcu_tiled *tiled = program->steps[step].tiled;
    const muc_mcu_value *result;
    uint32_t out;

    if (!tiled || tiled->layer.depth || tiled->layer.operand_count - 1 > MUC_CHAIN_READS)
        return false;
    out = tiled->layer.operand_count - 1;
    for (uint32_t i = 0; i <= out; i++)
        if (tiled->values[i] == MUC_NO_ID || program->values[tiled->values[i]].layout ||
            program->values[tiled->values[i]].bytes == 0 ||
            row_bytes_of(&tiled->layer.operands[i]) * tiled->layer.operands[i].rows > UINT32_MAX)
            return false;
    for (uint32_t k = 0; k < program->steps[step].argument_count; k++) {
        const muc_mcu_argument *argument = &program->steps[step].arguments[k];
        uint32_t i = 0;

        if (argument->kind == MUC_MCU_TEXT)
            continue;
        while (i <= out && tiled->values[i] != argument->value)
            i++;
        if (i > out)
            return false;
    }
    result = &program->values[tiled->values[out]];
    return result->kind == MUC_MCU_ACTIVATION && result->view_of == MUC_NO_ID &&
           s->maker[tiled->values[out]] == step &&
           row_bytes_of(&tiled->layer.operands[out]) * tiled->layer.rows == result->bytes;
}

/* whether an operand in parts lies as in the large memory */
static bool is_dense(const muc_mcu_tile_operand *operand, uint32_t parts)
{
    return !operand->is_weights &&
           (parts == 1 || !operand->channel_bytes || (operand->pixels == 1 && operand->rows == 1));
}

/* A vector is divided by parts of its channels, if all that is computed lies densely then. */
static bool may_have_parts(const muc_mcu_tiled *tiled)
{
    const muc_mcu_tile_layer *layer = &tiled->layer;

    if (layer->rows > 1 || layer->multiple >= layer->channels)
        return false;
    for (uint32_t i = 0; i < layer->operand_count; i++)
        if (!layer->operands[i].is_constant && !is_dense(&layer->operands[i], 2))
            return false;
    return true;
}

static void divide_link(const search *s, const muc_mcu_tiled *tiled, muc_chain_link *link,
                        mur_tiles *tiles)
{
    static const uint32_t copies[MUR_TILES_OPERANDS] = { 1, 1, 1, 1 };
    const muc_mcu_tile_layer *layer = &tiled->layer;
    uint32_t cores = tiled->tiling.tiles.cores, parts = may_have_parts(tiled) ? cores : 1, turns;
    uint64_t bytes[MUR_TILES_OPERANDS], work;
    muc_tile_machine machine;

    parts = parts < MUR_TILES_MOST_PARTS ? parts : MUR_TILES_MOST_PARTS;
    *tiles = tiled->tiling.tiles;
    tiles->row_tile = layer->rows;
    tiles->channels_outer = tiles->double_buffered = 0;
    (void)muc_mcu_divide_tiles(layer, copies, layer->channels, parts, tiles, bytes);
    turns = (tiles->parts + cores - 1) / cores;
    work = tiles->parts > 1 ? (uint64_t)turns * tiles->part : layer->channels;
    machine = muc_mcu_tile_machine(s->program->machine, layer->work, 1);
    *link = (muc_chain_link){
        .rows = layer->rows,
        .cores = tiles->parts > 1 ? 1 : cores,
        .row_cycles = work * machine.cycles / machine.units_per_cycles,
        .scratch_bytes = (uint64_t)tiles->scratch_bytes * cores,
    };
}

/* the column of an earlier link that has all of an operand, or MUC_CHAIN_NONE */
static uint32_t find_column(const draft *d, const origin *want, bool in_turns, uint32_t link)
{
    for (uint32_t c = 0; c < d->chain.column_count; c++) {
        const origin *have = &d->origins[c];
        const muc_chain_column *column = &d->chain.columns[c];
        bool is_apart = in_turns && link && column->maker == MUC_CHAIN_NONE && column->fetcher == 0;

        if (have->root == want->root && have->is_dense && want->is_dense && !is_apart &&
            have->offset <= want->offset &&
            want->offset + want->bytes <= have->offset + have->bytes)
            return c;
    }
    return MUC_CHAIN_NONE;
}

static bool add_column(draft *d, const muc_chain_column *column, const origin *of)
{
    if (d->chain.column_count == MUC_CHAIN_COLUMNS)
        return false;
    d->origins[d->chain.column_count] = *of;
    d->chain.columns[d->chain.column_count++] = *column;
    return true;
}

static bool read_operand(const search *s, draft *d, uint32_t step, uint32_t i, bool is_last,
                         bool in_turns)
{
    const muc_mcu_tiled *tiled = s->program->steps[step].tiled;
    const muc_mcu_tile_operand *operand = &tiled->layer.operands[i];
    uint32_t index = d->chain.link_count;
    muc_mcu_link *link = &d->links[index];
    bool is_dense_here = is_dense(operand, link->tiles.parts);
    muc_chain_read *read = &d->chain.links[index].reads[d->chain.links[index].read_count++];
    origin of = { .step = step,
                  .operand = i,
                  .is_dense = is_dense_here && !operand->is_constant,
                  .bytes = row_bytes_of(operand) * operand->rows };
    muc_chain_column column = { .maker = MUC_CHAIN_NONE,
                                .fetcher = index,
                                .rows = operand->rows,
                                .row_bytes = row_bytes_of(operand),
                                .transfers = operand->channel_bytes ? link->tiles.parts : 1 };

    of.root = root_of(s->program, tiled->values[i], &of.offset);
    if (operand->is_weights) {
        column.rows = 1;
        column.transfers = 1;
        column.row_bytes = (uint64_t)link->tiles.operands[i].part_bytes * link->tiles.parts;
    }
    *read = (muc_chain_read){ .rows = operand->window ? operand->rows : column.rows,
                              .stride = operand->stride,
                              .window = operand->window,
                              .pad = operand->pad,
                              .row_bytes = column.row_bytes };
    read->column = find_column(d, &of, in_turns && is_last, index);
    if (read->column == MUC_CHAIN_NONE) {
        read->column = d->chain.column_count;
        link->moves[i] = 1;
        if (!add_column(d, &column, &of))
            return false;
    }
    read->skip = of.offset - d->origins[read->column].offset;
    link->column[i] = (uint8_t)read->column;
    link->skip[i] = (uint32_t)read->skip;
    /* what the chain makes is read where it was made */
    return s->maker[of.root] == MUC_NO_ID || !link->moves[i] || s->maker[of.root] < step - index ||
           s->maker[of.root] >= step;
}

static bool add_link(const search *s, draft *d, uint32_t step, uint32_t end, bool in_turns)
{
    const muc_mcu_tiled *tiled = s->program->steps[step].tiled;
    uint32_t index = d->chain.link_count, out = tiled->layer.operand_count - 1;
    uint32_t root = tiled->values[out];
    uint64_t bytes = row_bytes_of(&tiled->layer.operands[out]);
    muc_chain_link *link = &d->chain.links[index];

    d->links[index] = (muc_mcu_link){ .moves = { 0 } };
    divide_link(s, tiled, link, &d->links[index].tiles);
    for (uint32_t i = 0; i < out; i++)
        if (!read_operand(s, d, step, i, step + 1 == end, in_turns))
            return false;
    link->result = d->chain.column_count;
    d->links[index].column[out] = (uint8_t)link->result;
    d->links[index].moves[out] = s->last_reader[root] >= end;
    d->chain.link_count++;
    return add_column(d,
                      &(muc_chain_column){ .maker = index,
                                           .rows = link->rows,
                                           .row_bytes = bytes,
                                           .transfers = d->links[index].tiles.parts,
                                           .is_stored = d->links[index].moves[out] },
                      &(origin){ .root = root,
                                 .bytes = bytes * link->rows,
                                 .is_dense = true,
                                 .step = step,
                                 .operand = out });
}

/* describes steps first..end-1 as a chain */
static bool describe(const search *s, draft *d, range r, bool in_turns)
{
    d->chain.machine = &s->machine;
    d->chain.link_count = d->chain.column_count = 0;
    for (uint32_t step = r.first; step < r.end; step++)
        if (!add_link(s, d, step, r.end, in_turns))
            return false;
    return true;
}

/* ---- the cheapest chains ---- */

static uint64_t cost_of(const search *s, const muc_chain_plan *plan)
{
    return s->mode == MUC_MCU_FUSE_LEAST ? plan->in_bytes + plan->out_bytes : plan->cycles;
}

static uint64_t cost_alone(const search *s, const muc_mcu_step *step)
{
    if (!step->tiles)
        return 0;
    return s->mode == MUC_MCU_FUSE_LEAST ? step->tiles->in_bytes + step->tiles->out_bytes
                                         : step->tiled->tiling.plan.cycles;
}

/* The fewest turns in which the steps fit, or twice as many: the cheaper; 0 if none do. */
static uint32_t find_turns(const search *s, range r, uint64_t *cost)
{
    uint32_t rows = s->program->steps[r.end - 1].tiled->layer.rows, best = 0;
    draft *d = s->draft;

    *cost = UINT64_MAX;
    if (!describe(s, d, r, false))
        return 0;
    for (uint32_t turns = 1; turns <= MUC_CHAIN_TURNS && turns <= rows; turns *= 2) {
        if (turns == 2 && !describe(s, d, r, true))
            break;
        if (!muc_chain_try(&d->chain, turns, &d->plan))
            continue;
        if (cost_of(s, &d->plan) < *cost) {
            *cost = cost_of(s, &d->plan);
            best = turns;
        } else if (best) {
            break;
        }
    }
    return best;
}

static bool is_forbidden(const search *s, range r)
{
    for (uint32_t i = 0; i < s->forbidden_count; i++)
        if (s->forbidden[i].first == r.first && s->forbidden[i].end == r.end)
            return true;
    return false;
}

static void grow(search *s, uint32_t first)
{
    uint32_t misses = 0;

    for (uint32_t end = first + 1;
         end <= s->program->step_count && end - first <= MUC_CHAIN_LINKS && misses < MOST_MISSES;
         end++) {
        const range r = { first, end };
        uint64_t cost;
        uint32_t turns;

        if (!can_link(s, end - 1))
            break;
        if (end - first < 2)
            continue;
        turns = find_turns(s, r, &cost);
        misses = turns ? 0 : misses + 1;
        if (!turns || is_forbidden(s, r) || s->best[first] + cost >= s->best[end])
            continue;
        s->best[end] = s->best[first] + cost;
        s->from[end] = first;
        s->turns[end] = turns;
    }
}

static void find_cheapest(search *s)
{
    uint32_t steps = s->program->step_count;

    for (uint32_t i = 0; i <= steps; i++)
        s->best[i] = UINT64_MAX;
    s->best[0] = 0;
    for (uint32_t i = 0; i < steps; i++) {
        uint64_t alone = s->best[i] + cost_alone(s, &s->program->steps[i]);

        if (alone < s->best[i + 1]) {
            s->best[i + 1] = alone;
            s->from[i + 1] = i;
            s->turns[i + 1] = 0;
        }
        grow(s, i);
    }
}

/* ---- what is chosen ---- */

/* whether the columns can be placed */
static muc_status is_placed(const search *s, const draft *d, bool *fits)
{
    muc_plan_buffer buffers[MUC_CHAIN_COLUMNS + MUC_CHAIN_LINKS];
    muc_plan plan = { .arena = "tiles",
                      .capacity = s->machine.capacity_bytes,
                      .alignment = MUC_MCU_ALIGNMENT,
                      .buffers = buffers };

    for (uint32_t c = 0; c < d->chain.column_count; c++)
        buffers[plan.count++] = (muc_plan_buffer){ .name = "column",
                                                   .bytes = d->plan.rooms[c].bytes,
                                                   .first = d->plan.rooms[c].first,
                                                   .last = d->plan.rooms[c].last };
    for (uint32_t k = 0; k < d->chain.link_count; k++)
        buffers[plan.count++] = (muc_plan_buffer){
            .name = "scratch", .bytes = d->chain.links[k].scratch_bytes, .first = k, .last = k
        };
    MUC_TRY(muc_plan_fit(s->ctx, &plan));
    *fits = plan.peak <= plan.capacity;
    return MUC_OK;
}

/* a step's share of its chain's plan */
static muc_status summarise(search *s, uint32_t step, uint32_t index, const draft *d)
{
    const muc_mcu_tiled *tiled = s->program->steps[step].tiled;
    const muc_chain_plan *plan = &d->plan;
    const mur_tiles *tiles = &d->links[index].tiles;
    muc_mcu_step_tiles *summary;
    uint32_t before = 0;

    MUC_TRY(MUC_ARENA_NEW(s->ctx, &s->program->arena, 1, &summary));
    *summary = (muc_mcu_step_tiles){
        .rows = tiles->rows,
        .channels = tiles->channels,
        .channel_tile = tiles->channels,
        .count = plan->turns,
        .cores = tiles->cores,
        .small_bytes = index ? 0 : plan->peak,
        .cycles = index ? 0 : plan->cycles,
        .compute_cycles = index ? 0 : plan->compute_cycles,
        .dma_cycles = index ? 0 : plan->dma_cycles,
    };
    for (uint32_t turn = 0; turn < plan->turns; turn++) {
        uint32_t end = plan->spans[turn][d->chain.links[index].result].end;

        summary->row_tile = end - before > summary->row_tile ? end - before : summary->row_tile;
        before = end;
    }
    for (uint32_t i = 0; i < tiled->layer.operand_count; i++) {
        const muc_chain_column *column = &d->chain.columns[d->links[index].column[i]];
        uint64_t moved = 0;

        for (uint32_t turn = 0; turn < plan->turns && d->links[index].moves[i]; turn++) {
            muc_chain_span now = plan->spans[turn][d->links[index].column[i]];
            uint32_t from = now.first;

            if (turn && plan->spans[turn - 1][d->links[index].column[i]].end > from)
                from = plan->spans[turn - 1][d->links[index].column[i]].end;
            moved += (now.end > from ? now.end - from : 0) * column->row_bytes;
        }
        *(i + 1 == tiled->layer.operand_count ? &summary->out_bytes : &summary->in_bytes) += moved;
        summary->constant_bytes += tiled->layer.operands[i].is_constant ? moved : 0;
    }
    s->program->steps[step].tiles = summary;
    return MUC_OK;
}

static muc_status change_step(search *s, uint32_t step, uint32_t index, const draft *d)
{
    muc_mcu_step *changed = &s->program->steps[step];
    muc_mcu_tiled *tiled = changed->tiled;
    const mur_tiles *tiles = &d->links[index].tiles;
    uint32_t out = tiled->layer.operand_count - 1;

    tiled->overlap_count = changed->overlap_count;
    changed->overlap_count = 0; /* moves come and go while it works */
    if (tiled->pack)
        MUC_TRY(tiled->pack(s->ctx, s->program, changed, tiles));
    if (!d->links[index].moves[out])
        s->program->values[tiled->values[out]].is_small = true;
    return summarise(s, step, index, d);
}

static muc_status add_chain(search *s, range r, const draft *d)
{
    static const char *const needed[] = { "mur_tiles_run_chain", "mur_tiles_piece_of_conv_s8" };
    muc_mcu_program *program = s->program;
    uint32_t columns = d->chain.column_count, turns = d->plan.turns;
    muc_mcu_chain *chain;

    MUC_TRY(muc_mcu_need_function(s->ctx, program, needed[0]));
    MUC_TRY(muc_arena_grow(s->ctx, &program->arena, program->chain_count + (size_t)1,
                           sizeof(*chain), &program->chain_capacity, (void **)&program->chains));
    chain = &program->chains[program->chain_count++];
    *chain =
        (muc_mcu_chain){ .first = r.first, .end = r.end, .turns = turns, .column_count = columns };
    MUC_TRY(MUC_ARENA_NEW(s->ctx, &program->arena, r.end - r.first, &chain->links));
    MUC_TRY(MUC_ARENA_NEW(s->ctx, &program->arena, columns, &chain->columns));
    MUC_TRY(MUC_ARENA_NEW(s->ctx, &program->arena, (size_t)turns * columns, &chain->spans));
    memcpy(chain->links, d->links, (r.end - r.first) * sizeof(*chain->links));
    for (uint32_t c = 0; c < columns; c++) {
        const origin *of = &d->origins[c];
        const muc_mcu_tile_operand *operand =
            &program->steps[of->step].tiled->layer.operands[of->operand];

        chain->columns[c] = (muc_mcu_chain_column){
            .step = of->step,
            .operand = of->operand,
            .row_bytes = operand->is_weights ? 0 : (uint32_t)d->chain.columns[c].row_bytes,
            .room = d->plan.rooms[c],
        };
    }
    for (uint32_t turn = 0; turn < turns; turn++)
        memcpy(chain->spans + turn * columns, d->plan.spans[turn], columns * sizeof(*chain->spans));
    for (uint32_t step = r.first; step < r.end; step++) {
        if (program->steps[step].tiled->kernel)
            MUC_TRY(muc_mcu_need_function(s->ctx, program, needed[1]));
        MUC_TRY(change_step(s, step, step - r.first, d));
    }
    return MUC_OK;
}

/* takes the cheapest chains; *fits is false if one cannot be placed, which is forbidden then */
static muc_status take_chains(search *s, bool *fits)
{
    uint32_t steps = s->program->step_count, *next, at;

    *fits = true;
    MUC_TRY(MUC_ARENA_NEW(s->ctx, &s->program->arena, (size_t)steps + 1, &next));
    for (uint32_t end = steps; end > 0; end = s->from[end])
        next[s->from[end]] = end;
    for (unsigned add = 0; add < 2 && *fits; add++)
        for (at = 0; at < steps && *fits; at = next[at]) {
            const range r = { at, next[at] };

            if (!s->turns[r.end])
                continue;
            if (!describe(s, s->draft, r, s->turns[r.end] > 1) ||
                !muc_chain_try(&s->draft->chain, s->turns[r.end], &s->draft->plan))
                return muc_fail(s->ctx, MUC_BUG, "mcu", MUC_NO_OFFSET,
                                "the chain of steps %" PRIu32 " to %" PRIu32 " changed", r.first,
                                r.end - 1);
            if (add) {
                MUC_TRY(add_chain(s, r, s->draft));
                continue;
            }
            MUC_TRY(is_placed(s, s->draft, fits));
            if (!*fits)
                s->forbidden[s->forbidden_count++] = r;
        }
    return MUC_OK;
}

/* every step works by itself */
static void give_up(muc_mcu_program *program)
{
    for (uint32_t i = 0; i < program->chain_count; i++)
        for (uint32_t step = program->chains[i].first; step < program->chains[i].end; step++) {
            const muc_mcu_tiled *tiled = program->steps[step].tiled;

            program->steps[step].overlap_count = tiled->overlap_count;
            program->values[tiled->values[tiled->layer.operand_count - 1]].is_small = false;
        }
    program->chain_count = 0;
}

static muc_status find_chains(search *s)
{
    muc_arena *arena = &s->program->arena;
    uint32_t steps = s->program->step_count;
    bool fits = false;

    MUC_TRY(MUC_ARENA_NEW(s->ctx, arena, s->program->value_count, &s->last_reader));
    MUC_TRY(MUC_ARENA_NEW(s->ctx, arena, s->program->value_count, &s->maker));
    MUC_TRY(MUC_ARENA_NEW(s->ctx, arena, (size_t)steps + 1, &s->best));
    MUC_TRY(MUC_ARENA_NEW(s->ctx, arena, (size_t)steps + 1, &s->from));
    MUC_TRY(MUC_ARENA_NEW(s->ctx, arena, (size_t)steps + 1, &s->turns));
    find_uses(s);
    while (!fits && s->forbidden_count < MOST_ATTEMPTS) {
        find_cheapest(s);
        MUC_TRY(take_chains(s, &fits));
    }
    return MUC_OK;
}

muc_status muc_mcu_find_chains(muc_context *ctx, muc_mcu_program *program, muc_mcu_fuse mode)
{
    search s = { .ctx = ctx, .program = program, .mode = mode };
    muc_tile_machine machine;
    muc_status status;

    give_up(program);
    if (mode == MUC_MCU_FUSE_OFF || !muc_mcu_has_tiles(program->machine))
        return MUC_OK;
    machine = muc_mcu_tile_machine(program->machine, 1, 1);
    s.machine = (muc_chain_machine){ .capacity_bytes = machine.capacity_bytes,
                                     .alignment = machine.alignment,
                                     .dma_bytes_per_cycle = machine.dma_bytes_per_cycle,
                                     .dma_setup_cycles = machine.dma_setup_cycles,
                                     .call_cycles = machine.call_cycles };
    s.draft = muc_calloc(1, sizeof(*s.draft));
    if (!s.draft)
        return muc_fail_nomem(ctx, "mcu", sizeof(*s.draft));
    status = find_chains(&s);
    free(s.draft);
    return status;
}

/* lower_attention.c - attention, step by step over keys and values that are loaded in groups.
 *
 * A group is as many steps as the halves of a W buffer hold: its keys lie in the first half, its
 * values in the second. Groups take W0 and W1 by turns. The last one has the steps that fill no
 * group, the keys of the unfinished step and room for those of this call, which no DMA brings back.
 */
#include "targets/uthinker/lower/lower_attention.h"

#include "mur_block.h"

enum { TOKENS_WRITTEN_OUT = 4 }; /* of a tile's own, a divisor of every tile */

static uint64_t value_bytes(const lowering *lo)
{
    return lo->y->head_width * slots(lo->tokens, lo->terms->v);
}

static uint64_t key_row(const lowering *lo, uint32_t s)
{
    return slots(muc_uthinker_slab(lo->y, s), lo->terms->k);
}

/* where the keys of slab s of the kv head begin in region KV, and its values */
static muc_expr keys_of_head(lowering *lo, uint32_t s)
{
    uint64_t padded = lo->y->padded_context;
    uint64_t head = padded * muc_uthinker_key_bytes(lo->y, lo->terms, lo->y->slabs);

    return add_num(lo, times(lo, lo->run_stream, head),
                   lo->caches.k + padded * muc_uthinker_key_bytes(lo->y, lo->terms, s));
}

static muc_expr values_of_head(lowering *lo)
{
    uint64_t head = lo->y->padded_context / lo->tokens * value_bytes(lo);

    return add_num(lo, times(lo, lo->run_stream, head), lo->caches.v);
}

static muc_expr value_offset(lowering *lo, muc_expr step)
{
    return add(lo, values_of_head(lo), times(lo, step, value_bytes(lo)));
}

/* ---- tiles of queries ---- */

/* Tokens of this call whose queries are worked on together, one in DECODE. */
typedef struct query_tile {
    muc_expr first, tokens; /* of the call */
    muc_expr queries;       /* tokens G */
} query_tile;

/* no loop if the call has one token */
static bool has_one_query(lowering *lo, query_tile *t)
{
    *t = (query_tile){ num(lo, 0), lo->m, lo->mG };
    return lo->chip->rows == 1;
}

/* Opens a For over tiles of the call's tokens, for steps that all of them see. */
static bool begin_tiles(lowering *lo, const char *name, query_tile *t)
{
    uint32_t tile = lo->chip->tile;
    muc_expr number;

    if (has_one_query(lo, t))
        return true;
    if (!muc_schedule_begin_for(lo, name, muc_expr_cdiv(lo->pool, lo->m, tile), &number))
        return false;
    t->first = times(lo, number, tile);
    t->tokens = at_most(lo, less(lo, lo->m, t->first), num(lo, tile));
    t->queries = times(lo, t->tokens, lo->y->group);
    return true;
}

/* Aligned tiles of positions that the call's tokens lie in, the first of them perhaps not from its
 * begin on: tokens of one have the same step and block of values. */
static muc_expr own_tile_count(lowering *lo)
{
    uint32_t tile = lo->chip->tile;
    muc_expr lead = muc_expr_mod(lo->pool, lo->pos, tile);

    return muc_expr_cdiv(lo->pool, add(lo, lead, lo->m), tile);
}

/* Those that lie in the step of the call's first token; the MAX is for the intervals alone. */
static muc_expr first_own_tiles(lowering *lo)
{
    uint32_t tile = lo->chip->tile;
    muc_expr end = at_most(lo, add(lo, lo->in, lo->m), num(lo, lo->tokens));
    muc_expr before = muc_expr_div(lo->pool, lo->in, tile);

    return muc_expr_max(lo->pool, less(lo, muc_expr_cdiv(lo->pool, end, tile), before), num(lo, 1));
}

/* Opens a For over `count` of them from tile `from` on. */
static bool begin_own_tiles(lowering *lo, const char *name, muc_expr from, muc_expr count,
                            query_tile *t)
{
    uint32_t tile = lo->chip->tile;
    muc_expr lead, number, end;

    if (has_one_query(lo, t))
        return true;
    if (!muc_schedule_begin_for(lo, name, count, &number))
        return false;
    number = add(lo, from, number);
    lead = muc_expr_mod(lo->pool, lo->pos, tile);
    /* a MIN is for the intervals alone; so is the MAX: there is a token, which waits for values */
    t->first = at_most(lo, less(lo, times(lo, number, tile), lead), num(lo, lo->chip->rows - 1));
    end = at_most(lo, less(lo, times(lo, add_num(lo, number, 1), tile), lead), lo->m);
    t->tokens =
        muc_expr_max(lo->pool, at_most(lo, less(lo, end, t->first), num(lo, tile)), num(lo, 1));
    t->queries = times(lo, t->tokens, lo->y->group);
    return true;
}

static void end_tiles(lowering *lo)
{
    if (lo->chip->rows > 1)
        muc_ir_end_for(&lo->ir);
}

/* ---- one step ---- */

/* address of key row `row` of slab s in a half */
static muc_expr key_address(lowering *lo, uint32_t half, uint32_t s, muc_expr row)
{
    uint64_t first = (uint64_t)lo->chip->key_rows * muc_uthinker_key_bytes(lo->y, lo->terms, s);

    return add_num(lo, times(lo, row, key_row(lo, s)), half_address(lo, half) + first);
}

static muc_expr value_address(lowering *lo, uint32_t half, muc_expr step)
{
    return add_num(lo, times(lo, step, value_bytes(lo)), half_address(lo, half));
}

/* queries of other kv heads that are kept before those of the one at hand */
static uint32_t kept_queries(const lowering *lo)
{
    return muc_uthinker_keeps_queries(lo->y, lo->chip) ? lo->made_head * lo->y->group : 0;
}

/* whether it is the last of those that are made at once */
static bool is_last_made(const lowering *lo)
{
    return lo->made_head + 1 == lo->y->heads_made;
}

/* QK of slab s: a tile's queries with n tokens whose keys lie at addr, to GB.SC */
static void lower_scores(lowering *lo, const query_tile *t, uint32_t s, uint32_t half,
                         muc_expr addr, muc_expr n)
{
    const muc_uthinker_terms *terms = lo->terms;
    uint32_t w = muc_uthinker_slab(lo->y, s);
    right_operand right = { half, addr, n, num(lo, lo->tokens * slots(w, terms->k)) };
    left_operand q = muc_schedule_rows_of(lo, MUC_PLACE_Q, t->queries, lo->y->head_width, terms->q);

    lo->stage = "QK";
    q.addr = add_num(lo, add(lo, q.addr, times(lo, t->first, q.pitch * lo->y->group)),
                     kept_queries(lo) * q.pitch + slots(lo->y->machine.tile_k * s, terms->q));
    q.k = num(lo, w);
    muc_schedule_mm(lo, &q, &right, MUC_PLACE_SC, num(lo, word(lo, MUC_PLACE_SC)),
                    num(lo, lo->tokens), num(lo, s > 0));
}

/* where the tile's first query has its row in a place of GB with `width` words a query */
static muc_expr query_word(lowering *lo, const query_tile *t, muc_uthinker_place place,
                           uint64_t width)
{
    return add_num(lo, times(lo, t->first, width * lo->y->group),
                   word(lo, place) + kept_queries(lo) * width);
}

/* to: where P lies; keys: scores of a row; valid: keys that the tile's first token sees, each later
 * one of them one more; half: whose load it waits for, or NO_HALF
 */
static void lower_softmax(lowering *lo, const query_tile *t, muc_expr to, muc_expr keys,
                          muc_expr valid, muc_expr hide, muc_expr first, uint32_t half)
{
    const muc_uthinker_terms *terms = lo->terms;

    if (lo->y->score_cap) {
        lo->stage = "QK";
        muc_schedule_cap(lo, num(lo, word(lo, MUC_PLACE_SC)), t->queries, keys, lo->tokens,
                         lo->y->score_factor, lo->y->score_cap, 0);
    }
    lo->stage = "PV";
    EMIT(lo, SMAX, half, FIELD(SMAX, saddr, num(lo, word(lo, MUC_PLACE_SC))),
         FIELD(SMAX, rows, t->queries), FIELD(SMAX, taddr, query_word(lo, t, MUC_PLACE_ML, 2)),
         FIELD(SMAX, group, num(lo, lo->y->group)),
         FIELD(SMAX, oaddr, query_word(lo, t, MUC_PLACE_OA, lo->y->head_width)),
         FIELD(SMAX, daddr, to),
         FIELD(SMAX, dst, num(lo, muc_uthinker_place_buffer(lo->chip, MUC_PLACE_P))),
         FIELD(SMAX, terms, num(lo, terms->p)), FIELD(SMAX, first, first),
         FIELD(SMAX, k, num(lo, lo->y->head_width)), FIELD(SMAX, valid, valid),
         FIELD(SMAX, hide, hide), FIELD(SMAX, scale, num(lo, lo->y->scale)),
         FIELD(SMAX, dpitch, num(lo, slots(lo->tokens, terms->p))));
}

/* PV: `rows` rows of P at `saddr` over k tokens whose values lie at addr, added to GB at daddr */
static void lower_pv(lowering *lo, muc_expr saddr, muc_expr rows, muc_expr k, uint32_t half,
                     muc_expr addr, muc_expr daddr)
{
    uint32_t hd = lo->y->head_width;
    left_operand p = muc_schedule_rows_of(lo, MUC_PLACE_P, rows, lo->tokens, lo->terms->p);
    right_operand right = { half, addr, num(lo, hd), num(lo, value_bytes(lo)) };

    p.addr = saddr;
    p.k = k;
    muc_schedule_mm(lo, &p, &right, MUC_PLACE_OA, daddr, num(lo, hd), num(lo, 1));
}

/* PV of all queries of a tile, whose rows of P begin at saddr */
static void lower_tile_pv(lowering *lo, const query_tile *t, muc_expr saddr, muc_expr k,
                          uint32_t half, muc_expr addr)
{
    lower_pv(lo, saddr, t->queries, k, half, addr,
             query_word(lo, t, MUC_PLACE_OA, lo->y->head_width));
}

/* a whole step whose scores are there: its softmax and its values at addr */
static void lower_whole(lowering *lo, const query_tile *t, muc_expr hide, muc_expr first,
                        uint32_t half, muc_expr addr)
{
    muc_expr to = num(lo, lo->chip->address[MUC_PLACE_P]), whole = num(lo, lo->tokens);

    lower_softmax(lo, t, to, whole, whole, hide, first, NO_HALF);
    lower_tile_pv(lo, t, to, whole, half, addr);
}

/* SMAX's `hide` for a tile and a step, `number` steps after the first one that is seen */
static muc_expr hidden(lowering *lo, const query_tile *t, muc_expr number)
{
    muc_expr last = add_num(lo, add(lo, lo->near, t->first), 1 + lo->tokens);

    if (!lo->y->windows)
        return num(lo, 0);
    return at_most(lo, less(lo, last, add(lo, lo->window, times(lo, number, lo->tokens))),
                   num(lo, 2 * lo->tokens));
}

/* the same for a step that holds tokens of this call, e steps after the first such one */
static muc_expr hidden_own(lowering *lo, const query_tile *t, uint32_t e)
{
    muc_expr last = add_num(lo, add(lo, lo->in, t->first), 1 + lo->tokens);

    if (!lo->y->windows)
        return num(lo, 0);
    return at_most(lo, less(lo, last, add_num(lo, lo->window, e * lo->tokens)),
                   num(lo, 2 * lo->tokens));
}

/* step `step` of a buffer's group, whole */
static void lower_step(lowering *lo, const query_tile *t, uint32_t buffer, muc_expr step,
                       muc_expr hide, muc_expr first)
{
    uint32_t half = 2 * buffer;
    muc_expr whole = num(lo, lo->tokens);

    for (uint32_t s = 0; s < lo->y->slabs; s++)
        lower_scores(lo, t, s, half, key_address(lo, half, s, times(lo, step, lo->tokens)), whole);
    lower_whole(lo, t, hide, first, half + 1, value_address(lo, half + 1, step));
}

/* ---- tokens of this call ---- */

static uint64_t value_row(const lowering *lo)
{
    return 4 * (uint64_t)muc_uthinker_key_columns(lo->y);
}

static muc_expr value_tail(lowering *lo)
{
    muc_expr number = lo->y->heads_made > 1 ? lo->l : lo->stream;

    return add_num(lo, times(lo, number, lo->tokens * value_row(lo)), lo->y->v_tail);
}

void muc_schedule_load_values(lowering *lo)
{
    lo->stage = "V";
    muc_schedule_load_place(lo, MUC_PLACE_VT, MUR_KV, value_tail(lo),
                            times(lo, lo->in, value_row(lo)));
}

void muc_schedule_store_values(lowering *lo)
{
    uint64_t row = value_row(lo);
    muc_expr after = add(lo, lo->in, lo->m), s;

    /* s is 64 or pos % 64, written so that both can be seen to be at most 64; never more than m
     * rows are stored, which the intervals of their ends do not tell */
    s = muc_expr_max(lo->pool, times(lo, muc_expr_div(lo->pool, after, lo->tokens), lo->tokens),
                     lo->in);
    lo->stage = "V";
    muc_schedule_store_place(
        lo, MUC_PLACE_VT, add_num(lo, times(lo, s, row), lo->chip->address[MUC_PLACE_VT]), MUR_KV,
        add(lo, value_tail(lo), times(lo, muc_expr_mod(lo->pool, s, lo->tokens), row)),
        times(lo, at_most(lo, less(lo, after, s), lo->m), row));
}

/* Keys of a step in a W buffer: those of its slabs, or what recompute_keys has left in GB.KC. */
typedef struct step_keys {
    uint32_t half;
    muc_expr row;    /* of the half's rows of keys: the step's first */
    bool anew;       /* in GB.KC */
    muc_expr tokens; /* that are there */
} step_keys;

/* the first n keys of the step */
static void score_tile(lowering *lo, const query_tile *t, const step_keys *keys, muc_expr n)
{
    for (uint32_t s = 0; s < lo->y->slabs; s++) {
        muc_expr addr = key_address(lo, keys->half, keys->anew ? 0 : s, keys->row);

        if (keys->anew) {
            lo->stage = "QK";
            muc_schedule_quant_keys(lo, MUC_PLACE_KC, keys->tokens, s, keys->half, addr);
        }
        lower_scores(lo, t, s, keys->half, addr, n);
    }
}

/* bytes of a block in a row of P */
static uint64_t block_bytes(const lowering *lo)
{
    return slots(MUR_BLOCK_ELEMS, lo->terms->p);
}

/* Where P lies for the tile's own step, so that the last of the blocks that it sees, the one that
 * `blocks` come before, lies at the same address whatever their number. */
static muc_expr own_probabilities(lowering *lo, muc_expr blocks)
{
    uint64_t room = (lo->tokens / MUR_BLOCK_ELEMS - 1) * block_bytes(lo);
    muc_expr first = muc_expr_eq(lo->pool, blocks, num(lo, 0)); /* of two at most */

    return add_num(lo, times(lo, first, room), lo->chip->address[MUC_PLACE_P]);
}

/* What the queries of a tile make of the values of their own block. */
typedef struct own_block {
    const query_tile *tile;
    muc_expr values; /* the block's first row of VT */
    muc_expr seen;   /* rows of it before the tile's first token */
    uint32_t half;
    muc_expr addr; /* where values are packed */
} own_block;

/* for the tile's token from + count * round + i, i below count */
static void weigh_tokens(lowering *lo, const own_block *own, muc_expr from, muc_expr round,
                         uint32_t count)
{
    uint64_t pitch = slots(lo->tokens, lo->terms->p) * lo->y->group;
    uint64_t width = (uint64_t)lo->y->head_width * lo->y->group;
    uint64_t room = (lo->tokens / MUR_BLOCK_ELEMS - 1) * block_bytes(lo);
    muc_expr token = add(lo, from, times(lo, round, count));
    muc_expr seen = add(lo, own->seen, token), row = times(lo, token, pitch);
    muc_expr to = add(lo, times(lo, own->tile->first, width), times(lo, token, width));

    for (uint32_t i = 0; i < count; i++) {
        muc_expr rows = add_num(lo, seen, i + 1);

        muc_schedule_pack_values(lo, own->values, rows, own->half, own->addr);
        lower_pv(lo, add_num(lo, row, i * pitch + room + lo->chip->address[MUC_PLACE_P]),
                 num(lo, lo->y->group), rows, own->half, own->addr,
                 add_num(lo, to, i * width + word(lo, MUC_PLACE_OA)));
    }
}

/* Each query packs the values of its own block up to its own; the blocks before that are packed
 * once for all of the tile. base: rows of VT before the step; before: tokens of the step before the
 * tile's first one. */
static void weigh_own(lowering *lo, const query_tile *t, uint32_t base, muc_expr before,
                      uint32_t half, muc_expr addr)
{
    muc_expr blocks = muc_expr_div(lo->pool, before, MUR_BLOCK_ELEMS), round;
    muc_expr rounds = muc_expr_div(lo->pool, t->tokens, TOKENS_WRITTEN_OUT);
    muc_expr rest = muc_expr_mod(lo->pool, t->tokens, TOKENS_WRITTEN_OUT);
    /* the MIN is for the intervals: it changes nothing where there is a rest */
    muc_expr before_rest = at_most(lo, times(lo, rounds, TOKENS_WRITTEN_OUT),
                                   num(lo, lo->chip->tile - TOKENS_WRITTEN_OUT));
    muc_expr whole = num(lo, MUR_BLOCK_ELEMS);
    const own_block own = { t, add_num(lo, times(lo, blocks, MUR_BLOCK_ELEMS), base),
                            muc_expr_mod(lo->pool, before, MUR_BLOCK_ELEMS), half, addr };

    if (muc_schedule_begin_for(lo, base ? "next_shared" : "shared", blocks, NULL)) {
        muc_schedule_pack_values(lo, num(lo, base), whole, half, addr);
        lower_tile_pv(lo, t, own_probabilities(lo, blocks), whole, half, addr);
        muc_ir_end_for(&lo->ir);
    }
    if (muc_schedule_begin_for(lo, base ? "next_round" : "round", rounds, &round)) {
        weigh_tokens(lo, &own, num(lo, 0), round, TOKENS_WRITTEN_OUT);
        muc_ir_end_for(&lo->ir);
    }
    if (muc_schedule_begin_for(lo, base ? "next_j" : "j", rest, &round)) {
        weigh_tokens(lo, &own, before_rest, round, 1);
        muc_ir_end_for(&lo->ir);
    }
}

/* A step with tokens of this call, e steps after the first one that has some: its own queries. */
static void lower_own(lowering *lo, uint32_t e, const step_keys *keys, uint32_t half, muc_expr addr)
{
    muc_expr tiles = first_own_tiles(lo), zero = num(lo, 0), from = e ? tiles : zero, before, seen;
    muc_expr count = e ? less(lo, own_tile_count(lo), tiles) : tiles, whole = num(lo, lo->tokens);
    muc_expr first = e ? zero : muc_expr_eq(lo->pool, lo->near_steps, zero), to, keys_seen;
    query_tile t;

    if (!begin_own_tiles(lo, e ? "next_tile" : "own_tile", from, count, &t))
        return;
    /* MINs for the intervals alone */
    before = less(lo, add(lo, lo->in, t.first), num(lo, e * lo->tokens));
    before = at_most(lo, before, num(lo, (e ? lo->chip->rows : lo->tokens) - 1));
    seen = add_num(lo, before, 1);
    keys_seen = at_most(lo, add(lo, before, t.tokens), whole);
    score_tile(lo, &t, keys, keys_seen);
    if (lo->chip->rows == 1) {
        to = num(lo, lo->chip->address[MUC_PLACE_P]);
        lower_softmax(lo, &t, to, keys_seen, seen, hidden_own(lo, &t, e), first, NO_HALF);
        muc_schedule_pack_values(lo, zero, seen, half, addr);
        lower_tile_pv(lo, &t, to, seen, half, addr);
    } else {
        to = own_probabilities(lo, muc_expr_div(lo->pool, before, MUR_BLOCK_ELEMS));
        /* of the instructions that use the values' half none can be seen to be executed */
        lower_softmax(lo, &t, to, keys_seen, seen, hidden_own(lo, &t, e), first, half);
        weigh_own(lo, &t, e * lo->tokens, before, half, addr);
    }
    end_tiles(lo);
}

/* The first step of this call's tokens, whole, for the queries of the second one. */
static void lower_before(lowering *lo, const step_keys *keys, uint32_t half, muc_expr addr)
{
    muc_expr tiles = first_own_tiles(lo), whole = num(lo, lo->tokens);
    query_tile t;

    muc_schedule_pack_values(lo, num(lo, 0), whole, half, addr);
    if (!begin_own_tiles(lo, "later_tile", tiles, less(lo, own_tile_count(lo), tiles), &t))
        return;
    score_tile(lo, &t, keys, whole);
    lower_whole(lo, &t, hidden_own(lo, &t, 0), muc_expr_eq(lo->pool, lo->near_steps, num(lo, 0)),
                half, addr);
    end_tiles(lo);
}

/* whether this call's tokens lie in two steps */
static bool begin_second(lowering *lo)
{
    muc_expr last = less(lo, add(lo, lo->in, lo->m), num(lo, 1));

    return muc_schedule_begin_for(lo, "next_step", muc_expr_div(lo->pool, last, lo->tokens), NULL);
}

static void finish_values(lowering *lo, uint32_t half, muc_expr addr)
{
    muc_expr finished = muc_expr_div(lo->pool, add(lo, lo->in, lo->m), lo->tokens);

    lo->stage = "V";
    if (muc_schedule_begin_for(lo, "finish", finished, NULL)) {
        muc_schedule_pack_values(lo, num(lo, 0), num(lo, lo->tokens), half, addr);
        muc_schedule_store_half(lo, half, addr, value_offset(lo, lo->past),
                                num(lo, value_bytes(lo)));
        muc_ir_end_for(&lo->ir);
    }
}

static void divide(lowering *lo)
{
    bool kept = muc_uthinker_keeps_queries(lo->y, lo->chip);
    uint32_t hd = lo->y->head_width, group = kept ? lo->y->heads : lo->y->group;
    bool apart = lo->y->o_parts > 1; /* a head's result lies by itself */

    if (kept && !is_last_made(lo))
        return;
    lo->stage = "PV";
    EMIT(lo, DIV, NO_HALF, FIELD(DIV, saddr, num(lo, word(lo, MUC_PLACE_OA))),
         FIELD(DIV, rows, times(lo, lo->m, group)),
         FIELD(DIV, taddr, num(lo, word(lo, MUC_PLACE_ML))), FIELD(DIV, group, num(lo, group)),
         FIELD(DIV, daddr,
               add_num(lo, times(lo, lo->h, apart || kept ? 0 : (uint64_t)group * hd),
                       word(lo, MUC_PLACE_AT))),
         FIELD(DIV, k, num(lo, hd)),
         FIELD(DIV, dpitch, num(lo, (uint64_t)(apart ? group : lo->y->heads) * hd)));
}

/* ---- groups ---- */

/* Bytes of a group's share of `present` units of `size` bytes, most_units in a group that is whole.
 * Written in bytes throughout: what depends on the group alone is also its offset. */
static muc_expr bytes_of_group(lowering *lo, numbered group, muc_expr present, uint64_t size,
                               uint64_t most_units)
{
    muc_expr behind = less(lo, present, num(lo, group.more * most_units));

    return at_most(lo, less(lo, times(lo, behind, size), times(lo, group.first, most_units * size)),
                   num(lo, most_units * size));
}

/* whole: it is known to have all its steps */
static void load_group(lowering *lo, numbered group, uint32_t buffer, bool whole)
{
    uint64_t steps = lo->chip->steps, tokens = steps * lo->tokens, value = value_bytes(lo);

    lo->stage = "QK";
    for (uint32_t s = 0; s < lo->y->slabs; s++) {
        uint64_t row = key_row(lo, s);

        muc_schedule_load_half(
            lo, 2 * buffer, lo->chip->key_rows * muc_uthinker_key_bytes(lo->y, lo->terms, s),
            MUR_KV,
            scaled(lo, group, tokens * row,
                   add(lo, keys_of_head(lo, s), times(lo, lo->origin, lo->tokens * row))),
            whole ? num(lo, tokens * row) : bytes_of_group(lo, group, lo->near, row, tokens));
    }
    lo->stage = "PV";
    muc_schedule_load_half(lo, 2 * buffer + 1, 0, MUR_KV,
                           scaled(lo, group, steps * value, value_offset(lo, lo->origin)),
                           whole ? num(lo, steps * value)
                                 : bytes_of_group(lo, group, lo->near_steps, value, steps));
}

void muc_schedule_load_first_group(lowering *lo, uint32_t buffer)
{
    load_group(lo, numbered_const(lo, 0), buffer, false);
}

/* first: whether the group's first step is the context's */
static void lower_group(lowering *lo, const char *name, uint32_t buffer, numbered group,
                        muc_expr first)
{
    uint32_t steps = lo->chip->steps;
    query_tile t;

    if (!begin_tiles(lo, name, &t))
        return;
    for (uint32_t i = 0; i < steps; i++)
        lower_step(lo, &t, buffer, num(lo, i), hidden(lo, &t, scaled(lo, group, steps, num(lo, i))),
                   i == 0 ? first : num(lo, 0));
    end_tiles(lo);
}

/* the keys of this call's tokens behind those that are in the last group, and to the K cache */
static void add_keys(lowering *lo, uint32_t half)
{
    muc_expr row = muc_expr_mod(lo->pool, lo->near, lo->chip->steps * lo->tokens);

    lo->stage = "K";
    for (uint32_t s = 0; s < lo->y->slabs; s++)
        muc_schedule_quant_keys(lo, MUC_PLACE_KF, lo->m, s, half, key_address(lo, half, s, row));
    for (uint32_t s = 0; s < lo->y->slabs; s++)
        muc_schedule_store_half(lo, half, key_address(lo, half, s, row),
                                add(lo, keys_of_head(lo, s), times(lo, lo->pos, key_row(lo, s))),
                                times(lo, lo->m, key_row(lo, s)));
}

/* `count` steps of the last group from step `first` on, after `before` others that are seen */
static void lower_rest_steps(lowering *lo, const query_tile *t, uint32_t buffer, muc_expr first,
                             uint32_t count, muc_expr before)
{
    muc_expr zero = num(lo, 0);

    for (uint32_t i = 0; i < count; i++) {
        muc_expr step = add_num(lo, first, i), number = add(lo, before, step);

        lower_step(lo, t, buffer, step, hidden(lo, t, number),
                   i == 0 ? muc_expr_eq(lo->pool, number, zero) : zero);
    }
}

/* The whole steps of the only group there is, by the bits of their number: four, two and one of
 * them, so that where they lie is known before all loops. */
static void lower_only_group(lowering *lo, const query_tile *t, uint32_t buffer, muc_expr rest)
{
    static const char *const names[] = { "four_steps", "two_steps", "one_step" };
    uint32_t steps = lo->chip->steps;

    for (uint32_t i = 0, count = MUC_UTHINKER_MOST_STEPS / 2; count > 0; i++, count /= 2) {
        /* the MIN is for the intervals: it changes nothing where there are such steps */
        uint32_t most = steps > count ? (steps - 1 - count) / (2 * count) * 2 * count : 0;
        muc_expr number = muc_expr_mod(lo->pool, muc_expr_div(lo->pool, rest, count), 2);
        muc_expr first = times(lo, muc_expr_div(lo->pool, rest, 2 * count), 2 * count);

        if (!muc_schedule_begin_for(lo, names[i], number, NULL))
            continue;
        lower_rest_steps(lo, t, buffer, at_most(lo, first, num(lo, most)), count, num(lo, 0));
        muc_ir_end_for(&lo->ir);
    }
}

/* Those of a last group that others may come before. They are written out already. */
static void lower_last_steps(lowering *lo, const query_tile *t, uint32_t buffer, muc_expr groups,
                             muc_expr rest)
{
    muc_expr i;

    if (!muc_schedule_begin_for(lo, "i", rest, &i))
        return;
    lower_rest_steps(lo, t, buffer, i, 1, times(lo, groups, lo->chip->steps));
    muc_ir_end_for(&lo->ir);
}

static void lower_rest(lowering *lo, uint32_t buffer, muc_expr groups, muc_expr rest)
{
    bool only = lo->chip->steps * lo->tokens >= lo->y->padded_context;
    query_tile t;

    if (only && !muc_schedule_begin_for(lo, "rest", at_most(lo, rest, num(lo, 1)), NULL))
        return;
    if (begin_tiles(lo, "rest_tile", &t)) {
        if (only)
            lower_only_group(lo, &t, buffer, rest);
        else
            lower_last_steps(lo, &t, buffer, groups, rest);
        end_tiles(lo);
    }
    if (only)
        muc_ir_end_for(&lo->ir);
}

static void lower_last_group(lowering *lo, uint32_t buffer, muc_expr groups)
{
    uint32_t steps = lo->chip->steps, half = 2 * buffer;
    muc_expr rest = muc_expr_mod(lo->pool, lo->near_steps, steps);
    muc_expr packed = value_address(lo, half + 1, num(lo, steps - 1));
    step_keys keys = { .half = half, .row = times(lo, rest, lo->tokens) };

    add_keys(lo, half);
    lower_rest(lo, buffer, groups, rest);
    lower_own(lo, 0, &keys, half + 1, packed);
    if (begin_second(lo)) {
        lower_before(lo, &keys, half + 1, packed);
        keys.row = times(lo, add_num(lo, rest, 1), lo->tokens);
        lower_own(lo, 1, &keys, half + 1, packed);
        muc_ir_end_for(&lo->ir);
    }
    finish_values(lo, half + 1, packed);
    if (lo->y->o_parts == 1 && is_last_made(lo))
        muc_schedule_store_values(lo);
    divide(lo);
}

void muc_lower_attention(lowering *lo, const next_stage *next)
{
    uint32_t a = lo->buffer, b = 1 - a;
    muc_expr groups = muc_expr_div(lo->pool, lo->near_steps, lo->chip->steps), pair;
    muc_expr zero = num(lo, 0);
    bool begun;

    muc_schedule_begin_stage(lo);
    lo->stage = "K";
    if (lo->made_head == 0) {
        muc_schedule_norm_heads(lo, MUC_VECTOR_K_NORM, MUC_PLACE_KF,
                                times(lo, lo->m, lo->y->heads_made));
        muc_schedule_rope(lo, MUC_PLACE_KF, muc_schedule_angles(lo), lo->m, lo->y->heads_made);
    }
    if (lo->y->heads_made > 1 && lo->chip->rows > 1)
        muc_schedule_quant_queries(lo);
    if (muc_schedule_begin_for(lo, "groups", muc_expr_div(lo->pool, groups, 2), &pair)) {
        muc_expr even = times(lo, pair, 2);

        load_group(lo, (numbered){ even, 1 }, b, true);
        lower_group(lo, "even_tile", a, (numbered){ even, 0 }, muc_expr_eq(lo->pool, pair, zero));
        load_group(lo, (numbered){ even, 2 }, a, false);
        lower_group(lo, "odd_tile", b, (numbered){ even, 1 }, zero);
        muc_ir_end_for(&lo->ir);
    }
    begun = muc_schedule_begin_last(lo, next, a);
    if (muc_schedule_begin_for(lo, "odd", muc_expr_mod(lo->pool, groups, 2), NULL)) {
        lower_group(lo, "tile", a, (numbered){ less(lo, groups, num(lo, 1)), 0 },
                    muc_expr_eq(lo->pool, groups, num(lo, 1)));
        load_group(lo, (numbered){ groups, 0 }, a, false);
        muc_ir_end_for(&lo->ir);
    }
    lower_last_group(lo, a, groups);
    muc_schedule_end_last(lo, next, a, begun);
}

/* ---- keys computed anew ---- */

/* keys of n tokens from token `base` on, from the X cache to GB.KC; K's columns lie in W1 */
static void recompute_keys(lowering *lo, muc_expr base, muc_expr n)
{
    const muc_uthinker_matrix *matrix = &lo->y->matrix[MUC_MATRIX_K];
    uint32_t hd = lo->y->head_width, terms = lo->terms->x;
    uint64_t x_row = slots(lo->y->width, terms), rope_row = 4 * (uint64_t)lo->y->rotary;
    muc_expr token = add(lo, times(lo, lo->run_l, lo->y->padded_context), base);
    left_operand xc = muc_schedule_rows_of(lo, MUC_PLACE_XC, n, lo->y->width, terms);

    lo->stage = "K'";
    muc_schedule_load_place(lo, MUC_PLACE_XC, MUR_KV,
                            add_num(lo, times(lo, token, x_row), lo->caches.x),
                            times(lo, n, x_row));
    muc_schedule_load_place(lo, MUC_PLACE_TC, MUR_PARM,
                            add_num(lo,
                                    add(lo, times(lo, base, rope_row),
                                        times(lo, lo->angle, lo->y->options.context * rope_row)),
                                    lo->y->rope),
                            times(lo, n, rope_row));
    muc_schedule_bias(lo, MUC_VECTOR_K_BIAS, times(lo, lo->h, hd), MUC_PLACE_KC, num(lo, 0), n, hd,
                      false);
    for (uint32_t c = 0; c < matrix->chunks; c++) {
        right_operand right =
            muc_schedule_chunk_in(lo, MUC_MATRIX_K, W1A + c, c + 1 == matrix->chunks);

        muc_schedule_mm_columns(lo, &xc, &right, MUC_MATRIX_K, numbered_const(lo, c), MUC_PLACE_KC,
                                num(lo, 0), hd, num(lo, muc_schedule_has(lo, MUC_VECTOR_K_BIAS)));
    }
    muc_schedule_norm_heads(lo, MUC_VECTOR_K_NORM, MUC_PLACE_KC, n);
    muc_schedule_rope(lo, MUC_PLACE_KC, num(lo, word(lo, MUC_PLACE_TC)), n, 1);
}

static step_keys recomputed(lowering *lo, muc_expr tokens)
{
    return (step_keys){ .half = W0A, .row = num(lo, 0), .anew = true, .tokens = tokens };
}

static void recompute_past(lowering *lo)
{
    muc_expr c, at, whole = num(lo, lo->tokens), addr = num(lo, half_address(lo, W0B));
    const step_keys keys = recomputed(lo, whole);
    query_tile t;

    if (!muc_schedule_begin_for(lo, "c", lo->near_steps, &c))
        return;
    at = add(lo, lo->origin, c);
    if (lo->y->windows) /* changes nothing: it is a step before the call's first token */
        at = at_most(lo, at, num(lo, lo->y->padded_context / lo->tokens - 1));
    recompute_keys(lo, times(lo, at, lo->tokens), whole);
    lo->stage = "PV";
    muc_schedule_load_half(lo, W0B, 0, MUR_KV, value_offset(lo, at), num(lo, value_bytes(lo)));
    if (begin_tiles(lo, "past_tile", &t)) {
        score_tile(lo, &t, &keys, whole);
        lower_whole(lo, &t, hidden(lo, &t, c), muc_expr_eq(lo->pool, c, num(lo, 0)), W0B, addr);
        end_tiles(lo);
    }
    muc_ir_end_for(&lo->ir);
}

void muc_lower_recomputed_attention(lowering *lo, const next_stage *next)
{
    muc_expr packed = num(lo, half_address(lo, W0B)), after = add(lo, lo->in, lo->m);
    muc_expr whole = num(lo, lo->tokens);
    step_keys keys = recomputed(lo, at_most(lo, after, whole));

    muc_schedule_store_values(lo);
    lo->stage = "K'";
    for (uint32_t c = 0; c < lo->y->matrix[MUC_MATRIX_K].chunks; c++)
        muc_schedule_load_chunk(lo, MUC_MATRIX_K, numbered_const(lo, c), W1A + c);
    recompute_past(lo);
    recompute_keys(lo, times(lo, lo->past, lo->tokens), keys.tokens);
    lower_own(lo, 0, &keys, W0B, packed);
    if (begin_second(lo)) {
        /* the MIN changes nothing: no token of this call is beyond the context */
        muc_expr step =
            at_most(lo, add_num(lo, lo->past, 1), num(lo, lo->y->padded_context / lo->tokens - 1));

        lower_before(lo, &keys, W0B, packed);
        keys = recomputed(lo, less(lo, after, whole));
        recompute_keys(lo, times(lo, step, lo->tokens), keys.tokens);
        lower_own(lo, 1, &keys, W0B, packed);
        muc_ir_end_for(&lo->ir);
    }
    finish_values(lo, W0B, packed);
    divide(lo);
    muc_schedule_end_last(lo, next, 0, false);
}

/* lower_attention.c - attention, step by step over keys and values that are loaded in groups.
 *
 * A group is as many steps as the halves of a W buffer hold: its keys lie in the first half, its
 * values in the second. Groups take W0 and W1 by turns. The last one has the steps that fill no
 * group, the keys of the unfinished step and room for those of this call, which no DMA brings back.
 */
#include "targets/uthinker/lower/lower_attention.h"

static uint64_t value_bytes(const lowering *lo)
{
    return lo->y->head_width * slots(lo->tokens, lo->y->options.terms.v);
}

static uint64_t key_row(const lowering *lo, uint32_t s)
{
    return slots(muc_uthinker_slab(lo->y, s), lo->y->options.terms.k);
}

/* where the keys of slab s of the kv head begin in region KV, and its values */
static muc_expr keys_of_head(lowering *lo, uint32_t s)
{
    uint64_t padded = lo->y->padded_context;
    uint64_t head = padded * muc_uthinker_key_bytes(lo->y, lo->y->slabs);

    return add_num(lo, times(lo, lo->stream, head),
                   lo->y->k_cache + padded * muc_uthinker_key_bytes(lo->y, s));
}

static muc_expr values_of_head(lowering *lo)
{
    uint64_t head = lo->y->padded_context / lo->tokens * value_bytes(lo);

    return add_num(lo, times(lo, lo->stream, head), lo->y->v_cache);
}

static muc_expr value_offset(lowering *lo, muc_expr step)
{
    return add(lo, values_of_head(lo), times(lo, step, value_bytes(lo)));
}

/* ---- one step ---- */

/* address of key row `row` of slab s in a half */
static muc_expr key_address(lowering *lo, uint32_t half, uint32_t s, muc_expr row)
{
    uint64_t first = (uint64_t)lo->chip->key_rows * muc_uthinker_key_bytes(lo->y, s);

    return add_num(lo, times(lo, row, key_row(lo, s)), half_address(lo, half) + first);
}

static muc_expr value_address(lowering *lo, uint32_t half, muc_expr step)
{
    return add_num(lo, times(lo, step, value_bytes(lo)), half_address(lo, half));
}

/* QK of slab s: all queries with n tokens whose keys lie at addr, to GB.SC */
static void lower_scores(lowering *lo, uint32_t s, uint32_t half, muc_expr addr, muc_expr n)
{
    const muc_uthinker_terms *terms = &lo->y->options.terms;
    uint32_t w = muc_uthinker_slab(lo->y, s);
    right_operand right = { half, addr, n, num(lo, lo->tokens * slots(w, terms->k)) };
    left_operand q = muc_schedule_rows_of(lo, MUC_PLACE_Q, lo->mG, lo->y->head_width, terms->q);

    lo->stage = "QK";
    q.addr = add_num(lo, q.addr, slots(lo->y->machine.tile_k * s, terms->q));
    q.k = num(lo, w);
    muc_schedule_mm(lo, &q, &right, MUC_PLACE_SC, num(lo, word(lo, MUC_PLACE_SC)),
                    num(lo, lo->tokens), s > 0);
}

static void lower_softmax(lowering *lo, muc_expr valid, muc_expr skip, muc_expr first)
{
    const muc_uthinker_terms *terms = &lo->y->options.terms;

    lo->stage = "PV";
    EMIT(lo, SMAX, NO_HALF, FIELD(SMAX, saddr, num(lo, word(lo, MUC_PLACE_SC))),
         FIELD(SMAX, rows, lo->mG), FIELD(SMAX, taddr, num(lo, word(lo, MUC_PLACE_ML))),
         FIELD(SMAX, group, num(lo, lo->y->group)),
         FIELD(SMAX, oaddr, num(lo, word(lo, MUC_PLACE_OA))), FIELD(SMAX, skip, skip),
         FIELD(SMAX, daddr, num(lo, lo->chip->address[MUC_PLACE_P])),
         FIELD(SMAX, dst, num(lo, muc_uthinker_place_buffer(lo->chip, MUC_PLACE_P))),
         FIELD(SMAX, terms, num(lo, terms->p)), FIELD(SMAX, first, first),
         FIELD(SMAX, k, num(lo, lo->y->head_width)), FIELD(SMAX, valid, valid),
         FIELD(SMAX, scale, num(lo, lo->y->scale)),
         FIELD(SMAX, dpitch, num(lo, slots(lo->tokens, terms->p))));
}

/* PV: `rows` rows of P from row `first` on, over `tokens` tokens at addr, added to GB.OA */
static void lower_pv(lowering *lo, muc_expr first, muc_expr rows, muc_expr tokens, uint32_t half,
                     muc_expr addr)
{
    uint32_t hd = lo->y->head_width;
    left_operand p =
        muc_schedule_rows_of(lo, MUC_PLACE_P, rows, lo->tokens, lo->y->options.terms.p);
    right_operand right = { half, addr, num(lo, hd), num(lo, value_bytes(lo)) };

    p.addr = add(lo, p.addr, times(lo, first, p.pitch));
    p.k = tokens;
    muc_schedule_mm(lo, &p, &right, MUC_PLACE_OA,
                    add_num(lo, times(lo, first, hd), word(lo, MUC_PLACE_OA)), num(lo, hd), true);
}

/* step `step` of a buffer's group, whole */
static void lower_step(lowering *lo, uint32_t buffer, muc_expr step, muc_expr first)
{
    uint32_t half = 2 * buffer;
    muc_expr whole = num(lo, lo->tokens);

    for (uint32_t s = 0; s < lo->y->slabs; s++)
        lower_scores(lo, s, half, key_address(lo, half, s, times(lo, step, lo->tokens)), whole);
    lower_softmax(lo, whole, num(lo, 0), first);
    lower_pv(lo, num(lo, 0), lo->mG, whole, half + 1, value_address(lo, half + 1, step));
}

/* ---- tokens of this call ---- */

static uint64_t value_row(const lowering *lo)
{
    return 4 * (uint64_t)lo->y->head_width;
}

static muc_expr value_tail(lowering *lo)
{
    return add_num(lo, times(lo, lo->stream, lo->tokens * value_row(lo)), lo->y->v_tail);
}

void muc_schedule_load_values(lowering *lo)
{
    lo->stage = "V";
    muc_schedule_load_place(lo, MUC_PLACE_VT, MUR_KV, value_tail(lo),
                            times(lo, lo->in, value_row(lo)));
}

static void store_values(lowering *lo)
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

/* The one or two steps that hold tokens of this call: for the second, intervals see more than they
 * would in a loop over both. */
typedef struct present_step {
    uint32_t e;     /* 0 or 1 */
    muc_expr skip;  /* tokens of this call before it */
    muc_expr valid; /* keys that the first other one sees */
    muc_expr first; /* whether it is the context's first step */
    muc_expr keys;  /* its tokens up to the call's last */
} present_step;

static bool begin_present(lowering *lo, uint32_t e, present_step *p)
{
    muc_expr after = add(lo, lo->in, lo->m), whole = num(lo, lo->tokens), zero = num(lo, 0);

    if (e == 0) {
        *p = (present_step){ e, zero, add_num(lo, lo->in, 1), muc_expr_eq(lo->pool, lo->past, zero),
                             at_most(lo, after, whole) };
        return true;
    }
    *p = (present_step){ e, less(lo, whole, lo->in), num(lo, 1), zero, less(lo, after, whole) };
    return muc_schedule_begin_for(
        lo, "next_step", muc_expr_div(lo->pool, less(lo, after, num(lo, 1)), lo->tokens), NULL);
}

static void end_present(lowering *lo, const present_step *p)
{
    if (p->e == 1)
        muc_ir_end_for(&lo->ir);
}

/* each query packs the values up to its own */
static void weigh_present(lowering *lo, const present_step *p, uint32_t half, muc_expr addr)
{
    muc_expr j, row, tokens;

    lower_softmax(lo, p->valid, p->skip, p->first);
    if (!muc_schedule_begin_for(lo, p->e ? "next_j" : "j", less(lo, lo->m, p->skip), &j))
        return;
    tokens = at_most(lo, add(lo, p->valid, j), num(lo, lo->tokens));
    muc_schedule_pack_values(lo, num(lo, p->e * lo->tokens), tokens, half, addr);
    /* a MIN for the intervals alone */
    row = at_most(lo, add(lo, p->skip, j), num(lo, lo->chip->rows - 1));
    lower_pv(lo, times(lo, row, lo->y->group), num(lo, lo->y->group), tokens, half, addr);
    muc_ir_end_for(&lo->ir);
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
    uint32_t hd = lo->y->head_width, group = lo->y->group;
    bool apart = lo->y->o_parts > 1; /* a head's result lies by itself */

    lo->stage = "PV";
    EMIT(lo, DIV, NO_HALF, FIELD(DIV, saddr, num(lo, word(lo, MUC_PLACE_OA))),
         FIELD(DIV, rows, lo->mG), FIELD(DIV, taddr, num(lo, word(lo, MUC_PLACE_ML))),
         FIELD(DIV, group, num(lo, group)),
         FIELD(DIV, daddr,
               add_num(lo, times(lo, lo->h, apart ? 0 : (uint64_t)group * hd),
                       word(lo, MUC_PLACE_AT))),
         FIELD(DIV, k, num(lo, hd)),
         FIELD(DIV, dpitch, num(lo, (uint64_t)(apart ? group : lo->y->heads) * hd)));
}

/* ---- groups ---- */

/* tokens before pos that a group has */
static muc_expr tokens_of_group(lowering *lo, numbered group)
{
    uint32_t tokens = lo->chip->steps * lo->tokens;
    muc_expr behind = less(lo, lo->pos, num(lo, (uint64_t)group.more * tokens));

    return at_most(lo, less(lo, behind, times(lo, group.first, tokens)), num(lo, tokens));
}

/* whole: it is known to have all its steps */
static void load_group(lowering *lo, numbered group, uint32_t buffer, bool whole)
{
    uint64_t steps = lo->chip->steps, tokens_most = steps * lo->tokens;
    uint64_t value = value_bytes(lo);
    muc_expr tokens = whole ? num(lo, tokens_most) : tokens_of_group(lo, group);

    lo->stage = "QK";
    for (uint32_t s = 0; s < lo->y->slabs; s++)
        muc_schedule_load_half(lo, 2 * buffer,
                               lo->chip->key_rows * muc_uthinker_key_bytes(lo->y, s), MUR_KV,
                               scaled(lo, group, tokens_most * key_row(lo, s), keys_of_head(lo, s)),
                               times(lo, tokens, key_row(lo, s)));
    lo->stage = "PV";
    muc_schedule_load_half(lo, 2 * buffer + 1, 0, MUR_KV,
                           scaled(lo, group, steps * value, values_of_head(lo)),
                           times(lo, muc_expr_div(lo->pool, tokens, lo->tokens), value));
}

void muc_schedule_load_first_group(lowering *lo, uint32_t buffer)
{
    load_group(lo, numbered_const(lo, 0), buffer, false);
}

/* first: whether the group's first step is the context's */
static void lower_group(lowering *lo, uint32_t buffer, muc_expr first)
{
    for (uint32_t i = 0; i < lo->chip->steps; i++)
        lower_step(lo, buffer, num(lo, i), i == 0 ? first : num(lo, 0));
}

/* the keys of this call's tokens behind those that are in the last group, and to the K cache */
static void add_keys(lowering *lo, uint32_t half)
{
    muc_expr row = muc_expr_mod(lo->pool, lo->pos, lo->chip->steps * lo->tokens);

    lo->stage = "K";
    for (uint32_t s = 0; s < lo->y->slabs; s++)
        muc_schedule_quant_keys(lo, MUC_PLACE_KF, lo->m, s, half, key_address(lo, half, s, row));
    for (uint32_t s = 0; s < lo->y->slabs; s++)
        muc_schedule_store_half(lo, half, key_address(lo, half, s, row),
                                add(lo, keys_of_head(lo, s), times(lo, lo->pos, key_row(lo, s))),
                                times(lo, lo->m, key_row(lo, s)));
}

static void lower_last_group(lowering *lo, uint32_t buffer, muc_expr groups)
{
    uint32_t steps = lo->chip->steps, half = 2 * buffer;
    muc_expr rest = muc_expr_mod(lo->pool, lo->past, steps), i;
    muc_expr packed = value_address(lo, half + 1, num(lo, steps - 1));
    present_step p;

    add_keys(lo, half);
    if (muc_schedule_begin_for(lo, "i", rest, &i)) {
        muc_expr step = add(lo, times(lo, groups, steps), i);

        lower_step(lo, buffer, i, muc_expr_eq(lo->pool, step, num(lo, 0)));
        muc_ir_end_for(&lo->ir);
    }
    for (uint32_t e = 0; e < 2; e++) {
        muc_expr row = times(lo, add_num(lo, rest, e), lo->tokens);

        if (!begin_present(lo, e, &p))
            continue;
        for (uint32_t s = 0; s < lo->y->slabs; s++)
            lower_scores(lo, s, half, key_address(lo, half, s, row), p.keys);
        weigh_present(lo, &p, half + 1, packed);
        end_present(lo, &p);
    }
    finish_values(lo, half + 1, packed);
    store_values(lo);
    divide(lo);
}

void muc_lower_attention(lowering *lo, const next_stage *next)
{
    uint32_t a = lo->buffer, b = 1 - a;
    muc_expr groups = muc_expr_div(lo->pool, lo->past, lo->chip->steps), pair, zero = num(lo, 0);
    bool begun;

    lo->stage = "K";
    muc_schedule_rope(lo, MUC_PLACE_KF, MUC_PLACE_TB, lo->m, 1);
    if (muc_schedule_begin_for(lo, "groups", muc_expr_div(lo->pool, groups, 2), &pair)) {
        muc_expr even = times(lo, pair, 2);

        load_group(lo, (numbered){ even, 1 }, b, true);
        lower_group(lo, a, muc_expr_eq(lo->pool, pair, zero));
        load_group(lo, (numbered){ even, 2 }, a, false);
        lower_group(lo, b, zero);
        muc_ir_end_for(&lo->ir);
    }
    begun = muc_schedule_begin_last(lo, next, a);
    if (muc_schedule_begin_for(lo, "odd", muc_expr_mod(lo->pool, groups, 2), NULL)) {
        lower_group(lo, a, muc_expr_eq(lo->pool, groups, num(lo, 1)));
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
    uint32_t hd = lo->y->head_width, terms = lo->y->options.terms.x;
    uint64_t x_row = slots(lo->y->width, terms), rope_row = 4 * (uint64_t)hd;
    muc_expr token = add(lo, times(lo, lo->l, lo->y->padded_context), base);
    left_operand xc = muc_schedule_rows_of(lo, MUC_PLACE_XC, n, lo->y->width, terms);

    lo->stage = "K'";
    muc_schedule_load_place(lo, MUC_PLACE_XC, MUR_KV,
                            add_num(lo, times(lo, token, x_row), lo->y->x_cache),
                            times(lo, n, x_row));
    muc_schedule_load_place(lo, MUC_PLACE_TC, MUR_PARM,
                            add_num(lo, times(lo, base, rope_row), lo->y->rope),
                            times(lo, n, rope_row));
    for (uint32_t c = 0; c < matrix->chunks; c++) {
        right_operand right =
            muc_schedule_chunk_in(lo, MUC_MATRIX_K, W1A + c, c + 1 == matrix->chunks);

        muc_schedule_mm_columns(lo, &xc, &right, MUC_MATRIX_K, numbered_const(lo, c), MUC_PLACE_KC,
                                num(lo, 0), hd, false);
    }
    muc_schedule_rope(lo, MUC_PLACE_KC, MUC_PLACE_TC, n, 1);
}

static void recompute_scores(lowering *lo, muc_expr base, muc_expr n)
{
    muc_expr addr = num(lo, half_address(lo, W0A));

    recompute_keys(lo, base, n);
    for (uint32_t s = 0; s < lo->y->slabs; s++) {
        lo->stage = "QK";
        muc_schedule_quant_keys(lo, MUC_PLACE_KC, n, s, W0A, addr);
        lower_scores(lo, s, W0A, addr, n);
    }
}

static void recompute_past(lowering *lo)
{
    muc_expr c, whole = num(lo, lo->tokens), addr = num(lo, half_address(lo, W0B));

    if (!muc_schedule_begin_for(lo, "c", lo->past, &c))
        return;
    recompute_scores(lo, times(lo, c, lo->tokens), whole);
    lo->stage = "PV";
    muc_schedule_load_half(lo, W0B, 0, MUR_KV, value_offset(lo, c), num(lo, value_bytes(lo)));
    lower_softmax(lo, whole, num(lo, 0), muc_expr_eq(lo->pool, c, num(lo, 0)));
    lower_pv(lo, num(lo, 0), lo->mG, whole, W0B, addr);
    muc_ir_end_for(&lo->ir);
}

void muc_lower_recomputed_attention(lowering *lo, const next_stage *next)
{
    muc_expr packed = num(lo, half_address(lo, W0B));
    present_step p;

    store_values(lo);
    lo->stage = "K'";
    for (uint32_t c = 0; c < lo->y->matrix[MUC_MATRIX_K].chunks; c++)
        muc_schedule_load_chunk(lo, MUC_MATRIX_K, numbered_const(lo, c), W1A + c);
    recompute_past(lo);
    for (uint32_t e = 0; e < 2; e++) {
        /* the MIN changes nothing: no token of this call is beyond the context */
        muc_expr step =
            at_most(lo, add_num(lo, lo->past, e), num(lo, lo->y->padded_context / lo->tokens - 1));

        if (!begin_present(lo, e, &p))
            continue;
        recompute_scores(lo, times(lo, step, lo->tokens), p.keys);
        weigh_present(lo, &p, W0B, packed);
        end_present(lo, &p);
    }
    finish_values(lo, W0B, packed);
    divide(lo);
    muc_schedule_end_last(lo, next, 0, false);
}

/* lower_llama.c - the schedule.
 *
 * Read beside SPEC.md section 8: one function a stage, in the same order. Names of one letter are
 * the SPEC's. Every operand is written as an expression; constants fold by themselves.
 *
 * Intervals must prove every bound on the device, and an interval knows nothing of how two values
 * hang together. Hence some expressions are not the shortest: a MIN that never changes a value, or
 * pos % 64 in place of pos - 64 (pos / 64). Each says so where it stands.
 */
#include "targets/uthinker/lower/lower_llama.h"

#include <string.h>

#include "targets/uthinker/lower/schedule_instructions.h"

/* ---- stream(kind, halves a b, body) ---- */

/* What follows the load of chunk number `chunk`; right: its columns, where they lie. */
typedef void stream_body(lowering *lo, muc_expr chunk, const right_operand *right);

static muc_expr chunk_index(lowering *lo, muc_matrix_kind kind, muc_expr chunk)
{
    const muc_uthinker_matrix *matrix = &lo->y->matrix[kind];
    muc_expr stream = matrix->streams > 1 ? lo->stream : lo->l;

    /* the embedding and the head have one matrix, whatever the layers */
    if (kind == MUC_MATRIX_EMBEDDING || kind == MUC_MATRIX_HEAD)
        return chunk;
    return add(lo, times(lo, stream, matrix->chunks), chunk);
}

static void load_chunk(lowering *lo, muc_matrix_kind kind, muc_expr chunk, uint32_t half)
{
    muc_expr index = chunk_index(lo, kind, chunk);
    uint32_t table = lo->tables[kind];

    muc_schedule_load_half(lo, half, MUR_WGTS,
                           muc_expr_lookup(lo->pool, MUC_EXPR_TABLE, table, index),
                           muc_expr_lookup(lo->pool, MUC_EXPR_SPAN, table, index));
}

static right_operand chunk_in(lowering *lo, muc_matrix_kind kind, muc_expr chunk, uint32_t half,
                              bool last)
{
    const muc_uthinker_matrix *matrix = &lo->y->matrix[kind];
    uint32_t cols = last ? matrix->n - matrix->chunk * (matrix->chunks - 1) : matrix->chunk;
    right_operand right = { half, num(lo, cols),
                            muc_expr_lookup(lo->pool, MUC_EXPR_SPAN, lo->tables[kind],
                                            chunk_index(lo, kind, chunk)) };

    return right;
}

static void run_chunk(lowering *lo, muc_matrix_kind kind, muc_expr chunk, uint32_t half, bool last,
                      stream_body *body)
{
    right_operand right = chunk_in(lo, kind, chunk, half, last);

    body(lo, chunk, &right);
}

static void stream(lowering *lo, muc_matrix_kind kind, const char *variable, uint32_t a, uint32_t b,
                   stream_body *body)
{
    uint32_t chunks = lo->y->matrix[kind].chunks;
    muc_expr pair;

    load_chunk(lo, kind, num(lo, 0), a);
    if (muc_schedule_begin_for(lo, variable, num(lo, (chunks - 1) / 2), &pair)) {
        muc_expr even = times(lo, pair, 2), odd = add_num(lo, even, 1);

        load_chunk(lo, kind, odd, b);
        run_chunk(lo, kind, even, a, false, body);
        load_chunk(lo, kind, add_num(lo, even, 2), a);
        run_chunk(lo, kind, odd, b, false, body);
        muc_ir_end_for(&lo->ir);
    }
    if (chunks % 2) {
        run_chunk(lo, kind, num(lo, chunks - 1), a, true, body);
        return;
    }
    load_chunk(lo, kind, num(lo, chunks - 1), b);
    run_chunk(lo, kind, num(lo, chunks - 2), a, false, body);
    run_chunk(lo, kind, num(lo, chunks - 1), b, true, body);
}

/* MM of a chunk to the same columns of a place in GB, from row `first` on */
static void mm_columns(lowering *lo, const left_operand *left, const right_operand *right,
                       muc_matrix_kind kind, muc_expr chunk, muc_uthinker_place to, muc_expr first,
                       uint64_t pitch, bool acc)
{
    muc_expr row = add_num(lo, times(lo, first, pitch), word(lo, to));

    muc_schedule_mm(lo, left, right, add(lo, row, times(lo, chunk, lo->y->matrix[kind].chunk)),
                    num(lo, pitch), acc);
}

/* ---- Q, K, V ---- */

static void project_x(lowering *lo, muc_expr chunk, const right_operand *right,
                      muc_matrix_kind kind, muc_uthinker_place to, muc_expr first, uint64_t pitch)
{
    left_operand x =
        muc_schedule_rows_of(lo, MUC_PLACE_X, lo->m, lo->y->width, lo->y->options.terms.x);

    mm_columns(lo, &x, right, kind, chunk, to, first, pitch, false);
}

static void q_body(lowering *lo, muc_expr chunk, const right_operand *right)
{
    project_x(lo, chunk, right, MUC_MATRIX_Q, MUC_PLACE_QF, num(lo, 0),
              (uint64_t)lo->y->group * lo->y->head_width);
}

static void k_body(lowering *lo, muc_expr chunk, const right_operand *right)
{
    project_x(lo, chunk, right, MUC_MATRIX_K, MUC_PLACE_KF, num(lo, 0), lo->y->head_width);
}

static void v_body(lowering *lo, muc_expr chunk, const right_operand *right)
{
    project_x(lo, chunk, right, MUC_MATRIX_V, MUC_PLACE_VT, lo->in, lo->y->head_width);
}

static void lower_q(lowering *lo)
{
    uint32_t hd = lo->y->head_width;

    lo->stage = "Q";
    stream(lo, MUC_MATRIX_Q, "q_pair", W0A, W0B, q_body);
    muc_schedule_rope(lo, MUC_PLACE_QF, MUC_PLACE_TB, lo->m, lo->y->group);
    muc_schedule_quant(lo, MUC_PLACE_QF, lo->mG, hd, hd, MUC_PLACE_Q, lo->y->options.terms.q);
}

/* where token row `row` of slab s of this layer's and head's K cache lies */
static muc_expr key_offset(lowering *lo, uint32_t s, muc_expr row)
{
    uint32_t terms = lo->y->options.terms.k;
    uint64_t padded = lo->y->padded_context;
    muc_expr head = times(lo, lo->stream, padded * slots(lo->y->head_width, terms));
    muc_expr in_slab = times(lo, row, slots(muc_uthinker_slab(lo->y, s), terms));

    return add_num(lo, add(lo, head, in_slab),
                   lo->y->k_cache + padded * slots(lo->y->machine.tile_k * s, terms));
}

static void lower_k(lowering *lo)
{
    lo->stage = "K";
    stream(lo, MUC_MATRIX_K, "k_pair", W1A, W1B, k_body);
    muc_schedule_rope(lo, MUC_PLACE_KF, MUC_PLACE_TB, lo->m, 1);
    for (uint32_t s = 0; s < lo->y->slabs; s++) {
        uint32_t w = muc_uthinker_slab(lo->y, s);

        muc_schedule_quant_keys(lo, MUC_PLACE_KF, lo->m, s, W1B);
        muc_schedule_store_half(lo, W1B, key_offset(lo, s, lo->pos),
                                times(lo, lo->m, slots(w, lo->y->options.terms.k)));
    }
}

static uint64_t value_chunk_bytes(const lowering *lo)
{
    return lo->y->head_width * slots(lo->tokens, lo->y->options.terms.v);
}

static muc_expr value_offset(lowering *lo, muc_expr chunk)
{
    uint64_t bytes = value_chunk_bytes(lo);
    muc_expr head = times(lo, lo->stream, lo->y->padded_context / lo->tokens * bytes);

    return add_num(lo, add(lo, head, times(lo, chunk, bytes)), lo->y->v_cache);
}

static void lower_v(lowering *lo)
{
    uint64_t row = 4 * (uint64_t)lo->y->head_width;
    muc_expr tail = add_num(lo, times(lo, lo->stream, lo->tokens * row), lo->y->v_tail);
    muc_expr after = add(lo, lo->in, lo->m), finished = muc_expr_div(lo->pool, after, lo->tokens),
             s;

    lo->stage = "V";
    muc_schedule_load_place(lo, MUC_PLACE_VT, MUR_KV, tail, times(lo, lo->in, row));
    stream(lo, MUC_MATRIX_V, "v_pair", W1A, W1B, v_body);
    if (muc_schedule_begin_for(lo, "finish", finished, NULL)) {
        muc_schedule_pack_values(lo, num(lo, 0), num(lo, lo->tokens));
        muc_schedule_store_half(lo, W0B, value_offset(lo, lo->past),
                                num(lo, value_chunk_bytes(lo)));
        muc_ir_end_for(&lo->ir);
    }
    /* s is 64 or pos % 64, written so that both can be seen to be at most 64; never more than m
     * rows are stored, which the intervals of their ends do not tell */
    s = muc_expr_max(lo->pool, times(lo, finished, lo->tokens), lo->in);
    muc_schedule_store_place(lo, MUC_PLACE_VT,
                             add_num(lo, times(lo, s, row), lo->y->address[MUC_PLACE_VT]), MUR_KV,
                             add(lo, tail, times(lo, muc_expr_mod(lo->pool, s, lo->tokens), row)),
                             times(lo, at_most(lo, less(lo, after, s), lo->m), row));
}

/* ---- attention ---- */

/* Recompute attention: keys of n tokens from token `base` on, from the X cache to GB.KC. */
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
            chunk_in(lo, MUC_MATRIX_K, num(lo, c), W1A + c, c + 1 == matrix->chunks);

        mm_columns(lo, &xc, &right, MUC_MATRIX_K, num(lo, c), MUC_PLACE_KC, num(lo, 0), hd, false);
    }
    muc_schedule_rope(lo, MUC_PLACE_KC, MUC_PLACE_TC, n, 1);
}

/* QK: scores of all queries with n tokens from token `base` on, to GB.SC */
static void lower_scores(lowering *lo, muc_expr base, muc_expr n)
{
    const muc_uthinker_terms *terms = &lo->y->options.terms;

    if (lo->y->options.recompute)
        recompute_keys(lo, base, n);
    lo->stage = "QK";
    for (uint32_t s = 0; s < lo->y->slabs; s++) {
        uint32_t w = muc_uthinker_slab(lo->y, s);
        right_operand right = { W0A, n, times(lo, n, slots(w, terms->k)) };
        left_operand q = muc_schedule_rows_of(lo, MUC_PLACE_Q, lo->mG, lo->y->head_width, terms->q);

        if (lo->y->options.recompute)
            muc_schedule_quant_keys(lo, MUC_PLACE_KC, n, s, W0A);
        else
            muc_schedule_load_half(lo, W0A, MUR_KV, key_offset(lo, s, base), right.wlen);
        q.addr = add_num(lo, q.addr, slots(lo->y->machine.tile_k * s, terms->q));
        q.k = num(lo, w);
        muc_schedule_mm(lo, &q, &right, num(lo, word(lo, MUC_PLACE_SC)), num(lo, lo->tokens),
                        s > 0);
    }
}

static void lower_softmax(lowering *lo, muc_expr valid, muc_expr skip, muc_expr first)
{
    const muc_uthinker_terms *terms = &lo->y->options.terms;

    EMIT(lo, SMAX, NO_HALF, FIELD(SMAX, saddr, num(lo, word(lo, MUC_PLACE_SC))),
         FIELD(SMAX, rows, lo->mG), FIELD(SMAX, taddr, num(lo, word(lo, MUC_PLACE_ML))),
         FIELD(SMAX, group, num(lo, lo->y->group)),
         FIELD(SMAX, oaddr, num(lo, word(lo, MUC_PLACE_OA))), FIELD(SMAX, skip, skip),
         FIELD(SMAX, daddr, num(lo, lo->y->address[MUC_PLACE_P])),
         FIELD(SMAX, dst, num(lo, muc_uthinker_place_buffer(MUC_PLACE_P))),
         FIELD(SMAX, terms, num(lo, terms->p)), FIELD(SMAX, first, first),
         FIELD(SMAX, k, num(lo, lo->y->head_width)), FIELD(SMAX, valid, valid),
         FIELD(SMAX, scale, num(lo, lo->y->scale)),
         FIELD(SMAX, dpitch, num(lo, slots(lo->tokens, terms->p))));
}

/* PV: `rows` rows of P from row `first` on, over `tokens` tokens in W0b, added to GB.OA */
static void lower_pv(lowering *lo, muc_expr first, muc_expr rows, muc_expr tokens)
{
    uint32_t hd = lo->y->head_width;
    left_operand p =
        muc_schedule_rows_of(lo, MUC_PLACE_P, rows, lo->tokens, lo->y->options.terms.p);
    right_operand right = { W0B, num(lo, hd), num(lo, value_chunk_bytes(lo)) };

    p.addr = add(lo, p.addr, times(lo, first, p.pitch));
    p.k = tokens;
    muc_schedule_mm(lo, &p, &right, add_num(lo, times(lo, first, hd), word(lo, MUC_PLACE_OA)),
                    num(lo, hd), true);
}

static void lower_past(lowering *lo)
{
    muc_expr c, whole = num(lo, lo->tokens);

    if (!muc_schedule_begin_for(lo, "c", lo->past, &c))
        return;
    lower_scores(lo, times(lo, c, lo->tokens), whole);
    lo->stage = "PV";
    muc_schedule_load_half(lo, W0B, MUR_KV, value_offset(lo, c), num(lo, value_chunk_bytes(lo)));
    lower_softmax(lo, whole, num(lo, 0), muc_expr_eq(lo->pool, c, num(lo, 0)));
    lower_pv(lo, num(lo, 0), lo->mG, whole);
    muc_ir_end_for(&lo->ir);
}

/* the chunks that hold this call's tokens: each query sees the values up to its own */
static void lower_present(lowering *lo)
{
    muc_expr e, j, chunk, base, i0, valid, row, offset;

    /* (end - 1) / 64 - pos / 64 + 1, of which an interval would not know that it is 1 or 2 */
    if (!muc_schedule_begin_for(
            lo, "e",
            add_num(
                lo,
                muc_expr_div(lo->pool, less(lo, add(lo, lo->in, lo->m), num(lo, 1)), lo->tokens),
                1),
            &e))
        return;
    /* the MIN changes nothing: no token of this call is beyond the context */
    chunk = at_most(lo, add(lo, lo->past, e), num(lo, lo->y->padded_context / lo->tokens - 1));
    base = times(lo, chunk, lo->tokens);
    offset = times(lo, e, lo->tokens);
    i0 = less(lo, offset, lo->in);
    valid = add_num(lo, less(lo, lo->in, offset), 1);
    lower_scores(lo, base, at_most(lo, less(lo, lo->end, base), num(lo, lo->tokens)));
    lo->stage = "PV";
    lower_softmax(lo, valid, i0, muc_expr_eq(lo->pool, chunk, num(lo, 0)));
    if (muc_schedule_begin_for(lo, "j", less(lo, lo->m, i0), &j)) {
        muc_expr tokens = at_most(lo, add(lo, valid, j), num(lo, lo->tokens));

        muc_schedule_pack_values(lo, offset, tokens);
        /* again a MIN for the intervals alone */
        row = at_most(lo, add(lo, i0, j), num(lo, lo->y->options.rows - 1));
        lower_pv(lo, times(lo, row, lo->y->group), num(lo, lo->y->group), tokens);
        muc_ir_end_for(&lo->ir);
    }
    muc_ir_end_for(&lo->ir);
}

static void lower_attention(lowering *lo)
{
    uint32_t hd = lo->y->head_width, group = lo->y->group;
    const muc_uthinker_matrix *k = &lo->y->matrix[MUC_MATRIX_K];

    lo->stage = "K'";
    for (uint32_t c = 0; lo->y->options.recompute && c < k->chunks; c++)
        load_chunk(lo, MUC_MATRIX_K, num(lo, c), W1A + c);
    lower_past(lo);
    lower_present(lo);
    EMIT(lo, DIV, NO_HALF, FIELD(DIV, saddr, num(lo, word(lo, MUC_PLACE_OA))),
         FIELD(DIV, rows, lo->mG), FIELD(DIV, taddr, num(lo, word(lo, MUC_PLACE_ML))),
         FIELD(DIV, group, num(lo, group)),
         FIELD(DIV, daddr,
               add_num(lo, times(lo, lo->h, (uint64_t)group * hd), word(lo, MUC_PLACE_AT))),
         FIELD(DIV, k, num(lo, hd)), FIELD(DIV, dpitch, num(lo, (uint64_t)lo->y->heads * hd)));
}

/* ---- O, gate and up, down, head ---- */

static void o_body(lowering *lo, muc_expr chunk, const right_operand *right)
{
    uint32_t k = lo->y->heads * lo->y->head_width;
    left_operand a = muc_schedule_rows_of(lo, MUC_PLACE_A, lo->m, k, lo->y->options.terms.o);

    mm_columns(lo, &a, right, MUC_MATRIX_O, chunk, MUC_PLACE_RES, num(lo, 0), lo->y->width, true);
}

static void lower_o(lowering *lo)
{
    uint32_t k = lo->y->heads * lo->y->head_width;

    lo->stage = "O";
    muc_schedule_quant(lo, MUC_PLACE_AT, lo->m, k, k, MUC_PLACE_A, lo->y->options.terms.o);
    stream(lo, MUC_MATRIX_O, "o_pair", W1A, W1B, o_body);
}

static void gate_or_up(lowering *lo, muc_matrix_kind kind, muc_expr chunk, uint32_t half, bool last,
                       muc_uthinker_place to)
{
    right_operand right = chunk_in(lo, kind, chunk, half, last);
    left_operand n =
        muc_schedule_rows_of(lo, MUC_PLACE_N, lo->m, lo->y->width, lo->y->options.terms.f);

    muc_schedule_mm(lo, &n, &right, num(lo, word(lo, to)), right.cols, false);
}

static void glu(lowering *lo, muc_expr chunk, uint32_t cols)
{
    uint32_t terms = lo->y->options.terms.h;
    uint64_t chunk_bytes = slots(lo->y->matrix[MUC_MATRIX_GATE].chunk, terms);

    EMIT(lo, GLU, NO_HALF, FIELD(GLU, saddr, num(lo, word(lo, MUC_PLACE_GA))),
         FIELD(GLU, rows, lo->m), FIELD(GLU, uaddr, num(lo, word(lo, MUC_PLACE_UP))),
         FIELD(GLU, dst, num(lo, muc_uthinker_place_buffer(MUC_PLACE_H))),
         FIELD(GLU, terms, num(lo, terms)),
         FIELD(GLU, daddr, add_num(lo, times(lo, chunk, chunk_bytes), lo->y->address[MUC_PLACE_H])),
         FIELD(GLU, k, num(lo, cols)), FIELD(GLU, dpitch, num(lo, slots(lo->y->ffn_width, terms))));
}

static void lower_gate_up(lowering *lo)
{
    const muc_uthinker_matrix *matrix = &lo->y->matrix[MUC_MATRIX_GATE];
    muc_expr c, last = num(lo, matrix->chunks - 1);

    lo->stage = "UP+GATE";
    load_chunk(lo, MUC_MATRIX_GATE, num(lo, 0), W0A);
    if (muc_schedule_begin_for(lo, "f", last, &c)) {
        load_chunk(lo, MUC_MATRIX_UP, c, W0B);
        gate_or_up(lo, MUC_MATRIX_GATE, c, W0A, false, MUC_PLACE_GA);
        load_chunk(lo, MUC_MATRIX_GATE, add_num(lo, c, 1), W0A);
        gate_or_up(lo, MUC_MATRIX_UP, c, W0B, false, MUC_PLACE_UP);
        glu(lo, c, matrix->chunk);
        muc_ir_end_for(&lo->ir);
    }
    load_chunk(lo, MUC_MATRIX_UP, last, W0B);
    gate_or_up(lo, MUC_MATRIX_GATE, last, W0A, true, MUC_PLACE_GA);
    gate_or_up(lo, MUC_MATRIX_UP, last, W0B, true, MUC_PLACE_UP);
    glu(lo, last, matrix->n - matrix->chunk * (matrix->chunks - 1));
}

static void down_body(lowering *lo, muc_expr chunk, const right_operand *right)
{
    left_operand h =
        muc_schedule_rows_of(lo, MUC_PLACE_H, lo->m, lo->y->ffn_width, lo->y->options.terms.h);

    mm_columns(lo, &h, right, MUC_MATRIX_DOWN, chunk, MUC_PLACE_RES, num(lo, 0), lo->y->width,
               true);
}

static muc_matrix_kind head_kind(const lowering *lo)
{
    return lo->y->tied ? MUC_MATRIX_EMBEDDING : MUC_MATRIX_HEAD;
}

static void head_body(lowering *lo, muc_expr chunk, const right_operand *right)
{
    uint32_t columns = lo->y->matrix[head_kind(lo)].chunk;
    left_operand n =
        muc_schedule_rows_of(lo, MUC_PLACE_N, num(lo, 1), lo->y->width, lo->y->options.terms.l);

    muc_schedule_mm(lo, &n, right, num(lo, word(lo, MUC_PLACE_LG)), num(lo, columns), false);
    muc_schedule_store_place(lo, MUC_PLACE_LG, num(lo, lo->y->address[MUC_PLACE_LG]), MUR_IO,
                             add_num(lo, times(lo, chunk, 4 * (uint64_t)columns), lo->y->logits),
                             times(lo, right->cols, 4));
}

/* ---- the whole ---- */

static void load_gain(lowering *lo, uint32_t gains, muc_expr layer)
{
    uint64_t bytes = 4 * (uint64_t)lo->y->width;

    muc_schedule_load_place(lo, MUC_PLACE_GN, MUR_PARM, add_num(lo, times(lo, layer, bytes), gains),
                            num(lo, bytes));
}

static void lower_embedding(lowering *lo)
{
    const muc_uthinker_layout *y = lo->y;
    uint64_t rope_row = 4 * (uint64_t)y->head_width;

    lo->stage = "EMBED";
    EMIT(lo, EMBED, NO_HALF, FIELD(EMBED, seq, num(lo, y->matrix[MUC_MATRIX_EMBEDDING].offset)),
         FIELD(EMBED, k, num(lo, y->width)), FIELD(EMBED, rows, lo->m),
         FIELD(EMBED, cols, num(lo, y->vocabulary)), FIELD(EMBED, dst, num(lo, y->embedded)));
    muc_schedule_load_place(lo, MUC_PLACE_RES, MUR_IO, num(lo, y->embedded),
                            times(lo, lo->m, 4 * (uint64_t)y->width));
    muc_schedule_load_place(lo, MUC_PLACE_TB, MUR_PARM,
                            add_num(lo, times(lo, lo->pos, rope_row), y->rope),
                            times(lo, lo->m, rope_row));
}

static void lower_attention_norm(lowering *lo)
{
    const muc_uthinker_layout *y = lo->y;
    uint64_t row = slots(y->width, y->options.terms.x);
    muc_expr token;

    lo->stage = "NORM";
    load_gain(lo, y->gain_attention, lo->l);
    muc_schedule_norm(lo, num(lo, word(lo, MUC_PLACE_RES)), lo->m, MUC_PLACE_X, y->options.terms.x);
    if (!y->options.recompute)
        return;
    token = add(lo, times(lo, lo->l, y->padded_context), lo->pos);
    muc_schedule_store_place(lo, MUC_PLACE_X, num(lo, y->address[MUC_PLACE_X]), MUR_KV,
                             add_num(lo, times(lo, token, row), y->x_cache), times(lo, lo->m, row));
}

static void lower_layer(lowering *lo)
{
    const muc_uthinker_layout *y = lo->y;

    lower_attention_norm(lo);
    if (muc_schedule_begin_for(lo, "h", num(lo, y->kv_heads), &lo->h)) {
        lo->stream = add(lo, times(lo, lo->l, y->kv_heads), lo->h);
        lower_q(lo);
        if (!y->options.recompute)
            lower_k(lo);
        lower_v(lo);
        lower_attention(lo);
        muc_ir_end_for(&lo->ir);
    }
    lower_o(lo);
    lo->stage = "NORM";
    load_gain(lo, y->gain_ffn, lo->l);
    muc_schedule_norm(lo, num(lo, word(lo, MUC_PLACE_RES)), lo->m, MUC_PLACE_N, y->options.terms.f);
    lower_gate_up(lo);
    lo->stage = "DN";
    stream(lo, MUC_MATRIX_DOWN, "down_pair", W1A, W1B, down_body);
}

static void lower_head(lowering *lo)
{
    muc_expr last = times(lo, less(lo, lo->m, num(lo, 1)), lo->y->width);

    lo->stage = "NORM";
    load_gain(lo, lo->y->gain_final, num(lo, 0));
    muc_schedule_norm(lo, add_num(lo, last, word(lo, MUC_PLACE_RES)), num(lo, 1), MUC_PLACE_N,
                      lo->y->options.terms.l);
    lo->stage = "LM head";
    stream(lo, head_kind(lo), "head_pair", W0A, W1A, head_body);
}

/* the inputs, in the order of their slots, and what is made of them everywhere */
static muc_status declare(lowering *lo, muc_entry_kind kind)
{
    const muc_uthinker_layout *y = lo->y;
    uint32_t context = y->options.context, most = kind == MUC_ENTRY_DECODE ? 1 : y->options.rows;

    lo->ir.template->max_m = most;
    lo->pos = muc_expr_new_input(lo->pool, "pos", 0, context - 1, 1);
    lo->m = muc_expr_new_input(lo->pool, "m", 1, most, 1);
    lo->end = muc_expr_new_input(lo->pool, "end", 1, context, 1);
    if (most == 1)
        lo->m = num(lo, 1);
    for (uint32_t i = 0; i < MUC_MATRIX_COUNT; i++) {
        const muc_uthinker_matrix *matrix = &y->matrix[i];

        if (matrix->table != UINT32_MAX)
            MUC_TRY(muc_expr_new_table(lo->pool, muc_matrix_name((muc_matrix_kind)i),
                                       matrix->table_data, matrix->table_count, &lo->tables[i]));
    }
    lo->past = muc_expr_div(lo->pool, lo->pos, lo->tokens);
    lo->in = muc_expr_mod(lo->pool, lo->pos, lo->tokens);
    lo->mG = times(lo, lo->m, y->group);
    return MUC_OK;
}

const char *muc_entry_name(muc_entry_kind kind)
{
    switch (kind) {
#define MUR_ENTRY(name, kind, meaning) \
    case MUC_ENTRY_##name: \
        return #name;
#include "mur_sections.def"
    }
    return "?";
}

muc_status muc_uthinker_lower(muc_context *ctx, muc_arena *arena, const muc_uthinker_layout *layout,
                              muc_entry_kind kind, muc_template *out)
{
    lowering lo = { .y = layout,
                    .tokens = layout->machine.tokens,
                    .ir = { .ctx = ctx, .arena = arena, .template = out } };

    *out = (muc_template){ .name = muc_entry_name(kind), .min_m = 1 };
    MUC_TRY(muc_expr_pool_new(ctx, arena, &out->pool));
    lo.pool = out->pool;
    MUC_TRY(declare(&lo, kind));
    lower_embedding(&lo);
    if (muc_schedule_begin_for(&lo, "l", num(&lo, layout->layers), &lo.l)) {
        lower_layer(&lo);
        muc_ir_end_for(&lo.ir);
    }
    lower_head(&lo);
    return muc_ir_finish(&lo.ir);
}

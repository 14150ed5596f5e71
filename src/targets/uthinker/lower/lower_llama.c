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

#include "targets/uthinker/lower/lower_attention.h"
#include "targets/uthinker/lower/lower_head.h"

/* the layer, among those with weights of their own, that layer `l` runs */
static muc_expr own_layer(lowering *lo, muc_expr l)
{
    return muc_expr_div(lo->pool, l, lo->y->layers / lo->y->own_layers);
}

/* ---- Q, K, V ---- */

/* added to what is there if the layers have this bias */
static void project_x(lowering *lo, muc_matrix_kind kind, numbered chunk,
                      const right_operand *right, muc_uthinker_place to, muc_expr first,
                      uint64_t pitch, muc_vector_kind bias)
{
    left_operand x = muc_schedule_rows_of(lo, MUC_PLACE_X, lo->m, lo->y->width, lo->terms->x);

    muc_schedule_mm_columns(lo, &x, right, kind, chunk, to, first, pitch,
                            num(lo, muc_schedule_has(lo, bias)));
}

static void load_q(lowering *lo, numbered chunk, uint32_t buffer)
{
    lo->stage = "Q";
    muc_schedule_load_chunk(lo, MUC_MATRIX_Q, chunk, 2 * buffer);
}

static void q_body(lowering *lo, numbered chunk, bool last, uint32_t buffer)
{
    right_operand right = muc_schedule_chunk_in(lo, MUC_MATRIX_Q, 2 * buffer, last);

    lo->stage = "Q";
    project_x(lo, MUC_MATRIX_Q, chunk, &right, MUC_PLACE_QF, num(lo, 0),
              muc_uthinker_query_columns(lo->y), MUC_VECTOR_Q_BIAS);
}

/* whether a kv head's keys are made beside its values */
static bool has_keys_beside(const lowering *lo)
{
    return !lo->y->options.recompute && !lo->y->whole_norms;
}

/* V's chunks lie in a buffer's second half, unless keys are made elsewhere than in its first one */
static uint32_t half_of_values(const lowering *lo, uint32_t buffer)
{
    return 2 * buffer + (lo->y->whole_norms ? 0 : 1);
}

/* a chunk of K to a buffer's first half, one of V to its second; or V alone */
static void load_kv(lowering *lo, numbered chunk, uint32_t buffer)
{
    lo->stage = "K";
    if (has_keys_beside(lo))
        muc_schedule_load_chunk(lo, MUC_MATRIX_K, chunk, 2 * buffer);
    lo->stage = "V";
    muc_schedule_load_chunk(lo, MUC_MATRIX_V, chunk, half_of_values(lo, buffer));
}

static void kv_body(lowering *lo, numbered chunk, bool last, uint32_t buffer)
{
    uint32_t columns = muc_uthinker_key_columns(lo->y);
    right_operand k = muc_schedule_chunk_in(lo, MUC_MATRIX_K, 2 * buffer, last);
    right_operand v = muc_schedule_chunk_in(lo, MUC_MATRIX_V, half_of_values(lo, buffer), last);

    lo->stage = "K";
    if (has_keys_beside(lo))
        project_x(lo, MUC_MATRIX_K, chunk, &k, MUC_PLACE_KF, num(lo, 0), columns,
                  MUC_VECTOR_K_BIAS);
    lo->stage = "V";
    project_x(lo, MUC_MATRIX_V, chunk, &v, MUC_PLACE_VT, lo->in, columns, MUC_VECTOR_V_BIAS);
}

static void load_first_kv(lowering *lo, uint32_t buffer)
{
    load_kv(lo, numbered_const(lo, 0), buffer);
}

/* Of `all` heads, those of the kv head at hand, `count` of them, to a place of their own. */
static void take_heads(lowering *lo, muc_uthinker_place from, uint32_t count, uint32_t all,
                       muc_uthinker_place to)
{
    uint64_t columns = (uint64_t)count * lo->y->head_width;

    muc_schedule_scale(lo, add_num(lo, times(lo, lo->h, columns), word(lo, from)),
                       (uint64_t)all * lo->y->head_width, lo->m, columns, num(lo, word(lo, to)),
                       columns, MUC_UTHINKER_ONE, false, 0);
}

/* the bias of the kv head at hand, or of all, `count` heads of it, to rows of a place from row
 * `first` on */
static void start_head(lowering *lo, muc_vector_kind bias, uint32_t count, muc_uthinker_place to,
                       muc_expr first)
{
    uint64_t columns = (uint64_t)count * lo->y->head_width;

    muc_schedule_bias(lo, bias, times(lo, lo->h, columns), to, first, lo->m, columns, false);
}

static void lower_q(lowering *lo)
{
    const chunk_stream q = { "q_pair", lo->y->matrix[MUC_MATRIX_Q].chunks, load_q,
                             q_body,   { load_first_kv, ANY_BUFFER },      false };
    uint32_t hd = lo->y->head_width, heads = lo->y->heads_made * lo->y->group;

    lo->stage = "Q";
    if (lo->y->whole_norms) {
        take_heads(lo, MUC_PLACE_QA, lo->y->group, lo->y->heads, MUC_PLACE_QF);
    } else {
        start_head(lo, MUC_VECTOR_Q_BIAS, heads, MUC_PLACE_QF, num(lo, 0));
        muc_schedule_stream(lo, &q);
    }
    lo->stage = "Q";
    muc_schedule_norm_heads(lo, MUC_VECTOR_Q_NORM, MUC_PLACE_QF, times(lo, lo->m, heads));
    muc_schedule_rope(lo, MUC_PLACE_QF, muc_schedule_angles(lo), lo->m, heads);
    if (lo->y->heads_made == 1 || muc_uthinker_keeps_queries(lo->y, lo->chip))
        muc_schedule_quant(lo, MUC_PLACE_QF, times(lo, lo->m, heads), hd, hd, MUC_PLACE_Q,
                           lo->terms->q, 0);
}

static void lower_kv(lowering *lo)
{
    const chunk_stream kv = { "kv_pair",
                              lo->y->matrix[MUC_MATRIX_V].chunks,
                              load_kv,
                              kv_body,
                              { lo->y->options.recompute ? NULL : muc_schedule_load_first_group,
                                ANY_BUFFER },
                              false };

    lo->stage = "K";
    if (has_keys_beside(lo))
        start_head(lo, MUC_VECTOR_K_BIAS, lo->y->heads_made, MUC_PLACE_KF, num(lo, 0));
    else if (lo->y->whole_norms)
        take_heads(lo, MUC_PLACE_KA, 1, lo->y->kv_heads, MUC_PLACE_KF);
    lo->stage = "V";
    start_head(lo, MUC_VECTOR_V_BIAS, lo->y->heads_made, MUC_PLACE_VT, lo->in);
    muc_schedule_stream(lo, &kv);
}

/* ---- Q and K of all heads, normalised together ---- */

static void all_q_body(lowering *lo, numbered chunk, bool last, uint32_t buffer)
{
    right_operand right = muc_schedule_chunk_in(lo, MUC_MATRIX_Q, 2 * buffer, last);

    lo->stage = "Q";
    project_x(lo, MUC_MATRIX_Q, chunk, &right, MUC_PLACE_QA, num(lo, 0),
              (uint64_t)lo->y->heads * lo->y->head_width, MUC_VECTOR_Q_BIAS);
}

static void load_all_k(lowering *lo, numbered chunk, uint32_t buffer)
{
    lo->stage = "K";
    muc_schedule_load_chunk(lo, MUC_MATRIX_K, chunk, 2 * buffer);
}

static void all_k_body(lowering *lo, numbered chunk, bool last, uint32_t buffer)
{
    right_operand right = muc_schedule_chunk_in(lo, MUC_MATRIX_K, 2 * buffer, last);

    lo->stage = "K";
    project_x(lo, MUC_MATRIX_K, chunk, &right, MUC_PLACE_KA, num(lo, 0),
              (uint64_t)lo->y->kv_heads * lo->y->head_width, MUC_VECTOR_K_BIAS);
}

static void load_first_k(lowering *lo, uint32_t buffer)
{
    load_all_k(lo, numbered_const(lo, 0), buffer);
}

/* Q or K of all heads to a place, and there normalised */
static void lower_whole(lowering *lo, const chunk_stream *stream, uint32_t heads,
                        muc_uthinker_place to, muc_vector_kind bias, muc_vector_kind gain)
{
    uint64_t columns = (uint64_t)heads * lo->y->head_width;
    muc_expr at = num(lo, word(lo, to));

    muc_schedule_bias(lo, bias, num(lo, 0), to, num(lo, 0), lo->m, columns, false);
    muc_schedule_stream(lo, stream);
    muc_schedule_rms(lo, at, lo->m, columns, muc_schedule_vector(lo, gain), at, false);
}

/* every kv head begins with W0, and so does the first one */
static void lower_whole_norms(lowering *lo)
{
    const chunk_stream q = { "all_q",    lo->y->matrix[MUC_MATRIX_Q].chunks, load_q,
                             all_q_body, { load_first_k, ANY_BUFFER },       false };
    const chunk_stream k = {
        "all_k", lo->y->matrix[MUC_MATRIX_K].chunks, load_all_k, all_k_body, { load_first_kv, 0 },
        false
    };

    lo->head = times(lo, lo->own, lo->y->kv_heads);
    lo->stage = "Q";
    lower_whole(lo, &q, lo->y->heads, MUC_PLACE_QA, MUC_VECTOR_Q_BIAS, MUC_VECTOR_Q_NORM);
    lo->stage = "K";
    lower_whole(lo, &k, lo->y->kv_heads, MUC_PLACE_KA, MUC_VECTOR_K_BIAS, MUC_VECTOR_K_NORM);
}

/* ---- O, gate and up, down, head ---- */

static void load_o(lowering *lo, numbered chunk, uint32_t buffer)
{
    lo->stage = "O";
    muc_schedule_load_chunk(lo, MUC_MATRIX_O, chunk, 2 * buffer);
}

static muc_vector_kind bias_of(muc_matrix_kind kind)
{
    return kind == MUC_MATRIX_O ? MUC_VECTOR_O_BIAS : MUC_VECTOR_DOWN_BIAS;
}

/* part: 0 for the first of the products that add up */
static void add_to_residual(lowering *lo, muc_matrix_kind kind, const left_operand *left,
                            muc_expr part, numbered chunk, bool last, uint32_t buffer)
{
    right_operand right = muc_schedule_chunk_in(lo, kind, 2 * buffer, last);
    bool apart = muc_uthinker_adds_apart(lo->y);
    bool begun = !apart || muc_schedule_has(lo, bias_of(kind));

    muc_schedule_mm_columns(lo, left, &right, kind, chunk, apart ? MUC_PLACE_OT : MUC_PLACE_RES,
                            num(lo, 0), lo->y->width,
                            begun ? num(lo, 1) : muc_expr_lt(lo->pool, num(lo, 0), part));
}

/* the bias of O or down, before the first of their products, to where these are added */
static void start_residual(lowering *lo, muc_matrix_kind kind)
{
    bool apart = muc_uthinker_adds_apart(lo->y);

    muc_schedule_bias(lo, bias_of(kind), num(lo, 0), apart ? MUC_PLACE_OT : MUC_PLACE_RES,
                      num(lo, 0), lo->m, lo->y->width, !apart);
}

/* what lies in GB.OT, normalised and scaled as the model does it, to the residual */
static void add_apart(lowering *lo, muc_vector_kind gain)
{
    muc_expr from = num(lo, word(lo, MUC_PLACE_OT)), to = num(lo, word(lo, MUC_PLACE_RES));
    bool scaled = lo->y->residual_factor != MUC_UTHINKER_ONE;
    uint64_t d = lo->y->width;

    if (!muc_uthinker_adds_apart(lo->y))
        return;
    if (muc_schedule_has(lo, gain))
        muc_schedule_rms(lo, from, lo->m, d, muc_schedule_vector(lo, gain), scaled ? from : to,
                         !scaled);
    if (scaled || !muc_schedule_has(lo, gain))
        muc_schedule_scale(lo, from, d, lo->m, d, to, d, lo->y->residual_factor, true, 0);
}

static void o_body(lowering *lo, numbered chunk, bool last, uint32_t buffer)
{
    uint32_t k = lo->y->matrix[MUC_MATRIX_O].k;
    left_operand a = muc_schedule_rows_of(lo, MUC_PLACE_A, lo->m, k, lo->terms->o);

    lo->stage = "O";
    add_to_residual(lo, MUC_MATRIX_O, &a, lo->y->o_parts > 1 ? lo->h : num(lo, 0), chunk, last,
                    buffer);
}

/* the row of gains of the feed-forward part: those of attention and the final one come before */
static muc_expr ffn_gain(lowering *lo)
{
    return add_num(lo, lo->own, lo->y->own_layers + 1);
}

/* the next row that is to be used, unless all are there */
static void load_next_gain(lowering *lo, muc_expr row)
{
    if (lo->y->input_norms && lo->y->gain_rows == 1)
        muc_schedule_load_gains(lo, row);
}

/* the layer's, if it has any */
static void load_vectors(lowering *lo)
{
    uint64_t bytes = 4 * (uint64_t)lo->y->row_elements;

    if (bytes)
        muc_schedule_load_place(lo, MUC_PLACE_EX, MUR_PARM,
                                add_num(lo, times(lo, lo->own, bytes), lo->y->vectors),
                                num(lo, bytes));
}

static void load_gate(lowering *lo, numbered chunk, uint32_t buffer)
{
    lo->stage = "UP+GATE";
    muc_schedule_load_chunk(lo, MUC_MATRIX_GATE, chunk, 2 * buffer);
}

static void load_first_gate(lowering *lo, uint32_t buffer)
{
    load_gate(lo, numbered_const(lo, 0), buffer);
}

static void gate_or_up(lowering *lo, muc_matrix_kind kind, numbered chunk, uint32_t buffer,
                       bool last, muc_uthinker_place to)
{
    muc_vector_kind bias = kind == MUC_MATRIX_GATE ? MUC_VECTOR_GATE_BIAS : MUC_VECTOR_UP_BIAS;
    const muc_uthinker_matrix *matrix = &lo->y->matrix[kind];
    right_operand right = muc_schedule_chunk_in(lo, kind, 2 * buffer, last);
    left_operand n = muc_schedule_rows_of(lo, MUC_PLACE_N, lo->m, lo->y->width, lo->terms->f);

    lo->stage = "UP+GATE";
    muc_schedule_bias(lo, bias, scaled(lo, chunk, matrix->chunk, times(lo, lo->f, matrix->n)), to,
                      num(lo, 0), lo->m,
                      last ? matrix->n - chunk.more * matrix->chunk : matrix->chunk, false);
    muc_schedule_mm(lo, &n, &right, to, num(lo, word(lo, to)), right.cols,
                    num(lo, muc_schedule_has(lo, bias)));
}

static void glu(lowering *lo, numbered chunk, uint32_t cols)
{
    uint32_t terms = lo->terms->h;
    uint64_t chunk_bytes = slots(lo->y->matrix[MUC_MATRIX_GATE].chunk, terms);

    lo->stage = "UP+GATE";
    EMIT(lo, GLU, NO_HALF, FIELD(GLU, saddr, num(lo, word(lo, MUC_PLACE_GA))),
         FIELD(GLU, rows, lo->m), FIELD(GLU, uaddr, num(lo, word(lo, MUC_PLACE_UP))),
         FIELD(GLU, dst, num(lo, muc_uthinker_place_buffer(lo->chip, MUC_PLACE_H))),
         FIELD(GLU, terms, num(lo, terms)), FIELD(GLU, gelu, num(lo, lo->y->gelu)),
         FIELD(GLU, daddr, scaled(lo, chunk, chunk_bytes, num(lo, lo->chip->address[MUC_PLACE_H]))),
         FIELD(GLU, k, num(lo, cols)),
         FIELD(GLU, dpitch, num(lo, slots(lo->y->matrix[MUC_MATRIX_DOWN].k, terms))));
}

static void load_up(lowering *lo, numbered chunk, uint32_t buffer)
{
    lo->stage = "UP+GATE";
    muc_schedule_load_chunk(lo, MUC_MATRIX_UP, chunk, 2 * buffer);
}

static void load_down(lowering *lo, numbered chunk, uint32_t buffer)
{
    lo->stage = "DN";
    muc_schedule_load_chunk(lo, MUC_MATRIX_DOWN, chunk, 2 * buffer);
}

static void load_first_down(lowering *lo, uint32_t buffer)
{
    load_down(lo, numbered_const(lo, 0), buffer);
}

/* a chunk of gate, which lies in buffer a, and the load of up's to the other */
static void multiply_gate(lowering *lo, numbered chunk, uint32_t a, bool last)
{
    if (!lo->chip->late)
        load_up(lo, chunk, 1 - a);
    gate_or_up(lo, MUC_MATRIX_GATE, chunk, a, last, MUC_PLACE_GA);
    if (lo->chip->late)
        load_up(lo, chunk, 1 - a);
}

/* a chunk that others follow: gate in buffer a, up in b */
static void gate_up_body(lowering *lo, numbered chunk, uint32_t a)
{
    const numbered after = { chunk.first, chunk.more + 1 };

    multiply_gate(lo, chunk, a, false);
    if (!lo->chip->late)
        load_gate(lo, after, a);
    gate_or_up(lo, MUC_MATRIX_UP, chunk, 1 - a, false, MUC_PLACE_UP);
    if (lo->chip->late)
        load_gate(lo, after, a);
    glu(lo, chunk, lo->y->matrix[MUC_MATRIX_GATE].chunk);
}

static void lower_gate_up(lowering *lo)
{
    const muc_uthinker_matrix *matrix = &lo->y->matrix[MUC_MATRIX_GATE];
    const next_stage next = { load_first_down, ANY_BUFFER };
    uint32_t a = lo->buffer, b = 1 - a, before = matrix->chunks - 1;
    const numbered last = numbered_const(lo, before);
    muc_expr c;
    bool begun = false;

    muc_schedule_begin_stage(lo);
    if (before <= MUC_MOST_WRITTEN_OUT) {
        for (uint32_t i = 0; i < before; i++)
            gate_up_body(lo, numbered_const(lo, i), a);
    } else if (muc_schedule_begin_for(lo, "f", num(lo, before), &c)) {
        gate_up_body(lo, (numbered){ c, 0 }, a);
        muc_ir_end_for(&lo->ir);
    }
    multiply_gate(lo, last, a, true);
    if (!lo->chip->late)
        begun = muc_schedule_begin_last(lo, &next, b);
    gate_or_up(lo, MUC_MATRIX_UP, last, b, true, MUC_PLACE_UP);
    if (lo->chip->late)
        begun = muc_schedule_begin_last(lo, &next, b);
    glu(lo, last, matrix->n - matrix->chunk * before);
    muc_schedule_end_last(lo, &next, b, begun);
}

static void down_body(lowering *lo, numbered chunk, bool last, uint32_t buffer)
{
    left_operand h = muc_schedule_rows_of(lo, MUC_PLACE_H, lo->m, lo->y->matrix[MUC_MATRIX_DOWN].k,
                                          lo->terms->h);

    lo->stage = "DN";
    add_to_residual(lo, MUC_MATRIX_DOWN, &h, lo->f, chunk, last, buffer);
}

/* ---- the whole ---- */

static void lower_embedding(lowering *lo)
{
    const muc_uthinker_layout *y = lo->y;
    uint64_t rope_row = 4 * (uint64_t)y->rotary;

    lo->stage = "EMBED";
    EMIT(lo, EMBED, NO_HALF, FIELD(EMBED, seq, num(lo, y->matrix[MUC_MATRIX_EMBEDDING].offset)),
         FIELD(EMBED, k, num(lo, y->width)), FIELD(EMBED, rows, lo->m),
         FIELD(EMBED, cols, num(lo, y->vocabulary)), FIELD(EMBED, dst, num(lo, y->embedded)));
    muc_schedule_load_place(lo, MUC_PLACE_RES, MUR_IO, num(lo, y->embedded),
                            times(lo, lo->m, 4 * (uint64_t)y->width));
    for (uint32_t i = 0; i < y->angles; i++)
        EMIT(lo, LD, NO_HALF,
             FIELD(LD, addr,
                   num(lo, lo->chip->address[MUC_PLACE_TB] + i * lo->chip->rows * rope_row)),
             FIELD(LD, buf, num(lo, MUR_GB)), FIELD(LD, region, num(lo, MUR_PARM)),
             FIELD(LD, off,
                   add_num(lo, times(lo, lo->pos, rope_row),
                           y->rope + i * y->options.context * rope_row)),
             FIELD(LD, len, times(lo, lo->m, rope_row)));
    if (y->embedding_factor != MUC_UTHINKER_ONE)
        muc_schedule_scale(lo, num(lo, word(lo, MUC_PLACE_RES)), y->width, lo->m, y->width,
                           num(lo, word(lo, MUC_PLACE_RES)), y->width, y->embedding_factor, false,
                           0);
}

/* the residual, normalised if the layers have norms there, to slots */
static void lower_input(lowering *lo, muc_expr gain, muc_uthinker_place to, uint32_t terms)
{
    lo->stage = "NORM";
    if (lo->y->input_norms)
        muc_schedule_norm(lo, num(lo, word(lo, MUC_PLACE_RES)), lo->m, gain, to, terms);
    else
        muc_schedule_quant(lo, MUC_PLACE_RES, lo->m, lo->y->width, lo->y->width, to, terms,
                           READS_SHARED);
}

static void lower_attention_norm(lowering *lo)
{
    const muc_uthinker_layout *y = lo->y;
    uint64_t row = slots(y->width, lo->terms->x);
    muc_expr token;

    lower_input(lo, lo->own, MUC_PLACE_X, lo->terms->x);
    if (!y->options.recompute)
        return;
    token = add(lo, times(lo, lo->run_l, y->padded_context), lo->pos);
    muc_schedule_store_place(lo, MUC_PLACE_X, num(lo, lo->chip->address[MUC_PLACE_X]), MUR_KV,
                             add_num(lo, times(lo, token, row), lo->caches.x),
                             times(lo, lo->m, row));
}

/* a load of a kv head */
static void load_of_head(lowering *lo, next_load *load, muc_expr head, uint32_t buffer)
{
    muc_expr here = lo->head;

    lo->head = head;
    load(lo, buffer);
    lo->head = here;
}

static void load_first_q(lowering *lo, uint32_t buffer)
{
    load_q(lo, numbered_const(lo, 0), buffer);
}

/* what the layer's next kv head begins with */
static void load_next_head(lowering *lo, uint32_t buffer)
{
    muc_expr next = add_num(lo, lo->head, 1);

    load_of_head(lo, lo->y->whole_norms ? load_first_kv : load_first_q, next, buffer);
}

static void load_first_o(lowering *lo, uint32_t buffer)
{
    load_o(lo, numbered_const(lo, 0), buffer);
}

/* One load or the other, as long as `number` is below the last of `count` or at it. */
static void load_one_of(lowering *lo, const char *const names[2], muc_expr number, uint32_t count,
                        next_load *more, next_load *end, uint32_t buffer)
{
    muc_expr last = num(lo, count - 1);

    if (muc_schedule_begin_for(lo, names[0], muc_expr_lt(lo->pool, number, last), NULL)) {
        more(lo, buffer);
        muc_ir_end_for(&lo->ir);
    }
    if (muc_schedule_begin_for(lo, names[1], muc_expr_eq(lo->pool, number, last), NULL)) {
        end(lo, buffer);
        muc_ir_end_for(&lo->ir);
    }
}

/* after a kv head comes the next one, or what follows the heads */
static void load_after_head(lowering *lo, uint32_t buffer)
{
    static const char *const names[] = { "more_heads", "last_head" };

    load_one_of(lo, names, lo->h, lo->y->kv_heads, load_next_head,
                lo->y->o_parts > 1 ? load_first_gate : load_first_o, buffer);
}

/* after a layer the next one, if there is one */
static void load_after_layer(lowering *lo, uint32_t buffer)
{
    muc_expr more = muc_expr_lt(lo->pool, lo->l, num(lo, lo->y->layers - 1)), here = lo->own;

    if (muc_schedule_begin_for(lo, "more_layers", more, NULL)) {
        lo->own = own_layer(lo, add_num(lo, lo->l, 1));
        if (lo->y->whole_norms) /* for the intervals alone */
            lo->own = at_most(lo, lo->own, num(lo, lo->y->own_layers - 1));
        load_of_head(lo, load_first_q, times(lo, lo->own, lo->y->kv_heads), buffer);
        lo->own = here;
        muc_ir_end_for(&lo->ir);
    }
}

/* the first chunk of gate of the next pass */
static void load_next_gate(lowering *lo, uint32_t buffer)
{
    muc_expr pass = lo->pass;

    lo->pass = add_num(lo, pass, 1);
    load_first_gate(lo, buffer);
    lo->pass = pass;
}

static void load_after_pass(lowering *lo, uint32_t buffer)
{
    static const char *const names[] = { "more_passes", "last_pass" };

    load_one_of(lo, names, lo->f, lo->y->ffn_parts, load_next_gate, load_after_layer, buffer);
}

/* all of O, or its rows for the kv head at hand */
static void lower_o(lowering *lo)
{
    bool by_head = lo->y->o_parts > 1, in_passes = lo->y->ffn_parts > 1;
    const chunk_stream o = { "o_pair",
                             lo->y->matrix[MUC_MATRIX_O].chunks,
                             load_o,
                             o_body,
                             { by_head ? load_after_head : load_first_gate,
                               by_head || in_passes ? 0 : ANY_BUFFER },
                             false };
    uint32_t k = lo->y->matrix[MUC_MATRIX_O].k;

    lo->stage = "O";
    muc_schedule_quant(lo, MUC_PLACE_AT, lo->m, k, k, MUC_PLACE_A, lo->terms->o, 0);
    if (by_head && !lo->y->options.recompute) /* while products go to RES */
        muc_schedule_store_values(lo);
    muc_schedule_stream(lo, &o);
}

/* the kv head at hand, whose number is lo->h */
static void begin_head(lowering *lo)
{
    lo->stream = add(lo, times(lo, lo->l, lo->y->kv_heads), lo->h);
    lo->run_stream = add(lo, times(lo, lo->run_l, lo->y->kv_heads), lo->h);
    lo->head = add(lo, times(lo, lo->own, lo->y->kv_heads), lo->h);
}

static void lower_projections(lowering *lo)
{
    lower_q(lo);
    muc_schedule_load_values(lo);
    lower_kv(lo);
}

static void lower_head_of_attention(lowering *lo)
{
    bool by_head = lo->y->o_parts > 1;
    const next_stage next = { by_head ? load_first_o : load_after_head, by_head ? ANY_BUFFER : 0 };

    begin_head(lo);
    lower_projections(lo);
    if (lo->y->options.recompute)
        muc_lower_recomputed_attention(lo, &next);
    else
        muc_lower_attention(lo, &next);
    if (by_head)
        lower_o(lo);
}

/* group 0 of the next of the kv heads that are made at once */
static void load_next_group(lowering *lo, uint32_t buffer)
{
    muc_expr here = lo->h;

    lo->h = add_num(lo, here, 1);
    begin_head(lo);
    muc_schedule_load_first_group(lo, buffer);
    lo->h = here;
    begin_head(lo);
}

/* Q, K and V of all kv heads, then the attention of each */
static void lower_heads_together(lowering *lo)
{
    uint32_t count = lo->y->heads_made;

    for (lo->made_head = 0; lo->made_head < count; lo->made_head++) {
        bool last = lo->made_head + 1 == count;
        const next_stage next = { last ? load_first_o : load_next_group, ANY_BUFFER };

        lo->h = num(lo, lo->made_head);
        begin_head(lo);
        if (lo->made_head == 0)
            lower_projections(lo);
        muc_lower_attention(lo, &next);
        if (!last)
            muc_schedule_begin_stage(lo);
    }
    lo->made_head = 0;
}

/* passes, each over as many columns of gate and up and rows of down; loops begin with W0 */
static void lower_ffn(lowering *lo)
{
    uint32_t parts = lo->y->ffn_parts;
    const chunk_stream down = { "down_pair",
                                lo->y->matrix[MUC_MATRIX_DOWN].chunks,
                                load_down,
                                down_body,
                                { load_after_pass, 0 },
                                false };

    lo->f = num(lo, 0);
    if (!muc_schedule_begin_for(lo, "pass", num(lo, parts), &lo->f))
        return;
    lo->pass = add(lo, times(lo, lo->own, parts), lo->f);
    lower_gate_up(lo);
    muc_schedule_stream(lo, &down);
    muc_schedule_end_round(lo);
}

/* what the layer's queries see */
static void look_around(lowering *lo)
{
    const muc_uthinker_layout *y = lo->y;
    muc_expr begin = num(lo, 0);

    lo->angle = num(lo, 0);
    if (y->angle_sums)
        lo->angle = muc_expr_lookup(lo->pool, MUC_EXPR_SPAN, lo->angles, lo->l);
    if (y->windows) {
        lo->window = muc_expr_lookup(lo->pool, MUC_EXPR_SPAN, lo->windows, lo->l);
        begin = less(lo, add_num(lo, lo->pos, 1), lo->window);
    }
    lo->origin = muc_expr_div(lo->pool, begin, lo->tokens);
    lo->near = less(lo, lo->pos, times(lo, lo->origin, lo->tokens));
    lo->near_steps = less(lo, lo->past, lo->origin);
}

static void lower_layer(lowering *lo)
{
    const muc_uthinker_layout *y = lo->y;

    lo->own = own_layer(lo, lo->l);
    look_around(lo);
    lo->pass = times(lo, lo->own, y->ffn_parts);
    lower_attention_norm(lo);
    load_next_gain(lo, ffn_gain(lo));
    load_vectors(lo);
    lo->stage = "O";
    start_residual(lo, MUC_MATRIX_O);
    if (y->whole_norms)
        lower_whole_norms(lo);
    if (y->heads_made > 1) {
        lower_heads_together(lo);
    } else if (muc_schedule_begin_for(lo, "h", num(lo, y->kv_heads), &lo->h)) {
        lower_head_of_attention(lo);
        muc_schedule_end_round(lo);
    }
    if (y->o_parts == 1)
        lower_o(lo);
    lo->stage = "O";
    add_apart(lo, MUC_VECTOR_O_NORM);
    lower_input(lo, ffn_gain(lo), MUC_PLACE_N, lo->terms->f);
    /* the final gain lies behind those of the layers' attention */
    load_next_gain(lo, own_layer(lo, add_num(lo, lo->l, 1)));
    lo->stage = "DN";
    start_residual(lo, MUC_MATRIX_DOWN);
    lower_ffn(lo);
    lo->stage = "DN";
    add_apart(lo, MUC_VECTOR_DOWN_NORM);
}

/* A loop for layers with the same terms. Those of as many layers share a variable. */
static void lower_run(lowering *lo, uint32_t first, uint32_t end)
{
    uint32_t count = end - first;
    const char *name = "l";

    lo->terms = muc_uthinker_terms_of(lo->y, first);
    lo->caches = muc_uthinker_caches_of(lo->y, first);
    if (count == lo->y->layers) {
        lo->run_l = muc_ir_for(&lo->ir, name, num(lo, count));
    } else {
        lo->ir.status = muc_arena_format(lo->ir.ctx, lo->ir.arena, &name, "l%u", count);
        lo->run_l = muc_ir_loop(&lo->ir, name, count);
    }
    lo->l = add_num(lo, lo->run_l, first);
    lower_layer(lo);
    muc_ir_end_for(&lo->ir);
}

/* the inputs, in the order of their slots, and what is made of them everywhere */
static muc_status declare(lowering *lo, muc_entry_kind kind)
{
    const muc_uthinker_layout *y = lo->y;
    uint32_t context = y->options.context, most;

    lo->chip = kind == MUC_ENTRY_DECODE ? &y->decode : &y->prefill;
    most = lo->chip->rows;
    lo->ir.template->max_m = most;
    lo->pos = muc_expr_new_input(lo->pool, "pos", 0, context - 1, 1);
    lo->m = muc_expr_new_input(lo->pool, "m", 1, most, 1);
    lo->end = muc_expr_new_input(lo->pool, "end", 1, context, 1);
    lo->logits = muc_expr_new_input(lo->pool, "logits", 0, 1, 1);
    if (most == 1)
        lo->m = num(lo, 1);
    for (uint32_t i = 0; i < MUC_MATRIX_COUNT; i++) {
        const muc_uthinker_matrix *matrix = &y->matrix[i];

        if (matrix->table != UINT32_MAX)
            MUC_TRY(muc_expr_new_table(lo->pool, muc_matrix_name((muc_matrix_kind)i),
                                       matrix->table_data, matrix->table_count, &lo->tables[i]));
    }
    if (y->windows)
        MUC_TRY(muc_expr_new_table(lo->pool, "windows", y->windows, y->layers + 1, &lo->windows));
    if (y->angle_sums)
        MUC_TRY(muc_expr_new_table(lo->pool, "angles", y->angle_sums, y->layers + 1, &lo->angles));
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
    lo.l = lo.run_l = lo.h = lo.stream = lo.own = lo.head = lo.pass = num(&lo, 0);
    load_q(&lo, numbered_const(&lo, 0), lo.buffer);
    lower_embedding(&lo);
    muc_schedule_load_gains(&lo, num(&lo, 0));
    for (uint32_t first = 0, end; first < layout->layers && lo.ir.status == MUC_OK; first = end) {
        end = muc_uthinker_run_end(layout, first);
        lower_run(&lo, first, end);
    }
    if (muc_schedule_begin_for(&lo, "with_logits", lo.logits, NULL)) {
        muc_lower_head(&lo);
        muc_ir_end_for(&lo.ir);
    }
    return muc_ir_finish(&lo.ir);
}

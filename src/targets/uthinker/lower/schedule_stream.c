/* schedule_stream.c - the loads and products of a matrix in chunks, by turns in W0 and W1. */
#include "targets/uthinker/lower/schedule_stream.h"

/* of chunks in the body of a loop: what is made of its variable is made once for all of them */
enum { PAIRS_OF_A_ROUND = 4 };

/* the number of the stream at hand among those of its kind */
static muc_expr stream_of(lowering *lo, muc_matrix_kind kind)
{
    switch (kind) {
    case MUC_MATRIX_EMBEDDING: /* one matrix, whatever the layers */
    case MUC_MATRIX_HEAD:
        return num(lo, 0);
    case MUC_MATRIX_Q:
    case MUC_MATRIX_K:
        return lo->y->whole_norms || lo->y->heads_made > 1 ? lo->own : lo->head;
    case MUC_MATRIX_V:
        return lo->y->heads_made > 1 ? lo->own : lo->head;
    case MUC_MATRIX_GATE:
    case MUC_MATRIX_UP:
    case MUC_MATRIX_DOWN:
        return lo->pass;
    case MUC_MATRIX_O:
    case MUC_MATRIX_COUNT:
        break;
    }
    return lo->y->o_parts > 1 ? lo->head : lo->own;
}

static muc_expr chunk_index(lowering *lo, muc_matrix_kind kind, numbered chunk)
{
    return scaled(lo, chunk, 1, times(lo, stream_of(lo, kind), lo->y->matrix[kind].chunks));
}

void muc_schedule_load_chunk(lowering *lo, muc_matrix_kind kind, numbered chunk, uint32_t half)
{
    muc_expr index = chunk_index(lo, kind, chunk);
    uint32_t table = lo->tables[kind];

    muc_schedule_load_half(lo, half, 0, MUR_WGTS,
                           muc_expr_lookup(lo->pool, MUC_EXPR_TABLE, table, index),
                           muc_expr_lookup(lo->pool, MUC_EXPR_SPAN, table, index));
}

right_operand muc_schedule_chunk_in(lowering *lo, muc_matrix_kind kind, uint32_t half, bool last)
{
    const muc_uthinker_matrix *matrix = &lo->y->matrix[kind];
    uint32_t cols = last ? matrix->n - matrix->chunk * (matrix->chunks - 1) : matrix->chunk;
    right_operand right = { half, num(lo, half_address(lo, half)), num(lo, cols),
                            num(lo, last ? matrix->most_last : matrix->most) };

    return right;
}

void muc_schedule_mm_columns(lowering *lo, const left_operand *left, const right_operand *right,
                             muc_matrix_kind kind, numbered chunk, muc_uthinker_place to,
                             muc_expr first, uint64_t pitch, muc_expr acc)
{
    muc_expr row = add_num(lo, times(lo, first, pitch), word(lo, to));

    muc_schedule_mm(lo, left, right, to, scaled(lo, chunk, lo->y->matrix[kind].chunk, row),
                    num(lo, pitch), acc);
}

bool muc_schedule_begin_last(lowering *lo, const next_stage *next, uint32_t buffer)
{
    bool free = next->begins == ANY_BUFFER || next->begins != buffer;

    if (next->load && free && !lo->y->options.unrotated)
        next->load(lo, 1 - buffer);
    return free;
}

void muc_schedule_end_last(lowering *lo, const next_stage *next, uint32_t buffer, bool begun)
{
    lo->buffer = begun ? 1 - buffer : buffer;
    if (lo->y->options.unrotated)
        lo->unrotated = next->load;
    else if (next->load && !begun)
        next->load(lo, buffer);
}

void muc_schedule_begin_stage(lowering *lo)
{
    if (lo->unrotated)
        lo->unrotated(lo, lo->buffer);
    lo->unrotated = NULL;
}

void muc_schedule_end_round(lowering *lo)
{
    muc_schedule_begin_stage(lo);
    muc_ir_end_for(&lo->ir);
}

static bool is_late(const lowering *lo, const chunk_stream *s)
{
    return lo->chip->late && !s->apart;
}

static void run_last(lowering *lo, const chunk_stream *s, uint32_t buffer)
{
    bool late = is_late(lo, s), begun = false;

    if (!late)
        begun = muc_schedule_begin_last(lo, &s->next, buffer);
    s->body(lo, numbered_const(lo, s->chunks - 1), true, buffer);
    if (late)
        begun = muc_schedule_begin_last(lo, &s->next, buffer);
    muc_schedule_end_last(lo, &s->next, buffer, begun);
}

/* a chunk that lies in a buffer, and the load of the one after it to the other */
static void run_chunk(lowering *lo, const chunk_stream *s, numbered chunk, uint32_t buffer)
{
    const numbered after = { chunk.first, chunk.more + 1 };

    if (!is_late(lo, s))
        s->load(lo, after, 1 - buffer);
    s->body(lo, chunk, false, buffer);
    if (is_late(lo, s))
        s->load(lo, after, 1 - buffer);
}

/* chunks from `even` on: that one lies in buffer a */
static void run_pair(lowering *lo, const chunk_stream *s, numbered even, uint32_t a)
{
    const numbered odd = { even.first, even.more + 1 };

    run_chunk(lo, s, even, a);
    run_chunk(lo, s, odd, 1 - a);
}

void muc_schedule_stream(lowering *lo, const chunk_stream *s)
{
    uint32_t a = lo->buffer, b = 1 - a, pairs = (s->chunks - 1) / 2;
    uint32_t written_out = 2 * pairs <= MUC_MOST_WRITTEN_OUT ? pairs : s->apart;
    uint32_t rounds = (pairs - written_out) / PAIRS_OF_A_ROUND;
    muc_expr round;

    muc_schedule_begin_stage(lo);
    written_out = pairs - PAIRS_OF_A_ROUND * rounds;
    for (uint32_t i = 0; i < written_out; i++)
        run_pair(lo, s, numbered_const(lo, 2 * i), a);
    if (muc_schedule_begin_for(lo, s->variable, num(lo, rounds), &round)) {
        for (uint32_t i = 0; i < PAIRS_OF_A_ROUND; i++)
            run_pair(lo, s,
                     (numbered){ times(lo, round, 2 * PAIRS_OF_A_ROUND), 2 * (written_out + i) },
                     a);
        muc_ir_end_for(&lo->ir);
    }
    if (s->chunks % 2) {
        run_last(lo, s, a);
        return;
    }
    run_chunk(lo, s, numbered_const(lo, s->chunks - 2), a);
    run_last(lo, s, b);
}

/* lower_head.c - the schedule of the last norm and the logits. */
#include "targets/uthinker/lower/lower_head.h"

static muc_matrix_kind head_kind(const lowering *lo)
{
    return lo->y->tied ? MUC_MATRIX_EMBEDDING : MUC_MATRIX_HEAD;
}

static void load_head(lowering *lo, numbered chunk, uint32_t buffer)
{
    lo->stage = "LM head";
    muc_schedule_load_chunk(lo, head_kind(lo), chunk, 2 * buffer);
}

/* the CPU looks at a chunk's logits, once they are in IO */
static void look_at_logits(lowering *lo, numbered chunk, bool is_first, uint32_t cols)
{
    uint32_t columns = lo->y->matrix[head_kind(lo)].chunk;

    EMIT(lo, AMAX, NO_HALF,
         FIELD(AMAX, saddr, scaled(lo, chunk, columns, num(lo, lo->y->logits / 4))),
         FIELD(AMAX, k, num(lo, cols)), FIELD(AMAX, first, num(lo, is_first)),
         FIELD(AMAX, dst, num(lo, lo->y->choice / 4)));
}

/* a chunk's logits, scaled and capped as the model does it */
static void finish_logits(lowering *lo, muc_expr cols)
{
    const muc_uthinker_layout *y = lo->y;
    uint32_t columns = y->matrix[head_kind(lo)].chunk;
    muc_expr at = num(lo, word(lo, MUC_PLACE_LG)), one = num(lo, 1);

    if (y->logit_factor != MUC_UTHINKER_ONE)
        muc_schedule_scale(lo, at, columns, one, columns, at, columns, y->logit_factor, false,
                           WRITES_SHARED);
    if (y->logit_cap)
        muc_schedule_cap(lo, at, one, cols, columns, y->logit_uncap, y->logit_cap, WRITES_SHARED);
}

/* Of a chunk that has one before it, the CPU looks at that one's logits while the product and the
 * next load are under way. */
static void head_body(lowering *lo, numbered chunk, bool last, uint32_t buffer)
{
    uint32_t columns = lo->y->matrix[head_kind(lo)].chunk;
    right_operand right = muc_schedule_chunk_in(lo, head_kind(lo), 2 * buffer, last);
    left_operand n =
        muc_schedule_rows_of(lo, MUC_PLACE_N, num(lo, 1), lo->y->width, lo->y->options.terms.l);

    lo->stage = "LM head";
    muc_schedule_mm(lo, &n, &right, MUC_PLACE_LG, num(lo, word(lo, MUC_PLACE_LG)), num(lo, columns),
                    num(lo, 0));
    finish_logits(lo, right.cols);
    if (chunk.more > 0)
        look_at_logits(lo, (numbered){ chunk.first, chunk.more - 1 }, chunk.more == 1, columns);
    muc_schedule_store_place(lo, MUC_PLACE_LG, num(lo, lo->chip->address[MUC_PLACE_LG]), MUR_IO,
                             scaled(lo, chunk, 4 * (uint64_t)columns, num(lo, lo->y->logits)),
                             times(lo, right.cols, 4));
}

void muc_lower_head(lowering *lo)
{
    const muc_uthinker_matrix *matrix = &lo->y->matrix[head_kind(lo)];
    const chunk_stream head = { "head_pair", matrix->chunks,       load_head,
                                head_body,   { NULL, ANY_BUFFER }, true };
    uint32_t before = matrix->chunks - 1;
    muc_expr last = times(lo, less(lo, lo->m, num(lo, 1)), lo->y->width);

    load_head(lo, numbered_const(lo, 0), lo->buffer);
    lo->stage = "NORM";
    muc_schedule_norm(lo, add_num(lo, last, word(lo, MUC_PLACE_RES)), num(lo, 1),
                      num(lo, lo->y->own_layers), MUC_PLACE_N, lo->y->options.terms.l);
    muc_schedule_stream(lo, &head);
    look_at_logits(lo, numbered_const(lo, before), before == 0, matrix->n - matrix->chunk * before);
}

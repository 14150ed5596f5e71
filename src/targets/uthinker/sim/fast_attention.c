/* fast_attention.c - steps of an attention, which the machine takes one after the other, at once:
 * all scores first, then all probabilities, then the values, each thread some columns of them. Of
 * many rows each thread has some, which it takes through all steps in turn.
 *
 * A step is a product of queries and keys, an SMAX and a product of probabilities and values. All
 * steps write scores and probabilities to the same places; where few rows take steps at once, each
 * step has places of its own, and the machine's get those of the last one. What a step does with a
 * sum is done in the steps' order.
 */
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "targets/uthinker/sim/fast_product_parts.h"
#include "targets/uthinker/sim/uthinker_sim_execute.h"

#if defined(__x86_64__) && defined(__GNUC__)

enum {
    MOST_STEPS = 64,
    MOST_ROWS = 16, /* whose steps are done at once */
    MOST_SCORES = MOST_ROWS * MUR_SIM_MOST_TOKENS,
    ROW_BLOCKS = (MUR_SIM_MOST_TOKENS + MUR_BLOCK_ELEMS - 1) / MUR_BLOCK_ELEMS,
    MOST_GROUPS = 128 /* of columns of values */
};

struct fast_attention {
    const mur_sim *sim;
    mur_sim_softmax smax;              /* the first step's */
    uint32_t scored, softened, valued; /* steps with this product, SMAX, product */
    mur_sim_product scores[MOST_STEPS], values[MOST_STEPS];
    uint32_t first[MOST_STEPS]; /* SMAX's */
    float max[MOST_STEPS][MOST_ROWS], sum[MOST_STEPS][MOST_ROWS];
    float factor[MOST_STEPS][MOST_ROWS]; /* of what the values before gave */
    uint32_t starts[MOST_STEPS][MOST_GROUPS];
    float s[MOST_STEPS][MOST_SCORES];
    uint8_t p[MOST_STEPS][MOST_ROWS][ROW_BLOCKS * MUR_BLOCK_MAX_BYTES];
};

fast_attention *muc_fast_attention_new(void)
{
    return calloc(1, sizeof(fast_attention));
}

bool muc_fast_attends(const muc_fast_product *product)
{
    return product->attention && product->attention->scored > 0;
}

static uint32_t slots_of(const mur_sim_softmax *smax)
{
    return mur_sim_slots_bytes(smax->tokens, smax->terms);
}

/* ---- what is kept ---- */

static bool apart(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    return (const uint8_t *)a + a_bytes <= (const uint8_t *)b ||
           (const uint8_t *)b + b_bytes <= (const uint8_t *)a;
}

/* Are op's results all that smax reads, and does smax not write what op reads? */
static bool makes_scores(const mur_sim_product *op, const mur_sim_softmax *smax)
{
    size_t left = (size_t)(op->rows - 1) * op->left_pitch + mur_sim_slots_bytes(op->k, op->terms);
    size_t slots = (size_t)(smax->rows - 1) * smax->pitch + slots_of(smax);

    return op->fresh && op->out == smax->scores && op->out_pitch == smax->tokens &&
           op->cols == smax->tokens && op->rows == smax->rows && op->tile_columns == COLUMNS &&
           smax->k <= MOST_GROUPS * COLUMNS && apart(op->left, left, smax->slots, slots);
}

static bool same_smax(const mur_sim_softmax *a, const mur_sim_softmax *b)
{
    return a->scores == b->scores && a->state == b->state && a->out == b->out &&
           a->slots == b->slots && a->rows == b->rows && a->k == b->k && a->terms == b->terms &&
           a->pitch == b->pitch && memcmp(&a->scale, &b->scale, sizeof(a->scale)) == 0;
}

/* Can its rows' queries and probabilities be read at once? */
static bool has_room(const mur_sim_product *op)
{
    return op->rows <= LEFT_ROWS && op->rows * (blocks_of(op->k) + ROW_BLOCKS) <= LEFT_BLOCKS;
}

int muc_fast_keep_smax(void *arg, const mur_sim *sim, const mur_sim_softmax *smax)
{
    muc_fast_product *product = arg;
    fast_attention *of = product->attention;

    if (of->scored == 0) {
        if (product->count != 1 || muc_fast_puts_off(product) ||
            !makes_scores(product->kept, smax) || !has_room(product->kept))
            return 0;
        of->scores[of->scored++] = product->kept[0];
        product->count = 0;
        of->sim = sim;
        of->smax = *smax;
    } else if (of->softened == of->scored || !same_smax(smax, &of->smax)) {
        return 0;
    }
    of->first[of->softened++] = smax->first;
    return 1;
}

static bool adds_values(const mur_sim_product *op, const mur_sim_softmax *smax)
{
    return !op->fresh && op->left == smax->slots && op->left_pitch == smax->pitch &&
           op->rows == smax->rows && op->k == smax->tokens && op->terms == smax->terms &&
           op->out == smax->out && op->out_pitch == smax->k && op->cols == smax->k &&
           op->tile_columns == COLUMNS;
}

bool muc_fast_attend(muc_fast_product *product, const mur_sim_product *op)
{
    fast_attention *of = product->attention;

    if (of->valued < of->softened) {
        if (!adds_values(op, &of->smax))
            return false;
        of->values[of->valued++] = *op;
        return true;
    }
    if (of->scored > of->valued || of->scored == MOST_STEPS || !muc_fast_alike(of->scores, op) ||
        !makes_scores(op, &of->smax))
        return false;
    of->scores[of->scored++] = *op;
    return true;
}

/* ---- how it is done ---- */

/* Of op, groups first..past-1 of columns, which begin at `starts`. */
static void list_groups(const mur_sim_product *op, const uint32_t *starts, uint32_t first,
                        uint32_t past, unit *out)
{
    for (uint32_t g = first; g < past; g++)
        *out++ = (unit){ .op = op,
                         .p = op->right + starts[g],
                         .column = g * COLUMNS,
                         .past = (g + 1) * COLUMNS < op->cols ? (g + 1) * COLUMNS : op->cols };
}

typedef struct shared_steps {
    muc_fast_product *product;
    size_t threads;
} shared_steps;

/* On as many threads as it is worth. */
static void share(muc_fast_product *product, muc_parallel_body *body)
{
    const fast_attention *of = product->attention;
    const mur_sim_softmax *smax = &of->smax;
    shared_steps shared = { product, 1 };

    if (of->scored * smax->rows * (smax->tokens + smax->k) >= product->least_lines)
        shared.threads = muc_fast_threads(product);
    if (shared.threads > 1)
        muc_parallel_brief(product->ctx, shared.threads, body, &shared);
    else
        body(&shared, 0);
}

/* ---- few rows ---- */

/* False: a block is malformed. The last step's scores are put where the machine has them. */
static bool do_scores(muc_fast_product *product, fast_attention *of)
{
    mur_sim_product unused;
    size_t bytes = (size_t)of->smax.rows * of->smax.tokens * sizeof(float);

    for (uint32_t i = 0; i < of->scored; i++) {
        product->kept[i] = of->scores[i];
        product->kept[i].out = of->s[i];
    }
    product->count = of->scored;
    if (!muc_fast_do_products(product, &unused))
        return false;
    memcpy(of->scores[0].out, of->s[of->scored - 1], bytes);
    return true;
}

static void find_factors(fast_attention *of)
{
    const mur_sim_softmax *smax = &of->smax;

    for (uint32_t i = 0; i < of->softened; i++)
        for (uint32_t row = 0; row < smax->rows; row++) {
            float before = i > 0 ? of->max[i - 1][row] : smax->state[2 * row];

            of->max[i][row] =
                mur_sim_smax_scale(of->s[i] + (size_t)row * smax->tokens, 0, smax->tokens,
                                   smax->scale, (int)of->first[i], before);
            of->factor[i][row] = of->first[i] ? 0.0f : mur_sim_exp(before - of->max[i][row]);
        }
}

/* Rows of all steps: probabilities, and what the product makes of them; a step's first row also
 * finds its values. */
static void weigh_rows(void *arg, uint32_t first, uint32_t past)
{
    muc_fast_product *product = arg;
    fast_attention *of = product->attention;
    const mur_sim_softmax *smax = &of->smax;
    size_t blocks = (size_t)blocks_of(smax->tokens) * smax->rows; /* of a step */

    for (uint32_t at = first; at < past; at++) {
        uint32_t i = at / smax->rows, row = at % smax->rows, bytes;
        float *s = of->s[i] + (size_t)row * smax->tokens;
        mur_sim_product op = of->values[i];

        of->sum[i][row] = mur_sim_smax_weigh(of->sim, s, 0, smax->tokens, of->max[i][row]);
        mur_sim_write_slots(of->sim, s, smax->tokens, smax->terms, of->p[i][row]);
        if (i == of->valued)
            continue;
        op.left = of->p[i][0];
        op.left_pitch = sizeof(of->p[i][0]);
        if (!muc_fast_read_left(product, &op, row, row + 1, product->left + i * blocks) ||
            (row == 0 && !muc_fast_find_starts(&op, of->starts[i], &bytes)))
            atomic_store(&product->malformed, true);
    }
}

/* The state behind the last step, and its probabilities where the machine has them. */
static void end_softmax(fast_attention *of)
{
    const mur_sim_softmax *smax = &of->smax;
    uint32_t last = of->softened - 1;

    for (uint32_t row = 0; row < smax->rows; row++) {
        float *state = smax->state + 2 * row;

        for (uint32_t i = 0; i <= last; i++)
            state[1] =
                of->first[i] ? of->sum[i][row] : state[1] * of->factor[i][row] + of->sum[i][row];
        state[0] = of->max[last][row];
        memcpy(smax->slots + (size_t)row * smax->pitch, of->p[last][row], slots_of(smax));
    }
}

/* Groups of columns of all steps' values. */
static muc_status add_values(void *arg, size_t thread)
{
    const shared_steps *shared = arg;
    muc_fast_product *product = shared->product;
    fast_attention *of = product->attention;
    const mur_sim_softmax *smax = &of->smax;
    product_room *room = &product->rooms[thread];
    uint32_t groups = (smax->k + COLUMNS - 1) / COLUMNS, past;
    uint32_t first = (uint32_t)(groups * thread / shared->threads);
    unit units[MOST_GROUPS];

    past = (uint32_t)(groups * (thread + 1) / shared->threads);
    room->row = 0;
    room->rows = smax->rows;
    room->own = units;
    room->own_count = past - first;
    for (uint32_t i = 0; i < of->softened; i++) {
        uint32_t from = first * COLUMNS;
        uint32_t to = past * COLUMNS < smax->k ? past * COLUMNS : smax->k;

        for (uint32_t row = 0; row < smax->rows; row++)
            mur_sim_smax_rescale(smax->out + (size_t)row * smax->k + from, to - from,
                                 (int)of->first[i], of->factor[i][row]);
        if (i == of->valued)
            break;
        list_groups(&of->values[i], of->starts[i], first, past, units);
        room->next = 0;
        room->left = product->left + (size_t)i * blocks_of(smax->tokens) * smax->rows;
        if (!muc_fast_multiply(product, &of->values[i], room))
            atomic_store(&product->malformed, true);
    }
    return MUC_OK;
}

/* After the scores of all steps. */
static bool do_steps(muc_fast_product *product, fast_attention *of)
{
    const mur_sim_softmax *smax = &of->smax;

    product->left_bytes = 0;
    product->left_rows = smax->rows;
    atomic_store(&product->malformed, false);
    find_factors(of);
    muc_fast_share_lines(product, of->softened * smax->rows, smax->tokens + smax->k, weigh_rows,
                         product);
    if (atomic_load(&product->malformed))
        return false;
    end_softmax(of);
    share(product, add_values);
    return !atomic_load(&product->malformed);
}

/* ---- many rows ---- */

/* What op makes of the room's rows, read to `left`; false: a block is malformed. */
static bool multiply_rows(muc_fast_product *product, const mur_sim_product *op, left_block *left,
                          product_room *room)
{
    uint32_t groups = (op->cols + COLUMNS - 1) / COLUMNS, starts[MOST_GROUPS], bytes;
    unit units[MOST_GROUPS];

    if (!muc_fast_find_starts(op, starts, &bytes))
        return false;
    list_groups(op, starts, 0, groups, units);
    room->left = left + room->row;
    room->own = units;
    room->own_count = groups;
    room->next = 0;
    return muc_fast_multiply(product, op, room);
}

static bool read_rows(const muc_fast_product *product, const mur_sim_product *op, left_block *left,
                      const product_room *room)
{
    return muc_fast_read_left(product, op, room->row, room->row + room->rows, left);
}

static void soften_rows(const fast_attention *of, uint32_t i, const product_room *room)
{
    const mur_sim_softmax *smax = &of->smax;

    for (uint32_t row = room->row; row < room->row + room->rows; row++) {
        float s[MUR_SIM_MOST_TOKENS];

        memcpy(s, smax->scores + (size_t)row * smax->tokens, smax->tokens * sizeof(*s));
        mur_sim_smax_row(of->sim, s, 0, smax->tokens, smax->scale, (int)of->first[i],
                         smax->state + 2 * row, smax->out + (size_t)row * smax->k, smax->k);
        mur_sim_write_slots(of->sim, s, smax->tokens, smax->terms,
                            smax->slots + (size_t)row * smax->pitch);
    }
}

/* A thread's rows, in all steps. */
static muc_status take_steps(void *arg, size_t thread)
{
    const shared_steps *shared = arg;
    muc_fast_product *product = shared->product;
    const fast_attention *of = product->attention;
    product_room *room = &product->rooms[thread];
    left_block *p = product->left + (size_t)blocks_of(of->scores->k) * of->smax.rows;
    bool good;

    room->row = (uint32_t)(of->smax.rows * thread / shared->threads);
    room->rows = (uint32_t)(of->smax.rows * (thread + 1) / shared->threads) - room->row;
    good = read_rows(product, of->scores, product->left, room);
    for (uint32_t i = 0; i < of->scored && good; i++) {
        good = multiply_rows(product, &of->scores[i], product->left, room);
        if (good && i < of->softened)
            soften_rows(of, i, room);
        if (good && i < of->valued)
            good = read_rows(product, &of->values[i], p, room) &&
                   multiply_rows(product, &of->values[i], p, room);
    }
    if (!good)
        atomic_store(&product->malformed, true);
    return MUC_OK;
}

static bool do_rows(muc_fast_product *product, const fast_attention *of)
{
    product->left_bytes = 0;
    product->left_rows = of->smax.rows;
    atomic_store(&product->malformed, false);
    share(product, take_steps);
    return !atomic_load(&product->malformed);
}

/* ---- what is malformed ---- */

static bool reads(const mur_sim_product *op)
{
    const uint8_t *p = op->right;

    for (uint32_t first = 0; first < op->cols; first += op->tile_columns)
        for (uint32_t at = 0; at < op->k; at += op->tile_rows)
            for (uint32_t column = first; column < op->cols && column < first + op->tile_columns;
                 column++) {
                uint32_t end = op->k - at < op->tile_rows ? op->k : at + op->tile_rows;
                mur_block block = { .header = MUR_BLOCK_NO_HEADER };

                for (uint32_t i = at; i < end; i += MUR_BLOCK_ELEMS) {
                    uint32_t n = op->k - i < MUR_BLOCK_ELEMS ? op->k - i : MUR_BLOCK_ELEMS;
                    size_t used =
                        mur_block_parse(p, (size_t)(op->right_end - p), n, block.header, &block);

                    if (used == 0)
                        return false;
                    p += used;
                }
            }
    return true;
}

/* The first product that is malformed; what it and others put out is of no use any more. */
static const mur_sim_product *find_malformed(muc_fast_product *product, const fast_attention *of)
{
    product->left_rows = of->smax.rows;
    if (muc_fast_read_left(product, of->scores, 0, of->smax.rows, product->left))
        for (uint32_t i = 0; i < of->scored; i++) {
            if (!reads(&of->scores[i]))
                return &of->scores[i];
            if (i < of->valued && !reads(&of->values[i]))
                return &of->values[i];
        }
    return of->scores;
}

bool muc_fast_do_attention(muc_fast_product *product, mur_sim_product *malformed)
{
    fast_attention *of = product->attention;
    bool good = of->smax.rows > MOST_ROWS
                    ? do_rows(product, of)
                    : do_scores(product, of) && (of->softened == 0 || do_steps(product, of));

    if (!good)
        *malformed = *find_malformed(product, of);
    of->scored = of->softened = of->valued = 0;
    return good;
}

#endif

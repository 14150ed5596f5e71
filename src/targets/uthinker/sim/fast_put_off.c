/* fast_put_off.c - instructions between products of one left operand, put off so that all these
 * products are done at once.
 *
 * Results of a product behind such an instruction go to a place of their own, and from there to the
 * machine's when its turn comes: everything else is done in the program's order.
 */
#include <stdlib.h>
#include <string.h>

#include "targets/uthinker/sim/fast_product_parts.h"
#include "targets/uthinker/sim/uthinker_sim_execute.h"

#if defined(__x86_64__) && defined(__GNUC__)

enum {
    MOST_PUT_OFF = 2 * MOST_KEPT,
    MOST_RESULTS = 1 << 16 /* numbers that wait */
};

typedef struct put_off_instruction {
    uint32_t words[MUR_MAX_WORDS];
    enum mur_engine engine;
    size_t products; /* kept before it */
} put_off_instruction;

/* Where a product's results wait, and where the machine has them, `pitch` words apart. */
typedef struct waiting_result {
    const float *from;
    float *to;
    uint32_t rows, cols, pitch;
} waiting_result;

struct fast_put_off {
    mur_sim *sim;
    put_off_instruction instructions[MOST_PUT_OFF];
    size_t count;
    waiting_result results[MOST_KEPT]; /* by product; rows 0: they are where the machine has them */
    float room[MOST_RESULTS];
    size_t used; /* of room */
};

fast_put_off *muc_fast_put_off_new(void)
{
    return calloc(1, sizeof(fast_put_off));
}

int muc_fast_put_off(void *arg, mur_sim *sim, enum mur_engine engine, const uint32_t *words)
{
    muc_fast_product *product = arg;
    fast_put_off *of = product->put_off;
    put_off_instruction *next = &of->instructions[of->count];

    if (product->count == 0 || of->count == MOST_PUT_OFF ||
        !mur_sim_can_follow(words, product->kept->words))
        return 0;
    if (of->count++ == 0)
        memset(of->results, 0, product->count * sizeof(*of->results));
    of->sim = sim;
    memcpy(next->words, words, 4u * mur_sim_instructions[words[0] & 255u].words);
    next->engine = engine;
    next->products = product->count;
    return 1;
}

bool muc_fast_puts_off(const muc_fast_product *product)
{
    return product->put_off && product->put_off->count > 0;
}

bool muc_fast_keep_results(muc_fast_product *product, mur_sim_product *op)
{
    fast_put_off *of = product->put_off;
    size_t size = (size_t)op->rows * op->cols;
    float *room = of->room + of->used;

    if (!op->fresh || size > MOST_RESULTS - of->used)
        return false;
    of->results[product->count] =
        (waiting_result){ room, op->out, op->rows, op->cols, op->out_pitch };
    of->used += size;
    op->out = room;
    op->out_pitch = op->cols;
    return true;
}

static void put_results(const waiting_result *of)
{
    for (uint32_t row = 0; row < of->rows; row++)
        memcpy(of->to + (size_t)row * of->pitch, of->from + (size_t)row * of->cols,
               of->cols * sizeof(*of->from));
}

bool muc_fast_do_put_off(muc_fast_product *product, size_t products)
{
    fast_put_off *of = product->put_off;
    bool good = true;
    size_t done = 0;

    for (size_t i = 0; i < of->count && of->instructions[i].products <= products && good; i++) {
        const put_off_instruction *next = &of->instructions[i];

        while (done < next->products)
            put_results(&of->results[done++]);
        good = mur_sim_run_now(of->sim, next->engine, next->words) != 0;
    }
    while (done < products && good)
        put_results(&of->results[done++]);
    of->count = of->used = 0;
    return good;
}

#endif

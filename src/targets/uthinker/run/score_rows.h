/* score_rows.h - logits after each token of a call, of a program that computes the last one's. */
#ifndef MUC_UTHINKER_SCORE_ROWS_H
#define MUC_UTHINKER_SCORE_ROWS_H

#include "base/base.h"
#include "mur_stages.h"
#include "targets/uthinker/sim/fast_product.h"

/* Stands between the interpreter and the simulator. When the program normalizes its last token's
 * row and multiplies it with the matrix of the head, the other tokens' rows, which lie beside it in
 * GB, go the same way with the same weights, outside the machine's memory. */
typedef struct muc_score {
    mur_hal hal;     /* for the interpreter, while it scores */
    mur_hal machine; /* of sim, which runs each instruction when it is submitted */
    mur_sim *sim;
    float *logits;  /* [count][vocabulary]; the caller's */
    uint32_t count; /* tokens of all calls */
    bool unlike;    /* the program's head was not understood: logits are undefined */
    mur_stages stages;
    uint32_t base;           /* tokens of the calls before this one */
    uint32_t rows;           /* other tokens of the call that go the way of the last */
    uint32_t address, pitch; /* of the tokens' rows in GB */
    uint32_t daddr, dst;     /* where the machine has the last one's slots */
    bool in_head;
    mur_sim *aside; /* runs NORM for the other rows, and multiplies them */
    muc_fast_product *product;
    uint8_t *slots; /* which it writes */
    uint32_t slots_pitch;
    float *products; /* their GB: [rows][words of GB] */
} muc_score;

/* Of a program on sim, with the HAL `machine`. Close it in any case. */
muc_status muc_score_open(muc_context *ctx, muc_score *score, const mur_meta *meta, mur_sim *sim,
                          const mur_hal *machine);

/* Before the calls that take `count` tokens, whose logits go to `logits`. */
void muc_score_begin(muc_score *score, uint32_t count, float *logits);

void muc_score_close(muc_score *score);

#endif

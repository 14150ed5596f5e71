/* train_log.h - what a run of training tells of itself: train.csv, and the curve of its report. */
#ifndef MUC_DRIVER_TRAIN_LOG_H
#define MUC_DRIVER_TRAIN_LOG_H

#include "base/bytes.h"
#include "base/text.h"
#include "report/report_builder.h"

/* One step. */
typedef struct muc_train_row {
    uint64_t step; /* from 1 */
    uint64_t tokens;
    double loss, rate, norm;
    double seconds;  /* since this process began the run or went on with it */
    double held_out; /* mean loss; negative: not measured after this step */
} muc_train_row;

/* All-zero is empty. */
typedef struct muc_train_log {
    muc_train_row *rows;
    size_t count, capacity;
} muc_train_log;

muc_status muc_train_log_add(muc_context *ctx, muc_train_log *log, const muc_train_row *row);
void muc_train_log_free(muc_train_log *log);

/* step,tokens,loss,rate,norm,seconds,held_out_loss */
void muc_train_log_as_csv(const muc_train_log *log, muc_text *out);
/* The rows of such a text up to a step. Fails with MUC_MALFORMED naming the line. */
muc_status muc_train_log_of_csv(muc_context *ctx, muc_bytes text, uint64_t last,
                                muc_train_log *out);

/* Mean loss of the last `count` steps; 0 of none. */
double muc_train_log_mean(const muc_train_log *log, size_t count);
/* Adds a plot of all losses, and the tables "curve" (step, loss: mean since the row before; 20 rows
 * at most) and "held_out" (step, loss). */
muc_status muc_train_log_report(muc_context *ctx, const muc_train_log *log, muc_report *report);

#endif

/* answer_chip.h - what a report on the CNN chip answers first, and what would help. */
#ifndef MUC_CNNCHIP_ANSWER_CHIP_H
#define MUC_CNNCHIP_ANSWER_CHIP_H

#include "report/report_builder.h"
#include "targets/cnnchip/run/chip_folder.h"

/* Counts of a layer, by its number. */
typedef struct muc_chip_tally {
    const json_t *layers;
    muc_cnnchip_counts *counts; /* [layer count + 1] */
    uint32_t *parts;            /* the most that an instruction names */
    uint64_t blocks;            /* operations of CONV and DENSE */
    uint64_t wide_cycles;       /* that all would take with a bus of twice the width */
} muc_chip_tally;

/* What a layer waits for: "bus" or "PEs". */
const char *muc_chip_bound_by(const muc_cnnchip_counts *counts);

/* Adds the tables "memory", "answers" and "what_to_change", and draws the layers below the chip's
 * roofs; the report has the table "layers", and the chip has run. */
muc_status muc_chip_answer(muc_context *ctx, muc_chip *chip, const muc_chip_tally *tally,
                           muc_report *report);

#endif

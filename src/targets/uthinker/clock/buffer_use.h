/* buffer_use.h - what lies in the buffers while a call runs, visit by visit to a stage.
 *
 * Bytes are followed in lines: what a line holds lives from the visit that writes it to the last
 * that reads it. The picture of lines has the first layer, and what is before and after all layers.
 */
#ifndef MUC_UTHINKER_BUFFER_USE_H
#define MUC_UTHINKER_BUFFER_USE_H

#include "report/report_builder.h"
#include "targets/uthinker/clock/clock_account.h"

typedef struct muc_buffer_use muc_buffer_use;

/* In arena. account, which is kept by the same watch, tells stages and layers. */
muc_status muc_buffer_use_begin(muc_context *ctx, muc_arena *arena,
                                const muc_uthinker_machine *machine,
                                const muc_clock_account *account, muc_buffer_use **out);
/* The next instruction of DMA or accelerator, after the account was told of it. */
void muc_buffer_use_add(muc_buffer_use *use, const muc_clock_event *event);
/* Adds the table "buffers", and two pictures of them over time: shares in all layers, and lines. */
muc_status muc_buffer_use_report(muc_buffer_use *use, muc_report *report);

#endif

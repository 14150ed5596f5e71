/* lower_attention.h - the schedule of one kv head, from its K and V to its columns of AT. Private
 * to the schedule. */
#ifndef MUC_UTHINKER_LOWER_ATTENTION_H
#define MUC_UTHINKER_LOWER_ATTENTION_H

#include "targets/uthinker/lower/schedule_stream.h"

/* the unfinished step's values before pos, to GB.VT */
void muc_schedule_load_values(lowering *lo);
/* Those behind this call's last token, from GB.VT. */
void muc_schedule_store_values(lowering *lo);
/* Keys and values of group 0, to the halves of a W buffer; what the stage of V has as its next. */
void muc_schedule_load_first_group(lowering *lo, uint32_t buffer);
/* Attention over the K and V caches, the first group lying in lo->buffer. */
void muc_lower_attention(lowering *lo, const next_stage *next);
/* The same with keys computed anew (--attention recompute). */
void muc_lower_recomputed_attention(lowering *lo, const next_stage *next);

#endif

/* lower_head.h - the schedule of the head. Private to the schedule. */
#ifndef MUC_UTHINKER_LOWER_HEAD_H
#define MUC_UTHINKER_LOWER_HEAD_H

#include "targets/uthinker/lower/schedule_stream.h"

/* The last token's logits, to region IO, and the CPU's look at them. */
void muc_lower_head(lowering *lo);

#endif

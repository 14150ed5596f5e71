/* split_rows.h - matrices along their reduction axis: products that add up pass by pass.
 *
 * A product with acc takes the blocks of its columns downward from where the one before it ended
 * (SPEC.md section 4), so products of parts of the rows, in their order, are the whole's to the
 * bit. Parts need less room in a W buffer, and a part of the left operand at a time.
 */
#ifndef MUC_UTHINKER_SPLIT_ROWS_H
#define MUC_UTHINKER_SPLIT_ROWS_H

#include "base/large.h"
#include "targets/uthinker/lower/match_llama.h"
#include "targets/uthinker/machines/uthinker_machine.h"

/* How a schedule takes the model's rows, and what else the clock chooses. All-zero is not a split.
 */
typedef struct muc_uthinker_split {
    uint32_t ffn_parts; /* passes of the feed-forward part, each over as many columns; 1 */
    bool o_by_head;     /* a kv head's attention goes into O at once */
    bool together;      /* Q, K and V of all kv heads are made before the first one's attention */
    bool gains_once;    /* all rows of gains are loaded together, at a call's begin */
    bool late;          /* PREFILL issues a product before the load beside it, not after */
    bool streamed;      /* a sequencer repeats the outermost loops */
} muc_uthinker_split;

/* Whether every part has the same number of whole tiles, and there is more than one where asked. */
bool muc_uthinker_can_split(const muc_uthinker_model *model, const muc_uthinker_machine *machine,
                            muc_uthinker_split split);

/* The model with down, and o, in parts: one weight a part, layer by layer. Copies the indices of
 * these into arena, in the machine's tiles, and borrows the rest from model. */
muc_status muc_uthinker_split_rows(muc_context *ctx, muc_arena *arena,
                                   const muc_uthinker_model *model,
                                   const muc_uthinker_machine *machine, muc_uthinker_split split,
                                   muc_uthinker_model *out);

/* Puts the blocks that a weight's index counts, in its order, into a file. */
void muc_uthinker_put_blocks(const muc_uthinker_weight *weight, uint32_t tiles,
                             const muc_large_file *file, size_t at);

#endif

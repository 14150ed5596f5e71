/* layer_rates.h - which layers take more instructions than their kind should on a core, and why. */
#ifndef MUC_MCU_LAYER_RATES_H
#define MUC_MCU_LAYER_RATES_H

#include "targets/mcu/emit/code_folder.h"

/* Says of a step of a folder (json: its description) that took `instructions` how many times as
 * many a product they are as its kind takes (layer_rates.def), and what about it is to change.
 * *out: in the arena; NULL of a step that takes less than twice as many, or of which nothing is
 * known: not int8, no products, of tiles, or on a core without rates. */
muc_status muc_code_judge_layer(muc_context *ctx, muc_arena *arena, const json_t *json,
                                const json_t *step, uint64_t instructions, const char **out);

/* Whether anything is known of layers on the folder's core. */
bool muc_code_has_rates(const json_t *json);

#endif

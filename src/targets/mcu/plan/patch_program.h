/* patch_program.h - the first stages of a network patch by patch, as a change of a planned program.
 */
#ifndef MUC_MCU_PATCH_H
#define MUC_MCU_PATCH_H

#include "targets/mcu/program/mcu_program.h"

typedef enum muc_mcu_patches {
    MUC_MCU_PATCHES_AUTO,  /* as many as are worth their work; if the arena then does not fit the
                            * machine, as LEAST */
    MUC_MCU_PATCHES_LEAST, /* the least arena */
    MUC_MCU_PATCHES_OFF,
} muc_mcu_patches;

enum {
    /* most multiply-accumulates that patches may add to a run, of the whole network's */
    MUC_MCU_PATCH_OVERHEAD_PERCENT = 20,
    /* what patches are worth: a percent more work must save five percent of the arena */
    MUC_MCU_PATCH_TRADE = 5,
};

/* If the fullest step of a planned program belongs to a chain of int8 layers that can run by
 * patches with a lower peak (plan/plan_patches.h), those steps become a loop and memory is planned
 * anew. Only a plan with a lower peak that is worth its work is kept. */
muc_status muc_mcu_patch(muc_context *ctx, muc_mcu_program *program, muc_mcu_patches patches);

#endif

/* project_files.h - what a firmware for a board has besides its network. */
#ifndef MUC_MCU_PROJECT_FILES_H
#define MUC_MCU_PROJECT_FILES_H

#include "base/base.h"
#include "targets/mcu/machines/mcu_machine.h"

/* What main.c does. */
typedef enum muc_mcu_main {
    MUC_MCU_MAIN_BARE,   /* shows where the network is to run */
    MUC_MCU_MAIN_TESTED, /* runs NAME_selftest, and the network once */
    MUC_MCU_MAIN_SPEAKS, /* of a language model: continues a prompt */
} muc_mcu_main;

/* MUC_UNSUPPORTED unless start-up code and linker script can be made for the machine: a Cortex-M
 * whose memories have origins. */
muc_status muc_mcu_project_check(muc_context *ctx, const muc_mcu_machine *machine,
                                 const char *name);
/* Writes CMakeLists.txt, main.c, README.md and the folder board beside path/network. */
muc_status muc_mcu_write_project(muc_context *ctx, const char *path, const muc_mcu_machine *machine,
                                 muc_mcu_main kind);
/* Whether a command that flashes the board is QEMU's. */
bool muc_mcu_is_emulated(const muc_mcu_machine *machine);

#endif

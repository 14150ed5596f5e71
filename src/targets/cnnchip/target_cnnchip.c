/* target_cnnchip.c - what target cnnchip makes, recognised; its machines. */
#include "targets/cnnchip/isa/chip_program.h"
#include "targets/cnnchip/run/chip_folder.h"
#include "targets/target.h"

const muc_target_machine *muc_machine_at_cnnchip(size_t i)
{
    static const muc_target_machine machines[] = {
#define MUC_CNNCHIP_MACHINE(id, name, meaning) { name, meaning, NULL },
#include "targets/cnnchip/machines/cnnchip_machines.def"
#undef MUC_CNNCHIP_MACHINE
    };

    return i < MUC_COUNT(machines) ? &machines[i] : NULL;
}

muc_made muc_recognise_cnnchip(const char *path, muc_bytes bytes)
{
    return !bytes.data && muc_is_chip_folder(path) ? MUC_MADE_NETWORK : MUC_MADE_NOTHING;
}

const muc_target_assembly muc_assembly_cnnchip = {
    .is_program = muc_cnnchip_is_program,
    .is_text = muc_cnnchip_is_assembly,
    .disassemble = muc_cnnchip_disassemble,
    .assemble = muc_cnnchip_assemble,
};

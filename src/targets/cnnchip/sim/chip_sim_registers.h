/* chip_sim_registers.h - the CNN chip as a master processor sees it: SPEC.md section 8 around the
 * simulator. Freestanding, as chip_sim.h. */
#ifndef CNNCHIP_SIM_REGISTERS_H
#define CNNCHIP_SIM_REGISTERS_H

#include "targets/cnnchip/sim/chip_sim.h"

/* Set bus, bus_bytes, sim.pes, sim.bus_bytes and busy_reads; the rest begins as zeros. */
typedef struct muc_cnnchip_device {
    uint8_t *bus; /* what the chip's bus reaches, from bus address 0; borrowed */
    uint32_t bus_bytes;
    uint32_t busy_reads; /* STATUS reads as busy so often before a run's end shows */
    muc_cnnchip_sim sim;
    uint32_t frame_base, filter_base, program_base;
    uint32_t busy;
} muc_cnnchip_device;

/* Offsets without a register read as 0; writing one, or one that is not rw, has no effect.
 * A start with memories that reach beyond the bus faults: fetch, frame or filter. */
uint32_t muc_cnnchip_read_register(muc_cnnchip_device *device, uint32_t offset);
void muc_cnnchip_write_register(muc_cnnchip_device *device, uint32_t offset, uint32_t value);

#endif

/* chip_sim_registers.c - the chip's registers as a master reads and writes them. */
#include "targets/cnnchip/sim/chip_sim_registers.h"

#include "mur_cnnchip.h"

static uint32_t *writable(muc_cnnchip_device *device, uint32_t offset)
{
    switch (offset) {
    case MUR_CNNCHIP_FRAME_BASE:
        return &device->frame_base;
    case MUR_CNNCHIP_FRAME_BYTES:
        return &device->sim.frame_bytes;
    case MUR_CNNCHIP_FILTER_BASE:
        return &device->filter_base;
    case MUR_CNNCHIP_FILTER_BYTES:
        return &device->sim.filter_bytes;
    case MUR_CNNCHIP_FILTER_IMAGE_BYTES:
        return &device->sim.filter_image_bytes;
    case MUR_CNNCHIP_PROGRAM_BASE:
        return &device->program_base;
    case MUR_CNNCHIP_PROGRAM_BYTES:
        return &device->sim.program_bytes;
    default:
        return NULL;
    }
}

static uint32_t status(muc_cnnchip_device *device)
{
    if (device->busy == 0)
        return device->sim.status;
    device->busy--;
    return MUC_CNNCHIP_BUSY;
}

uint32_t muc_cnnchip_read_register(muc_cnnchip_device *device, uint32_t offset)
{
    const uint32_t *word = writable(device, offset);

    if (word)
        return *word;
    switch (offset) {
    case MUR_CNNCHIP_ID:
        return MUR_CNNCHIP_MAGIC;
    case MUR_CNNCHIP_STATUS:
        return status(device);
    case MUR_CNNCHIP_CODE:
        return device->sim.code;
    case MUR_CNNCHIP_PC:
        return device->sim.pc;
    case MUR_CNNCHIP_ELEMENT:
        return device->sim.element;
    case MUR_CNNCHIP_PES:
        return device->sim.pes;
    case MUR_CNNCHIP_CYCLES_LOW:
        return (uint32_t)device->sim.counts.cycles;
    case MUR_CNNCHIP_CYCLES_HIGH:
        return (uint32_t)(device->sim.counts.cycles >> 32);
    default:
        return 0;
    }
}

static int reaches(const muc_cnnchip_device *device, uint32_t base, uint32_t bytes)
{
    return base <= device->bus_bytes && bytes <= device->bus_bytes - base;
}

/* the memories behind the registers; false: a fault */
static int connect(muc_cnnchip_device *device)
{
    muc_cnnchip_sim *sim = &device->sim;

    if (!reaches(device, device->program_base, sim->program_bytes))
        sim->code = MUC_CNNCHIP_FAULT_fetch;
    else if (!reaches(device, device->frame_base, sim->frame_bytes))
        sim->code = MUC_CNNCHIP_FAULT_frame;
    else if (!reaches(device, device->filter_base, sim->filter_bytes))
        sim->code = MUC_CNNCHIP_FAULT_filter;
    else {
        sim->program = device->bus + device->program_base;
        sim->frame = device->bus + device->frame_base;
        sim->filter = device->bus + device->filter_base;
        return 1;
    }
    sim->status = MUC_CNNCHIP_FAULTED;
    return 0;
}

static void control(muc_cnnchip_device *device, uint32_t value)
{
    if (value != 1 && value != 2)
        return;
    device->busy = device->busy_reads;
    if (!connect(device))
        return;
    if (value == 1)
        muc_cnnchip_sim_start(&device->sim);
    else
        muc_cnnchip_sim_resume(&device->sim);
}

void muc_cnnchip_write_register(muc_cnnchip_device *device, uint32_t offset, uint32_t value)
{
    uint32_t *word = writable(device, offset);

    if (word)
        *word = value;
    else if (offset == MUR_CNNCHIP_ELEMENT && value <= MUC_CNNCHIP_int8)
        device->sim.element = (muc_cnnchip_element)value;
    else if (offset == MUR_CNNCHIP_CONTROL)
        control(device, value);
}

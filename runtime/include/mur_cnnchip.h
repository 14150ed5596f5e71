/* mur_cnnchip.h - the CNN chip's driver, for the master processor
 * (src/targets/cnnchip/SPEC.md, sections 8 and 9).
 *
 * A run:
 *
 *     mur_cnnchip_open(&chip, &board, &files);     once; checks everything, loads FILTER
 *     mur_cnnchip_begin(&chip);                    before every run; loads FRAME
 *     mur_cnnchip_put(&chip, 0, image);            the first input
 *     mur_cnnchip_start(&chip);
 *     while ((status = mur_cnnchip_poll(&chip)) == MUR_YIELD) ...sleep, or do something else
 *     while (status == MUR_OK && chip.step) ...host step chip.step of map.json, then
 *                                    mur_cnnchip_resume(&chip) and poll as above
 *     mur_cnnchip_get(&chip, 1, scores);           ports count inputs and outputs in one list
 */
#ifndef MUR_CNNCHIP_H
#define MUR_CNNCHIP_H

#include <stddef.h>
#include <stdint.h>

#include "mur_status.h"

/* Registers, by their byte offset. */
#define MUR_CNNCHIP_REGISTERS(X) \
    X(ID, 0x00) \
    X(CONTROL, 0x04) \
    X(STATUS, 0x08) \
    X(CODE, 0x0c) \
    X(PC, 0x10) \
    X(FRAME_BASE, 0x14) \
    X(FRAME_BYTES, 0x18) \
    X(FILTER_BASE, 0x1c) \
    X(FILTER_BYTES, 0x20) \
    X(FILTER_IMAGE_BYTES, 0x24) \
    X(PROGRAM_BASE, 0x28) \
    X(PROGRAM_BYTES, 0x2c) \
    X(ELEMENT, 0x30) \
    X(PES, 0x34) \
    X(CYCLES_LOW, 0x38) \
    X(CYCLES_HIGH, 0x3c)

enum mur_cnnchip_register {
#define MUR_CNNCHIP_REGISTER(name, offset) MUR_CNNCHIP_##name = offset,
    MUR_CNNCHIP_REGISTERS(MUR_CNNCHIP_REGISTER)
#undef MUR_CNNCHIP_REGISTER
};

enum { MUR_CNNCHIP_MAGIC = 0x314e4355 }; /* "UCN1": register ID, and program files */

/* What a board is: filled by the caller, kept as long as the chip is used. */
typedef struct mur_cnnchip_board {
    /* The two memories as the master sees them, and where the chip's bus has them. */
    uint8_t *frame, *filter;
    uint32_t frame_bytes, filter_bytes;
    uint32_t frame_bus, filter_bus;
    uint32_t program_bus; /* where the chip's bus has the first byte of the program file */
    uint32_t (*read)(void *arg, uint32_t offset);
    void (*write)(void *arg, uint32_t offset, uint32_t value);
    void *arg;
} mur_cnnchip_board;

/* program.bin, frame.bin and filter.bin of `muc compile --target cnnchip`; borrowed, of any
 * alignment. */
typedef struct mur_cnnchip_files {
    const uint8_t *program, *frame, *filter;
    uint32_t program_bytes, frame_bytes, filter_bytes;
} mur_cnnchip_files;

typedef enum mur_cnnchip_port_kind {
    MUR_CNNCHIP_INPUT,
    MUR_CNNCHIP_OUTPUT,
    MUR_CNNCHIP_STEP_READS, /* what a host step reads, */
    MUR_CNNCHIP_STEP_WRITES /* and what it leaves for the chip */
} mur_cnnchip_port_kind;

/* A tensor of the network in FRAME, channel-major. */
typedef struct mur_cnnchip_port {
    uint32_t kind, address, channels, height, width, rows, pitch;
    float scale; /* int8: value = scale * (q - zero); else 1 and 0 */
    int32_t zero;
    uint32_t step;          /* of the last two kinds: which host step */
    uint32_t channels_last; /* the network's order is [height][width][channels] */
} mur_cnnchip_port;

typedef struct mur_cnnchip {
    const mur_cnnchip_board *board;
    mur_cnnchip_files files;
    uint32_t ports, element;
    uint32_t step;       /* after mur_cnnchip_poll: the host step that is due; 0: done */
    uint32_t fault, pc;  /* after MUR_E_FAULT: SPEC.md section 6, and the instruction's offset */
    uint32_t steps_done; /* steps come in ascending order: a chip that repeats one is stopped */
} mur_cnnchip;

/* Checks the files (MUR_E_MALFORMED: damaged, or not of one compilation), the board's memory
 * (MUR_E_NOFIT) and the chip (MUR_E_MACHINE: none, or too few processing elements); loads FILTER
 * and the chip's registers. */
mur_status mur_cnnchip_open(mur_cnnchip *chip, const mur_cnnchip_board *board,
                            const mur_cnnchip_files *files);
/* Loads the image of FRAME, which holds the borders of inputs. */
void mur_cnnchip_begin(const mur_cnnchip *chip);

/* Port number, from 0 on below chip->ports; MUR_E_INPUT beyond. */
mur_status mur_cnnchip_port_of(const mur_cnnchip *chip, uint32_t number, mur_cnnchip_port *out);
/* All values of a port in the network's order: [channels][height][width], or channels last. In
 * int8, put rounds value / scale to the nearest (halves away from 0), adds the zero point and
 * limits. MUR_E_INPUT: no such port. */
mur_status mur_cnnchip_put(const mur_cnnchip *chip, uint32_t number, const float *values);
mur_status mur_cnnchip_get(const mur_cnnchip *chip, uint32_t number, float *values);
/* The same of elements as the chip has them: float, binary16 or int8_t. */
mur_status mur_cnnchip_put_elements(const mur_cnnchip *chip, uint32_t number, const void *elements);
mur_status mur_cnnchip_get_elements(const mur_cnnchip *chip, uint32_t number, void *elements);

void mur_cnnchip_start(mur_cnnchip *chip);
/* After the host step that was due. */
void mur_cnnchip_resume(mur_cnnchip *chip);
/* MUR_YIELD: busy. MUR_OK: stopped by END; chip->step is 0 when the network is done. MUR_E_FAULT:
 * chip->fault and chip->pc say why and where. */
mur_status mur_cnnchip_poll(mur_cnnchip *chip);
/* Cycles since the start. */
uint64_t mur_cnnchip_cycles(const mur_cnnchip *chip);

#endif

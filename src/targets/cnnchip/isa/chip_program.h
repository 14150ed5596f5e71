/* chip_program.h - a program file of the CNN chip (SPEC.md section 9): its parts, and the way to
 * bytes and back. */
#ifndef MUC_CNNCHIP_PROGRAM_H
#define MUC_CNNCHIP_PROGRAM_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/text.h"
#include "targets/cnnchip/isa/chip_isa.h"

enum {
    MUC_CNNCHIP_MAGIC = 0x314e4355,
    MUC_CNNCHIP_VERSION = 1,
    MUC_CNNCHIP_HEADER_BYTES = 64,
    MUC_CNNCHIP_PORT_BYTES = 48,
    MUC_CNNCHIP_MOST_PORTS = 4096
};

typedef enum muc_cnnchip_port_kind {
    MUC_CNNCHIP_PORT_INPUT,
    MUC_CNNCHIP_PORT_OUTPUT,
    MUC_CNNCHIP_PORT_READ,    /* by a host step */
    MUC_CNNCHIP_PORT_WRITTEN, /* by a host step */
    MUC_CNNCHIP_PORT_KINDS
} muc_cnnchip_port_kind;

typedef struct muc_cnnchip_port {
    uint32_t kind;    /* muc_cnnchip_port_kind */
    uint32_t address; /* of element (0, 0, 0) in FRAME, bytes */
    uint32_t c, h, w, rows, pitch;
    float scale; /* 1 but for int8 */
    int32_t zero;
    uint32_t step; /* END's code; 0 of inputs and outputs */
    uint32_t last; /* 1: the network counts elements as (y, x, c), else as (c, y, x) */
} muc_cnnchip_port;

/* "input", "output", "read", "written"; NULL: no such kind. */
const char *muc_cnnchip_port_name(uint32_t kind);

/* Everything in a program file. Pointers are borrowed, or of the arena that the program was read
 * into. */
typedef struct muc_cnnchip_program {
    uint32_t element, pes;
    uint32_t frame_bytes, frame_image_bytes, frame_crc;
    uint32_t filter_bytes, filter_image_bytes, filter_crc;
    muc_cnnchip_port *ports;
    uint32_t port_count;
    const uint8_t *code; /* little-endian words */
    uint32_t code_bytes, insn_count;
} muc_cnnchip_program;

/* The file's bytes, in the arena. */
muc_status muc_cnnchip_write_program(muc_context *ctx, muc_arena *arena,
                                     const muc_cnnchip_program *program, muc_bytes *out);
/* Reads and verifies a program file; out->code borrows the bytes. MUC_MALFORMED naming file, offset
 * and what is wrong. */
muc_status muc_cnnchip_read_program(muc_context *ctx, muc_arena *arena, muc_bytes bytes,
                                    muc_cnnchip_program *out);
/* Whether the bytes begin as a program of this chip does. */
bool muc_cnnchip_is_program(muc_bytes bytes);

/* Elements that one result is computed from (SPEC.md section 3); not of END. */
uint64_t muc_cnnchip_block(const muc_cnnchip_insn *insn);
/* The checks of SPEC.md section 6 on one instruction, for a program's sizes; 0, or the first fault
 * that counts. */
unsigned muc_cnnchip_check(const muc_cnnchip_program *program, const muc_cnnchip_insn *insn);
/* SPEC.md section 9: one pass over the instructions, time linear in them. MUC_MALFORMED naming the
 * instruction's offset in the code and the fault. */
muc_status muc_cnnchip_verify_program(muc_context *ctx, const muc_cnnchip_program *program,
                                      const char *name);

/* A program file as assembly (SPEC.md section 9), and back to the same bytes; what is assembled was
 * verified. */
muc_status muc_cnnchip_disassemble(muc_context *ctx, muc_bytes bytes, muc_text *text);
muc_status muc_cnnchip_assemble(muc_context *ctx, muc_arena *arena, muc_bytes text, muc_bytes *out);
/* Whether a text's first word is a directive of this chip's assembly. */
bool muc_cnnchip_is_assembly(muc_bytes text);

#endif

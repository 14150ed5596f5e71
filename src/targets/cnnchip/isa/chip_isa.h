/* chip_isa.h - chip_isa.def as tables, and an instruction as a struct: what encoder, decoder,
 * assembler, printer and verifier share. */
#ifndef MUC_CNNCHIP_ISA_H
#define MUC_CNNCHIP_ISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Instructions in the order of the table; not their opcodes. */
typedef enum muc_cnnchip_op {
#define MUC_CNNCHIP_INSN(name, opcode, words, meaning) MUC_CNNCHIP_##name,
#include "targets/cnnchip/isa/chip_isa.def"
    MUC_CNNCHIP_OPS
} muc_cnnchip_op;

enum {
#define MUC_CNNCHIP_FLAG(name, bit, insns, meaning) MUC_CNNCHIP_FLAG_##name = 1 << bit,
#include "targets/cnnchip/isa/chip_isa.def"
    MUC_CNNCHIP_MOST_WORDS = 20
};

/* An instruction: fields that its row does not have are 0. Signed fields hold their two's
 * complement, cut to the field's width when encoded; reals hold bits. */
typedef struct muc_cnnchip_insn {
    muc_cnnchip_op op;
    uint32_t flags, layer;
#define MUC_CNNCHIP_OPERAND(name) uint32_t name;
#include "targets/cnnchip/isa/chip_isa.def"
} muc_cnnchip_insn;

typedef enum muc_cnnchip_kind {
    MUC_CNNCHIP_KIND_address,
    MUC_CNNCHIP_KIND_count,
    MUC_CNNCHIP_KIND_signed,
    MUC_CNNCHIP_KIND_real,
    MUC_CNNCHIP_KIND_bits,
} muc_cnnchip_kind;

typedef struct muc_cnnchip_field {
    const char *name;
    uint32_t word, shift, width;
    muc_cnnchip_kind kind;
    size_t offset; /* in muc_cnnchip_insn */
} muc_cnnchip_field;

typedef struct muc_cnnchip_op_info {
    const char *name;
    uint32_t opcode, words;
    const muc_cnnchip_field *fields;
    uint32_t field_count;
    uint32_t flags; /* that it takes */
} muc_cnnchip_op_info;

muc_cnnchip_op_info muc_cnnchip_op_get(muc_cnnchip_op op);
bool muc_cnnchip_op_of_opcode(uint32_t opcode, muc_cnnchip_op *out);
/* The name of flag bit i, or NULL. */
const char *muc_cnnchip_flag_name(unsigned bit);
const char *muc_cnnchip_fault_name(unsigned fault, const char **meaning); /* NULL: no such */
/* By number: fp32, fp16, int8; NULL: no such. */
const char *muc_cnnchip_element_name(uint32_t element);
uint32_t muc_cnnchip_element_bytes(uint32_t element);

static inline uint32_t *muc_cnnchip_at(muc_cnnchip_insn *insn, const muc_cnnchip_field *field)
{
    return (uint32_t *)(void *)((char *)insn + field->offset);
}
static inline uint32_t muc_cnnchip_field_value(const muc_cnnchip_insn *insn,
                                               const muc_cnnchip_field *field)
{
    return *(const uint32_t *)(const void *)((const char *)insn + field->offset);
}
/* Whether a value fits its field: signed ones as two's complement. */
bool muc_cnnchip_fits(const muc_cnnchip_field *field, uint32_t value);

/* Writes the words of the instruction's row, little-endian; every value must fit. */
void muc_cnnchip_write_insn(const muc_cnnchip_insn *insn, uint8_t *out);
/* Reads an instruction of whole words; *fault is 0, or a fault of chip_isa.def (fetch, opcode,
 * reserved: a bit that no field or flag has). Returns its bytes, 0 after a fault. */
uint32_t muc_cnnchip_read_insn(const uint8_t *code, size_t bytes, muc_cnnchip_insn *out,
                               unsigned *fault);

#endif

/* chip_sim_op.h - one instruction of the CNN chip, decoded: between the files of the simulator. */
#ifndef CNNCHIP_SIM_OP_H
#define CNNCHIP_SIM_OP_H

#include "targets/cnnchip/sim/chip_sim.h"

enum {
#define MUC_CNNCHIP_INSN(name, opcode, words, meaning) OP_##name = opcode,
#include "targets/cnnchip/isa/chip_isa.def"
#define MUC_CNNCHIP_FLAG(name, bit, insns, meaning) FLAG_##name = 1 << (bit),
#include "targets/cnnchip/isa/chip_isa.def"
    SIM_MAX_WORDS = 32
};

/* Every field of every instruction; those that the instruction lacks are 0, except that DENSE gets
 * the geometry of a CONV whose window is the whole view. Reals are kept as their bits. */
typedef struct sim_op {
    uint32_t opcode, words, flags;
#define MUC_CNNCHIP_OPERAND(name) uint32_t name;
#include "targets/cnnchip/isa/chip_isa.def"
    /* derived */
    uint32_t element_bytes, result_bytes; /* SPEC.md: E and S */
    uint64_t block;                       /* elements that one result is made of */
} sim_op;

/* Bytes of a memory, [from, to); from may be negative where a border begins below address 0. */
typedef struct sim_range {
    int64_t from, to;
} sim_range;

/* Section 6: fetches and decodes what lies at pc. Sets *fault; true if there is none. */
int muc_cnnchip_decode(const muc_cnnchip_sim *sim, sim_op *op, uint32_t words[SIM_MAX_WORDS],
                       muc_cnnchip_fault *fault);

/* Extents, for a decoded instruction without faults of shape. */
sim_range muc_cnnchip_view_range(const sim_op *op);   /* CONV, MAXPOOL, DENSE: source, FRAME */
sim_range muc_cnnchip_result_range(const sim_op *op); /* without its border */
uint64_t muc_cnnchip_weight_elements(const sim_op *op);
uint64_t muc_cnnchip_results(const sim_op *op);
uint64_t muc_cnnchip_border_elements(const sim_op *op);
int muc_cnnchip_has_border(const sim_op *op);

/* Sections 2 to 4: an instruction without faults. END has no effect. */
void muc_cnnchip_execute(const muc_cnnchip_sim *sim, const sim_op *op);

#endif

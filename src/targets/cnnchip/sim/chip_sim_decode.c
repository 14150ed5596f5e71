/* chip_sim_decode.c - fields of an instruction, and every check of SPEC.md section 6. */
#include "targets/cnnchip/sim/chip_sim_op.h"

typedef struct field {
    uint8_t opcode, word, shift, width;
    uint8_t is_signed;
    uint16_t member; /* offset in sim_op */
} field;

enum kind { kind_address, kind_count, kind_signed, kind_real, kind_bits };

static const field fields[] = {
#define MUC_CNNCHIP_FIELD(insn, name, word, shift, width, kind, meaning) \
    { OP_##insn, word, shift, width, kind_##kind == kind_signed, offsetof(sim_op, name) },
#include "targets/cnnchip/isa/chip_isa.def"
};

enum {
    FIELDS = sizeof(fields) / sizeof(fields[0]),
    KNOWN_FLAGS = 0
#define MUC_CNNCHIP_FLAG(name, bit, insns, meaning) | FLAG_##name
#include "targets/cnnchip/isa/chip_isa.def"
};

static const uint8_t words_of[256] = {
#define MUC_CNNCHIP_INSN(name, opcode, words, meaning) [opcode] = words,
#include "targets/cnnchip/isa/chip_isa.def"
};

static const uint8_t bytes_of_element[] = {
#define MUC_CNNCHIP_ELEMENT(name, number, bytes, meaning) [number] = bytes,
#include "targets/cnnchip/isa/chip_isa.def"
};

/* the flags that an instruction takes; chip_isa.def names it by its first letter */
static uint32_t flags_of(uint32_t opcode)
{
    static const struct {
        const char *insns;
        uint32_t flag;
    } takers[] = {
#define MUC_CNNCHIP_FLAG(name, bit, insns, meaning) { insns, FLAG_##name },
#include "targets/cnnchip/isa/chip_isa.def"
    };
    static const char letters[256] = {
#define MUC_CNNCHIP_INSN(name, opcode, words, meaning) [opcode] = #name[0],
#include "targets/cnnchip/isa/chip_isa.def"
    };
    uint32_t flags = 0;

    for (size_t i = 0; i < sizeof(takers) / sizeof(takers[0]); i++)
        for (const char *p = takers[i].insns; *p; p++)
            if (*p == letters[opcode])
                flags |= takers[i].flag;
    return flags;
}

static uint32_t word_at(const muc_cnnchip_sim *sim, uint32_t offset)
{
    const uint8_t *p = sim->program + offset;

    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Takes the fields out of words; what is left of them is to be 0. */
static void take_fields(sim_op *op, uint32_t *words)
{
    for (uint32_t i = 0; i < FIELDS; i++) {
        const field *f = &fields[i];
        uint32_t mask, value;

        if (f->opcode != op->opcode)
            continue;
        mask = f->width == 32 ? 0xffffffffu : (1u << f->width) - 1;
        value = words[f->word] >> f->shift & mask;
        words[f->word] &= ~(mask << f->shift);
        if (f->is_signed && value >> (f->width - 1))
            value |= ~mask;
        *(uint32_t *)(void *)((char *)op + f->member) = value;
    }
}

static void derive(const muc_cnnchip_sim *sim, sim_op *op)
{
    op->element_bytes = bytes_of_element[sim->element];
    op->result_bytes = op->flags & FLAG_dst32 ? 4 : op->element_bytes;
    if (op->opcode == OP_DENSE) {
        op->kernel_h = op->in_h;
        op->kernel_w = op->in_w;
        op->groups = op->stride_h = op->stride_w = op->dilation_h = op->dilation_w = 1;
        op->out_h = op->out_w = op->step_h = op->step_w = op->dst_rows = op->dst_pitch = 1;
    }
    op->block = 1;
    if (op->opcode == OP_MAXPOOL)
        op->block = (uint64_t)op->kernel_h * op->kernel_w;
    else if (op->opcode != OP_ADD && op->groups)
        op->block = (uint64_t)(op->in_c / op->groups) * op->kernel_h * op->kernel_w;
}

static int has_flag(const sim_op *op, uint32_t flag)
{
    return (op->flags & flag) != 0;
}

int muc_cnnchip_has_border(const sim_op *op)
{
    return (op->pad_t | op->pad_b | op->pad_l | op->pad_r) != 0;
}

static int reserved(const muc_cnnchip_sim *sim, const sim_op *op, const uint32_t *rest)
{
    uint32_t bits = 0;

    for (uint32_t i = 0; i < op->words; i++)
        bits |= rest[i];
    if (!has_flag(op, FLAG_dsp))
        bits |= op->dsp;
    if (!has_flag(op, FLAG_act))
        bits |= op->act_from | op->act_slope;
    if (has_flag(op, FLAG_one))
        bits |= op->src1 | op->src1_rows | op->src1_pitch | op->zero_src1 | op->factor1;
    if (has_flag(op, FLAG_src32))
        bits |= op->factor | op->factor1 | op->zero_src | op->zero_src1;
    if (sim->element != MUC_CNNCHIP_int8)
        bits |= op->zero_out | op->zero_src | op->zero_src1;
    if (!muc_cnnchip_has_border(op))
        bits |= op->pad_value;
    if (op->element_bytes < 4)
        bits |= op->pad_value >> 8 * op->element_bytes;
    return bits != 0;
}

static int wrong_flags(const muc_cnnchip_sim *sim, const sim_op *op)
{
    if (op->flags & ~flags_of(op->opcode))
        return 1;
    if (has_flag(op, FLAG_dst32)) {
        if (op->flags & (FLAG_dsp | FLAG_act) || muc_cnnchip_has_border(op))
            return 1;
        /* 0 is a fault of shape */
        if (op->step_h > 1 || op->step_w > 1)
            return 1;
        if (sim->element == MUC_CNNCHIP_int8 && op->opcode == OP_ADD && !has_flag(op, FLAG_src32))
            return 1;
    }
    if (has_flag(op, FLAG_src32) && op->flags & (FLAG_one | FLAG_const1))
        return 1;
    return has_flag(op, FLAG_one) && has_flag(op, FLAG_const1);
}

/* the sources: of ADD its operands, else a view and the windows in it */
static int wrong_source(const sim_op *op)
{
    if (!op->src_rows || !op->src_pitch)
        return 1;
    if (op->opcode == OP_ADD) {
        if (op->out_h > op->src_rows || op->out_w > op->src_pitch)
            return 1;
        return !has_flag(op, FLAG_one) && (!op->src1_rows || !op->src1_pitch ||
                                           op->out_h > op->src1_rows || op->out_w > op->src1_pitch);
    }
    if (!op->in_c || !op->in_h || !op->in_w || !op->kernel_h || !op->kernel_w || !op->stride_h ||
        !op->stride_w || !op->dilation_h || !op->dilation_w)
        return 1;
    if (op->in_h > op->src_rows || op->in_w > op->src_pitch)
        return 1;
    if (op->opcode == OP_MAXPOOL) {
        if (op->out_c != op->in_c)
            return 1;
    } else if (!op->groups || op->in_c % op->groups || op->out_c % op->groups) {
        return 1;
    }
    return (op->out_h - 1) * op->stride_h + (op->kernel_h - 1) * op->dilation_h + 1 > op->in_h ||
           (op->out_w - 1) * op->stride_w + (op->kernel_w - 1) * op->dilation_w + 1 > op->in_w;
}

static int wrong_shape(const sim_op *op)
{
    if (!op->out_c || !op->out_h || !op->out_w || !op->step_h || !op->step_w || !op->dst_rows ||
        !op->dst_pitch)
        return 1;
    return wrong_source(op) ||
           op->pad_t + (op->out_h - 1) * op->step_h + 1 + op->pad_b > op->dst_rows ||
           op->pad_l + (op->out_w - 1) * op->step_w + 1 + op->pad_r > op->dst_pitch;
}

static int misaligned(const sim_op *op)
{
    uint32_t element = op->element_bytes;
    uint32_t source = has_flag(op, FLAG_src32) ? 4 : element;

    return op->src % source || op->src1 % source || op->dst % op->result_bytes ||
           op->filter % element || op->dsp % 4;
}

/* ---- extents ---- */

/* channels of rows * pitch elements, the last one up to its element (height - 1, width - 1) */
static sim_range extent(uint32_t address, uint32_t bytes, uint32_t channels, uint32_t rows,
                        uint32_t pitch, uint32_t height, uint32_t width)
{
    uint64_t last = ((uint64_t)(channels - 1) * rows + height - 1) * pitch + width - 1;
    sim_range range = { (int64_t)address, (int64_t)(address + (last + 1) * bytes) };

    return range;
}

sim_range muc_cnnchip_view_range(const sim_op *op)
{
    return extent(op->src, op->element_bytes, op->in_c, op->src_rows, op->src_pitch, op->in_h,
                  op->in_w);
}

sim_range muc_cnnchip_result_range(const sim_op *op)
{
    return extent(op->dst, op->result_bytes, op->out_c, op->dst_rows, op->dst_pitch,
                  (op->out_h - 1) * op->step_h + 1, (op->out_w - 1) * op->step_w + 1);
}

static sim_range border_range(const sim_op *op)
{
    int64_t before = ((int64_t)op->pad_t * op->dst_pitch + op->pad_l) * op->element_bytes;
    sim_range range = { (int64_t)op->dst - before, 0 };

    range.to = range.from +
               (int64_t)((uint64_t)op->dst_rows * op->dst_pitch * op->out_c * op->element_bytes);
    return range;
}

static sim_range operand_range(const sim_op *op, uint32_t address, uint32_t rows, uint32_t pitch)
{
    uint32_t bytes = has_flag(op, FLAG_src32) ? 4 : op->element_bytes;

    return extent(address, bytes, op->out_c, rows, pitch, op->out_h, op->out_w);
}

uint64_t muc_cnnchip_weight_elements(const sim_op *op)
{
    if (op->opcode == OP_ADD)
        return 0;
    return op->opcode == OP_MAXPOOL ? op->block : op->block * op->out_c;
}

uint64_t muc_cnnchip_results(const sim_op *op)
{
    return (uint64_t)op->out_c * op->out_h * op->out_w;
}

uint64_t muc_cnnchip_border_elements(const sim_op *op)
{
    uint64_t inner =
        (uint64_t)(op->dst_rows - op->pad_t - op->pad_b) * (op->dst_pitch - op->pad_l - op->pad_r);

    if (!muc_cnnchip_has_border(op))
        return 0;
    return ((uint64_t)op->dst_rows * op->dst_pitch - inner) * op->out_c;
}

static int outside(sim_range range, uint32_t from, uint32_t to)
{
    return range.from < (int64_t)from || range.to > (int64_t)to;
}

static int outside_frame(const muc_cnnchip_sim *sim, const sim_op *op)
{
    uint32_t end = sim->frame_bytes;

    if (op->opcode != OP_ADD) {
        if (outside(muc_cnnchip_view_range(op), 0, end))
            return 1;
    } else if (!has_flag(op, FLAG_src32)) {
        if (outside(operand_range(op, op->src, op->src_rows, op->src_pitch), 0, end))
            return 1;
        if (!has_flag(op, FLAG_one | FLAG_const1) &&
            outside(operand_range(op, op->src1, op->src1_rows, op->src1_pitch), 0, end))
            return 1;
    }
    if (has_flag(op, FLAG_dst32))
        return 0;
    return outside(muc_cnnchip_result_range(op), 0, end) ||
           (muc_cnnchip_has_border(op) && outside(border_range(op), 0, end));
}

static int outside_filter(const muc_cnnchip_sim *sim, const sim_op *op)
{
    uint32_t end = sim->filter_bytes;

    if (op->filter + muc_cnnchip_weight_elements(op) * op->element_bytes > end)
        return 1;
    if (has_flag(op, FLAG_dsp) && op->dsp + (uint64_t)12 * op->out_c > end)
        return 1;
    if (has_flag(op, FLAG_src32) &&
        outside(operand_range(op, op->src, op->src_rows, op->src_pitch), 0, end))
        return 1;
    if (has_flag(op, FLAG_src32 | FLAG_const1) &&
        outside(operand_range(op, op->src1, op->src1_rows, op->src1_pitch), 0, end))
        return 1;
    return has_flag(op, FLAG_dst32) &&
           outside(muc_cnnchip_result_range(op), sim->filter_image_bytes, end);
}

static muc_cnnchip_fault check(const muc_cnnchip_sim *sim, const sim_op *op, const uint32_t *rest)
{
    if (reserved(sim, op, rest))
        return MUC_CNNCHIP_FAULT_reserved;
    if (wrong_flags(sim, op))
        return MUC_CNNCHIP_FAULT_flags;
    if (op->opcode == OP_END)
        return MUC_CNNCHIP_NO_FAULT;
    if (wrong_shape(op))
        return MUC_CNNCHIP_FAULT_shape;
    if (sim->pes && op->block > sim->pes)
        return MUC_CNNCHIP_FAULT_pes;
    if (misaligned(op))
        return MUC_CNNCHIP_FAULT_align;
    if (outside_frame(sim, op))
        return MUC_CNNCHIP_FAULT_frame;
    return outside_filter(sim, op) ? MUC_CNNCHIP_FAULT_filter : MUC_CNNCHIP_NO_FAULT;
}

int muc_cnnchip_decode(const muc_cnnchip_sim *sim, sim_op *op, uint32_t words[SIM_MAX_WORDS],
                       muc_cnnchip_fault *fault)
{
    static const sim_op none;
    uint32_t rest[SIM_MAX_WORDS];
    uint32_t pc = sim->pc;

    *op = none;
    *fault = MUC_CNNCHIP_FAULT_fetch;
    if (pc % 4 || pc > sim->program_bytes || sim->program_bytes - pc < 4)
        return 0;
    op->opcode = sim->program[pc];
    op->words = words_of[op->opcode];
    if (!op->words) {
        *fault = MUC_CNNCHIP_FAULT_opcode;
        return 0;
    }
    if ((sim->program_bytes - pc) / 4 < op->words)
        return 0;
    for (uint32_t i = 0; i < op->words; i++)
        rest[i] = words[i] = word_at(sim, pc + 4 * i);
    op->flags = words[0] >> 8 & KNOWN_FLAGS;
    rest[0] = words[0] & 0xff00u & ~(uint32_t)(KNOWN_FLAGS << 8);
    take_fields(op, rest);
    derive(sim, op);
    *fault = check(sim, op, rest);
    return *fault == MUC_CNNCHIP_NO_FAULT;
}

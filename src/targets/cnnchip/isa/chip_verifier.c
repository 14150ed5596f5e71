/* chip_verifier.c - the verifier: SPEC.md section 6 on every instruction, once.
 *
 * Nothing jumps and no address is computed by the chip, so what an instruction touches can be read
 * off its fields; a program that passes stays in its memories and ends.
 */
#include "targets/cnnchip/isa/chip_program.h"

enum { FETCH = 1, OPCODE, RESERVED, FLAGS, SHAPE, PES, ALIGN, FRAME, FILTER };

typedef struct checker {
    const muc_cnnchip_program *program;
    const muc_cnnchip_insn *i;
    uint64_t element; /* bytes */
    bool is_int8;
} checker;

static bool has(const checker *c, uint32_t flag)
{
    return (c->i->flags & flag) != 0;
}

static bool pads(const muc_cnnchip_insn *i)
{
    return i->pad_t || i->pad_b || i->pad_l || i->pad_r;
}

/* ---- fields that must be 0, flags that exclude each other ---- */

static bool reserved_is_zero(const checker *c)
{
    const muc_cnnchip_insn *i = c->i;
    bool alone = has(c, MUC_CNNCHIP_FLAG_one);

    if ((!has(c, MUC_CNNCHIP_FLAG_dsp) && i->dsp) ||
        (!has(c, MUC_CNNCHIP_FLAG_act) && (i->act_from || i->act_slope)))
        return false;
    if (alone && (i->src1 || i->src1_rows || i->src1_pitch || i->zero_src1 || i->factor1))
        return false;
    if (has(c, MUC_CNNCHIP_FLAG_src32) && (i->factor || i->factor1 || i->zero_src || i->zero_src1))
        return false;
    if (!c->is_int8 && (i->zero_out || i->zero_src || i->zero_src1))
        return false;
    if (!pads(i))
        return i->pad_value == 0;
    return c->element == 4 || i->pad_value >> 8 * c->element == 0;
}

static bool flags_are_sound(const checker *c)
{
    const muc_cnnchip_insn *i = c->i;
    bool sums = has(c, MUC_CNNCHIP_FLAG_dst32), partial = has(c, MUC_CNNCHIP_FLAG_src32);

    if (i->flags & ~muc_cnnchip_op_get(i->op).flags)
        return false;
    if (sums && (has(c, MUC_CNNCHIP_FLAG_dsp) || has(c, MUC_CNNCHIP_FLAG_act) || pads(i)))
        return false;
    if (sums && (i->step_h > 1 || i->step_w > 1)) /* 0 is a fault of shape */
        return false;
    if (has(c, MUC_CNNCHIP_FLAG_one) && (partial || has(c, MUC_CNNCHIP_FLAG_const1)))
        return false;
    if (partial && has(c, MUC_CNNCHIP_FLAG_const1))
        return false;
    return !(c->is_int8 && sums && i->op == MUC_CNNCHIP_ADD && !partial);
}

/* ---- shapes ---- */

static bool window_fits(uint32_t in, uint32_t out, uint32_t kernel, uint32_t dilation,
                        uint32_t stride)
{
    return kernel && dilation && stride &&
           (uint64_t)(out - 1) * stride + (uint64_t)(kernel - 1) * dilation + 1 <= in;
}

static bool result_fits(uint32_t extent, uint32_t out, uint32_t step, uint32_t before,
                        uint32_t after)
{
    return step && (uint64_t)(out - 1) * step + 1 + before + after <= extent;
}

static bool shape_is_sound(const checker *c)
{
    const muc_cnnchip_insn *i = c->i;

    if (i->op == MUC_CNNCHIP_ADD) {
        if (!i->out_c || !i->out_h || !i->out_w || i->out_h > i->src_rows ||
            i->out_w > i->src_pitch)
            return false;
        if (!has(c, MUC_CNNCHIP_FLAG_one) && (i->out_h > i->src1_rows || i->out_w > i->src1_pitch))
            return false;
    } else if (!i->in_c || !i->in_h || !i->in_w || i->in_h > i->src_rows ||
               i->in_w > i->src_pitch || !i->out_c) {
        return false;
    }
    if (i->op == MUC_CNNCHIP_DENSE)
        return true;
    if (!i->out_h || !i->out_w ||
        !result_fits(i->dst_rows, i->out_h, i->step_h, i->pad_t, i->pad_b) ||
        !result_fits(i->dst_pitch, i->out_w, i->step_w, i->pad_l, i->pad_r))
        return false;
    if (i->op == MUC_CNNCHIP_ADD)
        return true;
    if (i->op == MUC_CNNCHIP_CONV ? !i->groups || i->in_c % i->groups || i->out_c % i->groups
                                  : i->in_c != i->out_c)
        return false;
    return window_fits(i->in_h, i->out_h, i->kernel_h, i->dilation_h, i->stride_h) &&
           window_fits(i->in_w, i->out_w, i->kernel_w, i->dilation_w, i->stride_w);
}

uint64_t muc_cnnchip_block(const muc_cnnchip_insn *i)
{
    if (i->op == MUC_CNNCHIP_ADD)
        return 1;
    if (i->op == MUC_CNNCHIP_DENSE)
        return (uint64_t)i->in_c * i->in_h * i->in_w;
    return (uint64_t)i->kernel_h * i->kernel_w *
           (i->op == MUC_CNNCHIP_CONV ? i->in_c / i->groups : 1);
}

/* ---- extents: whether (address, elements) of a size end within a memory ---- */

static bool within(uint64_t address, uint64_t elements, uint64_t size, uint64_t limit)
{
    return elements <= limit && address <= limit && elements * size <= limit - address;
}

/* elements from the first to the last of a view, both counted */
static uint64_t span(uint64_t c, uint64_t rows, uint64_t pitch, uint64_t h, uint64_t w)
{
    return (c - 1) * (rows * pitch) + (h - 1) * pitch + w;
}

static bool source_is_inside(const checker *c, bool of_filter)
{
    const muc_cnnchip_insn *i = c->i;
    bool add = i->op == MUC_CNNCHIP_ADD, partial = has(c, MUC_CNNCHIP_FLAG_src32);
    uint64_t size = partial ? 4 : c->element;
    uint64_t limit = of_filter ? c->program->filter_bytes : c->program->frame_bytes;
    bool second_in_filter = partial || has(c, MUC_CNNCHIP_FLAG_const1);

    if (partial == of_filter && !within(i->src,
                                        span(add ? i->out_c : i->in_c, i->src_rows, i->src_pitch,
                                             add ? i->out_h : i->in_h, add ? i->out_w : i->in_w),
                                        size, limit))
        return false;
    return !add || has(c, MUC_CNNCHIP_FLAG_one) || second_in_filter != of_filter ||
           within(i->src1, span(i->out_c, i->src1_rows, i->src1_pitch, i->out_h, i->out_w), size,
                  limit);
}

static bool result_is_inside(const checker *c)
{
    const muc_cnnchip_insn *i = c->i;
    bool sums = has(c, MUC_CNNCHIP_FLAG_dst32);
    uint64_t size = sums ? 4 : c->element, address = i->dst, plane, above, elements;
    uint64_t limit = sums ? c->program->filter_bytes : c->program->frame_bytes;

    if (sums && address < c->program->filter_image_bytes)
        return false;
    if (i->op == MUC_CNNCHIP_DENSE)
        return within(address, i->out_c, size, limit);
    plane = (uint64_t)i->dst_rows * i->dst_pitch;
    if (pads(i)) {
        above = ((uint64_t)i->pad_t * i->dst_pitch + i->pad_l) * size;
        return above <= address && within(address - above, plane * i->out_c, size, limit);
    }
    elements = (i->out_c - 1) * plane + (uint64_t)(i->out_h - 1) * i->step_h * i->dst_pitch +
               (uint64_t)(i->out_w - 1) * i->step_w + 1;
    return within(address, elements, size, limit);
}

static bool weights_are_inside(const checker *c)
{
    const muc_cnnchip_insn *i = c->i;
    uint64_t limit = c->program->filter_bytes, weights = muc_cnnchip_block(i);

    if (i->op != MUC_CNNCHIP_MAXPOOL)
        weights *= i->out_c;
    if (i->op != MUC_CNNCHIP_ADD && !within(i->filter, weights, c->element, limit))
        return false;
    return !has(c, MUC_CNNCHIP_FLAG_dsp) || within(i->dsp, 3 * (uint64_t)i->out_c, 4, limit);
}

static bool is_aligned(const checker *c)
{
    const muc_cnnchip_insn *i = c->i;
    uint64_t source = has(c, MUC_CNNCHIP_FLAG_src32) ? 4 : c->element;

    return i->src % source == 0 && i->src1 % source == 0 && i->filter % c->element == 0 &&
           i->dsp % 4 == 0 && i->dst % (has(c, MUC_CNNCHIP_FLAG_dst32) ? 4 : c->element) == 0;
}

unsigned muc_cnnchip_check(const muc_cnnchip_program *program, const muc_cnnchip_insn *insn)
{
    const checker c = { program, insn, muc_cnnchip_element_bytes(program->element),
                        program->element == 2 };
    bool sums = (insn->flags & MUC_CNNCHIP_FLAG_dst32) != 0;

    if (insn->op == MUC_CNNCHIP_END)
        return insn->flags ? FLAGS : 0;
    if (!reserved_is_zero(&c))
        return RESERVED;
    if (!flags_are_sound(&c))
        return FLAGS;
    if (!shape_is_sound(&c))
        return SHAPE;
    if (program->pes && muc_cnnchip_block(insn) > program->pes)
        return PES;
    if (!is_aligned(&c))
        return ALIGN;
    if (!source_is_inside(&c, false) || (!sums && !result_is_inside(&c)))
        return FRAME;
    if (!source_is_inside(&c, true) || (sums && !result_is_inside(&c)) || !weights_are_inside(&c))
        return FILTER;
    return 0;
}

static muc_status fail_at(muc_context *ctx, const char *name, uint32_t at, unsigned fault)
{
    const char *meaning = "", *fault_name = muc_cnnchip_fault_name(fault, &meaning);

    return muc_fail(ctx, MUC_MALFORMED, name, MUC_NO_OFFSET,
                    "the instruction at byte %u of the code would fault (%s): %s", at,
                    fault_name ? fault_name : "?", meaning);
}

muc_status muc_cnnchip_verify_program(muc_context *ctx, const muc_cnnchip_program *program,
                                      const char *name)
{
    uint32_t count = 0, ends = 0;

    for (uint32_t at = 0; at < program->code_bytes;) {
        muc_cnnchip_insn insn;
        unsigned fault;
        uint32_t bytes =
            muc_cnnchip_read_insn(program->code + at, program->code_bytes - at, &insn, &fault);

        if (!fault)
            fault = muc_cnnchip_check(program, &insn);
        if (fault)
            return fail_at(ctx, name, at, fault);
        at += bytes;
        count++;
        if (insn.op != MUC_CNNCHIP_END)
            continue;
        if (insn.code == 0 && at == program->code_bytes && count == program->insn_count)
            return MUC_OK;
        if (insn.code != ++ends)
            return muc_fail(ctx, MUC_MALFORMED, name, MUC_NO_OFFSET,
                            "the END at byte %u of the code has code %u, expected %u, or 0 at the "
                            "end of all %u instructions",
                            at - bytes, insn.code, ends, program->insn_count);
    }
    return muc_fail(ctx, MUC_MALFORMED, name, MUC_NO_OFFSET,
                    "the code, of %u bytes, does not end with END", program->code_bytes);
}

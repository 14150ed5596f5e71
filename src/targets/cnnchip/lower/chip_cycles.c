/* chip_cycles.c - SPEC.md section 7 from an instruction's fields, before anything runs. */
#include "targets/cnnchip/lower/chip_lower.h"

enum { SUM = 4 /* bytes of a partial sum */ };

static bool has(const muc_cnnchip_insn *i, uint32_t flag)
{
    return (i->flags & flag) != 0;
}

static uint64_t divided(uint64_t whole, uint64_t by)
{
    return (whole + by - 1) / by;
}

/* cycles of elements that the PEs pass on, one each */
static uint64_t passes(const muc_cnnchip_machine *machine, uint64_t elements)
{
    if (elements == 0)
        return 0;
    return machine->pes ? divided(elements, machine->pes) : 1;
}

static uint64_t results_of(const muc_cnnchip_insn *i)
{
    return i->op == MUC_CNNCHIP_DENSE ? i->out_c : (uint64_t)i->out_c * i->out_h * i->out_w;
}

static uint64_t border_of(const muc_cnnchip_insn *i)
{
    uint64_t inner =
        (uint64_t)(i->dst_rows - i->pad_t - i->pad_b) * (i->dst_pitch - i->pad_l - i->pad_r);

    if (!i->pad_t && !i->pad_b && !i->pad_l && !i->pad_r)
        return 0;
    return ((uint64_t)i->dst_rows * i->dst_pitch - inner) * i->out_c;
}

uint64_t muc_cnnchip_compute_cycles(const muc_cnnchip_machine *machine, const muc_cnnchip_insn *i)
{
    if (i->op == MUC_CNNCHIP_END)
        return 0;
    return (i->op == MUC_CNNCHIP_ADD ? passes(machine, results_of(i)) : results_of(i)) +
           passes(machine, border_of(i));
}

static uint64_t weight_elements(const muc_cnnchip_insn *i)
{
    if (i->op == MUC_CNNCHIP_ADD)
        return 0;
    return muc_cnnchip_block(i) * (i->op == MUC_CNNCHIP_MAXPOOL ? 1 : i->out_c);
}

/* over the bus */
static uint64_t bytes_of(const muc_cnnchip_machine *machine, const muc_cnnchip_insn *i)
{
    uint64_t element = muc_cnnchip_element_bytes(machine->element), results = results_of(i);
    uint64_t bytes = SUM * (uint64_t)muc_cnnchip_op_get(i->op).words;

    if (i->op == MUC_CNNCHIP_END)
        return bytes;
    if (i->op != MUC_CNNCHIP_ADD)
        bytes += (uint64_t)i->in_c * i->in_h * i->in_w * element;
    else if (has(i, MUC_CNNCHIP_FLAG_src32))
        bytes += 2 * SUM * results;
    else
        bytes += (has(i, MUC_CNNCHIP_FLAG_one) ? 1 : 2) * results * element;
    if (has(i, MUC_CNNCHIP_FLAG_dsp))
        bytes += 3 * SUM * (uint64_t)i->out_c;
    bytes += weight_elements(i) * element;
    return bytes +
           (has(i, MUC_CNNCHIP_FLAG_dst32) ? SUM * results : (results + border_of(i)) * element);
}

static uint64_t memory_cycles(const muc_cnnchip_machine *machine, uint64_t bytes)
{
    return machine->bus_bytes ? divided(bytes, machine->bus_bytes) : 0;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

uint64_t muc_cnnchip_cycles(const muc_cnnchip_machine *machine, const muc_cnnchip_insn *insn)
{
    return larger(muc_cnnchip_compute_cycles(machine, insn),
                  memory_cycles(machine, bytes_of(machine, insn)));
}

/* The sum of two partial results of the product: to scratch, or as the product's own. */
static muc_cnnchip_insn sum_of(const muc_cnnchip_insn *product, bool is_last)
{
    bool dense = product->op == MUC_CNNCHIP_DENSE;
    muc_cnnchip_insn sum = { .op = MUC_CNNCHIP_ADD, .flags = MUC_CNNCHIP_FLAG_src32 };

    sum.out_c = product->out_c;
    sum.out_h = dense ? 1 : product->out_h;
    sum.out_w = dense ? 1 : product->out_w;
    if (!is_last) {
        sum.flags |= MUC_CNNCHIP_FLAG_dst32;
        return sum;
    }
    sum.flags |= product->flags & (MUC_CNNCHIP_FLAG_dsp | MUC_CNNCHIP_FLAG_act);
    sum.dst_rows = product->dst_rows;
    sum.dst_pitch = product->dst_pitch;
    sum.pad_t = product->pad_t;
    sum.pad_b = product->pad_b;
    sum.pad_l = product->pad_l;
    sum.pad_r = product->pad_r;
    return sum;
}

uint64_t muc_cnnchip_sum_cycles(const muc_cnnchip_machine *machine, const muc_cnnchip_insn *product)
{
    const muc_cnnchip_insn sum = sum_of(product, false);

    return muc_cnnchip_cycles(machine, &sum);
}

/* Rows or columns that parts must read between them: each reads as many as there are from the first
 * window to the last, and each that a window sees is read by one. */
static uint64_t seen_along(uint32_t out, uint32_t stride, uint32_t kernel, uint32_t dilation)
{
    uint64_t apart = (uint64_t)(out - 1) * stride + 1;
    uint64_t seen = stride < kernel ? apart + kernel - 1 : (uint64_t)out * kernel;

    return dilation == 1 ? larger(apart, seen) : apart;
}

/* Every way to split has at least `parts` parts of a block; between them they read each weight and
 * what windows see of each channel at least once, and write all their sums; parts - 1 ADDs follow.
 */
uint64_t muc_cnnchip_least_cycles(const muc_cnnchip_machine *machine,
                                  const muc_cnnchip_insn *product)
{
    const muc_cnnchip_insn sum = sum_of(product, false), last = sum_of(product, true);
    uint64_t block = muc_cnnchip_block(product), results = results_of(product), parts, bytes;
    uint64_t seen = (uint64_t)product->in_c * product->in_h * product->in_w;

    if (machine->pes == 0 || block <= machine->pes)
        return muc_cnnchip_cycles(machine, product);
    parts = divided(block, machine->pes);
    if (product->op == MUC_CNNCHIP_CONV)
        seen =
            product->in_c *
            seen_along(product->out_h, product->stride_h, product->kernel_h, product->dilation_h) *
            seen_along(product->out_w, product->stride_w, product->kernel_w, product->dilation_w);
    bytes = (seen + weight_elements(product)) * muc_cnnchip_element_bytes(machine->element) +
            parts * SUM * (results + muc_cnnchip_op_get(product->op).words);
    return larger(parts * results, memory_cycles(machine, bytes)) +
           (parts - 2) * muc_cnnchip_cycles(machine, &sum) + muc_cnnchip_cycles(machine, &last);
}

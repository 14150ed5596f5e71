/* chip_emit.c - steps to instructions, weights and parameters to the filter image.
 *
 * Until all are written, DSP tables count from the parameters' first byte and partial sums from the
 * scratch's; finish() adds where these begin.
 */
#include <string.h>

#include "base/half.h"
#include "targets/cnnchip/lower/chip_lower.h"

enum { Y = 0, X = 1, WORD = 4 };

/* ---- addresses ---- */

static uint64_t address_of_storage(const muc_cnnchip_lowering *l, uint32_t storage)
{
    uint64_t address = 0;

    while (l->storages[storage].alias != MUC_NO_ID) {
        address +=
            l->storages[storage].alias_elements * muc_cnnchip_element_bytes(l->machine->element);
        storage = l->storages[storage].alias;
    }
    return address + l->storages[storage].address;
}

uint32_t muc_cnnchip_locate(const muc_cnnchip_lowering *l, const muc_cnnchip_view *view,
                            uint32_t *rows, uint32_t *pitch)
{
    muc_cnnchip_view root = muc_cnnchip_root(l, *view);
    const muc_cnnchip_storage *s = &l->storages[root.storage];
    uint64_t element;

    *rows = muc_cnnchip_rows(s);
    *pitch = muc_cnnchip_pitch(s);
    element = (uint64_t)root.c0 * *rows + (uint32_t)(root.y0 + (int32_t)s->border.t);
    element = element * *pitch + (uint32_t)(root.x0 + (int32_t)s->border.l);
    return (uint32_t)(address_of_storage(l, root.storage) +
                      element * muc_cnnchip_element_bytes(l->machine->element));
}

/* ---- the filter image ---- */

static void put_element(muc_cnnchip_lowering *l, const muc_cnnchip_weights *w, int64_t at)
{
    uint8_t *out = l->weights + l->weights_bytes;
    uint32_t bytes = muc_cnnchip_element_bytes(l->machine->element);

    if (w->dtype == MUC_I8)
        *out = w->data[at];
    else if (bytes == 2)
        muc_store_u16(out, muc_f16_of_f32(muc_f32_of_bits(muc_load_u32(w->data + 4 * at))));
    else
        memcpy(out, w->data + 4 * at, WORD);
    l->weights_bytes += bytes;
}

/* where so many elements would begin, of a network whose weights are shapes alone */
static bool skip_elements(muc_cnnchip_lowering *l, uint64_t count)
{
    if (!l->graph->zeros)
        return false;
    l->weights_bytes += count * muc_cnnchip_element_bytes(l->machine->element);
    return true;
}

/* weights of filters f0..f1-1; returns their address */
static uint32_t put_weights(muc_cnnchip_lowering *l, const muc_cnnchip_weights *w, uint32_t f0,
                            uint32_t f1, const muc_cnnchip_part *p)
{
    uint64_t start = l->weights_bytes;

    if (skip_elements(l, (uint64_t)(f1 - f0) * p->size[0] * p->size[1] * p->size[2]))
        return (uint32_t)start;
    for (int64_t f = f0; f < f1; f++)
        for (int64_t i = p->first[0]; i < p->first[0] + p->size[0]; i++)
            for (int64_t u = p->first[1]; u < p->first[1] + p->size[1]; u++) {
                int64_t at = w->base + f * w->by[0] + i * w->by[1] + u * w->by[2];

                for (int64_t v = p->first[2]; v < p->first[2] + p->size[2]; v++)
                    put_element(l, w, at + v * w->by[3]);
            }
    return (uint32_t)start;
}

/* weights of a range of a dense layer's line */
static uint32_t put_range(muc_cnnchip_lowering *l, const muc_cnnchip_step *step,
                          const muc_cnnchip_part *p)
{
    const muc_cnnchip_weights *w = &step->weights;
    uint32_t columns = step->in.w, pixels = step->in.h * columns;
    uint64_t start = l->weights_bytes;

    if (skip_elements(l, (uint64_t)step->out.c * p->size[0]))
        return (uint32_t)start;
    for (int64_t f = 0; f < step->out.c; f++)
        for (uint32_t k = p->first[0]; k < p->first[0] + p->size[0]; k++)
            put_element(l, w,
                        w->base + f * w->by[0] + k / pixels * w->by[1] +
                            k % pixels / columns * w->by[2] + k % columns * w->by[3]);
    return (uint32_t)start;
}

/* Whether a grouped convolution is split group by group: its blocks of several channels exceed the
 * PEs. */
static bool is_split_by_group(const muc_cnnchip_lowering *l, const muc_cnnchip_step *step)
{
    uint32_t inputs = step->groups ? step->in.c / step->groups : 0, pes = l->machine->pes;

    return step->kind == MUC_CNNCHIP_STEP_CONV && step->groups > 1 && inputs > 1 && pes &&
           (uint64_t)inputs * step->kernel[Y] * step->kernel[X] > pes;
}

/* a table of v1, v2, v3 for all channels, or one for each group that has instructions of its own */
static muc_status put_dsp(muc_cnnchip_lowering *l, muc_cnnchip_step *step)
{
    uint32_t width = is_split_by_group(l, step) ? step->out.c / step->groups : step->out.c;

    step->dsp_at = l->params_bytes;
    if (!step->v1)
        return MUC_OK;
    for (uint32_t c = 0; c < step->out.c && !l->graph->zeros; c++) {
        uint8_t *table = l->params + l->params_bytes + 3 * (size_t)WORD * (c - c % width);
        size_t at = c % width;

        muc_store_u32(table + WORD * at, muc_f32_bits(step->v1[c]));
        muc_store_u32(table + WORD * (width + at), muc_f32_bits(step->v2[c]));
        muc_store_u32(table + WORD * (2 * (size_t)width + at), step->v3[c]);
    }
    l->params_bytes += 3 * (uint64_t)WORD * step->out.c;
    return MUC_OK;
}

/* ---- instructions ---- */

static muc_status add_insn(muc_cnnchip_lowering *l, muc_cnnchip_op op, const muc_cnnchip_step *step,
                           muc_cnnchip_insn **out)
{
    MUC_TRY(muc_arena_grow(l->ctx, &l->arena, l->insn_count + (size_t)1, sizeof(*l->insns),
                           &l->insn_capacity, (void **)&l->insns));
    *out = &l->insns[l->insn_count++];
    **out = (muc_cnnchip_insn){ .op = op };
    if (step->kind != MUC_CNNCHIP_STEP_HOST)
        (*out)->layer = step->layer + 1;
    return MUC_OK;
}

static void set_source(const muc_cnnchip_lowering *l, const muc_cnnchip_view *view,
                       muc_cnnchip_insn *insn)
{
    insn->src = muc_cnnchip_locate(l, view, &insn->src_rows, &insn->src_pitch);
    insn->in_c = view->c;
    insn->in_h = view->h;
    insn->in_w = view->w;
}

static void set_window(const muc_cnnchip_step *step, muc_cnnchip_insn *insn)
{
    insn->kernel_h = step->kernel[Y];
    insn->kernel_w = step->kernel[X];
    insn->dilation_h = step->dilation[Y];
    insn->dilation_w = step->dilation[X];
    insn->stride_h = step->stride[Y];
    insn->stride_w = step->stride[X];
}

/* DSP stage, activation and zero point of the result, for channels from c0 of the step's on, which
 * begin a table of put_dsp */
static void set_stage(const muc_cnnchip_step *step, uint32_t c0, muc_cnnchip_insn *insn)
{
    if (step->v1) {
        insn->flags |= MUC_CNNCHIP_FLAG_dsp;
        insn->dsp = (uint32_t)step->dsp_at + 3 * WORD * c0;
    }
    if (step->act) {
        insn->flags |= MUC_CNNCHIP_FLAG_act;
        insn->act_from = muc_f32_bits(step->act_from);
        insn->act_slope = muc_f32_bits(step->act_slope);
    }
    insn->zero_out = (uint32_t)step->zero_out;
}

/* where elements go, and the border around them; c0 and c: channels of the step's result */
static void set_result(const muc_cnnchip_lowering *l, const muc_cnnchip_step *step, uint32_t c0,
                       uint32_t c, muc_cnnchip_insn *insn)
{
    muc_cnnchip_view out = step->out, root = muc_cnnchip_root(l, step->out);
    const muc_cnnchip_border *border = &l->storages[root.storage].border;

    out.c0 += c0;
    insn->dst = muc_cnnchip_locate(l, &out, &insn->dst_rows, &insn->dst_pitch);
    insn->out_c = c;
    insn->out_h = out.h;
    insn->out_w = out.w;
    insn->step_h = step->step[Y];
    insn->step_w = step->step[X];
    if (step->border && root.y0 == 0 && root.x0 == 0) {
        insn->pad_t = border->t;
        insn->pad_b = border->b;
        insn->pad_l = border->l;
        insn->pad_r = border->r;
        if (border->t || border->b || border->l || border->r)
            insn->pad_value = border->value;
    }
}

/* partial sums of c channels at S0, or at S1 behind it */
static void set_partial(muc_cnnchip_lowering *l, const muc_cnnchip_step *step, uint32_t c,
                        bool second, muc_cnnchip_insn *insn)
{
    uint64_t bytes = (uint64_t)c * step->out.h * step->out.w * WORD;

    insn->flags |= MUC_CNNCHIP_FLAG_dst32;
    insn->dst = second ? (uint32_t)bytes : 0;
    insn->out_c = c;
    insn->out_h = insn->dst_rows = step->out.h;
    insn->out_w = insn->dst_pitch = step->out.w;
    insn->step_h = insn->step_w = 1;
    l->scratch_bytes = 2 * bytes > l->scratch_bytes ? 2 * bytes : l->scratch_bytes;
}

static uint32_t sixteen_bits(uint64_t count)
{
    return count > UINT16_MAX ? UINT16_MAX : (uint32_t)count;
}

/* the sum of S0 and S1: to S0, or the last to FRAME */
static muc_status add_sum(muc_cnnchip_lowering *l, const muc_cnnchip_step *step, uint32_t c0,
                          uint32_t c, uint64_t number, uint64_t parts)
{
    muc_cnnchip_insn *insn;

    MUC_TRY(add_insn(l, MUC_CNNCHIP_ADD, step, &insn));
    insn->flags = MUC_CNNCHIP_FLAG_src32;
    insn->src1 = (uint32_t)((uint64_t)c * step->out.h * step->out.w * WORD);
    insn->src_rows = insn->src1_rows = step->out.h;
    insn->src_pitch = insn->src1_pitch = step->out.w;
    insn->part = sixteen_bits(number);
    insn->parts = sixteen_bits(parts);
    if (number + 1 < parts) {
        set_partial(l, step, c, false, insn);
        return MUC_OK;
    }
    set_result(l, step, c0, c, insn);
    set_stage(step, c0, insn);
    return MUC_OK;
}

/* ---- products ---- */

/* What one or more instructions compute of a CONV or DENSE: all, or one group. */
typedef struct product {
    muc_cnnchip_step *step;
    uint32_t f0, filters;   /* of the step's */
    muc_cnnchip_insn whole; /* as if there were PEs enough, but where its weights and results go */
} product;

static void set_whole_result(const muc_cnnchip_lowering *l, const product *p,
                             muc_cnnchip_insn *insn)
{
    uint32_t rows, pitch;

    if (insn->op == MUC_CNNCHIP_DENSE)
        insn->dst = muc_cnnchip_locate(l, &p->step->out, &rows, &pitch);
    else
        set_result(l, p->step, p->f0, p->filters, insn);
    set_stage(p->step, p->f0, insn);
}

static uint32_t put_part(muc_cnnchip_lowering *l, const product *p, const muc_cnnchip_part *part)
{
    if (p->whole.op == MUC_CNNCHIP_DENSE)
        return put_range(l, p->step, part);
    return put_weights(l, &p->step->weights, p->f0, p->f0 + p->filters, part);
}

/* Part `number` of `parts`: the elements from its first on, its sum to those before. */
static muc_status add_part(muc_cnnchip_lowering *l, const product *p, const muc_cnnchip_part *part,
                           uint64_t number, uint64_t parts)
{
    uint64_t bytes = muc_cnnchip_element_bytes(l->machine->element), row = p->whole.src_pitch;
    muc_cnnchip_insn *insn;

    MUC_TRY(add_insn(l, p->whole.op, p->step, &insn));
    *insn = p->whole;
    insn->filter = put_part(l, p, part);
    if (parts == 1) {
        set_whole_result(l, p, insn);
        return MUC_OK;
    }
    muc_cnnchip_shrink(insn, part->size);
    insn->part = sixteen_bits(number);
    insn->parts = sixteen_bits(parts);
    set_partial(l, p->step, p->filters, number > 0, insn);
    if (insn->op == MUC_CNNCHIP_DENSE) { /* a line without gaps */
        insn->src_rows = insn->src_pitch = 1;
        insn->src += (uint32_t)(part->first[0] * bytes);
        insn->out_h = insn->out_w = insn->dst_rows = insn->dst_pitch = 0;
        insn->step_h = insn->step_w = 0;
    } else {
        insn->src += (uint32_t)((part->first[0] * (uint64_t)insn->src_rows * row +
                                 part->first[1] * (uint64_t)insn->dilation_h * row +
                                 part->first[2] * (uint64_t)insn->dilation_w) *
                                bytes);
    }
    return number > 0 ? add_sum(l, p->step, p->f0, p->filters, number, parts) : MUC_OK;
}

static muc_status emit_product(muc_cnnchip_lowering *l, const product *p)
{
    muc_cnnchip_part whole = { .first = { 0 } }, *parts = &whole;
    size_t count = 1;

    muc_cnnchip_block_sizes(&p->whole, whole.size);
    if (l->machine->pes && muc_cnnchip_block(&p->whole) > l->machine->pes)
        MUC_TRY(muc_cnnchip_split(l, &p->whole, &parts, &count));
    for (size_t i = 0; i < count; i++)
        MUC_TRY(add_part(l, p, &parts[i], i, count));
    return MUC_OK;
}

/* The step as one instruction, whatever its block. */
static void set_product(const muc_cnnchip_lowering *l, muc_cnnchip_step *step, product *p)
{
    bool dense = step->kind == MUC_CNNCHIP_STEP_DENSE;
    muc_cnnchip_insn *insn = &p->whole;

    *p = (product){ .step = step, .filters = step->out.c };
    insn->op = dense ? MUC_CNNCHIP_DENSE : MUC_CNNCHIP_CONV;
    insn->layer = step->layer + 1;
    set_source(l, &step->in, insn);
    insn->out_c = step->out.c;
    if (dense)
        return;
    insn->groups = step->groups;
    insn->out_h = step->out.h;
    insn->out_w = step->out.w;
    set_window(step, insn);
}

static muc_status emit_conv(muc_cnnchip_lowering *l, muc_cnnchip_step *step, product *p)
{
    uint32_t inputs = step->in.c / step->groups, filters = step->out.c / step->groups;
    muc_cnnchip_view view = step->in;

    if (!is_split_by_group(l, step))
        return emit_product(l, p);
    p->whole.groups = 1;
    p->whole.out_c = p->filters = filters;
    view.c = inputs;
    for (uint32_t g = 0; g < step->groups; g++) {
        p->f0 = g * filters;
        set_source(l, &view, &p->whole);
        view.c0 += inputs;
        MUC_TRY(emit_product(l, p));
    }
    return MUC_OK;
}

static muc_status emit_products(muc_cnnchip_lowering *l, muc_cnnchip_step *step)
{
    muc_cnnchip_insn whole;
    product p;

    set_product(l, step, &p);
    whole = p.whole;
    set_whole_result(l, &p, &whole);
    step->split = true;
    step->least_cycles = muc_cnnchip_least_cycles(l->machine, &whole);
    return step->kind == MUC_CNNCHIP_STEP_DENSE ? emit_product(l, &p) : emit_conv(l, step, &p);
}

/* ---- the others ---- */

static muc_status emit_pool(muc_cnnchip_lowering *l, muc_cnnchip_step *step)
{
    muc_cnnchip_insn *insn;

    MUC_TRY(add_insn(l, MUC_CNNCHIP_MAXPOOL, step, &insn));
    set_source(l, &step->in, insn);
    set_result(l, step, 0, step->out.c, insn);
    set_stage(step, 0, insn);
    insn->zero_src = (uint32_t)step->zero_src;
    insn->filter = 0; /* the placeholder is what FILTER begins with */
    set_window(step, insn);
    if (step->split && step->border)
        step->least_cycles = muc_cnnchip_compute_cycles(l->machine, insn);
    return MUC_OK;
}

static muc_status emit_add(muc_cnnchip_lowering *l, muc_cnnchip_step *step)
{
    const muc_cnnchip_part all = { { 0 }, { step->out.c, step->out.h, step->out.w } };
    muc_cnnchip_insn *insn;

    MUC_TRY(add_insn(l, MUC_CNNCHIP_ADD, step, &insn));
    insn->src = muc_cnnchip_locate(l, &step->in, &insn->src_rows, &insn->src_pitch);
    set_result(l, step, 0, step->out.c, insn);
    set_stage(step, 0, insn);
    insn->factor = muc_f32_bits(step->factor);
    insn->zero_src = (uint32_t)step->zero_src;
    if (!step->two) {
        insn->flags |= MUC_CNNCHIP_FLAG_one;
        return MUC_OK;
    }
    insn->factor1 = muc_f32_bits(step->factor1);
    insn->zero_src1 = (uint32_t)step->zero_src1;
    if (!step->second.data) {
        insn->src1 = muc_cnnchip_locate(l, &step->in1, &insn->src1_rows, &insn->src1_pitch);
        return MUC_OK;
    }
    insn->flags |= MUC_CNNCHIP_FLAG_const1;
    insn->src1 = put_weights(l, &step->second, 0, 1, &all);
    insn->src1_rows = step->out.h;
    insn->src1_pitch = step->out.w;
    return MUC_OK;
}

static muc_status emit_end(muc_cnnchip_lowering *l, const muc_cnnchip_step *step)
{
    muc_cnnchip_insn *insn;

    MUC_TRY(add_insn(l, MUC_CNNCHIP_END, step, &insn));
    insn->code = step->host;
    return MUC_OK;
}

static muc_status emit_step(muc_cnnchip_lowering *l, muc_cnnchip_step *step)
{
    switch (step->kind) {
    case MUC_CNNCHIP_STEP_CONV:
    case MUC_CNNCHIP_STEP_DENSE:
        return emit_products(l, step);
    case MUC_CNNCHIP_STEP_POOL:
        return emit_pool(l, step);
    case MUC_CNNCHIP_STEP_ADD:
        return emit_add(l, step);
    case MUC_CNNCHIP_STEP_HOST:
        break;
    }
    return emit_end(l, step);
}

static void count_cycles(muc_cnnchip_lowering *l, muc_cnnchip_step *step)
{
    for (uint32_t i = step->first_insn; i < l->insn_count; i++)
        step->cycles += muc_cnnchip_cycles(l->machine, &l->insns[i]);
    if (!step->split)
        step->least_cycles = step->cycles;
    l->cycles += step->cycles;
    l->least_cycles += step->least_cycles;
}

/* ---- the road ---- */

/* bytes: weights, parameters and partial sums, as far as they are known */
static muc_status check_filter(const muc_cnnchip_lowering *l, uint64_t bytes)
{
    uint64_t limit = l->machine->filter_bytes ? l->machine->filter_bytes : UINT32_MAX;

    if (bytes <= limit)
        return MUC_OK;
    muc_fail(l->ctx, MUC_NOFIT, l->graph->name, MUC_NO_OFFSET,
             "weights, parameters and partial sums of %llu bytes, FILTER has %llu",
             (unsigned long long)bytes, (unsigned long long)limit);
    muc_cnnchip_hint(l, "filter_bytes", bytes);
    if (l->scratch_bytes)
        muc_hint(l->ctx, "partial sums take %llu of it, and nothing with --pes unlimited",
                 (unsigned long long)l->scratch_bytes);
    return MUC_NOFIT;
}

/* The filter image: weights, the pools' placeholder before them, then parameters. */
static muc_status reserve_image(muc_cnnchip_lowering *l)
{
    uint64_t elements = 0, params = 0, sections;
    uint32_t ones = 0, bytes = muc_cnnchip_element_bytes(l->machine->element);
    static const uint8_t one[4] = { 0, 0, 0x80, 0x3f }, integer_one = 1;
    const muc_cnnchip_weights placeholder = { .data = l->is_int8 ? &integer_one : one,
                                              .dtype = l->is_int8 ? MUC_I8 : MUC_F32 };

    for (uint32_t i = 0; i < l->step_count; i++) {
        const muc_cnnchip_step *s = &l->steps[i];
        uint64_t window = (uint64_t)s->kernel[Y] * s->kernel[X];

        params += s->v1 ? 3 * (uint64_t)WORD * s->out.c : 0;

        if (s->kind == MUC_CNNCHIP_STEP_POOL)
            ones = window > ones ? (uint32_t)window : ones;
        else if (s->kind == MUC_CNNCHIP_STEP_ADD && s->second.data)
            elements += (uint64_t)s->out.c * s->out.h * s->out.w;
        else if (s->weights.data)
            elements += s->out.c * (s->in.c / s->groups * window);
    }
    sections = ((elements + ones) * bytes + WORD - 1) / WORD * WORD;
    if (sections + params > UINT32_MAX)
        return check_filter(l, sections + params);
    if (skip_elements(l, ones))
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->arena, (size_t)(sections + params) + 1, &l->weights));
    l->params = l->weights + sections;
    for (uint32_t i = 0; i < ones; i++)
        put_element(l, &placeholder, 0);
    return MUC_OK;
}

/* addresses from where parameters and scratch begin */
static muc_status finish(muc_cnnchip_lowering *l)
{
    uint64_t params, scratch;

    l->weights_bytes = (l->weights_bytes + WORD - 1) / WORD * WORD;
    params = l->weights_bytes;
    scratch = params + l->params_bytes;
    MUC_TRY(check_filter(l, scratch + l->scratch_bytes));
    for (uint32_t i = 0; i < l->insn_count; i++) {
        muc_cnnchip_insn *insn = &l->insns[i];

        if (insn->flags & MUC_CNNCHIP_FLAG_dsp)
            insn->dsp += (uint32_t)params;
        if (insn->flags & MUC_CNNCHIP_FLAG_dst32)
            insn->dst += (uint32_t)scratch;
        if (insn->flags & MUC_CNNCHIP_FLAG_src32) {
            insn->src += (uint32_t)scratch;
            insn->src1 += (uint32_t)scratch;
        }
    }
    return MUC_OK;
}

muc_status muc_cnnchip_emit(muc_cnnchip_lowering *l)
{
    muc_cnnchip_step end = { .kind = MUC_CNNCHIP_STEP_HOST };

    MUC_TRY(reserve_image(l));
    for (uint32_t i = 0; i < l->step_count; i++) {
        muc_cnnchip_step *step = &l->steps[i];

        muc_progress(l->ctx, "instructions", i, l->step_count);
        step->first_insn = l->insn_count;
        step->weights_at = l->weights_bytes;
        if (step->kind != MUC_CNNCHIP_STEP_HOST)
            MUC_TRY(put_dsp(l, step));
        MUC_TRY(emit_step(l, step));
        count_cycles(l, step);
        step->weights_bytes = l->weights_bytes - step->weights_at;
        step->end_insn = l->insn_count;
    }
    end.first_insn = l->insn_count;
    MUC_TRY(emit_end(l, &end));
    count_cycles(l, &end);
    return finish(l);
}

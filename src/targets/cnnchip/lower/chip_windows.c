/* chip_windows.c - convolutions, linear layers, pools and upsampling as steps. */
#include <math.h>
#include <string.h>

#include "graph/scales.h"
#include "targets/cnnchip/lower/chip_lower.h"

enum { MOST_WINDOW = 255, MOST_SIDE = 65535, Y = 0, X = 1 };

/* ---- windows ---- */

typedef muc_cnnchip_side side;

typedef struct window {
    bool last;
    uint32_t channels; /* of the output */
    side side[2];
} window;

static int64_t item(const muc_node *node, muc_attribute_key key, uint32_t i, int64_t fallback)
{
    return muc_node_item_or(node, key, i, fallback);
}

/* The window of a node whose input 0 and output are images; false if the fields cannot hold it.
 * kernel [2]: rows and columns. */
static bool read_window(const muc_cnnchip_lowering *l, const muc_node *node, const uint32_t *kernel,
                        window *w)
{
    uint32_t rank = muc_cnnchip_tensor(l, node->inputs[0])->rank, c, in[2], out[2];

    *w = (window){ .last = muc_node_integer_or(node, MUC_KEY_CHANNELS_LAST, 0) == 1 };
    if (rank < 3 || !muc_cnnchip_image(l, node->inputs[0], w->last, &c, &in[Y], &in[X]) ||
        !muc_cnnchip_image(l, node->outputs[0], w->last, &w->channels, &out[Y], &out[X]))
        return false;
    for (uint32_t d = 0; d < 2; d++) {
        bool is_there = rank == 4 || d == X;
        uint32_t i = rank == 4 ? d : 0;
        int64_t stride = is_there ? item(node, MUC_KEY_STRIDES, i, 1) : 1;
        int64_t dilation = is_there ? item(node, MUC_KEY_DILATIONS, i, 1) : 1;

        if (stride > MOST_WINDOW || dilation > MOST_WINDOW || kernel[d] > MOST_WINDOW)
            return false;
        w->side[d] = (side){ .kernel = kernel[d],
                             .stride = (uint32_t)stride,
                             .dilation = (uint32_t)dilation,
                             .in = in[d],
                             .out = out[d],
                             .pad = is_there ? item(node, MUC_KEY_PADS, i, 0) : 0 };
    }
    return true;
}

/* rows or columns that all windows span, from the first's first on */
static int64_t span(const side *s)
{
    return (int64_t)(s->out - 1) * s->stride + (int64_t)(s->kernel - 1) * s->dilation + 1;
}

static uint32_t positive(int64_t value)
{
    return value > 0 ? (uint32_t)value : 0;
}

/* the image with what the windows see around it, cut to what they see */
static muc_status pad_for(muc_cnnchip_lowering *l, const window *w, muc_cnnchip_view image,
                          uint32_t value, muc_cnnchip_view *out)
{
    const side *y = &w->side[Y], *x = &w->side[X];
    const muc_cnnchip_border border = { .t = positive(y->pad),
                                        .b = positive(span(y) - y->pad - y->in),
                                        .l = positive(x->pad),
                                        .r = positive(span(x) - x->pad - x->in),
                                        .value = value };

    MUC_TRY(muc_cnnchip_pad(l, image, &border, out));
    out->h = (uint32_t)span(y);
    out->w = (uint32_t)span(x);
    return MUC_OK;
}

static void set_window(muc_cnnchip_step *step, const window *w)
{
    for (uint32_t d = 0; d < 2; d++) {
        step->kernel[d] = w->side[d].kernel;
        step->stride[d] = w->side[d].stride;
        step->dilation[d] = w->side[d].dilation;
    }
}

/* what stands for zero in a tensor */
static uint32_t zero_bits(const muc_cnnchip_lowering *l, uint32_t tensor)
{
    return muc_cnnchip_bits(l, l->is_int8 ? (float)l->values[tensor].zero : 0);
}

/* ---- weights, biases ---- */

/* F32 constants, or of int8 mode integers without zero points */
static bool takes_weights(const muc_cnnchip_lowering *l, const muc_node *node)
{
    const muc_tensor *w = muc_cnnchip_tensor(l, node->inputs[1]);
    uint32_t bias = muc_node_input(node, 2);

    if (!muc_cnnchip_constant(l, node->inputs[1]) || w->dtype != (l->is_int8 ? MUC_I8 : MUC_F32) ||
        (bias != MUC_NO_ID && !muc_cnnchip_constant(l, bias)) ||
        !muc_cnnchip_holds(l, node->inputs[0]) || !muc_cnnchip_holds(l, node->outputs[0]))
        return false;
    if (!l->is_int8)
        return bias == MUC_NO_ID || muc_cnnchip_tensor(l, bias)->dtype == MUC_F32;
    if (!w->quantization || (bias != MUC_NO_ID && muc_cnnchip_tensor(l, bias)->dtype != MUC_I32))
        return false;
    for (uint32_t i = 0; i < w->quantization->count; i++)
        if (w->quantization->zero_points[i] != 0)
            return false;
    return true;
}

/* the sum of filter f's integers; 0 of shapes alone */
static int32_t sum_of(const muc_cnnchip_lowering *l, const muc_cnnchip_step *step, uint32_t f,
                      uint32_t inputs)
{
    const muc_cnnchip_weights *w = &step->weights;
    int32_t sum = 0;

    for (uint32_t i = 0; i < inputs && !l->graph->zeros; i++)
        for (uint32_t u = 0; u < step->kernel[Y]; u++)
            for (uint32_t v = 0; v < step->kernel[X]; v++)
                sum +=
                    (int8_t)w
                        ->data[w->base + f * w->by[0] + i * w->by[1] + u * w->by[2] + v * w->by[3]];
    return sum;
}

/* The DSP table of products: the bias, in int8 also the input's zero point and the factor to the
 * output's scale. inputs: channels of a filter. */
static muc_status set_dsp(muc_cnnchip_lowering *l, const muc_node *node, uint32_t inputs,
                          muc_cnnchip_step *step)
{
    const muc_quantization *scales = muc_cnnchip_tensor(l, node->inputs[1])->quantization;
    const uint8_t *bias = muc_cnnchip_constant(l, muc_node_input(node, 2));
    const muc_cnnchip_value *x = &l->values[node->inputs[0]], *out = &l->values[node->outputs[0]];

    if (!bias && !l->is_int8)
        return MUC_OK;
    MUC_TRY(muc_cnnchip_add_dsp(l, step));
    for (uint32_t f = 0; f < step->out.c; f++) {
        uint32_t b = bias ? muc_load_u32(bias + (size_t)4 * f) : 0;

        step->v3[f] = b;
        if (!l->is_int8)
            continue;
        step->v1[f] = (float)((double)x->scale * (double)scales->scales[scales->count > 1 ? f : 0] /
                              (double)out->scale);
        step->v3[f] = b - (uint32_t)x->zero * (uint32_t)sum_of(l, step, f, inputs);
    }
    step->zero_out = out->zero;
    return MUC_OK;
}

/* ---- convolution ---- */

static bool read_kernel(const muc_cnnchip_lowering *l, const muc_node *node, uint32_t *kernel)
{
    uint32_t rank = muc_cnnchip_tensor(l, node->inputs[1])->rank;
    uint32_t at = muc_node_integer_or(node, MUC_KEY_CHANNELS_LAST, 0) == 1 ? 1 : 2;

    if (rank != 3 && rank != 4)
        return false;
    kernel[Y] = rank == 4 ? muc_cnnchip_dim(l, node->inputs[1], at) : 1;
    kernel[X] = muc_cnnchip_dim(l, node->inputs[1], rank == 4 ? at + 1 : at);
    return true;
}

muc_status muc_cnnchip_lower_conv(muc_cnnchip_lowering *l, const muc_node *node, bool *done)
{
    uint32_t groups = (uint32_t)muc_node_integer_or(node, MUC_KEY_GROUPS, 1), kernel[2], each;
    muc_cnnchip_view in, out;
    muc_cnnchip_step *step;
    int64_t taps;
    bool taken;
    window w;

    if (!takes_weights(l, node) || !read_kernel(l, node, kernel) ||
        !read_window(l, node, kernel, &w) || groups > MOST_SIDE)
        return MUC_OK;
    MUC_TRY(muc_cnnchip_begin_layer(l, node));
    MUC_TRY(muc_cnnchip_take(l, node->inputs[0], w.last, &in, &taken));
    if (!taken)
        return MUC_OK;
    *done = true;
    each = in.c / groups;
    MUC_TRY(pad_for(l, &w, in, zero_bits(l, node->inputs[0]), &in));
    MUC_TRY(muc_cnnchip_result(l, node->outputs[0], w.last, w.channels, w.side[Y].out,
                               w.side[X].out, &out));
    MUC_TRY(muc_cnnchip_add_step(l, MUC_CNNCHIP_STEP_CONV, in, out, &step));
    set_window(step, &w);
    taps = (int64_t)kernel[Y] * kernel[X];
    step->groups = groups;
    step->border = step->final = true;
    step->weights = (muc_cnnchip_weights){
        .data = muc_cnnchip_constant(l, node->inputs[1]),
        .dtype = muc_cnnchip_tensor(l, node->inputs[1])->dtype,
        .by = { taps * each, w.last ? 1 : taps, (int64_t)kernel[X] * (w.last ? each : 1),
                w.last ? each : 1 },
    };
    MUC_TRY(set_dsp(l, node, each, step));
    return muc_cnnchip_keep_bounds(l, node);
}

/* ---- transposed convolution ---- */

/* One direction of a phase: the outputs first, first + stride, .. see `taps` inputs from q + at on,
 * through weights from, from - stride, .. */
typedef struct phase {
    uint32_t outputs, taps;
    int64_t at;
    int64_t from;
} phase;

static phase phase_of(const side *s, uint32_t first)
{
    /* s describes the convolution that this is the gradient of: its out is our input */
    int64_t least = (first + s->pad) % s->stride;
    phase p = { .outputs = (s->in - first + s->stride - 1) / s->stride };

    p.taps = least < s->kernel ? (uint32_t)((s->kernel - least + s->stride - 1) / s->stride) : 0;
    p.at = (first + s->pad - least) / s->stride - (p.taps - (int64_t)1);
    p.from = least + (p.taps - (int64_t)1) * s->stride;
    return p;
}

/* rows or columns that phases see before and behind the image */
static bool reach_of(const side *s, uint32_t *before, uint32_t *after)
{
    *before = *after = 0;
    for (uint32_t first = 0; first < s->stride && first < s->in; first++) {
        phase p = phase_of(s, first);
        uint32_t more = positive((int64_t)p.outputs - 1 + p.at + p.taps - s->out);

        if (p.taps == 0)
            return false;
        *before = positive(-p.at) > *before ? positive(-p.at) : *before;
        *after = more > *after ? more : *after;
    }
    return true;
}

static muc_status add_phase(muc_cnnchip_lowering *l, const muc_node *node, const window *w,
                            uint32_t groups, muc_cnnchip_view image, muc_cnnchip_view out,
                            const uint32_t *first)
{
    const phase y = phase_of(&w->side[Y], first[Y]), x = phase_of(&w->side[X], first[X]);
    int64_t inputs = image.c, columns = w->side[X].kernel, taps = w->side[Y].kernel * columns;
    int64_t outputs = w->channels / groups, pixel = w->last ? inputs : 1;
    muc_cnnchip_step *step;

    image.y0 += (int32_t)y.at;
    image.x0 += (int32_t)x.at;
    image.h = y.outputs - 1 + y.taps;
    image.w = x.outputs - 1 + x.taps;
    out.y0 += (int32_t)first[Y];
    out.x0 += (int32_t)first[X];
    out.h = y.outputs;
    out.w = x.outputs;
    MUC_TRY(muc_cnnchip_add_step(l, MUC_CNNCHIP_STEP_CONV, image, out, &step));
    step->kernel[Y] = y.taps;
    step->kernel[X] = x.taps;
    step->step[Y] = w->side[Y].stride;
    step->step[X] = w->side[X].stride;
    step->groups = groups;
    step->border = first[Y] == 0 && first[X] == 0;
    step->final = true;
    step->weights = (muc_cnnchip_weights){
        .data = muc_cnnchip_constant(l, node->inputs[1]),
        .dtype = muc_cnnchip_tensor(l, node->inputs[1])->dtype,
        .base = (y.from * columns + x.from) * pixel,
        .by = { w->last ? taps * inputs : taps, w->last ? 1 : taps * outputs,
                -(int64_t)w->side[Y].stride * columns * pixel,
                -(int64_t)w->side[X].stride * pixel },
    };
    return set_dsp(l, node, image.c / groups, step);
}

muc_status muc_cnnchip_lower_conv_transpose(muc_cnnchip_lowering *l, const muc_node *node,
                                            bool *done)
{
    uint32_t groups = (uint32_t)muc_node_integer_or(node, MUC_KEY_GROUPS, 1), kernel[2], first[2];
    muc_cnnchip_border border = { .value = 0 };
    muc_cnnchip_view in, out;
    bool taken;
    window w;

    if (!takes_weights(l, node) || !read_kernel(l, node, kernel) ||
        !read_window(l, node, kernel, &w) || w.side[Y].dilation != 1 || w.side[X].dilation != 1)
        return MUC_OK;
    for (uint32_t d = 0; d < 2; d++) { /* as the convolution of which it is the gradient */
        uint32_t in_extent = w.side[d].in;

        w.side[d].in = w.side[d].out;
        w.side[d].out = in_extent;
    }
    MUC_TRY(muc_cnnchip_begin_layer(l, node));
    MUC_TRY(muc_cnnchip_take(l, node->inputs[0], w.last, &in, &taken));
    if (!taken || !reach_of(&w.side[Y], &border.t, &border.b) ||
        !reach_of(&w.side[X], &border.l, &border.r) ||
        (groups != 1 && (groups != in.c || groups != w.channels || w.last)))
        return MUC_OK;
    *done = true;
    border.value = zero_bits(l, node->inputs[0]);
    MUC_TRY(muc_cnnchip_pad(l, in, &border, &in));
    in.y0 += (int32_t)border.t;
    in.x0 += (int32_t)border.l;
    MUC_TRY(muc_cnnchip_result(l, node->outputs[0], w.last, w.channels, w.side[Y].in, w.side[X].in,
                               &out));
    for (first[Y] = 0; first[Y] < w.side[Y].stride && first[Y] < w.side[Y].in; first[Y]++)
        for (first[X] = 0; first[X] < w.side[X].stride && first[X] < w.side[X].in; first[X]++)
            MUC_TRY(add_phase(l, node, &w, groups, in, out, first));
    return muc_cnnchip_keep_bounds(l, node);
}

/* ---- linear ---- */

/* rows of pixels: a convolution of 1 x 1 */
static muc_status lower_rows(muc_cnnchip_lowering *l, const muc_node *node, uint32_t inputs,
                             uint32_t outputs, bool *done)
{
    muc_cnnchip_view in, out;
    muc_cnnchip_step *step;

    if (muc_cnnchip_tensor(l, node->inputs[0])->rank < 3)
        return MUC_OK;
    MUC_TRY(muc_cnnchip_take(l, node->inputs[0], true, &in, done));
    if (!*done)
        return MUC_OK;
    MUC_TRY(muc_cnnchip_result(l, node->outputs[0], true, outputs, in.h, in.w, &out));
    MUC_TRY(muc_cnnchip_add_step(l, MUC_CNNCHIP_STEP_CONV, in, out, &step));
    step->border = step->final = true;
    step->weights = (muc_cnnchip_weights){
        .data = muc_cnnchip_constant(l, node->inputs[1]),
        .dtype = muc_cnnchip_tensor(l, node->inputs[1])->dtype,
        .by = { inputs, 1, 0, 0 },
    };
    MUC_TRY(set_dsp(l, node, inputs, step));
    return muc_cnnchip_keep_bounds(l, node);
}

muc_status muc_cnnchip_lower_linear(muc_cnnchip_lowering *l, const muc_node *node, bool *done)
{
    uint32_t outputs, inputs, pes = l->machine->pes;
    muc_cnnchip_view in, out;
    muc_cnnchip_value form;
    muc_cnnchip_step *step;
    int64_t pixels;
    bool turned;

    if (!takes_weights(l, node))
        return MUC_OK;
    outputs = muc_cnnchip_dim(l, node->inputs[1], 0);
    inputs = muc_cnnchip_dim(l, node->inputs[1], 1);
    if (outputs > MOST_SIDE)
        return MUC_OK;
    MUC_TRY(muc_cnnchip_begin_layer(l, node));
    if (muc_cnnchip_elements(l, node->inputs[0]) != inputs)
        return lower_rows(l, node, inputs, outputs, done);
    MUC_TRY(muc_cnnchip_take_line(l, node->inputs[0], pes == 0 || inputs <= pes, &in, &form, done));
    if (!*done)
        return MUC_OK;
    MUC_TRY(muc_cnnchip_result(l, node->outputs[0], false, outputs, 1, 1, &out));
    l->storages[out.storage].plain = true;
    MUC_TRY(muc_cnnchip_add_step(l, MUC_CNNCHIP_STEP_DENSE, in, out, &step));
    step->final = true;
    step->kernel[Y] = in.h;
    step->kernel[X] = in.w;
    /* the graph may count the pixels of what was an image channels last */
    turned = form.last;
    pixels = (int64_t)in.h * in.w;
    step->weights = (muc_cnnchip_weights){
        .data = muc_cnnchip_constant(l, node->inputs[1]),
        .dtype = muc_cnnchip_tensor(l, node->inputs[1])->dtype,
        .by = { inputs, turned ? 1 : pixels, turned ? (int64_t)in.w * in.c : in.w,
                turned ? in.c : 1 },
    };
    MUC_TRY(set_dsp(l, node, in.c, step));
    return muc_cnnchip_keep_bounds(l, node);
}

/* ---- greatest elements ---- */

static bool same_scale(const muc_cnnchip_lowering *l, const muc_node *node)
{
    const muc_cnnchip_value *x = &l->values[node->inputs[0]], *out = &l->values[node->outputs[0]];

    return x->scale == out->scale && x->zero == out->zero;
}

static bool holds_both(const muc_cnnchip_lowering *l, const muc_node *node)
{
    return muc_cnnchip_holds(l, node->inputs[0]) && muc_cnnchip_holds(l, node->outputs[0]);
}

static void read_pool_kernel(const muc_cnnchip_lowering *l, const muc_node *node, uint32_t *kernel)
{
    bool flat = muc_cnnchip_tensor(l, node->inputs[0])->rank == 3;

    kernel[Y] = flat ? 1 : (uint32_t)item(node, MUC_KEY_KERNEL, 0, 1);
    kernel[X] = (uint32_t)item(node, MUC_KEY_KERNEL, flat ? 0 : 1, 1);
}

muc_status muc_cnnchip_lower_max_pool(muc_cnnchip_lowering *l, const muc_node *node, bool *done)
{
    muc_cnnchip_view in, out;
    uint32_t kernel[2];
    window w;

    read_pool_kernel(l, node, kernel);
    if (!holds_both(l, node) || !same_scale(l, node) || node->output_count > 1 ||
        !read_window(l, node, kernel, &w))
        return MUC_OK;
    MUC_TRY(muc_cnnchip_begin_layer(l, node));
    MUC_TRY(muc_cnnchip_take(l, node->inputs[0], w.last, &in, done));
    if (!*done)
        return MUC_OK;
    MUC_TRY(pad_for(l, &w, in, muc_cnnchip_bits(l, l->is_int8 ? -128 : -INFINITY), &in));
    MUC_TRY(muc_cnnchip_result(l, node->outputs[0], w.last, w.channels, w.side[Y].out,
                               w.side[X].out, &out));
    MUC_TRY(muc_cnnchip_add_pool(l, w.side, in, out));
    return muc_cnnchip_keep_bounds(l, node);
}

/* ---- means ---- */

/* Outputs first..end-1 whose windows see the same `taps` elements, from input `at` on, and are
 * divided by the same number. */
typedef struct stretch {
    uint32_t first, end, taps, count;
    int64_t at;
} stretch;

/* the stretch that begins at output `first`; padding counts or does not */
static stretch stretch_from(const side *s, uint32_t first, int64_t padded_end, bool counts)
{
    stretch r = { .first = first };

    for (uint32_t o = first; o < s->out; o++) {
        int64_t start = (int64_t)o * s->stride - s->pad;
        uint32_t skipped = 0, taps = 0, count = 0;

        for (uint32_t k = 0; k < s->kernel; k++) {
            int64_t at = start + (int64_t)k * s->dilation;

            skipped += at < 0;
            taps += at >= 0 && at < s->in;
            count += counts && at < padded_end;
        }
        count = counts ? count : taps;
        if (o == first)
            r = (stretch){ first, first, taps, count, start + (int64_t)skipped * s->dilation };
        else if (taps != r.taps || count != r.count || skipped != 0 ||
                 r.at != (int64_t)first * s->stride - s->pad)
            break;
        r.end = o + 1;
    }
    return r;
}

static muc_status add_mean(muc_cnnchip_lowering *l, const muc_node *node, const window *w,
                           muc_cnnchip_view in, muc_cnnchip_view out, const stretch *y,
                           const stretch *x, double factor)
{
    static const uint8_t one[2][4] = { { 0, 0, 0x80, 0x3f }, { 1 } };
    const muc_cnnchip_value *from = &l->values[node->inputs[0]], *to = &l->values[node->outputs[0]];
    uint32_t taps = y->taps * x->taps;
    muc_cnnchip_step *step;

    in.y0 += (int32_t)y->at;
    in.x0 += (int32_t)x->at;
    in.h = (y->end - y->first - 1) * w->side[Y].stride + (y->taps - 1) * w->side[Y].dilation + 1;
    in.w = (x->end - x->first - 1) * w->side[X].stride + (x->taps - 1) * w->side[X].dilation + 1;
    out.y0 += (int32_t)y->first;
    out.x0 += (int32_t)x->first;
    out.h = y->end - y->first;
    out.w = x->end - x->first;
    MUC_TRY(muc_cnnchip_add_step(l, MUC_CNNCHIP_STEP_CONV, in, out, &step));
    set_window(step, w);
    step->kernel[Y] = y->taps;
    step->kernel[X] = x->taps;
    step->groups = in.c;
    step->border = y->first == 0 && x->first == 0;
    step->final = true;
    step->weights =
        (muc_cnnchip_weights){ .data = one[l->is_int8], .dtype = l->is_int8 ? MUC_I8 : MUC_F32 };
    step->zero_out = to->zero;
    MUC_TRY(muc_cnnchip_add_dsp(l, step));
    for (uint32_t c = 0; c < out.c; c++) {
        step->v1[c] = (float)(factor * (double)from->scale / (double)to->scale);
        step->v3[c] = l->is_int8 ? 0u - taps * (uint32_t)from->zero : 0;
    }
    return MUC_OK;
}

muc_status muc_cnnchip_lower_average_pool(muc_cnnchip_lowering *l, const muc_node *node, bool *done)
{
    bool counts = muc_node_integer_or(node, MUC_KEY_COUNT_INCLUDE_PAD, 0) == 1;
    muc_cnnchip_view in, out;
    int64_t ends[2];
    uint32_t kernel[2], rank;
    stretch y, x;
    window w;

    read_pool_kernel(l, node, kernel);
    if (!holds_both(l, node) || !read_window(l, node, kernel, &w))
        return MUC_OK;
    rank = muc_cnnchip_tensor(l, node->inputs[0])->rank;
    for (uint32_t d = 0; d < 2; d++) {
        ends[d] = w.side[d].in;
        if (rank == 4 || d == X)
            ends[d] += item(node, MUC_KEY_PADS, rank == 4 ? 2 + d : 1, 0);
        for (uint32_t first = 0; first < w.side[d].out; first = y.end) {
            y = stretch_from(&w.side[d], first, ends[d], counts);
            if (y.taps == 0 || y.count == 0)
                return MUC_OK;
        }
    }
    MUC_TRY(muc_cnnchip_begin_layer(l, node));
    MUC_TRY(muc_cnnchip_take(l, node->inputs[0], w.last, &in, done));
    if (!*done)
        return MUC_OK;
    MUC_TRY(muc_cnnchip_result(l, node->outputs[0], w.last, w.channels, w.side[Y].out,
                               w.side[X].out, &out));
    for (uint32_t i = 0; i < w.side[Y].out; i = y.end) {
        y = stretch_from(&w.side[Y], i, ends[Y], counts);
        for (uint32_t k = 0; k < w.side[X].out; k = x.end) {
            x = stretch_from(&w.side[X], k, ends[X], counts);
            MUC_TRY(add_mean(l, node, &w, in, out, &y, &x, 1.0 / ((double)y.count * x.count)));
        }
    }
    return muc_cnnchip_keep_bounds(l, node);
}

/* whether the axes are those of the pixels, and no other */
static bool reduces_pixels(const muc_cnnchip_lowering *l, const muc_node *node, bool last)
{
    const muc_attribute *axes = muc_node_attribute(node, MUC_KEY_AXES);
    uint32_t rank = muc_cnnchip_tensor(l, node->inputs[0])->rank;

    if (!axes || rank < 3 || rank > 4 || axes->value.integers.count != rank - 2)
        return false;
    for (uint32_t i = 0; i < rank - 2; i++)
        if (axes->value.integers.items[i] != i + (last ? 1 : 2))
            return false;
    return true;
}

static muc_status reduce_pixels(muc_cnnchip_lowering *l, const muc_node *node, bool is_max,
                                bool *done)
{
    bool last = reduces_pixels(l, node, true);
    muc_cnnchip_view in, out;
    window w = { .last = last };
    stretch y, x;

    if ((!last && !reduces_pixels(l, node, false)) || !holds_both(l, node) ||
        (is_max && !same_scale(l, node)))
        return MUC_OK;
    MUC_TRY(muc_cnnchip_begin_layer(l, node));
    MUC_TRY(muc_cnnchip_take(l, node->inputs[0], last, &in, done));
    if (!*done)
        return MUC_OK;
    if (in.h > MOST_WINDOW || in.w > MOST_WINDOW) {
        *done = false;
        return MUC_OK;
    }
    w.side[Y] = (side){ in.h, 1, 1, in.h, 1, 0 };
    w.side[X] = (side){ in.w, 1, 1, in.w, 1, 0 };
    MUC_TRY(muc_cnnchip_result(l, node->outputs[0], last, in.c, 1, 1, &out));
    if (is_max)
        return muc_cnnchip_add_pool(l, w.side, in, out);
    y = stretch_from(&w.side[Y], 0, in.h, false);
    x = stretch_from(&w.side[X], 0, in.w, false);
    MUC_TRY(add_mean(l, node, &w, in, out, &y, &x,
                     muc_op_has(node->op, MUC_OP_AVERAGES) ? 1.0 / ((double)in.h * in.w) : 1));
    return muc_cnnchip_keep_bounds(l, node);
}

muc_status muc_cnnchip_lower_reduce(muc_cnnchip_lowering *l, const muc_node *node, bool *done)
{
    return reduce_pixels(l, node, false, done);
}

muc_status muc_cnnchip_lower_greatest(muc_cnnchip_lowering *l, const muc_node *node, bool *done)
{
    return reduce_pixels(l, node, true, done);
}

/* ---- upsampling ---- */

/* the input that ONNX's nearest neighbour takes for output o of `times` as many */
static int64_t source_of(const muc_node *node, uint32_t o, uint32_t times, uint32_t out)
{
    double scale = times, x;

    switch ((unsigned)muc_node_word_or(node, MUC_KEY_COORDINATES, MUC_WORD_HALF_PIXEL)) {
    case MUC_WORD_ASYMMETRIC:
        x = o / scale;
        break;
    case MUC_WORD_TF_HALF_PIXEL_FOR_NN:
        x = (o + 0.5) / scale;
        break;
    case MUC_WORD_PYTORCH_HALF_PIXEL:
        x = out == 1 ? 0 : (o + 0.5) / scale - 0.5;
        break;
    case MUC_WORD_HALF_PIXEL:
    case MUC_WORD_HALF_PIXEL_SYMMETRIC:
        x = (o + 0.5) / scale - 0.5;
        break;
    default:
        return -1;
    }
    switch ((unsigned)muc_node_word_or(node, MUC_KEY_ROUNDING, MUC_WORD_ROUND_PREFER_FLOOR)) {
    case MUC_WORD_FLOOR:
        return (int64_t)floor(x);
    case MUC_WORD_CEIL:
        return (int64_t)ceil(x);
    case MUC_WORD_ROUND_PREFER_CEIL:
        return (int64_t)floor(x + 0.5);
    default:
        return (int64_t)ceil(x - 0.5);
    }
}

/* whether each pixel becomes `times` of them */
static bool repeats(const muc_node *node, uint32_t in, uint32_t out, uint32_t *times)
{
    *times = out / in;
    if (out % in || *times == 0 || *times > MOST_WINDOW)
        return false;
    for (uint32_t o = 0; o < out; o++) {
        int64_t source = source_of(node, o, *times, out);

        source = source < 0 ? 0 : source;
        if (source != o / *times)
            return false;
    }
    return true;
}

muc_status muc_cnnchip_lower_resize(muc_cnnchip_lowering *l, const muc_node *node, bool *done)
{
    uint32_t c, times[2], in_size[2], size[2];
    muc_cnnchip_view in, out;
    muc_cnnchip_step *step;
    bool fits = false, last;

    if (!holds_both(l, node) || !same_scale(l, node) ||
        muc_node_word_or(node, MUC_KEY_MODE, MUC_WORD_NONE) != MUC_WORD_NEAREST ||
        muc_node_attribute(node, MUC_KEY_ROI))
        return MUC_OK;
    for (last = true;; last = false) { /* whichever layout leaves the channels alone */
        uint32_t channels;

        fits = muc_cnnchip_image(l, node->inputs[0], last, &c, &in_size[Y], &in_size[X]) &&
               muc_cnnchip_image(l, node->outputs[0], last, &channels, &size[Y], &size[X]) &&
               c == channels && repeats(node, in_size[Y], size[Y], &times[Y]) &&
               repeats(node, in_size[X], size[X], &times[X]);
        if (fits || !last)
            break;
    }
    if (!fits || muc_cnnchip_tensor(l, node->inputs[0])->rank != 4)
        return MUC_OK;
    MUC_TRY(muc_cnnchip_begin_layer(l, node));
    MUC_TRY(muc_cnnchip_take(l, node->inputs[0], last, &in, done));
    if (!*done)
        return MUC_OK;
    MUC_TRY(muc_cnnchip_result(l, node->outputs[0], last, c, size[Y], size[X], &out));
    for (uint32_t i = 0; i < times[Y] * times[X]; i++) {
        muc_cnnchip_view part = out;

        part.y0 += (int32_t)(i / times[X]);
        part.x0 += (int32_t)(i % times[X]);
        part.h = in.h;
        part.w = in.w;
        MUC_TRY(muc_cnnchip_add_step(l, MUC_CNNCHIP_STEP_ADD, in, part, &step));
        step->step[Y] = times[Y];
        step->step[X] = times[X];
        step->border = i == 0;
        step->final = true;
    }
    return MUC_OK;
}

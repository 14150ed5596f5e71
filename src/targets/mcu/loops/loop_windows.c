/* loop_windows.c - convolutions and pools of any plain type and layout, as loops. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "graph/scales.h"
#include "targets/mcu/program/c_text.h"
#include "targets/mcu/loops/loop_nest.h"
#include "targets/mcu/tiles/tiles.h"
#include "targets/mcu/loops/loop_windows.h"

/* ---- tiles ---- */

/* pixels of a row, as a piece has them too; 1 where channels come first */
static uint32_t row_pixels(const window *w, const muc_tensor *tensor)
{
    return (uint32_t)muc_mcu_elements(w->l, tensor, w->first + 1, w->channel);
}

/* an operand whose rows go with those of y */
static muc_mcu_tile_operand tile_of(const window *w, const muc_tensor *tensor, const char *name,
                                    bool by_channel)
{
    uint32_t size = muc_dtype_get(tensor->dtype)->block_bytes;

    return (muc_mcu_tile_operand){
        .name = name,
        .rows = muc_mcu_dim(w->l, tensor, w->first),
        .stride = 1,
        .window = 1,
        .pixels = row_pixels(w, tensor),
        .pixel_bytes = muc_mcu_dim(w->l, tensor, w->channel) * size,
        .channel_bytes = by_channel ? size : 0,
    };
}

/* an operand that depends on channels alone */
static muc_mcu_tile_operand tile_of_weights(const window *w, const muc_tensor *tensor,
                                            const char *name)
{
    uint32_t elements = (uint32_t)muc_mcu_elements(w->l, tensor, 0, tensor->rank);
    uint32_t bytes = elements * muc_dtype_get(tensor->dtype)->block_bytes;

    return (muc_mcu_tile_operand){
        .name = name,
        .rows = 1,
        .pixels = 1,
        .pixel_bytes = bytes,
        .channel_bytes = elements > 1 ? bytes / muc_mcu_dim(w->l, w->y, w->channel) : 0,
        .is_constant = tensor->kind == MUC_TENSOR_CONST,
    };
}

/* an operand of which each channel of y has its own part, or all the whole */
static muc_mcu_tile_operand plane_of(const window *w, const muc_tensor *tensor, const char *name,
                                     bool by_channel)
{
    muc_mcu_tile_operand operand = tile_of_weights(w, tensor, name);

    if (by_channel && (operand.channel_bytes || tensor == w->x || tensor == w->y)) {
        operand.rows = muc_mcu_dim(w->l, w->y, w->channel);
        operand.stride = operand.window = 1;
        operand.pixel_bytes /= operand.rows;
    }
    operand.channel_bytes = 0;
    return operand;
}

/* the step works in these tiles if they fit */
static muc_status take(window *w, const muc_mcu_tile_layer *layer, bool *fits)
{
    muc_mcu_lowering *l = w->l;
    muc_mcu_tiling tiling;

    MUC_TRY(muc_mcu_find_tiles(l, layer, &tiling, fits));
    l->step->note = l->note;
    l->note = NULL;
    return *fits ? muc_mcu_begin_pieces(l, layer, &tiling) : MUC_OK;
}

/* Channels first: some planes of y at a time. work: for one of their elements. */
static muc_status use_planes(window *w, uint64_t work)
{
    muc_mcu_tile_layer layer = {
        .name = w->l->step->name,
        .rows = muc_mcu_dim(w->l, w->y, w->channel),
        .channels = 1,
        .multiple = 1,
        .work = work * muc_mcu_elements(w->l, w->y, w->first, w->y->rank),
    };

    layer.operands[layer.operand_count++] = plane_of(w, w->x, "a", w->by_channel);
    for (uint32_t i = 1; i < w->node->input_count; i++)
        if (muc_mcu_input(w->l, w->node, i))
            layer.operands[layer.operand_count++] =
                plane_of(w, muc_mcu_input(w->l, w->node, i), muc_mcu_input_name(i), true);
    layer.operands[layer.operand_count++] = plane_of(w, w->y, "y", true);
    return take(w, &layer, &w->planes);
}

/* Works in tiles if the machine has them: rows of one image, channels last and either all together
 * or each by itself. inputs: channels of x that one of y sums. */
static muc_status use_tiles(window *w, uint64_t inputs)
{
    muc_mcu_lowering *l = w->l;
    uint32_t channels = muc_mcu_dim(l, w->y, w->channel);
    muc_mcu_tile_operand x = tile_of(w, w->x, "a", w->by_channel);
    muc_mcu_tile_layer layer = {
        .name = l->step->name,
        .rows = muc_mcu_dim(l, w->y, w->first),
        .channels = channels,
        .multiple = 1,
        .work = row_pixels(w, w->y) * inputs,
    };

    for (uint32_t i = 0; i < w->spatial; i++)
        layer.work *= w->kernel[i];
    if (!muc_mcu_has_tiles(l->program->machine) || muc_mcu_dim(l, w->y, 0) != 1 ||
        w->node->output_count != 1) /* pieces write y alone */
        return MUC_OK;
    if (w->channel == 1)
        return use_planes(w, layer.work);

    x.stride = (uint32_t)item(w->strides, 0, 1);
    x.window = (w->kernel[0] - 1) * (uint32_t)item(w->dilations, 0, 1) + 1;
    x.pad = (uint32_t)item(w->pads, 0, 0);
    layer.operands[layer.operand_count++] = x;
    for (uint32_t i = 1; i < w->node->input_count; i++)
        if (muc_mcu_input(l, w->node, i))
            layer.operands[layer.operand_count++] =
                tile_of_weights(w, muc_mcu_input(l, w->node, i), muc_mcu_input_name(i));
    layer.operands[layer.operand_count++] = tile_of(w, w->y, "y", true);
    return take(w, &layer, &w->tiled);
}

/* loops over images, places and channels of y: n0, o0.., c0 */
static unsigned open_outputs(const window *w)
{
    unsigned depth = 1;

    loop(w, &depth, "n", 0, muc_mcu_dim(w->l, w->y, 0));
    for (uint32_t i = 0; i < w->spatial; i++)
        if (i == 0 && w->tiled)
            line(w, depth++, "for (uint32_t o0 = piece->row; o0 < piece->row + rows; o0++) {");
        else
            loop(w, &depth, "o", i, muc_mcu_dim(w->l, w->y, w->first + i));
    if (w->tiled || w->planes)
        line(w, depth++, "for (uint32_t c0 = 0; c0 < %s; c0++) {", w->tiled ? "channels" : "rows");
    else
        loop(w, &depth, "c", 0, muc_mcu_dim(w->l, w->y, w->channel));
    return depth;
}

/* loops over the taps that lie inside of x: k0.., x0.. */
static unsigned open_taps(const window *w, unsigned depth)
{
    for (uint32_t i = 0; i < w->spatial; i++) {
        loop(w, &depth, "k", i, w->kernel[i]);
        line(w, depth,
             "const uint32_t x%u = o%u * %" PRId64 "u + k%u * %" PRId64 "u - %" PRId64 "u;\n", i, i,
             item(w->strides, i, 1), i, item(w->dilations, i, 1), item(w->pads, i, 0));
        line(w, depth, "if (x%u >= %" PRIu32 "u) /* below 0, too */", i,
             muc_mcu_dim(w->l, w->x, w->first + i));
        line(w, depth + 1, "continue;");
    }
    return depth;
}

/* "n0 * 10u + x0 * 5u + channel * 1u" */
static void print_place(const window *w, const muc_tensor *tensor, const char *place,
                        const char *channel)
{
    muc_text *text = &w->l->text;

    bool packed = w->tiled && (tensor == w->y || w->by_channel);

    muc_text_add(text, "n0 * %" PRId64 "u", muc_mcu_dense(w->l, tensor, 0).factor);
    for (uint32_t i = 0; i < w->spatial; i++) {
        int64_t stride = muc_mcu_dense(w->l, tensor, w->first + i).factor;

        if (w->tiled && i == 0)
            muc_text_add(text, " + (%s0 - piece->%s)", place,
                         tensor == w->y ? "row" : "data_row[0]");
        else
            muc_text_add(text, " + %s%u", place, i);
        if (packed)
            muc_text_add(text, " * channels * %" PRId64 "u",
                         stride / muc_mcu_dim(w->l, tensor, w->channel));
        else
            muc_text_add(text, " * %" PRId64 "u", stride);
    }
    muc_text_add(text, " + %s * %" PRId64 "u", channel,
                 muc_mcu_dense(w->l, tensor, w->channel).factor);
}

static void set_output(const window *w, unsigned depth, const char *value)
{
    muc_mcu_indent(&w->l->text, depth);
    muc_text_add(&w->l->text, "y[");
    print_place(w, w->y, "o", "c0");
    muc_text_add(&w->l->text, "] = %s;\n", value);
}

/* ---- TensorFlow Lite's arithmetic, for uint8, several images and weights with a zero point ----
 */

static bool is_byte(const muc_tensor *tensor)
{
    return tensor->quantization && muc_mcu_is_byte(tensor);
}

static bool is_wide(const muc_tensor *tensor)
{
    return tensor->quantization && tensor->dtype == MUC_I16;
}

/* sums of bytes and a bias of 32 bits, to bytes of one scale; or of int16 with bytes, in 64 bits */
static bool is_byte_product(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *w = muc_mcu_input(l, node, 1);
    const muc_tensor *bias = muc_mcu_input(l, node, 2), *y = muc_mcu_output(l, node, 0);

    return ((is_byte(x) && is_byte(y) && (!bias || bias->dtype == MUC_I32)) ||
            (is_wide(x) && is_wide(y) &&
             (!bias || bias->dtype == MUC_I32 || bias->dtype == MUC_I64))) &&
           x->quantization->count == 1 && is_byte(w) && y->quantization->count == 1 &&
           (w->quantization->count == 1 || w->quantization->axis == 0);
}

/* the zero point and the factor of the sums of each output channel */
static void print_channels(const window *w, uint32_t channels)
{
    const muc_tensor *weights = muc_mcu_input(w->l, w->node, 1);
    const muc_quantization *q = weights->quantization;

    line(w, 1, "static const int32_t channel[%" PRIu32 "][3] = {", channels);
    for (uint32_t c = 0; c < channels; c++) {
        muc_multiplier m = muc_scale_product(w->node, w->x, weights, w->y, c);

        line(w, 2, "{ %" PRId32 ", %" PRId32 ", %" PRId32 " },",
             q->zero_points[q->count > 1 ? c : 0], m.mantissa, m.shift);
    }
    line(w, 1, "};\n");
}

/* the sum of channel c0 as an integer of y */
static void set_requantized(const window *w, unsigned depth)
{
    int32_t least, most, zero = muc_zero_of(w->y);

    muc_scale_clamp(w->node, w->y, &least, &most);
    line(w, depth, "sum = mur_clamp(%s(sum, channel[c0][1], channel[c0][2]),",
         is_wide(w->x) ? "mur_scale_wide_q31" : "mur_scale_q31");
    line(w, depth + 4, "%" PRId32 ", %" PRId32 ") + (%" PRId32 ");", least - zero, most - zero,
         zero);
}

/* "sum", of this type, becomes an element of y */
static void set_sum(const window *w, const char *type, unsigned depth)
{
    const char *to = muc_mcu_c_type(w->y->dtype);
    char value[32];

    snprintf(value, sizeof(value), "(%s)sum", to);
    set_output(w, depth, strcmp(type, to) == 0 ? "sum" : value);
}

/* ---- convolution ---- */

/* What C calls the parts of a product, in the dialect of its operands. */
typedef struct dialect {
    const char *type;                      /* of a sum */
    char bias[16], x_zero[16], w_zero[16]; /* what it begins with; zero points, "" for none */
    bool wraps;                            /* plain numbers, whose sums are the output's */
    void (*round)(const window *w, unsigned depth); /* "sum" as an integer of y; NULL: it is */
} dialect;

/* "d[c0]", or the only element, of an input for the output's channels; false if it is absent */
static bool name_element(const window *w, uint32_t input, char text[16])
{
    const muc_tensor *tensor = input ? muc_mcu_input(w->l, w->node, input) : NULL;

    if (tensor)
        snprintf(text, 16, "%s[%s]", muc_mcu_input_name(input),
                 muc_mcu_most_elements(w->l, tensor) > 1 ? "c0" : "0");
    return tensor != NULL;
}

static void round_as_quantlib(const window *w, unsigned depth)
{
    char mul[16], add[16];

    (void)name_element(w, 2, mul);
    (void)name_element(w, 3, add);
    muc_mcu_indent(&w->l->text, depth);
    muc_text_add(&w->l->text, "sum = mur_quantlib_requant(sum, %s, %s", mul, add);
    muc_mcu_print_requant(&w->l->text, w->node);
    muc_text_add(&w->l->text, ");\n");
}

static void round_as_onnx(const window *w, unsigned depth)
{
    int64_t low = 0, high = 0;
    char scale[16];

    (void)name_element(w, 4, scale);
    muc_dtype_range(w->y->dtype, &low, &high);
    line(w, depth, "sum = mur_quantize_sum(sum, (double)b[0] * (double)%s / (double)g[0],", scale);
    line(w, depth + 4, "h[0], %" PRId64 ", %" PRId64 ");", low, high);
}

static dialect dialect_of(const window *w)
{
    const muc_product *in = muc_op_product(w->node->op);
    dialect d = { .type = is_wide(w->x) ? "int64_t" : "int32_t", .bias = "0" };
    bool less;

    if (in->bias && muc_mcu_input(w->l, w->node, in->bias))
        snprintf(d.bias, sizeof(d.bias), "%s[c0]", muc_mcu_input_name(in->bias));
    if (w->x->quantization) {
        snprintf(d.x_zero, sizeof(d.x_zero), "(%" PRId32 ")", muc_zero_of(w->x));
        snprintf(d.w_zero, sizeof(d.w_zero), "channel[c0][0]");
        d.round = set_requantized;
        return d;
    }
    less = name_element(w, in->zero, d.x_zero);
    less = name_element(w, in->weights_zero, d.w_zero) || less;
    d.round = muc_node_attribute(w->node, MUC_KEY_SHIFT) ? round_as_quantlib
              : in->weights != 1                         ? round_as_onnx
                                                         : NULL;
    if (less || d.round)
        return d;
    d.type = muc_mcu_c_type(w->y->dtype);
    d.wraps = true;
    if (w->y->dtype == MUC_F32 && strcmp(d.bias, "0") == 0)
        strcpy(d.bias, "0.0f");
    return d;
}

bool muc_mcu_takes_conv_loops(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_product *in = muc_op_product(node->op);
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);

    if (!is_static_window(l, node))
        return false;
    if (x->quantization)
        return is_byte_product(l, node);
    if (muc_node_attribute(node, MUC_KEY_SHIFT))
        return muc_mcu_inputs_are_static(l, node);
    if (in->weights == 1 && (!in->zero || node->input_count == 2)) /* no zero points */
        return muc_mcu_is_plain(x) && muc_mcu_is_plain(y);
    return muc_mcu_inputs_are_static(l, node) && muc_mcu_is_byte(x) &&
           muc_mcu_is_byte(muc_mcu_input(l, node, in->weights)) &&
           (y->dtype == MUC_I32 || muc_mcu_is_byte(y));
}

static void less_zero(muc_text *text, const char *zero)
{
    if (zero[0])
        muc_text_add(text, " - %s)", zero);
}

/* "sum += (a[..] - zero) * (b[..] - zero);" */
static void add_product(const window *w, const dialect *d, unsigned depth, const char *channel)
{
    const uint32_t input = muc_op_product(w->node->op)->weights;
    const muc_tensor *weights = muc_mcu_input(w->l, w->node, input);
    bool last = w->channel != 1, is_real = w->y->dtype == MUC_F32;
    muc_text *text = &w->l->text;

    muc_mcu_indent(text, depth);
    if (d->wraps && !is_real)
        muc_text_add(text, "sum = (%s)(sum + ", d->type);
    else
        muc_text_add(text, "sum += ");
    muc_text_add(text, d->x_zero[0] ? "(a[" : "a[");
    print_place(w, w->x, "x", channel);
    muc_text_add(text, "]");
    less_zero(text, d->x_zero);
    muc_text_add(text, " * %s%s[c0 * %" PRId64 "u + i0 * %" PRId64 "u", d->w_zero[0] ? "(" : "",
                 muc_mcu_input_name(input), muc_mcu_dense(w->l, weights, 0).factor,
                 muc_mcu_dense(w->l, weights, last ? weights->rank - 1 : 1).factor);
    for (uint32_t i = 0; i < w->spatial; i++)
        muc_text_add(text, " + k%u * %" PRId64 "u", i,
                     muc_mcu_dense(w->l, weights, (last ? 1 : 2) + i).factor);
    muc_text_add(text, "]");
    less_zero(text, d->w_zero);
    muc_text_add(text, d->wraps && !is_real ? ");\n" : ";\n");
}

muc_status muc_mcu_write_conv_loops(muc_mcu_lowering *l, const muc_node *node)
{
    window w = window_of(l, node);
    const muc_tensor *weights = muc_mcu_input(l, node, muc_op_product(node->op)->weights);
    const dialect d = dialect_of(&w);
    bool last = w.channel != 1;
    uint32_t groups = (uint32_t)muc_node_integer_or(node, MUC_KEY_GROUPS, 1);
    uint32_t in = muc_mcu_dim(l, w.x, w.channel) / groups;
    uint32_t out = muc_mcu_dim(l, w.y, w.channel);
    uint64_t macs = in * muc_mcu_most_elements(l, w.y);
    unsigned outer, depth;

    for (uint32_t i = 0; i < w.spatial; i++) {
        w.kernel[i] = muc_mcu_dim(l, weights, (last ? 1 : 2) + i);
        macs *= w.kernel[i];
    }
    w.by_channel = groups > 1;
    MUC_TRY(muc_mcu_begin_function(l, node));
    if (w.x->quantization)
        print_channels(&w, out);
    if ((d.wraps || d.round == round_as_quantlib) && (groups == 1 || (in == 1 && out == groups)))
        MUC_TRY(use_tiles(&w, in));
    outer = open_outputs(&w);
    line(&w, outer, "%s sum = %s;\n", d.type, d.bias);
    depth = open_taps(&w, outer);
    loop(&w, &depth, "i", 0, in);
    if (groups > 1)
        line(&w, depth, "const uint32_t from = c0 / %" PRIu32 "u * %" PRIu32 "u + i0;\n",
             out / groups, in);
    add_product(&w, &d, depth, groups > 1 ? "from" : "i0");
    close_all(&w, depth, outer);
    if (d.round)
        d.round(&w, outer);
    set_sum(&w, d.type, outer);
    close_all(&w, outer, 1);
    return muc_mcu_end_function(l, 0, macs);
}

bool muc_mcu_takes_linear_quantized(const muc_mcu_lowering *l, const muc_node *node)
{
    return muc_mcu_is_static(l, muc_mcu_input(l, node, 0)) && is_byte_product(l, node);
}

muc_status muc_mcu_write_linear_quantized(muc_mcu_lowering *l, const muc_node *node)
{
    window w = {
        .l = l, .node = node, .x = muc_mcu_input(l, node, 0), .y = muc_mcu_output(l, node, 0)
    };
    uint32_t in = muc_mcu_dim(l, w.x, w.x->rank - 1), out = muc_mcu_dim(l, w.y, w.y->rank - 1);
    unsigned depth = 1;

    MUC_TRY(muc_mcu_begin_function(l, node));
    print_channels(&w, out);
    loop(&w, &depth, "r", 0, (uint32_t)muc_mcu_elements(l, w.x, 0, w.x->rank - 1));
    loop(&w, &depth, "c", 0, out);
    line(&w, depth, "%s sum = %s;\n", is_wide(w.x) ? "int64_t" : "int32_t",
         muc_mcu_input(l, node, 2) ? "c[c0]" : "0");
    line(&w, depth, "for (uint32_t i = 0; i < %" PRIu32 "u; i++)", in);
    line(&w, depth + 1,
         "sum += (a[r0 * %" PRIu32 "u + i] - (%" PRId32 ")) * (b[c0 * %" PRIu32
         "u + i] - channel[c0][0]);",
         in, muc_zero_of(w.x), in);
    set_requantized(&w, depth);
    line(&w, depth, "y[r0 * %" PRIu32 "u + c0] = (%s)sum;", out, muc_mcu_c_type(w.y->dtype));
    close_all(&w, depth, 1);
    return muc_mcu_end_function(l, 0, (uint64_t)in * muc_mcu_most_elements(l, w.y));
}

/* taps that count in a mean although they lie in the padding: those before the padded end */
static void count_padding(const window *w, unsigned depth)
{
    line(w, depth, "int32_t count = 1;\n");
    for (uint32_t i = 0; i < w->spatial; i++) {
        uint64_t padded = muc_mcu_dim(w->l, w->x, w->first + i) + (uint64_t)item(w->pads, i, 0) +
                          (uint64_t)item(w->pads, w->spatial + i, 0);
        int64_t dilation = item(w->dilations, i, 1);

        line(w, depth, "{");
        line(w, depth + 1, "int32_t inside = 0;\n");
        line(w, depth + 1, "for (uint32_t k = 0; k < %" PRIu32 "u; k++)", w->kernel[i]);
        line(w, depth + 2, "inside += o%u * %" PRId64 "u + k * %" PRId64 "u < %" PRIu64 "u;", i,
             item(w->strides, i, 1), dilation, padded);
        line(w, depth + 1, "count *= inside;");
        line(w, depth, "}");
    }
}

bool muc_mcu_takes_pool_quantized(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);

    return is_static_window(l, node) && (is_byte(x) || is_wide(x)) && x->dtype == y->dtype &&
           y->quantization && x->quantization->count == 1 && node->output_count == 1;
}

/* the taps of each window, 0 if some lie outside of x */
static int64_t whole_taps(const window *w)
{
    int64_t taps = 1;

    for (uint32_t i = 0; i < w->spatial; i++) {
        int64_t last = (int64_t)muc_mcu_dim(w->l, w->y, w->first + i) - 1;
        int64_t span = (w->kernel[i] - 1) * item(w->dilations, i, 1) + 1;

        if (item(w->pads, i, 0) ||
            last * item(w->strides, i, 1) + span > (int64_t)muc_mcu_dim(w->l, w->x, w->first + i))
            return 0;
        taps *= w->kernel[i];
    }
    return taps;
}

/* "best", a sum of "count", which is taps unless that is 0, becomes their average, halves away from
 * zero */
static void print_average(const window *w, unsigned depth, int64_t taps)
{
    int places = 0;

    if (taps == 1)
        return;
    while (INT64_C(1) << places < taps)
        places++;
    if (taps && INT64_C(1) << places == taps)
        line(w, depth, "best = mur_asr(best + mur_asr(best, 31) + %" PRId64 ", %d);", taps / 2,
             places);
    else
        line(w, depth, "best = (best + (best > 0 ? count / 2 : -(count / 2))) / count;");
}

muc_status muc_mcu_write_pool_quantized(muc_mcu_lowering *l, const muc_node *node)
{
    window w = window_of(l, node);
    const int64_t *kernel = muc_node_integers(node, MUC_KEY_KERNEL);
    bool is_max = muc_op_has(node->op, MUC_OP_SELECTS);
    bool counts_padding = muc_node_counts_padding(node);
    const char *read = counts_padding ? "read" : "count";
    int64_t whole, taps;
    int32_t least, most;
    unsigned outer, depth;
    char value[64];

    muc_scale_clamp(node, w.y, &least, &most);
    for (uint32_t i = 0; i < w.spatial; i++)
        w.kernel[i] = (uint32_t)kernel[i];
    whole = counts_padding ? 0 : whole_taps(&w);
    taps = is_max ? 0 : whole;
    MUC_TRY(muc_mcu_begin_function(l, node));
    outer = open_outputs(&w);
    line(&w, outer, "int32_t best = %s;%s", is_max ? "INT32_MIN" : "0", is_max ? "\n" : "");
    if (taps)
        line(&w, outer, "enum { count = %" PRId64 " };\n", taps);
    else if (!is_max)
        line(&w, outer, "int32_t %s = 0;\n", read);
    depth = open_taps(&w, outer);
    muc_mcu_indent(&l->text, depth);
    muc_text_add(&l->text, "const int32_t value = a[");
    print_place(&w, w.x, "x", "c0");
    muc_text_add(&l->text, "];\n\n");
    line(&w, depth, is_max ? "best = value > best ? value : best;" : "best += value;");
    if (!is_max && !taps)
        line(&w, depth, "%s++;", read);
    close_all(&w, depth, outer);
    if (counts_padding) {
        count_padding(&w, outer);
        line(&w, outer, "best += (count - %s) * (%" PRId32 ");", read, muc_zero_of(w.x));
    }
    if (!is_max && muc_node_attribute(node, MUC_KEY_ROUNDING)) /* halves up */
        line(&w, outer, "best = (best + 128 * count + count / 2) / count - 128;");
    else if (!is_max)
        print_average(&w, outer, taps);
    if (whole && w.y->dtype == MUC_I8 && least == INT8_MIN && most == INT8_MAX) /* as all bytes */
        snprintf(value, sizeof(value), "(int8_t)best");
    else
        snprintf(value, sizeof(value), "(%s)mur_clamp(best, %" PRId32 ", %" PRId32 ")",
                 muc_mcu_c_type(w.y->dtype), least, most);
    set_output(&w, outer, value);
    close_all(&w, outer, 1);
    return muc_mcu_end_function(l, 0, 0);
}

/* ---- transposed convolution ---- */

bool muc_mcu_takes_conv_transpose_loops(const muc_mcu_lowering *l, const muc_node *node)
{
    bool real =
        muc_mcu_input(l, node, 0)->dtype == MUC_F32 && muc_mcu_input(l, node, 1)->dtype == MUC_F32;

    return is_static_window(l, node) &&
           (real ||
            (is_byte_product(l, node) && muc_node_integer_or(node, MUC_KEY_CHANNELS_LAST, 0) &&
             muc_node_integer_or(node, MUC_KEY_GROUPS, 1) == 1));
}

/* loops over the taps and the elements of x whose share of a place of y they are: k0.., x0.. */
static unsigned open_shares(const window *w, unsigned depth)
{
    for (uint32_t i = 0; i < w->spatial; i++) {
        loop(w, &depth, "k", i, w->kernel[i]);
        line(w, depth,
             "const uint32_t at%u = o%u + %" PRId64 "u - k%u * %" PRId64 "u, x%u = at%u / %" PRId64
             "u;\n",
             i, i, item(w->pads, i, 0), i, item(w->dilations, i, 1), i, i, item(w->strides, i, 1));
        line(w, depth, "if (at%u %% %" PRId64 "u != 0 || x%u >= %" PRIu32 "u) /* below 0, too */",
             i, item(w->strides, i, 1), i, muc_mcu_dim(w->l, w->x, w->first + i));
        line(w, depth + 1, "continue;");
    }
    return depth;
}

/* a share of the sum: an element of x times a weight, of integers less their zero points */
static void add_share(const window *w, const muc_tensor *weights, uint32_t out, unsigned depth)
{
    bool last = w->channel != 1, quantized = w->x->quantization != NULL;

    muc_mcu_indent(&w->l->text, depth);
    muc_text_add(&w->l->text, quantized ? "sum += (a[" : "sum += a[");
    print_place(w, w->x, "x", "from");
    if (quantized)
        muc_text_add(&w->l->text, "] - (%" PRId32 ")) * (b[", muc_zero_of(w->x));
    else
        muc_text_add(&w->l->text, "] * b[");
    muc_text_add(&w->l->text, "from * %" PRId64 "u + c0 %% %" PRIu32 "u * %" PRId64 "u",
                 muc_mcu_dense(w->l, weights, last ? weights->rank - 1 : 0).factor, out,
                 muc_mcu_dense(w->l, weights, last ? 0 : 1).factor);
    for (uint32_t i = 0; i < w->spatial; i++)
        muc_text_add(&w->l->text, " + k%u * %" PRId64 "u", i,
                     muc_mcu_dense(w->l, weights, (last ? 1 : 2) + i).factor);
    muc_text_add(&w->l->text, quantized ? "] - channel[c0][0]);\n" : "];\n");
}

muc_status muc_mcu_write_conv_transpose_loops(muc_mcu_lowering *l, const muc_node *node)
{
    window w = window_of(l, node);
    const muc_tensor *weights = muc_mcu_input(l, node, 1);
    bool last = w.channel != 1; /* weights [out, kernel.., in], else [in, out / groups, kernel..] */
    uint32_t groups = (uint32_t)muc_node_integer_or(node, MUC_KEY_GROUPS, 1);
    uint32_t in = muc_mcu_dim(l, w.x, w.channel) / groups;
    uint32_t out = muc_mcu_dim(l, w.y, w.channel) / groups;
    const char *start = muc_mcu_input(l, node, 2) ? "c[c0]" : w.x->quantization ? "0" : "0.0f";
    const char *type = is_wide(w.x) ? "int64_t" : w.x->quantization ? "int32_t" : "float";
    unsigned outer, depth;
    uint64_t taps = in;

    for (uint32_t i = 0; i < w.spatial; i++) {
        w.kernel[i] = muc_mcu_dim(l, weights, (last ? 1 : 2) + i);
        taps *= w.kernel[i];
    }
    MUC_TRY(muc_mcu_begin_function(l, node));
    if (w.x->quantization)
        print_channels(&w, out);
    outer = open_outputs(&w);
    line(&w, outer, "%s sum = %s;\n", type, start);
    depth = open_shares(&w, outer);
    loop(&w, &depth, "i", 0, in);
    line(&w, depth, "const uint32_t from = c0 / %" PRIu32 "u * %" PRIu32 "u + i0;\n", out, in);
    add_share(&w, weights, out, depth);
    close_all(&w, depth, outer);
    if (w.x->quantization)
        set_requantized(&w, outer);
    set_sum(&w, type, outer);
    close_all(&w, outer, 1);
    return muc_mcu_end_function(l, 0, taps * muc_mcu_most_elements(l, w.x) / in * out);
}

/* ---- pools ---- */

bool muc_mcu_takes_pool_loops(const muc_mcu_lowering *l, const muc_node *node)
{
    return is_static_window(l, node) && muc_mcu_is_plain(muc_mcu_input(l, node, 0)) &&
           (muc_op_has(node->op, MUC_OP_SELECTS) || muc_mcu_input(l, node, 0)->dtype == MUC_F32);
}

/* the index of the tap in x, with channels first */
static void print_flat_index(const window *w, unsigned depth)
{
    bool column_major = muc_node_integer_or(w->node, MUC_KEY_COLUMN_MAJOR, 0) == 1;

    muc_mcu_indent(&w->l->text, depth);
    muc_text_add(&w->l->text, "place = n0 * %" PRIu32 "u + c0",
                 muc_mcu_dim(w->l, w->x, w->channel));
    if (column_major) {
        uint32_t stride = 1;

        muc_text_add(&w->l->text, ";\n");
        line(w, depth, "place = place * %" PRIu64 "u",
             muc_mcu_elements(w->l, w->x, w->first, w->first + w->spatial));
        for (uint32_t i = 0; i < w->spatial; i++) {
            line(w, depth + 1, "+ x%u * %" PRIu32 "u%s", i, stride, i + 1 < w->spatial ? "" : ";");
            stride *= muc_mcu_dim(w->l, w->x, w->first + i);
        }
        return;
    }
    muc_text_add(&w->l->text, ";\n");
    for (uint32_t i = 0; i < w->spatial; i++)
        line(w, depth, "place = place * %" PRIu32 "u + x%u;", muc_mcu_dim(w->l, w->x, w->first + i),
             i);
}

muc_status muc_mcu_write_pool_loops(muc_mcu_lowering *l, const muc_node *node)
{
    window w = window_of(l, node);
    const int64_t *kernel = muc_node_integers(node, MUC_KEY_KERNEL);
    bool is_max = muc_op_has(node->op, MUC_OP_SELECTS), places = node->output_count > 1;
    int64_t order = muc_node_integer_or(node, MUC_KEY_P, 0);
    bool counts_padding = muc_node_counts_padding(node);
    const char *type = muc_mcu_c_type(w.x->dtype);
    unsigned outer, depth;

    for (uint32_t i = 0; i < w.spatial; i++)
        w.kernel[i] = (uint32_t)kernel[i];
    w.by_channel = true;
    MUC_TRY(muc_mcu_begin_function(l, node));
    MUC_TRY(use_tiles(&w, 1));
    outer = open_outputs(&w);
    line(&w, outer, "%s best = 0;", type);
    if (places)
        line(&w, outer, "int64_t place = 0;");
    if (is_max)
        line(&w, outer, "int any = 0;\n");
    else if (counts_padding && order == 0)
        count_padding(&w, outer);
    else if (order == 0)
        line(&w, outer, "uint32_t count = 0;\n");
    depth = open_taps(&w, outer);
    muc_mcu_indent(&l->text, depth);
    muc_text_add(&l->text, "const %s value = a[", type);
    print_place(&w, w.x, "x", "c0");
    muc_text_add(&l->text, "];\n\n");
    if (is_max) {
        line(&w, depth, "if (!any || value > best) {");
        line(&w, depth + 1, "best = value;");
        if (places) {
            print_flat_index(&w, depth + 1);
        }
        line(&w, depth, "}");
        line(&w, depth, "any = 1;");
    } else if (order) {
        line(&w, depth,
             order == 1   ? "best += mur_abs(value);"
             : order == 2 ? "best += value * value;"
                          : "best += mur_real_pow(mur_abs(value), %" PRId64 ".0f);",
             order);
    } else {
        line(&w, depth, "best += value;");
        if (!counts_padding)
            line(&w, depth, "count++;");
    }
    close_all(&w, depth, outer);
    if (order > 2)
        line(&w, outer, "best = mur_real_pow(best, 1.0f / %" PRId64 ".0f);", order);
    set_output(&w, outer,
               is_max || order > 2 || order == 1 ? "best"
               : order                           ? "mur_sqrt(best)"
                                                 : "best / (float)count");
    if (places) {
        muc_mcu_indent(&l->text, outer);
        muc_text_add(&l->text, "y1[");
        print_place(&w, w.y, "o", "c0");
        muc_text_add(&l->text, "] = place;\n");
    }
    close_all(&w, outer, 1);
    return muc_mcu_end_function(l, 0, 0);
}

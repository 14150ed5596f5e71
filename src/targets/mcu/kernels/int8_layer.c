/* int8_layer.c - which kernel carries out a convolution, and descriptors as text. */
#include "targets/mcu/kernels/int8_layer.h"

#include <inttypes.h>
#include <string.h>

#include "graph/scales.h"

/* ---- kernels ---- */

enum { isa_ref = MUC_MCU_ISA_NONE, isa_dsp = MUC_MCU_ISA_DSP, isa_mve = MUC_MCU_ISA_MVE };
enum { isa_single = MUC_MCU_ISA_SINGLE, isa_rv = MUC_MCU_ISA_RV, isa_rvv = MUC_MCU_ISA_RVV };

enum { MOST_SUITS = 2 }; /* muc_mcu_isa_suits */

#define FUNCTIONS_CONV(kernel) \
    .fits = kernel##_fits, .packed_bytes = kernel##_packed_bytes, .pack = kernel##_pack, \
    .scratch_bytes = kernel##_scratch_bytes
#define FUNCTIONS_UNARY(kernel) .fits = NULL
#define FUNCTIONS_BINARY(kernel) .fits = NULL
#define FUNCTIONS_PRODUCT(kernel) .product_scratch_bytes = kernel##_scratch_bytes
static const muc_mcu_kernel kernels[] = {
#define MUR_NN(set, of, kind, descriptor) \
    { .isa = (muc_mcu_isa)isa_##set, \
      .name = #of, \
      .function = "mur_" #set "_" #of, \
      FUNCTIONS_##kind(mur_##set##_##of) },
#include "mur_nn.def"
#undef MUR_NN
};

const muc_mcu_kernel *muc_mcu_find_kernel(muc_mcu_isa isa, const char *name)
{
    const muc_mcu_kernel *found = NULL;
    int best = -1;

    for (size_t i = 0; i < MUC_COUNT(kernels); i++) {
        int suits = muc_mcu_isa_suits(isa, kernels[i].isa);

        if (suits > best && strcmp(kernels[i].name, name) == 0) {
            found = &kernels[i];
            best = suits;
        }
    }
    return found;
}

bool muc_mcu_is_depthwise(const muc_mcu_kernel *kernel)
{
    return strstr(kernel->function, "_depthwise_") != NULL;
}

static bool is_fc(const muc_mcu_kernel *kernel)
{
    return strstr(kernel->function, "_fc_") != NULL;
}

muc_status muc_mcu_pack_conv(muc_mcu_lowering *l, const muc_mcu_kernel *kernel,
                             const mur_conv_s8 *layer, const mur_conv_plain *plain,
                             uint32_t *packed)
{
    size_t bytes = kernel->packed_bytes(layer);
    const uint8_t *zeros = muc_mcu_zeros(l, bytes);
    uint8_t *data;

    if (zeros)
        return muc_mcu_new_packed(l, "weights", zeros, bytes, packed);
    MUC_TRY(muc_arena_new(l->ctx, &l->program->arena, bytes, 1, (void **)&data));
    kernel->pack(layer, plain, data);
    return muc_mcu_new_packed(l, "weights", data, bytes, packed);
}

bool muc_mcu_conv_lead(const muc_mcu_kernel *kernel, const mur_conv_shape *shape, int32_t *lead)
{
    if (muc_mcu_is_depthwise(kernel)) {
        *lead = 0;
        return shape->in_c == shape->out_c && shape->out_h <= shape->in_h &&
               shape->out_w <= shape->in_w && shape->in_pitch == shape->in_w * shape->in_c &&
               shape->out_pitch == shape->out_w * shape->out_c;
    }
    *lead = is_fc(kernel) ? mur_fc_s8_lead(shape) : mur_conv_s8_lead(shape);
    return true;
}

static bool fits_all(const muc_mcu_kernel *kernel, const mur_conv_s8 *layers, uint32_t count,
                     const mur_conv_plain *plain)
{
    for (uint32_t i = 0; i < count; i++)
        if (!kernel->fits(&layers[i], plain))
            return false;
    return true;
}

/* does each output channel see one input channel, and are there few outputs for each? */
static bool has_apart(const mur_conv_shape *shape)
{
    return shape->groups > 1 || (shape->in_c == 1 && shape->out_c <= 2);
}

static bool is_apart(const muc_mcu_kernel *kernel)
{
    return strstr(kernel->function, "_apart_") != NULL;
}

/* for layers of such channels, whether or not it may overwrite its input as depthwise ones do */
static bool is_of_apart(const muc_mcu_kernel *kernel)
{
    return muc_mcu_is_depthwise(kernel) || is_apart(kernel);
}

static bool is_few(const muc_mcu_kernel *kernel)
{
    return strstr(kernel->function, "_few_") != NULL || strstr(kernel->function, "_one_") != NULL;
}

/* windows of a line that lie within it */
static int32_t count_inside(int32_t in, int32_t out, int32_t kernel, int32_t stride,
                            int32_t dilation, int32_t pad)
{
    int32_t count = 0;

    for (int32_t i = 0; i < out; i++)
        count += i * stride >= pad && i * stride - pad + (kernel - 1) * dilation < in;
    return count;
}

/* Is it worth while to pad rows: lie no more windows inside than so many fifths, or have rows less
 * than four pixels, and some over an edge? */
static bool is_narrow(const mur_conv_shape *s, int32_t fifths)
{
    int32_t rows =
        count_inside(s->in_h, s->out_h, s->kernel_h, s->stride_h, s->dilation_h, s->pad_top);
    int32_t columns =
        count_inside(s->in_w, s->out_w, s->kernel_w, s->stride_w, s->dilation_w, s->pad_left);

    return 5 * rows * columns <= fifths * s->out_h * s->out_w ||
           (s->out_w < 4 && columns < s->out_w);
}

enum { FEW_INPUTS = 28 }; /* where one instruction is issued at a time */

/* How well a kernel suits a layer of the machine. Those of narrow rows suit no others; of few
 * inputs, gathering takes as long as products, and where one instruction is issued at a time, more
 * inputs are read in less time by others. A dual-issue core's kernel makes a row's last pixels,
 * fewer than four, one by one, so rows of two pixels, or of three beside no border, go by that of a
 * single-issue core, and narrow ones by its kernel for them. */
static int suits_layer(muc_mcu_isa isa, const muc_mcu_kernel *kernel, const mur_conv_shape *s)
{
    int32_t last = (s->out_w - 1) * s->stride_w + (s->kernel_w - 1) * s->dilation_w;
    bool pads = strstr(kernel->function, "_narrow_") != NULL;

    if (pads && !is_narrow(s, is_few(kernel) ? 4 : 2))
        return -1;
    if (isa == MUC_MCU_ISA_SINGLE && is_few(kernel) &&
        s->kernel_h * s->kernel_w * (s->in_c / s->groups) > FEW_INPUTS)
        return -1;
    if (isa == MUC_MCU_ISA_MVE && is_apart(kernel) && !mur_mve_is_apart(s))
        return 0;
    if (isa == MUC_MCU_ISA_MVE && strstr(kernel->function, "_tiny_") && s->out_w < 4)
        return 0; /* the others' fours go on from row to row */
    if (isa == MUC_MCU_ISA_DSP && kernel->isa == MUC_MCU_ISA_SINGLE &&
        (s->out_w == 3 ? s->pad_left == 0 && last < s->in_w : s->out_w == 2 || pads))
        return MOST_SUITS;
    return muc_mcu_isa_suits(isa, kernel->isa);
}

/* One for the layer's kind, depthwise, of few vectors or of few inputs, before those for all,
 * whatever their instruction sets: they know what a window is to that kind. Helium takes its own
 * for few inputs. */
const muc_mcu_kernel *muc_mcu_find_conv(muc_mcu_isa isa, const mur_conv_s8 *layers, uint32_t count,
                                        const mur_conv_plain *plain)
{
    const muc_mcu_kernel *found = NULL;
    const mur_conv_shape *s = &layers->shape;
    const int32_t four = 4; /* channels that vectors make together */
    bool has_few = s->groups > 1 && s->out_c < four * s->groups;
    int best = -1;

    for (size_t i = 0; i < MUC_COUNT(kernels); i++) {
        int suits = suits_layer(isa, &kernels[i], &layers->shape);
        bool is_its_kind = is_fc(&kernels[i]) || (is_few(&kernels[i]) && isa != MUC_MCU_ISA_MVE) ||
                           (has_apart(&layers->shape) && is_of_apart(&kernels[i]));
        int worth =
            suits + (is_its_kind ? MOST_SUITS + 1 : 0) +
            (kernels[i].isa == MUC_MCU_ISA_MVE && (is_its_kind || !has_few) ? MOST_SUITS + 1 : 0);

        if (suits >= 0 && worth > best && kernels[i].fits &&
            fits_all(&kernels[i], layers, count, plain)) {
            found = &kernels[i];
            best = worth;
        }
    }
    return found;
}

static bool has_step(const muc_mcu_program *program, const char *function)
{
    for (uint32_t i = 0; i < program->step_count; i++)
        if (strcmp(program->steps[i].function, function) == 0)
            return true;
    return false;
}

/* whether a step of the program runs vectors of many inputs, whose kernels take few, too */
static bool has_vectors_of_many(const muc_mcu_program *program)
{
    for (size_t i = 0; i < MUC_COUNT(kernels); i++)
        if (is_fc(&kernels[i]) && !is_few(&kernels[i]) && has_step(program, kernels[i].function))
            return true;
    return false;
}

const muc_mcu_kernel *muc_mcu_find_linked(const muc_mcu_program *program,
                                          const muc_mcu_kernel *kernel, const mur_conv_s8 *layers,
                                          uint32_t count, const mur_conv_plain *plain)
{
    enum { FEW = 1024, FEW_BYTES = 1280 };
    bool is_small = is_fc(kernel) && muc_mcu_conv_macs(&layers->shape) <= FEW;
    bool has_many = is_fc(kernel) && is_few(kernel) && has_vectors_of_many(program);

    if (!(is_small || has_many || is_apart(kernel)) || has_step(program, kernel->function) ||
        (is_few(kernel) && kernel->packed_bytes(layers) <= FEW_BYTES))
        return kernel;
    for (size_t i = 0; (is_small || is_apart(kernel)) && i < MUC_COUNT(kernels); i++)
        if (kernels[i].fits && !is_fc(&kernels[i]) &&
            muc_mcu_is_depthwise(&kernels[i]) == is_apart(kernel) &&
            has_step(program, kernels[i].function) && fits_all(&kernels[i], layers, count, plain))
            return &kernels[i];
    for (size_t i = 0; has_many && i < MUC_COUNT(kernels); i++)
        if (is_fc(&kernels[i]) && !is_few(&kernels[i]) && kernels[i].isa == kernel->isa &&
            fits_all(&kernels[i], layers, count, plain))
            return &kernels[i];
    return kernel;
}

static void turn(uint16_t *h, uint16_t *w)
{
    uint16_t one = *w;

    *w = *h;
    *h = one;
}

/* a column of dense pixels, as the row that it is */
static void turn_column(mur_conv_shape *layer)
{
    layer->in_w = layer->in_h;
    layer->out_w = layer->out_h;
    layer->in_h = layer->out_h = 1;
    layer->in_pitch = layer->in_w * layer->in_c;
    layer->out_pitch = layer->out_w * layer->out_c;
    turn(&layer->kernel_h, &layer->kernel_w);
    turn(&layer->stride_h, &layer->stride_w);
    turn(&layer->dilation_h, &layer->dilation_w);
    turn(&layer->pad_top, &layer->pad_left);
}

void muc_mcu_flatten_conv(mur_conv_shape *layer)
{
    if (layer->out_w == 1 && layer->kernel_w == layer->in_w && layer->in_w > 1 &&
        layer->pad_left == 0 && layer->dilation_w == 1 && layer->groups == 1) {
        layer->in_c *= layer->in_w; /* a window has whole rows: a row is a pixel */
        layer->in_w = layer->kernel_w = 1;
    }
    if (layer->out_w == 1 && layer->in_w == 1 && layer->kernel_w == 1 && layer->pad_left == 0) {
        layer->stride_w = 1; /* of one column, whatever it was */
        if (layer->in_pitch == layer->in_c && layer->out_pitch == layer->out_c)
            turn_column(layer);
    }
    if (layer->kernel_h != 1 || layer->kernel_w != 1 || layer->stride_h != 1 ||
        layer->stride_w != 1 || layer->pad_top || layer->pad_left || layer->out_h != layer->in_h ||
        layer->out_w != layer->in_w || layer->in_pitch != layer->in_w * layer->in_c ||
        layer->out_pitch != layer->out_w * layer->out_c)
        return;
    layer->in_w *= layer->in_h; /* a row of pixels */
    layer->out_w = layer->in_w;
    layer->in_h = layer->out_h = 1;
    layer->in_pitch = layer->in_w * layer->in_c;
    layer->out_pitch = layer->out_w * layer->out_c;
}

/* ---- shapes ---- */

mur_conv_shape muc_mcu_conv_shape(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *w = muc_mcu_input(l, node, 1);
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    mur_conv_shape shape = {
        .in_h = (int32_t)muc_mcu_dim(l, x, 1),
        .in_w = (int32_t)muc_mcu_dim(l, x, 2),
        .in_c = (int32_t)muc_mcu_dim(l, x, 3),
        .out_h = (int32_t)muc_mcu_dim(l, y, 1),
        .out_w = (int32_t)muc_mcu_dim(l, y, 2),
        .out_c = (int32_t)muc_mcu_dim(l, y, 3),
        .kernel_h = (uint16_t)muc_mcu_dim(l, w, 1),
        .kernel_w = (uint16_t)muc_mcu_dim(l, w, 2),
        .stride_h = (uint16_t)muc_node_item_or(node, MUC_KEY_STRIDES, 0, 1),
        .stride_w = (uint16_t)muc_node_item_or(node, MUC_KEY_STRIDES, 1, 1),
        .dilation_h = (uint16_t)muc_node_item_or(node, MUC_KEY_DILATIONS, 0, 1),
        .dilation_w = (uint16_t)muc_node_item_or(node, MUC_KEY_DILATIONS, 1, 1),
        .pad_top = (uint16_t)muc_node_item_or(node, MUC_KEY_PADS, 0, 0),
        .pad_left = (uint16_t)muc_node_item_or(node, MUC_KEY_PADS, 1, 0),
        .groups = (int32_t)muc_node_integer_or(node, MUC_KEY_GROUPS, 1),
    };

    shape.in_pitch = shape.in_w * shape.in_c;
    shape.out_pitch = shape.out_w * shape.out_c;
    return shape;
}

mur_conv_shape muc_mcu_linear_shape(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *w = muc_mcu_input(l, node, 1);
    int32_t rows = (int32_t)muc_mcu_elements(l, x, 0, x->rank - 1);
    mur_conv_shape shape = {
        .in_h = 1,
        .in_w = rows,
        .in_c = (int32_t)muc_mcu_dim(l, w, 1),
        .out_h = 1,
        .out_w = rows,
        .out_c = (int32_t)muc_mcu_dim(l, w, 0),
        .kernel_h = 1,
        .kernel_w = 1,
        .stride_h = 1,
        .stride_w = 1,
        .dilation_h = 1,
        .dilation_w = 1,
        .groups = 1,
    };

    shape.in_pitch = rows * shape.in_c;
    shape.out_pitch = rows * shape.out_c;
    return shape;
}

size_t muc_mcu_conv_weights(const mur_conv_shape *shape)
{
    return (size_t)shape->kernel_h * shape->kernel_w * (size_t)(shape->in_c / shape->groups);
}

uint64_t muc_mcu_conv_macs(const mur_conv_shape *shape)
{
    return (uint64_t)shape->out_h * (uint64_t)shape->out_w * (uint64_t)shape->out_c *
           muc_mcu_conv_weights(shape);
}

/* ---- text ---- */

static void print_field(muc_text *text, int indent, const char *name, int64_t value)
{
    if (value)
        muc_text_add(text, "\n%*s.%s = %" PRId64 ",", indent, "", name, value);
}

void muc_mcu_print_field(muc_text *text, const char *name, int64_t value)
{
    print_field(text, 4, name, value);
}

void muc_mcu_print_output(muc_text *text, const mur_output_s8 *output)
{
    muc_text_add(text,
                 "\n    .output = { .kind = %s, .shift = %d, .zero = %d, .min = %d, .max = %d },",
                 output->kind == MUR_REQUANT_Q31 ? "MUR_REQUANT_Q31" : "MUR_REQUANT_SHIFT",
                 output->shift, output->zero, output->min, output->max);
}

#define FIELD(name) muc_mcu_print_field(text, #name, layer->name)
#define SHAPE_FIELD(name) print_field(text, 8, #name, layer->name)

void muc_mcu_print_shape(muc_text *text, const mur_conv_shape *layer)
{
    muc_text_add(text, "\n    .shape = {");
    SHAPE_FIELD(in_h), SHAPE_FIELD(in_w), SHAPE_FIELD(in_c), SHAPE_FIELD(out_h), SHAPE_FIELD(out_w),
        SHAPE_FIELD(out_c), SHAPE_FIELD(in_pitch), SHAPE_FIELD(out_pitch), SHAPE_FIELD(kernel_h),
        SHAPE_FIELD(kernel_w), SHAPE_FIELD(stride_h), SHAPE_FIELD(stride_w),
        SHAPE_FIELD(dilation_h), SHAPE_FIELD(dilation_w), SHAPE_FIELD(pad_top),
        SHAPE_FIELD(pad_left), SHAPE_FIELD(groups);
    muc_text_add(text, "\n    },");
}

void muc_mcu_print_conv(muc_text *text, const mur_conv_s8 *layer, const char *packed)
{
    muc_mcu_print_shape(text, &layer->shape);
    muc_mcu_print_field(text, "in_zero", layer->in_zero);
    muc_mcu_print_field(text, "weight_zero", layer->weight_zero);
    muc_mcu_print_output(text, &layer->output);
    muc_text_add(text, "\n    .packed = %s,", packed);
}

void muc_mcu_print_pool(muc_text *text, const mur_pool_s8 *layer)
{
    FIELD(in_h), FIELD(in_w), FIELD(c), FIELD(out_h), FIELD(out_w), FIELD(in_pitch),
        FIELD(out_pitch), FIELD(kernel_h), FIELD(kernel_w), FIELD(stride_h), FIELD(stride_w),
        FIELD(pad_top), FIELD(pad_left), FIELD(min), FIELD(max);
}

void muc_mcu_print_add(muc_text *text, const mur_add_s8 *layer)
{
    FIELD(count), FIELD(b_count), FIELD(a_mul), FIELD(a_shift), FIELD(b_mul), FIELD(b_shift),
        FIELD(mul), FIELD(shift), FIELD(left_shift), FIELD(subtract), FIELD(a_zero), FIELD(b_zero),
        FIELD(zero), FIELD(min), FIELD(max);
}

void muc_mcu_print_mul(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *a = muc_mcu_input(l, node, 0), *b = muc_mcu_input(l, node, 1);
    const muc_multiplier factor = muc_scale_integers(node, a, b, muc_mcu_output(l, node, 0)).factor;
    const mur_output_s8 output = muc_mcu_output_of(l, node);
    const mur_mul_s8 fields = { .count = (int32_t)muc_mcu_most_elements(l, a),
                                .b_count = (int32_t)muc_mcu_most_elements(l, b),
                                .mul = factor.mantissa,
                                .shift = factor.shift,
                                .a_zero = (int8_t)muc_zero_of(a),
                                .b_zero = (int8_t)muc_zero_of(b) },
                     *layer = &fields;
    muc_text *text = &l->text;

    FIELD(count), FIELD(b_count), FIELD(mul), FIELD(shift), FIELD(a_zero), FIELD(b_zero);
    muc_mcu_print_output(text, &output);
}

mur_output_s8 muc_mcu_output_of(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    int32_t least, most;

    muc_scale_clamp(node, y, &least, &most);
    return (mur_output_s8){
        .kind = MUR_REQUANT_Q31,
        .zero = (int8_t)muc_zero_of(y),
        .min = (int8_t)least,
        .max = (int8_t)most,
    };
}

bool muc_mcu_has_vectors(muc_mcu_isa isa)
{
    return muc_mcu_find_kernel(isa, "softmax_s8")->isa != MUC_MCU_ISA_NONE;
}

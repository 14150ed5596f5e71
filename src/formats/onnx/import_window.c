/* import_window.c - convolutions and pools: kernels, strides, and padding in all its forms. */
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "formats/onnx/onnx_operators.h"
#include "import/sliding_window.h"

enum { MAX_SPATIAL = MUC_WINDOW_MAX_SPATIAL };

static muc_status take_list(onnx_call *call, const char *name, uint32_t expected, int64_t fallback,
                            int64_t *out)
{
    const int64_t *items;
    size_t count;

    MUC_TRY(onnx_integers(call, name, &items, &count));
    if (items && count != expected)
        return onnx_fail(call, MUC_MALFORMED, "attribute '%s' has %zu entries, expected %u", name,
                         count, expected);
    for (uint32_t i = 0; i < expected; i++) {
        out[i] = items ? items[i] : fallback;
        if (out[i] < INT32_MIN || out[i] > INT32_MAX)
            return onnx_fail(call, MUC_MALFORMED, "attribute '%s' holds %" PRId64, name, out[i]);
    }
    return MUC_OK;
}

/* kernel: 0 where the attribute is absent */
static muc_status take_window(onnx_call *call, uint32_t x, muc_window *w, muc_padding *padding)
{
    static const char *const words[] = {
        [MUC_PADDING_GIVEN] = "NOTSET",
        [MUC_PADDING_VALID] = "VALID",
        [MUC_PADDING_SAME] = "SAME_UPPER",
        [MUC_PADDING_SAME_LOWER] = "SAME_LOWER",
    };
    const char *auto_pad;
    uint32_t rank = onnx_tensor(call, x)->rank;

    if (rank < 3 || rank > 2 + MAX_SPATIAL)
        return onnx_fail(call, MUC_UNSUPPORTED, "%u dimensions, expected 3 to %d", rank,
                         2 + MAX_SPATIAL);
    w->spatial = rank - 2;
    MUC_TRY(take_list(call, "kernel_shape", w->spatial, 0, w->kernel));
    MUC_TRY(take_list(call, "strides", w->spatial, 1, w->strides));
    MUC_TRY(take_list(call, "dilations", w->spatial, 1, w->dilations));
    MUC_TRY(take_list(call, "pads", 2 * w->spatial, 0, w->pads));
    MUC_TRY(onnx_string(call, "auto_pad", "NOTSET", &auto_pad));
    for (*padding = MUC_PADDING_GIVEN; strcmp(words[*padding], auto_pad) != 0;)
        if (++*padding == MUC_COUNT(words))
            return onnx_fail(call, MUC_UNSUPPORTED, "auto_pad is '%.60s'", auto_pad);
    for (uint32_t i = 0; i < w->spatial; i++)
        if (w->strides[i] < 1 || w->dilations[i] < 1 || w->kernel[i] < 0)
            return onnx_fail(call, MUC_MALFORMED,
                             "kernel %" PRId64 ", stride %" PRId64 ", dilation %" PRId64,
                             w->kernel[i], w->strides[i], w->dilations[i]);
    return MUC_OK;
}

/* pads that follow from the input's size, which is then known */
static muc_status settle_padding(onnx_call *call, uint32_t x, muc_window *w, muc_padding padding)
{
    uint32_t size = 0;

    for (uint32_t i = 0; i < w->spatial; i++) {
        if (padding == MUC_PADDING_SAME || padding == MUC_PADDING_SAME_LOWER)
            MUC_TRY(onnx_constant_dim(call, x, 2 + i, &size));
        muc_window_pad(w, i, size, padding);
    }
    return MUC_OK;
}

/* the kernel's size is that of the weights, and said twice by some files */
static muc_status check_kernel(onnx_call *call, uint32_t weights, muc_window *w)
{
    for (uint32_t i = 0; i < w->spatial; i++) {
        uint32_t size;

        MUC_TRY(onnx_constant_dim(call, weights, 2 + i, &size));
        if (w->kernel[i] != 0 && w->kernel[i] != size)
            return onnx_fail(call, MUC_MALFORMED,
                             "kernel_shape says %" PRId64 ", the weights have %u", w->kernel[i],
                             size);
        w->kernel[i] = size;
    }
    return MUC_OK;
}

/* Conv, ConvInteger and QLinearConv, whose weights are in another place */
muc_status onnx_import_conv(onnx_call *call)
{
    uint32_t x, weights;
    muc_attributes a = { .count = 0 };
    muc_padding padding;
    muc_window w;

    MUC_TRY(onnx_input(call, 0, &x));
    MUC_TRY(onnx_input(call, muc_op_product(call->row->op)->weights, &weights));
    MUC_TRY(take_window(call, x, &w, &padding));
    MUC_TRY(check_kernel(call, weights, &w));
    MUC_TRY(settle_padding(call, x, &w, padding));
    muc_window_set(&w, &a, true, true);
    if (!call->integers)
        return onnx_cook_given(call, &a, ". * groups=@group:1 given");
    if (!onnx_has_input(call, 2))
        return onnx_cook_given(call, &a, "conv_integer 0 1 groups=@group:1 given");
    return onnx_cook_given(call, &a,
                           "sum = conv_integer 0 1 groups=@group:1 given; "
                           "bias = reshape 2:i32 shape=in1.0%.*s; add sum bias",
                           2 * (int)w.spatial, ",1,1,1");
}

/* padding that gives the size which is asked for */
static muc_status transpose_padding(onnx_call *call, uint32_t x, muc_window *w, muc_padding padding,
                                    const int64_t *sizes, int64_t *output_padding)
{
    uint32_t size;

    if (sizes[0] == 0 && padding != MUC_PADDING_SAME && padding != MUC_PADDING_SAME_LOWER)
        return settle_padding(call, x, w, padding);
    for (uint32_t i = 0; i < w->spatial; i++) {
        MUC_TRY(onnx_constant_dim(call, x, 2 + i, &size));
        muc_window_pad_transposed(w, i, size, sizes[0] ? sizes[i] : size * w->strides[i],
                                  padding == MUC_PADDING_SAME ? padding : MUC_PADDING_SAME_LOWER,
                                  &output_padding[i]);
    }
    return MUC_OK;
}

muc_status onnx_import_conv_transpose(onnx_call *call)
{
    int64_t output_padding[MAX_SPATIAL], sizes[MAX_SPATIAL];
    muc_attributes a = { .count = 0 };
    uint32_t x, weights;
    muc_padding padding;
    muc_window w;

    MUC_TRY(onnx_input(call, 0, &x));
    MUC_TRY(onnx_input(call, 1, &weights));
    MUC_TRY(take_window(call, x, &w, &padding));
    MUC_TRY(check_kernel(call, weights, &w));
    MUC_TRY(take_list(call, "output_padding", w.spatial, 0, output_padding));
    MUC_TRY(take_list(call, "output_shape", w.spatial, 0, sizes));
    MUC_TRY(transpose_padding(call, x, &w, padding, sizes, output_padding));
    muc_window_set(&w, &a, true, true);
    muc_attributes_set_integers(&a, MUC_KEY_OUTPUT_PADDING, output_padding, w.spatial);
    return onnx_cook_given(call, &a, ". * groups=@group:1 given");
}

/* ---- the gradient of a convolution ---- */

/* y = conv(x, weights) in numbers */
typedef struct conv_gradient {
    muc_window w;
    uint32_t dy, x, weights;
    uint32_t images, channels, groups, filters; /* N, C, g, M */
    uint32_t x_size[MAX_SPATIAL], y_size[MAX_SPATIAL];
} conv_gradient;

static muc_status take_conv_gradient(onnx_call *call, conv_gradient *c)
{
    muc_padding padding;
    int64_t groups;

    MUC_TRY(onnx_input(call, 0, &c->dy));
    MUC_TRY(onnx_input(call, 1, &c->x));
    MUC_TRY(onnx_input(call, 2, &c->weights));
    MUC_TRY(take_window(call, c->x, &c->w, &padding));
    if (onnx_tensor(call, c->dy)->rank != 2 + c->w.spatial ||
        onnx_tensor(call, c->weights)->rank != 2 + c->w.spatial)
        return onnx_fail(call, MUC_MALFORMED, "dy, x and weights differ in their dimensions");
    MUC_TRY(check_kernel(call, c->weights, &c->w));
    MUC_TRY(settle_padding(call, c->x, &c->w, padding));
    MUC_TRY(onnx_integer(call, "group", 1, &groups));
    MUC_TRY(onnx_constant_dim(call, c->x, 0, &c->images));
    MUC_TRY(onnx_constant_dim(call, c->x, 1, &c->channels));
    MUC_TRY(onnx_constant_dim(call, c->dy, 1, &c->filters));
    if (groups < 1 || c->channels % groups != 0 || c->filters % groups != 0)
        return onnx_fail(call, MUC_MALFORMED, "%" PRId64 " groups of %u and %u channels", groups,
                         c->channels, c->filters);
    c->groups = (uint32_t)groups;
    for (uint32_t i = 0; i < c->w.spatial; i++) {
        MUC_TRY(onnx_constant_dim(call, c->x, 2 + i, &c->x_size[i]));
        MUC_TRY(onnx_constant_dim(call, c->dy, 2 + i, &c->y_size[i]));
    }
    return MUC_OK;
}

/* what x and its padding have beyond the last window */
static int64_t beyond(const conv_gradient *c, uint32_t i)
{
    const muc_window *w = &c->w;

    return c->x_size[i] + w->pads[i] + w->pads[w->spatial + i] -
           w->strides[i] * ((int64_t)c->y_size[i] - 1) - w->dilations[i] * (w->kernel[i] - 1) - 1;
}

/* A convolution again: of x [N, g C/g, ..] as [C/g, g N, ..], whose images are summed over as
 * channels are, with dy as weights, whose elements are strides apart. x has its padding, up to the
 * end of the last window. */
static void add_weight_gradient(const conv_gradient *c, muc_text *text)
{
    const muc_window *w = &c->w;
    uint32_t n = w->spatial, each = c->channels / c->groups;
    int64_t pads[2 * (2 + MAX_SPATIAL)] = { 0 }, size[MAX_SPATIAL];

    for (uint32_t i = 0; i < n; i++) {
        pads[2 + i] = w->pads[i];
        pads[4 + n + i] = w->pads[n + i] - beyond(c, i);
        size[i] = c->x_size[i] + pads[2 + i] + pads[4 + n + i];
    }
    muc_text_add(text, "x = pad 1 mode=constant pads=%s", MUC_LIST(pads, 2 * (2 + n)));
    muc_text_add(text, "; x = reshape x shape=%u,%u,%u", c->images, c->groups, each);
    muc_text_add(text, ",%s", MUC_LIST(size, n));
    muc_text_add(text, "; x = transpose x perm=2,1,0,3..; x = reshape x shape=%u,%u", each,
                 c->groups * c->images);
    muc_text_add(text, ",%s", MUC_LIST(size, n));
    muc_text_add(text, "; dy = transpose 0 perm=1,0,2..; w = conv x dy groups=%u", c->groups);
    muc_text_add(text, " strides=%s", MUC_LIST(w->dilations, n));
    muc_text_add(text, " dilations=%s", MUC_LIST(w->strides, n));
    muc_text_add(text, "; >1 = transpose w perm=1,0,2..; ");
}

/* of dy, x and weights: the gradients of x, weights and bias */
muc_status onnx_import_conv_gradient(onnx_call *call)
{
    int64_t more[MAX_SPATIAL];
    muc_text text = { 0 };
    conv_gradient c;
    muc_status status;

    MUC_TRY(take_conv_gradient(call, &c));
    if (onnx_has_output(call, 1))
        add_weight_gradient(&c, &text);
    muc_text_add(&text, ">2 = reduce_sum 0 axes=0,2.. keep_dims=0; ");
    for (uint32_t i = 0; i < c.w.spatial; i++)
        more[i] = beyond(&c, i);
    if (onnx_has_output(call, 0)) {
        muc_text_add(&text, "conv_transpose 0 2 groups=%u", c.groups);
        muc_text_add(&text, " strides=%s", MUC_LIST(c.w.strides, c.w.spatial));
        muc_text_add(&text, " dilations=%s", MUC_LIST(c.w.dilations, c.w.spatial));
        muc_text_add(&text, " pads=%s", MUC_LIST(c.w.pads, 2 * c.w.spatial));
        muc_text_add(&text, " output_padding=%s", MUC_LIST(more, c.w.spatial));
    }
    status = text.data ? onnx_cook(call, "%s", text.data) : MUC_OK;
    muc_text_free(&text);
    return status;
}

/* ---- pools ---- */

static bool takes(const onnx_call *call, muc_attribute_key key)
{
    bool required;

    return muc_op_takes(call->row->op, key, &required);
}

muc_status onnx_import_pool(onnx_call *call)
{
    muc_attributes a = { .count = 0 };
    muc_padding padding;
    muc_window w;
    uint32_t x;

    MUC_TRY(onnx_input(call, 0, &x));
    MUC_TRY(take_window(call, x, &w, &padding));
    for (uint32_t i = 0; i < w.spatial; i++)
        if (w.kernel[i] < 1)
            return onnx_fail(call, MUC_MALFORMED, "attribute 'kernel_shape' is missing");
    MUC_TRY(settle_padding(call, x, &w, padding));
    muc_attributes_set_integers(&a, MUC_KEY_KERNEL, w.kernel, w.spatial);
    muc_window_set(&w, &a, true, true);
    return onnx_cook_given(call, &a, ". 0 given ceil_mode=@ceil_mode:0 %s",
                           takes(call, MUC_KEY_COLUMN_MAJOR) ? "column_major=@storage_order:0"
                           : takes(call, MUC_KEY_COUNT_INCLUDE_PAD)
                               ? "count_include_pad=@count_include_pad:0"
                               : "p=@p:2");
}

/* import_window.c - convolutions and pools: kernels, strides, and padding in all its forms. */
#include <inttypes.h>
#include <string.h>

#include "formats/onnx/operators.h"
#include "formats/onnx/quantlib.h"

enum { MAX_SPATIAL = 3 };

/* Attributes of a window over the spatial dimensions, the absent ones filled in. */
typedef struct window {
    uint32_t spatial;
    int64_t kernel[MAX_SPATIAL], strides[MAX_SPATIAL], dilations[MAX_SPATIAL],
        pads[2 * MAX_SPATIAL];
    const char *auto_pad;
} window;

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
static muc_status take_window(onnx_call *call, uint32_t x, window *w)
{
    uint32_t rank = onnx_tensor(call, x)->rank;

    if (rank < 3 || rank > 2 + MAX_SPATIAL)
        return onnx_fail(call, MUC_UNSUPPORTED, "%u dimensions, expected 3 to %d", rank,
                         2 + MAX_SPATIAL);
    w->spatial = rank - 2;
    MUC_TRY(take_list(call, "kernel_shape", w->spatial, 0, w->kernel));
    MUC_TRY(take_list(call, "strides", w->spatial, 1, w->strides));
    MUC_TRY(take_list(call, "dilations", w->spatial, 1, w->dilations));
    MUC_TRY(take_list(call, "pads", 2 * w->spatial, 0, w->pads));
    MUC_TRY(onnx_string(call, "auto_pad", "NOTSET", &w->auto_pad));
    for (uint32_t i = 0; i < w->spatial; i++)
        if (w->strides[i] < 1 || w->dilations[i] < 1 || w->kernel[i] < 0)
            return onnx_fail(call, MUC_MALFORMED,
                             "kernel %" PRId64 ", stride %" PRId64 ", dilation %" PRId64,
                             w->kernel[i], w->strides[i], w->dilations[i]);
    return MUC_OK;
}

static bool is_same(const window *w)
{
    return strcmp(w->auto_pad, "SAME_UPPER") == 0 || strcmp(w->auto_pad, "SAME_LOWER") == 0;
}

/* The odd element of a padding goes to the end, or to the beginning. */
static void share_padding(window *w, uint32_t i, int64_t total, bool more_at_end)
{
    int64_t less = total / 2;

    w->pads[i] = more_at_end ? less : total - less;
    w->pads[w->spatial + i] = total - w->pads[i];
}

/* auto_pad as numbers: as many windows as strides fit into the input, rounded up */
static muc_status settle_padding(onnx_call *call, uint32_t x, window *w)
{
    if (strcmp(w->auto_pad, "NOTSET") == 0)
        return MUC_OK;
    if (strcmp(w->auto_pad, "VALID") == 0) {
        memset(w->pads, 0, sizeof(w->pads));
        return MUC_OK;
    }
    if (!is_same(w))
        return onnx_fail(call, MUC_UNSUPPORTED, "auto_pad is '%.60s'", w->auto_pad);
    for (uint32_t i = 0; i < w->spatial; i++) {
        int64_t windows, total, reach = (w->kernel[i] - 1) * w->dilations[i] + 1;
        uint32_t size;

        MUC_TRY(onnx_constant_dim(call, x, 2 + i, &size));
        windows = (size + w->strides[i] - 1) / w->strides[i];
        total = (windows - 1) * w->strides[i] + reach - size;
        share_padding(w, i, total < 0 ? 0 : total, strcmp(w->auto_pad, "SAME_UPPER") == 0);
    }
    return MUC_OK;
}

static void set_window(onnx_attributes *a, const window *w)
{
    onnx_set_integers(a, MUC_KEY_STRIDES, w->strides, w->spatial);
    onnx_set_integers(a, MUC_KEY_DILATIONS, w->dilations, w->spatial);
    onnx_set_integers(a, MUC_KEY_PADS, w->pads, 2 * w->spatial);
}

/* the kernel's size is that of the weights, and said twice by some files */
static muc_status check_kernel(onnx_call *call, uint32_t weights, window *w)
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
    uint32_t *inputs, count, weights = call->row->op == MUC_OP_QLINEAR_CONV ? 3 : 1;
    onnx_attributes a = { .count = 0 };
    int64_t groups;
    window w;

    if (call->integers)
        MUC_TRY(onnx_integer_conv_operands(call, &inputs, &count));
    else
        MUC_TRY(onnx_all_inputs(call, &inputs, &count));
    if (count <= weights || inputs[0] == MUC_NO_ID || inputs[weights] == MUC_NO_ID)
        return onnx_fail(call, MUC_MALFORMED, "x or weights are missing");
    MUC_TRY(take_window(call, inputs[0], &w));
    MUC_TRY(check_kernel(call, inputs[weights], &w));
    MUC_TRY(settle_padding(call, inputs[0], &w));
    MUC_TRY(onnx_integer(call, "group", 1, &groups));
    onnx_set_integer(&a, MUC_KEY_GROUPS, groups);
    set_window(&a, &w);
    return call->integers ? onnx_emit_integer_conv(call, inputs, &a)
                          : onnx_emit(call, call->row->op, inputs, count, &a, 1);
}

/* Padding that gives the size which is asked for; where windows do not reach, the output is padded.
 */
static muc_status transpose_padding(onnx_call *call, uint32_t x, window *w, const int64_t *sizes,
                                    int64_t *output_padding)
{
    if (sizes[0] == 0 && !is_same(w))
        return settle_padding(call, x, w);
    for (uint32_t i = 0; i < w->spatial; i++) {
        int64_t total, wanted;
        uint32_t size;

        MUC_TRY(onnx_constant_dim(call, x, 2 + i, &size));
        wanted = sizes[0] ? sizes[i] : size * w->strides[i];
        total = w->strides[i] * ((int64_t)size - 1) + output_padding[i] +
                (w->kernel[i] - 1) * w->dilations[i] + 1 - wanted;
        output_padding[i] -= total < 0 ? total : 0;
        total = total < 0 ? 0 : total;
        share_padding(w, i, total, strcmp(w->auto_pad, "SAME_UPPER") == 0);
    }
    return MUC_OK;
}

muc_status onnx_import_conv_transpose(onnx_call *call)
{
    int64_t groups, output_padding[MAX_SPATIAL], sizes[MAX_SPATIAL];
    onnx_attributes a = { .count = 0 };
    uint32_t *inputs, count;
    window w;

    MUC_TRY(onnx_all_inputs(call, &inputs, &count));
    if (count < 2 || inputs[0] == MUC_NO_ID || inputs[1] == MUC_NO_ID)
        return onnx_fail(call, MUC_MALFORMED, "x or weights are missing");
    MUC_TRY(take_window(call, inputs[0], &w));
    MUC_TRY(check_kernel(call, inputs[1], &w));
    MUC_TRY(take_list(call, "output_padding", w.spatial, 0, output_padding));
    MUC_TRY(take_list(call, "output_shape", w.spatial, 0, sizes));
    MUC_TRY(transpose_padding(call, inputs[0], &w, sizes, output_padding));
    MUC_TRY(onnx_integer(call, "group", 1, &groups));
    onnx_set_integer(&a, MUC_KEY_GROUPS, groups);
    set_window(&a, &w);
    onnx_set_integers(&a, MUC_KEY_OUTPUT_PADDING, output_padding, w.spatial);
    return onnx_emit(call, MUC_OP_CONV_TRANSPOSE, inputs, count, &a, 1);
}

/* what only one of the pools knows */
static muc_status pool_attribute(onnx_call *call, muc_op op, const char *name,
                                 muc_attribute_key key, int64_t fallback, onnx_attributes *a)
{
    int64_t value;

    if (call->row->op != op)
        return MUC_OK;
    MUC_TRY(onnx_integer(call, name, fallback, &value));
    onnx_set_integer(a, key, value);
    return MUC_OK;
}

muc_status onnx_import_pool(onnx_call *call)
{
    onnx_attributes a = { .count = 0 };
    int64_t ceil_mode;
    uint32_t x;
    window w;

    MUC_TRY(onnx_input(call, 0, &x));
    MUC_TRY(take_window(call, x, &w));
    for (uint32_t i = 0; i < w.spatial; i++)
        if (w.kernel[i] < 1)
            return onnx_fail(call, MUC_MALFORMED, "attribute 'kernel_shape' is missing");
    MUC_TRY(settle_padding(call, x, &w));
    MUC_TRY(onnx_integer(call, "ceil_mode", 0, &ceil_mode));
    onnx_set_integers(&a, MUC_KEY_KERNEL, w.kernel, w.spatial);
    set_window(&a, &w);
    onnx_set_integer(&a, MUC_KEY_CEIL_MODE, ceil_mode);
    MUC_TRY(pool_attribute(call, MUC_OP_MAX_POOL, "storage_order", MUC_KEY_COLUMN_MAJOR, 0, &a));
    MUC_TRY(pool_attribute(call, MUC_OP_AVERAGE_POOL, "count_include_pad",
                           MUC_KEY_COUNT_INCLUDE_PAD, 0, &a));
    MUC_TRY(pool_attribute(call, MUC_OP_LP_POOL, "p", MUC_KEY_P, 2, &a));
    return onnx_emit(call, call->row->op, &x, 1, &a, onnx_output_count(call));
}

muc_status onnx_import_global_pool(onnx_call *call)
{
    int64_t axes[MUC_GRAPH_MAX_RANK], p = 2;
    onnx_attributes a = { .count = 0 };
    muc_op op = call->row->op;
    uint32_t x, rank;

    MUC_TRY(onnx_input(call, 0, &x));
    rank = onnx_tensor(call, x)->rank;
    if (rank < 3)
        return onnx_fail(call, MUC_MALFORMED, "%u dimensions, expected 3 or more", rank);
    if (op == MUC_OP_REDUCE_L2)
        MUC_TRY(onnx_integer(call, "p", 2, &p));
    if (p != 1 && p != 2)
        return onnx_fail(call, MUC_UNSUPPORTED, "a norm of order %" PRId64, p);
    for (uint32_t i = 2; i < rank; i++)
        axes[i - 2] = i;
    onnx_set_integers(&a, MUC_KEY_AXES, axes, rank - 2);
    return onnx_emit(call, p == 1 ? MUC_OP_REDUCE_L1 : op, &x, 1, &a, 1);
}

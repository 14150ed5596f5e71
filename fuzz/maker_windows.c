/* maker_windows.c - writers of windows, and of operators along dimensions. */
#include <math.h>
#include <string.h>

#include "maker.h"

/* An image [N, C, ..] or [N, .., C] of fixed sizes. */
typedef struct image {
    bool last;
    uint32_t spatial, channels, sizes[3];
} image;

static bool read_image(fuzz_maker *m, uint32_t x, image *out)
{
    const muc_tensor *t = fuzz_tensor(m, x);
    bool last = m->style == FUZZ_IN_IMAGE_LAST || m->style == FUZZ_IN_INT8_IMAGE;

    if (m->style == FUZZ_IN_INT8 || m->style == FUZZ_IN_UINT8 || m->style == FUZZ_IN_INT16)
        last = fuzz_pick(m, 4) != 0;
    if (t->rank < 3 || t->rank > 5 || !fuzz_is_fixed(m, x))
        return false;
    *out = (image){ .last = fuzz_one_in(m, 16) ? !last : last, .spatial = t->rank - 2 };
    out->channels = fuzz_dim(m, x, out->last ? t->rank - 1 : 1);
    for (uint32_t i = 0; i < out->spatial; i++)
        out->sizes[i] = fuzz_dim(m, x, out->last ? 1 + i : 2 + i);
    return true;
}

/* kernel, strides, dilations and pads that fit */
typedef struct window {
    int64_t kernel[3], strides[3], dilations[3], pads[6];
    uint32_t taps;
} window;

static window draw_window(fuzz_maker *m, const image *im, bool dilate)
{
    window w = { .taps = 1 };

    for (uint32_t i = 0; i < im->spatial; i++) {
        uint32_t room = im->sizes[i];

        w.kernel[i] = fuzz_between(m, 1, room < 4 ? room : fuzz_one_in(m, 8) ? 5 : 3);
        if (w.kernel[i] > im->sizes[i])
            w.kernel[i] = im->sizes[i];
        w.strides[i] = fuzz_one_in(m, 3) ? fuzz_between(m, 1, 3) : 1;
        w.dilations[i] = dilate && fuzz_one_in(m, 6) ? 2 : 1;
        for (uint32_t side = 0; side < 2; side++)
            w.pads[i + side * im->spatial] =
                fuzz_one_in(m, 2) ? fuzz_pick(m, (uint32_t)w.kernel[i]) : 0;
        w.taps *= (uint32_t)w.kernel[i];
    }
    return w;
}

static void set_window(fuzz_maker *m, const image *im, const window *w, bool dilate)
{
    fuzz_set_integers(m, MUC_KEY_STRIDES, w->strides, im->spatial);
    fuzz_set_integers(m, MUC_KEY_PADS, w->pads, 2 * im->spatial);
    if (dilate)
        fuzz_set_integers(m, MUC_KEY_DILATIONS, w->dilations, im->spatial);
    if (im->last)
        fuzz_set_integer(m, MUC_KEY_CHANNELS_LAST, 1);
}

/* groups that divide the channels: one, each its own, or something between */
static uint32_t draw_groups(fuzz_maker *m, uint32_t channels)
{
    uint32_t groups = fuzz_pick(m, 3) ? 1 : fuzz_one_in(m, 4) ? 2 : channels;

    return channels % groups ? 1 : groups;
}

static fuzz_shape kernel_shape(muc_dtype dtype, const image *im, const window *w, uint32_t first,
                               uint32_t second)
{
    fuzz_shape shape = { dtype, im->spatial + 2, { first } };

    for (uint32_t i = 0; i < im->spatial; i++)
        shape.dims[im->last ? 1 + i : 2 + i] = (uint32_t)w->kernel[i];
    shape.dims[im->last ? shape.rank - 1 : 1] = second;
    return shape;
}

/* of x's type, or quantized as x is, for convolutions with a scale for each of count along axis 0
 */
static uint32_t kernel_of(fuzz_maker *m, uint32_t x, fuzz_shape *shape, uint32_t scales)
{
    const muc_tensor *t = fuzz_tensor(m, x);

    if (!t->quantization)
        return fuzz_operand(m, shape, -1, 1, NULL);
    if (t->dtype == MUC_I16)
        shape->dtype = MUC_I8;
    return fuzz_constant(m, shape, shape->dtype == MUC_U8 ? 0 : -127, 127,
                         fuzz_quantization(m, shape->dtype, 1,
                                           shape->dtype == MUC_I8 && fuzz_pick(m, 4) ? scales : 1,
                                           0));
}

static uint32_t bias_of(fuzz_maker *m, uint32_t x, uint32_t count)
{
    const muc_tensor *t = fuzz_tensor(m, x);
    fuzz_shape shape = FUZZ_SHAPE(t->dtype, count);

    if (!fuzz_pick(m, 4))
        return MUC_NO_ID;
    if (!t->quantization)
        return fuzz_operand(m, &shape, -1, 1, NULL);
    shape.dtype = t->dtype == MUC_I16 && fuzz_one_in(m, 2) ? MUC_I64 : MUC_I32;
    return fuzz_constant(m, &shape, -2000, 2000, NULL);
}

static fuzz_range sum_range(const fuzz_maker *m, uint32_t x, uint32_t terms)
{
    double most = fuzz_most(m, x) * sqrt(terms) + 1;

    return (fuzz_range){ -most, most };
}

static void set_groups(fuzz_maker *m, uint32_t groups)
{
    if (groups > 1)
        fuzz_set_integer(m, MUC_KEY_GROUPS, groups);
}

void fuzz_write_conv(fuzz_maker *m, muc_op op, uint32_t x)
{
    uint32_t inputs[3], groups, out;
    fuzz_shape shape;
    image im;
    window w;

    if (fuzz_is_real(m, x) && fuzz_most(m, x) > 64)
        x = fuzz_tame(m, x, -8, 8);
    if (x == MUC_NO_ID || !read_image(m, x, &im))
        return;
    w = draw_window(m, &im, true);
    groups = draw_groups(m, im.channels);
    out = groups * fuzz_between(m, 1, groups > 2 ? 2 : 10);
    shape = kernel_shape(fuzz_tensor(m, x)->dtype, &im, &w, out, im.channels / groups);
    inputs[0] = x;
    inputs[1] = kernel_of(m, x, &shape, out);
    inputs[2] = bias_of(m, x, out);
    set_window(m, &im, &w, fuzz_one_in(m, 2));
    set_groups(m, groups);
    x = fuzz_add(m, op, inputs, 3, 1, sum_range(m, x, w.taps * im.channels / groups));
    if (x != MUC_NO_ID && fuzz_is_real(m, x) && fuzz_one_in(m, 5)) /* folded where it may be */
        fuzz_write_channel_norm(m, MUC_OP_BATCH_NORM, x);
}

void fuzz_write_conv_transpose(fuzz_maker *m, muc_op op, uint32_t x)
{
    uint32_t inputs[3], groups, out;
    fuzz_shape shape;
    image im;
    window w;

    if (fuzz_is_real(m, x) && fuzz_most(m, x) > 64)
        x = fuzz_tame(m, x, -8, 8);
    if (x == MUC_NO_ID || !read_image(m, x, &im) ||
        (fuzz_tensor(m, x)->quantization && !im.last && !fuzz_one_in(m, 64)))
        return;
    w = draw_window(m, &im, true);
    groups = fuzz_tensor(m, x)->quantization ? 1 : draw_groups(m, im.channels);
    out = fuzz_between(m, 1, 4);
    shape = kernel_shape(fuzz_tensor(m, x)->dtype, &im, &w, im.channels, out);
    inputs[0] = x;
    inputs[1] = kernel_of(m, x, &shape, 1);
    inputs[2] = bias_of(m, x, out * groups);
    set_window(m, &im, &w, fuzz_one_in(m, 4));
    set_groups(m, groups);
    fuzz_add(m, op, inputs, 3, 1, sum_range(m, x, w.taps * im.channels / groups));
}

void fuzz_write_pool(fuzz_maker *m, muc_op op, uint32_t x)
{
    bool dilate = fuzz_one_in(m, 12);
    uint32_t outputs = 1;
    image im;
    window w;

    if (!read_image(m, x, &im))
        return;
    dilate = dilate && !fuzz_tensor(m, x)->quantization;
    w = draw_window(m, &im, dilate);
    fuzz_set_integers(m, MUC_KEY_KERNEL, w.kernel, im.spatial);
    set_window(m, &im, &w, dilate);
    if (fuzz_one_in(m, 6))
        fuzz_set_integer(m, MUC_KEY_CEIL_MODE, 1);
    if (op == MUC_OP_AVERAGE_POOL && fuzz_one_in(m, fuzz_tensor(m, x)->quantization ? 32 : 3))
        fuzz_set_integer(m, MUC_KEY_COUNT_INCLUDE_PAD, 1);
    if (op == MUC_OP_LP_POOL)
        fuzz_set_integer(m, MUC_KEY_P, fuzz_between(m, 1, 3));
    if (op == MUC_OP_MAX_POOL && !m->noisy[x] && !im.last && fuzz_one_in(m, 8))
        outputs = 2;
    fuzz_add(m, op, &x, 1, outputs, m->ranges[x]);
}

void fuzz_write_channel_norm(fuzz_maker *m, muc_op op, uint32_t x)
{
    uint32_t inputs[5] = { x }, count = op == MUC_OP_BATCH_NORM ? 5 : 3;
    fuzz_shape shape;
    image im;

    if (!read_image(m, x, &im))
        return;
    shape = FUZZ_SHAPE(fuzz_tensor(m, x)->dtype, im.channels);
    inputs[1] = fuzz_constant(m, &shape, 0.25, 2, NULL);
    inputs[2] = fuzz_operand(m, &shape, -1, 1, NULL);
    inputs[3] = fuzz_constant(m, &shape, -1, 1, NULL);
    inputs[4] = fuzz_constant(m, &shape, 0.25, 4, NULL);
    fuzz_set_real(m, MUC_KEY_EPSILON, 0.001);
    if (im.last)
        fuzz_set_integer(m, MUC_KEY_CHANNELS_LAST, 1);
    if (op == MUC_OP_GROUP_NORM)
        fuzz_set_integer(m, MUC_KEY_GROUPS, im.channels % 2 ? im.channels : 2);
    fuzz_add(m, op, inputs, count, 1, (fuzz_range){ -8, 8 });
}

void fuzz_write_lrn(fuzz_maker *m, muc_op op, uint32_t x)
{
    image im;

    if (!read_image(m, x, &im))
        return;
    fuzz_set_real(m, MUC_KEY_ALPHA, 0.25);
    fuzz_set_real(m, MUC_KEY_BETA, 0.75);
    fuzz_set_real(m, MUC_KEY_BIAS, 1);
    fuzz_set_integer(m, MUC_KEY_WINDOW, fuzz_between(m, 1, 5));
    if (im.last)
        fuzz_set_integer(m, MUC_KEY_CHANNELS_LAST, 1);
    fuzz_add(m, op, &x, 1, 1, m->ranges[x]);
}

void fuzz_write_resize(fuzz_maker *m, muc_op op, uint32_t x)
{
    static const muc_word modes[] = { MUC_WORD_NEAREST, MUC_WORD_LINEAR, MUC_WORD_CUBIC };
    static const muc_word coordinates[] = { MUC_WORD_HALF_PIXEL, MUC_WORD_ASYMMETRIC,
                                            MUC_WORD_ALIGN_CORNERS, MUC_WORD_PYTORCH_HALF_PIXEL,
                                            MUC_WORD_HALF_PIXEL_SYMMETRIC };
    static const muc_word roundings[] = { MUC_WORD_ROUND_PREFER_FLOOR, MUC_WORD_ROUND_PREFER_CEIL,
                                          MUC_WORD_FLOOR, MUC_WORD_CEIL };
    muc_expr sizes[MUC_GRAPH_MAX_RANK];
    uint32_t rank = fuzz_tensor(m, x)->rank;
    muc_word mode = modes[fuzz_pick(m, fuzz_tensor(m, x)->quantization ? 2 : 3)];
    image im;

    if (!read_image(m, x, &im))
        return;
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t at = im.last ? i - 1 : i - 2;
        bool is_spatial = at < im.spatial && i > 0;

        sizes[i] = fuzz_number(m, is_spatial ? fuzz_between(m, 1, 2 * im.sizes[at] + 1)
                                             : fuzz_dim(m, x, i));
    }
    fuzz_set_exprs(m, MUC_KEY_SIZES, sizes, rank);
    fuzz_set_integer(m, MUC_KEY_MODE, mode);
    fuzz_set_integer(m, MUC_KEY_COORDINATES, coordinates[fuzz_pick(m, MUC_COUNT(coordinates))]);
    if (mode == MUC_WORD_NEAREST)
        fuzz_set_integer(m, MUC_KEY_ROUNDING, roundings[fuzz_pick(m, MUC_COUNT(roundings))]);
    if (mode != MUC_WORD_NEAREST && fuzz_one_in(m, 6) && !fuzz_tensor(m, x)->quantization)
        fuzz_set_integer(m, MUC_KEY_ANTIALIAS, 1);
    if (mode == MUC_WORD_CUBIC && fuzz_one_in(m, 3))
        fuzz_set_integer(m, MUC_KEY_EXCLUDE_OUTSIDE, 1);
    fuzz_add(m, op, &x, 1, 1, m->ranges[x]);
}

void fuzz_write_grid_sample(fuzz_maker *m, muc_op op, uint32_t x)
{
    static const muc_word modes[] = { MUC_WORD_NEAREST, MUC_WORD_LINEAR, MUC_WORD_CUBIC };
    static const muc_word paddings[] = { MUC_WORD_ZEROS, MUC_WORD_BORDER, MUC_WORD_REFLECTION };
    const muc_tensor *t = fuzz_tensor(m, x);
    fuzz_shape grid = { t->dtype, t->rank, { fuzz_dim(m, x, 0) } };
    uint32_t inputs[2] = { x };
    double most = fuzz_most(m, x);

    if (t->rank < 3 || t->rank > 5 || !fuzz_is_fixed(m, x) || !fuzz_is_real(m, x))
        return;
    for (uint32_t i = 1; i + 1 < t->rank; i++)
        grid.dims[i] = fuzz_between(m, 1, 4);
    grid.dims[t->rank - 1] = t->rank - 2;
    inputs[1] = fuzz_operand(m, &grid, -1.5, 1.5, NULL);
    fuzz_set_integer(m, MUC_KEY_MODE, modes[fuzz_pick(m, MUC_COUNT(modes))]);
    fuzz_set_integer(m, MUC_KEY_PADDING, paddings[fuzz_pick(m, MUC_COUNT(paddings))]);
    fuzz_set_integer(m, MUC_KEY_ALIGN_CORNERS, fuzz_pick(m, 2));
    fuzz_add(m, op, inputs, 2, 1, (fuzz_range){ -4 * most, 4 * most });
}

void fuzz_write_blocks(fuzz_maker *m, muc_op op, uint32_t x)
{
    image im;

    if (!read_image(m, x, &im) || im.spatial != 2)
        return;
    fuzz_set_integer(m, MUC_KEY_BLOCK, 2);
    if (im.last)
        fuzz_set_integer(m, MUC_KEY_CHANNELS_LAST, 1);
    if (op == MUC_OP_DEPTH_TO_SPACE && fuzz_one_in(m, 2))
        fuzz_set_integer(m, MUC_KEY_MODE, MUC_WORD_CRD);
    fuzz_add(m, op, &x, 1, 1, m->ranges[x]);
}

void fuzz_write_global_mean(fuzz_maker *m, muc_op op, uint32_t x)
{
    int64_t axes[3];
    image im;

    if (!read_image(m, x, &im))
        return;
    for (uint32_t i = 0; i < im.spatial; i++)
        axes[i] = im.last ? 1 + i : 2 + i;
    fuzz_set_integers(m, MUC_KEY_AXES, axes, im.spatial);
    fuzz_set_integer(m, MUC_KEY_KEEP_DIMS, fuzz_pick(m, 2));
    fuzz_add(m, op, &x, 1, 1, m->ranges[x]);
}

/* ---- along dimensions ---- */

void fuzz_write_row_norm(fuzz_maker *m, muc_op op, uint32_t x)
{
    const muc_tensor *t = fuzz_tensor(m, x);
    uint32_t axis = t->rank && fuzz_one_in(m, 3) ? fuzz_pick(m, t->rank) : t->rank - 1;
    fuzz_shape shape = { t->quantization ? MUC_F32 : t->dtype, 0, { 0 } };
    uint32_t inputs[3] = { x, MUC_NO_ID, MUC_NO_ID };
    bool half = shape.dtype == MUC_F32 && fuzz_one_in(m, t->quantization ? 64 : 8);

    if (t->rank == 0)
        return;
    for (uint32_t i = axis; i < t->rank; i++)
        if (!(shape.dims[shape.rank++] = fuzz_dim(m, x, i)))
            return;
    if (half)
        shape.dtype = MUC_F16; /* gains may be of another type */
    inputs[1] = t->quantization || half ? fuzz_constant(m, &shape, 0.25, 2, NULL)
                                        : fuzz_operand(m, &shape, 0.25, 2, NULL);
    if (op == MUC_OP_LAYER_NORM && fuzz_pick(m, 3))
        inputs[2] = t->quantization || half ? fuzz_constant(m, &shape, -1, 1, NULL)
                                            : fuzz_operand(m, &shape, -1, 1, NULL);
    fuzz_set_real(m, MUC_KEY_EPSILON, 0.0078125);
    if (op == MUC_OP_LAYER_NORM || axis + 1 < t->rank || fuzz_one_in(m, 2))
        fuzz_set_integer(m, MUC_KEY_AXIS, axis);
    fuzz_add(m, op, inputs, op == MUC_OP_LAYER_NORM ? 3 : 2,
             op == MUC_OP_LAYER_NORM && !t->quantization && fuzz_one_in(m, 12) ? 3 : 1,
             (fuzz_range){ -6, 6 });
}

static fuzz_range along_range(const fuzz_maker *m, muc_op op, uint32_t x)
{
    double most = fuzz_most(m, x);

    if (op == MUC_OP_SOFTMAX || op == MUC_OP_HARDMAX || op == MUC_OP_LP_NORM)
        return (fuzz_range){ op == MUC_OP_LP_NORM ? -1 : 0, 1 };
    if (op == MUC_OP_CUM_SUM)
        return (fuzz_range){ -8 * most, 8 * most };
    if (op == MUC_OP_ARG_MAX || op == MUC_OP_ARG_MIN)
        return (fuzz_range){ 0, 16 };
    return (fuzz_range){ -2 * most - 4, most };
}

void fuzz_write_along(fuzz_maker *m, muc_op op, uint32_t x)
{
    const muc_tensor *t = fuzz_tensor(m, x);
    bool arg = op == MUC_OP_ARG_MAX || op == MUC_OP_ARG_MIN;
    uint32_t axis;

    if (t->rank == 0 ||
        ((arg || op == MUC_OP_TOP_K || op == MUC_OP_HARDMAX || op == MUC_OP_LP_NORM) &&
         m->noisy[x] && !fuzz_one_in(m, 16)))
        return;
    if (fuzz_is_real(m, x) && fuzz_most(m, x) > 64)
        x = fuzz_tame(m, x, -8, 8);
    if (x == MUC_NO_ID)
        return;
    axis = fuzz_one_in(m, t->quantization && op != MUC_OP_ARG_MAX ? 32 : 2) ? fuzz_pick(m, t->rank)
                                                                            : t->rank - 1;
    fuzz_set_integer(m, MUC_KEY_AXIS, axis);
    if (op == MUC_OP_LP_NORM)
        fuzz_set_integer(m, MUC_KEY_P, fuzz_between(m, 1, 2));
    if (op == MUC_OP_SOFTMAX && fuzz_one_in(m, 4) && fuzz_tensor(m, x)->dtype != MUC_F16)
        fuzz_set_real(m, MUC_KEY_BETA, 0.5);
    if (op == MUC_OP_CUM_SUM) {
        fuzz_set_integer(m, MUC_KEY_EXCLUSIVE, fuzz_pick(m, 2));
        fuzz_set_integer(m, MUC_KEY_REVERSE, fuzz_pick(m, 2));
    }
    if (arg) {
        fuzz_set_integer(m, MUC_KEY_KEEP_DIMS, fuzz_pick(m, 2));
        fuzz_set_integer(m, MUC_KEY_SELECT_LAST, fuzz_pick(m, 2));
    }
    if (op == MUC_OP_TOP_K) {
        fuzz_set_expr(
            m, MUC_KEY_K,
            fuzz_number(m, fuzz_between(m, 1, fuzz_dim(m, x, axis) ? fuzz_dim(m, x, axis) : 1)));
        fuzz_set_integer(m, MUC_KEY_LARGEST, fuzz_pick(m, 2));
    }
    fuzz_add(m, op, &x, 1, op == MUC_OP_TOP_K ? 2 : 1, along_range(m, op, x));
}

void fuzz_write_reduce(fuzz_maker *m, muc_op op, uint32_t x)
{
    uint32_t rank = fuzz_tensor(m, x)->rank, count = 0;
    int64_t axes[MUC_GRAPH_MAX_RANK];
    double most;

    if (fuzz_is_real(m, x))
        x = op == MUC_OP_REDUCE_LOG_SUM       ? fuzz_tame(m, x, 0.125, 8)
            : op == MUC_OP_REDUCE_LOG_SUM_EXP ? fuzz_tame(m, x, -8, 8)
            : op == MUC_OP_REDUCE_PROD        ? fuzz_tame(m, x, -1.5, 1.5)
                                              : fuzz_tame(m, x, -64, 64);
    if (x == MUC_NO_ID || rank == 0)
        return;
    for (uint32_t i = 0; i < rank; i++)
        if (fuzz_one_in(m, 2))
            axes[count++] = i;
    if (count == 0)
        axes[count++] = fuzz_pick(m, rank);
    fuzz_set_integers(m, MUC_KEY_AXES, axes, count);
    fuzz_set_integer(m, MUC_KEY_KEEP_DIMS, fuzz_pick(m, 2));
    most = fuzz_most(m, x) * (op == MUC_OP_REDUCE_MEAN ? 1 : 8);
    fuzz_add(m, op, &x, 1, 1, (fuzz_range){ -most, most });
}

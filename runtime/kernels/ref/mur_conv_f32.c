/* mur_conv_f32.c - convolutions on binary32, four output channels and up to four pixels at a time.
 *
 * Blocks never change the order in which one output's products are added. Weights of a group: for
 * each four channels their biases, then the taps in order, four channels side by side; a last block
 * is filled up with zeros. */
#include "mur_nn_f32.h"
#include "mur_tile_f32.h"

enum { BYTES = (int)sizeof(float) };

static void clamp(const mur_conv_f32 *l, int32_t count, float *out)
{
    for (int32_t i = 0; i < count; i++) {
        float x = out[i] < l->min ? l->min : out[i];

        out[i] = x > l->max ? l->max : x;
    }
}

/* a group's channels of 1 or 4 pixels; returns the weights of the next group */
static const float *run_group(mur_tile_f32 *t, const float *w, int32_t pixels, int32_t channels,
                              float *out)
{
    int32_t rest = channels & 3;

    t->blocks = channels >> 2;
    if (t->blocks != 0)
        w = pixels == 4 ? mur_tile4_f32(t, w, out) : mur_tile1_f32(t, w, out);
    if (rest != 0) {
        mur_tile_f32 last = *t;
        float sums[16];

        last.blocks = 1;
        last.out_step = 4 * BYTES;
        w = pixels == 4 ? mur_tile4_f32(&last, w, sums) : mur_tile1_f32(&last, w, sums);
        for (int32_t i = 0; i < pixels; i++)
            for (int32_t c = 0; c < rest; c++)
                out[i * (t->out_step / BYTES) + channels - rest + c] = sums[i * 4 + c];
    }
    return w;
}

/* the same for a depthwise layer; no input beyond the channels is read */
static void run_depths(mur_tile_f32 *t, const float *w, int32_t pixels, int32_t channels,
                       float *out)
{
    t->blocks = channels >> 2;
    if (t->blocks != 0)
        w = pixels == 4 ? mur_depthwise4_f32(t, w, out) : mur_depthwise1_f32(t, w, out);
    for (int32_t i = 0; i < pixels; i++)
        for (int32_t c = 0; c < (channels & 3); c++) {
            const float *x = t->x[i] + c, *tap = mur_moved(w + 4 + c, t->w_skip);
            float sum = w[c];

            for (int32_t row = 0; row < t->rows; row++) {
                for (int32_t j = 0; j < t->taps; j++, tap += 4, x = mur_moved(x, t->tap_step))
                    sum += *tap * *x;
                x = mur_moved(x, t->row_jump);
                tap = mur_moved(tap, t->w_jump);
            }
            out[i * (t->out_step / BYTES) + t->blocks * 4 + c] = t->relu && sum <= 0 ? 0 : sum;
        }
}

/* the taps from first..end-1 on whose place lies inside `size` */
static void find_inside(int32_t at, int32_t dilation, int32_t size, int32_t *first, int32_t *end)
{
    while (*first < *end && at + *first * dilation < 0)
        ++*first;
    while (*end > *first && at + (*end - 1) * dilation >= size)
        --*end;
}

/* what a tile needs to know of a window whose part inside the image is these rows and columns */
static void set_window(const mur_conv_f32 *l, mur_tile_f32 *t, int32_t first_row, int32_t rows,
                       int32_t first_column, int32_t columns, int joined)
{
    int32_t depth = l->shape.in_c / l->shape.groups * BYTES;

    t->rows = columns != 0 ? rows : 0;
    t->run = joined ? columns * depth : depth;
    t->taps = joined ? 1 : columns;
    t->tap_step = l->shape.dilation_w * l->shape.in_c * BYTES;
    t->tap_jump = joined ? 0 : t->tap_step - depth;
    t->row_jump =
        l->shape.dilation_h * l->shape.in_pitch * BYTES - t->taps * (t->run + t->tap_jump);
    t->w_skip = t->rows != 0 ? (first_row * l->shape.kernel_w + first_column) * depth * 4 : 0;
    t->w_jump = (l->shape.kernel_w - columns) * depth * 4;
    t->w_rest = (l->shape.kernel_h - t->rows) * l->shape.kernel_w * depth * 4 - t->w_skip;
}

/* all channels of 1 or 4 pixels, the first of which has its first tap at x */
static void run_pixels(const mur_conv_f32 *l, mur_tile_f32 *t, const float *x, int32_t pixels,
                       float *out)
{
    int32_t channels = l->shape.out_c / l->shape.groups, depth = l->shape.in_c / l->shape.groups;
    const float *w = l->packed;

    for (int32_t group = 0; group < l->shape.groups; group++) {
        for (int32_t i = 0; i < pixels; i++)
            t->x[i] = x + i * l->shape.stride_w * l->shape.in_c + group * depth;
        w = run_group(t, w, pixels, channels, out + group * channels);
    }
}

static void run_depthwise(const mur_conv_f32 *l, mur_tile_f32 *t, const float *x, int32_t pixels,
                          float *out)
{
    for (int32_t i = 0; i < pixels; i++)
        t->x[i] = x + i * l->shape.stride_w * l->shape.in_c;
    run_depths(t, l->packed, pixels, l->shape.in_c, out);
}

/* what computes 1 or 4 pixels */
typedef void run_some(const mur_conv_f32 *l, mur_tile_f32 *t, const float *x, int32_t pixels,
                      float *out);

static void run_row(const mur_conv_f32 *l, run_some *run, const float *in, int32_t y, float *out)
{
    int32_t reach =
        3 * l->shape.stride_w + (l->shape.kernel_w - 1) * l->shape.dilation_w; /* of four pixels */
    int32_t top = y * l->shape.stride_h - l->shape.pad_top, left = -l->shape.pad_left;
    int32_t row = 0, row_end = l->shape.kernel_h, last_columns = -1;
    int joined =
        run == run_pixels && l->shape.groups == 1 && l->shape.dilation_w == 1; /* rows are runs */
    mur_tile_f32 t;

    find_inside(top, l->shape.dilation_h, l->shape.in_h, &row, &row_end);
    t.out_step = l->shape.out_c * BYTES;
    t.relu = l->relu;
    for (int32_t x = 0, pixels; x < l->shape.out_w;
         x += pixels, left += pixels * l->shape.stride_w) {
        int32_t column = 0, column_end = l->shape.kernel_w, offset = 0;

        pixels = x + 4 <= l->shape.out_w && left >= 0 && left + reach < l->shape.in_w ? 4 : 1;
        if (pixels == 1)
            find_inside(left, l->shape.dilation_w, l->shape.in_w, &column, &column_end);
        if (column_end - column != last_columns || column != 0)
            set_window(l, &t, row, row_end - row, column, column_end - column, joined);
        last_columns = column == 0 ? column_end : -1;
        if (t.rows != 0)
            offset = (top + row * l->shape.dilation_h) * l->shape.in_pitch +
                     (left + column * l->shape.dilation_w) * l->shape.in_c;
        run(l, &t, in + offset, pixels, out + x * l->shape.out_c);
        if (l->min != -1.0f / 0.0f || l->max != 1.0f / 0.0f)
            clamp(l, pixels * l->shape.out_c, out + x * l->shape.out_c);
    }
}

void mur_conv_f32_run(const mur_conv_f32 *l, const float *in, float *out)
{
    for (int32_t y = 0; y < l->shape.out_h; y++)
        run_row(l, run_pixels, in, y, out + y * l->shape.out_pitch);
}

void mur_depthwise_f32_run(const mur_conv_f32 *l, const float *in, float *out)
{
    for (int32_t y = 0; y < l->shape.out_h; y++)
        run_row(l, run_depthwise, in, y, out + y * l->shape.out_pitch);
}

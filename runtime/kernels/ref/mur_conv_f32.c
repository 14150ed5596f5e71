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
        float x = out[i] < l->limits[0] ? l->limits[0] : out[i];

        out[i] = x > l->limits[1] ? l->limits[1] : x;
    }
}

/* a group's channels of 1 or 4 pixels; returns the weights of the next group */
MUR_SMALL const float *run_group(mur_tile_f32 *t, const float *w, int32_t pixels, int32_t channels,
                                 float *out)
{
    int32_t rest = channels & 3;

    t->blocks = channels >> 2;
    if (t->blocks != 0)
        w = pixels == 4 ? mur_tile4_f32(t, w, out) : mur_tile1_f32(t, w, out);
    if (rest != 0) {
        float sums[16];
        int32_t out_step = t->out_step;

        t->blocks = 1;
        t->out_step = 4 * BYTES;
        w = pixels == 4 ? mur_tile4_f32(t, w, sums) : mur_tile1_f32(t, w, sums);
        t->out_step = out_step;
        for (int32_t i = 0; i < pixels; i++)
            for (int32_t c = 0; c < rest; c++)
                out[i * (out_step / BYTES) + channels - rest + c] = sums[i * 4 + c];
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
MUR_SMALL void find_inside(int32_t at, int32_t dilation, int32_t size, int32_t *first, int32_t *end)
{
    while (*first < *end && at + *first * dilation < 0)
        ++*first;
    while (*end > *first && at + (*end - 1) * dilation >= size)
        --*end;
}

/* what a tile needs to know of a window whose part inside the image is these rows and columns */
static void set_window(const mur_conv_shape *s, mur_tile_f32 *t, int32_t first_row, int32_t rows,
                       int32_t first_column, int32_t columns, int joined)
{
    int32_t depth = s->in_c / s->groups * BYTES;

    t->rows = columns != 0 ? rows : 0;
    t->run = joined ? columns * depth : depth;
    t->taps = joined ? 1 : columns;
    t->tap_step = s->dilation_w * s->in_c * BYTES;
    t->tap_jump = joined ? 0 : t->tap_step - depth;
    t->row_jump = s->dilation_h * s->in_pitch * BYTES - t->taps * (t->run + t->tap_jump);
    t->w_skip = t->rows != 0 ? (first_row * s->kernel_w + first_column) * depth * 4 : 0;
    t->w_jump = (s->kernel_w - columns) * depth * 4;
    t->w_rest = (s->kernel_h - t->rows) * s->kernel_w * depth * 4 - t->w_skip;
}

/* all channels of 1 or 4 pixels, the first of which has its first tap at x */
MUR_SMALL void run_pixels(const mur_conv_f32 *l, mur_tile_f32 *t, const float *x, int32_t pixels,
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

MUR_SMALL void run_depthwise(const mur_conv_f32 *l, mur_tile_f32 *t, const float *x, int32_t pixels,
                             float *out)
{
    for (int32_t i = 0; i < pixels; i++)
        t->x[i] = x + i * l->shape.stride_w * l->shape.in_c;
    run_depths(t, l->packed, pixels, l->shape.in_c, out);
}

/* a row of outputs at `out` */
static void run_row(const mur_conv_f32 *l, int depthwise, const float *in, int32_t top, float *out)
{
    const mur_conv_shape *s = &l->shape;
    int32_t reach = 3 * s->stride_w + (s->kernel_w - 1) * s->dilation_w; /* of four pixels */
    int32_t left = -s->pad_left, row = 0, row_end = s->kernel_h, pixels;
    int joined = !depthwise && s->groups == 1 && s->dilation_w == 1; /* rows are runs */
    mur_tile_f32 t;

    find_inside(top, s->dilation_h, s->in_h, &row, &row_end);
    in = mur_moved(in, (top + row * s->dilation_h) * s->in_pitch * BYTES);
    t.out_step = s->out_c * BYTES;
    t.relu = l->relu;
    for (int32_t x = 0; x < s->out_w; x += pixels, left += pixels * s->stride_w) {
        int32_t column = 0, column_end = s->kernel_w;
        const float *from;

        pixels = x + 4 <= s->out_w && left >= 0 && left + reach < s->in_w ? 4 : 1;
        find_inside(left, s->dilation_w, s->in_w, &column, &column_end);
        set_window(s, &t, row, row_end - row, column, column_end - column, joined);
        from = mur_moved(in, (left + column * s->dilation_w) * s->in_c * BYTES);
        if (depthwise)
            run_depthwise(l, &t, from, pixels, out);
        else
            run_pixels(l, &t, from, pixels, out);
        if (l->limits)
            clamp(l, pixels * s->out_c, out);
        out += pixels * s->out_c;
    }
}

MUR_SMALL void run_rows(const mur_conv_f32 *l, int depthwise, const float *in, float *out)
{
    for (int32_t y = 0; y < l->shape.out_h; y++)
        run_row(l, depthwise, in, y * l->shape.stride_h - l->shape.pad_top,
                out + y * l->shape.out_pitch);
}

void mur_conv_f32_run(const mur_conv_f32 *l, const float *in, float *out)
{
    run_rows(l, 0, in, out);
}

void mur_depthwise_f32_run(const mur_conv_f32 *l, const float *in, float *out)
{
    run_rows(l, 1, in, out);
}

void mur_linear_f32(const float *packed, int32_t inputs, int32_t outputs, int32_t relu,
                    const float *in, float *out)
{
    int32_t rest = outputs & 3;
    mur_tile_f32 t;

    t.x[0] = in;
    t.run = inputs * BYTES;
    t.taps = t.rows = 1;
    t.tap_jump = t.row_jump = 0;
    t.w_skip = t.w_jump = t.w_rest = 0;
    t.relu = relu;
    t.blocks = outputs >> 2;
    if (t.blocks != 0)
        packed = mur_tile1_f32(&t, packed, out);
    if (rest != 0) {
        float sums[4];

        t.blocks = 1;
        mur_tile1_f32(&t, packed, sums);
        for (int32_t i = 0; i < rest; i++)
            out[outputs - rest + i] = sums[i];
    }
}

/* four columns as weights of four channels, with biases of 0 */
static float *pack_columns(const mur_matmul_f32 *l, const float *b, int32_t columns, float *to)
{
    for (int32_t i = 0; i < 4; i++)
        *to++ = 0;
    for (int32_t k = 0; k < l->depth; k++, b += l->b_row)
        for (int32_t i = 0; i < 4; i++)
            *to++ = i < columns ? b[i * l->b_column] : 0;
    return to;
}

void mur_matmul_f32_run(const mur_matmul_f32 *l, const float *a, const float *b, float *out,
                        void *scratch)
{
    mur_tile_f32 t;

    t.run = l->depth * BYTES;
    t.taps = t.rows = 1;
    t.tap_jump = t.row_jump = 0;
    t.w_skip = t.w_jump = t.w_rest = 0;
    t.out_step = l->out_pitch * BYTES;
    t.relu = 0;
    for (int32_t column = 0; column < l->columns; column += MUR_MATMUL_F32_PANEL) {
        int32_t left = l->columns - column, pixels;
        int32_t columns = left < MUR_MATMUL_F32_PANEL ? left : MUR_MATMUL_F32_PANEL;
        float *packed = scratch;

        for (int32_t c = 0; c < columns; c += 4)
            packed = pack_columns(l, b + (column + c) * l->b_column, columns - c, packed);
        for (int32_t row = 0; row < l->rows; row += pixels) {
            pixels = row + 4 <= l->rows ? 4 : 1;
            for (int32_t i = 0; i < pixels; i++)
                t.x[i] = a + (row + i) * l->a_pitch;
            (void)run_group(&t, scratch, pixels, columns, out + row * l->out_pitch + column);
        }
    }
}

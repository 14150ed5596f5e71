/* mur_dsp_depthwise_taps.c - depthwise convolutions of any window, stride and dilation in
 * TensorFlow Lite's arithmetic, four channels at a time.
 *
 * All that the windows of four channels touch is copied to scratch as one plane, a word a pixel,
 * borders and all; so outputs may overwrite inputs. A list of taps says where a window's pixels
 * lie: any two outputs share its loads. */
#include "mur_dsp_depthwise.h"
#include "mur_dsp_taps.h"
#include "mur_nn_arith.h"

/* How four channels are copied to the plane. */
typedef struct quad_copy {
    uint32_t *to;
    int32_t rows, columns, rest; /* of the image; words from a row's end to the next */
    int32_t step, pitch;         /* bytes from pixel to pixel, and from row to row */
} quad_copy;

static void set_offsets(const mur_conv_shape *s, mur_dsp_tap *tap)
{
    int32_t pitch = 4 * s->dilation_h * mur_dsp_taps_columns(s);

    for (int32_t i = 0; i < s->kernel_h; i++)
        for (int32_t j = 0; j < s->kernel_w; j++, tap++)
            tap->offset = i * pitch + 4 * j * s->dilation_w;
    tap->offset = -1;
}

static void set_weights(const int8_t *w, mur_dsp_tap *tap, int32_t taps)
{
    for (; taps > 0; taps--, w += 4, tap++) {
        uint32_t four = mur_four(w);

        tap->even = mur_sxtb16(four);
        tap->odd = mur_sxtb16_odd(four);
    }
}

/* `channels` of the image to the plane, 1 to 4 */
static void copy_quad(const quad_copy *copy, const int8_t *in, int32_t channels)
{
    int32_t step = copy->step, columns = copy->columns;
    uint32_t *to = copy->to;

    for (int32_t y = copy->rows; y > 0; y--, in += copy->pitch, to += copy->rest) {
        const int8_t *from = in;

        if (channels == 4)
#pragma GCC unroll 4
            for (int32_t x = columns; x > 0; x--, from += step)
                *to++ = mur_four(from);
        else
            for (int32_t x = columns; x > 0; x--, from += step) {
                uint32_t word = (uint8_t)from[0];

                if (channels > 1)
                    word |= (uint32_t)(uint8_t)from[1] << 8;
                if (channels > 2)
                    word |= (uint32_t)(uint8_t)from[2] << 16;
                *to++ = word;
            }
    }
}

/* How outputs follow each other: `count` of them in a line, at least 1. */
typedef struct quad_line {
    const uint8_t *x;
    int8_t *out;
    int32_t count, x_step, out_step;
} quad_line;

/* a pair of outputs, or the same twice, of `channels`: no more bytes are written than these */
static __attribute__((noinline)) void run_some(mur_dsp_taps *run, const quad_line *line, int32_t i,
                                               int32_t channels)
{
    int32_t j = i + 1 < line->count ? i + 1 : i;
    int8_t some[2][4], *first = line->out + i * line->out_step;
    int8_t *second = line->out + j * line->out_step;

    run->pairs = 1;
    run->x[0] = line->x + i * line->x_step;
    run->x[1] = line->x + j * line->x_step;
    run->out[0] = some[0];
    run->out[1] = some[1];
    mur_dsp_taps_pairs(run);
    for (int32_t c = 0; c < channels; c++) {
        first[c] = some[0][c];
        second[c] = some[1][c];
    }
}

static void run_line(mur_dsp_taps *run, const quad_line *line, int32_t channels)
{
    int32_t done = 0;

    if (channels == 4 && line->count > 1) {
        run->x[0] = line->x;
        run->x[1] = line->x + line->x_step;
        run->out[0] = line->out;
        run->out[1] = line->out + line->out_step;
        run->x_step = 2 * line->x_step;
        run->out_step = 2 * line->out_step;
        run->pairs = line->count >> 1;
        mur_dsp_taps_pairs(run);
        done = line->count & ~1;
    }
    for (; done < line->count; done += 2)
        run_some(run, line, done, channels);
}

/* All outputs of four channels, in lines along the longer side; of odd lines the last outputs are a
 * line across. */
static void run_quad(const mur_conv_shape *s, const uint8_t *plane, mur_dsp_taps *run, int8_t *out,
                     int32_t channels)
{
    quad_line row = { plane, out, s->out_w, 4 * s->stride_w, s->out_c };
    quad_line column = { plane, out, s->out_h, 4 * mur_dsp_taps_columns(s) * s->stride_h,
                         s->out_pitch };
    quad_line line = s->out_w >= s->out_h ? row : column;
    quad_line across = s->out_w >= s->out_h ? column : row;
    int32_t even = line.count & ~1, is_odd = line.count & 1;

    line.count = even;
    for (int32_t i = 0; even > 0 && i < across.count; i++) {
        run_line(run, &line, channels);
        line.x += across.x_step;
        line.out += across.out_step;
    }
    across.x += even * line.x_step;
    across.out += even * line.out_step;
    if (is_odd && across.count > 0)
        run_line(run, &across, channels);
}

void mur_dsp_depthwise_taps_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out,
                               void *scratch)
{
    const mur_conv_shape *s = &layer->shape;
    int32_t rows = mur_dsp_taps_rows(s), columns = mur_dsp_taps_columns(s);
    int32_t count = s->kernel_h * s->kernel_w;
    const uint8_t *packed = layer->packed;
    mur_dsp_tap *taps = scratch;
    uint32_t *plane = (uint32_t *)(taps + count + 1);
    mur_dsp_taps run;
    quad_copy copy;

    copy.to = plane + s->pad_top * columns + s->pad_left;
    copy.rows = mur_clamp(rows - s->pad_top, 0, s->in_h);
    copy.columns = mur_clamp(columns - s->pad_left, 0, s->in_w);
    copy.rest = columns - copy.columns;
    copy.step = s->in_c;
    copy.pitch = s->in_pitch;
    for (int32_t i = 0; copy.rows * copy.columns < rows * columns && i < rows * columns; i++)
        plane[i] = (uint8_t)layer->in_zero * 0x1010101u;
    set_offsets(s, taps);
    run.taps = taps;
    run.zero = layer->output.zero;
    for (int32_t c = 0; c < s->in_c; c += 4) {
        int32_t channels = s->in_c - c < 4 ? s->in_c - c : 4;

        run.head = (const mur_dsp_quad_head *)(const void *)packed;
        set_weights((const int8_t *)(run.head + 1), taps, count);
        packed += sizeof(*run.head) + 4 * (uint32_t)count;
        copy_quad(&copy, in + c, channels);
        run_quad(s, (const uint8_t *)plane, &run, out + c, channels);
    }
    mur_dsp_clamp(layer, out);
}

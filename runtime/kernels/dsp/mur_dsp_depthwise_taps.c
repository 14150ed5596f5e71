/* mur_dsp_depthwise_taps.c - depthwise convolutions of any window, stride, dilation and
 * multiplier in TensorFlow Lite's arithmetic, four output channels at a time.
 *
 * All that the windows of four outputs touch is copied to scratch as one plane, a word a pixel,
 * borders and all; so outputs may overwrite inputs. A list of taps says where a window's pixels
 * lie: any two outputs share its loads. */
#include "mur_dsp_depthwise.h"
#include "mur_dsp_taps.h"
#include "mur_nn_arith.h"

/* How the inputs of four channels are copied to the plane. The order of members is the assembly's.
 */
typedef struct quad_copy {
    uint32_t *to;
    const int8_t *from;
    int32_t step, columns, rows; /* bytes from pixel to pixel; at least 1 */
    int32_t to_rest, from_rest;  /* bytes from a row's end to the next */
} quad_copy;

static __attribute__((noinline, cold)) void set_offsets(const mur_conv_shape *s, mur_dsp_tap *tap)
{
    int32_t pitch = 4 * s->dilation_h * mur_dsp_taps_columns(s);

    for (int32_t i = 0; i < s->kernel_h; i++)
        for (int32_t j = 0; j < s->kernel_w; j++, tap++)
            tap->offset = i * pitch + 4 * j * s->dilation_w;
    tap->offset = -1;
}

/* doubled weights of four channels */
static void set_weights(const int8_t *w, mur_dsp_tap *tap, int32_t taps)
{
    for (; taps > 0; taps--, w += 4, tap++) {
        uint32_t four = mur_four(w);

        tap->even = mur_sxtab16(mur_sxtb16(four), four);
        tap->odd = mur_sxtab16_odd(mur_sxtb16_odd(four), four);
    }
}

/* the inputs of four outputs, side by side */
#if MUR_HAVE_DSP
/* clang-format off */
__attribute__((naked, noinline)) static void copy_fours(__attribute__((unused)) const quad_copy *copy)
{
    __asm__ volatile("push {r4-r11, lr}\n"
                     "ldm r0, {r0-r6}\n"
                     "add r12, r2, r2, lsl #1\n"
                     "1: subs r7, r3, #4\n"
                     "blt 3f\n"
                     "2: ldr r8, [r1]\n"
                     "ldr r9, [r1, r2]\n"
                     "ldr r10, [r1, r2, lsl #1]\n"
                     "ldr r11, [r1, r12]\n"
                     "add r1, r1, r2, lsl #2\n"
                     "subs r7, r7, #4\n"
                     "stm r0!, {r8-r11}\n"
                     "bge 2b\n"
                     "3: adds r7, r7, #4\n"
                     "beq 5f\n"
                     "4: ldr r8, [r1]\n"
                     "add r1, r1, r2\n"
                     "subs r7, r7, #1\n"
                     "str r8, [r0], #4\n"
                     "bne 4b\n"
                     "5: add r0, r0, r5\n"
                     "add r1, r1, r6\n"
                     "subs r4, r4, #1\n"
                     "bne 1b\n"
                     "pop {r4-r11, pc}\n" ::
                         : "memory");
}
/* clang-format on */
#else
static void copy_fours(const quad_copy *copy)
{
    const int8_t *from = copy->from;
    uint32_t *to = copy->to;

    for (int32_t y = copy->rows; y > 0; y--, from += copy->from_rest, to += copy->to_rest / 4)
        for (int32_t x = copy->columns; x > 0; x--, from += copy->step)
            *to++ = mur_four(from);
}
#endif

/* The inputs of four outputs to the plane, the first of which is the `first` of its input's
 * `times`; of channels that are not there, the last one's. */
static __attribute__((noinline)) void copy_quad(const quad_copy *copy, int32_t first,
                                                int32_t channels, int32_t times)
{
    const uint8_t *a, *b, *c, *d;
    uint32_t *to = copy->to;

    if (channels == 4 && times == 1) {
        copy_fours(copy);
        return;
    }
    a = (const uint8_t *)copy->from;
    b = a + (first + (channels > 1)) / times;
    c = a + (first + (channels > 2 ? 2 : channels - 1)) / times;
    d = a + (first + channels - 1) / times;
    for (int32_t y = 0; y < copy->rows; y++, to += copy->to_rest / 4) {
        int32_t at = y * (copy->columns * copy->step + copy->from_rest);

        for (int32_t x = copy->columns; x > 0; x--, at += copy->step)
            *to++ = a[at] | (uint32_t)b[at] << 8 | (uint32_t)c[at] << 16 | (uint32_t)d[at] << 24;
    }
}

/* An output: its window and its place, and bytes from them to those of the next in a line. */
typedef struct place {
    const uint8_t *x;
    int8_t *out;
    int32_t x_step, out_step;
} place;

/* `pairs` pairs in each of `lines` lines, the next line behind the first by `across`; returns what
 * is behind *run */
static __attribute__((noinline, cold)) mur_dsp_taps *
set_run(mur_dsp_taps *run, const place *first, const place *across, int32_t pairs, int32_t lines)
{
    run->x[0] = first->x;
    run->x[1] = first->x + first->x_step;
    run->out[0] = first->out;
    run->out[1] = first->out + first->out_step;
    run->x_step = 2 * first->x_step;
    run->out_step = 2 * first->out_step;
    run->left = run->pairs = pairs;
    run->lines = lines;
    run->x_next = across->x_step - pairs * run->x_step;
    run->out_next = across->out_step - pairs * run->out_step;
    return run + 1;
}

static void go_to(place *at, const place *step, int32_t steps)
{
    at->x += steps * step->x_step;
    at->out += steps * step->out_step;
}

/* All outputs, in lines along the longer side; of odd lines the last outputs are a line across, of
 * which the last may make a pair with itself. Returns what is behind the last of up to three runs.
 */
static __attribute__((noinline, cold)) mur_dsp_taps *
set_runs(const mur_conv_shape *s, const uint8_t *plane, int8_t *out, mur_dsp_taps *run)
{
    int32_t down = s->stride_h / mur_dsp_taps_every_row(s) * mur_dsp_taps_columns(s);
    place row = { plane, out, 4 * (s->stride_w / mur_dsp_taps_every_column(s)), s->out_c };
    place column = { plane, out, 4 * down, s->out_pitch };
    int32_t is_row = s->out_w >= s->out_h, length = is_row ? s->out_w : s->out_h;
    int32_t lines = is_row ? s->out_h : s->out_w;
    place *along = is_row ? &row : &column, *across = is_row ? &column : &row;

    if (lines <= 0)
        return run;
    if (length > 1)
        run = set_run(run, along, across, length >> 1, lines);
    if ((length & 1) == 0)
        return run;
    go_to(across, along, length - 1);
    if (lines > 1)
        run = set_run(run, across, along, lines >> 1, 1);
    if ((lines & 1) == 0)
        return run;
    go_to(across, across, lines - 1);
    across->x_step = across->out_step = 0;
    return set_run(run, across, along, 1, 1);
}

/* the plane's border, if it has one, and how the image's pixels get there */
static __attribute__((noinline, cold)) quad_copy set_plane(const mur_conv_s8 *layer,
                                                           uint32_t *plane)
{
    const mur_conv_shape *s = &layer->shape;
    int32_t rows = mur_dsp_taps_rows(s), columns = mur_dsp_taps_columns(s);
    int32_t row = mur_dsp_taps_every_row(s), column = mur_dsp_taps_every_column(s);
    int32_t in_h = (s->in_h + row - 1) / row, in_w = (s->in_w + column - 1) / column;
    quad_copy copy;

    copy.to = plane + s->pad_top * columns + s->pad_left;
    copy.rows = mur_clamp(rows - s->pad_top, 0, in_h);
    copy.columns = mur_clamp(columns - s->pad_left, 0, in_w);
    copy.to_rest = 4 * (columns - copy.columns);
    copy.step = column * s->in_c;
    copy.from_rest = row * s->in_pitch - copy.columns * copy.step;
    for (int32_t i = 0; copy.rows * copy.columns < rows * columns && i < rows * columns; i++)
        plane[i] = (uint8_t)layer->in_zero * 0x1010101u;
    return copy;
}

void mur_dsp_depthwise_taps_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out,
                               void *scratch)
{
    const mur_conv_shape *s = &layer->shape;
    int32_t taps = s->kernel_h * s->kernel_w, times = s->out_c / s->in_c;
    const uint8_t *packed = layer->packed;
    mur_dsp_tap *list = scratch;
    uint32_t *plane = (uint32_t *)(list + taps + 1);
    quad_copy copy = set_plane(layer, plane);
    mur_dsp_taps runs[3], *end = set_runs(s, (const uint8_t *)plane, out, runs);
    mur_dsp_tap_scale scales[4];

    set_offsets(s, list);
    for (int32_t c = 0; c < s->out_c; c += 4) {
        const mur_dsp_quad_head *head = (const void *)packed;
        int32_t channels = s->out_c - c < 4 ? s->out_c - c : 4;

        set_weights((const int8_t *)(head + 1), list, taps);
        mur_dsp_set_scales(head, layer->output.zero, scales);
        packed += sizeof(*head) + 4 * (uint32_t)taps;
        copy.from = in + c / times;
        if (copy.rows > 0 && copy.columns > 0) /* not borders alone */
            copy_quad(&copy, c % times, channels, times);
        for (mur_dsp_taps *run = runs; run < end; run++) {
            run->taps = list;
            run->bias = head->bias;
            run->channels = channels;
            run->scales_end = scales + channels;
            mur_dsp_taps_run(run);
            run->out[0] += 4;
            run->out[1] += 4;
        }
    }
    mur_dsp_clamp(layer, out);
}

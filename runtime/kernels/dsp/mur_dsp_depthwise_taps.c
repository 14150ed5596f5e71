/* mur_dsp_depthwise_taps.c - depthwise convolutions of any window, stride, dilation and
 * multiplier in TensorFlow Lite's arithmetic, four output channels at a time.
 *
 * Where all taps lie inside the image, and outputs see channels side by side, windows are read
 * where they lie: outputs are written in the image's order, so those that lie on the input
 * overwrite no more than what is read. Otherwise all that the windows of four outputs touch is
 * copied to scratch as one plane, a word a pixel, borders and all. */
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

/* The inputs of four outputs to the plane, of which `first` is the first; of channels before the
 * input's, its own first. */
static __attribute__((noinline)) void copy_quad(quad_copy *copy, const int8_t *in, int32_t first,
                                                int32_t times)
{
    uint32_t *to = copy->to;
    const uint8_t *from[4];

    if (copy->rows <= 0 || copy->columns <= 0) /* borders alone */
        return;
    if (first >= 0 && times == 1) {
        copy->from = in + first;
        copy_fours(copy);
        return;
    }
    for (int32_t c = 0; c < 4; c++)
        from[c] = (const uint8_t *)in + mur_dsp_lane(first + c, times);
    for (int32_t y = 0; y < copy->rows; y++, to += copy->to_rest / 4) {
        int32_t at = y * (copy->columns * copy->step + copy->from_rest);

        for (int32_t x = copy->columns; x > 0; x--, at += copy->step)
            *to++ = from[0][at] | (uint32_t)from[1][at] << 8 | (uint32_t)from[2][at] << 16 |
                    (uint32_t)from[3][at] << 24;
    }
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

/* a list of weights, from bytes */
static __attribute__((noinline)) void set_list(const mur_dsp_quad_head *head, int32_t taps,
                                               int32_t zero, uint32_t *list)
{
    const int8_t *w = (const int8_t *)(head + 1);

    for (int32_t c = 0; c < 4; c++)
        *list++ = (uint32_t)head->bias[c];
    if (taps & 1) {
        uint32_t four = mur_four(w);

        *list++ = mur_sxtab16(mur_sxtb16(four), four);
        *list++ = mur_sxtab16_odd(mur_sxtb16_odd(four), four);
        w += 4;
    }
    for (; taps > 1; taps -= 2, w += 8, list += 4)
        mur_dsp_double_pair(mur_four(w), mur_four(w + 4), list);
    mur_dsp_set_scales(head, zero, (mur_dsp_tap_scale *)(void *)list);
}

/* Outputs one behind the other, and bytes from one to the next. */
typedef struct side {
    int32_t count, x_step, out_step;
} side;

/* What does not change from four channels to four. */
typedef struct work {
    const mur_conv_shape *s;
    side along, across; /* of a line, and from line to line */
    mur_dsp_taps run;
} work;

/* Lines are the longer side, unless outputs may lie on the input. */
static __attribute__((noinline, cold)) void set_sides(work *k, int32_t is_in_place, int32_t pixel,
                                                      int32_t pitch)
{
    const mur_conv_shape *s = k->s;
    int32_t down = is_in_place ? s->stride_h : s->stride_h / mur_dsp_taps_every_row(s);
    int32_t right = is_in_place ? s->stride_w : s->stride_w / mur_dsp_taps_every_column(s);
    const side rows = { s->out_h, down * pitch, s->out_pitch };
    const side columns = { s->out_w, right * pixel, s->out_c };
    int32_t is_down = s->out_w < (is_in_place ? 2 : s->out_h);

    k->along = is_down ? rows : columns;
    k->across = is_down ? columns : rows;
    k->run.x_step = k->along.x_step;
    k->run.out_step = k->along.out_step;
}

static __attribute__((noinline, cold)) void set_places(work *k, int32_t *far, int32_t pixel,
                                                       int32_t pitch)
{
    const mur_conv_shape *s = k->s;
    mur_dsp_taps *run = &k->run;
    int32_t taps = s->kernel_h * s->kernel_w, column = 0, row = 0;

    run->taps = taps;
    run->far = far;
    run->far_end = far + mur_dsp_taps_far(s);
    for (int32_t tap = 0; tap < taps; tap++) {
        int32_t at = row * s->dilation_h * pitch + column * s->dilation_w * pixel;

        if (tap == 1)
            run->second = at;
        if (tap > 1 - (taps & 1)) {
            if (far < run->far_end)
                *far++ = at;
            else
                run->near[MUR_DSP_TAPS_NEAR - taps + tap] = at;
        }
        if (++column == s->kernel_w) {
            column = 0;
            row++;
        }
    }
}

/* lines of outputs, as often as `fours` says, each time with weights list_four bytes ahead */
static __attribute__((noinline)) void run_lines(mur_dsp_taps *run, const side *line,
                                                const side *lines, const side *fours,
                                                int32_t list_four)
{
    run->x_end = run->x + line->count * line->x_step;
    run->x_pitch = lines->x_step;
    run->x_next = lines->x_step - line->count * line->x_step;
    run->out_next = lines->out_step - line->count * line->out_step;
    run->left = run->lines = lines->count;
    run->x_four = fours->x_step - lines->count * lines->x_step;
    run->out_four = fours->out_step - lines->count * lines->out_step;
    run->list_four = list_four;
    run->fours = fours->count;
    mur_dsp_taps_run(run);
}

void mur_dsp_depthwise_taps_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out,
                               void *scratch)
{
    const mur_conv_shape *s = &layer->shape;
    int32_t taps = s->kernel_h * s->kernel_w, times = s->out_c / s->in_c;
    int32_t is_in_place = mur_dsp_taps_in_place(s), is_listed = mur_dsp_taps_listed(s);
    int32_t pixel = is_in_place ? s->in_c : 4;
    int32_t pitch = is_in_place ? s->in_pitch : 4 * mur_dsp_taps_columns(s);
    const uint8_t *packed = layer->packed;
    uint32_t *list = (uint32_t *)scratch + mur_dsp_taps_far(s);
    uint32_t *plane = is_listed ? list : list + mur_dsp_taps_words(s);
    side fours = { 1, 4, 4 }, one;
    quad_copy copy;
    work k;

    k.s = s;
    set_sides(&k, is_in_place, pixel, pitch);
    set_places(&k, scratch, pixel, pitch);
    if (!is_in_place)
        copy = set_plane(layer, plane);
    one = k.along;
    one.count = 1;
    for (int32_t c = 0; c < s->out_c; c += 4 * fours.count) {
        int32_t left = s->out_c - c, first = left < 4 ? s->out_c - 4 : c;

        fours.count = is_in_place && is_listed && left > 3 ? left >> 2 : 1;
        k.run.out = out + first;
        k.run.x = in + first;
        if (!is_in_place) {
            copy_quad(&copy, in, first, times);
            k.run.x = (const int8_t *)plane;
        }
        k.run.list = (const uint32_t *)(const void *)packed;
        if (!is_listed) {
            set_list((const mur_dsp_quad_head *)(const void *)packed, taps, layer->output.zero,
                     list);
            k.run.list = list;
        }
        packed += fours.count * mur_dsp_taps_four_bytes(s);
        k.run.last = left < 4 ? left : 0;
        if (left < 4) /* lines of one output, each image's line once */
            run_lines(&k.run, &one, &k.along, &k.across, 0);
        else
            run_lines(&k.run, &k.along, &k.across, &fours, 4 * mur_dsp_taps_words(s));
    }
    mur_dsp_clamp(layer, out);
}

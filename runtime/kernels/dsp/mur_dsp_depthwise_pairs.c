/* mur_dsp_depthwise_pairs.c - depthwise convolutions of any window, stride, dilation and multiplier
 * in TensorFlow Lite's arithmetic, four output channels and two taps at a time.
 *
 * All that the windows of four outputs touch is copied to scratch as one plane of pairs, borders
 * and all; so outputs may overwrite inputs. */
#include "mur_dsp_tap_pairs.h"

enum { ELEMENT = 16, WORDS = ELEMENT / 4 };

/* What does not change from four channels to four. */
typedef struct work {
    const mur_conv_s8 *layer;
    mur_dsp_pairs p;
    int32_t *list;                                      /* biases and pairs of taps */
    uint32_t *plane;                                    /* behind them */
    int32_t pitch;                                      /* bytes of a line of the plane */
    int32_t in_along, in_across, out_along, out_across; /* bytes from pixel to pixel */
    mur_dsp_pair_run runs[2];
} work;

static mur_dsp_tap_pair *pairs_of(const work *k)
{
    return (mur_dsp_tap_pair *)(void *)(k->list + 4);
}

/* bytes from a window's first element to that of a pair of taps */
static int32_t place_of(const work *k, int32_t i, int32_t j)
{
    int32_t column = j * k->p.along.dilation / k->p.grain, phases = k->p.phases;

    return i * 2 * k->p.across.dilation / k->p.every * k->pitch +
           ELEMENT * (column % phases * k->p.length + column / phases);
}

static __attribute__((noinline, cold)) void set_steps(const work *k)
{
    mur_dsp_tap_pair *pair = pairs_of(k);
    int32_t at = 0;

    for (int32_t i = 0; i < k->p.steps; i++)
        for (int32_t j = 0; j < k->p.along.kernel; j++, pair++) {
            int32_t next = place_of(k, i, j);

            if (pair != pairs_of(k))
                pair[-1].step = next - at;
            at = next;
        }
    pair[-1].step = 1;
}

/* biases and doubled weights of four channels */
static __attribute__((noinline)) void set_weights(const work *k, const mur_dsp_quad_head *head)
{
    const int8_t *w = (const int8_t *)(head + 1);
    int32_t along = 4 * (k->p.is_down ? 1 : k->layer->shape.kernel_w);
    int32_t across = 4 * (k->p.is_down ? k->layer->shape.kernel_w : 1);
    mur_dsp_tap_pair *pair = pairs_of(k);

    for (int32_t c = 0; c < 4; c++)
        k->list[c] = head->bias[c];
    for (int32_t i = k->p.across.kernel; i > 0; i -= 2, w += 2 * across) {
        const int8_t *at = w;

        for (int32_t j = k->p.along.kernel; j > 0; j--, at += along, pair++)
            mur_dsp_double_pair(mur_four(at), i > 1 ? mur_four(at + across) : 0, pair->w);
    }
}

/* All outputs, in lines; the last of an odd number together with the one before it, again. Returns
 * how many runs that is. */
static __attribute__((noinline, cold)) int32_t set_runs(work *k, int8_t *out)
{
    int32_t count = k->p.along.out, pairs = count > 1 ? count >> 1 : 1, used = 0;
    mur_dsp_pair_run run;

    run.list = k->list;
    run.lines = k->p.across.out;
    run.x_pitch = k->p.across.stride / k->p.every * k->pitch;
    run.out_step = count > 1 ? k->out_along : 0;
    run.x = k->plane;
    run.out = out;
    for (; pairs > 0; pairs = count > 1 && (count & 1) && used == 1) {
        run.x_end = run.x + 2 * WORDS * pairs;
        run.x_next = run.x_pitch - 2 * ELEMENT * pairs;
        run.out_next = k->out_across - 2 * pairs * run.out_step;
        k->runs[used++] = run;
        run.x = k->plane + WORDS * (count - 2);
        run.out = out + (count - 2) * k->out_along;
    }
    return used;
}

/* the inputs of four outputs that are not four channels side by side, of lines as in `copy` */
static __attribute__((noinline)) void copy_apart(const mur_dsp_pair_copy *copy, int32_t first,
                                                 int32_t times)
{
    const int8_t *a = copy->a, *b = copy->b;
    uint32_t *to = copy->to;
    int32_t from[4];

    for (int32_t c = 0; c < 4; c++)
        from[c] = mur_dsp_lane(first + c, times) - mur_dsp_lane(first, times);
    for (int32_t y = copy->lines; y > 0; y--, a += copy->next, b += copy->next) {
        for (int32_t x = copy->count; x > 0; x--, a += copy->a_step, b += copy->b_step)
            for (int32_t c = 0; c < 4; c++)
                *to++ = mur_halves((uint32_t)a[from[c]], (uint32_t)b[from[c]]);
        to += copy->to_next / 4;
    }
}

/* the first place of a line whose element is not before `at` of the image */
static int32_t first_place(int32_t at, int32_t stride)
{
    return at > 0 ? (at + stride - 1) / stride : 0;
}

/* The inputs of four outputs of a phase to the plane, of which `first` is the first. Lines whose
 * taps are both inside the image go together. */
static void copy_phase(const work *k, int32_t phase, const int8_t *in, int32_t first, int32_t times)
{
    const mur_dsp_side *x = &k->p.along, *y = &k->p.across;
    int32_t shift = x->pad - phase * k->p.grain;
    int32_t place = first_place(shift, x->stride);
    int32_t end = first_place(shift + x->in, x->stride), start = place * x->stride - shift;
    const uint32_t border = (uint8_t)k->layer->in_zero * 0x1010101u;
    mur_dsp_pair_copy copy;

    in += mur_dsp_lane(first, times);
    copy.count = (end < k->p.length ? end : k->p.length) - place;
    copy.to_next = k->pitch - ELEMENT * copy.count;
    for (int32_t line = 0; copy.count > 0 && line < k->p.lines; line += copy.lines) {
        int32_t row = line * k->p.every - y->pad, other = row + y->dilation;
        int32_t is_a = row >= 0 && row < y->in, is_b = other >= 0 && other < y->in;
        int32_t last = first_place(y->in - other, k->p.every); /* lines before both are inside */

        copy.lines = is_a && is_b ? (last < k->p.lines - line ? last : k->p.lines - line) : 1;
        copy.to = k->plane + line * (k->pitch / 4) + WORDS * (phase * k->p.length + place);
        copy.a = is_a ? in + row * k->in_across + start * k->in_along : (const int8_t *)&border;
        copy.b = is_b ? in + other * k->in_across + start * k->in_along : (const int8_t *)&border;
        copy.a_step = is_a ? x->stride * k->in_along : 0;
        copy.b_step = is_b ? x->stride * k->in_along : 0;
        copy.next = k->p.every * k->in_across - copy.count * x->stride * k->in_along;
        if (!is_a && !is_b)
            continue;
        if (first >= 0 && times == 1)
            mur_dsp_pairs_copy(&copy);
        else
            copy_apart(&copy, first, times);
    }
}

static __attribute__((noinline, cold)) void set_border(const work *k)
{
    uint32_t border = ((uint32_t)k->layer->in_zero & 0xffffu) * 0x10001u;

    if (!mur_dsp_has_border(&k->p.along) && !mur_dsp_has_border(&k->p.across))
        return;
    for (uint32_t *to = k->plane; to < k->plane + k->p.lines * (k->pitch / 4); to += WORDS)
        to[0] = to[1] = to[2] = to[3] = border;
}

void mur_dsp_depthwise_pairs_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out,
                                void *scratch)
{
    const mur_conv_shape *s = &layer->shape;
    int32_t times = s->out_c / s->in_c, runs;
    const uint8_t *packed = layer->packed;
    mur_dsp_tap_scale scales[4];
    work k;

    k.layer = layer;
    k.p = mur_dsp_pairs_of(s);
    k.list = scratch;
    k.plane = (uint32_t *)(void *)(pairs_of(&k) + k.p.steps * k.p.along.kernel);
    k.pitch = ELEMENT * k.p.phases * k.p.length;
    k.in_along = k.p.is_down ? s->in_c : s->in_pitch;
    k.in_across = k.p.is_down ? s->in_pitch : s->in_c;
    k.out_along = k.p.is_down ? s->out_c : s->out_pitch;
    k.out_across = k.p.is_down ? s->out_pitch : s->out_c;
    set_border(&k);
    set_steps(&k);
    runs = set_runs(&k, out);
    for (int32_t c = 0; c < s->out_c; c += 4) {
        const mur_dsp_quad_head *head = (const void *)packed;
        int32_t channels = s->out_c - c < 4 ? s->out_c - c : 4, first = c + channels - 4;

        set_weights(&k, head);
        mur_dsp_set_scales(head, layer->output.zero, scales);
        packed += mur_dsp_quad_bytes(s);
        for (int32_t phase = 0; phase < k.p.phases; phase++)
            copy_phase(&k, phase, in, first, times);
        for (int32_t i = 0; i < runs; i++) {
            mur_dsp_pair_run run = k.runs[i];

            run.channels = channels;
            run.scales_end = scales + 4;
            run.out += first;
            mur_dsp_pairs_run(&run);
        }
    }
    mur_dsp_clamp(layer, out);
}

/* mur_mve_conv_f16.c - convolutions on halves: the windows of four pixels become columns of floats
 * in scratch, tap by tap, by which four output channels at a time are multiplied. */
#include "mur_mve_half.h"

enum { PIXELS = 4 };

/* Pixels that are computed together; behind the first `pixels` the last one again. */
typedef struct block {
    int32_t pixels, inside;              /* all windows lie inside the image */
    int32_t row[PIXELS], column[PIXELS]; /* where each window begins, which may be outside */
    const uint16_t *x[PIXELS];           /* the same */
    uint16_t *out[PIXELS];
} block;

/* Part of a window's row, of which the elements from first to end - 1 lie in the image. */
typedef struct run {
    const uint16_t *x;
    int32_t first, end;
} run;

#if MUR_HAVE_MVE_HALF

static inline mur_half_four load_inside(const run *r, int32_t k)
{
    uint32_t end = (uint32_t)(r->end > k ? r->end - k : 0);
    uint32_t first = (uint32_t)(r->first > k ? r->first - k : 0);

    return mur_half_load_some(r->x + k, (mve_pred16_t)(vctp32q(end) & ~vctp32q(first)));
}

/* `count` elements of each pixel as rows of scratch, zeros outside the image */
MUR_MVE_OPTIMIZED static void spread(const run *runs, int32_t pixels, int32_t count, float *to)
{
    for (int32_t k = 0; k < count; k += 4) {
        float32x4x4_t four;

        if (pixels == 1) {
            vstrwq_f32(to + k, load_inside(&runs[0], k));
            continue;
        }
        for (int32_t i = 0; i < PIXELS; i++)
            four.val[i] = load_inside(&runs[i], k);
        vst4q_f32(to + k * PIXELS, four);
    }
}

/* the same of four pixels inside */
MUR_MVE_OPTIMIZED static void spread_four(const uint16_t *const *x, int32_t offset, int32_t count,
                                          float *to)
{
    const uint16_t *x0 = x[0] + offset, *x1 = x[1] + offset;
    const uint16_t *x2 = x[2] + offset, *x3 = x[3] + offset;
    float32x4x4_t four;

    for (; count >= 4; count -= 4, x0 += 4, x1 += 4, x2 += 4, x3 += 4, to += 4 * PIXELS) {
        four.val[0] = mur_half_load(x0);
        four.val[1] = mur_half_load(x1);
        four.val[2] = mur_half_load(x2);
        four.val[3] = mur_half_load(x3);
        vst4q_f32(to, four);
    }
    if (count > 0) {
        four.val[0] = mur_half_load_first(x0, count);
        four.val[1] = mur_half_load_first(x1, count);
        four.val[2] = mur_half_load_first(x2, count);
        four.val[3] = mur_half_load_first(x3, count);
        vst4q_f32(to, four);
    }
}

/* two taps of four pixels */
static inline void add_two(mur_half_four sums[PIXELS], const uint16_t **w, const float **x)
{
    mur_half_four a, b;
    float p, q, r, s;

    __asm volatile("vldrh.u32 %q[a], [%[w]], #8\n"
                   "ldrd %[p], %[q], [%[x]], #8\n"
                   "vldrh.u32 %q[b], [%[w]], #8\n"
                   ".inst.w 0xfe3f0e01 + (mur_%q[a] << 13) + (mur_%q[a] << 1)\n"
                   "ldrd %[r], %[s], [%[x]], #8\n"
                   "vfma.f32 %q[s0], %q[a], %[p]\n"
                   "vfma.f32 %q[s1], %q[a], %[q]\n"
                   ".inst.w 0xfe3f0e01 + (mur_%q[b] << 13) + (mur_%q[b] << 1)\n"
                   "ldrd %[p], %[q], [%[x]], #8\n"
                   "vfma.f32 %q[s2], %q[a], %[r]\n"
                   "vfma.f32 %q[s3], %q[a], %[s]\n"
                   "ldrd %[r], %[s], [%[x]], #8\n"
                   "vfma.f32 %q[s0], %q[b], %[p]\n"
                   "vfma.f32 %q[s1], %q[b], %[q]\n"
                   "vfma.f32 %q[s2], %q[b], %[r]\n"
                   "vfma.f32 %q[s3], %q[b], %[s]\n"
                   : [s0] "+w"(sums[0]), [s1] "+w"(sums[1]), [s2] "+w"(sums[2]), [s3] "+w"(sums[3]),
                     [a] "=&w"(a), [b] "=&w"(b), [p] "=&r"(p), [q] "=&r"(q), [r] "=&r"(r),
                     [s] "=&r"(s), [w] "+r"(*w), [x] "+r"(*x));
}

#else

static inline void add_two(mur_half_four sums[PIXELS], const uint16_t **w, const float **x)
{
    for (int32_t k = 0; k < 2; k++, *w += 4, *x += PIXELS)
        for (int32_t i = 0; i < PIXELS; i++)
            sums[i] = mur_half_add_scaled(sums[i], mur_half_load(*w), (*x)[i]);
}

static void spread(const run *runs, int32_t pixels, int32_t count, float *to)
{
    for (int32_t k = 0; k < count; k++)
        for (int32_t i = 0; i < pixels; i++)
            *to++ = k >= runs[i].first && k < runs[i].end ? mur_float_of_half(runs[i].x[k]) : 0;
}

static void spread_four(const uint16_t *const *x, int32_t offset, int32_t count, float *to)
{
    for (int32_t k = offset; k < offset + count; k++)
        for (int32_t i = 0; i < PIXELS; i++)
            *to++ = mur_float_of_half(x[i][k]);
}

#endif

/* ---- windows ---- */

/* of pixel p the elements of `taps` taps, from tap j of row i of its window on */
MUR_MVE_OPTIMIZED static run run_of(const mur_conv_shape *s, const block *at, int32_t p,
                                    int32_t offset, int32_t i, int32_t j, int32_t taps)
{
    int32_t depth = s->in_c / s->groups;
    int32_t row = at->row[p] + i * s->dilation_h, column = at->column[p] + j * s->dilation_w;
    int32_t first = column < 0 ? -column : 0, end = s->in_w - column;
    run r;

    r.x = mur_half_moved(at->x[p], offset);
    if (row < 0 || row >= s->in_h || first > taps)
        first = end = 0;
    r.first = first * depth;
    r.end = (end < taps ? end : taps) * depth;
    return r;
}

/* the windows, of channels from `first` on; up to three elements of each behind them */
static void gather(const mur_conv_shape *s, const block *at, int32_t first, float *to)
{
    int32_t joined = s->groups == 1 && s->dilation_w == 1, taps = joined ? s->kernel_w : 1;
    int32_t count = taps * (s->in_c / s->groups), pixels = mur_mve_conv_f16_pixels(s);
    run runs[PIXELS];

    for (int32_t i = 0; i < s->kernel_h; i++)
        for (int32_t j = 0; j < s->kernel_w; j += taps, to += count * pixels) {
            int32_t offset = i * s->dilation_h * s->in_pitch + j * s->dilation_w * s->in_c + first;

            if (at->inside && pixels == PIXELS) {
                spread_four(at->x, offset, count, to);
                continue;
            }
            for (int32_t p = 0; p < pixels; p++)
                runs[p] = run_of(s, at, p, offset, i, j, taps);
            spread(runs, pixels, count, to);
        }
}

/* ---- products ---- */

/* `channels` outputs of a block from `first` on; returns the weights behind theirs */
MUR_MVE_OPTIMIZED static const uint16_t *multiply_four(const float *x, const uint16_t *w,
                                                       int32_t taps, int32_t floor,
                                                       int32_t channels, const block *at,
                                                       int32_t first)
{
    int32_t pixels = at->pixels;

    for (int32_t c = 0; c < channels; c += 4) {
        mur_half_four sum = mur_half_load(w), sums[PIXELS] = { sum, sum, sum, sum };
        const float *from = x;
        int32_t rest = channels - c;

        w += 4;
        for (int32_t k = taps >> 1; k > 0; k--)
            add_two(sums, &w, &from);
        if (taps & 1) {
            mur_half_four four = mur_half_load(w);

            w += 4;
            sums[0] = mur_half_add_scaled(sums[0], four, from[0]);
            sums[1] = mur_half_add_scaled(sums[1], four, from[1]);
            sums[2] = mur_half_add_scaled(sums[2], four, from[2]);
            sums[3] = mur_half_add_scaled(sums[3], four, from[3]);
        }
        mur_half_store(sums[0], floor, rest, at->out[0] + first + c);
        if (pixels > 1)
            mur_half_store(sums[1], floor, rest, at->out[1] + first + c);
        if (pixels > 2)
            mur_half_store(sums[2], floor, rest, at->out[2] + first + c);
        if (pixels > 3)
            mur_half_store(sums[3], floor, rest, at->out[3] + first + c);
    }
    return w;
}

/* the same of one */
MUR_MVE_OPTIMIZED static const uint16_t *multiply_one(const float *x, const uint16_t *w,
                                                      int32_t taps, int32_t floor, int32_t channels,
                                                      uint16_t *out)
{
    for (; channels > 0; channels -= 4, out += 4) {
        mur_half_four sum = mur_half_load(w);
        const float *from = x;

        w += 4;
        for (int32_t k = taps; k > 0; k--, w += 4)
            sum = mur_half_add_scaled(sum, mur_half_load(w), *from++);
        mur_half_store(sum, floor, channels, out);
    }
    return w;
}

/* all outputs of the block */
MUR_MVE_OPTIMIZED static void run_block(const mur_conv_f16 *l, const block *at, float *scratch)
{
    const mur_conv_shape *s = &l->shape;
    int32_t channels = s->out_c / s->groups, depth = s->in_c / s->groups;
    int32_t taps = s->kernel_h * s->kernel_w * depth, floor = mur_half_floor(l->relu);
    const uint16_t *w = l->packed;

    for (int32_t group = 0; group < s->groups; group++) {
        gather(s, at, group * depth, scratch);
        w = mur_mve_conv_f16_pixels(s) == 1
                ? multiply_one(scratch, w, taps, floor, channels, at->out[0] + group * channels)
                : multiply_four(scratch, w, taps, floor, channels, at, group * channels);
    }
    for (int32_t i = 0; l->limits && i < at->pixels; i++)
        mur_half_clip(s->out_c, l->limits, at->out[i], at->out[i]);
}

void mur_mve_conv_f16(const mur_conv_f16 *l, const uint16_t *in, uint16_t *out, void *scratch)
{
    const mur_conv_shape *s = &l->shape;
    int32_t most_row = s->in_h - (s->kernel_h - 1) * s->dilation_h;
    int32_t most_column = s->in_w - (s->kernel_w - 1) * s->dilation_w;
    int32_t stride = s->stride_w, step = stride * s->in_c, channels = s->out_c;
    block at;

    at.pixels = 0;
    at.inside = 1;
    for (int32_t y = 0; y < s->out_h; y++) {
        int32_t row = y * s->stride_h - s->pad_top, column = -s->pad_left;
        int32_t inside = row >= 0 && row < most_row;
        const uint16_t *x = mur_half_moved(in, row * s->in_pitch + column * s->in_c);
        uint16_t *to = out + y * s->out_pitch;

        for (int32_t left = s->out_w; left > 0; left--) {
            int32_t i = at.pixels++;

            at.row[i] = row;
            at.column[i] = column;
            at.x[i] = x;
            at.out[i] = to;
            at.inside &= inside && column >= 0 && column < most_column;
            column += stride;
            x = mur_half_moved(x, step);
            to += channels;
            if (at.pixels < PIXELS && (left > 1 || y + 1 < s->out_h))
                continue;
            while (++i < PIXELS) {
                at.row[i] = at.row[i - 1];
                at.column[i] = at.column[i - 1];
                at.x[i] = at.x[i - 1];
            }
            run_block(l, &at, scratch);
            at.pixels = 0;
            at.inside = 1;
        }
    }
}

/* mur_mve_depthwise_f16.c - depthwise convolutions on halves: of four channels the rows under a
 * segment of outputs become floats in scratch, with zeros around the image, and four outputs at a
 * time are sums of those. */
#include "mur_mve_half.h"

enum { PIXELS = 4, CHANNELS = 4 };

/* a segment of a row of outputs, and the rows of its windows that are inside */
typedef struct segment {
    int32_t pixels;
    int32_t row, rows;        /* of the kernel; 0 rows: none */
    int32_t span, first, end; /* columns in scratch, and of them those that are inside */
    const uint16_t *in;       /* the first one's */
} segment;

/* of a segment whose windows begin at a column, which may be outside */
static void find_columns(const mur_conv_shape *s, segment *at, int32_t column)
{
    int32_t first = column < 0 ? -column : 0, end = s->in_w - column;

    at->first = first < at->span ? first : at->span;
    at->end = end > at->span ? at->span : end < at->first ? at->first : end;
}

#if MUR_HAVE_MVE_HALF

/* columns of a row of the image */
static inline void spread_row(const uint16_t *x, int32_t step, int32_t columns, int32_t channels,
                              float *to)
{
    if (channels >= CHANNELS)
        for (; columns > 0; columns--, x += step, to += CHANNELS)
            vstrwq_f32(to, mur_half_load(x));
    else
        for (; columns > 0; columns--, x += step, to += CHANNELS)
            vstrwq_f32(to, mur_half_load_first(x, channels));
}

/* A tap of one output: *w is four weights, *x four floats behind which the next tap's lie. */
static inline mur_half_four add_one(mur_half_four sum, const uint16_t **w, const float **x)
{
    sum = mur_half_add_product(sum, mur_half_load(*w), vldrwq_f32(*x));
    *w += CHANNELS;
    *x += CHANNELS;
    return sum;
}

/* of four */
static inline void add_four(mur_half_four sums[PIXELS], const uint16_t **w, const float **x)
{
    mur_half_four four, a, b;

    __asm volatile("vldrh.u32 %q[four], [%[w]], #8\n"
                   "vldrw.u32 %q[a], [%[x0]], #16\n"
                   ".inst.w 0xfe3f0e01 + (mur_%q[four] << 13) + (mur_%q[four] << 1)\n"
                   "vldrw.u32 %q[b], [%[x1]], #16\n"
                   "vfma.f32 %q[s0], %q[four], %q[a]\n"
                   "vldrw.u32 %q[a], [%[x2]], #16\n"
                   "vfma.f32 %q[s1], %q[four], %q[b]\n"
                   "vldrw.u32 %q[b], [%[x3]], #16\n"
                   "vfma.f32 %q[s2], %q[four], %q[a]\n"
                   "vfma.f32 %q[s3], %q[four], %q[b]\n"
                   : [s0] "+w"(sums[0]), [s1] "+w"(sums[1]), [s2] "+w"(sums[2]), [s3] "+w"(sums[3]),
                     [four] "=&w"(four), [a] "=&w"(a), [b] "=&w"(b), [w] "+r"(*w), [x0] "+r"(x[0]),
                     [x1] "+r"(x[1]), [x2] "+r"(x[2]), [x3] "+r"(x[3]));
}

#else

static inline void spread_row(const uint16_t *x, int32_t step, int32_t columns, int32_t channels,
                              float *to)
{
    for (; columns > 0; columns--, x += step)
        for (int32_t c = 0; c < CHANNELS; c++)
            *to++ = c < channels ? mur_float_of_half(x[c]) : 0;
}

static inline mur_half_four add_one(mur_half_four sum, const uint16_t **w, const float **x)
{
    mur_half_four four;

    for (int32_t c = 0; c < CHANNELS; c++)
        four.at[c] = (*x)[c];
    sum = mur_half_add_product(sum, mur_half_load(*w), four);
    *w += CHANNELS;
    *x += CHANNELS;
    return sum;
}

static inline void add_four(mur_half_four sums[PIXELS], const uint16_t **w, const float **x)
{
    const uint16_t *from = *w;

    for (int32_t i = 0; i < PIXELS; i++) {
        *w = from;
        sums[i] = add_one(sums[i], w, &x[i]);
    }
}

#endif

/* The segment's inputs of up to four channels, x the first inside; zeros around them stay. */
MUR_MVE_OPTIMIZED static void spread(const mur_conv_shape *s, const segment *at, const uint16_t *x,
                                     int32_t channels, float *to)
{
    to += at->first * CHANNELS;
    for (int32_t i = at->rows; i > 0; i--, to += at->span * CHANNELS) {
        spread_row(x, s->in_c, at->end - at->first, channels, to);
        x = mur_half_moved(x, s->dilation_h * s->in_pitch);
    }
}

/* what spread leaves alone */
static void clear(const segment *at, float *to)
{
    for (int32_t i = at->rows; i > 0; i--)
        for (int32_t column = 0; column < at->span; column++, to += CHANNELS)
            if (column < at->first || column >= at->end)
                for (int32_t c = 0; c < CHANNELS; c++)
                    to[c] = 0;
}

/* What is done to a segment and up to four of its channels; steps in floats. */
typedef struct strip {
    int32_t rows, taps;
    int32_t gap, row_gap; /* from behind a tap to the next one, from there to the next row */
    int32_t next;         /* from output to output */
    int32_t floor, channels, out_step;
} strip;

#ifdef __GNUC__
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#else
#define ALWAYS_INLINE static inline
#endif

/* four outputs, the first `pixels` of which are wanted; gap as in the strip */
ALWAYS_INLINE void run_four(const strip *t, const float *x, const uint16_t *bias, const uint16_t *w,
                            int32_t gap, int32_t pixels, uint16_t *out)
{
    int32_t floor = t->floor, channels = t->channels, out_step = t->out_step;
    const float *from[PIXELS] = { x, x + t->next, x + 2 * t->next, x + 3 * t->next };
    mur_half_four sum = mur_half_load(bias), sums[PIXELS] = { sum, sum, sum, sum };

    for (int32_t i = t->rows; i > 0; i--) {
        for (int32_t j = t->taps; j > 0; j--) {
            add_four(sums, &w, from);
            from[0] += gap;
            from[1] += gap;
            from[2] += gap;
            from[3] += gap;
        }
        from[0] += t->row_gap;
        from[1] += t->row_gap;
        from[2] += t->row_gap;
        from[3] += t->row_gap;
    }
    mur_half_store(sums[0], floor, channels, out);
    if (pixels > 1)
        mur_half_store(sums[1], floor, channels, out + out_step);
    if (pixels > 2)
        mur_half_store(sums[2], floor, channels, out + 2 * out_step);
    if (pixels > 3)
        mur_half_store(sums[3], floor, channels, out + 3 * out_step);
}

static inline void run_one(const strip *t, const float *x, const uint16_t *bias, const uint16_t *w,
                           uint16_t *out)
{
    mur_half_four sum = mur_half_load(bias);

    for (int32_t i = t->rows; i > 0; i--, x += t->row_gap)
        for (int32_t j = t->taps; j > 0; j--, x += t->gap)
            sum = add_one(sum, &w, &x);
    mur_half_store(sum, t->floor, t->channels, out);
}

/* all outputs */
MUR_MVE_OPTIMIZED static void run_strip(const strip *t, const float *x, const uint16_t *bias,
                                        const uint16_t *w, int32_t pixels, uint16_t *out)
{
    for (; pixels > 1; pixels -= PIXELS, x += PIXELS * t->next, out += PIXELS * t->out_step)
        if (t->gap == 0)
            run_four(t, x, bias, w, 0, pixels, out);
        else
            run_four(t, x, bias, w, t->gap, pixels, out);
    if (pixels == 1)
        run_one(t, x, bias, w, out);
}

static void run_segment(const mur_conv_f16 *l, const segment *at, float *scratch, uint16_t *out)
{
    const mur_conv_shape *s = &l->shape;
    const uint16_t *bias = l->packed, *in = at->in;
    strip t;

    t.rows = at->rows;
    t.taps = s->kernel_w;
    t.gap = (s->dilation_w - 1) * CHANNELS;
    t.row_gap = (at->span - s->kernel_w * s->dilation_w) * CHANNELS;
    t.next = s->stride_w * CHANNELS;
    t.floor = mur_half_floor(l->relu);
    t.out_step = s->out_c;
    clear(at, scratch);
    for (int32_t c = 0; c < s->in_c; c += CHANNELS, in += CHANNELS) {
        const uint16_t *w = bias + CHANNELS + at->row * s->kernel_w * CHANNELS;

        t.channels = s->in_c - c < CHANNELS ? s->in_c - c : CHANNELS;
        spread(s, at, in, t.channels, scratch);
        run_strip(&t, scratch, bias, w, at->pixels, out + c);
        bias += CHANNELS * (1 + s->kernel_h * s->kernel_w);
    }
    for (int32_t i = 0; l->limits && i < at->pixels; i++)
        mur_half_clip(s->out_c, l->limits, out + i * s->out_c, out + i * s->out_c);
}

void mur_mve_depthwise_f16(const mur_conv_f16 *l, const uint16_t *in, uint16_t *out, void *scratch)
{
    const mur_conv_shape *s = &l->shape;
    int32_t most = mur_mve_depthwise_f16_pixels(s);
    segment at;

    at.span = mur_mve_depthwise_f16_columns(s);
    for (int32_t y = 0; y < s->out_h; y++) {
        int32_t top = y * s->stride_h - s->pad_top;

        at.row = 0;
        at.rows = s->kernel_h;
        for (; at.rows > 0 && top < 0; at.row++, at.rows--)
            top += s->dilation_h;
        while (at.rows > 0 && top + (at.rows - 1) * s->dilation_h >= s->in_h)
            at.rows--;
        for (int32_t x = 0; x < s->out_w; x += most) {
            at.pixels = s->out_w - x < most ? s->out_w - x : most;
            find_columns(s, &at, x * s->stride_w - s->pad_left);
            at.in = mur_half_moved(in, top * s->in_pitch +
                                           (x * s->stride_w - s->pad_left + at.first) * s->in_c);
            run_segment(l, &at, scratch, out + y * s->out_pitch + x * s->out_c);
        }
    }
}

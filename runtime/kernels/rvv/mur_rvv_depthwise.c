/* mur_rvv_depthwise.c - depthwise convolutions, three neighbouring pixels of up to 64 channels at a
 * time.
 *
 * The rows that windows of an output row touch are in scratch, borders and all: a ring of them, so
 * outputs may overwrite inputs. */
#include "mur_rvv_tile.h"

/* Some channels of a layer, and the ring of their rows. */
typedef struct ring {
    const mur_conv_s8 *layer;
    const int8_t *in; /* the first channel */
    int32_t channels;
    int8_t *rows;
    int32_t row_bytes;
    int32_t *offsets; /* of the rows of a window, [kernel_h] */
} ring;

/* row `at` of the image, or above or below it, with its borders */
static void fill_row(const ring *r, int32_t at, int8_t *to)
{
    const mur_conv_shape *s = &r->layer->shape;
    int32_t width = mur_rvv_width(s), left = s->pad_left < width ? s->pad_left : width;
    int32_t inside = mur_clamp(width - left, 0, s->in_w);
    const int8_t *from = r->in + at * s->in_pitch;

    if (at < 0 || at >= s->in_h) {
        mur_rvv_fill(to, r->layer->in_zero, r->row_bytes);
        return;
    }
    mur_rvv_fill(to, r->layer->in_zero, left * r->channels);
    to += left * r->channels;
    if (r->channels == s->in_c)
        mur_rvv_copy(to, from, inside * r->channels);
    else
        for (int32_t i = 0; i < inside; i++)
            mur_rvv_copy(to + i * r->channels, from + i * s->in_c, r->channels);
    mur_rvv_fill(to + inside * r->channels, r->layer->in_zero,
                 (width - left - inside) * r->channels);
}

#if MUR_HAVE_RVV

/* taps, row by row, of each pixel times the channels' weights */
#define TAPS \
    "1: lw %[a], 0(%[offsets])\n" \
    "addi %[offsets], %[offsets], 4\n" \
    "mv %[taps], %[kernel_w]\n" \
    "add %[a], %[a], %[x]\n" \
    ".if %[pixels] > 1\n" \
    "add %[b], %[a], %[stride]\n" \
    ".endif\n" \
    ".if %[pixels] > 2\n" \
    "add %[c], %[b], %[stride]\n" \
    ".endif\n" \
    "2: vle8.v v6, (%[w])\n" \
    "add %[w], %[w], %[w_step]\n" \
    "vsext.vf2 v4, v6\n" \
    "vle8.v v2, (%[a])\n" \
    "add %[a], %[a], %[tap]\n" \
    "vsext.vf2 v0, v2\n" \
    "vwmacc.vv v8, v0, v4\n" \
    ".if %[pixels] > 1\n" \
    "vle8.v v2, (%[b])\n" \
    "add %[b], %[b], %[tap]\n" \
    "vsext.vf2 v0, v2\n" \
    "vwmacc.vv v16, v0, v4\n" \
    ".endif\n" \
    ".if %[pixels] > 2\n" \
    "vle8.v v2, (%[c])\n" \
    "add %[c], %[c], %[tap]\n" \
    "vsext.vf2 v0, v2\n" \
    "vwmacc.vv v24, v0, v4\n" \
    ".endif\n" \
    "addi %[taps], %[taps], -1\n" \
    "bnez %[taps], 2b\n" \
    "bne %[offsets], %[end], 1b\n"
#define STORE \
    "vsse8.v v8, (%[out]), %[step]\n" \
    ".if %[pixels] > 1\n" \
    "add %[out], %[out], %[out_c]\n" \
    "vsse8.v v16, (%[out]), %[step]\n" \
    ".endif\n" \
    ".if %[pixels] > 2\n" \
    "add %[out], %[out], %[out_c]\n" \
    "vsse8.v v24, (%[out]), %[step]\n" \
    ".endif\n"

/* void name(ring, channels, x, w, out): windows of so many pixels, from x on */
#define MULTIPLY(name, pixel_count) \
    static void name(const ring *r, const mur_rvv_channels *channels, const int8_t *x, \
                     const int8_t *w, int8_t *out) \
    { \
        const mur_conv_shape *s = &r->layer->shape; \
        const mur_output_s8 *output = &r->layer->output; \
        const int32_t *offsets = r->offsets, *end = offsets + s->kernel_h; \
        intptr_t taps, step = s->out_c / s->in_c; \
        const int8_t *a, *b, *c; \
\
        __asm__ volatile( \
            MUR_RVV_BEGIN TAPS MUR_RVV_SCALE MUR_RVV_BYTES STORE \
            : [offsets] "+&r"(offsets), [w] "+&r"(w), [out] "+&r"(out), [taps] "=&r"(taps), \
              [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c) \
            : [pixels] "i"(pixel_count), [coded] "i"(0), [end] "r"(end), [x] "r"(x), \
              [kernel_w] "r"((intptr_t)s->kernel_w), \
              [stride] "r"((intptr_t)s->stride_w * r->channels), \
              [tap] "r"((intptr_t)s->dilation_w * r->channels), [w_step] "r"((intptr_t)s->in_c), \
              [step] "r"((intptr_t)step), [out_c] "r"((intptr_t)s->out_c), \
              [count] "r"((intptr_t)channels->count), [bias] "r"(channels->bias), \
              [mul] "r"(channels->mul), [right] "r"(channels->right), \
              [code_step] "r"((intptr_t)0), [zero] "r"((intptr_t)output->zero), \
              [min] "r"((intptr_t)output->min), [max] "r"((intptr_t)output->max) \
            : MUR_RVV_CHANGES); \
    }

#else

#define MULTIPLY(name, pixel_count) \
    static void name(const ring *r, const mur_rvv_channels *channels, const int8_t *x, \
                     const int8_t *w, int8_t *out) \
    { \
        const mur_conv_shape *s = &r->layer->shape; \
        int32_t step = s->out_c / s->in_c, stride = s->stride_w * r->channels; \
\
        for (int32_t p = pixel_count; p > 0; p--, x += stride, out += s->out_c) \
            for (int32_t i = 0; i < channels->count; i++) { \
                int32_t sum = channels->bias[i]; \
\
                for (int32_t k = 0; k < s->kernel_h * s->kernel_w; k++) \
                    sum += x[r->offsets[k / s->kernel_w] + \
                             k % s->kernel_w * s->dilation_w * r->channels + i] * \
                           w[k * s->in_c + i]; \
                out[i * step] = mur_rvv_byte(&r->layer->output, channels, i, 0, sum); \
            } \
    }

#endif

MULTIPLY(multiply1, 1)
MULTIPLY(multiply2, 2)
MULTIPLY(multiply3, 3)

/* a row of outputs of as many channels as a vector holds */
static void run_row(const ring *r, const mur_rvv_channels *channels, const int8_t *x,
                    const int8_t *w, int8_t *out)
{
    const mur_conv_shape *s = &r->layer->shape;
    int32_t left = s->out_w, step = MUR_RVV_PIXELS * s->stride_w * r->channels;

    for (; left >= MUR_RVV_PIXELS; left -= MUR_RVV_PIXELS, x += step) {
        multiply3(r, channels, x, w, out);
        out += MUR_RVV_PIXELS * s->out_c;
    }
    if (left == 2)
        multiply2(r, channels, x, w, out);
    else if (left == 1)
        multiply1(r, channels, x, w, out);
}

/* channels from `first` on, of each multiple, of output row y */
static void run_channels(const ring *r, int32_t first, int8_t *out)
{
    const mur_conv_shape *s = &r->layer->shape;
    const mur_rvv_parts parts = mur_rvv_parts_of(r->layer);
    int32_t multiplier = s->out_c / s->in_c, taps = s->kernel_h * s->kernel_w;

    for (int32_t j = 0; j < multiplier; j++)
        for (int32_t done = 0, count; done < r->channels; done += count) {
            int32_t at = j * s->in_c + first + done;
            mur_rvv_channels some = { parts.bias + at, parts.mul + at, parts.right + at, 0, 0 };

            some.count = count = mur_rvv_count(r->channels - done);
            run_row(r, &some, r->rows + done, parts.weights + j * taps * s->in_c + first + done,
                    out + (first + done) * multiplier + j);
        }
}

void mur_rvv_depthwise_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    const mur_conv_shape *s = &layer->shape;
    int32_t slots = mur_rvv_rows(s), width = mur_rvv_width(s);

    for (int32_t first = 0; first < s->in_c; first += MUR_RVV_PLANES) {
        int32_t left = s->in_c - first, next = 0;
        ring r = { layer, in + first, left < MUR_RVV_PLANES ? left : MUR_RVV_PLANES,
                   NULL,  0,          scratch };

        r.rows = (int8_t *)(r.offsets + s->kernel_h);
        r.row_bytes = width * r.channels;
        for (int32_t y = 0; y < s->out_h; y++) {
            int32_t top = y * s->stride_h;

            for (next = next < top ? top : next; next < top + slots; next++)
                fill_row(&r, next - s->pad_top, r.rows + next % slots * r.row_bytes);
            for (int32_t i = 0; i < s->kernel_h; i++)
                r.offsets[i] = (top + i * s->dilation_h) % slots * r.row_bytes;
            run_channels(&r, first, out + y * s->out_pitch);
        }
    }
}

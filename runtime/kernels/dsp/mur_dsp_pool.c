/* mur_dsp_pool.c - average pooling, four channels at a time. */
#include "mur_dsp.h"
#include "mur_nn_arith.h"

/* A window's sums of four channels, in pairs of halves: 256 pixels never leave 16 bits. */
enum { PIXELS_OF_HALVES = 256 };

typedef struct window {
    const int8_t *in; /* its first pixel */
    int32_t rows, columns, pitch, step;
} window;

static int32_t divide(int32_t sum, int32_t count)
{
    return (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
}

/* a + the low, and the high, halves of b */
static uint32_t add_halves(uint32_t a, uint32_t b)
{
#if MUR_HAVE_DSP
    uint32_t out;

    __asm__("sadd16 %0, %1, %2" : "=r"(out) : "r"(a), "r"(b));
    return out;
#else
    return ((a + b) & 0xffffu) | ((a & 0xffff0000u) + (b & 0xffff0000u));
#endif
}

static void average_four(const window *w, int32_t c, int32_t sums[4])
{
    uint32_t even = 0, odd = 0;

    for (int32_t y = 0; y < w->rows; y++) {
        const int8_t *p = w->in + y * w->pitch + c;

        for (int32_t x = w->columns; x != 0; x--, p += w->step) {
            uint32_t four = mur_four(p);

            even = add_halves(even, mur_sxtb16(four));
            odd = add_halves(odd, mur_sxtb16_odd(four));
        }
    }
    sums[0] = (int16_t)even;
    sums[1] = (int16_t)odd;
    sums[2] = (int16_t)(even >> 16);
    sums[3] = (int16_t)(odd >> 16);
}

static int32_t sum_one(const window *w, int32_t c)
{
    int32_t sum = 0;

    for (int32_t y = 0; y < w->rows; y++)
        for (int32_t x = 0; x < w->columns; x++)
            sum += w->in[y * w->pitch + x * w->step + c];
    return sum;
}

static void average(const window *w, const mur_pool_s8 *layer, int8_t *out)
{
    int32_t count = w->rows * w->columns, c = 0;

    if (count <= 0)
        count = 1; /* and the sums are 0 */
    for (; c + 4 <= layer->c && count <= PIXELS_OF_HALVES; c += 4) {
        int32_t sums[4];

        average_four(w, c, sums);
        for (int32_t i = 0; i < 4; i++)
            out[c + i] = (int8_t)mur_clamp(divide(sums[i], count), layer->min, layer->max);
    }
    for (; c < layer->c; c++)
        out[c] = (int8_t)mur_clamp(divide(sum_one(w, c), count), layer->min, layer->max);
}

void mur_dsp_average_pool_s8(const mur_pool_s8 *layer, const int8_t *in, int8_t *out)
{
    window w;

    w.pitch = layer->in_pitch;
    w.step = layer->c;
    for (int32_t y = 0; y < layer->out_h; y++) {
        int32_t top = y * layer->stride_h - layer->pad_top, bottom = top + layer->kernel_h;

        top = top < 0 ? 0 : top;
        w.rows = (bottom > layer->in_h ? layer->in_h : bottom) - top;
        for (int32_t x = 0; x < layer->out_w; x++) {
            int32_t left = x * layer->stride_w - layer->pad_left, right = left + layer->kernel_w;

            left = left < 0 ? 0 : left;
            w.columns = (right > layer->in_w ? layer->in_w : right) - left;
            if (w.rows < 0 || w.columns < 0)
                w.rows = w.columns = 0;
            w.in = in + top * layer->in_pitch + left * layer->c;
            average(&w, layer, out + y * layer->out_pitch + x * layer->c);
        }
    }
}

/* mur_mve_pool_f16.c - pools of halves: the greatest of eight channels at a time, means of four,
 * whose sums and quotients are those of binary32. */
#include "mur_mve_half.h"
#include "mur_nn_f16.h"
#include "mur_pool.h"

/* the part of a window inside the image: its first pixel, and elements from row to row */
typedef struct part {
    const uint16_t *in;
    int32_t rows, columns, pitch;
} part;

#if MUR_HAVE_MVE_HALF

static void greatest(const part *w, int32_t c, uint16_t *out)
{
    for (int32_t left = c, first = 0; left > 0; left -= 8, first += 8) {
        mve_pred16_t inside = vctp16q((uint32_t)left);
        const uint16_t *row = w->in + first;
        float16x8_t best = vdupq_n_f16(0);

        if (w->rows > 0 && w->columns > 0)
            best = vreinterpretq_f16_u16(vldrhq_z_u16(row, inside));
        for (int32_t y = w->rows; y > 0; y--, row += w->pitch) {
            const uint16_t *p = row;

            for (int32_t x = w->columns; x > 0; x--, p += c) {
                float16x8_t v = vreinterpretq_f16_u16(vldrhq_z_u16(p, inside));

                best = vpselq_f16(v, best, vcmpgtq_f16(v, best)); /* not of NaN */
            }
        }
        vstrhq_p_u16(out + first, vreinterpretq_u16_f16(best), inside);
    }
}

static void mean(const part *w, int32_t c, uint16_t *out)
{
    const float count = (float)(w->rows * w->columns);

    for (int32_t left = c, first = 0; left > 0; left -= 4, first += 4) {
        mve_pred16_t inside = vctp32q((uint32_t)left);
        const uint16_t *row = w->in + first;
        float32x4_t sums = vdupq_n_f32(0);

        for (int32_t y = w->rows; y > 0; y--, row += w->pitch) {
            const uint16_t *p = row;

            for (int32_t x = w->columns; x > 0; x--, p += c)
                sums = vaddq_f32(sums, mur_half_load_some(p, inside));
        }
        for (int32_t i = 0; i < 4; i++)
            sums[i] /= count;
        mur_half_store(sums, mur_half_floor(0), left, out + first);
    }
}

#else

static void greatest(const part *w, int32_t c, uint16_t *out)
{
    for (int32_t i = 0; i < c; i++) {
        uint16_t best = w->rows > 0 && w->columns > 0 ? w->in[i] : 0;

        for (int32_t y = 0; y < w->rows; y++)
            for (int32_t x = 0; x < w->columns; x++) {
                uint16_t value = w->in[y * w->pitch + x * c + i];

                best = mur_float_of_half(value) > mur_float_of_half(best) ? value : best;
            }
        out[i] = best;
    }
}

static void mean(const part *w, int32_t c, uint16_t *out)
{
    for (int32_t i = 0; i < c; i++) {
        float sum = 0;

        for (int32_t y = 0; y < w->rows; y++)
            for (int32_t x = 0; x < w->columns; x++)
                sum += mur_float_of_half(w->in[y * w->pitch + x * c + i]);
        out[i] = mur_half_of_float(sum / (float)(w->rows * w->columns));
    }
}

#endif

static inline __attribute__((always_inline)) void
run(const mur_pool_f16 *layer, const uint16_t *in, uint16_t *out,
    void (*of)(const part *w, int32_t c, uint16_t *out))
{
    part w;

    w.pitch = layer->in_pitch;
    for (int32_t y = 0; y < layer->out_h; y++) {
        int32_t top = mur_pool_inside(y * layer->stride_h - layer->pad_top, layer->kernel_h,
                                      layer->in_h, &w.rows);

        for (int32_t x = 0; x < layer->out_w; x++) {
            int32_t left = mur_pool_inside(x * layer->stride_w - layer->pad_left, layer->kernel_w,
                                           layer->in_w, &w.columns);

            w.in = in + top * layer->in_pitch + left * layer->c;
            of(&w, layer->c, out + y * layer->out_pitch + x * layer->c);
        }
    }
}

void mur_mve_greatest_f16(const mur_pool_f16 *layer, const uint16_t *in, uint16_t *out)
{
    run(layer, in, out, greatest);
}

void mur_mve_averages_f16(const mur_pool_f16 *layer, const uint16_t *in, uint16_t *out)
{
    run(layer, in, out, mean);
}

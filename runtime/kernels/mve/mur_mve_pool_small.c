/* mur_mve_pool_small.c - averages of windows of up to MUR_POOL_SMALL elements and the greatest:
 * eight outputs of a row at a time, whatever pixels they are of. */
#include "mur_mve.h"
#include "mur_pool.h"

#if MUR_HAVE_MVE

/* A row of a window: what `fold` makes of vector q0, its next elements, and `all`. */
#define SMALL_ROW(fold) \
    __asm__ volatile("wls lr, %2, 2f\n" \
                     "1: vldrb.s16 q0, [%1, %q3]\n" \
                     "add %1, %1, %4\n" fold " %q0, %q0, q0\n" \
                     "le lr, 1b\n" \
                     "2:" \
                     : "+w"(all), "+r"(p) \
                     : "r"(columns), "w"(at), "r"(step) \
                     : "lr", "q0", "memory")

/* the most elements for which a product with 2^16 / count, rounded up, is the quotient */
enum { SURE = 23 };

/* Sums become averages, by half of their count and its inverse. other: the count, if the product is
 * not the quotient but, of many elements, sometimes one more; else 0. */
static inline int16x8_t average_of(int16x8_t sums, uint16_t half, uint16_t inverse, int32_t other)
{
    const int16x8_t sign = vshrq_n_s16(sums, 15);
    uint16x8_t size = vaddq_n_u16(vreinterpretq_u16_s16(vabsq_s16(sums)), half);
    uint16x8_t quotient = vmulhq_u16(size, vdupq_n_u16(inverse));

    if (other == 1)
        return sums;
    if (other > 1) {
        uint16x8_t rest = vmlaq_n_u16(size, quotient, (uint16_t)-other);

        quotient = vaddq_u16(quotient,
                             vreinterpretq_u16_s16(vshrq_n_s16(vreinterpretq_s16_u16(rest), 15)));
    }
    return vsubq_s16(veorq_s16(vreinterpretq_s16_u16(quotient), sign), sign);
}

/* Of windows of all columns of w, side by side. Element e of the outputs, of channel c, has its
 * window's first element at (e - c) * stride + c; those behind the last are the last one's. */
static inline __attribute__((always_inline)) void pool_pixels(const mur_pool_window *w,
                                                              const mur_pool_s8 *layer, int8_t *out,
                                                              int32_t pixels, int is_max)
{
    /* in registers: out might be anything */
    const int32_t rows = w->rows, columns = w->columns, pitch = w->pitch, step = w->step;
    const int32_t count = rows * columns, stride = layer->stride_w;
    const int16x8_t min = vdupq_n_s16(layer->min), max = vdupq_n_s16(layer->max);
    const uint16x8_t last = vdupq_n_u16((uint16_t)((pixels - 1) * stride * step + step - 1));
    const int32_t other = count > SURE || count == 1 ? count : 0;
    const uint16_t half = (uint16_t)(count / 2);
    const uint16_t inverse = (uint16_t)(count > 1 ? (UINT16_MAX + count) / count : 0);
    const int8_t *in = w->in;
    const uint64_t wrap = (uint64_t)step << 32; /* in an odd register, as VIWDUP wants it */
    uint32_t channel = 0, element = 0;

    for (int32_t left = pixels * step; left > 0; left -= 8) {
        uint16x8_t at, elements;
        int16x8_t all = is_max ? min : vdupq_n_s16(0);
        const int8_t *row = in;

        __asm__("viwdup.u16 %q0, %2, %R4, #1\n"
                "vidup.u16 %q1, %3, #1\n"
                : "=&w"(at), "=w"(elements), "+Te"(channel), "+Te"(element)
                : "r"(wrap));
        at = vmulq_n_u16(at, (uint16_t)(1 - stride));
        at = vmlaq_n_u16(at, elements, (uint16_t)stride);
        at = vminq_u16(at, last);
        for (int32_t y = rows; y > 0; y--, row += pitch) {
            const int8_t *p = row;

            if (is_max)
                SMALL_ROW("vmax.s16");
            else
                SMALL_ROW("vadd.i16");
        }
        if (!is_max)
            all = average_of(all, half, inverse, other);
        __asm__ volatile("vctp.16 %2\n"
                         "vpst\n"
                         "vstrbt.16 %q1, [%0], #8\n"
                         : "+l"(out)
                         : "w"(vminq_s16(vmaxq_s16(all, min), max)), "r"(left)
                         : "p0", "memory");
    }
}

#else

static void pool_pixels(const mur_pool_window *w, const mur_pool_s8 *layer, int8_t *out,
                        int32_t pixels, int is_max)
{
    mur_pool_window next = *w;

    for (; pixels > 0; pixels--, out += layer->c, next.in += layer->stride_w * layer->c)
        (is_max ? mur_pool_greatest : mur_pool_average)(&next, layer, out);
}

#endif

static inline __attribute__((always_inline)) void run(const mur_pool_s8 *layer, const int8_t *in,
                                                      int8_t *out, int is_max)
{
    const int32_t stride = layer->stride_w, room = layer->in_w + layer->pad_left - layer->kernel_w;
    mur_pool_window w;

    w.pitch = layer->in_pitch;
    w.step = layer->c;
    w.end = in + (layer->in_h - 1) * layer->in_pitch + layer->in_w * layer->c;
    for (int32_t y = 0; y < layer->out_h; y++, out += layer->out_pitch) {
        int32_t top = mur_pool_inside(y * layer->stride_h - layer->pad_top, layer->kernel_h,
                                      layer->in_h, &w.rows);

        for (int32_t x = 0, pixels; x < layer->out_w; x += pixels) {
            int32_t left = mur_pool_inside(x * stride - layer->pad_left, layer->kernel_w,
                                           layer->in_w, &w.columns);

            w.in = in + top * layer->in_pitch + left * layer->c;
            pixels = w.columns < layer->kernel_w
                         ? 1
                         : mur_clamp(room / stride + 1, x + 1, layer->out_w) - x;
            pool_pixels(&w, layer, out + x * layer->c, pixels, is_max);
        }
    }
}

void mur_mve_average_pool_small_s8(const mur_pool_s8 *layer, const int8_t *in, int8_t *out)
{
    run(layer, in, out, 0);
}

void mur_mve_max_pool_small_s8(const mur_pool_s8 *layer, const int8_t *in, int8_t *out)
{
    run(layer, in, out, 1);
}

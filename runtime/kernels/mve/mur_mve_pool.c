/* mur_mve_pool.c - pools: the greatest of sixteen channels at a time, averages and means of eight.
 */
#include "mur_mve.h"
#include "mur_pool.h"

#if MUR_HAVE_MVE

static void greatest(const mur_pool_window *w, const mur_pool_s8 *layer, int8_t *out)
{
    int8x16_t most = vdupq_n_s8(layer->max);

    for (int32_t c = 0; c < layer->c; c += MUR_MVE_BYTES) {
        mve_pred16_t some = vctp8q((uint32_t)(layer->c - c));
        int8x16_t best = vdupq_n_s8(layer->min);
        const int8_t *row = w->in + c;

        for (int32_t y = w->rows; y > 0; y--, row += w->pitch) {
            const int8_t *p = row;

            for (int32_t x = w->columns; x > 0; x--, p += w->step)
                best = vmaxq_s8(best, vldrbq_z_s8(p, some));
        }
        vstrbq_p_s8(out + c, vminq_s8(best, most), some);
    }
}

/* Division by a count is a multiplication by 2^32 / count, rounded up, where the error of at most
 * 129 counts times one count stays below 2^32. */
enum { MOST_COUNT = 5000 };

static int32x4_t divide_four(int32x4_t sums, int32_t count)
{
    uint32_t inverse = (uint32_t)(-count) / (uint32_t)count + 2; /* 2^32 / count, not below */
    int32x4_t size = vaddq_n_s32(vabsq_s32(sums), count / 2), sign = vshrq_n_s32(sums, 31);

    if (count == 1)
        return sums;
    if (count > MOST_COUNT) {
        for (int32_t i = 0; i < 4; i++)
            sums[i] = mur_pool_divide(sums[i], count);
        return sums;
    }
    inverse -= (count & (count - 1)) == 0;
    size = vreinterpretq_s32_u32(vmulhq_u32(vreinterpretq_u32_s32(size), vdupq_n_u32(inverse)));
    return vsubq_s32(veorq_s32(size, sign), sign);
}

/* sums of four, as bytes within 32 bits each: one copy, for it is long */
static __attribute__((noinline)) int32x4_t average_of(int32x4_t sums, const mur_pool_s8 *layer,
                                                      int32_t count)
{
    sums = count > 0 ? divide_four(sums, count) : sums;
    return vminq_s32(vmaxq_s32(sums, vdupq_n_s32(layer->min)), vdupq_n_s32(layer->max));
}

enum { PIXELS_OF_HALVES = 256 }; /* their sums never leave 16 bits */

static void average(const mur_pool_window *w, const mur_pool_s8 *layer, int8_t *out)
{
    const int32_t count = w->rows * w->columns, step = w->step;
    const int8_t *in = w->in;

    for (int32_t left = layer->c; left > 0; left -= 8, in += 8, out += 8) {
        const mve_pred16_t some = vctp16q((uint32_t)left);
        int32x4_t even = vdupq_n_s32(0), odd = even;
        const int8_t *row = in;

        for (int32_t y = w->rows; y > 0; y--, row += w->pitch) {
            const int8_t *p = row;

            for (int32_t columns = w->columns; columns > 0; columns -= PIXELS_OF_HALVES) {
                int16x8_t sums = vdupq_n_s16(0);

                for (int32_t x = mur_clamp(columns, 0, PIXELS_OF_HALVES); x > 0; x--, p += step)
                    sums = vaddq_s16(sums, vldrbq_z_s16(p, some));
                even = vaddq_s32(even, vmovlbq_s16(sums));
                odd = vaddq_s32(odd, vmovltq_s16(sums));
            }
        }
        even = average_of(even, layer, count);
        odd = average_of(odd, layer, count);
        vstrbq_p_s16(out, vmovntq_s32(vreinterpretq_s16_s32(even), odd), some);
    }
}

/* the outputs of four sums, as bytes within 32 bits each */
static int32x4_t mean_of(const mur_mean_s8 *layer, int32x4_t sums)
{
    const mur_mve_clamp clamp = mur_mve_clamp_of(&layer->output);

    if (layer->output.kind == MUR_REQUANT_Q31 && layer->shift <= 0) {
        sums = mur_mve_scale_all(sums, layer->mul, layer->shift);
        return vminq_s32(vmaxq_s32(vaddq_n_s32(sums, clamp.zero), clamp.min), clamp.max);
    }
    for (int32_t i = 0; i < 4; i++)
        sums[i] = mur_requant(sums[i], layer->mul, layer->shift, &layer->output);
    return sums;
}

void mur_mve_mean_s8(const mur_mean_s8 *layer, const int8_t *in, int8_t *out)
{
    const int32_t zeros = -layer->pixels * layer->in_zero, step = layer->c;

    for (int32_t left = layer->c; left > 0; left -= 8, in += 8, out += 8) {
        const mve_pred16_t some = vctp16q((uint32_t)left);
        int32x4_t even = vdupq_n_s32(zeros), odd = even;
        const int8_t *p = in;

        for (int32_t pixels = layer->pixels; pixels > 0; pixels -= PIXELS_OF_HALVES) {
            int16x8_t sums = vdupq_n_s16(0);

            for (int32_t i = mur_clamp(pixels, 0, PIXELS_OF_HALVES); i > 0; i--, p += step)
                sums = vaddq_s16(sums, vldrbq_z_s16(p, some));
            even = vaddq_s32(even, vmovlbq_s16(sums));
            odd = vaddq_s32(odd, vmovltq_s16(sums));
        }
        even = mean_of(layer, even);
        odd = mean_of(layer, odd);
        vstrbq_p_s16(out, vmovntq_s32(vreinterpretq_s16_s32(even), odd), some);
    }
}

#else

void mur_mve_mean_s8(const mur_mean_s8 *layer, const int8_t *in, int8_t *out)
{
    mur_mean_plain(layer, in, out);
}

static void greatest(const mur_pool_window *w, const mur_pool_s8 *layer, int8_t *out)
{
    mur_pool_greatest(w, layer, out);
}

static void average(const mur_pool_window *w, const mur_pool_s8 *layer, int8_t *out)
{
    mur_pool_average(w, layer, out);
}

#endif

void mur_mve_max_pool_s8(const mur_pool_s8 *layer, const int8_t *in, int8_t *out)
{
    mur_pool_run(layer, in, out, greatest);
}

void mur_mve_average_pool_s8(const mur_pool_s8 *layer, const int8_t *in, int8_t *out)
{
    mur_pool_run(layer, in, out, average);
}

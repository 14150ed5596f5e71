/* mur_ref_pool.c - windows without weights. */
#include "mur_pool.h"

static inline int32_t greater(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static inline int8_t at_most(int32_t a, int32_t most)
{
    return (int8_t)(a > most ? most : a);
}

static void greatest(const mur_pool_window *w, const mur_pool_s8 *layer, int8_t *out)
{
    const int8_t *in = w->in;
    int32_t left = layer->c, step = w->step;

    for (; left >= 4; left -= 4, in += 4, out += 4) {
        int32_t a = layer->min, b = a, c = a, d = a;
        const int8_t *row = in;

        for (int32_t y = w->rows; y > 0; y--, row += w->pitch) {
            const int8_t *p = row;

            for (int32_t x = w->columns; x > 0; x--, p += step) {
                a = greater(a, p[0]), b = greater(b, p[1]);
                c = greater(c, p[2]), d = greater(d, p[3]);
            }
        }
        out[0] = at_most(a, layer->max), out[1] = at_most(b, layer->max);
        out[2] = at_most(c, layer->max), out[3] = at_most(d, layer->max);
    }
    for (; left > 0; left--, in++) {
        int32_t a = layer->min;

        for (int32_t y = 0; y < w->rows; y++)
            for (int32_t x = 0; x < w->columns; x++)
                a = greater(a, in[y * w->pitch + x * step]);
        *out++ = at_most(a, layer->max);
    }
}

static void average(const mur_pool_window *w, const mur_pool_s8 *layer, int8_t *out)
{
    const int8_t *in = w->in;
    int32_t left = layer->c, step = w->step, count = w->rows * w->columns;

    count += count == 0; /* and the sums are 0 */
    while (left > 0) {
        int32_t sums[4] = { 0, 0, 0, 0 }, some = left >= 4 ? 4 : 1;
        const int8_t *row = in;

        for (int32_t y = w->rows; y > 0; y--, row += w->pitch) {
            const int8_t *p = row;

            if (some == 1)
                for (int32_t x = w->columns; x > 0; x--, p += step)
                    sums[0] += *p;
            else
                for (int32_t x = w->columns; x > 0; x--, p += step)
                    sums[0] += p[0], sums[1] += p[1], sums[2] += p[2], sums[3] += p[3];
        }
        for (int32_t i = 0; i < some; i++)
            *out++ = (int8_t)mur_clamp(mur_pool_divide(sums[i], count), layer->min, layer->max);
        left -= some;
        in += some;
    }
}

void mur_ref_max_pool_s8(const mur_pool_s8 *layer, const int8_t *in, int8_t *out)
{
    mur_pool_run(layer, in, out, greatest);
}

void mur_ref_average_pool_s8(const mur_pool_s8 *layer, const int8_t *in, int8_t *out)
{
    mur_pool_run(layer, in, out, average);
}

void mur_ref_mean_s8(const mur_mean_s8 *layer, const int8_t *in, int8_t *out)
{
    mur_mean_plain(layer, in, out);
}

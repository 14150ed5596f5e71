/* mur_dsp_pool.c - pools, four channels at a time. */
#include "mur_dsp.h"
#include "mur_pool.h"

/* A window's sums of four channels, in pairs of halves: 256 pixels never leave 16 bits. */
enum { PIXELS_OF_HALVES = 256 };

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

static void average_four(const mur_pool_window *w, int32_t c, int32_t sums[4])
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

static int32_t sum_one(const mur_pool_window *w, int32_t c)
{
    int32_t sum = 0;

    for (int32_t y = 0; y < w->rows; y++)
        for (int32_t x = 0; x < w->columns; x++)
            sum += w->in[y * w->pitch + x * w->step + c];
    return sum;
}

static void average(const mur_pool_window *w, const mur_pool_s8 *layer, int8_t *out)
{
    int32_t count = w->rows * w->columns, c = 0;

    if (count <= 0)
        count = 1; /* and the sums are 0 */
    for (; c + 4 <= layer->c && count <= PIXELS_OF_HALVES; c += 4) {
        int32_t sums[4];

        average_four(w, c, sums);
        for (int32_t i = 0; i < 4; i++)
            out[c + i] = (int8_t)mur_clamp(mur_pool_divide(sums[i], count), layer->min, layer->max);
    }
    for (; c < layer->c; c++)
        out[c] = (int8_t)mur_clamp(mur_pool_divide(sum_one(w, c), count), layer->min, layer->max);
}

void mur_dsp_average_pool_s8(const mur_pool_s8 *layer, const int8_t *in, int8_t *out)
{
    mur_pool_run(layer, in, out, average);
}

/* a word of the greatest of each byte of both */
static uint32_t greatest_of(uint32_t a, uint32_t b)
{
#if MUR_HAVE_DSP
    uint32_t out;

    __asm__("ssub8 %0, %1, %2\n"
            "sel %0, %1, %2\n"
            : "=&r"(out)
            : "r"(a), "r"(b)
            : "cc");
    return out;
#else
    uint32_t out = 0;

    for (int32_t i = 0; i < 32; i += 8)
        out |= ((int8_t)(a >> i) > (int8_t)(b >> i) ? a >> i & 0xff : b >> i & 0xff) << i;
    return out;
#endif
}

static void greatest(const mur_pool_window *w, const mur_pool_s8 *layer, int8_t *out)
{
    uint32_t least = (uint8_t)layer->min * 0x1010101u, most = ~((uint8_t)layer->max * 0x1010101u);
    int32_t c = 0;

    for (; c + 4 <= layer->c; c += 4) {
        uint32_t best = least;
        const int8_t *row = w->in + c;

        for (int32_t y = w->rows; y > 0; y--, row += w->pitch) {
            const int8_t *p = row;

            for (int32_t x = w->columns; x > 0; x--, p += w->step)
                best = greatest_of(best, mur_four(p));
        }
        best = ~greatest_of(~best, most); /* the least of both */
        __builtin_memcpy(out + c, &best, sizeof(best));
    }
    for (; c < layer->c; c++) {
        int32_t best = layer->min;

        for (int32_t y = 0; y < w->rows; y++)
            for (int32_t x = 0; x < w->columns; x++) {
                int32_t q = w->in[y * w->pitch + x * w->step + c];

                best = q > best ? q : best;
            }
        out[c] = (int8_t)(best > layer->max ? layer->max : best);
    }
}

void mur_dsp_max_pool_s8(const mur_pool_s8 *layer, const int8_t *in, int8_t *out)
{
    mur_pool_run(layer, in, out, greatest);
}

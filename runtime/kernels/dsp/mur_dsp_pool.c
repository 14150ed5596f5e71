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

/* sums of four channels from c on: of 0 and 2 to sums[0], of 1 and 3 to sums[1] */
static inline __attribute__((always_inline)) void sum_four(const mur_pool_window *w, int32_t c,
                                                           uint32_t sums[2])
{
    uint32_t even = 0, odd = 0;
    const int8_t *row = w->in + c;
    int32_t step = w->step;

    for (int32_t y = w->rows; y > 0; y--, row += w->pitch) {
        const int8_t *p = row;

        for (int32_t x = w->columns; x > 0; x--, p += step) {
            uint32_t four = mur_four(p);

            even = add_halves(even, mur_sxtb16(four));
            odd = add_halves(odd, mur_sxtb16_odd(four));
        }
    }
    sums[0] = even, sums[1] = odd;
}

static int32_t sum_one(const mur_pool_window *w, int32_t c)
{
    const int8_t *row = w->in + c;
    int32_t sum = 0, step = w->step;

    for (int32_t y = w->rows; y > 0; y--, row += w->pitch) {
        const int8_t *p = row;

        for (int32_t x = w->columns; x > 0; x--, p += step)
            sum += *p;
    }
    return sum;
}

/* How many elements a window has, and what an average may be: in registers, as outputs might
 * overwrite a layer. */
typedef struct average_range {
    int32_t count, min, max;
} average_range;

static inline int8_t average_of(int32_t sum, average_range r)
{
    return (int8_t)mur_clamp(mur_pool_divide(sum, r.count), r.min, r.max);
}

/* The last channels that are no four are the last of four with some before, which may have been
 * overwritten. */
static void average(const mur_pool_window *w, const mur_pool_s8 *layer, int8_t *out)
{
    average_range r = { w->rows * w->columns, layer->min, layer->max };
    int32_t c = 0, channels = layer->c;
    uint32_t sums[2];

    if (r.count <= 0)
        r.count = 1; /* and the sums are 0 */
    if (channels < 4 || r.count > PIXELS_OF_HALVES) {
        for (; c < channels; c++)
            out[c] = average_of(sum_one(w, c), r);
        return;
    }
    for (; c < channels; c += 4) {
        int32_t at = c + 4 <= channels ? c : channels - 4;
        int8_t some[4], *to = at == c ? out + c : some;

        sum_four(w, at, sums);
        to[0] = average_of((int16_t)sums[0], r);
        to[1] = average_of((int16_t)sums[1], r);
        to[2] = average_of((int32_t)sums[0] >> 16, r);
        to[3] = average_of((int32_t)sums[1] >> 16, r);
        for (int32_t i = c - at; i > 0 && i < 4; i++)
            out[at + i] = some[i];
    }
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

static inline __attribute__((always_inline)) uint32_t greatest_four(const mur_pool_window *w,
                                                                    int32_t c, uint32_t best)
{
    const int8_t *row = w->in + c;
    int32_t step = w->step;

    for (int32_t y = w->rows; y > 0; y--, row += w->pitch) {
        const int8_t *p = row;

        for (int32_t x = w->columns; x > 0; x--, p += step)
            best = greatest_of(best, mur_four(p));
    }
    return best;
}

static int32_t greatest_one(const mur_pool_window *w, int32_t c, int32_t best)
{
    const int8_t *row = w->in + c;
    int32_t step = w->step;

    for (int32_t y = w->rows; y > 0; y--, row += w->pitch) {
        const int8_t *p = row;

        for (int32_t x = w->columns; x > 0; x--, p += step)
            best = *p > best ? *p : best;
    }
    return best;
}

static void greatest(const mur_pool_window *w, const mur_pool_s8 *layer, int8_t *out)
{
    uint32_t least = (uint8_t)layer->min * 0x1010101u, most = ~((uint8_t)layer->max * 0x1010101u);
    int32_t c = 0, channels = layer->c;

    for (; c < channels && channels >= 4; c += 4) {
        int32_t at = c + 4 <= channels ? c : channels - 4;
        uint32_t best = greatest_four(w, at, least);

        best = ~greatest_of(~best, most); /* the least of both */
        if (at == c)
            __builtin_memcpy(out + c, &best, sizeof(best));
        else
            for (int32_t i = c - at; i < 4; i++)
                out[at + i] = (int8_t)(best >> 8 * i);
    }
    for (; c < channels; c++) {
        int32_t best = greatest_one(w, c, layer->min);

        out[c] = (int8_t)(best > layer->max ? layer->max : best);
    }
}

void mur_dsp_max_pool_s8(const mur_pool_s8 *layer, const int8_t *in, int8_t *out)
{
    mur_pool_run(layer, in, out, greatest);
}

/* mur_dsp_pool.c - pools, four channels at a time. */
#include "mur_dsp.h"
#include "mur_pool.h"

/* A window's sums of four channels, in pairs of halves: 256 pixels never leave 16 bits. */
enum { PIXELS_OF_HALVES = 256 };

/* halves + those of `plus` where they are not negative, of `minus` where they are, modulo 2^16 */
static uint32_t add_by_sign(uint32_t halves, uint32_t plus, uint32_t minus)
{
#if MUR_HAVE_DSP
    uint32_t out;

    __asm__("sadd16 %0, %1, %4\n"
            "sel %0, %2, %3\n"
            "sadd16 %0, %0, %1\n"
            : "=&r"(out)
            : "r"(halves), "r"(plus), "r"(minus), "r"(0)
            : "cc");
    return out;
#else
    uint32_t low = (halves & 0x8000u ? minus : plus), high = halves >> 31 ? minus : plus;

    return ((halves + low) & 0xffffu) | ((halves & 0xffff0000u) + (high & 0xffff0000u));
#endif
}

/* sums of four channels from c on: of 0 and 2 to sums[0], of 1 and 3 to sums[1] */
static __attribute__((noinline)) void sum_four(const mur_pool_window *w, int32_t c,
                                               uint32_t sums[2])
{
    uint32_t even = 0, odd = 0;
    const int8_t *row = w->in + c;
    int32_t step = w->step;

    for (int32_t y = w->rows; y > 0; y--, row += w->pitch) {
        const int8_t *p = row;

        for (int32_t x = w->columns; x > 0; x--, p += step) {
            uint32_t four = mur_four(p);

            even = mur_sxtab16(even, four);
            odd = mur_sxtab16_odd(odd, four);
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

/* May four channels from the first on be read of every pixel? */
static int has_four(const mur_pool_window *w)
{
    return w->in + (w->rows - 1) * w->pitch + (w->columns - 1) * w->step + 4 <= w->end;
}

/* Averages of four channels, whose sums are `sums`. In pairs of halves 128 is added to what the
 * averages will be, so that they are rounded down, and half the count, or just less than that of a
 * negative sum: its halves go away from zero, too. */
static uint32_t average_four(const uint32_t sums[2], uint32_t count)
{
    uint32_t plus = (128 * count + count / 2) * 0x10001u, minus = plus - (~count & 1) * 0x10001u;
    uint32_t even = add_by_sign(sums[0], plus, minus), odd = add_by_sign(sums[1], plus, minus);

    return ((even & 0xffffu) / count | (odd & 0xffffu) / count << 8 | (even >> 16) / count << 16 |
            (odd >> 16) / count << 24) ^
           0x80808080u;
}

/* the last `count` of four channels */
static inline void put_last(uint32_t four, int32_t count, int8_t *out)
{
    for (int32_t i = 4 - count; i < 4; i++)
        *out++ = (int8_t)(four >> 8 * i);
}

/* Channels that are not a multiple of four: the first of four, if there is memory, or the last of
 * four with some before, which may have been overwritten. */
static void average(const mur_pool_window *w, const mur_pool_s8 *layer, int8_t *out)
{
    int32_t count = w->rows * w->columns, c = 0, channels = layer->c;
    int32_t min = layer->min, max = layer->max;
    uint32_t sums[2], four;

    count += count == 0; /* and the sums are 0 */
    if (count > PIXELS_OF_HALVES || (channels < 4 && !has_four(w))) {
        for (; c < channels; c++)
            out[c] = (int8_t)mur_pool_divide(sum_one(w, c), count);
    } else if (channels < 4) {
        sum_four(w, 0, sums);
        four = average_four(sums, (uint32_t)count);
        put_last(four << 8 * (4 - channels), channels, out);
    } else {
        for (; c + 4 <= channels; c += 4) {
            sum_four(w, c, sums);
            four = average_four(sums, (uint32_t)count);
            __builtin_memcpy(out + c, &four, sizeof(four));
        }
        if (c < channels) {
            sum_four(w, channels - 4, sums);
            put_last(average_four(sums, (uint32_t)count), channels - c, out + c);
        }
    }
    if (min != INT8_MIN || max != INT8_MAX)
        for (c = 0; c < channels; c++)
            out[c] = (int8_t)mur_clamp(out[c], min, max);
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
    uint32_t best;

    if (channels < 4 && has_four(w)) {
        best = ~greatest_of(~greatest_four(w, 0, least), most);
        put_last(best << 8 * (4 - channels), channels, out);
        return;
    }
    for (; c + 4 <= channels; c += 4) {
        best = ~greatest_of(~greatest_four(w, c, least), most); /* the least of both */
        __builtin_memcpy(out + c, &best, sizeof(best));
    }
    if (c < channels && channels > 4) {
        best = ~greatest_of(~greatest_four(w, channels - 4, least), most);
        put_last(best, channels - c, out + c);
        return;
    }
    for (; c < channels; c++) {
        int32_t one = greatest_one(w, c, layer->min);

        out[c] = (int8_t)(one > layer->max ? layer->max : one);
    }
}

void mur_dsp_max_pool_s8(const mur_pool_s8 *layer, const int8_t *in, int8_t *out)
{
    mur_pool_run(layer, in, out, greatest);
}

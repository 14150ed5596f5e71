/* mur_dsp_pool.c - pools, four channels at a time. */
#include "mur_dsp.h"
#include "mur_pool.h"

/* Averages of four channels at once: sums in pairs of halves, whose quotients are products of
 * halves with a sign. */
enum { LEAST_PIXELS = 3, MOST_PIXELS = 128 };

/* Each pixel of a window: "four" is its word of channels, from p on, which ends behind the window.
 */
#define EACH_PIXEL(what) \
    "1: mov %[x], %[columns]\n" \
    "2: ldr %[four], [%[p]]\n" \
    "add %[p], %[p], %[step]\n" what "subs %[x], %[x], #1\n" \
    "bne 2b\n" \
    "add %[p], %[p], %[pitch]\n" \
    "subs %[y], %[y], #1\n" \
    "bne 1b\n"
#define PIXELS_OF(w) \
    [columns] "r"((w)->columns), [step] "r"((w)->step), \
        [pitch] "r"((w)->pitch - (w)->columns * (w)->step)

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

/* sums of four channels from c on of a window that has pixels: of 0 and 2 to sums[0], of 1 and 3 to
 * sums[1] */
static inline void sum_four(const mur_pool_window *w, int32_t c, uint32_t sums[2])
{
    uint32_t even = 0, odd = 0;
    const int8_t *p = w->in + c;
    int32_t y = w->rows;

#if MUR_HAVE_DSP
    uint32_t four, x;

    __asm__(EACH_PIXEL("sxtab16 %[even], %[even], %[four]\n"
                       "sxtab16 %[odd], %[odd], %[four], ror #8\n")
            : [even] "+r"(even), [odd] "+r"(odd), [four] "=&r"(four), [x] "=&r"(x), [y] "+r"(y),
              [p] "+r"(p)
            : PIXELS_OF(w)
            : "cc", "memory");
#else
    for (; y > 0; y--, p += w->pitch)
        for (int32_t x = 0; x < w->columns; x++) {
            even = mur_sxtab16(even, mur_four(p + x * w->step));
            odd = mur_sxtab16_odd(odd, mur_four(p + x * w->step));
        }
#endif
    sums[0] = even, sums[1] = odd;
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

/* May four channels from the first on be read of every pixel? */
static int has_four(const mur_pool_window *w)
{
    return w->in + (w->rows - 1) * w->pitch + (w->columns - 1) * w->step + 4 <= w->end;
}

/* What averages of so many pixels have in common. In pairs of halves 128 is added to what the
 * averages will be, so that they are rounded down, and half the count, or just less than that of a
 * negative sum: its halves go away from zero, too. */
typedef struct divisor {
    int32_t factor; /* 2^32 / count, rounded up */
    uint32_t plus, minus;
} divisor;

static divisor divisor_of(uint32_t count)
{
    const uint32_t plus = (128 * count + count / 2) * 0x10001u;

    return (divisor){ .factor = (int32_t)(UINT32_MAX / count + 1),
                      .plus = plus,
                      .minus = plus - (~count & 1) * 0x10001u };
}

/* both halves' sums as quotients of 8 bits in halves */
static inline uint32_t divide_two(uint32_t sums, const divisor *by)
{
    uint32_t pair = add_by_sign(sums, by->plus, by->minus);
#if MUR_HAVE_DSP
    uint32_t low, high;

    __asm__("smulwb %0, %2, %3\n"
            "smulwt %1, %2, %3\n"
            "pkhtb %0, %1, %0, asr #16\n"
            : "=&r"(low), "=&r"(high)
            : "r"(by->factor), "r"(pair));
    return low;
#else
    uint64_t low = (uint64_t)(pair & 0xffffu) * (uint32_t)by->factor;
    uint64_t high = (uint64_t)(pair >> 16) * (uint32_t)by->factor;

    return (uint32_t)(low >> 32) | (uint32_t)(high >> 32) << 16;
#endif
}

static __attribute__((noinline)) uint32_t average_four(const mur_pool_window *w, int32_t c,
                                                       const divisor *by)
{
    uint32_t sums[2];

    sum_four(w, c, sums);
    return (divide_two(sums[0], by) | divide_two(sums[1], by) << 8) ^ 0x80808080u;
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
    const int32_t count = w->rows * w->columns, channels = layer->c;
    int32_t min = layer->min, max = layer->max;
    divisor by;

    if (count < LEAST_PIXELS || count > MOST_PIXELS || (channels < 4 && !has_four(w))) {
        mur_pool_average(w, layer, out);
        return;
    }
    by = divisor_of((uint32_t)count);
    for (int32_t c = 0; c < channels; c += 4) {
        int32_t present = channels - c < 4 ? channels - c : 4;
        uint32_t four = average_four(w, channels < 4 ? 0 : c + present - 4, &by);

        if (present == 4)
            __builtin_memcpy(out + c, &four, sizeof(four));
        else
            put_last(channels < 4 ? four << 8 * (4 - channels) : four, present, out + c);
    }
    if (min != INT8_MIN || max != INT8_MAX)
        for (int32_t c = 0; c < channels; c++)
            out[c] = (int8_t)mur_clamp(out[c], min, max);
}

void mur_dsp_average_pool_s8(const mur_pool_s8 *layer, const int8_t *in, int8_t *out)
{
    mur_pool_run(layer, in, out, average);
}

/* of four channels from c on; not less than `best` */
static inline uint32_t greatest_four(const mur_pool_window *w, int32_t c, uint32_t best)
{
    const int8_t *p = w->in + c;
    int32_t y = w->rows;

    if (y <= 0 || w->columns <= 0)
        return best;
#if MUR_HAVE_DSP
    uint32_t four, x, least; /* the last for flags alone */

    __asm__(EACH_PIXEL("ssub8 %[least], %[best], %[four]\n"
                       "sel %[best], %[best], %[four]\n")
            : [best] "+r"(best), [four] "=&r"(four), [x] "=&r"(x), [y] "+r"(y), [p] "+r"(p),
              [least] "=&r"(least)
            : PIXELS_OF(w)
            : "cc", "memory");
#else
    for (; y > 0; y--, p += w->pitch)
        for (int32_t x = 0; x < w->columns; x++)
            best = greatest_of(best, mur_four(p + x * w->step));
#endif
    return best;
}

static void greatest(const mur_pool_window *w, const mur_pool_s8 *layer, int8_t *out)
{
    uint32_t least = (uint8_t)layer->min * 0x1010101u, most = ~((uint8_t)layer->max * 0x1010101u);
    const int32_t channels = layer->c;

    if (channels < 4 && !has_four(w)) {
        mur_pool_greatest(w, layer, out);
        return;
    }
    for (int32_t c = 0; c < channels; c += 4) {
        int32_t present = channels - c < 4 ? channels - c : 4;
        uint32_t best = greatest_four(w, channels < 4 ? 0 : c + present - 4, least);

        best = ~greatest_of(~best, most); /* the least of both */
        if (present == 4)
            __builtin_memcpy(out + c, &best, sizeof(best));
        else
            put_last(channels < 4 ? best << 8 * (4 - channels) : best, present, out + c);
    }
}

void mur_dsp_max_pool_s8(const mur_pool_s8 *layer, const int8_t *in, int8_t *out)
{
    mur_pool_run(layer, in, out, greatest);
}

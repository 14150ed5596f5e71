/* pack_dsp_one.c - finds the lines of mur_dsp_conv_one.c, and what they miss. On the host. */
#include "mur_dsp_one.h"

#include <string.h>

enum { BYTES = 256, ONE = 1 << 16 };
enum { STEPS = 24, STEP = 64 }; /* factors that are tried: so many on either side, and how far */

/* the offsets that make a channel's line give what it shall for a byte */
typedef struct range {
    int64_t least, most;
} range;

/* a channel's outputs for all inputs, plus 128 */
static int find_outputs(const mur_conv_s8 *layer, const mur_conv_plain *plain, int32_t c,
                        uint8_t y[BYTES])
{
    const int64_t w = plain->weights[c] - layer->weight_zero;
    const int64_t bias = plain->bias ? plain->bias[c] : 0;
    mur_output_s8 to = layer->output;

    to.min = INT8_MIN, to.max = INT8_MAX; /* the kernel clamps to the layer's range */
    for (int32_t i = 0; i < BYTES; i++) {
        int64_t sum = bias + w * (i + INT8_MIN - layer->in_zero);

        if (sum < INT32_MIN || sum > INT32_MAX)
            return 0;
        y[i] = (uint8_t)(mur_requant((int32_t)sum, plain->mul[c], plain->shift[c], &to) - INT8_MIN);
    }
    return 1;
}

/* by how much a channel's outputs would grow with its inputs if nothing were rounded, times 2^24 */
static int64_t factor_of(const mur_conv_s8 *layer, const mur_conv_plain *plain, int32_t c)
{
    int64_t factor = (int64_t)(plain->weights[c] - layer->weight_zero) * plain->mul[c];
    int32_t right =
        layer->output.kind == MUR_REQUANT_Q31 ? 7 - plain->shift[c] : layer->output.shift - 24;

    if (right <= 0)
        return right < -20 ? INT64_MAX : factor * ((int64_t)1 << -right);
    return (factor + ((int64_t)1 << (right - 1))) >> right;
}

static range range_of(uint8_t y, int32_t x, int64_t factor)
{
    int64_t at = (factor * x) >> 8;

    return (range){ (y > 0 ? (int64_t)y * ONE : INT32_MIN) - at,
                    (y < UINT8_MAX ? (int64_t)(y + 1) * ONE - 1 : INT32_MAX) - at };
}

/* an offset with which this factor misses no byte; whether there is one */
static int find_exact(const uint8_t y[BYTES], int64_t factor, int32_t *offset)
{
    range all = { INT32_MIN, INT32_MAX };

    for (int32_t i = 0; i < BYTES; i++) {
        range of = range_of(y[i], i + INT8_MIN, factor);

        all.least = of.least > all.least ? of.least : all.least;
        all.most = of.most < all.most ? of.most : all.most;
    }
    *offset = (int32_t)((all.least + all.most) / 2);
    return all.least <= all.most;
}

/* the offset with which this factor misses fewest bytes: some byte's least is as good as any */
static int32_t find_nearest(const uint8_t y[BYTES], int64_t factor)
{
    int32_t fewest = BYTES, nearest = 0;

    for (int32_t i = 0; i < BYTES; i++) {
        int64_t offset = range_of(y[i], i + INT8_MIN, factor).least;
        int32_t misses = 0;

        for (int32_t j = 0; j < BYTES; j++) {
            range of = range_of(y[j], j + INT8_MIN, factor);

            misses += offset < of.least || offset > of.most;
        }
        if (misses < fewest && offset >= INT32_MIN && offset <= INT32_MAX) {
            fewest = misses;
            nearest = (int32_t)offset;
        }
    }
    return nearest;
}

/* factor and offset of a channel's line; 0 if there is none */
static int find_line(const mur_conv_s8 *layer, const mur_conv_plain *plain, int32_t c,
                     const uint8_t y[BYTES], int32_t line[2])
{
    int64_t factor = factor_of(layer, plain, c);

    if (factor > INT32_MAX - STEPS * STEP || factor < INT32_MIN + STEPS * STEP)
        return 0;
    for (int32_t i = 0; i <= 2 * STEPS; i++) { /* the nearest first */
        line[0] = (int32_t)factor + STEP * (i & 1 ? -(i + 1) / 2 : i / 2);
        if (find_exact(y, line[0], &line[1]))
            return 1;
    }
    line[0] = (int32_t)factor;
    line[1] = find_nearest(y, factor);
    return 1;
}

/* Line and misses of a channel. Returns how many misses there are, or -1 for more than `most`, more
 * than 1 from the line, or no line in 32 bits. */
static int32_t find_channel(const mur_conv_s8 *layer, const mur_conv_plain *plain, int32_t c,
                            int32_t line[2], mur_dsp_one_miss *misses, int32_t most)
{
    uint8_t y[BYTES];
    int32_t count = 0;

    if (!find_outputs(layer, plain, c, y) || !find_line(layer, plain, c, y, line))
        return -1;
    for (int32_t i = 0; i < BYTES; i++) {
        int64_t sum = line[1] + (((int64_t)line[0] * (i + INT8_MIN)) >> 8);
        int32_t add = y[i] - mur_clamp(mur_asr((int32_t)sum, 16), 0, UINT8_MAX);

        if (sum < INT32_MIN || sum > INT32_MAX || add < -1 || add > 1 ||
            (add != 0 && count == most))
            return -1;
        if (add != 0)
            misses[count++] =
                (mur_dsp_one_miss){ (uint16_t)c, (uint8_t)(i + INT8_MIN), (int8_t)add };
    }
    return count;
}

int mur_dsp_conv_one_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    const mur_conv_shape *s = &layer->shape;
    int32_t left = mur_dsp_one_misses(s->out_c);

    if (s->in_c != 1 || s->kernel_h != 1 || s->kernel_w != 1 || s->stride_h != 1 ||
        s->stride_w != 1 || s->out_h > s->in_h || s->out_w > s->in_w || s->pad_top != 0 ||
        s->pad_left != 0 || s->out_c < 4 || s->out_c > UINT16_MAX)
        return 0;
    for (int32_t c = 0; c < s->out_c; c++) {
        mur_dsp_one_miss misses[BYTES];
        int32_t line[2],
            count = find_channel(layer, plain, c, line, misses, left < BYTES ? left : BYTES);

        if (count < 0)
            return 0;
        left -= count;
    }
    return 1;
}

size_t mur_dsp_conv_one_s8_packed_bytes(const mur_conv_s8 *layer)
{
    int32_t channels = layer->shape.out_c;

    return (size_t)((channels + 3) >> 2) * 8 * sizeof(int32_t) +
           ((size_t)mur_dsp_one_misses(channels) + 1) * sizeof(mur_dsp_one_miss);
}

void mur_dsp_conv_one_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed)
{
    int32_t channels = layer->shape.out_c, whole = channels & ~3, *lines = packed;
    int32_t *last = lines + 2 * whole, left = mur_dsp_one_misses(channels);
    mur_dsp_one_miss *misses = (mur_dsp_one_miss *)(void *)(last + (whole < channels ? 8 : 0));

    for (int32_t c = 0; c < channels; c++) {
        int32_t line[2], count = find_channel(layer, plain, c, line, misses, left);

        if (c < whole)
            memcpy(lines + 2 * c, line, sizeof(line));
        if (whole < channels && c >= channels - 4)
            memcpy(last + 2 * (c - channels + 4), line, sizeof(line));
        misses += count;
        left -= count;
    }
    memset(misses, 0, ((size_t)left + 1) * sizeof(*misses));
}

size_t mur_dsp_conv_one_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    (void)layer;
    return 0;
}

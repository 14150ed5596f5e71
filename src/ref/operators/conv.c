/* conv.c - convolution: patches of x as rows, then products of rows with the filters. */
#include <string.h>

#include "ref/window.h"

enum { TILE = 16 }; /* output positions whose patches are multiplied together */

typedef struct conv {
    const muc_ref_window *w;
    muc_dtype dtype;
    size_t width; /* bytes of an element */
    size_t groups, in_each, out_each, patch, tiles;
    const uint8_t *x, *weights, *bias;
    uint8_t *out;
    uint8_t *scratch; /* [parts]: taps, then patches [TILE][patch] */
    size_t scratch_bytes;
} conv;

/* the elements of a group of channels under the taps, in the filters' order */
#define GATHER(argument, id, type) \
    case MUC_##id: { \
        const type *from = (const type *)(const void *)x; \
        type *to = (type *)out; \
        if (c->w->channels_last) { \
            for (size_t t = 0; t < c->w->taps; t++, to += c->in_each) \
                for (size_t i = 0; i < c->in_each; i++) \
                    to[i] = taps[t] < 0 ? 0 : from[(size_t)taps[t] * c->w->channels + i]; \
            break; \
        } \
        for (size_t i = 0; i < c->in_each; i++, from += c->w->positions) \
            for (size_t t = 0; t < c->w->taps; t++) \
                *to++ = taps[t] < 0 ? 0 : from[taps[t]]; \
        break; \
    }

static void gather(const conv *c, const uint8_t *x, const ptrdiff_t *taps, void *out)
{
    switch ((unsigned)c->dtype) {
        MUC_REF_REALS(GATHER, )
        GATHER(, I32, int32_t)
        GATHER(, I64, int64_t)
    }
}

/* out[f * f_step + p * p_step] = filter f times patch p, of other types than float */
#define MULTIPLY(sum_type, id, type) \
    case MUC_##id: { \
        const type *a = filters, *b = patches; \
        type *to = out; \
        for (size_t f = 0; f < c->out_each; f++) \
            for (size_t p = 0; p < count; p++) { \
                sum_type sum = 0; \
                for (size_t i = 0; i < c->patch; i++) \
                    sum += (sum_type)a[f * c->patch + i] * (sum_type)b[p * c->patch + i]; \
                to[f * f_step + p * p_step] = (type)sum; \
            } \
        break; \
    }

static void multiply(const conv *c, const void *filters, const void *patches, size_t count,
                     void *out)
{
    size_t f_step = c->w->channels_last ? 1 : c->w->out_positions;
    size_t p_step = c->w->channels_last ? c->w->out_channels : 1;

    if (c->dtype == MUC_F32 && c->w->channels_last) {
        muc_ref_matmul(patches, count, filters, c->patch, c->out_each, c->patch, out, p_step);
        return;
    }
    if (c->dtype == MUC_F32) {
        muc_ref_matmul(filters, c->out_each, patches, c->patch, count, c->patch, out, f_step);
        return;
    }
    switch ((unsigned)c->dtype) {
        MULTIPLY(double, F64, double)
        MULTIPLY(uint32_t, I32, int32_t)
        MULTIPLY(uint64_t, I64, int64_t)
    }
}

#define ADD_BIAS(sum_type, id, type) \
    case MUC_##id: { \
        const type *bias = (const type *)(const void *)c->bias + first_channel; \
        type *to = out; \
        for (size_t f = 0; f < c->out_each; f++) \
            for (size_t p = 0; p < count; p++) \
                to[f * f_step + p * p_step] = \
                    (type)((sum_type)to[f * f_step + p * p_step] + (sum_type)bias[f]); \
        break; \
    }

static void add_bias(const conv *c, size_t first_channel, size_t count, void *out)
{
    size_t f_step = c->w->channels_last ? 1 : c->w->out_positions;
    size_t p_step = c->w->channels_last ? c->w->out_channels : 1;

    switch ((unsigned)c->dtype) {
        ADD_BIAS(float, F32, float)
        ADD_BIAS(double, F64, double)
    }
}

/* unit: an image, a group of channels and a tile of output positions */
static void tile(const conv *c, size_t part, size_t unit)
{
    const muc_ref_window *w = c->w;
    size_t first = unit % c->tiles * TILE, group = unit / c->tiles % c->groups;
    size_t image = unit / c->tiles / c->groups;
    size_t count = w->out_positions - first < TILE ? w->out_positions - first : TILE;
    ptrdiff_t *taps = (ptrdiff_t *)(void *)(c->scratch + part * c->scratch_bytes);
    uint8_t *patches = (uint8_t *)(taps + w->taps);
    const uint8_t *x = c->x + (image * w->channels * w->positions +
                               group * c->in_each * (w->channels_last ? 1 : w->positions)) *
                                  c->width;
    size_t channel = group * c->out_each;
    size_t at =
        image * w->out_channels * w->out_positions +
        (w->channels_last ? first * w->out_channels + channel : channel * w->out_positions + first);

    for (size_t p = 0; p < count; p++) {
        muc_ref_window_taps(w, first + p, taps);
        gather(c, x, taps, patches + p * c->patch * c->width);
    }
    multiply(c, c->weights + channel * c->patch * c->width, patches, count, c->out + at * c->width);
    if (c->bias)
        add_bias(c, channel, count, c->out + at * c->width);
}

static void tiles(void *arg, size_t part, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        tile(arg, part, i);
}

muc_status muc_ref_convolve(const muc_ref_call *call, const muc_ref_window *w, muc_dtype dtype,
                            size_t groups, const void *x, const void *weights, const void *bias,
                            void *out)
{
    conv c = { .w = w,
               .dtype = dtype,
               .width = muc_dtype_get(dtype)->block_bytes,
               .groups = groups,
               .in_each = w->channels / groups,
               .out_each = w->out_channels / groups,
               .patch = w->channels / groups * w->taps,
               .tiles = (w->out_positions + TILE - 1) / TILE,
               .x = x,
               .weights = weights,
               .bias = bias,
               .out = out };
    void *scratch;

    c.scratch_bytes = (w->taps * sizeof(ptrdiff_t) + TILE * c.patch * c.width + 63) / 64 * 64;
    MUC_TRY(muc_ref_reserve_inner(call, muc_ref_parts(call->ctx) * c.scratch_bytes, &scratch));
    c.scratch = scratch;
    return muc_ref_split(call->ctx, w->batch * groups * c.tiles,
                         w->batch * w->out_positions * w->out_channels * c.patch, tiles, &c);
}

muc_status muc_kernel_conv(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0], *weights = call->inputs[1];
    const muc_ref_value *bias = muc_ref_input_of(call, 2);
    muc_ref_window w;

    MUC_TRY(muc_ref_window_of(call, x, weights, call->output, &w));
    return muc_ref_convolve(call, &w, x->dtype,
                            (size_t)muc_node_integer_or(call->node, MUC_KEY_GROUPS, 1), x->read,
                            weights->read, bias ? bias->read : NULL, call->output->data);
}

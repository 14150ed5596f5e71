/* pack_dsp_depthwise.c - weights for this folder's depthwise kernels: mur_dsp_depthwise.h says how.
 * On the host. */
#include "mur_dsp_depthwise.h"
#include "pack_dsp.h"

#include <string.h>

/* ---- planes of a channel ---- */

static int has_plane(const mur_conv_s8 *layer)
{
    int32_t size = layer->shape.kernel_h;

    return layer->shape.groups == layer->shape.in_c && layer->shape.out_c == layer->shape.in_c &&
           layer->shape.kernel_w == size && (size == 3 || size == 5 || size == 7) &&
           layer->shape.stride_w <= 2 && layer->shape.dilation_h == 1 &&
           layer->shape.dilation_w == 1;
}

static size_t plane_bytes(const mur_conv_s8 *layer, int32_t words)
{
    int32_t taps = layer->shape.kernel_h * layer->shape.kernel_w;

    return (size_t)layer->shape.in_c * (size_t)(4 * words + mur_dsp_plane_lead(words) + taps);
}

static void pack_planes(const mur_conv_s8 *layer, const mur_conv_plain *plain, mur_dsp_viewer *look,
                        int32_t words, void *packed)
{
    uint32_t *head = packed;
    uint8_t *tail = (uint8_t *)(head + words * layer->shape.in_c);

    for (int32_t c = 0; c < layer->shape.in_c; c++) {
        mur_dsp_view v = look(layer, plain, c);

        *head++ = (uint32_t)v.bias;
        if (words == MUR_DSP_PLANE_WORDS) {
            *head++ = 2 * (uint32_t)v.mul;
            *tail++ = (uint8_t)-v.shift;
        } else {
            *head++ = (uint32_t)v.mul;
            *head++ = (uint32_t)v.shift;
        }
        if (v.weights)
            memcpy(tail, v.weights, (size_t)v.count);
        else
            memset(tail, 0, (size_t)v.count);
        tail += v.count;
    }
}

size_t mur_dsp_depthwise_s8_packed_bytes(const mur_conv_s8 *layer)
{
    return plane_bytes(layer, MUR_DSP_PLANE_WORDS);
}

void mur_dsp_depthwise_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed)
{
    pack_planes(layer, plain, mur_dsp_view_of, MUR_DSP_PLANE_WORDS, packed);
}

size_t mur_dsp_depthwise_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    return MUR_DSP_PLANE_WEIGHTS * 4 +
           (size_t)mur_dsp_plane_rows(layer) * (size_t)mur_dsp_plane_columns(layer) * 2;
}

/* ---- depthwise 3x3 ---- */

/* doubled sums of 32 bits; what is added ahead of shifts, up to 2^31 */
int mur_dsp_depthwise_3_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    return layer->shape.kernel_h == 3 && layer->shape.stride_h == layer->shape.stride_w &&
           has_plane(layer) && mur_dsp_are_simple(layer, plain, 31, 22);
}

size_t mur_dsp_depthwise_3_s8_packed_bytes(const mur_conv_s8 *layer)
{
    return plane_bytes(layer, MUR_DSP_PLANE_WORDS);
}

void mur_dsp_depthwise_3_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain,
                                 void *packed)
{
    pack_planes(layer, plain, mur_dsp_view_of, MUR_DSP_PLANE_WORDS, packed);
}

/* with what the windows of a single row's pair touch below the plane */
size_t mur_dsp_depthwise_3_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    return (size_t)(mur_dsp_plane_rows(layer) * mur_dsp_plane_columns(layer) +
                    (layer->shape.out_h == 1 ? 2 * layer->shape.stride_h : 0)) *
           2;
}

/* ---- depthwise, any window ---- */

/* bytes of the plane of four channels */
static size_t quad_plane_bytes(const mur_conv_shape *s)
{
    return mur_dsp_taps_in_place(s)
               ? 0
               : 4 * (size_t)mur_dsp_taps_rows(s) * (size_t)mur_dsp_taps_columns(s);
}

/* bytes of input that an output which may lie on it leaves to scratch */
static size_t free_bytes(const mur_conv_shape *s)
{
    return s->out_c == s->in_c && s->out_h <= s->in_h && s->out_w <= s->in_w
               ? (size_t)s->out_h * (size_t)s->out_w * (size_t)s->out_c
               : 0;
}

/* of input and output */
static size_t both_bytes(const mur_conv_shape *s)
{
    return (size_t)s->in_h * (size_t)s->in_w * (size_t)s->in_c +
           (size_t)s->out_h * (size_t)s->out_w * (size_t)s->out_c;
}

/* One or two channels are no four. A plane is no larger than an output that may lie on its input,
 * or little; with all of scratch a layer takes a tenth more than input and output, and 2 KiB. */
static int are_quads(const mur_conv_s8 *layer, const mur_conv_plain *plain, size_t plane_size,
                     size_t scratch)
{
    const mur_conv_shape *s = &layer->shape;

    return s->groups == s->in_c && s->out_c > 2 && plane_size <= free_bytes(s) + 1640 &&
           scratch <= free_bytes(s) + both_bytes(s) / 10 + 2048 &&
           mur_dsp_are_simple(layer, plain, 31, 22);
}

int mur_dsp_depthwise_taps_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    return are_quads(layer, plain, quad_plane_bytes(&layer->shape),
                     mur_dsp_depthwise_taps_s8_scratch_bytes(layer));
}

/* the channels of four outputs, of which `first` is the first, one of the layer's or before them */
static void see_four(const mur_conv_s8 *layer, const mur_conv_plain *plain, int32_t first,
                     mur_dsp_view four[4])
{
    for (int32_t c = 0; c < 4; c++) {
        four[c] = mur_dsp_view_of(layer, plain, first + c < 0 ? 0 : first + c);
        if (first + c < 0)
            four[c].weights = NULL;
    }
}

/* where four channels begin whose weights are packed at c */
static int32_t first_of(const mur_conv_shape *s, int32_t c)
{
    return c + 4 > s->out_c ? s->out_c - 4 : c;
}

static int32_t tap_of(const mur_dsp_view *v, int32_t tap)
{
    return v->weights ? v->weights[tap] : 0;
}

/* doubled weights of two channels or taps, as halves */
static uint32_t double_weights(int32_t low, int32_t high)
{
    return (uint16_t)(2 * low) | (uint32_t)(uint16_t)(2 * high) << 16;
}

static void pack_list(const mur_conv_s8 *layer, const mur_dsp_view *v, uint32_t *out)
{
    for (int32_t c = 0; c < 4; c++)
        *out++ = 2 * (uint32_t)v[c].bias;
    for (int32_t c = 0; c < 2 && (v->count & 1); c++)
        *out++ = double_weights(tap_of(&v[c], 0), tap_of(&v[c + 2], 0));
    for (int32_t tap = v->count & 1; tap < v->count; tap += 2)
        for (int32_t c = 0; c < 4; c++)
            *out++ = double_weights(tap_of(&v[c], tap), tap_of(&v[c], tap + 1));
    for (int32_t c = 0; c < 4; c++) {
        *out++ = (uint32_t)v[c].mul;
        *out++ = (uint32_t)(2 * layer->output.zero + 1) << (-v[c].shift - 1);
        *out++ = (uint32_t)(-v[c].shift - 1);
    }
}

static void pack_quad(const mur_dsp_view *v, void *out)
{
    mur_dsp_quad_head *head = out;
    uint8_t *weights = (uint8_t *)(head + 1);

    for (int32_t c = 0; c < 4; c++) {
        head->bias[c] = 2 * v[c].bias;
        head->scale[c].mul = v[c].mul;
        head->scale[c].shift = -v[c].shift - 1;
        for (int32_t tap = 0; tap < v->count; tap++)
            weights[4 * tap + c] = (uint8_t)tap_of(&v[c], tap);
    }
}

size_t mur_dsp_depthwise_taps_s8_packed_bytes(const mur_conv_s8 *layer)
{
    return (size_t)(layer->shape.out_c + 3) / 4 * (size_t)mur_dsp_taps_four_bytes(&layer->shape);
}

void mur_dsp_depthwise_taps_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain,
                                    void *packed)
{
    const mur_conv_shape *s = &layer->shape;
    uint8_t *out = packed;
    mur_dsp_view four[4];

    for (int32_t c = 0; c < s->out_c; c += 4, out += mur_dsp_taps_four_bytes(s)) {
        see_four(layer, plain, first_of(s, c), four);
        if (mur_dsp_taps_listed(s))
            pack_list(layer, four, (uint32_t *)(void *)out);
        else
            pack_quad(four, out);
    }
}

size_t mur_dsp_depthwise_taps_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    const mur_conv_shape *s = &layer->shape;
    int32_t list = mur_dsp_taps_listed(s) ? 0 : mur_dsp_taps_words(s);

    return 4 * (size_t)(mur_dsp_taps_far(s) + list) + quad_plane_bytes(s);
}

/* ---- depthwise, any window, by pairs of taps ---- */

static size_t pairs_plane_bytes(const mur_dsp_pairs *p)
{
    return 16 * (size_t)mur_dsp_pairs_elements(p);
}

/* About the instructions of fours of channels: of each, what is more of those whose inputs do not
 * lie side by side, of a call, and of each four in a call. */
typedef struct quad_cost {
    int64_t four, apart, call, set;
    size_t (*scratch)(const mur_conv_s8 *layer);
} quad_cost;

/* Calls are for up to eight bands of rows whose scratch is what an output leaves to it, unless the
 * layer is small. */
static int32_t calls_of(const mur_conv_s8 *layer, const quad_cost *cost)
{
    mur_conv_s8 band = *layer;

    if (both_bytes(&layer->shape) + cost->scratch(layer) <= MUR_CONV_SMALL)
        return 1;
    for (int32_t count = 1; count <= 8; count++) {
        band.shape.out_h = (layer->shape.out_h + count - 1) / count;
        if (cost->scratch(&band) <= free_bytes(&layer->shape))
            return count;
    }
    return 1;
}

static int64_t layer_cost(const mur_conv_s8 *layer, const quad_cost *cost)
{
    const mur_conv_shape *s = &layer->shape;
    int64_t fours = (s->out_c + 3) / 4, apart = s->out_c == s->in_c && s->out_c > 3 ? 0 : fours;

    return fours * cost->four + apart * cost->apart +
           calls_of(layer, cost) * (cost->call + fours * cost->set);
}

static int64_t taps_cost(const mur_conv_s8 *layer)
{
    const mur_conv_shape *s = &layer->shape;
    int64_t taps = s->kernel_h * s->kernel_w, pixels = (int64_t)quad_plane_bytes(s) / 4;
    int64_t each = (taps & 1 ? 31 : 28) + 7 * taps, outputs = (int64_t)s->out_h * s->out_w;
    const quad_cost cost = { outputs * each + 11 * s->out_h + 3 * pixels, 12 * pixels,
                             300 + 9 * taps + 3 * pixels,
                             (pixels ? 90 : 12) + (mur_dsp_taps_listed(s) ? 0 : 50 + 8 * taps),
                             mur_dsp_depthwise_taps_s8_scratch_bytes };

    return layer_cost(layer, &cost) + (s->out_c % 4 != 0) * 20 * outputs;
}

static int64_t pairs_cost(const mur_conv_s8 *layer, const mur_dsp_pairs *p)
{
    int64_t taps = p->steps * p->along.kernel, elements = mur_dsp_pairs_elements(p);
    const quad_cost cost = { mur_dsp_pairs_cost(p), 35 * mur_dsp_pairs_copied(p),
                             600 + 30 * taps + 8 * elements, 150 * (p->phases + 1) + 25 * taps,
                             mur_dsp_depthwise_pairs_s8_scratch_bytes };

    return layer_cost(layer, &cost);
}

int mur_dsp_depthwise_pairs_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    mur_dsp_pairs p = mur_dsp_pairs_of(&layer->shape);

    return are_quads(layer, plain, pairs_plane_bytes(&p),
                     mur_dsp_depthwise_pairs_s8_scratch_bytes(layer)) &&
           pairs_cost(layer, &p) < taps_cost(layer);
}

size_t mur_dsp_depthwise_pairs_s8_packed_bytes(const mur_conv_s8 *layer)
{
    return (size_t)(layer->shape.out_c + 3) / 4 * (size_t)mur_dsp_quad_bytes(&layer->shape);
}

void mur_dsp_depthwise_pairs_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain,
                                     void *packed)
{
    const mur_conv_shape *s = &layer->shape;
    uint8_t *out = packed;
    mur_dsp_view four[4];

    for (int32_t c = 0; c < s->out_c; c += 4, out += mur_dsp_quad_bytes(s)) {
        see_four(layer, plain, first_of(s, c), four);
        pack_quad(four, out);
    }
}

size_t mur_dsp_depthwise_pairs_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    mur_dsp_pairs p = mur_dsp_pairs_of(&layer->shape);

    return 16 + (size_t)p.steps * (size_t)p.along.kernel * sizeof(mur_dsp_tap_pair) +
           pairs_plane_bytes(&p);
}

/* ---- planes of a channel, or fours ---- */

/* about the instructions of planes of a channel */
static int64_t planes_cost(const mur_conv_s8 *layer)
{
    const mur_conv_shape *s = &layer->shape;
    int64_t outputs = (int64_t)s->out_h * ((s->out_w + 1) & ~1), more = s->kernel_w - 3;
    int64_t plane = (int64_t)mur_dsp_plane_rows(layer) * mur_dsp_plane_columns(layer);

    return s->in_c * (100 + 130 * more + (36 + 19 * more) * outputs / 2 + 5 * plane / 2);
}

/* are fours of channels fewer, by a quarter? */
static int is_for_fours(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    mur_dsp_pairs p = mur_dsp_pairs_of(&layer->shape);
    int64_t cost = planes_cost(layer) * 3 / 4;

    return (taps_cost(layer) < cost && mur_dsp_depthwise_taps_s8_fits(layer, plain)) ||
           (pairs_cost(layer, &p) < cost && mur_dsp_depthwise_pairs_s8_fits(layer, plain));
}

int mur_dsp_depthwise_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    return layer->shape.kernel_h > 3 && has_plane(layer) &&
           mur_dsp_are_simple(layer, plain, 32, 31) && !is_for_fours(layer, plain);
}

/* ---- depthwise, wide ---- */

int mur_dsp_depthwise_wide_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    return has_plane(layer) && mur_dsp_conv_wide_s8_fits(layer, plain);
}

size_t mur_dsp_depthwise_wide_s8_packed_bytes(const mur_conv_s8 *layer)
{
    return plane_bytes(layer, MUR_DSP_PLANE_WIDE_WORDS);
}

void mur_dsp_depthwise_wide_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain,
                                    void *packed)
{
    pack_planes(layer, plain, mur_dsp_plain_view, MUR_DSP_PLANE_WIDE_WORDS, packed);
}

size_t mur_dsp_depthwise_wide_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    return mur_dsp_depthwise_s8_scratch_bytes(layer) + (size_t)layer->shape.out_w * 4;
}

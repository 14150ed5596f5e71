/* nn_f16_cases.c - layers and elements on halves, and what they are in binary32, rounded. */
#include "nn_f16_cases.h"

#include <string.h>

#include "mur_half.h"
#include "nn_f32_cases.h"

enum { MOST = 1 << 12, MOST_WEIGHTS = 6 << 10, MOST_CHANNELS = 20, PAD = 8 };

static uint16_t memory[3 * MOST], in[MOST], out[MOST + PAD], packed[MOST_WEIGHTS];
static float wide_in[MOST], wide_out[MOST + PAD], weights[MOST_WEIGHTS];
static float bias[MOST_CHANNELS], wide_packed[MOST_WEIGHTS + 64 * MOST_CHANNELS];
static const float limits[2] = { -0.25f, 6 }, above_zero[2] = { 0, 6 };
static uint32_t state = 1;

static uint32_t next(void)
{
    state = state * 1664525 + 1013904223;
    return state >> 8;
}

/* mostly near 1, also subnormal or zero, of either sign */
static uint16_t half(void)
{
    uint32_t kind = next() % 16, sign = next() % 2 << 15;

    if (kind == 0)
        return (uint16_t)sign;
    if (kind < 4)
        return (uint16_t)(sign | next() % 0x400);
    return (uint16_t)(sign | (0x2400 + next() % 0x1c00));
}

static float constant(void)
{
    return mur_float_of_half(half());
}

static void draw_operands(void)
{
    for (int32_t i = 0; i < MOST; i++) {
        in[i] = half();
        wide_in[i] = mur_float_of_half(in[i]);
    }
    for (int32_t i = 0; i < MOST_WEIGHTS; i++)
        weights[i] = constant();
    for (int32_t i = 0; i < MOST_CHANNELS; i++)
        bias[i] = constant() + 0.0f; /* not -0 */
    for (int32_t i = 0; i < MOST + PAD; i++)
        out[i] = 12345;
}

static void run(const mur_conv_f16 *l, int depthwise, const uint16_t *from, uint16_t *to)
{
    static float scratch[MOST];
    size_t end = (depthwise ? mur_mve_depthwise_f16_scratch_bytes
                            : mur_mve_conv_f16_scratch_bytes)(&l->shape) /
                 sizeof(float);

    scratch[end] = 54321;
    (depthwise ? mur_mve_depthwise_f16 : mur_mve_conv_f16)(l, from, to, scratch);
    if (scratch[end] != 54321)
        to[0] ^= 1; /* counts as wrong */
}

static uint16_t bounded(const mur_conv_f16 *l, float x)
{
    uint16_t rounded = mur_half_of_float(l->relu && x <= 0 ? 0 : x);
    float value = mur_float_of_half(rounded);

    if (l->limits && value < l->limits[0])
        return mur_half_of_float(l->limits[0]);
    return l->limits && value > l->limits[1] ? mur_half_of_float(l->limits[1]) : rounded;
}

static int is_right(const mur_conv_f16 *l)
{
    const mur_conv_shape *s = &l->shape;

    for (int32_t i = 0; i < MOST + PAD; i++) {
        int inside = i / s->out_pitch < s->out_h && i % s->out_pitch < s->out_w * s->out_c;

        if (out[i] != (inside ? bounded(l, wide_out[i]) : 12345))
            return 0;
    }
    return 1;
}

/* the layer again, its input as close behind its output as it may be */
static int may_overlap(const mur_conv_f16 *l, int depthwise)
{
    const mur_conv_shape *s = &l->shape;
    int32_t lead = (depthwise ? mur_mve_depthwise_f16_lead : mur_mve_conv_f16_lead)(s);
    uint16_t *to = memory + MOST, *from = to + lead;

    memcpy(from, in, (size_t)(s->in_h * s->in_pitch) * sizeof(*in));
    run(l, depthwise, from, to);
    for (int32_t y = 0; y < s->out_h; y++)
        if (memcmp(to + y * s->out_pitch, out + y * s->out_pitch,
                   (size_t)(s->out_w * s->out_c) * sizeof(*out)) != 0)
            return 0;
    return 1;
}

/* the layer of binary32 that says what is right */
static void run_wide(const mur_conv_f16 *l, int depthwise)
{
    mur_conv_f32 wide = { l->shape, 0, NULL, wide_packed };
    size_t count = depthwise ? mur_depthwise_f32_packed_elems(&l->shape)
                             : mur_conv_f32_packed_elems(&l->shape);

    (depthwise ? mur_depthwise_f32_pack : mur_conv_f32_pack)(&l->shape, weights, bias, wide_packed);
    for (size_t i = 0; i < count; i++)
        packed[i] = mur_half_of_float(wide_packed[i]);
    (depthwise ? mur_depthwise_f32_run : mur_conv_f32_run)(&wide, wide_in, wide_out);
}

nn_f16_result nn_f16_check(uint32_t rounds, int depthwise)
{
    nn_f16_result result;

    memset(&result, 0, sizeof(result));
    while (rounds-- > 0) {
        mur_conv_f16 l = { nn_f32_draw(depthwise).shape, (int32_t)(next() % 2), NULL, packed };

        if (next() % 2)
            l.limits = next() % 2 ? limits : above_zero;
        draw_operands();
        run_wide(&l, depthwise);
        run(&l, depthwise, in, out);
        if ((!is_right(&l) || !may_overlap(&l, depthwise)) && result.wrong++ == 0)
            result.first = l;
    }
    return result;
}

/* ---- pools ---- */

static int32_t extent(int32_t size, int32_t kernel, int32_t stride, int32_t pads)
{
    return (size + pads - kernel) / stride + 1;
}

static void draw_pool(mur_pool_f16 *l)
{
    memset(l, 0, sizeof(*l));
    l->c = 1 + (int32_t)(next() % MOST_CHANNELS);
    l->kernel_h = (uint16_t)(1 + next() % 4);
    l->kernel_w = (uint16_t)(1 + next() % 5);
    l->in_h = l->kernel_h + (int32_t)(next() % 5);
    l->in_w = l->kernel_w + (int32_t)(next() % 5);
    l->stride_h = (uint16_t)(1 + next() % 3);
    l->stride_w = (uint16_t)(1 + next() % 3);
    l->pad_top = (uint16_t)(next() % l->kernel_h);
    l->pad_left = (uint16_t)(next() % l->kernel_w);
    l->out_h = extent(l->in_h, l->kernel_h, l->stride_h, 2 * l->pad_top);
    l->out_w = extent(l->in_w, l->kernel_w, l->stride_w, 2 * l->pad_left);
    l->in_pitch = l->in_w * l->c;
    l->out_pitch = l->out_w * l->c;
}

/* channel c of output (y, x) */
static uint16_t pooled(const mur_pool_f16 *l, int is_max, int32_t y, int32_t x, int32_t c)
{
    float most = -65504.0f * 2, sum = 0;
    int32_t count = 0;

    for (int32_t i = 0; i < l->kernel_h * l->kernel_w; i++) {
        int32_t row = y * l->stride_h - l->pad_top + i / l->kernel_w;
        int32_t column = x * l->stride_w - l->pad_left + i % l->kernel_w;
        float value;

        if (row < 0 || row >= l->in_h || column < 0 || column >= l->in_w)
            continue;
        value = wide_in[(row * l->in_w + column) * l->c + c];
        sum += value;
        count++;
        most = value > most ? value : most;
    }
    return mur_half_of_float(is_max ? most : sum / (float)count);
}

static int is_pool_wrong(const mur_pool_f16 *l, int is_max)
{
    (is_max ? mur_mve_greatest_f16 : mur_mve_averages_f16)(l, in, out);
    for (int32_t i = 0; i < l->out_h * l->out_pitch; i++)
        if (out[i] != pooled(l, is_max, i / l->out_pitch, i % l->out_pitch / l->c, i % l->c))
            return 1;
    return out[l->out_h * l->out_pitch] != 12345;
}

uint32_t nn_f16_check_pools(uint32_t rounds)
{
    uint32_t wrong = 0;

    while (rounds-- > 0)
        for (int is_max = 0; is_max < 2; is_max++) {
            mur_pool_f16 l;

            draw_pool(&l);
            draw_operands();
            wrong += (uint32_t)is_pool_wrong(&l, is_max);
        }
    return wrong;
}

/* ---- elements ---- */

static uint16_t expected(int kernel, float a, float b)
{
    const mur_conv_f16 relu = { { 0 }, 1, NULL, NULL }, clip = { { 0 }, 0, limits, NULL };

    return kernel == 0   ? mur_half_of_float(a + b)
           : kernel == 1 ? mur_half_of_float(a - b)
           : kernel == 2 ? mur_half_of_float(a * b)
                         : bounded(kernel == 3 ? &relu : &clip, a);
}

static int is_element_wrong(int kernel, int32_t count)
{
    const uint16_t *a = in, *b = in + MOST / 2;

    if (kernel == 0)
        mur_mve_sums_f16(count, a, b, out);
    else if (kernel == 1)
        mur_mve_differences_f16(count, a, b, out);
    else if (kernel == 2)
        mur_mve_products_f16(count, a, b, out);
    else if (kernel == 3)
        mur_mve_rectified_f16(count, a, out);
    else
        mur_mve_limited_f16(count, limits, a, out);
    for (int32_t i = 0; i < count; i++)
        if (out[i] != expected(kernel, wide_in[i], wide_in[MOST / 2 + i]))
            return 1;
    return out[count] != 12345;
}

/* every half to binary32 and back, and what lies around the middle to the next one */
static uint32_t check_conversions(void)
{
    uint32_t wrong = 0;

    for (uint32_t first = 0; first < 0x10000; first += MOST) {
        for (uint32_t i = 0; i < MOST; i++)
            in[i] = (uint16_t)(first + i);
        mur_mve_floats_of(MOST, in, wide_in);
        mur_mve_halves_of(MOST, wide_in, out);
        for (uint32_t i = 0; i < MOST; i++) {
            float x = mur_float_of_half(in[i]);

            if (x != x)
                wrong += wide_in[i] == wide_in[i] || (out[i] & 0x7fff) <= 0x7c00;
            else
                wrong += memcmp(&x, &wide_in[i], sizeof(x)) != 0 || out[i] != in[i];
        }
        for (uint32_t i = 0; i < MOST; i++) {
            uint32_t bits = (next() << 12) ^ next();
            float x;

            if (i % 2)
                bits = (bits & 0x9fffe000) | 0x1000 | (0x30000000 + (next() % 32 << 23)) | i % 3;
            if ((bits & 0x7fffffff) > 0x7f800000)
                bits = 0;
            memcpy(&x, &bits, sizeof(x));
            wide_in[i] = x;
        }
        mur_mve_halves_of(MOST, wide_in, out);
        for (uint32_t i = 0; i < MOST; i++)
            wrong += out[i] != mur_half_of_float(wide_in[i]);
    }
    return wrong;
}

uint32_t nn_f16_check_elements(uint32_t rounds)
{
    uint32_t wrong = check_conversions();

    while (rounds-- > 0)
        for (int kernel = 0; kernel < 5; kernel++) {
            draw_operands();
            wrong += (uint32_t)is_element_wrong(kernel, (int32_t)(next() % 40));
        }
    return wrong;
}

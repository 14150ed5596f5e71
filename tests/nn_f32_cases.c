/* nn_f32_cases.c - layers of all kinds, and what they compute, term by term. */
#include "nn_f32_cases.h"

#include <string.h>

enum { MOST = 1 << 12, MOST_WEIGHTS = 6 << 10, MOST_CHANNELS = 20, PAD = 4 };

static float memory[2 * MOST], in[MOST], out[MOST + PAD], weights[MOST_WEIGHTS];
static float bias[MOST_CHANNELS], packed[MOST_WEIGHTS + 64 * MOST_CHANNELS];
static const float limits[2] = { -0.25f, 6 };
static uint32_t state = 1;

static uint32_t next(void)
{
    state = state * 1664525 + 1013904223;
    return state >> 8;
}

static int32_t between(int32_t least, int32_t most)
{
    return least + (int32_t)(next() % (uint32_t)(most - least + 1));
}

/* of both signs, with full mantissas, zeros among them */
static float real(void)
{
    float x = (float)between(-0x7fffff, 0x7fffff) / (float)(1 << between(20, 26));

    return between(0, 9) == 0 ? x * 0 : x;
}

static int draw(mur_conv_f32 *l, int depthwise)
{
    static const uint16_t kernels[] = { 1, 1, 3, 5 };
    int32_t span_h, span_w;

    memset(l, 0, sizeof(*l));
    l->shape.in_h = between(1, 9);
    l->shape.in_w = between(1, between(0, 3) == 0 ? 40 : 14);
    l->shape.in_c = between(1, 17);
    l->shape.out_c = between(1, 17);
    l->shape.groups = 1;
    if (depthwise) {
        l->shape.groups = l->shape.out_c = l->shape.in_c;
    } else if (between(0, 4) == 0) {
        l->shape.groups = between(2, 3);
        l->shape.in_c = l->shape.groups * between(1, 4);
        l->shape.out_c = l->shape.groups * between(1, 6);
    }
    l->shape.kernel_h = kernels[next() % 4];
    l->shape.kernel_w = kernels[next() % 4];
    l->shape.stride_h = (uint16_t)between(1, 2);
    l->shape.stride_w = (uint16_t)between(1, 2);
    l->shape.dilation_h = (uint16_t)(between(0, 4) == 0 ? 2 : 1);
    l->shape.dilation_w = (uint16_t)(between(0, 4) == 0 ? 2 : 1);
    l->shape.pad_top = (uint16_t)(next() % l->shape.kernel_h);
    l->shape.pad_left = (uint16_t)(next() % l->shape.kernel_w);
    span_h =
        l->shape.in_h + 2 * l->shape.pad_top - (l->shape.kernel_h - 1) * l->shape.dilation_h - 1;
    span_w =
        l->shape.in_w + 2 * l->shape.pad_left - (l->shape.kernel_w - 1) * l->shape.dilation_w - 1;
    if (span_h < 0 || span_w < 0)
        return 0;
    l->shape.out_h = span_h / l->shape.stride_h + 1;
    l->shape.out_w = span_w / l->shape.stride_w + 1;
    l->shape.in_pitch = l->shape.in_w * l->shape.in_c + between(0, 2);
    l->shape.out_pitch = l->shape.out_w * l->shape.out_c + between(0, 2);
    l->relu = between(0, 1);
    l->limits = between(0, 2) == 0 ? limits : NULL;
    return l->shape.in_h * l->shape.in_pitch <= MOST &&
           l->shape.out_h * l->shape.out_pitch <= MOST &&
           l->shape.out_c * l->shape.kernel_h * l->shape.kernel_w *
                   (l->shape.in_c / l->shape.groups) <=
               MOST_WEIGHTS;
}

mur_conv_f32 nn_f32_draw(int depthwise)
{
    mur_conv_f32 layer;

    while (!draw(&layer, depthwise))
        ;
    return layer;
}

static float judge(const mur_conv_f32 *l, int32_t y, int32_t x, int32_t c)
{
    int32_t depth = l->shape.in_c / l->shape.groups,
            first = c / (l->shape.out_c / l->shape.groups) * depth;
    volatile float sum = bias[c], product; /* volatile: no fused multiply-add here */

    for (int32_t i = 0; i < l->shape.kernel_h; i++)
        for (int32_t j = 0; j < l->shape.kernel_w; j++)
            for (int32_t k = 0; k < depth; k++) {
                int32_t row = y * l->shape.stride_h - l->shape.pad_top + i * l->shape.dilation_h;
                int32_t column =
                    x * l->shape.stride_w - l->shape.pad_left + j * l->shape.dilation_w;

                if (row < 0 || row >= l->shape.in_h || column < 0 || column >= l->shape.in_w)
                    continue;
                product =
                    weights[((c * l->shape.kernel_h + i) * l->shape.kernel_w + j) * depth + k] *
                    in[row * l->shape.in_pitch + column * l->shape.in_c + first + k];
                sum = sum + product;
            }
    if (l->relu && sum <= 0)
        sum = 0;
    if (l->limits && sum < l->limits[0])
        sum = l->limits[0];
    return l->limits && sum > l->limits[1] ? l->limits[1] : sum;
}

static int is_right(const mur_conv_f32 *l)
{
    for (int32_t i = 0; i < MOST + PAD; i++) {
        int32_t y = i / l->shape.out_pitch, x = i % l->shape.out_pitch;
        int inside = y < l->shape.out_h && x < l->shape.out_w * l->shape.out_c;
        float wanted = inside ? judge(l, y, x / l->shape.out_c, x % l->shape.out_c) : 12345;

        if (memcmp(&out[i], &wanted, sizeof(wanted)) != 0)
            return 0;
    }
    return 1;
}

/* the layer again, its input as close behind its output as it may be */
static int may_overlap(const mur_conv_f32 *l, int depthwise)
{
    float *to = memory, *from = to + mur_conv_f32_lead(&l->shape);

    memcpy(from, in, (size_t)(l->shape.in_h * l->shape.in_pitch) * sizeof(*in));
    (depthwise ? mur_depthwise_f32_run : mur_conv_f32_run)(l, from, to);
    for (int32_t y = 0; y < l->shape.out_h; y++)
        if (memcmp(to + y * l->shape.out_pitch, out + y * l->shape.out_pitch,
                   (size_t)(l->shape.out_w * l->shape.out_c) * sizeof(*out)) != 0)
            return 0;
    return 1;
}

static void draw_operands(void)
{
    for (int32_t i = 0; i < MOST; i++)
        in[i] = real();
    for (int32_t i = 0; i < MOST_WEIGHTS; i++)
        weights[i] = real();
    for (int32_t i = 0; i < MOST + PAD; i++)
        out[i] = 12345;
}

nn_f32_result nn_f32_check(uint32_t rounds, int depthwise)
{
    nn_f32_result result;

    memset(&result, 0, sizeof(result));
    while (rounds-- > 0) {
        mur_conv_f32 l = nn_f32_draw(depthwise);

        l.packed = packed;
        draw_operands();
        for (int32_t i = 0; i < MOST_CHANNELS; i++)
            bias[i] = real();
        (depthwise ? mur_depthwise_f32_pack : mur_conv_f32_pack)(&l.shape, weights, bias, packed);
        (depthwise ? mur_depthwise_f32_run : mur_conv_f32_run)(&l, in, out);
        if ((!is_right(&l) || !may_overlap(&l, depthwise)) && result.wrong++ == 0)
            result.first = l;
    }
    return result;
}

/* ---- products of two computed matrices ---- */

static void draw_product(mur_matmul_f32 *l)
{
    l->rows = between(1, 11);
    l->columns = between(1, 21);
    l->depth = between(1, between(0, 3) == 0 ? 90 : 9);
    l->a_pitch = l->depth + between(0, 3);
    l->out_pitch = l->columns + between(0, 3);
    l->b_row = l->b_column = 1;
    if (between(0, 1))
        l->b_row = l->columns + between(0, 3);
    else
        l->b_column = l->depth + between(0, 3);
}

static int is_product_right(const mur_matmul_f32 *l)
{
    for (int32_t i = 0; i < MOST + PAD; i++) {
        int32_t row = i / l->out_pitch, column = i % l->out_pitch;
        float wanted = 12345;

        if (row < l->rows && column < l->columns) {
            wanted = 0;
            for (int32_t k = 0; k < l->depth; k++) {
                volatile float term =
                    in[row * l->a_pitch + k] * weights[k * l->b_row + column * l->b_column];

                wanted = wanted + term;
            }
        }
        if (memcmp(&out[i], &wanted, sizeof(wanted)) != 0)
            return 0;
    }
    return 1;
}

uint32_t nn_f32_check_products(uint32_t rounds)
{
    uint32_t wrong = 0;

    while (rounds-- > 0) {
        mur_matmul_f32 l;
        size_t scratch_floats;

        draw_product(&l);
        draw_operands();
        scratch_floats = mur_matmul_f32_scratch_bytes(&l) / sizeof(float);
        packed[scratch_floats] = 54321;
        mur_matmul_f32_run(&l, in, weights, out, packed);
        wrong += !is_product_right(&l) || packed[scratch_floats] != 54321;
    }
    return wrong;
}

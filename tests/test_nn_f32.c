/* test_nn_f32.c - convolutions on binary32, every bit of the order that mur_nn_f32.h writes. */
#include "mur_nn_f32.h"

#include <math.h>
#include <string.h>

#include "chance.h"
#include "check.h"

enum { MOST = 1 << 14 };

static float in[MOST], out[MOST], weights[MOST], bias[256], packed[2 * MOST];

static int32_t between(int32_t least, int32_t most)
{
    return least + (int32_t)(random_u32() % (uint32_t)(most - least + 1));
}

static int draw_layer(mur_conv_f32 *l, int depthwise)
{
    static const uint16_t kernels[] = { 1, 1, 3, 5 };
    mur_conv_shape *shape = &l->shape;
    int32_t span_h, span_w;

    memset(l, 0, sizeof(*l));
    shape->in_h = between(1, 9);
    shape->in_w = between(1, 14);
    shape->in_c = between(1, 17);
    shape->out_c = between(1, 17);
    shape->groups = 1;
    if (depthwise) {
        shape->groups = shape->out_c = shape->in_c;
    } else if (between(0, 4) == 0) {
        shape->groups = between(2, 3);
        shape->in_c = shape->groups * between(1, 4);
        shape->out_c = shape->groups * between(1, 6);
    }
    shape->kernel_h = kernels[random_u32() % 4];
    shape->kernel_w = kernels[random_u32() % 4];
    shape->stride_h = (uint16_t)between(1, 2);
    shape->stride_w = (uint16_t)between(1, 2);
    shape->dilation_h = (uint16_t)(between(0, 4) == 0 ? 2 : 1);
    shape->dilation_w = (uint16_t)(between(0, 4) == 0 ? 2 : 1);
    shape->pad_top = (uint16_t)(random_u32() % shape->kernel_h);
    shape->pad_left = (uint16_t)(random_u32() % shape->kernel_w);
    span_h = shape->in_h + 2 * shape->pad_top - (shape->kernel_h - 1) * shape->dilation_h - 1;
    span_w = shape->in_w + 2 * shape->pad_left - (shape->kernel_w - 1) * shape->dilation_w - 1;
    if (span_h < 0 || span_w < 0)
        return 0;
    shape->out_h = span_h / shape->stride_h + 1;
    shape->out_w = span_w / shape->stride_w + 1;
    shape->in_pitch = shape->in_w * shape->in_c + between(0, 2);
    shape->out_pitch = shape->out_w * shape->out_c + between(0, 2);
    l->min = between(0, 1) ? 0 : -INFINITY;
    l->max = between(0, 1) ? 6 : INFINITY;
    l->packed = packed;
    return shape->in_h * shape->in_pitch <= MOST && shape->out_h * shape->out_pitch <= MOST;
}

static float judge(const mur_conv_f32 *l, int32_t y, int32_t x, int32_t c)
{
    const mur_conv_shape *shape = &l->shape;
    int32_t depth = shape->in_c / shape->groups, first = c / (shape->out_c / shape->groups) * depth;
    volatile float sum = bias[c], product; /* volatile: no fused multiply-add here */

    for (int32_t i = 0; i < shape->kernel_h; i++)
        for (int32_t j = 0; j < shape->kernel_w; j++)
            for (int32_t k = 0; k < depth; k++) {
                int32_t row = y * shape->stride_h - shape->pad_top + i * shape->dilation_h;
                int32_t column = x * shape->stride_w - shape->pad_left + j * shape->dilation_w;

                if (row < 0 || row >= shape->in_h || column < 0 || column >= shape->in_w)
                    continue;
                product = weights[((c * shape->kernel_h + i) * shape->kernel_w + j) * depth + k] *
                          in[row * shape->in_pitch + column * shape->in_c + first + k];
                sum = sum + product;
            }
    return fminf(fmaxf(sum, l->min), l->max);
}

/* the layer again, its input as close behind its output as it may be */
static void check_overlap(const mur_conv_f32 *l, int depthwise)
{
    static float memory[3 * MOST];
    float *to = memory + MOST, *from = to + mur_conv_f32_lead(&l->shape);

    memcpy(from, in, (size_t)(l->shape.in_h * l->shape.in_pitch) * sizeof(*in));
    (depthwise ? mur_depthwise_f32_run : mur_conv_f32_run)(l, from, to);
    for (int32_t y = 0; y < l->shape.out_h; y++)
        assert_memory_equal(to + y * l->shape.out_pitch, out + y * l->shape.out_pitch,
                            (size_t)(l->shape.out_w * l->shape.out_c) * sizeof(*out));
}

static void check_layers(int depthwise)
{
    for (int times = 0; times < 600;) {
        mur_conv_f32 l;

        if (!draw_layer(&l, depthwise))
            continue;
        times++;
        for (int32_t i = 0; i < MOST; i++) {
            in[i] = (float)random_gaussian();
            weights[i] = (float)random_gaussian();
            out[i] = 12345;
        }
        for (int i = 0; i < 256; i++)
            bias[i] = (float)random_gaussian();
        if (depthwise) {
            mur_depthwise_f32_pack(&l.shape, weights, bias, packed);
            mur_depthwise_f32_run(&l, in, out);
        } else {
            mur_conv_f32_pack(&l.shape, weights, bias, packed);
            mur_conv_f32_run(&l, in, out);
        }
        for (int32_t y = 0; y < l.shape.out_h; y++)
            for (int32_t x = 0; x < l.shape.out_pitch && y * l.shape.out_pitch + x < MOST; x++) {
                int32_t c = x % l.shape.out_c;
                float wanted =
                    x < l.shape.out_w * l.shape.out_c ? judge(&l, y, x / l.shape.out_c, c) : 12345;

                CHECK(out[y * l.shape.out_pitch + x] == wanted);
            }
        check_overlap(&l, depthwise);
    }
}

static void convolutions_add_in_the_written_order(void **unused)
{
    (void)unused;
    check_layers(0);
}

static void depthwise_ones_too(void **unused)
{
    (void)unused;
    check_layers(1);
}

static void no_bias_is_zero_and_nan_stays(void **unused)
{
    mur_conv_f32 l = {
        .shape = {
            .in_h = 1,
            .in_w = 1,
            .in_c = 2,
            .out_h = 1,
            .out_w = 1,
            .out_c = 2,
            .in_pitch = 2,
            .out_pitch = 2,
            .kernel_h = 1,
            .kernel_w = 1,
            .stride_h = 1,
            .stride_w = 1,
            .dilation_h = 1,
            .dilation_w = 1,
            .groups = 1,
        },
        .min = 0,
        .max = 6,
        .packed = packed,
    };
    const float w[4] = { 1, 2, NAN, 0 }, x[2] = { 0.5f, 1 };

    (void)unused;
    mur_conv_f32_pack(&l.shape, w, NULL, packed);
    mur_conv_f32_run(&l, x, out);
    CHECK(out[0] == 2.5f);
    CHECK(isnan(out[1]));
}

/* the sizes asked for are the sizes written */
static void packing_stays_in_its_bounds(void **unused)
{
    (void)unused;
    for (int times = 0; times < 200; times++) {
        mur_conv_f32 l;
        size_t elems;

        if (!draw_layer(&l, times & 1))
            continue;
        elems = times & 1 ? mur_depthwise_f32_packed_elems(&l.shape)
                          : mur_conv_f32_packed_elems(&l.shape);
        CHECK(elems < 2 * MOST);
        packed[elems] = 777;
        packed[elems - 1] = 777;
        (times & 1 ? mur_depthwise_f32_pack : mur_conv_f32_pack)(&l.shape, weights, bias, packed);
        CHECK(packed[elems] == 777);
        CHECK(packed[elems - 1] != 777);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_add_in_the_written_order),
        cmocka_unit_test(depthwise_ones_too),
        cmocka_unit_test(no_bias_is_zero_and_nan_stays),
        cmocka_unit_test(packing_stays_in_its_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

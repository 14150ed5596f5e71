/* Additions of int8 as one line, and pools of few taps or channels as loops: the bits of TensorFlow
 * Lite's, in all shapes and on all machines. */
#include <math.h>

#include "chance.h"
#include "graph/scales.h"
#include "mcu_network.h"
#include "operators.h"
#include "targets/mcu/loops/sums_int8.h"

enum { PAIRS = 65536 };

/* of tensors whose steps are a, b and y */
static mur_add_s8 addition(float a, float b, float y)
{
    const double twice = 2 * (double)fmaxf(a, b);
    const muc_multiplier of_a = muc_multiplier_of((double)a / twice);
    const muc_multiplier of_b = muc_multiplier_of((double)b / twice);
    const muc_multiplier of_y = muc_multiplier_of(twice / ((double)y * (1 << 20)));

    return (mur_add_s8){ .count = PAIRS,
                         .b_count = PAIRS,
                         .a_mul = of_a.mantissa,
                         .a_shift = of_a.shift,
                         .b_mul = of_b.mantissa,
                         .b_shift = of_b.shift,
                         .mul = of_y.mantissa,
                         .shift = of_y.shift,
                         .left_shift = 20,
                         .subtract = (uint8_t)(random_u32() % 2),
                         .a_zero = (int8_t)random_u32(),
                         .b_zero = (int8_t)random_u32(),
                         .zero = (int8_t)random_u32(),
                         .min = (int8_t)(random_u32() % 2 ? -128 : -20),
                         .max = (int8_t)(random_u32() % 4 ? 127 : 90) };
}

/* between 1/4 and 4 */
static float step(void)
{
    return (float)exp2((double)(random_u32() % 4001) / 1000 - 2);
}

static void lines_give_the_bits_of_all_pairs(void **state)
{
    enum { LAYERS = 300 };
    static int8_t a[PAIRS], b[PAIRS], right[PAIRS], sums[PAIRS];
    unsigned found = 0;

    (void)state;
    for (int i = 0; i < PAIRS; i++) {
        a[i] = (int8_t)i;
        b[i] = (int8_t)(i >> 8);
    }
    for (int i = 0; i < LAYERS; i++) {
        const float of_a = step(), of_b = i % 3 ? step() : of_a; /* halves go away from zero */
        const mur_add_s8 add = addition(of_a, of_b, i % 6 ? (of_a + of_b) / 2 * step() : 2 * of_a);
        mur_add_s8 sum;

        if (!muc_mcu_find_line(&add, &sum))
            continue;
        found++;
        mur_ref_add_s8(&add, a, b, right);
        mur_ref_line_s8(&sum, a, b, sums);
        CHECK(memcmp(sums, right, sizeof(right)) == 0);
    }
    CHECK(found >= LAYERS * 9 / 10);
}

static void factors_that_are_too_great_are_none(void **state)
{
    const mur_add_s8 add = addition(5, 1, 1);
    mur_add_s8 sum;

    (void)state;
    CHECK(!muc_mcu_find_line(&add, &sum));
}

/* inputs a and b are random */
static const struct {
    const char *a, *b, *y;
    bool has_kernel;
} shapes[] = {
    { "2, 5, 7, 3", "2, 5, 7, 3", "2, 5, 7, 3", true },  { "1, 9, 9, 8", "8", "1, 9, 9, 8", true },
    { "1, 9, 9, 5", "1, 1, 1, 5", "1, 9, 9, 5", true },  { "4, 70", "1", "4, 70", true },
    { "1, 5, 5, 9", "1, 5, 5, 1", "1, 5, 5, 9", false }, { "5, 1", "1, 6", "5, 6", false },
};

/* an operand or a result of int8 */
typedef struct side {
    const char *dims, *scale;
    int zero;
} side;

/* a network of one operator of two tensors */
static void add_pair(mcu_batch *batch, const char *machine, const char *operator, side a, side b,
                     side y)
{
    char text[512];

    snprintf(text, sizeof(text),
             "graph test\ntensor a = input i8 [%s] scale %s zero %d\n"
             "tensor b = input i8 [%s] scale %s zero %d\n"
             "node y i8 [%s] scale %s zero %d = %s a, b\noutput y\n",
             a.dims, a.scale, a.zero, b.dims, b.scale, b.zero, y.dims, y.scale, y.zero, operator);
    mcu_batch_add(batch, graph_of(batch->ctx, text), machine);
}

static void sums_of_any_shapes_have_the_bits_of_ref(void **state)
{
    static const char *const machines[] = { "host", "stm32f405", "stm32h743", "mps3-an547",
                                            "rv32" };
    static const char *const operators[] = { "add", "sub", "mul" };
    mcu_batch batch = mcu_batch_new();

    (void)state;
    for (size_t m = 0; m < MUC_COUNT(machines); m++)
        for (size_t i = 0; i < MUC_COUNT(shapes); i++)
            for (size_t o = 0; o < MUC_COUNT(operators); o++) {
                add_pair(&batch, machines[m], operators[o], (side){ shapes[i].a, "0.05", 3 },
                         (side){ shapes[i].b, "0.031", -8 },
                         (side){ shapes[i].y, o < 2 ? "0.0613" : "0.12", 5 });
                if (o < 2 && m != 3) /* vectors have kernels for additions */
                    CHECK(mcu_calls(&batch, batch.count - 1,
                                    shapes[i].has_kernel ? "_line_s8" : "mur_line("));
            }
    mcu_batch_run(&batch, 1, 0);
}

/* of many elements: round scales have many sums that are halves, and quotients have a table */
static void sums_and_quotients_of_round_scales_have_the_bits_of_ref(void **state)
{
    static const char *const machines[] = { "stm32f405", "rv32" };
    static const char *const operators[] = { "add", "sub", "div" };
    static const char *const seconds[] = { "3, 40, 40", "40", "3, 40, 1" };
    mcu_batch batch = mcu_batch_new();

    (void)state;
    for (size_t m = 0; m < MUC_COUNT(machines); m++)
        for (size_t i = 0; i < MUC_COUNT(seconds); i++)
            for (size_t o = 0; o < MUC_COUNT(operators); o++) {
                add_pair(&batch, machines[m], operators[o], (side){ "3, 40, 40", "0.02", 3 },
                         (side){ seconds[i], "0.031", -7 }, (side){ "3, 40, 40", "0.05", 5 });
                CHECK(mcu_calls(&batch, batch.count - 1, o < 2 ? "mur_line(" : "mur_add_product("));
            }
    mcu_batch_run(&batch, 1, 0);
}

/* of two scales each side's bytes have a table, but for one that has the output's scale */
static void extremes_of_two_scales_have_the_bits_of_ref(void **state)
{
    static const char *const machines[] = { "host", "stm32f405", "rv32" };
    static const char *const operators[] = { "max", "min" };
    static const char *const seconds[] = { "3, 40, 40", "40", "3, 40, 1" };
    static const char *const scales[] = { "0.02", "0.05" };
    mcu_batch batch = mcu_batch_new();

    (void)state;
    for (size_t m = 0; m < MUC_COUNT(machines); m++)
        for (size_t i = 0; i < MUC_COUNT(seconds); i++)
            for (size_t o = 0; o < MUC_COUNT(operators); o++)
                for (size_t s = 0; s < MUC_COUNT(scales); s++) {
                    add_pair(&batch, machines[m], operators[o], (side){ "3, 40, 40", scales[s], 5 },
                             (side){ seconds[i], "0.031", -7 }, (side){ "3, 40, 40", "0.05", 5 });
                    CHECK_EQ(mcu_calls(&batch, batch.count - 1, "of_a[(uint8_t)"), s == 0);
                    CHECK(mcu_calls(&batch, batch.count - 1, "of_b[(uint8_t)"));
                }
    mcu_batch_run(&batch, 1, 0);
}

/* slopes below and above 0 and 1, and scales whose roundings before and after a shift differ */
static void slopes_of_channels_have_the_bits_of_ref(void **state)
{
    static const char *const machines[] = { "stm32f405", "rv32", "rp2040" };
    static const char *const scales[] = { "0.0233", "0.05", "0.0871", "0.1701", "0.4" };
    mcu_batch batch = mcu_batch_new();

    (void)state;
    for (size_t m = 0; m < MUC_COUNT(machines); m++)
        for (size_t s = 0; s < MUC_COUNT(scales); s++) {
            char text[512];

            snprintf(text, sizeof(text),
                     "graph test\ntensor a = input i8 [1, 9, 9, 5] scale 0.05 zero 3\n"
                     "tensor b = const i8 [5] scale 0.0131 zero -7 values -128, 127, -7, 10, -60\n"
                     "node y i8 [1, 9, 9, 5] scale %s zero -5 = prelu a, b\noutput y\n",
                     scales[s]);
            mcu_batch_add(&batch, graph_of(batch.ctx, text), machines[m]);
            CHECK(mcu_calls(&batch, batch.count - 1, "mur_add_product("));
        }
    mcu_batch_run(&batch, 8, 0);
}

/* words of four bytes and what is left of rows and columns, with loops around and between them */
static void transposes_of_bytes_have_the_bits_of_ref(void **state)
{
    static const struct {
        const char *x, *perm, *y;
    } turns[] = {
        { "9, 14", "1, 0", "14, 9" },
        { "2, 7, 11, 5", "0, 3, 1, 2", "2, 5, 7, 11" },
        { "2, 5, 7, 11", "0, 2, 3, 1", "2, 7, 11, 5" },
        { "4, 6, 3, 8", "3, 2, 0, 1", "8, 3, 4, 6" },
        { "5, 4, 6, 7", "3, 1, 2, 0", "7, 4, 6, 5" },
    };
    mcu_batch batch = mcu_batch_new();

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(turns); i++) {
        char text[512];

        snprintf(text, sizeof(text),
                 "graph test\ntensor a = input i8 [%s] scale 0.05 zero 3\n"
                 "node y i8 [%s] scale 0.05 zero 3 = transpose a perm=[%s]\noutput y\n",
                 turns[i].x, turns[i].y, turns[i].perm);
        mcu_batch_add(&batch, graph_of(batch.ctx, text), "stm32f405");
        CHECK(mcu_calls(&batch, batch.count - 1, "mur_turn_bytes("));
    }
    mcu_batch_run(&batch, 1, 0);
}

/* and not of few elements, which a loop makes in less flash */
static void functions_of_one_tensor_are_tables(void **state)
{
    static const char *const nodes[] = { "relu a",   "clip a, b, c", "prelu a, b", "mul a, b",
                                         "add a, b", "sub a, b",     "div a, b",   "max a, b" };
    mcu_batch batch = mcu_batch_new();

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(nodes); i++)
        for (int count = 8; count <= 800; count += 792) {
            char text[512];

            snprintf(text, sizeof(text),
                     "graph test\ntensor a = input i8 [%d] scale 0.05 zero 3\n"
                     "tensor b = const i8 [1] scale 0.031 zero -7 values -21\n"
                     "tensor c = const i8 [1] scale 0.031 zero -7 values 90\n"
                     "node y i8 [%d] scale 0.05 zero 3 = %s\noutput y\n",
                     count, count, nodes[i]);
            mcu_batch_add(&batch, graph_of(batch.ctx, text), "stm32f405");
            CHECK(mcu_calls(&batch, batch.count - 1, "_table_s8") == (count == 800));
        }
    mcu_batch_run(&batch, 1, 0);
}

/* channels, window, strides, padding; the output's extents */
static const struct {
    int channels, kernel[2], strides[2], pads[2], out[2];
    bool averages_in_kernel, greatest_in_kernel;
} pools[] = {
    { 3, { 1, 2 }, { 1, 2 }, { 0, 0 }, { 9, 4 }, false, false },
    { 1, { 3, 3 }, { 2, 2 }, { 0, 0 }, { 4, 4 }, false, false },
    { 5, { 2, 2 }, { 2, 2 }, { 0, 0 }, { 4, 4 }, false, true },
    { 8, { 3, 1 }, { 2, 2 }, { 0, 0 }, { 4, 5 }, false, true },
    { 2, { 2, 2 }, { 2, 1 }, { 0, 1 }, { 4, 10 }, false, false },
    { 6, { 1, 1 }, { 2, 2 }, { 0, 0 }, { 5, 5 }, false, true },
    { 4, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 9, 9 }, true, true },
};

static void pools_of_few_taps_or_channels_have_the_bits_of_ref(void **state)
{
    static const char *const machines[] = { "host", "stm32f405", "rv32" };
    static const char *const operators[] = { "average_pool", "max_pool" };
    mcu_batch batch = mcu_batch_new();

    (void)state;
    for (size_t m = 0; m < MUC_COUNT(machines); m++)
        for (size_t i = 0; i < MUC_COUNT(pools); i++)
            for (size_t o = 0; o < MUC_COUNT(operators); o++) {
                char text[512];

                snprintf(text, sizeof(text),
                         "graph test\ntensor a = input i8 [1, 9, 9, %d] scale 0.05 zero 3\n"
                         "node y i8 [1, %d, %d, %d] scale 0.05 zero 3 = %s a kernel=[%d, %d] "
                         "strides=[%d, %d] pads=[%d, %d, %d, %d] channels_last=1\noutput y\n",
                         pools[i].channels, pools[i].out[0], pools[i].out[1], pools[i].channels,
                         operators[o], pools[i].kernel[0], pools[i].kernel[1], pools[i].strides[0],
                         pools[i].strides[1], pools[i].pads[0], pools[i].pads[1], pools[i].pads[0],
                         pools[i].pads[1]);
                mcu_batch_add(&batch, graph_of(batch.ctx, text), machines[m]);
                CHECK_EQ(mcu_calls(&batch, batch.count - 1, "_pool_s8"),
                         o ? pools[i].greatest_in_kernel : pools[i].averages_in_kernel);
            }
    mcu_batch_run(&batch, 1, 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_give_the_bits_of_all_pairs),
        cmocka_unit_test(factors_that_are_too_great_are_none),
        cmocka_unit_test(sums_of_any_shapes_have_the_bits_of_ref),
        cmocka_unit_test(sums_and_quotients_of_round_scales_have_the_bits_of_ref),
        cmocka_unit_test(extremes_of_two_scales_have_the_bits_of_ref),
        cmocka_unit_test(slopes_of_channels_have_the_bits_of_ref),
        cmocka_unit_test(transposes_of_bytes_have_the_bits_of_ref),
        cmocka_unit_test(functions_of_one_tensor_are_tables),
        cmocka_unit_test(pools_of_few_taps_or_channels_have_the_bits_of_ref),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_dot.c - every path of the float32 products against the one order of sums, written naively.
 */
#include "check.h"

#include "base/half.h"
#include "chance.h"
#include "ref/kernels.h"

enum { MOST_ROWS = 9, MOST_COLUMNS = 21, MOST_K = 512 };

/* kernels.h: eight interleaved sums added as a tree, then the tail */
static float naive_dot(const float *a, const float *b, size_t n)
{
    volatile float s[8] = { 0 }, sum;
    size_t whole = n / 8 * 8;

    for (size_t i = 0; i < whole; i++) {
        volatile float product = a[i] * b[i];

        s[i % 8] += product;
    }
    for (int i = 0; i < 4; i++)
        s[i] += s[i + 4];
    sum = s[0] + s[2];
    s[1] += s[3];
    sum += s[1];
    for (size_t i = whole; i < n; i++) {
        volatile float product = a[i] * b[i];

        sum += product;
    }
    return sum;
}

/* count random numbers as the type has them, and the same as float32 */
static void fill(muc_dtype dtype, size_t count, uint8_t *data, float *wide)
{
    for (size_t i = 0; i < count; i++) {
        float x = (float)random_gaussian();
        uint32_t bits = muc_f32_bits(x);
        uint16_t half = dtype == MUC_F16 ? muc_f16_of_f32(x) : muc_bf16_of_f32(x);

        if (dtype == MUC_F32)
            memcpy(data + 4 * i, &bits, 4);
        else
            memcpy(data + 2 * i, &half, 2);
        wide[i] = dtype == MUC_F32    ? x
                  : dtype == MUC_BF16 ? muc_f32_of_bf16(half)
                                      : muc_f32_of_f16(half);
    }
}

static void check_product(muc_dtype dtype, size_t rows, size_t columns, size_t k)
{
    static float x[MOST_ROWS * MOST_K], wide[MOST_COLUMNS * MOST_K], out[MOST_ROWS * MOST_COLUMNS];
    static float scratch[32 * MOST_K], again[MOST_ROWS * MOST_COLUMNS];
    static uint8_t room[4 * MOST_COLUMNS * MOST_K + 8];
    uint8_t *data = room + (dtype == MUC_F32 ? 4 : 2) * (random_u32() % 2);
    muc_ref_value w = { .dtype = dtype, .rows = columns, .columns = k, .read = data };
    size_t cut = columns / 3;

    for (size_t i = 0; i < rows * k; i++)
        x[i] = (float)random_gaussian();
    fill(dtype, columns * k, data, wide);
    CHECK(muc_ref_panel(&w) <= MUC_COUNT(scratch));
    muc_ref_linear(x, rows, &w, 0, cut, scratch, out, columns);
    muc_ref_linear(x, rows, &w, cut, columns, scratch, out, columns);
    muc_ref_matmul(x, rows, wide, k, columns, k, again, columns);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) {
            float expected = naive_dot(x + r * k, wide + c * k, k);

            CHECK_EQ(muc_f32_bits(out[r * columns + c]), muc_f32_bits(expected));
            CHECK_EQ(muc_f32_bits(again[r * columns + c]), muc_f32_bits(expected));
        }
}

static void products_of_all_shapes_and_types_are_the_naive_sums(void **state)
{
    static const muc_dtype types[] = { MUC_F32, MUC_BF16, MUC_F16 };

    (void)state;
    for (size_t rows = 1; rows <= MOST_ROWS; rows++)
        for (size_t columns = 1; columns <= MOST_COLUMNS; columns++)
            for (size_t t = 0; t < MUC_COUNT(types); t++) {
                check_product(types[t], rows, columns, 1 + random_u32() % MOST_K);
                check_product(types[t], rows, columns, 8 * (1 + random_u32() % (MOST_K / 8)));
            }
}

static void a_weighted_sum_adds_row_after_row(void **state)
{
    enum { MOST = 150, ROWS = 7 };
    float weights[ROWS], rows[ROWS * MOST], out[MOST];

    (void)state;
    for (size_t columns = 1; columns < MOST; columns++) {
        for (size_t i = 0; i < ROWS; i++)
            weights[i] = (float)random_gaussian();
        for (size_t i = 0; i < ROWS * MOST; i++)
            rows[i] = (float)random_gaussian();
        muc_ref_weighted_sum(weights, rows, MOST, ROWS, columns, out);
        for (size_t c = 0; c < columns; c++) {
            volatile float sum = 0;

            for (size_t r = 0; r < ROWS; r++) {
                volatile float product = weights[r] * rows[r * MOST + c];

                sum += product;
            }
            CHECK_EQ(muc_f32_bits(out[c]), muc_f32_bits(sum));
        }
    }
}

static void halves_widen_in_groups_as_they_do_alone(void **state)
{
    enum { ALL = 65536 };
    static uint16_t halves[ALL];
    static float wide[ALL];

    (void)state;
    for (uint32_t i = 0; i < ALL; i++)
        halves[i] = (uint16_t)i;
    for (int t = 0; t < 2; t++) {
        muc_dtype dtype = t ? MUC_F16 : MUC_BF16;

        CHECK(muc_dtype_to_f32(dtype, (const uint8_t *)halves, 3, ALL - 3, wide + 3));
        for (uint32_t i = 3; i < ALL; i++) {
            float alone = t ? muc_f32_of_f16(halves[i]) : muc_f32_of_bf16(halves[i]);

            CHECK_EQ(muc_f32_bits(wide[i]), muc_f32_bits(alone));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_all_shapes_and_types_are_the_naive_sums),
        cmocka_unit_test(a_weighted_sum_adds_row_after_row),
        cmocka_unit_test(halves_widen_in_groups_as_they_do_alone),
    };

    return cmocka_run_group_tests_name("dot", tests, NULL, NULL);
}

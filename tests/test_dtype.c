/* The table of element types: names find their rows, shapes multiply out or overflow. */
#include "check.h"
#include "graph/dtype.h"

static void every_name_finds_its_row(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MUC_DTYPE_COUNT; i++) {
        muc_dtype found;

        CHECK(muc_dtype_find(muc_dtype_get((muc_dtype)i)->name, &found));
        CHECK_EQ(found, i);
    }
    CHECK(!muc_dtype_find("F32", &(muc_dtype){ 0 }));
}

static void shapes_multiply_out(void **state)
{
    const uint64_t dims[3] = { 2, 3, 64 };
    uint64_t elements, bytes;

    (void)state;
    CHECK(muc_dtype_measure(MUC_BF16, 3, dims, &elements, &bytes));
    CHECK_EQ(elements, 384);
    CHECK_EQ(bytes, 768);
    CHECK(muc_dtype_measure(MUC_Q8_0, 3, dims, &elements, &bytes));
    CHECK_EQ(bytes, 12 * 34);
    CHECK(muc_dtype_measure(MUC_F32, 0, dims, &elements, &bytes));
    CHECK_EQ(bytes, 4);
}

static void overflow_and_torn_blocks_are_refused(void **state)
{
    const uint64_t huge[2] = { UINT64_C(1) << 32, UINT64_C(1) << 32 };
    const uint64_t wide[1] = { UINT64_C(1) << 62 };
    const uint64_t torn[2] = { 32, 33 };
    uint64_t elements, bytes;

    (void)state;
    CHECK(!muc_dtype_measure(MUC_I8, 2, huge, &elements, &bytes));
    CHECK(!muc_dtype_measure(MUC_F32, 1, wide, &elements, &bytes));
    CHECK(!muc_dtype_measure(MUC_Q4_0, 2, torn, &elements, &bytes));
    CHECK(!muc_dtype_measure(MUC_Q4_0, 0, torn, &elements, &bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_finds_its_row),
        cmocka_unit_test(shapes_multiply_out),
        cmocka_unit_test(overflow_and_torn_blocks_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

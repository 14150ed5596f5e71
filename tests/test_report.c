#include "check.h"

#include <jansson.h>

#include "report/report_builder.h"

static muc_context *ctx;

static muc_report *example(void)
{
    muc_report *report;

    CHECK_OK(ctx, muc_report_new(ctx, &report));
    muc_report_add_text(report, "file", "%s", "a \"b\".utp");
    muc_report_add_real(report, "bits_per_weight", 4.75);
    muc_report_begin_group(report, "self_check");
    muc_report_add_count(report, "positions", 8);
    muc_report_add_bool(report, "exact", true);
    muc_report_end(report);
    muc_report_begin_table(report, "memory");
    for (unsigned i = 0; i < 2; i++) {
        muc_report_begin_row(report);
        muc_report_add_text(report, "name", i ? "GB" : "flash");
        muc_report_add_count(report, "bytes", i ? 7 : 123456);
        if (i == 0)
            muc_report_add_text(report, "use", "3 %%");
        muc_report_end(report);
    }
    muc_report_end(report);
    return report;
}

static void the_text_form_aligns_values_and_tables(void **state)
{
    muc_report *report = example();
    char *text;

    (void)state;
    CHECK_OK(ctx, muc_report_as_text(ctx, report, &text));
    assert_string_equal(text, "file             a \"b\".utp\n"
                              "bits per weight  4.75\n"
                              "\n"
                              "self check:\n"
                              "positions  8\n"
                              "exact      yes\n"
                              "\n"
                              "memory:\n"
                              "name    bytes  use\n"
                              "flash  123456  3 %\n"
                              "GB          7  -\n");
    free(text);
    muc_report_free(report);
}

static void the_json_form_is_json_with_the_same_values(void **state)
{
    muc_report *report = example();
    json_t *root, *rows;
    char *text;

    (void)state;
    CHECK_OK(ctx, muc_report_as_json(ctx, report, &text));
    root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    CHECK(root);
    assert_string_equal(json_string_value(json_object_get(root, "file")), "a \"b\".utp");
    rows = json_object_get(root, "memory");
    CHECK_EQ(json_array_size(rows), 2);
    CHECK_EQ(json_integer_value(json_object_get(json_array_get(rows, 1), "bytes")), 7);
    json_decref(root);
    free(text);
    muc_report_free(report);
}

static void values_are_found_by_path(void **state)
{
    muc_report *report = example();
    const char *string;
    double number;

    (void)state;
    CHECK(muc_report_number(report, "self_check.positions", &number));
    CHECK_EQ((int)number, 8);
    CHECK(muc_report_string(report, "file", &string));
    CHECK(!muc_report_number(report, "file", &number));
    CHECK(!muc_report_number(report, "self_check.nothing", &number));
    CHECK(!muc_report_string(report, "memory", &string));
    muc_report_free(report);
}

static void text_that_is_not_utf8_is_shown_all_the_same(void **state)
{
    muc_report *report;
    const char *string;

    (void)state;
    CHECK_OK(ctx, muc_report_new(ctx, &report));
    muc_report_add_text(report, "file", "a\xff%s", "b");
    muc_report_add_real(report, "none", 0.0 / 0.0 * 1.0);
    CHECK_OK(ctx, muc_report_status(ctx, report));
    CHECK(muc_report_string(report, "file", &string));
    assert_string_equal(string, "a\\xffb");
    muc_report_free(report);
}

static void failed_allocations_are_told(void **state)
{
    (void)state;
    for (long k = 0; k < 2; k++) {
        muc_report *report = NULL;

        muc_alloc_fail_after(k);
        if (muc_report_new(ctx, &report) == MUC_OK) {
            muc_report_add_text(report, "file", "x");
            CHECK_EQ(muc_report_status(ctx, report), MUC_NOMEM);
        }
        muc_alloc_fail_after(-1);
        muc_error_clear(ctx);
        muc_report_free(report);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_form_aligns_values_and_tables),
        cmocka_unit_test(the_json_form_is_json_with_the_same_values),
        cmocka_unit_test(values_are_found_by_path),
        cmocka_unit_test(text_that_is_not_utf8_is_shown_all_the_same),
        cmocka_unit_test(failed_allocations_are_told),
    };
    int failed;

    ctx = muc_context_new(1);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    muc_context_free(ctx);
    return failed;
}

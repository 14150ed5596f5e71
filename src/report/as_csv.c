/* as_csv.c - one table of a report as comma-separated values (RFC 4180, but lines end as Unix ends
 * them). */
#include <string.h>

#include "base/choice.h"
#include "report/tree.h"
#include "base/locale.h"

/* Numbers are as exact as in JSON; a value that is not there is an empty field. */
static void print_value(muc_text *text, const json_t *value)
{
    if (json_is_string(value))
        muc_text_add_csv(text, json_string_value(value));
    else if (json_is_real(value))
        muc_text_add(text, "%.17g", json_real_value(value));
    else if (value && !json_is_null(value))
        muc_report_print_scalar(text, value);
}

static void print_rows(muc_text *text, const muc_report *report, const char *table)
{
    muc_report_column columns[MUC_REPORT_MAX_COLUMNS];
    size_t count = muc_report_columns(report, table, columns), index;
    json_t *row;

    for (size_t c = 0; c < count; c++) {
        muc_text_add(text, c ? "," : "");
        muc_text_add_csv(text, columns[c].key);
    }
    muc_text_add(text, "\n");
    json_array_foreach(json_object_get(report->open[0], table), index, row)
    {
        for (size_t c = 0; c < count; c++) {
            muc_text_add(text, c ? "," : "");
            print_value(text, json_object_get(row, columns[c].key));
        }
        muc_text_add(text, "\n");
    }
}

/* the name of the report's first table, or NULL */
static const char *first_table(const muc_report *report)
{
    const char *key;
    json_t *value;

    json_object_foreach(report->open[0], key, value)
    {
        if (json_is_array(value))
            return key;
    }
    return NULL;
}

static muc_status no_table(muc_context *ctx, const muc_report *report, const char *wanted)
{
    muc_choice choice;
    const char *key;
    json_t *value;

    muc_choice_begin(&choice, wanted, strlen(wanted));
    json_object_foreach(report->open[0], key, value)
    {
        if (json_is_array(value))
            muc_choice_add(&choice, key);
    }
    return muc_choice_refuse(ctx, &choice, MUC_USAGE, "report", "table");
}

muc_status muc_report_as_csv(muc_context *ctx, const muc_report *report, const char *table,
                             char **out)
{
    MUC_IN_C_LOCALE;
    const char *name = table ? table : first_table(report);
    muc_text text = { 0 };

    MUC_TRY(muc_report_status(ctx, report));
    if (!name || !json_is_array(json_object_get(report->open[0], name)))
        return no_table(ctx, report, name ? name : "");
    print_rows(&text, report, name);
    return muc_report_take_text(ctx, &text, out);
}

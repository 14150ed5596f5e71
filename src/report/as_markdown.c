/* as_markdown.c - a report as tables of Markdown: one of the values, one of each table. */
#include <string.h>

#include "base/locale.h"
#include "report/tree.h"

/* a scalar, whose bars would end a cell */
static void print_cell(muc_text *text, const json_t *value)
{
    muc_text cell = { 0 };

    muc_report_print_scalar(&cell, value);
    for (size_t i = 0; i < cell.size; i++) {
        if (cell.data[i] == '|')
            muc_text_add(text, "\\");
        muc_text_add_bytes(text, cell.data + i, 1);
    }
    text->failed |= cell.failed;
    muc_text_free(&cell);
}

static void print_table(muc_text *text, const muc_report *report, const char *key)
{
    muc_report_column columns[MUC_REPORT_MAX_COLUMNS];
    const json_t *rows = json_object_get(report->open[0], key);
    size_t count = muc_report_columns(report, key, columns), index;
    json_t *row;

    for (size_t c = 0; c < count; c++) {
        muc_text_add(text, "| ");
        muc_report_print_key(text, columns[c].key);
        muc_text_add(text, " ");
    }
    muc_text_add(text, "|\n");
    for (size_t c = 0; c < count; c++)
        muc_text_add(text, muc_report_is_numeric(rows, columns[c].key) ? "| ---: " : "| --- ");
    muc_text_add(text, "|\n");
    json_array_foreach((json_t *)rows, index, row)
    {
        for (size_t c = 0; c < count; c++) {
            muc_text_add(text, "| ");
            print_cell(text, json_object_get(row, columns[c].key));
            muc_text_add(text, " ");
        }
        muc_text_add(text, "|\n");
    }
}

/* values of an object, those of its groups with the groups' names before them */
static void print_values(muc_text *text, const json_t *object, const char *group)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)object, key, value)
    {
        if (json_is_object(value))
            print_values(text, value, key);
        if (json_is_object(value) || json_is_array(value))
            continue;
        muc_text_add(text, "| ");
        if (group)
            muc_report_print_key(text, group);
        muc_text_add(text, group ? ": " : "");
        muc_report_print_key(text, key);
        muc_text_add(text, " | ");
        print_cell(text, value);
        muc_text_add(text, " |\n");
    }
}

muc_status muc_report_as_markdown(muc_context *ctx, const muc_report *report, char **out)
{
    MUC_IN_C_LOCALE;

    const json_t *root = report->open[0];
    muc_text text = { 0 };
    const char *key;
    json_t *value;

    muc_text_add(&text, "| key | value |\n| --- | --- |\n");
    print_values(&text, root, NULL);
    json_object_foreach((json_t *)root, key, value)
    {
        if (!json_is_array(value) || json_array_size(value) == 0)
            continue;
        muc_text_add(&text, "\n");
        print_table(&text, report, key);
    }
    return muc_report_take_text(ctx, &text, out);
}

/* as_text.c - a report for a terminal: aligned columns, tables below them. */
#include <string.h>

#include "report/tree.h"
#include "base/locale.h"

typedef struct text_column {
    const char *key;
    size_t width; /* characters */
    bool numeric;
} text_column;

static void pad_to(muc_text *text, size_t start, size_t width)
{
    size_t used = text->size - start;

    if (used < width)
        muc_text_add(text, "%*s", (int)(width - used), "");
}

/* characters, not bytes: a continuation byte of UTF-8 takes no column */
static size_t columns_of(const char *bytes, size_t size)
{
    size_t columns = 0;

    for (size_t i = 0; i < size; i++)
        columns += ((unsigned char)bytes[i] & 0xc0) != 0x80;
    return columns;
}

static size_t scalar_width(const json_t *value)
{
    muc_text text = { 0 };
    size_t width;

    muc_report_print_scalar(&text, value);
    width = text.data ? columns_of(text.data, text.size) : 0;
    muc_text_free(&text);
    return width;
}

/* Numbers to the right, all else to the left, two spaces between columns, none at line ends. */
static void print_cell(muc_text *text, const json_t *value, const text_column *column, bool last)
{
    size_t own = scalar_width(value), fill = column->width > own ? column->width - own : 0;

    if (column->numeric)
        muc_text_add(text, "%*s", (int)fill, "");
    muc_report_print_scalar(text, value);
    if (!column->numeric && !last)
        muc_text_add(text, "%*s", (int)fill, "");
    muc_text_add(text, last ? "\n" : "  ");
}

static void print_head(muc_text *text, const text_column *column, bool last)
{
    size_t start = text->size;

    if (column->numeric)
        muc_text_add(text, "%*s", (int)(column->width - strlen(column->key)), "");
    muc_report_print_key(text, column->key);
    if (last)
        muc_text_add(text, "\n");
    else
        pad_to(text, start, column->width + 2);
}

static text_column measure_column(const json_t *rows, const char *key)
{
    text_column column = { key, strlen(key), muc_report_is_numeric(rows, key) };
    json_t *row;
    size_t index;

    json_array_foreach((json_t *)rows, index, row)
    {
        size_t width = scalar_width(json_object_get(row, key));

        column.width = width > column.width ? width : column.width;
    }
    return column;
}

static void print_table(muc_text *text, const muc_report *report, const char *key)
{
    const json_t *rows = json_object_get(report->open[0], key);
    muc_report_column named[MUC_REPORT_MAX_COLUMNS];
    text_column columns[MUC_REPORT_MAX_COLUMNS];
    size_t count = muc_report_columns(report, key, named), index;
    json_t *row;

    for (size_t c = 0; c < count; c++) {
        columns[c] = measure_column(rows, named[c].key);
        print_head(text, &columns[c], c + 1 == count);
    }
    json_array_foreach((json_t *)rows, index, row)
    {
        for (size_t c = 0; c < count; c++)
            print_cell(text, json_object_get(row, columns[c].key), &columns[c], c + 1 == count);
    }
}

static void print_scalars(muc_text *text, const json_t *object)
{
    size_t width = 0;
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)object, key, value)
    {
        if (!json_is_object(value) && !json_is_array(value) && strlen(key) > width)
            width = strlen(key);
    }
    json_object_foreach((json_t *)object, key, value)
    {
        size_t start = text->size;

        if (json_is_object(value) || json_is_array(value))
            continue;
        muc_report_print_key(text, key);
        pad_to(text, start, width + 2);
        muc_report_print_scalar(text, value);
        muc_text_add(text, "\n");
    }
}

static void print_title(muc_text *text, const char *key)
{
    if (text->size)
        muc_text_add(text, "\n");
    muc_report_print_key(text, key);
    muc_text_add(text, ":\n");
}

muc_status muc_report_as_text(muc_context *ctx, const muc_report *report, char **out)
{
    MUC_IN_C_LOCALE;
    const json_t *root = report->open[0];
    muc_text text = { 0 };
    const char *key;
    json_t *value;

    MUC_TRY(muc_report_status(ctx, report));
    print_scalars(&text, root);
    json_object_foreach((json_t *)root, key, value)
    {
        if (json_is_object(value)) {
            print_title(&text, key);
            print_scalars(&text, value);
        } else if (json_is_array(value)) {
            print_title(&text, key);
            if (json_object_get(report->details, key))
                muc_text_add(&text, "%zu rows: --format csv --table %s\n", json_array_size(value),
                             key);
            else
                print_table(&text, report, key);
        }
    }
    return muc_report_take_text(ctx, &text, out);
}

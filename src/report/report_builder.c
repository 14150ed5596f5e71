/* report_builder.c - a report is a JSON tree, of which the forms for people are printed too. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/locale.h"
#include "report/tree.h"

muc_status muc_report_new(muc_context *ctx, muc_report **out)
{
    muc_report *report;

    MUC_TRY(MUC_NEW_ARRAY(ctx, "report", 1, &report));
    report->open[0] = json_object();
    report->columns = json_object();
    report->figures = json_array();
    report->details = json_object();
    report->failed = !report->open[0] || !report->columns || !report->figures || !report->details;
    *out = report;
    return MUC_OK;
}

void muc_report_free(muc_report *report)
{
    if (!report)
        return;
    json_decref(report->open[0]);
    json_decref(report->columns);
    json_decref(report->figures);
    json_decref(report->details);
    free(report);
}

muc_status muc_report_status(muc_context *ctx, const muc_report *report)
{
    return report->failed ? muc_fail_nomem(ctx, "report", sizeof(json_t)) : MUC_OK;
}

/* takes value over */
static void add(muc_report *report, const char *key, json_t *value)
{
    json_t *parent = report->open[report->depth];
    int failed = json_is_array(parent) ? json_array_append_new(parent, value)
                                       : json_object_set_new(parent, key, value);

    if (failed)
        report->failed = true;
}

json_t *muc_report_string_of(muc_text *text)
{
    json_t *string = json_stringn(text->data ? text->data : "", text->size);
    muc_text whole = { 0 };

    if (string || !text->data)
        return string;
    muc_text_add_utf8(&whole, text->data);
    string = whole.failed ? NULL : json_stringn(whole.data, whole.size);
    muc_text_free(&whole);
    return string;
}

void muc_report_add_text(muc_report *report, const char *key, const char *format, ...)
{
    muc_text text = { 0 };
    json_t *string;
    va_list args;

    va_start(args, format);
    muc_text_add_args(&text, format, args);
    va_end(args);
    if (text.failed)
        report->failed = true;
    string = muc_report_string_of(&text);
    muc_text_free(&text);
    add(report, key, string);
}

void muc_report_add_json(muc_report *report, const char *key, const json_t *value)
{
    if (json_is_integer(value))
        muc_report_add_integer(report, key, json_integer_value(value));
    else if (json_is_real(value))
        muc_report_add_real(report, key, json_real_value(value));
    else if (json_is_string(value))
        muc_report_add_text(report, key, "%s", json_string_value(value));
}

void muc_report_add_count(muc_report *report, const char *key, uint64_t value)
{
    add(report, key, json_integer((json_int_t)value));
}

void muc_report_add_integer(muc_report *report, const char *key, int64_t value)
{
    add(report, key, json_integer(value));
}

void muc_report_add_real(muc_report *report, const char *key, double value)
{
    /* JSON has no number for these */
    if (value != value || value - value != 0)
        add(report, key, json_null());
    else
        add(report, key, json_real(value));
}

void muc_report_add_bits_per_weight(muc_report *report, uint64_t bytes, uint64_t weights)
{
    muc_report_add_real(report, "bits_per_weight", 8.0 * (double)bytes / (double)weights);
}

void muc_report_add_bool(muc_report *report, const char *key, bool value)
{
    add(report, key, json_boolean(value));
}

static void begin(muc_report *report, const char *key, json_t *container)
{
    add(report, key, container);
    if (report->failed || report->depth + 1 == MUC_REPORT_MAX_DEPTH) {
        report->failed = true;
        return;
    }
    report->open[++report->depth] = container;
}

void muc_report_begin_group(muc_report *report, const char *key)
{
    begin(report, key, json_object());
}

void muc_report_begin_table(muc_report *report, const char *key)
{
    begin(report, key, json_array());
}

void muc_report_begin_columns(muc_report *report, const char *key, const muc_report_column *columns)
{
    json_t *list = json_array();

    for (; columns->key; columns++) {
        json_t *item = json_pack("{s:s, s:s*, s:s*}", "key", columns->key, "unit", columns->unit,
                                 "meaning", columns->meaning);

        if (json_array_append_new(list, item))
            report->failed = true;
    }
    if (json_object_set_new(report->columns, key, list))
        report->failed = true;
    muc_report_begin_table(report, key);
}

void muc_report_mark_detail(muc_report *report, const char *key)
{
    if (json_object_set_new(report->details, key, json_true()))
        report->failed = true;
}

void muc_report_begin_row(muc_report *report)
{
    begin(report, NULL, json_object());
}

void muc_report_end(muc_report *report)
{
    if (report->depth > 0)
        report->depth--;
}

static const json_t *find(const muc_report *report, const char *path)
{
    const json_t *at = report->open[0];

    while (at && *path) {
        size_t length = strcspn(path, ".");
        char key[64];

        if (length >= sizeof(key))
            return NULL;
        memcpy(key, path, length);
        key[length] = '\0';
        at = json_object_get(at, key);
        path += length + (path[length] == '.');
    }
    return at;
}

bool muc_report_number(const muc_report *report, const char *path, double *out)
{
    MUC_IN_C_LOCALE;
    const json_t *value = find(report, path);

    if (!json_is_number(value))
        return false;
    *out = json_number_value(value);
    return true;
}

bool muc_report_string(const muc_report *report, const char *path, const char **out)
{
    MUC_IN_C_LOCALE;

    *out = json_string_value(find(report, path));
    return *out != NULL;
}

muc_status muc_report_save(muc_context *ctx, const char *path, const char *form)
{
    MUC_IN_C_LOCALE;

    return muc_file_write(ctx, path, form, strlen(form));
}

muc_status muc_report_as_json(muc_context *ctx, const muc_report *report, char **out)
{
    MUC_IN_C_LOCALE;
    muc_text text = { 0 };
    char *ascii;

    MUC_TRY(muc_report_status(ctx, report));
    ascii = json_dumps(report->open[0], JSON_INDENT(2) | JSON_ENSURE_ASCII);
    for (const char *at = ascii; at && *at; at++)
        muc_text_add(&text, *at == 0x7f ? "\\u007f" : "%c", *at); /* DEL is ASCII to jansson */
    text.failed |= !ascii;
    free(ascii);
    return muc_report_take_text(ctx, &text, out);
}

/* ---- tables ---- */

static bool any_row_has(const json_t *table, const char *column)
{
    json_t *row;
    size_t index;

    json_array_foreach((json_t *)table, index, row)
    {
        if (json_object_get(row, column))
            return true;
    }
    return false;
}

static size_t described_columns(const json_t *table, const json_t *list,
                                muc_report_column columns[MUC_REPORT_MAX_COLUMNS])
{
    size_t count = 0, index;
    json_t *item;

    json_array_foreach((json_t *)list, index, item)
    {
        const char *key = json_string_value(json_object_get(item, "key"));

        if (count < MUC_REPORT_MAX_COLUMNS && any_row_has(table, key))
            columns[count++] = (muc_report_column){
                .key = key,
                .unit = json_string_value(json_object_get(item, "unit")),
                .meaning = json_string_value(json_object_get(item, "meaning")),
            };
    }
    return count;
}

size_t muc_report_columns(const muc_report *report, const char *table,
                          muc_report_column columns[MUC_REPORT_MAX_COLUMNS])
{
    const json_t *rows = json_object_get(report->open[0], table);
    const json_t *list = json_object_get(report->columns, table);
    size_t count = 0;
    const char *key;
    json_t *value;

    if (list)
        return described_columns(rows, list, columns);
    json_object_foreach(json_array_get(rows, 0), key, value)
    {
        if (count < MUC_REPORT_MAX_COLUMNS)
            columns[count++] = (muc_report_column){ .key = key };
    }
    return count;
}

bool muc_report_is_numeric(const json_t *table, const char *column)
{
    json_t *row;
    size_t index;

    json_array_foreach((json_t *)table, index, row)
    {
        const json_t *value = json_object_get(row, column);

        if (value && !json_is_null(value))
            return json_is_number(value);
    }
    return false;
}

/* ---- printing ---- */

void muc_report_print_scalar(muc_text *text, const json_t *value)
{
    switch (value ? json_typeof(value) : JSON_NULL) {
    case JSON_STRING:
        muc_text_add_visible(text, json_string_value(value));
        break;
    case JSON_INTEGER:
        muc_text_add(text, "%lld", (long long)json_integer_value(value));
        break;
    case JSON_REAL:
        muc_text_add(text, "%.5g", json_real_value(value));
        break;
    case JSON_TRUE:
        muc_text_add(text, "yes");
        break;
    case JSON_FALSE:
        muc_text_add(text, "no");
        break;
    case JSON_NULL:
    case JSON_OBJECT:
    case JSON_ARRAY:
        muc_text_add(text, "-");
        break;
    }
}

void muc_report_print_key(muc_text *text, const char *key)
{
    for (; *key; key++)
        muc_text_add(text, "%c", *key == '_' ? ' ' : *key);
}

muc_status muc_report_take_text(muc_context *ctx, muc_text *text, char **out)
{
    muc_status status;

    muc_text_add_bytes(text, "", 1);
    status = muc_text_status(ctx, text);
    if (status == MUC_OK)
        *out = text->data;
    else
        muc_text_free(text);
    return status;
}

/* report.c - a report is a JSON tree; the text form is laid out from the same tree. */
#include "report/report.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { MAX_DEPTH = 8, MAX_COLUMNS = 16 };

struct muc_report {
    json_t *open[MAX_DEPTH]; /* open[0] is the root; the rest is borrowed from it */
    unsigned depth;          /* index of the innermost open one */
    bool failed;
};

muc_status muc_report_new(muc_context *ctx, muc_report **out)
{
    muc_report *report;

    MUC_TRY(MUC_NEW_ARRAY(ctx, "report", 1, &report));
    report->open[0] = json_object();
    report->failed = !report->open[0];
    *out = report;
    return MUC_OK;
}

void muc_report_free(muc_report *report)
{
    if (!report)
        return;
    json_decref(report->open[0]);
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
    string = json_stringn(text.data ? text.data : "", text.size);
    if (!string && text.data) {
        /* not UTF-8 (a file's name, half a character of a model's text): keep what is ASCII */
        for (size_t i = 0; i < text.size; i++)
            text.data[i] = (unsigned char)text.data[i] < 0x80 ? text.data[i] : '?';
        string = json_stringn(text.data, text.size);
    }
    muc_text_free(&text);
    add(report, key, string);
}

void muc_report_add_count(muc_report *report, const char *key, uint64_t value)
{
    add(report, key, json_integer((json_int_t)value));
}

void muc_report_add_real(muc_report *report, const char *key, double value)
{
    /* JSON has no number for these */
    if (value != value || value - value != 0)
        add(report, key, json_null());
    else
        add(report, key, json_real(value));
}

void muc_report_add_bool(muc_report *report, const char *key, bool value)
{
    add(report, key, json_boolean(value));
}

static void begin(muc_report *report, const char *key, json_t *container)
{
    add(report, key, container);
    if (report->failed || report->depth + 1 == MAX_DEPTH) {
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
    const json_t *value = find(report, path);

    if (!json_is_number(value))
        return false;
    *out = json_number_value(value);
    return true;
}

bool muc_report_string(const muc_report *report, const char *path, const char **out)
{
    *out = json_string_value(find(report, path));
    return *out != NULL;
}

muc_status muc_report_as_json(muc_context *ctx, const muc_report *report, char **out)
{
    MUC_TRY(muc_report_status(ctx, report));
    *out = json_dumps(report->open[0], JSON_INDENT(2) | JSON_ENSURE_ASCII);
    return *out ? MUC_OK : muc_fail_nomem(ctx, "report", 0);
}

/* value may be NULL: a row need not have every column */
static void print_scalar(muc_text *text, const json_t *value)
{
    switch (value ? json_typeof(value) : JSON_NULL) {
    case JSON_STRING:
        muc_text_add(text, "%s", json_string_value(value));
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

static void print_key(muc_text *text, const char *key)
{
    for (; *key; key++)
        muc_text_add(text, "%c", *key == '_' ? ' ' : *key);
}

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

    print_scalar(&text, value);
    width = text.data ? columns_of(text.data, text.size) : 0;
    muc_text_free(&text);
    return width;
}

/* Numbers to the right, all else to the left, two spaces between columns, none at line ends. */
static void print_cell(muc_text *text, const json_t *value, size_t width, bool last)
{
    size_t own = scalar_width(value), fill = width > own ? width - own : 0;

    if (json_is_number(value))
        muc_text_add(text, "%*s", (int)fill, "");
    print_scalar(text, value);
    if (!json_is_number(value) && !last)
        muc_text_add(text, "%*s", (int)fill, "");
    muc_text_add(text, last ? "\n" : "  ");
}

static void print_table(muc_text *text, const json_t *table)
{
    const char *keys[MAX_COLUMNS];
    size_t widths[MAX_COLUMNS], columns = 0, index;
    json_t *row, *value;
    const char *key;

    if (json_array_size(table) == 0)
        return;
    json_object_foreach(json_array_get(table, 0), key, value)
    {
        if (columns < MAX_COLUMNS) {
            widths[columns] = strlen(key);
            keys[columns++] = key;
        }
    }
    json_array_foreach(table, index, row)
    {
        for (size_t c = 0; c < columns; c++) {
            size_t width = scalar_width(json_object_get(row, keys[c]));

            widths[c] = width > widths[c] ? width : widths[c];
        }
    }
    for (size_t c = 0; c < columns; c++) {
        bool number = json_is_number(json_object_get(json_array_get(table, 0), keys[c]));
        size_t start = text->size;

        if (number)
            muc_text_add(text, "%*s", (int)(widths[c] - strlen(keys[c])), "");
        print_key(text, keys[c]);
        if (c + 1 < columns)
            pad_to(text, start, widths[c] + 2);
    }
    muc_text_add(text, "\n");
    json_array_foreach(table, index, row)
    {
        for (size_t c = 0; c < columns; c++)
            print_cell(text, json_object_get(row, keys[c]), widths[c], c + 1 == columns);
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
        print_key(text, key);
        pad_to(text, start, width + 2);
        print_scalar(text, value);
        muc_text_add(text, "\n");
    }
}

static void print_title(muc_text *text, const char *key)
{
    if (text->size)
        muc_text_add(text, "\n");
    print_key(text, key);
    muc_text_add(text, ":\n");
}

muc_status muc_report_as_text(muc_context *ctx, const muc_report *report, char **out)
{
    const json_t *root = report->open[0];
    muc_text text = { 0 };
    const char *key;
    json_t *value;
    muc_status status;

    MUC_TRY(muc_report_status(ctx, report));
    print_scalars(&text, root);
    json_object_foreach((json_t *)root, key, value)
    {
        if (json_is_object(value)) {
            print_title(&text, key);
            print_scalars(&text, value);
        } else if (json_is_array(value)) {
            print_title(&text, key);
            print_table(&text, value);
        }
    }
    muc_text_add_bytes(&text, "", 1);
    status = muc_text_status(ctx, &text);
    if (status == MUC_OK)
        *out = text.data;
    else
        muc_text_free(&text);
    return status;
}

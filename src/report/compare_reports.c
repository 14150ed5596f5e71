/* compare_reports.c - compares two reports figure by figure. */
#include "report/compare_reports.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "report/answers.h"
#include "report/costs.h"
#include "report/memories.h"
#include "report/svg.h"

enum { MOST_SHOWN = 40 }; /* rows of a table in the text form */

muc_status muc_report_read(muc_context *ctx, muc_bytes bytes, muc_report **out)
{
    json_t *json;
    muc_status status;

    MUC_TRY(muc_json_parse(ctx, bytes, 0, &json));
    if (!json_is_object(json)) {
        json_decref(json);
        return muc_fail(ctx, MUC_MALFORMED, bytes.name, 0, "expected a report: an object of JSON");
    }
    status = muc_report_new(ctx, out);
    if (status != MUC_OK) {
        json_decref(json);
        return status;
    }
    json_decref((*out)->open[0]);
    (*out)->open[0] = json;
    return MUC_OK;
}

/* ---- numbers ---- */

static bool has_change(const json_t *a, const json_t *b)
{
    return json_is_number(a) && json_is_number(b) && fabs(json_number_value(a)) > 0;
}

/* b / a - 1, as a share of a */
static double change_of(const json_t *a, const json_t *b)
{
    return (json_number_value(b) - json_number_value(a)) / fabs(json_number_value(a));
}

/* Adds a row for a figure; row NULL: it is the report's own. */
static void add_difference(muc_report *out, const char *row, const char *figure, const json_t *a,
                           const json_t *b)
{
    muc_text words = { 0 };

    muc_report_print_key(&words, figure);
    muc_report_begin_row(out);
    if (row)
        muc_report_add_text(out, "row", "%s", row);
    muc_report_add_text(out, "figure", "%s", words.data ? words.data : "");
    muc_report_add_json(out, "a", a);
    muc_report_add_json(out, "b", b);
    if (has_change(a, b))
        muc_report_add_real(out, "change", change_of(a, b));
    muc_report_end(out);
    muc_text_free(&words);
}

static const muc_report_column columns[] = {
    { "row", NULL, "of the table" },
    { "figure", NULL, "its column" },
    { "a", NULL, "the first report" },
    { "b", NULL, "the second report" },
    { "change", NULL, "from a to b, as a share of a" },
    { NULL, NULL, NULL },
};

static void compare_scalars(muc_report *out, const json_t *a, const json_t *b)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)a, key, value)
    {
        const json_t *other = json_object_get(b, key);

        if (json_is_object(value) && json_is_object(other))
            compare_scalars(out, value, other);
        else if (other && !json_is_object(value) && !json_is_array(value))
            add_difference(out, NULL, key, value, other);
    }
}

/* ---- tables ---- */

/* What a row is called: the layer's name where the table tells what layers cost, else its texts
 * before the first number, or that number. costs: NULL for a table that does not. */
static void add_label(muc_text *text, const json_t *row, const muc_costs *costs)
{
    const char *name = costs ? muc_costs_name(costs, row, 0) : NULL, *key;
    json_t *value;

    if (name && *name) {
        muc_text_add(text, "%.*s", (int)muc_name_heading(name), name);
        return;
    }
    json_object_foreach((json_t *)row, key, value)
    {
        if (json_is_number(value) && text->size == 0)
            muc_text_add(text, "%s ", key);
        else if (!json_is_string(value))
            return;
        else if (text->size)
            muc_text_add(text, ", ");
        muc_report_print_scalar(text, value);
        if (json_is_number(value))
            return;
    }
}

typedef struct table_row {
    char *label; /* owned */
    const json_t *values;
    uint32_t number; /* of the rows with this label, from 1 */
} table_row;

typedef struct table_rows {
    table_row *rows;
    table_row **sorted; /* by label and number */
    size_t count;
} table_rows;

static void free_rows(table_rows *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->rows[i].label);
    free(t->rows);
    free(t->sorted);
}

static int by_label(const void *a, const void *b)
{
    const table_row *x = *(table_row *const *)a, *y = *(table_row *const *)b;
    int order = strcmp(x->label, y->label);

    return order != 0 ? order : (x->number > y->number) - (x->number < y->number);
}

static const table_row *find_row(const table_rows *t, const table_row *like)
{
    table_row **found = bsearch(&like, t->sorted, t->count, sizeof(*t->sorted), by_label);

    return found ? *found : NULL;
}

/* Rows of one label are numbered in their order: first all of the table, then each label's own. */
static void number_rows(table_rows *t)
{
    for (size_t i = 0; i < t->count; i++) {
        t->rows[i].number = (uint32_t)i;
        t->sorted[i] = &t->rows[i];
    }
    qsort(t->sorted, t->count, sizeof(*t->sorted), by_label);
    for (size_t i = 0; i < t->count; i++)
        t->sorted[i]->number = i && strcmp(t->sorted[i - 1]->label, t->sorted[i]->label) == 0
                                   ? t->sorted[i - 1]->number + 1
                                   : 1;
}

static muc_status read_rows(muc_context *ctx, const json_t *table, const muc_costs *costs,
                            table_rows *t)
{
    size_t index, most = json_array_size(table) + 1;
    json_t *row;

    MUC_TRY(MUC_NEW_ARRAY(ctx, "report", most, &t->rows));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "report", most, &t->sorted));
    json_array_foreach((json_t *)table, index, row)
    {
        muc_text label = { 0 };

        add_label(&label, row, costs);
        muc_text_add(&label, "%s", "");
        MUC_TRY(muc_text_status(ctx, &label));
        t->rows[t->count++] = (table_row){ label.data, row, 0 };
    }
    number_rows(t);
    return MUC_OK;
}

/* owned by the caller: the label, with a number where several rows have it */
static muc_text label_of(const table_row *row)
{
    muc_text label = { 0 };

    muc_text_add(&label, "%s", row->label);
    if (row->number > 1)
        muc_text_add(&label, " (%u)", row->number);
    return label;
}

/* the numbers of a row that differ; returns how many */
static size_t compare_row(muc_report *out, const table_row *a, const table_row *b)
{
    muc_text label = label_of(a);
    const char *key;
    json_t *value;
    size_t found = 0;

    json_object_foreach((json_t *)a->values, key, value)
    {
        const json_t *other = json_object_get(b->values, key);

        if (!json_is_number(value) || !json_is_number(other) || json_equal(value, other))
            continue;
        add_difference(out, label.data ? label.data : "", key, value, other);
        found++;
    }
    muc_text_free(&label);
    return found;
}

static muc_status read_both(muc_context *ctx, const json_t *a, const json_t *b,
                            const muc_costs *costs, table_rows *a_rows, table_rows *b_rows)
{
    MUC_TRY(read_rows(ctx, a, costs, a_rows));
    return read_rows(ctx, b, costs, b_rows);
}

static muc_status compare_tables(muc_context *ctx, muc_report *out, const char *key,
                                 const json_t *a, const json_t *b, const muc_costs *costs)
{
    table_rows a_rows = { 0 }, b_rows = { 0 };
    size_t found = 0;
    muc_status status = read_both(ctx, a, b, costs, &a_rows, &b_rows);

    if (status == MUC_OK) {
        muc_report_begin_columns(out, key, columns);
        for (size_t i = 0; i < a_rows.count; i++) {
            const table_row *like = find_row(&b_rows, &a_rows.rows[i]);

            if (like)
                found += compare_row(out, &a_rows.rows[i], like);
        }
        muc_report_end(out);
        if (found > MOST_SHOWN)
            muc_report_mark_detail(out, key);
        if (found == 0)
            json_object_del(out->open[0], key);
    }
    free_rows(&a_rows);
    free_rows(&b_rows);
    return status;
}

static void add_cost(muc_report *out, const table_row *row, double a, double b)
{
    muc_text label = label_of(row);

    muc_report_begin_row(out);
    muc_report_add_text(out, "row", "%s", label.data ? label.data : "");
    muc_report_add_real(out, "a", a);
    muc_report_add_real(out, "b", b);
    if (a > 0)
        muc_report_add_real(out, "change", b / a - 1);
    muc_report_end(out);
    muc_text_free(&label);
}

/* What each layer of both costs, for the bars of the page: also those that do not differ. */
static muc_status compare_costs(muc_context *ctx, muc_report *out, const muc_costs *a,
                                const muc_costs *b)
{
    table_rows a_rows = { 0 }, b_rows = { 0 };
    muc_status status = read_both(ctx, a->rows, b->rows, a, &a_rows, &b_rows);

    if (status == MUC_OK) {
        const muc_report_column costs[] = {
            { "row", NULL, "the layer" },
            { "a", a->unit, "of the first report" },
            { "b", a->unit, "of the second report" },
            { "change", NULL, "from a to b, as a share of a" },
            { NULL, NULL, NULL },
        };

        muc_report_begin_columns(out, "time", costs);
        muc_report_mark_detail(out, "time");
        for (size_t i = 0; i < a_rows.count; i++) {
            const table_row *row = &a_rows.rows[i], *like = find_row(&b_rows, row);

            if (like)
                add_cost(out, row, muc_costs_time(a, row->values), muc_costs_time(b, like->values));
        }
        muc_report_end(out);
        if (json_array_size(json_object_get(out->open[0], "time")) == 0)
            json_object_del(out->open[0], "time");
    }
    free_rows(&a_rows);
    free_rows(&b_rows);
    return status;
}

/* ---- sentences ---- */

#define SAY(out, ...) \
    do { \
        muc_report_begin_row(out); \
        muc_report_add_text((out), "sentence", __VA_ARGS__); \
        muc_report_end(out); \
    } while (0)

static void say_total(muc_report *out, const json_t *a, const json_t *b, const char *key,
                      const char *words)
{
    const json_t *from = json_object_get(a, key), *to = json_object_get(b, key);
    int digits = json_is_integer(from) ? 17 : 5;
    double change;

    if (!has_change(from, to))
        return;
    change = change_of(from, to);
    if (json_equal(from, to))
        SAY(out, "b takes as %s as a.", words + strcspn(words, "/") + 1);
    else
        SAY(out, "b takes %.*g %.*s in place of %.*g: %.3g %% %s.", digits, json_number_value(to),
            (int)strcspn(words, "/"), words, digits, json_number_value(from), fabs(change) * 100,
            change < 0 ? "less" : "more");
}

/* the row of a table whose number differs most */
static void say_largest(muc_report *out, const char *table, const char *figure)
{
    const json_t *most = NULL;
    double largest = 0;
    size_t index;
    json_t *row;

    json_array_foreach(json_object_get(out->open[0], table), index, row)
    {
        double a = json_number_value(json_object_get(row, "a"));
        double b = json_number_value(json_object_get(row, "b"));

        if (strcmp(json_string_value(json_object_get(row, "figure")), figure) == 0 &&
            fabs(b - a) > largest) {
            largest = fabs(b - a);
            most = row;
        }
    }
    if (most)
        SAY(out, "Of %s %s differs most: %.0f %s in place of %.0f.", table,
            json_string_value(json_object_get(most, "row")),
            json_number_value(json_object_get(most, "b")), figure,
            json_number_value(json_object_get(most, "a")));
}

static void add_sentences(muc_report *out, const json_t *a, const json_t *b)
{
    static const muc_report_column sentences[] = { { "sentence", NULL, NULL },
                                                   { NULL, NULL, NULL } };

    muc_report_begin_columns(out, "what_changed", sentences);
    say_total(out, a, b, "seconds", "seconds/long");
    say_total(out, a, b, "millijoules", "mJ/much energy");
    say_total(out, a, b, "modelled_ms", "ms/long");
    say_total(out, a, b, "cycles", "cycles/many cycles");
    say_total(out, a, b, "dram_bytes", "bytes of DRAM/many bytes of DRAM");
    say_total(out, a, b, "instructions", "instructions/many instructions");
    say_total(out, a, b, "arena_bytes", "bytes of arena/large an arena");
    say_total(out, a, b, "flash_bytes", "bytes of flash/many bytes of flash");
    say_largest(out, "stages", "cycles");
    say_largest(out, "layers", "instructions");
    say_largest(out, "layers", "modelled cycles");
    muc_report_end(out);
}

/* ---- answers ---- */

static const struct {
    const char *key, *unit;
} speeds[] = {
    { "seconds", "s" },
    { "modelled_ms", "ms, modelled" },
    { "cycles", "cycles" },
    { "modelled_cycles", "cycles, modelled" },
    { "instructions", "instructions" },
};

static muc_status answer_faster(muc_context *ctx, muc_report *out, const json_t *a, const json_t *b)
{
    muc_text answer = { 0 }, detail = { 0 };
    muc_status status = MUC_OK;
    size_t i = 0;

    while (i < MUC_COUNT(speeds) &&
           !has_change(json_object_get(a, speeds[i].key), json_object_get(b, speeds[i].key)))
        i++;
    if (i < MUC_COUNT(speeds)) {
        double of_a = json_number_value(json_object_get(a, speeds[i].key));
        double of_b = json_number_value(json_object_get(b, speeds[i].key));

        muc_text_add(&detail, "a: %.5g, b: %.5g %s.", of_a, of_b, speeds[i].unit);
        if (!(of_b > 0) || of_a == of_b)
            muc_text_add(&answer, "Both alike");
        else
            muc_text_add(&answer, "%s, %.3g times as fast", of_b < of_a ? "b" : "a",
                         of_b < of_a ? of_a / of_b : of_b / of_a);
        status = muc_text_status(ctx, &answer);
        if (status == MUC_OK)
            status = muc_text_status(ctx, &detail);
        if (status == MUC_OK)
            muc_report_answer(out, "Which is faster?", answer.data, detail.data);
    }
    muc_text_free(&answer);
    muc_text_free(&detail);
    return status;
}

static muc_status answer_fits(muc_context *ctx, muc_report *out, const json_t *a, const json_t *b)
{
    muc_text answer = { 0 }, detail = { 0 };
    muc_status status = MUC_OK;

    if (json_array_size(json_object_get(a, "memory")) &&
        json_array_size(json_object_get(b, "memory"))) {
        const char *of_a, *of_b;

        muc_text_add(&detail, "a: ");
        of_a = muc_report_fit_words(a, &detail);
        muc_text_add(&detail, ". b: ");
        of_b = muc_report_fit_words(b, &detail);
        muc_text_add(&detail, ".");
        if (strcmp(of_a, of_b) == 0)
            muc_text_add(&answer, "%s", of_a);
        else
            muc_text_add(&answer, "a: %s; b: %s", of_a, of_b);
        status = muc_text_status(ctx, &answer);
        if (status == MUC_OK)
            status = muc_text_status(ctx, &detail);
        if (status == MUC_OK)
            muc_report_answer(out, MUC_QUESTION_FIT, answer.data, detail.data);
    }
    muc_text_free(&answer);
    muc_text_free(&detail);
    return status;
}

/* ---- all of it ---- */

static muc_status compare(muc_context *ctx, muc_report *out, const json_t *a, const json_t *b)
{
    muc_costs of_a, of_b;
    bool has_costs = muc_costs_find(a, &of_a) && muc_costs_find(b, &of_b) &&
                     strcmp(of_a.table, of_b.table) == 0 && strcmp(of_a.time, of_b.time) == 0;
    const char *key;
    json_t *value;

    muc_report_begin_columns(out, "figures", columns);
    compare_scalars(out, a, b);
    muc_report_end(out);
    json_object_foreach((json_t *)a, key, value)
    {
        const json_t *other = json_object_get(b, key);
        bool tells_costs = has_costs && strcmp(key, of_a.table) == 0;

        if (json_is_array(value) && json_is_array(other))
            MUC_TRY(compare_tables(ctx, out, key, value, other, tells_costs ? &of_a : NULL));
    }
    if (has_costs)
        MUC_TRY(compare_costs(ctx, out, &of_a, &of_b));
    muc_report_begin_answers(out);
    MUC_TRY(answer_fits(ctx, out, a, b));
    MUC_TRY(answer_faster(ctx, out, a, b));
    muc_report_end(out);
    add_sentences(out, a, b);
    return muc_report_status(ctx, out);
}

muc_status muc_report_compare(muc_context *ctx, const muc_report *a, const char *a_name,
                              const muc_report *b, const char *b_name, muc_report **out)
{
    muc_status status;

    MUC_TRY(muc_report_new(ctx, out));
    muc_report_add_text(*out, "name", "%s and %s", a_name, b_name);
    muc_report_add_text(*out, "a", "%s", a_name);
    muc_report_add_text(*out, "b", "%s", b_name);
    status = compare(ctx, *out, a->open[0], b->open[0]);
    if (status != MUC_OK) {
        muc_report_free(*out);
        *out = NULL;
    }
    return status;
}

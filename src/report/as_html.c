/* as_html.c - a report as one page: answers first, then pictures and tables, nothing from
 * elsewhere. */
#include <string.h>

#include "base/locale.h"
#include "report/page_answers.h"
#include "report/svg.h"
#include <page_text.h> /* made by the build of page/ */

static void add_key(muc_text *text, const char *key)
{
    muc_text words = { 0 };

    muc_report_print_key(&words, key);
    muc_xml_add(text, words.data);
    text->failed = text->failed || words.failed;
    muc_text_free(&words);
}

static void add_value(muc_text *text, const json_t *value)
{
    muc_text plain = { 0 };

    if (json_is_integer(value) && json_integer_value(value) >= 0) {
        muc_xml_add_count(text, (uint64_t)json_integer_value(value));
        return;
    }
    muc_report_print_scalar(&plain, value);
    muc_xml_add(text, plain.data);
    text->failed = text->failed || plain.failed;
    muc_text_free(&plain);
}

/* what the first screen has already */
static bool is_answered(const char *key)
{
    return strcmp(key, "answers") == 0 || strcmp(key, "time") == 0;
}

static bool is_section(const char *key, const json_t *value)
{
    return (json_is_object(value) || json_is_array(value)) && !is_answered(key);
}

static void add_facts(muc_text *text, const json_t *object)
{
    const char *key;
    json_t *value;

    muc_text_add(text, "<table class=\"facts\"><tbody>\n");
    json_object_foreach((json_t *)object, key, value)
    {
        if (json_is_object(value) || json_is_array(value))
            continue;
        muc_text_add(text, "<tr><th scope=\"row\">");
        add_key(text, key);
        muc_text_add(text, json_is_number(value) ? "</th><td class=\"n\">" : "</th><td>");
        add_value(text, value);
        muc_text_add(text, "</td></tr>\n");
    }
    muc_text_add(text, "</tbody></table>\n");
}

static void add_head(muc_text *text, const muc_report_column *column, bool is_numeric)
{
    muc_text_add(text, "<th scope=\"col\"%s", is_numeric ? " class=\"n\"" : "");
    if (column->meaning) {
        muc_text_add(text, " title=\"");
        muc_xml_add(text, column->meaning);
        muc_text_add(text, "\"");
    }
    muc_text_add(text, ">");
    add_key(text, column->key);
    if (column->unit) {
        muc_text_add(text, "<br><span class=\"unit\">");
        muc_xml_add(text, column->unit);
        muc_text_add(text, "</span>");
    }
    muc_text_add(text, "</th>");
}

/* a sentence wraps, a name does not */
static void add_cell(muc_text *text, const json_t *value, bool is_numeric)
{
    enum { SENTENCE = 80 };
    bool is_long = json_is_string(value) && json_string_length(value) > SENTENCE;

    muc_text_add(text, is_numeric ? "<td class=\"n\">" : is_long ? "<td class=\"long\">" : "<td>");
    add_value(text, value);
    muc_text_add(text, "</td>");
}

static void add_table(muc_text *text, const muc_report *report, const char *key)
{
    enum { LONG = 30 };
    muc_report_column columns[MUC_REPORT_MAX_COLUMNS];
    bool is_numeric[MUC_REPORT_MAX_COLUMNS];
    size_t count = muc_report_columns(report, key, columns), index;
    const json_t *rows = json_object_get(report->open[0], key);
    json_t *row;

    muc_text_add(text, "<div class=\"%s\"><table><thead><tr>",
                 json_array_size(rows) > LONG ? "scroll" : "wide");
    for (size_t c = 0; c < count; c++) {
        is_numeric[c] = muc_report_is_numeric(rows, columns[c].key);
        add_head(text, &columns[c], is_numeric[c]);
    }
    muc_text_add(text, "</tr></thead><tbody>\n");
    json_array_foreach((json_t *)rows, index, row)
    {
        muc_text_add(text, "<tr>");
        for (size_t c = 0; c < count; c++) {
            add_cell(text, json_object_get(row, columns[c].key), is_numeric[c]);
        }
        muc_text_add(text, "</tr>\n");
    }
    muc_text_add(text, "</tbody></table></div>\n");
}

static void add_figures(muc_text *text, const muc_report *report)
{
    json_t *figure;
    size_t index;

    json_array_foreach(report->figures, index, figure)
    {
        const char *note = json_string_value(json_object_get(figure, "note"));

        muc_text_add(text, "<section><h2 id=\"figure%zu\">%s</h2>\n", index,
                     json_string_value(json_object_get(figure, "title")));
        if (*note)
            muc_text_add(text, "<p>%s</p>\n", note);
        muc_text_add(text, "<div class=\"picture\">\n%s</div></section>\n",
                     json_string_value(json_object_get(figure, "svg")));
    }
}

static void add_contents(muc_text *text, const muc_report *report)
{
    const char *key;
    json_t *value;
    size_t index;

    muc_text_add(text, "<nav>");
    if (muc_page_has_bars(report))
        muc_text_add(text, "<a href=\"#time\">cost by layer</a>\n");
    json_array_foreach(report->figures, index, value)
    {
        muc_text_add(text, "<a href=\"#figure%zu\">%s</a>\n", index,
                     json_string_value(json_object_get(value, "title")));
    }
    muc_text_add(text, "<a href=\"#facts\">facts</a>\n");
    json_object_foreach(report->open[0], key, value)
    {
        if (!is_section(key, value))
            continue;
        muc_text_add(text, "<a href=\"#");
        muc_xml_add(text, key);
        muc_text_add(text, "\">");
        add_key(text, key);
        muc_text_add(text, "</a>\n");
    }
    muc_text_add(text, "</nav>\n");
}

static void add_sections(muc_text *text, const muc_report *report)
{
    const char *key;
    json_t *value;

    muc_text_add(text, "<details open id=\"facts\"><summary><h2>facts</h2></summary>\n");
    add_facts(text, report->open[0]);
    muc_text_add(text, "</details>\n");
    json_object_foreach(report->open[0], key, value)
    {
        if (!is_section(key, value))
            continue;
        muc_text_add(text, "<details open id=\"");
        muc_xml_add(text, key);
        muc_text_add(text, "\"><summary><h2>");
        add_key(text, key);
        muc_text_add(text, "</h2></summary>\n");
        if (json_is_object(value))
            add_facts(text, value);
        else
            add_table(text, report, key);
        muc_text_add(text, "</details>\n");
    }
}

/* The policy lets the page load nothing, whatever a name in it would like. */
static void add_head_of_page(muc_text *text, const char *title)
{
    muc_text_add(text, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';"
                       "style-src 'unsafe-inline';script-src 'unsafe-inline'\">\n<title>");
    muc_xml_add(text, title);
    muc_text_add(text, "</title>\n<style>\n%s%s</style></head>\n<body><header><h1>", page_css,
                 pictures_css);
    muc_xml_add(text, title);
    muc_text_add(text, "</h1><button id=\"dark\" hidden title=\"light or dark\">◐</button>"
                       "</header>\n");
}

muc_status muc_report_as_html(muc_context *ctx, const muc_report *report, const char *title,
                              char **out)
{
    MUC_IN_C_LOCALE;
    muc_text text = { 0 };

    MUC_TRY(muc_report_status(ctx, report));
    add_head_of_page(&text, title);
    muc_page_add_answers(&text, report);
    add_contents(&text, report);
    muc_page_add_bars(&text, report);
    add_figures(&text, report);
    add_sections(&text, report);
    muc_text_add(&text, "<script>\n%s%s</script>\n</body></html>\n", tables_js, pictures_js);
    return muc_report_take_text(ctx, &text, out);
}

/* as_html.c - a report as one page: no scripts, nothing from elsewhere, pictures within. */
#include <inttypes.h>
#include <string.h>

#include "report/svg.h"
#include "base/locale.h"

static const char style[] =
    ":root{color-scheme:light dark;--text:#222;--page:#fff;--line:#e4e4e4;--head:#f4f4f4;"
    "--rule:#999;--quiet:#555;--hover:#f4f8fc}\n"
    "body{font:15px/1.45 system-ui,sans-serif;color:var(--text);background:var(--page);margin:2em "
    "auto;padding:0 1.5em;max-width:1400px}\n"
    "h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}h1,p{overflow-wrap:anywhere}\n"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}\n"
    "th,td{white-space:nowrap;padding:.2em "
    ".7em;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}\n"
    "td.long{white-space:normal;max-width:60em}\n"
    "thead th{position:sticky;top:0;background:var(--head);border-bottom:1px solid var(--rule)}\n"
    "tbody tr:hover{background:var(--hover)}\n"
    ".n{text-align:right}.unit{font-weight:normal;color:var(--quiet)}\n"
    ".facts th{font-weight:normal;color:var(--quiet)}\n"
    ".facts td{white-space:normal;overflow-wrap:anywhere}\n"
    ".wide{overflow-x:auto}.scroll{overflow:auto;max-height:80vh;border-bottom:1px solid "
    "var(--rule)}\n"
    "nav a{margin-right:1.2em}\n"
    "svg{display:block}svg text{font:12px system-ui,sans-serif;fill:var(--text)}\n"
    "svg g>rect~text{fill:#222}\n"
    "svg .small{font-size:10.5px}svg .end{text-anchor:end}svg .middle{text-anchor:middle}\n"
    "svg .arrow{fill:none;stroke:#555;stroke-width:1.2}\n"
    "svg g:hover>rect{stroke:#000;stroke-width:2}\n"
    "@media(max-width:600px){body{margin:1em auto;padding:0 .8em}}\n"
    "@media(prefers-color-scheme:dark){:root{--text:#ddd;--page:#16181c;--line:#33373e;"
    "--head:#23262c;--rule:#777;--quiet:#aaa;--hover:#1f2730}\n"
    "a{color:#8ab8f0}svg line[stroke=\"#ddd\"]{stroke:#33373e}"
    "svg line[stroke=\"#000000\"]{stroke:#ddd}svg .arrow{stroke:#aaa}"
    "svg polyline,svg circle,svg line.key{filter:brightness(1.7)}}\n"
    "@media print{.scroll{max-height:none}}\n";

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

        muc_text_add(text, "<h2 id=\"figure%zu\">%s</h2>\n", index,
                     json_string_value(json_object_get(figure, "title")));
        if (*note)
            muc_text_add(text, "<p>%s</p>\n", note);
        muc_text_add(text, "<div class=\"wide\">\n%s</div>\n",
                     json_string_value(json_object_get(figure, "svg")));
    }
}

static void add_contents(muc_text *text, const muc_report *report)
{
    const char *key;
    json_t *value;
    size_t index;

    muc_text_add(text, "<nav>");
    json_array_foreach(report->figures, index, value)
    {
        muc_text_add(text, "<a href=\"#figure%zu\">%s</a>\n", index,
                     json_string_value(json_object_get(value, "title")));
    }
    json_object_foreach(report->open[0], key, value)
    {
        if (!json_is_object(value) && !json_is_array(value))
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

    json_object_foreach(report->open[0], key, value)
    {
        if (!json_is_object(value) && !json_is_array(value))
            continue;
        muc_text_add(text, "<h2 id=\"");
        muc_xml_add(text, key);
        muc_text_add(text, "\">");
        add_key(text, key);
        muc_text_add(text, "</h2>\n");
        if (json_is_object(value))
            add_facts(text, value);
        else
            add_table(text, report, key);
    }
}

muc_status muc_report_as_html(muc_context *ctx, const muc_report *report, const char *title,
                              char **out)
{
    MUC_IN_C_LOCALE;
    muc_text text = { 0 };

    MUC_TRY(muc_report_status(ctx, report));
    muc_text_add(&text, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                        "<title>");
    muc_xml_add(&text, title);
    muc_text_add(&text, "</title>\n<style>\n%s</style></head>\n<body><h1>", style);
    muc_xml_add(&text, title);
    muc_text_add(&text, "</h1>\n");
    add_contents(&text, report);
    add_facts(&text, report->open[0]);
    add_figures(&text, report);
    add_sections(&text, report);
    muc_text_add(&text, "</body></html>\n");
    return muc_report_take_text(ctx, &text, out);
}

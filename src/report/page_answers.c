/* page_answers.c - prints a page's cards and bars from a report's tables. */
#include "report/page_answers.h"

#include <string.h>

#include "report/answers.h"
#include "report/costs.h"
#include "report/memories.h"
#include "report/report_builder.h"
#include "report/svg.h"

enum { LONG = 40, MOST_ADVICE = 5, MOST_ENGINES = 64 };

static bool begins_with(const char *text, const char *word)
{
    return strncmp(text, word, strlen(word)) == 0;
}

/* ---- cards ---- */

/* a line of words, and a bar of `share` of the width below it */
static void add_meter(muc_text *text, const char *name, const char *words, double share,
                      const char *colour)
{
    muc_text_add(text, "<div class=\"meter\"><span><b>");
    muc_xml_add_name(text, name, SIZE_MAX);
    muc_text_add(text, "</b><span class=\"quiet\">");
    muc_xml_add(text, words);
    muc_text_add(text,
                 "</span></span><span class=\"bar\"><i class=\"%s\" style=\"width:%.1f%%\"></i>"
                 "</span></div>\n",
                 colour, 100 * (share < 1 ? share : 1));
}

static void add_memory_words(muc_text *words, const json_t *rows, const muc_memory_sum *sum)
{
    bool any = false;

    muc_memory_add_words(words, sum);
    for (size_t i = sum->first; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);

        if (strcmp(muc_member_text(row, "memory"), sum->name) != 0)
            continue;
        muc_text_add(words, "%s%s", any ? " + " : ": ", muc_member_text(row, "use"));
        any = true;
    }
}

/* not of a comparison, whose table has differences */
static bool has_memories(const muc_report *report)
{
    return json_object_get(json_array_get(json_object_get(report->open[0], "memory"), 0), "bytes");
}

static void add_meters(muc_text *text, const muc_report *report)
{
    const json_t *rows = json_object_get(report->open[0], "memory");
    muc_memory_sum sum;

    for (size_t i = 0; i < json_array_size(rows); i++) {
        muc_text words = { 0 };

        if (!muc_memory_sum_at(rows, i, &sum))
            continue;
        add_memory_words(&words, rows, &sum);
        add_meter(text, sum.name, words.data ? words.data : "",
                  sum.limit ? (double)sum.bytes / (double)sum.limit : 0,
                  sum.limit && sum.bytes > sum.limit ? "over" : "f2");
        text->failed |= words.failed;
        muc_text_free(&words);
    }
}

static void add_largest(muc_text *text, const muc_report *report)
{
    const json_t *largest[MUC_COSTS_SHOWN];
    muc_costs costs;
    size_t count = muc_costs_find(report->open[0], &costs) ? muc_costs_largest(&costs, largest) : 0;

    for (size_t i = 0; i < count; i++) {
        double share = muc_costs_time(&costs, largest[i]) / costs.total;
        uint64_t macs = muc_costs_macs(&costs, largest[i]);
        muc_text words = { 0 };

        muc_text_add(&words, "%.3g %%, %s", 100 * share, muc_costs_engine(&costs, largest[i]));
        if (macs && !muc_costs_are_macs(&costs))
            muc_text_add(&words, ", %.3g MACs a %.*s",
                         (double)macs / muc_costs_time(&costs, largest[i]),
                         (int)strlen(costs.unit) - 1, costs.unit);
        add_meter(text, muc_costs_name(&costs, largest[i], 0), words.data ? words.data : "", share,
                  "f1");
        text->failed |= words.failed;
        muc_text_free(&words);
    }
}

static void add_card(muc_text *text, const muc_report *report, const json_t *row)
{
    const char *question = muc_member_text(row, "question"),
               *answer = muc_member_text(row, "answer");
    const char *detail = muc_member_text(row, "detail");

    muc_text_add(text, "<article><h2>");
    muc_xml_add(text, question);
    muc_text_add(text, "</h2>\n");
    if (strcmp(question, MUC_QUESTION_COSTS) == 0) {
        add_largest(text, report);
    } else {
        muc_text_add(text, "<p class=\"answer%s\">",
                     begins_with(answer, "Yes")                ? " yes"
                     : begins_with(answer, "No") && !answer[2] ? " no"
                                                               : "");
        muc_xml_add(text, answer);
        muc_text_add(text, "</p>\n");
        if (strcmp(question, MUC_QUESTION_FIT) == 0 && has_memories(report)) {
            add_meters(text, report);
        } else {
            muc_text_add(text, "<p>");
            muc_xml_add(text, detail);
            muc_text_add(text, "</p>\n");
        }
    }
    muc_text_add(text, "</article>\n");
}

/* the sentences of a table, as many as are read at a glance */
static void add_sentences(muc_text *text, const muc_report *report, const char *table,
                          const char *column, const char *question)
{
    const json_t *rows = json_object_get(report->open[0], table);

    if (!rows)
        return;
    muc_text_add(text, "<article><h2>");
    muc_xml_add(text, question);
    muc_text_add(text, json_array_size(rows) ? "</h2>\n<ul>\n"
                                             : "</h2>\n<p>Nothing stands out.</p><ul>\n");
    for (size_t i = 0; i < json_array_size(rows) && i < MOST_ADVICE; i++) {
        const char *machine = muc_member_text(json_array_get(rows, i), "machine");

        muc_text_add(text, *machine ? "<li><b>" : "<li>");
        muc_xml_add(text, machine);
        muc_text_add(text, *machine ? "</b>: " : "");
        muc_xml_add(text, muc_member_text(json_array_get(rows, i), column));
        muc_text_add(text, "</li>\n");
    }
    muc_text_add(text, "</ul></article>\n");
}

void muc_page_add_answers(muc_text *text, const muc_report *report)
{
    const json_t *rows = json_object_get(report->open[0], "answers");

    if (json_array_size(rows) == 0)
        return;
    muc_text_add(text, "<section class=\"answers\">\n");
    for (size_t i = 0; i < json_array_size(rows); i++)
        add_card(text, report, json_array_get(rows, i));
    add_sentences(text, report, "what_to_change", "advice", MUC_QUESTION_CHANGE);
    add_sentences(text, report, "why_not", "reason", "Why not, and what would do?");
    add_sentences(text, report, "what_changed", "sentence", "What changed?");
    muc_text_add(text, "</section>\n");
}

/* ---- bars ---- */

typedef struct bars {
    muc_text *text;
    const char *engines[MOST_ENGINES]; /* in the order of their coming: a colour each */
    size_t engine_count;
    double largest;
} bars;

/* beyond MOST_ENGINES all have the last one's colour */
static size_t engine_index(bars *b, const char *engine)
{
    size_t i = 0;

    while (i < b->engine_count && strcmp(b->engines[i], engine) != 0)
        i++;
    if (i == b->engine_count && i < MOST_ENGINES)
        b->engines[b->engine_count++] = engine;
    return i < MOST_ENGINES ? i : MOST_ENGINES - 1;
}

static void add_bar(bars *b, double time, const char *colour)
{
    muc_text_add(b->text, "<span class=\"bar\">");
    if (time > 0)
        muc_text_add(b->text, "<i class=\"%s\" style=\"width:%.1f%%\"></i>", colour,
                     100 * time / b->largest);
    muc_text_add(b->text, "</span>");
}

static void add_number(muc_text *text, double value)
{
    muc_text_add(text, "<td class=\"n\">");
    if (value >= 0 && value < 1e15 && value == (double)(uint64_t)value)
        muc_xml_add_count(text, (uint64_t)value);
    else
        muc_text_add(text, "%.5g", value);
    muc_text_add(text, "</td>");
}

static void add_names(muc_text *text, const muc_costs *costs, const json_t *row)
{
    const char *name = muc_costs_name(costs, row, 0), *second = muc_costs_name(costs, row, 1);

    muc_text_add(text, "<td class=\"name\" title=\"");
    muc_xml_add(text, name);
    muc_text_add(text, second ? "\n" : "");
    muc_xml_add(text, second);
    muc_text_add(text, "\">");
    muc_xml_add_name(text, name, SIZE_MAX);
    if (second && *second && strcmp(second, name) != 0) {
        muc_text_add(text, " <span class=\"quiet\">");
        muc_xml_add_name(text, second, SIZE_MAX);
        muc_text_add(text, "</span>");
    }
    muc_text_add(text, "</td>");
}

static void add_layer(bars *b, const muc_costs *costs, const json_t *row)
{
    double time = muc_costs_time(costs, row);
    const char *engine = muc_costs_engine(costs, row);

    muc_text_add(b->text, "<tr>");
    add_names(b->text, costs, row);
    muc_text_add(b->text, "<td class=\"w n\" data-v=\"%.17g\">", time);
    add_bar(b, time, muc_svg_fill(engine_index(b, engine)));
    muc_text_add(b->text, "</td>");
    add_number(b->text, time);
    muc_text_add(b->text, "<td class=\"n\">%.1f %%</td><td>", 100 * time / costs->total);
    muc_xml_add(b->text, engine);
    muc_text_add(b->text, "</td>");
    add_number(b->text, (double)muc_costs_bytes(costs, row));
    if (!muc_costs_are_macs(costs))
        add_number(b->text, (double)muc_costs_macs(costs, row));
    muc_text_add(b->text, "</tr>\n");
}

static void begin_bars(muc_text *text, const char *title, size_t rows)
{
    muc_text_add(text,
                 "<section id=\"time\" class=\"bars\"><h2>%s by layer</h2>\n"
                 "<div class=\"%s\"><table><thead><tr><th scope=\"col\">layer</th>"
                 "<th scope=\"col\" class=\"n\"></th>",
                 title, rows > LONG ? "scroll" : "wide");
}

static void add_legend(const bars *b)
{
    if (b->engine_count < 2)
        return;
    muc_text_add(b->text, "<p class=\"legend\">");
    for (size_t i = 0; i < b->engine_count; i++) {
        muc_text_add(b->text, "<span><i class=\"%s\"></i>", muc_svg_fill(i));
        muc_xml_add(b->text, b->engines[i]);
        muc_text_add(b->text, "</span>\n");
    }
    muc_text_add(b->text, "</p>\n");
}

static void add_layers(bars *b, const muc_costs *costs)
{
    size_t index;
    json_t *row;

    json_array_foreach((json_t *)costs->rows, index, row)
    {
        double time = muc_costs_time(costs, row);

        b->largest = time > b->largest ? time : b->largest;
    }
    begin_bars(b->text, costs->unit, json_array_size(costs->rows));
    muc_text_add(b->text,
                 "<th scope=\"col\" class=\"n\">%s</th><th scope=\"col\" class=\"n\">share</th>"
                 "<th scope=\"col\">",
                 costs->unit);
    muc_report_print_key(b->text, costs->engine);
    muc_text_add(b->text, "</th><th scope=\"col\" class=\"n\">bytes</th>%s</tr></thead><tbody>\n",
                 muc_costs_are_macs(costs) ? "" : "<th scope=\"col\" class=\"n\">MACs</th>");
    json_array_foreach((json_t *)costs->rows, index, row)
    {
        add_layer(b, costs, row);
    }
}

static void add_pairs(bars *b, const muc_report *report, const json_t *rows)
{
    muc_report_column columns[MUC_REPORT_MAX_COLUMNS];
    size_t count = muc_report_columns(report, "time", columns);
    static const char *const keys[] = { "a", "b" };
    size_t index;
    json_t *row;

    json_array_foreach((json_t *)rows, index, row)
    {
        for (unsigned k = 0; k < 2; k++) {
            double time = json_number_value(json_object_get(row, keys[k]));

            b->largest = time > b->largest ? time : b->largest;
        }
    }
    for (unsigned k = 0; k < 2; k++)
        engine_index(b, keys[k]);
    begin_bars(b->text, count > 1 && columns[1].unit ? columns[1].unit : "cost",
               json_array_size(rows));
    muc_text_add(b->text, "<th scope=\"col\" class=\"n\">a</th><th scope=\"col\" class=\"n\">b</th>"
                          "<th scope=\"col\" class=\"n\">change</th></tr></thead><tbody>\n");
    json_array_foreach((json_t *)rows, index, row)
    {
        const json_t *change = json_object_get(row, "change");
        double a = json_number_value(json_object_get(row, "a"));
        double other = json_number_value(json_object_get(row, "b"));

        muc_text_add(b->text, "<tr><td class=\"name\">");
        muc_xml_add(b->text, muc_member_text(row, "row"));
        muc_text_add(b->text, "</td><td class=\"w n pair\" data-v=\"%.17g\">", other);
        add_bar(b, a, muc_svg_fill(0));
        add_bar(b, other, muc_svg_fill(1));
        muc_text_add(b->text, "</td>");
        add_number(b->text, a);
        add_number(b->text, other);
        if (change)
            muc_text_add(b->text, "<td class=\"n\">%+.1f %%</td></tr>\n",
                         100 * json_number_value(change));
        else
            muc_text_add(b->text, "<td class=\"n\">-</td></tr>\n");
    }
}

bool muc_page_has_bars(const muc_report *report)
{
    muc_costs costs;

    return json_array_size(json_object_get(report->open[0], "time")) ||
           muc_costs_find(report->open[0], &costs);
}

void muc_page_add_bars(muc_text *text, const muc_report *report)
{
    const json_t *pairs = json_object_get(report->open[0], "time");
    bars b = { .text = text };
    muc_costs costs;

    if (json_array_size(pairs))
        add_pairs(&b, report, pairs);
    else if (muc_costs_find(report->open[0], &costs))
        add_layers(&b, &costs);
    else
        return;
    muc_text_add(text, "</tbody></table></div>\n");
    add_legend(&b);
    muc_text_add(text, "</section>\n");
}

/* svg.c - what drawings share: escaped texts, colours and axes. */
#include "report/svg.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/visible_name.h"

/* the visible form of one character; returns its bytes, 0 at the end */
static size_t add_character(muc_text *text, const char *string)
{
    char piece[MUC_VISIBLE_BYTES];
    size_t size = muc_visible_character(string, piece);

    if (*string == '<')
        muc_text_add(text, "&lt;");
    else if (*string == '>')
        muc_text_add(text, "&gt;");
    else if (*string == '&')
        muc_text_add(text, "&amp;");
    else if (*string == '"')
        muc_text_add(text, "&quot;");
    else
        muc_text_add(text, "%s", *string == '\n' ? "\n" : piece); /* a tip has several lines */
    return size;
}

void muc_xml_add(muc_text *text, const char *string)
{
    for (size_t size; string && (size = add_character(text, string)); string += size)
        ;
}

static size_t characters_of(const char *string)
{
    char piece[MUC_VISIBLE_BYTES];
    size_t count = 0, size;

    for (; (size = muc_visible_character(string, piece)); string += size)
        count++;
    return count;
}

void muc_xml_add_cut(muc_text *text, const char *string, size_t most)
{
    if (!string || characters_of(string) <= most) {
        muc_xml_add(text, string);
        return;
    }
    for (size_t kept = 1; kept < most; kept++)
        string += add_character(text, string);
    muc_text_add(text, "…");
}

size_t muc_name_heading(const char *name)
{
    return strcspn(name, ";");
}

void muc_xml_add_name(muc_text *text, const char *string, size_t most)
{
    char piece[MUC_VISIBLE_BYTES];
    muc_text heading = { 0 };
    const char *at;
    size_t count;

    string = string ? string : "";
    muc_text_add(&heading, "%.*s", (int)muc_name_heading(string), string);
    at = heading.failed || !heading.data ? "" : heading.data;
    count = characters_of(at);
    if (count <= most || !strchr(at, '/')) {
        muc_xml_add_cut(text, at, most);
    } else {
        for (; count >= most; count--)
            at += muc_visible_character(at, piece);
        muc_text_add(text, "…");
        muc_xml_add(text, at);
    }
    text->failed |= heading.failed;
    muc_text_free(&heading);
}

void muc_xml_add_count(muc_text *text, uint64_t value)
{
    char digits[24];
    size_t length = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, value);

    for (size_t i = 0; i < length; i++)
        muc_text_add(text, i && (length - i) % 3 == 0 ? ",%c" : "%c", digits[i]);
}

const char *muc_svg_fill(size_t index)
{
    static const char *const classes[] = { "f0", "f1", "f2", "f3", "f4",  "f5",
                                           "f6", "f7", "f8", "f9", "f10", "f11" };

    return classes[index % MUC_COUNT(classes)];
}

const char *muc_svg_stroke(size_t index)
{
    static const char *const classes[] = { "s0", "s1", "s2", "s3", "s4", "s5" };

    return classes[index % MUC_COUNT(classes)];
}

double muc_svg_step(double range, unsigned most)
{
    static const double factors[] = { 1, 2, 5 };
    double power = 1;

    while (range / power > most)
        power *= 10;
    while (range / power <= most / 10.0)
        power /= 10;
    for (unsigned i = 0; i < MUC_COUNT(factors); i++)
        if (range / (power / 10 * factors[i]) <= most)
            return power / 10 * factors[i];
    return power;
}

void muc_svg_begin(muc_text *text, double width, double height)
{
    muc_text_add(text,
                 "<svg width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
                 "data-height=\"%.0f\" role=\"img\">\n",
                 width, height, width, height, height);
}

/* takes the text over */
static json_t *string_of(muc_report *report, muc_text *text)
{
    json_t *string = text->failed ? NULL : muc_report_string_of(text);

    if (!string)
        report->failed = true;
    muc_text_free(text);
    return string;
}

static json_t *escaped(muc_report *report, const char *string)
{
    muc_text text = { 0 };

    muc_xml_add(&text, string);
    return string_of(report, &text);
}

void muc_svg_hang(muc_report *report, const char *title, const char *note, muc_text *svg)
{
    json_t *figure = json_pack("{s:o, s:o, s:o}", "title", escaped(report, title), "note",
                               escaped(report, note), "svg", string_of(report, svg));

    if (json_array_append_new(report->figures, figure))
        report->failed = true;
}

/* figure_plot.c - draws lines over numbers, with axes and a legend. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/real.h"
#include "report/figures.h"
#include "report/svg.h"

enum {
    LEFT = 72,
    RIGHT = 32,
    TOP = 20,
    WIDTH = 720,
    HEIGHT = 320,
    BELOW = 44,
    LEGEND = 16,
    LABEL_LETTERS = 30,
    MOST_MARKS = 9
};

/* of a logarithmic axis the numbers are powers of ten */
typedef struct axis {
    double least, most, step;
    bool logarithmic;
} axis;

typedef struct plot {
    muc_text text;
    axis x, y;
} plot;

static double scaled(const axis *a, double value)
{
    return a->logarithmic ? muc_log(value) / muc_log(10) : value;
}

static double x_of(const plot *p, double x)
{
    return LEFT + (x - p->x.least) / (p->x.most - p->x.least) * WIDTH;
}

static double y_of(const plot *p, double y)
{
    return TOP + HEIGHT - (y - p->y.least) / (p->y.most - p->y.least) * HEIGHT;
}

/* finite, no NaN, and above 0 on a logarithmic axis */
static bool is_shown(const plot *p, const muc_plot_line *line, size_t i)
{
    double least = p->x.logarithmic ? 1e-300 : -1e300;

    return fabs(line->x[i]) < 1e300 && fabs(line->y[i]) < 1e300 && line->x[i] > least &&
           line->y[i] > least;
}

static void widen(axis *a, double value, bool first)
{
    a->least = first || value < a->least ? value : a->least;
    a->most = first || value > a->most ? value : a->most;
}

/* Its ends become multiples of the step; an axis without extent gets some. */
static void round_axis(axis *a)
{
    double around = fabs(a->most) > 1 ? fabs(a->most) / 10 : 1;

    if (!(a->most - a->least > fabs(a->most) * 1e-9)) {
        a->least -= around;
        a->most += around;
    }
    a->step = muc_svg_step(a->most - a->least, MOST_MARKS);
    a->step = a->logarithmic && a->step < 1 ? 1 : a->step;
    a->least = floor(a->least / a->step) * a->step;
    a->most = ceil(a->most / a->step) * a->step;
}

/* false if there is no point */
static bool measure(plot *p, const muc_plot_figure *figure)
{
    bool any = false;

    for (size_t l = 0; l < figure->line_count; l++) {
        const muc_plot_line *line = &figure->lines[l];

        for (size_t i = 0; i < line->count; i++) {
            if (!is_shown(p, line, i))
                continue;
            widen(&p->x, scaled(&p->x, line->x[i]), !any);
            widen(&p->y, scaled(&p->y, line->y[i]), !any);
            any = true;
        }
    }
    round_axis(&p->x);
    round_axis(&p->y);
    return any;
}

static unsigned marks_of(const axis *a)
{
    return (unsigned)floor((a->most - a->least) / a->step + 0.5);
}

/* the number of a mark; what rounding leaves of 0 is 0 */
static double mark(const axis *a, unsigned i)
{
    double value = a->least + i * a->step;

    return fabs(value) < a->step / 1000 ? 0 : value;
}

static void add_mark(plot *p, const axis *a, unsigned i)
{
    if (a->logarithmic)
        muc_text_add(&p->text, "1e%.0f</text>\n", mark(a, i));
    else
        muc_text_add(&p->text, "%.10g</text>\n", mark(a, i));
}

static void draw_axes(plot *p, const muc_plot_figure *figure)
{
    for (unsigned i = 0; i <= marks_of(&p->y); i++) {
        double y = y_of(p, mark(&p->y, i));

        muc_text_add(&p->text,
                     "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" class=\"grid\"/>"
                     "<text x=\"%d\" y=\"%.1f\" class=\"end\">",
                     LEFT, y, LEFT + WIDTH, y, LEFT - 6, y + 4);
        add_mark(p, &p->y, i);
    }
    for (unsigned i = 0; i <= marks_of(&p->x); i++) {
        double x = x_of(p, mark(&p->x, i));

        muc_text_add(&p->text,
                     "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" class=\"grid\"/>"
                     "<text x=\"%.1f\" y=\"%d\" class=\"middle\">",
                     x, TOP, x, TOP + HEIGHT, x, TOP + HEIGHT + 18);
        add_mark(p, &p->x, i);
    }
    muc_text_add(&p->text, "<text x=\"%d\" y=\"%d\" class=\"middle\">", LEFT + WIDTH / 2,
                 TOP + HEIGHT + 34);
    muc_xml_add(&p->text, figure->x_name);
    muc_text_add(&p->text, "</text><text x=\"2\" y=\"%d\">", TOP - 9);
    muc_xml_add(&p->text, figure->y_name);
    muc_text_add(&p->text, "</text>\n");
}

/* one column of pixels of a line: no more than its ends and extremes are drawn of it */
typedef struct column {
    long pixel;
    double first, last, least, most;
    double x;
} column;

static void draw_column(plot *p, const column *c)
{
    if (c->least == c->most)
        muc_text_add(&p->text, " %.1f,%.1f", c->x, c->first);
    else
        muc_text_add(&p->text, " %.1f,%.1f %.1f,%.1f %.1f,%.1f %.1f,%.1f", c->x, c->first, c->x,
                     c->least, c->x, c->most, c->x, c->last);
}

static void draw_line(plot *p, const muc_plot_line *line, size_t index)
{
    column c = { .pixel = -1 };

    muc_text_add(&p->text, "<polyline class=\"%s\" points=\"", muc_svg_stroke(index));
    for (size_t i = 0; i < line->count; i++) {
        double x, y;

        if (!is_shown(p, line, i))
            continue;
        x = x_of(p, scaled(&p->x, line->x[i]));
        y = y_of(p, scaled(&p->y, line->y[i]));
        if ((long)x != c.pixel) {
            if (c.pixel >= 0)
                draw_column(p, &c);
            c = (column){ (long)x, y, y, y, y, x };
        }
        c.last = y;
        c.least = y < c.least ? y : c.least;
        c.most = y > c.most ? y : c.most;
    }
    if (c.pixel >= 0)
        draw_column(p, &c);
    muc_text_add(&p->text, "\"><title>");
    muc_xml_add(&p->text, line->name);
    muc_text_add(&p->text, "</title></polyline>\n");
}

/* a point of a line with labels, in pixels; its label stands at `label` */
typedef struct spot {
    double x, y, label;
    size_t index;
} spot;

/* from the lowest up */
static int by_height(const void *a, const void *b)
{
    const spot *p = a, *q = b;

    if (p->y != q->y)
        return p->y > q->y ? -1 : 1;
    return p->index < q->index ? -1 : p->index > q->index;
}

static void draw_spot(plot *p, const muc_plot_line *line, const spot *s, double label_x,
                      const char *colour)
{
    const char *label = line->labels[s->index];

    if (*label)
        muc_text_add(&p->text,
                     "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"lead\"/>"
                     "<text x=\"%.1f\" y=\"%.1f\" class=\"small\">",
                     s->x, s->y, label_x, s->label, label_x + 3, s->label + 4);
    muc_xml_add_name(&p->text, label, LABEL_LETTERS);
    muc_text_add(&p->text, "%s<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" class=\"%s\"><title>",
                 *label ? "</text>" : "", s->x, s->y, colour);
    muc_xml_add(&p->text, label);
    muc_text_add(&p->text, "%s%.4g, %.4g</title></circle>\n", *label ? "\n" : "", line->x[s->index],
                 line->y[s->index]);
}

/* the x of all labels: beside the points that have some, as far to the left as the longest asks */
static double label_column(const muc_plot_line *line, const spot *spots, size_t count, size_t index)
{
    enum { ASIDE = 40, CHARACTER = 6 };
    double right = LEFT, longest = 0;

    for (size_t i = 0; i < count; i++) {
        double letters = (double)strlen(line->labels[spots[i].index]);

        if (letters > 0 && spots[i].x > right)
            right = spots[i].x;
        longest = letters > longest ? muc_min(letters, LABEL_LETTERS) : longest;
    }
    right += index % 2 ? ASIDE : 4 * ASIDE; /* those of two lines beside each other */
    return muc_min(right, LEFT + WIDTH - longest * CHARACTER);
}

/* The labels stand in a column, none over another. */
static void draw_points(plot *p, const muc_plot_line *line, size_t index)
{
    enum { LABEL_HEIGHT = 12 };
    spot *spots = calloc(line->count + 1, sizeof(*spots));
    double lowest = TOP + HEIGHT, label_x;
    size_t count = 0;

    p->text.failed |= !spots;
    for (size_t i = 0; spots && i < line->count; i++) {
        if (!is_shown(p, line, i))
            continue;
        spots[count].x = x_of(p, scaled(&p->x, line->x[i]));
        spots[count].y = y_of(p, scaled(&p->y, line->y[i]));
        spots[count++].index = i;
    }
    if (count)
        qsort(spots, count, sizeof(*spots), by_height);
    label_x = label_column(line, spots, count, index);
    for (size_t i = 0; i < count; i++) {
        if (*line->labels[spots[i].index]) {
            spots[i].label = spots[i].y < lowest ? spots[i].y : lowest;
            lowest = spots[i].label - LABEL_HEIGHT;
        }
        draw_spot(p, line, &spots[i], label_x, muc_svg_stroke(index));
    }
    free(spots);
}

/* in a row below the axis */
static void draw_legend(plot *p, const muc_plot_figure *figure)
{
    enum { KEY = 22, CHARACTER = 7 };
    double x = LEFT, y = TOP + HEIGHT + BELOW + 8;

    for (size_t i = 0; i < figure->line_count; i++) {
        muc_text_add(&p->text,
                     "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"key %s\"/>"
                     "<text x=\"%.1f\" y=\"%.1f\">",
                     x, y - 4, x + KEY, y - 4, muc_svg_stroke(i), x + KEY + 6, y);
        muc_xml_add(&p->text, figure->lines[i].name);
        muc_text_add(&p->text, "</text>\n");
        x += 2 * KEY + (double)strlen(figure->lines[i].name) * CHARACTER;
    }
}

void muc_report_add_plot(muc_report *report, const muc_plot_figure *figure)
{
    plot p = { .x = { .logarithmic = figure->logarithmic },
               .y = { .logarithmic = figure->logarithmic } };
    bool any = measure(&p, figure);

    if (any) {
        muc_svg_begin(&p.text, LEFT + WIDTH + RIGHT, TOP + HEIGHT + BELOW + LEGEND);
        draw_axes(&p, figure);
        for (size_t i = 0; i < figure->line_count; i++)
            (figure->lines[i].labels ? draw_points : draw_line)(&p, &figure->lines[i], i);
        draw_legend(&p, figure);
        muc_text_add(&p.text, "</svg>\n");
    }
    muc_svg_hang(report, figure->title, any ? "" : "There is nothing to show.", &p.text);
}

/* figure_plot.c - lines over numbers, with axes and a legend. */
#include <math.h>

#include "report/figures.h"
#include "report/svg.h"

enum { LEFT = 72, RIGHT = 20, TOP = 20, WIDTH = 720, HEIGHT = 320, BELOW = 44, MOST_MARKS = 9 };

typedef struct axis {
    double least, most, step;
} axis;

typedef struct plot {
    muc_text text;
    axis x, y;
} plot;

static double x_of(const plot *p, double x)
{
    return LEFT + (x - p->x.least) / (p->x.most - p->x.least) * WIDTH;
}

static double y_of(const plot *p, double y)
{
    return TOP + HEIGHT - (y - p->y.least) / (p->y.most - p->y.least) * HEIGHT;
}

static bool is_shown(const muc_plot_line *line, size_t i)
{
    return fabs(line->x[i]) < 1e300 && fabs(line->y[i]) < 1e300; /* no NaN either */
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
            if (!is_shown(line, i))
                continue;
            widen(&p->x, line->x[i], !any);
            widen(&p->y, line->y[i], !any);
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

static void draw_axes(plot *p, const muc_plot_figure *figure)
{
    for (unsigned i = 0; i <= marks_of(&p->y); i++) {
        double y = y_of(p, mark(&p->y, i));

        muc_text_add(&p->text,
                     "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#ddd\"/>"
                     "<text x=\"%d\" y=\"%.1f\" class=\"end\">%.10g</text>\n",
                     LEFT, y, LEFT + WIDTH, y, LEFT - 6, y + 4, mark(&p->y, i));
    }
    for (unsigned i = 0; i <= marks_of(&p->x); i++) {
        double x = x_of(p, mark(&p->x, i));

        muc_text_add(&p->text,
                     "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#ddd\"/>"
                     "<text x=\"%.1f\" y=\"%d\" class=\"middle\">%.10g</text>\n",
                     x, TOP, x, TOP + HEIGHT, x, TOP + HEIGHT + 16, mark(&p->x, i));
    }
    muc_text_add(&p->text, "<text x=\"%d\" y=\"%d\" class=\"middle\">", LEFT + WIDTH / 2,
                 TOP + HEIGHT + 34);
    muc_xml_add(&p->text, figure->x_name);
    muc_text_add(&p->text, "</text><text x=\"%d\" y=\"%d\" class=\"end\">", LEFT - 6, TOP - 8);
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

    muc_text_add(&p->text,
                 "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" "
                 "stroke-linejoin=\"round\" points=\"",
                 muc_svg_stroke(index));
    for (size_t i = 0; i < line->count; i++) {
        double x, y;

        if (!is_shown(line, i))
            continue;
        x = x_of(p, line->x[i]);
        y = y_of(p, line->y[i]);
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

static void draw_legend(plot *p, const muc_plot_figure *figure)
{
    for (size_t i = 0; i < figure->line_count; i++) {
        double y = TOP + 14 + 16 * (double)i;

        muc_text_add(&p->text,
                     "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"%s\" "
                     "stroke-width=\"3\"/><text x=\"%d\" y=\"%.1f\" class=\"end\">",
                     LEFT + WIDTH - 30, y - 4, LEFT + WIDTH - 8, y - 4, muc_svg_stroke(i),
                     LEFT + WIDTH - 36, y);
        muc_xml_add(&p->text, figure->lines[i].name);
        muc_text_add(&p->text, "</text>\n");
    }
}

void muc_report_add_plot(muc_report *report, const muc_plot_figure *figure)
{
    plot p = { .text = { 0 } };
    bool any = measure(&p, figure);

    if (any) {
        muc_text_add(&p.text,
                     "<svg width=\"%d\" height=\"%d\" "
                     "role=\"img\">\n",
                     LEFT + WIDTH + RIGHT, TOP + HEIGHT + BELOW);
        draw_axes(&p, figure);
        for (size_t i = 0; i < figure->line_count; i++)
            draw_line(&p, &figure->lines[i], i);
        draw_legend(&p, figure);
        muc_text_add(&p.text, "</svg>\n");
    }
    muc_svg_hang(report, figure->title, any ? "" : "There is nothing to show.", &p.text);
}

/* figure_timeline.c - draws what several workers do when. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/figures.h"
#include "report/svg.h"

enum {
    LEFT = 100, /* room for the lanes' names */
    RIGHT = 20,
    TOP = 30,
    WIDTH = 1000, /* and columns, a pixel each */
    LANE_HEIGHT = 34,
    BAR_HEIGHT = 24,
    LEGEND_HEIGHT = 20,
    LEGEND_WIDTH = 190,
    MOST_KINDS = 128,
    MOST_MARKS = 12,
    WIDE = 3, /* pixels of a bar that is drawn by itself */
    CHARACTER = 6,
    SHADES = 5,
};

/* a column of a lane: how much of it is taken, most by which kind */
typedef struct column {
    double taken, most;
    uint16_t kind;
} column;

struct muc_timeline {
    const muc_timeline_figure *figure;
    muc_text text;
    column *columns; /* [lane_count][WIDTH] */
    bool is_drawn[MOST_KINDS];
};

static double x_of(const muc_timeline *t, uint64_t time)
{
    const muc_timeline_figure *f = t->figure;

    return LEFT + (double)(time - f->from) / (double)(f->to - f->from) * WIDTH;
}

static double y_of(size_t lane)
{
    return TOP + (double)lane * LANE_HEIGHT;
}

muc_status muc_timeline_begin(muc_context *ctx, const muc_timeline_figure *figure,
                              muc_timeline **out)
{
    muc_status status;

    MUC_TRY(MUC_NEW_ARRAY(ctx, "timeline", 1, out));
    (*out)->figure = figure;
    status = MUC_NEW_ARRAY(ctx, "timeline", figure->lane_count * WIDTH, &(*out)->columns);
    if (status != MUC_OK)
        free(*out);
    return status;
}

/* ---- bars ---- */

static void add_time(muc_text *text, double microseconds)
{
    muc_text_add(text, "%.4g µs", microseconds);
}

static void draw_wide(muc_timeline *t, size_t lane, size_t kind, uint64_t from, uint64_t to,
                      const char *name)
{
    const muc_timeline_figure *f = t->figure;
    double x = x_of(t, from), width = x_of(t, to) - x;
    size_t letters = (size_t)(width / CHARACTER);

    muc_text_add(
        &t->text,
        "<g><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" class=\"%s\"/><title>", x,
        y_of(lane), width, BAR_HEIGHT, muc_svg_fill(kind));
    muc_xml_add(&t->text, name);
    muc_text_add(&t->text, "\n");
    add_time(&t->text, (double)(to - from) * f->tick);
    muc_text_add(&t->text, " from ");
    add_time(&t->text, (double)from * f->tick);
    muc_text_add(&t->text, "</title>");
    if (letters > 4) {
        muc_text_add(&t->text, "<text x=\"%.1f\" y=\"%.1f\" class=\"small\">", x + 3,
                     y_of(lane) + 16);
        muc_xml_add_cut(&t->text, name, letters - 1);
        muc_text_add(&t->text, "</text>");
    }
    muc_text_add(&t->text, "</g>\n");
}

/* The columns that a narrow bar lies in, one or two and a bit more. */
static void take(muc_timeline *t, size_t lane, size_t kind, double from, double to)
{
    for (size_t i = (size_t)from; i < WIDTH && (double)i < to; i++) {
        column *c = &t->columns[lane * WIDTH + i];
        double first = from > (double)i ? from : (double)i;
        double last = to < (double)i + 1 ? to : (double)i + 1;

        c->taken += last - first;
        if (last - first > c->most) {
            c->most = last - first;
            c->kind = (uint16_t)kind;
        }
    }
}

void muc_timeline_add(muc_timeline *t, size_t lane, size_t kind, uint64_t from, uint64_t to,
                      const char *name)
{
    const muc_timeline_figure *f = t->figure;

    from = from < f->from ? f->from : from;
    to = to > f->to ? f->to : to;
    if (from >= to)
        return;
    t->is_drawn[kind % MOST_KINDS] = true;
    if (x_of(t, to) - x_of(t, from) >= WIDE)
        draw_wide(t, lane, kind, from, to, name ? name : f->kinds[kind]);
    else
        take(t, lane, kind, x_of(t, from) - LEFT, x_of(t, to) - LEFT);
}

static unsigned shade_of(const column *c)
{
    unsigned shade = (unsigned)(c->taken * SHADES + 0.999);

    return shade < SHADES ? shade : SHADES;
}

/* Columns of one kind and shade that lie side by side are one bar. */
static void draw_lane(muc_timeline *t, size_t lane)
{
    const column *columns = t->columns + lane * WIDTH;

    for (size_t i = 0, next; i < WIDTH; i = next) {
        unsigned shade = shade_of(&columns[i]);

        for (next = i + 1; next < WIDTH && shade_of(&columns[next]) == shade &&
                           columns[next].kind == columns[i].kind;)
            next++;
        if (shade == 0)
            continue;
        muc_text_add(&t->text,
                     "<rect x=\"%zu\" y=\"%.1f\" width=\"%zu\" height=\"%d\" class=\"%s\" "
                     "fill-opacity=\"%.1f\"><title>",
                     LEFT + i, y_of(lane), next - i, BAR_HEIGHT, muc_svg_fill(columns[i].kind),
                     (double)shade / SHADES);
        muc_xml_add(&t->text, t->figure->kinds[columns[i].kind]);
        muc_text_add(&t->text, "</title></rect>\n");
    }
}

/* ---- around them ---- */

static void draw_axis(muc_text *text, const muc_timeline_figure *f)
{
    double from = (double)f->from * f->tick, range = (double)(f->to - f->from) * f->tick;
    double step = muc_svg_step(range, MOST_MARKS), bottom = y_of(f->lane_count);

    for (double mark = ceil(from / step); mark * step <= from + range; mark++) {
        double x = LEFT + (mark * step - from) / range * WIDTH;

        muc_text_add(text,
                     "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%.1f\" class=\"grid\"/>"
                     "<text x=\"%.1f\" y=\"%d\" class=\"middle\">%.10g</text>\n",
                     x, TOP - 8, x, bottom, x, TOP - 12, mark * step);
    }
    muc_text_add(text, "<text x=\"%d\" y=\"%d\" class=\"end\">µs</text>\n", LEFT - 40, TOP - 12);
    for (size_t lane = 0; lane < f->lane_count; lane++) {
        muc_text_add(text, "<text x=\"%d\" y=\"%.1f\" class=\"end\">", LEFT - 8, y_of(lane) + 16);
        muc_xml_add(text, f->lanes[lane]);
        muc_text_add(text, "</text>\n");
    }
}

/* the kinds that were drawn; gives the height */
static double draw_legend(const muc_timeline *t, muc_text *text)
{
    double top = y_of(t->figure->lane_count) + 8;
    size_t shown = 0, columns = WIDTH / LEGEND_WIDTH;

    for (size_t kind = 0; kind < t->figure->kind_count && kind < MOST_KINDS; kind++) {
        double x = LEFT + (double)(shown % columns) * LEGEND_WIDTH;
        double y = top + (double)(shown / columns) * LEGEND_HEIGHT;

        if (!t->is_drawn[kind])
            continue;
        shown++;
        muc_text_add(text, "<text x=\"%.1f\" y=\"%.1f\">", x + 18, y + 11);
        muc_xml_add(text, t->figure->kinds[kind]);
        muc_text_add(
            text, "</text><rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" class=\"%s\"/>\n",
            x, y, muc_svg_fill(kind));
    }
    return top + (double)((shown + columns - 1) / columns) * LEGEND_HEIGHT + 4;
}

void muc_timeline_finish(muc_timeline *t, muc_report *report)
{
    muc_text svg = { 0 }, around = { 0 };

    if (report) {
        double height;

        draw_axis(&around, t->figure);
        height = draw_legend(t, &around);
        for (size_t lane = 0; lane < t->figure->lane_count; lane++)
            draw_lane(t, lane);
        muc_svg_begin(&svg, LEFT + WIDTH + RIGHT, height);
        muc_text_add(&svg, "%s%s</svg>\n", around.data ? around.data : "",
                     t->text.data ? t->text.data : "");
        svg.failed |= around.failed || t->text.failed;
        muc_svg_hang(report, t->figure->title, t->figure->note, &svg);
    }
    muc_text_free(&around);
    muc_text_free(&t->text);
    free(t->columns);
    free(t);
}

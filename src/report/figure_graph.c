/* figure_graph.c - a graph as boxes and arrows. */
#include <inttypes.h>

#include "report/figures.h"
#include "report/layered.h"
#include "report/svg.h"

enum {
    MARGIN = 12,
    BOX_HEIGHT = 36,
    LAYER_HEIGHT = 62,
    NAME_LETTERS = 23, /* that a box holds */
    DETAIL_LETTERS = 27,
};

typedef struct drawing {
    const muc_graph_figure *figure;
    muc_layered layout;
    muc_text text;
} drawing;

static double top_of(const drawing *d, uint32_t node)
{
    return MARGIN + (double)d->layout.nodes[node].layer * LAYER_HEIGHT;
}

static double middle_of(const drawing *d, uint32_t node)
{
    return MARGIN + d->layout.nodes[node].x;
}

static bool is_point(const drawing *d, uint32_t node)
{
    return node >= d->figure->box_count;
}

/* From the lower edge of one to the upper edge of the next, upright at both ends; down through a
 * point's layer it goes straight. */
static void draw_link(drawing *d, const muc_graph_arrow *link)
{
    double x = middle_of(d, link->from), to_x = middle_of(d, link->to);
    double y = top_of(d, link->from) + BOX_HEIGHT, to_y = top_of(d, link->to);
    double bend = (to_y - y) / 2;

    if (!is_point(d, link->from))
        muc_text_add(&d->text, "<path d=\"M%.1f %.1f", x, y);
    muc_text_add(&d->text, " C%.1f %.1f %.1f %.1f %.1f %.1f", x, y + bend, to_x, to_y - bend, to_x,
                 to_y);
    if (is_point(d, link->to))
        muc_text_add(&d->text, " V%.1f", to_y + BOX_HEIGHT);
    else
        muc_text_add(&d->text, "\" class=\"arrow\" marker-end=\"url(#head)\"/>\n");
}

static void add_tip(muc_text *text, const muc_graph_box *box)
{
    const char *const lines[] = { box->name, box->detail, box->tip };
    bool any = false;

    muc_text_add(text, "<title>");
    for (size_t i = 0; i < MUC_COUNT(lines); i++) {
        if (!lines[i] || !*lines[i])
            continue;
        muc_text_add(text, any ? "\n" : "");
        muc_xml_add(text, lines[i]);
        any = true;
    }
    muc_text_add(text, "</title>");
}

static void draw_box(drawing *d, uint32_t i)
{
    const muc_graph_box *box = &d->figure->boxes[i];
    double x = middle_of(d, i), y = top_of(d, i);
    bool one_line = !box->detail || !*box->detail;

    muc_text_add(&d->text, "<g>");
    add_tip(&d->text, box);
    muc_text_add(&d->text,
                 "<rect x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" rx=\"4\" fill=\"%s\" "
                 "stroke=\"#555\"/><text x=\"%.1f\" y=\"%.1f\" class=\"middle\">",
                 x - MUC_LAYERED_NODE_WIDTH / 2.0, y, MUC_LAYERED_NODE_WIDTH, BOX_HEIGHT,
                 muc_svg_fill(box->kind), x, y + (one_line ? 22 : 15));
    muc_xml_add_cut(&d->text, box->name, NAME_LETTERS);
    muc_text_add(&d->text, "</text>");
    if (!one_line) {
        muc_text_add(&d->text, "<text x=\"%.1f\" y=\"%.1f\" class=\"middle small\">", x, y + 29);
        muc_xml_add_cut(&d->text, box->detail, DETAIL_LETTERS);
        muc_text_add(&d->text, "</text>");
    }
    muc_text_add(&d->text, "</g>\n");
}

static void draw(drawing *d)
{
    muc_text_add(
        &d->text,
        "<svg width=\"%.0f\" height=\"%.0f\" "
        "role=\"img\">\n<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" "
        "markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" "
        "fill=\"#555\"/></marker></defs>\n",
        d->layout.width + 2 * MARGIN,
        ((double)d->layout.layer_count - 1) * LAYER_HEIGHT + BOX_HEIGHT + 2 * MARGIN);
    for (size_t i = 0; i < d->layout.link_count; i++)
        draw_link(d, &d->layout.links[i]);
    for (uint32_t i = 0; i < d->figure->box_count; i++)
        draw_box(d, i);
    muc_text_add(&d->text, "</svg>\n");
}

void muc_report_add_graph(muc_report *report, const muc_graph_figure *figure)
{
    drawing d = { .figure = figure };
    const char *note = "";

    if (figure->box_count == 0)
        note = "The graph has no nodes.";
    else if (figure->box_count > MUC_GRAPH_MOST_BOXES)
        note = "The graph has too many nodes to be drawn.";
    else if (muc_layered_make(figure->box_count, figure->arrows, figure->arrow_count, &d.layout))
        draw(&d);
    else
        report->failed = true;
    muc_layered_free(&d.layout);
    muc_svg_hang(report, figure->title, note, &d.text);
}

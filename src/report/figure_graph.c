/* figure_graph.c - draws a graph as boxes and arrows. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/figures.h"
#include "report/layered.h"
#include "report/svg.h"

enum {
    MARGIN = 12,
    LEFT = 34, /* room for the handles of blocks */
    BOX_HEIGHT = 36,
    LAYER_HEIGHT = 62,
    NAME_LETTERS = 23, /* that a box holds */
    DETAIL_LETTERS = 27,
};

/* Rows that belong together in the page: a row of one node through which everything passes, or
 * those between two of them, a block, which folds into one box. */
typedef struct piece {
    uint32_t first, last; /* rows, both included */
    bool folds;
} piece;

typedef struct drawing {
    const muc_graph_figure *figure;
    muc_layered layout;
    piece *pieces;
    uint32_t piece_count;
    uint32_t *piece_of; /* [layer_count] */
    muc_text text;
} drawing;

static double top_of(const drawing *d, uint32_t node)
{
    return MARGIN + (double)d->layout.nodes[node].layer * LAYER_HEIGHT;
}

static double middle_of(const drawing *d, uint32_t node)
{
    return LEFT + d->layout.nodes[node].x;
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

static void draw_frame(muc_text *text, double x, double y, const char *colour)
{
    muc_text_add(
        text, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" rx=\"4\" class=\"box%s%s\"/>",
        x - MUC_LAYERED_NODE_WIDTH / 2.0, y, MUC_LAYERED_NODE_WIDTH, BOX_HEIGHT, *colour ? " " : "",
        colour);
}

static void draw_words(muc_text *text, double x, double y, const char *name, const char *detail)
{
    bool one_line = !detail || !*detail;

    muc_text_add(text, "<text x=\"%.1f\" y=\"%.1f\" class=\"middle\">", x,
                 y + (one_line ? 22 : 15));
    muc_xml_add_name(text, name, NAME_LETTERS);
    muc_text_add(text, "</text>");
    if (one_line)
        return;
    muc_text_add(text, "<text x=\"%.1f\" y=\"%.1f\" class=\"middle small\">", x, y + 29);
    muc_xml_add_cut(text, detail, DETAIL_LETTERS);
    muc_text_add(text, "</text>");
}

static void draw_box(drawing *d, uint32_t i)
{
    const muc_graph_box *box = &d->figure->boxes[i];
    double x = middle_of(d, i), y = top_of(d, i);

    muc_text_add(&d->text, "<g class=\"node\">");
    add_tip(&d->text, box);
    draw_frame(&d->text, x, y, muc_svg_fill(box->kind));
    draw_words(&d->text, x, y, box->name, box->detail);
    muc_text_add(&d->text, "</g>\n");
}

/* ---- pieces ---- */

static bool is_within(const drawing *d, uint32_t node, const piece *p)
{
    uint32_t row = d->layout.nodes[node].layer;

    return row >= p->first && row <= p->last;
}

/* the arrows are drawn with the block that they lead into, through or out of */
static bool belongs(const drawing *d, const muc_graph_arrow *link, uint32_t index)
{
    uint32_t from = d->piece_of[d->layout.nodes[link->from].layer];
    uint32_t to = d->piece_of[d->layout.nodes[link->to].layer];

    return index == (d->pieces[to].folds || !d->pieces[from].folds ? to : from);
}

static void draw_open(drawing *d, uint32_t index)
{
    bool drawn = false;

    for (size_t i = 0; i < d->layout.link_count; i++) {
        const muc_graph_arrow *link = &d->layout.links[i];

        if (!is_point(d, link->from))
            drawn = belongs(d, link, index);
        if (drawn)
            draw_link(d, link);
    }
    for (uint32_t i = 0; i < d->figure->box_count; i++)
        if (is_within(d, i, &d->pieces[index]))
            draw_box(d, i);
}

/* the only node of the row */
static uint32_t node_in(const drawing *d, uint32_t row)
{
    uint32_t node = 0;

    while (d->layout.nodes[node].layer != row)
        node++;
    return node;
}

static void draw_handle(muc_text *text, double y, double height)
{
    muc_text_add(text,
                 "<g class=\"handle\"><title>fold</title><line x1=\"13\" y1=\"%.1f\" x2=\"13\" "
                 "y2=\"%.1f\" class=\"bracket\"/><rect x=\"5\" y=\"%.1f\" width=\"16\" "
                 "height=\"16\" rx=\"3\"/><text x=\"13\" y=\"%.1f\" "
                 "class=\"middle\">−</text></g>\n",
                 y, y + height, y, y + 12);
}

/* one box, below the node before and above the one behind, which has moved up to it */
static void draw_folded(drawing *d, const piece *p)
{
    uint32_t before = node_in(d, p->first - 1), behind = node_in(d, p->last + 1), count = 0;
    double x = middle_of(d, before), to_x = middle_of(d, behind);
    double y = MARGIN + (double)p->first * LAYER_HEIGHT, gap = LAYER_HEIGHT - BOX_HEIGHT;
    const char *first = "";
    char words[32];

    muc_text_add(&d->text, "<g class=\"folded\"><title>unfold");
    for (uint32_t i = 0; i < d->figure->box_count; i++)
        if (is_within(d, i, p)) {
            muc_text_add(&d->text, "\n");
            muc_xml_add(&d->text, d->figure->boxes[i].name);
            first = count++ ? first : d->figure->boxes[i].name;
        }
    muc_text_add(&d->text,
                 "</title><path d=\"M%.1f %.1f V%.1f\" class=\"arrow\" marker-end=\"url(#head)\"/>"
                 "<path d=\"M%.1f %.1f C%.1f %.1f %.1f %.1f %.1f %.1f\" class=\"arrow\" "
                 "marker-end=\"url(#head)\"/>",
                 x, y - gap, y, x, y + BOX_HEIGHT, x, y + BOX_HEIGHT + gap / 2, to_x,
                 y + BOX_HEIGHT + gap / 2, to_x, y + LAYER_HEIGHT);
    snprintf(words, sizeof(words), "+ %" PRIu32 " layers", count);
    draw_frame(&d->text, x, y, "");
    draw_words(&d->text, x, y, words, first);
    muc_text_add(&d->text, "</g>\n");
}

static void draw_piece(drawing *d, uint32_t index)
{
    const piece *p = &d->pieces[index];
    double saved = (double)(p->last - p->first) * LAYER_HEIGHT;

    if (!p->folds) {
        muc_text_add(&d->text, "<g class=\"piece\">\n");
        draw_open(d, index);
    } else {
        muc_text_add(&d->text, "<g class=\"piece block\" data-saves=\"%.0f\"><g class=\"open\">\n",
                     saved);
        draw_open(d, index);
        draw_handle(&d->text, MARGIN + (double)p->first * LAYER_HEIGHT, saved + BOX_HEIGHT);
        muc_text_add(&d->text, "</g>\n");
        draw_folded(d, p);
    }
    muc_text_add(&d->text, "</g>\n");
}

/* Rows of more than one node, or beside which an arrow passes, are joined. Without room for the
 * points of all arrows nobody knows where they pass: all rows are one piece. */
static bool find_pieces(drawing *d)
{
    const muc_layered *l = &d->layout;
    uint32_t *nodes = muc_calloc((size_t)l->layer_count + 1, sizeof(*nodes));
    bool passes = false;

    d->pieces = muc_calloc((size_t)l->layer_count + 1, sizeof(*d->pieces));
    d->piece_of = muc_calloc((size_t)l->layer_count + 1, sizeof(*d->piece_of));
    if (!nodes || !d->pieces || !d->piece_of) {
        free(nodes);
        return false;
    }
    for (size_t i = 0; i < l->node_count; i++)
        nodes[l->nodes[i].layer]++;
    for (size_t i = 0; i < l->link_count; i++)
        passes |= l->nodes[l->links[i].to].layer != l->nodes[l->links[i].from].layer + 1;
    for (uint32_t row = 0; row < l->layer_count; row++) {
        bool joins = row && (passes || (nodes[row] > 1 && nodes[row - 1] > 1));
        piece *p = &d->pieces[joins ? d->piece_count - 1 : d->piece_count++];

        p->first = joins ? p->first : row;
        p->last = row;
        p->folds = p->first > 0 && p->last > p->first && row + 1 < l->layer_count;
        d->piece_of[row] = d->piece_count - 1;
    }
    free(nodes);
    return true;
}

static void draw(drawing *d)
{
    muc_svg_begin(&d->text, d->layout.width + LEFT + MARGIN,
                  ((double)d->layout.layer_count - 1) * LAYER_HEIGHT + BOX_HEIGHT + 2 * MARGIN);
    muc_text_add(
        &d->text,
        "<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" "
        "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" class=\"head\"/></marker>"
        "</defs>\n");
    for (uint32_t i = 0; i < d->piece_count; i++)
        draw_piece(d, i);
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
    else if (muc_layered_make(figure->box_count, figure->arrows, figure->arrow_count, &d.layout) &&
             find_pieces(&d))
        draw(&d);
    else
        report->failed = true;
    muc_layered_free(&d.layout);
    free(d.pieces);
    free(d.piece_of);
    muc_svg_hang(report, figure->title, note, &d.text);
}

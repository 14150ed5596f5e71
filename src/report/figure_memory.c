/* figure_memory.c - draws what lies where in a memory, step by step. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/figures.h"
#include "report/svg.h"

enum {
    LEFT = 80,  /* room for the addresses */
    RIGHT = 28, /* and for those of parts */
    TOP = 24,
    BELOW = 44,
    HEIGHT = 420, /* of the memory */
    LEAST_WIDTH = 1000,
    MOST_WIDTH = 3000,
    STEP_WIDTH = 16,
    MOST_LABELS = 24,
    CHARACTER = 6, /* pixels of a letter, about */
};

typedef struct canvas {
    const muc_memory_figure *figure;
    muc_text text;
    double width; /* of all steps */
    uint64_t top; /* the address at the upper edge */
} canvas;

static double x_of(const canvas *c, double step)
{
    uint32_t steps = c->figure->step_count ? c->figure->step_count : 1;

    return LEFT + step / steps * c->width;
}

static double y_of(const canvas *c, double address)
{
    return TOP + HEIGHT - address / (double)c->top * HEIGHT;
}

static uint64_t top_of(const muc_memory_figure *f)
{
    uint64_t top = f->peak > f->bound ? f->peak : f->bound;

    for (size_t i = 0; i < f->buffer_count; i++) {
        uint64_t end = f->buffers[i].address + f->buffers[i].bytes;

        top = end > top ? end : top;
    }
    /* the memory's end where it is near enough for the rest to be seen */
    if (f->limit > top && f->limit / 2 < top)
        top = f->limit;
    return top ? top : 1;
}

static const char *step_name(const muc_memory_figure *f, uint32_t step)
{
    return f->steps && step < f->step_count ? f->steps[step] : NULL;
}

static void add_step(muc_text *text, const muc_memory_figure *f, uint32_t step)
{
    muc_text_add(text, "%" PRIu32, step);
    if (step_name(f, step)) {
        muc_text_add(text, " ");
        muc_xml_add(text, step_name(f, step));
    }
}

static void add_tip(muc_text *text, const muc_memory_figure *f, const muc_memory_buffer *b)
{
    muc_text_add(text, "<title>");
    muc_xml_add(text, b->name);
    muc_text_add(text, "\n");
    muc_xml_add_count(text, b->bytes);
    muc_text_add(text, " bytes at ");
    muc_xml_add_count(text, b->address);
    muc_text_add(text, "\nstep ");
    add_step(text, f, b->first);
    if (b->last != b->first) {
        muc_text_add(text, " to ");
        add_step(text, f, b->last);
    }
    muc_text_add(text, "</title>");
}

static void draw_buffer(canvas *c, size_t index)
{
    const muc_memory_buffer *b = &c->figure->buffers[index];
    double x = x_of(c, b->first), y = y_of(c, (double)(b->address + b->bytes));
    double width = x_of(c, b->last + 1.0) - x, height = y_of(c, (double)b->address) - y;
    size_t letters = width > CHARACTER ? (size_t)(width / CHARACTER) - 1 : 0;

    if (b->bytes == 0)
        return;
    muc_text_add(&c->text,
                 "<g><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"%s "
                 "box\" stroke-width=\"0.5\"/>",
                 x, y, width, height, muc_svg_fill(index));
    add_tip(&c->text, c->figure, b);
    if (height >= 11 && letters >= 3) {
        muc_text_add(&c->text, "<text x=\"%.1f\" y=\"%.1f\" class=\"small\">", x + 3,
                     y + height / 2 + 3.5);
        muc_xml_add_name(&c->text, b->name, letters);
        muc_text_add(&c->text, "</text>");
    }
    muc_text_add(&c->text, "</g>\n");
}

/* word: at the line's right end */
static void draw_line(canvas *c, uint64_t address, const char *colour, const char *dashes,
                      const char *word, int below)
{
    double y = y_of(c, (double)address);

    if (address == 0 || address > c->top)
        return;
    muc_text_add(&c->text,
                 "<line x1=\"%d\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\" "
                 "stroke-width=\"1.5\" stroke-dasharray=\"%s\"/>"
                 "<text x=\"%.1f\" y=\"%.1f\" class=\"end small mark %s\">%s ",
                 LEFT, y, LEFT + c->width, y, colour, dashes, LEFT + c->width - 3,
                 y + (below ? 11 : -4), colour, word);
    muc_xml_add_count(&c->text, address);
    muc_text_add(&c->text, "</text>\n");
}

static void draw_addresses(canvas *c)
{
    double step = muc_svg_step((double)c->top, 8);

    step = step < 1 ? 1 : step;
    for (double at = 0; at <= (double)c->top; at += step) {
        muc_text_add(&c->text,
                     "<line x1=\"%d\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"grid\"/>"
                     "<text x=\"%d\" y=\"%.1f\" class=\"end\">",
                     LEFT, y_of(c, at), LEFT + c->width, y_of(c, at), LEFT - 6, y_of(c, at) + 4);
        muc_xml_add_count(&c->text, (uint64_t)at);
        muc_text_add(&c->text, "</text>\n");
    }
}

static void draw_steps(canvas *c)
{
    double step = muc_svg_step(c->figure->step_count ? c->figure->step_count : 1, MOST_LABELS);

    step = step < 1 ? 1 : step;
    for (double at = 0; at < c->figure->step_count; at += step) {
        muc_text_add(&c->text, "<text x=\"%.1f\" y=\"%d\" class=\"middle\">%.0f<title>",
                     x_of(c, at + 0.5), TOP + HEIGHT + 16, at);
        add_step(&c->text, c->figure, (uint32_t)at);
        muc_text_add(&c->text, "</title></text>\n");
    }
    muc_text_add(&c->text,
                 "<text x=\"%.1f\" y=\"%d\" class=\"middle\">step</text>"
                 "<text x=\"%d\" y=\"%d\" class=\"end\">address</text>\n",
                 LEFT + c->width / 2, TOP + HEIGHT + 34, LEFT - 6, TOP - 10);
}

static void describe(const muc_memory_figure *f, muc_text *note)
{
    muc_xml_add_count(note, f->peak);
    muc_text_add(note, " bytes used%s", f->part_count ? " at once" : "");
    if (f->bound) {
        muc_text_add(note, ", no plan needs fewer than ");
        muc_xml_add_count(note, f->bound);
    }
    if (f->limit) {
        muc_text_add(note, ", the memor%s ", f->part_count ? "ies have" : "y has");
        muc_xml_add_count(note, f->limit);
    }
    muc_text_add(note, ".");
}

static void draw_parts(canvas *c)
{
    for (size_t i = 0; i < c->figure->part_count; i++) {
        const muc_memory_part *part = &c->figure->parts[i];
        double y = y_of(c, (double)part->address);

        muc_text_add(&c->text,
                     "<line x1=\"%d\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"ink\"/>"
                     "<text x=\"%.1f\" y=\"%.1f\">",
                     LEFT, y, LEFT + c->width, y, LEFT + c->width + 3, y - 2);
        muc_xml_add(&c->text, part->name);
        muc_text_add(&c->text, "</text>\n");
    }
}

void muc_report_add_memory(muc_report *report, const muc_memory_figure *figure)
{
    canvas c = { .figure = figure, .top = top_of(figure) };
    muc_text note = { 0 };

    c.width = (double)figure->step_count * STEP_WIDTH;
    c.width = c.width < LEAST_WIDTH ? LEAST_WIDTH : c.width > MOST_WIDTH ? MOST_WIDTH : c.width;
    muc_svg_begin(&c.text, LEFT + c.width + RIGHT, TOP + HEIGHT + BELOW);
    draw_addresses(&c);
    for (size_t i = 0; i < figure->buffer_count; i++)
        draw_buffer(&c, i);
    draw_steps(&c);
    draw_parts(&c);
    draw_line(&c, figure->limit, "ink", "1,0", "end of the memory", 1);
    if (figure->part_count == 0) /* of several it is not an address */
        draw_line(&c, figure->peak, muc_svg_stroke(4), "6,3", "used", 0);
    draw_line(&c, figure->bound, muc_svg_stroke(2), "2,3", "lower bound", 1);
    muc_text_add(&c.text, "</svg>\n");
    describe(figure, &note);
    muc_svg_hang(report, figure->title, note.data, &c.text);
    report->failed = report->failed || note.failed;
    muc_text_free(&note);
}

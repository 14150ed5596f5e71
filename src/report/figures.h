/* figures.h - pictures of a report's page: memory over time, a graph, a line plot.
 *
 * Each is drawn when it is added, so that nothing of what describes it need live longer; only the
 * HTML form shows it. Numbers in pictures are cut off at a tenth of a pixel: the same description
 * gives the same bytes. Text is shown in its visible form; NULL text is left out.
 */
#ifndef MUC_REPORT_FIGURES_H
#define MUC_REPORT_FIGURES_H

#include "report/report_builder.h"

/* ---- memory over time: a rectangle a buffer ---- */

typedef struct muc_memory_buffer {
    const char *name;
    uint64_t address, bytes; /* in the memory */
    uint32_t first, last;    /* steps in which it lives, both included, below step_count */
} muc_memory_buffer;

typedef struct muc_memory_part {
    const char *name;
    uint64_t address; /* where it begins */
} muc_memory_part;

typedef struct muc_memory_figure {
    const char *title; /* "arena in sram1" */
    const muc_memory_buffer *buffers;
    size_t buffer_count;
    const char *const *steps; /* names, or NULL: numbers alone */
    uint32_t step_count;
    uint64_t peak;                /* bytes that are used */
    uint64_t bound;               /* no plan needs fewer; 0: not known */
    uint64_t limit;               /* bytes that the memory has; 0: not known */
    const muc_memory_part *parts; /* of several memories, drawn one above the other */
    size_t part_count;
} muc_memory_figure;

void muc_report_add_memory(muc_report *report, const muc_memory_figure *figure);

/* ---- a graph: a box a node, an arrow an edge, from the top down ---- */

typedef struct muc_graph_box {
    const char *name;   /* first line */
    const char *detail; /* second line, smaller */
    const char *tip;    /* shown on pointing, below name and detail in full */
    uint32_t kind;      /* boxes of one kind have one colour */
} muc_graph_box;

typedef struct muc_graph_arrow {
    uint32_t from, to; /* boxes, from < to */
} muc_graph_arrow;

typedef struct muc_graph_figure {
    const char *title;
    const muc_graph_box *boxes;
    size_t box_count; /* more than MUC_GRAPH_MOST_BOXES: a sentence stands for the picture */
    const muc_graph_arrow *arrows;
    size_t arrow_count;
} muc_graph_figure;

enum { MUC_GRAPH_MOST_BOXES = 2000 };

void muc_report_add_graph(muc_report *report, const muc_graph_figure *figure);

/* ---- lines over numbers ---- */

typedef struct muc_plot_line {
    const char *name;
    const double *x, *y; /* x ascending; points that are not finite are left out */
    size_t count;
    const char *const *labels; /* [count]: points with names, "" for none, in place of a line; NULL:
                                a line */
} muc_plot_line;

typedef struct muc_plot_figure {
    const char *title, *x_name, *y_name; /* "loss over steps", "step", "loss" */
    const muc_plot_line *lines;
    size_t line_count;
    bool logarithmic; /* both axes; what is not above 0 is left out */
} muc_plot_figure;

void muc_report_add_plot(muc_report *report, const muc_plot_figure *figure);

/* ---- layers below the roofs of a machine ---- */

typedef struct muc_roof_point {
    const char *name;
    double macs, bytes, time; /* a layer without one of them is not a point of its own */
} muc_roof_point;

typedef struct muc_roofline_figure {
    const char *x_name, *y_name;        /* "MACs for each byte of DRAM", "MACs/s" */
    const char *roof_name, *layer_name; /* "roofs: DRAM, then array", "stages" */
    muc_roof_point whole;               /* "the whole call" */
    const muc_roof_point *layers;
    size_t count;                 /* 96 points are drawn at most */
    double peak_macs, peak_bytes; /* the most in a unit of time; not above 0: nothing is drawn */
} muc_roofline_figure;

void muc_report_add_roofline(muc_report *report, const muc_roofline_figure *figure);

/* ---- what several workers do when: a row each, a bar for each piece of work ---- */

typedef struct muc_timeline muc_timeline;

typedef struct muc_timeline_figure {
    const char *title, *note;
    const char *const *lanes; /* [lane_count], from the top down */
    size_t lane_count;
    const char *const *kinds; /* [kind_count]: a colour each, in the legend */
    size_t kind_count;
    uint64_t from, to; /* what is shown, in ticks; to is above from */
    double tick;       /* microseconds of one */
} muc_timeline_figure;

/* Begins a picture; figure and its names are borrowed until it is finished. However many bars are
 * added, the picture is of bounded size: what is narrower than a few pixels is joined to bars of
 * its most frequent kind, paler where less of the time is taken. */
muc_status muc_timeline_begin(muc_context *ctx, const muc_timeline_figure *figure,
                              muc_timeline **out);
/* Bars of a lane come in the order of time and do not overlap; outside of from..to nothing is
 * drawn. name is shown on pointing, or NULL: the kind's. */
void muc_timeline_add(muc_timeline *timeline, size_t lane, size_t kind, uint64_t from, uint64_t to,
                      const char *name);
/* Hangs the picture on the report, and frees it; report NULL: frees it alone. */
void muc_timeline_finish(muc_timeline *timeline, muc_report *report);

#endif

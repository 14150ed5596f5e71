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

typedef struct muc_memory_figure {
    const char *title; /* "arena in sram1" */
    const muc_memory_buffer *buffers;
    size_t buffer_count;
    const char *const *steps; /* names, or NULL: numbers alone */
    uint32_t step_count;
    uint64_t peak;  /* bytes that are used */
    uint64_t bound; /* no plan needs fewer; 0: not known */
    uint64_t limit; /* bytes that the memory has; 0: not known */
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
} muc_plot_line;

typedef struct muc_plot_figure {
    const char *title, *x_name, *y_name; /* "loss over steps", "step", "loss" */
    const muc_plot_line *lines;
    size_t line_count;
} muc_plot_figure;

void muc_report_add_plot(muc_report *report, const muc_plot_figure *figure);

#endif

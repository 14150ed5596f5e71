/* figure_roofline.c - how much each layer computes of a byte and in a unit of time, below the roofs
 * of the machine (after Williams, Waterman and Patterson 2009). */
#include "report/figures.h"

enum { MOST_POINTS = 96, ROOF_POINTS = 3 };

typedef struct points {
    double x[MOST_POINTS], y[MOST_POINTS]; /* MACs a byte, MACs in a unit of time */
    const char *labels[MOST_POINTS];
    size_t count;
} points;

static void add_point(points *p, const muc_roof_point *point)
{
    if (!(point->macs > 0 && point->bytes > 0 && point->time > 0) || p->count == MOST_POINTS)
        return;
    p->x[p->count] = point->macs / point->bytes;
    p->y[p->count] = point->macs / point->time;
    p->labels[p->count++] = point->name;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* from half the least to twice the most that any point has, with the ridge between them */
static void make_roof(const muc_roofline_figure *figure, const points *layers,
                      double x[ROOF_POINTS], double y[ROOF_POINTS])
{
    double ridge = figure->peak_macs / figure->peak_bytes, least = ridge, most = ridge;

    for (size_t i = 0; i < layers->count; i++) {
        least = smaller(least, layers->x[i]);
        most = -smaller(-most, -layers->x[i]);
    }
    x[0] = least / 2;
    x[1] = ridge;
    x[2] = most * 2;
    for (unsigned i = 0; i < ROOF_POINTS; i++)
        y[i] = smaller(figure->peak_macs, figure->peak_bytes * x[i]);
}

void muc_report_add_roofline(muc_report *report, const muc_roofline_figure *figure)
{
    points layers = { .count = 0 }, whole = { .count = 0 };
    double x[ROOF_POINTS], y[ROOF_POINTS];

    for (size_t i = 0; i < figure->count; i++)
        add_point(&layers, &figure->layers[i]);
    if (layers.count == 0 || !(figure->peak_macs > 0 && figure->peak_bytes > 0))
        return;
    add_point(&whole, &figure->whole);
    whole.labels[0] = ""; /* the legend names it */
    make_roof(figure, &layers, x, y);
    {
        const muc_plot_line lines[] = {
            { figure->roof_name, x, y, ROOF_POINTS, NULL },
            { figure->layer_name, layers.x, layers.y, layers.count, layers.labels },
            { figure->whole.name, whole.x, whole.y, whole.count, whole.labels },
        };
        const muc_plot_figure plot = { "roofline", figure->x_name,   figure->y_name,
                                       lines,      MUC_COUNT(lines), true };

        muc_report_add_plot(report, &plot);
    }
}

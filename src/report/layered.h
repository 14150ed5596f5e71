/* layered.h - where the nodes of a graph stand in a picture of it: in layers, every arrow from a
 * layer to one below (after Sugiyama, Tagawa and Toda 1981).
 *
 * An arrow that crosses layers passes through points in them, which take part in the layout as
 * narrow nodes do, so that it goes round the nodes between. The points of all arrows are bounded;
 * arrows beyond that go straight.
 */
#ifndef MUC_REPORT_LAYERED_H
#define MUC_REPORT_LAYERED_H

#include "report/figures.h"

typedef struct muc_layered_node {
    uint32_t layer;
    uint32_t place; /* in its layer, from the left */
    double x;       /* of its middle, in pixels */
} muc_layered_node;

typedef struct muc_layered {
    muc_layered_node *nodes; /* the graph's, then the points */
    size_t node_count;
    muc_graph_arrow
        *links; /* pieces of arrows, from node to node; those of one follow one another */
    size_t link_count;
    uint32_t layer_count;
    double width; /* pixels; every node lies between 0 and this */
} muc_layered;

enum { MUC_LAYERED_NODE_WIDTH = 168, MUC_LAYERED_POINT_WIDTH = 10, MUC_LAYERED_GAP = 16 };

/* Lays out a graph of at least one and at most MUC_GRAPH_MOST_BOXES nodes. False if memory is out;
 * *out is then empty. */
bool muc_layered_make(size_t count, const muc_graph_arrow *arrows, size_t arrow_count,
                      muc_layered *out);
void muc_layered_free(muc_layered *layout);

#endif

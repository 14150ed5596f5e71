/* layered.c - lays a graph out: layers by longest paths, their order by barycentres, coordinates by
 * isotonic regression. */
#include "report/layered.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_POINTS = 20000, ORDER_SWEEPS = 12, PLACE_SWEEPS = 40 };

/* the other ends of the links of each node */
typedef struct neighbours {
    uint32_t *start; /* [count + 1] */
    uint32_t *nodes;
} neighbours;

typedef struct work {
    muc_layered *layout;
    size_t own;              /* nodes that are not points */
    neighbours above, below; /* by links */
    uint32_t **layers;       /* nodes of each, in order; into layer_nodes */
    uint32_t *sizes;
    uint32_t *layer_nodes;
    double *wish;           /* [node_count] where a node would like to be */
    double *sums, *weights; /* [node_count] for pack_layer */
    uint32_t *heads;        /* [node_count] for pack_layer */
} work;

static bool find_neighbours(neighbours *out, size_t count, const muc_graph_arrow *links,
                            size_t link_count, bool above)
{
    uint32_t *start = muc_calloc(count + 2, sizeof(*start));

    out->start = start;
    out->nodes = muc_calloc(link_count + 1, sizeof(*out->nodes));
    if (!start || !out->nodes)
        return false;
    for (size_t i = 0; i < link_count; i++)
        start[(above ? links[i].to : links[i].from) + 2]++;
    for (size_t i = 2; i < count + 2; i++)
        start[i] += start[i - 1];
    /* start[n + 1] walks from where n's begin to where they end */
    for (size_t i = 0; i < link_count; i++)
        out->nodes[start[(above ? links[i].to : links[i].from) + 1]++] =
            above ? links[i].from : links[i].to;
    return true;
}

static void free_neighbours(neighbours *n)
{
    free(n->start);
    free(n->nodes);
}

/* ---- layers ---- */

/* A node stands below all that it comes from; one that comes from nothing right above its first
 * user. */
static void choose_layers(muc_layered *layout, size_t count, const neighbours *above,
                          const neighbours *below)
{
    muc_layered_node *nodes = layout->nodes;

    for (size_t n = 0; n < count; n++)
        for (uint32_t i = above->start[n]; i < above->start[n + 1]; i++)
            if (nodes[above->nodes[i]].layer + 1 > nodes[n].layer)
                nodes[n].layer = nodes[above->nodes[i]].layer + 1;
    for (size_t n = 0; n < count; n++) {
        uint32_t least = UINT32_MAX;

        for (uint32_t i = below->start[n]; i < below->start[n + 1]; i++)
            if (nodes[below->nodes[i]].layer < least)
                least = nodes[below->nodes[i]].layer;
        if (above->start[n] == above->start[n + 1] && least != UINT32_MAX)
            nodes[n].layer = least - 1;
        if (nodes[n].layer >= layout->layer_count)
            layout->layer_count = nodes[n].layer + 1;
    }
}

static size_t points_of(const muc_layered *layout, const muc_graph_arrow *arrow, size_t left)
{
    size_t crossed = layout->nodes[arrow->to].layer - layout->nodes[arrow->from].layer - 1;

    return crossed <= left ? crossed : 0;
}

static bool cut_arrows(muc_layered *layout, size_t count, const muc_graph_arrow *arrows,
                       size_t arrow_count)
{
    size_t points = 0;
    muc_layered_node *grown;

    for (size_t i = 0; i < arrow_count; i++)
        points += points_of(layout, &arrows[i], MOST_POINTS - points);
    grown = muc_calloc(count + points, sizeof(*grown));
    layout->links = muc_calloc(arrow_count + points + 1, sizeof(*layout->links));
    if (!grown || !layout->links) {
        free(grown);
        return false;
    }
    memcpy(grown, layout->nodes, count * sizeof(*grown));
    free(layout->nodes);
    layout->nodes = grown;
    layout->node_count = count;
    for (size_t i = 0; i < arrow_count; i++) {
        size_t own = points_of(layout, &arrows[i], MOST_POINTS + count - layout->node_count);
        uint32_t from = arrows[i].from;

        for (size_t j = 0; j < own; j++) {
            uint32_t point = (uint32_t)layout->node_count++;

            grown[point].layer = grown[from].layer + 1;
            layout->links[layout->link_count++] = (muc_graph_arrow){ from, point };
            from = point;
        }
        layout->links[layout->link_count++] = (muc_graph_arrow){ from, arrows[i].to };
    }
    return true;
}

static bool fill_layers(work *w)
{
    muc_layered *layout = w->layout;
    uint32_t *next;

    w->layers = muc_calloc(layout->layer_count, sizeof(*w->layers));
    w->sizes = muc_calloc(layout->layer_count, sizeof(*w->sizes));
    w->layer_nodes = muc_calloc(layout->node_count, sizeof(*w->layer_nodes));
    w->wish = muc_calloc(layout->node_count, sizeof(*w->wish));
    w->sums = muc_calloc(layout->node_count, sizeof(*w->sums));
    w->weights = muc_calloc(layout->node_count, sizeof(*w->weights));
    w->heads = muc_calloc(layout->node_count, sizeof(*w->heads));
    if (!w->layers || !w->sizes || !w->layer_nodes || !w->wish || !w->sums || !w->weights ||
        !w->heads)
        return false;
    for (size_t n = 0; n < layout->node_count; n++)
        w->sizes[layout->nodes[n].layer]++;
    next = w->layer_nodes;
    for (uint32_t l = 0; l < layout->layer_count; l++) {
        w->layers[l] = next;
        next += w->sizes[l];
        w->sizes[l] = 0;
    }
    for (size_t n = 0; n < layout->node_count; n++) {
        muc_layered_node *node = &layout->nodes[n];

        node->place = w->sizes[node->layer]++;
        w->layers[node->layer][node->place] = (uint32_t)n;
    }
    return true;
}

/* ---- order within layers ---- */

typedef struct sort_key {
    double wish;
    uint32_t place, node;
} sort_key;

static int by_wish(const void *a, const void *b)
{
    const sort_key *x = a, *y = b;

    if (x->wish != y->wish)
        return x->wish < y->wish ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* a node without neighbours there stays where it is */
static void order_layer(work *w, uint32_t layer, const neighbours *side, sort_key *keys)
{
    muc_layered_node *nodes = w->layout->nodes;

    for (uint32_t i = 0; i < w->sizes[layer]; i++) {
        uint32_t n = w->layers[layer][i], count = side->start[n + 1] - side->start[n];
        double sum = 0;

        for (uint32_t j = side->start[n]; j < side->start[n + 1]; j++)
            sum += (nodes[side->nodes[j]].place + 0.5) / w->sizes[nodes[side->nodes[j]].layer];
        keys[i] = (sort_key){ count ? sum / count : (i + 0.5) / w->sizes[layer], i, n };
    }
    qsort(keys, w->sizes[layer], sizeof(*keys), by_wish);
    for (uint32_t i = 0; i < w->sizes[layer]; i++) {
        w->layers[layer][i] = keys[i].node;
        nodes[keys[i].node].place = i;
    }
}

static bool order(work *w)
{
    sort_key *keys = muc_calloc(w->layout->node_count, sizeof(*keys));
    uint32_t layers = w->layout->layer_count;

    if (!keys)
        return false;
    for (unsigned sweep = 0; sweep < ORDER_SWEEPS; sweep++)
        for (uint32_t l = 0; l < layers; l++) {
            if (sweep % 2 == 0)
                order_layer(w, l, &w->above, keys);
            else
                order_layer(w, layers - 1 - l, &w->below, keys);
        }
    free(keys);
    return true;
}

/* ---- coordinates ---- */

static double width_of(const work *w, uint32_t node)
{
    return node < w->own ? MUC_LAYERED_NODE_WIDTH : MUC_LAYERED_POINT_WIDTH;
}

/* Arrows through points are straightened first; they hardly pull their ends aside. */
static double pull_of(const work *w, uint32_t a, uint32_t b)
{
    return a >= w->own && b >= w->own ? 8 : a >= w->own || b >= w->own ? 0.3 : 1;
}

static void add_pulls(const work *w, const neighbours *side, uint32_t n, double *sum,
                      double *weight)
{
    for (uint32_t j = side->start[n]; j < side->start[n + 1]; j++) {
        double pull = pull_of(w, n, side->nodes[j]);

        *sum += pull * w->layout->nodes[side->nodes[j]].x;
        *weight += pull;
    }
}

/* Puts a layer's nodes as near to their wishes as their order and widths allow: with the room that
 * those to the left need taken off, what remains must ascend, which pooling adjacent violators of
 * that rule solves by least squares. */
static void pack_layer(work *w, uint32_t layer)
{
    const uint32_t *row = w->layers[layer];
    double room = 0;
    uint32_t blocks = 0;

    for (uint32_t i = 0; i < w->sizes[layer]; i++) {
        if (i)
            room += (width_of(w, row[i - 1]) + width_of(w, row[i])) / 2 + MUC_LAYERED_GAP;
        w->sums[blocks] = w->wish[row[i]] - room;
        w->weights[blocks] = 1;
        w->heads[blocks++] = i;
        while (blocks > 1 && w->sums[blocks - 2] / w->weights[blocks - 2] >
                                 w->sums[blocks - 1] / w->weights[blocks - 1]) {
            blocks--;
            w->sums[blocks - 1] += w->sums[blocks];
            w->weights[blocks - 1] += w->weights[blocks];
        }
    }
    room = 0;
    for (uint32_t i = 0, b = 0; i < w->sizes[layer]; i++) {
        if (i)
            room += (width_of(w, row[i - 1]) + width_of(w, row[i])) / 2 + MUC_LAYERED_GAP;
        if (b + 1 < blocks && w->heads[b + 1] == i)
            b++;
        w->layout->nodes[row[i]].x = w->sums[b] / w->weights[b] + room;
    }
}

static void place_layer(work *w, uint32_t layer)
{
    for (uint32_t i = 0; i < w->sizes[layer]; i++) {
        uint32_t n = w->layers[layer][i];
        double sum = 0, weight = 0;

        add_pulls(w, &w->above, n, &sum, &weight);
        add_pulls(w, &w->below, n, &sum, &weight);
        w->wish[n] = weight > 0 ? sum / weight : w->layout->nodes[n].x;
    }
    pack_layer(w, layer);
}

/* every layer begins around the same middle, so that long graphs do not drift aside */
static void place(work *w)
{
    uint32_t layers = w->layout->layer_count;
    double least = 0, most = 0;

    for (uint32_t l = 0; l < layers; l++)
        pack_layer(w, l);
    for (unsigned sweep = 0; sweep < PLACE_SWEEPS; sweep++)
        for (uint32_t l = 0; l < layers; l++)
            place_layer(w, sweep % 2 ? layers - 1 - l : l);
    for (uint32_t n = 0; n < w->layout->node_count; n++) {
        double x = w->layout->nodes[n].x, half = width_of(w, n) / 2;

        least = n == 0 || x - half < least ? x - half : least;
        most = n == 0 || x + half > most ? x + half : most;
    }
    for (size_t n = 0; n < w->layout->node_count; n++)
        w->layout->nodes[n].x -= least;
    w->layout->width = most - least;
}

/* ---- all of it ---- */

static bool make(work *w, const muc_graph_arrow *arrows, size_t arrow_count)
{
    muc_layered *layout = w->layout;
    neighbours above = { 0 }, below = { 0 };
    bool ok;

    layout->nodes = muc_calloc(w->own, sizeof(*layout->nodes));
    ok = layout->nodes && find_neighbours(&above, w->own, arrows, arrow_count, true) &&
         find_neighbours(&below, w->own, arrows, arrow_count, false);
    if (ok)
        choose_layers(layout, w->own, &above, &below);
    free_neighbours(&above);
    free_neighbours(&below);
    ok = ok && cut_arrows(layout, w->own, arrows, arrow_count) &&
         find_neighbours(&w->above, layout->node_count, layout->links, layout->link_count, true) &&
         find_neighbours(&w->below, layout->node_count, layout->links, layout->link_count, false) &&
         fill_layers(w) && order(w);
    if (ok)
        place(w);
    return ok;
}

bool muc_layered_make(size_t count, const muc_graph_arrow *arrows, size_t arrow_count,
                      muc_layered *out)
{
    work w = { .layout = out, .own = count };
    bool ok;

    memset(out, 0, sizeof(*out));
    ok = make(&w, arrows, arrow_count);
    free_neighbours(&w.above);
    free_neighbours(&w.below);
    free(w.layers);
    free(w.sizes);
    free(w.layer_nodes);
    free(w.wish);
    free(w.sums);
    free(w.weights);
    free(w.heads);
    if (!ok)
        muc_layered_free(out);
    return ok;
}

void muc_layered_free(muc_layered *layout)
{
    free(layout->nodes);
    free(layout->links);
    memset(layout, 0, sizeof(*layout));
}

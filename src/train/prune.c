/* prune.c - masks and scores in the hooks of a pass, ranks between steps, and the cut at the end.
 */
#include "train/prune.h"

#include <float.h>
#include <stdlib.h>

enum { EACH = 50, LEAST_HEADS = 1, LEAST_NEURONS = 8, LANES = 4 };

static const double FIRST_SHARE = 0.1, KEPT = 0.95;

static bool is_masked(const muc_train_pruner *p, size_t unit)
{
    return p->scores[unit] < 0;
}

/* its score stays, negative */
static void mask_unit(const muc_train_pruner *p, size_t unit)
{
    p->scores[unit] = -fmax(p->scores[unit], DBL_MIN);
}

/* ---- in the pass ---- */

/* The units at a site: columns each of them has, and their first. 0: none are there. */
static size_t unit_columns(const muc_train_pruner *p, muc_train_site site, uint32_t layer,
                           size_t *first)
{
    const muc_train_units *u = &p->layers[layer];

    *first = site == MUC_TRAIN_SITE_HEADS ? u->heads : u->neurons;
    if (site == MUC_TRAIN_SITE_HEADS)
        return (size_t)u->heads_each * p->shape->config.head_dim;
    return site == MUC_TRAIN_SITE_NEURONS;
}

static void mask(const muc_train_pruner *p, size_t first, size_t width, size_t rows, size_t columns,
                 muc_scalar *x)
{
    for (size_t unit = 0; unit < columns / width; unit++)
        if (is_masked(p, first + unit))
            for (size_t r = 0; r < rows; r++)
                memset(x + r * columns + unit * width, 0, width * sizeof(*x));
}

static muc_status forward(void *arg, muc_train_site site, uint32_t layer, size_t rows,
                          size_t columns, muc_scalar *x)
{
    const muc_train_pruner *p = arg;
    size_t first, width;

    if (site != MUC_TRAIN_SITE_HEADS && site != MUC_TRAIN_SITE_NEURONS)
        return MUC_OK;
    width = unit_columns(p, site, layer, &first);
    mask(p, first, width, rows, columns, x);
    return MUC_OK;
}

/* products are summed over a head's columns before their absolute value is taken */
static muc_status back(void *arg, muc_train_site site, uint32_t layer, size_t rows, size_t columns,
                       const muc_scalar *x, muc_scalar *dx)
{
    const muc_train_pruner *p = arg;
    size_t first, width, each = site == MUC_TRAIN_SITE_HEADS ? p->shape->config.head_dim : 1;

    if (site != MUC_TRAIN_SITE_HEADS && site != MUC_TRAIN_SITE_NEURONS)
        return MUC_OK;
    width = unit_columns(p, site, layer, &first);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c += each) {
            const muc_scalar *a = x + r * columns + c, *g = dx + r * columns + c;
            double product = 0;

            for (size_t i = 0; i < each; i++)
                product += (double)a[i] * (double)g[i];
            p->now[first + c / width] += fabs(product);
        }
    mask(p, first, width, rows, columns, dx);
    return MUC_OK;
}

/* ---- between steps ---- */

typedef struct candidate {
    double score;
    size_t unit;
    uint32_t layer;
} candidate;

static int least_first(const void *a, const void *b)
{
    const candidate *x = a, *y = b;

    if (x->score != y->score)
        return x->score < y->score ? -1 : 1;
    return x->unit < y->unit ? -1 : 1;
}

static size_t count_of(const muc_train_pruner *p, uint32_t layer, bool neurons, size_t *first)
{
    const muc_train_units *u = &p->layers[layer];

    *first = neurons ? u->neurons : u->heads;
    return neurons ? p->shape->layers[layer].ffn_dim : u->head_units;
}

static size_t masked_of(const muc_train_pruner *p, uint32_t layer, bool neurons)
{
    size_t first, count = count_of(p, layer, neurons, &first), masked = 0;

    for (size_t i = first; i < first + count; i++)
        masked += is_masked(p, i);
    return masked;
}

static size_t totals(const muc_train_pruner *p, bool neurons, size_t *masked)
{
    size_t total = 0, first;

    *masked = 0;
    for (uint32_t l = 0; l < p->shape->config.layers; l++) {
        total += count_of(p, l, neurons, &first);
        *masked += masked_of(p, l, neurons);
    }
    return total;
}

double muc_train_pruned_share(const muc_train_pruner *pruner, bool neurons)
{
    size_t masked, total = totals(pruner, neurons, &masked);

    return (double)masked / (double)total;
}

/* the layer's units that are left, their scores divided by their norm */
static size_t add_candidates(const muc_train_pruner *p, uint32_t layer, bool neurons,
                             candidate *list)
{
    size_t first, count = count_of(p, layer, neurons, &first), added = 0;
    double squares = 0;

    for (size_t i = first; i < first + count; i++)
        if (!is_masked(p, i))
            squares += p->scores[i] * p->scores[i];
    for (size_t i = first; i < first + count; i++)
        if (!is_masked(p, i))
            list[added++] = (candidate){ squares > 0 ? p->scores[i] / sqrt(squares) : 0, i, layer };
    return added;
}

static muc_status mask_least(const muc_train_pruner *p, double share, bool neurons)
{
    size_t masked, total = totals(p, neurons, &masked), wanted = (size_t)(share * (double)total);
    size_t least = neurons ? LEAST_NEURONS : LEAST_HEADS, count = 0, first;
    candidate *list;

    MUC_TRY(MUC_NEW_ARRAY(p->ctx, "prune", total, &list));
    for (uint32_t l = 0; l < p->shape->config.layers; l++)
        count += add_candidates(p, l, neurons, list + count);
    qsort(list, count, sizeof(*list), least_first);
    for (size_t i = 0; i < count && masked < wanted; i++) {
        uint32_t layer = list[i].layer;

        if (count_of(p, layer, neurons, &first) - masked_of(p, layer, neurons) <= least)
            continue;
        mask_unit(p, list[i].unit);
        masked++;
    }
    free(list);
    return MUC_OK;
}

/* masks the layer's least important neuron, or gives its most important masked one back */
static void turn_neuron(const muc_train_pruner *p, uint32_t layer, bool back)
{
    size_t first, count = count_of(p, layer, true, &first), best = first + count;

    for (size_t i = first; i < first + count; i++)
        if (is_masked(p, i) == back && (best == first + count || p->scores[i] < p->scores[best]))
            best = i;
    if (back)
        p->scores[best] = -p->scores[best];
    else
        mask_unit(p, best);
}

/* Every layer gets a multiple of LANES neurons: kernels take so many at a time, and so many indices
 * of two bits fill a byte. Those with most beyond a multiple get some back for what the others
 * lose; what is left of all shrinks by LANES - 1 at most. */
static void round_layers(const muc_train_pruner *p)
{
    size_t first, over = 0, left;

    for (uint32_t l = 0; l < p->shape->config.layers; l++)
        over += (count_of(p, l, true, &first) - masked_of(p, l, true)) % LANES;
    for (size_t beyond = LANES - 1; beyond > 0; beyond--)
        for (uint32_t l = 0; l < p->shape->config.layers; l++) {
            size_t masked = masked_of(p, l, true);
            bool back = over >= LANES && masked >= LANES - beyond;

            left = count_of(p, l, true, &first) - masked;
            if (left % LANES != beyond || masked == 0 || (!back && left < LEAST_NEURONS + beyond))
                continue;
            over -= back ? LANES : 0;
            for (size_t i = 0; i < (back ? LANES - beyond : beyond); i++)
                turn_neuron(p, l, back);
        }
}

static muc_status adjust(void *arg, uint64_t step, muc_scalar *weights, muc_scalar *gradients)
{
    const muc_train_pruner *p = arg;
    uint64_t done = step + 1, each = p->steps / 10 < EACH ? p->steps / 10 + 1 : EACH;
    double first = p->target < FIRST_SHARE ? p->target : FIRST_SHARE;
    double left = done < p->steps ? 1 - (double)done / (double)p->steps : 0;
    double share = p->target + (first - p->target) * left * left * left;

    (void)weights;
    (void)gradients;
    for (size_t i = 0; i < p->units; i++) {
        if (!is_masked(p, i))
            p->scores[i] = KEPT * p->scores[i] + (1 - KEPT) * p->now[i];
        p->now[i] = 0;
    }
    if (done > p->steps || (done % each != 0 && done != p->steps))
        return MUC_OK;
    MUC_TRY(mask_least(p, share, false));
    MUC_TRY(mask_least(p, share, true));
    if (done == p->steps)
        round_layers(p);
    return MUC_OK;
}

/* ---- memory ---- */

static muc_status make(muc_train_pruner *p)
{
    MUC_TRY(MUC_ARENA_NEW(p->ctx, &p->arena, p->shape->config.layers, &p->layers));
    for (uint32_t l = 0; l < p->shape->config.layers; l++) {
        const muc_train_layer *layer = &p->shape->layers[l];
        muc_train_units *u = &p->layers[l];

        u->head_units = layer->kv_heads > 1 ? layer->kv_heads : layer->heads;
        u->heads_each = layer->heads / u->head_units;
        u->heads = p->units;
        u->neurons = u->heads + u->head_units;
        p->units = u->neurons + layer->ffn_dim;
    }
    MUC_TRY(MUC_ARENA_NEW(p->ctx, &p->arena, p->units, &p->scores));
    return MUC_ARENA_NEW(p->ctx, &p->arena, p->units, &p->now);
}

muc_status muc_train_pruner_make(muc_context *ctx, const muc_train_shape *shape, double target,
                                 uint64_t steps, muc_train_pruner *out)
{
    muc_status status;

    *out = (muc_train_pruner){ .ctx = ctx, .shape = shape, .target = target, .steps = steps };
    status = make(out);
    if (status != MUC_OK)
        muc_train_pruner_free(out);
    out->hooks = (muc_train_hooks){ out, forward, back };
    out->method = (muc_train_method){ .arg = out, .adjust = adjust };
    return status;
}

void muc_train_pruner_free(muc_train_pruner *pruner)
{
    muc_arena_free(&pruner->arena);
}

/* ---- the cut ---- */

/* what is kept of each layer */
typedef struct cut {
    const muc_train_pruner *pruner;
    uint32_t *heads, *kv_heads, *neurons; /* [layers] counts */
} cut;

static void count_kept(const cut *c)
{
    const muc_train_pruner *p = c->pruner;

    for (uint32_t l = 0; l < p->shape->config.layers; l++) {
        const muc_train_layer *layer = &p->shape->layers[l];
        uint32_t units = p->layers[l].head_units - (uint32_t)masked_of(p, l, false);

        c->heads[l] = units * p->layers[l].heads_each;
        c->kv_heads[l] = layer->kv_heads > 1 ? units : 1;
        c->neurons[l] = layer->ffn_dim - (uint32_t)masked_of(p, l, true);
    }
}

/* Whether row or column i of a tensor is kept. What its rows and columns are, the tensor's id
 * tells. */
static bool keeps(const cut *c, const muc_train_tensor *t, bool column, size_t i)
{
    const muc_train_pruner *p = c->pruner;
    const muc_train_units *u = &p->layers[t->layer];
    size_t width = p->shape->config.head_dim;

    switch (t->id) {
    case MUC_LLAMA_Q:
    case MUC_LLAMA_Q_BIAS:
        return column || !is_masked(p, u->heads + i / width / u->heads_each);
    case MUC_LLAMA_O:
        return !column || !is_masked(p, u->heads + i / width / u->heads_each);
    case MUC_LLAMA_K:
    case MUC_LLAMA_V:
    case MUC_LLAMA_K_BIAS:
    case MUC_LLAMA_V_BIAS:
        return column || p->shape->layers[t->layer].kv_heads == 1 ||
               !is_masked(p, u->heads + i / width);
    case MUC_LLAMA_GATE:
    case MUC_LLAMA_UP:
    case MUC_LLAMA_UP_BIAS:
        return column || !is_masked(p, u->neurons + i);
    case MUC_LLAMA_DOWN:
        return !column || !is_masked(p, u->neurons + i);
    default:
        return true;
    }
}

static void copy_kept(const cut *c, const muc_train_tensor *from, const muc_train_tensor *to,
                      const muc_scalar *weights, muc_scalar *out)
{
    size_t columns = from->columns ? from->columns : 1, at = to->first;

    for (size_t row = 0; row < from->rows; row++)
        for (size_t column = 0; column < columns && keeps(c, from, false, row); column++)
            if (keeps(c, from, true, column))
                out[at++] = weights[from->first + row * columns + column];
}

static muc_status remove_masked(cut *c, muc_arena *arena, const muc_scalar *weights,
                                muc_train_shape *shape, muc_scalar **out)
{
    const muc_train_pruner *p = c->pruner;
    uint32_t layers = p->shape->config.layers;

    MUC_TRY(MUC_ARENA_NEW(p->ctx, arena, layers, &c->heads));
    MUC_TRY(MUC_ARENA_NEW(p->ctx, arena, layers, &c->kv_heads));
    MUC_TRY(MUC_ARENA_NEW(p->ctx, arena, layers, &c->neurons));
    count_kept(c);
    MUC_TRY(
        muc_train_shape_make(p->ctx, &p->shape->config, c->heads, c->kv_heads, c->neurons, shape));
    if (MUC_NEW_ARRAY(p->ctx, "prune", shape->elements, out) != MUC_OK) {
        muc_train_shape_free(shape);
        return MUC_NOMEM;
    }
    memset(*out, 0, shape->elements * sizeof(**out));
    /* the same tensors in the same order */
    for (size_t t = 0; t < shape->tensor_count; t++)
        copy_kept(c, &p->shape->tensors[t], &shape->tensors[t], weights, *out);
    return MUC_OK;
}

muc_status muc_train_remove_masked(const muc_train_pruner *pruner, const muc_scalar *weights,
                                   muc_train_shape *shape, muc_scalar **out)
{
    cut c = { .pruner = pruner };
    muc_arena arena = { 0 };
    muc_status status = remove_masked(&c, &arena, weights, shape, out);

    muc_arena_free(&arena);
    return status;
}

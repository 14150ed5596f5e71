/* fuse_requantize.c - joins integer sums with the node that requantizes them, and makes functions
 * of one byte tables.
 *
 * Exact: a fused operator has the bits of the two, whose sums do not leave 32 bits. */
#include "passes/integer/fuse_requantize.h"

#include <stdlib.h>
#include <string.h>

#include "graph/bounds.h"
#include "passes/pointwise.h"

enum { MOST_ATTRIBUTES = 16, LEAST_LOOKUPS = 64, MOST_CHAIN = 8 };

/* ---- factors ---- */

/* A factor of a requantization, one number or one for each channel. */
typedef struct factor {
    uint32_t tensor; /* old */
    size_t count;    /* of a constant, else 0 */
    const uint8_t *items;
} factor;

static bool is_one(const muc_rewrite *r, muc_expr dim)
{
    return dim == muc_expr_const(r->graph->pool, 1);
}

/* `tensor`, as it is broadcast to another of some rank, changes along dimension `channel` alone, or
 * nowhere */
static bool find_factor(const muc_rewrite *r, uint32_t tensor, uint32_t rank, uint32_t channel,
                        factor *out)
{
    const muc_tensor *t = muc_rewrite_old(r, tensor);

    *out = (factor){ .tensor = tensor };
    for (uint32_t i = 0; i < t->rank; i++)
        if (!is_one(r, t->dims[i]) &&
            (rank - t->rank + i != channel || !muc_rewrite_is_constant(r, tensor)))
            return false;
    if (muc_rewrite_is_constant(r, tensor) && t->dtype == MUC_I32) {
        out->count = (size_t)t->bytes / sizeof(int32_t);
        out->items = t->data;
    }
    return t->dtype == MUC_I32;
}

static int32_t item(const factor *f, size_t i)
{
    int32_t word;

    memcpy(&word, f->items + (f->count > 1 ? i : 0) * sizeof(word), sizeof(word));
    return word;
}

/* Constant factors as vectors or scalars, with a bias on the sums before them in `add`. */
static muc_status add_factors(muc_rewrite *r, const factor *mul, const factor *add,
                              const factor *bias, uint32_t out[2])
{
    const factor *parts[2] = { mul, add };
    size_t count = bias && bias->count > mul->count ? bias->count : mul->count;
    muc_tensor like = { .dtype = MUC_I32 };
    muc_status status = MUC_OK;
    int32_t *items;

    count = count < add->count ? add->count : count;
    MUC_TRY(MUC_NEW_ARRAY(r->ctx, r->old.name, count, &items));
    for (unsigned p = 0; p < 2 && status == MUC_OK; p++) {
        size_t some = p && bias ? count : parts[p]->count;

        if (parts[p]->count == 0) {
            status = muc_rewrite_tensor(r, parts[p]->tensor, &out[p]);
            continue;
        }
        for (size_t i = 0; i < some; i++)
            items[i] = (int32_t)(item(parts[p], i) +
                                 (p && bias ? (int64_t)item(bias, i) * item(mul, i) : 0));
        like.rank = some > 1;
        like.dims[0] = muc_expr_const(r->graph->pool, (uint32_t)some);
        status = muc_rewrite_constant(r, muc_rewrite_old(r, parts[p]->tensor)->name, &like, items,
                                      some * sizeof(*items), &out[p]);
    }
    free(items);
    return status;
}

/* whether add + bias * mul is an i32 everywhere */
static bool takes_bias(const factor *mul, const factor *add, const factor *bias)
{
    size_t count = bias->count > mul->count ? bias->count : mul->count;

    if (!mul->count || !add->count || !bias->count)
        return false;
    for (size_t i = 0; i < count || i < add->count; i++) {
        int64_t sum = (int64_t)item(bias, i) * item(mul, i) + item(add, i);

        if (sum < INT32_MIN || sum > INT32_MAX)
            return false;
    }
    return true;
}

/* ---- products ---- */

static int64_t greatest(const muc_tensor *t)
{
    int64_t low = 0, high = 0;

    muc_dtype_range(t->dtype, &low, &high);
    return -low > high ? -low : high;
}

/* whether sums of so many products and a bias stay within 32 bits */
static bool stays_small(const muc_tensor *x, const muc_tensor *w, uint64_t depth,
                        const factor *bias)
{
    int64_t most = 0, each = greatest(x) * greatest(w);

    for (size_t i = 0; i < bias->count; i++) {
        int64_t b = item(bias, i);

        b = b < 0 ? -b : b;
        most = b > most ? b : most;
    }
    return depth < UINT32_MAX / 2 && (int64_t)depth * each + most <= INT32_MAX;
}

/* What a requantization works on: sums, perhaps with a bias on them. */
typedef struct sums {
    const muc_node *node; /* conv_integer or matmul_integer */
    const muc_tensor *x, *w;
    bool is_linear; /* w is a constant matrix */
    uint64_t depth;
    factor mul, add, bias;
    bool has_bias;
} sums;

/* the products before a tensor that nothing else reads */
static bool find_products(const muc_rewrite *r, uint32_t tensor, sums *s)
{
    uint32_t dim;

    s->node = muc_rewrite_producer(r, tensor);
    s->depth = 1;
    if (!s->node || !muc_rewrite_only_reader(r, tensor) ||
        (s->node->op != MUC_OP_CONV_INTEGER && s->node->op != MUC_OP_MATMUL_INTEGER) ||
        muc_node_input(s->node, 2) != MUC_NO_ID || muc_node_input(s->node, 3) != MUC_NO_ID)
        return false;
    s->x = muc_rewrite_old(r, s->node->inputs[0]);
    s->w = muc_rewrite_old(r, s->node->inputs[1]);
    if (s->node->op == MUC_OP_CONV_INTEGER) {
        for (uint32_t i = 1; i < s->w->rank; i++) {
            if (!muc_rewrite_dim(&r->old, s->w, i, &dim))
                return false;
            s->depth *= dim;
        }
        return true;
    }
    if (s->x->rank == 0 || s->w->rank == 0)
        return false;
    s->depth = muc_expr_get(r->graph->pool, s->x->dims[s->x->rank - 1])->hi;
    s->is_linear = s->w->rank == 2 && muc_rewrite_is_constant(r, s->node->inputs[1]) &&
                   muc_dtype_get(s->w->dtype)->block_bytes == 1;
    return true;
}

/* the sums of node's input 0, with factors */
static bool find_sums(const muc_rewrite *r, const muc_node *node, sums *s)
{
    const muc_tensor *y = muc_rewrite_old(r, node->outputs[0]);
    const muc_node *before = muc_rewrite_producer(r, node->inputs[0]);
    uint32_t channel;

    memset(s, 0, sizeof(*s));
    if (!before || !muc_rewrite_only_reader(r, node->inputs[0]))
        return false;
    s->has_bias = before->op == MUC_OP_ADD;
    for (uint32_t side = 0; side < 2; side++) {
        if (!find_products(r, s->has_bias ? before->inputs[side] : node->inputs[0], s))
            continue;
        if (s->node->op == MUC_OP_MATMUL_INTEGER && s->w->rank < 2)
            return false;
        channel = s->node->op == MUC_OP_MATMUL_INTEGER                     ? y->rank - 1
                  : muc_node_integer_or(s->node, MUC_KEY_CHANNELS_LAST, 0) ? y->rank - 1
                                                                           : 1;
        if (s->has_bias && (!find_factor(r, before->inputs[1 - side], y->rank, channel, &s->bias) ||
                            !s->bias.count))
            return false;
        return find_factor(r, node->inputs[1], y->rank, channel, &s->mul) &&
               find_factor(r, node->inputs[2], y->rank, channel, &s->add) &&
               stays_small(s->x, s->w, s->depth, &s->bias) &&
               (!s->has_bias || takes_bias(&s->mul, &s->add, &s->bias));
    }
    return false;
}

static muc_status fuse_products(muc_rewrite *r, const muc_node *node, bool *done)
{
    muc_attribute attributes[MOST_ATTRIBUTES];
    uint32_t inputs[4], count = node->attribute_count;
    muc_op op;
    sums s;

    if (node->op != MUC_OP_REQUANT_SHIFT || !find_sums(r, node, &s) ||
        count + s.node->attribute_count > MOST_ATTRIBUTES)
        return MUC_OK;
    *done = true;
    memcpy(attributes, node->attributes, count * sizeof(*attributes));
    memcpy(attributes + count, s.node->attributes, s.node->attribute_count * sizeof(*attributes));
    op = s.node->op == MUC_OP_CONV_INTEGER ? MUC_OP_REQUANT_CONV
         : s.is_linear                     ? MUC_OP_REQUANT_LINEAR
                                           : MUC_OP_REQUANT_MATMUL;
    MUC_TRY(muc_rewrite_tensor(r, s.node->inputs[0], &inputs[0]));
    if (s.is_linear)
        MUC_TRY(muc_rewrite_transpose_bytes(r, s.w, &inputs[1]));
    else
        MUC_TRY(muc_rewrite_tensor(r, s.node->inputs[1], &inputs[1]));
    MUC_TRY(add_factors(r, &s.mul, &s.add, s.has_bias ? &s.bias : NULL, &inputs[2]));
    return muc_rewrite_change(r, node, op, inputs, 4, attributes, count + s.node->attribute_count);
}

/* ---- sums and products of two ---- */

/* the narrow tensor behind a cast to i32 */
static bool find_narrow(const muc_rewrite *r, uint32_t tensor, uint32_t *out)
{
    const muc_node *cast = muc_rewrite_producer(r, tensor);
    muc_dtype dtype;

    if (!cast || cast->op != MUC_OP_CAST || muc_rewrite_old(r, tensor)->dtype != MUC_I32)
        return false;
    *out = cast->inputs[0];
    dtype = muc_rewrite_old(r, *out)->dtype;
    return (dtype == MUC_I8 || dtype == MUC_U8 || dtype == MUC_I16) &&
           !muc_rewrite_old(r, *out)->quantization;
}

static muc_status fuse_pair(muc_rewrite *r, const muc_node *node, bool *done)
{
    const muc_node *pair =
        node->op == MUC_OP_REQUANT_SHIFT ? muc_rewrite_producer(r, node->inputs[0]) : NULL;
    uint32_t old[2], inputs[4], none = MUC_GRAPH_MAX_RANK + 1;
    factor mul, add;

    if (!pair || (pair->op != MUC_OP_ADD && pair->op != MUC_OP_MUL) ||
        !muc_rewrite_only_reader(r, node->inputs[0]) || !find_narrow(r, pair->inputs[0], &old[0]) ||
        !find_narrow(r, pair->inputs[1], &old[1]) ||
        !find_factor(r, node->inputs[1], MUC_GRAPH_MAX_RANK, none, &mul) ||
        !find_factor(r, node->inputs[2], MUC_GRAPH_MAX_RANK, none, &add))
        return MUC_OK;
    *done = true;
    for (uint32_t i = 0; i < 2; i++)
        MUC_TRY(muc_rewrite_tensor(r, old[i], &inputs[i]));
    MUC_TRY(add_factors(r, &mul, &add, NULL, &inputs[2]));
    return muc_rewrite_change(r, node,
                              pair->op == MUC_OP_ADD ? MUC_OP_REQUANT_ADD : MUC_OP_REQUANT_MUL,
                              inputs, 4, node->attributes, node->attribute_count);
}

/* ---- tables ---- */

static bool is_byte(const muc_tensor *t)
{
    return (t->dtype == MUC_I8 || t->dtype == MUC_U8) && !t->quantization;
}

static bool is_words(const muc_rewrite *r, uint32_t id)
{
    return muc_rewrite_is_constant(r, id) && muc_rewrite_old(r, id)->dtype == MUC_I32;
}

static bool is_word(const muc_rewrite *r, uint32_t id)
{
    return is_words(r, id) && muc_rewrite_old(r, id)->bytes == sizeof(int32_t);
}

/* whether a run may hold the integers of input 1, constants of i32 */
static bool are_allowed(const muc_rewrite *r, const muc_node *node)
{
    const uint8_t *words = muc_rewrite_old(r, node->inputs[1])->data;
    muc_bound bounds[MUC_MOST_BOUNDS];
    uint32_t count = muc_bounds_of(node, 0, bounds);

    for (uint32_t i = 0; i < count; i++) {
        int64_t word = muc_dtype_integer(MUC_I32, words + bounds[i].first * sizeof(int32_t));

        if (word < bounds[i].ends[0] || word > bounds[i].ends[1])
            return false;
    }
    return true;
}

/* whether each element of the node's output is a function of one of input 0 */
static bool is_function(const muc_rewrite *r, const muc_node *node)
{
    const muc_tensor *y = muc_rewrite_old(r, node->outputs[0]);

    switch ((int)node->op) {
    case MUC_OP_REQUANT_SHIFT:
        return is_word(r, node->inputs[1]) && is_word(r, node->inputs[2]);
    case MUC_OP_INTEGER_HARD_SWISH:
    case MUC_OP_INTEGER_GELU:
        return is_words(r, node->inputs[1]) && are_allowed(r, node);
    case MUC_OP_MUL:
        return is_word(r, node->inputs[1]) && y->dtype == MUC_I32;
    case MUC_OP_LOOKUP:
        return muc_rewrite_is_constant(r, node->inputs[1]);
    case MUC_OP_CAST:
        return !y->quantization && muc_dtype_get(y->dtype)->kind == MUC_DTYPE_INTEGER;
    default:
        return false;
    }
}

/* The byte tensor that the node's output is a function of, by as many nodes as possible that
 * nothing else reads; MUC_NO_ID if there is none. */
static uint32_t find_origin(const muc_rewrite *r, const muc_node *node)
{
    uint32_t origin = MUC_NO_ID;

    for (uint32_t count = 0; node && count < MOST_CHAIN && is_function(r, node); count++) {
        uint32_t x = node->inputs[0];

        if (is_byte(muc_rewrite_old(r, x)))
            origin = x;
        node = muc_rewrite_only_reader(r, x) ? muc_rewrite_producer(r, x) : NULL;
    }
    return origin;
}

static muc_status make_lookup(muc_rewrite *r, const muc_node *node, bool *done)
{
    const muc_tensor *y = muc_rewrite_old(r, node->outputs[0]);
    muc_tensor like = { .dtype = y->dtype, .rank = 1 };
    uint32_t origin = is_byte(y) ? find_origin(r, node) : MUC_NO_ID, inputs[2];
    uint8_t numbers[256], table[256], first;
    int64_t elements = 1;

    for (uint32_t i = 0; i < y->rank && elements < LEAST_LOOKUPS; i++)
        elements *= muc_expr_get(r->graph->pool, y->dims[i])->hi;
    if (origin == MUC_NO_ID || (origin == node->inputs[0] && node->op == MUC_OP_LOOKUP) ||
        elements < LEAST_LOOKUPS)
        return MUC_OK;
    *done = true;
    first = muc_rewrite_old(r, origin)->dtype == MUC_I8 ? 128 : 0;
    for (uint32_t i = 0; i < 256; i++)
        numbers[i] = (uint8_t)(first + i);
    MUC_TRY(muc_pointwise_evaluate(r, origin, node->outputs[0], numbers, 256, table));
    like.dims[0] = muc_expr_const(r->graph->pool, 256);
    MUC_TRY(muc_rewrite_tensor(r, origin, &inputs[0]));
    MUC_TRY(muc_rewrite_constant(r, "table", &like, table, sizeof(table), &inputs[1]));
    return muc_rewrite_change(r, node, MUC_OP_LOOKUP, inputs, 2, NULL, 0);
}

/* ---- what does nothing ---- */

/* all elements of a constant of i32 are value */
static bool all_are(const muc_tensor *tensor, int64_t value)
{
    if (tensor->kind != MUC_TENSOR_CONST || !tensor->data)
        return false;
    for (uint64_t i = 0; i < tensor->bytes; i += sizeof(int32_t)) {
        int32_t word;

        memcpy(&word, tensor->data + i, sizeof(word));
        if (word != value)
            return false;
    }
    return true;
}

static bool clamps_nothing(muc_dtype dtype, int64_t low, int64_t high)
{
    int64_t least, greatest;

    return muc_dtype_range(dtype, &least, &greatest) && low <= least && high >= greatest;
}

bool muc_requant_is_identity(const muc_graph *graph, const muc_node *node)
{
    const muc_tensor *tensors = graph->tensors;

    return node->op == MUC_OP_REQUANT_SHIFT &&
           muc_node_integer(node, MUC_KEY_TO) == (int64_t)tensors[node->inputs[0]].dtype &&
           clamps_nothing(tensors[node->inputs[0]].dtype, muc_node_integer(node, MUC_KEY_CLAMP_MIN),
                          muc_node_integer(node, MUC_KEY_CLAMP_MAX)) &&
           all_are(&tensors[node->inputs[1]], INT64_C(1)
                                                  << muc_node_integer(node, MUC_KEY_SHIFT)) &&
           all_are(&tensors[node->inputs[2]], 0);
}

static muc_status drop_identity(muc_rewrite *r, const muc_node *node, bool *done)
{
    muc_status status = MUC_OK;

    if (muc_requant_is_identity(&r->old, node))
        *done = muc_rewrite_alias(r, node, node->inputs[0], &status);
    return status;
}

muc_status muc_fuse_requantizations(muc_context *ctx, muc_graph *graph)
{
    static muc_rewrite_rule *const rules[] = { drop_identity, fuse_products, fuse_pair,
                                               make_lookup };

    return muc_rewrite_with(ctx, graph, rules, MUC_COUNT(rules), NULL);
}

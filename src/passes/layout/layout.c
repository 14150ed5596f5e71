/* layout.c - turns networks with channels first into networks with channels last.
 *
 * Every tensor has its own form, [N, C, spatial..] where that is how its network means it, and may
 * get a second one with the channels last. Operators over pixels take and give the second form, so
 * do operators that do not care; a transpose stands only where a form is asked for that nobody
 * made. Transposes that the network has itself are taken into account: one that undoes another
 * leaves neither.
 */
#include <stdlib.h>
#include <string.h>

#include "passes/simplify/canonical.h"
#include "passes/rewrite.h"

enum { MAX_RANK = MUC_GRAPH_MAX_RANK };

typedef struct layout {
    muc_rewrite r;
    uint32_t *last; /* old tensor to its new form with channels last, or MUC_NO_ID */
    uint32_t *flat; /* old tensor to the old one of which it is the flattened last form */
} layout;

typedef struct attributes {
    muc_attribute_list list;
    int64_t integers[2 * MAX_RANK];
    muc_expr exprs[MAX_RANK];
    double reals[2 * MAX_RANK];
} attributes;

static const muc_tensor *old(const layout *l, uint32_t id)
{
    return &l->r.old.tensors[id];
}

/* dimension i of the last form is dimension to_last(i) of the first */
static uint32_t to_last(uint32_t rank, uint32_t i)
{
    return i == 0 ? 0 : i == rank - 1 ? 1 : i + 1;
}

/* dimension i of the first form is dimension to_first(i) of the last */
static uint32_t to_first(uint32_t rank, uint32_t i)
{
    return i == 0 ? 0 : i == 1 ? rank - 1 : i - 1;
}

/* ---- constants ---- */

/* element by element into a shape whose dimension i is dimension perm[i] of dims */
static void permute(const uint8_t *data, size_t width, uint32_t rank, const uint32_t *dims,
                    const uint32_t *perm, uint8_t *out)
{
    size_t steps[MAX_RANK], at = 0, elements = 1;
    uint32_t index[MAX_RANK] = { 0 };

    for (uint32_t i = 0; i < rank; i++) {
        elements *= dims[i];
        steps[i] = 1;
        for (uint32_t d = perm[i] + 1; d < rank; d++)
            steps[i] *= dims[d];
    }
    for (size_t e = 0; e < elements; e++) {
        memcpy(out + e * width, data + at * width, width);
        for (uint32_t i = rank; i-- > 0;) {
            at += steps[i];
            if (++index[i] < dims[perm[i]])
                break;
            at -= steps[i] * dims[perm[i]];
            index[i] = 0;
        }
    }
}

/* the constant as if of this rank, with ones before its dimensions, then permuted */
static muc_status add_permuted(layout *l, uint32_t id, uint32_t rank, const uint32_t *perm,
                               uint32_t *out)
{
    const muc_tensor *t = old(l, id);
    muc_quantization quantization;
    muc_tensor like = *t;
    uint32_t dims[MAX_RANK], missing = rank - t->rank;
    uint8_t *data;
    muc_status status;

    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = 1;
        if (i >= missing && !muc_rewrite_dim(&l->r.old, t, i - missing, &dims[i]))
            return muc_fail(l->r.ctx, MUC_BUG, l->r.old.name, MUC_NO_OFFSET,
                            "constant '%s' has no fixed shape", t->name);
    }
    like.rank = rank;
    for (uint32_t i = 0; i < rank; i++)
        like.dims[i] = muc_expr_const(l->r.graph->pool, dims[perm[i]]);
    if (t->quantization && t->quantization->count > 1) {
        quantization = *t->quantization;
        for (uint32_t i = 0; i < rank; i++)
            if (perm[i] == t->quantization->axis + missing)
                quantization.axis = i;
        like.quantization = &quantization;
    }
    if (muc_rewrite_is_shape(&l->r, t, t->bytes))
        return muc_rewrite_constant(&l->r, t->name, &like, t->data, t->bytes, out);
    data = malloc((size_t)t->bytes + 1);
    if (!data)
        return muc_fail_nomem(l->r.ctx, l->r.old.name, (size_t)t->bytes);
    permute(t->data, muc_dtype_get(t->dtype)->block_bytes, rank, dims, perm, data);
    status = muc_rewrite_constant(&l->r, t->name, &like, data, t->bytes, out);
    free(data);
    return status;
}

/* constants of single elements, which can be permuted */
static bool is_plain_constant(const layout *l, uint32_t id)
{
    return muc_rewrite_is_constant(&l->r, id) &&
           muc_dtype_get(old(l, id)->dtype)->block_elements == 1 && !old(l, id)->sequence;
}

/* ---- forms ---- */

static muc_status add_transpose(layout *l, const char *name, uint32_t x, const int64_t *perm,
                                uint32_t rank, uint32_t *out)
{
    muc_attribute a = { .key = MUC_KEY_PERM, .value.integers = { perm, rank } };

    return muc_rewrite_add(&l->r, MUC_OP_TRANSPOSE, name, &x, 1, &a, 1, NULL, out);
}

/* a transpose of the new tensor x, or of what x itself is a transpose of; x if it is none */
static muc_status transpose_of(layout *l, const char *name, uint32_t x, int64_t *perm,
                               uint32_t rank, uint32_t *out)
{
    const muc_tensor *t = &l->r.graph->tensors[x];
    const muc_node *before = t->producer == MUC_NO_ID ? NULL : &l->r.graph->nodes[t->producer];
    bool same = true;

    if (before && before->op == MUC_OP_TRANSPOSE) {
        for (uint32_t i = 0; i < rank; i++)
            perm[i] = muc_node_integers(before, MUC_KEY_PERM)[perm[i]];
        x = before->inputs[0];
    }
    for (uint32_t i = 0; i < rank; i++)
        same = same && perm[i] == i;
    *out = x;
    return same ? MUC_OK : add_transpose(l, name, x, perm, rank, out);
}

static muc_status form_name(layout *l, uint32_t id, const char *form, const char **out)
{
    return muc_arena_format(l->r.ctx, &l->r.graph->arena, out, "%s/%s", old(l, id)->name, form);
}

/* an output in its own form has its own name */
static muc_status give_output(layout *l, uint32_t id)
{
    uint32_t rank = old(l, id)->rank;
    int64_t perm[MAX_RANK];
    muc_attribute a = { .key = MUC_KEY_PERM, .value.integers = { perm, rank } };

    if (l->r.map[id] != MUC_NO_ID || l->last[id] == MUC_NO_ID)
        return MUC_OK;
    for (uint32_t i = 0; i < rank; i++)
        perm[i] = to_first(rank, i);
    return muc_rewrite_add_named(&l->r, MUC_OP_TRANSPOSE, old(l, id)->name, &l->last[id], 1, &a, 1,
                                 NULL, &l->r.map[id]);
}

static muc_status get_first(layout *l, uint32_t id, uint32_t *out)
{
    int64_t perm[MAX_RANK];
    const char *name;
    uint32_t rank;

    if (id == MUC_NO_ID || l->r.map[id] != MUC_NO_ID || l->last[id] == MUC_NO_ID ||
        old(l, id)->kind == MUC_TENSOR_CONST)
        return muc_rewrite_tensor(&l->r, id, out);
    rank = old(l, id)->rank;
    for (uint32_t i = 0; i < rank; i++)
        perm[i] = to_first(rank, i);
    MUC_TRY(form_name(l, id, "first", &name));
    if (l->r.is_output[id])
        MUC_TRY(give_output(l, id));
    else
        MUC_TRY(transpose_of(l, name, l->last[id], perm, rank, &l->r.map[id]));
    *out = l->r.map[id];
    return MUC_OK;
}

static muc_status get_last(layout *l, uint32_t id, uint32_t *out)
{
    uint32_t rank = old(l, id)->rank, perm[MAX_RANK];
    int64_t wide[MAX_RANK];
    const char *name;

    if (l->last[id] == MUC_NO_ID) {
        for (uint32_t i = 0; i < rank; i++)
            wide[i] = perm[i] = to_last(rank, i);
        if (is_plain_constant(l, id)) {
            MUC_TRY(add_permuted(l, id, rank, perm, &l->last[id]));
        } else {
            MUC_TRY(get_first(l, id, out));
            MUC_TRY(form_name(l, id, "last", &name));
            MUC_TRY(transpose_of(l, name, *out, wide, rank, &l->last[id]));
        }
    }
    *out = l->last[id];
    return MUC_OK;
}

/* whether the last form is there */
static bool is_last(const layout *l, uint32_t id)
{
    return id != MUC_NO_ID && l->last[id] != MUC_NO_ID && old(l, id)->kind != MUC_TENSOR_CONST;
}

static bool any_is_last(const layout *l, const muc_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (is_last(l, node->inputs[i]))
            return true;
    return false;
}

/* ---- nodes ---- */

/* the node with these inputs, whose outputs have the channels last; their own form's name is theirs
 * alone if the graph gives it */
static muc_status add_last(layout *l, const muc_node *node, const uint32_t *inputs, uint32_t count,
                           const attributes *a)
{
    const char *names[MUC_GRAPH_MAX_OUTPUTS];
    const muc_quantization *quantization[MUC_GRAPH_MAX_OUTPUTS];
    uint32_t outputs[MUC_GRAPH_MAX_OUTPUTS];
    const muc_new_node added = { .op = node->op,
                                 .name = node->name,
                                 .input_count = count,
                                 .inputs = inputs,
                                 .attribute_count = a->list.count,
                                 .attributes = a->list.items,
                                 .output_count = node->output_count,
                                 .output_names = names,
                                 .quantization = quantization };

    for (uint32_t i = 0; i < node->output_count; i++) {
        names[i] = old(l, node->outputs[i])->name;
        quantization[i] = old(l, node->outputs[i])->quantization;
        if (l->r.is_output[node->outputs[i]])
            MUC_TRY(form_name(l, node->outputs[i], "last", &names[i]));
    }
    MUC_TRY(muc_graph_add(l->r.ctx, l->r.graph, &added, outputs));
    for (uint32_t i = 0; i < node->output_count; i++)
        l->last[node->outputs[i]] = outputs[i];
    return MUC_OK;
}

static muc_status keep(layout *l, const muc_node *node)
{
    uint32_t id;

    for (uint32_t i = 0; i < node->input_count; i++)
        MUC_TRY(get_first(l, node->inputs[i], &id));
    return muc_rewrite_keep(&l->r, node);
}

static bool is_over_pixels(const layout *l, const muc_node *node)
{
    const muc_product *product = muc_op_product(node->op);
    bool required;

    if (!muc_op_takes(node->op, MUC_KEY_CHANNELS_LAST, &required) ||
        muc_node_integer_or(node, MUC_KEY_CHANNELS_LAST, 0) == 1 || node->output_count != 1 ||
        old(l, node->inputs[0])->rank < 3)
        return false;
    if (product->kind == MUC_PRODUCT_SPREAD && muc_node_integer_or(node, MUC_KEY_GROUPS, 1) != 1)
        return false;
    return product->kind == MUC_PRODUCT_NONE ||
           is_plain_constant(l, node->inputs[product->weights]);
}

static muc_status lay_pixels(layout *l, const muc_node *node)
{
    const muc_product *product = muc_op_product(node->op);
    uint32_t inputs[16], perm[MAX_RANK];
    uint32_t rank = old(l, node->inputs[0])->rank;
    attributes a;

    if (!muc_attribute_list_of(&a.list, node) || node->input_count > MUC_COUNT(inputs))
        return keep(l, node);
    MUC_TRY(get_last(l, node->inputs[0], &inputs[0]));
    for (uint32_t i = 1; i < node->input_count; i++) {
        if (i != product->weights) {
            MUC_TRY(get_first(l, node->inputs[i], &inputs[i]));
            continue;
        }
        /* [out, in, kernel..], of a transposed convolution [in, out, kernel..] */
        for (uint32_t d = 0; d < rank; d++)
            perm[d] = to_last(rank, d);
        if (product->kind == MUC_PRODUCT_SPREAD) {
            perm[0] = 1;
            perm[rank - 1] = 0;
        }
        MUC_TRY(add_permuted(l, node->inputs[i], rank, perm, &inputs[i]));
    }
    muc_attribute_list_set(&a.list,
                           (muc_attribute){ .key = MUC_KEY_CHANNELS_LAST, .value.integer = 1 });
    return add_last(l, node, inputs, node->input_count, &a);
}

/* inputs beyond the first that are parameters, not broadcast */
static bool has_parameters(muc_op op)
{
    return muc_op_has(op, MUC_OP_PARAMETERS);
}

static bool is_one_element(const layout *l, uint32_t id)
{
    const muc_tensor *t = old(l, id);

    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dims[i] != muc_expr_const(l->r.graph->pool, 1))
            return false;
    return true;
}

/* operators element by element: some input's last form is there, and the others can have one */
static bool can_follow(const layout *l, const muc_node *node, uint32_t rank)
{
    bool any = false;

    for (uint32_t i = 0; i < node->input_count; i++) {
        uint32_t id = node->inputs[i];

        if (id == MUC_NO_ID || (i > 0 && has_parameters(node->op)))
            continue;
        any = any || (is_last(l, id) && old(l, id)->rank == rank);
        if (old(l, id)->rank != rank && !is_one_element(l, id) && !is_plain_constant(l, id))
            return false;
    }
    return any;
}

static muc_status follow_input(layout *l, uint32_t id, uint32_t rank, uint32_t *out)
{
    uint32_t perm[MAX_RANK];

    if (id == MUC_NO_ID || (old(l, id)->rank < rank && is_one_element(l, id)))
        return get_first(l, id, out);
    if (old(l, id)->rank == rank)
        return get_last(l, id, out);
    for (uint32_t i = 0; i < rank; i++)
        perm[i] = to_last(rank, i);
    return add_permuted(l, id, rank, perm, out);
}

static muc_status lay_pointwise(layout *l, const muc_node *node)
{
    uint32_t rank = old(l, node->outputs[0])->rank, *inputs;
    muc_status status;
    attributes a;

    if (!muc_attribute_list_of(&a.list, node) || !can_follow(l, node, rank))
        return keep(l, node);
    MUC_TRY(MUC_NEW_ARRAY(l->r.ctx, l->r.old.name, node->input_count, &inputs));
    status = MUC_OK;
    for (uint32_t i = 0; i < node->input_count && status == MUC_OK; i++)
        status = i > 0 && has_parameters(node->op)
                     ? get_first(l, node->inputs[i], &inputs[i])
                     : follow_input(l, node->inputs[i], rank, &inputs[i]);
    if (status == MUC_OK)
        status = add_last(l, node, inputs, node->input_count, &a);
    free(inputs);
    return status;
}

/* ---- operators that name dimensions ---- */

static void map_axis(const layout *l, const muc_node *node, attributes *a)
{
    uint32_t rank = old(l, node->inputs[0])->rank;
    uint32_t axis = (uint32_t)muc_node_integer(node, MUC_KEY_AXIS);

    (void)l;
    muc_attribute_list_set(
        &a->list, (muc_attribute){ .key = MUC_KEY_AXIS, .value.integer = to_first(rank, axis) });
}

/* an attribute with one item a dimension: in the last form's order */
static void map_exprs(attributes *a, const muc_node *node, muc_attribute_key key, uint32_t rank)
{
    const muc_attribute *from = muc_node_attribute(node, key);

    for (uint32_t i = 0; i < rank; i++)
        a->exprs[i] = from->value.exprs.items[to_last(rank, i)];
    muc_attribute_list_set(&a->list,
                           (muc_attribute){ .key = key, .value.exprs = { a->exprs, rank } });
}

static void map_pads(attributes *a, const muc_node *node, uint32_t rank)
{
    const int64_t *pads = muc_node_integers(node, MUC_KEY_PADS);

    for (uint32_t i = 0; i < rank; i++) {
        a->integers[i] = pads[to_last(rank, i)];
        a->integers[rank + i] = pads[rank + to_last(rank, i)];
    }
    muc_attribute_list_set(
        &a->list,
        (muc_attribute){ .key = MUC_KEY_PADS, .value.integers = { a->integers, 2 * rank } });
}

static void map_reals(attributes *a, const muc_node *node, muc_attribute_key key, uint32_t rank)
{
    const muc_attribute *from = muc_node_attribute(node, key);

    for (uint32_t i = 0; i < rank; i++)
        a->reals[i] = from->value.reals.items[to_last(rank, i)];
    muc_attribute_list_set(&a->list,
                           (muc_attribute){ .key = key, .value.reals = { a->reals, rank } });
}

/* axes ascend; false if the dimensions that stay would change their order */
static bool map_axes(const layout *l, const muc_node *node, attributes *a)
{
    uint32_t rank = old(l, node->inputs[0])->rank, count = 0, previous = 0;
    const muc_attribute *axes = muc_node_attribute(node, MUC_KEY_AXES);
    bool reduced[MAX_RANK] = { false };

    for (uint32_t i = 0; i < axes->value.integers.count; i++)
        reduced[to_first(rank, (uint32_t)axes->value.integers.items[i])] = true;
    for (uint32_t i = 0; i < rank; i++) {
        if (reduced[i]) {
            a->integers[count++] = i;
            continue;
        }
        if (muc_node_integer_or(node, MUC_KEY_KEEP_DIMS, 1) == 0 && to_last(rank, i) < previous)
            return false;
        previous = to_last(rank, i);
    }
    muc_attribute_list_set(
        &a->list, (muc_attribute){ .key = MUC_KEY_AXES, .value.integers = { a->integers, count } });
    return true;
}

/* axes with something for each, which need no order */
static void map_named_axes(attributes *a, const muc_node *node, uint32_t rank)
{
    const muc_attribute *axes = muc_node_attribute(node, MUC_KEY_AXES);

    for (uint32_t i = 0; i < axes->value.integers.count; i++)
        a->integers[i] = to_first(rank, (uint32_t)axes->value.integers.items[i]);
    muc_attribute_list_set(
        &a->list, (muc_attribute){ .key = MUC_KEY_AXES,
                                   .value.integers = { a->integers, axes->value.integers.count } });
}

static bool is_quantized(const layout *l, const muc_node *node)
{
    return old(l, node->inputs[0])->quantization != NULL;
}

typedef enum fate {
    KEEP,  /* in the first form */
    LAST,  /* the output has the last form */
    PLAIN, /* the output has its own form, of inputs in the last form */
} fate;

/* integers along the last dimension alone (softmax), or where two neighbours change: the pixels */
static bool needs_first(const layout *l, const muc_node *node)
{
    const muc_tensor *x = old(l, node->inputs[0]), *y = old(l, node->outputs[0]);
    bool moves = muc_op_has(node->op, MUC_OP_MOVES), required;

    if (muc_node_attribute(node, MUC_KEY_ROI) ||
        (muc_node_attribute(node, MUC_KEY_SHAPE) && y->rank != x->rank))
        return true;
    if (!is_quantized(l, node) || moves)
        return false;
    return muc_node_integer_or(node, MUC_KEY_AXIS, 0) + 1 == x->rank ||
           (muc_op_takes(node->op, MUC_KEY_SCALES, &required) && x->dims[1] != y->dims[1]);
}

/* the attributes of a node that follows, for input 0's last form */
static void map_attributes(const layout *l, const muc_node *node, attributes *a)
{
    uint32_t rank = old(l, node->inputs[0])->rank;

    if (muc_node_attribute(node, MUC_KEY_AXIS))
        map_axis(l, node, a);
    if (muc_node_attribute(node, MUC_KEY_PADS))
        map_pads(a, node, rank);
    if (muc_node_attribute(node, MUC_KEY_REPEATS))
        map_exprs(a, node, MUC_KEY_REPEATS, rank);
    if (muc_node_attribute(node, MUC_KEY_SHAPE))
        map_exprs(a, node, MUC_KEY_SHAPE, rank);
    if (muc_node_attribute(node, MUC_KEY_SCALES))
        map_reals(a, node, MUC_KEY_SCALES, rank);
    if (muc_node_attribute(node, MUC_KEY_AXES))
        map_named_axes(a, node, rank);
    else if (muc_node_attribute(node, MUC_KEY_SIZES) && !muc_node_attribute(node, MUC_KEY_AXIS))
        map_exprs(a, node, MUC_KEY_SIZES, rank);
}

/* what becomes of a node whose input 0 has the last form, and its attributes then */
static fate fate_of(const layout *l, const muc_node *node, attributes *a)
{
    if (muc_op_has(node->op, MUC_OP_FOLLOWS)) {
        if (needs_first(l, node))
            return KEEP;
        map_attributes(l, node, a);
        return LAST;
    }
    if (!muc_op_has(node->op, MUC_OP_REDUCES) || !map_axes(l, node, a))
        return KEEP;
    return muc_node_integer_or(node, MUC_KEY_KEEP_DIMS, 1) ? LAST : PLAIN;
}

/* its inputs are all alike: concat */
static bool takes_many(const muc_node *node)
{
    return muc_op_get(node->op)->most_inputs == MUC_GRAPH_MAX_INPUTS;
}

static muc_status lay_named(layout *l, const muc_node *node)
{
    uint32_t *inputs;
    muc_status status = MUC_OK;
    attributes a;
    fate f;

    if (!muc_attribute_list_of(&a.list, node) ||
        !(takes_many(node) ? any_is_last(l, node) : is_last(l, node->inputs[0])))
        return keep(l, node);
    f = fate_of(l, node, &a);
    if (f == KEEP)
        return keep(l, node);
    MUC_TRY(MUC_NEW_ARRAY(l->r.ctx, l->r.old.name, node->input_count, &inputs));
    for (uint32_t i = 0; i < node->input_count && status == MUC_OK; i++)
        status = i == 0 || takes_many(node) ? get_last(l, node->inputs[i], &inputs[i])
                                            : get_first(l, node->inputs[i], &inputs[i]);
    if (status == MUC_OK && f == LAST)
        status = add_last(l, node, inputs, node->input_count, &a);
    else if (status == MUC_OK)
        status = muc_rewrite_change(&l->r, node, node->op, inputs, node->input_count, a.list.items,
                                    a.list.count);
    free(inputs);
    return status;
}

/* a transpose of the network's own: of the last form it may be none */
static muc_status lay_transpose(layout *l, const muc_node *node)
{
    uint32_t x = node->inputs[0], rank = old(l, x)->rank, id;
    int64_t perm[MAX_RANK];
    muc_attribute a = { .key = MUC_KEY_PERM, .value.integers = { perm, rank } };
    bool same = true;

    if (!is_last(l, x))
        return keep(l, node);
    for (uint32_t i = 0; i < rank; i++) {
        perm[i] = to_first(rank, (uint32_t)muc_node_integers(node, MUC_KEY_PERM)[i]);
        same = same && perm[i] == i;
    }
    id = l->last[x];
    if (same && !l->r.is_output[node->outputs[0]]) {
        l->r.map[node->outputs[0]] = id;
        return MUC_OK;
    }
    return muc_rewrite_change(&l->r, node, MUC_OP_TRANSPOSE, &id, 1, &a, 1);
}

/* ---- views ---- */

/* both forms have their elements in one order */
static bool forms_agree(const layout *l, uint32_t id)
{
    const muc_tensor *t = old(l, id);
    muc_expr one = muc_expr_const(l->r.graph->pool, 1);
    bool one_pixel = true;

    for (uint32_t i = 2; i < t->rank; i++)
        one_pixel = one_pixel && t->dims[i] == one;
    return one_pixel || t->dims[1] == one;
}

static bool is_linear(muc_op op)
{
    return muc_op_product(op)->kind == MUC_PRODUCT_ROWS;
}

/* [N, C, spatial..] to [N, all the rest], which only a linear with constant weights reads */
static bool is_flattened_for_linear(const layout *l, const muc_node *node)
{
    const muc_node *reader = muc_rewrite_only_reader(&l->r, node->outputs[0]);
    const muc_tensor *x = old(l, node->inputs[0]), *y = old(l, node->outputs[0]);
    uint32_t dim;

    if (!reader || !is_linear(reader->op) || reader->inputs[0] != node->outputs[0] ||
        !is_plain_constant(l, reader->inputs[1]) || y->rank != 2 || y->dims[0] != x->dims[0])
        return false;
    for (uint32_t i = 1; i < x->rank; i++)
        if (!muc_rewrite_dim(&l->r.old, x, i, &dim))
            return false;
    return true;
}

static muc_status lay_reshape(layout *l, const muc_node *node)
{
    uint32_t x = node->inputs[0], id;
    bool agree;

    if (!is_last(l, x))
        return keep(l, node);
    agree = forms_agree(l, x);
    if (!agree && !is_flattened_for_linear(l, node))
        return keep(l, node);
    if (!agree)
        l->flat[node->outputs[0]] = x;
    id = l->last[x];
    return muc_rewrite_change(&l->r, node, MUC_OP_RESHAPE, &id, 1, node->attributes,
                              node->attribute_count);
}

/* columns of the weights in the order of the flattened last form of x */
static muc_status lay_columns(layout *l, const muc_tensor *x, const muc_tensor *w, uint32_t *out)
{
    uint32_t dims[MAX_RANK], perm[MAX_RANK], columns = 1, rows;
    size_t width = muc_dtype_get(w->dtype)->block_bytes;
    muc_status status;
    uint8_t *data;

    if (muc_rewrite_is_shape(&l->r, w, w->bytes))
        return muc_rewrite_constant(&l->r, w->name, w, w->data, w->bytes, out);
    for (uint32_t i = 1; i < x->rank; i++) {
        muc_rewrite_dim(&l->r.old, x, i, &dims[i - 1]);
        perm[i - 1] = i == x->rank - 1 ? 0 : i;
        columns *= dims[i - 1];
    }
    if (!muc_rewrite_dim(&l->r.old, w, 0, &rows))
        return muc_fail(l->r.ctx, MUC_BUG, l->r.old.name, MUC_NO_OFFSET,
                        "constant '%s' has no fixed shape", w->name);
    data = malloc((size_t)w->bytes + 1);
    if (!data)
        return muc_fail_nomem(l->r.ctx, l->r.old.name, (size_t)w->bytes);
    for (size_t n = 0; n < rows; n++)
        permute(w->data + n * columns * width, width, x->rank - 1, dims, perm,
                data + n * columns * width);
    status = muc_rewrite_constant(&l->r, w->name, w, data, w->bytes, out);
    free(data);
    return status;
}

static muc_status lay_linear(layout *l, const muc_node *node)
{
    uint32_t inputs[5], flat = l->flat[node->inputs[0]];
    muc_status status;

    if (flat == MUC_NO_ID)
        return keep(l, node);
    status = lay_columns(l, old(l, flat), old(l, node->inputs[1]), &inputs[1]);
    for (uint32_t i = 0; i < node->input_count && status == MUC_OK; i++)
        if (i != 1)
            status = get_first(l, node->inputs[i], &inputs[i]);
    if (status == MUC_OK)
        status = muc_rewrite_change(&l->r, node, node->op, inputs, node->input_count,
                                    node->attributes, node->attribute_count);
    return status;
}

/* ---- the pass ---- */

static muc_status lay_node(layout *l, const muc_node *node)
{
    if (is_over_pixels(l, node))
        return lay_pixels(l, node);
    if (node->op == MUC_OP_TRANSPOSE)
        return lay_transpose(l, node);
    if (node->op == MUC_OP_RESHAPE)
        return lay_reshape(l, node);
    if (is_linear(node->op))
        return lay_linear(l, node);
    if (muc_op_has(node->op, MUC_OP_POINTWISE))
        return lay_pointwise(l, node);
    return node->input_count && node->inputs[0] != MUC_NO_ID ? lay_named(l, node) : keep(l, node);
}

static muc_status lay(layout *l)
{
    size_t tensors = l->r.old.tensor_count;

    MUC_TRY(MUC_NEW_ARRAY(l->r.ctx, l->r.old.name, tensors, &l->last));
    MUC_TRY(MUC_NEW_ARRAY(l->r.ctx, l->r.old.name, tensors, &l->flat));
    for (size_t i = 0; i < tensors; i++)
        l->last[i] = l->flat[i] = MUC_NO_ID;
    for (uint32_t n = 0; n < l->r.old.node_count; n++)
        if (l->r.needed[n])
            MUC_TRY(lay_node(l, &l->r.old.nodes[n]));
    for (uint32_t i = 0; i < l->r.old.output_count; i++)
        MUC_TRY(give_output(l, l->r.old.outputs[i]));
    return muc_rewrite_end(&l->r);
}

muc_status muc_lay_channels_last(muc_context *ctx, muc_graph *graph)
{
    layout l = { .last = NULL };
    muc_status status = muc_rewrite_begin(ctx, graph, &l.r);

    if (status == MUC_OK)
        status = lay(&l);
    free(l.last);
    free(l.flat);
    muc_rewrite_free(&l.r);
    MUC_TRY(status);
    return muc_canonicalise(ctx, graph);
}

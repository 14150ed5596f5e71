/* shift_unsigned.c - turns u8 tensors into i8 tensors, each element less by 128, which int8 kernels
 * read.
 *
 * Every tensor has its own form and may get a second one of i8. Where it carries quantization, its
 * zero points are less by 128 as well: both forms stand for the same numbers, and every operator
 * that computes on integers less their zero points, or only moves them, takes and gives the second
 * form. Where it carries none, only what a kernel gains from gets it: requantizations give either
 * form for another constant, products take either with another zero point, and operators that move
 * elements do not care. Where nobody made the form that is asked for, a quantize or a lookup does.
 */
#include "passes/integer/shift_unsigned.h"

#include <stdlib.h>
#include <string.h>

#include "graph/scales.h"
#include "passes/rewrite.h"

enum { SHIFT = 128, MOST_INPUTS = 64, MOST_ATTRIBUTES = 16 };

typedef struct shifting {
    muc_rewrite r;
    bool quantized;    /* of tensors that carry quantization, else of those that carry none */
    uint32_t *shifted; /* old tensor to its second form, or MUC_NO_ID */
    bool *wanted;      /* of old tensors: the second form shall be there */
} shifting;

static const muc_tensor *old(const shifting *s, uint32_t id)
{
    return muc_rewrite_old(&s->r, id);
}

static bool is_u8(const shifting *s, uint32_t id)
{
    const muc_tensor *t = id == MUC_NO_ID ? NULL : old(s, id);

    if (!t || t->dtype != MUC_U8 || !t->quantization == s->quantized)
        return false;
    return !s->quantized || t->quantization->count == 1 || muc_rewrite_is_constant(&s->r, id);
}

/* ---- with quantization ---- */

/* Does the operator compute on integers less their zero points, or only move and compare them?
 * TFLite's arithmetic does, but for what keep_roundings mends, a resize that is not to the nearest,
 * and operators that keep u8. */
static bool ignores_shift(const muc_node *node)
{
    unsigned flags = muc_op_get(node->op)->flags;

    if (node->op == MUC_OP_RESIZE)
        return muc_node_word_or(node, MUC_KEY_MODE, MUC_WORD_NEAREST) == MUC_WORD_NEAREST;
    return flags & (MUC_OP_QUANTIZED | MUC_OP_MOVES) && !(flags & MUC_OP_KEEPS_U8);
}

/* a quantization with zero points less by 128; zeros: of its count */
static muc_quantization lower_zeros(const muc_quantization *q, int32_t *zeros)
{
    muc_quantization lowered = *q;

    for (uint32_t i = 0; i < q->count; i++)
        zeros[i] = q->zero_points[i] - SHIFT;
    lowered.zero_points = zeros;
    return lowered;
}

/* nothing but the weights of products, of which only what they stand for counts */
static bool are_weights(const shifting *s, uint32_t id)
{
    const muc_node *reader = muc_rewrite_only_reader(&s->r, id);
    muc_product_kind kind = reader ? muc_op_product(reader->op)->kind : MUC_PRODUCT_NONE;

    return (kind == MUC_PRODUCT_FILTER || kind == MUC_PRODUCT_ROWS) && reader->inputs[1] == id &&
           old(s, id)->quantization->count == 1;
}

/* A constant's bytes; weights that are all near enough to their zero point get zero point 0, which
 * more kernels take. */
static void shift_bytes(const muc_tensor *x, bool weights, int32_t *zeros, int8_t *bytes)
{
    int32_t least = INT32_MAX, most = INT32_MIN, step = SHIFT;

    for (uint64_t i = 0; i < x->bytes; i++) {
        least = x->data[i] < least ? x->data[i] : least;
        most = x->data[i] > most ? x->data[i] : most;
    }
    if (weights && least - SHIFT - zeros[0] >= INT8_MIN && most - SHIFT - zeros[0] <= INT8_MAX) {
        step += zeros[0];
        zeros[0] = 0;
    }
    for (uint64_t i = 0; i < x->bytes; i++)
        bytes[i] = (int8_t)(x->data[i] - step);
}

muc_status muc_shift_constant(muc_rewrite *r, const muc_tensor *x, bool weights, uint32_t *out)
{
    muc_tensor like = *x;
    muc_quantization q;
    int32_t *zeros;
    int8_t *bytes = NULL;
    muc_status status = MUC_NEW_ARRAY(r->ctx, r->old.name, x->quantization->count, &zeros);

    if (status == MUC_OK)
        status = MUC_NEW_ARRAY(r->ctx, r->old.name, (size_t)x->bytes + 1, &bytes);
    if (status == MUC_OK) {
        q = lower_zeros(x->quantization, zeros);
        shift_bytes(x, weights, zeros, bytes);
        like.dtype = MUC_I8;
        like.quantization = &q;
        status = muc_rewrite_constant(r, x->name, &like, bytes, x->bytes, out);
    }
    free(bytes);
    free(zeros);
    return status;
}

/* ---- without ---- */

/* an operator whose output has its inputs' elements alone, whatever they are */
static bool moves(const muc_node *node)
{
    return node->output_count == 1 && muc_op_has(node->op, MUC_OP_SELECTS);
}

/* input 3 is added before its sums are shifted */
static bool requantizes_sums(const muc_node *node)
{
    return muc_op_get(node->op)->least_inputs > 3 && muc_node_attribute(node, MUC_KEY_SHIFT);
}

/* of weights that may be constants */
static bool is_product(const muc_node *node)
{
    muc_product_kind kind = muc_op_product(node->op)->kind;

    return requantizes_sums(node) && (kind == MUC_PRODUCT_FILTER || kind == MUC_PRODUCT_ROWS);
}

/* the inputs that are elements, not parameters, of an operator that takes either form */
static uint32_t operands(const muc_node *node)
{
    return moves(node) ? node->input_count : is_product(node) || node->op == MUC_OP_LOOKUP;
}

static bool is_words(const shifting *s, uint32_t id)
{
    return muc_rewrite_is_constant(&s->r, id) && old(s, id)->dtype == MUC_I32;
}

/* what a requantization's second form has less in its sums */
static int64_t step_of(const muc_node *requantization)
{
    return (int64_t)SHIFT << muc_node_integer(requantization, MUC_KEY_SHIFT);
}

/* whether every element of a constant of i32 is that still when it is less by `step` */
static bool holds(const shifting *s, uint32_t add, int64_t step)
{
    size_t count = (size_t)old(s, add)->bytes / sizeof(int32_t);

    for (size_t i = 0; i < count; i++) {
        int32_t word;

        memcpy(&word, old(s, add)->data + i * sizeof(word), sizeof(word));
        if (word - step < INT32_MIN)
            return false;
    }
    return true;
}

/* can the node give its output's second form? */
static bool can_shift(const shifting *s, const muc_node *node)
{
    if (requantizes_sums(node))
        return is_words(s, node->inputs[3]) && holds(s, node->inputs[3], step_of(node));
    return node->op == MUC_OP_LOOKUP ? muc_rewrite_is_constant(&s->r, node->inputs[1])
                                     : moves(node);
}

/* is the node one that the second form makes faster? */
static bool gains(const shifting *s, const muc_node *node)
{
    return is_product(node) && muc_rewrite_is_constant(&s->r, node->inputs[1]) &&
           old(s, node->inputs[1])->dtype == MUC_I8 && muc_node_input(node, 4) == MUC_NO_ID &&
           is_words(s, node->inputs[2]) && is_words(s, node->inputs[3]);
}

static void find_wanted(shifting *s)
{
    for (uint32_t n = s->r.old.node_count; n-- > 0;) {
        const muc_node *node = &s->r.old.nodes[n];
        uint32_t out = node->outputs[0];
        bool whole = s->r.needed[n] && (gains(s, node) || (moves(node) && s->wanted[out]));

        for (uint32_t i = 0; whole && i < operands(node); i++)
            if (is_u8(s, node->inputs[i]))
                s->wanted[node->inputs[i]] = true;
        if (whole && !moves(node) && is_u8(s, out))
            s->wanted[out] = true; /* its own kernel writes i8 */
    }
    for (uint32_t n = 0; n < s->r.old.node_count; n++) { /* from the second form the second */
        const muc_node *node = &s->r.old.nodes[n];
        bool all = s->r.needed[n] && moves(node);

        for (uint32_t i = 0; i < node->input_count && all; i++)
            all = is_u8(s, node->inputs[i]) && s->wanted[node->inputs[i]];
        if (all)
            s->wanted[node->outputs[0]] = true;
    }
}

/* ---- the rule of both ---- */

/* whether the node is made anew; if not, it reads and gives what it did */
static bool is_shifted(const shifting *s, const muc_node *node)
{
    return (!s->quantized || ignores_shift(node)) && node->input_count <= MOST_INPUTS &&
           node->attribute_count < MOST_ATTRIBUTES;
}

static bool gives_shifted(const shifting *s, const muc_node *node, uint32_t output)
{
    uint32_t id = node->outputs[output];

    return is_u8(s, id) &&
           (s->quantized || (node->output_count == 1 && s->wanted[id] && can_shift(s, node)));
}

static bool takes_shifted(const shifting *s, const muc_node *node, uint32_t input)
{
    uint32_t id = node->inputs[input];

    if (!is_u8(s, id) || s->quantized)
        return is_u8(s, id);
    if (moves(node) || input >= operands(node))
        return moves(node) && gives_shifted(s, node, 0);
    return s->wanted[id] && !(is_product(node) && muc_node_input(node, 4) != MUC_NO_ID);
}

/* The second form of what carries quantization is the same numbers and has the tensor's name, but
 * for outputs of the graph; else the plain form has it. */
static bool plain_has_name(const shifting *s, uint32_t id)
{
    return !s->quantized || s->r.is_output[id];
}

/* ---- forms ---- */

/* the table of a lookup between the forms: from the least on, either way */
static muc_status add_table(shifting *s, muc_dtype to, uint32_t *out)
{
    muc_tensor like = { .dtype = to, .rank = 1 };
    uint8_t table[256];

    for (int i = 0; i < 256; i++)
        table[i] = (uint8_t)(to == MUC_I8 ? i - SHIFT : i);
    like.dims[0] = muc_expr_const(s->r.graph->pool, 256);
    return muc_rewrite_constant(&s->r, "shifted", &like, table, sizeof(table), out);
}

/* the form of type `to` of the other one, by a node of its own */
static muc_status convert(shifting *s, uint32_t id, uint32_t from, muc_dtype to, uint32_t *out)
{
    const muc_attribute type = { .key = MUC_KEY_TO, .value.integer = to };
    uint32_t inputs[2] = { from, MUC_NO_ID };
    int32_t zero;
    muc_quantization lowered;
    const muc_quantization *q = old(s, id)->quantization;
    const char *name = old(s, id)->name;

    if (!s->quantized) {
        MUC_TRY(add_table(s, to, &inputs[1]));
    } else if (to == MUC_I8) {
        lowered = lower_zeros(q, &zero);
        q = &lowered;
    }
    if (to != MUC_U8 || !plain_has_name(s, id))
        MUC_TRY(muc_rewrite_free_name(&s->r, name, &name));
    return muc_rewrite_add_named(&s->r, s->quantized ? MUC_OP_QUANTIZE : MUC_OP_LOOKUP, name,
                                 inputs, s->quantized ? 1 : 2, &type, s->quantized, q, out);
}

static muc_status get_plain(shifting *s, uint32_t id, uint32_t *out)
{
    if (id != MUC_NO_ID && s->r.map[id] == MUC_NO_ID && s->shifted[id] != MUC_NO_ID &&
        !muc_rewrite_is_constant(&s->r, id))
        MUC_TRY(convert(s, id, s->shifted[id], MUC_U8, &s->r.map[id]));
    return muc_rewrite_tensor(&s->r, id, out);
}

static muc_status get_shifted(shifting *s, uint32_t id, uint32_t *out)
{
    uint32_t plain;

    if (s->shifted[id] == MUC_NO_ID && s->quantized && muc_rewrite_is_constant(&s->r, id)) {
        MUC_TRY(muc_shift_constant(&s->r, old(s, id), are_weights(s, id), &s->shifted[id]));
    } else if (s->shifted[id] == MUC_NO_ID) {
        MUC_TRY(muc_rewrite_tensor(&s->r, id, &plain));
        MUC_TRY(convert(s, id, plain, MUC_I8, &s->shifted[id]));
    }
    *out = s->shifted[id];
    return MUC_OK;
}

/* ---- nodes ---- */

/* A node to be, with operands of either form. */
typedef struct draft {
    uint32_t inputs[MOST_INPUTS], input_count;
    muc_attribute attributes[MOST_ATTRIBUTES];
    uint32_t attribute_count;
} draft;

static void add_attribute(draft *d, muc_attribute_key key, int64_t value)
{
    d->attributes[d->attribute_count++] = (muc_attribute){ .key = key, .value.integer = value };
}

/* can a window of a pool have an even number of elements inside? */
static bool may_be_even(const muc_node *pool)
{
    const muc_attribute *kernel = muc_node_attribute(pool, MUC_KEY_KERNEL);
    const muc_attribute *pads = muc_node_attribute(pool, MUC_KEY_PADS);

    for (uint32_t i = 0; pads && i < pads->value.integers.count; i++)
        if (pads->value.integers.items[i] != 0)
            return true;
    for (uint32_t i = 0; kernel && i < kernel->value.integers.count; i++)
        if (kernel->value.integers.items[i] % 2 == 0)
            return true;
    return muc_node_integer_or(pool, MUC_KEY_CEIL_MODE, 0) != 0;
}

/* What TFLite does otherwise for u8 than for i8: where weights have one scale, the scales' product
 * is rounded to single precision; the halves of an average pool go away from zero, which is up. */
static void keep_roundings(const shifting *s, const muc_node *node, draft *d)
{
    muc_product_kind kind = muc_op_product(node->op)->kind;
    bool conv = kind == MUC_PRODUCT_FILTER || kind == MUC_PRODUCT_SPREAD;

    if (conv && is_u8(s, node->inputs[0]) && is_u8(s, node->inputs[1]))
        add_attribute(d, MUC_KEY_SINGLE, 1);
    if (muc_op_has(node->op, MUC_OP_AVERAGES) && is_u8(s, node->inputs[0]) && may_be_even(node))
        add_attribute(d, MUC_KEY_ROUNDING, MUC_WORD_ROUND_PREFER_CEIL);
}

/* the constant of i32, each element less by step */
static muc_status lower_words(shifting *s, int64_t step, uint32_t *id)
{
    const muc_tensor words = s->r.graph->tensors[*id];
    size_t count = (size_t)words.bytes / sizeof(int32_t);
    int32_t *items;
    muc_status status;

    MUC_TRY(MUC_NEW_ARRAY(s->r.ctx, s->r.old.name, count, &items));
    memcpy(items, words.data, count * sizeof(*items));
    for (size_t i = 0; i < count; i++)
        items[i] = (int32_t)(items[i] - step);
    status = muc_rewrite_constant(&s->r, words.name, &words, items, count * sizeof(*items), id);
    free(items);
    return status;
}

static muc_status lower_table(shifting *s, uint32_t *id)
{
    muc_tensor like = s->r.graph->tensors[*id];
    uint8_t table[256];

    for (int i = 0; i < 256; i++)
        table[i] = (uint8_t)(like.data[i] - SHIFT);
    like.dtype = MUC_I8;
    return muc_rewrite_constant(&s->r, "table", &like, table, sizeof(table), id);
}

/* The constants that make up for forms without quantization: a zero point for the operand's (a
 * table begins with the least, whatever that is called), and sums or a table for the output's. */
static muc_status change_constants(shifting *s, const muc_node *node, bool taken, bool given,
                                   draft *d)
{
    muc_tensor like = { .dtype = MUC_I8 };
    const int8_t zero = -SHIFT;

    if (taken && is_product(node)) {
        d->input_count = 5;
        MUC_TRY(muc_rewrite_constant(&s->r, "zero", &like, &zero, 1, &d->inputs[4]));
    }
    if (!given || moves(node))
        return MUC_OK;
    return node->op == MUC_OP_LOOKUP ? lower_table(s, &d->inputs[1])
                                     : lower_words(s, step_of(node), &d->inputs[3]);
}

static muc_status name_shifted(shifting *s, uint32_t id, const char **out)
{
    *out = old(s, id)->name;
    if (!plain_has_name(s, id))
        return MUC_OK;
    if (s->quantized)
        MUC_TRY(muc_arena_format(s->r.ctx, &s->r.graph->arena, out, "%s#i8", *out));
    return muc_rewrite_free_name(&s->r, *out, out);
}

static muc_status add_node(shifting *s, const muc_node *node, const draft *d)
{
    const char *names[MUC_GRAPH_MAX_OUTPUTS];
    const muc_quantization *quantization[MUC_GRAPH_MAX_OUTPUTS];
    muc_quantization lowered[MUC_GRAPH_MAX_OUTPUTS];
    int32_t zeros[MUC_GRAPH_MAX_OUTPUTS];
    uint32_t outputs[MUC_GRAPH_MAX_OUTPUTS];
    const muc_new_node added = { .op = node->op,
                                 .name = node->name,
                                 .input_count = d->input_count,
                                 .inputs = d->inputs,
                                 .attribute_count = d->attribute_count,
                                 .attributes = d->attributes,
                                 .output_count = node->output_count,
                                 .output_names = names,
                                 .quantization = quantization };

    for (uint32_t i = 0; i < node->output_count; i++) {
        const muc_tensor *out = old(s, node->outputs[i]);

        names[i] = out->name;
        quantization[i] = out->quantization;
        if (!gives_shifted(s, node, i))
            continue;
        MUC_TRY(name_shifted(s, node->outputs[i], &names[i]));
        if (!s->quantized)
            continue;
        lowered[i] = lower_zeros(out->quantization, &zeros[i]);
        quantization[i] = &lowered[i];
    }
    MUC_TRY(muc_graph_add(s->r.ctx, s->r.graph, &added, outputs));
    for (uint32_t i = 0; i < node->output_count; i++)
        *(gives_shifted(s, node, i) ? &s->shifted[node->outputs[i]] : &s->r.map[node->outputs[i]]) =
            outputs[i];
    return MUC_OK;
}

static muc_status shift_node(shifting *s, const muc_node *node)
{
    draft d = { .input_count = node->input_count, .attribute_count = node->attribute_count };
    bool given = node->output_count > 0 && gives_shifted(s, node, 0), taken = false;

    for (uint32_t i = 0; i < node->input_count; i++) {
        bool takes = takes_shifted(s, node, i);

        taken = taken || takes;
        MUC_TRY(takes ? get_shifted(s, node->inputs[i], &d.inputs[i])
                      : get_plain(s, node->inputs[i], &d.inputs[i]));
    }
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        muc_attribute *a = &d.attributes[i];

        *a = node->attributes[i];
        if (given && (a->key == MUC_KEY_CLAMP_MIN || a->key == MUC_KEY_CLAMP_MAX))
            a->value.integer -= SHIFT;
        if (given && a->key == MUC_KEY_TO)
            a->value.integer = MUC_I8;
    }
    if (s->quantized)
        keep_roundings(s, node, &d);
    else
        MUC_TRY(change_constants(s, node, taken, given, &d));
    return add_node(s, node, &d);
}

static muc_status keep_node(shifting *s, const muc_node *node)
{
    uint32_t id;

    for (uint32_t i = 0; i < node->input_count; i++)
        MUC_TRY(get_plain(s, node->inputs[i], &id));
    return muc_rewrite_keep(&s->r, node);
}

static muc_status shift(shifting *s)
{
    size_t tensors = s->r.old.tensor_count;
    uint32_t plain;

    MUC_TRY(MUC_NEW_ARRAY(s->r.ctx, s->r.old.name, tensors, &s->shifted));
    MUC_TRY(MUC_NEW_ARRAY(s->r.ctx, s->r.old.name, tensors, &s->wanted));
    for (size_t i = 0; i < tensors; i++)
        s->shifted[i] = MUC_NO_ID;
    if (!s->quantized)
        find_wanted(s);
    for (uint32_t n = 0; n < s->r.old.node_count; n++) {
        const muc_node *node = &s->r.old.nodes[n];

        if (s->r.needed[n])
            MUC_TRY(is_shifted(s, node) ? shift_node(s, node) : keep_node(s, node));
    }
    for (uint32_t i = 0; i < s->r.old.output_count; i++)
        MUC_TRY(get_plain(s, s->r.old.outputs[i], &plain));
    return muc_rewrite_end(&s->r);
}

static muc_status shift_unsigned(muc_context *ctx, muc_graph *graph, bool quantized)
{
    shifting s = { .quantized = quantized };
    muc_status status;
    bool any = false;

    for (uint32_t i = 0; i < graph->tensor_count; i++)
        any = any || (graph->tensors[i].dtype == MUC_U8 &&
                      (graph->tensors[i].quantization != NULL) == quantized);
    if (!any)
        return MUC_OK;
    status = muc_rewrite_begin(ctx, graph, &s.r);
    if (status == MUC_OK)
        status = shift(&s);
    free(s.shifted);
    free(s.wanted);
    muc_rewrite_free(&s.r);
    return status;
}

muc_status muc_shift_quantized(muc_context *ctx, muc_graph *graph)
{
    return shift_unsigned(ctx, graph, true);
}

muc_status muc_shift_requantized(muc_context *ctx, muc_graph *graph)
{
    return shift_unsigned(ctx, graph, false);
}

/* shift_bytes.c - u8 tensors as i8 ones, each element less by 128: what int8 kernels read.
 *
 * Every tensor has its own form and may get a second one. Requantizations give either for another
 * constant, products take either with another zero point, and operators that move elements do not
 * care; where nobody made the form that is asked for, a lookup does. */
#include <stdlib.h>
#include <string.h>

#include "passes/integer/fuse_requantize.h"
#include "passes/rewrite.h"

enum { SHIFT = 128, MOST_INPUTS = 8, MOST_ATTRIBUTES = 16 };

typedef struct shifting {
    muc_rewrite r;
    uint32_t *shifted; /* old tensor to its second form, or MUC_NO_ID */
    bool *wanted;      /* of old tensors: the second form shall be there */
} shifting;

static const muc_tensor *old(const shifting *s, uint32_t id)
{
    return &s->r.old.tensors[id];
}

static bool is_u8(const shifting *s, uint32_t id)
{
    return id != MUC_NO_ID && old(s, id)->dtype == MUC_U8 && !old(s, id)->quantization;
}

/* an operator whose output has its inputs' elements alone, whatever they are */
static bool moves(const muc_node *node)
{
    return node->output_count == 1 &&
           (node->op == MUC_OP_MAX_POOL || node->op == MUC_OP_RESHAPE ||
            node->op == MUC_OP_TRANSPOSE || node->op == MUC_OP_SLICE || node->op == MUC_OP_CONCAT);
}

static bool is_product(const muc_node *node)
{
    return node->op == MUC_OP_REQUANT_CONV || node->op == MUC_OP_REQUANT_LINEAR;
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
static bool gives(const shifting *s, const muc_node *node)
{
    switch ((int)node->op) {
    case MUC_OP_REQUANT_CONV:
    case MUC_OP_REQUANT_LINEAR:
    case MUC_OP_REQUANT_MATMUL:
    case MUC_OP_REQUANT_ADD:
    case MUC_OP_REQUANT_MUL:
        return is_words(s, node->inputs[3]) &&
               holds(s, node->inputs[3], (int64_t)SHIFT << muc_node_integer(node, MUC_KEY_SHIFT));
    case MUC_OP_LOOKUP:
        return muc_rewrite_is_constant(&s->r, node->inputs[1]);
    default:
        return moves(node);
    }
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

/* ---- forms ---- */

/* a lookup between the forms; the first form has the tensor's own name */
static muc_status convert(shifting *s, uint32_t id, uint32_t from, muc_dtype to, uint32_t *out)
{
    muc_tensor like = { .dtype = to, .rank = 1 };
    uint32_t inputs[2] = { from, 0 };
    const muc_new_node node = {
        .op = MUC_OP_LOOKUP, .name = old(s, id)->name, .input_count = 2, .inputs = inputs
    };
    uint8_t table[256];

    for (int i = 0; i < 256; i++) /* from the least on, either way */
        table[i] = (uint8_t)(to == MUC_I8 ? i - SHIFT : i);
    like.dims[0] = muc_expr_const(s->r.graph->pool, 256);
    MUC_TRY(muc_rewrite_constant(&s->r, "shifted", &like, table, sizeof(table), &inputs[1]));
    if (to == MUC_U8)
        return muc_graph_add(s->r.ctx, s->r.graph, &node, out);
    return muc_rewrite_add(&s->r, MUC_OP_LOOKUP, old(s, id)->name, inputs, 2, NULL, 0, NULL, out);
}

static muc_status get_plain(shifting *s, uint32_t id, uint32_t *out)
{
    if (id != MUC_NO_ID && s->r.map[id] == MUC_NO_ID && s->shifted[id] != MUC_NO_ID)
        MUC_TRY(convert(s, id, s->shifted[id], MUC_U8, &s->r.map[id]));
    return muc_rewrite_tensor(&s->r, id, out);
}

static muc_status get_shifted(shifting *s, uint32_t id, uint32_t *out)
{
    uint32_t plain;

    if (s->shifted[id] == MUC_NO_ID) {
        MUC_TRY(muc_rewrite_tensor(&s->r, id, &plain));
        MUC_TRY(convert(s, id, plain, MUC_I8, &s->shifted[id]));
    }
    *out = s->shifted[id];
    return MUC_OK;
}

/* the constant of i32, each element less by step */
static muc_status lower(shifting *s, const muc_tensor *words, int64_t step, uint32_t *out)
{
    size_t count = (size_t)words->bytes / sizeof(int32_t);
    int32_t *items;
    muc_status status;

    MUC_TRY(MUC_NEW_ARRAY(s->r.ctx, s->r.old.name, count, &items));
    memcpy(items, words->data, count * sizeof(*items));
    for (size_t i = 0; i < count; i++)
        items[i] = (int32_t)(items[i] - step);
    status = muc_rewrite_constant(&s->r, words->name, words, items, count * sizeof(*items), out);
    free(items);
    return status;
}

/* ---- nodes ---- */

/* A node to be, with operands of either form. */
typedef struct draft {
    uint32_t inputs[MOST_INPUTS], count;
    muc_attribute attributes[MOST_ATTRIBUTES];
} draft;

static void set_integer(draft *d, uint32_t count, muc_attribute_key key, int64_t value)
{
    for (uint32_t i = 0; i < count; i++)
        if (d->attributes[i].key == key)
            d->attributes[i].value.integer = value;
}

/* what makes up for operands less by 128: a zero point */
static muc_status make_up(shifting *s, const muc_node *node, draft *d)
{
    muc_tensor like = { .dtype = MUC_I8 };
    const int8_t zero = -SHIFT;

    if (!is_product(node))
        return MUC_OK; /* a table begins with the least, whatever that is called */
    d->count = 5;
    return muc_rewrite_constant(&s->r, "zero", &like, &zero, 1, &d->inputs[4]);
}

/* the draft's output is the second form; *out of its node, whose name is free */
static muc_status give_shifted(shifting *s, const muc_node *node, draft *d)
{
    uint32_t id = node->outputs[0], count = node->attribute_count;
    muc_tensor like;
    uint8_t table[256];

    if (node->op == MUC_OP_LOOKUP) {
        like = s->r.graph->tensors[d->inputs[1]];
        for (int i = 0; i < 256; i++)
            table[i] = (uint8_t)(like.data[i] - SHIFT);
        like.dtype = MUC_I8;
        MUC_TRY(muc_rewrite_constant(&s->r, "table", &like, table, sizeof(table), &d->inputs[1]));
    } else if (!moves(node)) {
        MUC_TRY(lower(s, &s->r.graph->tensors[d->inputs[3]],
                      (int64_t)SHIFT << muc_node_integer(node, MUC_KEY_SHIFT), &d->inputs[3]));
        set_integer(d, count, MUC_KEY_TO, MUC_I8);
        set_integer(d, count, MUC_KEY_CLAMP_MIN, muc_node_integer(node, MUC_KEY_CLAMP_MIN) - SHIFT);
        set_integer(d, count, MUC_KEY_CLAMP_MAX, muc_node_integer(node, MUC_KEY_CLAMP_MAX) - SHIFT);
    }
    return muc_rewrite_add(&s->r, node->op, old(s, id)->name, d->inputs, d->count, d->attributes,
                           count, NULL, &s->shifted[id]);
}

static muc_status deal_with(shifting *s, const muc_node *node)
{
    uint32_t out = node->outputs[0], shifted = 0;
    bool to_shifted = node->output_count == 1 && s->wanted[out] && gives(s, node);
    bool any = to_shifted;
    draft d = { .count = node->input_count };

    for (uint32_t i = 0; i < operands(node); i++)
        any = any || (is_u8(s, node->inputs[i]) && s->wanted[node->inputs[i]]);
    if (!any || node->input_count > MOST_INPUTS || node->attribute_count > MOST_ATTRIBUTES)
        to_shifted = any = false;
    memcpy(d.attributes, node->attributes, any ? node->attribute_count * sizeof(*d.attributes) : 0);
    for (uint32_t i = 0; i < node->input_count && any; i++) {
        bool second = i < operands(node) && is_u8(s, node->inputs[i]) &&
                      (moves(node) ? to_shifted : s->wanted[node->inputs[i]]);

        if (second && is_product(node) && muc_node_input(node, 4) != MUC_NO_ID)
            second = false;
        shifted += second;
        MUC_TRY(second ? get_shifted(s, node->inputs[i], &d.inputs[i])
                       : get_plain(s, node->inputs[i], &d.inputs[i]));
    }
    if (shifted)
        MUC_TRY(make_up(s, node, &d));
    if (to_shifted)
        return give_shifted(s, node, &d);
    if (shifted)
        return muc_rewrite_change(&s->r, node, node->op, d.inputs, d.count, d.attributes,
                                  node->attribute_count);
    for (uint32_t i = 0; i < node->input_count; i++)
        MUC_TRY(get_plain(s, node->inputs[i], &out));
    return muc_rewrite_keep(&s->r, node);
}

static muc_status shift(shifting *s)
{
    size_t tensors = s->r.old.tensor_count;

    MUC_TRY(MUC_NEW_ARRAY(s->r.ctx, s->r.old.name, tensors, &s->shifted));
    MUC_TRY(MUC_NEW_ARRAY(s->r.ctx, s->r.old.name, tensors, &s->wanted));
    for (size_t i = 0; i < tensors; i++)
        s->shifted[i] = MUC_NO_ID;
    find_wanted(s);
    for (uint32_t n = 0; n < s->r.old.node_count; n++)
        if (s->r.needed[n])
            MUC_TRY(deal_with(s, &s->r.old.nodes[n]));
    for (uint32_t i = 0; i < s->r.old.output_count; i++) {
        uint32_t plain;

        MUC_TRY(get_plain(s, s->r.old.outputs[i], &plain));
    }
    return muc_rewrite_end(&s->r);
}

muc_status muc_shift_bytes(muc_context *ctx, muc_graph *graph)
{
    shifting s = { .shifted = NULL };
    muc_status status = muc_rewrite_begin(ctx, graph, &s.r);

    if (status == MUC_OK)
        status = shift(&s);
    free(s.shifted);
    free(s.wanted);
    muc_rewrite_free(&s.r);
    return status;
}

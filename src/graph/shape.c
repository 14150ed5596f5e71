/* shape.c - calls the shape rule of each node, and holds what the rules share. */
#include "graph/shape.h"

#include <stdarg.h>
#include <string.h>

const muc_tensor *muc_rule_input(const muc_rule *r, uint32_t i)
{
    uint32_t id = muc_node_input(r->node, i);

    return id == MUC_NO_ID ? NULL : &r->graph->tensors[id];
}

muc_status muc_rule_unexpected(const muc_rule *r, uint32_t i, const char *format, ...)
{
    muc_text text = { 0 };
    muc_status status;
    va_list args;

    muc_tensor_print_shape(r->graph, muc_rule_input(r, i), &text);
    muc_text_add(&text, ", expected ");
    va_start(args, format);
    muc_text_add_args(&text, format, args);
    va_end(args);
    status = muc_fail_on(muc_node_subject(r->ctx, r->graph, r->node), MUC_MALFORMED,
                         "input %u ('%s') is %s", i, muc_rule_input(r, i)->name,
                         text.data ? text.data : "?");
    muc_text_free(&text);
    return status;
}

bool muc_rule_is_float(const muc_rule *r, uint32_t i)
{
    return muc_dtype_get(muc_rule_input(r, i)->dtype)->kind == MUC_DTYPE_FLOAT;
}

bool muc_rule_is_integer(const muc_rule *r, uint32_t i)
{
    return !muc_rule_is_float(r, i) && muc_rule_input(r, i)->dtype != MUC_BOOL;
}

bool muc_rule_const(const muc_rule *r, muc_expr dim, uint32_t *value)
{
    if (!muc_expr_is_const(r->graph->pool, dim))
        return false;
    *value = muc_expr_get(r->graph->pool, dim)->immediate;
    return true;
}

muc_expr muc_rule_dim(const muc_rule *r, uint64_t value)
{
    return value > UINT32_MAX ? MUC_EXPR_NONE : muc_expr_const(r->graph->pool, (uint32_t)value);
}

static void print_range(const muc_rule *r, muc_expr e, muc_text *text)
{
    const muc_expr_node *node = muc_expr_get(r->graph->pool, e);

    muc_expr_print(r->graph->pool, e, text);
    if (node->lo < node->hi)
        muc_text_add(text, " (%u..%u)", node->lo, node->hi);
}

muc_status muc_rule_require(const muc_rule *r, const char *what, muc_expr a, bool equal, muc_expr b)
{
    muc_text text = { 0 };
    muc_expr_truth truth;
    muc_status status;

    MUC_TRY(muc_expr_status(r->graph->pool));
    truth = muc_expr_holds(r->graph->pool, a, equal, b);
    if (truth == MUC_EXPR_ALWAYS)
        return MUC_OK;
    if (truth == MUC_EXPR_NEVER) {
        print_range(r, a, &text);
        muc_text_add(&text, equal ? ", expected " : ", expected at most ");
        print_range(r, b, &text);
        status = muc_rule_fail(r, "%s: %s", what, text.data ? text.data : "?");
    } else {
        muc_text_add(&text, "node '%s': %s", r->node->name, what);
        status = muc_text_status(r->ctx, &text);
        if (status == MUC_OK)
            status = muc_expr_require(r->graph->pool, a, equal, b, r->graph->name, text.data);
    }
    muc_text_free(&text);
    return status;
}

void muc_rule_like(const muc_rule *r, uint32_t output, const muc_tensor *tensor)
{
    r->outputs[output].dtype = tensor->dtype;
    r->outputs[output].rank = tensor->rank;
    memcpy(r->outputs[output].dims, tensor->dims, sizeof(tensor->dims));
}

muc_status muc_rule_expect_type(const muc_rule *r, uint32_t i)
{
    muc_dtype dtype = muc_rule_input(r, 0)->dtype;

    return muc_rule_input(r, i)->dtype == dtype
               ? MUC_OK
               : muc_rule_unexpected(r, i, "%s", muc_dtype_get(dtype)->name);
}

muc_status muc_rule_expect_indices(const muc_rule *r, uint32_t i)
{
    muc_dtype dtype = muc_rule_input(r, i)->dtype;

    return dtype == MUC_I64 || dtype == MUC_I32
               ? MUC_OK
               : muc_rule_unexpected(r, i, "indices of i64 or i32");
}

muc_status muc_rule_expect_vector(const muc_rule *r, uint32_t i, muc_expr length)
{
    const muc_tensor *x = muc_rule_input(r, 0), *v = muc_rule_input(r, i);
    muc_dtype dtype = x->dtype;

    if (x->quantization)
        dtype = x->dtype == MUC_I16 ? MUC_I64 : MUC_I32;
    /* 16-bit activations have biases of 64 bits, or of 32 as files of older converters */
    if ((v->dtype == dtype || (dtype == MUC_I64 && v->dtype == MUC_I32)) && v->rank == 1 &&
        v->dims[0] == length)
        return MUC_OK;
    return muc_rule_unexpected(r, i, "%s [%u]", muc_dtype_get(dtype)->name,
                               muc_expr_get(r->graph->pool, length)->hi);
}

muc_status muc_rule_expect_scalar(const muc_rule *r, uint32_t i)
{
    const muc_tensor *t = muc_rule_input(r, i);

    for (uint32_t d = 0; d < t->rank; d++) {
        uint32_t extent;

        if (!muc_rule_const(r, t->dims[d], &extent) || extent != 1)
            return muc_rule_unexpected(r, i, "one element");
    }
    return MUC_OK;
}

muc_status muc_rule_axis(const muc_rule *r, muc_attribute_key key, uint32_t rank, uint32_t *axis)
{
    int64_t value = muc_node_integer(r->node, key);

    if (value < 0 || value >= rank)
        return muc_rule_fail(r, "%s is %lld, expected 0..%d", muc_attribute_get(key)->name,
                             (long long)value, (int)rank - 1);
    *axis = (uint32_t)value;
    return MUC_OK;
}

muc_status muc_rule_integers(const muc_rule *r, muc_attribute_key key, uint32_t count, int64_t low,
                             int64_t high)
{
    const muc_attribute *a = muc_node_attribute(r->node, key);

    if (!a)
        return MUC_OK;
    if (a->value.integers.count != count)
        return muc_rule_fail(r, "%s has %u items, expected %u", muc_attribute_get(key)->name,
                             a->value.integers.count, count);
    for (uint32_t i = 0; i < count; i++)
        if (a->value.integers.items[i] < low || a->value.integers.items[i] > high)
            return muc_rule_fail(
                r, "%s holds %lld, expected %lld..%lld", muc_attribute_get(key)->name,
                (long long)a->value.integers.items[i], (long long)low, (long long)high);
    return MUC_OK;
}

muc_status muc_rule_exprs(const muc_rule *r, muc_attribute_key key, uint32_t count)
{
    const muc_attribute *a = muc_node_attribute(r->node, key);

    if (a && a->value.exprs.count != count)
        return muc_rule_fail(r, "%s has %u items, expected %u", muc_attribute_get(key)->name,
                             a->value.exprs.count, count);
    return MUC_OK;
}

muc_status muc_rule_integer(const muc_rule *r, muc_attribute_key key, int64_t low, int64_t high)
{
    int64_t value = muc_node_integer_or(r->node, key, low);

    if (value < low || value > high)
        return muc_rule_fail(r, "%s is %lld, expected %lld..%lld", muc_attribute_get(key)->name,
                             (long long)value, (long long)low, (long long)high);
    return MUC_OK;
}

muc_status muc_rule_broadcast(const muc_rule *r, uint32_t with, uint32_t *rank, muc_expr *dims)
{
    const muc_tensor *t = muc_rule_input(r, with);
    muc_expr one = muc_rule_dim(r, 1);

    if (t->rank > *rank) {
        memmove(dims + t->rank - *rank, dims, *rank * sizeof(*dims));
        for (uint32_t i = 0; i < t->rank - *rank; i++)
            dims[i] = one;
        *rank = t->rank;
    }
    for (uint32_t i = 0; i < t->rank; i++) {
        muc_expr *dim = &dims[*rank - t->rank + i];

        if (*dim == one)
            *dim = t->dims[i];
        else if (t->dims[i] != *dim && t->dims[i] != one)
            return muc_rule_unexpected(r, with, "a shape that broadcasts with the inputs before");
    }
    return MUC_OK;
}

uint32_t muc_rule_channels(const muc_rule *r, uint32_t rank)
{
    return muc_node_integer_or(r->node, MUC_KEY_CHANNELS_LAST, 0) ? rank - 1 : 1;
}

/* what the operator's flags promise of input 0, and that no other operator sees quantization */
static muc_status check_types(const muc_rule *r)
{
    const muc_op_info *info = muc_op_get(r->node->op);
    const muc_tensor *x = muc_rule_input(r, 0);
    unsigned kind;

    if (!x)
        return MUC_OK;
    for (uint32_t i = 0; i < r->node->input_count; i++) {
        const muc_tensor *t = muc_rule_input(r, i);

        if (!t)
            continue;
        if (t->quantization && !(info->flags & (MUC_OP_QUANTIZED | MUC_OP_MOVES)) &&
            !(i > 0 && info->flags & MUC_OP_MIXED))
            return muc_rule_unexpected(r, i, "no quantization, which %s does not know", info->name);
        if (muc_dtype_get(t->dtype)->block_elements > 1 && !(i > 0 && info->flags & MUC_OP_MIXED))
            return muc_rule_unexpected(r, i, "a type of single elements");
    }
    if (x->quantization)
        return MUC_OK;
    kind = x->dtype == MUC_BOOL      ? MUC_OP_BOOL
           : muc_rule_is_float(r, 0) ? MUC_OP_FLOAT
                                     : MUC_OP_INTEGER;
    if (info->flags & kind)
        return MUC_OK;
    return muc_rule_unexpected(r, 0, "%s%s%s%s", info->flags & MUC_OP_FLOAT ? "real numbers" : "",
                               info->flags & MUC_OP_INTEGER ? "integers" : "",
                               info->flags & MUC_OP_BOOL ? "bool" : "",
                               info->flags & MUC_OP_QUANTIZED ? " or quantized" : "");
}

/* whether a list has this word, with blanks between */
static bool is_among(const char *word, const char *words)
{
    size_t length = strlen(word);

    for (const char *at = words; (at = strstr(at, word)) != NULL; at += length)
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

static bool knows(muc_op op, muc_attribute_key key, const char *word)
{
    switch (op) {
#define MUC_OP(id, name, least, most, least_out, most_out, rule, flags, facts, meaning) \
    case MUC_OP_##id: \
        MUC_FACTS facts break;
#define WORDS(attribute, words) \
    if (key == MUC_KEY_##attribute) \
        return is_among(word, words);
#include "graph/ops.def"
    case MUC_OP_COUNT:
        break;
    }
    return true;
}

/* integers within their range, words that the operator knows */
static muc_status check_attributes(const muc_rule *r)
{
    for (uint32_t i = 0; i < r->node->attribute_count; i++) {
        const muc_attribute *a = &r->node->attributes[i];
        const muc_attribute_info *info = muc_attribute_get(a->key);

        if (info->type == MUC_ATTRIBUTE_INTEGER)
            MUC_TRY(muc_rule_integer(r, a->key, info->least, info->most));
        if (info->type == MUC_ATTRIBUTE_WORD) {
            const char *word = muc_word_name((muc_word)a->value.integer);

            if (!knows(r->node->op, a->key, word))
                return muc_rule_fail(r, "%s is %s, which %s does not know", info->name, word,
                                     muc_op_get(r->node->op)->name);
        }
    }
    return MUC_OK;
}

muc_status muc_graph_derive(muc_context *ctx, muc_graph *graph, const muc_node *node,
                            muc_tensor *outputs)
{
    static muc_status (*const rules[])(const muc_rule *) = {
#define MUC_OP(id, name, least, most, least_out, most_out, rule, flags, facts, meaning) \
    muc_shape_##rule,
#include "graph/ops.def"
    };
    const muc_rule r = { ctx, graph, node, outputs };

    MUC_TRY(check_attributes(&r));
    MUC_TRY(check_types(&r));
    MUC_TRY(rules[node->op](&r));
    return muc_expr_status(graph->pool);
}

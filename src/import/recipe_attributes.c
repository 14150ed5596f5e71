/* recipe_attributes.c - what a recipe says of an operator's attributes. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "import/cook.h"

/* ---- values ---- */

/* dimensions of the first input, and the new one of an operator that asks for its size */
static muc_status first_rank(const cook *c, muc_op op, uint32_t *rank)
{
    bool required;

    if (c->count == 0 || c->inputs[0] == MUC_NO_ID)
        return muc_cook_refuse(c->node, MUC_MALFORMED, "the first input is missing");
    *rank = muc_cook_tensor(c, c->inputs[0])->rank + muc_op_takes(op, MUC_KEY_SIZE, &required);
    return MUC_OK;
}

static muc_status take_axis(const cook *c, int64_t given, uint32_t rank, int64_t *axis)
{
    return muc_import_axis(c->node->functions->subject(c->node->self), given, rank, axis);
}

/* axes ascending, none twice */
static muc_status set_axes(cook *c, muc_attribute_key key, const muc_value *v, uint32_t rank)
{
    bool is_one[MAX_RANK] = { false };
    int64_t axes[MAX_RANK], axis;
    uint32_t count = 0;

    for (size_t i = 0; i < v->count; i++) {
        MUC_TRY(take_axis(c, v->items[i], rank, &axis));
        is_one[axis] = true;
    }
    for (uint32_t i = 0; i < rank; i++)
        if (is_one[i])
            axes[count++] = i;
    muc_attributes_set_integers(&c->a, key, axes, count);
    return MUC_OK;
}

/* a permutation, or pads before and after each dimension */
static muc_status set_list(cook *c, muc_attribute_key key, const muc_value *v, uint32_t rank,
                           bool pairs)
{
    int64_t items[2 * MAX_RANK];

    if (v->count > MUC_COUNT(items) || (pairs && v->count != 2 * (size_t)rank))
        return muc_cook_refuse(c->node, MUC_MALFORMED, "%zu %s of %" PRIu32 " dimensions", v->count,
                               muc_attribute_get(key)->name, rank);
    for (size_t i = 0; i < v->count; i++) {
        items[i] = v->items[pairs ? i % rank * 2 + i / rank : i];
        if (key == MUC_KEY_PERM)
            MUC_TRY(take_axis(c, items[i], rank, &items[i]));
    }
    muc_attributes_set_integers(&c->a, key, items, (uint32_t)v->count);
    return MUC_OK;
}

static muc_status set_sizes(cook *c, muc_attribute_key key, const muc_value *v)
{
    muc_expr sizes[MUC_GRAPH_MAX_OUTPUTS];

    if (v->count > MUC_COUNT(sizes))
        return muc_cook_refuse(c->node, MUC_MALFORMED, "%zu %s", v->count,
                               muc_attribute_get(key)->name);
    for (size_t i = 0; i < v->count; i++) {
        sizes[i] = v->exprs ? v->exprs[i] : MUC_EXPR_NONE;
        if (sizes[i] != MUC_EXPR_NONE)
            continue;
        if (v->items[i] < 0 || v->items[i] > UINT32_MAX)
            return muc_cook_refuse(c->node, MUC_MALFORMED, "%s of %" PRId64,
                                   muc_attribute_get(key)->name, v->items[i]);
        sizes[i] = muc_expr_const(c->node->graph->pool, (uint32_t)v->items[i]);
    }
    if (muc_attribute_get(key)->type == MUC_ATTRIBUTE_EXPRS)
        muc_attributes_set_exprs(&c->a, key, sizes, (uint32_t)v->count);
    else if (v->count == 1)
        muc_attributes_set_expr(&c->a, key, sizes[0]);
    else
        return muc_cook_refuse(c->node, MUC_MALFORMED, "%zu items for %s, expected 1", v->count,
                               muc_attribute_get(key)->name);
    return muc_expr_status(c->node->graph->pool);
}

/* a word of the graph, whatever its case */
static muc_status set_word(cook *c, muc_attribute_key key, const char *text)
{
    char lower[WORD];
    muc_word word;
    size_t i;

    for (i = 0; text[i] && i < sizeof(lower) - 1; i++)
        lower[i] = (char)tolower((unsigned char)text[i]);
    lower[i] = '\0';
    if (!muc_word_find(lower, &word))
        return muc_cook_refuse(c->node, MUC_UNSUPPORTED, "%s is '%.60s'",
                               muc_attribute_get(key)->name, text);
    muc_attributes_set(&c->a, key, word);
    return MUC_OK;
}

static bool is_axis(muc_attribute_key key)
{
    return key == MUC_KEY_AXIS || key == MUC_KEY_BATCH_AXIS || key == MUC_KEY_TIME_AXIS;
}

static muc_status set_integer(cook *c, muc_op op, muc_attribute_key key, int64_t value)
{
    uint32_t rank;

    if (is_axis(key)) {
        MUC_TRY(first_rank(c, op, &rank));
        MUC_TRY(take_axis(c, value, rank, &value));
    }
    muc_attributes_set(&c->a, key, value);
    return MUC_OK;
}

static muc_status set_items(cook *c, muc_op op, muc_attribute_key key, const muc_value *v,
                            bool pairs)
{
    muc_attribute_type type = muc_attribute_get(key)->type;
    uint32_t rank;

    if (type == MUC_ATTRIBUTE_INTEGER)
        return v->count == 1
                   ? set_integer(c, op, key, v->items[0])
                   : muc_cook_refuse(c->node, MUC_MALFORMED, "%zu items for %s, expected 1",
                                     v->count, muc_attribute_get(key)->name);
    if (type == MUC_ATTRIBUTE_EXPRS || type == MUC_ATTRIBUTE_EXPR)
        return set_sizes(c, key, v);
    for (size_t i = 0; v->exprs && i < v->count; i++)
        if (v->exprs[i] != MUC_EXPR_NONE)
            return muc_cook_refuse(c->node, MUC_UNSUPPORTED,
                                   "%s depends on dimensions that are not known",
                                   muc_attribute_get(key)->name);
    MUC_TRY(first_rank(c, op, &rank));
    return key == MUC_KEY_AXES ? set_axes(c, key, v, rank) : set_list(c, key, v, rank, pairs);
}

/* a literal, or a node's attribute that is one number or word */
static muc_status set_value(cook *c, muc_op op, muc_attribute_key key, const muc_value *v)
{
    muc_attribute_type type = muc_attribute_get(key)->type;
    muc_dtype dtype;

    if (type == MUC_ATTRIBUTE_INTEGER)
        return set_integer(c, op, key, v->integer);
    if (type == MUC_ATTRIBUTE_WORD)
        return set_word(c, key, v->text);
    if (v->type == MUC_VALUE_INTEGERS)
        return set_items(c, op, key, v, false);
    if (type == MUC_ATTRIBUTE_INTEGERS || type == MUC_ATTRIBUTE_EXPR)
        return set_items(c, op, key, &(muc_value){ .items = &v->integer, .count = 1 }, false);
    if (type == MUC_ATTRIBUTE_DTYPE && muc_dtype_find(v->text, &dtype)) {
        muc_attributes_set(&c->a, key, dtype);
        return MUC_OK;
    }
    if (type != MUC_ATTRIBUTE_REAL)
        return muc_cook_no_sense(c);
    if (!isfinite(v->real))
        return muc_cook_refuse(c->node, MUC_MALFORMED, "%s is %g", muc_attribute_get(key)->name,
                               v->real);
    muc_attributes_set_real(&c->a, key, v->real);
    return MUC_OK;
}

static muc_value_type type_of(muc_attribute_key key)
{
    muc_attribute_type type = muc_attribute_get(key)->type;

    return type == MUC_ATTRIBUTE_REAL                                      ? MUC_VALUE_REAL
           : type == MUC_ATTRIBUTE_WORD || type == MUC_ATTRIBUTE_DTYPE     ? MUC_VALUE_TEXT
           : type == MUC_ATTRIBUTE_INTEGERS || type == MUC_ATTRIBUTE_EXPRS ? MUC_VALUE_INTEGERS
                                                                           : MUC_VALUE_INTEGER;
}

static muc_status literal(const cook *c, char *text, muc_value_type type, muc_value *out)
{
    *out = (muc_value){ .type = type, .text = text };
    if (type == MUC_VALUE_TEXT)
        return MUC_OK;
    MUC_TRY(muc_cook_real(c, text, &out->real));
    out->integer = (int64_t)out->real;
    return MUC_OK;
}

static bool are_equal(const muc_value *a, const muc_value *b)
{
    return a->type == MUC_VALUE_TEXT   ? strcmp(a->text, b->text) == 0
           : a->type == MUC_VALUE_REAL ? !(a->real < b->real) && !(a->real > b->real)
                                       : a->integer == b->integer;
}

/* ---- lists of numbers and dimensions ---- */

/* A list in the making: expressions, or MUC_EXPR_NONE beside a number. */
typedef struct list {
    muc_expr exprs[2 * MAX_RANK];
    int64_t items[2 * MAX_RANK];
    uint32_t count;
} list;

static muc_status append(const cook *c, list *l, muc_expr e, int64_t number)
{
    const muc_expr_pool *pool = c->node->graph->pool;

    if (l->count == MUC_COUNT(l->items))
        return muc_cook_refuse(c->node, MUC_UNSUPPORTED, "more than %d dimensions", 2 * MAX_RANK);
    if (e != MUC_EXPR_NONE && muc_expr_is_const(pool, e)) {
        number = muc_expr_get(pool, e)->immediate;
        e = MUC_EXPR_NONE;
    }
    l->exprs[l->count] = e;
    l->items[l->count++] = number;
    return MUC_OK;
}

/* "2", "-1", "$axis:1", *at behind it; *is_there false where there is no number */
static muc_status take_number(const cook *c, char **at, bool *is_there, int64_t *out)
{
    char name[WORD], *end = *at;
    muc_value value = { .type = MUC_VALUE_ABSENT };

    *is_there = **at == '$';
    if (*is_there) {
        size_t length = strcspn(*at + 1, ":,./*");

        memcpy(name, *at + 1, length);
        name[length] = '\0';
        *at += 1 + length;
        MUC_TRY(c->node->functions->attribute(c->node->self, name, MUC_VALUE_INTEGER, &value));
        *out = value.integer;
        if (**at != ':')
            return value.type == MUC_VALUE_ABSENT
                       ? muc_cook_refuse(c->node, MUC_MALFORMED, "attribute '%s' is missing", name)
                       : MUC_OK;
        end = ++*at;
    }
    if (value.type == MUC_VALUE_ABSENT)
        *out = strtol(*at, &end, 10);
    else
        strtol(*at, &end, 10);
    *is_there = *is_there || end != *at;
    *at = end;
    return MUC_OK;
}

/* "A..B", "A..", "A": first and end of a part of rank dimensions, counted from the end if negative
 */
static muc_status take_part(const cook *c, char **at, uint32_t rank, int64_t part[2])
{
    bool is_there;

    MUC_TRY(take_number(c, at, &is_there, &part[0]));
    part[0] += part[0] < 0 ? rank : 0;
    part[1] = part[0] + 1;
    if (strncmp(*at, "..", 2) == 0) {
        *at += 2;
        MUC_TRY(take_number(c, at, &is_there, &part[1]));
        part[1] = is_there ? part[1] + (part[1] < 0 ? rank : 0) : rank;
    }
    return part[0] >= 0 && part[0] <= part[1] && part[1] <= rank
               ? MUC_OK
               : muc_cook_refuse(c->node, MUC_MALFORMED,
                                 "dimensions %" PRId64 " to %" PRId64 " of %" PRIu32, part[0],
                                 part[1] - 1, rank);
}

/* behind "in": the dimensions of an input, or as a product */
static muc_status add_dims(const cook *c, char **at, bool product, list *l)
{
    muc_expr_pool *pool = c->node->graph->pool;
    muc_expr all = muc_expr_const(pool, 1);
    int64_t part[2] = { 0 };
    uint32_t id;

    MUC_TRY(muc_cook_input(c, (uint32_t)strtol(*at, at, 10), &id));
    part[1] = muc_cook_tensor(c, id)->rank;
    if (**at == '.') {
        ++*at;
        MUC_TRY(take_part(c, at, muc_cook_tensor(c, id)->rank, part));
    }
    for (int64_t i = part[0]; i < part[1]; i++) {
        if (product)
            all = muc_expr_mul(pool, all, muc_cook_tensor(c, id)->dims[i]);
        else
            MUC_TRY(append(c, l, muc_cook_tensor(c, id)->dims[i], 0));
    }
    return product ? append(c, l, all, 0) : muc_expr_status(pool);
}

/* "/$groups": the last item divided */
static muc_status divide_last(const cook *c, char **at, list *l)
{
    muc_expr_pool *pool = c->node->graph->pool;
    uint32_t last = l->count - 1;
    int64_t divisor;
    bool is_there;

    ++*at;
    MUC_TRY(take_number(c, at, &is_there, &divisor));
    if (divisor < 1 || divisor > INT32_MAX ||
        (l->exprs[last] == MUC_EXPR_NONE && l->items[last] % divisor != 0))
        return muc_cook_refuse(c->node, MUC_MALFORMED, "%" PRId64 " in parts of %" PRId64,
                               l->items[last], divisor);
    l->items[last] /= divisor;
    if (l->exprs[last] != MUC_EXPR_NONE)
        l->exprs[last] = muc_expr_div(pool, l->exprs[last], (uint32_t)divisor);
    return muc_expr_status(pool);
}

/* items between commas: numbers, "2.." dimensions of the first operand by their numbers, "in0.1.."
 * dimensions, "*in0.1.." their product */
static muc_status take_list(cook *c, char *at, list *l)
{
    const muc_tensor *x =
        c->count && c->inputs[0] != MUC_NO_ID ? muc_cook_tensor(c, c->inputs[0]) : NULL;

    for (l->count = 0; *at; at += *at == ',') {
        bool product = *at == '*';
        char *end = at + strcspn(at, ",");
        char *dots = strstr(at, "..");
        int64_t number, part[2];
        bool is_there;

        at += product;
        if (strncmp(at, "in", 2) == 0) {
            at += 2;
            MUC_TRY(add_dims(c, &at, product, l));
            if (*at == '/')
                MUC_TRY(divide_last(c, &at, l));
        } else if (dots && dots < end && x) {
            MUC_TRY(take_part(c, &at, x->rank, part));
            for (int64_t i = part[0]; i < part[1]; i++)
                MUC_TRY(append(c, l, MUC_EXPR_NONE, i));
            if (l->count == 0 && end == dots + 2)
                return muc_cook_refuse(c->node, MUC_MALFORMED,
                                       "%" PRIu32 " dimensions, expected more than %" PRId64,
                                       x->rank, part[0]);
        } else {
            MUC_TRY(take_number(c, &at, &is_there, &number));
            if (!is_there)
                return muc_cook_no_sense(c);
            MUC_TRY(append(c, l, MUC_EXPR_NONE, number));
        }
    }
    return MUC_OK;
}

static bool is_list(muc_attribute_key key)
{
    muc_attribute_type type = muc_attribute_get(key)->type;

    return type == MUC_ATTRIBUTE_INTEGERS || type == MUC_ATTRIBUTE_EXPRS ||
           type == MUC_ATTRIBUTE_EXPR;
}

static muc_status set_from_list(cook *c, muc_op op, muc_attribute_key key, char *text)
{
    list l;

    MUC_TRY(take_list(c, text, &l));
    return set_items(c, op, key,
                     &(muc_value){ .items = l.items, .exprs = l.exprs, .count = l.count }, false);
}

/* "@name", "@name:fallback", "@name/left out", "@name#input" */
static muc_status set_from_attribute(cook *c, muc_op op, muc_attribute_key key, char *name)
{
    size_t length = strcspn(name, ":/#");
    char mark = name[length];
    muc_value value, other = { .type = MUC_VALUE_ABSENT };

    name[length] = '\0';
    MUC_TRY(c->node->functions->attribute(c->node->self, name, type_of(key), &value));
    if (mark == '#' && value.type == MUC_VALUE_ABSENT)
        MUC_TRY(
            c->node->functions->integers(c->node->self, (uint32_t)atoi(name + length + 1), &value));
    else if (mark == ':' && is_list(key))
        return value.type == MUC_VALUE_ABSENT ? set_from_list(c, op, key, name + length + 1)
                                              : set_value(c, op, key, &value);
    else if (mark)
        MUC_TRY(literal(c, name + length + 1, type_of(key), &other));
    if (value.type == MUC_VALUE_ABSENT && mark == ':')
        value = other;
    if (value.type == MUC_VALUE_ABSENT || (mark == '/' && are_equal(&value, &other)))
        return MUC_OK;
    return set_value(c, op, key, &value);
}

/* what the file says of its output, or the type of an input */
static muc_status set_like(cook *c, muc_attribute_key key, const char *text)
{
    const muc_file_node *node = c->node;
    muc_tensor like;
    uint32_t id;

    if (text[0] == 'i') {
        MUC_TRY(muc_cook_input(c, (uint32_t)atoi(text + strlen("in")), &id));
        muc_attributes_set(&c->a, key, muc_cook_tensor(c, id)->dtype);
        return MUC_OK;
    }
    like = node->functions->output(node->self);
    if (muc_attribute_get(key)->type == MUC_ATTRIBUTE_DTYPE)
        muc_attributes_set(&c->a, key, like.dtype);
    else
        muc_attributes_set_exprs(&c->a, key, like.dims, like.rank);
    return MUC_OK;
}

/* "log2@name" */
static muc_status set_exponent(cook *c, muc_attribute_key key, const char *name)
{
    muc_value value;
    int64_t exponent = 0;

    MUC_TRY(c->node->functions->attribute(c->node->self, name, MUC_VALUE_INTEGER, &value));
    if (value.type == MUC_VALUE_ABSENT || value.integer < 1 || value.integer & (value.integer - 1))
        return muc_cook_refuse(c->node, MUC_UNSUPPORTED,
                               "attribute '%s' is %" PRId64 ", expected a power of two", name,
                               value.type == MUC_VALUE_ABSENT ? 0 : value.integer);
    while (value.integer >> exponent > 1)
        exponent++;
    muc_attributes_set(&c->a, key, exponent);
    return MUC_OK;
}

/* "key=value" */
muc_status muc_cook_attribute(cook *c, muc_op op, char *equals)
{
    char *value = equals + 1, *question = strchr(value, '?'), *number = strchr(value, '#');
    muc_attribute_key key;
    muc_value v;

    *equals = '\0';
    if (!muc_attribute_find(c->word, &key))
        return muc_cook_no_sense(c);
    if (strcmp(value, "out") == 0 ||
        (muc_attribute_get(key)->type == MUC_ATTRIBUTE_DTYPE && strncmp(value, "in", 2) == 0))
        return set_like(c, key, value);
    if (question) {
        *question = '\0';
        MUC_TRY(c->node->functions->attribute(c->node->self, question + 2, MUC_VALUE_INTEGER, &v));
        if (v.type == MUC_VALUE_ABSENT || v.integer == 0)
            return MUC_OK;
    }
    if (strncmp(value, "log2@", 5) == 0)
        return set_exponent(c, key, value + 5);
    if (*value == '@')
        return set_from_attribute(c, op, key, value + 1);
    if (number && c->node->functions->integers) {
        MUC_TRY(c->node->functions->integers(c->node->self, (uint32_t)atoi(number + 1), &v));
        return set_items(c, op, key, &v, number > value);
    }
    if (is_list(key))
        return set_from_list(c, op, key, value);
    MUC_TRY(literal(c, value, type_of(key), &v));
    return set_value(c, op, key, &v);
}

muc_status muc_cook_compare(const cook *c, char *name, bool *is_absent, bool *is_equal)
{
    char *equals = strstr(name, "==");
    bool is_text = equals && isalpha((unsigned char)equals[2]);
    muc_value_type type = !equals                   ? MUC_VALUE_ABSENT
                          : is_text                 ? MUC_VALUE_TEXT
                          : strchr(equals + 2, '.') ? MUC_VALUE_REAL
                                                    : MUC_VALUE_INTEGER;
    muc_value value, expected;

    *is_equal = false;
    if (equals)
        *equals = '\0';
    MUC_TRY(c->node->functions->attribute(c->node->self, name, type, &value));
    *is_absent = value.type == MUC_VALUE_ABSENT;
    if (!equals || *is_absent)
        return MUC_OK;
    MUC_TRY(literal(c, equals + 2, type, &expected));
    *is_equal = are_equal(&value, &expected);
    return MUC_OK;
}

muc_status muc_cook_check(const cook *c, char *name)
{
    const char *equals = strstr(name, "==");
    bool is_absent, is_equal;

    MUC_TRY(muc_cook_compare(c, name, &is_absent, &is_equal));
    if (!equals || is_absent || is_equal)
        return MUC_OK;
    return muc_cook_refuse(c->node, MUC_UNSUPPORTED, "attribute '%s' is not %s", name, equals + 2);
}

/* recipe.c - reads a row's recipe word by word and adds the operators that it names. */
#include "import/recipe.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 48, MOST_VALUES = 24, MAX_RANK = MUC_GRAPH_MAX_RANK };

/* A recipe at work. */
typedef struct cook {
    const muc_file_node *node;
    const char *recipe, *at;
    char word[WORD]; /* the last that was read */
    struct {
        char name[WORD];
        uint32_t id;
    } values[MOST_VALUES]; /* of earlier statements */
    uint32_t value_count;
    uint32_t *inputs, count; /* of the statement at work */
    muc_attributes a;
} cook;

static muc_status refuse(const muc_file_node *node, muc_status status, const char *format, ...)
    MUC_PRINTF(3, 4);

static muc_status refuse(const muc_file_node *node, muc_status status, const char *format, ...)
{
    char message[320];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    return node->functions->refuse(node->self, status, message);
}

static muc_status no_sense(const cook *c)
{
    return refuse(c->node, MUC_BUG, "the recipe '%.200s' makes no sense at '%s'", c->recipe,
                  c->word);
}

/* the next word of the statement; false at its end */
static bool next_word(cook *c)
{
    size_t length;

    c->at += strspn(c->at, " ");
    length = strcspn(c->at, " ;|");
    if (length == 0 || length >= WORD)
        return false;
    memcpy(c->word, c->at, length);
    c->word[length] = '\0';
    c->at += length;
    return true;
}

muc_status muc_import_axis(const muc_file_node *node, int64_t given, uint32_t rank, int64_t *axis)
{
    *axis = given < 0 ? given + rank : given;
    return *axis >= 0 && *axis < rank
               ? MUC_OK
               : refuse(node, MUC_MALFORMED, "axis %" PRId64 " of %" PRIu32 " dimensions", given,
                        rank);
}

/* ---- operands ---- */

static const muc_tensor *tensor_of(const cook *c, uint32_t id)
{
    return &c->node->graph->tensors[id];
}

/* a number, or "@name" or "@name:fallback" */
static muc_status read_real(const cook *c, char *text, double *out)
{
    char *end, *fallback = strchr(text, ':');
    muc_value value;

    if (*text == '@') {
        if (fallback)
            *fallback++ = '\0';
        MUC_TRY(c->node->functions->attribute(c->node->self, text + 1, MUC_VALUE_REAL, &value));
        *out = value.real;
        if (value.type != MUC_VALUE_ABSENT)
            return MUC_OK;
        if (!fallback)
            return refuse(c->node, MUC_MALFORMED, "attribute '%s' is missing", text + 1);
        text = fallback;
    }
    *out = strtod(text, &end);
    if (*end == 'f') /* a number that formats give in single precision */
        *out = (double)(float)*out;
    return end == text ? no_sense(c) : MUC_OK;
}

/* "name{number}" */
static muc_status add_constant(cook *c, char *brace, uint32_t *id)
{
    const muc_file_node *node = c->node;
    uint32_t before = c->count ? c->inputs[c->count - 1] : MUC_NO_ID;
    muc_dtype dtype = before != MUC_NO_ID       ? tensor_of(c, before)->dtype
                      : node->functions->output ? node->functions->output(node->self).dtype
                                                : MUC_F32;
    double value;

    brace[strcspn(brace, "}")] = '\0';
    *brace = '\0';
    MUC_TRY(read_real(c, brace + 1, &value));
    return node->functions->constant(node->self, c->word, dtype, value, id);
}

/* an input that must be there */
static muc_status find_input(const cook *c, uint32_t i, uint32_t *id)
{
    *id = MUC_NO_ID;
    if (i < c->node->input_count)
        MUC_TRY(c->node->functions->input(c->node->self, i, id));
    return *id == MUC_NO_ID ? refuse(c->node, MUC_MALFORMED, "input %" PRIu32 " is missing", i)
                            : MUC_OK;
}

/* "1", or "1:i64:name": input 1 as this type, by a cast of this name where it has another */
static muc_status take_input(cook *c, uint32_t *id)
{
    const muc_file_node *node = c->node;
    char *type = strchr(c->word, ':'), *name = type ? strchr(type + 1, ':') : NULL;
    muc_attributes to = { .count = 0 };
    muc_dtype dtype;

    MUC_TRY(find_input(c, (uint32_t)atoi(c->word), id));
    if (!name)
        return MUC_OK;
    *name = '\0';
    if (!muc_dtype_find(type + 1, &dtype))
        return no_sense(c);
    if (tensor_of(c, *id)->dtype == dtype)
        return MUC_OK;
    muc_attributes_set(&to, MUC_KEY_TO, dtype);
    return node->functions->step(node->self, MUC_OP_CAST, name + 1, id, 1, &to, id);
}

/* *found false: the word is no operand */
static muc_status take_operand(cook *c, bool *found)
{
    const muc_file_node *node = c->node;
    char *brace = strchr(c->word, '{');
    uint32_t id = MUC_NO_ID;

    *found = true;
    if (strcmp(c->word, "*") == 0) {
        for (uint32_t i = 0; i < node->input_count; i++)
            MUC_TRY(node->functions->input(node->self, i, &c->inputs[c->count++]));
        return MUC_OK;
    }
    if (brace) {
        MUC_TRY(add_constant(c, brace, &id));
    } else if (isdigit((unsigned char)c->word[0])) {
        MUC_TRY(take_input(c, &id));
    } else {
        *found = false;
        for (uint32_t i = 0; i < c->value_count; i++)
            if (strcmp(c->values[i].name, c->word) == 0) {
                id = c->values[i].id;
                *found = true;
            }
    }
    if (*found)
        c->inputs[c->count++] = id;
    return MUC_OK;
}

/* ---- attributes ---- */

static muc_status first_rank(const cook *c, muc_op op, uint32_t *rank)
{
    if (c->count == 0 || c->inputs[0] == MUC_NO_ID)
        return refuse(c->node, MUC_MALFORMED, "the first input is missing");
    *rank = tensor_of(c, c->inputs[0])->rank + (op == MUC_OP_ONE_HOT);
    return MUC_OK;
}

/* axes ascending, none twice */
static muc_status set_axes(cook *c, muc_attribute_key key, const muc_value *v, uint32_t rank)
{
    bool is_one[MAX_RANK] = { false };
    int64_t axes[MAX_RANK], axis;
    uint32_t count = 0;

    for (size_t i = 0; i < v->count; i++) {
        MUC_TRY(muc_import_axis(c->node, v->items[i], rank, &axis));
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

    if (v->count > MUC_COUNT(items) || (key != MUC_KEY_PERM && v->count != 2 * (size_t)rank))
        return refuse(c->node, MUC_MALFORMED, "%zu %s of %" PRIu32 " dimensions", v->count,
                      muc_attribute_get(key)->name, rank);
    for (size_t i = 0; i < v->count; i++) {
        items[i] = v->items[pairs ? i % rank * 2 + i / rank : i];
        if (key == MUC_KEY_PERM)
            MUC_TRY(muc_import_axis(c->node, items[i], rank, &items[i]));
    }
    muc_attributes_set_integers(&c->a, key, items, (uint32_t)v->count);
    return MUC_OK;
}

static muc_status set_sizes(cook *c, muc_attribute_key key, const muc_value *v)
{
    muc_expr sizes[MAX_RANK];

    if (v->count > MAX_RANK)
        return refuse(c->node, MUC_MALFORMED, "%zu %s", v->count, muc_attribute_get(key)->name);
    for (size_t i = 0; i < v->count; i++) {
        if (v->items[i] < 0 || v->items[i] > UINT32_MAX)
            return refuse(c->node, MUC_MALFORMED, "%s of %" PRId64, muc_attribute_get(key)->name,
                          v->items[i]);
        sizes[i] = muc_expr_const(c->node->graph->pool, (uint32_t)v->items[i]);
    }
    muc_attributes_set_exprs(&c->a, key, sizes, (uint32_t)v->count);
    return MUC_OK;
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
        return refuse(c->node, MUC_UNSUPPORTED, "%s is '%.60s'", muc_attribute_get(key)->name,
                      text);
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
        MUC_TRY(muc_import_axis(c->node, value, rank, &value));
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
        return v->count == 1 ? set_integer(c, op, key, v->items[0])
                             : refuse(c->node, MUC_MALFORMED, "%zu items for %s, expected 1",
                                      v->count, muc_attribute_get(key)->name);
    if (type == MUC_ATTRIBUTE_EXPRS)
        return set_sizes(c, key, v);
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
    if (type == MUC_ATTRIBUTE_INTEGERS)
        return set_items(c, op, key, &(muc_value){ .items = &v->integer, .count = 1 }, false);
    if (type == MUC_ATTRIBUTE_DTYPE && muc_dtype_find(v->text, &dtype)) {
        muc_attributes_set(&c->a, key, dtype);
        return MUC_OK;
    }
    if (type != MUC_ATTRIBUTE_REAL)
        return no_sense(c);
    if (!isfinite(v->real))
        return refuse(c->node, MUC_MALFORMED, "%s is %g", muc_attribute_get(key)->name, v->real);
    muc_attributes_set_real(&c->a, key, v->real);
    return MUC_OK;
}

static muc_value_type type_of(muc_attribute_key key)
{
    muc_attribute_type type = muc_attribute_get(key)->type;

    return type == MUC_ATTRIBUTE_REAL                                  ? MUC_VALUE_REAL
           : type == MUC_ATTRIBUTE_WORD || type == MUC_ATTRIBUTE_DTYPE ? MUC_VALUE_TEXT
                                                                       : MUC_VALUE_INTEGER;
}

static muc_status literal(const cook *c, char *text, muc_value_type type, muc_value *out)
{
    *out = (muc_value){ .type = type, .text = text };
    if (type == MUC_VALUE_TEXT)
        return MUC_OK;
    MUC_TRY(read_real(c, text, &out->real));
    out->integer = (int64_t)out->real;
    return MUC_OK;
}

static bool are_equal(const muc_value *a, const muc_value *b)
{
    return a->type == MUC_VALUE_TEXT   ? strcmp(a->text, b->text) == 0
           : a->type == MUC_VALUE_REAL ? !(a->real < b->real) && !(a->real > b->real)
                                       : a->integer == b->integer;
}

/* "@name", "@name:fallback", "@name/left out" */
static muc_status set_from_attribute(cook *c, muc_op op, muc_attribute_key key, char *name)
{
    size_t length = strcspn(name, ":/");
    char mark = name[length];
    muc_value value, other = { .type = MUC_VALUE_ABSENT };

    name[length] = '\0';
    MUC_TRY(c->node->functions->attribute(c->node->self, name, type_of(key), &value));
    if (mark)
        MUC_TRY(literal(c, name + length + 1, type_of(key), &other));
    if (value.type == MUC_VALUE_ABSENT && mark == ':')
        value = other;
    if (value.type == MUC_VALUE_ABSENT || (mark == '/' && are_equal(&value, &other)))
        return MUC_OK;
    return set_value(c, op, key, &value);
}

/* what the file says of its output, or the graph of an input */
static muc_status set_like(cook *c, muc_attribute_key key, const char *text)
{
    const muc_file_node *node = c->node;
    bool is_input = text[0] == 'i';
    muc_tensor like;
    uint32_t id;

    if (is_input) {
        MUC_TRY(find_input(c, (uint32_t)atoi(text + strlen("in")), &id));
        like = *tensor_of(c, id);
    } else {
        like = node->functions->output(node->self);
    }
    if (muc_attribute_get(key)->type == MUC_ATTRIBUTE_DTYPE)
        muc_attributes_set(&c->a, key, like.dtype);
    else
        muc_attributes_set_exprs(&c->a, key, like.dims, like.rank);
    return MUC_OK;
}

static muc_status set_from_rank(cook *c, muc_attribute_key key, int64_t first)
{
    int64_t axes[MAX_RANK];
    uint32_t rank = 0, count = 0;

    MUC_TRY(first_rank(c, MUC_OP_COUNT, &rank));
    if (rank <= first)
        return refuse(c->node, MUC_MALFORMED, "%" PRIu32 " dimensions, expected more than %" PRId64,
                      rank, first);
    for (int64_t i = first; i < rank; i++)
        axes[count++] = i;
    muc_attributes_set_integers(&c->a, key, axes, count);
    return MUC_OK;
}

/* "key=value" */
static muc_status take_attribute(cook *c, muc_op op, char *equals)
{
    char *value = equals + 1, *question = strchr(value, '?'), *number = strchr(value, '#');
    muc_attribute_key key;
    muc_value v;

    *equals = '\0';
    if (!muc_attribute_find(c->word, &key))
        return no_sense(c);
    if (strcmp(value, "out") == 0 ||
        (value[0] == 'i' && value[1] == 'n' && isdigit((unsigned char)value[2])))
        return set_like(c, key, value);
    if (question) {
        *question = '\0';
        MUC_TRY(c->node->functions->attribute(c->node->self, question + 2, MUC_VALUE_INTEGER, &v));
        if (v.type == MUC_VALUE_ABSENT || v.integer == 0)
            return MUC_OK;
    }
    if (*value == '@')
        return set_from_attribute(c, op, key, value + 1);
    if (number && c->node->functions->integers) {
        MUC_TRY(c->node->functions->integers(c->node->self, (uint32_t)atoi(number + 1), &v));
        return set_items(c, op, key, &v, number > value);
    }
    if (strstr(value, ".."))
        return set_from_rank(c, key, atoi(value));
    MUC_TRY(literal(c, value, type_of(key), &v));
    return set_value(c, op, key, &v);
}

/* "@name", of no meaning, or "@name==value", of which the value alone is read */
static muc_status check_attribute(const cook *c, char *name)
{
    char *equals = strstr(name, "==");
    bool is_text = equals && isalpha((unsigned char)equals[2]);
    muc_value_type type = !equals ? MUC_VALUE_ABSENT : is_text ? MUC_VALUE_TEXT : MUC_VALUE_INTEGER;
    muc_value value, expected;

    if (equals)
        *equals = '\0';
    MUC_TRY(c->node->functions->attribute(c->node->self, name, type, &value));
    if (!equals || value.type == MUC_VALUE_ABSENT)
        return MUC_OK;
    MUC_TRY(literal(c, equals + 2, type, &expected));
    if (are_equal(&value, &expected))
        return MUC_OK;
    return is_text ? refuse(c->node, MUC_UNSUPPORTED, "attribute '%s' is '%.60s', expected '%s'",
                            name, value.text, expected.text)
                   : refuse(c->node, MUC_UNSUPPORTED,
                            "attribute '%s' is %" PRId64 ", expected %" PRId64, name, value.integer,
                            expected.integer);
}

/* ---- statements ---- */

static muc_status take_words(cook *c, muc_op op)
{
    bool found;

    while (next_word(c)) {
        char *equals = strchr(c->word, '=');

        if (c->word[0] == '@') {
            MUC_TRY(check_attribute(c, c->word + 1));
        } else if (equals) {
            MUC_TRY(take_attribute(c, op, equals));
        } else {
            MUC_TRY(take_operand(c, &found));
            if (!found && !c->node->functions->word)
                return no_sense(c);
            if (!found)
                MUC_TRY(c->node->functions->word(c->node->self, c->word));
        }
    }
    return MUC_OK;
}

/* *name: that of the result, or "" */
static muc_status take_operator(cook *c, char name[WORD], muc_op *op)
{
    const char *after;

    *name = '\0';
    if (!next_word(c))
        return no_sense(c);
    after = c->at + strspn(c->at, " ");
    if (after[0] == '=') {
        memcpy(name, c->word, WORD);
        c->at = after + 1;
        if (!next_word(c))
            return no_sense(c);
    }
    *op = c->node->op;
    return strcmp(c->word, ".") == 0 || muc_op_find(c->word, op) ? MUC_OK : no_sense(c);
}

static muc_status run_statement(cook *c)
{
    const muc_file_node *node = c->node;
    char name[WORD];
    uint32_t id;
    muc_op op;

    c->count = 0;
    c->a = (muc_attributes){ .count = 0 };
    MUC_TRY(take_operator(c, name, &op));
    MUC_TRY(take_words(c, op));
    while (c->count && c->inputs[c->count - 1] == MUC_NO_ID)
        c->count--;
    if (*c->at != ';')
        return node->functions->last(node->self, op, c->inputs, c->count, &c->a);
    MUC_TRY(node->functions->step(node->self, op, name, c->inputs, c->count, &c->a, &id));
    if (c->value_count == MOST_VALUES)
        return no_sense(c);
    memcpy(c->values[c->value_count].name, name, WORD);
    c->values[c->value_count++].id = id;
    return MUC_OK;
}

/* "[1]": input 1 is there; "[in:f32]", "[out:f32]": input 0, the output, is of this type */
static muc_status check_guard(const cook *c, bool *fits)
{
    const muc_file_node *node = c->node;
    const char *colon = strchr(c->at, ':'), *end = strchr(c->at, ']');
    uint32_t id = MUC_NO_ID, i = (uint32_t)atoi(c->at + 1);
    char type[8];

    *fits = false;
    if (!colon || colon > end) {
        for (uint32_t k = 0; k <= i && i < node->input_count; k++) /* added in their order */
            MUC_TRY(node->functions->input(node->self, k, &id));
        *fits = id != MUC_NO_ID;
        return MUC_OK;
    }
    snprintf(type, sizeof(type), "%.*s", (int)(end - colon - 1), colon + 1);
    if (c->at[1] == 'i')
        MUC_TRY(find_input(c, 0, &id));
    *fits = strcmp(type, muc_dtype_get(id == MUC_NO_ID ? node->functions->output(node->self).dtype
                                                       : tensor_of(c, id)->dtype)
                             ->name) == 0;
    return MUC_OK;
}

/* to the alternative all of whose guards fit */
static muc_status choose(cook *c)
{
    for (;;) {
        bool all = true, fits;

        while (*(c->at += strspn(c->at, " ")) == '[') {
            MUC_TRY(check_guard(c, &fits));
            all = all && fits;
            c->at = strchr(c->at, ']') + 1;
        }
        if (all)
            return MUC_OK;
        c->at += strcspn(c->at, "|");
        if (!*c->at)
            return no_sense(c);
        c->at++;
    }
}

muc_status muc_import_recipe(const muc_file_node *node, const char *recipe)
{
    cook c = { .node = node, .recipe = recipe, .at = recipe[0] ? recipe : ". *" };

    MUC_TRY(MUC_ARENA_NEW(node->ctx, node->arena, node->input_count + (size_t)MAX_RANK, &c.inputs));
    MUC_TRY(choose(&c));
    for (;;) {
        MUC_TRY(run_statement(&c));
        if (*c.at != ';')
            return MUC_OK;
        c.at++;
    }
}

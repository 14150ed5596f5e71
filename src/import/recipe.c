/* recipe.c - reads a row's recipe word by word and adds the operators that it names. */
#include "import/cook.h"

#include <ctype.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

muc_status muc_cook_no_sense(const cook *c)
{
    return muc_cook_refuse(c->node, MUC_BUG, "the recipe '%.200s' makes no sense at '%s'",
                           c->recipe, c->word);
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

/* ---- operands ---- */

/* the value that an earlier statement gave this name, or MUC_NO_ID */
static uint32_t find_value(const cook *c, const char *name)
{
    uint32_t id = MUC_NO_ID;

    for (uint32_t i = 0; i < c->value_count; i++)
        if (strcmp(c->values[i].name, name) == 0)
            id = c->values[i].id;
    return id;
}

/* a number, or "@name" or "@name:fallback" */
muc_status muc_cook_real(const cook *c, char *text, double *out)
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
            return muc_cook_refuse(c->node, MUC_MALFORMED, "attribute '%s' is missing", text + 1);
        text = fallback;
    }
    *out = strtod(text, &end);
    if (*end == 'f') /* a number that formats give in single precision */
        *out = (double)(float)*out;
    return end == text ? muc_cook_no_sense(c) : MUC_OK;
}

muc_status muc_cook_input_or_none(const cook *c, uint32_t i, uint32_t *id)
{
    const muc_file_node *node = c->node;

    *id = node->operands && i < node->input_count ? node->operands[i] : MUC_NO_ID;
    return node->operands || i >= node->input_count ? MUC_OK
                                                    : node->functions->input(node->self, i, id);
}

muc_status muc_cook_input(const cook *c, uint32_t i, uint32_t *id)
{
    MUC_TRY(muc_cook_input_or_none(c, i, id));
    return *id == MUC_NO_ID
               ? muc_cook_refuse(c->node, MUC_MALFORMED, "input %" PRIu32 " is missing", i)
               : MUC_OK;
}

/* a constant whose type the recipe says holds the number */
static muc_status expect_range(const cook *c, const char *text, double value, muc_dtype dtype)
{
    int64_t low, high;

    if (!muc_dtype_range(dtype, &low, &high) ||
        (value >= (double)low && value <= (double)high && value == floor(value)))
        return MUC_OK;
    return muc_cook_refuse(c->node, MUC_UNSUPPORTED, "%s is %g, expected an integer of type %s",
                           text + (*text == '@'), value, muc_dtype_get(dtype)->name);
}

/* "name{number}", "{number}~0": of input 0's type; "{number}:i8"; "{@low:inf}": none without the
 * attribute; "{@a,@b}": a list */
static muc_status add_constant(cook *c, char *brace, uint32_t *id)
{
    const muc_file_node *node = c->node;
    uint32_t like = c->count ? c->inputs[c->count - 1] : MUC_NO_ID, count = 0;
    char *end = brace + strcspn(brace, "}"), *next;
    double values[MOST_NUMBERS];
    muc_dtype dtype;
    bool is_typed;

    if (end[0] && end[1] == '~' && isdigit((unsigned char)end[2]))
        MUC_TRY(muc_cook_input(c, (uint32_t)atoi(end + 2), &like));
    else if (end[0] && end[1] == '~')
        like = find_value(c, end + 2);
    is_typed = end[0] && end[1] == ':' && muc_dtype_find(end + 2, &dtype);
    *end = *brace = '\0';
    if (!is_typed)
        dtype = like != MUC_NO_ID         ? muc_cook_tensor(c, like)->dtype
                : node->functions->output ? node->functions->output(node->self).dtype
                                          : MUC_F32;
    for (char *at = brace + 1; at && count < MOST_NUMBERS; at = next) {
        next = strchr(at, ',');
        if (next)
            *next++ = '\0';
        MUC_TRY(muc_cook_real(c, at, &values[count]));
        if (is_typed)
            MUC_TRY(expect_range(c, at, values[count], dtype));
        count++;
    }
    *id = MUC_NO_ID;
    return fabs(values[0]) >= (double)FLT_MAX && dtype == MUC_F32
               ? MUC_OK
               : node->functions->constant(node->self, c->word, dtype, values, count, id);
}

/* "1"; "1?": if it is there; "1:i64:name": input 1 as this type, by a cast of this name where it
 * has another; "1:i32": as the format gives it in this type */
static muc_status take_input(cook *c, uint32_t *id)
{
    const muc_file_node *node = c->node;
    char *type = strchr(c->word, ':'), *name = type ? strchr(type + 1, ':') : NULL;
    muc_attributes to = { .count = 0 };
    uint32_t i = (uint32_t)atoi(c->word);
    muc_dtype dtype;

    if (!type)
        return strchr(c->word, '?') ? muc_cook_input_or_none(c, i, id) : muc_cook_input(c, i, id);
    if (name)
        *name = '\0';
    if (!muc_dtype_find(type + 1, &dtype))
        return muc_cook_no_sense(c);
    if (!name)
        return node->functions->typed(node->self, i, dtype, id);
    MUC_TRY(muc_cook_input(c, i, id));
    if (muc_cook_tensor(c, *id)->dtype == dtype)
        return MUC_OK;
    muc_attributes_set(&to, MUC_KEY_TO, dtype);
    return node->functions->step(node->self, MUC_OP_CAST, name + 1, id, 1, &to, id);
}

/* *found false: the word is not an operand */
static muc_status take_operand(cook *c, bool *found)
{
    const muc_file_node *node = c->node;
    char *brace = strchr(c->word, '{');
    uint32_t id = MUC_NO_ID;

    *found = true;
    if (strcmp(c->word, "*") == 0 ||
        (isdigit((unsigned char)c->word[0]) && strstr(c->word, ".."))) {
        for (uint32_t i = (uint32_t)atoi(c->word); i < node->input_count; i++)
            MUC_TRY(muc_cook_input_or_none(c, i, &c->inputs[c->count++]));
        return MUC_OK;
    }
    if (brace) {
        MUC_TRY(add_constant(c, brace, &id));
    } else if (isdigit((unsigned char)c->word[0])) {
        MUC_TRY(take_input(c, &id));
    } else {
        id = find_value(c, c->word);
        *found = id != MUC_NO_ID;
    }
    if (*found)
        c->inputs[c->count++] = id;
    return MUC_OK;
}

/* ---- statements ---- */

/* a word of the format's own, which may be an operand */
static muc_status take_word(cook *c)
{
    uint32_t id = MUC_NO_ID;

    MUC_TRY(c->node->functions->word(c->node->self, c->word, &id));
    if (id != MUC_NO_ID)
        c->inputs[c->count++] = id;
    return MUC_OK;
}

static muc_status take_words(cook *c, muc_op op)
{
    bool found;

    while (next_word(c)) {
        char *equals = strchr(c->word, '=');

        if (strcmp(c->word, "given") == 0) {
            for (uint32_t i = 0; i < c->node->given->count; i++)
                c->a.items[c->a.count++] = c->node->given->items[i];
        } else if (c->word[0] == '@') {
            MUC_TRY(muc_cook_check(c, c->word + 1));
        } else if (equals) {
            MUC_TRY(muc_cook_attribute(c, op, equals));
        } else {
            MUC_TRY(take_operand(c, &found));
            if (!found && !c->node->functions->word)
                return muc_cook_no_sense(c);
            if (!found)
                MUC_TRY(take_word(c));
        }
    }
    return MUC_OK;
}

/* "name = op", "name>2 = op", "op"; *output 0: none but the last */
static muc_status take_operator(cook *c, char name[WORD], uint32_t *output, muc_op *op)
{
    const char *after;
    char *bound;

    *name = '\0';
    *output = 0;
    if (!next_word(c))
        return muc_cook_no_sense(c);
    after = c->at + strspn(c->at, " ");
    if (after[0] == '=') {
        memcpy(name, c->word, WORD);
        bound = strchr(name, '>');
        if (bound) {
            *output = (uint32_t)atoi(bound + 1);
            *bound = '\0';
        }
        c->at = after + 1;
        if (!next_word(c))
            return muc_cook_no_sense(c);
    }
    *op = c->node->op;
    return strcmp(c->word, ".") == 0 || muc_op_find(c->word, op) ? MUC_OK : muc_cook_no_sense(c);
}

/* "?name": without the attribute, or where it is 0, the statement gives its first operand */
static muc_status take_condition(cook *c, bool *holds)
{
    muc_value value;

    *holds = true;
    c->at += strspn(c->at, " ");
    if (*c->at != '?')
        return MUC_OK;
    c->at++;
    if (!next_word(c))
        return muc_cook_no_sense(c);
    MUC_TRY(c->node->functions->attribute(c->node->self, c->word, MUC_VALUE_INTEGER, &value));
    *holds = value.type != MUC_VALUE_ABSENT && value.integer != 0;
    return MUC_OK;
}

static muc_status keep(cook *c, const char name[WORD], uint32_t id)
{
    if (c->value_count == MOST_VALUES)
        return muc_cook_no_sense(c);
    memcpy(c->values[c->value_count].name, name, WORD);
    c->values[c->value_count++].id = id;
    return MUC_OK;
}

static muc_status run_statement(cook *c)
{
    const muc_file_node_functions *f = c->node->functions;
    char name[WORD];
    uint32_t id, output;
    bool holds = true;
    muc_op op;

    c->count = 0;
    c->a = (muc_attributes){ .count = 0 };
    MUC_TRY(take_condition(c, &holds));
    MUC_TRY(take_operator(c, name, &output, &op));
    if (output > 0 && !*name && !f->wants(c->node->self, output)) {
        c->at += strcspn(c->at, ";");
        return MUC_OK;
    }
    MUC_TRY(take_words(c, op));
    while (c->count && c->inputs[c->count - 1] == MUC_NO_ID)
        c->count--;
    if (*c->at != ';' && c->node->result)
        return f->step(c->node->self, op, name, c->inputs, c->count, &c->a, c->node->result);
    if (*c->at != ';')
        return f->last(c->node->self, op, c->inputs, c->count, &c->a);
    if (!holds && c->count)
        return keep(c, name, c->inputs[0]);
    MUC_TRY(f->step(c->node->self, op, name, c->inputs, c->count, &c->a, &id));
    if (output > 0)
        MUC_TRY(f->bind(c->node->self, output, id));
    return keep(c, name, id);
}

/* "[1]": input 1 is there; "[in:f32]", "[out:f32]": input 0, the output, is of this type;
 * "[rank<3]": input 0 has fewer dimensions; "[@name==1]": the attribute is there and has this value
 */
static muc_status check_guard(cook *c, bool *fits)
{
    const muc_file_node *node = c->node;
    const char *colon = strchr(c->at, ':'), *end = strchr(c->at, ']');
    uint32_t id = MUC_NO_ID, i = (uint32_t)atoi(c->at + 1);
    bool is_absent;
    char type[8];

    *fits = false;
    if (c->at[1] == '@') {
        snprintf(c->word, WORD, "%.*s", (int)(end - c->at - 2), c->at + 2);
        return muc_cook_compare(c, c->word, &is_absent, fits);
    }
    if (strncmp(c->at, "[rank<", 6) == 0) {
        MUC_TRY(muc_cook_input(c, 0, &id));
        *fits = muc_cook_tensor(c, id)->rank < (uint32_t)atoi(c->at + 6);
        return MUC_OK;
    }
    if (!colon || colon > end) {
        for (uint32_t k = 0; k <= i && i < node->input_count; k++) /* added in their order */
            MUC_TRY(muc_cook_input_or_none(c, k, &id));
        *fits = id != MUC_NO_ID;
        return MUC_OK;
    }
    snprintf(type, sizeof(type), "%.*s", (int)(end - colon - 1), colon + 1);
    if (c->at[1] == 'i')
        MUC_TRY(muc_cook_input(c, 0, &id));
    *fits = strcmp(type, muc_dtype_get(id == MUC_NO_ID ? node->functions->output(node->self).dtype
                                                       : muc_cook_tensor(c, id)->dtype)
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
            return muc_cook_no_sense(c);
        c->at++;
    }
}

muc_status muc_import_recipe(const muc_file_node *node, const char *recipe)
{
    cook c = { .node = node, .recipe = recipe, .at = recipe[0] ? recipe : ". *" };

    if (node->input_count > MUC_GRAPH_MAX_INPUTS)
        return muc_cook_refuse(node, MUC_UNSUPPORTED, "%" PRIu32 " inputs, at most %d",
                               node->input_count, MUC_GRAPH_MAX_INPUTS);
    MUC_TRY(MUC_ARENA_NEW(node->ctx, node->arena, node->input_count + (size_t)MAX_RANK, &c.inputs));
    MUC_TRY(choose(&c));
    for (;;) {
        MUC_TRY(run_statement(&c));
        if (*c.at != ';')
            return MUC_OK;
        c.at += 1 + strspn(c.at + 1, " ");
        if (!*c.at) /* of statements that bind outputs alone */
            return MUC_OK;
    }
}

const char *muc_import_list(char text[MUC_LIST_CHARS], const int64_t *items, uint32_t count)
{
    size_t at = 0;

    for (uint32_t i = 0; i < count && at < MUC_LIST_CHARS; i++)
        at +=
            (size_t)snprintf(text + at, MUC_LIST_CHARS - at, "%s%" PRId64, i ? "," : "", items[i]);
    return text;
}

muc_status muc_import_format(muc_file_node node, const char *format, ...)
{
    muc_text recipe = { 0 };
    muc_status status;
    va_list args;

    va_start(args, format);
    muc_text_add_args(&recipe, format, args);
    va_end(args);
    status = muc_import_recipe(&node, recipe.data ? recipe.data : "");
    muc_text_free(&recipe);
    return status;
}

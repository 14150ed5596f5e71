/* parse.c - reads the text form that text.c describes, line by line. */
#include "graph/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT = 1 << 28, MAX_NAME = 65536, MAX_LIST = 4096, MAX_OUTPUTS = 16 };

typedef struct parser {
    muc_context *ctx;
    muc_graph *graph;
    const char *source, *start, *at;
    char *name;        /* [MAX_NAME + 1], the last name read */
    muc_arena scratch; /* of one line */
    uint32_t *list;    /* [MAX_LIST] */
} parser;

static muc_status unexpected(const parser *p, const char *expected)
{
    const char *end = strchr(p->at, '\n');
    int length = !end || end - p->at > 32 ? 32 : (int)(end - p->at);

    return muc_fail(p->ctx, MUC_MALFORMED, p->source, (uint64_t)(p->at - p->start),
                    "found '%.*s', expected %s", length, p->at, expected);
}

static void skip_blanks(parser *p)
{
    while (*p->at == ' ')
        p->at++;
}

/* moves past a word or sign, if it is next; a word is not the beginning of a longer one */
static bool accept(parser *p, const char *word)
{
    size_t length = strlen(word);
    bool is_word = word[0] >= 'a' && word[0] <= 'z';

    skip_blanks(p);
    if (strncmp(p->at, word, length) != 0 || (is_word && p->at[length] != ' '))
        return false;
    p->at += length;
    return true;
}

static muc_status expect(parser *p, const char *word)
{
    return accept(p, word) ? MUC_OK : unexpected(p, word);
}

static muc_status end_line(parser *p)
{
    skip_blanks(p);
    if (*p->at != '\n')
        return unexpected(p, "the end of the line");
    p->at++;
    return MUC_OK;
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* the character at the cursor of a JSON string as muc_text_add_json writes it; 0: none */
static char string_character(parser *p)
{
    const char *at = p->at;
    char c;

    if ((unsigned char)*at < 0x20)
        return '\0';
    if (*at != '\\') {
        p->at++;
        return *at;
    }
    if (at[1] == '"' || at[1] == '\\') {
        p->at += 2;
        return at[1];
    }
    if (strncmp(at, "\\u00", 4) != 0 || hex(at[4]) < 0 || hex(at[5]) < 0)
        return '\0';
    c = (char)(hex(at[4]) * 16 + hex(at[5]));
    p->at += 6;
    return c;
}

/* a bare word or a string, into p->name */
static muc_status read_name(parser *p)
{
    size_t length = 0;
    bool quoted;

    skip_blanks(p);
    quoted = *p->at == '"';
    p->at += quoted;
    while (quoted ? *p->at != '"' : *p->at > ' ' && *p->at != ',' && *p->at != '=') {
        char c = quoted ? string_character(p) : *p->at++;

        if (c == '\0' || length == MAX_NAME)
            return unexpected(p, "a name of at most 64 KiB");
        p->name[length++] = c;
    }
    p->at += quoted;
    p->name[length] = '\0';
    return length ? MUC_OK : unexpected(p, "a name");
}

static muc_status read_number(parser *p, uint64_t most, uint64_t *out)
{
    uint64_t value = 0;

    skip_blanks(p);
    if (*p->at < '0' || *p->at > '9')
        return unexpected(p, "a number");
    for (; *p->at >= '0' && *p->at <= '9'; p->at++) {
        if (value > most / 10 || value * 10 > most - (uint64_t)(*p->at - '0'))
            return unexpected(p, "a smaller number");
        value = value * 10 + (uint64_t)(*p->at - '0');
    }
    *out = value;
    return MUC_OK;
}

static muc_status read_u32(parser *p, uint32_t *out)
{
    uint64_t value;

    MUC_TRY(read_number(p, UINT32_MAX, &value));
    *out = (uint32_t)value;
    return MUC_OK;
}

static muc_status read_integer(parser *p, int64_t *out)
{
    bool negative = accept(p, "-");
    uint64_t value;

    MUC_TRY(read_number(p, INT64_MAX, &value));
    *out = negative ? -(int64_t)value : (int64_t)value;
    return MUC_OK;
}

static muc_status read_real(parser *p, double *out)
{
    char *end;

    skip_blanks(p);
    errno = 0;
    *out = strtod(p->at, &end);
    if (end == p->at)
        return unexpected(p, "a real number");
    p->at = end;
    return MUC_OK;
}

static muc_status read_expr(parser *p, muc_expr *out)
{
    skip_blanks(p);
    return muc_expr_parse(p->ctx, p->graph->pool, p->source, (uint64_t)(p->at - p->start), &p->at,
                          out);
}

static muc_status read_shape(parser *p, muc_tensor *tensor)
{
    MUC_TRY(read_name(p));
    if (!muc_dtype_find(p->name, &tensor->dtype))
        return unexpected(p, "the name of an element type before this");
    MUC_TRY(expect(p, "["));
    while (!accept(p, "]")) {
        if (tensor->rank == MUC_GRAPH_MAX_RANK)
            return unexpected(p, "fewer dimensions");
        if (tensor->rank > 0)
            MUC_TRY(expect(p, ","));
        MUC_TRY(read_expr(p, &tensor->dims[tensor->rank]));
        tensor->rank++;
    }
    return MUC_OK;
}

static muc_status copy_name(parser *p, const char **out)
{
    return muc_arena_string(p->ctx, &p->scratch, p->name, strlen(p->name), out);
}

static muc_status read_input(parser *p)
{
    uint32_t lo, hi, multiple = 1;

    MUC_TRY(read_name(p));
    MUC_TRY(read_u32(p, &lo));
    MUC_TRY(expect(p, ".."));
    MUC_TRY(read_u32(p, &hi));
    if (accept(p, "by"))
        MUC_TRY(read_u32(p, &multiple));
    muc_expr_new_input(p->graph->pool, p->name, lo, hi, multiple);
    return muc_expr_status(p->graph->pool);
}

static muc_status read_table(parser *p)
{
    size_t count = 0, capacity = 0;
    uint32_t *values = NULL, index;

    MUC_TRY(read_name(p));
    do {
        MUC_TRY(muc_arena_grow(p->ctx, &p->scratch, count + 1, sizeof(*values), &capacity,
                               (void **)&values));
        MUC_TRY(read_u32(p, &values[count++]));
    } while (accept(p, ","));
    return muc_expr_new_table(p->graph->pool, p->name, values, (uint32_t)count, &index);
}

static muc_status read_assumption(parser *p)
{
    muc_expr e;
    uint32_t hi;

    MUC_TRY(read_expr(p, &e));
    MUC_TRY(expect(p, "at"));
    MUC_TRY(expect(p, "most"));
    MUC_TRY(read_u32(p, &hi));
    return muc_expr_assume(p->graph->pool, e, hi);
}

static muc_status read_tensor(parser *p)
{
    muc_tensor tensor = { .producer = MUC_NO_ID };
    uint32_t id;

    MUC_TRY(read_name(p));
    MUC_TRY(copy_name(p, &tensor.name));
    MUC_TRY(expect(p, "="));
    MUC_TRY(read_name(p));
    while (strcmp(muc_tensor_kind_name(tensor.kind), p->name) != 0)
        if (++tensor.kind == MUC_TENSOR_ACTIVATION)
            return unexpected(p, "input, const or state before this");
    MUC_TRY(read_shape(p, &tensor));
    if (accept(p, "bytes"))
        MUC_TRY(read_number(p, INT64_MAX, &tensor.bytes));
    if (accept(p, "sequence"))
        MUC_TRY(read_number(p, INT64_MAX, &tensor.sequence_bytes));
    return muc_graph_add_tensor(p->ctx, p->graph, &tensor, &id);
}

static muc_status read_integers(parser *p, muc_attribute *attribute)
{
    size_t count = 0, capacity = 0;
    int64_t *items = NULL;

    MUC_TRY(expect(p, "["));
    while (!accept(p, "]")) {
        if (count > 0)
            MUC_TRY(expect(p, ","));
        MUC_TRY(muc_arena_grow(p->ctx, &p->scratch, count + 1, sizeof(*items), &capacity,
                               (void **)&items));
        MUC_TRY(read_integer(p, &items[count++]));
    }
    attribute->value.integers.items = items;
    attribute->value.integers.count = (uint32_t)count;
    return MUC_OK;
}

static muc_status read_attribute(parser *p, muc_attribute *attribute)
{
    MUC_TRY(read_name(p));
    if (!muc_attribute_find(p->name, &attribute->key))
        return unexpected(p, "the name of an attribute before this");
    MUC_TRY(expect(p, "="));
    switch (muc_attribute_get(attribute->key)->type) {
    case MUC_ATTRIBUTE_INTEGER:
        return read_integer(p, &attribute->value.integer);
    case MUC_ATTRIBUTE_REAL:
        return read_real(p, &attribute->value.real);
    case MUC_ATTRIBUTE_INTEGERS:
        return read_integers(p, attribute);
    case MUC_ATTRIBUTE_EXPR:
        return read_expr(p, &attribute->value.expr);
    }
    return MUC_OK;
}

/* the tensors that a node reads, into p->list */
static muc_status read_inputs(parser *p, uint32_t *count)
{
    *count = 0;
    do {
        MUC_TRY(read_name(p));
        if (*count == MAX_LIST)
            return unexpected(p, "fewer inputs");
        p->list[*count] = muc_graph_find(p->graph, p->name);
        if (p->list[(*count)++] == MUC_NO_ID)
            return unexpected(p, "the name of a tensor before this");
    } while (accept(p, ","));
    return MUC_OK;
}

static muc_status check_written(parser *p, const muc_tensor *written, uint32_t count,
                                uint32_t first)
{
    for (uint32_t i = 0; i < count; i++) {
        const muc_tensor *made = &p->graph->tensors[first + i];

        if (first + i >= p->graph->tensor_count || strcmp(made->name, written[i].name) != 0 ||
            !muc_tensor_same_shape(made, &written[i]))
            return muc_fail(p->ctx, MUC_MALFORMED, p->source, (uint64_t)(p->at - p->start),
                            "'%s' is not what the node gives", written[i].name);
    }
    return MUC_OK;
}

static muc_status read_node(parser *p)
{
    muc_tensor outputs[MAX_OUTPUTS] = { { 0 } };
    muc_attribute attributes[MUC_KEY_COUNT] = { { 0 } };
    uint32_t output_count = 0, input_count, attribute_count = 0, first;
    muc_op op;

    do {
        if (output_count == MAX_OUTPUTS)
            return unexpected(p, "fewer outputs");
        MUC_TRY(read_name(p));
        MUC_TRY(copy_name(p, &outputs[output_count].name));
        MUC_TRY(read_shape(p, &outputs[output_count++]));
    } while (accept(p, ","));
    MUC_TRY(expect(p, "="));
    MUC_TRY(read_name(p));
    if (!muc_op_find(p->name, &op))
        return unexpected(p, "the name of an operator before this");
    if (output_count != muc_op_get(op)->outputs)
        return unexpected(p, "an operator of as many outputs");
    MUC_TRY(read_inputs(p, &input_count));
    for (skip_blanks(p); *p->at != '\n' && attribute_count < MUC_KEY_COUNT; skip_blanks(p))
        MUC_TRY(read_attribute(p, &attributes[attribute_count++]));
    MUC_TRY(muc_graph_add_node(p->ctx, p->graph, op, outputs[0].name, p->list, input_count,
                               attributes, attribute_count, &first));
    return check_written(p, outputs, output_count, first);
}

static muc_status read_output(parser *p)
{
    uint32_t tensor;

    MUC_TRY(read_name(p));
    tensor = muc_graph_find(p->graph, p->name);
    if (tensor == MUC_NO_ID)
        return unexpected(p, "the name of a tensor before this");
    return muc_graph_add_output(p->ctx, p->graph, tensor);
}

static muc_status read_line(parser *p)
{
    static const struct {
        const char *word;
        muc_status (*read)(parser *p);
    } lines[] = {
        { "input", read_input },   { "table", read_table }, { "assume", read_assumption },
        { "tensor", read_tensor }, { "node", read_node },   { "output", read_output },
    };

    for (size_t i = 0; i < MUC_COUNT(lines); i++) {
        if (accept(p, lines[i].word)) {
            MUC_TRY(lines[i].read(p));
            return end_line(p);
        }
    }
    return unexpected(p, "input, table, assume, tensor, node or output");
}

static muc_status read_graph(parser *p)
{
    MUC_TRY(expect(p, "graph"));
    MUC_TRY(read_name(p));
    MUC_TRY(muc_graph_new(p->ctx, p->name, &p->graph));
    MUC_TRY(end_line(p));
    while (*p->at) {
        MUC_TRY(read_line(p));
        muc_arena_free(&p->scratch);
    }
    return MUC_OK;
}

muc_status muc_graph_parse(muc_context *ctx, muc_bytes text, muc_graph **out)
{
    parser p = { .ctx = ctx, .source = text.name };
    muc_arena arena = { 0 };
    muc_status status;
    char *copy;

    if (text.size > MAX_TEXT || memchr(text.data, '\0', text.size))
        return muc_fail(ctx, MUC_MALFORMED, text.name, MUC_NO_OFFSET,
                        "%zu bytes, or a NUL among them: not a graph's text", text.size);
    status = MUC_ARENA_NEW(ctx, &arena, text.size + 1, &copy);
    if (status == MUC_OK)
        status = MUC_ARENA_NEW(ctx, &arena, MAX_NAME + 1, &p.name);
    if (status == MUC_OK)
        status = MUC_ARENA_NEW(ctx, &arena, MAX_LIST, &p.list);
    if (status == MUC_OK) {
        memcpy(copy, text.data, text.size);
        p.start = p.at = copy;
        status = read_graph(&p);
    }
    muc_arena_free(&p.scratch);
    muc_arena_free(&arena);
    if (status == MUC_OK)
        *out = p.graph;
    else
        muc_graph_free(p.graph);
    return status;
}

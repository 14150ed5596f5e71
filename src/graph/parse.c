/* parse.c - reads the text form that graph_text.c describes, line by line. */
#include "graph/graph_check.h"

#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/visible_name.h"

enum { MAX_TEXT = 1 << 28, MAX_NAME = 65536 };

typedef struct parser {
    muc_context *ctx;
    muc_graph *graph;
    const char *source, *start, *at;
    char *name;        /* [MAX_NAME + 1], the last name read */
    muc_arena scratch; /* of one line */
    uint32_t *list;    /* [MUC_GRAPH_MAX_INPUTS] */
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

/* the four digits of an escape, or 0: none, or half of a surrogate pair */
static uint32_t escaped_code(const char *at)
{
    uint32_t code = 0;

    for (int i = 0; i < 4; i++) {
        if (hex(at[i]) < 0)
            return 0;
        code = code * 16 + (uint32_t)hex(at[i]);
    }
    return code >= 0xd800 && code < 0xe000 ? 0 : code;
}

/* the character at the cursor of a JSON string as muc_text_add_json writes it, or a byte of it;
 * gives its bytes, 0: none */
static size_t string_character(parser *p, char out[4])
{
    const char *at = p->at;
    uint32_t code = 0;

    if ((unsigned char)*at < 0x20)
        return 0;
    if (*at != '\\') {
        out[0] = *p->at++;
        return 1;
    }
    if (at[1] == '"' || at[1] == '\\') {
        p->at += 2;
        out[0] = at[1];
        return 1;
    }
    if (at[1] == 'u')
        code = escaped_code(at + 2);
    p->at += code ? 6 : 0;
    return code ? muc_utf8_write(code, out) : 0;
}

/* whether a character may stand in a word without quotes */
static bool is_bare(char c)
{
    return c > ' ' && c <= '~' && c != ',' && c != '=';
}

/* a bare word or a string, into p->name */
static muc_status read_name(parser *p)
{
    size_t length = 0;
    bool quoted;

    skip_blanks(p);
    quoted = *p->at == '"';
    p->at += quoted;
    while (quoted ? *p->at != '"' : is_bare(*p->at)) {
        char character[4] = { *p->at };
        size_t size = quoted ? string_character(p, character) : 1;

        p->at += !quoted;
        if (size == 0 || length + size > MAX_NAME)
            return unexpected(p, "a name of at most 64 KiB");
        memcpy(p->name + length, character, size);
        length += size;
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

    MUC_TRY(read_number(p, (uint64_t)INT64_MAX + negative, &value));
    *out = (int64_t)(negative ? 0 - value : value);
    return MUC_OK;
}

static muc_status read_real(parser *p, double *out)
{
    char *end;

    skip_blanks(p);
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

/* scales and zero points, if they are next */
static muc_status read_quantization(parser *p, const muc_quantization **out)
{
    size_t scale_capacity = 0, zero_capacity = 0;
    uint32_t zero_count = 0;
    muc_quantization *q;
    float *scales = NULL;
    int32_t *zeros = NULL;

    if (!accept(p, "scale"))
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(p->ctx, &p->scratch, 1, &q));
    do {
        double scale;

        MUC_TRY(muc_arena_grow(p->ctx, &p->scratch, q->count + (size_t)1, sizeof(*scales),
                               &scale_capacity, (void **)&scales));
        MUC_TRY(read_real(p, &scale));
        scales[q->count++] = (float)scale;
    } while (accept(p, ","));
    MUC_TRY(expect(p, "zero"));
    do {
        int64_t zero;

        MUC_TRY(muc_arena_grow(p->ctx, &p->scratch, zero_count + (size_t)1, sizeof(*zeros),
                               &zero_capacity, (void **)&zeros));
        MUC_TRY(read_integer(p, &zero));
        if (zero < INT32_MIN || zero > INT32_MAX)
            return unexpected(p, "a zero point of 32 bits before this");
        zeros[zero_count++] = (int32_t)zero;
    } while (zero_count < q->count && accept(p, ","));
    if (zero_count != q->count)
        return unexpected(p, "as many zero points as scales");
    if (accept(p, "axis"))
        MUC_TRY(read_u32(p, &q->axis));
    q->scales = scales;
    q->zero_points = zeros;
    *out = q;
    return MUC_OK;
}

static muc_status read_element(parser *p, muc_dtype dtype, uint8_t *out)
{
    uint32_t width = muc_dtype_get(dtype)->block_bytes;
    uint64_t bits;
    int64_t integer;
    double real;

    if (muc_dtype_get(dtype)->kind == MUC_DTYPE_INTEGER) {
        if (dtype == MUC_U64)
            MUC_TRY(read_number(p, UINT64_MAX, &bits));
        else
            MUC_TRY(read_integer(p, &integer));
        if (dtype != MUC_U64)
            bits = (uint64_t)integer;
    } else {
        MUC_TRY(read_real(p, &real));
        if (dtype == MUC_F64)
            memcpy(&bits, &real, sizeof(bits));
        else
            bits = dtype == MUC_F32   ? muc_f32_bits((float)real)
                   : dtype == MUC_F16 ? muc_f16_of_f32((float)real)
                                      : muc_bf16_of_f32((float)real);
    }
    for (uint32_t b = 0; b < width; b++)
        out[b] = (uint8_t)(bits >> (8 * b));
    return MUC_OK;
}

/* the elements of a constant, of types of blocks its bytes, kept in the graph's arena */
static muc_status read_values(parser *p, muc_tensor *tensor)
{
    muc_dtype dtype = muc_dtype_get(tensor->dtype)->block_elements > 1 ? MUC_U8 : tensor->dtype;
    uint32_t width = muc_dtype_get(dtype)->block_bytes;
    size_t capacity = 0;
    uint8_t *data = NULL;
    void *kept;

    if (tensor->kind != MUC_TENSOR_CONST)
        return unexpected(p, "a constant before this");
    do {
        MUC_TRY(muc_arena_grow(p->ctx, &p->scratch, (size_t)tensor->bytes + width, 1, &capacity,
                               (void **)&data));
        MUC_TRY(read_element(p, dtype, data + tensor->bytes));
        tensor->bytes += width;
    } while (accept(p, ","));
    MUC_TRY(muc_arena_new(p->ctx, &p->graph->arena, (size_t)tensor->bytes, 1, &kept));
    memcpy(kept, data, (size_t)tensor->bytes);
    tensor->data = kept;
    return MUC_OK;
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
    MUC_TRY(read_quantization(p, &tensor.quantization));
    if (accept(p, "values"))
        MUC_TRY(read_values(p, &tensor));
    if (accept(p, "bytes"))
        MUC_TRY(read_number(p, INT64_MAX, &tensor.bytes));
    if (accept(p, "sequence"))
        MUC_TRY(read_number(p, INT64_MAX, &tensor.sequence_bytes));
    return muc_graph_add_tensor(p->ctx, p->graph, &tensor, &id);
}

/* a list in brackets: its items of a size each, read one by one into *out */
static muc_status read_list(parser *p, size_t size, muc_status (*read)(parser *p, void *item),
                            const void **out, uint32_t *out_count)
{
    size_t count = 0, capacity = 0;
    uint8_t *items = NULL;

    MUC_TRY(expect(p, "["));
    while (!accept(p, "]")) {
        if (count > 0)
            MUC_TRY(expect(p, ","));
        MUC_TRY(muc_arena_grow(p->ctx, &p->scratch, count + 1, size, &capacity, (void **)&items));
        MUC_TRY(read(p, items + count++ * size));
    }
    *out = items;
    *out_count = (uint32_t)count;
    return MUC_OK;
}

static muc_status read_integer_item(parser *p, void *item)
{
    return read_integer(p, item);
}

static muc_status read_real_item(parser *p, void *item)
{
    return read_real(p, item);
}

static muc_status read_expr_item(parser *p, void *item)
{
    return read_expr(p, item);
}

static muc_status read_word(parser *p, int64_t *out)
{
    muc_word word;

    MUC_TRY(read_name(p));
    if (!muc_word_find(p->name, &word))
        return unexpected(p, "a word that attributes know before this");
    *out = word;
    return MUC_OK;
}

static muc_status read_dtype(parser *p, int64_t *out)
{
    muc_dtype dtype;

    MUC_TRY(read_name(p));
    if (!muc_dtype_find(p->name, &dtype))
        return unexpected(p, "the name of an element type before this");
    *out = dtype;
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
        return read_list(p, sizeof(int64_t), read_integer_item,
                         (const void **)&attribute->value.integers.items,
                         &attribute->value.integers.count);
    case MUC_ATTRIBUTE_REALS:
        return read_list(p, sizeof(double), read_real_item,
                         (const void **)&attribute->value.reals.items,
                         &attribute->value.reals.count);
    case MUC_ATTRIBUTE_EXPRS:
        return read_list(p, sizeof(muc_expr), read_expr_item,
                         (const void **)&attribute->value.exprs.items,
                         &attribute->value.exprs.count);
    case MUC_ATTRIBUTE_EXPR:
        return read_expr(p, &attribute->value.expr);
    case MUC_ATTRIBUTE_WORD:
        return read_word(p, &attribute->value.integer);
    case MUC_ATTRIBUTE_DTYPE:
        return read_dtype(p, &attribute->value.integer);
    }
    return MUC_OK;
}

/* the tensors that a node reads, into p->list: none if the line ends or an attribute is next */
static muc_status read_inputs(parser *p, uint32_t *count)
{
    *count = 0;
    skip_blanks(p);
    if (*p->at == '\n' || (*p->at != '"' && p->at[strcspn(p->at, "=, \n")] == '='))
        return MUC_OK;
    do {
        if (*count == MUC_GRAPH_MAX_INPUTS)
            return unexpected(p, "fewer inputs");
        p->list[*count] = MUC_NO_ID;
        if (accept(p, "*")) {
            ++*count;
            continue;
        }
        MUC_TRY(read_name(p));
        p->list[*count] = muc_graph_find(p->graph, p->name);
        if (p->list[(*count)++] == MUC_NO_ID)
            return unexpected(p, "the name of a tensor before this");
    } while (accept(p, ","));
    return MUC_OK;
}

typedef struct written {
    muc_tensor tensors[MUC_GRAPH_MAX_OUTPUTS];
    const char *names[MUC_GRAPH_MAX_OUTPUTS];
    const muc_quantization *quantization[MUC_GRAPH_MAX_OUTPUTS];
    uint32_t count;
} written;

/* the outputs as the line has them */
static muc_status read_outputs(parser *p, written *w)
{
    do {
        if (w->count == MUC_GRAPH_MAX_OUTPUTS)
            return unexpected(p, "fewer outputs");
        MUC_TRY(read_name(p));
        MUC_TRY(copy_name(p, &w->names[w->count]));
        MUC_TRY(read_shape(p, &w->tensors[w->count]));
        MUC_TRY(read_quantization(p, &w->quantization[w->count]));
        w->count++;
    } while (accept(p, ","));
    return MUC_OK;
}

static muc_status read_node(parser *p)
{
    muc_attribute attributes[MUC_KEY_COUNT] = { { 0 } };
    uint32_t outputs[MUC_GRAPH_MAX_OUTPUTS];
    muc_new_node node = { .attributes = attributes, .inputs = p->list };
    written *w;

    MUC_TRY(MUC_ARENA_NEW(p->ctx, &p->scratch, 1, &w));
    MUC_TRY(read_outputs(p, w));
    MUC_TRY(expect(p, "="));
    MUC_TRY(read_name(p));
    if (!muc_op_find(p->name, &node.op))
        return unexpected(p, "the name of an operator before this");
    MUC_TRY(read_inputs(p, &node.input_count));
    for (skip_blanks(p); *p->at != '\n' && node.attribute_count < MUC_KEY_COUNT; skip_blanks(p))
        MUC_TRY(read_attribute(p, &attributes[node.attribute_count++]));
    node.name = w->names[0];
    node.output_count = w->count;
    node.output_names = w->names;
    node.quantization = w->quantization;
    MUC_TRY(muc_graph_add(p->ctx, p->graph, &node, outputs));
    for (uint32_t i = 0; i < w->count; i++)
        if (!muc_tensor_same_shape(&p->graph->tensors[outputs[i]], &w->tensors[i]))
            return muc_fail(p->ctx, MUC_MALFORMED, p->source, (uint64_t)(p->at - p->start),
                            "'%s' is not what the node gives", w->names[i]);
    return MUC_OK;
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
        status = MUC_ARENA_NEW(ctx, &arena, MUC_GRAPH_MAX_INPUTS, &p.list);
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

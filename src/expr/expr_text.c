/* expr_text.c - expressions as text: C's operators and precedence, the rest as calls. */
#include "expr/expr_pool.h"

#include <string.h>

/* op, spelling, precedence: 0 a call, else binary and the larger binds tighter */
#define SPELLINGS(X) \
    X(ADD, "+", 5) \
    X(SUB, "-", 5) \
    X(MUL, "*", 6) \
    X(DIV, "/", 6) \
    X(MOD, "%", 6) \
    X(SHL, "<<", 4) \
    X(SHR, ">>", 4) \
    X(LT, "<", 3) \
    X(EQ, "==", 2) \
    X(AND, "&", 1) \
    X(CDIV, "cdiv", 0) \
    X(MIN, "min", 0) \
    X(MAX, "max", 0) \
    X(SEL, "sel", 0) \
    X(SPAN, "span", 0)

typedef struct spelling {
    muc_expr_op op;
    const char *word;
    unsigned precedence;
} spelling;

static const spelling spellings[] = {
#define SPELLING(name, word, precedence) { MUC_EXPR_##name, word, precedence },
    SPELLINGS(SPELLING)
#undef SPELLING
};

static const spelling *spelling_of(muc_expr_op op)
{
    for (size_t i = 0; i < MUC_COUNT(spellings); i++)
        if (spellings[i].op == op)
            return &spellings[i];
    return NULL;
}

static void print(const muc_expr_pool *pool, muc_expr e, unsigned outer, muc_text *text);

static void print_call(const muc_expr_pool *pool, const muc_expr_node *node, const char *word,
                       muc_text *text)
{
    muc_text_add(text, "%s(", word);
    if (node->op == MUC_EXPR_SPAN)
        muc_text_add(text, "%s, ", pool->tables[node->immediate].name);
    for (unsigned i = 0; i < muc_expr_arity(node->op); i++) {
        muc_text_add(text, "%s", i ? ", " : "");
        print(pool, node->operands[i], 0, text);
    }
    muc_text_add(text, ")");
}

/* outer: the least precedence that needs no parentheses here */
static void print(const muc_expr_pool *pool, muc_expr e, unsigned outer, muc_text *text)
{
    const muc_expr_node *node = &pool->nodes[e];
    const spelling *known = spelling_of(node->op);

    if (node->op == MUC_EXPR_CONST) {
        muc_text_add(text, "%u", node->immediate);
    } else if (node->op == MUC_EXPR_INPUT) {
        muc_text_add(text, "%s", pool->inputs[node->immediate].name);
    } else if (node->op == MUC_EXPR_TABLE) {
        muc_text_add(text, "%s[", pool->tables[node->immediate].name);
        print(pool, node->operands[0], 0, text);
        muc_text_add(text, "]");
    } else if (known->precedence == 0) {
        print_call(pool, node, known->word, text);
    } else {
        muc_text_add(text, "%s", known->precedence < outer ? "(" : "");
        print(pool, node->operands[0], known->precedence, text);
        muc_text_add(text, known->op == MUC_EXPR_MUL ? "%s" : " %s ", known->word);
        print(pool, node->operands[1], known->precedence + 1, text);
        muc_text_add(text, "%s", known->precedence < outer ? ")" : "");
    }
}

void muc_expr_print(const muc_expr_pool *pool, muc_expr e, muc_text *text)
{
    print(pool, e, 0, text);
}

/* Precedence climbing. Every level of recursion consumes a byte; depth bounds the stack. */
typedef struct parser {
    muc_context *ctx;
    muc_expr_pool *pool;
    const char *source, *start, *at;
    uint64_t base_offset;
    unsigned depth;
} parser;

enum { MAX_DEPTH = 1000 };

static muc_status unexpected(const parser *p, const char *expected)
{
    return muc_fail(p->ctx, MUC_MALFORMED, p->source, p->base_offset + (uint64_t)(p->at - p->start),
                    "found '%.16s', expected %s", p->at, expected);
}

static void skip_blanks(parser *p)
{
    while (*p->at == ' ' || *p->at == '\t')
        p->at++;
}

static muc_status expect(parser *p, char c)
{
    const char text[] = { '\'', c, '\'', '\0' };

    skip_blanks(p);
    if (*p->at != c)
        return unexpected(p, text);
    p->at++;
    return MUC_OK;
}

static muc_status parse_binary(parser *p, unsigned least, muc_expr *out);

static muc_status parse_number(parser *p, muc_expr *out)
{
    uint64_t value = 0;

    while (*p->at >= '0' && *p->at <= '9') {
        value = value * 10 + (uint64_t)(*p->at - '0');
        if (value > UINT32_MAX)
            return unexpected(p, "a number below 2^32");
        p->at++;
    }
    *out = muc_expr_const(p->pool, (uint32_t)value);
    return MUC_OK;
}

static muc_status parse_name(parser *p, char name[64])
{
    size_t length = 0;

    skip_blanks(p);
    while (length < 63 && muc_expr_is_identifier(p->at, length + 1))
        length++;
    if (length == 0 || muc_expr_is_identifier(p->at, length + 1))
        return unexpected(p, "a name of at most 62 characters");
    memcpy(name, p->at, length);
    name[length] = '\0';
    p->at += length;
    return MUC_OK;
}

static muc_status parse_table(parser *p, const char *name, muc_expr_op op, muc_expr *out)
{
    uint32_t table = muc_expr_find_table(p->pool, name);
    muc_expr index;

    if (table == UINT32_MAX)
        return unexpected(p, "the name of a table before this");
    MUC_TRY(expect(p, op == MUC_EXPR_SPAN ? ',' : '['));
    MUC_TRY(parse_binary(p, 1, &index));
    MUC_TRY(expect(p, op == MUC_EXPR_SPAN ? ')' : ']'));
    *out = muc_expr_lookup(p->pool, op, table, index);
    return MUC_OK;
}

static muc_status parse_call(parser *p, muc_expr_op op, muc_expr *out)
{
    muc_expr operands[3] = { MUC_EXPR_NONE, MUC_EXPR_NONE, MUC_EXPR_NONE };
    char name[64];

    p->at++;
    if (op == MUC_EXPR_SPAN) {
        MUC_TRY(parse_name(p, name));
        return parse_table(p, name, op, out);
    }
    for (unsigned i = 0; i < muc_expr_arity(op); i++) {
        if (i > 0)
            MUC_TRY(expect(p, ','));
        MUC_TRY(parse_binary(p, 1, &operands[i]));
    }
    MUC_TRY(expect(p, ')'));
    *out = muc_expr_apply(p->pool, op, operands[0], operands[1], operands[2]);
    return MUC_OK;
}

static muc_status parse_word(parser *p, muc_expr *out)
{
    char name[64];
    uint32_t input;

    MUC_TRY(parse_name(p, name));
    for (size_t i = 0; i < MUC_COUNT(spellings) && *p->at == '('; i++)
        if (spellings[i].precedence == 0 && strcmp(spellings[i].word, name) == 0)
            return parse_call(p, spellings[i].op, out);
    if (*p->at == '[')
        return parse_table(p, name, MUC_EXPR_TABLE, out);
    input = muc_expr_find_input(p->pool, name);
    if (input == UINT32_MAX) {
        p->at -= strlen(name);
        return unexpected(p, "the name of an input");
    }
    *out = p->pool->inputs[input].expr;
    return MUC_OK;
}

static muc_status parse_operand(parser *p, muc_expr *out)
{
    skip_blanks(p);
    if (*p->at >= '0' && *p->at <= '9')
        return parse_number(p, out);
    if (*p->at != '(')
        return parse_word(p, out);
    p->at++;
    MUC_TRY(parse_binary(p, 1, out));
    return expect(p, ')');
}

/* the binary operator at the cursor, blanks skipped; "<<" is not a "<" */
static const spelling *next_operator(parser *p)
{
    const spelling *found = NULL;

    skip_blanks(p);
    for (size_t i = 0; i < MUC_COUNT(spellings); i++) {
        const spelling *s = &spellings[i];

        if (s->precedence && strncmp(p->at, s->word, strlen(s->word)) == 0 &&
            (!found || strlen(s->word) > strlen(found->word)))
            found = s;
    }
    return found;
}

static muc_status parse_binary(parser *p, unsigned least, muc_expr *out)
{
    const spelling *s;
    muc_expr right;

    if (++p->depth > MAX_DEPTH)
        return unexpected(p, "fewer nested parentheses");
    MUC_TRY(parse_operand(p, out));
    for (;;) {
        const char *before = p->at;

        s = next_operator(p);
        if (!s || s->precedence < least) {
            p->at = before;
            break;
        }
        p->at += strlen(s->word);
        MUC_TRY(parse_binary(p, s->precedence + 1, &right));
        *out = muc_expr_apply(p->pool, s->op, *out, right, MUC_EXPR_NONE);
    }
    p->depth--;
    return muc_expr_status(p->pool);
}

muc_status muc_expr_parse(muc_context *ctx, muc_expr_pool *pool, const char *source,
                          uint64_t base_offset, const char **cursor, muc_expr *out)
{
    parser p = { .ctx = ctx,
                 .pool = pool,
                 .source = source,
                 .start = *cursor,
                 .at = *cursor,
                 .base_offset = base_offset };

    MUC_TRY(parse_binary(&p, 1, out));
    *cursor = p.at;
    return MUC_OK;
}

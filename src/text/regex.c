/* regex.c - parses a regular expression to a tree, and writes the tree as steps. */
#include "text/regex.h"

#include <string.h>

#include "base/visible_name.h"

enum {
    MOST_BYTES = 4096,
    MOST_DEPTH = 32, /* of groups */
    MOST_FORKS = 10, /* that a possessive quantifier looks through */
    MOST_TIMES = 1000,
    UNLIMITED = MOST_TIMES + 1,
    NO_CODE = -1
};

typedef enum node_kind { EMPTY, SET, SEQUENCE, ALTERNATIVES, REPEAT, LOOK } node_kind;
typedef enum repeat_mode { GREEDY, LAZY, POSSESSIVE } repeat_mode;

typedef struct node {
    node_kind kind;
    struct node *a, *b; /* b: the second of SEQUENCE and ALTERNATIVES */
    uint32_t set;       /* of SET and LOOK */
    bool at_end;        /* of LOOK */
    uint32_t least, most;
    repeat_mode mode;
} node;

typedef struct parser {
    muc_context *ctx;
    const char *source, *text;
    size_t at, size;
    muc_arena *arena;
    muc_regex *regex;
    bool fold; /* within (?i: ) */
    int depth;
} parser;

static muc_status refuse(const parser *p, const char *what)
{
    return muc_fail(p->ctx, MUC_UNSUPPORTED, p->source, MUC_NO_OFFSET,
                    "the split pattern '%.120s' has, before byte %zu, %s, which is not supported",
                    p->text, p->at, what);
}

static bool next_is(const parser *p, const char *word)
{
    const size_t length = strlen(word);

    return p->size - p->at >= length && memcmp(p->text + p->at, word, length) == 0;
}

static bool take(parser *p, const char *word)
{
    if (!next_is(p, word))
        return false;
    p->at += strlen(word);
    return true;
}

static muc_status take_character(parser *p, int32_t *code)
{
    size_t length;

    if (p->at == p->size)
        return refuse(p, "an end where a character is expected");
    *code = muc_utf8_read(p->text + p->at, p->size - p->at, &length);
    if (*code < 0)
        return refuse(p, "a byte that is not UTF-8");
    p->at += length;
    return MUC_OK;
}

static muc_status new_node(const parser *p, node_kind kind, node *a, node *b, node **out)
{
    MUC_TRY(MUC_ARENA_NEW(p->ctx, p->arena, 1, out));
    (*out)->kind = kind;
    (*out)->a = a;
    (*out)->b = b;
    return MUC_OK;
}

/* The set's number among those of all expressions. */
static muc_status set_number(const parser *p, muc_character_set *set, uint32_t *out)
{
    muc_regex *r = p->regex;

    muc_set_order(set);
    for (*out = 0; *out < r->set_count; ++*out)
        if (muc_sets_equal(&r->sets[*out], set))
            return MUC_OK;
    if (r->set_count == MUC_REGEX_MOST_SETS)
        return refuse(p, "too many different sets of characters");
    r->sets[r->set_count++] = *set;
    return MUC_OK;
}

static muc_status set_node(const parser *p, muc_character_set *set, node **out)
{
    MUC_TRY(new_node(p, SET, NULL, NULL, out));
    return set_number(p, set, &(*out)->set);
}

static muc_status complement_node(const parser *p, uint32_t set, node **out)
{
    muc_character_set others;

    MUC_TRY(muc_set_complement(p->ctx, p->arena, &p->regex->sets[set], &others));
    return set_node(p, &others, out);
}

/* ---- characters and sets ---- */

static muc_status take_hexadecimal(parser *p, size_t digits, char closing, int32_t *code)
{
    *code = 0;
    for (size_t i = 0; i < digits || closing; i++) {
        static const char values[] = "0123456789abcdef";
        const char c = p->at < p->size ? p->text[p->at] : '\0';
        const char *digit = memchr(values, c >= 'A' && c <= 'F' ? c + ('a' - 'A') : c, 16);

        p->at++;
        if (closing && c == closing)
            break;
        if (!digit || *code > MUC_LAST_CHARACTER / 16)
            return refuse(p, "a character's number that is none");
        *code = *code * 16 + (int32_t)(digit - values);
    }
    return MUC_OK;
}

static muc_status take_property(parser *p, muc_character_set *set)
{
    const size_t start = p->at + 1;
    const char *close = memchr(p->text + p->at, '}', p->size - p->at);
    bool braced = next_is(p, "{"), known = false;
    const char *name = p->text + p->at + braced;
    size_t size = braced ? (close ? (size_t)(close - p->text) - start : 0) : p->at < p->size;

    if (p->fold && size == 2 && name[0] == 'L')
        return refuse(p, "a property that depends on case within (?i: )");
    p->at += size + (braced ? 2 : 0);
    if (p->at <= p->size)
        MUC_TRY(muc_set_add_category(p->ctx, p->arena, set, name, size, &known));
    if (!known && p->at <= p->size)
        MUC_TRY(muc_set_add_script(p->ctx, p->arena, set, name, size, &known));
    return known ? MUC_OK
                 : refuse(p, "a property of characters that is neither a general category nor Han");
}

/* What follows a backslash: a character, whose code is told, or a class, added to the set. */
static muc_status take_escape(parser *p, muc_character_set *set, int32_t *code)
{
    static const char named[] = "nrtfv0", values[] = "\n\r\t\f\v\0";
    muc_character_set class = { 0 }, others;
    const char *name;
    int32_t c;

    *code = NO_CODE;
    MUC_TRY(take_character(p, &c));
    if (c == 'x')
        return take(p, "{") ? take_hexadecimal(p, 0, '}', code) : take_hexadecimal(p, 2, 0, code);
    if (c == 'u')
        return take(p, "{") ? take_hexadecimal(p, 0, '}', code) : take_hexadecimal(p, 4, 0, code);
    name = c > 0 && c < 0x80 ? strchr(named, c) : NULL;
    if (name) {
        *code = values[name - named];
        return MUC_OK;
    }
    if (c == 'p' || c == 'P')
        MUC_TRY(take_property(p, &class));
    else if (c < 0x80 && strchr("sdwSDW", c))
        MUC_TRY(muc_set_add_class(p->ctx, p->arena, &class, (char)(c | 0x20)));
    else if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
        return refuse(p, "an escaped letter or digit");
    if (class.count == 0) {
        *code = c;
        return MUC_OK;
    }
    muc_set_order(&class);
    MUC_TRY(muc_set_complement(p->ctx, p->arena, &class, &others));
    return muc_set_add_set(p->ctx, p->arena, set, c == 'P' || c < 'a' ? &others : &class);
}

/* Adds first..last, and in (?i: ) the other case of its letters of ASCII. */
static muc_status add_range(const parser *p, muc_character_set *set, uint32_t first, uint32_t last)
{
    enum { LONG_S = 0x17f, KELVIN = 0x212a };

    MUC_TRY(muc_set_add(p->ctx, p->arena, set, first, last));
    if (p->fold && last >= 0x80)
        return refuse(p, "a character beyond ASCII within (?i: )");
    for (uint32_t c = 'a'; p->fold && c <= 'z'; c++) {
        const uint32_t capital = c - ('a' - 'A');

        if ((c < first || c > last) && (capital < first || capital > last))
            continue;
        MUC_TRY(muc_set_add(p->ctx, p->arena, set, c, c));
        MUC_TRY(muc_set_add(p->ctx, p->arena, set, capital, capital));
        if (c == 's')
            MUC_TRY(muc_set_add(p->ctx, p->arena, set, LONG_S, LONG_S));
        if (c == 'k')
            MUC_TRY(muc_set_add(p->ctx, p->arena, set, KELVIN, KELVIN));
    }
    return MUC_OK;
}

/* A member of a set in brackets: its code, or NO_CODE for a class, which is added. */
static muc_status take_member(parser *p, muc_character_set *set, int32_t *code)
{
    if (take(p, "\\"))
        return take_escape(p, set, code);
    if (next_is(p, "[") || next_is(p, "&&"))
        return refuse(p, "a set within a set");
    return take_character(p, code);
}

/* leaves in an ordered set what another has, too */
static muc_status intersect(const parser *p, muc_character_set *set, const muc_character_set *other)
{
    muc_character_set without, more;

    MUC_TRY(muc_set_complement(p->ctx, p->arena, set, &without));
    MUC_TRY(muc_set_complement(p->ctx, p->arena, other, &more));
    MUC_TRY(muc_set_add_set(p->ctx, p->arena, &without, &more));
    muc_set_order(&without);
    return muc_set_complement(p->ctx, p->arena, &without, set);
}

/* After the bracket: members, then sets that they must be in, too, as in [A&&[^B]]. In order. */
static muc_status take_members(parser *p, muc_character_set *set)
{
    const bool negated = take(p, "^");
    muc_character_set members = { 0 }, other;
    bool is_met = false; /* by another set */
    int32_t first, last;

    if (++p->depth > MOST_DEPTH)
        return refuse(p, "sets that are nested too deep");
    do {
        if (take(p, "&&[")) {
            is_met = true;
            muc_set_order(&members);
            MUC_TRY(take_members(p, &other));
            MUC_TRY(intersect(p, &members, &other));
            continue;
        }
        if (is_met)
            return refuse(p, "a member behind a set within a set");
        MUC_TRY(take_member(p, &members, &first));
        if (first == NO_CODE)
            continue;
        last = first;
        if (next_is(p, "-") && !next_is(p, "-]")) {
            p->at++;
            MUC_TRY(take_member(p, &members, &last));
        }
        if (last < first)
            return refuse(p, "a range of characters that does not ascend");
        MUC_TRY(add_range(p, &members, (uint32_t)first, (uint32_t)last));
    } while (!take(p, "]"));
    p->depth--;
    muc_set_order(&members);
    if (negated)
        return muc_set_complement(p->ctx, p->arena, &members, set);
    *set = members;
    return MUC_OK;
}

static muc_status take_set(parser *p, node **out)
{
    muc_character_set set;

    MUC_TRY(take_members(p, &set));
    return set_node(p, &set, out);
}

/* ---- the tree ---- */

static muc_status parse_alternatives(parser *p, node **out);

/* A look at the next character, which is of a set, or, negated, is not. */
static muc_status look_node(const parser *p, const node *ahead, bool negated, node **out)
{
    if (ahead->kind != SET)
        return refuse(p, "a look ahead at more than one character");
    MUC_TRY(new_node(p, LOOK, NULL, NULL, out));
    (*out)->at_end = negated;
    if (negated) {
        node *others;

        MUC_TRY(complement_node(p, ahead->set, &others));
        (*out)->set = others->set;
        return MUC_OK;
    }
    (*out)->set = ahead->set;
    return MUC_OK;
}

/* after the parenthesis */
static muc_status parse_group(parser *p, node **out)
{
    const bool fold = p->fold, ahead = take(p, "?="), not_ahead = !ahead && take(p, "?!");

    if (take(p, "?i)")) { /* to the end of the group around it */
        p->fold = true;
        return new_node(p, EMPTY, NULL, NULL, out);
    }
    if (take(p, "?i:"))
        p->fold = true;
    else if (!ahead && !not_ahead && !take(p, "?:") && next_is(p, "?"))
        return refuse(p, "a group of an unknown kind");
    MUC_TRY(parse_alternatives(p, out));
    p->fold = fold;
    if (!take(p, ")"))
        return refuse(p, "a group that is not closed");
    return ahead || not_ahead ? look_node(p, *out, not_ahead, out) : MUC_OK;
}

static muc_status parse_atom(parser *p, node **out)
{
    muc_character_set set = { 0 }, none = { 0 };
    int32_t code = NO_CODE;

    if (take(p, "("))
        return parse_group(p, out);
    if (take(p, "["))
        return take_set(p, out);
    if (take(p, "$") || take(p, "\\z")) {
        MUC_TRY(new_node(p, LOOK, NULL, NULL, out));
        (*out)->at_end = true;
        return set_number(p, &none, &(*out)->set);
    }
    if (next_is(p, "^") || next_is(p, "*") || next_is(p, "+") || next_is(p, "?"))
        return refuse(p, "an anchor, or a quantifier without what it repeats");
    if (take(p, "."))
        MUC_TRY(muc_set_add(p->ctx, p->arena, &none, '\n', '\n'));
    else if (take(p, "\\"))
        MUC_TRY(take_escape(p, &set, &code));
    else
        MUC_TRY(take_character(p, &code));
    if (none.count > 0)
        MUC_TRY(muc_set_complement(p->ctx, p->arena, &none, &set));
    if (code != NO_CODE)
        MUC_TRY(add_range(p, &set, (uint32_t)code, (uint32_t)code));
    return set_node(p, &set, out);
}

static bool take_number(parser *p, uint32_t *out)
{
    const size_t start = p->at;

    for (*out = 0; p->at < p->size && p->text[p->at] >= '0' && p->text[p->at] <= '9'; p->at++)
        *out = *out < UNLIMITED ? *out * 10 + (uint32_t)(p->text[p->at] - '0') : UNLIMITED;
    return p->at > start;
}

/* How often, if a quantifier follows; `most` is 0 otherwise. */
static muc_status take_quantifier(parser *p, node *repeat)
{
    repeat->most = UNLIMITED;
    repeat->least = next_is(p, "+");
    if (take(p, "?"))
        repeat->most = 1;
    else if (take(p, "{")) {
        if (!take_number(p, &repeat->least) || repeat->least > MOST_TIMES)
            return refuse(p, "a brace that begins no quantifier");
        repeat->most = repeat->least;
        if (take(p, ",") && !take_number(p, &repeat->most))
            repeat->most = UNLIMITED;
        if (!take(p, "}") || repeat->most < repeat->least || repeat->most == 0)
            return refuse(p, "a brace that begins no quantifier");
    } else if (!take(p, "*") && !take(p, "+")) {
        repeat->most = 0;
        return MUC_OK;
    }
    repeat->mode = take(p, "?") ? LAZY : take(p, "+") ? POSSESSIVE : GREEDY;
    return MUC_OK;
}

static muc_status parse_sequence(parser *p, node **out)
{
    MUC_TRY(new_node(p, EMPTY, NULL, NULL, out));
    while (p->at < p->size && !next_is(p, "|") && !next_is(p, ")")) {
        node *item, *repeat;

        MUC_TRY(parse_atom(p, &item));
        MUC_TRY(new_node(p, REPEAT, item, NULL, &repeat));
        MUC_TRY(take_quantifier(p, repeat));
        if (item->kind == EMPTY) /* however often */
            continue;
        if (repeat->most > 0)
            item = repeat;
        if ((*out)->kind == EMPTY)
            *out = item;
        else
            MUC_TRY(new_node(p, SEQUENCE, *out, item, out));
    }
    return MUC_OK;
}

static muc_status parse_alternatives(parser *p, node **out)
{
    node *other;

    if (++p->depth > MOST_DEPTH)
        return refuse(p, "groups too deep within each other");
    MUC_TRY(parse_sequence(p, out));
    while (take(p, "|")) {
        MUC_TRY(parse_sequence(p, &other));
        MUC_TRY(new_node(p, ALTERNATIVES, *out, other, out));
    }
    p->depth--;
    return MUC_OK;
}

static muc_status parse_string(parser *p, node **out)
{
    MUC_TRY(new_node(p, EMPTY, NULL, NULL, out));
    while (p->at < p->size) {
        muc_character_set set = { 0 };
        node *item;
        int32_t code;

        MUC_TRY(take_character(p, &code));
        MUC_TRY(add_range(p, &set, (uint32_t)code, (uint32_t)code));
        MUC_TRY(set_node(p, &set, &item));
        MUC_TRY(new_node(p, SEQUENCE, *out, item, out));
        if ((*out)->a->kind == EMPTY)
            *out = item;
    }
    return MUC_OK;
}

/* ---- steps ---- */

static muc_status add_step(const parser *p, muc_regex_step step, uint32_t *out)
{
    muc_regex *r = p->regex;

    if (r->count == MUC_REGEX_MOST_STEPS)
        return refuse(p, "too many repetitions");
    MUC_TRY(MUC_ARENA_GROW(p->ctx, p->arena, r->count + 1, &r->capacity, &r->steps));
    *out = (uint32_t)r->count;
    r->steps[r->count++] = step;
    return MUC_OK;
}

static muc_status add_fork(const parser *p, bool lazy, uint32_t body, uint32_t after, uint32_t *out)
{
    return add_step(
        p, (muc_regex_step){ MUC_REGEX_FORK, false, 0, lazy ? after : body, lazy ? body : after },
        out);
}

/* Is giving nothing back the same as giving back what helps? It is where what follows matches
 * nothing at all, or begins with none of the set's characters. */
static bool gives_nothing_back(const parser *p, uint32_t set, uint32_t step, int forks_left)
{
    const muc_regex_step *s = &p->regex->steps[step];

    if (s->kind == MUC_REGEX_MATCH)
        return true;
    if (s->kind == MUC_REGEX_FORK)
        return forks_left > 0 && gives_nothing_back(p, set, s->next, forks_left - 1) &&
               gives_nothing_back(p, set, s->other, forks_left - 1);
    return !muc_sets_overlap(&p->regex->sets[set], &p->regex->sets[s->set]);
}

static muc_status emit(const parser *p, const node *n, uint32_t next, uint32_t *out);

static muc_status emit_repeat(const parser *p, const node *n, uint32_t next, uint32_t *out)
{
    const bool lazy = n->mode == LAZY;
    uint32_t body, at = next;

    if (n->mode == POSSESSIVE &&
        (n->a->kind != SET || !gives_nothing_back(p, n->a->set, next, MOST_FORKS)))
        return refuse(p, "a possessive quantifier whose set begins what follows, too");
    if (n->most == UNLIMITED) {
        MUC_TRY(add_fork(p, lazy, next, next, &at));
        MUC_TRY(emit(p, n->a, at, &body));
        *(lazy ? &p->regex->steps[at].other : &p->regex->steps[at].next) = body;
    }
    for (uint32_t i = n->least; n->most != UNLIMITED && i < n->most; i++) {
        MUC_TRY(emit(p, n->a, at, &body));
        MUC_TRY(add_fork(p, lazy, body, next, &at));
    }
    for (uint32_t i = 0; i < n->least; i++)
        MUC_TRY(emit(p, n->a, at, &at));
    *out = at;
    return MUC_OK;
}

/* The steps of a node, before those at `next`. */
static muc_status emit(const parser *p, const node *n, uint32_t next, uint32_t *out)
{
    uint32_t first, second;

    switch (n->kind) {
    case EMPTY:
        *out = next;
        return MUC_OK;
    case SET:
        return add_step(p, (muc_regex_step){ MUC_REGEX_TAKE, false, n->set, next, 0 }, out);
    case LOOK:
        return add_step(p, (muc_regex_step){ MUC_REGEX_LOOK, n->at_end, n->set, next, 0 }, out);
    case SEQUENCE:
        MUC_TRY(emit(p, n->b, next, &second));
        return emit(p, n->a, second, out);
    case ALTERNATIVES:
        MUC_TRY(emit(p, n->a, next, &first));
        MUC_TRY(emit(p, n->b, next, &second));
        return add_fork(p, false, first, second, out);
    case REPEAT:
        return emit_repeat(p, n, next, out);
    }
    return MUC_BUG;
}

/* Of a set X: [^X]*X|[^X]+ or X[^X]*|[^X]+ or X+, whose matches are the pieces. */
static muc_status apply_behavior(const parser *p, muc_split_behavior behavior, node **tree)
{
    const uint32_t least = behavior != MUC_SPLIT_WITH_PREVIOUS;
    node *set = *tree, *others, *some, *many;

    if (behavior == MUC_SPLIT_ISOLATED || behavior == MUC_SPLIT_MATCHES_ONLY)
        return MUC_OK;
    if (set->kind != SET)
        return refuse(p, "more than one character where matches join their neighbours");
    if (behavior == MUC_SPLIT_CONTIGUOUS) {
        MUC_TRY(new_node(p, REPEAT, set, NULL, tree));
        (*tree)->least = least;
        (*tree)->most = UNLIMITED;
        return MUC_OK;
    }
    MUC_TRY(complement_node(p, set->set, &others));
    MUC_TRY(new_node(p, REPEAT, others, NULL, &some));
    MUC_TRY(new_node(p, REPEAT, others, NULL, &many));
    some->most = many->most = UNLIMITED;
    many->least = 1;
    if (behavior == MUC_SPLIT_WITH_PREVIOUS)
        MUC_TRY(new_node(p, SEQUENCE, some, set, tree));
    else
        MUC_TRY(new_node(p, SEQUENCE, set, some, tree));
    return new_node(p, ALTERNATIVES, *tree, many, tree);
}

muc_status muc_regex_add(muc_context *ctx, const char *source, const muc_split_rule *rule,
                         muc_arena *arena, muc_regex *regex, uint32_t *start)
{
    parser p = { .ctx = ctx, .source = source, .text = rule->pattern, .arena = arena };
    uint32_t match;
    node *tree;

    p.regex = regex;
    p.size = strlen(rule->pattern);
    if (p.size > MOST_BYTES)
        return muc_fail(ctx, MUC_UNSUPPORTED, source, MUC_NO_OFFSET,
                        "a split pattern of %zu bytes, expected at most %d", p.size, MOST_BYTES);
    MUC_TRY(rule->literal ? parse_string(&p, &tree) : parse_alternatives(&p, &tree));
    if (p.at < p.size)
        return refuse(&p, "a parenthesis that closes no group");
    MUC_TRY(apply_behavior(&p, rule->behavior, &tree));
    MUC_TRY(add_step(&p, (muc_regex_step){ .kind = MUC_REGEX_MATCH }, &match));
    return emit(&p, tree, match, start);
}

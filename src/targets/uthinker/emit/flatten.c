/* flatten.c - Placeholders placed, shared, given slots, and everything written as words.
 *
 * 0. If loops are marked for a sequencer, what it can execute before, after and between them
 * becomes part of one.
 * 1. collect: walks the template. Every expression that an instruction needs becomes a value: its
 *    operands are values first. A value lives in the shallowest scope (body of a For, or the whole)
 *    that has all loop variables it depends on, and is evaluated before the first item of that
 *    scope that needs it; or, if that is in a body that runs at most once, there. Equal expressions
 *    of one scope are one value.
 * 2. line up: scopes and values become one list of steps.
 * 3. allocate: linear scan over the steps. The verifier frees a slot written in a scope when the
 *    scope ends, not before, so a slot is only handed on within its scope.
 * 4. write: the words.
 */
#include "targets/uthinker/emit/flatten.h"

#include <string.h>

#include "targets/uthinker/isa/code_item.h"

enum { MAX_LEVELS = MUR_MAX_NESTING };
#define NO_VALUE UINT32_MAX

/* Where a value comes from when something uses it. */
typedef enum reference_kind {
    REFERENCE_NONE,   /* no operand here */
    REFERENCE_NUMBER, /* index is the number */
    REFERENCE_INPUT,  /* index is an input of the template */
    REFERENCE_LOOP,   /* index is a scope: its loop's variable */
    REFERENCE_FIRST,  /* index is a value: its slot .. */
    REFERENCE_SECOND, /* .. or the one after, of a table lookup */
} reference_kind;

typedef struct reference {
    reference_kind kind;
    uint32_t index;
    uint32_t more; /* of a field: a number that is added */
} reference;

/* One EVAL. */
typedef struct value {
    muc_expr expr;         /* what it computes; of a table lookup the index, unless not fused */
    uint32_t op;           /* enum mur_op */
    uint32_t table, first; /* of MUR_OP_TABLE: of the pool; the word in TABL for expr 0 */
    reference operands[3];
    uint32_t scope, item; /* evaluated before this item of this scope */
    uint32_t next;        /* at the same place, or NO_VALUE */
    uint32_t end[2];      /* last step that needs the slot, and the one after it */
    uint32_t slot, number;
} value;

typedef struct scope {
    const muc_code *code;
    const muc_for *loop; /* NULL: the whole template */
    uint32_t parent, parent_item, depth;
    uint32_t *first, *last; /* [items] values evaluated before an item, in order, or NO_VALUE */
    reference **uses;       /* [items] one a field, or the count */
    uint32_t end;           /* its NEXT, among the steps */
    uint32_t slot;          /* of the loop's variable */
} scope;

typedef enum step_kind {
    STEP_EVAL,
    STEP_INST,
    STEP_FOR,
    STEP_NEXT,
    STEP_END,
} step_kind;

typedef struct step {
    step_kind kind;
    uint32_t scope; /* that it is in; of NEXT: that it ends */
    uint32_t index; /* EVAL: a value; FOR: the scope it opens */
    const muc_instruction *instruction;
    const reference *uses; /* INST: one a field; FOR: the count */
    uint32_t use_count;
} step;

typedef struct flattening {
    muc_context *ctx;
    muc_arena *arena;
    const muc_template *template;
    muc_code code; /* the template's, with stretches */
    muc_expr_pool *pool;
    muc_flatten_options options;
    uint32_t levels; /* at most so many loops are left behind by hoisting */
    value *values;
    scope *scopes;
    step *steps;
    size_t value_count, value_capacity, scope_count, scope_capacity, step_count, step_capacity;
    uint32_t next_scope;       /* while lining up */
    uint32_t owner[MUR_SLOTS]; /* depth + 1 of the scope that wrote the slot, 0: none */
    uint32_t busy[MUR_SLOTS];  /* last step that needs what is in it */
    bool exhausted;            /* the slots did not suffice */
    muc_flat *out;
} flattening;

/* ---- 0. what a sequencer repeats ---- */

static bool can_stream(const muc_code *code);

/* Whether the CPU has no instruction of its own in it; recursion is as deep as Fors nest. */
static bool can_stream_item(const muc_code_item *item)
{
    return item->loop ? can_stream(&item->loop->body)
                      : muc_insn_get(item->instruction->op)->engine != MUR_CPU;
}

static bool can_stream(const muc_code *code)
{
    for (size_t i = 0; i < code->count; i++)
        if (!can_stream_item(&code->items[i]))
            return false;
    return true;
}

/* how deep Fors nest; so is the recursion */
static uint32_t nesting(const muc_code *code)
{
    uint32_t most = 0;

    for (size_t i = 0; i < code->count; i++)
        if (code->items[i].loop) {
            uint32_t inner = 1 + nesting(&code->items[i].loop->body);

            most = inner > most ? inner : most;
        }
    return most;
}

static muc_status append_items(flattening *f, const muc_code_item *items, size_t count)
{
    muc_code *code = &f->code;

    MUC_TRY(muc_arena_grow(f->ctx, f->arena, code->count + count, sizeof(*code->items),
                           &code->capacity, (void **)&code->items));
    memcpy(code->items + code->count, items, count * sizeof(*items));
    code->count += count;
    return MUC_OK;
}

/* Items that the CPU has no part in, one after the other: with a loop among them they become a loop
 * of one round, so that a sequencer evaluates what is made before it, too. */
static muc_status append_stretch(flattening *f, const muc_code_item *items, size_t count)
{
    static const char name[] = "stretch";
    const muc_code body = { (muc_code_item *)items, count, count };
    uint32_t deep = nesting(&body);
    muc_for *loop;

    if (deep == 0 || deep == MUR_MAX_NESTING)
        return append_items(f, items, count);
    muc_expr_new_input(f->pool, name, 0, 0, 1);
    MUC_TRY(muc_expr_status(f->pool));
    MUC_TRY(MUC_ARENA_NEW(f->ctx, f->arena, 1, &loop));
    *loop = (muc_for){ .input = muc_expr_find_input(f->pool, name),
                       .count.resolve = muc_expr_const(f->pool, 1),
                       .most = 1,
                       .body = body };
    return append_items(f, &(muc_code_item){ NULL, loop }, 1);
}

/* the template's code, as it is unless loops are marked for a sequencer */
static muc_status find_stretches(flattening *f)
{
    const muc_code *code = &f->template->code;
    size_t end;

    f->code = *code;
    if (!f->options.streamed)
        return MUC_OK;
    f->code = (muc_code){ 0 };
    for (size_t i = 0; i < code->count; i = end) {
        for (end = i; end < code->count && can_stream_item(&code->items[end]);)
            end++;
        if (end > i) {
            MUC_TRY(append_stretch(f, code->items + i, end - i));
        } else {
            MUC_TRY(append_items(f, code->items + i, 1));
            end++;
        }
    }
    return MUC_OK;
}

/* ---- 1. collect ---- */

static muc_status new_scope(flattening *f, const muc_code *code, const muc_for *loop,
                            uint32_t parent, uint32_t parent_item, uint32_t *out)
{
    scope *s;

    MUC_TRY(muc_arena_grow(f->ctx, f->arena, f->scope_count + 1, sizeof(*f->scopes),
                           &f->scope_capacity, (void **)&f->scopes));
    *out = (uint32_t)f->scope_count++;
    s = &f->scopes[*out];
    *s = (scope){ .code = code, .loop = loop, .parent = parent, .parent_item = parent_item };
    s->depth = loop ? f->scopes[parent].depth + 1 : 0;
    MUC_TRY(MUC_ARENA_NEW(f->ctx, f->arena, code->count, &s->first));
    MUC_TRY(MUC_ARENA_NEW(f->ctx, f->arena, code->count, &s->last));
    MUC_TRY(MUC_ARENA_NEW(f->ctx, f->arena, code->count, &s->uses));
    memset(s->first, 0xff, code->count * sizeof(*s->first));
    memset(s->last, 0xff, code->count * sizeof(*s->last));
    return MUC_OK;
}

/* the shallowest scope around `at` in which e can be evaluated, `levels` loops out at most */
static uint32_t home_of(const flattening *f, muc_expr e, uint32_t at)
{
    uint64_t inputs = muc_expr_get(f->pool, e)->inputs;
    uint32_t levels = f->options.no_hoisting ? 0 : f->levels;

    for (; levels > 0 && f->scopes[at].loop; levels--) {
        if (inputs >> f->scopes[at].loop->input & 1)
            break;
        at = f->scopes[at].parent;
    }
    return at;
}

/* The deepest scope from `home` to `at` that is entered no more often than `home`. */
static uint32_t rare_home(const flattening *f, uint32_t home, uint32_t at)
{
    uint32_t deepest = at;

    for (; at != home; at = f->scopes[at].parent)
        if (f->scopes[at].loop->most > 1)
            deepest = f->scopes[at].parent;
    return deepest;
}

/* the item of scope `home` that item `item` of scope `at` is, or is part of */
static uint32_t item_in(const flattening *f, uint32_t home, uint32_t at, uint32_t item)
{
    for (; at != home; at = f->scopes[at].parent)
        item = f->scopes[at].parent_item;
    return item;
}

static uint32_t find_value(const flattening *f, const value *wanted)
{
    for (uint32_t i = 0; !f->options.no_sharing && i < f->value_count; i++) {
        const value *v = &f->values[i];

        if (v->expr == wanted->expr && v->op == wanted->op && v->first == wanted->first &&
            v->scope == wanted->scope)
            return i;
    }
    return NO_VALUE;
}

/* appends to what is evaluated before its item */
static muc_status add_value(flattening *f, const value *v, uint32_t *out)
{
    scope *home = &f->scopes[v->scope];

    MUC_TRY(muc_arena_grow(f->ctx, f->arena, f->value_count + 1, sizeof(*f->values),
                           &f->value_capacity, (void **)&f->values));
    *out = (uint32_t)f->value_count++;
    f->values[*out] = *v;
    f->values[*out].next = NO_VALUE;
    if (home->last[v->item] == NO_VALUE)
        home->first[v->item] = *out;
    else
        f->values[home->last[v->item]].next = *out;
    home->last[v->item] = *out;
    return MUC_OK;
}

static muc_status collect(flattening *f, muc_expr e, uint32_t at, uint32_t item, reference *out);

/* a number where only a slot will do: 0 is min(pos, 0), any other is added to it */
static muc_status collect_number(flattening *f, muc_expr e, uint32_t at, uint32_t item,
                                 reference *out)
{
    uint32_t number = muc_expr_get(f->pool, e)->immediate, found;
    value v = { .expr = e, .op = number ? MUR_OP_ADD : MUR_OP_MIN };

    v.scope = home_of(f, e, at);
    v.item = item_in(f, v.scope, at, item);
    v.operands[0] = (reference){ REFERENCE_INPUT, MUC_INPUT_POS, 0 };
    v.operands[1] = (reference){ REFERENCE_NUMBER, number, 0 };
    found = find_value(f, &v);
    if (found == NO_VALUE) {
        if (number)
            MUC_TRY(collect_number(f, muc_expr_const(f->pool, 0), v.scope, v.item, &v.operands[0]));
        MUC_TRY(add_value(f, &v, &found));
    }
    *out = (reference){ REFERENCE_FIRST, found, 0 };
    return MUC_OK;
}

/* an operand; number_allowed: an immediate can be there */
static muc_status collect_operand(flattening *f, muc_expr e, bool number_allowed, uint32_t at,
                                  uint32_t item, reference *out)
{
    if (muc_expr_is_const(f->pool, e) && !number_allowed)
        return collect_number(f, e, at, item, out);
    return collect(f, e, at, item, out);
}

/* The number that is added to the rest of e, which e becomes. */
static uint32_t take_number(const flattening *f, muc_expr *e)
{
    const muc_expr_node *node = muc_expr_get(f->pool, *e);

    if (node->op != MUC_EXPR_ADD || !muc_expr_is_const(f->pool, node->operands[1]))
        return 0;
    *e = node->operands[0];
    return muc_expr_get(f->pool, node->operands[1])->immediate;
}

/* the word in TABL where a table begins: section 7 of SPEC.md */
static uint32_t start_of_table(const flattening *f, uint32_t table)
{
    uint32_t at = 2 + muc_expr_table_count(f->pool);

    for (uint32_t i = 0; i < table; i++)
        at += muc_expr_get_table(f->pool, i)->count;
    return at;
}

static muc_status collect_operator(flattening *f, muc_expr e, uint32_t at, uint32_t item,
                                   reference *out)
{
    muc_expr_node node = *muc_expr_get(f->pool, e);
    bool lookup = node.op == MUC_EXPR_TABLE || node.op == MUC_EXPR_SPAN;
    value v = { .expr = e, .op = lookup ? MUR_OP_TABLE : (uint32_t)node.op };
    uint32_t found;

    if (lookup) {
        v.table = node.immediate;
        v.first = start_of_table(f, v.table) + take_number(f, &node.operands[0]);
    }
    if (lookup && !f->options.no_fusion)
        v.expr = node.operands[0];
    v.scope = home_of(f, e, at);
    found = find_value(f, &v);
    if (found == NO_VALUE) {
        v.scope = rare_home(f, v.scope, at);
        found = find_value(f, &v);
    }
    if (found == NO_VALUE) {
        v.item = item_in(f, v.scope, at, item);
        for (uint32_t i = 0; i < MUC_COUNT(node.operands); i++)
            if (node.operands[i] != MUC_EXPR_NONE)
                MUC_TRY(collect_operand(f, node.operands[i], i == 1 && node.op != MUC_EXPR_SEL,
                                        v.scope, v.item, &v.operands[i]));
        MUC_TRY(add_value(f, &v, &found));
    }
    *out = (reference){ node.op == MUC_EXPR_SPAN ? REFERENCE_SECOND : REFERENCE_FIRST, found, 0 };
    return MUC_OK;
}

/* an input: of loops that share a variable the one around `at` */
static reference collect_input(const flattening *f, uint32_t input, uint32_t at)
{
    for (; f->scopes[at].loop; at = f->scopes[at].parent)
        if (f->scopes[at].loop->input == input)
            return (reference){ REFERENCE_LOOP, at, 0 };
    return (reference){ REFERENCE_INPUT, input, 0 };
}

/* how item `item` of scope `at` gets e; recursion is as deep as the expression */
static muc_status collect(flattening *f, muc_expr e, uint32_t at, uint32_t item, reference *out)
{
    const muc_expr_node *node = muc_expr_get(f->pool, e);

    if (node->op == MUC_EXPR_CONST)
        *out = (reference){ REFERENCE_NUMBER, node->immediate, 0 };
    else if (node->op == MUC_EXPR_INPUT)
        *out = collect_input(f, node->immediate, at);
    else
        return collect_operator(f, e, at, item, out);
    return MUC_OK;
}

static muc_status check_field(const flattening *f, const muc_instruction *instruction, uint32_t i)
{
    const muc_insn_info *info = muc_insn_get(instruction->op);
    const muc_expr_node *node = muc_expr_get(f->pool, instruction->fields[i].resolve);

    if (node->hi <= muc_field_max(info->first_field + i) && !node->may_overflow)
        return MUC_OK;
    return muc_fail(f->ctx, MUC_UNSUPPORTED, "uthinker", MUC_NO_OFFSET,
                    "stage %s: %s.%s is up to %u, the field holds %u", instruction->stage,
                    info->name, muc_field_get(info->first_field + i)->name, node->hi,
                    muc_field_max(info->first_field + i));
}

static muc_status push_step(flattening *f, const step *s)
{
    MUC_TRY(muc_arena_grow(f->ctx, f->arena, f->step_count + 1, sizeof(*f->steps),
                           &f->step_capacity, (void **)&f->steps));
    f->steps[f->step_count++] = *s;
    return MUC_OK;
}

static muc_status collect_instruction(flattening *f, uint32_t at, uint32_t item)
{
    const muc_instruction *instruction = f->scopes[at].code->items[item].instruction;
    uint32_t fields = muc_insn_fields(instruction->op);
    reference *uses;

    MUC_TRY(MUC_ARENA_NEW(f->ctx, f->arena, fields, &uses));
    for (uint32_t i = 0; i < fields; i++) {
        muc_expr e = instruction->fields[i].resolve;
        uint32_t more = take_number(f, &e);

        MUC_TRY(check_field(f, instruction, i));
        MUC_TRY(collect(f, e, at, item, &uses[i]));
        uses[i].more = more;
    }
    f->scopes[at].uses[item] = uses;
    return MUC_OK;
}

/* recursion is as deep as Fors nest */
static muc_status collect_scope(flattening *f, uint32_t at)
{
    const muc_code *code = f->scopes[at].code;

    for (uint32_t i = 0; i < code->count; i++) {
        const muc_for *loop = code->items[i].loop;
        reference *count;
        uint32_t inner;

        if (!loop) {
            MUC_TRY(collect_instruction(f, at, i));
            continue;
        }
        MUC_TRY(MUC_ARENA_NEW(f->ctx, f->arena, 1, &count));
        MUC_TRY(collect(f, loop->count.resolve, at, i, count));
        f->scopes[at].uses[i] = count;
        MUC_TRY(new_scope(f, &loop->body, loop, at, i, &inner));
        MUC_TRY(collect_scope(f, inner));
    }
    return MUC_OK;
}

/* ---- 2. line up ---- */

/* scopes are numbered in the order in which they are met, here as in collect_scope */
static muc_status line_up(flattening *f, uint32_t at)
{
    const muc_code *code = f->scopes[at].code;

    for (uint32_t i = 0; i < code->count; i++) {
        step s = { .scope = at, .uses = f->scopes[at].uses[i] };

        for (uint32_t v = f->scopes[at].first[i]; v != NO_VALUE; v = f->values[v].next) {
            step eval = { .kind = STEP_EVAL,
                          .scope = at,
                          .index = v,
                          .uses = f->values[v].operands,
                          .use_count = MUC_COUNT(f->values[v].operands) };

            f->values[v].end[0] = f->values[v].end[1] = (uint32_t)f->step_count;
            MUC_TRY(push_step(f, &eval));
        }
        s.instruction = code->items[i].instruction;
        s.kind = s.instruction ? STEP_INST : STEP_FOR;
        s.use_count = s.instruction ? muc_insn_fields(s.instruction->op) : 1;
        s.index = s.instruction ? 0 : ++f->next_scope;
        MUC_TRY(push_step(f, &s));
        if (!s.instruction)
            MUC_TRY(line_up(f, s.index));
    }
    f->scopes[at].end = (uint32_t)f->step_count;
    return push_step(f, &(step){ .kind = at ? STEP_NEXT : STEP_END, .scope = at });
}

/* a value that a loop inside its scope uses is needed until that loop's last round is over */
static void extend(flattening *f, const reference *use, uint32_t at, uint32_t now)
{
    value *v = &f->values[use->index];
    uint32_t *end = &v->end[use->kind == REFERENCE_SECOND];

    for (; at != v->scope; at = f->scopes[at].parent)
        now = f->scopes[at].end;
    if (*end < now)
        *end = now;
}

static void find_ends(flattening *f)
{
    for (uint32_t i = 0; i < f->step_count; i++)
        for (uint32_t u = 0; u < f->steps[i].use_count; u++)
            if (f->steps[i].uses[u].kind >= REFERENCE_FIRST)
                extend(f, &f->steps[i].uses[u], f->steps[i].scope, i);
}

/* ---- 3. allocate ---- */

/* whether the slot can be written at step `now` by the scope of this depth; read_now: it may still
 * be read by the same step */
static bool can_take(const flattening *f, uint32_t slot, uint32_t depth, uint32_t now,
                     bool read_now)
{
    if (slot >= MUR_SLOTS)
        return false;
    return f->owner[slot] == 0 ||
           (f->owner[slot] == depth + 1 && (f->busy[slot] < now + (read_now ? 1 : 0)));
}

/* the lowest slots, those that the scope has already before any other; `count` of them in a row */
static uint32_t take_slots(flattening *f, uint32_t depth, uint32_t now, uint32_t count)
{
    for (uint32_t fresh = 0; fresh < 2; fresh++)
        for (uint32_t slot = 0; slot < MUR_SLOTS; slot++) {
            bool fits = fresh || f->owner[slot] == depth + 1;

            for (uint32_t i = 0; i < count; i++)
                fits = fits && can_take(f, slot + i, depth, now, count == 1);
            if (!fits)
                continue;
            for (uint32_t i = 0; i < count; i++)
                f->owner[slot + i] = depth + 1;
            if (slot + count > f->out->slots)
                f->out->slots = slot + count;
            return slot;
        }
    f->exhausted = true;
    return 0;
}

static void allocate_step(flattening *f, uint32_t now)
{
    const step *s = &f->steps[now];
    uint32_t depth = f->scopes[s->scope].depth;

    if (s->kind == STEP_EVAL) {
        value *v = &f->values[s->index];
        uint32_t count = v->op == MUR_OP_TABLE ? 2 : 1;

        v->slot = take_slots(f, depth, now, count);
        for (uint32_t i = 0; i < count && !f->exhausted; i++)
            f->busy[v->slot + i] = v->end[i];
    } else if (s->kind == STEP_FOR) {
        scope *body = &f->scopes[s->index];

        body->slot = take_slots(f, body->depth, now, 1);
        f->busy[body->slot] = body->end;
    } else if (s->kind == STEP_NEXT) {
        for (uint32_t slot = 0; slot < MUR_SLOTS; slot++)
            if (f->owner[slot] > depth)
                f->owner[slot] = 0;
    }
}

static void allocate(flattening *f)
{
    memset(f->owner, 0, sizeof(f->owner));
    for (uint32_t i = 0; i < MUC_TEMPLATE_INPUTS; i++) {
        f->owner[i] = 1;
        f->busy[i] = UINT32_MAX - 1;
    }
    f->out->slots = MUC_TEMPLATE_INPUTS;
    for (uint32_t i = 0; i < f->step_count && !f->exhausted; i++)
        allocate_step(f, i);
}

/* ---- 4. write ---- */

static muc_status push_item(flattening *f, const muc_item *item)
{
    uint32_t words[MUC_ITEM_MAX_WORDS], count = muc_item_encode(item, words);

    MUC_TRY(muc_arena_grow(f->ctx, f->arena, f->out->count + count, sizeof(*f->out->words),
                           &f->out->capacity, (void **)&f->out->words));
    memcpy(f->out->words + f->out->count, words, 4 * (size_t)count);
    f->out->count += count;
    return MUC_OK;
}

/* of the word that comes next; borrows the name */
static muc_status push_label(flattening *f, const char *name)
{
    MUC_TRY(muc_arena_grow(f->ctx, f->arena, f->out->label_count + 1, sizeof(*f->out->labels),
                           &f->out->label_capacity, (void **)&f->out->labels));
    f->out->labels[f->out->label_count++] = (muc_debug_name){ (uint32_t)f->out->count, name };
    return MUC_OK;
}

static uint32_t slot_of(const flattening *f, const reference *use)
{
    switch (use->kind) {
    case REFERENCE_INPUT:
        return use->index;
    case REFERENCE_LOOP:
        return f->scopes[use->index].slot;
    case REFERENCE_FIRST:
        return f->values[use->index].slot;
    case REFERENCE_SECOND:
        return f->values[use->index].slot + 1;
    case REFERENCE_NONE:
    case REFERENCE_NUMBER:
        break;
    }
    return 0;
}

/* "P17 = pos / 64", or "P18, P19 = q[l * 8 + h]" for a table's value and span */
static muc_status push_value_label(flattening *f, const value *v)
{
    muc_text text = { 0 };
    const char *name;
    muc_status status;

    if (v->op == MUR_OP_TABLE) {
        const muc_expr_node *node = muc_expr_get(f->pool, v->expr);
        muc_expr index = f->options.no_fusion ? node->operands[0] : v->expr;
        uint32_t more = v->first - start_of_table(f, v->table);

        if (f->options.no_fusion)
            more = 0;
        muc_text_add(&text, "P%u, P%u = %s[", v->number, v->number + 1,
                     muc_expr_get_table(f->pool, v->table)->name);
        muc_expr_print(f->pool, index, &text);
        muc_text_add(&text, more ? " + %u]" : "]", more);
    } else {
        muc_text_add(&text, "P%u = ", v->number);
        muc_expr_print(f->pool, v->expr, &text);
    }
    status = muc_text_status(f->ctx, &text);
    if (status == MUC_OK)
        status = muc_arena_string(f->ctx, f->arena, text.data, text.size, &name);
    muc_text_free(&text);
    MUC_TRY(status);
    return push_label(f, name);
}

static muc_status write_eval(flattening *f, const step *s)
{
    const value *v = &f->values[s->index];
    const reference *b = &v->operands[1];
    bool immediate = b->kind == REFERENCE_NUMBER;
    const muc_item item = { .kind = MUR_EVAL,
                            .eval = v->op,
                            .dst = v->slot,
                            .a = slot_of(f, &v->operands[0]),
                            .b = slot_of(f, b),
                            .immediate = immediate,
                            .second = v->op == MUR_OP_TABLE ? v->first
                                      : immediate           ? b->index
                                                            : slot_of(f, &v->operands[2]) };

    MUC_TRY(push_value_label(f, v));
    f->out->evals++;
    return push_item(f, &item);
}

static muc_item_field field_of(const flattening *f, const reference *use)
{
    muc_item_field field = { use->kind != REFERENCE_NUMBER,
                             use->kind == REFERENCE_NUMBER ? use->index : slot_of(f, use),
                             use->more };

    return field;
}

static muc_status write_instruction(flattening *f, const step *s)
{
    muc_item item = { .kind = MUR_INST,
                      .op = s->instruction->op,
                      .sig = s->instruction->sig,
                      .wait = s->instruction->wait };

    for (uint32_t i = 0; i < s->use_count; i++) {
        item.fields[i] = field_of(f, &s->uses[i]);
        f->out->patches += item.fields[i].is_slot;
    }
    MUC_TRY(push_label(f, s->instruction->stage));
    f->out->instructions++;
    return push_item(f, &item);
}

/* the words of its body are known at its end */
static muc_status write_for(flattening *f, const step *s)
{
    const muc_for *loop = f->scopes[s->index].loop;
    bool outermost = !f->scopes[s->scope].loop;
    const muc_item item = { .kind = MUR_FOR,
                            .variable = f->scopes[s->index].slot,
                            .count = field_of(f, s->uses),
                            .most = loop->most,
                            .streamed =
                                f->options.streamed && outermost && can_stream(&loop->body) };

    MUC_TRY(push_label(f, muc_expr_get_input(f->pool, loop->input)->name));
    f->out->loops++;
    return push_item(f, &item);
}

static muc_status write_steps(flattening *f)
{
    uint32_t open[MUR_MAX_NESTING], depth = 0;

    for (size_t i = 0; i < f->step_count; i++) {
        const step *s = &f->steps[i];

        switch (s->kind) {
        case STEP_EVAL:
            MUC_TRY(write_eval(f, s));
            break;
        case STEP_INST:
            MUC_TRY(write_instruction(f, s));
            break;
        case STEP_FOR:
            MUC_TRY(write_for(f, s));
            open[depth++] = (uint32_t)f->out->count;
            break;
        case STEP_NEXT:
            depth--;
            f->out->words[open[depth] - 1] = (uint32_t)f->out->count - open[depth];
            MUC_TRY(push_item(f, &(muc_item){ .kind = MUR_NEXT }));
            break;
        case STEP_END:
            MUC_TRY(push_item(f, &(muc_item){ .kind = MUR_END }));
            break;
        }
    }
    return MUC_OK;
}

/* labels count in the order in which the program evaluates */
static void number_values(flattening *f)
{
    uint32_t number = 0;

    for (size_t i = 0; i < f->step_count; i++)
        if (f->steps[i].kind == STEP_EVAL) {
            value *v = &f->values[f->steps[i].index];

            v->number = number;
            number += v->op == MUR_OP_TABLE ? 2 : 1;
        }
}

static muc_status place_values(flattening *f, uint32_t levels)
{
    uint32_t whole;

    f->levels = levels;
    f->value_count = f->scope_count = f->step_count = 0;
    f->next_scope = 0;
    f->exhausted = false;
    MUC_TRY(new_scope(f, &f->code, NULL, 0, 0, &whole));
    MUC_TRY(collect_scope(f, whole));
    MUC_TRY(line_up(f, whole));
    find_ends(f);
    allocate(f);
    return MUC_OK;
}

muc_status muc_uthinker_flatten(muc_context *ctx, muc_arena *arena, const muc_template *template,
                                const muc_flatten_options *options, muc_flat *out)
{
    flattening f = { .ctx = ctx,
                     .arena = arena,
                     .template = template,
                     .pool = template->pool,
                     .options = *options,
                     .out = out };

    memset(out, 0, sizeof(*out));
    MUC_TRY(find_stretches(&f));
    for (uint32_t levels = MAX_LEVELS;; levels--) {
        MUC_TRY(place_values(&f, levels));
        if (!f.exhausted)
            break;
        if (levels == 0)
            return muc_fail(ctx, MUC_NOFIT, "uthinker", MUC_NO_OFFSET,
                            "%s needs more than %u slots", template->name, (unsigned)MUR_SLOTS);
    }
    number_values(&f);
    return write_steps(&f);
}

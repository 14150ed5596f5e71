/* expr_pool.c - what a pool holds: shared nodes, inputs, tables and promises. */
#include "expr/expr_pool.h"

#include <string.h>

static muc_expr refuse(muc_expr_pool *pool, muc_status status)
{
    if (pool->status == MUC_OK)
        pool->status = status;
    return MUC_EXPR_NONE;
}

muc_status muc_expr_pool_new(muc_context *ctx, muc_arena *arena, muc_expr_pool **out)
{
    muc_expr_pool *pool;

    MUC_TRY(MUC_ARENA_NEW(ctx, arena, 1, &pool));
    pool->ctx = ctx;
    pool->arena = arena;
    pool->status = MUC_OK;
    *out = pool;
    return MUC_OK;
}

/* *items of one arena, count of them, in another */
static muc_status move_items(const muc_expr_pool *pool, size_t count, size_t size, void **items)
{
    void *copy;

    MUC_TRY(muc_arena_new(pool->ctx, pool->arena, count + 1, size, &copy));
    if (count)
        memcpy(copy, *items, count * size);
    *items = copy;
    return MUC_OK;
}

muc_status muc_expr_pool_copy(muc_context *ctx, muc_arena *arena, const muc_expr_pool *from,
                              muc_expr_pool **out)
{
    muc_expr_pool *pool;

    MUC_TRY(MUC_ARENA_NEW(ctx, arena, 1, &pool));
    *pool = *from;
    pool->ctx = ctx;
    pool->arena = arena;
    MUC_TRY(move_items(pool, pool->node_capacity, sizeof(*pool->nodes), (void **)&pool->nodes));
    MUC_TRY(move_items(pool, pool->bucket_count, sizeof(*pool->buckets), (void **)&pool->buckets));
    MUC_TRY(move_items(pool, pool->table_capacity, sizeof(*pool->tables), (void **)&pool->tables));
    MUC_TRY(move_items(pool, pool->promise_capacity, sizeof(*pool->promises),
                       (void **)&pool->promises));
    *out = pool;
    return MUC_OK;
}

muc_status muc_expr_status(const muc_expr_pool *pool)
{
    return pool->status;
}

static bool same(const muc_expr_node *a, const muc_expr_node *b)
{
    return a->op == b->op && a->immediate == b->immediate &&
           memcmp(a->operands, b->operands, sizeof(a->operands)) == 0;
}

static size_t hash(const muc_expr_node *node)
{
    uint64_t h = (uint64_t)node->op * 0x9E3779B97F4A7C15u;

    for (unsigned i = 0; i < 3; i++)
        h = (h ^ node->operands[i]) * 0xD6E8FEB86659FD93u;
    h = (h ^ node->immediate) * 0xD6E8FEB86659FD93u;
    return (size_t)(h ^ h >> 32);
}

/* the bucket of an equal node, or the empty one where it belongs */
static uint32_t *find_bucket(const muc_expr_pool *pool, const muc_expr_node *node)
{
    size_t mask = pool->bucket_count - 1, i = hash(node) & mask;

    while (pool->buckets[i] && !same(&pool->nodes[pool->buckets[i]], node))
        i = (i + 1) & mask;
    return &pool->buckets[i];
}

static muc_status grow_buckets(muc_expr_pool *pool)
{
    size_t old_count = pool->bucket_count;
    uint32_t *old = pool->buckets;

    if ((pool->count + 1) * 2 < old_count)
        return MUC_OK;
    pool->bucket_count = old_count ? old_count * 2 : 64;
    MUC_TRY(MUC_ARENA_NEW(pool->ctx, pool->arena, pool->bucket_count, &pool->buckets));
    for (size_t i = 0; i < old_count; i++)
        if (old[i])
            *find_bucket(pool, &pool->nodes[old[i]]) = old[i];
    return MUC_OK;
}

static muc_status add_node(muc_expr_pool *pool, muc_expr_node *node, muc_expr *out)
{
    uint32_t *bucket;

    MUC_TRY(grow_buckets(pool));
    bucket = find_bucket(pool, node);
    if (*bucket) {
        *out = *bucket;
        return MUC_OK;
    }
    muc_expr_analyse(pool, node);
    if (node->size > MUC_EXPR_MAX_NODES || pool->count >= UINT32_MAX / 4)
        return muc_fail(pool->ctx, MUC_UNSUPPORTED, "expr", MUC_NO_OFFSET,
                        "an expression of more than %d nodes", MUC_EXPR_MAX_NODES);
    MUC_TRY(muc_arena_grow(pool->ctx, pool->arena, pool->count + 2, sizeof(*node),
                           &pool->node_capacity, (void **)&pool->nodes));
    *bucket = (uint32_t)++pool->count;
    pool->nodes[pool->count] = *node;
    *out = (muc_expr)pool->count;
    return MUC_OK;
}

muc_expr muc_expr_intern(muc_expr_pool *pool, muc_expr_node node)
{
    muc_expr out = MUC_EXPR_NONE;
    muc_status status = pool->status == MUC_OK ? add_node(pool, &node, &out) : pool->status;

    return status == MUC_OK ? out : refuse(pool, status);
}

bool muc_expr_known(const muc_expr_pool *pool, const muc_expr_node *node)
{
    return pool->bucket_count && *find_bucket(pool, node) != 0;
}

muc_expr muc_expr_refuse(muc_expr_pool *pool, const char *message)
{
    if (pool->status != MUC_OK)
        return MUC_EXPR_NONE;
    return refuse(pool, muc_fail(pool->ctx, MUC_UNSUPPORTED, "expr", MUC_NO_OFFSET, "%s", message));
}

muc_expr muc_expr_const(muc_expr_pool *pool, uint32_t value)
{
    muc_expr_node node = { .op = MUC_EXPR_CONST, .immediate = value };

    return muc_expr_intern(pool, node);
}

bool muc_expr_is_identifier(const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char c = name[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';

        if (!letter && !(i > 0 && c >= '0' && c <= '9'))
            return false;
    }
    return length > 0;
}

uint32_t muc_expr_find_input(const muc_expr_pool *pool, const char *name)
{
    for (uint32_t i = 0; i < pool->input_count; i++)
        if (strcmp(pool->inputs[i].name, name) == 0)
            return i;
    return UINT32_MAX;
}

uint32_t muc_expr_find_table(const muc_expr_pool *pool, const char *name)
{
    for (uint32_t i = 0; i < pool->table_count; i++)
        if (strcmp(pool->tables[i].name, name) == 0)
            return i;
    return UINT32_MAX;
}

static muc_status check_name(const muc_expr_pool *pool, const char *name)
{
    if (!muc_expr_is_identifier(name, strlen(name)))
        return muc_fail(pool->ctx, MUC_MALFORMED, "expr", MUC_NO_OFFSET,
                        "'%s' is not an identifier", name);
    if (muc_expr_find_input(pool, name) != UINT32_MAX ||
        muc_expr_find_table(pool, name) != UINT32_MAX)
        return muc_fail(pool->ctx, MUC_MALFORMED, "expr", MUC_NO_OFFSET,
                        "'%s' is declared twice, differently", name);
    return MUC_OK;
}

static muc_status declare_input(muc_expr_pool *pool, const char *name, uint32_t lo, uint32_t hi,
                                uint32_t multiple, muc_expr *out)
{
    muc_expr_input *input = &pool->inputs[pool->input_count];
    muc_expr_node node = { .op = MUC_EXPR_INPUT, .immediate = pool->input_count };

    MUC_TRY(check_name(pool, name));
    if (multiple == 0 || lo > hi || lo % multiple != 0 || hi % multiple != 0)
        return muc_fail(pool->ctx, MUC_MALFORMED, "expr", MUC_NO_OFFSET,
                        "input '%s' cannot be the multiples of %u in %u..%u", name, multiple, lo,
                        hi);
    if (pool->input_count == MUC_EXPR_MAX_INPUTS)
        return muc_fail(pool->ctx, MUC_UNSUPPORTED, "expr", MUC_NO_OFFSET, "more than %d inputs",
                        MUC_EXPR_MAX_INPUTS);
    input->lo = lo;
    input->hi = hi;
    input->multiple = multiple;
    MUC_TRY(muc_arena_string(pool->ctx, pool->arena, name, strlen(name), &input->name));
    MUC_TRY(add_node(pool, &node, &input->expr));
    pool->input_count++;
    *out = input->expr;
    return MUC_OK;
}

muc_expr muc_expr_new_input(muc_expr_pool *pool, const char *name, uint32_t lo, uint32_t hi,
                            uint32_t multiple)
{
    uint32_t known = muc_expr_find_input(pool, name);
    muc_expr out = MUC_EXPR_NONE;
    muc_status status;

    if (pool->status != MUC_OK)
        return MUC_EXPR_NONE;
    if (known != UINT32_MAX && pool->inputs[known].lo == lo && pool->inputs[known].hi == hi &&
        pool->inputs[known].multiple == multiple)
        return pool->inputs[known].expr;
    status = declare_input(pool, name, lo, hi, multiple, &out);
    return status == MUC_OK ? out : refuse(pool, status);
}

static muc_status add_promise(muc_expr_pool *pool, const muc_expr_promise *promise)
{
    MUC_TRY(pool->status);
    MUC_TRY(muc_arena_grow(pool->ctx, pool->arena, pool->promise_count + 1, sizeof(*promise),
                           &pool->promise_capacity, (void **)&pool->promises));
    pool->promises[pool->promise_count++] = *promise;
    return MUC_OK;
}

muc_status muc_expr_assume(muc_expr_pool *pool, muc_expr e, uint32_t hi)
{
    muc_expr_promise promise = { .a = e, .b = muc_expr_const(pool, hi) };
    muc_expr_node *node;

    MUC_TRY(pool->status);
    node = &pool->nodes[e];
    if (node->lo > hi)
        return muc_fail(pool->ctx, MUC_MALFORMED, "expr", MUC_NO_OFFSET,
                        "a value of at least %u is promised to be at most %u", node->lo, hi);
    MUC_TRY(add_promise(pool, &promise));
    if (hi < node->hi)
        node->hi = hi;
    node->may_overflow = false;
    for (unsigned i = 0; i < 3; i++)
        node->may_overflow = node->may_overflow || pool->nodes[node->operands[i]].may_overflow;
    return MUC_OK;
}

/* an a that is made of x <= b by what never makes more of it */
static bool is_at_most(const muc_expr_pool *pool, muc_expr a, muc_expr b)
{
    const muc_expr_node *node = &pool->nodes[a];

    if (a == b || node->hi <= pool->nodes[b].lo)
        return true;
    if (node->op == MUC_EXPR_MIN)
        return is_at_most(pool, node->operands[0], b) || is_at_most(pool, node->operands[1], b);
    if (node->op == MUC_EXPR_SEL)
        return is_at_most(pool, node->operands[1], b) && is_at_most(pool, node->operands[2], b);
    return (node->op == MUC_EXPR_SUB || node->op == MUC_EXPR_DIV || node->op == MUC_EXPR_CDIV) &&
           is_at_most(pool, node->operands[0], b);
}

muc_expr_truth muc_expr_holds(const muc_expr_pool *pool, muc_expr a, bool equal, muc_expr b)
{
    const muc_expr_node *x = &pool->nodes[a], *y = &pool->nodes[b];

    if (equal ? a == b || (x->lo == x->hi && y->lo == y->hi && x->lo == y->lo)
              : is_at_most(pool, a, b))
        return MUC_EXPR_ALWAYS;
    if (x->lo > y->hi || (equal && x->hi < y->lo))
        return MUC_EXPR_NEVER;
    if (equal && y->lo == y->hi && (x->multiple ? y->lo % x->multiple != 0 : y->lo != 0))
        return MUC_EXPR_NEVER;
    return MUC_EXPR_SOMETIMES;
}

muc_status muc_expr_require(muc_expr_pool *pool, muc_expr a, bool equal, muc_expr b,
                            const char *source, const char *what)
{
    muc_expr_promise promise = { .a = a, .b = b, .equal = equal };

    MUC_TRY(pool->status);
    for (size_t i = 0; i < pool->promise_count; i++) {
        const muc_expr_promise *known = &pool->promises[i];

        if (known->a == a && known->b == b && known->equal == equal && known->what)
            return MUC_OK;
    }
    MUC_TRY(muc_arena_string(pool->ctx, pool->arena, source, strlen(source), &promise.source));
    MUC_TRY(muc_arena_string(pool->ctx, pool->arena, what, strlen(what), &promise.what));
    return add_promise(pool, &promise);
}

const muc_expr_promise *muc_expr_get_promise(const muc_expr_pool *pool, uint32_t i)
{
    return i < pool->promise_count ? &pool->promises[i] : NULL;
}

muc_status muc_expr_new_table(muc_expr_pool *pool, const char *name, const uint32_t *values,
                              uint32_t count, uint32_t *out)
{
    muc_expr_table *table;
    uint32_t *copy;

    MUC_TRY(pool->status);
    MUC_TRY(check_name(pool, name));
    if (count == 0)
        return muc_fail(pool->ctx, MUC_MALFORMED, "expr", MUC_NO_OFFSET, "table '%s' is empty",
                        name);
    MUC_TRY(muc_arena_grow(pool->ctx, pool->arena, pool->table_count + 1, sizeof(*table),
                           &pool->table_capacity, (void **)&pool->tables));
    MUC_TRY(MUC_ARENA_NEW(pool->ctx, pool->arena, count, &copy));
    memcpy(copy, values, count * sizeof(*copy));
    table = &pool->tables[pool->table_count];
    MUC_TRY(muc_arena_string(pool->ctx, pool->arena, name, strlen(name), &table->name));
    table->values = copy;
    table->count = count;
    table->never_falls = true;
    for (uint32_t i = 1; i < count; i++)
        table->never_falls = table->never_falls && values[i - 1] <= values[i];
    *out = (uint32_t)pool->table_count++;
    return MUC_OK;
}

const muc_expr_node *muc_expr_get(const muc_expr_pool *pool, muc_expr e)
{
    return &pool->nodes[e];
}

uint32_t muc_expr_count(const muc_expr_pool *pool)
{
    return (uint32_t)pool->count;
}

uint32_t muc_expr_input_count(const muc_expr_pool *pool)
{
    return pool->input_count;
}

uint32_t muc_expr_table_count(const muc_expr_pool *pool)
{
    return (uint32_t)pool->table_count;
}

const muc_expr_input *muc_expr_get_input(const muc_expr_pool *pool, uint32_t index)
{
    return &pool->inputs[index];
}

const muc_expr_table *muc_expr_get_table(const muc_expr_pool *pool, uint32_t index)
{
    return &pool->tables[index];
}

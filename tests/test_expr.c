/* test_expr.c - symbolic integers against plain arithmetic on random trees. */
#include "check.h"

#include "expr/expr.h"

typedef struct fixture {
    muc_context *ctx;
    muc_arena arena;
    muc_expr_pool *pool;
    muc_expr pos, m;
} fixture;

static void begin(fixture *f)
{
    f->arena = (muc_arena){ NULL };
    f->ctx = muc_context_new(1);
    CHECK_OK(f->ctx, muc_expr_pool_new(f->ctx, &f->arena, &f->pool));
    f->pos = muc_expr_new_input(f->pool, "pos", 0, 511, 1);
    f->m = muc_expr_new_input(f->pool, "m", 1, 64, 1);
}

static void end(fixture *f)
{
    muc_arena_free(&f->arena);
    muc_context_free(f->ctx);
}

static const char *text_of(fixture *f, muc_expr e)
{
    static char out[4096];
    muc_text text = { 0 };

    muc_expr_print(f->pool, e, &text);
    CHECK_OK(f->ctx, muc_text_status(f->ctx, &text));
    snprintf(out, sizeof(out), "%s", text.data);
    muc_text_free(&text);
    return out;
}

static muc_expr parsed(fixture *f, const char *text)
{
    muc_expr e;

    CHECK_OK(f->ctx, muc_expr_parse(f->ctx, f->pool, "test", 0, &text, &e));
    CHECK_EQ(*text, '\0');
    return e;
}

static void equal_expressions_are_one_node(void **state)
{
    fixture f;
    muc_expr sum;

    (void)state;
    begin(&f);
    sum = muc_expr_add(f.pool, f.pos, f.m);
    CHECK_EQ(sum, muc_expr_add(f.pool, f.pos, f.m));
    CHECK_EQ(sum, muc_expr_add(f.pool, f.m, f.pos));
    CHECK_EQ(f.pos, muc_expr_new_input(f.pool, "pos", 0, 511, 1));
    end(&f);
}

static void simple_forms_are_simplified(void **state)
{
    /* what is written, what it becomes */
    static const char *const rules[][2] = {
        { "pos + 0", "pos" },
        { "pos*1", "pos" },
        { "pos*0", "0" },
        { "3 + pos + 4", "pos + 7" },
        { "pos*6*7", "pos*42" },
        { "(pos + 9) - 4", "pos + 5" },
        { "(pos + 4) - 9", "pos - 5" },
        { "(pos + m) - m", "pos" },
        { "(pos + m) - pos", "m" },
        { "pos - pos", "0" },
        { "m - 64", "0" },
        { "pos*64 / 32", "pos*2" },
        { "pos*8 / 32", "pos / 4" },
        { "cdiv(pos*64, 32)", "pos*2" },
        { "cdiv(cdiv(pos, 4), 8)", "cdiv(pos, 32)" },
        { "(pos*64 + 64) % 32", "0" },
        { "(pos + 64) % 32", "pos % 32" },
        { "m % 100", "m" },
        { "min(m, 64)", "m" },
        { "min(min(pos, 300), 200)", "min(pos, 200)" },
        { "max(m, 1)", "m" },
        { "max(max(pos, 3), 200)", "max(pos, 200)" },
        { "pos < 512", "1" },
        { "m == 0", "0" },
        { "pos & 511", "pos" },
        { "pos & 255 & 15", "pos & 15" },
        { "sel(m, pos, 5)", "pos" },
        { "sel(pos, m, m)", "m" },
        { "pos << 0", "pos" },
        { "2*3 + 4", "10" },
        { "(m - 1) + 3", "m + 2" },
        { "(m - 1) + 1", "m" },
        { "((m + 4) - 6) + 5", "m - 2 + 5" }, /* m may be 1, where m - 2 is 0 */
        { "(m - 1)*2 + 2", "m*2" },
        { "((pos + m) - 1)*3", "(pos + m)*3 - 3" },
        { "(m*4 - 4) / 2", "m*2 - 2" },
        { "cdiv((m + 7) - 8, 8)", "cdiv(m - 1, 8)" },
    };
    fixture f;

    (void)state;
    begin(&f);
    for (size_t i = 0; i < MUC_COUNT(rules); i++)
        assert_string_equal(text_of(&f, parsed(&f, rules[i][0])), rules[i][1]);
    end(&f);
}

static void text_says_what_depends_on_what(void **state)
{
    fixture f;
    muc_expr layer, e;

    (void)state;
    begin(&f);
    layer = muc_expr_new_input(f.pool, "layer", 0, 4, 1);
    e = muc_expr_add(f.pool, muc_expr_mul_const(f.pool, layer, 102),
                     muc_expr_min_const(f.pool, muc_expr_add(f.pool, f.pos, f.m), 64));
    assert_string_equal(text_of(&f, e), "layer*102 + min(pos + m, 64)");
    CHECK_EQ(parsed(&f, "layer*102 + min(pos + m, 64)"), e);
    CHECK(muc_expr_depends_on(f.pool, e, 0) && muc_expr_depends_on(f.pool, e, 2));
    CHECK(!muc_expr_depends_on(f.pool, layer, 0));
    CHECK_EQ(muc_expr_get(f.pool, e)->lo, 1);
    CHECK_EQ(muc_expr_get(f.pool, e)->hi, 4 * 102 + 64);
    end(&f);
}

static void tables_give_entries_and_spans(void **state)
{
    static const uint32_t offsets[] = { 20, 39, 39, 80 }, falls[] = { 3, 1 };
    fixture f;
    muc_expr layer, at, size;
    uint32_t bindings[] = { 0, 1, 0 }, value, table, falling;

    (void)state;
    begin(&f);
    layer = muc_expr_new_input(f.pool, "layer", 0, 2, 1);
    CHECK_OK(f.ctx, muc_expr_new_table(f.pool, "offsets", offsets, 4, &table));
    CHECK_OK(f.ctx, muc_expr_new_table(f.pool, "falls", falls, 2, &falling));
    at = muc_expr_lookup(f.pool, MUC_EXPR_TABLE, table, layer);
    size = muc_expr_lookup(f.pool, MUC_EXPR_SPAN, table, layer);
    CHECK_OK(f.ctx, muc_expr_status(f.pool));
    assert_string_equal(text_of(&f, at), "offsets[layer]");
    assert_string_equal(text_of(&f, size), "span(offsets, layer)");
    CHECK_EQ(parsed(&f, "span(offsets, layer)"), size);
    CHECK_EQ(parsed(&f, "offsets[layer]"), at);
    CHECK_EQ(muc_expr_get(f.pool, at)->hi, 39);
    CHECK_EQ(muc_expr_get(f.pool, size)->hi, 41);
    for (uint32_t i = 0; i < 3; i++) {
        bindings[2] = i;
        CHECK_OK(f.ctx, muc_expr_eval(f.ctx, f.pool, size, bindings, &value));
        CHECK_EQ(value, offsets[i + 1] - offsets[i]);
    }
    CHECK_EQ(muc_expr_lookup(f.pool, MUC_EXPR_TABLE, table, f.pos), MUC_EXPR_NONE);
    CHECK_FAILS(f.ctx, MUC_UNSUPPORTED, "leave its table", muc_expr_status(f.pool));
    end(&f);
}

static void promises_narrow_and_are_kept(void **state)
{
    fixture f;
    muc_expr sum;
    uint32_t good[] = { 500, 12 }, bad[] = { 500, 13 }, outside[] = { 512, 1 };

    (void)state;
    begin(&f);
    sum = muc_expr_add(f.pool, f.pos, f.m);
    CHECK_OK(f.ctx, muc_expr_assume(f.pool, sum, 512));
    CHECK_EQ(muc_expr_min_const(f.pool, sum, 512), sum);
    CHECK_OK(f.ctx, muc_expr_check_bindings(f.ctx, f.pool, good));
    CHECK_FAILS(f.ctx, MUC_USAGE, "pos + m is 513, expected at most 512",
                muc_expr_check_bindings(f.ctx, f.pool, bad));
    CHECK_FAILS(f.ctx, MUC_USAGE, "'pos' is 512", muc_expr_check_bindings(f.ctx, f.pool, outside));
    end(&f);
}

static void requirements_are_known_or_kept(void **state)
{
    fixture f;
    muc_expr four, eight, half;
    uint32_t good[] = { 2, 1 }, bad[] = { 3, 1 };

    (void)state;
    begin(&f);
    four = muc_expr_mul_const(f.pool, f.pos, 4);
    eight = muc_expr_const(f.pool, 8);
    half = muc_expr_sub(f.pool, muc_expr_min(f.pool, four, f.m), f.pos);
    CHECK_EQ(muc_expr_holds(f.pool, four, true, four), MUC_EXPR_ALWAYS);
    CHECK_EQ(muc_expr_holds(f.pool, half, false, f.m), MUC_EXPR_ALWAYS);
    CHECK_EQ(muc_expr_holds(f.pool, four, true, muc_expr_const(f.pool, 6)), MUC_EXPR_NEVER);
    CHECK_EQ(muc_expr_holds(f.pool, four, false, eight), MUC_EXPR_SOMETIMES);
    CHECK_EQ(muc_expr_holds(f.pool, four, true, eight), MUC_EXPR_SOMETIMES);
    for (int i = 0; i < 2; i++)
        CHECK_OK(f.ctx, muc_expr_require(f.pool, four, true, eight, "net", "node 'y': elements"));
    CHECK(muc_expr_get_promise(f.pool, 0) && !muc_expr_get_promise(f.pool, 1));
    CHECK_EQ(muc_expr_get(f.pool, four)->hi, 4 * muc_expr_get(f.pool, f.pos)->hi);
    CHECK_OK(f.ctx, muc_expr_check_bindings(f.ctx, f.pool, good));
    CHECK_FAILS(f.ctx, MUC_USAGE, "net: node 'y': elements: pos*4 is 12, expected 8",
                muc_expr_check_bindings(f.ctx, f.pool, bad));
    end(&f);
}

static void what_does_not_fit_is_refused(void **state)
{
    static const char *const bad[] = { "",           "pos +",          "(pos",    "min(pos)",
                                       "frob",       "pos / m",        "pos / 0", "pos << 32",
                                       "4294967296", "4294967295 + 1", "t[pos]",  "cdiv(pos, 0)",
                                       "span(t, 0)", "pos # 3)" };
    (void)state;
    for (size_t i = 0; i < MUC_COUNT(bad); i++) {
        fixture f;
        const char *at = bad[i];
        muc_expr e;

        begin(&f);
        CHECK(muc_expr_parse(f.ctx, f.pool, "test", 0, &at, &e) != MUC_OK || *at != '\0');
        end(&f);
    }
}

static void overflow_is_an_error_not_a_wrap(void **state)
{
    fixture f;
    muc_expr big, sum;
    uint32_t bindings[] = { 0, 2, UINT32_MAX - 1 }, value;

    (void)state;
    begin(&f);
    big = muc_expr_new_input(f.pool, "big", 0, UINT32_MAX, 1);
    sum = muc_expr_add(f.pool, big, f.m);
    CHECK(muc_expr_get(f.pool, sum)->may_overflow);
    CHECK(!muc_expr_get(f.pool, muc_expr_add(f.pool, f.pos, f.m))->may_overflow);
    CHECK_FAILS(f.ctx, MUC_USAGE, "big + m does not fit",
                muc_expr_eval(f.ctx, f.pool, sum, bindings, &value));
    bindings[1] = 1;
    CHECK_OK(f.ctx, muc_expr_eval(f.ctx, f.pool, sum, bindings, &value));
    CHECK_EQ(value, UINT32_MAX);
    end(&f);
}

static void a_huge_expression_is_refused(void **state)
{
    fixture f;
    muc_expr e;

    (void)state;
    begin(&f);
    e = f.pos;
    for (int i = 0; i < 40; i++)
        e = muc_expr_max(f.pool, muc_expr_add(f.pool, e, f.m), e);
    CHECK_EQ(e, MUC_EXPR_NONE);
    CHECK_FAILS(f.ctx, MUC_UNSUPPORTED, "more than 4096 nodes", muc_expr_status(f.pool));
    end(&f);
}

/* A random tree, kept as written, with a second and naive evaluator. */
enum { TREE_NODES = 24, TREES = 20000 };

typedef struct tree_node {
    int op; /* -1 constant, -2 input */
    uint32_t a, b, c, value;
} tree_node;

static uint64_t seed = 1;

static uint32_t random_below(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % n);
}

static uint32_t random_constant(void)
{
    static const uint32_t likely[] = { 0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 255, 512 };

    return random_below(8) ? likely[random_below(MUC_COUNT(likely))] : random_below(100000);
}

static muc_expr grow_tree(fixture *f, tree_node *tree, muc_expr *built)
{
    uint32_t count = 3 + random_below(TREE_NODES - 3);

    for (uint32_t i = 0; i < count; i++) {
        tree_node *node = &tree[i];

        node->op = i < 2 ? -2 : i == 2 || random_below(4) == 0 ? -1 : 1 + (int)random_below(14);
        node->a = i ? random_below(i) : 0;
        node->b = i ? random_below(i) : 0;
        node->c = i ? random_below(i) : 0;
        if (node->op == -2) {
            node->value = i;
            built[i] = i ? f->m : f->pos;
        } else if (node->op == -1) {
            node->value = random_constant();
            built[i] = muc_expr_const(f->pool, node->value);
        } else if (node->op == MUC_EXPR_CDIV || node->op == MUC_EXPR_DIV ||
                   node->op == MUC_EXPR_MOD || node->op == MUC_EXPR_SHL ||
                   node->op == MUC_EXPR_SHR) {
            bool shift = node->op == MUC_EXPR_SHL || node->op == MUC_EXPR_SHR;

            node->value = shift ? random_below(12) : 1 + random_constant();
            built[i] = muc_expr_apply(f->pool, (muc_expr_op)node->op, built[node->a],
                                      muc_expr_const(f->pool, node->value), MUC_EXPR_NONE);
        } else {
            built[i] =
                muc_expr_apply(f->pool, (muc_expr_op)node->op, built[node->a], built[node->b],
                               node->op == MUC_EXPR_SEL ? built[node->c] : MUC_EXPR_NONE);
        }
    }
    return built[count - 1];
}

/* false: somewhere a value leaves 32 bits */
static bool naive(const tree_node *tree, uint32_t i, const uint32_t *inputs, uint64_t *out)
{
    const tree_node *node = &tree[i];
    uint64_t a = 0, b = node->value, c = 0;
    bool immediate = node->op == MUC_EXPR_CDIV || node->op == MUC_EXPR_DIV ||
                     node->op == MUC_EXPR_MOD || node->op == MUC_EXPR_SHL ||
                     node->op == MUC_EXPR_SHR;

    if (node->op < 0) {
        *out = node->op == -1 ? node->value : inputs[node->value];
        return true;
    }
    if (!naive(tree, node->a, inputs, &a) || (!immediate && !naive(tree, node->b, inputs, &b)) ||
        (node->op == MUC_EXPR_SEL && !naive(tree, node->c, inputs, &c)))
        return false;
    switch ((muc_expr_op)node->op) {
    case MUC_EXPR_ADD:
        *out = a + b;
        break;
    case MUC_EXPR_SUB:
        *out = a >= b ? a - b : 0;
        break;
    case MUC_EXPR_MUL:
        *out = a * b;
        break;
    case MUC_EXPR_CDIV:
        *out = (a + b - 1) / b;
        break;
    case MUC_EXPR_DIV:
        *out = a / b;
        break;
    case MUC_EXPR_MOD:
        *out = a - a / b * b;
        break;
    case MUC_EXPR_MIN:
        *out = a < b ? a : b;
        break;
    case MUC_EXPR_MAX:
        *out = a < b ? b : a;
        break;
    case MUC_EXPR_AND:
        *out = a & b;
        break;
    case MUC_EXPR_EQ:
        *out = a == b;
        break;
    case MUC_EXPR_LT:
        *out = a < b;
        break;
    case MUC_EXPR_SHL:
        *out = a * (UINT64_C(1) << b);
        break;
    case MUC_EXPR_SHR:
        *out = a / (UINT64_C(1) << b);
        break;
    case MUC_EXPR_SEL:
        *out = a ? b : c;
        break;
    case MUC_EXPR_CONST:
    case MUC_EXPR_INPUT:
    case MUC_EXPR_TABLE:
    case MUC_EXPR_SPAN:
        return false;
    }
    return *out <= UINT32_MAX;
}

static void check_tree(fixture *f, const tree_node *tree, uint32_t root, muc_expr e)
{
    const muc_expr_node node = *muc_expr_get(f->pool, e);

    for (unsigned sample = 0; sample < 20; sample++) {
        uint32_t inputs[2] = { random_below(512), 1 + random_below(64) }, value;
        uint64_t expected;

        if (!naive(tree, root, inputs, &expected))
            continue;
        CHECK_OK(f->ctx, muc_expr_eval(f->ctx, f->pool, e, inputs, &value));
        if (value != expected || value < node.lo || value > node.hi ||
            (node.multiple ? value % node.multiple : value) != 0)
            fail_msg("%s at pos %u, m %u: %u, expected %u in %u..%u, multiple of %u", text_of(f, e),
                     inputs[0], inputs[1], value, (unsigned)expected, node.lo, node.hi,
                     node.multiple);
    }
}

static void random_expressions_keep_their_value(void **state)
{
    unsigned kept = 0;

    (void)state;
    for (unsigned t = 0; t < TREES; t++) {
        fixture f;
        tree_node tree[TREE_NODES] = { { 0 } };
        muc_expr built[TREE_NODES] = { 0 }, e;

        begin(&f);
        e = grow_tree(&f, tree, built);
        for (uint32_t i = 0; e != MUC_EXPR_NONE && i < TREE_NODES && built[i]; i++)
            check_tree(&f, tree, i, built[i]);
        /* a constant that does not fit fails the pool, rightly */
        if (e != MUC_EXPR_NONE) {
            kept++;
            if (muc_expr_get(f.pool, e)->size < 500) {
                CHECK_EQ(parsed(&f, text_of(&f, e)), e);
            }
        }
        end(&f);
    }
    CHECK(kept > TREES / 2);
}

static void every_failed_allocation_is_told(void **state)
{
    (void)state;
    for (long k = 0;; k++) {
        muc_context *ctx = muc_context_new(1);
        muc_arena arena = { 0 };
        muc_expr_pool *pool;
        muc_status status;

        muc_alloc_fail_after(k);
        status = muc_expr_pool_new(ctx, &arena, &pool);
        if (status == MUC_OK) {
            muc_expr e = muc_expr_new_input(pool, "x", 0, 1 << 20, 1);

            for (uint32_t i = 0; i < 5000; i++)
                muc_expr_add_const(pool, e, i);
            status = muc_expr_status(pool);
        }
        muc_alloc_fail_after(-1);
        muc_arena_free(&arena);
        CHECK(status == MUC_OK || *muc_error_message(ctx) != '\0');
        muc_context_free(ctx);
        if (status == MUC_OK) {
            CHECK(k > 2);
            break;
        }
        CHECK_EQ(status, MUC_NOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_expressions_are_one_node),
        cmocka_unit_test(simple_forms_are_simplified),
        cmocka_unit_test(text_says_what_depends_on_what),
        cmocka_unit_test(tables_give_entries_and_spans),
        cmocka_unit_test(promises_narrow_and_are_kept),
        cmocka_unit_test(requirements_are_known_or_kept),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(overflow_is_an_error_not_a_wrap),
        cmocka_unit_test(a_huge_expression_is_refused),
        cmocka_unit_test(random_expressions_keep_their_value),
        cmocka_unit_test(every_failed_allocation_is_told),
    };

    return cmocka_run_group_tests_name("expr", tests, NULL, NULL);
}

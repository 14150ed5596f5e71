/* test_ir.c - the templated IR: what is a Placeholder, what resolving gives, what flattening keeps.
 */
#include "uthinker_fixture.h"

#include "targets/uthinker/isa/code_item.h"

/* A template to fill by hand. */
typedef struct bench {
    muc_context *ctx;
    muc_arena arena;
    muc_template template;
    muc_ir_builder ir;
    muc_expr_pool *pool;
    muc_expr pos, m, end;
} bench;

static void bench_open(bench *b)
{
    memset(b, 0, sizeof(*b));
    b->ctx = muc_context_new(1);
    CHECK_OK(b->ctx, muc_expr_pool_new(b->ctx, &b->arena, &b->pool));
    b->pos = muc_expr_new_input(b->pool, "pos", 0, 511, 1);
    b->m = muc_expr_new_input(b->pool, "m", 1, 64, 1);
    b->end = muc_expr_new_input(b->pool, "end", 1, 512, 1);
    muc_expr_new_input(b->pool, "logits", 0, 1, 1);
    b->template = (muc_template){ .name = "BENCH", .pool = b->pool, .min_m = 1, .max_m = 64 };
    b->ir = (muc_ir_builder){ .ctx = b->ctx, .arena = &b->arena, .template = &b->template };
}

static void bench_close(bench *b)
{
    muc_arena_free(&b->arena);
    muc_context_free(b->ctx);
}

static muc_expr num(bench *b, uint32_t value)
{
    return muc_expr_const(b->pool, value);
}

/* an LD of which only off and len matter */
static void add_load(bench *b, muc_expr off, muc_expr len)
{
    muc_instruction load = { .op = MUC_INSN_LD, .stage = "test" };

    for (uint32_t i = 0; i < muc_insn_fields(MUC_INSN_LD); i++)
        load.fields[i].resolve = num(b, 0);
    load.fields[MUC_FIELD_LD_off - MUC_FIELD_LD_addr].resolve = off;
    load.fields[MUC_FIELD_LD_len - MUC_FIELD_LD_addr].resolve = len;
    muc_ir_add(&b->ir, &load);
}

static void what_a_value_depends_on_decides_its_kind(void **state)
{
    bench b;
    muc_expr once, often;

    (void)state;
    bench_open(&b);
    CHECK(muc_expr_is_const(b.pool, num(&b, 7)));
    CHECK(!muc_expr_is_const(b.pool, b.pos));
    CHECK(!muc_expr_is_const(b.pool, muc_expr_add(b.pool, b.pos, b.m)));
    /* depends on an input in writing only */
    CHECK(muc_expr_is_const(b.pool, muc_expr_mul(b.pool, b.pos, num(&b, 0))));
    CHECK(muc_expr_is_const(b.pool, muc_expr_div(b.pool, b.pos, 512)));
    once = muc_ir_for(&b.ir, "once", num(&b, 1));
    often = muc_ir_for(&b.ir, "often", num(&b, 2));
    CHECK(muc_expr_is_const(b.pool, once));
    CHECK(!muc_expr_is_const(b.pool, often));
    bench_close(&b);
}

static void a_template_that_is_not_closed_or_too_deep_is_refused(void **state)
{
    bench b;

    (void)state;
    bench_open(&b);
    muc_ir_for(&b.ir, "a", num(&b, 2));
    CHECK_FAILS(b.ctx, MUC_BUG, "not closed", muc_ir_finish(&b.ir));
    for (uint32_t i = 1; i <= MUR_MAX_NESTING; i++) {
        const char name[] = { 'a', (char)('a' + i), '\0' };

        muc_ir_for(&b.ir, name, num(&b, 2));
    }
    CHECK_FAILS(b.ctx, MUC_BUG, "nested too deep", muc_ir_finish(&b.ir));
    bench_close(&b);
}

/* off and len of the loads issued, in order */
typedef struct loads {
    uint32_t off[64], len[64];
    size_t count;
} loads;

static muc_status take_load(void *arg, const muc_instruction *instruction, const uint32_t *words,
                            uint32_t count)
{
    loads *l = arg;

    (void)instruction;
    CHECK_EQ(count, 4);
    CHECK(l->count < MUC_COUNT(l->off));
    l->off[l->count] = words[2];
    l->len[l->count++] = words[3];
    return MUC_OK;
}

static void resolving_runs_the_loops(void **state)
{
    static const uint32_t off[] = { 100, 0, 100, 101, 1, 100, 101, 102, 2, 9 };
    muc_expr i, k;
    loads l = { 0 };
    bench b;

    (void)state;
    bench_open(&b);
    i = muc_ir_for(&b.ir, "i", muc_expr_min(b.pool, b.m, num(&b, 5)));
    k = muc_ir_for(&b.ir, "k", muc_expr_add(b.pool, i, num(&b, 1)));
    add_load(&b, muc_expr_add(b.pool, k, b.pos), b.end);
    muc_ir_end_for(&b.ir);
    add_load(&b, i, b.m);
    muc_ir_end_for(&b.ir);
    muc_ir_for(&b.ir, "never", muc_expr_sub(b.pool, b.m, num(&b, 3)));
    add_load(&b, num(&b, 77), b.m);
    muc_ir_end_for(&b.ir);
    add_load(&b, num(&b, 9), b.m);
    CHECK_OK(b.ctx, muc_ir_finish(&b.ir));
    CHECK_OK(b.ctx, muc_ir_resolve(b.ctx, &b.template, 100, 3, true, take_load, &l));
    CHECK_EQ(l.count, MUC_COUNT(off));
    for (size_t n = 0; n < MUC_COUNT(off); n++) {
        CHECK_EQ(l.off[n], off[n]);
        CHECK_EQ(l.len[n], off[n] >= 100 ? 103 : 3);
    }
    CHECK_FAILS(b.ctx, MUC_USAGE, "pos",
                muc_ir_resolve(b.ctx, &b.template, 512, 1, true, take_load, &l));
    bench_close(&b);
}

/* ---- flattening ---- */

/* the program of a build with its templates flattened in another way, in the build's arena */
static muc_bytes reflattened(const fixture *f, const muc_flatten_options *options)
{
    muc_flat flat[MUC_UTHINKER_ENTRIES];
    muc_uthinker_entry entries[MUC_UTHINKER_ENTRIES];
    muc_container sections;
    muc_bytes program;

    for (uint32_t i = 0; i < MUC_UTHINKER_ENTRIES; i++) {
        const muc_template *template = &f->build->templates[i];

        CHECK_OK(f->ctx,
                 muc_uthinker_flatten(f->ctx, &f->build->arena, template, options, &flat[i]));
        entries[i] = (muc_uthinker_entry){ i + 1, template->min_m, template->max_m, &flat[i] };
    }
    CHECK_OK(f->ctx, muc_uthinker_emit(f->ctx, &f->build->arena, &f->build->model,
                                       &f->build->layout, entries, &no_tokens, &sections));
    CHECK_OK(f->ctx, muc_container_write(f->ctx, &f->build->arena, &sections, &program));
    return program;
}

static void every_choice_of_passes_resolves_to_the_same_program(void **state)
{
    mur_program usual, other;
    mur_verifier verifier;
    fixture_words a = { 0 }, b = { 0 };
    fixture f;

    (void)state;
    fixture_stories(&f, &muc_uthinker_defaults);
    CHECK_EQ(mur_open(&usual, f.build->program.data, f.build->program.size), MUR_OK);
    CHECK_EQ(mur_verify(&usual, &verifier), MUR_OK);
    for (uint32_t off = 1; off < 16; off++) {
        const muc_flatten_options options = { off & 1, off >> 1 & 1, off >> 2 & 1, off >> 3 & 1 };
        muc_bytes program = reflattened(&f, &options);

        CHECK(program.size > f.build->program.size || options.no_fusion || off == 8);
        CHECK_EQ(mur_open(&other, program.data, program.size), MUR_OK);
        CHECK_EQ(mur_verify(&other, &verifier), MUR_OK);
        for (uint32_t pos = 0; pos < 512; pos += 37)
            for (uint32_t m = 1; m <= 64 && pos + m <= 512; m += 21)
                for (uint32_t entry = m == 1 ? 0 : 1; entry < 2; entry++) {
                    fixture_interpret(&usual, entry, pos, m, &a);
                    fixture_interpret(&other, entry, pos, m, &b);
                    CHECK_EQ(a.count, b.count);
                    assert_memory_equal(a.words, b.words, 4 * a.count);
                }
    }
    free(a.words);
    free(b.words);
    fixture_free(&f);
}

/* more values at the top than there are slots: they are evaluated where they are used */
static void hoisting_gives_way_when_slots_run_out(void **state)
{
    const muc_flatten_options options = { 0 };
    muc_flat flat;
    bench b;

    (void)state;
    for (uint32_t loads_in_loop = 40; loads_in_loop <= 120; loads_in_loop += 40) {
        bench_open(&b);
        muc_ir_for(&b.ir, "i", b.m);
        for (uint32_t i = 0; i < loads_in_loop; i++)
            add_load(&b, muc_expr_mul(b.pool, b.pos, num(&b, 2 + i)), b.m);
        muc_ir_end_for(&b.ir);
        CHECK_OK(b.ctx, muc_ir_finish(&b.ir));
        CHECK_OK(b.ctx, muc_uthinker_flatten(b.ctx, &b.arena, &b.template, &options, &flat));
        CHECK_EQ(flat.evals, loads_in_loop);
        CHECK(flat.slots <= MUR_SLOTS);
        /* hoisted: the For comes after the EVALs */
        CHECK_EQ((flat.words[0] & 15) == MUR_FOR, loads_in_loop > 60);
        bench_close(&b);
    }
}

static void a_value_too_large_for_its_field_is_refused_by_name(void **state)
{
    const muc_flatten_options options = { 0 };
    muc_flat flat;
    bench b;

    (void)state;
    bench_open(&b);
    add_load(&b, b.pos, muc_expr_mul(b.pool, b.pos, num(&b, 65536)));
    CHECK_OK(b.ctx, muc_ir_finish(&b.ir));
    CHECK_FAILS(b.ctx, MUC_UNSUPPORTED,
                "stage test: LD.len is up to 33488896, the field holds 16777215",
                muc_uthinker_flatten(b.ctx, &b.arena, &b.template, &options, &flat));
    bench_close(&b);
}

/* numbers where the device takes a slot: the left of a difference, both arms of a choice */
static void numbers_reach_operands_that_must_be_slots(void **state)
{
    const muc_flatten_options options = { 0 };
    muc_expr choice;
    muc_flat flat;
    bench b;

    (void)state;
    bench_open(&b);
    choice = muc_expr_sel(b.pool, muc_expr_lt(b.pool, b.pos, b.m), num(&b, 0), num(&b, 40));
    add_load(&b, muc_expr_sub(b.pool, num(&b, 40), b.pos), choice);
    CHECK_OK(b.ctx, muc_ir_finish(&b.ir));
    CHECK_OK(b.ctx, muc_uthinker_flatten(b.ctx, &b.arena, &b.template, &options, &flat));
    /* 0, 40, 40 - pos, pos < m, the choice */
    CHECK_EQ(flat.evals, 5);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_value_depends_on_decides_its_kind),
        cmocka_unit_test(a_template_that_is_not_closed_or_too_deep_is_refused),
        cmocka_unit_test(resolving_runs_the_loops),
        cmocka_unit_test(every_choice_of_passes_resolves_to_the_same_program),
        cmocka_unit_test(hoisting_gives_way_when_slots_run_out),
        cmocka_unit_test(a_value_too_large_for_its_field_is_refused_by_name),
        cmocka_unit_test(numbers_reach_operands_that_must_be_slots),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

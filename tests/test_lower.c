/* test_lower.c - from a model to a program that the runtime accepts and resolves as the template.
 */
#include "uthinker_fixture.h"

/* A board that executes nothing and keeps what it is given. */
typedef struct recorder {
    uint32_t *words;
    size_t count, capacity;
    uint32_t issued[MUR_ENGINES];
} recorder;

static mur_status record(recorder *r, enum mur_engine engine, const uint32_t *words)
{
    uint32_t op;

    CHECK(muc_insn_find_opcode(words[0] & MUC_WORD0_OPCODE, &op));
    if (r->count + MUR_MAX_WORDS > r->capacity) {
        r->capacity = 2 * r->capacity + 1024;
        r->words = realloc(r->words, 4 * r->capacity);
        assert_non_null(r->words);
    }
    memcpy(r->words + r->count, words, 4 * muc_insn_get(op)->words);
    r->count += muc_insn_get(op)->words;
    r->issued[engine]++;
    return MUR_OK;
}

static mur_status record_dma(void *arg, const uint32_t *words)
{
    return record(arg, MUR_DMA, words);
}

static mur_status record_acc(void *arg, const uint32_t *words)
{
    return record(arg, MUR_ACC, words);
}

static mur_status record_cpu(void *arg, const uint32_t *words)
{
    return record(arg, MUR_CPU, words);
}

static uint32_t completed(void *arg, enum mur_engine engine)
{
    return ((recorder *)arg)->issued[engine];
}

/* the words of an entry for (pos, m), by the runtime's interpreter; they belong to a static buffer
 */
static const recorder *interpret(const mur_program *program, uint32_t entry, uint32_t pos,
                                 uint32_t m)
{
    static recorder r;
    const mur_hal hal = { &r, record_dma, record_acc, record_cpu, completed };
    mur_run_state run;

    r.count = 0;
    CHECK_EQ(mur_start(&run, program, &hal, entry, pos, m), MUR_OK);
    CHECK_EQ(mur_run(&run), MUR_OK);
    return &r;
}

static void open_verified(const muc_uthinker_build *build, mur_program *program)
{
    static const char *const reasons[] = {
#define MUR_REASON(name, operand, sentence) #name ": " sentence,
#include "mur_reasons.def"
    };
    mur_verifier verifier;
    const mur_verdict *verdict = &verifier.verdict;
    enum mur_section section;

    CHECK_EQ(mur_open(program, build->program.data, build->program.size), MUR_OK);
    CHECK_EQ(mur_check(program, &section), MUR_OK);
    if (mur_verify(program, &verifier) != MUR_OK)
        fail_msg("entry %u, word %u: %s (operand %u, value %u, limit %u)", verdict->entry,
                 verdict->word, reasons[verdict->reason], verdict->operand, verdict->value,
                 verdict->limit);
}

typedef struct expectation {
    const recorder *got;
    size_t at;
} expectation;

static muc_status expect(void *arg, const muc_instruction *instruction, const uint32_t *words,
                         uint32_t count)
{
    expectation *e = arg;

    if (e->at + count > e->got->count || memcmp(e->got->words + e->at, words, 4 * count) != 0)
        fail_msg("word %zu of %zu, stage %s", e->at, e->got->count, instruction->stage);
    e->at += count;
    return MUC_OK;
}

/* the interpreter on the emitted words against the template's own expressions */
static void check_resolved(const fixture *f, const mur_program *program, uint32_t entry,
                           uint32_t pos, uint32_t m)
{
    expectation e = { interpret(program, entry, pos, m), 0 };

    CHECK_OK(f->ctx, muc_ir_resolve(f->ctx, &f->build->templates[entry], pos, m, expect, &e));
    CHECK_EQ(e.at, e.got->count);
}

static void check_program(const fixture *f)
{
    const muc_uthinker_layout *y = &f->build->layout;
    uint32_t context = y->options.context, rows = y->options.rows;
    mur_program program;

    open_verified(f->build, &program);
    for (uint32_t pos = 0; pos < context; pos += 1 + pos % 7)
        check_resolved(f, &program, 0, pos, 1);
    for (uint32_t m = 1; m <= rows; m += 1 + m % 5)
        for (uint32_t pos = 0; pos + m <= context; pos += 13)
            check_resolved(f, &program, 1, pos, m);
}

static void the_verifier_accepts_stories260k_and_the_interpreter_resolves_it(void **state)
{
    fixture f;

    (void)state;
    fixture_stories(&f, &muc_uthinker_defaults);
    check_program(&f);
    fixture_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_verifier_accepts_stories260k_and_the_interpreter_resolves_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

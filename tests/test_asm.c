/* test_asm.c - program files as text and back. */
#include "uthinker_fixture.h"

#include "targets/uthinker/asm/uthinker_asm.h"
#include "xorshift.h"

static muc_bytes assembled(muc_context *ctx, muc_arena *arena, const char *text, size_t size)
{
    const muc_bytes source = { (const uint8_t *)text, size, "text" };
    muc_bytes program;

    CHECK_OK(ctx, muc_uthinker_assemble(ctx, arena, source, &program));
    return program;
}

static void check_round_trip(muc_context *ctx, muc_bytes program)
{
    muc_text text = { 0 };
    muc_arena arena = { 0 };
    muc_bytes again;

    CHECK_OK(ctx, muc_uthinker_disassemble(ctx, program, &text));
    again = assembled(ctx, &arena, text.data, text.size);
    CHECK_EQ(again.size, program.size);
    assert_memory_equal(again.data, program.data, program.size);
    muc_text_free(&text);
    muc_arena_free(&arena);
}

static void stories260k_comes_back_byte_for_byte(void **state)
{
    static const uint8_t other[] = "any bytes will do";
    muc_uthinker_options options = muc_uthinker_defaults;
    fixture f;

    (void)state;
    for (uint32_t recompute = 0; recompute < 2; recompute++) {
        options.recompute = recompute;
        fixture_stories(&f, &options);
        check_round_trip(f.ctx, f.build->program);
        set_section(f.ctx, f.build, MUR_SECTION_TOKN, other, sizeof(other));
        set_section(f.ctx, f.build, MUR_SECTION_GOLD, other, 12);
        check_round_trip(f.ctx, f.build->program);
        set_section(f.ctx, f.build, MUR_SECTION_STAG, other, 12);
        check_round_trip(f.ctx, f.build->program); /* of version 1.1 */
        set_section(f.ctx, f.build, MUR_SECTION_DEBG, NULL, 0);
        check_round_trip(f.ctx, f.build->program);
        fixture_free(&f);
    }
}

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
    return random_next(&random_state) / 2 % n;
}

/* a section with a few bytes changed */
static void check_damaged_section(fixture *f, enum mur_section section)
{
    const uint8_t *whole = f->build->sections.section[section].data;
    size_t size = f->build->sections.section[section].size;
    uint8_t *copy = malloc(size);

    assert_non_null(copy);
    for (uint32_t round = 0; round < 300; round++) {
        memcpy(copy, whole, size);
        for (uint32_t i = 0; i <= random_below(6); i++)
            copy[random_below((uint32_t)size)] = (uint8_t)random_below(256);
        set_section(f->ctx, f->build, section, copy, size);
        check_round_trip(f->ctx, f->build->program);
    }
    set_section(f->ctx, f->build, section, whole, size);
    free(copy);
}

static void damaged_code_and_names_come_back_byte_for_byte(void **state)
{
    fixture f;

    (void)state;
    fixture_stories(&f, &muc_uthinker_defaults);
    /* small, so that many rounds are quick */
    f.build->sections.section[MUR_SECTION_WGTS].size = 64;
    f.build->sections.section[MUR_SECTION_PARM].size = 64;
    check_damaged_section(&f, MUR_SECTION_CODE);
    check_damaged_section(&f, MUR_SECTION_DEBG);
    fixture_free(&f);
}

/* the smallest program that the container's reader takes */
static const char frame[] =
    "utp 3.0\n"
    "section MACH\n"
    "isa = 1\ni0 = 128\ni1 = 128\nw0 = 128\nw1 = 128\ngb = 128\nrows = 1\n"
    "section META\n"
    "vocabulary = 1\ncontext = 1\nrows = 1\nlayers = 1\nwidth = 1\nheads = 1\nkv_heads = 1\n"
    "head_width = 1\nffn_width = 1\ntied = 1\nrecompute = 0\nterms_x = 1\nterms_q = 1\n"
    "terms_k = 1\nterms_p = 1\nterms_v = 1\nterms_o = 1\nterms_f = 1\nterms_h = 1\nterms_l = 1\n"
    "kv_bytes = 0\nio_bytes = 64\nembedded = 4\nlogits = 8\nembedding = 0\nbos = 0\neos = 0\n"
    "eos2 = 0\neos3 = 0\nffn_parts = 1\no_parts = 1\n"
    "section ENTR\n"
    "entry kind=1 start=0 words=1 min_m=1 max_m=1\n"
    "section TABL\n"
    "table 1 2 3\n"
    "values 4\n"
    "table 5 0x7\n"
    "section WGTS\n"
    "hex 0001ff\n"
    "section PARM\n"
    "zero 5\n"
    "section CODE\n";

/* what the statement becomes must be these words, worked out by hand from the SPEC */
static void check_words(const char *statement, const uint32_t *words, size_t count)
{
    muc_context *ctx = muc_context_new(1);
    muc_arena arena = { 0 };
    muc_text text = { 0 };
    muc_container sections;
    muc_bytes program;

    muc_text_add(&text, "%s%s\nend\n", frame, statement);
    program = assembled(ctx, &arena, text.data, text.size);
    CHECK_OK(ctx, muc_container_open(ctx, program, &sections, NULL));
    CHECK_EQ(sections.section[MUR_SECTION_CODE].size, 4 * (count + 1));
    assert_memory_equal(sections.section[MUR_SECTION_CODE].data, words, 4 * count);
    check_round_trip(ctx, program);
    muc_text_free(&text);
    muc_arena_free(&arena);
    muc_context_free(ctx);
}

#define CHECK_WORDS(statement, ...) \
    check_words(statement, (const uint32_t[]){ __VA_ARGS__ }, \
                MUC_COUNT(((const uint32_t[]){ __VA_ARGS__ })))

static void statements_become_the_words_that_the_spec_says(void **state)
{
    (void)state;
    /* ADD = 1, dst 5, a 0, immediate */
    CHECK_WORDS("s5 = ADD pos, 64", 2 | 1 << 4 | 5 << 10 | 0 << 16 | 1 << 28, 64);
    CHECK_WORDS("P1:s5 = SUB end, m", 2 | 2 << 4 | 5 << 10 | 2 << 16 | 1 << 22, 0);
    CHECK_WORDS("s6 = SEL pos, m, s2", 2 | 14 << 4 | 6 << 10 | 0 << 16 | 1 << 22, 2);
    CHECK_WORDS("a:s6, b:s7 = TABLE 1, m\ns8 = MUL a, b", 2 | 15 << 4 | 6 << 10 | 1 << 16, 1,
                2 | 3 << 4 | 8 << 10 | 6 << 16 | 7 << 22, 0);
    CHECK_WORDS("for l:s9 < 5\nnext", 3 | 9 << 4 | 1 << 16, 5, 0, 4);
    CHECK_WORDS("stream l:s9 < 5\nnext", 3 | 9 << 4 | 1 << 16 | 1 << 17, 5, 0, 4);
    CHECK_WORDS("for l:s9 < m most 3 ; a comment\ns3 = ADD l, 1\nnext", 3 | 9 << 4 | 1 << 10, 3, 2,
                2 | 1 << 4 | 3 << 10 | 9 << 16 | 1 << 28, 1, 4);
    /* LD: 4 words, opcode 1, sig 3 + 1, wait 1 << 7; off is patched from slot 0: word 2, 32 bits */
    CHECK_WORDS("LD wait=7 sig=3 addr=24576 buf=W1 region=WGTS off=pos len=608",
                1 | 1 << 4 | 4 << 8, 0x01 | 4 << 8 | 1u << 23, 24576 | 3 << 20 | 0 << 23, 0, 608,
                0 | 2 << 8 | 0 << 12 | 32 << 17);
    CHECK_WORDS(
        "NORM saddr=1 rows=2 gaddr=3 dst=I1 terms=2 daddr=4 k=5 spitch=6 epsilon=0x3727c5ac",
        1 | 6 << 8, 0x20, 1 | 2 << 20, 3 | 1 << 20 | 2 << 23, 4, 5 | 6 << 16, 0x3727c5ac);
    CHECK_WORDS("word 0x10", 0x10);
}

static void check_refused(const char *statement, const char *message)
{
    muc_context *ctx = muc_context_new(1);
    muc_arena arena = { 0 };
    muc_text text = { 0 };
    muc_bytes program;

    muc_text_add(&text, "%s%s\n", frame, statement);
    CHECK_FAILS(ctx, MUC_MALFORMED, message,
                muc_uthinker_assemble(ctx, &arena,
                                      (muc_bytes){ (const uint8_t *)text.data, text.size, "text" },
                                      &program));
    muc_text_free(&text);
    muc_arena_free(&arena);
    muc_context_free(ctx);
}

static void mistakes_are_refused_with_line_and_column(void **state)
{
    (void)state;
    check_refused("s5 = ADD P1, 64", "line 53, column 10: no slot has this label here");
    check_refused("s5 = ADDD pos, 64", "column 6: no such operator");
    check_refused("s64 = ADD pos, 64", "column 1: expected a slot, s0 to s63");
    check_refused("m:s5 = ADD pos, 64", "not that of an input");
    check_refused("s5 = ADD pos", "column 13: expected ','");
    check_refused("s5 = ADD pos, 4294967296", "column 15: the number does not fit in 32 bits");
    check_refused("s5 = ADD pos, 1 2", "column 17: the statement should end here");
    check_refused("s5, s6 = ADD pos, 1", "TABLE writes a slot and the one after it");
    check_refused("s5 = TABLE 1, pos", "TABLE writes a slot and the one after it");
    check_refused("next", "column 1: no 'for' is open");
    check_refused("for l:s5 < 2", "line 53, column 1: this 'for' has no 'next'");
    check_refused("for l:s5 < pos", "expected 'most'");
    check_refused("stream l:s5 < pos", "expected 'most'");
    check_refused("stream l:s5 < 2", "line 53, column 1: this 'for' has no 'next'");
    check_refused("LD addr=0 buf=I0 region=KV off=0", "the field 'len' is missing");
    check_refused("LD addr=0 addr=0", "column 11: this field is there twice");
    check_refused("LD rows=0", "column 4: the instruction has no such field");
    check_refused("LD wait=16", "tokens are 0 to 15");
    check_refused("LD addr=1048576 buf=I0 region=KV off=0 len=0", "a value does not fit its field");
    check_refused("word 0x", "a hexadecimal digit is missing");
    check_refused("section CODE", "line 53, column 9: this section is there twice");
    check_refused("section DATA", "no such section");
    check_refused("section GOLD\nhex 0", "line 54, column 6: a byte has two digits");
    check_refused("section GOLD\nzero 4097", "at most 4096 zero bytes");
    check_refused("section GOLD\ngold logits_crc=1", "expected 'token'");
    check_refused("section DEBG\nname 1 \"x", "the name does not end on its line");
    check_refused("section DEBG\ngold token=1", "no such statement in this section");
    check_refused("", "ENTR is not that of a program"); /* an entry of one word, but no code */
}

static void any_prefix_of_a_text_is_refused_or_read(void **state)
{
    muc_context *ctx = muc_context_new(1);
    size_t size = sizeof(frame) - 1;

    (void)state;
    for (size_t i = 0; i <= size; i++) {
        char *copy = malloc(i ? i : 1);
        muc_arena arena = { 0 };
        muc_bytes program;

        assert_non_null(copy);
        memcpy(copy, frame, i);
        CHECK_EQ(muc_uthinker_assemble(ctx, &arena, (muc_bytes){ (const uint8_t *)copy, i, "text" },
                                       &program),
                 MUC_MALFORMED);
        muc_error_clear(ctx);
        muc_arena_free(&arena);
        free(copy);
    }
    muc_context_free(ctx);
}

static void a_placeholder_shows_as_its_label(void **state)
{
    muc_text text = { 0 };
    fixture f;

    (void)state;
    fixture_stories(&f, &muc_uthinker_defaults);
    CHECK_OK(f.ctx, muc_uthinker_disassemble(f.ctx, f.build->program, &text));
    assert_non_null(strstr(text.data, "for l:"));
    assert_non_null(strstr(text.data, "off=P"));
    assert_non_null(strstr(text.data, "; LM head"));
    muc_text_free(&text);
    set_section(f.ctx, f.build, MUR_SECTION_DEBG, NULL, 0);
    CHECK_OK(f.ctx, muc_uthinker_disassemble(f.ctx, f.build->program, &text));
    assert_null(strstr(text.data, "off=P"));
    assert_non_null(strstr(text.data, "off=s"));
    muc_text_free(&text);
    fixture_free(&f);
}

static muc_status count(void *arg, const muc_instruction *instruction, const uint32_t *words,
                        uint32_t word_count)
{
    (void)instruction, (void)words, (void)word_count;
    ++*(size_t *)arg;
    return MUC_OK;
}

static void a_resolved_listing_has_a_line_for_each_instruction(void **state)
{
    muc_text text = { 0 };
    size_t lines = 0, instructions = 0;
    fixture f;

    (void)state;
    fixture_stories(&f, &muc_uthinker_defaults);
    CHECK_OK(f.ctx, muc_uthinker_list_resolved(f.ctx, f.build->program, MUC_ENTRY_PREFILL, 100, 30,
                                               &text));
    CHECK_OK(f.ctx,
             muc_ir_resolve(f.ctx, &f.build->templates[1], 100, 30, true, count, &instructions));
    for (const char *p = text.data; *p; p++)
        lines += *p == '\n';
    CHECK_EQ(lines, instructions);

    assert_null(strstr(text.data, "rows=P"));
    muc_text_free(&text);
    CHECK_FAILS(f.ctx, MUC_USAGE, "no DECODE of 2 tokens from position 0",
                muc_uthinker_list_resolved(f.ctx, f.build->program, MUC_ENTRY_DECODE, 0, 2, &text));
    CHECK_FAILS(
        f.ctx, MUC_USAGE, "the context has 512 positions",
        muc_uthinker_list_resolved(f.ctx, f.build->program, MUC_ENTRY_DECODE, 512, 1, &text));
    muc_text_free(&text);
    fixture_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stories260k_comes_back_byte_for_byte),
        cmocka_unit_test(damaged_code_and_names_come_back_byte_for_byte),
        cmocka_unit_test(statements_become_the_words_that_the_spec_says),
        cmocka_unit_test(mistakes_are_refused_with_line_and_column),
        cmocka_unit_test(any_prefix_of_a_text_is_refused_or_read),
        cmocka_unit_test(a_placeholder_shows_as_its_label),
        cmocka_unit_test(a_resolved_listing_has_a_line_for_each_instruction),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

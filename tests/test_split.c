/* test_split.c - pre-tokenizer patterns: by hand, and against a regular expression engine. */
#ifdef HAVE_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#endif

#include "base/visible_name.h"
#include "mur_split.h"
#include "text/pieces.h"
#include "text/split_machine.h"

#include "context_fixture.h"

enum { MAX_CUTS = 512 };

typedef struct cutter {
    muc_arena arena;
    uint32_t *words;
    mur_splitter splitter;
} cutter;

static cutter cutter_of(const muc_split_rule *rules, size_t count)
{
    cutter c = { .words = NULL };
    size_t words;

    CHECK_OK(ctx, muc_split_compile(ctx, "test", rules, count, &c.arena, &c.words, &words));
    CHECK(mur_split_open(&c.splitter, c.words, words));
    return c;
}

/* as GGUF names it */
static cutter named(const char *name, muc_vocabulary *v)
{
    bool adds_bos;

    *v = (muc_vocabulary){ .source = "test" };
    CHECK(muc_vocabulary_set_gguf_rules(v, name, &adds_bos));
    return cutter_of(v->rules, v->rule_count);
}

/* Where each segment ends. */
static size_t split_all(const cutter *c, const char *text, size_t size, size_t *ends)
{
    mur_cuts cuts = { { 0 } };
    size_t count = 0;

    for (size_t at = 0; at < size; at = ends[count++]) {
        CHECK(count < MAX_CUTS);
        ends[count] = mur_split_next(&c->splitter, &cuts, (const uint8_t *)text, size, at);
        CHECK(ends[count] > at && ends[count] <= size);
    }
    return count;
}

/* Segments of the text are given with bars between them. */
static void check_cuts(const cutter *c, const char *barred)
{
    char text[256], found[512];
    size_t ends[MAX_CUTS], size = 0, n = 0, start = 0;
    size_t count;

    for (const char *p = barred; *p; p++)
        if (*p != '|')
            text[size++] = *p;
    count = split_all(c, text, size, ends);
    for (size_t i = 0; i < count; i++) {
        n += (size_t)sprintf(found + n, "%s%.*s", i ? "|" : "", (int)(ends[i] - start),
                             text + start);
        start = ends[i];
    }
    assert_string_equal(found, barred);
}

static void check_split(const char *name, const char *barred)
{
    muc_vocabulary v;
    cutter c = named(name, &v);

    check_cuts(&c, barred);
    muc_arena_free(&c.arena);
}

static void gpt2_splits_as_published(void **state)
{
    (void)state;
    check_split("gpt-2", "Hello| world|!|  | This| is| 2024|,| isn|'t| it|?");
    check_split("gpt-2", "we|'ll| we|'|LL| they|'ve|\n|\n|tab|\t|x|  ");
    check_split("gpt-2", "naïve| Ünïcödé| 中文|,|½| ٣٤|a|1|b");
}

static void gpt2_with_digits_takes_numbers_one_by_one(void **state)
{
    (void)state;
    check_split("smollm", "Hello| world|!| |1|2|3");
    /* the spaces before a number are the end of a text of their own */
    check_split("smollm", "a|  |5|  | b");
}

static void llama3_splits_as_published(void **state)
{
    (void)state;
    check_split("llama-bpe", "Hello| world|!\n\n|We|'LL| have| |123|456|7| (|really|)\n");
    check_split("llama-bpe", "x| \n| | y|\tz|!?| \n\n");
    check_split("llama-bpe", "it|'ſ|t|/path|_under|_score");
}

static void qwen2_takes_numbers_one_by_one(void **state)
{
    (void)state;
    check_split("qwen2", "in| |2|0|2|4|,| I|'M| here");
}

static void a_capital_after_a_small_letter_ends_a_word_of_tekken(void **state)
{
    (void)state;
    check_split("tekken", "Camel|Case| x|YZ| HTTPserver|/paths|'s|1|2");
    check_split("gpt-4o", "it's|'LL| |123|4| don't|Worry've");
}

/* a stage cuts within the pieces of the one before, up to their ends */
static void stages_cut_one_within_the_other(void **state)
{
    (void)state;
    check_split("deepseek-llm", "a|  |\n| | b|,!| ;|中文|12| x|  ");
    check_split("falcon", "a|,;|b| |123|45|$|x");
    check_split("qwen35", "a\u0301b| e\u0301|1|2");
}

static void matches_join_their_neighbours(void **state)
{
    static const struct {
        muc_split_rule rule;
        const char *barred;
    } rows[] = {
        { { " ", true, MUC_SPLIT_ISOLATED }, "a| | |b| |c" },
        { { " ", true, MUC_SPLIT_CONTIGUOUS }, "a|  |b| |c" },
        { { " ", true, MUC_SPLIT_WITH_PREVIOUS }, "a | |b |c" },
        { { " ", true, MUC_SPLIT_WITH_NEXT }, "a| | b| c" },
        { { "\\s|\\S+", false, MUC_SPLIT_MATCHES_ONLY }, "a| | |b| |c" },
        { { "b c", true, MUC_SPLIT_ISOLATED }, "a  |b c" },
    };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(rows); i++) {
        cutter c = cutter_of(&rows[i].rule, 1);

        check_cuts(&c, rows[i].barred);
        muc_arena_free(&c.arena);
    }
}

static void what_the_tables_cannot_say_is_refused_by_name(void **state)
{
    static const struct {
        muc_split_rule rule;
        const char *fragment;
    } rows[] = {
        { { "a*", false, 0 }, "matches no character at all" },
        { { "(?<=a)b", false, 0 }, "a group of an unknown kind" },
        { { "a(?=bc)", false, 0 }, "a look ahead at more than one character" },
        { { "\\d{1,3}(?=(?:\\d{3})*\\b)", false, 0 }, "an escaped letter" },
        { { "^a", false, 0 }, "an anchor" },
        { { "(a)\\1", false, 0 }, "an escaped letter or digit" },
        { { "\\p{Greek}+", false, 0 }, "neither a general category nor Han" },
        { { "[a[b]]", false, 0 }, "a set within a set" },
        { { "[a&&b]", false, 0 }, "a set within a set" },
        { { "[a&&[b]c]", false, 0 }, "a member behind a set within a set" },
        { { "[a", false, 0 }, "an end where a character is expected" },
        { { "(a", false, 0 }, "a group that is not closed" },
        { { "a)", false, 0 }, "closes no group" },
        { { "(?i:\u00e9)", false, 0 }, "beyond ASCII" },
        { { "\\s++\\sa", false, 0 }, "possessive" },
        { { "((((a{99}){99}){99}){99})", false, 0 }, "too many repetitions" },
        { { "(?:(?:){999}){999}a{2,1}", false, 0 }, "no quantifier" },
        { { "(?:a|b)*a(?:a|b){12}", false, 0 }, "too many states" },
        { { "ab", true, MUC_SPLIT_WITH_NEXT }, "more than one character where" },
        { { "a", true, MUC_SPLIT_MATCHES_ONLY }, "removes text" },
    };
    muc_arena arena = { 0 };
    uint32_t *words;
    size_t count;

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(rows); i++)
        CHECK_FAILS(ctx, MUC_UNSUPPORTED, rows[i].fragment,
                    muc_split_compile(ctx, "test", &rows[i].rule, 1, &arena, &words, &count));
    muc_arena_free(&arena);
}

/* each word of the tables changed in a few ways */
static void damaged_tables_are_refused_or_stay_within_bounds(void **state)
{
    static const char text[] = "Hello 12\xc3\xa9 \n x";
    muc_vocabulary v;
    cutter c = named("smollm", &v);
    size_t ends[MAX_CUTS], count = 0;

    (void)state;
    CHECK_OK(ctx,
             muc_split_compile(ctx, "test", v.rules, v.rule_count, &c.arena, &c.words, &count));
    for (size_t size = 1; size < count; size++)
        CHECK(!mur_split_open(&c.splitter, c.words, size));
    for (size_t i = 0; i < count; i++)
        for (uint32_t change = 1; change != 0; change <<= 3) {
            c.words[i] ^= change;
            if (mur_split_open(&c.splitter, c.words, count))
                split_all(&c, text, sizeof(text) - 1, ends);
            c.words[i] ^= change;
        }
    muc_arena_free(&c.arena);
}

static void bytes_that_are_no_utf8_are_cut_somewhere(void **state)
{
    muc_vocabulary v;
    cutter c = named("tekken", &v);
    size_t ends[MAX_CUTS];

    (void)state;
    for (int a = 0; a < 256; a++)
        for (int b = 0; b < 256; b++) {
            const char text[3] = { (char)a, (char)b, (char)0xa0 };

            for (size_t size = 1; size <= 3; size++)
                split_all(&c, text, size, ends);
        }
    muc_arena_free(&c.arena);
}

static void han_runs_are_pieces(void **state)
{
    static const muc_split_rule rule = { .pattern = "\\p{Han}+" };
    cutter c = cutter_of(&rule, 1);

    (void)state;
    check_cuts(&c, "abc |中文|かな|漢|!");
    check_cuts(&c, "한국|々〇|ー");
    muc_arena_free(&c.arena);
}

#ifdef HAVE_PCRE2
static pcre2_code *compile(const char *regex)
{
    int error;
    PCRE2_SIZE offset;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED,
                                     PCRE2_UTF | PCRE2_UCP | PCRE2_ALT_BSUX | PCRE2_DOLLAR_ENDONLY,
                                     &error, &offset, NULL);

    CHECK(code != NULL);
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    return code;
}

static bool is_in(const muc_character_set *set, uint32_t c)
{
    for (size_t i = 0; i < set->count; i++)
        if (c >= set->ranges[i].first && c <= set->ranges[i].last)
            return true;
    return false;
}

/* Cuts text[start..end-1] at the matches of codes[0] as if it stood alone, then each piece at those
 * of the next. */
static size_t cut(pcre2_code *const *codes, size_t stages, const char *text, size_t start,
                  size_t end, size_t *ends)
{
    pcre2_match_data *data;
    size_t count = 0;

    if (stages == 0 || start == end) {
        ends[0] = end;
        return start < end;
    }
    data = pcre2_match_data_create_from_pattern(codes[0], NULL);
    for (size_t at = start; at < end;) {
        int found =
            pcre2_match(codes[0], (PCRE2_SPTR)text + start, end - start, at - start, 0, data, NULL);
        const PCRE2_SIZE *span = pcre2_get_ovector_pointer(data);
        size_t from = found > 0 ? start + span[0] : end, to = found > 0 ? start + span[1] : end;

        count += cut(codes + 1, stages - 1, text, at, from, ends + count);
        count += cut(codes + 1, stages - 1, text, from, to, ends + count);
        at = to;
    }
    pcre2_match_data_free(data);
    return count;
}

/* PCRE2 may know a later Unicode: of characters that ours has not, nothing is said */
static void han_has_the_characters_that_pcre2_gives_it(void **state)
{
    pcre2_code *code = compile("\\p{sc:Han}"); /* not its extensions */
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(code, NULL);
    muc_character_set han = { 0 }, unassigned = { 0 };
    muc_arena arena = { 0 };
    uint32_t judged = 0, found = 0;
    bool known;

    (void)state;
    CHECK_OK(ctx, muc_set_add_script(ctx, &arena, &han, "Han", 3, &known));
    CHECK_OK(ctx, muc_set_add_category(ctx, &arena, &unassigned, "Cn", 2, &known));
    for (uint32_t c = 1; c <= MUC_LAST_CHARACTER; c++) {
        char text[4];
        size_t size;
        bool ours;

        if ((c >= 0xd800 && c < 0xe000) || is_in(&unassigned, c))
            continue;
        size = muc_utf8_write(c, text);
        ours = is_in(&han, c);
        judged++;
        found += ours;
        if (ours != (pcre2_match(code, (PCRE2_SPTR)text, size, 0, 0, data, NULL) > 0))
            fail_msg("U+%04X is %sin \\p{Han}", c, ours ? "" : "not ");
    }
    CHECK(judged > 140000 && found > 94000);
    pcre2_match_data_free(data);
    pcre2_code_free(code);
    muc_arena_free(&arena);
}

/* Texts from characters that the patterns tell apart, and any others now and then. */
static size_t random_text(char *text)
{
    static const char *const parts[] = {
        "a",  "B",  "'",  "s",  "T",      "re",     "VE",     "ll",       "d",
        "m",  "1",  "22", "²",  "Ⅷ",      "٣",      " ",      " ",        "  ",
        "\t", "\n", "\r", "\v", "\u00a0", "\u3000", "\u2028", "\xc2\x85", "\u0301",
        "é",  "中", "!",  ".",  "_",      "🦙",   "ſ",      "'",        "\u1680",
    };
    static uint64_t state = 1;
    size_t size = 0, count;

    state = state * 6364136223846793005u + 1;
    count = 1 + (state >> 33) % 12;
    for (size_t i = 0; i < count; i++) {
        uint32_t pick, code;

        state = state * 6364136223846793005u + 1;
        pick = (uint32_t)(state >> 33);
        if (pick % 16 != 0) {
            size += (size_t)sprintf(text + size, "%s", parts[pick / 16 % MUC_COUNT(parts)]);
            continue;
        }
        /* any character of three bytes, but for surrogates and U+180E, where PCRE2 differs: it
         * takes that one for white space, Unicode no longer does */
        code = 0x800 + pick / 16 % 0xf800;
        if ((code >= 0xd800 && code < 0xe000) || code == 0x180e)
            continue;
        text[size++] = (char)(0xe0 | code >> 12);
        text[size++] = (char)(0x80 | (code >> 6 & 0x3f));
        text[size++] = (char)(0x80 | (code & 0x3f));
    }
    return size;
}

/* as Kimi K2 cuts; PCRE2 has no sets within sets, but can look ahead */
static void sets_are_met_by_others(void **state)
{
#define WORDS(upper, lower) \
    "\\p{Han}+|[^\\r\\n\\p{L}\\p{N}]?" upper "*" lower "+|[^\\r\\n\\p{L}\\p{N}]?" upper "+" lower \
    "*|\\s+"
#define UPPER "\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}"
#define LOWER "\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}"
#define NOT_HAN "(?!\\p{sc:Han})"
    static const muc_split_rule rule = { .pattern = WORDS("[" UPPER "&&[^\\p{Han}]]",
                                                          "[" LOWER "&&[^\\p{Han}]]") };
    static const char theirs[] =
        "\\p{sc:Han}+|[^\\r\\n\\p{L}\\p{N}]?(?:" NOT_HAN "[" UPPER "])*(?:" NOT_HAN "[" LOWER
        "])+|[^\\r\\n\\p{L}\\p{N}]?(?:" NOT_HAN "[" UPPER "])+(?:" NOT_HAN "[" LOWER "])*|\\s+";
    pcre2_code *code = compile(theirs);
    cutter c = cutter_of(&rule, 1);

    (void)state;
    check_cuts(&c, "Hello| Wor|中文|かなx|漢| ");
    for (int i = 0; i < 20000; i++) {
        char text[256];
        size_t ours[MAX_CUTS], expected[MAX_CUTS], size = random_text(text);
        size_t count = split_all(&c, text, size, ours);

        if (count != cut(&code, 1, text, 0, size, expected) ||
            memcmp(ours, expected, count * sizeof(*ours)) != 0)
            fail_msg("'%.*s' is cut in other places", (int)size, text);
    }
    pcre2_code_free(code);
    muc_arena_free(&c.arena);
}

static void random_texts_split_as_pcre2_splits_them(void **state)
{
    static const char *const names[] = {
#define MUC_GGUF_PRE(name, whole, bos, patterns) name,
#include "text/split_patterns.def"
#undef MUC_GGUF_PRE
    };

    (void)state;
    for (size_t row = 0; row < MUC_COUNT(names); row++) {
        pcre2_code *codes[MUR_SPLIT_STAGES];
        muc_vocabulary v;
        cutter c = named(names[row], &v);

        for (size_t i = 0; i < v.rule_count; i++)
            codes[i] = compile(v.rules[i].pattern);
        for (int i = 0; i < 10000; i++) {
            char text[256];
            size_t ours[MAX_CUTS], theirs[MAX_CUTS], size = random_text(text);
            size_t count = split_all(&c, text, size, ours);
            size_t expected = cut(codes, v.rule_count, text, 0, size, theirs);

            if (count != expected || memcmp(ours, theirs, count * sizeof(*ours)) != 0)
                fail_msg("%s cuts '%.*s' in other places", names[row], (int)size, text);
        }
        for (size_t i = 0; i < v.rule_count; i++)
            pcre2_code_free(codes[i]);
        muc_arena_free(&c.arena);
    }
}
#endif

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt2_splits_as_published),
        cmocka_unit_test(gpt2_with_digits_takes_numbers_one_by_one),
        cmocka_unit_test(llama3_splits_as_published),
        cmocka_unit_test(qwen2_takes_numbers_one_by_one),
        cmocka_unit_test(a_capital_after_a_small_letter_ends_a_word_of_tekken),
        cmocka_unit_test(stages_cut_one_within_the_other),
        cmocka_unit_test(matches_join_their_neighbours),
        cmocka_unit_test(what_the_tables_cannot_say_is_refused_by_name),
        cmocka_unit_test(damaged_tables_are_refused_or_stay_within_bounds),
        cmocka_unit_test(bytes_that_are_no_utf8_are_cut_somewhere),
        cmocka_unit_test(han_runs_are_pieces),
#ifdef HAVE_PCRE2
        cmocka_unit_test(han_has_the_characters_that_pcre2_gives_it),
        cmocka_unit_test(sets_are_met_by_others),
        cmocka_unit_test(random_texts_split_as_pcre2_splits_them),
#endif
    };

    return cmocka_run_group_tests(tests, new_context, free_context);
}

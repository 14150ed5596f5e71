/* test_split.c - pre-tokenizer patterns: by hand, and against a regular expression engine. */
#ifdef HAVE_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#endif

#include "base/base.h"
#include "check.h"
#include "mur_tokenizer.h"

enum { MAX_CUTS = 512 };

/* Where each segment ends. */
static size_t split_all(mur_pattern pattern, const char *text, size_t size, size_t *ends)
{
    size_t count = 0;

    for (size_t at = 0; at < size; count++) {
        size_t step = mur_split_unicode(pattern, (const uint8_t *)text + at, size - at);

        CHECK(step > 0 && step <= size - at && count < MAX_CUTS);
        at += step;
        ends[count] = at;
    }
    return count;
}

/* Segments of the text are given with bars between them. */
static void check_split(mur_pattern pattern, const char *barred)
{
    char text[256], found[512];
    size_t ends[MAX_CUTS], size = 0, n = 0, start = 0;
    size_t count;

    for (const char *p = barred; *p; p++)
        if (*p != '|')
            text[size++] = *p;
    count = split_all(pattern, text, size, ends);
    for (size_t i = 0; i < count; i++) {
        n += (size_t)sprintf(found + n, "%s%.*s", i ? "|" : "", (int)(ends[i] - start),
                             text + start);
        start = ends[i];
    }
    assert_string_equal(found, barred);
}

static void gpt2_splits_as_published(void **state)
{
    (void)state;
    check_split(MUR_PATTERN_GPT2, "Hello| world|!|  | This| is| 2024|,| isn|'t| it|?");
    check_split(MUR_PATTERN_GPT2, "we|'ll| we|'|LL| they|'ve|\n|\n|tab|\t|x|  ");
    check_split(MUR_PATTERN_GPT2, "naïve| Ünïcödé| 中文|,|½| ٣٤|a|1|b");
}

static void gpt2_with_digits_takes_numbers_one_by_one(void **state)
{
    (void)state;
    check_split(MUR_PATTERN_GPT2_DIGITS, "Hello| world|!| |1|2|3");
    /* the spaces before a number are the end of a text of their own */
    check_split(MUR_PATTERN_GPT2_DIGITS, "a|  |5|  | b");
}

static void llama3_splits_as_published(void **state)
{
    (void)state;
    check_split(MUR_PATTERN_LLAMA3, "Hello| world|!\n\n|We|'LL| have| |123|456|7| (|really|)\n");
    check_split(MUR_PATTERN_LLAMA3, "x| \n| | y|\tz|!?| \n\n");
    check_split(MUR_PATTERN_LLAMA3, "it|'ſ|t|/path|_under|_score");
}

static void qwen2_takes_numbers_one_by_one(void **state)
{
    (void)state;
    check_split(MUR_PATTERN_QWEN2, "in| |2|0|2|4|,| I|'M| here");
}

static void bytes_that_are_no_utf8_are_cut_somewhere(void **state)
{
    size_t ends[MAX_CUTS];

    (void)state;
    for (int pattern = MUR_PATTERN_GPT2; pattern < MUR_PATTERN_COUNT; pattern++)
        for (int a = 0; a < 256; a++)
            for (int b = 0; b < 256; b++) {
                const char text[3] = { (char)a, (char)b, (char)0xa0 };

                for (size_t size = 1; size <= 3; size++)
                    split_all((mur_pattern)pattern, text, size, ends);
            }
}

#ifdef HAVE_PCRE2
static pcre2_code *compile(const char *regex)
{
    int error;
    PCRE2_SIZE offset;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED,
                                     PCRE2_UTF | PCRE2_UCP, &error, &offset, NULL);

    CHECK(code != NULL);
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    return code;
}

/* All matches in text[start..size-1] as if it stood alone; they leave nothing between them. */
static size_t match_all(const pcre2_code *code, const char *text, size_t start, size_t size,
                        size_t *ends)
{
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(code, NULL);
    size_t count = 0;

    for (size_t at = 0; at < size - start;) {
        int found = pcre2_match(code, (PCRE2_SPTR)text + start, size - start, at, 0, data, NULL);
        const PCRE2_SIZE *span = pcre2_get_ovector_pointer(data);

        CHECK(found > 0 && span[0] == at && span[1] > at);
        at = span[1];
        ends[count++] = start + at;
    }
    pcre2_match_data_free(data);
    return count;
}

/* Single numbers stand alone; the expression cuts what lies between them. */
static size_t match_between_numbers(const pcre2_code *code, const pcre2_code *number,
                                    const char *text, size_t size, size_t *ends)
{
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(number, NULL);
    size_t count = 0, at = 0;

    while (at < size) {
        int found = pcre2_match(number, (PCRE2_SPTR)text, size, at, 0, data, NULL);
        const PCRE2_SIZE *span = pcre2_get_ovector_pointer(data);
        size_t stop = found > 0 ? span[0] : size;

        if (stop > at)
            count += match_all(code, text, at, stop, ends + count);
        if (found > 0)
            ends[count++] = span[1];
        at = found > 0 ? span[1] : size;
    }
    pcre2_match_data_free(data);
    return count;
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

static void random_texts_split_as_pcre2_splits_them(void **state)
{
    static const struct {
        mur_pattern pattern;
        const char *regex;
        int digits;
    } rows[] = {
#define MUC_REGEX(pattern, regex) { MUR_PATTERN_##pattern, regex, 0 },
#define MUC_GGUF_PRE(pattern, name, whole, bos)
#include "text/split_patterns.def"
#undef MUC_REGEX
#undef MUC_GGUF_PRE
        { MUR_PATTERN_GPT2_DIGITS,
          "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+", 1 },
    };
    pcre2_code *number = compile("\\p{N}");

    (void)state;
    for (size_t row = 0; row < MUC_COUNT(rows); row++) {
        pcre2_code *code = compile(rows[row].regex);

        for (int i = 0; i < 60000; i++) {
            char text[256];
            size_t ours[MAX_CUTS], theirs[MAX_CUTS], size = random_text(text);
            size_t count = split_all(rows[row].pattern, text, size, ours);
            size_t expected = rows[row].digits
                                  ? match_between_numbers(code, number, text, size, theirs)
                                  : match_all(code, text, 0, size, theirs);

            if (count != expected || memcmp(ours, theirs, count * sizeof(*ours)) != 0)
                fail_msg("pattern %d cuts '%.*s' in other places", (int)rows[row].pattern,
                         (int)size, text);
        }
        pcre2_code_free(code);
    }
    pcre2_code_free(number);
}
#endif

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt2_splits_as_published),
        cmocka_unit_test(gpt2_with_digits_takes_numbers_one_by_one),
        cmocka_unit_test(llama3_splits_as_published),
        cmocka_unit_test(qwen2_takes_numbers_one_by_one),
        cmocka_unit_test(bytes_that_are_no_utf8_are_cut_somewhere),
#ifdef HAVE_PCRE2
        cmocka_unit_test(random_texts_split_as_pcre2_splits_them),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_unigram.c - tokenizers that take the likeliest pieces: by hand, and against another search
 * that looks at the whole of every way in binary64. */
#include <math.h>

#include "vocabulary_files.h"
#include "mur_unigram.h"

enum { MOST_TEXT = 64 };

/* model type unigram: trainer messages without and with byte_fallback */
#define NO_BYTES "\x18\x01", 2
#define BYTES "\x18\x01\x98\x02\x01", 5

/* ---- tokenizer.json ---- */

typedef struct scored {
    const char *text;
    const char *score; /* as the file has it */
} scored;

/* <unk> is piece 0; then, if bytes, 256 pieces; then these */
static muc_text make_json(const scored *pieces, size_t count, bool bytes, const char *unknown)
{
    muc_text file = { 0 };

    muc_text_add(&file,
                 "{\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":"
                 "\"\xe2\x96\x81\",\"prepend_scheme\":\"always\",\"split\":false},\"decoder\":{"
                 "\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\"},\"post_processor\":null,"
                 "\"added_tokens\":[{\"id\":0,\"content\":\"<unk>\",\"special\":true}],\"model\":{"
                 "\"type\":\"Unigram\",\"unk_id\":%s,\"byte_fallback\":%s,\"vocab\":[[\"<unk>\","
                 "0.0]",
                 unknown, bytes ? "true" : "false");
    for (unsigned b = 0; bytes && b < 256; b++)
        muc_text_add(&file, ",[\"<0x%02X>\",0.0]", b);
    for (size_t i = 0; i < count; i++)
        muc_text_add(&file, ",[\"%s\", %s]", pieces[i].text, pieces[i].score);
    muc_text_add(&file, "]}}");
    return file;
}

static loaded load_json(const scored *pieces, size_t count, bool bytes)
{
    muc_text file = make_json(pieces, count, bytes, "0");
    loaded t = load_bytes(ctx, "u.json", file.data, file.size);

    muc_text_free(&file);
    return t;
}

#define MARK "\xe2\x96\x81"

static const scored greetings_json[] = {
    { MARK, "-3.5" }, { MARK "he", "-4" }, { "h", "-5.25" },  { "e", "-5" },  { "l", "-4.5" },
    { "ll", "-6e0" }, { "o", "-4.75" },    { "llo", "-8.1" }, { "lo", "-7" }, { "\xc3\xa9", "-9" },
};

static void the_likeliest_pieces_are_taken(void **state)
{
    loaded t = load_json(greetings_json, MUC_COUNT(greetings_json), false);

    (void)state;
    /* -4 - 8.1; " he l lo" is -15.5 */
    CHECK_IDS(ctx, &t, "hello", 0, 2, 8);
    CHECK_IDS(ctx, &t, " hello", 0, 2, 8); /* it begins with a space already */
    CHECK_IDS(ctx, &t, MARK "hello", 0, 2, 8);
    /* " h e" is -13.75, " he" is one piece; "lol" has no "ol" */
    CHECK_IDS(ctx, &t, "he lol", 0, 2, 1, 9, 5);
    CHECK_IDS(ctx, &t, "h\xc3\xa9", 0, 1, 3, 10);
    CHECK_IDS(ctx, &t, "he<unk>o", MUR_ENCODE_SPECIAL, 2, 0, 1, 7);
    check_round_trip(ctx, &t, "hello lol", 9);
    unload(&t);
}

static void what_has_no_piece_is_one_unknown_or_its_bytes(void **state)
{
    loaded plain = load_json(greetings_json, MUC_COUNT(greetings_json), false);
    loaded bytes = load_json(greetings_json, MUC_COUNT(greetings_json), true);

    (void)state;
    CHECK_IDS(ctx, &plain, "hexy\xe4\xb8\xadlox", 0, 2, 0, 9, 0);
    CHECK_IDS(ctx, &plain, "\xff\xff", 0, 1, 0);
    CHECK_IDS(ctx, &bytes, "hex\xe4\xb8\xad", 0, 258, 1 + 'x', 1 + 0xe4, 1 + 0xb8, 1 + 0xad);
    CHECK_IDS(ctx, &bytes, "o\xc3", 0, 257, 263, 1 + 0xc3);
    unload(&plain);
    unload(&bytes);
}

/* the same pieces in both files; SentencePiece's scores are binary32 */
static void sentencepiece_files_say_the_same(void **state)
{
    muc_text model = make_sentencepiece(&greetings, BYTES, KEEP_SPACES);
    muc_text without = make_sentencepiece(&greetings, NO_BYTES, KEEP_SPACES);
    loaded t = load_bytes(ctx, "u.model", model.data, model.size);
    loaded u = load_bytes(ctx, "v.model", without.data, without.size);

    (void)state;
    /* " hello" costs 7, " h" "e" "ll" "o" 28 */
    CHECK_IDS(ctx, &t, "hello", 0, FIRST_PIECE + 6);
    CHECK_IDS(ctx, &t, "h\xc3\xa9w", 0, FIRST_PIECE + 8, FIRST_PIECE + 15, FIRST_PIECE + 13);
    CHECK_IDS(ctx, &t, "hz", 0, FIRST_PIECE, FIRST_BYTE + 'z');
    CHECK_IDS(ctx, &u, "hz", 0, FIRST_PIECE, FIRST_BYTE + 'z');
    unload(&t);
    unload(&u);
    muc_text_free(&model);
    muc_text_free(&without);
}

/* ---- another search ---- */

typedef struct way {
    double score;
    uint32_t ids[MOST_TEXT];
    size_t count;
    bool reached;
} way;

/* From the end of the text's first `end` bytes backward: the best way that ends with each piece,
 * longest first. */
static void best_way(const loaded *t, const char *text, size_t end, way *ways)
{
    double lowest = 0;
    size_t first = end;

    do /* of the last character */
        first--;
    while (first > 0 && (text[first] & 0xc0) == 0x80);
    ways[end].reached = false;
    for (uint32_t i = 1; i < t->vocabulary.count; i++)
        lowest = fmin(lowest, t->vocabulary.pieces[i].score);
    for (size_t begin = 0; begin < end; begin++) {
        uint32_t id = 0;
        double score;

        if ((text[begin] & 0xc0) == 0x80)
            continue;
        for (uint32_t i = 1; i < t->vocabulary.count; i++) {
            const uint8_t *piece;

            if (mur_tokenizer_piece(&t->tokenizer, i, &piece) == end - begin &&
                memcmp(piece, text + begin, end - begin) == 0)
                id = i;
        }
        if (id == 0 && begin != first)
            continue;
        score = id ? t->vocabulary.pieces[id].score : lowest - 10;
        score = (begin ? ways[begin].score : 0) + score;
        if (ways[end].reached && !(score > ways[end].score))
            continue;
        ways[end] = (way){ .score = score, .count = 0, .reached = true };
        if (begin > 0) {
            memcpy(ways[end].ids, ways[begin].ids, sizeof(ways[end].ids));
            ways[end].count = ways[begin].count;
        }
        if (id != 0 || ways[end].count == 0 || ways[end].ids[ways[end].count - 1] != 0)
            ways[end].ids[ways[end].count++] = id;
    }
}

static size_t other_ids(const loaded *t, const char *text, uint32_t *ids)
{
    static way ways[MOST_TEXT + 1];
    char plain[MOST_TEXT + 1] = " ";
    size_t size;

    if (text[0] == ' ')
        plain[0] = '\0';
    strcat(plain, text);
    size = strlen(plain);
    for (size_t end = 1; end <= size; end++)
        if (end == size || (plain[end] & 0xc0) != 0x80)
            best_way(t, plain, end, ways);
    memcpy(ids, ways[size].ids, ways[size].count * sizeof(*ids));
    return ways[size].count;
}

/* pieces of few letters, many of them as likely as others, so that the order of additions counts */
static void random_vocabularies_agree_with_another_search(void **state)
{
    static const char *const letters[] = { "a", "b", "c", "\xc3\xa9", " ", "\xe4\xb8\xad" };
    uint32_t ids[MOST_TEXT], texts = 0, unknown = 0;
    char names[40][32], scores[40][32];

    (void)state;
    for (unsigned round = 0; round < 60; round++) {
        scored pieces[40];
        size_t count = 0;
        loaded t;

        for (unsigned i = 0; i < 40; i++) {
            char name[32] = "", shown[32];
            bool is_new = true;

            for (unsigned n = 1 + random_below(4); n > 0; n--)
                strcat(name, letters[random_below(4 + (round % 3 > 0))]);
            marked(name, shown);
            for (size_t j = 0; j < count; j++)
                is_new = is_new && strcmp(names[j], shown) != 0;
            if (!is_new)
                continue;
            strcpy(names[count], shown);
            snprintf(scores[count], sizeof(scores[count]), "-%u.%u",
                     random_below(round % 2 ? 3 : 30), random_below(10));
            pieces[count] = (scored){ names[count], scores[count] };
            count++;
        }
        t = load_json(pieces, count, false);
        for (unsigned i = 0; i < 200; i++, texts++) {
            char text[MOST_TEXT] = "";
            size_t expected;

            for (unsigned n = 1 + random_below(14); n > 0; n--)
                strcat(text, letters[random_below(6)]);
            expected = other_ids(&t, text, ids);
            for (size_t j = 0; j < expected; j++)
                unknown += ids[j] == 0;
            check_ids(ctx, &t, text, strlen(text), 0, ids, expected);
        }
        unload(&t);
    }
    CHECK_EQ(texts, 12000);
    CHECK(unknown > 5000);
}

/* one after the other, as doubles: scores of any size, of which sums round */
static void sums_round_as_binary64_does(void **state)
{
    char scores[3][40];
    scored pieces[3] = { { "a", scores[0] }, { "aa", scores[1] }, { MARK "a", scores[2] } };
    uint32_t ids[MOST_TEXT];
    char text[MOST_TEXT];

    (void)state;
    for (unsigned round = 0; round < 3000; round++) {
        /* two of the one are about one of the other: in either order, which is less is rounding */
        double a = ldexp(1 + random_below(1 << 30) * 0x1p-30, (int)random_below(30) - 12);
        double b = 2 * a * (1 + ((int)random_below(9) - 4) * 0x1p-52);
        size_t size = 1 + random_below(40);
        loaded t;

        snprintf(scores[0], sizeof(scores[0]), "-%.17g", a);
        snprintf(scores[1], sizeof(scores[1]), "-%.17g", b);
        snprintf(scores[2], sizeof(scores[2]), "-%.17g", random_below(2) ? a / 3 : 0.0);
        t = load_json(pieces, MUC_COUNT(pieces), false);
        memset(text, 'a', size);
        text[size] = '\0';
        check_ids(ctx, &t, text, size, 0, ids, other_ids(&t, text, ids));
        unload(&t);
    }
}

/* ---- what is refused ---- */

static void check_json_refused(const scored *piece, const char *unknown, muc_status status,
                               const char *message)
{
    muc_text file = make_json(piece, 1, false, unknown);
    muc_bytes bytes = { (const uint8_t *)file.data, file.size, "u.json" };
    loaded t = { .bytes = 0 };
    muc_status found = muc_vocabulary_read(ctx, bytes, 0, &t.arena, &t.vocabulary);

    if (found == MUC_OK)
        found = muc_tokenizer_compile(ctx, &t.vocabulary, &t.arena, &t.form, &t.bytes);
    CHECK_FAILS(ctx, status, message, found);
    unload(&t);
    muc_text_free(&file);
}

static void bad_scores_and_pieces_are_refused_by_name(void **state)
{
    (void)state;
    check_json_refused(&(scored){ "a", "0.5" }, "0", MUC_UNSUPPORTED,
                       "piece 1, 'a', has score 0.5");
    check_json_refused(&(scored){ "a", "-1e7" }, "0", MUC_UNSUPPORTED, "has score -1e+07");
    check_json_refused(&(scored){ "a", "null" }, "0", MUC_MALFORMED, "a number expected");
    check_json_refused(&(scored){ "a", "-1e999" }, "0", MUC_MALFORMED, "a number expected");
    check_json_refused(&(scored){ "a", "-1,2" }, "0", MUC_MALFORMED, "expected");
    check_json_refused(&(scored){ "<unk>", "-1" }, "7", MUC_MALFORMED,
                       "\"unk_id\" is not one of 2 pieces");
}

static void a_form_is_opened_by_what_can_run_it(void **state)
{
    loaded t = load_json(greetings_json, MUC_COUNT(greetings_json), true);
    mur_tokenizer opened;

    (void)state;
    CHECK_EQ(mur_tokenizer_open(&opened, t.form, t.bytes, NULL), MUR_E_UNSUPPORTED);
    CHECK_EQ(mur_unigram_open(&opened, t.form, t.bytes, NULL), MUR_OK);
    for (size_t size = 0; size < t.bytes; size += 4)
        CHECK(mur_unigram_open(&opened, t.form, size, NULL) != MUR_OK);
    unload(&t);
}

static void damaged_forms_stay_within_bounds(void **state)
{
    static const char text[] = "hello h\xc3\xa9l\xe4\xb8\xad llo";
    loaded t = load_json(greetings_json, MUC_COUNT(greetings_json), false);

    (void)state;
    check_damaged_forms(&t, mur_unigram_open, text, MUR_ENCODE_BOS | MUR_ENCODE_SPECIAL);
    unload(&t);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, new_context, free_context)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(the_likeliest_pieces_are_taken),
        TEST(what_has_no_piece_is_one_unknown_or_its_bytes),
        TEST(sentencepiece_files_say_the_same),
        TEST(random_vocabularies_agree_with_another_search),
        TEST(sums_round_as_binary64_does),
        TEST(bad_scores_and_pieces_are_refused_by_name),
        TEST(a_form_is_opened_by_what_can_run_it),
        TEST(damaged_forms_stay_within_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

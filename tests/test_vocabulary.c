/* test_vocabulary.c - readers of tokenizers and the compiler, on vocabularies made here.
 *
 * The judge of ids is a tokenizer below that compares strings and tries every pair at every step.
 */
#include "vocabulary_files.h"

static void three_kinds_of_files_compile_to_the_same_bytes(void **state)
{
    muc_text files[4] = { make_llama2c(&greetings),
                          make_sentencepiece(&greetings, BPE_TRAINER, KEEP_SPACES),
                          make_huggingface(&greetings, false), make_huggingface(&greetings, true) };
    static const char *const names[4] = { "a.bin", "a.model", "a.json", "b.json" };
    loaded t[4];

    (void)state;
    for (int i = 0; i < 4; i++) {
        t[i] = load_bytes(ctx, names[i], files[i].data, files[i].size);
        CHECK_EQ(t[i].bytes, t[0].bytes);
        assert_memory_equal(t[i].form, t[0].form, t[0].bytes);
    }
    for (int i = 0; i < 4; i++) {
        unload(&t[i]);
        muc_text_free(&files[i]);
    }
}

static void small_texts_have_the_ids_worked_out_by_hand(void **state)
{
    muc_text file = make_llama2c(&greetings);
    loaded t = load_bytes(ctx, "a.bin", file.data, file.size);

    (void)state;
#define P(index) (FIRST_PIECE + (index))
    CHECK_IDS(ctx, &t, "hello", 0, P(6));
    CHECK_IDS(ctx, &t, "hello", MUR_ENCODE_BOS, 1, P(6));
    /* two spaces: the dummy one and one of the text; "  " loses to " h" */
    CHECK_IDS(ctx, &t, " hello", 0, P(8), P(6));
    CHECK_IDS(ctx, &t, " ", 0, P(7));
    /* U+2581 in the text is a space */
    CHECK_IDS(ctx, &t, "\xe2\x96\x81", 0, P(7));
    CHECK_IDS(ctx, &t, "h\xc3\xa9?", 0, P(8), P(15), FIRST_BYTE + '?');
    /* half a character, and no character at all, become bytes */
    CHECK_IDS(ctx, &t, "\xc3o\xff", 0, P(8), FIRST_BYTE + 0xc3, P(12), FIRST_BYTE + 0xff);
    CHECK_IDS(ctx, &t, "</s>hello", MUR_ENCODE_SPECIAL, 2, P(6));
#undef P
    unload(&t);
    muc_text_free(&file);
}

/* ---- the naive tokenizer ---- */

typedef struct symbol {
    const char *text;
    size_t size;
} symbol;

/* text has its dummy space. Tries all pairs, merges the best, until there is none. */
static size_t naive_encode(const small_vocabulary *v, const char *text, size_t size, uint32_t *ids)
{
    symbol s[MAX_SYMBOLS];
    size_t n = 0, count = 0;

    for (size_t at = 0; at < size; at += s[n++].size)
        s[n] = (symbol){ text + at, (uint8_t)text[at] >= 0xc0 ? 2 : 1 };
    for (;;) {
        size_t best = SIZE_MAX, best_piece = 0;

        for (size_t i = 0; i + 1 < n; i++) {
            size_t piece = find_text(v, s[i].text, s[i].size + s[i + 1].size);

            if (piece != SIZE_MAX && find_text(v, s[i].text, s[i].size) != SIZE_MAX &&
                find_text(v, s[i + 1].text, s[i + 1].size) != SIZE_MAX &&
                (best == SIZE_MAX || v->score[piece] > v->score[best_piece])) {
                best = i;
                best_piece = piece;
            }
        }
        if (best == SIZE_MAX)
            break;
        s[best].size += s[best + 1].size;
        n--;
        memmove(s + best + 1, s + best + 2, (n - best - 1) * sizeof(*s));
    }
    for (size_t i = 0; i < n; i++) {
        size_t piece = find_text(v, s[i].text, s[i].size);

        if (piece != SIZE_MAX)
            ids[count++] = FIRST_PIECE + (uint32_t)piece;
        for (size_t j = 0; piece == SIZE_MAX && j < s[i].size; j++)
            ids[count++] = FIRST_BYTE + (uint8_t)s[i].text[j];
    }
    return count;
}

static const char *const letters[] = { " ", "a", "b", "c", "\xc3\xa9", "x" };

/* Random pieces over the first five letters; x has none. Scores may be equal. words: spaces only at
 * the head of a piece, so that text may be cut before a run of them. */
static void random_vocabulary(small_vocabulary *v, bool words, bool ties)
{
    memset(v, 0, sizeof(*v));
    for (v->count = 0; v->count < 5; v->count++)
        strcpy(v->text[v->count], letters[v->count]);
    for (int tries = 0; tries < 200 && v->count < 40; tries++) {
        char text[16] = "";
        uint32_t length = 2 + random_below(4);

        for (uint32_t i = 0; i < length; i++) {
            bool within_word = words && i > 0 && text[strlen(text) - 1] != ' ';

            strcat(text, letters[within_word ? 1 + random_below(4) : random_below(5)]);
        }
        if (find_text(v, text, strlen(text)) == SIZE_MAX)
            strcpy(v->text[v->count++], text);
    }
    for (size_t i = 0; i < v->count; i++)
        v->score[i] = ties ? -(float)random_below(4) : -(float)((i * 17 + 5) % 41);
}

/* Some spaces are typed as U+2581, which is the same to the tokenizer. */
static void check_random_texts(const small_vocabulary *v, const loaded *t)
{
    for (int i = 0; i < 100; i++) {
        char text[MAX_SYMBOLS] = " ", typed[MAX_SYMBOLS] = "";
        uint32_t ids[2 * MAX_SYMBOLS], length = 1 + random_below(60);
        size_t count;

        for (uint32_t j = 0; j < length; j++) {
            const char *letter = letters[random_below(3) ? random_below(6) : 0];
            bool mark = *letter == ' ' && random_below(6) == 0;

            strcat(text, letter);
            strcat(typed, mark ? "\xe2\x96\x81" : letter);
        }
        count = naive_encode(v, text, strlen(text), ids);
        check_ids(ctx, t, typed, strlen(typed), 0, ids, count);
        check_round_trip(ctx, t, text + 1, strlen(text + 1));
    }
}

static void random_vocabularies_agree_with_the_naive_tokenizer(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) {
        small_vocabulary v;
        muc_text file;
        loaded t;

        random_vocabulary(&v, i % 2 == 0, i % 4 < 2);
        file = make_llama2c(&v);
        t = load_bytes(ctx, "random.bin", file.data, file.size);
        CHECK(t.tokenizer.header->split_words > 0 || i % 2 == 1);
        check_random_texts(&v, &t);
        unload(&t);
        muc_text_free(&file);
    }
}

/* ---- byte-level ---- */

static void byte_level_merges_only_what_is_listed(void **state)
{
    muc_text file =
        make_byte_level(GPT2_CUTS, "", ",\"ab\":256,\"bc\":257,\"abc\":258,\"\\u0120a\":259",
                        "\"a b\",\"b c\",\"ab c\",\"\\u0120 a\"");
    loaded t = load_bytes(ctx, "b.json", file.data, file.size);

    (void)state;
    CHECK_EQ(t.tokenizer.header->eos, 300);
    CHECK_EQ(t.tokenizer.header->bos, MUR_NO_TOKEN);
    /* "a bc" is not listed, so abc is reached through ab alone */
    CHECK_IDS(ctx, &t, "abcbc", MUR_ENCODE_BOS, 258, 257);
    CHECK_IDS(ctx, &t, "bc abc", 0, 257, ' ', 258);
    CHECK_IDS(ctx, &t, "x aa", 0, 'x', 259, 'a');
    /* the piece of two spaces is found in any text, the control piece on demand */
    CHECK_IDS(ctx, &t, "x  ab", 0, 'x', 301, 256);
    CHECK_IDS(ctx, &t, "ab<|endoftext|>ab", MUR_ENCODE_SPECIAL, 256, 300, 256);
    CHECK_IDS(ctx, &t, "\xff\x80", 0, 0xff, 0x80);
    unload(&t);
    muc_text_free(&file);
}

/* Newer files of Llama 2: a space is put only before what begins with none. */
static void metaspace_marks_spaces_and_puts_one_where_it_is_missing(void **state)
{
    static const char from[] = "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[";
    static const char to[] =
        "{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\","
        "\"prepend_scheme\":\"first\",\"split\":false},\"normalizer\":{\"type\":\"Sequence\","
        "\"normalizers\":[],\"was\":[";
    muc_text file = make_huggingface(&greetings, true), changed = { 0 };
    loaded t;

    (void)state;
    assert_memory_equal(file.data, from, sizeof(from) - 1);
    muc_text_add(&changed, "%s%s", to, file.data + sizeof(from) - 1);
    t = load_bytes(ctx, "m.json", changed.data, changed.size);
#define P(index) (FIRST_PIECE + (index))
    CHECK_IDS(ctx, &t, "hello", 0, P(6));
    CHECK_IDS(ctx, &t, " hello", 0, P(6));
    CHECK_IDS(ctx, &t, "\xe2\x96\x81hello", 0, P(6));
    CHECK_IDS(ctx, &t, "hello</s>hello", MUR_ENCODE_SPECIAL, P(6), 2, P(5));
#undef P
    unload(&t);
    muc_text_free(&changed);
    muc_text_free(&file);
}

/* as Phi-3's end of a turn and RoBERTa's mask */
static void special_pieces_take_the_white_space_beside_them(void **state)
{
    muc_text file = make_byte_level(GPT2_CUTS, "", "", "");
    static const char from[] = "\"special\":true},{\"id\":301,\"content\":\"  \",";
    static const char to[] = "\"rstrip\":true},{\"id\":301,\"lstrip\":true,\"content\":\"<m>\",";
    char *at = memmem(file.data, file.size, from, sizeof(from) - 1);
    muc_text changed = { 0 };
    loaded t;

    (void)state;
    CHECK(at != NULL);
    muc_text_add(&changed, "%.*s%s%s", (int)(at - file.data), file.data, to, at + sizeof(from) - 1);
    t = load_bytes(ctx, "b.json", changed.data, changed.size);
    CHECK_IDS(ctx, &t, "a \t<m> b", 0, 'a', 301, ' ', 'b');
    CHECK_IDS(ctx, &t, "a\xe2\x80\x83\xc2\xa0<m>", 0, 'a', 301);
    CHECK_IDS(ctx, &t, " <m>", 0, 301);
    CHECK_IDS(ctx, &t, "a <|endoftext|>\n\xe3\x80\x80 b", MUR_ENCODE_SPECIAL, 'a', ' ', 300, 'b');
    CHECK_IDS(ctx, &t, "<|endoftext|> ", MUR_ENCODE_SPECIAL, 300);
    unload(&t);
    muc_text_free(&changed);
    muc_text_free(&file);
}

/* Bytes that no text has are often left out, and those of rare control characters. */
static void bytes_without_a_piece_give_the_unknown_piece_or_nothing(void **state)
{
    static const char *const more[] = { "", "\"unk_token\":\"<|endoftext|>\"," };
    static const uint32_t expected[][4] = { { 'a', 0xff, 'b', '!' }, { 'a', 0xff, 300, 'b' } };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(more); i++) {
        muc_text file = make_byte_level(GPT2_CUTS, more[i], "", "");
        char *at = memmem(file.data, file.size, "\"\\u0103\":3", 10);
        loaded t;

        CHECK(at != NULL);
        memcpy(at, "\"\\u4e00\"", 8); /* a piece that no text has, in the place of byte 3 */
        t = load_bytes(ctx, "b.json", file.data, file.size);
        check_ids(ctx, &t, i == 0 ? "a\xff\003b!" : "a\xff\003b", i == 0 ? 5 : 4, 0, expected[i],
                  4);
        unload(&t);
        muc_text_free(&file);
    }
}

/* as Qwen's file asks for it; the standard's own examples */
static void the_normal_form_is_made_where_the_file_asks_for_it(void **state)
{
    static const char none[] = "{\"normalizer\":null", nfc[] = "{\"normalizer\":{\"type\":\"NFC\"}";
    muc_text plain = make_byte_level(GPT2_CUTS, "", ",\"ab\":256", "\"a b\""), file = { 0 };
    mur_tokenizer opened;
    loaded t;

    (void)state;
    muc_text_add(&file, "%s%s", nfc, plain.data + sizeof(none) - 1);
    t = load_bytes(ctx, "nfc.json", file.data, file.size);
    CHECK_IDS(ctx, &t, "e\xcc\x81", 0, 0xc3, 0xa9);
    CHECK_IDS(ctx, &t, "\xe2\x84\xab", 0, 0xc3, 0x85); /* the sign of Angstrom */
    CHECK_IDS(ctx, &t, "q\xcc\x87\xcc\xa3", 0, 'q', 0xcc, 0xa3, 0xcc, 0x87); /* marks in order */
    CHECK_IDS(ctx, &t, "\xe1\x84\x80\xe1\x85\xa1", 0, 0xea, 0xb0, 0x80);     /* Hangul */
    CHECK_IDS(ctx, &t, "ab\xff\xcc", 0, 256, 0xff, 0xcc);
    /* nothing composes with a special piece */
    CHECK_IDS(ctx, &t, "ab<|endoftext|>\xcc\xb8 e\xcc\x81", MUR_ENCODE_SPECIAL, 256, 300, 0xcc,
              0xb8, ' ', 0xc3, 0xa9);
    CHECK_EQ(mur_tokenizer_open(&opened, t.form, t.bytes, NULL), MUR_E_UNSUPPORTED);
    unload(&t);
    t = load_bytes(ctx, "plain.json", plain.data, plain.size);
    CHECK_IDS(ctx, &t, "e\xcc\x81", 0, 'e', 0xcc, 0x81);
    CHECK_EQ(mur_tokenizer_open(&opened, t.form, t.bytes, NULL), MUR_OK);
    unload(&t);
    muc_text_free(&plain);
    muc_text_free(&file);
}

/* "ignore_merges": a segment that is a piece is taken as it is */
static void whole_pieces_are_taken_where_the_file_says_so(void **state)
{
    static const char pieces[] = ",\"abc\":256,\"ab\":257", merges[] = "[\"a\",\"b\"]";
    muc_text with = make_byte_level(LLAMA3_CUTS, "\"ignore_merges\":true,", pieces, merges);
    muc_text without = make_byte_level(LLAMA3_CUTS, "", pieces, merges);
    loaded a = load_bytes(ctx, "a.json", with.data, with.size);
    loaded b = load_bytes(ctx, "b.json", without.data, without.size);

    (void)state;
    CHECK_IDS(ctx, &a, "abc", 0, 256);
    CHECK_IDS(ctx, &a, "abcc", 0, 257, 'c', 'c');
    CHECK_IDS(ctx, &b, "abc", 0, 257, 'c');
    unload(&a);
    unload(&b);
    muc_text_free(&with);
    muc_text_free(&without);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, new_context, free_context)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(three_kinds_of_files_compile_to_the_same_bytes),
        TEST(small_texts_have_the_ids_worked_out_by_hand),
        TEST(random_vocabularies_agree_with_the_naive_tokenizer),
        TEST(byte_level_merges_only_what_is_listed),
        TEST(metaspace_marks_spaces_and_puts_one_where_it_is_missing),
        TEST(special_pieces_take_the_white_space_beside_them),
        TEST(bytes_without_a_piece_give_the_unknown_piece_or_nothing),
        TEST(the_normal_form_is_made_where_the_file_asks_for_it),
        TEST(whole_pieces_are_taken_where_the_file_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

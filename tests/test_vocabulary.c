/* test_vocabulary.c - readers of tokenizers and the compiler, on vocabularies made here.
 *
 * The judge of ids is a tokenizer below that compares strings and tries every pair at every step.
 */
#include "tokenizer_fixture.h"

enum { FIRST_BYTE = 3, FIRST_PIECE = FIRST_BYTE + 256, MAX_PIECES = 64, MAX_SYMBOLS = 256 };

static muc_context *ctx;

static int setup(void **state)
{
    (void)state;
    ctx = muc_context_new(1);
    return ctx ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    muc_context_free(ctx);
    return 0;
}

static uint32_t random_below(uint32_t n)
{
    static uint64_t state = 99;

    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

/* ---- a small vocabulary of the SentencePiece family, and the three files that can hold it ---- */

/* Pieces after <unk>, <s>, </s> and the bytes. Spaces are plain here. */
typedef struct small_vocabulary {
    char text[MAX_PIECES][16];
    float score[MAX_PIECES];
    size_t count;
} small_vocabulary;

static const small_vocabulary greetings = {
    .text = { " h", "he", "ll", " he", "llo", "hello", " hello", "  ", " ", "h", "e", "l", "o", "w",
              "\xc3\xa9", "h\xc3\xa9" },
    .score = { -1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -11, -12, -13, -14, -15, -0.5f },
    .count = 16,
};

static void marked(const char *text, char *out)
{
    for (; *text; text++)
        out += sprintf(out, *text == ' ' ? "\xe2\x96\x81" : "%c", *text);
    *out = '\0';
}

static void add_u32(muc_text *file, uint32_t value)
{
    uint8_t bytes[4];

    muc_store_u32(bytes, value);
    muc_text_add_bytes(file, bytes, 4);
}

static void add_float(muc_text *file, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, 4);
    add_u32(file, bits);
}

/* How a file writes a piece; llama2.c's has plain spaces, and BOS and EOS between line breaks. */
static void piece_text(const small_vocabulary *v, size_t id, bool llama2c, char out[64])
{
    static const char *const control[FIRST_BYTE] = { "<unk>", "<s>", "</s>" };
    const char *line_break = llama2c && id > 0 ? "\n" : "";

    if (id < FIRST_BYTE)
        snprintf(out, 64, "%s%s%s", line_break, control[id], line_break);
    else if (id < FIRST_PIECE)
        snprintf(out, 64, "<0x%02X>", (unsigned)(id - FIRST_BYTE));
    else if (llama2c)
        snprintf(out, 64, "%s", v->text[id - FIRST_PIECE]);
    else
        marked(v->text[id - FIRST_PIECE], out);
}

static muc_text make_llama2c(const small_vocabulary *v)
{
    muc_text file = { 0 };
    char text[64];

    add_u32(&file, 16);
    for (size_t id = 0; id < FIRST_PIECE + v->count; id++) {
        piece_text(v, id, true, text);
        add_float(&file, id < FIRST_PIECE ? 0 : v->score[id - FIRST_PIECE]);
        add_u32(&file, (uint32_t)strlen(text));
        muc_text_add_bytes(&file, text, strlen(text));
    }
    return file;
}

static void add_field(muc_text *file, unsigned number, const void *data, size_t size)
{
    uint8_t head[2] = { (uint8_t)(number << 3 | 2), (uint8_t)size };

    CHECK(number < 16 && size < 128);
    muc_text_add_bytes(file, head, 2);
    muc_text_add_bytes(file, data, size);
}

/* trainer and normalizer: the bytes of their messages */
static muc_text make_sentencepiece(const small_vocabulary *v, const char *trainer,
                                   size_t trainer_size, const char *normalizer,
                                   size_t normalizer_size)
{
    muc_text file = { 0 };

    for (size_t id = 0; id < FIRST_PIECE + v->count; id++) {
        const uint8_t score_key = 2 << 3 | 5, type_key = 3 << 3;
        const uint8_t type = id == 0           ? MUR_PIECE_UNKNOWN
                             : id < FIRST_BYTE ? MUR_PIECE_CONTROL
                                               : MUR_PIECE_BYTE;
        muc_text piece = { 0 };
        char text[64];

        piece_text(v, id, false, text);
        add_field(&piece, 1, text, strlen(text));
        muc_text_add_bytes(&piece, &score_key, 1);
        add_float(&piece, id < FIRST_PIECE ? 0 : v->score[id - FIRST_PIECE]);
        if (id < FIRST_PIECE) {
            muc_text_add_bytes(&piece, &type_key, 1);
            muc_text_add_bytes(&piece, &type, 1);
        }
        add_field(&file, 1, piece.data, piece.size);
        muc_text_free(&piece);
    }
    add_field(&file, 2, trainer, trainer_size);
    add_field(&file, 3, normalizer, normalizer_size);
    return file;
}

/* model type BPE, byte fallback; no remove_extra_whitespaces */
#define BPE_TRAINER "\x18\x02\x98\x02\x01", 5
#define KEEP_SPACES "\x20\x00", 2

#define JSON_SPACES \
    "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":" \
    "\"\xe2\x96\x81\"},{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":" \
    "\"\xe2\x96\x81\"}]},\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\"," \
    "\"pattern\":{\"String\":\"\xe2\x96\x81\"},\"content\":\" \"},{\"type\":\"ByteFallback\"}," \
    "{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]}," \
    "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":" \
    "\"<s>\"}},{\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":{\"<s>\":{\"ids\":[1]}}}"

static size_t find_text(const small_vocabulary *v, const char *text, size_t size)
{
    for (size_t i = 0; i < v->count; i++)
        if (strlen(v->text[i]) == size && memcmp(v->text[i], text, size) == 0)
            return i;
    return SIZE_MAX;
}

/* Merges: of each piece, by falling score, every way to make it of two others. */
static void add_merges(muc_text *file, const small_vocabulary *v, bool as_pairs)
{
    bool done[MAX_PIECES] = { false };
    const char *comma = "";

    for (size_t round = 0; round < v->count; round++) {
        size_t best = SIZE_MAX;
        char left[64], right[64], part[16];

        for (size_t i = 0; i < v->count; i++)
            if (!done[i] && (best == SIZE_MAX || v->score[i] > v->score[best]))
                best = i;
        done[best] = true;
        for (size_t cut = 1; cut < strlen(v->text[best]); cut++) {
            if (find_text(v, v->text[best], cut) == SIZE_MAX ||
                find_text(v, v->text[best] + cut, strlen(v->text[best]) - cut) == SIZE_MAX)
                continue;
            snprintf(part, cut + 1, "%s", v->text[best]);
            marked(part, left);
            marked(v->text[best] + cut, right);
            muc_text_add(file, as_pairs ? "%s[\"%s\",\"%s\"]" : "%s\"%s %s\"", comma, left, right);
            comma = ",";
        }
    }
}

static muc_text make_huggingface(const small_vocabulary *v, bool as_pairs)
{
    muc_text file = { 0 };
    char text[64];

    muc_text_add(&file, "{" JSON_SPACES ",\"added_tokens\":[{\"id\":0,\"content\":\"<unk>\","
                        "\"special\":true},{\"id\":1,\"content\":\"<s>\",\"special\":true},{\"id\":"
                        "2,\"content\":\"</s>\",\"special\":true}],\"model\":{\"type\":\"BPE\","
                        "\"byte_fallback\":true,\"unk_token\":\"<unk>\",\"vocab\":{\"<unk>\":0,"
                        "\"<s>\":1,\"</s>\":2");
    for (unsigned b = 0; b < 256; b++)
        muc_text_add(&file, ",\"<0x%02X>\":%u", b, FIRST_BYTE + b);
    for (size_t i = 0; i < v->count; i++) {
        marked(v->text[i], text);
        muc_text_add(&file, ",\"%s\":%zu", text, FIRST_PIECE + i);
    }
    muc_text_add(&file, "},\"merges\":[");
    add_merges(&file, v, as_pairs);
    muc_text_add(&file, "]}}");
    return file;
}

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
        CHECK(t.tokenizer.header->pattern == MUR_PATTERN_SPACES || i % 2 == 1);
        check_random_texts(&v, &t);
        unload(&t);
        muc_text_free(&file);
    }
}

/* ---- byte-level ---- */

/* GPT-2's alphabet, as its paper's code builds it: visible bytes stand for themselves, the rest
 * are numbered from 256. */
static int alphabet_code(int byte)
{
    int code = 256;

    for (int b = 0; b < 256; b++) {
        bool visible = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;

        if (b == byte)
            return visible ? b : code;
        code += !visible;
    }
    return -1;
}

static void add_alphabet(muc_text *file)
{
    for (int b = 0; b < 256; b++)
        muc_text_add(file, "%s\"\\u%04x\":%d", b ? "," : "", (unsigned)alphabet_code(b), b);
}

#define GPT2_CUTS "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true}"
#define LLAMA3_CUTS \
    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":" \
    "\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}| " \
    "?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"}," \
    "\"behavior\":\"Isolated\",\"invert\":false},{\"type\":\"ByteLevel\",\"add_prefix_space\":" \
    "false,\"trim_offsets\":true,\"use_regex\":false}]}"

/* pieces: what follows the 256 bytes of the vocabulary; merges: the array's inside */
static muc_text make_byte_level(const char *cuts, const char *more, const char *pieces,
                                const char *merges)
{
    muc_text file = { 0 };

    muc_text_add(&file,
                 "{\"normalizer\":null,\"pre_tokenizer\":%s,\"decoder\":{\"type\":\"ByteLevel\"},"
                 "\"post_processor\":null,\"added_tokens\":[{\"id\":300,\"content\":"
                 "\"<|endoftext|>\",\"special\":true},{\"id\":301,\"content\":\"  \",\"special\":"
                 "false}],\"model\":{\"type\":\"BPE\",%s\"vocab\":{",
                 cuts, more);
    add_alphabet(&file);
    muc_text_add(&file, "%s},\"merges\":[%s]}}", pieces, merges);
    return file;
}

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
    CHECK_EQ(mur_tokenizer_open(&opened, t.form, t.bytes, mur_split_unicode, NULL),
             MUR_E_UNSUPPORTED);
    unload(&t);
    t = load_bytes(ctx, "plain.json", plain.data, plain.size);
    CHECK_IDS(ctx, &t, "e\xcc\x81", 0, 'e', 0xcc, 0x81);
    CHECK_EQ(mur_tokenizer_open(&opened, t.form, t.bytes, mur_split_unicode, NULL), MUR_OK);
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

/* ---- what is refused, by name ---- */

static muc_status read_and_compile(const char *name, const void *data, size_t size, loaded *t)
{
    muc_bytes file = { data, size, name };

    MUC_TRY(muc_vocabulary_read(ctx, file, 0, &t->arena, &t->vocabulary));
    return muc_tokenizer_compile(ctx, &t->vocabulary, &t->arena, &t->form, &t->bytes);
}

static void check_refused(const char *name, muc_text *file, muc_status status, const char *fragment)
{
    loaded t = { .bytes = 0 };

    CHECK_FAILS(ctx, status, fragment, read_and_compile(name, file->data, file->size, &t));
    unload(&t);
    muc_text_free(file);
}

static void other_sentencepiece_models_are_refused_by_name(void **state)
{
    static const struct {
        const char *trainer;
        size_t trainer_size;
        const char *normalizer;
        size_t normalizer_size;
        const char *fragment;
    } rows[] = {
        { "\x18\x01\x98\x02\x01", 5, KEEP_SPACES, "(unigram)" },
        { "\x98\x02\x01", 3, KEEP_SPACES, "(unigram)" },
        { "\x18\x03\x98\x02\x01", 5, KEEP_SPACES, "(word)" },
        { "\x18\x02", 2, KEEP_SPACES, "no byte_fallback" },
        { BPE_TRAINER, "", 0, "remove_extra_whitespaces" },
        { BPE_TRAINER, "\x12\x01x\x20\x00", 5, "character map" },
        { BPE_TRAINER, "\x20\x00\x28\x00", 4, "escape_whitespaces" },
    };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(rows); i++) {
        muc_text file = make_sentencepiece(&greetings, rows[i].trainer, rows[i].trainer_size,
                                           rows[i].normalizer, rows[i].normalizer_size);

        check_refused("t.model", &file, MUC_UNSUPPORTED, rows[i].fragment);
    }
}

/* The file of a small vocabulary with `from` replaced by `to`. */
static muc_text altered(const char *from, const char *to)
{
    muc_text file = make_huggingface(&greetings, true), out = { 0 };
    const char *at = memmem(file.data, file.size, from, strlen(from));

    CHECK(at != NULL);
    muc_text_add_bytes(&out, file.data, (size_t)(at - file.data));
    muc_text_add(&out, "%s%s", to, at + strlen(from));
    muc_text_free(&file);
    return out;
}

static void other_json_is_refused_by_name(void **state)
{
    static const struct {
        const char *from, *to;
        muc_status status;
        const char *fragment;
    } rows[] = {
        { "\"type\":\"BPE\"", "\"type\":\"Unigram\"", MUC_UNSUPPORTED, "model Unigram" },
        { "\"Prepend\"", "\"Lowercase\"", MUC_UNSUPPORTED, "normalizer" },
        { "\"Fuse\"", "\"WordPiece\"", MUC_UNSUPPORTED, "decoder" },
        { "\"byte_fallback\":true", "\"byte_fallback\":false", MUC_UNSUPPORTED, "neither" },
        { "\"byte_fallback\":true", "\"byte_fallback\":1", MUC_MALFORMED, "not true or false" },
        { "\"byte_fallback\":true", "\"byte_fallback\":true,\"dropout\":0.1", MUC_UNSUPPORTED,
          "dropout" },
        { "\"unk_token\":", "\"end_of_word_suffix\":\"</w>\",\"unk_token\":", MUC_UNSUPPORTED,
          "end_of_word_suffix" },
        { "{" JSON_SPACES,
          "{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\"}," JSON_SPACES,
          MUC_UNSUPPORTED, "Metaspace" },
        { "\"special\":true}]", "\"special\":true,\"lstrip\":true}]", MUC_UNSUPPORTED, "lstrip" },
        { "\"special\":true}]", "\"special\":false,\"normalized\":true}]", MUC_UNSUPPORTED,
          "normalized" },
        { "\"content\":\"</s>\"", "\"content\":\"<eos>\"", MUC_MALFORMED, "has the id of '</s>'" },
        { "\"<0x41>\":68", "\"<0x4x>\":68", MUC_UNSUPPORTED, "byte 0x41" },
        { "\"h\":268", "\"h\":267", MUC_MALFORMED, "both have id 267" },
        { "\"h\":268", "\"h\":-1", MUC_MALFORMED, "the id of 'h'" },
        { "\"h\":268", "\"h\":4000000000", MUC_MALFORMED, "the id of 'h'" },
        { "[\"l\",\"l\"]", "[\"l\",\"q\"]", MUC_MALFORMED, "'l' and 'q'" },
        { "[\"l\",\"l\"]", "[\"l\",\"l\"],[\"l\",\"l\"]", MUC_MALFORMED, "listed twice" },
        { "[\"l\",\"l\"]", "[\"l\"]", MUC_MALFORMED, "neither a string nor two" },
        { "[\"l\",\"l\"]", "\"ll\"", MUC_MALFORMED, "has 0 splits" },
        { "\"ids\":[1]", "\"ids\":[1,2]", MUC_MALFORMED, "is not one piece" },
        { "{\"Sequence\":{\"id\":\"A\"}}]",
          "{\"Sequence\":{\"id\":\"A\"}},{\"SpecialToken\":{\"id\":\"</s>\"}}]", MUC_UNSUPPORTED,
          "post_processor" },
    };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(rows); i++) {
        muc_text file = altered(rows[i].from, rows[i].to);

        check_refused("t.json", &file, rows[i].status, rows[i].fragment);
    }
}

static void an_unknown_pattern_is_refused_by_name(void **state)
{
    static const char cuts[] =
        "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":"
        "\"[a-z]+\"},\"behavior\":\"Isolated\",\"invert\":false},{\"type\":\"ByteLevel\","
        "\"add_prefix_space\":false,\"use_regex\":false}]}";
    muc_text file = make_byte_level(cuts, "", "", "");

    (void)state;
    check_refused("t.json", &file, MUC_UNSUPPORTED, "[a-z]+");
}

static void damaged_llama2c_files_are_refused(void **state)
{
    small_vocabulary v = greetings;
    muc_text file = make_llama2c(&v);
    muc_bytes bytes = { (const uint8_t *)file.data, file.size, "t.bin" };
    loaded t = { .bytes = 0 };

    (void)state;
    CHECK_FAILS(ctx, MUC_MALFORMED, "follow the model's 270 pieces",
                muc_vocabulary_read_llama2c(ctx, bytes, 270, &t.arena, &t.vocabulary));
    CHECK_FAILS(ctx, MUC_MALFORMED, "score needs 4 bytes",
                muc_vocabulary_read_llama2c(ctx, bytes, 276, &t.arena, &t.vocabulary));
    CHECK_FAILS(ctx, MUC_MALFORMED, "expected 259 to",
                muc_vocabulary_read_llama2c(ctx, bytes, 100000, &t.arena, &t.vocabulary));
    unload(&t);
    muc_text_free(&file);
    strcpy(v.text[3], "he");
    file = make_llama2c(&v);
    check_refused("t.bin", &file, MUC_MALFORMED, "pieces 260 and 262 are both 'he'");
}

static void a_json_file_without_merges_is_refused(void **state)
{
    const char *path = shared_data("tokenizers/hf-added-tokens-tokenizer.json");
    loaded t = { .bytes = 0 };
    muc_file file;

    (void)state;
    CHECK_OK(ctx, muc_file_open(ctx, path, &file));
    CHECK_FAILS(ctx, MUC_MALFORMED, "\"merges\" not an array",
                read_and_compile(path, file.bytes.data, file.bytes.size, &t));
    unload(&t);
    muc_file_close(&file);
}

/* ---- damage ---- */

static const char sample[] = "Once upon a time\n\xc3\xa9 <s> 12 \xff";

/* Uses a form that was accepted: ids within the vocabulary, every id decodable. */
static void use_form(const uint8_t *form, size_t bytes)
{
    mur_tokenizer t;
    uint32_t ids[2 * sizeof(sample) + 2], scratch[5 * (sizeof(sample) + 1)];
    size_t count;
    const uint8_t *out;
    volatile uint8_t last = 0;

    if (mur_tokenizer_open(&t, form, bytes, mur_split_unicode, mur_nfc) != MUR_OK)
        return;
    CHECK_EQ(mur_tokenizer_encode(&t, (const uint8_t *)sample, strlen(sample),
                                  MUR_ENCODE_BOS | MUR_ENCODE_SPECIAL, scratch, sizeof(scratch),
                                  ids, MUC_COUNT(ids), &count),
             MUR_OK);
    for (size_t i = 0; i < count; i++)
        CHECK(ids[i] < t.header->pieces);
    for (uint32_t id = 0; id < t.header->pieces + 2; id++) {
        size_t size = mur_tokenizer_decode(&t, id, id - 1, &out);

        if (size > 0)
            last = (uint8_t)(last + out[0] + out[size - 1]);
    }
}

/* Reads a copy of exactly this size: an error, or a tokenizer that works. */
static void read_damaged(const char *name, const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    loaded t = { .bytes = 0 };

    CHECK(copy != NULL);
    memcpy(copy, data, size);
    if (read_and_compile(name, copy, size, &t) == MUC_OK)
        use_form(t.form, t.bytes);
    else
        CHECK(muc_error_message(ctx)[0] != '\0');
    muc_error_clear(ctx);
    unload(&t);
    free(copy);
}

static void damage_everywhere(const char *name, uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        const uint8_t good = data[i];

        read_damaged(name, data, i);
        data[i] = (uint8_t)(i % 3 == 0 ? ~good : good ^ 1 << i % 8);
        read_damaged(name, data, size);
        data[i] = good;
    }
}

static void damaged_files_give_an_error_or_a_tokenizer(void **state)
{
    muc_text files[3] = { make_llama2c(&greetings),
                          make_sentencepiece(&greetings, BPE_TRAINER, KEEP_SPACES),
                          make_huggingface(&greetings, false) };
    static const char *const names[3] = { "a.bin", "a.model", "a.json" };

    (void)state;
    for (int i = 0; i < 3; i++) {
        damage_everywhere(names[i], (uint8_t *)files[i].data, files[i].size);
        muc_text_free(&files[i]);
    }
}

static void damaged_real_files_give_an_error_or_a_tokenizer(void **state)
{
    static const char *const paths[] = { "llama/tok512.bin", "rescue/tokenizer.model",
                                         "llama/stories260K-hf/tokenizer.json" };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(paths); i++) {
        const char *path = shared_data(paths[i]);
        muc_file file;
        uint8_t *copy;

        CHECK_OK(ctx, muc_file_open(ctx, path, &file));
        copy = malloc(file.bytes.size);
        CHECK(copy != NULL);
        memcpy(copy, file.bytes.data, file.bytes.size);
        damage_everywhere(path, copy, file.bytes.size);
        free(copy);
        muc_file_close(&file);
    }
}

static void damaged_forms_are_refused_or_harmless(void **state)
{
    muc_text files[2] = { make_llama2c(&greetings),
                          make_byte_level(GPT2_CUTS, "", ",\"on\":256,\"onc\":257",
                                          "\"o n\",\"on c\"") };
    static const char *const names[2] = { "a.bin", "a.json" };

    (void)state;
    for (int i = 0; i < 2; i++) {
        loaded t = load_bytes(ctx, names[i], files[i].data, files[i].size);
        uint8_t *copy = malloc(t.bytes);
        mur_tokenizer opened;

        CHECK(copy != NULL);
        memcpy(copy, t.form, t.bytes);
        CHECK_EQ(mur_tokenizer_open(&opened, copy, t.bytes, mur_split_unicode, mur_nfc), MUR_OK);
        for (size_t size = 0; size < t.bytes; size++)
            CHECK_EQ(mur_tokenizer_open(&opened, copy, size, mur_split_unicode, mur_nfc),
                     MUR_E_MALFORMED);
        for (size_t at = 0; at < t.bytes; at++)
            for (unsigned value = 0; value < 256; value += at < 64 ? 1 : 37) {
                copy[at] = (uint8_t)(t.form[at] + value);
                use_form(copy, t.bytes);
                copy[at] = t.form[at];
            }
        free(copy);
        unload(&t);
        muc_text_free(&files[i]);
    }
}

static void a_form_with_cuts_needs_the_splitter(void **state)
{
    muc_text file = make_byte_level(GPT2_CUTS, "", "", "");
    loaded t = load_bytes(ctx, "a.json", file.data, file.size);
    mur_tokenizer opened;

    (void)state;
    CHECK_EQ(mur_tokenizer_open(&opened, t.form, t.bytes, NULL, NULL), MUR_E_UNSUPPORTED);
    unload(&t);
    muc_text_free(&file);
}

static void too_little_memory_is_said_not_exceeded(void **state)
{
    muc_text file = make_llama2c(&greetings);
    loaded t = load_bytes(ctx, "a.bin", file.data, file.size);
    const uint8_t *text = (const uint8_t *)"hello hello he";
    size_t count, needed = mur_tokenizer_scratch_bytes(&t.tokenizer, 14);

    (void)state;
    for (size_t capacity = 0; capacity < 5; capacity++)
        for (size_t bytes = 0; bytes <= needed; bytes += 4) {
            uint32_t *scratch = malloc(bytes + 1), *ids = malloc(capacity * 4 + 1);
            mur_status status = mur_tokenizer_encode(&t.tokenizer, text, 14, MUR_ENCODE_BOS,
                                                     scratch, bytes, ids, capacity, &count);

            /* the longest segment, " hello", takes 7 symbols with its dummy prefix */
            CHECK_EQ(status, capacity < 4 || bytes < 7 * 20 ? MUR_E_NOFIT : MUR_OK);
            CHECK(count <= capacity);
            free(scratch);
            free(ids);
        }
    unload(&t);
    muc_text_free(&file);
}

static void every_failing_allocation_is_reported(void **state)
{
    muc_text files[3] = {
        make_llama2c(&greetings), make_sentencepiece(&greetings, BPE_TRAINER, KEEP_SPACES),
        make_byte_level(LLAMA3_CUTS, "\"ignore_merges\":true,", ",\"ab\":256", "\"a b\"")
    };
    static const char *const names[3] = { "a.bin", "a.model", "a.json" };

    (void)state;
    for (int i = 0; i < 3; i++) {
        muc_status status = MUC_NOMEM;
        long failures = 0;

        for (; status != MUC_OK; failures++) {
            loaded t = { .bytes = 0 };

            CHECK_EQ(status, MUC_NOMEM);
            muc_alloc_fail_after(failures);
            status = read_and_compile(names[i], files[i].data, files[i].size, &t);
            muc_alloc_fail_after(-1);
            muc_error_clear(ctx);
            unload(&t);
        }
        CHECK(failures > 1);
        muc_text_free(&files[i]);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(three_kinds_of_files_compile_to_the_same_bytes),
        TEST(small_texts_have_the_ids_worked_out_by_hand),
        TEST(random_vocabularies_agree_with_the_naive_tokenizer),
        TEST(byte_level_merges_only_what_is_listed),
        TEST(the_normal_form_is_made_where_the_file_asks_for_it),
        TEST(whole_pieces_are_taken_where_the_file_says_so),
        TEST(other_sentencepiece_models_are_refused_by_name),
        TEST(other_json_is_refused_by_name),
        TEST(an_unknown_pattern_is_refused_by_name),
        TEST(damaged_llama2c_files_are_refused),
        TEST(a_json_file_without_merges_is_refused),
        TEST(damaged_files_give_an_error_or_a_tokenizer),
        TEST(damaged_real_files_give_an_error_or_a_tokenizer),
        TEST(damaged_forms_are_refused_or_harmless),
        TEST(a_form_with_cuts_needs_the_splitter),
        TEST(too_little_memory_is_said_not_exceeded),
        TEST(every_failing_allocation_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* vocabulary_files.h - small vocabularies as the files of each kind of tokenizer. */
#ifndef VOCABULARY_FILES_H
#define VOCABULARY_FILES_H

#include "tokenizer_fixture.h"

#include "context_fixture.h"

enum { FIRST_BYTE = 3, FIRST_PIECE = FIRST_BYTE + 256, MAX_PIECES = 64, MAX_SYMBOLS = 256 };

static inline uint32_t random_below(uint32_t n)
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

static inline void marked(const char *text, char *out)
{
    for (; *text; text++)
        out += sprintf(out, *text == ' ' ? "\xe2\x96\x81" : "%c", *text);
    *out = '\0';
}

static inline void add_u32(muc_text *file, uint32_t value)
{
    uint8_t bytes[4];

    muc_store_u32(bytes, value);
    muc_text_add_bytes(file, bytes, 4);
}

static inline void add_float(muc_text *file, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, 4);
    add_u32(file, bits);
}

/* How a file writes a piece; llama2.c's has plain spaces, and BOS and EOS between line breaks. */
static inline void piece_text(const small_vocabulary *v, size_t id, bool llama2c, char out[64])
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

static inline muc_text make_llama2c(const small_vocabulary *v)
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

static inline void add_field(muc_text *file, unsigned number, const void *data, size_t size)
{
    uint8_t head[2] = { (uint8_t)(number << 3 | 2), (uint8_t)size };

    CHECK(number < 16 && size < 128);
    muc_text_add_bytes(file, head, 2);
    muc_text_add_bytes(file, data, size);
}

/* trainer and normalizer: the bytes of their messages */
static inline muc_text make_sentencepiece(const small_vocabulary *v, const char *trainer,
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

static inline size_t find_text(const small_vocabulary *v, const char *text, size_t size)
{
    for (size_t i = 0; i < v->count; i++)
        if (strlen(v->text[i]) == size && memcmp(v->text[i], text, size) == 0)
            return i;
    return SIZE_MAX;
}

/* Merges: of each piece, by falling score, every way to make it of two others. */
static inline void add_merges(muc_text *file, const small_vocabulary *v, bool as_pairs)
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

static inline muc_text make_huggingface(const small_vocabulary *v, bool as_pairs)
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

/* ---- byte-level ---- */

/* GPT-2's alphabet, as its paper's code builds it: visible bytes stand for themselves, the rest
 * are numbered from 256. */
static inline int alphabet_code(int byte)
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

static inline void add_alphabet(muc_text *file)
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
static inline muc_text make_byte_level(const char *cuts, const char *more, const char *pieces,
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

#endif

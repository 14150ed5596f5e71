/* sentencepiece.c - reads SentencePiece's tokenizer.model: the few protobuf fields that matter. */
#include <math.h>
#include <string.h>

#include "text/pieces.h"

/* The messages and fields of sentencepiece_model.proto that are read. */
enum {
    MODEL_PIECES = 1,
    MODEL_TRAINER = 2,
    MODEL_NORMALIZER = 3,
    MODEL_DENORMALIZER = 5,
    PIECE_TEXT = 1,
    PIECE_SCORE = 2,
    PIECE_TYPE = 3,
    TRAINER_MODEL_TYPE = 3,
    TRAINER_SPACE_AS_SUFFIX = 24,
    TRAINER_BYTE_FALLBACK = 35,
    TRAINER_BOS_PIECE = 46,
    TRAINER_EOS_PIECE = 47,
    NORMALIZER_CHARSMAP = 2,
    NORMALIZER_DUMMY_PREFIX = 3,
    NORMALIZER_REMOVE_SPACES = 4,
    NORMALIZER_ESCAPE_SPACES = 5
};

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };
enum { MODEL_UNIGRAM = 1, MODEL_BPE = 2 };

typedef struct field {
    uint32_t number;
    uint64_t value;       /* of a varint; the bits of a 32-bit field */
    muc_string_view view; /* of a length-delimited field */
    size_t start;         /* where the view starts in the file */
} field;

/* What the file says apart from its pieces, with the format's defaults. */
typedef struct settings {
    uint64_t model_type, byte_fallback, space_as_suffix;
    muc_string_view bos_piece, eos_piece;
    bool charsmap;
    uint64_t dummy_prefix, remove_spaces, escape_spaces;
} settings;

static muc_status read_varint(muc_reader *reader, uint64_t *out)
{
    uint64_t value = 0;
    uint8_t byte;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        MUC_TRY(muc_read_u8(reader, "varint", &byte));
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return MUC_OK;
        }
    }
    return muc_read_fail(reader, "varint longer than 10 bytes");
}

static muc_status read_field(muc_reader *reader, field *out)
{
    uint64_t key, size;
    uint32_t word;
    const uint8_t *span;

    memset(out, 0, sizeof(*out));
    MUC_TRY(read_varint(reader, &key));
    if (key >> 3 == 0 || key >> 3 >= 1u << 29)
        return muc_read_fail(reader, "field number %llu", (unsigned long long)(key >> 3));
    out->number = (uint32_t)(key >> 3);
    switch (key & 7) {
    case WIRE_VARINT:
        return read_varint(reader, &out->value);
    case WIRE_64:
        return muc_read_u64(reader, "64-bit field", &out->value);
    case WIRE_32:
        MUC_TRY(muc_read_u32(reader, "32-bit field", &word));
        out->value = word;
        return MUC_OK;
    case WIRE_BYTES:
        MUC_TRY(read_varint(reader, &size));
        out->start = reader->at;
        MUC_TRY(muc_read_span(reader, size, "length-delimited field", &span));
        out->view.data = (const char *)span;
        out->view.size = (size_t)size;
        return MUC_OK;
    default:
        return muc_read_fail(reader, "wire type %u", (unsigned)(key & 7));
    }
}

/* A reader of a field's message that reports places in the file. */
static muc_reader reader_within(const muc_reader *outer, const field *f)
{
    muc_reader inner = *outer;

    inner.at = f->start;
    inner.bytes.size = f->start + f->view.size;
    return inner;
}

/* ---- settings ---- */

static muc_status read_trainer(muc_reader reader, settings *s)
{
    field f;

    while (muc_reader_left(&reader) > 0) {
        MUC_TRY(read_field(&reader, &f));
        if (f.number == TRAINER_MODEL_TYPE)
            s->model_type = f.value;
        else if (f.number == TRAINER_SPACE_AS_SUFFIX)
            s->space_as_suffix = f.value;
        else if (f.number == TRAINER_BYTE_FALLBACK)
            s->byte_fallback = f.value;
        else if (f.number == TRAINER_BOS_PIECE)
            s->bos_piece = f.view;
        else if (f.number == TRAINER_EOS_PIECE)
            s->eos_piece = f.view;
    }
    return MUC_OK;
}

static muc_status read_normalizer(muc_reader reader, settings *s)
{
    field f;

    while (muc_reader_left(&reader) > 0) {
        MUC_TRY(read_field(&reader, &f));
        if (f.number == NORMALIZER_CHARSMAP)
            s->charsmap |= f.view.size > 0;
        else if (f.number == NORMALIZER_DUMMY_PREFIX)
            s->dummy_prefix = f.value;
        else if (f.number == NORMALIZER_REMOVE_SPACES)
            s->remove_spaces = f.value;
        else if (f.number == NORMALIZER_ESCAPE_SPACES)
            s->escape_spaces = f.value;
    }
    return MUC_OK;
}

static muc_status check_settings(muc_context *ctx, const char *source, const settings *s)
{
    static const char *const types[] = { "?", "unigram", "BPE", "word", "char" };
    const char *refused = NULL;

    if (s->model_type != MODEL_BPE && s->model_type != MODEL_UNIGRAM)
        return muc_fail(ctx, MUC_UNSUPPORTED, source, MUC_NO_OFFSET,
                        "SentencePiece model type %llu (%s); only BPE and unigram are supported",
                        (unsigned long long)s->model_type,
                        s->model_type < MUC_COUNT(types) ? types[s->model_type] : "?");
    if (!s->byte_fallback && s->model_type == MODEL_BPE)
        refused = "no byte_fallback";
    else if (s->space_as_suffix)
        refused = "treat_whitespace_as_suffix";
    else if (s->charsmap)
        refused = "a normalizer with a character map (such as nmt_nfkc)";
    else if (s->remove_spaces)
        refused = "remove_extra_whitespaces";
    else if (!s->escape_spaces)
        refused = "no escape_whitespaces";
    if (refused)
        return muc_fail(ctx, MUC_UNSUPPORTED, source, MUC_NO_OFFSET, "SentencePiece model with %s",
                        refused);
    return MUC_OK;
}

/* ---- pieces ---- */

static muc_status check_piece(const muc_reader *reader, const settings *s, size_t id,
                              const muc_piece *piece)
{
    const char *source = reader->bytes.name;

    if (piece->type < MUR_PIECE_NORMAL || piece->type > MUR_PIECE_BYTE || !isfinite(piece->score))
        return muc_read_fail(reader, "piece %zu has type %u and score %g", id, piece->type,
                             piece->score);
    if (piece->type == MUR_PIECE_BYTE && muc_byte_piece_value(piece->text, piece->size) < 0)
        return muc_read_fail(reader, "byte piece %zu is '%s'", id, piece->text);
    if (piece->type == MUR_PIECE_UNUSED)
        return muc_fail(reader->ctx, MUC_UNSUPPORTED, source, reader->at,
                        "piece %zu, '%s', is marked unused", id, piece->text);
    if (piece->type == MUR_PIECE_USER && s->dummy_prefix &&
        strncmp(piece->text, MUC_SPACE_MARK, 3) == 0)
        return muc_fail(reader->ctx, MUC_UNSUPPORTED, source, reader->at,
                        "user-defined piece %zu, '%s', begins with a space", id, piece->text);
    return MUC_OK;
}

static muc_status read_piece(muc_reader reader, const settings *s, muc_arena *arena, size_t id,
                             const muc_vocabulary *vocabulary)
{
    muc_piece *piece = &vocabulary->pieces[id];
    muc_string_view text = { NULL, 0 };
    uint32_t bits = 0;
    float score;
    field f;

    piece->type = MUR_PIECE_NORMAL;
    while (muc_reader_left(&reader) > 0) {
        MUC_TRY(read_field(&reader, &f));
        if (f.number == PIECE_TEXT)
            text = f.view;
        else if (f.number == PIECE_SCORE)
            bits = (uint32_t)f.value;
        else if (f.number == PIECE_TYPE)
            piece->type = f.value <= MUR_PIECE_BYTE ? (uint32_t)f.value : 0;
    }
    memcpy(&score, &bits, sizeof(bits));
    piece->score = (double)score;
    MUC_TRY(muc_piece_set_text(reader.ctx, arena, vocabulary, id, text.data, text.size));
    return check_piece(&reader, s, id, piece);
}

static uint32_t control_piece(const muc_vocabulary *v, muc_string_view text)
{
    for (uint32_t i = 0; i < v->count; i++)
        if (v->pieces[i].type == MUR_PIECE_CONTROL && v->pieces[i].size == text.size &&
            memcmp(v->pieces[i].text, text.data, text.size) == 0)
            return i;
    return MUR_NO_TOKEN;
}

muc_status muc_vocabulary_read_sentencepiece(muc_context *ctx, muc_bytes file, muc_arena *arena,
                                             muc_vocabulary *out)
{
    settings s = { .model_type = MODEL_UNIGRAM,
                   .dummy_prefix = 1,
                   .remove_spaces = 1,
                   .escape_spaces = 1,
                   .bos_piece = { "<s>", 3 },
                   .eos_piece = { "</s>", 4 } };
    muc_reader reader = muc_reader_of(ctx, file);
    size_t count = 0;
    field f;

    while (muc_reader_left(&reader) > 0) {
        MUC_TRY(read_field(&reader, &f));
        if (f.number == MODEL_PIECES)
            count++;
        else if (f.number == MODEL_TRAINER)
            MUC_TRY(read_trainer(reader_within(&reader, &f), &s));
        else if (f.number == MODEL_NORMALIZER)
            MUC_TRY(read_normalizer(reader_within(&reader, &f), &s));
        else if (f.number == MODEL_DENORMALIZER && f.view.size > 0)
            return muc_fail(ctx, MUC_UNSUPPORTED, file.name, f.start,
                            "SentencePiece model with a denormalizer");
    }
    MUC_TRY(check_settings(ctx, file.name, &s));

    *out = (muc_vocabulary){ .source = file.name,
                             .alphabet = MUC_ALPHABET_CHARACTERS,
                             .unigram = s.model_type == MODEL_UNIGRAM,
                             .prefix = s.dummy_prefix != 0,
                             .prefix_again = true,
                             .add_bos = true };
    MUC_TRY(muc_pieces_new(ctx, arena, count, out));
    reader.at = 0;
    for (size_t id = 0; id < count;) {
        MUC_TRY(read_field(&reader, &f));
        if (f.number != MODEL_PIECES)
            continue;
        MUC_TRY(read_piece(reader_within(&reader, &f), &s, arena, id, out));
        /* SentencePiece looks for its own symbols after it has put the prefix, once */
        if (out->pieces[id++].type == MUR_PIECE_USER)
            out->prefix_again = false;
    }
    out->bos = control_piece(out, s.bos_piece);
    out->eos = control_piece(out, s.eos_piece);
    return MUC_OK;
}

/* llama2c_tokenizer.c - reads llama2.c's tokenizer.bin: the longest piece's size, then of each
 * piece a score, a size and the text, in which spaces are plain. Ids 0, 1, 2 are <unk>, BOS and
 * EOS, and the byte pieces follow; the format does not say so, its program does. */
#include <math.h>
#include <string.h>

#include "text/pieces.h"

enum { BOS = 1, EOS = 2, FIRST_BYTE = 3, AFTER_BYTES = FIRST_BYTE + 256, PIECE_HEADER = 8 };

/* Reads the head of a piece and returns its text as it stands. */
static muc_status read_head(muc_reader *reader, uint32_t longest, float *score,
                            muc_string_view *text)
{
    uint32_t size;
    const uint8_t *span;

    MUC_TRY(muc_read_f32(reader, "score", score));
    if (!isfinite(*score))
        return muc_read_fail(reader, "score %g", (double)*score);
    MUC_TRY(muc_read_u32(reader, "piece size", &size));
    if (size > longest)
        return muc_read_fail(reader, "a piece of %u bytes, but the file's longest has %u", size,
                             longest);
    MUC_TRY(muc_read_span(reader, size, "piece", &span));
    *text = (muc_string_view){ (const char *)span, size };
    return MUC_OK;
}

static muc_status count_pieces(muc_reader reader, uint32_t longest, size_t *count)
{
    muc_string_view text;
    float score;

    for (*count = 0; muc_reader_left(&reader) > 0; ++*count)
        MUC_TRY(read_head(&reader, longest, &score, &text));
    return MUC_OK;
}

/* Spaces become U+2581, as in the SentencePiece model that the file was made from. */
static muc_status set_marked_text(muc_context *ctx, muc_arena *arena, const muc_vocabulary *v,
                                  size_t id, muc_string_view text)
{
    char marked[3 * MUC_PIECE_MAX_BYTES];
    size_t n = 0;

    for (size_t i = 0; i < text.size && i < MUC_PIECE_MAX_BYTES; i++) {
        if (text.data[i] == ' ') {
            memcpy(marked + n, MUC_SPACE_MARK, 3);
            n += 3;
        } else {
            marked[n++] = text.data[i];
        }
    }
    return muc_piece_set_text(ctx, arena, v, id, marked, n);
}

static muc_status read_piece(muc_reader *reader, uint32_t longest, muc_arena *arena, size_t id,
                             const muc_vocabulary *v)
{
    static const muc_string_view fixed[FIRST_BYTE] = { { "<unk>", 5 },
                                                       { "<s>", 3 },
                                                       { "</s>", 4 } };
    muc_piece *piece = &v->pieces[id];
    muc_string_view text;
    float score;

    MUC_TRY(read_head(reader, longest, &score, &text));
    piece->score = (double)score;
    if (id < FIRST_BYTE) {
        /* the file has them as "\n<s>\n" and the like, for printing */
        piece->type = id == 0 ? MUR_PIECE_UNKNOWN : MUR_PIECE_CONTROL;
        return muc_piece_set_text(reader->ctx, arena, v, id, fixed[id].data, fixed[id].size);
    }
    piece->type = id < AFTER_BYTES ? MUR_PIECE_BYTE : MUR_PIECE_NORMAL;
    if (piece->type == MUR_PIECE_BYTE &&
        muc_byte_piece_value(text.data, text.size) != (int)id - FIRST_BYTE)
        return muc_read_fail(reader, "piece %zu is not <0x%02X>", id, (unsigned)id - FIRST_BYTE);
    return set_marked_text(reader->ctx, arena, v, id, text);
}

muc_status muc_vocabulary_read_llama2c(muc_context *ctx, muc_bytes file, size_t count,
                                       muc_arena *arena, muc_vocabulary *out)
{
    muc_reader reader = muc_reader_of(ctx, file);
    uint32_t longest;

    MUC_TRY(muc_read_u32(&reader, "size of the longest piece", &longest));
    if (count == 0)
        MUC_TRY(count_pieces(reader, longest, &count));
    if (count > muc_reader_left(&reader) / PIECE_HEADER || count < AFTER_BYTES)
        return muc_read_fail(&reader, "%zu pieces, expected %d to %zu", count, AFTER_BYTES,
                             muc_reader_left(&reader) / PIECE_HEADER);
    *out = (muc_vocabulary){ .source = file.name,
                             .alphabet = MUC_ALPHABET_CHARACTERS,
                             .prefix = true,
                             .prefix_again = true,
                             .add_bos = true,
                             .bos = BOS,
                             .eos = EOS };
    MUC_TRY(muc_pieces_new(ctx, arena, count, out));
    for (size_t id = 0; id < count; id++)
        MUC_TRY(read_piece(&reader, longest, arena, id, out));
    if (muc_reader_left(&reader) > 0)
        return muc_read_fail(&reader, "%zu bytes follow the model's %zu pieces",
                             muc_reader_left(&reader), count);
    return MUC_OK;
}

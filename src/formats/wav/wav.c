/* wav.c - reads RIFF WAVE files. */
#include "formats/wav/wav.h"

#include <string.h>

enum { PCM = 1, EXTENSIBLE = 0xfffe, MOST_CHANNELS = 64, EXTENSIBLE_BYTES = 26 };

typedef struct format {
    uint32_t rate;
    uint16_t channels; /* 0: not read yet */
} format;

static muc_status read_format(muc_reader *reader, uint32_t size, format *out)
{
    uint16_t coding, align, bits;
    const uint8_t *more;
    uint32_t rate;

    MUC_TRY(muc_read_u16(reader, "coding", &coding));
    MUC_TRY(muc_read_u16(reader, "channels", &out->channels));
    MUC_TRY(muc_read_u32(reader, "rate", &out->rate));
    MUC_TRY(muc_read_u32(reader, "bytes a second", &rate));
    MUC_TRY(muc_read_u16(reader, "bytes of a frame", &align));
    MUC_TRY(muc_read_u16(reader, "bits", &bits));
    if (coding == EXTENSIBLE && size >= EXTENSIBLE_BYTES) { /* what follows names the coding */
        MUC_TRY(muc_read_span(reader, EXTENSIBLE_BYTES - 16, "coding", &more));
        coding = muc_load_u16(more + 8);
    }
    if (coding != PCM || bits != 16)
        return muc_fail(reader->ctx, MUC_UNSUPPORTED, reader->bytes.name, reader->at,
                        "coding %u with %u bits a sample: expected PCM of 16 bits; convert it: "
                        "ffmpeg -i FILE -acodec pcm_s16le OTHER.wav",
                        coding, bits);
    if (out->channels < 1 || out->channels > MOST_CHANNELS || align != 2 * out->channels)
        return muc_read_fail(reader, "%u channels in frames of %u bytes", out->channels, align);
    return MUC_OK;
}

static muc_status read_data(muc_reader *reader, uint32_t size, const format *f, muc_arena *arena,
                            muc_wav *out)
{
    size_t left = muc_reader_left(reader), frame = 2 * (size_t)f->channels;
    const uint8_t *data = reader->bytes.data + reader->at;
    int16_t *samples;

    out->rate = f->rate;
    out->count = (size < left ? size : left) / frame;
    MUC_TRY(MUC_ARENA_NEW(reader->ctx, arena, out->count, &samples));
    for (size_t i = 0; i < out->count; i++) {
        int32_t sum = 0;

        for (uint16_t c = 0; c < f->channels; c++)
            sum += (int16_t)muc_load_u16(data + i * frame + 2 * (size_t)c);
        sum += f->channels * 32768; /* rounded down below 0 as above */
        samples[i] = (int16_t)(sum / f->channels - 32768);
    }
    out->samples = samples;
    return MUC_OK;
}

muc_status muc_wav_read(muc_context *ctx, muc_arena *arena, muc_bytes bytes, muc_wav *out)
{
    muc_reader reader = muc_reader_of(ctx, bytes);
    const uint8_t *head, *skipped;
    format f = { 0 };

    if (bytes.size < 12 || memcmp(bytes.data, "RIFF", 4) != 0 ||
        memcmp(bytes.data + 8, "WAVE", 4) != 0)
        return muc_fail(ctx, MUC_UNSUPPORTED, bytes.name, 0,
                        "is not a recording that muc reads: expected a RIFF WAVE file");
    reader.at = 12;
    for (;;) {
        uint32_t size;

        MUC_TRY(muc_read_span(&reader, 8, "chunk", &head));
        size = muc_load_u32(head + 4);
        if (memcmp(head, "data", 4) == 0) {
            if (!f.channels)
                return muc_read_fail(&reader, "the samples come before their format");
            return read_data(&reader, size, &f, arena, out);
        }
        if (memcmp(head, "fmt ", 4) == 0) {
            size_t begin = reader.at;

            MUC_TRY(read_format(&reader, size, &f));
            reader.at = begin;
        }
        MUC_TRY(muc_read_span(&reader, (uint64_t)size + size % 2, "chunk", &skipped));
    }
}

/* wav.h - recordings: RIFF WAVE files of 16-bit samples. */
#ifndef MUC_WAV_H
#define MUC_WAV_H

#include "base/arena.h"
#include "base/bytes.h"

typedef struct muc_wav {
    uint32_t rate;          /* samples a second */
    size_t count;           /* samples */
    const int16_t *samples; /* in the arena */
} muc_wav;

/* Reads a recording; of several channels the mean is taken, rounded down. A data chunk that is said
 * to be longer than the file, as programs that write into pipes leave it, ends with the file.
 * MUC_MALFORMED naming file and offset; MUC_UNSUPPORTED for other codings than PCM of 16 bits. */
muc_status muc_wav_read(muc_context *ctx, muc_arena *arena, muc_bytes bytes, muc_wav *out);

#endif

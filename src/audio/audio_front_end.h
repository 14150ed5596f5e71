/* audio_front_end.h - an audio front end as the user describes it, and the tables that the
 * runtime's code walks. */
#ifndef MUC_AUDIO_FRONT_END_H
#define MUC_AUDIO_FRONT_END_H

#include "base/arena.h"
#include "base/text.h"
#include "mur_front_end.h"

/* the words of each choice: W(key, word, meaning) */
#define FRONT_WORDS_shape(W) \
    W(shape, hann, "raised cosine, periodic") \
    W(shape, hamming, "0.54 - 0.46 cos, periodic") \
    W(shape, ones, "none")
#define FRONT_WORDS_mel(W) \
    W(mel, slaney, "librosa, torchaudio: linear below 1 kHz, triangles over frequencies") \
    W(mel, htk, \
      "torchaudio, librosa with htk: 2595 log10(1 + f / 700), triangles over frequencies") \
    W(mel, tensorflow, "tf.signal: HTK's scale, triangles over mel, without the point 0") \
    W(mel, onnx, "MelWeightMatrix: HTK's scale, corners rounded down to points")
#define FRONT_WORDS_norm(W) \
    W(norm, none, "nothing") \
    W(norm, slaney, "half of its width in Hz")
#define FRONT_WORDS_log(W) \
    W(log, ln, "natural, of the band + least") \
    W(log, log10, "to base 10, of the greater of band and least") \
    W(log, db, "10 times that")
#define FRONT_WORDS_dct(W) \
    W(dct, ortho, "orthonormal: torchaudio, librosa, scipy") \
    W(dct, tensorflow, "HTK: the same but for coefficient 0, which is sqrt(2) times as great")
#define FRONT_WORDS_numbers(W) \
    W(numbers, float, "binary32") \
    W(numbers, fixed, "integers, 16 bits behind the point")

#define FRONT_ENUM_WORD(key, word, meaning) MUC_FRONT_##key##_##word,
#define FRONT_CHOICE(key, fallback, meaning) \
    enum muc_front_##key{ FRONT_WORDS_##key(FRONT_ENUM_WORD) };
#include "audio/front_end.def"

typedef struct muc_front_end {
#define FRONT_COUNT(key, least, most, fallback, meaning) uint32_t key;
#define FRONT_REAL(key, least, most, fallback, meaning) double key;
#define FRONT_CHOICE(key, fallback, meaning) unsigned key;
#include "audio/front_end.def"
} muc_front_end;

/* "key=value,key=value", NULL or "" for the defaults. The result is consistent; of fft 0 became the
 * number of points. MUC_USAGE naming what is wrong. */
muc_status muc_front_end_parse(muc_context *ctx, const char *says, muc_front_end *out);
/* The same front end as such a text, every key named but `numbers`. */
void muc_front_end_print(const muc_front_end *front, muc_text *text);
static inline uint32_t muc_front_end_features(const muc_front_end *front)
{
    return front->cepstra ? front->cepstra : front->bands;
}

/* Triangles over the points of the spectrum, in binary64: weights [bands][fft / 2 + 1], in the
 * arena. */
muc_status muc_mel_filters(muc_context *ctx, muc_arena *arena, const muc_front_end *front,
                           double **out);

/* The front end in both arithmetics, on tables in the arena. */
typedef struct muc_front_end_tables {
    mur_front_end_f32 f32;
    mur_front_end_q16 q16;
    uint32_t weight_count; /* of the bands */
    uint32_t empty_bands;  /* that no point of the spectrum lies in */
} muc_front_end_tables;

muc_status muc_front_end_build(muc_context *ctx, muc_arena *arena, const muc_front_end *front,
                               muc_front_end_tables *out);

#endif

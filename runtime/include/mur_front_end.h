/* mur_front_end.h - from a microphone's samples to what networks hear: the logarithms of mel bands,
 * or cepstra (MFCC) of them, frame by frame.
 *
 * muc frontend writes the tables of a front end as C, once for each arithmetic; a firmware links
 * those that it calls. A frame is `window` samples of 16 bits, 32768 standing for 1; the next frame
 * begins `hop` samples later (mur_ring.h keeps what they share). Frames are neither centered nor
 * padded. Nothing is kept between frames.
 */
#ifndef MUR_FRONT_END_H
#define MUR_FRONT_END_H

#include <stdint.h>

/* what both arithmetics share; all tables are borrowed */
typedef struct mur_front_end_shape {
    uint16_t window, hop; /* samples; window <= fft */
    uint16_t fft;         /* points of the transform, a power of two */
    uint16_t bands, features;
    uint16_t begin, end;   /* points of the spectrum that lie in a band, 0..fft / 2 */
    uint8_t power;         /* of the spectrum: 1 magnitudes, 2 their squares */
    uint8_t is_floor;      /* small bands become `least`; else least is added to every band */
    const uint16_t *first; /* [bands] the first point of the spectrum in the band */
    const uint16_t *bins;  /* [bands] how many from there on are, or 0 */
} mur_front_end_shape;

typedef struct mur_front_end_f32 {
    mur_front_end_shape shape;
    const float *window;  /* [window] times 2^-16 */
    const float *sines;   /* [fft / 4 + 1] a quarter of a turn */
    const float *weights; /* of all bands' bins, one after another */
    float least;
    float log_factor;    /* of the natural logarithm */
    const float *cosine; /* [features][bands], or NULL: features are the bands */
} mur_front_end_f32;

typedef struct mur_front_end_q16 {
    mur_front_end_shape shape;
    const uint16_t *window;  /* [window] times 2^15 */
    const int32_t *sines;    /* [fft / 4 + 1] times 2^31, the last one less */
    const uint16_t *weights; /* times 2^weight_shift */
    int16_t weight_shift;
    int16_t most_shift;    /* a quiet frame's samples are multiplied by at most 2^most_shift */
    uint32_t least;        /* times 2^least_shift, at least 2^31 */
    int16_t least_shift;   /* */
    uint32_t log_factor;   /* of the logarithm to base 2, times 2^28 */
    const int16_t *cosine; /* [features][bands] times 2^15, or NULL: features are the bands */
} mur_front_end_q16;

/* Bytes of scratch for either arithmetic, aligned to 8, which no call needs to find again. */
#define MUR_FRONT_END_SCRATCH_BYTES(fft, bands) (((fft) + (bands) + 2u) * 4u)

/* samples [window] to features [features]. */
void mur_front_end_f32_run(const mur_front_end_f32 *front, const int16_t *samples, void *scratch,
                           float *features);
/* The same in integers, without floating point: features are times 2^16. Their distance from those
 * of floats is more than 40 dB below them. */
void mur_front_end_q16_run(const mur_front_end_q16 *front, const int16_t *samples, void *scratch,
                           int32_t *features);

/* 1 / scale of an int8 input as mur_feature_s8 takes it; scale at least 2^-14 */
#define MUR_PER_SCALE(scale) ((int32_t)(65536.0f / (scale) + 0.5f))

/* A feature of mur_front_end_q16_run as an input's int8, to nearest. */
static inline int8_t mur_feature_s8(int32_t feature, int32_t per_scale, int32_t zero)
{
    int64_t level = (((int64_t)feature * per_scale + (int64_t)0x80000000) >> 32) + zero;

    return (int8_t)(level < -128 ? -128 : level > 127 ? 127 : level);
}

#endif

/* mur_front_end_f32.c - features of a frame in floating point. */
#include <stddef.h>

#include "mur_front_end.h"
#include "mur_real.h"

#define NUMBER float
#define WEIGHT float
#define SUM float
#define FRONT mur_front_end_f32
#define HALF(x) (x)
#define TIMES(x, w) ((x) * (w))

static inline float sample_at(const mur_front_end_f32 *front, const int16_t *samples, uint32_t i,
                              int shift)
{
    (void)shift;
    return (float)samples[i] * front->window[i];
}

static inline void put_energy(float *point, float real, float imaginary, uint32_t power)
{
    float square = real * real + imaginary * imaginary;

    *point = power == 2 ? square : mur_sqrt(square);
}

static inline float energy_at(const float *point)
{
    return *point;
}

#include "mur_spectrum.h"

/* features [features] from the bands' logarithms */
static void turn_into_cepstra(const mur_front_end_f32 *front, const float *bands, float *features)
{
    const float *cosine = front->cosine;

    for (uint32_t f = 0; f < front->shape.features; f++) {
        float sum = 0;

        for (uint32_t b = 0; b < front->shape.bands; b++)
            sum += *cosine++ * bands[b];
        features[f] = sum;
    }
}

void mur_front_end_f32_run(const mur_front_end_f32 *front, const int16_t *samples, void *scratch,
                           float *features)
{
    const mur_front_end_shape *shape = &front->shape;
    uint32_t count = shape->fft / 2u;
    const float *weights = front->weights;
    float *z = scratch, *bands = front->cosine ? z + shape->fft + 2 : features;

    load(front, samples, 0, z);
    transform(z, count, front->sines);
    put_energies(z, count, front->sines, shape);
    for (uint32_t b = 0; b < shape->bands; b++) {
        float band = band_sum(z, shape->first[b], shape->bins[b], &weights);

        band = shape->is_floor ? mur_max(band, front->least) : band + front->least;
        bands[b] = mur_real_log(band) * front->log_factor;
    }
    if (front->cosine)
        turn_into_cepstra(front, bands, features);
}

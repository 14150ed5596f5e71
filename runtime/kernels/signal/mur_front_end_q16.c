/* mur_front_end_q16.c - features of a frame in integers.
 *
 * The frame is made as loud as 31 bits allow; each stage of the transform halves, so that nothing
 * overflows and what is small keeps its digits. Exponents are put right in the logarithm.
 */
#include <stddef.h>
#include <string.h>

#include "mur_front_end.h"

#define NUMBER int32_t
#define WEIGHT uint16_t
#define SUM uint64_t
#define FRONT mur_front_end_q16
#define HALF(x) ((x) >> 1)
/* half of the product, for sines have 31 bits behind the point */
#define TIMES(x, w) ((int32_t)((int64_t)(x) * (w) >> 32))

enum { SQUARE_SHIFT = 16 }; /* by which squares are cut, so that a band's sum has 64 bits */

static inline int32_t sample_at(const mur_front_end_q16 *front, const int16_t *samples, uint32_t i,
                                int shift)
{
    return samples[i] * front->window[i] * (1 << shift);
}

/* of x > 0 */
static inline uint32_t zeros_before(uint32_t x)
{
#ifdef __GNUC__
    return (uint32_t)__builtin_clz(x);
#else
    uint32_t zeros = 0;

    for (; !(x >> 31); x <<= 1)
        zeros++;
    return zeros;
#endif
}

static inline uint32_t zeros_before_wide(uint64_t x)
{
    return x >> 32 ? zeros_before((uint32_t)(x >> 32)) : 32 + zeros_before((uint32_t)x);
}

static inline uint32_t times_32(uint32_t x, uint32_t y) /* the product's upper half */
{
    return (uint32_t)((uint64_t)x * y >> 32);
}

/* Of a square below 2^62, to 2^-19: of v = square / 2^n in 1/4..1 first y = 1 / sqrt v, by a
 * parabola and two steps of Newton's, then v y. */
static uint32_t root_of(uint64_t square)
{
    uint32_t places, v, y;

    if (square == 0)
        return 0;
    places = zeros_before_wide(square) / 2;
    v = (uint32_t)(square << 2 * places >> 32);
    y = 2867723842u - times_32(v, 3527379107u - times_32(v, 1759203945u)); /* times 2^30 */
    for (uint32_t i = 0; i < 2; i++)
        y = times_32(y, (3u << 28) - times_32(v, times_32(y, y))) << 3;
    return times_32(v, y) << 1 >> (places - 1);
}

static inline void put_energy(int32_t *point, int32_t real, int32_t imaginary, uint32_t power)
{
    uint64_t energy = (uint64_t)((int64_t)real * real) + (uint64_t)((int64_t)imaginary * imaginary);

    energy = power == 2 ? energy >> SQUARE_SHIFT : root_of(energy);
    memcpy(point, &energy, sizeof(energy));
}

static inline uint64_t energy_at(const int32_t *point)
{
    uint64_t energy;

    memcpy(&energy, point, sizeof(energy));
    return energy;
}

#include "mur_spectrum.h"

/* how often the frame can be doubled */
static int shift_for(const mur_front_end_q16 *front, const int16_t *samples)
{
    int32_t greatest = 0, shift = 0;

    for (uint32_t i = 0; i < front->shape.window; i++) {
        int32_t size = samples[i] < 0 ? -samples[i] : samples[i];

        greatest = size > greatest ? size : greatest;
    }
    while (shift < front->most_shift && greatest << (shift + 1) <= 32768)
        shift++;
    return shift;
}

/* by which power of two bands are greater than they are in floats */
static int band_exponent(const mur_front_end_q16 *front, int shift)
{
    int exponent = 29 + shift;

    for (uint32_t count = front->shape.fft / 2u; count > 1; count /= 2)
        exponent--;
    return front->shape.power * exponent + front->weight_shift -
           (front->shape.power == 2 ? SQUARE_SHIFT : 0);
}

/* of x > 0, times 2^20: a polynomial between powers of two, to 2^-16 */
static int32_t log2_of(uint64_t x)
{
    static const int32_t q[] = { -96956573, 318743396, -573763223, 949009593 };
    uint32_t zeros = zeros_before_wide(x);
    int32_t whole = 63 - (int32_t)zeros, p = 0;
    int32_t f = (int32_t)(x << zeros >> 32 & 0x7fffffff); /* x = 2^whole (1 + f / 2^31) */

    for (uint32_t i = 0; i < sizeof(q) / sizeof(q[0]); i++)
        p = (int32_t)((int64_t)p * f >> 31) + q[i];
    p = (int32_t)((int64_t)p * (0x7fffffff - f) >> 31);
    p = (int32_t)((int64_t)p * f >> 31);
    return whole * (1 << 20) + ((f + p) >> 11);
}

static uint64_t least_at(const mur_front_end_q16 *front, int exponent)
{
    int places = exponent - front->least_shift;

    return places >= 0    ? (uint64_t)front->least << places
           : places > -32 ? front->least >> -places
                          : 0;
}

/* features [features] from the bands' logarithms */
static void turn_into_cepstra(const mur_front_end_q16 *front, const int32_t *bands,
                              int32_t *features)
{
    const int16_t *cosine = front->cosine;

    for (uint32_t f = 0; f < front->shape.features; f++) {
        int64_t sum = 1 << 14;

        for (uint32_t b = 0; b < front->shape.bands; b++)
            sum += (int64_t)*cosine++ * bands[b];
        features[f] = (int32_t)(sum >> 15);
    }
}

void mur_front_end_q16_run(const mur_front_end_q16 *front, const int16_t *samples, void *scratch,
                           int32_t *features)
{
    const mur_front_end_shape *shape = &front->shape;
    uint32_t count = shape->fft / 2u;
    int shift = shift_for(front, samples), exponent = band_exponent(front, shift);
    uint64_t least = least_at(front, exponent);
    const uint16_t *weights = front->weights;
    int32_t *z = scratch, *bands = front->cosine ? z + shape->fft + 2 : features;

    load(front, samples, shift, z);
    transform(z, count, front->sines);
    put_energies(z, count, front->sines, shape);
    for (uint32_t b = 0; b < shape->bands; b++) {
        uint64_t band = band_sum(z, shape->first[b], shape->bins[b], &weights);
        int32_t log;

        band = !shape->is_floor ? band + least : band < least ? least : band;
        log = log2_of(band ? band : 1) - exponent * (1 << 20);
        bands[b] = (int32_t)((int64_t)log * (int64_t)front->log_factor >> 32);
    }
    if (front->cosine)
        turn_into_cepstra(front, bands, features);
}

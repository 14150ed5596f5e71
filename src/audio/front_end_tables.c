/* front_end_tables.c - computes the tables of an audio front end, for floats and for integers. */
#include "audio/audio_front_end.h"

#include <math.h>

#include "base/real.h"

static const double pi = 3.14159265358979323846;

static double window_at(const muc_front_end *front, uint32_t i)
{
    double wave = muc_cos(2 * pi * i / front->window);

    switch ((enum muc_front_shape)front->shape) {
    case MUC_FRONT_shape_hann:
        return 0.5 - 0.5 * wave;
    case MUC_FRONT_shape_hamming:
        return 0.54 - 0.46 * wave;
    case MUC_FRONT_shape_ones:
        break;
    }
    return 1;
}

static int64_t nearest(double x)
{
    return (int64_t)floor(x + 0.5);
}

static muc_status build_window(muc_context *ctx, muc_arena *arena, const muc_front_end *front,
                               muc_front_end_tables *out)
{
    uint16_t *whole;
    float *real;

    MUC_TRY(MUC_ARENA_NEW(ctx, arena, front->window, &real));
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, front->window, &whole));
    for (uint32_t i = 0; i < front->window; i++) {
        double w = window_at(front, i);

        real[i] =
            (float)(w / 65536); /* samples are n / 32768; spectra are computed twice as great */
        whole[i] = (uint16_t)nearest(w * 32768);
    }
    out->f32.window = real;
    out->q16.window = whole;
    return MUC_OK;
}

static muc_status build_sines(muc_context *ctx, muc_arena *arena, const muc_front_end *front,
                              muc_front_end_tables *out)
{
    uint32_t quarter = front->fft / 4;
    int32_t *whole;
    float *real;

    MUC_TRY(MUC_ARENA_NEW(ctx, arena, quarter + 1, &real));
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, quarter + 1, &whole));
    for (uint32_t i = 0; i <= quarter; i++) {
        double s = i == quarter ? 1 : muc_sin(2 * pi * i / front->fft);

        real[i] = (float)s;
        whole[i] = (int32_t)muc_min((double)nearest(s * 2147483648.0), INT32_MAX);
    }
    out->f32.sines = real;
    out->q16.sines = whole;
    return MUC_OK;
}

/* ---- bands ---- */

/* a band's first point and how many are not 0, or 0 */
static uint16_t find_bins(const double *weights, uint32_t points, uint16_t *first)
{
    uint32_t begin = 0, end = points;

    while (begin < points && !(weights[begin] > 0))
        begin++;
    while (end > begin && !(weights[end - 1] > 0))
        end--;
    *first = (uint16_t)(begin < end ? begin : 0);
    return (uint16_t)(end - begin);
}

static void find_points(const muc_front_end *front, const uint16_t *first, const uint16_t *bins,
                        mur_front_end_shape *shape)
{
    uint32_t begin = front->fft, end = 0;

    for (uint32_t b = 0; b < front->bands; b++)
        if (bins[b]) {
            uint32_t behind = (uint32_t)first[b] + bins[b];

            begin = first[b] < begin ? first[b] : begin;
            end = behind > end ? behind : end;
        }
    *shape = (mur_front_end_shape){
        .window = (uint16_t)front->window,
        .hop = (uint16_t)front->hop,
        .fft = (uint16_t)front->fft,
        .bands = (uint16_t)front->bands,
        .features = (uint16_t)muc_front_end_features(front),
        .begin = (uint16_t)begin,
        .end = (uint16_t)end,
        .power = (uint8_t)front->power,
        .is_floor = front->log != MUC_FRONT_log_ln,
        .first = first,
        .bins = bins,
    };
}

static double greatest_of(const double *values, size_t count)
{
    double greatest = 0;

    for (size_t i = 0; i < count; i++)
        greatest = muc_max(greatest, values[i]);
    return greatest;
}

/* 2^n */
static double power_of_two(int n)
{
    return ldexp(1, n);
}

/* by which power of two a band's sum is greater in integers than in floats, for a frame whose
 * samples are not doubled: band_exponent of mur_front_end_q16.c */
static int exponent_of(const muc_front_end *front, int weight_shift)
{
    int exponent = 29;

    for (uint32_t count = front->fft / 2; count > 1; count /= 2)
        exponent--;
    return (int)front->power * exponent + weight_shift - (front->power == 2 ? 16 : 0);
}

/* Exponents with which neither weights nor sums leave their bits: weights have 16, and `least` in a
 * sum's terms fewer than 62. */
static void choose_shifts(const muc_front_end *front, double greatest, mur_front_end_q16 *q)
{
    int shift = 0, least_shift = 0, most = 0;

    while (greatest * power_of_two(shift) < 32768)
        shift++;
    while (front->least * power_of_two(least_shift) < 2147483648.0)
        least_shift++;
    while (exponent_of(front, shift) - least_shift > 30)
        shift--;
    while (most < 15 &&
           exponent_of(front, shift) + (int)front->power * (most + 1) - least_shift <= 30)
        most++;
    q->weight_shift = (int16_t)shift;
    q->least_shift = (int16_t)least_shift;
    q->most_shift = (int16_t)most;
    q->least = (uint32_t)muc_min(front->least * power_of_two(least_shift), UINT32_MAX);
}

static muc_status build_bands(muc_context *ctx, muc_arena *arena, const muc_front_end *front,
                              muc_front_end_tables *out)
{
    uint32_t points = front->fft / 2 + 1, at = 0;
    uint16_t *first, *bins, *whole;
    double *filters;
    float *real;

    MUC_TRY(muc_mel_filters(ctx, arena, front, &filters));
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, front->bands, &first));
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, front->bands, &bins));
    for (uint32_t b = 0; b < front->bands; b++) {
        bins[b] = find_bins(filters + (size_t)b * points, points, &first[b]);
        out->weight_count += bins[b];
        out->empty_bands += !bins[b];
    }
    if (out->empty_bands == front->bands)
        return muc_fail(ctx, MUC_USAGE, "--features", MUC_NO_OFFSET,
                        "no point of a spectrum of fft=%u lies in any band", front->fft);
    choose_shifts(front, greatest_of(filters, (size_t)front->bands * points), &out->q16);
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, out->weight_count, &real));
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, out->weight_count, &whole));
    for (uint32_t b = 0; b < front->bands; b++)
        for (uint32_t i = 0; i < bins[b]; i++, at++) {
            double weight = filters[(size_t)b * points + first[b] + i];

            real[at] = (float)weight;
            whole[at] = (uint16_t)muc_min(
                (double)nearest(weight * power_of_two(out->q16.weight_shift)), UINT16_MAX);
        }
    out->f32.weights = real;
    out->q16.weights = whole;
    find_points(front, first, bins, &out->f32.shape);
    return MUC_OK;
}

/* ---- logarithms, cepstra ---- */

static muc_status build_cosines(muc_context *ctx, muc_arena *arena, const muc_front_end *front,
                                muc_front_end_tables *out)
{
    int16_t *whole;
    float *real;

    if (!front->cepstra)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, (uint64_t)front->cepstra * front->bands, &real));
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, (uint64_t)front->cepstra * front->bands, &whole));
    for (uint32_t k = 0; k < front->cepstra; k++)
        for (uint32_t b = 0; b < front->bands; b++) {
            bool lesser = k == 0 && front->dct == MUC_FRONT_dct_ortho;
            double scale = sqrt((lesser ? 1.0 : 2.0) / front->bands);
            double c = scale * muc_cos(pi * k * (b + 0.5) / front->bands);

            real[k * front->bands + b] = (float)c;
            whole[k * front->bands + b] = (int16_t)muc_min((double)nearest(c * 32768), INT16_MAX);
        }
    out->f32.cosine = real;
    out->q16.cosine = whole;
    return MUC_OK;
}

/* of the logarithm to base 2 */
static double log_factor(const muc_front_end *front)
{
    double two = muc_log(2);

    switch ((enum muc_front_log)front->log) {
    case MUC_FRONT_log_log10:
        return two / muc_log(10);
    case MUC_FRONT_log_db:
        return 10 * two / muc_log(10);
    case MUC_FRONT_log_ln:
        break;
    }
    return two;
}

muc_status muc_front_end_build(muc_context *ctx, muc_arena *arena, const muc_front_end *front,
                               muc_front_end_tables *out)
{
    double factor = log_factor(front);

    *out = (muc_front_end_tables){ 0 };
    MUC_TRY(build_window(ctx, arena, front, out));
    MUC_TRY(build_sines(ctx, arena, front, out));
    MUC_TRY(build_bands(ctx, arena, front, out));
    MUC_TRY(build_cosines(ctx, arena, front, out));
    out->q16.shape = out->f32.shape;
    out->f32.least = (float)front->least;
    out->f32.log_factor = (float)(factor / muc_log(2));
    out->q16.log_factor = (uint32_t)nearest(factor * 268435456.0);
    return MUC_OK;
}

/* mel_filters.c - the triangles of mel bands, in the forms of the libraries that networks are
 * trained with. */
#include "audio/audio_front_end.h"

#include <math.h>

#include "base/real.h"

static const double slaney_knee = 1000, slaney_step = 200.0 / 3; /* Hz; linear below the knee */

static double slaney_ratio(void)
{
    return muc_log(6.4) / 27; /* of frequencies a mel apart, above the knee */
}

static double mel_of(const muc_front_end *front, double hertz)
{
    if (front->mel != MUC_FRONT_mel_slaney)
        return 2595 * (muc_log(1 + hertz / 700) / muc_log(10));
    return hertz < slaney_knee
               ? hertz / slaney_step
               : slaney_knee / slaney_step + muc_log(hertz / slaney_knee) / slaney_ratio();
}

static double hertz_of(const muc_front_end *front, double mel)
{
    double above = mel - slaney_knee / slaney_step;

    if (front->mel != MUC_FRONT_mel_slaney)
        return 700 * (muc_exp(mel / 2595 * muc_log(10)) - 1);
    return above < 0 ? mel * slaney_step : slaney_knee * muc_exp(above * slaney_ratio());
}

/* mel of corner i of bands + 2 */
static double corner(const muc_front_end *front, uint32_t i)
{
    double low = mel_of(front, front->low), high = mel_of(front, front->high);
    /* MelWeightMatrix divides by one more than there are steps */
    uint32_t steps = front->bands + (front->mel == MUC_FRONT_mel_onnx ? 2 : 1);

    return low + (high - low) * i / steps;
}

/* a triangle over any measure of frequency */
static double triangle(double x, double left, double top, double right)
{
    return muc_max(0, muc_min((x - left) / (top - left), (right - x) / (right - top)));
}

static void fill_triangle(const muc_front_end *front, uint32_t band, double *weights)
{
    bool over_mel = front->mel == MUC_FRONT_mel_tensorflow;
    double at[3];

    for (uint32_t i = 0; i < 3; i++) {
        at[i] = corner(front, band + i);
        if (!over_mel)
            at[i] = hertz_of(front, at[i]);
    }
    for (uint32_t k = over_mel; k <= front->fft / 2; k++) {
        double x = (double)k * front->rate / front->fft;

        weights[k] = triangle(over_mel ? mel_of(front, x) : x, at[0], at[1], at[2]);
    }
}

/* between whole points, the middle one included */
static void fill_onnx(const muc_front_end *front, uint32_t band, double *weights)
{
    uint32_t at[3];

    for (uint32_t i = 0; i < 3; i++) {
        double hertz = hertz_of(front, corner(front, band + i));

        at[i] = (uint32_t)((front->fft + 1) * hertz / front->rate);
    }
    if (at[0] == at[1])
        weights[at[1]] = 1;
    for (uint32_t k = at[0]; k < at[1]; k++)
        weights[k] = (double)(k - at[0]) / (at[1] - at[0]);
    for (uint32_t k = at[1]; k < at[2]; k++)
        weights[k] = (double)(at[2] - k) / (at[2] - at[1]);
    if (at[0] < at[1] && at[1] == at[2])
        weights[at[1]] = 1;
}

muc_status muc_mel_filters(muc_context *ctx, muc_arena *arena, const muc_front_end *front,
                           double **out)
{
    uint32_t points = front->fft / 2 + 1;

    MUC_TRY(MUC_ARENA_NEW(ctx, arena, (uint64_t)front->bands * points, out));
    for (uint32_t band = 0; band < front->bands; band++) {
        double *weights = *out + (size_t)band * points;
        double width =
            hertz_of(front, corner(front, band + 2)) - hertz_of(front, corner(front, band));

        if (front->mel == MUC_FRONT_mel_onnx)
            fill_onnx(front, band, weights);
        else
            fill_triangle(front, band, weights);
        for (uint32_t k = 0; front->norm == MUC_FRONT_norm_slaney && k < points; k++)
            weights[k] *= 2 / width;
    }
    return MUC_OK;
}

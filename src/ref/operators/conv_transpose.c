/* conv_transpose.c - the gradient of convolution: each element of x adds its share of the weights
 * to the places that a convolution's window over the output would read. */
#include <string.h>

#include "ref/window.h"

typedef struct transposed {
    const muc_ref_call *call;
    muc_ref_window w; /* of the output, seen as what is convolved to x */
    size_t groups, in_each, out_each, in_channels;
    uint8_t *scratch; /* [parts]: taps, then sums [output positions] */
    size_t scratch_bytes;
} transposed;

static double weight_at(const transposed *t, size_t in, size_t out, size_t tap)
{
    const muc_ref_value *weights = t->call->inputs[1];

    return muc_ref_real(weights, t->w.channels_last ? (out * t->w.taps + tap) * t->in_channels + in
                                                    : (in * t->out_each + out) * t->w.taps + tap);
}

/* one channel of one image, summed in double over x's positions, then channels, then taps */
static void plane(const transposed *t, size_t part, size_t image, size_t out)
{
    const muc_ref_window *w = &t->w;
    const muc_ref_value *x = t->call->inputs[0], *bias = muc_ref_input_of(t->call, 2);
    ptrdiff_t *taps = (ptrdiff_t *)(void *)(t->scratch + part * t->scratch_bytes);
    double *sums = (double *)(void *)(taps + w->taps);
    size_t group = out / t->out_each;

    for (size_t i = 0; i < w->positions; i++)
        sums[i] = bias ? muc_ref_real(bias, out) : 0;
    for (size_t p = 0; p < w->out_positions; p++) {
        muc_ref_window_taps(w, p, taps);
        for (size_t c = 0; c < t->in_each; c++) {
            size_t in = group * t->in_each + c;
            size_t at = w->channels_last ? (image * w->out_positions + p) * t->in_channels + in
                                         : (image * t->in_channels + in) * w->out_positions + p;
            double value = muc_ref_real(x, at);

            for (size_t tap = 0; tap < w->taps; tap++)
                if (taps[tap] >= 0)
                    sums[taps[tap]] += value * weight_at(t, in, out - group * t->out_each, tap);
        }
    }
    for (size_t i = 0; i < w->positions; i++)
        muc_ref_store_reals(t->call->output,
                            w->channels_last ? (image * w->positions + i) * w->channels + out
                                             : (image * w->channels + out) * w->positions + i,
                            1, &sums[i]);
}

static void planes(void *arg, size_t part, size_t first, size_t end)
{
    const transposed *t = arg;

    for (size_t i = first; i < end; i++)
        plane(t, part, i / t->w.channels, i % t->w.channels);
}

muc_status muc_kernel_conv_transpose(const muc_ref_call *call)
{
    transposed t = { .call = call };
    muc_ref_window *w = &t.w;
    void *scratch;

    MUC_TRY(muc_ref_window_of(call, call->output, call->inputs[1], call->inputs[0], w));
    t.groups = (size_t)muc_node_integer_or(call->node, MUC_KEY_GROUPS, 1);
    t.in_channels = w->out_channels;
    t.in_each = t.in_channels / t.groups;
    t.out_each = w->channels / t.groups;
    t.scratch_bytes = w->taps * sizeof(ptrdiff_t) + w->positions * sizeof(double);
    MUC_TRY(muc_ref_reserve(call, muc_ref_parts(call->ctx) * t.scratch_bytes, &scratch));
    t.scratch = scratch;
    return muc_ref_split(call->ctx, w->batch * w->channels,
                         w->batch * w->channels * w->out_positions * t.in_each * w->taps, planes,
                         &t);
}

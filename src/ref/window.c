/* window.c - the geometry of convolutions and pools. */
#include "ref/window.h"

enum { MOST_TAPS = 1 << 28 };

static size_t item(const muc_ref_call *call, muc_attribute_key key, uint32_t i, size_t fallback)
{
    const int64_t *items = muc_node_integers(call->node, key);

    return items ? (size_t)items[i] : fallback;
}

muc_status muc_ref_window_of(const muc_ref_call *call, const muc_ref_value *x,
                             const muc_ref_value *weights, const muc_ref_value *out,
                             muc_ref_window *w)
{
    uint32_t spatial = x->rank - 2, missing = MUC_REF_SPATIAL - spatial, first;

    w->channels_last = muc_node_integer_or(call->node, MUC_KEY_CHANNELS_LAST, 0) == 1;
    first = w->channels_last ? 1 : 2;
    w->batch = x->dims[0];
    w->channels = x->dims[w->channels_last ? x->rank - 1 : 1];
    w->out_channels = out->dims[w->channels_last ? x->rank - 1 : 1];
    w->positions = w->out_positions = w->taps = 1;
    for (uint32_t d = 0; d < MUC_REF_SPATIAL; d++) {
        uint32_t i = d - missing;
        bool there = d >= missing;

        w->in[d] = there ? x->dims[first + i] : 1;
        w->out[d] = there ? out->dims[first + i] : 1;
        w->kernel[d] = !there    ? 1
                       : weights ? weights->dims[first + i]
                                 : item(call, MUC_KEY_KERNEL, i, 1);
        w->stride[d] = there ? item(call, MUC_KEY_STRIDES, i, 1) : 1;
        w->dilation[d] = there ? item(call, MUC_KEY_DILATIONS, i, 1) : 1;
        w->begin[d] = there ? item(call, MUC_KEY_PADS, i, 0) : 0;
        w->end[d] = there ? item(call, MUC_KEY_PADS, spatial + i, 0) : 0;
        w->positions *= w->in[d];
        w->out_positions *= w->out[d];
        if (w->kernel[d] > MOST_TAPS / w->taps)
            return muc_fail_on(muc_node_subject(call->ctx, call->graph, call->node),
                               MUC_UNSUPPORTED, "a kernel of more than %d elements", MOST_TAPS);
        w->taps *= w->kernel[d];
    }
    return MUC_OK;
}

/* of one dimension: the input's coordinate under tap k of output coordinate o, or -1 */
static ptrdiff_t coordinate(const muc_ref_window *w, unsigned d, size_t o, size_t k)
{
    size_t padded = o * w->stride[d] + k * w->dilation[d];

    return padded < w->begin[d] || padded - w->begin[d] >= w->in[d]
               ? -1
               : (ptrdiff_t)(padded - w->begin[d]);
}

void muc_ref_window_taps(const muc_ref_window *w, size_t at, ptrdiff_t *taps)
{
    size_t ox = at % w->out[2], oy = at / w->out[2] % w->out[1], oz = at / w->out[2] / w->out[1];

    for (size_t kz = 0; kz < w->kernel[0]; kz++) {
        ptrdiff_t z = coordinate(w, 0, oz, kz);

        for (size_t ky = 0; ky < w->kernel[1]; ky++) {
            ptrdiff_t y = coordinate(w, 1, oy, ky);
            ptrdiff_t row =
                z < 0 || y < 0 ? -1 : (z * (ptrdiff_t)w->in[1] + y) * (ptrdiff_t)w->in[2];

            for (size_t kx = 0; kx < w->kernel[2]; kx++) {
                ptrdiff_t x = coordinate(w, 2, ox, kx);

                *taps++ = row < 0 || x < 0 ? -1 : row + x;
            }
        }
    }
}

size_t muc_ref_window_counted(const muc_ref_window *w, size_t at, const ptrdiff_t *taps,
                              bool counts_padding)
{
    size_t count = counts_padding ? 1 : 0;

    for (size_t t = 0; !counts_padding && t < w->taps; t++)
        count += taps[t] >= 0;
    for (unsigned d = MUC_REF_SPATIAL; counts_padding && d-- > 0; at /= w->out[d]) {
        /* a window of ceil_mode may reach beyond the padding, which does not count */
        size_t start = at % w->out[d] * w->stride[d], end = w->begin[d] + w->in[d] + w->end[d];
        size_t inside = 0;

        for (size_t k = 0; k < w->kernel[d]; k++)
            inside += start + k * w->dilation[d] < end;
        count *= inside;
    }
    return count;
}

/* sliding_window.c - padding that follows from sizes, and a window as attributes of a node. */
#include "import/sliding_window.h"

int64_t muc_window_span(const muc_window *w, uint32_t i)
{
    return (w->kernel[i] - 1) * w->dilations[i] + 1;
}

void muc_window_share(muc_window *w, uint32_t i, int64_t total, muc_padding padding)
{
    int64_t all = total < 0 ? 0 : total;

    w->pads[i] = padding == MUC_PADDING_CAUSAL       ? all
                 : padding == MUC_PADDING_SAME_LOWER ? all - all / 2
                                                     : all / 2;
    w->pads[w->spatial + i] = all - w->pads[i];
}

void muc_window_pad(muc_window *w, uint32_t i, int64_t size, muc_padding padding)
{
    int64_t windows, span = muc_window_span(w, i);

    switch (padding) {
    case MUC_PADDING_GIVEN:
        break;
    case MUC_PADDING_VALID:
        muc_window_share(w, i, 0, padding);
        break;
    case MUC_PADDING_CAUSAL:
        muc_window_share(w, i, span - 1, padding);
        break;
    case MUC_PADDING_SAME:
    case MUC_PADDING_SAME_LOWER:
        windows = (size + w->strides[i] - 1) / w->strides[i];
        muc_window_share(w, i, (windows - 1) * w->strides[i] + span - size, padding);
        break;
    }
}

void muc_window_pad_transposed(muc_window *w, uint32_t i, int64_t size, int64_t wanted,
                               muc_padding padding, int64_t *more)
{
    int64_t total = w->strides[i] * (size - 1) + *more + muc_window_span(w, i) - wanted;

    *more -= total < 0 ? total : 0;
    muc_window_share(w, i, total, padding);
}

static bool any_but(const int64_t *items, uint32_t count, int64_t value)
{
    for (uint32_t i = 0; i < count; i++)
        if (items[i] != value)
            return true;
    return false;
}

void muc_window_set(const muc_window *w, muc_attributes *a, bool dilations, bool pads)
{
    muc_attributes_set_integers(a, MUC_KEY_STRIDES, w->strides, w->spatial);
    if (dilations || any_but(w->dilations, w->spatial, 1))
        muc_attributes_set_integers(a, MUC_KEY_DILATIONS, w->dilations, w->spatial);
    if (pads || any_but(w->pads, 2 * w->spatial, 0))
        muc_attributes_set_integers(a, MUC_KEY_PADS, w->pads, 2 * w->spatial);
}

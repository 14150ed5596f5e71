/* sampling.c - computes where the elements of a resized dimension come from. */
#include "graph/sampling.h"

#include <math.h>
#include <stddef.h>

static double formula(const muc_sampling *s, size_t i)
{
    /* of the size that the scale gives, which ONNX does not round */
    double x = (double)i, in = (double)s->in, out = s->scale * in;

    switch ((unsigned)s->coordinates) {
    case MUC_WORD_ALIGN_CORNERS:
        return out == 1 ? 0 : x * (in - 1) / (out - 1);
    case MUC_WORD_ASYMMETRIC:
        return x / s->scale;
    case MUC_WORD_TF_CROP_AND_RESIZE:
        return s->out == 1 ? 0.5 * (s->start + s->end) * (in - 1)
                           : s->start * (in - 1) + x * (s->end - s->start) * (in - 1) / (out - 1);
    case MUC_WORD_PYTORCH_HALF_PIXEL:
        return s->out == 1 ? 0 : (x + 0.5) / s->scale - 0.5;
    case MUC_WORD_TF_HALF_PIXEL_FOR_NN:
        return (x + 0.5) / s->scale;
    case MUC_WORD_HALF_PIXEL_SYMMETRIC:
        return in / 2 * (1 - (double)s->out / out) + (x + 0.5) / s->scale - 0.5;
    default:
        return (x + 0.5) / s->scale - 0.5;
    }
}

/* within what integers can tell, whatever the scales are */
double muc_sampling_coordinate(const muc_sampling *s, size_t i)
{
    return fmax(-0x1p50, fmin(0x1p50, formula(s, i)));
}

static double nearest(const muc_sampling *s, double x)
{
    double below = floor(x);

    switch ((unsigned)s->rounding) {
    case MUC_WORD_FLOOR:
        return below;
    case MUC_WORD_CEIL:
        return ceil(x);
    case MUC_WORD_ROUND_PREFER_CEIL:
        return x - below >= 0.5 ? below + 1 : below;
    default:
        return x - below > 0.5 ? below + 1 : below;
    }
}

/* the interpolating function at distance x from its middle */
static double kernel(const muc_sampling *s, double x)
{
    double a = s->cubic;

    x = fabs(x);
    if (s->mode == MUC_WORD_LINEAR)
        return x < 1 ? 1 - x : 0;
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* factor of distances: below 1 the function is wider than the distance between elements */
double muc_sampling_widening(const muc_sampling *s)
{
    return s->antialias && s->scale < 1 ? s->scale : 1;
}

/* the neighbours of an element, from the first of them */
size_t muc_sampling_neighbours(const muc_sampling *s, ptrdiff_t *first)
{
    double reach = (s->mode == MUC_WORD_LINEAR ? 1 : 2) / muc_sampling_widening(s);

    if (s->mode == MUC_WORD_NEAREST) {
        *first = 0;
        return 1;
    }
    *first = (ptrdiff_t)floor(-reach) + 1;
    return (size_t)(2 - 2 * *first);
}

/* weights [count] of the neighbours of output element i, from *first on */
void muc_sampling_weigh(const muc_sampling *s, size_t i, size_t count, double *weights,
                        ptrdiff_t *first)
{
    double x = muc_sampling_coordinate(s, i), sum = 0;

    if (s->mode == MUC_WORD_NEAREST) {
        *first = (ptrdiff_t)nearest(s, x);
        weights[0] = 1;
        return;
    }
    *first += (ptrdiff_t)floor(x);
    for (size_t j = 0; j < count; j++) {
        ptrdiff_t place = *first + (ptrdiff_t)j;

        weights[j] = s->exclude_outside && (place < 0 || place >= (ptrdiff_t)s->in)
                         ? 0
                         : kernel(s, muc_sampling_widening(s) * ((double)place - x));
        sum += weights[j];
    }
    for (size_t j = 0; sum != 0 && j < count; j++)
        weights[j] /= sum;
}

muc_sampling muc_sampling_of(const muc_node *node, uint32_t rank, uint32_t d, size_t in, size_t out)
{
    const muc_attribute *scales = muc_node_attribute(node, MUC_KEY_SCALES);
    const muc_attribute *roi = muc_node_attribute(node, MUC_KEY_ROI);
    muc_sampling s = {
        .mode = muc_node_word_or(node, MUC_KEY_MODE, MUC_WORD_NEAREST),
        .coordinates = muc_node_word_or(node, MUC_KEY_COORDINATES, MUC_WORD_HALF_PIXEL),
        .rounding = muc_node_word_or(node, MUC_KEY_ROUNDING, MUC_WORD_ROUND_PREFER_FLOOR),
        .in = in,
        .out = out,
        .end = 1,
        .cubic = muc_node_real_or(node, MUC_KEY_CUBIC_COEFFICIENT, -0.75),
        .exclude_outside = muc_node_integer_or(node, MUC_KEY_EXCLUDE_OUTSIDE, 0) == 1,
        .antialias = muc_node_integer_or(node, MUC_KEY_ANTIALIAS, 0) == 1,
    };

    s.scale = scales ? scales->value.reals.items[d] : (double)s.out / (double)s.in;
    if (s.coordinates == MUC_WORD_TF_CROP_AND_RESIZE) {
        s.start = roi->value.reals.items[d];
        s.end = roi->value.reals.items[rank + d];
    }
    return s;
}

bool muc_sampling_is_kept(const muc_sampling *s)
{
    return s->in == s->out && s->scale == 1 && s->start == 0 && s->end == 1;
}

/* ---- TensorFlow Lite's way for integers ---- */

bool muc_resize_has_own_scales(const muc_graph *graph, const muc_node *node)
{
    const muc_tensor *x = &graph->tensors[node->inputs[0]], *y = &graph->tensors[node->outputs[0]];
    const muc_attribute *scales = muc_node_attribute(node, MUC_KEY_SCALES);

    for (uint32_t d = 0; scales && d < x->rank; d++) {
        const muc_expr_node *in = muc_expr_get(graph->pool, x->dims[d]);
        const muc_expr_node *out = muc_expr_get(graph->pool, y->dims[d]);

        if (x->dims[d] == y->dims[d] ? scales->value.reals.items[d] != 1
                                     : in->lo != in->hi || out->lo != out->hi ||
                                           scales->value.reals.items[d] * in->hi != out->hi)
            return true;
    }
    return false;
}

bool muc_resize_as_tflite(const muc_graph *graph, const muc_node *node, uint32_t *first)
{
    const muc_tensor *x = &graph->tensors[node->inputs[0]], *y = &graph->tensors[node->outputs[0]];
    muc_word coordinates = muc_node_word_or(node, MUC_KEY_COORDINATES, MUC_WORD_HALF_PIXEL);
    muc_word rounding = muc_node_word_or(node, MUC_KEY_ROUNDING, MUC_WORD_ROUND_PREFER_FLOOR);
    muc_word mode = muc_node_word_or(node, MUC_KEY_MODE, MUC_WORD_NEAREST);

    if (x->rank != 4 || x->dims[0] != y->dims[0] || muc_resize_has_own_scales(graph, node) ||
        muc_node_integer_or(node, MUC_KEY_ANTIALIAS, 0) ||
        muc_node_integer_or(node, MUC_KEY_EXCLUDE_OUTSIDE, 0))
        return false;
    *first = x->dims[3] == y->dims[3] ? 1 : 2;
    if (*first == 2 && x->dims[1] != y->dims[1])
        return false;
    if (coordinates == MUC_WORD_ASYMMETRIC)
        return mode == MUC_WORD_LINEAR || (mode == MUC_WORD_NEAREST && rounding == MUC_WORD_FLOOR);
    return (coordinates == MUC_WORD_HALF_PIXEL || coordinates == MUC_WORD_ALIGN_CORNERS) &&
           (mode == MUC_WORD_LINEAR ||
            (mode == MUC_WORD_NEAREST && rounding == MUC_WORD_ROUND_PREFER_CEIL));
}

static bool is_half(const muc_sampling *s)
{
    return s->coordinates == MUC_WORD_HALF_PIXEL;
}

static bool is_corners(const muc_sampling *s)
{
    return s->coordinates == MUC_WORD_ALIGN_CORNERS && s->out > 1;
}

/* in single precision, as TFLite */
size_t muc_sampling_nearest_q(const muc_sampling *s, size_t i)
{
    float scale =
        is_corners(s) ? (float)(s->in - 1) / (float)(s->out - 1) : (float)s->in / (float)s->out;
    float at = ((float)i + (is_half(s) ? 0.5f : 0.0f)) * scale;
    size_t found = (size_t)(s->coordinates == MUC_WORD_ALIGN_CORNERS ? roundf(at) : floorf(at));

    return found < s->in ? found : s->in - 1;
}

/* the two neighbours of output i, and the weight of the upper one in 1024ths */
void muc_sampling_neighbours_q(const muc_sampling *s, size_t i, size_t *lower, size_t *upper,
                               int64_t *weight)
{
    int64_t in = (int64_t)s->in, out = (int64_t)s->out, one = 1 << 10;
    int64_t scale =
        is_corners(s) ? (one * (in - 1) + (out - 1) / 2) / (out - 1) : (one * in + out / 2) / out;
    int64_t at = (int64_t)i * scale + (is_half(s) ? scale / 2 - (1 << 9) : 0);
    int64_t low = at / one > 0 ? at / one : 0, high = (at + one - 1) / one;

    *lower = (size_t)low;
    *upper = (size_t)(high < in - 1 ? high : in - 1);
    *weight = at - one * low;
}

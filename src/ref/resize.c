/* resize.c - sampling: one dimension after another, each output element a weighted sum of
 * neighbours along it. */
#include <math.h>

#include "ref/walk.h"

/* How one dimension is sampled. */
typedef struct sampling {
    muc_word mode, coordinates, rounding;
    size_t in, out;
    double scale, start, end; /* start, end: of roi */
    double cubic;             /* the coefficient of cubic interpolation */
    bool exclude_outside, antialias;
} sampling;

static double formula(const sampling *s, size_t i)
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
static double coordinate(const sampling *s, size_t i)
{
    return fmax(-0x1p50, fmin(0x1p50, formula(s, i)));
}

static double nearest(const sampling *s, double x)
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
static double kernel(const sampling *s, double x)
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
static double widening(const sampling *s)
{
    return s->antialias && s->scale < 1 ? s->scale : 1;
}

/* the neighbours of an element, from the first of them */
static size_t neighbours(const sampling *s, ptrdiff_t *first)
{
    double reach = (s->mode == MUC_WORD_LINEAR ? 1 : 2) / widening(s);

    if (s->mode == MUC_WORD_NEAREST) {
        *first = 0;
        return 1;
    }
    *first = (ptrdiff_t)floor(-reach) + 1;
    return (size_t)(2 - 2 * *first);
}

/* weights [count] of the neighbours of output element i, from *first on */
static void weigh(const sampling *s, size_t i, size_t count, double *weights, ptrdiff_t *first)
{
    double x = coordinate(s, i), sum = 0;

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
                         : kernel(s, widening(s) * ((double)place - x));
        sum += weights[j];
    }
    for (size_t j = 0; sum != 0 && j < count; j++)
        weights[j] /= sum;
}

/* from [outer][in][inner] to [outer][out][inner] */
static void sample(const sampling *s, size_t outer, size_t inner, const double *from, double *to,
                   double *weights)
{
    ptrdiff_t start;
    size_t count = neighbours(s, &start);

    for (size_t i = 0; i < s->out; i++) {
        ptrdiff_t first = start;

        weigh(s, i, count, weights, &first);
        for (size_t o = 0; o < outer * inner; o++) {
            const double *line = from + o / inner * s->in * inner + o % inner;
            double sum = 0;

            for (size_t j = 0; j < count; j++) {
                ptrdiff_t place = first + (ptrdiff_t)j, last = (ptrdiff_t)s->in - 1;

                place = place < 0 ? 0 : place > last ? last : place;
                if (weights[j] != 0)
                    sum += weights[j] * line[(size_t)place * inner];
            }
            to[(o / inner * s->out + i) * inner + o % inner] = sum;
        }
    }
}

static sampling sampling_of(const muc_ref_call *call, uint32_t d)
{
    const muc_node *node = call->node;
    const muc_attribute *scales = muc_node_attribute(node, MUC_KEY_SCALES);
    const muc_attribute *roi = muc_node_attribute(node, MUC_KEY_ROI);
    uint32_t rank = call->output->rank;
    sampling s = {
        .mode = muc_node_word_or(node, MUC_KEY_MODE, MUC_WORD_NEAREST),
        .coordinates = muc_node_word_or(node, MUC_KEY_COORDINATES, MUC_WORD_HALF_PIXEL),
        .rounding = muc_node_word_or(node, MUC_KEY_ROUNDING, MUC_WORD_ROUND_PREFER_FLOOR),
        .in = call->inputs[0]->dims[d],
        .out = call->output->dims[d],
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

/* whether the dimension stays as it is */
static bool is_kept(const sampling *s)
{
    return s->in == s->out && s->scale == 1 && s->start == 0 && s->end == 1;
}

/* the value of elements that tf_crop_and_resize finds outside of x */
static void extrapolate(const muc_ref_call *call, double *values)
{
    double value = muc_node_real_or(call->node, MUC_KEY_EXTRAPOLATION, 0);
    const muc_ref_value *out = call->output;
    size_t inner = 1;

    for (uint32_t d = out->rank; d-- > 0; inner *= out->dims[d]) {
        sampling s = sampling_of(call, d);

        for (size_t i = 0; i < s.out; i++) {
            double x = coordinate(&s, i);

            if (x >= 0 && x <= (double)s.in - 1)
                continue;
            for (size_t j = 0; j < out->elements / s.out; j++)
                values[(j / inner * s.out + i) * inner + j % inner] = value;
        }
    }
}

/* elements of the largest value on the way, and the most neighbours that a dimension asks for */
static muc_status measure(const muc_ref_call *call, size_t *elements, size_t *most)
{
    const muc_ref_value *x = call->inputs[0];
    uint64_t size = x->elements;

    *elements = x->elements;
    *most = 1;
    for (uint32_t d = 0; d < x->rank; d++) {
        sampling s = sampling_of(call, d);
        ptrdiff_t first;
        size_t count;

        /* the widened function reaches beyond what memory holds */
        if (widening(&s) < 1e-6)
            return muc_ref_fail(call, "a scale of %g", s.scale);
        count = neighbours(&s, &first);
        *most = count > *most ? count : *most;
        if (!muc_mul_u64(size / s.in, s.out, &size))
            return muc_ref_fail(call, "too many elements");
        *elements = size > *elements ? (size_t)size : *elements;
    }
    return MUC_OK;
}

muc_status muc_kernel_resize(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0];
    size_t elements, most, outer = 1;
    double *from, *to, *weights;
    void *room;

    if (call->output->elements == 0)
        return MUC_OK;
    if (x->elements == 0)
        return muc_ref_fail(call, "nothing to sample");
    MUC_TRY(measure(call, &elements, &most));
    if (elements > SIZE_MAX / 32 - most)
        return muc_ref_fail(call, "too many elements");
    MUC_TRY(muc_ref_reserve(call, (2 * elements + most) * sizeof(double), &room));
    from = room;
    to = from + elements;
    weights = to + elements;
    muc_ref_load_reals(x, 0, x->elements, from);
    elements = x->elements;
    for (uint32_t d = 0; d < x->rank; d++) {
        sampling s = sampling_of(call, d);

        if (!is_kept(&s)) {
            double *spare = from;

            sample(&s, outer, elements / outer / s.in, from, to, weights);
            elements = elements / s.in * s.out;
            from = to;
            to = spare;
        }
        outer *= s.out;
    }
    if (muc_node_word_or(call->node, MUC_KEY_COORDINATES, MUC_WORD_HALF_PIXEL) ==
        MUC_WORD_TF_CROP_AND_RESIZE)
        extrapolate(call, from);
    muc_ref_store_reals(call->output, 0, elements, from);
    return MUC_OK;
}

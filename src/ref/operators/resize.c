/* resize.c - sampling: one dimension after another, each output element a weighted sum of
 * neighbours along it. */
#include "graph/sampling.h"
#include "ref/walk.h"

/* from [outer][in][inner] to [outer][out][inner] */
static void sample(const muc_sampling *s, size_t outer, size_t inner, const double *from,
                   double *to, double *weights)
{
    ptrdiff_t start;
    size_t count = muc_sampling_neighbours(s, &start);

    for (size_t i = 0; i < s->out; i++) {
        ptrdiff_t first = start;

        muc_sampling_weigh(s, i, count, weights, &first);
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

static muc_sampling sampling_of(const muc_ref_call *call, uint32_t d)
{
    return muc_sampling_of(call->node, call->output->rank, d, call->inputs[0]->dims[d],
                           call->output->dims[d]);
}

/* the value of elements that tf_crop_and_resize finds outside of x */
static void extrapolate(const muc_ref_call *call, double *values)
{
    double value = muc_node_real_or(call->node, MUC_KEY_EXTRAPOLATION, 0);
    const muc_ref_value *out = call->output;
    size_t inner = 1;

    for (uint32_t d = out->rank; d-- > 0; inner *= out->dims[d]) {
        muc_sampling s = sampling_of(call, d);

        for (size_t i = 0; i < s.out; i++) {
            double x = muc_sampling_coordinate(&s, i);

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
        muc_sampling s = sampling_of(call, d);
        ptrdiff_t first;
        size_t count;

        /* the widened function reaches beyond what memory holds */
        if (muc_sampling_widening(&s) < 1e-6)
            return muc_ref_fail(call, "a scale of %g", s.scale);
        count = muc_sampling_neighbours(&s, &first);
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
        muc_sampling s = sampling_of(call, d);

        if (!muc_sampling_is_kept(&s)) {
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

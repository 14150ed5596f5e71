/* norm.c - normalisations. Means and variances are sums in double, variances of differences;
 * where a decoder's kernel has float32's order, in that. */
#include <math.h>

#include "graph/scales.h"
#include "ref/walk.h"

/* x as [outer][C][inner], wherever its channels are */
static muc_ref_along channels_of(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0];
    bool last = muc_node_integer_or(call->node, MUC_KEY_CHANNELS_LAST, 0) == 1;

    return muc_ref_along_of(x, last ? x->rank - 1 : 1);
}

muc_status muc_kernel_batch_norm(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0];
    double epsilon = muc_node_real(call->node, MUC_KEY_EPSILON);
    muc_ref_along a = channels_of(call);

    for (size_t i = 0; i < a.outer * a.extent; i++) {
        size_t c = i % a.extent;
        double scale = muc_ref_real(call->inputs[1], c), bias = muc_ref_real(call->inputs[2], c);
        double mean = muc_ref_real(call->inputs[3], c);
        double factor = scale / sqrt(muc_ref_real(call->inputs[4], c) + epsilon);

        for (size_t j = i * a.inner; j < (i + 1) * a.inner; j++) {
            double value = (muc_ref_real(x, j) - mean) * factor + bias;

            muc_ref_store_reals(call->output, j, 1, &value);
        }
    }
    return MUC_OK;
}

/* Elements at first + i * step + j, for i < count, j < run. */
typedef struct set {
    size_t first, count, step, run;
} set;

static void statistics(const muc_ref_value *x, set s, double *mean, double *variance)
{
    double n = (double)s.count * (double)s.run, sum = 0, squares = 0;

    for (size_t i = 0; i < s.count; i++)
        for (size_t j = 0; j < s.run; j++)
            sum += muc_ref_real(x, s.first + i * s.step + j);
    *mean = sum / n;
    for (size_t i = 0; i < s.count; i++)
        for (size_t j = 0; j < s.run; j++) {
            double rest = muc_ref_real(x, s.first + i * s.step + j) - *mean;

            squares += rest * rest;
        }
    *variance = squares / n;
}

/* instance_norm is group_norm of one channel a group */
muc_status muc_kernel_group_norm(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0];
    double epsilon = muc_node_real(call->node, MUC_KEY_EPSILON), mean, variance, factor;
    uint64_t dims[MUC_GRAPH_MAX_RANK];
    muc_norm_rows rows;

    for (uint32_t i = 0; i < x->rank; i++)
        dims[i] = x->dims[i];
    rows = muc_norm_rows_of(call->node, x->rank, dims);
    for (size_t r = 0; r < dims[0] * rows.groups; r++) {
        size_t group = r % rows.groups, gain = group * (rows.of_runs ? rows.runs : rows.width);
        set s = { (r - group) * muc_norm_columns(&rows) + group * rows.next, rows.runs, rows.step,
                  rows.width };

        statistics(x, s, &mean, &variance);
        factor = 1 / sqrt(variance + epsilon);
        for (size_t i = 0; i < s.count; i++)
            for (size_t j = 0; j < s.run; j++) {
                size_t c = gain + (rows.of_runs ? i : j), at = s.first + i * s.step + j;
                double value =
                    (muc_ref_real(x, at) - mean) * factor * muc_ref_real(call->inputs[1], c) +
                    muc_ref_real(call->inputs[2], c);

                muc_ref_store_reals(call->output, at, 1, &value);
            }
    }
    return MUC_OK;
}

/* scale and bias, which broadcast to the dimensions from axis on, beside one row */
typedef struct row {
    const muc_ref_call *call;
    size_t first, done;
    double mean, factor;
} row;

static void row_run(void *arg, size_t n, const size_t *at, const size_t *step)
{
    row *r = arg;

    for (size_t i = 0; i < n; i++, r->done++) {
        double value = (muc_ref_real(r->call->inputs[0], r->first + r->done) - r->mean) *
                       r->factor * muc_ref_real(r->call->inputs[1], at[0] + i * step[0]);

        if (muc_ref_input_of(r->call, 2))
            value += muc_ref_real(r->call->inputs[2], at[1] + i * step[1]);
        muc_ref_store_reals(r->call->output, r->first + r->done, 1, &value);
    }
}

/* eight interleaved sums, in the order of muc_ref_dot */
static float sum_of(const float *x, size_t n)
{
    float s[8] = { 0 }, sum;
    size_t i = 0;

    for (; i + 8 <= n; i += 8)
        for (size_t j = 0; j < 8; j++)
            s[j] += x[i + j];
    sum = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
    for (; i < n; i++)
        sum += x[i];
    return sum;
}

/* rows as a decoder has them: one gain and one bias a column */
static bool is_plain(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0];
    bool is = x->rank > 0 && call->node->input_count == 3 && call->node->output_count == 1 &&
              (size_t)muc_node_integer(call->node, MUC_KEY_AXIS) + 1 == x->rank;

    for (unsigned i = 0; is && i < 3; i++)
        is = call->inputs[i]->dtype == MUC_F32 &&
             (i == 0 || (call->inputs[i]->rank == 1 && call->inputs[i]->elements == x->columns));
    return is;
}

/* y = (x - mean) * factor * gain + bias in float32 (runtime/include/mur_decoder.h) */
static void plain_rows(const muc_ref_call *call, float epsilon)
{
    const muc_ref_value *in = call->inputs[0];
    const float *gain = muc_ref_floats(call->inputs[1]), *bias = muc_ref_floats(call->inputs[2]);
    size_t width = in->columns;

    for (size_t at = 0; at < in->elements; at += width) {
        const float *x = muc_ref_floats(in) + at;
        float *y = muc_ref_floats_out(call->output) + at, factor;
        float mean = sum_of(x, width) / (float)width;

        for (size_t i = 0; i < width; i++)
            y[i] = x[i] - mean;
        factor = 1 / sqrtf(muc_ref_dot(y, y, width) / (float)width + epsilon);
        for (size_t i = 0; i < width; i++)
            y[i] = y[i] * factor * gain[i] + bias[i];
    }
}

muc_status muc_kernel_layer_norm(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0];
    double epsilon = muc_node_real(call->node, MUC_KEY_EPSILON), variance;
    size_t axis = (size_t)muc_node_integer(call->node, MUC_KEY_AXIS), width = 1;
    muc_ref_value shape = *x;
    muc_ref_walk walk;
    row r = { .call = call };

    shape.rank = x->rank - (uint32_t)axis;
    for (uint32_t i = 0; i < shape.rank; i++) {
        shape.dims[i] = x->dims[axis + i];
        width *= shape.dims[i];
    }
    if (width == 0)
        return muc_ref_fail(call, "nothing to normalise");
    if (is_plain(call)) {
        plain_rows(call, (float)epsilon);
        return MUC_OK;
    }
    muc_ref_walk_of(&shape, call->inputs + 1, call->node->input_count - 1, &walk);
    for (size_t i = 0; i < x->elements / width; i++) {
        statistics(x, (set){ i * width, 1, 0, width }, &r.mean, &variance);
        r.factor = 1 / sqrt(variance + epsilon);
        r.first = i * width;
        r.done = 0;
        muc_ref_walk_each(&walk, row_run, &r);
        if (call->node->output_count > 1)
            muc_ref_store_reals(call->outputs[1], i, 1, &r.mean);
        if (call->node->output_count > 2)
            muc_ref_store_reals(call->outputs[2], i, 1, &r.factor);
    }
    return MUC_OK;
}

muc_status muc_kernel_lrn(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0];
    double alpha = muc_node_real(call->node, MUC_KEY_ALPHA);
    double beta = muc_node_real(call->node, MUC_KEY_BETA);
    double bias = muc_node_real(call->node, MUC_KEY_BIAS);
    size_t window = (size_t)muc_node_integer(call->node, MUC_KEY_WINDOW);
    size_t before = (window - 1) / 2, after = window - 1 - before;
    muc_ref_along a = channels_of(call);

    for (size_t i = 0; i < x->elements; i++) {
        size_t c = a.inner ? i / a.inner % a.extent : 0, line = i - c * a.inner;
        size_t end = a.extent - c > after ? c + after + 1 : a.extent;
        double sum = 0, value;

        for (size_t j = c > before ? c - before : 0; j < end; j++) {
            double neighbour = muc_ref_real(x, line + j * a.inner);

            sum += neighbour * neighbour;
        }
        value = muc_ref_real(x, i) / muc_ref_pow(bias + alpha / (double)window * sum, beta);
        muc_ref_store_reals(call->output, i, 1, &value);
    }
    return MUC_OK;
}

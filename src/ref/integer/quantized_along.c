/* quantized_along.c - quantized softmax, reductions and resizing. */
#include <math.h>
#include <string.h>

#include "graph/sampling.h"
#include "ref/integer/quantized.h"

/* ---- softmax ---- */

enum { SUM_BITS = 12 }; /* integer bits of the sum of exponentials */

static void softmax_one(const muc_ref_call *call, const muc_softmax_scales *s,
                        const muc_ref_along *along, size_t base)
{
    int32_t greatest = INT32_MIN, sum = 0, least, most, scale;
    int bits = 8 * (int)muc_ref_width(call->output), shift;

    muc_scale_clamp(call->node, muc_q_out(call), &least, &most);
    for (size_t i = 0; i < along->extent; i++) {
        int32_t q = muc_q_get(call->inputs[0], base + i * along->inner);

        greatest = q > greatest ? q : greatest;
    }
    for (size_t i = 0; i < along->extent; i++) {
        int32_t d = muc_q_get(call->inputs[0], base + i * along->inner) - greatest;

        if (d >= s->least)
            sum += muc_fixed_divide_pot(muc_fixed_exp(muc_multiply(d, s->difference)), SUM_BITS);
    }
    scale = muc_fixed_reciprocal(sum, SUM_BITS, &shift);
    for (size_t i = 0; i < along->extent; i++) {
        int32_t d = muc_q_get(call->inputs[0], base + i * along->inner) - greatest, q = 0;

        if (d >= s->least) {
            int32_t e = muc_fixed_exp(muc_multiply(d, s->difference));

            q = muc_fixed_divide_pot(muc_fixed_high_mul(scale, e), shift + 31 - bits);
        }
        muc_q_put(call->output, base + i * along->inner, muc_q_clamp(q, least, least, most));
    }
}

muc_status muc_check_q_softmax(const muc_ref_call *call)
{
    const muc_tensor *x = call->input_tensors[0];
    uint32_t extent = muc_q_most(call, x, (uint32_t)muc_node_integer(call->node, MUC_KEY_AXIS));

    MUC_TRY(muc_check_q_operands(call));
    if (x->dtype == MUC_I16 || extent > 1 << SUM_BITS)
        return muc_ref_fail(call,
                            "a quantized softmax of %u elements of %s, expected at most %d of i8 "
                            "or u8",
                            extent, muc_dtype_get(x->dtype)->name, 1 << SUM_BITS);
    return MUC_OK;
}

muc_status muc_kernel_q_softmax(const muc_ref_call *call)
{
    const muc_softmax_scales scales =
        muc_scale_softmax(call->input_tensors[0], muc_node_real_or(call->node, MUC_KEY_BETA, 1));
    muc_ref_along along =
        muc_ref_along_of(call->inputs[0], (size_t)muc_node_integer(call->node, MUC_KEY_AXIS));

    for (size_t o = 0; o < along.outer; o++)
        for (size_t i = 0; along.extent && i < along.inner; i++)
            softmax_one(call, &scales, &along, o * along.extent * along.inner + i);
    return MUC_OK;
}

/* ---- reductions ---- */

typedef struct reduction {
    const muc_ref_call *call;
    int64_t *sums; /* [output's elements] */
    size_t done;
} reduction;

/* over the input: operand 0 is the output, with steps of 0 along what is reduced */
static void accumulate(void *arg, size_t n, const size_t *at, const size_t *step)
{
    reduction *r = arg;

    for (size_t i = 0; i < n; i++)
        r->sums[at[0] + i * step[0]] += muc_q_get(r->call->inputs[0], r->done++);
}

/* the output with reduced dimensions as 1, whatever keep_dims says */
static muc_ref_value kept(const muc_ref_call *call)
{
    const muc_attribute *axes = muc_node_attribute(call->node, MUC_KEY_AXES);
    muc_ref_value value = *call->inputs[0];

    for (uint32_t i = 0; i < axes->value.integers.count; i++)
        value.dims[axes->value.integers.items[i]] = 1;
    return value;
}

muc_status muc_kernel_q_reduce(const muc_ref_call *call)
{
    const muc_tensor *x = call->input_tensors[0], *out = muc_q_out(call);
    size_t elements = call->output->elements;
    size_t count = elements ? call->inputs[0]->elements / elements : 0;
    muc_ref_value value = kept(call);
    const muc_ref_value *const operands[] = { &value };
    reduction r = { .call = call };
    muc_multiplier m;
    muc_ref_walk walk;
    int32_t least, most;
    double factor;
    void *memory;

    if (count == 0)
        return elements ? muc_ref_fail(call, "a mean or sum of nothing") : MUC_OK;
    MUC_TRY(muc_ref_reserve(call, elements * sizeof(*r.sums), &memory));
    r.sums = memory;
    memset(r.sums, 0, elements * sizeof(*r.sums));
    muc_ref_walk_of(call->inputs[0], operands, 1, &walk);
    muc_ref_walk_each(&walk, accumulate, &r);
    m = muc_scale_reduction(call->node->op, x, out, count);
    muc_scale_clamp(call->node, out, &least, &most);
    factor = muc_op_has(call->node->op, MUC_OP_AVERAGES) ? 1.0 / (double)count : 1;
    factor = factor * (double)muc_scale_of(x) / (double)muc_scale_of(out);
    for (size_t i = 0; i < elements; i++) {
        int32_t sum = (int32_t)(r.sums[i] - (int64_t)count * muc_zero_of(x));
        int32_t q = call->on_chip ? muc_q_chip((float)factor * (float)sum) : muc_multiply(sum, m);

        muc_q_put(call->output, i, muc_q_clamp(q, muc_zero_of(out), least, most));
    }
    return MUC_OK;
}

/* ---- resizing of two dimensions, as TFLite does it ---- */

/* the sum of four neighbours' shares, in 2^20ths */
static int32_t blend(const muc_ref_call *call, size_t base, size_t at[2][2], const size_t step[2],
                     const int64_t weight[2])
{
    const int64_t one = 1 << 10;
    int64_t sum = 0;

    for (int y = 0; y < 2; y++)
        for (int x = 0; x < 2; x++)
            sum += (int64_t)muc_q_get(call->inputs[0],
                                      base + at[0][y] * step[0] + at[1][x] * step[1]) *
                   (y ? weight[0] : one - weight[0]) * (x ? weight[1] : one - weight[1]);
    return (int32_t)((sum + (sum > 0 ? 1 << 19 : -(1 << 19))) / (1 << 20));
}

muc_status muc_check_q_resize(const muc_ref_call *call)
{
    muc_word coordinates = muc_node_word_or(call->node, MUC_KEY_COORDINATES, MUC_WORD_HALF_PIXEL);
    muc_word mode = muc_node_word_or(call->node, MUC_KEY_MODE, MUC_WORD_NEAREST);
    uint32_t first;

    MUC_TRY(muc_check_q_operands(call));
    if (muc_resize_as_tflite(call->graph, call->node, &first) ||
        (mode == MUC_WORD_NEAREST && coordinates != MUC_WORD_TF_CROP_AND_RESIZE))
        return MUC_OK;
    return muc_ref_fail(call, "a quantized resize that TFLite does not know, and not by the "
                              "nearest element");
}

muc_status muc_kernel_q_resize(const muc_ref_call *call)
{
    bool linear = muc_node_word_or(call->node, MUC_KEY_MODE, MUC_WORD_NEAREST) == MUC_WORD_LINEAR;
    muc_word coordinates = muc_node_word_or(call->node, MUC_KEY_COORDINATES, MUC_WORD_HALF_PIXEL);
    const muc_ref_value *x = call->inputs[0], *y = call->output;
    muc_sampling s[2];
    size_t step[2], channels, planes, plane_step, out = 0;
    uint32_t first;

    if (!muc_resize_as_tflite(call->graph, call->node, &first))
        return muc_kernel_resize(call);
    for (uint32_t d = 0; d < 2; d++)
        s[d] = (muc_sampling){ .in = x->dims[first + d],
                               .out = y->dims[first + d],
                               .coordinates = coordinates };
    channels = first == 1 ? x->dims[3] : 1;
    planes = x->dims[0] * (first == 1 ? 1 : x->dims[1]);
    plane_step = x->dims[first] * x->dims[first + 1] * channels;
    step[0] = x->dims[first + 1] * channels;
    step[1] = channels;
    for (size_t p = 0; p < planes; p++)
        for (size_t i = 0; i < s[0].out; i++)
            for (size_t j = 0; j < s[1].out; j++) {
                size_t at[2][2];
                int64_t weight[2] = { 0 };

                if (linear) {
                    muc_sampling_neighbours_q(&s[0], i, &at[0][0], &at[0][1], &weight[0]);
                    muc_sampling_neighbours_q(&s[1], j, &at[1][0], &at[1][1], &weight[1]);
                } else {
                    at[0][0] = at[0][1] = muc_sampling_nearest_q(&s[0], i);
                    at[1][0] = at[1][1] = muc_sampling_nearest_q(&s[1], j);
                }
                for (size_t c = 0; c < channels; c++)
                    muc_q_put(y, out++, blend(call, p * plane_step + c, at, step, weight));
            }
    return MUC_OK;
}

/* quantized_window.c - quantized convolutions, products and pools. */
#include <stdlib.h>
#include <string.h>

#include "ref/integer/quantized.h"
#include "ref/window.h"

/* ---- sums of products ---- */

/* Rows of k integers times an output channel's k weights. */
typedef struct sums {
    const muc_ref_call *call;
    muc_ref_window w;
    size_t groups, in_each, out_each, k;
    bool is_turned;          /* weights come as [in, out, taps], as transposed ones do */
    int32_t *weights;        /* [out][k], without their zero points */
    muc_multiplier *factors; /* [out] */
    float *chip;             /* [out]: the CNN chip's, instead */
    uint8_t *scratch;        /* [parts]: taps, then a patch of k integers */
    size_t scratch_bytes;
    int32_t zero_x, zero, least, most;
    bool is_wide; /* 64-bit sums */
} sums;

static int64_t bias_of(const sums *s, size_t channel)
{
    const muc_ref_value *bias = muc_ref_input_of(s->call, 2);

    if (!bias)
        return 0;
    return bias->dtype == MUC_I64 ? ((const int64_t *)bias->read)[channel]
                                  : ((const int32_t *)bias->read)[channel];
}

static int64_t dot(const sums *s, const int32_t *a, const int32_t *b)
{
    uint32_t sum = 0;
    int64_t wide = 0;

    if (s->is_wide) {
        for (size_t i = 0; i < s->k; i++)
            wide += (int64_t)a[i] * b[i];
        return wide;
    }
    for (size_t i = 0; i < s->k; i++)
        sum += (uint32_t)a[i] * (uint32_t)b[i];
    return (int32_t)sum;
}

static void put_sum(const sums *s, size_t at, size_t channel, int64_t sum)
{
    int64_t q;

    if (s->call->on_chip)
        q = muc_q_chip(s->chip[channel] *
                       (float)(int32_t)((uint32_t)sum + (uint32_t)bias_of(s, channel)));
    else if (s->is_wide)
        q = muc_multiply_wide(sum + bias_of(s, channel), s->factors[channel]);
    else
        q = muc_multiply((int32_t)((uint32_t)sum + (uint32_t)bias_of(s, channel)),
                         s->factors[channel]);
    muc_q_put(s->call->output, at, muc_q_clamp(q, s->zero, s->least, s->most));
}

/* one rounding to binary32, behind all that is exact in doubles */
static float chip_factor(const muc_tensor *x, const muc_tensor *w, const muc_tensor *out, size_t c)
{
    float scale = w->quantization->scales[w->quantization->count > 1 ? c : 0];

    return (float)((double)x->quantization->scales[0] * (double)scale /
                   (double)out->quantization->scales[0]);
}

/* where weight i of k of a channel lies: by taps, of each the input's channels, for turned ones */
static size_t weight_place(const sums *s, size_t channels, size_t channel, size_t i)
{
    size_t in = s->w.channels;

    return s->is_turned ? (i % in * channels + channel) * s->w.taps + i / in : channel * s->k + i;
}

/* the weights without zero points, and scratch for k integers and taps a part */
static muc_status begin_sums(sums *s, size_t channels, size_t taps)
{
    const muc_ref_call *call = s->call;
    const muc_tensor *x = call->input_tensors[0], *w = call->input_tensors[1];
    const muc_tensor *out = muc_q_out(call);
    size_t weights = channels * s->k * sizeof(int32_t);
    size_t factors = channels * sizeof(muc_multiplier);
    void *memory;

    s->zero_x = muc_q_zero(x);
    s->zero = muc_q_zero(out);
    s->is_wide = x->dtype == MUC_I16;
    muc_scale_clamp(call->node, out, &s->least, &s->most);
    s->scratch_bytes = (taps * sizeof(ptrdiff_t) + s->k * sizeof(int32_t) + 63) / 64 * 64;
    weights = (weights + 63) / 64 * 64;
    factors = (factors + 63) / 64 * 64;
    MUC_TRY(muc_ref_reserve(
        call, weights + 2 * factors + muc_ref_parts(call->ctx) * s->scratch_bytes, &memory));
    s->weights = memory;
    s->factors = (muc_multiplier *)(void *)((uint8_t *)memory + weights);
    s->chip = (float *)(void *)((uint8_t *)memory + weights + factors);
    s->scratch = (uint8_t *)memory + weights + 2 * factors;
    for (size_t c = 0; c < channels; c++) {
        int32_t zero = w->quantization->zero_points[w->quantization->count > 1 ? c : 0];

        s->factors[c] = muc_scale_product(call->node, x, w, out, (uint32_t)c);
        s->chip[c] = chip_factor(x, w, out, c);
        for (size_t i = 0; i < s->k; i++)
            s->weights[c * s->k + i] =
                muc_q_get(call->inputs[1], weight_place(s, channels, c, i)) - zero;
    }
    return MUC_OK;
}

/* the patch under the taps of a group's channels: zero points where there is padding */
static void gather(const sums *s, size_t image, size_t group, const ptrdiff_t *taps, int32_t *patch)
{
    const muc_ref_window *w = &s->w;
    size_t base = image * w->channels * w->positions;
    size_t channel = group * s->in_each;

    for (size_t i = 0; i < s->in_each; i++)
        for (size_t t = 0; t < w->taps; t++) {
            size_t to = w->channels_last ? t * s->in_each + i : i * w->taps + t;
            size_t from = w->channels_last ? (size_t)taps[t] * w->channels + channel + i
                                           : (channel + i) * w->positions + (size_t)taps[t];

            patch[to] = taps[t] < 0 ? 0 : muc_q_get(s->call->inputs[0], base + from) - s->zero_x;
        }
}

/* unit: an image, an output position and a group */
static void convolve(void *arg, size_t part, size_t first, size_t end)
{
    const sums *s = arg;
    const muc_ref_window *w = &s->w;
    ptrdiff_t *taps = (ptrdiff_t *)(void *)(s->scratch + part * s->scratch_bytes);
    int32_t *patch = (int32_t *)(void *)(taps + w->taps);

    for (size_t unit = first; unit < end; unit++) {
        size_t group = unit % s->groups, position = unit / s->groups % w->out_positions;
        size_t image = unit / s->groups / w->out_positions;

        muc_ref_window_taps(w, position, taps);
        gather(s, image, group, taps, patch);
        for (size_t f = 0; f < s->out_each; f++) {
            size_t channel = group * s->out_each + f, base = image * w->out_channels;
            size_t at = w->channels_last
                            ? (image * w->out_positions + position) * w->out_channels + channel
                            : (base + channel) * w->out_positions + position;

            put_sum(s, at, channel, dot(s, patch, s->weights + channel * s->k));
        }
    }
}

muc_status muc_check_q_weights(const muc_ref_call *call)
{
    return muc_q_check_weights(call, 0);
}

muc_status muc_kernel_q_conv(const muc_ref_call *call)
{
    sums s = { .call = call, .groups = (size_t)muc_node_integer_or(call->node, MUC_KEY_GROUPS, 1) };
    size_t units;

    MUC_TRY(muc_ref_window_of(call, call->inputs[0], call->inputs[1], call->output, &s.w));
    s.in_each = s.w.channels / s.groups;
    s.out_each = s.w.out_channels / s.groups;
    s.k = s.in_each * s.w.taps;
    MUC_TRY(begin_sums(&s, s.w.out_channels, s.w.taps));
    units = s.w.batch * s.w.out_positions * s.groups;
    return muc_ref_split(call->ctx, units, units * s.out_each * s.k, convolve, &s);
}

static void multiply_rows(void *arg, size_t part, size_t first, size_t end)
{
    const sums *s = arg;
    size_t channels = s->call->output->columns;
    int32_t *row = (int32_t *)(void *)(s->scratch + part * s->scratch_bytes);

    for (size_t r = first; r < end; r++) {
        for (size_t i = 0; i < s->k; i++)
            row[i] = muc_q_get(s->call->inputs[0], r * s->k + i) - s->zero_x;
        for (size_t c = 0; c < channels; c++)
            put_sum(s, r * channels + c, c, dot(s, row, s->weights + c * s->k));
    }
}

muc_status muc_kernel_q_linear(const muc_ref_call *call)
{
    sums s = { .call = call, .k = call->inputs[1]->columns };
    size_t rows = call->inputs[0]->rows, channels = call->inputs[1]->rows;

    MUC_TRY(begin_sums(&s, channels, 0));
    return muc_ref_split(call->ctx, rows, rows * channels * s.k, multiply_rows, &s);
}

/* ---- products of two activations ---- */

typedef struct product {
    sums s;
    size_t m, n, done;
} product;

static void multiply_stack(void *arg, size_t n, const size_t *at, const size_t *step)
{
    product *p = arg;
    const muc_ref_call *call = p->s.call;
    size_t k = p->s.k;
    int32_t zero_b = muc_q_zero(call->input_tensors[1]);

    for (size_t i = 0; i < n; i++, p->done++) {
        size_t a = (at[0] + i * step[0]) * p->m * k, b = (at[1] + i * step[1]) * k * p->n;

        for (size_t r = 0; r < p->m; r++)
            for (size_t c = 0; c < p->n; c++) {
                int64_t sum = 0;

                for (size_t l = 0; l < k; l++)
                    sum += (int64_t)(muc_q_get(call->inputs[0], a + r * k + l) - p->s.zero_x) *
                           (muc_q_get(call->inputs[1], b + l * p->n + c) - zero_b);
                put_sum(&p->s, (p->done * p->m + r) * p->n + c, 0,
                        p->s.is_wide ? sum : (int32_t)(uint32_t)sum);
            }
    }
}

/* the dimensions before the matrices */
static muc_ref_value stack_of(const muc_ref_value *value)
{
    muc_ref_value stack = *value;

    stack.rank = value->rank > 2 ? value->rank - 2 : 0;
    return stack;
}

muc_status muc_kernel_q_matmul(const muc_ref_call *call)
{
    const muc_ref_value *a = call->inputs[0], *b = call->inputs[1];
    const muc_tensor *x = call->input_tensors[0], *out = muc_q_out(call);
    muc_multiplier factor;
    product p = { .s = { .call = call, .factors = &factor, .is_wide = x->dtype == MUC_I16 } };
    muc_ref_value stacks[3] = { stack_of(a), stack_of(b), *call->output };
    const muc_ref_value *const operands[] = { &stacks[0], &stacks[1] };
    muc_ref_walk walk;

    p.m = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    p.n = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    p.s.k = a->dims[a->rank - 1];
    p.s.zero_x = muc_q_zero(x);
    p.s.zero = muc_q_zero(out);
    factor = muc_scale_product(call->node, x, call->input_tensors[1], out, 0);
    muc_scale_clamp(call->node, out, &p.s.least, &p.s.most);
    stacks[2].rank -= (a->rank > 1) + (uint32_t)(b->rank > 1);
    muc_ref_walk_of(&stacks[2], operands, 2, &walk);
    muc_ref_walk_each(&walk, multiply_stack, &p);
    return MUC_OK;
}

/* ---- transposed convolution ---- */

/* channel c at a position of an image */
static size_t place_of(bool channels_last, size_t image, size_t channels, size_t positions,
                       size_t c, size_t position)
{
    return channels_last ? (image * positions + position) * channels + c
                         : (image * channels + c) * positions + position;
}

/* an image's sums [positions][channels], each input element times the weights that it meets */
static void scatter(const sums *s, size_t image, int64_t *out)
{
    const muc_ref_window *w = &s->w; /* of the output as the convolution's input */
    size_t in = w->channels, channels = w->out_channels;
    ptrdiff_t *taps = (ptrdiff_t *)(void *)s->scratch;

    for (size_t at = 0; at < w->positions; at++) {
        muc_ref_window_taps(w, at, taps);
        for (size_t t = 0; t < w->taps; t++) {
            if (taps[t] < 0)
                continue;
            for (size_t c = 0; c < channels; c++) {
                const int32_t *weights = s->weights + (c * w->taps + t) * in;
                int64_t sum = 0;

                for (size_t i = 0; i < in; i++)
                    sum += (int64_t)weights[i] *
                           (muc_q_get(s->call->inputs[0],
                                      place_of(w->channels_last, image, in, w->positions, i, at)) -
                            s->zero_x);
                out[(size_t)taps[t] * channels + c] += sum;
            }
        }
    }
}

/* the window of the convolution from the output back to the input */
static muc_status transposed_window(const muc_ref_call *call, muc_ref_window *w)
{
    muc_ref_window forward;

    MUC_TRY(muc_ref_window_of(call, call->inputs[0], call->inputs[1], call->output, &forward));
    *w = forward;
    memcpy(w->in, forward.out, sizeof(w->in));
    memcpy(w->out, forward.in, sizeof(w->out));
    return MUC_OK;
}

muc_status muc_check_q_conv_transpose(const muc_ref_call *call)
{
    bool channels_last = muc_node_integer_or(call->node, MUC_KEY_CHANNELS_LAST, 0) == 1;

    MUC_TRY(muc_q_check_weights(call, channels_last ? 0 : 1));
    if (muc_node_integer_or(call->node, MUC_KEY_GROUPS, 1) != 1)
        return muc_ref_fail(call, "quantized in groups");
    return MUC_OK;
}

muc_status muc_kernel_q_conv_transpose(const muc_ref_call *call)
{
    sums s = { .call = call };
    size_t elements;
    int64_t *out;

    MUC_TRY(transposed_window(call, &s.w));
    s.is_turned = !s.w.channels_last;
    s.k = s.w.channels * s.w.taps;
    MUC_TRY(begin_sums(&s, s.w.out_channels, s.w.taps));
    elements = s.w.out_positions * s.w.out_channels;
    MUC_TRY(MUC_NEW_ARRAY(call->ctx, call->graph->name, elements, &out));
    for (size_t image = 0; image < s.w.batch; image++) {
        memset(out, 0, elements * sizeof(*out));
        scatter(&s, image, out);
        for (size_t i = 0; i < elements; i++) {
            size_t c = i % s.w.out_channels, position = i / s.w.out_channels;

            put_sum(&s,
                    place_of(s.w.channels_last, image, s.w.out_channels, s.w.out_positions, c,
                             position),
                    c, out[i]);
        }
    }
    free(out);
    return MUC_OK;
}

/* ---- pools ---- */

typedef struct pool {
    const muc_ref_call *call;
    muc_ref_window w;
    ptrdiff_t *taps; /* [parts][w.taps] */
    int32_t least, most;
    int32_t zero; /* what padding holds */
    bool counts_padding;
    bool halves_up; /* of a mean of bytes, whose least is -128 */
} pool;

/* counted: the elements that a mean is of, those of the padding, too */
static int32_t pool_one(const pool *p, const ptrdiff_t *taps, int32_t counted, size_t base,
                        size_t step)
{
    bool mean = p->call->node->op == MUC_OP_AVERAGE_POOL;
    int32_t count = 0, sum = 0, greatest = INT32_MIN;

    for (size_t t = 0; t < p->w.taps; t++) {
        int32_t q;

        if (taps[t] < 0)
            continue;
        q = muc_q_get(p->call->inputs[0], base + (size_t)taps[t] * step);
        sum += q;
        count++;
        greatest = q > greatest ? q : greatest;
    }
    if (!mean)
        return greatest;
    sum += (counted - count) * p->zero;
    count = counted;
    if (p->halves_up)
        return (sum + 128 * count + count / 2) / count - 128;
    return sum > 0 ? (sum + count / 2) / count : (sum - count / 2) / count;
}

static void pool_positions(void *arg, size_t part, size_t first, size_t end)
{
    const pool *p = arg;
    const muc_ref_window *w = &p->w;
    ptrdiff_t *taps = p->taps + part * w->taps;
    size_t step = w->channels_last ? w->channels : 1;

    for (size_t i = first; i < end; i++) {
        size_t image = i / w->out_positions, position = i % w->out_positions;
        int32_t counted;

        muc_ref_window_taps(w, position, taps);
        counted = (int32_t)muc_ref_window_counted(w, position, taps, p->counts_padding);
        for (size_t c = 0; c < w->channels; c++) {
            size_t plane = image * w->channels + c;
            size_t base =
                w->channels_last ? image * w->channels * w->positions + c : plane * w->positions;
            size_t at = w->channels_last ? (image * w->out_positions + position) * w->channels + c
                                         : plane * w->out_positions + position;

            muc_q_put(p->call->output, at,
                      muc_q_clamp(pool_one(p, taps, counted, base, step), 0, p->least, p->most));
        }
    }
}

muc_status muc_check_q_pool(const muc_ref_call *call)
{
    MUC_TRY(muc_check_q_operands(call));
    if (call->node->output_count > 1)
        return muc_ref_fail(call, "quantized with indices");
    return MUC_OK;
}

/* the output has the input's scale */
muc_status muc_kernel_q_pool(const muc_ref_call *call)
{
    pool p = { .call = call,
               .zero = muc_q_zero(call->input_tensors[0]),
               .counts_padding = muc_node_counts_padding(call->node),
               .halves_up = muc_node_attribute(call->node, MUC_KEY_ROUNDING) != NULL };
    void *taps;

    MUC_TRY(muc_ref_window_of(call, call->inputs[0], NULL, call->output, &p.w));
    MUC_TRY(muc_ref_reserve(call, muc_ref_parts(call->ctx) * p.w.taps * sizeof(*p.taps), &taps));
    p.taps = taps;
    muc_scale_clamp(call->node, muc_q_out(call), &p.least, &p.most);
    return muc_ref_split(call->ctx, p.w.batch * p.w.out_positions,
                         p.w.batch * p.w.out_positions * p.w.channels * p.w.taps, pool_positions,
                         &p);
}

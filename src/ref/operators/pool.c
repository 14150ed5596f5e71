/* pool.c - the greatest, the mean and the norm of windows, of integers that carry quantization
 * too. */
#include <math.h>

#include "ref/integer/quantized.h"
#include "ref/window.h"

/* One output element: window `taps` of channel elements that lie step apart from x. */
typedef struct pool {
    const muc_ref_call *call;
    muc_ref_window w;
    ptrdiff_t *taps; /* [parts][w.taps] */
    bool column_major, count_padding;
    double order; /* of lp_pool, else 0 */
    /* of integers that carry quantization, the output's that of the input */
    bool is_quantized, halves_up; /* halves_up: of a mean of bytes, whose least is -128 */
    int32_t least, most, zero;    /* zero: what padding holds */
} pool;

/* ONNX's index of an element: the image and channel, then the position in either order */
static int64_t flat_index(const pool *p, size_t plane, size_t position)
{
    const muc_ref_window *w = &p->w;
    size_t x = position % w->in[2], y = position / w->in[2] % w->in[1];
    size_t z = position / w->in[2] / w->in[1];

    if (p->column_major)
        position = (x * w->in[1] + y) * w->in[0] + z;
    return (int64_t)(plane * w->positions + position);
}

#define GREATEST(argument, id, type) \
    case MUC_##id: { \
        const type *from = (const type *)x->read + base; \
        type most = 0; \
        bool any = false; \
        for (size_t t = 0; t < p->w.taps; t++) { \
            type value; \
            if (taps[t] < 0) \
                continue; \
            value = from[(size_t)taps[t] * step]; \
            if (any && !(value > most)) \
                continue; \
            most = value; \
            best = (size_t)taps[t]; \
            any = true; \
        } \
        ((type *)p->call->output->data)[out] = most; \
        break; \
    }

/* element `out`, under the taps of channel elements that begin at base and lie step apart */
static size_t greatest(const pool *p, const ptrdiff_t *taps, size_t base, size_t step, size_t out)
{
    const muc_ref_value *x = p->call->inputs[0];
    size_t best = 0;

    switch ((unsigned)x->dtype) {
        MUC_REF_NUMBERS(GREATEST, )
    }
    return best;
}

/* the mean, or the root of the sum of powers, of one window */
static void mean(const pool *p, const ptrdiff_t *taps, size_t base, size_t step, size_t count,
                 size_t out)
{
    const muc_ref_value *x = p->call->inputs[0];
    double sum = 0, result;

    for (size_t t = 0; t < p->w.taps; t++) {
        double value = taps[t] < 0 ? 0 : muc_ref_real(x, base + (size_t)taps[t] * step);

        sum += p->order == 0 ? value : muc_ref_pow(fabs(value), p->order);
    }
    result = p->order == 0 ? sum / (double)count : muc_ref_pow(sum, 1 / p->order);
    if (p->order == 2)
        result = sqrt(sum);
    muc_ref_store_reals(p->call->output, out, 1, &result);
}

/* the greatest, or the mean of `count` elements, those of the padding, too */
static int32_t pool_integers(const pool *p, const ptrdiff_t *taps, size_t base, size_t step,
                             int32_t count)
{
    int32_t inside = 0, sum = 0, greatest = INT32_MIN;

    for (size_t t = 0; t < p->w.taps; t++) {
        int32_t q;

        if (taps[t] < 0)
            continue;
        q = muc_q_get(p->call->inputs[0], base + (size_t)taps[t] * step);
        sum += q;
        inside++;
        greatest = q > greatest ? q : greatest;
    }
    if (muc_op_has(p->call->node->op, MUC_OP_SELECTS))
        return greatest;
    sum += (count - inside) * p->zero;
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
        size_t image = i / w->out_positions, position = i % w->out_positions, count;

        muc_ref_window_taps(w, position, taps);
        count = muc_ref_window_counted(w, position, taps, p->count_padding);
        for (size_t c = 0; c < w->channels; c++) {
            size_t plane = image * w->channels + c;
            size_t base =
                w->channels_last ? image * w->channels * w->positions + c : plane * w->positions;
            size_t out = (w->channels_last ? image * w->channels * w->out_positions + c
                                           : plane * w->out_positions) +
                         position * step;
            size_t best;

            if (p->is_quantized) {
                int32_t q = pool_integers(p, taps, base, step, (int32_t)count);

                muc_q_put(p->call->output, out, muc_q_clamp(q, 0, p->least, p->most));
                continue;
            }
            if (!muc_op_has(p->call->node->op, MUC_OP_SELECTS)) {
                mean(p, taps, base, step, count, out);
                continue;
            }
            best = greatest(p, taps, base, step, out);
            if (p->call->node->output_count > 1)
                ((int64_t *)p->call->outputs[1]->data)[out] = flat_index(p, plane, best);
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

muc_status muc_kernel_pool(const muc_ref_call *call)
{
    pool p = { .call = call,
               .column_major = muc_node_integer_or(call->node, MUC_KEY_COLUMN_MAJOR, 0) == 1,
               .count_padding = muc_node_counts_padding(call->node),
               .order = (double)muc_node_integer_or(call->node, MUC_KEY_P, 0) };
    void *taps;

    if (muc_q_out(call)->quantization) {
        p.is_quantized = true;
        p.halves_up = muc_node_attribute(call->node, MUC_KEY_ROUNDING) != NULL;
        p.zero = muc_zero_of(call->input_tensors[0]);
        muc_scale_clamp(call->node, muc_q_out(call), &p.least, &p.most);
    }
    MUC_TRY(muc_ref_window_of(call, call->inputs[0], NULL, call->output, &p.w));
    MUC_TRY(muc_ref_reserve(call, muc_ref_parts(call->ctx) * p.w.taps * sizeof(*p.taps), &taps));
    p.taps = taps;
    return muc_ref_split(call->ctx, p.w.batch * p.w.out_positions,
                         p.w.batch * p.w.out_positions * p.w.channels * p.w.taps, pool_positions,
                         &p);
}

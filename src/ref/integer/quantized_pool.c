/* quantized_pool.c - quantized pools: the greatest and the mean of windows. */
#include "ref/integer/quantized.h"
#include "ref/window.h"

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

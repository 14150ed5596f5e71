/* quantized_norm.c - norms and logarithms of softmax of int8 rows, as graph/scales.h defines them.
 */
#include "mur_quantlib.h"
#include "ref/integer/quantized.h"

typedef struct norm {
    const muc_ref_call *call;
    muc_norm_scales scales;
    muc_norm_rows rows;
    const int32_t *gains, *biases; /* [groups][..] */
    int32_t zero, least, most;
    bool is_centred;
} norm;

/* r of a row, and what its results are shifted by */
static int64_t inverse_of(const norm *n, uint64_t w, int *shift)
{
    int s = 0;
    int64_t r;

    for (; w >= UINT64_C(1) << 32; s += 2)
        w /= 4;
    for (; w < UINT64_C(1) << 30; s -= 2)
        w *= 4;
    *shift = n->scales.shift + s / 2;
    r = (INT64_C(1) << 31) / mur_quantlib_root(w) * (1 << 15);
    return r < INT32_MAX ? r : INT32_MAX;
}

/* where element i of a row lies */
static size_t place_of(const norm *n, size_t first, int64_t i)
{
    return first + (size_t)i / n->rows.width * n->rows.step + (size_t)i % n->rows.width;
}

/* group: the row's */
static void normalise_row(const norm *n, size_t first, size_t group)
{
    const muc_ref_value *x = n->call->inputs[0];
    int64_t columns = n->scales.columns, sum = 0, squares = 0, r;
    size_t gains = muc_norm_gains(&n->rows) / n->rows.groups;
    uint64_t w;
    int shift;

    for (int64_t i = 0; i < columns; i++) {
        int64_t q = muc_q_get(x, place_of(n, first, i)) - n->zero;

        sum += q;
        squares += q * q;
    }
    if (!n->is_centred)
        sum = 0;
    w = (uint64_t)(columns * squares - sum * sum) * 256 + (uint64_t)n->scales.epsilon;
    r = inverse_of(n, w ? w : 1, &shift);
    for (int64_t i = 0; i < columns; i++) {
        size_t at = place_of(n, first, i), width = n->rows.width;
        size_t g = group * gains + (n->rows.of_runs ? (size_t)i / width : (size_t)i % width);
        int64_t q = muc_q_get(x, at) - n->zero;
        int64_t v = ((columns * q - sum) * (INT64_C(1) << n->scales.head) * r) >> 32;

        v = (v * n->gains[g]) >> 32;
        if (shift >= 0)
            v >>= shift < 31 ? shift : 31;
        else
            v = muc_q_clamp(v, 0, -(1 << 20), 1 << 20) *
                (INT64_C(1) << (shift > -10 ? -shift : 10));
        muc_q_put(n->call->output, at, muc_q_clamp((v + n->biases[g]) >> 8, 0, n->least, n->most));
    }
}

/* input i with its numbers in this run; in a check, with those of a constant; NULL: absent */
static const muc_tensor *row_of(const muc_ref_call *call, uint32_t i, muc_tensor *row)
{
    const muc_tensor *t = i < call->node->input_count ? call->input_tensors[i] : NULL;

    if (!t || !call->inputs)
        return t;
    *row = *t;
    row->dtype = call->inputs[i]->dtype;
    row->data = call->inputs[i]->read;
    row->bytes = call->inputs[i]->elements * muc_dtype_get(row->dtype)->block_bytes;
    return row;
}

static bool find_scales(const muc_ref_call *call, const muc_norm_rows *norm_rows, int32_t *gains,
                        int32_t *biases, muc_norm_scales *scales)
{
    muc_tensor rows[2];

    return muc_scale_norm(call->input_tensors[0], row_of(call, 1, &rows[0]),
                          row_of(call, 2, &rows[1]), muc_node_real(call->node, MUC_KEY_EPSILON),
                          norm_rows, muc_q_out(call), gains, biases, scales);
}

/* whether gains and biases are known before a run */
static bool are_known(const muc_ref_call *call)
{
    bool known = true;

    for (uint32_t i = 1; i < call->node->input_count; i++)
        known = known && (!call->input_tensors[i] || call->input_tensors[i]->data);
    return known;
}

muc_status muc_check_q_norm(const muc_ref_call *call)
{
    const muc_tensor *x = call->input_tensors[0], *out = muc_q_out(call);
    uint64_t dims[MUC_GRAPH_MAX_RANK];
    muc_norm_scales scales;
    muc_norm_rows rows;

    if (call->node->output_count != 1 || x->dtype != MUC_I8 || out->dtype != MUC_I8 ||
        !x->quantization || x->quantization->count != 1 || !out->quantization ||
        out->quantization->count != 1 || muc_node_attribute(call->node, MUC_KEY_GROUP))
        return muc_ref_fail(call, "a quantized norm that is not of i8, whole and of one output");
    for (uint32_t i = 0; i < x->rank; i++)
        dims[i] = muc_q_most(call, x, i);
    rows = muc_norm_rows_of(call->node, x->rank, dims);
    if (muc_norm_columns(&rows) > MUC_NORM_COLUMNS ||
        (are_known(call) && !find_scales(call, &rows, NULL, NULL, &scales)))
        return muc_ref_fail(call,
                            "a quantized norm of more than %d columns, or whose numbers 32 "
                            "bits do not hold",
                            MUC_NORM_COLUMNS);
    return MUC_OK;
}

muc_status muc_kernel_q_norm(const muc_ref_call *call)
{
    const muc_tensor *x = call->input_tensors[0], *out = muc_q_out(call);
    const muc_ref_value *value = call->inputs[0];
    norm n = { .call = call,
               .zero = muc_zero_of(x),
               .is_centred = muc_op_has(call->node->op, MUC_OP_CENTRES) };
    uint64_t dims[MUC_GRAPH_MAX_RANK];
    size_t row = 0, image;
    int32_t *gains;
    void *memory;

    for (uint32_t i = 0; i < value->rank; i++)
        dims[i] = value->dims[i];
    n.rows = muc_norm_rows_of(call->node, value->rank, dims);
    MUC_TRY(muc_ref_reserve(call, 2 * muc_norm_gains(&n.rows) * sizeof(int32_t), &memory));
    gains = memory;
    if (!find_scales(call, &n.rows, gains, gains + muc_norm_gains(&n.rows), &n.scales))
        return muc_ref_fail(call, "gains or biases that 32 bits do not hold");
    n.gains = gains;
    n.biases = gains + muc_norm_gains(&n.rows);
    muc_scale_clamp(call->node, out, &n.least, &n.most);
    image = n.rows.groups * muc_norm_columns(&n.rows);
    for (; row < value->elements / muc_norm_columns(&n.rows); row++)
        normalise_row(&n, row / n.rows.groups * image + row % n.rows.groups * n.rows.next,
                      row % n.rows.groups);
    return MUC_OK;
}

/* ---- log_softmax ---- */

/* log2(x) in 2^-16ths, x above 0 */
static int64_t logarithm_of(uint64_t x)
{
    int64_t log = 31;

    for (; x < UINT64_C(1) << 31; x *= 2)
        log--;
    for (int bit = 0; bit < 16; bit++) {
        bool above;

        x = x * x >> 31;
        above = x >= UINT64_C(1) << 32;
        log = 2 * log + above;
        x >>= above;
    }
    return log;
}

muc_status muc_check_q_log_softmax(const muc_ref_call *call)
{
    const muc_tensor *x = call->input_tensors[0], *out = muc_q_out(call);
    muc_log_softmax_scales s;

    MUC_TRY(muc_check_q_operands(call));
    if (x->dtype != MUC_I8 || out->dtype != MUC_I8 ||
        muc_node_integer(call->node, MUC_KEY_AXIS) + 1 != x->rank ||
        !muc_scale_log_softmax(x, muc_q_most(call, x, x->rank - 1), out, &s))
        return muc_ref_fail(call, "a quantized log_softmax that is not of i8, along the last "
                                  "dimension and of few columns");
    return MUC_OK;
}

muc_status muc_kernel_q_log_softmax(const muc_ref_call *call)
{
    const muc_tensor *x = call->input_tensors[0], *out = muc_q_out(call);
    const muc_ref_value *in = call->inputs[0];
    muc_log_softmax_scales s;
    int32_t least, most;

    (void)muc_scale_log_softmax(x, in->columns, out, &s);
    muc_scale_clamp(call->node, out, &least, &most);
    for (size_t first = 0; first < in->elements; first += in->columns) {
        int32_t greatest = INT8_MIN;
        uint64_t sum = 0;
        int64_t log;

        for (size_t i = first; i < first + in->columns; i++)
            greatest = muc_q_get(in, i) > greatest ? muc_q_get(in, i) : greatest;
        for (size_t i = first; i < first + in->columns; i++)
            sum += s.exps[greatest - muc_q_get(in, i)];
        log = logarithm_of(sum) - (MUC_LOG_SOFTMAX_ONE << 16);
        log = (log * s.log_step) >> 16;
        for (size_t i = first; i < first + in->columns; i++) {
            int64_t below = (int64_t)(greatest - muc_q_get(in, i)) * s.step + log;

            muc_q_put(call->output, i,
                      muc_q_clamp(((1 << 15) - below) >> 16, muc_zero_of(out), least, most));
        }
    }
    return MUC_OK;
}

/* join_norms.c - joins what exporters write as several operators to one norm. */
#include "passes/simplify/join_norms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph_check.h"
#include "graph/scales.h"

muc_gain_span muc_gain_span_of(const muc_rewrite *r, const muc_tensor *x, uint32_t first,
                               uint32_t end)
{
    muc_gain_span s = { x, first, end, 1 };

    for (uint32_t i = first; i < end; i++) {
        uint32_t dim;

        s.count = muc_rewrite_dim(&r->old, x, i, &dim) ? s.count * dim : 0;
    }
    return s;
}

/* layer_norm and rmsnorm, not a norm of channels */
static bool is_of_rows(const muc_node *norm)
{
    bool required;

    return muc_op_takes(norm->op, MUC_KEY_EPSILON, &required) &&
           muc_op_takes(norm->op, MUC_KEY_AXIS, &required);
}

static muc_gain_span span_of(const muc_rewrite *r, const muc_node *norm)
{
    const muc_tensor *x = muc_rewrite_old(r, norm->inputs[0]);
    uint32_t first = muc_norm_axis(norm, x->rank);

    return muc_gain_span_of(r, x, first, is_of_rows(norm) ? x->rank : first + 1);
}

static bool is_floats(const muc_rewrite *r, uint32_t id)
{
    return muc_rewrite_is_constant(r, id) && muc_rewrite_old(r, id)->dtype == MUC_F32;
}

bool muc_gains_span(const muc_rewrite *r, uint32_t id, const muc_gain_span *s)
{
    const muc_tensor *t = muc_rewrite_old(r, id);

    if (!is_floats(r, id) || t->rank > s->x->rank)
        return false;
    if (t->bytes == sizeof(float))
        return true;
    for (uint32_t i = 0; i < t->rank; i++) {
        uint32_t d = s->x->rank - t->rank + i;

        if (t->dims[i] !=
            (d >= s->first && d < s->end ? s->x->dims[d] : muc_expr_const(r->graph->pool, 1)))
            return false;
    }
    return t->rank >= s->x->rank - s->first;
}

static float element(const muc_rewrite *r, uint32_t id, size_t i)
{
    const muc_tensor *t = id == MUC_NO_ID ? NULL : muc_rewrite_old(r, id);
    float value = 1;

    if (t)
        muc_dtype_to_f32(MUC_F32, t->data, t->bytes == sizeof(float) ? 0 : i, 1, &value);
    return value;
}

double *muc_norm_numbers(const muc_rewrite *r, const muc_node *norm, size_t *channels)
{
    size_t count = (size_t)muc_rewrite_old(r, norm->inputs[1])->bytes / sizeof(float);
    double *numbers;

    for (uint32_t i = 1; i < 5; i++)
        if (!is_floats(r, norm->inputs[i]) || count == 0 ||
            muc_rewrite_old(r, norm->inputs[i])->bytes != count * sizeof(float))
            return NULL;
    numbers = malloc(2 * count * sizeof(double));
    for (size_t c = 0; numbers && c < count; c++) {
        numbers[c] =
            (double)element(r, norm->inputs[1], c) /
            sqrt((double)element(r, norm->inputs[4], c) + muc_node_real(norm, MUC_KEY_EPSILON));
        numbers[count + c] = (double)element(r, norm->inputs[2], c) -
                             (double)element(r, norm->inputs[3], c) * numbers[c];
    }
    *channels = count;
    return numbers;
}

muc_status muc_gains_add(muc_rewrite *r, const char *name, const muc_gain_span *s, size_t each,
                         uint32_t a, uint32_t b, bool sum, uint32_t *out)
{
    muc_tensor like = { .dtype = MUC_F32, .rank = s->end - s->first };
    muc_status status;
    float *vector;

    memcpy(like.dims, s->x->dims + s->first, like.rank * sizeof(*like.dims));
    MUC_TRY(MUC_NEW_ARRAY(r->ctx, r->old.name, s->count, &vector));
    for (size_t i = 0; i < s->count; i++) {
        float value = element(r, a == MUC_NO_ID ? b : a, i / each);

        if (a != MUC_NO_ID && b != MUC_NO_ID)
            value = sum ? value + element(r, b, i) : value * element(r, b, i);
        vector[i] = value;
    }
    status = muc_rewrite_constant(r, name, &like, vector, s->count * sizeof(float), out);
    free(vector);
    return status;
}

/* a norm of real numbers that one node reads, with constant gains and biases of its span */
static bool takes_gains(const muc_rewrite *r, const muc_node *norm)
{
    bool of_rows = is_of_rows(norm);
    muc_gain_span s;

    if ((!of_rows && !muc_op_has(norm->op, MUC_OP_CENTRES)) || norm->output_count != 1 ||
        muc_rewrite_old(r, norm->inputs[0])->dtype != MUC_F32 ||
        !muc_rewrite_only_reader(r, norm->outputs[0]) ||
        (of_rows ? muc_node_attribute(norm, MUC_KEY_GROUP) != NULL
                 : muc_node_integer_or(norm, MUC_KEY_CHANNELS_LAST, 0) != 0))
        return false;
    s = span_of(r, norm);
    for (uint32_t i = 1; i < norm->input_count; i++)
        if (norm->inputs[i] != MUC_NO_ID &&
            !(of_rows ? muc_gains_span(r, norm->inputs[i], &s) : is_floats(r, norm->inputs[i])))
            return false;
    return true;
}

muc_status muc_join_group_norm(muc_rewrite *r, const muc_node *node, bool *done)
{
    const muc_node *norm =
        node->op == MUC_OP_RESHAPE ? muc_rewrite_producer(r, node->inputs[0]) : NULL;
    const muc_tensor *x, *y = muc_rewrite_old(r, node->outputs[0]), *parts;
    const muc_node *before;
    muc_attribute attributes[2] = { { .key = MUC_KEY_EPSILON }, { .key = MUC_KEY_GROUPS } };
    uint32_t inputs[3], channels, groups;
    muc_gain_span s;

    if (!norm || norm->op != MUC_OP_INSTANCE_NORM || !takes_gains(r, norm))
        return MUC_OK;
    before = muc_rewrite_producer(r, norm->inputs[0]);
    if (!before || before->op != MUC_OP_RESHAPE)
        return MUC_OK;
    x = muc_rewrite_old(r, before->inputs[0]);
    parts = muc_rewrite_old(r, norm->inputs[0]);
    if (x->rank < 2 || parts->dims[0] != x->dims[0] || !muc_tensor_same_dims(x, y) ||
        !muc_rewrite_dim(&r->old, x, 1, &channels) ||
        !muc_rewrite_dim(&r->old, parts, 1, &groups) || groups == 0 || channels % groups != 0)
        return MUC_OK;
    *done = true;
    attributes[0].value.real = muc_node_real(norm, MUC_KEY_EPSILON);
    attributes[1].value.integer = groups;
    s = muc_gain_span_of(r, x, 1, 2);
    MUC_TRY(muc_rewrite_tensor(r, before->inputs[0], &inputs[0]));
    for (uint32_t i = 1; i < 3; i++)
        MUC_TRY(muc_gains_add(r, i == 1 ? "gain" : "bias", &s, channels / groups, norm->inputs[i],
                              MUC_NO_ID, false, &inputs[i]));
    return muc_rewrite_change(r, node, MUC_OP_GROUP_NORM, inputs, 3, attributes, 2);
}

muc_status muc_join_gains(muc_rewrite *r, const muc_node *node, bool *done)
{
    bool sum = node->op == MUC_OP_ADD;

    if (!sum && node->op != MUC_OP_MUL)
        return MUC_OK;
    for (uint32_t side = 0; side < 2 && !*done; side++) {
        const muc_node *norm = muc_rewrite_producer(r, node->inputs[side]);
        uint32_t inputs[3], bias, by = node->inputs[1 - side];
        muc_gain_span s;

        if (!norm || !takes_gains(r, norm) || (sum && muc_op_get(norm->op)->most_inputs < 3))
            continue;
        s = span_of(r, norm);
        if (s.count == 0 || !muc_gains_span(r, by, &s))
            continue;
        *done = true;
        bias = muc_node_input(norm, 2);
        MUC_TRY(muc_rewrite_tensor(r, norm->inputs[0], &inputs[0]));
        if (sum)
            MUC_TRY(muc_rewrite_tensor(r, norm->inputs[1], &inputs[1]));
        else
            MUC_TRY(muc_gains_add(r, "gain", &s, 1, norm->inputs[1], by, false, &inputs[1]));
        if (sum || bias != MUC_NO_ID) /* (y + b) c = y c + b c */
            MUC_TRY(muc_gains_add(r, "bias", &s, 1, bias, by, sum, &inputs[2]));
        MUC_TRY(muc_rewrite_change(r, node, norm->op, inputs, sum || bias != MUC_NO_ID ? 3 : 2,
                                   norm->attributes, norm->attribute_count));
    }
    return MUC_OK;
}

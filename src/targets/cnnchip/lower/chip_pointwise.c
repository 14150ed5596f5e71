/* chip_pointwise.c - element by element: sums, factors, batch norms, activations, bounds.
 *
 * What follows a layer that nothing else reads joins its DSP stage or its activation; what does not
 * fit there is an ADD of its own, of one operand.
 */
#include <float.h>
#include <math.h>

#include "base/half.h"
#include "graph/scales.h"
#include "targets/cnnchip/lower/chip_lower.h"

/* ---- joining the layer before ---- */

/* The steps that make the tensor's elements, if nothing else reads them and no activation came yet:
 * first..end-1, of which those marked final count. */
static bool find_stage(const muc_cnnchip_lowering *l, uint32_t tensor, uint32_t *first,
                       uint32_t *end)
{
    const muc_cnnchip_value *v = &l->values[tensor];
    bool any = false;

    if (l->is_int8 || !v->on_chip || v->layer == MUC_NO_ID || l->readers[tensor] != 1)
        return false;
    for (*first = 0; *first < l->step_count && l->steps[*first].layer != v->layer;)
        ++*first;
    for (*end = *first; *end < l->step_count && l->steps[*end].layer == v->layer; ++*end) {
        if (l->steps[*end].final && l->steps[*end].act)
            return false;
        any = any || l->steps[*end].final;
    }
    return any;
}

/* the node's result is the tensor, which its layer now makes otherwise */
static void join(muc_cnnchip_lowering *l, const muc_node *node, uint32_t tensor)
{
    l->values[node->outputs[0]] = l->values[tensor];
    l->layers[l->values[tensor].layer].tensor = node->outputs[0];
}

static bool holds_all(const muc_cnnchip_lowering *l, const muc_node *node)
{
    return muc_cnnchip_holds(l, node->inputs[0]) && muc_cnnchip_holds(l, node->outputs[0]);
}

/* An ADD of one operand, whatever its shape, into a new storage. */
static muc_status add_single(muc_cnnchip_lowering *l, const muc_node *node, muc_cnnchip_view in,
                             bool last, muc_cnnchip_step **step)
{
    const muc_cnnchip_value *x = &l->values[node->inputs[0]], *out = &l->values[node->outputs[0]];
    muc_cnnchip_view to;

    MUC_TRY(muc_cnnchip_result(l, node->outputs[0], last, in.c, in.h, in.w, &to));
    MUC_TRY(muc_cnnchip_add_step(l, MUC_CNNCHIP_STEP_ADD, in, to, step));
    (*step)->border = (*step)->final = true;
    if (l->is_int8) {
        (*step)->factor = (float)((double)x->scale / (double)out->scale);
        (*step)->zero_src = x->zero;
        (*step)->zero_out = out->zero;
    }
    return MUC_OK;
}

/* The same on the spot, in the layer at hand. */
static muc_status add_in_place(muc_cnnchip_lowering *l, muc_cnnchip_view view,
                               muc_cnnchip_step **step)
{
    MUC_TRY(muc_cnnchip_add_step(l, MUC_CNNCHIP_STEP_ADD, view, view, step));
    for (uint32_t i = l->step_count - 1; i-- > 0 && l->steps[i].layer == l->layer_count - 1;)
        l->steps[i].final = false;
    (*step)->final = true;
    return MUC_OK;
}

static muc_status set_affine(muc_cnnchip_lowering *l, muc_cnnchip_step *step, float factor,
                             float added)
{
    MUC_TRY(muc_cnnchip_add_dsp(l, step));
    for (uint32_t c = 0; c < step->out.c; c++) {
        step->v1[c] = factor;
        step->v2[c] = added;
    }
    return MUC_OK;
}

/* ---- activations ---- */

static muc_status activate(muc_cnnchip_lowering *l, const muc_node *node, float from, float slope,
                           bool *done)
{
    muc_cnnchip_value form;
    muc_cnnchip_step *step;
    muc_cnnchip_view in;
    uint32_t first, end;

    if (find_stage(l, node->inputs[0], &first, &end)) {
        *done = true;
        for (uint32_t i = first; i < end; i++)
            if (l->steps[i].final) {
                l->steps[i].act = true;
                l->steps[i].act_from = from;
                l->steps[i].act_slope = slope;
            }
        join(l, node, node->inputs[0]);
        return MUC_OK;
    }
    MUC_TRY(muc_cnnchip_begin_layer(l, node));
    MUC_TRY(muc_cnnchip_take_line(l, node->inputs[0], true, &in, &form, done));
    if (!*done)
        return MUC_OK;
    MUC_TRY(add_single(l, node, in, form.last, &step));
    step->act = true;
    step->act_from = from;
    step->act_slope = slope;
    return MUC_OK;
}

/* the one slope of all elements */
static bool read_slope(const muc_cnnchip_lowering *l, uint32_t tensor, float *slope)
{
    const uint8_t *data = muc_cnnchip_constant(l, tensor);

    if (!data || muc_cnnchip_tensor(l, tensor)->dtype != MUC_F32)
        return false;
    *slope = muc_cnnchip_number(data, 0);
    for (uint64_t i = 1; i < muc_cnnchip_elements(l, tensor); i++)
        if (muc_cnnchip_number(data, i) != *slope)
            return false;
    return true;
}

muc_status muc_cnnchip_lower_activation(muc_cnnchip_lowering *l, const muc_node *node, bool *done)
{
    float slope = (float)muc_node_real_or(node, MUC_KEY_ALPHA, 0);

    if (!holds_all(l, node) || (node->input_count > 1 && !read_slope(l, node->inputs[1], &slope)))
        return MUC_OK;
    return activate(l, node, 0, slope, done);
}

/* x above alpha alone */
muc_status muc_cnnchip_lower_threshold(muc_cnnchip_lowering *l, const muc_node *node, bool *done)
{
    if (!holds_all(l, node) || l->is_int8)
        return MUC_OK;
    return activate(l, node, nextafterf((float)muc_node_real(node, MUC_KEY_ALPHA), INFINITY), 0,
                    done);
}

/* ---- bounds ---- */

/* max(x, low), then min(x, high): each low + relu(x - low), high - relu(high - x), in place */
static muc_status bound_reals(muc_cnnchip_lowering *l, muc_cnnchip_view view, float low, float high)
{
    muc_cnnchip_step *step;

    if (low > -INFINITY) {
        MUC_TRY(add_in_place(l, view, &step));
        MUC_TRY(set_affine(l, step, 1, -low));
        step->act = true;
        MUC_TRY(add_in_place(l, view, &step));
        MUC_TRY(set_affine(l, step, 1, low));
    }
    if (high < INFINITY) {
        MUC_TRY(add_in_place(l, view, &step));
        MUC_TRY(set_affine(l, step, -1, high));
        step->act = true;
        MUC_TRY(add_in_place(l, view, &step));
        MUC_TRY(set_affine(l, step, -1, high));
    }
    return MUC_OK;
}

/* the same of integers: max(q, low), min(q, high) without leaving int8 */
static muc_status bound_integers(muc_cnnchip_lowering *l, muc_cnnchip_view view, int32_t low,
                                 int32_t high)
{
    muc_cnnchip_step *step;

    if (low > -128) {
        MUC_TRY(add_in_place(l, view, &step));
        step->zero_src = step->zero_out = low;
        step->act = true;
    }
    if (high < 127) {
        MUC_TRY(add_in_place(l, view, &step));
        step->factor = -1;
        step->zero_src = high;
        step->zero_out = -128;
        step->act = true;
        MUC_TRY(add_in_place(l, view, &step));
        step->factor = -1;
        step->zero_src = -128;
        step->zero_out = high;
    }
    return MUC_OK;
}

muc_status muc_cnnchip_keep_bounds(muc_cnnchip_lowering *l, const muc_node *node)
{
    uint32_t out = node->outputs[0], layer = l->layer_count - 1;
    int32_t low, high;

    if (!l->is_int8)
        return MUC_OK;
    muc_scale_clamp(node, muc_cnnchip_tensor(l, out), &low, &high);
    if (low == l->values[out].zero && low > -128) {
        for (uint32_t i = 0; i < l->step_count; i++)
            if (l->steps[i].layer == layer && l->steps[i].final &&
                (l->steps[i].v1 || l->steps[i].kind == MUC_CNNCHIP_STEP_ADD))
                l->steps[i].act = true;
        low = l->steps[l->step_count - 1].act ? -128 : low;
    }
    return bound_integers(l, l->values[out].view, low, high);
}

static bool read_bound(const muc_cnnchip_lowering *l, uint32_t tensor, float *out)
{
    const uint8_t *data;

    if (tensor == MUC_NO_ID)
        return true;
    data = muc_cnnchip_constant(l, tensor);
    if (!data || muc_cnnchip_tensor(l, tensor)->dtype != MUC_F32)
        return false;
    *out = muc_cnnchip_number(data, 0);
    *out = fabsf(*out) >= FLT_MAX ? copysignf(INFINITY, *out) : *out; /* none, as exports say it */
    return !isnan(*out);
}

/* What lies within a bound is subtracted from it and back, so that the last bit of a great one
 * would be that of all elements: the master then computes it. */
static bool is_fine(const muc_cnnchip_lowering *l, float bound)
{
    static const float most = 256, most_in_half = 16;

    return isinf(bound) ||
           fabsf(bound) <= (l->machine->element == MUC_CNNCHIP_fp16 ? most_in_half : most);
}

muc_status muc_cnnchip_lower_clip(muc_cnnchip_lowering *l, const muc_node *node, bool *done)
{
    float low = -INFINITY, high = INFINITY;
    muc_cnnchip_value form;
    muc_cnnchip_step *step;
    muc_cnnchip_view in;
    bool joins = l->values[node->inputs[0]].layer == l->layer_count - 1;

    if (l->is_int8 || !holds_all(l, node) || !read_bound(l, muc_node_input(node, 1), &low) ||
        !read_bound(l, muc_node_input(node, 2), &high) || low > high || !is_fine(l, low) ||
        !is_fine(l, high))
        return MUC_OK;
    if (low == 0 && (joins || high == INFINITY)) { /* the layer at hand goes on */
        MUC_TRY(activate(l, node, 0, 0, done));
    } else {
        MUC_TRY(muc_cnnchip_begin_layer(l, node));
        MUC_TRY(muc_cnnchip_take_line(l, node->inputs[0], true, &in, &form, done));
        if (*done) {
            MUC_TRY(add_single(l, node, in, form.last, &step));
            step->act = low == 0;
        }
    }
    if (!*done)
        return MUC_OK;
    return bound_reals(l, l->values[node->outputs[0]].view, low == 0 ? -INFINITY : low, high);
}

/* ---- constants ---- */

/* element i of a constant as a real number */
static float real_of(const muc_cnnchip_lowering *l, uint32_t tensor, uint64_t i)
{
    const muc_tensor *t = muc_cnnchip_tensor(l, tensor);

    if (t->dtype == MUC_F32)
        return muc_cnnchip_number(t->data, i);
    return muc_scale_of(t) * (float)((int8_t)t->data[i] - muc_zero_of(t));
}

static bool is_real_constant(const muc_cnnchip_lowering *l, uint32_t tensor)
{
    const muc_tensor *t = tensor == MUC_NO_ID ? NULL : muc_cnnchip_tensor(l, tensor);

    return t && muc_cnnchip_constant(l, tensor) &&
           (t->dtype == MUC_F32 ||
            (t->dtype == MUC_I8 && t->quantization && t->quantization->count == 1));
}

/* A constant that is one number, or one per channel of the tensor, as [c] numbers. */
static muc_status spread(muc_cnnchip_lowering *l, uint32_t constant, uint32_t tensor, bool last,
                         uint32_t c, float **out, bool *fits)
{
    const muc_tensor *k = muc_cnnchip_tensor(l, constant);
    uint32_t rank = muc_cnnchip_tensor(l, tensor)->rank;
    uint32_t axis = rank <= 2 || last ? rank - 1 : 1;
    uint64_t elements = muc_cnnchip_elements(l, constant);

    *fits = elements == 1;
    if (!*fits && k->rank <= rank && rank - k->rank <= axis)
        *fits = elements == c && muc_cnnchip_dim(l, constant, axis - (rank - k->rank)) == c;
    if (!*fits)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->arena, c, out));
    for (uint32_t i = 0; i < c; i++)
        (*out)[i] = real_of(l, constant, elements == 1 ? 0 : i);
    return MUC_OK;
}

/* y = factor[c] * (x + before[c]) + after[c] of an image with the channels in this place; any may
 * be NULL: 1, 0, 0 */
typedef struct affine {
    const float *before, *factor, *after;
} affine;

static float or_else(const float *values, uint32_t c, float fallback)
{
    return values ? values[c] : fallback;
}

static muc_status join_affine(muc_cnnchip_lowering *l, muc_cnnchip_step *step, const affine *a)
{
    if (!step->v1)
        MUC_TRY(muc_cnnchip_add_dsp(l, step));
    for (uint32_t c = 0; c < step->out.c; c++) {
        float before = or_else(a->before, c, 0), factor = or_else(a->factor, c, 1);
        float after = or_else(a->after, c, 0);

        if (step->v1[c] == 1 && step->v2[c] == 0) { /* a bias alone: the paper's formulas */
            step->v3[c] = muc_f32_bits(muc_f32_of_bits(step->v3[c]) + before);
            step->v1[c] = factor;
            step->v2[c] = after;
        } else {
            step->v2[c] = factor * (step->v2[c] + before) + after;
            step->v1[c] *= factor;
        }
    }
    return MUC_OK;
}

/* whether the channels of x, as it lies, are those of the image that is meant: a reshape that costs
 * nothing leaves it with others */
static bool lies_so(const muc_cnnchip_lowering *l, uint32_t x, bool last)
{
    uint32_t c, h, w;

    return muc_cnnchip_image(l, x, last, &c, &h, &w) && l->values[x].view.c == c &&
           (l->values[x].last == last || muc_cnnchip_tensor(l, x)->rank <= 2);
}

static muc_status apply(muc_cnnchip_lowering *l, const muc_node *node, uint32_t x, bool last,
                        const affine *a, bool *done)
{
    const muc_cnnchip_value *out = &l->values[node->outputs[0]];
    uint32_t first, end;
    muc_cnnchip_view in;
    muc_cnnchip_step *step;

    if (lies_so(l, x, last) && find_stage(l, x, &first, &end)) {
        *done = true;
        for (uint32_t i = first; i < end; i++)
            if (l->steps[i].final)
                MUC_TRY(join_affine(l, &l->steps[i], a));
        join(l, node, x);
        return MUC_OK;
    }
    MUC_TRY(muc_cnnchip_begin_layer(l, node));
    MUC_TRY(muc_cnnchip_take(l, x, last, &in, done));
    if (!*done)
        return MUC_OK;
    MUC_TRY(add_single(l, node, in, last, &step));
    step->factor = l->values[x].scale;
    step->zero_src = l->is_int8 ? l->values[x].zero : 0;
    MUC_TRY(muc_cnnchip_add_dsp(l, step));
    for (uint32_t c = 0; c < step->out.c; c++) {
        step->v1[c] = or_else(a->factor, c, 1) / out->scale;
        step->v2[c] = or_else(a->after, c, 0) / out->scale;
        step->v3[c] = muc_f32_bits(or_else(a->before, c, 0));
    }
    return MUC_OK;
}

/* Which layout the node's image has: that in which its tensor lies, if it does; and its channels.
 */
static bool layout_of(const muc_cnnchip_lowering *l, uint32_t tensor, bool *last, uint32_t *c)
{
    const muc_cnnchip_value *v = &l->values[tensor];
    uint32_t h, w;

    *last = !v->on_chip || v->last || muc_cnnchip_tensor(l, tensor)->rank <= 2;
    return muc_cnnchip_image(l, tensor, *last, c, &h, &w);
}

muc_status muc_cnnchip_lower_affine(muc_cnnchip_lowering *l, const muc_node *node, bool *done)
{
    uint32_t x = node->inputs[0], k = muc_node_input(node, 1), c;
    affine a = { .factor = NULL };
    float *factor = NULL;
    bool last, fits = true;

    if (node->op == MUC_OP_MUL && is_real_constant(l, x)) {
        x = k;
        k = node->inputs[0];
    }
    if (!muc_cnnchip_holds(l, x) || !muc_cnnchip_holds(l, node->outputs[0]) ||
        !layout_of(l, x, &last, &c) || (k != MUC_NO_ID && !is_real_constant(l, k)) ||
        muc_cnnchip_elements(l, x) != muc_cnnchip_elements(l, node->outputs[0]))
        return MUC_OK;
    if (k == MUC_NO_ID) { /* x alone: -x */
        MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->arena, c, &factor));
        for (uint32_t i = 0; i < c; i++)
            factor[i] = -1;
    } else {
        MUC_TRY(spread(l, k, x, last, c, &factor, &fits));
    }
    if (!fits)
        return MUC_OK;
    for (uint32_t i = 0; node->op == MUC_OP_DIV && i < c; i++) {
        if (l->is_int8 && !(fabsf(factor[i]) > 0)) /* 0 / 0 is not an int8 */
            return MUC_OK;
        factor[i] = 1 / factor[i];
    }
    a.factor = factor;
    MUC_TRY(apply(l, node, x, last, &a, done));
    return *done ? muc_cnnchip_keep_bounds(l, node) : MUC_OK;
}

muc_status muc_cnnchip_lower_batch_norm(muc_cnnchip_lowering *l, const muc_node *node, bool *done)
{
    bool last = muc_node_integer_or(node, MUC_KEY_CHANNELS_LAST, 0) == 1;
    double epsilon = muc_node_real(node, MUC_KEY_EPSILON);
    float *scale, *bias, *mean;
    uint32_t c, h, w;

    if (l->is_int8 || !holds_all(l, node) ||
        !muc_cnnchip_image(l, node->inputs[0], last, &c, &h, &w))
        return MUC_OK;
    for (uint32_t i = 1; i < 5; i++)
        if (!is_real_constant(l, node->inputs[i]) || muc_cnnchip_elements(l, node->inputs[i]) != c)
            return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->arena, c, &scale));
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->arena, c, &bias));
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->arena, c, &mean));
    for (uint32_t i = 0; i < c; i++) {
        scale[i] = (float)((double)real_of(l, node->inputs[1], i) /
                           sqrt((double)real_of(l, node->inputs[4], i) + epsilon));
        bias[i] = real_of(l, node->inputs[2], i);
        mean[i] = -real_of(l, node->inputs[3], i);
    }
    return apply(l, node, node->inputs[0], last,
                 &(affine){ .before = mean, .factor = scale, .after = bias }, done);
}

/* ---- sums ---- */

/* what an operand is multiplied by on the way to the result's scale */
static float factor_to(const muc_cnnchip_lowering *l, uint32_t x, const muc_node *node, float sign)
{
    return sign * (float)((double)l->values[x].scale / (double)l->values[node->outputs[0]].scale);
}

static bool same_view(const muc_cnnchip_value *a, const muc_cnnchip_value *b)
{
    return a->view.c == b->view.c && a->view.h == b->view.h && a->view.w == b->view.w &&
           a->last == b->last;
}

/* both operands as images of one shape; whatever that is, if they lie alike already */
static muc_status take_both(muc_cnnchip_lowering *l, const muc_node *node, muc_cnnchip_view *in,
                            bool *last, bool *done)
{
    muc_cnnchip_value *a = &l->values[node->inputs[0]], *b = &l->values[node->inputs[1]];

    if (a->on_chip && b->on_chip && same_view(a, b)) {
        in[0] = a->view;
        in[1] = b->view;
        *last = a->last;
        *done = true;
        return MUC_OK;
    }
    *last = a->on_chip ? a->last : !b->on_chip || b->last;
    MUC_TRY(muc_cnnchip_take(l, node->inputs[0], *last, &in[0], done));
    return *done ? muc_cnnchip_take(l, node->inputs[1], *last, &in[1], done) : MUC_OK;
}

static muc_status add_two(muc_cnnchip_lowering *l, const muc_node *node, float sign, bool *done)
{
    uint32_t a = node->inputs[0], b = node->inputs[1];
    muc_cnnchip_view in[2];
    muc_cnnchip_step *step;
    bool last;

    MUC_TRY(muc_cnnchip_begin_layer(l, node));
    MUC_TRY(take_both(l, node, in, &last, done));
    if (!*done)
        return MUC_OK;
    MUC_TRY(add_single(l, node, in[0], last, &step));
    step->two = true;
    step->in1 = in[1];
    step->factor = factor_to(l, a, node, 1);
    step->factor1 = factor_to(l, b, node, sign);
    step->zero_src1 = l->is_int8 ? l->values[b].zero : 0;
    return muc_cnnchip_keep_bounds(l, node);
}

/* a constant that has an element for each of the tensor's: in FILTER */
static muc_status add_constant(muc_cnnchip_lowering *l, const muc_node *node, uint32_t x,
                               uint32_t k, float sign_x, float sign, bool *done)
{
    const muc_tensor *constant = muc_cnnchip_tensor(l, k);
    muc_cnnchip_view in;
    muc_cnnchip_step *step;
    uint32_t c;
    bool last;

    if (muc_cnnchip_elements(l, k) != muc_cnnchip_elements(l, x) ||
        constant->dtype != (l->is_int8 ? MUC_I8 : MUC_F32) || !layout_of(l, x, &last, &c))
        return MUC_OK;
    MUC_TRY(muc_cnnchip_begin_layer(l, node));
    MUC_TRY(muc_cnnchip_take(l, x, last, &in, done));
    if (!*done)
        return MUC_OK;
    MUC_TRY(add_single(l, node, in, last, &step));
    step->two = true;
    step->second = (muc_cnnchip_weights){
        .data = constant->data,
        .dtype = constant->dtype,
        .by = { 0, last ? 1 : (int64_t)in.h * in.w, last ? (int64_t)in.w * in.c : in.w,
                last ? in.c : 1 },
    };
    step->factor = factor_to(l, x, node, sign_x);
    step->factor1 = factor_to(l, k, node, sign);
    step->zero_src = l->is_int8 ? l->values[x].zero : 0;
    step->zero_src1 = l->is_int8 ? l->values[k].zero : 0;
    return muc_cnnchip_keep_bounds(l, node);
}

muc_status muc_cnnchip_lower_add(muc_cnnchip_lowering *l, const muc_node *node, bool *done)
{
    float sign = muc_op_has(node->op, MUC_OP_SUBTRACTS) ? -1 : 1, sign_x = 1;
    uint32_t a = node->inputs[0], b = muc_node_input(node, 1), c, i;
    affine added = { .factor = NULL };
    float *after, *factor;
    bool last, fits = false;

    if (node->input_count != 2 || !muc_cnnchip_holds(l, node->outputs[0]))
        return MUC_OK;
    if (is_real_constant(l, a)) { /* k + x, k - x */
        a = b;
        b = node->inputs[0];
        sign_x = sign;
        sign = 1;
    }
    if (!muc_cnnchip_holds(l, a) ||
        muc_cnnchip_elements(l, a) != muc_cnnchip_elements(l, node->outputs[0]))
        return MUC_OK;
    if (!is_real_constant(l, b))
        return muc_cnnchip_holds(l, b) && muc_cnnchip_elements(l, b) == muc_cnnchip_elements(l, a)
                   ? add_two(l, node, sign, done)
                   : MUC_OK;
    if (layout_of(l, a, &last, &c))
        MUC_TRY(spread(l, b, a, last, c, &after, &fits));
    if (!fits)
        return add_constant(l, node, a, b, sign_x, sign, done);
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->arena, c, &factor));
    for (i = 0; i < c; i++) {
        after[i] *= sign;
        factor[i] = sign_x;
    }
    added.after = after;
    added.factor = factor;
    MUC_TRY(apply(l, node, a, last, &added, done));
    return *done ? muc_cnnchip_keep_bounds(l, node) : MUC_OK;
}

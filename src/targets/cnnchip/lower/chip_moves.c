/* chip_moves.c - operators that move no element, or as few as possible: other views of a storage,
 * parts that are made where they belong. */
#include "base/half.h"
#include "graph/scales.h"
#include "targets/cnnchip/lower/chip_lower.h"

/* ---- the same elements ---- */

/* the tensor's place in FRAME: an input gets one now */
static muc_status find_value(muc_cnnchip_lowering *l, uint32_t tensor, muc_cnnchip_value *out,
                             bool *found)
{
    muc_cnnchip_view view;

    *found = false;
    if (l->values[tensor].on_chip || muc_cnnchip_tensor(l, tensor)->kind == MUC_TENSOR_INPUT)
        MUC_TRY(muc_cnnchip_take_line(l, tensor, true, &view, out, found));
    return MUC_OK;
}

/* The tensor has the elements of `from`, which `source` has: the same numbers, or in int8 the same
 * integers on its own scale. */
static void set_value(muc_cnnchip_lowering *l, uint32_t tensor, const muc_cnnchip_value *from,
                      uint32_t source)
{
    const muc_cnnchip_value own = l->values[tensor];
    bool rescaled = muc_cnnchip_tensor(l, tensor)->quantization &&
                    (own.scale != from->scale || own.zero != from->zero);

    l->values[tensor] = *from;
    if (rescaled) { /* the same integers for other numbers */
        l->values[tensor].scale = own.scale;
        l->values[tensor].zero = own.zero;
    }
    if (rescaled || l->readers[source] != 1) /* nothing behind it may change what others read */
        l->values[tensor].layer = MUC_NO_ID;
}

muc_status muc_cnnchip_lower_alias(muc_cnnchip_lowering *l, const muc_node *node, bool *done)
{
    muc_cnnchip_value v;

    MUC_TRY(find_value(l, node->inputs[0], &v, done));
    if (*done)
        set_value(l, node->outputs[0], &v, node->inputs[0]);
    return MUC_OK;
}

/* the value counts its elements as the tensor's own image does */
static bool is_image(const muc_cnnchip_lowering *l, uint32_t tensor, const muc_cnnchip_value *v)
{
    uint32_t c, h, w;

    return muc_cnnchip_image(l, tensor, v->last, &c, &h, &w) && c == v->view.c && h == v->view.h &&
           w == v->view.w;
}

muc_status muc_cnnchip_lower_transpose(muc_cnnchip_lowering *l, const muc_node *node, bool *done)
{
    static const int64_t to_last[2][4] = { { 0, 2, 1 }, { 0, 2, 3, 1 } };
    static const int64_t to_first[2][4] = { { 0, 2, 1 }, { 0, 3, 1, 2 } };
    const int64_t *perm = muc_node_integers(node, MUC_KEY_PERM);
    uint32_t rank = muc_cnnchip_tensor(l, node->inputs[0])->rank;
    muc_cnnchip_value v;
    bool found;

    if (rank != 3 && rank != 4)
        return MUC_OK;
    MUC_TRY(find_value(l, node->inputs[0], &v, &found));
    if (!found || !is_image(l, node->inputs[0], &v))
        return MUC_OK;
    for (uint32_t i = 0; i < rank; i++)
        if (perm[i] != (v.last ? to_first : to_last)[rank - 3][i])
            return MUC_OK;
    *done = true;
    v.last = !v.last;
    set_value(l, node->outputs[0], &v, node->inputs[0]);
    return MUC_OK;
}

/* ---- parts ---- */

/* the view's extent along an axis of the tensor's image, and where it begins; NULL: no such axis */
static uint32_t *extent_along(muc_cnnchip_view *view, const muc_cnnchip_value *v, uint32_t rank,
                              uint32_t axis, int32_t **start)
{
    uint32_t channels = rank <= 2 || v->last ? rank - 1 : 1, pixel;

    *start = NULL;
    if (axis == channels)
        return &view->c;
    if (axis == 0)
        return NULL;
    pixel = v->last ? axis - 1 : axis - 2;
    if (rank == 3)
        pixel = 1;
    *start = pixel == 0 ? &view->y0 : &view->x0;
    return pixel == 0 ? &view->h : &view->w;
}

static bool narrow(muc_cnnchip_value *v, uint32_t rank, uint32_t axis, uint32_t first,
                   uint32_t size)
{
    int32_t *start;
    uint32_t *extent = extent_along(&v->view, v, rank, axis, &start);

    if (!extent)
        return axis == 0 && first == 0 && size == 1;
    if (start)
        *start += (int32_t)first;
    else
        v->view.c0 += first;
    *extent = size;
    return true;
}

static uint32_t expr_value(const muc_cnnchip_lowering *l, muc_expr e)
{
    return muc_expr_get(l->graph->pool, e)->immediate;
}

muc_status muc_cnnchip_lower_slice(muc_cnnchip_lowering *l, const muc_node *node, bool *done)
{
    const muc_attribute *axes = muc_node_attribute(node, MUC_KEY_AXES);
    const muc_attribute *starts = muc_node_attribute(node, MUC_KEY_STARTS);
    const muc_attribute *sizes = muc_node_attribute(node, MUC_KEY_SIZES);
    uint32_t rank = muc_cnnchip_tensor(l, node->inputs[0])->rank;
    muc_cnnchip_value v;
    bool found;

    MUC_TRY(find_value(l, node->inputs[0], &v, &found));
    if (!found || !is_image(l, node->inputs[0], &v))
        return MUC_OK;
    for (uint32_t i = 0; i < axes->value.integers.count; i++) {
        muc_expr start = starts->value.exprs.items[i], size = sizes->value.exprs.items[i];

        if (!muc_expr_is_const(l->graph->pool, start) || !muc_expr_is_const(l->graph->pool, size) ||
            muc_node_item_or(node, MUC_KEY_STEPS, i, 1) != 1 ||
            !narrow(&v, rank, (uint32_t)axes->value.integers.items[i], expr_value(l, start),
                    expr_value(l, size)))
            return MUC_OK;
    }
    *done = true;
    v.layer = MUC_NO_ID;
    set_value(l, node->outputs[0], &v, node->inputs[0]);
    return MUC_OK;
}

muc_status muc_cnnchip_lower_split(muc_cnnchip_lowering *l, const muc_node *node, bool *done)
{
    uint32_t rank = muc_cnnchip_tensor(l, node->inputs[0])->rank, first = 0;
    uint32_t axis = (uint32_t)muc_node_integer(node, MUC_KEY_AXIS);
    muc_cnnchip_value v;
    bool found;

    MUC_TRY(find_value(l, node->inputs[0], &v, &found));
    if (!found || !is_image(l, node->inputs[0], &v) || axis == 0)
        return MUC_OK;
    *done = true;
    v.layer = MUC_NO_ID;
    for (uint32_t i = 0; i < node->output_count; i++) {
        uint32_t size = muc_cnnchip_dim(l, node->outputs[i], axis);

        set_value(l, node->outputs[i], &v, node->inputs[0]);
        narrow(&l->values[node->outputs[i]], rank, axis, first, size);
        first += size;
    }
    return MUC_OK;
}

/* ---- concatenation ---- */

/* Whether an operand can be made inside the result: it is all of a storage that is not a part of
 * another yet, and whose border the result can have. */
static bool can_move(const muc_cnnchip_lowering *l, const muc_cnnchip_value *v, bool channels)
{
    const muc_cnnchip_storage *s = &l->storages[v->view.storage];
    bool bordered = s->border.t || s->border.b || s->border.l || s->border.r;

    return s->parent == MUC_NO_ID && s->alias == MUC_NO_ID && s->port == MUC_NO_ID && !s->plain &&
           v->maker == MUC_NO_ID && v->view.c0 == 0 && v->view.y0 == 0 && v->view.x0 == 0 &&
           v->view.c == s->c && v->view.h == s->h && v->view.w == s->w && (channels || !bordered);
}

/* the whole takes over the border; false if it has another value */
static bool take_border(muc_cnnchip_storage *whole, const muc_cnnchip_border *b)
{
    muc_cnnchip_border *w = &whole->border;

    if (!b->t && !b->b && !b->l && !b->r)
        return true;
    if ((w->t || w->b || w->l || w->r) && w->value != b->value)
        return false;
    w->value = b->value;
    w->t = b->t > w->t ? b->t : w->t;
    w->b = b->b > w->b ? b->b : w->b;
    w->l = b->l > w->l ? b->l : w->l;
    w->r = b->r > w->r ? b->r : w->r;
    return true;
}

static bool same_quantization(const muc_cnnchip_value *a, const muc_cnnchip_value *b)
{
    return a->scale == b->scale && a->zero == b->zero;
}

static muc_status put_part(muc_cnnchip_lowering *l, const muc_node *node, uint32_t operand,
                           muc_cnnchip_view in, muc_cnnchip_view part, bool channels)
{
    const muc_cnnchip_value *v = &l->values[operand], *out = &l->values[node->outputs[0]];
    muc_cnnchip_storage *s = &l->storages[v->view.storage];
    bool moves =
        v->view.storage == in.storage && can_move(l, v, channels) && same_quantization(v, out);
    muc_cnnchip_step *step;

    if (moves && take_border(&l->storages[part.storage], &s->border)) {
        s->parent = part.storage;
        s->c0 = part.c0;
        s->y0 = (uint32_t)part.y0;
        s->x0 = (uint32_t)part.x0;
        return MUC_OK;
    }
    MUC_TRY(muc_cnnchip_add_step(l, MUC_CNNCHIP_STEP_ADD, in, part, &step));
    step->border = part.y0 == 0 && part.x0 == 0;
    if (l->is_int8 && !same_quantization(v, out)) {
        step->factor = (float)((double)v->scale / (double)out->scale);
        step->zero_src = v->zero;
        step->zero_out = out->zero;
    }
    return MUC_OK;
}

muc_status muc_cnnchip_lower_concat(muc_cnnchip_lowering *l, const muc_node *node, bool *done)
{
    uint32_t axis = (uint32_t)muc_node_integer(node, MUC_KEY_AXIS), c, h, w, first = 0;
    uint32_t out_id = node->outputs[0], rank = muc_cnnchip_tensor(l, out_id)->rank;
    muc_cnnchip_view *in, out;
    muc_cnnchip_value form;
    bool last = true;

    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!muc_cnnchip_holds(l, node->inputs[i]) || muc_cnnchip_constant(l, node->inputs[i]))
            return MUC_OK;
        if (l->values[node->inputs[i]].on_chip && rank > 2)
            last = l->values[node->inputs[i]].last;
    }
    if (axis == 0 || !muc_cnnchip_holds(l, out_id) ||
        !muc_cnnchip_image(l, out_id, last, &c, &h, &w))
        return MUC_OK;
    MUC_TRY(muc_cnnchip_begin_layer(l, node));
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->arena, node->input_count, &in));
    for (uint32_t i = 0; i < node->input_count; i++) {
        MUC_TRY(muc_cnnchip_take(l, node->inputs[i], last, &in[i], done));
        if (!*done)
            return MUC_OK;
    }
    MUC_TRY(muc_cnnchip_result(l, out_id, last, c, h, w, &out));
    l->values[out_id].layer = MUC_NO_ID;
    for (uint32_t i = 0; i < node->input_count; i++) {
        uint32_t size = muc_cnnchip_dim(l, node->inputs[i], axis);

        form = l->values[out_id];
        narrow(&form, rank, axis, first, size);
        MUC_TRY(put_part(l, node, node->inputs[i], in[i], form.view, form.view.c != c));
        first += size;
    }
    return MUC_OK;
}

/* ---- padding ---- */

muc_status muc_cnnchip_lower_pad_node(muc_cnnchip_lowering *l, const muc_node *node, bool *done)
{
    const int64_t *pads = muc_node_integers(node, MUC_KEY_PADS);
    uint32_t rank = muc_cnnchip_tensor(l, node->inputs[0])->rank, id = muc_node_input(node, 1);
    const uint8_t *data = muc_cnnchip_constant(l, id);
    muc_cnnchip_border border = { .value = 0 };
    muc_cnnchip_value v;
    uint32_t y, x;
    bool found;

    if (rank != 4 || muc_node_word_or(node, MUC_KEY_MODE, MUC_WORD_CONSTANT) != MUC_WORD_CONSTANT ||
        !muc_cnnchip_holds(l, node->inputs[0]) || (id != MUC_NO_ID && !data))
        return MUC_OK;
    MUC_TRY(find_value(l, node->inputs[0], &v, &found));
    if (!found || !is_image(l, node->inputs[0], &v))
        return MUC_OK;
    y = v.last ? 1 : 2;
    x = y + 1;
    for (uint32_t i = 0; i < 2 * rank; i++)
        if (pads[i] < 0 || (pads[i] != 0 && i % rank != y && i % rank != x))
            return MUC_OK;
    border = (muc_cnnchip_border){ (uint32_t)pads[y], (uint32_t)pads[rank + y], (uint32_t)pads[x],
                                   (uint32_t)pads[rank + x], 0 };
    if (l->is_int8)
        border.value = muc_cnnchip_bits(l, data ? (float)(int8_t)data[0] : (float)v.zero);
    else
        border.value = muc_cnnchip_bits(l, data ? muc_cnnchip_number(data, 0) : 0);
    *done = true;
    MUC_TRY(muc_cnnchip_begin_layer(l, node));
    MUC_TRY(muc_cnnchip_pad(l, v.view, &border, &v.view));
    v.layer = MUC_NO_ID;
    set_value(l, node->outputs[0], &v, node->inputs[0]);
    return MUC_OK;
}

/* ---- int8 and real numbers ---- */

muc_status muc_cnnchip_lower_quantize(muc_cnnchip_lowering *l, const muc_node *node, bool *done)
{
    uint32_t x = node->inputs[0], out = node->outputs[0];
    muc_cnnchip_step *step;
    muc_cnnchip_value form;
    muc_cnnchip_view in, to;

    if (!l->is_int8 || !muc_cnnchip_holds(l, out))
        return MUC_OK;
    if (muc_cnnchip_tensor(l, x)->kind == MUC_TENSOR_INPUT &&
        muc_cnnchip_tensor(l, x)->dtype == MUC_F32) { /* the master quantizes what it puts there */
        l->values[out].on_host = true;
        MUC_TRY(muc_cnnchip_take_line(l, out, true, &in, &form, done));
        if (*done) {
            l->storages[in.storage].port = x;
            l->storages[in.storage].port_as = out;
            l->values[x] = l->values[out];
        }
        return MUC_OK;
    }
    if (!muc_cnnchip_holds(l, x))
        return MUC_OK;
    MUC_TRY(muc_cnnchip_begin_layer(l, node));
    MUC_TRY(muc_cnnchip_take_line(l, x, true, &in, &form, done));
    if (!*done)
        return MUC_OK;
    MUC_TRY(muc_cnnchip_result(l, out, form.last, in.c, in.h, in.w, &to));
    MUC_TRY(muc_cnnchip_add_step(l, MUC_CNNCHIP_STEP_ADD, in, to, &step));
    step->border = step->final = true;
    step->factor = (float)((double)l->values[x].scale / (double)l->values[out].scale);
    step->zero_src = l->values[x].zero;
    step->zero_out = l->values[out].zero;
    return MUC_OK;
}

/* whoever reads real numbers reads them off the integers */
muc_status muc_cnnchip_lower_dequantize(muc_cnnchip_lowering *l, const muc_node *node, bool *done)
{
    muc_cnnchip_value v;

    if (!l->is_int8 || !muc_cnnchip_holds(l, node->inputs[0]))
        return MUC_OK;
    MUC_TRY(find_value(l, node->inputs[0], &v, done));
    if (*done)
        set_value(l, node->outputs[0], &v, node->inputs[0]);
    return MUC_OK;
}

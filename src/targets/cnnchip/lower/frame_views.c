/* frame_views.c - where tensors lie in FRAME, and how one is had in the shape that a step wants. */
#include <string.h>

#include "base/half.h"
#include "targets/cnnchip/lower/chip_lower.h"

enum { MOST_BORDER = 255, MOST_SIDE = 65535, MOST_HOPS = 64 };

/* ---- tensors ---- */

uint32_t muc_cnnchip_dim(const muc_cnnchip_lowering *l, uint32_t tensor, uint32_t i)
{
    return muc_expr_get(l->graph->pool, muc_cnnchip_tensor(l, tensor)->dims[i])->immediate;
}

uint64_t muc_cnnchip_elements(const muc_cnnchip_lowering *l, uint32_t tensor)
{
    uint64_t elements = 1;

    for (uint32_t i = 0; i < muc_cnnchip_tensor(l, tensor)->rank; i++)
        elements *= muc_cnnchip_dim(l, tensor, i);
    return elements;
}

bool muc_cnnchip_image(const muc_cnnchip_lowering *l, uint32_t tensor, bool last, uint32_t *c,
                       uint32_t *h, uint32_t *w)
{
    uint32_t rank = muc_cnnchip_tensor(l, tensor)->rank, d[4] = { 1, 1, 1, 1 };

    if (rank > 4)
        return false;
    for (uint32_t i = 0; i < rank; i++)
        d[i] = muc_cnnchip_dim(l, tensor, i);
    *c = *h = *w = 1;
    if (rank == 4) {
        *c = d[last ? 3 : 1];
        *h = d[last ? 1 : 2];
        *w = d[last ? 2 : 3];
    } else if (rank == 3) {
        *c = d[last ? 2 : 1];
        *w = d[last ? 1 : 2];
    } else {
        *c = rank == 2 ? d[1] : d[0];
    }
    return (rank < 2 || d[0] == 1) && *c && *h && *w && *c <= MOST_SIDE && *h <= MOST_SIDE &&
           *w <= MOST_SIDE;
}

bool muc_cnnchip_holds(const muc_cnnchip_lowering *l, uint32_t tensor)
{
    const muc_tensor *t = muc_cnnchip_tensor(l, tensor);

    if (l->is_int8)
        return t->dtype == MUC_I8 && t->quantization && t->quantization->count == 1;
    return t->dtype == MUC_F32;
}

const uint8_t *muc_cnnchip_constant(const muc_cnnchip_lowering *l, uint32_t tensor)
{
    const muc_tensor *t = tensor == MUC_NO_ID ? NULL : muc_cnnchip_tensor(l, tensor);

    return t && t->kind == MUC_TENSOR_CONST && !t->sequence ? t->data : NULL;
}

float muc_cnnchip_number(const uint8_t *data, uint64_t i)
{
    return muc_f32_of_bits(muc_load_u32(data + 4 * i));
}

uint32_t muc_cnnchip_bits(const muc_cnnchip_lowering *l, float number)
{
    if (l->is_int8)
        return (uint8_t)(int32_t)number;
    return l->machine->element == MUC_CNNCHIP_fp16 ? muc_f16_of_f32(number) : muc_f32_bits(number);
}

/* ---- storages ---- */

muc_status muc_cnnchip_new_storage(muc_cnnchip_lowering *l, const char *name, uint32_t c,
                                   uint32_t h, uint32_t w, uint32_t *out)
{
    MUC_TRY(muc_arena_grow(l->ctx, &l->arena, l->storage_count + (size_t)1, sizeof(*l->storages),
                           &l->storage_capacity, (void **)&l->storages));
    *out = l->storage_count++;
    l->storages[*out] = (muc_cnnchip_storage){
        .name = name,
        .c = c,
        .h = h,
        .w = w,
        .parent = MUC_NO_ID,
        .alias = MUC_NO_ID,
        .port = MUC_NO_ID,
        .first = UINT32_MAX,
    };
    return MUC_OK;
}

muc_cnnchip_view muc_cnnchip_whole(const muc_cnnchip_lowering *l, uint32_t storage)
{
    const muc_cnnchip_storage *s = &l->storages[storage];

    return (muc_cnnchip_view){ .storage = storage, .c = s->c, .h = s->h, .w = s->w };
}

muc_cnnchip_view muc_cnnchip_root(const muc_cnnchip_lowering *l, muc_cnnchip_view view)
{
    while (l->storages[view.storage].parent != MUC_NO_ID) {
        const muc_cnnchip_storage *s = &l->storages[view.storage];

        view.c0 += s->c0;
        view.y0 += (int32_t)s->y0;
        view.x0 += (int32_t)s->x0;
        view.storage = s->parent;
    }
    return view;
}

uint32_t muc_cnnchip_rows(const muc_cnnchip_storage *s)
{
    return s->border.t + s->h + s->border.b;
}

uint32_t muc_cnnchip_pitch(const muc_cnnchip_storage *s)
{
    return s->border.l + s->w + s->border.r;
}

static bool has_border(const muc_cnnchip_border *border)
{
    return border->t || border->b || border->l || border->r;
}

/* ---- steps that move ---- */

/* the view, copied to the whole of a new storage, which keeps scale and zero point */
static muc_status copy(muc_cnnchip_lowering *l, muc_cnnchip_view from, uint32_t *out)
{
    const char *name = l->storages[from.storage].name;
    muc_cnnchip_step *step;

    MUC_TRY(muc_cnnchip_new_storage(l, name, from.c, from.h, from.w, out));
    MUC_TRY(muc_cnnchip_add_step(l, MUC_CNNCHIP_STEP_ADD, from, muc_cnnchip_whole(l, *out), &step));
    step->border = true;
    return MUC_OK;
}

/* whether the elements of the view follow each other from now on */
static bool make_plain(muc_cnnchip_lowering *l, muc_cnnchip_view view, uint64_t *first)
{
    muc_cnnchip_view root = muc_cnnchip_root(l, view);
    muc_cnnchip_storage *s = &l->storages[root.storage];

    if (has_border(&s->border) || root.h != s->h || root.w != s->w)
        return false;
    s->plain = true;
    *first = (uint64_t)root.c0 * s->h * s->w;
    return true;
}

/* the same elements in another shape, copied if there are gaps between them */
static muc_status reshape(muc_cnnchip_lowering *l, muc_cnnchip_view view, uint32_t c, uint32_t h,
                          uint32_t w, muc_cnnchip_view *out)
{
    uint32_t storage, alias;
    uint64_t first;

    if (!make_plain(l, view, &first)) {
        MUC_TRY(copy(l, view, &storage));
        view = muc_cnnchip_whole(l, storage);
        make_plain(l, view, &first);
    }
    storage = muc_cnnchip_root(l, view).storage;
    MUC_TRY(muc_cnnchip_new_storage(l, l->storages[storage].name, c, h, w, &alias));
    l->storages[alias].alias = storage;
    l->storages[alias].alias_elements = first;
    l->storages[alias].plain = true;
    *out = muc_cnnchip_whole(l, alias);
    return MUC_OK;
}

/* (c, h, w) that the graph counts channels last, to or from a line in the graph's order: one copy a
 * pixel */
static muc_status turn(muc_cnnchip_lowering *l, muc_cnnchip_view image, muc_cnnchip_view line,
                       bool to_line)
{
    for (uint32_t y = 0; y < image.h; y++)
        for (uint32_t x = 0; x < image.w; x++) {
            muc_cnnchip_view pixel = image, part = line;
            muc_cnnchip_step *step;

            pixel.y0 += (int32_t)y;
            pixel.x0 += (int32_t)x;
            pixel.h = pixel.w = 1;
            part.c0 += (y * image.w + x) * image.c;
            part.c = image.c;
            MUC_TRY(muc_cnnchip_add_step(l, MUC_CNNCHIP_STEP_ADD, to_line ? pixel : part,
                                         to_line ? part : pixel, &step));
            step->border = !to_line && y == 0 && x == 0;
        }
    return MUC_OK;
}

/* ---- inputs, and what the master computed ---- */

static const muc_node *first_reader(const muc_cnnchip_lowering *l, uint32_t tensor)
{
    for (uint32_t i = 0; i < l->graph->node_count; i++)
        for (uint32_t k = 0; k < l->graph->nodes[i].input_count; k++)
            if (l->graph->nodes[i].inputs[k] == tensor)
                return &l->graph->nodes[i];
    return NULL;
}

/* The image as which the tensor's elements are wanted by the first operator over pixels behind it:
 * in their own order, seen with the shape that the last reshape on the way gives. */
static bool wanted(const muc_cnnchip_lowering *l, uint32_t tensor, bool *last, uint32_t *c,
                   uint32_t *h, uint32_t *w)
{
    uint32_t shape = tensor;
    bool turned = false;

    for (uint32_t hops = 0; hops < MOST_HOPS; hops++) {
        const muc_node *reader = first_reader(l, tensor);
        bool takes_layout, required;

        if (!reader)
            return false;
        takes_layout = muc_op_takes(reader->op, MUC_KEY_CHANNELS_LAST, &required);
        if (takes_layout) {
            *last = (muc_node_integer_or(reader, MUC_KEY_CHANNELS_LAST, 0) == 1) != turned;
            return muc_cnnchip_tensor(l, shape)->rank > 2 &&
                   muc_cnnchip_image(l, shape, *last, c, h, w);
        }
        if (reader->op == MUC_OP_LINEAR && muc_cnnchip_tensor(l, tensor)->rank <= 2)
            return false;
        tensor = reader->outputs[0];
        if (reader->op == MUC_OP_TRANSPOSE)
            turned = !turned;
        if (reader->op == MUC_OP_RESHAPE) {
            shape = tensor;
            turned = false;
        }
    }
    return false;
}

/* one shape for elements in the graph's order: as few channels as fields allow */
static bool line_shape(uint64_t elements, uint32_t *c, uint32_t *h, uint32_t *w)
{
    *h = *w = 1;
    *c = (uint32_t)elements;
    return elements > 0 && elements <= MOST_SIDE;
}

/* puts an input, or what the master computes, into FRAME */
static muc_status place(muc_cnnchip_lowering *l, uint32_t tensor)
{
    muc_cnnchip_value *v = &l->values[tensor];
    const muc_tensor *t = muc_cnnchip_tensor(l, tensor);
    uint32_t c = 1, h = 1, w = 1, storage;
    bool last = false;

    if (v->on_chip || !v->on_host || t->kind == MUC_TENSOR_CONST || !muc_cnnchip_holds(l, tensor))
        return MUC_OK;
    if (!wanted(l, tensor, &last, &c, &h, &w) ||
        (uint64_t)c * h * w != muc_cnnchip_elements(l, tensor)) {
        last = t->rank == 4;
        if (!muc_cnnchip_image(l, tensor, last, &c, &h, &w) ||
            (uint64_t)c * h * w != muc_cnnchip_elements(l, tensor)) {
            last = false;
            if (!line_shape(muc_cnnchip_elements(l, tensor), &c, &h, &w))
                return MUC_OK;
        }
    }
    MUC_TRY(muc_cnnchip_new_storage(l, t->name, c, h, w, &storage));
    if (t->kind == MUC_TENSOR_INPUT) {
        l->storages[storage].port = tensor;
        l->storages[storage].port_as = tensor;
    }
    v->on_chip = true;
    v->view = muc_cnnchip_whole(l, storage);
    v->last = last;
    v->layer = MUC_NO_ID;
    return MUC_OK;
}

/* ---- what steps ask for ---- */

muc_status muc_cnnchip_result(muc_cnnchip_lowering *l, uint32_t tensor, bool last, uint32_t c,
                              uint32_t h, uint32_t w, muc_cnnchip_view *out)
{
    muc_cnnchip_value *v = &l->values[tensor];
    uint32_t storage;

    MUC_TRY(muc_cnnchip_new_storage(l, muc_cnnchip_tensor(l, tensor)->name, c, h, w, &storage));
    v->on_chip = true;
    v->view = *out = muc_cnnchip_whole(l, storage);
    v->last = last;
    v->layer = l->layer_count - 1;
    return MUC_OK;
}

/* whether the graph's order is that of memory */
static bool in_order(bool last, uint32_t c, uint32_t h, uint32_t w)
{
    return !last || c == 1 || (uint64_t)h * w == 1;
}

muc_status muc_cnnchip_take(muc_cnnchip_lowering *l, uint32_t tensor, bool last,
                            muc_cnnchip_view *out, bool *done)
{
    uint32_t c, h, w, storage;
    muc_cnnchip_value v;
    muc_cnnchip_view line;

    *done = false;
    MUC_TRY(place(l, tensor));
    v = l->values[tensor];
    if (!v.on_chip || !muc_cnnchip_image(l, tensor, last, &c, &h, &w))
        return MUC_OK;
    *done = true;
    if (v.view.c == c && v.view.h == h && v.view.w == w &&
        (v.last == last || (in_order(v.last, c, h, w) && in_order(last, c, h, w)))) {
        *out = v.view;
        return MUC_OK;
    }
    line = v.view;
    if (!in_order(v.last, v.view.c, v.view.h, v.view.w)) {
        *done = (uint64_t)c * h * w <= MOST_SIDE;
        if (!*done)
            return MUC_OK;
        MUC_TRY(muc_cnnchip_new_storage(l, l->storages[v.view.storage].name, c * h * w, 1, 1,
                                        &storage));
        l->storages[storage].plain = true;
        line = muc_cnnchip_whole(l, storage);
        MUC_TRY(turn(l, v.view, line, true));
    }
    if (in_order(last, c, h, w))
        return reshape(l, line, c, h, w, out);
    *done = (uint64_t)c * h * w <= MOST_SIDE;
    if (!*done)
        return MUC_OK;
    MUC_TRY(reshape(l, line, c * h * w, 1, 1, &line));
    MUC_TRY(muc_cnnchip_new_storage(l, l->storages[v.view.storage].name, c, h, w, &storage));
    *out = muc_cnnchip_whole(l, storage);
    return turn(l, *out, line, false);
}

muc_status muc_cnnchip_take_line(muc_cnnchip_lowering *l, uint32_t tensor, bool bordered,
                                 muc_cnnchip_view *out, muc_cnnchip_value *form, bool *done)
{
    uint64_t elements = muc_cnnchip_elements(l, tensor), first;
    uint32_t storage;

    MUC_TRY(place(l, tensor));
    *form = l->values[tensor];
    *out = form->view;
    *done = form->on_chip;
    if (!*done || bordered)
        return MUC_OK;
    if (make_plain(l, form->view, &first))
        return MUC_OK;
    MUC_TRY(copy(l, form->view, &storage));
    l->storages[storage].plain = true;
    *out = muc_cnnchip_whole(l, storage);
    *done = elements > 0;
    return MUC_OK;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* whether the border can be the storage's own; it is then */
static bool widen(muc_cnnchip_lowering *l, muc_cnnchip_view root, const muc_cnnchip_border *border)
{
    muc_cnnchip_storage *s = &l->storages[root.storage];
    bool inside = (border->t && root.y0 != 0) || (border->l && root.x0 != 0) ||
                  (border->b && root.y0 + (int32_t)root.h != (int32_t)s->h) ||
                  (border->r && root.x0 + (int32_t)root.w != (int32_t)s->w);

    if (inside || s->plain || (has_border(&s->border) && s->border.value != border->value))
        return false;
    s->border.t = larger(s->border.t, border->t);
    s->border.b = larger(s->border.b, border->b);
    s->border.l = larger(s->border.l, border->l);
    s->border.r = larger(s->border.r, border->r);
    s->border.value = border->value;
    return true;
}

muc_status muc_cnnchip_pad(muc_cnnchip_lowering *l, muc_cnnchip_view view,
                           const muc_cnnchip_border *border, muc_cnnchip_view *out)
{
    uint32_t storage;

    *out = view;
    if (!has_border(border))
        return MUC_OK;
    if (border->t > MOST_BORDER || border->b > MOST_BORDER || border->l > MOST_BORDER ||
        border->r > MOST_BORDER)
        return muc_fail(l->ctx, MUC_UNSUPPORTED, l->graph->name, MUC_NO_OFFSET,
                        "'%s' is padded by more than %d rows or columns",
                        l->storages[view.storage].name, MOST_BORDER);
    if (!widen(l, muc_cnnchip_root(l, view), border)) {
        MUC_TRY(copy(l, view, &storage));
        *out = muc_cnnchip_whole(l, storage);
        widen(l, *out, border);
    }
    out->y0 -= (int32_t)border->t;
    out->x0 -= (int32_t)border->l;
    out->h += border->t + border->b;
    out->w += border->l + border->r;
    return MUC_OK;
}

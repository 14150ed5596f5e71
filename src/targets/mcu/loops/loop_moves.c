/* loop_moves.c - operators that put elements elsewhere: views where nothing has to move, loops of
 * copies else.
 */
#include <inttypes.h>
#include <string.h>

#include "operators/strided_copy.h"
#include "targets/mcu/program/c_text.h"
#include "targets/mcu/loops/loop_nest.h"
#include "targets/mcu/tiles/tiles.h"

enum { VIEW_ALIGNMENT = 4 }; /* where views begin, kernels read whole words */

/* a nest that copies operand 0 to operand 1 */
typedef struct copy {
    muc_mcu_nest nest;
    uint32_t bytes; /* of an element */
} copy;

static uint32_t element_bytes(const muc_tensor *tensor)
{
    return muc_dtype_get(tensor->dtype)->block_bytes;
}

static bool is_expr_one(const muc_mcu_stride *stride)
{
    return stride->expr == MUC_EXPR_NONE;
}

/* from element to element; a tile's channels or depths may lie between */
static bool is_step_one(const muc_mcu_stride *stride)
{
    return stride->factor == 1 && is_expr_one(stride) && !stride->of_channels && !stride->of_depths;
}

/* the innermost loop walks through both without a gap */
static bool is_block(const muc_mcu_nest *nest)
{
    return is_step_one(&nest->operands[0].strides[nest->loops - 1]) &&
           is_step_one(&nest->operands[1].strides[nest->loops - 1]);
}

/* few bytes, if the compiler sees their number, take no call */
static const char *function_for(const muc_mcu_nest *nest, uint64_t bytes)
{
    enum { FEW = 16 };
    const muc_expr_node *extent =
        muc_expr_get(nest->l->graph->pool, nest->extents[nest->loops - 1]);
    bool is_whole = nest->row_loop != nest->loops && nest->channel_loop != nest->loops &&
                    nest->depth_loop != nest->loops;

    return is_whole && extent->op == MUC_EXPR_CONST && (uint64_t)extent->immediate * bytes <= FEW
               ? "MUR_COPY_FEW"
               : "memcpy";
}

/* a loop that is long enough for words */
static bool is_long(const muc_mcu_nest *nest, uint32_t loop)
{
    const muc_expr_node *extent = muc_expr_get(nest->l->graph->pool, nest->extents[loop]);

    return extent->op == MUC_EXPR_CONST && extent->immediate >= 4;
}

/* The loop from `first` on whose turns are columns where bytes are turned: rows are those of the
 * last, along which the result lies. The last: none. */
static uint32_t find_columns(const copy *c, uint32_t first)
{
    const muc_mcu_nest *nest = &c->nest;
    const uint32_t last = nest->loops - 1;
    uint32_t loop = first;

    if (nest->loops < first + 2 || c->bytes != 1 || nest->row_loop || nest->channel_loop ||
        nest->depth_loop || muc_mcu_isa_suits(nest->l->isa, MUC_MCU_ISA_RV) >= 1 ||
        !is_step_one(&nest->operands[1].strides[last]) || !is_long(nest, last) ||
        !is_expr_one(&nest->operands[0].strides[last]))
        return last;
    while (loop < last && !(is_step_one(&nest->operands[0].strides[loop]) && is_long(nest, loop) &&
                            is_expr_one(&nest->operands[1].strides[loop])))
        loop++;
    return loop;
}

/* the last loop is rows, this one columns; the rest, in their order, around a call for each */
static void write_turns(const copy *c, uint32_t first, uint32_t columns, unsigned depth)
{
    const uint32_t last = c->nest.loops - 1;
    muc_text *text = &c->nest.l->text;
    muc_mcu_nest outer = c->nest;

    for (uint32_t i = columns; i + 1 < last; i++) {
        outer.extents[i] = outer.extents[i + 1];
        for (uint32_t k = 0; k < 2; k++)
            outer.operands[k].strides[i] = outer.operands[k].strides[i + 1];
    }
    outer.loops = last - 1;
    outer.is_unrolled = false;
    muc_mcu_nest_open(&outer, first, outer.loops, depth);
    muc_mcu_indent(text, depth + outer.loops - first);
    muc_text_add(text, "mur_turn_bytes((const int8_t *)&");
    muc_mcu_nest_print(&outer, &outer.operands[0], text);
    muc_text_add(text, ", %" PRId64 "u, (int8_t *)&", c->nest.operands[0].strides[last].factor);
    muc_mcu_nest_print(&outer, &outer.operands[1], text);
    muc_text_add(text, ", %" PRId64 "u, ", c->nest.operands[1].strides[columns].factor);
    muc_mcu_nest_print_extent(&c->nest, last, text);
    muc_text_add(text, ", ");
    muc_mcu_nest_print_extent(&c->nest, columns, text);
    muc_text_add(text, ");\n");
    muc_mcu_nest_close(&outer, first, outer.loops, depth);
}

/* the loops from `first` on */
static void write_copy(const copy *c, uint32_t first, unsigned depth)
{
    const uint32_t columns = find_columns(c, first);
    const muc_mcu_nest *nest = &c->nest;
    bool block = nest->loops > 0 && is_block(nest);
    uint32_t loops = nest->loops - block;
    muc_text *text = &nest->l->text;
    muc_mcu_nest outer = *nest;

    if (columns + 1 < nest->loops) {
        write_turns(c, first, columns, depth);
        return;
    }
    outer.loops = loops;
    muc_mcu_nest_open(nest, first, loops, depth);
    muc_mcu_indent(text, depth + loops - first);
    if (block) {
        muc_text_add(text, "%s(&", function_for(nest, c->bytes));
        muc_mcu_nest_print(&outer, &nest->operands[1], text);
        muc_text_add(text, ", &");
        muc_mcu_nest_print(&outer, &nest->operands[0], text);
        muc_text_add(text, ", ");
        muc_mcu_nest_print_extent(nest, loops, text);
        muc_text_add(text, " * %" PRIu32 "u);\n", c->bytes);
    } else {
        muc_mcu_nest_print(nest, &nest->operands[1], text);
        muc_text_add(text, " = ");
        muc_mcu_nest_print(nest, &nest->operands[0], text);
        muc_text_add(text, ";\n");
    }
    muc_mcu_nest_close(nest, first, loops, depth);
}

/* loops over a shape, with arrays a and y */
static copy begin_copy(muc_mcu_lowering *l, const muc_tensor *shape, const char *a, const char *y)
{
    copy c = { muc_mcu_nest_of(l, shape), element_bytes(shape) };

    c.nest.is_unrolled = c.bytes == 1;
    muc_mcu_nest_add(&c.nest, a);
    muc_mcu_nest_add(&c.nest, y);
    return c;
}

static void dense_strides(const copy *c, muc_mcu_operand *operand, const muc_tensor *tensor)
{
    for (uint32_t i = 0; i < tensor->rank; i++)
        operand->strides[i] = muc_mcu_dense(c->nest.l, tensor, i);
}

/* one block, read from a fixed place on, is a view: *offset elements into its input */
static bool is_view(const copy *c, int64_t *offset)
{
    const muc_mcu_nest *nest = &c->nest;
    const muc_mcu_operand *a = &nest->operands[0];

    *offset = 0;
    for (uint32_t i = 0; i < a->offset_count; i++) {
        *offset += a->offsets[i].factor;
        if (!is_expr_one(&a->offsets[i]))
            return false;
    }
    return nest->loops == 0 || (nest->loops == 1 && is_block(nest));
}

/* the one copy that a node is, or a view */
static muc_status write_single(muc_mcu_lowering *l, const muc_node *node, copy *c)
{
    int64_t offset;

    muc_mcu_nest_simplify(&c->nest);
    if (is_view(c, &offset) && offset * c->bytes % VIEW_ALIGNMENT == 0)
        return muc_mcu_make_view(l, node, (uint64_t)offset * c->bytes);
    MUC_TRY(muc_mcu_begin_function(l, node));
    MUC_TRY(muc_mcu_nest_tile(&c->nest, node, c->nest.loops, MUC_MCU_CUT_CHANNELS));
    write_copy(c, 0, 1);
    return muc_mcu_end_function(l, 0, 0);
}

/* Where both sides begin a turn of the outermost loop at the same place, elements move within rows:
 * the bytes of one, if they are few, else 0. All of x goes to all of y. */
static uint64_t row_bytes(const copy *c, const muc_tensor *x, const muc_tensor *y)
{
    enum { MOST = 2048 };
    const muc_mcu_operand *a = &c->nest.operands[0], *to = &c->nest.operands[1];
    const muc_mcu_lowering *l = c->nest.l;
    uint64_t row = (uint64_t)to->strides[0].factor * c->bytes;

    if (c->nest.loops < 3 || !muc_mcu_is_static(l, x) || l->pieces ||
        x->kind != MUC_TENSOR_ACTIVATION || muc_mcu_has_tiles(l->program->machine) ||
        muc_mcu_most_elements(l, x) != muc_mcu_most_elements(l, y) || a->offset_count > 0 ||
        a->strides[0].factor != to->strides[0].factor)
        return 0;
    for (uint32_t i = 0; i < c->nest.loops; i++)
        if (a->strides[i].factor <= 0 || a->strides[i].factor > to->strides[0].factor ||
            to->strides[i].factor <= 0 || to->strides[i].factor > to->strides[0].factor)
            return 0;
    return row <= MOST ? row : 0;
}

/* the one copy that a node is, of all elements; by rows, the output may take the input's bytes */
static muc_status write_move(muc_mcu_lowering *l, const muc_node *node, copy *c)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);
    const char *type = muc_mcu_c_type(x->dtype);
    muc_mcu_nest *nest = &c->nest;
    uint64_t row;

    muc_mcu_nest_simplify(nest);
    row = row_bytes(c, x, y);
    if (row == 0)
        return write_single(l, node, c);
    MUC_TRY(muc_mcu_begin_function(l, node));
    muc_text_add(&l->text, "    const %s *row = (const %s *)scratch;\n\n", type, type);
    muc_mcu_nest_open(nest, 0, 1, 1);
    muc_mcu_indent(&l->text, 2);
    muc_text_add(&l->text, "memcpy(scratch, &a[i0 * %" PRId64 "u], %" PRIu64 "u);\n",
                 nest->operands[0].strides[0].factor, row);
    nest->operands[0].name = "row";
    nest->operands[0].strides[0].factor = 0;
    write_copy(c, 1, 2);
    muc_mcu_nest_close(nest, 0, 1, 1);
    MUC_TRY(muc_mcu_end_function(l, row, 0));
    muc_mcu_may_overlap(l, 0, 0);
    return MUC_OK;
}

/* ---- views ---- */

bool muc_mcu_takes_view(const muc_mcu_lowering *l, const muc_node *node)
{
    return muc_mcu_input(l, node, 0)->dtype == muc_mcu_output(l, node, 0)->dtype;
}

/* rows of a state that grows are not packed; they are copied into another shape */
muc_status muc_mcu_write_view(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    uint32_t value;
    copy c;

    MUC_TRY(muc_mcu_input_value(l, node, 0, &value));
    if (!l->program->values[value].layout)
        return muc_mcu_make_view(l, node, 0);
    c = begin_copy(l, x, "a", "y");
    dense_strides(&c, &c.nest.operands[0], x);
    for (uint32_t i = 0; i < x->rank; i++)
        c.nest.operands[1].strides[i] = muc_mcu_packed(l, x, i);
    return write_single(l, node, &c);
}

/* ---- one input, one output ---- */

muc_status muc_mcu_write_transpose(muc_mcu_lowering *l, const muc_node *node)
{
    const int64_t *perm = muc_node_integers(node, MUC_KEY_PERM);
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);
    copy c = begin_copy(l, y, "a", "y");

    dense_strides(&c, &c.nest.operands[1], y);
    for (uint32_t i = 0; i < y->rank; i++)
        c.nest.operands[0].strides[i] = muc_mcu_dense(l, x, (uint32_t)perm[i]);
    return write_move(l, node, &c);
}

muc_status muc_mcu_write_expand(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    copy c = begin_copy(l, y, "a", "y");

    dense_strides(&c, &c.nest.operands[1], y);
    muc_mcu_nest_broadcast(&c.nest, &c.nest.operands[0], muc_mcu_input(l, node, 0), y->rank);
    return write_single(l, node, &c);
}

muc_status muc_mcu_write_slice(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_attribute *axes = muc_node_attribute(node, MUC_KEY_AXES);
    const muc_attribute *starts = muc_node_attribute(node, MUC_KEY_STARTS);
    const int64_t *steps = muc_node_integers(node, MUC_KEY_STEPS);
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);
    copy c = begin_copy(l, y, "a", "y");
    muc_mcu_operand *a = &c.nest.operands[0];

    dense_strides(&c, &c.nest.operands[1], y);
    dense_strides(&c, a, x);
    for (uint32_t i = 0; i < axes->value.integers.count; i++) {
        muc_mcu_stride *stride = &a->strides[axes->value.integers.items[i]];

        muc_mcu_nest_shift(&c.nest, a, *stride, starts->value.exprs.items[i]);
        stride->factor *= steps ? steps[i] : 1;
    }
    return write_single(l, node, &c);
}

static muc_copy_side side_of(const muc_mcu_lowering *l, const muc_tensor *tensor)
{
    muc_copy_side side = { .rank = tensor->rank };

    for (uint32_t i = 0; i < tensor->rank; i++) {
        side.dims[i] = muc_mcu_dim(l, tensor, i);
        side.steps[i] = (size_t)muc_mcu_dense(l, tensor, i).factor;
    }
    return side;
}

bool muc_mcu_takes_strided_copy(const muc_mcu_lowering *l, const muc_node *node)
{
    return muc_mcu_is_static(l, muc_mcu_input(l, node, 0)) &&
           muc_mcu_is_static(l, muc_mcu_output(l, node, 0));
}

muc_status muc_mcu_write_strided_copy(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_copy_side x = side_of(l, muc_mcu_input(l, node, 0));
    const muc_copy_side y = side_of(l, muc_mcu_output(l, node, 0));
    const muc_strided_copy loops = muc_copy_of(node, &x, &y);
    copy c = begin_copy(l, muc_mcu_input(l, node, 0), "a", "y");

    c.nest.loops = loops.count;
    for (uint32_t i = 0; i < loops.count; i++) {
        c.nest.extents[i] = muc_expr_const(l->graph->pool, (uint32_t)loops.loops[i].extent);
        c.nest.operands[0].strides[i].factor = loops.loops[i].from;
        c.nest.operands[1].strides[i].factor = loops.loops[i].to;
    }
    return write_move(l, node, &c);
}

/* of two quantizations, or none, that mean the same */
static bool same_scale(const muc_quantization *a, const muc_quantization *b)
{
    if (!a || !b)
        return a == b;
    return a->count == 1 && b->count == 1 && memcmp(a->scales, b->scales, sizeof(float)) == 0 &&
           a->zero_points[0] == b->zero_points[0];
}

/* element o of a dimension that grows n times is element o / n: cut off, or, where pixels are
 * sampled at their middles, the nearest, which is never between two */
bool muc_mcu_takes_repeat(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);
    muc_word coordinates = muc_node_word_or(node, MUC_KEY_COORDINATES, MUC_WORD_HALF_PIXEL);
    muc_word rounding = muc_node_word_or(node, MUC_KEY_ROUNDING, MUC_WORD_ROUND_PREFER_FLOOR);
    bool cuts = coordinates == MUC_WORD_ASYMMETRIC && rounding == MUC_WORD_FLOOR;
    bool nearest = coordinates == MUC_WORD_HALF_PIXEL && rounding == MUC_WORD_ROUND_PREFER_FLOOR;

    if (muc_node_word_or(node, MUC_KEY_MODE, MUC_WORD_NEAREST) != MUC_WORD_NEAREST ||
        (!cuts && !nearest) || !muc_mcu_is_static(l, x) || !muc_mcu_is_static(l, y) ||
        !same_scale(x->quantization, y->quantization) || muc_node_attribute(node, MUC_KEY_SCALES))
        return false;
    for (uint32_t i = 0; i < x->rank; i++)
        if (muc_mcu_dim(l, x, i) == 0 || muc_mcu_dim(l, y, i) % muc_mcu_dim(l, x, i) != 0)
            return false;
    return true;
}

/* each dimension is two loops: elements, then the places of each */
muc_status muc_mcu_write_repeat(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);
    copy c = begin_copy(l, x, "a", "y");
    muc_expr_pool *pool = l->graph->pool;

    c.nest.loops = 2 * x->rank;
    for (uint32_t i = 0; i < x->rank; i++) {
        uint32_t times = muc_mcu_dim(l, y, i) / muc_mcu_dim(l, x, i);
        muc_mcu_stride step = muc_mcu_dense(l, y, i);

        c.nest.extents[2 * i] = x->dims[i];
        c.nest.extents[2 * i + 1] = muc_expr_const(pool, times);
        c.nest.operands[0].strides[2 * i] = muc_mcu_dense(l, x, i);
        c.nest.operands[1].strides[2 * i + 1] = step;
        step.factor *= times;
        c.nest.operands[1].strides[2 * i] = step;
    }
    return write_single(l, node, &c);
}

/* ---- several pieces ---- */

bool muc_mcu_takes_concat(const muc_mcu_lowering *l, const muc_node *node)
{
    (void)l;
    return *muc_mcu_input_name(node->input_count - 1) != '?';
}

/* the elements of piece within whole from `from` along axis, to or from an array of their own */
static void write_piece(muc_mcu_lowering *l, const muc_tensor *piece, const muc_tensor *whole,
                        uint32_t axis, muc_expr from, const char *a, const char *y, bool join)
{
    copy c = begin_copy(l, piece, a, y);
    muc_mcu_operand *of_piece = &c.nest.operands[!join], *of_whole = &c.nest.operands[join];

    dense_strides(&c, of_piece, piece);
    dense_strides(&c, of_whole, whole);
    muc_mcu_nest_shift(&c.nest, of_whole, of_whole->strides[axis], from);
    muc_mcu_nest_simplify(&c.nest);
    write_copy(&c, 0, 1);
}

muc_status muc_mcu_write_concat(muc_mcu_lowering *l, const muc_node *node)
{
    uint32_t axis = (uint32_t)muc_node_integer(node, MUC_KEY_AXIS);
    muc_expr from = muc_expr_const(l->graph->pool, 0);

    MUC_TRY(muc_mcu_begin_function(l, node));
    for (uint32_t i = 0; i < node->input_count; i++) {
        const muc_tensor *piece = muc_mcu_input(l, node, i);

        if (muc_mcu_most_elements(l, piece) > 0)
            write_piece(l, piece, muc_mcu_output(l, node, 0), axis, from, muc_mcu_input_name(i),
                        "y", true);
        from = muc_expr_add(l->graph->pool, from, piece->dims[axis]);
    }
    return muc_mcu_end_function(l, 0, 0);
}

bool muc_mcu_takes_split(const muc_mcu_lowering *l, const muc_node *node)
{
    (void)l;
    return *muc_mcu_output_name(node->output_count - 1) != '?';
}

muc_status muc_mcu_write_split(muc_mcu_lowering *l, const muc_node *node)
{
    uint32_t axis = (uint32_t)muc_node_integer(node, MUC_KEY_AXIS);
    muc_expr from = muc_expr_const(l->graph->pool, 0);

    MUC_TRY(muc_mcu_begin_function(l, node));
    for (uint32_t i = 0; i < node->output_count; i++) {
        const muc_tensor *piece = muc_mcu_output(l, node, i);

        write_piece(l, piece, muc_mcu_input(l, node, 0), axis, from, "a", muc_mcu_output_name(i),
                    false);
        from = muc_expr_add(l->graph->pool, from, piece->dims[axis]);
    }
    return muc_mcu_end_function(l, 0, 0);
}

/* ---- states ---- */

bool muc_mcu_takes_read(const muc_mcu_lowering *l, const muc_node *node)
{
    return muc_mcu_is_state(l, node, 0);
}

muc_status muc_mcu_write_read(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *state = muc_mcu_input(l, node, 0);
    copy c = begin_copy(l, state, "a", "y");

    MUC_TRY(muc_mcu_begin_function(l, node));
    dense_strides(&c, &c.nest.operands[0], state);
    dense_strides(&c, &c.nest.operands[1], state);
    muc_mcu_nest_simplify(&c.nest);
    write_copy(&c, 0, 1);
    return muc_mcu_end_function(l, 0, 0);
}

bool muc_mcu_takes_append(const muc_mcu_lowering *l, const muc_node *node)
{
    return muc_mcu_is_state(l, node, 0);
}

/* the new rows go into the state at their position, of assign at its begin; what later nodes see
 * are the state's first */
muc_status muc_mcu_write_append(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *state = muc_mcu_input(l, node, 0), *rows = muc_mcu_input(l, node, 1);
    bool appends = node->op == MUC_OP_APPEND;
    uint32_t axis = appends ? (uint32_t)muc_node_integer(node, MUC_KEY_AXIS) : 0, in, out;
    copy c = begin_copy(l, rows, "b", "y");

    MUC_TRY(muc_mcu_input_value(l, node, 0, &in));
    MUC_TRY(muc_mcu_begin_function(l, node));
    out = l->program->value_of[node->outputs[0]];
    l->program->values[out].view_of = in;
    l->program->values[out].layout = state;
    dense_strides(&c, &c.nest.operands[0], rows);
    dense_strides(&c, &c.nest.operands[1], state);
    if (appends)
        muc_mcu_nest_shift(&c.nest, &c.nest.operands[1], c.nest.operands[1].strides[axis],
                           muc_node_expr(node, MUC_KEY_POSITION));
    muc_mcu_nest_simplify(&c.nest);
    write_copy(&c, 0, 1);
    return muc_mcu_end_function(l, 0, 0);
}

/* ---- padding ---- */

bool muc_mcu_takes_pad(const muc_mcu_lowering *l, const muc_node *node)
{
    return muc_mcu_is_static(l, muc_mcu_input(l, node, 0));
}

/* where element i of dimension d of the output comes from, as text over o = i - pad; in [0, n) */
static const char *source_of(muc_word mode)
{
    if (mode == MUC_WORD_EDGE)
        return "o < 0 ? 0 : o >= n ? n - 1 : o";
    if (mode == MUC_WORD_REFLECT) /* there and back again */
        return "(o = ((o % (2 * n - 2)) + 2 * n - 2) % (2 * n - 2)) < n ? o : "
               "2 * n - 2 - o";
    return "((o % n) + n) % n";
}

static void print_fill(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);

    if (muc_mcu_input(l, node, 1))
        muc_text_add(&l->text, "b[0]");
    else
        muc_text_add(&l->text, "%d", x->quantization ? x->quantization->zero_points[0] : 0);
}

/* the result is filled, then what the input has of it is copied: that of dimension d which lies
 * within the result, for pads of less than 0 cut away */
static void write_filled(muc_mcu_lowering *l, const muc_node *node, const int64_t *pads)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);
    muc_expr_pool *pool = l->graph->pool;
    copy c = begin_copy(l, x, "a", "y");
    bool any = true;

    muc_mcu_indent(&l->text, 1);
    muc_text_add(&l->text, "for (uint32_t i = 0; i < %" PRIu64 "u; i++)\n",
                 muc_mcu_most_elements(l, y));
    muc_mcu_indent(&l->text, 2);
    muc_text_add(&l->text, "y[i] = ");
    print_fill(l, node);
    muc_text_add(&l->text, ";\n");
    dense_strides(&c, &c.nest.operands[0], x);
    dense_strides(&c, &c.nest.operands[1], y);
    for (uint32_t i = 0; i < x->rank; i++) {
        int64_t extent = muc_mcu_dim(l, x, i), of_y = muc_mcu_dim(l, y, i);
        int64_t first = pads[i] > 0 ? pads[i] : 0;
        int64_t end = pads[i] + extent < of_y ? pads[i] + extent : of_y;

        any = any && end > first;
        c.nest.extents[i] = muc_expr_const(pool, end > first ? (uint32_t)(end - first) : 0);
        muc_mcu_nest_shift(&c.nest, &c.nest.operands[0], c.nest.operands[0].strides[i],
                           muc_expr_const(pool, (uint32_t)(first - pads[i])));
        muc_mcu_nest_shift(&c.nest, &c.nest.operands[1], c.nest.operands[1].strides[i],
                           muc_expr_const(pool, (uint32_t)first));
    }
    if (!any)
        return;
    muc_mcu_nest_simplify(&c.nest);
    write_copy(&c, 0, 1);
}

/* every element asks each dimension where its source is */
static void write_mirrored(muc_mcu_lowering *l, const muc_node *node, muc_word mode,
                           const int64_t *pads)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);
    muc_mcu_nest nest = muc_mcu_nest_of(l, y);
    muc_text *text = &l->text;
    unsigned depth = 1 + y->rank;

    muc_mcu_nest_broadcast(&nest, muc_mcu_nest_add(&nest, "y"), y, y->rank);
    muc_mcu_nest_open(&nest, 0, nest.loops, 1);
    muc_mcu_indent(text, depth);
    muc_text_add(text, "uint32_t at = 0;\n");
    for (uint32_t i = 0; i < x->rank; i++) {
        uint32_t extent = muc_mcu_dim(l, x, i);

        if (extent <= 1)
            continue;
        muc_mcu_indent(text, depth);
        muc_text_add(text, "{\n");
        muc_mcu_indent(text, depth + 1);
        muc_text_add(text, "const int32_t n = %" PRIu32 ";\n", extent);
        muc_mcu_indent(text, depth + 1);
        muc_text_add(text, "int32_t o = (int32_t)i%u - (%" PRId64 ");\n\n", i, pads[i]);
        muc_mcu_indent(text, depth + 1);
        muc_text_add(text, "at += (uint32_t)(%s) * %" PRId64 "u;\n", source_of(mode),
                     muc_mcu_dense(l, x, i).factor);
        muc_mcu_indent(text, depth);
        muc_text_add(text, "}\n");
    }
    muc_mcu_indent(text, depth);
    muc_mcu_nest_print(&nest, &nest.operands[0], text);
    muc_text_add(text, " = a[at];\n");
    muc_mcu_nest_close(&nest, 0, nest.loops, 1);
}

muc_status muc_mcu_write_pad(muc_mcu_lowering *l, const muc_node *node)
{
    muc_word mode = muc_node_word_or(node, MUC_KEY_MODE, MUC_WORD_CONSTANT);
    const int64_t *pads = muc_node_integers(node, MUC_KEY_PADS);

    MUC_TRY(muc_mcu_begin_function(l, node));
    if (mode == MUC_WORD_CONSTANT)
        write_filled(l, node, pads);
    else
        write_mirrored(l, node, mode, pads);
    return muc_mcu_end_function(l, 0, 0);
}

/* ---- indices ---- */

bool muc_mcu_takes_gather(const muc_mcu_lowering *l, const muc_node *node)
{
    (void)l;
    return muc_node_integer_or(node, MUC_KEY_BATCH_DIMS, 0) == 0;
}

muc_status muc_mcu_write_gather(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *index = muc_mcu_input(l, node, 1);
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    uint32_t axis = (uint32_t)muc_node_integer(node, MUC_KEY_AXIS), after = axis + index->rank;
    muc_mcu_nest nest = muc_mcu_nest_of(l, y);
    muc_mcu_operand *a = muc_mcu_nest_add(&nest, "from"), *b = muc_mcu_nest_add(&nest, "b");
    muc_text *text = &l->text;
    muc_mcu_stride stride = muc_mcu_dense(l, x, axis);

    MUC_TRY(muc_mcu_begin_function(l, node));
    muc_mcu_nest_broadcast(&nest, muc_mcu_nest_add(&nest, "y"), y, y->rank);
    for (uint32_t i = 0; i < axis; i++)
        a->strides[i] = muc_mcu_dense(l, x, i);
    for (uint32_t i = axis + 1; i < x->rank; i++)
        a->strides[after + i - axis - 1] = muc_mcu_dense(l, x, i);
    for (uint32_t i = 0; i < index->rank; i++)
        b->strides[axis + i] = muc_mcu_dense(l, index, i);
    nest.outer = after;
    muc_mcu_nest_simplify(&nest);
    muc_mcu_nest_open(&nest, 0, nest.outer, 1);
    muc_mcu_indent(text, 1 + nest.outer);
    muc_text_add(text, "const int64_t index = (int64_t)");
    muc_mcu_nest_print(&nest, b, text);
    muc_text_add(text, ";\n");
    muc_mcu_indent(text, 1 + nest.outer);
    muc_text_add(text, "const %s *from = a + mur_wrap_index(index, ", muc_mcu_c_type(x->dtype));
    muc_mcu_print_expr(l->graph->pool, x->dims[axis], text);
    muc_text_add(text, ") * ");
    if (stride.expr != MUC_EXPR_NONE) {
        muc_mcu_print_expr(l->graph->pool, stride.expr, text);
        muc_text_add(text, " * ");
    }
    muc_text_add(text, "%" PRId64 "u;\n\n", stride.factor);
    muc_mcu_nest_open(&nest, nest.outer, nest.loops, 1 + nest.outer);
    muc_mcu_indent(text, 1 + nest.loops);
    muc_mcu_nest_print(&nest, &nest.operands[2], text);
    muc_text_add(text, " = ");
    muc_mcu_nest_print(&nest, a, text);
    muc_text_add(text, ";\n");
    muc_mcu_nest_close(&nest, 0, nest.loops, 1);
    return muc_mcu_end_function(l, 0, 0);
}

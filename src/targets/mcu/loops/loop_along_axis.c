/* loop_along_axis.c - writes reductions, softmax and norms as C: loops over the dimensions that are
 * kept, around loops along those that are reduced.
 */
#include <inttypes.h>
#include <string.h>

#include "graph/scales.h"
#include "targets/mcu/loops/formula_text.h"
#include "targets/mcu/loops/loop_nest.h"
#include "targets/mcu/program/c_text.h"

/* NULL: none */
static const muc_mcu_fold *find_fold(const muc_mcu_lowering *l, const muc_node *node)
{
    return muc_mcu_fold_text(node->op, muc_mcu_input(l, node, 0)->dtype == MUC_F32);
}

static bool is_reduced(const muc_node *node, uint32_t axis)
{
    const muc_attribute *axes = muc_node_attribute(node, MUC_KEY_AXES);

    for (uint32_t i = 0; i < axes->value.integers.count; i++)
        if (axes->value.integers.items[i] == axis)
            return true;
    return false;
}

bool muc_mcu_takes_reduce(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    bool ordered = node->op == MUC_OP_REDUCE_MAX || node->op == MUC_OP_REDUCE_MIN;

    return ((muc_mcu_is_plain(x) && x->dtype != MUC_U64) || (ordered && muc_mcu_is_quantized(x))) &&
           find_fold(l, node) != NULL;
}

/* operand 0 is x, operand 1 y; the loops that stay come first */
static void order_loops(muc_mcu_nest *nest, const muc_node *node)
{
    const muc_mcu_lowering *l = nest->l;
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);
    bool keeps = y->rank == x->rank;
    uint32_t dim_of_y = 0;

    nest->loops = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (!is_reduced(node, i)) {
            nest->extents[nest->loops] = x->dims[i];
            nest->operands[0].strides[nest->loops] = muc_mcu_dense(l, x, i);
            nest->operands[1].strides[nest->loops++] = muc_mcu_dense(l, y, dim_of_y);
        }
        dim_of_y += keeps || !is_reduced(node, i);
    }
    nest->outer = nest->loops;
    for (uint32_t i = 0; i < x->rank; i++)
        if (is_reduced(node, i)) {
            nest->extents[nest->loops] = x->dims[i];
            nest->operands[0].strides[nest->loops++] = muc_mcu_dense(l, x, i);
        }
}

/* "4u * m": turns of the loops first..end-1 */
static void print_count(const muc_mcu_nest *nest, uint32_t first, uint32_t end)
{
    muc_text_add(&nest->l->text, "(");
    for (uint32_t i = first; i < end; i++) {
        muc_text_add(&nest->l->text, i > first ? " * " : "");
        muc_mcu_print_expr(nest->l->graph->pool, nest->extents[i], &nest->l->text);
    }
    muc_text_add(&nest->l->text, first == end ? "1u)" : ")");
}

/* ---- means and sums that carry quantization: TensorFlow Lite's arithmetic ---- */

bool muc_mcu_takes_reduce_quantized(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);

    return muc_mcu_is_quantized(x) && muc_mcu_is_quantized(muc_mcu_output(l, node, 0)) &&
           muc_mcu_is_static(l, x) && muc_mcu_most_elements(l, x) > 0;
}

muc_status muc_mcu_write_reduce_quantized(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);
    uint64_t count = muc_mcu_most_elements(l, x) / muc_mcu_most_elements(l, y);
    muc_multiplier m = muc_scale_reduction(node->op, x, y, count);
    int32_t least, most, zero = muc_zero_of(y);
    muc_mcu_nest nest = { .l = l, .is_unrolled = true };
    muc_text *text = &l->text;

    muc_scale_clamp(node, y, &least, &most);
    muc_mcu_nest_add(&nest, "a");
    muc_mcu_nest_add(&nest, "y");
    MUC_TRY(muc_mcu_begin_function(l, node));
    order_loops(&nest, node);
    muc_mcu_nest_simplify(&nest);
    MUC_TRY(muc_mcu_nest_tile(&nest, node, nest.outer, MUC_MCU_CUT_CHANNELS));
    muc_mcu_nest_open(&nest, 0, nest.outer, 1);
    muc_mcu_indent(text, 1 + nest.outer);
    muc_text_add(text, "int32_t sum = %" PRId64 ";\n\n", -(int64_t)count * muc_zero_of(x));
    muc_mcu_nest_open(&nest, nest.outer, nest.loops, 1 + nest.outer);
    muc_mcu_indent(text, 1 + nest.loops);
    muc_text_add(text, "sum += ");
    muc_mcu_nest_print(&nest, &nest.operands[0], text);
    muc_text_add(text, ";\n");
    muc_mcu_nest_close(&nest, nest.outer, nest.loops, 1 + nest.outer);
    muc_mcu_indent(text, 1 + nest.outer);
    muc_text_add(text, "sum = mur_scale_q31(sum, %" PRId32 ", %" PRId32 ");\n", m.mantissa,
                 m.shift);
    muc_mcu_indent(text, 1 + nest.outer);
    muc_mcu_nest_print(&nest, &nest.operands[1], text);
    muc_text_add(text, " = (%s)(mur_clamp(sum, %" PRId32 ", %" PRId32 ") + %" PRId32 ");\n",
                 muc_mcu_c_type(y->dtype), least - zero, most - zero, zero);
    muc_mcu_nest_close(&nest, 0, nest.outer, 1);
    return muc_mcu_end_function(l, 0, 0);
}

/* ---- plain numbers ---- */

/* What folds a result: the greatest and the least of at most 16 bits need no 64. */
static muc_mcu_fold fold_in(const muc_mcu_fold *fold, muc_op op, muc_dtype dtype, const char **type)
{
    muc_mcu_fold narrow = *fold;

    *type = dtype == MUC_F32 ? "float" : "int64_t";
    if ((op != MUC_OP_REDUCE_MAX && op != MUC_OP_REDUCE_MIN) ||
        muc_dtype_get(dtype)->block_bytes > 2)
        return narrow;
    *type = "int32_t";
    narrow.start = op == MUC_OP_REDUCE_MAX ? "INT32_MIN" : "INT32_MAX";
    return narrow;
}

/* a loop over the elements of a result, each in turn with a name: "sum = each;" */
static void print_turns(muc_mcu_nest *nest, const muc_tensor *x, unsigned depth, const char *name,
                        const char *sum, const char *each, const char *type)
{
    muc_text *text = &nest->l->text;

    muc_mcu_nest_open(nest, nest->outer, nest->loops, depth);
    muc_mcu_indent(text, 1 + nest->loops);
    muc_text_add(text, "const %s %s = ", muc_mcu_c_type(x->dtype), name);
    muc_mcu_nest_print(nest, &nest->operands[0], text);
    muc_text_add(text, ";\n\n");
    muc_mcu_indent(text, 1 + nest->loops);
    if (x->dtype == MUC_F32)
        muc_text_add(text, "%s = %s;\n", sum, each);
    else
        muc_text_add(text, "%s = (%s)(%s);\n", sum, type, each);
    muc_mcu_nest_close(nest, nest->outer, nest->loops, depth);
}

muc_status muc_mcu_write_reduce(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);
    const char *type;
    const muc_mcu_fold fold = fold_in(find_fold(l, node), node->op, x->dtype, &type);
    bool needs_most = strstr(fold.step, "most") != NULL;
    muc_mcu_nest nest = { .l = l };
    muc_text *text = &l->text;
    unsigned depth;

    muc_mcu_nest_add(&nest, "a");
    muc_mcu_nest_add(&nest, "y");
    order_loops(&nest, node);
    MUC_TRY(muc_mcu_begin_function(l, node));
    muc_mcu_nest_simplify(&nest);
    MUC_TRY(muc_mcu_nest_tile(&nest, node, nest.outer, MUC_MCU_CUT_CHANNELS));
    depth = 1 + nest.outer;
    muc_mcu_nest_open(&nest, 0, nest.outer, 1);
    if (strstr(fold.end, "/ n")) {
        muc_mcu_indent(text, depth);
        muc_text_add(text, "const %s n = (%s)", type, type);
        print_count(&nest, nest.outer, nest.loops);
        muc_text_add(text, ";\n");
    }
    muc_mcu_indent(text, depth);
    muc_text_add(text, "%s sum = %s%s;\n\n", type, fold.start,
                 needs_most ? ", most = -1.0f / 0.0f" : "");
    if (needs_most) {
        print_turns(&nest, x, depth, "e", "most", "mur_max(e, most)", type);
        muc_mcu_indent(text, depth);
        muc_text_add(text, "most = most - most == 0.0f ? most : 0.0f;\n");
    }
    print_turns(&nest, x, depth, "x", "sum", fold.step, type);
    muc_mcu_indent(text, depth);
    muc_mcu_nest_print(&nest, &nest.operands[1], text);
    muc_text_add(text, " = (%s)(%s);\n", muc_mcu_c_type(y->dtype), fold.end);
    muc_mcu_nest_close(&nest, 0, nest.outer, 1);
    return muc_mcu_end_function(l, 0, 0);
}

/* ---- rows: everything along some dimensions, for each of the rest ---- */

enum { MOST_LINES = 10 };

static const muc_mcu_row_line centred_norm[MOST_LINES] = {
    { false, "float mean = 0.0f, rest = 0.0f, square = 0.0f;" },
    { true, "mean += @a;" },
    { false, "mean /= (float)@n;" },
    { true, "rest += @a - mean, square += (@a - mean) * (@a - mean);" },
    { false, "mean += rest / (float)@n;" },
    { false, "square = 1.0f / mur_sqrt(square / (float)@n + @e);" },
    { false, "@m = mean;" },
    { false, "@d = square;" },
    { true, "@y = (@a - mean) * square * @b@c;" }
};
static const muc_mcu_row_line norm[MOST_LINES] = {
    { false, "float square = 0.0f;" },
    { true, "square += @a * @a;" },
    { false, "square = 1.0f / mur_sqrt(square / (float)@n + @e);" },
    { true, "@y = @a * square * @b;" }
};

/* instance_norm or group_norm, whose rows are the places of a group of channels */
static bool is_of_channels(const muc_node *node)
{
    bool required;

    return muc_op_takes(node->op, MUC_KEY_CHANNELS_LAST, &required);
}

static const muc_mcu_row_line *find_rows(const muc_node *node)
{
    const muc_mcu_row_line *row = muc_mcu_row_text(node->op);

    return row ? row : muc_op_has(node->op, MUC_OP_CENTRES) ? centred_norm : norm;
}

/* dimensions first..end-1 are a row, of channels but for the one that is divided */
static void row_of(const muc_mcu_lowering *l, const muc_node *node, uint32_t *first, uint32_t *end)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);

    *first =
        is_of_channels(node) ? 1 : (uint32_t)muc_node_integer_or(node, MUC_KEY_AXIS, x->rank - 1);
    *end = muc_mcu_row_text(node->op) ? *first + 1 : x->rank;
}

bool muc_mcu_takes_rows(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);

    if (!muc_op_has(node->op, MUC_OP_FLOAT)) /* rows of integers */
        return !muc_node_attribute(node, MUC_KEY_GROUP);
    for (uint32_t i = 0; i < node->input_count; i++)
        if (muc_mcu_input(l, node, i) && muc_mcu_input(l, node, i)->dtype != MUC_F32)
            return false;
    return x->rank > 0 && (!muc_node_attribute(node, MUC_KEY_GROUP) ||
                           muc_node_integer(node, MUC_KEY_GROUP) == muc_mcu_dim(l, x, x->rank - 1));
}

/* what @letter stands for */
static void print_word(muc_mcu_nest *nest, const muc_node *node, char letter)
{
    static const char operands[] = "aybcmd";
    const char *operand = strchr(operands, letter);
    muc_text *text = &nest->l->text;

    if (letter == 'c' && !muc_mcu_input(nest->l, node, 2))
        return;
    muc_text_add(text, letter == 'c' ? " + " : "");
    if (letter == 'i')
        muc_mcu_nest_print(nest, &nest->operands[3], text);
    else if (operand)
        muc_mcu_nest_print(nest, &nest->operands[operand - operands], text);
    else if (letter == 'n')
        print_count(nest, nest->outer, nest->loops);
    else if (letter == 's')
        muc_text_add(text, "%u", (unsigned)muc_node_integer(node, MUC_KEY_SHIFT));
    else if (letter == 'l')
        muc_text_add(text, "%d", (int)muc_node_integer(node, MUC_KEY_LEVELS));
    else if (letter == 'p')
        muc_text_add(text, "%d", (int)muc_node_integer(node, MUC_KEY_P));
    else if (letter == 'e')
        muc_mcu_print_real(text, muc_node_real_or(node, MUC_KEY_EPSILON, 0), false);
    else
        muc_mcu_print_real(text, muc_node_real_or(node, MUC_KEY_BETA, 1), false);
}

static void print_row_line(muc_mcu_nest *nest, const muc_node *node, const char *line)
{
    muc_text *text = &nest->l->text;

    for (; *line; line++) {
        if (*line == '@') {
            print_word(nest, node, *++line);
        } else {
            muc_text_add(text, "%c", *line);
        }
    }
    muc_text_add(text, "\n");
}

/* scale and bias of a row's elements */
static void parameter_strides(muc_mcu_nest *nest, const muc_node *node, uint32_t first,
                              const uint32_t *loop_of)
{
    const muc_mcu_lowering *l = nest->l;
    const muc_tensor *x = muc_mcu_input(l, node, 0);

    for (uint32_t i = 1; i < node->input_count; i++) {
        const muc_tensor *tensor = muc_mcu_input(l, node, i);
        muc_mcu_operand *operand = &nest->operands[1 + i];

        if (!tensor)
            continue;
        for (uint32_t d = 0; d < tensor->rank; d++)
            if (x->rank - tensor->rank + d >= first && muc_mcu_dim(l, tensor, d) != 1)
                operand->strides[loop_of[x->rank - tensor->rank + d]] = muc_mcu_dense(l, tensor, d);
    }
}

/* the next loop: over dimension i of x, in steps of `each` elements */
static void add_loop(muc_mcu_nest *nest, const muc_tensor *x, uint32_t i, muc_expr extent,
                     uint32_t each)
{
    muc_mcu_stride stride = muc_mcu_dense(nest->l, x, i);

    stride.factor *= each;
    nest->extents[nest->loops] = extent;
    nest->operands[0].strides[nest->loops] = nest->operands[1].strides[nest->loops] = stride;
    nest->loops++;
}

/* channels are two loops: groups, or within a row the channels of one; scale and bias of each */
static void add_channels(muc_mcu_nest *nest, const muc_node *node, const muc_tensor *x, uint32_t i,
                         bool inside)
{
    muc_expr_pool *pool = nest->l->graph->pool;
    uint32_t groups = (uint32_t)muc_node_integer_or(node, MUC_KEY_GROUPS, 0);
    uint32_t each = groups ? muc_mcu_dim(nest->l, x, i) / groups : 1;
    muc_expr outside = groups ? muc_expr_const(pool, groups) : x->dims[i];

    for (uint32_t k = 2; k < 4; k++)
        nest->operands[k].strides[nest->loops].factor = inside ? 1 : each;
    add_loop(nest, x, i, inside ? muc_expr_const(pool, each) : outside, inside ? 1 : each);
}

static muc_mcu_nest rows_nest(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    bool of_channels = is_of_channels(node);
    bool last = muc_node_integer_or(node, MUC_KEY_CHANNELS_LAST, 0) != 0;
    uint32_t channel = of_channels ? last ? x->rank - 1 : 1 : x->rank;
    uint32_t first, end, loop_of[MUC_GRAPH_MAX_RANK];
    muc_mcu_nest nest = { .l = l };

    row_of(l, node, &first, &end);
    muc_mcu_nest_add(&nest, "a");
    muc_mcu_nest_add(&nest, "y");
    muc_mcu_nest_add(&nest, "b");
    muc_mcu_nest_add(&nest, "c");
    for (unsigned inside = 0; inside < 2; inside++) {
        for (uint32_t i = 0; i < x->rank; i++) {
            if (i == channel)
                add_channels(&nest, node, x, i, inside);
            if (i == channel || (i >= first && i < end) != inside)
                continue;
            loop_of[i] = nest.loops;
            add_loop(&nest, x, i, x->dims[i], 1);
        }
        if (!inside)
            nest.outer = nest.loops;
    }
    if (!of_channels)
        parameter_strides(&nest, node, first, loop_of);
    for (uint32_t i = 1; i < node->output_count; i++) { /* one number a row */
        muc_mcu_operand *operand = muc_mcu_nest_add(&nest, muc_mcu_output_name(i));

        for (uint32_t d = 0; d < first; d++)
            operand->strides[loop_of[d]] = muc_mcu_dense(l, muc_mcu_output(l, node, i), d);
    }
    muc_mcu_nest_simplify(&nest);
    return nest;
}

/* an output of a row that the node does not have */
static bool is_absent(const muc_node *node, const muc_mcu_row_line *line)
{
    return (strncmp(line->text, "@m", 2) == 0 && node->output_count < 2) ||
           (strncmp(line->text, "@d", 2) == 0 && node->output_count < 3);
}

muc_status muc_mcu_write_rows(muc_mcu_lowering *l, const muc_node *node)
{
    muc_mcu_nest nest;
    unsigned depth;

    MUC_TRY(muc_mcu_begin_function(l, node));
    nest = rows_nest(l, node);
    MUC_TRY(muc_mcu_nest_tile(&nest, node, nest.outer, MUC_MCU_CUT_ROWS));
    depth = 1 + nest.outer;
    muc_mcu_nest_open(&nest, 0, nest.outer, 1);
    for (const muc_mcu_row_line *line = find_rows(node); line->text; line++) {
        if (is_absent(node, line))
            continue;
        if (line->each)
            muc_mcu_nest_open(&nest, nest.outer, nest.loops, depth);
        muc_mcu_indent(&l->text, line->each ? 1 + nest.loops : depth);
        print_row_line(&nest, node, line->text);
        if (line->each)
            muc_mcu_nest_close(&nest, nest.outer, nest.loops, depth);
    }
    muc_mcu_nest_close(&nest, 0, nest.outer, 1);
    MUC_TRY(muc_mcu_end_function(l, 0, 0));
    muc_mcu_may_overlap(l, 0, 0);
    return MUC_OK;
}

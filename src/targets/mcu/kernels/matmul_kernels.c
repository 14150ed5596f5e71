/* matmul_kernels.c - products of two computed matrices by the runtime's kernels: a loop over the
 * batches around a call with a descriptor of one of them. */
#include <inttypes.h>
#include <stdio.h>

#include "graph/scales.h"
#include "mur_nn_f32.h"
#include "targets/mcu/kernels/int8_layer.h"
#include "targets/mcu/loops/loop_nest.h"
#include "targets/mcu/program/runtime_files.h"
#include "targets/mcu/tiles/tiles.h"

enum { MOST_DEPTH = 32768, LEAST_DEPTH = 8, LEAST_PRODUCTS = 512 };

static uint32_t most_of(const muc_mcu_lowering *l, muc_expr e)
{
    return muc_expr_get(l->graph->pool, e)->hi;
}

/* Less is done sooner than a call of a kernel is prepared, which is less work for bytes where the
 * instruction set has a kernel of its own: half of each. */
static bool is_worth_it(const muc_mcu_lowering *l, const muc_node *node)
{
    const bool is_own = muc_mcu_is_byte(muc_mcu_input(l, node, 0)) &&
                        muc_mcu_find_kernel(l->isa, "matmul_s8")->isa != MUC_MCU_ISA_NONE;
    const muc_tensor *a = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);
    uint64_t depth = most_of(l, a->dims[a->rank - 1]);

    return depth >= LEAST_DEPTH / (is_own ? 2 : 1) &&
           depth * most_of(l, y->dims[y->rank - 1]) * most_of(l, y->dims[y->rank - 2]) >=
               LEAST_PRODUCTS / (is_own ? 2 : 1);
}

/* matrices whose layout the kernels know; tiles have loops that they can cut */
static bool takes_matrices(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *a = muc_mcu_input(l, node, 0), *b = muc_mcu_input(l, node, 1);
    const muc_expr_node *depth = muc_expr_get(l->graph->pool, a->dims[a->rank ? a->rank - 1 : 0]);

    return a->rank >= 2 && b->rank >= 2 && depth->lo >= 1 && depth->hi <= MOST_DEPTH &&
           is_worth_it(l, node) && !muc_mcu_has_tiles(l->program->machine);
}

static bool takes_bytes(const muc_mcu_lowering *l, const muc_node *node)
{
    return muc_mcu_is_byte(muc_mcu_input(l, node, 0)) &&
           muc_mcu_is_byte(muc_mcu_input(l, node, 1)) &&
           muc_mcu_is_byte(muc_mcu_output(l, node, 0)) && takes_matrices(l, node);
}

/* ---- operands that are transposed where they are read ---- */

/* the transpose whose result t is, if that is a view of what it transposes; or NULL */
static const muc_node *turned(const muc_mcu_lowering *l, const muc_tensor *t)
{
    uint32_t value = l->program->value_of[t - l->graph->tensors];
    const muc_node *node = t->producer == MUC_NO_ID ? NULL : &l->graph->nodes[t->producer];

    return node && node->op == MUC_OP_TRANSPOSE && value != MUC_NO_ID &&
                   l->program->values[value].view_of != MUC_NO_ID
               ? node
               : NULL;
}

static muc_mcu_stride stride_of(const muc_mcu_lowering *l, const muc_tensor *t, uint32_t i)
{
    const muc_node *transpose = turned(l, t);

    if (!transpose)
        return muc_mcu_dense(l, t, i);
    return muc_mcu_dense(l, muc_mcu_input(l, transpose, 0),
                         (uint32_t)muc_node_integers(transpose, MUC_KEY_PERM)[i]);
}

/* rows of a must stay whole, and of b either rows or columns */
bool muc_mcu_takes_turned_operand(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    const int64_t *perm = muc_node_integers(node, MUC_KEY_PERM);
    uint32_t input = 0, last = y->rank - 1;
    const muc_node *reader = muc_graph_only_reader(l->graph, node->outputs[0], &input);

    if (!reader || input > 1 || y->rank < 2 ||
        !((reader->op == MUC_OP_MATMUL &&
           (muc_mcu_takes_matmul_s8(l, reader) || muc_mcu_takes_matmul_f32(l, reader))) ||
          (reader->op == MUC_OP_REQUANT_MATMUL && muc_mcu_takes_requant_matmul_s8(l, reader))))
        return false;
    return perm[last] == last || (input == 1 && perm[last - 1] == last);
}

muc_status muc_mcu_write_turned_operand(muc_mcu_lowering *l, const muc_node *node)
{
    MUC_TRY(muc_mcu_make_view(l, node, 0));
    l->program->values[l->program->value_of[node->outputs[0]]].layout = muc_mcu_input(l, node, 0);
    return MUC_OK;
}

/* ---- the descriptor ---- */

/* what of a descriptor differs between the operators, as text: Q31's or QuantLib's numbers */
typedef struct product {
    bool is_real;           /* and then nothing below counts */
    int32_t a_zero, b_zero; /* of the bytes as int8 */
    mur_output_s8 output;
    char factors[96]; /* ".mul = .., .shift = .." */
    bool is_constant; /* they are numbers */
} product;

static uint8_t flip_of(const muc_tensor *t)
{
    return t->dtype == MUC_U8 ? 0x80 : 0;
}

static void print_number(muc_text *text, const char *name, int64_t value)
{
    if (value != 0)
        muc_text_add(text, "        .%s = %" PRId64 ",\n", name, value);
}

static void print_extent(muc_mcu_lowering *l, const char *name, muc_expr extent)
{
    muc_text_add(&l->text, "        .%s = (int32_t)", name);
    muc_mcu_print_expr(l->graph->pool, extent, &l->text);
    muc_text_add(&l->text, ",\n");
}

static void print_stride(muc_mcu_lowering *l, const char *name, muc_mcu_stride stride)
{
    muc_text_add(&l->text, "        .%s = ", name);
    if (stride.expr != MUC_EXPR_NONE) {
        muc_text_add(&l->text, "(int32_t)");
        muc_mcu_print_expr(l->graph->pool, stride.expr, &l->text);
        muc_text_add(&l->text, " * ");
    }
    muc_text_add(&l->text, "%" PRId64 ",\n", stride.factor);
}

/* The loops around a call, and of which of them the kernel takes the rows: the last, if b stays the
 * same in it; else it gets one row. */
typedef struct loops {
    muc_mcu_nest nest;
    muc_mcu_operand *a, *b, *y;
    muc_expr rows;                     /* MUC_EXPR_NONE: one */
    muc_mcu_stride a_pitch, out_pitch; /* not of one */
    bool is_turned;                    /* b's only column is the row, and a's rows the columns */
} loops;

/* strides of all dimensions but the last ones, in the nest's loops before its last */
static void walk(muc_mcu_nest *nest, muc_mcu_operand *operand, const muc_tensor *t, uint32_t but)
{
    uint32_t ahead = nest->loops - t->rank;

    for (uint32_t i = 0; i + but < t->rank; i++)
        if (muc_mcu_dim(nest->l, t, i) != 1)
            operand->strides[ahead + i] = stride_of(nest->l, t, i);
}

static bool lies_dense(muc_mcu_stride stride)
{
    return stride.expr == MUC_EXPR_NONE && stride.factor == 1;
}

/* Integers' sums are the same in any order, and one row alone needs no packing. */
static bool can_turn(const muc_mcu_lowering *l, const muc_node *node, const loops *around)
{
    const muc_tensor *b = muc_mcu_input(l, node, 1), *y = muc_mcu_output(l, node, 0);

    return around->rows != MUC_EXPR_NONE && y->dtype != MUC_F32 &&
           muc_mcu_dim(l, y, y->rank - 1) == 1 && lies_dense(stride_of(l, b, b->rank - 2)) &&
           lies_dense(around->out_pitch);
}

/* out must stay where it is: its operands are the nest's */
static void find_loops(muc_mcu_lowering *l, const muc_node *node, loops *out)
{
    const muc_tensor *a = muc_mcu_input(l, node, 0), *b = muc_mcu_input(l, node, 1);
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    uint32_t last;

    *out = (loops){ .nest = muc_mcu_nest_of(l, y), .rows = MUC_EXPR_NONE };
    out->a = muc_mcu_nest_add(&out->nest, "a");
    out->b = muc_mcu_nest_add(&out->nest, "b");
    out->y = muc_mcu_nest_add(&out->nest, "y");
    walk(&out->nest, out->a, a, 1);
    walk(&out->nest, out->b, b, 2); /* whose rows are summed over */
    walk(&out->nest, out->y, y, 1);
    out->nest.loops = y->rank - 1;
    muc_mcu_nest_simplify(&out->nest);
    last = out->nest.loops - 1;
    if (out->nest.loops == 0 || out->b->strides[last].factor != 0)
        return;
    out->rows = out->nest.extents[last];
    out->a_pitch = out->a->strides[last];
    out->out_pitch = out->y->strides[last];
    out->nest.loops = last;
    out->is_turned = can_turn(l, node, out);
}

static bool is_fixed(const muc_mcu_lowering *l, const muc_node *node, const product *p)
{
    return (p->is_constant || p->is_real) && muc_mcu_is_static(l, muc_mcu_input(l, node, 0)) &&
           muc_mcu_is_static(l, muc_mcu_input(l, node, 1)) &&
           muc_mcu_is_static(l, muc_mcu_output(l, node, 0));
}

static void print_layout(muc_mcu_lowering *l, const muc_node *node, const loops *around)
{
    const muc_tensor *a = muc_mcu_input(l, node, 0), *b = muc_mcu_input(l, node, 1);
    const muc_tensor *y = muc_mcu_output(l, node, 0);

    if (around->is_turned || around->rows == MUC_EXPR_NONE)
        print_number(&l->text, "rows", 1);
    else
        print_extent(l, "rows", around->rows);
    print_extent(l, "columns", around->is_turned ? around->rows : y->dims[y->rank - 1]);
    print_extent(l, "depth", a->dims[a->rank - 1]);
    if (around->is_turned) {
        print_number(&l->text, "b_row", 1);
        print_stride(l, "b_column", around->a_pitch);
        return;
    }
    if (around->rows != MUC_EXPR_NONE) {
        print_stride(l, "a_pitch", around->a_pitch);
        print_stride(l, "out_pitch", around->out_pitch);
    }
    print_stride(l, "b_row", stride_of(l, b, b->rank - 2));
    print_stride(l, "b_column", stride_of(l, b, b->rank - 1));
}

static void print_descriptor(muc_mcu_lowering *l, const muc_node *node, const product *p,
                             const loops *around)
{
    const bool turned = around->is_turned;
    const muc_tensor *a = muc_mcu_input(l, node, turned), *b = muc_mcu_input(l, node, !turned);
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    muc_text *text = &l->text;

    muc_text_add(text, "    %sconst mur_matmul_%s layer = {\n",
                 is_fixed(l, node, p) ? "static " : "", p->is_real ? "f32" : "s8");
    print_layout(l, node, around);
    if (p->is_real) {
        muc_text_add(text, "    };\n\n");
        return;
    }
    print_number(text, "a_flip", flip_of(a));
    print_number(text, "b_flip", flip_of(b));
    print_number(text, "out_flip", flip_of(y));
    print_number(text, "a_zero", turned ? p->b_zero : p->a_zero);
    print_number(text, "b_zero", turned ? p->a_zero : p->b_zero);
    muc_text_add(text, "        %s,\n", p->factors);
    muc_text_add(text, "        .output = { %s, %u, %d, %d, %d },\n    };\n\n",
                 p->output.kind == MUR_REQUANT_Q31 ? "MUR_REQUANT_Q31" : "MUR_REQUANT_SHIFT",
                 p->output.shift, p->output.zero, p->output.min, p->output.max);
}

/* the greatest scratch of any lengths; by NULL: of floats */
static uint64_t scratch_of(const muc_mcu_lowering *l, const muc_node *node, const loops *around,
                           const muc_mcu_kernel *by)
{
    const muc_tensor *a = muc_mcu_input(l, node, 0), *b = muc_mcu_input(l, node, 1);
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    const int32_t rows = around->rows == MUC_EXPR_NONE ? 1 : (int32_t)most_of(l, around->rows);
    const int32_t columns = (int32_t)most_of(l, y->dims[y->rank - 1]);
    const int32_t depth = (int32_t)most_of(l, a->dims[a->rank - 1]);
    const mur_matmul_f32 real = { .columns = columns, .depth = depth };
    const mur_matmul_s8 most = {
        .rows = around->is_turned ? columns : rows,
        .columns = around->is_turned ? rows : columns,
        .depth = depth,
        .b_row = lies_dense(stride_of(l, b, b->rank - 2)), /* else any */
        .a_flip = flip_of(around->is_turned ? b : a),
        .b_flip = flip_of(around->is_turned ? a : b),
    };

    return by ? by->product_scratch_bytes(&most) : mur_matmul_f32_scratch_bytes(&real);
}

static muc_status write_product(muc_mcu_lowering *l, const muc_node *node, const product *p)
{
    const muc_tensor *a = muc_mcu_input(l, node, 0);
    const muc_mcu_kernel *by = p->is_real ? NULL : muc_mcu_find_kernel(l->isa, "matmul_s8");
    const char *function = by ? by->function : "mur_matmul_f32_run";
    loops around;
    uint64_t scratch;

    MUC_TRY(muc_mcu_need_function(l->ctx, l->program, function));
    MUC_TRY(muc_mcu_begin_function(l, node));
    find_loops(l, node, &around);
    scratch = scratch_of(l, node, &around, by);
    print_descriptor(l, node, p, &around);
    muc_mcu_nest_open(&around.nest, 0, around.nest.loops, 1);
    muc_mcu_indent(&l->text, 1 + around.nest.loops);
    muc_text_add(&l->text, "%s(&layer, &", function);
    muc_mcu_nest_print(&around.nest, around.is_turned ? around.b : around.a, &l->text);
    muc_text_add(&l->text, ", &");
    muc_mcu_nest_print(&around.nest, around.is_turned ? around.a : around.b, &l->text);
    muc_text_add(&l->text, ", &");
    muc_mcu_nest_print(&around.nest, around.y, &l->text);
    muc_text_add(&l->text, ", %s);\n", scratch ? "scratch" : "NULL");
    muc_mcu_nest_close(&around.nest, 0, around.nest.loops, 1);
    return muc_mcu_end_function(l, scratch,
                                muc_mcu_most_elements(l, muc_mcu_output(l, node, 0)) *
                                    most_of(l, a->dims[a->rank - 1]));
}

/* ---- floats ---- */

bool muc_mcu_takes_matmul_f32(const muc_mcu_lowering *l, const muc_node *node)
{
    return muc_mcu_input(l, node, 0)->dtype == MUC_F32 &&
           muc_mcu_input(l, node, 1)->dtype == MUC_F32 && takes_matrices(l, node);
}

muc_status muc_mcu_write_matmul_f32(muc_mcu_lowering *l, const muc_node *node)
{
    l->program->uses_f32 = true;
    return write_product(l, node, &(product){ .is_real = true });
}

/* ---- TensorFlow Lite's arithmetic ---- */

static bool is_quantized(const muc_tensor *t)
{
    return t->quantization && t->quantization->count == 1;
}

bool muc_mcu_takes_matmul_s8(const muc_mcu_lowering *l, const muc_node *node)
{
    return takes_bytes(l, node) && is_quantized(muc_mcu_input(l, node, 0)) &&
           is_quantized(muc_mcu_input(l, node, 1)) && is_quantized(muc_mcu_output(l, node, 0));
}

/* a zero point, as that of int8 */
static int32_t zero_of(const muc_tensor *t)
{
    return muc_zero_of(t) - flip_of(t);
}

muc_status muc_mcu_write_matmul_s8(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *a = muc_mcu_input(l, node, 0), *b = muc_mcu_input(l, node, 1);
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    muc_multiplier factor = muc_scale_product(node, a, b, y, 0);
    product p = { .a_zero = zero_of(a), .b_zero = zero_of(b), .is_constant = true };
    int32_t least, most;

    muc_scale_clamp(node, y, &least, &most);
    p.output = (mur_output_s8){
        .kind = MUR_REQUANT_Q31,
        .zero = (int8_t)zero_of(y),
        .min = (int8_t)(least - flip_of(y)),
        .max = (int8_t)(most - flip_of(y)),
    };
    snprintf(p.factors, sizeof(p.factors), ".mul = %" PRId32 ",\n        .shift = %" PRId32,
             factor.mantissa, factor.shift);
    return write_product(l, node, &p);
}

/* ---- QuantLib's ---- */

static bool is_one_word(const muc_mcu_lowering *l, const muc_tensor *t)
{
    return t->dtype == MUC_I32 && muc_mcu_most_elements(l, t) == 1;
}

bool muc_mcu_takes_requant_matmul_s8(const muc_mcu_lowering *l, const muc_node *node)
{
    return takes_bytes(l, node) && is_one_word(l, muc_mcu_input(l, node, 2)) &&
           is_one_word(l, muc_mcu_input(l, node, 3));
}

/* bytes without a sign count from 0, which is -128 there */
muc_status muc_mcu_write_requant_matmul_s8(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    const uint8_t shift = (uint8_t)muc_node_integer(node, MUC_KEY_SHIFT);
    const int64_t half = (INT64_C(1) << shift) >> 1, flip = flip_of(y);
    product p = { .is_constant = false };

    p.a_zero = -flip_of(muc_mcu_input(l, node, 0));
    p.b_zero = -flip_of(muc_mcu_input(l, node, 1));
    p.output = (mur_output_s8){
        .kind = MUR_REQUANT_SHIFT,
        .shift = shift,
        .min = (int8_t)(muc_node_integer(node, MUC_KEY_CLAMP_MIN) - flip),
        .max = (int8_t)(muc_node_integer(node, MUC_KEY_CLAMP_MAX) - flip),
    };
    snprintf(p.factors, sizeof(p.factors),
             ".mul = c[0],\n        .add = d[0] + INT64_C(%" PRId64 ")",
             half - flip * (INT64_C(1) << shift));
    return write_product(l, node, &p);
}

/* loop_quantized.c - nodes that carry quantization and have no kernel of the runtime: loops in
 * TensorFlow Lite's arithmetic, for int8, uint8 and int16.
 */
#include <inttypes.h>
#include <string.h>

#include "graph/scales.h"
#include "targets/mcu/program/c_text.h"
#include "targets/mcu/loops/factors_int8.h"
#include "targets/mcu/loops/loop_nest.h"
#include "targets/mcu/loops/sums_int8.h"

static uint32_t width_of(const muc_tensor *tensor)
{
    return muc_dtype_get(tensor->dtype)->block_bytes;
}

/* what muc_scale_integers has by a name in MUC_INTEGERS of elementwise.def */
static void print_factor(muc_text *text, const char *formula, const char *name, muc_multiplier m)
{
    if (strstr(formula, name))
        muc_text_add(text, "    enum { %s_mul = %" PRId32 ", %s_shift = %" PRId32 " };\n", name,
                     m.mantissa, name, m.shift);
}

/* what scales integers of a tensor, which are small if they are bytes */
static const char *scaler_of(const muc_tensor *tensor)
{
    return width_of(tensor) == 1 ? "mur_scale_small" : "mur_scale_q31";
}

/* what scales a formula's integers, which are no more than a product if nothing enlarges them */
static const char *formula_scaler(const muc_node *node, const muc_tensor *a,
                                  const muc_integer_scales *s)
{
    if (width_of(a) > 1 || s->has_operands || muc_scale_is_quotient(node->op))
        return scaler_of(a);
    return "mur_scale_product";
}

/* "const int32_t p = ..": the input's integer without its zero point, in the formula's units */
static void print_operand(muc_text *line, const char *name, uint32_t i, const muc_tensor *x,
                          const muc_integer_scales *s)
{
    const int32_t zero = muc_zero_of(x);
    muc_multiplier m = s->operands[i];

    muc_text_add(line, "const int32_t %s = ", name);
    if (!s->has_operands || (m.mantissa == 1 << 30 && m.shift == 1)) /* times 1 */
        muc_text_add(line, "@%s - (%" PRId32 ");\n", muc_mcu_input_name(i), zero);
    else
        muc_text_add(line,
                     "%s(mur_shift_left(@%s - (%" PRId32 "), %d), %" PRId32 ", %" PRId32 ");\n",
                     scaler_of(x), muc_mcu_input_name(i), zero, s->left_shift, m.mantissa, m.shift);
}

static const char *formula_of(muc_op op)
{
    static const char *const formulas[MUC_OP_COUNT] = {
#define TEXT(formula) #formula
#define EXPANDED(formula) TEXT(formula)
#define SCALE(x, by) SCALED(x, by##_mul, by##_shift)
#define MUC_OP(...)
#define MUC_INTEGERS(op, factors, formula) [MUC_OP_##op] = EXPANDED(formula),
#include "graph/ops.def"
    };

    return formulas[op];
}

static void print_formula(muc_text *line, const char *formula, const char *scaler)
{
    static const char word[] = "SCALED";

    for (const char *at; (at = strstr(formula, word)) != NULL; formula = at + strlen(word))
        muc_text_add(line, "%.*s%s", (int)(at - formula), formula, scaler);
    muc_text_add(line, "%s", formula);
}

bool muc_mcu_takes_elements_quantized(const muc_mcu_lowering *l, const muc_node *node)
{
    uint32_t operands = muc_integer_operands(node);

    for (uint32_t i = 0; i < node->input_count; i++) {
        const muc_tensor *x = muc_mcu_input(l, node, i);

        if ((i < operands || x) && (!muc_mcu_is_quantized(x) || (i >= operands && !x->data) ||
                                    (muc_scale_is_quotient(node->op) && x->dtype == MUC_I16)))
            return false;
    }
    return operands <= 2 && muc_mcu_is_quantized(muc_mcu_output(l, node, 0));
}

/* the same bytes with a sign or without: 128 less, or more */
static bool is_shift(const muc_node *node, const muc_tensor *x, const muc_tensor *y)
{
    return node->op == MUC_OP_QUANTIZE && width_of(x) == 1 && width_of(y) == 1 &&
           x->dtype != y->dtype && muc_scale_of(x) == muc_scale_of(y) &&
           muc_zero_of(x) - muc_zero_of(y) == (x->dtype == MUC_U8 ? 128 : -128);
}

static muc_status write_shift(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);
    muc_text line = { 0 };
    muc_mcu_nest nest;

    MUC_TRY(muc_mcu_begin_elements(l, node, 1, 1, false, &nest));
    muc_text_add(&line, "@y = (%s)(@a %c 128);", muc_mcu_c_type(y->dtype),
                 x->dtype == MUC_U8 ? '-' : '+');
    MUC_TRY(muc_mcu_end_elements(&nest, &line));
    muc_mcu_may_overlap(l, 0, 0);
    return MUC_OK;
}

/* a's element is the same in every turn of the last loop */
static bool a_stays(const muc_mcu_nest *nest)
{
    return nest->loops > 0 && nest->operands[0].strides[nest->loops - 1].factor == 0;
}

/* Whether a zero point may be added to what factors make of integers before the bounds are those of
 * int8, which cores have an instruction for. */
static bool stays_small(const muc_integer_scales *s)
{
    return s->factor.shift <= 0 && s->above.shift <= 0 && s->operands[0].shift <= 0 &&
           s->operands[1].shift <= 0;
}

/* TFLite's own integers of an element, before its bounds and zero point: "x = ..;" */
static void print_exact(muc_mcu_nest *nest, const muc_node *node, muc_text *line,
                        const muc_integer_scales *s, const char *indent, const char *start)
{
    static const char *const names[] = { "p", "q" };
    const uint32_t operands = muc_integer_operands(node);
    const muc_tensor *a = muc_mcu_input(nest->l, node, 0);
    const char *formula = formula_of(node->op);

    print_factor(&nest->l->text, formula, "factor", s->factor);
    print_factor(&nest->l->text, formula, "above", s->above);
    for (uint32_t turn = 0; turn < operands; turn++) { /* what may leave the last loop before */
        const uint32_t i = a_stays(nest) ? turn : operands - 1 - turn;

        muc_text_add(line, "%s", indent);
        print_operand(line, names[i], i, muc_mcu_input(nest->l, node, i), s);
    }
    muc_text_add(line, "%s%s(", indent, start);
    print_formula(line, formula, formula_scaler(node, a, s));
    muc_text_add(line, ")");
}

/* an addition of int8 that is one line, or nearly one */
static bool print_line(muc_mcu_nest *nest, const muc_node *node, muc_text *line,
                       const muc_integer_scales *s, int32_t least, int32_t most)
{
    const mur_add_s8 add = muc_mcu_add_of(nest->l, node);
    mur_add_s8 sum;
    const bool stays = a_stays(nest), is_line = muc_mcu_find_line(&add, &sum);
    int32_t mask = 0;

    if (!is_line && !muc_mcu_find_near_line(nest->l, node, &sum, &mask))
        return false;
    muc_text_add(line, "const int32_t side = %s;\n", stays ? "@a" : "@b");
    muc_text_add(line, "%sint32_t x = mur_line(%s, %" PRId32 ", %s, %" PRId32 ", %" PRId32 ");\n\n",
                 is_line ? "const " : "", stays ? "side" : "@a", sum.a_mul, stays ? "@b" : "side",
                 sum.b_mul, sum.mul);
    if (!is_line) {
        muc_text_add(line, "if (__builtin_expect((x & %" PRId32 ") == 0, 0)) {\n", mask);
        print_exact(nest, node, line, s, "    ", "x = mur_clamp(");
        muc_text_add(line, ", %" PRId32 ", %" PRId32 ");\n", least - add.zero, most - add.zero);
        muc_text_add(line, "    x = mur_shift_left(x + (%d), MUR_LINE_PLACES);\n}\n", add.zero);
    }
    muc_text_add(line, "@y = (int8_t)mur_clamp_asr(x, MUR_LINE_PLACES, %" PRId32 ", %" PRId32 ");",
                 least, most);
    return true;
}

/* a quotient or PReLU as a product with a factor of a table */
static bool print_factors(muc_mcu_nest *nest, const muc_node *node, muc_text *line, int32_t least,
                          int32_t most)
{
    const bool is_quotient = muc_scale_is_quotient(node->op);
    muc_mcu_operand *offsets;
    muc_mcu_factors found;

    if (!muc_mcu_find_factors(nest->l, node, least, most, &found))
        return false;
    muc_mcu_print_table(nest->l, MUC_I32, "factors", found.factors, found.count);
    if (!is_quotient) { /* an element of the table for one of b; a piece has all of the table */
        nest->operands[1].name = "factors";
        nest->operands[1].from_row = true;
    }
    muc_text_add(line,
                 "const int32_t q = %s;\n"
                 "const int32_t p = @a - (%" PRId32 ");\n",
                 is_quotient ? "factors[(uint8_t)@b]" : "@b",
                 muc_zero_of(muc_mcu_input(nest->l, node, 0)));
    if (found.falls) {
        muc_mcu_print_table(nest->l, MUC_I32, "offsets", found.offsets, found.count);
        offsets = muc_mcu_nest_add(nest, "offsets");
        *offsets = nest->operands[1];
        offsets->name = "offsets";
        muc_text_add(line, "const int32_t offset = @d;\n");
    } else {
        muc_text_add(line, "const int32_t offset = %" PRId32 ";\n", found.offsets[0]);
    }
    muc_text_add(line, "const int32_t x = ");
    if (!is_quotient)
        muc_text_add(line,
                     "p >= 0 ? mur_add_product(%" PRId32 ", p, %" PRId32 ") : ", found.above_offset,
                     found.above);
    muc_text_add(line, "mur_add_product(offset, p, q);\n\n");
    muc_text_add(line, "@y = (int8_t)mur_clamp_asr(x, %d, %" PRId32 ", %" PRId32 ");", found.places,
                 least, most);
    return true;
}

/* what a byte of one input is in the output's integers; whether any is another than itself */
static bool find_side(const muc_mcu_nest *nest, const muc_node *node, uint32_t i,
                      const muc_integer_scales *s, int32_t least, int32_t most, int32_t table[256])
{
    const muc_integer_scales of_both = { .has_operands = true,
                                         .operands = { s->operands[i], s->operands[i] } };
    const int32_t zero = muc_zero_of(muc_mcu_output(nest->l, node, 0));
    bool moves = false;

    for (int32_t byte = INT8_MIN; byte <= INT8_MAX; byte++) {
        const int32_t p = byte - muc_zero_of(muc_mcu_input(nest->l, node, i));
        const int32_t x = muc_scale_elements(node->op, &of_both, p, p) + zero;

        table[(uint8_t)byte] = x < least ? least : x > most ? most : x;
        moves = moves || table[(uint8_t)byte] != byte;
    }
    return moves;
}

/* the greater or the lesser of two of int8, each by a table of what its bytes are in the output */
static bool print_extreme(muc_mcu_nest *nest, const muc_node *node, muc_text *line,
                          const muc_integer_scales *s, int32_t least, int32_t most)
{
    static const char *const names[] = { "of_a", "of_b" };
    int32_t tables[2][256];
    const bool moves[] = { find_side(nest, node, 0, s, least, most, tables[0]),
                           find_side(nest, node, 1, s, least, most, tables[1]) };
    const unsigned bytes = 256u * (moves[0] + moves[1]);

    if (muc_mcu_most_elements(nest->l, muc_mcu_output(nest->l, node, 0)) < 2 * bytes)
        return false;
    for (uint32_t turn = 0; turn < 2; turn++) { /* what may leave the last loop before */
        const uint32_t i = a_stays(nest) ? turn : 1 - turn;
        const char *input = muc_mcu_input_name(i);

        muc_text_add(line, "const int32_t %c = ", "pq"[i]);
        if (!moves[i]) {
            muc_text_add(line, "@%s;\n", input);
            continue;
        }
        muc_mcu_print_table(nest->l, MUC_I8, names[i], tables[i], MUC_COUNT(tables[i]));
        muc_text_add(line, "%s[(uint8_t)@%s];\n", names[i], input);
    }
    muc_text_add(line, "\n@y = (int8_t)(%s);", formula_of(node->op));
    return true;
}

static void print_result(muc_mcu_nest *nest, const muc_node *node, muc_text *line, int32_t least,
                         int32_t most)
{
    const muc_mcu_lowering *l = nest->l;
    const muc_tensor *a = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);
    const muc_tensor *b = muc_integer_operands(node) > 1 ? muc_mcu_input(l, node, 1) : NULL;
    const muc_integer_scales s = muc_scale_integers(node, a, b, y);
    const bool is_whole = least == INT8_MIN && most == INT8_MAX;
    const int32_t zero = muc_zero_of(y), inside = stays_small(&s) && is_whole ? zero : 0;

    if (s.has_operands && muc_mcu_is_s8(a) && muc_mcu_is_s8(b) && muc_mcu_is_s8(y) &&
        (s.left_shift ? print_line(nest, node, line, &s, least, most)
                      : print_extreme(nest, node, line, &s, least, most)))
        return;
    if (print_factors(nest, node, line, least, most))
        return;
    print_exact(nest, node, line, &s, "", "const int32_t x = ");
    muc_text_add(line, inside ? " + (%" PRId32 ");\n\n" : ";\n\n", inside);
    muc_text_add(line, "@y = (%s)(mur_clamp(x, %" PRId32 ", %" PRId32 ")", muc_mcu_c_type(y->dtype),
                 least - zero + inside, most - zero + inside);
    muc_text_add(line, zero != inside ? " + (%" PRId32 "));" : ");", zero);
}

muc_status muc_mcu_write_elements_quantized(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *a = muc_mcu_input(l, node, 0), *b = muc_mcu_input(l, node, 1);
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    const uint32_t operands = muc_integer_operands(node);
    muc_text line = { 0 };
    int32_t least, most;
    muc_mcu_nest nest;

    if (is_shift(node, a, y))
        return write_shift(l, node);
    muc_scale_element_bounds(node, y, b, muc_mcu_input(l, node, 2), &least, &most);
    MUC_TRY(muc_mcu_begin_elements(l, node, operands, operands, true, &nest));
    nest.is_unrolled = true;
    print_result(&nest, node, &line, least, most);
    MUC_TRY(muc_mcu_end_elements(&nest, &line));
    for (uint32_t i = 0; i < operands; i++) {
        const muc_tensor *x = muc_mcu_input(l, node, i);

        if (x->kind != MUC_TENSOR_CONST && width_of(x) == width_of(y) &&
            muc_mcu_most_elements(l, x) == muc_mcu_most_elements(l, y))
            muc_mcu_may_overlap(l, i, 0);
    }
    return MUC_OK;
}

bool muc_mcu_takes_quantize_loops(const muc_mcu_lowering *l, const muc_node *node)
{
    return muc_mcu_input(l, node, 0)->dtype == MUC_F32 &&
           muc_mcu_is_quantized(muc_mcu_output(l, node, 0));
}

muc_status muc_mcu_write_quantize_loops(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    muc_text line = { 0 };
    int32_t least, most;
    muc_mcu_nest nest;

    muc_scale_clamp(node, y, &least, &most);
    MUC_TRY(muc_mcu_begin_elements(l, node, 1, 1, false, &nest));
    muc_text_add(&line, "@y = (%s)mur_stored_real(@a, ", muc_mcu_c_type(y->dtype));
    muc_mcu_print_real(&line, (double)muc_scale_of(y), false);
    muc_text_add(&line, ", %" PRId32 ", %" PRId32 ", %" PRId32 ");", muc_zero_of(y), least, most);
    return muc_mcu_end_elements(&nest, &line);
}

/* ---- tables of int16 ---- */

bool muc_mcu_takes_sigmoid_s16(const muc_mcu_lowering *l, const muc_node *node)
{
    muc_table_scale scale;

    return muc_scale_of_i16(l->graph, node, &scale);
}

muc_status muc_mcu_write_sigmoid_s16(muc_mcu_lowering *l, const muc_node *node)
{
    muc_table_scale scale;
    muc_text line = { 0 };
    muc_mcu_nest nest;

    (void)muc_scale_of_i16(l->graph, node, &scale);
    MUC_TRY(muc_mcu_begin_elements(l, node, 1, 1, false, &nest));
    muc_mcu_print_sigmoid_table(l);
    muc_text_add(&line,
                 "@y = (int16_t)mur_%s_q15(sigmoid, mur_asr(@a * %" PRId32 " + %" PRId32
                 ", %" PRId32 "));",
                 muc_op_get(node->op)->name, scale.mul, scale.round, scale.shift);
    MUC_TRY(muc_mcu_end_elements(&nest, &line));
    muc_mcu_share_pointwise(l, node);
    return MUC_OK;
}

bool muc_mcu_takes_dequantize_loops(const muc_mcu_lowering *l, const muc_node *node)
{
    return muc_mcu_is_quantized(muc_mcu_input(l, node, 0)) &&
           muc_mcu_output(l, node, 0)->dtype == MUC_F32;
}

muc_status muc_mcu_write_dequantize_loops(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    muc_text line = { 0 };
    muc_mcu_nest nest;

    MUC_TRY(muc_mcu_begin_elements(l, node, 1, 1, true, &nest));
    muc_text_add(&line, "@y = ");
    muc_mcu_print_real(&line, (double)muc_scale_of(x), false);
    muc_text_add(&line, " * (float)(@a - (%" PRId32 "));", muc_zero_of(x));
    return muc_mcu_end_elements(&nest, &line);
}

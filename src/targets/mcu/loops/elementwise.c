/* elementwise.c - operators whose element i needs elements i of their inputs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "targets/mcu/program/c_text.h"
#include "targets/mcu/loops/loop_nest.h"

typedef struct form {
    muc_op op;
    const char *text;
} form;

static const form reals[] = {
#define MUC_MCU_REAL(op, text) { MUC_OP_##op, text },
#define MUC_MCU_WHOLE(op, text)
#include "targets/mcu/loops/elementwise.def"
#undef MUC_MCU_REAL
#undef MUC_MCU_WHOLE
};

static const form wholes[] = {
#define MUC_MCU_REAL(op, text)
#define MUC_MCU_WHOLE(op, text) { MUC_OP_##op, text },
#include "targets/mcu/loops/elementwise.def"
#undef MUC_MCU_REAL
#undef MUC_MCU_WHOLE
};

static const struct {
    const char *name;
    muc_attribute_key key;
    double fallback;
} attributes[] = {
    { "alpha", MUC_KEY_ALPHA, 1 }, { "beta", MUC_KEY_BETA, 0 },     { "gamma", MUC_KEY_GAMMA, 1 },
    { "bias", MUC_KEY_BIAS, 0 },   { "lambda", MUC_KEY_LAMBDA, 0 },
};

static bool is_plain_number(const muc_tensor *tensor)
{
    const muc_dtype_info *info = muc_dtype_get(tensor->dtype);

    return tensor->dtype == MUC_F32 || (info->kind == MUC_DTYPE_INTEGER && !tensor->quantization);
}

/* forms that an attribute chooses */
static const char *chosen_form(const muc_node *node, bool is_real)
{
    bool negative = muc_node_integer_or(node, MUC_KEY_DETECT_NEGATIVE, 1) == 1;
    bool positive = muc_node_integer_or(node, MUC_KEY_DETECT_POSITIVE, 1) == 1;

    switch ((unsigned)node->op) {
    case MUC_OP_GELU:
        return muc_node_word_or(node, MUC_KEY_MODE, MUC_WORD_NONE) == MUC_WORD_TANH
                   ? "mur_real_gelu_tanh($a)"
                   : NULL;
    case MUC_OP_MOD:
        if (muc_node_integer_or(node, MUC_KEY_FMOD, 0) == 1)
            return is_real ? "mur_fmod($a, $b)"
                           : "$b == 0 || ($b == ($S)-1 && ($S)-1 < 1) ? ($T)0 : ($T)($a % $b)";
        return NULL;
    case MUC_OP_IS_INF:
        return negative && positive ? "($T)(mur_abs($a) == mur_float_of(MUR_INFINITY_BITS))"
               : positive           ? "($T)($a == mur_float_of(MUR_INFINITY_BITS))"
               : negative           ? "($T)(-$a == mur_float_of(MUR_INFINITY_BITS))"
                                    : "($T)($a < $a)";
    case MUC_OP_BIT_SHIFT:
        if (muc_node_word_or(node, MUC_KEY_DIRECTION, MUC_WORD_LEFT) == MUC_WORD_RIGHT)
            return "($U)$b >= 8 * sizeof($T) ? ($T)0 : ($T)($a >> $b)";
        return NULL;
    default:
        return NULL;
    }
}

static const char *find_form(const muc_mcu_lowering *l, const muc_node *node)
{
    bool is_real = muc_mcu_input(l, node, 0)->dtype == MUC_F32;
    const form *forms = is_real ? reals : wholes;
    size_t count = is_real ? MUC_COUNT(reals) : MUC_COUNT(wholes);
    const char *chosen = chosen_form(node, is_real);

    if (chosen)
        return chosen;
    for (size_t i = 0; i < count; i++)
        if (forms[i].op == node->op)
            return forms[i].text;
    return NULL;
}

bool muc_mcu_takes_elementwise(const muc_mcu_lowering *l, const muc_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (!is_plain_number(muc_mcu_input(l, node, i)))
            return false;
    return is_plain_number(muc_mcu_output(l, node, 0)) && find_form(l, node) != NULL;
}

static const char *unsigned_type(muc_dtype dtype)
{
    return muc_dtype_get(dtype)->block_bytes == 8 ? "uint64_t" : "uint32_t";
}

/* "$word" at *at: what it stands for, and *at moves behind it */
static void substitute(muc_mcu_nest *nest, const muc_node *node, const char **at,
                       const char *const *operands)
{
    const muc_mcu_lowering *l = nest->l;
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    muc_text *text = &nest->l->text;

    for (size_t i = 0; i < MUC_COUNT(attributes); i++) {
        size_t length = strlen(attributes[i].name);

        if (strncmp(*at, attributes[i].name, length) == 0) {
            muc_mcu_print_real(
                text, muc_node_real_or(node, attributes[i].key, attributes[i].fallback), false);
            *at += length;
            return;
        }
    }
    switch (*(*at)++) {
    case 'T':
        muc_text_add(text, "%s", muc_mcu_c_type(muc_mcu_output(l, node, 0)->dtype));
        break;
    case 'S':
        muc_text_add(text, "%s", muc_mcu_c_type(x->dtype));
        break;
    case 'U':
        muc_text_add(text, "%s", unsigned_type(x->dtype));
        break;
    default:
        muc_text_add(text, "%s", operands[(*at)[-1] - 'a']);
    }
}

static void print_form(muc_mcu_nest *nest, const muc_node *node, const char *how,
                       const char *const *operands)
{
    muc_text *text = &nest->l->text;

    while (*how) {
        if (*how++ == '$')
            substitute(nest, node, &how, operands);
        else
            muc_text_add(text, "%c", how[-1]);
    }
}

/* "const float a0 = a[i0];" for each input */
static void load_inputs(muc_mcu_nest *nest, const muc_node *node, unsigned depth)
{
    muc_text *text = &nest->l->text;

    for (uint32_t i = 0; i < node->input_count; i++) {
        muc_mcu_indent(text, depth);
        muc_text_add(text,
                     "const %s %s0 = ", muc_mcu_c_type(muc_mcu_input(nest->l, node, i)->dtype),
                     muc_mcu_input_name(i));
        muc_mcu_nest_print(nest, &nest->operands[i], text);
        muc_text_add(text, ";\n");
    }
    muc_text_add(text, "\n");
}

/* whether a form takes a second input ($beta and $bias are attributes) */
static bool is_binary(const char *how)
{
    for (const char *at = how; (at = strstr(at, "$b")); at++)
        if (at[2] < 'a' || at[2] > 'z')
            return true;
    return false;
}

/* of more than two inputs each further one is combined with the result so far */
static void combine_all(muc_mcu_nest *nest, const muc_node *node, const char *how, unsigned depth)
{
    const char *const pair[] = { "a0", "b0", "c0" };
    muc_text *text = &nest->l->text;
    const muc_mcu_operand *y = &nest->operands[node->input_count];

    muc_mcu_indent(text, depth);
    muc_mcu_nest_print(nest, y, text);
    muc_text_add(text, " = ");
    if (node->input_count == 1 && is_binary(how))
        muc_text_add(text, "a0");
    else
        print_form(nest, node, how, pair);
    muc_text_add(text, ";\n");
    for (uint32_t i = 2; i < node->input_count; i++) {
        char name[8];
        const char *const next[] = { "so_far", name, "" };

        snprintf(name, sizeof(name), "%s0", muc_mcu_input_name(i));
        muc_mcu_indent(text, depth);
        muc_text_add(text, "{\n");
        muc_mcu_indent(text, depth + 1);
        muc_text_add(text,
                     "const %s so_far = ", muc_mcu_c_type(muc_mcu_output(nest->l, node, 0)->dtype));
        muc_mcu_nest_print(nest, y, text);
        muc_text_add(text, ";\n\n");
        muc_mcu_indent(text, depth + 1);
        muc_mcu_nest_print(nest, y, text);
        muc_text_add(text, " = ");
        print_form(nest, node, how, next);
        muc_text_add(text, ";\n");
        muc_mcu_indent(text, depth);
        muc_text_add(text, "}\n");
    }
    if (node->op == MUC_OP_MEAN) {
        muc_mcu_indent(text, depth);
        muc_mcu_nest_print(nest, y, text);
        muc_text_add(text, " /= %u.0f;\n", node->input_count);
    }
}

muc_mcu_nest muc_mcu_nest_pointwise(muc_mcu_lowering *l, const muc_node *node, uint32_t inputs)
{
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    muc_mcu_nest nest = muc_mcu_nest_of(l, y);

    for (uint32_t i = 0; i < inputs; i++)
        muc_mcu_nest_broadcast(&nest, muc_mcu_nest_add(&nest, muc_mcu_input_name(i)),
                               muc_mcu_input(l, node, i), y->rank);
    muc_mcu_nest_broadcast(&nest, muc_mcu_nest_add(&nest, "y"), y, y->rank);
    muc_mcu_nest_simplify(&nest);
    return nest;
}

void muc_mcu_share_pointwise(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *y = muc_mcu_output(l, node, 0);

    for (uint32_t i = 0; i < node->input_count; i++) {
        const muc_tensor *x = muc_mcu_input(l, node, i);

        if (x->kind != MUC_TENSOR_CONST &&
            muc_mcu_most_elements(l, x) == muc_mcu_most_elements(l, y) &&
            muc_dtype_get(x->dtype)->block_bytes >= muc_dtype_get(y->dtype)->block_bytes)
            muc_mcu_may_overlap(l, i, 0);
    }
}

muc_status muc_mcu_write_elementwise(muc_mcu_lowering *l, const muc_node *node)
{
    muc_mcu_nest nest;

    MUC_TRY(muc_mcu_begin_function(l, node));
    nest = muc_mcu_nest_pointwise(l, node, node->input_count);
    MUC_TRY(muc_mcu_nest_tile(&nest, node, nest.loops, MUC_MCU_CUT_ROWS));
    muc_mcu_nest_open(&nest, 0, nest.loops, 1);
    load_inputs(&nest, node, 1 + nest.loops);
    combine_all(&nest, node, find_form(l, node), 1 + nest.loops);
    muc_mcu_nest_close(&nest, 0, nest.loops, 1);
    MUC_TRY(muc_mcu_end_function(l, 0, 0));
    muc_mcu_share_pointwise(l, node);
    return MUC_OK;
}

/* ---- operators with forms of their own ---- */

bool muc_mcu_takes_where(const muc_mcu_lowering *l, const muc_node *node)
{
    (void)l;
    (void)node;
    return true;
}

muc_status muc_mcu_write_where(muc_mcu_lowering *l, const muc_node *node)
{
    muc_mcu_nest nest;

    MUC_TRY(muc_mcu_begin_function(l, node));
    nest = muc_mcu_nest_pointwise(l, node, node->input_count);
    MUC_TRY(muc_mcu_nest_tile(&nest, node, nest.loops, MUC_MCU_CUT_ROWS));
    muc_mcu_nest_open(&nest, 0, nest.loops, 1);
    muc_mcu_indent(&l->text, 1 + nest.loops);
    muc_mcu_nest_print(&nest, &nest.operands[3], &l->text);
    for (unsigned i = 0; i < 3; i++) {
        static const char *const before[] = { " = ", " ? ", " : " };

        muc_text_add(&l->text, "%s", before[i]);
        muc_mcu_nest_print(&nest, &nest.operands[i], &l->text);
    }
    muc_text_add(&l->text, ";\n");
    muc_mcu_nest_close(&nest, 0, nest.loops, 1);
    return muc_mcu_end_function(l, 0, 0);
}

bool muc_mcu_takes_clip(const muc_mcu_lowering *l, const muc_node *node)
{
    return is_plain_number(muc_mcu_input(l, node, 0));
}

muc_status muc_mcu_write_clip(muc_mcu_lowering *l, const muc_node *node)
{
    static const char *const bounds[] = { "", "x < b[0] ? b[0] : x", "x > c[0] ? c[0] : x" };
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    muc_mcu_nest nest;

    MUC_TRY(muc_mcu_begin_function(l, node));
    nest = muc_mcu_nest_of(l, x);
    muc_mcu_nest_broadcast(&nest, muc_mcu_nest_add(&nest, "a"), x, x->rank);
    muc_mcu_nest_broadcast(&nest, muc_mcu_nest_add(&nest, "y"), x, x->rank);
    muc_mcu_nest_add(&nest, "b");
    muc_mcu_nest_add(&nest, "c");
    muc_mcu_nest_simplify(&nest);
    MUC_TRY(muc_mcu_nest_tile(&nest, node, nest.loops, MUC_MCU_CUT_ROWS));
    muc_mcu_nest_open(&nest, 0, nest.loops, 1);
    muc_mcu_indent(&l->text, 1 + nest.loops);
    muc_text_add(&l->text, "%s x = ", muc_mcu_c_type(x->dtype));
    muc_mcu_nest_print(&nest, &nest.operands[0], &l->text);
    muc_text_add(&l->text, ";\n\n");
    for (uint32_t i = 1; i < 3; i++) { /* the upper bound last: it wins where they cross */
        if (!muc_mcu_input(l, node, i))
            continue;
        muc_mcu_indent(&l->text, 1 + nest.loops);
        muc_text_add(&l->text, "x = %s;\n", bounds[i]);
    }
    muc_mcu_indent(&l->text, 1 + nest.loops);
    muc_mcu_nest_print(&nest, &nest.operands[1], &l->text);
    muc_text_add(&l->text, " = x;\n");
    muc_mcu_nest_close(&nest, 0, nest.loops, 1);
    MUC_TRY(muc_mcu_end_function(l, 0, 0));
    muc_mcu_may_overlap(l, 0, 0);
    return MUC_OK;
}

static bool is_castable(const muc_tensor *tensor)
{
    return is_plain_number(tensor) || tensor->dtype == MUC_F16 || tensor->dtype == MUC_BF16 ||
           tensor->dtype == MUC_F64;
}

bool muc_mcu_takes_cast(const muc_mcu_lowering *l, const muc_node *node)
{
    return is_castable(muc_mcu_input(l, node, 0)) && is_castable(muc_mcu_output(l, node, 0));
}

/* what makes a float of a 16-bit one, or that of a float */
static const char *half_function(muc_dtype dtype, bool widens)
{
    if (dtype == MUC_F16)
        return widens ? "mur_float_of_half" : "mur_half_of_float";
    if (dtype == MUC_BF16)
        return widens ? "mur_float_of_bfloat" : "mur_bfloat_of_float";
    return NULL;
}

/* the bounds of an integer type as a real number, and as it is */
static void print_saturation(muc_text *text, muc_dtype dtype, bool of_double)
{
    unsigned bits = muc_dtype_get(dtype)->block_bytes * 8;
    bool is_signed = dtype == MUC_I8 || dtype == MUC_I16 || dtype == MUC_I32 || dtype == MUC_I64;
    const char *type = is_signed ? "INT" : "UINT";

    muc_mcu_print_real(text, ldexp(1, (int)bits - is_signed), of_double);
    muc_text_add(text, " ? %s%u_MAX : x <= ", type, bits);
    muc_mcu_print_real(text, is_signed ? -ldexp(1, (int)bits - 1) : 0, of_double);
    if (is_signed)
        muc_text_add(text, " ? INT%u_MIN", bits);
    else
        muc_text_add(text, " ? 0u");
}

muc_status muc_mcu_write_cast(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);
    const char *widens = half_function(x->dtype, true), *narrows = half_function(y->dtype, false);
    const char *type = muc_mcu_c_type(y->dtype);
    muc_mcu_nest nest;

    MUC_TRY(muc_mcu_begin_function(l, node));
    nest = muc_mcu_nest_pointwise(l, node, node->input_count);
    MUC_TRY(muc_mcu_nest_tile(&nest, node, nest.loops, MUC_MCU_CUT_ROWS));
    muc_mcu_nest_open(&nest, 0, nest.loops, 1);
    muc_mcu_indent(&l->text, 1 + nest.loops);
    muc_text_add(&l->text, "const %s x = %s%s", widens ? "float" : muc_mcu_c_type(x->dtype),
                 widens ? widens : "", widens ? "(" : "");
    muc_mcu_nest_print(&nest, &nest.operands[0], &l->text);
    muc_text_add(&l->text, "%s;\n\n", widens ? ")" : "");
    muc_mcu_indent(&l->text, 1 + nest.loops);
    muc_mcu_nest_print(&nest, &nest.operands[1], &l->text);
    muc_text_add(&l->text, " = ");
    if (y->dtype == MUC_BOOL) {
        muc_text_add(&l->text, "(uint8_t)(x != 0);\n");
    } else if (narrows) {
        muc_text_add(&l->text, "%s((float)x);\n", narrows);
    } else if (muc_dtype_get(y->dtype)->kind == MUC_DTYPE_INTEGER &&
               muc_dtype_get(x->dtype)->kind != MUC_DTYPE_INTEGER) {
        muc_text_add(&l->text, "(%s)(x != x ? 0 : x >= ", type);
        print_saturation(&l->text, y->dtype, x->dtype == MUC_F64);
        muc_text_add(&l->text, " : (%s)x);\n", type);
    } else {
        muc_text_add(&l->text, "(%s)x;\n", type);
    }
    muc_mcu_nest_close(&nest, 0, nest.loops, 1);
    MUC_TRY(muc_mcu_end_function(l, 0, 0));
    muc_mcu_share_pointwise(l, node);
    return MUC_OK;
}

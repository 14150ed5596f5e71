/* elementwise.c - operators whose element i needs elements i of their inputs. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "targets/mcu/loops/formula_text.h"
#include "targets/mcu/loops/halves.h"
#include "targets/mcu/loops/loop_nest.h"
#include "targets/mcu/program/c_text.h"

/* its operands may be of two types, so that it is not a row of elementwise.def */
static const char *form_of_pow(bool is_real)
{
    return is_real ? "mur_real_pow(x, (float)y)" : "mur_whole_pow_real((int64_t)x, (float)y)";
}

/* NULL: none */
static const char *find_form(const muc_mcu_lowering *l, const muc_node *node)
{
    bool is_real = muc_mcu_input(l, node, 0)->dtype == MUC_F32;
    muc_formula formula = muc_formula_of(node);

    if (node->op == MUC_OP_POW)
        return form_of_pow(is_real);
    return formula == MUC_FORMULA_COUNT ? NULL : muc_mcu_formula_text(formula, is_real);
}

bool muc_mcu_takes_elementwise(const muc_mcu_lowering *l, const muc_node *node)
{
    if (muc_mcu_takes_halves(l, node))
        return true;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (!muc_mcu_is_plain(muc_mcu_input(l, node, i)))
            return false;
    return muc_mcu_is_plain(muc_mcu_output(l, node, 0)) && find_form(l, node) != NULL;
}

static const char *unsigned_type(muc_dtype dtype)
{
    return muc_dtype_get(dtype)->block_bytes == 8 ? "uint64_t" : "uint32_t";
}

static void print_number(muc_text *text, double value)
{
    muc_text_add(text, value < 0 ? "(" : "");
    muc_mcu_print_real(text, value, false);
    muc_text_add(text, value < 0 ? ")" : "");
}

/* what a word of a formula stands for; the words of functions and numbers for themselves */
static void print_word(muc_mcu_nest *nest, const muc_node *node, const char *word, size_t length,
                       const char *const *operands)
{
    const muc_mcu_lowering *l = nest->l;
    const muc_dtype in = muc_mcu_input(l, node, 0)->dtype, out = muc_mcu_output(l, node, 0)->dtype;
    const muc_formula_values values = muc_formula_values_of(node);
    const struct {
        const char *word, *text;
    } words[] = {
        { "x", operands[0] },        { "y", operands[1] },       { "T", muc_mcu_c_type(out) },
        { "S", muc_mcu_c_type(in) }, { "U", unsigned_type(in) },
    };
#define VALUE(name, key, kind, fallback) { #name, values.name },
    const struct {
        const char *word;
        double value;
    } numbers[] = { MUC_FORMULA_ATTRIBUTES(VALUE) };
#undef VALUE

    for (size_t i = 0; i < MUC_COUNT(words); i++)
        if (strlen(words[i].word) == length && !strncmp(words[i].word, word, length)) {
            muc_text_add(&nest->l->text, "%s", words[i].text);
            return;
        }
    for (size_t i = 0; i < MUC_COUNT(numbers); i++)
        if (strlen(numbers[i].word) == length && !strncmp(numbers[i].word, word, length)) {
            print_number(&nest->l->text, numbers[i].value);
            return;
        }
    muc_text_add(&nest->l->text, "%.*s", (int)length, word);
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

static void print_form(muc_mcu_nest *nest, const muc_node *node, const char *how,
                       const char *const *operands)
{
    muc_text *text = &nest->l->text;
    bool is_float = muc_mcu_output(nest->l, node, 0)->dtype == MUC_F32;

    if (!is_float)
        muc_text_add(text, "(%s)(", muc_mcu_c_type(muc_mcu_output(nest->l, node, 0)->dtype));
    while (*how) {
        size_t length = 0;

        while (is_word(how[length]))
            length++;
        if (length)
            print_word(nest, node, how, length, operands);
        else
            muc_text_add(text, "%c", *how);
        how += length ? length : 1;
    }
    if (!is_float)
        muc_text_add(text, ")");
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

/* of more than two inputs each further one is combined with the result so far */
static void combine_all(muc_mcu_nest *nest, const muc_node *node, const char *how, unsigned depth)
{
    const char *const pair[] = { "a0", "b0" };
    muc_text *text = &nest->l->text;
    const muc_mcu_operand *y = &nest->operands[node->input_count];

    muc_mcu_indent(text, depth);
    muc_mcu_nest_print(nest, y, text);
    muc_text_add(text, " = ");
    if (node->input_count < muc_op_get(node->op)->most_inputs && node->input_count == 1)
        muc_text_add(text, "a0");
    else
        print_form(nest, node, how, pair);
    muc_text_add(text, ";\n");
    for (uint32_t i = 2; i < node->input_count; i++) {
        char name[8];
        const char *const next[] = { "so_far", name };

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
    if (muc_op_has(node->op, MUC_OP_AVERAGES)) {
        muc_mcu_indent(text, depth);
        muc_mcu_nest_print(nest, y, text);
        muc_text_add(text, " /= %u.0f;\n", node->input_count);
    }
}

/* loops over the node's output with its first `inputs` inputs broadcast to it, the output last */
static muc_mcu_nest pointwise_nest(muc_mcu_lowering *l, const muc_node *node, uint32_t inputs)
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

muc_status muc_mcu_begin_elements(muc_mcu_lowering *l, const muc_node *node, uint32_t inputs,
                                  uint32_t operands, bool tiled, muc_mcu_nest *nest)
{
    MUC_TRY(muc_mcu_begin_function(l, node));
    *nest = pointwise_nest(l, node, inputs);
    for (uint32_t i = inputs; i < operands; i++)
        muc_mcu_nest_add(nest, muc_mcu_input_name(i));
    return tiled ? muc_mcu_nest_tile(nest, node, nest->loops, MUC_MCU_CUT_ROWS) : MUC_OK;
}

/* "@y" is the output's operand, behind those of the inputs that are broadcast */
static const muc_mcu_operand *find_operand(const muc_mcu_nest *nest, char letter)
{
    uint32_t y = 0;

    if (letter != 'y')
        return &nest->operands[letter - 'a'];
    while (strcmp(nest->operands[y].name, "y") != 0)
        y++;
    return &nest->operands[y];
}

static void print_elements(const muc_mcu_nest *nest, const char *line, unsigned depth)
{
    muc_mcu_indent(&nest->l->text, depth);
    for (; *line; line++)
        if (*line == '@') {
            muc_mcu_nest_print(nest, find_operand(nest, *++line), &nest->l->text);
        } else {
            muc_text_add(&nest->l->text, "%c", *line);
            if (*line == '\n' && line[1] != '\n')
                muc_mcu_indent(&nest->l->text, depth);
        }
    muc_text_add(&nest->l->text, "\n");
}

/* How many of the text's first bytes are lines about operands that the last loop leaves as they
 * are: constants, which are written before it. */
static size_t find_constants(const muc_mcu_nest *nest, const char *line)
{
    static const char word[] = "const ";
    size_t bytes = 0;

    if (nest->loops == 0)
        return 0;
    while (strncmp(line + bytes, word, strlen(word)) == 0) {
        const size_t length = strcspn(line + bytes, "\n");
        const char *at = memchr(line + bytes, '@', length);

        if (!at || find_operand(nest, at[1])->strides[nest->loops - 1].factor != 0 ||
            memchr(at + 1, '@', length - (size_t)(at + 1 - (line + bytes))))
            break;
        bytes += length + 1;
    }
    return bytes;
}

muc_status muc_mcu_end_elements(const muc_mcu_nest *nest, muc_text *line)
{
    muc_status status = muc_text_status(nest->l->ctx, line);

    if (status == MUC_OK) {
        const uint32_t loops = nest->loops;
        const size_t constants = find_constants(nest, line->data);

        muc_mcu_nest_open(nest, 0, loops - (constants > 0), 1);
        if (constants > 0) {
            line->data[constants - 1] = '\0';
            print_elements(nest, line->data, loops);
            muc_mcu_nest_open(nest, loops - 1, loops, loops);
        }
        print_elements(nest, line->data + constants, 1 + loops);
        muc_mcu_nest_close(nest, 0, loops, 1);
    }
    muc_text_free(line);
    MUC_TRY(status);
    return muc_mcu_end_function(nest->l, 0, 0);
}

void muc_mcu_share_pointwise(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *y = muc_mcu_output(l, node, 0);

    for (uint32_t i = 0; i < node->input_count; i++) {
        const muc_tensor *x = muc_mcu_input(l, node, i);

        if (x && x->kind != MUC_TENSOR_CONST &&
            muc_mcu_most_elements(l, x) == muc_mcu_most_elements(l, y) &&
            muc_dtype_get(x->dtype)->block_bytes >= muc_dtype_get(y->dtype)->block_bytes)
            muc_mcu_may_overlap(l, i, 0);
    }
}

muc_status muc_mcu_write_elementwise(muc_mcu_lowering *l, const muc_node *node)
{
    muc_mcu_nest nest;

    if (muc_mcu_takes_halves(l, node))
        return muc_mcu_write_halves(l, node);
    MUC_TRY(muc_mcu_begin_function(l, node));
    nest = pointwise_nest(l, node, node->input_count);
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

muc_status muc_mcu_write_where(muc_mcu_lowering *l, const muc_node *node)
{
    muc_text line = { 0 };
    muc_mcu_nest nest;

    MUC_TRY(muc_mcu_begin_elements(l, node, 3, 3, true, &nest));
    muc_text_add(&line, "@y = @a ? @b : @c;");
    return muc_mcu_end_elements(&nest, &line);
}

bool muc_mcu_takes_clip(const muc_mcu_lowering *l, const muc_node *node)
{
    return muc_mcu_is_plain(muc_mcu_input(l, node, 0)) || muc_mcu_takes_halves(l, node);
}

muc_status muc_mcu_write_clip(muc_mcu_lowering *l, const muc_node *node)
{
    muc_text line = { 0 };
    muc_mcu_nest nest;

    if (muc_mcu_takes_halves(l, node))
        return muc_mcu_write_halves(l, node);
    MUC_TRY(muc_mcu_begin_elements(l, node, 1, 3, true, &nest));
    muc_text_add(&line, "%s x = @a;\n\n", muc_mcu_c_type(muc_mcu_input(l, node, 0)->dtype));
    muc_text_add(&line, muc_mcu_input(l, node, 1) ? "x = x < b[0] ? b[0] : x;\n" : "");
    /* the upper bound last: it wins where they cross */
    muc_text_add(&line, muc_mcu_input(l, node, 2) ? "x = x > c[0] ? c[0] : x;\n" : "");
    muc_text_add(&line, "@y = x;");
    MUC_TRY(muc_mcu_end_elements(&nest, &line));
    muc_mcu_may_overlap(l, 0, 0);
    return MUC_OK;
}

static bool is_castable(const muc_tensor *tensor)
{
    return muc_mcu_is_plain(tensor) || tensor->dtype == MUC_F16 || tensor->dtype == MUC_BF16 ||
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
    muc_text line = { 0 };
    muc_mcu_nest nest;

    if (muc_mcu_takes_halves(l, node))
        return muc_mcu_write_halves(l, node);
    MUC_TRY(muc_mcu_begin_elements(l, node, 1, 1, true, &nest));
    if (widens)
        muc_text_add(&line, "const float x = %s(@a);\n\n@y = ", widens);
    else
        muc_text_add(&line, "const %s x = @a;\n\n@y = ", muc_mcu_c_type(x->dtype));
    if (y->dtype == MUC_BOOL) {
        muc_text_add(&line, "(uint8_t)(x != 0);");
    } else if (narrows) {
        muc_text_add(&line, "%s((float)x);", narrows);
    } else if (muc_dtype_get(y->dtype)->kind == MUC_DTYPE_INTEGER &&
               muc_dtype_get(x->dtype)->kind != MUC_DTYPE_INTEGER) {
        muc_text_add(&line, "(%s)(x != x ? 0 : x >= ", type);
        print_saturation(&line, y->dtype, x->dtype == MUC_F64);
        muc_text_add(&line, " : (%s)x);", type);
    } else {
        muc_text_add(&line, "(%s)x;", type);
    }
    MUC_TRY(muc_mcu_end_elements(&nest, &line));
    muc_mcu_share_pointwise(l, node);
    return MUC_OK;
}

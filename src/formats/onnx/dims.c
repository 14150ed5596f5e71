/* dims.c - what the dimensions of inputs are: numbers, inputs of expressions with a range, or sums
 * and products of these.
 *
 * A name such as "past_sequence_length + 1", as exporters write, is such a sum if other dimensions
 * have the names in it; the options may give one for any dimension.
 */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "formats/onnx/onnx_import.h"

enum { MAX_DIM = 1 << 30, MAX_NAME = 128 };

/* What is not a letter, digit or '_' becomes '_'. */
static void identifier_of(const char *name, size_t length, char out[MAX_NAME])
{
    size_t used = 0;

    if (isdigit((unsigned char)name[0]))
        out[used++] = '_';
    for (size_t i = 0; i < length && used < MAX_NAME - 1; i++) {
        unsigned char c = (unsigned char)name[i];

        out[used++] = (char)(isalnum(c) && c < 128 ? c : '_');
    }
    out[used] = '\0';
}

/* by the file's name of the dimension, or by what muc makes of it */
static const muc_network_dim *option_of(const onnx_import *im, const char *name, size_t length,
                                        size_t *index)
{
    char identifier[MAX_NAME];

    identifier_of(name, length, identifier);
    for (size_t i = 0; i < im->options->dim_count; i++) {
        const muc_network_dim *dim = &im->options->dims[i];

        if (strcmp(dim->name, identifier) == 0 ||
            (strncmp(dim->name, name, length) == 0 && dim->name[length] == '\0')) {
            *index = i;
            return dim;
        }
    }
    return NULL;
}

/* ---- formulas ---- */

static void skip_blanks(const char **at)
{
    while (**at == ' ')
        ++*at;
}

/* a number, or a dimension that is there already */
static bool take_factor(onnx_import *im, const char **at, muc_expr *out)
{
    const char *start, *name;
    const muc_network_dim *option;
    char identifier[MAX_NAME];
    uint64_t number = 0;
    uint32_t input;
    size_t index;

    skip_blanks(at);
    start = *at;
    while (isalnum((unsigned char)**at) || **at == '_')
        ++*at;
    name = start;
    while (name < *at && *name >= '0' && *name <= '9' && number < MAX_DIM)
        number = number * 10 + (uint64_t)(*name++ - '0');
    if (*at == start)
        return false;
    if (name == *at) {
        *out = muc_expr_const(im->graph->pool, (uint32_t)number);
        return number <= MAX_DIM;
    }
    option = option_of(im, start, (size_t)(*at - start), &index);
    if (option && !option->formula && option->lo == option->hi) {
        *out = muc_expr_const(im->graph->pool, option->lo);
        return true;
    }
    identifier_of(start, (size_t)(*at - start), identifier);
    input = muc_expr_find_input(im->graph->pool, identifier);
    if (input != UINT32_MAX)
        *out = muc_expr_get_input(im->graph->pool, input)->expr;
    return input != UINT32_MAX;
}

static bool take_product(onnx_import *im, const char **at, muc_expr *out)
{
    muc_expr factor;

    if (!take_factor(im, at, out))
        return false;
    for (skip_blanks(at); **at == '*'; skip_blanks(at)) {
        ++*at;
        if (!take_factor(im, at, &factor))
            return false;
        *out = muc_expr_mul(im->graph->pool, *out, factor);
    }
    return true;
}

/* Sums, differences and products of numbers and of dimensions that are there; false otherwise. */
static bool formula(onnx_import *im, const char *text, muc_expr *out)
{
    muc_expr term;

    if (!take_product(im, &text, out))
        return false;
    while (*text == '+' || *text == '-') {
        bool plus = *text++ == '+';

        if (!take_product(im, &text, &term))
            return false;
        *out = plus ? muc_expr_add(im->graph->pool, *out, term)
                    : muc_expr_sub(im->graph->pool, *out, term);
    }
    return *text == '\0';
}

static bool is_formula(const char *name)
{
    return strpbrk(name, "+-*") != NULL;
}

/* ---- dimensions ---- */

static muc_status named_dim(onnx_import *im, const char *name, muc_expr *out)
{
    uint32_t lo = 1, hi = MUC_NETWORK_MOST_DIM;
    char identifier[MAX_NAME];
    const muc_network_dim *option;
    size_t index;

    option = option_of(im, name, strlen(name), &index);
    if (option) {
        im->dims_used[index] = true;
        lo = option->lo;
        hi = option->hi;
    }
    if (option && option->formula)
        return formula(im, option->formula, out)
                   ? muc_expr_status(im->graph->pool)
                   : muc_fail(im->ctx, MUC_USAGE, im->source->path, MUC_NO_OFFSET,
                              "dimension '%s': '%s' is not a sum or product of numbers and of the "
                              "inputs' other dimensions",
                              name, option->formula);
    if (!option && is_formula(name) && formula(im, name, out))
        return muc_expr_status(im->graph->pool);
    identifier_of(name, strlen(name), identifier);
    *out = lo == hi ? muc_expr_const(im->graph->pool, lo)
                    : muc_expr_new_input(im->graph->pool, identifier, lo, hi, 1);
    return muc_expr_status(im->graph->pool);
}

/* the name of an open dimension */
static muc_status name_of(onnx_import *im, const char *input,
                          const Onnx__TensorShapeProto__Dimension *dim, uint32_t i,
                          const char **out)
{
    *out = dim->dim_param;
    if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
        dim->dim_param[0] != '\0')
        return MUC_OK;
    return muc_arena_format(im->ctx, &im->arena, out, "%s_%u", input, i);
}

muc_status onnx_read_dim(onnx_import *im, const char *input,
                         const Onnx__TensorShapeProto__Dimension *dim, uint32_t i, muc_expr *out)
{
    const char *name;

    if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE) {
        if (dim->dim_value < 0 || dim->dim_value > MAX_DIM)
            return muc_fail(im->ctx, MUC_MALFORMED, im->source->path, MUC_NO_OFFSET,
                            "input '%s': dimension %u is %" PRId64, input, i, dim->dim_value);
        *out = muc_expr_const(im->graph->pool, (uint32_t)dim->dim_value);
        return MUC_OK;
    }
    MUC_TRY(name_of(im, input, dim, i, &name));
    return named_dim(im, name, out);
}

muc_status onnx_declare_dims(onnx_import *im, const char *input,
                             const Onnx__TensorShapeProto *shape)
{
    for (uint32_t i = 0; shape && i < shape->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *dim = shape->dim[i];
        const muc_network_dim *option;
        const char *name;
        size_t index;
        muc_expr e;

        if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
            continue;
        MUC_TRY(name_of(im, input, dim, i, &name));
        option = option_of(im, name, strlen(name), &index);
        if (option ? option->formula == NULL : !is_formula(name))
            MUC_TRY(named_dim(im, name, &e));
    }
    return MUC_OK;
}

/* tflite_node.c - gives recipes one of TFLite's operators as a neutral node. */
#include <math.h>
#include <string.h>

#include "formats/tflite/tflite_import.h"

static muc_subject subject(const void *self)
{
    return muc_tflite_subject(self);
}

/* The field of the options that has this name, MUC_FLAT_FIELD_COUNT where none has. */
static muc_flat_field find_field(muc_flat_table table, const char *name)
{
    static const struct {
        muc_flat_table table;
        const char *name;
    } fields[] = {
#define TFLITE_TABLE(table, option)
#define TFLITE_FIELD(table, slot, name, kind, of, unless) { MUC_FLAT_##table, #name },
#include "formats/tflite/schema.def"
#undef TFLITE_TABLE
#undef TFLITE_FIELD
    };
    size_t i = 0;

    while (i < MUC_COUNT(fields) && (fields[i].table != table || strcmp(fields[i].name, name) != 0))
        i++;
    return (muc_flat_field)i;
}

int64_t muc_tflite_option(const muc_tflite_import *im, const char *name)
{
    muc_flat_field field = find_field(im->table, name);

    return field == MUC_FLAT_FIELD_COUNT ? 0 : muc_flat_integer(im->options, field);
}

static muc_status attribute(void *self, const char *name, muc_value_type wanted, muc_value *out)
{
    const muc_tflite_import *im = self;
    muc_flat_field field = find_field(im->table, name);

    *out = (muc_value){ .type = wanted };
    if (field == MUC_FLAT_FIELD_COUNT)
        return muc_tflite_refuse(im, MUC_BUG, "no option '%s'", name);
    if (wanted == MUC_VALUE_REAL)
        out->real = (double)muc_flat_real(im->options, field);
    else
        out->integer = muc_flat_integer(im->options, field);
    return MUC_OK;
}

static muc_status input(void *self, uint32_t i, uint32_t *id)
{
    return muc_tflite_input(self, i, id);
}

static muc_status integers(void *self, uint32_t i, muc_value *out)
{
    enum { MOST = 2 * MUC_GRAPH_MAX_RANK };
    const muc_tflite_import *im = self;
    int64_t *items;
    uint32_t count;

    MUC_TRY(MUC_ARENA_NEW(im->ctx, im->arena, MOST, &items));
    MUC_TRY(muc_tflite_integers(im, i, MOST, items, &count));
    *out = (muc_value){ .type = MUC_VALUE_INTEGERS, .items = items, .count = count };
    return MUC_OK;
}

/* 0 alone, of any type */
static muc_status constant(void *self, const char *name, muc_dtype dtype, const double *values,
                           uint32_t count, uint32_t *id)
{
    static const uint8_t zero[8];
    const muc_tensor tensor = { .dtype = dtype,
                                .data = zero,
                                .bytes = muc_dtype_get(dtype)->block_bytes };

    return count != 1 || *values < 0 || *values > 0
               ? muc_tflite_refuse(self, MUC_BUG, "a constant that is not 0")
               : muc_tflite_constant(self, name, &tensor, id);
}

static muc_status step(void *self, muc_op op, const char *name, const uint32_t *inputs,
                       uint32_t count, const muc_attributes *a, uint32_t *id)
{
    return muc_tflite_step(self, op, name, inputs, count, a, id);
}

static muc_status last(void *self, muc_op op, const uint32_t *inputs, uint32_t count,
                       muc_attributes *a)
{
    const muc_tflite_import *im = self;

    return im->activated ? muc_tflite_activated(self, op, inputs, count, a)
                         : muc_tflite_last(self, op, inputs, count, a);
}

static muc_tensor output(void *self)
{
    const muc_tflite_import *im = self;
    const muc_tflite_tensor *out = muc_tflite_out(im, 0);
    muc_tensor tensor = { .dtype = out->dtype, .rank = out->rank };

    for (uint32_t i = 0; i < out->rank; i++)
        tensor.dims[i] = muc_expr_const(im->graph->pool, out->dims[i]);
    return tensor;
}

static muc_status check_beta(muc_tflite_import *im)
{
    muc_value beta;

    MUC_TRY(attribute(im, "beta", MUC_VALUE_REAL, &beta));
    return isfinite(beta.real) && beta.real > 0
               ? MUC_OK
               : muc_tflite_refuse(im, MUC_MALFORMED, "beta %g", beta.real);
}

static muc_status word(void *self, const char *text, uint32_t *operand)
{
    muc_tflite_import *im = self;
    const muc_tflite_tensor *in = muc_tflite_in(im, 0), *out = muc_tflite_out(im, 0);
    const char *same = strncmp(text, "same", 4) == 0 ? text + 4 : "";

    (void)operand;
    im->activated = im->activated || strcmp(text, "activated") == 0;
    for (; *same; same++)
        MUC_TRY(muc_tflite_same_scale(im, muc_tflite_in(im, (uint32_t)(*same - '0')), out));
    if (strcmp(text, "plain") == 0 && (muc_tflite_is_quantized(in) || muc_tflite_is_quantized(out)))
        return muc_tflite_refuse(im, MUC_UNSUPPORTED, "of quantized integers");
    if (strcmp(text, "scaled") == 0 && !muc_tflite_is_quantized(out))
        return muc_tflite_refuse(im, MUC_MALFORMED, "the output has no scale");
    return strcmp(text, "positive_beta") == 0 ? check_beta(im) : MUC_OK;
}

muc_file_node muc_tflite_node(muc_tflite_import *im)
{
    static const muc_file_node_functions functions = { subject,  attribute, input, integers,
                                                       constant, step,      last,  output,
                                                       word,     NULL,      NULL,  NULL };

    im->activated = false;
    return (muc_file_node){ .functions = &functions,
                            .self = im,
                            .ctx = im->ctx,
                            .graph = im->graph,
                            .arena = im->arena,
                            .op = im->to,
                            .input_count = im->op->input_count };
}

/* onnx_node.c - gives recipes a node of an ONNX file as a neutral node. */
#include <inttypes.h>
#include <string.h>

#include "formats/onnx/onnx_operators.h"
#include "formats/onnx/onnx_quantlib.h"
#include "import/recipe.h"

static muc_subject subject(const void *self)
{
    return onnx_subject(self);
}

/* a type is a number in the file, a name in a recipe */
static muc_status type_name(onnx_call *call, int64_t number, const char **out)
{
    muc_dtype dtype;

    MUC_TRY(
        muc_onnx_dtype(call->im->ctx, call->im->source->path, call->name, (int32_t)number, &dtype));
    *out = muc_dtype_get(dtype)->name;
    return MUC_OK;
}

static muc_status attribute(void *self, const char *name, muc_value_type wanted, muc_value *out)
{
    const Onnx__AttributeProto *a;

    *out = (muc_value){ .type = MUC_VALUE_ABSENT };
    MUC_TRY(onnx_attribute(self, name, &a));
    if (!a || wanted == MUC_VALUE_ABSENT)
        return MUC_OK;
    out->type = wanted;
    if (wanted == MUC_VALUE_TEXT && a->has_i && a->i == 0)
        out->type = MUC_VALUE_ABSENT; /* of no type */
    else if (wanted == MUC_VALUE_TEXT && a->has_i)
        return type_name(self, a->i, &out->text);
    if (wanted == MUC_VALUE_INTEGERS && a->has_i) {
        out->items = &a->i;
        out->count = 1;
        return MUC_OK;
    }
    if (wanted == MUC_VALUE_INTEGERS)
        return onnx_integers(self, name, &out->items, &out->count);
    return wanted == MUC_VALUE_INTEGER ? onnx_integer(self, name, 0, &out->integer)
           : wanted == MUC_VALUE_REAL  ? onnx_real(self, name, 0, &out->real)
                                       : onnx_string(self, name, NULL, &out->text);
}

static muc_status input(void *self, uint32_t i, uint32_t *id)
{
    return onnx_input_or_none(self, i, id);
}

static muc_status integers(void *self, uint32_t i, muc_value *out)
{
    onnx_call *call = self;
    const onnx_numbers *numbers;
    int64_t *items;
    muc_expr *exprs;

    *out = (muc_value){ .type = onnx_has_input(call, i) ? MUC_VALUE_INTEGERS : MUC_VALUE_ABSENT };
    if (out->type == MUC_VALUE_ABSENT)
        return MUC_OK;
    MUC_TRY(onnx_known(call, i, &numbers));
    if (onnx_is_real(numbers->dtype))
        return onnx_fail(call, MUC_MALFORMED, "input %u, '%s', is of type %s, expected integers", i,
                         call->proto->input[i], muc_dtype_get(numbers->dtype)->name);
    MUC_TRY(MUC_ARENA_NEW(call->im->ctx, &call->im->arena, numbers->count + (size_t)1, &items));
    MUC_TRY(MUC_ARENA_NEW(call->im->ctx, &call->im->arena, numbers->count + (size_t)1, &exprs));
    for (uint32_t k = 0; k < numbers->count; k++) {
        items[k] = numbers->items[k].integer;
        exprs[k] = numbers->items[k].expr;
    }
    out->items = items;
    out->exprs = exprs;
    out->count = numbers->count;
    return MUC_OK;
}

static muc_status constant(void *self, const char *name, muc_dtype dtype, const double *values,
                           uint32_t count, uint32_t *id)
{
    return count == 1 ? onnx_scalar(self, dtype, *values, id) /* steps have a number for a name */
                      : onnx_list(self, name, dtype, values, count, id);
}

static muc_status step(void *self, muc_op op, const char *name, const uint32_t *inputs,
                       uint32_t count, const muc_attributes *a, uint32_t *id)
{
    (void)name;
    return onnx_step(self, op, inputs, count, a, id);
}

static muc_status last(void *self, muc_op op, const uint32_t *inputs, uint32_t count,
                       muc_attributes *a)
{
    return onnx_emit(self, op, inputs, count, a, onnx_output_count(self, op));
}

/* "last_axis": an axis that is there is the last of input 1 */
static muc_status word(void *self, const char *text, uint32_t *operand)
{
    onnx_call *call = self;
    uint32_t id, rank;
    int64_t axis;

    (void)operand;
    if (strcmp(text, "last_axis") != 0)
        return onnx_fail(call, MUC_BUG, "no word of recipes: '%s'", text);
    MUC_TRY(onnx_integer(call, "axis", -1, &axis));
    MUC_TRY(onnx_input(call, 1, &id));
    rank = onnx_tensor(call, id)->rank;
    MUC_TRY(muc_import_axis(onnx_subject(call), axis, rank, &axis));
    return axis + 1 == rank ? MUC_OK
                            : onnx_fail(call, MUC_UNSUPPORTED,
                                        "axis %" PRId64 " of %u is not the last", axis, rank);
}

static bool wants(const void *self, uint32_t i)
{
    return onnx_has_output(self, i);
}

static muc_status bind(void *self, uint32_t i, uint32_t id)
{
    ((onnx_call *)self)->binds = true;
    return onnx_bind(self, i, id);
}

static muc_status typed(void *self, uint32_t i, muc_dtype dtype, uint32_t *id)
{
    return dtype == MUC_I32 ? onnx_word_operand(self, i, id)
                            : onnx_fail(self, MUC_BUG, "inputs are given as i32 alone");
}

muc_file_node onnx_node(onnx_call *call)
{
    static const muc_file_node_functions functions = { subject,  attribute, input, integers,
                                                       constant, step,      last,  NULL,
                                                       word,     wants,     bind,  typed };

    return (muc_file_node){ .functions = &functions,
                            .self = call,
                            .ctx = call->im->ctx,
                            .graph = call->im->graph,
                            .arena = &call->im->arena,
                            .op = call->row->op,
                            .input_count = onnx_input_count(call) };
}

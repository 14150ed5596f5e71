/* onnx_node.c - a node of an ONNX file as the neutral node that recipes speak of. */
#include <string.h>

#include "formats/onnx/onnx_operators.h"
#include "import/recipe.h"

static muc_status refuse(void *self, muc_status status, const char *message)
{
    return onnx_fail(self, status, "%s", message);
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
    if (wanted == MUC_VALUE_TEXT && a->has_i)
        return type_name(self, a->i, &out->text);
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
    *out = (muc_value){ .type = MUC_VALUE_INTEGERS };
    return onnx_known_integers(self, i, &out->items, &out->count);
}

static muc_status constant(void *self, const char *name, muc_dtype dtype, double value,
                           uint32_t *id)
{
    (void)name; /* which steps have a number for */
    return onnx_scalar(self, dtype, value, id);
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
static muc_status word(void *self, const char *text)
{
    onnx_call *call = self;
    uint32_t id, rank, axis;
    int64_t given;

    if (strcmp(text, "last_axis") != 0)
        return onnx_fail(call, MUC_BUG, "no word of recipes: '%s'", text);
    MUC_TRY(onnx_integer(call, "axis", -1, &given));
    MUC_TRY(onnx_input(call, 1, &id));
    rank = onnx_tensor(call, id)->rank;
    MUC_TRY(onnx_axis(call, given, rank, &axis));
    return axis + 1 == rank
               ? MUC_OK
               : onnx_fail(call, MUC_UNSUPPORTED, "axis %u of %u is not the last", axis, rank);
}

muc_status onnx_cook(onnx_call *call, const char *recipe)
{
    static const muc_file_node_functions functions = { refuse, attribute, input, integers, constant,
                                                       step,   last,      NULL,  word };
    const muc_file_node node = { &functions,       call,
                                 call->im->ctx,    call->im->graph,
                                 &call->im->arena, onnx_input_count(call),
                                 call->row->op };

    if (call->proto->n_input > MUC_GRAPH_MAX_INPUTS)
        return onnx_fail(call, MUC_UNSUPPORTED, "%zu inputs, at most %d", call->proto->n_input,
                         MUC_GRAPH_MAX_INPUTS);
    return muc_import_recipe(&node, recipe);
}

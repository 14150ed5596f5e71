/* node_operands.c - what importers are made of: operands, attributes, nodes of the graph. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "formats/onnx/integers.h"
#include "formats/onnx/onnx_quantlib.h"
#include "import/free_name.h"

muc_subject onnx_subject(const onnx_call *call)
{
    return muc_subject_of(call->im->ctx, call->im->source->path, MUC_NO_OFFSET, "node '%s' (%s)",
                          call->name, call->proto->op_type);
}

/* ---- operands ---- */

bool onnx_has_input(const onnx_call *call, uint32_t i)
{
    return i < call->proto->n_input && call->proto->input[i][0] != '\0';
}

bool onnx_has_output(const onnx_call *call, uint32_t i)
{
    return i < call->proto->n_output && call->proto->output[i][0] != '\0';
}

muc_status onnx_find_input(onnx_call *call, uint32_t i, onnx_value **out)
{
    if (!onnx_has_input(call, i))
        return onnx_fail(call, MUC_MALFORMED, "input %u is missing", i);
    *out = onnx_scope_find(&call->frame->scope, call->proto->input[i]);
    if (!*out)
        return onnx_fail(call, MUC_MALFORMED, "input %u, '%s', is computed nowhere", i,
                         call->proto->input[i]);
    return MUC_OK;
}

/* an integer that the file calls FLOAT, for a node that computes real numbers */
static bool needs_cast(const onnx_call *call, const char *name, uint32_t tensor)
{
    return !call->integers && call->frame->depth == 0 &&
           onnx_is_integer(call->im->integers, name) &&
           !onnx_is_declared_integer(call->im->integers, name) &&
           !onnx_is_real(onnx_tensor(call, tensor)->dtype);
}

static bool is_real_constant(const onnx_value *value)
{
    if (value->tensor != MUC_NO_ID)
        return false;
    return value->initializer
               ? value->initializer->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT
               : value->numbers && value->numbers->dtype == MUC_F32;
}

muc_status onnx_cast(onnx_call *call, uint32_t tensor, muc_dtype dtype, uint32_t *out)
{
    muc_attributes attributes = { .count = 0 };

    *out = tensor;
    if (onnx_tensor(call, tensor)->dtype == dtype)
        return MUC_OK;
    muc_attributes_set(&attributes, MUC_KEY_TO, dtype);
    return onnx_step(call, MUC_OP_CAST, &tensor, 1, &attributes, out);
}

muc_status onnx_input(onnx_call *call, uint32_t i, uint32_t *tensor)
{
    onnx_value *value;

    MUC_TRY(onnx_find_input(call, i, &value));
    if (call->integers && is_real_constant(value))
        return onnx_integer_constant(call, i, tensor);
    MUC_TRY(onnx_materialise(call->im, value, tensor));
    return needs_cast(call, value->name, *tensor) ? onnx_cast(call, *tensor, MUC_F32, tensor)
                                                  : MUC_OK;
}

muc_status onnx_input_or_none(onnx_call *call, uint32_t i, uint32_t *tensor)
{
    *tensor = MUC_NO_ID;
    return onnx_has_input(call, i) ? onnx_input(call, i, tensor) : MUC_OK;
}

const muc_tensor *onnx_tensor(const onnx_call *call, uint32_t tensor)
{
    return &call->im->graph->tensors[tensor];
}

onnx_shape onnx_shape_of(const onnx_call *call, uint32_t tensor)
{
    const muc_tensor *t = onnx_tensor(call, tensor);
    onnx_shape shape = { .rank = t->rank };

    memcpy(shape.dims, t->dims, t->rank * sizeof(t->dims[0]));
    return shape;
}

muc_status onnx_constant_dim(const onnx_call *call, uint32_t tensor, uint32_t i, uint32_t *out)
{
    const muc_tensor *t = onnx_tensor(call, tensor);

    if (i >= t->rank)
        return onnx_fail(call, MUC_MALFORMED, "'%s' has rank %u, expected more than %u", t->name,
                         t->rank, i);
    if (!muc_expr_is_const(call->im->graph->pool, t->dims[i]))
        return onnx_fail(call, MUC_UNSUPPORTED, "dimension %u of '%s' must be known", i, t->name);
    *out = muc_expr_get(call->im->graph->pool, t->dims[i])->immediate;
    return MUC_OK;
}

muc_status onnx_known(onnx_call *call, uint32_t i, const onnx_numbers **out)
{
    onnx_value *value;

    MUC_TRY(onnx_find_input(call, i, &value));
    MUC_TRY(onnx_numbers_of(call->im, value, out));
    if (!*out)
        return onnx_fail(call, MUC_UNSUPPORTED,
                         "input %u, '%s', decides shapes and must be known while reading", i,
                         value->name);
    return MUC_OK;
}

/* an operand of integers without expressions */
static muc_status need_integers(const onnx_call *call, uint32_t i, const onnx_numbers *numbers)
{
    if (onnx_is_real(numbers->dtype))
        return onnx_fail(call, MUC_MALFORMED, "input %u, '%s', is of type %s, expected integers", i,
                         call->proto->input[i], muc_dtype_get(numbers->dtype)->name);
    for (uint32_t j = 0; j < numbers->count; j++)
        if (numbers->items[j].expr != MUC_EXPR_NONE)
            return onnx_fail(call, MUC_UNSUPPORTED,
                             "input %u, '%s', depends on dimensions that are not known", i,
                             call->proto->input[i]);
    return MUC_OK;
}

muc_status onnx_known_integers(onnx_call *call, uint32_t i, const int64_t **items, size_t *count)
{
    const onnx_numbers *numbers;
    int64_t *copy;

    MUC_TRY(onnx_known(call, i, &numbers));
    MUC_TRY(need_integers(call, i, numbers));
    MUC_TRY(MUC_ARENA_NEW(call->im->ctx, &call->im->arena, numbers->count + (size_t)1, &copy));
    for (uint32_t j = 0; j < numbers->count; j++)
        copy[j] = numbers->items[j].integer;
    *items = copy;
    *count = numbers->count;
    return MUC_OK;
}

static muc_status need_one(const onnx_call *call, uint32_t i, size_t count)
{
    return count == 1
               ? MUC_OK
               : onnx_fail(call, MUC_MALFORMED, "input %u, '%s', has %zu elements, expected 1", i,
                           call->proto->input[i], count);
}

muc_status onnx_known_integer(onnx_call *call, uint32_t i, int64_t *out)
{
    const int64_t *items;
    size_t count;

    MUC_TRY(onnx_known_integers(call, i, &items, &count));
    MUC_TRY(need_one(call, i, count));
    *out = items[0];
    return MUC_OK;
}

muc_status onnx_known_real(onnx_call *call, uint32_t i, double *out)
{
    const onnx_numbers *numbers;

    MUC_TRY(onnx_known(call, i, &numbers));
    MUC_TRY(need_one(call, i, numbers->count));
    if (onnx_is_real(numbers->dtype)) {
        *out = numbers->items[0].real;
        return MUC_OK;
    }
    MUC_TRY(need_integers(call, i, numbers));
    *out = (double)numbers->items[0].integer;
    return MUC_OK;
}

/* ---- attributes ---- */

/* An attribute of a function's node may stand for one of its caller's. */
static muc_status resolve(const onnx_call *call, const Onnx__AttributeProto **attribute)
{
    const onnx_call *caller = call->frame->caller;

    for (unsigned depth = 0; *attribute && (*attribute)->ref_attr_name &&
                             (*attribute)->ref_attr_name[0] != '\0' && depth < ONNX_MAX_DEPTH;
         depth++) {
        const char *name = (*attribute)->ref_attr_name;

        if (!caller)
            return onnx_fail(call, MUC_MALFORMED, "attribute '%s' refers to no function's", name);
        *attribute = NULL;
        for (size_t i = 0; i < caller->proto->n_attribute; i++)
            if (strcmp(caller->proto->attribute[i]->name, name) == 0)
                *attribute = caller->proto->attribute[i];
        caller = caller->frame->caller;
    }
    return MUC_OK;
}

muc_status onnx_attribute(onnx_call *call, const char *name, const Onnx__AttributeProto **out)
{
    *out = NULL;
    for (size_t i = 0; i < call->proto->n_attribute; i++) {
        const Onnx__AttributeProto *attribute = call->proto->attribute[i];

        if (strcmp(attribute->name, name) != 0)
            continue;
        if (*out)
            return onnx_fail(call, MUC_MALFORMED, "attribute '%s' is there twice", name);
        *out = attribute;
        call->used |= UINT64_C(1) << i;
    }
    return resolve(call, out);
}

/* what files without a type mean is told by the field that they fill */
static bool is_integer(const Onnx__AttributeProto *a)
{
    return a->has_i && (!a->has_type || a->type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
}

static bool is_real(const Onnx__AttributeProto *a)
{
    return a->has_f && (!a->has_type || a->type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
}

/* the only element of a tensor, as some exporters write numbers */
static muc_status tensor_number(onnx_call *call, const Onnx__AttributeProto *a, onnx_number *out,
                                bool *found)
{
    muc_tensor_view view;
    onnx_numbers *numbers;

    *found = false;
    if (!a->t)
        return MUC_OK;
    MUC_TRY(muc_onnx_tensor(call->im->ctx, &call->im->store, a->t, &view));
    if (view.elements != 1)
        return MUC_OK;
    MUC_TRY(onnx_numbers_of_view(call->im, &view, &numbers));
    *out = numbers->items[0];
    if (onnx_is_real(view.dtype))
        out->integer = out->real >= -0x1p62 && out->real <= 0x1p62 ? (int64_t)out->real : 0;
    else
        out->real = (double)out->integer;
    *found = !onnx_is_real(view.dtype) || (double)out->integer == out->real;
    return MUC_OK;
}

static muc_status fail_type(const onnx_call *call, const char *name, const char *expected)
{
    return onnx_fail(call, MUC_MALFORMED, "attribute '%s' is not a %s", name, expected);
}

muc_status onnx_integer(onnx_call *call, const char *name, int64_t fallback, int64_t *out)
{
    const Onnx__AttributeProto *a;
    onnx_number number;
    bool found;

    MUC_TRY(onnx_attribute(call, name, &a));
    *out = fallback;
    if (!a)
        return MUC_OK;
    if (is_integer(a)) {
        *out = a->i;
        return MUC_OK;
    }
    MUC_TRY(tensor_number(call, a, &number, &found));
    *out = number.integer;
    return found ? MUC_OK : fail_type(call, name, "integer");
}

muc_status onnx_real(onnx_call *call, const char *name, double fallback, double *out)
{
    const Onnx__AttributeProto *a;
    onnx_number number;
    bool found;

    MUC_TRY(onnx_attribute(call, name, &a));
    *out = fallback;
    if (!a)
        return MUC_OK;
    if (is_real(a) || is_integer(a)) {
        *out = is_real(a) ? (double)a->f : (double)a->i;
    } else {
        MUC_TRY(tensor_number(call, a, &number, &found));
        if (!found)
            return fail_type(call, name, "number");
        *out = number.real;
    }
    return isfinite(*out) ? MUC_OK
                          : onnx_fail(call, MUC_UNSUPPORTED, "attribute '%s' is %g", name, *out);
}

muc_status onnx_string(onnx_call *call, const char *name, const char *fallback, const char **out)
{
    const Onnx__AttributeProto *a;

    MUC_TRY(onnx_attribute(call, name, &a));
    *out = fallback;
    if (!a)
        return MUC_OK;
    if (!a->has_s || (a->has_type && a->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING))
        return fail_type(call, name, "string");
    return muc_arena_string(call->im->ctx, &call->im->arena, (const char *)a->s.data, a->s.len,
                            out);
}

muc_status onnx_integers(onnx_call *call, const char *name, const int64_t **items, size_t *count)
{
    const Onnx__AttributeProto *a;

    MUC_TRY(onnx_attribute(call, name, &a));
    *items = NULL;
    *count = 0;
    if (!a)
        return MUC_OK;
    if (a->has_type && a->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS)
        return fail_type(call, name, "list of integers");
    *items = a->n_ints ? a->ints : (const int64_t[]){ 0 };
    *count = a->n_ints;
    if (a->n_ints == 0) /* present, and empty */
        return MUC_ARENA_NEW(call->im->ctx, &call->im->arena, 1, (int64_t **)(uintptr_t)items);
    return MUC_OK;
}

muc_status onnx_operand_integers(onnx_call *call, const char *name, uint32_t input,
                                 const int64_t **items, size_t *count)
{
    MUC_TRY(onnx_integers(call, name, items, count));
    return !*items && onnx_has_input(call, input) ? onnx_known_integers(call, input, items, count)
                                                  : MUC_OK;
}

/* ---- nodes ---- */

static muc_status step_name(onnx_call *call, const char **out)
{
    const char *name;

    MUC_TRY(muc_arena_format(call->im->ctx, &call->im->arena, &name, "%s/%u",
                             call->proto->n_output ? call->proto->output[0] : call->name,
                             ++call->steps));
    return muc_free_name(call->im->ctx, call->im->graph, &call->im->arena, name, '~', out);
}

muc_status onnx_step(onnx_call *call, muc_op op, const uint32_t *inputs, uint32_t input_count,
                     const muc_attributes *attributes, uint32_t *out)
{
    muc_new_node node = { .op = op,
                          .input_count = input_count,
                          .inputs = inputs,
                          .attribute_count = attributes ? attributes->count : 0,
                          .attributes = attributes ? attributes->items : NULL,
                          .output_count = 1 };

    MUC_TRY(step_name(call, &node.name));
    return muc_graph_add(call->im->ctx, call->im->graph, &node, out);
}

muc_status onnx_step2(onnx_call *call, muc_op op, uint32_t a, uint32_t b, uint32_t *out)
{
    const uint32_t inputs[] = { a, b };

    return onnx_step(call, op, inputs, 2, NULL, out);
}

muc_status onnx_bind(onnx_call *call, uint32_t i, uint32_t tensor)
{
    onnx_value *value;

    if (!onnx_has_output(call, i))
        return MUC_OK;
    MUC_TRY(onnx_scope_add(call->im, &call->frame->scope, call->proto->output[i], &value));
    value->tensor = tensor;
    return MUC_OK;
}

muc_status onnx_bind_numbers(onnx_call *call, uint32_t i, const onnx_numbers *numbers)
{
    onnx_value *value;

    if (!onnx_has_output(call, i))
        return MUC_OK;
    MUC_TRY(onnx_scope_add(call->im, &call->frame->scope, call->proto->output[i], &value));
    value->numbers = numbers;
    return MUC_OK;
}

muc_status onnx_emit(onnx_call *call, muc_op op, const uint32_t *inputs, uint32_t input_count,
                     const muc_attributes *attributes, uint32_t outputs)
{
    const char *names[MUC_GRAPH_MAX_OUTPUTS] = { NULL };
    uint32_t tensors[MUC_GRAPH_MAX_OUTPUTS];
    muc_new_node node = { .op = op,
                          .input_count = input_count,
                          .inputs = inputs,
                          .attribute_count = attributes ? attributes->count : 0,
                          .attributes = attributes ? attributes->items : NULL,
                          .output_count = outputs,
                          .output_names = names };

    if (outputs > MUC_GRAPH_MAX_OUTPUTS)
        return onnx_fail(call, MUC_UNSUPPORTED, "%u outputs, at most %d", outputs,
                         MUC_GRAPH_MAX_OUTPUTS);
    for (uint32_t i = 0; i < outputs; i++) {
        if (onnx_has_output(call, i))
            MUC_TRY(muc_free_name(call->im->ctx, call->im->graph, &call->im->arena,
                                  call->proto->output[i], '~', &names[i]));
        else
            MUC_TRY(step_name(call, &names[i]));
    }
    node.name = names[0];
    MUC_TRY(muc_graph_add(call->im->ctx, call->im->graph, &node, tensors));
    for (uint32_t i = 0; i < outputs; i++)
        MUC_TRY(onnx_bind(call, i, tensors[i]));
    return MUC_OK;
}

muc_status onnx_constant(onnx_call *call, const char *name, muc_dtype dtype, uint32_t rank,
                         const uint32_t *dims, const uint8_t *data, uint64_t bytes, uint32_t *out)
{
    muc_tensor tensor = { .name = name,
                          .kind = MUC_TENSOR_CONST,
                          .dtype = dtype,
                          .rank = rank,
                          .data = data,
                          .bytes = bytes };

    for (uint32_t i = 0; i < rank; i++)
        tensor.dims[i] = muc_expr_const(call->im->graph->pool, dims[i]);
    if (!name)
        MUC_TRY(step_name(call, &tensor.name));
    else
        MUC_TRY(muc_free_name(call->im->ctx, call->im->graph, &call->im->arena, name, '~',
                              &tensor.name));
    return muc_graph_add_tensor(call->im->ctx, call->im->graph, &tensor, out);
}

/* cut off, and within what an integer holds */
static int64_t whole_number(double value)
{
    const double most = 9223372036854774784.0; /* the greatest below 2^63 */

    if (isnan(value))
        return 0;
    return (int64_t)(value > most ? most : value < -most ? -most : value);
}

/* a constant [count], or of rank 0 a scalar */
static muc_status add_values(onnx_call *call, const char *name, muc_dtype dtype, uint32_t rank,
                             const double *values, uint32_t count, uint32_t *out)
{
    uint32_t bytes = muc_dtype_get(dtype)->block_bytes;
    uint8_t *data;

    MUC_TRY(MUC_ARENA_NEW(call->im->ctx, &call->im->network->arena, count * bytes, &data));
    for (uint32_t i = 0; i < count; i++) {
        const onnx_number number = { MUC_EXPR_NONE, whole_number(values[i]), values[i] };

        onnx_store_number(dtype, &number, data + i * bytes);
    }
    return onnx_constant(call, name, dtype, rank, &count, data, count * bytes, out);
}

muc_status onnx_scalar(onnx_call *call, muc_dtype dtype, double value, uint32_t *out)
{
    return add_values(call, NULL, dtype, 0, &value, 1, out);
}

muc_status onnx_list(onnx_call *call, const char *name, muc_dtype dtype, const double *values,
                     uint32_t count, uint32_t *out)
{
    MUC_TRY(muc_arena_format(call->im->ctx, &call->im->arena, &name, "%s/%s", call->name, name));
    return add_values(call, name, dtype, 1, values, count, out);
}

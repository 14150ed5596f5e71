/* tflite_import.c - reads a TFLite model as a graph: its tensors, and operators one after the
 * other.
 *
 * Operators on which no output depends are left out, and so are those that compute but a shape
 * which the file tells anyway: converters leave chains of them where the batch is open. The batch
 * and other open dimensions are what the file's example has.
 */
#include "formats/tflite/tflite_import.h"

#include <inttypes.h>
#include <string.h>

#include "formats/network.h"
#include "graph/scales.h"
#include "import/free_name.h"

enum { MAX_RANK = MUC_GRAPH_MAX_RANK };

/* which quantized integers go by way of real numbers */
typedef enum quantized { INTEGER, REAL_I16, REAL } quantized;

typedef struct row {
    const char *recipe; /* NULL: its importer is one of its own */
    muc_tflite_importer *import;
    int32_t version;
    muc_flat_table options;
    uint32_t least, most, shape;
    muc_op to;
    quantized quantized;
} row;

static const row rows[MUC_TFLITE_CODE_COUNT] = {
#define TFLITE_ROW(number, name, version, options, least, most, shape, to, import, reals) \
    [MUC_TFLITE_##name##_CODE] = { NULL,    muc_tflite_import_##import, \
                                   version, MUC_FLAT_##options, \
                                   least,   most, \
                                   shape,   MUC_OP_##to, \
                                   reals },
#define TFLITE_RECIPE(number, name, version, options, least, most, shape, to, recipe, reals) \
    [MUC_TFLITE_##name##_CODE] = { recipe,  muc_tflite_import_recipe, \
                                   version, MUC_FLAT_##options, \
                                   least,   most, \
                                   shape,   MUC_OP_##to, \
                                   reals },
#include "formats/tflite/tflite_ops.def"
};

muc_op muc_tflite_graph_op(uint32_t code)
{
    return rows[code].to;
}

muc_subject muc_tflite_subject(const muc_tflite_import *im)
{
    return muc_subject_of(im->ctx, im->model->file.name, im->op->table.at,
                          "operator %" PRIu32 " (%s) '%.200s'", im->index, im->op->name,
                          im->op->output_count ? im->model->tensors[im->op->outputs[0]].name : "");
}

/* ---- tensors ---- */

const muc_tflite_tensor *muc_tflite_in(const muc_tflite_import *im, uint32_t i)
{
    if (i >= im->op->input_count || im->op->inputs[i] == MUC_TFLITE_NONE)
        return NULL;
    return &im->model->tensors[im->op->inputs[i]];
}

const muc_tflite_tensor *muc_tflite_out(const muc_tflite_import *im, uint32_t i)
{
    return &im->model->tensors[im->op->outputs[i]];
}

/* integers of which a graph knows the real numbers; i32 is a bias, whose scale its inputs tell */
bool muc_tflite_is_quantized(const muc_tflite_tensor *tensor)
{
    return tensor->quantization.count > 0 &&
           (tensor->dtype == MUC_I8 || tensor->dtype == MUC_U8 || tensor->dtype == MUC_I16);
}

static muc_quantization quantization_of(const muc_tflite_tensor *tensor)
{
    const muc_tflite_quantization *q = &tensor->quantization;

    return (muc_quantization){ q->count, q->axis, q->scales, q->zero_points };
}

/* a name that the graph does not have yet */
static muc_status free_name(muc_tflite_import *im, const char *wanted, const char **out)
{
    return muc_free_name(im->ctx, im->graph, im->arena, wanted[0] ? wanted : "unnamed", '#', out);
}

static muc_status add_tensor(muc_tflite_import *im, const muc_tflite_tensor *source,
                             muc_tensor_kind kind, uint32_t *id)
{
    muc_quantization quantization = quantization_of(source);
    muc_tensor tensor = { .kind = kind, .dtype = source->dtype, .rank = source->rank };

    MUC_TRY(free_name(im, source->name, &tensor.name));
    for (uint32_t i = 0; i < source->rank; i++)
        tensor.dims[i] = muc_expr_const(im->graph->pool, source->dims[i]);
    MUC_TRY(muc_expr_status(im->graph->pool));
    if (kind == MUC_TENSOR_CONST) {
        tensor.data = source->data;
        tensor.bytes = source->bytes;
    }
    if (muc_tflite_is_quantized(source))
        tensor.quantization = &quantization;
    return muc_graph_add_tensor(im->ctx, im->graph, &tensor, id);
}

muc_status muc_tflite_constant(muc_tflite_import *im, const char *name, const muc_tensor *tensor,
                               uint32_t *id)
{
    muc_tensor named = *tensor;

    named.kind = MUC_TENSOR_CONST;
    MUC_TRY(free_name(im, name, &named.name));
    return muc_graph_add_tensor(im->ctx, im->graph, &named, id);
}

muc_status muc_tflite_input(muc_tflite_import *im, uint32_t i, uint32_t *id)
{
    const muc_tflite_tensor *source = muc_tflite_in(im, i);
    uint32_t *known;

    *id = MUC_NO_ID;
    if (!source)
        return MUC_OK;
    if (source->is_variable || source->is_resource)
        return muc_tflite_refuse(im, MUC_UNSUPPORTED, "input %" PRIu32 " is the %s '%s'", i,
                                 source->is_variable ? "variable" : "resource", source->name);
    known = &im->ids[im->op->inputs[i]];
    if (*known == MUC_NO_ID)
        MUC_TRY(add_tensor(im, source, MUC_TENSOR_CONST, known));
    *id = *known;
    return MUC_OK;
}

muc_status muc_tflite_new_state(muc_tflite_import *im, const muc_tflite_tensor *like,
                                const char *name, uint32_t *id)
{
    muc_tflite_tensor named = *like;

    named.name = name;
    if (muc_tflite_is_quantized(like) && like->dtype != MUC_I8 && like->quantization.zero_points[0])
        return muc_tflite_refuse(im, MUC_UNSUPPORTED,
                                 "the variable '%s' has the zero point %" PRId32, name,
                                 like->quantization.zero_points[0]);
    return add_tensor(im, &named, MUC_TENSOR_STATE, id);
}

muc_status muc_tflite_state(muc_tflite_import *im, uint32_t i, uint32_t *id)
{
    const muc_tflite_tensor *source = muc_tflite_in(im, i);

    if (!source)
        return muc_tflite_refuse(im, MUC_MALFORMED, "input %" PRIu32 ", a state, is absent", i);
    if (!source->is_variable)
        return muc_tflite_refuse(im, MUC_MALFORMED, "input %" PRIu32 ", '%s', is not a variable", i,
                                 source->name);
    *id = im->ids[im->op->inputs[i]];
    if (*id != MUC_NO_ID)
        return MUC_OK;
    MUC_TRY(muc_tflite_new_state(im, source, source->name, id));
    im->ids[im->op->inputs[i]] = *id;
    return MUC_OK;
}

bool muc_tflite_read_integers(const muc_tflite_tensor *source, uint32_t most, int64_t *items,
                              uint32_t *count)
{
    uint32_t width = muc_dtype_get(source->dtype)->block_bytes;

    *count = 0;
    if (!source->data || (source->dtype != MUC_I32 && source->dtype != MUC_I64))
        return false;
    *count = source->bytes / width > most ? most + 1 : (uint32_t)(source->bytes / width);
    for (uint32_t k = 0; *count <= most && k < *count; k++)
        items[k] = muc_dtype_integer(source->dtype, source->data + (size_t)k * width);
    return *count <= most;
}

muc_status muc_tflite_integers(const muc_tflite_import *im, uint32_t i, uint32_t most,
                               int64_t *items, uint32_t *count)
{
    const muc_tflite_tensor *source = muc_tflite_in(im, i);

    if (source && muc_tflite_read_integers(source, most, items, count))
        return MUC_OK;
    return source && *count > most
               ? muc_tflite_refuse(im, MUC_MALFORMED,
                                   "input %" PRIu32 " has more than %" PRIu32 " elements", i, most)
               : muc_tflite_refuse(im, MUC_UNSUPPORTED,
                                   "input %" PRIu32 " is not a constant of 32 or 64 bits", i);
}

muc_status muc_tflite_same_scale(const muc_tflite_import *im, const muc_tflite_tensor *a,
                                 const muc_tflite_tensor *b)
{
    const float tolerance = 1e-6f; /* TFLite's own */
    const muc_tflite_quantization *p = &a->quantization, *q = &b->quantization;

    if (muc_tflite_is_quantized(a) != muc_tflite_is_quantized(b))
        return muc_tflite_refuse(im, MUC_MALFORMED, "one of '%s' and '%s' is quantized", a->name,
                                 b->name);
    if (!muc_tflite_is_quantized(a))
        return MUC_OK;
    if (p->count == 1 && q->count == 1 && p->zero_points[0] == q->zero_points[0] &&
        p->scales[0] - q->scales[0] <= tolerance && q->scales[0] - p->scales[0] <= tolerance)
        return MUC_OK;
    return muc_tflite_refuse(im, MUC_UNSUPPORTED, "'%s' and '%s' have different scales", a->name,
                             b->name);
}

/* ---- nodes ---- */

muc_status muc_tflite_step(muc_tflite_import *im, muc_op op, const char *suffix,
                           const uint32_t *inputs, uint32_t count, const muc_attributes *a,
                           uint32_t *id)
{
    const muc_quantization output = quantization_of(muc_tflite_out(im, 0));
    const muc_quantization *quantization = NULL; /* what moves elements keeps that of its input */
    muc_new_node node = { .op = op,
                          .input_count = count,
                          .inputs = inputs,
                          .attribute_count = a ? a->count : 0,
                          .attributes = a ? a->items : NULL,
                          .output_count = 1,
                          .quantization = &quantization };

    if (op == MUC_OP_QUANTIZE)
        quantization = &output;
    else if (muc_op_has(op, MUC_OP_AVERAGES))
        quantization = im->graph->tensors[inputs[0]].quantization;
    return muc_tflite_add(im, &node, suffix, id);
}

muc_status muc_tflite_add(muc_tflite_import *im, muc_new_node *node, const char *suffix,
                          uint32_t *outputs)
{
    const muc_tflite_tensor *after =
        im->op->output_count ? muc_tflite_out(im, 0) : muc_tflite_in(im, 1);
    const char *name;

    MUC_TRY(muc_arena_format(im->ctx, im->arena, &name, "%s/%s", after->name, suffix));
    MUC_TRY(free_name(im, name, &node->name));
    return muc_graph_add(im->ctx, im->graph, node, outputs);
}

/* what was derived is what the file says */
static muc_status check_output(const muc_tflite_import *im, uint32_t i, uint32_t id)
{
    const muc_tflite_tensor *expected = muc_tflite_out(im, i);
    const muc_tensor *found = &im->graph->tensors[id];
    bool same = found->rank == expected->rank && found->dtype == expected->dtype;

    for (uint32_t d = 0; same && d < found->rank; d++)
        same = found->dims[d] == muc_expr_const(im->graph->pool, expected->dims[d]);
    if (!same) {
        muc_text text = { 0 };
        muc_status status;

        muc_tensor_print_shape(im->graph, found, &text);
        status = muc_tflite_refuse(
            im, MUC_MALFORMED, "computes %s, which is not what the file says of output %" PRIu32,
            text.data ? text.data : "?", i);
        muc_text_free(&text);
        return status;
    }
    return MUC_OK;
}

muc_status muc_tflite_last(muc_tflite_import *im, muc_op op, const uint32_t *inputs, uint32_t count,
                           const muc_attributes *a)
{
    const char *names[MUC_GRAPH_MAX_OUTPUTS];
    muc_quantization stored[MUC_GRAPH_MAX_OUTPUTS];
    const muc_quantization *quantization[MUC_GRAPH_MAX_OUTPUTS] = { NULL };
    uint32_t ids[MUC_GRAPH_MAX_OUTPUTS];
    muc_new_node node = { .op = op,
                          .input_count = count,
                          .inputs = inputs,
                          .attribute_count = a ? a->count : 0,
                          .attributes = a ? a->items : NULL,
                          .output_count = im->op->output_count,
                          .output_names = names,
                          .quantization = quantization };

    for (uint32_t i = 0; i < im->op->output_count; i++) {
        const muc_tflite_tensor *out = muc_tflite_out(im, i);

        MUC_TRY(free_name(im, out->name, &names[i]));
        stored[i] = quantization_of(out);
        quantization[i] = muc_tflite_is_quantized(out) ? &stored[i] : NULL;
    }
    node.name = names[0];
    MUC_TRY(muc_graph_add(im->ctx, im->graph, &node, ids));
    for (uint32_t i = 0; i < im->op->output_count; i++) {
        MUC_TRY(check_output(im, i, ids[i]));
        im->ids[im->op->outputs[i]] = ids[i];
    }
    return MUC_OK;
}

muc_status muc_tflite_import_recipe(muc_tflite_import *im)
{
    return muc_tflite_cook(im, "%s", rows[im->op->code].recipe);
}

/* ---- the graph ---- */

/* what an operator leaves for the next run is wanted, even where it has no output */
static bool leaves_something(uint32_t code)
{
    return code == MUC_TFLITE_ASSIGN_VARIABLE_CODE || code == MUC_TFLITE_CALL_ONCE_CODE;
}

/* operators whose outputs are wanted, from the last to the first */
static void mark_needed(const muc_tflite_model *model, bool *tensors, bool *operators)
{
    for (uint32_t i = 0; i < model->output_count; i++)
        tensors[model->outputs[i]] = true;
    for (uint32_t n = model->operator_count; n-- > 0;) {
        const muc_tflite_operator *op = &model->operators[n];
        uint32_t shape = op->code < MUC_TFLITE_CODE_COUNT ? rows[op->code].shape : UINT32_MAX;

        operators[n] = leaves_something(op->code);
        for (uint32_t i = 0; i < op->output_count; i++)
            operators[n] = operators[n] || tensors[op->outputs[i]];
        for (uint32_t i = 0; operators[n] && i < op->input_count; i++)
            if (op->inputs[i] != MUC_TFLITE_NONE && i != shape)
                tensors[op->inputs[i]] = true;
    }
}

static muc_status check_operands(const muc_tflite_import *im, const row *r);

muc_status muc_tflite_import_dilated(muc_tflite_import *im, const muc_tflite_phases *phases)
{
    muc_tflite_operator whole = *phases->conv;
    muc_tflite_import each = *im;
    int32_t inputs[3];

    if (whole.input_count > MUC_COUNT(inputs))
        return muc_tflite_refuse(im, MUC_MALFORMED, "the convolution has %" PRIu32 " inputs",
                                 whole.input_count);
    memcpy(inputs, whole.inputs, whole.input_count * sizeof(*inputs));
    inputs[0] = phases->spread->inputs[0];
    whole.inputs = inputs;
    whole.outputs = im->op->outputs;
    each.op = &whole;
    each.to = rows[whole.code].to;
    each.table = rows[whole.code].options;
    each.phases = phases;
    each.options =
        muc_flat_union_at(whole.table, MUC_FLAT_OPERATOR_options, rows[whole.code].options);
    MUC_TRY(check_operands(&each, &rows[whole.code]));
    return rows[whole.code].import(&each);
}

/* its options are of the expected kind, or absent, as where they hold nothing but defaults */
static muc_status find_options(muc_tflite_import *im, const row *r)
{
    unsigned found = muc_flat_option(im->op->table, MUC_FLAT_OPERATOR_options);
    unsigned expected = muc_flat_option_of(r->options);

    im->options = muc_flat_union_at(im->op->table, MUC_FLAT_OPERATOR_options, r->options);
    if (found != 0 && expected != 0 && found != expected)
        return muc_tflite_refuse(im, MUC_MALFORMED, "options of type %u, expected %u", found,
                                 expected);
    return MUC_OK;
}

static muc_status check_operands(const muc_tflite_import *im, const row *r)
{
    if (im->op->input_count < r->least || im->op->input_count > r->most)
        return muc_tflite_refuse(im, MUC_MALFORMED,
                                 "%" PRIu32 " inputs, expected %" PRIu32 " to %" PRIu32,
                                 im->op->input_count, r->least, r->most);
    if ((im->op->output_count == 0 && !leaves_something(im->op->code)) ||
        im->op->output_count > MUC_GRAPH_MAX_OUTPUTS)
        return muc_tflite_refuse(im, MUC_UNSUPPORTED, "%" PRIu32 " outputs, expected 1 to %d",
                                 im->op->output_count, MUC_GRAPH_MAX_OUTPUTS);
    for (uint32_t i = 0; i < r->least; i++)
        if (!muc_tflite_in(im, i))
            return muc_tflite_refuse(im, MUC_MALFORMED, "input %" PRIu32 " is absent", i);
    for (uint32_t i = 0; i < im->op->output_count; i++)
        if (muc_tflite_out(im, i)->quantization.count > 1)
            return muc_tflite_refuse(im, MUC_UNSUPPORTED, "an output has several scales");
    return MUC_OK;
}

/* ---- integers as the real numbers that they stand for ---- */

/* whether an operator is sigmoid or tanh of int16 that TFLite has a table for */
static bool has_table(const muc_tflite_import *im, muc_op op)
{
    const muc_tflite_tensor *x = muc_tflite_in(im, 0), *y = muc_tflite_out(im, 0);
    muc_table_scale scale;

    return x->dtype == MUC_I16 && y->dtype == MUC_I16 && x->quantization.count == 1 &&
           y->quantization.count == 1 && x->quantization.zero_points[0] == 0 &&
           y->quantization.zero_points[0] == 0 && x->quantization.scales[0] > 0 &&
           y->quantization.scales[0] > 0 &&
           muc_scale_of_table(op, x->quantization.scales[0], y->quantization.scales[0], &scale);
}

static bool goes_through_reals(const muc_tflite_import *im)
{
    quantized which = rows[im->op->code].quantized;

    if (which == REAL_I16 && has_table(im, rows[im->op->code].to))
        return false;
    for (uint32_t i = 0; which != INTEGER && i < im->op->input_count; i++) {
        const muc_tflite_tensor *x = muc_tflite_in(im, i);

        if (x && muc_tflite_is_quantized(x) && (which == REAL || x->dtype == MUC_I16))
            return true;
    }
    return false;
}

static void make_real(muc_tflite_tensor *tensor)
{
    tensor->dtype = MUC_F32;
    tensor->quantization.count = 0;
    tensor->data = NULL;
}

/* The operator on a model whose operands are real: dequantized ones, and results to quantize. */
static muc_status import_real(muc_tflite_import *im, const row *r)
{
    size_t count = im->model->tensor_count;
    muc_tflite_model model = *im->model;
    muc_tflite_import real = *im;
    muc_tflite_operator one = *im->op;
    muc_tflite_tensor *tensors;

    MUC_TRY(MUC_ARENA_NEW(im->ctx, im->arena, count, &tensors));
    MUC_TRY(MUC_ARENA_NEW(im->ctx, im->arena, count, &real.ids));
    memcpy(tensors, model.tensors, count * sizeof(*tensors));
    memcpy(real.ids, im->ids, count * sizeof(*real.ids));
    model.tensors = tensors;
    real.model = &model;
    for (uint32_t i = 0; i < one.input_count; i++) {
        int32_t at = one.inputs[i];

        if (at == MUC_TFLITE_NONE || !muc_tflite_is_quantized(&tensors[at]))
            continue;
        MUC_TRY(muc_tflite_input(im, i, &real.ids[at]));
        MUC_TRY(muc_tflite_make(im, &real.ids[at], 1, &real.ids[at], "real = dequantize 0"));
        make_real(&tensors[at]);
    }
    for (uint32_t i = 0; i < one.output_count; i++) {
        muc_tflite_tensor *out = &tensors[one.outputs[i]];

        if (!muc_tflite_is_quantized(out))
            continue;
        make_real(out);
        MUC_TRY(muc_arena_format(im->ctx, im->arena, &out->name, "%s/real", out->name));
    }
    MUC_TRY(r->import(&real));
    for (uint32_t i = 0; i < one.output_count; i++) {
        muc_attributes a = { .count = 0 };
        muc_tflite_import last = *im;
        muc_tflite_operator each = one;

        im->ids[one.outputs[i]] = real.ids[one.outputs[i]];
        if (!muc_tflite_is_quantized(muc_tflite_out(im, i)))
            continue;
        each.outputs = &one.outputs[i];
        each.output_count = 1;
        last.op = &each;
        muc_attributes_set(&a, MUC_KEY_TO, muc_tflite_out(im, i)->dtype);
        MUC_TRY(muc_tflite_last(&last, MUC_OP_QUANTIZE, &real.ids[one.outputs[i]], 1, &a));
    }
    return MUC_OK;
}

static muc_status import_operator(muc_tflite_import *im, uint32_t index)
{
    const row *r;

    im->op = &im->model->operators[index];
    im->index = index;
    r = &rows[im->op->code];
    if (im->op->version > r->version)
        return muc_tflite_refuse(im, MUC_UNSUPPORTED, "version %" PRId32 ", known up to %" PRId32,
                                 im->op->version, r->version);
    MUC_TRY(check_operands(im, r));
    MUC_TRY(find_options(im, r));
    im->to = r->to;
    im->table = r->options;
    return goes_through_reals(im) ? import_real(im, r) : r->import(im);
}

static muc_status import_operators(muc_tflite_import *im, const bool *operators)
{
    MUC_TRY(MUC_ARENA_NEW(im->ctx, im->arena, im->model->operator_count, &im->is_inner));
    muc_tflite_mark_inner(im);
    for (uint32_t i = 0; i < im->model->operator_count; i++)
        if (operators[i] && !im->is_inner[i])
            MUC_TRY(import_operator(im, i));
    return MUC_OK;
}

/* ---- the listing ---- */

/* operators that a result needs, and those that no row implements */
static muc_status list_operators(muc_tflite_import *im, muc_listing *listing, bool **out)
{
    const muc_tflite_model *model = im->model;
    bool *tensors, *needed;

    MUC_TRY(MUC_ARENA_NEW(im->ctx, im->arena, model->tensor_count, &tensors));
    MUC_TRY(MUC_ARENA_NEW(im->ctx, im->arena, model->operator_count, &needed));
    mark_needed(model, tensors, needed);
    for (uint32_t i = 0; i < model->operator_count; i++) {
        const muc_tflite_operator *op = &model->operators[i];

        MUC_TRY(muc_listing_add(im->ctx, im->arena, listing, op->name,
                                op->output_count ? model->tensors[op->outputs[0]].name : "",
                                !needed[i] || rows[op->code].import));
    }
    *out = needed;
    return MUC_OK;
}

static muc_status list_ports(const muc_tflite_import *im, muc_listing *listing,
                             const int32_t *tensors, uint32_t count, bool are_outputs)
{
    for (uint32_t i = 0; i < count; i++) {
        const muc_tflite_tensor *tensor = &im->model->tensors[tensors[i]];
        muc_text text = { 0 };

        muc_text_add(&text, "%s [", muc_dtype_get(tensor->dtype)->name);
        for (uint32_t k = 0; k < tensor->rank; k++)
            muc_text_add(&text, "%s%" PRIu32, k ? ", " : "", tensor->dims[k]);
        muc_text_add(&text, "]");
        MUC_TRY(
            muc_listing_add_port(im->ctx, im->arena, listing, tensor->name, &text, are_outputs));
    }
    return MUC_OK;
}

static muc_status import_model(muc_tflite_import *im, const bool *operators)
{
    const muc_tflite_model *model = im->model;

    MUC_TRY(MUC_ARENA_NEW(im->ctx, im->arena, model->tensor_count, &im->ids));
    MUC_TRY(MUC_ARENA_NEW(im->ctx, im->arena, model->tensor_count, &im->handles));
    MUC_TRY(MUC_ARENA_NEW(im->ctx, im->arena, MUC_TFLITE_MOST_VARIABLES, &im->variables));
    MUC_TRY(MUC_ARENA_NEW(im->ctx, im->arena, 1, &im->variable_count));
    for (uint32_t i = 0; i < model->tensor_count; i++)
        im->ids[i] = MUC_NO_ID;
    for (uint32_t i = 0; i < model->input_count; i++)
        MUC_TRY(add_tensor(im, &model->tensors[model->inputs[i]], MUC_TENSOR_INPUT,
                           &im->ids[model->inputs[i]]));
    MUC_TRY(import_operators(im, operators));
    for (uint32_t i = 0; i < model->output_count; i++) {
        uint32_t *id = &im->ids[model->outputs[i]];

        if (*id == MUC_NO_ID)
            MUC_TRY(add_tensor(im, &model->tensors[model->outputs[i]], MUC_TENSOR_CONST, id));
        MUC_TRY(muc_graph_add_output(im->ctx, im->graph, *id));
    }
    return MUC_OK;
}

bool muc_tflite_probe_network(const muc_source *source)
{
    return !source->is_folder && muc_flat_probe(source->bytes);
}

muc_status muc_tflite_read_network(muc_context *ctx, const muc_source *source,
                                   const muc_network_options *options, muc_network *network)
{
    muc_tflite_model model;
    muc_tflite_import im = { .ctx = ctx, .model = &model, .arena = &network->arena };

    muc_listing *listing = &network->listing;
    bool *operators;

    MUC_TRY(muc_network_refuse_shapes(ctx, source, options));
    MUC_TRY(muc_tflite_read(ctx, source->bytes, &network->arena, &model));
    MUC_TRY(list_operators(&im, listing, &operators));
    if (listing->lacks) {
        if (!options->may_list)
            return muc_listing_refuse(ctx, source->path, listing);
        MUC_TRY(list_ports(&im, listing, model.inputs, model.input_count, false));
        return list_ports(&im, listing, model.outputs, model.output_count, true);
    }
    MUC_TRY(muc_graph_new(ctx, source->path, &network->graph));
    im.graph = network->graph;
    return import_model(&im, operators);
}

/* tflite_import_state.c - operators that keep something from run to run: SVDF, LSTM and variables.
 */
#include <inttypes.h>
#include <string.h>

#include "formats/tflite/tflite_import.h"

muc_status muc_tflite_import_svdf(muc_tflite_import *im)
{
    enum { BIAS = 3, STATE = 4 };
    int64_t activation = muc_tflite_option(im, "activation");
    muc_attributes a = { .count = 0 };
    uint32_t inputs[5];

    if (muc_tflite_in(im, 0)->dtype == MUC_U8)
        return muc_tflite_refuse(im, MUC_UNSUPPORTED, "the input is u8, expected i8 or f32");
    for (uint32_t i = 0; i < 3; i++) {
        MUC_TRY(muc_tflite_input(im, i, &inputs[i]));
        MUC_TRY(muc_tflite_dequantize(im, i, &inputs[i]));
    }
    MUC_TRY(muc_tflite_state(im, STATE, &inputs[3]));
    MUC_TRY(muc_tflite_input(im, BIAS, &inputs[4]));
    muc_attributes_set(&a, MUC_KEY_RANK, muc_tflite_option(im, "rank"));
    if (!muc_tflite_is_quantized(muc_tflite_in(im, 0)))
        return muc_tflite_activated(im, im->to, inputs, 5, &a);
    /* TFLite's kernel of integers knows no activation: it is the output's range */
    if (activation != MUC_TFLITE_NO_ACTIVATION && activation != MUC_TFLITE_RELU)
        return muc_tflite_refuse(im, MUC_UNSUPPORTED, "activation %" PRId64 " of integers",
                                 activation);
    return muc_tflite_last(im, im->to, inputs, 5, &a);
}

/* ---- lstm ---- */

enum { INPUTS = 1, AGAIN = 5, PEEPHOLES = 9, BIASES = 12, PROJECTION = 16, HIDDEN = 18, CELL = 19 };
enum { NORMS = 20, ALL = 24, GATES = 4 };

/* where the file has gates i, o, f, c: it has i, f, c, o, peepholes of i, f, o */
static const uint32_t gate_at[GATES] = { 0, 3, 1, 2 }, peephole_at[] = { 0, 2, 1 };

/* An LSTM at work: x is [batch, steps, columns] or with the steps first. */
typedef struct lstm {
    muc_tflite_import *im;
    bool is_quantized, batch_first;
    uint32_t hidden, batch;
} lstm;

static muc_status expect_matrix(const lstm *s, uint32_t i, muc_dtype dtype, uint32_t columns)
{
    const muc_tflite_tensor *w = muc_tflite_in(s->im, i);

    if (!w)
        return muc_tflite_refuse(s->im, MUC_UNSUPPORTED,
                                 "input %" PRIu32 " is absent, which all gates have", i);
    if (w->rank != (columns ? 2 : 1) || w->dims[0] != s->hidden ||
        (columns && w->dims[1] != columns) ||
        (w->dtype != dtype && !(dtype == MUC_F32 && muc_tflite_is_quantized(w))))
        return muc_tflite_refuse(
            s->im, MUC_MALFORMED,
            "input %" PRIu32 ", '%s', is not %s for %" PRIu32 " cells of %" PRIu32 " columns", i,
            w->name, muc_dtype_get(dtype)->name, s->hidden, columns ? columns : 1);
    return MUC_OK;
}

/* rows of integers one after another, of a scale each matrix, [1, 4 hidden, columns] */
static muc_status join_bytes(const lstm *s, uint32_t first, uint32_t columns, const char *name,
                             uint32_t *id)
{
    muc_tflite_import *im = s->im;
    const uint32_t rows = GATES * s->hidden;
    const size_t part = (size_t)s->hidden * columns;
    muc_quantization q = { .count = rows, .axis = 1 };
    muc_tensor tensor = { .dtype = MUC_I8, .rank = 3, .bytes = GATES * part };
    int32_t *zeros;
    float *scales;
    uint8_t *data;

    MUC_TRY(muc_arena_new(im->ctx, im->arena, GATES * part + 1, 1, (void **)&data));
    MUC_TRY(MUC_ARENA_NEW(im->ctx, im->arena, rows, &scales));
    MUC_TRY(MUC_ARENA_NEW(im->ctx, im->arena, rows, &zeros));
    for (uint32_t gate = 0; gate < GATES; gate++) {
        const muc_tflite_tensor *w = muc_tflite_in(im, first + gate_at[gate]);

        if (!w->data || !muc_tflite_is_quantized(w) || w->quantization.count != 1 ||
            w->quantization.zero_points[0])
            return muc_tflite_refuse(im, MUC_UNSUPPORTED,
                                     "input %" PRIu32 " is not a constant of one scale and no zero "
                                     "point",
                                     first + gate_at[gate]);
        memcpy(data + gate * part, w->data, part);
        for (uint32_t i = 0; i < s->hidden; i++)
            scales[gate * s->hidden + i] = w->quantization.scales[0];
    }
    q.scales = scales;
    q.zero_points = zeros;
    tensor.quantization = &q;
    tensor.data = data;
    tensor.dims[0] = muc_expr_const(im->graph->pool, 1);
    tensor.dims[1] = muc_expr_const(im->graph->pool, rows);
    tensor.dims[2] = muc_expr_const(im->graph->pool, columns);
    return muc_tflite_constant(im, name, &tensor, id);
}

/* parts along dimension 0, and then as a direction's */
static muc_status join(const lstm *s, const uint32_t *parts, uint32_t count, const int64_t *dims,
                       uint32_t rank, const char *name, uint32_t *id)
{
    return muc_tflite_make(s->im, parts, count, id,
                           "%s = concat * axis=0; %s = reshape %s shape=%s", name, name, name,
                           MUC_LIST(dims, rank));
}

static muc_status join_weights(const lstm *s, uint32_t first, uint32_t columns, const char *name,
                               uint32_t *id)
{
    const int64_t dims[] = { 1, GATES * (int64_t)s->hidden, columns };
    uint32_t parts[GATES];

    for (uint32_t gate = 0; gate < GATES; gate++)
        MUC_TRY(expect_matrix(s, first + gate, s->is_quantized ? MUC_I8 : MUC_F32, columns));
    if (s->is_quantized)
        return join_bytes(s, first, columns, name, id);
    for (uint32_t gate = 0; gate < GATES; gate++) {
        MUC_TRY(muc_tflite_input(s->im, first + gate_at[gate], &parts[gate]));
        MUC_TRY(muc_tflite_dequantize(s->im, first + gate_at[gate], &parts[gate]));
    }
    return join(s, parts, GATES, dims, 3, name, id);
}

/* [1, 8 hidden]: those of the file belong to x */
static muc_status join_biases(const lstm *s, uint32_t *id)
{
    const muc_dtype dtype = s->is_quantized ? MUC_I32 : MUC_F32;
    const int64_t dims[] = { 1, 2 * GATES * (int64_t)s->hidden };
    uint32_t parts[GATES + 1];

    for (uint32_t gate = 0; gate < GATES; gate++) {
        MUC_TRY(expect_matrix(s, BIASES + gate, dtype, 0));
        MUC_TRY(muc_tflite_input(s->im, BIASES + gate_at[gate], &parts[gate]));
    }
    MUC_TRY(muc_tflite_make(s->im, NULL, 0, &parts[GATES],
                            "no_bias = expand no_bias{0}:%s shape=%" PRId64,
                            muc_dtype_get(dtype)->name, GATES * (int64_t)s->hidden));
    return join(s, parts, GATES + 1, dims, 2, "biases", id);
}

static muc_status join_peepholes(const lstm *s, uint32_t *id)
{
    const int64_t dims[] = { 1, 3 * (int64_t)s->hidden };
    uint32_t parts[3];

    *id = MUC_NO_ID;
    if (!muc_tflite_in(s->im, PEEPHOLES) && !muc_tflite_in(s->im, PEEPHOLES + 1) &&
        !muc_tflite_in(s->im, PEEPHOLES + 2))
        return MUC_OK;
    if (s->is_quantized)
        return muc_tflite_refuse(s->im, MUC_UNSUPPORTED, "peepholes of integers are not read");
    for (uint32_t i = 0; i < 3; i++) {
        MUC_TRY(expect_matrix(s, PEEPHOLES + peephole_at[i], MUC_F32, 0));
        MUC_TRY(muc_tflite_input(s->im, PEEPHOLES + peephole_at[i], &parts[i]));
        MUC_TRY(muc_tflite_dequantize(s->im, PEEPHOLES + peephole_at[i], &parts[i]));
    }
    return join(s, parts, 3, dims, 2, "peepholes", id);
}

/* what a state holds, as one direction's */
static muc_status read_state(const lstm *s, uint32_t i, const char *name, uint32_t *state,
                             uint32_t *id)
{
    const int64_t dims[] = { s->batch_first ? s->batch : 1, s->batch_first ? 1 : s->batch,
                             s->hidden };
    const muc_tflite_tensor *t = muc_tflite_in(s->im, i);
    uint64_t elements = 1;

    MUC_TRY(muc_tflite_state(s->im, i, state));
    for (uint32_t d = 0; d < t->rank; d++)
        elements *= t->dims[d];
    if (elements != (uint64_t)s->batch * s->hidden ||
        t->dtype != (!s->is_quantized ? MUC_F32
                     : i == CELL      ? MUC_I16
                                      : MUC_I8) ||
        muc_tflite_is_quantized(t) != s->is_quantized)
        return muc_tflite_refuse(s->im, MUC_MALFORMED,
                                 "input %" PRIu32 ", '%s', is not a state of %" PRIu32
                                 " rows of %" PRIu32 " cells",
                                 i, t->name, s->batch, s->hidden);
    return muc_tflite_make(s->im, state, 1, id, "%s = read 0; %s = reshape %s shape=%s", name, name,
                           name, MUC_LIST(dims, 3));
}

static muc_status write_state(const lstm *s, const char *name, uint32_t state, uint32_t value)
{
    const uint32_t ids[] = { state, value };

    return muc_tflite_make(s->im, ids, 2, &value, "%s = reshape 1 shape=in0; %s = assign 0 %s",
                           name, name, name);
}

static muc_quantization one_scale(const muc_tflite_tensor *t)
{
    return (muc_quantization){ 1, 0, t->quantization.scales, t->quantization.zero_points };
}

/* the layer's node; outputs: y, and both states */
static muc_status add_layer(const lstm *s, const uint32_t inputs[8], uint32_t outputs[3])
{
    muc_tflite_import *im = s->im;
    double clip = (double)muc_flat_real(im->options, MUC_FLAT_SEQUENCE_LSTM_OPTIONS_cell_clip);
    const muc_tflite_tensor *h = muc_tflite_in(im, HIDDEN), *c = muc_tflite_in(im, CELL);
    const muc_quantization *quantization[3] = { NULL };
    muc_quantization of_h, of_c;
    muc_attributes a = { .count = 0 };
    muc_new_node node = { .op = im->to,
                          .inputs = inputs,
                          .input_count = inputs[7] == MUC_NO_ID ? 7 : 8,
                          .output_count = 3,
                          .quantization = quantization };

    if (s->is_quantized) {
        of_h = one_scale(h);
        of_c = one_scale(c);
        quantization[0] = quantization[1] = &of_h;
        quantization[2] = &of_c;
    }
    if (s->batch_first)
        muc_attributes_set(&a, MUC_KEY_BATCH_FIRST, 1);
    if (clip > 0)
        muc_attributes_set_real(&a, MUC_KEY_CELL_CLIP, clip);
    node.attributes = a.items;
    node.attribute_count = a.count;
    return muc_tflite_add(im, &node, "lstm", outputs);
}

static muc_status check_lstm(const muc_tflite_import *im, lstm *s)
{
    const muc_tflite_tensor *x = muc_tflite_in(im, 0), *h = muc_tflite_in(im, HIDDEN);
    const muc_tflite_tensor *w = muc_tflite_in(im, AGAIN + 1);
    bool first = muc_tflite_option(im, "time_major") == 0;

    if (x->rank != 3 || x->dims[2] == 0)
        return muc_tflite_refuse(im, MUC_MALFORMED, "the input is not [batch, steps, columns]");
    for (uint32_t i = PROJECTION; i < ALL; i++)
        if (muc_tflite_in(im, i) && i != HIDDEN && i != CELL)
            return muc_tflite_refuse(im, MUC_UNSUPPORTED, "%s, input %" PRIu32,
                                     i < NORMS ? "a projection" : "a layer norm", i);
    if (muc_tflite_option(im, "activation") != MUC_TFLITE_TANH)
        return muc_tflite_refuse(im, MUC_UNSUPPORTED, "activation %" PRId64 ", not tanh",
                                 muc_tflite_option(im, "activation"));
    if (muc_tflite_option(im, "diagonal"))
        return muc_tflite_refuse(im, MUC_UNSUPPORTED, "diagonal recurrent weights are not read");
    if (!w || w->rank != 2 || w->dims[0] == 0 || w->dims[0] > 1 << 20)
        return muc_tflite_refuse(im, MUC_MALFORMED, "input %d is not a matrix of cells", AGAIN + 1);
    s->is_quantized = muc_tflite_is_quantized(x);
    if (s->is_quantized ? x->dtype != MUC_I8 : x->dtype != MUC_F32)
        return muc_tflite_refuse(im, MUC_UNSUPPORTED, "an input of %s",
                                 muc_dtype_get(x->dtype)->name);
    s->batch_first = first;
    s->hidden = w->dims[0];
    s->batch = x->dims[first ? 0 : 1];
    return h && s->is_quantized ? muc_tflite_same_scale(im, h, muc_tflite_out(im, 0)) : MUC_OK;
}

muc_status muc_tflite_import_lstm(muc_tflite_import *im)
{
    const muc_tflite_tensor *x = muc_tflite_in(im, 0);
    lstm s = { .im = im };
    uint32_t inputs[8], outputs[3], hidden, cell;

    MUC_TRY(check_lstm(im, &s));
    inputs[4] = MUC_NO_ID;
    MUC_TRY(muc_tflite_input(im, 0, &inputs[0]));
    MUC_TRY(join_weights(&s, INPUTS, x->dims[2], "weights", &inputs[1]));
    MUC_TRY(join_weights(&s, AGAIN, s.hidden, "recurrent", &inputs[2]));
    MUC_TRY(join_biases(&s, &inputs[3]));
    MUC_TRY(read_state(&s, HIDDEN, "hidden", &hidden, &inputs[5]));
    MUC_TRY(read_state(&s, CELL, "cell", &cell, &inputs[6]));
    MUC_TRY(join_peepholes(&s, &inputs[7]));
    MUC_TRY(add_layer(&s, inputs, outputs));
    MUC_TRY(write_state(&s, "hidden", hidden, outputs[1]));
    MUC_TRY(write_state(&s, "cell", cell, outputs[2]));
    return muc_tflite_make(im, outputs, 1, NULL, "reshape 0 shape=out");
}

/* ---- resource variables ---- */

static muc_status find_variable(muc_tflite_import *im, const muc_tflite_model *model,
                                const muc_tflite_operator *op, uint32_t *index)
{
    muc_flat options =
        muc_flat_union_at(op->table, MUC_FLAT_OPERATOR_options, MUC_FLAT_VAR_HANDLE_OPTIONS);
    muc_tflite_variable *v;
    const char *container, *name;

    MUC_TRY(muc_tflite_text(im->ctx, model, options, MUC_FLAT_VAR_HANDLE_OPTIONS_container,
                            im->arena, &container));
    MUC_TRY(muc_tflite_text(im->ctx, model, options, MUC_FLAT_VAR_HANDLE_OPTIONS_shared_name,
                            im->arena, &name));
    for (*index = 0; *index < *im->variable_count; (*index)++)
        if (strcmp(im->variables[*index].name, name) == 0 &&
            strcmp(im->variables[*index].container, container) == 0)
            return MUC_OK;
    if (*index == MUC_TFLITE_MOST_VARIABLES)
        return muc_tflite_refuse(im, MUC_UNSUPPORTED, "more than %d variables",
                                 MUC_TFLITE_MOST_VARIABLES);
    v = &im->variables[(*im->variable_count)++];
    *v = (muc_tflite_variable){ .container = container, .name = name, .id = MUC_NO_ID };
    return MUC_OK;
}

muc_status muc_tflite_import_var_handle(muc_tflite_import *im)
{
    uint32_t index;

    if (!muc_tflite_out(im, 0)->is_resource)
        return muc_tflite_refuse(im, MUC_MALFORMED, "its output is not a resource");
    MUC_TRY(find_variable(im, im->model, im->op, &index));
    im->handles[im->op->outputs[0]] = 1 + index;
    return MUC_OK;
}

static bool is_like(const muc_tflite_tensor *a, const muc_tflite_tensor *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return true;
}

/* the state of the variable that input 0 is the handle of, which holds what `like` is */
static muc_status variable_of(muc_tflite_import *im, const muc_tflite_tensor *like, uint32_t *id)
{
    const muc_tflite_tensor *handle = muc_tflite_in(im, 0);
    muc_tflite_variable *v;

    if (!handle->is_resource || !im->handles[im->op->inputs[0]])
        return muc_tflite_refuse(im, MUC_MALFORMED, "input 0, '%s', is not a handle of a variable",
                                 handle->name);
    v = &im->variables[im->handles[im->op->inputs[0]] - 1];
    if (!v->like) {
        v->like = like;
        MUC_TRY(muc_tflite_new_state(im, like, v->name[0] ? v->name : "variable", &v->id));
    }
    if (!is_like(v->like, like))
        return muc_tflite_refuse(im, MUC_UNSUPPORTED,
                                 "the variable '%s' has two types or shapes, of '%s' and '%s'",
                                 v->name, v->like->name, like->name);
    *id = v->id;
    return muc_tflite_same_scale(im, v->like, like);
}

muc_status muc_tflite_import_read_variable(muc_tflite_import *im)
{
    uint32_t state;

    MUC_TRY(variable_of(im, muc_tflite_out(im, 0), &state));
    return muc_tflite_last(im, im->to, &state, 1, NULL);
}

muc_status muc_tflite_import_assign_variable(muc_tflite_import *im)
{
    muc_new_node node = { .op = im->to, .input_count = 2, .output_count = 1 };
    uint32_t inputs[2], outputs[1];

    MUC_TRY(variable_of(im, muc_tflite_in(im, 1), &inputs[0]));
    MUC_TRY(muc_tflite_input(im, 1, &inputs[1]));
    node.inputs = inputs;
    return muc_tflite_add(im, &node, "assigned", outputs);
}

/* what a state is before the first run */
static bool is_beginning(const muc_tflite_tensor *t)
{
    int byte =
        muc_tflite_is_quantized(t) && t->dtype == MUC_I8 ? t->quantization.zero_points[0] : 0;

    for (uint64_t i = 0; i < t->bytes; i++)
        if (t->data[i] != (uint8_t)byte)
            return false;
    return t->data != NULL;
}

/* CALL_ONCE runs a subgraph before the first run: one that assigns to variables what they are then
 * in any case */
muc_status muc_tflite_import_call_once(muc_tflite_import *im)
{
    muc_tflite_model once;

    for (uint32_t i = 0; i < im->index; i++)
        if (im->model->operators[i].code == im->op->code)
            return muc_tflite_refuse(im, MUC_UNSUPPORTED, "it is the second of the model");
    MUC_TRY(muc_tflite_read_subgraph(im->ctx, im->model, muc_tflite_option(im, "subgraph"),
                                     im->arena, &once));
    for (uint32_t i = 0; i < once.operator_count; i++) {
        const muc_tflite_operator *op = &once.operators[i];
        const char *name = op->name;
        bool assigns = strcmp(name, "ASSIGN_VARIABLE") == 0 && op->input_count == 2 &&
                       op->inputs[1] != MUC_TFLITE_NONE;

        if (strcmp(name, "VAR_HANDLE") != 0 && !assigns)
            return muc_tflite_refuse(im, MUC_UNSUPPORTED, "%s, which runs once before the network",
                                     name);
        if (assigns && !is_beginning(&once.tensors[op->inputs[1]]))
            return muc_tflite_refuse(im, MUC_UNSUPPORTED,
                                     "a variable that begins as '%s', which is not all zero",
                                     once.tensors[op->inputs[1]].name);
    }
    return MUC_OK;
}

/* int8_recurrent.c - lstm, gru and rnn of integers: weights of a scale a gate, states of 16 bits.
 */
#include <stdlib.h>

#include "passes/int8/int8_pass.h"

enum { MOST_GATES = 4 };

static const float gru_unit = 1 / 32768.0f;

/* ---- which ---- */

static bool has_state(const pass *p, uint32_t id)
{
    return id == MUC_NO_ID || is_real(p, id);
}

/* the greatest magnitude that an old tensor has, or may be seen to have; 0 of an absent one */
static float reach_of(const pass *p, uint32_t id)
{
    if (id == MUC_NO_ID)
        return 0;
    if (is_constant(p, id))
        return muc_int8_reach(p, id, 0, elements_of(p, id));
    return p->ranges->tensors[id].counts
               ? fmaxf(-p->ranges->tensors[id].least, p->ranges->tensors[id].most)
               : 0;
}

bool muc_int8_takes_recurrent(const pass *p, const muc_node *node)
{
    const muc_tensor *x = old(p, node->inputs[0]);
    bool first = muc_node_integer_or(node, MUC_KEY_BATCH_FIRST, 0) == 1;
    uint32_t bias = muc_node_input(node, 3), peepholes = muc_node_input(node, MUC_INPUT_PEEPHOLES),
             batch;

    return is_real(p, node->inputs[0]) && !is_constant(p, node->inputs[0]) &&
           is_constant(p, node->inputs[1]) && is_constant(p, node->inputs[2]) &&
           (bias == MUC_NO_ID || is_constant(p, bias)) &&
           has_state(p, muc_node_input(node, MUC_INPUT_STATE)) &&
           has_state(p, muc_node_input(node, MUC_INPUT_CELL)) &&
           (peepholes == MUC_NO_ID || is_constant(p, peepholes)) &&
           muc_rewrite_dim(&p->r.old, x, first ? 0 : 1, &batch) &&
           (node->op != MUC_OP_GRU || reach_of(p, muc_node_input(node, MUC_INPUT_STATE)) <= 1);
}

/* ---- weights ---- */

/* One matrix [directions, gates * hidden, columns] and its scales. */
typedef struct matrix {
    uint32_t id, rows, columns; /* rows of a direction */
    uint64_t elements;
    float *scales;  /* [rows] */
    int32_t *zeros; /* [rows] */
} matrix;

static muc_status scale_gates(pass *p, uint32_t gates, matrix *m)
{
    const uint64_t gate_elements = (uint64_t)m->rows / gates * m->columns;
    float most[MOST_GATES] = { 0 };

    for (uint64_t i = 0; i < m->elements; i += gate_elements) {
        float *of = &most[i / gate_elements % gates];

        *of = fmaxf(*of, muc_int8_reach(p, m->id, i, gate_elements));
    }
    for (uint32_t i = 0; i < m->rows; i++) {
        uint32_t gate = i / (m->rows / gates);
        float scale = most[gate] / MOST;

        if (!isfinite(scale))
            return muc_fail(p->r.ctx, MUC_MALFORMED, old(p, m->id)->name, MUC_NO_OFFSET,
                            "gate %u is not finite", gate);
        m->scales[i] = scale > 1e-30f ? scale : 1;
    }
    return MUC_OK;
}

static muc_status prepare_matrix(pass *p, const muc_node *node, uint32_t input, muc_arena *arena,
                                 matrix *m)
{
    const muc_tensor *w = old(p, node->inputs[input]);
    uint32_t gates = muc_op_gates(node->op)->count;

    *m = (matrix){ .id = node->inputs[input], .elements = elements_of(p, node->inputs[input]) };
    (void)muc_rewrite_dim(&p->r.old, w, 1, &m->rows);
    (void)muc_rewrite_dim(&p->r.old, w, 2, &m->columns);
    MUC_TRY(MUC_ARENA_NEW(p->r.ctx, arena, m->rows, &m->scales));
    MUC_TRY(MUC_ARENA_NEW(p->r.ctx, arena, m->rows, &m->zeros));
    return scale_gates(p, gates, m);
}

static muc_status add_matrix(pass *p, const matrix *m, uint32_t *out)
{
    muc_quantization q = { m->rows, 1, m->scales, m->zeros };

    p->result->weights += m->elements;
    return muc_int8_constant(p, m->id, MUC_I8, &q, m->columns, "int8", out);
}

/* biases [directions, 2 rows] of both products, each in the units of its sums */
static muc_status add_biases(pass *p, uint32_t id, const matrix m[2], const float by[2],
                             muc_arena *arena, uint32_t *out)
{
    muc_tensor like = *old(p, id);
    uint64_t count = elements_of(p, id);
    const char *name;
    int32_t *data;

    MUC_TRY(MUC_ARENA_NEW(p->r.ctx, arena, (size_t)count, &data));
    for (uint64_t i = 0; i < count; i++) {
        unsigned kind = i / m[0].rows % 2;
        double b = (double)element(p, id, i) / (double)(by[kind] * m[kind].scales[i % m[0].rows]);

        if (!isfinite(element(p, id, i)))
            return muc_fail(p->r.ctx, MUC_MALFORMED, like.name, MUC_NO_OFFSET, "not finite");
        data[i] = (int32_t)fmax(INT32_MIN, fmin(INT32_MAX, round(b)));
    }
    like.dtype = MUC_I32;
    MUC_TRY(muc_int8_suffixed(p, id, "int32", &name));
    return muc_rewrite_constant(&p->r, name, &like, data, count * sizeof(*data), out);
}

/* ---- states ---- */

/* the scale of a cell: a power of two that reaches 16, or what is seen at the ends */
static float cell_scale(const pass *p, const muc_node *node)
{
    float most = reach_of(p, muc_node_input(node, MUC_INPUT_CELL)), scale = 0x1p-11f;

    if (node->output_count > 2)
        most = fmaxf(most, reach_of(p, node->outputs[2]));
    while (scale < 1 && scale * INT16_MAX < most)
        scale *= 2;
    return scale;
}

/* peepholes of 16 bits and one scale */
static muc_status add_peepholes(pass *p, uint32_t id, uint32_t *out)
{
    float scale = muc_int8_reach(p, id, 0, elements_of(p, id)) / INT16_MAX;
    int32_t zero = 0;

    if (!isfinite(scale))
        return muc_fail(p->r.ctx, MUC_MALFORMED, old(p, id)->name, MUC_NO_OFFSET, "not finite");
    scale = scale > 1e-30f ? scale : 1;
    return muc_int8_constant(p, id, MUC_I16, &(muc_quantization){ 1, 0, &scale, &zero }, 1, "int16",
                             out);
}

/* what a state begins with: a constant, or zeros, or a tensor's integers */
static muc_status need_state(pass *p, const muc_node *node, uint32_t id, muc_dtype dtype,
                             const muc_quantization *q, uint32_t *out)
{
    const muc_attribute to = { .key = MUC_KEY_TO, .value.integer = dtype };
    const muc_tensor *x = old(p, node->inputs[0]);
    bool first = muc_node_integer_or(node, MUC_KEY_BATCH_FIRST, 0) == 1, is_byte = dtype == MUC_I8;
    muc_tensor like = { .dtype = dtype, .rank = 3, .quantization = q };
    uint64_t bytes = is_byte ? 1 : 2;
    const char *suffix = is_byte ? "state8" : "state16", *name;
    muc_status status;
    uint8_t *data;

    if (is_byte && id != MUC_NO_ID && !is_constant(p, id))
        return muc_int8_need(p, id, out);
    if (id != MUC_NO_ID && is_constant(p, id))
        return muc_int8_constant(p, id, dtype, q, 1, suffix, out);
    MUC_TRY(muc_int8_suffixed(p, id == MUC_NO_ID ? node->outputs[0] : id, suffix, &name));
    if (id != MUC_NO_ID) {
        uint32_t real;

        MUC_TRY(muc_int8_need_float(p, id, &real));
        return muc_rewrite_add(&p->r, MUC_OP_QUANTIZE, name, &real, 1, &to, 1, q, out);
    }
    like.dims[first ? 1 : 0] = old(p, node->inputs[1])->dims[0];
    like.dims[first ? 0 : 1] = x->dims[first ? 0 : 1];
    like.dims[2] = old(p, node->inputs[2])->dims[2];
    for (uint32_t i = 0; i < 3; i++)
        bytes *= muc_expr_get(p->r.graph->pool, like.dims[i])->immediate;
    MUC_TRY(MUC_NEW_ARRAY(p->r.ctx, x->name, (size_t)bytes, &data));
    memset(data, *q->zero_points, (size_t)bytes); /* of 16 bits it is 0 */
    status = muc_rewrite_constant(&p->r, name, &like, data, bytes, out);
    free(data);
    return status;
}

/* The forms of an old tensor that others read, from its integers of 16 bits. */
static muc_status give_wide(pass *p, uint32_t tensor, uint32_t wide)
{
    muc_quantization q = muc_int8_quantization_of(p, tensor);
    bool real = p->r.is_output[tensor], bytes = false;
    const char *name;

    for (uint32_t n = 0; n < p->r.old.node_count; n++)
        for (uint32_t i = 0; p->r.needed[n] && i < p->r.old.nodes[n].input_count; i++)
            if (p->r.old.nodes[n].inputs[i] == tensor)
                *(p->forms[n] == FLOAT || p->forms[n] == RECURRENT ? &real : &bytes) = true;
    if (real)
        MUC_TRY(muc_int8_give_float(p, tensor, wide));
    if (!bytes)
        return MUC_OK;
    MUC_TRY(muc_int8_name(p, tensor, &name));
    return muc_rewrite_add_named(&p->r, MUC_OP_QUANTIZE, name, &wide, 1, &muc_int8_to, 1, &q,
                                 &p->made[tensor]);
}

/* ---- the node ---- */

static muc_status add_layer(pass *p, const muc_node *node, const uint32_t *inputs,
                            const muc_quantization *state)
{
    bool is_gru = node->op == MUC_OP_GRU,
         peeps = muc_node_input(node, MUC_INPUT_PEEPHOLES) != MUC_NO_ID;
    muc_quantization q = muc_int8_quantization_of(p, node->outputs[0]);
    const muc_quantization *quantization[] = { &q, is_gru ? state : &q, state };
    static const char *const suffixes[] = { "", "h", "c" };
    uint32_t outputs[3], count = muc_op_get(node->op)->most_outputs;
    const char *names[3];
    muc_new_node added = { .op = node->op,
                           .inputs = inputs,
                           .input_count =
                               peeps ? MUC_INPUT_PEEPHOLES + 1 : MUC_INPUT_STATE + count - 1,
                           .attribute_count = node->attribute_count,
                           .attributes = node->attributes,
                           .output_count = count,
                           .output_names = names,
                           .quantization = quantization };

    MUC_TRY(muc_int8_name(p, node->outputs[0], &names[0]));
    for (uint32_t i = 1; i < count; i++)
        if (i < node->output_count && quantization[i] == &q)
            MUC_TRY(muc_int8_name(p, node->outputs[i], &names[i]));
        else
            MUC_TRY(muc_int8_suffixed(p, node->outputs[0], suffixes[i], &names[i]));
    added.name = names[0];
    MUC_TRY(muc_graph_add(p->r.ctx, p->r.graph, &added, outputs));
    for (uint32_t i = 0; i < node->output_count; i++)
        if (quantization[i] == &q)
            p->made[node->outputs[i]] = outputs[i];
        else
            MUC_TRY(give_wide(p, node->outputs[i], outputs[i]));
    return MUC_OK;
}

/* whether the factors of sums, of x's scale and y's, fit */
static bool fits(const matrix m[2], const float by[2])
{
    for (unsigned kind = 0; kind < 2; kind++)
        for (uint32_t i = 0; i < m[kind].rows; i++)
            if (!(by[kind] * m[kind].scales[i] < 0x1p17f))
                return false;
    return by[1] > 0x1p-28f;
}

static muc_status emit(pass *p, const muc_node *node, muc_arena *arena)
{
    bool is_gru = node->op == MUC_OP_GRU;
    muc_quantization h = muc_int8_quantization_of(p, node->outputs[0]);
    const float by[2] = { *muc_int8_quantization_of(p, node->inputs[0]).scales, *h.scales };
    float unit = is_gru ? gru_unit : cell_scale(p, node);
    int32_t zero = 0;
    muc_quantization state = { 1, 0, &unit, &zero };
    uint32_t inputs[MUC_INPUT_PEEPHOLES + 1], bias = muc_node_input(node, 3);
    matrix m[2];

    for (uint32_t i = 0; i < 2; i++)
        MUC_TRY(prepare_matrix(p, node, 1 + i, arena, &m[i]));
    if (!fits(m, by)) {
        p->forms[node - p->r.old.nodes] = FLOAT;
        return MUC_OK;
    }
    MUC_TRY(muc_int8_need(p, node->inputs[0], &inputs[0]));
    for (uint32_t i = 0; i < 2; i++)
        MUC_TRY(add_matrix(p, &m[i], &inputs[1 + i]));
    inputs[3] = MUC_NO_ID;
    if (bias != MUC_NO_ID)
        MUC_TRY(add_biases(p, bias, m, by, arena, &inputs[3]));
    MUC_TRY(muc_rewrite_tensor(&p->r, muc_node_input(node, 4), &inputs[4]));
    MUC_TRY(need_state(p, node, muc_node_input(node, MUC_INPUT_STATE), is_gru ? MUC_I16 : MUC_I8,
                       is_gru ? &state : &h, &inputs[MUC_INPUT_STATE]));
    if (muc_op_gates(node->op)->wide == MUC_INPUT_CELL)
        MUC_TRY(need_state(p, node, muc_node_input(node, MUC_INPUT_CELL), MUC_I16, &state,
                           &inputs[MUC_INPUT_CELL]));
    if (muc_node_input(node, MUC_INPUT_PEEPHOLES) != MUC_NO_ID)
        MUC_TRY(add_peepholes(p, node->inputs[MUC_INPUT_PEEPHOLES], &inputs[MUC_INPUT_PEEPHOLES]));
    return add_layer(p, node, inputs, &state);
}

muc_status muc_int8_emit_recurrent(pass *p, const muc_node *node)
{
    muc_arena arena = { 0 };
    muc_status status = emit(p, node, &arena);

    muc_arena_free(&arena);
    return status;
}

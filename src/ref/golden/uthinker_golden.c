/* uthinker_golden.c - the operators in the machine's arithmetic: SPEC.md sections 3 and 4, line by
 * line. */
#include "ref/golden/golden.h"

#include <math.h>

#include "base/half.h"
#include "base/large.h"
#include "base/threads.h"

float muc_ref_machine_exp(float x)
{
    static const uint32_t c[] = { 0x3f800000, 0x3f317218, 0x3e75fdf0, 0x3d635847,
                                  0x3c1d955b, 0x3aaec3ff, 0x39218489 };
    float t, n, f, p;

    if (!(x >= -80))
        return 0;
    t = x * muc_f32_of_bits(0x3fb8aa3b);
    n = floorf(t + 0.5f);
    f = t - n;
    p = muc_f32_of_bits(c[6]);
    for (int i = 5; i >= 0; i--) {
        p = p * f;
        p = p + muc_f32_of_bits(c[i]);
    }
    return p * muc_f32_of_bits((uint32_t)((int)n + 127) << 23);
}

static muc_golden_node *kept(const muc_ref_call *call)
{
    return &call->golden->nodes[call->node - call->graph->nodes];
}

muc_status muc_kernel_golden_embed(const muc_ref_call *call)
{
    const uint32_t id = call->node->inputs[1];
    const muc_golden_matrix *table = &call->golden->weights[id];
    size_t width = call->output->columns, pieces = muc_golden_blocks(width), row;
    muc_golden_block *band;

    MUC_TRY(muc_golden_reserve(call->ctx, call->golden, MUC_GOLDEN_TILE_COLUMNS * pieces));
    band = call->golden->blocks;
    for (size_t i = 0; i < call->inputs[0]->columns; i++) {
        row = (size_t)muc_ref_integer(call->inputs[0], i);
        MUC_TRY(muc_golden_decode(call->ctx, call->graph->tensors[id].name, table,
                                  row / MUC_GOLDEN_TILE_COLUMNS, band));
        for (size_t b = 0; b < pieces; b++) {
            size_t at = b * MUC_GOLDEN_BLOCK, left = width - at;

            muc_golden_values(&band[row % MUC_GOLDEN_TILE_COLUMNS * pieces + b],
                              left < MUC_GOLDEN_BLOCK ? left : MUC_GOLDEN_BLOCK,
                              muc_ref_floats_out(call->output) + i * width + at);
        }
    }
    return MUC_OK;
}

/* One matrix at work: out = start + bias + x w. */
typedef struct product {
    muc_context *ctx;
    const muc_tensor *matrix;
    const muc_golden_matrix *weights; /* the same */
    const muc_golden_block *x;
    muc_golden_block *bands; /* [parts][8][pieces], a band of the matrix in each part */
    size_t rows, columns, pieces, parts;
    const float *start; /* like out, or NULL for zeros */
    const float *bias;  /* [columns], or NULL */
    float *out;         /* [rows][columns] */
} product;

static float start_of(const product *p, size_t row, size_t column)
{
    float bias = p->bias ? p->bias[column] : 0;

    return p->start ? p->start[row * p->columns + column] + bias : bias;
}

static muc_status product_band(const product *p, size_t band, muc_golden_block *w)
{
    size_t first = band * MUC_GOLDEN_TILE_COLUMNS;

    MUC_TRY(muc_golden_decode(p->ctx, p->matrix->name, p->weights, band, w));
    for (size_t c = first; c < first + MUC_GOLDEN_TILE_COLUMNS && c < p->columns; c++)
        for (size_t r = 0; r < p->rows; r++)
            p->out[r * p->columns + c] = muc_golden_dot(
                w + (c - first) * p->pieces, p->x + r * p->pieces, p->pieces, start_of(p, r, c));
    return MUC_OK;
}

/* some bands; what they read may leave the memory then */
static muc_status product_part(void *arg, size_t part)
{
    const product *p = arg;
    const uint8_t *sequence = p->weights->sequence;
    size_t bands = muc_golden_bands(p->columns);
    size_t first = bands * part / p->parts, end = bands * (part + 1) / p->parts;

    for (size_t band = first; band < end; band++)
        MUC_TRY(product_band(p, band, p->bands + part * MUC_GOLDEN_TILE_COLUMNS * p->pieces));
    if (p->matrix->sequence_rests)
        muc_large_rest(sequence + muc_golden_start(p->weights, first),
                       muc_golden_start(p->weights, end) - muc_golden_start(p->weights, first));
    return MUC_OK;
}

static muc_status multiply(const muc_ref_call *call, const muc_node *linear, const float *start)
{
    const muc_ref_value *x = &call->values[linear->inputs[0]];
    const muc_golden_node *node = &call->golden->nodes[linear - call->graph->nodes];
    product p = { .ctx = call->ctx,
                  .matrix = &call->graph->tensors[linear->inputs[1]],
                  .weights = &call->golden->weights[linear->inputs[1]],
                  .rows = x->rows,
                  .columns = call->output->columns,
                  .pieces = muc_golden_blocks(x->columns),
                  .parts = muc_ref_parts(call->ctx),
                  .start = start,
                  .bias = linear->input_count > 2 ? call->values[linear->inputs[2]].read : NULL,
                  .out = call->output->data };

    MUC_TRY(muc_golden_reserve(call->ctx, call->golden,
                               (x->rows + p.parts * MUC_GOLDEN_TILE_COLUMNS) * p.pieces));
    MUC_TRY(
        muc_golden_quantize(call, x->read, x->rows, x->columns, node->terms, call->golden->blocks));
    p.x = call->golden->blocks;
    p.bands = call->golden->blocks + x->rows * p.pieces;
    return muc_parallel_for(call->ctx, p.parts, product_part, &p);
}

muc_status muc_kernel_golden_linear(const muc_ref_call *call)
{
    return multiply(call, call->node, NULL);
}

muc_status muc_kernel_golden_add(const muc_ref_call *call)
{
    const muc_node *linear = kept(call)->linear;

    return linear ? multiply(call, linear, call->inputs[0]->read) : muc_kernel_golden_as_ref(call);
}

muc_status muc_kernel_golden_rmsnorm(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0];
    float epsilon = (float)muc_node_real(call->node, MUC_KEY_EPSILON);
    size_t k = muc_node_attribute(call->node, MUC_KEY_GROUP)
                   ? (size_t)muc_node_integer(call->node, MUC_KEY_GROUP)
                   : x->columns;

    for (size_t r = 0; r < x->elements / k; r++) {
        const float *row = muc_ref_floats(x) + r * k, *gain = call->inputs[1]->read;
        float *out = muc_ref_floats_out(call->output) + r * k;
        float sum = 0, u;

        for (size_t i = 0; i < k; i++) {
            float square = row[i] * row[i];

            sum = sum + square;
        }
        u = 1.0f / sqrtf(sum / (float)k + epsilon);
        for (size_t i = 0; i < k; i++)
            out[i] = (row[i] * u) * gain[i];
    }
    return MUC_OK;
}

/* g times the logistic function of z */
static float gate(float g, float z)
{
    float e = muc_ref_machine_exp(-fabsf(z));

    return g * (z >= 0 ? 1 / (1 + e) : e / (1 + e));
}

muc_status muc_kernel_golden_silu(const muc_ref_call *call)
{
    const float *x = call->inputs[0]->read;
    float *out = call->output->data;

    for (size_t i = 0; i < call->inputs[0]->elements; i++)
        out[i] = gate(x[i], x[i]);
    return MUC_OK;
}

muc_status muc_kernel_golden_gelu(const muc_ref_call *call)
{
    const float *x = call->inputs[0]->read;
    float *out = call->output->data;

    for (size_t i = 0; i < call->inputs[0]->elements; i++) {
        float inner = muc_f32_of_bits(0x3d922279) * (x[i] * x[i]);

        inner = muc_f32_of_bits(0x3fcc422a) + inner;
        out[i] = gate(x[i], x[i] * inner);
    }
    return MUC_OK;
}

float muc_golden_tanh(float t)
{
    float e = muc_ref_machine_exp(-2 * fabsf(t)), h = (1 - e) / (1 + e);

    return t >= 0 ? h : -h;
}

muc_status muc_kernel_golden_tanh(const muc_ref_call *call)
{
    const float *x = call->inputs[0]->read;
    float *out = call->output->data;

    for (size_t i = 0; i < call->inputs[0]->elements; i++)
        out[i] = muc_golden_tanh(x[i]);
    return MUC_OK;
}

/* what ref has, where that has no freedom: one line of float32 each, the same in both */
muc_status muc_kernel_golden_as_ref(const muc_ref_call *call)
{
    return muc_ref_kernel_of(call->graph, call->node)(call);
}

/* what ops.def says of each operator */
static const struct {
    muc_op op;
    muc_ref_kernel *run;
    /* a node must carry this attribute, or must not, or else: why not; NULL: any will do */
    bool wants_key, activates;
    muc_attribute_key key;
    const char *refusal;
} kernels[] = {
#define MUC_OP(id, name, least, most, least_out, most_out, rule, flags, facts, meaning) \
    { .op = MUC_OP_##id, MUC_FACTS facts },
#define GOLDEN(kernel) .run = muc_kernel_golden_##kernel,
#define GOLDEN_GATE(kernel) GOLDEN(kernel).activates = true,
#define GOLDEN_WITH(attribute, why) .wants_key = true, .key = MUC_KEY_##attribute, .refusal = why,
#define GOLDEN_WITHOUT(attribute, why) .key = MUC_KEY_##attribute, .refusal = why,
#include "graph/ops.def"
};

muc_ref_kernel *muc_golden_kernel_of(const muc_node *node)
{
    return kernels[node->op].run;
}

const char *muc_golden_refusal(const muc_node *node)
{
    if (!kernels[node->op].run)
        return "has no such operator";
    return (muc_node_attribute(node, kernels[node->op].key) != NULL) == kernels[node->op].wants_key
               ? NULL
               : kernels[node->op].refusal;
}

bool muc_golden_activates(muc_op op)
{
    return kernels[op].activates;
}

/* maker.c - the growing graph: what writers draw their operands from, and the walk over rows. */
#include "maker.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"

uint32_t fuzz_draw(fuzz_chance *chance, uint32_t count)
{
    uint64_t x = 0;

    if (!chance->left) { /* splitmix64 */
        x = chance->state += 0x9e3779b97f4a7c15u;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        x = (x ^ x >> 27) * 0x94d049bb133111ebu;
        return (uint32_t)((x >> 32) % count);
    }
    for (uint32_t left = count - 1; left && chance->left; left >>= 8, chance->left--)
        x = x << 8 | *chance->bytes++;
    return (uint32_t)(x % count);
}

/* ---- what is known of a tensor ---- */

uint32_t fuzz_dim(const fuzz_maker *m, uint32_t tensor, uint32_t i)
{
    const muc_expr_node *e = muc_expr_get(m->graph->pool, fuzz_tensor(m, tensor)->dims[i]);

    return e->op == MUC_EXPR_CONST ? e->immediate : 0;
}

bool fuzz_is_fixed(const fuzz_maker *m, uint32_t tensor)
{
    for (uint32_t i = 0; i < fuzz_tensor(m, tensor)->rank; i++)
        if (!muc_expr_is_const(m->graph->pool, fuzz_tensor(m, tensor)->dims[i]))
            return false;
    return true;
}

bool fuzz_is_real(const fuzz_maker *m, uint32_t tensor)
{
    return muc_dtype_get(fuzz_tensor(m, tensor)->dtype)->kind == MUC_DTYPE_FLOAT;
}

double fuzz_most(const fuzz_maker *m, uint32_t tensor)
{
    return fmax(fabs(m->ranges[tensor].lo), fabs(m->ranges[tensor].hi));
}

muc_expr fuzz_number(fuzz_maker *m, uint32_t value)
{
    return muc_expr_const(m->graph->pool, value);
}

/* ---- attributes of the next node ---- */

static muc_attribute *next_attribute(fuzz_maker *m, muc_attribute_key key)
{
    muc_attribute *a = &m->attributes[m->attribute_count++];

    if (m->attribute_count > FUZZ_MOST_ATTRIBUTES)
        abort();
    *a = (muc_attribute){ .key = key };
    return a;
}

void fuzz_set_integer(fuzz_maker *m, muc_attribute_key key, int64_t value)
{
    next_attribute(m, key)->value.integer = value;
}

void fuzz_set_real(fuzz_maker *m, muc_attribute_key key, double value)
{
    next_attribute(m, key)->value.real = value;
}

void fuzz_set_expr(fuzz_maker *m, muc_attribute_key key, muc_expr value)
{
    next_attribute(m, key)->value.expr = value;
}

static void *copy_of(fuzz_maker *m, const void *data, size_t bytes)
{
    void *copy;

    if (muc_arena_new(m->ctx, &m->graph->arena, bytes + 1, 1, &copy) != MUC_OK)
        abort();
    memcpy(copy, data, bytes);
    return copy;
}

void fuzz_set_integers(fuzz_maker *m, muc_attribute_key key, const int64_t *items, uint32_t count)
{
    muc_attribute *a = next_attribute(m, key);

    a->value.integers.items = copy_of(m, items, count * sizeof(*items));
    a->value.integers.count = count;
}

void fuzz_set_exprs(fuzz_maker *m, muc_attribute_key key, const muc_expr *items, uint32_t count)
{
    muc_attribute *a = next_attribute(m, key);

    a->value.exprs.items = copy_of(m, items, count * sizeof(*items));
    a->value.exprs.count = count;
}

/* ---- tensors that no node computes ---- */

void fuzz_store(muc_dtype dtype, uint8_t *data, uint64_t i, double value)
{
    uint32_t width = muc_dtype_get(dtype)->block_bytes;
    int64_t integer = (int64_t)value;
    uint16_t half = dtype == MUC_F16 ? muc_f16_of_f32((float)value) : muc_bf16_of_f32((float)value);
    float single = (float)value;

    if (dtype == MUC_F64)
        memcpy(data + i * width, &value, width);
    else if (dtype == MUC_F32)
        memcpy(data + i * width, &single, width);
    else if (dtype == MUC_F16 || dtype == MUC_BF16)
        memcpy(data + i * width, &half, width);
    else
        memcpy(data + i * width, &integer, width);
}

/* blocks whose scales are up to most / 127: any numbers in them are up to most */
static void draw_blocks(fuzz_maker *m, muc_dtype dtype, uint8_t *data, uint64_t bytes, double most)
{
    const muc_dtype_info *info = muc_dtype_get(dtype);

    for (uint64_t at = 0; at < bytes; at += info->block_bytes) {
        double scale = most / (dtype == MUC_Q8_0 ? 127 : 8) * (1 - fuzz_pick(m, 64) / 128.0);

        fuzz_store(MUC_F16, data + at, 0, scale);
        for (uint32_t i = 2; i < info->block_bytes; i++)
            data[at + i] = (uint8_t)fuzz_pick(m, 256);
    }
}

/* a multiple of 1/64 in lo..hi; of integers whole */
static double draw_number(fuzz_maker *m, muc_dtype dtype, double lo, double hi)
{
    double steps = muc_dtype_get(dtype)->kind == MUC_DTYPE_FLOAT ? 64 : 1;
    double first = ceil(lo * steps), count = floor(hi * steps) - first + 1;

    if (dtype == MUC_BOOL)
        return fuzz_pick(m, 2);
    if (count < 1)
        return lo;
    return (first + (count <= 65536 ? fuzz_pick(m, (uint32_t)count)
                                    : floor(count / 65536 * fuzz_pick(m, 65536)))) /
           steps;
}

static uint32_t declare(fuzz_maker *m, const muc_tensor *tensor, fuzz_range range)
{
    uint32_t id;

    if (m->graph->tensor_count >= FUZZ_MOST_TENSORS ||
        muc_graph_add_tensor(m->ctx, m->graph, tensor, &id) != MUC_OK) {
        muc_error_clear(m->ctx);
        return MUC_NO_ID;
    }
    m->ranges[id] = range;
    return id;
}

/* the numbers that integers stand for */
static fuzz_range range_of(const muc_quantization *q, double lo, double hi)
{
    return q ? (fuzz_range){ (double)q->scales[0] * (lo - q->zero_points[0]),
                             (double)q->scales[0] * (hi - q->zero_points[0]) }
             : (fuzz_range){ lo, hi };
}

static muc_tensor shaped(fuzz_maker *m, const fuzz_shape *shape, const muc_quantization *q)
{
    muc_tensor t = { .dtype = shape->dtype, .rank = shape->rank, .quantization = q };

    t.producer = MUC_NO_ID;
    for (uint32_t i = 0; i < shape->rank; i++)
        t.dims[i] = fuzz_number(m, shape->dims[i]);
    return t;
}

uint32_t fuzz_constant(fuzz_maker *m, const fuzz_shape *shape, double lo, double hi,
                       const muc_quantization *quantization)
{
    const muc_dtype_info *info = muc_dtype_get(shape->dtype);
    uint32_t count = 1, id;
    muc_tensor t = shaped(m, shape, quantization);
    uint8_t *data;
    char name[24];

    for (uint32_t i = 0; i < shape->rank; i++)
        if ((count *= shape->dims[i]) > FUZZ_MOST_ELEMENTS)
            return MUC_NO_ID;
    t.bytes = (uint64_t)count / info->block_elements * info->block_bytes;
    if (muc_arena_new(m->ctx, &m->graph->arena, (size_t)t.bytes + 1, 1, (void **)&data) != MUC_OK)
        abort();
    if (info->block_elements > 1)
        draw_blocks(m, shape->dtype, data, t.bytes, hi);
    for (uint32_t i = 0; info->block_elements == 1 && i < count; i++)
        fuzz_store(shape->dtype, data, i, draw_number(m, shape->dtype, lo, hi));
    snprintf(name, sizeof(name), "c%u", m->graph->tensor_count);
    t.name = name;
    t.kind = MUC_TENSOR_CONST;
    t.data = data;
    id = declare(m, &t, range_of(quantization, lo, hi));
    return id;
}

uint32_t fuzz_integers(fuzz_maker *m, muc_dtype dtype, const int64_t *values, uint32_t count)
{
    const fuzz_shape shape = FUZZ_SHAPE(dtype, count);
    uint32_t id = fuzz_constant(m, &shape, 0, 0, NULL);

    if (id != MUC_NO_ID)
        for (uint32_t i = 0; i < count; i++)
            fuzz_store(dtype, (uint8_t *)(uintptr_t)fuzz_tensor(m, id)->data, i, (double)values[i]);
    return id;
}

uint32_t fuzz_input(fuzz_maker *m, const fuzz_shape *shape, double lo, double hi,
                    const muc_quantization *quantization)
{
    muc_tensor t = shaped(m, shape, quantization);
    char name[64];
    uint32_t id;

    if (shape->dtype == MUC_BOOL)
        lo = 0, hi = 1;
    snprintf(name, sizeof(name), "x%u:%g:%g", m->graph->tensor_count, lo, hi);
    t.name = name;
    t.kind = MUC_TENSOR_INPUT;
    id = declare(m, &t, range_of(quantization, lo, hi));
    return id;
}

uint32_t fuzz_operand(fuzz_maker *m, const fuzz_shape *shape, double lo, double hi,
                      const muc_quantization *quantization)
{
    uint32_t known = MUC_NO_ID;

    if (fuzz_one_in(m, 8) && m->graph->tensor_count < FUZZ_MOST_TENSORS / 2)
        return fuzz_input(m, shape, lo, hi, quantization);
    for (uint32_t i = 0; i < m->graph->tensor_count && fuzz_one_in(m, 6); i++) { /* shared */
        const muc_tensor *t = fuzz_tensor(m, i);
        bool same = t->kind == MUC_TENSOR_CONST && t->dtype == shape->dtype &&
                    t->rank == shape->rank && !t->quantization && !quantization &&
                    m->ranges[i].lo >= lo && m->ranges[i].hi <= hi;

        for (uint32_t d = 0; same && d < t->rank; d++)
            same = fuzz_dim(m, i, d) == shape->dims[d];
        known = same ? i : known;
    }
    return known != MUC_NO_ID ? known : fuzz_constant(m, shape, lo, hi, quantization);
}

const muc_quantization *fuzz_quantization(fuzz_maker *m, muc_dtype dtype, double most,
                                          uint32_t count, uint32_t axis)
{
    static const double shares[] = { 1, 0.5, 0.25, 0.8 };
    int64_t low, high;
    muc_quantization q = { count, count > 1 ? axis : 0, NULL, NULL };
    float scales[256];
    int32_t zeros[256] = { 0 };

    if (count > MUC_COUNT(scales) || !muc_dtype_range(dtype, &low, &high))
        return NULL;
    most = most > 1e-6 && most < 1e6 ? most : 1;
    for (uint32_t i = 0; i < count; i++) {
        scales[i] = (float)(most * shares[fuzz_pick(m, 4)] * (1 + fuzz_pick(m, 64) / 256.0) /
                            (double)((high - low) / 2));
        if (count == 1 && (dtype == MUC_I8 || dtype == MUC_U8))
            zeros[i] = (int32_t)(low + (high - low) / 2) + (int32_t)fuzz_pick(m, 61) - 30;
    }
    q.scales = copy_of(m, scales, count * sizeof(*scales));
    q.zero_points = copy_of(m, zeros, count * sizeof(*zeros));
    return copy_of(m, &q, sizeof(q));
}

const muc_quantization *fuzz_scale(fuzz_maker *m, float scale, int32_t zero)
{
    muc_quantization q = { 1, 0, NULL, NULL };

    q.scales = copy_of(m, &scale, sizeof(scale));
    q.zero_points = copy_of(m, &zero, sizeof(zero));
    return copy_of(m, &q, sizeof(q));
}

/* ---- nodes ---- */

/* of the noise of sums and formulas: nothing but what moves, compares or rounds exactly keeps a
 * result free of it */
static bool makes_noise(muc_op op, bool is_real)
{
    if (!is_real || (muc_op_get(op)->flags & MUC_OP_MOVES) != 0)
        return false;
    switch ((int)op) {
    case MUC_OP_RELU:
    case MUC_OP_ABS:
    case MUC_OP_NEG:
    case MUC_OP_CLIP:
    case MUC_OP_MIN:
    case MUC_OP_MAX:
    case MUC_OP_MAX_POOL:
    case MUC_OP_REDUCE_MAX:
    case MUC_OP_REDUCE_MIN:
    case MUC_OP_WHERE:
    case MUC_OP_TRILU:
    case MUC_OP_TOP_K:
    case MUC_OP_DEQUANTIZE:
    case MUC_OP_CAST:
        return false;
    default:
        return true;
    }
}

static bool is_small(fuzz_maker *m, const muc_tensor *outputs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t elements = 1;

        for (uint32_t d = 0; d < outputs[i].rank; d++)
            elements *= muc_expr_get(m->graph->pool, outputs[i].dims[d])->hi;
        if (elements > FUZZ_MOST_ELEMENTS || elements == 0)
            return false;
    }
    return true;
}

static void note_results(fuzz_maker *m, muc_op op, const uint32_t *inputs, uint32_t count,
                         const uint32_t *outputs, uint32_t output_count, fuzz_range range)
{
    bool noisy = false;

    for (uint32_t i = 0; i < count; i++)
        if (inputs[i] != MUC_NO_ID) {
            noisy = noisy || m->noisy[inputs[i]];
            m->read[inputs[i]] = true;
        }
    for (uint32_t i = 0; i < output_count; i++) {
        m->ranges[outputs[i]] = range;
        m->noisy[outputs[i]] = noisy || makes_noise(op, fuzz_is_real(m, outputs[i]));
        m->live[m->live_count++] = outputs[i];
    }
    m->nodes++;
}

static bool try_node(fuzz_maker *m, const muc_new_node *node, uint32_t *outputs, fuzz_range range)
{
    const muc_node like = {
        node->op,     node->name, node->input_count, node->output_count, node->attribute_count,
        node->inputs, NULL,       node->attributes
    };
    muc_tensor derived[MUC_GRAPH_MAX_OUTPUTS];

    memset(derived, 0, sizeof(derived));
    if (m->graph->tensor_count + node->output_count >= FUZZ_MOST_TENSORS ||
        muc_graph_derive(m->ctx, m->graph, &like, derived) != MUC_OK ||
        !is_small(m, derived, node->output_count) ||
        muc_graph_add(m->ctx, m->graph, node, outputs) != MUC_OK) {
        muc_error_clear(m->ctx);
        return false;
    }
    note_results(m, node->op, node->inputs, node->input_count, outputs, node->output_count, range);
    return true;
}

uint32_t fuzz_add_as(fuzz_maker *m, muc_op op, const uint32_t *inputs, uint32_t count,
                     uint32_t outputs, fuzz_range range, const muc_quantization *quantization)
{
    const muc_quantization *all[MUC_GRAPH_MAX_OUTPUTS] = { NULL };
    uint32_t ids[MUC_GRAPH_MAX_OUTPUTS];
    muc_new_node node = { op,     NULL,          count, m->attribute_count,       outputs,
                          inputs, m->attributes, NULL,  quantization ? all : NULL };
    char name[24];

    for (uint32_t i = 0; i < outputs; i++)
        all[i] = quantization;
    for (uint32_t i = 0; i < count; i++)
        if (inputs[i] == MUC_NO_ID && i < muc_op_get(op)->least_inputs)
            node.input_count = 0; /* an operand that could not be made */
    while (node.input_count && inputs[node.input_count - 1] == MUC_NO_ID)
        node.input_count--;
    snprintf(name, sizeof(name), "n%u", m->graph->tensor_count);
    node.name = name;
    m->attribute_count = 0;
    if (node.input_count < muc_op_get(op)->least_inputs || !try_node(m, &node, ids, range))
        return MUC_NO_ID;
    return ids[0];
}

/* what TFLite fixes of a result, or a quantization that numbers of the range fit */
static const muc_quantization *result_quantization(fuzz_maker *m, muc_op op, uint32_t x,
                                                   fuzz_range range)
{
    const muc_tensor *t = fuzz_tensor(m, x);
    double most = fmax(fabs(range.lo), fabs(range.hi));
    bool is_word = t->dtype == MUC_I16;
    float scale = 0;
    int32_t zero = 0;

    if (op == MUC_OP_SIGMOID || op == MUC_OP_SOFTMAX)
        scale = is_word ? 1.0f / 32768 : 1.0f / 256, zero = is_word ? 0 : -128;
    else if (op == MUC_OP_TANH)
        scale = is_word ? 1.0f / 32768 : 1.0f / 128;
    else if (op == MUC_OP_LOG_SOFTMAX)
        scale = 16.0f / 256, zero = 127;
    if (scale > 0 && t->dtype == MUC_U8)
        zero += 128;
    if (scale == 0 && fuzz_one_in(m, 4))
        return t->quantization;
    if (scale == 0)
        return fuzz_quantization(m, t->dtype, most, 1, 0);
    return fuzz_scale(m, scale, zero);
}

/* whether the result has to be of the scale of x */
static bool keeps_scale(muc_op op)
{
    return op == MUC_OP_MAX_POOL || op == MUC_OP_AVERAGE_POOL || op == MUC_OP_MIN ||
           op == MUC_OP_MAX || op == MUC_OP_REDUCE_MAX || op == MUC_OP_REDUCE_MIN ||
           op == MUC_OP_RESIZE;
}

uint32_t fuzz_add(fuzz_maker *m, muc_op op, const uint32_t *inputs, uint32_t count,
                  uint32_t outputs, fuzz_range range)
{
    const muc_op_info *info = muc_op_get(op);
    bool quantized = count && inputs[0] != MUC_NO_ID && fuzz_tensor(m, inputs[0])->quantization &&
                     (info->flags & MUC_OP_QUANTIZED) != 0 && op != MUC_OP_ARG_MAX &&
                     op != MUC_OP_ARG_MIN && op != MUC_OP_DEQUANTIZE;

    if (!quantized)
        return fuzz_add_as(m, op, inputs, count, outputs, range, NULL);
    return fuzz_add_as(m, op, inputs, count, outputs, range,
                       keeps_scale(op) ? fuzz_tensor(m, inputs[0])->quantization
                                       : result_quantization(m, op, inputs[0], range));
}

uint32_t fuzz_alike(fuzz_maker *m, uint32_t x, bool same_scale)
{
    const muc_tensor *t = fuzz_tensor(m, x);
    uint32_t first = fuzz_pick(m, m->live_count);

    for (uint32_t i = 0; i < m->live_count; i++) {
        uint32_t id = m->live[(first + i) % m->live_count];
        const muc_tensor *other = fuzz_tensor(m, id);

        if (t->quantization && other->quantization && same_scale &&
            (other->quantization->scales[0] != t->quantization->scales[0] ||
             other->quantization->zero_points[0] != t->quantization->zero_points[0]))
            continue;
        if (id != x && other->dtype == t->dtype && other->rank == t->rank &&
            !other->quantization == !t->quantization &&
            memcmp(other->dims, t->dims, t->rank * sizeof(*t->dims)) == 0)
            return id;
    }
    return MUC_NO_ID;
}

uint32_t fuzz_tame(fuzz_maker *m, uint32_t x, double lo, double hi)
{
    muc_dtype dtype = fuzz_tensor(m, x)->dtype;
    fuzz_range range = m->ranges[x];
    uint32_t inputs[3] = { x };

    if ((range.lo >= lo && range.hi <= hi) || fuzz_tensor(m, x)->quantization)
        return x;
    inputs[1] = fuzz_constant(m, &FUZZ_SCALAR(dtype), lo, lo, NULL);
    inputs[2] = fuzz_constant(m, &FUZZ_SCALAR(dtype), hi, hi, NULL);
    return fuzz_add(m, MUC_OP_CLIP, inputs, 3, 1, (fuzz_range){ lo, hi });
}

/* ---- the walk ---- */

typedef struct row {
    muc_op op;
    fuzz_writer *writer;
    unsigned families;
} row;

static const row rows[] = {
#define MUC_OP(...)
#define MUC_FORMULA_ROW(op) { MUC_OP_##op, fuzz_write_elementwise, FUZZ_POINTS },
#include "graph/ops.def"
#define FUZZ_ROW(op, writer, families) { MUC_OP_##op, fuzz_write_##writer, families },
#include "maker.def"
#undef FUZZ_ROW
};

typedef struct style_info {
    const char *name;
    unsigned families;
} style_info;

static const style_info styles[] = {
#define FUZZ_STYLE(id, name, families, meaning) { name, families },
#include "maker.def"
#undef FUZZ_STYLE
};

const char *fuzz_style_name(fuzz_style style)
{
    return styles[style].name;
}

static bool takes(const fuzz_maker *m, muc_op op, uint32_t x)
{
    const muc_tensor *t = fuzz_tensor(m, x);
    unsigned flags = muc_op_get(op)->flags;

    if (t->quantization)
        return (flags & (MUC_OP_QUANTIZED | MUC_OP_MOVES)) != 0 || op == MUC_OP_LOOKUP;
    if (op == MUC_OP_DEQUANTIZE)
        return false;
    if (fuzz_is_real(m, x))
        return (flags & MUC_OP_FLOAT) != 0;
    return (flags & (t->dtype == MUC_BOOL ? MUC_OP_BOOL : MUC_OP_INTEGER)) != 0 || flags == 0;
}

/* a value that the row takes, a late one and one that nothing reads yet rather than others */
static uint32_t choose(fuzz_maker *m, muc_op op)
{
    for (uint32_t tries = 0; tries < 6; tries++) {
        uint32_t late = m->live_count < 4 ? m->live_count : 4;
        uint32_t i =
            fuzz_pick(m, 3) ? m->live_count - 1 - fuzz_pick(m, late) : fuzz_pick(m, m->live_count);

        if (takes(m, op, m->live[i]) && (tries > 2 || !m->read[m->live[i]] || fuzz_one_in(m, 2)))
            return m->live[i];
    }
    return MUC_NO_ID;
}

/* what x may be, for FUZZ_RARE: plain integers; quantized i16, u8; open lengths; f16 or bf16 */
enum { WHOLE = 1, WORD = 2, BYTE = 4, OPEN = 8, HALF = 16 };

static bool is_rare(const fuzz_maker *m, muc_op op, uint32_t x)
{
    static const unsigned rare[MUC_OP_COUNT] = {
#define FUZZ_RARE(op, of) [MUC_OP_##op] = (of),
#include "maker.def"
#undef FUZZ_RARE
    };
    const muc_tensor *t = fuzz_tensor(m, x);
    unsigned is = fuzz_is_fixed(m, x) ? 0 : OPEN, found = rare[op];

    if ((muc_op_get(op)->flags & MUC_OP_TABLE) && op != MUC_OP_SIGMOID && op != MUC_OP_TANH)
        found |= WORD; /* which has a table of 256 values only */
    if (t->quantization)
        is |= t->dtype == MUC_I16 ? WORD : t->dtype == MUC_U8 ? BYTE : 0;
    else if (!fuzz_is_real(m, x))
        is |= WHOLE;
    if (t->dtype == MUC_F16 || t->dtype == MUC_BF16)
        is |= HALF;
    return (found & is) != 0;
}

static void add_first_inputs(fuzz_maker *m)
{
    static const muc_dtype halves[] = { MUC_F16, MUC_BF16, MUC_F64 };
    static const muc_dtype wholes[] = { MUC_I8,  MUC_U8,  MUC_I16, MUC_U16, MUC_I32,
                                        MUC_U32, MUC_I64, MUC_U64, MUC_BOOL };
    static const muc_dtype bytes[] = { MUC_I8, MUC_U8, MUC_I8, MUC_I16 };
    bool is_image = (styles[m->style].families & FUZZ_WINDOWS) != 0 && !fuzz_one_in(m, 8);

    for (uint32_t i = 0, count = fuzz_between(m, 1, 3); i < count; i++) {
        fuzz_shape shape = { MUC_F32, is_image ? 4 : fuzz_between(m, 1, 4), { 0 } };
        const muc_quantization *q = NULL;
        double lo = -2, hi = 2;
        uint32_t id;

        for (uint32_t d = 0; d < 4; d++)
            shape.dims[d] =
                shape.rank > 3 && d == 0 ? (fuzz_one_in(m, 6) ? 2 : 1) : fuzz_between(m, 1, 8);
        if (m->style == FUZZ_IN_RECURRENT)
            shape.rank = fuzz_one_in(m, 3) ? 2 : 3, shape.dims[0] = fuzz_between(m, 1, 5),
            shape.dims[1] = fuzz_between(m, 1, shape.rank == 2 ? 8 : 2);
        if (m->style == FUZZ_IN_RECURRENT && fuzz_one_in(m, 3))
            shape.dtype = MUC_I8, q = fuzz_quantization(m, MUC_I8, 2, 1, 0);
        if (m->style == FUZZ_IN_HALF)
            shape.dtype = halves[fuzz_pick(m, 3)];
        if (m->style == FUZZ_IN_WHOLE)
            shape.dtype = wholes[fuzz_pick(m, MUC_COUNT(wholes))];
        if (m->style == FUZZ_IN_QUANTLIB || (m->style == FUZZ_IN_PAIRS && fuzz_one_in(m, 4)))
            shape.dtype = bytes[fuzz_pick(m, MUC_COUNT(bytes))];
        if (m->style == FUZZ_IN_INT8 || m->style == FUZZ_IN_INT8_IMAGE)
            shape.dtype = MUC_I8;
        if (m->style == FUZZ_IN_UINT8)
            shape.dtype = MUC_U8;
        if (m->style == FUZZ_IN_INT16)
            shape.dtype = MUC_I16;
        if (m->style >= FUZZ_IN_INT8 && m->style <= FUZZ_IN_INT16)
            q = fuzz_quantization(m, shape.dtype, 2, 1, 0);
        if (muc_dtype_get(shape.dtype)->kind == MUC_DTYPE_INTEGER) {
            int64_t low, high;

            hi = muc_dtype_range(shape.dtype, &low, &high) && high < 30000 ? (double)high : 1000;
            hi = shape.dtype == MUC_BOOL ? 1 : hi;
            lo = low < 0 && shape.dtype != MUC_BOOL ? -hi - (hi < 200) : 0;
        }
        id = fuzz_input(m, &shape, lo, hi, q);
        if (id != MUC_NO_ID)
            m->live[m->live_count++] = id;
    }
}

/* the same with lengths that a run decides */
static void add_open_inputs(fuzz_maker *m)
{
    muc_expr_pool *pool = m->graph->pool;
    uint32_t rank = fuzz_one_in(m, 2) ? 4 : fuzz_between(m, 2, 3), open = fuzz_pick(m, rank);
    uint32_t least = fuzz_between(m, 1, 2);
    muc_expr n = muc_expr_new_input(pool, "len_n", least, least + fuzz_between(m, 1, 7), 1);
    muc_expr k =
        fuzz_one_in(m, 3) ? muc_expr_new_input(pool, "len_k", 0, fuzz_between(m, 1, 5), 1) : n;
    muc_tensor t = { .kind = MUC_TENSOR_INPUT, .dtype = MUC_F32, .rank = rank };

    t.producer = MUC_NO_ID;
    for (uint32_t i = 0; i < 2; i++) {
        char name[32];
        uint32_t id;

        for (uint32_t d = 0; d < rank && i == 0; d++)
            t.dims[d] = d == open ? n : fuzz_number(m, fuzz_between(m, 1, 6));
        if (i == 1 && fuzz_one_in(m, 2))
            t.dims[fuzz_pick(m, rank)] = muc_expr_add(pool, k, fuzz_number(m, 1));
        if (i == 1 && fuzz_one_in(m, 3))
            t.dtype = MUC_I32;
        snprintf(name, sizeof(name), "x%u:-2:2", m->graph->tensor_count);
        t.name = name;
        id = declare(m, &t, (fuzz_range){ -2, 2 });
        if (id != MUC_NO_ID)
            m->live[m->live_count++] = id;
    }
}

/* pos + m for calls of m tokens, which it gives, at pos */
static muc_expr add_calls(fuzz_maker *m, muc_expr *count)
{
    muc_expr_pool *pool = m->graph->pool;
    muc_expr pos = muc_expr_new_input(pool, "pos", 0, 7, 1), end;

    *count = muc_expr_new_input(pool, "m", 1, 8, 1);
    end = muc_expr_add(pool, pos, *count);
    if (muc_expr_assume(pool, end, 8) != MUC_OK)
        abort();
    return end;
}

/* rows of integers, of which the first have a cache: of the new tokens, and now and then of all */
static void add_rows_inputs(fuzz_maker *m)
{
    muc_tensor t = { .kind = MUC_TENSOR_INPUT, .dtype = MUC_I8, .rank = 2 };
    muc_expr count, end = add_calls(m, &count);
    char name[24];

    t.producer = MUC_NO_ID;
    t.dims[1] = fuzz_number(m, fuzz_between(m, 1, 8));
    for (uint32_t i = 0, inputs = fuzz_between(m, 1, 3); i < inputs; i++) {
        t.dims[0] = i ? end : count;
        snprintf(name, sizeof(name), "x%u:-128:127", i);
        t.name = name;
        m->live[m->live_count++] = declare(m, &t, (fuzz_range){ -128, 127 });
    }
    fuzz_write_append(m, MUC_OP_APPEND, m->live[0]); /* what tells pos */
}

/* tokens of a call of m at pos, and rows of them */
static void add_decoder_inputs(fuzz_maker *m)
{
    muc_tensor t = { .name = "x0:0:15", .kind = MUC_TENSOR_INPUT, .dtype = MUC_I32, .rank = 1 };
    uint32_t id;

    t.producer = MUC_NO_ID;
    m->plain_rows = fuzz_one_in(m, 3);
    add_calls(m, &t.dims[0]);
    id = declare(m, &t, (fuzz_range){ 0, 15 });
    m->live[m->live_count++] = id;
    if (fuzz_one_in(m, 2)) {
        t.name = "x1:-2:2";
        t.dtype = MUC_F32;
        t.rank = 2;
        t.dims[1] = fuzz_number(m, 8 * (m->plain_rows ? fuzz_between(m, 1, 4) : 4));
        m->live[m->live_count++] = declare(m, &t, (fuzz_range){ -2, 2 });
    } else {
        fuzz_write_embed(m, MUC_OP_EMBED, id);
    }
}

static void grow(fuzz_maker *m)
{
    uint32_t most = FUZZ_MOST_NODES - FUZZ_MOST_WRITTEN;
    uint32_t wanted = fuzz_between(m, FUZZ_FEWEST_NODES, fuzz_one_in(m, 4) ? most : 24);

    for (uint32_t tries = 0; tries < 8 * wanted && m->nodes < wanted; tries++) {
        const row *r = &rows[fuzz_pick(m, MUC_COUNT(rows))];
        uint32_t x;

        if (!(r->families & styles[m->style].families) && !fuzz_one_in(m, 16))
            continue;
        x = choose(m, r->op);
        m->attribute_count = 0;
        if (x != MUC_NO_ID && m->live_count + 8 < FUZZ_MOST_TENSORS &&
            (!is_rare(m, r->op, x) || fuzz_one_in(m, 32)))
            r->writer(m, r->op, x);
    }
}

/* what nothing reads, and now and then what something does */
static void add_outputs(fuzz_maker *m)
{
    enum { MOST_OUTPUTS = 24 };

    for (uint32_t i = m->live_count; i-- > 0;) {
        const muc_tensor *t = fuzz_tensor(m, m->live[i]);

        if (t->kind == MUC_TENSOR_ACTIVATION && (!m->read[m->live[i]] || fuzz_one_in(m, 24)) &&
            m->graph->output_count < MOST_OUTPUTS)
            muc_graph_add_output(m->ctx, m->graph, m->live[i]);
    }
}

muc_graph *fuzz_make_network(muc_context *ctx, fuzz_chance *chance, fuzz_style *style)
{
    fuzz_maker *m = muc_calloc(1, sizeof(*m));
    muc_graph *graph;

    if (!m || muc_graph_new(ctx, "n", &graph) != MUC_OK)
        abort();
    if (*style == FUZZ_STYLE_COUNT)
        *style = fuzz_draw(chance, FUZZ_STYLE_COUNT);
    *m = (fuzz_maker){ .ctx = ctx, .graph = graph, .chance = chance, .style = *style };
    if (m->style == FUZZ_IN_OPEN)
        add_open_inputs(m);
    else if (m->style == FUZZ_IN_DECODER)
        add_decoder_inputs(m);
    else if (m->style == FUZZ_IN_EXPORT)
        add_rows_inputs(m);
    else
        add_first_inputs(m);
    grow(m);
    add_outputs(m);
    free(m);
    return graph;
}

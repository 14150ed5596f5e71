/* patterns.c - matches the steps of ops.def (PATTERN) from their last node back. */
#include "passes/simplify/patterns.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph_check.h"
#include "passes/simplify/join_norms.h"
#include "passes/simplify/write_steps.h"

enum { MOST_NODES = 48, MOST_FACTORS = 8, NAMES = 128 };

/* which attributes a pattern's operator gets */
typedef enum how { NONE, NORM, CENTRED, ALPHA, SIXTH, TANH, ALONG } how;

typedef struct pattern {
    how how;
    const char *inputs, *steps;
} pattern;

enum { MOST_PATTERNS = 3 };

/* steps NULL: no more */
static const struct {
    muc_op op;
    pattern patterns[MOST_PATTERNS];
} operators[] = {
#define MUC_OP(id, name, least, most, least_out, most_out, rule, flags, facts, meaning) \
    { MUC_OP_##id, { MUC_FACTS facts{ NONE, NULL, NULL } } },
#define PATTERN(how, inputs, steps) { how, inputs, steps },
#include "graph/ops.def"
};

/* ---- matching ---- */

/* What is known so far; copied where there is a choice. */
typedef struct match {
    const muc_rewrite *r;
    const muc_node *nodes[MOST_NODES]; /* the steps */
    uint32_t node_count;
    uint32_t names[NAMES]; /* tensors + 1; 0: not yet */
    double numbers[NAMES]; /* of ?a; NAN: not yet */
    uint32_t axis, axes;   /* of reductions; axes 0: not yet */
} match;

/* a constant of one f32 */
static bool scalar_of(const muc_rewrite *r, uint32_t id, double *out)
{
    float value;

    if (!muc_rewrite_is_constant(r, id) || muc_rewrite_old(r, id)->dtype != MUC_F32 ||
        muc_rewrite_old(r, id)->bytes != sizeof(float))
        return false;
    muc_dtype_to_f32(MUC_F32, muc_rewrite_old(r, id)->data, 0, 1, &value);
    *out = (double)value;
    return isfinite(value);
}

/* what exporters round to f32, once or twice */
static bool is_number(double found, double expected)
{
    return fabs(found - expected) <= 1e-6 * fabs(expected);
}

static bool add_step(match *m, const muc_node *node)
{
    for (uint32_t i = 0; i < m->node_count; i++)
        if (m->nodes[i] == node)
            return true;
    if (m->node_count == MOST_NODES)
        return false;
    m->nodes[m->node_count++] = node;
    return true;
}

static bool match_name(match *m, char name, uint32_t tensor)
{
    uint32_t *bound = &m->names[(unsigned char)name];

    if (isupper((unsigned char)name) &&
        (!muc_rewrite_is_constant(m->r, tensor) || muc_rewrite_old(m->r, tensor)->dtype != MUC_F32))
        return false;
    if (!*bound)
        *bound = tensor + 1;
    return *bound == tensor + 1;
}

static bool match_number(match *m, const char *at, double value)
{
    double *bound;

    if (*at != '?')
        return is_number(value, strtod(at, NULL));
    bound = &m->numbers[(unsigned char)at[1]];
    if (isnan(*bound))
        *bound = value;
    return *bound == value;
}

static bool is_number_item(const char *at)
{
    return *at == '?' || *at == '-' || isdigit((unsigned char)*at);
}

/* the axes of reductions, which keep their dimensions, and of softmax */
static bool match_axes(match *m, const muc_node *node)
{
    const muc_attribute *axes = muc_node_attribute(node, MUC_KEY_AXES);
    uint32_t first, count = 1;

    if (muc_node_attribute(node, MUC_KEY_AXIS)) {
        first = (uint32_t)muc_node_integer(node, MUC_KEY_AXIS);
    } else {
        count = axes ? axes->value.integers.count : 0;
        if (!axes || muc_node_integer_or(node, MUC_KEY_KEEP_DIMS, 1) != 1 || count == 0)
            return false;
        first = (uint32_t)axes->value.integers.items[0];
        for (uint32_t i = 0; i < count; i++)
            if (axes->value.integers.items[i] != first + i)
                return false;
    }
    if (m->axes == 0) {
        m->axis = first;
        m->axes = count;
    }
    return m->axis == first && m->axes == count;
}

static bool match_item(match *m, const char *at, uint32_t tensor);

/* ---- products ---- */

typedef struct factors {
    uint32_t items[MOST_FACTORS], count;
    double scalar;
    bool has_scalar, too_many;
} factors;

static bool is_factor_node(const muc_rewrite *r, const muc_node *node)
{
    double scalar;

    return node &&
           (node->op == MUC_OP_MUL ||
            (node->op == MUC_OP_DIV && scalar_of(r, node->inputs[1], &scalar) && scalar != 0));
}

/* the factors of a product; nested ones' if nothing else reads those */
static void collect_factors(match *m, const muc_node *node, factors *f)
{
    f->too_many = f->too_many || !add_step(m, node);
    for (uint32_t i = 0; i < 2; i++) {
        const muc_node *before = muc_rewrite_producer(m->r, node->inputs[i]);
        double scalar;

        if (scalar_of(m->r, node->inputs[i], &scalar)) {
            f->scalar = node->op == MUC_OP_DIV ? f->scalar / scalar : f->scalar * scalar;
            f->has_scalar = true;
        } else if (is_factor_node(m->r, before) && muc_rewrite_only_reader(m->r, node->inputs[i])) {
            collect_factors(m, before, f);
        } else if (f->count < MOST_FACTORS) {
            f->items[f->count++] = node->inputs[i];
        } else {
            f->too_many = true;
        }
    }
}

/* the items from `at` on are the factors that are not taken, in some order */
static bool match_factors(match *m, const char *at, const factors *f, uint32_t taken)
{
    if (*at == ')')
        return taken == (1u << f->count) - 1;
    if (is_number_item(at))
        return f->has_scalar && match_number(m, at, f->scalar) &&
               match_factors(m, muc_steps_skip(at), f, taken);
    for (uint32_t i = 0; i < f->count; i++) {
        match tried = *m;

        if (!(taken >> i & 1) && match_item(&tried, at, f->items[i]) &&
            match_factors(&tried, muc_steps_skip(at), f, taken | 1u << i)) {
            *m = tried;
            return true;
        }
    }
    return false;
}

/* "a b ..)" */
static bool match_product(match *m, const char *at, const muc_node *node)
{
    factors f = { .scalar = 1 };
    bool wants_scalar = false;

    if (!is_factor_node(m->r, node))
        return false;
    collect_factors(m, node, &f);
    for (const char *item = at; *item != ')'; item = muc_steps_skip(item))
        wants_scalar = wants_scalar || is_number_item(item);
    return !f.too_many && wants_scalar == f.has_scalar && match_factors(m, at, &f, 0);
}

/* ---- nodes ---- */

static bool match_operands(match *m, const char *at, const muc_node *node, bool turned)
{
    uint32_t count = 0;

    for (; *at != ')'; at = muc_steps_skip(at), count++) {
        uint32_t i = turned ? 1 - count : count;

        if (count >= node->input_count || node->inputs[i] == MUC_NO_ID ||
            !match_item(m, at, node->inputs[i]))
            return false;
    }
    return count == node->input_count;
}

/* "op a b ..)" */
static bool match_node(match *m, const char *at, const muc_node *node)
{
    size_t length = strcspn(at, " ");
    const char *name = node ? muc_op_get(node->op)->name : NULL,
               *operands = muc_steps_skip_blanks(at + length);
    match tried;

    if (!node || node->output_count != 1)
        return false;
    if (*at == '*')
        return match_product(m, operands, node);
    if (strlen(name) != length || memcmp(name, at, length) != 0 || !add_step(m, node))
        return false;
    if ((muc_node_attribute(node, MUC_KEY_AXIS) || muc_op_has(node->op, MUC_OP_REDUCES)) &&
        !match_axes(m, node))
        return false;
    tried = *m;
    if (match_operands(&tried, operands, node, false)) {
        *m = tried;
        return true;
    }
    return muc_op_has(node->op, MUC_OP_COMMUTES) && match_operands(m, operands, node, true);
}

static bool match_item(match *m, const char *at, uint32_t tensor)
{
    double value;

    if (*at == '(')
        return match_node(m, at + 1, muc_rewrite_producer(m->r, tensor));
    if (is_number_item(at))
        return scalar_of(m->r, tensor, &value) && match_number(m, at, value);
    if (*at != '{')
        return match_name(m, *at, tensor);
    for (at = muc_steps_skip_blanks(at + 1); *at != '}'; at = muc_steps_skip(at)) {
        match tried = *m;

        if (match_item(&tried, at, tensor)) {
            *m = tried;
            return true;
        }
    }
    return false;
}

/* nothing but the steps, of which the first is the last to run, reads what the others compute */
static bool is_closed(const match *m)
{
    for (uint32_t i = 1; i < m->node_count; i++) {
        uint32_t made = m->nodes[i]->outputs[0], reads = 0;

        for (uint32_t j = 0; j < m->node_count; j++)
            for (uint32_t k = 0; k < m->nodes[j]->input_count; k++)
                reads += m->nodes[j]->inputs[k] == made;
        if (m->r->is_output[made] || m->r->readers[made] != reads)
            return false;
    }
    return true;
}

static bool is_norm(const pattern *p)
{
    return p->how == NORM || p->how == CENTRED;
}

static bool matches(const muc_rewrite *r, const pattern *p, const muc_node *node, match *m)
{
    uint32_t x;

    *m = (match){ .r = r };
    for (unsigned i = 0; i < NAMES; i++)
        m->numbers[i] = (double)NAN;
    if (muc_rewrite_old(r, node->outputs[0])->dtype != MUC_F32 ||
        !match_item(m, p->steps, node->outputs[0]) || !is_closed(m))
        return false;
    x = m->names['x'] - 1;
    if (!muc_tensor_same_dims(muc_rewrite_old(r, x), muc_rewrite_old(r, node->outputs[0])))
        return false;
    return !is_norm(p) || m->axis + m->axes == muc_rewrite_old(r, x)->rank;
}

/* ---- rules ---- */

static bool attributes_of(const pattern *p, const match *m, muc_attribute *out, uint32_t *count)
{
    *count = 0;
    switch (p->how) {
    case NONE:
        break;
    case NORM:
    case CENTRED:
        if (!(m->numbers['e'] >= 0) || (p->how == CENTRED && m->numbers['e'] <= 0))
            return false;
        out[(*count)++] = (muc_attribute){ .key = MUC_KEY_EPSILON, .value.real = m->numbers['e'] };
        out[(*count)++] = (muc_attribute){ .key = MUC_KEY_AXIS, .value.integer = m->axis };
        break;
    case ALPHA:
        if (!isnan(m->numbers['a']))
            out[(*count)++] =
                (muc_attribute){ .key = MUC_KEY_ALPHA, .value.real = m->numbers['a'] };
        break;
    case SIXTH:
        out[(*count)++] = (muc_attribute){ .key = MUC_KEY_ALPHA, .value.real = 1.0 / 6 };
        out[(*count)++] = (muc_attribute){ .key = MUC_KEY_BETA, .value.real = 0.5 };
        break;
    case TANH:
        out[(*count)++] = (muc_attribute){ .key = MUC_KEY_MODE, .value.integer = MUC_WORD_TANH };
        break;
    case ALONG:
        if (m->axes != 1)
            return false;
        out[(*count)++] = (muc_attribute){ .key = MUC_KEY_AXIS, .value.integer = m->axis };
        break;
    }
    return true;
}

/* hard_swish is this hard_sigmoid's product alone */
static bool has_sixths(const match *m)
{
    for (uint32_t i = 0; i < m->node_count; i++)
        if (m->nodes[i]->op == MUC_OP_HARD_SIGMOID &&
            (!is_number(muc_node_real(m->nodes[i], MUC_KEY_ALPHA), 1.0 / 6) ||
             !is_number(muc_node_real(m->nodes[i], MUC_KEY_BETA), 0.5)))
            return false;
    return true;
}

static muc_status put_operator(muc_rewrite *r, const muc_node *node, muc_op op, const pattern *p,
                               const match *m, bool *done)
{
    const muc_tensor *x = muc_rewrite_old(r, m->names['x'] - 1);
    muc_attribute attributes[2];
    uint32_t inputs[3], count = 0, attribute_count;
    muc_gain_span s = muc_gain_span_of(r, x, is_norm(p) ? m->axis : x->rank, x->rank);

    if (!attributes_of(p, m, attributes, &attribute_count) || s.count == 0)
        return MUC_OK;
    for (const char *name = p->inputs; *name; name++)
        if (isupper((unsigned char)*name) &&
            !muc_gains_span(r, m->names[(unsigned char)*name] - 1, &s))
            return MUC_OK;
    *done = true;
    for (const char *name = p->inputs; *name; name++, count++) {
        uint32_t id = *name == '1' ? MUC_NO_ID : m->names[(unsigned char)*name] - 1;

        if (*name == 'x')
            MUC_TRY(muc_rewrite_tensor(r, id, &inputs[count]));
        else
            MUC_TRY(muc_gains_add(r, count == 1 ? "gain" : "bias", &s, 1, id, MUC_NO_ID, false,
                                  &inputs[count]));
    }
    return muc_rewrite_change(r, node, op, inputs, count, attributes, attribute_count);
}

static muc_status recognise(muc_rewrite *r, const muc_node *node, bool *done)
{
    if (node->output_count != 1)
        return MUC_OK;
    for (size_t i = 0; i < MUC_COUNT(operators); i++) {
        for (const pattern *p = operators[i].patterns; p->steps && !*done; p++) {
            match m;

            if (matches(r, p, node, &m) && has_sixths(&m))
                MUC_TRY(put_operator(r, node, operators[i].op, p, &m, done));
        }
    }
    return MUC_OK;
}

/* a quotient by a constant is a product */
static muc_status multiply(muc_rewrite *r, const muc_node *node, bool *done)
{
    const muc_tensor *b;
    uint32_t inputs[2];
    muc_status status;
    size_t count;
    float *inverse;

    if (node->op != MUC_OP_DIV || muc_rewrite_old(r, node->outputs[0])->dtype != MUC_F32 ||
        !muc_rewrite_is_constant(r, node->inputs[1]) || muc_rewrite_is_constant(r, node->inputs[0]))
        return MUC_OK;
    b = muc_rewrite_old(r, node->inputs[1]);
    count = (size_t)b->bytes / sizeof(float);
    MUC_TRY(MUC_NEW_ARRAY(r->ctx, r->old.name, count, &inverse));
    *done = true;
    for (size_t i = 0; i < count; i++) {
        float value;

        muc_dtype_to_f32(MUC_F32, b->data, i, 1, &value);
        inverse[i] = 1 / value;
        *done = *done && isnormal(inverse[i]);
    }
    status = *done ? muc_rewrite_tensor(r, node->inputs[0], &inputs[0]) : MUC_OK;
    if (status == MUC_OK && *done)
        status = muc_rewrite_constant(r, b->name, b, inverse, count * sizeof(float), &inputs[1]);
    if (status == MUC_OK && *done)
        status = muc_rewrite_change(r, node, MUC_OP_MUL, inputs, 2, NULL, 0);
    free(inverse);
    return status;
}

/* clip does what a relu before it did, if its lower bound is not below zero */
static muc_status bound_once(muc_rewrite *r, const muc_node *node, bool *done)
{
    const muc_node *relu =
        node->op == MUC_OP_CLIP ? muc_rewrite_producer(r, node->inputs[0]) : NULL;
    uint32_t low = muc_node_input(node, 1), inputs[3];
    double least;

    if (!relu || relu->op != MUC_OP_RELU || low == MUC_NO_ID || !scalar_of(r, low, &least) ||
        least < 0)
        return MUC_OK;
    *done = true;
    MUC_TRY(muc_rewrite_tensor(r, relu->inputs[0], &inputs[0]));
    for (uint32_t i = 1; i < node->input_count; i++)
        MUC_TRY(muc_rewrite_tensor(r, node->inputs[i], &inputs[i]));
    return muc_rewrite_change(r, node, node->op, inputs, node->input_count, NULL, 0);
}

muc_status muc_recognise(muc_context *ctx, muc_graph *graph)
{
    static muc_rewrite_rule *const rules[] = { recognise, muc_join_gains, muc_join_group_norm,
                                               multiply, bound_once };

    return muc_rewrite_with(ctx, graph, rules, MUC_COUNT(rules), NULL);
}

/* int8_plan.c - decides which nodes compute in int8. */
#include <stdlib.h>

#include "graph/sampling.h"
#include "passes/int8/int8_pass.h"
#include "passes/pointwise.h"

/* ---- which nodes ---- */

/* images of two or three dimensions with channels last */
static bool takes_window(const pass *p, const muc_node *node)
{
    const muc_tensor *x = old(p, node->inputs[0]);
    uint32_t channels;

    return (x->rank == 4 || x->rank == 5) &&
           muc_node_integer_or(node, MUC_KEY_CHANNELS_LAST, 0) == 1 &&
           muc_rewrite_dim(&p->r.old, x, x->rank - 1, &channels) && node->output_count == 1;
}

static bool takes_any(const pass *p, const muc_node *node)
{
    (void)p;
    (void)node;
    return true;
}

/* only numbers that are computed, which all get one scale */
static bool takes_data(const pass *p, const muc_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (is_constant(p, node->inputs[i]))
            return false;
    return true;
}

static bool takes_two(const pass *p, const muc_node *node)
{
    (void)p;
    return node->input_count == 2;
}

static bool takes_pool(const pass *p, const muc_node *node)
{
    return takes_window(p, node) && takes_data(p, node);
}

/* padding of a number that is known */
static bool takes_filler(const pass *p, const muc_node *node)
{
    uint32_t filler = muc_node_input(node, 1);

    return !is_constant(p, node->inputs[0]) && (filler == MUC_NO_ID || is_constant(p, filler));
}

/* elements that are put, not combined */
static bool takes_places(const pass *p, const muc_node *node)
{
    return takes_data(p, node) &&
           muc_node_word_or(node, MUC_KEY_REDUCTION, MUC_WORD_NONE) == MUC_WORD_NONE;
}

/* integers as real numbers, which are quantized as inputs are */
static bool is_from_integers(const pass *p, const muc_node *node)
{
    return muc_op_has(node->op, MUC_OP_CONVERTS) && is_real(p, node->outputs[0]) &&
           muc_dtype_get(old(p, node->inputs[0])->dtype)->kind != MUC_DTYPE_FLOAT &&
           !old(p, node->inputs[0])->quantization;
}

static bool takes_weights(const pass *p, const muc_node *node)
{
    uint32_t bias = muc_node_input(node, 2);

    return is_constant(p, node->inputs[1]) && (bias == MUC_NO_ID || is_constant(p, bias));
}

static bool takes_filters(const pass *p, const muc_node *node)
{
    return takes_weights(p, node) && takes_window(p, node);
}

static bool takes_slope(const pass *p, const muc_node *node)
{
    return is_constant(p, node->inputs[1]) && !is_constant(p, node->inputs[0]);
}

static bool takes_matrices(const pass *p, const muc_node *node)
{
    return old(p, node->inputs[0])->rank >= 2 && old(p, node->inputs[1])->rank >= 2 &&
           !is_constant(p, node->inputs[0]);
}

/* rows of the last dimension */
static bool takes_columns(const pass *p, const muc_node *node)
{
    return muc_node_integer(node, MUC_KEY_AXIS) + 1 == old(p, node->inputs[0])->rank;
}

static bool takes_few_columns(const pass *p, const muc_node *node)
{
    const muc_tensor *x = old(p, node->inputs[0]);
    uint32_t columns;

    return takes_columns(p, node) && muc_rewrite_dim(&p->r.old, x, x->rank - 1, &columns) &&
           columns > 0 && columns <= MUC_LOG_SOFTMAX_COLUMNS;
}

unsigned muc_int8_wide_input(const pass *p, const muc_node *node)
{
    return muc_op_has(node->op, MUC_OP_COMMUTES) &&
           !muc_tensor_same_dims(old(p, node->inputs[0]), old(p, node->outputs[0]));
}

static bool takes_pair(const pass *p, const muc_node *node)
{
    unsigned wide = muc_int8_wide_input(p, node);

    return muc_tensor_same_dims(old(p, node->inputs[wide]), old(p, node->outputs[0])) &&
           !is_constant(p, node->inputs[wide]);
}

static bool takes_bounds(const pass *p, const muc_node *node)
{
    for (uint32_t i = 1; i < node->input_count; i++)
        if (node->inputs[i] != MUC_NO_ID &&
            (!is_constant(p, node->inputs[i]) || isnan(element(p, node->inputs[i], 0))))
            return false;
    return true;
}

/* whether an input's levels are several times finer than those of all inputs together: scores
 * beside boxes, which then stay float32 if nothing computes with both */
static bool drowns_an_input(const pass *p, const muc_node *node)
{
    const float several = 4; /* 12 dB */
    float step = muc_int8_step(p, node->outputs[0]);

    for (uint32_t i = 0; i < node->input_count; i++)
        if (!is_constant(p, node->inputs[i]) && step > several * muc_int8_step(p, node->inputs[i]))
            return true;
    return false;
}

static bool takes_joined(const pass *p, const muc_node *node)
{
    return !p->last[node->outputs[0]] || !drowns_an_input(p, node);
}

/* what TFLite knows, or the nearest element of a fixed shape */
static bool takes_resize(const pass *p, const muc_node *node)
{
    const muc_tensor *x = old(p, node->inputs[0]), *y = old(p, node->outputs[0]);
    uint32_t unused;

    if (!takes_data(p, node))
        return false;
    if (muc_resize_as_tflite(&p->r.old, node, &unused))
        return true;
    for (uint32_t d = 0; d < x->rank; d++)
        if (!muc_rewrite_dim(&p->r.old, x, d, &unused) ||
            !muc_rewrite_dim(&p->r.old, y, d, &unused))
            return false;
    return muc_node_word_or(node, MUC_KEY_MODE, MUC_WORD_NEAREST) == MUC_WORD_NEAREST &&
           muc_node_word_or(node, MUC_KEY_COORDINATES, MUC_WORD_HALF_PIXEL) !=
               MUC_WORD_TF_CROP_AND_RESIZE;
}

bool muc_int8_norm_rows(const pass *p, const muc_node *node, muc_norm_rows *out)
{
    const muc_tensor *x = old(p, node->inputs[0]);
    uint64_t dims[MUC_GRAPH_MAX_RANK];
    uint32_t axis = muc_norm_axis(node, x->rank);

    for (uint32_t i = 0; i < x->rank; i++) {
        uint32_t dim = 1;

        if (!muc_rewrite_dim(&p->r.old, x, i, &dim) && i >= axis)
            return false;
        dims[i] = dim;
    }
    *out = muc_norm_rows_of(node, x->rank, dims);
    return muc_norm_columns(out) > 0 && muc_norm_columns(out) <= MUC_NORM_COLUMNS;
}

/* rows of constant gains and biases */
static bool takes_norm(const pass *p, const muc_node *node)
{
    muc_norm_rows rows;

    if (!muc_int8_norm_rows(p, node, &rows))
        return false;
    for (uint32_t i = 1; i < node->input_count; i++)
        if (node->inputs[i] != MUC_NO_ID &&
            (!is_constant(p, node->inputs[i]) ||
             (elements_of(p, node->inputs[i]) != 1 &&
              elements_of(p, node->inputs[i]) != muc_norm_gains(&rows))))
            return false;
    return node->output_count == 1 && !muc_node_attribute(node, MUC_KEY_GROUP);
}

/* what INT8 in graph/ops.def says */
static const struct {
    muc_op op;
    form form;
    bool (*takes)(const pass *p, const muc_node *node);
} rows[] = {
#define MUC_OP(id, name, least, most, least_out, most_out, rule, flags, facts, meaning) \
    { .op = MUC_OP_##id, MUC_FACTS facts },
#define INT8(kind, condition) .form = kind, .takes = takes_##condition,
#include "graph/ops.def"
};

form muc_int8_form_of(muc_op op)
{
    return rows[op].form;
}

/* numbers that are not known: not a table's at indices, or two of which truths choose */
static bool reads_computed(const pass *p, const muc_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (is_real(p, node->inputs[i]) && !is_constant(p, node->inputs[i]))
            return true;
    return false;
}

/* whether the node is better off in int8; its data inputs are real and one of them is there in int8
 * already, or it has weights or a table */
static form plan_node(const pass *p, const muc_node *node)
{
    form kind = muc_int8_form_of(node->op);
    bool any = kind == WEIGHTED || !reads_computed(p, node);

    if (kind == FLOAT || node->input_count == 0 || !is_real(p, node->outputs[0]))
        return FLOAT;
    if (kind == RECURRENT)
        return muc_int8_takes_recurrent(p, node) ? RECURRENT : FLOAT;
    for (uint32_t i = 0; i < node->input_count && !(kind == BOUND && i > 0); i++) {
        if (node->inputs[i] == MUC_NO_ID || (kind == SHARED && !is_real(p, node->inputs[i])))
            continue; /* indices */
        if (!is_real(p, node->inputs[i]))
            return FLOAT;
        any = any || p->available[node->inputs[i]];
    }
    return any && rows[node->op].takes(p, node) ? kind : FLOAT;
}

/* relu or clip that alone reads what a node with bounds of its own computes */
const muc_node *muc_int8_bound_after(const pass *p, const muc_node *node)
{
    const muc_node *next;
    bool required;

    form kind = p->forms[node - p->r.old.nodes];

    if ((kind != WEIGHTED && kind != FREE) || !muc_op_takes(node->op, MUC_KEY_CLAMP_MIN, &required))
        return NULL;
    next = muc_rewrite_only_reader(&p->r, node->outputs[0]);
    return next && p->forms[next - p->r.old.nodes] == BOUND ? next : NULL;
}

/* ---- functions of one tensor ---- */

/* relu or clip that stays with a node of sums before it */
static bool keeps_with_sums(const pass *p, const muc_node *node)
{
    const muc_node *before = muc_rewrite_producer(&p->r, node->inputs[0]);
    bool required;

    return muc_int8_form_of(node->op) == BOUND && before &&
           muc_op_takes(before->op, MUC_KEY_CLAMP_MIN, &required) &&
           muc_rewrite_only_reader(&p->r, node->inputs[0]) &&
           p->functions[node->inputs[0]] == node->inputs[0];
}

static void find_functions(pass *p)
{
    const muc_graph *graph = &p->r.old;

    for (uint32_t i = 0; i < graph->tensor_count; i++)
        p->functions[i] = i;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const muc_node *node = &graph->nodes[n];

        if (p->r.needed[n] && node->input_count && !p->kept[n] && !keeps_with_sums(p, node))
            p->functions[node->outputs[0]] = muc_pointwise_function(&p->r, node, p->functions);
    }
}

static bool is_function(const pass *p, const muc_node *node)
{
    return p->functions[node->outputs[0]] != node->outputs[0];
}

/* marks tensors whose elements no node computes with as one: what is done to each alone, to parts
 * of them or in float32 is better off with float32 than with levels that are too coarse for some */
static void find_last(const pass *p)
{
    const muc_graph *graph = &p->r.old;

    for (uint32_t i = 0; i < graph->tensor_count; i++)
        p->last[i] = true;
    for (uint32_t n = graph->node_count; n-- > 0;) {
        const muc_node *node = &graph->nodes[n];
        form kind = muc_int8_form_of(node->op);
        bool sizes, is_part = muc_op_has(node->op, MUC_OP_MOVES) &&
                              muc_op_takes(node->op, MUC_KEY_SIZES, &sizes);
        bool keeps = is_function(p, node) || (kind == SHARED && node->input_count == 1);

        if (!p->r.needed[n] || is_part || (keeps ? p->last[node->outputs[0]] : kind == FLOAT))
            continue;
        for (uint32_t i = 0; i < node->input_count; i++)
            if (node->inputs[i] != MUC_NO_ID)
                p->last[node->inputs[i]] = false;
    }
}

/* marks tensors that others than functions of what they are themselves functions of read */
static void find_results(const pass *p, bool *results)
{
    const muc_graph *graph = &p->r.old;

    for (uint32_t i = 0; i < graph->tensor_count; i++)
        results[i] = p->r.is_output[i];
    for (uint32_t n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; p->r.needed[n] && i < graph->nodes[n].input_count; i++) {
            uint32_t id = graph->nodes[n].inputs[i];

            if (id != MUC_NO_ID && (!is_function(p, &graph->nodes[n]) ||
                                    p->functions[graph->nodes[n].outputs[0]] != p->functions[id]))
                results[id] = true;
        }
}

/* times a positive constant */
static bool is_scaled(const pass *p, const muc_node *node)
{
    unsigned x = is_constant(p, node->inputs[0]) ? 1 : 0;

    return node->op == MUC_OP_MUL && is_constant(p, node->inputs[1 - x]) &&
           element(p, node->inputs[1 - x], 0) >= 1e-6f &&
           element(p, node->inputs[1 - x], 0) <= 1e6f &&
           p->functions[node->outputs[0]] == node->inputs[x];
}

/* a kernel of its own for the tensor that it is a function of */
static bool has_own_form(const pass *p, const muc_node *node)
{
    return (muc_int8_form_of(node->op) == FREE || muc_int8_form_of(node->op) == FIXED) &&
           node->input_count == 1 && p->functions[node->outputs[0]] == node->inputs[0];
}

/* Whether rounding the numbers that a function is of, an input of the network, to 256 levels leaves
 * its results their meaning: of a logarithm of magnitudes, say, it does not. */
static muc_status is_worth_table(const pass *p, uint32_t tensor, bool *worth)
{
    const double least_snr = 300;
    const muc_range *range = &p->ranges->tensors[p->functions[tensor]];
    float numbers[LEVELS], values[LEVELS], least, most;
    double weights = 0, sum = 0, squares = 0, noise = 0;

    muc_range_choose(range, LEVELS, &least, &most);
    for (int i = 0; i < LEVELS; i++)
        numbers[i] = least + (most - least) * (float)i / (LEVELS - 1);
    MUC_TRY(muc_pointwise_evaluate(&p->r, p->functions[tensor], tensor, numbers, LEVELS, values));
    for (int bin = 0; range->counts && bin < MUC_RANGE_BINS; bin++) {
        double x = ((double)bin + 0.5) / (MUC_RANGE_BINS / 2) - 1, w = (double)range->counts[bin];
        double at = (x * (double)range->reach - (double)least) / (double)(most - least);
        int i = (int)fmin(LEVELS - 2, fmax(1, at * (LEVELS - 1)));
        double jump = ((double)values[i + 1] - (double)values[i - 1]) / 2;

        if (w == 0)
            continue;
        weights += w;
        sum += w * (double)values[i];
        squares += w * (double)values[i] * (double)values[i];
        noise += w * jump * jump / 12;
    }
    *worth = weights == 0 || noise * least_snr <= squares - sum * sum / weights;
    return MUC_OK;
}

static muc_status plan_function(const pass *p, const muc_node *node, const bool *results, form *out)
{
    uint32_t y = node->outputs[0], x = p->functions[y];
    bool worth = true;

    *out = FLOAT;
    if (!p->available[x])
        return MUC_OK;
    *out = INNER;
    if (!results[y])
        return MUC_OK;
    *out = has_own_form(p, node) ? muc_int8_form_of(node->op)
           : is_scaled(p, node)  ? SCALED
           : p->functions[y] == node->inputs[0] && muc_int8_form_of(node->op) == BOUND ? BOUND
                                                                                       : TABLE;
    if (*out == TABLE && !is_real(p, y))
        *out = FLOAT;
    if (*out == TABLE && old(p, x)->kind == MUC_TENSOR_INPUT && !p->ranges->assumed)
        MUC_TRY(is_worth_table(p, y, &worth));
    if (!worth)
        *out = FLOAT;
    return MUC_OK;
}

/* steps of functions that stay float stay so, too */
static void keep_steps_float(pass *p)
{
    const muc_graph *graph = &p->r.old;

    for (uint32_t n = graph->node_count; n-- > 0;)
        for (uint32_t i = 0;
             p->r.needed[n] && p->forms[n] == FLOAT && i < graph->nodes[n].input_count; i++) {
            const muc_node *before = graph->nodes[n].inputs[i] == MUC_NO_ID
                                         ? NULL
                                         : muc_rewrite_producer(&p->r, graph->nodes[n].inputs[i]);

            if (before && p->forms[before - graph->nodes] == INNER)
                p->forms[before - graph->nodes] = FLOAT;
        }
}

static muc_status plan_nodes(pass *p, const bool *results)
{
    const muc_graph *graph = &p->r.old;

    for (uint32_t n = 0; n < graph->node_count; n++) {
        const muc_node *node = &graph->nodes[n];

        if (!p->r.needed[n])
            continue;
        if (p->kept[n])
            p->forms[n] = FLOAT;
        else if (node->input_count && is_function(p, node))
            MUC_TRY(plan_function(p, node, results, &p->forms[n]));
        else
            p->forms[n] = plan_node(p, node);
        for (uint32_t i = 0; i < node->output_count; i++)
            p->available[node->outputs[i]] = p->forms[n] != FLOAT || is_from_integers(p, node);
    }
    return MUC_OK;
}

muc_status muc_int8_plan(pass *p)
{
    const muc_graph *graph = &p->r.old;
    muc_status status;
    bool *results;

    for (uint32_t i = 0; i < graph->tensor_count; i++)
        p->available[i] = graph->tensors[i].kind == MUC_TENSOR_INPUT && is_real(p, i);
    find_functions(p);
    find_last(p);
    MUC_TRY(MUC_NEW_ARRAY(p->r.ctx, graph->name, graph->tensor_count, &results));
    find_results(p, results);
    status = plan_nodes(p, results);
    free(results);
    MUC_TRY(status);
    keep_steps_float(p);
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const muc_node *bound = p->r.needed[n] && p->forms[n] != FLOAT
                                    ? muc_int8_bound_after(p, &graph->nodes[n])
                                    : NULL;

        if (bound)
            p->merged[bound - graph->nodes] = true;
    }
    return MUC_OK;
}

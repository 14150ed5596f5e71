/* run_checks.c - what a run refuses: the checks, their numbers and their sentences. */
#include "targets/mcu/lower/run_checks.h"

#include <inttypes.h>
#include <string.h>

#include "targets/mcu/program/c_text.h"
#include "targets/mcu/loops/loop_nest.h"

/* ---- of data ---- */

/* elements first, first + apart, .. of input i are extents[0] * extent + bounds[0] to
 * extents[1] * extent + bounds[1] */
typedef struct wanted {
    uint32_t input, first, apart;
    muc_expr extent;
    int64_t extents[2], bounds[2];
} wanted;

static wanted indices_of(uint32_t input, muc_expr extent)
{
    return (wanted){ input, 0, 1, extent, { -1, 1 }, { 0, -1 } };
}

static wanted numbers_of(uint32_t input, uint32_t element, int64_t least, int64_t most)
{
    return (wanted){ input, element, UINT32_MAX, MUC_EXPR_NONE, { 0, 0 }, { least, most } };
}

/* integer i of 0 and 1 of a bound, if it depends on no length */
static bool known_bound(const muc_mcu_lowering *l, const wanted *w, uint32_t i, int64_t *out)
{
    int64_t extent = 0;

    if (w->extents[i] && !muc_expr_is_const(l->graph->pool, w->extent))
        return false;
    if (w->extents[i])
        extent = muc_expr_get(l->graph->pool, w->extent)->immediate;
    *out = w->extents[i] * extent + w->bounds[i];
    return true;
}

static void print_bound(const muc_mcu_lowering *l, const wanted *w, uint32_t i, muc_text *text)
{
    int64_t number;

    if (known_bound(l, w, i, &number)) {
        muc_text_add(text, "%" PRId64, number);
        return;
    }
    muc_text_add(text, w->extents[i] < 0 ? "-(int64_t)(" : "(int64_t)(");
    muc_mcu_print_expr(l->graph->pool, w->extent, text);
    muc_text_add(text, ")");
    if (w->bounds[i])
        muc_text_add(text, " + %" PRId64, w->bounds[i]);
}

/* of a constant against bounds that are known */
static muc_status check_constant(const muc_mcu_lowering *l, const muc_node *node, const wanted *w,
                                 const int64_t bounds[2])
{
    const muc_tensor *tensor = muc_mcu_input(l, node, w->input);
    uint32_t size = muc_dtype_get(tensor->dtype)->block_bytes;
    uint64_t elements = tensor->bytes / size;

    for (uint64_t i = w->first; i < elements; i += w->apart) {
        int64_t value = muc_dtype_integer(tensor->dtype, tensor->data + i * size);

        if (value < bounds[0] || value > bounds[1])
            return muc_fail(l->ctx, MUC_MALFORMED, l->graph->name, MUC_NO_OFFSET,
                            "node '%s': '%s' holds %" PRId64 " at %" PRIu64 ", expected %" PRId64
                            "..%" PRId64,
                            node->name, tensor->name, value, i, bounds[0], bounds[1]);
    }
    return MUC_OK;
}

/* the lengths that both ends of the loop and the bounds need, as parameters or as arguments */
static void print_lengths(const muc_mcu_lowering *l, uint64_t inputs, const char *type,
                          muc_text *text)
{
    for (uint32_t i = 0; i < MUC_EXPR_MAX_INPUTS; i++)
        if (inputs >> i & 1) {
            muc_text_add(text, ", %s", type);
            muc_mcu_print_dim(l->graph->pool, i, text);
        }
}

static uint64_t lengths_of(const muc_mcu_lowering *l, const muc_tensor *tensor, const wanted *w)
{
    uint64_t inputs =
        w->extent == MUC_EXPR_NONE ? 0 : muc_expr_get(l->graph->pool, w->extent)->inputs;

    for (uint32_t i = 0; i < tensor->rank; i++)
        inputs |= muc_expr_get(l->graph->pool, tensor->dims[i])->inputs;
    return inputs;
}

/* "static int NAME(const int64_t *x)": whether all is as wanted */
static void print_function(const muc_mcu_lowering *l, const muc_tensor *tensor, const wanted *w,
                           const char *name, uint64_t lengths, muc_text *text)
{
    muc_text_add(text, "static int %s(const %s *x", name, muc_mcu_c_type(tensor->dtype));
    print_lengths(l, lengths, "uint32_t ", text);
    muc_text_add(text, ")\n{\n");
    if (w->apart == UINT32_MAX) {
        muc_text_add(text, "    return x[%" PRIu32 "] >= ", w->first);
        print_bound(l, w, 0, text);
        muc_text_add(text, " && x[%" PRIu32 "] <= ", w->first);
        print_bound(l, w, 1, text);
        muc_text_add(text, ";\n}\n\n");
        return;
    }
    muc_text_add(text, "    for (uint32_t i = %" PRIu32 "; i < 1u", w->first);
    for (uint32_t i = 0; i < tensor->rank; i++) {
        muc_text_add(text, " * ");
        muc_mcu_print_expr(l->graph->pool, tensor->dims[i], text);
    }
    muc_text_add(text, "; i += %" PRIu32 ")\n        if (x[i] < ", w->apart);
    print_bound(l, w, 0, text);
    muc_text_add(text, " || x[i] > ");
    print_bound(l, w, 1, text);
    muc_text_add(text, ")\n            return 0;\n    return 1;\n}\n\n");
}

static muc_status add_check(muc_mcu_lowering *l, muc_mcu_step *step, const muc_node *node,
                            const wanted *w)
{
    muc_mcu_program *program = l->program;
    const muc_tensor *tensor = muc_mcu_input(l, node, w->input);
    muc_mcu_check check = { .argument = { .kind = MUC_MCU_READ, .dtype = tensor->dtype } };
    muc_text text = { 0 }, lengths = { 0 };
    int64_t bounds[2];
    uint64_t inputs = lengths_of(l, tensor, w);
    muc_status status;

    if (tensor->kind == MUC_TENSOR_CONST && known_bound(l, w, 0, &bounds[0]) &&
        known_bound(l, w, 1, &bounds[1]))
        return check_constant(l, node, w, bounds);
    program->arguments |= inputs;
    MUC_TRY(muc_mcu_input_value(l, node, w->input, &check.argument.value));
    program->values[check.argument.value].used = true;
    MUC_TRY(muc_arena_format(l->ctx, &program->arena, &check.function, "%s_fits_%" PRIu32,
                             step->name, step->check_count));
    check.tensor = tensor;
    print_lengths(l, inputs, "", &lengths);
    print_function(l, tensor, w, check.function, inputs, &text);
    muc_text_add(&text, "%s", step->text);
    status = muc_text_status(l->ctx, &text);
    if (status == MUC_OK)
        status = muc_arena_string(l->ctx, &program->arena, text.data, text.size, &step->text);
    if (status == MUC_OK)
        status = muc_arena_string(l->ctx, &program->arena, lengths.data ? lengths.data : "",
                                  lengths.size, &check.lengths);
    if (status == MUC_OK)
        status = muc_arena_grow(l->ctx, &program->arena, step->check_count + (size_t)1,
                                sizeof(check), &step->check_capacity, (void **)&step->checks);
    if (status == MUC_OK)
        step->checks[step->check_count++] = check;
    muc_text_free(&text);
    muc_text_free(&lengths);
    return status;
}

/* of a tuple's indices each has an extent of its own */
static uint32_t want_tuples(const muc_mcu_lowering *l, const muc_node *node, wanted *out)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *index = muc_mcu_input(l, node, 1);
    uint32_t first = (uint32_t)muc_node_integer_or(node, MUC_KEY_BATCH_DIMS, 0);
    uint32_t count = muc_mcu_dim(l, index, index->rank - 1);

    for (uint32_t i = 0; i < count; i++) {
        out[i] = indices_of(1, x->dims[first + i]);
        out[i].first = i;
        out[i].apart = count;
    }
    return count;
}

/* what the reference's kernels want of their data; gives how many */
static uint32_t want(const muc_mcu_lowering *l, const muc_node *node,
                     wanted out[MUC_GRAPH_MAX_RANK])
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    const muc_attribute *along = muc_node_attribute(node, MUC_KEY_AXIS);
    uint32_t axis;

    if (muc_op_get(node->op)->flags & MUC_OP_INDEXES) {
        if (!along)
            return want_tuples(l, node, out);
        out[0] = indices_of(1, x->dims[along->value.integer]);
        return 1;
    }
    switch ((unsigned)node->op) {
    case MUC_OP_EMBED:
        out[0] = indices_of(0, muc_mcu_input(l, node, 1)->dims[0]);
        out[0].extents[0] = 0;
        return !l->program->lm; /* a language model's tokenizer has no others */
    case MUC_OP_REVERSE_SEQUENCE:
        axis = (uint32_t)muc_node_integer(node, MUC_KEY_TIME_AXIS);
        out[0] = (wanted){ 1, 0, 1, x->dims[axis], { 0, 1 }, { 0, 0 } };
        return 1;
    case MUC_OP_RNN:
    case MUC_OP_GRU:
    case MUC_OP_LSTM:
        axis = muc_node_integer_or(node, MUC_KEY_BATCH_FIRST, 0) == 1;
        out[0] = (wanted){ 4, 0, 1, x->dims[axis], { 0, 1 }, { 0, 0 } };
        return muc_mcu_input(l, node, 4) != NULL;
    case MUC_OP_INTEGER_SOFTMAX: /* muc_quantlib_softmax_takes */
        out[0] = numbers_of(1, 0, -(1 << 15), 1 << 15);
        out[1] = numbers_of(1, 1, 0, (1 << 30) - 1);
        out[2] = numbers_of(1, 2, 1, 1 << 15);
        return 3;
    case MUC_OP_INTEGER_GELU: /* muc_quantlib_gelu_takes */
        out[0] = numbers_of(1, 0, -(1 << 15), 0);
        out[1] = numbers_of(1, 1, 1 - (1 << 30), (1 << 30) - 1);
        return 2;
    default:
        return 0;
    }
}

muc_status muc_mcu_add_checks(muc_mcu_lowering *l, const muc_node *node, uint32_t first)
{
    wanted all[MUC_GRAPH_MAX_RANK];
    uint32_t count = want(l, node, all);

    for (uint32_t i = 0; i < count && first < l->program->step_count; i++)
        MUC_TRY(add_check(l, &l->program->steps[first], node, &all[i]));
    return MUC_OK;
}

/* ---- of lengths ---- */

/* the next argument of the run from *i on */
static const muc_expr_input *next_argument(const muc_mcu_program *program, uint32_t *i)
{
    const muc_expr_pool *pool = program->graph->pool;

    while (*i < muc_expr_input_count(pool) && !(program->arguments >> *i & 1))
        ++*i;
    return *i < muc_expr_input_count(pool) ? muc_expr_get_input(pool, (*i)++) : NULL;
}

/* the next promise about the run's arguments from *i on */
static const muc_expr_promise *next_promise(const muc_mcu_program *program, uint32_t *i)
{
    const muc_expr_pool *pool = program->graph->pool;
    const muc_expr_promise *promise;

    while ((promise = muc_expr_get_promise(pool, *i))) {
        uint64_t inputs =
            muc_expr_get(pool, promise->a)->inputs | muc_expr_get(pool, promise->b)->inputs;

        ++*i;
        if (!(inputs & ~program->arguments))
            return promise;
    }
    return NULL;
}

bool muc_mcu_may_refuse(const muc_mcu_program *program)
{
    for (uint32_t i = 0; i < program->step_count; i++)
        if (program->steps[i].check_count)
            return true;
    return program->arguments != 0;
}

void muc_mcu_emit_first_checks(const muc_mcu_program *program, const char *before,
                               const char *after, muc_text *text)
{
    const muc_expr_pool *pool = program->graph->pool;
    const muc_expr_promise *promise;
    const muc_expr_input *input;
    unsigned number = 0;

    if (!program->arguments)
        return;
    for (uint32_t i = 0; (input = next_argument(program, &i));) {
        muc_text_add(text, "    if (");
        if (input->lo)
            muc_text_add(text, MUC_MCU_DIM "%s < %" PRIu32 "u || ", input->name, input->lo);
        muc_text_add(text, MUC_MCU_DIM "%s > %" PRIu32 "u", input->name, input->hi);
        if (input->multiple > 1)
            muc_text_add(text, " || " MUC_MCU_DIM "%s %% %" PRIu32 "u != 0", input->name,
                         input->multiple);
        muc_text_add(text, ")%s%u%s", before, ++number, after);
    }
    for (uint32_t i = 0; (promise = next_promise(program, &i));) {
        muc_text_add(text, "    if (");
        muc_mcu_print_expr(pool, promise->a, text);
        muc_text_add(text, promise->equal ? " != " : " > ");
        muc_mcu_print_expr(pool, promise->b, text);
        muc_text_add(text, ")%s%u%s", before, ++number, after);
    }
    muc_text_add(text, "\n");
}

/* the number of a step's first check */
static unsigned first_number(const muc_mcu_program *program, const muc_mcu_step *step)
{
    unsigned number = 1;

    for (uint32_t i = 0; next_argument(program, &i);)
        number++;
    for (uint32_t i = 0; program->arguments && next_promise(program, &i);)
        number++;
    for (const muc_mcu_step *at = program->steps; at < step; at++)
        number += at->check_count;
    return number;
}

void muc_mcu_emit_checks(const muc_mcu_program *program, const muc_mcu_step *step, muc_text *text)
{
    for (uint32_t i = 0; i < step->check_count; i++) {
        const muc_mcu_check *check = &step->checks[i];

        muc_text_add(text, "    if (!%s(", check->function);
        muc_mcu_print_argument(program, &check->argument, text);
        muc_text_add(text, "%s))\n        return %u;\n", check->lengths,
                     first_number(program, step) + i);
    }
}

/* a string of C on a line of its own; names may hold anything */
static void end_sentence(muc_text *line, muc_text *text)
{
    muc_text visible = { 0 };

    muc_text_add_visible(&visible, line->size ? line->data : "");
    muc_text_add(text, "    \"");
    for (size_t i = 0; i < visible.size; i++)
        muc_text_add(text, strchr("\"\\?", visible.data[i]) ? "\\%c" : "%c", visible.data[i]);
    muc_text_add(text, "\",\n");
    text->failed |= line->failed || visible.failed;
    muc_text_free(&visible);
    line->size = 0;
}

void muc_mcu_emit_refusals(const muc_mcu_program *program, muc_text *text)
{
    const muc_expr_pool *pool = program->graph->pool;
    const muc_expr_promise *promise;
    const muc_expr_input *input;
    muc_text line = { 0 };

    for (uint32_t i = 0; (input = next_argument(program, &i));) {
        muc_text_add(&line, "%s is not in %" PRIu32 "..%" PRIu32, input->name, input->lo,
                     input->hi);
        end_sentence(&line, text);
    }
    for (uint32_t i = 0; program->arguments && (promise = next_promise(program, &i));) {
        muc_text_add(&line, "%s%s", promise->what ? promise->what : "", promise->what ? ": " : "");
        muc_expr_print(pool, promise->a, &line);
        muc_text_add(&line, promise->equal ? " is not " : " is more than ");
        muc_expr_print(pool, promise->b, &line);
        end_sentence(&line, text);
    }
    for (uint32_t k = 0; k < program->step_count; k++) {
        const muc_mcu_step *step = &program->steps[k];

        for (uint32_t i = 0; i < step->check_count; i++) {
            muc_text_add(&line, "node '%s': '%s' holds what is out of range", step->node->name,
                         step->checks[i].tensor->name);
            end_sentence(&line, text);
        }
    }
    muc_text_free(&line);
}

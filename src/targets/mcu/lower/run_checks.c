/* run_checks.c - what a run refuses: the checks, their numbers and their sentences. */
#include "targets/mcu/lower/run_checks.h"

#include <inttypes.h>
#include <string.h>

#include "graph/bounds.h"
#include "targets/mcu/program/c_text.h"
#include "targets/mcu/loops/loop_nest.h"

/* ---- of data ---- */

/* a bound, with the expression of the dimension that it counts */
typedef struct wanted {
    muc_bound bound;
    muc_expr extent;
} wanted;

/* integer i of 0 and 1 of a bound, if it depends on no length */
static bool known_bound(const muc_mcu_lowering *l, const wanted *w, uint32_t i, int64_t *out)
{
    int64_t extent = 0;

    if (w->bound.extents[i] && !muc_expr_is_const(l->graph->pool, w->extent))
        return false;
    if (w->bound.extents[i])
        extent = muc_expr_get(l->graph->pool, w->extent)->immediate;
    *out = w->bound.extents[i] * extent + w->bound.ends[i];
    return true;
}

static void print_bound(const muc_mcu_lowering *l, const wanted *w, uint32_t i, muc_text *text)
{
    int64_t number;

    if (known_bound(l, w, i, &number)) {
        muc_text_add(text, "%" PRId64, number);
        return;
    }
    muc_text_add(text, w->bound.extents[i] < 0 ? "-(int64_t)(" : "(int64_t)(");
    muc_mcu_print_expr(l->graph->pool, w->extent, text);
    muc_text_add(text, ")");
    if (w->bound.ends[i])
        muc_text_add(text, " + %" PRId64, w->bound.ends[i]);
}

/* of a constant against bounds that are known */
static muc_status check_constant(const muc_mcu_lowering *l, const muc_node *node, const wanted *w,
                                 const int64_t bounds[2])
{
    const muc_tensor *tensor = muc_mcu_input(l, node, w->bound.input);
    uint32_t size = muc_dtype_get(tensor->dtype)->block_bytes;
    uint64_t elements = tensor->bytes / size;

    for (uint64_t i = w->bound.first; i < elements; i += w->bound.apart) {
        int64_t value = muc_dtype_integer(tensor->dtype, tensor->data + i * size);

        if (value < bounds[0] || value > bounds[1])
            return muc_fail_on(muc_node_subject(l->ctx, l->graph, node), MUC_MALFORMED,
                               "'%s' holds %" PRId64 " at %" PRIu64 ", expected %" PRId64
                               "..%" PRId64,
                               tensor->name, value, i, bounds[0], bounds[1]);
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
    uint64_t inputs = w->bound.extents[1] ? muc_expr_get(l->graph->pool, w->extent)->inputs : 0;

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
    if (w->bound.apart == UINT32_MAX) {
        muc_text_add(text, "    return x[%" PRIu32 "] >= ", w->bound.first);
        print_bound(l, w, 0, text);
        muc_text_add(text, " && x[%" PRIu32 "] <= ", w->bound.first);
        print_bound(l, w, 1, text);
        muc_text_add(text, ";\n}\n\n");
        return;
    }
    muc_text_add(text, "    for (uint32_t i = %" PRIu32 "; i < 1u", w->bound.first);
    for (uint32_t i = 0; i < tensor->rank; i++) {
        muc_text_add(text, " * ");
        muc_mcu_print_expr(l->graph->pool, tensor->dims[i], text);
    }
    muc_text_add(text, "; i += %" PRIu32 ")\n        if (x[i] < ", w->bound.apart);
    print_bound(l, w, 0, text);
    muc_text_add(text, " || x[i] > ");
    print_bound(l, w, 1, text);
    muc_text_add(text, ")\n            return 0;\n    return 1;\n}\n\n");
}

static muc_status add_check(muc_mcu_lowering *l, muc_mcu_step *step, const muc_node *node,
                            const wanted *w)
{
    muc_mcu_program *program = l->program;
    const muc_tensor *tensor = muc_mcu_input(l, node, w->bound.input);
    muc_mcu_check check = { .argument = { .kind = MUC_MCU_READ, .dtype = tensor->dtype } };
    muc_text text = { 0 }, lengths = { 0 };
    int64_t bounds[2];
    uint64_t inputs = lengths_of(l, tensor, w);
    muc_status status;

    if (tensor->kind == MUC_TENSOR_CONST && known_bound(l, w, 0, &bounds[0]) &&
        known_bound(l, w, 1, &bounds[1]))
        return check_constant(l, node, w, bounds);
    program->arguments |= inputs;
    MUC_TRY(muc_mcu_input_value(l, node, w->bound.input, &check.argument.value));
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

muc_status muc_mcu_add_checks(muc_mcu_lowering *l, const muc_node *node, uint32_t first)
{
    const muc_tensor *index = node->input_count > 1 ? muc_mcu_input(l, node, 1) : NULL;
    uint32_t tuple = index && index->rank ? muc_mcu_dim(l, index, index->rank - 1) : 0, count;
    muc_bound bounds[MUC_MOST_BOUNDS];

    if (node->op == MUC_OP_EMBED && l->program->lm) /* whose tokenizer has no others */
        return MUC_OK;
    count = muc_bounds_of(node, tuple, bounds);
    for (uint32_t i = 0; i < count && first < l->program->step_count; i++) {
        wanted w = { bounds[i], MUC_EXPR_NONE };

        if (w.bound.extents[1])
            w.extent = muc_mcu_input(l, node, w.bound.of)->dims[w.bound.dim];
        MUC_TRY(add_check(l, &l->program->steps[first], node, &w));
    }
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

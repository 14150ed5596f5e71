/* emit_main.c - main.c of a network: an example, and what muc run builds. It reads the lengths that
 * a run decides, the inputs and what the caches hold, runs once, and writes the outputs; of a
 * network with another state it does so as long as there is input.
 */
#include <inttypes.h>
#include <string.h>

#include "targets/mcu/lower/run_checks.h"
#include "targets/mcu/emit/emit_program.h"
#include "targets/mcu/loops/loop_nest.h"

bool muc_mcu_find_cache(const muc_mcu_program *program, uint32_t value, muc_mcu_cache *out)
{
    const muc_graph *graph = program->graph;

    if (program->values[value].kind != MUC_MCU_STATE_DATA)
        return false;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const muc_node *node = &graph->nodes[i];

        if (node->op != MUC_OP_APPEND || program->value_of[node->inputs[0]] != value)
            continue;
        *out = (muc_mcu_cache){ .axis = (uint32_t)muc_node_integer(node, MUC_KEY_AXIS),
                                .rows = muc_node_expr(node, MUC_KEY_POSITION) };
        return true;
    }
    return false;
}

bool muc_mcu_has_cache(const muc_mcu_program *program)
{
    muc_mcu_cache cache;

    for (uint32_t i = 0; i < program->value_count; i++)
        if (muc_mcu_find_cache(program, i, &cache))
            return true;
    return false;
}

/* the product of dimensions from..to-1: "a * b * " */
static void print_dims(const muc_mcu_program *program, const muc_tensor *tensor, uint32_t from,
                       uint32_t to, muc_text *text)
{
    for (uint32_t i = from; i < to; i++) {
        muc_mcu_print_expr(program->graph->pool, tensor->dims[i], text);
        muc_text_add(text, " * ");
    }
}

static uint32_t element_bytes(const muc_tensor *tensor)
{
    return muc_dtype_get(tensor->dtype)->block_bytes;
}

/* the bytes of a port in this run */
static void print_bytes(const muc_mcu_program *program, const muc_mcu_value *value, muc_text *text)
{
    const muc_tensor *tensor = value->tensor;

    for (uint32_t i = 0; i < tensor->rank; i++)
        if (!muc_expr_is_const(program->graph->pool, tensor->dims[i])) {
            muc_text_add(text, "(size_t)");
            print_dims(program, tensor, 0, tensor->rank, text);
            muc_text_add(text, "%" PRIu32 "u", element_bytes(tensor));
            return;
        }
    muc_mcu_print_prefix(program, value, text);
    muc_text_add(text, "BYTES");
}

/* "blocks, bytes from block to block, bytes of each", of `rows` rows along an axis of a state */
static void print_blocks(const muc_mcu_program *program, const muc_tensor *state, uint32_t axis,
                         muc_expr rows, muc_text *text)
{
    muc_text_add(text, "(size_t)");
    print_dims(program, state, 0, axis, text);
    muc_text_add(text, "1u, (size_t)");
    print_dims(program, state, axis, state->rank, text);
    muc_text_add(text, "%" PRIu32 "u,\n               (size_t)(", element_bytes(state));
    muc_mcu_print_expr(program->graph->pool, rows, text);
    muc_text_add(text, ") * ");
    print_dims(program, state, axis + 1, state->rank, text);
    muc_text_add(text, "%" PRIu32 "u))\n        return 1;\n", element_bytes(state));
}

bool muc_mcu_streams(const muc_mcu_program *program)
{
    return muc_mcu_has_state(program) && !muc_mcu_has_cache(program) && !program->lm &&
           !program->arguments && program->inputs.count > 0;
}

static void emit_reads(const muc_mcu_program *program, muc_text *text)
{
    for (uint32_t i = 0; i < program->inputs.count; i++) {
        const muc_mcu_value *value = &program->values[program->inputs.values[i]];

        muc_text_add(text, "    if (!BOARD_READ(inputs.%s, ", value->name);
        print_bytes(program, value, text);
        muc_text_add(text, "))\n        return %d;\n", i > 0 || !muc_mcu_streams(program));
    }
    for (uint32_t i = 0; i < program->value_count; i++) {
        const muc_mcu_value *value = &program->values[i];
        muc_mcu_cache cache;

        if (!muc_mcu_find_cache(program, i, &cache))
            continue;
        muc_text_add(text, "    if (!read_rows(arena + ");
        muc_mcu_print_prefix(program, value, text);
        muc_text_add(text, "OFFSET, ");
        print_blocks(program, value->tensor, cache.axis, cache.rows, text);
    }
}

/* the dimension of which a state has room for more rows than its output has */
static uint32_t grown_axis(const muc_tensor *output, const muc_tensor *state)
{
    uint32_t axis = 0;

    while (axis + 1 < output->rank && output->dims[axis] == state->dims[axis])
        axis++;
    return axis;
}

static void emit_writes(const muc_mcu_program *program, muc_text *text)
{
    for (uint32_t i = 0; i < program->outputs.count; i++) {
        const muc_mcu_value *value = &program->values[program->outputs.values[i]];

        if (value->layout) {
            uint32_t axis = grown_axis(value->tensor, value->layout);

            muc_text_add(text, "    if (!write_rows(outputs.%s, ", value->name);
            print_blocks(program, value->layout, axis, value->tensor->dims[axis], text);
            continue;
        }
        muc_text_add(text, "    if (!BOARD_WRITE(outputs.%s, ", value->name);
        print_bytes(program, value, text);
        muc_text_add(text, "))\n        return 1;\n");
    }
}

static void emit_lengths(const muc_mcu_program *program, muc_text *text)
{
    unsigned word = 1;

    for (uint32_t i = 0; i < MUC_EXPR_MAX_INPUTS; i++)
        if (program->arguments >> i & 1) {
            muc_text_add(text, "    const uint32_t ");
            muc_mcu_print_dim(program->graph->pool, i, text);
            muc_text_add(text, " = BOARD_LENGTH(argc, argv, %u);\n", word++);
        }
}

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

/* around the number of a check that failed */
static const char before_refused[] = " {\n        BOARD_REFUSE(";
static const char after_refused[] = ");\n        return " TEXT(MUC_MCU_REFUSED) ";\n    }\n";

static void emit_call(const muc_mcu_program *program, muc_text *text)
{
    bool refuses = muc_mcu_may_refuse(program);

    muc_text_add(text, "    %s%s_run(arena", refuses ? "refused = " : "", program->name);
    for (uint32_t i = 0; i < MUC_EXPR_MAX_INPUTS; i++)
        if (program->arguments >> i & 1) {
            muc_text_add(text, ", ");
            muc_mcu_print_dim(program->graph->pool, i, text);
        }
    muc_text_add(text, ");\n");
    if (refuses)
        muc_text_add(text, "    if (refused)%srefused%s", before_refused, after_refused);
}

/* a board without files brings a header with these; its lengths may come from anywhere */
static const char input_and_output[] =
    "#define BOARD_READ(data, bytes) (fread(data, 1, bytes, stdin) == (bytes))\n"
    "#define BOARD_WRITE(data, bytes) (fwrite(data, 1, bytes, stdout) == (bytes))\n"
    "#define BOARD_BEGIN() (void)0\n"
    "#define BOARD_END() (void)0\n";

static const char length_of_command_line[] =
    "#define BOARD_LENGTH(argc, argv, i) \\\n"
    "    ((argc) > (i) ? (uint32_t)strtoul((argv)[i], NULL, 10) : 0)\n";

/* parts of a cache, which has room for more rows than a run has */
static const char rows_functions[] =
    "static int read_rows(uint8_t *to, size_t blocks, size_t pitch, size_t bytes)\n"
    "{\n"
    "    for (; blocks; blocks--, to += pitch)\n"
    "        if (!BOARD_READ(to, bytes))\n"
    "            return 0;\n"
    "    return 1;\n"
    "}\n\n"
    "static int write_rows(const void *from, size_t blocks, size_t pitch, size_t bytes)\n"
    "{\n"
    "    for (const uint8_t *at = from; blocks; blocks--, at += pitch)\n"
    "        if (!BOARD_WRITE(at, bytes))\n"
    "            return 0;\n"
    "    return 1;\n"
    "}\n\n";

static void emit_board(const muc_mcu_program *program, muc_text *text)
{
    muc_text_add(text, "#ifdef BOARD_HEADER\n#include BOARD_HEADER\n#else\n#include <stdio.h>\n%s",
                 program->arguments ? "#include <stdlib.h>\n" : "");
    muc_text_add(text, "%s%s", input_and_output, program->arguments ? length_of_command_line : "");
    if (muc_mcu_may_refuse(program)) {
        muc_text_add(text,
                     "#define BOARD_REFUSE(number) fprintf(stderr, \"%s: %%s\\n\", "
                     "refusals[(number) - 1])\n\nstatic const char *const refusals[] = {\n",
                     program->name);
        muc_mcu_emit_refusals(program, text);
        muc_text_add(text,
                     "};\n#endif\n#ifndef BOARD_REFUSE\n#define BOARD_REFUSE(number) (void)0\n");
    }
    muc_text_add(text, "#endif\n\nstatic uint8_t arena[");
    muc_mcu_print_prefix(program, NULL, text);
    muc_text_add(text, "ARENA_BYTES] __attribute__((aligned(");
    muc_mcu_print_prefix(program, NULL, text);
    muc_text_add(text, "ARENA_ALIGNMENT)));\n\n");
}

static void emit_round(const muc_mcu_program *program, muc_text *text)
{
    emit_reads(program, text);
    muc_text_add(text, "    BOARD_BEGIN();\n");
    emit_call(program, text);
    muc_text_add(text, "    BOARD_END();\n");
    emit_writes(program, text);
}

/* the round again and again: its lines one level deeper */
static void emit_rounds(const muc_mcu_program *program, muc_text *text)
{
    muc_text round = { 0 };

    emit_round(program, &round);
    muc_text_add(text, "    for (;;) {\n");
    for (const char *line = round.data ? round.data : ""; *line;) {
        size_t length = strcspn(line, "\n") + 1;

        muc_text_add(text, "    %.*s", (int)length, line);
        line += length;
    }
    muc_text_add(text, "    }\n");
    text->failed |= round.failed;
    muc_text_free(&round);
}

void muc_mcu_emit_main(const muc_mcu_program *program, muc_text *text)
{
    const char *name = program->name;

    muc_text_add(text,
                 "/* main.c - an example: runs the network %s Inputs come from standard input, "
                 "outputs go to\n * standard output, one after another, as they lie in memory.%s%s "
                 "*/\n#include \"%s.h\"\n\n",
                 muc_mcu_streams(program) ? "as long as there is input.\n *" : "once.",
                 program->arguments ? " The run's lengths are the command line's arguments." : "",
                 muc_mcu_has_cache(program) ? "\n * What the caches hold comes after the inputs."
                                            : "",
                 name);
    emit_board(program, text);
    if (muc_mcu_has_cache(program))
        muc_text_add(text, "%s", rows_functions);
    muc_text_add(text, "int main(%s)\n{\n", program->arguments ? "int argc, char **argv" : "void");
    emit_lengths(program, text);
    muc_text_add(text, "    %s_inputs inputs;\n    %s_outputs outputs;\n%s\n", name, name,
                 muc_mcu_may_refuse(program) ? "    int refused;\n" : "");
    /* before as much is read as they say */
    muc_mcu_emit_first_checks(program, before_refused, after_refused, text);
    muc_text_add(text, "    %s_init(arena, &inputs, &outputs);\n", name);
    if (muc_mcu_has_state(program))
        muc_text_add(text, "    %s_reset(arena);\n", name);
    if (muc_mcu_streams(program)) {
        emit_rounds(program, text);
        muc_text_add(text, "}\n");
        return;
    }
    emit_round(program, text);
    muc_text_add(text, "    return 0;\n}\n");
}

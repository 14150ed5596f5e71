/* emit_program.c - NAME.c: constants, a function or descriptor for each step, then the run. */
#include "targets/mcu/emit/emit_program.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "targets/mcu/tiles/chains.h"
#include "targets/mcu/lower/run_checks.h"
#include "targets/mcu/loops/loop_nest.h"
#include "targets/mcu/program/runtime_files.h"
#include "targets/mcu/tiles/tiles.h"
#include "targets/mcu/emit/weights_file.h"

enum { LINE = 100, INDENT = 4 };

/* ---- constants ---- */

static void print_element(muc_text *text, muc_dtype dtype, const uint8_t *at)
{
    uint64_t wide;
    uint32_t word;
    double real;
    float single;

    switch (muc_dtype_get(dtype)->block_bytes) {
    case 1:
        muc_text_add(text, "%d", dtype == MUC_I8 ? (int8_t)*at : *at);
        return;
    case 2:
        muc_text_add(text, "%d", dtype == MUC_I16 ? (int16_t)muc_load_u16(at) : muc_load_u16(at));
        return;
    case 4:
        word = muc_load_u32(at);
        memcpy(&single, &word, sizeof(single));
        if (dtype == MUC_F32)
            muc_mcu_print_real(text, (double)single, false);
        else if (dtype == MUC_U32)
            muc_text_add(text, "%" PRIu32 "u", word);
        else if (word == 0x80000000u)
            muc_text_add(text, "INT32_MIN");
        else
            muc_text_add(text, "%" PRId32, (int32_t)word);
        return;
    default:
        wide = muc_load_u64(at);
        memcpy(&real, &wide, sizeof(real));
        if (dtype == MUC_F64)
            muc_mcu_print_real(text, real, true);
        else if (dtype == MUC_U64)
            muc_text_add(text, "UINT64_C(%" PRIu64 ")", wide);
        else if (wide == UINT64_C(1) << 63)
            muc_text_add(text, "INT64_MIN");
        else
            muc_text_add(text, "INT64_C(%" PRId64 ")", (int64_t)wide);
    }
}

/* as many elements as a line holds */
static void print_elements(muc_text *text, muc_dtype dtype, const uint8_t *data, uint64_t bytes)
{
    uint32_t size = muc_dtype_get(dtype)->block_bytes;
    size_t line = text->size, most = 0;

    for (uint64_t at = 0; at < bytes; at += size) {
        size_t before = text->size;

        if (at == 0 || before - line + most > LINE) {
            muc_text_add(text, "%s%*s", at ? "\n" : "", INDENT, "");
            line = text->size - INDENT;
        } else {
            muc_text_add(text, " ");
        }
        before = text->size;
        print_element(text, dtype, data + at);
        muc_text_add(text, ",");
        if (text->size - before + 1 > most)
            most = text->size - before + 1;
    }
    muc_text_add(text, "\n");
}

static void emit_constants(const muc_mcu_program *program, muc_text *text)
{
    for (uint32_t i = 0; i < program->value_count; i++) {
        const muc_mcu_value *value = &program->values[i];
        muc_dtype dtype = muc_mcu_element_type(value);

        if (value->kind != MUC_MCU_CONST || value->view_of != MUC_NO_ID || !value->used)
            continue;
        if (value->tensor) {
            muc_text_add(text, "/* ");
            muc_mcu_print_comment(text, value->tensor->name);
            muc_text_add(text, " */\n");
        }
        muc_text_add(text, "static const %s %s[%" PRIu64 "] MUR_ALIGNED = {\n",
                     muc_mcu_c_type(dtype), value->name,
                     value->bytes / muc_dtype_get(dtype)->block_bytes);
        print_elements(text, dtype, value->data, value->bytes);
        muc_text_add(text, "};\n\n");
    }
}

/* ---- the run ---- */

const char *muc_mcu_origin(const muc_mcu_program *program)
{
    const char *slash = strrchr(program->graph->name, '/');

    return slash ? slash + 1 : program->graph->name;
}

void muc_mcu_print_comment(muc_text *text, const char *name)
{
    muc_text visible = { 0 };
    char before = ' ';

    muc_text_add_visible(&visible, name);
    for (size_t i = 0; i < visible.size; i++) {
        bool is_mark =
            (before == '*' && visible.data[i] == '/') || (before == '/' && visible.data[i] == '*');

        before = visible.data[i];
        muc_text_add(text, is_mark ? " %c" : "%c", before);
    }
    text->failed |= visible.failed;
    muc_text_free(&visible);
}

static bool is_small(const muc_mcu_program *program, uint32_t value)
{
    uint64_t offset;

    return program->values[muc_mcu_root(program, value, &offset)].is_small;
}

/* the value of a node's output that a trace is told of, or MUC_NO_ID */
static uint32_t traced(const muc_mcu_program *program, const muc_node *node, uint32_t output)
{
    uint32_t id = program->value_of[node->outputs[output]];

    if (id != MUC_NO_ID && (program->values[id].layout || is_small(program, id)))
        return MUC_NO_ID;
    return id;
}

uint32_t muc_mcu_trace_count(const muc_mcu_program *program, const muc_mcu_step *step)
{
    uint32_t index = (uint32_t)(step - program->steps), count = 0;

    if (index >= program->loop.first && index + 1 < program->loop.end)
        return 0; /* its results are never there as a whole */
    for (uint32_t i = 0; step->node && i < step->node->output_count; i++)
        count += traced(program, step->node, i) != MUC_NO_ID;
    return count;
}

static void emit_call(const muc_mcu_program *program, const muc_mcu_step *step, unsigned indent,
                      muc_text *text)
{
    if (step->node) {
        const muc_tensor *output = &program->graph->tensors[step->node->outputs[0]];

        muc_text_add(text, "%*s/* ", (int)indent, "");
        muc_mcu_print_comment(text, step->node->name);
        muc_text_add(text, ": ");
        muc_tensor_print_shape(program->graph, output, text);
        muc_text_add(text, " */\n");
    }
    muc_text_add(text, "%*s%s(", (int)indent, "", step->function);
    for (uint32_t i = 0; i < step->argument_count; i++) {
        muc_text_add(text, i ? ", " : "");
        muc_mcu_print_argument(program, &step->arguments[i], text);
    }
    muc_text_add(text, ");\n");
}

static void emit_trace(const muc_mcu_program *program, const muc_mcu_step *step, muc_text *text)
{
    if (!step->node)
        return;
    for (uint32_t i = 0; i < step->node->output_count; i++) {
        uint32_t id = traced(program, step->node, i);
        const muc_mcu_argument result = { .kind = MUC_MCU_READ, .value = id, .dtype = MUC_U8 };

        if (id == MUC_NO_ID)
            continue;
        muc_text_add(text, "    MUR_TRACE(%" PRIu32 ", ", step->node->outputs[i]);
        muc_mcu_print_argument(program, &result, text);
        muc_text_add(text, ", %" PRIu64 ");\n", program->values[id].bytes);
    }
}

/* of the steps of a loop, only the last one's result is ever there as a whole */
static void emit_loop(const muc_mcu_program *program, muc_text *text)
{
    const muc_mcu_loop *loop = &program->loop;

    muc_text_add(text,
                 "    /* %" PRIu32 " rows of %" PRIu32 " patches */\n"
                 "    for (unsigned patch = 0; patch < %" PRIu32 "u; patch++) {\n",
                 loop->grid_rows, loop->grid_columns, loop->turns);
    for (uint32_t i = loop->first; i < loop->end; i++) {
        emit_call(program, &program->steps[i], 2 * INDENT, text);
        muc_text_add(text, "%*sMUR_STEP();\n", 2 * INDENT, "");
    }
    muc_text_add(text, "    }\n");
    emit_trace(program, &program->steps[loop->end - 1], text);
}

static void emit_steps(const muc_mcu_program *program, muc_text *text)
{
    const muc_mcu_loop *loop = &program->loop;

    for (uint32_t i = 0; i < program->step_count; i++) {
        const muc_mcu_chain *chain = muc_mcu_chain_of(program, i);

        if (loop->turns && i == loop->first) {
            emit_loop(program, text);
            i = loop->end - 1;
            continue;
        }
        if (chain) {
            for (uint32_t j = i; j < chain->end; j++)
                muc_mcu_emit_checks(program, &program->steps[j], text);
            muc_mcu_emit_chain_call(program, chain, text);
            for (; i < chain->end; i++)
                emit_trace(program, &program->steps[i], text);
            i = chain->end - 1;
            continue;
        }
        muc_mcu_emit_checks(program, &program->steps[i], text);
        emit_call(program, &program->steps[i], INDENT, text);
        emit_trace(program, &program->steps[i], text);
    }
}

bool muc_mcu_has_state(const muc_mcu_program *program)
{
    for (uint32_t i = 0; i < program->value_count; i++)
        if (program->values[i].kind == MUC_MCU_STATE_DATA)
            return true;
    return false;
}

void muc_mcu_print_run(const muc_mcu_program *program, const char *arena, muc_text *text)
{
    muc_text_add(text, "%s %s_run(void *%s", muc_mcu_may_refuse(program) ? "int" : "void",
                 program->name, arena);
    for (uint32_t i = 0; i < MUC_EXPR_MAX_INPUTS; i++)
        if (program->arguments >> i & 1) {
            muc_text_add(text, ", uint32_t ");
            muc_mcu_print_dim(program->graph->pool, i, text);
        }
    muc_text_add(text, ")");
}

static void emit_reset(const muc_mcu_program *program, muc_text *text)
{
    if (!muc_mcu_has_state(program))
        return;
    muc_text_add(text, "void %s_reset(void *memory)\n{\n    uint8_t *const arena = memory;\n\n",
                 program->name);
    for (uint32_t i = 0; i < program->value_count; i++)
        if (program->values[i].kind == MUC_MCU_STATE_DATA)
            muc_text_add(text, "    memset(arena + %" PRIu64 ", %d, %" PRIu64 ");\n",
                         program->values[i].address,
                         muc_tensor_first_byte(program->values[i].tensor),
                         program->values[i].bytes);
    muc_text_add(text, "}\n\n");
}

static void emit_pointers(const muc_mcu_program *program, const muc_mcu_ports *ports,
                          const char *word, muc_mcu_argument_kind kind, muc_text *text)
{
    for (uint32_t i = 0; i < ports->count; i++) {
        const muc_mcu_value *value = &program->values[ports->values[i]];
        const muc_mcu_argument argument = { .value = ports->values[i],
                                            .kind = kind,
                                            .dtype = value->tensor->dtype };

        muc_text_add(text, "    %s->%s = ", word, value->name);
        muc_mcu_print_argument(program, &argument, text);
        muc_text_add(text, ";\n");
    }
}

/* a function's body, which is freed: the arena is what its argument points to */
static void emit_body(muc_text *body, muc_text *text)
{
    const char *data = body->data ? body->data : "";

    muc_text_add(text, "{\n    %s\n%s}\n",
                 strstr(data, "arena + ") || strstr(data, "(arena)")
                     ? "uint8_t *const arena = memory;\n"
                     : "(void)memory;",
                 data);
    text->failed |= body->failed;
    muc_text_free(body);
}

static void emit_init(const muc_mcu_program *program, muc_text *text)
{
    const char *name = program->name;

    muc_text body = { 0 };

    muc_text_add(text, "void %s_init(void *memory, %s_inputs *inputs, %s_outputs *outputs)\n", name,
                 name, name);
    if (program->inputs.count == 0)
        muc_text_add(&body, "    (void)inputs;\n");
    emit_pointers(program, &program->inputs, "inputs", MUC_MCU_WRITE, &body);
    emit_pointers(program, &program->outputs, "outputs", MUC_MCU_READ, &body);
    emit_body(&body, text);
    muc_text_add(text, "\n");
}

void muc_mcu_emit_source(const muc_mcu_program *program, muc_text *text)
{
    muc_text body = { 0 };

    muc_text_add(text, "/* %s.c - made by muc from '", program->name);
    muc_mcu_print_comment(text, muc_mcu_origin(program));
    muc_text_add(text, "' for %s; not to be edited. */\n#include \"%s.h\"\n\n",
                 program->machine->name, program->name);
    muc_text_add(text, "#include <string.h>\n\n#include \"mur_nn_arith.h\"\n%s%s%s%s%s%s",
                 program->tiles.count ? "#include \"mur_tiles.h\"\n" : "",
                 program->uses_f32 ? "#include \"mur_nn_f32.h\"\n" : "",
                 program->uses_f16 ? "#include \"mur_nn_f16.h\"\n" : "",
                 program->uses_decoder ? "#include \"mur_decoder.h\"\n" : "",
                 program->tiles_decoder ? "#include \"mur_tiles_decoder.h\"\n" : "",
                 program->uses_recurrent ? "#include \"mur_recurrent.h\"\n" : "");
    for (const char *const *header = muc_mcu_inline_headers; *header; header++)
        if (muc_mcu_calls_header(program, *header))
            muc_text_add(text, "#include \"%s\"\n", *header);
    muc_text_add(text, "\n");
    muc_text_add(text,
                 "#ifndef MUR_ALIGNED\n"
                 "#define MUR_ALIGNED __attribute__((aligned(16)))\n"
                 "#endif\n"
                 "#ifdef MUR_TRACE_FUNCTION /* told of every result */\n"
                 "void MUR_TRACE_FUNCTION(unsigned tensor, const uint8_t *data, size_t bytes);\n"
                 "#define MUR_TRACE(tensor, data, bytes) "
                 "MUR_TRACE_FUNCTION(tensor, data, bytes)\n"
                 "#elif !defined(MUR_TRACE)\n"
                 "#define MUR_TRACE(tensor, data, bytes) (void)0\n"
                 "#endif\n\n");
    if (program->loop.turns)
        muc_text_add(text, "#ifndef MUR_STEP /* after a part of a result */\n"
                           "#define MUR_STEP() (void)0\n"
                           "#endif\n\n");
    if (muc_mcu_weights_are_binary(program))
        muc_mcu_weights_names(program, text);
    else
        emit_constants(program, text);
    muc_mcu_emit_tile_memory(program, text);
    for (uint32_t i = 0; i < program->step_count; i++) {
        muc_text_add(text, "%s", program->steps[i].text);
        if (program->steps[i].tiled && !muc_mcu_chain_of(program, i))
            muc_mcu_emit_tiles(&program->steps[i], text);
    }
    for (uint32_t i = 0; i < program->chain_count; i++)
        muc_mcu_emit_chain(program, &program->chains[i], text);
    emit_init(program, text);
    emit_reset(program, text);
    muc_mcu_print_run(program, "memory", text);
    muc_text_add(text, "\n");
    muc_mcu_emit_first_checks(program, "\n        return ", ";\n", &body);
    emit_steps(program, &body);
    if (muc_mcu_may_refuse(program))
        muc_text_add(&body, "    return 0;\n");
    emit_body(&body, text);
}

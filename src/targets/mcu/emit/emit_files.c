/* emit_files.c - what stands around NAME.c: its header, an example, a page to read.
 */
#include "targets/mcu/emit/emit_program.h"

#include <ctype.h>
#include <inttypes.h>

#include "targets/mcu/lower/run_checks.h"
#include "targets/mcu/plan/plan_arena.h"
#include "targets/mcu/emit/weights_file.h"
#include "targets/mcu/loops/loop_nest.h"

void muc_mcu_print_upper(muc_text *text, const char *name)
{
    for (; *name; name++)
        muc_text_add(text, "%c", toupper((unsigned char)*name));
}

void muc_mcu_print_prefix(const muc_mcu_program *program, const muc_mcu_value *value,
                          muc_text *text)
{
    muc_mcu_print_upper(text, program->name);
    muc_text_add(text, "_");
    if (value) {
        muc_mcu_print_upper(text, value->name);
        muc_text_add(text, "_");
    }
}

static void begin_define(const muc_mcu_program *program, const muc_mcu_value *value, muc_text *text)
{
    muc_text_add(text, "#define ");
    muc_mcu_print_prefix(program, value, text);
}

static void emit_port(const muc_mcu_program *program, const muc_mcu_value *value, muc_text *text)
{
    const muc_tensor *tensor = value->tensor;
    const muc_quantization *quantization = tensor->quantization;

    muc_text_add(text, "/* %s '", value->is_output ? "output" : "input");
    muc_mcu_print_comment(text, tensor->name);
    muc_text_add(text, "': ");
    muc_tensor_print_shape(program->graph, tensor, text);
    muc_text_add(text, " */\n");
    begin_define(program, value, text);
    muc_text_add(text, "ELEMENTS %" PRIu64 "u\n",
                 value->bytes / muc_dtype_get(tensor->dtype)->block_bytes);
    begin_define(program, value, text);
    muc_text_add(text, "BYTES %" PRIu64 "u\n", value->bytes);
    if (quantization && quantization->count == 1) {
        begin_define(program, value, text);
        muc_text_add(text, "SCALE ");
        muc_mcu_print_real(text, (double)quantization->scales[0], false);
        muc_text_add(text, "\n");
        begin_define(program, value, text);
        muc_text_add(text, "ZERO_POINT (%" PRId32 ")\n", quantization->zero_points[0]);
    }
}

/* where a cache lies, for those who save and restore it */
static void emit_cache(const muc_mcu_program *program, uint32_t id, muc_text *text)
{
    const muc_mcu_value *value = &program->values[id];
    muc_mcu_cache cache;

    if (program->lm || !muc_mcu_find_cache(program, id, &cache))
        return;
    muc_text_add(text, "/* cache '");
    muc_mcu_print_comment(text, value->tensor->name);
    muc_text_add(text, "': ");
    muc_tensor_print_shape(program->graph, value->tensor, text);
    muc_text_add(text, " at this place of the arena; of dimension %" PRIu32 " a run reads ",
                 cache.axis);
    muc_expr_print(program->graph->pool, cache.rows, text);
    muc_text_add(text, " */\n");
    begin_define(program, value, text);
    muc_text_add(text, "OFFSET %" PRIu64 "u\n", value->address);
    begin_define(program, value, text);
    muc_text_add(text, "BYTES %" PRIu64 "u\n", value->bytes);
}

static void emit_ports(const muc_mcu_program *program, bool is_output, muc_text *text)
{
    const muc_mcu_ports *ports = is_output ? &program->outputs : &program->inputs;
    const char *word = is_output ? "outputs" : "inputs";

    muc_text_add(text, is_output
                           ? "/* Alive from a run to the next. */\n"
                           : "/* To be filled before each run, which may overwrite them. */\n");
    muc_text_add(text, "typedef struct %s_%s {\n", program->name, word);
    for (uint32_t i = 0; i < ports->count; i++) {
        const muc_mcu_value *value = &program->values[ports->values[i]];

        muc_text_add(text, "    %s%s *%s;\n", is_output ? "const " : "",
                     muc_mcu_c_type(value->tensor->dtype), value->name);
    }
    if (!ports->count)
        muc_text_add(text, "    int none;\n");
    muc_text_add(text, "} %s_%s;\n\n", program->name, word);
}

/* the ranges of the run's arguments */
static void emit_arguments(const muc_mcu_program *program, muc_text *text)
{
    const muc_expr_pool *pool = program->graph->pool;

    if (!muc_mcu_may_refuse(program))
        return;
    muc_text_add(text, "/* Returns 0, or the number of the check that failed; main.c names them:");
    for (uint32_t i = 0; i < muc_expr_input_count(pool); i++) {
        const muc_expr_input *input = muc_expr_get_input(pool, i);

        if (program->arguments >> i & 1)
            muc_text_add(text, " " MUC_MCU_DIM "%s %" PRIu32 "..%" PRIu32 ",", input->name,
                         input->lo, input->hi);
    }
    muc_text_add(text,
                 "\n * what shapes want of them, and nodes of their data, before they run. */\n");
}

/* of constants that may be replaced without the code */
static void emit_weights(const muc_mcu_program *program, muc_text *text)
{
    begin_define(program, NULL, text);
    muc_text_add(text,
                 "WEIGHTS_BYTES %" PRIu64 "u\n"
                 "/* Checks the constants, %s_weights.bin: 0, 1 if they were compiled with other "
                 "code,\n * or 2 if a byte is damaged. */\n"
                 "int %s_weights_check(void);\n",
                 muc_mcu_weights_bytes(program), program->name, program->name);
}

void muc_mcu_emit_header(const muc_mcu_program *program, muc_text *text)
{
    const muc_mcu_memory *memory = muc_mcu_memory_for(program->machine, MUC_MCU_ARENA);
    const char *name = program->name;

    muc_text_add(text, "/* %s.h - made by muc for %s; not to be edited. */\n#ifndef ", name,
                 program->machine->name);
    muc_mcu_print_upper(text, name);
    muc_text_add(text, "_H\n#define ");
    muc_mcu_print_upper(text, name);
    muc_text_add(text,
                 "_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n"
                 "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
                 "/* Inputs, outputs, everything between and scratch; no placement of these "
                 "buffers needs\n * fewer than %" PRIu64 " bytes. */\n",
                 program->plan.least);
    begin_define(program, NULL, text);
    muc_text_add(text, "ARENA_BYTES %" PRIu64 "u\n", program->plan.peak);
    begin_define(program, NULL, text);
    muc_text_add(text, "ARENA_ALIGNMENT %du\n\n", MUC_MCU_ALIGNMENT);
    for (uint32_t i = 0; i < program->value_count; i++)
        if (program->values[i].kind == MUC_MCU_INPUT || program->values[i].is_output)
            emit_port(program, &program->values[i], text);
    for (uint32_t i = 0; i < program->value_count; i++)
        emit_cache(program, i, text);
    if (memory->bytes) {
        muc_text_add(text, "\ntypedef char %s_fits_%s[", name, memory->name);
        muc_mcu_print_upper(text, name);
        muc_text_add(text, "_ARENA_BYTES <= %" PRIu32 "u ? 1 : -1];\n", memory->bytes);
    }
    muc_text_add(text, "\n");
    emit_ports(program, false, text);
    emit_ports(program, true, text);
    muc_text_add(text,
                 "/* arena: ARENA_BYTES bytes, aligned, the same in every call. Tells where inputs "
                 "and outputs lie\n * in it. */\n"
                 "void %s_init(void *arena, %s_inputs *inputs, %s_outputs *outputs);\n",
                 name, name, name);
    if (muc_mcu_has_state(program))
        muc_text_add(text,
                     "/* What is kept from run to run is zero again; to be called before the first "
                     "run. */\nvoid %s_reset(void *arena);\n",
                     name);
    emit_arguments(program, text);
    muc_mcu_print_run(program, "arena", text);
    muc_text_add(text, ";\n");
    if (muc_mcu_weights_are_binary(program))
        emit_weights(program, text);
    if (program->golden.samples)
        muc_text_add(text,
                     "/* Runs the network on numbers of its own: 0 if the results are those of "
                     "muc's\n * reference, integers bit for bit, floats to 0.0001 of the greatest. "
                     "What the arena held\n * is lost. */\n"
                     "int %s_selftest(void *arena);\n",
                     name);
    muc_text_add(text, "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}

void muc_mcu_emit_readme(const muc_mcu_program *program, muc_text *text)
{
    const char *flags = muc_mcu_core_get(program->machine->core)->flags;
    const char *code = program->package->code;

    muc_text_add(text, "# %s\n\nMade by muc from `", program->name);
    muc_text_add_visible(text, muc_mcu_origin(program));
    muc_text_add(text,
                 "` for %s: %" PRIu64 " multiply-accumulates a run, %" PRIu64
                 " bytes of memory,\n%" PRIu64 " bytes of constants. The interface is `%s.h`, an "
                 "example `main.c`.\n\n    cc -std=c99 -O2 -ffp-contract=off %s%s-I%s -I%s %s%s.c "
                 "main.c",
                 program->machine->name, muc_mcu_macs(program), program->plan.peak,
                 muc_mcu_constant_bytes(program), program->name, flags, *flags ? " " : "",
                 *code ? code : ".", program->package->headers, code, program->name);
    for (uint32_t i = 0; i < program->source_count; i++)
        muc_text_add(text, " %s%s", code, program->sources[i]);
    muc_text_add(text, "\n");
}

/* differ_code.c - generated code compiled in memory by TinyCC, linked with the kernels that this
 * program holds: a network costs milliseconds, and no process. */
#include <libtcc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "differ.h"
#include "targets/mcu/lower/run_checks.h"
#include "targets/mcu/emit/emit_program.h"

enum { GUARD = 64, MOST_PORTS = 64, GUARD_BYTE = 0xa5 };

struct fuzz_code {
    const muc_mcu_program *program;
    TCCState *tcc;
    uint8_t *memory, *arena;
    size_t bytes;
    void *in[MOST_PORTS], *out[MOST_PORTS];
    void *run;
    void (*reset)(void *arena);
};

static const char *const include_paths[] = {
    MUC_SOURCE_ROOT "/runtime/include",       MUC_SOURCE_ROOT "/runtime/kernels/ref",
    MUC_SOURCE_ROOT "/runtime/kernels/dsp",   MUC_SOURCE_ROOT "/runtime/kernels/mve",
    MUC_SOURCE_ROOT "/runtime/kernels/rv",    MUC_SOURCE_ROOT "/runtime/kernels/rvv",
    MUC_SOURCE_ROOT "/runtime/kernels/tiles",
};

static void tell(void *arg, const char *text)
{
    char *message = arg;

    if (!message[0])
        snprintf(message, FUZZ_MESSAGE, "%.200s", text);
}

/* header and source in one text */
static bool compile(fuzz_code *code, char message[FUZZ_MESSAGE])
{
    muc_text text = { 0 }, source = { 0 };
    bool ok;
    char *include;

    muc_mcu_emit_header(code->program, &text);
    muc_mcu_emit_source(code->program, &source);
    include = strstr(source.data, "#include \"n.h\"\n");
    if (include)
        memcpy(include, "/*            */", 14), include[12] = '*', include[13] = '/';
    muc_text_add_bytes(&text, source.data, source.size);
    ok = !text.failed && tcc_compile_string(code->tcc, text.data) == 0;
    muc_text_free(&text);
    muc_text_free(&source);
    if (ok && tcc_relocate(code->tcc, TCC_RELOCATE_AUTO) == 0)
        return true;
    if (!message[0])
        snprintf(message, FUZZ_MESSAGE, "the code cannot be linked");
    return false;
}

static bool load(fuzz_code *code)
{
    const muc_mcu_program *program = code->program;
    void (*init)(void *arena, void **in, void **out);

    *(void **)&init = tcc_get_symbol(code->tcc, "n_init");
    *(void **)&code->reset = tcc_get_symbol(code->tcc, "n_reset");
    code->run = tcc_get_symbol(code->tcc, "n_run");
    code->bytes = (size_t)program->plan.peak;
    code->memory = aligned_alloc(GUARD, (code->bytes + 3 * GUARD) / GUARD * GUARD);
    if (!init || !code->run || !code->memory || program->inputs.count > MOST_PORTS ||
        program->outputs.count > MOST_PORTS)
        return false;
    code->arena = code->memory + GUARD;
    memset(code->memory, GUARD_BYTE, code->bytes + 2 * GUARD);
    init(code->arena, code->in, code->out);
    return true;
}

fuzz_code *fuzz_code_new(const muc_mcu_build *build, char message[FUZZ_MESSAGE])
{
    fuzz_code *code = calloc(1, sizeof(*code));

    if (!code || !(code->tcc = tcc_new()))
        abort();
    code->program = &build->program;
    message[0] = '\0';
    tcc_set_error_func(code->tcc, message, tell);
    tcc_set_options(code->tcc, "-w");
    tcc_set_output_type(code->tcc, TCC_OUTPUT_MEMORY);
    for (size_t i = 0; i < MUC_COUNT(include_paths); i++)
        tcc_add_include_path(code->tcc, include_paths[i]);
    if (compile(code, message) && load(code))
        return code;
    fuzz_code_free(code);
    return NULL;
}

void fuzz_code_free(fuzz_code *code)
{
    if (!code)
        return;
    tcc_delete(code->tcc);
    free(code->memory);
    free(code);
}

void *fuzz_code_input(const fuzz_code *code, uint32_t i)
{
    return code->in[i];
}

const void *fuzz_code_output(const fuzz_code *code, uint32_t i)
{
    return code->out[i];
}

void fuzz_code_reset(fuzz_code *code)
{
    if (code->reset)
        code->reset(code->arena);
}

int fuzz_code_run(fuzz_code *code, const uint32_t *bindings)
{
    uint32_t arguments[MUC_EXPR_MAX_INPUTS] = { 0 }, count = 0;
    int (*none)(void *), (*one)(void *, uint32_t), (*two)(void *, uint32_t, uint32_t);
    void (*never)(void *); /* refuses */

    for (uint32_t i = 0; i < MUC_EXPR_MAX_INPUTS; i++)
        if (code->program->arguments >> i & 1)
            arguments[count++] = bindings[i];
    *(void **)&none = *(void **)&one = *(void **)&two = *(void **)&never = code->run;
    if (!muc_mcu_may_refuse(code->program)) {
        never(code->arena);
        return 0;
    }
    if (count == 0)
        return none(code->arena);
    return count == 1 ? one(code->arena, arguments[0])
                      : two(code->arena, arguments[0], arguments[1]);
}

bool fuzz_code_is_whole(const fuzz_code *code)
{
    for (size_t i = 0; i < GUARD; i++)
        if (code->memory[i] != GUARD_BYTE || code->arena[code->bytes + i] != GUARD_BYTE)
            return false;
    return true;
}

/* codefolder.c - what NAME.json says, and the compiler as a child process. */
#include "driver/codefolder.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "driver/network.h"

enum { MOST_WORDS = 512, MOST_LIST = 1 << 16 };

/* exit statuses of scripts/run_network and of timeout, which bounds it */
enum { NO_BOARD = 7, NOT_IN_TIME = 124, NO_TOOL = 127 };
#define MOST_SECONDS "300"
#define RUN_NETWORK MUC_SOURCE_ROOT "/scripts/run_network"

extern char **environ;

/* ---- the description ---- */

/* the file of the list FILES that ends in ".json" */
static muc_status find_description(muc_context *ctx, muc_code_folder *folder, const char **out)
{
    const char *list, *text, *end;
    muc_file file;
    muc_status status;

    MUC_TRY(muc_arena_format(ctx, &folder->arena, &list, "%s/FILES", folder->path));
    MUC_TRY(muc_file_open(ctx, list, &file));
    status = muc_arena_string(ctx, &folder->arena, (const char *)file.bytes.data,
                              file.bytes.size < MOST_LIST ? file.bytes.size : MOST_LIST, &text);
    muc_file_close(&file);
    MUC_TRY(status);
    end = strstr(text, ".json\n");
    if (!end)
        return muc_fail(ctx, MUC_MALFORMED, list, MUC_NO_OFFSET,
                        "names no description: this is no folder of generated code");
    while (text < end && memchr(text, '\n', (size_t)(end - text)))
        text = (const char *)memchr(text, '\n', (size_t)(end - text)) + 1;
    return muc_arena_format(ctx, &folder->arena, out, "%s/%.*s.json", folder->path,
                            (int)(end - text), text);
}

static muc_status read_port(muc_context *ctx, const char *file, const json_t *item,
                            muc_code_port *out)
{
    const json_t *dims = json_object_get(item, "dims");
    const char *type;
    uint64_t elements;

    MUC_TRY(muc_json_string_or_null(ctx, file, item, "name", &out->name));
    MUC_TRY(muc_json_string_or_null(ctx, file, item, "field", &out->field));
    MUC_TRY(muc_json_string_or_null(ctx, file, item, "type", &type));
    if (!out->name || !out->field || !type || !muc_dtype_find(type, &out->dtype) ||
        json_array_size(dims) > MUC_MAX_RANK)
        return muc_fail(ctx, MUC_MALFORMED, file, MUC_NO_OFFSET, "an input or output is damaged");
    out->rank = (uint32_t)json_array_size(dims);
    for (uint32_t i = 0; i < out->rank; i++)
        out->dims[i] = (uint64_t)json_integer_value(json_array_get(dims, i));
    if (!muc_dtype_measure(out->dtype, out->rank, out->dims, &elements, &out->bytes))
        return muc_fail(ctx, MUC_MALFORMED, file, MUC_NO_OFFSET, "'%s' has no size", out->name);
    out->quantized = json_object_get(item, "scale") != NULL;
    out->scale = json_number_value(json_object_get(item, "scale"));
    out->zero = (int32_t)json_integer_value(json_object_get(item, "zero"));
    return MUC_OK;
}

static muc_status read_ports(muc_context *ctx, muc_code_folder *folder, const char *key,
                             muc_code_port **out, size_t *count)
{
    const json_t *items = json_object_get(folder->json, key);

    *count = json_array_size(items);
    MUC_TRY(MUC_ARENA_NEW(ctx, &folder->arena, *count, out));
    for (size_t i = 0; i < *count; i++)
        MUC_TRY(read_port(ctx, folder->path, json_array_get(items, i), &(*out)[i]));
    return MUC_OK;
}

static muc_status open_folder(muc_context *ctx, const char *path, muc_code_folder *folder)
{
    const char *description;

    MUC_TRY(muc_arena_string(ctx, &folder->arena, path, strlen(path), &folder->path));
    MUC_TRY(find_description(ctx, folder, &description));
    MUC_TRY(muc_file_open(ctx, description, &folder->file));
    MUC_TRY(muc_json_parse(ctx, folder->file.bytes, 0, &folder->json));
    MUC_TRY(muc_json_string_or_null(ctx, description, folder->json, "name", &folder->name));
    if (!folder->name)
        return muc_fail(ctx, MUC_MALFORMED, description, MUC_NO_OFFSET, "it has no name");
    MUC_TRY(read_ports(ctx, folder, "inputs", &folder->inputs, &folder->input_count));
    return read_ports(ctx, folder, "outputs", &folder->outputs, &folder->output_count);
}

muc_status muc_code_open(muc_context *ctx, const char *path, muc_code_folder *out)
{
    muc_status status;

    memset(out, 0, sizeof(*out));
    status = open_folder(ctx, path, out);
    if (status != MUC_OK)
        muc_code_close(out);
    return status;
}

void muc_code_close(muc_code_folder *folder)
{
    json_decref(folder->json);
    muc_file_close(&folder->file);
    muc_arena_free(&folder->arena);
    memset(folder, 0, sizeof(*folder));
}

/* ---- arrays ---- */

/* as TensorFlow Lite quantizes: nearest, halves away from zero, saturated */
static double quantize(const muc_code_port *input, double real)
{
    unsigned bits = muc_dtype_get(input->dtype)->block_bytes * 8;
    bool is_signed = input->dtype == MUC_I8 || input->dtype == MUC_I16 || input->dtype == MUC_I32;
    double least = is_signed ? -ldexp(1, (int)bits - 1) : 0;
    double most = ldexp(1, (int)bits - is_signed) - 1;
    double q = (double)roundf((float)real / (float)input->scale) + input->zero;

    return q < least ? least : q > most ? most : q;
}

static bool is_real(muc_dtype dtype)
{
    return muc_dtype_get(dtype)->kind == MUC_DTYPE_FLOAT;
}

/* one element of whatever type, little-endian: the low bytes come first */
static bool convert_one(const muc_code_port *input, double real, uint8_t *out)
{
    uint32_t size = muc_dtype_get(input->dtype)->block_bytes;
    float single = (float)real;
    int64_t whole;

    if (input->dtype == MUC_F32 || input->dtype == MUC_F64) {
        memcpy(out, input->dtype == MUC_F32 ? (const void *)&single : &real, size);
        return true;
    }
    if (is_real(input->dtype) || !(fabs(real) < 9e18) || real != floor(real))
        return false;
    whole = (int64_t)real;
    memcpy(out, &whole, size);
    if (size == 8)
        return true;
    return muc_dtype_integer(input->dtype, out) == whole;
}

muc_status muc_code_convert(muc_context *ctx, const muc_code_port *input,
                            const muc_tensor_view *array, uint8_t *out)
{
    uint32_t size = muc_dtype_get(input->dtype)->block_bytes;
    bool quantizes = input->quantized && is_real(array->dtype);

    if (array->elements * size > input->bytes)
        return muc_fail(ctx, MUC_USAGE, array->file, array->offset,
                        "'%s' has %llu elements, '%s' takes at most %llu", array->name,
                        (unsigned long long)array->elements, input->name,
                        (unsigned long long)(input->bytes / size));
    if (array->dtype == input->dtype) {
        memcpy(out, array->data, (size_t)array->bytes);
        return MUC_OK;
    }
    for (uint64_t i = 0; i < array->elements; i++) {
        double real = muc_array_element(array, i);

        if (!convert_one(input, quantizes ? quantize(input, real) : real, out + i * size))
            return muc_fail(ctx, MUC_USAGE, array->file, array->offset,
                            "'%s': element %llu, %g, is no number of type %s", array->name,
                            (unsigned long long)i, real, muc_dtype_get(input->dtype)->name);
    }
    return MUC_OK;
}

/* ---- child processes ---- */

/* stdin and stdout are files, unless NULL; *state is waitpid's */
static muc_status await_child(muc_context *ctx, const char *const *words, const char *in,
                              const char *out, int *state)
{
    posix_spawn_file_actions_t actions;
    pid_t child;
    int error;

    posix_spawn_file_actions_init(&actions);
    if (in)
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, in, O_RDONLY, 0);
    if (out)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out, O_WRONLY | O_CREAT | O_TRUNC,
                                         0600);
    error =
        posix_spawnp(&child, words[0], &actions, NULL, (char *const *)(uintptr_t)words, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error)
        return muc_fail(ctx, MUC_IO, words[0], MUC_NO_OFFSET, "cannot be started: %s",
                        strerror(error));
    *state = 0;
    while (waitpid(child, state, 0) < 0 && errno == EINTR)
        ;
    return MUC_OK;
}

static muc_status run_child(muc_context *ctx, const char *const *words, const char *in,
                            const char *out)
{
    int state;

    MUC_TRY(await_child(ctx, words, in, out, &state));
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0)
        return MUC_OK;
    return muc_fail(ctx, MUC_IO, words[0], MUC_NO_OFFSET, "%s %d",
                    WIFSIGNALED(state) ? "was ended by signal" : "failed with status",
                    WIFSIGNALED(state) ? WTERMSIG(state) : WEXITSTATUS(state));
}

typedef struct command {
    const char *words[MOST_WORDS];
    size_t count;
} command;

static void add_word(command *c, const char *word)
{
    if (c->count + 1 < MOST_WORDS)
        c->words[c->count++] = word;
}

static muc_status add_path(muc_context *ctx, muc_arena *arena, command *c, const char *format,
                           const char *folder, const char *name)
{
    const char *word;

    MUC_TRY(muc_arena_format(ctx, arena, &word, "%s%s/%s", format, folder, name));
    add_word(c, word);
    return MUC_OK;
}

/* an executable, or without main.c a library */
static muc_status build(muc_context *ctx, const muc_code_folder *folder, muc_arena *arena,
                        const char *trace, bool is_library, const char *program)
{
    const json_t *sources = json_object_get(folder->json, "sources");
    const char *compiler = getenv("CC"), *name;
    command c = { .count = 0 };

    add_word(&c, compiler && *compiler ? compiler : "cc");
    add_word(&c, "-std=c99");
    add_word(&c, "-O2");
    add_word(&c, "-ffp-contract=off");
    if (trace)
        add_word(&c, "-DMUR_TRACE_FUNCTION=muc_trace");
    MUC_TRY(add_path(ctx, arena, &c, "-I", folder->path, "."));
    MUC_TRY(add_path(ctx, arena, &c, "-I", folder->path, "include"));
    MUC_TRY(muc_arena_format(ctx, arena, &name, "%s.c", folder->name));
    MUC_TRY(add_path(ctx, arena, &c, "", folder->path, name));
    for (size_t i = 0; i < json_array_size(sources); i++)
        MUC_TRY(add_path(ctx, arena, &c, "", folder->path,
                         json_string_value(json_array_get(sources, i))));
    if (is_library) {
        add_word(&c, "-shared");
        add_word(&c, "-fPIC");
    } else {
        MUC_TRY(add_path(ctx, arena, &c, "", folder->path, "main.c"));
    }
    if (trace)
        add_word(&c, trace);
    add_word(&c, "-o");
    add_word(&c, program);
    return run_child(ctx, c.words, NULL, NULL);
}

static muc_status read_output(muc_context *ctx, const char *path, uint8_t **out, size_t *bytes)
{
    muc_file file;
    muc_status status;

    MUC_TRY(muc_file_open(ctx, path, &file));
    status = MUC_NEW_ARRAY(ctx, path, file.bytes.size + 1, out);
    if (status == MUC_OK && file.bytes.size)
        memcpy(*out, file.bytes.data, file.bytes.size);
    *bytes = file.bytes.size;
    muc_file_close(&file);
    return status;
}

/* one run of a folder's code */
typedef struct code_job {
    const char *trace, *board; /* both NULL: on the host, untraced */
    muc_bytes input;
    uint8_t *output; /* malloc'ed */
    size_t output_bytes;
    uint64_t instructions; /* on a board */
} code_job;

/* all in a temporary folder */
static muc_status build_and_run(muc_context *ctx, const muc_code_folder *folder, muc_arena *arena,
                                const char *temporary, code_job *job)
{
    const char *program, *in, *out, *source = NULL, *words[2] = { 0 };

    MUC_TRY(muc_arena_format(ctx, arena, &program, "%s/program", temporary));
    MUC_TRY(muc_arena_format(ctx, arena, &in, "%s/in", temporary));
    MUC_TRY(muc_arena_format(ctx, arena, &out, "%s/out", temporary));
    if (job->trace) {
        MUC_TRY(muc_arena_format(ctx, arena, &source, "%s/trace.c", temporary));
        MUC_TRY(muc_file_write(ctx, source, job->trace, strlen(job->trace)));
    }
    MUC_TRY(build(ctx, folder, arena, source, false, program));
    MUC_TRY(muc_file_write(ctx, in, job->input.data, job->input.size));
    words[0] = program;
    MUC_TRY(run_child(ctx, words, in, out));
    return read_output(ctx, out, &job->output, &job->output_bytes);
}

/* what the script's end means; it has told more on standard error */
static muc_status judge_emulation(muc_context *ctx, const muc_code_folder *folder,
                                  const char *board, int state)
{
    int code = WIFEXITED(state) ? WEXITSTATUS(state) : -1;

    if (code == 0)
        return MUC_OK;
    if (code == NO_BOARD)
        return muc_fail(ctx, MUC_USAGE, board, MUC_NO_OFFSET, "no emulated board has this name");
    if (code == NO_TOOL)
        return muc_fail(ctx, MUC_IO, board, MUC_NO_OFFSET,
                        "its cross compiler or emulator is missing: `scripts/setup test` "
                        "installs them");
    if (code == NOT_IN_TIME)
        return muc_fail(ctx, MUC_IO, folder->path, MUC_NO_OFFSET,
                        "the run on board %s did not end within " MOST_SECONDS " seconds", board);
    return muc_fail(ctx, MUC_IO, folder->path, MUC_NO_OFFSET,
                    "the code cannot be built for board %s, or failed there", board);
}

static muc_status read_count(muc_context *ctx, const char *path, uint64_t *out)
{
    FILE *file = fopen(path, "r");
    bool is_read = file && fscanf(file, "%" SCNu64, out) == 1;

    if (file)
        fclose(file);
    return is_read ? MUC_OK
                   : muc_fail(ctx, MUC_IO, path, MUC_NO_OFFSET, "no count of instructions came");
}

/* all in a temporary folder */
static muc_status emulate(muc_context *ctx, const muc_code_folder *folder, muc_arena *arena,
                          const char *temporary, code_job *job)
{
    const char *in, *out, *count;
    int state;

    if (access(RUN_NETWORK, X_OK))
        return muc_fail(ctx, MUC_IO, RUN_NETWORK, MUC_NO_OFFSET,
                        "is not there: boards are emulated from muc's source folder");
    MUC_TRY(muc_arena_format(ctx, arena, &in, "%s/in", temporary));
    MUC_TRY(muc_arena_format(ctx, arena, &out, "%s/out", temporary));
    MUC_TRY(muc_arena_format(ctx, arena, &count, "%s/count", temporary));
    MUC_TRY(muc_file_write(ctx, in, job->input.data, job->input.size));
    const char *const words[] = { "timeout",    "-k", "10", MOST_SECONDS, RUN_NETWORK, job->board,
                                  folder->path, in,   out,  "--count",    NULL };

    MUC_TRY(await_child(ctx, words, NULL, count, &state));
    MUC_TRY(judge_emulation(ctx, folder, job->board, state));
    MUC_TRY(read_count(ctx, count, &job->instructions));
    return read_output(ctx, out, &job->output, &job->output_bytes);
}

static muc_status make_temporary(muc_context *ctx, muc_arena *arena, const char **out)
{
    const char *base = getenv("TMPDIR");

    MUC_TRY(muc_arena_format(ctx, arena, out, "%s/muc.XXXXXX", base && *base ? base : "/tmp"));
    if (mkdtemp((char *)(uintptr_t)*out))
        return MUC_OK;
    return muc_fail(ctx, MUC_IO, *out, MUC_NO_OFFSET, "cannot create: %s", strerror(errno));
}

static muc_status do_job(muc_context *ctx, const muc_code_folder *folder, code_job *job)
{
    static const char *const files[] = { "program", "in", "out", "trace.c", "count" };
    const char *temporary, *path;
    muc_arena arena = { 0 };
    muc_status status = make_temporary(ctx, &arena, &temporary);

    if (status == MUC_OK) {
        status = job->board ? emulate(ctx, folder, &arena, temporary, job)
                            : build_and_run(ctx, folder, &arena, temporary, job);
        for (size_t i = 0; i < MUC_COUNT(files); i++)
            if (muc_arena_format(ctx, &arena, &path, "%s/%s", temporary, files[i]) == MUC_OK)
                unlink(path);
        rmdir(temporary);
    }
    muc_arena_free(&arena);
    return status;
}

muc_status muc_code_run(muc_context *ctx, const muc_code_folder *folder, const char *trace,
                        muc_bytes input, uint8_t **output, size_t *output_bytes)
{
    code_job job = { .trace = trace, .input = input };

    MUC_TRY(do_job(ctx, folder, &job));
    *output = job.output;
    *output_bytes = job.output_bytes;
    return MUC_OK;
}

muc_status muc_code_emulate(muc_context *ctx, const muc_code_folder *folder, const char *board,
                            muc_bytes input, uint8_t **output, size_t *output_bytes,
                            uint64_t *instructions)
{
    code_job job = { .board = board, .input = input };

    MUC_TRY(do_job(ctx, folder, &job));
    *output = job.output;
    *output_bytes = job.output_bytes;
    *instructions = job.instructions;
    return MUC_OK;
}

muc_status muc_code_load(muc_context *ctx, const muc_code_folder *folder, void **library)
{
    const char *temporary, *path = NULL;
    muc_arena arena = { 0 };
    muc_status status = make_temporary(ctx, &arena, &temporary);

    if (status != MUC_OK) {
        muc_arena_free(&arena);
        return status;
    }
    status = muc_arena_format(ctx, &arena, &path, "%s/code.so", temporary);
    if (status == MUC_OK)
        status = build(ctx, folder, &arena, NULL, true, path);
    if (status == MUC_OK && !(*library = dlopen(path, RTLD_NOW | RTLD_LOCAL)))
        status =
            muc_fail(ctx, MUC_IO, folder->path, MUC_NO_OFFSET, "cannot be loaded: %s", dlerror());
    if (path)
        unlink(path);
    rmdir(temporary);
    muc_arena_free(&arena);
    return status;
}

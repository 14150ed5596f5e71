/* build_code.c - builds and runs a folder's code: the compiler, and boards' emulators, as child
 * processes. */
#include "targets/mcu/emit/code_folder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/child_process.h"
#include "base/file_system.h"
#include "base/system.h"
#include "base/temporary.h"
#include "run/installed.h"
#include "targets/mcu/emit/emit_program.h"

enum { MOST_WORDS = 512, MOST_LINE = 512 };

/* exit statuses of scripts/run_network and of timeout, which bounds it */
enum { NO_BOARD = 7, NOT_IN_TIME = 124, NO_TOOL = 127 };
#define MOST_SECONDS "300"

/* the program of a folder, with what it tells of lengths or data that it refuses */
static muc_status run_program(muc_context *ctx, const muc_code_folder *folder,
                              const char *const *words, const char *in, const char *out,
                              const char *err)
{
    const uint8_t *end;
    muc_status status;
    muc_file told;
    int code;

    MUC_TRY(muc_child_await(ctx, words, in, out, err, "running the code", &code));
    if (code != MUC_MCU_REFUSED)
        return muc_child_judge(ctx, words[0], code);
    MUC_TRY(muc_file_open_own(ctx, err, &told));
    end = told.bytes.size ? memchr(told.bytes.data, '\n', told.bytes.size) : NULL;
    status = muc_fail(ctx, MUC_USAGE, folder->path, MUC_NO_OFFSET, "%.*s",
                      end ? (int)(end - told.bytes.data) : 0, (const char *)told.bytes.data);
    muc_file_close(&told);
    return status;
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

/* the words of CC, as make takes them, or cc */
static muc_status add_compiler(muc_context *ctx, muc_arena *arena, command *c)
{
    static const char blanks[] = " \t";
    const char *given = getenv("CC"), *at = given && *given ? given : "cc", *word;

    for (at += strspn(at, blanks); *at; at += strspn(at, blanks)) {
        size_t length = strcspn(at, blanks);

        MUC_TRY(muc_arena_string(ctx, arena, at, length, &word));
        add_word(c, word);
        at += length;
    }
    return c->count > 0 ? MUC_OK
                        : muc_fail(ctx, MUC_USAGE, "CC", MUC_NO_OFFSET,
                                   "the variable holds blanks alone; unset it, or name a compiler");
}

/* an executable, or without main.c a library */
static muc_status build(muc_context *ctx, const muc_code_folder *folder, muc_arena *arena,
                        const char *trace, bool is_library, const char *program)
{
    const json_t *sources = json_object_get(folder->json, "sources");
    command c = { .count = 0 };
    const char *name, *code;
    const char *step;
    int ended;

    MUC_TRY(add_compiler(ctx, arena, &c));
    add_word(&c, "-std=c99");
    add_word(&c, "-O2");
    add_word(&c, "-ffp-contract=off");
    if (trace)
        add_word(&c, "-DMUR_TRACE_FUNCTION=muc_trace");
    MUC_TRY(muc_json_string_or_null(ctx, folder->path, folder->json, "code", &code));
    MUC_TRY(add_path(ctx, arena, &c, "-I", folder->path, code ? code : "."));
    MUC_TRY(add_path(ctx, arena, &c, "-I", folder->path, "include"));
    MUC_TRY(muc_arena_format(ctx, arena, &name, "%s%s.c", code ? code : "", folder->name));
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
    MUC_TRY(muc_arena_format(ctx, arena, &step, "building the code with %s", c.words[0]));
    MUC_TRY(muc_child_await(ctx, c.words, NULL, NULL, NULL, step, &ended));
    return muc_child_judge(ctx, c.words[0], ended);
}

static muc_status read_output(muc_context *ctx, const char *path, uint8_t **out, size_t *bytes)
{
    muc_file file;
    muc_status status;

    MUC_TRY(muc_file_open_own(ctx, path, &file));
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
    const char *mode;          /* of scripts/run_network, on a board */
    muc_bytes input;
    uint8_t *output; /* malloc'ed */
    size_t output_bytes;
    muc_arena *arena;    /* on a board: holds the next */
    const char *printed; /* lines of the script */
} code_job;

/* all in a temporary folder */
static muc_status build_and_run(muc_context *ctx, const muc_code_folder *folder, muc_arena *arena,
                                const char *temporary, code_job *job)
{
    const char *program, *in, *out, *err, *source = NULL;
    command run = { .count = 0 };

    MUC_TRY(muc_arena_format(ctx, arena, &program, "%s/program", temporary));
    MUC_TRY(muc_arena_format(ctx, arena, &in, "%s/in", temporary));
    MUC_TRY(muc_arena_format(ctx, arena, &out, "%s/out", temporary));
    MUC_TRY(muc_arena_format(ctx, arena, &err, "%s/err", temporary));
    if (job->trace) {
        MUC_TRY(muc_arena_format(ctx, arena, &source, "%s/trace.c", temporary));
        MUC_TRY(muc_file_write(ctx, source, job->trace, strlen(job->trace)));
    }
    MUC_TRY(build(ctx, folder, arena, source, false, program));
    MUC_TRY(muc_file_write(ctx, in, job->input.data, job->input.size));
    add_word(&run, program);
    for (size_t i = 0; i < folder->argument_count; i++)
        add_word(&run, folder->arguments[i]);
    MUC_TRY(run_program(ctx, folder, run.words, in, out, err));
    return read_output(ctx, out, &job->output, &job->output_bytes);
}

/* what the script's end means; it has told more on standard error */
static muc_status judge_emulation(muc_context *ctx, const muc_code_folder *folder,
                                  const char *board, int code)
{
    if (code == 0)
        return MUC_OK;
    if (code == NO_BOARD)
        return muc_fail(ctx, MUC_USAGE, board, MUC_NO_OFFSET, "no emulated board has this name");
    if (code == NO_TOOL)
        return muc_fail(ctx, MUC_IO, board, MUC_NO_OFFSET,
                        "its cross compiler or emulator is missing, or for cycles llvm-mca-22: "
                        "`scripts/setup bench` installs them, `scripts/setup test` all but the "
                        "last");
    if (code == NOT_IN_TIME)
        return muc_fail(ctx, MUC_IO, folder->path, MUC_NO_OFFSET,
                        "the run on board %s did not end within " MOST_SECONDS " seconds", board);
    return muc_fail(ctx, MUC_IO, folder->path, MUC_NO_OFFSET,
                    "the code cannot be built for board %s, or failed there", board);
}

/* lengths as u32, which a board's main.c reads first, then the inputs */
static muc_status write_board_input(muc_context *ctx, const muc_code_folder *folder,
                                    muc_arena *arena, muc_bytes input, const char *path)
{
    size_t lengths = folder->argument_count * 4;
    uint8_t *data;

    MUC_TRY(MUC_ARENA_NEW(ctx, arena, lengths + input.size + 1, &data));
    for (size_t i = 0; i < folder->argument_count; i++)
        muc_store_u32(data + 4 * i, (uint32_t)strtoul(folder->arguments[i], NULL, 10));
    memcpy(data + lengths, input.data, input.size);
    return muc_file_write(ctx, path, data, lengths + input.size);
}

/* all in a temporary folder */
static muc_status emulate(muc_context *ctx, const muc_code_folder *folder, muc_arena *arena,
                          const char *temporary, code_job *job)
{
    const char *script, *in, *out, *count, *step;
    muc_status status;
    muc_file printed;
    int ended;

    MUC_TRY(muc_arena_format(ctx, arena, &script, "%s/scripts/run_network", muc_data_folder()));
    if (!muc_path_exists(script))
        return muc_fail(ctx, MUC_IO, script, MUC_NO_OFFSET,
                        "is not there: muc was installed without what runs emulated boards");
    MUC_TRY(muc_arena_format(ctx, arena, &in, "%s/in", temporary));
    MUC_TRY(muc_arena_format(ctx, arena, &out, "%s/out", temporary));
    MUC_TRY(muc_arena_format(ctx, arena, &count, "%s/count", temporary));
    MUC_TRY(write_board_input(ctx, folder, arena, job->input, in));
    const char *const words[] = { "timeout",    "-k", "10", MOST_SECONDS, script, job->board,
                                  folder->path, in,   out,  job->mode,    NULL };

    MUC_TRY(muc_arena_format(ctx, arena, &step, "building the code and running it on board %s",
                             job->board));
    MUC_TRY(muc_child_await(ctx, words, NULL, count, NULL, step, &ended));
    MUC_TRY(judge_emulation(ctx, folder, job->board, ended));
    MUC_TRY(muc_file_open_own(ctx, count, &printed));
    status = muc_arena_string(ctx, job->arena, (const char *)printed.bytes.data, printed.bytes.size,
                              &job->printed);
    muc_file_close(&printed);
    MUC_TRY(status);
    return read_output(ctx, out, &job->output, &job->output_bytes);
}

static muc_status make_temporary(muc_context *ctx, muc_arena *arena, const char **out)
{
    const char *base = getenv("TMPDIR");

    MUC_TRY(muc_arena_format(ctx, arena, out, "%s/muc.XXXXXX",
                             base && *base ? base : muc_folder_of_temporaries()));
    if (!muc_temporary_folder((char *)(uintptr_t)*out))
        return muc_fail(ctx, MUC_IO, *out, MUC_NO_OFFSET, "cannot create: %s", strerror(errno));
    return MUC_OK;
}

static muc_status do_job(muc_context *ctx, const muc_code_folder *folder, code_job *job)
{
    const char *temporary;
    muc_arena arena = { 0 };
    muc_status status = make_temporary(ctx, &arena, &temporary);

    if (status == MUC_OK) {
        status = job->board ? emulate(ctx, folder, &arena, temporary, job)
                            : build_and_run(ctx, folder, &arena, temporary, job);
        muc_temporary_remove(temporary);
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
    muc_arena arena = { 0 };
    code_job job = { .board = board, .mode = "--count", .input = input, .arena = &arena };
    muc_status status = do_job(ctx, folder, &job);

    if (status == MUC_OK && sscanf(job.printed, "%" SCNu64, instructions) != 1)
        status = muc_fail(ctx, MUC_IO, "run_network", MUC_NO_OFFSET, "printed no count");
    muc_arena_free(&arena);
    if (status != MUC_OK) {
        free(job.output);
        return status;
    }
    *output = job.output;
    *output_bytes = job.output_bytes;
    return MUC_OK;
}

/* what examples/qemu/lm_main.c writes: text, then three u32 */
static muc_status take_speech(muc_context *ctx, const code_job *job, muc_speech *out)
{
    static const char *const ends[] = { "end of text", "length", "context" };
    enum { TOLD = 12 };
    const char *printed = job->printed, *text;
    const uint8_t *told = job->output;
    uint64_t count;
    int length;

    if (job->output_bytes >= TOLD)
        told += job->output_bytes - TOLD;
    if (job->output_bytes < TOLD || muc_load_u32(told + 8) >= MUC_COUNT(ends))
        return muc_fail(ctx, MUC_IO, job->board, MUC_NO_OFFSET, "did not tell how its text ended");
    out->prompt_tokens = muc_load_u32(told);
    out->tokens = muc_load_u32(told + 4);
    out->end = ends[muc_load_u32(told + 8)];
    MUC_TRY(muc_arena_string(ctx, job->arena, (const char *)job->output, job->output_bytes - TOLD,
                             &text));
    out->text = (muc_bytes){ (const uint8_t *)text, job->output_bytes - TOLD, "text" };
    if (sscanf(printed, "%" SCNu64 "%n", &out->prompt_instructions, &length) != 1)
        return muc_fail(ctx, MUC_IO, "run_network", MUC_NO_OFFSET, "printed no count");
    out->instructions = 0;
    for (printed += length; sscanf(printed, "%" SCNu64 "%n", &count, &length) == 1;
         printed += length)
        out->instructions += count;
    return MUC_OK;
}

muc_status muc_code_speak(muc_context *ctx, const muc_code_folder *folder, const char *board,
                          const char *prompt, uint32_t most_tokens, muc_arena *arena,
                          muc_speech *out)
{
    enum { MOST_PROMPT = 2048 }; /* of lm_main.c */
    code_job job = { .board = board, .mode = "--count", .arena = arena };
    size_t size = strlen(prompt);
    muc_status status;
    uint8_t *input;

    if (size > MOST_PROMPT)
        return muc_fail(ctx, MUC_USAGE, board, MUC_NO_OFFSET,
                        "boards take prompts of at most %d bytes, frame and all; this has %zu",
                        MOST_PROMPT, size);
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, size + 4, &input));
    muc_store_u32(input, most_tokens);
    memcpy(input + 4, prompt, size);
    job.input = (muc_bytes){ input, size + 4, "prompt" };
    MUC_TRY(do_job(ctx, folder, &job));
    status = take_speech(ctx, &job, out);
    free(job.output);
    return status;
}

/* "file CODE CONSTANTS DATA ZEROED NAME", "instructions N" or "cycles N TAKEN BYTES" */
static muc_status take_line(muc_context *ctx, muc_arena *arena, const char *line, size_t length,
                            muc_code_profile *out)
{
    char text[MOST_LINE], name[MOST_LINE];
    muc_code_file *file = &out->files[out->file_count];
    muc_code_count *count;

    if (length >= sizeof(text))
        return MUC_OK;
    memcpy(text, line, length);
    text[length] = '\0';
    count = &out->counts[out->count_count];
    if (sscanf(text, "instructions %" SCNu64, &count->instructions) == 1)
        out->count_count++;
    count = &out->counts[out->cycle_count];
    if (sscanf(text, "cycles %" SCNu64 " %" SCNu64 " %" SCNu64, &count->cycles, &count->taken,
               &count->touched) == 3)
        out->cycle_count++;
    if (sscanf(text, "file %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %511s", &file->code,
               &file->constants, &file->data, &file->zeroed, name) != 5)
        return MUC_OK;
    out->file_count++;
    return muc_arena_string(ctx, arena, name, strlen(name), &file->name);
}

static muc_status take_profile(muc_context *ctx, muc_arena *arena, const char *printed,
                               muc_code_profile *out)
{
    size_t lines = 1;

    for (const char *p = printed; *p; p++)
        lines += *p == '\n';
    *out = (muc_code_profile){ 0 };
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, lines, &out->files));
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, lines, &out->counts));
    while (*printed) {
        size_t length = strcspn(printed, "\n");

        MUC_TRY(take_line(ctx, arena, printed, length, out));
        printed += length + (printed[length] == '\n');
    }
    return MUC_OK;
}

muc_status muc_code_profile_on(muc_context *ctx, const muc_code_folder *folder, const char *board,
                               bool cycles, muc_bytes input, muc_arena *arena,
                               muc_code_profile *out)
{
    const char *mode = cycles ? "--cycles" : "--profile";
    code_job job = { .board = board, .mode = mode, .input = input, .arena = arena };
    const char *output;
    muc_status status;

    MUC_TRY(do_job(ctx, folder, &job));
    status = muc_arena_string(ctx, arena, (const char *)job.output, job.output_bytes, &output);
    free(job.output);
    MUC_TRY(status);
    MUC_TRY(take_profile(ctx, arena, job.printed, out));
    if (cycles && out->cycle_count != out->count_count)
        return muc_fail(ctx, MUC_IO, board, MUC_NO_OFFSET,
                        "the model gave cycles of %zu results, %zu are expected", out->cycle_count,
                        out->count_count);
    out->output = (muc_bytes){ (const uint8_t *)output, job.output_bytes, "output" };
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
    if (status == MUC_OK && !(*library = muc_library_open(path)))
        status = muc_fail(ctx, MUC_IO, folder->path, MUC_NO_OFFSET, "cannot be loaded: %s",
                          muc_library_error());
    muc_temporary_remove(temporary);
    muc_arena_free(&arena);
    return status;
}

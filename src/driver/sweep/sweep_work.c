/* sweep_work.c - compiles a sweep's programs, then measures its points, side by side, each in a
 * context of its own. */
#include "driver/sweep/sweep_work.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/ini.h"
#include "base/json.h"
#include "base/threads.h"
#include "muc/compile.h"
#include "muc/eval.h"
#include "muc/folder.h"
#include "targets/target.h"

/* ---- hashes ---- */

static uint64_t hash_text(uint64_t from, const char *text)
{
    return muc_hash(from, text, strlen(text) + 1);
}

static muc_status hash_file(muc_sweep_work *w, const char *path, uint64_t *out)
{
    muc_file file;

    MUC_TRY(muc_file_open(w->ctx, path, &file));
    *out = muc_hash(*out, file.bytes.data, file.bytes.size);
    muc_file_close(&file);
    return MUC_OK;
}

/* of a file's content, or of all files of a folder with their names */
static muc_status hash_path(muc_sweep_work *w, const char *path, uint64_t *out)
{
    const char *const *names, *name;
    size_t count;

    *out = MUC_HASH_BEGIN;
    if (!muc_path_is_dir(path))
        return hash_file(w, path, out);
    MUC_TRY(muc_folder_names(w->ctx, w->arena, path, &names, &count));
    for (size_t i = 0; i < count; i++) {
        MUC_TRY(muc_arena_format(w->ctx, w->arena, &name, "%s/%s", path, names[i]));
        if (muc_path_is_dir(name))
            continue;
        *out = hash_text(*out, names[i]);
        MUC_TRY(hash_file(w, name, out));
    }
    return MUC_OK;
}

/* ---- where things lie ---- */

static muc_status path_of(muc_sweep_work *w, const char *folder, uint64_t key, const char *end,
                          muc_arena *arena, muc_context *ctx, const char **out)
{
    return muc_arena_format(ctx, arena, out, "%s/%s/%016" PRIx64 "%s", w->folder, folder, key, end);
}

/* which of an axis's values a point has */
static uint32_t index_of(const muc_sweep_file *file, muc_sweep_key key, uint32_t point)
{
    const char *value = muc_sweep_value(file, key, point);

    for (uint32_t i = 0; value && i < file->axis_count; i++)
        if (!file->axes[i].section && file->axes[i].id == key)
            for (uint32_t k = 0; k < file->axes[i].count; k++)
                if (file->axes[i].values[k] == value)
                    return k;
    return 0;
}

/* of a machine's pairs; a program, whose schedule goes by the machine's times, depends on all but
 * [energy] and the name */
static uint64_t hash_machine(const muc_sweep_work *w, uint32_t point, bool is_made)
{
    muc_ini ini = muc_ini_of(w->ctx, w->bases[index_of(w->file, MUC_SWEEP_machine, point)]);
    uint64_t key = MUC_HASH_BEGIN;
    muc_status status;

    while (muc_ini_next(&ini, &status) && status == MUC_OK) {
        if (is_made && (muc_view_is(ini.section, "energy") || muc_view_is(ini.key, "name")))
            continue;
        key = muc_hash(key, ini.section.data, ini.section.size);
        key = muc_hash(key, ini.key.data, ini.key.size);
        key = muc_hash(key, ini.key.size ? ini.value.data : "", ini.key.size ? ini.value.size : 1);
    }
    return key;
}

/* of all that decides a point's figures, or (is_made) its program */
static uint64_t key_of(const muc_sweep_work *w, uint32_t point, bool is_made)
{
    const muc_sweep_file *file = w->file;
    uint64_t key = hash_machine(w, point, is_made);

    key = muc_hash(key, &w->models[index_of(file, MUC_SWEEP_model, point)], sizeof(*w->models));
    key = muc_hash(key, &w->text, sizeof(w->text));
    for (uint32_t i = 0; i < file->axis_count; i++) {
        const muc_sweep_axis *axis = &file->axes[i];

        if (is_made &&
            (!muc_sweep_is_made(axis) || (!axis->section && axis->id == MUC_SWEEP_machine)))
            continue;
        key = hash_text(key, axis->section ? axis->section : "sweep");
        key = hash_text(key, axis->key);
        key = hash_text(key, muc_sweep_axis_value(file, i, point));
    }
    return key;
}

/* ---- machines ---- */

/* a machine that any target has built in, else a file */
static muc_status read_base(muc_sweep_work *w, const char *name, muc_bytes *out)
{
    const muc_target *target;
    muc_status status;
    const char *text;
    muc_file file;

    for (size_t t = 0; (target = muc_target_get(t)); t++) {
        const muc_target_machine *machine;

        for (size_t i = 0; (machine = target->machine_at(i)); i++)
            if (machine->text && (!name || strcmp(machine->name, name) == 0)) {
                *out = (muc_bytes){ (const uint8_t *)machine->text, strlen(machine->text),
                                    machine->name };
                return MUC_OK;
            }
    }
    MUC_TRY(muc_file_open(w->ctx, name, &file));
    status =
        muc_arena_string(w->ctx, w->arena, (const char *)file.bytes.data, file.bytes.size, &text);
    *out = (muc_bytes){ (const uint8_t *)text, file.bytes.size, name };
    muc_file_close(&file);
    return status;
}

static muc_status write_machine(muc_sweep_work *w, muc_context *ctx, muc_arena *arena,
                                uint32_t point, const char **path)
{
    const muc_bytes base = w->bases[index_of(w->file, MUC_SWEEP_machine, point)];
    muc_text text = { 0 };
    muc_status status = muc_sweep_machine(ctx, w->file, point, base, &text);

    if (status == MUC_OK)
        status = path_of(w, "machines", key_of(w, point, false), ".ini", arena, ctx, path);
    if (status == MUC_OK)
        status = muc_file_write(ctx, *path, text.data ? text.data : "", text.size);
    muc_text_free(&text);
    return status;
}

/* ---- results ---- */

static muc_status read_json(muc_context *ctx, const char *path, json_t **out)
{
    muc_status status;
    muc_file file;

    *out = NULL;
    if (!muc_path_exists(path))
        return MUC_OK;
    MUC_TRY(muc_file_open_own(ctx, path, &file));
    status = muc_json_parse(ctx, file.bytes, 0, out);
    muc_file_close(&file);
    return status;
}

/* takes the object over */
static muc_status write_json(muc_context *ctx, const char *path, json_t *object)
{
    char *text = json_dumps(object, JSON_ENSURE_ASCII);
    muc_status status = text ? muc_file_write(ctx, path, text, strlen(text))
                             : muc_fail_nomem(ctx, "sweep", sizeof(json_t));

    free(text);
    json_decref(object);
    return status;
}

/* what a model or machine cannot is a result; all else ends the sweep */
static bool is_refusal(muc_status status)
{
    return status == MUC_NOFIT || status == MUC_UNSUPPORTED;
}

/* ---- programs ---- */

static muc_status compile(muc_sweep_work *w, muc_context *ctx, uint32_t point, const char *machine,
                          const char *path)
{
    const muc_sweep_file *f = w->file;
    const char *bits = muc_sweep_value(f, MUC_SWEEP_bits, point);
    const muc_model_options open = { .context = (uint32_t)muc_sweep_count(f, MUC_SWEEP_ctx_size,
                                                                          point, 0) };
    const muc_compile_options options = {
        .machine = machine,
        .act_terms = muc_sweep_value(f, MUC_SWEEP_act_terms, point),
        .attention = muc_sweep_value(f, MUC_SWEEP_attention, point),
        .weights = { .bits = bits ? strtod(bits, NULL) : 0,
                     .calibration = muc_sweep_value(f, MUC_SWEEP_calib, point) },
    };
    muc_report *report = NULL;
    muc_model *model;
    muc_status status;

    MUC_TRY(muc_model_open(ctx, muc_sweep_value(f, MUC_SWEEP_model, point), &open, &model));
    status = muc_compile(ctx, model, &options, path, &report);
    muc_report_free(report);
    muc_model_close(model);
    return status;
}

static muc_status measure_text(muc_sweep_work *w, muc_context *ctx, const char *path, json_t *out)
{
    const char *text = muc_sweep_value(w->file, MUC_SWEEP_text, 0);
    const muc_eval_options options = {
        .window = (uint32_t)muc_sweep_count(w->file, MUC_SWEEP_window, 0, 0),
        .limit = (uint32_t)muc_sweep_count(w->file, MUC_SWEEP_limit, 0, 0),
    };
    muc_report *report = NULL;
    muc_model *program;
    muc_status status;
    double perplexity;

    if (!text)
        return MUC_OK;
    MUC_TRY(muc_model_open(ctx, path, NULL, &program));
    status = muc_eval_text(ctx, program, text, &options, &report);
    if (status == MUC_OK && muc_report_number(report, "perplexity", &perplexity))
        json_object_set_new(out, "perplexity", json_real(perplexity));
    muc_report_free(report);
    muc_model_close(program);
    return status;
}

static muc_status make_program(muc_sweep_work *w, muc_context *ctx, muc_arena *arena,
                               uint32_t point)
{
    uint64_t key = key_of(w, point, true);
    const char *path, *told, *machine;
    json_t *facts;
    muc_status status;

    MUC_TRY(path_of(w, "programs", key, ".utp", arena, ctx, &path));
    MUC_TRY(path_of(w, "programs", key, ".json", arena, ctx, &told));
    if (muc_path_exists(told))
        return MUC_OK;
    MUC_TRY(write_machine(w, ctx, arena, point, &machine));
    facts = json_object();
    status = compile(w, ctx, point, machine, path);
    if (status == MUC_OK)
        status = measure_text(w, ctx, path, facts);
    if (is_refusal(status)) {
        json_object_set_new(facts, "refused", json_string(muc_error_message(ctx)));
        muc_error_clear(ctx);
        status = MUC_OK;
    }
    if (status == MUC_OK)
        return write_json(ctx, told, facts);
    json_decref(facts);
    return status;
}

/* ---- points ---- */

/* a whole number, or a text as it is written: 4.6 stays 4.6 in every form */
static json_t *typed(const char *value)
{
    if (value[strspn(value, "0123456789")] == '\0' && strlen(value) < 18)
        return json_integer(strtoll(value, NULL, 10));
    return json_string(value);
}

static json_t *new_row(const muc_sweep_work *w, uint32_t point)
{
    json_t *row = json_object();

    for (uint32_t i = 0; i < w->file->axis_count; i++) {
        const muc_sweep_axis *axis = &w->file->axes[i];

        if (axis->section || axis->id < MUC_SWEEP_text)
            json_object_set_new(row, axis->key, typed(muc_sweep_axis_value(w->file, i, point)));
    }
    return row;
}

static void copy_figures(const muc_report *report, json_t *row)
{
    static const char *const figures[] = {
        "seconds",      "tokens_per_second", "first_token_seconds", "millijoules_per_token",
        "buffer_bytes", "program_bytes",     "binding_share",       "array_share",
        "dram_share",   "cpu_share",
    };
    const char *roof;
    double value;

    for (size_t i = 0; i < MUC_COUNT(figures); i++)
        if (muc_report_number(report, figures[i], &value))
            json_object_set_new(row, figures[i],
                                value < 1e15 && value == (double)(int64_t)value && i > 3
                                    ? json_integer((json_int_t)value)
                                    : json_real(value));
    if (muc_report_string(report, "binding_roof", &roof))
        json_object_set_new(row, "binding_roof", json_string(roof));
}

static muc_status measure_point(muc_sweep_work *w, muc_context *ctx, muc_arena *arena,
                                uint32_t point, const json_t *program, json_t *row)
{
    muc_report_options options = {
        .position = (uint32_t)muc_sweep_count(w->file, MUC_SWEEP_position, point, 0),
        .tokens = (uint32_t)muc_sweep_count(w->file, MUC_SWEEP_call, point, 1),
        .brief = true,
    };
    const json_t *perplexity = json_object_get(program, "perplexity");
    const json_t *refused = json_object_get(program, "refused");
    muc_report *report;
    const char *path;

    if (refused) {
        json_object_set(row, "refused", (json_t *)refused);
        return MUC_OK;
    }
    MUC_TRY(path_of(w, "programs", key_of(w, point, true), ".utp", arena, ctx, &path));
    MUC_TRY(write_machine(w, ctx, arena, point, &options.machine));
    MUC_TRY(muc_report_folder(ctx, path, &options, &report));
    copy_figures(report, row);
    muc_report_free(report);
    if (perplexity)
        json_object_set(row, "perplexity", (json_t *)perplexity);
    return MUC_OK;
}

static muc_status make_point(muc_sweep_work *w, muc_context *ctx, muc_arena *arena, uint32_t point)
{
    json_t *program = NULL, *row = new_row(w, point);
    const char *told, *path;
    muc_status status = path_of(w, "programs", key_of(w, point, true), ".json", arena, ctx, &told);

    if (status == MUC_OK)
        status = path_of(w, "points", key_of(w, point, false), ".json", arena, ctx, &path);
    if (status == MUC_OK)
        status = read_json(ctx, told, &program);
    if (status == MUC_OK)
        status = measure_point(w, ctx, arena, point, program, row);
    json_decref(program);
    if (status == MUC_OK) {
        w->rows[point] = json_incref(row);
        status = write_json(ctx, path, row);
    } else {
        json_decref(row);
    }
    return status;
}

/* ---- all of them ---- */

typedef muc_status work_fn(muc_sweep_work *w, muc_context *ctx, muc_arena *arena, uint32_t point);

/* in a context and an arena of its own; what it fails with becomes the sweep's failure */
static muc_status alone(muc_sweep_work *w, work_fn *function, uint32_t point)
{
    muc_context *ctx = muc_context_new(1);
    muc_arena arena = { 0 };
    muc_status status;

    if (!ctx)
        return muc_fail_nomem(w->ctx, "sweep", sizeof(void *));
    status = function(w, ctx, &arena, point);
    if (status != MUC_OK)
        muc_fail(w->ctx, status, w->file->name, MUC_NO_OFFSET, "point %u: %s", point,
                 muc_error_message(ctx));
    muc_arena_free(&arena);
    muc_context_free(ctx);
    return status;
}

/* `more` of `total` are done, too */
static void tell_progress(muc_sweep_work *w, const char *what, uint32_t more, uint32_t total)
{
    unsigned done = atomic_fetch_add(&w->done, more) + more;
    char line[64];

    snprintf(line, sizeof(line), "%s: %u of %u", what, done, total);
    muc_progress(w->ctx, line, done, total);
}

static muc_status program_body(void *arg, size_t i)
{
    muc_sweep_work *w = arg;

    MUC_TRY(alone(w, make_program, w->programs[i]));
    tell_progress(w, "programs", 1, w->program_count);
    return MUC_OK;
}

static muc_status point_body(void *arg, size_t i)
{
    muc_sweep_work *w = arg;
    uint32_t point = w->first + (uint32_t)i;

    if (w->rows[point])
        return MUC_OK;
    MUC_TRY(alone(w, make_point, point));
    tell_progress(w, "points", 1, w->end - w->first);
    return MUC_OK;
}

/* machines that differ in their energies alone have one program */
static bool has_program(const muc_sweep_work *w, uint32_t point)
{
    uint64_t key = key_of(w, point, true);
    uint32_t i = w->program_count;

    while (i && w->programs[i - 1] != point && key_of(w, w->programs[i - 1], true) != key)
        i--;
    return i != 0;
}

muc_status muc_sweep_go_on(muc_sweep_work *w, uint32_t first, uint32_t end)
{
    uint32_t there = 0;

    w->first = first;
    w->end = end;
    w->program_count = 0;
    MUC_TRY(MUC_ARENA_NEW(w->ctx, w->arena, end - first + 1, &w->programs));
    for (uint32_t point = first; point < end; point++) {
        uint32_t program = point / w->per_program * w->per_program;

        there += w->rows[point] != NULL;
        if (!w->rows[point] && !has_program(w, program))
            w->programs[w->program_count++] = program;
    }
    atomic_store(&w->done, 0);
    if (w->program_count)
        tell_progress(w, "programs", 0, w->program_count);
    MUC_TRY(muc_parallel_for(w->ctx, w->program_count, program_body, w));
    atomic_store(&w->done, 0);
    tell_progress(w, "points", there, end - first);
    return muc_parallel_for(w->ctx, end - first, point_body, w);
}

static muc_status read_inputs(muc_sweep_work *w)
{
    const muc_sweep_file *file = w->file;
    const char *text = muc_sweep_value(file, MUC_SWEEP_text, 0);
    uint32_t machines = 1;

    MUC_TRY(MUC_ARENA_NEW(w->ctx, w->arena, MUC_SWEEP_VALUES, &w->bases));
    MUC_TRY(MUC_ARENA_NEW(w->ctx, w->arena, MUC_SWEEP_VALUES, &w->models));
    MUC_TRY(read_base(w, NULL, &w->bases[0]));
    for (uint32_t i = 0; i < file->axis_count; i++) {
        const muc_sweep_axis *axis = &file->axes[i];

        for (uint32_t k = 0; !axis->section && k < axis->count; k++)
            if (axis->id == MUC_SWEEP_machine) {
                MUC_TRY(read_base(w, axis->values[k], &w->bases[k]));
                machines = axis->count;
            } else if (axis->id == MUC_SWEEP_model) {
                MUC_TRY(hash_path(w, axis->values[k], &w->models[k]));
            }
    }
    for (uint32_t i = 0; i < machines; i++) {
        muc_text machine = { 0 };
        muc_status status = muc_sweep_machine(w->ctx, file, 0, w->bases[i], &machine);

        muc_text_free(&machine);
        MUC_TRY(status);
    }
    return text ? hash_path(w, text, &w->text) : MUC_OK;
}

static muc_status make_folders(muc_sweep_work *w)
{
    static const char *const names[] = { "programs", "points", "machines" };

    MUC_TRY(muc_make_dir(w->ctx, w->folder));
    for (size_t i = 0; i < MUC_COUNT(names); i++) {
        const char *path;

        MUC_TRY(muc_arena_format(w->ctx, w->arena, &path, "%s/%s", w->folder, names[i]));
        MUC_TRY(muc_make_dir(w->ctx, path));
    }
    return MUC_OK;
}

muc_status muc_sweep_load(muc_sweep_work *w)
{
    for (uint32_t point = 0; point < w->file->points; point++) {
        const char *path;

        if (w->rows[point])
            continue;
        MUC_TRY(path_of(w, "points", key_of(w, point, false), ".json", w->arena, w->ctx, &path));
        MUC_TRY(read_json(w->ctx, path, &w->rows[point]));
    }
    return MUC_OK;
}

muc_status muc_sweep_begin(muc_context *ctx, muc_arena *arena, const muc_sweep_file *file,
                           const char *folder, muc_sweep_work *out)
{
    muc_sweep_work *w = out;

    *w = (muc_sweep_work){
        .ctx = ctx, .file = file, .folder = folder, .arena = arena, .per_program = 1
    };
    for (uint32_t i = 0; i < file->axis_count; i++)
        if (!muc_sweep_is_made(&file->axes[i]))
            w->per_program *= file->axes[i].count;
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, file->points, &w->rows));
    MUC_TRY(read_inputs(w));
    MUC_TRY(make_folders(w));
    return muc_sweep_load(w);
}

void muc_sweep_end(muc_sweep_work *w)
{
    for (uint32_t point = 0; w->rows && point < w->file->points; point++)
        json_decref(w->rows[point]);
}

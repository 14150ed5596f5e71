/* report_code.c - muc report DIR: what generated C needs, step by step, in numbers and pictures.
 *
 * All but instructions and sections is in the folder's description. A description that was edited
 * shows what it says, within bounds.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/text.h"
#include "run/arrays.h"
#include "targets/mcu/emit/code_folder.h"
#include "targets/mcu/run/answer_code.h"
#include "targets/mcu/run/layer_rates.h"
#include "targets/target.h"
#include "report/answers.h"
#include "report/figures.h"
#include "report/report_builder.h"

enum { MOST_STEPS = 1 << 20, NODE_LETTERS = 48 };

typedef struct folder_report {
    muc_context *ctx;
    muc_code_folder *folder;
    muc_arena *arena;
    muc_report *report;
    const json_t *steps, *buffers, *tile_memory;
    uint32_t step_count;
    const char **step_names;  /* [step_count + 1] */
    muc_code_profile profile; /* of a board; nothing without */
    muc_code_count *counts;   /* [step_count]; NULL without a board */
    bool *is_counted;         /* [step_count] */
    const char **slow;        /* [step_count] what slow layers are to change; else NULL */
    uint64_t *cycles;         /* [step_count] modelled, waiting included; NULL without */
    bool speaks;              /* is a language model */
    uint32_t position;        /* of the token that is counted, if it is */
    uint64_t flash_bytes;     /* of the board's image; 0 without a board */
} folder_report;

static void copy_value(muc_report *report, const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    if (json_is_string(value))
        muc_report_add_text(report, key, "%s", json_string_value(value));
    else if (json_is_integer(value))
        muc_report_add_integer(report, key, json_integer_value(value));
    else if (json_is_boolean(value))
        muc_report_add_bool(report, key, json_boolean_value(value));
}

static uint64_t sum_of(const folder_report *r, const char *key)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < r->step_count; i++)
        sum += muc_member_count(json_array_get(r->steps, i), key);
    return sum;
}

static uint64_t tile_sum_of(const folder_report *r, const char *key)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < r->step_count; i++)
        sum += muc_member_count(json_object_get(json_array_get(r->steps, i), "tiles"), key);
    return sum;
}

/* ---- a board's counts ---- */

static void add_count(muc_code_count *sum, const muc_code_count *more)
{
    sum->instructions += more->instructions;
    sum->cycles += more->cycles;
    sum->taken += more->taken;
    sum->touched += more->touched;
}

/* steps that run patch by patch: a count for each of them, in every turn */
static size_t assign_patches(folder_report *r, const json_t *patches, size_t next)
{
    uint64_t first = muc_member_count(patches, "first"), steps = muc_member_count(patches, "steps");
    uint64_t turns = muc_member_count(patches, "rows") * muc_member_count(patches, "columns");

    for (uint64_t turn = 0; turn < turns; turn++)
        for (uint64_t i = first; i < first + steps; i++) {
            if (i >= r->step_count || next >= r->profile.count_count)
                return next;
            add_count(&r->counts[i], &r->profile.counts[next++]);
            r->is_counted[i] = true;
        }
    return next;
}

/* A count ends with each result that a step has. A step without is counted with the next one, or
 * with what stands after the last. */
static void assign_counts(folder_report *r)
{
    const json_t *patches = json_object_get(r->folder->json, "patches");
    size_t next = 0, end = r->profile.count_count;

    for (uint32_t i = 0; i < r->step_count; i++) {
        uint64_t traces = muc_member_count(json_array_get(r->steps, i), "traces");

        if (patches && i == muc_member_count(patches, "first"))
            next = assign_patches(r, patches, next);
        for (uint64_t t = 0; t < traces && next < end; t++) {
            add_count(&r->counts[i], &r->profile.counts[next++]);
            r->is_counted[i] = true;
        }
    }
    if (r->step_count && !r->is_counted[r->step_count - 1] && next < end) {
        r->counts[r->step_count - 1] = r->profile.counts[next];
        r->is_counted[r->step_count - 1] = true;
    }
}

/* inputs and caches as the board reads them, of a file or zeros */
static muc_status gather_inputs(folder_report *r, const char *input, muc_bytes *out)
{
    muc_tensor_view *arrays;
    uint64_t bytes = 0;
    size_t count;
    uint8_t *zeros;

    if (input) {
        MUC_TRY(muc_arrays_read(r->ctx, r->arena, input, &arrays, &count));
        MUC_TRY(muc_code_bind(r->ctx, r->folder, arrays, count, NULL, r->arena));
        return muc_code_gather(r->ctx, r->folder, arrays, count, r->arena, out);
    }
    MUC_TRY(muc_code_bind_most(r->ctx, r->folder));
    for (size_t i = 0; i < r->folder->input_count; i++)
        bytes += r->folder->inputs[i].bytes;
    for (size_t i = 0; i < r->folder->cache_count; i++)
        bytes += r->folder->caches[i].bytes;
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, (size_t)bytes + 1, &zeros));
    *out = (muc_bytes){ zeros, (size_t)bytes, "zeros" };
    return MUC_OK;
}

/* a language model's prompt as examples/qemu/lm_main.c reads it, of a file of text or this one */
static const char some_prompt[] = "Once upon a time";

static muc_status gather_prompt(folder_report *r, const char *input, muc_bytes *out)
{
    enum { TOKENS = 2, HEAD = 4 }; /* the run that chooses the first is the prompt's */
    muc_bytes prompt = { (const uint8_t *)some_prompt, sizeof(some_prompt) - 1, "prompt" };
    muc_file file = { 0 };
    muc_status status;
    uint8_t *bytes;

    if (input) {
        MUC_TRY(muc_file_open(r->ctx, input, &file));
        prompt = file.bytes;
    }
    status = muc_arena_new(r->ctx, r->arena, prompt.size + HEAD, 1, (void **)&bytes);
    if (status == MUC_OK) {
        muc_store_u32(bytes, TOKENS);
        memcpy(bytes + HEAD, prompt.data, prompt.size);
        *out = (muc_bytes){ bytes, prompt.size + HEAD, "prompt" };
    }
    muc_file_close(&file);
    return status;
}

/* Keeps the counts of the last run, of the token after the prompt: with the choice of the next. */
static muc_status keep_token(folder_report *r)
{
    enum {
        TOLD = 12
    }; /* the board's last words: tokens of the prompt, tokens made, why it ended */
    muc_code_profile *p = &r->profile;
    uint64_t run = sum_of(r, "traces") + 1;

    if (p->output.size < TOLD || p->count_count < run)
        return muc_fail(r->ctx, MUC_IO, r->folder->path, MUC_NO_OFFSET,
                        "the board told of %zu results, %" PRIu64 " are expected", p->count_count,
                        run);
    if (muc_load_u32(p->output.data + p->output.size - 8) == 0)
        return muc_fail(r->ctx, MUC_USAGE, r->folder->path, MUC_NO_OFFSET,
                        "the model says nothing after this prompt");
    r->position = muc_load_u32(p->output.data + p->output.size - TOLD);
    p->counts += p->count_count - run;
    p->count_count = run;
    return MUC_OK;
}

/* Small layers are of no matter. */
static muc_status judge_layers(folder_report *r)
{
    uint64_t all = 0;

    for (uint32_t i = 0; i < r->step_count; i++)
        all += r->counts[i].instructions;
    for (uint32_t i = 0; i < r->step_count; i++)
        if (r->counts[i].instructions >= all / 100)
            MUC_TRY(muc_code_judge_layer(r->ctx, r->arena, r->folder->json,
                                         json_array_get(r->steps, i), r->counts[i].instructions,
                                         &r->slow[i]));
    return MUC_OK;
}

static muc_status count_on(folder_report *r, const muc_report_options *options)
{
    muc_bytes gathered;

    MUC_TRY((r->speaks ? gather_prompt : gather_inputs)(r, options->input, &gathered));
    MUC_TRY(muc_code_profile_on(r->ctx, r->folder, options->board, options->cycles, gathered,
                                r->arena, &r->profile));
    if (r->speaks)
        MUC_TRY(keep_token(r));
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, r->step_count + (size_t)1, &r->counts));
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, r->step_count + (size_t)1, &r->is_counted));
    assign_counts(r);
    return r->speaks ? MUC_OK : judge_layers(r);
}

/* ---- facts ---- */

static const json_t *memory_for(const folder_report *r, const char *use)
{
    const json_t *memories = json_object_get(r->folder->json, "memories");

    for (size_t i = 0; i < json_array_size(memories); i++)
        if (strcmp(muc_member_text(json_array_get(memories, i), "use"), use) == 0)
            return json_array_get(memories, i);
    return NULL;
}

/* What waiting takes for code and constants that are read for the first time, where the memory
 * answers late: afterwards a cache has them. */
static uint64_t touch_cycles(const folder_report *r, uint64_t code, uint64_t constants)
{
    const json_t *memory = memory_for(r, "constants");
    uint64_t line = muc_member_count(memory, "line_bytes"),
             cycles = muc_member_count(memory, "line_cycles");

    if (line == 0 || cycles > UINT32_MAX)
        return 0;
    return ((code + line - 1) / line + (constants + line - 1) / line) * cycles;
}

static muc_status sum_cycles(folder_report *r, uint64_t *touch)
{
    *touch = 0;
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, r->step_count + (size_t)1, &r->cycles));
    for (uint32_t i = 0; i < r->step_count; i++) {
        uint64_t own = touch_cycles(r, r->counts[i].touched,
                                    muc_member_count(json_array_get(r->steps, i), "constants"));

        r->cycles[i] = r->counts[i].cycles + own;
        *touch += own;
    }
    return MUC_OK;
}

static muc_status add_cycle_facts(folder_report *r, const muc_code_count *all, uint64_t macs)
{
    uint64_t touch, clock = muc_member_count(r->folder->json, "clock_mhz"), cycles;
    uint64_t milliwatts = muc_member_count(r->folder->json, "milliwatts");
    const char *source = json_string_value(json_object_get(r->folder->json, "power_source"));

    MUC_TRY(sum_cycles(r, &touch));
    cycles = all->cycles + touch;
    muc_report_add_count(r->report, "modelled_cycles", cycles);
    muc_report_add_count(r->report, "touch_cycles", touch);
    muc_report_add_count(r->report, "taken_branches", all->taken);
    if (macs && !r->speaks)
        muc_report_add_real(r->report, "cycles_per_mac", (double)cycles / (double)macs);
    if (clock == 0)
        return MUC_OK;
    muc_report_add_real(r->report, "modelled_ms", (double)cycles / (double)clock / 1e3);
    if (milliwatts)
        muc_report_add_real(r->report, "modelled_millijoules",
                            (double)cycles / (double)clock / 1e6 * (double)milliwatts);
    if (milliwatts && source)
        muc_report_add_text(r->report, "power_source", "%s", source);
    return MUC_OK;
}

static muc_status add_counted_facts(folder_report *r, const char *board, uint64_t macs)
{
    muc_code_count all = { 0 };
    uint64_t flash = 0;

    for (size_t i = 0; i < r->profile.count_count; i++)
        add_count(&all, &r->profile.counts[i]);
    for (size_t i = 0; i < r->profile.file_count; i++)
        flash +=
            r->profile.files[i].code + r->profile.files[i].constants + r->profile.files[i].data;
    muc_report_add_text(r->report, "board", "%s", board);
    muc_report_add_count(r->report, "instructions", all.instructions);
    if (r->speaks)
        muc_report_add_count(r->report, "position", r->position);
    else if (macs)
        muc_report_add_real(r->report, "instructions_per_mac",
                            (double)all.instructions / (double)macs);
    if (r->profile.cycle_count)
        MUC_TRY(add_cycle_facts(r, &all, macs));
    muc_report_add_count(r->report, "flash_bytes", flash);
    r->flash_bytes = flash;
    return MUC_OK;
}

static muc_status add_facts(folder_report *r, const char *board)
{
    static const char *const facts[] = { "name",        "machine",     "core",
                                         "arena_bytes", "arena_bound", "constant_bytes" };
    const json_t *patches = json_object_get(r->folder->json, "patches");
    const json_t *speech = json_object_get(r->folder->json, "language_model");
    uint64_t macs = sum_of(r, "macs");

    for (size_t i = 0; i < MUC_COUNT(facts); i++)
        copy_value(r->report, r->folder->json, facts[i]);
    muc_report_add_count(r->report, "macs", macs);
    if (r->speaks)
        muc_report_add_bits_per_weight(r->report, muc_member_count(speech, "weight_bytes"),
                                       muc_member_count(speech, "weights"));
    if (patches) {
        muc_report_add_integer(r->report, "recomputed_macs",
                               json_integer_value(json_object_get(patches, "more_macs")));
        muc_report_add_text(r->report, "patches", "%llu x %llu of %llu layers",
                            (unsigned long long)muc_member_count(patches, "rows"),
                            (unsigned long long)muc_member_count(patches, "columns"),
                            (unsigned long long)muc_member_count(patches, "steps"));
    }
    return board ? add_counted_facts(r, board, macs) : MUC_OK;
}

/* ---- tables ---- */

static const muc_report_column layer_columns[] = {
    { "name", NULL, "the step, as the code calls it" },
    { "function", NULL, "what the step calls" },
    { "shape", NULL, "type and dimensions of the first result" },
    { "tile", NULL, "rows by channels that are computed at a time" },
    { "tiles", NULL, "how many" },
    { "macs", NULL, "multiply-accumulates, dimensions left open at their most" },
    { "instructions", NULL, "executed by the step on the emulated board" },
    { "per_mac", NULL, "instructions for each multiply-accumulate" },
    { "slow", NULL, "that it takes twice what its kind takes, and what to change" },
    { "modelled_cycles", NULL, "of the core, by a model of it: no measurement of a chip" },
    { "touch_cycles", NULL, "of them, waiting for what is read for the first time" },
    { "taken", NULL, "branches" },
    { "cycles_per_mac", NULL, "modelled cycles for each multiply-accumulate" },
    { "constants", "bytes", "weights, biases and tables that the step reads" },
    { "read", "bytes", "activations that the step reads, each counted once" },
    { "written", "bytes", "activations that the step writes" },
    { "dma_in", "bytes", "that DMA brings to the memory of tiles" },
    { "dma_out", "bytes", "that DMA brings back" },
    { "cycles", NULL, "of compute and DMA, as the plan counts them" },
    { "arena", "bytes", "of the arena that are in use during the step" },
    { "note", NULL, "why the step does not work in tiles" },
    { "node", NULL, "the layer of the network" },
    { NULL, NULL, NULL },
};

/* of a step that works in tiles */
static void add_tiles(folder_report *r, const json_t *tiles)
{
    muc_report_add_text(r->report, "tile", "%llu x %llu of %llu x %llu",
                        (unsigned long long)muc_member_count(tiles, "row_tile"),
                        (unsigned long long)muc_member_count(tiles, "channel_tile"),
                        (unsigned long long)muc_member_count(tiles, "rows"),
                        (unsigned long long)muc_member_count(tiles, "channels"));
    muc_report_add_count(r->report, "tiles", muc_member_count(tiles, "count"));
    muc_report_add_count(r->report, "dma_in", muc_member_count(tiles, "bytes_in"));
    muc_report_add_count(r->report, "dma_out", muc_member_count(tiles, "bytes_out"));
    copy_value(r->report, tiles, "cycles");
}

static void add_counted(folder_report *r, uint32_t step, uint64_t macs, uint64_t constants)
{
    const muc_code_count *count = &r->counts[step];
    uint64_t touch = touch_cycles(r, count->touched, constants);
    bool divides = macs && !r->speaks; /* whose macs are those of the longest run */

    muc_report_add_count(r->report, "instructions", count->instructions);
    if (divides)
        muc_report_add_real(r->report, "per_mac", (double)count->instructions / (double)macs);
    if (r->slow[step])
        muc_report_add_text(r->report, "slow", "%s", r->slow[step]);
    if (r->profile.cycle_count == 0)
        return;
    muc_report_add_count(r->report, "modelled_cycles", count->cycles + touch);
    muc_report_add_count(r->report, "touch_cycles", touch);
    muc_report_add_count(r->report, "taken", count->taken);
    if (divides)
        muc_report_add_real(r->report, "cycles_per_mac",
                            (double)(count->cycles + touch) / (double)macs);
}

static void add_layers(folder_report *r)
{
    static const char *const keys[] = { "name", "function", "shape", "macs", "constants",
                                        "read", "written",  "arena", "note" };

    muc_report_begin_columns(r->report, "layers", layer_columns);
    for (uint32_t i = 0; i < r->step_count; i++) {
        const json_t *step = json_array_get(r->steps, i), *tiles = json_object_get(step, "tiles");

        muc_report_begin_row(r->report);
        for (size_t k = 0; k < MUC_COUNT(keys); k++)
            copy_value(r->report, step, keys[k]);
        if (json_is_object(tiles))
            add_tiles(r, tiles);
        if (r->counts && r->is_counted[i])
            add_counted(r, i, muc_member_count(step, "macs"), muc_member_count(step, "constants"));
        muc_report_add_text(r->report, "node", "%.*s", NODE_LETTERS, muc_member_text(step, "node"));
        muc_report_end(r->report);
    }
    muc_report_end(r->report);
}

/* Every operand counted once a step: what moves at the least. */
static void add_traffic_row(folder_report *r, const char *memory, uint64_t read, uint64_t written)
{
    muc_report_begin_row(r->report);
    muc_report_add_text(r->report, "memory", "%s", memory);
    muc_report_add_count(r->report, "read", read);
    muc_report_add_count(r->report, "written", written);
    muc_report_end(r->report);
}

static void add_use(folder_report *r, const char *use, const json_t *memory, uint64_t bytes)
{
    muc_report_add_memory_use(r->report,
                              &(muc_memory_use){ use, muc_member_text(memory, "memory"), bytes,
                                                 muc_member_count(memory, "limit") });
}

static void add_uses(folder_report *r, const json_t *memories)
{
    const json_t *constants = memory_for(r, "constants");

    muc_report_begin_memories(r->report);
    for (size_t i = 0; i < json_array_size(memories); i++)
        add_use(r, muc_member_text(json_array_get(memories, i), "use"), json_array_get(memories, i),
                muc_member_count(json_array_get(memories, i), "bytes"));
    if (r->flash_bytes > muc_member_count(constants, "bytes"))
        add_use(r, "code", constants, r->flash_bytes - muc_member_count(constants, "bytes"));
    if (json_is_object(r->tile_memory))
        muc_report_add_memory_use(
            r->report, &(muc_memory_use){ "tiles", muc_member_text(r->tile_memory, "name"),
                                          muc_member_count(r->tile_memory, "bytes"),
                                          muc_member_count(r->tile_memory, "limit") });
    muc_report_end(r->report);
}

static void add_memories(folder_report *r)
{
    static const muc_report_column traffic_columns[] = {
        { "memory", NULL, "its name in the machine's description" },
        { "read", "bytes", "in one run, every operand once a step" },
        { "written", "bytes", "in one run, every result once" },
        { NULL, NULL, NULL },
    };
    const json_t *memories = json_object_get(r->folder->json, "memories");

    if (!json_array_size(memories))
        return;
    add_uses(r, memories);
    muc_report_begin_columns(r->report, "traffic", traffic_columns);
    add_traffic_row(r, muc_member_text(memory_for(r, "constants"), "memory"),
                    sum_of(r, "constants"), 0);
    add_traffic_row(r, muc_member_text(memory_for(r, "arena"), "memory"), sum_of(r, "read"),
                    sum_of(r, "written"));
    if (json_is_object(r->tile_memory))
        add_traffic_row(r, muc_member_text(r->tile_memory, "name"), tile_sum_of(r, "bytes_out"),
                        tile_sum_of(r, "bytes_in"));
    muc_report_end(r->report);
}

static void add_sections(folder_report *r)
{
    static const muc_report_column columns[] = {
        { "file", NULL, "of the folder, or of the compiler's libraries" },
        { "code", "bytes", "machine instructions, in flash" },
        { "constants", "bytes", "in flash" },
        { "data", "bytes", "in memory, their first values in flash" },
        { "zeroed", "bytes", "in memory; the arena, which is the caller's, is not counted" },
        { NULL, NULL, NULL },
    };

    muc_report_begin_columns(r->report, "sections", columns);
    for (size_t i = 0; i < r->profile.file_count; i++) {
        const muc_code_file *file = &r->profile.files[i];

        muc_report_begin_row(r->report);
        muc_report_add_text(r->report, "file", "%s", file->name);
        muc_report_add_count(r->report, "code", file->code);
        muc_report_add_count(r->report, "constants", file->constants);
        muc_report_add_count(r->report, "data", file->data);
        muc_report_add_count(r->report, "zeroed", file->zeroed);
        muc_report_end(r->report);
    }
    muc_report_end(r->report);
}

static void add_buffers(folder_report *r)
{
    static const muc_report_column columns[] = {
        { "name", NULL, "the tensor, input or scratch memory" },
        { "bytes", "bytes", NULL },
        { "address", "bytes", "from the arena's beginning" },
        { "first", "step", "in which it lives" },
        { "last", "step", "in which it lives" },
        { "persistent", NULL, "kept from run to run" },
        { "tensor", NULL, "what the network calls it" },
        { NULL, NULL, NULL },
    };

    muc_report_begin_columns(r->report, "buffers", columns);
    for (size_t i = 0; i < json_array_size(r->buffers); i++) {
        muc_report_begin_row(r->report);
        for (const muc_report_column *c = columns; c->key; c++)
            copy_value(r->report, json_array_get(r->buffers, i), c->key);
        muc_report_end(r->report);
    }
    muc_report_end(r->report);
}

/* ---- pictures ---- */

/* a description's number of bytes, bounded so that sums of two stay numbers */
static uint64_t within(uint64_t bytes)
{
    const uint64_t most = (uint64_t)1 << 40;

    return bytes < most ? bytes : most;
}

static muc_memory_buffer buffer_of(const folder_report *r, const json_t *item)
{
    uint64_t first = muc_member_count(item, "first"), last = muc_member_count(item, "last");

    if (json_is_true(json_object_get(item, "persistent")) || last > r->step_count)
        last = r->step_count;
    if (json_is_true(json_object_get(item, "persistent")) || first > last)
        first = 0;
    return (muc_memory_buffer){
        .name = *muc_member_text(item, "tensor") ? muc_member_text(item, "tensor")
                                                 : muc_member_text(item, "name"),
        .bytes = within(muc_member_count(item, "bytes")),
        .address = within(muc_member_count(item, "address")),
        .first = (uint32_t)first,
        .last = (uint32_t)last,
    };
}

/* The buffers of one memory over all steps and the reading of results after the last; figure has
 * the bytes. */
static muc_status draw_memory(folder_report *r, const json_t *list, const char *use,
                              const char *memory, muc_memory_figure *figure)
{
    size_t count = json_array_size(list);
    muc_memory_buffer *buffers;

    if (count == 0)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, count, &buffers));
    for (size_t i = 0; i < count; i++)
        buffers[i] = buffer_of(r, json_array_get(list, i));
    MUC_TRY(muc_arena_format(r->ctx, r->arena, &figure->title, "memory over time: %s in %s", use,
                             memory));
    figure->buffers = buffers;
    figure->buffer_count = count;
    figure->steps = r->step_names;
    figure->step_count = r->step_count + 1;
    muc_report_add_memory(r->report, figure);
    return MUC_OK;
}

static muc_status draw_memories(folder_report *r)
{
    const json_t *json = r->folder->json, *arena = memory_for(r, "arena");
    muc_memory_figure large = {
        .peak = muc_member_count(json, "arena_bytes"),
        .bound = muc_member_count(json, "arena_bound"),
        .limit = muc_member_count(arena, "limit"),
    };
    muc_memory_figure small = {
        .peak = muc_member_count(r->tile_memory, "bytes"),
        .limit = muc_member_count(r->tile_memory, "limit"),
    };

    MUC_TRY(draw_memory(r, r->buffers, "arena", muc_member_text(arena, "memory"), &large));
    return draw_memory(r, json_object_get(json, "tile_buffers"), "tiles",
                       muc_member_text(r->tile_memory, "name"), &small);
}

/* one colour an operator, in the order of their coming; 0 is the inputs' */
static void choose_kinds(const folder_report *r, muc_graph_box *boxes)
{
    uint32_t kinds = 1;

    for (uint32_t i = 0; i < r->step_count; i++) {
        const char *own = muc_member_text(json_array_get(r->steps, i), "operator");
        uint32_t same = 0;

        while (same < i &&
               strcmp(muc_member_text(json_array_get(r->steps, same), "operator"), own) != 0)
            same++;
        boxes[i].kind = same < i ? boxes[same].kind : kinds++;
    }
}

static muc_status make_boxes(folder_report *r, muc_graph_box *boxes)
{
    size_t inputs = r->folder->input_count;

    for (size_t i = 0; i < inputs; i++)
        boxes[i] = (muc_graph_box){ .name = r->folder->inputs[i].name, .detail = "input" };
    for (uint32_t i = 0; i < r->step_count; i++) {
        const json_t *step = json_array_get(r->steps, i);
        muc_graph_box *box = &boxes[inputs + i];

        *box =
            (muc_graph_box){ .name = r->step_names[i], .detail = muc_member_text(step, "shape") };
        MUC_TRY(muc_arena_format(r->ctx, r->arena, &box->tip,
                                 "%s\n%s\n%llu multiply-accumulates, %llu bytes of constants",
                                 muc_member_text(step, "node"), muc_member_text(step, "function"),
                                 (unsigned long long)muc_member_count(step, "macs"),
                                 (unsigned long long)muc_member_count(step, "constants")));
    }
    choose_kinds(r, boxes + inputs);
    return MUC_OK;
}

/* arrows to a step from a list of boxes before it; gives how many were added */
static size_t add_arrows(const json_t *list, size_t base, size_t end, size_t to,
                         muc_graph_arrow *arrows)
{
    size_t count = 0;

    for (size_t i = 0; i < json_array_size(list); i++) {
        json_int_t from = json_integer_value(json_array_get(list, i));

        if (from >= 0 && (size_t)from < end)
            arrows[count++] = (muc_graph_arrow){ (uint32_t)(base + (size_t)from), (uint32_t)to };
    }
    return count;
}

static muc_status draw_graph(folder_report *r)
{
    size_t inputs = r->folder->input_count, most = 0, count = 0;
    muc_graph_box *boxes;
    muc_graph_arrow *arrows;

    if (r->step_count == 0 || inputs + r->step_count > MUC_GRAPH_MOST_BOXES)
        return MUC_OK;
    for (uint32_t i = 0; i < r->step_count; i++)
        most += json_array_size(json_object_get(json_array_get(r->steps, i), "from")) +
                json_array_size(json_object_get(json_array_get(r->steps, i), "inputs"));
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, inputs + r->step_count, &boxes));
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, most + 1, &arrows));
    MUC_TRY(make_boxes(r, boxes));
    for (uint32_t i = 0; i < r->step_count; i++) {
        const json_t *step = json_array_get(r->steps, i);

        count += add_arrows(json_object_get(step, "inputs"), 0, inputs, inputs + i, arrows + count);
        count += add_arrows(json_object_get(step, "from"), inputs, i, inputs + i, arrows + count);
    }
    muc_report_add_graph(r->report, &(muc_graph_figure){ .title = "graph",
                                                         .boxes = boxes,
                                                         .box_count = inputs + r->step_count,
                                                         .arrows = arrows,
                                                         .arrow_count = count });
    return MUC_OK;
}

/* ---- all of it ---- */

static muc_status name_steps(folder_report *r)
{
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, r->step_count + (size_t)1, &r->step_names));
    for (uint32_t i = 0; i < r->step_count; i++)
        r->step_names[i] = muc_member_text(json_array_get(r->steps, i), "name");
    r->step_names[r->step_count] = "(results are read)";
    return MUC_OK;
}

static muc_status make_report(folder_report *r, const muc_report_options *options)
{
    const char *board = options->board;

    r->steps = json_object_get(r->folder->json, "steps");
    r->buffers = json_object_get(r->folder->json, "buffers");
    r->tile_memory = json_object_get(r->folder->json, "tile_memory");
    r->speaks = json_object_get(r->folder->json, "language_model") != NULL;
    if (json_array_size(r->steps) > MOST_STEPS)
        return muc_fail(r->ctx, MUC_MALFORMED, r->folder->path, MUC_NO_OFFSET,
                        "its description has %zu steps, at most %d are expected",
                        json_array_size(r->steps), MOST_STEPS);
    r->step_count = (uint32_t)json_array_size(r->steps);
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, r->step_count + (size_t)1, &r->slow));
    MUC_TRY(name_steps(r));
    if (board)
        MUC_TRY(count_on(r, options));
    MUC_TRY(add_facts(r, board));
    add_layers(r);
    add_memories(r);
    if (board)
        add_sections(r);
    add_buffers(r);
    MUC_TRY(muc_code_answer(r->ctx, r->arena, r->folder, r->cycles, r->slow, r->report));
    if (r->cycles)
        MUC_TRY(muc_code_draw_roofline(r->ctx, r->arena, r->folder, r->cycles, r->report));
    MUC_TRY(draw_memories(r));
    return draw_graph(r);
}

muc_status muc_report_mcu(muc_context *ctx, const char *path, const muc_report_options *options,
                          muc_report **out)
{
    muc_arena arena = { 0 };
    muc_code_folder folder;
    folder_report r = { .ctx = ctx, .folder = &folder, .arena = &arena };
    muc_status status;

    MUC_TRY(muc_code_open(ctx, path, &folder));
    status = muc_report_new(ctx, &r.report);
    if (status == MUC_OK)
        status = make_report(&r, options);
    if (status == MUC_OK)
        status = muc_report_status(ctx, r.report);
    if (status == MUC_OK)
        *out = r.report;
    else
        muc_report_free(r.report);
    muc_arena_free(&arena);
    muc_code_close(&folder);
    return status;
}

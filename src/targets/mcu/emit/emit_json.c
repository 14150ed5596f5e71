/* emit_json.c - NAME.json: what muc itself wants to know of a folder that it wrote. */
#include <inttypes.h>
#include <string.h>

#include "targets/mcu/emit/emit_program.h"
#include "targets/mcu/emit/emit_language.h"
#include "targets/mcu/plan/plan_arena.h"

static void add_key(muc_text *text, const char *key, const char *value)
{
    muc_text_add_json(text, key);
    muc_text_add(text, ": ");
    muc_text_add_json(text, value);
}

/* the dimensions as expressions of the run's arguments, where one is not fixed */
static void add_extents(const muc_mcu_program *program, const muc_tensor *tensor,
                        const muc_mcu_cache *cache, muc_text *text)
{
    const muc_expr_pool *pool = program->graph->pool;
    bool is_open = cache != NULL;

    for (uint32_t i = 0; i < tensor->rank; i++)
        is_open = is_open || !muc_expr_is_const(pool, tensor->dims[i]);
    if (!is_open)
        return;
    muc_text_add(text, ", \"extents\": [");
    for (uint32_t i = 0; i < tensor->rank; i++) {
        muc_text_add(text, "%s\"", i ? ", " : "");
        muc_expr_print(pool, cache && i == cache->axis ? cache->rows : tensor->dims[i], text);
        muc_text_add(text, "\"");
    }
    muc_text_add(text, "]");
}

/* what a run is told of lengths, in this order */
static void add_arguments(const muc_mcu_program *program, muc_text *text)
{
    const muc_expr_pool *pool = program->graph->pool;
    const char *before = "";

    if (!program->arguments)
        return;
    muc_text_add(text, "  \"arguments\": [");
    for (uint32_t i = 0; i < muc_expr_input_count(pool); i++) {
        const muc_expr_input *input = muc_expr_get_input(pool, i);

        if (!(program->arguments >> i & 1))
            continue;
        muc_text_add(text, "%s\n    { ", before);
        add_key(text, "name", input->name);
        muc_text_add(text,
                     ", \"least\": %" PRIu32 ", \"most\": %" PRIu32 ", \"multiple\": %" PRIu32 " }",
                     input->lo, input->hi, input->multiple ? input->multiple : 1);
        before = ",";
    }
    muc_text_add(text, "\n  ],\n");
}

/* cache: of a state, what a run reads of it; else NULL */
static void add_port(const muc_mcu_program *program, const muc_mcu_value *value,
                     const muc_mcu_cache *cache, muc_text *text)
{
    const muc_tensor *tensor = value->tensor;
    const muc_quantization *q = tensor->quantization;

    muc_text_add(text, "    { ");
    add_key(text, "name", tensor->name);
    muc_text_add(text, ", ");
    add_key(text, "field", value->name);
    muc_text_add(text, ", ");
    add_key(text, "type", muc_dtype_get(tensor->dtype)->name);
    muc_text_add(text, ", \"dims\": [");
    for (uint32_t i = 0; i < tensor->rank; i++)
        muc_text_add(text, "%s%" PRIu32, i ? ", " : "",
                     muc_expr_get(program->graph->pool, tensor->dims[i])->hi);
    muc_text_add(text, "], \"bytes\": %" PRIu64, value->bytes);
    if (q && q->count == 1)
        muc_text_add(text, ", \"scale\": %.9g, \"zero\": %" PRId32, (double)q->scales[0],
                     q->zero_points[0]);
    add_extents(program, tensor, cache, text);
    muc_text_add(text, " }");
}

static void add_ports(const muc_mcu_program *program, bool outputs, muc_text *text)
{
    const muc_mcu_ports *ports = outputs ? &program->outputs : &program->inputs;

    muc_text_add(text, "  \"%s\": [", outputs ? "outputs" : "inputs");
    for (uint32_t i = 0; i < ports->count; i++) {
        muc_text_add(text, i ? ",\n" : "\n");
        add_port(program, &program->values[ports->values[i]], NULL, text);
    }
    muc_text_add(text, "\n  ],\n");
}

static void add_caches(const muc_mcu_program *program, muc_text *text)
{
    const char *before = "  \"caches\": [\n", *end = "";
    muc_mcu_cache cache;

    for (uint32_t i = 0; i < program->value_count; i++)
        if (muc_mcu_find_cache(program, i, &cache)) {
            muc_text_add(text, "%s", before);
            add_port(program, &program->values[i], &cache, text);
            before = ",\n";
            end = "\n  ],\n";
        }
    muc_text_add(text, "%s", end);
}

/* what exports call their inputs, and which record is whose */
static void add_exports(const muc_mcu_exports *exports, muc_text *text)
{
    muc_text_add(text, "  \"arrays\": [");
    for (uint32_t i = 0; i < exports->array_count; i++) {
        muc_text_add(text, "%s", i ? ", " : "");
        muc_text_add_json(text, exports->arrays[i]);
    }
    muc_text_add(text, "],\n  \"records\": [");
    for (uint32_t i = 0; i < exports->record_count; i++) {
        const muc_mcu_record *record = &exports->records[i];

        muc_text_add(text, "%s\n    { \"pos\": %" PRIu32 ", \"m\": %" PRIu32 ", ", i ? "," : "",
                     record->pos, record->m);
        add_key(text, "file", record->file);
        muc_text_add(text, " }");
    }
    muc_text_add(text, "\n  ],\n");
}

static uint64_t constant_bytes_of(const muc_mcu_program *program, const muc_mcu_step *step)
{
    uint64_t bytes = 0, offset;

    for (uint32_t i = 0; i < step->argument_count; i++) {
        const muc_mcu_argument *argument = &step->arguments[i];
        const muc_mcu_value *value;

        if (argument->kind == MUC_MCU_TEXT)
            continue;
        value = &program->values[muc_mcu_root(program, argument->value, &offset)];
        bytes += value->kind == MUC_MCU_CONST ? value->bytes : 0;
    }
    return bytes + step->packed_bytes;
}

/* bytes that live while a step runs */
static uint64_t live_bytes(const muc_mcu_program *program, uint32_t step)
{
    uint64_t end = 0, begin = UINT64_MAX;

    for (size_t i = 0; i < program->plan.count; i++) {
        const muc_plan_buffer *buffer = &program->plan.buffers[i];

        if (buffer->persistent || (buffer->first <= step && step <= buffer->last)) {
            begin = buffer->address < begin ? buffer->address : begin;
            end = buffer->address + buffer->bytes > end ? buffer->address + buffer->bytes : end;
        }
    }
    return end > begin ? end - begin : 0;
}

/* how a step works in tiles, or why not */
static void add_tiles(const muc_mcu_step *step, muc_text *text)
{
    const muc_mcu_step_tiles *t = step->tiles;

    if (step->note) {
        muc_text_add(text, ", ");
        add_key(text, "note", step->note);
    }
    if (!t)
        return;
    muc_text_add(text,
                 ",\n      \"tiles\": { \"rows\": %" PRIu32 ", \"row_tile\": %" PRIu32
                 ", \"channels\": %" PRIu32 ", \"channel_tile\": %" PRIu32 ", \"count\": %" PRIu32
                 ", \"cores\": %" PRIu32 ", \"depth\": %" PRIu32 ", \"depth_tile\": %" PRIu32
                 ",\n        \"outer\": \"%s\", \"double_buffered\": %s, \"bytes\": %" PRIu64
                 ", \"bytes_in\": %" PRIu64 ", \"constant_bytes_in\": %" PRIu64
                 ", \"bytes_out\": %" PRIu64 ",\n        \"compute_cycles\": %" PRIu64
                 ", \"dma_cycles\": %" PRIu64 ", \"cycles\": %" PRIu64 " }",
                 t->rows, t->row_tile, t->channels, t->channel_tile, t->count, t->cores, t->depth,
                 t->depth_tile, t->channels_outer ? "channels" : "rows",
                 t->double_buffered ? "true" : "false", t->small_bytes, t->in_bytes,
                 t->constant_bytes, t->out_bytes, t->compute_cycles, t->dma_cycles, t->cycles);
}

/* ---- steps ---- */

/* An activation that is given as working memory is written: its type is not the kernel's. */
static bool is_activation(const muc_mcu_program *program, const muc_mcu_argument *argument,
                          muc_mcu_argument_kind kind)
{
    uint64_t offset;
    muc_mcu_value_kind of;

    if (argument->kind == MUC_MCU_TEXT)
        return false;
    of = program->values[muc_mcu_root(program, argument->value, &offset)].kind;
    if (kind == MUC_MCU_WRITE && argument->kind == MUC_MCU_WORKING)
        return of == MUC_MCU_ACTIVATION;
    return argument->kind == kind && of != MUC_MCU_CONST;
}

/* bytes of the activations that a step reads, or writes; one that it is given twice counts once */
static uint64_t moved_bytes(const muc_mcu_program *program, const muc_mcu_step *step,
                            muc_mcu_argument_kind kind)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < step->argument_count; i++) {
        uint32_t before = 0;

        while (before < i && (!is_activation(program, &step->arguments[before], kind) ||
                              step->arguments[before].value != step->arguments[i].value))
            before++;
        if (before == i && is_activation(program, &step->arguments[i], kind))
            bytes += program->values[step->arguments[i].value].bytes;
    }
    return bytes;
}

/* whether two values share bytes of one buffer */
static bool meet(const muc_mcu_program *program, uint32_t a, uint32_t b)
{
    uint64_t at_a, at_b;

    return muc_mcu_root(program, a, &at_a) == muc_mcu_root(program, b, &at_b) &&
           at_a < at_b + program->values[b].bytes && at_b < at_a + program->values[a].bytes;
}

static bool writes_to(const muc_mcu_program *program, const muc_mcu_step *step, uint32_t value)
{
    for (uint32_t i = 0; i < step->argument_count; i++)
        if (is_activation(program, &step->arguments[i], MUC_MCU_WRITE) &&
            meet(program, step->arguments[i].value, value))
            return true;
    return false;
}

static bool reads_value(const muc_mcu_program *program, const muc_mcu_step *step, uint32_t value)
{
    for (uint32_t i = 0; i < step->argument_count; i++)
        if (is_activation(program, &step->arguments[i], MUC_MCU_READ) &&
            meet(program, step->arguments[i].value, value))
            return true;
    return false;
}

static bool reads_from(const muc_mcu_program *program, const muc_mcu_step *step,
                       const muc_mcu_step *earlier)
{
    for (uint32_t i = 0; i < step->argument_count; i++)
        if (is_activation(program, &step->arguments[i], MUC_MCU_READ) &&
            writes_to(program, earlier, step->arguments[i].value))
            return true;
    return false;
}

/* the steps, and the network's inputs, that a step reads the results of */
static void add_sources(const muc_mcu_program *program, uint32_t step, muc_text *text)
{
    const char *before = "";

    muc_text_add(text, ", \"from\": [");
    for (uint32_t i = 0; i < step; i++)
        if (reads_from(program, &program->steps[step], &program->steps[i])) {
            muc_text_add(text, "%s%" PRIu32, before, i);
            before = ", ";
        }
    before = "";
    muc_text_add(text, "], \"inputs\": [");
    for (uint32_t i = 0; i < program->inputs.count; i++)
        if (reads_value(program, &program->steps[step], program->inputs.values[i])) {
            muc_text_add(text, "%s%" PRIu32, before, i);
            before = ", ";
        }
    muc_text_add(text, "]");
}

static void add_shape(const muc_mcu_program *program, const muc_mcu_step *step, muc_text *text)
{
    muc_text shape = { 0 };

    muc_tensor_print_shape(program->graph, &program->graph->tensors[step->node->outputs[0]],
                           &shape);
    muc_text_add(text, ", ");
    add_key(text, "shape", shape.data ? shape.data : "");
    text->failed = text->failed || shape.failed;
    muc_text_free(&shape);
}

static void add_step(const muc_mcu_program *program, uint32_t index, muc_text *text)
{
    const muc_mcu_step *step = &program->steps[index];

    add_key(text, "name", step->name);
    muc_text_add(text, ", ");
    add_key(text, "node", step->node ? step->node->name : "");
    muc_text_add(text, ", ");
    add_key(text, "operator", step->node ? muc_op_get(step->node->op)->name : "");
    muc_text_add(text, ", ");
    add_key(text, "function", step->function);
    if (step->node)
        add_shape(program, step, text);
    muc_text_add(text,
                 ", \"macs\": %" PRIu64 ", \"constants\": %" PRIu64 ", \"read\": %" PRIu64
                 ", \"written\": %" PRIu64 ", \"arena\": %" PRIu64 ", \"traces\": %" PRIu32,
                 step->macs, constant_bytes_of(program, step),
                 moved_bytes(program, step, MUC_MCU_READ),
                 moved_bytes(program, step, MUC_MCU_WRITE), live_bytes(program, index),
                 muc_mcu_trace_count(program, step));
    add_sources(program, index, text);
    add_tiles(step, text);
}

static void add_steps(const muc_mcu_program *program, muc_text *text)
{
    muc_text_add(text, "  \"steps\": [");
    for (uint32_t i = 0; i < program->step_count; i++) {
        muc_text_add(text, "%s\n    { ", i ? "," : "");
        add_step(program, i, text);
        muc_text_add(text, " }");
    }
    muc_text_add(text, "\n  ],\n");
}

/* ---- memory ---- */

/* a memory of the machine with what the program takes of it */
static void add_memory(const muc_mcu_program *program, muc_mcu_use use, const char *name,
                       uint64_t bytes, muc_text *text)
{
    const muc_mcu_memory *memory = muc_mcu_memory_for(program->machine, use);

    muc_text_add(text, "    { ");
    add_key(text, "use", name);
    muc_text_add(text, ", ");
    add_key(text, "memory", memory->name);
    muc_text_add(text, ", \"bytes\": %" PRIu64, bytes);
    if (memory->bytes)
        muc_text_add(text, ", \"limit\": %" PRIu32, memory->bytes);
    if (memory->cycles_per_kb)
        muc_text_add(text, ", \"cycles_per_kb\": %" PRIu32, memory->cycles_per_kb);
    if (memory->line_bytes)
        muc_text_add(text, ", \"line_bytes\": %" PRIu32 ", \"line_cycles\": %" PRIu32,
                     memory->line_bytes, memory->line_cycles);
    muc_text_add(text, " }");
}

static void add_memories(const muc_mcu_program *program, muc_text *text)
{
    muc_text_add(text, "  \"memories\": [\n");
    add_memory(program, MUC_MCU_ARENA, "arena", program->plan.peak, text);
    muc_text_add(text, ",\n");
    add_memory(program, MUC_MCU_WEIGHTS, "constants", muc_mcu_constant_bytes(program), text);
    muc_text_add(text, "\n  ],\n");
}

static void add_buffers(const char *key, const muc_plan *plan, muc_text *text)
{
    muc_text_add(text, "  \"%s\": [", key);
    for (size_t i = 0; i < plan->count; i++) {
        const muc_plan_buffer *buffer = &plan->buffers[i];

        muc_text_add(text, "%s\n    { ", i ? "," : "");
        add_key(text, "name", buffer->name);
        if (buffer->tensor && strcmp(buffer->tensor, buffer->name) != 0) {
            muc_text_add(text, ", ");
            add_key(text, "tensor", buffer->tensor);
        }
        muc_text_add(text,
                     ", \"bytes\": %" PRIu64 ", \"address\": %" PRIu64 ", \"first\": %" PRIu32
                     ", \"last\": %" PRIu32 "%s }",
                     buffer->bytes, buffer->address, buffer->first, buffer->last,
                     buffer->persistent ? ", \"persistent\": true" : "");
    }
    muc_text_add(text, "\n  ]");
}

void muc_mcu_emit_json(const muc_mcu_program *program, muc_text *text)
{
    const muc_mcu_core_info *core = muc_mcu_core_get(program->machine->core);
    muc_text path = { 0 };

    muc_text_add(text, "{\n  ");
    add_key(text, "made_by", "muc --target mcu");
    muc_text_add(text, ",\n  ");
    add_key(text, "name", program->name);
    muc_text_add(text, ",\n  ");
    add_key(text, "machine", program->machine->name);
    muc_text_add(text, ",\n  ");
    add_key(text, "core", core->name);
    muc_text_add(text, ",\n  \"clock_mhz\": %" PRIu32, program->machine->clock_mhz);
    if (program->machine->milliwatts)
        muc_text_add(text, ",\n  \"milliwatts\": %" PRIu32, program->machine->milliwatts);
    if (program->machine->power_source) {
        muc_text_add(text, ",\n  ");
        add_key(text, "power_source", program->machine->power_source);
    }
    muc_text_add(text,
                 ",\n  \"arena_bytes\": %" PRIu64 ",\n  \"arena_bound\": %" PRIu64
                 ",\n  \"constant_bytes\": %" PRIu64 ",\n  \"sources\": [",
                 program->plan.peak, program->plan.least, muc_mcu_constant_bytes(program));
    for (uint32_t i = 0; i < program->source_count; i++) {
        muc_text_add(text, "%s", i ? ", " : "");
        path.size = 0;
        muc_text_add(&path, "%s%s", program->package->code, program->sources[i]);
        muc_text_add_json(text, path.failed ? "" : path.data);
    }
    text->failed |= path.failed;
    muc_text_free(&path);
    muc_text_add(text, "],\n");
    if (*program->package->code) {
        muc_text_add(text, "  ");
        add_key(text, "code", program->package->code);
        muc_text_add(text, ",\n");
    }
    if (program->tiles.count) {
        muc_text_add(text, "  \"tile_memory\": { ");
        add_key(text, "name", program->tiles.arena);
        muc_text_add(text, ", \"bytes\": %" PRIu64 ", \"limit\": %" PRIu64 " },\n",
                     program->tiles.peak, program->tiles.capacity);
    }
    if (program->loop.turns)
        muc_text_add(text,
                     "  \"patches\": { \"first\": %" PRIu32 ", \"steps\": %" PRIu32
                     ", \"rows\": %" PRIu32 ", \"columns\": %" PRIu32
                     ", \"arena_without\": %" PRIu64 ", \"more_macs\": %" PRId64 " },\n",
                     program->loop.first, program->loop.end - program->loop.first,
                     program->loop.grid_rows, program->loop.grid_columns, program->loop.plain_peak,
                     program->loop.more_macs);
    if (program->lm)
        muc_mcu_lm_json(program, text);
    if (program->options) {
        muc_text_add(text, "  ");
        add_key(text, "options", program->options);
        muc_text_add(text, ",\n  \"fingerprint\": %" PRIu32 ",\n", program->fingerprint);
    }
    if (muc_mcu_streams(program))
        muc_text_add(text, "  \"streams\": true,\n");
    add_arguments(program, text);
    add_ports(program, false, text);
    add_ports(program, true, text);
    if (!program->lm)
        add_caches(program, text);
    if (program->exports)
        add_exports(program->exports, text);
    add_memories(program, text);
    add_steps(program, text);
    if (program->tiles.count) {
        add_buffers("tile_buffers", &program->tiles, text);
        muc_text_add(text, ",\n");
    }
    add_buffers("buffers", &program->plan, text);
    muc_text_add(text, "\n}\n");
}

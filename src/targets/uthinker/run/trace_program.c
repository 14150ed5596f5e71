/* trace_program.c - trace events in JSON: complete events ("X") with microseconds, and metadata
 * ("M") that names the rows. Events of a row nest; none overlaps another in part. */
#include "targets/uthinker/run/trace_program.h"

#include <inttypes.h>

#include "base/file.h"
#include "targets/uthinker/clock/clock_work.h"

/* rows of the picture, from the top down; 1 to 4 are parts of the clock */
enum { ROW_FIRST_PART = 1, ROW_STAGES = ROW_FIRST_PART + MUC_CLOCK_PARTS, NO_LAYER = 0 };

/* what the CPU passes through: a stage, a layer */
typedef struct passage {
    uint64_t from, to;
    uint32_t id;
    bool open;
} passage;

typedef struct tracing {
    muc_output *output;
    muc_text text; /* not written yet */
    muc_status status;
    muc_clock_account account;
    muc_clock_watch inner; /* the account's */
    passage stage, layer, doing;
} tracing;

static void add_time(tracing *t, const char *key, uint64_t ps)
{
    muc_text_add(&t->text, ",\"%s\":%" PRIu64 ".%06" PRIu64, key, ps / 1000000, ps % 1000000);
}

/* Leaves the event's object open, for its arguments. */
static void begin_event(tracing *t, uint32_t row, const char *name, uint64_t from, uint64_t to)
{
    muc_text_add(&t->text, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"name\":", row);
    muc_text_add_json(&t->text, name);
    add_time(t, "ts", from);
    add_time(t, "dur", to - from);
}

static void flush(tracing *t)
{
    if (t->text.failed || t->status != MUC_OK || t->text.size == 0)
        return;
    t->status = muc_output_write(t->output, t->text.data, t->text.size);
    t->text.size = 0;
}

static void end_event(tracing *t)
{
    enum { ENOUGH = 1 << 16 };

    muc_text_add(&t->text, "}");
    if (t->text.size > ENOUGH)
        flush(t);
}

static void add_layer(tracing *t, uint32_t at)
{
    uint32_t layer = muc_clock_layer(&t->account, at);

    if (layer != NO_LAYER)
        muc_text_add(&t->text, ",\"layer\":%u", layer - 1);
}

/* ---- the CPU ---- */

static void close_doing(tracing *t)
{
    const char *words = muc_clock_reason_words((muc_clock_reason)t->doing.id);
    bool waits = muc_clock_reason_waits((muc_clock_reason)t->doing.id);
    muc_text name = { 0 };

    if (!t->doing.open)
        return;
    muc_text_add(&name, "%s%s", waits ? "waits for " : "", words);
    begin_event(t, ROW_FIRST_PART + MUC_PART_CPU, name.data ? name.data : "", t->doing.from,
                t->doing.to);
    muc_text_add(&t->text, ",\"cat\":\"%s\"", waits ? "wait" : "work");
    end_event(t);
    muc_text_free(&name);
}

static void close_passage(tracing *t, const passage *p, bool is_layer)
{
    muc_text name = { 0 };

    if (!p->open || (is_layer && p->id == NO_LAYER))
        return;
    if (is_layer)
        muc_text_add(&name, "layer %u", p->id - 1);
    else
        muc_text_add(&name, "%s", t->account.stages[p->id]);
    begin_event(t, ROW_STAGES, name.data ? name.data : "", p->from, p->to);
    muc_text_add(&t->text, ",\"cat\":\"%s\"", is_layer ? "layer" : "stage");
    end_event(t);
    muc_text_free(&name);
}

/* Goes on with p, or begins another; true if there was another to close, which *before has. */
static bool go_on(passage *p, uint32_t id, uint64_t from, uint64_t to, passage *before)
{
    *before = *p;
    if (p->open && p->id == id && p->to == from) {
        p->to = to;
        return false;
    }
    *p = (passage){ from, to, id, true };
    return before->open;
}

static void watch_cpu(void *arg, uint64_t from, uint64_t to, muc_clock_reason reason, uint32_t at)
{
    tracing *t = arg;
    uint32_t layer = muc_clock_layer(&t->account, at), last = t->account.stage_count - 1;
    uint32_t stage = reason == MUC_CLOCK_CHOICE ? last : t->account.stage_of[at];
    passage before;

    t->inner.cpu(t->inner.arg, from, to, reason, at);
    if (from == to)
        return;
    if (t->doing.open && (t->doing.id != (uint32_t)reason || t->doing.to != from)) {
        close_doing(t);
        t->doing.open = false;
    }
    if (!t->doing.open)
        t->doing = (passage){ from, from, (uint32_t)reason, true };
    t->doing.to = to;
    if (t->layer.open && t->layer.id != layer && t->stage.open) { /* a stage ends with its layer */
        close_passage(t, &t->stage, false);
        t->stage.open = false;
    }
    if (go_on(&t->stage, stage, from, to, &before))
        close_passage(t, &before, false);
    if (go_on(&t->layer, layer, from, to, &before))
        close_passage(t, &before, true);
}

/* ---- engines ---- */

static void watch_instruction(void *arg, const muc_clock_event *event)
{
    tracing *t = arg;
    const muc_clock_work *work = event->work;

    t->inner.instruction(t->inner.arg, event);
    begin_event(t, ROW_FIRST_PART + (uint32_t)event->part, muc_insn_get(work->op)->name,
                event->begin, event->end);
    muc_text_add(&t->text, ",\"cat\":\"work\",\"args\":{\"stage\":");
    muc_text_add_json(&t->text, t->account.stages[t->account.stage_of[event->at]]);
    add_layer(t, event->at);
    muc_text_add(&t->text, ",\"word\":%u", event->at);
    add_time(t, "issued", event->issued);
    add_time(t, "complete", event->complete);
    if (event->part == MUC_PART_DMA) {
        muc_text_add(&t->text, ",\"bytes\":%" PRIu64 ",\"class\":", work->bytes);
        muc_text_add_json(&t->text,
                          muc_dram_class_words(muc_dram_class_at(
                              &t->account.places, (enum mur_region)work->region, work->offset)));
    } else if (event->part == MUC_PART_ARRAY) {
        muc_text_add(&t->text, ",\"macs\":%" PRIu64, work->macs);
    } else {
        muc_text_add(&t->text, ",\"elements\":%" PRIu64, work->elements);
    }
    muc_text_add(&t->text, "}");
    end_event(t);
}

/* ---- the file ---- */

static void add_head(tracing *t, const muc_advised_call *call, const char *program)
{
    static const char *const rows[] = { "DMA", "array", "vector unit", "CPU", "stages" };

    muc_text_add(&t->text, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"program\":");
    muc_text_add_json(&t->text, program);
    muc_text_add(&t->text, ",\"machine\":");
    muc_text_add_json(&t->text, call->machine->name);
    muc_text_add(&t->text, ",\"position\":%u,\"tokens\":%u},\n\"traceEvents\":[\n", call->position,
                 call->tokens);
    muc_text_add(&t->text, "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":");
    muc_text_add_json(&t->text, call->machine->name);
    muc_text_add(&t->text, "}}");
    for (uint32_t row = 1; row <= ROW_STAGES; row++)
        muc_text_add(
            &t->text,
            ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"name\":\"thread_name\",\"args\":{"
            "\"name\":\"%s\"}}"
            ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"name\":\"thread_sort_index\",\"args\":{"
            "\"sort_index\":%u}}",
            row, rows[row - 1], row, row);
}

static muc_status write_events(muc_context *ctx, muc_arena *arena, const muc_advised_call *call,
                               const char *program, tracing *t)
{
    const muc_clock_watch watch = { t, watch_cpu, watch_instruction };
    muc_clock_sums sums = { 0 };

    MUC_TRY(muc_clock_account_begin(ctx, arena, call->program, call->machine, &t->account));
    t->inner = muc_clock_account_watch(&t->account);
    add_head(t, call, program);
    MUC_TRY(muc_clock_watched(ctx, call->program, call->machine, call->position, call->tokens,
                              MUC_CLOCK_LIKELIEST, &watch, &sums));
    close_doing(t);
    close_passage(t, &t->stage, false);
    close_passage(t, &t->layer, true);
    muc_text_add(&t->text, "\n]}\n");
    flush(t);
    MUC_TRY(muc_text_status(ctx, &t->text));
    return t->status;
}

muc_status muc_program_trace(muc_context *ctx, muc_arena *arena, const muc_advised_call *call,
                             const char *program, const char *path)
{
    tracing t = { .status = MUC_OK };
    muc_status status;

    MUC_TRY(muc_output_begin(ctx, path, &t.output));
    status = write_events(ctx, arena, call, program, &t);
    muc_text_free(&t.text);
    if (status == MUC_OK)
        return muc_output_commit(t.output);
    muc_output_discard(t.output);
    return status;
}

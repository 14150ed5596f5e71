/* clock.c - a call of a program in time: SPEC.md section 9.
 *
 * Everything an instruction waits for is earlier in the program's order, so its times are known
 * when it is issued: no queue of events is kept, only when each engine and token will be free.
 */
#include "targets/uthinker/clock/clock.h"

#include "mur_code.h"
#include "targets/uthinker/clock/clock_work.h"

enum { MOST_QUEUE = 64 };

typedef struct clock {
    const mur_program *program;
    const muc_uthinker_machine *machine;
    const muc_uthinker_time *time;
    muc_clock_sums *sums;
    const muc_clock_watch *watch; /* or NULL */
    uint64_t base;                /* when the call begins, for the watch */
    const uint32_t *item;         /* that the CPU executes */
    uint64_t now;                 /* of the CPU */
    uint64_t free_at[MUR_CPU];    /* when an engine can begin its next instruction */
    uint64_t complete[MUR_CPU]
                     [MOST_QUEUE]; /* when its latest are, instruction i at i % MOST_QUEUE */
    uint64_t issued[MUR_CPU];
    uint64_t token[MUR_TOKENS];            /* when it is complete */
    muc_clock_reason token_of[MUR_TOKENS]; /* what signals it */
    uint32_t
        open; /* tokens that engines were to signal and that the CPU has not waited for since */
    uint64_t seen;              /* logits that AMAX looked at */
    const uint32_t *stream_end; /* behind the loop that the sequencer repeats, or NULL */
} clock;

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* UINT64_MAX: too late to be told; a call that comes there fails. */
static uint64_t after(uint64_t time, uint64_t ps)
{
    return ps > UINT64_MAX - time ? UINT64_MAX : time + ps;
}

/* ---- the CPU ---- */

static uint32_t item_at(const clock *c)
{
    return (uint32_t)(c->item - c->program->code);
}

/* The CPU does this until then. */
static void go_on(clock *c, uint64_t until, muc_clock_reason reason)
{
    if (c->watch)
        c->watch->cpu(c->watch->arg, after(c->base, c->now), after(c->base, until), reason,
                      item_at(c));
    c->now = until;
}

/* The CPU waits, if that is not over. */
static void wait_until(clock *c, uint64_t time, muc_clock_reason reason)
{
    if (time > c->now)
        go_on(c, time, reason);
}

static uint64_t execute(clock *c, uint64_t instructions, muc_clock_reason reason)
{
    const muc_uthinker_time *time = c->time;
    uint64_t ps = muc_clock_scale(instructions * time->cpu_cpk, 1000000, time->cpu_khz);

    go_on(c, after(c->now, ps), reason);
    c->sums->cpu_ps += ps;
    c->sums->cpu_instructions += instructions;
    return ps;
}

/* words of CODE and TABL that an item takes */
static uint32_t words_of(const uint32_t *item)
{
    switch (mur_bits(item[0], 0, MUR_KIND_WIDTH)) {
    case MUR_INST:
        return MUR_WORDS_INST + MUR_CODE_GET(item[0], INST, words) +
               MUR_CODE_GET(item[0], INST, patches);
    case MUR_EVAL:
        return MUR_WORDS_EVAL + (MUR_CODE_GET(item[0], EVAL, op) == MUR_OP_TABLE ? 2 : 0);
    case MUR_FOR:
        return MUR_WORDS_FOR;
    default:
        return MUR_WORDS_NEXT;
    }
}

/* Cycles of the sequencer, for the item at hand. */
static void sequence(clock *c, uint64_t cycles)
{
    go_on(c, after(c->now, muc_clock_scale(cycles, 1000000000, c->time->acc_khz)),
          MUC_CLOCK_SEQUENCER);
}

/* The item at hand is executed: by the CPU, or by the sequencer if that repeats a loop. */
static void interpret(clock *c, uint64_t instructions)
{
    uint64_t words = words_of(c->item);

    if (!c->stream_end) {
        execute(c, instructions, MUC_CLOCK_ITEMS);
        return;
    }
    sequence(c, words * c->time->sequencer_word);
    c->sums->sram_bytes += sizeof(*c->item) * words;
}

static uint32_t count_bits(uint32_t mask)
{
    uint32_t count = 0;

    for (; mask != 0; mask &= mask - 1)
        count++;
    return count;
}

/* Executes the INST at hand; mask: tokens that the CPU, or the sequencer, waits for. */
static void execute_inst(clock *c, uint32_t mask)
{
    const muc_uthinker_time *time = c->time;
    uint64_t words = MUR_CODE_GET(c->item[0], INST, words);
    uint64_t patches = MUR_CODE_GET(c->item[0], INST, patches);
    uint64_t count = time->cpu_inst + (uint64_t)time->cpu_wait * count_bits(mask & c->open);

    if (patches)
        count += time->cpu_patched + (words - 4) * time->cpu_word + patches * time->cpu_patch;
    interpret(c, count);
    c->open &= ~mask;
    c->sums->instructions++;
}

/* when the tokens of the mask are all complete, and what signals the last of them */
static uint64_t all_complete(const clock *c, uint32_t mask, muc_clock_reason *reason)
{
    uint64_t at = 0;

    *reason = MUC_CLOCK_TRANSFER;
    for (uint32_t i = 0; i < MUR_TOKENS; i++)
        if (mask >> i & 1 && c->token[i] > at) {
            at = c->token[i];
            *reason = c->token_of[i];
        }
    return at;
}

static muc_clock_part part_of(const muc_clock_work *work)
{
    return work->engine == MUR_DMA   ? MUC_PART_DMA
           : work->engine == MUR_CPU ? MUC_PART_CPU
           : work->op == MUC_INSN_MM ? MUC_PART_ARRAY
                                     : MUC_PART_VECTOR;
}

static void signal(clock *c, const uint32_t *words, muc_clock_part part, uint64_t at)
{
    static const muc_clock_reason reasons[MUC_CLOCK_PARTS] = { MUC_CLOCK_TRANSFER,
                                                               MUC_CLOCK_PRODUCT, MUC_CLOCK_VECTOR,
                                                               MUC_CLOCK_EMBED };
    uint32_t sig = words[0] >> MUC_WORD0_SIG_SHIFT & MUC_WORD0_SIG_MASK;

    if (sig == 0)
        return;
    c->token[sig - 1] = at;
    c->token_of[sig - 1] = reasons[part];
    c->open |= 1u << (sig - 1);
    if (part == MUC_PART_CPU)
        c->open &= ~(1u << (sig - 1));
}

/* ---- the board ---- */

static void add_work(muc_clock_sums *sums, const muc_clock_work *work, muc_clock_part part,
                     uint64_t ps)
{
    if (work->op == MUC_INSN_LD)
        sums->read_bytes[work->region] += work->bytes;
    else if (work->op == MUC_INSN_ST)
        sums->written_bytes[work->region] += work->bytes;
    *(part == MUC_PART_DMA     ? &sums->dma_ps
      : part == MUC_PART_ARRAY ? &sums->array_ps
                               : &sums->vector_ps) += ps;
    sums->dram_bytes += work->burst_bytes;
    sums->sram_bytes += work->sram_bytes;
    sums->array_cycles += work->array_cycles;
    sums->macs += work->macs;
    sums->elements += work->elements;
}

static void tell(const clock *c, muc_clock_event *event, uint64_t begin, uint64_t ps,
                 uint64_t complete)
{
    event->issued = after(c->base, c->now);
    event->ready = after(c->base, event->ready);
    event->begin = after(c->base, begin);
    event->end = after(event->begin, ps);
    event->complete = after(c->base, complete);
    c->watch->instruction(c->watch->arg, event);
}

static mur_status submit(void *arg, const uint32_t *words)
{
    clock *c = arg;
    const muc_uthinker_time *time = c->time;
    const muc_clock_work work = muc_clock_work_of(c->machine, words);
    const enum mur_engine e = work.engine;
    uint64_t ps = muc_clock_work_ps(time, &work), n = c->issued[e], begin;
    uint32_t depth = e == MUR_DMA ? time->dma_queue : time->acc_queue;
    uint32_t mask = words[0] >> MUC_WORD0_WAIT_SHIFT;
    muc_clock_event event = {
        .words = words, .at = item_at(c), .work = &work, .part = part_of(&work)
    };
    uint64_t tokens = all_complete(c, mask, &event.waited_for);

    if (!time->hardware_tokens)
        wait_until(c, tokens, event.waited_for);
    if (n >= depth)
        wait_until(c, c->complete[e][(n - depth) % MOST_QUEUE],
                   e == MUR_DMA ? MUC_CLOCK_DMA_QUEUE : MUC_CLOCK_ACC_QUEUE);
    execute_inst(c, time->hardware_tokens ? 0 : mask);
    event.ready = later(c->now, c->free_at[e]);
    begin = later(event.ready, tokens);
    c->free_at[e] = after(begin, ps);
    c->complete[e][n % MOST_QUEUE] =
        after(c->free_at[e],
              e == MUR_DMA ? muc_clock_scale(time->dma_latency, 1000000000, time->acc_khz) : 0);
    c->issued[e] = n + 1;
    signal(c, words, event.part, c->complete[e][n % MOST_QUEUE]);
    add_work(c->sums, &work, event.part, ps);
    if (c->watch)
        tell(c, &event, begin, ps, c->complete[e][n % MOST_QUEUE]);
    return MUR_OK;
}

/* EMBED and AMAX */
static mur_status host(void *arg, const uint32_t *words)
{
    clock *c = arg;
    const muc_clock_work work = muc_clock_work_of(c->machine, words);
    uint32_t mask = words[0] >> MUC_WORD0_WAIT_SHIFT;
    muc_clock_reason reason;
    uint64_t tokens = all_complete(c, mask, &reason);

    wait_until(c, tokens, reason);
    execute_inst(c, mask);
    if (work.op == MUC_INSN_AMAX) {
        c->seen += work.elements;
        c->sums->choice_ps += execute(c, work.elements * c->time->cpu_logit, MUC_CLOCK_CHOICE);
    } else {
        c->sums->embed_ps += execute(c, work.elements * c->time->cpu_embed, MUC_CLOCK_EMBED);
    }
    signal(c, words, MUC_PART_CPU, c->now);
    return MUR_OK;
}

/* What the interpreter asks: the waiting is done in `submit`, so all is always complete. */
static uint32_t completed(void *arg, enum mur_engine engine)
{
    const clock *c = arg;

    return (uint32_t)c->issued[engine];
}

/* ---- calls ---- */

/* A streamed loop of a machine that has a sequencer is repeated by it, if it has rounds. */
static void execute_for(clock *c, const mur_run_state *run)
{
    const uint32_t *item = c->item;
    const muc_uthinker_time *time = c->time;
    uint32_t count = MUR_CODE_GET(item[0], FOR, constant)
                         ? item[1]
                         : run->slot[MUR_CODE_GET(item[0], FOR, count)];

    if (c->stream_end || time->sequencer_word == 0 || count == 0 ||
        !MUR_CODE_GET(item[0], FOR, streamed)) {
        interpret(c, time->cpu_for);
        return;
    }
    execute(c, (uint64_t)time->cpu_for + time->cpu_sequencer, MUC_CLOCK_ITEMS);
    sequence(c, time->sequencer_start);
    c->stream_end = item + MUR_WORDS_FOR + item[2] + MUR_WORDS_NEXT;
}

static void execute_item(clock *c, const mur_run_state *run)
{
    const muc_uthinker_time *time = c->time;

    if (c->item == c->stream_end)
        c->stream_end = NULL;
    switch (mur_bits(c->item[0], 0, MUR_KIND_WIDTH)) {
    case MUR_EVAL:
        interpret(c, time->cpu_eval);
        break;
    case MUR_FOR:
        execute_for(c, run);
        break;
    case MUR_NEXT:
        interpret(c, time->cpu_next);
        break;
    case MUR_END:
        for (uint32_t e = 0; e < MUR_CPU; e++)
            if (c->issued[e])
                wait_until(c, c->complete[e][(c->issued[e] - 1) % MOST_QUEUE], MUC_CLOCK_END);
        execute(c, time->cpu_end, MUC_CLOCK_ITEMS);
        break;
    default: /* INST: `submit` and `host` know what it asks */
        break;
    }
    c->sums->items++;
}

static mur_status run_call(clock *c, uint32_t entry, uint32_t pos, uint32_t m, bool logits)
{
    const mur_hal board = { c, submit, submit, host, completed, NULL, NULL };
    mur_run_state run;
    mur_status status = mur_start(&run, c->program, &board, entry, pos, m);

    if (!logits)
        mur_skip_logits(&run);
    c->item = c->program->code + c->program->entries[entry].start;
    execute(c, c->time->cpu_start, MUC_CLOCK_ITEMS);
    while (status == MUR_OK && !run.done) {
        c->item = c->program->code + run.at;
        execute_item(c, &run);
        status = mur_step(&run);
    }
    return status;
}

static uint32_t entry_of(const mur_program *program, uint32_t m)
{
    uint32_t entry = m > 1 ? mur_find_entry(program, MUR_ENTRY_PREFILL, m) : program->entry_count;

    return entry == program->entry_count && m == 1 ? mur_find_entry(program, MUR_ENTRY_DECODE, 1)
                                                   : entry;
}

/* The choice of the next token, after those logits that the program has looked at. */
static void choose(clock *c, muc_clock_choice choice)
{
    uint64_t logits = c->program->meta->vocabulary,
             left = logits - (c->seen < logits ? c->seen : logits);

    if (choice == MUC_CLOCK_NOTHING)
        return;
    c->sums->choice_ps += execute(
        c,
        left * c->time->cpu_logit + (choice == MUC_CLOCK_DRAWN ? logits * c->time->cpu_sample : 0),
        MUC_CLOCK_CHOICE);
}

static muc_status time_call(muc_context *ctx, const mur_program *program,
                            const muc_uthinker_machine *machine, uint32_t pos, uint32_t m,
                            muc_clock_choice choice, const muc_clock_watch *watch,
                            muc_clock_sums *sums)
{
    clock c = { .program = program,
                .machine = machine,
                .time = &machine->costs.time,
                .sums = sums,
                .watch = watch,
                .base = sums->ps };
    uint32_t entry = entry_of(program, m), context = program->meta->context;

    if (entry == program->entry_count || m > context || pos > context - m)
        return muc_fail(ctx, MUC_USAGE, "clock", MUC_NO_OFFSET,
                        "no call takes %u tokens at position %u: calls take up to %u, positions "
                        "are below %u",
                        m, pos, program->meta->rows, context);
    if (run_call(&c, entry, pos, m, choice != MUC_CLOCK_NOTHING) != MUR_OK)
        return muc_fail(ctx, MUC_BUG, "clock", MUC_NO_OFFSET, "the program stops at position %u",
                        pos);
    choose(&c, choice);
    sums->ps = after(sums->ps, c.now);
    if (sums->ps == UINT64_MAX)
        return muc_fail(ctx, MUC_UNSUPPORTED, "clock", MUC_NO_OFFSET,
                        "%u tokens at position %u take 213 days or longer, 2^64 picoseconds: the "
                        "machine (--machine FILE) must have higher clocks (acc_khz, cpu_khz), or "
                        "fewer cycles and instructions for what it does",
                        m, pos);
    sums->calls++;
    sums->tokens += m;
    sums->least_bytes +=
        muc_clock_least_bytes(program, machine, pos, m, choice != MUC_CLOCK_NOTHING);
    return MUC_OK;
}

muc_status muc_clock_call(muc_context *ctx, const mur_program *program,
                          const muc_uthinker_machine *machine, uint32_t pos, uint32_t m,
                          muc_clock_choice choice, muc_clock_sums *sums)
{
    return time_call(ctx, program, machine, pos, m, choice, NULL, sums);
}

muc_status muc_clock_watched(muc_context *ctx, const mur_program *program,
                             const muc_uthinker_machine *machine, uint32_t pos, uint32_t count,
                             muc_clock_choice choice, const muc_clock_watch *watch,
                             muc_clock_sums *sums)
{
    while (count != 0) {
        uint32_t rows = program->meta->rows, calls = count / rows + (count % rows != 0);
        uint32_t m = count / calls + (count % calls != 0);

        while (m > 1 && entry_of(program, m) == program->entry_count)
            m--;
        count -= m;
        MUC_TRY(time_call(ctx, program, machine, pos, m, count == 0 ? choice : MUC_CLOCK_NOTHING,
                          watch, sums));
        pos += m;
    }
    return MUC_OK;
}

muc_status muc_clock_feed(muc_context *ctx, const mur_program *program,
                          const muc_uthinker_machine *machine, uint32_t pos, uint32_t count,
                          muc_clock_choice choice, muc_clock_sums *sums)
{
    return muc_clock_watched(ctx, program, machine, pos, count, choice, NULL, sums);
}

/* ---- roofs and energy ---- */

static uint64_t scale_down(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t up = muc_clock_scale(a, b, c);

    return up ? up - 1 : 0;
}

muc_clock_roofs muc_clock_roofs_of(const muc_uthinker_machine *machine, const muc_clock_sums *sums)
{
    const muc_uthinker_time *time = &machine->costs.time;

    return (muc_clock_roofs){
        .array_ps = scale_down(sums->array_cycles, 1000000000, time->acc_khz),
        .dram_ps = scale_down(sums->dram_bytes, 1000000, time->dram_mbs),
        .least_ps = scale_down(sums->least_bytes, 1000000, time->dram_mbs),
        .cpu_ps = scale_down(sums->cpu_instructions * time->cpu_cpk, 1000000, time->cpu_khz),
    };
}

muc_clock_energy muc_clock_energy_of(const muc_uthinker_machine *machine,
                                     const muc_clock_sums *sums)
{
    const muc_uthinker_energy *energy = &machine->costs.energy;

    return (muc_clock_energy){
        .dram = (double)sums->dram_bytes * energy->dram_byte,
        .sram = (double)sums->sram_bytes * energy->sram_byte,
        .array = (double)sums->macs * energy->mac,
        .vector = (double)sums->elements * energy->element,
        .cpu = (double)sums->cpu_instructions * energy->cpu_instruction,
        .idle = (double)sums->ps * energy->idle_uw / 1000,
    };
}

/* clock_judge.c - CPU, DMA and accelerator as three parties to one clock. */
#include "clock_judge.h"

#include <stdlib.h>
#include <string.h>

enum { CPU_ALONE, DMA, ACC, EMBED }; /* what a step is for */
enum { TOKENS = 16, NOBODY = -1 };

#define NEVER UINT64_MAX

/* An item as the CPU meets it. */
typedef struct step {
    int party;
    bool is_end;
    uint32_t mask, sig;
    uint64_t instructions, then; /* of the CPU; `then` apart, by EMBED and AMAX */
    uint64_t sequenced;          /* cycles of the sequencer, after them */
    uint64_t work;               /* of an engine, in picoseconds */
    uint64_t complete;           /* when; NEVER until it is known */
    int64_t before[TOKENS];      /* steps whose tokens an engine waits for */
} step;

typedef struct plan {
    const clock_machine *machine;
    clock_verdict *verdict;
    step *steps;
    size_t count, room;
    uint64_t looked; /* logits that AMAX looked at */
    bool failed, open[TOKENS];
    const uint32_t *may_stream; /* the item before, a FOR that is streamed if it has rounds */
    const uint32_t *streamed;   /* the item that comes after the loop of the sequencer */
} plan;

static uint64_t up(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

static uint64_t cycles(const clock_machine *m, uint64_t n)
{
    return up(n * 1000000000, m->acc_khz);
}

static uint64_t executed(const clock_machine *m, uint64_t n)
{
    return up(n * m->cpu_cpk * 1000000, m->cpu_khz);
}

/* ---- the items, with what each asks for ---- */

static uint64_t value_of(const judge_insn *insn, const uint64_t *values, const char *name)
{
    for (uint32_t i = 0; insn->fields[i].name; i++)
        if (strcmp(insn->fields[i].name, name) == 0)
            return values[i];
    return 0;
}

#define V(name) value_of(insn, values, #name)

static uint64_t transfer(plan *p, const judge_insn *insn, const uint64_t *values)
{
    const clock_machine *m = p->machine;
    uint64_t first = V(off) / m->dram_burst, bursts = 0, on_chip, off_chip;

    if (V(len) > 0)
        bursts = (V(off) + V(len) - 1) / m->dram_burst - first + 1;
    p->verdict->burst_bytes += bursts * m->dram_burst;
    on_chip = cycles(m, up(V(len), m->dma_bytes));
    off_chip = up(bursts * m->dram_burst * 1000000, m->dram_mbs);
    return cycles(m, m->dma_start) + (on_chip > off_chip ? on_chip : off_chip);
}

static uint64_t elements(const clock_machine *m, const judge_insn *insn, const uint64_t *values)
{
    uint64_t sum = 0;

    if (strcmp(insn->name, "ROPE") == 0)
        return V(rows) * V(heads) * V(k);
    if (strcmp(insn->name, "QPACK") == 0)
        return V(rows) * V(cols);
    if (strcmp(insn->name, "SMAX") != 0)
        return V(rows) * V(k);
    for (uint64_t r = V(skip) * V(group); r < V(rows); r++) {
        uint64_t scores = V(valid) + r / V(group) - V(skip);

        sum += V(k) + (scores > m->tokens ? m->tokens : scores);
    }
    return sum;
}

static uint64_t computation(plan *p, const judge_insn *insn, const uint64_t *values)
{
    const clock_machine *m = p->machine;
    uint64_t passes;

    if (strcmp(insn->name, "MM") != 0)
        return cycles(m, m->vector_start +
                             up(elements(m, insn, values) * m->vector_passes, m->vector_width));
    passes = up(V(k), m->tile_k) * up(V(cols), m->tile_n) * V(rows) * V(terms);
    p->verdict->passes += passes;
    return cycles(m, m->mm_start + passes);
}

static void fill_step(plan *p, step *s, const uint32_t *item, const judge_insn *insn,
                      const uint64_t *values)
{
    const clock_machine *m = p->machine;
    const uint64_t alone[] = { 0, 0, m->cpu_eval, m->cpu_for, m->cpu_next, m->cpu_end };

    if (!insn) {
        s->instructions = alone[item[0] & 15];
        s->is_end = (item[0] & 15) == 5;
        return;
    }
    s->party = insn->engine == 'd' ? DMA : insn->engine == 'a' ? ACC : EMBED;
    s->mask = item[1] >> 16;
    s->sig = item[1] >> 8 & 31;
    s->instructions = m->cpu_inst;
    if (!m->hardware_tokens || s->party == EMBED)
        for (uint32_t t = 0; t < TOKENS; t++) {
            if ((s->mask >> t & 1) != 0 && p->open[t])
                s->instructions += m->cpu_wait;
            if ((s->mask >> t & 1) != 0)
                p->open[t] = false;
        }
    if ((item[0] >> 4 & 15) != 0)
        s->instructions +=
            m->cpu_patched + (insn->words - 4u) * m->cpu_word + (item[0] >> 4 & 15) * m->cpu_patch;
    if (s->sig != 0)
        p->open[s->sig - 1] = s->party != EMBED;
    if (insn->opcode == 0x09) {
        s->then = V(k) * m->cpu_logit;
        p->looked += V(k);
    } else if (s->party == EMBED)
        s->then = V(rows) * V(k) * m->cpu_embed;
    else
        s->work = s->party == DMA ? transfer(p, insn, values) : computation(p, insn, values);
}

/* The sequencer begins with a body, and is done where the loop is. */
static void follow_streams(plan *p, const uint32_t *item)
{
    const clock_machine *m = p->machine;
    step *before = p->steps + p->count - 1;

    if (p->may_stream && item == p->may_stream + 3) {
        p->streamed = item + p->may_stream[2] + 1;
        before->instructions += m->cpu_sequencer;
        before->sequenced = m->sequencer_start;
        p->verdict->cpu_instructions += m->cpu_sequencer;
    }
    if (item == p->streamed)
        p->streamed = NULL;
    p->may_stream = NULL;
    if (!p->streamed && m->sequencer_word > 0 && (item[0] & 15) == 3 && (item[0] >> 17 & 1) != 0)
        p->may_stream = item;
}

/* What the CPU would have executed takes the sequencer a time that goes by the item's words. */
static void sequence_step(const plan *p, step *s, const uint32_t *item)
{
    static const uint8_t words[] = { 0, 1, 2, 3, 1 };
    uint64_t count = words[item[0] & 15];

    if ((item[0] & 15) == 1)
        count += (item[0] >> 8 & 15) + (item[0] >> 4 & 15);
    if ((item[0] & 15) == 2 && (item[0] >> 4 & 63) == 15)
        count += 2;
    s->instructions = 0;
    s->sequenced = count * p->machine->sequencer_word;
}

static void take_item(void *arg, const uint32_t *item, const judge_insn *insn,
                      const uint64_t *values)
{
    plan *p = arg;
    step *grown;

    if (p->count == p->room) {
        p->room = p->room ? 2 * p->room : 1024;
        grown = realloc(p->steps, p->room * sizeof(*grown));
        if (!grown) {
            p->failed = true;
            p->room = p->count;
            return;
        }
        p->steps = grown;
    }
    follow_streams(p, item);
    memset(&p->steps[p->count], 0, sizeof(step));
    p->steps[p->count].complete = NEVER;
    fill_step(p, &p->steps[p->count], item, insn, values);
    if (p->streamed)
        sequence_step(p, &p->steps[p->count], item);
    p->verdict->cpu_instructions += p->steps[p->count].instructions + p->steps[p->count].then;
    p->count++;
}

/* ---- time ---- */

typedef struct engine {
    size_t *issued; /* steps, in order */
    size_t count, begun, complete;
    uint64_t busy_until; /* NEVER: idle */
} engine;

typedef struct world {
    plan *plan;
    uint64_t now;
    size_t at;               /* the CPU's step */
    uint64_t executes_until; /* NEVER: it has not begun it */
    int64_t token[TOKENS];   /* the step that it stands for */
    engine engines[3];       /* DMA, ACC */
} world;

static bool is_complete(const world *w, int64_t at)
{
    return at == NOBODY || w->plan->steps[at].complete <= w->now;
}

static void count_complete(world *w, engine *e)
{
    while (e->complete < e->count && is_complete(w, (int64_t)e->issued[e->complete]))
        e->complete++;
}

static bool may_begin(world *w, const step *s)
{
    const clock_machine *m = w->plan->machine;

    for (int party = DMA; party <= ACC; party++) {
        engine *e = &w->engines[party];
        uint64_t depth = party == DMA ? m->dma_queue : m->acc_queue;

        count_complete(w, e);
        if (s->is_end && e->complete < e->count)
            return false;
        if (s->party == party && e->count - e->complete >= depth)
            return false;
    }
    if (m->hardware_tokens && s->party != EMBED)
        return true;
    for (uint32_t t = 0; t < TOKENS; t++)
        if ((s->mask >> t & 1) != 0 && !is_complete(w, w->token[t]))
            return false;
    return true;
}

static void finish_step(world *w)
{
    step *s = &w->plan->steps[w->at];

    if (s->party == DMA || s->party == ACC) {
        engine *e = &w->engines[s->party];

        for (uint32_t t = 0; t < TOKENS; t++)
            s->before[t] =
                w->plan->machine->hardware_tokens && (s->mask >> t & 1) != 0 ? w->token[t] : NOBODY;
        e->issued[e->count++] = w->at;
    } else {
        s->complete = w->now;
    }
    if (s->sig != 0)
        w->token[s->sig - 1] = (int64_t)w->at;
    w->at++;
    w->executes_until = NEVER;
}

/* Does the CPU move? */
static bool run_cpu(world *w)
{
    const clock_machine *m = w->plan->machine;
    const step *s = &w->plan->steps[w->at];

    if (w->at == w->plan->count)
        return false;
    if (w->executes_until == w->now) {
        finish_step(w);
        return true;
    }
    if (w->executes_until != NEVER || !may_begin(w, s))
        return false;
    w->executes_until =
        w->now + executed(m, s->instructions) + executed(m, s->then) + cycles(m, s->sequenced);
    return true;
}

static bool run_engine(world *w, int party)
{
    engine *e = &w->engines[party];
    step *s;

    if (e->busy_until == w->now) {
        e->busy_until = NEVER;
        return true;
    }
    if (e->busy_until != NEVER || e->begun == e->count)
        return false;
    s = &w->plan->steps[e->issued[e->begun]];
    for (uint32_t t = 0; t < TOKENS; t++)
        if (!is_complete(w, s->before[t]))
            return false;
    e->begun++;
    e->busy_until = w->now + s->work;
    s->complete = e->busy_until +
                  (party == DMA ? cycles(w->plan->machine, w->plan->machine->dma_latency) : 0);
    return true;
}

static uint64_t sooner(const world *w, uint64_t at, uint64_t found)
{
    return at > w->now && at < found ? at : found;
}

/* the next moment at which anything may change */
static uint64_t next_event(const world *w)
{
    uint64_t found = sooner(w, w->executes_until, NEVER);

    for (int party = DMA; party <= ACC; party++) {
        const engine *e = &w->engines[party];

        found = sooner(w, e->busy_until, found);
        for (size_t i = e->complete; i < e->begun; i++)
            found = sooner(w, w->plan->steps[e->issued[i]].complete, found);
    }
    return found;
}

static bool run_world(world *w)
{
    while (w->at < w->plan->count) {
        while (run_cpu(w) || run_engine(w, DMA) || run_engine(w, ACC)) {
        }
        if (w->at == w->plan->count)
            return true;
        w->now = next_event(w);
        if (w->now == NEVER)
            return false;
        count_complete(w, &w->engines[DMA]);
        count_complete(w, &w->engines[ACC]);
    }
    return true;
}

static bool time_plan(plan *p, uint64_t logits, bool drawn)
{
    const clock_machine *m = p->machine;
    uint64_t choice = logits > p->looked ? (logits - p->looked) * m->cpu_logit : 0;
    world w = { .plan = p, .now = executed(m, m->cpu_start), .executes_until = NEVER };
    bool fine;

    for (uint32_t t = 0; t < TOKENS; t++)
        w.token[t] = NOBODY;
    for (int party = DMA; party <= ACC; party++) {
        w.engines[party].busy_until = NEVER;
        w.engines[party].issued = malloc((p->count + 1) * sizeof(size_t));
    }
    fine = w.engines[DMA].issued && w.engines[ACC].issued && run_world(&w);
    free(w.engines[DMA].issued);
    free(w.engines[ACC].issued);
    choice += drawn ? logits * m->cpu_sample : 0;
    p->verdict->ps = w.now + executed(m, choice);
    p->verdict->cpu_instructions += m->cpu_start + choice;
    return fine;
}

bool clock_judge(const judge_program *program, const clock_machine *machine, uint32_t pos,
                 uint32_t m, uint64_t most, uint64_t logits, bool drawn, clock_verdict *out)
{
    judge_program watched = *program;
    plan p = { .machine = machine, .verdict = out };
    judge_run run = { 0 };
    bool fine;

    memset(out, 0, sizeof(*out));
    watched.watch = take_item;
    watched.watch_arg = &p;
    fine = !judge_execute(&watched, pos, m, most, &run) && !run.cut && !p.failed &&
           time_plan(&p, logits, drawn);
    free(p.steps);
    return fine;
}

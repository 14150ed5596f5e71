/* uthinker_sim.c - the engines of µThinker: queues, the order in which instructions run, faults. */
#include "uthinker_sim.h"

#include <string.h>

#include "uthinker_sim_execute.h"

static void stop(mur_sim *sim, enum mur_engine engine, const uint32_t *words, uint32_t count,
                 const char *reason)
{
    sim->fault.reason = reason;
    sim->fault.engine = engine;
    memset(sim->fault.words, 0, sizeof(sim->fault.words));
    memcpy(sim->fault.words, words, 4 * count);
    for (int i = 0; i < MUR_CPU; i++) {
        sim->completed[i] += sim->queue[i].count;
        sim->queue[i].count = 0;
    }
}

int mur_sim_do_kept(mur_sim *sim)
{
    mur_sim_product malformed;

    if (sim->kept) {
        sim->kept = 0;
        if (!sim->settle(sim->product_arg, &malformed))
            stop(sim, MUR_ACC, malformed.words, MUR_MAX_WORDS, mur_sim_malformed_block);
    }
    return !sim->fault.reason;
}

void mur_sim_settle(mur_sim *sim)
{
    mur_sim_do_kept(sim);
    for (uint32_t buffer = 0; buffer < MUR_GB; buffer++) {
        mur_sim_copy_views(sim, buffer, 0, sim->memory.buffer_bytes[buffer]);
        sim->beside[buffer].len = 0;
    }
}

int mur_sim_run_now(mur_sim *sim, enum mur_engine engine, const uint32_t *words)
{
    uint32_t opcode = words[0] & 255u;
    const char *reason = mur_sim_instructions[opcode].run(sim, words);

    if (reason && !sim->fault.reason)
        stop(sim, engine, words, mur_sim_instructions[opcode].words, reason);
    sim->executed[opcode] += !sim->fault.reason;
    return !sim->fault.reason;
}

/* Is it kept with products? */
static int put_off(mur_sim *sim, enum mur_engine engine, const uint32_t *words)
{
    return sim->kept && sim->put_off && sim->put_off(sim->product_arg, sim, engine, words);
}

static void execute(mur_sim *sim, enum mur_engine engine, const uint32_t *words)
{
    int later = 0, good;

    if (!mur_sim_can_wait(words)) {
        later = put_off(sim, engine, words);
        if (!later && !mur_sim_do_kept(sim))
            return;
    }
    good = later || mur_sim_run_now(sim, engine, words);
    sim->completed[engine]++;
    if (good && sim->probe)
        sim->probe(sim->probe_arg, sim, engine, words);
}

/* the oldest instruction of the queue, if there is one */
static void advance(mur_sim *sim, enum mur_engine engine)
{
    mur_sim_queue *queue = &sim->queue[engine];
    const uint32_t *words = queue->words[queue->first];

    if (queue->count == 0)
        return;
    queue->first = (queue->first + 1) % MUR_SIM_QUEUE;
    queue->count--;
    execute(sim, engine, words);
}

static uint32_t next_random(mur_sim *sim)
{
    sim->random ^= sim->random << 13;
    sim->random ^= sim->random >> 17;
    sim->random ^= sim->random << 5;
    return sim->random >> 8;
}

/* Under the random policy either engine may get on, whatever it is that the runtime asks. */
static void drift(mur_sim *sim)
{
    if (sim->policy == MUR_SIM_RANDOM)
        for (uint32_t steps = next_random(sim) % 4; steps > 0; steps--)
            advance(sim, next_random(sim) % 2 ? MUR_DMA : MUR_ACC);
}

static mur_status submit(mur_sim *sim, enum mur_engine engine, const uint32_t *words)
{
    uint32_t opcode = words[0] & 255u;
    mur_sim_queue *queue;

    if (sim->fault.reason)
        return MUR_E_FAULT;
    if (opcode >= MUR_SIM_OPCODES || !mur_sim_instructions[opcode].run ||
        mur_sim_instructions[opcode].engine != engine) {
        stop(sim, engine, words, 1, "no instruction of this engine");
        return MUR_E_FAULT;
    }
    if (engine == MUR_CPU || sim->policy == MUR_SIM_EAGER) {
        execute(sim, engine, words);
        return sim->fault.reason ? MUR_E_FAULT : MUR_OK;
    }
    drift(sim);
    queue = &sim->queue[engine];
    if (queue->count == MUR_SIM_QUEUE) {
        advance(sim, engine);
        if (sim->policy == MUR_SIM_RANDOM && next_random(sim) % 2)
            return MUR_YIELD;
    }
    if (sim->fault.reason)
        return MUR_E_FAULT;
    memcpy(queue->words[(queue->first + queue->count++) % MUR_SIM_QUEUE], words,
           4u * mur_sim_instructions[opcode].words);
    return MUR_OK;
}

static mur_status submit_dma(void *arg, const uint32_t *words)
{
    return submit(arg, MUR_DMA, words);
}

static mur_status submit_acc(void *arg, const uint32_t *words)
{
    return submit(arg, MUR_ACC, words);
}

static mur_status submit_host(void *arg, const uint32_t *words)
{
    return submit(arg, MUR_CPU, words);
}

static uint32_t ask_completed(void *arg, enum mur_engine engine)
{
    mur_sim *sim = arg;

    drift(sim);
    if (engine != MUR_CPU)
        advance(sim, engine);
    return sim->completed[engine];
}

void mur_sim_init(mur_sim *sim, const mur_sim_memory *memory, enum mur_sim_policy policy,
                  uint32_t seed)
{
    memset(sim, 0, sizeof(*sim));
    sim->memory = *memory;
    sim->policy = policy;
    sim->encode = mur_block_encode;
    sim->exps = mur_sim_exps;
    sim->each = mur_sim_each;
    sim->random = seed | 1u << 31;
}

mur_hal mur_sim_hal(mur_sim *sim)
{
    mur_hal hal = { sim, submit_dma, submit_acc, submit_host, ask_completed, NULL, NULL };

    return hal;
}

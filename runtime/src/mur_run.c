/* mur_run.c - the interpreter: items of CODE in, resolved instructions out.
 *
 * The verifier has proven what this file relies on: items are whole and known, slots are written
 * before they are read, indices are inside their tables, loops are nested. All that can happen at
 * run time is that an engine is busy: a step that must wait changes nothing and is done again.
 *
 * Two checks stay for programs that changed after they were verified: the fuel, which ends any
 * run, and the bounds of a DMA transfer in its region.
 */
#include "mur.h"
#include "mur_code.h"

#include <string.h>

/* LD and ST share their layout */
enum {
#define MUR_INSN(name, opcode, words, engine, meaning) OPCODE_##name = opcode,
#define MUR_FIELD(insn, name, word, shift, width, unit) \
    WORD_##insn##_##name = word, SHIFT_##insn##_##name = shift, WIDTH_##insn##_##name = width,
#include "mur_isa.def"
};

#define FIELD(words, insn, name) \
    mur_bits((words)[WORD_##insn##_##name], SHIFT_##insn##_##name, WIDTH_##insn##_##name)

enum { OPCODE_BITS = 8, SIG_SHIFT = 8, SIG_BITS = 5, WAIT_SHIFT = 16 };

/* opcodes ascend by engine: DMA, CPU, ACC */
static enum mur_engine engine_of(uint32_t opcode)
{
    return opcode >= OPCODE_MM ? MUR_ACC : opcode >= OPCODE_EMBED ? MUR_CPU : MUR_DMA;
}

static int reached(const mur_run_state *run, enum mur_engine engine, uint32_t count)
{
    /* the counts wrap; fewer than 2^31 instructions are ever in flight */
    return engine == MUR_CPU || (int32_t)(run->hal->completed(run->hal->arg, engine) - count) >= 0;
}

static int waits(const mur_run_state *run, uint32_t mask)
{
    for (uint32_t token = 0; mask != 0; token++, mask >>= 1)
        if ((mask & 1) != 0 &&
            !reached(run, (enum mur_engine)run->token_engine[token], run->token[token]))
            return 1;
    return 0;
}

static int leaves_region(const mur_program *program, const uint32_t *words)
{
    uint32_t region = FIELD(words, LD, region), bytes;

    if (region >= MUR_REGIONS)
        return 1;
    bytes = program->region_bytes[region];
    return FIELD(words, LD, off) > bytes || FIELD(words, LD, len) > bytes - FIELD(words, LD, off);
}

static mur_status dispatch(mur_run_state *run, enum mur_engine engine, const uint32_t *words)
{
    const mur_hal *hal = run->hal;

    switch (engine) {
    case MUR_DMA:
        if (leaves_region(run->program, words))
            return MUR_E_FAULT;
        return hal->dma(hal->arg, words);
    case MUR_ACC:
        return hal->accel(hal->arg, words);
    case MUR_CPU:
    case MUR_ENGINES:
    default:
        return hal->host(hal->arg, words);
    }
}

static mur_status issue(mur_run_state *run, const uint32_t *item)
{
    uint32_t words[MUR_MAX_WORDS];
    uint32_t count = MUR_CODE_GET(item[0], INST, words), sig;
    uint32_t patches = MUR_CODE_GET(item[0], INST, patches);
    enum mur_engine engine = engine_of(mur_bits(item[1], 0, OPCODE_BITS));
    mur_status status;

    if (waits(run, item[1] >> WAIT_SHIFT))
        return MUR_YIELD;
    memcpy(words, item + 1, 4 * count);
    for (uint32_t i = 0; i < patches; i++) {
        uint32_t patch = item[1 + count + i];

        words[MUR_CODE_GET(patch, PATCH, word)] |= run->slot[MUR_CODE_GET(patch, PATCH, slot)]
                                                   << MUR_CODE_GET(patch, PATCH, shift);
    }
    status = dispatch(run, engine, words);
    if (status != MUR_OK)
        return status;
    if (engine != MUR_CPU)
        run->issued[engine]++;
    sig = mur_bits(words[0], SIG_SHIFT, SIG_BITS);
    if (sig != 0) {
        run->token_engine[sig - 1] = (uint8_t)engine;
        run->token[sig - 1] = engine != MUR_CPU ? run->issued[engine] : 0;
    }
    run->at += 1 + count + patches;
    return MUR_OK;
}

static void evaluate(mur_run_state *run, const uint32_t *item)
{
    uint32_t *slot = run->slot, *dst = &slot[MUR_CODE_GET(item[0], EVAL, dst)];
    uint32_t op = MUR_CODE_GET(item[0], EVAL, op), a = slot[MUR_CODE_GET(item[0], EVAL, a)], b;

    b = MUR_CODE_GET(item[0], EVAL, immediate) ? item[1] : slot[MUR_CODE_GET(item[0], EVAL, b)];
    if (op == MUR_OP_TABLE) {
        const uint32_t *tables = run->program->tables;
        const uint32_t *entry = tables + tables[1 + item[1]] + a;

        dst[0] = entry[0];
        dst[1] = entry[1] - entry[0];
    } else if (op == MUR_OP_SEL) {
        *dst = a != 0 ? b : slot[item[1]];
    } else {
        *dst = (uint32_t)mur_eval(op, a, b);
    }
    run->at += MUR_WORDS_EVAL;
}

static void enter(mur_run_state *run, const uint32_t *item)
{
    struct mur_run_loop *loop = &run->loop[run->depth];

    loop->body = run->at + MUR_WORDS_FOR;
    loop->variable = MUR_CODE_GET(item[0], FOR, variable);
    loop->round = 0;
    loop->count = MUR_CODE_GET(item[0], FOR, constant)
                      ? item[1]
                      : run->slot[MUR_CODE_GET(item[0], FOR, count)];
    if (loop->count == 0) {
        run->at = loop->body + item[2] + MUR_WORDS_NEXT;
        return;
    }
    run->slot[loop->variable] = 0;
    run->at = loop->body;
    run->depth++;
}

static void next(mur_run_state *run)
{
    struct mur_run_loop *loop = &run->loop[run->depth - 1];

    if (++loop->round < loop->count) {
        run->slot[loop->variable] = loop->round;
        run->at = loop->body;
        return;
    }
    run->depth--;
    run->at += MUR_WORDS_NEXT;
}

mur_status mur_start(mur_run_state *run, const mur_program *program, const mur_hal *hal,
                     uint32_t entry, uint32_t pos, uint32_t m)
{
    const mur_entr *range;

    if (program->steps == 0)
        return MUR_E_VERIFY;
    if (entry >= program->entry_count)
        return MUR_E_INPUT;
    range = &program->entries[entry];
    if (m < range->min_m || m > range->max_m || pos > program->meta->context - m)
        return MUR_E_INPUT;
    memset(run, 0, sizeof(*run));
    run->program = program;
    run->hal = hal;
    run->at = range->start;
    run->fuel = program->steps;
    for (uint32_t i = 0; i < MUR_CPU; i++)
        run->issued[i] = hal->completed(hal->arg, (enum mur_engine)i);
    memset(run->token_engine, MUR_CPU, sizeof(run->token_engine)); /* complete */
    run->slot[MUR_SLOT_POS] = pos;
    run->slot[MUR_SLOT_M] = m;
    run->slot[MUR_SLOT_END] = pos + m;
    return MUR_OK;
}

mur_status mur_step(mur_run_state *run)
{
    const uint32_t *item = run->program->code + run->at;
    mur_status status = MUR_OK;

    if (run->done)
        return MUR_OK;
    if (run->fuel == 0)
        return MUR_E_FAULT;
    switch (mur_bits(item[0], 0, MUR_KIND_WIDTH)) {
    case MUR_INST:
        status = issue(run, item);
        break;
    case MUR_EVAL:
        evaluate(run, item);
        break;
    case MUR_FOR:
        enter(run, item);
        break;
    case MUR_NEXT:
        next(run);
        break;
    default: /* MUR_END */
        if (!reached(run, MUR_DMA, run->issued[MUR_DMA]) ||
            !reached(run, MUR_ACC, run->issued[MUR_ACC]))
            return MUR_YIELD;
        run->done = 1;
        break;
    }
    if (status == MUR_OK)
        run->fuel--;
    return status;
}

mur_status mur_run(mur_run_state *run)
{
    mur_status status;

    do {
        status = mur_step(run);
    } while (status == MUR_OK && !run->done);
    return status;
}

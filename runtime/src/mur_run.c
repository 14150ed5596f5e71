/* mur_run.c - the interpreter: items of CODE in, resolved instructions out.
 *
 * The verifier has proven what this file relies on: items are whole and known, slots are written
 * before they are read, indices are inside their tables, loops are nested. All that can happen at
 * run time is that an engine is busy: a step that must wait changes nothing and is done again.
 *
 * One loop goes from item to item; what it needs of the state is in registers until it stops.
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

enum { LEAST_WORDS = 4 }; /* of an instruction */
enum { OPCODE_BITS = 8, SIG_SHIFT = 8, SIG_BITS = 5, WAIT_SHIFT = 16 };

/* opcodes ascend by engine: DMA, CPU, ACC */
static enum mur_engine engine_of(uint32_t opcode)
{
    return opcode >= OPCODE_MM ? MUR_ACC : opcode >= OPCODE_EMBED ? MUR_CPU : MUR_DMA;
}

/* Has the engine completed so many instructions? Asks it only where what it said last is no proof.
 */
static int reached(mur_run_state *run, uint32_t engine, uint32_t count)
{
    /* the counts wrap; fewer than 2^31 instructions are ever in flight */
    if ((int32_t)(run->seen[engine] - count) < 0)
        run->seen[engine] = run->hal->completed(run->hal->arg, (enum mur_engine)engine);
    return (int32_t)(run->seen[engine] - count) >= 0;
}

/* mask: tokens waited for that are pending, at least one; those found complete are so no more */
static int waits(mur_run_state *run, uint32_t mask)
{
    /* the number of the lowest bit set, from a de Bruijn sequence of 16 bits */
    static const uint8_t number[] = { 0, 1, 2, 5, 3, 9, 6, 11, 15, 4, 8, 10, 14, 7, 13, 12 };

    do {
        uint32_t bit = mask & (0 - mask), token = number[(bit * 0x09af & 0xffff) >> 12];

        if (!reached(run, run->token_engine[token], run->token[token]))
            return 1;
        run->pending &= ~bit;
        mask &= ~bit;
    } while (mask != 0);
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

/* The item's words with its patches' values, in `out`. */
static void patch(const uint32_t *slot, const uint32_t *item, uint32_t *out)
{
    uint32_t count = MUR_CODE_GET(item[0], INST, words);
    const uint32_t *at = item + 1 + count, *end = at + MUR_CODE_GET(item[0], INST, patches);

    for (uint32_t i = 0; i < LEAST_WORDS; i++)
        out[i] = item[1 + i];
    for (uint32_t i = count; i != LEAST_WORDS; i--)
        out[i - 1] = item[i];
    do {
        out[MUR_CODE_GET(*at, PATCH, word)] |= slot[MUR_CODE_GET(*at, PATCH, slot)]
                                               << MUR_CODE_GET(*at, PATCH, shift);
    } while (++at != end);
}

static mur_status issue(mur_run_state *run, const uint32_t *item)
{
    const mur_hal *hal = run->hal;
    const uint32_t *words = item + 1;
    uint32_t patched[MUR_MAX_WORDS], mask = words[0] >> WAIT_SHIFT & run->pending, token;
    enum mur_engine engine = engine_of(mur_bits(words[0], 0, OPCODE_BITS));
    mur_status status;

    if (mask != 0 && waits(run, mask))
        return MUR_YIELD;
    if (MUR_CODE_GET(item[0], INST, patches) != 0) {
        patch(run->slot, item, patched);
        words = patched;
    }
    if (engine == MUR_ACC)
        status = hal->accel(hal->arg, words);
    else if (engine == MUR_CPU)
        status = hal->host(hal->arg, words);
    else
        status = leaves_region(run->program, words) ? MUR_E_FAULT : hal->dma(hal->arg, words);
    if (status != MUR_OK)
        return status;
    token = mur_bits(item[1], SIG_SHIFT, SIG_BITS) - 1;
    if (engine != MUR_CPU)
        run->issued[engine]++;
    if (token < MUR_TOKENS) {
        run->pending &= ~(1u << token);
        run->token_engine[token] = (uint8_t)engine;
        if (engine != MUR_CPU) {
            run->pending |= 1u << token;
            run->token[token] = run->issued[engine];
        }
    }
    return MUR_OK;
}

static void evaluate(const mur_program *program, uint32_t *slot, const uint32_t *item)
{
    uint32_t *dst = &slot[MUR_CODE_GET(item[0], EVAL, dst)];
    uint32_t op = MUR_CODE_GET(item[0], EVAL, op), a = slot[MUR_CODE_GET(item[0], EVAL, a)], b;

    b = MUR_CODE_GET(item[0], EVAL, immediate) ? item[1] : slot[MUR_CODE_GET(item[0], EVAL, b)];
    if (op == MUR_OP_TABLE) {
        const uint32_t *entry = program->tables + program->tables[1 + item[1]] + a;

        dst[0] = entry[0];
        dst[1] = entry[1] - entry[0];
    } else if (op == MUR_OP_SEL) {
        *dst = a != 0 ? b : slot[item[1]];
    } else {
        *dst = mur_eval_word(op, a, b);
    }
}

/* Each gives the item that is next. */
static const uint32_t *enter(mur_run_state *run, const uint32_t *item)
{
    struct mur_run_loop *loop = &run->loop[run->depth];
    const uint32_t *body = item + MUR_WORDS_FOR;

    loop->count = MUR_CODE_GET(item[0], FOR, constant)
                      ? item[1]
                      : run->slot[MUR_CODE_GET(item[0], FOR, count)];
    if (loop->count == 0)
        return body + item[2] + MUR_WORDS_NEXT;
    loop->body = (uint32_t)(body - run->program->code);
    loop->variable = MUR_CODE_GET(item[0], FOR, variable);
    loop->round = 0;
    run->slot[loop->variable] = 0;
    run->depth++;
    return body;
}

static const uint32_t *next(mur_run_state *run, const uint32_t *item)
{
    struct mur_run_loop *loop = &run->loop[run->depth - 1];

    if (++loop->round < loop->count) {
        run->slot[loop->variable] = loop->round;
        return run->program->code + loop->body;
    }
    run->depth--;
    return item + MUR_WORDS_NEXT;
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
        run->seen[i] = run->issued[i] = hal->completed(hal->arg, (enum mur_engine)i);
    memset(run->token_engine, MUR_CPU, sizeof(run->token_engine)); /* complete */
    run->slot[MUR_SLOT_POS] = pos;
    run->slot[MUR_SLOT_M] = m;
    run->slot[MUR_SLOT_END] = pos + m;
    return MUR_OK;
}

mur_status mur_run_some(mur_run_state *run, uint32_t most)
{
    const uint32_t *item = run->program->code + run->at;
    uint32_t left = most < run->fuel ? most : run->fuel;
    mur_status status = MUR_OK;

    if (run->done)
        return MUR_OK;
    if (run->fuel == 0)
        return MUR_E_FAULT;
    run->fuel -= left;
    for (; left != 0; left--) {
        uint32_t kind = mur_bits(item[0], 0, MUR_KIND_WIDTH);

        if (kind == MUR_EVAL) {
            evaluate(run->program, run->slot, item);
            item += MUR_WORDS_EVAL;
        } else if (kind == MUR_INST) {
            status = issue(run, item);
            if (status != MUR_OK)
                break;
            item += 1 + MUR_CODE_GET(item[0], INST, words) + MUR_CODE_GET(item[0], INST, patches);
        } else if (kind == MUR_NEXT) {
            item = next(run, item);
        } else if (kind == MUR_FOR) {
            item = enter(run, item);
        } else { /* MUR_END */
            if (!reached(run, MUR_DMA, run->issued[MUR_DMA]) ||
                !reached(run, MUR_ACC, run->issued[MUR_ACC])) {
                status = MUR_YIELD;
                break;
            }
            run->done = 1;
            left--;
            break;
        }
    }
    run->fuel += left;
    run->at = (uint32_t)(item - run->program->code);
    return status;
}

mur_status mur_step(mur_run_state *run)
{
    return mur_run_some(run, 1);
}

mur_status mur_run(mur_run_state *run)
{
    mur_status status;

    do {
        status = mur_run_some(run, UINT32_MAX);
    } while (status == MUR_OK && !run->done);
    return status;
}

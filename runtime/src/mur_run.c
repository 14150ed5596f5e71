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

/* Has the engine completed `count` instructions? Counts wrap, and fewer than 2^31 instructions are
 * ever in flight. */
static inline int reached(const mur_run_state *run, uint32_t engine, uint32_t count)
{
    return (int32_t)(run->hal->completed(run->hal->arg, (enum mur_engine)engine) - count) >= 0;
}

/* mask: bit t + 1 for token t, of tokens that are pending. Are they complete? */
static inline int all_reached(const mur_run_state *run, uint32_t mask)
{
    /* the number of the lowest bit set, from a de Bruijn sequence of 16 bits */
    static const uint8_t number[] = { 1, 2, 3, 6, 4, 10, 7, 12, 16, 5, 9, 11, 15, 8, 14, 13 };

    for (; mask != 0; mask &= mask - 1) {
        uint32_t bit = mask & (0 - mask);
        const mur_run_token *token = &run->token[number[bit * 0x04d78000 >> 28]];

        if (!reached(run, token->engine, token->count))
            return 0;
    }
    return 1;
}

static inline int leaves_region(const mur_program *program, const uint32_t *words)
{
    uint32_t region = FIELD(words, LD, region), bytes;

    if (region >= MUR_REGIONS)
        return 1;
    bytes = program->region_bytes[region];
    return FIELD(words, LD, off) > bytes || FIELD(words, LD, len) > bytes - FIELD(words, LD, off);
}

/* An instruction's words, which end at `at`, with the values of the patches at..end-1, in `out`. */
static inline void patch(const uint32_t *slot, const uint32_t *words, const uint32_t *at,
                         const uint32_t *end, uint32_t *out)
{
    uint32_t *to = out + LEAST_WORDS;

    out[0] = words[0], out[1] = words[1], out[2] = words[2], out[3] = words[3];
    for (words += LEAST_WORDS; words != at; words++)
        *to++ = *words;
    do {
        out[MUR_CODE_GET(*at, PATCH, word)] |= slot[MUR_CODE_GET(*at, PATCH, slot)]
                                               << MUR_CODE_GET(*at, PATCH, shift);
    } while (++at != end);
}

/* The engine's next instruction is issued, and signals token sig - 1 unless sig is 0. */
static inline void signals(mur_run_state *run, uint32_t engine, uint32_t sig, uint32_t *pending)
{
    mur_run_token *token = &run->token[sig];

    token->count = ++run->issued[engine];
    token->engine = engine;
    *pending |= 1u << sig; /* bit 0 is in no mask */
}

/* opcodes ascend by engine: DMA, CPU, ACC */
static inline mur_status submit(mur_run_state *run, uint32_t word0, const uint32_t *words,
                                uint32_t *pending)
{
    uint32_t opcode = mur_bits(word0, 0, OPCODE_BITS), sig = mur_bits(word0, SIG_SHIFT, SIG_BITS);
    mur_status status;

    if (opcode >= OPCODE_MM) {
        status = run->hal->accel(run->hal->arg, words);
        if (status == MUR_OK)
            signals(run, MUR_ACC, sig, pending);
    } else if (opcode < OPCODE_EMBED) {
        if (leaves_region(run->program, words))
            return MUR_E_FAULT;
        status = run->hal->dma(run->hal->arg, words);
        if (status == MUR_OK)
            signals(run, MUR_DMA, sig, pending);
    } else {
        status = run->hal->host(run->hal->arg, words);
        if (status == MUR_OK)
            *pending &= ~(1u << sig);
    }
    return status;
}

static inline void evaluate(const mur_program *program, uint32_t *slot, const uint32_t *item)
{
    uint32_t *dst = &slot[MUR_CODE_GET(item[0], EVAL, dst)];
    uint32_t op = MUR_CODE_GET(item[0], EVAL, op), a = slot[MUR_CODE_GET(item[0], EVAL, a)];
    uint32_t b = item[1];

    if (op == MUR_OP_TABLE) { /* the most frequent first */
        const uint32_t *entry = program->tables + program->tables[1 + b] + a;

        dst[0] = entry[0];
        dst[1] = entry[1] - entry[0];
        return;
    }
    if (!MUR_CODE_GET(item[0], EVAL, immediate))
        b = slot[MUR_CODE_GET(item[0], EVAL, b)];
    if (op == MUR_OP_ADD)
        *dst = a + b;
    else if (op == MUR_OP_SEL)
        *dst = a != 0 ? b : slot[item[1]];
    else
        *dst = mur_eval_word(op, a, b);
}

/* Each gives the item that is next. */
static inline const uint32_t *enter(mur_run_state *run, const uint32_t *item)
{
    mur_run_loop *loop = run->free_loop;

    loop->count = MUR_CODE_GET(item[0], FOR, constant)
                      ? item[1]
                      : run->slot[MUR_CODE_GET(item[0], FOR, count)];
    loop->variable = MUR_CODE_GET(item[0], FOR, variable);
    loop->body = item + MUR_WORDS_FOR;
    if (loop->count == 0)
        return loop->body + item[2] + MUR_WORDS_NEXT;
    run->slot[loop->variable] = 0;
    run->free_loop = loop + 1;
    return loop->body;
}

static inline const uint32_t *next(mur_run_state *run, const uint32_t *item)
{
    mur_run_loop *loop = run->free_loop - 1;

    if (++run->slot[loop->variable] < loop->count)
        return loop->body;
    run->free_loop = loop;
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
    run->program = program;
    run->hal = hal;
    run->at = range->start;
    run->done = 0;
    run->fuel = program->steps;
    run->pending = 0;
    run->free_loop = run->loop;
    for (uint32_t i = 0; i < MUR_CPU; i++)
        run->issued[i] = hal->completed(hal->arg, (enum mur_engine)i);
    run->slot[MUR_SLOT_POS] = pos;
    run->slot[MUR_SLOT_M] = m;
    run->slot[MUR_SLOT_END] = pos + m;
    return MUR_OK;
}

/* Says of *item, an INST, what became of it; MUR_OK moves *item to the next. */
static inline mur_status issue(mur_run_state *run, const uint32_t **item, uint32_t *pending)
{
    uint32_t patched[MUR_MAX_WORDS], head = **item;
    const uint32_t *words = *item + 1, *end = words + MUR_CODE_GET(head, INST, words);
    uint32_t word0 = words[0], mask = word0 >> (WAIT_SHIFT - 1) & *pending;
    mur_status status;

    if (mask != 0) {
        if (!all_reached(run, mask))
            return MUR_YIELD;
        *pending ^= mask;
    }
    if (MUR_CODE_GET(head, INST, patches) != 0) {
        const uint32_t *at = end;

        end += MUR_CODE_GET(head, INST, patches);
        patch(run->slot, words, at, end, patched);
        words = patched;
    }
    status = submit(run, word0, words, pending);
    if (status == MUR_OK)
        *item = end;
    return status;
}

mur_status mur_run_some(mur_run_state *run, uint32_t most)
{
    const uint32_t *item = run->program->code + run->at;
    uint32_t left = most < run->fuel ? most : run->fuel, pending = run->pending;
    mur_status status = MUR_OK;

    if (run->done)
        return MUR_OK;
    if (run->fuel == 0)
        return MUR_E_FAULT;
    run->fuel -= left;
    for (; left != 0; left--) {
        uint32_t kind = mur_bits(item[0], 0, MUR_KIND_WIDTH);

        if (kind == MUR_INST) {
            status = issue(run, &item, &pending);
            if (status != MUR_OK)
                break;
        } else if (kind == MUR_EVAL) {
            evaluate(run->program, run->slot, item);
            item += MUR_WORDS_EVAL;
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
    run->pending = pending;
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

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

enum { OPCODE_BITS = 8, SIG_SHIFT = 8, SIG_BITS = 5, WAIT_SHIFT = 16 };

static inline uint32_t completed(const mur_hal *hal, uint32_t engine)
{
    return hal->counts ? hal->counts[engine] : hal->completed(hal->arg, (enum mur_engine)engine);
}

/* Has the engine completed `count` instructions? Counts wrap, and fewer than 2^31 instructions are
 * ever in flight. */
static inline int reached(const mur_hal *hal, uint32_t engine, uint32_t count)
{
    return (int32_t)(completed(hal, engine) - count) >= 0;
}

/* Takes those tokens from pending, bit t + 1 for token t, that are in mask and complete, up to one
 * that is not. Were they all? */
static inline int all_reached(const mur_run_state *run, const mur_hal *hal, uint32_t mask,
                              uint32_t *pending)
{
    /* the number of the lowest bit set, from a de Bruijn sequence of 16 bits */
    static const uint8_t number[] = { 1, 2, 3, 6, 4, 10, 7, 12, 16, 5, 9, 11, 15, 8, 14, 13 };

    do {
        uint32_t bit = mask & (0 - mask);
        const mur_run_token *token = &run->token[number[bit * 0x04d78000 >> 28]];

        if (!reached(hal, token->engine, token->count))
            return 0;
        *pending ^= bit;
        mask &= *pending;
    } while (mask != 0);
    return 1;
}

static inline const uint32_t *at_bytes(const uint32_t *words, uint32_t bytes)
{
    return (const uint32_t *)(const void *)((const uint8_t *)words + bytes);
}

static inline int leaves_region(const mur_program *program, const uint32_t *words)
{
    uint32_t at = words[WORD_LD_region] >> (SHIFT_LD_region - 2), off = words[WORD_LD_off], bytes;

    if ((at & 4 * MUR_REGIONS) != 0)
        return 1;
    bytes = *at_bytes(program->region_bytes, at & 4 * (MUR_REGIONS - 1));
    return off > bytes || words[WORD_LD_len] > bytes - off;
}

/* An instruction's words, word0 the first of them, which end at `at`, with the values of the
 * patches at..end-1, in run->patched. Slots are counted in bytes, as an address is. */
static inline void patch(mur_run_state *run, uint32_t word0, const uint32_t *words,
                         const uint32_t *at, const uint32_t *end)
{
    uint32_t count = (uint32_t)(at - words), *out = run->patched;

    out[0] = word0, out[1] = words[1], out[2] = words[2], out[3] = words[3];
    if (count > 4)
        out[4] = words[4];
    if (count > 5)
        out[5] = words[5];
    if (count > 6)
        out[6] = words[6];
    if (count > 7)
        out[7] = words[7];
    do {
        uint32_t p = *at++;
        const uint32_t *value = at_bytes(run->slot, p & 63u << MUR_SHIFT_PATCH_slot);

        run->patched[MUR_CODE_GET(p, PATCH, word)] += *value << MUR_CODE_GET(p, PATCH, shift);
    } while (at != end);
}

/* The engine's next instruction is issued, and signals token sig - 1 unless sig, which is returned,
 * is 0. word0: read again, so that no register has to keep it while the board works */
static inline uint32_t signals(mur_run_state *run, uint32_t engine, uint32_t word0)
{
    uint32_t sig = mur_bits(word0, SIG_SHIFT, SIG_BITS);
    mur_run_token *token = &run->token[sig];

    token->count = ++run->issued[engine];
    token->engine = engine;
    return sig;
}

static inline void evaluate(mur_run_state *run, const uint32_t *item)
{
    uint32_t *slot = run->slot;
    uint32_t *dst = &slot[MUR_CODE_GET(item[0], EVAL, dst)];
    uint32_t op = MUR_CODE_GET(item[0], EVAL, op), a = slot[MUR_CODE_GET(item[0], EVAL, a)];
    uint32_t b = item[1];

    if (op == MUR_OP_TABLE) { /* the most frequent first */
        const uint32_t *entry = run->tables + b + a;

        dst[0] = entry[0];
        dst[1] = entry[1] - entry[0];
        return;
    }
    if (item[0] >> MUR_SHIFT_EVAL_immediate == 0) /* the highest bit that may be set */
        b = slot[MUR_CODE_GET(item[0], EVAL, b)];
    if (op == MUR_OP_ADD)
        *dst = a + b;
    else if (op == MUR_OP_MUL)
        *dst = a * b;
    else if (op == MUR_OP_EQ)
        *dst = a == b;
    else if (op == MUR_OP_SEL)
        *dst = a != 0 ? b : slot[item[1]];
    else
        *dst = mur_eval_word(op, a, b);
}

static inline uint32_t rounds(const mur_run_state *run, const uint32_t *item)
{
    uint32_t count = item[1];

    /* the bit as a sign, which a core tests without a constant */
    if ((int32_t)(item[0] << (31 - MUR_SHIFT_FOR_constant)) >= 0)
        count = run->slot[MUR_CODE_GET(item[0], FOR, count)];
    return count;
}

/* Each gives the item that is next. */
static inline const uint32_t *pass(const uint32_t *item)
{
    return item + MUR_WORDS_FOR + item[2] + MUR_WORDS_NEXT;
}

static inline const uint32_t *enter(mur_run_state *run, const uint32_t *item)
{
    mur_run_loop *loop = run->free_loop;
    uint32_t count = rounds(run, item);

    if (count == 0)
        return pass(item);
    loop->count = count;
    loop->variable = MUR_CODE_GET(item[0], FOR, variable);
    loop->body = item + MUR_WORDS_FOR;
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
    run->tables = program->tables;
    run->at = range->start;
    run->done = 0;
    run->fuel = program->steps;
    run->pending = 0;
    run->free_loop = run->loop;
    for (uint32_t i = 0; i < MUR_CPU; i++)
        run->issued[i] = completed(hal, i);
    run->slot[MUR_SLOT_POS] = pos;
    run->slot[MUR_SLOT_M] = m;
    run->slot[MUR_SLOT_END] = pos + m;
    run->slot[MUR_SLOT_LOGITS] = 1;
    return MUR_OK;
}

#ifdef MUR_HARDWARE_TOKENS /* DMA and ACC wait themselves */
#define CPU_WAITS(opcode) ((opcode) >= OPCODE_EMBED && (opcode) < OPCODE_MM)
#else
#define CPU_WAITS(opcode) 1
#endif

/* Says of *item, an INST, what became of it; MUR_OK moves *item to the next. Opcodes ascend by
 * engine: DMA, CPU, ACC. */
static inline mur_status issue(mur_run_state *run, const mur_hal *hal, const uint32_t **item,
                               uint32_t *pending)
{
    uint32_t *patched = run->patched, head = **item, patches = MUR_CODE_GET(head, INST, patches);
    const uint32_t *words = *item + 1, *end = words + MUR_CODE_GET(head, INST, words);
    uint32_t word0 = words[0], mask = word0 >> (WAIT_SHIFT - 1) & *pending, sig;
    mur_status status;

    if (mask != 0 && CPU_WAITS(mur_bits(word0, 0, OPCODE_BITS)) &&
        !all_reached(run, hal, mask, pending))
        return MUR_YIELD;
    if (patches != 0) {
        patch(run, word0, words, end, end + patches);
        words = patched;
        end += patches;
    }
    if (mur_bits(word0, 0, OPCODE_BITS) >= OPCODE_MM) {
        status = hal->accel(hal->arg, words);
        if (status != MUR_OK)
            return status;
        sig = signals(run, MUR_ACC, (*item)[1]);
    } else if (mur_bits(word0, 0, OPCODE_BITS) < OPCODE_EMBED) {
        if (leaves_region(run->program, words))
            return MUR_E_FAULT;
        status = hal->dma(hal->arg, words);
        if (status != MUR_OK)
            return status;
        sig = signals(run, MUR_DMA, (*item)[1]);
    } else {
        status = hal->host(hal->arg, words);
        if (status != MUR_OK)
            return status;
        *pending &= ~(1u << mur_bits((*item)[1], SIG_SHIFT, SIG_BITS));
        *item = end;
        return MUR_OK;
    }
    *pending |= 1u << sig; /* bit 0 is in no mask */
    *item = end;
    return MUR_OK;
}

#ifdef MUR_SEQUENCER
/* Is the item, a FOR, one for the sequencer? Then *status is what it says. */
static inline int stream(mur_run_state *run, const mur_hal *hal, const uint32_t *item,
                         uint32_t *pending, mur_status *status)
{
    uint32_t count = rounds(run, item);

    if (!hal->stream || !MUR_CODE_GET(item[0], FOR, streamed) || count == 0)
        return 0;
    run->pending = *pending;
    *status = hal->stream(hal->arg, run, item, count);
    *pending = run->pending;
    return 1;
}
#endif

mur_status mur_run_some(mur_run_state *run, uint32_t most)
{
    const uint32_t *item = run->program->code + run->at;
    const mur_hal *hal = run->hal;
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
            status = issue(run, hal, &item, &pending);
            if (status != MUR_OK)
                break;
        } else if (kind == MUR_EVAL) {
            evaluate(run, item);
            item += MUR_WORDS_EVAL;
        } else if ((kind & 1) == 0) { /* MUR_NEXT; bits need no constants in registers */
            item = next(run, item);
#ifdef MUR_SEQUENCER
        } else if (kind == MUR_FOR && stream(run, hal, item, &pending, &status)) {
            if (status != MUR_OK)
                break;
            item = pass(item);
#endif
        } else if ((kind & 2) != 0) { /* MUR_FOR */
            item = enter(run, item);
        } else { /* MUR_END */
            if (!reached(hal, MUR_DMA, run->issued[MUR_DMA]) ||
                !reached(hal, MUR_ACC, run->issued[MUR_ACC])) {
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

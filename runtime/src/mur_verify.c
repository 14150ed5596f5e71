/* mur_verify.c - proves a program before it runs (src/targets/uthinker/SPEC.md section 6).
 *
 * An abstract run. Slots hold ranges; instructions hold ranges in their fields, so the extent of
 * every access follows from the rows of mur_isa.def. A loop's body is seen with its variable's
 * whole range, and what a body writes is forgotten at its end, so one visit settles all ranges. It
 * leaves a fact of each INST (what it touches) and FOR (how often it loops), and bodies are visited
 * again with these alone until what is in flight is stable, for only that flows around a loop. A
 * body that ends beyond the room for facts is taken apart at each visit.
 *
 * Accesses in flight: of each engine and mode a bit for each half of a buffer and for region IO, in
 * `open` until it is complete; bits 0..10 are reads, 16..26 writes. Its word of `proof`, 0 for what
 * is complete: bits 0..15, tokens that, waited for alone, do not prove the latest such access
 * complete. Bits 16..31: a set of tokens that proves it when all of them are waited for, the
 * engine's latest signals, whichever way the program came; of sixteen, none does. Where ways meet,
 * both halves unite.
 *
 * Scopes: inputs have scope 1, a loop's variable 2 d + 1 and what is written in its body 2 d + 2,
 * d being the number of loops around the body; `depth` is 2 d.
 */
#include "mur.h"
#include "mur_code.h"

#include <string.h>

#define AT(name) MUR_OPERAND_##name

enum { READS, WRITES };

/* ---- mur_isa.def, packed ---- */

/* Each instruction's first field, limit and access; the next instruction's end them. */
enum {
#define MUR_INSN(name, opcode, words, engine, meaning) \
    FIELDS_##name, BACK_F_##name = FIELDS_##name - 1,
#define MUR_FIELD(insn, name, word, shift, width, unit) FIELD_##insn##_##name,
#include "mur_isa.def"
    FIELDS
};
enum {
#define MUR_INSN(name, opcode, words, engine, meaning) \
    LIMITS_##name, BACK_L_##name = LIMITS_##name - 1,
#define MUR_LIMIT(insn, field, min, max) LIMIT_##insn##_##field,
#include "mur_isa.def"
    LIMITS
};
enum {
#define MUR_INSN(name, opcode, words, engine, meaning) \
    ACCESSES_##name, BACK_A_##name = ACCESSES_##name - 1,
#define MUR_ACCESS(insn, mode, place, address, rows, pitch, size) \
    ACCESS_##insn##_##place##_##address,
#include "mur_isa.def"
    ACCESSES
};

enum { OPERAND_BITS = 6 };

static const uint32_t insns[] = {
#define MUR_INSN(name, opcode, words, engine, meaning) \
    (opcode) | (words) << 8 | MUR_##engine << 12 | FIELDS_##name << 14 | LIMITS_##name << 21 | \
        (uint32_t)ACCESSES_##name << 26,
#include "mur_isa.def"
    FIELDS << 14 | LIMITS << 21 | (uint32_t)ACCESSES << 26
};

/* a word begins where a field has shift 0 */
static const uint16_t fields[] = {
#define MUR_FIELD(insn, name, word, shift, width, unit) AT(name) | (shift) << 6 | ((width)-1) << 11,
#include "mur_isa.def"
};

static const uint16_t limits[] = {
#define MUR_LIMIT(insn, field, min, max) AT(field) | (min) << 6 | (max) << 8,
#include "mur_isa.def"
};

static const uint32_t accesses[] = {
#define MUR_ACCESS(insn, mode, place, address, rows, pitch, size) \
    AT(place) | AT(address) << 6 | AT(rows) << 12 | AT(pitch) << 18 | AT(size) << 24 | \
        (uint32_t)(mode) << 30,
#include "mur_isa.def"
};

static const uint8_t constants[] = {
#define MUR_CONSTANT(name, value) value,
#include "mur_isa.def"
};

/* ---- */

#define COMPLETE 0u
#define UNPROVEN 0xffffffffu /* no token proves it, and no set does */
#define NO_SET 0xffff0000u
#define ACCESSED 0x07ff07ffu /* a fact of INST: the accesses; other bits are of regions */
#define IO_ACCESSED 0x04000400u
#define ENGINE_SHIFT 30 /* and above them its engine */
#define SLOT_BITS (63u << MUR_SHIFT_PATCH_slot)
#define COMMON_BITS 0xffff1fffu /* of an instruction's first word: opcode, sig, wait */

/* A reason, 0 is fine; the operand that its row names is in the verdict. */
typedef uint32_t refusal;

#define ABOUT(reason, about) (v->verdict.operand = (about), (refusal)MUR_REASON_##reason)
#define TRY(expr) \
    do { \
        refusal try_ = (expr); \
        if (try_ != 0) \
            return try_; \
    } while (0)

/* a + b must not be more than the verdict's limit. */
static refusal at_most(mur_verifier *v, refusal otherwise, uint32_t a, uint32_t b)
{
    v->verdict.value = (uint64_t)a + b;
    return v->verdict.value > v->verdict.limit ? otherwise : 0;
}

/* ---- hazards ---- */

enum { PROOFS = 32, OPEN = PROOFS, FLIGHT = PROOFS + 1 };

/* Where an access has its proof: the number of its bit, by a de Bruijn sequence. */
static uint32_t place_of(uint32_t bit)
{
    return bit * 0x077cb531u >> 27;
}

/* The accesses of engine e of which an instruction's waits say nothing: an engine whose queue waits
 * keeps what it has waited for to itself, so waits count for what it has to fear itself, DMA for
 * ACC's accesses and ACC for DMA's in buffers. The CPU issues nothing until it is done waiting, and
 * on machines of the base ISA it is always the CPU that waits. */
#ifdef MUR_BASE_ISA
#define UNHEARD(e, engine) 0u
#else
#define UNHEARD(e, engine) ((e) == (engine) ? UINT32_MAX : (engine) == MUR_ACC ? IO_ACCESSED : 0u)
#endif

/* An instruction is issued: it waits for tokens, touches what `touched` says and signals one. */
static refusal issue(mur_verifier *v, uint32_t engine, uint32_t word0, uint32_t touched)
{
    uint32_t tokens = word0 >> 16, sig = (1u << mur_bits(word0, 8, 5)) >> 1, race = 0, bit;

    for (uint32_t e = 0; e < MUR_CPU; e++) {
        uint32_t own = e == engine ? touched : 0, *flight = v->flight + FLIGHT * e;
        uint32_t unheard = UNHEARD(e, engine);

        flight[OPEN] |= own;
        for (uint32_t left = flight[OPEN]; left != 0; left ^= bit) {
            uint32_t *proof = &flight[place_of(bit = left & (0 - left))], p = *proof;

            if ((own & bit) != 0)
                p = UNPROVEN;
            if ((unheard & bit) == 0 &&
                ((tokens & ~p) != 0 || (p < NO_SET && (p >> 16 & ~tokens) == 0))) {
                flight[OPEN] ^= bit;
                p = COMPLETE;
            } else if (e != engine) {
                if ((p >> 16 & sig) != 0) /* the token says nothing of this engine any more */
                    p |= NO_SET;
                p |= sig;
            } else if (sig != 0) {
                p = (p & 0xffff & ~sig) | sig << 16;
            }
            *proof = p;
        }
        if (e != engine)
            race |= flight[OPEN];
    }
    /* what it writes must not be in use, what it reads not be written */
    race &= touched << 16 | touched >> 16 | (touched & 0xffff0000);
    return race != 0 ? ABOUT(RACE, race) : 0;
}

/* Joins `from` into `to`; did that change it? */
static uint32_t join(uint32_t *to, const uint32_t *from)
{
    uint32_t changed = 0;

    for (uint32_t i = 0; i < MUR_FLIGHT; i++) {
        changed |= from[i] & ~to[i];
        to[i] |= from[i];
    }
    return changed;
}

/* ---- instructions ---- */

/* The fields' ranges, from the words or from the slots that patch them. */
static refusal read_fields(mur_verifier *v, const uint32_t *words, uint32_t patches,
                           const uint32_t *insn)
{
    const uint32_t *patch = words + mur_bits(insn[0], 8, 4), *end = patch + patches;
    const uint16_t *field = fields + mur_bits(insn[0], 14, 7);
    uint32_t named = COMMON_BITS, key = 1u << MUR_SHIFT_PATCH_width;

    for (; field != fields + mur_bits(insn[1], 14, 7); field++) {
        uint32_t shift = mur_bits(*field, 6, 5), mask = UINT32_MAX >> (31 - (*field >> 11)), slot;
        mur_range *value = &v->operand[mur_bits(*field, 0, OPERAND_BITS)];

        if (shift == 0) {
            if ((*words++ & ~named) != 0)
                return MUR_REASON_BITS;
            named = 0;
            key += 1u << MUR_SHIFT_PATCH_word;
        }
        value->lo = value->hi = *words >> shift & mask;
        named |= mask << shift;
        if (patch == end || (*patch & ~SLOT_BITS) != key + ((uint32_t)*field >> 6 << 12))
            continue;
        slot = MUR_CODE_GET(*patch++, PATCH, slot);
        if (v->scope[slot] == 0)
            return ABOUT(UNWRITTEN, slot);
        v->verdict.operand = mur_bits(*field, 0, OPERAND_BITS);
        v->verdict.limit = mask;
        TRY(at_most(v, MUR_REASON_FIT, value->hi, v->slot[slot].hi));
        value->lo += v->slot[slot].lo;
        value->hi += v->slot[slot].hi;
    }
    if ((*words & ~named) != 0)
        return MUR_REASON_BITS;
    return patch != end ? MUR_REASON_PATCH : 0;
}

/* B(k, terms) of SPEC section 3, written without cases: each block of up to 32 elements has a size
 * byte and for each term two of header and one for every two elements. */
static uint32_t slots_bytes(uint32_t k, uint32_t terms)
{
    return (k + 31) / 32 * (1 + 2 * terms) + (k + 1) / 2 * terms;
}

/* The most that the derived operands can be; all grow with what they come from, but for groups,
 * and its divisor is at least 1 by a limit of every instruction that has it. */
static void derive(mur_range *of)
{
    uint32_t k = of[AT(k)].hi, rows = of[AT(rows)].hi, terms = of[AT(terms)].hi;
    uint32_t group = of[AT(group)].lo;

    of[AT(place)].lo = of[AT(region)].lo + MUR_BUFFERS;
    of[AT(place)].hi = of[AT(region)].hi + MUR_BUFFERS;
    of[AT(slots)].hi = slots_bytes(k, terms);
    of[AT(chunk_slots)].hi = slots_bytes(of[AT(chunk)].hi, terms);
    of[AT(rows_slots)].hi = slots_bytes(rows, terms);
    of[AT(heads_k)].hi = of[AT(heads)].hi * k;
    of[AT(group_k)].hi = of[AT(group)].hi * k;
    if (group != 0)
        of[AT(groups)].hi = (rows + group - 1) / group;
    of[AT(k_4)].hi = 4 * k;
}

/* Only the end of an access in a region may exceed 32 bits: rows and counts have 12 bits, other
 * factors 18 at most. */
static refusal check_access(mur_verifier *v, uint32_t row, uint32_t *touched)
{
    const mur_range *of = v->operand, *address = &of[mur_bits(row, 6, OPERAND_BITS)];
    uint32_t place = mur_bits(row, 0, OPERAND_BITS), rows = of[mur_bits(row, 12, OPERAND_BITS)].hi;
    uint32_t size = of[mur_bits(row, 24, OPERAND_BITS)].hi, mode = mur_bits(row, 30, 1) << 4;
    uint32_t scale = place - AT(gb) <= AT(io_words) - AT(gb) ? 2 : 0; /* words */
    uint32_t first = address->lo << scale, last = address->hi << scale;

    v->verdict.operand = mur_bits(row, 6, OPERAND_BITS);
    if (place == AT(io) && (first != last || first % 4 != 0)) /* the CPU's words */
        return MUR_REASON_ALIGNMENT;
    if (rows == 0)
        return 0;
    size = (size + (rows - 1) * of[mur_bits(row, 18, OPERAND_BITS)].hi) << scale;
    for (uint32_t i = of[place].lo; i <= of[place].hi; i++) {
        uint32_t half = UINT32_MAX, bit = 1u << mode;

        if (i < MUR_BUFFERS) {
            v->verdict.limit = (&v->program->mach->i0)[i];
            half = v->verdict.limit / 2;
            bit <<= 2 * i;
        } else {
            v->verdict.limit = v->program->region_bytes[i - MUR_BUFFERS];
            bit <<= 18 - i;
        }
        TRY(at_most(v, MUR_REASON_BOUNDS, last, size));
        if (size == 0)
            continue;
        if (first < half)
            *touched |= bit;
        if (v->verdict.value > half) /* never of a region */
            *touched |= bit << 1;
    }
    return 0;
}

/* *touched: a bit for each access, and the engine */
static refusal take_apart(mur_verifier *v, const uint32_t *item, uint32_t *touched)
{
    uint32_t count = MUR_CODE_GET(item[0], INST, words);
    uint32_t patches = MUR_CODE_GET(item[0], INST, patches);
    const uint32_t *insn = insns;

    for (; mur_bits(*insn, 0, 8) != mur_bits(item[1], 0, 8); insn++)
        if (mur_bits(*insn, 0, 8) == 0)
            return MUR_REASON_OPCODE;
    if (count == 0 || mur_bits(*insn, 8, 4) != count)
        return MUR_REASON_LENGTH;
    if (mur_bits(item[1], 8, 5) > MUR_TOKENS)
        return MUR_REASON_BITS;
    *touched = mur_bits(*insn, 12, 2) << ENGINE_SHIFT;
#ifndef MUR_BASE_ISA /* which has no streamed loop */
    for (const mur_verifier_loop *loop = v->loops; loop != v->loop; loop++)
        if (*touched >> ENGINE_SHIFT == MUR_CPU &&
            MUR_CODE_GET(v->program->code[loop->body - MUR_WORDS_FOR], FOR, streamed))
            return MUR_REASON_STREAM;
#endif
    TRY(read_fields(v, item + 1, patches, insn));
    for (uint32_t i = mur_bits(insn[0], 21, 5); i < mur_bits(insn[1], 21, 5); i++) {
        uint32_t name = v->verdict.operand = mur_bits(limits[i], 0, OPERAND_BITS);

        v->verdict.limit = limits[i] >> 8;
        TRY(at_most(v, MUR_REASON_HIGH, v->operand[name].hi, 0));
        v->verdict.limit = v->operand[name].lo;
        TRY(at_most(v, MUR_REASON_LOW, mur_bits(limits[i], 6, 2), 0));
    }
    derive(v->operand);
    for (uint32_t i = insn[0] >> 26; i < insn[1] >> 26; i++)
        TRY(check_access(v, accesses[i], touched));
    return 0;
}

/* ---- slots ---- */

static refusal check_read(mur_verifier *v, uint32_t slot)
{
    return slot >= MUR_SLOTS || v->scope[slot] == 0 ? ABOUT(UNWRITTEN, slot) : 0;
}

static refusal write_slot(mur_verifier *v, uint32_t slot, uint32_t lo, uint32_t hi)
{
    uint32_t scope = v->depth + 2;

    if (slot >= MUR_SLOTS || (v->scope[slot] != 0 && v->scope[slot] != scope))
        return ABOUT(SCOPE, slot);
    v->slot[slot].lo = lo;
    v->slot[slot].hi = hi;
    v->scope[slot] = (uint8_t)scope;
    return 0;
}

/* LDT2 from word `first` of TABL on: its words must not fall where the index may be. */
static refusal check_table(mur_verifier *v, uint32_t first, uint32_t dst, const mur_range *index)
{
    const uint32_t *t = v->program->tables + first;
    uint32_t lo = index->lo, hi = index->hi, most = 0;

    v->verdict.operand = first;
    v->verdict.limit = v->program->section_bytes[MUR_SECTION_TABL] / 4 - 2;
    TRY(at_most(v, MUR_REASON_INDEX, first, hi));
    if (hi - lo > v->effort)
        return MUR_REASON_EFFORT;
    v->effort -= hi - lo;
    for (uint32_t i = lo; i <= hi; i++) {
        uint32_t span = t[i + 1] - t[i];

        if (t[i + 1] < t[i])
            return MUR_REASON_FALLS;
        most = span > most ? span : most;
    }
    TRY(write_slot(v, dst, t[lo], t[hi]));
    return write_slot(v, dst + 1, 0, most);
}

#define BIT(op) (1u << MUR_OP_##op)

enum {
    ALONE = BIT(SEL) | BIT(TABLE), /* no right operand in w1 */
    DIVIDES = BIT(DIV) | BIT(CDIV) | BIT(MOD),
    SHIFTS = BIT(SHL) | BIT(SHR)
};

static refusal check_eval(mur_verifier *v, const uint32_t *item)
{
    uint32_t op = MUR_CODE_GET(item[0], EVAL, op), dst = MUR_CODE_GET(item[0], EVAL, dst);
    uint32_t slot = MUR_CODE_GET(item[0], EVAL, a), b = MUR_CODE_GET(item[0], EVAL, b);
    uint32_t constant = MUR_CODE_GET(item[0], EVAL, immediate), unused = b, is, b_lo, b_hi;
    const mur_range *a = &v->slot[slot];
    uint64_t hi;

    if (op == 0 || op > MUR_OP_TABLE)
        return MUR_REASON_ITEM;
    is = 1u << op;
    if (!constant && (is & BIT(TABLE)) == 0)
        unused = is & BIT(SEL) ? 0 : item[1];
    if ((unused | (is & (constant ? ALONE : DIVIDES | SHIFTS))) != 0)
        return MUR_REASON_ITEM;
    TRY(check_read(v, slot));
    if (is & BIT(TABLE))
        return check_table(v, item[1], dst, a);
    b_lo = b_hi = item[1];
    if (!constant) {
        TRY(check_read(v, b));
        b_lo = v->slot[b].lo;
        b_hi = v->slot[b].hi;
    }
    if (is & BIT(SEL)) { /* one of b and c */
        TRY(check_read(v, item[1]));
        a = &v->slot[item[1]];
        return write_slot(v, dst, a->lo < b_lo ? a->lo : b_lo, a->hi > b_hi ? a->hi : b_hi);
    }
    if (is & (BIT(EQ) | BIT(LT)))
        return write_slot(v, dst, 0, 1);
    if ((is & DIVIDES && b_lo == 0) || (is & SHIFTS && b_lo > 31))
        return MUR_REASON_RIGHT;
    if (is & (BIT(AND) | BIT(MOD))) { /* at most a, and at most b or below it */
        b_hi -= op == MUR_OP_MOD;
        return write_slot(v, dst, 0, a->hi < b_hi ? a->hi : b_hi);
    }
    hi = mur_eval(op, a->hi, op == MUR_OP_SUB ? b_lo : b_hi); /* a - b falls as b rises */
    if (hi > UINT32_MAX)
        return ABOUT(OVERFLOW, dst);
    return write_slot(v, dst, (uint32_t)mur_eval(op, a->lo, op == MUR_OP_SUB ? b_hi : b_lo),
                      (uint32_t)hi);
}

/* ---- loops ---- */

static refusal begin_round(mur_verifier *v, const mur_verifier_loop *loop)
{
    mur_range *variable = &v->slot[loop->variable];

    v->at = loop->body;
    v->fact = loop->fact;
    if (v->at < v->settled)
        return 0;
    v->steps = 0;
    v->scope[loop->variable] = (uint8_t)(v->depth + 1);
    variable->lo = 0;
    variable->hi = loop->count.hi - (loop->count.hi != 0);
    return 0;
}

/* *fact: bit 0, whether the body runs in any case; then the largest count */
static refusal check_for(mur_verifier *v, const uint32_t *item, uint32_t *fact, uint32_t settled)
{
    mur_verifier_loop *loop = v->loop;
    uint32_t head = item[0], slot = MUR_CODE_GET(head, FOR, count);

    v->depth += 2;
    if (v->depth > 2 * MUR_MAX_NESTING)
        return MUR_REASON_NESTING;
    v->loop = loop + 1;
    memcpy(loop->flight, v->flight, sizeof(v->flight));
    loop->body = v->at;
    loop->end = v->at + item[2] + MUR_WORDS_NEXT;
    loop->fact = v->fact;
    if (!settled) {
        loop->variable = MUR_CODE_GET(head, FOR, variable);
        loop->steps = v->steps;
        loop->count.lo = loop->count.hi = v->verdict.limit = item[1];
        if (!MUR_CODE_GET(head, FOR, constant)) {
            TRY(check_read(v, slot));
            loop->count = v->slot[slot];
        } else if (slot != 0) {
            return MUR_REASON_ITEM;
        }
        TRY(at_most(v, ABOUT(COUNT, slot), loop->count.hi, 0));
        if (v->scope[loop->variable] != 0)
            return ABOUT(SCOPE, loop->variable);
        *fact = loop->count.hi << 1 | (loop->count.lo != 0);
    } else {
        loop->count.lo = *fact & 1;
        loop->count.hi = *fact >> 1;
    }
    return begin_round(v, loop);
}

static refusal check_next(mur_verifier *v, uint32_t settled)
{
    mur_verifier_loop *loop = v->loop - 1;
    uint64_t steps = (uint64_t)v->steps * loop->count.hi + loop->steps;

    if (v->at != loop->end)
        return MUR_REASON_NESTING;
    if (!settled) {
        for (uint32_t i = 0; i < MUR_SLOTS; i++)
            if (v->scope[i] > v->depth)
                v->scope[i] = 0;
        if (steps >> 31 != 0)
            return MUR_REASON_STEPS;
        v->steps = (uint32_t)steps;
        v->settled = v->fact != v->facts + MUR_FACTS ? v->at : loop->body;
    }
    /* another round may meet what this one left in flight */
    if (loop->count.hi > 1 && join(loop->flight, v->flight)) {
        memcpy(v->flight, loop->flight, sizeof(v->flight));
        return begin_round(v, loop);
    }
    if (loop->count.lo == 0)
        join(v->flight, loop->flight);
    v->depth -= 2;
    v->loop = loop;
    return 0;
}

/* ---- entries ---- */

/* Of each kind of item: words (INST: at least) and bits of the first word. */
static const struct {
    uint8_t words, bits;
} kinds[] = {
    [MUR_INST] = { MUR_WORDS_INST + 1, MUR_SHIFT_INST_words + MUR_WIDTH_INST_words },
    [MUR_EVAL] = { MUR_WORDS_EVAL, MUR_SHIFT_EVAL_immediate + MUR_WIDTH_EVAL_immediate },
#ifdef MUR_BASE_ISA
    [MUR_FOR] = { MUR_WORDS_FOR, MUR_SHIFT_FOR_constant + MUR_WIDTH_FOR_constant },
#else
    [MUR_FOR] = { MUR_WORDS_FOR, MUR_SHIFT_FOR_streamed + MUR_WIDTH_FOR_streamed },
#endif
    [MUR_NEXT] = { MUR_WORDS_NEXT, MUR_KIND_WIDTH },
    [MUR_END] = { MUR_WORDS_END, MUR_KIND_WIDTH },
};

static refusal check_item(mur_verifier *v)
{
    const uint32_t *item = v->program->code + v->at;
    uint32_t kind, words, settled, *fact;

    if (v->at == v->end)
        return MUR_REASON_CUT;
    kind = mur_bits(item[0], 0, MUR_KIND_WIDTH);
    if (kind == 0 || kind > MUR_END || item[0] >> kinds[kind].bits != 0)
        return MUR_REASON_ITEM;
    words = kinds[kind].words;
    if (v->end - v->at < words)
        return MUR_REASON_CUT;
    if (v->effort == 0)
        return MUR_REASON_EFFORT;
    v->effort--;
    settled = v->at < v->settled;
    v->steps += 1 - settled;
    v->at += words;
    fact = v->fact;
    if (fact != v->facts + MUR_FACTS)
        v->fact += kind & 1; /* INST, FOR */
    switch (kind) {
    case MUR_INST:
        v->at += MUR_CODE_GET(item[0], INST, words) + MUR_CODE_GET(item[0], INST, patches) - 1;
        if (v->at > v->end)
            return MUR_REASON_CUT;
        if (!settled)
            TRY(take_apart(v, item, fact));
        return issue(v, *fact >> ENGINE_SHIFT, item[1], *fact & ACCESSED);
    case MUR_EVAL:
        return settled ? 0 : check_eval(v, item);
    case MUR_FOR:
        return check_for(v, item, fact, settled);
    case MUR_NEXT:
        return v->depth != 0 ? check_next(v, settled) : MUR_REASON_NESTING;
    default: /* MUR_END */
        if (v->depth != 0)
            return MUR_REASON_NESTING;
        if (v->at != v->end)
            return MUR_REASON_CUT;
        if (v->steps > v->verdict.steps)
            v->verdict.steps = v->steps;
        v->end = 0;
        return 0;
    }
}

static refusal check_entry(mur_verifier *v, const mur_entr *entry)
{
    uint32_t context = v->program->meta->context;
    mur_range *input = v->slot;

    for (uint32_t i = 0; i < MUR_SLOTS; i++)
        v->scope[i] = i < MUR_INPUTS;
    input[MUR_SLOT_POS].lo = input[MUR_SLOT_LOGITS].lo = 0;
    input[MUR_SLOT_POS].hi = context - entry->min_m;
    input[MUR_SLOT_M].lo = input[MUR_SLOT_END].lo = entry->min_m;
    input[MUR_SLOT_M].hi = entry->max_m;
    input[MUR_SLOT_END].hi = context;
    input[MUR_SLOT_LOGITS].hi = 1;
    memset(v->flight, 0, sizeof(v->flight));
    v->settled = v->depth = v->steps = 0;
    v->fact = v->facts;
    v->loop = v->loops;
    v->at = entry->start;
    v->end = entry->start + entry->words;
    while (v->end != 0) {
        v->verdict.word = v->at;
        TRY(check_item(v));
    }
    return 0;
}

mur_status mur_verify(mur_program *program, mur_verifier *v)
{
    refusal found = 0;

    program->steps = 0;
    memset(v, 0, offsetof(mur_verifier, loops)); /* what follows is written before it is read */
    v->program = program;
    v->effort = MUR_EFFORT;
    for (uint32_t i = 0; i < sizeof(constants); i++)
        v->operand[i].lo = v->operand[i].hi = constants[i];
    v->operand[AT(chunk)].hi = mur_tile_tokens(program->mach->isa);
    for (uint32_t i = 0; found == 0 && i < program->entry_count; i++) {
        v->verdict.entry = i;
        found = check_entry(v, &program->entries[i]);
    }
    v->verdict.reason = (enum mur_reason)found;
    if (found != 0)
        return MUR_E_VERIFY;
    program->steps = v->verdict.steps;
    return MUR_OK;
}

/* mur_verify.c - proves a program before it runs (src/targets/uthinker/SPEC.md section 6).
 *
 * An abstract run. Slots hold ranges; instructions hold ranges in their fields, so the extent of
 * every access follows from the rows of mur_isa.def. A loop's body is seen with its variable's
 * whole range, and what a body writes is forgotten at its end, so one visit settles all ranges.
 * Only the accesses in flight flow around a loop; bodies are visited again until they are stable.
 *
 * Accesses in flight: one word for each bank (and region IO), engine and mode. Bits 0..15, `any`:
 * tokens of which each one alone, waited for, proves the latest such access complete. Bits 16..31,
 * `all`: a set of tokens that proves it when all of them are waited for: the engine's latest
 * signals, whichever way the program came. Where ways meet, a token stays in `any` if it is so on
 * both, and the sets of `all` unite.
 *
 * Scopes: inputs have scope 1, a loop's variable 2 d + 1 and what is written in its body 2 d + 2,
 * d being the number of loops around the body.
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

#define COMPLETE 0x0000ffffu /* any token proves it, and so does none */
#define UNPROVEN 0xffff0000u /* no token does; `all` of sixteen means that no set does */
#define SLOT_BITS (63u << MUR_SHIFT_PATCH_slot)
#define COMMON_BITS 0xffff1fffu /* of an instruction's first word: opcode, sig, wait */

/* A reason in bits 0..7, from bit 8 on the operand that its row names; 0 is fine. */
typedef uint32_t refusal;

#define ABOUT(reason, operand) (MUR_REASON_##reason | (operand) << 8)
#define TRY(expr) \
    do { \
        refusal try_ = (expr); \
        if (try_ != 0) \
            return try_; \
    } while (0)

static refusal at_most(mur_verifier *v, refusal otherwise, uint64_t value, uint32_t limit)
{
    v->verdict.value = value;
    v->verdict.limit = limit;
    return value > limit ? otherwise : 0;
}

/* ---- hazards ---- */

static void wait_for(mur_verifier *v, uint32_t tokens)
{
    for (uint32_t i = 0; i < MUR_PENDING; i++) {
        uint32_t p = v->pending[i];

        if (p == COMPLETE)
            continue;
        if ((p & tokens) != 0 || (p < UNPROVEN && (p >> 16 & ~tokens) == 0))
            v->pending[i] = COMPLETE;
    }
}

static void signal(mur_verifier *v, uint32_t engine, uint32_t token)
{
    uint32_t bit = 1u << token;

    for (uint32_t i = 0; i < MUR_PENDING; i++) {
        uint32_t p = v->pending[i];

        if (p == COMPLETE)
            continue;
        if ((i >> 1 & 1) == engine)
            p = (p & 0xffff) | bit | bit << 16;
        else
            p = (p >> 16 & bit ? p | UNPROVEN : p) & ~bit;
        v->pending[i] = p;
    }
}

static refusal touch(mur_verifier *v, uint32_t engine, uint32_t mode, uint32_t bank)
{
    uint32_t row = bank < 2 * MUR_BUFFERS ? bank : MUR_BUFFERS + bank / 2;
    uint32_t *own = v->pending + 4 * row, *other = own;

    /* no place is both the CPU's and ACC's, so each has one engine to fear */
    if (engine == MUR_DMA)
        other += 2;
    else
        own += 2;
    if (other[WRITES] != COMPLETE || (mode == WRITES && other[READS] != COMPLETE))
        return ABOUT(RACE, bank);
    if (engine != MUR_CPU) /* whose instructions are complete when they are issued */
        own[mode] = UNPROVEN;
    return 0;
}

/* Joins `from` into `to`; did that change it? */
static uint32_t join(uint32_t *to, const uint32_t *from)
{
    uint32_t changed = 0;

    for (uint32_t i = 0; i < MUR_PENDING; i++) {
        uint32_t old = to[i];

        to[i] = (old & from[i]) | ((old | from[i]) & UNPROVEN);
        changed |= old ^ to[i];
    }
    return changed;
}

/* ---- instructions ---- */

/* The fields' ranges, from the words or from the slots that patch them. */
static refusal read_fields(mur_verifier *v, const uint32_t *words, uint32_t patches,
                           const uint32_t *insn)
{
    const uint32_t *patch = words + mur_bits(insn[0], 8, 4), *end = patch + patches;
    uint32_t named = COMMON_BITS, key = 0;

    for (uint32_t i = mur_bits(insn[0], 14, 7); i < mur_bits(insn[1], 14, 7); i++) {
        uint32_t name = mur_bits(fields[i], 0, OPERAND_BITS), shift = mur_bits(fields[i], 6, 5);
        uint32_t width = mur_bits(fields[i], 11, 5) + 1, mask = UINT32_MAX >> (32 - width), slot;

        if (shift == 0) {
            if ((*words++ & ~named) != 0)
                return MUR_REASON_BITS;
            named = 0;
            key += 1u << MUR_SHIFT_PATCH_word;
        }
        v->lo[name] = v->hi[name] = *words >> shift & mask;
        named |= mask << shift;
        if (patch == end || (*patch & ~SLOT_BITS) != (key | shift << MUR_SHIFT_PATCH_shift |
                                                      width << MUR_SHIFT_PATCH_width))
            continue;
        slot = MUR_CODE_GET(*patch++, PATCH, slot);
        if (v->scope[slot] == 0)
            return ABOUT(UNWRITTEN, slot);
        TRY(at_most(v, ABOUT(FIT, name), (uint64_t)v->hi[name] + v->slot[slot].hi, mask));
        v->lo[name] += v->slot[slot].lo;
        v->hi[name] += v->slot[slot].hi;
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
static void derive(mur_verifier *v)
{
    uint32_t *hi = v->hi, k = hi[AT(k)], rows = hi[AT(rows)], terms = hi[AT(terms)];
    uint32_t group = v->lo[AT(group)];

    v->lo[AT(place)] = v->lo[AT(region)] + MUR_BUFFERS;
    hi[AT(place)] = hi[AT(region)] + MUR_BUFFERS;
    hi[AT(slots)] = slots_bytes(k, terms);
    hi[AT(chunk_slots)] = slots_bytes(hi[AT(chunk)], terms);
    hi[AT(rows_slots)] = slots_bytes(rows, terms);
    hi[AT(heads_k)] = hi[AT(heads)] * k;
    hi[AT(group_k)] = hi[AT(group)] * k;
    if (group != 0)
        hi[AT(groups)] = (rows + group - 1) / group;
    hi[AT(k_4)] = 4 * k;
}

/* Only the end of an access in a region may exceed 32 bits: rows and counts have 12 bits, other
 * factors 18 at most. */
static refusal check_access(mur_verifier *v, uint32_t engine, uint32_t row)
{
    uint32_t place = mur_bits(row, 0, OPERAND_BITS), address = mur_bits(row, 6, OPERAND_BITS);
    uint32_t rows = v->hi[mur_bits(row, 12, OPERAND_BITS)];
    uint32_t size = v->hi[mur_bits(row, 24, OPERAND_BITS)], mode = mur_bits(row, 30, 1);
    uint32_t scale = place - AT(gb) <= AT(io_words) - AT(gb) ? 2 : 0; /* words */
    uint32_t first = v->lo[address] << scale, last = v->hi[address] << scale, half;
    uint64_t end;

    if (place == AT(io) && (first != last || first % 4 != 0)) /* the CPU's words */
        return ABOUT(ALIGNMENT, address);
    if (rows == 0)
        return 0;
    size = (size + (rows - 1) * v->hi[mur_bits(row, 18, OPERAND_BITS)]) << scale;
    end = (uint64_t)last + size;
    for (uint32_t i = v->lo[place]; i <= v->hi[place]; i++) {
        TRY(at_most(v, ABOUT(BOUNDS, address), end, v->bytes[i]));
        half = i < MUR_BUFFERS ? v->bytes[i] / 2 : UINT32_MAX;
        if (size != 0 && first < half)
            TRY(touch(v, engine, mode, 2 * i));
        if (size != 0 && end > half) /* never of a region */
            TRY(touch(v, engine, mode, 2 * i + 1));
    }
    return 0;
}

static refusal check_instruction(mur_verifier *v, const uint32_t *item)
{
    uint32_t count = MUR_CODE_GET(item[0], INST, words), engine, sig;
    uint32_t patches = MUR_CODE_GET(item[0], INST, patches);
    const uint32_t *insn = insns;

    if (v->end - v->at < 1 + count + patches)
        return MUR_REASON_CUT;
    while (mur_bits(*insn, 0, 8) != mur_bits(item[1], 0, 8))
        if (mur_bits(*insn++, 0, 8) == 0)
            return MUR_REASON_OPCODE;
    if (count == 0 || mur_bits(*insn, 8, 4) != count)
        return MUR_REASON_LENGTH;
    engine = mur_bits(*insn, 12, 2);
    wait_for(v, item[1] >> 16);
    TRY(read_fields(v, item + 1, patches, insn));
    for (uint32_t i = mur_bits(insn[0], 21, 5); i < mur_bits(insn[1], 21, 5); i++) {
        uint32_t name = mur_bits(limits[i], 0, OPERAND_BITS);

        TRY(at_most(v, ABOUT(HIGH, name), v->hi[name], limits[i] >> 8));
        TRY(at_most(v, ABOUT(LOW, name), mur_bits(limits[i], 6, 2), v->lo[name]));
    }
    derive(v);
    for (uint32_t i = insn[0] >> 26; i < insn[1] >> 26; i++)
        TRY(check_access(v, engine, accesses[i]));
    sig = mur_bits(item[1], 8, 5);
    if (sig > MUR_TOKENS)
        return MUR_REASON_BITS;
    if (sig != 0)
        signal(v, engine, sig - 1);
    v->at += 1 + count + patches;
    return 0;
}

/* ---- slots ---- */

static refusal check_read(const mur_verifier *v, uint32_t slot)
{
    return slot >= MUR_SLOTS || v->scope[slot] == 0 ? ABOUT(UNWRITTEN, slot) : 0;
}

static refusal write_slot(mur_verifier *v, uint32_t slot, uint32_t lo, uint32_t hi)
{
    uint32_t scope = 2 * v->depth + 2;

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

    TRY(at_most(v, ABOUT(INDEX, first), (uint64_t)first + hi,
                v->program->section_bytes[MUR_SECTION_TABL] / 4 - 2));
    for (uint32_t i = lo; i <= hi; i++) {
        uint32_t span = t[i + 1] - t[i];

        if (t[i + 1] < t[i])
            return ABOUT(FALLS, first);
        most = span > most ? span : most;
    }
    v->effort = v->effort > hi - lo ? v->effort - (hi - lo) : 0;
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

    memcpy(v->pending, loop->pending, sizeof(v->pending));
    v->at = loop->body;
    v->steps = 0;
    v->scope[loop->variable] = (uint8_t)(2 * v->depth + 1);
    variable->lo = 0;
    variable->hi = loop->count.hi != 0 ? loop->count.hi - 1 : 0;
    return 0;
}

static refusal check_for(mur_verifier *v, const uint32_t *item)
{
    mur_verifier_loop *loop = &v->loop[v->depth];
    uint32_t slot = MUR_CODE_GET(item[0], FOR, count);

    if (v->depth == MUR_MAX_NESTING)
        return MUR_REASON_NESTING;
    memcpy(loop->pending, v->pending, sizeof(v->pending));
    loop->variable = MUR_CODE_GET(item[0], FOR, variable);
    loop->body = v->at + MUR_WORDS_FOR;
    loop->steps = v->steps;
    loop->count.lo = loop->count.hi = item[1];
    if (!MUR_CODE_GET(item[0], FOR, constant)) {
        TRY(check_read(v, slot));
        loop->count = v->slot[slot];
        TRY(at_most(v, ABOUT(COUNT, slot), loop->count.hi, item[1]));
    } else if (slot != 0) {
        return MUR_REASON_ITEM;
    }
    if (v->scope[loop->variable] != 0)
        return ABOUT(SCOPE, loop->variable);
    v->depth++;
    return begin_round(v, loop);
}

static refusal check_next(mur_verifier *v)
{
    mur_verifier_loop *loop = &v->loop[v->depth - 1];
    uint64_t steps = (uint64_t)v->steps * loop->count.hi + loop->steps;

    if (v->program->code[loop->body - 1] != v->at - loop->body)
        return MUR_REASON_NESTING;
    for (uint32_t i = 0; i < MUR_SLOTS; i++)
        if (v->scope[i] > 2 * v->depth)
            v->scope[i] = 0;
    /* another round may meet what this one left in flight */
    if (loop->count.hi > 1 && join(loop->pending, v->pending))
        return begin_round(v, loop);
    if (loop->count.lo == 0)
        join(v->pending, loop->pending);
    if (steps >> 31 != 0)
        return MUR_REASON_STEPS;
    v->steps = (uint32_t)steps;
    v->depth--;
    v->at += MUR_WORDS_NEXT;
    return 0;
}

/* ---- entries ---- */

/* Of each kind of item: words (INST: at least) and bits of the first word. */
static const struct {
    uint8_t words, bits;
} kinds[] = {
    [MUR_INST] = { MUR_WORDS_INST + 1, MUR_SHIFT_INST_words + MUR_WIDTH_INST_words },
    [MUR_EVAL] = { MUR_WORDS_EVAL, MUR_SHIFT_EVAL_immediate + MUR_WIDTH_EVAL_immediate },
    [MUR_FOR] = { MUR_WORDS_FOR, MUR_SHIFT_FOR_constant + MUR_WIDTH_FOR_constant },
    [MUR_NEXT] = { MUR_WORDS_NEXT, MUR_KIND_WIDTH },
    [MUR_END] = { MUR_WORDS_END, MUR_KIND_WIDTH },
};

static refusal check_item(mur_verifier *v)
{
    const uint32_t *item = v->program->code + v->at;
    uint32_t kind, words;

    if (v->at == v->end)
        return MUR_REASON_CUT;
    kind = mur_bits(item[0], 0, MUR_KIND_WIDTH);
    if (kind == 0 || kind > MUR_END || item[0] >> kinds[kind].bits != 0)
        return MUR_REASON_ITEM;
    words = kinds[kind].words;
    if (v->end - v->at < words)
        return MUR_REASON_CUT;
    if (v->effort < words)
        return MUR_REASON_EFFORT;
    v->effort -= words;
    v->steps++;
    switch (kind) {
    case MUR_INST:
        return check_instruction(v, item);
    case MUR_EVAL:
        v->at += words;
        return check_eval(v, item);
    case MUR_FOR:
        return check_for(v, item);
    case MUR_NEXT:
        return v->depth != 0 ? check_next(v) : MUR_REASON_NESTING;
    default: /* MUR_END */
        if (v->depth != 0)
            return MUR_REASON_NESTING;
        if (v->at + words != v->end)
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

    memset(v->scope, 0, sizeof(v->scope));
    memset(v->scope, 1, MUR_INPUTS);
    input[MUR_SLOT_POS].lo = input[MUR_SLOT_LOGITS].lo = 0;
    input[MUR_SLOT_POS].hi = context - entry->min_m;
    input[MUR_SLOT_M].lo = input[MUR_SLOT_END].lo = entry->min_m;
    input[MUR_SLOT_M].hi = entry->max_m;
    input[MUR_SLOT_END].hi = context;
    input[MUR_SLOT_LOGITS].hi = 1;
    for (uint32_t i = 0; i < MUR_PENDING; i++)
        v->pending[i] = COMPLETE;
    v->depth = 0;
    v->steps = 0;
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
    memset(v, 0, sizeof(*v));
    v->program = program;
    v->effort = MUR_EFFORT;
    for (uint32_t i = 0; i < sizeof(constants); i++)
        v->lo[i] = v->hi[i] = constants[i];
    v->lo[AT(chunk)] = v->hi[AT(chunk)] = mur_tile_tokens(program->mach->isa);
    memcpy(v->bytes, &program->mach->i0, MUR_BUFFERS * sizeof(uint32_t));
    memcpy(v->bytes + MUR_BUFFERS, program->region_bytes, sizeof(program->region_bytes));
    for (uint32_t i = 0; found == 0 && i < program->entry_count; i++) {
        v->verdict.entry = i;
        found = check_entry(v, &program->entries[i]);
    }
    v->verdict.reason = (enum mur_reason)(found & 0xff);
    v->verdict.operand = found >> 8;
    if (found != 0)
        return MUR_E_VERIFY;
    program->steps = v->verdict.steps;
    return MUR_OK;
}

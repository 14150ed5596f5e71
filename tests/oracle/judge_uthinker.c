/* judge_uthinker.c - SPEC.md sections 2, 4, 5 and 6 once more, by enumeration. */
#include "judge_uthinker.h"

#include <stddef.h>
#include <string.h>

enum { I0, I1, W0, W1, GB, WGTS, PARM, KV, IO };
enum { DMA, ACC, CPU, ENGINES };
enum { SLOTS = 64, TOKENS = 16, NESTING = 6, BANKS = 11, IO_BANK = 10 };
enum { INST = 1, EVAL, FOR, NEXT, END };
enum { ADD = 1, SUB, MUL, CDIV, DIV, MOD, MIN, MAX, AND, EQ, LT, SHL, SHR, SEL, LDT2 };

const judge_insn judge_insns[JUDGE_INSNS] = {
    { "LD",
      0x01,
      4,
      'd',
      { { "addr", 1, 0, 20 },
        { "buf", 1, 20, 3 },
        { "region", 1, 23, 3 },
        { "off", 2, 0, 32 },
        { "len", 3, 0, 24 } } },
    { "ST",
      0x02,
      4,
      'd',
      { { "addr", 1, 0, 20 },
        { "buf", 1, 20, 3 },
        { "region", 1, 23, 3 },
        { "off", 2, 0, 32 },
        { "len", 3, 0, 24 } } },
    { "EMBED",
      0x08,
      5,
      'c',
      { { "seq", 1, 0, 32 },
        { "k", 2, 0, 16 },
        { "rows", 2, 16, 12 },
        { "cols", 3, 0, 24 },
        { "dst", 4, 0, 32 } } },
    { "AMAX",
      0x09,
      4,
      'c',
      { { "saddr", 1, 0, 30 }, { "k", 2, 0, 16 }, { "first", 2, 16, 1 }, { "dst", 3, 0, 30 } } },
    { "MM",
      0x10,
      7,
      'a',
      { { "saddr", 1, 0, 20 },
        { "rows", 1, 20, 12 },
        { "waddr", 2, 0, 20 },
        { "cols", 2, 20, 12 },
        { "wlen", 3, 0, 20 },
        { "src", 3, 20, 3 },
        { "wsrc", 3, 23, 3 },
        { "acc", 3, 26, 1 },
        { "terms", 3, 27, 2 },
        { "daddr", 4, 0, 18 },
        { "spitch", 5, 0, 16 },
        { "dpitch", 5, 16, 16 },
        { "k", 6, 0, 16 } } },
    { "NORM",
      0x20,
      6,
      'a',
      { { "saddr", 1, 0, 18 },
        { "rows", 1, 20, 12 },
        { "gaddr", 2, 0, 18 },
        { "dst", 2, 20, 3 },
        { "terms", 2, 23, 2 },
        { "daddr", 3, 0, 20 },
        { "k", 4, 0, 16 },
        { "spitch", 4, 16, 16 },
        { "epsilon", 5, 0, 32 } } },
    { "ROPE",
      0x21,
      4,
      'a',
      { { "saddr", 1, 0, 18 },
        { "rows", 1, 20, 12 },
        { "taddr", 2, 0, 18 },
        { "heads", 2, 20, 12 },
        { "k", 3, 0, 16 },
        { "spitch", 3, 16, 16 } } },
    { "QUANT",
      0x22,
      5,
      'a',
      { { "saddr", 1, 0, 18 },
        { "rows", 1, 20, 12 },
        { "daddr", 2, 0, 20 },
        { "dst", 2, 20, 3 },
        { "terms", 2, 23, 2 },
        { "k", 3, 0, 16 },
        { "spitch", 3, 16, 16 },
        { "dpitch", 4, 0, 16 } } },
    { "QPACK",
      0x23,
      4,
      'a',
      { { "saddr", 1, 0, 18 },
        { "rows", 1, 20, 12 },
        { "daddr", 2, 0, 20 },
        { "cols", 2, 20, 12 },
        { "dst", 3, 0, 3 },
        { "terms", 3, 3, 2 },
        { "spitch", 3, 16, 16 } } },
    { "SMAX",
      0x24,
      8,
      'a',
      { { "saddr", 1, 0, 18 },
        { "rows", 1, 20, 12 },
        { "taddr", 2, 0, 18 },
        { "group", 2, 20, 12 },
        { "oaddr", 3, 0, 18 },
        { "skip", 3, 20, 12 },
        { "daddr", 4, 0, 20 },
        { "dst", 4, 20, 3 },
        { "terms", 4, 23, 2 },
        { "first", 4, 25, 1 },
        { "k", 5, 0, 16 },
        { "valid", 5, 16, 7 },
        { "hide", 5, 23, 8 },
        { "scale", 6, 0, 32 },
        { "dpitch", 7, 0, 16 } } },
    { "DIV",
      0x25,
      5,
      'a',
      { { "saddr", 1, 0, 18 },
        { "rows", 1, 20, 12 },
        { "taddr", 2, 0, 18 },
        { "group", 2, 20, 12 },
        { "daddr", 3, 0, 18 },
        { "k", 4, 0, 16 },
        { "dpitch", 4, 16, 16 } } },
    { "GLU",
      0x26,
      5,
      'a',
      { { "saddr", 1, 0, 18 },
        { "rows", 1, 20, 12 },
        { "uaddr", 2, 0, 18 },
        { "dst", 2, 20, 3 },
        { "terms", 2, 23, 2 },
        { "gelu", 2, 25, 1 },
        { "daddr", 3, 0, 20 },
        { "k", 4, 0, 16 },
        { "dpitch", 4, 16, 16 } } },
    { "SCALE",
      0x27,
      6,
      'a',
      { { "saddr", 1, 0, 18 },
        { "rows", 1, 20, 12 },
        { "daddr", 2, 0, 18 },
        { "acc", 2, 20, 1 },
        { "k", 3, 0, 16 },
        { "spitch", 3, 16, 16 },
        { "dpitch", 4, 0, 16 },
        { "factor", 5, 0, 32 } } },
    { "RMS",
      0x28,
      7,
      'a',
      { { "saddr", 1, 0, 18 },
        { "rows", 1, 20, 12 },
        { "gaddr", 2, 0, 18 },
        { "acc", 2, 20, 1 },
        { "daddr", 3, 0, 18 },
        { "k", 4, 0, 16 },
        { "spitch", 4, 16, 16 },
        { "dpitch", 5, 0, 16 },
        { "epsilon", 6, 0, 32 } } },
    { "CAP",
      0x29,
      5,
      'a',
      { { "saddr", 1, 0, 18 },
        { "rows", 1, 20, 12 },
        { "k", 2, 0, 16 },
        { "spitch", 2, 16, 16 },
        { "factor", 3, 0, 32 },
        { "cap", 4, 0, 32 } } },
};

static uint64_t part(uint32_t word, uint32_t shift, uint32_t width)
{
    return (uint64_t)word >> shift & ((UINT64_C(1) << width) - 1);
}

static const judge_insn *insn_of(uint32_t word)
{
    for (uint32_t i = 0; i < JUDGE_INSNS; i++)
        if (judge_insns[i].opcode == (word & 255))
            return &judge_insns[i];
    return NULL;
}

/* the words of an item, with an instruction's and its patches' */
static uint32_t item_words(const uint32_t *item)
{
    switch (item[0] & 15) {
    case INST:
        return 1 + (uint32_t)(part(item[0], 8, 4) + part(item[0], 4, 4));
    case EVAL:
        return 2;
    case FOR:
        return 3;
    default:
        return 1;
    }
}

/* ---- what is written ---- */

#define TOO_MANY (UINT64_C(1) << 31)

typedef struct form {
    const judge_program *program;
    uint32_t depth;
    uint8_t owner[SLOTS]; /* 0: unwritten; 1 + loops around the code that writes it */
    bool fixed[SLOTS];    /* an input, or a loop's variable */
    uint32_t body[NESTING];
    uint64_t rounds[NESTING];    /* of constant loops, else 0 */
    uint64_t items[NESTING + 1]; /* executed at least, since the loop's FOR; up to TOO_MANY */
} form;

static const char *form_read(const form *f, uint64_t slot)
{
    return slot >= SLOTS || f->owner[slot] == 0 ? "reads an unwritten slot" : NULL;
}

static const char *form_write(form *f, uint64_t slot)
{
    if (slot >= SLOTS || f->fixed[slot] || (f->owner[slot] != 0 && f->owner[slot] != f->depth + 1))
        return "writes a slot that is not its own";
    f->owner[slot] = (uint8_t)(f->depth + 1);
    return NULL;
}

/* *behind: fields that the patches before this one have left behind */
static const char *form_patch(const form *f, const judge_insn *insn, uint32_t patch,
                              uint32_t *behind)
{
    if (patch >> 23 != 0 || (patch & 3) != 0)
        return "a patch has bits that mean nothing";
    for (uint32_t i = 0; insn->fields[i].name; i++) {
        const judge_field *x = &insn->fields[i];

        if (x->word != part(patch, 8, 4) || x->shift != part(patch, 12, 5) ||
            x->width != part(patch, 17, 6))
            continue;
        if (i < *behind)
            return "a patch before another one's field, or of it";
        *behind = i + 1;
        return form_read(f, part(patch, 2, 6));
    }
    return "a patch is not one field";
}

static bool in_stream(const form *f)
{
    for (uint32_t i = 0; i < f->depth; i++)
        if (part(f->program->code[f->body[i] - 3], 17, 1) != 0)
            return true;
    return false;
}

static const char *form_inst(const form *f, const uint32_t *item)
{
    uint32_t count = (uint32_t)part(item[0], 8, 4), patches = (uint32_t)part(item[0], 4, 4);
    const judge_insn *insn = insn_of(item[1]);
    uint32_t named[8] = { 0 }, behind = 0;

    if (!insn)
        return "no such instruction";
    if (insn->words != count)
        return "another number of words";
    if (insn->engine == 'c' && in_stream(f))
        return "an instruction of the CPU for the sequencer";
    if ((item[1] & 0xe000) != 0 || (item[1] >> 8 & 31) > TOKENS)
        return "bits of word 0";
    for (const judge_field *x = insn->fields; x->name; x++)
        named[x->word] |= (uint32_t)(((UINT64_C(1) << x->width) - 1) << x->shift);
    for (uint32_t i = 1; i < count; i++)
        if ((item[1 + i] & ~named[i]) != 0)
            return "bits that no field names";
    for (uint32_t i = 0; i < patches; i++) {
        const char *wrong = form_patch(f, insn, item[1 + count + i], &behind);

        if (wrong)
            return wrong;
    }
    return NULL;
}

static const char *form_eval(form *f, const uint32_t *item)
{
    uint64_t op = part(item[0], 4, 6), dst = part(item[0], 10, 6), b = part(item[0], 22, 6);
    bool constant = part(item[0], 28, 1) != 0;
    const char *wrong = form_read(f, part(item[0], 16, 6));

    if (op < ADD || op > LDT2)
        return "no such operation";
    if (constant && (b != 0 || op >= SEL))
        return "a constant where none is taken";
    if (!constant && (op == CDIV || op == DIV || op == MOD || op == SHL || op == SHR))
        return "a slot where a constant is taken";
    if (!constant && op < SEL && item[1] != 0)
        return "a second word that means nothing";
    if (op == LDT2 && b != 0)
        return "a field that means nothing";
    if (!wrong && !constant && op != LDT2)
        wrong = form_read(f, b);
    if (!wrong && op == SEL)
        wrong = form_read(f, item[1]);
    if (!wrong)
        wrong = form_write(f, dst);
    return !wrong && op == LDT2 ? form_write(f, dst + 1) : wrong;
}

static const char *form_for(form *f, const uint32_t *item, uint32_t at)
{
    uint64_t variable = part(item[0], 4, 6), count = part(item[0], 10, 6);
    bool constant = part(item[0], 16, 1) != 0;
    const char *wrong = constant ? NULL : form_read(f, count);

    if (f->depth == NESTING)
        return "nested too deep";
    if (wrong || (constant && count != 0))
        return wrong ? wrong : "a field that means nothing";
    if (f->owner[variable] != 0)
        return "a loop's variable that is written already";
    f->body[f->depth] = at + 3;
    f->rounds[f->depth] = constant ? item[1] : 0;
    f->depth++;
    f->items[f->depth] = 0;
    f->owner[variable] = (uint8_t)(f->depth + 1);
    f->fixed[variable] = true;
    return NULL;
}

static const char *form_next(form *f, uint32_t at)
{
    if (f->depth == 0)
        return "NEXT without FOR";
    if (f->program->code[f->body[f->depth - 1] - 1] != at - f->body[f->depth - 1])
        return "a body of another length";
    for (uint32_t i = 0; i < SLOTS; i++)
        if (f->owner[i] > f->depth) {
            f->owner[i] = 0;
            f->fixed[i] = false;
        }
    f->items[f->depth - 1] += f->items[f->depth] * f->rounds[f->depth - 1];
    if (f->items[f->depth - 1] > TOO_MANY)
        f->items[f->depth - 1] = TOO_MANY;
    f->depth--;
    return NULL;
}

const char *judge_form(const judge_program *program)
{
    static const uint8_t bits[] = { 0, 12, 29, 18, 4, 4 };
    form f = { .program = program };

    for (uint32_t i = 0; i < 4; i++) {
        f.owner[i] = 1;
        f.fixed[i] = true;
    }
    for (uint32_t at = 0; at < program->words;) {
        const uint32_t *item = program->code + at;
        uint32_t kind = item[0] & 15, words = item_words(item);
        const char *wrong = NULL;

        if (kind < INST || kind > END || item[0] >> bits[kind] != 0)
            return "not an item";
        if (words > program->words - at || (kind == INST && words < 2))
            return "the entry ends within an item";
        f.items[f.depth]++;
        if (kind == END)
            return f.depth != 0               ? "END within a loop"
                   : at + 1 != program->words ? "code after END"
                   : f.items[0] >= TOO_MANY   ? "too many items"
                                              : NULL;
        wrong = kind == INST   ? form_inst(&f, item)
                : kind == EVAL ? form_eval(&f, item)
                : kind == FOR  ? form_for(&f, item, at)
                               : form_next(&f, at);
        if (wrong)
            return wrong;
        at += words;
    }
    return "no END";
}

/* ---- what runs ---- */

typedef struct machine {
    const judge_program *program;
    judge_run *run;
    const char *wrong;
    uint32_t at;
    uint64_t slot[SLOTS];
    uint32_t depth;
    struct {
        uint32_t body, variable;
        uint64_t round, count;
    } loop[NESTING];
    uint64_t issued[ENGINES];
    uint64_t known[ENGINES][ENGINES]; /* to one engine: how many of another are complete */
    uint64_t last[ENGINES][BANKS][2]; /* the number of the latest that reads, writes a bank */
    uint32_t token_engine[TOKENS];
    uint64_t token_count[TOKENS];
} machine;

static uint64_t slot_size(uint64_t n, uint64_t terms)
{
    return terms == 1 ? 3 + (n + 1) / 2 : 5 + 2 * ((n + 1) / 2);
}

static uint64_t slots_size(uint64_t k, uint64_t terms)
{
    return k / 32 * slot_size(32, terms) + (k % 32 != 0 ? slot_size(k % 32, terms) : 0);
}

static void touch(machine *m, uint32_t engine, uint32_t bank, bool writes)
{
    for (uint32_t other = 0; other < CPU; other++)
        if (other != engine && (m->last[other][bank][1] > m->known[engine][other] ||
                                (writes && m->last[other][bank][0] > m->known[engine][other])))
            m->wrong = "two engines at one bank";
    if (engine != CPU)
        m->last[engine][bank][writes] = m->issued[engine];
}

/* `rows` rows of `size` bytes, `pitch` apart */
static void reach(machine *m, uint32_t engine, bool writes, uint64_t place, uint64_t address,
                  uint64_t rows, uint64_t pitch, uint64_t size)
{
    if (m->program->wide && rows != 0) {
        size += (rows - 1) * pitch;
        rows = 1;
    }
    for (uint64_t r = 0; r < rows && !m->wrong; r++) {
        uint64_t start = address + r * pitch, end = start + size;
        uint64_t half = m->program->bytes[place] / 2;

        if (end > m->run->ends[place])
            m->run->ends[place] = end;
        if (end > m->program->bytes[place]) {
            m->wrong = "an access leaves its place";
        } else if (size != 0 && place == IO) {
            touch(m, engine, IO_BANK, writes);
        } else if (size != 0 && place < JUDGE_BUFFERS) {
            if (start < half)
                touch(m, engine, (uint32_t)(2 * place), writes);
            if (end > half)
                touch(m, engine, (uint32_t)(2 * place + 1), writes);
        }
    }
}

/* the values of the instruction's fields, by name */
typedef struct operands {
    const judge_insn *insn;
    uint64_t value[JUDGE_MOST_FIELDS];
} operands;

static uint64_t of(const operands *o, const char *name)
{
    uint32_t i = 0;

    while (o->insn->fields[i].name && strcmp(o->insn->fields[i].name, name) != 0)
        i++;
    return o->value[i];
}

#define F(name) of(o, #name)
#define READS(place, address, rows, pitch, size) \
    reach(m, engine, false, place, address, rows, pitch, size)
#define WRITES(place, address, rows, pitch, size) \
    reach(m, engine, true, place, address, rows, pitch, size)
#define READS_GB(address, rows, pitch, size) \
    READS(GB, 4 * (address), rows, 4 * (pitch), 4 * (uint64_t)(size))
#define WRITES_GB(address, rows, pitch, size) \
    WRITES(GB, 4 * (address), rows, 4 * (pitch), 4 * (uint64_t)(size))

static bool taken(const operands *o)
{
    uint32_t opcode = o->insn->opcode;

    if (opcode <= 0x02)
        return F(buf) <= GB && F(region) <= 3 && (opcode == 0x01 || F(region) >= 2);
    if (opcode == 0x08)
        return F(dst) % 4 == 0;
    if (opcode == 0x09)
        return true;
    if (opcode == 0x10)
        return F(src) <= I1 && F(wsrc) >= W0 && F(wsrc) <= W1 && F(terms) >= 1 && F(terms) <= 2;
    if ((opcode == 0x24 || opcode == 0x25) && (F(group) < 1 || F(group) > 255))
        return false;
    if (opcode == 0x24 && (F(valid) < 1 || F(valid) > 64))
        return false;
    if (opcode == 0x23 && F(rows) > 64)
        return false;
    return opcode == 0x21 || opcode == 0x25 || opcode >= 0x27 ||
           (F(dst) <= W1 && F(terms) >= 1 && F(terms) <= 2);
}

/* `rows` rows from row `first` on, of which each has v scores */
static void execute_smax_rows(machine *m, const operands *o, uint32_t engine, uint64_t first,
                              uint64_t rows, uint64_t v)
{
    READS_GB(F(saddr) + 64 * first, rows, 64, v);
    WRITES_GB(F(taddr) + 2 * first, rows, 2, 2);
    WRITES_GB(F(oaddr) + F(k) * first, rows, F(k), F(k));
    WRITES(F(dst), F(daddr) + F(dpitch) * first, rows, F(dpitch), slots_size(v, F(terms)));
}

static void execute_smax(machine *m, const operands *o, uint32_t engine)
{
    if (m->program->wide) {
        execute_smax_rows(m, o, engine, 0, F(rows), 64);
        return;
    }
    for (uint64_t r = F(skip) * F(group); r < F(rows); r++) {
        uint64_t v = F(valid) + r / F(group) - F(skip);

        execute_smax_rows(m, o, engine, r, 1, v < 64 ? v : 64);
    }
}

static void execute_div(machine *m, const operands *o, uint32_t engine)
{
    uint64_t groups = (F(rows) + F(group) - 1) / F(group);

    READS_GB(F(saddr), F(rows), F(k), F(k));
    if (m->program->wide) {
        READS_GB(F(taddr), F(rows), 2, 2);
        WRITES_GB(F(daddr), groups, F(dpitch), F(group) * F(k));
        return;
    }
    READS_GB(F(taddr) + 1, F(rows), 2, 1);
    for (uint64_t r = 0; r < F(rows); r++)
        WRITES_GB(F(daddr) + r / F(group) * F(dpitch) + r % F(group) * F(k), 1, 0, F(k));
}

static void execute_instruction(machine *m, const operands *o, uint32_t engine)
{
    uint64_t rows, k, slots;

    if (!taken(o)) {
        m->wrong = "an operand that is not taken";
        return;
    }
    rows = F(rows);
    k = F(k);
    slots = slots_size(k, F(terms));
    switch (o->insn->opcode) {
    case 0x01:
        READS(WGTS + F(region), F(off), 1, 0, F(len));
        WRITES(F(buf), F(addr), 1, 0, F(len));
        break;
    case 0x02:
        READS(F(buf), F(addr), 1, 0, F(len));
        WRITES(WGTS + F(region), F(off), 1, 0, F(len));
        break;
    case 0x08:
        READS(WGTS, F(seq), 1, 0, 4);
        READS(IO, 0, rows, 4, 4);
        WRITES(IO, F(dst), rows, 4 * k, 4 * k);
        break;
    case 0x09:
        READS(IO, 4 * F(saddr), 1, 0, 4 * k);
        WRITES(IO, 4 * F(dst), 1, 0, 8);
        break;
    case 0x10:
        READS(F(src), F(saddr), rows, F(spitch), slots);
        READS(F(wsrc), F(waddr), 1, 0, F(wlen));
        WRITES_GB(F(daddr), rows, F(dpitch), F(cols));
        break;
    case 0x20:
        READS_GB(F(saddr), rows, F(spitch), k);
        READS_GB(F(gaddr), 1, 0, k);
        WRITES(F(dst), F(daddr), rows, slots, slots);
        break;
    case 0x21:
        READS_GB(F(taddr), rows, k, k);
        WRITES_GB(F(saddr), rows, F(spitch), F(heads) * k);
        break;
    case 0x22:
        READS_GB(F(saddr), rows, F(spitch), k);
        WRITES(F(dst), F(daddr), rows, F(dpitch), slots);
        break;
    case 0x23:
        slots = slots_size(rows, F(terms));
        READS_GB(F(saddr), rows, F(spitch), F(cols));
        WRITES(F(dst), F(daddr), F(cols), slots, slots);
        break;
    case 0x24:
        execute_smax(m, o, engine);
        break;
    case 0x25:
        execute_div(m, o, engine);
        break;
    case 0x26:
        READS_GB(F(saddr), rows, k, k);
        READS_GB(F(uaddr), rows, k, k);
        WRITES(F(dst), F(daddr), rows, F(dpitch), slots);
        break;
    case 0x27:
    case 0x28:
        READS_GB(F(saddr), rows, F(spitch), k);
        if (o->insn->opcode == 0x28)
            READS_GB(F(gaddr), 1, 0, k);
        WRITES_GB(F(daddr), rows, F(dpitch), k);
        break;
    default: /* CAP */
        WRITES_GB(F(saddr), rows, F(spitch), k);
        break;
    }
}

/* An engine whose queue waits keeps what it has waited for to itself; the CPU issues nothing until
 * it need not wait any more. */
static void know(machine *m, uint32_t engine, uint32_t other, uint64_t count)
{
    for (uint32_t e = 0; e < ENGINES; e++)
        if ((e == engine || engine == CPU) && m->known[e][other] < count)
            m->known[e][other] = count;
}

static void run_inst(machine *m, const uint32_t *item)
{
    operands o = { .insn = insn_of(item[1]) };
    uint32_t count = o.insn->words, patches = (uint32_t)part(item[0], 4, 4);
    uint32_t engine = o.insn->engine == 'd' ? DMA : o.insn->engine == 'a' ? ACC : CPU;
    uint32_t sig = item[1] >> 8 & 31;

    for (uint32_t i = 0; o.insn->fields[i].name; i++) {
        const judge_field *x = &o.insn->fields[i];

        o.value[i] = part(item[1 + x->word], x->shift, x->width);
        for (uint32_t p = 0; p < patches; p++) {
            uint32_t patch = item[1 + count + p];

            if (part(patch, 8, 4) == x->word && part(patch, 12, 5) == x->shift)
                o.value[i] += m->slot[part(patch, 2, 6)];
        }
        if (o.value[i] >> x->width != 0)
            m->wrong = "a value does not fit its field";
    }
    for (uint32_t t = 0; t < TOKENS; t++)
        if ((item[1] >> (16 + t) & 1) != 0)
            know(m, engine, m->token_engine[t], m->token_count[t]);
    m->issued[engine]++;
    if (!m->wrong)
        execute_instruction(m, &o, engine);
    if (m->program->watch)
        m->program->watch(m->program->watch_arg, item, o.insn, o.value);
    if (sig != 0) {
        m->token_engine[sig - 1] = engine;
        m->token_count[sig - 1] = m->issued[engine];
    }
}

/* a op b, exactly; sets m->wrong where there is no result */
static uint64_t calculate(machine *m, uint64_t op, uint64_t a, uint64_t b)
{
    if (((op == CDIV || op == DIV || op == MOD) && b == 0) ||
        ((op == SHL || op == SHR) && b > 31)) {
        m->wrong = "a right operand without a result";
        return 0;
    }
    switch (op) {
    case ADD:
        return a + b;
    case SUB:
        return a > b ? a - b : 0;
    case MUL:
        return a * b;
    case CDIV:
        return (a + b - 1) / b;
    case DIV:
        return a / b;
    case MOD:
        return a % b;
    case MIN:
        return a < b ? a : b;
    case MAX:
        return a > b ? a : b;
    case AND:
        return a & b;
    case EQ:
        return a == b;
    case LT:
        return a < b;
    case SHL:
        return a << b;
    default:
        return a >> b;
    }
}

static void run_eval(machine *m, const uint32_t *item)
{
    uint64_t op = part(item[0], 4, 6), dst = part(item[0], 10, 6);
    uint64_t a = m->slot[part(item[0], 16, 6)], result;
    uint64_t b = part(item[0], 28, 1) != 0 ? item[1] : m->slot[part(item[0], 22, 6)];

    if (op == LDT2) {
        const uint32_t *t = m->program->tables;
        uint64_t at = a + item[1];

        /* the last start is the end of all */
        if (at + 1 >= t[1 + t[0]]) {
            m->wrong = "a word beyond the tables";
            return;
        }
        if (t[at + 1] < t[at])
            m->wrong = "a table that falls";
        m->slot[dst] = t[at];
        m->slot[dst + 1] = t[at + 1] - t[at];
        return;
    }
    result = op == SEL ? (a != 0 ? b : m->slot[item[1]]) : calculate(m, op, a, b);
    if (result > UINT32_MAX)
        m->wrong = "a value beyond 32 bits";
    m->slot[dst] = result;
}

static void run_for(machine *m, const uint32_t *item)
{
    uint64_t count = part(item[0], 16, 1) != 0 ? item[1] : m->slot[part(item[0], 10, 6)];

    if (count > item[1])
        m->wrong = "more rounds than are stated";
    m->at += 3;
    if (count == 0) {
        m->at += item[2] + 1;
        return;
    }
    m->loop[m->depth].body = m->at;
    m->loop[m->depth].variable = (uint32_t)part(item[0], 4, 6);
    m->loop[m->depth].round = 0;
    m->loop[m->depth].count = count;
    m->slot[m->loop[m->depth].variable] = 0;
    m->depth++;
}

static void run_next(machine *m)
{
    uint32_t inner = m->depth - 1;

    if (++m->loop[inner].round < m->loop[inner].count) {
        m->slot[m->loop[inner].variable] = m->loop[inner].round;
        m->at = m->loop[inner].body;
        return;
    }
    m->depth--;
    m->at++;
}

const char *judge_execute(const judge_program *program, uint32_t pos, uint32_t m, uint64_t most,
                          judge_run *run)
{
    machine x = { .program = program,
                  .run = run,
                  .slot = { pos, m, (uint64_t)pos + m, program->mute ? 0 : 1 } };

    run->steps = 0;
    run->cut = false;
    for (uint32_t t = 0; t < TOKENS; t++)
        x.token_engine[t] = CPU; /* complete */
    while (!x.wrong) {
        const uint32_t *item = program->code + x.at;
        uint32_t kind = item[0] & 15;

        if (run->steps == most) {
            run->cut = true;
            return NULL;
        }
        run->steps++;
        if (kind != INST && program->watch)
            program->watch(program->watch_arg, item, NULL, NULL);
        if (kind == END)
            return NULL;
        if (kind == FOR) {
            run_for(&x, item);
        } else if (kind == NEXT) {
            run_next(&x);
        } else {
            (kind == INST ? run_inst : run_eval)(&x, item);
            x.at += item_words(item);
        }
    }
    return x.wrong;
}

/* program_machine.h - a board that does no arithmetic and watches every access.
 *
 * Written from SPEC.md sections 1, 2 and 4, row by row, without the access table that the verifier
 * goes by. It is as lazy as the specification lets a machine be: an instruction completes only when
 * the run cannot go on without it. A violation is an access outside its place, an operand that no
 * machine takes, or an access while a conflicting one of another engine may still be under way.
 */
#ifndef PROGRAM_MACHINE_H
#define PROGRAM_MACHINE_H

#include <string.h>

#include "mur.h"
#include "mur_code.h"
#include "xorshift.h"

enum { MACHINE_QUEUE = 4096 };

typedef struct machine_use {
    uint32_t reads, writes; /* bit 2 * buffer + half; bit 10: region IO */
} machine_use;

typedef struct machine {
    mur_hal hal;
    const mur_program *program;
    const char *violation;
    machine_use queue[MUR_CPU][MACHINE_QUEUE]; /* submitted and not complete, oldest first */
    uint32_t submitted[MUR_CPU], completed[MUR_CPU];
} machine;

enum {
#define MUR_FIELD(insn, name, word, shift, width, unit) \
    MACHINE_WORD_##insn##_##name = word, MACHINE_SHIFT_##insn##_##name = shift, \
    MACHINE_WIDTH_##insn##_##name = width,
#include "mur_isa.def"
    MACHINE_FIELDS_END
};

static inline void machine_violates(machine *m, const char *what)
{
    if (!m->violation)
        m->violation = what;
}

static inline void machine_buffer(machine *m, machine_use *use, uint64_t buffer, uint64_t first,
                                  uint64_t bytes, int writes)
{
    const mur_mach *mach = m->program->mach;
    uint64_t sizes[] = { mach->i0, mach->i1, mach->w0, mach->w1, mach->gb }, half;
    uint32_t banks = 0;

    if (bytes == 0)
        return;
    if (buffer >= MUR_BUFFERS || first + bytes > sizes[buffer]) {
        machine_violates(m, "an access leaves its buffer");
        return;
    }
    half = sizes[buffer] / 2;
    if (first < half)
        banks |= 1u << 2 * buffer;
    if (first + bytes > half)
        banks |= 2u << 2 * buffer;
    *(writes ? &use->writes : &use->reads) |= banks;
}

static inline void machine_region(machine *m, machine_use *use, uint64_t region, uint64_t first,
                                  uint64_t bytes, int writes)
{
    if (region >= MUR_REGIONS || first + bytes > m->program->region_bytes[region] ||
        (writes && region < MUR_KV))
        machine_violates(m, "an access leaves its region");
    else if (region == MUR_IO)
        *(writes ? &use->writes : &use->reads) |= 1u << 2 * MUR_BUFFERS;
}

/* S(n, terms) and B(k, terms) as section 3 words them */
static inline uint64_t machine_slot(uint64_t n, uint64_t terms)
{
    return terms == 1 ? 3 + (n + 1) / 2 : 5 + 2 * ((n + 1) / 2);
}

static inline uint64_t machine_slots(uint64_t k, uint64_t terms)
{
    return k / 32 * machine_slot(32, terms) + (k % 32 ? machine_slot(k % 32, terms) : 0);
}

static inline machine_use machine_access(machine *m, const uint32_t *words)
{
    machine_use use = { 0, 0 };
    uint64_t r, rows, k, terms;

#define F(insn, name) \
    ((uint64_t)mur_bits(words[MACHINE_WORD_##insn##_##name], MACHINE_SHIFT_##insn##_##name, \
                        MACHINE_WIDTH_##insn##_##name))
#define WORDS(address, count, writes) \
    machine_buffer(m, &use, MUR_GB, 4 * (address), 4 * (uint64_t)(count), writes)
    switch (words[0] & 0xff) {
    case 0x01:
        machine_region(m, &use, F(LD, region), F(LD, off), F(LD, len), 0);
        machine_buffer(m, &use, F(LD, buf), F(LD, addr), F(LD, len), 1);
        break;
    case 0x02:
        machine_buffer(m, &use, F(ST, buf), F(ST, addr), F(ST, len), 0);
        machine_region(m, &use, F(ST, region), F(ST, off), F(ST, len), 1);
        break;
    case 0x08:
        machine_region(m, &use, MUR_IO, 0, 4 * F(EMBED, rows), 0);
        machine_region(m, &use, MUR_IO, F(EMBED, dst), 4 * F(EMBED, k) * F(EMBED, rows), 1);
        break;
    case 0x09:
        machine_region(m, &use, MUR_IO, 4 * F(AMAX, saddr), 4 * F(AMAX, k), 0);
        machine_region(m, &use, MUR_IO, 4 * F(AMAX, dst), 8, 1);
        break;
    case 0x10:
        rows = F(MM, rows);
        terms = F(MM, terms);
        if (F(MM, src) > MUR_I1 || F(MM, wsrc) < MUR_W0 || F(MM, wsrc) > MUR_W1 || terms < 1 ||
            terms > 2)
            machine_violates(m, "MM takes other operands");
        for (r = 0; r < rows && !m->violation; r++) {
            machine_buffer(m, &use, F(MM, src), F(MM, saddr) + r * F(MM, spitch),
                           machine_slots(F(MM, k), terms), 0);
            WORDS(F(MM, daddr) + r * F(MM, dpitch), F(MM, cols), 0);
            WORDS(F(MM, daddr) + r * F(MM, dpitch), F(MM, cols), 1);
        }
        machine_buffer(m, &use, F(MM, wsrc), F(MM, waddr), F(MM, wlen), 0);
        break;
    case 0x20:
        rows = F(NORM, rows);
        k = F(NORM, k);
        terms = F(NORM, terms);
        if (F(NORM, dst) > MUR_W1 || terms < 1 || terms > 2)
            machine_violates(m, "NORM takes other operands");
        for (r = 0; r < rows && !m->violation; r++) {
            WORDS(F(NORM, saddr) + r * F(NORM, spitch), k, 0);
            WORDS(F(NORM, gaddr), k, 0);
            machine_buffer(m, &use, F(NORM, dst), F(NORM, daddr) + r * machine_slots(k, terms),
                           machine_slots(k, terms), 1);
        }
        break;
    case 0x21:
        rows = F(ROPE, rows);
        k = F(ROPE, k);
        for (r = 0; r < rows && !m->violation; r++) {
            WORDS(F(ROPE, saddr) + r * F(ROPE, spitch), F(ROPE, heads) * k, 1);
            WORDS(F(ROPE, taddr) + r * k, k, 0);
        }
        break;
    case 0x22:
        rows = F(QUANT, rows);
        k = F(QUANT, k);
        terms = F(QUANT, terms);
        if (F(QUANT, dst) > MUR_W1 || terms < 1 || terms > 2)
            machine_violates(m, "QUANT takes other operands");
        for (r = 0; r < rows && !m->violation; r++) {
            WORDS(F(QUANT, saddr) + r * F(QUANT, spitch), k, 0);
            machine_buffer(m, &use, F(QUANT, dst), F(QUANT, daddr) + r * F(QUANT, dpitch),
                           machine_slots(k, terms), 1);
        }
        break;
    case 0x23:
        rows = F(QPACK, rows);
        terms = F(QPACK, terms);
        if (F(QPACK, dst) > MUR_W1 || terms < 1 || terms > 2 || rows > 64)
            machine_violates(m, "QPACK takes other operands");
        for (r = 0; r < rows && !m->violation; r++)
            WORDS(F(QPACK, saddr) + r * F(QPACK, spitch), F(QPACK, cols), 0);
        for (r = 0; r < F(QPACK, cols) && !m->violation; r++)
            machine_buffer(m, &use, F(QPACK, dst), F(QPACK, daddr) + r * machine_slots(rows, terms),
                           machine_slots(rows, terms), 1);
        break;
    case 0x24:
        rows = F(SMAX, rows);
        k = F(SMAX, k);
        terms = F(SMAX, terms);
        if (F(SMAX, dst) > MUR_W1 || terms < 1 || terms > 2 || F(SMAX, group) == 0 ||
            F(SMAX, valid) < 1 || F(SMAX, valid) > 64) {
            machine_violates(m, "SMAX takes other operands");
            break;
        }
        for (r = 0; r < rows && !m->violation; r++) {
            uint64_t i = r / F(SMAX, group), v;

            if (i < F(SMAX, skip))
                continue;
            v = F(SMAX, valid) + i - F(SMAX, skip);
            v = v < 64 ? v : 64;
            WORDS(F(SMAX, saddr) + 64 * r, v, 0);
            WORDS(F(SMAX, taddr) + 2 * r, 2, 1);
            WORDS(F(SMAX, oaddr) + k * r, k, 1);
            machine_buffer(m, &use, F(SMAX, dst), F(SMAX, daddr) + r * F(SMAX, dpitch),
                           machine_slots(v, terms), 1);
        }
        break;
    case 0x25:
        rows = F(DIV, rows);
        k = F(DIV, k);
        if (F(DIV, group) == 0) {
            machine_violates(m, "DIV takes other operands");
            break;
        }
        for (r = 0; r < rows && !m->violation; r++) {
            WORDS(F(DIV, saddr) + k * r, k, 0);
            WORDS(F(DIV, taddr) + 2 * r + 1, 1, 0);
            WORDS(F(DIV, daddr) + r / F(DIV, group) * F(DIV, dpitch) + r % F(DIV, group) * k, k, 1);
        }
        break;
    case 0x26:
        rows = F(GLU, rows);
        k = F(GLU, k);
        terms = F(GLU, terms);
        if (F(GLU, dst) > MUR_W1 || terms < 1 || terms > 2)
            machine_violates(m, "GLU takes other operands");
        for (r = 0; r < rows && !m->violation; r++) {
            WORDS(F(GLU, saddr) + r * k, k, 0);
            WORDS(F(GLU, uaddr) + r * k, k, 0);
            machine_buffer(m, &use, F(GLU, dst), F(GLU, daddr) + r * F(GLU, dpitch),
                           machine_slots(k, terms), 1);
        }
        break;
    case 0x27:
        rows = F(SCALE, rows);
        k = F(SCALE, k);
        for (r = 0; r < rows && !m->violation; r++) {
            WORDS(F(SCALE, saddr) + r * F(SCALE, spitch), k, 0);
            WORDS(F(SCALE, daddr) + r * F(SCALE, dpitch), k, 1);
        }
        break;
    case 0x28:
        rows = F(RMS, rows);
        k = F(RMS, k);
        WORDS(F(RMS, gaddr), k, 0);
        for (r = 0; r < rows && !m->violation; r++) {
            WORDS(F(RMS, saddr) + r * F(RMS, spitch), k, 0);
            WORDS(F(RMS, daddr) + r * F(RMS, dpitch), k, 1);
        }
        break;
    case 0x29:
        rows = F(CAP, rows);
        for (r = 0; r < rows && !m->violation; r++)
            WORDS(F(CAP, saddr) + r * F(CAP, spitch), F(CAP, k), 1);
        break;
    default:
        machine_violates(m, "no such instruction");
        break;
    }
#undef WORDS
#undef F
    return use;
}

/* An instruction of `engine` begins: no other engine may have a conflicting one under way. */
static inline mur_status machine_submit(machine *m, enum mur_engine engine, const uint32_t *words)
{
    machine_use use = machine_access(m, words);

    for (uint32_t e = 0; e < MUR_CPU; e++)
        for (uint32_t i = m->completed[e]; e != engine && i != m->submitted[e]; i++) {
            const machine_use *other = &m->queue[e][i % MACHINE_QUEUE];

            if ((use.writes & (other->reads | other->writes)) != 0 ||
                (use.reads & other->writes) != 0)
                machine_violates(m, "two engines at one bank");
        }
    if (engine != MUR_CPU) {
        m->queue[engine][m->submitted[engine]++ % MACHINE_QUEUE] = use;
        if (m->submitted[engine] - m->completed[engine] == MACHINE_QUEUE)
            m->completed[engine]++; /* beyond what this machine remembers */
    }
    return m->violation ? MUR_E_FAULT : MUR_OK;
}

static inline mur_status machine_dma(void *arg, const uint32_t *words)
{
    return machine_submit(arg, MUR_DMA, words);
}

static inline mur_status machine_accel(void *arg, const uint32_t *words)
{
    return machine_submit(arg, MUR_ACC, words);
}

static inline mur_status machine_host(void *arg, const uint32_t *words)
{
    return machine_submit(arg, MUR_CPU, words);
}

static inline uint32_t machine_completed(void *arg, enum mur_engine engine)
{
    const machine *m = arg;

    return m->completed[engine];
}

static inline void machine_init(machine *m, const mur_program *program)
{
    m->hal =
        (mur_hal){ m, machine_dma, machine_accel, machine_host, machine_completed, NULL, NULL };
    m->program = program;
    m->violation = NULL;
    memset(m->submitted, 0, sizeof(m->submitted));
    memset(m->completed, 0, sizeof(m->completed));
}

/* Completes what the item at hand waits for, and no more. */
static inline void machine_relent(machine *m, const mur_run_state *run)
{
    const uint32_t *item = m->program->code + run->at;

    if (mur_bits(item[0], 0, MUR_KIND_WIDTH) == MUR_END) {
        memcpy(m->completed, m->submitted, sizeof(m->completed));
        return;
    }
    for (uint32_t t = 0; t < MUR_TOKENS; t++) {
        const mur_run_token *token = &run->token[t + 1];

        if ((item[1] >> (16 + t) & run->pending >> (t + 1) & 1) != 0 &&
            (int32_t)(m->completed[token->engine] - token->count) < 0)
            m->completed[token->engine] = token->count;
    }
}

/* Runs an entry for at most `most` steps; the violation, or NULL. steps: how many it took. */
static inline const char *machine_run(machine *m, uint32_t entry, uint32_t pos, uint32_t tokens,
                                      uint32_t most, uint32_t *steps)
{
    mur_run_state run;
    mur_status status = mur_start(&run, m->program, &m->hal, entry, pos, tokens);

    *steps = 0;
    if (status != MUR_OK)
        return "the run does not start";
    while (!run.done && *steps < most) {
        status = mur_step(&run);
        if (status == MUR_YIELD)
            machine_relent(m, &run);
        else if (status != MUR_OK)
            return m->violation ? m->violation : "the interpreter gives up";
        else
            ++*steps;
    }
    return NULL;
}

/* Runs every entry of a verified program on inputs at the ends of their ranges and on some in
 * between, for at most `most` steps each; the first violation, or NULL. */
static inline const char *machine_try(machine *m, const mur_program *program, uint64_t *random,
                                      uint32_t most)
{
    for (uint32_t e = 0; e < program->entry_count; e++)
        for (uint32_t i = 0; i < 5; i++) {
            const mur_entr *entry = &program->entries[e];
            uint32_t tokens = i & 1 ? entry->max_m : entry->min_m, pos = 0, steps;
            const char *violation;

            if (i >= 4)
                tokens = entry->min_m + random_next(random) % (entry->max_m - entry->min_m + 1);
            if (i & 2)
                pos = program->meta->context - tokens;
            if (i >= 4)
                pos = random_next(random) % (program->meta->context - tokens + 1);
            machine_init(m, program);
            violation = machine_run(m, e, pos, tokens, most, &steps);
            if (violation)
                return violation;
            if (steps > program->steps)
                return "more steps than the worst case";
        }
    return NULL;
}

#endif

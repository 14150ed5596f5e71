/* program_fixture.h - small programs written by hand: an assembler.
 *
 * One item a line. Registers r0..r63 are slots: r0 pos, r1 m, r2 end.
 *
 *     LD addr=0 buf=2 region=0 off=r4 len=16 sig=3 wait=1,2     a field: a number, or a slot
 * (patch) r4 = MUL r0 #16                                           #: the constant in w1 r5 =
 * TABLE r4 #0        r6 = SEL r4 r0 r1 FOR r7 4                FOR r7 r5 4 variable, (slot,)
 * largest count NEXT                    END WORD 123 any word, as it is
 */
#ifndef PROGRAM_FIXTURE_H
#define PROGRAM_FIXTURE_H

#include "check.h"
#include "mur_code.h"
#include "program_file.h"

static const struct {
    const char *insn, *name;
    uint32_t word, shift, width;
} fixture_fields[] = {
#define MUR_FIELD(insn, name, word, shift, width, unit) { #insn, #name, word, shift, width },
#include "mur_isa.def"
};

static const struct {
    const char *name;
    uint32_t opcode, words;
} fixture_insns[] = {
#define MUR_INSN(name, opcode, words, engine, meaning) { #name, opcode, words },
#include "mur_isa.def"
};

static const char *const fixture_ops[] = {
#define MUR_EVAL(name, number, operands, meaning) [number] = #name,
#include "mur_eval.def"
#undef MUR_EVAL
};

static inline uint32_t fixture_number(const char *text)
{
    return (uint32_t)strtoul(text + (*text == 'r' || *text == '#'), NULL, 0);
}

/* among the patches at `to`, which are in the order of their fields, one of field i, the insn's */
static inline void fixture_patch(uint32_t *to, uint32_t count, size_t i, uint32_t slot)
{
    uint32_t key = fixture_fields[i].word << 8 | fixture_fields[i].shift << 12;

    for (; count > 0; count--) {
        uint32_t before = to[count - 1] & 0x1ff00, word = before & 0xf00;

        if (word < (key & 0xf00) || (word == (key & 0xf00) && before <= key))
            break;
        to[count] = to[count - 1];
    }
    to[count] = slot << 2 | key | fixture_fields[i].width << 17;
}

static inline void fixture_instruction(hand_program *f, size_t insn, char *rest)
{
    uint32_t *item = f->code + f->words, count = fixture_insns[insn].words, patches = 0;
    uint32_t *words = item + 1;

    memset(words, 0, 4 * count);
    words[0] = fixture_insns[insn].opcode;
    for (char *token = strtok(rest, " "); token; token = strtok(NULL, " ")) {
        char *value = strchr(token, '=');
        size_t i = 0;

        *value++ = 0;
        if (strcmp(token, "sig") == 0) {
            words[0] |= (fixture_number(value) + 1) << 8;
            continue;
        }
        if (strcmp(token, "wait") == 0) {
            for (; value; value = strchr(value, ',') ? strchr(value, ',') + 1 : NULL)
                words[0] |= 1u << (16 + fixture_number(value));
            continue;
        }
        while (i < sizeof(fixture_fields) / sizeof(fixture_fields[0]) &&
               (strcmp(fixture_fields[i].insn, fixture_insns[insn].name) != 0 ||
                strcmp(fixture_fields[i].name, token) != 0))
            i++;
        if (i == sizeof(fixture_fields) / sizeof(fixture_fields[0]))
            fail_msg("no field %s of %s", token, fixture_insns[insn].name);
        if (*value == 'r') {
            fixture_patch(words + count, patches++, i, fixture_number(value));
            value = strchr(value, '+');
        }
        if (value)
            words[fixture_fields[i].word] |= fixture_number(value) << fixture_fields[i].shift;
    }
    item[0] = MUR_INST | patches << 4 | count << 8;
    f->words += 1 + count + patches;
}

static inline void fixture_eval(hand_program *f, const char *line)
{
    char op[16], dst[16], a[16], b[16] = "", c[16] = "";
    uint32_t number = 1, w0, w1 = 0;

    sscanf(line, "%15s = %15s %15s %15s %15s", dst, op, a, b, c);
    while (number < MUR_OPS && strcmp(fixture_ops[number], op) != 0)
        number++;
    w0 = MUR_EVAL | number << 4 | fixture_number(dst) << 10 | fixture_number(a) << 16;
    if (number == MUR_OP_TABLE)
        w1 = f->tables[1 + fixture_number(b)];
    else if (*b == '#') {
        w0 |= 1u << 28;
        w1 = fixture_number(b);
    } else {
        w0 |= fixture_number(b) << 22;
        w1 = fixture_number(c);
    }
    f->code[f->words++] = w0;
    f->code[f->words++] = w1;
}

/* Appends an entry made of these lines, for m in min_m..max_m. END may be left out. */
static inline void fixture_entry(hand_program *f, uint32_t min_m, uint32_t max_m, const char *text)
{
    mur_entr *entry = &f->entries[f->entry_count++];
    uint32_t loops[16], depth = 0, start = f->words;
    char *copy = strdup(text), *next, ended = 0;

    for (char *line = copy; line && *line; line = next) {
        char name[16] = "", first[16] = "", second[16] = "";
        size_t insn = 0;

        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        if (sscanf(line, " %15s %15s %15s", name, first, second) < 1)
            continue;
        ended = 0;
        while (insn < sizeof(fixture_insns) / sizeof(fixture_insns[0]) &&
               strcmp(fixture_insns[insn].name, name) != 0)
            insn++;
        if (insn < sizeof(fixture_insns) / sizeof(fixture_insns[0])) {
            fixture_instruction(f, insn, strstr(line, name) + strlen(name));
        } else if (strcmp(name, "FOR") == 0 || strcmp(name, "STREAM") == 0) {
            char third[16] = "";

            sscanf(line, " %*s %*s %*s %15s", third);
            loops[depth++] = f->words;
            f->code[f->words++] = MUR_FOR | (*name == 'S' ? 1u << 17 : 0) |
                                  fixture_number(first) << 4 |
                                  (*second == 'r' ? fixture_number(second) << 10 : 1u << 16);
            f->code[f->words++] = fixture_number(*second == 'r' ? third : second);
            f->words++;
        } else if (strcmp(name, "NEXT") == 0) {
            if (depth != 0) {
                depth--;
                f->code[loops[depth] + 2] = f->words - loops[depth] - 3;
            }
            f->code[f->words++] = MUR_NEXT;
        } else if (strcmp(name, "END") == 0) {
            f->code[f->words++] = MUR_END;
            ended = 1;
        } else if (strcmp(name, "WORD") == 0) {
            f->code[f->words++] = fixture_number(first);
            ended = 1; /* such programs end as they say */
        } else {
            fixture_eval(f, line);
        }
    }
    if (!ended)
        f->code[f->words++] = MUR_END;
    free(copy);
    *entry = (mur_entr){ .kind = max_m == 1 ? MUR_ENTRY_DECODE : MUR_ENTRY_PREFILL,
                         .start = start,
                         .words = f->words - start,
                         .min_m = min_m,
                         .max_m = max_m };
}

#endif

/* program_fixture.h - small programs written by hand: an assembler, and the file around its code.
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
#include "mur.h"
#include "mur_code.h"

enum { FIXTURE_WORDS = 4096, FIXTURE_TABLES = 10000, FIXTURE_BYTES = 1 << 17 };

typedef struct fixture {
    /* what the file says; set by fixture_init, changed by tests before fixture_build */
    mur_mach mach;
    mur_meta meta;
    mur_entr entries[4];
    uint32_t entry_count;
    uint32_t code[FIXTURE_WORDS], words;
    uint32_t tables[FIXTURE_TABLES], table_words;
    uint32_t wgts_bytes, parm_bytes;
    uint32_t gold_count;
    mur_gold gold[16];

    _Alignas(16) uint8_t image[FIXTURE_BYTES];
    uint32_t image_bytes;
    mur_program program;
    mur_verifier verifier;
} fixture;

/* ---- the file ---- */

static inline void fixture_table(fixture *f, uint32_t count, const uint32_t *values)
{
    uint32_t n = f->tables[0];

    /* one more start in front of the words, so all starts move */
    memmove(f->tables + n + 3, f->tables + n + 2, 4 * (f->table_words - n - 2));
    f->tables[0] = n + 1;
    for (uint32_t i = 1; i <= n + 1; i++)
        f->tables[i]++;
    memcpy(f->tables + f->table_words + 1, values, 4 * count);
    f->table_words += 1 + count;
    f->tables[n + 2] = f->table_words;
}

static inline void fixture_init(fixture *f)
{
    memset(f, 0, sizeof(*f));
    f->mach = (mur_mach){
        .isa = 1, .i0 = 1024, .i1 = 1024, .w0 = 2048, .w1 = 2048, .gb = 8192, .rows = 8
    };
    f->meta = (mur_meta){ .vocabulary = 100,
                          .context = 64,
                          .rows = 8,
                          .layers = 1,
                          .width = 8,
                          .heads = 1,
                          .kv_heads = 1,
                          .head_width = 8,
                          .ffn_width = 8,
                          .terms_x = 2,
                          .terms_q = 2,
                          .terms_k = 2,
                          .terms_p = 2,
                          .terms_v = 2,
                          .terms_o = 2,
                          .terms_f = 2,
                          .terms_h = 2,
                          .terms_l = 2,
                          .kv_bytes = 4096,
                          .io_bytes = 4096,
                          .embedded = 64,
                          .logits = 1024,
                          .bos = UINT32_MAX,
                          .eos = UINT32_MAX,
                          .eos2 = UINT32_MAX,
                          .eos3 = UINT32_MAX };
    f->wgts_bytes = 4096;
    f->parm_bytes = 1024;
    f->tables[1] = f->table_words = 2;
}

static inline uint32_t fixture_place(fixture *f, mur_place *place, const char *type,
                                     const void *data, uint32_t bytes, uint32_t at)
{
    at = (at + 15) & ~15u;
    memcpy(&place->type, type, 4);
    place->offset = at;
    place->bytes = bytes;
    if (data)
        memcpy(f->image + at, data, bytes);
    else /* anything that is not constant */
        for (uint32_t i = 0; i < bytes; i++)
            f->image[at + i] = (uint8_t)(i * 37 + i / 256);
    place->crc = mur_crc32(0, f->image + at, bytes);
    return at + bytes;
}

/* Puts the header's and the table's checks right again after a test changed them. */
static inline void fixture_seal(fixture *f)
{
    mur_header *header = (mur_header *)(void *)f->image;

    header->table_crc =
        mur_crc32(0, f->image + sizeof(*header), header->sections * sizeof(mur_place));
    header->crc = mur_crc32(0, header, sizeof(*header) - 4);
}

/* Writes the file and opens it. */
static inline mur_status fixture_build(fixture *f)
{
    mur_header *header = (mur_header *)(void *)f->image;
    mur_place *place = (mur_place *)(void *)(f->image + sizeof(*header));
    uint32_t sections = 8, at = (uint32_t)(sizeof(*header) + sections * sizeof(*place));
    uint64_t hash = 0xcbf29ce484222325u;
    const uint8_t *mach = (const uint8_t *)&f->mach;

    memset(f->image, 0, sizeof(f->image));
    at = fixture_place(f, place++, "MACH", &f->mach, sizeof(f->mach), at);
    at = fixture_place(f, place++, "META", &f->meta, sizeof(f->meta), at);
    at = fixture_place(f, place++, "ENTR", f->entries, f->entry_count * (uint32_t)sizeof(mur_entr),
                       at);
    at = fixture_place(f, place++, "CODE", f->code, 4 * f->words, at);
    at = fixture_place(f, place++, "TABL", f->tables, 4 * f->table_words, at);
    at = fixture_place(f, place++, "WGTS", NULL, f->wgts_bytes, at);
    at = fixture_place(f, place++, "PARM", NULL, f->parm_bytes, at);
    at = fixture_place(f, place++, "GOLD", f->gold, f->gold_count * (uint32_t)sizeof(mur_gold), at);
    for (size_t i = 0; i < sizeof(f->mach); i++)
        hash = (hash ^ mach[i]) * 0x100000001b3u;
    header->magic = MUR_MAGIC;
    header->version = MUR_VERSION_MAJOR;
    header->bytes = f->image_bytes = at;
    header->sections = sections;
    header->fingerprint_low = (uint32_t)hash;
    header->fingerprint_high = (uint32_t)(hash >> 32);
    fixture_seal(f);
    return mur_open(&f->program, f->image, at);
}

/* ---- the assembler ---- */

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

static inline void fixture_instruction(fixture *f, size_t insn, char *rest)
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
        if (*value == 'r')
            words[count + patches++] = fixture_number(value) | fixture_fields[i].word << 6 |
                                       fixture_fields[i].shift << 10 |
                                       fixture_fields[i].width << 15;
        else
            words[fixture_fields[i].word] |= fixture_number(value) << fixture_fields[i].shift;
    }
    item[0] = MUR_INST | patches << 4 | count << 8;
    f->words += 1 + count + patches;
}

static inline void fixture_eval(fixture *f, const char *line)
{
    char op[16], dst[16], a[16], b[16] = "", c[16] = "";
    uint32_t number = 1, w0, w1 = 0;

    sscanf(line, "%15s = %15s %15s %15s %15s", dst, op, a, b, c);
    while (number < MUR_OPS && strcmp(fixture_ops[number], op) != 0)
        number++;
    w0 = MUR_EVAL | number << 4 | fixture_number(dst) << 10 | fixture_number(a) << 16;
    if (number == MUR_OP_TABLE)
        w1 = fixture_number(b);
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
static inline void fixture_entry(fixture *f, uint32_t min_m, uint32_t max_m, const char *text)
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
        } else if (strcmp(name, "FOR") == 0) {
            char third[16] = "";

            sscanf(line, " %*s %*s %*s %15s", third);
            loops[depth++] = f->words;
            f->code[f->words++] = MUR_FOR | fixture_number(first) << 4 |
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

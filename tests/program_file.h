/* program_file.h - the file around a program: sections, sums and header put together for tests. */
#ifndef PROGRAM_FILE_H
#define PROGRAM_FILE_H

#include <string.h>

#include "mur.h"

enum { FIXTURE_WORDS = 4096, FIXTURE_TABLES = 10000, FIXTURE_BYTES = 1 << 17 };

typedef struct hand_program {
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
} hand_program;

static inline void fixture_table(hand_program *f, uint32_t count, const uint32_t *values)
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

static inline void fixture_init(hand_program *f)
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
                          .eos3 = UINT32_MAX,
                          .ffn_parts = 1,
                          .o_parts = 1 };
    f->wgts_bytes = 4096;
    f->parm_bytes = 1024;
    f->tables[1] = f->table_words = 2;
}

static inline uint32_t fixture_place(hand_program *f, mur_place *place, const char *type,
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
static inline void fixture_seal(hand_program *f)
{
    mur_header *header = (mur_header *)(void *)f->image;

    header->table_crc =
        mur_crc32(0, f->image + sizeof(*header), header->sections * sizeof(mur_place));
    header->crc = mur_crc32(0, header, sizeof(*header) - 4);
}

/* Writes the file and opens it. */
static inline mur_status fixture_build(hand_program *f)
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

#endif

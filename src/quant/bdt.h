/* bdt.h - the quantized-model file, docs/FORMAT-bdt.md. */
#ifndef MUC_BDT_H
#define MUC_BDT_H

#include "base/arena.h"
#include "base/bytes.h"

typedef enum muc_bdt_encoding {
    MUC_BDT_BYTES = 0,
    MUC_BDT_F32 = 1, /* float [n][k] */
    MUC_BDT_BD = 2   /* a BlockDialect sequence of n columns of k */
} muc_bdt_encoding;

enum { MUC_BDT_MAX_ENTRIES = 65536, MUC_BDT_MAX_NAME = 255, MUC_BDT_ALIGNMENT = 16 };

typedef struct muc_bdt_entry {
    const char *name;
    muc_bdt_encoding encoding;
    uint32_t n, k; /* 0 for bytes */
    const uint8_t *data;
    uint64_t bytes;
} muc_bdt_entry;

/* A file read. Entries borrow their data from its bytes and own their names. */
typedef struct muc_bdt {
    muc_bdt_entry *entries; /* [count], in file order */
    uint32_t count;
    const muc_bdt_entry **by_name; /* [count] entries in rising order of names */
    muc_arena arena;
} muc_bdt;

/* Checks everything the format asks for, checksums and every block of every sequence included.
 * A mapping's data is aligned as the format promises. On failure there is nothing to release. */
muc_status muc_bdt_read(muc_context *ctx, muc_bytes bytes, muc_bdt *out);
void muc_bdt_free(muc_bdt *bdt);

/* Do the bytes begin as such a file does? */
bool muc_bdt_probe(muc_bytes bytes);

/* NULL if there is none of that name. */
const muc_bdt_entry *muc_bdt_find(const muc_bdt *bdt, const char *name);

/* The writer. add writes the payload at once and keeps the name, not the data; it fails with
 * MUC_USAGE on a name that the format does not allow or that was added before. commit and discard
 * release the writer; only a committed file appears under its path. */
typedef struct muc_bdt_writer muc_bdt_writer;

muc_status muc_bdt_begin(muc_context *ctx, const char *path, muc_bdt_writer **out);
muc_status muc_bdt_add(muc_bdt_writer *writer, const muc_bdt_entry *entry);
muc_status muc_bdt_commit(muc_bdt_writer *writer);
void muc_bdt_discard(muc_bdt_writer *writer);

#endif

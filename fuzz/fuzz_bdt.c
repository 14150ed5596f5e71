/* The quantized-model file. Checksums are set right first, so that mutation reaches what they
 * guard. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "quant/bd_sequence.h"
#include "quant/bdt.h"

enum { ENTRY_BYTES = 40, TRAILER_BYTES = 32 };

static void seal_payload(uint8_t *data, size_t size, uint8_t *row)
{
    uint64_t offset = muc_load_u64(row + 16), bytes = muc_load_u64(row + 24);

    if (offset <= size && bytes <= size - offset)
        muc_store_u32(row + 32, muc_crc32(0, data + offset, (size_t)bytes));
}

static void seal(uint8_t *data, size_t size)
{
    uint8_t *trailer = data + size - TRAILER_BYTES;
    uint64_t table = muc_load_u64(trailer), end = size - TRAILER_BYTES;
    uint32_t count = muc_load_u32(trailer + 8);

    for (uint32_t i = 0; i < count && table <= end; i++) {
        if ((uint64_t)(i + 1) * ENTRY_BYTES > end - table)
            break;
        seal_payload(data, size, data + table + (uint64_t)i * ENTRY_BYTES);
    }
    if (table <= end)
        muc_store_u32(trailer + 16, muc_crc32(0, data + table, (size_t)(end - table)));
    muc_store_u32(trailer + 28, muc_crc32(0, trailer, 28));
}

static void decode(muc_context *ctx, const muc_bdt_entry *entry)
{
    muc_bytes bytes = { entry->data, (size_t)entry->bytes, "fuzz" };
    float *column = malloc(entry->k * sizeof(*column));

    if (!column)
        abort();
    for (uint32_t c = 0; c < entry->n; c++)
        if (muc_bd_decode_column(ctx, bytes, entry->n, entry->k, c, column) != MUC_OK)
            abort();
    free(column);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + 1);
    muc_context *ctx = muc_context_new(1);
    muc_bdt bdt;

    if (!copy || !ctx)
        abort();
    memcpy(copy, data, size);
    if (size >= TRAILER_BYTES)
        seal(copy, size);
    if (muc_bdt_read(ctx, (muc_bytes){ copy, size, "fuzz" }, &bdt) == MUC_OK) {
        for (uint32_t i = 0; i < bdt.count; i++) {
            if (muc_bdt_find(&bdt, bdt.entries[i].name) != &bdt.entries[i])
                abort();
            if (bdt.entries[i].encoding == MUC_BDT_BD)
                decode(ctx, &bdt.entries[i]);
        }
        muc_bdt_free(&bdt);
    }
    muc_context_free(ctx);
    free(copy);
    return 0;
}

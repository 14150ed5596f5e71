/* The quantized-model file. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "quant/bd_sequence.h"
#include "quant/bdt.h"

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
    fuzz_seal_bdt(copy, size);
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

/* BlockDialect's two readers of a block, and the check of a sequence.
 *
 * Input: elements of the block - 1, kind and exponent of the block above, columns and rows of the
 * matrix - 1, then bytes that are read both as a block and as a sequence.
 */
#include <stdlib.h>

#include "fuzz.h"
#include "mur_block.h"
#include "quant/bd_sequence.h"

static void fuzz_block(const uint8_t *data, size_t size, unsigned n, muc_bd_block *above)
{
    uint32_t header = MUR_BLOCK_NO_HEADER;
    float values[MUR_BLOCK_ELEMS], ours[MUR_BLOCK_ELEMS];
    const char *reason;
    muc_bd_block block;
    mur_block device;
    unsigned used =
        muc_bd_read(data, size, n, above->kind == MUC_BD_Z ? NULL : above, &block, &reason);

    if (above->kind != MUC_BD_Z)
        header = (uint32_t)above->term[0].exponent << 7 | (uint32_t)above->kind << 4;
    if (mur_block_parse(data, size, n, header, &device) != used)
        abort();
    if (used == 0)
        return;
    mur_block_values(&device, n, values);
    muc_bd_values(&block, n, ours);
    for (unsigned i = 0; i < n; i++)
        if (values[i] != ours[i])
            abort();
}

static void fuzz_sequence(const uint8_t *data, size_t size, uint32_t n, uint32_t k)
{
    muc_context *ctx = muc_context_new(1);
    muc_bytes bytes = { data, size, "fuzz" };
    float column[256];

    if (muc_bd_check(ctx, bytes, 0, n, k) == MUC_OK)
        for (uint32_t c = 0; c < n; c++)
            if (muc_bd_decode_column(ctx, bytes, n, k, c, column) != MUC_OK)
                abort();
    muc_context_free(ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    muc_bd_block above = { .kind = MUC_BD_Z };

    if (size < 4)
        return 0;
    above.kind = (muc_bd_kind)((data[1] & 7) % MUC_BD_KIND_COUNT);
    above.term[0].exponent = data[1] >> 3;
    fuzz_block(data + 4, size - 4, data[0] % 32 + 1u, &above);
    fuzz_sequence(data + 4, size - 4, data[2] + 1u, data[3] + 1u);
    return 0;
}

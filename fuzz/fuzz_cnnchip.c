/* Program files of the CNN chip, under the checksums that they should have. */
#include <stdlib.h>
#include <string.h>

#include "chip_program_runs.h"
#include "fuzz.h"
#include "targets/cnnchip/isa/chip_program.h"

enum { FILE_CRC = 56, HEADER_CRC = 60 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    muc_context *ctx = muc_context_new(1);
    uint8_t *sealed = malloc(size ? size : 1);

    if (!sealed)
        abort();
    memcpy(sealed, data, size);
    if (size >= MUC_CNNCHIP_HEADER_BYTES) {
        muc_store_u32(sealed + FILE_CRC, muc_crc32(0, sealed + MUC_CNNCHIP_HEADER_BYTES,
                                                   size - MUC_CNNCHIP_HEADER_BYTES));
        muc_store_u32(sealed + HEADER_CRC, muc_crc32(0, sealed, HEADER_CRC));
    }
    fuzz_chip_program(ctx, (muc_bytes){ sealed, size, "fuzz" });
    free(sealed);
    muc_context_free(ctx);
    return 0;
}

/* chip_hex.c - memory images as text that simulators of hardware read. */
#include "targets/cnnchip/emit/chip_hex.h"

#include <stdlib.h>

muc_status muc_cnnchip_write_hex(muc_context *ctx, muc_folder *folder, const char *name,
                                 muc_bytes bytes, uint32_t line_bytes)
{
    static const char digits[] = "0123456789abcdef";
    size_t lines = (bytes.size + line_bytes - 1) / line_bytes, at = 0;
    muc_status status;
    char *text;

    MUC_TRY(MUC_NEW_ARRAY(ctx, name, lines * (2 * (size_t)line_bytes + 1) + 1, &text));
    for (size_t line = 0; line < lines; line++) {
        for (size_t i = line_bytes; i-- > 0;) {
            size_t from = line * line_bytes + i;
            uint8_t byte = from < bytes.size ? bytes.data[from] : 0;

            text[at++] = digits[byte >> 4];
            text[at++] = digits[byte & 15];
        }
        text[at++] = '\n';
    }
    status = muc_folder_write(folder, name, text, at);
    free(text);
    return status;
}

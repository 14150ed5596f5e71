/* chip_hex.h - memory images as text that simulators of hardware read. */
#ifndef MUC_CNNCHIP_HEX_H
#define MUC_CNNCHIP_HEX_H

#include "base/bytes.h"
#include "base/output_folder.h"

/* Bytes as text for $readmemh, line_bytes a line, the lowest address in its last digits; the last
 * line is filled with 0. */
enum { MUC_CNNCHIP_MOST_HEX_BITS = 8192 };
muc_status muc_cnnchip_write_hex(muc_context *ctx, muc_folder *folder, const char *name,
                                 muc_bytes bytes, uint32_t line_bytes);

#endif

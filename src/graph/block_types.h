/* block_types.h - element types of several elements a block, as GGUF stores them, to float32. */
#ifndef MUC_BLOCK_TYPES_H
#define MUC_BLOCK_TYPES_H

#include "graph/dtype.h"

enum { MUC_BLOCK_MOST = 256 }; /* elements of the largest block */

/* One block of a type of more than one element a block: reads its block_bytes (of no alignment),
 * writes its block_elements, the same bits as ggml's dequantize_row_*. */
void muc_block_to_f32(muc_dtype dtype, const uint8_t *block, float *out);

#endif

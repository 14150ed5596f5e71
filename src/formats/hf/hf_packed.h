/* hf_packed.h - matrices in few bits as GPTQ, AWQ, compressed-tensors and BitNet store them in
 * Hugging Face folders.
 *
 * An element is (code - zero) * scale; the columns of a row in groups have zero and scale of their
 * own. What is opened holds the same numbers: i8 with a scale a row where a row is one group, else
 * blocks q4_0 or q8_0 where 32 columns share a 16-bit scale, else f32.
 */
#ifndef MUC_HF_PACKED_H
#define MUC_HF_PACKED_H

#include <jansson.h>

#include "formats/format.h"

typedef enum muc_hf_packing {
    MUC_HF_GPTQ,       /* NAME.qweight, .qzeros, .scales, .g_idx: words of codes down the columns */
    MUC_HF_AWQ,        /* NAME.qweight, .qzeros, .scales: words of codes along the rows, by turns */
    MUC_HF_COMPRESSED, /* NAME.weight_packed and what describes it, or NAME.weight in i8 */
    MUC_HF_BITNET,     /* NAME.weight: bytes of four rows' codes, NAME.weight_scale */
} muc_hf_packing;

/* What config.json says of it. */
struct muc_hf_packed {
    muc_hf_packing packing;
    uint32_t bits;         /* 1 << b for each number b of bits that a code may have */
    uint32_t group;        /* columns of a group; 0: all, or what the scales' shape says */
    bool zeros_less_one;   /* GPTQ's first version */
    bool inverse_scales;   /* BitNet: elements are divided by the scale */
    bool rounded_by_users; /* BitNet: the file holds what is rounded to -1, 0, 1 when it is used */
};

/* Of "quantization_config" in the file of this name, whose method is not muc's own: fills
 * checkpoint->packed. A method or variant that is not known is MUC_UNSUPPORTED by name. */
muc_status muc_hf_read_packing(muc_context *ctx, const char *name, const json_t *object,
                               muc_checkpoint *checkpoint);

/* Of a checkpoint with packed: matrices become what this header says under the names that they
 * would have unpacked; what lay beside them goes, also biases of zeros that no Llama has. Fails
 * with MUC_MALFORMED where shapes do not belong together. */
muc_status muc_hf_unpack_others(muc_context *ctx, muc_checkpoint *checkpoint);

#endif

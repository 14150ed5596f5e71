/* muc/compress.h - a checkpoint becomes a smaller one. */
#ifndef MUC_COMPRESS_H
#define MUC_COMPRESS_H

#include "muc/model.h"

MUC_API_BEGIN

/* All-zero is the default. */
typedef struct muc_compress_options {
    const char *weights;   /* "int8", "int4", "int2" or "cb2"; NULL: the most that fits flash_bytes,
                              int2 where no budget is given */
    bool pure;             /* int2: in all matrices; otherwise down projections, the first layers'
                              first, take int4 as far as 2.5 bits a weight, the embedding counted, allow */
    const char *embedding; /* the same of the embedding and the head; NULL: int4 with weights of
                              int4 or int2, else int8; with a budget, the most that fits */
    const char *calibration; /* texts for error feedback: a file, "auto" (what the model writes
                                itself) or "none"; NULL: data, or else auto */
    const char *data;        /* a text file to train on; NULL: what the model writes itself */
    const char *teacher;  /* a checkpoint with the same tokens, whose predictions are learned; NULL:
                             the model as it is given */
    bool cases;           /* data has cases as muc_eval_task has them */
    uint64_t steps;       /* of training; 0: none */
    double prune;         /* share of heads and of neurons to remove first, in a training of as
                             many steps, below 1; 0: none */
    uint64_t batch;       /* most tokens of a step; 0: 2048 */
    double rate;          /* greatest rate of learning; 0: 0.001 */
    uint64_t seed;        /* of the order of the data */
    uint64_t flash_bytes; /* most bytes of flash of its program for microcontrollers; 0: any */
    const char
        *machine; /* that flash_bytes are of, as muc_compile has it; NULL: the target's own */
    const char *text, *task; /* files to measure every stage on; NULL: not on one */
    uint32_t limit;          /* most documents, or cases; 0: all */
    uint32_t window;         /* most tokens of a document, or of a piece that is trained on; 0: the
                                context */
} muc_compress_options;

/* Writes a Hugging Face folder (docs/COMPRESSION.md) that every other function opens; with prune
 * also the pruned model in float32, out_path with ".pruned" behind it. Keys: folder,
 * weights, finer_matrices (that have int4 where weights say int2), embedding,
 * matrix_bits_per_weight (but for the embedding and the head), snr_db; with a budget flash_bytes,
 * flash_budget, sram_bytes; and the table "stages" (stage, bytes, bits_per_weight, and as measured
 * perplexity, exact, cases). Fails with MUC_NOFIT, before anything is written, if the program
 * exceeds its budget; the message tells by how much. */
muc_status muc_compress(muc_context *ctx, const muc_model *model,
                        const muc_compress_options *options, const char *out_path,
                        muc_report **out);

MUC_API_END

#endif

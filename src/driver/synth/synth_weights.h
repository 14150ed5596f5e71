/* synth_weights.h - random weights with the statistics of trained ones, row by row. */
#ifndef MUC_DRIVER_SYNTH_WEIGHTS_H
#define MUC_DRIVER_SYNTH_WEIGHTS_H

#include "formats/format.h"

/* A tensor to be made. */
typedef struct muc_synth_tensor {
    const char *name;       /* as it is stored */
    unsigned id;            /* of llama_tensors.def */
    uint32_t layer, layers; /* 0 for one that exists once */
    uint32_t rows, columns; /* a vector is one row */
    bool is_vector;
    bool less_one;     /* a gain is stored less one */
    uint64_t seed;     /* of this tensor */
    uint64_t channels; /* seed of which channels stand out: the same for all tensors of a model */
} muc_synth_tensor;

/* A seed made of another and of a number. */
uint64_t muc_synth_seed(uint64_t seed, uint64_t number);

/* One row, as BF16: out[columns]. The same arguments give the same row, on every machine. Rows have
 * different scales and tails heavier than the normal distribution's; a few channels of what layers
 * pass on are written strongly, have large gains in norms, and are read weakly. */
void muc_synth_row(const muc_synth_tensor *tensor, uint32_t row, uint16_t *out);

#endif

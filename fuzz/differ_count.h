/* differ_count.h - how many of the networks had what: operators, types, layouts, scales, lengths.
 *
 * Networks count that are distinct by structure and have 5 to 60 nodes.
 */
#ifndef FUZZ_DIFFER_COUNT_H
#define FUZZ_DIFFER_COUNT_H

#include "differ.h"

/* FUZZ_TRAIT(id, "name"): what a network may have besides operators, types and a style */
#define FUZZ_TRAITS(X) \
    X(FIRST, "layout: channels first") \
    X(LAST, "layout: channels last") \
    X(OPEN_0, "dimension 0 decided by a run") \
    X(OPEN_1, "dimension 1 decided by a run") \
    X(OPEN_2, "dimension 2 decided by a run") \
    X(OPEN_3, "dimension 3 decided by a run") \
    X(TWO_LENGTHS, "two lengths of a run") \
    X(STATE, "states") \
    X(WHOLE_I8, "i8 of one scale") \
    X(CHANNELS_I8, "i8 of a scale a channel") \
    X(WHOLE_U8, "u8 of one scale") \
    X(CHANNELS_U8, "u8 of a scale a channel") \
    X(WHOLE_I16, "i16 of one scale") \
    X(ROWS, "f32 times rows of i8") \
    X(QUANT, "--quant int8 of a network") \
    X(HYBRID, "--quant int8 of a decoder") \
    X(BLOCKS, "--quant bd4 of a decoder") \
    X(CHIP_FP32, "the CNN chip, fp32") \
    X(CHIP_FP16, "the CNN chip, fp16") \
    X(CHIP_INT8, "the CNN chip, int8")

enum {
#define FUZZ_TRAIT_ENUM(id, name) FUZZ_HAS_##id,
    FUZZ_TRAITS(FUZZ_TRAIT_ENUM)
#undef FUZZ_TRAIT_ENUM
        FUZZ_PLAIN_TRAITS,
    FUZZ_OPS = FUZZ_PLAIN_TRAITS,
    FUZZ_DTYPES = FUZZ_OPS + MUC_OP_COUNT,
    FUZZ_STYLES = FUZZ_DTYPES + MUC_DTYPE_COUNT,
    FUZZ_TRAIT_COUNT = FUZZ_STYLES + FUZZ_STYLE_COUNT,
    FUZZ_MOST_HASHES = 1 << 21, /* a power of two */
};

/* What one network has. */
typedef struct fuzz_traits {
    bool has[FUZZ_TRAIT_COUNT], counts; /* counts: it is new, and neither short nor long */
} fuzz_traits;

/* Of all networks; zeroed at first. */
typedef struct fuzz_counts {
    uint64_t networks, distinct, nodes, lengths[7];
    uint64_t drawn[FUZZ_TRAIT_COUNT], compared[FUZZ_TRAIT_COUNT];
    uint64_t hashes[FUZZ_MOST_HASHES]; /* of structures: where they hash to, or behind */
} fuzz_counts;

/* Counts a network as drawn. */
void fuzz_count_drawn(fuzz_counts *counts, const muc_graph *graph, fuzz_style style,
                      const fuzz_how *how, fuzz_traits *out);
/* And as compared: the code ran. */
void fuzz_count_compared(fuzz_counts *counts, const fuzz_traits *traits);
/* The table; false if of 100,000 networks or more less than 500 of 100,000 had something of it. */
bool fuzz_print_counts(const fuzz_counts *counts);

#endif

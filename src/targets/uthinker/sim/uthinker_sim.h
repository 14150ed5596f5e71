/* uthinker_sim.h - the functional simulator of µThinker, behind the runtime's HAL.
 *
 * Written from SPEC.md sections 1 to 4. Freestanding C99 like the runtime, so that the same source
 * runs on the host and in a device image: memory is the caller's, no allocation, no recursion,
 * stack under 2 KB, all work memory inside mur_sim. Little-endian machines only.
 */
#ifndef UTHINKER_SIM_H
#define UTHINKER_SIM_H

#include "mur.h"
#include "mur_block.h"

/* When a submitted instruction takes effect. A program without races gives the same bytes under
 * all three. */
enum mur_sim_policy {
    MUR_SIM_EAGER, /* at submission */
    MUR_SIM_LAZY,  /* as late as can be: its engine's completion is asked for, or its queue is full
                    */
    MUR_SIM_RANDOM /* any time between the two; a full queue may also ask to be called again */
};

enum {
    MUR_SIM_QUEUE = 8, /* instructions an engine's queue holds */
    MUR_SIM_ROWS = 32, /* left rows that MM decodes at a time; a tile's worth of K each */
    MUR_SIM_BLOCKS = MUR_MOST_TILE_ROWS / MUR_BLOCK_ELEMS, /* of a tile's column */
    MUR_SIM_MOST_TOKENS = 64,                              /* of a tile */
    MUR_SIM_OPCODES = 64,
    MUR_SIM_VIEWS = 8 /* transfers to a buffer that may wait for their copy */
};

/* The machine's memory, borrowed. Buffers I0..W1 at buffer[0..3], GB (of binary32) apart. */
typedef struct mur_sim_memory {
    uint8_t *buffer[MUR_GB];
    float *gb;
    uint32_t buffer_bytes[MUR_BUFFERS];
    const uint8_t *wgts, *parm;
    uint8_t *kv, *io;
    uint32_t region_bytes[MUR_REGIONS];
    uint32_t isa; /* of MACH, which says how large tiles are; 0: as the paper's */
} mur_sim_memory;

/* Why the machine stopped; reason is NULL while it has not. */
typedef struct mur_sim_fault {
    const char *reason;
    enum mur_engine engine;
    uint32_t words[MUR_MAX_WORDS];
} mur_sim_fault;

typedef struct mur_sim_queue {
    uint32_t words[MUR_SIM_QUEUE][MUR_MAX_WORDS];
    uint32_t first, count;
} mur_sim_queue;

/* A block's terms widened to what multiplies fastest. */
typedef struct mur_sim_block {
    uint32_t terms;
    uint32_t exponent[MUR_BLOCK_TERMS];
    int16_t m[MUR_BLOCK_TERMS][MUR_BLOCK_ELEMS];
} mur_sim_block;

/* The product of an MM: left times right, on top of what out holds unless it is fresh. */
typedef struct mur_sim_product {
    uint32_t words[MUR_MAX_WORDS];    /* the instruction */
    const uint8_t *left;              /* rows of slots, left_pitch bytes apart */
    const uint8_t *right, *right_end; /* tiles */
    const uint8_t *right_readable;    /* what lies behind them may be read up to here */
    float *out;                       /* rows of cols, out_pitch words apart */
    uint32_t rows, cols, k, terms;    /* terms of the left operand */
    uint32_t left_pitch, out_pitch;
    uint32_t tile_rows, tile_columns;
    uint32_t fresh; /* is out to begin with zeros? */
    uint32_t lasts; /* right is in region WGTS, and stays there */
} mur_sim_product;

/* An SMAX that sees all scores: rows of `tokens`, and of 2, k and `pitch` bytes in state, out and
 * slots, none of which overlap. */
typedef struct mur_sim_softmax {
    const float *scores;
    float *state, *out;
    uint8_t *slots;
    uint32_t rows, tokens, k, terms, pitch;
    uint32_t first;
    float scale;
} mur_sim_softmax;

/* A QPACK: rows of cols, pitch words apart, the slots of each column to out. */
typedef struct mur_sim_packing {
    const float *values;
    uint8_t *out;
    uint32_t rows, cols, pitch, terms;
} mur_sim_packing;

enum mur_sim_product_result {
    MUR_SIM_PRODUCT_LEFT, /* nothing was done; the simulator multiplies itself */
    MUR_SIM_PRODUCT_DONE,
    MUR_SIM_PRODUCT_KEPT,     /* it will be done when the simulator settles */
    MUR_SIM_PRODUCT_FULL,     /* nothing was done; the simulator is to settle, and ask again */
    MUR_SIM_PRODUCT_MALFORMED /* a block is; part of out may have been written */
};

/* Bytes of a buffer that still lie where they were loaded from. */
typedef struct mur_sim_view {
    uint32_t addr, len;
    uint32_t region;
    const uint8_t *from, *readable; /* up to where bytes may be read */
    uint32_t cut;                   /* were bytes before it written over its own? */
} mur_sim_view;

typedef struct mur_sim_range {
    uint32_t addr, len;
} mur_sim_range;

/* Does lines first..past-1 of an instruction. */
typedef void mur_sim_part(void *arg, uint32_t first, uint32_t past);

typedef struct mur_sim {
    mur_sim_memory memory;
    enum mur_sim_policy policy;
    uint32_t random; /* state of the random policy, not 0 */

    /* Called after each instruction; buffer GB may be read once mur_sim_do_kept has run, all memory
     * once the simulator has settled. NULL: not called. */
    void (*probe)(void *arg, struct mur_sim *sim, enum mur_engine engine, const uint32_t *words);
    void *probe_arg;

    /* A faster form of MM's product, which gives the same bits. NULL: there is none. settle does
     * those that were kept; in the order of their outputs it is as if each had been done at once.
     * False: *malformed is. NULL: none is kept, and no buffer lies elsewhere than in itself. */
    enum mur_sim_product_result (*product)(void *arg, const mur_sim_product *op);
    int (*settle)(void *arg, mur_sim_product *malformed);
    /* Keeps an SMAX between products that are kept. 0: those are to be done before it. NULL: none
     * is kept. */
    int (*keep_smax)(void *arg, const struct mur_sim *sim, const mur_sim_softmax *smax);
    /* Keeps a QPACK in the same way, with products that read what it packs. */
    int (*keep_packing)(void *arg, const struct mur_sim *sim, const mur_sim_packing *packing);
    /* Keeps another instruction, to be done in its turn when what was kept before it is done. 0:
     * that is to be done first. */
    int (*put_off)(void *arg, struct mur_sim *sim, enum mur_engine engine, const uint32_t *words);
    void *product_arg;
    int kept; /* is any? */
    mur_sim_view view[MUR_GB][MUR_SIM_VIEWS];
    uint32_t views[MUR_GB];
    mur_sim_range beside[MUR_GB]; /* bytes written where a view ends or begins; len 0: none */

    /* mur_block_encode, or what does the same faster */
    uint32_t (*encode)(const float *x, uint32_t n, uint32_t terms, uint8_t *slot);

    /* x[i] = mur_sim_exp(x[i]), i < n */
    void (*exps)(float *x, uint32_t n);

    /* Does all of `count` lines of `elements` each, in any order or at once. */
    void (*each)(void *arg, uint32_t count, uint32_t elements, mur_sim_part *part, void *part_arg);
    void *each_arg;

    mur_sim_fault fault;
    uint32_t completed[MUR_ENGINES]; /* instructions, modulo 2^32 */
    uint64_t executed[MUR_SIM_OPCODES];
    uint64_t loaded_bytes[MUR_REGIONS], stored_bytes[MUR_REGIONS];
    uint64_t macs; /* rows x columns x K of every MM */

    mur_sim_queue queue[MUR_CPU]; /* DMA and ACC; the CPU has none */
    mur_sim_block left[MUR_SIM_ROWS][MUR_SIM_BLOCKS];
} mur_sim;

/* Starts sim on memory, with zero counters, no fault, empty queues, no probe and the
 * runtime's own product, encoder and exponentials. seed
 * chooses the order of MUR_SIM_RANDOM and is not used otherwise. Buffers and regions keep what they
 * hold. */
void mur_sim_init(mur_sim *sim, const mur_sim_memory *memory, enum mur_sim_policy policy,
                  uint32_t seed);

/* The HAL that runs on sim, which must outlive it. After a fault nothing executes: submissions
 * return MUR_E_FAULT, and all that was queued counts as completed, so that nobody waits for it;
 * hence whoever runs a program looks at sim->fault.reason at its end. */
mur_hal mur_sim_hal(mur_sim *sim);

/* Does the products that are kept, so that buffer GB is as the instructions so far leave it.
 * Returns 0 if the machine has stopped. */
int mur_sim_do_kept(mur_sim *sim);

/* Finishes what has been put off: buffers and regions are then as the instructions so far leave
 * them. The machine may stop at one of those. */
void mur_sim_settle(mur_sim *sim);

/* Says in op where the right operand in `len` bytes of a buffer lies, until the next instruction.
 * Where the simulator settles later, it ends with what was last loaded: a product that takes more
 * is malformed. */
void mur_sim_operand(mur_sim *sim, uint32_t buffer, uint32_t addr, uint32_t len,
                     mur_sim_product *op);

/* The arithmetic of SPEC.md section 3. mur_sim_exp: x <= 0, or a NaN, which gives +0. */
float mur_sim_exp(float x);
void mur_sim_exps(float *x, uint32_t n); /* of each of n */

/* The runtime's own `each`: all in one part. */
void mur_sim_each(void *arg, uint32_t count, uint32_t elements, mur_sim_part *part, void *part_arg);
float mur_sim_sqrt(float x);

#endif

/* mcu_program.h - a network as calls of C functions on buffers: between lowering and emission.
 *
 * Values are what functions read and write: one for each tensor that matters at run time, and one
 * for each piece of scratch memory. Steps run in order; each is one call. Lowering writes a step's
 * descriptors and functions as text at once, since they do not depend on where buffers lie; only
 * the call's arguments wait for the memory plan. All is owned by the program's arena.
 */
#ifndef MUC_MCU_PROGRAM_H
#define MUC_MCU_PROGRAM_H

#include "graph/graph.h"
#include "plan/place.h"
#include "targets/mcu/machines/mcu_machine.h"

typedef enum muc_mcu_value_kind {
    MUC_MCU_CONST,      /* in flash */
    MUC_MCU_INPUT,      /* in the arena, filled by the caller; may be overwritten in a run */
    MUC_MCU_STATE_DATA, /* in the arena, kept from run to run */
    MUC_MCU_ACTIVATION, /* in the arena */
    MUC_MCU_SCRATCH,    /* in the arena, for one step */
} muc_mcu_value_kind;

typedef struct muc_mcu_value {
    muc_mcu_value_kind kind;
    const char *name;         /* an identifier of C, unique */
    const muc_tensor *tensor; /* NULL: scratch, or a packed constant */
    uint64_t bytes;           /* the most there can be */
    uint32_t view_of; /* the value whose bytes these are, from view_offset on, or MUC_NO_ID */
    uint64_t view_offset;
    const muc_tensor *layout; /* a tensor with this one's strides, where it is not packed, or that
                               * it is a transpose of, which only a product reads; or NULL */
    const uint8_t *data;      /* of a constant; borrowed */
    bool is_output;           /* of the graph */
    bool used;                /* by a call */
    bool is_small;            /* lies in the memory for tiles alone, between steps of a chain */
    /* results of planning; of values that are not a view of another */
    uint32_t first, last; /* steps in which it lives */
    uint64_t address;     /* in the arena */
} muc_mcu_value;

typedef enum muc_mcu_argument_kind {
    MUC_MCU_TEXT,    /* an expression of C */
    MUC_MCU_READ,    /* a value's address, const */
    MUC_MCU_WRITE,   /* a value's address */
    MUC_MCU_WORKING, /* a scratch value's address, as void */
} muc_mcu_argument_kind;

typedef struct muc_mcu_argument {
    muc_mcu_argument_kind kind;
    const char *text; /* of an address: what is added to it in bytes, an expression, or NULL */
    uint32_t value;
    muc_dtype dtype; /* what the address points to */
} muc_mcu_argument;

/* The bytes of `in`, if this step is the last to need them, may be shared with `out`, as long as
 * address(in) >= address(out) + lead. */
typedef struct muc_mcu_overlap {
    uint32_t in, out; /* values */
    int64_t lead;
} muc_mcu_overlap;

enum { MUC_MCU_MOST_OVERLAPS = 4 };

/* How a step works in tiles of the small memory, and what that moves. */
typedef struct muc_mcu_step_tiles {
    uint32_t rows, channels;         /* of the result */
    uint32_t row_tile, channel_tile; /* of a tile; the last may be smaller */
    uint32_t depth, depth_tile;      /* of what is summed over; 0 where that is not cut */
    uint32_t count, cores;
    bool channels_outer, double_buffered;
    uint64_t in_bytes, out_bytes; /* moved into the small memory, and out of it, in all */
    uint64_t constant_bytes;      /* of in_bytes, those that come from the memory for weights */
    uint64_t small_bytes;         /* all buffers */
    uint64_t compute_cycles, dma_cycles, cycles; /* as the plan counts them; of a chain's steps that
                                                  * of the chain stands with its first */
} muc_mcu_step_tiles;

typedef struct muc_mcu_layer muc_mcu_layer;
typedef struct muc_mcu_tiled muc_mcu_tiled;
typedef struct muc_mcu_chain muc_mcu_chain;

/* What a step wants of its data (run_checks.h). */
typedef struct muc_mcu_check {
    const char *function;      /* of C, in the step's text: 0 if it has not got it */
    const char *lengths;       /* ", N": the arguments after the first */
    muc_mcu_argument argument; /* the data */
    const muc_tensor *tensor;  /* the same */
} muc_mcu_check;

typedef struct muc_mcu_step {
    const char *name;     /* an identifier of C, unique: "conv_3" */
    const muc_node *node; /* NULL: a copy of an input to an output */
    const char *text;     /* what stands before the run function, or "" */
    const char *function;
    muc_mcu_argument *arguments;
    uint32_t argument_count;
    size_t argument_capacity;
    muc_mcu_overlap overlaps[MUC_MCU_MOST_OVERLAPS];
    uint32_t overlap_count;
    muc_mcu_check *checks;
    uint32_t check_count;
    size_t check_capacity;
    uint64_t macs;
    uint64_t packed_bytes;           /* of constants that its descriptor points to */
    const muc_mcu_step_tiles *tiles; /* NULL: it works where its data lie */
    muc_mcu_tiled *tiled;            /* tiles.h: how; NULL likewise */
    const char *note;                /* why, where it could work in tiles; or NULL */
    const muc_mcu_layer *layer; /* int8_layer.h: what it computes, if parts of it can be computed
                                 * alone; or NULL */
} muc_mcu_step;

/* Steps first..end-1 run `turns` times, one turn a patch (patch_program.h); none if turns is 0. The
 * counter is called `patch`. What they read of steps before and make for steps after lives in all
 * turns. */
typedef struct muc_mcu_loop {
    uint32_t first, end, turns;
    uint32_t grid_rows, grid_columns;
    uint64_t plain_peak; /* of the plan without it */
    /* multiply-accumulates of a run that would not be without it; below 0 where patches leave out
     * more, since nothing reads it, than they compute twice */
    int64_t more_macs;
} muc_mcu_loop;

/* Values that the user fills or reads. */
typedef struct muc_mcu_ports {
    uint32_t *values;
    uint32_t count;
} muc_mcu_ports;

/* Every value that is placed lies at a multiple of so many bytes. */
enum { MUC_MCU_ALIGNMENT = 16 };
enum { MUC_MCU_LM_ENDS = 3 };

/* A language model's own facts. All pointers are borrowed. The program's graph has the tensor input
 * "tokens" i32 [m], the expression inputs pos and m, and one output, the logits f32 [1,
 * vocabulary]. */
typedef struct muc_mcu_lm {
    const uint8_t *tokenizer; /* the runtime's compiled form (mur_tokenizer.h) */
    size_t tokenizer_bytes;
    uint32_t ends[MUC_MCU_LM_ENDS]; /* tokens that end a text; UINT32_MAX: none */
    const char *prompt;             /* a text with "{prompt}" in it, or NULL */
    uint32_t context, vocabulary, most_tokens;
    bool blocks; /* matrices are BlockDialect's */
    bool shapes; /* constants have no data: the plan alone is wanted, no code */
    /* where a plan that does not fit leaves the context whose caches may leave room enough, or 0 if
     * none does; or NULL */
    uint32_t *shorter;
} muc_mcu_lm;

/* The calibration record of an export, as a file of the folder. */
typedef struct muc_mcu_record {
    const char *file;
    uint32_t pos, m; /* the export's lengths */
    const int32_t *data;
} muc_mcu_record;

/* Several exports that became one program (passes/unify/unify.h). All is borrowed. */
typedef struct muc_mcu_exports {
    const char *const *arrays; /* names of an export's inputs, caches too, in its order */
    uint32_t array_count;
    const muc_mcu_record *records;
    uint32_t record_count;
    size_t record_bytes;
} muc_mcu_exports;

/* A kind of package: a row of emit/packages.def. */
typedef struct muc_mcu_package {
    const char *name;
    const char *code, *headers; /* what paths of sources and of the runtime's headers begin with */
} muc_mcu_package;

/* Some elements of an f32 output, evenly spread. */
enum { MUC_MCU_SAMPLES = 32 };
typedef struct muc_mcu_samples {
    uint32_t count, stride; /* count 0: the output is not f32 */
    float values[MUC_MCU_SAMPLES], tolerance;
} muc_mcu_samples;

/* What the reference makes of a graph, as it was compiled, on muc_made_arrays. */
typedef struct muc_mcu_golden {
    muc_mcu_samples *samples; /* for each output; NULL: the program has no self test */
    uint32_t checksum;        /* FNV-1a of the bytes of the other outputs, in order */
    bool zero_indices;        /* of 32-bit integers and wider ones: all are 0, not 0 or 1 */
} muc_mcu_golden;

typedef struct muc_mcu_front_end muc_mcu_front_end; /* emit/emit_front_end.h */

typedef struct muc_mcu_program {
    muc_arena arena;
    const char *name; /* an identifier of C, in small letters */
    const muc_graph *graph;
    const muc_mcu_machine *machine;
    const muc_mcu_lm *lm;               /* of a language model, or NULL */
    const muc_mcu_front_end *front_end; /* of an audio front end, which has no graph, or NULL */
    const muc_mcu_package *package;
    /* set by the caller before it writes, or NULL and 0 */
    const muc_mcu_exports *exports;
    const char *options;  /* of the command line, that made the graph what it is */
    uint32_t fingerprint; /* of the graph */
    muc_mcu_golden golden;
    muc_mcu_value *values;
    uint32_t value_count;
    size_t value_capacity;
    uint32_t *value_of;            /* [tensor_count]: MUC_NO_ID where there is none */
    muc_mcu_ports inputs, outputs; /* in the graph's order, each value once */
    muc_mcu_step *steps;
    uint32_t step_count;
    size_t step_capacity;
    muc_mcu_loop loop;
    muc_mcu_chain *chains; /* chains.h; by rising steps */
    uint32_t chain_count;
    size_t chain_capacity;
    const char **sources; /* files of runtime/ to be compiled, ascending */
    uint32_t source_count;
    size_t source_capacity;
    bool weights_file;    /* constants are not arrays of C, however few they are */
    bool uses_f32;        /* calls kernels of mur_nn_f32.h */
    bool uses_f16;        /* calls kernels of mur_nn_f16.h */
    bool uses_decoder;    /* calls functions of mur_decoder.h */
    bool tiles_decoder;   /* calls functions of mur_tiles_decoder.h */
    bool uses_recurrent;  /* calls mur_recurrent_f32_run */
    uint64_t table_bytes; /* of numbers in steps' text */
    /* of a language model: elements of its matrices, one that is used twice counted once, and their
     * bytes in flash, with scales */
    uint64_t weights, weight_bytes;
    uint64_t arguments; /* bit i: the run has expression input i as an argument */
    /* the memory plan; names borrowed from values */
    muc_plan plan;
    muc_plan tiles; /* of the small memory; no buffers where no step works in tiles */
    size_t tiles_capacity;
} muc_mcu_program;

/* multiply-accumulates of a run */
uint64_t muc_mcu_macs(const muc_mcu_program *program);

/* A view shares the bytes of another value. Returns the value that owns them (value itself, if it
 * is not a view), and sets *offset to where value begins in it. */
uint32_t muc_mcu_root(const muc_mcu_program *program, uint32_t value, uint64_t *offset);

muc_status muc_mcu_add_value(muc_context *ctx, muc_mcu_program *program, const muc_mcu_value *value,
                             uint32_t *out);
/* A step of this name with the number of the step after it. The pointer is valid until the next. */
muc_status muc_mcu_add_step(muc_context *ctx, muc_mcu_program *program, const muc_node *node,
                            muc_mcu_step **out);
muc_status muc_mcu_add_argument(muc_context *ctx, muc_mcu_program *program, muc_mcu_step *step,
                                const muc_mcu_argument *argument);
/* A file of runtime/, as "kernels/ref/mur_ref_conv.c"; once is enough. */
muc_status muc_mcu_add_source(muc_context *ctx, muc_mcu_program *program, const char *path);

/* Copies text into the arena as an identifier of C: other characters become '_'. At most 40
 * characters are kept. */
muc_status muc_mcu_identifier(muc_context *ctx, muc_arena *arena, const char *text,
                              const char **out);

#endif

/* chip_lower.h - a network as steps of the chip: between the graph and the instructions.
 *
 * Storages are pieces of FRAME: channels of one size with a border around each. Values say where a
 * tensor of the graph lies: a view into a storage, and in which order the graph counts its
 * elements. Lowering goes over the nodes once and leaves steps, each of which becomes an
 * instruction, or several where its block exceeds the PEs; only then are borders and lifetimes
 * known, FRAME is planned, and instructions are written. All is owned by the lowering's arena.
 */
#ifndef MUC_CNNCHIP_LOWER_H
#define MUC_CNNCHIP_LOWER_H

#include "graph/graph.h"
#include "plan/place.h"
#include "targets/cnnchip/machines/chip_machine.h"
#include "targets/cnnchip/isa/chip_program.h"
#include "targets/cnnchip/sim/chip_sim.h"

typedef struct muc_cnnchip_border {
    uint32_t t, b, l, r;
    uint32_t value; /* one element's bits; counts if any side is not 0 */
} muc_cnnchip_border;

typedef struct muc_cnnchip_storage {
    const char *name;
    uint32_t c, h, w; /* without the border */
    muc_cnnchip_border border;
    bool plain;       /* elements follow each other without a gap: there may be no border */
    uint32_t port;    /* the graph's input that is put here before a run, or MUC_NO_ID */
    uint32_t port_as; /* the tensor whose scale and order it has here */
    uint32_t parent;  /* MUC_NO_ID, or the storage of which this is a part, from (c0, y0, x0) on */
    uint32_t c0, y0, x0;
    uint32_t alias; /* MUC_NO_ID, or the plain one whose bytes these are in another shape */
    uint64_t alias_elements; /* from its first on */
    uint32_t first, last;    /* steps in which it lives; first > last: never */
    uint64_t address;        /* of its lowest byte, border included */
} muc_cnnchip_storage;

/* Of a storage's elements without border; y0 and x0 may reach into the border. */
typedef struct muc_cnnchip_view {
    uint32_t storage;
    uint32_t c0;
    int32_t y0, x0;
    uint32_t c, h, w;
} muc_cnnchip_view;

/* A tensor of the graph. */
typedef struct muc_cnnchip_value {
    bool on_chip, on_host; /* where it can be had; of the first, the rest counts */
    muc_cnnchip_view view;
    bool last;   /* the graph counts elements as (y, x, c), else as (c, y, x) */
    float scale; /* int8 only, else 1 and 0 */
    int32_t zero;
    uint32_t layer; /* whose result it is; MUC_NO_ID: an input's, or of no single layer */
    uint32_t maker; /* host step that makes it, or MUC_NO_ID */
} muc_cnnchip_value;

/* Weights as the graph has them: element (f, i, u, v) is data[base + f*by[0] + .. + v*by[3]]. */
typedef struct muc_cnnchip_weights {
    const uint8_t *data; /* of dtype F32 or I8 */
    muc_dtype dtype;
    int64_t base, by[4];
} muc_cnnchip_weights;

typedef enum muc_cnnchip_step_kind {
    MUC_CNNCHIP_STEP_CONV,
    MUC_CNNCHIP_STEP_POOL,
    MUC_CNNCHIP_STEP_DENSE,
    MUC_CNNCHIP_STEP_ADD,
    MUC_CNNCHIP_STEP_HOST
} muc_cnnchip_step_kind;

typedef struct muc_cnnchip_step {
    muc_cnnchip_step_kind kind;
    uint32_t layer;
    muc_cnnchip_view in, in1, out; /* in1: of an ADD of two operands */
    bool two;
    muc_cnnchip_weights second; /* of an ADD: in1 is a constant [c][h][w]; data NULL: it is not */
    uint32_t kernel[2], dilation[2], stride[2], groups;
    uint32_t step[2]; /* of the result in out, whose h and w count results */
    bool border;      /* writes the border around out, if there is one */
    bool final;       /* what a DSP stage or an activation behind the layer may be added to */
    muc_cnnchip_weights weights;
    float *v1, *v2; /* [out.c], or NULL: no DSP */
    uint32_t *v3;   /* [out.c]: binary32, of int8 sums int32 */
    bool act;
    float act_from, act_slope;
    float factor, factor1;
    int32_t zero_src, zero_src1, zero_out;
    uint32_t host; /* of a host step: its number, from 1 */
    bool split;    /* least_cycles is not just cycles */
    /* results: instructions, first and behind the last; bytes of filter image and parameters;
     * cycles of the instructions, and what no way to split takes fewer than */
    uint32_t first_insn, end_insn;
    uint64_t cycles, least_cycles;
    uint64_t weights_at, weights_bytes, dsp_at;
} muc_cnnchip_step;

/* A node of the graph on the chip, with those that were fused into it. */
typedef struct muc_cnnchip_layer {
    uint32_t tensor; /* its result */
    muc_op op;       /* the first node's */
    uint32_t steps;  /* how many */
} muc_cnnchip_layer;

/* Consecutive nodes that the master computes. */
typedef struct muc_cnnchip_host {
    uint32_t *nodes;
    uint32_t node_count;
    size_t capacity;
    uint32_t step;
} muc_cnnchip_host;

typedef struct muc_cnnchip_lowering {
    muc_context *ctx;
    muc_arena arena;
    const muc_graph *graph;
    const muc_cnnchip_machine *machine;
    bool is_int8;
    muc_cnnchip_value *values; /* [tensor_count] */
    uint32_t *readers;         /* [tensor_count]: inputs of nodes, and outputs of the graph */
    muc_cnnchip_storage *storages;
    uint32_t storage_count;
    size_t storage_capacity;
    muc_cnnchip_step *steps;
    uint32_t step_count;
    size_t step_capacity;
    muc_cnnchip_layer *layers; /* layer i is number i + 1 in instructions */
    uint32_t layer_count;
    size_t layer_capacity;
    muc_cnnchip_host *hosts;
    uint32_t host_count;
    size_t host_capacity;
    muc_plan plan;
    /* results of emission */
    muc_cnnchip_insn *insns;
    uint32_t insn_count;
    size_t insn_capacity;
    uint8_t *weights, *params; /* the filter image: two sections, one behind the other */
    uint64_t weights_bytes, params_bytes;
    uint64_t scratch_bytes;
    uint64_t cycles, least_cycles; /* of all steps */
} muc_cnnchip_lowering;

/* Whether a node was lowered; if not, the master computes it. */
typedef muc_status muc_cnnchip_rule(muc_cnnchip_lowering *l, const muc_node *node, bool *done);

/* ---- frame_views.c: storages, views, values ---- */

static inline const muc_tensor *muc_cnnchip_tensor(const muc_cnnchip_lowering *l, uint32_t id)
{
    return &l->graph->tensors[id];
}
/* Dimension i of a tensor; all are fixed. */
uint32_t muc_cnnchip_dim(const muc_cnnchip_lowering *l, uint32_t tensor, uint32_t i);
uint64_t muc_cnnchip_elements(const muc_cnnchip_lowering *l, uint32_t tensor);
/* Images of one batch as (c, h, w), channels last or first, of rank 3 (h is 1) or 4, or [1, K] as
 * (K, 1, 1); false: the tensor is none. */
bool muc_cnnchip_image(const muc_cnnchip_lowering *l, uint32_t tensor, bool last, uint32_t *c,
                       uint32_t *h, uint32_t *w);
/* Whether the chip can hold the tensor's type in its mode. */
bool muc_cnnchip_holds(const muc_cnnchip_lowering *l, uint32_t tensor);
/* Constant data, F32 or plain I8, or NULL. */
const uint8_t *muc_cnnchip_constant(const muc_cnnchip_lowering *l, uint32_t tensor);
float muc_cnnchip_number(const uint8_t *data, uint64_t i); /* of F32 data */

muc_status muc_cnnchip_new_storage(muc_cnnchip_lowering *l, const char *name, uint32_t c,
                                   uint32_t h, uint32_t w, uint32_t *out);
muc_cnnchip_view muc_cnnchip_whole(const muc_cnnchip_lowering *l, uint32_t storage);
/* The same elements seen in the storage that is not a part of another. */
muc_cnnchip_view muc_cnnchip_root(const muc_cnnchip_lowering *l, muc_cnnchip_view view);
uint32_t muc_cnnchip_rows(const muc_cnnchip_storage *storage);  /* border included */
uint32_t muc_cnnchip_pitch(const muc_cnnchip_storage *storage); /* border included */

/* Makes the tensor's result a new storage of its own; *out is its view. */
muc_status muc_cnnchip_result(muc_cnnchip_lowering *l, uint32_t tensor, bool last, uint32_t c,
                              uint32_t h, uint32_t w, muc_cnnchip_view *out);
/* The tensor as an image of the chip, in the order of its graph: copied if it lies otherwise,
 * uploaded by the host step that makes it. *done stays false if it cannot be. */
muc_status muc_cnnchip_take(muc_cnnchip_lowering *l, uint32_t tensor, bool last,
                            muc_cnnchip_view *out, bool *done);
/* The same as elements that follow each other, (K, 1, 1), in whichever order they lie: *form is the
 * value whose order they have. bordered: gaps do no harm, and *out is the image itself. */
muc_status muc_cnnchip_take_line(muc_cnnchip_lowering *l, uint32_t tensor, bool bordered,
                                 muc_cnnchip_view *out, muc_cnnchip_value *form, bool *done);
/* The view with rows and columns around it, which hold `value`: a border of its storage, or a copy
 * that has one. */
muc_status muc_cnnchip_pad(muc_cnnchip_lowering *l, muc_cnnchip_view view,
                           const muc_cnnchip_border *border, muc_cnnchip_view *out);

/* After planning: where the view's first element lies; *rows and *pitch are its storage's. */
uint32_t muc_cnnchip_locate(const muc_cnnchip_lowering *l, const muc_cnnchip_view *view,
                            uint32_t *rows, uint32_t *pitch);

/* ---- steps ---- */

muc_status muc_cnnchip_begin_layer(muc_cnnchip_lowering *l, const muc_node *node);
/* A step of the layer at hand with sizes, strides and factors of 1. The pointer is valid until the
 * next. */
muc_status muc_cnnchip_add_step(muc_cnnchip_lowering *l, muc_cnnchip_step_kind kind,
                                muc_cnnchip_view in, muc_cnnchip_view out, muc_cnnchip_step **step);
/* Room for v1, v2, v3: 1, 0, 0. */
muc_status muc_cnnchip_add_dsp(muc_cnnchip_lowering *l, muc_cnnchip_step *step);
/* Bits of the element for a real number; in int8 for that very integer. */
uint32_t muc_cnnchip_bits(const muc_cnnchip_lowering *l, float number);

/* ---- rules ---- */

#define MUC_OP(id, name, least, most, least_out, most_out, rule, flags, facts, meaning) \
    MUC_FACTS facts
#define CHIP(rule) muc_cnnchip_rule muc_cnnchip_lower_##rule;
#include "graph/ops.def"

/* ---- chip_pools.c ---- */

/* One direction, rows or columns, of a window over an image. */
typedef struct muc_cnnchip_side {
    uint32_t kernel, stride, dilation, in, out;
    int64_t pad; /* rows or columns before the first */
} muc_cnnchip_side;

/* Greatest elements of windows, side[0] down and side[1] across, which lie wholly in the view: one
 * step, or several where the window exceeds the PEs, of the fewest cycles. The last is final and
 * has the border. */
muc_status muc_cnnchip_add_pool(muc_cnnchip_lowering *l, const muc_cnnchip_side *side,
                                muc_cnnchip_view in, muc_cnnchip_view out);

/* int8: bounds of the node's result that its stage does not keep by itself, by one or two ADDs in
 * place. */
muc_status muc_cnnchip_keep_bounds(muc_cnnchip_lowering *l, const muc_node *node);

/* ---- chip_cycles.c: what SPEC.md section 7 counts ---- */

uint64_t muc_cnnchip_cycles(const muc_cnnchip_machine *machine, const muc_cnnchip_insn *insn);
/* Without the bus. */
uint64_t muc_cnnchip_compute_cycles(const muc_cnnchip_machine *machine,
                                    const muc_cnnchip_insn *insn);
/* Of the ADD that adds one part of a CONV or DENSE to the parts before. */
uint64_t muc_cnnchip_sum_cycles(const muc_cnnchip_machine *machine,
                                const muc_cnnchip_insn *product);
/* What no way to split a CONV or DENSE into parts, gathered by ADDs, can beat. The instruction is
 * the whole one, whatever its block, with DSP stage and border. */
uint64_t muc_cnnchip_least_cycles(const muc_cnnchip_machine *machine,
                                  const muc_cnnchip_insn *product);

/* ---- chip_split.c ---- */

enum { MUC_CNNCHIP_AXES = 3 };

/* What a part computes of each block: channels of a group (DENSE: elements of its input), rows and
 * columns of the window. */
typedef struct muc_cnnchip_part {
    uint32_t first[MUC_CNNCHIP_AXES], size[MUC_CNNCHIP_AXES];
} muc_cnnchip_part;

/* The block of a CONV or DENSE, along each axis. */
void muc_cnnchip_block_sizes(const muc_cnnchip_insn *whole, uint32_t *size);
/* Leaves of the instruction's blocks a part of this size: the sizes of its view and window. */
void muc_cnnchip_shrink(muc_cnnchip_insn *insn, const uint32_t *size);
/* Cuts blocks that exceed the PEs: parts of the fewest cycles, in the arena. whole is a DENSE, or a
 * CONV of one group or of one channel a group, without addresses, flags and border. */
muc_status muc_cnnchip_split(muc_cnnchip_lowering *l, const muc_cnnchip_insn *whole,
                             muc_cnnchip_part **parts, size_t *count);

/* ---- the road ---- */

muc_status muc_cnnchip_lower(muc_cnnchip_lowering *l);
/* Lifetimes, shared bytes, addresses. MUC_NOFIT where FRAME is too small. */
muc_status muc_cnnchip_plan_frame(muc_cnnchip_lowering *l);
/* Adds to the message of a memory that is too small what would do: this many bytes (0: more than
 * addresses reach) at `key` of the machine, and elements of fewer bytes. Returns MUC_NOFIT. */
muc_status muc_cnnchip_hint(const muc_cnnchip_lowering *l, const char *key, uint64_t bytes);
/* Steps to instructions and the filter image's sections. */
muc_status muc_cnnchip_emit(muc_cnnchip_lowering *l);

#endif

/* loop_nest.h - loops around one statement, written out in C: what needs no kernel of the runtime.
 *
 * A nest has loops, outermost first, and operands: arrays that are read or written at an index that
 * is linear in the loops' counters. Loops of one turn vanish, neighbours that every operand walks
 * through without a gap become one.
 */
#ifndef MUC_MCU_NEST_H
#define MUC_MCU_NEST_H

#include "mur_recurrent.h"
#include "targets/mcu/steps/step_writer.h"

enum { MUC_MCU_MOST_LOOPS = 16, MUC_MCU_MOST_OPERANDS = 8 };

/* factor * expr, where MUC_EXPR_NONE is 1 */
typedef struct muc_mcu_stride {
    int64_t factor;
    muc_expr expr;
    bool of_channels, of_depths; /* times those of a piece */
} muc_mcu_stride;

typedef struct muc_mcu_operand {
    const char *name;                           /* of the C array */
    muc_mcu_stride strides[MUC_MCU_MOST_LOOPS]; /* elements from turn to turn of each loop */
    muc_mcu_stride offsets[MUC_GRAPH_MAX_RANK]; /* terms of where it begins */
    uint32_t offset_count;
    bool from_row; /* a piece has all of it: its row loop counts from the piece's first row on */
} muc_mcu_operand;

typedef struct muc_mcu_nest {
    muc_mcu_lowering *l;
    uint32_t loops;
    muc_expr extents[MUC_MCU_MOST_LOOPS];
    muc_mcu_operand operands[MUC_MCU_MOST_OPERANDS];
    uint32_t operand_count;
    uint32_t outer;   /* of the loops, so many may not be merged with those after them */
    bool is_unrolled; /* the last loop, if its extent is a number that is worth it */
    /* cut into pieces (muc_mcu_nest_tile); from 1, or 0 */
    uint32_t row_loop, channel_loop, depth_loop;
} muc_mcu_nest;

/* Real numbers of 32 bits, or integers that stand for themselves. */
bool muc_mcu_is_plain(const muc_tensor *tensor);
/* int8, uint8 or int16 of one scale */
bool muc_mcu_is_quantized(const muc_tensor *tensor);
/* int8 of one scale; NULL is not */
bool muc_mcu_is_s8(const muc_tensor *tensor);
/* int8 or uint8, with a scale or without */
bool muc_mcu_is_byte(const muc_tensor *tensor);
/* All inputs of the node have fixed shapes. */
bool muc_mcu_inputs_are_static(const muc_mcu_lowering *l, const muc_node *node);

/* loops: the dimensions of shape, if any */
muc_mcu_nest muc_mcu_nest_of(muc_mcu_lowering *l, const muc_tensor *shape);
/* The next operand; its strides are 0. */
muc_mcu_operand *muc_mcu_nest_add(muc_mcu_nest *nest, const char *name);
/* Strides of a tensor broadcast, as numpy does, to the nest's first `rank` loops. */
void muc_mcu_nest_broadcast(muc_mcu_nest *nest, muc_mcu_operand *operand, const muc_tensor *tensor,
                            uint32_t rank);
/* The stride of dimension i of a tensor as it lies in memory. */
muc_mcu_stride muc_mcu_dense(const muc_mcu_lowering *l, const muc_tensor *tensor, uint32_t i);
/* The same of a tensor that is packed. */
muc_mcu_stride muc_mcu_packed(const muc_mcu_lowering *l, const muc_tensor *tensor, uint32_t i);
/* The operand begins at element `index` of the dimension with this stride. */
void muc_mcu_nest_shift(muc_mcu_nest *nest, muc_mcu_operand *operand, muc_mcu_stride stride,
                        muc_expr index);
/* Merges loops. */
void muc_mcu_nest_simplify(muc_mcu_nest *nest);
/* What of a nest may be cut into tiles: the outermost loop, into rows; also the innermost one that
 * the result depends on, into channels; and, where nothing else fits, the last loop, over which it
 * sums, with partial sums in the result. */
typedef enum muc_mcu_cut {
    MUC_MCU_CUT_ROWS,
    MUC_MCU_CUT_CHANNELS,
    MUC_MCU_CUT_SUMS,
} muc_mcu_cut;

/* On a machine with tiles, the function at hand works in the cheapest that the nest allows, whose
 * result depends on its first `loops` loops. Before any of the nest is written; nothing else may be
 * merged or shifted afterwards, and the function uses no scratch and no array but the nest's. */
muc_status muc_mcu_nest_tile(muc_mcu_nest *nest, const muc_node *node, uint32_t loops,
                             muc_mcu_cut cuts);
/* Writes the heads of loops first..end-1, each deeper by one than the one before, the first at the
 * given depth, and as many closing braces. Depth 1 is a function's body. */
void muc_mcu_nest_open(const muc_mcu_nest *nest, uint32_t first, uint32_t end, unsigned depth);
void muc_mcu_nest_close(const muc_mcu_nest *nest, uint32_t first, uint32_t end, unsigned depth);
/* how often a loop turns, in a piece if it is cut */
void muc_mcu_nest_print_extent(const muc_mcu_nest *nest, uint32_t loop, muc_text *text);
/* "x[i0 * 64u + i1]" */
void muc_mcu_nest_print(const muc_mcu_nest *nest, const muc_mcu_operand *operand, muc_text *text);
/* The function of a node whose output's elements are one by one what a line of C says of those of
 * its first `inputs` inputs, broadcast; inputs up to `operands` are arrays beside them. tiled: it
 * may be cut into tiles. What comes before the loops may be written between the two. */
muc_status muc_mcu_begin_elements(muc_mcu_lowering *l, const muc_node *node, uint32_t inputs,
                                  uint32_t operands, bool tiled, muc_mcu_nest *nest);
/* line, which is freed here: "@y = (int8_t)(@a - 128);", or several lines. */
muc_status muc_mcu_end_elements(const muc_mcu_nest *nest, muc_text *line);
/* Inputs of the output's very shape and no smaller elements may become it, element by element. */
void muc_mcu_share_pointwise(muc_mcu_lowering *l, const muc_node *node);

/* A step that is a function of the program: its body is to be written to l->text, with inputs as
 * arrays a, b, c, ... (constant but for states), outputs as y, y1, y2, ... and, if bytes are asked
 * for, scratch. */
muc_status muc_mcu_begin_function(muc_mcu_lowering *l, const muc_node *node);
muc_status muc_mcu_end_function(muc_mcu_lowering *l, uint64_t scratch_bytes, uint64_t macs);
/* A table of the function at hand: "static const int32_t NAME[count]". */
void muc_mcu_print_table(muc_mcu_lowering *l, muc_dtype dtype, const char *name,
                         const int32_t *numbers, uint64_t count);
/* The table of mur_sigmoid.h, `sigmoid`. */
void muc_mcu_print_sigmoid_table(muc_mcu_lowering *l);
/* What a recurrent layer's shape and attributes say. */
mur_recurrent_f32 muc_mcu_recurrent_layer(const muc_mcu_lowering *l, const muc_node *node);
/* "const TYPE operands = { ... };" of a layer of runtime/mur_recurrent.h. */
void muc_mcu_print_recurrent_operands(muc_mcu_lowering *l, const muc_node *node, const char *type);
/* "a", "b", ...; "y", "y1", ... */
const char *muc_mcu_input_name(uint32_t i);
const char *muc_mcu_output_name(uint32_t i);

/* ", shift, least, most": the rest of the arguments of mur_quantlib_requant, by a node's attributes
 */
void muc_mcu_print_requant(muc_text *text, const muc_node *node);
/* Writes "depth" levels of indentation. */
void muc_mcu_indent(muc_text *text, unsigned depth);
/* The name that an input of expressions has in C. Files name their dimensions as they please; with
 * this before it, no name is a word of C or one that generated code has for something else. */
#define MUC_MCU_DIM "dim_"
void muc_mcu_print_dim(const muc_expr_pool *pool, uint32_t input, muc_text *text);
/* An expression of C of type uint32_t, in parentheses where it is not a single word. */
void muc_mcu_print_expr(const muc_expr_pool *pool, muc_expr e, muc_text *text);

#endif

/* step_writer.h - what the writers of operators (CODE in ops.def) write steps with: tensors of the
 * graph as values of the program, and calls of functions with their arguments.
 */
#ifndef MUC_MCU_STEP_WRITER_H
#define MUC_MCU_STEP_WRITER_H

#include "base/text.h"
#include "targets/mcu/program/mcu_program.h"

struct muc_mcu_pieces;

typedef struct muc_mcu_lowering {
    muc_context *ctx;
    muc_graph *graph;
    muc_mcu_program *program;
    muc_mcu_isa isa;
    muc_mcu_step *step;            /* being written */
    muc_text text;                 /* what stands before the run function for it */
    const char *note;              /* of the step that begins next, or NULL */
    struct muc_mcu_pieces *pieces; /* of the function at hand (tiles.h), or NULL */
} muc_mcu_lowering;

/* Whether a writer can do a node of one of its operators. */
typedef bool muc_mcu_takes(const muc_mcu_lowering *l, const muc_node *node);
/* Writes the node's step, or makes its output a view. */
typedef muc_status muc_mcu_write(muc_mcu_lowering *l, const muc_node *node);

#define MUC_OP(id, name, least, most, least_out, most_out, rule, flags, facts, meaning) \
    MUC_FACTS facts
#define CODE(name, needs) \
    muc_mcu_takes muc_mcu_takes_##name; \
    muc_mcu_write muc_mcu_write_##name;
#define CODE_OF_ANY(name, needs) muc_mcu_write muc_mcu_write_##name;
#include "graph/ops.def"

/* NULL where the input is absent. */
const muc_tensor *muc_mcu_input(const muc_mcu_lowering *l, const muc_node *node, uint32_t i);
const muc_tensor *muc_mcu_output(const muc_mcu_lowering *l, const muc_node *node, uint32_t i);
/* A dimension that is the same number in every run; 0 if it is not. */
uint32_t muc_mcu_dim(const muc_mcu_lowering *l, const muc_tensor *tensor, uint32_t i);
bool muc_mcu_is_state(const muc_mcu_lowering *l, const muc_node *node, uint32_t i);
/* Elements of dims[from..end-1]; 0 if one is not the same in every run. */
uint64_t muc_mcu_elements(const muc_mcu_lowering *l, const muc_tensor *tensor, uint32_t from,
                          uint32_t end);
/* The most that the tensor can have. */
uint64_t muc_mcu_most_elements(const muc_mcu_lowering *l, const muc_tensor *tensor);
bool muc_mcu_is_static(const muc_mcu_lowering *l, const muc_tensor *tensor);

/* The value of input i, made on first use if it is a constant. */
muc_status muc_mcu_input_value(muc_mcu_lowering *l, const muc_node *node, uint32_t i,
                               uint32_t *out);
/* The value of a tensor that has none yet; inputs, outputs and states keep their names. */
muc_status muc_mcu_add_tensor(muc_mcu_lowering *l, uint32_t id, uint32_t *out);
/* A real input that is only quantized, a real output that is only dequantized: the program's is the
 * quantized tensor, whose scale the header tells. The tensor that stands for input id, which may be
 * itself; and whether a node is such a quantization or dequantization. */
uint32_t muc_mcu_inner_input(const muc_mcu_lowering *l, uint32_t id);
bool muc_mcu_is_boundary(const muc_mcu_lowering *l, const muc_node *node);
/* Makes the value of output i. */
muc_status muc_mcu_output_value(muc_mcu_lowering *l, const muc_node *node, uint32_t i,
                                uint32_t *out);
/* Output 0 is input 0's bytes. */
muc_status muc_mcu_make_view(muc_mcu_lowering *l, const muc_node *node, uint64_t offset);
/* A constant of the program's own; data lives in its arena. */
muc_status muc_mcu_new_constant(muc_mcu_lowering *l, const char *name, const void *data,
                                uint64_t bytes, uint32_t *out);
/* Of a graph of shapes alone: what stands for so many bytes of packed weights; else NULL. */
static inline const uint8_t *muc_mcu_zeros(const muc_mcu_lowering *l, uint64_t bytes)
{
    return bytes <= l->graph->zero_bytes ? l->graph->zeros : NULL;
}
/* The same, packed for the step's kernel, where the step's text names it. */
muc_status muc_mcu_new_packed(muc_mcu_lowering *l, const char *name, const void *data,
                              uint64_t bytes, uint32_t *out);

/* A step begins; arguments follow in order, then its end. function NULL: the step's own name. */
muc_status muc_mcu_begin_step(muc_mcu_lowering *l, const muc_node *node, const char *function);
muc_status muc_mcu_pass_text(muc_mcu_lowering *l, const char *format, ...) MUC_PRINTF(2, 3);
muc_status muc_mcu_pass_input(muc_mcu_lowering *l, uint32_t i);
muc_status muc_mcu_pass_output(muc_mcu_lowering *l, uint32_t i);
/* A constant of muc_mcu_new_constant, as elements of a type. */
muc_status muc_mcu_pass_constant(muc_mcu_lowering *l, uint32_t value, muc_dtype dtype);
/* 0 bytes: a null pointer. */
muc_status muc_mcu_pass_scratch(muc_mcu_lowering *l, uint64_t bytes);
/* Output 0 may take input i's bytes, if it starts at least lead bytes before it. */
void muc_mcu_may_overlap(muc_mcu_lowering *l, uint32_t i, int64_t lead);
muc_status muc_mcu_end_step(muc_mcu_lowering *l, uint64_t macs);

#endif

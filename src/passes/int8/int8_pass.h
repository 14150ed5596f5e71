/* int8_pass.h - what the parts of muc_int8_quantize share: a plan of forms (int8_plan.c), scales
 * (int8_scales.c) and the new graph (int8_emit.c). */
#ifndef MUC_PASSES_INT8_PASS_H
#define MUC_PASSES_INT8_PASS_H

#include <math.h>
#include <string.h>

#include "graph/graph_check.h"
#include "graph/scales.h"
#include "passes/int8/int8.h"
#include "passes/rewrite.h"

enum { LEVELS = 256, LEAST = -128, MOST = 127 };

typedef enum form {
    FLOAT,
    WEIGHTED,
    FREE,
    FIXED,
    SHARED,
    BOUND,
    NORM,
    RECURRENT,
    SCALED, /* times a positive number: the same integers of another scale */
    TABLE,  /* a function of one int8 tensor, element by element */
    INNER,  /* a step of such functions alone */
} form;

typedef struct pass {
    muc_rewrite r;
    muc_arena arena; /* of the arrays */
    const muc_ranges *ranges;
    muc_int8_result *result;
    bool *kept;          /* of old nodes: float32, as somebody asks */
    form *forms;         /* of old nodes */
    bool *available;     /* of old tensors: an int8 form costs no conversion */
    bool *last;          /* of old tensors: no node computes with their elements as one */
    bool *merged;        /* of old nodes: bounds that the node before keeps */
    uint32_t *functions; /* of old tensors: the one whose elements alone decide its own */
    uint32_t *parents;   /* of old tensors: trees of those that share a scale */
    uint32_t *sources;   /* of roots: tensors whose values are not moved ones */
    float *scales;       /* of roots */
    int32_t *zeros;      /* of roots */
    uint32_t *made;      /* of old tensors: the new int8 tensor */
} pass;

static inline const muc_tensor *old(const pass *p, uint32_t tensor)
{
    return &p->r.old.tensors[tensor];
}

static inline bool is_real(const pass *p, uint32_t tensor)
{
    return tensor != MUC_NO_ID && old(p, tensor)->dtype == MUC_F32;
}

/* an f32 constant */
static inline bool is_constant(const pass *p, uint32_t tensor)
{
    return is_real(p, tensor) && muc_rewrite_is_constant(&p->r, tensor);
}

static inline uint64_t elements_of(const pass *p, uint32_t tensor)
{
    return old(p, tensor)->bytes / sizeof(float);
}

static inline float element(const pass *p, uint32_t tensor, uint64_t i)
{
    float value;

    muc_dtype_to_f32(MUC_F32, old(p, tensor)->data, i, 1, &value);
    return value;
}

/* a constant whose int8 form is zeros, for only its shape is known */
static inline bool is_shape(const pass *p, uint32_t tensor)
{
    return muc_rewrite_is_shape(&p->r, old(p, tensor), elements_of(p, tensor));
}

static inline uint32_t root(const pass *p, uint32_t tensor)
{
    while (p->parents[tensor] != tensor)
        tensor = p->parents[tensor] = p->parents[p->parents[tensor]];
    return tensor;
}

/* What INT8 in graph/ops.def says of an operator. */
form muc_int8_form_of(muc_op op);
/* The input that the other repeats in: of operands that may change places, either. */
unsigned muc_int8_wide_input(const pass *p, const muc_node *node);
/* relu or clip that alone reads what a node with bounds of its own computes, or NULL */
const muc_node *muc_int8_bound_after(const pass *p, const muc_node *node);
/* Where a norm's rows lie; false where that is not known, or they are empty or too long. */
bool muc_int8_norm_rows(const pass *p, const muc_node *node, muc_norm_rows *out);
/* Fills kept by a list of muc_int8_trace: names of nodes or of their outputs, or operators; of
 * names parted by '\n' the first that there is. NULL: none. MUC_USAGE, with what is known, for
 * others. */
muc_status muc_int8_keep(pass *p, const char *list);
/* Whether any name of such a list is the node's. */
bool muc_int8_is_kept(const muc_rewrite *r, const muc_node *node, const char *list);
/* Fills functions, forms, available and merged. */
muc_status muc_int8_plan(pass *p);

void muc_int8_set_scale(const pass *p, uint32_t tensor, float least, float most);
/* The scale that TFLite's kernel gives, if it has no choice. */
bool muc_int8_fixed_scale(muc_op op, float *scale, int32_t *zero);
/* The distance of the levels that a tensor has alone: moved ones that of what they are moved from.
 * 0: nothing was seen. Needs the forms of the nodes before. */
float muc_int8_step(const pass *p, uint32_t tensor);
/* Fills parents, sources, scales and zeros. */
muc_status muc_int8_scales(pass *p);

/* ---- the new graph ---- */

muc_quantization muc_int8_quantization_of(const pass *p, uint32_t tensor);
extern const muc_attribute muc_int8_to; /* to=i8 */
/* "NAME.suffix" of an old tensor, in the arena. */
muc_status muc_int8_suffixed(pass *p, uint32_t tensor, const char *suffix, const char **out);
/* The greatest magnitude of some elements of a real constant; 1 if only its shape is known. */
float muc_int8_reach(const pass *p, uint32_t tensor, uint64_t first, uint64_t count);
/* A real constant as integers, a new one called "NAME.suffix": element i to the nearest level of
 * scale i / each % q's count. */
muc_status muc_int8_constant(pass *p, uint32_t tensor, muc_dtype dtype, const muc_quantization *q,
                             uint64_t each, const char *suffix, uint32_t *out);
/* The name of an old tensor's int8 form. */
muc_status muc_int8_name(pass *p, uint32_t tensor, const char **out);
/* The new tensors of an old one, conversions added where they are missing. */
muc_status muc_int8_need_float(pass *p, uint32_t tensor, uint32_t *out);
muc_status muc_int8_need(pass *p, uint32_t tensor, uint32_t *out);
/* Adds the real numbers of an old tensor, which integers are, under its own name if it is a result.
 */
muc_status muc_int8_give_float(pass *p, uint32_t tensor, uint32_t integers);
/* Lstm, gru or rnn; its form becomes FLOAT, and nothing is added, if integers do not hold its
 * factors.
 */
muc_status muc_int8_emit_recurrent(pass *p, const muc_node *node);
/* Whether it is one with constant weights and states that integers hold. */
bool muc_int8_takes_recurrent(const pass *p, const muc_node *node);
/* Writes the new graph. */
muc_status muc_int8_emit(pass *p);

#endif

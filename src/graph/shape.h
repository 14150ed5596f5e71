/* shape.h - what the families of shape rules share.
 *
 * A rule checks types and shapes of a node's inputs and the attributes that decide its outputs, and
 * fills dtype, rank and dims of outputs[0..]. The operator's flags were checked before: input 0 is
 * of an allowed type, and carries quantization only where the operator knows it.
 */
#ifndef MUC_GRAPH_SHAPE_H
#define MUC_GRAPH_SHAPE_H

#include "graph/graph.h"

typedef struct muc_rule {
    muc_context *ctx;
    muc_graph *graph;
    const muc_node *node;
    muc_tensor *outputs;
} muc_rule;

#define MUC_OP(id, name, least, most, least_out, most_out, rule, flags, facts, meaning) \
    muc_status muc_shape_##rule(const muc_rule *r);
#include "graph/ops.def"

/* NULL if the input is absent. */
const muc_tensor *muc_rule_input(const muc_rule *r, uint32_t i);
/* "node 'x': input 1 ('w') is f32 [2, 3], expected ..." */
muc_status muc_rule_unexpected(const muc_rule *r, uint32_t i, const char *format, ...)
    MUC_PRINTF(3, 4);
/* "node 'x': found ..., expected ..." of attributes */
#define muc_rule_fail(r, ...) \
    muc_fail_on(muc_node_subject((r)->ctx, (r)->graph, (r)->node), MUC_MALFORMED, __VA_ARGS__)

bool muc_rule_is_float(const muc_rule *r, uint32_t i);
bool muc_rule_is_integer(const muc_rule *r, uint32_t i); /* bool is none */
/* The dimension's value, if it depends on nothing. */
bool muc_rule_const(const muc_rule *r, muc_expr dim, uint32_t *value);
muc_expr muc_rule_dim(const muc_rule *r, uint64_t value);

/* a <= b, or a == b: fails where it never holds; where it is up to a run's lengths, whoever binds
 * them checks it, and generated code does. what: "elements". */
muc_status muc_rule_require(const muc_rule *r, const char *what, muc_expr a, bool equal,
                            muc_expr b);

/* Output i has the type, rank and dimensions of a tensor. */
void muc_rule_like(const muc_rule *r, uint32_t output, const muc_tensor *tensor);
/* Input i has input 0's type. */
muc_status muc_rule_expect_type(const muc_rule *r, uint32_t i);
/* Input i holds indices, of i64 or i32. */
muc_status muc_rule_expect_indices(const muc_rule *r, uint32_t i);
/* Input i is a vector of the length, of input 0's type, or with quantization i32. */
muc_status muc_rule_expect_vector(const muc_rule *r, uint32_t i, muc_expr length);
muc_status muc_rule_expect_scalar(const muc_rule *r, uint32_t i); /* one element, any rank */
/* The attribute as a dimension of something of this rank. */
muc_status muc_rule_axis(const muc_rule *r, muc_attribute_key key, uint32_t rank, uint32_t *axis);
/* An INTEGERS attribute has count items of low..high; absent ones pass. */
muc_status muc_rule_integers(const muc_rule *r, muc_attribute_key key, uint32_t count, int64_t low,
                             int64_t high);
/* An EXPRS attribute that is there has count items. */
muc_status muc_rule_exprs(const muc_rule *r, muc_attribute_key key, uint32_t count);
/* An INTEGER attribute, if it is there, is in low..high. */
muc_status muc_rule_integer(const muc_rule *r, muc_attribute_key key, int64_t low, int64_t high);
/* The dimensions that numpy gives input `with` and dims[0..*rank-1], which they replace. */
muc_status muc_rule_broadcast(const muc_rule *r, uint32_t with, uint32_t *rank, muc_expr *dims);
/* Input i is i8 or u8; one of these, or i16 for values of unknown sign. */
muc_status muc_rule_expect_byte(const muc_rule *r, uint32_t i);
muc_status muc_rule_expect_narrow(const muc_rule *r, uint32_t i);
/* i32 sums of input 0, less its zero point (input `zero`, if it is there), and weights, input 1; of
 * a product of matrices. */
muc_status muc_shape_sums_of_conv(const muc_rule *r, uint32_t zero);
muc_status muc_shape_sums_of_matmul(const muc_rule *r);
/* channels_last of the node, and the dimension of channels of a tensor of this rank. */
uint32_t muc_rule_channels(const muc_rule *r, uint32_t rank);

#endif

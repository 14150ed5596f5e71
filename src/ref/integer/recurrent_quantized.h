/* recurrent_quantized.h - layers of integers that carry a state, as the runtime's layers describe
 * them: the reference runs those, generated code has them as text.
 *
 * x_dims: input 0's dimensions, or NULL where only the result counts. */
#ifndef MUC_REF_RECURRENT_QUANTIZED_H
#define MUC_REF_RECURRENT_QUANTIZED_H

#include "graph/graph.h"
#include "mur_recurrent.h"

/* Of an svdf; of real numbers it has dimensions alone. Offsets are left out. False if weights have
 * zero points or several scales, a state of 16 bits has a zero point, or a factor is 2^30 or more.
 */
bool muc_svdf_layer(const muc_graph *graph, const muc_node *node, const size_t *x_dims,
                    mur_svdf *layer);
/* Of a quantized lstm, gru or rnn; biases and the table of sigmoid are left out, and the peepholes'
 * weights. False if c's scale is not a power of two, or out of range, or a gru's state not in
 * Q0.15, or peepholes have several scales or a zero point, or weights have zero points or several
 * scales in a gate, or a factor is 2^30 or more. */
bool muc_recurrent_layer(const muc_graph *graph, const muc_node *node, const size_t *x_dims,
                         mur_recurrent_s8 *layer, mur_peepholes_s8 *peepholes);
/* relu and not tanh */
bool muc_recurrent_has_relu(const muc_node *node);

/* What sums of rows begin with: a bias less the row times the zero point of what it is multiplied
 * by. weights: [count][columns]; bias: i32, aligned or not, or NULL: of each direction's `rows`
 * rows those of input 1, then those of input 2. */
void muc_recurrent_offsets(const int8_t *weights, size_t count, size_t columns, int32_t zero,
                           const uint8_t *bias, size_t rows, uint32_t input, int32_t *offsets);

#endif

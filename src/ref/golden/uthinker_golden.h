/* uthinker_golden.h - a graph in µThinker's arithmetic: the golden model of
 * src/targets/uthinker/SPEC.md.
 *
 * The session is one of ref.h; only how it is opened differs. Weights are the BlockDialect
 * sequences attached to the graph's constants, activations are quantized where the machine does,
 * every other number is binary32 in the order that the SPEC's sections 3, 4 and 8 write down. What
 * muc_ref_read and the probe give is what lies in buffer GB after the stage, bit for bit:
 *
 *   - an addition of a linear node's result starts the accumulators (SPEC section 8): the linear
 *     node itself has no value, and the probe does not see it;
 *   - .silu (.gelu) is GLU without its last product, .gated is GLU before its slots;
 *   - an attention node NAME also shows, as rows [token * heads + head][position], zero where a
 *     token does not look: "NAME.scores", what MM left in GB.SC, and "NAME.weights", SMAX's p
 *     before its slots, relative to the largest score known when their chunk was read.
 */
#ifndef MUC_REF_MACHINE_H
#define MUC_REF_MACHINE_H

#include "ref/ref.h"

/* DialectFP4 terms, 1 or 2, of each activation: SPEC section 8's letters; and the tokens of a step
 * of attention, 32 or 64, 0: 64. The nodes of layer N, "layers.N.*", have those of layers[N] if
 * there are so many; these are copied. */
typedef struct muc_ref_terms {
    uint8_t x, q, k, v, p, o, f, h, l;
    uint8_t step;
    uint32_t layer_count;
    const struct muc_ref_terms *layers;
} muc_ref_terms;

/* As muc_ref_open. Fails with MUC_UNSUPPORTED naming the node that the machine has no stage for. */
muc_status muc_ref_open_machine(muc_context *ctx, muc_graph *graph, const muc_ref_terms *terms,
                                muc_ref **out);

/* Called with an activation's slots, as the machine's buffer holds them, before they are used:
 * rows of row_bytes. node is the one that reads them. */
typedef void muc_ref_slots_probe(void *arg, const muc_node *node, const uint8_t *slots, size_t rows,
                                 size_t row_bytes);
void muc_ref_set_slots_probe(muc_ref *ref, muc_ref_slots_probe *probe, void *arg);

/* Section 3's exp, for x <= 0. */
float muc_ref_machine_exp(float x);

#endif

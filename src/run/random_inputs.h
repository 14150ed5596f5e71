/* random_inputs.h - inputs of a network, made up where a user gives none. */
#ifndef MUC_RUN_MADE_ARRAYS_H
#define MUC_RUN_MADE_ARRAYS_H

#include "formats/network.h"
#include "passes/unify/unify.h"

/* What the generator, a xorshift of 32 bits, begins with. */
#define MUC_MADE_ARRAYS_SEED 0x9e3779b9u

/* Arrays for every input, the same each time: reals in -1..1, integers of up to 16 bits with the
 * values of bytes, larger ones 0 or 1, since they may be indices, or 0 where a node indexes a
 * dimension of 1. Open dimensions are two more than their least. unified: of a graph made of
 * several exports, whose arrays are those of one of them, by its number and at its lengths, caches
 * among them; else NULL. In arena, in the order of muc_network_match. */
muc_status muc_made_arrays(muc_context *ctx, const muc_graph *graph, const muc_unified *unified,
                           uint32_t export, muc_arena *arena, muc_tensor_view **out, size_t *count);

#endif

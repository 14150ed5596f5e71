/* listing.h - a network as its file lists it, before a graph is made: what is told, and shown, of
 * one with operators that muc does not have.
 */
#ifndef MUC_LISTING_H
#define MUC_LISTING_H

#include "base/arena.h"
#include "base/text.h"

/* The nodes of one operator. Names are copies. */
typedef struct muc_listed_operator {
    const char *type, *first; /* as the file calls it; its first node */
    uint64_t nodes;
    bool supported;
} muc_listed_operator;

typedef struct muc_listed_port {
    const char *name, *shape; /* "f32 [N, 3]" */
    bool is_output;
} muc_listed_port;

/* All-zero is empty. */
typedef struct muc_listing {
    muc_listed_operator *operators;
    muc_listed_port *ports;
    size_t operator_count, operator_capacity, port_count, port_capacity;
    uint64_t nodes;
    bool lacks; /* an operator of it is not supported */
} muc_listing;

/* Counts a node. After many different operators the others are counted as one. */
muc_status muc_listing_add(muc_context *ctx, muc_arena *arena, muc_listing *listing,
                           const char *type, const char *node, bool supported);
/* Whether a node was counted that is not supported, though the network may do without it. */
bool muc_listing_is_short(const muc_listing *listing);
/* Adds an input or an output; frees shape. */
muc_status muc_listing_add_port(muc_context *ctx, muc_arena *arena, muc_listing *listing,
                                const char *name, muc_text *shape, bool is_output);
/* Fails with MUC_UNSUPPORTED, naming all operators that are not supported. */
muc_status muc_listing_refuse(muc_context *ctx, const char *path, const muc_listing *listing);

#endif

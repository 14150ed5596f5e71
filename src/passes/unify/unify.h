/* unify.h - one program for all lengths: several exports of one network become one graph.
 *
 * An export is a network at one length: `pos` tokens in its caches, `m` new ones. Exports of the
 * same network have the same nodes and weights; what differs is dimensions and, in quantized
 * networks, a few integers that were calibrated at that length. The unified graph has `pos` and `m`
 * as inputs of its dimensions. A cache that exports take as an input and grow by concatenating new
 * rows becomes a STATE to which rows are appended in place. The integers that differ become one
 * more INPUT, the calibration record: given the record of an export, its lengths and what its
 * caches hold, the unified graph computes what the export does, bit for bit.
 */
#ifndef MUC_UNIFY_H
#define MUC_UNIFY_H

#include "graph/graph.h"

enum { MUC_UNIFY_MAX_EXPORTS = 256 };

/* The input of the unified graph that takes an export's record: i32 [record_words]. */
#define MUC_UNIFY_RECORD "record"

/* All is borrowed for the call. */
typedef struct muc_unify_options {
    uint32_t context; /* rows that a cache has room for: pos + m; 0: the most of any export */
    uint32_t tokens;  /* the most new tokens of a call; 0: the most of any export */
} muc_unify_options;

/* One export, as data. */
typedef struct muc_unified_export {
    uint32_t pos, m;
    const int32_t *record; /* [record_words] */
} muc_unified_export;

/* An input of the exports that became a state of the graph, of the same name, with room for
 * `context` rows along axis. */
typedef struct muc_unified_cache {
    const char *name;
    uint32_t axis;
} muc_unified_cache;

/* Owns everything it points to, but for constants' bytes, which the exports own. */
typedef struct muc_unified {
    muc_arena arena;
    muc_graph *graph;
    const char **inputs; /* [input_count]: of an export, caches too, in the first one's order */
    uint32_t input_count;
    uint32_t context;
    uint32_t record_words;       /* of the input MUC_UNIFY_RECORD; 0: there is none */
    muc_unified_export *exports; /* [export_count] */
    uint32_t export_count;
    muc_unified_cache *caches;
    uint32_t cache_count;
} muc_unified;

/* paths name the exports in messages. Fails with MUC_USAGE for a single export or exports of one
 * length, and with MUC_UNSUPPORTED naming two exports and the node or tensor in which they are not
 * one network, or the dimension that no sum of pos and m explains. */
muc_status muc_unify(muc_context *ctx, muc_graph *const *graphs, const char *const *paths,
                     uint32_t count, const muc_unify_options *options, muc_unified *out);
void muc_unified_free(muc_unified *unified); /* all-zero is fine */

#endif

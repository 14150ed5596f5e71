/* chain.h - layers one after another on rows that stay in a small memory: what of each is there at
 * a time, and what that costs.
 *
 * Links run in turns (runtime/include/mur_tiles.h, mur_tiles_chain): in each turn, link after link
 * makes the rows that those after it need. A column is an operand or a result, of which some rows
 * are in the small memory at a time; every row is fetched once and computed once, rows that are
 * needed again stay.
 *
 * Cycles, with c(n) the compute cycles of slot n (one link in one turn), f(n) those of the
 * transfers that it needs new, s(n) of those of its result:
 *   f(0) + sum over n of max(c(n), f(n+1) + s(n-1)) + s(last)
 */
#ifndef MUC_PLAN_CHAIN_H
#define MUC_PLAN_CHAIN_H

#include "base/base.h"

enum {
    MUC_CHAIN_LINKS = 64,
    MUC_CHAIN_READS = 7,
    MUC_CHAIN_COLUMNS = 255,
    MUC_CHAIN_TURNS = 64,
};
#define MUC_CHAIN_NONE UINT32_MAX

/* How a link reads a column, in rows of its own: for result rows o..o+t-1 those of o*stride - pad
 * .. (o+t-1)*stride - pad + window - 1 that lie within 0..rows-1; all if window is 0. */
typedef struct muc_chain_read {
    uint32_t column;
    uint32_t rows, stride, window, pad;
    uint64_t row_bytes;
    uint64_t skip; /* bytes of the column before row 0 */
} muc_chain_read;

typedef struct muc_chain_link {
    uint32_t rows;   /* of the result, at least 1 */
    uint32_t result; /* its column */
    muc_chain_read reads[MUC_CHAIN_READS];
    uint32_t read_count;
    uint32_t cores;      /* that share rows; 1 if it shares work otherwise */
    uint64_t row_cycles; /* of a row, by one of them */
    uint64_t scratch_bytes;
} muc_chain_link;

typedef struct muc_chain_column {
    uint32_t maker;     /* the link whose result it is, or MUC_CHAIN_NONE: it is fetched */
    uint32_t fetcher;   /* the first link that reads it, where it is fetched */
    uint32_t rows;      /* at least 1 */
    uint64_t row_bytes; /* of weights, all */
    uint32_t transfers; /* for its rows, however many */
    bool is_stored;     /* of a result: someone else needs it */
} muc_chain_column;

typedef struct muc_chain_machine {
    uint64_t capacity_bytes;
    uint32_t alignment;
    uint32_t dma_bytes_per_cycle, dma_setup_cycles, call_cycles;
} muc_chain_machine;

typedef struct muc_chain {
    const muc_chain_machine *machine;
    uint32_t link_count, column_count;
    muc_chain_link links[MUC_CHAIN_LINKS];
    muc_chain_column columns[MUC_CHAIN_COLUMNS];
} muc_chain;

typedef struct muc_chain_span {
    uint32_t first, end; /* rows of the column, end not included */
} muc_chain_span;

/* What a column takes, and in which links (of each turn, ends included) its bytes are in use. */
typedef struct muc_chain_room {
    uint64_t bytes;
    uint32_t first, last;
} muc_chain_room;

typedef struct muc_chain_plan {
    uint32_t turns;
    uint64_t peak; /* bytes in use while the fullest link works, scratch too */
    uint64_t cycles, compute_cycles, dma_cycles;
    uint64_t in_bytes, out_bytes;
    muc_chain_room rooms[MUC_CHAIN_COLUMNS];
    muc_chain_span spans[MUC_CHAIN_TURNS][MUC_CHAIN_COLUMNS];
} muc_chain_plan;

/* The plan of so many turns, at most MUC_CHAIN_TURNS and the last link's rows. Chains of one link
 * have one turn. Links read results of earlier links alone; columns are in the order of the links
 * that fetch or make them, and of one link its result is the last. A column that the first link
 * fetches is not read by the last one too, if there are several turns. False if its peak exceeds
 * the machine's capacity: then nothing but the peak is told. */
bool muc_chain_try(const muc_chain *chain, uint32_t turns, muc_chain_plan *plan);

#endif

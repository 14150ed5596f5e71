/* costs.h - what each layer of a report costs, whatever target it is of; for this room alone. */
#ifndef MUC_REPORT_COSTS_H
#define MUC_REPORT_COSTS_H

#include "report/tree.h"

enum { MUC_COSTS_SHOWN = 3 }; /* of the largest */

typedef struct muc_costs {
    const char *table, *names, *time, *unit, *engine, *bytes, *macs; /* a row of costs.def */
    const json_t *rows;
    double total; /* time of all rows, above 0 */
} muc_costs;

/* False if no row of costs.def fits the tree, or nothing takes time. */
bool muc_costs_find(const json_t *root, muc_costs *out);

/* of a row; 0 for what it does not have */
double muc_costs_time(const muc_costs *costs, const json_t *row);
uint64_t muc_costs_bytes(const muc_costs *costs, const json_t *row);
/* Whether a layer's time is its number of multiply-accumulates. */
bool muc_costs_are_macs(const muc_costs *costs);
uint64_t muc_costs_macs(const muc_costs *costs, const json_t *row);
/* Borrowed from the row, "" if there is none. */
const char *muc_costs_engine(const muc_costs *costs, const json_t *row);
/* The i-th of its names, NULL after the last; "" for one that is none. */
const char *muc_costs_name(const muc_costs *costs, const json_t *row, unsigned i);

/* The rows that take longest, the longest first; gives how many. Equal ones come in their order. */
size_t muc_costs_largest(const muc_costs *costs, const json_t *out[MUC_COSTS_SHOWN]);

#endif

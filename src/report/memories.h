/* memories.h - the table "memory" of a report, memory by memory; for this room alone. */
#ifndef MUC_REPORT_MEMORIES_H
#define MUC_REPORT_MEMORIES_H

#include "report/tree.h"

/* A memory and what lies in it: rows of the table with its name. */
typedef struct muc_memory_sum {
    const char *name;
    uint64_t bytes, limit; /* limit 0: not known */
    size_t first;          /* its first row */
} muc_memory_sum;

/* The memory of which row i of the table is the first; false if it is not. */
bool muc_memory_sum_at(const json_t *rows, size_t i, muc_memory_sum *out);
/* "8,640 of 327,680 bytes, 2.64 %", or by how many bytes it is too small. */
void muc_memory_add_words(muc_text *text, const muc_memory_sum *sum);

/* "Yes", "No" or "No limit is known", and into detail the words of each memory. */
const char *muc_report_fit_words(const json_t *root, muc_text *detail);

#endif

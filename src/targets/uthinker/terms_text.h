/* terms_text.h - terms of activations as a command line has them: "2,v=1,k:0-3=1". */
#ifndef MUC_UTHINKER_TERMS_TEXT_H
#define MUC_UTHINKER_TERMS_TEXT_H

#include "base/arena.h"
#include "base/text.h"
#include "graph/graph.h"
#include "targets/uthinker/isa/layer_facts.h"

/* Layers that a graph of a language model has. */
uint32_t muc_uthinker_count_layers(const muc_graph *graph);

/* Items, apart by commas, each after the other: a number of terms of every place, PLACE=N,
 * PLACE:L=N of a layer or PLACE:FIRST-LAST=N of some. terms: [layers], changed. Fails with
 * MUC_USAGE. */
muc_status muc_uthinker_read_terms(muc_context *ctx, const char *text, muc_uthinker_terms *terms,
                                   uint32_t layers);
/* The shortest such text for what are two terms but for exceptions. */
void muc_uthinker_write_terms(const muc_uthinker_terms *terms, uint32_t layers, muc_text *out);

#endif

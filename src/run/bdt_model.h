/* bdt_model.h - what a .bdt file holds (docs/FORMAT-bdt.md): a graph with its weights as blocks. */
#ifndef MUC_RUN_BLOCKS_H
#define MUC_RUN_BLOCKS_H

#include "run/opened_model.h"
#include "graph/graph.h"

/* The entries of bytes. Of a part, "part" is a text: its number and how many there are, then what
 * all parts have in common. */
#define MUC_BLOCKS_GRAPH "graph"
#define MUC_BLOCKS_PART "part"

/* Writes a graph whose matrices carry sequences and whose other constants are float32. part: the
 * text of a part, whose other matrices carry none, or NULL. */
muc_status muc_blocks_write(muc_context *ctx, const muc_model *model, const muc_graph *graph,
                            const char *part, const char *path);
/* Adds a constant's entry: its sequence, or float32. */
muc_status muc_blocks_add_constant(muc_bdt_writer *writer, const muc_graph *graph,
                                   const muc_tensor *tensor);

/* Opens model->file: fills blocks, tokens, tokenizer and prompt template. */
muc_status muc_blocks_open(muc_context *ctx, muc_model *model);

/* How many tokens an opened .bdt file's model knows: the last dimension of its logits. */
muc_status muc_blocks_vocabulary(muc_context *ctx, const muc_model *model, uint32_t *out);

/* The graph of an opened .bdt file; it borrows the file's bytes. */
muc_status muc_blocks_graph(muc_context *ctx, const muc_model *model, muc_graph **out);

#endif

/* bdt_model.h - what a .bdt file holds (docs/FORMAT-bdt.md): a graph with its weights as blocks. */
#ifndef MUC_RUN_BLOCKS_H
#define MUC_RUN_BLOCKS_H

#include "run/opened_model.h"
#include "graph/graph.h"

/* Writes a graph whose matrices carry sequences and whose other constants are float32. */
muc_status muc_blocks_write(muc_context *ctx, const muc_model *model, const muc_graph *graph,
                            const char *path);

/* Opens model->file: fills blocks, tokens, tokenizer and prompt template. */
muc_status muc_blocks_open(muc_context *ctx, muc_model *model);

/* How many tokens an opened .bdt file's model knows: the last dimension of its logits. */
muc_status muc_blocks_vocabulary(muc_context *ctx, const muc_model *model, uint32_t *out);

/* The graph of an opened .bdt file; it borrows the file's bytes. */
muc_status muc_blocks_graph(muc_context *ctx, const muc_model *model, muc_graph **out);

#endif

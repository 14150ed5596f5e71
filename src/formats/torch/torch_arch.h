/* torch_arch.h - a network's description as text, which gives weights their places. docs/TORCH.md
 */
#ifndef MUC_TORCH_ARCH_H
#define MUC_TORCH_ARCH_H

#include "formats/state_dict.h"
#include "graph/graph.h"

enum { MUC_ARCH_MAX_WORDS = 16, MUC_ARCH_MAX_BLOCKS = 64 };

/* A line without its comment. */
typedef struct muc_arch_line {
    uint32_t number, count;
    const char *words[MUC_ARCH_MAX_WORDS];
} muc_arch_line;

/* "block NAME PARAMETER..", its lines up to "end". */
typedef struct muc_arch_block {
    const muc_arch_line *head;
    uint32_t first, end;
} muc_arch_block;

typedef struct muc_arch_text {
    const char *file;
    muc_arch_line *lines;
    uint32_t line_count, block_count;
    muc_arch_block blocks[MUC_ARCH_MAX_BLOCKS];
} muc_arch_text;

/* Lines and blocks; what is between the blocks is the network. Copies what it keeps to arena. */
muc_status muc_arch_parse(muc_context *ctx, muc_arena *arena, muc_bytes bytes, muc_arch_text *out);
/* The described network with the state's weights; constants borrow from state. */
muc_status muc_arch_build(const muc_arch_text *text, muc_torch_state *state, muc_graph *graph);

#endif

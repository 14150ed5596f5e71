/* golden.h - what a session in the machine's arithmetic keeps beside a float32 one. */
#ifndef MUC_REF_GOLDEN_H
#define MUC_REF_GOLDEN_H

#include "ref/golden/bd_golden.h"
#include "ref/kernels.h"
#include "ref/golden/uthinker_golden.h"

typedef struct muc_golden_node {
    const muc_ref_terms *of_layer; /* in the session's own memory */
    unsigned terms;                /* LINEAR: of its activations */
    bool absorbed;                 /* LINEAR: an addition computes it */
    const muc_node *linear;        /* ADD: the node that it absorbs, or NULL */
    muc_golden_block *keys;        /* ATTENTION: [kv_heads][context][blocks of a head] */
    muc_golden_block *values;      /* ATTENTION: [kv_heads][whole chunks][head_dim][2], packed */
} muc_golden_node;

struct muc_golden {
    const muc_graph *graph;
    muc_arena arena;
    muc_ref_terms terms;
    muc_golden_node *nodes;     /* [node_count] */
    muc_golden_matrix *weights; /* [tensor_count]; without sequence where there is none */
    muc_golden_block *blocks;   /* scratch of the node at work */
    size_t block_capacity;
    float *seen; /* scores and weights of the last attention, if the probe wants them */
    muc_ref_slots_probe *probe;
    void *probe_arg;
};

/* Finds each node's stage. Sequences are decoded, and checked, where they are used. */
muc_status muc_golden_new(muc_context *ctx, const muc_graph *graph, const muc_ref_terms *terms,
                          muc_golden **out);
void muc_golden_free(muc_golden *golden); /* NULL is fine */
void muc_golden_reset(muc_golden *golden);
/* NULL where the machine has no stage. */
muc_ref_kernel *muc_golden_kernel_of(const muc_node *node);
/* What the machine has where the node differs, as "has no such operator"; NULL: nothing differs. */
const char *muc_golden_refusal(const muc_node *node);
/* Whether it is one of a feed-forward layer's activations. */
bool muc_golden_activates(muc_op op);

/* Room for count blocks in golden->blocks, whose content is lost. */
muc_status muc_golden_reserve(muc_context *ctx, muc_golden *golden, size_t count);
/* Encodes rows of k values (stride apart) into out[rows][muc_golden_blocks(k)]; tells the probe. */
muc_status muc_golden_quantize(const muc_ref_call *call, const float *x, size_t rows, size_t k,
                               unsigned terms, muc_golden_block *out);
/* CAP's tanh. */
float muc_golden_tanh(float t);

#endif

/* match_llama.h - a graph recognised as a Llama: what the lowering works from.
 *
 * Matched node by node (match_llama.c), never read from a model's configuration: a graph that
 * computes something else is refused with the name of the node where it departs.
 */
#ifndef MUC_UTHINKER_MODEL_H
#define MUC_UTHINKER_MODEL_H

#include "base/arena.h"
#include "graph/graph.h"

/* Matrix kinds in the order of region WGTS: name, rows (reduction axis), columns of a layer */
#define MUC_UTHINKER_MATRICES(X) \
    X(EMBEDDING, "embedding") \
    X(HEAD, "head") \
    X(DOWN, "down") \
    X(GATE, "gate") \
    X(UP, "up") \
    X(O, "o") \
    X(Q, "q") \
    X(K, "k") \
    X(V, "v")

typedef enum muc_matrix_kind {
#define MUC_UTHINKER_MATRIX(id, name) MUC_MATRIX_##id,
    MUC_UTHINKER_MATRICES(MUC_UTHINKER_MATRIX)
#undef MUC_UTHINKER_MATRIX
        MUC_MATRIX_COUNT
} muc_matrix_kind;

const char *muc_matrix_name(muc_matrix_kind kind);

/* What a layer may have besides its matrices and the two gains before them, in the order of a row
 * of region PARM: name, number of elements, meaning. d, f, q and kv: all columns of the residual,
 * of gate, of Q, of K; qn and kn: q and kv, or those of a head. */
#define MUC_UTHINKER_VECTORS(X) \
    X(Q_BIAS, q, "bias of Q") \
    X(K_BIAS, kv, "bias of K") \
    X(V_BIAS, kv, "bias of V") \
    X(O_BIAS, d, "bias of O") \
    X(GATE_BIAS, f, "bias of gate") \
    X(UP_BIAS, f, "bias of up") \
    X(DOWN_BIAS, d, "bias of down") \
    X(Q_NORM, qn, "gain of each head of Q, or of all of them together") \
    X(K_NORM, kn, "gain of each head of K, or of all of them together") \
    X(O_NORM, d, "gain of what O gives, before it is added to the residual") \
    X(DOWN_NORM, d, "gain of what down gives, before it is added to the residual")

typedef enum muc_vector_kind {
#define MUC_UTHINKER_VECTOR(id, elements, meaning) MUC_VECTOR_##id,
    MUC_UTHINKER_VECTORS(MUC_UTHINKER_VECTOR)
#undef MUC_UTHINKER_VECTOR
        MUC_VECTOR_COUNT
} muc_vector_kind;

/* A matrix as a BlockDialect sequence (docs/SPEC-blockdialect.md section 5), borrowed; or, where
 * shapes alone are known, NULL and the fewest bytes of one without blocks of zeros. Of some rows of
 * a matrix (split_rows.h) only the index lies at `sequence`, and the blocks in the whole. */
typedef struct muc_uthinker_weight {
    const char *name;
    const uint8_t *sequence;
    uint64_t bytes;
    const uint8_t *whole;         /* the sequence that has the blocks; NULL: this one */
    uint32_t first, down, stride; /* tiles of a column: above this part, in it, in the whole */
    uint64_t resting; /* of the whole, or the sequence: the bytes that muc_large_rest takes, or 0 */
} muc_uthinker_weight;

typedef struct muc_uthinker_model {
    const char *source; /* what messages are about: the graph's name, borrowed */
    uint32_t layers, width, heads, kv_heads, head_width, ffn_width, vocabulary;
    /* that have weights of their own: each is run layers / own_layers times in a row, and every run
     * has caches of its own */
    uint32_t own_layers;
    uint32_t context;            /* positions that RoPE tables and caches have rows for */
    uint32_t ffn_parts, o_parts; /* of rows that down and o come in: 1, or see split_rows.h */
    bool tied;                   /* the head is the embedding; it has no weights of its own */
    float epsilon, scale;
    bool gelu;        /* the gate's activation is GELU by tanh, not SiLU */
    bool input_norms; /* Q, K, V, gate and up take norms of the residual; else what it is */
    bool whole_norms; /* Q and K are normalised over all their heads together */
    uint32_t rotary;  /* elements of a head that RoPE turns, its first */
    /* 1: none: of the tokens' rows, of what O and down give, of the logits */
    float embedding_factor, residual_factor, logit_factor;
    /* CAP's operands for scores and logits; cap 0: none. Capped scores are scaled already */
    float score_factor, score_cap, logit_uncap, logit_cap;
    /* [own_layers * parts], or [1] for EMBEDDING and HEAD; k rows and n columns by kind */
    muc_uthinker_weight *weights[MUC_MATRIX_COUNT];
    const float *gain_attention, *gain_ffn; /* [own_layers][width]; without input_norms none */
    const float *gain_final;                /* [width] */
    uint32_t angles;                        /* tables of RoPE, 1 or more */
    const float *rope;                      /* [angles][context][rotary]: cosines, then sines */
    /* [layers + 1], sums over the layers before: of positions that a query sees, no more than
     * context; of the layer's table of RoPE. NULL: they see everything; all have the first one. */
    const uint32_t *windows, *angle_sums;
    /* Elements of each vector, 0 where the model has none, and of all of them; [own_layers][all].
     */
    uint32_t vector_elements[MUC_VECTOR_COUNT], row_elements;
    const float *vectors;
} muc_uthinker_model;

/* Rows and columns of one layer's matrix, or part of it, of a kind, and how many there are. */
typedef struct muc_matrix_shape {
    uint32_t k, n, count;
} muc_matrix_shape;
muc_matrix_shape muc_uthinker_matrix_shape(const muc_uthinker_model *model, muc_matrix_kind kind);

/* Recognises the graph. The result lives in arena and borrows sequences from the graph. Fails with
 * MUC_UNSUPPORTED naming the node that no stage of the schedule computes. */
muc_status muc_uthinker_match(muc_context *ctx, muc_arena *arena, const muc_graph *graph,
                              muc_uthinker_model *out);
/* The same before the weights are quantized: looks at no value of any constant, and the result has
 * none (gains, rope and vectors are NULL). */
muc_status muc_uthinker_match_shapes(muc_context *ctx, muc_arena *arena, const muc_graph *graph,
                                     muc_uthinker_model *out);

#endif

/* uthinker_layout.h - every size, address and offset of one compiled model; no instruction.
 *
 * SPEC.md section 8 says what the places and regions are; this fixes where they lie. The lowering,
 * and any other compiler of the same schedule, takes all numbers from here.
 */
#ifndef MUC_UTHINKER_LAYOUT_H
#define MUC_UTHINKER_LAYOUT_H

#include "base/arena.h"
#include "mur.h"
#include "targets/uthinker/isa/layer_facts.h"
#include "targets/uthinker/lower/split_rows.h"
#include "targets/uthinker/machines/uthinker_machine.h"

typedef struct muc_uthinker_options {
    muc_uthinker_terms terms;              /* of all layers, or (in a layout) the most of any */
    const muc_uthinker_terms *layer_terms; /* [layers], borrowed; NULL: all have the same */
    bool recompute;           /* attention computes K anew for every chunk: no K cache */
    uint32_t context;         /* most positions; 0: as many as the model was made for */
    uint32_t rows;            /* most tokens in one call; 0: as many as fit the machine */
    muc_uthinker_split split; /* ffn_parts 0: what the clock finds best */
    bool unrotated;           /* a stage's first load is issued at its begin, for comparison */
} muc_uthinker_options;

/* Steps of a pass through the model, in order: what lifetimes are made of. */
typedef enum muc_uthinker_step {
    MUC_STEP_EMBED,
    MUC_STEP_NORM,
    MUC_STEP_Q, /* Q .. ATTENTION repeat for every kv head, NORM .. DOWN for every layer */
    MUC_STEP_K,
    MUC_STEP_V,
    MUC_STEP_ATTENTION,
    MUC_STEP_O,
    MUC_STEP_NORM2,
    MUC_STEP_FFN,
    MUC_STEP_DOWN,
    MUC_STEP_FINAL,
    MUC_STEP_HEAD,
} muc_uthinker_step;

/* name, buffer, first and last step, meaning with its shape: slots in I0 and I1, binary32 in GB */
#define MUC_UTHINKER_PLACES(ROW) \
    ROW(X, I0, NORM, ATTENTION, "[rows][d], normalised; to O if it goes by head") \
    ROW(XC, I0, ATTENTION, ATTENTION, "[tokens][d], a chunk of X (recompute only)") \
    ROW(A, I0, O, O, "[rows][H hd], or [rows][G hd], attention's result") \
    ROW(H, I0, FFN, DOWN, "[rows][F / passes]") \
    ROW(Q, I1, Q, ATTENTION, "[rows G][hd], [M G][hd] if rows is 1, as are ML and OA") \
    ROW(P, I1, ATTENTION, ATTENTION, "[tile G][tokens], probabilities") \
    ROW(N, I1, NORM2, HEAD, "[rows][d], normalised") \
    ROW(RES, GB, EMBED, FINAL, "[rows][d], residual") \
    ROW(TB, GB, EMBED, DOWN, "[angles][rows][rotary], RoPE rows") \
    ROW(GN, GB, NORM, FINAL, "[gain rows][d], gains") \
    ROW(OT, GB, Q, DOWN, "[rows][d], what O or down gives, if that is not added as it is") \
    ROW(EX, GB, NORM, DOWN, "the layer's row of vectors: biases and gains that few models have") \
    ROW(QA, GB, Q, ATTENTION, "[rows][H hd], Q of all heads, if they are normalised together") \
    ROW(KA, GB, Q, ATTENTION, "[rows][KV hd], K of all heads, likewise") \
    ROW(QF, GB, Q, Q, "[rows][M G hd], M kv heads being made at once; to ATTENTION if all are") \
    ROW(KF, GB, K, ATTENTION, "[rows][M hd]") \
    ROW(VT, GB, Q, ATTENTION, \
        "[tokens + rows][M hd] ([tokens][M hd] if rows is 1), values of unfinished chunks; to O " \
        "if it goes by head") \
    ROW(SC, GB, ATTENTION, ATTENTION, "[tile G][tokens], scores") \
    ROW(ML, GB, ATTENTION, ATTENTION, "[rows G][2], state of the softmax") \
    ROW(OA, GB, ATTENTION, ATTENTION, "[rows G][hd]; to O if it goes by head") \
    ROW(TC, GB, ATTENTION, ATTENTION, "[tokens][rotary], RoPE rows of a chunk (recompute only)") \
    ROW(KC, GB, ATTENTION, ATTENTION, "[tokens][hd], keys of a chunk (recompute only)") \
    ROW(AT, GB, Q, O, "[rows][H hd], attention's result; where OA is, if O goes by head") \
    ROW(GA, GB, FFN, FFN, "[rows][columns of a gate chunk]") \
    ROW(UP, GB, FFN, FFN, "[rows][columns of a gate chunk]") \
    ROW(LG, GB, HEAD, HEAD, "[columns of a head chunk]")

typedef enum muc_uthinker_place {
#define MUC_UTHINKER_PLACE(name, buffer, first, last, meaning) MUC_PLACE_##name,
    MUC_UTHINKER_PLACES(MUC_UTHINKER_PLACE)
#undef MUC_UTHINKER_PLACE
        MUC_PLACE_COUNT
} muc_uthinker_place;

/* Steps of attention in a group, at most; a power of two. Each is written out. */
enum { MUC_UTHINKER_MOST_STEPS = 8 };

/* What one entry makes of the on-chip buffers; they keep nothing from call to call. */
typedef struct muc_uthinker_chip {
    uint32_t rows;       /* most tokens of a call */
    uint32_t tile;       /* of attention: aligned tokens whose queries are worked on together */
    uint32_t value_rows; /* rows of VT */
    uint32_t steps;      /* of attention whose keys and values are loaded together, 1 or more */
    uint32_t key_rows;   /* tokens that the half with their keys has room for */
    bool apart;          /* GN, VT and LG have GB's upper bank for themselves */
    bool residual_apart; /* RES has a bank that no DMA touches but at a call's begin */
    bool late;           /* the split's, if a call may have more than one token */
    bool exchanged;      /* N lies in I0 and H in I1 */
    uint32_t address[MUC_PLACE_COUNT]; /* bytes in the place's buffer */
} muc_uthinker_chip;

/* One matrix kind's sequence in WGTS and its chunks. */
typedef struct muc_uthinker_matrix {
    uint32_t offset, bytes; /* of the sequence in WGTS */
    uint32_t tiles;         /* of all layers */
    uint32_t k, n;          /* rows, of a part; columns of what a stream covers */
    uint32_t streams;       /* that a matrix has: a kv head's for q, k, v, a pass's for gate, up */
    uint32_t chunk, chunks; /* columns of a chunk; chunks of a stream, the last with the rest */
    uint32_t most, most_last; /* bytes of the longest chunk: of those before a last one, of last */
    uint32_t table;           /* number of its table; the untied embedding has none: UINT32_MAX */
    uint32_t table_count;     /* layers * parts * streams * chunks + 1 */
    const uint32_t *table_data; /* offsets in WGTS: layer, part or stream, chunk; and the end */
} muc_uthinker_matrix;

typedef struct muc_uthinker_layout {
    const char *source; /* the model's */
    muc_uthinker_machine machine;
    muc_uthinker_options options; /* with context and rows resolved, never 0 */
    uint32_t layers, width, heads, kv_heads, head_width, ffn_width, vocabulary;
    uint32_t own_layers; /* the model's */
    bool tied;
    uint32_t ffn_parts, o_parts;         /* the model's */
    uint32_t heads_made;                 /* kv heads whose Q, K and V are made at once: 1, or all */
    uint32_t gain_rows;                  /* in GN: 1, or all that there are */
    uint32_t group;                      /* heads / kv_heads */
    uint32_t slabs;                      /* of tile_k elements in a head, the last may have fewer */
    bool gelu, input_norms, whole_norms; /* the model's */
    uint32_t rotary;                     /* the model's */
    uint32_t angles;                     /* the model's, as are these: */
    const uint32_t *windows, *angle_sums;
    /* binary32 bits: of all norms, of scores (1 if they are capped), and the model's factors */
    uint32_t epsilon, scale, embedding_factor, residual_factor, logit_factor;
    uint32_t score_factor, score_cap, logit_uncap, logit_cap;
    uint32_t padded_context; /* context rounded up to whole steps of tokens */

    muc_uthinker_chip decode, prefill;
    uint32_t used_bytes[MUR_BUFFERS];  /* peak of each buffer in either */
    uint32_t bound_bytes[MUR_BUFFERS]; /* that no placement can beat */

    /* offsets in region KV; room: SPEC.md section 8 */
    uint32_t k_cache, v_cache, v_tail, x_cache, kv_bytes;
    uint32_t tokens, embedded, logits, choice, io_bytes;                      /* in IO */
    uint32_t rope, gain_attention, gain_final, gain_ffn, vectors, parm_bytes; /* in PARM */
    uint32_t vector_elements[MUC_VECTOR_COUNT], row_elements;                 /* the model's */
    uint32_t wgts_bytes;
    muc_uthinker_matrix matrix[MUC_MATRIX_COUNT];
    uint32_t table_count;
} muc_uthinker_layout;

const char *muc_uthinker_buffer_name(enum mur_buffer buffer); /* "I0" */
enum mur_buffer muc_uthinker_place_buffer(const muc_uthinker_chip *chip, muc_uthinker_place place);
/* B(k, terms) of SPEC.md section 3. */
uint32_t muc_uthinker_slots_bytes(uint32_t k, uint32_t terms);
/* Bytes of a row of keys in all slabs before slab s; all of it if s is the number of slabs. */
uint32_t muc_uthinker_key_bytes(const muc_uthinker_layout *layout, const muc_uthinker_terms *terms,
                                uint32_t s);
/* Elements of slab s: min(tile_k, head_width - tile_k s). */
uint32_t muc_uthinker_slab(const muc_uthinker_layout *layout, uint32_t s);

const muc_uthinker_terms *muc_uthinker_terms_of(const muc_uthinker_layout *layout, uint32_t layer);
/* Columns of Q, and of K and V, that are made at once. */
uint32_t muc_uthinker_query_columns(const muc_uthinker_layout *layout);
uint32_t muc_uthinker_key_columns(const muc_uthinker_layout *layout);
/* Whether a call's queries of all kv heads that are made at once are kept, as those of one token.
 */
bool muc_uthinker_keeps_queries(const muc_uthinker_layout *layout, const muc_uthinker_chip *chip);
/* The first layer after `layer` with other terms, or the number of layers. */
uint32_t muc_uthinker_run_end(const muc_uthinker_layout *layout, uint32_t layer);

/* Where a layer's part of each cache begins in region KV. */
typedef struct muc_uthinker_caches {
    uint64_t k, v, x;
} muc_uthinker_caches;
muc_uthinker_caches muc_uthinker_caches_of(const muc_uthinker_layout *layout, uint32_t layer);

enum { MUC_UTHINKER_ONE = 0x3f800000 }; /* binary32 */
/* Whether what O and down give is normalised or scaled before it is added to the residual. */
bool muc_uthinker_adds_apart(const muc_uthinker_layout *layout);

/* Tiles of a matrix of k rows and n columns. */
uint64_t muc_uthinker_tiles(const muc_uthinker_machine *machine, uint32_t k, uint32_t n);

/* Finds the most rows that fit and lays everything out. Tables live in arena. Fails with MUC_NOFIT
 * naming what does not fit and by how many bytes. */
muc_status muc_uthinker_lay_out(muc_context *ctx, muc_arena *arena, const muc_uthinker_model *model,
                                const muc_uthinker_machine *machine,
                                const muc_uthinker_options *options, muc_uthinker_layout *out);

/* The same with the fewest bytes, for a model matched by its shapes: the narrowest chunks and,
 * unless they are asked for, one row. What does not fit so fits in no way. Without tables and
 * addresses. */
muc_status muc_uthinker_lay_out_least(muc_context *ctx, const muc_uthinker_model *model,
                                      const muc_uthinker_machine *machine,
                                      const muc_uthinker_options *options,
                                      muc_uthinker_layout *out);

#endif

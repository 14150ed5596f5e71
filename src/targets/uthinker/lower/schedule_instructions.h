/* schedule_instructions.h - the instructions that lower_llama.c writes a schedule with. Private to
 * the two. */
#ifndef MUC_UTHINKER_SCHEDULE_INSTRUCTIONS_H
#define MUC_UTHINKER_SCHEDULE_INSTRUCTIONS_H

#include "targets/uthinker/lower/template_ir.h"
#include "targets/uthinker/lower/uthinker_layout.h"

/* halves of W buffers; what fills a whole buffer counts as its first half */
enum { W0A, W0B, W1A, W1B, NO_HALF };
/* Or-ed to a half: what an instruction of ACC does to what a DMA shares of GB, or that it touches
 * nothing of GB but RES. */
enum { READS_SHARED = 8, WRITES_SHARED = 16, WRITES_RESIDUAL = 32, HALF_MASK = 7 };
/* SPEC.md section 8's tokens; 0 to 3 are the halves', filled */
enum { TOKEN_FREE = 4, TOKEN_FILLED = 6, TOKEN_ACC = 7, TOKEN_ST = 8 };

typedef struct lowering {
    const muc_uthinker_layout *y;
    const muc_uthinker_chip *chip; /* of the entry */
    muc_ir_builder ir;
    muc_expr_pool *pool;
    const char *stage;
    uint32_t tokens; /* of a chunk: 64, unless the machine has another step of attention */
    uint32_t tables[MUC_MATRIX_COUNT];
    uint32_t windows, angles; /* tables, if the layout has them */
    muc_expr m, pos, end, logits;
    muc_expr past; /* pos / 64: whole chunks before the one with this call's first token */
    muc_expr in;   /* pos % 64: where in its chunk that token is */
    muc_expr mG;   /* rows of queries: m G */
    /* of the layer: positions that a query sees, if some see not all; steps before the first that
     * a token of this call sees; from there on, positions and steps before the call's first token;
     * its table of RoPE */
    muc_expr window, origin, near, near_steps, angle;
    muc_expr l, h;   /* layer, kv head */
    muc_expr f;      /* pass of the feed-forward part */
    muc_expr stream; /* l KV + h: of tails of values */
    /* Of layers one after the other with the same terms: */
    const muc_uthinker_terms *terms;
    muc_uthinker_caches caches; /* of the first of them */
    muc_expr run_l, run_stream; /* l and l KV + h, counted from there */
    muc_expr own;               /* the layer among those with weights of their own */
    muc_expr head;              /* own KV + h: of weights */
    uint32_t made_head;         /* the kv head's number among those that are made at once */
    muc_expr pass;   /* the feed-forward part's: own ffn_parts + its number in the layer */
    uint32_t buffer; /* 0 or 1: the W buffer with the first chunk of the stage at hand */
    /* where stages are unrotated: the load that the stage at hand is to begin with, or NULL */
    void (*unrotated)(struct lowering *lo, uint32_t buffer);
} lowering;

/* ---- short names for expressions ---- */

static inline muc_expr num(lowering *lo, uint64_t value)
{
    if (value > UINT32_MAX)
        lo->ir.status = muc_fail(lo->ir.ctx, MUC_NOFIT, "uthinker", MUC_NO_OFFSET,
                                 "%s: an offset beyond 32 bits", lo->stage);
    return muc_expr_const(lo->pool, (uint32_t)value);
}

static inline muc_expr add(lowering *lo, muc_expr a, muc_expr b)
{
    return muc_expr_add(lo->pool, a, b);
}

static inline muc_expr add_num(lowering *lo, muc_expr a, uint64_t b)
{
    return add(lo, a, num(lo, b));
}

static inline muc_expr times(lowering *lo, muc_expr a, uint64_t b)
{
    return muc_expr_mul(lo->pool, a, num(lo, b));
}

/* a - b, 0 if b is larger */
static inline muc_expr less(lowering *lo, muc_expr a, muc_expr b)
{
    return muc_expr_sub(lo->pool, a, b);
}

static inline muc_expr at_most(lowering *lo, muc_expr a, muc_expr b)
{
    return muc_expr_min(lo->pool, a, b);
}

static inline uint32_t half_address(const lowering *lo, uint32_t half)
{
    return half % 2 * (lo->y->machine.buffer_bytes[half < W1A ? MUR_W0 : MUR_W1] / 2);
}

static inline muc_expr half_buffer(lowering *lo, uint32_t half)
{
    return num(lo, half < W1A ? MUR_W0 : MUR_W1);
}

/* the address of a place in GB, in words */
static inline uint64_t word(const lowering *lo, muc_uthinker_place place)
{
    return lo->chip->address[place] / 4;
}

static inline uint64_t slots(uint32_t k, uint32_t terms)
{
    return muc_uthinker_slots_bytes(k, terms);
}

/* first + more, in two parts so that neighbours share what is made of the first */
typedef struct numbered {
    muc_expr first;
    uint32_t more;
} numbered;

/* number * factor + start */
static inline muc_expr scaled(lowering *lo, numbered number, uint64_t factor, muc_expr start)
{
    return add_num(lo, add(lo, start, times(lo, number.first, factor)), number.more * factor);
}

static inline numbered numbered_const(lowering *lo, uint32_t number)
{
    return (numbered){ num(lo, 0), number };
}

/* ---- instructions ---- */

typedef struct field_value {
    uint32_t field;
    muc_expr value;
} field_value;

/* MM's left operand: rows of k values in T terms, `pitch` apart */
typedef struct left_operand {
    muc_uthinker_place place;
    muc_expr addr, rows, k;
    uint64_t pitch;
    uint32_t terms;
} left_operand;

/* its right operand: cols columns in wlen bytes at addr of a half's buffer */
typedef struct right_operand {
    uint32_t half;
    muc_expr addr, cols, wlen;
} right_operand;

#define FIELD(insn, name, value) \
    { \
        MUC_FIELD_##insn##_##name, (value) \
    }
/* Every field that is not given is 0. use: the half of a W buffer that it touches, or NO_HALF, and
 * READS_SHARED or WRITES_SHARED. */
#define EMIT(lo, insn, use, ...) \
    muc_schedule_emit(lo, MUC_INSN_##insn, use, (const field_value[]){ __VA_ARGS__ }, \
                      MUC_COUNT(((const field_value[]){ __VA_ARGS__ })))

/* Opens a For, unless its body would never run. variable may be NULL. */
bool muc_schedule_begin_for(lowering *lo, const char *name, muc_expr count, muc_expr *variable);
void muc_schedule_emit(lowering *lo, uint32_t op, uint32_t use, const field_value *values,
                       size_t count);
/* at: bytes from where the half begins */
void muc_schedule_load_half(lowering *lo, uint32_t half, uint32_t at, enum mur_region region,
                            muc_expr off, muc_expr len);
/* to region KV; addr: in the half's buffer */
void muc_schedule_store_half(lowering *lo, uint32_t half, muc_expr addr, muc_expr off,
                             muc_expr len);
void muc_schedule_load_place(lowering *lo, muc_uthinker_place place, enum mur_region region,
                             muc_expr off, muc_expr len);
void muc_schedule_store_place(lowering *lo, muc_uthinker_place place, muc_expr addr,
                              enum mur_region region, muc_expr off, muc_expr len);
/* to rows from daddr on of a place in GB */
void muc_schedule_mm(lowering *lo, const left_operand *left, const right_operand *right,
                     muc_uthinker_place to, muc_expr daddr, muc_expr dpitch, muc_expr acc);
/* whole rows of a place of k values a row, from its first */
left_operand muc_schedule_rows_of(lowering *lo, muc_uthinker_place place, muc_expr rows, uint32_t k,
                                  uint32_t terms);
/* Rows of gains are numbered as in PARM: of attention, the final one, of feed-forward parts. As
 * many of them as GB has room for, from row `row` on; and the norm by one of them. */
void muc_schedule_load_gains(lowering *lo, muc_expr row);
void muc_schedule_norm(lowering *lo, muc_expr saddr, muc_expr rows, muc_expr gain,
                       muc_uthinker_place to, uint32_t terms);
/* CAP of `rows` rows of k values; shared: as muc_schedule_scale's */
void muc_schedule_cap(lowering *lo, muc_expr saddr, muc_expr rows, muc_expr k, uint64_t spitch,
                      uint32_t factor, uint32_t cap, uint32_t shared);
/* whether the layers have such a vector, and its first word in GB.EX */
bool muc_schedule_has(const lowering *lo, muc_vector_kind kind);
uint64_t muc_schedule_vector(const lowering *lo, muc_vector_kind kind);
/* SCALE of `rows` rows of k values at saddr to daddr; shared: WRITES_SHARED if that place is */
void muc_schedule_scale(lowering *lo, muc_expr saddr, uint64_t spitch, muc_expr rows, uint64_t k,
                        muc_expr daddr, uint64_t dpitch, uint32_t factor, bool acc,
                        uint32_t shared);
/* RMS of rows of k values at saddr to daddr, by the gain at word gaddr of GB.EX */
void muc_schedule_rms(lowering *lo, muc_expr saddr, muc_expr rows, uint64_t k, uint64_t gaddr,
                      muc_expr daddr, bool acc);
/* A bias, if the layers have one: `columns` words of it from word `from` on, to `rows` rows of a
 * place, as wide, from row `first` on. The products that follow are added to it, or acc adds it. */
void muc_schedule_bias(lowering *lo, muc_vector_kind kind, muc_expr from, muc_uthinker_place place,
                       muc_expr first, muc_expr rows, uint64_t columns, bool acc);
/* the norm of each head in place, if the layers have one */
void muc_schedule_norm_heads(lowering *lo, muc_vector_kind kind, muc_uthinker_place place,
                             muc_expr rows);
/* table: the word in GB where its rows begin. Of heads that turn in part, one after the other. */
void muc_schedule_rope(lowering *lo, muc_uthinker_place place, muc_expr table, muc_expr rows,
                       uint32_t heads);
/* the word in GB of the layer's RoPE rows of this call's tokens */
muc_expr muc_schedule_angles(lowering *lo);
/* rows of k values, `spitch` words apart, to slots in I0 or I1; shared: READS_SHARED if a DMA has
 * filled the place */
void muc_schedule_quant(lowering *lo, muc_uthinker_place from, muc_expr rows, uint32_t k,
                        uint64_t spitch, muc_uthinker_place to, uint32_t terms, uint32_t shared);
/* The kv head's queries, of those that are made at once, from QF to Q: for each of its heads the
 * rows of all tokens. */
void muc_schedule_quant_queries(lowering *lo);
/* slab s of keys to addr of a half's buffer */
void muc_schedule_quant_keys(lowering *lo, muc_uthinker_place from, muc_expr rows, uint32_t s,
                             uint32_t half, muc_expr addr);
/* `rows` rows of VT from row `first`, as a step of values, to addr of a half's buffer */
void muc_schedule_pack_values(lowering *lo, muc_expr first, muc_expr rows, uint32_t half,
                              muc_expr addr);

#endif

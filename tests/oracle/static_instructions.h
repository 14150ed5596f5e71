/* static_instructions.h - the instructions that static_uthinker.c writes, packed by mur_isa.def. */
#ifndef STATIC_INSTRUCTIONS_H
#define STATIC_INSTRUCTIONS_H

#include "oracle/static_uthinker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- instructions ---- */

typedef struct bit_field {
    uint32_t word, shift, width;
} bit_field;

enum {
#define MUR_FIELD(insn, name, word, shift, width, unit) insn##_##name,
#include "mur_isa.def"
    FIELDS
};

static const bit_field fields[FIELDS] = {
#define MUR_FIELD(insn, name, word, shift, width, unit) { word, shift, width },
#include "mur_isa.def"
};

enum {
#define MUR_INSN(name, opcode, words, engine, meaning) name = (opcode) | (words) << 8,
#include "mur_isa.def"
};

/* the tokens of SPEC.md's table, W halves being numbered W0a W0b W1a W1b */
enum { W0A, W0B, W1A, W1B, NO_HALF };
enum { TOKEN_FREE = 4, TOKEN_FILLED = 6, TOKEN_OTHER = 7, TOKEN_STORED = 8, NO_TOKEN = -1 };
enum {
    WAIT_ACC = 1 << 4 | 1 << 5 | 1 << 7,
    WAIT_FILLED = 1 << TOKEN_FILLED,
    WAIT_DMA = 1 << TOKEN_FILLED | 1 << TOKEN_STORED
};

typedef struct compiler {
    const muc_uthinker_layout *y;
    const muc_uthinker_chip *chip;
    uint32_t pos, m, end, l, h, pass;
    uint32_t turn; /* 0 or 1: the W buffer that the next load fills */
    uint32_t words[MUR_MAX_WORDS], count;
    static_uthinker_sink *sink;
    void *arg;
} compiler;

static inline void begin(compiler *c, uint32_t instruction, uint32_t wait, uint32_t signal)
{
    memset(c->words, 0, sizeof(c->words));
    c->words[0] = (instruction & 255) | (signal + 1) << 8 | wait << 16;
    c->count = instruction >> 8;
}

static inline void set(compiler *c, int field, uint64_t value)
{
    const bit_field *p = &fields[field];

    if (value >> p->width != 0) {
        fprintf(stderr, "field %d of opcode %02x: %llu does not fit %u bits\n", field,
                c->words[0] & 255, (unsigned long long)value, p->width);
        exit(1);
    }
    c->words[p->word] |= (uint32_t)(value << p->shift);
}

static inline void emit(compiler *c)
{
    c->sink(c->arg, c->words, c->count);
}

static inline const muc_uthinker_terms *terms_of(const compiler *c, uint32_t l)
{
    return c->y->options.layer_terms ? c->y->options.layer_terms + l : &c->y->options.terms;
}

/* B(k, terms) */
static inline uint32_t slots(uint32_t k, uint32_t terms)
{
    uint32_t bytes = 0;

    for (; k >= 32; k -= 32)
        bytes += terms == 2 ? 37 : 19;
    return bytes + (k == 0 ? 0 : 1 + terms * (2 + (k + 1) / 2));
}

static inline uint32_t half_buffer(uint32_t half)
{
    return half < W1A ? MUR_W0 : MUR_W1;
}

static inline uint32_t half_address(const compiler *c, uint32_t half)
{
    return half % 2 ? c->y->machine.buffer_bytes[half_buffer(half)] / 2 : 0;
}

static inline void transfer(compiler *c, uint32_t opcode, uint32_t buffer, uint32_t addr,
                            uint32_t region, uint64_t off, uint64_t len)
{
    if (opcode == LD) {
        set(c, LD_addr, addr);
        set(c, LD_buf, buffer);
        set(c, LD_region, region);
        set(c, LD_off, off);
        set(c, LD_len, len);
    } else {
        set(c, ST_addr, addr);
        set(c, ST_buf, buffer);
        set(c, ST_region, region);
        set(c, ST_off, off);
        set(c, ST_len, len);
    }
    emit(c);
}

/* to `address` of a half's buffer */
static inline void ld_half(compiler *c, uint32_t half, uint32_t address, uint32_t region,
                           uint64_t off, uint64_t len)
{
    begin(c, LD, 1u << (TOKEN_FREE + half / 2), half);
    transfer(c, LD, half_buffer(half), address, region, off, len);
}

static inline void st_half(compiler *c, uint32_t half, uint32_t address, uint64_t off, uint64_t len)
{
    begin(c, ST, 1u << (TOKEN_FREE + half / 2), (uint32_t)NO_TOKEN);
    transfer(c, ST, half_buffer(half), address, MUR_KV, off, len);
}

static inline void ld(compiler *c, uint32_t buffer, uint32_t addr, uint32_t region, uint64_t off,
                      uint64_t len)
{
    begin(c, LD, WAIT_ACC, TOKEN_FILLED);
    transfer(c, LD, buffer, addr, region, off, len);
}

static inline void st(compiler *c, uint32_t buffer, uint32_t addr, uint32_t region, uint64_t off,
                      uint64_t len)
{
    begin(c, ST, WAIT_ACC, TOKEN_STORED);
    transfer(c, ST, buffer, addr, region, off, len);
}

/* what an instruction of ACC waits for of GB; of_shared: if DMA-shared places have a bank */
static inline uint32_t gb_wait(const compiler *c, uint32_t of_shared)
{
    return c->chip->apart ? of_shared : WAIT_DMA;
}

static inline void begin_acc(compiler *c, uint32_t instruction, uint32_t of_shared)
{
    begin(c, instruction, gb_wait(c, of_shared), TOKEN_OTHER);
}

static inline void begin_acc_half(compiler *c, uint32_t instruction, uint32_t half,
                                  uint32_t of_shared)
{
    begin(c, instruction, gb_wait(c, of_shared) | 1u << half, TOKEN_FREE + half / 2);
}

/* byte address in I0, I1 or GB, and the word address in GB */
static inline uint32_t at(const compiler *c, muc_uthinker_place place)
{
    return c->chip->address[place];
}

static inline uint32_t word_at(const compiler *c, muc_uthinker_place place)
{
    return c->chip->address[place] / 4;
}

/* I0 or I1, where N and H lie: either way one in each */
static inline uint32_t buffer_of_n(const compiler *c)
{
    return c->chip->exchanged ? MUR_I0 : MUR_I1;
}

static inline uint32_t buffer_of_h(const compiler *c)
{
    return c->chip->exchanged ? MUR_I1 : MUR_I0;
}

static inline int o_by_head(const compiler *c)
{
    return c->y->o_parts > 1;
}

/* Q, K and V of all kv heads are made before the first one's attention */
static inline int together(const compiler *c)
{
    return c->y->options.split.together && !c->y->options.recompute;
}

/* whether all rows of gains are loaded at the call's begin */
static inline int gains_once(const compiler *c)
{
    return c->y->options.split.gains_once && c->y->input_norms;
}

/* kv heads whose rows of K and V lie beside each other in KF, VT and the V tail */
static inline uint32_t heads_beside(const compiler *c)
{
    return together(c) ? c->y->kv_heads : 1;
}

/* words of a row of them, and where the kv head's columns begin */
static inline uint32_t kv_row(const compiler *c)
{
    return heads_beside(c) * c->y->head_width;
}

static inline uint32_t kv_column(const compiler *c)
{
    return together(c) ? c->h * c->y->head_width : 0;
}

/* heads of queries that lie before the kv head's in Q, ML and OA: one token's are all there */
static inline uint32_t heads_before(const compiler *c)
{
    return together(c) && c->chip->rows == 1 ? c->h * c->y->group : 0;
}

/* columns of gate and up, and rows of down, in one pass */
static inline uint32_t pass_width(const compiler *c)
{
    return c->y->ffn_width / c->y->ffn_parts;
}

typedef struct product {
    uint32_t src, saddr, rows, k, terms, spitch, daddr, dpitch, acc;
    uint32_t shared; /* its result lies in VT or LG */
    uint32_t to_residual;
} product;

/* with wlen bytes at `address` of a half's buffer */
static inline void mm(compiler *c, const product *x, uint32_t half, uint32_t address, uint32_t cols,
                      uint32_t wlen)
{
    if (x->to_residual && c->chip->residual_apart)
        begin(c, MM, 1u << half, TOKEN_FREE + half / 2);
    else
        begin_acc_half(c, MM, half, x->shared ? WAIT_DMA : 0);
    set(c, MM_saddr, x->saddr);
    set(c, MM_rows, x->rows);
    set(c, MM_waddr, address);
    set(c, MM_cols, cols);
    set(c, MM_wlen, wlen);
    set(c, MM_src, x->src);
    set(c, MM_wsrc, half_buffer(half));
    set(c, MM_acc, x->acc);
    set(c, MM_terms, x->terms);
    set(c, MM_daddr, x->daddr);
    set(c, MM_spitch, x->spitch);
    set(c, MM_dpitch, x->dpitch);
    set(c, MM_k, x->k);
    emit(c);
}

/* the gain of a norm: GN has one row, or those of all layers' attention, the last one, and those
 * of all feed-forward parts */
enum gain { OF_ATTENTION, OF_LOGITS, OF_FEED_FORWARD };

static inline uint32_t gain_row(const compiler *c, enum gain of)
{
    uint32_t own = c->y->own_layers, l = c->l * own / c->y->layers;

    return of == OF_ATTENTION ? l : of == OF_LOGITS ? own : own + 1 + l;
}

/* RMSNorm of rows of RES from row `first` */
static inline void norm(compiler *c, uint32_t first, uint32_t rows, enum gain of, uint32_t dst,
                        uint32_t daddr, uint32_t terms)
{
    begin_acc(c, NORM, WAIT_FILLED);
    set(c, NORM_saddr, word_at(c, MUC_PLACE_RES) + first * c->y->width);
    set(c, NORM_rows, rows);
    set(c, NORM_gaddr,
        word_at(c, MUC_PLACE_GN) + (gains_once(c) ? gain_row(c, of) * c->y->width : 0));
    set(c, NORM_dst, dst);
    set(c, NORM_terms, terms);
    set(c, NORM_daddr, daddr);
    set(c, NORM_k, c->y->width);
    set(c, NORM_spitch, c->y->width);
    set(c, NORM_epsilon, c->y->epsilon);
    emit(c);
}

static inline void scale(compiler *c, uint32_t saddr, uint32_t spitch, uint32_t rows, uint32_t k,
                         uint32_t daddr, uint32_t dpitch, uint32_t factor, uint32_t acc,
                         uint32_t shared)
{
    begin_acc(c, SCALE, shared ? WAIT_DMA : WAIT_FILLED);
    set(c, SCALE_saddr, saddr);
    set(c, SCALE_rows, rows);
    set(c, SCALE_daddr, daddr);
    set(c, SCALE_acc, acc);
    set(c, SCALE_k, k);
    set(c, SCALE_spitch, spitch);
    set(c, SCALE_dpitch, dpitch);
    set(c, SCALE_factor, factor);
    emit(c);
}

/* RMSNorm of rows of k words */
static inline void rms(compiler *c, uint32_t saddr, uint32_t rows, uint32_t k, uint32_t gaddr,
                       uint32_t daddr, uint32_t acc)
{
    begin_acc(c, RMS, WAIT_FILLED);
    set(c, RMS_saddr, saddr);
    set(c, RMS_rows, rows);
    set(c, RMS_gaddr, gaddr);
    set(c, RMS_acc, acc);
    set(c, RMS_daddr, daddr);
    set(c, RMS_k, k);
    set(c, RMS_spitch, k);
    set(c, RMS_dpitch, k);
    set(c, RMS_epsilon, c->y->epsilon);
    emit(c);
}

static inline void cap(compiler *c, uint32_t saddr, uint32_t rows, uint32_t k, uint32_t spitch,
                       uint32_t factor, uint32_t most, uint32_t shared)
{
    begin_acc(c, CAP, shared ? WAIT_DMA : 0);
    set(c, CAP_saddr, saddr);
    set(c, CAP_rows, rows);
    set(c, CAP_k, k);
    set(c, CAP_spitch, spitch);
    set(c, CAP_factor, factor);
    set(c, CAP_cap, most);
    emit(c);
}

static inline void rope_heads(compiler *c, uint32_t saddr, uint32_t spitch, uint32_t rows,
                              uint32_t heads, uint32_t table)
{
    begin_acc(c, ROPE, 0);
    set(c, ROPE_saddr, saddr);
    set(c, ROPE_rows, rows);
    set(c, ROPE_taddr, table);
    set(c, ROPE_heads, heads);
    set(c, ROPE_k, c->y->rotary);
    set(c, ROPE_spitch, spitch);
    emit(c);
}

/* heads of which a part turns are turned one by one */
static inline void rope(compiler *c, uint32_t saddr, uint32_t rows, uint32_t heads, uint32_t table)
{
    uint32_t hd = c->y->head_width;

    if (c->y->rotary == hd) {
        rope_heads(c, saddr, heads * hd, rows, heads, table);
        return;
    }
    for (uint32_t g = 0; g < heads; g++)
        rope_heads(c, saddr + g * hd, heads * hd, rows, 1, table);
}

/* to slots of k values, a pitch apart; the caller has begun it */
static inline void quant_apart(compiler *c, uint32_t saddr, uint32_t spitch, uint32_t rows,
                               uint32_t k, uint32_t dst, uint32_t daddr, uint32_t terms,
                               uint32_t dpitch)
{
    set(c, QUANT_saddr, saddr);
    set(c, QUANT_rows, rows);
    set(c, QUANT_daddr, daddr);
    set(c, QUANT_dst, dst);
    set(c, QUANT_terms, terms);
    set(c, QUANT_k, k);
    set(c, QUANT_spitch, spitch);
    set(c, QUANT_dpitch, dpitch);
    emit(c);
}

/* one row after the other */
static inline void quant(compiler *c, uint32_t saddr, uint32_t spitch, uint32_t rows, uint32_t k,
                         uint32_t dst, uint32_t daddr, uint32_t terms)
{
    quant_apart(c, saddr, spitch, rows, k, dst, daddr, terms, slots(k, terms));
}

/* rows of VT from row `first`, to `address` of a half's buffer */
static inline void qpack(compiler *c, uint32_t first, uint32_t rows, uint32_t half,
                         uint32_t address)
{
    uint32_t hd = c->y->head_width;

    begin_acc_half(c, QPACK, half, WAIT_FILLED);
    set(c, QPACK_saddr, word_at(c, MUC_PLACE_VT) + first * kv_row(c) + kv_column(c));
    set(c, QPACK_rows, rows);
    set(c, QPACK_daddr, address);
    set(c, QPACK_cols, hd);
    set(c, QPACK_dst, half_buffer(half));
    set(c, QPACK_terms, terms_of(c, c->l)->v);
    set(c, QPACK_spitch, kv_row(c));
    emit(c);
}

/* Queries of some tokens of the call, the first of them token `first` of it. */
typedef struct tile {
    uint32_t first, tokens;
} tile;

/* positions that a query of the layer sees, its own the last */
static inline uint32_t window(const compiler *c)
{
    return c->y->windows ? c->y->windows[c->l + 1] - c->y->windows[c->l] : c->y->options.context;
}

/* the first step that a token of the call sees */
static inline uint32_t first_step(const compiler *c)
{
    return c->y->windows && c->pos + 1 > window(c) ? (c->pos + 1 - window(c)) / 64 : 0;
}

/* of a tile's first token, in step `step` */
static inline uint32_t hidden(const compiler *c, tile t, uint32_t step)
{
    uint32_t end = c->pos + t.first + 65, begin = 64 * step + window(c);
    uint32_t hide = c->y->windows && end > begin ? end - begin : 0;

    return hide < 128 ? hide : 128;
}

/* probabilities of a step, `keys` of whose scores were made, go to P, `skip` bytes on; half: the
 * one with values that it waits for, or NO_HALF */
static inline void smax(compiler *c, tile t, uint32_t skip, uint32_t step, uint32_t keys,
                        uint32_t valid, uint32_t half)
{
    uint32_t terms = terms_of(c, c->l)->p, query = t.first * c->y->group + heads_before(c);

    if (c->y->score_cap)
        cap(c, word_at(c, MUC_PLACE_SC), t.tokens * c->y->group, keys, 64, c->y->score_factor,
            c->y->score_cap, 0);
    if (half == NO_HALF)
        begin_acc(c, SMAX, 0);
    else
        begin_acc_half(c, SMAX, half, 0);
    set(c, SMAX_saddr, word_at(c, MUC_PLACE_SC));
    set(c, SMAX_rows, t.tokens * c->y->group);
    set(c, SMAX_taddr, word_at(c, MUC_PLACE_ML) + 2 * query);
    set(c, SMAX_group, c->y->group);
    set(c, SMAX_oaddr, word_at(c, MUC_PLACE_OA) + query * c->y->head_width);
    set(c, SMAX_daddr, at(c, MUC_PLACE_P) + skip);
    set(c, SMAX_dst, MUR_I1);
    set(c, SMAX_terms, terms);
    set(c, SMAX_first, step == first_step(c));
    set(c, SMAX_hide, hidden(c, t, step));
    set(c, SMAX_k, c->y->head_width);
    set(c, SMAX_valid, valid);
    set(c, SMAX_scale, c->y->scale);
    set(c, SMAX_dpitch, slots(64, terms));
    emit(c);
}

static inline void divide(compiler *c)
{
    int all = together(c) && c->chip->rows == 1;
    uint32_t hd = c->y->head_width, group = all ? c->y->heads : c->y->group, own = group * hd;
    uint32_t columns = o_by_head(c) || all ? 0 : c->h * own;

    if (all && c->h + 1 < c->y->kv_heads)
        return;
    begin_acc(c, DIV, 0);
    set(c, DIV_saddr, word_at(c, MUC_PLACE_OA));
    set(c, DIV_rows, c->m * group);
    set(c, DIV_taddr, word_at(c, MUC_PLACE_ML));
    set(c, DIV_group, group);
    set(c, DIV_daddr, word_at(c, MUC_PLACE_AT) + columns);
    set(c, DIV_k, hd);
    set(c, DIV_dpitch, o_by_head(c) ? own : c->y->heads * hd);
    emit(c);
}

/* `columns` gated values of each row, the first of them column `from` of the pass */
static inline void glu(compiler *c, uint32_t from, uint32_t columns)
{
    uint32_t terms = terms_of(c, c->l)->h;

    begin_acc(c, GLU, 0);
    set(c, GLU_saddr, word_at(c, MUC_PLACE_GA));
    set(c, GLU_rows, c->m);
    set(c, GLU_uaddr, word_at(c, MUC_PLACE_UP));
    set(c, GLU_dst, buffer_of_h(c));
    set(c, GLU_terms, terms);
    set(c, GLU_gelu, c->y->gelu);
    set(c, GLU_daddr, at(c, MUC_PLACE_H) + slots(from, terms));
    set(c, GLU_k, columns);
    set(c, GLU_dpitch, slots(pass_width(c), terms));
    emit(c);
}

/* ---- vectors ---- */

static inline int has(const compiler *c, muc_vector_kind kind)
{
    return c->y->vector_elements[kind] > 0;
}

/* element `from` of a vector that the layers have, in GB.EX */
static inline uint32_t vector_at(const compiler *c, muc_vector_kind kind, uint32_t from)
{
    uint32_t address = word_at(c, MUC_PLACE_EX) + from;

    for (uint32_t i = 0; i < MUC_VECTOR_COUNT; i++)
        address += i < (uint32_t)kind ? c->y->vector_elements[i] : 0;
    return address;
}

/* columns of a bias, from column `from` on, to rows of as many words */
static inline void bias(compiler *c, muc_vector_kind kind, uint32_t from, uint32_t columns,
                        uint32_t daddr, uint32_t rows, uint32_t acc, uint32_t shared)
{
    if (has(c, kind))
        scale(c, vector_at(c, kind, from), 0, rows, columns, daddr, columns, MUC_UTHINKER_ONE, acc,
              shared);
}

#endif

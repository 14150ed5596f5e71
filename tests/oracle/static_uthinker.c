/* static_uthinker.c - SPEC.md section 8, read aloud in C. */
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
enum { W0A, W0B, W1A, W1B };
enum { TOKEN_EMPTY = 4, TOKEN_FILLED = 8, TOKEN_OTHER = 9, TOKEN_STORED = 10 };
enum { WAIT_ACC = 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 9, WAIT_DMA = 1 << 8 | 1 << 10 };

typedef struct compiler {
    const muc_uthinker_layout *y;
    uint32_t pos, m, end, l, h;
    uint32_t words[MUR_MAX_WORDS], count;
    static_uthinker_sink *sink;
    void *arg;
} compiler;

static void begin(compiler *c, uint32_t instruction, uint32_t wait, uint32_t signal)
{
    memset(c->words, 0, sizeof(c->words));
    c->words[0] = (instruction & 255) | (signal + 1) << 8 | wait << 16;
    c->count = instruction >> 8;
}

static void set(compiler *c, int field, uint64_t value)
{
    const bit_field *p = &fields[field];

    if (value >> p->width != 0) {
        fprintf(stderr, "field %d of opcode %02x: %llu does not fit %u bits\n", field,
                c->words[0] & 255, (unsigned long long)value, p->width);
        exit(1);
    }
    c->words[p->word] |= (uint32_t)(value << p->shift);
}

static void emit(compiler *c)
{
    c->sink(c->arg, c->words, c->count);
}

/* B(k, terms) */
static uint32_t slots(uint32_t k, uint32_t terms)
{
    uint32_t bytes = 0;

    for (; k >= 32; k -= 32)
        bytes += terms == 2 ? 37 : 19;
    return bytes + (k == 0 ? 0 : 1 + terms * (2 + (k + 1) / 2));
}

static uint32_t half_buffer(uint32_t half)
{
    return half < W1A ? MUR_W0 : MUR_W1;
}

static uint32_t half_address(const compiler *c, uint32_t half)
{
    return half % 2 ? c->y->machine.buffer_bytes[half_buffer(half)] / 2 : 0;
}

static void transfer(compiler *c, uint32_t opcode, uint32_t buffer, uint32_t addr, uint32_t region,
                     uint64_t off, uint64_t len)
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

static void ld_half(compiler *c, uint32_t half, uint32_t region, uint64_t off, uint64_t len)
{
    begin(c, LD, 1u << (TOKEN_EMPTY + half), half);
    transfer(c, LD, half_buffer(half), half_address(c, half), region, off, len);
}

static void st_half(compiler *c, uint32_t half, uint64_t off, uint64_t len)
{
    begin(c, ST, 1u << (TOKEN_EMPTY + half), TOKEN_STORED);
    transfer(c, ST, half_buffer(half), half_address(c, half), MUR_KV, off, len);
}

static void ld(compiler *c, uint32_t buffer, uint32_t addr, uint32_t region, uint64_t off,
               uint64_t len)
{
    begin(c, LD, WAIT_ACC, TOKEN_FILLED);
    transfer(c, LD, buffer, addr, region, off, len);
}

static void st(compiler *c, uint32_t buffer, uint32_t addr, uint32_t region, uint64_t off,
               uint64_t len)
{
    begin(c, ST, WAIT_ACC, TOKEN_STORED);
    transfer(c, ST, buffer, addr, region, off, len);
}

static void begin_acc(compiler *c, uint32_t instruction)
{
    begin(c, instruction, WAIT_DMA, TOKEN_OTHER);
}

static void begin_acc_half(compiler *c, uint32_t instruction, uint32_t half)
{
    begin(c, instruction, WAIT_DMA | 1u << half, TOKEN_EMPTY + half);
}

/* byte address in I0, I1 or GB, and the word address in GB */
static uint32_t at(const compiler *c, muc_uthinker_place place)
{
    return c->y->address[place];
}

static uint32_t word_at(const compiler *c, muc_uthinker_place place)
{
    return c->y->address[place] / 4;
}

typedef struct product {
    uint32_t src, saddr, rows, k, terms, spitch, daddr, dpitch, acc;
} product;

static void mm(compiler *c, const product *x, uint32_t half, uint32_t cols, uint32_t wlen)
{
    begin_acc_half(c, MM, half);
    set(c, MM_saddr, x->saddr);
    set(c, MM_rows, x->rows);
    set(c, MM_waddr, half_address(c, half));
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

/* RMSNorm of rows of RES from row `first` */
static void norm(compiler *c, uint32_t first, uint32_t rows, uint32_t dst, uint32_t daddr,
                 uint32_t terms)
{
    begin_acc(c, NORM);
    set(c, NORM_saddr, word_at(c, MUC_PLACE_RES) + first * c->y->width);
    set(c, NORM_rows, rows);
    set(c, NORM_gaddr, word_at(c, MUC_PLACE_GN));
    set(c, NORM_dst, dst);
    set(c, NORM_terms, terms);
    set(c, NORM_daddr, daddr);
    set(c, NORM_k, c->y->width);
    set(c, NORM_spitch, c->y->width);
    set(c, NORM_epsilon, c->y->epsilon);
    emit(c);
}

static void rope(compiler *c, uint32_t saddr, uint32_t rows, uint32_t heads, uint32_t table)
{
    begin_acc(c, ROPE);
    set(c, ROPE_saddr, saddr);
    set(c, ROPE_rows, rows);
    set(c, ROPE_taddr, table);
    set(c, ROPE_heads, heads);
    set(c, ROPE_k, c->y->head_width);
    set(c, ROPE_spitch, heads * c->y->head_width);
    emit(c);
}

/* to slots of k values, one row after the other; the caller has begun it */
static void quant(compiler *c, uint32_t saddr, uint32_t spitch, uint32_t rows, uint32_t k,
                  uint32_t dst, uint32_t daddr, uint32_t terms)
{
    set(c, QUANT_saddr, saddr);
    set(c, QUANT_rows, rows);
    set(c, QUANT_daddr, daddr);
    set(c, QUANT_dst, dst);
    set(c, QUANT_terms, terms);
    set(c, QUANT_k, k);
    set(c, QUANT_spitch, spitch);
    set(c, QUANT_dpitch, slots(k, terms));
    emit(c);
}

/* rows of VT from row `first`, to W0b */
static void qpack(compiler *c, uint32_t first, uint32_t rows)
{
    uint32_t hd = c->y->head_width;

    begin_acc_half(c, QPACK, W0B);
    set(c, QPACK_saddr, word_at(c, MUC_PLACE_VT) + first * hd);
    set(c, QPACK_rows, rows);
    set(c, QPACK_daddr, half_address(c, W0B));
    set(c, QPACK_cols, hd);
    set(c, QPACK_dst, MUR_W0);
    set(c, QPACK_terms, c->y->options.terms.v);
    set(c, QPACK_spitch, hd);
    emit(c);
}

static void smax(compiler *c, uint32_t valid, uint32_t skip, uint32_t first)
{
    uint32_t terms = c->y->options.terms.p;

    begin_acc(c, SMAX);
    set(c, SMAX_saddr, word_at(c, MUC_PLACE_SC));
    set(c, SMAX_rows, c->m * c->y->group);
    set(c, SMAX_taddr, word_at(c, MUC_PLACE_ML));
    set(c, SMAX_group, c->y->group);
    set(c, SMAX_oaddr, word_at(c, MUC_PLACE_OA));
    set(c, SMAX_skip, skip);
    set(c, SMAX_daddr, at(c, MUC_PLACE_P));
    set(c, SMAX_dst, MUR_I1);
    set(c, SMAX_terms, terms);
    set(c, SMAX_first, first);
    set(c, SMAX_k, c->y->head_width);
    set(c, SMAX_valid, valid);
    set(c, SMAX_scale, c->y->scale);
    set(c, SMAX_dpitch, slots(64, terms));
    emit(c);
}

static void divide(compiler *c)
{
    uint32_t hd = c->y->head_width, columns = c->h * c->y->group * hd;

    begin_acc(c, DIV);
    set(c, DIV_saddr, word_at(c, MUC_PLACE_OA));
    set(c, DIV_rows, c->m * c->y->group);
    set(c, DIV_taddr, word_at(c, MUC_PLACE_ML));
    set(c, DIV_group, c->y->group);
    set(c, DIV_daddr, word_at(c, MUC_PLACE_AT) + columns);
    set(c, DIV_k, hd);
    set(c, DIV_dpitch, c->y->heads * hd);
    emit(c);
}

/* `columns` gated values of each row, the first of them column `from` of the feed-forward width */
static void glu(compiler *c, uint32_t from, uint32_t columns)
{
    uint32_t terms = c->y->options.terms.h;

    begin_acc(c, GLU);
    set(c, GLU_saddr, word_at(c, MUC_PLACE_GA));
    set(c, GLU_rows, c->m);
    set(c, GLU_uaddr, word_at(c, MUC_PLACE_UP));
    set(c, GLU_dst, MUR_I0);
    set(c, GLU_terms, terms);
    set(c, GLU_daddr, at(c, MUC_PLACE_H) + slots(from, terms));
    set(c, GLU_k, columns);
    set(c, GLU_dpitch, slots(c->y->ffn_width, terms));
    emit(c);
}

/* ---- matrices ---- */

/* A matrix, or for q, k and v one kv head's columns of it, in chunks. */
typedef struct stream {
    const muc_uthinker_matrix *matrix;
    const uint32_t *offsets; /* of its chunks, and the end */
} stream;

static stream stream_of(const compiler *c, muc_matrix_kind kind)
{
    const muc_uthinker_matrix *x = &c->y->matrix[kind];
    int by_head = kind == MUC_MATRIX_Q || kind == MUC_MATRIX_K || kind == MUC_MATRIX_V;
    int once = kind == MUC_MATRIX_HEAD || kind == MUC_MATRIX_EMBEDDING;
    uint32_t which = once ? 0 : by_head ? c->l * c->y->kv_heads + c->h : c->l;
    stream s = { x, x->table_data + which * x->chunks };

    return s;
}

static uint32_t chunk_bytes(const stream *s, uint32_t i)
{
    return s->offsets[i + 1] - s->offsets[i];
}

static uint32_t chunk_columns(const stream *s, uint32_t i)
{
    uint32_t left = s->matrix->n - i * s->matrix->chunk;

    return left < s->matrix->chunk ? left : s->matrix->chunk;
}

static void ld_chunk(compiler *c, const stream *s, uint32_t i, uint32_t half)
{
    ld_half(c, half, MUR_WGTS, s->offsets[i], chunk_bytes(s, i));
}

/* chunk i to its columns of the product */
static void mm_chunk(compiler *c, const stream *s, uint32_t i, uint32_t half, product x)
{
    x.daddr += i * s->matrix->chunk;
    mm(c, &x, half, chunk_columns(s, i), chunk_bytes(s, i));
}

/* Every chunk is loaded before the product of the one before it, into a and b by turns. */
static void stream_mm(compiler *c, muc_matrix_kind kind, uint32_t a, uint32_t b, product x)
{
    stream s = stream_of(c, kind);

    ld_chunk(c, &s, 0, a);
    for (uint32_t i = 0; i < s.matrix->chunks; i++) {
        if (i + 1 < s.matrix->chunks)
            ld_chunk(c, &s, i + 1, i % 2 ? a : b);
        mm_chunk(c, &s, i, i % 2 ? b : a, x);
    }
}

/* the product with m rows of X */
static product times_x(const compiler *c, uint32_t daddr, uint32_t dpitch)
{
    uint32_t terms = c->y->options.terms.x;

    return (product){ .src = MUR_I0,
                      .saddr = at(c, MUC_PLACE_X),
                      .rows = c->m,
                      .k = c->y->width,
                      .terms = terms,
                      .spitch = slots(c->y->width, terms),
                      .daddr = daddr,
                      .dpitch = dpitch };
}

/* ---- the KV region ---- */

static uint32_t slab_width(const compiler *c, uint32_t s)
{
    uint32_t left = c->y->head_width - 64 * s;

    return left < 64 ? left : 64;
}

static uint32_t head_number(const compiler *c)
{
    return c->l * c->y->kv_heads + c->h;
}

static uint64_t k_cache_row(const compiler *c, uint32_t s, uint32_t token)
{
    uint64_t padded = c->y->padded_context, off = c->y->k_cache;
    uint32_t terms = c->y->options.terms.k;

    for (uint32_t i = 0; i < c->y->slabs; i++) {
        off += padded * head_number(c) * slots(slab_width(c, i), terms);
        if (i < s)
            off += padded * slots(slab_width(c, i), terms);
    }
    return off + (uint64_t)token * slots(slab_width(c, s), terms);
}

static uint32_t v_chunk_bytes(const compiler *c)
{
    return c->y->head_width * slots(64, c->y->options.terms.v);
}

static uint64_t v_cache_chunk(const compiler *c, uint32_t chunk)
{
    uint64_t number = (uint64_t)head_number(c) * (c->y->padded_context / 64) + chunk;

    return c->y->v_cache + number * v_chunk_bytes(c);
}

static uint64_t v_tail_row(const compiler *c, uint32_t row)
{
    return c->y->v_tail + 4 * (uint64_t)c->y->head_width * (64 * (uint64_t)head_number(c) + row);
}

static uint64_t x_cache_row(const compiler *c, uint32_t token)
{
    uint64_t row = (uint64_t)c->l * c->y->padded_context + token;

    return c->y->x_cache + row * slots(c->y->width, c->y->options.terms.x);
}

static uint64_t rope_row(const compiler *c, uint32_t token)
{
    return c->y->rope + 4 * (uint64_t)c->y->head_width * token;
}

/* ---- attention ---- */

static void queries(compiler *c)
{
    uint32_t hd = c->y->head_width, width = c->y->group * hd;
    uint32_t to = word_at(c, MUC_PLACE_QF);

    stream_mm(c, MUC_MATRIX_Q, W0A, W0B, times_x(c, to, width));
    rope(c, to, c->m, c->y->group, word_at(c, MUC_PLACE_TB));
    begin_acc(c, QUANT);
    quant(c, to, hd, c->m * c->y->group, hd, MUR_I1, at(c, MUC_PLACE_Q), c->y->options.terms.q);
}

static void keys(compiler *c)
{
    uint32_t hd = c->y->head_width, from = word_at(c, MUC_PLACE_KF), terms = c->y->options.terms.k;

    stream_mm(c, MUC_MATRIX_K, W1A, W1B, times_x(c, from, hd));
    rope(c, from, c->m, 1, word_at(c, MUC_PLACE_TB));
    for (uint32_t s = 0; s < c->y->slabs; s++) {
        uint32_t w = slab_width(c, s);

        begin_acc_half(c, QUANT, W1B);
        quant(c, from + 64 * s, hd, c->m, w, MUR_W1, half_address(c, W1B), terms);
        st_half(c, W1B, k_cache_row(c, s, c->pos), c->m * slots(w, terms));
    }
}

static void values(compiler *c)
{
    uint32_t row = 4 * c->y->head_width, old = c->pos % 64, rows = old + c->m;
    uint32_t finished = rows >= 64, from = finished ? 64 : old;

    ld(c, MUR_GB, at(c, MUC_PLACE_VT), MUR_KV, v_tail_row(c, 0), old * row);
    stream_mm(c, MUC_MATRIX_V, W1A, W1B,
              times_x(c, word_at(c, MUC_PLACE_VT) + old * c->y->head_width, c->y->head_width));
    if (finished) {
        qpack(c, 0, 64);
        st_half(c, W0B, v_cache_chunk(c, c->pos / 64), v_chunk_bytes(c));
    }
    st(c, MUR_GB, at(c, MUC_PLACE_VT) + from * row, MUR_KV, v_tail_row(c, from % 64),
       (rows - from) * row);
}

/* recompute: the keys of `rows` tokens from `token` to KC, with the weights that lie in W1 */
static void keys_again(compiler *c, uint32_t token, uint32_t rows)
{
    uint32_t hd = c->y->head_width, terms = c->y->options.terms.x;
    uint32_t row = slots(c->y->width, terms);
    product x = { .src = MUR_I0,
                  .saddr = at(c, MUC_PLACE_XC),
                  .rows = rows,
                  .k = c->y->width,
                  .terms = terms,
                  .spitch = row,
                  .daddr = word_at(c, MUC_PLACE_KC),
                  .dpitch = hd };
    stream s = stream_of(c, MUC_MATRIX_K);

    ld(c, MUR_I0, x.saddr, MUR_KV, x_cache_row(c, token), rows * row);
    ld(c, MUR_GB, at(c, MUC_PLACE_TC), MUR_PARM, rope_row(c, token), 4 * hd * rows);
    for (uint32_t i = 0; i < s.matrix->chunks; i++)
        mm_chunk(c, &s, i, W1A + i, x);
    rope(c, x.daddr, rows, 1, word_at(c, MUC_PLACE_TC));
}

/* the scores of all queries against `rows` tokens from `token` */
static void scores(compiler *c, uint32_t token, uint32_t rows)
{
    const muc_uthinker_terms *terms = &c->y->options.terms;
    uint32_t hd = c->y->head_width;

    if (c->y->options.recompute)
        keys_again(c, token, rows);
    for (uint32_t s = 0; s < c->y->slabs; s++) {
        uint32_t w = slab_width(c, s), bytes = rows * slots(w, terms->k);
        product x = { .src = MUR_I1,
                      .saddr = at(c, MUC_PLACE_Q) + slots(64 * s, terms->q),
                      .rows = c->m * c->y->group,
                      .k = w,
                      .terms = terms->q,
                      .spitch = slots(hd, terms->q),
                      .daddr = word_at(c, MUC_PLACE_SC),
                      .dpitch = 64,
                      .acc = s > 0 };

        if (c->y->options.recompute) {
            begin_acc_half(c, QUANT, W0A);
            quant(c, word_at(c, MUC_PLACE_KC) + 64 * s, hd, rows, w, MUR_W0, half_address(c, W0A),
                  terms->k);
        } else {
            ld_half(c, W0A, MUR_KV, k_cache_row(c, s, token), bytes);
        }
        mm(c, &x, W0A, rows, bytes);
    }
}

/* probabilities of `rows` queries from row `first`, over k tokens, times the values in W0b */
static void weigh_values(compiler *c, uint32_t first, uint32_t rows, uint32_t k)
{
    uint32_t hd = c->y->head_width, terms = c->y->options.terms.p, pitch = slots(64, terms);
    product x = { .src = MUR_I1,
                  .saddr = at(c, MUC_PLACE_P) + first * pitch,
                  .rows = rows,
                  .k = k,
                  .terms = terms,
                  .spitch = pitch,
                  .daddr = word_at(c, MUC_PLACE_OA) + first * hd,
                  .dpitch = hd,
                  .acc = 1 };

    mm(c, &x, W0B, hd, v_chunk_bytes(c));
}

static void past_chunk(compiler *c, uint32_t chunk)
{
    scores(c, 64 * chunk, 64);
    ld_half(c, W0B, MUR_KV, v_cache_chunk(c, chunk), v_chunk_bytes(c));
    smax(c, 64, 0, chunk == 0);
    weigh_values(c, 0, c->m * c->y->group, 64);
}

/* a chunk that holds tokens of this call: every token packs the values up to its own */
static void present_chunk(compiler *c, uint32_t e)
{
    uint32_t base = 64 * (c->pos / 64 + e), skip = base > c->pos ? base - c->pos : 0;
    uint32_t rows = c->end - base < 64 ? c->end - base : 64, valid = c->pos + skip - base + 1;

    scores(c, base, rows);
    smax(c, valid, skip, base == 0);
    for (uint32_t i = skip; i < c->m; i++, valid++) {
        uint32_t seen = valid < 64 ? valid : 64;

        qpack(c, 64 * e, seen);
        weigh_values(c, i * c->y->group, c->y->group, seen);
    }
}

static void attention(compiler *c)
{
    queries(c);
    if (!c->y->options.recompute)
        keys(c);
    values(c);
    if (c->y->options.recompute) {
        stream s = stream_of(c, MUC_MATRIX_K);

        for (uint32_t i = 0; i < s.matrix->chunks; i++)
            ld_chunk(c, &s, i, W1A + i);
    }
    for (uint32_t chunk = 0; chunk < c->pos / 64; chunk++)
        past_chunk(c, chunk);
    for (uint32_t e = 0; 64 * (c->pos / 64 + e) < c->end; e++)
        present_chunk(c, e);
    divide(c);
}

/* ---- the layers ---- */

static void ld_gains(compiler *c, uint32_t off)
{
    ld(c, MUR_GB, at(c, MUC_PLACE_GN), MUR_PARM, off, 4 * (uint64_t)c->y->width);
}

/* RES += rows of k values in slots at `from` of I0, times a matrix */
static void add_product(compiler *c, muc_matrix_kind kind, muc_uthinker_place from, uint32_t k,
                        uint32_t terms)
{
    product x = { .src = MUR_I0,
                  .saddr = at(c, from),
                  .rows = c->m,
                  .k = k,
                  .terms = terms,
                  .spitch = slots(k, terms),
                  .daddr = word_at(c, MUC_PLACE_RES),
                  .dpitch = c->y->width,
                  .acc = 1 };

    stream_mm(c, kind, W1A, W1B, x);
}

static void mm_ffn(compiler *c, const stream *s, uint32_t i, uint32_t half, muc_uthinker_place to)
{
    uint32_t terms = c->y->options.terms.f;
    product x = { .src = MUR_I1,
                  .saddr = at(c, MUC_PLACE_N),
                  .rows = c->m,
                  .k = c->y->width,
                  .terms = terms,
                  .spitch = slots(c->y->width, terms),
                  .daddr = word_at(c, to),
                  .dpitch = chunk_columns(s, i) };

    mm(c, &x, half, chunk_columns(s, i), chunk_bytes(s, i));
}

static void feed_forward(compiler *c)
{
    stream gate = stream_of(c, MUC_MATRIX_GATE), up = stream_of(c, MUC_MATRIX_UP);

    ld_chunk(c, &gate, 0, W0A);
    for (uint32_t i = 0; i < gate.matrix->chunks; i++) {
        ld_chunk(c, &up, i, W0B);
        mm_ffn(c, &gate, i, W0A, MUC_PLACE_GA);
        if (i + 1 < gate.matrix->chunks)
            ld_chunk(c, &gate, i + 1, W0A);
        mm_ffn(c, &up, i, W0B, MUC_PLACE_UP);
        glu(c, i * gate.matrix->chunk, chunk_columns(&gate, i));
    }
    add_product(c, MUC_MATRIX_DOWN, MUC_PLACE_H, c->y->ffn_width, c->y->options.terms.h);
}

static void layer(compiler *c)
{
    const muc_uthinker_terms *terms = &c->y->options.terms;
    uint32_t d = c->y->width, width = c->y->heads * c->y->head_width;

    ld_gains(c, c->y->gain_attention + 4 * d * c->l);
    norm(c, 0, c->m, MUR_I0, at(c, MUC_PLACE_X), terms->x);
    if (c->y->options.recompute)
        st(c, MUR_I0, at(c, MUC_PLACE_X), MUR_KV, x_cache_row(c, c->pos),
           c->m * slots(d, terms->x));
    for (c->h = 0; c->h < c->y->kv_heads; c->h++)
        attention(c);
    begin_acc(c, QUANT);
    quant(c, word_at(c, MUC_PLACE_AT), width, c->m, width, MUR_I0, at(c, MUC_PLACE_A), terms->o);
    add_product(c, MUC_MATRIX_O, MUC_PLACE_A, width, terms->o);
    ld_gains(c, c->y->gain_ffn + 4 * d * c->l);
    norm(c, 0, c->m, MUR_I1, at(c, MUC_PLACE_N), terms->f);
    feed_forward(c);
}

static void embedding(compiler *c)
{
    const muc_uthinker_layout *y = c->y;

    begin(c, EMBED, 0, (uint32_t)-1);
    set(c, EMBED_seq, y->matrix[MUC_MATRIX_EMBEDDING].offset);
    set(c, EMBED_k, y->width);
    set(c, EMBED_rows, c->m);
    set(c, EMBED_cols, y->vocabulary);
    set(c, EMBED_dst, y->embedded);
    emit(c);
    ld(c, MUR_GB, at(c, MUC_PLACE_RES), MUR_IO, y->embedded, 4 * (uint64_t)y->width * c->m);
    ld(c, MUR_GB, at(c, MUC_PLACE_TB), MUR_PARM, rope_row(c, c->pos),
       4 * (uint64_t)y->head_width * c->m);
}

/* the last token's logits, through W0a and W1a */
static void head(compiler *c)
{
    uint32_t terms = c->y->options.terms.l;
    stream s = stream_of(c, c->y->tied ? MUC_MATRIX_EMBEDDING : MUC_MATRIX_HEAD);
    product x = { .src = MUR_I1,
                  .saddr = at(c, MUC_PLACE_N),
                  .rows = 1,
                  .k = c->y->width,
                  .terms = terms,
                  .spitch = slots(c->y->width, terms),
                  .daddr = word_at(c, MUC_PLACE_LG),
                  .dpitch = s.matrix->chunk };

    ld_gains(c, c->y->gain_final);
    norm(c, c->m - 1, 1, MUR_I1, at(c, MUC_PLACE_N), terms);
    ld_chunk(c, &s, 0, W0A);
    for (uint32_t i = 0; i < s.matrix->chunks; i++) {
        uint32_t columns = chunk_columns(&s, i);

        if (i + 1 < s.matrix->chunks)
            ld_chunk(c, &s, i + 1, i % 2 ? W0A : W1A);
        mm(c, &x, i % 2 ? W1A : W0A, columns, chunk_bytes(&s, i));
        st(c, MUR_GB, at(c, MUC_PLACE_LG), MUR_IO, c->y->logits + 4 * i * s.matrix->chunk,
           4 * columns);
    }
}

void static_uthinker_compile(const muc_uthinker_layout *layout, uint32_t pos, uint32_t m,
                             static_uthinker_sink *sink, void *arg)
{
    compiler c = { .y = layout, .pos = pos, .m = m, .end = pos + m, .sink = sink, .arg = arg };

    embedding(&c);
    for (c.l = 0; c.l < layout->layers; c.l++)
        layer(&c);
    head(&c);
}

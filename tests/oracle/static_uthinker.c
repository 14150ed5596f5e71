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

/* to `address` of a half's buffer */
static void ld_half(compiler *c, uint32_t half, uint32_t address, uint32_t region, uint64_t off,
                    uint64_t len)
{
    begin(c, LD, 1u << (TOKEN_FREE + half / 2), half);
    transfer(c, LD, half_buffer(half), address, region, off, len);
}

static void st_half(compiler *c, uint32_t half, uint32_t address, uint64_t off, uint64_t len)
{
    begin(c, ST, 1u << (TOKEN_FREE + half / 2), (uint32_t)NO_TOKEN);
    transfer(c, ST, half_buffer(half), address, MUR_KV, off, len);
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

/* what an instruction of ACC waits for of GB; of_shared: if DMA-shared places have a bank */
static uint32_t gb_wait(const compiler *c, uint32_t of_shared)
{
    return c->chip->apart ? of_shared : WAIT_DMA;
}

static void begin_acc(compiler *c, uint32_t instruction, uint32_t of_shared)
{
    begin(c, instruction, gb_wait(c, of_shared), TOKEN_OTHER);
}

static void begin_acc_half(compiler *c, uint32_t instruction, uint32_t half, uint32_t of_shared)
{
    begin(c, instruction, gb_wait(c, of_shared) | 1u << half, TOKEN_FREE + half / 2);
}

/* byte address in I0, I1 or GB, and the word address in GB */
static uint32_t at(const compiler *c, muc_uthinker_place place)
{
    return c->chip->address[place];
}

static uint32_t word_at(const compiler *c, muc_uthinker_place place)
{
    return c->chip->address[place] / 4;
}

/* I0 or I1, where N and H lie: either way one in each */
static uint32_t buffer_of_n(const compiler *c)
{
    return c->chip->exchanged ? MUR_I0 : MUR_I1;
}

static uint32_t buffer_of_h(const compiler *c)
{
    return c->chip->exchanged ? MUR_I1 : MUR_I0;
}

static int o_by_head(const compiler *c)
{
    return c->y->o_parts > 1;
}

/* columns of gate and up, and rows of down, in one pass */
static uint32_t pass_width(const compiler *c)
{
    return c->y->ffn_width / c->y->ffn_parts;
}

typedef struct product {
    uint32_t src, saddr, rows, k, terms, spitch, daddr, dpitch, acc;
    uint32_t shared; /* its result lies in VT or LG */
} product;

/* with wlen bytes at `address` of a half's buffer */
static void mm(compiler *c, const product *x, uint32_t half, uint32_t address, uint32_t cols,
               uint32_t wlen)
{
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

/* RMSNorm of rows of RES from row `first` */
static void norm(compiler *c, uint32_t first, uint32_t rows, uint32_t dst, uint32_t daddr,
                 uint32_t terms)
{
    begin_acc(c, NORM, WAIT_FILLED);
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
    begin_acc(c, ROPE, 0);
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

/* rows of VT from row `first`, to `address` of a half's buffer */
static void qpack(compiler *c, uint32_t first, uint32_t rows, uint32_t half, uint32_t address)
{
    uint32_t hd = c->y->head_width;

    begin_acc_half(c, QPACK, half, WAIT_FILLED);
    set(c, QPACK_saddr, word_at(c, MUC_PLACE_VT) + first * hd);
    set(c, QPACK_rows, rows);
    set(c, QPACK_daddr, address);
    set(c, QPACK_cols, hd);
    set(c, QPACK_dst, half_buffer(half));
    set(c, QPACK_terms, c->y->options.terms.v);
    set(c, QPACK_spitch, hd);
    emit(c);
}

/* Queries of some tokens of the call, the first of them token `first` of it. */
typedef struct tile {
    uint32_t first, tokens;
} tile;

/* probabilities go to P, `skip` bytes on */
static void smax(compiler *c, tile t, uint32_t skip, uint32_t valid, uint32_t first)
{
    uint32_t terms = c->y->options.terms.p, query = t.first * c->y->group;

    begin_acc(c, SMAX, 0);
    set(c, SMAX_saddr, word_at(c, MUC_PLACE_SC));
    set(c, SMAX_rows, t.tokens * c->y->group);
    set(c, SMAX_taddr, word_at(c, MUC_PLACE_ML) + 2 * query);
    set(c, SMAX_group, c->y->group);
    set(c, SMAX_oaddr, word_at(c, MUC_PLACE_OA) + query * c->y->head_width);
    set(c, SMAX_daddr, at(c, MUC_PLACE_P) + skip);
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
    uint32_t hd = c->y->head_width, own = c->y->group * hd;
    uint32_t columns = o_by_head(c) ? 0 : c->h * own;

    begin_acc(c, DIV, 0);
    set(c, DIV_saddr, word_at(c, MUC_PLACE_OA));
    set(c, DIV_rows, c->m * c->y->group);
    set(c, DIV_taddr, word_at(c, MUC_PLACE_ML));
    set(c, DIV_group, c->y->group);
    set(c, DIV_daddr, word_at(c, MUC_PLACE_AT) + columns);
    set(c, DIV_k, hd);
    set(c, DIV_dpitch, o_by_head(c) ? own : c->y->heads * hd);
    emit(c);
}

/* `columns` gated values of each row, the first of them column `from` of the pass */
static void glu(compiler *c, uint32_t from, uint32_t columns)
{
    uint32_t terms = c->y->options.terms.h;

    begin_acc(c, GLU, 0);
    set(c, GLU_saddr, word_at(c, MUC_PLACE_GA));
    set(c, GLU_rows, c->m);
    set(c, GLU_uaddr, word_at(c, MUC_PLACE_UP));
    set(c, GLU_dst, buffer_of_h(c));
    set(c, GLU_terms, terms);
    set(c, GLU_daddr, at(c, MUC_PLACE_H) + slots(from, terms));
    set(c, GLU_k, columns);
    set(c, GLU_dpitch, slots(pass_width(c), terms));
    emit(c);
}

/* ---- matrices ---- */

/* A matrix, or one kv head's or pass's columns or rows of it, in chunks. */
typedef struct stream {
    const muc_uthinker_matrix *matrix;
    const uint32_t *offsets; /* of its chunks, and the end */
} stream;

/* `number` is of the layer, or of the layer's kv head or pass */
static stream stream_number(const compiler *c, muc_matrix_kind kind, uint32_t number)
{
    const muc_uthinker_matrix *x = &c->y->matrix[kind];
    stream s = { x, x->table_data + number * x->chunks };

    return s;
}

/* layer l's weights are those of this one */
static uint32_t own_layer(const compiler *c, uint32_t l)
{
    return l * c->y->own_layers / c->y->layers;
}

static uint32_t head_number(const compiler *c)
{
    return c->l * c->y->kv_heads + c->h;
}

static stream stream_of(const compiler *c, muc_matrix_kind kind)
{
    int by_head = kind == MUC_MATRIX_Q || kind == MUC_MATRIX_K || kind == MUC_MATRIX_V ||
                  (kind == MUC_MATRIX_O && o_by_head(c));
    int by_pass = kind == MUC_MATRIX_GATE || kind == MUC_MATRIX_UP || kind == MUC_MATRIX_DOWN;
    int once = kind == MUC_MATRIX_HEAD || kind == MUC_MATRIX_EMBEDDING;

    return stream_number(c, kind,
                         once      ? 0
                         : by_head ? own_layer(c, c->l) * c->y->kv_heads + c->h
                         : by_pass ? own_layer(c, c->l) * c->y->ffn_parts + c->pass
                                   : own_layer(c, c->l));
}

static uint32_t chunk_bytes(const stream *s, uint32_t i)
{
    return s->offsets[i + 1] - s->offsets[i];
}

/* of the chunks that are the last of a stream, or of the others */
static uint32_t longest(const stream *s, uint32_t i)
{
    return i + 1 < s->matrix->chunks ? s->matrix->most : s->matrix->most_last;
}

static uint32_t chunk_columns(const stream *s, uint32_t i)
{
    uint32_t left = s->matrix->n - i * s->matrix->chunk;

    return left < s->matrix->chunk ? left : s->matrix->chunk;
}

static void ld_chunk(compiler *c, const stream *s, uint32_t i, uint32_t half)
{
    ld_half(c, half, half_address(c, half), MUR_WGTS, s->offsets[i], chunk_bytes(s, i));
}

/* chunk i to its columns of the product */
static void mm_chunk(compiler *c, const stream *s, uint32_t i, uint32_t half, product x)
{
    x.daddr += i * s->matrix->chunk;
    mm(c, &x, half, half_address(c, half), chunk_columns(s, i), longest(s, i));
}

/* ---- what is loaded when ---- */

/* What comes after a stage. */
enum after { NOTHING, KV, FIRST_GROUP, O, HEAD, GATE, FIRST_PASS, DOWN, PASS, LAYER };

static void ld_first(compiler *c, enum after what, uint32_t buffer);

static enum after after_attention(const compiler *c)
{
    return o_by_head(c) || c->h + 1 == c->y->kv_heads ? O : HEAD;
}

/* of what there are several of, each begins with W0, and so does what follows the last one */
static int begins_with_w0(const compiler *c, enum after what)
{
    return what == HEAD || what == FIRST_PASS || what == PASS || what == LAYER ||
           (what == O && !o_by_head(c));
}

/* A stage's last product reads `buffer`. The load of what follows is issued before it, into the
 * other buffer; but some begin with W0, so that may have to wait. */
static int before_last(compiler *c, enum after what, uint32_t buffer)
{
    if (begins_with_w0(c, what) && buffer == 0)
        return 0;
    ld_first(c, what, 1 - buffer);
    c->turn = 1 - buffer;
    return 1;
}

static void after_last(compiler *c, enum after what, int done)
{
    if (done)
        return;
    ld_first(c, what, 0);
    c->turn = 0;
}

/* Chunk 0 is loaded. Every other one is before the product of the one before it. */
static void stream_mm(compiler *c, muc_matrix_kind kind, product x, enum after what)
{
    stream s = stream_of(c, kind);
    int done = 0;

    for (uint32_t i = 0; i < s.matrix->chunks; i++) {
        uint32_t here = c->turn;

        c->turn = 1 - here;
        if (i + 1 < s.matrix->chunks)
            ld_chunk(c, &s, i + 1, 2 * c->turn);
        else
            done = before_last(c, what, here);
        mm_chunk(c, &s, i, 2 * here, x);
    }
    after_last(c, what, done);
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

    stream_mm(c, MUC_MATRIX_Q, times_x(c, to, width), KV);
    rope(c, to, c->m, c->y->group, word_at(c, MUC_PLACE_TB));
    begin_acc(c, QUANT, 0);
    quant(c, to, hd, c->m * c->y->group, hd, MUR_I1, at(c, MUC_PLACE_Q), c->y->options.terms.q);
}

static void ld_kv(compiler *c, uint32_t i, uint32_t buffer)
{
    stream k = stream_of(c, MUC_MATRIX_K), v = stream_of(c, MUC_MATRIX_V);

    if (!c->y->options.recompute)
        ld_chunk(c, &k, i, 2 * buffer);
    ld_chunk(c, &v, i, 2 * buffer + 1);
}

static void keys_and_values(compiler *c)
{
    uint32_t old = c->pos % 64, kf = word_at(c, MUC_PLACE_KF);
    stream k = stream_of(c, MUC_MATRIX_K), v = stream_of(c, MUC_MATRIX_V);
    product x = times_x(c, word_at(c, MUC_PLACE_VT) + old * c->y->head_width, c->y->head_width);

    x.shared = 1;
    for (uint32_t i = 0; i < v.matrix->chunks; i++) {
        uint32_t here = c->turn;

        c->turn = 1 - here;
        if (i + 1 < v.matrix->chunks)
            ld_kv(c, i + 1, c->turn);
        else if (!c->y->options.recompute)
            ld_first(c, FIRST_GROUP, c->turn);
        if (!c->y->options.recompute)
            mm_chunk(c, &k, i, 2 * here, times_x(c, kf, c->y->head_width));
        mm_chunk(c, &v, i, 2 * here + 1, x);
    }
}

static void store_tail(compiler *c)
{
    uint32_t row = 4 * c->y->head_width, old = c->pos % 64, rows = old + c->m;
    uint32_t from = rows >= 64 ? 64 : old;

    st(c, MUR_GB, at(c, MUC_PLACE_VT) + from * row, MUR_KV, v_tail_row(c, from % 64),
       (rows - from) * row);
}

/* The tile of the call's token `first`: of what may lie in one tile of positions, all tokens of the
 * call; DECODE has one token. */
static tile tile_of(const compiler *c, uint32_t first)
{
    uint32_t size = c->chip->tile, position = c->pos + first;
    uint32_t end = position / size * size + size;

    return (tile){ first, (end < c->end ? end : c->end) - position };
}

static tile after(const compiler *c, tile t)
{
    return tile_of(c, t.first + t.tokens);
}

static int is_in_call(const compiler *c, tile t)
{
    return t.first < c->m;
}

/* the product of slab s of a tile's queries with `rows` keys at `address` of a half's buffer */
static void scores(compiler *c, tile t, uint32_t s, uint32_t half, uint32_t address, uint32_t rows)
{
    const muc_uthinker_terms *terms = &c->y->options.terms;
    uint32_t hd = c->y->head_width, w = slab_width(c, s), pitch = slots(hd, terms->q);
    product x = { .src = MUR_I1,
                  .saddr =
                      at(c, MUC_PLACE_Q) + t.first * c->y->group * pitch + slots(64 * s, terms->q),
                  .rows = t.tokens * c->y->group,
                  .k = w,
                  .terms = terms->q,
                  .spitch = pitch,
                  .daddr = word_at(c, MUC_PLACE_SC),
                  .dpitch = 64,
                  .acc = s > 0 };

    mm(c, &x, half, address, rows, 64 * slots(w, terms->k));
}

/* Probabilities of `tokens` tokens of the tile from its token `from` on, over k keys, times the
 * values at `address`. The first row's begin `skip` bytes behind where P does. */
static void weigh_values(compiler *c, tile t, uint32_t from, uint32_t tokens, uint32_t skip,
                         uint32_t k, uint32_t half, uint32_t address)
{
    uint32_t hd = c->y->head_width, terms = c->y->options.terms.p, pitch = slots(64, terms);
    uint32_t group = c->y->group;
    product x = { .src = MUR_I1,
                  .saddr = at(c, MUC_PLACE_P) + from * group * pitch + skip,
                  .rows = tokens * group,
                  .k = k,
                  .terms = terms,
                  .spitch = pitch,
                  .daddr = word_at(c, MUC_PLACE_OA) + (t.first + from) * group * hd,
                  .dpitch = hd,
                  .acc = 1 };

    mm(c, &x, half, address, hd, v_chunk_bytes(c));
}

/* address of key row `row` of slab s, in W0 or W1 */
static uint32_t key_at(const compiler *c, uint32_t s, uint32_t row)
{
    uint32_t address = 0;

    for (uint32_t i = 0; i < s; i++)
        address += c->chip->key_rows * slots(slab_width(c, i), c->y->options.terms.k);
    return address + row * slots(slab_width(c, s), c->y->options.terms.k);
}

/* address of the step-th of a group's values, in W0 or W1 */
static uint32_t values_at(const compiler *c, uint32_t buffer, uint32_t step)
{
    return half_address(c, 2 * buffer + 1) + step * v_chunk_bytes(c);
}

static void whole_step(compiler *c, tile t, uint32_t buffer, uint32_t i, uint32_t first)
{
    for (uint32_t s = 0; s < c->y->slabs; s++)
        scores(c, t, s, 2 * buffer, key_at(c, s, 64 * i), 64);
    smax(c, t, 0, 64, first);
    weigh_values(c, t, 0, t.tokens, 0, 64, 2 * buffer + 1, values_at(c, buffer, i));
}

/* the first `count` steps of a group, for one tile of queries after the other */
static void whole_steps(compiler *c, uint32_t group, uint32_t count, uint32_t buffer)
{
    for (tile t = tile_of(c, 0); is_in_call(c, t); t = after(c, t))
        for (uint32_t i = 0; i < count; i++)
            whole_step(c, t, buffer, i, group == 0 && i == 0);
}

/* tokens and whole steps before pos that belong to a group */
static void ld_group(compiler *c, uint32_t group, uint32_t buffer)
{
    uint32_t steps = c->chip->steps, first = group * steps, token = 64 * first;
    uint32_t tokens = c->pos - token, whole = c->pos / 64 - first;

    tokens = tokens < 64 * steps ? tokens : 64 * steps;
    whole = whole < steps ? whole : steps;
    for (uint32_t s = 0; s < c->y->slabs; s++)
        ld_half(c, 2 * buffer, key_at(c, s, 0), MUR_KV, k_cache_row(c, s, token),
                tokens * slots(slab_width(c, s), c->y->options.terms.k));
    ld_half(c, 2 * buffer + 1, values_at(c, buffer, 0), MUR_KV, v_cache_chunk(c, first),
            whole * v_chunk_bytes(c));
}

static void new_keys(compiler *c, uint32_t buffer)
{
    uint32_t row = c->pos % (64 * c->chip->steps), terms = c->y->options.terms.k;

    for (uint32_t s = 0; s < c->y->slabs; s++) {
        begin_acc_half(c, QUANT, 2 * buffer, 0);
        quant(c, word_at(c, MUC_PLACE_KF) + 64 * s, c->y->head_width, c->m, slab_width(c, s),
              MUR_W0 + buffer, key_at(c, s, row), terms);
    }
    for (uint32_t s = 0; s < c->y->slabs; s++)
        st_half(c, 2 * buffer, key_at(c, s, row), k_cache_row(c, s, c->pos),
                c->m * slots(slab_width(c, s), terms));
}

/* Values of the step of the tile's own tokens, e steps after that of the call's first one: every
 * token packs its block up to its own; those before it are packed for all of the tile. */
static void own_values(compiler *c, tile t, uint32_t e, uint32_t half, uint32_t address)
{
    uint32_t seen = (c->pos + t.first) % 64, block = seen / 32 * 32;
    uint32_t bytes = slots(32, c->y->options.terms.p), first = e == 0 && c->pos < 64;

    if (c->chip->rows == 1) {
        smax(c, t, 0, seen + 1, first);
        qpack(c, 0, seen + 1, half, address);
        weigh_values(c, t, 0, 1, 0, seen + 1, half, address);
        return;
    }
    /* either way the tile's own block lies behind the room of one */
    smax(c, t, block > 0 ? 0 : bytes, seen + 1, first);
    if (block > 0) {
        qpack(c, 64 * e, block, half, address);
        weigh_values(c, t, 0, t.tokens, 0, block, half, address);
    }
    for (uint32_t i = 0; i < t.tokens; i++) {
        uint32_t own = seen % 32 + 1 + i;

        qpack(c, 64 * e + block, own, half, address);
        weigh_values(c, t, i, 1, bytes, own, half, address);
    }
}

/* recompute: the keys of the step of the call's first token, or of the one after it, are in KC */
static void keys_from_kc(compiler *c, uint32_t s, uint32_t e);

typedef struct present {
    uint32_t e;                    /* 0: the step of the call's first token, 1: the one after it */
    uint32_t keys, values, packed; /* halves of W buffers; address of values in theirs */
    uint32_t row;                  /* of the half with keys, if they are not computed anew */
} present;

static void present_scores(compiler *c, tile t, const present *p, uint32_t keys)
{
    for (uint32_t s = 0; s < c->y->slabs; s++) {
        if (c->y->options.recompute)
            keys_from_kc(c, s, p->e);
        scores(c, t, s, p->keys, c->y->options.recompute ? 0 : key_at(c, s, p->row), keys);
    }
}

/* whole: for the tiles behind the step, else for those in it */
static void present_step(compiler *c, const present *p, int whole)
{
    uint32_t step = c->pos / 64 + p->e;

    if (whole)
        qpack(c, 0, 64, p->values, p->packed);
    for (tile t = tile_of(c, 0); is_in_call(c, t); t = after(c, t)) {
        uint32_t first = c->pos + t.first, seen = first % 64 + 1;

        if (first / 64 != step + (whole ? 1 : 0))
            continue;
        present_scores(c, t, p, whole ? 64 : seen + t.tokens - 1);
        if (whole) {
            smax(c, t, 0, 64, step == 0);
            weigh_values(c, t, 0, t.tokens, 0, 64, p->values, p->packed);
        } else {
            own_values(c, t, p->e, p->values, p->packed);
        }
    }
}

static uint32_t present_rows(const compiler *c, uint32_t e)
{
    uint32_t base = 64 * (c->pos / 64 + e);

    return c->end - base < 64 ? c->end - base : 64;
}

static int has_second_step(const compiler *c)
{
    return (c->end - 1) / 64 != c->pos / 64;
}

static void finish(compiler *c, uint32_t half, uint32_t address)
{
    if (c->pos % 64 + c->m >= 64) {
        qpack(c, 0, 64, half, address);
        st_half(c, half, address, v_cache_chunk(c, c->pos / 64), v_chunk_bytes(c));
    }
}

static void last_group(compiler *c, uint32_t group, uint32_t buffer)
{
    uint32_t steps = c->chip->steps, whole = c->pos / 64 - group * steps;
    present p = { 0, 2 * buffer, 2 * buffer + 1, values_at(c, buffer, steps - 1), 64 * whole };

    new_keys(c, buffer);
    whole_steps(c, group, whole, buffer);
    present_step(c, &p, 0);
    if (has_second_step(c)) {
        present_step(c, &p, 1);
        p.e = 1;
        p.row += 64;
        present_step(c, &p, 0);
    }
    finish(c, 2 * buffer + 1, p.packed);
    store_tail(c);
    divide(c);
}

/* Group 0 is loaded. The last one lies where group 0 did, whether or not that is the other buffer
 * than that of the group before it. */
static void groups(compiler *c)
{
    uint32_t a = c->turn, b = 1 - a, count = c->pos / 64 / c->chip->steps;
    int done;

    rope(c, word_at(c, MUC_PLACE_KF), c->m, 1, word_at(c, MUC_PLACE_TB));
    for (uint32_t g = 0; g < count / 2 * 2; g++) {
        ld_group(c, g + 1, g % 2 ? a : b);
        whole_steps(c, g, c->chip->steps, g % 2 ? b : a);
    }
    done = before_last(c, after_attention(c), a);
    if (count % 2) {
        whole_steps(c, count - 1, c->chip->steps, a);
        ld_group(c, count, a);
    }
    last_group(c, count, a);
    after_last(c, after_attention(c), done);
}

/* recompute: the keys of `rows` tokens from `token` to KC, with the weights that lie in W1 */
static void compute_keys(compiler *c, uint32_t token, uint32_t rows)
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
    stream k = stream_of(c, MUC_MATRIX_K);

    ld(c, MUR_I0, x.saddr, MUR_KV, x_cache_row(c, token), rows * row);
    ld(c, MUR_GB, at(c, MUC_PLACE_TC), MUR_PARM, rope_row(c, token), 4 * hd * rows);
    for (uint32_t i = 0; i < k.matrix->chunks; i++)
        mm_chunk(c, &k, i, W1A + i, x);
    rope(c, x.daddr, rows, 1, word_at(c, MUC_PLACE_TC));
}

/* slab s of `rows` keys in KC to W0a */
static void quantize_keys(compiler *c, uint32_t s, uint32_t rows)
{
    begin_acc_half(c, QUANT, W0A, 0);
    quant(c, word_at(c, MUC_PLACE_KC) + 64 * s, c->y->head_width, rows, slab_width(c, s), MUR_W0, 0,
          c->y->options.terms.k);
}

static void keys_from_kc(compiler *c, uint32_t s, uint32_t e)
{
    quantize_keys(c, s, present_rows(c, e));
}

static void past_chunk(compiler *c, uint32_t chunk, uint32_t packed)
{
    compute_keys(c, 64 * chunk, 64);
    ld_half(c, W0B, packed, MUR_KV, v_cache_chunk(c, chunk), v_chunk_bytes(c));
    for (tile t = tile_of(c, 0); is_in_call(c, t); t = after(c, t)) {
        for (uint32_t s = 0; s < c->y->slabs; s++) {
            quantize_keys(c, s, 64);
            scores(c, t, s, W0A, 0, 64);
        }
        smax(c, t, 0, 64, chunk == 0);
        weigh_values(c, t, 0, t.tokens, 0, 64, W0B, packed);
    }
}

static void attention_again(compiler *c)
{
    stream k = stream_of(c, MUC_MATRIX_K);
    present p = { 0, W0A, W0B, half_address(c, W0B), 0 };

    store_tail(c);
    for (uint32_t i = 0; i < k.matrix->chunks; i++)
        ld_chunk(c, &k, i, W1A + i);
    for (uint32_t chunk = 0; chunk < c->pos / 64; chunk++)
        past_chunk(c, chunk, p.packed);
    compute_keys(c, c->pos / 64 * 64, present_rows(c, 0));
    present_step(c, &p, 0);
    if (has_second_step(c)) {
        present_step(c, &p, 1);
        compute_keys(c, c->pos / 64 * 64 + 64, present_rows(c, 1));
        p.e = 1;
        present_step(c, &p, 0);
    }
    finish(c, W0B, p.packed);
    divide(c);
    after_last(c, after_attention(c), 0);
}

/* ---- the layers ---- */

static void ld_first(compiler *c, enum after what, uint32_t buffer)
{
    stream o = stream_of(c, MUC_MATRIX_O), down = stream_of(c, MUC_MATRIX_DOWN);

    if (what == KV)
        ld_kv(c, 0, buffer);
    if (what == FIRST_GROUP)
        ld_group(c, 0, buffer);
    if (what == O)
        ld_chunk(c, &o, 0, 2 * buffer);
    if (what == DOWN)
        ld_chunk(c, &down, 0, 2 * buffer);
    if (what == GATE || what == FIRST_PASS || what == PASS) {
        uint32_t pass = own_layer(c, c->l) * c->y->ffn_parts + (what == PASS ? c->pass + 1 : 0);
        stream gate = stream_number(c, MUC_MATRIX_GATE, pass);

        ld_chunk(c, &gate, 0, 2 * buffer);
    }
    if (what == HEAD || (what == LAYER && c->l + 1 < c->y->layers)) {
        uint32_t layer = own_layer(c, what == HEAD ? c->l : c->l + 1);
        uint32_t head = layer * c->y->kv_heads + (what == HEAD ? c->h + 1 : 0);
        stream q = stream_number(c, MUC_MATRIX_Q, head);

        ld_chunk(c, &q, 0, 2 * buffer);
    }
}

static void ld_gains(compiler *c, uint32_t off)
{
    ld(c, MUR_GB, at(c, MUC_PLACE_GN), MUR_PARM, off, 4 * (uint64_t)c->y->width);
}

/* RES += rows of k values in slots at `from` of a buffer, times a matrix or a part of it */
static void add_product(compiler *c, muc_matrix_kind kind, uint32_t buffer, muc_uthinker_place from,
                        uint32_t k, uint32_t terms, enum after what)
{
    product x = { .src = buffer,
                  .saddr = at(c, from),
                  .rows = c->m,
                  .k = k,
                  .terms = terms,
                  .spitch = slots(k, terms),
                  .daddr = word_at(c, MUC_PLACE_RES),
                  .dpitch = c->y->width,
                  .acc = 1 };

    stream_mm(c, kind, x, what);
}

static void mm_ffn(compiler *c, const stream *s, uint32_t i, uint32_t buffer, muc_uthinker_place to)
{
    uint32_t terms = c->y->options.terms.f;
    product x = { .src = buffer_of_n(c),
                  .saddr = at(c, MUC_PLACE_N),
                  .rows = c->m,
                  .k = c->y->width,
                  .terms = terms,
                  .spitch = slots(c->y->width, terms),
                  .daddr = word_at(c, to),
                  .dpitch = chunk_columns(s, i) };

    mm(c, &x, 2 * buffer, 0, chunk_columns(s, i), longest(s, i));
}

static void feed_forward(compiler *c)
{
    stream gate = stream_of(c, MUC_MATRIX_GATE), up = stream_of(c, MUC_MATRIX_UP);
    uint32_t a = c->turn, b = 1 - a;
    int done = 0;

    for (uint32_t i = 0; i < gate.matrix->chunks; i++) {
        ld_chunk(c, &up, i, 2 * b);
        mm_ffn(c, &gate, i, a, MUC_PLACE_GA);
        if (i + 1 < gate.matrix->chunks)
            ld_chunk(c, &gate, i + 1, 2 * a);
        else
            done = before_last(c, DOWN, b);
        mm_ffn(c, &up, i, b, MUC_PLACE_UP);
        glu(c, i * gate.matrix->chunk, chunk_columns(&gate, i));
    }
    after_last(c, DOWN, done);
}

/* what attention came to, of all heads or of the one at hand, times those rows of O */
static void output(compiler *c, enum after what)
{
    uint32_t width = (o_by_head(c) ? c->y->group : c->y->heads) * c->y->head_width;
    uint32_t terms = c->y->options.terms.o;

    begin_acc(c, QUANT, 0);
    quant(c, word_at(c, MUC_PLACE_AT), width, c->m, width, MUR_I0, at(c, MUC_PLACE_A), terms);
    add_product(c, MUC_MATRIX_O, MUR_I0, MUC_PLACE_A, width, terms, what);
}

static void attention(compiler *c)
{
    queries(c);
    ld(c, MUR_GB, at(c, MUC_PLACE_VT), MUR_KV, v_tail_row(c, 0),
       c->pos % 64 * 4 * c->y->head_width);
    keys_and_values(c);
    if (c->y->options.recompute)
        attention_again(c);
    else
        groups(c);
    if (o_by_head(c))
        output(c, c->h + 1 < c->y->kv_heads ? HEAD : FIRST_PASS);
}

static void layer(compiler *c)
{
    const muc_uthinker_terms *terms = &c->y->options.terms;
    uint32_t d = c->y->width;

    c->pass = 0;
    norm(c, 0, c->m, MUR_I0, at(c, MUC_PLACE_X), terms->x);
    if (c->y->options.recompute)
        st(c, MUR_I0, at(c, MUC_PLACE_X), MUR_KV, x_cache_row(c, c->pos),
           c->m * slots(d, terms->x));
    ld_gains(c, c->y->gain_ffn + 4 * d * own_layer(c, c->l));
    for (c->h = 0; c->h < c->y->kv_heads; c->h++)
        attention(c);
    if (!o_by_head(c))
        output(c, c->y->ffn_parts > 1 ? FIRST_PASS : GATE);
    norm(c, 0, c->m, buffer_of_n(c), at(c, MUC_PLACE_N), terms->f);
    if (c->l + 1 < c->y->layers)
        ld_gains(c, c->y->gain_attention + 4 * d * own_layer(c, c->l + 1));
    else
        ld_gains(c, c->y->gain_final);
    for (; c->pass < c->y->ffn_parts; c->pass++) {
        feed_forward(c);
        add_product(c, MUC_MATRIX_DOWN, buffer_of_h(c), MUC_PLACE_H, pass_width(c), terms->h,
                    c->pass + 1 < c->y->ffn_parts ? PASS : LAYER);
    }
}

static void embedding(compiler *c)
{
    const muc_uthinker_layout *y = c->y;

    begin(c, EMBED, 0, (uint32_t)NO_TOKEN);
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

/* the CPU looks at the logits of chunk i */
static void amax(compiler *c, const stream *s, uint32_t i)
{
    begin(c, AMAX, 1u << TOKEN_STORED, (uint32_t)NO_TOKEN);
    set(c, AMAX_saddr, c->y->logits / 4 + (uint64_t)i * s->matrix->chunk);
    set(c, AMAX_k, chunk_columns(s, i));
    set(c, AMAX_first, i == 0);
    set(c, AMAX_dst, c->y->choice / 4);
    emit(c);
}

/* the last token's logits */
static void head(compiler *c)
{
    uint32_t terms = c->y->options.terms.l;
    stream s = stream_of(c, c->y->tied ? MUC_MATRIX_EMBEDDING : MUC_MATRIX_HEAD);
    product x = { .src = buffer_of_n(c),
                  .saddr = at(c, MUC_PLACE_N),
                  .rows = 1,
                  .k = c->y->width,
                  .terms = terms,
                  .spitch = slots(c->y->width, terms),
                  .daddr = word_at(c, MUC_PLACE_LG),
                  .dpitch = s.matrix->chunk,
                  .shared = 1 };

    ld_chunk(c, &s, 0, 2 * c->turn);
    norm(c, c->m - 1, 1, buffer_of_n(c), at(c, MUC_PLACE_N), terms);
    for (uint32_t i = 0; i < s.matrix->chunks; i++) {
        uint32_t columns = chunk_columns(&s, i), here = c->turn;

        c->turn = 1 - here;
        if (i + 1 < s.matrix->chunks)
            ld_chunk(c, &s, i + 1, 2 * c->turn);
        mm(c, &x, 2 * here, 0, columns, longest(&s, i));
        if (i > 0)
            amax(c, &s, i - 1);
        st(c, MUR_GB, at(c, MUC_PLACE_LG), MUR_IO, c->y->logits + 4 * i * s.matrix->chunk,
           4 * columns);
    }
    amax(c, &s, s.matrix->chunks - 1);
}

void static_uthinker_compile(const muc_uthinker_layout *layout, uint32_t decode, uint32_t pos,
                             uint32_t m, static_uthinker_sink *sink, void *arg)
{
    compiler c = { .y = layout,
                   .chip = decode ? &layout->decode : &layout->prefill,
                   .pos = pos,
                   .m = m,
                   .end = pos + m,
                   .sink = sink,
                   .arg = arg };
    stream q = stream_of(&c, MUC_MATRIX_Q);

    ld_chunk(&c, &q, 0, W0A);
    embedding(&c);
    ld_gains(&c, layout->gain_attention);
    for (c.l = 0; c.l < layout->layers; c.l++)
        layer(&c);
    c.l = c.h = c.pass = 0;
    head(&c);
}

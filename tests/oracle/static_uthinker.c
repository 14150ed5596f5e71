/* static_uthinker.c - SPEC.md section 8, read aloud in C. */
#include "oracle/static_instructions.h"

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
    int by_head =
        (kind == MUC_MATRIX_V && !together(c)) || (kind == MUC_MATRIX_O && o_by_head(c)) ||
        ((kind == MUC_MATRIX_Q || kind == MUC_MATRIX_K) && !c->y->whole_norms && !together(c));
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
enum after {
    NOTHING,
    ALL_K,
    FIRST_V,
    KV,
    FIRST_GROUP,
    NEXT_GROUP,
    O,
    HEAD,
    GATE,
    FIRST_PASS,
    DOWN,
    PASS,
    LAYER
};

static void ld_first(compiler *c, enum after what, uint32_t buffer);

static enum after after_attention(const compiler *c)
{
    if (o_by_head(c) || c->h + 1 == c->y->kv_heads)
        return O;
    return together(c) ? NEXT_GROUP : HEAD;
}

/* of what there are several of, each begins with W0, and so does what follows the last one */
static int begins_with_w0(const compiler *c, enum after what)
{
    return what == FIRST_V || what == HEAD || what == FIRST_PASS || what == PASS || what == LAYER ||
           (what == O && !o_by_head(c) && !together(c));
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
        if (c->chip->late)
            mm_chunk(c, &s, i, 2 * here, x);
        if (i + 1 < s.matrix->chunks)
            ld_chunk(c, &s, i + 1, 2 * c->turn);
        else
            done = before_last(c, what, here);
        if (!c->chip->late)
            mm_chunk(c, &s, i, 2 * here, x);
    }
    after_last(c, what, done);
}

/* the product with m rows of X */
static product times_x(const compiler *c, uint32_t daddr, uint32_t dpitch)
{
    uint32_t terms = terms_of(c, c->l)->x;

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

/* a token's keys of a head of layer l in slabs 0 .. count - 1 */
static uint64_t keys_of(const compiler *c, uint32_t l, uint32_t count)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < count; i++)
        bytes += slots(slab_width(c, i), terms_of(c, l)->k);
    return bytes;
}

static uint64_t k_cache_row(const compiler *c, uint32_t s, uint32_t token)
{
    uint64_t rows = c->h * keys_of(c, c->l, c->y->slabs) + keys_of(c, c->l, s);

    for (uint32_t l = 0; l < c->l; l++)
        rows += c->y->kv_heads * keys_of(c, l, c->y->slabs);
    return c->y->k_cache + rows * c->y->padded_context +
           (uint64_t)token * slots(slab_width(c, s), terms_of(c, c->l)->k);
}

static uint32_t v_chunk_of(const compiler *c, uint32_t l)
{
    return c->y->head_width * slots(64, terms_of(c, l)->v);
}

static uint32_t v_chunk_bytes(const compiler *c)
{
    return v_chunk_of(c, c->l);
}

static uint64_t v_cache_chunk(const compiler *c, uint32_t chunk)
{
    uint64_t chunks = c->y->padded_context / 64, off = c->y->v_cache;

    for (uint32_t l = 0; l < c->l; l++)
        off += c->y->kv_heads * chunks * v_chunk_of(c, l);
    return off + (c->h * chunks + chunk) * v_chunk_bytes(c);
}

static uint64_t v_tail_row(const compiler *c, uint32_t row)
{
    return c->y->v_tail +
           4 * (uint64_t)kv_row(c) * (64 * (uint64_t)(together(c) ? c->l : head_number(c)) + row);
}

static uint64_t x_cache_row(const compiler *c, uint32_t token)
{
    uint64_t off = c->y->x_cache;

    for (uint32_t l = 0; l < c->l; l++)
        off += (uint64_t)c->y->padded_context * slots(c->y->width, terms_of(c, l)->x);
    return off + (uint64_t)token * slots(c->y->width, terms_of(c, c->l)->x);
}

/* the number of the layer's table */
static uint32_t angles(const compiler *c)
{
    return c->y->angle_sums ? c->y->angle_sums[c->l + 1] - c->y->angle_sums[c->l] : 0;
}

static uint64_t rope_row(const compiler *c, uint32_t token)
{
    uint64_t row = (uint64_t)angles(c) * c->y->options.context + token;

    return c->y->rope + 4 * c->y->rotary * row;
}

/* ---- attention ---- */

static uint32_t angles_in_tb(const compiler *c)
{
    return word_at(c, MUC_PLACE_TB) + angles(c) * c->chip->rows * c->y->rotary;
}

static void norm_heads(compiler *c, muc_vector_kind gain, uint32_t at_word, uint32_t rows)
{
    if (has(c, gain))
        rms(c, at_word, rows, c->y->head_width, vector_at(c, gain, 0), at_word, 0);
}

/* m rows of columns of a place whose rows have `width` */
static void take_columns(compiler *c, muc_uthinker_place from, uint32_t width, uint32_t first,
                         uint32_t columns, uint32_t to)
{
    scale(c, word_at(c, from) + first, width, c->m, columns, to, columns, MUC_UTHINKER_ONE, 0, 0);
}

/* one of Q and K, of all heads: products, then their norm */
static void all_columns(compiler *c, muc_matrix_kind kind, muc_uthinker_place place,
                        uint32_t columns, muc_vector_kind added, muc_vector_kind gain,
                        enum after what)
{
    uint32_t to = word_at(c, place);
    product x = times_x(c, to, columns);

    x.acc = (uint32_t)has(c, added);
    bias(c, added, 0, columns, to, c->m, 0, 0);
    stream_mm(c, kind, x, what);
    rms(c, to, c->m, columns, vector_at(c, gain, 0), to, 0);
}

static void queries(compiler *c)
{
    uint32_t hd = c->y->head_width, heads = c->y->group * heads_beside(c), width = heads * hd;
    uint32_t to = word_at(c, MUC_PLACE_QF);

    if (c->y->whole_norms) {
        take_columns(c, MUC_PLACE_QA, c->y->heads * hd, c->h * width, width, to);
    } else {
        product x = times_x(c, to, width);

        x.acc = (uint32_t)has(c, MUC_VECTOR_Q_BIAS);
        bias(c, MUC_VECTOR_Q_BIAS, c->h * width, width, to, c->m, 0, 0);
        stream_mm(c, MUC_MATRIX_Q, x, KV);
        norm_heads(c, MUC_VECTOR_Q_NORM, to, c->m * heads);
    }
    rope(c, to, c->m, heads, angles_in_tb(c));
    if (together(c) && c->chip->rows > 1) /* each kv head's just before its attention */
        return;
    begin_acc(c, QUANT, 0);
    quant(c, to, hd, c->m * heads, hd, MUR_I1, at(c, MUC_PLACE_Q), terms_of(c, c->l)->q);
}

/* of the queries of all heads those of the kv head */
static void queries_of_head(compiler *c)
{
    uint32_t hd = c->y->head_width, bytes = slots(hd, terms_of(c, c->l)->q);

    for (uint32_t g = 0; g < c->y->group; g++) {
        begin_acc(c, QUANT, 0);
        quant_apart(c, word_at(c, MUC_PLACE_QF) + (c->h * c->y->group + g) * hd, c->y->heads * hd,
                    c->m, hd, MUR_I1, at(c, MUC_PLACE_Q) + g * bytes, terms_of(c, c->l)->q,
                    c->y->group * bytes);
    }
}

static int keys_beside(const compiler *c)
{
    return !c->y->options.recompute && !c->y->whole_norms;
}

static void ld_kv(compiler *c, uint32_t i, uint32_t buffer)
{
    stream k = stream_of(c, MUC_MATRIX_K), v = stream_of(c, MUC_MATRIX_V);

    if (keys_beside(c))
        ld_chunk(c, &k, i, 2 * buffer);
    ld_chunk(c, &v, i, 2 * buffer + (c->y->whole_norms ? 0 : 1));
}

static void keys_and_values(compiler *c)
{
    uint32_t hd = kv_row(c), kf = word_at(c, MUC_PLACE_KF);
    uint32_t vt = word_at(c, MUC_PLACE_VT) + c->pos % 64 * hd;
    stream k = stream_of(c, MUC_MATRIX_K), v = stream_of(c, MUC_MATRIX_V);
    product x = times_x(c, vt, hd), y = times_x(c, kf, hd);

    x.shared = 1;
    x.acc = (uint32_t)has(c, MUC_VECTOR_V_BIAS);
    y.acc = (uint32_t)has(c, MUC_VECTOR_K_BIAS);
    if (keys_beside(c))
        bias(c, MUC_VECTOR_K_BIAS, c->h * hd, hd, kf, c->m, 0, 0);
    if (c->y->whole_norms)
        take_columns(c, MUC_PLACE_KA, c->y->kv_heads * hd, c->h * hd, hd, kf);
    bias(c, MUC_VECTOR_V_BIAS, c->h * hd, hd, vt, c->m, 0, 1);
    for (uint32_t i = 0; i < v.matrix->chunks; i++) {
        uint32_t here = c->turn;

        c->turn = 1 - here;
        for (uint32_t turn = 0; turn < 2; turn++)
            if (turn != c->chip->late) {
                if (keys_beside(c))
                    mm_chunk(c, &k, i, 2 * here, y);
                mm_chunk(c, &v, i, 2 * here + (c->y->whole_norms ? 0 : 1), x);
            } else if (i + 1 < v.matrix->chunks) {
                ld_kv(c, i + 1, c->turn);
            } else if (!c->y->options.recompute) {
                ld_first(c, FIRST_GROUP, c->turn);
            }
    }
}

static void store_tail(compiler *c)
{
    uint32_t row = 4 * kv_row(c), old = c->pos % 64, rows = old + c->m;
    uint32_t from = rows >= 64 ? 64 : old;

    st(c, MUR_GB, at(c, MUC_PLACE_VT) + from * row, MUR_KV, v_tail_row(c, from % 64),
       (rows - from) * row);
}

/* Of the call's tokens from `first` on, as many as a tile may have; DECODE has one token. */
static tile next_tokens(const compiler *c, uint32_t first)
{
    uint32_t left = c->m - first;

    return (tile){ first, left < c->chip->tile ? left : c->chip->tile };
}

/* The tile of the call's token `first`: of what may lie in one tile of positions, all tokens of the
 * call. */
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
    const muc_uthinker_terms *terms = terms_of(c, c->l);
    uint32_t hd = c->y->head_width, w = slab_width(c, s), pitch = slots(hd, terms->q);
    product x = { .src = MUR_I1,
                  .saddr = at(c, MUC_PLACE_Q) + (t.first * c->y->group + heads_before(c)) * pitch +
                           slots(64 * s, terms->q),
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
    uint32_t hd = c->y->head_width, terms = terms_of(c, c->l)->p, pitch = slots(64, terms);
    uint32_t group = c->y->group;
    product x = { .src = MUR_I1,
                  .saddr = at(c, MUC_PLACE_P) + from * group * pitch + skip,
                  .rows = tokens * group,
                  .k = k,
                  .terms = terms,
                  .spitch = pitch,
                  .daddr =
                      word_at(c, MUC_PLACE_OA) + ((t.first + from) * group + heads_before(c)) * hd,
                  .dpitch = hd,
                  .acc = 1 };

    mm(c, &x, half, address, hd, v_chunk_bytes(c));
}

/* address of key row `row` of slab s, in W0 or W1 */
static uint32_t key_at(const compiler *c, uint32_t s, uint32_t row)
{
    uint32_t address = 0;

    for (uint32_t i = 0; i < s; i++)
        address += c->chip->key_rows * slots(slab_width(c, i), terms_of(c, c->l)->k);
    return address + row * slots(slab_width(c, s), terms_of(c, c->l)->k);
}

/* address of the step-th of a group's values, in W0 or W1 */
static uint32_t values_at(const compiler *c, uint32_t buffer, uint32_t step)
{
    return half_address(c, 2 * buffer + 1) + step * v_chunk_bytes(c);
}

static void whole_step(compiler *c, tile t, uint32_t buffer, uint32_t i, uint32_t step)
{
    for (uint32_t s = 0; s < c->y->slabs; s++)
        scores(c, t, s, 2 * buffer, key_at(c, s, 64 * i), 64);
    smax(c, t, 0, step, 64, 64, NO_HALF);
    weigh_values(c, t, 0, t.tokens, 0, 64, 2 * buffer + 1, values_at(c, buffer, i));
}

/* the first `count` steps of a group, for one tile of queries after the other */
static void whole_steps(compiler *c, uint32_t group, uint32_t count, uint32_t buffer)
{
    for (tile t = next_tokens(c, 0); is_in_call(c, t); t = next_tokens(c, t.first + t.tokens))
        for (uint32_t i = 0; i < count; i++)
            whole_step(c, t, buffer, i, first_step(c) + group * c->chip->steps + i);
}

/* tokens and whole steps before pos that belong to a group */
static void ld_group(compiler *c, uint32_t group, uint32_t buffer)
{
    uint32_t steps = c->chip->steps, first = first_step(c) + group * steps, token = 64 * first;
    uint32_t tokens = c->pos - token, whole = c->pos / 64 - first;

    tokens = tokens < 64 * steps ? tokens : 64 * steps;
    whole = whole < steps ? whole : steps;
    for (uint32_t s = 0; s < c->y->slabs; s++)
        ld_half(c, 2 * buffer, key_at(c, s, 0), MUR_KV, k_cache_row(c, s, token),
                tokens * slots(slab_width(c, s), terms_of(c, c->l)->k));
    ld_half(c, 2 * buffer + 1, values_at(c, buffer, 0), MUR_KV, v_cache_chunk(c, first),
            whole * v_chunk_bytes(c));
}

static void new_keys(compiler *c, uint32_t buffer)
{
    uint32_t row = (c->pos - 64 * first_step(c)) % (64 * c->chip->steps);
    uint32_t terms = terms_of(c, c->l)->k;

    for (uint32_t s = 0; s < c->y->slabs; s++) {
        begin_acc_half(c, QUANT, 2 * buffer, 0);
        quant(c, word_at(c, MUC_PLACE_KF) + kv_column(c) + 64 * s, kv_row(c), c->m,
              slab_width(c, s), MUR_W0 + buffer, key_at(c, s, row), terms);
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
    uint32_t bytes = slots(32, terms_of(c, c->l)->p), step = c->pos / 64 + e;
    uint32_t keys = seen + t.tokens;

    if (c->chip->rows == 1) {
        smax(c, t, 0, step, keys, seen + 1, NO_HALF);
        qpack(c, 0, seen + 1, half, address);
        weigh_values(c, t, 0, 1, 0, seen + 1, half, address);
        return;
    }
    /* either way the tile's own block lies behind the room of one */
    smax(c, t, block > 0 ? 0 : bytes, step, keys, seen + 1, half);
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
            smax(c, t, 0, step, 64, 64, NO_HALF);
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
    uint32_t steps = c->chip->steps, whole = c->pos / 64 - first_step(c) - group * steps;
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
    if (!o_by_head(c) && (!together(c) || c->h + 1 == c->y->kv_heads))
        store_tail(c);
    divide(c);
}

/* Group 0 is loaded. The last one lies where group 0 did, whether or not that is the other buffer
 * than that of the group before it. */
static void groups(compiler *c)
{
    uint32_t a = c->turn, b = 1 - a, count = (c->pos / 64 - first_step(c)) / c->chip->steps;
    int done;

    if (!together(c) || c->h == 0) {
        if (!c->y->whole_norms)
            norm_heads(c, MUC_VECTOR_K_NORM, word_at(c, MUC_PLACE_KF), c->m * heads_beside(c));
        rope(c, word_at(c, MUC_PLACE_KF), c->m, heads_beside(c), angles_in_tb(c));
    }
    if (together(c) && c->chip->rows > 1)
        queries_of_head(c);
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
    uint32_t hd = c->y->head_width, terms = terms_of(c, c->l)->x;
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
    ld(c, MUR_GB, at(c, MUC_PLACE_TC), MUR_PARM, rope_row(c, token), 4 * c->y->rotary * rows);
    x.acc = (uint32_t)has(c, MUC_VECTOR_K_BIAS);
    bias(c, MUC_VECTOR_K_BIAS, c->h * hd, hd, x.daddr, rows, 0, 0);
    for (uint32_t i = 0; i < k.matrix->chunks; i++)
        mm_chunk(c, &k, i, W1A + i, x);
    norm_heads(c, MUC_VECTOR_K_NORM, x.daddr, rows);
    rope(c, x.daddr, rows, 1, word_at(c, MUC_PLACE_TC));
}

/* slab s of `rows` keys in KC to W0a */
static void quantize_keys(compiler *c, uint32_t s, uint32_t rows)
{
    begin_acc_half(c, QUANT, W0A, 0);
    quant(c, word_at(c, MUC_PLACE_KC) + 64 * s, c->y->head_width, rows, slab_width(c, s), MUR_W0, 0,
          terms_of(c, c->l)->k);
}

static void keys_from_kc(compiler *c, uint32_t s, uint32_t e)
{
    quantize_keys(c, s, present_rows(c, e));
}

static void past_chunk(compiler *c, uint32_t chunk, uint32_t packed)
{
    compute_keys(c, 64 * chunk, 64);
    ld_half(c, W0B, packed, MUR_KV, v_cache_chunk(c, chunk), v_chunk_bytes(c));
    for (tile t = next_tokens(c, 0); is_in_call(c, t); t = next_tokens(c, t.first + t.tokens)) {
        for (uint32_t s = 0; s < c->y->slabs; s++) {
            quantize_keys(c, s, 64);
            scores(c, t, s, W0A, 0, 64);
        }
        smax(c, t, 0, chunk, 64, 64, NO_HALF);
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
    for (uint32_t chunk = first_step(c); chunk < c->pos / 64; chunk++)
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
    if (what == NEXT_GROUP) {
        c->h++;
        ld_group(c, 0, buffer);
        c->h--;
    }
    if (what == O)
        ld_chunk(c, &o, 0, 2 * buffer);
    if (what == DOWN)
        ld_chunk(c, &down, 0, 2 * buffer);
    if (what == GATE || what == FIRST_PASS || what == PASS) {
        uint32_t pass = own_layer(c, c->l) * c->y->ffn_parts + (what == PASS ? c->pass + 1 : 0);
        stream gate = stream_number(c, MUC_MATRIX_GATE, pass);

        ld_chunk(c, &gate, 0, 2 * buffer);
    }
    if (what == ALL_K) {
        stream k = stream_of(c, MUC_MATRIX_K);

        ld_chunk(c, &k, 0, 2 * buffer);
    }
    if (what == FIRST_V || (what == HEAD && c->y->whole_norms)) {
        uint32_t here = c->h;

        c->h = what == FIRST_V ? 0 : here + 1;
        ld_kv(c, 0, buffer);
        c->h = here;
    } else if (what == HEAD || (what == LAYER && c->l + 1 < c->y->layers)) {
        uint32_t layer = own_layer(c, what == HEAD ? c->l : c->l + 1);
        uint32_t head = layer * c->y->kv_heads + (what == HEAD ? c->h + 1 : 0);
        stream q = stream_number(c, MUC_MATRIX_Q, c->y->whole_norms || together(c) ? layer : head);

        ld_chunk(c, &q, 0, 2 * buffer);
    }
}

static void ld_gains(compiler *c, uint32_t off, uint32_t rows)
{
    ld(c, MUR_GB, at(c, MUC_PLACE_GN), MUR_PARM, off, 4 * (uint64_t)c->y->width * rows);
}

/* whether O and down give what is changed before it is added */
static int adds_apart(const compiler *c)
{
    return has(c, MUC_VECTOR_O_NORM) || has(c, MUC_VECTOR_DOWN_NORM) ||
           c->y->residual_factor != MUC_UTHINKER_ONE;
}

static uint32_t sums_of(const compiler *c)
{
    return word_at(c, adds_apart(c) ? MUC_PLACE_OT : MUC_PLACE_RES);
}

/* where the sums lie apart: their norm, their factor, and the residual */
static void add_apart(compiler *c, muc_vector_kind gain)
{
    uint32_t ot = word_at(c, MUC_PLACE_OT), res = word_at(c, MUC_PLACE_RES), d = c->y->width;
    int factor = c->y->residual_factor != MUC_UTHINKER_ONE;

    if (!adds_apart(c))
        return;
    if (has(c, gain) && !factor) {
        rms(c, ot, c->m, d, vector_at(c, gain, 0), res, 1);
        return;
    }
    if (has(c, gain))
        rms(c, ot, c->m, d, vector_at(c, gain, 0), ot, 0);
    scale(c, ot, d, c->m, d, res, d, c->y->residual_factor, 1, 0);
}

/* RES, or OT, += rows of k values in slots at `from` of a buffer, times a matrix or a part of it */
static void add_product(compiler *c, muc_matrix_kind kind, uint32_t buffer, muc_uthinker_place from,
                        uint32_t k, uint32_t terms, enum after what)
{
    muc_vector_kind added = kind == MUC_MATRIX_O ? MUC_VECTOR_O_BIAS : MUC_VECTOR_DOWN_BIAS;
    uint32_t part = kind == MUC_MATRIX_DOWN ? c->pass : o_by_head(c) ? c->h : 0;
    product x = { .src = buffer,
                  .saddr = at(c, from),
                  .rows = c->m,
                  .k = k,
                  .terms = terms,
                  .spitch = slots(k, terms),
                  .daddr = sums_of(c),
                  .dpitch = c->y->width,
                  .acc = !adds_apart(c) || has(c, added) || part > 0,
                  .to_residual = (uint32_t)!adds_apart(c) };

    stream_mm(c, kind, x, what);
}

static void mm_ffn(compiler *c, const stream *s, uint32_t i, uint32_t buffer, muc_uthinker_place to)
{
    muc_vector_kind added = to == MUC_PLACE_GA ? MUC_VECTOR_GATE_BIAS : MUC_VECTOR_UP_BIAS;
    uint32_t terms = terms_of(c, c->l)->f;
    product x = { .src = buffer_of_n(c),
                  .saddr = at(c, MUC_PLACE_N),
                  .rows = c->m,
                  .k = c->y->width,
                  .terms = terms,
                  .spitch = slots(c->y->width, terms),
                  .daddr = word_at(c, to),
                  .dpitch = chunk_columns(s, i),
                  .acc = (uint32_t)has(c, added) };

    bias(c, added, c->pass * pass_width(c) + i * s->matrix->chunk, x.dpitch, x.daddr, c->m, 0, 0);
    mm(c, &x, 2 * buffer, 0, chunk_columns(s, i), longest(s, i));
}

static void feed_forward(compiler *c)
{
    stream gate = stream_of(c, MUC_MATRIX_GATE), up = stream_of(c, MUC_MATRIX_UP);
    uint32_t a = c->turn, b = 1 - a;
    int done = 0;

    for (uint32_t i = 0; i < gate.matrix->chunks; i++) {
        if (c->chip->late)
            mm_ffn(c, &gate, i, a, MUC_PLACE_GA);
        ld_chunk(c, &up, i, 2 * b);
        mm_ffn(c, c->chip->late ? &up : &gate, i, c->chip->late ? b : a,
               c->chip->late ? MUC_PLACE_UP : MUC_PLACE_GA);
        if (i + 1 < gate.matrix->chunks)
            ld_chunk(c, &gate, i + 1, 2 * a);
        else
            done = before_last(c, DOWN, b);
        if (!c->chip->late)
            mm_ffn(c, &up, i, b, MUC_PLACE_UP);
        glu(c, i * gate.matrix->chunk, chunk_columns(&gate, i));
    }
    after_last(c, DOWN, done);
}

/* what attention came to, of all heads or of the one at hand, times those rows of O */
static void output(compiler *c, enum after what)
{
    uint32_t width = (o_by_head(c) ? c->y->group : c->y->heads) * c->y->head_width;
    uint32_t terms = terms_of(c, c->l)->o;

    begin_acc(c, QUANT, 0);
    quant(c, word_at(c, MUC_PLACE_AT), width, c->m, width, MUR_I0, at(c, MUC_PLACE_A), terms);
    if (o_by_head(c) && !c->y->options.recompute)
        store_tail(c);
    add_product(c, MUC_MATRIX_O, MUR_I0, MUC_PLACE_A, width, terms, what);
}

static void attention(compiler *c)
{
    if (!together(c) || c->h == 0) {
        queries(c);
        ld(c, MUR_GB, at(c, MUC_PLACE_VT), MUR_KV, v_tail_row(c, 0), c->pos % 64 * 4 * kv_row(c));
        keys_and_values(c);
    }
    if (c->y->options.recompute)
        attention_again(c);
    else
        groups(c);
    if (o_by_head(c))
        output(c, c->h + 1 < c->y->kv_heads ? HEAD : FIRST_PASS);
}

/* the residual, as Q, K, V, gate and up take it */
static void input(compiler *c, enum gain of, uint32_t dst, uint32_t daddr, uint32_t terms)
{
    uint32_t d = c->y->width;

    if (c->y->input_norms) {
        norm(c, 0, c->m, of, dst, daddr, terms);
        return;
    }
    begin_acc(c, QUANT, WAIT_FILLED);
    quant(c, word_at(c, MUC_PLACE_RES), d, c->m, d, dst, daddr, terms);
}

static void ld_vectors(compiler *c)
{
    uint64_t row = 4 * (uint64_t)c->y->row_elements;

    if (row)
        ld(c, MUR_GB, at(c, MUC_PLACE_EX), MUR_PARM, c->y->vectors + row * own_layer(c, c->l), row);
}

static void layer(compiler *c)
{
    const muc_uthinker_terms *terms = terms_of(c, c->l);
    uint32_t d = c->y->width;

    c->pass = 0;
    input(c, OF_ATTENTION, MUR_I0, at(c, MUC_PLACE_X), terms->x);
    if (c->y->options.recompute)
        st(c, MUR_I0, at(c, MUC_PLACE_X), MUR_KV, x_cache_row(c, c->pos),
           c->m * slots(d, terms->x));
    if (c->y->input_norms && !gains_once(c))
        ld_gains(c, c->y->gain_ffn + 4 * d * own_layer(c, c->l), 1);
    ld_vectors(c);
    bias(c, MUC_VECTOR_O_BIAS, 0, d, sums_of(c), c->m, !adds_apart(c), 0);
    if (c->y->whole_norms) {
        all_columns(c, MUC_MATRIX_Q, MUC_PLACE_QA, c->y->heads * c->y->head_width,
                    MUC_VECTOR_Q_BIAS, MUC_VECTOR_Q_NORM, ALL_K);
        all_columns(c, MUC_MATRIX_K, MUC_PLACE_KA, c->y->kv_heads * c->y->head_width,
                    MUC_VECTOR_K_BIAS, MUC_VECTOR_K_NORM, FIRST_V);
    }
    for (c->h = 0; c->h < c->y->kv_heads; c->h++)
        attention(c);
    if (!o_by_head(c))
        output(c, c->y->ffn_parts > 1 ? FIRST_PASS : GATE);
    add_apart(c, MUC_VECTOR_O_NORM);
    input(c, OF_FEED_FORWARD, buffer_of_n(c), at(c, MUC_PLACE_N), terms->f);
    if (c->y->input_norms && !gains_once(c))
        ld_gains(c,
                 c->l + 1 < c->y->layers ? c->y->gain_attention + 4 * d * own_layer(c, c->l + 1)
                                         : c->y->gain_final,
                 1);
    bias(c, MUC_VECTOR_DOWN_BIAS, 0, d, sums_of(c), c->m, !adds_apart(c), 0);
    for (; c->pass < c->y->ffn_parts; c->pass++) {
        feed_forward(c);
        add_product(c, MUC_MATRIX_DOWN, buffer_of_h(c), MUC_PLACE_H, pass_width(c), terms->h,
                    c->pass + 1 < c->y->ffn_parts ? PASS : LAYER);
    }
    add_apart(c, MUC_VECTOR_DOWN_NORM);
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
    for (uint32_t i = 0; i < y->angles; i++)
        ld(c, MUR_GB, at(c, MUC_PLACE_TB) + 4 * i * c->chip->rows * y->rotary, MUR_PARM,
           y->rope + 4 * (uint64_t)y->rotary * (i * y->options.context + c->pos),
           4 * (uint64_t)y->rotary * c->m);
    if (y->embedding_factor != MUC_UTHINKER_ONE)
        scale(c, word_at(c, MUC_PLACE_RES), y->width, c->m, y->width, word_at(c, MUC_PLACE_RES),
              y->width, y->embedding_factor, 0, 0);
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
    norm(c, c->m - 1, 1, OF_LOGITS, buffer_of_n(c), at(c, MUC_PLACE_N), terms);
    for (uint32_t i = 0; i < s.matrix->chunks; i++) {
        uint32_t columns = chunk_columns(&s, i), here = c->turn;

        c->turn = 1 - here;
        if (i + 1 < s.matrix->chunks)
            ld_chunk(c, &s, i + 1, 2 * c->turn);
        mm(c, &x, 2 * here, 0, columns, longest(&s, i));
        if (c->y->logit_factor != MUC_UTHINKER_ONE)
            scale(c, x.daddr, x.dpitch, 1, x.dpitch, x.daddr, x.dpitch, c->y->logit_factor, 0, 1);
        if (c->y->logit_cap)
            cap(c, x.daddr, 1, columns, x.dpitch, c->y->logit_uncap, c->y->logit_cap, 1);
        if (i > 0)
            amax(c, &s, i - 1);
        st(c, MUR_GB, at(c, MUC_PLACE_LG), MUR_IO, c->y->logits + 4 * i * s.matrix->chunk,
           4 * columns);
    }
    amax(c, &s, s.matrix->chunks - 1);
}

void static_uthinker_compile(const muc_uthinker_layout *layout, uint32_t decode, uint32_t pos,
                             uint32_t m, uint32_t logits, static_uthinker_sink *sink, void *arg)
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
    ld_gains(&c, layout->input_norms ? layout->gain_attention : layout->gain_final,
             gains_once(&c) ? 2 * layout->own_layers + 1 : 1);
    for (c.l = 0; c.l < layout->layers; c.l++)
        layer(&c);
    c.l = c.h = c.pass = 0;
    if (logits)
        head(&c);
}

/* uthinker_sim_execute.c - µThinker's instructions, one function each, in the order of SPEC.md
 * section 4.
 *
 * An instruction first checks every range it will touch, then works on plain pointers. Products of
 * GB addresses, pitches and counts stay below 2^32, because of the widths of their fields.
 *
 * MM is where the time goes. A block of the right operand is decoded once and multiplied with as
 * many left rows as `left` holds; a partial sum is an exact integer, so that only the additions
 * across blocks have an order to keep.
 */
#include "uthinker_sim_execute.h"

#include <float.h>
#include <string.h>

#include "mur_real.h"

#if FLT_EVAL_METHOD != 0
#error "the machine's arithmetic is binary32 without excess precision"
#endif

enum { MOST_TOKENS = 64, MOST_GROUP = 255 };

enum opcode {
#define MUR_INSN(name, opcode, words, engine, meaning) OP_##name = opcode,
#include "mur_isa.def"
};

/* a field's place, as one constant */
enum field {
#define MUR_FIELD(insn, name, word, shift, width, unit) \
    insn##_##name = (word) << 16 | (shift) << 8 | (width),
#include "mur_isa.def"
};

static uint32_t get(const uint32_t *words, enum field field)
{
    uint32_t place = (uint32_t)field;

    return words[place >> 16] >> (place >> 8 & 255u) & (0xffffffffu >> (32u - (place & 255u)));
}

static float get_float(const uint32_t *words, enum field field)
{
    uint32_t bits = get(words, field);
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* ---- checks: each returns the reason of a fault, or NULL ---- */

static const char outside_buffer[] = "access outside its buffer";
static const char outside_region[] = "access outside its region";
const char mur_sim_malformed_block[] = "malformed block";
static const char bad_operand[] = "operand that the instruction does not take";

static int inside(uint32_t size, uint32_t start, uint32_t length)
{
    return start <= size && length <= size - start;
}

/* rows of `length` each, `pitch` apart, from the first to the end of the last */
static int rows_inside(uint32_t size, uint32_t start, uint32_t rows, uint32_t pitch,
                       uint32_t length)
{
    return rows == 0 || inside(size, start, (rows - 1) * pitch + length);
}

static int gb_inside(const mur_sim *sim, uint32_t start, uint32_t rows, uint32_t pitch,
                     uint32_t length)
{
    return rows_inside(sim->memory.buffer_bytes[MUR_GB] / 4, start, rows, pitch, length);
}

uint32_t mur_sim_slots_bytes(uint32_t k, uint32_t terms)
{
    return k / MUR_BLOCK_ELEMS * mur_block_slot_bytes(MUR_BLOCK_ELEMS, terms) +
           (k % MUR_BLOCK_ELEMS != 0 ? mur_block_slot_bytes(k % MUR_BLOCK_ELEMS, terms) : 0);
}

static int takes_slots(uint32_t dst, uint32_t terms)
{
    return dst < MUR_GB && terms >= 1 && terms <= MUR_BLOCK_TERMS;
}

static int takes_group(uint32_t group)
{
    return group >= 1 && group <= MOST_GROUP;
}

/* where rows of slots go: `rows` times slots(k, terms), `pitch` bytes apart, from daddr of dst */
static const char *check_slots(const mur_sim *sim, uint32_t dst, uint32_t daddr, uint32_t rows,
                               uint32_t pitch, uint32_t k, uint32_t terms)
{
    if (!takes_slots(dst, terms))
        return bad_operand;
    if (!rows_inside(sim->memory.buffer_bytes[dst], daddr, rows, pitch,
                     mur_sim_slots_bytes(k, terms)))
        return outside_buffer;
    return NULL;
}

/* ---- section 3: arithmetic ---- */

static float power_of_two(int32_t exponent) /* -126..127 */
{
    uint32_t bits = (uint32_t)(exponent + 127) << 23;
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

const uint32_t mur_sim_exp_bits[7] = { 0x3f800000, 0x3f317218, 0x3e75fdf0, 0x3d635847,
                                       0x3c1d955b, 0x3aaec3ff, 0x39218489 };
const uint32_t mur_sim_log2e_bits = 0x3fb8aa3b;

float mur_sim_exp(float x)
{
    float c[7], log2e, t, f, p;
    int32_t n;

    if (!(x >= -80.0f))
        return 0.0f;
    memcpy(c, mur_sim_exp_bits, sizeof(c));
    memcpy(&log2e, &mur_sim_log2e_bits, sizeof(log2e));
    t = x * log2e;
    n = (int32_t)(t + 0.5f);
    if ((float)n > t + 0.5f)
        n--;
    f = t - (float)n;
    p = c[6];
    for (int i = 5; i >= 0; i--)
        p = p * f + c[i];
    return p * power_of_two(n);
}

void mur_sim_exps(float *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        x[i] = mur_sim_exp(x[i]);
}

/* Digit by digit: 25 bits of the root, of which the last decides the rounding. A root is never half
 * way between two numbers, so what is left after it does not matter. */
float mur_sim_sqrt(float x)
{
    uint32_t bits, mantissa, root = 0, rest = 0;
    int32_t exponent;

    memcpy(&bits, &x, sizeof(bits));
    if (bits << 1 == 0 || bits == 0x7f800000u || x != x)
        return x;
    if (bits >> 31 != 0) {
        bits = 0x7fc00000u;
        memcpy(&x, &bits, sizeof(x));
        return x;
    }
    exponent = (int32_t)(bits >> 23) - 127;
    mantissa = bits & 0x7fffffu;
    if (exponent == -127) {
        exponent++;
        while (mantissa < 0x800000u) {
            mantissa <<= 1;
            exponent--;
        }
    }
    mantissa |= 0x800000u;
    if (exponent & 1) {
        mantissa <<= 1;
        exponent--;
    }
    /* x = mantissa * 2^(exponent - 23), 2^23 <= mantissa < 2^25, exponent even. The root of
     * mantissa * 2^25, two bits of it at a time from the top. */
    mantissa <<= 7;
    for (int i = 0; i < 25; i++, mantissa <<= 2) {
        rest = rest << 2 | mantissa >> 30;
        root <<= 1;
        if (rest >= 2 * root + 1) {
            rest -= 2 * root + 1;
            root++;
        }
    }
    /* 2^24 <= root < 2^25; the sum may carry into the exponent, which is then right as well */
    root = (root + 1) >> 1;
    bits = ((uint32_t)(exponent / 2 + 126) << 23) + root;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* ---- slots ---- */

static uint8_t *write_slots(const mur_sim *sim, const float *x, uint32_t k, uint32_t terms,
                            uint8_t *out)
{
    for (uint32_t i = 0; i < k; i += MUR_BLOCK_ELEMS) {
        uint32_t n = k - i < MUR_BLOCK_ELEMS ? k - i : MUR_BLOCK_ELEMS;

        out += sim->encode(x + i, n, terms, out);
    }
    return out;
}

static void widen(const mur_block *block, mur_sim_block *out)
{
    out->terms = block->terms;
    for (uint32_t t = 0; t < block->terms; t++) {
        out->exponent[t] = block->term[t].exponent;
        for (uint32_t i = 0; i < MUR_BLOCK_ELEMS; i++)
            out->m[t][i] = block->term[t].m[i];
    }
}

/* Decodes a fixed slot of n elements; returns 0 if it is malformed. */
static int read_slot(const uint8_t *slot, uint32_t n, uint32_t terms, mur_sim_block *out)
{
    uint32_t size = mur_block_slot_bytes(n, terms);
    mur_block block;

    if (mur_block_parse(slot, size, n, MUR_BLOCK_NO_HEADER, &block) != size ||
        (slot[1] >> 4 & 7u) != (terms == 2 ? MUR_BLOCK_R : MUR_BLOCK_B4))
        return 0;
    widen(&block, out);
    return 1;
}

/* ---- buffers ---- */

static int overlap(uint32_t start, uint32_t length, uint32_t other, uint32_t other_length)
{
    return start < other + other_length && other < start + length;
}

/* The buffer's own bytes, as they are now. */
static uint8_t *buffer_bytes(mur_sim *sim, uint32_t buffer)
{
    if (buffer == MUR_GB)
        return (uint8_t *)sim->memory.gb;
    if (sim->views[buffer] != 0)
        mur_sim_settle(sim);
    return sim->memory.buffer[buffer];
}

/* Weights, keys and values for products may stay where they are. */
static int stays(uint32_t buffer, uint32_t region)
{
    return (buffer == MUR_W0 || buffer == MUR_W1) && (region == MUR_WGTS || region == MUR_KV);
}

int mur_sim_can_wait(const uint32_t *w)
{
    uint32_t opcode = w[0] & 255u;

    return opcode == OP_MM || (opcode == OP_LD && stays(get(w, LD_buf), get(w, LD_region)));
}

/* The bytes of a view from `from` to `to` of its buffer, if there are any. What follows another
 * there and where it lies is one with it. */
static void add_part(mur_sim *sim, uint32_t buffer, const mur_sim_view *of, uint32_t from,
                     uint32_t to)
{
    const uint8_t *bytes = of->from + (from - of->addr);

    if (from >= to)
        return;
    for (uint32_t i = 0; i < sim->views[buffer]; i++) {
        mur_sim_view *view = &sim->view[buffer][i];

        if (view->addr + view->len == from && view->from + view->len == bytes) {
            view->len += to - from;
            return;
        }
    }
    sim->view[buffer][sim->views[buffer]++] =
        (mur_sim_view){ from, to - from, of->region, bytes, of->readable };
}

/* What was there before is seen no more where the two overlap. */
static void add_view(mur_sim *sim, uint32_t buffer, const mur_sim_view *added)
{
    mur_sim_view before[MUR_SIM_VIEWS];
    uint32_t count, end = added->addr + added->len;

    if (sim->views[buffer] + 2 > MUR_SIM_VIEWS) /* one can become two, and there is a new one */
        mur_sim_settle(sim);
    count = sim->views[buffer];
    memcpy(before, sim->view[buffer], sizeof(before));
    sim->views[buffer] = 0;
    for (uint32_t i = 0; i < count; i++) {
        const mur_sim_view *view = &before[i];
        uint32_t view_end = view->addr + view->len;

        add_part(sim, buffer, view, view->addr, view_end < added->addr ? view_end : added->addr);
        add_part(sim, buffer, view, view->addr > end ? view->addr : end, view_end);
    }
    add_part(sim, buffer, added, added->addr, end);
}

void mur_sim_operand(mur_sim *sim, uint32_t buffer, uint32_t addr, uint32_t len,
                     mur_sim_product *op)
{
    const mur_sim_memory *memory = &sim->memory;

    for (uint32_t i = 0; i < sim->views[buffer]; i++) {
        const mur_sim_view *view = &sim->view[buffer][i];
        uint32_t at = addr - view->addr;

        if (addr >= view->addr && at < view->len) {
            op->right = view->from + at;
            op->right_end = op->right + (len < view->len - at ? len : view->len - at);
            op->right_readable = view->readable;
            op->lasts = view->region == MUR_WGTS;
            return;
        }
        if (overlap(view->addr, view->len, addr, len))
            mur_sim_settle(sim);
    }
    op->right = memory->buffer[buffer] + addr;
    op->right_end = op->right + len;
    op->right_readable = memory->buffer[buffer] + memory->buffer_bytes[buffer];
    op->lasts = 0;
}

/* Before bytes of KV change. */
static void leave_views(mur_sim *sim, uint32_t off, uint32_t len)
{
    const uint8_t *from = sim->memory.kv + off, *to = from + len;

    for (uint32_t buffer = 0; buffer < MUR_GB; buffer++)
        for (uint32_t i = 0; i < sim->views[buffer]; i++) {
            const mur_sim_view *view = &sim->view[buffer][i];

            if (view->from < to && from < view->from + view->len)
                mur_sim_settle(sim);
        }
}

/* ---- DMA ---- */

static const char *run_LD(mur_sim *sim, const uint32_t *w)
{
    uint32_t addr = get(w, LD_addr), buffer = get(w, LD_buf), region = get(w, LD_region);
    uint32_t off = get(w, LD_off), len = get(w, LD_len);
    const uint8_t *regions[MUR_REGIONS] = { sim->memory.wgts, sim->memory.parm, sim->memory.kv,
                                            sim->memory.io };

    if (buffer >= MUR_BUFFERS || region >= MUR_REGIONS)
        return bad_operand;
    if (!inside(sim->memory.buffer_bytes[buffer], addr, len))
        return outside_buffer;
    if (!inside(sim->memory.region_bytes[region], off, len))
        return outside_region;
    if (sim->settle && len != 0 && stays(buffer, region))
        add_view(sim, buffer,
                 &(mur_sim_view){ addr, len, region, regions[region] + off,
                                  regions[region] + sim->memory.region_bytes[region] });
    else if (len != 0)
        memcpy(buffer_bytes(sim, buffer) + addr, regions[region] + off, len);
    sim->loaded_bytes[region] += len;
    return NULL;
}

static const char *run_ST(mur_sim *sim, const uint32_t *w)
{
    uint32_t addr = get(w, ST_addr), buffer = get(w, ST_buf), region = get(w, ST_region);
    uint32_t off = get(w, ST_off), len = get(w, ST_len);

    if (buffer >= MUR_BUFFERS || region >= MUR_REGIONS)
        return bad_operand;
    if (region != MUR_KV && region != MUR_IO)
        return "store to a read-only region";
    if (!inside(sim->memory.buffer_bytes[buffer], addr, len))
        return outside_buffer;
    if (!inside(sim->memory.region_bytes[region], off, len))
        return outside_region;
    if (region == MUR_KV)
        leave_views(sim, off, len);
    if (len != 0)
        memcpy((region == MUR_KV ? sim->memory.kv : sim->memory.io) + off,
               buffer_bytes(sim, buffer) + addr, len);
    sim->stored_bytes[region] += len;
    return NULL;
}

/* ---- CPU ---- */

static uint32_t load_u32(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Writes the `rows` values of one column of a tile, whose blocks are the `size` bytes at `tile`. */
static const char *embed_tile(const uint8_t *tile, uint32_t size, uint32_t column, uint32_t rows,
                              uint8_t *out)
{
    uint32_t blocks = (rows + MUR_BLOCK_ELEMS - 1) / MUR_BLOCK_ELEMS;
    mur_block block = { .header = MUR_BLOCK_NO_HEADER };

    for (uint32_t i = 0; i < column * blocks; i++) {
        uint32_t bytes = size == 0 ? 1 : 1 + (tile[0] & ~(uint32_t)MUR_BLOCK_SHARED);

        if (bytes > size)
            return mur_sim_malformed_block;
        size -= bytes;
        tile += bytes;
    }
    for (uint32_t i = 0; i < rows; i += MUR_BLOCK_ELEMS) {
        uint32_t n = rows - i < MUR_BLOCK_ELEMS ? rows - i : MUR_BLOCK_ELEMS, used;
        float values[MUR_BLOCK_ELEMS];

        used = (uint32_t)mur_block_parse(tile, size, n, block.header, &block);
        if (used == 0)
            return mur_sim_malformed_block;
        tile += used;
        size -= used;
        mur_block_values(&block, n, values);
        memcpy(out + 4 * i, values, 4 * n);
    }
    return NULL;
}

static const char *run_EMBED(mur_sim *sim, const uint32_t *w)
{
    uint32_t seq = get(w, EMBED_seq), k = get(w, EMBED_k), rows = get(w, EMBED_rows);
    uint32_t cols = get(w, EMBED_cols), dst = get(w, EMBED_dst);
    uint32_t tile_rows = mur_tile_rows(sim->memory.isa);
    uint32_t columns = mur_tile_columns(sim->memory.isa);
    uint32_t down = (k + tile_rows - 1) / tile_rows, size = sim->memory.region_bytes[MUR_WGTS];
    const uint8_t *sequence = sim->memory.wgts + seq;

    if (dst % 4 != 0)
        return bad_operand;
    if (!inside(size, seq, 4) || !inside(sim->memory.region_bytes[MUR_IO], 0, 4 * rows) ||
        !rows_inside(sim->memory.region_bytes[MUR_IO], dst, rows, 4 * k, 4 * k))
        return outside_region;
    size -= seq;
    for (uint32_t row = 0; row < rows; row++) {
        uint32_t token = load_u32(sim->memory.io + 4 * row);

        if (token >= cols)
            return "token not below the vocabulary's size";
        for (uint32_t i = 0; i < down; i++) {
            uint64_t entry = 4 * ((uint64_t)(token / columns) * down + i);
            uint32_t first, end, n = k - tile_rows * i < tile_rows ? k - tile_rows * i : tile_rows;
            const char *reason;

            if (entry + 8 > size)
                return outside_region;
            first = load_u32(sequence + entry);
            end = load_u32(sequence + entry + 4);
            if (first > end || end > size)
                return outside_region;
            reason = embed_tile(sequence + first, end - first, token % columns, n,
                                sim->memory.io + dst + 4 * (k * row + tile_rows * i));
            if (reason)
                return reason;
        }
    }
    return NULL;
}

/* ---- AMAX ---- */

/* as a logit is compared: a NaN is the lowest */
static float comparable(float x)
{
    if (!(x >= -FLT_MAX))
        return -FLT_MAX;
    return x > FLT_MAX ? FLT_MAX : x;
}

static const char *run_AMAX(mur_sim *sim, const uint32_t *w)
{
    uint32_t saddr = get(w, AMAX_saddr), k = get(w, AMAX_k), dst = get(w, AMAX_dst);
    uint32_t words = sim->memory.region_bytes[MUR_IO] / 4, at = saddr;
    float greatest = -FLT_MAX, x;
    uint8_t *state;

    if (!inside(words, saddr, k) || !inside(words, dst, 2))
        return outside_region;
    state = sim->memory.io + 4 * (size_t)dst;
    if (!get(w, AMAX_first)) {
        at = load_u32(state);
        memcpy(&greatest, state + 4, 4);
    }
    for (uint32_t i = 0; i < k; i++) {
        memcpy(&x, sim->memory.io + 4 * (size_t)(saddr + i), 4);
        if (comparable(x) > comparable(greatest)) {
            at = saddr + i;
            greatest = x;
        }
    }
    memcpy(state, &at, 4);
    memcpy(state + 4, &greatest, 4);
    return NULL;
}

/* ---- MM ---- */

static uint32_t block_elems(uint32_t k, uint32_t at)
{
    return k - at < MUR_BLOCK_ELEMS ? k - at : MUR_BLOCK_ELEMS;
}

/* acc plus the product of two blocks, SPEC-blockdialect section 6 */
static float multiply(float acc, const mur_sim_block *weight, const mur_sim_block *activation)
{
    for (uint32_t t = 0; t < weight->terms; t++) {
        for (uint32_t u = 0; u < activation->terms; u++) {
            int32_t sum = 0;

            for (uint32_t i = 0; i < MUR_BLOCK_ELEMS; i++)
                sum += weight->m[t][i] * activation->m[u][i];
            acc +=
                (float)sum * power_of_two((int32_t)(weight->exponent[t] + activation->exponent[u]) -
                                          2 * MUR_BLOCK_EXPONENT_BIAS);
        }
    }
    return acc;
}

/* One tile of the right operand, at K index `at`, with the left rows decoded for it; `out` is the
 * first row's first column. */
static int multiply_tile(const mur_sim *sim, mur_sim_product *op, uint32_t at, uint32_t columns,
                         float *out)
{
    uint32_t end = op->k - at < op->tile_rows ? op->k : at + op->tile_rows;

    for (uint32_t column = 0; column < columns; column++) {
        mur_sim_block weight[MUR_SIM_BLOCKS];
        mur_block block = { .header = MUR_BLOCK_NO_HEADER };
        uint32_t blocks = 0;

        for (uint32_t i = at; i < end; i += MUR_BLOCK_ELEMS) {
            size_t used = mur_block_parse(op->right, (size_t)(op->right_end - op->right),
                                          block_elems(op->k, i), block.header, &block);

            if (used == 0)
                return 0;
            op->right += used;
            widen(&block, &weight[blocks++]);
        }
        for (uint32_t row = 0; row < op->rows; row++) {
            float acc = out[row * op->out_pitch + column];

            for (uint32_t i = 0; i < blocks; i++)
                acc = multiply(acc, &weight[i], &sim->left[row][i]);
            out[row * op->out_pitch + column] = acc;
        }
    }
    return 1;
}

/* the left rows' blocks that meet a tile at K index `at` */
static int read_left(mur_sim *sim, const mur_sim_product *op, uint32_t at)
{
    for (uint32_t row = 0; row < op->rows; row++) {
        const uint8_t *slot = op->left + row * op->left_pitch + mur_sim_slots_bytes(at, op->terms);

        for (uint32_t i = at; i < op->k && i < at + op->tile_rows; i += MUR_BLOCK_ELEMS) {
            uint32_t n = block_elems(op->k, i);

            if (!read_slot(slot, n, op->terms, &sim->left[row][(i - at) / MUR_BLOCK_ELEMS]))
                return 0;
            slot += mur_block_slot_bytes(n, op->terms);
        }
    }
    return 1;
}

/* all of the product for the rows of op, at most MUR_SIM_ROWS */
static int multiply_rows(mur_sim *sim, mur_sim_product op)
{
    for (uint32_t column = 0; column < op.cols; column += op.tile_columns) {
        uint32_t columns = op.cols - column < op.tile_columns ? op.cols - column : op.tile_columns;

        for (uint32_t at = 0; at < op.k; at += op.tile_rows)
            if (!read_left(sim, &op, at) || !multiply_tile(sim, &op, at, columns, op.out + column))
                return 0;
    }
    return 1;
}

static void clear_rows(const mur_sim_product *op)
{
    for (uint32_t row = 0; row < op->rows; row++)
        for (uint32_t column = 0; column < op->cols; column++)
            op->out[row * op->out_pitch + column] = 0.0f;
}

int mur_sim_multiply(mur_sim *sim, const mur_sim_product *op)
{
    enum mur_sim_product_result result = MUR_SIM_PRODUCT_LEFT;

    if (sim->product)
        result = sim->product(sim->product_arg, op);
    if (result == MUR_SIM_PRODUCT_FULL ||
        (result == MUR_SIM_PRODUCT_LEFT && sim->kept)) { /* in their order */
        if (!mur_sim_do_kept(sim))
            return 1;
        if (result == MUR_SIM_PRODUCT_FULL)
            result = sim->product(sim->product_arg, op);
    }
    if (result != MUR_SIM_PRODUCT_LEFT) {
        sim->kept |= result == MUR_SIM_PRODUCT_KEPT;
        return result != MUR_SIM_PRODUCT_MALFORMED;
    }
    if (op->fresh)
        clear_rows(op);
    for (uint32_t row = 0; row < op->rows; row += MUR_SIM_ROWS) {
        mur_sim_product some = *op;

        some.rows = op->rows - row < MUR_SIM_ROWS ? op->rows - row : MUR_SIM_ROWS;
        some.left += row * op->left_pitch;
        some.out += row * op->out_pitch;
        if (!multiply_rows(sim, some))
            return 0;
    }
    return 1;
}

static const char *run_MM(mur_sim *sim, const uint32_t *w)
{
    const mur_sim_memory *memory = &sim->memory;
    uint32_t src = get(w, MM_src), wsrc = get(w, MM_wsrc);
    uint32_t saddr = get(w, MM_saddr), waddr = get(w, MM_waddr), wlen = get(w, MM_wlen);
    uint32_t daddr = get(w, MM_daddr);
    mur_sim_product op = { .rows = get(w, MM_rows),
                           .cols = get(w, MM_cols),
                           .k = get(w, MM_k),
                           .terms = get(w, MM_terms),
                           .left_pitch = get(w, MM_spitch),
                           .out_pitch = get(w, MM_dpitch),
                           .tile_rows = mur_tile_rows(memory->isa),
                           .tile_columns = mur_tile_columns(memory->isa),
                           .fresh = get(w, MM_acc) == 0 };

    if (src > MUR_I1 || wsrc < MUR_W0 || wsrc > MUR_W1 || op.terms < 1 ||
        op.terms > MUR_BLOCK_TERMS)
        return bad_operand;
    if (!rows_inside(memory->buffer_bytes[src], saddr, op.rows, op.left_pitch,
                     mur_sim_slots_bytes(op.k, op.terms)) ||
        !inside(memory->buffer_bytes[wsrc], waddr, wlen) ||
        !gb_inside(sim, daddr, op.rows, op.out_pitch, op.cols))
        return outside_buffer;
    op.left = memory->buffer[src] + saddr;
    mur_sim_operand(sim, wsrc, waddr, wlen, &op);
    op.out = memory->gb + daddr;
    memcpy(op.words, w, 4u * mur_sim_instructions[OP_MM].words);
    if (!mur_sim_multiply(sim, &op))
        return mur_sim_malformed_block;
    sim->macs += (uint64_t)op.rows * op.cols * op.k;
    return NULL;
}

/* ---- vector instructions ---- */

/* one over the root of the mean square */
static float normaliser(const float *x, uint32_t k, float epsilon)
{
    float sum = 0.0f;

    for (uint32_t i = 0; i < k; i++)
        sum += x[i] * x[i];
    return 1.0f / mur_sim_sqrt(sum / (float)k + epsilon);
}

static const char *run_NORM(mur_sim *sim, const uint32_t *w)
{
    uint32_t rows = get(w, NORM_rows), k = get(w, NORM_k), terms = get(w, NORM_terms);
    uint32_t saddr = get(w, NORM_saddr), spitch = get(w, NORM_spitch), dst = get(w, NORM_dst);
    uint32_t gaddr = get(w, NORM_gaddr), daddr = get(w, NORM_daddr);
    const char *reason =
        check_slots(sim, dst, daddr, rows, mur_sim_slots_bytes(k, terms), k, terms);
    const float *gain = sim->memory.gb + gaddr;
    uint8_t *out;

    if (reason)
        return reason;
    if (!gb_inside(sim, saddr, rows, spitch, k) || !gb_inside(sim, gaddr, 1, 0, k))
        return outside_buffer;
    out = buffer_bytes(sim, dst) + daddr;
    for (uint32_t row = 0; row < rows; row++) {
        const float *x = sim->memory.gb + saddr + row * spitch;
        float u = normaliser(x, k, get_float(w, NORM_epsilon));

        for (uint32_t i = 0; i < k; i += MUR_BLOCK_ELEMS) {
            uint32_t n = block_elems(k, i);
            float y[MUR_BLOCK_ELEMS];

            for (uint32_t j = 0; j < n; j++)
                y[j] = x[i + j] * u * gain[i + j];
            out = write_slots(sim, y, n, terms, out);
        }
    }
    return NULL;
}

static const char *run_ROPE(mur_sim *sim, const uint32_t *w)
{
    uint32_t rows = get(w, ROPE_rows), heads = get(w, ROPE_heads), k = get(w, ROPE_k);
    uint32_t saddr = get(w, ROPE_saddr), spitch = get(w, ROPE_spitch), taddr = get(w, ROPE_taddr);
    uint32_t half = k / 2;

    if (!gb_inside(sim, saddr, rows, spitch, heads * k) || !gb_inside(sim, taddr, rows, k, k))
        return outside_buffer;
    for (uint32_t row = 0; row < rows; row++) {
        const float *table = sim->memory.gb + taddr + row * k;

        for (uint32_t head = 0; head < heads; head++) {
            float *x = sim->memory.gb + saddr + row * spitch + head * k;

            for (uint32_t i = 0; i < half; i++) {
                float a = x[i], b = x[i + half], c = table[i], s = table[half + i];

                x[i] = a * c - b * s;
                x[i + half] = b * c + a * s;
            }
        }
    }
    return NULL;
}

static const char *run_QUANT(mur_sim *sim, const uint32_t *w)
{
    uint32_t rows = get(w, QUANT_rows), k = get(w, QUANT_k), terms = get(w, QUANT_terms);
    uint32_t saddr = get(w, QUANT_saddr), spitch = get(w, QUANT_spitch);
    uint32_t dst = get(w, QUANT_dst), daddr = get(w, QUANT_daddr), dpitch = get(w, QUANT_dpitch);
    const char *reason = check_slots(sim, dst, daddr, rows, dpitch, k, terms);

    if (reason)
        return reason;
    if (!gb_inside(sim, saddr, rows, spitch, k))
        return outside_buffer;
    for (uint32_t row = 0; row < rows; row++)
        write_slots(sim, sim->memory.gb + saddr + row * spitch, k, terms,
                    buffer_bytes(sim, dst) + daddr + row * dpitch);
    return NULL;
}

static const char *run_QPACK(mur_sim *sim, const uint32_t *w)
{
    uint32_t rows = get(w, QPACK_rows), cols = get(w, QPACK_cols), terms = get(w, QPACK_terms);
    uint32_t saddr = get(w, QPACK_saddr), spitch = get(w, QPACK_spitch);
    uint32_t dst = get(w, QPACK_dst), daddr = get(w, QPACK_daddr);
    const char *reason;
    uint8_t *out;

    if (rows > MOST_TOKENS)
        return bad_operand;
    reason = check_slots(sim, dst, daddr, cols, mur_sim_slots_bytes(rows, terms), rows, terms);
    if (reason)
        return reason;
    if (!gb_inside(sim, saddr, rows, spitch, cols))
        return outside_buffer;
    out = buffer_bytes(sim, dst) + daddr;
    for (uint32_t column = 0; column < cols; column++) {
        float x[MOST_TOKENS];

        for (uint32_t row = 0; row < rows; row++)
            x[row] = sim->memory.gb[saddr + row * spitch + column];
        out = write_slots(sim, x, rows, terms, out);
    }
    return NULL;
}

/* One row of SMAX: s[0..v-1] are the scores, and become the probabilities; those before s[w] are
 * hidden. */
static void smax_row(const mur_sim *sim, float *s, uint32_t w, uint32_t v, float scale, int first,
                     float *state, float *o, uint32_t k)
{
    const float lowest = mur_float_of(MUR_SIGN_BIT | MUR_INFINITY_BITS);
    float max = first ? lowest : state[0], sum = 0.0f, a;

    for (uint32_t j = w; j < v; j++) {
        s[j] *= scale;
        if ((first && j == w) || s[j] > max)
            max = s[j];
    }
    for (uint32_t j = 0; j < v; j++)
        s[j] = j < w ? lowest : s[j] - max;
    sim->exps(s, v);
    for (uint32_t j = 0; j < v; j++)
        sum += s[j];
    if (first) {
        state[1] = sum;
        for (uint32_t i = 0; i < k; i++)
            o[i] = 0.0f;
    } else {
        a = mur_sim_exp(state[0] - max);
        state[1] = state[1] * a + sum;
        for (uint32_t i = 0; i < k; i++)
            o[i] *= a;
    }
    state[0] = max;
}

static const char *run_SMAX(mur_sim *sim, const uint32_t *w)
{
    uint32_t rows = get(w, SMAX_rows), group = get(w, SMAX_group), skip = get(w, SMAX_skip);
    uint32_t valid = get(w, SMAX_valid), k = get(w, SMAX_k), terms = get(w, SMAX_terms);
    uint32_t saddr = get(w, SMAX_saddr), taddr = get(w, SMAX_taddr), oaddr = get(w, SMAX_oaddr);
    uint32_t dst = get(w, SMAX_dst), daddr = get(w, SMAX_daddr), dpitch = get(w, SMAX_dpitch);
    uint32_t tokens = mur_tile_tokens(sim->memory.isa), hide = get(w, SMAX_hide);

    if (!takes_group(group) || !takes_slots(dst, terms) || valid < 1 || valid > MOST_TOKENS)
        return bad_operand;
    for (uint32_t row = skip * group; row < rows; row++) {
        uint32_t v = valid + row / group - skip, seen = hide + row / group;
        float s[MOST_TOKENS];
        const char *reason;

        v = v < tokens ? v : tokens;
        seen = seen > tokens ? seen - tokens : 0;
        reason = check_slots(sim, dst, daddr + row * dpitch, 1, 0, v, terms);
        if (reason)
            return reason;
        if (!gb_inside(sim, saddr + tokens * row, 1, 0, v) ||
            !gb_inside(sim, taddr + 2 * row, 1, 0, 2) || !gb_inside(sim, oaddr + k * row, 1, 0, k))
            return outside_buffer;
        memcpy(s, sim->memory.gb + saddr + tokens * row, 4 * v);
        smax_row(sim, s, seen < v ? seen : v, v, get_float(w, SMAX_scale), (int)get(w, SMAX_first),
                 sim->memory.gb + taddr + 2 * row, sim->memory.gb + oaddr + k * row, k);
        write_slots(sim, s, v, terms, buffer_bytes(sim, dst) + daddr + row * dpitch);
    }
    return NULL;
}

static const char *run_DIV(mur_sim *sim, const uint32_t *w)
{
    uint32_t rows = get(w, DIV_rows), group = get(w, DIV_group), k = get(w, DIV_k);
    uint32_t saddr = get(w, DIV_saddr), taddr = get(w, DIV_taddr);
    uint32_t daddr = get(w, DIV_daddr), dpitch = get(w, DIV_dpitch);

    if (!takes_group(group))
        return bad_operand;
    if (!gb_inside(sim, saddr, rows, k, k) || !gb_inside(sim, taddr + 1, rows, 2, 1))
        return outside_buffer;
    for (uint32_t row = 0; row < rows; row++) {
        uint32_t out = daddr + row / group * dpitch + row % group * k;
        const float *o = sim->memory.gb + saddr + k * row;

        if (!gb_inside(sim, out, 1, 0, k))
            return outside_buffer;
        for (uint32_t j = 0; j < k; j++)
            sim->memory.gb[out + j] = o[j] / sim->memory.gb[taddr + 2 * row + 1];
    }
    return NULL;
}

/* what GELU, by tanh, has in place of g in SiLU */
static float gelu_argument(float g)
{
    static const uint32_t bits[2] = { 0x3fcc422a, 0x3d922279 };
    float c[2];

    memcpy(c, bits, sizeof(c));
    return g * (c[0] + c[1] * (g * g));
}

/* y[i] = g[i] * the logistic function of z * u[i], i < n <= 32; z is g[i], or what GELU has */
static void gate(const mur_sim *sim, uint32_t gelu, const float *g, const float *u, uint32_t n,
                 float *y)
{
    float z[MUR_BLOCK_ELEMS], e[MUR_BLOCK_ELEMS];

    for (uint32_t i = 0; i < n; i++) {
        z[i] = gelu ? gelu_argument(g[i]) : g[i];
        e[i] = z[i] >= 0.0f ? -z[i] : z[i];
    }
    sim->exps(e, n);
    for (uint32_t i = 0; i < n; i++) {
        float s = (z[i] >= 0.0f ? 1.0f : e[i]) / (1.0f + e[i]);

        y[i] = g[i] * s * u[i];
    }
}

static const char *run_GLU(mur_sim *sim, const uint32_t *w)
{
    uint32_t rows = get(w, GLU_rows), k = get(w, GLU_k), terms = get(w, GLU_terms);
    uint32_t saddr = get(w, GLU_saddr), uaddr = get(w, GLU_uaddr);
    uint32_t dst = get(w, GLU_dst), daddr = get(w, GLU_daddr), dpitch = get(w, GLU_dpitch);
    uint32_t gelu = get(w, GLU_gelu);
    const char *reason = check_slots(sim, dst, daddr, rows, dpitch, k, terms);

    if (reason)
        return reason;
    if (!gb_inside(sim, saddr, rows, k, k) || !gb_inside(sim, uaddr, rows, k, k))
        return outside_buffer;
    for (uint32_t row = 0; row < rows; row++) {
        const float *g = sim->memory.gb + saddr + row * k, *u = sim->memory.gb + uaddr + row * k;
        uint8_t *out = buffer_bytes(sim, dst) + daddr + row * dpitch;

        for (uint32_t i = 0; i < k; i += MUR_BLOCK_ELEMS) {
            uint32_t n = block_elems(k, i);
            float y[MUR_BLOCK_ELEMS];

            gate(sim, gelu, g + i, u + i, n, y);
            out = write_slots(sim, y, n, terms, out);
        }
    }
    return NULL;
}

static const char *run_SCALE(mur_sim *sim, const uint32_t *w)
{
    uint32_t rows = get(w, SCALE_rows), k = get(w, SCALE_k), acc = get(w, SCALE_acc);
    uint32_t saddr = get(w, SCALE_saddr), spitch = get(w, SCALE_spitch);
    uint32_t daddr = get(w, SCALE_daddr), dpitch = get(w, SCALE_dpitch);
    float factor = get_float(w, SCALE_factor);

    if (!gb_inside(sim, saddr, rows, spitch, k) || !gb_inside(sim, daddr, rows, dpitch, k))
        return outside_buffer;
    for (uint32_t row = 0; row < rows; row++) {
        const float *x = sim->memory.gb + saddr + row * spitch;
        float *z = sim->memory.gb + daddr + row * dpitch;

        for (uint32_t i = 0; i < k; i++) {
            float y = x[i] * factor;

            z[i] = acc ? z[i] + y : y;
        }
    }
    return NULL;
}

static const char *run_RMS(mur_sim *sim, const uint32_t *w)
{
    uint32_t rows = get(w, RMS_rows), k = get(w, RMS_k), acc = get(w, RMS_acc);
    uint32_t saddr = get(w, RMS_saddr), spitch = get(w, RMS_spitch), gaddr = get(w, RMS_gaddr);
    uint32_t daddr = get(w, RMS_daddr), dpitch = get(w, RMS_dpitch);
    const float *gain = sim->memory.gb + gaddr;

    if (!gb_inside(sim, saddr, rows, spitch, k) || !gb_inside(sim, gaddr, 1, 0, k) ||
        !gb_inside(sim, daddr, rows, dpitch, k))
        return outside_buffer;
    for (uint32_t row = 0; row < rows; row++) {
        const float *x = sim->memory.gb + saddr + row * spitch;
        float *z = sim->memory.gb + daddr + row * dpitch;
        float u = normaliser(x, k, get_float(w, RMS_epsilon));

        for (uint32_t i = 0; i < k; i++) {
            float y = x[i] * u * gain[i];

            z[i] = acc ? z[i] + y : y;
        }
    }
    return NULL;
}

static const char *run_CAP(mur_sim *sim, const uint32_t *w)
{
    uint32_t rows = get(w, CAP_rows), k = get(w, CAP_k);
    uint32_t saddr = get(w, CAP_saddr), spitch = get(w, CAP_spitch);
    float factor = get_float(w, CAP_factor), cap = get_float(w, CAP_cap);

    if (!gb_inside(sim, saddr, rows, spitch, k))
        return outside_buffer;
    for (uint32_t row = 0; row < rows; row++) {
        float *x = sim->memory.gb + saddr + row * spitch;

        for (uint32_t i = 0; i < k; i++) {
            float t = x[i] * factor, e = mur_sim_exp(-2.0f * (t >= 0.0f ? t : -t));
            float h = (1.0f - e) / (1.0f + e);

            x[i] = (t >= 0.0f ? h : -h) * cap;
        }
    }
    return NULL;
}

/* ---- the table ---- */

const mur_sim_instruction mur_sim_instructions[MUR_SIM_OPCODES] = {
#define MUR_INSN(name, opcode, words, engine, meaning) \
    [opcode] = { run_##name, MUR_##engine, words },
#include "mur_isa.def"
};

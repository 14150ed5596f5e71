/* uthinker_sim_execute.c - µThinker's instructions, one function each, in the order of SPEC.md
 * section 4; those of the vector unit are in uthinker_sim_vector.c.
 *
 * An instruction first checks every range it will touch, then works on plain pointers. Products of
 * GB addresses, pitches and counts stay below 2^32, because of the widths of their fields.
 *
 * MM is where the time goes. A block of the right operand is decoded once and multiplied with as
 * many left rows as `left` holds; a partial sum is an exact integer, so that only the additions
 * across blocks have an order to keep.
 */
#include "uthinker_sim_parts.h"

#include <float.h>

#if FLT_EVAL_METHOD != 0
#error "the machine's arithmetic is binary32 without excess precision"
#endif

const char mur_sim_outside_buffer[] = "access outside its buffer";
const char mur_sim_outside_region[] = "access outside its region";
const char mur_sim_malformed_block[] = "malformed block";
const char mur_sim_bad_operand[] = "operand that the instruction does not take";

uint32_t mur_sim_slots_bytes(uint32_t k, uint32_t terms)
{
    return k / MUR_BLOCK_ELEMS * mur_block_slot_bytes(MUR_BLOCK_ELEMS, terms) +
           (k % MUR_BLOCK_ELEMS != 0 ? mur_block_slot_bytes(k % MUR_BLOCK_ELEMS, terms) : 0);
}

/* ---- slots ---- */

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

static void copy_view(mur_sim *sim, uint32_t buffer, uint32_t i)
{
    const mur_sim_view *view = &sim->view[buffer][i];

    memcpy(sim->memory.buffer[buffer] + view->addr, view->from, view->len);
    sim->view[buffer][i] = sim->view[buffer][--sim->views[buffer]];
}

void mur_sim_copy_views(mur_sim *sim, uint32_t buffer, uint32_t addr, uint32_t len)
{
    for (uint32_t i = 0; i < sim->views[buffer];) {
        const mur_sim_view *view = &sim->view[buffer][i];

        if (view->addr > addr + len || addr > view->addr + view->len)
            i++;
        else
            copy_view(sim, buffer, i);
    }
}

void mur_sim_copy_beside(mur_sim *sim, uint32_t buffer)
{
    mur_sim_range *beside = &sim->beside[buffer];

    if (beside->len != 0)
        mur_sim_copy_views(sim, buffer, beside->addr, beside->len);
    beside->len = 0;
}

/* Is all that overlaps such bytes the beginning of a view? They are no more part of it then. */
static int cut_view(mur_sim_view *view, uint32_t addr, uint32_t len)
{
    uint32_t end = addr + len, bytes = end - view->addr;

    if (addr > view->addr || end >= view->addr + view->len)
        return 0;
    view->addr = end;
    view->len -= bytes;
    view->from += bytes;
    view->cut = 1;
    return 1;
}

/* Bytes of a buffer are written, `all` of them, or read. Views that overlap them are cut or copied;
 * those that end or begin there alone wait for whether the bytes are stored where a view's go on.
 */
static void enter(mur_sim *sim, uint32_t buffer, uint32_t addr, uint32_t len, int all)
{
    mur_sim_range *beside = &sim->beside[buffer];
    int touched = 0;

    if (beside->addr == addr && beside->len == len)
        return;
    if (beside->len != 0 && beside->addr <= addr + len && addr <= beside->addr + beside->len)
        mur_sim_copy_beside(sim, buffer);
    for (uint32_t i = 0; i < sim->views[buffer];) {
        mur_sim_view *view = &sim->view[buffer][i];

        touched |= view->addr == addr + len || addr == view->addr + view->len;
        if (overlap(view->addr, view->len, addr, len) && !(all && cut_view(view, addr, len)))
            copy_view(sim, buffer, i);
        else
            i++;
    }
    if (!touched)
        return;
    mur_sim_copy_beside(sim, buffer);
    *beside = (mur_sim_range){ addr, len };
}

uint8_t *mur_sim_buffer_bytes(mur_sim *sim, uint32_t buffer, uint32_t addr, uint32_t len, int all)
{
    if (buffer == MUR_GB)
        return (uint8_t *)sim->memory.gb + addr;
    if (len != 0)
        enter(sim, buffer, addr, len, all);
    return sim->memory.buffer[buffer] + addr;
}

/* Weights, keys and values for products may stay where they are. */
static int stays(uint32_t buffer, uint32_t region)
{
    return (buffer == MUR_W0 || buffer == MUR_W1) && (region == MUR_WGTS || region == MUR_KV);
}

int mur_sim_can_wait(const uint32_t *w)
{
    uint32_t opcode = w[0] & 255u;

    return opcode == OP_MM || opcode == OP_SMAX || opcode == OP_QPACK ||
           (opcode == OP_LD && stays(get(w, LD_buf), get(w, LD_region)));
}

int mur_sim_can_follow(const uint32_t *w, const uint32_t *mm)
{
    uint32_t dst;

    switch (w[0] & 255u) {
    case OP_LD:
        return get(w, LD_buf) == MUR_GB;
    case OP_ST:
        return get(w, ST_buf) == MUR_GB && get(w, ST_region) == MUR_IO;
    case OP_NORM:
        dst = get(w, NORM_dst);
        break;
    case OP_QUANT:
        dst = get(w, QUANT_dst);
        break;
    case OP_GLU:
        dst = get(w, GLU_dst);
        break;
    default:
        return 0;
    case OP_AMAX:
    case OP_ROPE:
    case OP_DIV:
    case OP_SCALE:
    case OP_RMS:
    case OP_CAP:
        return 1;
    }
    return dst <= MUR_I1 && dst != get(mm, MM_src);
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
        (mur_sim_view){ from, to - from, of->region, bytes, of->readable, 0 };
}

/* One view can become two, and there is a new one. Those that were mostly overwritten are short. */
static void make_room(mur_sim *sim, uint32_t buffer)
{
    if (sim->views[buffer] + 2 <= MUR_SIM_VIEWS)
        return;
    mur_sim_do_kept(sim);
    while (sim->views[buffer] > MUR_SIM_VIEWS / 4) {
        uint32_t shortest = 0;

        for (uint32_t i = 1; i < sim->views[buffer]; i++)
            if (sim->view[buffer][i].len < sim->view[buffer][shortest].len)
                shortest = i;
        copy_view(sim, buffer, shortest);
    }
}

/* What was there before is seen no more where the two overlap. */
static void add_view(mur_sim *sim, uint32_t buffer, const mur_sim_view *added)
{
    mur_sim_view before[MUR_SIM_VIEWS];
    uint32_t count, end = added->addr + added->len;

    if (sim->beside[buffer].len != 0 && mur_sim_do_kept(sim))
        mur_sim_copy_beside(sim, buffer);
    make_room(sim, buffer);
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
    int partly = 0;

    if (sim->beside[buffer].len != 0 && mur_sim_do_kept(sim))
        mur_sim_copy_beside(sim, buffer);
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
        partly |= overlap(view->addr, view->len, addr, len);
    }
    if (partly && mur_sim_do_kept(sim))
        mur_sim_copy_views(sim, buffer, addr, len);
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

const char *mur_sim_run_LD(mur_sim *sim, const uint32_t *w)
{
    uint32_t addr = get(w, LD_addr), buffer = get(w, LD_buf), region = get(w, LD_region);
    uint32_t off = get(w, LD_off), len = get(w, LD_len);
    const uint8_t *regions[MUR_REGIONS] = { sim->memory.wgts, sim->memory.parm, sim->memory.kv,
                                            sim->memory.io };

    if (buffer >= MUR_BUFFERS || region >= MUR_REGIONS)
        return mur_sim_bad_operand;
    if (!inside(sim->memory.buffer_bytes[buffer], addr, len))
        return mur_sim_outside_buffer;
    if (!inside(sim->memory.region_bytes[region], off, len))
        return mur_sim_outside_region;
    if (sim->settle && len != 0 && stays(buffer, region))
        add_view(sim, buffer,
                 &(mur_sim_view){ addr, len, region, regions[region] + off,
                                  regions[region] + sim->memory.region_bytes[region], 0 });
    else if (len != 0)
        memcpy(mur_sim_buffer_bytes(sim, buffer, addr, len, 1), regions[region] + off, len);
    sim->loaded_bytes[region] += len;
    return NULL;
}

/* What lies beside a view is in KV now. Where it goes on from that view there, it is part of it. */
static void join_view(mur_sim *sim, uint32_t buffer, uint32_t addr, uint32_t off, uint32_t len)
{
    mur_sim_range *beside = &sim->beside[buffer];
    mur_sim_view *joined = NULL;

    if (beside->addr != addr || beside->len != len)
        return;
    for (uint32_t i = 0; i < sim->views[buffer]; i++) {
        mur_sim_view *view = &sim->view[buffer][i];

        if (view->addr == addr + len && !view->cut)
            return;
        if (view->addr + view->len == addr && view->region == MUR_KV &&
            view->from + view->len == sim->memory.kv + off)
            joined = view;
    }
    if (!joined)
        return;
    joined->len += len;
    beside->len = 0;
}

const char *mur_sim_run_ST(mur_sim *sim, const uint32_t *w)
{
    uint32_t addr = get(w, ST_addr), buffer = get(w, ST_buf), region = get(w, ST_region);
    uint32_t off = get(w, ST_off), len = get(w, ST_len);

    if (buffer >= MUR_BUFFERS || region >= MUR_REGIONS)
        return mur_sim_bad_operand;
    if (region != MUR_KV && region != MUR_IO)
        return "store to a read-only region";
    if (!inside(sim->memory.buffer_bytes[buffer], addr, len))
        return mur_sim_outside_buffer;
    if (!inside(sim->memory.region_bytes[region], off, len))
        return mur_sim_outside_region;
    if (region == MUR_KV)
        leave_views(sim, off, len);
    if (len != 0)
        memcpy((region == MUR_KV ? sim->memory.kv : sim->memory.io) + off,
               mur_sim_buffer_bytes(sim, buffer, addr, len, 0), len);
    if (region == MUR_KV && buffer < MUR_GB && sim->beside[buffer].len != 0)
        join_view(sim, buffer, addr, off, len);
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

const char *mur_sim_run_EMBED(mur_sim *sim, const uint32_t *w)
{
    uint32_t seq = get(w, EMBED_seq), k = get(w, EMBED_k), rows = get(w, EMBED_rows);
    uint32_t cols = get(w, EMBED_cols), dst = get(w, EMBED_dst);
    uint32_t tile_rows = mur_tile_rows(sim->memory.isa);
    uint32_t columns = mur_tile_columns(sim->memory.isa);
    uint32_t down = (k + tile_rows - 1) / tile_rows, size = sim->memory.region_bytes[MUR_WGTS];
    const uint8_t *sequence = sim->memory.wgts + seq;

    if (dst % 4 != 0)
        return mur_sim_bad_operand;
    if (!inside(size, seq, 4) || !inside(sim->memory.region_bytes[MUR_IO], 0, 4 * rows) ||
        !rows_inside(sim->memory.region_bytes[MUR_IO], dst, rows, 4 * k, 4 * k))
        return mur_sim_outside_region;
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
                return mur_sim_outside_region;
            first = load_u32(sequence + entry);
            end = load_u32(sequence + entry + 4);
            if (first > end || end > size)
                return mur_sim_outside_region;
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

const char *mur_sim_run_AMAX(mur_sim *sim, const uint32_t *w)
{
    uint32_t saddr = get(w, AMAX_saddr), k = get(w, AMAX_k), dst = get(w, AMAX_dst);
    uint32_t words = sim->memory.region_bytes[MUR_IO] / 4, at = saddr;
    float greatest = -FLT_MAX, x;
    uint8_t *state;

    if (!inside(words, saddr, k) || !inside(words, dst, 2))
        return mur_sim_outside_region;
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

const char *mur_sim_run_MM(mur_sim *sim, const uint32_t *w)
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
        return mur_sim_bad_operand;
    if (!rows_inside(memory->buffer_bytes[src], saddr, op.rows, op.left_pitch,
                     mur_sim_slots_bytes(op.k, op.terms)) ||
        !inside(memory->buffer_bytes[wsrc], waddr, wlen) ||
        !gb_inside(sim, daddr, op.rows, op.out_pitch, op.cols))
        return mur_sim_outside_buffer;
    op.left = memory->buffer[src] + saddr;
    mur_sim_operand(sim, wsrc, waddr, wlen, &op);
    op.out = memory->gb + daddr;
    memcpy(op.words, w, 4u * mur_sim_instructions[OP_MM].words);
    if (!mur_sim_multiply(sim, &op))
        return mur_sim_malformed_block;
    sim->macs += (uint64_t)op.rows * op.cols * op.k;
    return NULL;
}

/* ---- the table ---- */

const mur_sim_instruction mur_sim_instructions[MUR_SIM_OPCODES] = {
#define MUR_INSN(name, opcode, words, engine, meaning) \
    [opcode] = { mur_sim_run_##name, MUR_##engine, words },
#include "mur_isa.def"
};

/* uthinker_sim_vector.c - the instructions of µThinker's vector unit, and their arithmetic of
 * SPEC.md section 3.
 *
 * Where rows are written to other places than are read, they may be done in any order, or at once.
 */
#include "uthinker_sim_parts.h"

#include "mur_real.h"

enum { MOST_GROUP = 255 };

/* ---- section 3: arithmetic ---- */

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
        return mur_sim_bad_operand;
    if (!rows_inside(sim->memory.buffer_bytes[dst], daddr, rows, pitch,
                     mur_sim_slots_bytes(k, terms)))
        return mur_sim_outside_buffer;
    return NULL;
}

uint8_t *mur_sim_write_slots(const mur_sim *sim, const float *x, uint32_t k, uint32_t terms,
                             uint8_t *out)
{
    for (uint32_t i = 0; i < k; i += MUR_BLOCK_ELEMS) {
        uint32_t n = k - i < MUR_BLOCK_ELEMS ? k - i : MUR_BLOCK_ELEMS;

        out += sim->encode(x + i, n, terms, out);
    }
    return out;
}

/* ---- vector instructions ---- */

/* Rows, or columns, of an instruction that writes slots. */
typedef struct lines {
    const mur_sim *sim;
    const uint32_t *w; /* the instruction */
    uint8_t *out;      /* the first one's slots */
    uint32_t pitch;    /* bytes */
} lines;

void mur_sim_each(void *arg, uint32_t count, uint32_t elements, mur_sim_part *part, void *part_arg)
{
    (void)arg;
    (void)elements;
    part(part_arg, 0, count);
}

/* Where the slots of so many lines go, which were checked. */
static lines lines_of(mur_sim *sim, const uint32_t *w, uint32_t dst, uint32_t daddr, uint32_t count,
                      uint32_t pitch, uint32_t slots)
{
    uint32_t bytes = count == 0 ? 0 : (count - 1) * pitch + slots;

    return (lines){ sim, w, mur_sim_buffer_bytes(sim, dst, daddr, bytes, pitch <= slots), pitch };
}

static uint32_t blocks_of(uint32_t k)
{
    return (k + MUR_BLOCK_ELEMS - 1) / MUR_BLOCK_ELEMS;
}

/* `elements` of each of `count` lines, of which a block takes as long as a whole one; `apart`: none
 * of them writes where another one does, or reads. */
static void run_lines(mur_sim_part *part, lines of, uint32_t count, uint32_t elements, int apart)
{
    if (apart)
        of.sim->each(of.sim->each_arg, count, blocks_of(elements) * MUR_BLOCK_ELEMS, part, &of);
    else
        part(&of, 0, count);
}

/* one over the root of the mean square */
static float normaliser(const float *x, uint32_t k, float epsilon)
{
    float sum = 0.0f;

    for (uint32_t i = 0; i < k; i++)
        sum += x[i] * x[i];
    return 1.0f / mur_sim_sqrt(sum / (float)k + epsilon);
}

static void norm_rows(void *arg, uint32_t first, uint32_t past)
{
    const lines *of = arg;
    const float *gb = of->sim->memory.gb, *gain = gb + get(of->w, NORM_gaddr);
    uint32_t k = get(of->w, NORM_k), terms = get(of->w, NORM_terms);

    for (uint32_t row = first; row < past; row++) {
        const float *x = gb + get(of->w, NORM_saddr) + row * get(of->w, NORM_spitch);
        float u = normaliser(x, k, get_float(of->w, NORM_epsilon));
        uint8_t *out = of->out + row * of->pitch;

        for (uint32_t i = 0; i < k; i += MUR_BLOCK_ELEMS) {
            uint32_t n = block_elems(k, i);
            float y[MUR_BLOCK_ELEMS];

            for (uint32_t j = 0; j < n; j++)
                y[j] = x[i + j] * u * gain[i + j];
            out = mur_sim_write_slots(of->sim, y, n, terms, out);
        }
    }
}

const char *mur_sim_run_NORM(mur_sim *sim, const uint32_t *w)
{
    uint32_t rows = get(w, NORM_rows), k = get(w, NORM_k), terms = get(w, NORM_terms);
    uint32_t dst = get(w, NORM_dst), daddr = get(w, NORM_daddr);
    uint32_t pitch = mur_sim_slots_bytes(k, terms);
    const char *reason = check_slots(sim, dst, daddr, rows, pitch, k, terms);

    if (reason)
        return reason;
    if (!gb_inside(sim, get(w, NORM_saddr), rows, get(w, NORM_spitch), k) ||
        !gb_inside(sim, get(w, NORM_gaddr), 1, 0, k))
        return mur_sim_outside_buffer;
    run_lines(norm_rows, lines_of(sim, w, dst, daddr, rows, pitch, pitch), rows, k, 1);
    return NULL;
}

const char *mur_sim_run_ROPE(mur_sim *sim, const uint32_t *w)
{
    uint32_t rows = get(w, ROPE_rows), heads = get(w, ROPE_heads), k = get(w, ROPE_k);
    uint32_t saddr = get(w, ROPE_saddr), spitch = get(w, ROPE_spitch), taddr = get(w, ROPE_taddr);
    uint32_t half = k / 2;

    if (!gb_inside(sim, saddr, rows, spitch, heads * k) || !gb_inside(sim, taddr, rows, k, k))
        return mur_sim_outside_buffer;
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

static void quant_rows(void *arg, uint32_t first, uint32_t past)
{
    const lines *of = arg;
    const float *x = of->sim->memory.gb + get(of->w, QUANT_saddr);

    for (uint32_t row = first; row < past; row++)
        mur_sim_write_slots(of->sim, x + row * get(of->w, QUANT_spitch), get(of->w, QUANT_k),
                            get(of->w, QUANT_terms), of->out + row * of->pitch);
}

const char *mur_sim_run_QUANT(mur_sim *sim, const uint32_t *w)
{
    uint32_t rows = get(w, QUANT_rows), k = get(w, QUANT_k), terms = get(w, QUANT_terms);
    uint32_t dst = get(w, QUANT_dst), daddr = get(w, QUANT_daddr), pitch = get(w, QUANT_dpitch);
    uint32_t slots = mur_sim_slots_bytes(k, terms);
    const char *reason = check_slots(sim, dst, daddr, rows, pitch, k, terms);

    if (reason)
        return reason;
    if (!gb_inside(sim, get(w, QUANT_saddr), rows, get(w, QUANT_spitch), k))
        return mur_sim_outside_buffer;
    run_lines(quant_rows, lines_of(sim, w, dst, daddr, rows, pitch, slots), rows, k,
              pitch >= slots);
    return NULL;
}

uint32_t mur_sim_packed_bytes(const mur_sim_packing *of)
{
    return of->cols * mur_sim_slots_bytes(of->rows, of->terms);
}

void mur_sim_pack(const mur_sim *sim, const mur_sim_packing *of, uint32_t first, uint32_t past,
                  uint8_t *out)
{
    for (uint32_t column = first; column < past; column++) {
        float x[MUR_SIM_MOST_TOKENS];

        for (uint32_t row = 0; row < of->rows; row++)
            x[row] = of->values[row * of->pitch + column];
        mur_sim_write_slots(sim, x, of->rows, of->terms,
                            out + column * mur_sim_slots_bytes(of->rows, of->terms));
    }
}

static mur_sim_packing packing_of(const mur_sim *sim, const uint32_t *w)
{
    return (mur_sim_packing){ .values = sim->memory.gb + get(w, QPACK_saddr),
                              .rows = get(w, QPACK_rows),
                              .cols = get(w, QPACK_cols),
                              .pitch = get(w, QPACK_spitch),
                              .terms = get(w, QPACK_terms) };
}

static void pack_columns(void *arg, uint32_t first, uint32_t past)
{
    const lines *of = arg;
    mur_sim_packing packing = packing_of(of->sim, of->w);

    mur_sim_pack(of->sim, &packing, first, past, of->out);
}

/* Keeps it with the product that it is for, if it can be, perhaps when what was kept before is
 * done. */
static int keep_packing(mur_sim *sim, const uint32_t *w)
{
    mur_sim_packing packing = packing_of(sim, w);
    uint32_t dst = get(w, QPACK_dst), daddr = get(w, QPACK_daddr);

    packing.out = sim->memory.buffer[dst] + daddr;
    if (!sim->keep_packing || (!sim->keep_packing(sim->product_arg, sim, &packing) &&
                               !(sim->kept && mur_sim_do_kept(sim) &&
                                 sim->keep_packing(sim->product_arg, sim, &packing))))
        return 0;
    sim->kept = 1;
    mur_sim_buffer_bytes(sim, dst, daddr, mur_sim_packed_bytes(&packing), 1);
    return 1;
}

static const char *check_qpack(const mur_sim *sim, const uint32_t *w)
{
    uint32_t rows = get(w, QPACK_rows), cols = get(w, QPACK_cols), terms = get(w, QPACK_terms);
    const char *reason;

    if (rows > MUR_SIM_MOST_TOKENS)
        return mur_sim_bad_operand;
    reason = check_slots(sim, get(w, QPACK_dst), get(w, QPACK_daddr), cols,
                         mur_sim_slots_bytes(rows, terms), rows, terms);
    if (reason)
        return reason;
    if (!gb_inside(sim, get(w, QPACK_saddr), rows, get(w, QPACK_spitch), cols))
        return mur_sim_outside_buffer;
    return NULL;
}

const char *mur_sim_run_QPACK(mur_sim *sim, const uint32_t *w)
{
    uint32_t cols = get(w, QPACK_cols), rows = get(w, QPACK_rows);
    uint32_t pitch = mur_sim_slots_bytes(rows, get(w, QPACK_terms));
    const char *reason = check_qpack(sim, w);

    if ((!reason && keep_packing(sim, w)) || !mur_sim_do_kept(sim))
        return NULL;
    if (reason)
        return reason;
    run_lines(pack_columns,
              lines_of(sim, w, get(w, QPACK_dst), get(w, QPACK_daddr), cols, pitch, pitch), cols,
              rows, 1);
    return NULL;
}

float mur_sim_smax_scale(float *s, uint32_t w, uint32_t v, float scale, int first, float max)
{
    for (uint32_t j = w; j < v; j++) {
        s[j] *= scale;
        if ((first && j == w) || s[j] > max)
            max = s[j];
    }
    return max;
}

float mur_sim_smax_weigh(const mur_sim *sim, float *s, uint32_t w, uint32_t v, float max)
{
    float sum = 0.0f;

    for (uint32_t j = 0; j < v; j++)
        s[j] = j < w ? mur_float_of(MUR_SIGN_BIT | MUR_INFINITY_BITS) : s[j] - max;
    sim->exps(s, v);
    for (uint32_t j = 0; j < v; j++)
        sum += s[j];
    return sum;
}

void mur_sim_smax_rescale(float *o, uint32_t k, int first, float factor)
{
    for (uint32_t i = 0; i < k; i++)
        o[i] = first ? 0.0f : o[i] * factor;
}

void mur_sim_smax_row(const mur_sim *sim, float *s, uint32_t w, uint32_t v, float scale, int first,
                      float *state, float *o, uint32_t k)
{
    const float lowest = mur_float_of(MUR_SIGN_BIT | MUR_INFINITY_BITS);
    float max = mur_sim_smax_scale(s, w, v, scale, first, first ? lowest : state[0]);
    float sum = mur_sim_smax_weigh(sim, s, w, v, max);
    float factor = first ? 0.0f : mur_sim_exp(state[0] - max);

    state[1] = first ? sum : state[1] * factor + sum;
    state[0] = max;
    mur_sim_smax_rescale(o, k, first, factor);
}

/* What row `row` of SMAX sees: scores seen..valid-1. */
static uint32_t smax_valid(const mur_sim *sim, const uint32_t *w, uint32_t row, uint32_t *seen)
{
    uint32_t tokens = mur_tile_tokens(sim->memory.isa), group = get(w, SMAX_group);
    uint32_t valid = get(w, SMAX_valid) + row / group - get(w, SMAX_skip);
    uint32_t hidden = get(w, SMAX_hide) + row / group;

    valid = valid < tokens ? valid : tokens;
    hidden = hidden > tokens ? hidden - tokens : 0;
    *seen = hidden < valid ? hidden : valid;
    return valid;
}

/* Rows from that of the first token that is not skipped on. */
static void smax_rows(void *arg, uint32_t first, uint32_t past)
{
    const lines *of = arg;
    const uint32_t *w = of->w;
    uint32_t tokens = mur_tile_tokens(of->sim->memory.isa), k = get(w, SMAX_k), seen;
    uint32_t skipped = get(w, SMAX_skip) * get(w, SMAX_group);
    float *gb = of->sim->memory.gb;

    for (uint32_t row = skipped + first; row < skipped + past; row++) {
        uint32_t valid = smax_valid(of->sim, w, row, &seen);
        float s[MUR_SIM_MOST_TOKENS];

        memcpy(s, gb + get(w, SMAX_saddr) + tokens * row, 4 * valid);
        mur_sim_smax_row(of->sim, s, seen, valid, get_float(w, SMAX_scale), (int)get(w, SMAX_first),
                         gb + get(w, SMAX_taddr) + 2 * row, gb + get(w, SMAX_oaddr) + k * row, k);
        mur_sim_write_slots(of->sim, s, valid, get(w, SMAX_terms),
                            of->out + (row - skipped) * of->pitch);
    }
}

static int smax_apart(const uint32_t *w, uint32_t rows, uint32_t tokens, uint32_t pitch)
{
    uint32_t s = get(w, SMAX_saddr), t = get(w, SMAX_taddr), o = get(w, SMAX_oaddr);
    uint32_t k = get(w, SMAX_k);

    return pitch >= mur_sim_slots_bytes(tokens, get(w, SMAX_terms)) &&
           !overlap(s, tokens * rows, t, 2 * rows) && !overlap(s, tokens * rows, o, k * rows) &&
           !overlap(t, 2 * rows, o, k * rows);
}

/* Are all rows' scores seen, of a whole tile? */
static int smax_whole(const uint32_t *w, uint32_t rows, uint32_t tokens)
{
    return rows > 0 && get(w, SMAX_skip) == 0 && get(w, SMAX_valid) >= tokens &&
           get(w, SMAX_hide) + (rows - 1) / get(w, SMAX_group) <= tokens;
}

/* Keeps it with the products beside it, if it can be. */
static int keep_smax(mur_sim *sim, const uint32_t *w)
{
    uint32_t rows = get(w, SMAX_rows), tokens = mur_tile_tokens(sim->memory.isa);
    float *gb = sim->memory.gb;

    return sim->kept && sim->keep_smax && smax_whole(w, rows, tokens) &&
           smax_apart(w, rows, tokens, get(w, SMAX_dpitch)) && get(w, SMAX_dst) <= MUR_I1 &&
           sim->keep_smax(sim->product_arg, sim,
                          &(mur_sim_softmax){ .scores = gb + get(w, SMAX_saddr),
                                              .state = gb + get(w, SMAX_taddr),
                                              .out = gb + get(w, SMAX_oaddr),
                                              .slots = sim->memory.buffer[get(w, SMAX_dst)] +
                                                       get(w, SMAX_daddr),
                                              .rows = rows,
                                              .tokens = tokens,
                                              .k = get(w, SMAX_k),
                                              .terms = get(w, SMAX_terms),
                                              .pitch = get(w, SMAX_dpitch),
                                              .first = get(w, SMAX_first),
                                              .scale = get_float(w, SMAX_scale) });
}

static const char *check_smax(const mur_sim *sim, const uint32_t *w)
{
    uint32_t rows = get(w, SMAX_rows), group = get(w, SMAX_group), k = get(w, SMAX_k);
    uint32_t valid = get(w, SMAX_valid), terms = get(w, SMAX_terms), dst = get(w, SMAX_dst);
    uint32_t daddr = get(w, SMAX_daddr), pitch = get(w, SMAX_dpitch), seen;
    uint32_t tokens = mur_tile_tokens(sim->memory.isa);

    if (!takes_group(group) || !takes_slots(dst, terms) || valid < 1 || valid > MUR_SIM_MOST_TOKENS)
        return mur_sim_bad_operand;
    for (uint32_t row = get(w, SMAX_skip) * group; row < rows; row++) {
        const char *reason;

        valid = smax_valid(sim, w, row, &seen);
        reason = check_slots(sim, dst, daddr + row * pitch, 1, 0, valid, terms);
        if (reason)
            return reason;
        if (!gb_inside(sim, get(w, SMAX_saddr) + tokens * row, 1, 0, valid) ||
            !gb_inside(sim, get(w, SMAX_taddr) + 2 * row, 1, 0, 2) ||
            !gb_inside(sim, get(w, SMAX_oaddr) + k * row, 1, 0, k))
            return mur_sim_outside_buffer;
    }
    return NULL;
}

const char *mur_sim_run_SMAX(mur_sim *sim, const uint32_t *w)
{
    const char *reason = check_smax(sim, w);
    uint32_t rows = get(w, SMAX_rows), first, pitch = get(w, SMAX_dpitch), seen;
    uint32_t tokens = mur_tile_tokens(sim->memory.isa);

    if ((!reason && keep_smax(sim, w)) || !mur_sim_do_kept(sim))
        return NULL;
    first = get(w, SMAX_skip) * get(w, SMAX_group);
    if (reason || first >= rows)
        return reason;
    run_lines(
        smax_rows,
        lines_of(sim, w, get(w, SMAX_dst), get(w, SMAX_daddr) + first * pitch, rows - first, pitch,
                 mur_sim_slots_bytes(smax_valid(sim, w, rows - 1, &seen), get(w, SMAX_terms))),
        rows - first, tokens + get(w, SMAX_k), smax_apart(w, rows, tokens, pitch));
    return NULL;
}

const char *mur_sim_run_DIV(mur_sim *sim, const uint32_t *w)
{
    uint32_t rows = get(w, DIV_rows), group = get(w, DIV_group), k = get(w, DIV_k);
    uint32_t saddr = get(w, DIV_saddr), taddr = get(w, DIV_taddr);
    uint32_t daddr = get(w, DIV_daddr), dpitch = get(w, DIV_dpitch);

    if (!takes_group(group))
        return mur_sim_bad_operand;
    if (!gb_inside(sim, saddr, rows, k, k) || !gb_inside(sim, taddr + 1, rows, 2, 1))
        return mur_sim_outside_buffer;
    for (uint32_t row = 0; row < rows; row++) {
        uint32_t out = daddr + row / group * dpitch + row % group * k;
        const float *o = sim->memory.gb + saddr + k * row;

        if (!gb_inside(sim, out, 1, 0, k))
            return mur_sim_outside_buffer;
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

/* y[i] = g[i] * the logistic function of z * u[i], i < n <= 32; z is g[i], or what GELU has. Loops
 * of a whole block are those that compilers do several steps of at once. */
static void gate(const mur_sim *sim, uint32_t gelu, const float *g, const float *u, uint32_t n,
                 float *y)
{
    float a[MUR_BLOCK_ELEMS] = { 0 }, b[MUR_BLOCK_ELEMS] = { 0 };
    float z[MUR_BLOCK_ELEMS], e[MUR_BLOCK_ELEMS];

    memcpy(a, g, n * sizeof(*g));
    memcpy(b, u, n * sizeof(*u));
    for (uint32_t i = 0; i < MUR_BLOCK_ELEMS; i++) {
        z[i] = gelu ? gelu_argument(a[i]) : a[i];
        e[i] = z[i] >= 0.0f ? -z[i] : z[i];
    }
    sim->exps(e, n);
    for (uint32_t i = 0; i < MUR_BLOCK_ELEMS; i++) {
        float s = (z[i] >= 0.0f ? 1.0f : e[i]) / (1.0f + e[i]);

        a[i] = a[i] * s * b[i];
    }
    memcpy(y, a, n * sizeof(*y));
}

/* Blocks of all rows: one row is work enough for several. */
static void glu_blocks(void *arg, uint32_t first, uint32_t past)
{
    const lines *of = arg;
    const float *g = of->sim->memory.gb + get(of->w, GLU_saddr);
    const float *u = of->sim->memory.gb + get(of->w, GLU_uaddr);
    uint32_t k = get(of->w, GLU_k), terms = get(of->w, GLU_terms), blocks = blocks_of(k);

    for (uint32_t at = first; at < past; at++) {
        uint32_t row = at / blocks, i = at % blocks * MUR_BLOCK_ELEMS, n = block_elems(k, i);
        float y[MUR_BLOCK_ELEMS];

        gate(of->sim, get(of->w, GLU_gelu), g + row * k + i, u + row * k + i, n, y);
        mur_sim_write_slots(of->sim, y, n, terms,
                            of->out + row * of->pitch + mur_sim_slots_bytes(i, terms));
    }
}

const char *mur_sim_run_GLU(mur_sim *sim, const uint32_t *w)
{
    uint32_t rows = get(w, GLU_rows), k = get(w, GLU_k), terms = get(w, GLU_terms);
    uint32_t dst = get(w, GLU_dst), daddr = get(w, GLU_daddr), pitch = get(w, GLU_dpitch);
    uint32_t slots = mur_sim_slots_bytes(k, terms);
    const char *reason = check_slots(sim, dst, daddr, rows, pitch, k, terms);

    if (reason)
        return reason;
    if (!gb_inside(sim, get(w, GLU_saddr), rows, k, k) ||
        !gb_inside(sim, get(w, GLU_uaddr), rows, k, k))
        return mur_sim_outside_buffer;
    run_lines(glu_blocks, lines_of(sim, w, dst, daddr, rows, pitch, slots), rows * blocks_of(k),
              MUR_BLOCK_ELEMS, pitch >= slots);
    return NULL;
}

const char *mur_sim_run_SCALE(mur_sim *sim, const uint32_t *w)
{
    uint32_t rows = get(w, SCALE_rows), k = get(w, SCALE_k), acc = get(w, SCALE_acc);
    uint32_t saddr = get(w, SCALE_saddr), spitch = get(w, SCALE_spitch);
    uint32_t daddr = get(w, SCALE_daddr), dpitch = get(w, SCALE_dpitch);
    float factor = get_float(w, SCALE_factor);

    if (!gb_inside(sim, saddr, rows, spitch, k) || !gb_inside(sim, daddr, rows, dpitch, k))
        return mur_sim_outside_buffer;
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

const char *mur_sim_run_RMS(mur_sim *sim, const uint32_t *w)
{
    uint32_t rows = get(w, RMS_rows), k = get(w, RMS_k), acc = get(w, RMS_acc);
    uint32_t saddr = get(w, RMS_saddr), spitch = get(w, RMS_spitch), gaddr = get(w, RMS_gaddr);
    uint32_t daddr = get(w, RMS_daddr), dpitch = get(w, RMS_dpitch);
    const float *gain = sim->memory.gb + gaddr;

    if (!gb_inside(sim, saddr, rows, spitch, k) || !gb_inside(sim, gaddr, 1, 0, k) ||
        !gb_inside(sim, daddr, rows, dpitch, k))
        return mur_sim_outside_buffer;
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

const char *mur_sim_run_CAP(mur_sim *sim, const uint32_t *w)
{
    uint32_t rows = get(w, CAP_rows), k = get(w, CAP_k);
    uint32_t saddr = get(w, CAP_saddr), spitch = get(w, CAP_spitch);
    float factor = get_float(w, CAP_factor), cap = get_float(w, CAP_cap);

    if (!gb_inside(sim, saddr, rows, spitch, k))
        return mur_sim_outside_buffer;
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

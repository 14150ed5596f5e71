/* chip_sim_execute.c - what an instruction of the CNN chip does to memory: SPEC.md sections 2 to 4.
 */
#include <string.h>

#include "base/half.h"
#include "targets/cnnchip/sim/chip_sim_op.h"

/* X of section 4: a real in fp modes, an integer modulo 2^32 in int8 */
typedef union value {
    float real;
    uint32_t integer;
} value;

/* Results of CONV and DENSE are made LANES positions by CHANNELS channels at a time: each in the
 * order of section 3, and in any order among themselves, as none of them reads another. */
enum { LANES = 16, CHANNELS = 8 };

static uint32_t get_bytes(const uint8_t *p, uint32_t bytes)
{
    uint32_t bits = p[0];

    if (bytes > 1)
        bits |= (uint32_t)p[1] << 8;
    if (bytes > 2)
        bits |= (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    return bits;
}

static void put_bytes(uint8_t *p, uint32_t bits, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        p[i] = (uint8_t)(bits >> 8 * i);
}

static uint32_t sign_extend(uint32_t byte)
{
    return (byte ^ 128u) - 128u;
}

static value get_element(muc_cnnchip_element element, const uint8_t *p)
{
    value v;

    if (element == MUC_CNNCHIP_int8)
        v.integer = sign_extend(p[0]);
    else if (element == MUC_CNNCHIP_fp16)
        v.real = muc_f32_of_f16((uint16_t)get_bytes(p, 2));
    else
        v.real = muc_f32_of_bits(get_bytes(p, 4));
    return v;
}

/* of two's complement bits, rounded to nearest even */
static float real_of_integer(uint32_t bits)
{
    return bits >> 31 ? -(float)(0u - bits) : (float)bits;
}

/* a finite z to the nearest integer, halves to even; |z| <= 65536 */
static int32_t nearest_even(float z)
{
    int32_t whole = (int32_t)z;
    float part = z - (float)whole; /* exact */

    if (part > 0.5f || (part == 0.5f && whole % 2))
        return whole + 1;
    if (part < -0.5f || (part == -0.5f && whole % 2))
        return whole - 1;
    return whole;
}

static uint32_t int8_of_real(float z, uint32_t zero)
{
    float limited = z < -65536.0f ? -65536.0f : z > 65536.0f ? 65536.0f : z;
    int32_t q = (z != z ? 0 : nearest_even(limited)) + (int32_t)zero;

    return (uint32_t)(q < -128 ? -128 : q > 127 ? 127 : q);
}

/* the DSP's parameter v1, v2 or v3 (plane 0, 1, 2) of a channel: its bits */
static uint32_t parameter(const muc_cnnchip_sim *sim, const sim_op *op, uint32_t plane, uint32_t c)
{
    return get_bytes(sim->filter + op->dsp + 4 * ((size_t)plane * op->out_c + c), 4);
}

static uint8_t *result_at(const muc_cnnchip_sim *sim, const sim_op *op, uint32_t c, uint32_t y,
                          uint32_t x)
{
    size_t at = ((size_t)c * op->dst_rows + (size_t)y * op->step_h) * op->dst_pitch +
                (size_t)x * op->step_w;
    uint8_t *memory = op->flags & FLAG_dst32 ? sim->filter : sim->frame;

    return memory + op->dst + at * op->result_bytes;
}

/* DSP, activation and store of a sum. is_sum: int8's X, not its x. */
static void finish(const muc_cnnchip_sim *sim, const sim_op *op, value sum, int is_sum, uint32_t c,
                   uint8_t *out)
{
    float y;

    if (op->flags & FLAG_dst32) {
        put_bytes(out, sum.integer, 4);
        return;
    }
    if (op->flags & FLAG_dsp) {
        float v1 = muc_f32_of_bits(parameter(sim, op, 0, c));
        float v2 = muc_f32_of_bits(parameter(sim, op, 1, c));
        uint32_t v3 = parameter(sim, op, 2, c);
        float shifted = is_sum ? real_of_integer(sum.integer + v3) : sum.real + muc_f32_of_bits(v3);
        float product = v1 * shifted;

        y = v2 + product;
    } else {
        y = is_sum ? real_of_integer(sum.integer) : sum.real;
    }
    if (op->flags & FLAG_act && y < muc_f32_of_bits(op->act_from))
        y = muc_f32_of_bits(op->act_slope) * y;
    if (sim->element == MUC_CNNCHIP_int8)
        put_bytes(out, int8_of_real(y, op->zero_out), 1);
    else if (sim->element == MUC_CNNCHIP_fp16)
        put_bytes(out, muc_f16_of_f32(y), 2);
    else
        put_bytes(out, muc_f32_bits(y), 4);
}

/* ---- CONV and DENSE ---- */

/* A tile of results: positions (y * out_w + x) first..first + lanes of channels c..c + channels,
 * all of one group. */
typedef struct tile {
    uint64_t first;
    uint32_t lanes, c, channels;
    const uint8_t *corner[LANES]; /* of each position's window, in the group's first channel */
    value sums[CHANNELS][LANES];
} tile;

static void place_windows(const muc_cnnchip_sim *sim, const sim_op *op, tile *t)
{
    uint32_t group = t->c / (op->out_c / op->groups);
    size_t channel = (size_t)group * (op->in_c / op->groups) * op->src_rows * op->src_pitch;

    for (uint32_t j = 0; j < LANES; j++) {
        /* idle lanes repeat the last one */
        uint64_t position = t->first + (j < t->lanes ? j : t->lanes - 1);
        size_t y = (size_t)(position / op->out_w) * op->stride_h;
        size_t x = (size_t)(position % op->out_w) * op->stride_w;

        t->corner[j] = sim->frame + op->src + (channel + y * op->src_pitch + x) * op->element_bytes;
    }
}

static void add_real(value *restrict sums, const value *restrict source, float weight)
{
    for (int j = 0; j < LANES; j++) {
        float product = source[j].real * weight;

        sums[j].real += product;
    }
}

static void add_integer(value *restrict sums, const value *restrict source, uint32_t weight)
{
    for (int j = 0; j < LANES; j++)
        sums[j].integer += source[j].integer * weight;
}

/* One element of the block, offset bytes from each corner: times weight number at of each channel.
 */
static void add_products(const muc_cnnchip_sim *sim, const sim_op *op, tile *t, size_t offset,
                         size_t at)
{
    const uint8_t *filter = sim->filter + op->filter;
    value source[LANES];

    for (int j = 0; j < LANES; j++)
        source[j] = get_element(sim->element, t->corner[j] + offset);
    for (uint32_t k = 0; k < t->channels; k++) {
        size_t number = (size_t)(t->c + k) * op->block + at;
        value weight = get_element(sim->element, filter + number * op->element_bytes);

        if (sim->element == MUC_CNNCHIP_int8)
            add_integer(t->sums[k], source, weight.integer);
        else
            add_real(t->sums[k], source, weight.real);
    }
}

static void make_tile(const muc_cnnchip_sim *sim, const sim_op *op, tile *t)
{
    size_t at = 0;

    place_windows(sim, op, t);
    memset(t->sums, 0, sizeof(t->sums));
    for (uint32_t i = 0; i < op->in_c / op->groups; i++)
        for (uint32_t u = 0; u < op->kernel_h; u++)
            for (uint32_t v = 0; v < op->kernel_w; v++) {
                size_t element =
                    ((size_t)i * op->src_rows + (size_t)u * op->dilation_h) * op->src_pitch +
                    (size_t)v * op->dilation_w;

                add_products(sim, op, t, element * op->element_bytes, at++);
            }
    for (uint32_t k = 0; k < t->channels; k++)
        for (uint32_t j = 0; j < t->lanes; j++) {
            uint64_t position = t->first + j;
            uint32_t y = (uint32_t)(position / op->out_w);
            uint32_t x = (uint32_t)(position % op->out_w);

            finish(sim, op, t->sums[k][j], sim->element == MUC_CNNCHIP_int8, t->c + k,
                   result_at(sim, op, t->c + k, y, x));
        }
}

/* whether a result may lie where an operand of a later result lies */
static int results_meet_operands(const sim_op *op)
{
    sim_range results = muc_cnnchip_result_range(op);
    sim_range operands = muc_cnnchip_view_range(op);

    if (op->flags & FLAG_dst32) {
        operands.from = op->filter;
        operands.to =
            operands.from + (int64_t)(muc_cnnchip_weight_elements(op) * op->element_bytes);
    }
    return results.from < operands.to && operands.from < results.to;
}

static uint32_t least(uint64_t a, uint64_t b)
{
    return (uint32_t)(a < b ? a : b);
}

static void execute_products(const muc_cnnchip_sim *sim, const sim_op *op)
{
    uint32_t lanes = LANES, channels = CHANNELS, of_group = op->out_c / op->groups;
    uint64_t positions = (uint64_t)op->out_h * op->out_w;
    tile t;

    if (results_meet_operands(op))
        lanes = channels = 1;
    for (t.c = 0; t.c < op->out_c; t.c += t.channels) {
        t.channels = least(channels, of_group - t.c % of_group);
        for (t.first = 0; t.first < positions; t.first += t.lanes) {
            t.lanes = least(lanes, positions - t.first);
            make_tile(sim, op, &t);
        }
    }
}

/* ---- MAXPOOL and ADD ---- */

static value greatest(const muc_cnnchip_sim *sim, const sim_op *op, const uint8_t *corner)
{
    const uint8_t *filter = sim->filter + op->filter;
    int is_integer = sim->element == MUC_CNNCHIP_int8;
    value best = { 0 };

    for (uint32_t u = 0; u < op->kernel_h; u++)
        for (uint32_t v = 0; v < op->kernel_w; v++) {
            size_t at = (size_t)u * op->dilation_h * op->src_pitch + (size_t)v * op->dilation_w;
            size_t number = (size_t)u * op->kernel_w + v;
            value p = get_element(sim->element, corner + at * op->element_bytes);
            value one = get_element(sim->element, filter + number * op->element_bytes);

            if (is_integer)
                p.integer *= one.integer;
            else
                p.real *= one.real;
            /* the order of integers modulo 2^32 is that of their bits with the sign turned */
            if (number == 0 || (is_integer ? (p.integer ^ 1u << 31) > (best.integer ^ 1u << 31)
                                           : p.real > best.real))
                best = p;
        }
    return best;
}

static void make_maximum(const muc_cnnchip_sim *sim, const sim_op *op, uint32_t c, uint32_t y,
                         uint32_t x)
{
    size_t row = (size_t)c * op->src_rows + (size_t)y * op->stride_h;
    size_t at = row * op->src_pitch + (size_t)x * op->stride_w;
    value best = greatest(sim, op, sim->frame + op->src + at * op->element_bytes);

    if (sim->element == MUC_CNNCHIP_int8)
        best.real = real_of_integer(best.integer - op->zero_src);
    finish(sim, op, best, 0, c, result_at(sim, op, c, y, x));
}

/* an element of an operand of ADD as a real: in int8 less its zero point */
static float operand(const muc_cnnchip_sim *sim, const uint8_t *p, uint32_t zero)
{
    value v = get_element(sim->element, p);

    return sim->element == MUC_CNNCHIP_int8 ? real_of_integer(v.integer - zero) : v.real;
}

static void make_sum(const muc_cnnchip_sim *sim, const sim_op *op, uint32_t c, uint32_t y,
                     uint32_t x)
{
    int partial = (op->flags & FLAG_src32) != 0;
    uint32_t bytes = partial ? 4 : op->element_bytes;
    size_t at = ((size_t)c * op->src_rows + y) * op->src_pitch + x;
    size_t at1 = ((size_t)c * op->src1_rows + y) * op->src1_pitch + x;
    const uint8_t *a = (partial ? sim->filter : sim->frame) + op->src + at * bytes;
    const uint8_t *b = (op->flags & (FLAG_src32 | FLAG_const1) ? sim->filter : sim->frame) +
                       op->src1 + at1 * bytes;
    int is_sum = partial && sim->element == MUC_CNNCHIP_int8;
    value sum;

    if (is_sum) {
        sum.integer = get_bytes(a, 4) + get_bytes(b, 4);
    } else if (partial) {
        sum.real = muc_f32_of_bits(get_bytes(a, 4)) + muc_f32_of_bits(get_bytes(b, 4));
    } else {
        sum.real = muc_f32_of_bits(op->factor) * operand(sim, a, op->zero_src);
        if (!(op->flags & FLAG_one)) {
            float second = muc_f32_of_bits(op->factor1) * operand(sim, b, op->zero_src1);

            sum.real += second;
        }
    }
    finish(sim, op, sum, is_sum, c, result_at(sim, op, c, y, x));
}

typedef void make_result(const muc_cnnchip_sim *sim, const sim_op *op, uint32_t c, uint32_t y,
                         uint32_t x);

/* one after the other: a result may lie on its operands */
static void each_result(const muc_cnnchip_sim *sim, const sim_op *op, make_result *make)
{
    for (uint32_t c = 0; c < op->out_c; c++)
        for (uint32_t y = 0; y < op->out_h; y++)
            for (uint32_t x = 0; x < op->out_w; x++)
                make(sim, op, c, y, x);
}

/* ---- borders ---- */

static void fill_border(const muc_cnnchip_sim *sim, const sim_op *op)
{
    size_t before = (size_t)op->pad_t * op->dst_pitch + op->pad_l;
    uint8_t *out = sim->frame + op->dst - before * op->element_bytes;

    for (uint32_t c = 0; c < op->out_c; c++)
        for (uint32_t y = 0; y < op->dst_rows; y++)
            for (uint32_t x = 0; x < op->dst_pitch; x++, out += op->element_bytes)
                if (y < op->pad_t || y >= op->dst_rows - op->pad_b || x < op->pad_l ||
                    x >= op->dst_pitch - op->pad_r)
                    put_bytes(out, op->pad_value, op->element_bytes);
}

void muc_cnnchip_execute(const muc_cnnchip_sim *sim, const sim_op *op)
{
    switch (op->opcode) {
    case OP_CONV:
    case OP_DENSE:
        execute_products(sim, op);
        break;
    case OP_MAXPOOL:
        each_result(sim, op, make_maximum);
        break;
    case OP_ADD:
        each_result(sim, op, make_sum);
        break;
    default:
        return;
    }
    if (muc_cnnchip_has_border(op))
        fill_border(sim, op);
}

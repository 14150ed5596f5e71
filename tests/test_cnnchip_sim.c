/* The CNN chip's simulator against a second reading of SPEC.md: one result at a time, in plain
 * loops. */
#include <math.h>

#include "base/half.h"
#include "chance.h"
#include "check.h"
#include "cnnchip_insn.h"
#include "targets/cnnchip/sim/chip_sim.h"

enum { FRAME = 4096, FILTER = 4096, IMAGE = 1024, PROGRAM = 512 };

typedef struct chip {
    muc_cnnchip_sim sim;
    uint8_t frame[FRAME], filter[FILTER], program[PROGRAM];
    uint8_t frame_before[FRAME], filter_before[FILTER];
} chip;

static float real_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, 4);
    return value;
}

/* appends i to the program */
static void append(chip *c, const insn *i)
{
    c->sim.program_bytes += put_insn(c->program + c->sim.program_bytes, i);
}

static void put_end(chip *c, uint32_t code)
{
    insn end = { .opcode = END, .code = code };

    append(c, &end);
}

static void clear_chip(chip *c, muc_cnnchip_element element)
{
    memset(c, 0, sizeof(*c));
    c->sim.frame = c->frame;
    c->sim.filter = c->filter;
    c->sim.program = c->program;
    c->sim.frame_bytes = FRAME;
    c->sim.filter_bytes = FILTER;
    c->sim.filter_image_bytes = IMAGE;
    c->sim.element = element;
}

/* ---- the second reading ---- */

static uint32_t element_bytes(const chip *c)
{
    static const uint32_t bytes[] = { 4, 2, 1 };

    return bytes[c->sim.element];
}

static uint32_t word(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* an element: exact in a double in every mode */
static double element(const chip *c, const uint8_t *p)
{
    if (c->sim.element == MUC_CNNCHIP_int8)
        return (int8_t)p[0];
    if (c->sim.element == MUC_CNNCHIP_fp16) {
        uint32_t sign = p[1] >> 7, exponent = p[1] >> 2 & 31, fraction = p[0] | (p[1] & 3u) << 8;
        double size = exponent ? ldexp(1024 + fraction, (int)exponent - 25) : ldexp(fraction, -24);

        return sign ? -size : size;
    }
    return (double)real_of(word(p));
}

typedef struct result {
    float x;       /* fp modes, and int8 without sums */
    int64_t whole; /* int8's sums */
    int is_sum;
} result;

static size_t source_at(const chip *c, const insn *i, uint32_t ch, uint32_t y, uint32_t x)
{
    return i->src + (((size_t)ch * i->src_rows + y) * i->src_pitch + x) * element_bytes(c);
}

static result product_sum(const chip *c, const insn *i, uint32_t f, uint32_t oy, uint32_t ox)
{
    int dense = i->opcode == DENSE;
    uint32_t kh = dense ? i->in_h : i->kernel_h, kw = dense ? i->in_w : i->kernel_w;
    uint32_t groups = dense ? 1 : i->groups, depth = i->in_c / groups;
    uint32_t first = f / (i->out_c / groups) * depth;
    size_t weight = (size_t)f * depth * kh * kw;
    result r = { 0.0f, 0, c->sim.element == MUC_CNNCHIP_int8 };

    for (uint32_t d = 0; d < depth; d++)
        for (uint32_t u = 0; u < kh; u++)
            for (uint32_t v = 0; v < kw; v++, weight++) {
                uint32_t y = dense ? u : oy * i->stride_h + u * i->dilation_h;
                uint32_t x = dense ? v : ox * i->stride_w + v * i->dilation_w;
                double a = element(c, c->frame + source_at(c, i, first + d, y, x));
                double w = element(c, c->filter + i->filter + weight * element_bytes(c));
                float product = (float)(a * w); /* exact in double: rounded once */

                r.whole += (int64_t)a * (int64_t)w * r.is_sum;
                r.x = r.x + product;
            }
    return r;
}

static result maximum(const chip *c, const insn *i, uint32_t ch, uint32_t oy, uint32_t ox)
{
    result r = { -INFINITY, 0, 0 };

    for (uint32_t u = 0; u < i->kernel_h; u++)
        for (uint32_t v = 0; v < i->kernel_w; v++) {
            size_t at = source_at(c, i, ch, oy * i->stride_h + u * i->dilation_h,
                                  ox * i->stride_w + v * i->dilation_w);
            float value = (float)element(c, c->frame + at);

            r.x = value > r.x ? value : r.x;
        }
    r.x -= (float)(int32_t)i->zero_src;
    return r;
}

static result sum(const chip *c, const insn *i, uint32_t ch, uint32_t y, uint32_t x)
{
    uint32_t size = i->flags & SRC32 ? 4 : element_bytes(c);
    const uint8_t *first = i->flags & SRC32 ? c->filter : c->frame;
    const uint8_t *second = i->flags & (SRC32 | CONST1) ? c->filter : c->frame;
    const uint8_t *a = first + i->src + (((size_t)ch * i->src_rows + y) * i->src_pitch + x) * size;
    const uint8_t *b =
        second + i->src1 + (((size_t)ch * i->src1_rows + y) * i->src1_pitch + x) * size;
    result r = { 0.0f, 0, i->flags & SRC32 && c->sim.element == MUC_CNNCHIP_int8 };

    if (i->flags & SRC32) {
        r.whole = (int64_t)(int32_t)word(a) + (int32_t)word(b);
        r.x = real_of(word(a)) + real_of(word(b));
        return r;
    }
    r.x = real_of(i->factor) * (float)(element(c, a) - (int32_t)i->zero_src);
    if (!(i->flags & ONE)) {
        float other = real_of(i->factor1) * (float)(element(c, b) - (int32_t)i->zero_src1);

        r.x = r.x + other;
    }
    return r;
}

/* |bits| of a binary16 nearest to a value, by trying them all */
static uint32_t nearest_half(float value)
{
    uint32_t best = 0;
    double least = INFINITY, size = fabs((double)value);

    for (uint32_t bits = 0; bits <= 0x7c00; bits++) {
        uint32_t e = bits >> 10, f = bits & 1023;
        /* infinity stands where the next value would be */
        double half = e ? ldexp(1024 + f, (int)e - 25) : ldexp(f, -24);
        double error = fabs(half - size);

        if (error < least || (error == least && bits % 2 == 0)) {
            least = error;
            best = bits;
        }
    }
    return best | (signbit(value) ? 0x8000u : 0);
}

static void store(chip *c, const insn *i, const result *r, uint32_t ch, uint32_t y, uint32_t x)
{
    uint32_t size = i->flags & DST32 ? 4 : element_bytes(c);
    size_t rows = i->opcode == DENSE ? 1 : i->dst_rows;
    size_t pitch = i->opcode == DENSE ? 1 : i->dst_pitch;
    size_t at = i->dst + ((ch * rows + y * i->step_h) * pitch + x * i->step_w) * size;
    const uint8_t *table = c->filter + i->dsp;
    float z = r->is_sum ? (float)(int32_t)(uint32_t)r->whole : r->x;

    if (i->flags & DST32) {
        put_word(c->filter + at, r->is_sum ? (uint32_t)r->whole : bits_of(r->x));
        return;
    }
    if (i->flags & DSP) {
        uint32_t v3 = word(table + 8 * i->out_c + 4 * ch);
        float inner = r->is_sum ? (float)(int32_t)((uint32_t)r->whole + v3) : r->x + real_of(v3);
        float product = real_of(word(table + 4 * ch)) * inner;

        z = real_of(word(table + 4 * i->out_c + 4 * ch)) + product;
    }
    if (i->flags & ACT && z < real_of(i->act_from))
        z = real_of(i->act_slope) * z;
    if (c->sim.element == MUC_CNNCHIP_fp32) {
        put_word(c->frame + at, bits_of(z));
    } else if (c->sim.element == MUC_CNNCHIP_fp16) {
        uint32_t half = nearest_half(z);

        c->frame[at] = (uint8_t)half;
        c->frame[at + 1] = (uint8_t)(half >> 8);
    } else {
        double q = rint(fmin(fmax((double)z, -65536), 65536)) + (int32_t)i->zero_out;

        c->frame[at] = (uint8_t)(int8_t)fmin(fmax(q, -128), 127);
    }
}

static void border(chip *c, const insn *i)
{
    uint32_t size = element_bytes(c);
    uint8_t *p = c->frame + i->dst - (i->pad_t * i->dst_pitch + i->pad_l) * size;

    for (uint32_t n = 0; n < i->out_c * i->dst_rows * i->dst_pitch; n++) {
        uint32_t y = n / i->dst_pitch % i->dst_rows, x = n % i->dst_pitch;

        if (y < i->pad_t || y + i->pad_b >= i->dst_rows || x < i->pad_l ||
            x + i->pad_r >= i->dst_pitch)
            for (uint32_t k = 0; k < size; k++)
                p[n * size + k] = (uint8_t)(i->pad_value >> 8 * k);
    }
}

static void second_reading(chip *c, const insn *i)
{
    insn own = *i;

    if (i->opcode == DENSE)
        own.out_h = own.out_w = 1;
    for (uint32_t ch = 0; ch < own.out_c; ch++)
        for (uint32_t y = 0; y < own.out_h; y++)
            for (uint32_t x = 0; x < own.out_w; x++) {
                result r = i->opcode == ADD       ? sum(c, i, ch, y, x)
                           : i->opcode == MAXPOOL ? maximum(c, i, ch, y, x)
                                                  : product_sum(c, i, ch, y, x);

                store(c, i, &r, ch, y, x);
            }
    if (i->pad_t | i->pad_b | i->pad_l | i->pad_r)
        border(c, i);
}

/* ---- random instructions ---- */

static float small_real(void)
{
    return (float)((int)(random_u32() % 2001) - 1000) / 256.0f;
}

static void put_element(const chip *c, uint8_t *p)
{
    float value = small_real();
    uint32_t half = muc_f16_of_f32(value);

    if (c->sim.element == MUC_CNNCHIP_fp32) {
        put_word(p, bits_of(value));
    } else if (c->sim.element == MUC_CNNCHIP_fp16) {
        p[0] = (uint8_t)half;
        p[1] = (uint8_t)(half >> 8);
    } else {
        p[0] = (uint8_t)random_u32();
    }
}

static void fill_memories(chip *c)
{
    for (uint32_t at = 0; at < FRAME; at += element_bytes(c))
        put_element(c, c->frame + at);
    for (uint32_t at = 0; at < FILTER; at += element_bytes(c))
        put_element(c, c->filter + at);
}

static uint32_t below(uint32_t n)
{
    return random_u32() % n;
}

static uint32_t aligned(uint32_t below_this, uint32_t size)
{
    return below(below_this / size + 1) * size;
}

/* 4-byte places in FILTER hold small reals, or integers in int8; the caller's range is in bytes */
static void fill_words(chip *c, uint32_t from, uint32_t count, int reals)
{
    for (uint32_t i = 0; i < count; i++)
        put_word(c->filter + from + 4 * i,
                 reals ? bits_of(small_real()) : (uint32_t)(int32_t)small_real() * 1000);
}

static void random_tail(chip *c, insn *i)
{
    int whole = c->sim.element == MUC_CNNCHIP_int8;
    int sums = i->opcode == CONV || i->opcode == DENSE || i->flags & SRC32;

    if (below(2)) {
        i->flags |= DSP;
        i->dsp = 512 + aligned(64, 4);
        fill_words(c, i->dsp, 2 * i->out_c, 1);
        fill_words(c, i->dsp + 8 * i->out_c, i->out_c, !(whole && sums));
    }
    if (below(2)) {
        i->flags |= ACT;
        i->act_from = bits_of(small_real());
        i->act_slope = bits_of(below(2) ? 0.0f : 0.25f);
    }
    if (whole)
        i->zero_out = (uint32_t)((int)below(256) - 128);
}

/* where the result lies: any place, often upon the source */
static void random_place(const chip *c, insn *i)
{
    uint32_t size = element_bytes(c), bits = 8 * size;

    if (i->flags & DST32) {
        i->step_h = i->step_w = 1;
        i->dst_rows = i->out_h;
        i->dst_pitch = i->out_w + below(2);
        i->dst = IMAGE + aligned(64, 4);
        return;
    }
    i->step_h = 1 + below(2);
    i->step_w = 1 + below(2);
    if (below(2)) {
        i->pad_t = below(3);
        i->pad_b = below(2);
        i->pad_l = below(3);
        i->pad_r = below(2);
    }
    if (i->pad_t | i->pad_b | i->pad_l | i->pad_r)
        i->pad_value =
            bits == 32 ? random_u32() & 0x3fffffff : random_u32() & ((1u << bits) - 1) & 0x3fff;
    i->dst_rows = i->pad_t + (i->out_h - 1) * i->step_h + 1 + i->pad_b + below(2);
    i->dst_pitch = i->pad_l + (i->out_w - 1) * i->step_w + 1 + i->pad_r + below(2);
    i->dst = aligned(512, size) + (i->pad_t * i->dst_pitch + i->pad_l) * size;
}

static void random_windows(const chip *c, insn *i)
{
    uint32_t size = element_bytes(c);

    i->kernel_h = 1 + below(3);
    i->kernel_w = 1 + below(3);
    i->stride_h = 1 + below(2);
    i->stride_w = 1 + below(3);
    i->dilation_h = 1 + below(2);
    i->dilation_w = 1 + below(2);
    i->out_h = 1 + below(4);
    i->out_w = 1 + below(6);
    i->in_h = (i->out_h - 1) * i->stride_h + (i->kernel_h - 1) * i->dilation_h + 1 + below(2);
    i->in_w = (i->out_w - 1) * i->stride_w + (i->kernel_w - 1) * i->dilation_w + 1 + below(2);
    i->filter = aligned(64, size);
}

static void random_view(const chip *c, insn *i)
{
    i->src_rows = i->in_h + below(2);
    i->src_pitch = i->in_w + below(2);
    i->src = aligned(256, element_bytes(c));
}

static insn random_conv(chip *c)
{
    insn i = { .opcode = CONV, .groups = 1 + below(2) };

    random_windows(c, &i);
    i.in_c = i.groups * (1 + below(2));
    i.out_c = i.groups * (1 + below(5));
    random_view(c, &i);
    if (below(4) == 0)
        i.flags = DST32;
    else
        random_tail(c, &i);
    random_place(c, &i);
    return i;
}

static insn random_maxpool(chip *c)
{
    insn i = { .opcode = MAXPOOL };

    random_windows(c, &i);
    i.in_c = i.out_c = 1 + below(3);
    random_view(c, &i);
    for (uint32_t k = 0; k < i.kernel_h * i.kernel_w; k++) {
        uint8_t *p = c->filter + i.filter + k * element_bytes(c);

        if (c->sim.element == MUC_CNNCHIP_fp32)
            put_word(p, 0x3f800000);
        else if (c->sim.element == MUC_CNNCHIP_fp16)
            memcpy(p, "\0\x3c", 2);
        else
            p[0] = 1;
    }
    random_tail(c, &i);
    if (c->sim.element == MUC_CNNCHIP_int8)
        i.zero_src = (uint32_t)((int)below(256) - 128);
    random_place(c, &i);
    return i;
}

static insn random_add(chip *c)
{
    static const uint32_t forms[] = { 0, ONE, CONST1, SRC32, SRC32 | DST32 };
    insn i = { .opcode = ADD, .flags = forms[below(5)] };
    int whole = c->sim.element == MUC_CNNCHIP_int8;
    uint32_t size = i.flags & SRC32 ? 4 : element_bytes(c);

    i.out_c = 1 + below(3);
    i.out_h = 1 + below(4);
    i.out_w = 1 + below(4);
    i.src_rows = i.out_h + below(2);
    i.src_pitch = i.out_w + below(2);
    i.src = (i.flags & SRC32 ? IMAGE : 0) + aligned(128, size);
    if (!(i.flags & ONE)) {
        i.src1_rows = i.out_h + below(2);
        i.src1_pitch = i.out_w + below(2);
        i.src1 = (i.flags & SRC32 ? IMAGE : 0) + aligned(128, size);
    }
    if (i.flags & SRC32) {
        fill_words(c, IMAGE, (FILTER - IMAGE) / 4, !whole);
    } else {
        i.factor = bits_of(small_real());
        if (!(i.flags & ONE))
            i.factor1 = bits_of(small_real());
        if (whole) {
            i.zero_src = (uint32_t)((int)below(256) - 128);
            i.zero_src1 = i.flags & ONE ? 0 : (uint32_t)((int)below(256) - 128);
        }
    }
    if (!(i.flags & DST32))
        random_tail(c, &i);
    random_place(c, &i);
    return i;
}

static insn random_dense(chip *c)
{
    insn i = { .opcode = DENSE, .flags = below(3) ? 0 : DST32 };

    i.in_c = 1 + below(3);
    i.in_h = 1 + below(3);
    i.in_w = 1 + below(4);
    i.out_c = 1 + below(11);
    random_view(c, &i);
    i.filter = aligned(32, element_bytes(c));
    if (i.flags & DST32) {
        i.dst = IMAGE + aligned(64, 4);
    } else {
        random_tail(c, &i);
        i.dst = aligned(512, element_bytes(c));
    }
    return i;
}

static void check_random(muc_cnnchip_element element, insn (*make)(chip *))
{
    static chip c, expected;
    insn i;

    clear_chip(&c, element);
    fill_memories(&c);
    i = make(&c);
    append(&c, &i);
    put_end(&c, 0);
    expected = c;
    second_reading(&expected, &i);
    CHECK_EQ(muc_cnnchip_sim_start(&c.sim), MUC_CNNCHIP_ENDED);
    assert_memory_equal(c.frame, expected.frame, FRAME);
    assert_memory_equal(c.filter, expected.filter, FILTER);
}

static void random_instructions_do_what_a_second_reading_says(void **state)
{
    (void)state;
    for (int round = 0; round < 400; round++)
        for (int element = 0; element < 3; element++) {
            /* the slow search for the nearest binary16 asks for fewer */
            if (element == MUC_CNNCHIP_fp16 && round >= 20)
                continue;
            check_random((muc_cnnchip_element)element, random_conv);
            check_random((muc_cnnchip_element)element, random_maxpool);
            check_random((muc_cnnchip_element)element, random_add);
            check_random((muc_cnnchip_element)element, random_dense);
        }
}

/* ---- faults ---- */

static const insn plain_conv = {
    .opcode = CONV,
    .in_c = 2,
    .in_h = 4,
    .in_w = 4,
    .groups = 1,
    .src_rows = 4,
    .src_pitch = 4,
    .dst = 1024,
    .out_c = 3,
    .out_h = 2,
    .out_w = 2,
    .step_h = 1,
    .step_w = 1,
    .dst_rows = 2,
    .dst_pitch = 2,
    .kernel_h = 3,
    .kernel_w = 3,
    .dilation_h = 1,
    .dilation_w = 1,
    .stride_h = 1,
    .stride_w = 1,
};
static const insn plain_add = {
    .opcode = ADD,
    .src_rows = 2,
    .src_pitch = 2,
    .src1_rows = 2,
    .src1_pitch = 2,
    .dst = 512,
    .out_c = 1,
    .out_h = 2,
    .out_w = 2,
    .step_h = 1,
    .step_w = 1,
    .dst_rows = 2,
    .dst_pitch = 2,
};

/* the instruction stops the chip with this fault and changes nothing */
static void check_fault(muc_cnnchip_element element, const insn *i, uint32_t pes,
                        muc_cnnchip_fault fault)
{
    static chip c;

    clear_chip(&c, element);
    fill_memories(&c);
    append(&c, i);
    put_end(&c, 0);
    c.sim.pes = pes;
    memcpy(c.frame_before, c.frame, FRAME);
    memcpy(c.filter_before, c.filter, FILTER);
    if (fault == MUC_CNNCHIP_NO_FAULT) {
        CHECK_EQ(muc_cnnchip_sim_start(&c.sim), MUC_CNNCHIP_ENDED);
        return;
    }
    CHECK_EQ(muc_cnnchip_sim_start(&c.sim), MUC_CNNCHIP_FAULTED);
    CHECK_EQ(c.sim.code, fault);
    CHECK_EQ(c.sim.pc, 0);
    CHECK_EQ(c.sim.counts.instructions, 0);
    CHECK_EQ(muc_cnnchip_sim_resume(&c.sim), MUC_CNNCHIP_FAULTED);
    assert_memory_equal(c.frame, c.frame_before, FRAME);
    assert_memory_equal(c.filter, c.filter_before, FILTER);
}

#define CONV_FAULT(fault, ...) \
    do { \
        insn i = plain_conv; \
        __VA_ARGS__; \
        check_fault(MUC_CNNCHIP_fp32, &i, 0, MUC_CNNCHIP_FAULT_##fault); \
    } while (0)
#define ADD_FAULT(element, fault, ...) \
    do { \
        insn i = plain_add; \
        __VA_ARGS__; \
        check_fault(MUC_CNNCHIP_##element, &i, 0, MUC_CNNCHIP_FAULT_##fault); \
    } while (0)

static void faults_of_fields_change_nothing(void **state)
{
    (void)state;
    check_fault(MUC_CNNCHIP_fp32, &plain_conv, 0, MUC_CNNCHIP_NO_FAULT);
    check_fault(MUC_CNNCHIP_fp32, &plain_add, 0, MUC_CNNCHIP_NO_FAULT);
    CONV_FAULT(reserved, i.flags = 64);
    CONV_FAULT(reserved, i.dsp = 4);
    CONV_FAULT(reserved, i.act_slope = 1);
    CONV_FAULT(reserved, i.zero_out = 1);
    CONV_FAULT(reserved, i.pad_value = 1);
    ADD_FAULT(fp32, reserved, i.flags = ONE);
    ADD_FAULT(fp32, reserved, (i.flags = SRC32, i.factor = 1));
    ADD_FAULT(int8, reserved, (i.pad_r = 1, i.dst_pitch = 3, i.pad_value = 256));
    CONV_FAULT(flags, i.flags = ONE);
    CONV_FAULT(flags, i.flags = DST32 | DSP);
    CONV_FAULT(flags, (i.flags = DST32, i.pad_t = 1, i.dst_rows = 3));
    CONV_FAULT(flags, (i.flags = DST32, i.step_w = 2, i.dst_pitch = 3));
    ADD_FAULT(fp32, flags, i.flags = SRC32 | CONST1);
    ADD_FAULT(int8, flags, i.flags = DST32);
}

static void faults_of_sizes_change_nothing(void **state)
{
    (void)state;
    CONV_FAULT(shape, i.out_w = 0);
    CONV_FAULT(shape, i.groups = 2);
    CONV_FAULT(shape, i.out_h = 3, i.dst_rows = 3);
    CONV_FAULT(shape, i.in_w = 5);
    CONV_FAULT(shape, i.pad_b = 1);
    CONV_FAULT(shape, i.step_h = 2);
    ADD_FAULT(fp32, shape, i.src1_pitch = 1);
    CONV_FAULT(align, i.src = 2);
    CONV_FAULT(align, i.filter = 1);
    CONV_FAULT(align, (i.flags = DSP, i.dsp = 2));
    CONV_FAULT(frame, i.src = FRAME - 4 * 31);
    CONV_FAULT(frame, i.dst = FRAME - 4 * 11);
    CONV_FAULT(frame, (i.dst = 0, i.pad_l = 1, i.dst_pitch = 3));
    CONV_FAULT(filter, i.filter = FILTER - 4 * 53);
    CONV_FAULT(filter, (i.flags = DSP, i.dsp = FILTER - 32));
    CONV_FAULT(filter, i.flags = DST32; i.dst = IMAGE - 4);
    ADD_FAULT(fp32, filter, (i.flags = CONST1, i.src1 = FILTER - 12));
}

static void a_block_needs_its_elements(void **state)
{
    (void)state;
    check_fault(MUC_CNNCHIP_fp32, &plain_conv, 17, MUC_CNNCHIP_FAULT_pes);
    check_fault(MUC_CNNCHIP_fp32, &plain_conv, 18, MUC_CNNCHIP_NO_FAULT);
}

static void a_program_that_breaks_off_or_has_no_instruction_stops(void **state)
{
    static chip c;

    (void)state;
    clear_chip(&c, MUC_CNNCHIP_fp32);
    CHECK_EQ(muc_cnnchip_sim_start(&c.sim), MUC_CNNCHIP_FAULTED);
    CHECK_EQ(c.sim.code, MUC_CNNCHIP_FAULT_fetch);
    append(&c, &plain_conv);
    c.sim.program_bytes -= 4;
    CHECK_EQ(muc_cnnchip_sim_start(&c.sim), MUC_CNNCHIP_FAULTED);
    CHECK_EQ(c.sim.code, MUC_CNNCHIP_FAULT_fetch);
    c.program[0] = 0x55;
    CHECK_EQ(muc_cnnchip_sim_start(&c.sim), MUC_CNNCHIP_FAULTED);
    CHECK_EQ(c.sim.code, MUC_CNNCHIP_FAULT_opcode);
}

/* ---- the run ---- */

static void the_chip_stops_for_host_steps_and_goes_on(void **state)
{
    static chip c;

    (void)state;
    clear_chip(&c, MUC_CNNCHIP_fp32);
    append(&c, &plain_add);
    put_end(&c, 1);
    append(&c, &plain_conv);
    put_end(&c, 0);
    for (int run = 0; run < 2; run++) {
        CHECK_EQ(muc_cnnchip_sim_start(&c.sim), MUC_CNNCHIP_ENDED);
        CHECK_EQ(c.sim.code, 1);
        CHECK_EQ(c.sim.pc, 4 * (18 + 2));
        CHECK_EQ(muc_cnnchip_sim_resume(&c.sim), MUC_CNNCHIP_ENDED);
        CHECK_EQ(c.sim.code, 0);
        CHECK_EQ(c.sim.counts.instructions, 4);
        CHECK_EQ(c.sim.counts.program_bytes, 4 * (18 + 2 + 19 + 2));
    }
}

static void trace_counts(void *arg, const muc_cnnchip_sim *sim, uint32_t pc, const uint32_t *words,
                         const muc_cnnchip_counts *counts)
{
    muc_cnnchip_counts *first = arg;

    CHECK_EQ(sim->status, MUC_CNNCHIP_BUSY);
    if (pc == 0) {
        CHECK_EQ(words[0] & 255, CONV);
        *first = *counts;
    }
}

/* a conv of 3 x 2 x 2 results, block 18, with a DSP table and a border of 2 rows of 4 and 2 x 2 */
static void cycles_and_traffic_are_those_counted_by_hand(void **state)
{
    static chip c;
    muc_cnnchip_counts counts;
    insn i = plain_conv;

    (void)state;
    i.flags = DSP;
    i.dsp = 512;
    i.pad_t = i.pad_b = i.pad_l = i.pad_r = 1;
    i.dst_rows = i.dst_pitch = 4;
    clear_chip(&c, MUC_CNNCHIP_fp16);
    append(&c, &i);
    put_end(&c, 0);
    c.sim.pes = 20;
    c.sim.bus_bytes = 8;
    c.sim.trace = trace_counts;
    c.sim.trace_arg = &counts;
    CHECK_EQ(muc_cnnchip_sim_start(&c.sim), MUC_CNNCHIP_ENDED);
    CHECK_EQ(counts.operations, 12 * 18);
    CHECK_EQ(counts.compute_cycles, 12 + 2); /* 36 elements of border by 20 */
    CHECK_EQ(counts.frame_read_bytes, 2 * 32);
    CHECK_EQ(counts.frame_written_bytes, 2 * 48);
    CHECK_EQ(counts.filter_read_bytes, 2 * 54 + 36);
    CHECK_EQ(counts.filter_written_bytes, 0);
    CHECK_EQ(counts.program_bytes, 76);
    CHECK_EQ(counts.memory_cycles, (64 + 96 + 144 + 76 + 7) / 8);
    CHECK_EQ(counts.cycles, counts.memory_cycles);
    CHECK_EQ(c.sim.counts.cycles, counts.cycles + 1); /* END: 8 bytes of program */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_instructions_do_what_a_second_reading_says),
        cmocka_unit_test(faults_of_fields_change_nothing),
        cmocka_unit_test(faults_of_sizes_change_nothing),
        cmocka_unit_test(a_block_needs_its_elements),
        cmocka_unit_test(a_program_that_breaks_off_or_has_no_instruction_stops),
        cmocka_unit_test(the_chip_stops_for_host_steps_and_goes_on),
        cmocka_unit_test(cycles_and_traffic_are_those_counted_by_hand),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* nn_cases.c - random layers for every kernel of mur_nn.def. Expectations come from the plain
 * weights, sums in 64 bits and a rounding spelled out by division; nothing of mur_nn_arith.h is
 * used. */
#include "nn_cases.h"
#include "mur_pool.h"
#include "xorshift.h"

#include <string.h>

#define MUR_NN_CASE_CONV(isa, name) \
    { #isa "_" #name, \
      mur_##isa##_##name, \
      mur_##isa##_##name##_fits, \
      mur_##isa##_##name##_packed_bytes, \
      mur_##isa##_##name##_pack, \
      mur_##isa##_##name##_scratch_bytes },
#define MUR_NN_CASE_UNARY(isa, name)
#define MUR_NN_CASE_BINARY(isa, name)
#define MUR_NN_CASE_PRODUCT(isa, name)

const nn_kernel nn_kernels[] = {
#define MUR_NN(isa, name, kind, descriptor) MUR_NN_CASE_##kind(isa, name)
#include "mur_nn.def"
#undef MUR_NN
};
const uint32_t nn_kernels_count = sizeof(nn_kernels) / sizeof(*nn_kernels);

enum { MOST = 1 << 14, GUARD = 64, CHANNELS = 512, WORK = 36 << 10 };

/* operands, with room for guards; all of them fit a board of 128 KB */
static int8_t input[MOST], memory[MOST / 2 + 2 * MOST], weights[MOST];
static _Alignas(16) uint8_t work[WORK]; /* a layer's packed weights, then its scratch memory */
static int32_t bias[CHANNELS], mul[CHANNELS], shift[CHANNELS];

static uint32_t state = 1;

void *nn_spare(void)
{
    return work;
}

static uint32_t draw(void)
{
    return random_next32(&state);
}

static int32_t between(int32_t least, int32_t most)
{
    return least + (int32_t)(draw() % (uint32_t)(most - least + 1));
}

static int chance(uint32_t of)
{
    return draw() % of == 0;
}

/* ---- layers ---- */

static int32_t extent(int32_t in, int32_t kernel, int32_t stride, int32_t dilation, int32_t pads)
{
    int32_t span = (kernel - 1) * dilation + 1;

    return in + pads < span ? 0 : (in + pads - span) / stride + 1;
}

/* a kind of layer, its extents left to chance */
static void draw_layer(mur_conv_s8 *l)
{
    static const uint8_t kernels[] = { 1, 1, 3, 3, 5, 7 };
    mur_conv_shape *shape = &l->shape;
    int32_t multiplier = chance(8) ? 2 : 1, pads_h, pads_w;

    memset(l, 0, sizeof(*l));
    shape->kernel_h = shape->kernel_w = kernels[draw() % 6];
    if (chance(8))
        shape->kernel_w = (uint16_t)between(1, 9);
    if (chance(6)) { /* a column, or nearly */
        shape->kernel_h = (uint16_t)between(2, 15);
        shape->kernel_w = (uint16_t)between(1, chance(2) ? 1 : 4);
    }
    shape->stride_h = shape->stride_w = (uint16_t)(chance(3) ? 2 : 1);
    if (chance(8))
        shape->stride_h = (uint16_t)between(1, 3);
    shape->dilation_h = shape->dilation_w = 1;
    if (chance(8))
        shape->dilation_w = shape->dilation_h = (uint16_t)between(1, 3);
    shape->in_h = between(1, 12);
    shape->in_w = between(1, 14);
    shape->in_c = between(1, chance(4) ? 64 : 20);
    shape->groups = 1;
    shape->out_c = between(1, chance(4) ? 64 : 20);
    if (chance(2)) { /* depthwise */
        if (chance(8))
            shape->in_c = between(65, 150); /* more than vectors, or a kernel, take at a time */
        if (chance(3))
            shape->kernel_h = shape->kernel_w = 3;
        else if (chance(2)) { /* more taps, of more pixels */
            shape->in_h = between(6, 14);
            shape->in_w = between(6, 14);
            shape->in_c = between(1, 50);
            shape->kernel_h = (uint16_t)between(2, 9);
            shape->kernel_w = (uint16_t)(chance(3) ? shape->kernel_h : between(2, 9));
        }
        shape->groups = shape->in_c;
        shape->out_c = shape->in_c * multiplier;
    } else if (chance(6)) {
        shape->groups = between(2, 4);
        shape->in_c = between(1, 6) * shape->groups;
        shape->out_c = between(1, 6) * shape->groups;
    } else if (chance(4)) { /* few inputs an output */
        shape->kernel_h = (uint16_t)between(1, 3);
        shape->kernel_w = (uint16_t)between(1, 3);
        shape->in_c = between(1, 4);
        shape->out_c = between(4, 30);
        if (chance(3)) { /* one */
            shape->kernel_h = shape->kernel_w = shape->stride_h = shape->stride_w = 1;
            shape->in_w = between(1, 40);
            shape->in_c = 1;
        }
    } else if (chance(2)) { /* fully connected */
        shape->kernel_h = shape->kernel_w = shape->stride_h = shape->stride_w = 1;
        shape->in_h = 1;
        shape->in_w = between(1, 3);
        shape->in_c = between(1, chance(4) ? 1100 : 300);
    }
    shape->pad_top = (uint16_t)(draw() % shape->kernel_h);
    shape->pad_left = (uint16_t)(draw() % shape->kernel_w);
    if (chance(12)) { /* windows without any input */
        shape->pad_top = (uint16_t)(shape->pad_top + shape->kernel_h);
        shape->pad_left = (uint16_t)(shape->pad_left + shape->kernel_w);
    }
    pads_h = shape->pad_top + (int32_t)(draw() % shape->kernel_h);
    pads_w = shape->pad_left + (int32_t)(draw() % shape->kernel_w);
    if (chance(4)) { /* windows inside the image */
        shape->pad_top = shape->pad_left = 0;
        pads_h = pads_w = 0;
    }
    shape->out_h = extent(shape->in_h, shape->kernel_h, shape->stride_h, shape->dilation_h, pads_h);
    shape->out_w = extent(shape->in_w, shape->kernel_w, shape->stride_w, shape->dilation_w, pads_w);
    shape->in_pitch = shape->in_w * shape->in_c + (chance(4) ? between(1, 9) : 0);
    shape->out_pitch = shape->out_w * shape->out_c + (chance(4) ? between(1, 9) : 0);
    l->in_zero = (int8_t)(chance(3) ? -128 : between(-128, 127));
    l->weight_zero = (int8_t)(chance(4) ? between(-128, 127) : 0);
}

static int32_t depth_of(const mur_conv_s8 *l)
{
    return l->shape.in_c / l->shape.groups;
}

static int is_small_enough(const mur_conv_s8 *l)
{
    return l->shape.out_h > 0 && l->shape.out_w > 0 &&
           l->shape.in_h * l->shape.in_pitch < MOST - GUARD &&
           l->shape.out_h * l->shape.out_pitch < MOST - GUARD && l->shape.out_c <= CHANNELS &&
           l->shape.out_c * l->shape.kernel_h * l->shape.kernel_w * depth_of(l) < MOST;
}

static void draw_numbers(mur_conv_s8 *l)
{
    const mur_conv_shape *shape = &l->shape;
    int32_t taps = shape->kernel_h * shape->kernel_w * depth_of(l), large = chance(4);
    int32_t one = 0, few = 0; /* multipliers */
    int32_t bits = 7;         /* about the logarithm of the sums */

    while (taps >> (2 * (bits - 7)) != 0)
        bits++;
    for (int32_t i = 0; i < MOST; i++)
        input[i] = (int8_t)(large && chance(2) ? -128 : (int32_t)draw());
    for (int32_t i = 0; i < shape->out_c * taps; i++)
        weights[i] = (int8_t)(large && chance(2) ? chance(2) ? -128 : 127 : between(-127, 127));
    l->output.kind = chance(3) ? MUR_REQUANT_SHIFT : MUR_REQUANT_Q31;
    l->output.shift = (uint8_t)(chance(8) ? between(0, 40) : bits + 4);
    l->output.zero = (int8_t)(l->output.kind == MUR_REQUANT_SHIFT ? 0
                              : chance(3)                         ? -128 /* as behind a ReLU */
                                                                  : between(-128, 127));
    l->output.min = (int8_t)(chance(2) ? -128 : between(-128, 0));
    l->output.max = (int8_t)(chance(2) ? 127 : between(0, 127));
    if (chance(2))
        one = 1;
    else if (chance(2))
        few = between(2, 9);
    for (int32_t c = 0; c < shape->out_c; c++) {
        bias[c] = between(-30000, 30000);
        mul[c] = (int32_t)(draw() >> 2 | 1u << 30);
        shift[c] = chance(40) ? between(-31, 3) : between(-bits - 2, -bits + 3);
        if (l->output.kind == MUR_REQUANT_SHIFT) {
            mul[c] = between(chance(4) ? -2000 : 1, 4000);
            shift[c] = between(-1000000, 1000000);
        }
        if (few)
            mul[c] = mul[c % few];
        if (one) {
            mul[c] = mul[0];
            shift[c] = shift[0];
        }
    }
}

/* ---- what is right ---- */

static int64_t floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t power(int32_t of)
{
    return (int64_t)1 << of;
}

static int8_t judge_requant(const mur_conv_s8 *l, int64_t sum, int32_t c)
{
    int64_t x;

    if (l->output.kind == MUR_REQUANT_SHIFT) {
        x = floor_divide(sum * mul[c] + shift[c], power(l->output.shift));
    } else {
        int32_t right = shift[c] < 0 ? -shift[c] : 0;

        x = (int32_t)(uint32_t)((uint64_t)sum << (shift[c] > 0 ? shift[c] : 0));
        x = floor_divide(x * mul[c] + power(30), power(31)); /* halves up */
        /* halves away from zero */
        x = x < 0 ? -floor_divide(-2 * x + power(right), power(right + 1))
                  : floor_divide(2 * x + power(right), power(right + 1));
        x += l->output.zero;
    }
    return (int8_t)(x < l->output.min ? l->output.min : x > l->output.max ? l->output.max : x);
}

static int64_t judge_sum(const mur_conv_s8 *l, int32_t y, int32_t x, int32_t c)
{
    const mur_conv_shape *shape = &l->shape;
    int32_t depth = depth_of(l), first = c / (shape->out_c / shape->groups) * depth;
    int64_t sum = bias[c];

    for (int32_t i = 0; i < shape->kernel_h * shape->kernel_w; i++) {
        int32_t row =
            y * shape->stride_h - shape->pad_top + i / shape->kernel_w * shape->dilation_h;
        int32_t column =
            x * shape->stride_w - shape->pad_left + i % shape->kernel_w * shape->dilation_w;

        if (row < 0 || row >= shape->in_h || column < 0 || column >= shape->in_w)
            continue;
        for (int32_t k = 0; k < depth; k++)
            sum +=
                (input[row * shape->in_pitch + column * shape->in_c + first + k] - l->in_zero) *
                (weights[(c * shape->kernel_h * shape->kernel_w + i) * depth + k] - l->weight_zero);
    }
    return sum;
}

/* the first index of out that is wrong; -2: all is right */
static int32_t judge(const mur_conv_s8 *l, const int8_t *out)
{
    for (int32_t y = 0; y < l->shape.out_h; y++)
        for (int32_t x = 0; x < l->shape.out_w; x++)
            for (int32_t c = 0; c < l->shape.out_c; c++) {
                int32_t at = y * l->shape.out_pitch + x * l->shape.out_c + c;

                if (out[at] != judge_requant(l, judge_sum(l, y, x, c), c))
                    return at;
            }
    return -2;
}

/* ---- the trial ---- */

static int is_a(const nn_kernel *kernel, const char *wanted)
{
    const char *p = kernel->name;

    while (*p != '_')
        p++;
    while (*wanted != 0 && *p == *wanted) {
        p++;
        wanted++;
    }
    return *wanted == 0;
}

/* Where `in` starts after `out`, as close as may be; in range even if anything goes. */
static int32_t offset_of_input(const nn_kernel *kernel, const mur_conv_s8 *l, int overlapping)
{
    int32_t lead;

    if (!overlapping)
        return MOST;
    if (is_a(kernel, "_depthwise"))
        return l->shape.out_c == l->shape.in_c &&
                       l->shape.in_pitch == l->shape.in_w * l->shape.in_c &&
                       l->shape.out_pitch == l->shape.out_w * l->shape.out_c &&
                       l->shape.out_h <= l->shape.in_h && l->shape.out_w <= l->shape.in_w
                   ? 0
                   : MOST;
    lead = is_a(kernel, "_fc") ? mur_fc_s8_lead(&l->shape) : mur_conv_s8_lead(&l->shape);
    return lead < -MOST / 2 ? -MOST / 2 : lead;
}

/* where scratch memory begins in work, behind the weights and their guard */
static size_t scratch_offset(const nn_kernel *kernel, const mur_conv_s8 *l)
{
    return (kernel->packed_bytes(l) + GUARD + 15) / 16 * 16;
}

static int has_room(const nn_kernel *kernel, const mur_conv_s8 *l)
{
    return scratch_offset(kernel, l) + kernel->scratch_bytes(l) + GUARD <= WORK;
}

/* as judge, but -1: a byte outside of out */
static int32_t try_layer(const nn_kernel *kernel, mur_conv_s8 *l, const mur_conv_plain *plain,
                         int overlapping)
{
    int32_t rows = l->shape.in_h * l->shape.in_pitch,
            offset = offset_of_input(kernel, l, overlapping), at;
    size_t packed_bytes = kernel->packed_bytes(l), scratch_bytes = kernel->scratch_bytes(l);
    int8_t *out = memory + MOST / 2, *in = out + offset;
    uint8_t *scratch = work + scratch_offset(kernel, l);

    memset(memory, 0x5a, sizeof(memory));
    memset(work, 0x5a, sizeof(work));
    memcpy(in, input, (size_t)rows);
    kernel->pack(l, plain, work);
    l->packed = work;
    kernel->run(l, in, out, scratch);
    at = judge(l, out);
    if (at != -2)
        return at;
    for (size_t i = 0; i < GUARD; i++)
        if (scratch[scratch_bytes + i] != 0x5a || work[packed_bytes + i] != 0x5a)
            return -1;
    if (offset != MOST)
        return -2;
    for (int32_t i = 0; i < l->shape.out_h * l->shape.out_pitch; i++)
        if (i % l->shape.out_pitch >= l->shape.out_w * l->shape.out_c && out[i] != 0x5a)
            return -1;
    for (int32_t i = 1; i <= GUARD; i++)
        if (out[-i] != 0x5a || out[l->shape.out_h * l->shape.out_pitch + i - 1] != 0x5a)
            return -1;
    return memcmp(in, input, (size_t)rows) == 0 ? -2 : -1;
}

nn_result nn_check(const nn_kernel *kernel, uint32_t rounds, int overlapping)
{
    const mur_conv_plain plain = { weights, bias, mul, shift };
    nn_result result = { .run = 0 };
    mur_conv_s8 l;

    state = 1;
    while (rounds-- != 0) {
        int32_t at;

        do
            draw_layer(&l);
        while (!is_small_enough(&l));
        draw_numbers(&l);
        if (!kernel->fits(&l, &plain))
            l.weight_zero = 0; /* which few kernels take */
        if (!kernel->fits(&l, &plain) && l.output.kind == MUR_REQUANT_Q31)
            l.output.zero = INT8_MIN; /* what some take alone */
        if (!kernel->fits(&l, &plain) || !has_room(kernel, &l))
            continue;
        result.run++;
        at = try_layer(kernel, &l, &plain, overlapping);
        if (at == -2)
            continue;
        if (result.wrong++ == 0) {
            result.first = l;
            result.at = at;
        }
    }
    return result;
}

/* ---- without weights ---- */

static void draw_pool(mur_pool_s8 *l)
{
    memset(l, 0, sizeof(*l));
    l->c = between(1, 20);
    l->kernel_h = (uint16_t)between(1, 6);
    l->kernel_w = (uint16_t)between(1, chance(8) ? 60 : 6); /* beyond 256 taps, too */
    if (l->kernel_w <= 6 && chance(4))
        l->c = between(21, 150); /* more than vectors take at a time */
    l->in_h = between(l->kernel_h, 9);
    l->in_w = l->kernel_w + between(0, 5);
    l->stride_h = (uint16_t)between(1, 3);
    l->stride_w = (uint16_t)between(1, 3);
    l->pad_top = (uint16_t)(draw() % l->kernel_h);
    l->pad_left = (uint16_t)(draw() % l->kernel_w);
    l->out_h = extent(l->in_h, l->kernel_h, l->stride_h, 1, l->pad_top);
    l->out_w = extent(l->in_w, l->kernel_w, l->stride_w, 1, l->pad_left);
    l->in_pitch = l->in_w * l->c + between(0, 3);
    l->out_pitch = l->out_w * l->c + between(0, 3);
    l->min = (int8_t)between(-128, -20);
    l->max = (int8_t)between(20, 127);
}

/* b may be one number for many elements, or repeated more often than kernels do it at once */
static void draw_counts(int32_t *count, int32_t *b_count)
{
    *b_count = chance(8) ? 1 : between(1, 40);
    *count = *b_count * between(1, chance(2) ? 3 : 1 + (chance(2) ? 1200 : 150) / *b_count);
}

/* as a converter of TensorFlow Lite makes it, or anything */
static void draw_add(mur_add_s8 *l)
{
    int32_t a_is_greater = chance(2);

    memset(l, 0, sizeof(*l));
    draw_counts(&l->count, &l->b_count);
    l->a_mul = l->b_mul = 1 << 30;
    if (chance(4) == 0) { /* else both scales are the same */
        *(a_is_greater ? &l->b_mul : &l->a_mul) = (int32_t)(draw() >> 2 | 1u << 30);
        *(a_is_greater ? &l->b_shift : &l->a_shift) = between(-7, chance(4) ? 0 : -1);
    }
    l->mul = (int32_t)(draw() >> 2 | 1u << 30);
    l->shift = between(-20, -16);
    l->left_shift = (uint8_t)(chance(8) ? 18 : 20);
    l->subtract = (uint8_t)chance(8);
    l->a_zero = (int8_t)draw();
    l->b_zero = (int8_t)draw();
    l->zero = (int8_t)draw();
    l->min = (int8_t)(chance(2) ? -128 : between(-128, 0));
    l->max = (int8_t)(chance(2) ? 127 : between(0, 127));
}

static void draw_sum(mur_add_s8 *l)
{
    int32_t most = chance(8) ? (1 << 22) - 1 : 1 << 21; /* twice and four times a step */

    memset(l, 0, sizeof(*l));
    draw_counts(&l->count, &l->b_count);
    l->a_mul = between(0, most);
    l->b_mul = between(-most, most);
    l->mul = between(-(1 << 29), 1 << 29);
    l->min = (int8_t)(chance(2) ? -128 : between(-128, 0));
    l->max = (int8_t)(chance(2) ? 127 : between(0, 127));
}

static void judge_line(const mur_add_s8 *l, const int8_t *a, const int8_t *b, int8_t *out)
{
    const int64_t one = 1 << 21;

    for (int32_t i = 0; i < l->count; i++) {
        int64_t sum = (int64_t)l->a_mul * a[i] + (int64_t)l->b_mul * b[i % l->b_count] + l->mul;
        int64_t y = (sum + 4096 * one) / one - 4096; /* rounded down */

        out[i] = (int8_t)(y < l->min ? l->min : y > l->max ? l->max : y);
    }
}

static void draw_mul(mur_mul_s8 *l)
{
    memset(l, 0, sizeof(*l));
    draw_counts(&l->count, &l->b_count);
    l->mul = (int32_t)(draw() >> 2 | 1u << 30);
    l->shift = chance(4) ? between(-16, 3) : between(-10, -6);
    l->a_zero = (int8_t)draw();
    l->b_zero = (int8_t)draw();
    l->output.kind = chance(8) ? MUR_REQUANT_SHIFT : MUR_REQUANT_Q31;
    if (l->output.kind == MUR_REQUANT_SHIFT) { /* whose shift is added, and shifts by its own */
        l->mul = between(1, 200);
        l->output.shift = (uint8_t)between(4, 16);
        l->shift = between(-4000, 4000);
    }
    l->output.zero = (int8_t)draw();
    l->output.min = (int8_t)(chance(2) ? -128 : between(-128, 0));
    l->output.max = (int8_t)(chance(2) ? 127 : between(0, 127));
}

static void judge_mul(const mur_mul_s8 *l, const int8_t *a, const int8_t *b, int8_t *out)
{
    const mur_conv_s8 like = { .output = l->output };

    mul[0] = l->mul;
    shift[0] = l->shift;
    for (int32_t i = 0; i < l->count; i++)
        out[i] = judge_requant(&like, (a[i] - l->a_zero) * (b[i % l->b_count] - l->b_zero), 0);
}

static void draw_mean(mur_mean_s8 *l)
{
    memset(l, 0, sizeof(*l));
    l->pixels = between(1, chance(8) ? 700 : 50); /* beyond sums of 16 bits, too */
    l->c = between(1, 20);
    l->mul = (int32_t)(draw() >> 2 | 1u << 30);
    l->shift = chance(4) ? between(-16, 3) : between(-10, -3);
    l->in_zero = (int8_t)draw();
    l->output.kind = chance(8) ? MUR_REQUANT_SHIFT : MUR_REQUANT_Q31;
    if (l->output.kind == MUR_REQUANT_SHIFT) {
        l->mul = between(1, 200);
        l->output.shift = (uint8_t)between(4, 16);
        l->shift = between(-4000, 4000);
    }
    l->output.zero = (int8_t)draw();
    l->output.min = (int8_t)(chance(2) ? -128 : between(-128, 0));
    l->output.max = (int8_t)(chance(2) ? 127 : between(0, 127));
}

static void judge_mean(const mur_mean_s8 *l, const int8_t *in, int8_t *out)
{
    const mur_conv_s8 like = { .output = l->output };

    mul[0] = l->mul;
    shift[0] = l->shift;
    for (int32_t c = 0; c < l->c; c++) {
        int64_t sum = 0;

        for (int32_t i = 0; i < l->pixels; i++)
            sum += in[i * l->c + c] - l->in_zero;
        out[c] = judge_requant(&like, sum, 0);
    }
}

/* A kernel beside what gives the expected outputs, which begin at memory + GUARD. */
#define TRY(isa, name, expect, ...) \
    memset(memory, 0x5a, sizeof(memory)); \
    expect; \
    mur_##isa##_##name(__VA_ARGS__, memory + MOST + GUARD); \
    if (memcmp(memory, memory + MOST, MOST) != 0) { \
        wrong++; \
        *last = #isa "_" #name; \
    }
#define TRY_BESIDE_REF(isa, name, ...) \
    TRY(isa, name, mur_ref_##name(__VA_ARGS__, memory + GUARD), __VA_ARGS__)
#define TRY_max_pool_s8(isa) TRY_BESIDE_REF(isa, max_pool_s8, &pool, input)
#define TRY_average_pool_s8(isa) TRY_BESIDE_REF(isa, average_pool_s8, &pool, input)
#define TRY_max_pool_small_s8(isa) \
    TRY(isa, max_pool_small_s8, mur_ref_max_pool_s8(&pool, input, memory + GUARD), &pool, input)
#define TRY_average_pool_small_s8(isa) \
    if (mur_pool_is_small(&pool)) { \
        TRY(isa, average_pool_small_s8, mur_ref_average_pool_s8(&pool, input, memory + GUARD), \
            &pool, input) \
    }
#define TRY_add_s8(isa) TRY_BESIDE_REF(isa, add_s8, &add, input, input + MOST / 2)
#define TRY_line_s8(isa) \
    TRY(isa, line_s8, judge_line(&sum, input, input + MOST / 2, memory + GUARD), &sum, input, \
        input + MOST / 2)
#define TRY_mul_s8(isa) \
    TRY(isa, mul_s8, judge_mul(&product, input, input + MOST / 2, memory + GUARD), &product, \
        input, input + MOST / 2)
#define TRY_mean_s8(isa) TRY(isa, mean_s8, judge_mean(&mean, input, memory + GUARD), &mean, input)
/* those of rows are nn_row_cases.c's */
#define TRY_softmax_s8(isa)
#define TRY_softmax_exps_s8(isa)
#define TRY_log_softmax_s8(isa)
#define TRY_norm_s8(isa)

#define TRY_CONV(isa, name)
#define TRY_PRODUCT(isa, name)
#define TRY_UNARY(isa, name) TRY_##name(isa)
#define TRY_BINARY(isa, name) TRY_##name(isa)

uint32_t nn_check_others(uint32_t rounds, const char **last)
{
    uint32_t wrong = 0;

    state = 1;
    while (rounds-- != 0) {
        mur_pool_s8 pool;
        mur_add_s8 add, sum;
        mur_mul_s8 product;
        mur_mean_s8 mean;

        draw_pool(&pool);
        draw_add(&add);
        draw_sum(&sum);
        draw_mul(&product);
        draw_mean(&mean);
        for (int32_t i = 0; i < MOST; i++)
            input[i] = (int8_t)draw();
#define MUR_NN(isa, name, kind, descriptor) TRY_##kind(isa, name)
#include "mur_nn.def"
#undef MUR_NN
    }
    return wrong;
}

/* ---- products of two computed matrices ---- */

typedef struct product {
    const char *name;
    void (*run)(const mur_matmul_s8 *, const void *, const void *, void *, void *);
    size_t (*scratch_bytes)(const mur_matmul_s8 *);
} product;

#define PRODUCT_CONV(isa, name)
#define PRODUCT_UNARY(isa, name)
#define PRODUCT_BINARY(isa, name)
#define PRODUCT_PRODUCT(isa, name) \
    { #isa "_" #name, mur_##isa##_##name, mur_##isa##_##name##_scratch_bytes },
static const product products[] = {
#define MUR_NN(isa, name, kind, descriptor) PRODUCT_##kind(isa, name)
#include "mur_nn.def"
#undef MUR_NN
};

static int8_t expected[1 << 12];

static void draw_product(mur_matmul_s8 *l)
{
    int32_t bits = 8;

    memset(l, 0, sizeof(*l));
    l->rows = chance(4) ? 1 : between(1, chance(4) ? 30 : 9);
    l->columns = between(1, chance(3) ? 70 : 9);
    l->depth = between(1, chance(3) ? 200 : 20);
    l->a_pitch = l->depth + (chance(3) ? between(1, 5) : 0);
    l->b_row = l->b_column = 1;
    if (chance(2))
        l->b_row = l->columns + (chance(3) ? between(1, 5) : 0);
    else
        l->b_column = l->depth + (chance(3) ? between(1, 5) : 0);
    l->out_pitch = l->columns + (chance(3) ? between(1, 5) : 0);
    l->a_flip = chance(3) ? 0x80 : 0;
    l->b_flip = chance(3) ? 0x80 : 0;
    l->out_flip = chance(3) ? 0x80 : 0;
    l->a_zero = (int8_t)(chance(3) ? 0 : chance(3) ? -128 : between(-128, 127));
    l->b_zero = (int8_t)(chance(3) ? 0 : chance(3) ? -128 : between(-128, 127));
    while (l->depth >> (2 * (bits - 8)) != 0)
        bits++;
    l->output.kind = chance(3) ? MUR_REQUANT_SHIFT : MUR_REQUANT_Q31;
    l->output.min = (int8_t)(chance(2) ? -128 : between(-128, 0));
    l->output.max = (int8_t)(chance(2) ? 127 : between(0, 127));
    l->mul = (int32_t)(draw() >> 2 | 1u << 30);
    l->shift = chance(20) ? between(-31, 3) : between(-bits - 2, -bits + 3);
    l->output.zero = (int8_t)between(-128, 127);
    if (l->output.kind != MUR_REQUANT_SHIFT)
        return;
    l->output.zero = 0;
    l->output.shift = (uint8_t)(chance(8) ? between(0, 40) : bits + 4);
    l->mul = between(chance(4) ? -2000 : 1, 4000);
    l->add = (int64_t)between(-1000000, 1000000) * (chance(8) ? 1 << 20 : 1);
}

/* a number in the byte at p, and its zero point, as the world knows them */
static int32_t number(const uint8_t *p, uint8_t flip)
{
    return flip ? *p : (int8_t)*p;
}

static int32_t zero_point(int8_t zero, uint8_t flip)
{
    return flip ? zero + 128 : zero;
}

static void judge_product(const mur_matmul_s8 *l, const uint8_t *a, const uint8_t *b)
{
    const mur_conv_s8 like = { .output = l->output };

    for (int32_t i = 0; i < l->rows; i++)
        for (int32_t j = 0; j < l->columns; j++) {
            int64_t sum = 0, y;

            for (int32_t k = 0; k < l->depth; k++)
                sum +=
                    (number(a + i * l->a_pitch + k, l->a_flip) - zero_point(l->a_zero, l->a_flip)) *
                    (number(b + k * l->b_row + j * l->b_column, l->b_flip) -
                     zero_point(l->b_zero, l->b_flip));
            if (l->output.kind == MUR_REQUANT_SHIFT) {
                y = floor_divide(sum * l->mul + l->add, power(l->output.shift));
                y = y < l->output.min ? l->output.min : y > l->output.max ? l->output.max : y;
            } else {
                mul[0] = l->mul;
                shift[0] = l->shift;
                y = judge_requant(&like, sum, 0);
            }
            expected[i * l->out_pitch + j] = (int8_t)(l->out_flip ? (uint8_t)(y + 128) : y);
        }
}

static int is_product_right(const product *kernel, const mur_matmul_s8 *l)
{
    const int8_t *out = memory + GUARD;
    int32_t bytes = (l->rows - 1) * l->out_pitch + l->columns;
    size_t scratch_bytes = kernel->scratch_bytes(l);

    memset(memory, 0x5a, sizeof(memory));
    memset(work, 0x5a, sizeof(work));
    kernel->run(l, input, weights, memory + GUARD, work);
    for (int32_t i = -GUARD; i < bytes + GUARD; i++) {
        int inside = i >= 0 && i < bytes && i % l->out_pitch < l->columns;

        if (out[i] != (inside ? expected[i] : 0x5a))
            return 0;
    }
    for (size_t i = 0; i < GUARD; i++)
        if (work[scratch_bytes + i] != 0x5a)
            return 0;
    return 1;
}

uint32_t nn_check_products(uint32_t rounds, const char **name)
{
    uint32_t wrong = 0;
    mur_matmul_s8 l;

    state = 1;
    while (rounds-- != 0) {
        int32_t large = chance(4);

        draw_product(&l);
        for (int32_t i = 0; i < MOST; i++) {
            input[i] = (int8_t)(large && chance(2) ? -128 : (int32_t)draw());
            weights[i] = (int8_t)(large && chance(2) ? chance(4) ? 127 : -128 : (int32_t)draw());
        }
        judge_product(&l, (const uint8_t *)input, (const uint8_t *)weights);
        for (size_t i = 0; i < sizeof(products) / sizeof(*products); i++)
            if (!is_product_right(&products[i], &l)) {
                wrong++;
                *name = products[i].name;
            }
    }
    return wrong;
}

/* mur_mve_depthwise.c - depthwise convolutions, eight channels at a time.
 *
 * The input rows that an output row touches lie in a ring in scratch, borders and all: so outputs
 * may overwrite inputs, and every window is inside. Products are added in int16 by pairs. */
#include "mur_mve.h"

/* one row of outputs */
typedef struct depthwise_row {
    const int8_t *rows[MUR_MVE_ROWS]; /* of the ring, from the first window's first on */
    const mur_conv_s8 *layer;
    int8_t *out;
} depthwise_row;

#if MUR_HAVE_MVE

typedef struct eight_sums {
    int32x4_t even, odd;
} eight_sums;

/* Products at x with weights w[wx..], and at y with w[wy..], of two such pairs by turns, so that
 * loads and sums overlap: left to itself, GCC spills vectors. */
#define ADD_FOUR(sums, x, y, x2, y2, w, wx, wy, wx2, wy2) \
    __asm__("vldrb.s16 q0, [%2]\n" \
            "vldrb.s16 q1, [%6, %7]\n" \
            "vldrb.s16 q2, [%3]\n" \
            "vmul.i16 q0, q0, q1\n" \
            "vldrb.s16 q3, [%6, %8]\n" \
            "vmul.i16 q2, q2, q3\n" \
            "vldrb.s16 q1, [%4]\n" \
            "vadd.i16 q0, q0, q2\n" \
            "vldrb.s16 q3, [%6, %9]\n" \
            "vmovlb.s16 q2, q0\n" \
            "vmul.i16 q1, q1, q3\n" \
            "vadd.i32 %q0, %q0, q2\n" \
            "vldrb.s16 q3, [%5]\n" \
            "vmovlt.s16 q0, q0\n" \
            "vldrb.s16 q2, [%6, %10]\n" \
            "vadd.i32 %q1, %q1, q0\n" \
            "vmul.i16 q3, q3, q2\n" \
            "vadd.i16 q1, q1, q3\n" \
            "vmovlb.s16 q2, q1\n" \
            "vmovlt.s16 q1, q1\n" \
            "vadd.i32 %q0, %q0, q2\n" \
            "vadd.i32 %q1, %q1, q1\n" \
            : "+w"((sums).even), "+w"((sums).odd) \
            : "l"(x), "l"(y), "l"(x2), "l"(y2), "l"(w), "i"(wx), "i"(wy), "i"(wx2), "i"(wy2) \
            : "q0", "q1", "q2", "q3", "memory")

/* of one such pair */
#define ADD_TWO(sums, x, y, w, wx, wy) \
    __asm__("vldrb.s16 q0, [%2]\n" \
            "vldrb.s16 q1, [%4, %5]\n" \
            "vldrb.s16 q2, [%3]\n" \
            "vmul.i16 q0, q0, q1\n" \
            "vldrb.s16 q3, [%4, %6]\n" \
            "vmul.i16 q2, q2, q3\n" \
            "vadd.i16 q0, q0, q2\n" \
            "vmovlb.s16 q1, q0\n" \
            "vmovlt.s16 q0, q0\n" \
            "vadd.i32 %q0, %q0, q1\n" \
            "vadd.i32 %q1, %q1, q0\n" \
            : "+w"((sums).even), "+w"((sums).odd) \
            : "l"(x), "l"(y), "l"(w), "i"(wx), "i"(wy) \
            : "q0", "q1", "q2", "q3", "memory")

#define ADD_ONE(sums, x, w, wx) \
    __asm__("vldrb.s16 q0, [%2]\n" \
            "vldrb.s16 q1, [%3, %4]\n" \
            "vmul.i16 q0, q0, q1\n" \
            "vmovlb.s16 q1, q0\n" \
            "vmovlt.s16 q0, q0\n" \
            "vadd.i32 %q0, %q0, q1\n" \
            "vadd.i32 %q1, %q1, q0\n" \
            : "+w"((sums).even), "+w"((sums).odd) \
            : "l"(x), "l"(w), "i"(wx) \
            : "q0", "q1", "memory")

/* Eight channels of the window that begins `at` bytes into the rows; inlined for constant kernels.
 * Bytes of x behind the last channel meet weights of 0. */
static inline __attribute__((always_inline)) eight_sums
sum_window(const depthwise_row *row, int32_t at, const mur_mve_four *four, int32_t kernel_w)
{
    const int8_t *w = (const int8_t *)(four + 2);
    eight_sums sums = { vldrwq_s32(four[0].bias), vldrwq_s32(four[1].bias) };
    int32_t step = row->layer->shape.in_c;

    for (int32_t i = 0; i < row->layer->shape.kernel_h; i++) {
        const int8_t *x = row->rows[i] + at;
        int32_t left = kernel_w;

        for (; left >= 4; left -= 4, x += 4 * step, w += 32)
            ADD_FOUR(sums, x, x + step, x + 2 * step, x + 3 * step, w, 0, 8, 16, 24);
        if (left >= 2) {
            ADD_TWO(sums, x, x + step, w, 0, 8);
            left -= 2, x += 2 * step, w += 16;
        }
        if (left > 0) {
            ADD_ONE(sums, x, w, 0);
            w += 8;
        }
    }
    return sums;
}

/* the same, pairs across rows too */
static inline eight_sums sum_3x3(const depthwise_row *row, int32_t at, const mur_mve_four *four)
{
    const int8_t *w = (const int8_t *)(four + 2);
    const int8_t *a = row->rows[0] + at, *b = row->rows[1] + at, *c = row->rows[2] + at;
    eight_sums sums = { vldrwq_s32(four[0].bias), vldrwq_s32(four[1].bias) };
    int32_t step = row->layer->shape.in_c;

    ADD_FOUR(sums, a, b, c, a + step, w, 0, 24, 48, 8);
    a += 2 * step, b += step, c += step;
    ADD_FOUR(sums, b, c, a, b + step, w, 32, 56, 16, 40);
    ADD_ONE(sums, c + step, w, 64);
    return sums;
}

/* of one column, pairs of rows */
static inline eight_sums sum_column(const depthwise_row *row, int32_t at, const mur_mve_four *four)
{
    const int8_t *w = (const int8_t *)(four + 2);
    const int8_t *const *rows = row->rows;
    eight_sums sums = { vldrwq_s32(four[0].bias), vldrwq_s32(four[1].bias) };
    int32_t left = row->layer->shape.kernel_h;

    for (; left >= 2; left -= 2, rows += 2, w += 16)
        ADD_TWO(sums, rows[0] + at, rows[1] + at, w, 0, 8);
    if (left > 0)
        ADD_ONE(sums, rows[0] + at, w, 0);
    return sums;
}

static inline eight_sums sum_any(const depthwise_row *row, int32_t at, const mur_mve_four *four)
{
    const mur_conv_shape *shape = &row->layer->shape;

    if (shape->kernel_w == 3 && shape->kernel_h == 3)
        return sum_3x3(row, at, four);
    switch (shape->kernel_w) {
    case 1:
        return sum_column(row, at, four);
    case 3:
        return sum_window(row, at, four, 3);
    case 5:
        return sum_window(row, at, four, 5);
    case 7:
        return sum_window(row, at, four, 7);
    default:
        return sum_window(row, at, four, shape->kernel_w);
    }
}

/* eight channels from `first` on */
static void run_eight(const depthwise_row *row, int32_t first, const mur_mve_four *four)
{
    const mur_conv_s8 *layer = row->layer;
    mve_pred16_t some = vctp16q((uint32_t)(layer->shape.out_c - first));
    mur_mve_clamp clamp = mur_mve_clamp_of(&layer->output);
    int32_t at = first;
    int8_t *to = row->out + first;

    for (int32_t x = layer->shape.out_w; x > 0; x--, to += layer->shape.out_c) {
        eight_sums sums = sum_any(row, at, four);

        sums.even = mur_mve_output(sums.even, &four[0], &clamp);
        sums.odd = mur_mve_output(sums.odd, &four[1], &clamp);
        vstrbq_p_s16(to, vmovntq_s32(vreinterpretq_s16_s32(sums.even), sums.odd), some);
        at += layer->shape.stride_w * layer->shape.in_c;
    }
}

#else

static int8_t run_one(const depthwise_row *row, int32_t at, int32_t i, const mur_mve_four *four)
{
    const mur_conv_s8 *layer = row->layer;
    const int8_t *w = (const int8_t *)(four + 2) + i;
    int32_t sum = four[i & 1].bias[i >> 1];

    for (int32_t r = 0; r < layer->shape.kernel_h; r++)
        for (int32_t j = 0; j < layer->shape.kernel_w; j++, w += 8)
            sum += row->rows[r][at + j * layer->shape.in_c + i] * *w;
    return mur_mve_output(sum, &four[i & 1], i >> 1, &layer->output);
}

static void run_eight(const depthwise_row *row, int32_t first, const mur_mve_four *four)
{
    const mur_conv_s8 *layer = row->layer;

    for (int32_t x = 0; x < layer->shape.out_w; x++)
        for (int32_t i = 0; i < 8 && first + i < layer->shape.out_c; i++)
            row->out[x * layer->shape.out_c + first + i] =
                run_one(row, x * layer->shape.stride_w * layer->shape.in_c + first, i, four);
}

#endif

/* row `y` of the input, with its borders */
static void copy_row(const mur_conv_s8 *layer, const int8_t *in, int32_t y, int8_t *to)
{
    int32_t bytes = mur_mve_row_bytes(layer), before = layer->shape.pad_left * layer->shape.in_c;
    int32_t inside = mur_clamp(layer->shape.in_w * layer->shape.in_c, 0, bytes - before);

    if (y < 0 || y >= layer->shape.in_h) {
        mur_mve_fill(to, layer->in_zero, bytes);
        return;
    }
    mur_mve_fill(to, layer->in_zero, before);
    mur_mve_copy(to + before, in + y * layer->shape.in_pitch, inside);
    mur_mve_fill(to + before + inside, layer->in_zero, bytes - before - inside);
}

void mur_mve_depthwise_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    int32_t pitch = mur_mve_row_bytes(layer), kernel_h = layer->shape.kernel_h;
    int32_t copied = 0; /* rows from -pad_top on */
    int32_t in_place = mur_mve_rows_in_place(layer);
    int32_t eight = (int32_t)sizeof(mur_mve_four) * 2 + kernel_h * layer->shape.kernel_w * 8;
    int8_t *ring = scratch;
    depthwise_row row;

    row.layer = layer;
    for (int32_t y = 0; y < layer->shape.out_h; y++) {
        const uint8_t *packed = layer->packed;
        int32_t top = y * layer->shape.stride_h;

        if (in_place) {
            row.rows[0] = in + top * layer->shape.in_pitch;
        } else {
            for (copied = copied < top ? top : copied; copied < top + kernel_h; copied++)
                copy_row(layer, in, copied - layer->shape.pad_top,
                         ring + copied % kernel_h * pitch);
            for (int32_t i = 0; i < kernel_h; i++)
                row.rows[i] = ring + (top + i) % kernel_h * pitch;
        }
        row.out = out + y * layer->shape.out_pitch;
        for (int32_t c = 0; c < layer->shape.out_c; c += 8, packed += eight)
            run_eight(&row, c, (const void *)packed);
    }
}

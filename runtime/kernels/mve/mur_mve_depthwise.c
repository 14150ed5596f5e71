/* mur_mve_depthwise.c - depthwise convolutions, a channel's outputs four at a time.
 *
 * Eight channels at a time, the rows that an output row touches lie in scratch as one plane a
 * channel, column by column, borders and all: a window is one run of bytes, and outputs may
 * overwrite inputs. Byte n of a column is row n: the next row of windows begins one byte further,
 * so row n + kernel_h of a column takes the place of row n of the next. */
#include "mur_mve.h"

/* eight channels of a layer */
typedef struct depthwise_job {
    const mur_conv_s8 *layer;
    mur_mve_line line;
    int8_t *planes;
    mur_mve_short *shorts; /* of channels, if windows are short */
    int32_t first;         /* row that is byte 0 of the first column */
    int32_t inputs;        /* channels of the input, up to eight */
    int32_t channels;      /* of the output */
    const struct depthwise_four *fours,
        *rest;                   /* if windows are short: of rows together, and last */
    uint16_t at[MUR_MVE_PLANES]; /* where their planes begin */
    uint8_t tap[MUR_MVE_BYTES];  /* of each byte of a spread channel, and which are: bits */
    uint32_t is_tap;
    const mur_mve_channel *channel;
    const int8_t *w;
    void (*others)(const struct depthwise_job *job, int32_t c, int32_t top, int8_t *out);
} depthwise_job;

#if MUR_HAVE_MVE

/* what rows are put by */
typedef struct depthwise_put {
    uint16x8_t places; /* of all channels */
    int16x8_t zeros;
    int32_t rows;
} depthwise_put;

static inline depthwise_put put_of(const depthwise_job *job)
{
    depthwise_put by = { vldrhq_u16(job->at), vdupq_n_s16(job->layer->in_zero), job->line.rows };

    return by;
}

/* `count` pixels, `step` apart, to byte 0 of the columns from x on */
static inline __attribute__((always_inline)) void put_pixels(const depthwise_put *by,
                                                             int32_t inputs, int8_t *x,
                                                             const int8_t *from, int32_t step,
                                                             int32_t count)
{
    if (count > 0 && inputs == MUR_MVE_PLANES)
        __asm__ volatile("dls lr, %4\n"
                         "1: vldrb.u16 q0, [%1]\n"
                         "add %1, %1, %2\n"
                         "vstrb.16 q0, [%0, %q5]\n"
                         "add %0, %0, %3\n"
                         "le lr, 1b\n"
                         : "+r"(x), "+l"(from)
                         : "r"(step), "r"(by->rows), "r"(count), "w"(by->places)
                         : "lr", "q0", "memory");
    else if (count > 0)
        __asm__ volatile("vctp.16 %4\n"
                         "dls lr, %5\n"
                         "1: vpstt\n"
                         "vldrbt.u16 q0, [%1]\n"
                         "vstrbt.16 q0, [%0, %q6]\n"
                         "add %1, %1, %2\n"
                         "add %0, %0, %3\n"
                         "le lr, 1b\n"
                         : "+r"(x), "+l"(from)
                         : "r"(step), "r"(by->rows), "r"(inputs), "r"(count), "w"(by->places)
                         : "lr", "q0", "p0", "memory");
}

/* as many of in_zero */
static inline __attribute__((always_inline)) void put_zeros(const depthwise_put *by, int32_t inputs,
                                                            int8_t *x, int32_t count)
{
    if (count > 0 && inputs == MUR_MVE_PLANES)
        __asm__ volatile("dls lr, %2\n"
                         "1: vstrb.16 %q4, [%0, %q3]\n"
                         "add %0, %0, %1\n"
                         "le lr, 1b\n"
                         : "+r"(x)
                         : "r"(by->rows), "r"(count), "w"(by->places), "w"(by->zeros)
                         : "lr", "memory");
    else if (count > 0)
        __asm__ volatile("vctp.16 %2\n"
                         "dls lr, %3\n"
                         "1: vpst\n"
                         "vstrbt.16 %q5, [%0, %q4]\n"
                         "add %0, %0, %1\n"
                         "le lr, 1b\n"
                         : "+r"(x)
                         : "r"(by->rows), "r"(inputs), "r"(count), "w"(by->places), "w"(by->zeros)
                         : "lr", "p0", "memory");
}

/* where four windows lie in a plane, and their outputs */
typedef struct depthwise_four {
    int32_t x, steps[3], next;
    uint32_t at[4];
} depthwise_four;

/* clang-format off */
#define DEPTHWISE_FIRST "vmladav.s8 r0, q0, q1\n" /* a channel's sum of its first window */

/* The sums of the others, of which the second and the weights are loaded. */
#define DEPTHWISE_SUMS \
    "vmladav.s8 r2, q0, q2\n" \
    "vldrb.8 q1, [%2]\n" \
    "vmladav.s8 r4, q0, q1\n" \
    "add %2, %2, %6\n" \
    "vldrb.8 q2, [%2]\n" \
    "vmladav.s8 r6, q0, q2\n"

/* Scales them to vector a, before zero point and clamp, and begins the next channel's. */
#define DEPTHWISE_SCALE(a) \
    "vmov " a "[2], " a "[0], r0, r4\n" \
    "vmov " a "[3], " a "[1], r2, r6\n" \
    "ldm %3!, {r0, r2, r4, r6}\n" \
    "add %2, %2, %7\n" \
    "vldrb.8 q1, [%2]\n" \
    "vadd.i32 " a ", " a ", r0\n" \
    "vqrdmulh.s32 " a ", " a ", r2\n" \
    "add %2, %2, %4\n" \
    "vldrb.8 q2, [%2]\n" \
    "vqdmlah.s32 " a ", " a ", r6\n" \
    "vldrb.8 q0, [%3], #16\n" \
    DEPTHWISE_FIRST \
    "vrshl.s32 " a ", r4\n" \
    "add %2, %2, %5\n"

/* Outputs [4 pixels][4 channels] of windows of a vector each, whose first lies at *x; goes on to the
 * next four channels. */
static inline __attribute__((always_inline)) int8x16_t
run_block(const depthwise_four *four, const int8_t **x, const mur_mve_short **channel,
          const mur_output_s8 *to)
{
    const int8_t *zero_min_max = &to->zero;
    int8x16_t y, b;

    __asm__ volatile(
        "vldrb.8 q1, [%2]\n"
        "add %2, %2, %4\n"
        "vldrb.8 q0, [%3], #16\n"
        DEPTHWISE_FIRST
        "vldrb.8 q2, [%2]\n"
        "add %2, %2, %5\n"
        DEPTHWISE_SUMS
        DEPTHWISE_SCALE("%q0")
        DEPTHWISE_SUMS
        DEPTHWISE_SCALE("%q1")
        DEPTHWISE_SUMS
        DEPTHWISE_SCALE("q3")
        "vqmovnb.s32 %q0, %q0\n"
        "vqmovnt.s32 %q0, q3\n"
        DEPTHWISE_SUMS
        "vmov q3[2], q3[0], r0, r4\n"
        "vmov q3[3], q3[1], r2, r6\n"
        "ldm %3!, {r0, r2, r4, r6}\n"
        "add %2, %2, %7\n"
        "vadd.i32 q3, q3, r0\n"
        "vqrdmulh.s32 q3, q3, r2\n"
        "vqmovnb.s32 %q1, %q1\n"
        "vqdmlah.s32 q3, q3, r6\n"
        "ldrsb r0, [%8]\n"
        "vrshl.s32 q3, r4\n"
        "ldrsb r6, [%8, #2]\n"
        "vqadd.s16 %q0, %q0, r0\n"
        "vqmovnt.s32 %q1, q3\n"
        "ldrsb r2, [%8, #1]\n"
        "vqmovnb.s16 %q0, %q0\n"
        "vqadd.s16 %q1, %q1, r0\n"
        "vdup.8 q3, r6\n"
        "vqmovnt.s16 %q0, %q1\n"
        "vdup.8 q2, r2\n"
        "vmax.s8 %q0, %q0, q2\n"
        "vmin.s8 %q0, %q0, q3\n"
        : "=&w"(y), "=&w"(b), "+r"(*x), "+r"(*channel)
        : "r"(four->steps[0]), "r"(four->steps[1]), "r"(four->steps[2]), "r"(four->next),
          "r"(zero_min_max)
        : "r0", "r2", "r4", "r6", "q0", "q1", "q2", "q3", "memory");
    return y;
}

#undef DEPTHWISE_FIRST
#undef DEPTHWISE_SUMS
#undef DEPTHWISE_SCALE
/* clang-format on */

enum { FOURS = MUR_MVE_TOGETHER / 4 };

/* The outputs of `rows` rows by fours, the last four ending with the last output; of one row the
 * first four alone. */
static void place_fours(const mur_mve_line *line, int32_t rows, depthwise_four *four)
{
    int32_t outputs = rows * line->s->out_w, start = 0;

    do {
        int32_t at[4];

        for (int32_t i = 0; i < 4; i++) {
            int32_t output = start + i < outputs ? start + i : outputs - 1;
            int32_t row = output / line->s->out_w, column = output - row * line->s->out_w;

            at[i] = column * line->s->stride_w * line->rows + row * line->s->stride_h;
            four->at[i] = (uint32_t)(row * line->s->out_pitch + column * line->s->out_c);
        }
        for (int32_t i = 0; i < 3; i++)
            four->steps[i] = at[i + 1] - at[i];
        four->x = at[0];
        four->next = line->plane - at[3] + at[0];
        four++;
        start = start + 8 > outputs && start + 4 < outputs ? outputs - 4 : start + 4;
    } while (rows > 1 && start < outputs);
}

/* four channels of four pixels, anywhere: no part of a loop whose registers it would take */
static __attribute__((noinline)) void store_anywhere(int8_t *out, const uint32_t *at, int8x16_t y)
{
    mur_mve_store_words(out, at, y);
}

static inline void store_block(int8_t *out, const depthwise_four *four, int8x16_t y,
                               int32_t aligned)
{
    uint32x4_t at = vldrwq_u32(four->at);

    if (aligned)
        vstrwq_scatter_offset_s32((int32_t *)(void *)out, at, vreinterpretq_s32_s8(y));
    else
        store_anywhere(out, four->at, y);
}

/* Channels by fours of `rows` rows of short windows, whose first begins with row `top`; returns how
 * many. Loads ahead of the asm would take its registers. */
static __attribute__((noinline, optimize("O2", "no-schedule-insns"))) int32_t
run_blocks(const depthwise_job *job, const depthwise_four *four, int32_t rows, int32_t top,
           int8_t *out)
{
    const mur_mve_line *line = &job->line;
    const mur_output_s8 *to = &job->layer->output;
    int32_t outputs = rows * line->s->out_w, channels = job->channels & ~3;
    int32_t odd = outputs > 4 && outputs % 4 > 0 ? outputs % 4 : 4;
    int32_t aligned =
        (((uint32_t)line->s->out_pitch | (uint32_t)line->s->out_c | (uintptr_t)out) & 3) == 0;
    const int8_t *x = job->planes + top - job->first;

    for (int32_t left = channels > 0 ? outputs : 0; left > 0; left -= 4) {
        const int8_t *from = x + four->x;
        const mur_mve_short *channel = job->shorts;
        int8_t *end = out + channels;

        for (int8_t *y = out; y != end; y += 4)
            store_block(y, four, run_block(four, &from, &channel, to), aligned);
        if (rows > 1) {
            four++;
        } else {
            x += odd * line->s->stride_w * line->rows;
            out += odd * line->s->out_c;
            odd = 4;
        }
    }
    return channels;
}

/* how weights are spread, column by column of the planes' rows */
static __attribute__((noinline, cold)) void place_taps(depthwise_job *job)
{
    const mur_mve_line *line = &job->line;

    job->is_tap = 0;
    for (int32_t i = 0, column = 0, row = 0; i < MUR_MVE_BYTES; i++) {
        int32_t is_tap = row < line->s->kernel_h && column < line->s->kernel_w;

        job->tap[i] = (uint8_t)(is_tap ? column * line->s->kernel_h + row : 0);
        job->is_tap |= (uint32_t)is_tap << i;
        if (++row == line->rows)
            row = 0, column++;
    }
}

static void spread_channels(const depthwise_job *job)
{
    const uint8x16_t at = vldrbq_u8(job->tap);
    const mur_mve_channel *channel = job->channel;
    const int8_t *w = job->w;
    mur_mve_short *to = job->shorts;

    __asm__ volatile("vmsr p0, %6\n"
                     "dls lr, %3\n"
                     "1: vpst\n"
                     "vldrbt.u8 q0, [%0, %q5]\n"
                     "add %0, %0, %4\n"
                     "ldm %1!, {r0, r2}\n"
                     "ldrsb r4, [%0, #-1]\n"
                     "vstrb.8 q0, [%2], #16\n"
                     "lsr r6, r4, #31\n"
                     "stm %2!, {r0, r2, r4, r6}\n"
                     "le lr, 1b\n"
                     : "+r"(w), "+r"(channel), "+r"(to)
                     : "r"(job->channels), "r"(job->line.s->kernel_h * job->line.s->kernel_w + 1),
                       "w"(at), "r"(job->is_tap)
                     : "lr", "r0", "r2", "r4", "r6", "q0", "p0", "memory");
}

/* a row of one channel */
typedef struct depthwise_row {
    const int8_t *x; /* the first window */
    const int8_t *w;
    mur_mve_channel channel;
    int32_t shift;
    const mur_output_s8 *to;
    uint32x4_t at; /* of four outputs */
    mve_pred16_t some;
    int32_t steps, rest;      /* vectors of a window; inputs of the last one */
    int32_t fours;            /* of outputs */
    int32_t next, next_out;   /* from the first four to the second */
    int32_t after, after_out; /* and from there on */
} depthwise_row;

static inline __attribute__((always_inline)) void
store_four(const depthwise_row *row, int32_t a, int32_t b, int32_t c, int32_t d, int8_t *out)
{
    int32x4_t sums;

    __asm__("vmov %q0[2], %q0[0], %1, %3\n"
            "vmov %q0[3], %q0[1], %2, %4\n"
            : "=w"(sums)
            : "r"(a), "r"(b), "r"(c), "r"(d));
    sums = vaddq_n_s32(mur_mve_scale_channel(sums, &row->channel, row->shift), row->to->zero);
    sums = vminq_s32(vmaxq_s32(sums, vdupq_n_s32(row->to->min)), vdupq_n_s32(row->to->max));
    vstrbq_scatter_offset_p_s32(out, row->at, sums, row->some);
}

/* windows of any size */
static void run_long(const depthwise_row *row, int8_t *out, int32_t step)
{
    const int8_t *x = row->x;
    int32_t next = row->next, next_out = row->next_out;

    for (int32_t left = row->fours; left > 0; left--) {
        const int8_t *x0 = x, *x1 = x + step, *x2 = x1 + step, *x3 = x2 + step, *w = row->w;
        int32_t a = 0, b = 0, c = 0, d = 0;

        for (int32_t v = row->steps; v > 0; v--, x0 += 16, x1 += 16, x2 += 16, x3 += 16, w += 16) {
            int8x16_t y = v > 1 ? vldrbq_s8(w) : vldrbq_z_s8(w, vctp8q((uint32_t)row->rest));

            a = vmladavaq_s8(a, vldrbq_s8(x0), y);
            b = vmladavaq_s8(b, vldrbq_s8(x1), y);
            c = vmladavaq_s8(c, vldrbq_s8(x2), y);
            d = vmladavaq_s8(d, vldrbq_s8(x3), y);
        }
        store_four(row, a, b, c, d, out);
        x += next, out += next_out;
        next = row->after, next_out = row->after_out;
    }
}

/* Channels of four windows of more than a vector, in the order in which registers take them. */
typedef struct depthwise_wide {
    const int8_t *x, *w;
    const mur_mve_channel *channel;
    int8_t *out;
    int32_t step, next; /* from window to window; from the last to the next channel's first */
    int32_t next_w;
    uint32_t inputs, outputs; /* predicates: of the last vector, and of the four */
    int32_t zero;
    const int8_t *end; /* of out */
    uint32_t at[4];
    int32_t min, max;
} depthwise_wide;

/* clang-format off */
/* The sum of a window of two vectors or of four, of which the first two are loaded, and after `step`
 * the first two of the next window. */
#define WIDE_SUM_2(sum, step, next, next_16) \
    "vmladav.s8 " sum ", q0, q4\n" \
    step next \
    "vmladava.s8 " sum ", q1, q5\n" \
    next_16

#define WIDE_SUM_4(sum, step, next, next_16) \
    "vmladav.s8 " sum ", q0, q4\n" \
    "vldrb.8 q4, [r1, #32]\n" \
    "vmladava.s8 " sum ", q1, q5\n" \
    "vldrb.8 q5, [r1, #48]\n" \
    "vmladava.s8 " sum ", q2, q4\n" \
    step next \
    "vmladava.s8 " sum ", q3, q5\n" \
    next_16

#define WIDE_FIRST "vldrb.8 q4, [r1]\n"
#define WIDE_SECOND "vldrb.8 q5, [r1, #16]\n"

/* The weights of a channel are loaded by `weights`, the last of them, of its inputs alone, by `last`. A
 * function of its own, for all registers. */
#define WIDE_CHANNELS(sum, weights, last) \
    __asm__ volatile( \
        "push {r4-r11, lr}\n" \
        "vpush {d8-d15}\n" \
        "sub sp, #20\n" \
        "vldrw.u32 q0, [r0, #44]\n" \
        "ldrd r1, r2, [r0, #60]\n" \
        "ldr r3, [r0, #40]\n" \
        "vdup.32 q6, r1\n" \
        "vdup.32 q7, r2\n" \
        "vstrw.32 q0, [sp]\n" \
        "str r3, [sp, #16]\n" \
        "ldm r0, {r1, r3, r5, r7, r8, r9, r10, r11, r12, lr}\n" \
        "1:\n" \
        WIDE_FIRST \
        "vmsr p0, r11\n" \
        weights \
        "vpst\n" \
        last \
        WIDE_SECOND \
        "add r3, r3, r10\n" \
        sum("r0", "add r1, r1, r8\n", WIDE_FIRST, WIDE_SECOND) \
        sum("r2", "add r1, r1, r8\n", WIDE_FIRST, WIDE_SECOND) \
        sum("r4", "add r1, r1, r8\n", WIDE_FIRST, WIDE_SECOND) \
        sum("r6", "add r1, r1, r9\n", "vmsr p0, r12\n", "") \
        "vmov q0[2], q0[0], r0, r4\n" \
        "vmov q0[3], q0[1], r2, r6\n" \
        "ldm r5!, {r0, r2}\n" \
        "ldrsb r4, [r3, #-1]\n" \
        "vadd.i32 q0, q0, r0\n" \
        "lsr r6, r4, #31\n" \
        "vqrdmulh.s32 q0, q0, r2\n" \
        "ldr r0, [sp, #16]\n" \
        "vqdmlah.s32 q0, q0, r6\n" \
        "vldrw.u32 q1, [sp]\n" \
        "vrshl.s32 q0, r4\n" \
        "vadd.i32 q0, q0, lr\n" \
        "vmax.s32 q0, q0, q6\n" \
        "vmin.s32 q0, q0, q7\n" \
        "vpst\n" \
        "vstrbt.32 q0, [r7, q1]\n" \
        "add r7, r7, #1\n" \
        "cmp r7, r0\n" \
        "bne 1b\n" \
        "add sp, #20\n" \
        "vpop {d8-d15}\n" \
        "pop {r4-r11, pc}\n")

__attribute__((naked, noinline)) static void run_wide_2(const depthwise_wide *wide
                                                        __attribute__((unused)))
{
    WIDE_CHANNELS(WIDE_SUM_2, "vldrb.8 q0, [r3]\n", "vldrbt.u8 q1, [r3, #16]\n");
}

__attribute__((naked, noinline)) static void run_wide_4(const depthwise_wide *wide
                                                        __attribute__((unused)))
{
    WIDE_CHANNELS(WIDE_SUM_4, "vldrb.8 q0, [r3]\n" "vldrb.8 q1, [r3, #16]\n"
                  "vldrb.8 q2, [r3, #32]\n", "vldrbt.u8 q3, [r3, #48]\n");
}

#undef WIDE_SUM_2
#undef WIDE_SUM_4
#undef WIDE_FIRST
#undef WIDE_SECOND
#undef WIDE_CHANNELS
/* clang-format on */

/* the row of windows of two vectors or four that begins with row `top`, of all channels */
static void run_wide_row(const depthwise_job *job, int32_t top, int8_t *out)
{
    const mur_mve_line *line = &job->line;
    const mur_output_s8 *to = &job->layer->output;
    const int8_t *x = job->planes + top - job->first;
    const int32_t taps = line->s->kernel_h * line->s->kernel_w,
                  step = line->s->stride_w * line->rows;
    int32_t together = line->multiplier == 1 ? job->channels : 1; /* channels of a call */
    int32_t odd = line->s->out_w > 4 && line->s->out_w % 4 > 0 ? line->s->out_w % 4 : 4;
    depthwise_wide wide;

    wide.step = step, wide.next = line->plane - 3 * step;
    wide.next_w = taps + 1;
    wide.inputs = (1u << (taps - MUR_MVE_BYTES * (line->vectors - 1))) - 1;
    wide.outputs = vctp32q((uint32_t)line->s->out_w);
    wide.zero = to->zero, wide.min = to->min, wide.max = to->max;
    vstrwq_u32(wide.at, vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)line->s->out_c));
    for (int32_t left = line->s->out_w; left > 0; left -= 4) {
        for (int32_t c = 0; c < job->channels; c += together) {
            wide.x = x + c / line->multiplier * line->plane;
            wide.w = job->w + c * wide.next_w;
            wide.channel = job->channel + c;
            wide.out = out + c, wide.end = out + c + together;
            if (line->vectors == 2)
                run_wide_2(&wide);
            else
                run_wide_4(&wide);
        }
        x += odd * step;
        out += odd * line->s->out_c;
        odd = 4;
    }
}

/* the row of windows of any size that begins with row `top`, of channels from c on */
static __attribute__((noinline)) void run_long_row(const depthwise_job *job, int32_t c, int32_t top,
                                                   int8_t *out)
{
    const mur_mve_line *line = &job->line;
    int32_t taps = line->s->kernel_h * line->s->kernel_w, step = line->s->stride_w * line->rows;
    int32_t odd = line->s->out_w > 4 && line->s->out_w % 4 > 0 ? line->s->out_w % 4 : 4;
    depthwise_row row;

    row.to = &job->layer->output;
    row.at = vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)line->s->out_c);
    row.some = vctp32q((uint32_t)line->s->out_w);
    row.steps = (taps + MUR_MVE_BYTES - 1) / MUR_MVE_BYTES;
    row.rest = taps - (row.steps - 1) * MUR_MVE_BYTES;
    row.fours = (line->s->out_w + 3) / 4;
    row.next = odd * step, row.next_out = odd * line->s->out_c;
    row.after = 4 * step, row.after_out = 4 * line->s->out_c;
    for (; c < job->channels; c++) {
        row.x = job->planes + c / line->multiplier * line->plane + top - job->first;
        row.w = job->w + c * (taps + 1);
        row.channel = job->channel[c];
        row.shift = row.w[taps];
        run_long(&row, out + c, step);
    }
}

static void run_channels(const depthwise_job *job, int32_t c, int32_t top, int8_t *out)
{
    if (job->line.vectors > 1)
        run_wide_row(job, top, out);
    else
        run_long_row(job, c, top, out);
}

#else

typedef struct depthwise_put {
    const depthwise_job *job;
} depthwise_put;

static depthwise_put put_of(const depthwise_job *job)
{
    depthwise_put by = { job };

    return by;
}

static void put_pixels(const depthwise_put *by, int32_t inputs, int8_t *x, const int8_t *from,
                       int32_t step, int32_t count)
{
    for (int32_t i = 0; i < count; i++, x += by->job->line.rows)
        for (int32_t c = 0; c < inputs; c++)
            x[by->job->at[c]] = from[i * step + c];
}

static void put_zeros(const depthwise_put *by, int32_t inputs, int8_t *x, int32_t count)
{
    for (int32_t i = 0; i < count; i++, x += by->job->line.rows)
        for (int32_t c = 0; c < inputs; c++)
            x[by->job->at[c]] = by->job->layer->in_zero;
}

typedef struct depthwise_four {
    int32_t unused;
} depthwise_four;

enum { FOURS = 1 };

static void place_fours(const mur_mve_line *line, int32_t rows, depthwise_four *four)
{
    (void)line, (void)rows, (void)four;
}

static void place_taps(const depthwise_job *job)
{
    (void)job;
}

static void spread_channels(const depthwise_job *job)
{
    (void)job;
}

static void run_channels(const depthwise_job *job, int32_t c, int32_t top, int8_t *out)
{
    const mur_mve_line *line = &job->line;
    int32_t rows = line->s->kernel_h, taps = rows * line->s->kernel_w;

    for (; c < job->channels; c++)
        for (int32_t i = 0; i < line->s->out_w; i++) {
            const int8_t *x = job->planes + c / line->multiplier * line->plane + top - job->first +
                              i * line->s->stride_w * line->rows;
            const int8_t *w = job->w + c * (taps + 1);
            int32_t sum = job->channel[c].bias;

            for (int32_t k = 0; k < taps; k++)
                sum += x[k / rows * line->rows + k % rows] * w[k];
            out[i * line->s->out_c + c] =
                mur_requant(sum, job->channel[c].mul, w[taps], &job->layer->output);
        }
}

static int32_t run_blocks(const depthwise_job *job, const depthwise_four *four, int32_t rows,
                          int32_t top, int8_t *out)
{
    (void)four;
    for (; rows > 0; rows--, top += job->line.s->stride_h, out += job->line.s->out_pitch)
        run_channels(job, 0, top, out);
    return job->channels;
}

#endif

/* rows n.. of the input, with their borders */
static inline __attribute__((always_inline)) void put_rows_by(const depthwise_job *job,
                                                              const depthwise_put *by,
                                                              int32_t inputs, const int8_t *in,
                                                              int32_t n, int32_t end)
{
    const mur_mve_line *line = &job->line;
    int32_t width = line->width, pad = line->s->pad_left, in_h = line->s->in_h,
            row = line->s->in_pitch;
    int32_t inside = mur_clamp(line->s->in_w, 0, width - pad), step = line->s->in_c;
    int32_t before = pad * line->rows, after = before + inside * line->rows;

    for (int8_t *x = job->planes + n - job->first; n < end; n++, x++) {
        if (n < 0 || n >= in_h) {
            put_zeros(by, inputs, x, width);
            continue;
        }
        put_zeros(by, inputs, x, pad);
        put_pixels(by, inputs, x + before, in + n * row, step, inside);
        put_zeros(by, inputs, x + after, width - pad - inside);
    }
}

static MUR_MVE_OPTIMIZED void put_rows(const depthwise_job *job, const int8_t *in, int32_t n,
                                       int32_t end)
{
    const depthwise_put by = put_of(job);

    if (job->inputs == MUR_MVE_PLANES)
        put_rows_by(job, &by, MUR_MVE_PLANES, in, n, end);
    else
        put_rows_by(job, &by, job->inputs, in, n, end);
}

/* rows from `top` on come first in the planes */
static void move_planes(depthwise_job *job, int32_t top)
{
    for (int32_t c = 0; c < job->inputs; c++) {
        int8_t *plane = job->planes + c * job->line.plane;

        mur_mve_move_down(plane, plane + top - job->first, job->line.width * job->line.rows);
    }
    job->first = top;
}

/* `rows` rows of windows, of which the first begins with row `top`, of all channels */
static void run_windows(const depthwise_job *job, const depthwise_four *four, int32_t rows,
                        int32_t top, int8_t *out)
{
    const mur_mve_line *line = &job->line;
    int32_t c = line->vectors == 1 ? run_blocks(job, four, rows, top, out) : 0;

    for (; rows > 0 && c < job->channels;
         rows--, top += line->s->stride_h, out += line->s->out_pitch)
        job->others(job, c, top, out);
}

static void run_rows(depthwise_job *job, const int8_t *in, int8_t *out)
{
    const mur_mve_line *line = &job->line;
    int32_t copied = -line->s->pad_top; /* rows before */
    int32_t rows = line->together;

    job->first = copied;
    for (int32_t y = 0; y < line->s->out_h; y += rows, out += rows * line->s->out_pitch) {
        int32_t top = y * line->s->stride_h - line->s->pad_top, left = line->s->out_h - y;
        int32_t last =
            top + ((rows < left ? rows : left) - 1) * line->s->stride_h + line->s->kernel_h;

        if (top - job->first > MUR_MVE_SLACK)
            move_planes(job, top);
        put_rows(job, in, copied < top ? top : copied, last);
        copied = last;
        if (rows <= left)
            run_windows(job, job->fours, rows, top, out);
        else
            run_windows(job, job->rest, left, top, out);
    }
}

static __attribute__((noinline)) void
run(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch,
    void (*others)(const depthwise_job *job, int32_t c, int32_t top, int8_t *out))
{
    int32_t channels = layer->shape.in_c, taps = layer->shape.kernel_h * layer->shape.kernel_w;
    depthwise_four fours[2][FOURS];
    depthwise_job job;

    job.layer = layer;
    job.line = mur_mve_line_of(&layer->shape);
    job.shorts = scratch;
    job.planes = (int8_t *)(job.shorts + mur_mve_shorts(&layer->shape, &job.line));
    job.others = others;
    for (int32_t i = 0; i < MUR_MVE_PLANES; i++)
        job.at[i] = (uint16_t)(i * job.line.plane);
    job.channel = layer->packed;
    job.w = (const int8_t *)(job.channel + layer->shape.out_c);
    job.fours = fours[0];
    job.rest = fours[1];
    if (job.line.vectors == 1) {
        place_taps(&job);
        place_fours(&job.line, job.line.together, fours[0]);
        if (job.line.s->out_h % job.line.together > 0)
            place_fours(&job.line, job.line.s->out_h % job.line.together, fours[1]);
    }
    for (; channels > 0; channels -= job.inputs, in += job.inputs, out += job.channels) {
        job.inputs = channels < MUR_MVE_PLANES ? channels : MUR_MVE_PLANES;
        job.channels = job.inputs * job.line.multiplier;
        if (job.line.vectors == 1)
            spread_channels(&job);
        run_rows(&job, in, out);
        job.channel += job.channels;
        job.w += job.channels * (taps + 1);
    }
}

/* a row of its own for most layers, so that the rest is linked only where it is needed */
void mur_mve_depthwise_short_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out,
                                void *scratch)
{
    run(layer, in, out, scratch, NULL);
}

void mur_mve_depthwise_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    run(layer, in, out, scratch, run_channels);
}

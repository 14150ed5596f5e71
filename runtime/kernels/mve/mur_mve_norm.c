/* mur_mve_norm.c - norms of int8 rows, four elements at a time: see mur_norm.h. */
#include "mur_mve.h"
#include "mur_norm.h"

#if MUR_HAVE_MVE

/* what a row shares, by the sums of all elements and of their squares before the zero point is
 * taken off */
static __attribute__((noinline)) mur_norm_row finish_row(const mur_norm_s8 *layer, uint32_t sum,
                                                         uint32_t squares)
{
    const uint32_t n = (uint32_t)layer->columns, zero = (uint32_t)layer->in_zero;

    squares += zero * (n * zero - 2 * sum);
    return mur_norm_row_of(layer, (int32_t)(sum - n * zero), squares);
}

static mur_norm_row row_of(const mur_norm_s8 *layer, const int8_t *in)
{
    uint32_t sum = 0, squares = 0;

    for (int32_t run = layer->runs; run > 0; run--, in += layer->step) {
        const int8_t *x = in;

        __asm__ volatile("dlstp.8 lr, %3\n"
                         "1: vldrb.8 q0, [%0], #16\n"
                         "vaddva.s8 %1, q0\n"
                         "vmladava.s8 %2, q0, q0\n"
                         "letp lr, 1b\n"
                         : "+r"(x), "+Te"(sum), "+Te"(squares)
                         : "r"(layer->width)
                         : "lr", "q0", "memory");
    }
    return finish_row(layer, sum, squares);
}

/* the results of a run, by `loads` of four gains and biases or of one each */
#define NORM_RUN(loads) \
    __asm__ volatile("dlstp.32 lr, %6\n" \
                     "1: vldrb.s32 q0, [%0], #4\n" \
                     "vmlas.s32 q0, %q8, %7\n" loads "vmulh.s32 q0, q0, %q9\n" \
                     "vmulh.s32 q0, q0, %q4\n" \
                     "vshl.s32 q0, %10\n" \
                     "vadd.i32 q0, q0, %q5\n" \
                     "vshr.s32 q0, q0, #8\n" \
                     "vmax.s32 q0, q0, %q11\n" \
                     "vmin.s32 q0, q0, %q12\n" \
                     "vstrb.32 q0, [%1], #4\n" \
                     "letp lr, 1b\n" \
                     : "+l"(in), "+l"(out), "+r"(g), "+r"(b), "+w"(gain), "+w"(bias) \
                     : "r"(layer->width), "r"(-r->centre), "w"(step), "w"(inverse), "r"(by), \
                       "w"(least), "w"(most) \
                     : "lr", "q0", "memory")

static MUR_MVE_OPTIMIZED void put_row(const mur_norm_s8 *layer, const mur_norm_row *r,
                                      const int8_t *x, int8_t *y, const int32_t *gains,
                                      const int32_t *biases)
{
    const int32x4_t step = vdupq_n_s32(layer->columns * (1 << layer->head));
    const int32x4_t inverse = vdupq_n_s32(r->inverse);
    const int32x4_t least = vdupq_n_s32(layer->min), most = vdupq_n_s32(layer->max);
    const int32_t by = r->shift < 31 ? -r->shift : -31;

    for (int32_t run = 0; run < layer->runs; run++, x += layer->step, y += layer->step) {
        const int32_t *g = gains, *b = biases;
        const int8_t *in = x;
        int8_t *out = y;
        int32x4_t gain = vdupq_n_s32(*gains), bias = vdupq_n_s32(*biases);

        if (layer->of_runs) {
            NORM_RUN("");
            gains++, biases++;
        } else {
            NORM_RUN("vldrw.u32 %q4, [%2], #16\n"
                     "vldrw.u32 %q5, [%3], #16\n");
        }
    }
}

#undef NORM_RUN

/* The rows of up to four groups of one element a run, a lane each. */
static void run_lanes(const mur_norm_s8 *layer, const int8_t *in, int8_t *out, int32_t group)
{
    const mve_pred16_t some = vctp32q((uint32_t)(layer->groups - group));
    const int32x4_t step = vdupq_n_s32(layer->columns * (1 << layer->head));
    const int32x4_t gain = vldrwq_z_s32(layer->gains + group, some);
    const int32x4_t bias = vldrwq_z_s32(layer->biases + group, some);
    int32x4_t sums = vdupq_n_s32(0), squares = sums, centre = sums, inverse = sums, by = sums;
    int32x4_t flat = vdupq_n_s32(INT32_MAX);
    const int8_t *x = in;

    for (int32_t run = layer->runs; run > 0; run--, x += layer->step) {
        const int32x4_t q = vldrbq_z_s32(x, some);

        sums = vaddq_s32(sums, q);
        squares = vaddq_s32(squares, vmulq_s32(q, q));
    }
    for (int32_t i = 0; i < 4; i++) {
        const mur_norm_row r = finish_row(layer, (uint32_t)sums[i], (uint32_t)squares[i]);

        centre[i] = r.centre;
        inverse[i] = r.inverse;
        by[i] = mur_clamp(-r.shift, -31, 10);
        flat[i] = r.shift < 0 ? 1 << 20 : INT32_MAX;
    }
    for (int32_t run = layer->runs; run > 0; run--, in += layer->step, out += layer->step) {
        int32x4_t v = vsubq_s32(vmulq_s32(vldrbq_z_s32(in, some), step), centre);

        v = vminq_s32(vmulhq_s32(vmulhq_s32(v, inverse), gain), flat);
        v = vaddq_s32(vshlq_s32(vmaxq_s32(v, vnegq_s32(flat)), by), bias);
        v = vminq_s32(vmaxq_s32(vshrq_n_s32(v, 8), vdupq_n_s32(layer->min)),
                      vdupq_n_s32(layer->max));
        vstrbq_p_s32(out, v, some);
    }
}

void mur_mve_norm_s8(const mur_norm_s8 *layer, const int8_t *in, int8_t *out)
{
    const int32_t image = layer->groups * layer->columns;

    if (layer->width > 1 || layer->next > 1 || layer->of_runs) {
        mur_norm_rows(layer, in, out, row_of, put_row);
        return;
    }
    for (int32_t n = 0; n < layer->rows; n += layer->groups, in += image, out += image)
        for (int32_t group = 0; group < layer->groups; group += 4)
            run_lanes(layer, in + group, out + group, group);
}

#else

void mur_mve_norm_s8(const mur_norm_s8 *layer, const int8_t *in, int8_t *out)
{
    mur_norm_plain(layer, in, out);
}

#endif

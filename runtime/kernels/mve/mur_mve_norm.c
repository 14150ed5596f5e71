/* mur_mve_norm.c - norms of int8 rows, four elements at a time: see mur_norm.h. */
#include "mur_mve.h"
#include "mur_norm.h"

#if MUR_HAVE_MVE

/* sums of all elements and of their squares; then the zero point is taken off */
static mur_norm_row row_of(const mur_norm_s8 *layer, const int8_t *in)
{
    const uint32_t n = (uint32_t)layer->columns, zero = (uint32_t)layer->in_zero;
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
    squares += zero * (n * zero - 2 * sum);
    return mur_norm_row_of(layer, (int32_t)(sum - n * zero), squares);
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
                     : "+l"(in), "+l"(out), "+r"(gains), "+r"(biases), "+w"(gain), "+w"(bias) \
                     : "r"(layer->width), "r"(-r->centre), "w"(step), "w"(inverse), "r"(by), \
                       "w"(least), "w"(most) \
                     : "lr", "q0", "memory")

static MUR_MVE_OPTIMIZED void put_run(const mur_norm_s8 *layer, const mur_norm_row *r,
                                      const int8_t *in, int8_t *out, const int32_t *gains,
                                      const int32_t *biases)
{
    const int32x4_t step = vdupq_n_s32(layer->columns * (1 << layer->head));
    const int32x4_t inverse = vdupq_n_s32(r->inverse);
    const int32x4_t least = vdupq_n_s32(layer->min), most = vdupq_n_s32(layer->max);
    const int32_t by = r->shift < 31 ? -r->shift : -31;
    int32x4_t gain = vdupq_n_s32(*gains), bias = vdupq_n_s32(*biases);

    if (layer->of_runs)
        NORM_RUN("");
    else
        NORM_RUN("vldrw.u32 %q4, [%2], #16\n"
                 "vldrw.u32 %q5, [%3], #16\n");
}

#undef NORM_RUN

void mur_mve_norm_s8(const mur_norm_s8 *layer, const int8_t *in, int8_t *out)
{
    mur_norm_rows(layer, in, out, row_of, put_run);
}

#else

void mur_mve_norm_s8(const mur_norm_s8 *layer, const int8_t *in, int8_t *out)
{
    mur_norm_plain(layer, in, out);
}

#endif

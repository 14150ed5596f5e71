/* mur_dsp_norm.c - norms of int8 rows, two elements at a time: see mur_norm.h. */
#include "mur_dsp.h"
#include "mur_norm.h"

#if MUR_HAVE_DSP

/* in the assembly's order */
typedef struct pairs {
    const int8_t *in;
    int8_t *out;
    const int8_t *end;
    int32_t step, less; /* less: -centre */
    int32_t inverse;
    const int32_t *gains, *biases;
    int32_t by;
} pairs;

/* clang-format off */
#define PUT_ONE \
    "ldrsb r0, [r1], #1\n" \
    "ldr r10, [r7], #4\n" \
    "ldr r11, [r8], #4\n" \
    "mla r0, r0, r4, r5\n" \
    "smmul r0, r0, r6\n" \
    "smmul r0, r0, r10\n" \
    "asr r0, r0, r9\n" \
    "add r0, r0, r11\n" \
    "ssat r0, #8, r0, asr #8\n" \
    "strb r0, [r2], #1\n"

#define PUT_TWO \
    "ldrsb r0, [r1, #1]\n" \
    "ldrsb r12, [r1], #2\n" \
    "ldrd r10, r11, [r7], #8\n" \
    "mla r0, r0, r4, r5\n" \
    "mla r12, r12, r4, r5\n" \
    "smmul r0, r0, r6\n" \
    "smmul r12, r12, r6\n" \
    "smmul r0, r0, r11\n" \
    "smmul r12, r12, r10\n" \
    "ldrd r10, r11, [r8], #8\n" \
    "asr r0, r0, r9\n" \
    "asr r12, r12, r9\n" \
    "add r0, r0, r11\n" \
    "add r12, r12, r10\n" \
    "ssat r0, #8, r0, asr #8\n" \
    "ssat r12, #8, r12, asr #8\n" \
    "strb r0, [r2, #1]\n" \
    "strb r12, [r2], #2\n"

__attribute__((naked, noinline)) static void put_pairs(__attribute__((unused)) const pairs *p)
{
    __asm__ volatile("push {r4-r11, lr}\n"
                     "ldm r0, {r1-r9}\n"
                     "sub lr, r3, r1\n"
                     "b 2f\n"
                     "1:\n" PUT_TWO PUT_TWO
                     "2: subs lr, lr, #4\n"
                     "bhs 1b\n"
                     "cmp r1, r3\n"
                     "beq 4f\n"
                     "3:\n" PUT_ONE
                     "cmp r1, r3\n"
                     "bne 3b\n"
                     "4: pop {r4-r11, pc}\n" ::
                         : "memory");
}
/* clang-format on */

static int has_pairs(const mur_norm_s8 *layer)
{
    return !layer->of_runs && layer->width > 1 && layer->min == INT8_MIN && layer->max == INT8_MAX;
}

static void put(const mur_norm_s8 *layer, const mur_norm_row *r, const int8_t *in, int8_t *out,
                const int32_t *gains, const int32_t *biases)
{
    const int32_t step = layer->columns * (1 << layer->head), by = r->shift < 31 ? r->shift : 31;

    if (!has_pairs(layer)) {
        mur_norm_put_plain(layer, r, in, out, gains, biases);
        return;
    }
    for (int32_t run = 0; run < layer->runs; run++, in += layer->step, out += layer->step) {
        const pairs p = { in,     out, in + layer->width, step, -r->centre, r->inverse, gains,
                          biases, by };

        put_pairs(&p);
    }
}

static __attribute__((noinline)) mur_norm_row row_of(const mur_norm_s8 *layer, const int8_t *in)
{
    const uint32_t ones = 0x10001;
    int32_t sum = 0, squares = 0;

    if (mur_norm_is_column(layer))
        return mur_norm_plain_row(layer, in);
    for (int32_t run = layer->runs; run > 0; run--, in += layer->step) {
        const int8_t *p = in, *end = in + layer->width;

        for (const int8_t *fours = in + (layer->width & ~3); p != fours; p += 4) {
            const uint32_t four = mur_four(p), even = mur_sxtb16(four), odd = mur_sxtb16_odd(four);

            sum = mur_smlad(even, ones, sum);
            squares = mur_smlad(even, even, squares);
            sum = mur_smlad(odd, ones, sum);
            squares = mur_smlad(odd, odd, squares);
        }
        for (; p != end; p++) {
            sum += *p;
            squares = mur_smlad((uint32_t)*p & 0xffff, (uint32_t)*p & 0xffff, squares);
        }
    }
    return mur_norm_row_of_sums(layer, sum, (uint32_t)squares);
}

/* rows of one run, whose gains are the same */
static void put_rows(const mur_norm_s8 *layer, const int8_t *in, int8_t *out)
{
    const int32_t n = layer->columns;
    pairs p = { .step = n * (1 << layer->head), .gains = layer->gains, .biases = layer->biases };

    for (int32_t left = layer->rows; left > 0; left--, in += n, out += n) {
        const mur_norm_row r = row_of(layer, in);

        if (r.shift < 0) {
            mur_norm_put_flat(layer, &r, in, out, p.gains, p.biases);
            continue;
        }
        p.in = in, p.end = in + n, p.out = out;
        p.less = -r.centre, p.inverse = r.inverse;
        p.by = r.shift < 31 ? r.shift : 31;
        put_pairs(&p);
    }
}

void mur_dsp_norm_s8(const mur_norm_s8 *layer, const int8_t *in, int8_t *out)
{
    if (layer->runs == 1 && layer->groups == 1 && has_pairs(layer))
        put_rows(layer, in, out);
    else
        mur_norm_rows(layer, in, out, row_of, put);
}

#else

void mur_dsp_norm_s8(const mur_norm_s8 *layer, const int8_t *in, int8_t *out)
{
    mur_norm_plain(layer, in, out);
}

#endif

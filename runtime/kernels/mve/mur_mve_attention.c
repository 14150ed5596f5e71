/* mur_mve_attention.c - attention in vectors of 16 bytes.
 *
 * Keys: int8 [context][width]. Values: int8 [context / 8][width][8]. Scores: [..][heads][8].
 */
#include "mur_attend.h"
#include "mur_mve.h"

enum { EIGHT = 8 }; /* positions that lie together */

static void put_value(const mur_attention_q8 *op, uint32_t pos, const int16_t *q, void *values)
{
    int8_t *to = (int8_t *)values + (size_t)(pos / EIGHT) * op->width * EIGHT + pos % EIGHT;

    for (uint32_t i = 0; i < op->width; i++)
        to[i * EIGHT] = (int8_t)q[i];
}

#if MUR_HAVE_MVE

/* four sums as lanes */
static inline int32x4_t lanes(int32_t a, int32_t b, int32_t c, int32_t d)
{
    int32x4_t all;

    __asm__("vmov %q0[2], %q0[0], %1, %3\n\t"
            "vmov %q0[3], %q0[1], %2, %4"
            : "=&w"(all)
            : "r"(a), "r"(b), "r"(c), "r"(d));
    return all;
}

/* the scores of eight positions: sums of the even ones and of the odd ones */
static inline uint16x8_t score_eight(const mur_attended *a, int32x4_t even, int32x4_t odd,
                                     uint16x8_t scales)
{
    int16x8_t scores = vdupq_n_s16(0);

    if (a->extra != 0) {
        even = vshlq_r_s32(even, -(int32_t)a->extra);
        odd = vshlq_r_s32(odd, -(int32_t)a->extra);
    }
    even = vmulq_s32(even, vreinterpretq_s32_u32(vmovlbq_u16(scales)));
    odd = vmulq_s32(odd, vreinterpretq_s32_u32(vmovltq_u16(scales)));
    scores = vshrnbq_n_s32(scores, even, 16);
    scores = vshrntq_n_s32(scores, odd, 16);
    return vaddq_n_u16(vreinterpretq_u16_s16(scores), MUR_ATTEND_ZERO);
}

/* what loops over positions, eight at a time, read and write; the assembly knows the places */
typedef struct score_run {
    const int16_t *q; /* [2][8] */
    const int8_t *keys;
    const uint16_t *scales;
    uint16_t *scores;
    uint32_t eights;
} score_run;

typedef struct mix_run {
    const int8_t *values; /* four columns; the next eight positions follow `step` bytes later */
    const int16_t *u;
    uint32_t eights, step;
} mix_run;

/* clang-format off */

/* Four positions' sums with queries q0 and q1, to be the lanes of `first` and `second`; q4 to q7
 * are lost. VMLADAV writes even registers alone. */
#define FOUR_SUMS(k0, k1, k2, k3, first, second) \
    "vldrb.s16 q4, [r1, #" k0 "]\n\t" \
    "vldrb.s16 q5, [r1, #" k1 "]\n\t" \
    "vldrb.s16 q6, [r1, #" k2 "]\n\t" \
    "vldrb.s16 q7, [r1, #" k3 "]\n\t" \
    "vmladav.s16 r0, q4, q0\n\t" \
    "vmladav.s16 r8, q4, q1\n\t" \
    "vmladav.s16 r2, q5, q0\n\t" \
    "vmladav.s16 r10, q5, q1\n\t" \
    "vmladav.s16 r4, q6, q0\n\t" \
    "vmladav.s16 r12, q6, q1\n\t" \
    "vmladav.s16 r6, q7, q0\n\t" \
    "vmladav.s16 lr, q7, q1\n\t" \
    "vmov   " first "[2], " first "[0], r0, r4\n\t" \
    "vmov   " first "[3], " first "[1], r2, r6\n\t" \
    "vmov   " second "[2], " second "[0], r8, r12\n\t" \
    "vmov   " second "[3], " second "[1], r10, lr\n\t"

/* Two heads of 8 columns. */
__attribute__((naked, noinline)) static void score_eights(const score_run *run
                                                          __attribute__((unused)))
{
    __asm__ volatile("push   {r4-r11, lr}\n\t"
                     "vpush  {d8-d15}\n\t"
                     "ldr    r1, [r0]\n\t"
                     "vldrh.16 q0, [r1]\n\t"
                     "vldrh.16 q1, [r1, #16]\n\t"
                     "ldrd   r1, r3, [r0, #4]\n\t"
                     "ldrd   r5, r7, [r0, #12]\n\t"
                     "movw   r9, #0xc000\n" /* MUR_ATTEND_ZERO */
                     "1:\n\t" FOUR_SUMS("0", "16", "32", "48", "q2", "q3")
                         FOUR_SUMS("8", "24", "40", "56", "q4", "q5")
                     "vldrh.16 q6, [r3], #16\n\t"
                     "vmovlt.u16 q7, q6\n\t"
                     "vmovlb.u16 q6, q6\n\t"
                     "vmul.i32 q4, q4, q7\n\t"
                     "vmul.i32 q5, q5, q7\n\t"
                     "vmul.i32 q2, q2, q6\n\t"
                     "vmul.i32 q3, q3, q6\n\t"
                     "vshrnb.i32 q2, q2, #16\n\t"
                     "vshrnb.i32 q3, q3, #16\n\t"
                     "vshrnt.i32 q2, q4, #16\n\t"
                     "vshrnt.i32 q3, q5, #16\n\t"
                     "vadd.i16 q2, q2, r9\n\t"
                     "vadd.i16 q3, q3, r9\n\t"
                     "vstrh.16 q2, [r5], #16\n\t"
                     "vstrh.16 q3, [r5], #16\n\t"
                     "adds   r1, #64\n\t"
                     "subs   r7, #1\n\t"
                     "bne    1b\n\t"
                     "vpop   {d8-d15}\n\t"
                     "pop    {r4-r11, pc}\n\t");
}

/* Sums of four columns of each of two heads. */
__attribute__((naked, noinline)) static void mix_four(const mix_run *run __attribute__((unused)),
                                                      int32_t sums[8] __attribute__((unused)))
{
    __asm__ volatile("push   {r1, r4-r11, lr}\n\t"
                     "ldrd   r1, r3, [r0]\n\t"
                     "ldrd   r5, r7, [r0, #8]\n\t"
                     "movs   r0, #0\n\t"
                     "movs   r2, #0\n\t"
                     "movs   r4, #0\n\t"
                     "movs   r6, #0\n\t"
                     "mov    r8, r0\n\t"
                     "mov    r10, r0\n\t"
                     "mov    r12, r0\n\t"
                     "mov    lr, r0\n"
                     "1:\n\t"
                     "vldrh.16 q0, [r3], #16\n\t"
                     "vldrb.s16 q2, [r1]\n\t"
                     "vldrh.16 q1, [r3], #16\n\t"
                     "vmladava.s16 r0, q2, q0\n\t"
                     "vldrb.s16 q3, [r1, #8]\n\t"
                     "vmladava.s16 r8, q2, q1\n\t"
                     "vldrb.s16 q2, [r1, #16]\n\t"
                     "vmladava.s16 r2, q3, q0\n\t"
                     "vmladava.s16 r10, q3, q1\n\t"
                     "vldrb.s16 q3, [r1, #24]\n\t"
                     "vmladava.s16 r4, q2, q0\n\t"
                     "vmladava.s16 r12, q2, q1\n\t"
                     "add    r1, r7\n\t"
                     "vmladava.s16 r6, q3, q0\n\t"
                     "vmladava.s16 lr, q3, q1\n\t"
                     "subs   r5, #1\n\t"
                     "bne    1b\n\t"
                     "pop    {r1}\n\t"
                     "stm    r1, {r0, r2, r4, r6, r8, r10, r12, lr}\n\t"
                     "pop    {r4-r11, pc}\n\t");
}

/* clang-format on */

/* any width; q: int8 [heads][width] */
static void score_any(const mur_attended *a, const int8_t *q)
{
    uint32_t width = a->op->width, at = 0;
    const int8_t *keys = (const int8_t *)a->keys + (size_t)a->begin * width;

    for (uint32_t t = 0; t < a->length; t += EIGHT, keys += EIGHT * width)
        for (uint32_t h = 0; h < a->heads; h++, at += EIGHT) {
            int32_t s[EIGHT];

            for (uint32_t i = 0; i < EIGHT; i++) {
                s[i] = 0;
                for (uint32_t c = 0; c < width; c += 16) {
                    mve_pred16_t there = vctp8q(width - c);

                    s[i] = vmladavaq_s8(s[i], vldrbq_z_s8(keys + i * width + c, there),
                                        vldrbq_z_s8(q + h * width + c, there));
                }
            }
            vstrhq_u16(a->scores + at,
                       score_eight(a, lanes(s[0], s[2], s[4], s[6]), lanes(s[1], s[3], s[5], s[7]),
                                   vldrhq_u16(a->scales + t)));
        }
}

static void score(const mur_attended *a)
{
    int8_t *q = (int8_t *)a->sums; /* which are not there yet */

    if (a->op->width == EIGHT && a->heads == 2) {
        const score_run run = { a->q, (const int8_t *)a->keys + (size_t)a->begin * EIGHT, a->scales,
                                a->scores, a->length / EIGHT };

        score_eights(&run);
        return;
    }
    for (uint32_t i = 0; i < a->heads * a->op->width; i++)
        q[i] = (int8_t)a->q[i];
    score_any(a, q);
}

static void most(const mur_attended *a, uint32_t *found)
{
    const uint16_t *scores = a->scores;
    uint32_t first = 0, second = 0, step = a->heads * EIGHT, other = step - EIGHT;

    for (uint32_t left = a->length / EIGHT; left != 0; left--, scores += step) {
        first = vmaxvq_u16((uint16_t)first, vldrhq_u16(scores));
        second = vmaxvq_u16((uint16_t)second, vldrhq_u16(scores + other));
    }
    found[0] = first;
    found[a->heads - 1] = second;
}

static uint32_t weigh(const mur_attended *a, uint32_t head, const mur_softmax *s)
{
    uint16_t *scores = a->scores + head * EIGHT;
    const uint16_t *scales = a->scales;
    const uint16_t base = (uint16_t)s->base, offset = (uint16_t)s->offset;
    uint32_t step = a->heads * EIGHT, sum = 0, factor = s->factor;
    uint16x8_t by;
    int32_t up = 0;

    for (; factor >> 16 != 0; factor >>= 1) /* what it loses are zeros */
        up++;
    by = vdupq_n_u16((uint16_t)factor);
    for (uint32_t left = a->length / EIGHT; left != 0; left--, scores += step, scales += EIGHT) {
        uint16x8_t x = vshlq_r_u16(vqsubq_n_u16(vldrhq_u16(scores), base), up), p;

        x = vaddq_n_u16(vmulhq_u16(x, by), offset);
        p = vldrhq_gather_shifted_offset_u16(mur_attend_powers, x);
        sum = vaddvaq_u16(sum, p);
        vstrhq_u16(scores, vmulhq_u16(p, vldrhq_u16(scales)));
    }
    return sum;
}

static int32_t mix_one(const mur_attended *a, const int8_t *v, uint32_t head)
{
    const int16_t *u = (const int16_t *)a->scores + head * EIGHT;
    int32_t sum = 0;

    for (uint32_t t = 0; t < a->length; t += EIGHT) {
        sum = vmladavaq_s16(sum, vldrbq_s16(v), vldrhq_s16(u));
        u += a->heads * EIGHT;
        v += EIGHT * a->op->width;
    }
    return sum;
}

static void mix(const mur_attended *a)
{
    uint32_t width = a->op->width, i = 0;
    const int8_t *values = (const int8_t *)a->values + (size_t)a->begin * width;

    for (; a->heads == 2 && i + 4 <= width; i += 4) {
        const mix_run run = { values + i * EIGHT, (const int16_t *)a->scores, a->length / EIGHT,
                              width * EIGHT };
        int32_t sums[8];

        mix_four(&run, sums);
        vstrwq_s32(a->sums + i, vldrwq_s32(sums));
        vstrwq_s32(a->sums + width + i, vldrwq_s32(sums + 4));
    }
    for (; i < width; i++)
        for (uint32_t h = 0; h < a->heads; h++)
            a->sums[h * width + i] = mix_one(a, values + i * EIGHT, h);
}

#else

static void score(const mur_attended *a)
{
    uint32_t width = a->op->width;
    const int8_t *keys = (const int8_t *)a->keys + (size_t)a->begin * width;

    for (uint32_t t = 0; t < a->length; t++, keys += width)
        for (uint32_t h = 0; h < a->heads; h++) {
            int32_t sum = 0;

            for (uint32_t i = 0; i < width; i++)
                sum += a->q[h * width + i] * keys[i];
            *mur_attend_at(a, EIGHT, h, t) = mur_attend_score(a, sum, a->scales[t]);
        }
}

static void most(const mur_attended *a, uint32_t *found)
{
    mur_attend_most_of(a, EIGHT, found);
}

static uint32_t weigh(const mur_attended *a, uint32_t head, const mur_softmax *s)
{
    return mur_attend_weigh_of(a, EIGHT, head, s);
}

static void mix(const mur_attended *a)
{
    uint32_t width = a->op->width;
    const int8_t *values = (const int8_t *)a->values + (size_t)a->begin * width;

    for (uint32_t h = 0; h < a->heads; h++)
        for (uint32_t i = 0; i < width; i++) {
            int32_t sum = 0;

            for (uint32_t t = 0; t < a->length; t++)
                sum += *mur_attend_at(a, EIGHT, h, t) *
                       values[(size_t)(t / EIGHT) * width * EIGHT + i * EIGHT + t % EIGHT];
            a->sums[h * width + i] = sum;
        }
}

#endif

void mur_mve_attention(const mur_attention_q8 *op, uint32_t pos, uint32_t rows, const float *q,
                       const float *k, const float *v, void *keys, void *values, void *key_scales,
                       void *value_scales, float *out, void *scratch)
{
    static const mur_attend_kernels kernels = { 2,     EIGHT, mur_attend_put, put_value,
                                                score, most,  weigh,          mix };

    mur_attend(op, &kernels, pos, rows, q, k, v, keys, values, key_scales, value_scales, out,
               scratch);
}

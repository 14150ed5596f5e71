/* mur_dsp_attention.c - attention on cores with SMLAD; see mur_dsp_pair.h.
 *
 * Keys: int16 [context / 2][width], a pair is two positions. Values: int16 [width / 2][context], a
 * pair is two columns. Scores: [..][heads][4].
 */
#include "mur_attend.h"
#include "mur_dsp_pair.h"

#include <string.h>

enum {
    QUAD = 4,        /* positions that lie together */
    SCORE_ROUND = 4, /* quads */
    MIX_ROUND = 16   /* quads */
};

static void put_key(const mur_attention_q8 *op, uint32_t pos, const int16_t *q, void *keys)
{
    int16_t *to = (int16_t *)keys + (size_t)(pos / 2) * op->width;

    for (uint32_t i = 0; i < op->width; i++)
        to[i] = pos % 2 ? mur_pair(mur_pair_of_first(to[i]), q[i]) : q[i];
}

static void put_value(const mur_attention_q8 *op, uint32_t pos, const int16_t *q, void *values)
{
    int16_t *to = (int16_t *)values + pos;

    for (uint32_t i = 0; i < op->width; i += 2, to += op->context)
        *to = mur_pair(q[i], q[i + 1]);
}

/* the products of one query with the keys of two positions */
static inline mur_pair_sum meet(const int16_t *keys, const int16_t *q, uint32_t width)
{
    mur_pair_sum sum = { 0, 0 };

    for (; width >= 8; width -= 8, keys += 8, q += 8) {
        mur_pair_step(&sum, mur_two(keys), mur_two(q));
        mur_pair_step(&sum, mur_two(keys + 2), mur_two(q + 2));
        mur_pair_step(&sum, mur_two(keys + 4), mur_two(q + 4));
        mur_pair_step(&sum, mur_two(keys + 6), mur_two(q + 6));
    }
    for (; width != 0; width -= 2, keys += 2, q += 2)
        mur_pair_step(&sum, mur_two(keys), mur_two(q));
    return sum;
}

static void score_any(const mur_attended *a)
{
    uint32_t width = a->op->width;
    const int16_t *keys = (const int16_t *)a->keys + (size_t)(a->begin / 2) * width;
    const uint16_t *scales = a->scales;
    uint16_t *scores = a->scores;

    for (uint32_t t = 0; t < a->length; t += QUAD, keys += QUAD / 2 * width, scales += QUAD)
        for (uint32_t h = 0; h < a->heads; h++, scores += QUAD)
            for (uint32_t i = 0; i < QUAD; i += 2) {
                mur_pair_sum sum = meet(keys + i / 2 * width, a->q + h * width, width);

                scores[i] = mur_attend_score(a, mur_pair_first(sum), scales[i]);
                scores[i + 1] = mur_attend_score(a, mur_pair_second(sum), scales[i + 1]);
            }
}

#if MUR_HAVE_DSP

/* what loops over positions read and write; the assembly knows the places */
typedef struct score_run {
    const int16_t *keys, *q; /* of q the second half */
    const uint16_t *scales;
    uint16_t *scores;
    const uint16_t *scores_end;
    uint32_t rest; /* quads beyond the last whole round */
} score_run;

typedef struct weigh_run {
    uint16_t *scores;
    const uint16_t *scales;
    uint32_t factor, offset, base; /* base twice, in halves */
    const uint16_t *powers;
    uint32_t sum, fours, ones; /* fours and ones: how many quads, by fours and one by one */
} weigh_run;

typedef struct mix_run {
    const int16_t *values;
    const uint16_t *u, *rounds_end, *end; /* of u: after whole rounds, and of all */
} mix_run;

/* clang-format off */

/* r4, r5: keys of two positions at four columns; r6, r7 and r8, r9: the heads' queries; r10, r12:
 * their sums of V q, r11, lr: of the first position alone */
#define COLUMNS(begin, more_10, more_11, more_12, more_lr) \
    begin "  r10, r4, r6" more_10 \
    begin "  r12, r4, r8" more_12 \
    "sxtb16 r4, r4\n\t" \
    "smlad  r10, r5, r7, r10\n\t" \
    "smlad  r12, r5, r9, r12\n\t" \
    begin "  r11, r4, r6" more_11 \
    begin "  lr, r4, r8" more_lr \
    "sxtb16 r5, r5\n\t" \
    "smlad  r11, r5, r7, r11\n\t" \
    "smlad  lr, r5, r9, lr\n\t"
#define FIRST_COLUMNS COLUMNS("smuad", "\n\t", "\n\t", "\n\t", "\n\t")
#define MORE_COLUMNS COLUMNS("smlad", ", r10\n\t", ", r11\n\t", ", r12\n\t", ", lr\n\t")

/* Two scores of each head, in r11 and lr; MUR_ATTEND_ZERO is 0xc000. The second position's sum is
 * 256 times too large, which the packing undoes. */
#define SCORES \
    "sub    r10, r10, r11\n\t" \
    "ldr    r4, [r2], #4\n\t" \
    "sub    r12, r12, lr\n\t" \
    "mov    r5, #0xc000\n\t" \
    "smlawb r11, r11, r4, r5\n\t" \
    "smlawb lr, lr, r4, r5\n\t" \
    "mov    r5, #0xc00000\n\t" \
    "smlawt r10, r10, r4, r5\n\t" \
    "smlawt r12, r12, r4, r5\n\t" \
    "pkhbt  r11, r11, r10, lsl #8\n\t" \
    "pkhbt  lr, lr, r12, lsl #8\n\t"

/* r0: keys, r1: the second half of queries, r2: scales, r3: scores; queries' first half is loaded
 * before and after */
#define SCORE_QUAD \
    "ldrd   r4, r5, [r0]\n\t" \
    FIRST_COLUMNS \
    "ldmia  r1, {r6-r9}\n\t" \
    "ldrd   r4, r5, [r0, #8]\n\t" \
    MORE_COLUMNS \
    SCORES \
    "str    r11, [r3]\n\t" \
    "str    lr, [r3, #8]\n\t" \
    "ldrd   r4, r5, [r0, #24]\n\t" \
    FIRST_COLUMNS \
    "ldmdb  r1, {r6-r9}\n\t" \
    "ldrd   r4, r5, [r0, #16]\n\t" \
    MORE_COLUMNS \
    "adds   r0, #32\n\t" \
    SCORES \
    "str    r11, [r3, #4]\n\t" \
    "str    lr, [r3, #12]\n\t" \
    "adds   r3, #16\n\t"

/* Two heads of 8 columns, by SCORE_ROUND quads of positions. */
__attribute__((naked, noinline)) static void score_quads(const score_run *run
                                                         __attribute__((unused)))
{
    __asm__ volatile("push   {r0, r4-r11, lr}\n\t"
                     "ldr    r4, [r0, #20]\n\t"
                     "ldr    r5, [r0, #16]\n\t"
                     "str    r5, [sp]\n\t"
                     "ldm    r0, {r0-r3}\n\t"
                     "ldmdb  r1, {r6-r9}\n\t"
                     "cmp    r4, #1\n\t"
                     "beq.w  5f\n\t"
                     "cmp    r4, #2\n\t"
                     "beq.w  4f\n\t"
                     "cmp    r4, #3\n\t"
                     "beq.w  3f\n"
                     "2:\n\t" SCORE_QUAD
                     "3:\n\t" SCORE_QUAD
                     "4:\n\t" SCORE_QUAD
                     "5:\n\t" SCORE_QUAD
                     "ldr    r4, [sp]\n\t"
                     "cmp    r3, r4\n\t"
                     "bne.w  2b\n\t"
                     "pop    {r0, r4-r11, pc}\n\t");
}

#define MOST(word) \
    "usub16 r12, " word ", r10\n\t" \
    "sel    r10, " word ", r10\n\t"
#define OTHER_MOST(word) \
    "usub16 r12, " word ", r11\n\t" \
    "sel    r11, " word ", r11\n\t"
#define MOST_OF_FOUR(a, b, c, d) MOST(a) OTHER_MOST(c) MOST(b) OTHER_MOST(d)

/* The greatest halves of the first two words of every four, and of the last two. */
__attribute__((naked, noinline)) static void
most_of_fours(const mur_word *scores __attribute__((unused)),
              uint32_t fours __attribute__((unused)), uint32_t pairs[2] __attribute__((unused)))
{
    __asm__ volatile("push   {r2, r4-r11, lr}\n\t"
                     "mov    lr, r1\n\t"
                     "movs   r1, #0\n\t"
                     "mov    r10, r1\n\t"
                     "mov    r11, r1\n\t"
                     "subs   lr, #4\n\t"
                     "bmi    2f\n"
                     "1:\n\t"
                     "ldmia  r0!, {r2-r9}\n\t" MOST_OF_FOUR("r2", "r3", "r4", "r5")
                         MOST_OF_FOUR("r6", "r7", "r8", "r9")
                     "ldmia  r0!, {r2-r9}\n\t" MOST_OF_FOUR("r2", "r3", "r4", "r5")
                         MOST_OF_FOUR("r6", "r7", "r8", "r9")
                     "subs   lr, #4\n\t"
                     "bpl    1b\n"
                     "2:\n\t"
                     "adds   lr, #4\n\t"
                     "beq    4f\n"
                     "3:\n\t"
                     "ldmia  r0!, {r2-r5}\n\t" MOST_OF_FOUR("r2", "r3", "r4", "r5")
                     "subs   lr, #1\n\t"
                     "bne    3b\n"
                     "4:\n\t"
                     "pop    {r2}\n\t"
                     "strd   r10, r11, [r2]\n\t"
                     "pop    {r4-r11, pc}\n\t");
}

/* r0: scores, r1: scales, r2: factor, r3: offset, r4: base, r5: powers, r6: sum */
#define WEIGH_QUAD(next) \
    "ldrd   r8, r9, [r0]\n\t" \
    "uqsub16 r8, r8, r4\n\t" \
    "uqsub16 r9, r9, r4\n\t" \
    "smlawb r10, r2, r8, r3\n\t" \
    "smlawt r11, r2, r8, r3\n\t" \
    "smlawb r12, r2, r9, r3\n\t" \
    "smlawt lr, r2, r9, r3\n\t" \
    "ldrh   r10, [r5, r10, lsl #1]\n\t" \
    "ldrh   r11, [r5, r11, lsl #1]\n\t" \
    "ldrh   r12, [r5, r12, lsl #1]\n\t" \
    "ldrh   lr, [r5, lr, lsl #1]\n\t" \
    "ldrd   r8, r9, [r1], #8\n\t" \
    "add    r6, r6, r10\n\t" \
    "add    r6, r6, r11\n\t" \
    "add    r6, r6, r12\n\t" \
    "add    r6, r6, lr\n\t" \
    "smulwb r10, r10, r8\n\t" \
    "smulwt r11, r11, r8\n\t" \
    "smulwb r12, r12, r9\n\t" \
    "smulwt lr, lr, r9\n\t" \
    "pkhbt  r8, r10, r11, lsl #16\n\t" \
    "pkhbt  r9, r12, lr, lsl #16\n\t" \
    "strd   r8, r9, [r0], " next "\n\t"

#define WEIGH(name, next) \
    __attribute__((naked, noinline)) static uint32_t name(const weigh_run *run \
                                                          __attribute__((unused))) \
    { \
        __asm__ volatile("push   {r0, r4-r11, lr}\n\t" \
                         "ldr    r7, [r0, #28]\n\t" \
                         "ldm    r0, {r0-r6}\n\t" \
                         "cmp    r7, #0\n\t" \
                         "beq.w  2f\n" \
                         "1:\n\t" WEIGH_QUAD(next) WEIGH_QUAD(next) WEIGH_QUAD(next) \
                             WEIGH_QUAD(next) \
                         "subs   r7, #1\n\t" \
                         "bne    1b\n" \
                         "2:\n\t" \
                         "ldr    r7, [sp]\n\t" \
                         "ldr    r7, [r7, #32]\n\t" \
                         "cmp    r7, #0\n\t" \
                         "beq    4f\n" \
                         "3:\n\t" WEIGH_QUAD(next) \
                         "subs   r7, #1\n\t" \
                         "bne    3b\n" \
                         "4:\n\t" \
                         "pop    {r1}\n\t" \
                         "mov    r0, r6\n\t" \
                         "pop    {r4-r11, pc}\n\t"); \
    }
WEIGH(weigh_one, "#8")
WEIGH(weigh_two, "#16")

/* r0: values, r1: u; r8, r9 and r10, r11: the heads' sums of V u, r12, lr: of the first column */
#define MIX_QUAD \
    "ldrd   r2, r3, [r0], #8\n\t" \
    "ldmia  r1!, {r4-r7}\n\t" \
    "smlald r8, r9, r2, r4\n\t" \
    "smlald r10, r11, r2, r6\n\t" \
    "sxtb16 r2, r2\n\t" \
    "smlald r8, r9, r3, r5\n\t" \
    "smlald r10, r11, r3, r7\n\t" \
    "sxtb16 r3, r3\n\t" \
    "smlad  r12, r2, r4, r12\n\t" \
    "smlad  lr, r2, r6, lr\n\t" \
    "smlad  r12, r3, r5, r12\n\t" \
    "smlad  lr, r3, r7, lr\n\t"
#define MIX_QUAD_OF_ONE \
    "ldrd   r2, r3, [r0], #8\n\t" \
    "ldrd   r4, r5, [r1], #8\n\t" \
    "smlald r8, r9, r2, r4\n\t" \
    "sxtb16 r2, r2\n\t" \
    "smlald r8, r9, r3, r5\n\t" \
    "sxtb16 r3, r3\n\t" \
    "smlad  r12, r2, r4, r12\n\t" \
    "smlad  r12, r3, r5, r12\n\t"

#define TWICE(text) text text

/* Sums of the second column and each head, then of the first; the quads of a turn divide MIX_ROUND. */
#define MIX(name, quad, quads) \
    __attribute__((naked, noinline)) static void name(const mix_run *run __attribute__((unused)), \
                                                      int32_t sums[4] __attribute__((unused))) \
    { \
        __asm__ volatile("push   {r0-r1, r4-r11, lr}\n\t" \
                         "sub    sp, #4\n\t" \
                         "ldrd   r2, r3, [r0, #8]\n\t" \
                         "strd   r2, r3, [sp]\n\t" \
                         "ldrd   r0, r1, [r0]\n\t" \
                         "movs   r4, #0\n\t" \
                         "mov    r8, r4\n\t" \
                         "mov    r9, r4\n\t" \
                         "mov    r10, r4\n\t" \
                         "mov    r11, r4\n\t" \
                         "mov    r12, r4\n\t" \
                         "mov    lr, r4\n\t" \
                         "cmp    r1, r2\n\t" \
                         "beq.w  2f\n" \
                         "1:\n\t" quads \
                         "ldr    r2, [sp]\n\t" \
                         "cmp    r1, r2\n\t" \
                         "bne.w  1b\n" \
                         "2:\n\t" \
                         "ldr    r2, [sp, #4]\n\t" \
                         "cmp    r1, r2\n\t" \
                         "beq    4f\n" \
                         "3:\n\t" quad \
                         "ldr    r2, [sp, #4]\n\t" \
                         "cmp    r1, r2\n\t" \
                         "bne    3b\n" \
                         "4:\n\t" \
                         "ldr    r1, [sp, #8]\n\t" \
                         "subs   r8, r8, r12\n\t" \
                         "sbc    r9, r9, r12, asr #31\n\t" \
                         "lsrs   r8, r8, #8\n\t" \
                         "orr    r8, r8, r9, lsl #24\n\t" \
                         "subs   r10, r10, lr\n\t" \
                         "sbc    r11, r11, lr, asr #31\n\t" \
                         "lsrs   r10, r10, #8\n\t" \
                         "orr    r10, r10, r11, lsl #24\n\t" \
                         "stm    r1, {r8, r10, r12, lr}\n\t" \
                         "add    sp, #12\n\t" \
                         "pop    {r4-r11, pc}\n\t"); \
    }
MIX(mix_one, MIX_QUAD_OF_ONE, TWICE(TWICE(MIX_QUAD_OF_ONE)))
MIX(mix_two, MIX_QUAD, TWICE(TWICE(TWICE(TWICE(MIX_QUAD)))))

/* clang-format on */

/* two heads' queries of 8 columns: [2][heads][4] */
static void score_8(const mur_attended *a)
{
    int16_t q[16] __attribute__((aligned(4)));
    const score_run run = { (const int16_t *)a->keys + (size_t)a->begin / 2 * 8,
                            q + 8,
                            a->scales,
                            a->scores,
                            a->scores + 2 * a->length,
                            a->length / QUAD % SCORE_ROUND };

    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t h = 0; h < 2; h++)
            memcpy(q + i * 8 + h * 4, a->q + h * 8 + i * 4, 4 * sizeof(*q));
    score_quads(&run);
}

static void score(const mur_attended *a)
{
    if (a->heads == 2 && a->op->width == 8)
        score_8(a);
    else
        score_any(a);
}

static uint32_t greater_half(uint32_t pair)
{
    return (pair & 0xffffu) > pair >> 16 ? pair & 0xffffu : pair >> 16;
}

static void most(const mur_attended *a, uint32_t *found)
{
    uint32_t words = a->length / 2 * a->heads, pairs[2];
    const mur_word *scores = (const mur_word *)(const void *)a->scores;

    most_of_fours(scores, words / 4, pairs);
    found[0] = greater_half(pairs[0]);
    pairs[1] = greater_half(pairs[1]);
    if (a->heads == 2) {
        found[1] = pairs[1];
        return;
    }
    for (uint32_t i = words / 4 * 4; i < words; i++) {
        uint32_t last = greater_half(scores[i]);

        pairs[1] = last > pairs[1] ? last : pairs[1];
    }
    found[0] = pairs[1] > found[0] ? pairs[1] : found[0];
}

static uint32_t weigh(const mur_attended *a, uint32_t head, const mur_softmax *s)
{
    const weigh_run run = {
        a->scores + QUAD * head, a->scales,         s->factor, s->offset,
        s->base * 0x10001u,      mur_attend_powers, 0,         a->length / QUAD / 4,
        a->length / QUAD % 4
    };

    return a->heads == 1 ? weigh_one(&run) : weigh_two(&run);
}

static void mix(const mur_attended *a)
{
    uint32_t width = a->op->width, rounds = a->length / QUAD / MIX_ROUND * MIX_ROUND * QUAD;
    mix_run run = { (const int16_t *)a->values + a->begin, a->scores, a->scores + rounds * a->heads,
                    a->scores + a->length * a->heads };

    for (uint32_t i = 0; i < width; i += 2, run.values += a->op->context) {
        int32_t sums[4];

        if (a->heads == 1) {
            mix_one(&run, sums);
        } else {
            mix_two(&run, sums);
            a->sums[width + i] = sums[3];
            a->sums[width + i + 1] = sums[1];
        }
        a->sums[i] = sums[2];
        a->sums[i + 1] = sums[0];
    }
}

#else

static void score(const mur_attended *a)
{
    score_any(a);
}

static void most(const mur_attended *a, uint32_t *found)
{
    mur_attend_most_of(a, QUAD, found);
}

static uint32_t weigh(const mur_attended *a, uint32_t head, const mur_softmax *s)
{
    return mur_attend_weigh_of(a, QUAD, head, s);
}

static void mix(const mur_attended *a)
{
    uint32_t width = a->op->width;
    const int16_t *values = (const int16_t *)a->values + a->begin;

    for (uint32_t i = 0; i < width; i += 2, values += a->op->context)
        for (uint32_t h = 0; h < a->heads; h++) {
            int64_t both = 0;
            int32_t one = 0;

            for (uint32_t t = 0; t < a->length; t++) {
                both += values[t] * *mur_attend_at(a, QUAD, h, t);
                one += mur_pair_of_first(values[t]) * *mur_attend_at(a, QUAD, h, t);
            }
            a->sums[h * width + i] = one;
            a->sums[h * width + i + 1] = (int32_t)((both - one) >> 8);
        }
}

#endif

void mur_dsp_attention(const mur_attention_q8 *op, uint32_t pos, uint32_t rows, const float *q,
                       const float *k, const float *v, void *keys, void *values, void *key_scales,
                       void *value_scales, float *out, void *scratch)
{
    static const mur_attend_kernels kernels = {
        2, QUAD, put_key, put_value, score, most, weigh, mix
    };

    mur_attend(op, &kernels, pos, rows, q, k, v, keys, values, key_scales, value_scales, out,
               scratch);
}

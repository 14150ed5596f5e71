/* mur_dsp_low.c - matrices of 2 and 4 bits on cores with SMLAD; mur_dsp_low.h has their form.
 *
 * Two rows of 2 bits: V = a + 2^14 b, a in 0..3 and b in -2..1. Over 32 columns
 *     sum of V x - 2 (sum of x) = (sum of (a - 2) x) + 2^14 (sum of b x)
 * whose first sum has 14 bits: it is taken off, the other one stays and grows to 18 bits. An AND
 * and an SMLAD do four weights.
 *
 * Four rows of 4 bits: V = a + 16 b + 256 c + 4096 d. Sums of V x, and of V x with d, c and b
 * masked off one after the other, are exact modulo 2^32, and so are their differences over 4096,
 * 256 and
 * 16. Seven instructions do eight weights.
 */
#include "mur_dsp_low.h"
#include "mur_decoder.h"
#include "mur_dsp.h"
#include "mur_low.h"
#include "mur_low_arith.h"

enum { MOST = 512, CHUNK = 32 }; /* columns of a sum of 18 bits, and of one of 14 */

/* What a vector is multiplied by, group by group. The assembly knows the offsets. */
typedef struct low_groups {
    const uint32_t *w;
    const int16_t *x;
    float *y;
    const int32_t *starts; /* of sums of 2 bits: -2 times the sum of each chunk of x */
    uint32_t count;        /* of groups, at least 1 */
    uint32_t chunks, rest; /* whole ones, and quads of columns after them */
    float scale;           /* of x */
    int32_t total;         /* of x */
    uint32_t k, words;     /* of a group */
} low_groups;

static int32_t level_of(uint32_t bits, const uint32_t *group, uint32_t row, uint32_t column)
{
    uint32_t shift, flip, word = mur_low_place(bits, row, column, &shift, &flip);
    uint32_t code = (group[word] >> shift & (uint32_t)mur_low_most(bits)) ^ flip;

    return 2 * (int32_t)code - mur_low_most(bits);
}

static float scale_of(uint32_t bits, const uint32_t *group, uint32_t words, uint32_t row)
{
    uint32_t pair = group[words - mur_low_group(bits) / 2 + row / 2];

    return mur_half((uint16_t)(row % 2 ? pair >> 16 : pair));
}

/* any number of columns, on any machine */
static void multiply_long(uint32_t bits, const low_groups *g)
{
    const uint32_t *w = g->w;
    float *y = g->y;

    for (uint32_t i = 0; i < g->count; i++, w += g->words)
        for (uint32_t row = 0; row < mur_low_group(bits); row++) {
            int32_t sum = 0;

            for (uint32_t c = 0; c < g->k; c++)
                sum += level_of(bits, w, row, c) * g->x[c];
            *y++ = (float)sum * (g->scale * scale_of(bits, w, g->words, row));
        }
}

#if MUR_HAVE_DSP && defined(__ARM_FP) && (__ARM_FP & 4)

/* Two rows of a word, and their products. What is masked is multiplied an instruction later, so a
 * core that issues two at once (Cortex-M7) does both each cycle. */
#define MASK(to, word, turn) "and    " to ", r2, " word turn "\n\t"
#define ADD(sum, rows, x) "smlad  " sum ", " rows ", " x ", " sum "\n\t"

/* 18 instructions for 32 weights of 2 bits; r0: w, r1: x, r2: mask; sums: r3 to r6 */
#define QUAD_2 \
    "ldrd   r10, r11, [r1], #8\n\t" \
    "ldmia  r0!, {r8, r9}\n\t" MASK("r7", "r8", "") MASK("r12", "r8", ", ror #4") \
        ADD("r3", "r7", "r10") MASK("r7", "r8", ", ror #8") ADD("r4", "r12", "r10") \
            MASK("r12", "r8", ", ror #12") ADD("r5", "r7", "r10") MASK("r7", "r9", "") \
                ADD("r6", "r12", "r10") MASK("r12", "r9", ", ror #4") ADD("r3", "r7", "r11") \
                    MASK("r7", "r9", ", ror #8") ADD("r4", "r12", "r11") \
                        MASK("r12", "r9", ", ror #12") ADD("r5", "r7", "r11") \
                            ADD("r6", "r12", "r11")
#define START \
    "vmov   r12, s3\n\t" \
    "ldr    r7, [r12], #4\n\t" \
    "vmov   s3, r12\n\t" \
    "add    r3, r3, r7\n\t" \
    "add    r4, r4, r7\n\t" \
    "add    r5, r5, r7\n\t" \
    "add    r6, r6, r7\n\t"
#define FOLD_ONE(sum, low) \
    "sbfx   r7, " sum ", #0, #14\n\t" \
    "sub    " sum ", " sum ", r7\n\t" \
    "add    " low ", " low ", r7\n\t"
#define FOLD \
    "ldm    sp, {r8-r11}\n\t" FOLD_ONE("r3", "r8") FOLD_ONE("r4", "r9") FOLD_ONE("r5", "r10") \
        FOLD_ONE("r6", "r11") "stm    sp, {r8-r11}\n\t"
/* rows a and b of a pair, low in `low`, the other 2^14 times in `high`, to real sums in sa and sb
 */
#define LEVELS(low, high, sa, sb) \
    "add    " low ", r7, " low ", lsl #1\n\t" \
    "asr    " high ", " high ", #14\n\t" \
    "add    " high ", r7, " high ", lsl #1\n\t" \
    "vmov   " sa ", " sb ", " low ", " high "\n\t"
#define SCALE(sa, sb, scales) \
    "vcvtb.f32.f16 s1, " scales "\n\t" \
    "vcvtt.f32.f16 s2, " scales "\n\t" \
    "vcvt.f32.s32 " sa ", " sa "\n\t" \
    "vcvt.f32.s32 " sb ", " sb "\n\t" \
    "vmul.f32 s1, s1, s0\n\t" \
    "vmul.f32 s2, s2, s0\n\t" \
    "vmul.f32 " sa ", " sa ", s1\n\t" \
    "vmul.f32 " sb ", " sb ", s2\n\t"

/* At most MOST columns. A function of its own, for all registers. */
__attribute__((naked, noinline)) static void multiply_2(low_groups *g __attribute__((unused)))
{
    __asm__ volatile(
        "push   {r4-r11, lr}\n\t"
        "sub    sp, #20\n\t"
        "mov    lr, r0\n\t"
        "vldr   s0, [lr, #28]\n\t"
        "ldr    r0, [lr]\n\t"
        "movw   r2, #0xc003\n\t"
        "movt   r2, #0xc003\n"
        "1:\n\t"
        "ldr    r1, [lr, #4]\n\t"
        "vldr   s3, [lr, #12]\n\t"
        "ldr    r7, [lr, #20]\n\t"
        "movs   r3, #0\n\t"
        "mov    r4, r3\n\t"
        "mov    r5, r3\n\t"
        "mov    r6, r3\n\t"
        "strd   r3, r3, [sp]\n\t"
        "strd   r3, r3, [sp, #8]\n\t"
        "cmp    r7, #0\n\t"
        "beq.w  3f\n"
        "2:\n\t"
        "str    r7, [sp, #16]\n\t" START QUAD_2 QUAD_2 QUAD_2 QUAD_2 QUAD_2 QUAD_2 QUAD_2 QUAD_2
            FOLD "ldr    r7, [sp, #16]\n\t"
        "subs   r7, #1\n\t"
        "bne.w  2b\n"
        "3:\n\t"
        "ldr    r7, [lr, #24]\n\t"
        "cmp    r7, #0\n\t"
        "beq.w  5f\n\t"
        "str    r7, [sp, #16]\n\t" START "\n"
        "4:\n\t" QUAD_2 "ldr    r7, [sp, #16]\n\t"
        "subs   r7, #1\n\t"
        "str    r7, [sp, #16]\n\t"
        "bne.w  4b\n\t" FOLD "5:\n\t"
        "ldm    sp, {r8-r11}\n\t"
        "ldr    r7, [lr, #32]\n\t"
        "vldmia r0!, {s12-s15}\n\t" LEVELS("r8", "r3", "s4", "s5") LEVELS("r9", "r4", "s6", "s7")
            LEVELS("r10", "r5", "s8", "s9")
                LEVELS("r11", "r6", "s10", "s11") "ldr    r1, [lr, #8]\n\t" SCALE("s4", "s5", "s12")
                    SCALE("s6", "s7", "s13") SCALE("s8", "s9", "s14")
                        SCALE("s10", "s11", "s15") "ldr    r7, [lr, #16]\n\t"
                                                   "vstmia r1!, {s4-s11}\n\t"
                                                   "str    r1, [lr, #8]\n\t"
                                                   "subs   r7, #1\n\t"
                                                   "str    r7, [lr, #16]\n\t"
                                                   "bne.w  1b\n\t"
                                                   "add    sp, #20\n\t"
                                                   "pop    {r4-r11, pc}\n\t");
}

/* 16 instructions for 16 weights of 4 bits; sums with fewer and fewer rows: r3, r9, r11, r12 */
#define LESS(rows, mask) "and    " rows ", " rows ", " mask "\n\t"
#define QUAD_4 \
    "ldmia  r0!, {r4, r5}\n\t" \
    "ldrd   r8, r10, [r1], #8\n\t" ADD("r3", "r4", "r8") LESS("r4", "r2") ADD("r3", "r5", "r10") \
        LESS("r5", "r2") ADD("r9", "r4", "r8") LESS("r4", "#0x00ff00ff") ADD("r9", "r5", "r10") \
            LESS("r5", "#0x00ff00ff") ADD("r11", "r4", "r8") LESS("r4", "#0x000f000f") \
                ADD("r11", "r5", "r10") LESS("r5", "#0x000f000f") ADD("r12", "r4", "r8") \
                    ADD("r12", "r5", "r10")

__attribute__((naked, noinline)) static void multiply_4(low_groups *g __attribute__((unused)))
{
    __asm__ volatile("push   {r4-r11, lr}\n\t"
                     "mov    lr, r0\n\t"
                     "vldr   s0, [lr, #28]\n\t"
                     "ldr    r0, [lr]\n\t"
                     "movw   r2, #0x0fff\n\t"
                     "movt   r2, #0x0fff\n"
                     "1:\n\t"
                     "ldr    r1, [lr, #4]\n\t"
                     "ldr    r7, [lr, #20]\n\t"
                     "movs   r3, #0\n\t"
                     "mov    r9, r3\n\t"
                     "mov    r11, r3\n\t"
                     "mov    r12, r3\n\t"
                     "cmp    r7, #0\n\t"
                     "beq.w  3f\n"
                     "2:\n\t" QUAD_4 QUAD_4 QUAD_4 QUAD_4 QUAD_4 QUAD_4 QUAD_4 QUAD_4
                     "subs   r7, #1\n\t"
                     "bne.w  2b\n"
                     "3:\n\t"
                     "ldr    r7, [lr, #24]\n\t"
                     "cmp    r7, #0\n\t"
                     "beq.w  5f\n"
                     "4:\n\t" QUAD_4 "subs   r7, #1\n\t"
                     "bne    4b\n"
                     "5:\n\t"
                     "sub    r3, r3, r9\n\t"
                     "sub    r9, r9, r11\n\t"
                     "sub    r11, r11, r12\n\t"
                     "asr    r3, r3, #12\n\t"
                     "asr    r9, r9, #8\n\t"
                     "asr    r11, r11, #4\n\t"
                     "ldr    r7, [lr, #32]\n\t"
                     "vldmia r0!, {s12-s13}\n\t"
                     "add    r3, r7, r3, lsl #1\n\t"
                     "rsb    r7, r7, r7, lsl #4\n\t" /* 15 times */
                     "rsb    r9, r7, r9, lsl #1\n\t"
                     "rsb    r11, r7, r11, lsl #1\n\t"
                     "rsb    r12, r7, r12, lsl #1\n\t"
                     "vmov   s4, s5, r12, r11\n\t"
                     "vmov   s6, s7, r9, r3\n\t"
                     "ldr    r1, [lr, #8]\n\t" SCALE("s4", "s5", "s12")
                         SCALE("s6", "s7", "s13") "ldr    r7, [lr, #16]\n\t"
                                                  "vstmia r1!, {s4-s7}\n\t"
                                                  "str    r1, [lr, #8]\n\t"
                                                  "subs   r7, #1\n\t"
                                                  "str    r7, [lr, #16]\n\t"
                                                  "bne.w  1b\n\t"
                                                  "pop    {r4-r11, pc}\n\t");
}

static void multiply_groups(uint32_t bits, low_groups *g)
{
    if (g->k > MOST)
        multiply_long(bits, g);
    else if (bits == 2)
        multiply_2(g);
    else
        multiply_4(g);
}

#else

static void multiply_groups(uint32_t bits, low_groups *g)
{
    multiply_long(bits, g);
}

#endif

/* the sum of x, whose zeros end with a quad, and -2 times that of each chunk of it */
static int32_t sum_chunks(const int16_t *x, uint32_t k, int32_t *starts)
{
    int32_t total = 0;

    for (uint32_t first = 0; first < k; first += CHUNK) {
        int32_t sum = 0;

        for (uint32_t i = first; i < first + CHUNK && i < k; i += 4)
            sum = mur_smlad(mur_two(x + i + 2), 0x00010001,
                            mur_smlad(mur_two(x + i), 0x00010001, sum));
        if (k <= MOST)
            starts[first / CHUNK] = -2 * sum;
        total += sum;
    }
    return total;
}

static void multiply(uint32_t bits, const mur_matrix_low *matrix, uint32_t rows,
                     const void *vectors, const float *scales, float *out)
{
    uint32_t quads = (matrix->k + 3) / 4, group = mur_low_group(bits);
    uint32_t count = matrix->n / group, left = matrix->n % group;
    int32_t starts[MOST / CHUNK];
    const int16_t *x = vectors;

    for (; rows != 0; rows--, x += 4 * quads, scales++, out += matrix->n) {
        low_groups g = { matrix->packed,
                         x,
                         out,
                         starts,
                         count,
                         quads / (CHUNK / 4),
                         quads % (CHUNK / 4),
                         *scales,
                         sum_chunks(x, matrix->k, starts),
                         matrix->k,
                         mur_low_words(bits, matrix->k) };

        if (count != 0)
            multiply_groups(bits, &g);
        if (left != 0) {
            float last[8];

            g.w = (const uint32_t *)matrix->packed + (size_t)count * g.words;
            g.y = last;
            g.count = 1;
            multiply_groups(bits, &g);
            for (uint32_t i = 0; i < left; i++)
                out[count * group + i] = last[i];
        }
        for (uint32_t i = 0; matrix->bias && i < matrix->n; i++)
            out[i] += matrix->bias[i];
    }
}

void mur_dsp_linear_q2(const mur_matrix_low *matrix, uint32_t rows, const void *vectors,
                       const float *scales, float *out)
{
    multiply(2, matrix, rows, vectors, scales, out);
}

void mur_dsp_linear_q4(const mur_matrix_low *matrix, uint32_t rows, const void *vectors,
                       const float *scales, float *out)
{
    multiply(4, matrix, rows, vectors, scales, out);
}

static void embed(uint32_t bits, const mur_matrix_low *matrix, uint32_t rows, const int32_t *tokens,
                  float *out)
{
    uint32_t group = mur_low_group(bits), words = mur_low_words(bits, matrix->k);

    for (; rows != 0; rows--, tokens++, out += matrix->k) {
        uint32_t row = (uint32_t)*tokens % group;
        const uint32_t *w =
            (const uint32_t *)matrix->packed + (size_t)((uint32_t)*tokens / group) * words;
        float scale = scale_of(bits, w, words, row);

        for (uint32_t i = 0; i < matrix->k; i++)
            out[i] = (float)level_of(bits, w, row, i) * scale;
    }
}

void mur_dsp_embed_q2(const mur_matrix_low *matrix, uint32_t rows, const int32_t *tokens,
                      float *out)
{
    embed(2, matrix, rows, tokens, out);
}

void mur_dsp_embed_q4(const mur_matrix_low *matrix, uint32_t rows, const int32_t *tokens,
                      float *out)
{
    embed(4, matrix, rows, tokens, out);
}

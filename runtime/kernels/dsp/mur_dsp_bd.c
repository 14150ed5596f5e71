/* mur_dsp_bd.c - BlockDialect matrices on cores with SMLAD: a table has the two levels of every
 * byte, for each dialect, as half words. Two rows at once share what is loaded of the vector.
 *
 * A byte of codes, its two levels and SMLAD: three instructions for two weights, and six more for
 * every 64 that load the vector; blocks begin and end in a quarter of an instruction a weight. On
 * Cortex-M7, which issues two at once, a byte can be used after three cycles and levels after two:
 * bytes are loaded two pairs of columns before they are multiplied, and levels one.
 */
#include "mur_bd_arith.h"
#include "mur_decoder.h"
#include "mur_dsp.h"

#define MUR_BD_PAIR(a, b) ((uint32_t)(a)&0xffffu) | ((uint32_t)(b) << 16)

static const uint32_t pairs[MUR_BD_DIALECTS][256] = {
#include "mur_bd_pairs.h"
};

static inline uint32_t eight(const uint8_t *codes)
{
    return mur_four((const int8_t *)codes);
}

/* columns i and i + 1 of both rows */
#define STEP(i, shift) \
    do { \
        uint32_t two = mur_two(x + (i)); \
        s = mur_smlad(first[a >> (shift)&255], two, s); \
        t = mur_smlad(second[b >> (shift)&255], two, t); \
    } while (0)

/* a block of two rows, or of one twice; reads whole words of codes, whose columns beyond the
 * vector's are zeros there */
static inline void add_block(const uint8_t *const rows[2], uint32_t block, const int16_t *x,
                             uint32_t count, int32_t sums[2])
{
    const uint8_t *p = rows[0] + block * MUR_BD_BYTES, *q = rows[1] + block * MUR_BD_BYTES;
    const uint32_t *first = pairs[*p >> 4], *second = pairs[*q >> 4];
    int32_t s = 0, t = 0, factor = *p++ & MUR_BD_FACTOR, other = *q++ & MUR_BD_FACTOR;

    for (; count >= 8; count -= 8, x += 8, p += 4, q += 4) {
        uint32_t a = eight(p), b = eight(q);

        STEP(0, 0);
        STEP(2, 8);
        STEP(4, 16);
        STEP(6, 24);
    }
    if (count != 0) {
        uint32_t a = eight(p), b = eight(q);

        STEP(0, 0);
        STEP(2, 8);
        if (count > 4) {
            STEP(4, 16);
            STEP(6, 24);
        }
    }
    sums[0] += s * factor;
    sums[1] += t * other;
}

/* Rows of a matrix, two by two, times a vector. The assembly knows the offsets. */
typedef struct bd_pairs {
    const uint32_t (*pairs)[256]; /* the table */
    const int16_t *end;           /* of the vector's whole blocks */
    const int16_t *x;
    float *y;
    const uint16_t *row_scales; /* of row w; their address is a multiple of 4 */
    uint32_t count;             /* of pairs of rows, at least 1 */
    const uint8_t *w;           /* the first row */
    uint32_t row_bytes;
    float scale;    /* of x */
    uint32_t quads; /* fours of columns after the whole blocks */
    uint32_t k;
} bd_pairs;

/* rows [first, first + count) */
static void multiply_any(const bd_pairs *g, uint32_t first, uint32_t count)
{
    for (uint32_t n = first; n < first + count; n += 2) {
        uint32_t both = first + count - n < 2 ? 1 : 2;
        const uint8_t *w = g->w + n * g->row_bytes;
        const uint8_t *const rows[2] = { w, both == 2 ? w + g->row_bytes : w };
        int32_t sums[2] = { 0, 0 };

        for (uint32_t b = 0, i = 0; i < g->k; b++, i += MUR_BD_ELEMS)
            add_block(rows, b, g->x + i, mur_bd_count(g->k, i), sums);
        for (uint32_t r = 0; r < both; r++)
            g->y[n + r] = (float)sums[r] * (g->scale * mur_half(g->row_scales[n + r]));
    }
}

#if MUR_HAVE_DSP && defined(__ARM_FP) && (__ARM_FP & 4)

#define ADD(sum, levels, x) "smlad  " sum ", " levels ", " x ", " sum "\n\t"
#define SET(sum, levels, x) "smuad  " sum ", " levels ", " x "\n\t"
#define CODES(to, at) "ldrb   " to ", [" at "]\n\t"
#define LEVELS(to, table) "ldr    " to ", [" table ", " to ", lsl #2]\n\t"

/* headers to a and b, their tables, which begin at r10, to r3 and r4; the addresses move on */
#define BEGIN(a, b, bytes) \
    "ldrb   " a ", [r0], #" bytes "\n\t" \
    "ldrb   " b ", [r1], #" bytes "\n\t" \
    "and    r3, " a ", #0xf0\n\t" \
    "and    r4, " b ", #0xf0\n\t" \
    "add    r3, r10, r3, lsl #6\n\t" \
    "add    r4, r10, r4, lsl #6\n\t"
/* the block's sums times the factors in headers a and b are added to the rows'; r10 and r11 are the
 * tables and the end of the vector's whole blocks */
#define END(a, b) \
    "ldm    sp, {r8-r11}\n\t" \
    "and    " a ", " a ", #15\n\t" \
    "and    " b ", " b ", #15\n\t" \
    "mla    r8, r5, " a ", r8\n\t" \
    "mla    r9, r6, " b ", r9\n\t" \
    "strd   r8, r9, [sp]\n\t"

/* Two columns of both rows, whose levels are in a and b; meanwhile the next ones' from codes in c
 * and d, and codes after those to a and b. In this order Cortex-M7 waits for none of them. r0, r1:
 * codes, r3, r4: tables, r5, r6: sums */
#define TWO(MULTIPLY, x, a, b, c, d, after) \
    MULTIPLY("r5", a, x) \
    CODES(a, "r0, #-" after) \
    MULTIPLY("r6", b, x) CODES(b, "r1, #-" after) LEVELS(d, "r4") LEVELS(c, "r3")
#define FOUR(MULTIPLY, x, y, after, next) \
    TWO(MULTIPLY, x, "r7", "r12", "lr", "r11", after) TWO(ADD, y, "lr", "r11", "r7", "r12", next)
#define LOAD_X "ldmia  r2!, {r8-r10}\n\t"
/* A block's 32 columns; first what BEGIN does, between what the first columns need. Leaves the
 * headers in r3 and r4. */
#define BLOCK \
    "ldrb   r5, [r0], #17\n\t" \
    "ldrb   r6, [r1], #17\n\t" CODES("r7", "r0, #-16") \
        CODES("r12", \
              "r1, #-16") "and    r3, r5, #0xf0\n\t" \
                          "and    r4, r6, #0xf0\n\t" \
                          "add    r3, r10, r3, lsl #6\n\t" CODES( \
                              "lr", "r0, #-15") "add    r4, r10, r4, lsl #6\n\t" CODES("r11", \
                                                                                       "r1, #-15") \
                              LEVELS("r7", "r3") LEVELS("r12", "r4") LOAD_X \
                              FOUR(SET, "r8", "r9", "14", "13") TWO(ADD, "r10", "r7", "r12", "lr", \
                                                                    "r11", "12") LOAD_X \
                              TWO(ADD, "r8", "lr", "r11", "r7", "r12", "11") \
                                  FOUR(ADD, "r9", "r10", "10", "9") LOAD_X \
                                  FOUR(ADD, "r8", "r9", "8", "7") TWO(ADD, "r10", "r7", "r12", \
                                                                      "lr", "r11", "6") LOAD_X \
                                  TWO(ADD, "r8", "lr", "r11", "r7", "r12", "5") \
                                      FOUR(ADD, "r9", "r10", "4", "3") LOAD_X \
                                      FOUR(ADD, "r8", "r9", "2", "1") ADD("r5", "r7", "r10") \
                                          ADD("r6", "r12", \
                                              "r10") "ldr    r8, [r2], #4\n\t" LEVELS("lr", "r3") \
                                              LEVELS("r11", "r4") CODES("r3", "r0, #-17") \
                                                  CODES("r4", "r1, #-17") ADD("r5", "lr", "r8") \
                                                      ADD("r6", "r11", "r8")

/* sp: the rows' sums, then g. A function of its own, for all registers. */
__attribute__((naked, noinline)) static void multiply_pairs(const bd_pairs *g
                                                            __attribute__((unused)))
{
    __asm__ volatile(
        "push   {r4-r11, lr}\n\t"
        "sub    sp, #52\n\t"
        "ldm    r0, {r1-r10}\n\t"
        "add    r11, sp, #8\n\t"
        "stm    r11, {r1-r10}\n\t"
        "vldr   s0, [sp, #40]\n"
        "1:\n\t"
        "movs   r5, #0\n\t"
        "ldrd   r0, r7, [sp, #32]\n\t"
        "strd   r5, r5, [sp]\n\t"
        "ldrd   r10, r11, [sp, #8]\n\t"
        "adds   r1, r0, r7\n\t"
        "ldr    r2, [sp, #16]\n\t"
        "adds   r7, r1, r7\n\t"
        "str    r7, [sp, #32]\n\t"
        "cmp    r2, r11\n\t"
        "beq.w  3f\n"
        "2:\n\t" BLOCK END(
            "r3",
            "r4") "cmp    r2, r11\n\t"
                  "bne.w  2b\n"
                  "3:\n\t"
                  "ldr    r7, [sp, #44]\n\t"
                  "cbz    r7, 5f\n\t" BEGIN(
                      "r11", "lr",
                      "1") "mov    r10, r7\n\t"
                           "movs   r5, #0\n\t"
                           "movs   r6, #0\n"
                           "4:\n\t"
                           "ldrb   r7, [r0], #2\n\t"
                           "ldrb   r12, [r1], #2\n\t"
                           "ldrd   r8, r9, [r2], #8\n\t" LEVELS("r7", "r3") LEVELS("r12", "r4")
                               ADD("r5", "r7", "r8") CODES("r7", "r0, #-1") ADD("r6", "r12", "r8")
                                   CODES("r12", "r1, #-1") LEVELS("r7", "r3") LEVELS("r12", "r4")
                                       ADD("r5", "r7", "r9")
                                           ADD("r6", "r12",
                                               "r9") "subs   r10, #1\n\t"
                                                     "bne    4b\n\t"
                                                     "mov    r7, r11\n\t" END(
                                                         "r7", "lr") "5:\n\t"
                                                                     "ldrd   r0, r1, [sp, #20]\n\t"
                                                                     "vldm   sp, {s4-s5}\n\t"
                                                                     "vldmia r1!, {s3}\n\t"
                                                                     "ldr    r7, [sp, #28]\n\t"
                                                                     "vcvtb.f32.f16 s1, s3\n\t"
                                                                     "vcvtt.f32.f16 s2, s3\n\t"
                                                                     "vcvt.f32.s32 s4, s4\n\t"
                                                                     "vcvt.f32.s32 s5, s5\n\t"
                                                                     "vmul.f32 s1, s1, s0\n\t"
                                                                     "vmul.f32 s2, s2, s0\n\t"
                                                                     "subs   r7, #1\n\t"
                                                                     "vmul.f32 s4, s4, s1\n\t"
                                                                     "vmul.f32 s5, s5, s2\n\t"
                                                                     "str    r7, [sp, #28]\n\t"
                                                                     "vstmia r0!, {s4-s5}\n\t"
                                                                     "strd   r0, r1, [sp, #20]\n\t"
                                                                     "bne.w  1b\n\t"
                                                                     "add    sp, #52\n\t"
                                                                     "pop    {r4-r11, pc}\n\t");
}

#else

static void multiply_pairs(const bd_pairs *g)
{
    multiply_any(g, 0, 2 * g->count);
}

#endif

void mur_dsp_linear_bd(const mur_matrix_low *matrix, uint32_t rows, const void *vectors,
                       const float *scales, float *out)
{
    uint32_t k = matrix->k, n = matrix->n;
    const int16_t *x = vectors;

    for (; rows != 0; rows--, x += MUR_DSP_VECTOR_BYTES(k) / 2, scales++, out += n) {
        const bd_pairs g = { pairs,
                             x + k / MUR_BD_ELEMS * MUR_BD_ELEMS,
                             x,
                             out,
                             matrix->packed,
                             n / 2,
                             mur_bd_row(matrix, 0),
                             mur_bd_row_bytes(k),
                             *scales,
                             (k % MUR_BD_ELEMS + 3) / 4,
                             k };

        if (n >= 2)
            multiply_pairs(&g);
        if (n % 2 != 0)
            multiply_any(&g, n - 1, 1);
        for (uint32_t i = 0; matrix->bias && i < n; i++)
            out[i] += matrix->bias[i];
    }
}

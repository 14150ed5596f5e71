/* mur_dsp_bd.c - BlockDialect matrices on cores with SMLAD: a table has the two levels of every
 * byte, for each dialect, as half words. Two rows at once share what is loaded of the vector.
 *
 * A byte of codes, its two levels and SMLAD: three instructions for two weights, and four more for
 * every 64 that load the vector; blocks begin and end in a third of an instruction a weight.
 */
#include "mur_bd_arith.h"
#include "mur_decoder.h"
#include "mur_dsp.h"

#define PAIR(a, b) ((uint32_t)(a)&0xffffu) | ((uint32_t)(b) << 16)
#define PAIRS(y, a, b, c, d, e, f, g, h) \
    PAIR(a, y), PAIR(b, y), PAIR(c, y), PAIR(d, y), PAIR(e, y), PAIR(f, y), PAIR(g, y), \
        PAIR(h, y), PAIR(-(a), y), PAIR(-(b), y), PAIR(-(c), y), PAIR(-(d), y), PAIR(-(e), y), \
        PAIR(-(f), y), PAIR(-(g), y), PAIR(-(h), y)

static const uint32_t pairs[MUR_BD_DIALECTS][256] = {
#define MUR_DIALECT(id, a, b, c, d, e, f, g, h) \
    [id] = { PAIRS(a, a, b, c, d, e, f, g, h),    PAIRS(b, a, b, c, d, e, f, g, h), \
             PAIRS(c, a, b, c, d, e, f, g, h),    PAIRS(d, a, b, c, d, e, f, g, h), \
             PAIRS(e, a, b, c, d, e, f, g, h),    PAIRS(f, a, b, c, d, e, f, g, h), \
             PAIRS(g, a, b, c, d, e, f, g, h),    PAIRS(h, a, b, c, d, e, f, g, h), \
             PAIRS(-(a), a, b, c, d, e, f, g, h), PAIRS(-(b), a, b, c, d, e, f, g, h), \
             PAIRS(-(c), a, b, c, d, e, f, g, h), PAIRS(-(d), a, b, c, d, e, f, g, h), \
             PAIRS(-(e), a, b, c, d, e, f, g, h), PAIRS(-(f), a, b, c, d, e, f, g, h), \
             PAIRS(-(g), a, b, c, d, e, f, g, h), PAIRS(-(h), a, b, c, d, e, f, g, h) },
#include "mur_dialect.def"
#undef MUR_DIALECT
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
static inline void add_block(const uint8_t *const rows[2], uint32_t headers, uint32_t block,
                             const int16_t *x, uint32_t count, int32_t sums[2])
{
    const uint8_t *p = rows[0] + headers + block * (MUR_BD_ELEMS / 2);
    const uint8_t *q = rows[1] + headers + block * (MUR_BD_ELEMS / 2);
    const uint32_t *first = pairs[rows[0][block] >> 4], *second = pairs[rows[1][block] >> 4];
    int32_t s = 0, t = 0;

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
    sums[0] += s * (1 << (rows[0][block] & 15));
    sums[1] += t * (1 << (rows[1][block] & 15));
}

/* Rows of a matrix, two by two, times a vector. The assembly knows the offsets. */
typedef struct bd_pairs {
    const uint8_t *w; /* the first row */
    const int16_t *x;
    float *y;
    const uint16_t *row_scales;   /* of row w; their address is a multiple of 4 */
    const uint32_t (*pairs)[256]; /* the table */
    uint32_t row_bytes, headers;
    uint32_t count;         /* of pairs of rows, at least 1 */
    uint32_t blocks, quads; /* whole blocks of columns, and fours of columns after them */
    float scale;            /* of x */
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
            add_block(rows, g->headers, b, g->x + i, mur_bd_count(g->k, i), sums);
        for (uint32_t r = 0; r < both; r++)
            g->y[n + r] = (float)sums[r] * (g->scale * mur_half(g->row_scales[n + r]));
    }
}

#if MUR_HAVE_DSP && defined(__ARM_FP) && (__ARM_FP & 4)

/* two columns of both rows, their codes at p and q; r3, r4: tables, r5, r6: sums */
#define TWO(p, q, x) \
    "ldrb   r7, " p "\n\t" \
    "ldrb   r12, " q "\n\t" \
    "ldr    r7, [r3, r7, lsl #2]\n\t" \
    "ldr    r12, [r4, r12, lsl #2]\n\t" \
    "smlad  r5, r7, " x ", r5\n\t" \
    "smlad  r6, r12, " x ", r6\n\t"
#define EIGHT(a, b, c, d) \
    "ldmia  r2!, {r8-r11}\n\t" TWO("[r0, #" a "]", "[r1, #" a "]", "r8") \
        TWO("[r0, #" b "]", "[r1, #" b "]", "r9") TWO("[r0, #" c "]", "[r1, #" c "]", "r10") \
            TWO("[r0, #" d "]", "[r1, #" d "]", "r11")
/* the next headers to lr, their tables to r3 and r4, sums 0 */
#define BEGIN \
    "ldr    r12, [sp, #16]\n\t" \
    "ldr    r7, [sp]\n\t" \
    "ldrd   r9, r8, [r12, #16]\n\t" \
    "movs   r5, #0\n\t" \
    "movs   r6, #0\n\t" \
    "ldrb   r10, [r7, r8]\n\t" \
    "ldrb   lr, [r7], #1\n\t" \
    "and    r4, r10, #0xf0\n\t" \
    "and    r3, lr, #0xf0\n\t" \
    "str    r7, [sp]\n\t" \
    "add    r4, r9, r4, lsl #6\n\t" \
    "add    r3, r9, r3, lsl #6\n\t" \
    "orr    lr, lr, r10, lsl #8\n\t"
/* the block's sums, shifted, are added to the rows' */
#define END \
    "ldrd   r8, r9, [sp, #8]\n\t" \
    "and    r7, lr, #15\n\t" \
    "ubfx   r12, lr, #8, #4\n\t" \
    "lsl    r5, r5, r7\n\t" \
    "lsl    r6, r6, r12\n\t" \
    "add    r8, r8, r5\n\t" \
    "add    r9, r9, r6\n\t" \
    "strd   r8, r9, [sp, #8]\n\t"

/* sp: next header of the first row, end of the whole blocks' vector, two sums, g. A function of its
 * own, for all registers. */
__attribute__((naked, noinline)) static void multiply_pairs(bd_pairs *g __attribute__((unused)))
{
    __asm__ volatile("push   {r4-r11, lr}\n\t"
                     "sub    sp, #20\n\t"
                     "str    r0, [sp, #16]\n"
                     "1:\n\t"
                     "ldr    r12, [sp, #16]\n\t"
                     "ldr    r2, [r12, #4]\n\t"
                     "ldr    r7, [r12]\n\t"
                     "ldrd   r8, r9, [r12, #20]\n\t"
                     "ldr    r10, [r12, #32]\n\t"
                     "movs   r5, #0\n\t"
                     "str    r7, [sp]\n\t"
                     "add    r0, r7, r9\n\t"
                     "add    r1, r0, r8\n\t"
                     "add    r7, r2, r10, lsl #6\n\t"
                     "strd   r5, r5, [sp, #8]\n\t"
                     "str    r7, [sp, #4]\n\t"
                     "cmp    r10, #0\n\t"
                     "beq.w  3f\n"
                     "2:\n\t" BEGIN EIGHT("0", "1", "2", "3") EIGHT("4", "5", "6", "7")
                         EIGHT("8", "9", "10", "11") EIGHT("12", "13", "14", "15") END
                     "ldr    r7, [sp, #4]\n\t"
                     "adds   r0, #16\n\t"
                     "adds   r1, #16\n\t"
                     "cmp    r2, r7\n\t"
                     "bne.w  2b\n"
                     "3:\n\t"
                     "ldr    r12, [sp, #16]\n\t"
                     "ldr    r7, [r12, #36]\n\t"
                     "cmp    r7, #0\n\t"
                     "beq.w  5f\n\t" BEGIN "ldr    r10, [r12, #36]\n"
                     "4:\n\t"
                     "ldrd   r8, r9, [r2], #8\n\t" TWO("[r0], #1", "[r1], #1", "r8")
                         TWO("[r0], #1", "[r1], #1", "r9") "subs   r10, #1\n\t"
                                                           "bne    4b\n\t" END "5:\n\t"
                                                           "ldr    r12, [sp, #16]\n\t"
                                                           "vldr   s4, [sp, #8]\n\t"
                                                           "vldr   s5, [sp, #12]\n\t"
                                                           "ldrd   r0, r1, [r12, #8]\n\t"
                                                           "vldr   s0, [r12, #40]\n\t"
                                                           "vldmia r1!, {s3}\n\t"
                                                           "vcvt.f32.s32 s4, s4\n\t"
                                                           "vcvt.f32.s32 s5, s5\n\t"
                                                           "vcvtb.f32.f16 s1, s3\n\t"
                                                           "vcvtt.f32.f16 s2, s3\n\t"
                                                           "vmul.f32 s1, s1, s0\n\t"
                                                           "vmul.f32 s2, s2, s0\n\t"
                                                           "vmul.f32 s4, s4, s1\n\t"
                                                           "vmul.f32 s5, s5, s2\n\t"
                                                           "vstmia r0!, {s4-s5}\n\t"
                                                           "strd   r0, r1, [r12, #8]\n\t"
                                                           "ldr    r7, [r12]\n\t"
                                                           "ldr    r8, [r12, #20]\n\t"
                                                           "ldr    r9, [r12, #28]\n\t"
                                                           "add    r7, r7, r8, lsl #1\n\t"
                                                           "str    r7, [r12]\n\t"
                                                           "subs   r9, #1\n\t"
                                                           "str    r9, [r12, #28]\n\t"
                                                           "bne.w  1b\n\t"
                                                           "add    sp, #20\n\t"
                                                           "pop    {r4-r11, pc}\n\t");
}

#else

static void multiply_pairs(bd_pairs *g)
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
        const bd_pairs whole = { mur_bd_row(matrix, 0),
                                 x,
                                 out,
                                 matrix->packed,
                                 pairs,
                                 mur_bd_row_bytes(k),
                                 mur_bd_headers(k),
                                 n / 2,
                                 k / MUR_BD_ELEMS,
                                 (k % MUR_BD_ELEMS + 3) / 4,
                                 *scales,
                                 k };
        bd_pairs g = whole; /* whose pointers move on */

        if (n >= 2)
            multiply_pairs(&g);
        if (n % 2 != 0)
            multiply_any(&whole, n - 1, 1);
        for (uint32_t i = 0; matrix->bias && i < n; i++)
            out[i] += matrix->bias[i];
    }
}

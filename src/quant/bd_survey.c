/* bd_survey.c - the error of every grid, for blocks beside each other.
 *
 * With y = |w| in units of the grid, moving the elements at or above the midpoint of two
 * neighbouring values a < b from a to b lowers the squared error by
 *
 *     (b - a) * G(a + b),   G(t) = sum of importance * (2y - t) over elements with 2y >= t
 *
 * and every a + b is an integer. So one census G of a block prices all dialects, all kinds and the
 * neighbouring exponents (whose boundaries are the same ones doubled) with a few products each.
 *
 * A lane of a vector is a block: every lane adds in the order in which one block alone would.
 */
#include "quant/bd_survey.h"

#include <math.h>
#include <string.h>

#include "base/vector_loop.h"

enum { LANES = MUC_BD_LANES, TRIED = MUC_BD_TRIED_EXPONENTS };
enum { Q_LIMIT = 64 }; /* 2y stays below in units of the lowest exponent */

typedef muc_bd_lanes lanes;
typedef int64_t wide_lanes __attribute__((vector_size(8 * LANES)));
typedef float float_lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t int_lanes __attribute__((vector_size(4 * LANES)));
/* importance and importance * y */
typedef double tally __attribute__((vector_size(16), may_alias));

#define EACH(index, count) \
    _Pragma("GCC unroll 16") for (unsigned index = 0; index < (count); index++)
/* a where the mask has ones, else b */
#define PICK(mask, a, b) ((lanes)(((mask) & (wide_lanes)(a)) | (~(mask) & (wide_lanes)(b))))

/* of lanes 0, 1, ... beside each other in two vectors, the first of each pair, and the second */
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define ODD(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
/* such pairs of the lower lanes of two vectors, and of the upper ones */
#define LOW_PAIRS(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH_PAIRS(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
/* part of the functions that have versions, and so of each version */
#define INLINE inline __attribute__((always_inline))

/* ---- the census ---- */

typedef struct census {
    float scale[LANES]; /* from weights to units of the lowest exponent */
    lanes unit;       /* the inverse's square, by which all is multiplied: a power of two, exact */
    wide_lanes tried; /* exponents: 2 or 3 */
    lanes energy;     /* sum of importance * y^2 */
    lanes g[Q_LIMIT];
} census;

/* the elements of eight blocks, lane by lane */
typedef float_lanes elements[MUC_BD_ELEMS];

/* eight elements of eight blocks, to eight blocks' elements */
static INLINE void transpose(const float *const from[LANES], unsigned i, float_lanes out[LANES])
{
    float_lanes a[LANES], b[LANES];

    EACH(l, LANES) memcpy(&a[l], from[l] + i, sizeof(a[l]));
    EACH(l, LANES / 2)
    {
        b[2 * l] = LOW_PAIRS(a[l], a[l + 4]);
        b[2 * l + 1] = HIGH_PAIRS(a[l], a[l + 4]);
    }
    EACH(l, LANES / 2)
    {
        a[2 * l] = LOW_PAIRS(b[l], b[l + 4]);
        a[2 * l + 1] = HIGH_PAIRS(b[l], b[l + 4]);
    }
    EACH(l, LANES / 2)
    {
        out[2 * l] = LOW_PAIRS(a[l], a[l + 4]);
        out[2 * l + 1] = HIGH_PAIRS(a[l], a[l + 4]);
    }
}

static INLINE void interleave(const float *const *w, unsigned count, unsigned n, elements out)
{
    static const float zeros[MUC_BD_ELEMS];
    const float *of[LANES];
    unsigned i = 0;

    for (unsigned l = 0; l < LANES; l++)
        of[l] = l < count ? w[l] : zeros;
    for (; i + LANES <= n; i += LANES)
        transpose(of, i, out + i);
    for (; i < n; i++)
        EACH(l, LANES) out[i][l] = of[l][i];
}

/* the exponents to try */
static INLINE void choose_exponents(const elements w, unsigned n, int64_t first[LANES], census *out)
{
    int_lanes most = { 0 };

    for (unsigned i = 0; i < n; i++) {
        int_lanes bits = (int_lanes)w[i] & 0x7fffffff; /* ordered as what they stand for */

        most = ((bits > most) & bits) | ((bits <= most) & most);
    }
    for (unsigned l = 0; l < LANES; l++) {
        unsigned e16 = (unsigned)(muc_f16_of_f32(muc_f32_of_bits((uint32_t)most[l])) >> 10);
        unsigned middle = e16 > 2 ? e16 - 2 : 0;

        first[l] = middle > 0 ? middle - 1 : 0;
        out->tried[l] = middle + 2 - first[l];
        out->scale[l] = muc_bd_per_unit((unsigned)first[l]);
        out->unit[l] = (double)muc_bd_unit((unsigned)first[l]) * muc_bd_unit((unsigned)first[l]);
    }
}

static INLINE void count_elements(const elements w, unsigned count, const float *importance,
                                  unsigned n, census *out, tally *by_t)
{
    lanes energy = { 0 }, pairs[MUC_BD_ELEMS][2];
    int_lanes at[MUC_BD_ELEMS];
    float_lanes scale;

    memcpy(&scale, out->scale, sizeof(scale));
    for (unsigned i = 0; i < n; i++) {
        float_lanes size = (float_lanes)((int_lanes)w[i] & 0x7fffffff) * scale;
        lanes weight = importance ? out->unit * (double)importance[i] : out->unit;
        lanes y = __builtin_convertvector(size, lanes), part = weight * y;

        at[i] = __builtin_convertvector(2 * size, int_lanes) * LANES;
        pairs[i][0] = LOW_PAIRS(weight, part);
        pairs[i][1] = HIGH_PAIRS(weight, part);
        energy += part * y;
    }
    out->energy = energy;
    for (unsigned i = 0; i < n; i++) {
        const tally *pair = (const tally *)pairs[i];
        const int32_t *t = (const int32_t *)&at[i];

        if (count == LANES)
            EACH(l, LANES) by_t[t[l] + (int)l] += pair[l];
        else
            for (unsigned l = 0; l < count; l++)
                by_t[t[l] + (int)l] += pair[l];
    }
}

/* G from the tallies of each t */
static INLINE void add_up(lanes by_t[Q_LIMIT][2], census *out)
{
    lanes low = { 0 }, high = { 0 }; /* count and sum of lane 0, of lane 1, ... */

    for (unsigned t = Q_LIMIT; t-- > 0;) {
        low += by_t[t][0];
        high += by_t[t][1];
        out->g[t] = 2 * ODD(low, high) - (double)t * EVEN(low, high);
    }
}

static INLINE void take_census(const float *const *w, unsigned count, const float *importance,
                               unsigned n, int64_t first[LANES], census *out)
{
    lanes by_t[Q_LIMIT][2];
    elements all;

    for (unsigned t = 0; t < Q_LIMIT; t++) /* faster than memset */
        by_t[t][0] = by_t[t][1] = (lanes){ 0 };
    interleave(w, count, n, all);
    choose_exponents(all, n, first, out);
    count_elements(all, count, importance, n, out, (tally *)by_t);
    add_up(by_t, out);
}

/* ---- the least of the errors ---- */

/* and the grid that has it: which exponent of those tried, then which dialect */
typedef struct least {
    lanes error;
    wide_lanes grid;
} least;

enum { EXPONENT_AT = 4 }; /* bit of a grid's number */

static INLINE void take_less(const lanes *error, unsigned exponent, unsigned dialect, least *out)
{
    wide_lanes less = *error < out->error;

    out->error = PICK(less, *error, out->error);
    out->grid = (less & (exponent << EXPONENT_AT | dialect)) | (~less & out->grid);
}

static INLINE void keep_least(const least *found, const int64_t first[LANES], muc_bd_least *out)
{
    wide_lanes exponent, dialect = found->grid & (MUC_BD_DIALECTS - 1);

    memcpy(&exponent, first, sizeof(exponent));
    exponent += found->grid >> EXPONENT_AT;
    out->error = found->error;
    memcpy(out->dialect, &dialect, sizeof(dialect));
    memcpy(out->exponent, &exponent, sizeof(exponent));
}

/* ---- the errors ---- */

static INLINE void error_after(const census *of, const lanes *gain, lanes *error)
{
    lanes left = of->energy - *gain;

    *error = PICK(left > 0, left, (lanes){ 0 });
}

/* Of an exponent that is not tried, which is the third of some, no error is less than INFINITY. */
static INLINE void begin_gain(const census *of, unsigned shift, lanes *gain)
{
    *gain = (lanes){ 0 };
    if (shift == TRIED - 1)
        *gain = PICK(shift < of->tried, *gain, (lanes){ 0 } - INFINITY);
}

/* A dialect's boundaries where it may differ from the others, from index 4 on: where each lies, and
 * how far apart the values on its sides are. */
typedef struct upper_boundaries {
    uint8_t at[3], step[3];
} upper_boundaries;
static const upper_boundaries differing[MUC_BD_DIALECTS] = {
#define MUR_DIALECT(id, m0, m1, m2, m3, m4, m5, m6, m7) \
    [id] = { { m4 + m5, m5 + m6, m6 + m7 }, { m5 - m4, m6 - m5, m7 - m6 } },
#include "mur_dialect.def"
#undef MUR_DIALECT
};
enum { AGREED_BOUNDARIES = 4 };

/* Unrolled, so that the sums that dialects begin with in common are made once. */
static INLINE void b4_errors(const census *of, unsigned shift, muc_bd_survey *out, least *found)
{
    const double far = 1u << shift; /* from one value to the next, a power of two: exact */
    lanes agreed;

    begin_gain(of, shift, &agreed);
    EACH(i, AGREED_BOUNDARIES) agreed += far * of->g[(2 * i + 1) << shift]; /* of i and i + 1 */
    EACH(d, MUC_BD_DIALECTS)
    {
        lanes gain = agreed;

        EACH(i, 3)
        if (differing[d].at[i] << shift < Q_LIMIT)
            gain += far * differing[d].step[i] * of->g[differing[d].at[i] << shift];
        error_after(of, &gain, &out->b4[shift][d]);
        take_less(&out->b4[shift][d], shift, d, found);
    }
}

/* B5 has dialect 0 alone */
static INLINE void b5_errors(const census *of, unsigned shift, muc_bd_survey *out, least *found)
{
    lanes gain;

    begin_gain(of, shift, &gain);
    for (unsigned m = 0; m < 15 && (2 * m + 1) << shift < Q_LIMIT; m++)
        gain += (double)(1u << shift) * of->g[(2 * m + 1) << shift];
    error_after(of, &gain, &out->b5[shift]);
    take_less(&out->b5[shift], shift, 0, found);
}

MUC_WIDE_LOOP void muc_bd_survey_blocks(uint32_t kinds, const float *const *w, unsigned count,
                                        const float *importance, unsigned n, muc_bd_survey *out)
{
    least b4 = { .error = (lanes){ 0 } + INFINITY }, b5 = b4;
    const lanes none = { 0 };
    census of;

    take_census(w, count, importance, n, out->first, &of);
    error_after(&of, &none, &out->zeros);
    out->beyond = of.g[1];
    if ((kinds & (1 << MUC_BD_B4 | 1 << MUC_BD_R)) != 0) {
        EACH(shift, TRIED) b4_errors(&of, shift, out, &b4);
        keep_least(&b4, out->first, &out->least_b4);
    }
    if ((kinds & 1 << MUC_BD_B5) != 0) {
        EACH(shift, TRIED) b5_errors(&of, shift, out, &b5);
        keep_least(&b5, out->first, &out->least_b5);
    }
}

/* errors: [TRIED][dialects] of either block */
static INLINE void share(int64_t first[2][LANES], const lanes *upper, const lanes *lower,
                         unsigned dialects, muc_bd_least *out)
{
    least found = { .error = (lanes){ 0 } + INFINITY };
    wide_lanes exponent[2];

    memcpy(exponent, first, sizeof(exponent));
    EACH(e, TRIED)
    {
        wide_lanes below = exponent[0] + e - exponent[1]; /* where the lower has it, or not */

        EACH(d, dialects)
        {
            lanes error = (lanes){ 0 } + INFINITY;

            EACH(l, TRIED) error = PICK(below == l, lower[l * dialects + d], error);
            error += upper[e * dialects + d];
            take_less(&error, e, d, &found);
        }
    }
    keep_least(&found, first[0], out);
}

MUC_WIDE_LOOP void muc_bd_survey_shared(muc_bd_kind kind, const muc_bd_survey *upper,
                                        const muc_bd_survey *lower, muc_bd_least *out)
{
    int64_t first[2][LANES];

    memcpy(first[0], upper->first, sizeof(first[0]));
    memcpy(first[1], lower->first, sizeof(first[1]));
    if (kind == MUC_BD_B5)
        share(first, upper->b5, lower->b5, 1, out);
    else
        share(first, upper->b4[0], lower->b4[0], MUC_BD_DIALECTS, out);
}

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
typedef double tally __attribute__((vector_size(16)));

#define EACH(index, count) \
    _Pragma("GCC unroll 16") for (unsigned index = 0; index < (count); index++)
/* a where the mask has ones, else b */
#define PICK(mask, a, b) ((lanes)(((mask) & (wide_lanes)(a)) | (~(mask) & (wide_lanes)(b))))

/* of lanes 0, 1, ... beside each other in two vectors, the first of each pair, and the second */
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define ODD(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
/* part of the functions that have versions, and so of each version */
#define INLINE inline __attribute__((always_inline))

/* ---- the census ---- */

typedef struct census {
    float scale[LANES]; /* from weights to units of the lowest exponent */
    lanes unit;         /* its inverse */
    wide_lanes tried;   /* exponents: 2 or 3 */
    lanes energy;       /* sum of importance * y^2 */
    lanes g[Q_LIMIT];
} census;

/* the elements of eight blocks, lane by lane */
typedef float_lanes elements[MUC_BD_ELEMS];

static INLINE void interleave(const float *const *w, unsigned count, unsigned n, elements out)
{
    static const float zeros[MUC_BD_ELEMS];
    const float *of[LANES];

    for (unsigned l = 0; l < LANES; l++)
        of[l] = l < count ? w[l] : zeros;
    for (unsigned i = 0; i < n; i++)
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
        out->unit[l] = (double)muc_bd_unit((unsigned)first[l]);
    }
}

static INLINE void count_elements(const elements w, unsigned count, const float *importance,
                                  unsigned n, census *out, tally *by_t)
{
    float_lanes scale;
    lanes energy = { 0 };

    memcpy(&scale, out->scale, sizeof(scale));
    for (unsigned i = 0; i < n; i++) {
        float_lanes size = (float_lanes)((int_lanes)w[i] & 0x7fffffff) * scale;
        int_lanes t = __builtin_convertvector(2 * size, int_lanes);
        double weight = importance ? (double)importance[i] : 1.0;
        lanes y = __builtin_convertvector(size, lanes), part = weight * y;
        int32_t at[LANES];
        double parts[LANES];

        memcpy(at, &t, sizeof(at));
        memcpy(parts, &part, sizeof(parts));
        energy += part * y;
        if (count == LANES)
            EACH(l, LANES) by_t[at[l] * LANES + (int)l] += (tally){ weight, parts[l] };
        else
            for (unsigned l = 0; l < count; l++)
                by_t[at[l] * LANES + (int)l] += (tally){ weight, parts[l] };
    }
    out->energy = energy;
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

/* ---- the errors ---- */

/* back from the census's units to squared weights, of the error that a gain leaves */
#define ERROR_AFTER(of, gain, error) \
    { \
        lanes left_ = ((of)->energy - (gain)) * (of)->unit * (of)->unit; \
        error = PICK(left_ > 0, left_, (lanes){ 0 }); \
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

static INLINE void b4_errors(const census *of, muc_bd_survey *out)
{
    for (unsigned shift = 0; shift < TRIED; shift++) {
        wide_lanes tried = shift < of->tried;
        lanes agreed = { 0 };

        for (unsigned i = 0; i < AGREED_BOUNDARIES; i++) /* between i and i + 1 */
            agreed += of->g[(2 * i + 1) << shift];
        for (unsigned d = 0; d < MUC_BD_DIALECTS; d++) {
            lanes gain = agreed, error;

            for (unsigned i = 0; i < 3; i++)
                if (differing[d].at[i] << shift < Q_LIMIT)
                    gain += (double)differing[d].step[i] * of->g[differing[d].at[i] << shift];
            ERROR_AFTER(of, gain * (double)(1u << shift), error)
            out->b4[shift][d] = PICK(tried, error, (lanes){ 0 } + INFINITY);
        }
    }
}

/* B5 has dialect 0 alone */
static INLINE void b5_errors(const census *of, muc_bd_survey *out)
{
    for (unsigned shift = 0; shift < TRIED; shift++) {
        lanes gain = { 0 }, error;

        for (unsigned m = 0; m < 15 && (2 * m + 1) << shift < Q_LIMIT; m++)
            gain += of->g[(2 * m + 1) << shift];
        ERROR_AFTER(of, gain * (double)(1u << shift), error)
        out->b5[shift] = PICK(shift < of->tried, error, (lanes){ 0 } + INFINITY);
    }
}

/* ---- the least of them ---- */

typedef struct least {
    lanes error;
    wide_lanes dialect, exponent;
} least;

static INLINE void take_less(const lanes *error, unsigned dialect, const wide_lanes *exponent,
                             least *out)
{
    wide_lanes less = *error < out->error;

    out->error = PICK(less, *error, out->error);
    out->dialect = (less & dialect) | (~less & out->dialect);
    out->exponent = (less & *exponent) | (~less & out->exponent);
}

static INLINE void keep_least(const least *found, muc_bd_least *out)
{
    out->error = found->error;
    memcpy(out->dialect, &found->dialect, sizeof(out->dialect));
    memcpy(out->exponent, &found->exponent, sizeof(out->exponent));
}

static INLINE void least_error(const lanes *errors, unsigned dialects, const int64_t *first,
                               muc_bd_least *out)
{
    least found = { .error = (lanes){ 0 } + INFINITY };
    wide_lanes exponent;

    memcpy(&exponent, first, sizeof(exponent));
    for (unsigned e = 0; e < TRIED; e++, exponent += 1)
        for (unsigned d = 0; d < dialects; d++)
            take_less(&errors[e * dialects + d], d, &exponent, &found);
    keep_least(&found, out);
}

MUC_WIDE_LOOP void muc_bd_survey_blocks(uint32_t kinds, const float *const *w, unsigned count,
                                        const float *importance, unsigned n, muc_bd_survey *out)
{
    census of;

    take_census(w, count, importance, n, out->first, &of);
    ERROR_AFTER(&of, (lanes){ 0 }, out->zeros)
    out->beyond = of.g[1];
    if ((kinds & (1 << MUC_BD_B4 | 1 << MUC_BD_R)) != 0) {
        b4_errors(&of, out);
        least_error(out->b4[0], MUC_BD_DIALECTS, out->first, &out->least_b4);
    }
    if ((kinds & 1 << MUC_BD_B5) != 0) {
        b5_errors(&of, out);
        least_error(out->b5, 1, out->first, &out->least_b5);
    }
}

MUC_WIDE_LOOP void muc_bd_survey_shared(muc_bd_kind kind, const muc_bd_survey *upper,
                                        const muc_bd_survey *lower, muc_bd_least *out)
{
    unsigned dialects = kind == MUC_BD_B5 ? 1 : MUC_BD_DIALECTS;
    const lanes *errors[2] = { kind == MUC_BD_B5 ? upper->b5 : upper->b4[0],
                               kind == MUC_BD_B5 ? lower->b5 : lower->b4[0] };
    least found = { .error = (lanes){ 0 } + INFINITY };
    wide_lanes exponent[2];

    memcpy(&exponent[0], upper->first, sizeof(exponent[0]));
    memcpy(&exponent[1], lower->first, sizeof(exponent[1]));
    for (unsigned e = 0; e < TRIED; e++, exponent[0] += 1) {
        wide_lanes below = exponent[0] - exponent[1]; /* where the lower block has it, or not */

        for (unsigned d = 0; d < dialects; d++) {
            lanes error = (lanes){ 0 } + INFINITY;

            for (unsigned l = 0; l < TRIED; l++)
                error = PICK(below == l, errors[1][l * dialects + d], error);
            error += errors[0][e * dialects + d];
            take_less(&error, d, &exponent[0], &found);
        }
    }
    keep_least(&found, out);
}

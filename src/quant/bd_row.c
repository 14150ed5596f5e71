/* bd_row.c - rows of blocks whose elements are int8 numbers, for kernels that multiply those. */
#include <math.h>

#include "quant/bd_table.h"
#include "quant/blockdialect.h"

enum { SHIFTS = 4, LEAST_EXPONENT = -16, MOST_EXPONENT = 12 };

/* Elements nearest to w / scale on a grid, ties to the larger magnitude; returns the squared error
 * in units of the scale. */
static double round_block(unsigned dialect, unsigned shift, unsigned count, const double *w,
                          int8_t *levels)
{
    double error = 0;

    for (unsigned i = 0; i < count; i++) {
        double size = fabs(w[i]), best = INFINITY;

        for (unsigned j = 0; j < 8; j++) {
            int level = muc_bd_dialects[dialect][j] * (1 << shift);
            double e = fabs(size - level);

            if (!(e <= best))
                continue;
            best = e;
            levels[i] = (int8_t)(w[i] < 0 ? -level : level);
        }
        error += best * best;
    }
    return error;
}

static void choose_block(unsigned count, const double *w, int8_t *levels)
{
    double least = INFINITY;
    int8_t found[MUC_BD_ELEMS];

    for (unsigned shift = 0; shift < SHIFTS; shift++)
        for (unsigned dialect = 0; dialect < MUC_BD_DIALECTS; dialect++) {
            double error = round_block(dialect, shift, count, w, found);

            if (!(error < least))
                continue;
            least = error;
            for (unsigned i = 0; i < count; i++)
                levels[i] = found[i];
        }
}

void muc_bd_row_levels(size_t k, const float *w, int8_t *levels, float *scale)
{
    int exponent;
    float most = 0;

    for (size_t i = 0; i < k; i++)
        most = fabsf(w[i]) > most ? fabsf(w[i]) : most;
    /* the largest lies in 64..128 */
    (void)frexpf(most, &exponent);
    exponent = most > 0 ? exponent - 7 : LEAST_EXPONENT;
    exponent = exponent < LEAST_EXPONENT  ? LEAST_EXPONENT
               : exponent > MOST_EXPONENT ? MOST_EXPONENT
                                          : exponent;
    *scale = ldexpf(1, exponent);
    for (size_t i = 0; i < k; i += MUC_BD_ELEMS) {
        unsigned count = (unsigned)(k - i < MUC_BD_ELEMS ? k - i : MUC_BD_ELEMS);
        double scaled[MUC_BD_ELEMS];

        for (unsigned j = 0; j < count; j++)
            scaled[j] = (double)w[i + j] / (double)*scale;
        choose_block(count, scaled, levels + i);
    }
}

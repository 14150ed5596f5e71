/* feedback.h - rounding a matrix so that its results change least on the inputs that it will see.
 *
 * A column w of a matrix [n][k] (its row in the published form) contributes x . w for every input
 * x. Rounded to q on a grid, with e = w - q, the squared error over all inputs is e H e, H = sum x
 * x^T. Elements are rounded one after the other, each correcting for the errors made before it
 * (Frantar et al., "GPTQ", arXiv 2210.17323), then again for those made after it, until nothing
 * changes. What the inputs themselves have lost by earlier quantization is partly made up for
 * beforehand.
 */
#ifndef MUC_FEEDBACK_H
#define MUC_FEEDBACK_H

#include "quant/bd_sequence.h"

/* What is known of a matrix's inputs: sums over all rows x, and of the rows f that x would be if
 * nothing had been quantized. */
typedef struct muc_moments {
    uint32_t k;
    double *h;     /* [k][k], sum of x x^T; owned, as cross is */
    double *cross; /* [k][k], sum of (f - x) x^T, or NULL: f is x */
} muc_moments;

muc_status muc_moments_new(muc_context *ctx, uint32_t k, bool cross, muc_moments *out);
/* Adds rows [rows][k]; f is NULL if there is no cross. */
muc_status muc_moments_add(muc_context *ctx, muc_moments *moments, const float *x, const float *f,
                           size_t rows);
void muc_moments_free(muc_moments *moments);

typedef struct muc_feedback muc_feedback;

/* Takes over the moments' arrays, also when it fails: MUC_MALFORMED if they are not finite. */
muc_status muc_feedback_new(muc_context *ctx, muc_moments *moments, muc_feedback **out);
void muc_feedback_free(muc_feedback *feedback); /* NULL is fine */

/* A sequence of no more bytes than muc_bd_quantize would give: block by block of the same kind
 * and sharing, with grids and elements chosen for the inputs. The matrix's k is the moments'; its
 * importance is not used. */
muc_status muc_feedback_quantize(muc_context *ctx, const muc_feedback *feedback,
                                 const muc_bd_matrix *matrix, const muc_bd_rule *rule,
                                 muc_bd_sequence *out);

/* The value of a grid that is nearest to value, for element j. */
typedef double muc_feedback_grid(void *arg, size_t j, double value);

/* Rounds a column w [k] to values [k] of any grid in the same way. error: the objective of what is
 * left, against the column with what its inputs have lost made up for. */
muc_status muc_feedback_round(muc_context *ctx, const muc_feedback *feedback, const float *w,
                              muc_feedback_grid *grid, void *arg, double *values, double *error);

/* The objective: e H e, damping included, for an error e [k]. */
double muc_feedback_error(const muc_feedback *feedback, const double *e);

#endif

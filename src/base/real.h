/* real.h - elementary functions from IEEE + - * / alone.
 *
 * libm's last bit differs from one machine to the next; these do not, so that tables, reference
 * results and perplexities are the same bytes everywhere. Errors below 2 units in the last place
 * of a double on the stated ranges. Compile with -ffp-contract=off.
 */
#ifndef MUC_REAL_H
#define MUC_REAL_H

#include <stddef.h>

double muc_exp(double x);               /* 0 below -745, infinity above 710 */
void muc_exps(double *x, size_t count); /* muc_exp of each, to the bit */
double muc_log(double x);               /* x > 0 */
double muc_log_of_any(double x);        /* -infinity at 0, NaN below */
double muc_pow(double x, double y);     /* x > 0 */
double muc_sin(double x);               /* |x| < 2^30 */
double muc_cos(double x);
double muc_expm1(double x); /* e^x - 1 */
double muc_log1p(double x); /* log(1 + x), x > -1 */
double muc_tanh(double x);
double muc_erf(double x);
double muc_atan(double x);

/* A NaN of either stays. */
static inline double muc_max(double x, double y)
{
    return x > y || x != x ? x : y;
}

static inline double muc_min(double x, double y)
{
    return x < y || x != x ? x : y;
}

#endif

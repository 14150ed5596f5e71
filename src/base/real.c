/* real.c - computes exp, log, sin and their relatives: argument reduction with a split constant,
 * then a Taylor series short enough to be exact to the last place and long enough to be so on the
 * whole reduced range. */
#include "base/real.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/vector_loop.h"

#if FLT_EVAL_METHOD != 0
#error "double arithmetic must round at every step (no x87)"
#endif

static const double LN2_HIGH = 6.93147180369123816490e-01, LN2_LOW = 1.90821492927058770002e-10;
static const double PI_2_1 = 1.57079632673412561417e+00, PI_2_2 = 6.07710050630396597660e-11;
static const double PI_2_3 = 2.02226624879595063154e-21;

static double power_of_two(int n) /* -1022..1023 */
{
    uint64_t bits = (uint64_t)(n + 1023) << 52;
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

double muc_exp(double x)
{
    double n, r, term = 1, sum = 0;
    int k;

    if (!(x > -745))
        return x != x ? x : 0;
    if (x > 709.78)
        return HUGE_VAL;
    n = floor(x / (LN2_HIGH + LN2_LOW) + 0.5);
    r = x - n * LN2_HIGH - n * LN2_LOW; /* |r| <= 0.35 */
    for (int i = 1; i <= 14; i++) {
        term = term * r / i;
        sum += term;
    }
    k = (int)n;
    sum += 1;
    return k < -1000 ? sum * power_of_two(k + 200) * power_of_two(-200)
                     : sum * power_of_two(k / 2) * power_of_two(k - k / 2);
}

enum { LANES = 16 }; /* of muc_exp, at once */

#define EACH_LANE for (int j = 0; j < LANES; j++)

/* -690 < x <= 709.78 */
MUC_WIDE_LOOP static void exp_lanes(double x[LANES])
{
    double n[LANES], r[LANES], term[LANES], sum[LANES];

    EACH_LANE n[j] = x[j] / (LN2_HIGH + LN2_LOW) + 0.5;
    EACH_LANE n[j] = (int)n[j] - (n[j] < (int)n[j]); /* floor */
    EACH_LANE r[j] = x[j] - n[j] * LN2_HIGH - n[j] * LN2_LOW;
    EACH_LANE term[j] = 1;
    EACH_LANE sum[j] = 0;
    for (int i = 1; i <= 14; i++) {
        EACH_LANE term[j] = term[j] * r[j] / i;
        EACH_LANE sum[j] += term[j];
    }
    EACH_LANE x[j] = (sum[j] + 1) * power_of_two((int)n[j] / 2);
    EACH_LANE x[j] *= power_of_two((int)n[j] - (int)n[j] / 2);
}

void muc_exps(double *x, size_t count)
{
    for (size_t i = 0, m; i < count; i += m) {
        double of[LANES] = { 0 };
        bool plain = true;

        m = count - i < LANES ? count - i : LANES;
        memcpy(of, x + i, m * sizeof(*x));
        EACH_LANE plain &= of[j] > -690 && of[j] <= 709.78;
        if (plain)
            exp_lanes(of);
        for (size_t j = 0; j < m; j++)
            x[i + j] = plain ? of[j] : muc_exp(x[i + j]);
    }
}

double muc_log(double x)
{
    int exponent;
    double m = frexp(x, &exponent), s, square, power, sum = 0;

    if (m < 0.70710678118654752440) {
        m *= 2;
        exponent--;
    }
    s = (m - 1) / (m + 1); /* log m = 2 atanh s, |s| < 0.172 */
    square = s * s;
    power = s * square;
    for (int i = 3; i <= 25; i += 2, power *= square)
        sum += power / i;
    return exponent * LN2_HIGH + (2 * s + (2 * sum + exponent * LN2_LOW));
}

double muc_log_of_any(double x)
{
    if (x != x || x == INFINITY)
        return x;
    return x > 0 ? muc_log(x) : x == 0 ? -INFINITY : NAN;
}

double muc_pow(double x, double y)
{
    return muc_exp(y * muc_log(x));
}

static double sine_series(double r) /* |r| <= pi/4 */
{
    double square = r * r, term = r, sum = 0;

    for (int i = 2; i <= 20; i += 2) {
        term = -term * square / (i * (i + 1));
        sum += term;
    }
    return r + sum;
}

static double cosine_series(double r)
{
    double square = r * r, term = 1, sum = 0;

    for (int i = 1; i <= 21; i += 2) {
        term = -term * square / (i * (i + 1));
        sum += term;
    }
    return 1 + sum;
}

static double circular(double x, unsigned quarter)
{
    double n = floor(x / (PI_2_1 + PI_2_2) + 0.5);
    double r = x - n * PI_2_1 - n * PI_2_2 - n * PI_2_3, value;

    quarter = (quarter + (unsigned)((int64_t)n & 3)) & 3;
    value = quarter & 1 ? cosine_series(r) : sine_series(r);
    return quarter & 2 ? -value : value;
}

double muc_sin(double x)
{
    return circular(x, 0);
}

double muc_cos(double x)
{
    return circular(x, 1);
}

double muc_expm1(double x)
{
    double term = 1, sum = 0;

    if (!(x > -0.5 && x < 0.5))
        return muc_exp(x) - 1;
    for (int i = 1; i <= 18; i++) {
        term = term * x / i;
        sum += term;
    }
    return sum;
}

double muc_log1p(double x)
{
    double s, square, power, sum = 0;

    if (!(x > -0.25 && x < 0.5))
        return muc_log(1 + x);
    s = x / (2 + x); /* 2 atanh s, |s| <= 1/5 */
    square = s * s;
    power = s * square;
    for (int i = 3; i <= 25; i += 2, power *= square)
        sum += power / i;
    return 2 * (s + sum);
}

double muc_tanh(double x)
{
    double e;

    if (x != x || x > 22 || x < -22)
        return x != x ? x : x > 0 ? 1 : -1;
    e = muc_expm1(2 * x);
    return e / (e + 2);
}

double muc_erf(double x)
{
    /* exp(-x^2) * sum of 2^n x^(2n + 1) / (1 * 3 * .. (2n + 1)): all terms of one sign */
    double term = x, sum = x;

    if (x != x || x > 6 || x < -6)
        return x != x ? x : x > 0 ? 1 : -1;
    for (int i = 3; i < 400 && fabs(term) > fabs(sum) * 1e-17; i += 2) {
        term = term * (2 * x * x) / i;
        sum += term;
    }
    return sum * muc_exp(-x * x) * 1.12837916709551257390;
}

double muc_atan(double x)
{
    double a = fabs(x), offset = 0, square, power, sum = 0;
    int flip = 0;

    if (x != x)
        return x;
    if (a > 1) {
        a = 1 / a;
        flip = 1;
    }
    if (a > 0.41421356237309504880) { /* tan(pi/8): atan a = pi/4 + atan((a - 1) / (a + 1)) */
        a = (a - 1) / (a + 1);
        offset = PI_2_1 / 2 + PI_2_2 / 2;
    }
    square = a * a;
    power = a;
    for (int i = 3; i <= 45; i += 2) {
        power = -power * square;
        sum += power / i;
    }
    a = offset + (a + sum);
    if (flip)
        a = PI_2_1 - (a - PI_2_2);
    return x < 0 ? -a : a;
}

/* real.c - argument reduction with a split constant, then a Taylor series short enough to be
 * exact to the last place and long enough to be so on the whole reduced range. */
#include "base/real.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

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

/* power.c - x^y of any types of numbers. */
#include <math.h>

#include "base/real.h"
#include "mur_real_wide.h"
#include "ref/walk.h"

static double product_power(double x, unsigned n)
{
    double result = 1;

    for (; n > 0; n >>= 1, x *= x)
        if (n & 1)
            result *= x;
    return result;
}

double muc_ref_pow(double x, double y)
{
    bool whole = y == floor(y), odd = whole && fabs(y) < 9e15 && fmod(y, 2) != 0;
    double size = fabs(x), result;

    if (y == 0 || x == 1)
        return 1;
    if (x != x || y != y)
        return NAN;
    if (whole && fabs(y) <= 64) {
        result = product_power(x, (unsigned)fabs(y));
        return y < 0 ? 1 / result : result;
    }
    if (isinf(y) && size == 1)
        return 1;
    if (x < 0 && !whole)
        return NAN;
    if (size == 0 || isinf(size) || isinf(y))
        result = (size > 1) == (y > 0) ? INFINITY : 0;
    else
        result = muc_pow(size, y);
    return x < 0 && odd ? -result : result;
}

/* out[i] = a's element to the power q; steps of 0 or more */
typedef void power_run(const void *a, size_t a_step, const double *q, size_t q_step, void *out,
                       size_t n);

/* x^y of integers, wrapped; negative powers truncate */
static uint64_t integer_power(uint64_t x, int64_t y)
{
    uint64_t result = 1;

    if (y < 0)
        return x == 1 ? 1 : x != UINT64_MAX ? 0 : y & 1 ? x : 1;
    for (; y > 0; y >>= 1, x *= x)
        if (y & 1)
            result *= x;
    return result;
}

/* whole exponents of integers stay exact; others go through double, as b does */
static double integer_to_real(double x, double y)
{
    double value = muc_ref_pow(x, y);

    return value != value || fabs(value) >= 9e18 ? 0 : trunc(value);
}

#define POWER(argument, id, type, value) \
    static void power_##id(const void *a, size_t a_step, const double *q, size_t q_step, \
                           void *out, size_t n) \
    { \
        const type *p = a; \
        type *to = out; \
        for (size_t i = 0; i < n; i++, p += a_step, q += q_step) { \
            type x = *p; \
            double y = *q; \
            to[i] = (type)(value); \
        } \
    }
#define POWER_F32(argument, id, type) POWER(argument, id, type, mur_real_pow(x, (float)y))
#define POWER_REAL(argument, id, type) POWER(argument, id, type, muc_ref_pow((double)x, y))
#define POWER_INTEGER(argument, id, type) \
    POWER(argument, id, type, \
          y == floor(y) && fabs(y) < 1e18 ? (int64_t)integer_power((uint64_t)x, (int64_t)y) \
                                          : (int64_t)integer_to_real((double)x, y))
POWER_F32(, F32, float)
POWER_REAL(, F64, double)
MUC_REF_INTEGERS(POWER_INTEGER, )

#define ENTRY(name, id, type) [MUC_##id] = name##_##id,

typedef struct work {
    power_run *f;
    const uint8_t *bases;
    const double *exponents;
    uint8_t *out;
    size_t width, done;
} work;

static void run(void *arg, size_t n, const size_t *at, const size_t *step)
{
    work *w = arg;

    w->f(w->bases + at[0] * w->width, step[0], w->exponents + at[1], step[1],
         w->out + w->done * w->width, n);
    w->done += n;
}

muc_status muc_kernel_pow(const muc_ref_call *call)
{
    static power_run *const powers[MUC_DTYPE_COUNT] = { MUC_REF_NUMBERS(ENTRY, power) };
    muc_ref_value exponents = *call->inputs[1];
    const muc_ref_value *const values[] = { call->inputs[0], &exponents };
    muc_ref_walk walk;
    void *reals;
    work w;

    MUC_TRY(muc_ref_reserve(call, exponents.elements * sizeof(double), &reals));
    for (size_t i = 0; i < exponents.elements; i++)
        ((double *)reals)[i] = muc_ref_real(call->inputs[1], i);
    exponents.dtype = MUC_F64;
    exponents.read = reals;
    w = (work){ powers[call->output->dtype], call->inputs[0]->read,       reals,
                call->output->data,          muc_ref_width(call->output), 0 };
    muc_ref_walk_of(call->output, values, 2, &walk);
    muc_ref_walk_each(&walk, run, &w);
    return MUC_OK;
}

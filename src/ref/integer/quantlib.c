/* quantlib.c - QuantLib's integer operators, element by element and row by row. Pure functions:
 * what generated code and device kernels must equal bit for bit. */
#include "ref/integer/quantlib.h"

enum { LIMIT = (1 << 30) - 1 };

static int32_t clip(int64_t x, int32_t lo, int32_t hi)
{
    return (int32_t)(x < lo ? lo : x > hi ? hi : x);
}

/* the low 32 bits, as two's complement */
static int32_t wrap(uint64_t x)
{
    uint32_t low = (uint32_t)x;

    return low <= INT32_MAX ? (int32_t)low : -(int32_t)(UINT32_MAX - low) - 1;
}

/* x >> shift of a negative number is the implementation's business */
int64_t muc_quantlib_shift_right(int64_t x, unsigned shift)
{
    return x >= 0 ? x >> shift : -((-(x + 1)) >> shift) - 1;
}

static int32_t row_max(const int32_t *x, size_t n)
{
    int32_t max = x[0];

    for (size_t i = 1; i < n; i++)
        max = x[i] > max ? x[i] : max;
    return max;
}

int32_t muc_quantlib_requant(int32_t x, int32_t mul, int32_t add, unsigned shift, int32_t lo,
                             int32_t hi)
{
    int64_t half = shift ? (int64_t)1 << (shift - 1) : 0;

    return clip(muc_quantlib_shift_right((int64_t)x * mul + add + half, shift), lo, hi);
}

uint32_t muc_quantlib_sqrt(uint64_t x)
{
    uint64_t root = 0;

    for (unsigned bit = 32; bit-- > 0;) {
        uint64_t trial = root | (uint64_t)1 << bit;

        if (trial * trial <= x)
            root = trial;
    }
    return (uint32_t)root;
}

void muc_quantlib_rmsnorm(const int32_t *x, const int32_t *weight, size_t n, unsigned shift,
                          int32_t lo, int32_t hi, int32_t *out)
{
    uint64_t squares = 0;
    int64_t s;

    for (size_t i = 0; i < n; i++)
        squares += (uint64_t)((int64_t)x[i] * x[i]);
    s = muc_quantlib_sqrt(squares / n + 1);
    for (size_t i = 0; i < n; i++)
        out[i] = clip(muc_quantlib_shift_right((int64_t)x[i] * weight[i] / s, shift), lo, hi);
}

void muc_quantlib_layernorm(const int32_t *x, const int32_t *weight, const int32_t *bias, size_t n,
                            unsigned shift, int32_t *out)
{
    uint64_t squares = 0;
    int64_t mean = 0, s;

    for (size_t i = 0; i < n; i++)
        mean += x[i];
    mean /= (int64_t)n;
    for (size_t i = 0; i < n; i++)
        squares += (uint64_t)((x[i] - mean) * (x[i] - mean));
    s = muc_quantlib_sqrt(squares / n + 1);
    for (size_t i = 0; i < n; i++) {
        uint64_t y =
            (uint64_t)muc_quantlib_shift_right((x[i] - mean) * weight[i] / s + bias[i], shift);

        out[i] = (int32_t)(y & 0x7f) - (int32_t)(y & 0x80);
    }
}

/* e of one element, below 2^33 */
static int64_t softmax_term(int32_t below_max, const int32_t coefficients[3])
{
    int32_t z = below_max / coefficients[2] < 31 ? below_max / coefficients[2] : 31;
    int64_t p = (int64_t)z * coefficients[2] - below_max + coefficients[0];

    return (p * p + coefficients[1]) >> z;
}

void muc_quantlib_softmax(const int32_t *x, const int32_t coefficients[3], size_t n, int32_t levels,
                          int32_t *out)
{
    int32_t max = row_max(x, n);
    int64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += softmax_term(max - x[i], coefficients);
    for (size_t i = 0; i < n; i++)
        out[i] = sum ? (int32_t)(softmax_term(max - x[i], coefficients) * (levels - 1) / sum) : 0;
}

/* 256 * 2^-(below / 32), the exponent rounded */
static unsigned ita_shift(int32_t below)
{
    int32_t shift = (below + 16) >> 5;

    return shift < 31 ? (unsigned)shift : 31;
}

void muc_quantlib_itamax(const int32_t *x, size_t n, int32_t levels, int32_t *out)
{
    int32_t max = row_max(x, n), inverse;
    int64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += 256 >> ita_shift(max - x[i]);
    inverse = (int32_t)((int64_t)(levels - 1) * 256 / sum);
    for (size_t i = 0; i < n; i++)
        out[i] = inverse >> ita_shift(max - x[i]);
}

void muc_quantlib_itapartialmax(const int32_t *x, size_t n, int32_t levels, size_t group,
                                int32_t *out)
{
    int32_t max = x[0], inverse;
    int64_t sum = 0;

    for (size_t g = 0; g < n; g += group) {
        size_t width = n - g < group ? n - g : group;
        int32_t group_max = row_max(x + g, width);

        if (group_max > max) {
            sum >>= ita_shift(group_max - max);
            max = group_max;
        }
        for (size_t i = g; i < g + width; i++)
            sum += 256 >> ita_shift(max - x[i]);
    }
    /* the row's last group may have shifted the sum to nothing, but added 256 for its maximum */
    inverse = (int32_t)((int64_t)(levels / 2 - 1) * 256 / sum);
    for (size_t i = 0; i < n; i++)
        out[i] = inverse >> ita_shift(max - x[i]);
}

int32_t muc_quantlib_hardswish(int32_t x, const int32_t coefficients[3])
{
    int64_t shifted = (int64_t)x + coefficients[1];
    int32_t gate = clip(shifted, 0, coefficients[2] > 0 ? coefficients[2] : 0);

    return wrap((uint64_t)x * ((uint64_t)gate * (uint64_t)coefficients[0]));
}

int32_t muc_quantlib_gelu(int32_t x, const int32_t coefficients[2])
{
    int64_t size = x < 0 ? -(int64_t)x : x;
    int64_t q = size < -coefficients[0] ? size : -coefficients[0];
    int64_t l = coefficients[1] - (q + coefficients[0]) * (q + coefficients[0]);

    if (x == 0)
        l = 0;
    else if (x < 0)
        l = -l;
    return wrap((uint64_t)x * (uint64_t)muc_quantlib_shift_right(coefficients[1] + l, 1));
}

int32_t muc_quantlib_div(int32_t a, int32_t b, int64_t delta, int64_t eta, int64_t eps)
{
    int64_t d = eta * clip(b, -LIMIT, LIMIT) + eps, half = muc_quantlib_shift_right(d, 1);
    int64_t numerator = delta * eta * clip(a, -LIMIT, LIMIT);

    if (d == 0)
        return 0;
    return wrap((uint64_t)((numerator + (numerator < 0 ? -half : half)) / d));
}

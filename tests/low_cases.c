#include "low_cases.h"
#include "xorshift.h"
#include "mur_real.h"

#include <string.h>

#define LOW_KERNEL(isa, bytes, quantize, form, silu) \
    { \
#isa, bytes, mur_##quantize##_quantize, mur_##isa##_linear, mur_##form##_embed, \
            mur_##form##_matrix_bytes, mur_##form##_matrix_pack, \
            { mur_##isa##_linear_q2, mur_##isa##_linear_q4 }, \
              { mur_##isa##_embed_q2, mur_##isa##_embed_q4 }, mur_##isa##_low_bytes, \
                mur_##isa##_low_pack, mur_##isa##_linear_bd, mur_##silu##_f32 \
    }

const low_kernel low_kernels[] = {
    LOW_KERNEL(ref, 1, ref, ref, silu),
    LOW_KERNEL(dsp, 2, dsp, dsp, silu),
    LOW_KERNEL(mve, 1, mve, ref, mve_silu),
    LOW_KERNEL(plain, 1, ref, ref, silu),
};
const uint32_t low_kernels_count = sizeof(low_kernels) / sizeof(*low_kernels);

enum { ROWS = 5, MOST_N = 35, MOST_K = 520, MOST_SIZE = 7000, GUARD = 16 };
enum { BLOCKS = 5 }; /* instead of a number of bits */

typedef struct matrix {
    uint32_t bits, n, k;
    int8_t levels[MOST_SIZE];
    uint16_t scales[MOST_N];
    float real_scales[MOST_N], bias[MOST_N];
    int8_t x[ROWS * MOST_K];
} matrix;

static uint32_t state;

static uint32_t chance(void)
{
    return random_next32(&state);
}

/* what a 16-bit float stands for */
static float half(uint16_t bits)
{
    int exponent = bits >> 10;
    float x = (float)((bits & 1023) + (exponent ? 1024 : 0));

    for (int i = exponent ? exponent : 1; i < 25; i++)
        x *= 0.5f;
    for (int i = 25; i < exponent; i++)
        x *= 2.0f;
    return x;
}

/* a row in blocks, each on a grid of its own */
static void fill_blocks(int8_t *levels, uint32_t k, int extreme)
{
    static const uint8_t magnitudes[][8] = {
#define MUR_DIALECT(id, a, b, c, d, e, f, g, h) { a, b, c, d, e, f, g, h },
#include "mur_dialect.def"
#undef MUR_DIALECT
    };

    for (uint32_t i = 0; i < k; i++) {
        static uint32_t dialect, shift;
        int level;

        if (i % 32 == 0) {
            dialect = extreme ? 0 : chance() % 16;
            shift = extreme ? 3 : chance() % 4;
        }
        level = magnitudes[dialect][extreme ? 7 : chance() % 8] << shift;
        levels[i] = (int8_t)(chance() & 1 && !extreme ? -level : level);
    }
}

/* extreme: the largest numbers of one sign everywhere */
static void fill(matrix *m, int extreme)
{
    int most = m->bits == 8 ? 127 : (1 << m->bits) - 1;

    for (uint32_t i = 0; i < m->n * m->k; i++) {
        int level = m->bits == 8 ? (int)(chance() % 255) - 127
                                 : 2 * (int)(chance() % (1u << m->bits)) - most;

        m->levels[i] = (int8_t)(extreme ? (i / m->k % 2 ? most : -most) : level);
    }
    for (uint32_t r = 0; m->bits == BLOCKS && r < m->n; r++)
        fill_blocks(m->levels + r * m->k, m->k, extreme);
    for (uint32_t i = 0; i < m->n; i++) {
        m->scales[i] = (uint16_t)(1 + chance() % 0x7bff); /* subnormal ones too */
        m->real_scales[i] = half(m->scales[i]);
        m->bias[i] = (float)(int16_t)chance() / 77.0f;
    }
    for (uint32_t i = 0; i < ROWS * m->k; i++)
        m->x[i] = (int8_t)(extreme ? (i / m->k % 2 ? 127 : -127) : (int)(chance() % 255) - 127);
}

static uint64_t packed[(MOST_SIZE + 16 * MOST_K) / 8];
static float found[ROWS * MOST_K + GUARD];

static const float guard = 1234.5f;

static void clear_found(void)
{
    for (uint32_t i = 0; i < sizeof(found) / sizeof(*found); i++)
        found[i] = guard;
}

/* vectors in the kernel's form */
static const void *vectors_of(const low_kernel *kernel, const matrix *m)
{
    static union {
        int16_t wide[ROWS * (MOST_K + 4)];
        int8_t narrow[ROWS * (MOST_K + 4)];
    } v;
    uint32_t padded = (m->k + 3) / 4 * 4;

    memset(&v, 0, sizeof(v));
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t i = 0; i < m->k; i++)
            if (kernel->element_bytes == 1)
                v.narrow[r * padded + i] = m->x[r * m->k + i];
            else
                v.wide[r * padded + i] = m->x[r * m->k + i];
    return &v;
}

static void run(const low_kernel *kernel, const matrix *m, const float *scales,
                const int32_t *tokens, int with_bias)
{
    const mur_matrix_q8 whole = { m->n, m->k, packed, m->real_scales, with_bias ? m->bias : NULL };
    const mur_matrix_low low = { m->n, m->k, packed, with_bias ? m->bias : NULL };
    const void *vectors = vectors_of(kernel, m);

    clear_found();
    if (m->bits == 8) {
        kernel->pack_q8(m->n, m->k, m->levels, packed);
        if (tokens)
            kernel->look_up_q8(&whole, ROWS, tokens, found);
        else
            kernel->multiply_q8(&whole, ROWS, vectors, scales, found);
        return;
    }
    if (m->bits == BLOCKS) {
        mur_bd_pack(m->n, m->k, m->levels, m->scales, packed);
        if (tokens)
            mur_ref_embed_bd(&low, ROWS, tokens, found);
        else
            kernel->multiply_bd(&low, ROWS, vectors, scales, found);
        return;
    }
    kernel->pack(m->bits, m->n, m->k, m->levels, m->scales, packed);
    if (tokens)
        kernel->look_up[m->bits / 4](&low, ROWS, tokens, found);
    else
        kernel->multiply[m->bits / 4](&low, ROWS, vectors, scales, found);
}

/* the first number that is wrong, or `count` */
static uint32_t differs(const float *expected, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (memcmp(&expected[i], &found[i], sizeof(*expected)) != 0)
            return i;
    return memcmp(&found[count], &guard, sizeof(guard)) != 0 ? count + 1 : count;
}

static uint32_t check_product(const low_kernel *kernel, const matrix *m, int with_bias,
                              uint32_t *count)
{
    static float expected[ROWS * MOST_N];
    const float scales[ROWS] = { 0.013f, 2.5f, 0.25f, 77, 1 };

    run(kernel, m, scales, NULL, with_bias);
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t n = 0; n < m->n; n++) {
            int32_t sum = 0;
            float y;

            for (uint32_t i = 0; i < m->k; i++)
                sum += m->levels[n * m->k + i] * m->x[r * m->k + i];
            y = (float)sum * (scales[r] * m->real_scales[n]);
            expected[r * m->n + n] = with_bias ? y + m->bias[n] : y;
        }
    *count = ROWS * m->n;
    return differs(expected, *count);
}

static uint32_t check_look_up(const low_kernel *kernel, const matrix *m, uint32_t *count)
{
    static float expected[ROWS * MOST_K];
    int32_t tokens[ROWS] = { (int32_t)m->n - 1 };

    for (uint32_t r = 1; r < ROWS; r++)
        tokens[r] = (int32_t)(chance() % m->n);
    run(kernel, m, NULL, tokens, 0);
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t i = 0; i < m->k; i++)
            expected[r * m->k + i] =
                (float)m->levels[(uint32_t)tokens[r] * m->k + i] * m->real_scales[tokens[r]];
    *count = ROWS * m->k;
    return differs(expected, *count);
}

/* against ref's, with numbers that are flushed to zero by what may flush, and zeros alone */
static uint32_t check_vectors(const low_kernel *kernel, uint32_t k, uint32_t *count)
{
    static int8_t expected[MOST_K + 4];
    static union {
        int16_t wide[MOST_K + 4];
        int8_t narrow[MOST_K + 4];
    } v;
    static float x[MOST_K];
    float scale, right;
    uint32_t round = chance() % 3;

    for (uint32_t i = 0; i < k; i++) {
        x[i] = round == 2 ? 0 : (float)(int32_t)chance() * 0x1p-31f;
        if (round == 1 && i % 3 != 0)
            x[i] *= 0x1p-100f * 0x1p-30f;
    }
    mur_ref_quantize(1, k, x, expected, &right);
    kernel->quantize(1, k, x, &v, &scale);
    *count = (k + 3) / 4 * 4;
    for (uint32_t i = 0; i < *count; i++)
        if ((kernel->element_bytes == 1 ? v.narrow[i] : v.wide[i]) != expected[i])
            return i;
    return memcmp(&scale, &right, sizeof(scale)) == 0 ? *count : *count + 1;
}

/* in place, against its definition */
static uint32_t check_silu(const low_kernel *kernel, uint32_t k, uint32_t *count)
{
    static const float some[] = { 0, 1e-40f, 1e-20f, 86.9f, 87.1f, 88.1f, 1e30f, 3e38f };
    static float x[MOST_K], y[MOST_K];
    uint32_t round = chance() % 3;

    for (uint32_t i = 0; i < k; i++) {
        x[i] = (float)(int32_t)chance() * (round == 0 ? 0x1p-28f : 0x1p-24f);
        if (round == 2)
            x[i] = some[chance() % (sizeof(some) / sizeof(*some))] * (i % 2 ? 1.0f : -1.0f);
        y[i] = x[i];
    }
    kernel->silu(k, y, y);
    *count = k;
    for (uint32_t i = 0; i < k; i++) {
        float expected = x[i] / (1.0f + mur_exp(-x[i]));

        if (memcmp(&expected, &y[i], sizeof(expected)) != 0)
            return i;
    }
    return k;
}

static void note(low_result *result, const matrix *m, uint32_t at, uint32_t count)
{
    result->run++;
    if (at == count)
        return;
    if (result->wrong++ == 0) {
        result->bits = m->bits;
        result->n = m->n;
        result->k = m->k;
        result->at = at;
    }
}

low_result low_check(const low_kernel *kernel)
{
    static const uint32_t sizes[][2] = { { 1, 1 },   { 8, 64 },  { 7, 31 },   { 12, 172 },
                                         { 9, 33 },  { 33, 4 },  { 16, 128 }, { 4, 512 },
                                         { 3, 520 }, { 19, 100 } };
    static const uint32_t bits[] = { 2, 4, BLOCKS, 8 };
    low_result result = { 0, 0, 0, 0, 0, 0 };
    static matrix m;

    state = 2463534242u;
    for (uint32_t s = 0; s < sizeof(sizes) / sizeof(*sizes) + 12; s++) {
        int is_random = s >= sizeof(sizes) / sizeof(*sizes);

        m.n = is_random ? 1 + chance() % MOST_N : sizes[s][0];
        m.k = is_random ? 1 + chance() % (MOST_SIZE / MOST_N) : sizes[s][1];
        for (uint32_t b = 0; b < sizeof(bits) / sizeof(*bits); b++)
            for (int extreme = 0; extreme < 2; extreme++) {
                uint32_t at, count;

                m.bits = bits[b];
                fill(&m, extreme);
                at = check_product(kernel, &m, s % 2, &count);
                note(&result, &m, at, count);
                at = check_look_up(kernel, &m, &count);
                note(&result, &m, at, count);
            }
        m.bits = 0;
        for (int round = 0; round < 3; round++) {
            uint32_t count, at = check_vectors(kernel, m.k, &count);

            note(&result, &m, at, count);
            at = check_silu(kernel, m.k, &count);
            note(&result, &m, at, count);
        }
    }
    return result;
}

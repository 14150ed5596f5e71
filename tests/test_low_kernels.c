/* test_low_kernels.c - matrices of 2 and 4 bits against sums of levels written out here, for every
 * instruction set: bit for bit. */
#include <math.h>
#include <stdbool.h>

#include "base/half.h"
#include "chance.h"
#include "check.h"
#include "mur_decoder.h"
#include "mur_low.h"

typedef void multiply_fn(const mur_matrix_low *, uint32_t, const void *, const float *, float *);
typedef void look_up_fn(const mur_matrix_low *, uint32_t, const int32_t *, float *);

static const struct kernels {
    const char *name;
    uint32_t element_bytes; /* of a vector */
    multiply_fn *multiply[2];
    look_up_fn *look_up[2];
    size_t (*bytes)(uint32_t, uint32_t, uint32_t);
    void (*pack)(uint32_t, uint32_t, uint32_t, const int8_t *, const uint16_t *, void *);
} all[] = {
    { "ref",
      1,
      { mur_ref_linear_q2, mur_ref_linear_q4 },
      { mur_ref_embed_q2, mur_ref_embed_q4 },
      mur_ref_low_bytes,
      mur_ref_low_pack },
    { "dsp",
      2,
      { mur_dsp_linear_q2, mur_dsp_linear_q4 },
      { mur_dsp_embed_q2, mur_dsp_embed_q4 },
      mur_dsp_low_bytes,
      mur_dsp_low_pack },
};

enum { ROWS = 2, MOST_N = 19, MOST_K = 520 };

typedef struct matrix {
    uint32_t bits, n, k;
    int8_t levels[MOST_N * MOST_K];
    uint16_t scales[MOST_N];
    float bias[MOST_N];
} matrix;

/* extreme: the largest numbers of one sign everywhere */
static void fill(matrix *m, int8_t *x, bool extreme)
{
    int most = (1 << m->bits) - 1;

    for (uint32_t i = 0; i < m->n * m->k; i++)
        m->levels[i] = (int8_t)(extreme ? (i / m->k % 2 ? most : -most)
                                        : 2 * (int)(random_u32() % (1u << m->bits)) - most);
    for (uint32_t i = 0; i < m->n; i++) {
        m->scales[i] = (uint16_t)(1 + random_u32() % 0x7bff); /* subnormal ones too */
        m->bias[i] = (float)random_gaussian();
    }
    for (uint32_t i = 0; i < ROWS * m->k; i++)
        x[i] = (int8_t)(extreme ? (i / m->k ? 127 : -127) : (int)(random_u32() % 255) - 127);
}

static void check_product(const struct kernels *kernels, const matrix *m, const int8_t *x,
                          bool with_bias)
{
    uint32_t padded = (m->k + 3) / 4 * 4;
    void *packed = malloc(kernels->bytes(m->bits, m->n, m->k));
    mur_matrix_low low = { m->n, m->k, packed, with_bias ? m->bias : NULL };
    const float scales[ROWS] = { 0.013f, 2.5f };
    int16_t wide[ROWS * (MOST_K + 4)] = { 0 };
    int8_t narrow[ROWS * (MOST_K + 4)] = { 0 };
    float found[ROWS * MOST_N];

    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t i = 0; i < m->k; i++)
            wide[r * padded + i] = narrow[r * padded + i] = x[r * m->k + i];
    kernels->pack(m->bits, m->n, m->k, m->levels, m->scales, packed);
    kernels->multiply[m->bits / 4](&low, ROWS, kernels->element_bytes == 1 ? (void *)narrow : wide,
                                   scales, found);
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t n = 0; n < m->n; n++) {
            float expected;
            int64_t sum = 0;

            for (uint32_t i = 0; i < m->k; i++)
                sum += m->levels[n * m->k + i] * x[r * m->k + i];
            expected = (float)sum * (scales[r] * muc_f32_of_f16(m->scales[n]));
            expected = with_bias ? expected + m->bias[n] : expected;
            if (memcmp(&found[r * m->n + n], &expected, sizeof(expected)) != 0)
                fail_msg("%s, %u bits, %u x %u: row %u is %.9g, expected %.9g", kernels->name,
                         m->bits, m->n, m->k, n, (double)found[r * m->n + n], (double)expected);
        }
    free(packed);
}

static void check_look_up(const struct kernels *kernels, const matrix *m)
{
    void *packed = malloc(kernels->bytes(m->bits, m->n, m->k));
    mur_matrix_low low = { m->n, m->k, packed, NULL };
    const int32_t tokens[] = { (int32_t)m->n - 1, 0 };
    float found[2 * MOST_K];

    kernels->pack(m->bits, m->n, m->k, m->levels, m->scales, packed);
    kernels->look_up[m->bits / 4](&low, 2, tokens, found);
    for (uint32_t t = 0; t < 2; t++)
        for (uint32_t i = 0; i < m->k; i++)
            assert_true(found[t * m->k + i] == (float)m->levels[(uint32_t)tokens[t] * m->k + i] *
                                                   muc_f32_of_f16(m->scales[tokens[t]]));
    free(packed);
}

static void matrices_of_few_bits_multiply_as_their_levels_do(void **state)
{
    static const uint32_t sizes[][2] = { { 1, 1 },    { 8, 64 },  { 7, 31 },
                                         { 12, 172 }, { 9, 33 },  { 16, 128 },
                                         { 4, 512 },  { 3, 520 }, { 19, 100 } };
    static matrix m;
    static int8_t x[ROWS * MOST_K];

    (void)state;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++)
        for (m.bits = 2; m.bits <= 4; m.bits += 2)
            for (unsigned extreme = 0; extreme < 2; extreme++)
                for (size_t i = 0; i < 2; i++) {
                    m.n = sizes[s][0];
                    m.k = sizes[s][1];
                    fill(&m, x, extreme);
                    check_product(&all[i], &m, x, s % 2);
                    check_look_up(&all[i], &m);
                }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_of_few_bits_multiply_as_their_levels_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

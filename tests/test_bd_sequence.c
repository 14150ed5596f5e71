/* BlockDialect tile sequences: every element found again by the device's parser and a walk written
 * from the specification, budgets held, damage refused. */
#include <math.h>

#include "base/bytes.h"
#include "chance.h"
#include "mur_block.h"
#include "mur_embed.h"
#include "quant/bd_sequence.h"

#define CONTEXT_THREADS 3
#include "context_fixture.h"

static float *some_matrix(uint32_t n, uint32_t k)
{
    float *w = calloc((size_t)n * k, sizeof(*w));

    for (size_t i = 0; i < (size_t)n * k; i++) /* columns of different size, some rows empty */
        w[i] = i % k % 97 < 5 ? 0 : (float)ldexp(random_student4(), (int)(i / k % 5) - 6);
    return w;
}

static uint32_t at_most(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* SPEC section 5, by the device's parser: element (row, column) of the matrix, the slow way */
static void walk(const muc_bd_sequence *s, uint32_t n, uint32_t k, float *out)
{
    uint32_t down = (k + 63) / 64, tiles = (n + 7) / 8 * down, at = 4 * (tiles + 1);

    for (uint32_t tile = 0; tile < tiles; tile++) {
        uint32_t first_n = tile / down * 8, first_k = tile % down * 64;

        CHECK_EQ(muc_load_u32(s->data + 4 * tile), at);
        for (uint32_t column = first_n; column < at_most(n, first_n + 8); column++) {
            uint32_t above = MUR_BLOCK_NO_HEADER;

            for (uint32_t row = first_k; row < at_most(k, first_k + 64); row += 32) {
                uint32_t elements = at_most(32, k - row);
                mur_block block;
                size_t used = mur_block_parse(s->data + at, s->bytes - at, elements, above, &block);

                CHECK(used > 0);
                mur_block_values(&block, elements, out + (size_t)column * k + row);
                above = block.header;
                at += (uint32_t)used;
            }
        }
    }
    CHECK_EQ(muc_load_u32(s->data + 4 * tiles), at);
    CHECK_EQ(s->bytes, at);
}

static muc_bytes bytes_of(const muc_bd_sequence *s)
{
    return (muc_bytes){ s->data, s->bytes, "sequence" };
}

/* EMBED of each column, as a token of a vocabulary of n: the same bits, and nothing around them */
static void check_embedded(const muc_bd_sequence *s, uint32_t n, uint32_t k, const float *values)
{
    mur_mach mach = { .isa = MUR_ISA_VERSION };
    mur_program program = { .mach = &mach };
    uint32_t words[5] = { 0, 0, 1 << 16 | k, n, 4 }, bytes = 4 * k + 4, token;
    float *io = calloc(k + 2, sizeof(*io));

    program.section[MUR_SECTION_WGTS] = s->data;
    program.region_bytes[MUR_WGTS] = (uint32_t)s->bytes;
    program.region_bytes[MUR_IO] = bytes;
    for (uint32_t c = 0; c < n; c++) {
        memcpy(io, &c, 4);
        io[k + 1] = 7;
        CHECK_EQ(mur_embed(&program, io, words), MUR_OK);
        assert_memory_equal(io + 1, values + (size_t)c * k, k * sizeof(*io));
        CHECK(io[k + 1] == 7);
    }
    token = n;
    memcpy(io, &token, 4);
    CHECK_EQ(mur_embed(&program, io, words), MUR_E_FAULT);
    program.region_bytes[MUR_WGTS]--;
    token = n - 1;
    memcpy(io, &token, 4);
    CHECK_EQ(mur_embed(&program, io, words), MUR_E_FAULT);
    free(io);
}

static void check_shape(uint32_t n, uint32_t k)
{
    float *w = some_matrix(n, k), *values = calloc((size_t)n * k, sizeof(*values));
    float *column = calloc(k, sizeof(*column));
    muc_bd_matrix matrix = muc_bd_matrix_of("w", w, n, k);
    double overhead = 4 * (1 + ceil(n / 8.0) * ceil(k / 64.0)) + 4 * n * ceil(k / 32.0);
    double bits = 6 + random_unit() * 4 + 8 * overhead / ((double)n * k), error = 0;
    muc_bd_rule rule;
    muc_bd_sequence s;

    CHECK_OK(ctx, muc_bd_plan(ctx, &matrix, 1, MUC_BD_ALL_KINDS, bits, &rule));
    CHECK_OK(ctx, muc_bd_quantize(ctx, &matrix, &rule, &s));
    CHECK_OK(ctx, muc_bd_check(ctx, bytes_of(&s), 0, n, k));
    walk(&s, n, k, values);
    for (uint32_t c = 0; c < n; c++) {
        CHECK_OK(ctx, muc_bd_decode_column(ctx, bytes_of(&s), n, k, c, column));
        assert_memory_equal(column, values + (size_t)c * k, k * sizeof(*column));
    }
    check_embedded(&s, n, k, values);
    for (size_t i = 0; i < (size_t)n * k; i++)
        error += ((double)w[i] - (double)values[i]) * ((double)w[i] - (double)values[i]);
    CHECK(fabs(error - s.error) <= 1e-9 * error);
    muc_bd_sequence_free(&s);
    free(column);
    free(values);
    free(w);
}

static void every_element_is_where_the_specification_says(void **state)
{
    static const uint32_t lengths[] = { 1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 65, 96, 97, 128, 172 };

    (void)state;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        for (size_t j = 0; j < sizeof(lengths) / sizeof(lengths[0]); j++)
            check_shape(lengths[i], lengths[j]);
}

enum { N = 200, K = 300 };

/* three matrices under one budget, quantized with a number of threads; joins the bytes */
static size_t quantize_with(unsigned threads, const muc_bd_matrix *matrices, double bits,
                            uint8_t *out)
{
    muc_context *own = muc_context_new(threads);
    muc_bd_rule rule;
    size_t total = 0;

    CHECK_OK(own, muc_bd_plan(own, matrices, 3, MUC_BD_ALL_KINDS, bits, &rule));
    for (int i = 0; i < 3; i++) {
        muc_bd_sequence s;

        CHECK_OK(own, muc_bd_quantize(own, &matrices[i], &rule, &s));
        memcpy(out + total, s.data, s.bytes);
        total += s.bytes;
        muc_bd_sequence_free(&s);
    }
    muc_context_free(own);
    return total;
}

static size_t count_kept(const muc_bd_matrix *matrix)
{
    size_t count = 0;

    for (uint64_t i = 0; i < muc_bd_kept_count(matrix->n, matrix->k); i++)
        count += matrix->kept[i] != 0;
    return count;
}

/* Most columns are kept, unless a first band that is not like the others misleads. */
static void what_planning_keeps_changes_no_byte(void **state)
{
    uint8_t *expected = malloc(3 * N * K * 2), *bytes = malloc(3 * N * K * 2);
    float *w[3], importance[K];
    muc_bd_matrix plain[3], keeping[3];
    bool used = false, forgotten = false;

    (void)state;
    for (int i = 0; i < K; i++)
        importance[i] = (float)random_unit();
    for (uint32_t i = 0; i < 3; i++) {
        w[i] = some_matrix(N - i, K - 33 * i);
        plain[i] = muc_bd_matrix_of("w", w[i], N - i, K - 33 * i);
        plain[i].importance = i == 1 ? importance : NULL;
        keeping[i] = plain[i];
        keeping[i].kept = calloc(muc_bd_kept_count(N, K), sizeof(*keeping[i].kept));
    }
    for (double bits = 4.7; bits < 9; bits += 0.41) {
        for (uint32_t i = 0; i < 3 * 8 * (K - 66) && bits > 6; i++)
            w[i % 3][i / 3] *= 2;
        CHECK_EQ(quantize_with(2, keeping, bits, bytes), quantize_with(3, plain, bits, expected));
        assert_memory_equal(bytes, expected, quantize_with(1, plain, bits, expected));
        used |= count_kept(&keeping[2]) > N * K / 128;
        forgotten |= count_kept(&keeping[0]) + count_kept(&keeping[2]) == 0;
    }
    CHECK(used && forgotten);
    for (int i = 0; i < 3; i++) {
        free(w[i]);
        free(keeping[i].kept);
    }
    free(expected);
    free(bytes);
}

static void bytes_are_the_same_at_any_thread_count(void **state)
{
    float *w[3], importance[K];
    muc_bd_matrix matrices[3];
    uint8_t *expected = malloc(3 * N * K * 2), *bytes = malloc(3 * N * K * 2);
    size_t size;

    (void)state;
    for (int i = 0; i < K; i++)
        importance[i] = (float)random_unit();
    for (int i = 0; i < 3; i++) {
        w[i] = some_matrix(N, K);
        matrices[i] = muc_bd_matrix_of("w", w[i], N, K);
        matrices[i].importance = i == 1 ? importance : NULL;
    }
    size = quantize_with(1, matrices, 4.8, expected);
    for (unsigned threads = 2; threads <= 5; threads++) {
        CHECK_EQ(quantize_with(threads, matrices, 4.8, bytes), size);
        assert_memory_equal(bytes, expected, size);
    }
    for (double bits = 4.7; bits < 8; bits += 0.31) {
        size = quantize_with(2, matrices, bits, bytes);
        CHECK((double)size <= bits * 3 * N * K / 8);
        CHECK((double)size >= (bits - 0.02) * 3 * N * K / 8);
    }
    for (int i = 0; i < 3; i++)
        free(w[i]);
    free(expected);
    free(bytes);
}

/* one price everywhere: bytes go where the error is */
static void a_larger_matrix_gets_more_bits(void **state)
{
    float *w[2] = { some_matrix(N, K), some_matrix(N, K) };
    muc_bd_matrix matrices[2];
    muc_bd_sequence s[2];
    muc_bd_rule rule;

    (void)state;
    for (int i = 0; i < 2; i++)
        matrices[i] = muc_bd_matrix_of("w", w[i], N, K);
    for (int i = 0; i < N * K; i++)
        w[1][i] *= 3;
    CHECK_OK(ctx, muc_bd_plan(ctx, matrices, 2, MUC_BD_ALL_KINDS, 4.8, &rule));
    for (int i = 0; i < 2; i++)
        CHECK_OK(ctx, muc_bd_quantize(ctx, &matrices[i], &rule, &s[i]));
    CHECK(s[1].bytes > s[0].bytes + s[0].bytes / 20);
    for (int i = 0; i < 2; i++) {
        muc_bd_sequence_free(&s[i]);
        free(w[i]);
    }
}

static void what_cannot_be_quantized_is_refused(void **state)
{
    float *w = some_matrix(N, K);
    muc_bd_matrix matrix = muc_bd_matrix_of("blk.0", w, N, K), none = matrix;
    muc_bd_rule rule = { MUC_BD_ALL_KINDS, 0 };
    muc_bd_sequence s;

    (void)state;
    CHECK_FAILS(ctx, MUC_NOFIT, "1.000 bits per weight are asked for",
                muc_bd_plan(ctx, &matrix, 1, MUC_BD_ALL_KINDS, 1, &rule));
    none.n = 0;
    CHECK_FAILS(ctx, MUC_MALFORMED, "0 x 300", muc_bd_quantize(ctx, &none, &rule, &s));
    none.n = none.k = UINT32_MAX;
    CHECK_FAILS(ctx, MUC_NOFIT, "32-bit", muc_bd_quantize(ctx, &none, &rule, &s));
    w[7 * K + 11] = NAN;
    CHECK_FAILS(ctx, MUC_UNSUPPORTED, "blk.0: element [7][11] is nan",
                muc_bd_quantize(ctx, &matrix, &rule, &s));
    w[7 * K + 11] = -70000;
    CHECK_FAILS(ctx, MUC_UNSUPPORTED, "element [7][11] is -70000",
                muc_bd_plan(ctx, &matrix, 1, MUC_BD_ALL_KINDS, 5, &rule));
    free(w);
}

static void failed_allocations_are_reported(void **state)
{
    float *w = some_matrix(16, 64);
    muc_bd_matrix matrix = muc_bd_matrix_of("w", w, 16, 64);
    muc_context *own = muc_context_new(1);
    muc_status status = MUC_NOMEM;
    long failures = 0;

    (void)state;
    while (status == MUC_NOMEM) {
        muc_bd_rule rule;
        muc_bd_sequence s = { 0 };

        muc_error_clear(own);
        muc_alloc_fail_after(failures++);
        status = muc_bd_plan(own, &matrix, 1, MUC_BD_ALL_KINDS, 6, &rule);
        if (status == MUC_OK)
            status = muc_bd_quantize(own, &matrix, &rule, &s);
        muc_alloc_fail_after(-1);
        muc_bd_sequence_free(&s);
    }
    CHECK_OK(own, status);
    CHECK(failures > 5);
    muc_context_free(own);
    free(w);
}

/* every cut, every damaged offset, and any damage to a block that changes its size */
static void damage_is_refused(void **state)
{
    enum { n = 11, k = 100, tiles = 4 };
    float *w = some_matrix(n, k), column[k];
    muc_bd_matrix matrix = muc_bd_matrix_of("w", w, n, k);
    muc_bd_rule rule = { MUC_BD_ALL_KINDS, 0 };
    muc_bd_sequence s;
    muc_bytes bytes;

    (void)state;
    CHECK_OK(ctx, muc_bd_plan(ctx, &matrix, 1, MUC_BD_ALL_KINDS, 6, &rule));
    CHECK_OK(ctx, muc_bd_quantize(ctx, &matrix, &rule, &s));
    bytes = bytes_of(&s);
    for (bytes.size = 0; bytes.size < s.bytes; bytes.size++)
        CHECK_FAILS(ctx, MUC_MALFORMED, "sequence: offset", muc_bd_check(ctx, bytes, 0, n, k));
    for (uint32_t at = 0; at < s.bytes; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            muc_status status;

            s.data[at] ^= (uint8_t)(1 << bit);
            status = muc_bd_check(ctx, bytes, 1000, n, k);
            if (at < 4 * (tiles + 1))
                CHECK_EQ(status, MUC_MALFORMED);
            for (uint32_t c = 0; c < n && status == MUC_OK; c++)
                CHECK_OK(ctx, muc_bd_decode_column(ctx, bytes, n, k, c, column));
            muc_error_clear(ctx);
            s.data[at] ^= (uint8_t)(1 << bit);
        }
    }
    CHECK_FAILS(ctx, MUC_MALFORMED, "", muc_bd_check(ctx, bytes, 0, n + 1, k));
    CHECK_FAILS(ctx, MUC_MALFORMED, "", muc_bd_check(ctx, bytes, 0, n, k + 1));
    CHECK_OK(ctx, muc_bd_check(ctx, bytes, 0, n, k));
    muc_bd_sequence_free(&s);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_is_where_the_specification_says),
        cmocka_unit_test(what_planning_keeps_changes_no_byte),
        cmocka_unit_test(bytes_are_the_same_at_any_thread_count),
        cmocka_unit_test(a_larger_matrix_gets_more_bits),
        cmocka_unit_test(what_cannot_be_quantized_is_refused),
        cmocka_unit_test(failed_allocations_are_reported),
        cmocka_unit_test(damage_is_refused),
    };

    return cmocka_run_group_tests(tests, new_context, free_context);
}

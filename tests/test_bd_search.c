/* The search for a block's grid, many columns at once, against plain trying of every grid. Weights
 * are such that every sum is exact, so errors are equal or not, and ties go where the specification
 * of the choice says. */
#include <math.h>
#include <stdlib.h>

#include "chance.h"
#include "check.h"
#include "quant/bd_sequence.h"

static const uint8_t dialects[16][8] = {
#define MUR_DIALECT(id, ...) [id] = { __VA_ARGS__ },
#include "mur_dialect.def"
#undef MUR_DIALECT
};

/* Integers of 11 bits or fewer in 9 octaves, of one scale: many equal ones, many on the border
 * between two values, some zeros, some far below all grids. */
static void hard_weights(float *w, unsigned count)
{
    int scale = (int)(random_u32() % 50) - 45, digits = 1 + (int)(random_u32() % 11);
    unsigned kind = random_u32() % 8;

    for (unsigned i = 0; i < count; i++) {
        int size = (int)(random_u32() & ((1u << digits) - 1)), octave = (int)(random_u32() % 9);

        if (kind == 0 || (kind == 1 && random_u32() % 2))
            size = 0;
        if (kind == 2)
            size = 3;
        w[i] = (float)ldexp(random_u32() % 2 ? size : -size, scale + (kind > 3 ? octave : 0));
        if (fabsf(w[i]) > MUC_BD_MAX_WEIGHT)
            w[i] = copysignf(32768, w[i]);
    }
}

typedef struct grid {
    muc_bd_kind kind;
    int exponent, dialect;
} grid;

static unsigned levels(const grid *g, double values[16])
{
    unsigned count = g->kind == MUC_BD_B5 ? 16 : 8;

    for (unsigned i = 0; i < count; i++)
        values[i] = ldexp(g->kind == MUC_BD_B5 ? i : dialects[g->dialect][i], g->exponent - 16);
    return count;
}

/* the code nearest to w, ties to the larger, and its error */
static unsigned nearest(const grid *g, double w, double *error)
{
    double values[16], size = fabs(w);
    unsigned count = levels(g, values), best = 0;

    for (unsigned i = 1; i < count; i++)
        if (fabs(size - values[i]) <= fabs(size - values[best]))
            best = i;
    *error = (size - values[best]) * (size - values[best]);
    return best > 0 && w < 0 ? best + count : best;
}

static double error_on(const grid *g, const float *w, unsigned n)
{
    double sum = 0, error;

    for (unsigned i = 0; i < n; i++) {
        nearest(g, (double)w[i], &error);
        sum += error;
    }
    return sum;
}

/* The exponents to try: the one that just holds the largest element, that before and that after.
 * Numbers of 11 bits are halves. */
static void exponents_to_try(const float *w, unsigned n, int *first, int *last)
{
    double most = 0;
    int exponent;

    for (unsigned i = 0; i < n; i++)
        most = fmax(most, fabs((double)w[i]));
    frexp(most, &exponent);
    exponent += 14 - 2;
    if (most == 0 || exponent < 0)
        exponent = 0;
    *first = exponent > 0 ? exponent - 1 : 0;
    *last = exponent + 1;
}

/* Of all grids of a kind for one block or for two below each other: the least error, and its first
 * grid. INFINITY if the two have no exponent to try in common. */
static double try_all(muc_bd_kind kind, const float *w, unsigned rows, grid *out)
{
    double least = INFINITY;
    unsigned n = rows < 32 ? rows : 32;
    int first, last, lower[2];

    exponents_to_try(w, n, &first, &last);
    if (rows > 32) {
        exponents_to_try(w + 32, rows - 32, &lower[0], &lower[1]);
        first = lower[0] > first ? lower[0] : first;
        last = lower[1] < last ? lower[1] : last;
    }
    for (int e = first; e <= last; e++)
        for (int d = 0; d < (kind == MUC_BD_B5 ? 1 : 16); d++) {
            grid g = { kind, e, d };
            double error = error_on(&g, w, rows);

            if (error < least) {
                least = error;
                *out = g;
            }
        }
    return least;
}

/* Of B4, then B5: the least error, fewer bytes, the first grid; zeros where nothing is better. */
static double try_block(uint32_t kinds, const float *w, unsigned n, grid *out)
{
    double zeros = 0, least = INFINITY;

    for (unsigned i = 0; i < n; i++)
        zeros += (double)w[i] * (double)w[i];
    for (unsigned kind = MUC_BD_B4; kind <= MUC_BD_B5; kind++) {
        grid found;
        double error = kinds >> kind & 1 ? try_all((muc_bd_kind)kind, w, n, &found) : INFINITY;

        if (error < least) {
            least = error;
            *out = found;
        }
    }
    if (least < zeros)
        return least;
    out->kind = MUC_BD_Z;
    return zeros;
}

static muc_bd_block block_on(const grid *g, const float *w, unsigned n)
{
    muc_bd_block block = { .kind = g->kind };
    double error;

    if (g->kind == MUC_BD_Z)
        return block;
    block.term[0].dialect = (uint8_t)g->dialect;
    block.term[0].exponent = (uint8_t)g->exponent;
    for (unsigned i = 0; i < n; i++)
        block.term[0].code[i] = (uint8_t)nearest(g, (double)w[i], &error);
    return block;
}

static unsigned write_column(const muc_bd_column *column, uint8_t *out)
{
    unsigned size = 0;

    for (unsigned b = 0; b < muc_bd_block_count(column->rows); b++)
        size += muc_bd_write(&column->block[b], muc_bd_block_elements(column->rows, b), out + size);
    return size;
}

/* At price 0: a header for both blocks where that is as good as the best grid of each. */
static muc_bd_column try_column(uint32_t kinds, const float *w, unsigned rows)
{
    muc_bd_column out = { .rows = rows };
    double apart = 0, together;
    bool zero = false;
    grid best[2], both;

    for (unsigned b = 0; b < muc_bd_block_count(rows); b++) {
        apart += try_block(kinds, w + 32 * b, muc_bd_block_elements(rows, b), &best[b]);
        zero |= best[b].kind == MUC_BD_Z;
    }
    if (rows > 32 && (kinds & MUC_BD_SHARING) != 0 && !zero) {
        together = try_all(kinds & 1 << MUC_BD_B4 ? MUC_BD_B4 : MUC_BD_B5, w, rows, &both);
        if (together <= apart)
            best[0] = best[1] = both;
    }
    for (unsigned b = 0; b < muc_bd_block_count(rows); b++)
        out.block[b] = block_on(&best[b], w + 32 * b, muc_bd_block_elements(rows, b));
    muc_bd_pack(&out, kinds);
    return out;
}

static void every_grid_has_been_tried(void **state)
{
    const uint32_t sets[] = { 1 << MUC_BD_B4, 1 << MUC_BD_B5, 1 << MUC_BD_B4 | 1 << MUC_BD_B5,
                              1 << MUC_BD_B4 | MUC_BD_SHARING, 1 << MUC_BD_B5 | MUC_BD_SHARING };

    (void)state;
    for (int round = 0; round < 4000; round++) {
        const muc_bd_rule rule = { sets[random_u32() % MUC_COUNT(sets)], 0 };
        unsigned rows = round % 2 ? 64 : 1 + random_u32() % 64;
        unsigned count = 1 + random_u32() % MUC_BD_LANES;
        float w[MUC_BD_LANES][64];
        const float *at[MUC_BD_LANES];
        muc_bd_column column[MUC_BD_LANES], *out[MUC_BD_LANES];

        for (unsigned c = 0; c < count; c++) {
            hard_weights(w[c], rows);
            at[c] = w[c];
            out[c] = &column[c];
        }
        muc_bd_choose_columns(&rule, at, count, NULL, rows, out);
        for (unsigned c = 0; c < count; c++) {
            muc_bd_column expected = try_column(rule.kinds, w[c], rows);
            uint8_t bytes[2][2 * MUC_BD_MAX_BYTES];
            unsigned size = write_column(&expected, bytes[0]);

            CHECK_EQ(write_column(&column[c], bytes[1]), size);
            CHECK(memcmp(bytes[0], bytes[1], size) == 0);
        }
    }
}

/* whatever the kinds, the price and the importance, and although sums are rounded */
static void a_column_is_chosen_as_if_it_were_alone(void **state)
{
    (void)state;
    for (int round = 0; round < 3000; round++) {
        muc_bd_rule rule = { (random_u32() & MUC_BD_ALL_KINDS) | 1u << random_u32() % 3, 0 };
        unsigned rows = round % 2 ? 64 : 1 + random_u32() % 64;
        float w[MUC_BD_LANES][64], importance[64];
        const float *at[MUC_BD_LANES], *weights = round % 3 ? NULL : importance;
        muc_bd_column column[MUC_BD_LANES], *out[MUC_BD_LANES], alone;
        muc_bd_offers offers[MUC_BD_LANES], one;

        for (unsigned i = 0; i < 64; i++)
            importance[i] = (float)random_unit();
        for (unsigned c = 0; c < MUC_BD_LANES; c++) {
            int scale = (int)(random_u32() % 40) - 30;

            for (unsigned i = 0; i < rows; i++)
                w[c][i] = (float)ldexp(random_gaussian(), scale);
            at[c] = w[c];
            out[c] = &column[c];
        }
        muc_bd_offer_columns(rule.kinds, at, MUC_BD_LANES, weights, rows, offers);
        rule.price = offers[0].offer[random_u32() % offers[0].count].price;
        muc_bd_choose_columns(&rule, at, MUC_BD_LANES, weights, rows, out);
        for (unsigned c = 0; c < MUC_BD_LANES; c++) {
            uint8_t bytes[2][2 * MUC_BD_MAX_BYTES];
            unsigned size = write_column(&column[c], bytes[0]);

            muc_bd_offer_columns(rule.kinds, &at[c], 1, weights, rows, &one);
            CHECK_EQ(one.count, offers[c].count);
            CHECK(memcmp(one.offer, offers[c].offer, one.count * sizeof(*one.offer)) == 0);
            muc_bd_choose(&rule, w[c], weights, rows, &alone);
            CHECK_EQ(write_column(&alone, bytes[1]), size);
            CHECK(memcmp(bytes[0], bytes[1], size) == 0);
        }
    }
}

static void elements_of_a_block_are_rounded_as_one_by_one(void **state)
{
    (void)state;
    for (int round = 0; round < 20000; round++) {
        unsigned n = 1 + random_u32() % 32;
        muc_bd_block block = { .kind = (muc_bd_kind)(random_u32() % 3) }, each;
        float w[32];

        block.term[0].exponent = (uint8_t)(random_u32() % 32);
        block.term[1].exponent = (uint8_t)(random_u32() % 32);
        if (block.kind != MUC_BD_B5)
            block.term[0].dialect = (uint8_t)(random_u32() % 16);
        each = block;
        hard_weights(w, n);
        w[0] = round % 4 ? w[0] : MUC_BD_MAX_WEIGHT;
        muc_bd_round_block(&block, n, w);
        for (unsigned i = 0; i < n; i++) {
            muc_bd_round(&each, i, w[i]);
            CHECK_EQ(block.term[0].code[i], each.term[0].code[i]);
            CHECK_EQ(block.term[1].code[i], each.term[1].code[i]);
        }
    }
}

static void what_no_grid_holds_is_refused(void **state)
{
    static const float no[] = { INFINITY, -INFINITY, NAN, 65505, -1e30f };

    (void)state;
    for (unsigned i = 0; i < MUC_COUNT(no); i++) {
        muc_context *ctx = muc_context_new(1);
        float w[3 * 40] = { 0 };
        muc_bd_matrix matrix = muc_bd_matrix_of("m", w, 3, 40);
        const muc_bd_rule rule = { MUC_BD_ALL_KINDS, 0 };
        muc_bd_sequence sequence;

        w[2 * 40 + 33] = no[i];
        CHECK_EQ(muc_bd_quantize(ctx, &matrix, &rule, &sequence), MUC_UNSUPPORTED);
        w[2 * 40 + 33] = MUC_BD_MAX_WEIGHT;
        CHECK_EQ(muc_bd_quantize(ctx, &matrix, &rule, &sequence), MUC_OK);
        muc_bd_sequence_free(&sequence);
        muc_context_free(ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_grid_has_been_tried),
        cmocka_unit_test(a_column_is_chosen_as_if_it_were_alone),
        cmocka_unit_test(elements_of_a_block_are_rounded_as_one_by_one),
        cmocka_unit_test(what_no_grid_holds_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

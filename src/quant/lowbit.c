/* lowbit.c - rows of weights in few bits: how they are chosen, packed and read. */
#include "quant/lowbit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"

static const muc_lowbit_info table[] = {
#define MUC_LOWBIT(id, name, bits, group, meaning) { name, bits, group, meaning },
#include "quant/lowbit.def"
#undef MUC_LOWBIT
};

#define MUC_LOWBIT(id, name, bits, group, meaning) \
    _Static_assert(8 % (bits) == 0, #id ": a byte has whole indices");
#include "quant/lowbit.def"
#undef MUC_LOWBIT

enum { GROUP = 32, MEANS_STEPS = 20, STARTS = 24, REFINEMENTS = 4 };
static const double most_number = 65504, least_scale = 6e-8;

const muc_lowbit_info *muc_lowbit_get(muc_lowbit format)
{
    return &table[format];
}

bool muc_lowbit_find(const char *name, muc_lowbit *out)
{
    for (unsigned i = 0; i < MUC_LOWBIT_COUNT; i++)
        if (strcmp(table[i].name, name) == 0) {
            *out = (muc_lowbit)i;
            return true;
        }
    return false;
}

muc_lowbit muc_lowbit_for_row(muc_lowbit format, size_t k)
{
    return k % (8 / table[format].bits) == 0 ? format : MUC_LOWBIT_INT8;
}

size_t muc_lowbit_code_bytes(muc_lowbit format, size_t k)
{
    size_t a_byte = 8 / table[format].bits;

    return (k + a_byte - 1) / a_byte;
}

size_t muc_lowbit_numbers(muc_lowbit format, size_t k)
{
    size_t group = table[format].group;

    return group ? (k + group - 1) / group * MUC_LOWBIT_ENTRIES : 1;
}

double muc_lowbit_bits_per_weight(muc_lowbit format, size_t k)
{
    return 8 *
           (double)(muc_lowbit_code_bytes(format, k) +
                    sizeof(uint16_t) * muc_lowbit_numbers(format, k)) /
           (double)k;
}

/* ---- indices ---- */

static unsigned code_at(muc_lowbit format, const uint8_t *codes, size_t i)
{
    unsigned bits = table[format].bits, a_byte = 8 / bits;

    return (uint32_t)codes[i / a_byte] >> i % a_byte * bits & ((1u << bits) - 1);
}

static void put_code(muc_lowbit format, uint8_t *codes, size_t i, unsigned code)
{
    unsigned bits = table[format].bits, a_byte = 8 / bits;

    codes[i / a_byte] = (uint8_t)(codes[i / a_byte] | code << i % a_byte * bits);
}

int muc_lowbit_most(muc_lowbit format)
{
    return format == MUC_LOWBIT_INT8 ? INT8_MAX : (1 << table[format].bits) - 1;
}

int muc_lowbit_nearest(muc_lowbit format, double x)
{
    double most = muc_lowbit_most(format);

    x = x > most ? most : x < -most ? -most : x;
    if (format == MUC_LOWBIT_INT8)
        return (int)nearbyint(x);
    /* odd numbers; the largest is reached from below */
    x = 2 * floor(x / 2) + 1;
    return (int)(x > most ? most : x);
}

void muc_lowbit_pack(muc_lowbit format, size_t k, const int8_t *levels, uint8_t *codes)
{
    memset(codes, 0, muc_lowbit_code_bytes(format, k));
    for (size_t i = 0; i < k; i++)
        put_code(format, codes, i,
                 format == MUC_LOWBIT_INT8 ? (uint8_t)levels[i]
                                           : (unsigned)(levels[i] + muc_lowbit_most(format)) / 2);
}

void muc_lowbit_unpack(muc_lowbit format, size_t k, const uint8_t *codes, int8_t *levels)
{
    for (size_t i = 0; i < k; i++) {
        int code = (int)code_at(format, codes, i);

        levels[i] = (int8_t)(format == MUC_LOWBIT_INT8 ? code : 2 * code - muc_lowbit_most(format));
    }
}

/* ---- scales ---- */

float muc_lowbit_round_scale(double scale)
{
    scale = scale < least_scale ? least_scale : scale > most_number ? most_number : scale;
    return muc_f32_of_f16(muc_f16_of_f32((float)scale));
}

/* squared error with this scale; better: the scale that suits the levels it gives */
static double try_scale(muc_lowbit format, size_t k, const float *w, double scale, double *better)
{
    double error = 0, along = 0, square = 0;

    for (size_t i = 0; i < k; i++) {
        double level = muc_lowbit_nearest(format, (double)w[i] / scale);
        double e = (double)w[i] - scale * level;

        error += e * e;
        along += (double)w[i] * level;
        square += level * level;
    }
    *better = along > 0 ? along / square : scale;
    return error;
}

float muc_lowbit_scale(muc_lowbit format, size_t k, const float *w)
{
    double most = 0, best = INFINITY, scale, next;
    float chosen = 0;

    for (size_t i = 0; i < k; i++)
        most = fmax(most, fabs((double)w[i]));
    scale = fmin(most, most_number) / muc_lowbit_most(format);
    if (format == MUC_LOWBIT_INT8 || !(scale > least_scale))
        return muc_lowbit_round_scale(scale);
    /* from the largest element's down to a tenth, each a little way down the error */
    for (unsigned start = 0; start < STARTS; start++, scale *= 0.905) {
        double s = scale;

        for (unsigned i = 0; i <= REFINEMENTS; i++, s = next) {
            float rounded = muc_lowbit_round_scale(s);
            double error = try_scale(format, k, w, (double)rounded, &next);

            if (error < best) {
                best = error;
                chosen = rounded;
            }
        }
    }
    return chosen;
}

/* ---- codebooks ---- */

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

static float within_range(float w)
{
    return w > 65504 ? 65504 : w < -65504 ? -65504 : w;
}

static unsigned nearest_entry(const float *book, float w)
{
    unsigned best = 0;

    for (unsigned c = 1; c < MUC_LOWBIT_ENTRIES; c++)
        if (fabsf(w - book[c]) < fabsf(w - book[best]))
            best = c;
    return best;
}

/* each entry becomes the mean of what is nearest to it */
static void move_entries(size_t count, const float *w, float *book)
{
    double sums[MUC_LOWBIT_ENTRIES] = { 0 };
    unsigned members[MUC_LOWBIT_ENTRIES] = { 0 };

    for (size_t i = 0; i < count; i++) {
        unsigned c = nearest_entry(book, w[i]);

        sums[c] += (double)w[i];
        members[c]++;
    }
    for (unsigned c = 0; c < MUC_LOWBIT_ENTRIES; c++)
        if (members[c])
            book[c] = (float)(sums[c] / members[c]);
}

static void choose_book(size_t count, const float *w, uint16_t *numbers)
{
    static const double percentiles[MUC_LOWBIT_ENTRIES] = { 0.05, 0.35, 0.65, 0.95 };
    float sorted[GROUP], book[MUC_LOWBIT_ENTRIES];

    for (size_t i = 0; i < count; i++)
        sorted[i] = within_range(w[i]);
    qsort(sorted, count, sizeof(*sorted), by_value);
    for (unsigned c = 0; c < MUC_LOWBIT_ENTRIES; c++)
        book[c] = sorted[(size_t)(percentiles[c] * (double)(count - 1) + 0.5)];
    for (unsigned step = 0; step < MEANS_STEPS; step++)
        move_entries(count, sorted, book);
    qsort(book, MUC_LOWBIT_ENTRIES, sizeof(*book), by_value);
    for (unsigned c = 0; c < MUC_LOWBIT_ENTRIES; c++)
        numbers[c] = muc_f16_of_f32(book[c]);
}

static void read_book(const uint16_t *numbers, float *book)
{
    for (unsigned c = 0; c < MUC_LOWBIT_ENTRIES; c++)
        book[c] = muc_f32_of_f16(numbers[c]);
}

void muc_lowbit_encode_entries(muc_lowbit format, size_t k, const float *w, const uint16_t *numbers,
                               uint8_t *codes)
{
    float book[MUC_LOWBIT_ENTRIES];

    memset(codes, 0, muc_lowbit_code_bytes(format, k));
    for (size_t i = 0; i < k; i++) {
        if (i % GROUP == 0)
            read_book(numbers + i / GROUP * MUC_LOWBIT_ENTRIES, book);
        put_code(format, codes, i, nearest_entry(book, within_range(w[i])));
    }
}

/* ---- rows ---- */

void muc_lowbit_encode_levels(muc_lowbit format, size_t k, const float *w, uint16_t scale,
                              uint8_t *codes)
{
    memset(codes, 0, muc_lowbit_code_bytes(format, k));
    for (size_t i = 0; i < k; i++) {
        int level = muc_lowbit_nearest(format, (double)w[i] / (double)muc_f32_of_f16(scale));

        put_code(format, codes, i,
                 format == MUC_LOWBIT_INT8 ? (uint8_t)level
                                           : (unsigned)(level + muc_lowbit_most(format)) / 2);
    }
}

void muc_lowbit_encode(muc_lowbit format, size_t k, const float *w, uint8_t *codes,
                       uint16_t *numbers)
{
    if (table[format].group) {
        for (size_t i = 0; i < k; i += GROUP)
            choose_book(k - i < GROUP ? k - i : GROUP, w + i,
                        numbers + i / GROUP * MUC_LOWBIT_ENTRIES);
        muc_lowbit_encode_entries(format, k, w, numbers, codes);
    } else {
        numbers[0] = muc_f16_of_f32(muc_lowbit_scale(format, k, w));
        muc_lowbit_encode_levels(format, k, w, numbers[0], codes);
    }
}

void muc_lowbit_decode(muc_lowbit format, size_t k, const uint8_t *codes, const uint16_t *numbers,
                       float *out)
{
    for (size_t i = 0; i < k; i++) {
        unsigned code = code_at(format, codes, i);

        if (table[format].group)
            out[i] = muc_f32_of_f16(numbers[i / GROUP * MUC_LOWBIT_ENTRIES + code]);
        else if (format == MUC_LOWBIT_INT8)
            out[i] = muc_f32_of_f16(numbers[0]) * (float)(int8_t)code;
        else
            out[i] = muc_f32_of_f16(numbers[0]) * (float)(2 * (int)code - muc_lowbit_most(format));
    }
}

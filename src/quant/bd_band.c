/* bd_band.c - a matrix by rows of tiles, and the elements of one of them. */
#include "quant/bd_band.h"

#include <math.h>
#include <string.h>

#include "base/half.h"
#include "base/vector_loop.h"

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

uint64_t muc_bd_index_bytes(uint32_t n, uint32_t k)
{
    return 4 * ((uint64_t)muc_bd_pieces(n, MUC_BD_TILE_N) * muc_bd_pieces(k, MUC_BD_TILE_K) + 1);
}

uint64_t muc_bd_kept_count(uint32_t n, uint32_t k)
{
    return (uint64_t)n * muc_bd_pieces(k, MUC_BD_TILE_K);
}

uint64_t muc_bd_least_column_bytes(uint32_t k)
{
    uint64_t bytes = 0;

    for (uint32_t at = 0; at < k; at += MUC_BD_ELEMS) {
        bytes += muc_bd_kind_bytes(MUC_BD_B4, smaller(MUC_BD_ELEMS, k - at));
        if (at % MUC_BD_TILE_K != 0)
            bytes -= 2; /* the header of the block above it */
    }
    return bytes;
}

muc_status muc_bd_bands_of(muc_context *ctx, const char *name, uint64_t offset, uint32_t n,
                           uint32_t k, muc_bd_bands *out)
{
    uint32_t bands = muc_bd_pieces(n, MUC_BD_TILE_N), down = muc_bd_pieces(k, MUC_BD_TILE_K);
    uint64_t tiles = (uint64_t)bands * down;

    if (n == 0 || k == 0)
        return muc_fail(ctx, MUC_MALFORMED, name, offset, "a matrix of %u x %u has no elements", n,
                        k);
    if (tiles >= UINT32_MAX / 4 - 1)
        return muc_fail(ctx, MUC_NOFIT, name, offset,
                        "a matrix of %u x %u is too large for 32-bit offsets", n, k);
    *out = (muc_bd_bands){ n, k, bands, down, (uint32_t)tiles };
    return MUC_OK;
}

muc_bd_tile muc_bd_tile_at(const muc_bd_bands *g, uint32_t band, uint32_t down)
{
    uint32_t first_k = down * MUC_BD_TILE_K;

    return (muc_bd_tile){ smaller(MUC_BD_TILE_N, g->n - band * MUC_BD_TILE_N), first_k,
                          smaller(MUC_BD_TILE_K, g->k - first_k) };
}

static muc_status read_floats(muc_context *ctx, const muc_bd_matrix *matrix, uint32_t column,
                              float *out)
{
    (void)ctx;
    memcpy(out, (const float *)matrix->data + (size_t)column * matrix->k,
           matrix->k * sizeof(float));
    return MUC_OK;
}

muc_bd_matrix muc_bd_matrix_of(const char *name, const float *values, uint32_t n, uint32_t k)
{
    return (muc_bd_matrix){ .name = name, .n = n, .k = k, .read = read_floats, .data = values };
}

typedef uint32_t lanes __attribute__((vector_size(32), aligned(4), may_alias));

/* Whether one of them is beyond MUC_BD_MAX_WEIGHT, or not a number: bits are ordered as what they
 * stand for. */
MUC_VECTOR_LOOP static bool has_beyond(const float *values, uint32_t count)
{
    const uint32_t most = muc_f32_bits(MUC_BD_MAX_WEIGHT);
    lanes found = { 0 };
    uint32_t i = 0;

    for (; i + 8 <= count; i += 8)
        found |= most - (*(const lanes *)(const void *)(values + i) & 0x7fffffff);
    for (; i < count; i++)
        found[0] |= most - (muc_f32_bits(values[i]) & 0x7fffffff);
    for (i = 1; i < 8; i++)
        found[0] |= found[i];
    return found[0] >> 31 != 0;
}

static muc_status read_column(muc_context *ctx, const muc_bd_matrix *matrix, uint32_t column,
                              float *out)
{
    MUC_TRY(matrix->read(ctx, matrix, column, out));
    for (uint32_t i = has_beyond(out, matrix->k) ? 0 : matrix->k; i < matrix->k; i++)
        if (!(fabsf(out[i]) <= MUC_BD_MAX_WEIGHT))
            return muc_fail(ctx, MUC_UNSUPPORTED, matrix->name, MUC_NO_OFFSET,
                            "element [%u][%u] is %g; BlockDialect holds magnitudes up to 65504",
                            column, i, (double)out[i]);
    return MUC_OK;
}

muc_status muc_bd_read_band(muc_context *ctx, const muc_bd_matrix *matrix, const muc_bd_bands *g,
                            uint32_t band, float *out)
{
    uint32_t columns = muc_bd_tile_at(g, band, 0).columns;

    for (uint32_t c = 0; c < columns; c++)
        MUC_TRY(read_column(ctx, matrix, band * MUC_BD_TILE_N + c, out + (size_t)c * g->k));
    return MUC_OK;
}

/* mur_tiles_decoder.c - a decoder's kernels on pieces of matrices, heads and elements. */
#include "mur_tiles_decoder.h"

#include <stddef.h>

static const float *floats(const uint8_t *data)
{
    return (const float *)(const void *)data;
}

/* there are fewer rows in shorter calls */
static void run_rows(const mur_tiles *tiles, uint32_t rows, const void *layer,
                     mur_tiles_compute *compute, const void *kernel,
                     void *const data[MUR_TILES_OPERANDS], uint8_t *small)
{
    mur_tiles now = *tiles;

    now.rows = rows;
    mur_tiles_run(&now, layer, compute, kernel, data, small);
}

static void compute_linear(const mur_tiles_piece *piece, const void *kernel)
{
    mur_tiles_linear_kernel *const *run = kernel;
    mur_matrix_q8 part = *(const mur_matrix_q8 *)piece->layer;
    uint32_t out = part.bias ? 5 : 4;

    part.n = piece->channels;
    part.packed = piece->data[2];
    part.scales = floats(piece->data[3]);
    part.bias = part.bias ? floats(piece->data[4]) : NULL;
    (*run)(&part, piece->rows, piece->data[0], floats(piece->data[1]),
           (float *)(void *)piece->data[out]);
}

void mur_tiles_linear(const mur_tiles *tiles, const mur_matrix_q8 *matrix,
                      mur_tiles_linear_kernel *kernel, uint32_t rows, const void *vectors,
                      const float *scales, float *out, uint8_t *small)
{
    void *data[MUR_TILES_OPERANDS] = {
        (void *)(uintptr_t)vectors,        (void *)(uintptr_t)scales,
        (void *)(uintptr_t)matrix->packed, (void *)(uintptr_t)matrix->scales,
        (void *)(uintptr_t)matrix->bias,   NULL
    };

    data[matrix->bias ? 5 : 4] = out;
    run_rows(tiles, rows, matrix, compute_linear, &kernel, data, small);
}

static void compute_linear_low(const mur_tiles_piece *piece, const void *kernel)
{
    mur_tiles_linear_low_kernel *const *run = kernel;
    mur_matrix_low part = *(const mur_matrix_low *)piece->layer;
    uint32_t out = part.bias ? 4 : 3;

    part.n = piece->channels;
    part.packed = piece->data[2];
    part.bias = part.bias ? floats(piece->data[3]) : NULL;
    (*run)(&part, piece->rows, piece->data[0], floats(piece->data[1]),
           (float *)(void *)piece->data[out]);
}

void mur_tiles_linear_low(const mur_tiles *tiles, const mur_matrix_low *matrix,
                          mur_tiles_linear_low_kernel *kernel, uint32_t rows, const void *vectors,
                          const float *scales, float *out, uint8_t *small)
{
    void *data[MUR_TILES_OPERANDS] = { (void *)(uintptr_t)vectors,
                                       (void *)(uintptr_t)scales,
                                       (void *)(uintptr_t)matrix->packed,
                                       (void *)(uintptr_t)matrix->bias,
                                       NULL,
                                       NULL };

    data[matrix->bias ? 4 : 3] = out;
    run_rows(tiles, rows, matrix, compute_linear_low, &kernel, data, small);
}

/* what pieces of an attention share */
typedef struct attention {
    const mur_attention_q8 *op;
    uint32_t pos;
    uint8_t *keys, *values, *key_scales, *value_scales;
} attention;

static void compute_attention(const mur_tiles_piece *piece, const void *kernel)
{
    mur_tiles_attention_kernel *const *run = kernel;
    const attention *whole = piece->layer;
    mur_attention_q8 op = *whole->op;
    size_t at = (size_t)piece->channel * op.context * op.width;
    size_t scales = piece->channel * MUR_SCALES_BYTES(&op);

    op.heads = op.heads / op.kv_heads * piece->channels;
    op.kv_heads = piece->channels;
    (*run)(&op, whole->pos + piece->row, piece->rows, floats(piece->data[0]),
           floats(piece->data[1]), floats(piece->data[2]), whole->keys + at, whole->values + at,
           whole->key_scales + scales, whole->value_scales + scales,
           (float *)(void *)piece->data[3], piece->scratch);
}

void mur_tiles_attention(const mur_tiles *tiles, const mur_attention_q8 *op,
                         mur_tiles_attention_kernel *kernel, uint32_t pos, uint32_t rows,
                         const float *q, const float *k, const float *v, void *keys, void *values,
                         void *key_scales, void *value_scales, float *out, uint8_t *small)
{
    const attention whole = { op, pos, keys, values, key_scales, value_scales };
    void *const data[MUR_TILES_OPERANDS] = {
        (void *)(uintptr_t)q, (void *)(uintptr_t)k, (void *)(uintptr_t)v, out, NULL, NULL
    };

    run_rows(tiles, rows, &whole, compute_attention, &kernel, data, small);
}

static void compute_unary(const mur_tiles_piece *piece, const void *kernel)
{
    mur_tiles_unary_kernel *const *run = kernel;

    (*run)(piece->rows, floats(piece->data[0]), (float *)(void *)piece->data[1]);
}

void mur_tiles_unary_f32(const mur_tiles *tiles, mur_tiles_unary_kernel *kernel, uint32_t count,
                         const float *x, float *y, uint8_t *small)
{
    void *const data[MUR_TILES_OPERANDS] = { (void *)(uintptr_t)x, y, NULL, NULL, NULL, NULL };

    run_rows(tiles, count, NULL, compute_unary, &kernel, data, small);
}

static void compute_binary(const mur_tiles_piece *piece, const void *kernel)
{
    mur_tiles_binary_kernel *const *run = kernel;

    (*run)(piece->rows, floats(piece->data[0]), floats(piece->data[1]),
           (float *)(void *)piece->data[2]);
}

void mur_tiles_binary_f32(const mur_tiles *tiles, mur_tiles_binary_kernel *kernel, uint32_t count,
                          const float *a, const float *b, float *y, uint8_t *small)
{
    void *const data[MUR_TILES_OPERANDS] = {
        (void *)(uintptr_t)a, (void *)(uintptr_t)b, y, NULL, NULL, NULL
    };

    run_rows(tiles, count, NULL, compute_binary, &kernel, data, small);
}

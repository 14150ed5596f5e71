/* mur_ref_matmul.c - products of two activations, and the norm of a transformer. */
#include "mur_nn_arith.h"

size_t mur_ref_matmul_s8_scratch_bytes(const mur_matmul_s8 *layer)
{
    (void)layer;
    return 0;
}

void mur_ref_matmul_s8(const mur_matmul_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out,
                       void *scratch)
{
    int32_t step = layer->b_by_rows ? layer->b_row : 1; /* from one k to the next */
    int32_t column = layer->b_by_rows ? 1 : layer->b_row;

    (void)scratch;
    for (int32_t i = 0; i < layer->batch; i++)
        for (int32_t m = 0; m < layer->m; m++)
            for (int32_t n = 0; n < layer->n; n++) {
                const int8_t *left = a + i * layer->a_batch + m * layer->a_row;
                const int8_t *right = b + i / layer->share * layer->b_batch + n * column;
                int32_t sum = 0;

                for (int32_t k = 0; k < layer->k; k++)
                    sum += (left[k] - layer->a_zero) * (right[k * step] - layer->b_zero);
                out[i * layer->c_batch + m * layer->c_row + n] =
                    mur_requant(sum, layer->mul, layer->shift, &layer->output);
            }
}

/* floor(sqrt(x)) */
static uint32_t root(uint32_t x)
{
    uint32_t found = 0;

    for (uint32_t bit = 1u << 30; bit != 0; bit >>= 2) {
        if (x >= found + bit) {
            x -= found + bit;
            found = (found >> 1) + bit;
        } else {
            found >>= 1;
        }
    }
    return found;
}

/* the row's multiplier and shift */
static void scale_of(const mur_rms_norm_s8 *layer, uint32_t squares, int32_t *mul, int32_t *shift)
{
    uint32_t inverse, scaled;

    *shift = layer->shift - 15;
    for (; squares < 1u << 30; squares <<= 2)
        ++*shift;
    inverse = (1u << 31) / root(squares); /* 2^15 < inverse <= 2^16 */
    scaled = (uint32_t)(((uint64_t)(uint32_t)layer->mul * inverse) >> 16);
    if (scaled < 1u << 30) {
        scaled <<= 1;
        --*shift;
    }
    *mul = (int32_t)scaled;
    *shift = *shift < -31 ? -31 : *shift;
}

void mur_ref_rms_norm_s8(const mur_rms_norm_s8 *layer, const int8_t *in, int8_t *out)
{
    for (int32_t y = 0; y < layer->rows; y++) {
        uint32_t squares = layer->epsilon;
        int32_t mul, shift;

        for (int32_t x = 0; x < layer->columns; x++) {
            int32_t t = in[x] - layer->in_zero;

            squares += (uint32_t)(t * t);
        }
        scale_of(layer, squares, &mul, &shift);
        for (int32_t x = 0; x < layer->columns; x++)
            out[x] =
                mur_requant((in[x] - layer->in_zero) * layer->w[x], mul, shift, &layer->output);
        in += layer->columns;
        out += layer->columns;
    }
}

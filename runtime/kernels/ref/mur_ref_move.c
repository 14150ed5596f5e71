/* mur_ref_move.c - bytes to other places. */
#include "mur_nn.h"

#include <string.h>

void mur_ref_copy_s8(const mur_copy *layer, const int8_t *in, int8_t *out)
{
    for (int32_t y = 0; y < layer->rows; y++)
        memcpy(out + y * layer->out_pitch, in + y * layer->in_pitch, (size_t)layer->row_bytes);
}

static int8_t *fill(int8_t *out, int32_t value, int32_t count)
{
    memset(out, value, (size_t)count);
    return out + count;
}

void mur_ref_pad_s8(const mur_pad_s8 *layer, const int8_t *in, int8_t *out)
{
    int32_t row = layer->in_w * layer->c, left = layer->left * layer->c;
    int32_t right = layer->right * layer->c, border = left + row + right;

    out = fill(out, layer->fill, layer->top * border);
    for (int32_t y = 0; y < layer->in_h; y++) {
        out = fill(out, layer->fill, left);
        memcpy(out, in + y * row, (size_t)row);
        out = fill(out + row, layer->fill, right);
    }
    fill(out, layer->fill, layer->bottom * border);
}

void mur_ref_resize_nearest_s8(const mur_resize_s8 *layer, const int8_t *in, int8_t *out)
{
    for (int32_t y = 0; y < layer->out_h; y++)
        for (int32_t x = 0; x < layer->out_w; x++, out += layer->c)
            memcpy(out, in + (layer->row[y] * layer->in_w + layer->column[x]) * layer->c,
                   (size_t)layer->c);
}

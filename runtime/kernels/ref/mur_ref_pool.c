/* mur_ref_pool.c - windows without weights. */
#include "mur_nn_arith.h"

/* where a window lies inside the image */
typedef struct span {
    int32_t from, to;
} span;

static span inside(int32_t at, int32_t stride, int32_t pad, int32_t kernel, int32_t size)
{
    int32_t first = at * stride - pad;
    span s = { first < 0 ? 0 : first, first + kernel > size ? size : first + kernel };

    return s;
}

static int32_t greatest(const mur_pool_s8 *layer, const int8_t *in, span rows, span columns)
{
    int32_t best = INT8_MIN;

    for (int32_t y = rows.from; y < rows.to; y++)
        for (int32_t x = columns.from; x < columns.to; x++) {
            int32_t q = in[y * layer->in_pitch + x * layer->c];

            best = q > best ? q : best;
        }
    return best;
}

static int32_t average(const mur_pool_s8 *layer, const int8_t *in, span rows, span columns)
{
    int32_t count = (rows.to - rows.from) * (columns.to - columns.from), sum = 0;

    if (count <= 0)
        return 0;
    for (int32_t y = rows.from; y < rows.to; y++)
        for (int32_t x = columns.from; x < columns.to; x++)
            sum += in[y * layer->in_pitch + x * layer->c];
    return (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
}

static void pool(const mur_pool_s8 *layer, const int8_t *in, int8_t *out,
                 int32_t (*of)(const mur_pool_s8 *, const int8_t *, span, span))
{
    for (int32_t y = 0; y < layer->out_h; y++) {
        span rows = inside(y, layer->stride_h, layer->pad_top, layer->kernel_h, layer->in_h);

        for (int32_t x = 0; x < layer->out_w; x++) {
            span columns =
                inside(x, layer->stride_w, layer->pad_left, layer->kernel_w, layer->in_w);
            int8_t *to = out + y * layer->out_pitch + x * layer->c;

            for (int32_t c = 0; c < layer->c; c++)
                to[c] = (int8_t)mur_clamp(of(layer, in + c, rows, columns), layer->min, layer->max);
        }
    }
}

void mur_ref_max_pool_s8(const mur_pool_s8 *layer, const int8_t *in, int8_t *out)
{
    pool(layer, in, out, greatest);
}

void mur_ref_average_pool_s8(const mur_pool_s8 *layer, const int8_t *in, int8_t *out)
{
    pool(layer, in, out, average);
}

void mur_ref_mean_s8(const mur_mean_s8 *layer, const int8_t *in, int8_t *out)
{
    for (int32_t c = 0; c < layer->c; c++) {
        int32_t sum = -layer->pixels * layer->in_zero;

        for (int32_t i = 0; i < layer->pixels; i++)
            sum += in[i * layer->c + c];
        out[c] = mur_requant(sum, layer->mul, layer->shift, &layer->output);
    }
}

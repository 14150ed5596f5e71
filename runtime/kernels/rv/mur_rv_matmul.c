/* mur_rv_matmul.c - products of two computed matrices.
 *
 * Sixteen of b's columns are packed by fours; then four rows of a at a time, two in a word, are
 * multiplied with them as mur_rv_conv_wide_s8 does. A column's bias has in it what a's zero point
 * takes from its sums; what b's takes is that times the sum of a row. */
#include "mur_rv_matmul.h"

#include "mur_rv_four.h"

typedef struct job {
    const mur_matmul_s8 *layer;
    int8_t *panel;
    void *x;        /* int32 [inputs][2], or int8 [inputs] of one row */
    int32_t inputs; /* depth, rounded up to a multiple of 2 */
    int32_t bytes;  /* of four columns */
    mur_ref_output output;
} job;

MUR_RV_MULTIPLY4(multiply4, -32769)

/* one column of four, bytes four apart; returns their sum */
static int32_t pack_column(const mur_matmul_s8 *layer, const uint8_t *b, int8_t *to)
{
    int32_t sum = 0, step = layer->b_row, flip = layer->b_flip;

    for (const int8_t *end = to + MUR_RV_CHANNELS * layer->depth; to != end;
         to += MUR_RV_CHANNELS, b += step) {
        *to = (int8_t)(*b ^ flip);
        sum += *to;
    }
    if (layer->depth & 1)
        *to = 0;
    return sum;
}

static void pack_panel(const job *w, const uint8_t *b, int32_t columns)
{
    const mur_matmul_s8 *layer = w->layer;

    for (int8_t *to = w->panel; columns > 0; columns -= MUR_RV_CHANNELS, to += w->bytes) {
        mur_ref_channel *four = (void *)to;
        int32_t count = columns < MUR_RV_CHANNELS ? columns : MUR_RV_CHANNELS;

        for (int32_t i = 0; i < count; i++, b += layer->b_column)
            four[i].bias =
                layer->a_zero * (layer->depth * layer->b_zero -
                                 pack_column(layer, b, (int8_t *)(four + MUR_RV_CHANNELS) + i));
    }
}

/* Rows p and q to every second word. What is to be taken from their sums: those of p and q times
 * b's zero point, and what mur_rv_widen does. */
static void put_pair(const job *w, int32_t *x, const uint8_t *p, const uint8_t *q, int32_t *offsets)
{
    const mur_matmul_s8 *layer = w->layer;
    int32_t flip = layer->a_flip, first = 0, second = 0;

    for (const uint8_t *end = p + layer->depth; p != end; p++, q++, x += 2) {
        int32_t low = (int8_t)(*p ^ flip), high = (int8_t)(*q ^ flip);

        first += low;
        second += high;
        *x = low + high * 65536;
    }
    if (layer->depth & 1)
        *x = 0;
    offsets[0] = (int32_t)((uint32_t)(layer->b_zero * first) + ((uint32_t)w->inputs << 15));
    offsets[1] = layer->b_zero * second - (w->inputs >> 1);
}

static void put_one(const job *w, int8_t *x, const uint8_t *p, int32_t *offsets)
{
    int32_t flip = w->layer->a_flip, sum = 0;

    for (const uint8_t *end = p + w->layer->depth; p != end; p++, x++) {
        *x = (int8_t)(*p ^ flip);
        sum += *x;
    }
    if (w->layer->depth & 1)
        *x = 0;
    offsets[0] = w->layer->b_zero * sum;
}

/* so many rows, gathered as one or as four, with the panel */
static void multiply(const job *w, int32_t rows, int32_t turns, int32_t columns,
                     const int32_t *offsets, uint8_t *out)
{
    const mur_matmul_s8 *layer = w->layer;
    const mur_ref_channel factor = { 0, layer->mul, layer->shift };
    const int8_t *b = w->panel;
    int32_t sums[MUR_RV_CHANNELS * MUR_RV_PIXELS];

    for (; columns > 0; columns -= MUR_RV_CHANNELS, out += MUR_RV_CHANNELS) {
        const mur_ref_channel *four = (const void *)b;
        const int32_t *sum = sums;

        b += w->bytes;
        if (turns == 1) {
            mur_rv_multiply1(w->x, four, b, sums);
        } else {
            multiply4(w->x, four, b, sums);
        }
        for (int32_t i = 0; i < MUR_RV_CHANNELS * turns; i++)
            sums[i] = (int32_t)((uint32_t)sums[i] - (uint32_t)offsets[i & (turns - 1)]);
        for (int32_t i = 0; i < MUR_RV_CHANNELS && i < columns; i++, sum += turns)
            if (w->output.simple)
                mur_ref_finish(&w->output, &factor, sum, rows, (int8_t *)out + i, layer->out_pitch);
            else
                for (int32_t j = 0; j < rows; j++)
                    out[j * layer->out_pitch + i] = mur_matmul_output(layer, sum[j]);
    }
}

static void run_panel(const job *w, const uint8_t *a, int32_t columns, uint8_t *out)
{
    int32_t pitch = w->layer->a_pitch, left = w->layer->rows, offsets[MUR_RV_PIXELS];

    while (left > 2) { /* of three the last one twice */
        int32_t rows = left < MUR_RV_PIXELS ? left : MUR_RV_PIXELS;

        put_pair(w, w->x, a, a + pitch, offsets);
        put_pair(w, (int32_t *)w->x + 1, a + 2 * pitch, a + (rows - 1) * pitch, offsets + 2);
        multiply(w, rows, MUR_RV_PIXELS, columns, offsets, out);
        left -= rows;
        a += rows * pitch;
        out += rows * w->layer->out_pitch;
    }
    for (; left > 0; left--, a += pitch, out += w->layer->out_pitch) {
        put_one(w, w->x, a, offsets);
        multiply(w, 1, 1, columns, offsets, out);
    }
}

void mur_rv_matmul_s8(const mur_matmul_s8 *layer, const void *a, const void *b, void *out,
                      void *scratch)
{
    int32_t fours = mur_rv_matmul_fours(layer), panel = MUR_RV_CHANNELS * fours;
    job w;

    if (layer->rows == 1) { /* which does not pay for packing */
        mur_matmul_plain(layer, a, b, out);
        return;
    }
    w.layer = layer;
    w.panel = scratch;
    w.inputs = mur_rv_matmul_inputs(layer);
    w.bytes = mur_rv_matmul_bytes(layer);
    w.x = w.panel + fours * w.bytes;
    w.output = mur_ref_output_of(&layer->output, 1);
    w.output.simple = layer->output.kind == MUR_REQUANT_Q31 && layer->shift < 0 &&
                      layer->shift >= -21 && layer->depth < 1 << 14 && layer->out_flip == 0;
    for (int32_t column = 0; column < layer->columns; column += panel) {
        int32_t left = layer->columns - column, columns = left < panel ? left : panel;

        pack_panel(&w, (const uint8_t *)b + column * layer->b_column, columns);
        run_panel(&w, a, columns, (uint8_t *)out + column);
    }
}

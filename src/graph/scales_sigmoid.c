/* scales_sigmoid.c - the table that sigmoid and tanh of 16 bits are made of: see scales.h. */
#include <math.h>

#include "base/real.h"
#include "graph/scales.h"

enum { FRACTION = 12 }; /* the table reads thirds of 2^-12 */

void muc_scale_sigmoid_table(uint16_t table[256])
{
    const double most = 65536, step = 1.0 / 24;

    for (int i = 0; i < 255; i++) {
        double s = 1 / (1 + muc_exp(-i * step));
        double curvature = s * (1 - s) * (1 - 2 * s) * step * step;

        table[i] = (uint16_t)(most * (s - curvature / 16) + 0.5);
    }
    table[255] = 65535;
}

/* whether a scale is about a power of two, as TFLite sees it */
static bool is_power(float scale, int *power)
{
    double log2 = muc_log((double)scale) / muc_log(2), nearest = floor(log2 + 0.5);

    *power = (int)nearest;
    return fabs(log2 - nearest) < 1e-3;
}

bool muc_scale_of_table(muc_op op, float x, float y, muc_table_scale *out)
{
    enum { MOST_SHIFT = 30 };
    const double most = 32767;
    double factor = (double)x * (1 << FRACTION) * 3;
    unsigned flags = muc_op_get(op)->flags;
    int power;

    if (!(flags & MUC_OP_SQUASHES) || !is_power(y, &power) || power != -15)
        return false;
    *out = (muc_table_scale){ 0 };
    if (is_power(x, &power) && power + FRACTION >= 0 &&
        power + FRACTION <= !!(flags & MUC_OP_SIGNED)) {
        out->mul = 3 << (power + FRACTION);
        return true;
    }
    for (; factor <= most / 2 && out->shift <= MOST_SHIFT; out->shift++)
        factor *= 2;
    if (factor > most)
        return false;
    out->mul = (int32_t)factor;
    out->round = out->shift ? (int32_t)(UINT32_C(1) << (out->shift - 1)) : 0;
    return true;
}

static bool is_plain_i16(const muc_tensor *tensor)
{
    return tensor->dtype == MUC_I16 && tensor->quantization && tensor->quantization->count == 1 &&
           !muc_zero_of(tensor);
}

bool muc_scale_of_i16(const muc_graph *graph, const muc_node *node, muc_table_scale *out)
{
    const muc_tensor *x = &graph->tensors[node->inputs[0]], *y = &graph->tensors[node->outputs[0]];

    return is_plain_i16(x) && is_plain_i16(y) &&
           muc_scale_of_table(node->op, muc_scale_of(x), muc_scale_of(y), out);
}

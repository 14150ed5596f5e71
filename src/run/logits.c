/* logits.c - computes statistics of logits in binary64 with base/real.h: the same bits on every
 * machine. */
#include "run/logits.h"

#include "base/real.h"

double muc_logits_partition(const float *logits, uint32_t n)
{
    double largest = (double)logits[0], sum = 0;

    for (uint32_t i = 1; i < n; i++)
        largest = (double)logits[i] > largest ? (double)logits[i] : largest;
    for (uint32_t i = 0; i < n; i++)
        sum += muc_exp((double)logits[i] - largest);
    return largest + muc_log(sum);
}

uint32_t muc_logits_arg_max(const float *logits, uint32_t n)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < n; i++) {
        if (logits[i] > logits[best])
            best = i;
    }
    return best;
}

double muc_logits_divergence(const float *p, double p_partition, const float *q, double q_partition,
                             uint32_t n)
{
    double sum = 0;

    for (uint32_t i = 0; i < n; i++) {
        double ln_p = (double)p[i] - p_partition, ln_q = (double)q[i] - q_partition;

        sum += muc_exp(ln_p) * (ln_p - ln_q);
    }
    return sum;
}

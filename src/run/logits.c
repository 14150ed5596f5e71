/* logits.c - computes statistics of logits in binary64 with base/real.h: the same bits on every
 * machine. */
#include "run/logits.h"

#include "base/real.h"

enum { AT_ONCE = 256 }; /* exponentials */

static uint32_t next_count(uint32_t left)
{
    return left < AT_ONCE ? left : AT_ONCE;
}

double muc_logits_partition(const float *logits, uint32_t n)
{
    double largest = (double)logits[0], sum = 0, powers[AT_ONCE];

    for (uint32_t i = 1; i < n; i++)
        largest = (double)logits[i] > largest ? (double)logits[i] : largest;
    for (uint32_t i = 0, count; i < n; i += count) {
        count = next_count(n - i);
        for (uint32_t j = 0; j < count; j++)
            powers[j] = (double)logits[i + j] - largest;
        muc_exps(powers, count);
        for (uint32_t j = 0; j < count; j++)
            sum += powers[j];
    }
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
    double sum = 0, powers[AT_ONCE];

    for (uint32_t i = 0, count; i < n; i += count) {
        count = next_count(n - i);
        for (uint32_t j = 0; j < count; j++)
            powers[j] = (double)p[i + j] - p_partition;
        muc_exps(powers, count);
        for (uint32_t j = 0; j < count; j++) {
            double ln_p = (double)p[i + j] - p_partition, ln_q = (double)q[i + j] - q_partition;

            sum += powers[j] * (ln_p - ln_q);
        }
    }
    return sum;
}

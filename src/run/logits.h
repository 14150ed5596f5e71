/* logits.h - what rows of logits say, and how two of them differ. */
#ifndef MUC_LOGITS_H
#define MUC_LOGITS_H

#include <stdint.h>

/* ln of the sum of exp over n logits. */
double muc_logits_partition(const float *logits, uint32_t n);
/* Kullback-Leibler divergence: the sum of p ln(p / q); each with its muc_logits_partition. */
double muc_logits_divergence(const float *p, double p_partition, const float *q, double q_partition,
                             uint32_t n);
/* The largest one's index, the lowest of equals. */
uint32_t muc_logits_arg_max(const float *logits, uint32_t n);

#endif

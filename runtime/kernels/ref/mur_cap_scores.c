/* mur_cap_scores.c - soft caps on the scores of attention, which few models have. */
#include "mur_decoder.h"
#include "mur_real.h"

void mur_cap_scores(float cap, uint32_t count, float *scores)
{
    for (uint32_t t = 0; t < count; t++)
        scores[t] = cap * mur_real_tanh(scores[t] / cap);
}

/* features.c - the features of a recording by the code of `muc frontend --name ears`, for
 * train_keywords.py to call. */
#include "ears.h"

/* samples for `frames` frames to their features [frames][EARS_FEATURES], times 2^16 */
void features_of(const int16_t *samples, uint32_t frames, int32_t *out);

void features_of(const int16_t *samples, uint32_t frames, int32_t *out)
{
    static uint64_t scratch[EARS_SCRATCH_BYTES / 8 + 1];

    for (uint32_t i = 0; i < frames; i++)
        mur_front_end_q16_run(&ears_q16, samples + i * EARS_HOP, scratch, out + i * EARS_FEATURES);
}

/* mur_mve_svdf_s16.c - SVDF with a state of 16 bits in vectors of Cortex-M55: see mur_recurrent.h.
 */
#include "mur_mve_dot.h"
#define dot mur_mve_dot_s8
#define VALUE int16_t
#define LEAST INT16_MIN
#define MOST INT16_MAX
#define dot_time(weights, state, count, zero, sum) mur_mve_dot_s16(weights, state, count, sum)
#define move_down mur_mve_bytes_down
#include "mur_svdf_int.h"

void mur_mve_svdf_s16_run(const mur_svdf *layer, const int8_t *x, const int8_t *feature,
                          const int16_t *time, const int32_t *bias, int16_t *state, int8_t *y)
{
    mur_svdf_int_run(layer, x, feature, time, bias, state, y);
}

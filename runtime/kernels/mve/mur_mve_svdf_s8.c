/* mur_mve_svdf_s8.c - SVDF with a state of 8 bits in vectors of Cortex-M55: see mur_recurrent.h. */
#include "mur_mve_dot.h"
#define dot mur_mve_dot_s8
#define VALUE int8_t
#define LEAST INT8_MIN
#define MOST INT8_MAX
#define dot_time mur_mve_dot_less_s8
#define move_down mur_mve_bytes_down
#include "mur_svdf_int.h"

void mur_mve_svdf_s8_run(const mur_svdf *layer, const int8_t *x, const int8_t *feature,
                         const int8_t *time, const int32_t *bias, int8_t *state, int8_t *y)
{
    mur_svdf_int_run(layer, x, feature, time, bias, state, y);
}

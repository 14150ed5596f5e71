/* mur_svdf_s8.c - the SVDF layer of mur_recurrent.h with a state of int8, in plain C. */
#include "mur_dot.h"
#define dot mur_dot_s8
#define VALUE int8_t
#define LEAST INT8_MIN
#define MOST INT8_MAX
#define dot_time(weights, state, count, zero, sum) mur_dot_less_s8(weights, state, count, zero, sum)
#include "mur_svdf_int.h"

void mur_svdf_s8_run(const mur_svdf *layer, const int8_t *x, const int8_t *feature,
                     const int8_t *time, const int32_t *bias, int8_t *state, int8_t *y)
{
    mur_svdf_int_run(layer, x, feature, time, bias, state, y);
}

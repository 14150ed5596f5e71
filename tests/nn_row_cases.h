/* nn_row_cases.h - random rows for the kernels of mur_nn.def that compute each row by all of its
 * elements: softmax, its logarithm, norms. Freestanding: the same cases run on the host and on
 * emulated boards. */
#ifndef NN_ROW_CASES_H
#define NN_ROW_CASES_H

#include "mur_nn.h"

/* `rounds` random layers of each kind: how many are wrong, the last such kernel's name in *name. */
uint32_t nn_check_rows(uint32_t rounds, const char **name);

#endif

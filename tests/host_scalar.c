/* host_scalar.c - the host's kernels as processors without AVX2 run them. */
#define MUR_HOST_LEVEL 0
#define HOST(name) mur_scalar_##name

#include "host_kernels.h"

/* host_avx2.c - the host's kernels as processors without AVX-512 run them. */
#define MUR_HOST_LEVEL 1
#define HOST(name) mur_avx2_##name

#include "host_kernels.h"

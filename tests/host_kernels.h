/* host_kernels.h - a second time the kernels of the machine that runs the compiler, under the names
 * HOST(..): for a file that sets MUR_HOST_LEVEL, so that they use less of the processor.
 */
#define mur_host_quantize HOST(quantize)
#define mur_host_linear HOST(linear)
#define mur_host_linear_q2 HOST(linear_q2)
#define mur_host_linear_q4 HOST(linear_q4)
#define mur_host_linear_bd HOST(linear_bd)
#define mur_host_attention HOST(attention)

#include "../runtime/kernels/host/mur_host_bd.c"
#include "../runtime/kernels/host/mur_host_decoder.c"
#include "../runtime/kernels/host/mur_host_low.c"

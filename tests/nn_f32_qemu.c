/* nn_f32_qemu.c - the cases of half_cases.h and nn_f32_cases.h on an emulated board, as nn_qemu.c.
 */
#include "half_cases.h"
#include "nn_f32_cases.h"
#include "tell.h"

int main(void);

int main(void)
{
    uint32_t wrong;

    host_open();
    wrong = tell(half_check_widening(), " halves become wrong floats\n");
    wrong += tell(half_check_narrowing(20000), " floats become wrong halves\n");
    wrong += tell(nn_f32_check(60, 0).wrong, " layers on floats wrong\n");
    wrong += tell(nn_f32_check(60, 1).wrong, " depthwise layers on floats wrong\n");
    wrong += tell(nn_f32_check_products(60), " products of floats wrong\n");
    return wrong != 0;
}

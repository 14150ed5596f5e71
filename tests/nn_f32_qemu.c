/* nn_f32_qemu.c - the cases of nn_f32_cases.h on an emulated board, as nn_qemu.c. */
#include "nn_f32_cases.h"
#include "tell.h"

int main(void);

int main(void)
{
    uint32_t wrong;

    host_open();
    wrong = tell(nn_f32_check(60, 0).wrong, " layers on floats wrong\n");
    wrong += tell(nn_f32_check(60, 1).wrong, " depthwise layers on floats wrong\n");
    wrong += tell(nn_f32_check_products(60), " products of floats wrong\n");
    return wrong != 0;
}

/* nn_f16_qemu.c - the cases of nn_f16_cases.h on an emulated board, as nn_qemu.c. */
#include "nn_f16_cases.h"
#include "tell.h"

int main(void);

int main(void)
{
    uint32_t wrong;

    host_open();
    wrong = tell(nn_f16_check(200, 0).wrong, " layers on halves wrong\n");
    wrong += tell(nn_f16_check(200, 1).wrong, " depthwise layers on halves wrong\n");
    wrong += tell(nn_f16_check_pools(200), " pools of halves wrong\n");
    wrong += tell(nn_f16_check_elements(100), " elements of halves wrong\n");
    return wrong != 0;
}

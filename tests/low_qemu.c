/* low_qemu.c - the cases of low_cases.h on an emulated board, as nn_qemu.c. */
#include "low_cases.h"
#include "semihosting.h"

int main(void);

static uint32_t tell_matrices(const low_kernel *kernel)
{
    low_result r = low_check(kernel);

    host_print(HOST_STDOUT, kernel->name);
    host_print(HOST_STDOUT, " matrices of a decoder: ");
    host_print_number(HOST_STDOUT, r.run);
    host_print(HOST_STDOUT, ", wrong: ");
    host_print_number(HOST_STDOUT, r.wrong);
    if (r.wrong != 0) {
        const uint32_t first[] = { r.bits, r.n, r.k, r.at };

        host_print(HOST_STDOUT, "; first, its bits, rows, columns and number:");
        for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++) {
            host_print(HOST_STDOUT, " ");
            host_print_number(HOST_STDOUT, first[i]);
        }
    }
    host_print(HOST_STDOUT, "\n");
    return r.wrong + (r.run == 0);
}

int main(void)
{
    uint32_t wrong = 0;

    host_open();
    for (uint32_t i = 0; i < low_kernels_count; i++)
        wrong += tell_matrices(&low_kernels[i]);
    return wrong != 0;
}

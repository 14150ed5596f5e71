/* attention_qemu.c - the cases of attention_cases.h on an emulated board, as nn_qemu.c. */
#include "attention_cases.h"
#include "semihosting.h"

int main(void);

static uint32_t tell_attention(const attention_kernel *kernel)
{
    mur_attention_q8 op = { 0 };
    uint32_t wrong = attention_check(kernel->run, 24, &op);

    host_print(HOST_STDOUT, kernel->name);
    host_print(HOST_STDOUT, " attention of a decoder, wrong: ");
    host_print_number(HOST_STDOUT, wrong);
    if (wrong != 0) {
        const uint32_t first[] = { op.heads, op.kv_heads, op.width, op.context, op.seen };

        host_print(HOST_STDOUT, "; first, its heads, those of keys, width, context, seen:");
        for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++) {
            host_print(HOST_STDOUT, " ");
            host_print_number(HOST_STDOUT, first[i]);
        }
    }
    host_print(HOST_STDOUT, "\n");
    return wrong;
}

int main(void)
{
    uint32_t wrong = 0;

    host_open();
    for (uint32_t i = 0; i < attention_kernels_count; i++)
        wrong += tell_attention(&attention_kernels[i]);
    return wrong != 0;
}

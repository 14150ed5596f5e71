/* nn_qemu.c - the cases of nn_cases.h on an emulated board: tests/test_nn_qemu.py builds and runs
 * it. Prints each kernel and its layers; leaves with 1 if one is wrong. */
#include "nn_cases.h"
#include "nn_row_cases.h"
#include "tell.h"

int main(void);

static void tell_layers(const nn_result *r)
{
    host_print_number(HOST_STDOUT, r->run);
    host_print(HOST_STDOUT, " layers, wrong: ");
    host_print_number(HOST_STDOUT, r->wrong);
    if (r->wrong != 0) {
        const int32_t *words = (const int32_t *)(const void *)&r->first;

        host_print(HOST_STDOUT, "; first, its descriptor's words:");
        for (size_t i = 0; i < sizeof(r->first) / 4; i++) {
            host_print(HOST_STDOUT, " ");
            host_print_number(HOST_STDOUT, (uint32_t)words[i]);
        }
        host_print(HOST_STDOUT, "; at ");
        host_print_number(HOST_STDOUT, (uint32_t)r->at);
    }
    host_print(HOST_STDOUT, "\n");
}

int main(void)
{
    uint32_t wrong = 0;
    const char *name = "none";

    host_open();
    for (uint32_t i = 0; i < nn_kernels_count; i++)
        for (int overlapping = 0; overlapping < 2; overlapping++) {
            nn_result r = nn_check(&nn_kernels[i], 100, overlapping);

            host_print(HOST_STDOUT, nn_kernels[i].name);
            host_print(HOST_STDOUT, overlapping ? " overlapping: " : ": ");
            tell_layers(&r);
            wrong += r.wrong + (r.run == 0);
        }
    wrong += tell(nn_check_others(100, &name), " layers without weights wrong\n");
    wrong += tell(nn_check_rows(100, &name), " layers of rows wrong\n");
    wrong += tell(nn_check_products(100, &name), " products of computed matrices wrong\n");
    host_print(HOST_STDOUT, "the last wrong kernel of these: ");
    host_print(HOST_STDOUT, name);
    host_print(HOST_STDOUT, "\n");
    return wrong != 0;
}

/* nn_qemu.c - the cases of nn_cases.h on an emulated board: tests/test_nn_qemu.py builds and runs
 * it. Prints each kernel and its layers; leaves with 1 if one is wrong. */
#include "attention_cases.h"
#include "low_cases.h"
#include "nn_cases.h"
#include "nn_f32_cases.h"
#include "nn_row_cases.h"
#include "semihosting.h"

int main(void);

static void tell(const nn_result *r)
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
    uint32_t wrong = 0, others, rows, products;
    const char *name;

    host_open();
    for (uint32_t i = 0; i < nn_kernels_count; i++)
        for (int overlapping = 0; overlapping < 2; overlapping++) {
            nn_result r = nn_check(&nn_kernels[i], 100, overlapping);

            host_print(HOST_STDOUT, nn_kernels[i].name);
            host_print(HOST_STDOUT, overlapping ? " overlapping: " : ": ");
            tell(&r);
            wrong += r.wrong + (r.run == 0);
        }
    name = "";
    others = nn_check_others(100, &name);
    host_print_number(HOST_STDOUT, others);
    host_print(HOST_STDOUT, " layers without weights wrong ");
    host_print(HOST_STDOUT, name);
    host_print(HOST_STDOUT, "\n");
    others += rows = nn_check_rows(100, &name);
    host_print_number(HOST_STDOUT, rows);
    host_print(HOST_STDOUT, " layers of rows wrong ");
    host_print(HOST_STDOUT, name);
    host_print(HOST_STDOUT, "\n");
    others += products = nn_check_products(100, &name);
    host_print_number(HOST_STDOUT, products);
    host_print(HOST_STDOUT, " products of computed matrices wrong ");
    host_print(HOST_STDOUT, name);
    host_print(HOST_STDOUT, "\n");
    for (int depthwise = 0; depthwise < 2; depthwise++) {
        uint32_t floats = nn_f32_check(60, depthwise).wrong;

        host_print_number(HOST_STDOUT, floats);
        host_print(HOST_STDOUT, depthwise ? " depthwise" : " other");
        host_print(HOST_STDOUT, " layers on floats wrong\n");
        wrong += floats;
    }
    products = nn_f32_check_products(60);
    wrong += products;
    host_print_number(HOST_STDOUT, products);
    host_print(HOST_STDOUT, " products of floats wrong\n");
    for (uint32_t i = 0; i < low_kernels_count; i++)
        wrong += tell_matrices(&low_kernels[i]);
    for (uint32_t i = 0; i < attention_kernels_count; i++)
        wrong += tell_attention(&attention_kernels[i]);
    return wrong + others != 0;
}

/* main.c - a network whose constants lie in a flash of their own: says whether they are right, and
 * if so, what it answers. */
#include "net.h"
#include "semihosting.h"

static uint8_t arena[NET_ARENA_BYTES] __attribute__((aligned(16)));

static uint32_t answer(void)
{
    net_inputs inputs;
    net_outputs outputs;
    uint32_t best = 0;

    net_init(arena, &inputs, &outputs);
    for (uint32_t i = 0; i < NET_X_ELEMENTS; i++)
        inputs.x[i] = (float)i;
    net_run(arena);
    for (uint32_t i = 1; i < NET_Y_ELEMENTS; i++)
        if (outputs.y[i] > outputs.y[best])
            best = i;
    return best;
}

int main(void)
{
    static const char *const states[] = { "right", "of another network", "damaged" };
    int state;

    host_open();
    state = net_weights_check();
    host_print(HOST_STDOUT, "weights: ");
    host_print(HOST_STDOUT, states[state]);
    if (state == 0) {
        host_print(HOST_STDOUT, ", answer: ");
        host_print_number(HOST_STDOUT, answer());
    }
    host_print(HOST_STDOUT, "\n");
    return state;
}

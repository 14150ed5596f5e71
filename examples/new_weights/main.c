/* main.c - a network whose constants lie in a flash of their own: says whether they are right, and
 * if so, what it answers. */
#include "net_answer.h"
#include "semihosting.h"

static uint8_t arena[NET_ARENA_BYTES] __attribute__((aligned(16)));

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
        host_print_number(HOST_STDOUT, net_answer(arena));
    }
    host_print(HOST_STDOUT, "\n");
    return state;
}

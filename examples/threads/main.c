/* main.c - two networks in two threads that preempt each other, and new weights for one of them
 * while the other runs on. */
#include <string.h>

#include "gesture.h"
#include "net_answer.h"
#include "semihosting.h"
#include "two_threads.h"

enum { CYCLES = 5000, SWITCHES = 100, STACK_WORDS = 1024 };

/* where net_weights.S has put the constants: this board's stand for flash, which can be written */
extern uint8_t net_weights[];
/* what came over the air */
extern const uint8_t program_file[], program_file_end[];

static uint8_t gesture_arena[GESTURE_ARENA_BYTES] __attribute__((aligned(16)));
static uint8_t net_arena[NET_ARENA_BYTES] __attribute__((aligned(16)));
static uint32_t gesture_stack[STACK_WORDS] __attribute__((aligned(8)));
static volatile uint32_t gesture_runs, gesture_wrong;

static void run_gesture(void)
{
    for (;;) {
        gesture_wrong += gesture_selftest(gesture_arena) != 0;
        gesture_runs++;
    }
}

/* Runs while the other thread comes between often enough, and says what it always answered. */
static void tell_answer(void)
{
    const uint32_t until = thread_switches + SWITCHES, first = net_answer(net_arena);
    uint32_t others = 0;

    while (thread_switches < until)
        others += net_answer(net_arena) != first;
    host_print(HOST_STDOUT, "net: answer ");
    host_print_number(HOST_STDOUT, first);
    host_print(HOST_STDOUT, others ? ", and others\n" : "\n");
}

/* This thread alone runs the network, so no run is under way. damaged: a bit of it is turned. */
static void take_weights(uint8_t damaged)
{
    static const char *const states[] = { "right", "of another network", "damaged" };

    memcpy(net_weights, program_file, NET_WEIGHTS_BYTES);
    net_weights[0] ^= damaged;
    host_print(HOST_STDOUT, "net: new weights are ");
    host_print(HOST_STDOUT, states[net_weights_check()]);
    host_print(HOST_STDOUT, "\n");
}

int main(void)
{
    host_open();
    if (program_file_end - program_file != NET_WEIGHTS_BYTES)
        return 1;
    threads_begin(run_gesture, gesture_stack + STACK_WORDS, CYCLES);
    tell_answer();
    take_weights(1);
    take_weights(0);
    tell_answer();
    host_print(HOST_STDOUT,
               gesture_wrong || gesture_runs == 0 ? "gesture: wrong\n" : "gesture: right\n");
    return gesture_wrong != 0;
}

/* two_threads.c - takes a thread's registers away at a tick of the timer, and gives the other's
 * back. */
#include "two_threads.h"

enum { VECTORS = 16, FAULTS_END = 7, SYSTICK = 15, HANDLER_WORDS = 256 };

volatile uint32_t thread_switches;

static uint32_t *waiting; /* the stack of the thread that does not run, its registers on top */
static uint32_t vectors[VECTORS] __attribute__((aligned(128)));
static uint32_t handler_stack[HANDLER_WORDS] __attribute__((aligned(8)));

uint32_t *exchange(uint32_t *stack);
void switch_threads(void);
void begin_on(uint32_t *handler_stack_end);

uint32_t *exchange(uint32_t *stack)
{
    uint32_t *next = waiting;

    waiting = stack;
    thread_switches++;
    return next;
}

/* The core has put r0 to r3, r12, lr, pc and, where the thread used the floating-point unit (bit 4
 * of lr is 0), s0 to s15 onto the thread's stack. The rest is ours: kernels use all of them. */
__attribute__((naked)) void switch_threads(void)
{
    __asm__ volatile("mrs r0, psp\n"
                     "tst lr, #0x10\n"
                     "it eq\n"
                     "vstmdbeq r0!, {s16-s31}\n"
                     "stmdb r0!, {r4-r11, lr}\n"
                     "bl exchange\n"
                     "ldmia r0!, {r4-r11, lr}\n"
                     "tst lr, #0x10\n"
                     "it eq\n"
                     "vldmiaeq r0!, {s16-s31}\n"
                     "msr psp, r0\n"
                     "bx lr\n");
}

/* The caller keeps its stack as a thread's (PSP); handlers get another (MSP). */
__attribute__((naked)) void begin_on(uint32_t *handler_stack_end)
{
    (void)handler_stack_end;
    __asm__ volatile("mov r1, sp\n"
                     "msr psp, r1\n"
                     "movs r1, #2\n"
                     "msr control, r1\n"
                     "isb\n"
                     "msr msp, r0\n"
                     "bx lr\n");
}

void threads_begin(void (*run)(void), uint32_t *stack_end, uint32_t cycles)
{
    volatile uint32_t *const timer =
        (volatile uint32_t *)0xe000e010; /* SysTick: control, reload, count */
    volatile uint32_t *const table = (volatile uint32_t *)0xe000ed08; /* VTOR */
    const uint32_t *old = (const uint32_t *)*table;

    for (unsigned i = 0; i < FAULTS_END; i++)
        vectors[i] = old[i];
    vectors[SYSTICK] = (uint32_t)switch_threads;
    *table = (uint32_t)vectors;
    *--stack_end = 0x01000000;          /* xPSR: Thumb */
    *--stack_end = (uint32_t)run & ~1u; /* pc */
    for (unsigned i = 0; i < 6; i++)    /* lr, r12, r3 to r0 */
        *--stack_end = 0;
    *--stack_end = 0xfffffffd;       /* lr of a handler: to a thread, without floats */
    for (unsigned i = 0; i < 8; i++) /* r11 to r4 */
        *--stack_end = 0;
    waiting = stack_end;
    begin_on(handler_stack + HANDLER_WORDS);
    timer[1] = cycles - 1;
    timer[2] = 0;
    timer[0] = 7; /* on, with its interrupt, by the core's clock */
}

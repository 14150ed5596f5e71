/* two_threads.h - two threads of a Cortex-M with a floating-point unit, which a timer preempts: the
 * least of an RTOS. */
#ifndef TWO_THREADS_H
#define TWO_THREADS_H

#include <stdint.h>

/* How often a thread has been preempted; changes behind the compiler's back. */
extern volatile uint32_t thread_switches;

/* From here on the caller is one thread and run the other, which must not return; every `cycles` of
 * the core's clock the other goes on. stack_end: the end of run's stack, a multiple of 8. */
void threads_begin(void (*run)(void), uint32_t *stack_end, uint32_t cycles);

#endif

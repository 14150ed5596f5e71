/* start_arm.c - from reset to main on a Cortex-M. */
#include <stdint.h>

#include "semihosting.h"

extern uint32_t data_load[], data_start[], data_end[], bss_start[], bss_end[], stack_top[];
int main(void);
void reset(void);
void fault(void);

void reset(void)
{
    volatile uint32_t *coprocessors = (volatile uint32_t *)0xe000ed88;
    uint32_t *from = data_load;

    *coprocessors |= 0xfu << 20; /* the floating-point unit is off after reset */
#if __ARM_ARCH == 6
    *(volatile uint32_t *)0xe000ed14 |=
        1u << 3; /* words at odd addresses fault, as on the real core */
#endif
    for (uint32_t *to = data_start; to < data_end;)
        *to++ = *from++;
    for (uint32_t *to = bss_start; to < bss_end;)
        *to++ = 0;
    host_exit(main());
}

void fault(void)
{
    host_open();
    host_print(HOST_STDERR, "fault\n");
    host_exit(1);
}

/* initial stack, reset, NMI, and the four faults */
__attribute__((section(".vectors"), used)) static const void *const vectors[] = {
    stack_top,     (void *)reset, (void *)fault, (void *)fault,
    (void *)fault, (void *)fault, (void *)fault,
};

/* self_test.c - loops of 4, 31, 301 .. 3000001 instructions: 3n + 1 each. */
#include "markers.h"

int main(void);

int main(void)
{
    for (unsigned n = 1; n <= 1000000; n *= 10) {
        unsigned left = n;

#if defined(__arm__)
        __asm__ volatile("mov r12, r12\n"
                         "nop\n"
                         "1: nop\n"
                         "subs %0, #1\n"
                         "bne 1b\n"
                         "mov r10, r10\n"
                         : "+r"(left)
                         :
                         : "cc", "memory");
#else
        __asm__ volatile(".option push\n"
                         ".option norvc\n"
                         "addi x0, x0, 1\n"
                         "nop\n"
                         "1: nop\n"
                         "addi %0, %0, -1\n"
                         "bnez %0, 1b\n"
                         "addi x0, x0, 2\n"
                         ".option pop\n"
                         : "+r"(left)
                         :
                         : "memory");
#endif
    }
    return 0;
}

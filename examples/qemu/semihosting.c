/* semihosting.c - Arm's and RISC-V's common semihosting calls; only the trap differs. */
#include "semihosting.h"

enum {
    SYS_OPEN = 0x01,
    SYS_WRITE = 0x05,
    SYS_GET_CMDLINE = 0x15,
    SYS_EXIT_EXTENDED = 0x20,
    MODE_WRITE = 4,  /* ":tt" is then standard output, */
    MODE_APPEND = 8, /* or standard error */
    STOPPED_APPLICATION_EXIT = 0x20026
};

static uint32_t streams[2];

static uint32_t trap(uint32_t operation, const void *block)
{
#if defined(__arm__)
    register uint32_t result __asm__("r0") = operation;
    register const void *argument __asm__("r1") = block;

    __asm__ volatile("bkpt 0xab" : "+r"(result) : "r"(argument) : "memory");
#else
    register uint32_t result __asm__("a0") = operation;
    register const void *argument __asm__("a1") = block;

    __asm__ volatile(".balign 16\n" /* the three must not cross a page */
                     ".option push\n"
                     ".option norvc\n"
                     "slli x0, x0, 0x1f\n"
                     "ebreak\n"
                     "srai x0, x0, 7\n"
                     ".option pop\n"
                     : "+r"(result)
                     : "r"(argument)
                     : "memory");
#endif
    return result;
}

void host_open(void)
{
    static const char console[] = ":tt";
    uintptr_t block[3] = { (uintptr_t)console, MODE_WRITE, sizeof(console) - 1 };

    streams[HOST_STDOUT] = trap(SYS_OPEN, block);
    block[1] = MODE_APPEND;
    streams[HOST_STDERR] = trap(SYS_OPEN, block);
}

void host_write(enum host_stream stream, const uint8_t *bytes, size_t count)
{
    uintptr_t block[3] = { streams[stream], (uintptr_t)bytes, count };

    if (count != 0)
        trap(SYS_WRITE, block);
}

void host_print(enum host_stream stream, const char *text)
{
    size_t count = 0;

    while (text[count] != 0)
        count++;
    host_write(stream, (const uint8_t *)text, count);
}

void host_print_number(enum host_stream stream, uint32_t number)
{
    uint8_t digits[10];
    size_t first = sizeof(digits);

    do {
        digits[--first] = (uint8_t)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    host_write(stream, digits + first, sizeof(digits) - first);
}

int host_arguments(char *text, uint32_t capacity)
{
    uintptr_t block[2] = { (uintptr_t)text, capacity };

    return trap(SYS_GET_CMDLINE, block) == 0;
}

void host_exit(int status)
{
    uintptr_t block[2] = { STOPPED_APPLICATION_EXIT, (uintptr_t)status };

    trap(SYS_EXIT_EXTENDED, block);
    for (;;) {
    }
}

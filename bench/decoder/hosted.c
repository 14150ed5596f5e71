/* hosted.c - examples/qemu/semihosting.h where there is an operating system. */
#include <stdio.h>
#include <stdlib.h>

#include "semihosting.h"

static FILE *stream_of(enum host_stream stream)
{
    return stream == HOST_STDOUT ? stdout : stderr;
}

void host_open(void)
{
}

void host_print(enum host_stream stream, const char *text)
{
    fputs(text, stream_of(stream));
}

void host_print_number(enum host_stream stream, uint32_t number)
{
    fprintf(stream_of(stream), "%lu", (unsigned long)number);
}

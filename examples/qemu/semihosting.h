/* semihosting.h - the debugger's services: what an image without devices has for a console. */
#ifndef SEMIHOSTING_H
#define SEMIHOSTING_H

#include <stddef.h>
#include <stdint.h>

enum host_stream { HOST_STDOUT, HOST_STDERR };

/* Before the others. */
void host_open(void);
void host_write(enum host_stream stream, const uint8_t *bytes, size_t count);
void host_print(enum host_stream stream, const char *text);
void host_print_number(enum host_stream stream, uint32_t number);
/* The words after -append or arg=, separated by single spaces; 0 if they do not fit. */
int host_arguments(char *text, uint32_t capacity);
/* Leaves the emulator. */
void host_exit(int status);

#endif

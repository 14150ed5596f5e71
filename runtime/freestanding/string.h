/* string.h - for toolchains that come without a C library: all that the runtime asks of one.
 *
 * Put this folder on the include path and compile string.c, or bring your own four functions.
 */
#ifndef MUR_FREESTANDING_STRING_H
#define MUR_FREESTANDING_STRING_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t count);
void *memmove(void *to, const void *from, size_t count);
void *memset(void *to, int byte, size_t count);
int memcmp(const void *a, const void *b, size_t count);

#endif

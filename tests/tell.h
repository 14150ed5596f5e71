/* tell.h - what the programs that try kernels on emulated boards print. */
#ifndef TELL_H
#define TELL_H

#include "semihosting.h"

/* prints how many are wrong, and of what; returns it */
static inline uint32_t tell(uint32_t wrong, const char *what)
{
    host_print_number(HOST_STDOUT, wrong);
    host_print(HOST_STDOUT, what);
    return wrong;
}

#endif

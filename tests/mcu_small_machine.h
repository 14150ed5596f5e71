/* mcu_small_machine.h - a machine with DMA whose small memory is as small as a test wants. */
#ifndef MCU_SMALL_MACHINE_H
#define MCU_SMALL_MACHINE_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

/* its first memory is fit for the network, its second for so many bytes */
static inline void write_machine(char path[64], const char *core, unsigned bytes)
{
    FILE *file;

    snprintf(path, 64, "/tmp/muc_machine_XXXXXX");
    file = fdopen(mkstemp(path), "w");
    CHECK(file != NULL);
    fprintf(file,
            "[machine]\nname = small\ncore = %s\ncores = 8\nclock_mhz = 100\n"
            "[memory]\nname = L2\nbytes = 1048576\ncycles_per_kb = 1024\n"
            "holds = weights arena state\n"
            "[memory]\nname = L1\nbytes = %u\ncycles_per_kb = 64\nholds = tiles\n"
            "[dma]\nsetup_cycles = 40\ncycles_per_kb = 128\n",
            core, bytes);
    fclose(file);
}

#endif

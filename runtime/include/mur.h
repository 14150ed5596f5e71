/* mur.h - the device runtime of µCompiler: load a program, verify it, run it.
 *
 * Freestanding C99; memory is the caller's; nothing here allocates, recurses or keeps a global.
 * A program (.utp, src/targets/uthinker/SPEC.md section 7) executes in place, from flash.
 */
#ifndef MUR_H
#define MUR_H

#include <stddef.h>
#include <stdint.h>

#include "mur_status.h"

enum mur_engine { MUR_DMA, MUR_ACC, MUR_CPU, MUR_ENGINES };
enum mur_region { MUR_WGTS, MUR_PARM, MUR_KV, MUR_IO, MUR_REGIONS };
enum mur_buffer { MUR_I0, MUR_I1, MUR_W0, MUR_W1, MUR_GB, MUR_BUFFERS };
enum { MUR_MAX_WORDS = 8, MUR_SLOTS = 64, MUR_TOKENS = 16, MUR_MAX_NESTING = 6 };

/* What the runtime asks of a board. words: one resolved instruction (SPEC.md section 4), valid only
 * during the call. dma and accel queue it and return MUR_OK, or MUR_YIELD when their queue is full
 * (nothing was queued), or MUR_E_FAULT. host executes it before returning. completed gives the
 * number of instructions an engine has completed since the run began, modulo 2^32. */
typedef struct mur_hal {
    void *arg;
    mur_status (*dma)(void *arg, const uint32_t *words);
    mur_status (*accel)(void *arg, const uint32_t *words);
    mur_status (*host)(void *arg, const uint32_t *words);
    uint32_t (*completed)(void *arg, enum mur_engine engine);
} mur_hal;

#endif

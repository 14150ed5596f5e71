/* mur_rvv_pool.c - pools: of as many channels as vectors hold at a time. */
#include "mur_pool.h"
#include "mur_rvv_tile.h"

#if MUR_HAVE_RVV

/* the window's pixels, each of which `code` takes from v0 */
#define WALK(code) \
    "beqz %[rows], 3f\n" \
    "1: mv %[p], %[row]\n" \
    "mv %[n], %[columns]\n" \
    "2: vle8.v v0, (%[p])\n" \
    "add %[p], %[p], %[step]\n" code "addi %[n], %[n], -1\n" \
    "bnez %[n], 2b\n" \
    "add %[row], %[row], %[pitch]\n" \
    "addi %[rows], %[rows], -1\n" \
    "bnez %[rows], 1b\n" \
    "3:\n"

#define MAX_BEGIN "vsetvli %[count], %[left], e8, m8, ta, mu\nvmv.v.x v8, %[min]\n"
#define MAX_END "vmin.vx v8, v8, %[max]\nvse8.v v8, (%[out])\n"

/* sums of 32 bits, of bytes by way of 16 */
#define AVERAGE_BEGIN \
    "vsetvli %[count], %[left], e32, m8, ta, mu\n" \
    "vmv.v.i v8, 0\n" \
    "vsetvli zero, %[count], e16, m4, ta, mu\n"

/* divided with halves away from zero, as mur_pool_divide does */
#define AVERAGE_END \
    "vsetvli zero, %[count], e32, m8, ta, mu\n" \
    "vmslt.vx v0, v8, zero\n" \
    "vadd.vx v8, v8, %[half]\n" \
    "vsub.vx v8, v8, %[twice], v0.t\n" \
    "vdiv.vx v8, v8, %[size]\n"

#define WINDOW_OUTPUTS \
    [row] "+&r"(row), [rows] "+&r"(rows), [p] "=&r"(p), [n] "=&r"(n), [count] "=&r"(count)
#define WINDOW_INPUTS \
    [left] "r"(left), [columns] "r"((intptr_t)w->columns), [step] "r"((intptr_t)w->step), \
        [pitch] "r"((intptr_t)w->pitch), [out] "r"(out), [min] "r"((intptr_t)layer->min), \
        [max] "r"((intptr_t)layer->max)

static void greatest(const mur_pool_window *w, const mur_pool_s8 *layer, int8_t *out)
{
    const int8_t *in = w->in;
    intptr_t count, n;

    for (intptr_t left = layer->c; left > 0; left -= count, in += count, out += count) {
        const int8_t *row = in, *p;
        intptr_t rows = w->columns > 0 ? w->rows : 0;

        __asm__ volatile(MAX_BEGIN WALK("vmax.vv v8, v8, v0\n") MAX_END:WINDOW_OUTPUTS:WINDOW_INPUTS
                         : MUR_RVV_CHANGES);
    }
}

static void average(const mur_pool_window *w, const mur_pool_s8 *layer, int8_t *out)
{
    intptr_t size = w->rows * w->columns, half = size / 2, count, n;
    const int8_t *in = w->in;

    size += size == 0; /* and the sums are 0 */
    for (intptr_t left = layer->c; left > 0; left -= count, in += count, out += count) {
        const int8_t *row = in, *p;
        intptr_t rows = w->columns > 0 ? w->rows : 0;

        __asm__ volatile(AVERAGE_BEGIN WALK("vsext.vf2 v4, v0\nvwadd.wv v8, v8, v4\n")
                             AVERAGE_END MUR_RVV_BYTES "vse8.v v8, (%[out])\n"
                         : WINDOW_OUTPUTS
                         : WINDOW_INPUTS, [pixels] "i"(1), [zero] "r"((intptr_t)0),
                           [size] "r"(size), [half] "r"(half), [twice] "r"(2 * half)
                         : MUR_RVV_CHANGES);
    }
}

#else

static void greatest(const mur_pool_window *w, const mur_pool_s8 *layer, int8_t *out)
{
    mur_pool_greatest(w, layer, out);
}

static void average(const mur_pool_window *w, const mur_pool_s8 *layer, int8_t *out)
{
    mur_pool_average(w, layer, out);
}

#endif

void mur_rvv_max_pool_s8(const mur_pool_s8 *layer, const int8_t *in, int8_t *out)
{
    mur_pool_run(layer, in, out, greatest);
}

void mur_rvv_average_pool_s8(const mur_pool_s8 *layer, const int8_t *in, int8_t *out)
{
    mur_pool_run(layer, in, out, average);
}

/* fast_product.h - the product of the simulated machine for processors with vector instructions:
 * the bits of uthinker_sim_execute.c, eight columns at a time. */
#ifndef UTHINKER_FAST_PRODUCT_H
#define UTHINKER_FAST_PRODUCT_H

#include "base/base.h"
#include "targets/uthinker/sim/uthinker_sim.h"

/* Room for one simulator's products. */
typedef struct muc_fast_product muc_fast_product;

/* For as many threads as ctx has. *out is NULL where this processor has no fast form; the caller
 * closes it after the last run of the simulator that uses it. */
muc_status muc_fast_product_open(muc_context *ctx, muc_fast_product **out);

/* For tests, from here on: as on a processor with AVX2 alone; with threads for whatever is kept,
 * however little it is. NULL is taken. */
void muc_fast_product_narrow(muc_fast_product *product);
void muc_fast_product_share_all(muc_fast_product *product);

/* sim multiplies by product from here on, and does by fast_vector.h what
 * its vector unit does; NULL: all by itself. */
void muc_fast_product_use(muc_fast_product *product, mur_sim *sim);

/* The same, but products are kept until the simulator settles, and then many are done at once, on
 * the threads of ctx. Region WGTS must not change. */
void muc_fast_product_keep(muc_context *ctx, muc_fast_product *product, mur_sim *sim);

/* Operands in region WGTS are from here on packed when they are first met, where this processor has
 * a faster product for that, and there is memory: 5.5 bits a weight, at most so many bytes in all.
 * NULL is taken. */
void muc_fast_product_pack(muc_fast_product *product, size_t most_bytes);

void muc_fast_product_close(muc_fast_product *product);

#endif

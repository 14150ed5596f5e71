/* quotients_int8.h - quotients of int8 as products with a table of inverses. */
#ifndef MUC_MCU_QUOTIENTS_INT8_H
#define MUC_MCU_QUOTIENTS_INT8_H

#include "targets/mcu/steps/step_writer.h"

/* y = clamp((floor((a - zero of a) inverse / 2^16) + offset) / 2^6), rounded down: the inverse of b
 * is that of the byte without a sign. */
enum { MUC_MCU_INVERSE_PLACES = 6, MUC_MCU_PRODUCT_PLACES = 16 };

/* Whether a node divides int8 by int8, has enough elements to be worth a table, and has the bits of
 * all 65,536 pairs so; least, most: the bounds of its output. */
bool muc_mcu_find_inverses(const muc_mcu_lowering *l, const muc_node *node, int32_t least,
                           int32_t most, int32_t inverses[256], int32_t *offset);

#endif

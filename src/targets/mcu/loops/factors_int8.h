/* factors_int8.h - quotients and PReLU of int8 as products with factors that tables have. */
#ifndef MUC_MCU_FACTORS_INT8_H
#define MUC_MCU_FACTORS_INT8_H

#include "targets/mcu/steps/step_writer.h"

/* y = clamp((floor((a - zero of a) factor / 2^16) + offset) / 2^places), rounded down. Of a
 * quotient the factor is that of b's byte, as one without a sign; of a PReLU that of b's element
 * below a's zero, else `above`, with an offset of its own. */
enum { MUC_MCU_PRODUCT_PLACES = 16 };
typedef struct muc_mcu_factors {
    uint32_t count;
    int32_t places;
    int32_t factors[256], offsets[256], above, above_offset;
    bool falls; /* some slopes are below 0; else the first offset is that of all */
} muc_mcu_factors;

/* Whether a node is a quotient of int8, or a PReLU of int8 with constant slopes, has enough
 * elements to be worth a table, and all its bits so; least, most: the bounds of its output. */
bool muc_mcu_find_factors(const muc_mcu_lowering *l, const muc_node *node, int32_t least,
                          int32_t most, muc_mcu_factors *found);

#endif

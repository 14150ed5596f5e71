/* hal.c - the board's part of a network that works in tiles (mur_hal.h), on an emulated board that
 * has one core and no DMA: moves are copied when they start, tasks run at the fork.
 */
#include "mur_hal.h"

#include <stddef.h>
#include <string.h>

mur_hal_ticket mur_hal_start(const mur_hal_move *move)
{
    for (uint32_t row = 0; row < move->rows; row++)
        memcpy((uint8_t *)move->to + (size_t)row * move->to_pitch,
               (const uint8_t *)move->from + (size_t)row * move->from_pitch, move->row_bytes);
    return 1;
}

void mur_hal_wait(mur_hal_ticket ticket)
{
    (void)ticket;
}

void mur_hal_fork(mur_hal_task *task, void *context, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        task(context, i, count);
}

void mur_hal_join(void)
{
}

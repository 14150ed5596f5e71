/* net_answer.h - the greatest output of the network net for the inputs 0, 1, 2, ... */
#ifndef NET_ANSWER_H
#define NET_ANSWER_H

#include "net.h"

/* arena: NET_ARENA_BYTES, a multiple of 16; the answer is the output's index */
static inline uint32_t net_answer(uint8_t *arena)
{
    net_inputs inputs;
    net_outputs outputs;
    uint32_t best = 0;

    net_init(arena, &inputs, &outputs);
    for (uint32_t i = 0; i < NET_X_ELEMENTS; i++)
        inputs.x[i] = (float)i;
    net_run(arena);
    for (uint32_t i = 1; i < NET_Y_ELEMENTS; i++)
        if (outputs.y[i] > outputs.y[best])
            best = i;
    return best;
}

#endif

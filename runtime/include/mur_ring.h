/* mur_ring.h - a queue of items in memory of the caller's: samples that an interrupt puts and a
 * loop takes, or the last frames of features, which overlap from one run of a network to the next.
 *
 * One side puts, one takes; they may be an interrupt and what it interrupts, or two cores. Nothing
 * blocks.
 */
#ifndef MUR_RING_H
#define MUR_RING_H

#include <stdint.h>

typedef struct mur_ring {
    uint8_t *items;
    uint32_t item_bytes, capacity; /* items; capacity is a power of two */
    uint32_t put, taken;           /* items ever, modulo 2^32: each is written by one side */
} mur_ring;

/* memory: capacity * item_bytes bytes, borrowed; capacity a power of two, at most 2^31. */
void mur_ring_open(mur_ring *ring, void *memory, uint32_t item_bytes, uint32_t capacity);
/* Puts as many of the items as there is room for, from the first on, and returns how many. */
uint32_t mur_ring_put(mur_ring *ring, const void *items, uint32_t count);
/* How many items are to be taken. */
uint32_t mur_ring_count(const mur_ring *ring);
/* Copies the oldest `count` items, which stay; returns 0, and copies none, if there are fewer. */
int mur_ring_peek(const mur_ring *ring, void *items, uint32_t count);
/* Takes out the oldest `count` items, or all if there are fewer. */
void mur_ring_take(mur_ring *ring, uint32_t count);

#endif

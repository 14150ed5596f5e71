/* mur_ring.c - a queue between one that puts and one that takes. */
#include <string.h>

#include "mur_ring.h"

/* what stands before it in the program happens before what stands behind it */
#ifdef __GNUC__
#define FENCE() __atomic_thread_fence(__ATOMIC_ACQ_REL)
#else
#define FENCE() (void)0
#endif

/* A counter that the other side writes: what it did before is seen. */
static inline uint32_t theirs(const uint32_t *counter)
{
    uint32_t value = *(const volatile uint32_t *)counter;

    FENCE();
    return value;
}

/* Tells the other side, after what was done before. */
static inline void tell(uint32_t *counter, uint32_t value)
{
    FENCE();
    *(volatile uint32_t *)counter = value;
}

void mur_ring_open(mur_ring *ring, void *memory, uint32_t item_bytes, uint32_t capacity)
{
    ring->items = memory;
    ring->item_bytes = item_bytes;
    ring->capacity = capacity;
    ring->put = ring->taken = 0;
}

uint32_t mur_ring_put(mur_ring *ring, const void *items, uint32_t count)
{
    uint32_t room = ring->capacity - (ring->put - theirs(&ring->taken));
    uint32_t place = ring->put & (ring->capacity - 1), size = ring->item_bytes, before;

    count = count < room ? count : room;
    before = ring->capacity - place < count ? ring->capacity - place : count;
    memcpy(ring->items + place * size, items, before * size);
    memcpy(ring->items, (const uint8_t *)items + before * size, (count - before) * size);
    tell(&ring->put, ring->put + count);
    return count;
}

uint32_t mur_ring_count(const mur_ring *ring)
{
    return theirs(&ring->put) - theirs(&ring->taken);
}

int mur_ring_peek(const mur_ring *ring, void *items, uint32_t count)
{
    uint32_t place = ring->taken & (ring->capacity - 1), size = ring->item_bytes, before;

    if (theirs(&ring->put) - ring->taken < count)
        return 0;
    before = ring->capacity - place < count ? ring->capacity - place : count;
    memcpy(items, ring->items + place * size, before * size);
    memcpy((uint8_t *)items + before * size, ring->items, (count - before) * size);
    return 1;
}

void mur_ring_take(mur_ring *ring, uint32_t count)
{
    uint32_t there = theirs(&ring->put) - ring->taken;

    tell(&ring->taken, ring->taken + (count < there ? count : there));
}

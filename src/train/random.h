/* random.h - random numbers whose state is saved with a checkpoint. */
#ifndef MUC_TRAIN_RANDOM_H
#define MUC_TRAIN_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* SplitMix64: one word of state, which a checkpoint stores. */
typedef struct muc_train_random {
    uint64_t state; /* any value; the seed */
} muc_train_random;

static inline uint64_t muc_train_random_next(muc_train_random *random)
{
    uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* 0..count-1, each as likely to within 2^-32 * count; count > 0 */
static inline uint32_t muc_train_random_below(muc_train_random *random, uint32_t count)
{
    return (uint32_t)((muc_train_random_next(random) >> 32) * count >> 32);
}

/* mean 0, variance 1: the sum of twelve uniform numbers, less six; no function whose last bit
 * differs between machines */
static inline double muc_train_random_normal(muc_train_random *random)
{
    double sum = -6;

    for (unsigned i = 0; i < 12; i++)
        sum += (double)(muc_train_random_next(random) >> 11) * 0x1p-53;
    return sum;
}

#endif

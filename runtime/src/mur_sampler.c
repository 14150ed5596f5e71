/* mur_sampler.c - greedy, temperature, top-k, top-p and min-p sampling without a libm.
 *
 * Candidates are sorted only as far as they are kept: a heap of all ids gives them up one by one,
 * the likeliest first. Without top-k and top-p there is nothing to sort.
 */
#include "mur_sampler.h"
#include "mur_real.h"

#include <float.h>

/* ---- numbers ---- */

static uint32_t next_u32(mur_sampler *s)
{
    const uint64_t old = s->state;
    const uint32_t mixed = (uint32_t)((old >> 18 ^ old) >> 27), turn = (uint32_t)(old >> 59);

    s->state = old * 6364136223846793005u + (54u << 1 | 1);
    return mixed >> turn | mixed << (-turn & 31);
}

void mur_sampler_seed(mur_sampler *s, uint64_t seed)
{
    s->state = 0;
    next_u32(s);
    s->state += seed;
    next_u32(s);
}

#define NO_MASS -87.0f

/* e^x for x <= 0; 0 up to NO_MASS, so that no result is subnormal. Relative error below 2^-22. */
static float exp_of(float x)
{
    static const float taylor[7] = {
        1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f
    };
    float r, y = 1.0f / 5040;
    int32_t n;

    if (!(x > NO_MASS))
        return 0;
    /* x = n ln 2 + r, |r| <= ln 2 / 2; ln 2 in two parts, n times the first of which is exact */
    n = (int32_t)(x * 1.44269504f - 0.5f);
    r = x - (float)n * 0.693359375f;
    r = r - (float)n * -2.12194440e-4f;
    for (int i = 0; i < 7; i++)
        y = y * r + taylor[i];
    return y * mur_float_of((uint32_t)(n + 127) << 23);
}

/* A logit that can be subtracted and compared. */
static float finite_logit(float x)
{
    if (!(x >= -FLT_MAX))
        return -FLT_MAX;
    return x > FLT_MAX ? FLT_MAX : x;
}

/* ---- order ---- */

#define LOWEST_RANK 0x00800001u  /* -FLT_MAX */
#define HIGHEST_RANK 0xff7fffffu /* FLT_MAX */
#define INFINITE_RANK 0xff800000u

/* A number's bits as an integer that ascends with it, the same for +0 and -0. NaNs are beyond both
 * infinities, on the side of their sign. */
static uint32_t ascending(float x)
{
    const uint32_t bits = mur_float_bits(x);

    return bits & MUR_SIGN_BIT ? 0u - bits : bits | MUR_SIGN_BIT;
}

/* The same of finite_logit(x): NaN, of either sign and any payload, and -infinity are equal to
 * -FLT_MAX, infinity to FLT_MAX. */
static uint32_t rank_of(float x)
{
    const uint32_t rank = ascending(x);

    if (rank < LOWEST_RANK || rank > INFINITE_RANK)
        return LOWEST_RANK;
    return rank < HIGHEST_RANK ? rank : HIGHEST_RANK;
}

static int likelier(const float *logits, uint32_t a, uint32_t b)
{
    const uint32_t x = rank_of(logits[a]), y = rank_of(logits[b]);

    return x > y || (x == y && a < b);
}

uint32_t mur_sampler_greater(const float *logits, uint32_t n, uint32_t *bits)
{
    uint32_t best = n, highest = rank_of(mur_float_of(*bits));
    /* bits ^ turn ascends as integers among numbers of the sign of the highest, and those of the
     * other sign are never hidden by it: nearly always one comparison tells */
    uint32_t turn = *bits >> 31 ? ~MUR_SIGN_BIT : 0;
    int32_t least = (int32_t)(*bits ^ turn);

    for (uint32_t i = 0; i < n; i++) {
        uint32_t x = mur_float_bits(logits[i]);

        if ((int32_t)(x ^ turn) <= least || rank_of(logits[i]) <= highest)
            continue;
        highest = rank_of(logits[i]);
        best = i;
        *bits = x;
        turn = x >> 31 ? ~MUR_SIGN_BIT : 0;
        least = (int32_t)(x ^ turn);
    }
    return best;
}

/* The first of equals. */
static uint32_t likeliest(const float *logits, uint32_t n)
{
    uint32_t bits = MUR_LOWEST_LOGIT, best = mur_sampler_greater(logits, n, &bits);

    return best < n ? best : 0;
}

/* Restores the heap of `size` ids below the one at `at`; the likeliest is on top. */
static void sift(const float *logits, uint32_t *heap, uint32_t size, uint32_t at)
{
    const uint32_t id = heap[at];

    for (uint32_t child; (child = 2 * at + 1) < size; at = child) {
        if (child + 1 < size && likelier(logits, heap[child + 1], heap[child]))
            child++;
        if (!likelier(logits, heap[child], id))
            break;
        heap[at] = heap[child];
    }
    heap[at] = id;
}

/* The ids from the end of the array on are sorted, the likeliest last; moves one more there. */
static void give_up_one(const float *logits, uint32_t *heap, uint32_t size)
{
    const uint32_t top = heap[0];

    heap[0] = heap[size - 1];
    heap[size - 1] = top;
    sift(logits, heap, size - 1, 0);
}

/* ---- what is kept ---- */

typedef struct candidates {
    const float *logits;
    uint32_t n;
    const uint32_t *sorted; /* NULL: every id, in order; otherwise from [n - 1] down */
    uint32_t count;
    uint32_t first; /* place of the likeliest */
    float highest;  /* its logit */
} candidates;

static uint32_t id_of(const candidates *c, uint32_t i)
{
    return c->sorted ? c->sorted[c->n - 1 - i] : i;
}

/* How candidates are weighed: the likeliest has the mass 1. */
typedef struct scales {
    float temperature, min_p;
    uint32_t least;  /* ranks below have no mass, */
    uint32_t little; /* those below one that no sum of 1 or more notices */
} scales;

/* A rank below which (logit - highest) / temperature is at most `limit`: rounding never falls where
 * a logit rises, so it is enough to see that it holds for the logit of this rank. */
static uint32_t rank_at(const candidates *c, float limit, float temperature)
{
    const float x = c->highest + limit * temperature * 1.0001f;

    return (x - c->highest) / temperature <= limit ? rank_of(x) : LOWEST_RANK;
}

static uint32_t higher(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static scales scales_of(const candidates *c, float temperature, float min_p)
{
    scales s = { temperature, min_p, rank_at(c, NO_MASS, temperature), 0 };

    if (min_p > 0) {
        /* 2^floor(log2(min_p)), or 1 if that is less, and somewhat below it */
        const int32_t e = (int32_t)(mur_float_bits(min_p) >> 23) - 127;

        s.least = higher(s.least, rank_at(c, (float)(e < 0 ? e : 0) * 0.6931472f - 0.01f, 1));
    }
    s.little = higher(s.least, rank_at(c, -16.7f, temperature)); /* below 2^-24 */
    return s;
}

/* Probability of candidate i relative to the likeliest's; 0 if min_p drops it, or if a sum that the
 * likeliest is in stays as it is. So the exponential is for those that matter. */
static float mass_of(const scales *s, const candidates *c, uint32_t i)
{
    const float x = c->logits[id_of(c, i)];
    float below;

    if (rank_of(x) < (i > c->first ? s->little : s->least))
        return 0;
    below = finite_logit(x) - c->highest;
    if (s->min_p > 0 && below < 0 && exp_of(below) < s->min_p)
        return 0;
    return exp_of(below / s->temperature);
}

/* The most likely ones, sorted, of which the probabilities have a sum of top_p. */
static void keep_likely(const mur_sampler *s, candidates *c, uint32_t *heap, uint32_t sorted)
{
    const scales plain = scales_of(c, 1, 0);
    float wanted, sum = 0;

    for (uint32_t i = 0; i < c->count; i++)
        sum += mass_of(&plain, c, i);
    wanted = s->top_p * sum;
    c->sorted = heap;
    c->first = 0;
    sum = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        if (i == sorted)
            give_up_one(c->logits, heap, c->n - sorted++);
        sum += mass_of(&plain, c, i);
        if (sum >= wanted)
            c->count = i + 1;
    }
}

/* Applies top_k, then top_p to what it left. */
static void keep_top(const mur_sampler *s, candidates *c, uint32_t *heap)
{
    const uint32_t n = c->n;
    uint32_t sorted = 0;

    for (uint32_t i = 0; i < n; i++)
        heap[i] = i;
    for (uint32_t i = n / 2; i > 0; i--)
        sift(c->logits, heap, n, i - 1);
    if (s->top_k > 0 && s->top_k < n) {
        for (c->count = s->top_k; sorted < c->count; sorted++)
            give_up_one(c->logits, heap, n - sorted);
        c->sorted = heap;
        c->first = 0;
    }
    if (s->top_p < 1)
        keep_likely(s, c, heap, sorted);
}

/* ---- the choice ---- */

enum { STRIPES = 16 };

static uint32_t choose(mur_sampler *s, const candidates *c)
{
    const float u = (float)(next_u32(s) >> 8) * (1.0f / 16777216);
    const scales weigh = scales_of(c, s->temperature, s->min_p);
    const uint32_t stripe = c->count / STRIPES + 1;
    float before[STRIPES]; /* the sum at a stripe's begin */
    float sum = 0, wanted;
    uint32_t stripes = 0, i = 0;

    /* the same sum twice: once for its end, and once more of the stripe where u falls */
    for (; i < c->count; i++) {
        if (i % stripe == 0)
            before[stripes++] = sum;
        sum += mass_of(&weigh, c, i);
    }
    wanted = u * sum;
    while (before[--stripes] > wanted)
        continue;
    sum = before[stripes];
    for (i = stripes * stripe; i + 1 < c->count; i++) {
        sum += mass_of(&weigh, c, i);
        if (sum > wanted)
            break;
    }
    return id_of(c, i);
}

size_t mur_sampler_scratch_bytes(uint32_t n)
{
    return (size_t)n * sizeof(uint32_t);
}

uint32_t mur_sampler_next(mur_sampler *s, const float *logits, uint32_t n, void *scratch)
{
    return mur_sampler_next_to(s, logits, n, likeliest(logits, n), scratch);
}

uint32_t mur_sampler_next_to(mur_sampler *s, const float *logits, uint32_t n, uint32_t best,
                             void *scratch)
{
    candidates c = { logits, n, NULL, n, best, finite_logit(logits[best]) };

    if (!(s->temperature > 0))
        return best;
    if ((s->top_k > 0 && s->top_k < n) || s->top_p < 1)
        keep_top(s, &c, scratch);
    return choose(s, &c);
}

void mur_sampler_penalize(float *logits, uint32_t n, const uint32_t *recent, size_t count,
                          float penalty)
{
    for (size_t i = 0; i < count; i++) {
        size_t first = 0;

        while (recent[first] != recent[i])
            first++;
        if (first < i || recent[i] >= n)
            continue;
        if (logits[recent[i]] > 0)
            logits[recent[i]] /= penalty;
        else
            logits[recent[i]] *= penalty;
    }
}

/* mur_sampler.c - greedy, temperature, top-k, top-p and min-p sampling without a libm.
 *
 * Candidates are sorted only as far as they are kept: a heap of all ids gives them up one by one,
 * the likeliest first. Without top-k and top-p there is nothing to sort.
 */
#include "mur_sampler.h"
#include "mur_real.h"

#include <float.h>
#include <string.h>

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

/* e^x for x <= 0; 0 below -87, so that no result is subnormal. Relative error below 2^-22. */
static float exp_of(float x)
{
    static const float taylor[8] = { 1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24,
                                     1.0f / 6,    0.5f,       1.0f,       1.0f };
    float r, y = 0, scale;
    int32_t n;
    uint32_t bits;

    if (!(x > -87.0f))
        return 0;
    /* x = n ln 2 + r, |r| <= ln 2 / 2; ln 2 in two parts, n times the first of which is exact */
    n = (int32_t)(x * 1.44269504f - 0.5f);
    r = x - (float)n * 0.693359375f;
    r = r - (float)n * -2.12194440e-4f;
    for (int i = 0; i < 8; i++)
        y = y * r + taylor[i];
    bits = (uint32_t)(n + 127) << 23;
    memcpy(&scale, &bits, sizeof(scale));
    return y * scale;
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

/* The first of equals. */
static uint32_t likeliest(const float *logits, uint32_t n)
{
    uint32_t best = 0, highest = LOWEST_RANK;

    for (uint32_t i = 0; i < n; i++) {
        /* nearly always the first comparison ends it */
        if (ascending(logits[i]) > highest && rank_of(logits[i]) > highest) {
            highest = rank_of(logits[i]);
            best = i;
        }
    }
    return best;
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
    float highest; /* logit */
} candidates;

static uint32_t id_of(const candidates *c, uint32_t i)
{
    return c->sorted ? c->sorted[c->n - 1 - i] : i;
}

/* Probability of candidate i relative to the likeliest's. */
static float weight(const candidates *c, uint32_t i)
{
    return exp_of(finite_logit(c->logits[id_of(c, i)]) - c->highest);
}

static float total_weight(const candidates *c)
{
    float total = 0;

    for (uint32_t i = 0; i < c->count; i++)
        total += weight(c, i);
    return total;
}

/* Applies top_k, then top_p to what it left. */
static void keep_top(const mur_sampler *s, candidates *c, uint32_t *heap)
{
    const uint32_t n = c->n;
    uint32_t sorted = 0;
    float wanted, sum = 0;

    for (uint32_t i = 0; i < n; i++)
        heap[i] = i;
    for (uint32_t i = n / 2; i > 0; i--)
        sift(c->logits, heap, n, i - 1);
    if (s->top_k > 0 && s->top_k < n) {
        for (c->count = s->top_k; sorted < c->count; sorted++)
            give_up_one(c->logits, heap, n - sorted);
        c->sorted = heap;
    }
    wanted = s->top_p * total_weight(c);
    c->sorted = heap;
    for (uint32_t i = 0; s->top_p < 1 && i < c->count; i++) {
        if (i == sorted)
            give_up_one(c->logits, heap, n - sorted++);
        sum += weight(c, i);
        if (sum >= wanted)
            c->count = i + 1;
    }
}

/* ---- the choice ---- */

static uint32_t choose(mur_sampler *s, const candidates *c)
{
    const float u = (float)(next_u32(s) >> 8) * (1.0f / 16777216);
    uint32_t last = 0;
    float total = 0, sum = 0;

    /* the same sum twice: once for its end, once to stop where u falls */
    for (int pass = 0; pass < 2; pass++) {
        sum = 0;
        for (uint32_t i = 0; i < c->count; i++) {
            const float below = finite_logit(c->logits[id_of(c, i)]) - c->highest;
            const float mass = exp_of(below / s->temperature);

            if (mass == 0 || (below < 0 && exp_of(below) < s->min_p))
                continue;
            sum += mass;
            last = i;
            if (pass == 1 && sum > u * total)
                return id_of(c, i);
        }
        total = sum;
    }
    return id_of(c, last);
}

size_t mur_sampler_scratch_bytes(uint32_t n)
{
    return (size_t)n * sizeof(uint32_t);
}

uint32_t mur_sampler_next(mur_sampler *s, const float *logits, uint32_t n, void *scratch)
{
    const uint32_t best = likeliest(logits, n);
    candidates c = { logits, n, NULL, n, finite_logit(logits[best]) };

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

/* mur_attend.c - a decoder's attention in integers, but for what instruction sets do in their own
 * way.
 */
#include "mur_attend.h"
#include "mur_decoder_arith.h"

#include <string.h>

typedef uint32_t two_mantissas __attribute__((may_alias));

#define MOST 1.32922800e36f    /* 2^120 */
#define STEPS_OF_E 92.3324826f /* MUR_ATTEND_OCTAVE * log2(e) */
#define MOST_FACTOR (1u << 22) /* 64 steps a unit */
enum { BLOCK = 16, LIMIT = 16128 };

const uint16_t mur_attend_powers[MUR_ATTEND_TOP + 1] = {
    0,     0,     0,     0,     0,     0,     0,     0,     0,     0,     0,     0,     0,
    0,     0,     0,     0,     0,     0,     0,     0,     0,     0,     0,     0,     0,
    0,     0,     0,     0,     0,     0,     0,     0,     0,     0,     0,     0,     0,
    0,     0,     0,     0,     0,     0,     0,     0,     0,     0,     0,     0,     0,
    0,     0,     0,     0,     0,     0,     0,     0,     0,     0,     0,     0,     2,
    2,     2,     2,     2,     2,     2,     2,     2,     2,     2,     2,     2,     2,
    2,     2,     2,     2,     2,     2,     3,     3,     3,     3,     3,     3,     3,
    3,     3,     3,     3,     3,     3,     3,     3,     3,     3,     3,     3,     3,
    3,     3,     3,     3,     3,     3,     3,     3,     3,     3,     3,     4,     4,
    4,     4,     4,     4,     4,     4,     4,     4,     4,     4,     4,     4,     4,
    4,     4,     4,     4,     4,     4,     4,     4,     5,     5,     5,     5,     5,
    5,     5,     5,     5,     5,     5,     5,     5,     5,     5,     5,     5,     5,
    5,     6,     6,     6,     6,     6,     6,     6,     6,     6,     6,     6,     6,
    6,     6,     6,     7,     7,     7,     7,     7,     7,     7,     7,     7,     7,
    7,     7,     7,     7,     8,     8,     8,     8,     8,     8,     8,     8,     8,
    8,     8,     9,     9,     9,     9,     9,     9,     9,     9,     9,     9,     10,
    10,    10,    10,    10,    10,    10,    10,    10,    10,    11,    11,    11,    11,
    11,    11,    11,    11,    12,    12,    12,    12,    12,    12,    12,    12,    13,
    13,    13,    13,    13,    13,    13,    14,    14,    14,    14,    14,    14,    15,
    15,    15,    15,    15,    15,    15,    16,    16,    16,    16,    16,    17,    17,
    17,    17,    17,    17,    18,    18,    18,    18,    18,    19,    19,    19,    19,
    19,    20,    20,    20,    20,    21,    21,    21,    21,    21,    22,    22,    22,
    22,    23,    23,    23,    23,    24,    24,    24,    24,    25,    25,    25,    25,
    26,    26,    26,    27,    27,    27,    27,    28,    28,    28,    29,    29,    29,
    30,    30,    30,    31,    31,    31,    32,    32,    32,    33,    33,    33,    34,
    34,    35,    35,    35,    36,    36,    36,    37,    37,    38,    38,    38,    39,
    39,    40,    40,    41,    41,    41,    42,    42,    43,    43,    44,    44,    45,
    45,    46,    46,    47,    47,    48,    48,    49,    49,    50,    50,    51,    52,
    52,    53,    53,    54,    54,    55,    56,    56,    57,    57,    58,    59,    59,
    60,    61,    61,    62,    63,    63,    64,    65,    65,    66,    67,    68,    68,
    69,    70,    71,    71,    72,    73,    74,    74,    75,    76,    77,    78,    79,
    79,    80,    81,    82,    83,    84,    85,    86,    87,    88,    89,    90,    91,
    91,    92,    93,    95,    96,    97,    98,    99,    100,   101,   102,   103,   104,
    105,   106,   108,   109,   110,   111,   112,   114,   115,   116,   117,   119,   120,
    121,   123,   124,   125,   127,   128,   129,   131,   132,   134,   135,   137,   138,
    140,   141,   143,   144,   146,   147,   149,   151,   152,   154,   156,   157,   159,
    161,   162,   164,   166,   168,   170,   171,   173,   175,   177,   179,   181,   183,
    185,   187,   189,   191,   193,   195,   197,   200,   202,   204,   206,   208,   211,
    213,   215,   218,   220,   222,   225,   227,   230,   232,   235,   237,   240,   243,
    245,   248,   251,   253,   256,   259,   262,   264,   267,   270,   273,   276,   279,
    282,   285,   288,   292,   295,   298,   301,   304,   308,   311,   314,   318,   321,
    325,   328,   332,   336,   339,   343,   347,   350,   354,   358,   362,   366,   370,
    374,   378,   382,   386,   391,   395,   399,   403,   408,   412,   417,   421,   426,
    431,   435,   440,   445,   450,   454,   459,   464,   469,   475,   480,   485,   490,
    496,   501,   506,   512,   518,   523,   529,   535,   540,   546,   552,   558,   564,
    571,   577,   583,   589,   596,   602,   609,   615,   622,   629,   636,   643,   650,
    657,   664,   671,   679,   686,   693,   701,   709,   716,   724,   732,   740,   748,
    756,   764,   773,   781,   790,   798,   807,   816,   825,   834,   843,   852,   861,
    870,   880,   890,   899,   909,   919,   929,   939,   949,   960,   970,   981,   991,
    1002,  1013,  1024,  1035,  1046,  1058,  1069,  1081,  1093,  1105,  1117,  1129,  1141,
    1154,  1166,  1179,  1192,  1205,  1218,  1231,  1244,  1258,  1272,  1285,  1299,  1314,
    1328,  1342,  1357,  1372,  1387,  1402,  1417,  1433,  1448,  1464,  1480,  1496,  1512,
    1529,  1545,  1562,  1579,  1596,  1614,  1631,  1649,  1667,  1685,  1704,  1722,  1741,
    1760,  1779,  1798,  1818,  1838,  1858,  1878,  1898,  1919,  1940,  1961,  1982,  2004,
    2026,  2048,  2070,  2093,  2116,  2139,  2162,  2185,  2209,  2233,  2258,  2282,  2307,
    2332,  2358,  2383,  2409,  2435,  2462,  2489,  2516,  2543,  2571,  2599,  2627,  2656,
    2685,  2714,  2744,  2773,  2804,  2834,  2865,  2896,  2928,  2960,  2992,  3024,  3057,
    3091,  3124,  3158,  3193,  3228,  3263,  3298,  3334,  3370,  3407,  3444,  3482,  3520,
    3558,  3597,  3636,  3676,  3716,  3756,  3797,  3838,  3880,  3922,  3965,  4008,  4052,
    4096,  4141,  4186,  4231,  4277,  4324,  4371,  4419,  4467,  4515,  4564,  4614,  4664,
    4715,  4767,  4818,  4871,  4924,  4978,  5032,  5087,  5142,  5198,  5255,  5312,  5370,
    5428,  5487,  5547,  5607,  5668,  5730,  5793,  5856,  5919,  5984,  6049,  6115,  6181,
    6249,  6317,  6386,  6455,  6525,  6596,  6668,  6741,  6814,  6889,  6964,  7039,  7116,
    7193,  7272,  7351,  7431,  7512,  7594,  7676,  7760,  7845,  7930,  8016,  8104,  8192,
    8281,  8371,  8462,  8555,  8648,  8742,  8837,  8933,  9031,  9129,  9228,  9329,  9430,
    9533,  9637,  9742,  9848,  9955,  10064, 10173, 10284, 10396, 10509, 10624, 10739, 10856,
    10974, 11094, 11215, 11337, 11460, 11585, 11711, 11839, 11968, 12098, 12230, 12363, 12498,
    12634, 12771, 12910, 13051, 13193, 13337, 13482, 13629, 13777, 13927, 14079, 14232, 14387,
    14544, 14702, 14862, 15024, 15188, 15353, 15520, 15689, 15860, 16033, 16207, 16384, 16562,
    16743, 16925, 17109, 17295, 17484, 17674, 17867, 18061, 18258, 18457, 18658, 18861, 19066,
    19274, 19484, 19696, 19910, 20127, 20346, 20568, 20792, 21018, 21247, 21478, 21712, 21949,
    22188, 22429, 22674, 22921, 23170, 23422, 23677, 23935, 24196, 24459, 24726, 24995, 25267,
    25542, 25820, 26102, 26386, 26673, 26964, 27257, 27554, 27854, 28157, 28464, 28774, 29087,
    29404, 29724, 30048, 30375, 30706, 31040, 31378, 31720, 32065, 32415, 32768, 33124, 33485,
    33850, 34218, 34591, 34968, 35348, 35733, 36122, 36516, 36913, 37315, 37722, 38132, 38548,
    38967, 39392, 39821, 40254, 40693, 41136, 41584, 42036, 42494, 42957, 43425, 43898, 44376,
    44859, 45347, 45841, 46340, 46845, 47355, 47871, 48392, 48919, 49452, 49990, 50534, 51085,
    51641, 52203, 52772, 53346, 53927, 54515, 55108, 55708, 56315, 56928, 57548, 58175, 58808,
    59449, 60096, 60750, 61412, 62081, 62757, 63440, 64131, 64829, 65535,
};

/* ---- scales ---- */

/* 2^n, the nearest that a float can be */
static float power(int32_t n)
{
    n = n < -126 ? -126 : n > 127 ? 127 : n;
    return mur_float_of((uint32_t)(n + 127) << 23);
}

static void round_by(float inverse, uint32_t count, const float *x, int16_t *q)
{
    for (uint32_t i = 0; i < count; i++)
        q[i] = mur_round_product(x[i], inverse);
}

/* Writes the scale of x at pos and quantizes x by it. */
static void quantize(const mur_attention_q8 *op, uint32_t bits, uint32_t pos, const float *x,
                     uint16_t *mantissas, int16_t *q)
{
    int8_t *exponents = (int8_t *)(mantissas + op->context);
    int32_t e = pos ? exponents[pos - 1] : MUR_ATTEND_EXPONENT, of_need;
    float most = mur_most(x, op->width), inverse = 0;
    uint32_t m = 0, need;

    if (!(most < MUR_LEAST)) {
        need = mur_float_bits((most < MOST ? most : MOST) / 127.0f);
        of_need = (int32_t)(need >> 23) - 126;
        e = of_need > e ? of_need + 1 : e;
        m = ((need & 0x7fffffu) | 0x800000u) >> (24 - bits);
        m = e - of_need < 16 ? (m >> (e - of_need)) + 1 : 1;
        m = m < 32767 ? m : 32767;
        inverse = 1.0f / ((float)m * power(e - (int32_t)bits));
    }
    round_by(inverse, op->width, x, q);
    mantissas[pos] = (uint16_t)m;
    exponents[pos] = (int8_t)e;
}

/* Mantissas of positions from begin on, aligned to the exponent at pos: those of the first `count`
 * positions, a multiple of 8 unless it is all, in room; the others' where they lie. */
typedef struct aligned {
    uint32_t count;
    const uint16_t *room, *others;
    int32_t exponent;
} aligned;

/* Exponents do not fall: the first position from t on, or end, that has another than t's. */
static uint32_t run_end(const int8_t *exponents, uint32_t t, uint32_t end)
{
    uint32_t same = t;

    while (end - same > 1) {
        uint32_t middle = same + (end - same) / 2;

        if (exponents[middle] == exponents[t])
            same = middle;
        else
            end = middle;
    }
    return end;
}

/* to = from / 2^by */
static void shift(const uint16_t *from, uint32_t count, uint32_t by, uint16_t *to)
{
    uint32_t mask = 0xffffu >> by;

    mask |= mask << 16;
    for (; count != 0 && (uintptr_t)to % 4 != 0; count--)
        *to++ = (uint16_t)(*from++ >> by);
    for (; (uintptr_t)from % 4 == 0 && count >= 4; count -= 4, from += 4, to += 4) {
        const two_mantissas *two = (const two_mantissas *)(const void *)from;

        ((two_mantissas *)(void *)to)[0] = two[0] >> by & mask;
        ((two_mantissas *)(void *)to)[1] = two[1] >> by & mask;
    }
    for (; count != 0; count--)
        *to++ = (uint16_t)(*from++ >> by);
}

static aligned align(const mur_attention_q8 *op, const uint16_t *mantissas, uint32_t begin,
                     uint32_t pos, uint16_t *room)
{
    const int8_t *exponents = (const int8_t *)(mantissas + op->context);
    int32_t e = exponents[pos];
    uint32_t t = begin, rest;

    for (uint32_t end; exponents[t] != e; t = end) {
        int32_t by = e - exponents[t];

        end = run_end(exponents, t, pos);
        shift(mantissas + t, end - t, by < 16 ? (uint32_t)by : 16, room + t - begin);
    }
    rest = (8 - (t - begin) % 8) % 8;
    if (t + rest > pos)
        rest = pos + 1 - t;
    shift(mantissas + t, rest, 0, room + t - begin);
    t += rest;
    return (aligned){ t > pos ? op->context : t - begin, room, mantissas + t, e };
}

/* ---- plain C ---- */

void mur_attend_put(const mur_attention_q8 *op, uint32_t pos, const int16_t *q, void *cache)
{
    int8_t *to = (int8_t *)cache + (size_t)pos * op->width;

    for (uint32_t i = 0; i < op->width; i++)
        to[i] = (int8_t)q[i];
}

void mur_attend_most(const mur_attended *a, uint32_t *most)
{
    *most = 0;
    for (uint32_t t = 0; t < a->length; t++)
        *most = a->scores[t] > *most ? a->scores[t] : *most;
}

uint32_t mur_attend_weigh(const mur_attended *a, uint32_t head, const mur_softmax *s)
{
    uint32_t sum = 0;

    (void)head;
    for (uint32_t t = 0; t < a->length; t++)
        sum += mur_attend_weight(s, a->scores + t, a->scales[t]);
    return sum;
}

/* ---- softmax ---- */

static void cap(const mur_attended *a, uint32_t step, uint32_t head, float unit)
{
    float scores[BLOCK];

    if (!(unit > 0))
        return;
    for (uint32_t t = 0, count; t < a->length; t += count) {
        count = a->length - t < BLOCK ? a->length - t : BLOCK;
        for (uint32_t i = 0; i < count; i++)
            scores[i] =
                (float)((int32_t)*mur_attend_at(a, step, head, t + i) - MUR_ATTEND_ZERO) * unit;
        a->op->cap_scores(a->op->cap, count, scores);
        for (uint32_t i = 0; i < count; i++) {
            float real = scores[i] / unit;
            int32_t whole = real < LIMIT ? real > -LIMIT ? mur_round(real) : -LIMIT : LIMIT;

            *mur_attend_at(a, step, head, t + i) = (uint16_t)(whole + MUR_ATTEND_ZERO);
        }
    }
}

static mur_softmax softmax_of(float factor, uint32_t most)
{
    uint32_t f = 0, reach = 32767;
    mur_softmax s;

    if (factor > 0)
        f = factor < (float)MOST_FACTOR ? (uint32_t)factor : MOST_FACTOR;
    for (uint32_t lost = 1; f >> 16 >= lost; lost <<= 1)
        f &= ~lost;
    if (f != 0 && (MUR_ATTEND_TOP << 16) / f < reach)
        reach = (MUR_ATTEND_TOP << 16) / f;
    reach = reach < most ? reach : most; /* only of scores that are not numbers */
    s.factor = f;
    s.base = most - reach;
    s.offset = MUR_ATTEND_TOP - (f * reach >> 16);
    return s;
}

/* makes the first `hidden` and those from `end` on zeros */
static void clear(const mur_attended *a, uint32_t step, uint32_t head, uint32_t hidden,
                  uint32_t end)
{
    for (uint32_t t = 0; t < hidden; t++)
        *mur_attend_at(a, step, head, t) = 0;
    for (uint32_t t = end; t < a->length; t++)
        *mur_attend_at(a, step, head, t) = 0;
}

/* ---- all ---- */

/* heads with the same keys and values */
typedef struct group {
    mur_attended all;
    aligned keys, values;
    uint32_t hidden, end; /* of all's positions: the first that is seen, and after the last */
} group;

/* positions first .. end - 1 of all */
static mur_attended part_of(const mur_attended *all, uint32_t first, uint32_t end)
{
    mur_attended part = *all;

    part.begin += first;
    part.length = end - first;
    part.scores += first * all->heads;
    return part;
}

/* positions from first on that have one array of mantissas; returns where they end */
static uint32_t next_part(const mur_attended *all, const aligned *scales, uint32_t first,
                          mur_attended *part)
{
    uint32_t end =
        first < scales->count && scales->count < all->length ? scales->count : all->length;

    *part = part_of(all, first, end);
    part->scales = first < scales->count ? scales->room : scales->others;
    return end;
}

static void score(const group *g, const mur_attend_kernels *kernels, const float *scales)
{
    mur_attended part;

    for (uint32_t first = 0; first < g->all.length;) {
        first = next_part(&g->all, &g->keys, first, &part);
        kernels->score(&part);
    }
    for (uint32_t h = 0; h < g->all.heads; h++) {
        if (g->all.op->cap_scores)
            cap(&g->all, kernels->step, h,
                scales[h] *
                    power(g->keys.exponent - MUR_ATTEND_KEY_BITS + 16 + (int32_t)g->all.extra));
        clear(&g->all, kernels->step, h, g->hidden, g->end);
    }
}

/* A head's scores become u, zero where nothing is seen; returns the sum of p. */
static uint32_t soften(const group *g, const mur_attend_kernels *kernels, uint32_t head,
                       const mur_softmax *s)
{
    mur_attended part;
    uint32_t sum = 0, unseen = g->all.length - (g->end - g->hidden);

    for (uint32_t first = 0; first < g->all.length;) {
        first = next_part(&g->all, &g->values, first, &part);
        sum += kernels->weigh(&part, head, s);
    }
    clear(&g->all, kernels->step, head, g->hidden, g->end);
    return sum - unseen * mur_attend_powers[s->offset];
}

static void mix(const mur_attended *all, const mur_attend_kernels *kernels, const float *factors,
                float *out)
{
    uint32_t columns = all->heads * all->op->width;

    for (uint32_t first = 0, end; first < all->length; first = end) {
        mur_attended part;

        end = first + MUR_ATTEND_MOST - (all->begin + first) % MUR_ATTEND_MOST;
        end = end < all->length ? end : all->length;
        part = part_of(all, first, end);
        kernels->mix(&part);
        for (uint32_t i = 0; i < columns; i++)
            out[i] = first ? out[i] + (float)all->sums[i] : (float)all->sums[i];
    }
    for (uint32_t h = 0; h < all->heads; h++)
        for (uint32_t i = 0; i < all->op->width; i++)
            *out++ *= factors[h];
}

/* the heads of g, whose queries are x */
static void attend(const group *g, const mur_attend_kernels *kernels, const float *x, int16_t *q,
                   float *out)
{
    const mur_attended *all = &g->all;
    int32_t n = g->keys.exponent - MUR_ATTEND_KEY_BITS + 32 + (int32_t)all->extra;
    float scales[2], factors[2];
    uint32_t most[2];

    for (uint32_t h = 0; h < all->heads; h++, x += all->op->width, q += all->op->width) {
        float greatest = mur_most(x, all->op->width);
        int is_zero = greatest < MUR_LEAST;

        scales[h] = (is_zero ? 0.0f : greatest / 127.0f) * all->op->scale;
        round_by(is_zero ? 0.0f : 127.0f / greatest, all->op->width, x, q);
    }
    score(g, kernels, scales);
    kernels->most(all, most);
    for (uint32_t h = 0; h < all->heads; h++) {
        mur_softmax s = softmax_of(scales[h] * STEPS_OF_E * power(n), most[h]);

        factors[h] = power(g->values.exponent + 1) / (float)soften(g, kernels, h, &s);
    }
    mix(all, kernels, factors, out);
}

/* the row at pos of all heads that share one of keys and values */
static void attend_all(group *g, const mur_attend_kernels *kernels, uint32_t pos,
                       const uint16_t *key_scales, const uint16_t *value_scales, const float *x,
                       float *out)
{
    const mur_attention_q8 *op = g->all.op;
    uint32_t first = mur_first_seen(op->seen, pos), heads = op->heads / op->kv_heads;
    uint32_t begin = first / kernels->step * kernels->step;
    uint16_t *room = g->all.scores + kernels->heads * op->context;
    int16_t *q = (int16_t *)(g->all.sums + kernels->heads * op->width);

    g->all.begin = begin;
    g->all.length = (pos + kernels->step - begin) / kernels->step * kernels->step;
    g->all.q = q;
    g->hidden = first - begin;
    g->end = pos + 1 - begin;
    g->keys = align(op, key_scales, begin, pos, room);
    g->values = align(op, value_scales, begin, pos, room + op->context);
    for (uint32_t h = 0; h < heads; h += g->all.heads) {
        g->all.heads = heads - h < kernels->heads ? heads - h : kernels->heads;
        attend(g, kernels, x + h * op->width, q, out + h * op->width);
    }
}

void mur_attend(const mur_attention_q8 *op, const mur_attend_kernels *kernels, uint32_t pos,
                uint32_t rows, const float *q, const float *k, const float *v, void *keys,
                void *values, void *key_scales, void *value_scales, float *out, void *scratch)
{
    uint32_t group_columns = op->heads / op->kv_heads * op->width, log2 = 0;
    size_t cache_bytes = (size_t)op->context * op->width;
    group g = { .all = { .op = op, .scores = scratch } };

    while (1u << log2 < op->width)
        log2++;
    g.all.extra = log2 > 3 ? log2 - 3 : 0;
    g.all.sums = (int32_t *)(void *)(g.all.scores + (kernels->heads + 2) * op->context);
    for (; rows != 0; rows--, pos++) {
        for (uint32_t h = 0; h < op->kv_heads; h++) {
            uint16_t *of_keys = (uint16_t *)((uint8_t *)key_scales + h * MUR_SCALES_BYTES(op));
            uint16_t *of_values = (uint16_t *)((uint8_t *)value_scales + h * MUR_SCALES_BYTES(op));
            int16_t *rounded = (int16_t *)g.all.sums;

            g.all.keys = (uint8_t *)keys + h * cache_bytes;
            g.all.values = (uint8_t *)values + h * cache_bytes;
            quantize(op, MUR_ATTEND_KEY_BITS, pos, k, of_keys, rounded);
            kernels->put_key(op, pos, rounded, (uint8_t *)keys + h * cache_bytes);
            quantize(op, MUR_ATTEND_VALUE_BITS, pos, v, of_values, rounded);
            kernels->put_value(op, pos, rounded, (uint8_t *)values + h * cache_bytes);
            attend_all(&g, kernels, pos, of_keys, of_values, q, out);
            k += op->width, v += op->width, q += group_columns, out += group_columns;
        }
    }
}

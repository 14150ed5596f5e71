/* nn_row_cases.c - see nn_row_cases.h. Norms are judged by their definition in mur_nn.h, in 64
 * bits; softmax and its logarithm are held against plain C. */
#include "nn_row_cases.h"
#include "nn_cases.h"
#include "xorshift.h"

#include <string.h>

enum { MOST = 512, GUARD = 64, ALL = MOST + 2 * GUARD, CHANNELS = 128 };

/* in memory that nn_cases.c has for its own layers: boards have no more */
static int8_t *input, *expected, *found; /* [MOST], [ALL], [ALL] */
static int32_t *words;                   /* of a layer, [2 * CHANNELS] */
static uint32_t state = 1;

static uint32_t draw(void)
{
    return random_next32(&state);
}

static int32_t between(int32_t least, int32_t most)
{
    return least + (int32_t)(draw() % (uint32_t)(most - least + 1));
}

static int chance(uint32_t of)
{
    return draw() % of == 0;
}

/* ---- softmax ---- */

/* differences that count stay within the exponent's 32 bits; half of the layers have a table */
static void draw_softmax(mur_softmax_s8 *l)
{
    int32_t most;

    l->rows = between(1, 3);
    l->columns = chance(2) ? between(1, 12) : between(1, 90);
    l->mul = (int32_t)(draw() >> 2 | 1u << 30);
    l->shift = between(15, 28);
    most = INT32_MAX >> l->shift;
    l->diff_min = most < 255 ? -most : -255;
    words[0] = INT32_MAX;
    for (int32_t d = 1; d < 256; d++)
        words[d] = d > -l->diff_min ? 0 : (int32_t)(draw() >> between(1, 20));
    l->exps = chance(2) ? words : NULL;
}

static void draw_log_softmax(mur_log_softmax_s8 *l)
{
    uint32_t *exps = (uint32_t *)words;

    l->rows = between(1, 3);
    l->columns = chance(2) ? between(1, 12) : between(1, 90);
    exps[0] = 1 << 20;
    for (int32_t d = 1; d < 256; d++)
        exps[d] = exps[d - 1] - exps[d - 1] / (uint32_t)between(3, 90);
    l->exps = exps;
    l->step = between(0, (1 << 22) - 1);
    l->log_step = between(0, (1 << 25) - 1);
    l->zero = (int8_t)draw();
    l->min = (int8_t)between(-128, -20);
    l->max = (int8_t)between(20, 127);
}

/* ---- norms ---- */

static int64_t floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t power(int32_t of)
{
    return (int64_t)1 << of;
}

static void draw_norm(mur_norm_s8 *l)
{
    int32_t *gains = words, *biases = words + CHANNELS;
    int32_t channels_last = chance(2);

    memset(l, 0, sizeof(*l));
    l->groups = l->runs = 1;
    l->width = between(1, chance(4) ? 100 : 40);
    l->rows = between(1, 4);
    if (chance(2)) { /* groups of channels, of one place after another or of one channel after
                        another */
        l->groups = between(1, 4);
        l->runs = between(1, 8);
        l->width = between(1, chance(2) ? 1 : 8);
        l->rows = l->groups * between(1, 2);
        l->of_runs = (uint8_t)!channels_last;
    }
    l->columns = l->runs * l->width;
    l->step = channels_last ? l->groups * l->width : l->width;
    l->next = channels_last ? l->width : l->columns;
    while ((l->columns * 255) << (l->head + 1) > 0 && l->head < 20)
        l->head++;
    l->head -= between(0, 1) && l->head > 0;
    l->shift = between(-3, 20);
    l->epsilon = chance(3) ? 0 : (int64_t)draw() << between(0, 20);
    for (int32_t i = 0; i < CHANNELS; i++) {
        gains[i] = (int32_t)draw() >> between(1, 8);
        biases[i] = (int32_t)draw() >> between(4, 16);
    }
    l->gains = gains;
    l->biases = biases;
    l->is_centred = (uint8_t)!chance(3);
    l->in_zero = (int8_t)draw();
    l->min = (int8_t)(chance(2) ? INT8_MIN : between(-128, -20));
    l->max = (int8_t)(l->min == INT8_MIN ? INT8_MAX : between(20, 127));
}

/* 2^31 / sqrt(w) * 2^15 in floors, and the shift that comes with it */
static int64_t judge_inverse(uint64_t w, int32_t *by)
{
    int64_t root = 0, inverse;

    for (; w >= (uint64_t)power(32); w /= 4)
        ++*by;
    for (; w < (uint64_t)power(30); w *= 4)
        --*by;
    for (int64_t bit = power(16); bit > 0; bit /= 2)
        if ((uint64_t)((root + bit) * (root + bit)) <= w)
            root += bit;
    inverse = power(31) / root * power(15);
    return inverse < power(31) ? inverse : power(31) - 1;
}

static int8_t judge_normed(const mur_norm_s8 *l, int64_t d, int64_t inverse, int32_t shift,
                           int32_t gain)
{
    int64_t v = floor_divide(floor_divide(d * power(l->head) * inverse, power(32)) * l->gains[gain],
                             power(32));

    if (shift >= 0)
        v = floor_divide(v, power(shift < 31 ? shift : 31));
    else
        v = (v < -power(20)  ? -power(20)
             : v > power(20) ? power(20)
                             : v) *
            power(shift > -10 ? -shift : 10);
    v = floor_divide(v + l->biases[gain], 256);
    return (int8_t)(v < l->min ? l->min : v > l->max ? l->max : v);
}

static void judge_norm(const mur_norm_s8 *l, const int8_t *in, int8_t *out)
{
    for (int32_t row = 0; row < l->rows; row++) {
        int32_t group = row % l->groups;
        int32_t first = row / l->groups * l->groups * l->columns + group * l->next;
        int32_t shift = l->shift;
        int64_t centre = 0, squares = 0, inverse;
        uint64_t w;

        for (int32_t i = 0; i < l->columns; i++) {
            int64_t q = in[first + i / l->width * l->step + i % l->width] - l->in_zero;

            centre += l->is_centred ? q : 0;
            squares += q * q;
        }
        w = (uint64_t)(l->columns * squares - centre * centre) * 256 + (uint64_t)l->epsilon;
        inverse = judge_inverse(w ? w : 1, &shift);
        for (int32_t i = 0; i < l->columns; i++) {
            int32_t run = i / l->width, at = first + run * l->step + i % l->width;
            int32_t gain = l->of_runs ? group * l->runs + run : group * l->width + i % l->width;

            out[at] =
                judge_normed(l, l->columns * (in[at] - l->in_zero) - centre, inverse, shift, gain);
        }
    }
}

/* ---- the trial ---- */

static int is_right(void)
{
    return memcmp(expected, found, ALL) == 0;
}

static void clear(void)
{
    memset(expected, 0x5a, ALL);
    memset(found, 0x5a, ALL);
}

static void check_norms(uint32_t *wrong, const char **name)
{
    static const struct {
        const char *name;
        void (*run)(const mur_norm_s8 *, const int8_t *, int8_t *);
    } kernels[] = { { "dsp_norm_s8", mur_dsp_norm_s8 },
                    { "mve_norm_s8", mur_mve_norm_s8 },
                    { "ref_norm_s8", mur_ref_norm_s8 } };
    mur_norm_s8 norm;

    draw_norm(&norm);
    if (chance(3)) /* rows that are nearly constant */
        for (int32_t i = 0; i < MOST; i++)
            input[i] = (int8_t)(input[i] >> 6);
    for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels); i++) {
        clear();
        judge_norm(&norm, input, expected + GUARD);
        if (chance(2)) { /* over its input */
            memcpy(found + GUARD, input, (size_t)(norm.rows * norm.columns));
            kernels[i].run(&norm, found + GUARD, found + GUARD);
        } else {
            kernels[i].run(&norm, input, found + GUARD);
        }
        if (is_right())
            continue;
        ++*wrong;
        *name = kernels[i].name;
    }
}

uint32_t nn_check_rows(uint32_t rounds, const char **name)
{
    uint32_t wrong = 0;

    words = nn_spare();
    input = (int8_t *)(words + 2 * CHANNELS);
    expected = input + MOST;
    found = expected + ALL;
    state = 1;
    while (rounds-- != 0) {
        mur_softmax_s8 softmax;
        mur_log_softmax_s8 log_softmax;

        for (int32_t i = 0; i < MOST; i++)
            input[i] = (int8_t)draw();
        draw_softmax(&softmax);
        clear();
        (softmax.exps ? mur_ref_softmax_exps_s8 : mur_ref_softmax_s8)(&softmax, input,
                                                                      expected + GUARD);
        mur_mve_softmax_s8(&softmax, input, found + GUARD);
        if (!is_right()) {
            wrong++;
            *name = "mve_softmax_s8";
        }
        draw_log_softmax(&log_softmax);
        clear();
        mur_ref_log_softmax_s8(&log_softmax, input, expected + GUARD);
        mur_mve_log_softmax_s8(&log_softmax, input, found + GUARD);
        if (!is_right()) {
            wrong++;
            *name = "mve_log_softmax_s8";
        }
        check_norms(&wrong, name);
    }
    return wrong;
}

/* spotter.c - hears words: samples become features, the last second of features goes through a
 * network, and a word counts that is ahead of all others for a while. */
#include "spotter.h"

#include "ears.h"
#include "mur_ring.h"
#include "words.h"

enum {
    FRAMES = WORDS_FEATURES_INT8_ELEMENTS / EARS_FEATURES, /* that the network hears at once */
    EVERY = 4,                                             /* frames from a run to the next */
    RUNS = 2,                                              /* that a word must be ahead in */
    REST = 12,                                             /* runs after a word without another */
    CLASSES = WORDS_FC_INT8_ELEMENTS,
    FIRST_WORD = CLASSES - SPOTTER_WORDS, /* before them: noise, other words */
};

/* the mean lead that a word needs, in natural logarithms of odds: a greater one hears fewer words,
 * and makes fewer false alarms */
#ifndef SPOTTER_LEAD
#define SPOTTER_LEAD 0.0f
#endif

static const int32_t least_lead =
    (int32_t)(SPOTTER_LEAD / WORDS_FC_INT8_SCALE); /* in steps of the output */

static const char *const names[SPOTTER_WORDS] = { "forward", "stop", "left", "right" };

static int16_t heard[2048], frame[EARS_WINDOW];
static int8_t rows[64][EARS_FEATURES]; /* both queues have room for a power of two */
static mur_ring microphone, features;
static uint64_t scratch[EARS_SCRATCH_BYTES / 8 + 1];
static uint8_t arena[WORDS_ARENA_BYTES] __attribute__((aligned(WORDS_ARENA_ALIGNMENT)));
static words_inputs inputs;
static words_outputs outputs;
static int32_t leads[RUNS][SPOTTER_WORDS]; /* of the last runs */
static uint32_t run, rest;

void spotter_open(void)
{
    mur_ring_open(&microphone, heard, sizeof(*heard), sizeof(heard) / sizeof(*heard));
    mur_ring_open(&features, rows, sizeof(*rows), sizeof(rows) / sizeof(*rows));
    words_init(arena, &inputs, &outputs);
    run = rest = 0;
    for (uint32_t i = 0; i < RUNS; i++)
        for (uint32_t w = 0; w < SPOTTER_WORDS; w++)
            leads[i][w] = -256;
}

uint32_t spotter_put(const int16_t *samples, uint32_t count)
{
    return mur_ring_put(&microphone, samples, count);
}

/* a frame of samples as a row of the network's input */
static void add_row(void)
{
    int32_t feature[EARS_FEATURES];
    int8_t row[EARS_FEATURES];

    mur_front_end_q16_run(&ears_q16, frame, scratch, feature);
    for (uint32_t i = 0; i < EARS_FEATURES; i++)
        row[i] = mur_feature_s8(feature[i], MUR_PER_SCALE(WORDS_FEATURES_INT8_SCALE),
                                WORDS_FEATURES_INT8_ZERO_POINT);
    mur_ring_put(&features, row, 1);
}

/* how far a class is ahead of all others */
static int32_t lead_of(const int8_t *scores, uint32_t class)
{
    int32_t next = -128;

    for (uint32_t c = 0; c < CLASSES; c++)
        if (c != class && scores[c] > next)
            next = scores[c];
    return scores[class] - next;
}

/* after a run: the word that was ahead in the mean of the last ones */
static int decide(void)
{
    int32_t *now = leads[run++ % RUNS], most = RUNS * least_lead - 1;
    int word = SPOTTER_NOTHING;

    for (uint32_t w = 0; w < SPOTTER_WORDS; w++) {
        int32_t sum = 0;

        now[w] = lead_of(outputs.fc_int8, FIRST_WORD + w);
        for (uint32_t i = 0; i < RUNS; i++)
            sum += leads[i][w];
        if (sum > most) {
            most = sum;
            word = (int)w;
        }
    }
    if (rest > 0) {
        rest--;
        return SPOTTER_NOTHING;
    }
    rest = word == SPOTTER_NOTHING ? 0 : REST;
    return word;
}

int spotter_next(int *word)
{
    *word = SPOTTER_NOTHING;
    if (!mur_ring_peek(&microphone, frame, EARS_WINDOW))
        return 0;
    mur_ring_take(&microphone, EARS_HOP);
    add_row();
    if (mur_ring_peek(&features, inputs.features_int8, FRAMES)) {
        mur_ring_take(&features, EVERY);
        words_run(arena);
        *word = decide();
    }
    return 1;
}

const char *spotter_name(int word)
{
    return word >= 0 && word < SPOTTER_WORDS ? names[word] : "";
}

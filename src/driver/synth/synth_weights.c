/* synth_weights.c - draws random weights with scales, tails and outlying channels from a mixed
 * counter. */
#include "driver/synth/synth_weights.h"

#include "base/half.h"
#include "base/real.h"

/* One channel in so many stands out. */
enum { OUTLIERS = 192 };

/* SplitMix64's finisher */
static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t muc_synth_seed(uint64_t seed, uint64_t number)
{
    return mix(mix(seed + UINT64_C(0x9e3779b97f4a7c15)) + number * UINT64_C(0xd1342543de82ef95) +
               UINT64_C(0x9e3779b97f4a7c15));
}

static uint64_t next(uint64_t *state)
{
    return mix(*state += UINT64_C(0x9e3779b97f4a7c15));
}

/* Mean 0, variance 1, of four uniform numbers of 15 bits: no function whose last bit differs
 * between machines. */
static double normal(uint64_t bits)
{
    int32_t sum = (int32_t)(bits & 0x7fff) + (int32_t)(bits >> 15 & 0x7fff) +
                  (int32_t)(bits >> 30 & 0x7fff) + (int32_t)(bits >> 45 & 0x7fff);

    return (sum - 2 * 0x7fff) * (1.7320508075688772 / 0x8000);
}

/* The same with one in 16 2.5 times as large, of variance 1 again: a kurtosis of about 5. */
static double heavy(uint64_t bits)
{
    return normal(bits) * (bits >> 60 ? 0.8677218312746247 : 2.1693045781865618);
}

static bool stands_out(const muc_synth_tensor *t, uint32_t channel)
{
    return muc_synth_seed(t->channels, channel) % OUTLIERS == 0;
}

/* How a tensor's elements are made. */
typedef struct kind {
    double sigma;      /* of the square root of 1 / columns, or of itself if `absolute` */
    bool absolute;     /* sigma does not depend on the size */
    double of_row;     /* factor of rows whose channel stands out */
    double of_column;  /* the same of columns */
    double mean, wide; /* of a vector: mean, and factor of what stands out */
} kind;

static kind kind_of(const muc_synth_tensor *t)
{
    double depth = t->layers > 1 ? (double)t->layer / (t->layers - 1) : 1;

    switch (t->id) {
    case MUC_LLAMA_EMBED:
    case MUC_LLAMA_POSITIONS:
        return (kind){ .sigma = 0.02, .absolute = true, .of_row = 1, .of_column = 3 };
    case MUC_LLAMA_HEAD:
        return (kind){ .sigma = 0.02, .absolute = true, .of_row = 1, .of_column = 0.4 };
    case MUC_LLAMA_O:
    case MUC_LLAMA_DOWN: /* layers add up */
        return (kind){ .sigma = muc_pow(2.0 * t->layers, -0.5), .of_row = 3, .of_column = 1 };
    case MUC_LLAMA_Q:
    case MUC_LLAMA_K:
    case MUC_LLAMA_V:
    case MUC_LLAMA_GATE:
    case MUC_LLAMA_UP:
        return (kind){ .sigma = 0.9, .of_row = 1, .of_column = 0.4 };
    case MUC_LLAMA_INPUT_NORM:
    case MUC_LLAMA_FFN_NORM:
        return (kind){ .sigma = 0.15, .mean = 0.4 + 0.6 * depth, .wide = 5 };
    case MUC_LLAMA_FINAL_NORM: /* so that logits deviate by one or two */
        return (kind){ .sigma = 0.1, .mean = 30 * muc_pow(t->columns, -0.5), .wide = 1 };
    case MUC_LLAMA_Q_NORM:
    case MUC_LLAMA_K_NORM:
        return (kind){ .sigma = 0.3, .mean = 1.2, .wide = 1 };
    case MUC_LLAMA_ATTENTION_OUTPUT_NORM:
    case MUC_LLAMA_FFN_OUTPUT_NORM:
        return (kind){ .sigma = 0.1, .mean = 0.3, .wide = 3 };
    case MUC_LLAMA_K_BIAS:
        return (kind){ .sigma = 0.5, .wide = 20 };
    default: /* other biases */
        return (kind){ .sigma = 0.1, .wide = 3 };
    }
}

static void make_vector(const muc_synth_tensor *t, const kind *k, uint16_t *out)
{
    uint64_t state = muc_synth_seed(t->seed, 0);

    for (uint32_t c = 0; c < t->columns; c++) {
        double value = k->mean + k->sigma * heavy(next(&state));

        if (stands_out(t, c))
            value *= k->wide;
        out[c] = muc_bf16_of_f32((float)(value - t->less_one));
    }
}

void muc_synth_row(const muc_synth_tensor *tensor, uint32_t row, uint16_t *out)
{
    uint64_t state = muc_synth_seed(tensor->seed, row);
    kind k = kind_of(tensor);
    double scale;

    if (tensor->is_vector) {
        make_vector(tensor, &k, out);
        return;
    }
    scale = k.sigma * muc_exp(0.3 * normal(next(&state)));
    if (!k.absolute)
        scale *= muc_pow(tensor->columns, -0.5);
    if (k.of_row != 1 && stands_out(tensor, row))
        scale *= k.of_row;
    for (uint32_t c = 0; c < tensor->columns; c++) {
        double value = scale * heavy(next(&state));

        if (k.of_column != 1 && stands_out(tensor, c))
            value *= k.of_column;
        out[c] = muc_bf16_of_f32((float)value);
    }
}

/* rope.c - the angles of rotary position embedding. */
#include <math.h>

#include "base/real.h"
#include "base/threads.h"
#include "models/llama.h"

static const double TWO_PI = 6.28318530717958647692;

typedef struct tables {
    const muc_model_config *config;
    double theta;
    uint32_t half, context;
    bool plain;
    float *cosines, *sines;
} tables;

/* Llama 3's rule: wavelengths beyond the original context are stretched by factor, those well
 * inside are kept, and between them the frequency goes from one to the other in proportion. */
static double scale_llama3(const muc_model_config *config, double frequency)
{
    double turns = config->rope_original_context * frequency / TWO_PI; /* in the old context */
    double low = config->rope_low_factor, high = config->rope_high_factor, share;

    if (turns > high)
        return frequency;
    if (turns < low)
        return frequency / config->rope_factor;
    share = (turns - low) / (high - low);
    return (1 - share) * frequency / config->rope_factor + share * frequency;
}

/* the column whose frequency turns so often in the original context, as a real number */
static double column_of_turns(const tables *t, double turns)
{
    return t->half * muc_log(t->config->rope_original_context / (turns * TWO_PI)) /
           muc_log(t->theta);
}

/* YaRN's rule: columns below the ramp are kept, those above it are stretched by factor. */
static double scale_yarn(const tables *t, double frequency, size_t column)
{
    const muc_model_config *config = t->config;
    double first = column_of_turns(t, config->rope_high_factor);
    double last = column_of_turns(t, config->rope_low_factor), share;

    if (config->rope_whole_turns) {
        first = floor(first);
        last = ceil(last);
    }
    first = muc_max(first, 0);
    last = muc_min(last, 2.0 * t->half - 1);
    if (first == last) /* the rule's own guard */
        last += 0.001;
    share = muc_min(muc_max(((double)column - first) / (last - first), 0), 1);
    return frequency / config->rope_factor * share + frequency * (1 - share);
}

static muc_status fill_column(void *arg, size_t i)
{
    const tables *t = arg;
    const muc_model_config *config = t->config;
    double frequency = muc_pow(t->theta, -(double)i / t->half), magnitude = 1;

    if (t->plain)
        ;
    else if (config->rope_kind == MUC_ROPE_LLAMA3)
        frequency = scale_llama3(config, frequency);
    else if (config->rope_kind == MUC_ROPE_LINEAR)
        frequency /= config->rope_factor;
    else if (config->rope_kind == MUC_ROPE_YARN) {
        frequency = scale_yarn(t, frequency, i);
        magnitude = config->rope_magnitude;
    } else if (config->rope_kind == MUC_ROPE_FACTORS) {
        bool is_long = t->context > config->rope_original_context && config->rope_long_factors;

        frequency /= (is_long ? config->rope_long_factors : config->rope_factors)[i];
        magnitude = config->rope_magnitude;
    }
    for (uint32_t position = 0; position < t->context; position++) {
        size_t at = (size_t)position * t->half + i;

        t->cosines[at] = (float)(muc_cos(position * frequency) * magnitude);
        t->sines[at] = (float)(muc_sin(position * frequency) * magnitude);
    }
    return MUC_OK;
}

uint32_t muc_llama_rotary(const muc_model_config *config)
{
    return config->rotary_dim ? config->rotary_dim : config->head_dim;
}

muc_status muc_llama_rope(muc_context *ctx, const muc_model_config *config, bool local,
                          uint32_t context, float *cosines, float *sines)
{
    tables t = { .config = config,
                 .theta = local ? config->rope_local_theta : config->rope_theta,
                 .half = muc_llama_rotary(config) / 2,
                 .context = context,
                 .plain = local || config->rope_kind == MUC_ROPE_PLAIN,
                 .cosines = cosines,
                 .sines = sines };

    return muc_parallel_for(ctx, t.half, fill_column, &t);
}

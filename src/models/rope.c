/* rope.c - the angles of rotary position embedding. */
#include "base/real.h"
#include "base/threads.h"
#include "models/llama.h"

static const double TWO_PI = 6.28318530717958647692;

typedef struct tables {
    const muc_model_config *config;
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

static muc_status fill_column(void *arg, size_t i)
{
    const tables *t = arg;
    const muc_model_config *config = t->config;
    double frequency = muc_pow(config->rope_theta, -2.0 * (double)i / config->head_dim);
    uint32_t half = config->head_dim / 2;

    if (config->rope_kind == MUC_ROPE_LLAMA3)
        frequency = scale_llama3(config, frequency);
    for (uint32_t position = 0; position < config->context; position++) {
        t->cosines[(size_t)position * half + i] = (float)muc_cos(position * frequency);
        t->sines[(size_t)position * half + i] = (float)muc_sin(position * frequency);
    }
    return MUC_OK;
}

muc_status muc_llama_rope(muc_context *ctx, const muc_model_config *config, uint32_t context,
                          float *cosines, float *sines)
{
    muc_model_config shortened = *config;
    tables t = { &shortened, cosines, sines };

    shortened.context = context;
    return muc_parallel_for(ctx, config->head_dim / 2, fill_column, &t);
}

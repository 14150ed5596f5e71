/* hf_layers.c - reads angles, windows and factors from a family's config.json. */
#include "formats/hf/hf_layers.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/real.h"

/* what Hugging Face takes where a file has no such key */
enum {
    GEMMA3_PATTERN = 6,
    STILL_INTERVAL = 4,
    CHUNK = 8192,
    FIRST_LATE_LAYER = 28,
    NEO_WINDOW = 256,
    WINDOW = 4096,
};
enum { MOST_LAYERS = 1 << 12 };

typedef struct reader {
    muc_context *ctx;
    const char *name; /* of the file */
    const json_t *root;
    muc_hf_windows windows;
    muc_checkpoint *checkpoint;
    muc_model_config *config;
    muc_layer_view *views; /* [layers] */
} reader;

#define UNSUPPORTED(r, ...) \
    muc_fail((r)->ctx, MUC_UNSUPPORTED, (r)->name, MUC_NO_OFFSET, __VA_ARGS__)

static muc_status read_double(const reader *r, const json_t *object, const char *key,
                              double fallback, double *out)
{
    return muc_json_double_or(r->ctx, r->name, object, key, fallback, out);
}

static muc_status read_u32(const reader *r, const json_t *object, const char *key,
                           uint32_t fallback, uint32_t *out)
{
    return muc_json_u32_or(r->ctx, r->name, object, key, fallback, out);
}

/* ---- RoPE ---- */

static muc_status read_llama3(const reader *r, const json_t *scaling)
{
    muc_model_config *config = r->config;

    config->rope_kind = MUC_ROPE_LLAMA3;
    MUC_TRY(read_double(r, scaling, "low_freq_factor", 0, &config->rope_low_factor));
    MUC_TRY(read_double(r, scaling, "high_freq_factor", 0, &config->rope_high_factor));
    return read_u32(r, scaling, "original_max_position_embeddings", 0,
                    &config->rope_original_context);
}

/* 0.1 * weight * log(factor) + 1 */
static double magnitude_of(double factor, double weight)
{
    return factor <= 1 ? 1 : 0.1 * weight * muc_log(factor) + 1;
}

static muc_status read_yarn(const reader *r, const json_t *scaling)
{
    muc_model_config *config = r->config;
    double weight, weight_of_all, factor = config->rope_factor, magnitude;

    config->rope_kind = MUC_ROPE_YARN;
    MUC_TRY(read_double(r, scaling, "beta_slow", 1, &config->rope_low_factor));
    MUC_TRY(read_double(r, scaling, "beta_fast", 32, &config->rope_high_factor));
    MUC_TRY(read_double(r, scaling, "mscale", 0, &weight));
    MUC_TRY(read_double(r, scaling, "mscale_all_dim", 0, &weight_of_all));
    MUC_TRY(
        muc_json_bool_or(r->ctx, r->name, scaling, "truncate", true, &config->rope_whole_turns));
    magnitude = weight > 0 && weight_of_all > 0
                    ? magnitude_of(factor, weight) / magnitude_of(factor, weight_of_all)
                    : magnitude_of(factor, 1);
    MUC_TRY(read_double(r, scaling, "attention_factor", magnitude, &config->rope_magnitude));
    return read_u32(r, scaling, "original_max_position_embeddings", config->context,
                    &config->rope_original_context);
}

/* the list of factors under key, one for each pair of columns that turn */
static muc_status read_factors(const reader *r, const json_t *scaling, const char *key,
                               const float **out)
{
    const json_t *list = json_object_get(scaling, key);
    uint32_t half = r->config->rotary_dim / 2;
    float *factors;

    if (json_array_size(list) != half || half == 0)
        return muc_fail(r->ctx, MUC_MALFORMED, r->name, MUC_NO_OFFSET,
                        "\"%s\" has %zu factors for %u frequencies", key, json_array_size(list),
                        half);
    MUC_TRY(MUC_ARENA_NEW(r->ctx, &r->checkpoint->arena, half, &factors));
    for (uint32_t i = 0; i < half; i++)
        factors[i] = (float)json_number_value(json_array_get(list, i));
    *out = factors;
    return MUC_OK;
}

static muc_status read_longrope(const reader *r, const json_t *scaling)
{
    muc_model_config *config = r->config;
    uint32_t original;
    double factor;

    config->rope_kind = MUC_ROPE_FACTORS;
    MUC_TRY(read_u32(r, r->root, "original_max_position_embeddings", 0, &original));
    MUC_TRY(read_u32(r, scaling, "original_max_position_embeddings", original, &original));
    factor = original ? (double)config->context / original : config->rope_factor;
    original = original ? original : config->context;
    config->rope_original_context = original;
    config->rope_magnitude = 1;
    if (factor > 1 && original > 1)
        config->rope_magnitude = sqrt(1 + muc_log(factor) / muc_log(original));
    MUC_TRY(read_double(r, scaling, "attention_factor", config->rope_magnitude,
                        &config->rope_magnitude));
    MUC_TRY(read_factors(r, scaling, "long_factor", &config->rope_long_factors));
    return read_factors(r, scaling, "short_factor", &config->rope_factors);
}

static muc_status read_scaling(const reader *r, const json_t *scaling)
{
    const char *type;

    MUC_TRY(muc_json_string_or_null(r->ctx, r->name, scaling, "rope_type", &type));
    if (!type)
        MUC_TRY(muc_json_string_or_null(r->ctx, r->name, scaling, "type", &type));
    /* "dynamic" changes positions beyond the model's own context, and muc has none of those */
    if (type && (strcmp(type, "default") == 0 || strcmp(type, "dynamic") == 0))
        return MUC_OK;
    MUC_TRY(read_double(r, scaling, "factor", 0, &r->config->rope_factor));
    if (type && strcmp(type, "linear") == 0) {
        r->config->rope_kind = MUC_ROPE_LINEAR;
        return MUC_OK;
    }
    if (type && strcmp(type, "llama3") == 0)
        return read_llama3(r, scaling);
    if (type && strcmp(type, "yarn") == 0)
        return read_yarn(r, scaling);
    if (type && (strcmp(type, "longrope") == 0 || strcmp(type, "su") == 0))
        return read_longrope(r, scaling);
    return UNSUPPORTED(r,
                       "RoPE scaling of type '%s', expected linear, dynamic, llama3, yarn or "
                       "longrope",
                       type ? type : "not named");
}

/* what "rope_parameters" say of layers with windows, whose angles are not scaled */
static muc_status read_local_rope(const reader *r, const json_t *local)
{
    const char *type;

    MUC_TRY(muc_json_string_or_null(r->ctx, r->name, local, "rope_type", &type));
    if (type && strcmp(type, "default") != 0)
        return UNSUPPORTED(r, "RoPE scaling of type '%s' in layers with windows", type);
    return read_double(r, local, "rope_theta", r->config->rope_local_theta,
                       &r->config->rope_local_theta);
}

/* "rope_scaling" beside "rope_theta", or, in younger files, both in "rope_parameters", there
 * perhaps once for layers that see all and once for those with windows */
static muc_status read_rope(const reader *r)
{
    const json_t *scaling = json_object_get(r->root, "rope_scaling");
    const json_t *parameters = json_object_get(r->root, "rope_parameters");
    const json_t *local = json_object_get(parameters, "sliding_attention");
    muc_model_config *config = r->config;
    double theta = config->rope_theta > 0 ? config->rope_theta : 10000, share;

    if (json_object_get(parameters, "full_attention"))
        parameters = json_object_get(parameters, "full_attention");
    MUC_TRY(read_double(r, r->root, "rotary_emb_base", theta, &config->rope_theta));
    MUC_TRY(read_double(r, r->root, "rope_theta", config->rope_theta, &config->rope_theta));
    MUC_TRY(read_double(r, r->root, "rope_local_base_freq", 10000, &config->rope_local_theta));
    MUC_TRY(read_double(r, r->root, "rotary_pct", config->family == MUC_FAMILY_NEOX ? 0.25 : 1,
                        &share));
    MUC_TRY(read_double(r, r->root, "partial_rotary_factor", share, &share));
    if (json_is_object(local))
        MUC_TRY(read_local_rope(r, local));
    if (json_is_object(parameters)) {
        MUC_TRY(read_double(r, parameters, "rope_theta", config->rope_theta, &config->rope_theta));
        MUC_TRY(read_double(r, parameters, "partial_rotary_factor", share, &share));
        scaling = parameters;
    }
    if (!(share > 0 && share <= 1))
        return UNSUPPORTED(r, "RoPE of a share of %g of a head, expected above 0 and up to 1",
                           share);
    config->rotary_dim = (uint32_t)(config->head_dim * share);
    if (config->rotary_dim == 0 && config->head_dim > 0)
        return UNSUPPORTED(r, "RoPE of a share of %g of a head of %u", share, config->head_dim);
    if (!scaling || json_is_null(scaling))
        return MUC_OK;
    if (!json_is_object(scaling))
        return muc_fail(r->ctx, MUC_MALFORMED, r->name, MUC_NO_OFFSET,
                        "\"rope_scaling\" is not an object");
    return read_scaling(r, scaling);
}

/* ---- windows ---- */

/* the element of a list of layers, or NULL where there is no list; another length is refused */
static muc_status element_of(const reader *r, const char *key, uint32_t layer, const json_t **out)
{
    const json_t *list = json_object_get(r->root, key);

    *out = NULL;
    if (!list || json_is_null(list))
        return MUC_OK;
    /* MobileLLM-R1's have more */
    if (json_array_size(list) < r->config->layers ||
        (json_array_size(list) > r->config->layers && r->config->family != MUC_FAMILY_LLAMA4))
        return muc_fail(r->ctx, MUC_MALFORMED, r->name, MUC_NO_OFFSET,
                        "\"%s\" has %zu elements for %u layers", key, json_array_size(list),
                        r->config->layers);
    *out = json_array_get(list, layer);
    return MUC_OK;
}

/* GPT-Neo's "attention_types": [[["global", "local"], 6], ..], repeated in turn */
static const char *type_by_turns(const json_t *groups, uint32_t layer)
{
    const json_t *group;
    size_t i;

    json_array_foreach(groups, i, group)
    {
        const json_t *types = json_array_get(group, 0);
        size_t count = json_array_size(types);
        json_int_t times = json_integer_value(json_array_get(group, 1));

        if (count == 0 || times < 1)
            return NULL;
        if (layer / count < (uint64_t)times)
            return json_string_value(json_array_get(types, layer % count));
        layer -= (uint32_t)(count * (uint64_t)times);
    }
    return NULL;
}

static muc_status is_named_local(const reader *r, uint32_t layer, bool *out)
{
    const json_t *element;
    const char *type;

    MUC_TRY(element_of(r, "attention_layers", layer, &element));
    type = element ? json_string_value(element)
                   : type_by_turns(json_object_get(r->root, "attention_types"), layer);
    if (!type || (strcmp(type, "local") != 0 && strcmp(type, "global") != 0))
        return UNSUPPORTED(r, "layer %u has attention of type '%s', expected local or global",
                           layer, type ? type : "not named");
    *out = strcmp(type, "local") == 0;
    return MUC_OK;
}

/* SmolLM 3 and Llama 4 turn no heads of each fourth layer, or of those whose number in
 * "no_rope_layers" is 0 */
static muc_status turns(const reader *r, uint32_t layer, bool *out)
{
    const json_t *element;
    uint32_t interval;

    *out = true;
    if (r->config->family != MUC_FAMILY_SMOLLM3 && r->config->family != MUC_FAMILY_LLAMA4)
        return MUC_OK;
    MUC_TRY(element_of(r, "no_rope_layers", layer, &element));
    if (element && !json_is_integer(element) && !json_is_boolean(element))
        return muc_fail(r->ctx, MUC_MALFORMED, r->name, MUC_NO_OFFSET,
                        "\"no_rope_layers\" of layer %u is neither a number nor a truth value",
                        layer);
    MUC_TRY(read_u32(r, r->root, "no_rope_layer_interval", STILL_INTERVAL, &interval));
    *out = element ? json_is_true(element) || json_integer_value(element) != 0
                   : interval == 0 || (layer + 1) % interval;
    return MUC_OK;
}

/* "use_sliding_window" holds, and is off where it is not given */
static bool needs_switch(const reader *r)
{
    return r->windows == MUC_HF_LATE_LAYERS || r->windows == MUC_HF_STILL_LAYERS;
}

/* by the family's own rule; on: "use_sliding_window" */
static muc_status slides(const reader *r, uint32_t layer, bool on, bool *out)
{
    uint32_t number;

    *out = false;
    switch (r->windows) {
    case MUC_HF_NO_LAYER:
        break;
    case MUC_HF_EVERY_LAYER:
        *out = true;
        break;
    case MUC_HF_LATE_LAYERS:
        MUC_TRY(read_u32(r, r->root, "max_window_layers", FIRST_LATE_LAYER, &number));
        *out = on && layer >= number;
        break;
    case MUC_HF_STILL_LAYERS:
        MUC_TRY(turns(r, layer, out));
        *out = on && !*out;
        break;
    case MUC_HF_EVEN_LAYERS:
        *out = layer % 2 == 0;
        break;
    case MUC_HF_PATTERN:
        MUC_TRY(read_u32(r, r->root, "sliding_window_pattern", GEMMA3_PATTERN, &number));
        *out = number == 0 || (layer + 1) % number != 0;
        break;
    case MUC_HF_NAMED_LAYERS:
        return is_named_local(r, layer, out);
    }
    return MUC_OK;
}

/* a token sees those of its chunk: all of them, if there is one */
static muc_status check_chunk(const reader *r, uint32_t layer, bool *out)
{
    uint32_t chunk;

    MUC_TRY(read_u32(r, r->root, "attention_chunk_size", CHUNK, &chunk));
    *out = false;
    return chunk == 0 || chunk >= r->config->context
               ? MUC_OK
               : UNSUPPORTED(r, "layer %u sees chunks of %u in a context of %u", layer, chunk,
                             r->config->context);
}

/* queries of layers that do not turn grow from position "floor_scale" on */
static muc_status check_temperature(const reader *r)
{
    uint32_t first;
    bool tuned;

    MUC_TRY(muc_json_bool_or(r->ctx, r->name, r->root, "attn_temperature_tuning", true, &tuned));
    MUC_TRY(read_u32(r, r->root, "floor_scale", CHUNK, &first));
    for (uint32_t i = 0; tuned && first <= r->config->context && i < r->config->layers; i++)
        if (r->views[i].angles == MUC_ANGLES_NONE)
            return UNSUPPORTED(r,
                               "\"attn_temperature_tuning\" from position %u on in a context of %u",
                               first, r->config->context);
    return MUC_OK;
}

static muc_status read_type(const reader *r, uint32_t layer, bool on, bool *out)
{
    const json_t *element;
    const char *type;

    MUC_TRY(element_of(r, "layer_types", layer, &element));
    if (!element)
        return slides(r, layer, on, out);
    type = json_string_value(element);
    if (type && strcmp(type, "chunked_attention") == 0 && r->config->family == MUC_FAMILY_LLAMA4)
        return check_chunk(r, layer, out);
    if (!type || (strcmp(type, "full_attention") != 0 && strcmp(type, "sliding_attention") != 0))
        return UNSUPPORTED(r,
                           "layer %u is of type '%s', expected full_attention or "
                           "sliding_attention",
                           layer, type ? type : "unknown");
    *out = strcmp(type, "sliding_attention") == 0 && (on || !needs_switch(r));
    return MUC_OK;
}

static muc_status read_view(const reader *r, uint32_t layer, uint32_t window, bool on)
{
    muc_layer_view *view = &r->views[layer];
    bool slides_here, turns_here;

    MUC_TRY(read_type(r, layer, on, &slides_here));
    MUC_TRY(turns(r, layer, &turns_here));
    if (slides_here && window == 0)
        return UNSUPPORTED(r, "layer %u sees a window, but \"sliding_window\" is not given", layer);
    if (slides_here && window < r->config->context) { /* a longer one hides nothing */
        if (r->windows == MUC_HF_NO_LAYER)
            return UNSUPPORTED(r, "layer %u sees a window of %u: a %s has none", layer, window,
                               r->config->architecture);
        view->window = window;
    }
    view->angles = !turns_here                                             ? MUC_ANGLES_NONE
                   : slides_here && r->config->family == MUC_FAMILY_GEMMA3 ? MUC_ANGLES_LOCAL
                                                                           : MUC_ANGLES_GLOBAL;
    return MUC_OK;
}

/* "sliding_window", which null switches off */
static muc_status read_window(const reader *r, uint32_t *out)
{
    bool named = r->windows == MUC_HF_NAMED_LAYERS;
    bool can_be_off = r->windows == MUC_HF_NO_LAYER || r->config->family == MUC_FAMILY_PHI3;
    const char *key = named ? "window_size" : "sliding_window";
    uint32_t fallback = named ? NEO_WINDOW : can_be_off ? 0 : WINDOW;

    return read_u32(r, r->root, key, json_object_get(r->root, key) ? 0 : fallback, out);
}

static muc_status read_views(reader *r)
{
    bool on, differ = false;
    uint32_t window;

    MUC_TRY(read_window(r, &window));
    MUC_TRY(
        muc_json_bool_or(r->ctx, r->name, r->root, "use_sliding_window", !needs_switch(r), &on));
    if (r->windows == MUC_HF_NO_LAYER && on && window > 0 && window < r->config->context &&
        !json_object_get(r->root, "layer_types"))
        return UNSUPPORTED(r, "\"sliding_window\" of %u in a context of %u: a %s has none", window,
                           r->config->context, r->config->architecture);
    if ((r->windows == MUC_HF_EVERY_LAYER && window == 0) || r->config->layers > MOST_LAYERS)
        return MUC_OK; /* no window; or what muc_checkpoint_check_config refuses */
    MUC_TRY(MUC_ARENA_NEW(r->ctx, &r->checkpoint->arena, r->config->layers, &r->views));
    for (uint32_t i = 0; i < r->config->layers; i++) {
        MUC_TRY(read_view(r, i, window, on));
        differ = differ || r->views[i].window || r->views[i].angles != MUC_ANGLES_GLOBAL;
    }
    r->config->layer_views = differ ? r->views : NULL;
    return r->config->family == MUC_FAMILY_LLAMA4 ? check_temperature(r) : MUC_OK;
}

/* ---- factors ---- */

enum { PLAIN, INVERSE, ROOT, INVERSE_ROOT };

static double number_of(int form, double value)
{
    value = form == ROOT || form == INVERSE_ROOT ? sqrt(value) : value;
    return form == INVERSE || form == INVERSE_ROOT ? 1 / value : value;
}

static muc_status read_numbers(const reader *r)
{
    static const struct {
        muc_family family;
        const char *key;
        size_t field;
        int form;
        double fallback;
    } rows[] = {
#define MUC_HF_NUMBER(family, key, field, form, fallback) \
    { MUC_FAMILY_##family, key, offsetof(muc_model_config, field), form, fallback },
#include "formats/hf/hf_numbers.def"
#undef MUC_HF_NUMBER
    };

    for (size_t i = 0; i < MUC_COUNT(rows); i++) {
        double value;

        if (rows[i].family != r->config->family)
            continue;
        MUC_TRY(read_double(r, r->root, rows[i].key, rows[i].fallback, &value));
        if (!(value >= 0 && value <= 1e6))
            return muc_fail(r->ctx, MUC_MALFORMED, r->name, MUC_NO_OFFSET,
                            "\"%s\" is %g, expected 0 to 1000000", rows[i].key, value);
        if (value == 0 && rows[i].fallback > 0)
            return muc_fail(r->ctx, MUC_MALFORMED, r->name, MUC_NO_OFFSET,
                            "\"%s\" is 0, expected a factor above it", rows[i].key);
        if (value > 0)
            value = number_of(rows[i].form, value);
        memcpy((char *)r->config + rows[i].field, &value, sizeof(value));
    }
    return MUC_OK;
}

muc_status muc_hf_read_layers(muc_context *ctx, const char *name, const json_t *root,
                              muc_hf_windows windows, muc_checkpoint *checkpoint)
{
    reader r = { .ctx = ctx,
                 .name = name,
                 .root = root,
                 .windows = windows,
                 .checkpoint = checkpoint,
                 .config = &checkpoint->config };

    if (r.config->position == MUC_POSITION_ROPE)
        MUC_TRY(read_rope(&r));
    MUC_TRY(read_views(&r));
    return read_numbers(&r);
}

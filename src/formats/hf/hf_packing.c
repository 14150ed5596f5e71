/* hf_packing.c - reads from "quantization_config" how other projects packed their matrices. */
#include <string.h>

#include "base/json.h"
#include "formats/hf/hf_packed.h"

typedef struct reader {
    muc_context *ctx;
    const char *name; /* of the file */
    const json_t *object;
    struct muc_hf_packed *out;
} reader;

#define UNSUPPORTED(r, ...) \
    muc_fail((r)->ctx, MUC_UNSUPPORTED, (r)->name, MUC_NO_OFFSET, \
             "\"quantization_config\": " __VA_ARGS__)

/* the text under key is one of two, or is not there: then the first */
static muc_status read_word(const reader *r, const char *key, const char *usual, const char *other,
                            bool *is_other)
{
    const char *text;

    MUC_TRY(muc_json_string_or_null(r->ctx, r->name, r->object, key, &text));
    *is_other = text && other && strcmp(text, other) == 0;
    if (!text || *is_other || strcmp(text, usual) == 0)
        return MUC_OK;
    return UNSUPPORTED(r, "\"%s\" is '%s', expected '%s'%s%s", key, text, usual,
                       other ? " or " : "", other ? other : "");
}

/* nothing that would change the numbers */
static bool is_empty(const json_t *value)
{
    return !value || json_is_null(value) || json_is_false(value) ||
           (json_is_integer(value) && json_integer_value(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0) ||
           (json_is_array(value) && json_array_size(value) == 0);
}

static muc_status check_empty(const reader *r, const char *const *keys, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!is_empty(json_object_get(r->object, keys[i])))
            return UNSUPPORTED(r, "\"%s\" is not empty", keys[i]);
    return MUC_OK;
}

static muc_status read_bits(const reader *r, const json_t *object, const char *key, uint32_t *out)
{
    uint64_t bits;

    MUC_TRY(muc_json_u64(r->ctx, r->name, object, key, 1, 32, &bits));
    if (bits != 2 && bits != 4 && bits != 8)
        return UNSUPPORTED(r, "\"%s\" is %u, expected 2, 4 or 8", key, (unsigned)bits);
    *out |= 1u << bits;
    return MUC_OK;
}

/* -1: a row is one group */
static muc_status read_group(const reader *r, const char *key)
{
    const json_t *value = json_object_get(r->object, key);
    json_int_t group = json_integer_value(value);

    if (value && (!json_is_integer(value) || group < -1 || group == 0 || group > INT32_MAX))
        return muc_fail(r->ctx, MUC_MALFORMED, r->name, MUC_NO_OFFSET,
                        "\"quantization_config\": \"%s\" is not a number of columns", key);
    r->out->group = group > 0 ? (uint32_t)group : 0;
    return MUC_OK;
}

static muc_status read_gptq(const reader *r)
{
    static const char *const others[] = { "dynamic", "is_marlin_format", "rotation" };
    bool is_other;

    MUC_TRY(read_bits(r, r->object, "bits", &r->out->bits));
    MUC_TRY(read_group(r, "group_size"));
    MUC_TRY(read_word(r, "pack_dtype", "int32", NULL, &is_other));
    MUC_TRY(read_word(r, "checkpoint_format", "gptq", "gptq_v2", &is_other));
    r->out->zeros_less_one = !is_other;
    return check_empty(r, others, MUC_COUNT(others));
}

static muc_status read_awq(const reader *r)
{
    bool is_other, has_zeros, is_old = json_object_get(r->object, "w_bit") != NULL;

    MUC_TRY(read_bits(r, r->object, is_old ? "w_bit" : "bits", &r->out->bits));
    if (r->out->bits != 1u << 4)
        return UNSUPPORTED(r, "AWQ of another number of bits than 4");
    MUC_TRY(
        read_group(r, json_object_get(r->object, "q_group_size") ? "q_group_size" : "group_size"));
    MUC_TRY(read_word(r, "version", "gemm", "GEMM", &is_other));
    MUC_TRY(muc_json_bool_or(r->ctx, r->name, r->object, "zero_point", true, &has_zeros));
    return has_zeros ? MUC_OK : UNSUPPORTED(r, "\"zero_point\" is false");
}

/* of one of "config_groups" */
static muc_status read_scheme(const reader *r, const char *name, const json_t *scheme)
{
    const json_t *weights = json_object_get(scheme, "weights");
    const char *type;

    if (!json_is_object(weights))
        return UNSUPPORTED(r, "group '%s' has no \"weights\"", name);
    MUC_TRY(muc_json_string_or_null(r->ctx, r->name, weights, "type", &type));
    if (type && strcmp(type, "int") != 0)
        return UNSUPPORTED(r, "group '%s' has weights of type '%s', expected int", name, type);
    return read_bits(r, weights, "num_bits", &r->out->bits);
}

static muc_status read_compressed(const reader *r)
{
    static const char *const known[] = { "pack-quantized", "int-quantized", "naive-quantized" };
    static const char *const others[] = { "kv_cache_scheme", "transform_config" };
    const json_t *groups = json_object_get(r->object, "config_groups"), *scheme;
    const json_t *sparsity = json_object_get(r->object, "sparsity_config");
    const char *format, *name, *sparse;
    bool is_known = false;

    MUC_TRY(muc_json_string_or_null(r->ctx, r->name, r->object, "format", &format));
    for (size_t i = 0; i < MUC_COUNT(known); i++)
        is_known = is_known || (format && strcmp(format, known[i]) == 0);
    if (!is_known)
        return UNSUPPORTED(r, "\"format\" is '%s', expected %s, %s or %s",
                           format ? format : "missing", known[0], known[1], known[2]);
    MUC_TRY(check_empty(r, others, MUC_COUNT(others)));
    MUC_TRY(muc_json_string_or_null(r->ctx, r->name, sparsity, "format", &sparse));
    if (sparse && strcmp(sparse, "dense") != 0)
        return UNSUPPORTED(r, "\"sparsity_config\": \"format\" is '%s', expected dense", sparse);
    if (json_object_size(groups) == 0)
        return UNSUPPORTED(r, "\"config_groups\" names no scheme");
    json_object_foreach((json_t *)(uintptr_t)groups, name, scheme)
        MUC_TRY(read_scheme(r, name, scheme));
    return MUC_OK;
}

static muc_status read_bitnet(const reader *r)
{
    static const char *const others[] = { "use_rms_norm" };
    bool is_auto, is_online;

    r->out->bits = 1u << 2;
    MUC_TRY(read_word(r, "linear_class", "bitlinear", "autobitlinear", &is_auto));
    MUC_TRY(read_word(r, "quantization_mode", "offline", "online", &is_online));
    r->out->inverse_scales = !is_auto;
    r->out->rounded_by_users = is_auto && is_online;
    return check_empty(r, others, MUC_COUNT(others));
}

muc_status muc_hf_read_packing(muc_context *ctx, const char *name, const json_t *object,
                               muc_checkpoint *checkpoint)
{
    static const struct {
        const char *method;
        muc_hf_packing packing;
        muc_status (*read)(const reader *r);
    } known[] = {
        { "gptq", MUC_HF_GPTQ, read_gptq },
        { "awq", MUC_HF_AWQ, read_awq },
        { "compressed-tensors", MUC_HF_COMPRESSED, read_compressed },
        { "bitnet", MUC_HF_BITNET, read_bitnet },
    };
    reader r = { .ctx = ctx, .name = name, .object = object };
    const char *method;

    MUC_TRY(muc_json_string_or_null(ctx, name, object, "quant_method", &method));
    for (size_t i = 0; method && i < MUC_COUNT(known); i++) {
        if (strcmp(method, known[i].method) != 0)
            continue;
        MUC_TRY(MUC_ARENA_NEW(ctx, &checkpoint->arena, 1, &r.out));
        r.out->packing = known[i].packing;
        checkpoint->packed = r.out;
        return known[i].read(&r);
    }
    return UNSUPPORTED(&r,
                       "weights quantized by '%s', expected muc, gptq, awq, compressed-tensors, "
                       "bitnet or none",
                       method ? method : "an unnamed method");
}

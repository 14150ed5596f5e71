/* json.c - reads JSON: checks its depth before jansson recurses, then gives typed access to
 * members. */
#include "base/json.h"

#include <math.h>

/* values: of the largest vocabulary with its merges, and twice that */
enum { MAX_DEPTH = 64, MAX_VALUES = 1 << 23 };

/* jansson spends tens of bytes on each value, so their number is bounded before it begins. */
static muc_status check_limits(muc_context *ctx, muc_bytes bytes, uint64_t base_offset)
{
    unsigned depth = 0, commas = 0;
    bool in_string = false;

    for (size_t i = 0; i < bytes.size; i++) {
        uint8_t c = bytes.data[i];

        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > MAX_DEPTH)
                return muc_fail(ctx, MUC_MALFORMED, bytes.name, base_offset + i,
                                "JSON nested deeper than %d", MAX_DEPTH);
        } else if ((c == '}' || c == ']') && depth > 0) {
            depth--;
        } else if (c == ',' && ++commas > MAX_VALUES) {
            return muc_fail(ctx, MUC_UNSUPPORTED, bytes.name, base_offset + i,
                            "JSON of more than %d values", MAX_VALUES);
        }
    }
    return MUC_OK;
}

muc_status muc_json_parse(muc_context *ctx, muc_bytes bytes, uint64_t base_offset, json_t **out)
{
    json_error_t error;

    MUC_TRY(check_limits(ctx, bytes, base_offset));
    *out = json_loadb((const char *)bytes.data, bytes.size,
                      JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (!*out)
        return muc_fail(ctx, MUC_MALFORMED, bytes.name, base_offset + (uint64_t)error.position,
                        "JSON: %s", error.text);
    return MUC_OK;
}

static const json_t *member(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_null(value) ? NULL : value;
}

static muc_status fail_type(muc_context *ctx, const char *name, const char *key,
                            const char *expected)
{
    return muc_fail(ctx, MUC_MALFORMED, name, MUC_NO_OFFSET, "\"%s\" is not %s", key, expected);
}

muc_status muc_json_u64(muc_context *ctx, const char *name, const json_t *object, const char *key,
                        uint64_t min, uint64_t max, uint64_t *out)
{
    const json_t *value = member(object, key);
    json_int_t number;

    if (!value)
        return muc_fail(ctx, MUC_MALFORMED, name, MUC_NO_OFFSET, "\"%s\" is missing", key);
    if (!json_is_integer(value))
        return fail_type(ctx, name, key, "an integer");
    number = json_integer_value(value);
    if (number < 0 || (uint64_t)number < min || (uint64_t)number > max)
        return muc_fail(ctx, MUC_MALFORMED, name, MUC_NO_OFFSET,
                        "\"%s\" is %lld, expected %llu to %llu", key, (long long)number,
                        (unsigned long long)min, (unsigned long long)max);
    *out = (uint64_t)number;
    return MUC_OK;
}

muc_status muc_json_u64_or(muc_context *ctx, const char *name, const json_t *object,
                           const char *key, uint64_t min, uint64_t max, uint64_t fallback,
                           uint64_t *out)
{
    *out = fallback;
    return member(object, key) ? muc_json_u64(ctx, name, object, key, min, max, out) : MUC_OK;
}

muc_status muc_json_u32_or(muc_context *ctx, const char *name, const json_t *object,
                           const char *key, uint32_t fallback, uint32_t *out)
{
    uint64_t value;

    MUC_TRY(muc_json_u64_or(ctx, name, object, key, 0, UINT32_MAX, fallback, &value));
    *out = (uint32_t)value;
    return MUC_OK;
}

muc_status muc_json_double_or(muc_context *ctx, const char *name, const json_t *object,
                              const char *key, double fallback, double *out)
{
    const json_t *value = member(object, key);

    *out = fallback;
    if (!value)
        return MUC_OK;
    if (!json_is_number(value))
        return fail_type(ctx, name, key, "a number");
    *out = json_number_value(value);
    return isfinite(*out) ? MUC_OK : fail_type(ctx, name, key, "finite");
}

muc_status muc_json_bool_or(muc_context *ctx, const char *name, const json_t *object,
                            const char *key, bool fallback, bool *out)
{
    const json_t *value = member(object, key);

    *out = fallback;
    if (!value)
        return MUC_OK;
    if (!json_is_boolean(value))
        return fail_type(ctx, name, key, "true or false");
    *out = json_is_true(value);
    return MUC_OK;
}

muc_status muc_json_string_or_null(muc_context *ctx, const char *name, const json_t *object,
                                   const char *key, const char **out)
{
    const json_t *value = member(object, key);

    *out = NULL;
    if (!value)
        return MUC_OK;
    if (!json_is_string(value))
        return fail_type(ctx, name, key, "a string");
    *out = json_string_value(value);
    return MUC_OK;
}

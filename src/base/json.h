/* json.h - jansson behind the house's limits and messages. */
#ifndef MUC_JSON_H
#define MUC_JSON_H

#include <jansson.h>

#include "base/bytes.h"

/* Parses a whole document: depth at most 64, values at most 2^23, duplicate keys refused by name.
 * Offsets in messages are base_offset + position. Release with json_decref. */
muc_status muc_json_parse(muc_context *ctx, muc_bytes bytes, uint64_t base_offset, json_t **out);

/* Members of an object, with the document's name for messages. The plain forms fail when the
 * key is absent or has another type; the _or forms give fallback when it is absent or null. */
muc_status muc_json_u64(muc_context *ctx, const char *name, const json_t *object, const char *key,
                        uint64_t min, uint64_t max, uint64_t *out);
muc_status muc_json_u64_or(muc_context *ctx, const char *name, const json_t *object,
                           const char *key, uint64_t min, uint64_t max, uint64_t fallback,
                           uint64_t *out);
muc_status muc_json_u32_or(muc_context *ctx, const char *name, const json_t *object,
                           const char *key, uint32_t fallback, uint32_t *out);
muc_status muc_json_double_or(muc_context *ctx, const char *name, const json_t *object,
                              const char *key, double fallback, double *out);
muc_status muc_json_bool_or(muc_context *ctx, const char *name, const json_t *object,
                            const char *key, bool fallback, bool *out);
/* NULL when absent or null. Borrows from object. */
muc_status muc_json_string_or_null(muc_context *ctx, const char *name, const json_t *object,
                                   const char *key, const char **out);

#endif

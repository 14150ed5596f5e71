/* gguf.h - the container: metadata by key, tensors by GGUF's names. */
#ifndef MUC_GGUF_H
#define MUC_GGUF_H

#include "formats/checkpoint.h"

typedef enum muc_gguf_type {
#define MUC_GGUF_VALUE(id, number, bytes) MUC_GGUF_##id = number,
#include "formats/gguf/gguf_types.def"
#undef MUC_GGUF_VALUE
} muc_gguf_type;

typedef struct muc_gguf_value {
    const char *key;
    muc_gguf_type type;
    muc_gguf_type element; /* of an array; never an array */
    uint64_t count;        /* of an array; 1 otherwise */
    const uint8_t *data;   /* the value, or the first element; strings with their u64 lengths */
    uint64_t offset;       /* of data in the file */
} muc_gguf_value;

/* Borrows the file's bytes; the rest lies in arena. */
typedef struct muc_gguf {
    muc_context *ctx;
    muc_bytes bytes;
    muc_arena *arena;
    size_t value_count;
    muc_gguf_value *values; /* sorted by key, keys unique */
    size_t tensor_count;
    muc_tensor_view *tensors; /* in the file's order */
} muc_gguf;

/* Reads and checks everything but the tensors' elements. */
muc_status muc_gguf_parse(muc_context *ctx, muc_bytes bytes, muc_arena *arena, muc_gguf *out);

/* NULL if the key is absent. */
const muc_gguf_value *muc_gguf_find(const muc_gguf *gguf, const char *key);
/* Scalars. An absent key gives the fallback; another type, or a number out of range, is
 * MUC_MALFORMED. */
muc_status muc_gguf_u32_or(const muc_gguf *gguf, const char *key, uint32_t fallback, uint32_t *out);
muc_status muc_gguf_double_or(const muc_gguf *gguf, const char *key, double fallback, double *out);
muc_status muc_gguf_bool_or(const muc_gguf *gguf, const char *key, bool fallback, bool *out);
/* A copy in the arena; NULL if the key is absent. */
muc_status muc_gguf_string_or_null(const muc_gguf *gguf, const char *key, const char **out);
/* The value if it is an array of this element type; NULL if the key is absent. */
muc_status muc_gguf_array_or_null(const muc_gguf *gguf, const char *key, muc_gguf_type element,
                                  const muc_gguf_value **out);

/* The tokenizer in the metadata, in the arena; NULL if there is none. */
muc_status muc_gguf_vocabulary(const muc_gguf *gguf, const muc_stored_vocabulary **out);

#endif

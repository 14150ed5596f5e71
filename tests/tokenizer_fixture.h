/* tokenizer_fixture.h - what the tests of tokenizers share. */
#ifndef TOKENIZER_FIXTURE_H
#define TOKENIZER_FIXTURE_H

#include "base/file.h"
#include "base/text.h"
#include "check.h"
#include "text/tokenizer.h"

/* A compiled tokenizer and the memory that it lives in. */
typedef struct loaded {
    muc_arena arena;
    muc_vocabulary vocabulary;
    uint8_t *form;
    size_t bytes;
    mur_tokenizer tokenizer;
} loaded;

static inline void compile(muc_context *ctx, loaded *t)
{
    CHECK_OK(ctx, muc_tokenizer_compile(ctx, &t->vocabulary, &t->arena, &t->form, &t->bytes));
    CHECK_OK(ctx, muc_tokenizer_open(ctx, "test", t->form, t->bytes, &t->tokenizer));
}

static inline loaded load_bytes(muc_context *ctx, const char *name, const void *data, size_t size)
{
    loaded t = { .bytes = 0 };
    muc_bytes file = { data, size, name };

    CHECK_OK(ctx, muc_vocabulary_read(ctx, file, 0, &t.arena, &t.vocabulary));
    compile(ctx, &t);
    return t;
}

static inline loaded load(muc_context *ctx, const char *path)
{
    muc_file file;
    loaded t;

    CHECK_OK(ctx, muc_file_open(ctx, path, &file));
    t = load_bytes(ctx, path, file.bytes.data, file.bytes.size);
    muc_file_close(&file);
    return t;
}

static inline void unload(loaded *t)
{
    muc_arena_free(&t->arena);
}

static inline uint32_t *encode(muc_context *ctx, const loaded *t, const char *text, size_t size,
                               uint32_t flags, size_t *count)
{
    uint32_t *ids;

    CHECK_OK(ctx, muc_tokenizer_encode(ctx, &t->tokenizer, text, size, flags, &ids, count));
    return ids;
}

/* Each bit of t's form changed: the form is refused, or encodes text within its scratch. */
static inline void check_damaged_forms(const loaded *t,
                                       mur_status (*open)(mur_tokenizer *, const void *, size_t,
                                                          mur_normalize *),
                                       const char *text, uint32_t flags)
{
    size_t size = strlen(text);
    uint32_t *copy = malloc(t->bytes), ids[96], opened = 0;

    for (size_t bit = 0; bit < 8 * t->bytes; bit++) {
        mur_tokenizer damaged;
        size_t count, need;
        void *scratch;

        memcpy(copy, t->form, t->bytes);
        copy[bit / 32] ^= 1u << bit % 32;
        if (open(&damaged, copy, t->bytes, mur_nfc) != MUR_OK)
            continue;
        opened++;
        need = mur_tokenizer_scratch_bytes(&damaged, size);
        scratch = malloc(need);
        mur_tokenizer_encode(&damaged, (const uint8_t *)text, size, flags, scratch, need, ids,
                             MUC_COUNT(ids), &count);
        free(scratch);
    }
    CHECK(opened > 1000);
    free(copy);
}

static inline void check_ids(muc_context *ctx, const loaded *t, const char *text, size_t size,
                             uint32_t flags, const uint32_t *expected, size_t expected_count)
{
    size_t count;
    uint32_t *ids = encode(ctx, t, text, size, flags, &count);

    for (size_t i = 0; i < count && i < expected_count; i++)
        if (ids[i] != expected[i])
            fail_msg("'%.*s': id %zu is %u, expected %u", (int)size, text, i, ids[i], expected[i]);
    if (count != expected_count)
        fail_msg("'%.*s': %zu ids, expected %zu", (int)size, text, count, expected_count);
    free(ids);
}

/* check_ids for a string literal; the ids are the rest. */
#define CHECK_IDS(ctx, t, text, flags, ...) \
    do { \
        const uint32_t ids_[] = { __VA_ARGS__ }; \
        check_ids((ctx), (t), (text), strlen(text), (flags), ids_, \
                  sizeof(ids_) / sizeof(ids_[0])); \
    } while (0)

static inline void decode(const loaded *t, const uint32_t *ids, size_t count, muc_text *out)
{
    uint32_t previous = MUR_NO_TOKEN;

    for (size_t i = 0; i < count; i++) {
        const uint8_t *bytes;
        size_t size = mur_tokenizer_decode(&t->tokenizer, ids[i], previous, &bytes);

        muc_text_add_bytes(out, bytes, size);
        previous = ids[i];
    }
}

static inline void check_round_trip(muc_context *ctx, const loaded *t, const char *text,
                                    size_t size)
{
    muc_text back = { 0 };
    size_t count;
    uint32_t *ids = encode(ctx, t, text, size, MUR_ENCODE_BOS, &count);

    decode(t, ids, count, &back);
    CHECK_EQ(back.size, size);
    CHECK(size == 0 || memcmp(back.data, text, size) == 0);
    muc_text_free(&back);
    free(ids);
}

#endif

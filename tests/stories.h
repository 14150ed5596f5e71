/* stories.h - the perplexity of a model on tinystories_sample.txt by the manifest's recipe: split
 * at <|endoftext|>, strip, BOS and tokens, at most 512. */
#ifndef STORIES_H
#define STORIES_H

#include <math.h>

#include "base/file.h"
#include "base/real.h"
#include "check.h"
#include "ref/ref.h"
#include "text/tokenizer.h"

enum { STORIES_MOST = 8, STORIES_WINDOW = 512, STORIES_TOKENS = 1804, STORIES_VOCABULARY = 512 };

typedef struct stories {
    uint32_t count;
    uint32_t *ids[STORIES_MOST]; /* owned: free_stories */
    size_t sizes[STORIES_MOST];
} stories;

static inline void add_story(muc_context *ctx, const mur_tokenizer *tokenizer, const char *text,
                             const char *last, stories *out)
{
    static const char blanks[] = " \t\r\n";
    uint32_t i = out->count;

    while (text < last && strchr(blanks, *text))
        text++;
    while (last > text && strchr(blanks, last[-1]))
        last--;
    if (text == last)
        return;
    CHECK(i < STORIES_MOST);
    CHECK_OK(ctx, muc_tokenizer_encode(ctx, tokenizer, text, (size_t)(last - text), MUR_ENCODE_BOS,
                                       &out->ids[i], &out->sizes[i]));
    if (out->sizes[i] > STORIES_WINDOW)
        out->sizes[i] = STORIES_WINDOW;
    out->count++;
}

static inline void read_stories(muc_context *ctx, stories *out)
{
    static const char separator[] = "<|endoftext|>";
    muc_arena arena = { 0 };
    muc_vocabulary vocabulary;
    muc_file file, words;
    mur_tokenizer tokenizer;
    size_t form_bytes;
    uint8_t *form;
    const char *text, *end;

    memset(out, 0, sizeof(*out));
    CHECK_OK(ctx, muc_file_open(ctx, shared_data("llama/tok512.bin"), &words));
    CHECK_OK(ctx, muc_file_open(ctx, shared_data("text/tinystories_sample.txt"), &file));
    CHECK_OK(ctx, muc_vocabulary_read(ctx, words.bytes, STORIES_VOCABULARY, &arena, &vocabulary));
    CHECK_OK(ctx, muc_tokenizer_compile(ctx, &vocabulary, &arena, &form, &form_bytes));
    CHECK_OK(ctx, muc_tokenizer_open(ctx, "tok512.bin", form, form_bytes, &tokenizer));
    text = (const char *)file.bytes.data;
    for (end = text + file.bytes.size; text < end;) {
        const char *stop = memmem(text, (size_t)(end - text), separator, strlen(separator));

        add_story(ctx, &tokenizer, text, stop ? stop : end, out);
        text = stop ? stop + strlen(separator) : end;
    }
    muc_arena_free(&arena);
    muc_file_close(&file);
    muc_file_close(&words);
}

static inline void free_stories(stories *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        free(s->ids[i]);
}

/* -log of the probability of target */
static inline double surprise(const float *logits, size_t count, uint32_t target)
{
    double most = logits[0], sum = 0;

    for (size_t i = 1; i < count; i++)
        most = fmax(most, logits[i]);
    for (size_t i = 0; i < count; i++)
        sum += muc_exp(logits[i] - most);
    return most + muc_log(sum) - logits[target];
}

/* ref: a session that takes 64 tokens at once */
static inline double perplexity_of(muc_context *ctx, muc_ref *ref, const stories *s)
{
    double total = 0;
    uint32_t tokens = 0;

    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t last = (uint32_t)s->sizes[i] - 1;

        for (uint32_t pos = 0; pos < last;) {
            uint32_t step = last - pos < 64 ? last - pos : 64;
            const uint32_t *ids = s->ids[i] + pos;
            size_t rows, columns;
            const float *logits;

            CHECK_OK(ctx, muc_ref_run_tokens(ref, pos, (const int32_t *)ids, step));
            logits = muc_ref_read(ref, "head", &rows, &columns);
            for (uint32_t r = 0; r < step; r++)
                total += surprise(logits + r * columns, columns, ids[r + 1]);
            pos += step;
        }
        tokens += last;
    }
    CHECK_EQ(tokens, STORIES_TOKENS);
    return muc_exp(total / tokens);
}

#endif

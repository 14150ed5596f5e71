/* Tokenizers: a file of any kind, or a compiled form; an accepted one encodes and decodes. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "mur_unigram.h"
#include "mur_wordpiece.h"
#include "text/tokenizer.h"

enum { TEXT_BYTES = 64 };

/* written so that every byte is read */
static volatile uint8_t seen;

/* The input's own first bytes are the text. */
static void use(const mur_tokenizer *tokenizer, const uint8_t *text, size_t size)
{
    uint32_t scratch[(TEXT_BYTES + 1) * 16], ids[3 * TEXT_BYTES + 3];
    mur_status status;
    const uint8_t *bytes;
    size_t count;

    status = mur_tokenizer_encode(tokenizer, text, size < TEXT_BYTES ? size : TEXT_BYTES,
                                  MUR_ENCODE_BOS | MUR_ENCODE_SPECIAL | MUR_ENCODE_EOS, scratch,
                                  sizeof(scratch), ids, MUC_COUNT(ids), &count);
    if (status != MUR_OK && !(tokenizer->header->flags & MUR_TOKENIZER_WORDPIECE))
        abort();
    for (size_t i = 0; i < count; i++)
        if (ids[i] >= tokenizer->header->pieces)
            abort();
    for (uint32_t id = 0; id <= tokenizer->header->pieces; id++) {
        size_t length = mur_tokenizer_decode(tokenizer, id, id - 1, &bytes);

        for (size_t i = 0; i < length; i++)
            seen ^= bytes[i];
    }
}

static void fuzz_file(muc_bytes file)
{
    muc_context *ctx = muc_context_new(1);
    muc_arena arena = { 0 };
    muc_vocabulary vocabulary;
    mur_tokenizer tokenizer;
    uint8_t *form;
    size_t bytes;

    if (muc_vocabulary_read(ctx, file, 0, &arena, &vocabulary) == MUC_OK &&
        muc_tokenizer_compile(ctx, &vocabulary, &arena, &form, &bytes) == MUC_OK &&
        muc_tokenizer_open(ctx, "fuzz", form, bytes, &tokenizer) == MUC_OK)
        use(&tokenizer, file.data, file.size);
    muc_arena_free(&arena);
    muc_context_free(ctx);
}

/* vocab.json up to the first zero byte, then merges.txt */
static void fuzz_two_files(const uint8_t *data, size_t size)
{
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    muc_context *ctx = muc_context_new(1);
    muc_arena arena = { 0 };
    muc_vocabulary vocabulary;
    mur_tokenizer tokenizer;
    uint8_t *form;
    size_t bytes, first = end ? (size_t)(end - data) : 0;

    if (end &&
        muc_vocabulary_read_gpt2(ctx, (muc_bytes){ data, first, "vocab.json" },
                                 (muc_bytes){ end + 1, size - first - 1, "merges.txt" }, &arena,
                                 &vocabulary) == MUC_OK &&
        muc_tokenizer_compile(ctx, &vocabulary, &arena, &form, &bytes) == MUC_OK &&
        muc_tokenizer_open(ctx, "fuzz", form, bytes, &tokenizer) == MUC_OK)
        use(&tokenizer, data, size);
    muc_arena_free(&arena);
    muc_context_free(ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t *aligned = malloc(size + 4);
    mur_tokenizer tokenizer;

    if (!aligned)
        return 0;
    memcpy(aligned, data, size);
    if (mur_unigram_open(&tokenizer, aligned, size, mur_nfc) == MUR_OK ||
        mur_wordpiece_open(&tokenizer, aligned, size, mur_nfc) == MUR_OK)
        use(&tokenizer, data, size);
    free(aligned);
    fuzz_file((muc_bytes){ data, size, "fuzz" });
    fuzz_file((muc_bytes){ data, size, "fuzz.bin" });
    fuzz_two_files(data, size);
    return 0;
}

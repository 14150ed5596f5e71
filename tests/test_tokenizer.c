/* test_tokenizer.c - tokenizers: readers, the compiled form, encoding and decoding.
 *
 * Judges: token ids that llama.cpp, llama2.c and the shared reference data state, and a naive
 * tokenizer below that shares no code with the one under test.
 */
#include "text/tokenizer.h"

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "check.h"

static muc_context *ctx;

/* A compiled tokenizer and the memory that it lives in. */
typedef struct loaded {
    muc_arena arena;
    muc_vocabulary vocabulary;
    uint8_t *form;
    size_t bytes;
    mur_tokenizer tokenizer;
} loaded;

static int setup(void **state)
{
    (void)state;
    ctx = muc_context_new(1);
    return ctx ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    muc_context_free(ctx);
    return 0;
}

static void compile(loaded *t)
{
    CHECK_OK(ctx, muc_tokenizer_compile(ctx, &t->vocabulary, &t->arena, &t->form, &t->bytes));
    CHECK_OK(ctx, muc_tokenizer_open(ctx, "test", t->form, t->bytes, &t->tokenizer));
}

static loaded load(const char *path)
{
    loaded t = { .bytes = 0 };
    muc_file file;

    CHECK_OK(ctx, muc_file_open(ctx, path, &file));
    CHECK_OK(ctx, muc_vocabulary_read(ctx, file.bytes, 0, &t.arena, &t.vocabulary));
    t.vocabulary.source = "loaded";
    muc_file_close(&file);
    compile(&t);
    return t;
}

static void unload(loaded *t)
{
    muc_arena_free(&t->arena);
}

static uint32_t *encode(const loaded *t, const char *text, size_t size, uint32_t flags,
                        size_t *count)
{
    uint32_t *ids;

    CHECK_OK(ctx, muc_tokenizer_encode(ctx, &t->tokenizer, text, size, flags, &ids, count));
    return ids;
}

static void check_ids(const loaded *t, const char *text, size_t size, uint32_t flags,
                      const uint32_t *expected, size_t expected_count)
{
    size_t count;
    uint32_t *ids = encode(t, text, size, flags, &count);

    for (size_t i = 0; i < count && i < expected_count; i++)
        if (ids[i] != expected[i])
            fail_msg("'%.*s': id %zu is %u, expected %u", (int)size, text, i, ids[i], expected[i]);
    if (count != expected_count)
        fail_msg("'%.*s': %zu ids, expected %zu", (int)size, text, count, expected_count);
    free(ids);
}

static void decode(const loaded *t, const uint32_t *ids, size_t count, muc_text *out)
{
    uint32_t previous = MUR_NO_TOKEN;

    for (size_t i = 0; i < count; i++) {
        const uint8_t *bytes;
        size_t size = mur_tokenizer_decode(&t->tokenizer, ids[i], previous, &bytes);

        muc_text_add_bytes(out, bytes, size);
        previous = ids[i];
    }
}

static void check_round_trip(const loaded *t, const char *text, size_t size)
{
    muc_text back = { 0 };
    size_t count;
    uint32_t *ids = encode(t, text, size, MUR_ENCODE_BOS, &count);

    decode(t, ids, count, &back);
    CHECK_EQ(back.size, size);
    CHECK(size == 0 || memcmp(back.data, text, size) == 0);
    muc_text_free(&back);
    free(ids);
}

/* ---- known ids ---- */

/* llama.cpp's cases: texts between separator lines, and a line of ids for each. */
static void check_ggml_cases(const loaded *t, const char *inputs, const char *outputs)
{
    static const char separator[] = "\n__ggml_vocab_test__\n";
    muc_file in, out;
    const char *text, *line, *end;
    size_t cases = 0;

    CHECK_OK(ctx, muc_file_open(ctx, inputs, &in));
    CHECK_OK(ctx, muc_file_open(ctx, outputs, &out));
    text = (const char *)in.bytes.data;
    end = text + in.bytes.size;
    line = (const char *)out.bytes.data;
    while (text < end) {
        const char *stop = memmem(text, (size_t)(end - text), separator, strlen(separator));
        uint32_t expected[256];
        size_t count = 0;

        if (!stop)
            break;
        while (*line != '\n') {
            char *after;

            expected[count++] = (uint32_t)strtoul(line, &after, 10);
            line = after;
        }
        line++;
        check_ids(t, text, (size_t)(stop - text), 0, expected, count);
        check_round_trip(t, text, (size_t)(stop - text));
        text = stop + strlen(separator);
        cases++;
    }
    CHECK_EQ(cases, 46);
    CHECK_EQ(line - (const char *)out.bytes.data, out.bytes.size);
    muc_file_close(&in);
    muc_file_close(&out);
}

static void llama2_model_gives_llama_cpp_ids(void **state)
{
    loaded t = load(shared_data("tokenizers/llama_tokenizer.model"));

    (void)state;
    check_ggml_cases(&t, shared_data("tokenizers/ggml-vocab-llama-spm.gguf.inp"),
                     shared_data("tokenizers/ggml-vocab-llama-spm.gguf.out"));
    unload(&t);
}

static void llama2_json_gives_llama_cpp_ids(void **state)
{
    loaded t = load(shared_data("tokenizers/hf-llama2-tokenizer.json"));

    (void)state;
    check_ggml_cases(&t, shared_data("tokenizers/ggml-vocab-llama-spm.gguf.inp"),
                     shared_data("tokenizers/ggml-vocab-llama-spm.gguf.out"));
    unload(&t);
}

/* phi-2 has GPT-2's merges and adds pieces for runs of spaces; without these it is GPT-2 */
static void phi2_json_without_its_space_pieces_gives_gpt2_ids(void **state)
{
    loaded t = load(shared_data("tokenizers/hf-phi2-bytelevel-tokenizer.json"));

    (void)state;
    for (size_t i = 0; i < t.vocabulary.count; i++)
        if (t.vocabulary.pieces[i].type == MUR_PIECE_USER)
            t.vocabulary.pieces[i].type = MUR_PIECE_UNUSED;
    compile(&t);
    check_ggml_cases(&t, shared_data("tokenizers/ggml-vocab-gpt-2.gguf.inp"),
                     shared_data("tokenizers/ggml-vocab-gpt-2.gguf.out"));
    unload(&t);
}
static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(llama2_model_gives_llama_cpp_ids, setup, teardown),
    cmocka_unit_test_setup_teardown(llama2_json_gives_llama_cpp_ids, setup, teardown),
    cmocka_unit_test_setup_teardown(phi2_json_without_its_space_pieces_gives_gpt2_ids, setup,
                                    teardown),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}

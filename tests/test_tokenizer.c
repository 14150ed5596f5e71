/* test_tokenizer.c - encoding and decoding with real tokenizers.
 *
 * Judges: ids that llama.cpp, llama2.c and the reference data state, and the text itself, which
 * must come back.
 */
#include "base/json.h"
#include "base/text.h"
#include "formats/gguf/gguf.h"
#include "tokenizer_fixture.h"

#include "context_fixture.h"

/* The tokenizer that a GGUF file holds. */
static loaded load_gguf(const char *path)
{
    loaded t = { .bytes = 0 };
    const muc_stored_vocabulary *stored;
    muc_gguf gguf;
    muc_file file;

    CHECK_OK(ctx, muc_file_open(ctx, path, &file));
    CHECK_OK(ctx, muc_gguf_parse(ctx, file.bytes, &t.arena, &gguf));
    CHECK_OK(ctx, muc_gguf_vocabulary(&gguf, &stored));
    CHECK_OK(ctx, muc_vocabulary_of_stored(ctx, path, stored, &t.arena, &t.vocabulary));
    compile(ctx, &t);
    muc_file_close(&file);
    return t;
}

static void check_same_form(const loaded *a, const loaded *b)
{
    CHECK_EQ(a->bytes, b->bytes);
    assert_memory_equal(a->form, b->form, a->bytes);
}

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

        CHECK(stop != NULL);
        while (*line != '\n') {
            char *after;

            expected[count++] = (uint32_t)strtoul(line, &after, 10);
            line = after;
        }
        line++;
        check_ids(ctx, t, text, (size_t)(stop - text), 0, expected, count);
        check_round_trip(ctx, t, text, (size_t)(stop - text));
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
    loaded t = load(ctx, shared_data("tokenizers/llama_tokenizer.model"));

    (void)state;
    check_ggml_cases(&t, shared_data("tokenizers/ggml-vocab-llama-spm.gguf.inp"),
                     shared_data("tokenizers/ggml-vocab-llama-spm.gguf.out"));
    unload(&t);
}

static void llama2_json_gives_llama_cpp_ids(void **state)
{
    loaded t = load(ctx, shared_data("tokenizers/hf-llama2-tokenizer.json"));

    (void)state;
    check_ggml_cases(&t, shared_data("tokenizers/ggml-vocab-llama-spm.gguf.inp"),
                     shared_data("tokenizers/ggml-vocab-llama-spm.gguf.out"));
    unload(&t);
}

static void llama2_is_one_tokenizer_from_two_files(void **state)
{
    loaded model = load(ctx, shared_data("tokenizers/llama_tokenizer.model"));
    loaded gguf = load_gguf(shared_data("tokenizers/ggml-vocab-llama-spm.gguf"));

    (void)state;
    check_same_form(&model, &gguf);
    unload(&model);
    unload(&gguf);
}

static void gpt2_gguf_gives_llama_cpp_ids(void **state)
{
    loaded t = load_gguf(shared_data("tokenizers/ggml-vocab-gpt-2.gguf"));

    (void)state;
    check_ggml_cases(&t, shared_data("tokenizers/ggml-vocab-gpt-2.gguf.inp"),
                     shared_data("tokenizers/ggml-vocab-gpt-2.gguf.out"));
    unload(&t);
}

/* the GGUF's pieces and merges as GPT-2's first release stored them */
static void gpt2_of_two_files_is_the_same_tokenizer(void **state)
{
    loaded gguf = load_gguf(shared_data("tokenizers/ggml-vocab-gpt-2.gguf")), two = { .bytes = 0 };
    const muc_vocabulary *v = &gguf.vocabulary;
    muc_text vocab = { 0 }, merges = { 0 };

    (void)state;
    muc_text_add(&merges, "#version: 0.2\n");
    for (size_t i = 0; i < v->count; i++) {
        muc_text_add(&vocab, i ? "," : "{");
        muc_text_add_json(&vocab, v->pieces[i].text);
        muc_text_add(&vocab, ":%zu%s", i, i + 1 < v->count ? "" : "}");
    }
    for (size_t i = 0; i < v->merge_count; i++)
        muc_text_add(&merges, "%s %s\n", v->pieces[v->merges[i].left].text,
                     v->pieces[v->merges[i].right].text);
    CHECK(v->count == 50257 && v->merge_count == 50000);
    CHECK_OK(ctx, muc_vocabulary_read_gpt2(
                      ctx, (muc_bytes){ (uint8_t *)vocab.data, vocab.size, "vocab.json" },
                      (muc_bytes){ (uint8_t *)merges.data, merges.size, "merges.txt" }, &two.arena,
                      &two.vocabulary));
    CHECK_EQ(two.vocabulary.eos, 50256);
    two.vocabulary.bos = v->bos; /* the two files name none */
    compile(ctx, &two);
    check_same_form(&gguf, &two);
    muc_text_free(&vocab);
    muc_text_free(&merges);
    unload(&two);
    unload(&gguf);
}

/* phi-2 has GPT-2's merges and adds pieces for runs of spaces; without these it is GPT-2 */
static void phi2_json_without_its_space_pieces_gives_gpt2_ids(void **state)
{
    loaded t = load(ctx, shared_data("tokenizers/hf-phi2-bytelevel-tokenizer.json"));

    (void)state;
    for (size_t i = 0; i < t.vocabulary.count; i++)
        if (t.vocabulary.pieces[i].type == MUR_PIECE_USER)
            t.vocabulary.pieces[i].type = MUR_PIECE_UNUSED;
    compile(ctx, &t);
    check_ggml_cases(&t, shared_data("tokenizers/ggml-vocab-gpt-2.gguf.inp"),
                     shared_data("tokenizers/ggml-vocab-gpt-2.gguf.out"));
    unload(&t);
}

static void phi2_space_pieces_are_found_longest_first(void **state)
{
    loaded t = load(ctx, shared_data("tokenizers/hf-phi2-bytelevel-tokenizer.json"));

    (void)state;
    /* 50257 is 31 spaces, and each next one a space less; Hello and " world" are GPT-2's */
    CHECK_IDS(ctx, &t, "Hello  world", 0, 15496, 50286, 6894);
    CHECK_IDS(ctx, &t, "            Hello", 0, 50276, 15496);
    CHECK_IDS(ctx, &t, "<|endoftext|>", MUR_ENCODE_SPECIAL, 50256);
    unload(&t);
}

static void control_pieces_are_plain_text_unless_asked_for(void **state)
{
    loaded t = load(ctx, shared_data("tokenizers/llama_tokenizer.model"));

    (void)state;
    CHECK_IDS(ctx, &t, "<s>Hello", MUR_ENCODE_BOS | MUR_ENCODE_SPECIAL, 1, 1, 15043);
    CHECK_IDS(ctx, &t, "<s>", MUR_ENCODE_BOS, 1, 529, 29879, 29958);
    CHECK_IDS(ctx, &t, "", MUR_ENCODE_BOS, 1);
    unload(&t);
}

/* ---- stories260K ---- */

static void stories260k_is_one_tokenizer_from_three_files(void **state)
{
    loaded bin = load(ctx, shared_data("llama/tok512.bin"));
    loaded json = load(ctx, shared_data("llama/stories260K-hf/tokenizer.json"));
    loaded gguf = load_gguf(shared_data("llama/stories260K-f32.gguf"));

    (void)state;
    check_same_form(&bin, &json);
    check_same_form(&bin, &gguf);
    unload(&gguf);
    unload(&bin);
    unload(&json);
}

static json_t *read_json(const char *path)
{
    json_t *root;
    muc_file file;

    CHECK_OK(ctx, muc_file_open(ctx, path, &file));
    CHECK_OK(ctx, muc_json_parse(ctx, file.bytes, 0, &root));
    muc_file_close(&file);
    return root;
}

static size_t read_ids(const json_t *array, uint32_t *out, size_t room)
{
    CHECK(json_array_size(array) <= room);
    for (size_t i = 0; i < json_array_size(array); i++)
        out[i] = (uint32_t)json_integer_value(json_array_get(array, i));
    return json_array_size(array);
}

static void stories260k_prompt_has_the_reference_ids(void **state)
{
    loaded t = load(ctx, shared_data("llama/tok512.bin"));
    json_t *expected = read_json(shared_data("llama/reference/expected.json"));
    const char *prompt = json_string_value(json_object_get(expected, "prompt"));
    const char *text = json_string_value(json_object_get(expected, "text"));
    uint32_t ids[64];
    size_t count;
    muc_text decoded = { 0 };

    (void)state;
    count = read_ids(json_object_get(expected, "prompt_tokens"), ids, MUC_COUNT(ids));
    check_ids(ctx, &t, prompt, strlen(prompt), MUR_ENCODE_BOS, ids, count);

    /* the reference text is the prompt and what 60 steps add, the last step's token not shown */
    count = read_ids(json_object_get(expected, "tokens"), ids, MUC_COUNT(ids));
    decode(&t, ids, count, &decoded);
    CHECK(strncmp(decoded.data, text, strlen(text)) == 0);
    muc_text_free(&decoded);
    json_decref(expected);
    unload(&t);
}

/* the recipe: split at <|endoftext|>, strip, BOS and tokens; a story of n tokens predicts n - 1 */
static void perplexity_text_has_the_reference_token_counts(void **state)
{
    static const char separator[] = "<|endoftext|>";
    loaded t = load(ctx, shared_data("llama/tok512.bin"));
    json_t *expected = read_json(shared_data("llama/reference/ppl_tinystories_sample.json"));
    const json_t *stories = json_object_get(expected, "per_story");
    muc_file file;
    const char *text, *end;
    size_t story = 0;

    (void)state;
    CHECK_OK(ctx, muc_file_open(ctx, shared_data("text/tinystories_sample.txt"), &file));
    text = (const char *)file.bytes.data;
    end = text + file.bytes.size;
    while (text < end) {
        const char *stop = memmem(text, (size_t)(end - text), separator, strlen(separator));
        const char *next = stop ? stop + strlen(separator) : end, *last = stop ? stop : end;
        size_t count;

        while (text < last && strchr(" \n\r\t", *text))
            text++;
        while (last > text && strchr(" \n\r\t", last[-1]))
            last--;
        if (last > text) {
            free(encode(ctx, &t, text, (size_t)(last - text), MUR_ENCODE_BOS, &count));
            CHECK_EQ(count - 1,
                     json_integer_value(json_array_get(json_array_get(stories, story++), 0)));
        }
        text = next;
    }
    CHECK_EQ(story, json_array_size(stories));
    muc_file_close(&file);
    json_decref(expected);
    unload(&t);
}

static void rescue_commands_and_plans_have_the_reference_ids(void **state)
{
    loaded t = load(ctx, shared_data("rescue/tokenizer.model"));
    json_t *expected = read_json(shared_data("rescue/expected.json"));
    const json_t *cases = json_object_get(expected, "first50");

    (void)state;
    CHECK_EQ(json_array_size(cases), 50);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *one = json_array_get(cases, i);
        muc_text prompt = { 0 };
        uint32_t ids[256];
        size_t count = read_ids(json_object_get(one, "ids"), ids, MUC_COUNT(ids));

        muc_text_add(&prompt, "command: %s\nplan: %s",
                     json_string_value(json_object_get(one, "command")),
                     json_string_value(json_object_get(one, "plan")));
        check_ids(ctx, &t, prompt.data, prompt.size, MUR_ENCODE_BOS, ids, count);
        muc_text_free(&prompt);
    }
    json_decref(expected);
    unload(&t);
}

/* ---- and back ---- */

static void whole_books_come_back(void **state)
{
    static const char *const tokenizers[] = { "llama/tok512.bin", "rescue/tokenizer.model",
                                              "tokenizers/llama_tokenizer.model",
                                              "tokenizers/hf-llama2-tokenizer.json",
                                              "tokenizers/hf-phi2-bytelevel-tokenizer.json" };
    static const char *const texts[] = { "text/tinystories_sample.txt", "text/tinyshakespeare.txt",
                                         "text/wikitext2-test.txt" };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(tokenizers); i++) {
        loaded t = load(ctx, shared_data(tokenizers[i]));

        for (size_t j = 0; j < MUC_COUNT(texts); j++) {
            muc_file file;

            CHECK_OK(ctx, muc_file_open(ctx, shared_data(texts[j]), &file));
            check_round_trip(ctx, &t, (const char *)file.bytes.data, file.bytes.size);
            muc_file_close(&file);
        }
        unload(&t);
    }
}

/* 337,886 and 295,877, of llama.cpp over the same file: its tool reads the "<unk>" in the text as
 * the piece, and begins Llama's tokens with BOS, not GPT-2's */
static void wikitext_has_llama_cpp_token_counts(void **state)
{
    loaded t = load(ctx, shared_data("tokenizers/llama_tokenizer.model"));
    muc_file file;
    size_t count;

    (void)state;
    CHECK_OK(ctx, muc_file_open(ctx, shared_data("text/wikitext2-test.txt"), &file));
    free(encode(ctx, &t, (const char *)file.bytes.data, file.bytes.size,
                MUR_ENCODE_BOS | MUR_ENCODE_SPECIAL, &count));
    CHECK_EQ(count, 337886);
    unload(&t);
    t = load_gguf(shared_data("tokenizers/ggml-vocab-gpt-2.gguf"));
    free(encode(ctx, &t, (const char *)file.bytes.data, file.bytes.size,
                MUR_ENCODE_BOS | MUR_ENCODE_SPECIAL, &count));
    CHECK_EQ(count, 295877);
    unload(&t);
    muc_file_close(&file);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, new_context, free_context)

static const struct CMUnitTest tests[] = {
    TEST(llama2_model_gives_llama_cpp_ids),
    TEST(llama2_json_gives_llama_cpp_ids),
    TEST(llama2_is_one_tokenizer_from_two_files),
    TEST(gpt2_gguf_gives_llama_cpp_ids),
    TEST(gpt2_of_two_files_is_the_same_tokenizer),
    TEST(phi2_json_without_its_space_pieces_gives_gpt2_ids),
    TEST(phi2_space_pieces_are_found_longest_first),
    TEST(control_pieces_are_plain_text_unless_asked_for),
    TEST(stories260k_is_one_tokenizer_from_three_files),
    TEST(stories260k_prompt_has_the_reference_ids),
    TEST(perplexity_text_has_the_reference_token_counts),
    TEST(rescue_commands_and_plans_have_the_reference_ids),
    TEST(whole_books_come_back),
    TEST(wikitext_has_llama_cpp_token_counts),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}

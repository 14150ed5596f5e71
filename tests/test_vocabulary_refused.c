/* test_vocabulary_refused.c - tokenizer files that are refused by name, or damaged. */
#include "vocabulary_files.h"

static muc_status read_and_compile(const char *name, const void *data, size_t size, loaded *t)
{
    muc_bytes file = { data, size, name };

    MUC_TRY(muc_vocabulary_read(ctx, file, 0, &t->arena, &t->vocabulary));
    return muc_tokenizer_compile(ctx, &t->vocabulary, &t->arena, &t->form, &t->bytes);
}

static void check_refused(const char *name, muc_text *file, muc_status status, const char *fragment)
{
    loaded t = { .bytes = 0 };

    CHECK_FAILS(ctx, status, fragment, read_and_compile(name, file->data, file->size, &t));
    unload(&t);
    muc_text_free(file);
}

static void other_sentencepiece_models_are_refused_by_name(void **state)
{
    static const struct {
        const char *trainer;
        size_t trainer_size;
        const char *normalizer;
        size_t normalizer_size;
        const char *fragment;
    } rows[] = {
        { "\x18\x03\x98\x02\x01", 5, KEEP_SPACES, "(word)" },
        { "\x18\x03\x98\x02\x01", 5, KEEP_SPACES, "(word)" },
        { "\x18\x02", 2, KEEP_SPACES, "no byte_fallback" },
        { BPE_TRAINER, "", 0, "remove_extra_whitespaces" },
        { BPE_TRAINER, "\x12\x01x\x20\x00", 5, "character map" },
        { BPE_TRAINER, "\x20\x00\x28\x00", 4, "escape_whitespaces" },
    };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(rows); i++) {
        muc_text file = make_sentencepiece(&greetings, rows[i].trainer, rows[i].trainer_size,
                                           rows[i].normalizer, rows[i].normalizer_size);

        check_refused("t.model", &file, MUC_UNSUPPORTED, rows[i].fragment);
    }
}

/* The file of a small vocabulary with `from` replaced by `to`. */
static muc_text altered(const char *from, const char *to)
{
    muc_text file = make_huggingface(&greetings, true), out = { 0 };
    const char *at = memmem(file.data, file.size, from, strlen(from));

    CHECK(at != NULL);
    muc_text_add_bytes(&out, file.data, (size_t)(at - file.data));
    muc_text_add(&out, "%s%s", to, at + strlen(from));
    muc_text_free(&file);
    return out;
}

static void other_json_is_refused_by_name(void **state)
{
    static const struct {
        const char *from, *to;
        muc_status status;
        const char *fragment;
    } rows[] = {
        { "\"type\":\"BPE\"", "\"type\":\"WordLevel\"", MUC_UNSUPPORTED, "model WordLevel" },
        { "\"Prepend\"", "\"Lowercase\"", MUC_UNSUPPORTED, "normalizer" },
        { "\"Fuse\"", "\"WordPiece\"", MUC_UNSUPPORTED, "decoder" },
        { "\"byte_fallback\":true", "\"byte_fallback\":false", MUC_UNSUPPORTED,
          "without byte_fallback" },
        { "\"byte_fallback\":true", "\"byte_fallback\":1", MUC_MALFORMED, "not true or false" },
        { "\"byte_fallback\":true", "\"byte_fallback\":true,\"dropout\":0.1", MUC_UNSUPPORTED,
          "dropout" },
        { "\"unk_token\":", "\"end_of_word_suffix\":\"</w>\",\"unk_token\":", MUC_UNSUPPORTED,
          "end_of_word_suffix" },
        { "{" JSON_SPACES,
          "{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\"}," JSON_SPACES,
          MUC_UNSUPPORTED, "Metaspace" },
        { "\"special\":true}]", "\"special\":true,\"single_word\":true}]", MUC_UNSUPPORTED,
          "single_word" },
        { "\"special\":true}]",
          "\"special\":true},{\"id\":300,\"content\":\"<x>\",\"normalized\":true}]",
          MUC_UNSUPPORTED, "normalized" },
        { "\"content\":\"</s>\"", "\"content\":\"<eos>\"", MUC_MALFORMED, "has the id of '</s>'" },
        { "\"h\":268", "\"h\":267", MUC_MALFORMED, "both have id 267" },
        { "\"h\":268", "\"h\":-1", MUC_MALFORMED, "the id of 'h'" },
        { "\"h\":268", "\"h\":4000000000", MUC_MALFORMED, "the id of 'h'" },
        { "[\"l\",\"l\"]", "[\"l\",\"q\"]", MUC_MALFORMED, "'l' and 'q'" },
        { "[\"l\",\"l\"]", "[\"l\",\"l\"],[\"l\",\"l\"]", MUC_MALFORMED, "listed twice" },
        { "[\"l\",\"l\"]", "[\"l\"]", MUC_MALFORMED, "neither a string nor two" },
        { "[\"l\",\"l\"]", "\"ll\"", MUC_MALFORMED, "has 0 splits" },
        { "\"ids\":[1]", "\"ids\":[1,2]", MUC_MALFORMED, "is not one piece" },
        { "{\"Sequence\":{\"id\":\"A\"}}]",
          "{\"Sequence\":{\"id\":\"A\"}},{\"SpecialToken\":{\"id\":\"</s>\"}}]", MUC_MALFORMED,
          "'</s>' is not one piece" },
        { "{\"Sequence\":{\"id\":\"A\"}}]",
          "{\"Sequence\":{\"id\":\"A\"}},{\"SpecialToken\":{\"id\":\"<s>\"}},"
          "{\"SpecialToken\":{\"id\":\"<s>\"}}]",
          MUC_UNSUPPORTED, "more than one token before or after" },
    };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(rows); i++) {
        muc_text file = altered(rows[i].from, rows[i].to);

        check_refused("t.json", &file, rows[i].status, rows[i].fragment);
    }
}

static void an_unknown_pattern_is_refused_by_name(void **state)
{
    static const char cuts[] =
        "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":"
        "\"(?<=a)b\"},\"behavior\":\"Isolated\",\"invert\":false},{\"type\":\"ByteLevel\","
        "\"add_prefix_space\":false,\"use_regex\":false}]}";
    muc_text file = make_byte_level(cuts, "", "", "");

    (void)state;
    check_refused("t.json", &file, MUC_UNSUPPORTED, "(?<=a)b");
}

static void damaged_llama2c_files_are_refused(void **state)
{
    small_vocabulary v = greetings;
    muc_text file = make_llama2c(&v);
    muc_bytes bytes = { (const uint8_t *)file.data, file.size, "t.bin" };
    loaded t = { .bytes = 0 };

    (void)state;
    CHECK_FAILS(ctx, MUC_MALFORMED, "follow the model's 270 pieces",
                muc_vocabulary_read_llama2c(ctx, bytes, 270, &t.arena, &t.vocabulary));
    CHECK_FAILS(ctx, MUC_MALFORMED, "score needs 4 bytes",
                muc_vocabulary_read_llama2c(ctx, bytes, 276, &t.arena, &t.vocabulary));
    CHECK_FAILS(ctx, MUC_MALFORMED, "expected 259 to",
                muc_vocabulary_read_llama2c(ctx, bytes, 100000, &t.arena, &t.vocabulary));
    unload(&t);
    muc_text_free(&file);
    strcpy(v.text[3], "he");
    file = make_llama2c(&v);
    check_refused("t.bin", &file, MUC_MALFORMED, "pieces 260 and 262 are both 'he'");
}

static void a_json_file_without_merges_is_refused(void **state)
{
    const char *path = shared_data("tokenizers/hf-added-tokens-tokenizer.json");
    loaded t = { .bytes = 0 };
    muc_file file;

    (void)state;
    CHECK_OK(ctx, muc_file_open(ctx, path, &file));
    CHECK_FAILS(ctx, MUC_MALFORMED, "\"merges\" not an array",
                read_and_compile(path, file.bytes.data, file.bytes.size, &t));
    unload(&t);
    muc_file_close(&file);
}

/* ---- damage ---- */

static const char sample[] = "Once upon a time\n\xc3\xa9 <s> 12 \xff";

/* Uses a form that was accepted: ids within the vocabulary, every id decodable. */
static void use_form(const uint8_t *form, size_t bytes)
{
    mur_tokenizer t;
    uint32_t ids[2 * sizeof(sample) + 2], scratch[5 * (sizeof(sample) + 1)];
    size_t count;
    const uint8_t *out;
    volatile uint8_t last = 0;

    if (mur_tokenizer_open(&t, form, bytes, mur_nfc) != MUR_OK)
        return;
    CHECK_EQ(mur_tokenizer_encode(&t, (const uint8_t *)sample, strlen(sample),
                                  MUR_ENCODE_BOS | MUR_ENCODE_SPECIAL, scratch, sizeof(scratch),
                                  ids, MUC_COUNT(ids), &count),
             MUR_OK);
    for (size_t i = 0; i < count; i++)
        CHECK(ids[i] < t.header->pieces);
    for (uint32_t id = 0; id < t.header->pieces + 2; id++) {
        size_t size = mur_tokenizer_decode(&t, id, id - 1, &out);

        if (size > 0)
            last = (uint8_t)(last + out[0] + out[size - 1]);
    }
}

/* Reads a copy of exactly this size: an error, or a tokenizer that works. */
static void read_damaged(const char *name, const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    loaded t = { .bytes = 0 };

    CHECK(copy != NULL);
    memcpy(copy, data, size);
    if (read_and_compile(name, copy, size, &t) == MUC_OK)
        use_form(t.form, t.bytes);
    else
        CHECK(muc_error_message(ctx)[0] != '\0');
    muc_error_clear(ctx);
    unload(&t);
    free(copy);
}

static void damage_everywhere(const char *name, uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        const uint8_t good = data[i];

        read_damaged(name, data, i);
        data[i] = (uint8_t)(i % 3 == 0 ? ~good : good ^ 1 << i % 8);
        read_damaged(name, data, size);
        data[i] = good;
    }
}

static void damaged_files_give_an_error_or_a_tokenizer(void **state)
{
    muc_text files[3] = { make_llama2c(&greetings),
                          make_sentencepiece(&greetings, BPE_TRAINER, KEEP_SPACES),
                          make_huggingface(&greetings, false) };
    static const char *const names[3] = { "a.bin", "a.model", "a.json" };

    (void)state;
    for (int i = 0; i < 3; i++) {
        damage_everywhere(names[i], (uint8_t *)files[i].data, files[i].size);
        muc_text_free(&files[i]);
    }
}

static void damaged_real_files_give_an_error_or_a_tokenizer(void **state)
{
    static const char *const paths[] = { "llama/tok512.bin", "rescue/tokenizer.model",
                                         "llama/stories260K-hf/tokenizer.json" };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(paths); i++) {
        const char *path = shared_data(paths[i]);
        muc_file file;
        uint8_t *copy;

        CHECK_OK(ctx, muc_file_open(ctx, path, &file));
        copy = malloc(file.bytes.size);
        CHECK(copy != NULL);
        memcpy(copy, file.bytes.data, file.bytes.size);
        damage_everywhere(path, copy, file.bytes.size);
        free(copy);
        muc_file_close(&file);
    }
}

static void damaged_forms_are_refused_or_harmless(void **state)
{
    muc_text files[2] = { make_llama2c(&greetings),
                          make_byte_level(GPT2_CUTS, "", ",\"on\":256,\"onc\":257",
                                          "\"o n\",\"on c\"") };
    static const char *const names[2] = { "a.bin", "a.json" };

    (void)state;
    for (int i = 0; i < 2; i++) {
        loaded t = load_bytes(ctx, names[i], files[i].data, files[i].size);
        uint8_t *copy = malloc(t.bytes);
        mur_tokenizer opened;

        CHECK(copy != NULL);
        memcpy(copy, t.form, t.bytes);
        CHECK_EQ(mur_tokenizer_open(&opened, copy, t.bytes, mur_nfc), MUR_OK);
        for (size_t size = 0; size < t.bytes; size++)
            CHECK_EQ(mur_tokenizer_open(&opened, copy, size, mur_nfc), MUR_E_MALFORMED);
        for (size_t at = 0; at < t.bytes; at++)
            for (unsigned value = 0; value < 256; value += at < 64 ? 1 : 37) {
                copy[at] = (uint8_t)(t.form[at] + value);
                use_form(copy, t.bytes);
                copy[at] = t.form[at];
            }
        free(copy);
        unload(&t);
        muc_text_free(&files[i]);
    }
}

static void too_little_memory_is_said_not_exceeded(void **state)
{
    muc_text file = make_llama2c(&greetings);
    loaded t = load_bytes(ctx, "a.bin", file.data, file.size);
    const uint8_t *text = (const uint8_t *)"hello hello he";
    size_t count, needed = mur_tokenizer_scratch_bytes(&t.tokenizer, 14);

    (void)state;
    for (size_t capacity = 0; capacity < 5; capacity++)
        for (size_t bytes = 0; bytes <= needed; bytes += 4) {
            uint32_t *scratch = malloc(bytes + 1), *ids = malloc(capacity * 4 + 1);
            mur_status status = mur_tokenizer_encode(&t.tokenizer, text, 14, MUR_ENCODE_BOS,
                                                     scratch, bytes, ids, capacity, &count);

            /* the longest segment, " hello", takes 7 symbols with its dummy prefix */
            CHECK_EQ(status, capacity < 4 || bytes < 7 * 20 ? MUR_E_NOFIT : MUR_OK);
            CHECK(count <= capacity);
            free(scratch);
            free(ids);
        }
    unload(&t);
    muc_text_free(&file);
}

static void every_failing_allocation_is_reported(void **state)
{
    muc_text files[3] = {
        make_llama2c(&greetings), make_sentencepiece(&greetings, BPE_TRAINER, KEEP_SPACES),
        make_byte_level(LLAMA3_CUTS, "\"ignore_merges\":true,", ",\"ab\":256", "\"a b\"")
    };
    static const char *const names[3] = { "a.bin", "a.model", "a.json" };

    (void)state;
    for (int i = 0; i < 3; i++) {
        muc_status status = MUC_NOMEM;
        long failures = 0;

        for (; status != MUC_OK; failures++) {
            loaded t = { .bytes = 0 };

            CHECK_EQ(status, MUC_NOMEM);
            muc_alloc_fail_after(failures);
            status = read_and_compile(names[i], files[i].data, files[i].size, &t);
            muc_alloc_fail_after(-1);
            muc_error_clear(ctx);
            unload(&t);
        }
        CHECK(failures > 1);
        muc_text_free(&files[i]);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, new_context, free_context)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(other_sentencepiece_models_are_refused_by_name),
        TEST(other_json_is_refused_by_name),
        TEST(an_unknown_pattern_is_refused_by_name),
        TEST(damaged_llama2c_files_are_refused),
        TEST(a_json_file_without_merges_is_refused),
        TEST(damaged_files_give_an_error_or_a_tokenizer),
        TEST(damaged_real_files_give_an_error_or_a_tokenizer),
        TEST(damaged_forms_are_refused_or_harmless),
        TEST(too_little_memory_is_said_not_exceeded),
        TEST(every_failing_allocation_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

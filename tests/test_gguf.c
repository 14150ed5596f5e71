/* GGUF files written here from the tiny model, and the small files of other projects. */
#include <math.h>

#include "base/file.h"
#include "formats/gguf/gguf.h"
#include "tiny_model.h"

#include "context_fixture.h"

static void put_string(muc_text *out, const char *text)
{
    put_u64(out, strlen(text));
    muc_text_add_bytes(out, text, strlen(text));
}

static void put_key(muc_text *out, const char *key, unsigned type)
{
    put_string(out, key);
    put_u32(out, type);
}

static void put_number(muc_text *out, const char *key, unsigned value)
{
    put_key(out, key, 4);
    put_u32(out, value);
}

static void pad(muc_text *out, unsigned alignment)
{
    while (out->size % alignment)
        muc_text_add_bytes(out, "", 1);
}

static void put_tokenizer(muc_text *out)
{
    static const char *const tokens[TINY_VOCABULARY] = { "<unk>", "<s>", "</s>", "a", "b", "ab" };

    put_key(out, "tokenizer.ggml.model", 8);
    put_string(out, "llama");
    put_key(out, "tokenizer.ggml.tokens", 9);
    put_u32(out, 8);
    put_u64(out, TINY_VOCABULARY);
    for (unsigned i = 0; i < TINY_VOCABULARY; i++)
        put_string(out, tokens[i]);
    put_key(out, "tokenizer.ggml.scores", 9);
    put_u32(out, 6);
    put_u64(out, TINY_VOCABULARY);
    for (unsigned i = 0; i < TINY_VOCABULARY; i++)
        put_f32(out, -(float)i);
    put_key(out, "tokenizer.ggml.token_type", 9);
    put_u32(out, 5);
    put_u64(out, TINY_VOCABULARY);
    for (unsigned i = 0; i < TINY_VOCABULARY; i++)
        put_u32(out, i < 3 ? 3 : 1);
    put_number(out, "tokenizer.ggml.bos_token_id", 1);
    put_number(out, "tokenizer.ggml.eos_token_id", 2);
    put_key(out, "tokenizer.ggml.add_space_prefix", 7);
    muc_text_add_bytes(out, "", 1);
}

enum { TOKENIZER_VALUES = 7, MODEL_VALUES = 10 };

static void put_model(muc_text *out, unsigned alignment)
{
    put_key(out, "general.architecture", 8);
    put_string(out, "llama");
    put_number(out, "general.alignment", alignment);
    put_number(out, "llama.embedding_length", TINY_DIM);
    put_number(out, "llama.feed_forward_length", TINY_FFN);
    put_number(out, "llama.block_count", TINY_LAYERS);
    put_number(out, "llama.attention.head_count", TINY_HEADS);
    put_number(out, "llama.attention.head_count_kv", TINY_KV_HEADS);
    put_number(out, "llama.context_length", TINY_CONTEXT);
    put_number(out, "llama.rope.dimension_count", TINY_HEAD_DIM);
    put_key(out, "llama.attention.layer_norm_rms_epsilon", 6);
    put_f32(out, 1e-5f);
}

typedef void each_tensor(muc_text *out, unsigned t, unsigned layer, unsigned alignment);

static void put_description(muc_text *out, unsigned t, unsigned layer, unsigned alignment)
{
    static uint64_t offset;
    char name[64];

    if (t == TINY_EMBED)
        offset = 0;
    snprintf(name, sizeof(name), tiny_tensors[t].gguf, layer);
    put_string(out, name);
    put_u32(out, tiny_tensors[t].columns ? 2 : 1);
    if (tiny_tensors[t].columns)
        put_u64(out, tiny_tensors[t].columns);
    put_u64(out, tiny_tensors[t].rows);
    put_u32(out, 0);
    put_u64(out, offset);
    offset += (4 * tiny_elements(t) + alignment - 1) / alignment * alignment;
}

static void put_data(muc_text *out, unsigned t, unsigned layer, unsigned alignment)
{
    for (unsigned i = 0; i < tiny_elements(t); i++)
        put_f32(out, tiny_pair_value(t, layer, i));
    pad(out, alignment);
}

static unsigned for_each_tensor(muc_text *out, bool tied, unsigned alignment, each_tensor *put)
{
    unsigned count = 0;

    for (unsigned t = 0; t < (tied ? TINY_HEAD : TINY_TENSORS); t++)
        for (unsigned layer = 0; layer < (tiny_tensors[t].per_layer ? TINY_LAYERS : 1); layer++)
            put(out, t, layer, alignment), count++;
    return count;
}

static muc_text tiny_file(unsigned version, bool tied, unsigned alignment, size_t *header)
{
    muc_text out = { 0 };

    muc_text_add(&out, "GGUF");
    put_u32(&out, version);
    put_u64(&out, TINY_LAYERS * 9 + (tied ? 2 : 3));
    put_u64(&out, MODEL_VALUES + TOKENIZER_VALUES);
    put_model(&out, alignment);
    put_tokenizer(&out);
    for_each_tensor(&out, tied, alignment, put_description);
    *header = out.size;
    pad(&out, alignment);
    for_each_tensor(&out, tied, alignment, put_data);
    return out;
}

static void tiny_files_open(void **state)
{
    (void)state;
    for (unsigned tied = 0; tied < 2; tied++) {
        size_t header;
        muc_text file = tiny_file(2 + tied, tied, tied ? 32 : 8, &header);
        const muc_stored_vocabulary *vocabulary;
        muc_checkpoint checkpoint;

        CHECK_OK(ctx, muc_checkpoint_open_bytes(ctx, bytes_of(&file, "tiny"), &checkpoint));
        assert_string_equal(checkpoint.format, "gguf");
        check_tiny(ctx, &checkpoint, tied);
        vocabulary = checkpoint.vocabulary;
        assert_non_null(vocabulary);
        assert_string_equal(vocabulary->model, "llama");
        CHECK_EQ(vocabulary->count, TINY_VOCABULARY);
        CHECK_EQ(vocabulary->tokens[5].size, 2);
        assert_memory_equal(vocabulary->tokens[5].data, "ab", 2);
        CHECK(vocabulary->scores[4] == -4);
        CHECK_EQ(vocabulary->types[2], 3);
        CHECK(vocabulary->bos == 1 && vocabulary->eos == 2 && !vocabulary->merges);
        CHECK(vocabulary->add_bos == -1 && vocabulary->add_space_prefix == 0);
        CHECK_EQ(checkpoint.config.bos, 1);
        CHECK_EQ(checkpoint.config.eos[0], 2);
        muc_checkpoint_close(&checkpoint);
        muc_text_free(&file);
    }
}

static void damage_is_told_or_harmless(void **state)
{
    size_t header;
    muc_text file = tiny_file(3, true, 8, &header);

    (void)state;
    check_damage(ctx, "damaged", &file, header);
    muc_text_free(&file);
}

/* A container of the given values and one descriptor "t", dims 4, of a type, with its data. */
static muc_text container(const muc_text *values, unsigned count, unsigned type, unsigned elements,
                          const void *data, size_t size)
{
    muc_text out = { 0 };

    muc_text_add(&out, "GGUF");
    put_u32(&out, 3);
    put_u64(&out, 1);
    put_u64(&out, count);
    muc_text_add_bytes(&out, values->data, values->size);
    put_string(&out, "t");
    put_u32(&out, 1);
    put_u64(&out, elements);
    put_u32(&out, type);
    put_u64(&out, 0);
    pad(&out, 32);
    muc_text_add_bytes(&out, data, size);
    return out;
}

static void check_parse_fails(muc_text *values, unsigned count, unsigned type, muc_status status,
                              const char *fragment)
{
    static const uint8_t data[256];
    muc_text file = container(values, count, type, 4, data, 16);
    muc_arena arena = { 0 };
    muc_gguf gguf;

    CHECK_FAILS(ctx, status, fragment, muc_gguf_parse(ctx, bytes_of(&file, "bad"), &arena, &gguf));
    muc_arena_free(&arena);
    muc_text_free(&file);
    muc_text_free(values);
}

static void messages_say_what_is_wrong(void **state)
{
    muc_text values = { 0 };

    (void)state;
    put_number(&values, "general.alignment", 24);
    check_parse_fails(&values, 1, 0, MUC_MALFORMED,
                      "'general.alignment' is not a u32 power of two");
    put_number(&values, "twice", 1);
    put_number(&values, "twice", 1);
    check_parse_fails(&values, 2, 0, MUC_MALFORMED, "the key 'twice' appears twice");
    put_key(&values, "nested", 9);
    put_u32(&values, 9);
    put_u64(&values, 0);
    check_parse_fails(&values, 1, 0, MUC_MALFORMED, "'nested' is an array of type 9");
    put_key(&values, "flag", 7);
    muc_text_add_bytes(&values, "\2", 1);
    check_parse_fails(&values, 1, 0, MUC_MALFORMED, "'flag': a bool is 2");
    put_key(&values, "long", 8);
    put_u64(&values, 1 << 20);
    check_parse_fails(&values, 1, 0, MUC_MALFORMED, "long is a string of 1048576 bytes");
    put_key(&values, "many", 9);
    put_u32(&values, 4);
    put_u64(&values, UINT64_C(1) << 62);
    check_parse_fails(&values, 1, 0, MUC_MALFORMED, "many needs 18446744073709551615 bytes");
    put_key(&values, "odd", 13);
    check_parse_fails(&values, 1, 0, MUC_MALFORMED, "'odd' has unknown value type 13");
    check_parse_fails(&values, 0, 12, MUC_MALFORMED, "not a multiple of 256");
    check_parse_fails(&values, 0, 16, MUC_UNSUPPORTED, "tensor 't' has type IQ2_XXS");
    check_parse_fails(&values, 0, 99, MUC_MALFORMED, "tensor 't' has unknown type 99");
    check_parse_fails(&values, 0, 42, MUC_UNSUPPORTED, "tensor 't' has type Q2_0, which is not");
    check_parse_fails(&values, 0, 8, MUC_MALFORMED, "not a multiple of 32");
    check_parse_fails(&values, 0, 28, MUC_MALFORMED, "tensor 't' of 32 bytes ends beyond");
    check_parse_fails(&values, 0, 1, MUC_MALFORMED, "the data ends here");
    check_parse_fails(&values, 9999, 0, MUC_MALFORMED, "9999 metadata values in a file of");
}

/* expected values from the format's definition: scale 0.5, q as written */
static void blocks_become_floats(void **state)
{
    muc_text none = { 0 };
    uint8_t q8[68] = { 0 }, q4[18] = { 0x00, 0x38 };
    muc_arena arena = { 0 };
    float values[64];
    muc_text file;
    muc_gguf gguf;

    (void)state;
    for (unsigned block = 0; block < 2; block++) {
        q8[34 * block + 1] = block ? 0x40 : 0x38; /* 2.0 and 0.5 */
        for (unsigned i = 0; i < 32; i++)
            q8[34 * block + 2 + i] = (uint8_t)(i * 8 + block - 128);
    }
    file = container(&none, 0, 8, 64, q8, sizeof(q8));
    CHECK_OK(ctx, muc_gguf_parse(ctx, bytes_of(&file, "q8"), &arena, &gguf));
    CHECK_OK(ctx, muc_tensor_to_f32(ctx, &gguf.tensors[0], 0, 64, values));
    for (int i = 0; i < 32; i++) {
        CHECK(values[i] == 0.5f * (float)(8 * i - 128));
        CHECK(values[32 + i] == 2.0f * (float)(8 * i - 127));
    }
    CHECK_OK(ctx, muc_tensor_to_f32(ctx, &gguf.tensors[0], 31, 2, values));
    CHECK(values[0] == 60 && values[1] == -254);
    muc_text_free(&file);
    for (unsigned i = 0; i < 16; i++)
        q4[2 + i] = (uint8_t)((15 - i) << 4 | i);
    file = container(&none, 0, 2, 32, q4, sizeof(q4));
    CHECK_OK(ctx, muc_gguf_parse(ctx, bytes_of(&file, "q4"), &arena, &gguf));
    CHECK_OK(ctx, muc_tensor_to_f32(ctx, &gguf.tensors[0], 0, 32, values));
    for (int i = 0; i < 16; i++) {
        CHECK(values[i] == 0.5f * (float)(i - 8));
        CHECK(values[16 + i] == 0.5f * (float)(7 - i));
    }
    muc_text_free(&file);
    muc_arena_free(&arena);
}

/* FNV-1a of the floats' bits; every NaN counts as one */
static uint32_t checksum_of(const float *values, size_t count)
{
    uint32_t sum = UINT32_C(0x811c9dc5);

    for (size_t i = 0; i < count; i++) {
        uint32_t bits = isnan(values[i]) ? UINT32_C(0x7fc00000) : muc_f32_bits(values[i]);

        for (unsigned shift = 0; shift < 32; shift += 8)
            sum = (sum ^ (bits >> shift & 255)) * UINT32_C(16777619);
    }
    return sum;
}

/* 64 blocks that ggml also decoded, in one call and in calls of 37 elements */
static void check_blocks(uint32_t number, muc_dtype dtype, uint32_t expected)
{
    const muc_dtype_info *info = muc_dtype_get(dtype);
    uint32_t elements = 64 * info->block_elements, state = number;
    float *values = malloc(elements * sizeof(*values));
    uint8_t *data = malloc(64 * (size_t)info->block_bytes);

    assert_true(values && data);
    for (size_t i = 0; i < 64 * (size_t)info->block_bytes; i++) {
        state = state * 1664525 + 1013904223;
        data[i] = (uint8_t)(state >> 24);
    }
    CHECK(muc_dtype_to_f32(dtype, data, 0, elements, values));
    CHECK_EQ(checksum_of(values, elements), expected);
    memset(values, 0, elements * sizeof(*values));
    for (uint32_t i = 0; i < elements; i += 37)
        CHECK(muc_dtype_to_f32(dtype, data, i, elements - i < 37 ? elements - i : 37, values + i));
    CHECK_EQ(checksum_of(values, elements), expected);
    free(values);
    free(data);
}

static void every_block_type_is_what_ggml_makes_of_it(void **state)
{
    (void)state;
#define GGML_BLOCKS(number, type, checksum) check_blocks(number, MUC_##type, checksum);
#include "ggml_blocks.def"
#undef GGML_BLOCKS
}

static void a_tokenizer_is_held_to_its_vocabulary(void **state)
{
    size_t header;
    muc_text file = tiny_file(3, true, 32, &header);
    char *bos = memmem(file.data, file.size, "bos_token_id", 12);
    muc_checkpoint checkpoint;

    (void)state;
    assert_non_null(bos);
    bos[12 + 4] = TINY_VOCABULARY;
    CHECK_FAILS(ctx, MUC_MALFORMED, "'tokenizer.ggml.bos_token_id': the vocabulary has no token 6",
                muc_checkpoint_open_bytes(ctx, bytes_of(&file, "tiny"), &checkpoint));
    muc_text_free(&file);
}

/* Their writer repeats a key; with that mended, the tensors are where it put them. */
static void iree_files_are_refused_for_their_twin_key_alone(void **state)
{
    static const char *const names[] = { "fixtures/iree_empty.gguf", "fixtures/iree_single.gguf",
                                         "fixtures/iree_single_v2.gguf",
                                         "fixtures/iree_multiple.gguf" };
    static const size_t counts[] = { 0, 1, 1, 3 };

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        muc_arena arena = { 0 };
        muc_text text = { 0 };
        muc_file file;
        muc_gguf gguf;

        CHECK_OK(ctx, muc_file_open(ctx, shared_data(names[i]), &file));
        CHECK_FAILS(ctx, MUC_MALFORMED, "the key 'general.architecture' appears twice",
                    muc_gguf_parse(ctx, file.bytes, &arena, &gguf));
        muc_text_add_bytes(&text, file.bytes.data, file.bytes.size);
        text.data[32] = 'G';
        CHECK_OK(ctx, muc_gguf_parse(ctx, bytes_of(&text, "mended"), &arena, &gguf));
        CHECK_EQ(gguf.tensor_count, counts[i]);
        if (i == 3) {
            CHECK_EQ(gguf.tensors[2].rank, 2);
            CHECK_EQ(gguf.tensors[2].dims[0], 4);
            CHECK_EQ(gguf.tensors[2].dims[1], 3);
        }
        muc_text_free(&text);
        muc_file_close(&file);
        muc_arena_free(&arena);
    }
}

static void published_vocabularies_are_read(void **state)
{
    muc_arena arena = { 0 };
    const muc_stored_vocabulary *vocabulary;
    muc_file spm, bpe;
    muc_gguf gguf;

    (void)state;
    CHECK_OK(ctx, muc_file_open(ctx, shared_data("tokenizers/ggml-vocab-llama-spm.gguf"), &spm));
    CHECK_OK(ctx, muc_gguf_parse(ctx, spm.bytes, &arena, &gguf));
    CHECK_OK(ctx, muc_gguf_vocabulary(&gguf, &vocabulary));
    CHECK_EQ(vocabulary->count, 32000);
    CHECK(vocabulary->scores && vocabulary->types && !vocabulary->merges);
    CHECK_EQ(vocabulary->types[3], 6);
    CHECK_OK(ctx, muc_file_open(ctx, shared_data("tokenizers/ggml-vocab-gpt-2.gguf"), &bpe));
    CHECK_OK(ctx, muc_gguf_parse(ctx, bpe.bytes, &arena, &gguf));
    CHECK_OK(ctx, muc_gguf_vocabulary(&gguf, &vocabulary));
    CHECK_EQ(vocabulary->count, 50257);
    CHECK_EQ(vocabulary->merge_count, 50000);
    assert_string_equal(vocabulary->pre, "gpt-2");
    CHECK_EQ(vocabulary->add_bos, -1);
    muc_arena_free(&arena);
    muc_file_close(&spm);
    muc_file_close(&bpe);
}

static void the_trained_file_is_cut_and_flipped_without_harm(void **state)
{
    enum { HEADER = 14118 };
    muc_file file;
    uint8_t *copy;

    (void)state;
    CHECK_OK(ctx, muc_file_open(ctx, shared_data("llama/stories260K-f32.gguf"), &file));
    copy = malloc(file.bytes.size);
    assert_non_null(copy);
    memcpy(copy, file.bytes.data, file.bytes.size);
    for (size_t size = 0; size < file.bytes.size; size += size <= HEADER ? 1 : 49999) {
        muc_checkpoint checkpoint;
        muc_bytes bytes = { copy, size, "cut" };

        CHECK(muc_checkpoint_open_bytes(ctx, bytes, &checkpoint) != MUC_OK);
        muc_error_clear(ctx);
    }
    for (size_t i = 0; i < HEADER; i++) {
        muc_checkpoint checkpoint;
        muc_bytes bytes = { copy, file.bytes.size, "flipped" };

        copy[i] ^= 0x55;
        if (muc_checkpoint_open_bytes(ctx, bytes, &checkpoint) == MUC_OK)
            muc_checkpoint_close(&checkpoint);
        muc_error_clear(ctx);
        copy[i] ^= 0x55;
    }
    free(copy);
    muc_file_close(&file);
}

static void every_failed_allocation_is_told(void **state)
{
    size_t header;
    muc_text file = tiny_file(3, false, 32, &header);

    (void)state;
    check_failed_allocations(ctx, "tiny", &file);
    muc_text_free(&file);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, new_context, free_context)
    const struct CMUnitTest tests[] = {
        T(tiny_files_open),
        T(damage_is_told_or_harmless),
        T(messages_say_what_is_wrong),
        T(blocks_become_floats),
        T(every_block_type_is_what_ggml_makes_of_it),
        T(a_tokenizer_is_held_to_its_vocabulary),
        T(iree_files_are_refused_for_their_twin_key_alone),
        T(published_vocabularies_are_read),
        T(the_trained_file_is_cut_and_flipped_without_harm),
        T(every_failed_allocation_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

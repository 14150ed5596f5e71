/* Hugging Face folders written here from the tiny model: safetensors, config.json, shards. */
#include <dirent.h>

#include "base/file.h"
#include "formats/hf/hf_config.h"
#include "formats/hf/safetensors.h"
#include "tiny_model.h"

static muc_context *ctx;
static char folder[] = "/tmp/muc_test_XXXXXX";

static int setup(void **state)
{
    (void)state;
    ctx = muc_context_new(1);
    memset(folder + sizeof(folder) - 7, 'X', 6);
    return ctx && mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
    DIR *dir = opendir(folder);

    (void)state;
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(folder);
    muc_context_free(ctx);
    return 0;
}

static const char *path_in(const char *name)
{
    static char path[128];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void put_file(const char *name, const void *data, size_t size)
{
    FILE *file = fopen(path_in(name), "wb");

    assert_non_null(file);
    CHECK_EQ(fwrite(data, 1, size, file), size);
    CHECK_EQ(fclose(file), 0);
}

static void put_text_file(const char *name, const char *text)
{
    put_file(name, text, strlen(text));
}

/* --- config.json ------------------------------------------------------------------------- */

#define SIZES \
    "\"hidden_size\":8,\"intermediate_size\":12,\"num_hidden_layers\":2," \
    "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"vocab_size\":6," \
    "\"max_position_embeddings\":10"
#define NAMED(architecture, type, rest) \
    "{\"architectures\":[\"" architecture "\"],\"model_type\":\"" type "\"," SIZES rest "}"
#define LLAMA(rest) NAMED("LlamaForCausalLM", "llama", rest)
#define LLAMA4(rest) NAMED("Llama4ForCausalLM", "llama4_text", ",\"intermediate_size_mlp\":12" rest)

static muc_status read_config(const char *text, muc_checkpoint *checkpoint)
{
    muc_bytes bytes = { (const uint8_t *)text, strlen(text), "config.json" };

    muc_status status;

    memset(checkpoint, 0, sizeof(*checkpoint));
    status = muc_hf_read_config(ctx, bytes, checkpoint);
    muc_arena_free(&checkpoint->arena); /* what tests look at lies in the configuration itself */
    checkpoint->config.layer_views = NULL;
    checkpoint->config.layer_sizes = NULL;
    return status;
}

static void defaults_are_those_of_the_architecture(void **state)
{
    muc_checkpoint checkpoint;
    const muc_model_config *config = &checkpoint.config;

    (void)state;
    CHECK_OK(ctx, read_config(LLAMA(""), &checkpoint));
    CHECK_EQ(config->head_dim, 4);
    CHECK(config->rope_theta == 10000 && config->norm_epsilon == 1e-6);
    CHECK(!config->tied && !config->has_bos && config->eos_count == 0);
    CHECK(!config->qkv_bias && !config->output_bias && !config->head_norm);
    CHECK_OK(ctx, read_config(LLAMA(",\"attention_bias\":true"), &checkpoint));
    CHECK(config->qkv_bias && config->output_bias);
    CHECK_OK(ctx,
             read_config(NAMED("Qwen2ForCausalLM", "qwen2", ",\"sliding_window\":4"), &checkpoint));
    CHECK(config->qkv_bias && !config->output_bias);
    CHECK_OK(ctx, read_config(NAMED("Qwen3ForCausalLM", "qwen3", ",\"head_dim\":16"), &checkpoint));
    CHECK(config->head_norm && config->head_dim == 16 && !config->qkv_bias);
    CHECK_OK(ctx, read_config(NAMED("Qwen3ForCausalLM", "qwen3", ""), &checkpoint));
    CHECK_EQ(config->head_dim, 128);
    CHECK_OK(ctx, read_config(NAMED("MistralForCausalLM", "mistral", ",\"sliding_window\":null"),
                              &checkpoint));
    CHECK_OK(ctx, read_config(NAMED("MobileLLMForCausalLM", "mobilellm",
                                    ",\"layer_sharing\":false,\"share_embedding\":true"),
                              &checkpoint));
    CHECK_EQ(config->family, MUC_FAMILY_MOBILELLM);
    CHECK_OK(ctx,
             read_config("{\"model_type\":\"llama\",\"hidden_size\":8,\"intermediate_size\":12,"
                         "\"num_hidden_layers\":2,\"num_attention_heads\":2,"
                         "\"num_key_value_heads\":null,\"vocab_size\":6,"
                         "\"max_position_embeddings\":10}",
                         &checkpoint));
    CHECK_EQ(config->kv_heads, 2);
    CHECK_OK(ctx, read_config(NAMED("SmolLM3ForCausalLM", "smollm3", ""), &checkpoint));
    CHECK(config->rope_theta == 2e6 && config->norm_epsilon == 1e-6);
    CHECK_OK(ctx, read_config(NAMED("Gemma3ForCausalLM", "gemma3_text", ""), &checkpoint));
    CHECK(config->rope_theta == 1e6 && config->rope_local_theta == 10000);
    CHECK_OK(ctx, read_config(NAMED("Olmo2ForCausalLM", "olmo2", ""), &checkpoint));
    CHECK(config->rope_theta == 10000 && config->norm_epsilon == 1e-5);
    CHECK_OK(ctx, read_config(NAMED("BitNetForCausalLM", "bitnet", ""), &checkpoint));
    CHECK(config->rope_theta == 5e5 && config->norm_epsilon == 1e-5);
}

static void tokens_and_rope_are_read(void **state)
{
    muc_checkpoint checkpoint;
    const muc_model_config *config = &checkpoint.config;

    (void)state;
    CHECK_OK(ctx, read_config(LLAMA(",\"bos_token_id\":1,\"eos_token_id\":[2,4,5]"), &checkpoint));
    CHECK(config->has_bos && config->bos == 1);
    CHECK(config->eos_count == 3 && config->eos[0] == 2 && config->eos[2] == 5);
    CHECK_OK(ctx,
             read_config(LLAMA(",\"rope_theta\":5e5,\"rope_scaling\":{\"rope_type\":\"llama3\","
                               "\"factor\":32.0,\"low_freq_factor\":1.0,"
                               "\"high_freq_factor\":4.0,"
                               "\"original_max_position_embeddings\":8192}"),
                         &checkpoint));
    CHECK_EQ(config->rope_kind, MUC_ROPE_LLAMA3);
    CHECK(config->rope_theta == 5e5 && config->rope_factor == 32 && config->rope_low_factor == 1);
    CHECK(config->rope_high_factor == 4 && config->rope_original_context == 8192);
    CHECK_OK(ctx, read_config(LLAMA(",\"rope_parameters\":{\"rope_type\":\"default\","
                                    "\"rope_theta\":20000}"),
                              &checkpoint));
    CHECK(config->rope_kind == MUC_ROPE_PLAIN && config->rope_theta == 20000);
}

static void other_graphs_are_refused_by_name(void **state)
{
    static const struct {
        const char *config, *fragment;
    } cases[] = {
        { NAMED("BloomForCausalLM", "bloom", ""), "architecture 'BloomForCausalLM' of model" },
        { NAMED("LlamaForCausalLM", "mistral", ""), "'LlamaForCausalLM' of model type 'mistral'" },
        { LLAMA(",\"sliding_window\":4"), "\"sliding_window\" of 4 in a context of 10" },
        { LLAMA(",\"sliding_window\":4,"
                "\"layer_types\":[\"full_attention\",\"sliding_attention\"]"),
          "layer 1 sees a window of 4: a LlamaForCausalLM has none" },
        { NAMED("Qwen3ForCausalLM", "qwen3",
                ",\"layer_types\":[\"full_attention\",\"chunked_attention\"]"),
          "layer 1 is of type 'chunked_attention'" },
        { NAMED("Qwen3ForCausalLM", "qwen3",
                ",\"layer_types\":[\"full_attention\",\"sliding_attention\"],"
                "\"sliding_window\":null,\"use_sliding_window\":true"),
          "layer 1 sees a window" },
        { NAMED("MistralForCausalLM", "mistral", ",\"attention_bias\":true"), "attention_bias" },
        { LLAMA(",\"num_local_experts\":8"), "a mixture of experts" },
        { NAMED("Qwen3MoeForCausalLM", "qwen3_moe", ",\"num_experts\":8"),
          "a mixture of experts (\"num_experts\": 8)" },
        { LLAMA(",\"hidden_act\":\"mish\""), "there is no hidden_act 'mish'" },
        { LLAMA(",\"partial_rotary_factor\":1.5"), "RoPE of a share of 1.5 of a head" },
        { LLAMA(",\"quantization_config\":{}"), "quantization_config" },
        { LLAMA(",\"rope_scaling\":{\"type\":\"mrope\",\"factor\":2.0}"),
          "RoPE scaling of type 'mrope'" },
        { LLAMA4(",\"attention_chunk_size\":9,"
                 "\"layer_types\":[\"chunked_attention\",\"full_attention\"]"),
          "layer 0 sees chunks of 9 in a context of 10" },
        { LLAMA4(",\"floor_scale\":10,\"no_rope_layers\":[1,0,1]"),
          "\"attn_temperature_tuning\" from position 10 on in a context of 10" },
        { LLAMA4(",\"num_local_experts\":16"), "a mixture of experts" },
        { LLAMA(",\"rope_scaling\":{\"factor\":2.0}"), "RoPE scaling of type 'not named'" },
        { NAMED(
              "Gemma3ForCausalLM", "gemma3_text",
              ",\"head_dim\":4,\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"default\"},"
              "\"sliding_attention\":{\"rope_type\":\"linear\",\"factor\":2.0}}"),
          "RoPE scaling of type 'linear' in layers with windows" },
        { LLAMA(",\"eos_token_id\":[1,2,3,4,5,1,2,3,4]"), "lists 9 tokens, at most 8" },
    };
    static const struct {
        const char *config, *fragment;
    } malformed[] = {
        { "[]", "expected a JSON object" },
        { "{}", "names the architecture" },
        { "{\"model_type\":\"llama\"}", "\"hidden_size\" is missing" },
        { NAMED("GPT2LMHeadModel", "gpt2", ""), "\"n_embd\" is missing" },
        { LLAMA(",\"head_dim\":\"4\""), "\"head_dim\" is not an integer" },
        { LLAMA(",\"bos_token_id\":-1"), "\"bos_token_id\" is not a token id" },
        { LLAMA(",\"vocab_size\":7"), "duplicate" },
        { LLAMA(",\"rope_scaling\":2"), "\"rope_scaling\" is not an object" },
        { LLAMA(",\"rope_scaling\":{\"type\":\"longrope\",\"factor\":2.0,\"long_factor\":[1]}"),
          "\"long_factor\" has 1 factors for 2 frequencies" },
        { NAMED("SmolLM3ForCausalLM", "smollm3", ",\"no_rope_layers\":[1,\"0\"]"),
          "\"no_rope_layers\" of layer 1 is neither a number nor" },
        { NAMED("GraniteForCausalLM", "granite", ",\"logits_scaling\":0"),
          "\"logits_scaling\" is 0" },
        { LLAMA4(",\"no_rope_layers\":[1]"), "\"no_rope_layers\" has 1 elements for 2 layers" },
    };
    muc_checkpoint checkpoint;

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(cases); i++)
        CHECK_FAILS(ctx, MUC_UNSUPPORTED, cases[i].fragment,
                    read_config(cases[i].config, &checkpoint));
    for (size_t i = 0; i < MUC_COUNT(malformed); i++)
        CHECK_FAILS(ctx, MUC_MALFORMED, malformed[i].fragment,
                    read_config(malformed[i].config, &checkpoint));
}

/* --- safetensors -------------------------------------------------------------------------- */

static muc_text safetensors(const char *header, size_t data_bytes)
{
    muc_text out = { 0 };

    put_u64(&out, strlen(header));
    muc_text_add(&out, "%s", header);
    for (size_t i = 0; i < data_bytes; i++)
        muc_text_add_bytes(&out, "", 1);
    return out;
}

static void a_file_is_held_to_its_header(void **state)
{
    static const struct {
        const char *header;
        size_t data;
        muc_status status;
        const char *fragment; /* NULL: the file is right */
    } cases[] = {
        { "{}", 0, MUC_OK, NULL },
        { "{\"__metadata__\":{\"format\":\"pt\"}}   ", 0, MUC_OK, NULL },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, MUC_OK, NULL },
        { "{\"b\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[2,10]},"
          "\"e\":{\"dtype\":\"F32\",\"shape\":[3,0],\"data_offsets\":[2,2]},"
          "\"a\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[0,2]}}",
          10, MUC_OK, NULL },
        { " {}", 0, MUC_MALFORMED, "offset 8: the header does not begin with '{'" },
        { "{]", 0, MUC_MALFORMED, "JSON" },
        { "{}x", 0, MUC_MALFORMED, "JSON" },
        { "{}", 1, MUC_MALFORMED, "offset 10: the tensors end here, the file at 11" },
        { "{\"__metadata__\":{\"n\":1}}", 0, MUC_MALFORMED, "\"n\" is not a string" },
        { "{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
          MUC_UNSUPPORTED, "tensor 'a' has unknown dtype 'F8_E4M3'" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
          "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
          4, MUC_MALFORMED, "duplicate object key near '\"a\"'" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, MUC_MALFORMED,
          "tensor 'a' has 4 bytes, its shape and type ask for 8" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 3, MUC_MALFORMED,
          "tensor 'a' lies at 0..4 of 3 bytes of data" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, MUC_MALFORMED,
          "tensor 'a' lies at 4..0" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, MUC_MALFORMED,
          "tensor 'a' follows a hole" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
          "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
          4, MUC_MALFORMED, "tensor 'b' overlaps another" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
          MUC_MALFORMED, "tensor 'a': the shape overflows" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1],\"data_offsets\":[0,4]}}", 4,
          MUC_UNSUPPORTED, "\"shape\" has 5 entries, at most 4" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, MUC_MALFORMED,
          "entry 0 of \"shape\" is not a size" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, MUC_MALFORMED,
          "\"data_offsets\" has 1 entries" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, MUC_MALFORMED,
          "tensor 'a' is not an object" },
        { "{\"a\":7}", 4, MUC_MALFORMED, "tensor 'a' is not an object" },
    };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(cases); i++) {
        muc_text file = safetensors(cases[i].header, cases[i].data);
        muc_checkpoint checkpoint = { 0 };
        muc_status status = muc_safetensors_read(ctx, bytes_of(&file, "st"), &checkpoint);

        if (cases[i].fragment)
            CHECK_FAILS(ctx, cases[i].status, cases[i].fragment, status);
        else
            CHECK_OK(ctx, status);
        muc_checkpoint_close(&checkpoint);
        muc_text_free(&file);
    }
}

static void files_of_other_projects_are_read(void **state)
{
    static const struct {
        const char *path;
        size_t tensors;
        uint32_t rank;
    } files[] = {
        { "fixtures/iree_empty.safetensors", 0, 0 },
        { "fixtures/iree_single.safetensors", 1, 2 },
        { "fixtures/iree_multiple.safetensors", 3, 2 },
        { "fixtures/swift_3d_f32.safetensors", 1, 3 },
        { "fixtures/test_mistral_mini.safetensors", 16, 2 },
    };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(files); i++) {
        muc_checkpoint checkpoint = { 0 };
        muc_file file;

        CHECK_OK(ctx, muc_file_open(ctx, shared_data(files[i].path), &file));
        CHECK_OK(ctx, muc_safetensors_read(ctx, file.bytes, &checkpoint));
        CHECK_EQ(checkpoint.tensor_count, files[i].tensors);
        if (files[i].tensors)
            CHECK_EQ(checkpoint.tensors[0].rank, files[i].rank);
        muc_checkpoint_close(&checkpoint);
        muc_file_close(&file);
    }
}

/* --- folders -------------------------------------------------------------------------------- */

typedef struct weights {
    muc_text header, data;
} weights;

static void put_tensor(weights *w, unsigned t, unsigned layer, const char *dtype)
{
    size_t begin = w->data.size;
    char name[64];

    for (unsigned i = 0; i < tiny_elements(t); i++) {
        float value = tiny_value(t, layer, i);
        uint16_t half = strcmp(dtype, "F16") == 0 ? muc_f16_of_f32(value)
                                                  : (uint16_t)(muc_f32_bits(value) >> 16);

        if (strcmp(dtype, "F32") == 0)
            put_f32(&w->data, value);
        else
            muc_text_add_bytes(&w->data, &half, 2);
    }
    snprintf(name, sizeof(name), tiny_tensors[t].hf, layer);
    muc_text_add(&w->header, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%u", w->header.size ? "," : "",
                 name, dtype, tiny_tensors[t].rows);
    if (tiny_tensors[t].columns)
        muc_text_add(&w->header, ",%u", tiny_tensors[t].columns);
    muc_text_add(&w->header, "],\"data_offsets\":[%zu,%zu]}", begin, w->data.size);
}

/* Tensors first..end-1 of the tiny model. */
static void put_tensors(weights *w, unsigned first, unsigned end, const char *dtype)
{
    for (unsigned t = first; t < end; t++)
        for (unsigned layer = 0; layer < (tiny_tensors[t].per_layer ? TINY_LAYERS : 1); layer++)
            put_tensor(w, t, layer, dtype);
}

static muc_text finish(weights *w)
{
    muc_text out = { 0 };

    put_u64(&out, w->header.size + 2);
    muc_text_add(&out, "{%s}", w->header.data);
    muc_text_add_bytes(&out, w->data.data, w->data.size);
    muc_text_free(&w->header);
    muc_text_free(&w->data);
    return out;
}

static void put_weights(const char *name, weights *w)
{
    muc_text file = finish(w);

    put_file(name, file.data, file.size);
    muc_text_free(&file);
}

static void every_float_type_gives_the_same_model(void **state)
{
    static const char *const dtypes[] = { "F32", "F16", "BF16" };

    (void)state;
    for (unsigned i = 0; i < MUC_COUNT(dtypes); i++) {
        for (unsigned tied = 0; tied < 2; tied++) {
            muc_checkpoint checkpoint;
            weights w = { 0 };

            put_tensors(&w, 0, tied ? TINY_HEAD : TINY_TENSORS, dtypes[i]);
            put_weights("model.safetensors", &w);
            put_text_file("config.json", LLAMA(""));
            CHECK_OK(ctx, muc_checkpoint_open(ctx, folder, &checkpoint));
            check_tiny(ctx, &checkpoint, tied);
            CHECK(checkpoint.tokenizer_path == NULL);
            muc_checkpoint_close(&checkpoint);
        }
    }
}

static void the_tokenizer_is_found(void **state)
{
    muc_checkpoint checkpoint;
    weights w = { 0 };

    (void)state;
    put_tensors(&w, 0, TINY_HEAD, "F32");
    put_weights("model.safetensors", &w);
    put_text_file("config.json", LLAMA(""));
    put_text_file("tokenizer.model", "");
    CHECK_OK(ctx, muc_checkpoint_open(ctx, path_in("model.safetensors"), &checkpoint));
    assert_string_equal(checkpoint.tokenizer_path, path_in("tokenizer.model"));
    muc_checkpoint_close(&checkpoint);
    put_text_file("tokenizer.json", "");
    CHECK_OK(ctx, muc_checkpoint_open(ctx, folder, &checkpoint));
    assert_string_equal(checkpoint.tokenizer_path, path_in("tokenizer.json"));
    muc_checkpoint_close(&checkpoint);
}

static void put_model_with_head(unsigned head_of)
{
    weights w = { 0 };
    char *name;

    put_tensors(&w, 0, TINY_HEAD, "F32");
    put_tensor(&w, head_of, 0, "F32");
    name = strstr(w.header.data + 20, head_of == TINY_EMBED ? "model.embed" : "lm_head");
    if (head_of == TINY_EMBED) { /* the embedding's floats again, under the head's name */
        char *colon = strchr(name, ':');

        memmove(name + strlen("lm_head.weight\""), colon, strlen(colon) + 1);
        memcpy(name, "lm_head.weight\"", strlen("lm_head.weight\""));
        w.header.size = strlen(w.header.data);
    }
    put_weights("model.safetensors", &w);
}

static void a_tied_head_repeats_the_embedding_or_is_refused(void **state)
{
    muc_checkpoint checkpoint;

    (void)state;
    put_text_file("config.json", LLAMA(",\"tie_word_embeddings\":true"));
    put_model_with_head(TINY_EMBED);
    CHECK_OK(ctx, muc_checkpoint_open(ctx, folder, &checkpoint));
    check_tiny(ctx, &checkpoint, true);
    muc_checkpoint_close(&checkpoint);
    put_model_with_head(TINY_HEAD);
    CHECK_FAILS(ctx, MUC_MALFORMED, "the model is tied, but 'lm_head.weight' is not its embedding",
                muc_checkpoint_open(ctx, folder, &checkpoint));
}

/* Replaces the first occurrence of from, of the same length, in a file's text. */
static void edit(muc_text *file, const char *from, const char *to)
{
    char *at = memmem(file->data, file->size, from, strlen(from));

    assert_non_null(at);
    CHECK_EQ(strlen(from), strlen(to));
    memcpy(at, to, strlen(to));
}

static void shapes_are_held_to_the_configuration(void **state)
{
    static const struct {
        const char *from, *to;
        muc_status status;
        const char *fragment;
    } cases[] = {
        { "[12,8]", "[8,12]", MUC_MALFORMED, "expected rank 2 and 12, 8" },
        { "\"model.norm.weight", "\"model.form.weight", MUC_MALFORMED,
          "tensor 'model.norm.weight' is missing" },
        { "\"F32\",\"shape\":[6,8]", "\"I32\",\"shape\":[6,8]", MUC_UNSUPPORTED,
          "tensor 'model.embed_tokens.weight' has type i32, expected floats" },
        { "\"shape\":[8]", "\"shape\":[4]", MUC_MALFORMED, "ask for 16" },
    };

    (void)state;
    put_text_file("config.json", LLAMA(""));
    for (size_t i = 0; i < MUC_COUNT(cases); i++) {
        muc_checkpoint checkpoint;
        weights w = { 0 };
        muc_text file;

        put_tensors(&w, 0, TINY_HEAD, "F32");
        file = finish(&w);
        edit(&file, cases[i].from, cases[i].to);
        put_file("model.safetensors", file.data, file.size);
        CHECK_FAILS(ctx, cases[i].status, cases[i].fragment,
                    muc_checkpoint_open(ctx, folder, &checkpoint));
        muc_text_free(&file);
    }
}

static void tensors_without_a_place_are_refused(void **state)
{
    muc_checkpoint checkpoint;
    weights w = { 0 };

    (void)state;
    put_text_file("config.json", LLAMA(""));
    put_tensors(&w, 0, TINY_HEAD, "F32");
    muc_text_add(&w.header,
                 ",\"model.layers.0.self_attn.rotary_emb.inv_freq\":{\"dtype\":\"F32\","
                 "\"shape\":[1],\"data_offsets\":[%zu,%zu]}",
                 w.data.size, w.data.size + 4);
    put_f32(&w.data, 1);
    put_weights("model.safetensors", &w);
    CHECK_OK(ctx, muc_checkpoint_open(ctx, folder, &checkpoint)); /* a table that RoPE implies */
    check_tiny(ctx, &checkpoint, true);
    muc_checkpoint_close(&checkpoint);
    put_tensors(&w, 0, TINY_HEAD, "F32");
    muc_text_add(&w.header,
                 ",\"adapter\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[%zu,%zu]}",
                 w.data.size, w.data.size + 4);
    put_f32(&w.data, 1);
    put_weights("model.safetensors", &w);
    CHECK_FAILS(ctx, MUC_UNSUPPORTED,
                "tensor 'adapter' has no place in a LlamaForCausalLM of 2 layers",
                muc_checkpoint_open(ctx, folder, &checkpoint));
}

static void sizes_that_no_model_has_are_refused(void **state)
{
    static const struct {
        const char *sizes, *fragment;
    } cases[] = {
        { "8,12,2,2,1,6,0", "\"max_position_embeddings\" is 0" },
        { "8,12,2,2,1,6,99999999", "context is 99999999, expected 1 to 16777216" },
        { "8,12,2,4,3,6,10", "heads, 4, is not a multiple of kv_heads, 3" },
        { "6,12,2,2,1,6,10", "head_dim, 3, is odd" },
        { "8,12,4096,4096,4096,6,16777216", "head_dim is 0" },
        { "8,12,2,2,1,2,10", "EOS is token 2 of a vocabulary of 2" },
    };
    muc_checkpoint checkpoint;
    weights w = { 0 };

    (void)state;
    put_tensors(&w, 0, TINY_HEAD, "F32");
    put_weights("model.safetensors", &w);
    for (size_t i = 0; i < MUC_COUNT(cases); i++) {
        static const char *const keys[] = { "hidden_size",
                                            "intermediate_size",
                                            "num_hidden_layers",
                                            "num_attention_heads",
                                            "num_key_value_heads",
                                            "vocab_size",
                                            "max_position_embeddings" };
        const char *value = cases[i].sizes;
        muc_text config = { 0 };

        muc_text_add(&config, "{\"model_type\":\"llama\",\"eos_token_id\":2");
        for (size_t k = 0; k < MUC_COUNT(keys); k++) {
            muc_text_add(&config, ",\"%s\":%ld", keys[k], strtol(value, NULL, 10));
            value += strcspn(value, ",") + 1;
        }
        muc_text_add(&config, "}");
        put_text_file("config.json", config.data);
        CHECK_FAILS(ctx, MUC_MALFORMED, cases[i].fragment,
                    muc_checkpoint_open(ctx, folder, &checkpoint));
        muc_text_free(&config);
    }
}

/* Writes two shards; the index's text, to be edited, is returned. */
static muc_text put_shards(void)
{
    static const char *const names[2] = { "one.safetensors", "two.safetensors" };
    size_t bytes = 0;
    muc_text index = { 0 };

    put_text_file("config.json", LLAMA(""));
    muc_text_add(&index, "{\"weight_map\":{");
    for (unsigned s = 0; s < 2; s++) {
        unsigned first = s ? TINY_O : 0, end = s ? TINY_HEAD : TINY_O;
        weights w = { 0 };

        put_tensors(&w, first, end, "F32");
        bytes += w.data.size;
        put_weights(names[s], &w);
        for (unsigned t = first; t < end; t++) {
            for (unsigned l = 0; l < (tiny_tensors[t].per_layer ? TINY_LAYERS : 1); l++) {
                muc_text_add(&index, index.data[index.size - 1] == '{' ? "\"" : ",\"");
                muc_text_add(&index, tiny_tensors[t].hf, l);
                muc_text_add(&index, "\":\"%s\"", names[s]);
            }
        }
    }
    muc_text_add(&index, "},\"metadata\":{\"total_size\":%zu}}", bytes);
    return index;
}

static const char index_name[] = "model.safetensors.index.json";

static void shards_make_one_model(void **state)
{
    muc_text index = put_shards();
    muc_checkpoint checkpoint;

    (void)state;
    put_file(index_name, index.data, index.size);
    CHECK_OK(ctx, muc_checkpoint_open(ctx, folder, &checkpoint));
    check_tiny(ctx, &checkpoint, true);
    muc_checkpoint_close(&checkpoint);
    muc_text_free(&index);
}

/* folder/NAME becomes a link that leaves the folder, as in the cache of Hugging Face's hub */
static void make_link(const char *name)
{
    char blob[64], target[128], link[128];

    snprintf(blob, sizeof(blob), "blob-%s", name);
    snprintf(target, sizeof(target), "../%s/%s", strrchr(folder, '/') + 1, blob);
    snprintf(link, sizeof(link), "%s", path_in(name));
    CHECK_EQ(rename(link, path_in(blob)), 0);
    CHECK_EQ(symlink(target, link), 0);
}

static void shards_may_be_links_that_the_user_made(void **state)
{
    static const char *const names[] = { "config.json", "one.safetensors", "two.safetensors",
                                         "model.safetensors.index.json" };
    muc_text index = put_shards();
    muc_checkpoint checkpoint;

    (void)state;
    put_file(index_name, index.data, index.size);
    for (size_t i = 0; i < MUC_COUNT(names); i++)
        make_link(names[i]);
    CHECK_OK(ctx, muc_checkpoint_open(ctx, folder, &checkpoint));
    check_tiny(ctx, &checkpoint, true);
    muc_checkpoint_close(&checkpoint);
    muc_text_free(&index);
}

static void the_weight_map_is_held_to_the_shards(void **state)
{
    static const struct {
        const char *from, *to;
        muc_status status;
        const char *fragment;
    } cases[] = {
        { "norm.weight\":\"two", "norm.weight\":\"one", MUC_MALFORMED,
          "is in 'two.safetensors', the weight map says 'one.safetensors'" },
        { "\"model.norm.weight", "\"model.form.weight", MUC_MALFORMED,
          "tensor 'model.norm.weight' is in 'two.safetensors', the weight map says 'nowhere'" },
        { "one.safetensors", "../.safetensors", MUC_MALFORMED, "not inside the model's folder" },
        { "one.safetensors", "/ne.safetensors", MUC_MALFORMED, "not inside the model's folder" },
        { "one.safetensors", "ane.safetensors", MUC_IO, "cannot open" },
        { "\"total_size\":", "\"total_size\":9", MUC_MALFORMED, "\"total_size\" is 9" },
        { "\"weight_map\"", "\"weight_mop\"", MUC_MALFORMED, "\"weight_map\" is not an object" },
        { "\"one.safetensors\"", "[1,2,3,4,5,6,7,8]", MUC_MALFORMED, "is mapped to no file name" },
        { "{\"weight_map\":{", "{\"weight_map\":{\"x\":\"two.safetensors\",", MUC_MALFORMED,
          "names tensor 'x', which 'two.safetensors' does not hold" },
    };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(cases); i++) {
        muc_text index = put_shards(), edited = { 0 };
        char *at = strstr(index.data, cases[i].from);
        muc_checkpoint checkpoint;

        assert_non_null(at);
        muc_text_add_bytes(&edited, index.data, (size_t)(at - index.data));
        muc_text_add(&edited, "%s%s", cases[i].to, at + strlen(cases[i].from));
        put_file(index_name, edited.data, edited.size);
        CHECK_FAILS(ctx, cases[i].status, cases[i].fragment,
                    muc_checkpoint_open(ctx, folder, &checkpoint));
        muc_text_free(&index);
        muc_text_free(&edited);
    }
}

static void damaged_weights_are_told_or_harmless(void **state)
{
    weights w = { 0 };
    size_t header;
    muc_text file;

    (void)state;
    put_text_file("config.json", LLAMA(""));
    put_tensors(&w, 0, TINY_HEAD, "F16");
    header = 8 + w.header.size + 2;
    file = finish(&w);
    check_damage(ctx, path_in("model.safetensors"), &file, header);
    muc_text_free(&file);
}

static void damaged_text_is_told_or_harmless(void **state)
{
    muc_text index = put_shards();
    const char *const texts[2] = { LLAMA(",\"rope_scaling\":null"), index.data };
    const char *const names[2] = { "config.json", index_name };

    (void)state;
    put_file(index_name, index.data, index.size);
    for (unsigned i = 0; i < 2; i++) {
        size_t size = strlen(texts[i]);
        muc_checkpoint checkpoint;
        char *copy = strdup(texts[i]);

        for (size_t k = 0; k < size; k++) {
            put_file(names[i], copy, k);
            CHECK(muc_checkpoint_open(ctx, folder, &checkpoint) != MUC_OK);
            muc_error_clear(ctx);
            copy[k] ^= 0x11;
            put_file(names[i], copy, size);
            if (muc_checkpoint_open(ctx, folder, &checkpoint) == MUC_OK)
                muc_checkpoint_close(&checkpoint);
            muc_error_clear(ctx);
            copy[k] ^= 0x11;
        }
        put_file(names[i], copy, size);
        free(copy);
    }
    muc_text_free(&index);
}

static void the_trained_weights_are_cut_and_flipped_without_harm(void **state)
{
    const char *path = shared_data("llama/stories260K-hf/model.safetensors");
    size_t header;
    muc_file file;
    uint8_t *copy;

    (void)state;
    CHECK_OK(ctx, muc_file_open(ctx, path, &file));
    copy = malloc(file.bytes.size);
    assert_non_null(copy);
    memcpy(copy, file.bytes.data, file.bytes.size);
    header = 8 + (size_t)muc_load_u64(copy);
    for (size_t size = 0; size < file.bytes.size; size += size < header ? 1 : 49999) {
        muc_checkpoint checkpoint;

        CHECK(muc_checkpoint_open_bytes(ctx, (muc_bytes){ copy, size, path }, &checkpoint) !=
              MUC_OK);
        muc_error_clear(ctx);
    }
    for (size_t i = 0; i < header; i++) {
        muc_bytes bytes = { copy, file.bytes.size, path };
        muc_checkpoint checkpoint;

        copy[i] ^= 1;
        if (muc_checkpoint_open_bytes(ctx, bytes, &checkpoint) == MUC_OK)
            muc_checkpoint_close(&checkpoint);
        muc_error_clear(ctx);
        copy[i] ^= 1;
    }
    free(copy);
    muc_file_close(&file);
}

static void every_failed_allocation_is_told(void **state)
{
    muc_text index = put_shards();

    (void)state;
    put_file(index_name, index.data, index.size);
    check_failed_allocations(ctx, folder, NULL);
    muc_text_free(&index);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(defaults_are_those_of_the_architecture),
        T(tokens_and_rope_are_read),
        T(other_graphs_are_refused_by_name),
        T(a_file_is_held_to_its_header),
        T(files_of_other_projects_are_read),
        T(every_float_type_gives_the_same_model),
        T(the_tokenizer_is_found),
        T(a_tied_head_repeats_the_embedding_or_is_refused),
        T(shapes_are_held_to_the_configuration),
        T(tensors_without_a_place_are_refused),
        T(sizes_that_no_model_has_are_refused),
        T(shards_make_one_model),
        T(shards_may_be_links_that_the_user_made),
        T(the_weight_map_is_held_to_the_shards),
        T(damaged_weights_are_told_or_harmless),
        T(damaged_text_is_told_or_harmless),
        T(the_trained_weights_are_cut_and_flipped_without_harm),
        T(every_failed_allocation_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

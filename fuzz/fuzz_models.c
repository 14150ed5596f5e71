/* Language models drawn by chance, on every road that quantizes one: µThinker's, whose program has
 * to compute its golden model bit for bit and be the same from a .bdt file, code for
 * microcontrollers, and muc compress, what comes of which has to open. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "fuzz.h"
#include "maker.h"
#include "muc/compile.h"
#include "muc/compress.h"
#include "muc/folder.h"

enum { VOCABULARY = 260, MARK = 258 }; /* of the corpus's tokenizer, which texts begin with MARK */

#define TOKENIZER MUC_SOURCE_ROOT "/fuzz/corpus/tokenizer/huggingface"

typedef struct architecture {
    const char *name, *type;
    bool bias, head_norm;
} architecture;

typedef struct road {
    muc_context *ctx;
    fuzz_chance chance;
    const architecture *architecture;
    uint32_t dim, ffn, layers, heads, kv_heads, head_dim, context;
    bool tied;
    muc_text header, data; /* of model.safetensors */
} road;

static char base[] = "/tmp/muc-models-XXXXXX", source[64], made[64], blocks[64], again[64];

static void remove_base(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -r %s", base);
    if (system(command) != 0)
        perror(base);
}

static void make_base(void)
{
    if (!mkdtemp(base))
        abort();
    atexit(remove_base);
    snprintf(source, sizeof(source), "%s/source", base);
    snprintf(made, sizeof(made), "%s/made", base);
    snprintf(blocks, sizeof(blocks), "%s/blocks.bdt", base);
    snprintf(again, sizeof(again), "%s/again", base);
}

_Noreturn static void fail(const road *r, const char *what)
{
    fprintf(stderr, "%s: %s: layers %u, dim %u, ffn %u, heads %u of %u, kv %u, context %u: %s\n",
            what, r->architecture->type, r->layers, r->dim, r->ffn, r->heads, r->head_dim,
            r->kv_heads, r->context, muc_error_message(r->ctx));
    abort();
}

/* a refusal is fine */
static bool worked(const road *r, muc_status status, const char *what)
{
    if (status == MUC_BUG || status == MUC_MISMATCH || status == MUC_MALFORMED)
        fail(r, what);
    return status == MUC_OK;
}

static const char *draw_word(road *r, const char *const *words, uint32_t count)
{
    return words[fuzz_draw(&r->chance, count)];
}
#define DRAW_WORD(r, ...) \
    draw_word((r), (const char *const[]){ __VA_ARGS__ }, \
              sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

/* ---- the model ---- */

/* rows of columns around 0 so that products keep the size of what goes in; columns 0: gains */
static void put_tensor(road *r, const char *name, uint32_t rows, uint32_t columns)
{
    size_t first = r->data.size, count = (size_t)rows * (columns ? columns : 1);

    for (size_t i = 0; i < count; i++) {
        double unit = fuzz_draw(&r->chance, 4096) / 2048.0 - 1;
        float value = (float)(columns ? 1.7 * unit / sqrt(columns) : 1 + 0.4 * unit);

        muc_text_add_bytes(&r->data, &value, sizeof(value));
    }
    muc_text_add(&r->header, "%c\"%s\":{\"dtype\":\"F32\",\"shape\":[%u", first ? ',' : '{', name,
                 rows);
    if (columns)
        muc_text_add(&r->header, ",%u", columns);
    muc_text_add(&r->header, "],\"data_offsets\":[%zu,%zu]}", first, r->data.size);
}

static void put_layer(road *r, uint32_t layer)
{
    const uint32_t queries = r->heads * r->head_dim, keys = r->kv_heads * r->head_dim;
    const struct {
        const char *name;
        uint32_t rows, columns;
        bool is_there;
    } tensors[] = {
        { "input_layernorm.weight", r->dim, 0, true },
        { "self_attn.q_proj.weight", queries, r->dim, true },
        { "self_attn.k_proj.weight", keys, r->dim, true },
        { "self_attn.v_proj.weight", keys, r->dim, true },
        { "self_attn.o_proj.weight", r->dim, queries, true },
        { "self_attn.q_proj.bias", queries, 0, r->architecture->bias },
        { "self_attn.k_proj.bias", keys, 0, r->architecture->bias },
        { "self_attn.v_proj.bias", keys, 0, r->architecture->bias },
        { "self_attn.q_norm.weight", r->head_dim, 0, r->architecture->head_norm },
        { "self_attn.k_norm.weight", r->head_dim, 0, r->architecture->head_norm },
        { "post_attention_layernorm.weight", r->dim, 0, true },
        { "mlp.gate_proj.weight", r->ffn, r->dim, true },
        { "mlp.up_proj.weight", r->ffn, r->dim, true },
        { "mlp.down_proj.weight", r->dim, r->ffn, true },
    };
    char name[96];

    for (size_t i = 0; i < MUC_COUNT(tensors); i++)
        if (tensors[i].is_there) {
            snprintf(name, sizeof(name), "model.layers.%u.%s", layer, tensors[i].name);
            put_tensor(r, name, tensors[i].rows, tensors[i].columns);
        }
}

static void write_weights(road *r)
{
    muc_text file = { 0 };
    char path[96];
    uint64_t size;

    put_tensor(r, "model.embed_tokens.weight", VOCABULARY, r->dim);
    put_tensor(r, "model.norm.weight", r->dim, 0);
    if (!r->tied)
        put_tensor(r, "lm_head.weight", VOCABULARY, r->dim);
    for (uint32_t layer = 0; layer < r->layers; layer++)
        put_layer(r, layer);
    muc_text_add(&r->header, "}");
    size = r->header.size;
    muc_text_add_bytes(&file, &size, sizeof(size));
    muc_text_add_bytes(&file, r->header.data, r->header.size);
    muc_text_add_bytes(&file, r->data.data, r->data.size);
    snprintf(path, sizeof(path), "%s/model.safetensors", source);
    if (muc_file_write(r->ctx, path, file.data, file.size) != MUC_OK)
        abort();
    muc_text_free(&file);
    muc_text_free(&r->header);
    muc_text_free(&r->data);
}

static void write_config(road *r)
{
    muc_text text = { 0 };
    char path[96];

    muc_text_add(&text,
                 "{\"architectures\":[\"%s\"],\"model_type\":\"%s\",\"hidden_size\":%u,"
                 "\"intermediate_size\":%u,\"num_hidden_layers\":%u,\"num_attention_heads\":%u,"
                 "\"num_key_value_heads\":%u,\"head_dim\":%u,\"max_position_embeddings\":%u,"
                 "\"vocab_size\":%d,\"bos_token_id\":%d,\"eos_token_id\":%d,"
                 "\"rms_norm_eps\":1e-5,\"tie_word_embeddings\":%s}",
                 r->architecture->name, r->architecture->type, r->dim, r->ffn, r->layers, r->heads,
                 r->kv_heads, r->head_dim, r->context, VOCABULARY, MARK, MARK,
                 r->tied ? "true" : "false");
    snprintf(path, sizeof(path), "%s/config.json", source);
    if (muc_file_write(r->ctx, path, text.data, text.size) != MUC_OK)
        abort();
    muc_text_free(&text);
}

static void write_model(road *r)
{
    static const architecture architectures[] = {
        { "LlamaForCausalLM", "llama", false, false },
        { "MistralForCausalLM", "mistral", false, false },
        { "Qwen2ForCausalLM", "qwen2", true, false },
        { "Qwen3ForCausalLM", "qwen3", false, true },
    };
    static const uint32_t head_dims[] = { 4, 8, 8, 16, 32 };

    /* µThinker has no biases: Llamas come most */
    r->architecture = &architectures[fuzz_draw(&r->chance, 2) ? 0 : fuzz_draw(&r->chance, 4)];
    r->layers = 1 + fuzz_draw(&r->chance, 2);
    r->kv_heads = 1 + fuzz_draw(&r->chance, 2);
    r->heads = r->kv_heads << fuzz_draw(&r->chance, 2);
    r->head_dim = head_dims[fuzz_draw(&r->chance, MUC_COUNT(head_dims))];
    r->dim = 4 * (1 + fuzz_draw(&r->chance, 12));
    r->ffn = 4 * (1 + fuzz_draw(&r->chance, 16));
    r->context = 2 + fuzz_draw(&r->chance, 31);
    r->tied = fuzz_draw(&r->chance, 2);
    if (muc_make_dir(r->ctx, source) != MUC_OK)
        abort();
    write_config(r);
    write_weights(r);
}

/* ---- the roads ---- */

static bool open_model(road *r, const char *path, muc_model **out)
{
    const muc_model_options options = { .tokenizer = TOKENIZER };

    return worked(r, muc_model_open(r->ctx, path, &options, out), "open");
}

static bool compile(road *r, const muc_model *model, const muc_compile_options *options,
                    const char *path)
{
    muc_report *report = NULL;
    bool ok = worked(r, muc_compile(r->ctx, model, options, path, &report), options->target);

    muc_report_free(report);
    return ok;
}

static void read_back(road *r, const char *path)
{
    muc_report *report = NULL;

    if (muc_report_folder(r->ctx, path, NULL, &report) != MUC_OK)
        fail(r, "the folder cannot be read back");
    muc_report_free(report);
}

static void verify(road *r, const muc_model *model)
{
    muc_report *report = NULL;
    muc_model *program;

    if (muc_model_open(r->ctx, made, NULL, &program) != MUC_OK ||
        muc_verify(r->ctx, program, model, NULL, &report) != MUC_OK)
        fail(r, "the program is not its model");
    muc_report_free(report);
    muc_model_close(program);
}

/* the same program by way of a .bdt file */
static void compare_blocks(road *r, const muc_model *model, const muc_compile_options *whole)
{
    muc_compile_options options = *whole;
    muc_report *report = NULL;
    muc_file first, second;
    muc_model *quantized;

    options.weights = (muc_weight_options){ .codec = NULL };
    if (muc_quantize(r->ctx, model, &whole->weights, blocks, &report) != MUC_OK ||
        muc_model_open(r->ctx, blocks, NULL, &quantized) != MUC_OK)
        fail(r, "no .bdt file");
    muc_report_free(report);
    if (!compile(r, quantized, &options, again) || muc_file_open(r->ctx, made, &first) != MUC_OK ||
        muc_file_open(r->ctx, again, &second) != MUC_OK || first.bytes.size != second.bytes.size ||
        memcmp(first.bytes.data, second.bytes.data, first.bytes.size) != 0)
        fail(r, "another program from a .bdt file");
    muc_file_close(&first);
    muc_file_close(&second);
    muc_model_close(quantized);
}

static void drive_uthinker(road *r, const muc_model *model)
{
    muc_compile_options options = {
        .target = "uthinker",
        .act_terms = DRAW_WORD(r, NULL, NULL, "1", "2,p=1,v=1"),
        .attention = DRAW_WORD(r, NULL, "cache", "recompute"),
        .strip = fuzz_draw(&r->chance, 2),
    };

    options.weights.calibration = DRAW_WORD(r, NULL, "auto", "auto");
    if (fuzz_draw(&r->chance, 2))
        options.weights.bits = 4.6 + fuzz_draw(&r->chance, 64) / 16.0;
    remove(made);
    if (!compile(r, model, &options, made))
        return;
    verify(r, model);
    compare_blocks(r, model, &options);
}

static void drive_mcu(road *r, const muc_model *model)
{
    const muc_compile_options options = {
        .target = "mcu",
        .machine = DRAW_WORD(r, NULL, "siracusa", "mps3-an547", "rv32"),
        .weights.codec = DRAW_WORD(r, NULL, "int8", "bd4"),
    };
    char folder[80];

    snprintf(folder, sizeof(folder), "%s.mcu", made);
    if (compile(r, model, &options, folder))
        read_back(r, folder);
}

static void drive_compress(road *r, const muc_model *model)
{
    const muc_compress_options options = {
        .weights = DRAW_WORD(r, NULL, "int8", "int4", "int2", "cb2"),
        .embedding = DRAW_WORD(r, NULL, "int8", "int4", "int2", "cb2"),
        .calibration = DRAW_WORD(r, "auto", "none"),
        .pure = fuzz_draw(&r->chance, 2),
        .flash_bytes = fuzz_draw(&r->chance, 4) ? 0 : 1024 * (8 + fuzz_draw(&r->chance, 64)),
    };
    muc_report *report = NULL;
    muc_model *compressed;
    char folder[80];
    bool ok;

    snprintf(folder, sizeof(folder), "%s.compressed", made);
    ok = worked(r, muc_compress(r->ctx, model, &options, folder, &report), "compress");
    muc_report_free(report);
    if (!ok)
        return;
    if (!open_model(r, folder, &compressed))
        fail(r, "what was compressed does not open");
    (fuzz_draw(&r->chance, 2) ? drive_mcu : drive_uthinker)(r, compressed);
    muc_model_close(compressed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const drives[])(road *, const muc_model *) = { drive_uthinker, drive_mcu,
                                                                 drive_compress };
    road r = { .ctx = muc_context_new(1), .chance = { .bytes = data, .left = size } };
    uint32_t drive = fuzz_draw(&r.chance, MUC_COUNT(drives));
    muc_model *model;

    if (!source[0])
        make_base();
    write_model(&r);
    if (open_model(&r, source, &model)) {
        drives[drive](&r, model);
        muc_model_close(model);
    }
    muc_context_free(r.ctx);
    return 0;
}

/* test_score_rows.c - the logits after each token of one call are those of a call a token. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "muc/muc.h"
#include "run/engine.h"
#include "targets/uthinker/run/engine_machine.h"

static char path[] = "/tmp/muc_score_rows_XXXXXX";
static const char *rescue = "models/rescue";

/* EMBED begins each call of a program */
static void count_calls(void *arg, mur_sim *sim, enum mur_engine engine, const uint32_t *words)
{
    (void)sim;
    (void)engine;
    *(uint32_t *)arg += (words[0] & 255) == 0x08;
}

/* a model compiled with options, and what follows from `calls` of so many tokens each */
static void check_calls(const char *source, const muc_compile_options *options,
                        const uint32_t *calls, size_t count)
{
    muc_context *ctx = muc_context_new(2);
    muc_model *model, *program;
    muc_engine *together, *alone;
    uint32_t token = 1, differ = 0, made = 0, tokens_fed = 0;
    muc_report *report;

    CHECK_OK(ctx, muc_model_open(ctx, source, NULL, &model));
    CHECK_OK(ctx, muc_compile(ctx, model, options, path, &report));
    muc_report_free(report);
    CHECK_OK(ctx, muc_model_open(ctx, path, NULL, &program));
    CHECK_OK(ctx, muc_engine_new(ctx, program, &together));
    CHECK_OK(ctx, muc_engine_new(ctx, program, &alone));
    muc_engine_watch(together, count_calls, &made);
    for (size_t i = 0; i < count; i++) {
        const float *rows, *row, *first;
        uint32_t vocabulary = together->facts.vocabulary, tokens[64];

        for (uint32_t t = 0; t < calls[i]; t++)
            tokens[t] = token = (token * 75 + 74) % vocabulary;
        CHECK_OK(ctx, muc_engine_feed(together, tokens, calls[i], true, &rows));
        tokens_fed += calls[i];
        first = rows;
        for (uint32_t t = 0; t < calls[i]; t++, rows += vocabulary) {
            CHECK_OK(ctx, muc_engine_feed(alone, tokens + t, 1, false, &row));
            CHECK(memcmp(rows, row, vocabulary * sizeof(*row)) == 0);
            differ += memcmp(rows, first, vocabulary * sizeof(*row)) != 0;
        }
    }
    CHECK(differ > 0);
    CHECK(made <= count + tokens_fed / 8); /* not a call a token */
    muc_engine_free(together);
    muc_engine_free(alone);
    muc_model_close(program);
    muc_model_close(model);
    muc_context_free(ctx);
}

static void rows_of_a_call_are_those_of_single_tokens(void **state)
{
    static const uint32_t calls[] = { 1, 2, 64, 7, 33, 1, 40 };

    (void)state;
    check_calls(rescue, &(muc_compile_options){ 0 }, calls, 7);
    check_calls(rescue, &(muc_compile_options){ .attention = "recompute" }, calls, 5);
}

/* OLMo 2, whose layers begin with QUANT */
static const char without_norms[] =
    "{\"architectures\": [\"Olmo2ForCausalLM\"], \"model_type\": \"olmo2\", \"hidden_act\": "
    "\"silu\", "
    "\"hidden_size\": 64, \"intermediate_size\": 96, \"num_hidden_layers\": 2, "
    "\"num_attention_heads\": 2, \"num_key_value_heads\": 2, \"vocab_size\": 600, "
    "\"max_position_embeddings\": 128, \"rms_norm_eps\": 1e-6, \"rope_theta\": 10000.0, "
    "\"tie_word_embeddings\": false}";

static void layers_may_begin_without_a_norm(void **state)
{
    static const uint32_t calls[] = { 5, 1, 64, 20 };
    static const char *const files[] = { "FILES", "config.json", "model.safetensors",
                                         "tokenizer.json" };
    char folder[] = "/tmp/muc_score_folder_XXXXXX", name[64];
    muc_context *ctx = muc_context_new(1);
    muc_report *report;
    FILE *file;

    (void)state;
    CHECK(mkdtemp(folder) != NULL);
    snprintf(name, sizeof(name), "%s.json", folder);
    file = fopen(name, "w");
    CHECK(file != NULL);
    fputs(without_norms, file);
    CHECK_EQ(fclose(file), 0);
    CHECK_OK(ctx, muc_synth(ctx, &(muc_synth_options){ .shape = name }, folder, &report));
    muc_report_free(report);
    muc_context_free(ctx);
    unlink(name);
    check_calls(folder, &(muc_compile_options){ 0 }, calls, MUC_COUNT(calls));
    for (size_t i = 0; i < MUC_COUNT(files); i++) {
        snprintf(name, sizeof(name), "%s/%s", folder, files[i]);
        unlink(name);
    }
    CHECK_EQ(rmdir(folder), 0);
}

static int make_file(void **state)
{
    (void)state;
    return close(mkstemp(path));
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_a_call_are_those_of_single_tokens),
        cmocka_unit_test(layers_may_begin_without_a_norm),
    };

    return cmocka_run_group_tests(tests, make_file, remove_file);
}

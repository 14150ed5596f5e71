/* test_llama.c - checkpoints to graphs to text: against the float64 reference and kept texts. */
#include "check.h"

#include <math.h>

#include "base/file.h"
#include "base/json.h"
#include "base/real.h"
#include "models/llama.h"
#include "ref_model.h"
#include "stories.h"

static void open_model(model *m, const char *path, uint32_t max_tokens, unsigned threads)
{
    const muc_llama_options options = { .max_tokens = max_tokens };

    m->ctx = muc_context_new(threads);
    CHECK_OK(m->ctx, muc_checkpoint_open(m->ctx, path, &m->checkpoint));
    CHECK_OK(m->ctx, muc_llama_build(m->ctx, &m->checkpoint, &options, &m->graph));
    CHECK_OK(m->ctx, muc_ref_open(m->ctx, m->graph, &m->ref));
}

static int32_t largest(const float *values, uint32_t count)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < count; i++)
        if (values[i] > values[best])
            best = i;
    return (int32_t)best;
}

static json_t *read_json(muc_context *ctx, const char *path)
{
    muc_file file;
    json_t *json;

    CHECK_OK(ctx, muc_file_open(ctx, path, &file));
    CHECK_OK(ctx, muc_json_parse(ctx, file.bytes, 0, &json));
    muc_file_close(&file);
    return json;
}

static uint32_t read_tokens(const json_t *list, int32_t *out, uint32_t most)
{
    uint32_t count = (uint32_t)json_array_size(list);

    CHECK(count > 0 && count <= most);
    for (uint32_t i = 0; i < count; i++)
        out[i] = (int32_t)json_integer_value(json_array_get(list, i));
    return count;
}

static void stories_follow_the_float64_reference(void **state)
{
    const char *expected_path = shared_data("llama/reference/expected.json");
    const char *logits_path = shared_data("llama/reference/logits_f64_pos0_59.npy");
    int32_t tokens[61];
    double worst = 0, expected;
    muc_file logits;
    size_t header;
    json_t *json;
    model m;

    (void)state;
    open_model(&m, shared_data("llama/stories260K-hf"), 64, 1);
    json = read_json(m.ctx, expected_path);
    CHECK_EQ(read_tokens(json_object_get(json, "tokens"), tokens, 61), 61);
    CHECK_OK(m.ctx, muc_file_open(m.ctx, logits_path, &logits));
    CHECK(memmem(logits.bytes.data, 128, "'<f8', 'fortran_order': False, 'shape': (60, 512)", 48));
    header = 10u + muc_load_u16(logits.bytes.data + 8);
    CHECK_EQ(logits.bytes.size, header + 60 * 512 * sizeof(double));
    for (uint32_t pos = 0; pos < 60; pos++) {
        const float *found = logits_of(&m, pos, &tokens[pos], 1);

        for (size_t i = 0; i < 512; i++) {
            memcpy(&expected, logits.bytes.data + header + (pos * 512 + i) * 8, 8);
            worst = fmax(worst, fabs(found[i] - expected));
        }
        /* the first five are the prompt */
        CHECK(pos < 4 || largest(found, 512) == tokens[pos + 1]);
    }
    print_message("largest difference of a logit: %.2e\n", worst);
    CHECK(worst < 1e-4);
    muc_file_close(&logits);
    json_decref(json);
    close_model(&m);
}

static void prefill_gives_the_bits_of_single_steps(void **state)
{
    static const uint32_t groups[] = { 1, 2, 3, 61, 64, 7, 5, 64, 33 }; /* 240 tokens */
    model one, many;
    int32_t tokens[240];
    uint32_t pos = 0;

    (void)state;
    open_model(&one, shared_data("llama/stories260K.bin"), 1, 1);
    open_model(&many, shared_data("llama/stories260K.bin"), 64, 2);
    for (uint32_t i = 0; i < 240; i++)
        tokens[i] = (int32_t)(i * 167 % 512);
    for (size_t g = 0; g < MUC_COUNT(groups); g++) {
        const float *rows = logits_of(&many, pos, tokens + pos, groups[g]);

        for (uint32_t i = 0; i < groups[g]; i++, pos++)
            assert_memory_equal(rows + i * 512, logits_of(&one, pos, tokens + pos, 1),
                                512 * sizeof(float));
    }
    close_model(&one);
    close_model(&many);
}

/* 200 tokens at once: every matrix and attention is shared out */
static void threads_change_no_bit(void **state)
{
    int32_t tokens[200];
    model one, four;

    (void)state;
    open_model(&one, shared_data("rescue"), 200, 1);
    open_model(&four, shared_data("rescue"), 200, 4);
    for (int i = 0; i < 200; i++)
        tokens[i] = i * 131 % 512;
    assert_memory_equal(logits_of(&one, 0, tokens, 200), logits_of(&four, 0, tokens, 200),
                        200 * 512 * sizeof(float));
    close_model(&one);
    close_model(&four);
}

static void three_forms_of_a_model_give_the_same_bits(void **state)
{
    static const char *const forms[] = { "llama/stories260K-hf", "llama/stories260K-hf/sharded",
                                         "llama/stories260K.bin", "llama/stories260K-f32.gguf" };
    const int32_t tokens[] = { 1, 403, 407, 261, 378 };
    float first[5 * 512];

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(forms); i++) {
        model m;
        const float *logits;

        open_model(&m, shared_data(forms[i]), 64, 1);
        logits = logits_of(&m, 0, tokens, 5);
        if (i == 0)
            memcpy(first, logits, sizeof(first));
        assert_memory_equal(first, logits, sizeof(first));
        close_model(&m);
    }
}

static void perplexity_is_the_reference_one(void **state)
{
    double perplexity;
    stories text;
    model m;

    (void)state;
    open_model(&m, shared_data("llama/stories260K.bin"), 64, 1);
    read_stories(m.ctx, &text);
    perplexity = perplexity_of(m.ctx, m.ref, &text);
    print_message("perplexity %.6f\n", perplexity);
    CHECK(fabs(perplexity - 3.548202) < 0.00005);
    free_stories(&text);
    close_model(&m);
}

/* what the nodes before any cut computed is all that the others need */
static void a_run_in_two_pieces_gives_the_bits_of_a_whole_one(void **state)
{
    int32_t tokens[9] = { 1, 403, 407, 261, 378, 7, 9, 11, 13 };
    float expected[9 * 512];
    model front, back;

    (void)state;
    open_model(&front, shared_data("llama/stories260K.bin"), 64, 1);
    open_model(&back, shared_data("llama/stories260K.bin"), 64, 1);
    memcpy(expected, logits_of(&front, 0, tokens, 9), sizeof(expected));
    for (uint32_t cut = 1; cut < front.graph->node_count; cut += 7) {
        muc_ref_reset(back.ref);
        muc_ref_set_range(front.ref, 0, cut);
        CHECK_OK(front.ctx, muc_ref_run_tokens(front.ref, 0, tokens, 9));
        for (uint32_t i = 0; i < cut; i++) {
            size_t rows, columns;
            const muc_node *node = &front.graph->nodes[i];
            const float *data = muc_ref_read(front.ref, node->name, &rows, &columns);

            CHECK_OK(back.ctx, muc_ref_put(back.ref, node->outputs[0], data, rows, columns));
        }
        muc_ref_set_range(back.ref, cut, back.graph->node_count);
        assert_memory_equal(logits_of(&back, 0, tokens, 9), expected, sizeof(expected));
    }
    close_model(&front);
    close_model(&back);
}

static void another_weight_can_stand_for_a_constant(void **state)
{
    static float other[512 * 64];
    int32_t token = 1;
    const float *logits;
    model m;

    (void)state;
    open_model(&m, shared_data("llama/stories260K.bin"), 64, 1);
    muc_ref_replace(m.ref, muc_graph_find(m.graph, "model.embed_tokens.weight"), other);
    logits = logits_of(&m, 0, &token, 1);
    for (int i = 0; i < 512; i++)
        CHECK(logits[i] == 0);
    close_model(&m);
}

static void rescue_writes_its_kept_plans(void **state)
{
    const char *path = shared_data("rescue/expected.json");
    json_t *json, *cases, *one;
    size_t i;
    model m;

    (void)state;
    open_model(&m, shared_data("rescue"), 256, 0);
    json = read_json(m.ctx, path);
    cases = json_object_get(json, "first50");
    CHECK_EQ(json_array_size(cases), 50);
    json_array_foreach(cases, i, one)
    {
        int32_t ids[256];
        uint32_t count = read_tokens(json_object_get(one, "ids"), ids, 256), prompt = 0;
        const float *logits;

        /* the plan starts after "plan:", the token 492 behind the line break 13 */
        while (ids[prompt] != 13)
            prompt++;
        while (ids[prompt++] != 492)
            ;
        muc_ref_reset(m.ref);
        logits = logits_of(&m, 0, ids, prompt) + (size_t)(prompt - 1) * 512;
        for (uint32_t pos = prompt; pos < count; pos++) {
            CHECK_EQ(largest(logits, 512), ids[pos]);
            logits = logits_of(&m, pos, &ids[pos], 1);
        }
        CHECK_EQ(largest(logits, 512), 2); /* end of text */
    }
    json_decref(json);
    close_model(&m);
}

static void the_graph_reads_back_from_its_text(void **state)
{
    muc_text first = { 0 }, second = { 0 };
    muc_graph *again;
    muc_bytes bytes;
    model m;

    (void)state;
    open_model(&m, shared_data("llama/stories260K-hf"), 64, 1);
    muc_graph_print(m.graph, &first);
    bytes = (muc_bytes){ (const uint8_t *)first.data, first.size, "printed" };
    CHECK_OK(m.ctx, muc_graph_parse(m.ctx, bytes, &again));
    muc_graph_print(again, &second);
    assert_string_equal(first.data, second.data);
    CHECK(strstr(first.data, "node layers.3.q_rope f32 [m, 64] = rope layers.3.q, rope.cos, "
                             "rope.sin heads=8 head_dim=8 position=pos\n"));
    muc_graph_free(again);
    muc_text_free(&first);
    muc_text_free(&second);
    close_model(&m);
}

static void calls_outside_the_context_are_refused(void **state)
{
    const int32_t tokens[] = { 1, 512 };
    model m;

    (void)state;
    open_model(&m, shared_data("llama/stories260K-hf"), 64, 1);
    CHECK_FAILS(m.ctx, MUC_USAGE, "pos + m is 513, expected at most 512",
                muc_ref_run_tokens(m.ref, 511, tokens, 2));
    CHECK_FAILS(m.ctx, MUC_USAGE, "'pos' is 512", muc_ref_run_tokens(m.ref, 512, tokens, 1));
    CHECK_FAILS(m.ctx, MUC_MALFORMED, "'tokens' holds 512 at 1",
                muc_ref_run_tokens(m.ref, 0, tokens, 2));
    close_model(&m);
}

/* llama3 scaling against the closed form at both ends and in the middle */
static void llama3_rope_scaling_stretches_long_waves(void **state)
{
    muc_model_config config = { .head_dim = 64,
                                .rope_theta = 500000,
                                .rope_kind = MUC_ROPE_LLAMA3,
                                .rope_factor = 32,
                                .rope_low_factor = 1,
                                .rope_high_factor = 4,
                                .rope_original_context = 8192 };
    muc_context *ctx = muc_context_new(1);
    float cosines[4 * 32], sines[4 * 32];

    (void)state;
    CHECK_OK(ctx, muc_llama_rope(ctx, &config, false, 4, cosines, sines));
    for (unsigned i = 0; i < 32; i++) {
        double frequency = pow(500000, -(double)i / 32), wave = 2 * M_PI / frequency, smooth;

        if (wave > 8192.0 / 1)
            frequency /= 32;
        else if (wave >= 8192.0 / 4) {
            smooth = (8192 / wave - 1) / (4 - 1);
            frequency = (1 - smooth) * frequency / 32 + smooth * frequency;
        }
        assert_float_equal(cosines[3 * 32 + i], cos(3 * frequency), 1e-7);
        assert_float_equal(sines[3 * 32 + i], sin(3 * frequency), 1e-7);
    }
    muc_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stories_follow_the_float64_reference),
        cmocka_unit_test(prefill_gives_the_bits_of_single_steps),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(three_forms_of_a_model_give_the_same_bits),
        cmocka_unit_test(perplexity_is_the_reference_one),
        cmocka_unit_test(a_run_in_two_pieces_gives_the_bits_of_a_whole_one),
        cmocka_unit_test(another_weight_can_stand_for_a_constant),
        cmocka_unit_test(rescue_writes_its_kept_plans),
        cmocka_unit_test(the_graph_reads_back_from_its_text),
        cmocka_unit_test(calls_outside_the_context_are_refused),
        cmocka_unit_test(llama3_rope_scaling_stretches_long_waves),
    };

    return cmocka_run_group_tests_name("llama", tests, NULL, NULL);
}

/* test_mcu_decoder.c - decoders as C for microcontrollers: every bit of their logits is ref's, with
 * the plain kernels and with those for SMLAD, however tokens are grouped. */
#include "mcu_network.h"
#include "mcu_small_machine.h"

#include "run/opened_model.h"
#include "models/llama.h"
#include "passes/weights/hybrid_decoder.h"
#include "random_model.h"
#include "text/tokenizer.h"

/* the last: eight cores and a small memory that holds tiles */
static const char *const machines[] = { "host", "mps2-an386", "mps3-an547", "rv32", "siracusa" };

static muc_graph *graph_of(muc_context *ctx, const muc_checkpoint *checkpoint, uint32_t context,
                           uint32_t most, bool last_only, muc_hybrid_levels levels)
{
    const muc_llama_options options = {
        .context = context,
        .max_tokens = most,
        .last_only = last_only,
    };
    muc_hybrid_result result;
    muc_graph *graph;

    CHECK_OK(ctx, muc_llama_build(ctx, checkpoint, &options, &graph));
    CHECK_OK(ctx, muc_hybrid_quantize(ctx, graph, levels, &result));
    return graph;
}

/* Feeds tokens in groups of up to `most` to the batch's network, and to ref; compares the last row.
 */
static void check_tokens(mcu_batch *batch, size_t network, const int32_t *tokens, uint32_t count,
                         uint32_t most)
{
    const mcu_network *n = &batch->networks[network];
    size_t bytes = (size_t)n->build->program.plan.peak;
    uint8_t *memory = aligned_alloc(MCU_GUARD, (bytes + 3 * MCU_GUARD) / MCU_GUARD * MCU_GUARD);
    uint8_t *arena = memory + MCU_GUARD;
    void (*init)(void *, void **, void **);
    int (*run)(void *, uint32_t, uint32_t);
    void *in[1], *out[1];
    muc_ref *ref;

    *(void **)&init = mcu_symbol(batch, network, "init");
    *(void **)&run = mcu_symbol(batch, network, "run");
    memset(memory, 0xa5, bytes + 2 * MCU_GUARD);
    init(arena, in, out);
    CHECK_OK(batch->ctx, muc_ref_open(batch->ctx, n->graph, &ref));
    for (uint32_t pos = 0, m; pos < count; pos += m) {
        size_t rows, columns;
        const float *expected;

        m = 1 + mcu_random(batch) % most;
        m = m < count - pos ? m : count - pos;
        memcpy(in[0], tokens + pos, m * sizeof(*tokens));
        CHECK_EQ(run(arena, pos, m), 0);
        CHECK_OK(batch->ctx, muc_ref_run_tokens(ref, pos, tokens + pos, m));
        expected = muc_ref_read(ref, "head", &rows, &columns);
        if (memcmp(expected, out[0], rows * columns * sizeof(*expected)) != 0)
            fail_msg("network %zu: the logits at position %u differ", network, pos);
    }
    for (size_t g = 0; g < MCU_GUARD; g++)
        CHECK(memory[g] == 0xa5 && arena[bytes + g] == 0xa5);
    muc_ref_close(ref);
    free(memory);
}

/* Whether the program takes along the source of caps, which is not small. */
static bool has_caps(const muc_mcu_program *program)
{
    for (uint32_t i = 0; i < program->source_count; i++)
        if (strcmp(program->sources[i], "kernels/ref/mur_cap_scores.c") == 0)
            return true;
    return false;
}

/* sizes that are not multiples of 4, more than 512 columns, biases, norms of heads, grouped heads,
 * capped scores (the second network); a GPT-2 */
static void random_decoders_compute_what_ref_computes(void **state)
{
    static const random_shape shapes[] = {
        { 2, 18, 3, 1, 6, 23, 29, 20, false },
        { 1, 30, 4, 2, 4, 530, 33, 9, true },
        { 1, 16, 2, 2, 8, 20, 12, 16, true },
        { 2, 18, 3, 3, 6, 23, 29, 20, true },
    };
    muc_checkpoint checkpoints[MUC_COUNT(shapes)];
    mcu_batch batch = mcu_batch_new();
    int32_t tokens[20];

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(shapes); i++) {
        if (i == 3)
            random_gpt2(batch.ctx, &shapes[i], &checkpoints[i]);
        else
            random_relative(batch.ctx, &shapes[i], i == 0, &checkpoints[i]);
        checkpoints[i].config.attention_cap = i == 1 ? 0.5 : 0;
        for (size_t m = 0; m < MUC_COUNT(machines); m++)
            mcu_batch_add(&batch,
                          graph_of(batch.ctx, &checkpoints[i], shapes[i].context, 5, i % 2 == 0,
                                   (i + m) % 2 ? MUC_HYBRID_BLOCKS : MUC_HYBRID_INT8),
                          machines[m]);
    }
    mcu_batch_build(&batch, "cc");
    for (size_t i = 0; i < batch.count; i++) {
        const random_shape *shape = &shapes[i / MUC_COUNT(machines)];

        CHECK_EQ(has_caps(&batch.networks[i].build->program), i / MUC_COUNT(machines) == 1);
        for (uint32_t t = 0; t < shape->context; t++)
            tokens[t] = (int32_t)(mcu_random(&batch) % shape->vocabulary);
        check_tokens(&batch, i, tokens, shape->context, 5);
    }
    mcu_batch_free(&batch);
    for (size_t i = 0; i < MUC_COUNT(shapes); i++)
        muc_checkpoint_close(&checkpoints[i]);
}

/* where the small memory holds few rows of a matrix at a time, or none with all columns */
static void tiles_of_any_size_compute_what_ref_computes(void **state)
{
    static const random_shape shapes[] = {
        { 1, 32, 4, 2, 8, 40, 70, 12, false }, /* one matrix is looked up and multiplied */
        { 1, 18, 6, 3, 6, 23, 33, 9, true },
    };
    static const unsigned bytes[] = { 900, 3000, 20000 };
    static const muc_hybrid_levels levels[] = { MUC_HYBRID_INT8, MUC_HYBRID_BLOCKS };
    const size_t networks = MUC_COUNT(bytes) * MUC_COUNT(levels);
    mcu_batch batch = mcu_batch_new();
    muc_checkpoint checkpoints[MUC_COUNT(shapes)];
    uint32_t tiled = 0, plain = 0, heads = 0;
    int32_t tokens[12];
    char path[64];

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(shapes); i++) {
        random_relative(batch.ctx, &shapes[i], i == 0, &checkpoints[i]);
        for (size_t n = 0; n < networks; n++) {
            write_machine(path, "rv32imc", bytes[n / MUC_COUNT(levels)]);
            mcu_batch_add(&batch,
                          graph_of(batch.ctx, &checkpoints[i], shapes[i].context, 5, true,
                                   levels[n % MUC_COUNT(levels)]),
                          path);
            unlink(path);
        }
    }
    for (size_t n = 0; n < batch.count; n++) {
        const muc_mcu_program *program = &batch.networks[n].build->program;

        for (uint32_t i = 0; i < program->step_count; i++) {
            tiled += strncmp(program->steps[i].function, "mur_tiles_linear", 16) == 0;
            plain += strncmp(program->steps[i].function, "mur_plain_linear", 16) == 0;
            heads += strcmp(program->steps[i].function, "mur_tiles_attention") == 0;
        }
    }
    CHECK(tiled > plain && plain > 0 && heads > 0);
    mcu_batch_build(&batch, "cc");
    for (size_t n = 0; n < batch.count; n++) {
        const random_shape *shape = &shapes[n / networks];

        for (uint32_t t = 0; t < shape->context; t++)
            tokens[t] = (int32_t)(mcu_random(&batch) % shape->vocabulary);
        check_tokens(&batch, n, tokens, shape->context, 5);
    }
    mcu_batch_free(&batch);
    for (size_t i = 0; i < MUC_COUNT(shapes); i++)
        muc_checkpoint_close(&checkpoints[i]);
}

/* beyond 4 MB weights are a binary file that the assembler takes in */
static void megabytes_of_weights_lie_in_a_file(void **state)
{
    const random_shape shape = { 1, 64, 2, 1, 32, 32, 66000, 8, true };
    const int32_t tokens[] = { 65999, 0, 32768, 7 };
    mcu_batch batch = mcu_batch_new();
    muc_checkpoint checkpoint;
    char path[96];

    (void)state;
    random_checkpoint(batch.ctx, &shape, &checkpoint);
    mcu_batch_add(&batch, graph_of(batch.ctx, &checkpoint, 8, 2, true, MUC_HYBRID_INT8), "host");
    mcu_batch_build(&batch, "cc");
    snprintf(path, sizeof(path), "%s/n0/n0_weights.bin", batch.root);
    CHECK_EQ(access(path, R_OK), 0);
    check_tokens(&batch, 0, tokens, 4, 2);
    mcu_batch_free(&batch);
    muc_checkpoint_close(&checkpoint);
}

static void check_model(const char *path, const char *prompt, uint32_t context)
{
    mcu_batch batch = mcu_batch_new();
    uint32_t *ids;
    muc_model *model;
    size_t count;

    CHECK_OK(batch.ctx, muc_model_open(batch.ctx, path, NULL, &model));
    for (size_t m = 0; m < 2; m++) /* sizes that are multiples of 4: the others do nothing new */
        mcu_batch_add(&batch,
                      graph_of(batch.ctx, &model->checkpoint, context, 8, true, MUC_HYBRID_INT8),
                      machines[m]);
    mcu_batch_build(&batch, "cc");
    CHECK_OK(batch.ctx, muc_tokenizer_encode(batch.ctx, &model->tokenizer, prompt, strlen(prompt),
                                             MUR_ENCODE_BOS, &ids, &count));
    CHECK(count > 20 && count <= context);
    for (size_t i = 0; i < batch.count; i++)
        check_tokens(&batch, i, (const int32_t *)ids, (uint32_t)count, 8);
    free(ids);
    mcu_batch_free(&batch);
    muc_model_close(model);
}

static void trained_models_compute_what_ref_computes(void **state)
{
    (void)state;
    check_model("models/rescue",
                "search the north corridor for survivors, avoid the stairs and come back", 64);
    check_model(shared_data("llama/stories260K-hf"),
                "Once upon a time, there was a little girl named Lily. She loved to play outside "
                "in the park with her friends and her big red ball.",
                128);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_decoders_compute_what_ref_computes),
        cmocka_unit_test(tiles_of_any_size_compute_what_ref_computes),
        cmocka_unit_test(megabytes_of_weights_lie_in_a_file),
        cmocka_unit_test(trained_models_compute_what_ref_computes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

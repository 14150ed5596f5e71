/* test_hybrid.c - decoders with int8 matrices and caches, in ref: quality, and bits that do not
 * depend on how tokens are grouped. The operators themselves: test_decoder.c. */
#include "check.h"

#include <math.h>

#include "models/llama.h"
#include "mur_low.h"
#include "passes/weights/hybrid_decoder.h"
#include "random_model.h"
#include "ref_model.h"
#include "stories.h"

static void open_graph(model *m, muc_hybrid_levels levels, muc_hybrid_result *result)
{
    const muc_llama_options options = { .max_tokens = 64 };

    CHECK_OK(m->ctx, muc_llama_build(m->ctx, &m->checkpoint, &options, &m->graph));
    CHECK_OK(m->ctx, muc_hybrid_quantize(m->ctx, m->graph, levels, result));
    CHECK_OK(m->ctx, muc_ref_open(m->ctx, m->graph, &m->ref));
}

static void int8_costs_less_than_half_a_percent_of_perplexity(void **state)
{
    model m = { .ctx = muc_context_new(0) };
    muc_hybrid_result result;
    double perplexity;
    stories text;

    (void)state;
    CHECK_OK(m.ctx, muc_checkpoint_open(m.ctx, shared_data("llama/stories260K-hf"), &m.checkpoint));
    open_graph(&m, MUC_HYBRID_INT8, &result);
    CHECK(result.error < 1e-4 * result.energy);
    read_stories(m.ctx, &text);
    perplexity = perplexity_of(m.ctx, m.ref, &text);
    print_message("perplexity %.4f; float32 has 3.5482\n", perplexity);
    CHECK(perplexity < 3.5482 * 1.005);
    free_stories(&text);
    close_model(&m);
}

/* every block of a row on the grid of a dialect */
static void blocks_are_of_block_dialect(void **state)
{
    model m = { .ctx = muc_context_new(0) };
    muc_hybrid_result result;
    uint32_t blocks = 0;
    double perplexity;
    stories text;

    (void)state;
    CHECK_OK(m.ctx, muc_checkpoint_open(m.ctx, shared_data("llama/stories260K-hf"), &m.checkpoint));
    open_graph(&m, MUC_HYBRID_BLOCKS, &result);
    for (uint32_t t = 0; t < m.graph->tensor_count; t++) {
        const muc_tensor *tensor = &m.graph->tensors[t];
        size_t k = tensor->rank == 2 ? muc_expr_get(m.graph->pool, tensor->dims[1])->lo : 0;

        if (tensor->dtype != MUC_I8 || !tensor->data)
            continue;
        for (size_t i = 0; i < tensor->bytes; i += k)
            for (size_t j = 0; j < k; j += 32, blocks++)
                CHECK(mur_bd_header((const int8_t *)tensor->data + i + j,
                                    (uint32_t)(k - j < 32 ? k - j : 32)) >= 0);
    }
    CHECK(blocks > 8000);
    read_stories(m.ctx, &text);
    perplexity = perplexity_of(m.ctx, m.ref, &text);
    print_message("perplexity %.4f; float32 has 3.5482\n", perplexity);
    CHECK(perplexity < 4.2); /* on the machine of tiles, with error feedback, 4.04 */
    free_stories(&text);
    close_model(&m);
}

/* biases, norms of heads, odd sizes: in one call, and token by token on one and on two threads */
static void tokens_give_the_same_bits_however_they_are_grouped(void **state)
{
    const random_shape shape = { 2, 18, 3, 1, 6, 23, 29, 20, false };
    int32_t tokens[20];
    float all[20 * 29];
    model m = { .ctx = muc_context_new(1) };
    muc_hybrid_result result;

    (void)state;
    for (uint32_t i = 0; i < 20; i++)
        tokens[i] = (int32_t)(random_u32() % 29);
    random_relative(m.ctx, &shape, true, &m.checkpoint);
    open_graph(&m, MUC_HYBRID_INT8, &result);
    memcpy(all, logits_of(&m, 0, tokens, 20), sizeof(all));
    for (uint32_t pos = 0, count; pos < 20; pos += count) {
        count = 1 + pos % 3 < 20 - pos ? 1 + pos % 3 : 20 - pos;
        CHECK(memcmp(logits_of(&m, pos, tokens + pos, count), all + 29 * pos,
                     count * 29 * sizeof(*all)) == 0);
    }
    for (uint32_t i = 0; i < 20 * 29; i++)
        CHECK(isfinite(all[i]));
    close_model(&m);
}

static void weights_that_are_not_finite_are_named(void **state)
{
    const random_shape shape = { 1, 8, 2, 1, 4, 8, 8, 8, true };
    const muc_llama_options options = { 0 };
    model m = { .ctx = muc_context_new(1) };
    muc_hybrid_result result;
    float *weights = NULL;

    (void)state;
    random_checkpoint(m.ctx, &shape, &m.checkpoint);
    for (size_t i = 0; i < m.checkpoint.tensor_count; i++)
        if (strstr(m.checkpoint.tensors[i].name, "k_proj"))
            weights = (float *)(uintptr_t)m.checkpoint.tensors[i].data;
    weights[9] = NAN;
    CHECK_OK(m.ctx, muc_llama_build(m.ctx, &m.checkpoint, &options, &m.graph));
    CHECK_FAILS(m.ctx, MUC_UNSUPPORTED, "k_proj.weight",
                muc_hybrid_quantize(m.ctx, m.graph, MUC_HYBRID_INT8, &result));
    close_model(&m);
}

static void rows_of_zeros_stay_zeros(void **state)
{
    const random_shape shape = { 1, 8, 2, 1, 4, 8, 8, 8, true };
    model m = { .ctx = muc_context_new(1) };
    muc_hybrid_result result;
    const int32_t token = 3;
    const float *logits;

    (void)state;
    random_checkpoint(m.ctx, &shape, &m.checkpoint);
    for (size_t i = 0; i < m.checkpoint.tensor_count; i++)
        if (strstr(m.checkpoint.tensors[i].name, "embed"))
            memset((void *)(uintptr_t)m.checkpoint.tensors[i].data, 0,
                   m.checkpoint.tensors[i].bytes);
    open_graph(&m, MUC_HYBRID_INT8, &result);
    logits = logits_of(&m, 0, &token, 1);
    for (uint32_t i = 0; i < 8; i++)
        CHECK(logits[i] == 0);
    close_model(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(int8_costs_less_than_half_a_percent_of_perplexity),
        cmocka_unit_test(blocks_are_of_block_dialect),
        cmocka_unit_test(tokens_give_the_same_bits_however_they_are_grouped),
        cmocka_unit_test(weights_that_are_not_finite_are_named),
        cmocka_unit_test(rows_of_zeros_stay_zeros),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

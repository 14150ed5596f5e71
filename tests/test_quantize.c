/* test_quantize.c - graphs quantized under a budget: bytes counted, values decoded, stories told.
 */
#include "chance.h"
#include "check.h"
#include "models/llama.h"
#include "passes/quantize.h"
#include "quant/bd_sequence.h"
#include "stories.h"

/* ---- graphs of chance ---- */

enum { WORDS = 40, WIDTH = 72, MIDDLE = 100 };

typedef struct toy {
    muc_context *ctx;
    muc_graph *graph;
    float *weights[3];
} toy;

static uint32_t add_matrix(toy *t, uint32_t i, const char *name, uint32_t n, uint32_t k)
{
    muc_tensor tensor = { .name = name, .kind = MUC_TENSOR_CONST, .dtype = MUC_F32, .rank = 2 };
    uint32_t id;

    t->weights[i] = malloc((size_t)n * k * sizeof(float));
    for (size_t e = 0; e < (size_t)n * k; e++)
        t->weights[i][e] = (float)ldexp(random_student4(), -4);
    tensor.dims[0] = muc_expr_const(t->graph->pool, n);
    tensor.dims[1] = muc_expr_const(t->graph->pool, k);
    tensor.data = (const uint8_t *)t->weights[i];
    tensor.bytes = (uint64_t)n * k * sizeof(float);
    CHECK_OK(t->ctx, muc_graph_add_tensor(t->ctx, t->graph, &tensor, &id));
    return id;
}

/* tokens, embedded, through two matrices, and out by the embedding */
static toy toy_new(unsigned threads)
{
    toy t = { .ctx = muc_context_new(threads) };
    muc_tensor tokens = { .name = "tokens", .kind = MUC_TENSOR_INPUT, .dtype = MUC_I32, .rank = 1 };
    uint32_t inputs[2], table, x;

    CHECK_OK(t.ctx, muc_graph_new(t.ctx, "toy", &t.graph));
    muc_expr_new_input(t.graph->pool, "pos", 0, 63, 1);
    tokens.dims[0] = muc_expr_new_input(t.graph->pool, "m", 1, 64, 1);
    CHECK_OK(t.ctx, muc_graph_add_tensor(t.ctx, t.graph, &tokens, &inputs[0]));
    table = add_matrix(&t, 0, "table", WORDS, WIDTH);
    inputs[1] = table;
    CHECK_OK(t.ctx,
             muc_graph_add_node(t.ctx, t.graph, MUC_OP_EMBED, "embed", inputs, 2, NULL, 0, &x));
    inputs[0] = x;
    inputs[1] = add_matrix(&t, 1, "up", MIDDLE, WIDTH);
    CHECK_OK(t.ctx,
             muc_graph_add_node(t.ctx, t.graph, MUC_OP_LINEAR, "wide", inputs, 2, NULL, 0, &x));
    CHECK_OK(t.ctx, muc_graph_add_node(t.ctx, t.graph, MUC_OP_SILU, "bent", &x, 1, NULL, 0, &x));
    inputs[0] = x;
    inputs[1] = add_matrix(&t, 2, "down", WIDTH, MIDDLE);
    CHECK_OK(t.ctx,
             muc_graph_add_node(t.ctx, t.graph, MUC_OP_LINEAR, "narrow", inputs, 2, NULL, 0, &x));
    inputs[0] = x;
    inputs[1] = table;
    CHECK_OK(t.ctx,
             muc_graph_add_node(t.ctx, t.graph, MUC_OP_LINEAR, "head", inputs, 2, NULL, 0, &x));
    CHECK_OK(t.ctx, muc_graph_add_output(t.ctx, t.graph, x));
    return t;
}

static void toy_free(toy *t)
{
    for (int i = 0; i < 3; i++)
        free(t->weights[i]);
    muc_graph_free(t->graph);
    muc_context_free(t->ctx);
}

/* rows of a tensor's sequence, checked and decoded */
static void decode(muc_context *ctx, const muc_graph *graph, const muc_tensor *tensor, float *out)
{
    muc_bytes bytes = { tensor->sequence, tensor->sequence_bytes, tensor->name };
    uint32_t n = muc_expr_get(graph->pool, tensor->dims[0])->lo;
    uint32_t k = muc_expr_get(graph->pool, tensor->dims[1])->lo;

    CHECK_OK(ctx, muc_bd_check(ctx, bytes, 0, n, k));
    for (uint32_t c = 0; c < n; c++)
        CHECK_OK(ctx, muc_bd_decode_column(ctx, bytes, n, k, c, out + (size_t)c * k));
}

/* ---- tests ---- */

static void bytes_stay_within_the_budget_and_use_it(void **state)
{
    (void)state;
    for (double bits = 5; bits < 12; bits += 0.13) {
        muc_quantize_options options = { .bits_per_weight = bits };
        muc_quantize_result result;
        uint64_t bytes = 0;
        toy t = toy_new(1);

        CHECK_OK(t.ctx, muc_quantize_weights(t.ctx, t.graph, &options, &result));
        CHECK_EQ(result.weights, WORDS * WIDTH + 2 * WIDTH * MIDDLE);
        for (uint32_t i = 0; i < t.graph->tensor_count; i++)
            bytes += t.graph->tensors[i].sequence_bytes;
        CHECK_EQ(result.bytes, bytes);
        CHECK((double)bytes * 8 <= bits * (double)result.weights);
        if (bits < 9.5) /* beyond, every block has its two terms */
            CHECK((double)bytes * 8 >= (bits - 0.15) * (double)result.weights);
        toy_free(&t);
    }
}

static void the_error_told_is_that_of_the_decoded_values(void **state)
{
    muc_quantize_options options = { 0 };
    muc_quantize_result result;
    toy t = toy_new(2);
    double error = 0, energy = 0;

    (void)state;
    options.bits_per_weight = 5.3;
    CHECK_OK(t.ctx, muc_quantize_weights(t.ctx, t.graph, &options, &result));
    for (uint32_t i = 0, matrix = 0; i < t.graph->tensor_count; i++) {
        const muc_tensor *tensor = &t.graph->tensors[i];
        float values[WIDTH * MIDDLE];

        if (tensor->kind != MUC_TENSOR_CONST)
            continue;
        decode(t.ctx, t.graph, tensor, values);
        for (size_t e = 0; e < tensor->bytes / sizeof(float); e++) {
            double w = (double)t.weights[matrix][e], miss = w - (double)values[e];

            error += miss * miss;
            energy += w * w;
        }
        matrix++;
    }
    CHECK(fabs(error - result.error) < 1e-9 * error);
    CHECK(fabs(energy - result.energy) < 1e-9 * energy);
    CHECK(error < 0.01 * energy);
    toy_free(&t);
}

static void what_cannot_be_quantized_is_refused(void **state)
{
    muc_quantize_options options = { .bits_per_weight = 0.1 };
    muc_quantize_result result;
    toy t = toy_new(1);

    (void)state;
    CHECK_FAILS(t.ctx, MUC_NOFIT, "0.100 bits per weight are asked for",
                muc_quantize_weights(t.ctx, t.graph, &options, &result));
    options.bits_per_weight = 6;
    t.weights[2][5] = NAN;
    CHECK_FAILS(t.ctx, MUC_UNSUPPORTED, "down: element [0][5] is nan",
                muc_quantize_weights(t.ctx, t.graph, &options, &result));
    t.graph->tensors[muc_graph_find(t.graph, "up")].data = NULL;
    CHECK_FAILS(t.ctx, MUC_UNSUPPORTED, "up: no data",
                muc_quantize_weights(t.ctx, t.graph, &options, &result));
    toy_free(&t);
}

/* ---- stories260K ---- */

/* Perplexity with weights as quantized, everything else in float32. */
static double story_perplexity(const muc_quantize_options *options, muc_quantize_result *result)
{
    const muc_llama_options as_made = { 0 };
    muc_context *ctx = muc_context_new(0);
    muc_checkpoint checkpoint;
    muc_graph *graph;
    muc_ref *ref;
    stories text;
    double perplexity;

    CHECK_OK(ctx, muc_checkpoint_open(ctx, shared_data("llama/stories260K.bin"), &checkpoint));
    CHECK_OK(ctx, muc_llama_build(ctx, &checkpoint, &as_made, &graph));
    CHECK_OK(ctx, muc_quantize_weights(ctx, graph, options, result));
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        muc_tensor *tensor = &graph->tensors[i];
        float *values;

        if (!tensor->sequence)
            continue;
        CHECK_EQ(tensor->dtype, MUC_F32);
        CHECK_OK(ctx, muc_arena_new(ctx, &graph->arena, tensor->bytes, 1, (void **)&values));
        decode(ctx, graph, tensor, values);
        tensor->data = (const uint8_t *)values;
    }
    CHECK_OK(ctx, muc_ref_open(ctx, graph, &ref));
    read_stories(ctx, &text);
    perplexity = perplexity_of(ctx, ref, &text);
    print_message("%.3f bits: perplexity %.4f\n",
                  8 * (double)result->bytes / (double)result->weights, perplexity);
    free_stories(&text);
    muc_ref_close(ref);
    muc_graph_free(graph);
    muc_checkpoint_close(&checkpoint);
    muc_context_free(ctx);
    return perplexity;
}

static void stories_keep_their_sense_without_calibration(void **state)
{
    muc_quantize_options options = { .bits_per_weight = 4.8 };
    muc_quantize_result result;

    (void)state;
    CHECK(story_perplexity(&options, &result) <= 4.12);
    CHECK((double)result.bytes * 8 <= 4.8 * (double)result.weights);
    options.bits_per_weight = 5.9;
    CHECK(story_perplexity(&options, &result) <= 3.80);
    CHECK((double)result.bytes * 8 <= 5.9 * (double)result.weights);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_stay_within_the_budget_and_use_it),
        cmocka_unit_test(the_error_told_is_that_of_the_decoded_values),
        cmocka_unit_test(what_cannot_be_quantized_is_refused),
        cmocka_unit_test(stories_keep_their_sense_without_calibration),
    };

    return cmocka_run_group_tests_name("quantize", tests, NULL, NULL);
}

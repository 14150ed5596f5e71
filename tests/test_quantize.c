/* test_quantize.c - graphs quantized under a budget: bytes counted, values decoded, stories told.
 */
#include "chance.h"
#include "check.h"
#include "models/llama.h"
#include "passes/weights/quantize_blocks.h"
#include "quant/bd_sequence.h"
#include "ref/golden/uthinker_golden.h"
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
static toy toy_of(unsigned threads, uint32_t words, uint32_t width, uint32_t middle)
{
    toy t = { .ctx = muc_context_new(threads) };
    muc_tensor tokens = { .name = "tokens", .kind = MUC_TENSOR_INPUT, .dtype = MUC_I32, .rank = 1 };
    uint32_t inputs[2], table, x;

    CHECK_OK(t.ctx, muc_graph_new(t.ctx, "toy", &t.graph));
    muc_expr_new_input(t.graph->pool, "pos", 0, 63, 1);
    tokens.dims[0] = muc_expr_new_input(t.graph->pool, "m", 1, 64, 1);
    CHECK_OK(t.ctx, muc_graph_add_tensor(t.ctx, t.graph, &tokens, &inputs[0]));
    table = add_matrix(&t, 0, "table", words, width);
    inputs[1] = table;
    CHECK_OK(t.ctx,
             muc_graph_add_node(t.ctx, t.graph, MUC_OP_EMBED, "embed", inputs, 2, NULL, 0, &x));
    inputs[0] = x;
    inputs[1] = add_matrix(&t, 1, "up", middle, width);
    CHECK_OK(t.ctx,
             muc_graph_add_node(t.ctx, t.graph, MUC_OP_LINEAR, "wide", inputs, 2, NULL, 0, &x));
    CHECK_OK(t.ctx, muc_graph_add_node(t.ctx, t.graph, MUC_OP_SILU, "bent", &x, 1, NULL, 0, &x));
    inputs[0] = x;
    inputs[1] = add_matrix(&t, 2, "down", width, middle);
    CHECK_OK(t.ctx,
             muc_graph_add_node(t.ctx, t.graph, MUC_OP_LINEAR, "narrow", inputs, 2, NULL, 0, &x));
    inputs[0] = x;
    inputs[1] = table;
    CHECK_OK(t.ctx,
             muc_graph_add_node(t.ctx, t.graph, MUC_OP_LINEAR, "head", inputs, 2, NULL, 0, &x));
    CHECK_OK(t.ctx, muc_graph_add_output(t.ctx, t.graph, x));
    return t;
}

static toy toy_new(unsigned threads)
{
    return toy_of(threads, WORDS, WIDTH, MIDDLE);
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

/* whose smallest blocks take more than the default, and just what is asked for in its place */
static void matrices_of_short_blocks_are_quantized_without_a_budget(void **state)
{
    (void)state;
    for (uint32_t words = 1; words <= 40; words++) {
        const muc_quantize_options options = { 0 };
        muc_quantize_result result;
        toy t = toy_of(1, words, 7, 5);

        CHECK_OK(t.ctx, muc_quantize_weights(t.ctx, t.graph, &options, &result));
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

/* ---- calibration ---- */

static const int32_t two_texts[] = { 3, 7, 39, 0, 7, 7, 12, 21, 1 };
static const uint32_t two_lengths[] = { 5, 4 };
static const muc_calibration texts_of_toy = { 2, two_lengths, two_texts };

typedef struct witness {
    const toy *toy;
    uint32_t calls;
} witness;

/* the sum over the texts' tokens of the square of input j, damped as feedback.h has it */
static double damped_square(const float *rows, uint32_t k, uint32_t j)
{
    double trace = 0, square = 0;

    for (size_t t = 0; t < MUC_COUNT(two_texts); t++) {
        const float *x = rows + (size_t)two_texts[t] * k;

        for (uint32_t i = 0; i < k; i++)
            trace += (double)x[i] * (double)x[i];
        square += (double)x[j] * (double)x[j];
    }
    return square + 0.01 * trace / k;
}

/* Stands 0.5 of the table for the table, so that "up", which comes next, must see half its rows. */
static muc_status halve(void *arg, uint32_t tensor, const muc_feedback *feedback, float *values)
{
    static const char *const order[] = { "table", "up", "down" };
    witness *w = arg;
    const muc_tensor *t = &w->toy->graph->tensors[tensor];
    const float *made = (const float *)(const void *)t->data;

    assert_string_equal(t->name, order[w->calls]);
    for (size_t i = 0; i < t->bytes / sizeof(float); i++)
        values[i] = made[i] * 0.5f;
    for (uint32_t j = 0; w->calls == 1 && j < WIDTH; j++) {
        double e[WIDTH] = { 0 }, expected = 0.25 * damped_square(w->toy->weights[0], WIDTH, j);

        e[j] = 1;
        CHECK(fabs(muc_feedback_error(feedback, e) - expected) < 1e-9 * expected);
    }
    w->calls++;
    return MUC_OK;
}

static void matrices_see_what_was_quantized_before_them(void **state)
{
    toy t = toy_new(2);
    witness w = { .toy = &t };

    (void)state;
    CHECK_OK(t.ctx, muc_calibrate(t.ctx, t.graph, &texts_of_toy, halve, &w));
    CHECK_EQ(w.calls, 3);
    toy_free(&t);
}

static void calibrated_bytes_are_the_same_at_any_thread_count(void **state)
{
    const muc_quantize_options options = { .bits_per_weight = 5.4, .calibration = &texts_of_toy };
    toy toys[4];
    float *weights[3];

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        muc_quantize_result result;

        toys[i] = toy_new(i + 1);
        for (unsigned m = 0; m < 3; m++) {
            weights[m] = toys[0].weights[m];
            if (i > 0) /* the same weights in all */
                memcpy(toys[i].weights[m], weights[m],
                       (m == 0 ? WORDS * WIDTH : WIDTH * MIDDLE) * sizeof(float));
        }
        CHECK_OK(toys[i].ctx, muc_quantize_weights(toys[i].ctx, toys[i].graph, &options, &result));
        CHECK((double)result.bytes * 8 <= 5.4 * (double)result.weights);
        for (uint32_t n = 0; n < toys[i].graph->tensor_count; n++) {
            const muc_tensor *one = &toys[0].graph->tensors[n], *two = &toys[i].graph->tensors[n];

            CHECK_EQ(one->sequence_bytes, two->sequence_bytes);
            if (one->sequence)
                assert_memory_equal(one->sequence, two->sequence, one->sequence_bytes);
        }
    }
    for (unsigned i = 0; i < 4; i++)
        toy_free(&toys[i]);
}

static void texts_that_do_not_fit_are_refused(void **state)
{
    static const uint32_t lengths[] = { 65 };
    static const int32_t tokens[65] = { 0 }, stranger[] = { WORDS };
    const muc_calibration too_long = { 1, lengths, tokens };
    const muc_calibration empty = { 1, (const uint32_t[]){ 0 }, tokens };
    const muc_calibration unknown = { 1, (const uint32_t[]){ 1 }, stranger };
    muc_quantize_options options = { .bits_per_weight = 5.4, .calibration = &too_long };
    muc_quantize_result result;
    toy t = toy_new(1);

    (void)state;
    CHECK_FAILS(t.ctx, MUC_USAGE, "text 0 has 65 tokens, expected 1 to 64",
                muc_quantize_weights(t.ctx, t.graph, &options, &result));
    options.calibration = &empty;
    CHECK_FAILS(t.ctx, MUC_USAGE, "text 0 has 0 tokens",
                muc_quantize_weights(t.ctx, t.graph, &options, &result));
    options.calibration = &unknown;
    CHECK_FAILS(t.ctx, MUC_MALFORMED, "'tokens' holds 40",
                muc_quantize_weights(t.ctx, t.graph, &options, &result));
    toy_free(&t);
}

static void failed_allocations_are_reported(void **state)
{
    const muc_quantize_options options = { .bits_per_weight = 5.4, .calibration = &texts_of_toy };
    muc_status status = MUC_NOMEM;
    toy t = toy_new(1);
    long failures = 0;

    (void)state;
    while (status == MUC_NOMEM) {
        muc_quantize_result result;

        muc_error_clear(t.ctx);
        muc_alloc_fail_after(failures++);
        status = muc_quantize_weights(t.ctx, t.graph, &options, &result);
        muc_alloc_fail_after(-1);
    }
    CHECK_OK(t.ctx, status);
    CHECK(failures > 50);
    toy_free(&t);
}

/* the toy's next token depends on the last one alone, so that all it can say is known */
static void texts_are_drawn_as_the_model_says(void **state)
{
    static const int32_t ends[] = { 5 };
    muc_calibration_marks marks = { .first = 1, .ends = ends, .end_count = 1 };
    muc_calibration written, again;
    double surprised = 0, entropy = 0, drawn = 0;
    muc_arena arena = { 0 };
    toy t = toy_new(2);
    size_t rows, columns;
    uint32_t total = 0;
    muc_ref *ref;

    (void)state;
    for (size_t i = 0; i < WORDS * WIDTH; i++)
        t.weights[0][i] *= 16; /* opinions */
    CHECK_OK(t.ctx, muc_ref_open(t.ctx, t.graph, &ref));
    CHECK_OK(t.ctx, muc_calibration_generate(t.ctx, t.graph, &marks, &arena, &written));
    CHECK_OK(t.ctx, muc_calibration_generate(t.ctx, t.graph, &marks, &arena, &again));
    for (uint32_t i = 0; i < written.count; total += written.lengths[i++]) {
        const int32_t *tokens = written.tokens + total;
        uint32_t length = written.lengths[i];
        const float *logits;

        CHECK(length >= 1 && length <= 64);
        CHECK_EQ(tokens[0], 1);
        CHECK_OK(t.ctx, muc_ref_run_tokens(ref, 0, tokens, length));
        logits = muc_ref_read(ref, "head", &rows, &columns);
        for (uint32_t p = 0; p + 1 < length; p++, drawn++) {
            CHECK(tokens[p] != 5);
            surprised += surprise(logits + p * WORDS, WORDS, (uint32_t)tokens[p + 1]);
            for (uint32_t w = 0; w < WORDS; w++) {
                double one = surprise(logits + p * WORDS, WORDS, w);

                entropy += muc_exp(-one) * one;
            }
        }
    }
    CHECK_EQ(total, MUC_CALIBRATION_TOKENS);
    CHECK(entropy > 0.2 * drawn && entropy < 3.6 * drawn);
    CHECK(fabs(surprised - entropy) < 0.05 * drawn);
    CHECK_EQ(again.count, written.count);
    assert_memory_equal(again.tokens, written.tokens, total * sizeof(*written.tokens));
    marks.tokens = 100;
    marks.longest = 7;
    CHECK_OK(t.ctx, muc_calibration_generate(t.ctx, t.graph, &marks, &arena, &written));
    for (uint32_t i = total = 0; i < written.count; total += written.lengths[i++])
        CHECK(written.lengths[i] <= 7);
    CHECK_EQ(total, 100);
    muc_ref_close(ref);
    muc_arena_free(&arena);
    toy_free(&t);
}

/* ---- stories260K ---- */

/* perplexity in the machine's arithmetic, two terms for every activation */
static double story_perplexity(double bits, bool calibrated)
{
    static const muc_ref_terms two_terms = { 2, 2, 2, 2, 2, 2, 2, 2, 2, 64, 0, NULL };
    static const int32_t ends[] = { 1, 2 };
    const muc_calibration_marks marks = { .first = 1, .ends = ends, .end_count = 2 };
    const muc_llama_options as_made = { 0 };
    muc_context *ctx = muc_context_new(0);
    muc_quantize_options options = { .bits_per_weight = bits };
    muc_quantize_result result;
    muc_calibration written;
    muc_checkpoint checkpoint;
    muc_arena arena = { 0 };
    double perplexity;
    muc_graph *graph;
    muc_ref *ref;
    stories text;

    CHECK_OK(ctx, muc_checkpoint_open(ctx, shared_data("llama/stories260K.bin"), &checkpoint));
    CHECK_OK(ctx, muc_llama_build(ctx, &checkpoint, &as_made, &graph));
    CHECK_OK(ctx, muc_calibration_generate(ctx, graph, &marks, &arena, &written));
    options.calibration = calibrated ? &written : NULL;
    CHECK_OK(ctx, muc_quantize_weights(ctx, graph, &options, &result));
    CHECK((double)result.bytes * 8 <= bits * (double)result.weights);
    CHECK_OK(ctx, muc_ref_open_machine(ctx, graph, &two_terms, &ref));
    read_stories(ctx, &text);
    perplexity = perplexity_of(ctx, ref, &text);
    print_message("%.3f bits%s: perplexity %.4f\n",
                  8 * (double)result.bytes / (double)result.weights,
                  calibrated ? " with error feedback" : "", perplexity);
    free_stories(&text);
    muc_ref_close(ref);
    muc_arena_free(&arena);
    muc_graph_free(graph);
    muc_checkpoint_close(&checkpoint);
    muc_context_free(ctx);
    return perplexity;
}

static void stories_keep_their_sense(void **state)
{
    (void)state;
    CHECK(story_perplexity(4.8, true) <= 3.95);
    if (brief())
        return;
    CHECK(story_perplexity(4.8, false) <= 4.12);
    CHECK(story_perplexity(5.9, true) <= 3.80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_stay_within_the_budget_and_use_it),
        cmocka_unit_test(the_error_told_is_that_of_the_decoded_values),
        cmocka_unit_test(what_cannot_be_quantized_is_refused),
        cmocka_unit_test(matrices_see_what_was_quantized_before_them),
        cmocka_unit_test(calibrated_bytes_are_the_same_at_any_thread_count),
        cmocka_unit_test(texts_that_do_not_fit_are_refused),
        cmocka_unit_test(failed_allocations_are_reported),
        cmocka_unit_test(texts_are_drawn_as_the_model_says),
        cmocka_unit_test(stories_keep_their_sense),
        cmocka_unit_test(matrices_of_short_blocks_are_quantized_without_a_budget),
    };

    return cmocka_run_group_tests_name("quantize", tests, NULL, NULL);
}

/* test_train_lowbit.c - quantization-aware training: what it computes with is what is stored, what
 * enters a product is int8, and training beats rounding what was trained without it. */
#include <math.h>

#include "base/half.h"
#include "check.h"
#include "train/quantization_aware.h"

enum { VOCABULARY = 24, WINDOW = 24, DOCUMENTS = 60, STEPS = 300, ROWS = 240 };

static muc_context *ctx;
static uint32_t tokens[DOCUMENTS * WINDOW];
static size_t starts[DOCUMENTS + 1];

/* texts with a rule: a token follows from the two before it, but for one in eight */
static int setup(void **state)
{
    muc_train_random random = { 7 };

    (void)state;
    ctx = muc_context_new(2);
    for (size_t i = 0; i < DOCUMENTS * WINDOW; i++) {
        uint32_t drawn = (uint32_t)(muc_train_random_next(&random) >> 33);
        bool free_one = i % WINDOW < 2 || drawn % 8 == 0;

        tokens[i] = free_one ? drawn / 8 % VOCABULARY
                             : (tokens[i - 1] * 5 + tokens[i - 2] * 3 + 1) % VOCABULARY;
    }
    for (size_t d = 0; d <= DOCUMENTS; d++)
        starts[d] = d * WINDOW;
    return ctx ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    muc_context_free(ctx);
    return 0;
}

typedef struct run {
    muc_train_shape shape;
    muc_train_recipe recipe;
    muc_train_trainer trainer;
    muc_train_lowbit lowbit;
    muc_lowbit formats[32];
} run;

static const muc_train_corpus corpus = { DOCUMENTS, starts, tokens, NULL };

/* phases NULL: in float32 alone */
static void begin(run *r, const muc_train_phases *phases, muc_lowbit weights)
{
    const muc_model_config config = { .architecture = "LlamaForCausalLM",
                                      .dim = 32,
                                      .ffn_dim = 48,
                                      .layers = 2,
                                      .heads = 2,
                                      .kv_heads = 1,
                                      .head_dim = 16,
                                      .vocabulary = VOCABULARY,
                                      .context = WINDOW,
                                      .norm_epsilon = 1e-5,
                                      .rope_theta = 10000,
                                      .tied = true };
    muc_train_random random = { 3 };
    muc_train_place place = { .random = { 5 } };

    r->recipe = (muc_train_recipe){ .rate = 0.01,
                                    .least_rate = 0.001,
                                    .steps = STEPS,
                                    .warm_up = 5,
                                    .beta1 = 0.9,
                                    .beta2 = 0.95,
                                    .epsilon = 1e-8,
                                    .clip = 1 };
    CHECK_OK(ctx, muc_train_shape_make(ctx, &config, NULL, NULL, NULL, &r->shape));
    CHECK_OK(ctx, muc_train_trainer_make(ctx, &r->shape, &r->recipe, &corpus, WINDOW, ROWS, &place,
                                         &r->trainer));
    muc_train_initialise(&r->shape, &random, r->trainer.weights);
    if (!phases)
        return;
    assert_in_range(r->shape.tensor_count, 1, 32);
    for (size_t t = 0; t < r->shape.tensor_count; t++)
        r->formats[t] = r->shape.tensors[t].id == MUC_LLAMA_EMBED ? MUC_LOWBIT_INT8 : weights;
    CHECK_OK(ctx,
             muc_train_lowbit_make(ctx, &r->shape, &r->recipe, phases, r->formats, &r->lowbit));
    muc_train_lowbit_join(&r->lowbit, &r->trainer);
}

static void end(run *r, bool has_lowbit)
{
    if (has_lowbit)
        muc_train_lowbit_free(&r->lowbit);
    muc_train_trainer_free(&r->trainer);
    muc_train_shape_free(&r->shape);
}

static void train(run *r)
{
    for (unsigned i = 0; i < STEPS; i++) {
        muc_train_note note;

        CHECK_OK(ctx, muc_train_step(&r->trainer, &note));
    }
}

/* weights as stored: rows of few bits, decoded */
static void store(const run *r, const muc_scalar *weights, muc_scalar *out)
{
    memcpy(out, weights, r->shape.elements * sizeof(*out));
    for (size_t t = 0; t < r->shape.tensor_count; t++) {
        const muc_train_tensor *tensor = &r->shape.tensors[t];

        for (size_t row = 0; tensor->columns && row < tensor->rows; row++) {
            uint16_t numbers[16];
            uint8_t codes[64];

            muc_train_lowbit_row(&r->lowbit, t, row, weights, codes, numbers);
            muc_lowbit_decode(r->formats[t], tensor->columns, codes, numbers,
                              out + tensor->first + row * tensor->columns);
        }
    }
}

static double loss_with(run *r, const muc_scalar *weights)
{
    uint64_t counted;
    double loss;

    CHECK_OK(ctx, muc_train_measure(&r->trainer.pass, &corpus, WINDOW, weights, &loss, &counted));
    return loss / (double)counted;
}

static void what_is_computed_with_is_what_is_stored(void **state)
{
    static const muc_lowbit formats[] = { MUC_LOWBIT_INT2, MUC_LOWBIT_INT4, MUC_LOWBIT_CODEBOOK };

    (void)state;
    for (size_t f = 0; f < 3; f++) {
        const muc_train_phases phases = { .real = 1, .learn = 4, .rate = 0.01 };
        const muc_scalar *used;
        muc_scalar *stored;
        run r;

        begin(&r, &phases, formats[f]);
        for (unsigned i = 0; i < 6; i++) {
            muc_train_note note;

            CHECK_OK(ctx, muc_train_step(&r.trainer, &note));
        }
        CHECK_OK(ctx, r.trainer.method.prepare(&r.lowbit, 7, r.trainer.weights, &used));
        stored = malloc(r.shape.elements * sizeof(*stored));
        store(&r, r.trainer.weights, stored);
        for (size_t t = 0; t < r.shape.tensor_count; t++)
            assert_memory_equal(used + r.shape.tensors[t].first, stored + r.shape.tensors[t].first,
                                r.shape.tensors[t].elements * sizeof(*used));
        free(stored);
        end(&r, true);
    }
}

static void training_beats_rounding_afterwards(void **state)
{
    const muc_train_phases phases = { .real = STEPS / 7, .learn = STEPS * 11 / 14, .rate = 0.01 };
    const muc_train_phases never = { .real = STEPS, .learn = STEPS };
    const muc_scalar *used;
    muc_scalar *stored;
    double real, rounded, trained;
    run r;

    (void)state;
    begin(&r, &never, MUC_LOWBIT_INT2);
    train(&r);
    stored = malloc(r.shape.elements * sizeof(*stored));
    real = loss_with(&r, r.trainer.weights);
    CHECK_OK(ctx, r.trainer.method.prepare(&r.lowbit, STEPS, r.trainer.weights, &used));
    rounded = loss_with(&r, used);
    end(&r, true);

    begin(&r, &phases, MUC_LOWBIT_INT2);
    train(&r);
    store(&r, r.trainer.weights, stored);
    trained = loss_with(&r, stored);
    free(stored);
    end(&r, true);
    print_message("float32 %.3f, rounded %.3f, trained %.3f\n", real, rounded, trained);
    CHECK(real < rounded);
    CHECK(trained - real < 0.5 * (rounded - real));
}

static void activations_are_rounded_as_the_reference_does(void **state)
{
    const muc_train_phases phases = { 0 };
    const float x[2][5] = { { 1, -2, 0.5f, 0.0079f, 1.999f }, { 0, 0, 0, 0, 0 } };
    float y[2][5];
    const muc_scalar *used;
    run r;

    (void)state;
    begin(&r, &phases, MUC_LOWBIT_INT2);
    memcpy(y, x, sizeof(y));
    CHECK_OK(ctx, r.lowbit.hooks.forward(&r.lowbit, MUC_TRAIN_SITE_FFN, 0, 2, 5, y[0]));
    assert_memory_equal(x, y, sizeof(y)); /* not before rounding has begun */
    CHECK_OK(ctx, r.trainer.method.prepare(&r.lowbit, 0, r.trainer.weights, &used));
    CHECK_OK(ctx, r.lowbit.hooks.forward(&r.lowbit, MUC_TRAIN_SITE_FFN, 0, 2, 5, y[0]));
    for (unsigned i = 0; i < 5; i++) {
        assert_true(y[0][i] == nearbyintf(x[0][i] * (127.0f / 2)) * (2 / 127.0f));
        assert_true(y[1][i] == 0);
    }
    end(&r, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_computed_with_is_what_is_stored),
        cmocka_unit_test(training_beats_rounding_afterwards),
        cmocka_unit_test(activations_are_rounded_as_the_reference_does),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}

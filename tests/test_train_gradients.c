/* test_train_gradients.c - the way back against differences of the way there, in double. */
#include "check.h"

#include <dlfcn.h>

#include "train/pass.h"
#include "train/optimiser.h"

/* Two documents and a hidden start; blocks of attention end within the first. */
enum { ROWS = 75, FIRST = 70, HIDDEN = 9, VOCABULARY = 11 };

typedef struct setup {
    muc_context *ctx;
    muc_train_shape shape;
    muc_train_pass pass;
    muc_train_batch batch;
    muc_train_hooks hooks;
    uint32_t tokens[ROWS], positions[ROWS];
    int32_t targets[ROWS];
    size_t starts[3];
    muc_scalar *weights, *gradients;
} setup;

static muc_model_config config_of(bool qwen, bool tied)
{
    return (muc_model_config){ .architecture = "LlamaForCausalLM",
                               .family = MUC_FAMILY_LLAMA,
                               .dim = 12,
                               .ffn_dim = 10,
                               .layers = 2,
                               .heads = 4,
                               .kv_heads = 2,
                               .head_dim = 4,
                               .vocabulary = VOCABULARY,
                               .context = 80,
                               .norm_epsilon = 1e-5,
                               .rope_theta = 100,
                               .tied = tied,
                               .qkv_bias = qwen,
                               .output_bias = qwen,
                               .head_norm = qwen };
}

static muc_model_config gpt2_config(muc_activation activation, bool tied)
{
    const muc_model_config sizes = config_of(false, tied);
    muc_model_config config;

    muc_config_set_family(&config, MUC_FAMILY_GPT2);
    config.architecture = "GPT2LMHeadModel";
    config.dim = sizes.dim;
    config.ffn_dim = sizes.ffn_dim;
    config.layers = sizes.layers;
    config.heads = config.kv_heads = sizes.heads;
    config.head_dim = sizes.head_dim;
    config.vocabulary = sizes.vocabulary;
    config.context = sizes.context;
    config.norm_epsilon = sizes.norm_epsilon;
    config.tied = tied;
    config.activation = activation;
    return config;
}

static void begin(setup *s, const muc_model_config *config, const uint32_t *heads,
                  const uint32_t *kv_heads, const uint32_t *neurons)
{
    muc_train_random random = { 5 };

    memset(s, 0, sizeof(*s));
    s->ctx = muc_context_new(2);
    CHECK_OK(s->ctx, muc_train_shape_make(s->ctx, config, heads, kv_heads, neurons, &s->shape));
    CHECK_OK(s->ctx, muc_train_pass_make(s->ctx, &s->shape, ROWS, &s->pass));
    s->weights = calloc(s->shape.elements, sizeof(*s->weights));
    s->gradients = calloc(s->shape.elements, sizeof(*s->gradients));
    for (size_t i = 0; i < s->shape.elements; i++)
        s->weights[i] = muc_train_random_normal(&random) * 0.4 + 0.1;
    for (size_t r = 0; r < ROWS; r++) {
        s->tokens[r] = muc_train_random_below(&random, VOCABULARY);
        s->positions[r] = (uint32_t)(r < FIRST ? r : r - FIRST);
        s->targets[r] = r < HIDDEN ? -1 : (int32_t)muc_train_random_below(&random, VOCABULARY);
    }
    s->starts[1] = FIRST;
    s->starts[2] = ROWS;
    s->batch = (muc_train_batch){ .rows = ROWS,
                                  .tokens = s->tokens,
                                  .positions = s->positions,
                                  .targets = s->targets,
                                  .documents = { 2, s->starts },
                                  .weight = 1 };
}

static void end(setup *s)
{
    free(s->weights);
    free(s->gradients);
    muc_train_pass_free(&s->pass);
    muc_train_shape_free(&s->shape);
    muc_context_free(s->ctx);
}

static double loss_at(setup *s, size_t parameter, double change)
{
    muc_scalar kept = s->weights[parameter];
    double loss;

    s->weights[parameter] += change;
    CHECK_OK(s->ctx, muc_train_run(&s->pass, &s->batch, s->weights, NULL, &loss));
    s->weights[parameter] = kept;
    return loss;
}

/* some elements of every tensor */
static void compare(setup *s)
{
    const double h = 5e-4;
    double loss, worst = 0;

    CHECK_OK(s->ctx, muc_train_run(&s->pass, &s->batch, s->weights, s->gradients, &loss));
    for (size_t t = 0; t < s->shape.tensor_count; t++) {
        const muc_train_tensor *tensor = &s->shape.tensors[t];
        double largest = 0;

        for (size_t i = 0; i < tensor->elements; i++)
            largest = fmax(largest, fabs(s->gradients[tensor->first + i]));
        /* without a rotation it adds the same to all of a query's scores */
        if (tensor->id == MUC_LLAMA_K_BIAS && s->shape.config.position != MUC_POSITION_ROPE) {
            CHECK(largest < 1e-12);
            continue;
        }
        CHECK(largest > 0);
        for (size_t i = 0; i < tensor->elements; i += 1 + tensor->elements / 4) {
            size_t at = tensor->first + i;
            double near = loss_at(s, at, h) - loss_at(s, at, -h);
            double far = loss_at(s, at, 2 * h) - loss_at(s, at, -2 * h);
            double slope = (8 * near - far) / (12 * h); /* to the fourth order */
            double error = fabs(slope - s->gradients[at]) / largest;

            if (error > 1e-7)
                fail_msg("%s[%zu]: gradient %.12g, difference %.12g", tensor->name, i,
                         s->gradients[at], slope);
            worst = fmax(worst, error);
        }
    }
    print_message("%zu tensors, largest error %.1e of a tensor's largest gradient\n",
                  s->shape.tensor_count, worst);
}

static void a_llama_with_a_head_of_its_own(void **state)
{
    muc_model_config config = config_of(false, false);
    setup s;

    (void)state;
    begin(&s, &config, NULL, NULL, NULL);
    compare(&s);
    end(&s);
}

static void biases_norms_of_heads_and_a_tied_head(void **state)
{
    muc_model_config config = config_of(true, true);
    setup s;

    (void)state;
    begin(&s, &config, NULL, NULL, NULL);
    compare(&s);
    end(&s);
}

static void layers_of_different_widths(void **state)
{
    static const uint32_t heads[] = { 2, 6 }, kv_heads[] = { 1, 3 }, neurons[] = { 3, 9 };
    muc_model_config config = config_of(false, true);
    setup s;

    (void)state;
    begin(&s, &config, heads, kv_heads, neurons);
    compare(&s);
    end(&s);
}

static void a_gpt2_with_either_gelu(void **state)
{
    static const muc_activation activations[] = { MUC_ACTIVATION_GELU_NEW, MUC_ACTIVATION_GELU };

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        muc_model_config config = gpt2_config(activations[i], i == 0);
        setup s;

        begin(&s, &config, NULL, NULL, NULL);
        CHECK_EQ(s.shape.tensor_count, (i == 0 ? 4 : 5) + 2 * 16);
        compare(&s);
        end(&s);
    }
}

/* an invertible, nonlinear change of what goes into every product: x + x^3 / 8 */
static muc_status bend(void *arg, muc_train_site site, uint32_t layer, size_t rows, size_t columns,
                       muc_scalar *x)
{
    (void)arg;
    (void)site;
    (void)layer;
    for (size_t i = 0; i < rows * columns; i++)
        x[i] += x[i] * x[i] * x[i] / 8;
    return MUC_OK;
}

static muc_status bend_back(void *arg, muc_train_site site, uint32_t layer, size_t rows,
                            size_t columns, const muc_scalar *x, muc_scalar *dx)
{
    (void)arg;
    (void)site;
    (void)layer;
    for (size_t i = 0; i < rows * columns; i++) {
        double before = x[i];

        for (int n = 0; n < 60; n++) /* Newton's root of t + t^3/8 = x */
            before -=
                (before + before * before * before / 8 - x[i]) / (1 + before * before * 0.375);
        dx[i] *= 1 + 3 * before * before / 8;
    }
    return MUC_OK;
}

static void hooks_are_part_of_the_function(void **state)
{
    const muc_train_hooks hooks = { .forward = bend, .back = bend_back };
    muc_model_config config = config_of(false, false);
    double plain, bent;
    setup s;

    (void)state;
    begin(&s, &config, NULL, NULL, NULL);
    plain = loss_at(&s, 0, 0);
    s.pass.hooks = &hooks;
    bent = loss_at(&s, 0, 0);
    CHECK(fabs(plain - bent) > 1e-3);
    compare(&s);
    end(&s);
}

static void gradients_are_added_to_what_is_there(void **state)
{
    muc_model_config config = config_of(false, false);
    muc_scalar *once;
    double loss;
    setup s;

    (void)state;
    begin(&s, &config, NULL, NULL, NULL);
    CHECK_OK(s.ctx, muc_train_run(&s.pass, &s.batch, s.weights, s.gradients, &loss));
    once = malloc(s.shape.elements * sizeof(*once));
    memcpy(once, s.gradients, s.shape.elements * sizeof(*once));
    CHECK_OK(s.ctx, muc_train_run(&s.pass, &s.batch, s.weights, s.gradients, &loss));
    for (size_t i = 0; i < s.shape.elements; i++)
        CHECK(fabs(s.gradients[i] - 2 * once[i]) <= 1e-12 * (1 + fabs(once[i])));
    free(once);
    end(&s);
}

/* the gradient towards a teacher is the mean of those towards every token, as likely as the teacher
 * finds it */
static void a_teacher_is_followed_as_far_as_its_share(void **state)
{
    enum { ROW = 40 };
    const double share = 0.3;
    muc_model_config config = config_of(false, true);
    muc_scalar *expected, *teacher;
    muc_train_guide guide;
    muc_train_pass guiding;
    double loss, plain, sum = 0;
    int32_t target;
    setup s;

    (void)state;
    begin(&s, &config, NULL, NULL, NULL);
    target = s.targets[ROW];
    for (size_t r = 0; r < ROWS; r++)
        s.targets[r] = -1;
    expected = calloc(s.shape.elements, sizeof(*expected));
    teacher = calloc(s.shape.elements, sizeof(*teacher));
    for (size_t i = 0; i < s.shape.elements; i++)
        teacher[i] = 1.5 * s.weights[s.shape.elements - 1 - i];
    for (int32_t token = 0; token < VOCABULARY; token++) {
        double likely;

        s.targets[ROW] = token;
        memset(s.gradients, 0, s.shape.elements * sizeof(*s.gradients));
        CHECK_OK(s.ctx, muc_train_run(&s.pass, &s.batch, teacher, NULL, &loss));
        CHECK_OK(s.ctx, muc_train_run(&s.pass, &s.batch, s.weights, s.gradients, &plain));
        likely = share * exp(-loss) + (token == target ? 1 - share : 0);
        sum += exp(-loss);
        for (size_t i = 0; i < s.shape.elements; i++)
            expected[i] += likely * s.gradients[i];
    }
    CHECK(fabs(sum - 1) < 1e-12);
    s.targets[ROW] = target;
    CHECK_OK(s.ctx, muc_train_run(&s.pass, &s.batch, s.weights, NULL, &plain));
    CHECK_OK(s.ctx, muc_train_pass_make(s.ctx, &s.shape, ROWS, &guiding));
    guide = (muc_train_guide){ &guiding, teacher, share };
    s.pass.guide = &guide;
    memset(s.gradients, 0, s.shape.elements * sizeof(*s.gradients));
    CHECK_OK(s.ctx, muc_train_run(&s.pass, &s.batch, s.weights, s.gradients, &loss));
    CHECK(loss == plain);
    for (size_t i = 0; i < s.shape.elements; i++)
        CHECK(fabs(s.gradients[i] - expected[i]) <= 1e-11 * (1 + fabs(expected[i])));
    muc_train_pass_free(&guiding);
    free(expected);
    free(teacher);
    end(&s);
}

static void documents_do_not_see_each_other(void **state)
{
    muc_model_config config = config_of(false, false);
    double before, after;
    setup s;

    (void)state;
    begin(&s, &config, NULL, NULL, NULL);
    for (size_t r = 0; r < FIRST; r++)
        s.targets[r] = -1; /* only the second document counts */
    CHECK_OK(s.ctx, muc_train_run(&s.pass, &s.batch, s.weights, NULL, &before));
    for (size_t r = 0; r < FIRST; r++)
        s.tokens[r] = (s.tokens[r] + 1) % VOCABULARY;
    CHECK_OK(s.ctx, muc_train_run(&s.pass, &s.batch, s.weights, NULL, &after));
    CHECK(before > 0 && before == after);
    s.tokens[FIRST] = (s.tokens[FIRST] + 1) % VOCABULARY;
    CHECK_OK(s.ctx, muc_train_run(&s.pass, &s.batch, s.weights, NULL, &after));
    CHECK(before != after);
    end(&s);
}

/* Not this processor's, of which there are many, but those of every x86-64 with AVX2 and FMA; and
 * one thread a product, however many the library would start. */
static void products_are_the_same_kernels_on_every_processor(void **state)
{
    static const char core[] = "OPENBLAS_CORETYPE", threads[] = "OPENBLAS_NUM_THREADS";
    char *(*name)(void), *(*build)(void);
    int (*thread_count)(void);
    muc_context *ctx = muc_context_new(1);
    const char *before = getenv(core), *had = getenv(threads);
    void *library, *found;

    (void)state;
    CHECK_OK(ctx, muc_train_open_blas(ctx));
    muc_context_free(ctx);
    CHECK(getenv(core) == before && getenv(threads) == had);
    library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_NOLOAD);
    if (!library)
        skip();
#define FIND(function, symbol) \
    do { \
        found = dlsym(library, symbol); \
        CHECK(found); \
        memcpy(&(function), &found, sizeof(found)); \
    } while (0)
    FIND(name, "openblas_get_corename");
    FIND(build, "openblas_get_config");
    FIND(thread_count, "openblas_get_num_threads");
#undef FIND
    CHECK_EQ(thread_count(), 1);
#ifdef __x86_64__
    if (!before && strstr(build(), "DYNAMIC_ARCH") && __builtin_cpu_supports("avx2") &&
        __builtin_cpu_supports("fma"))
        assert_string_equal(name(), "Haswell");
#endif
    dlclose(library);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_the_same_kernels_on_every_processor),
        cmocka_unit_test(a_llama_with_a_head_of_its_own),
        cmocka_unit_test(biases_norms_of_heads_and_a_tied_head),
        cmocka_unit_test(layers_of_different_widths),
        cmocka_unit_test(a_gpt2_with_either_gelu),
        cmocka_unit_test(hooks_are_part_of_the_function),
        cmocka_unit_test(gradients_are_added_to_what_is_there),
        cmocka_unit_test(a_teacher_is_followed_as_far_as_its_share),
        cmocka_unit_test(documents_do_not_see_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

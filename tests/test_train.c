/* test_train.c - training: what it computes is what the reference computes, and a run is the same
 * bits at any thread count and when it is resumed. */
#include "check.h"

#include "base/file.h"
#include "base/real.h"
#include "train/export.h"
#include "train/prune.h"
#include "train/trainer.h"
#include "train_loss.h"

static char folder[] = "/tmp/muc-train-XXXXXX";
static char path_room[4][128];

static const char *path_of(unsigned slot, const char *name)
{
    snprintf(path_room[slot], sizeof(path_room[slot]), "%s/%s", folder, name);
    return path_room[slot];
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command);
}

/* ---- the way there, against the reference (train_loss.h) ---- */

static void the_loss_is_that_of_the_reference(void **state)
{
    muc_context *ctx = muc_context_new(1);

    (void)state;
    check_loss(ctx, LLAMA);
    check_loss(ctx, QWEN);
    muc_context_free(ctx);
}

static void check_folder(muc_context *ctx, kind k)
{
    muc_checkpoint made, read;
    muc_train_shape shape;
    muc_scalar *weights, *again;

    make_model(ctx, &small, k, &made);
    CHECK_OK(ctx, muc_train_shape_make(ctx, &made.config, NULL, NULL, NULL, &shape));
    weights = malloc(shape.elements * sizeof(*weights));
    again = malloc(shape.elements * sizeof(*again));
    CHECK_OK(ctx, muc_train_import(ctx, &shape, &made, weights));
    CHECK_OK(ctx, muc_train_export(ctx, &shape, weights, path_of(0, "model")));
    CHECK_OK(ctx, muc_checkpoint_open(ctx, path_of(0, "model"), &read));
    CHECK_EQ(read.config.dim, small.dim);
    CHECK_EQ(read.config.head_dim, small.head_dim);
    CHECK_EQ(read.config.kv_heads, k == GPT2 ? small.heads : small.kv_heads);
    CHECK(!read.config.tied && read.config.norm_epsilon == 1e-5);
    CHECK_OK(ctx, muc_train_import(ctx, &shape, &read, again));
    assert_memory_equal(weights, again, shape.elements * sizeof(*weights));
    free(weights);
    free(again);
    muc_checkpoint_close(&read);
    muc_checkpoint_close(&made);
    muc_train_shape_free(&shape);
}

static void a_folder_comes_back_as_it_was_written(void **state)
{
    muc_context *ctx = muc_context_new(1);

    (void)state;
    check_folder(ctx, LLAMA);
    muc_context_free(ctx);
}

/* ---- data ---- */

enum { DOCUMENTS = 40, WINDOW = 16, BATCH = 64 };

/* every token is its place, so that what was cut can be told */
typedef struct places {
    size_t starts[DOCUMENTS + 1];
    uint32_t tokens[DOCUMENTS * 60], silent[DOCUMENTS];
    muc_train_corpus corpus;
} places;

static void fill_places(places *p)
{
    p->starts[0] = 0;
    for (size_t d = 0; d < DOCUMENTS; d++) {
        size_t length = 1 + random_u32() % 59;

        p->silent[d] = (uint32_t)(random_u32() % length);
        p->starts[d + 1] = p->starts[d] + length;
        for (size_t i = p->starts[d]; i < p->starts[d + 1]; i++)
            p->tokens[i] = (uint32_t)i;
    }
    p->corpus = (muc_train_corpus){ DOCUMENTS, p->starts, p->tokens, p->silent };
}

/* how often each token is a target in one epoch */
static void count_targets(muc_context *ctx, muc_train_loader *loader, int *times)
{
    do {
        muc_train_batch batch;
        size_t counted, found = 0;

        CHECK_OK(ctx, muc_train_loader_next(loader, &batch, &counted));
        CHECK(batch.rows > 0 && batch.rows <= BATCH);
        for (size_t d = 0; d < batch.documents.count; d++)
            for (size_t r = batch.documents.starts[d]; r < batch.documents.starts[d + 1]; r++) {
                CHECK_EQ(batch.positions[r], r - batch.documents.starts[d]);
                CHECK(batch.positions[r] < WINDOW);
                if (batch.targets[r] < 0)
                    continue;
                CHECK_EQ(batch.targets[r], batch.tokens[r] + 1);
                times[batch.targets[r]]++;
                found++;
            }
        CHECK_EQ(batch.documents.starts[batch.documents.count], batch.rows);
        CHECK_EQ(found, counted);
    } while (loader->place.next < loader->piece_count);
}

static void an_epoch_predicts_every_token_once(void **state)
{
    muc_context *ctx = muc_context_new(1);
    const muc_train_place place = { .random = { 3 } };
    muc_train_loader loader;
    static places p;

    (void)state;
    fill_places(&p);
    CHECK_OK(ctx, muc_train_loader_make(ctx, &p.corpus, WINDOW, BATCH, &place, &loader));
    for (int epoch = 0; epoch < 3; epoch++) {
        static int times[DOCUMENTS * 60];

        memset(times, 0, sizeof(times));
        count_targets(ctx, &loader, times);
        for (size_t d = 0; d < DOCUMENTS; d++)
            for (size_t i = p.starts[d]; i < p.starts[d + 1]; i++)
                CHECK_EQ(times[i], i > p.starts[d] && i >= p.starts[d] + p.silent[d]);
    }
    muc_train_loader_free(&loader);
    muc_context_free(ctx);
}

static void epochs_come_in_different_orders(void **state)
{
    muc_context *ctx = muc_context_new(1);
    const muc_train_place place = { .random = { 3 } };
    uint32_t first[2][BATCH];
    muc_train_loader loader;
    static places p;

    (void)state;
    fill_places(&p);
    CHECK_OK(ctx, muc_train_loader_make(ctx, &p.corpus, WINDOW, BATCH, &place, &loader));
    for (int epoch = 0; epoch < 2; epoch++) {
        static int times[DOCUMENTS * 60];
        muc_train_batch batch;
        size_t counted;

        CHECK_OK(ctx, muc_train_loader_next(&loader, &batch, &counted));
        memset(first[epoch], 0, sizeof(first[epoch]));
        memcpy(first[epoch], batch.tokens, batch.rows * sizeof(*batch.tokens));
        count_targets(ctx, &loader, times);
    }
    CHECK(memcmp(first[0], first[1], sizeof(first[0])) != 0);
    muc_train_loader_free(&loader);
    muc_context_free(ctx);
}

static void nothing_to_predict_is_refused(void **state)
{
    static const size_t starts[] = { 0, 1, 2 };
    static const uint32_t tokens[] = { 1, 2 };
    const muc_train_corpus corpus = { 2, starts, tokens, NULL };
    const muc_train_place place = { .random = { 3 } };
    muc_context *ctx = muc_context_new(1);
    muc_train_loader loader;

    (void)state;
    CHECK_FAILS(ctx, MUC_MALFORMED, "0 pieces in 2 documents",
                muc_train_loader_make(ctx, &corpus, 4, 8, &place, &loader));
    CHECK_FAILS(ctx, MUC_USAGE, "windows of 9 tokens in batches of 8",
                muc_train_loader_make(ctx, &corpus, 9, 8, &place, &loader));
    muc_context_free(ctx);
}

/* ---- the optimiser ---- */

static void the_rate_climbs_and_falls(void **state)
{
    const muc_train_recipe recipe = {
        .rate = 3e-3, .least_rate = 1.5e-4, .steps = 1100, .warm_up = 100
    };

    (void)state;
    CHECK(fabs(muc_train_rate(&recipe, 0) - 3e-5) < 1e-15);
    CHECK(fabs(muc_train_rate(&recipe, 99) - 3e-3) < 1e-15);
    CHECK(fabs(muc_train_rate(&recipe, 100) - 3e-3) < 1e-15);
    CHECK(fabs(muc_train_rate(&recipe, 600) - (3e-3 + 1.5e-4) / 2) < 1e-15);
    CHECK(fabs(muc_train_rate(&recipe, 1100) - 1.5e-4) < 1e-15);
    CHECK(fabs(muc_train_rate(&recipe, 5000) - 1.5e-4) < 1e-15);
}

/* three updates of a matrix's and a gain's element, by the formula in double */
static void adam_decays_matrices_and_clips(void **state)
{
    const muc_train_recipe recipe = { .rate = 0.01,
                                      .least_rate = 0.01,
                                      .steps = 10,
                                      .warm_up = 0,
                                      .beta1 = 0.9,
                                      .beta2 = 0.95,
                                      .epsilon = 1e-8,
                                      .decay = 0.1,
                                      .clip = 1 };
    muc_context *ctx = muc_context_new(2);
    muc_scalar *weights, *gradients;
    double w[2] = { 0.5, 1 }, m[2] = { 0 }, v[2] = { 0 };
    muc_model_config config;
    muc_checkpoint made;
    muc_train_shape shape;
    muc_train_adam adam;
    size_t at[2];

    (void)state;
    random_checkpoint(ctx, &small, &made);
    config = made.config;
    CHECK_OK(ctx, muc_train_shape_make(ctx, &config, NULL, NULL, NULL, &shape));
    CHECK_OK(ctx, muc_train_adam_make(ctx, shape.elements, &adam));
    weights = calloc(shape.elements, sizeof(*weights));
    gradients = calloc(shape.elements, sizeof(*gradients));
    at[0] = shape.layers[1].at[MUC_LLAMA_DOWN] + 7;
    at[1] = shape.layers[0].at[MUC_LLAMA_FFN_NORM] + 3;
    for (size_t i = 0; i < 2; i++)
        weights[at[i]] = (muc_scalar)w[i];
    for (int step = 1; step <= 3; step++) {
        const double g[2] = { 3.0 / step, -4.0 / step };
        double norm, expected_norm = 5.0 / step, factor = fmin(1, 1 / expected_norm);

        for (size_t i = 0; i < 2; i++)
            gradients[at[i]] = (muc_scalar)g[i];
        CHECK_OK(ctx, muc_train_update(ctx, &shape, &recipe, &adam, gradients, weights, &norm));
        CHECK(fabs(norm - expected_norm) < 1e-6);
        for (size_t i = 0; i < 2; i++) {
            m[i] = 0.9 * m[i] + 0.1 * g[i] * factor;
            v[i] = 0.95 * v[i] + 0.05 * g[i] * factor * g[i] * factor;
            w[i] =
                w[i] * (i == 0 ? 1 - 0.01 * 0.1 : 1) -
                0.01 * (m[i] / (1 - pow(0.9, step))) / (sqrt(v[i] / (1 - pow(0.95, step))) + 1e-8);
            CHECK(fabs(weights[at[i]] - w[i]) < 1e-6);
        }
    }
    gradients[at[0]] = (muc_scalar)INFINITY;
    CHECK_FAILS(ctx, MUC_MALFORMED, "gradients of step 3 are not finite",
                muc_train_update(ctx, &shape, &recipe, &adam, gradients, weights, &(double){ 0 }));
    CHECK_EQ(adam.step, 3);
    free(weights);
    free(gradients);
    muc_train_adam_free(&adam);
    muc_train_shape_free(&shape);
    muc_checkpoint_close(&made);
    muc_context_free(ctx);
}

/* ---- runs ---- */

typedef struct run {
    muc_context *ctx;
    muc_train_shape shape;
    muc_train_trainer trainer;
    uint32_t tokens[3000];
    size_t starts[31];
    muc_train_corpus corpus;
} run;

/* sequences that can be learned: each token is the one before it plus a step of its document's */
static void begin_run(run *r, unsigned threads)
{
    const muc_train_recipe recipe = { .rate = 1e-2,
                                      .least_rate = 1e-3,
                                      .steps = 60,
                                      .warm_up = 4,
                                      .beta1 = 0.9,
                                      .beta2 = 0.95,
                                      .epsilon = 1e-8,
                                      .decay = 0.1,
                                      .clip = 1 };
    const muc_train_place place = { .random = { 11 } };
    muc_train_random random = { 7 };
    muc_checkpoint made;

    r->ctx = muc_context_new(threads);
    random_checkpoint(r->ctx, &small, &made);
    CHECK_OK(r->ctx, muc_train_shape_make(r->ctx, &made.config, NULL, NULL, NULL, &r->shape));
    muc_checkpoint_close(&made);
    for (size_t d = 0; d < 30; d++) {
        r->starts[d + 1] = r->starts[d] + 20 + d * 5;
        for (size_t i = r->starts[d]; i < r->starts[d + 1]; i++)
            r->tokens[i] = (uint32_t)((i - r->starts[d]) * (1 + d % 3) % small.vocabulary);
    }
    r->corpus = (muc_train_corpus){ 30, r->starts, r->tokens, NULL };
    CHECK_OK(r->ctx, muc_train_trainer_make(r->ctx, &r->shape, &recipe, &r->corpus, small.context,
                                            400, &place, &r->trainer));
    muc_train_initialise(&r->shape, &random, r->trainer.weights);
}

static void end_run(run *r)
{
    muc_train_trainer_free(&r->trainer);
    muc_train_shape_free(&r->shape);
    muc_context_free(r->ctx);
}

static double steps(run *r, int count)
{
    muc_train_note note = { 0 };

    for (int i = 0; i < count; i++)
        CHECK_OK(r->ctx, muc_train_step(&r->trainer, &note));
    return note.loss;
}

static uint32_t crc_of(const run *r)
{
    return muc_crc32(0, (const uint8_t *)r->trainer.weights,
                     r->shape.elements * sizeof(*r->trainer.weights));
}

static void a_run_learns(void **state)
{
    double first, last;
    run r = { 0 };

    (void)state;
    begin_run(&r, 2);
    first = steps(&r, 1);
    last = steps(&r, 59);
    print_message("loss %.3f, after 60 steps %.3f\n", first, last);
    CHECK(fabs(first - log(small.vocabulary)) < 0.1);
    CHECK(last < 1);
    end_run(&r);
}

static void the_thread_count_changes_no_bit(void **state)
{
    static const unsigned threads[] = { 1, 2, 3, 7 };
    uint32_t crc = 0;

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(threads); i++) {
        run r = { 0 };

        begin_run(&r, threads[i]);
        steps(&r, 6);
        if (i)
            CHECK_EQ(crc_of(&r), crc);
        crc = crc_of(&r);
        end_run(&r);
    }
}

/* interrupted within an epoch, and after its end */
static void a_resumed_run_is_the_uninterrupted_one(void **state)
{
    run whole = { 0 }, resumed = { 0 };

    (void)state;
    begin_run(&whole, 2);
    steps(&whole, 24);
    CHECK(whole.trainer.loader.place.epoch > 1);
    for (int at = 5; at < 24; at += 8) {
        run before = { 0 };

        begin_run(&before, 2);
        steps(&before, at);
        CHECK_OK(before.ctx, muc_train_trainer_save(&before.trainer, 99, path_of(0, "state")));
        end_run(&before);
        memset(&resumed, 0, sizeof(resumed));
        begin_run(&resumed, 1);
        CHECK_OK(resumed.ctx, muc_train_trainer_load(&resumed.trainer, 99, path_of(0, "state")));
        CHECK_EQ(resumed.trainer.adam.step, at);
        CHECK(crc_of(&resumed) != crc_of(&whole));
        steps(&resumed, 24 - at);
        CHECK_EQ(crc_of(&resumed), crc_of(&whole));
        end_run(&resumed);
    }
    end_run(&whole);
}

static void damaged_and_foreign_states_are_refused(void **state)
{
    static const struct {
        size_t at;
        const char *message;
    } damages[] = {
        { 0, "no state of training" },
        { 8, "no state of training" },
        { 12, "another model's state" },
        { 16, "another model's state" },
        { 56, "other options or data" },
        { 60, "checksum" },
        { 64, "checksum" },
        { 4000, "checksum" },
    };
    const char *path = path_of(0, "state"), *bad = path_of(1, "bad");
    muc_file file;
    uint8_t *bytes;
    run r = { 0 };

    (void)state;
    begin_run(&r, 1);
    steps(&r, 1);
    CHECK_OK(r.ctx, muc_train_trainer_save(&r.trainer, 1, path));
    CHECK_OK(r.ctx, muc_file_open(r.ctx, path, &file));
    bytes = malloc(file.bytes.size);
    for (size_t i = 0; i < MUC_COUNT(damages); i++) {
        memcpy(bytes, file.bytes.data, file.bytes.size);
        bytes[damages[i].at] ^= 1;
        CHECK_OK(r.ctx, muc_file_write(r.ctx, bad, bytes, file.bytes.size));
        CHECK_FAILS(r.ctx, MUC_MALFORMED, damages[i].message,
                    muc_train_trainer_load(&r.trainer, 1, bad));
    }
    memcpy(bytes, file.bytes.data, file.bytes.size);
    CHECK_OK(r.ctx, muc_file_write(r.ctx, bad, bytes, file.bytes.size - 1));
    CHECK_FAILS(r.ctx, MUC_MALFORMED, "another model's",
                muc_train_trainer_load(&r.trainer, 1, bad));
    CHECK_OK(r.ctx, muc_file_write(r.ctx, bad, bytes, 40));
    CHECK_FAILS(r.ctx, MUC_MALFORMED, "no state", muc_train_trainer_load(&r.trainer, 1, bad));
    CHECK_FAILS(r.ctx, MUC_MALFORMED, "other options or data",
                muc_train_trainer_load(&r.trainer, 2, path));
    free(bytes);
    muc_file_close(&file);
    end_run(&r);
}

/* ---- what a method puts in ---- */

typedef struct frozen {
    const run *r;
    muc_scalar *used;
    int prepared, adjusted;
} frozen;

static muc_status half(void *arg, uint64_t step, muc_scalar *weights, const muc_scalar **used)
{
    frozen *f = arg;

    CHECK_EQ(step, f->prepared++);
    for (size_t i = 0; i < f->r->shape.elements; i++)
        f->used[i] = weights[i] / 2;
    *used = f->used;
    return MUC_OK;
}

static muc_status forget(void *arg, uint64_t step, muc_scalar *weights, muc_scalar *gradients)
{
    frozen *f = arg;

    (void)weights;
    CHECK_EQ(step, f->adjusted++);
    gradients[f->r->shape.embed] = 0;
    return MUC_OK;
}

static void a_method_changes_weights_and_gradients(void **state)
{
    run r = { 0 }, plain = { 0 };
    frozen f = { .r = &r };
    double loss;

    (void)state;
    begin_run(&r, 1);
    begin_run(&plain, 1);
    f.used = calloc(r.shape.elements, sizeof(*f.used));
    for (size_t i = 0; i < r.shape.elements; i++)
        plain.trainer.weights[i] /= 2;
    r.trainer.method = (muc_train_method){ .arg = &f, .prepare = half, .adjust = forget };
    loss = steps(&r, 1);
    CHECK(loss == steps(&plain, 1));
    CHECK_EQ(f.prepared, 1);
    CHECK_EQ(f.adjusted, 1);
    CHECK(r.trainer.adam.means[r.shape.embed] == 0);
    CHECK(plain.trainer.adam.means[r.shape.embed] != 0);
    free(f.used);
    end_run(&r);
    end_run(&plain);
}

/* ---- pruning ---- */

typedef struct pruning {
    muc_context *ctx;
    muc_checkpoint made;
    muc_train_shape shape, cut;
    muc_train_trainer trainer;
    muc_train_pruner pruner;
    uint32_t tokens[400];
    size_t starts[5];
    muc_train_corpus corpus;
    muc_scalar *weights; /* of cut */
} pruning;

enum { PRUNE_STEPS = 30, DEAD = 5 };

/* neurons DEAD.. of layer 1, a fifth of them, have no weight going in */
static void kill_neurons(pruning *p)
{
    size_t at = p->shape.layers[1].at[MUC_LLAMA_UP], dim = p->shape.config.dim;

    for (size_t n = DEAD; n < DEAD + 8; n++)
        for (size_t i = 0; i < dim; i++)
            p->trainer.weights[at + n * dim + i] = 0;
}

static void prune(pruning *p, const random_shape *model, kind k, double target)
{
    const muc_train_recipe recipe = { .rate = 1e-4,
                                      .least_rate = 1e-4,
                                      .steps = PRUNE_STEPS,
                                      .beta1 = 0.9,
                                      .beta2 = 0.95,
                                      .epsilon = 1e-8 };
    const muc_train_place place = { .random = { 11 } };

    memset(p, 0, sizeof(*p));
    p->ctx = muc_context_new(2);
    make_model(p->ctx, model, k, &p->made);
    for (size_t d = 0; d < 4; d++)
        p->starts[d + 1] = 80 * (d + 1);
    for (size_t i = 0; i < 320; i++)
        p->tokens[i] = random_u32() % model->vocabulary;
    p->corpus = (muc_train_corpus){ 4, p->starts, p->tokens, NULL };
    CHECK_OK(p->ctx, muc_train_shape_make(p->ctx, &p->made.config, NULL, NULL, NULL, &p->shape));
    CHECK_OK(p->ctx, muc_train_trainer_make(p->ctx, &p->shape, &recipe, &p->corpus, model->context,
                                            320, &place, &p->trainer));
    CHECK_OK(p->ctx, muc_train_import(p->ctx, &p->shape, &p->made, p->trainer.weights));
    CHECK_OK(p->ctx, muc_train_pruner_make(p->ctx, &p->shape, target, PRUNE_STEPS, &p->pruner));
    kill_neurons(p);
    p->trainer.pass.hooks = &p->pruner.hooks;
    p->trainer.method = p->pruner.method;
    for (int i = 0; i < PRUNE_STEPS; i++) {
        muc_train_note note;

        CHECK_OK(p->ctx, muc_train_step(&p->trainer, &note));
    }
    CHECK_OK(p->ctx, muc_train_remove_masked(&p->pruner, p->trainer.weights, &p->cut, &p->weights));
}

static void end_pruning(pruning *p)
{
    free(p->weights);
    muc_train_pruner_free(&p->pruner);
    muc_train_trainer_free(&p->trainer);
    muc_train_shape_free(&p->cut);
    muc_train_shape_free(&p->shape);
    muc_checkpoint_close(&p->made);
    muc_context_free(p->ctx);
}

static double loss_of(pruning *p, const muc_train_shape *shape, const muc_train_hooks *hooks,
                      const muc_scalar *weights)
{
    muc_train_pass pass;
    uint64_t counted;
    double loss;

    CHECK_OK(p->ctx, muc_train_pass_make(p->ctx, shape, 320, &pass));
    pass.hooks = hooks;
    CHECK_OK(p->ctx, muc_train_measure(&pass, &p->corpus, 96, weights, &loss, &counted));
    muc_train_pass_free(&pass);
    return loss / (double)counted;
}

static void check_removal(uint32_t heads, uint32_t kv_heads, kind k)
{
    random_shape model = small;
    double masked, whole, cut;
    pruning p;

    model.heads = heads;
    model.kv_heads = kv_heads;
    prune(&p, &model, k, 0.5);
    masked = loss_of(&p, &p.shape, &p.pruner.hooks, p.trainer.weights);
    whole = loss_of(&p, &p.shape, NULL, p.trainer.weights);
    cut = loss_of(&p, &p.cut, NULL, p.weights);
    print_message("%u heads, %u of keys: loss %.6f, masked %.6f, removed %.6f\n", heads, kv_heads,
                  whole, masked, cut);
    CHECK(fabs(masked - cut) < 1e-6 * cut);
    CHECK(fabs(masked - whole) > 1e-3 * whole);
    end_pruning(&p);
}

static void what_is_removed_had_no_effect_any_more(void **state)
{
    (void)state;
    check_removal(4, 4, LLAMA);
    check_removal(4, 2, LLAMA);
    check_removal(6, 1, LLAMA);
    check_removal(4, 2, QWEN);
}

static void half_of_heads_and_neurons_go_and_groups_stay_whole(void **state)
{
    uint32_t heads = 0, neurons = 0;
    random_shape model = small;
    pruning p;

    (void)state;
    model.heads = 6;
    model.kv_heads = 3;
    prune(&p, &model, LLAMA, 0.5);
    CHECK(muc_train_pruned_share(&p.pruner, false) == 0.5);
    CHECK(muc_train_pruned_share(&p.pruner, true) == 0.5);
    for (size_t l = 0; l < 2; l++) {
        CHECK_EQ(p.cut.layers[l].heads, 2 * p.cut.layers[l].kv_heads);
        heads += p.cut.layers[l].heads;
        neurons += p.cut.layers[l].ffn_dim;
        CHECK(p.cut.layers[l].ffn_dim % 4 == 0);
    }
    CHECK_EQ(heads, 6);
    CHECK_EQ(neurons, 40);
    end_pruning(&p);
}

static void neurons_that_do_nothing_go_first(void **state)
{
    pruning p;
    size_t first;

    (void)state;
    prune(&p, &small, LLAMA, 0.1); /* 8 of 80 */
    first = p.pruner.layers[1].neurons;
    for (size_t n = 0; n < 40; n++)
        CHECK_EQ(p.pruner.scores[first + n] < 0, n >= DEAD && n < DEAD + 8);
    CHECK_EQ(p.cut.layers[0].ffn_dim, 40);
    CHECK_EQ(p.cut.layers[1].ffn_dim, 32);
    end_pruning(&p);
}

static void a_layer_keeps_a_head_and_eight_neurons(void **state)
{
    pruning p;

    (void)state;
    prune(&p, &small, LLAMA, 0.95);
    for (size_t l = 0; l < 2; l++) {
        CHECK_EQ(p.cut.layers[l].kv_heads, 1);
        CHECK_EQ(p.cut.layers[l].heads, 2);
        CHECK_EQ(p.cut.layers[l].ffn_dim, 8);
    }
    end_pruning(&p);
}

/* the folder names each layer's numbers; graph and reference take them */
static void check_sizes(muc_context *ctx, kind k)
{
    static const uint32_t neurons[] = { 40, 23 }, heads[] = { 2, 4 };
    const uint32_t kv_heads[] = { k == GPT2 ? 2 : 1, k == GPT2 ? 4 : 2 };
    muc_train_random random = { 3 };
    int32_t tokens[LENGTH];
    muc_checkpoint made, read;
    muc_train_shape shape;
    muc_scalar *weights;

    make_model(ctx, &small, k, &made);
    CHECK_OK(ctx, muc_train_shape_make(ctx, &made.config, heads, kv_heads, neurons, &shape));
    weights = malloc(shape.elements * sizeof(*weights));
    for (size_t i = 0; i < shape.elements; i++)
        weights[i] = (muc_scalar)(muc_train_random_normal(&random) * 0.2);
    CHECK_OK(ctx, muc_train_export(ctx, &shape, weights, path_of(0, "pruned")));
    CHECK_OK(ctx, muc_checkpoint_open(ctx, path_of(0, "pruned"), &read));
    CHECK_EQ(read.config.ffn_dim, 40);
    CHECK_EQ(read.config.heads, 4);
    for (uint32_t l = 0; l < 2; l++) {
        muc_model_config one = muc_config_of_layer(&read.config, l);

        CHECK_EQ(one.heads, heads[l]);
        CHECK_EQ(one.kv_heads, kv_heads[l]);
        CHECK_EQ(one.ffn_dim, neurons[l]);
    }
    for (size_t i = 0; i < LENGTH; i++)
        tokens[i] = (int32_t)(random_u32() % small.vocabulary);
    CHECK(fabs(reference_loss(ctx, &read, false, tokens) - trained_loss(ctx, &read, tokens)) <
          1e-5);
    /* filled up with zeros it is the same function */
    CHECK(fabs(reference_loss(ctx, &read, true, tokens) - trained_loss(ctx, &read, tokens)) < 1e-5);
    muc_checkpoint_close(&read);
    muc_checkpoint_close(&made);
    free(weights);
    muc_train_shape_free(&shape);
}

static void layers_of_different_sizes_are_read_back(void **state)
{
    muc_context *ctx = muc_context_new(1);

    (void)state;
    check_sizes(ctx, LLAMA);
    muc_context_free(ctx);
}

static void all_of_that_of_a_gpt2(void **state)
{
    muc_context *ctx = muc_context_new(1);

    (void)state;
    check_loss(ctx, GPT2);
    check_folder(ctx, GPT2);
    check_removal(4, 4, GPT2);
    check_sizes(ctx, GPT2);
    muc_context_free(ctx);
}

static void every_allocation_may_fail(void **state)
{
    muc_status status = MUC_NOMEM;
    run r = { 0 };

    (void)state;
    begin_run(&r, 1);
    for (long k = 0; status != MUC_OK; k++) {
        const muc_train_place place = { .random = { 11 } };
        muc_train_trainer trainer;
        muc_train_note note;

        CHECK(k < 200);
        muc_alloc_fail_after(k);
        status = muc_train_trainer_make(r.ctx, &r.shape, &r.trainer.recipe, &r.corpus,
                                        small.context, 400, &place, &trainer);
        if (status == MUC_OK) {
            memcpy(trainer.weights, r.trainer.weights, r.shape.elements * sizeof(muc_scalar));
            status = muc_train_step(&trainer, &note);
            muc_train_trainer_free(&trainer);
        }
        muc_alloc_fail_after(-1);
        CHECK(status == MUC_OK || status == MUC_NOMEM);
        muc_error_clear(r.ctx);
    }
    end_run(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loss_is_that_of_the_reference),
        cmocka_unit_test(a_folder_comes_back_as_it_was_written),
        cmocka_unit_test(an_epoch_predicts_every_token_once),
        cmocka_unit_test(epochs_come_in_different_orders),
        cmocka_unit_test(nothing_to_predict_is_refused),
        cmocka_unit_test(the_rate_climbs_and_falls),
        cmocka_unit_test(adam_decays_matrices_and_clips),
        cmocka_unit_test(a_run_learns),
        cmocka_unit_test(the_thread_count_changes_no_bit),
        cmocka_unit_test(a_resumed_run_is_the_uninterrupted_one),
        cmocka_unit_test(damaged_and_foreign_states_are_refused),
        cmocka_unit_test(a_method_changes_weights_and_gradients),
        cmocka_unit_test(what_is_removed_had_no_effect_any_more),
        cmocka_unit_test(half_of_heads_and_neurons_go_and_groups_stay_whole),
        cmocka_unit_test(neurons_that_do_nothing_go_first),
        cmocka_unit_test(a_layer_keeps_a_head_and_eight_neurons),
        cmocka_unit_test(layers_of_different_sizes_are_read_back),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(all_of_that_of_a_gpt2),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

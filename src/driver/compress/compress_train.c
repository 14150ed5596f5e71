/* compress_train.c - training on the way to few bits: rounded weights learn what the model that was
 * given predicts. The paper's codebooks go through the paper's three phases over one schedule of
 * the rate: a part in float32, the greater part with codebooks that follow the weights, the last
 * with codebooks that learn. Scales learn from the first step on.
 */
#include <stdlib.h>

#include "run/calibration.h"
#include "driver/compress/compress_stages.h"
#include "driver/train/corpus.h"
#include "formats/hf/hf_lowbit.h"
#include "models/llama.h"
#include "train/export.h"
#include "train/quantization_aware.h"

enum { BATCH = 2048, WARM_UP = 20, LONGEST = 512, EPOCHS = 4, MOST_TOKENS = 1 << 20 };

/* How much of what is learned is the teacher's prediction: of a given text, of its own texts, whose
 * tokens say nothing that its predictions do not. */
static const double share_of_data = 0.5, share_of_own = 1;

/* Shares of the steps: the float32 phase's end, the begin of the one in which numbers
 * learn; and their rate. */
typedef struct course {
    double real, learn, rate;
} course;
static const course of_scales = { 0, 0, 5e-3 }, of_codebooks = { 1.0 / 7, 11.0 / 14, 2e-3 };

typedef struct training {
    muc_context *ctx;
    const muc_model *model, *teacher;
    const muc_compress_options *options;
    const muc_graph *graph;
    const muc_lowbit_result *rounded;
    muc_lowbit *formats; /* [shape.tensor_count] */
    muc_compress_trained *out;
    muc_arena arena;
    muc_train_corpus corpus;
    muc_train_shape shape;
    muc_train_recipe recipe;
    muc_train_trainer trainer;
    muc_train_lowbit lowbit;
    muc_train_shape teacher_shape;
    muc_train_pass teacher_pass;
    muc_scalar *teacher_weights; /* malloc'ed */
    muc_train_guide guide;
} training;

/* the model as it was given goes along with every step */
static muc_status join_teacher(training *t, size_t rows)
{
    MUC_TRY(muc_train_shape_make(t->ctx, &t->teacher->checkpoint.config, NULL, NULL, NULL,
                                 &t->teacher_shape));
    MUC_TRY(muc_train_pass_make(t->ctx, &t->teacher_shape, rows, &t->teacher_pass));
    MUC_TRY(MUC_NEW_ARRAY(t->ctx, "compress", t->teacher_shape.elements, &t->teacher_weights));
    MUC_TRY(
        muc_train_import(t->ctx, &t->teacher_shape, &t->teacher->checkpoint, t->teacher_weights));
    t->guide = (muc_train_guide){ &t->teacher_pass, t->teacher_weights,
                                  t->options->data ? share_of_data : share_of_own };
    t->trainer.pass.guide = &t->guide;
    return MUC_OK;
}

/* Its own texts, each token for EPOCHS steps. One that is shorter than it may be ended by itself.
 */
static muc_status write_corpus(training *t, uint64_t rows, size_t window)
{
    const muc_llama_options options = { .context = t->teacher->context };
    uint64_t tokens = t->options->steps * rows / EPOCHS;
    uint32_t longest = window < LONGEST ? (uint32_t)window : LONGEST;
    muc_graph *graph;
    muc_calibration texts;
    muc_status status;

    tokens = tokens > MOST_TOKENS ? MOST_TOKENS : tokens < longest ? longest : tokens;
    MUC_TRY(muc_llama_build(t->ctx, &t->teacher->checkpoint, &options, &graph));
    status = muc_calibration_write(t->ctx, t->teacher, graph, (uint32_t)tokens, longest, &t->arena,
                                   &texts);
    muc_graph_free(graph);
    MUC_TRY(status);
    return muc_corpus_of_texts(t->ctx, t->teacher, &texts, longest, &t->arena, &t->corpus);
}

static const muc_lowbit_matrix *matrix_of(const training *t, size_t tensor)
{
    uint32_t id = muc_graph_find(t->graph, t->shape.tensors[tensor].name);
    const muc_lowbit_matrix *m = t->rounded->matrices;

    while (m->tensor != id)
        m++;
    return m;
}

static muc_status take_formats(training *t)
{
    MUC_TRY(MUC_ARENA_NEW(t->ctx, &t->arena, t->shape.tensor_count, &t->formats));
    for (size_t i = 0; i < t->shape.tensor_count; i++)
        if (t->shape.tensors[i].columns)
            t->formats[i] = matrix_of(t, i)->format;
    return MUC_OK;
}

static bool has_codebooks(const training *t)
{
    bool found = false;

    for (size_t i = 0; i < t->rounded->count; i++)
        found = found || muc_lowbit_get(t->rounded->matrices[i].format)->group;
    return found;
}

static muc_status set_up(training *t)
{
    const muc_compress_options *o = t->options;
    const muc_corpus_options how = { .cases = o->cases, .seed = o->seed };
    const course *c = has_codebooks(t) ? &of_codebooks : &of_scales;
    const muc_train_phases phases = {
        .real = (uint64_t)((double)o->steps * c->real),
        .learn = (uint64_t)((double)o->steps * c->learn),
        .rate = c->rate,
    };
    uint64_t rows = o->batch ? o->batch : BATCH;
    size_t window = o->window ? o->window : t->model->context;
    muc_train_random random = { o->seed };
    muc_train_place place = { 0 };

    t->recipe = (muc_train_recipe){
        .rate = o->rate > 0 ? o->rate : 1e-3,
        .least_rate = 0.05 * (o->rate > 0 ? o->rate : 1e-3),
        .steps = o->steps,
        .warm_up = o->steps / 10 < WARM_UP ? o->steps / 10 : WARM_UP,
        .beta1 = 0.9,
        .beta2 = 0.95,
        .epsilon = 1e-8,
        .decay = 0.1,
        .clip = 1,
    };
    place.random.state = muc_train_random_next(&random);
    window = window < rows ? window : rows;
    if (o->data)
        MUC_TRY(muc_corpus_read(t->ctx, t->model, o->data, &how, &t->arena, &t->corpus));
    else
        MUC_TRY(write_corpus(t, rows, window));
    MUC_TRY(
        muc_train_shape_make(t->ctx, &t->model->checkpoint.config, NULL, NULL, NULL, &t->shape));
    MUC_TRY(muc_train_trainer_make(t->ctx, &t->shape, &t->recipe, &t->corpus, window, rows, &place,
                                   &t->trainer));
    MUC_TRY(muc_train_import(t->ctx, &t->shape, &t->model->checkpoint, t->trainer.weights));
    MUC_TRY(take_formats(t));
    MUC_TRY(muc_train_lowbit_make(t->ctx, &t->shape, &t->recipe, &phases, t->formats, &t->lowbit));
    muc_train_lowbit_join(&t->lowbit, &t->trainer);
    return join_teacher(t, rows);
}

static muc_status run(training *t)
{
    uint64_t steps = t->options->steps;

    for (uint64_t i = 0; i < steps; i++) {
        muc_train_note note;

        MUC_TRY(muc_train_step(&t->trainer, &note));
        t->out->tokens += note.tokens;
        muc_progress(t->ctx, "training", i + 1, steps);
    }
    return MUC_OK;
}

/* what was trained, as tensors of float32 */
static muc_status take_tensors(training *t)
{
    muc_compress_trained *out = t->out;
    muc_scalar *weights;

    MUC_TRY(MUC_ARENA_NEW(t->ctx, out->arena, t->shape.elements, &weights));
    memcpy(weights, t->trainer.weights, t->shape.elements * sizeof(*weights));
    MUC_TRY(MUC_ARENA_NEW(t->ctx, out->arena, t->shape.tensor_count, &out->tensors));
    for (size_t i = 0; i < t->shape.tensor_count; i++) {
        const muc_train_tensor *tensor = &t->shape.tensors[i];
        const muc_tensor_view *view = muc_checkpoint_find(&t->model->checkpoint, tensor->name);

        out->tensors[i] = *view;
        out->tensors[i].dtype = MUC_F32;
        out->tensors[i].data = (const uint8_t *)(weights + tensor->first);
        MUC_TRY(muc_tensor_measure(t->ctx, &out->tensors[i]));
    }
    out->tensor_count = t->shape.tensor_count;
    return MUC_OK;
}

static muc_status take_matrix(training *t, size_t tensor)
{
    const muc_train_tensor *from = &t->shape.tensors[tensor];
    muc_lowbit_result *result = &t->out->quantized;
    muc_lowbit_matrix *m = &result->matrices[result->count++];
    size_t bytes, numbers;

    *m = (muc_lowbit_matrix){ .tensor = matrix_of(t, tensor)->tensor,
                              .format = t->formats[tensor],
                              .n = from->rows,
                              .k = from->columns };
    bytes = muc_lowbit_code_bytes(m->format, m->k);
    numbers = muc_lowbit_numbers(m->format, m->k);
    MUC_TRY(MUC_ARENA_NEW(t->ctx, t->out->arena, m->n * bytes, &m->codes));
    MUC_TRY(MUC_ARENA_NEW(t->ctx, t->out->arena, m->n * numbers, &m->numbers));
    for (uint32_t r = 0; r < m->n; r++)
        muc_train_lowbit_row(&t->lowbit, tensor, r, t->trainer.weights, m->codes + r * bytes,
                             m->numbers + r * numbers);
    return MUC_OK;
}

static muc_status take_matrices(training *t)
{
    MUC_TRY(
        MUC_ARENA_NEW(t->ctx, t->out->arena, t->shape.tensor_count, &t->out->quantized.matrices));
    for (size_t i = 0; i < t->shape.tensor_count; i++)
        if (t->shape.tensors[i].columns)
            MUC_TRY(take_matrix(t, i));
    return MUC_OK;
}

muc_status muc_compress_train(muc_context *ctx, const muc_model *model, const muc_model *teacher,
                              const muc_graph *graph, const muc_compress_options *options,
                              const muc_lowbit_result *rounded, muc_compress_trained *out)
{
    training t = { ctx, model, teacher, options, graph, rounded, .out = out };
    muc_status status = set_up(&t);

    if (status == MUC_OK)
        status = run(&t);
    if (status == MUC_OK)
        status = take_tensors(&t);
    if (status == MUC_OK)
        status = take_matrices(&t);
    free(t.teacher_weights);
    muc_train_pass_free(&t.teacher_pass);
    muc_train_shape_free(&t.teacher_shape);
    muc_train_lowbit_free(&t.lowbit);
    muc_train_trainer_free(&t.trainer);
    muc_train_shape_free(&t.shape);
    muc_arena_free(&t.arena);
    return status;
}

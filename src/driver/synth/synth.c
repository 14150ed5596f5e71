/* synth.c - writes a folder with the shape of a published model and random weights: muc synth. */
#include "muc/synth.h"

#include <stdlib.h>
#include <string.h>

#include "base/choice.h"
#include "base/json.h"
#include "base/locale.h"
#include "base/output_folder.h"
#include "base/threads.h"
#include "driver/synth/synth_weights.h"
#include "formats/hf/hf_config.h"
#include "formats/hf/hf_tensors.h"
#include "formats/hf/save_checkpoint.h"
#include "report/report_builder.h"
#include "text/learn.h"

enum { PIECE_BYTES = 1 << 22, PIECES = 512, BLOCK_ROWS = 16 };

static const struct shape {
    const char *name, *config;
} shapes[] = {
#define MUC_SHAPE(name, config) { name, config },
#include "driver/synth/shapes.def"
};

/* What the tokenizer is made for: words that any text has. */
static const char words[] =
    "Once upon a time there was a little girl who lived in a house near the forest with her mother "
    "and her father. Every day she went to play in the park, and she saw the birds, the trees and "
    "the big blue sky. One day the little girl said to her mother, can we go to the lake today? "
    "Yes, said her mother, but first we have to find your hat. They looked in the house and in the "
    "garden, and there it was, in the tree. The girl was very happy. She put the hat on her head "
    "and they went to the lake together. There they saw a boat, and a man who was in the boat said "
    "hello to them. The girl said hello to him, too. Then the sun went down and they went home.";

typedef struct synth {
    muc_context *ctx;
    const muc_synth_options *options;
    muc_checkpoint checkpoint; /* its configuration, and the arena of all */
    json_t *config;
    muc_synth_tensor *tensors; /* [count] */
    muc_tensor_view *views;    /* [count] */
    size_t count, capacity, view_capacity;
    uint64_t parameters;
    /* what is written next */
    muc_text head;
    bool head_is_out;
    size_t tensor;
    uint32_t row;
    uint64_t done;
    uint16_t *piece; /* PIECE_BYTES, or a row if that is more */
} synth;

/* ---- the configuration ---- */

static muc_status read_config_file(synth *s, const char *path)
{
    muc_status status;
    muc_file file;

    MUC_TRY(muc_file_open(s->ctx, path, &file));
    status = muc_json_parse(s->ctx, file.bytes, 0, &s->config);
    muc_file_close(&file);
    return status;
}

static muc_status find_shape(synth *s)
{
    const char *name = s->options->shape;
    size_t size = strlen(name);
    muc_choice choice;

    if (size > 5 && strcmp(name + size - 5, ".json") == 0)
        return read_config_file(s, name);
    for (size_t i = 0; i < MUC_COUNT(shapes); i++)
        if (strcmp(name, shapes[i].name) == 0) {
            const char *text = shapes[i].config;

            return muc_json_parse(s->ctx, (muc_bytes){ (const uint8_t *)text, strlen(text), name },
                                  0, &s->config);
        }
    muc_choice_begin(&choice, name, size);
    for (size_t i = 0; i < MUC_COUNT(shapes); i++)
        muc_choice_add(&choice, shapes[i].name);
    return muc_choice_refuse(s->ctx, &choice, MUC_USAGE, "--shape", "shape");
}

static muc_status read_back(synth *s)
{
    char *text = json_dumps(s->config, JSON_COMPACT);
    muc_status status;

    if (!text)
        return muc_fail_nomem(s->ctx, "config.json", 0);
    s->checkpoint.path = s->options->shape;
    status = muc_hf_read_config(
        s->ctx, (muc_bytes){ (const uint8_t *)text, strlen(text), s->options->shape },
        &s->checkpoint);
    free(text);
    return status;
}

/* The tokenizer's tokens, the type of the weights, and the number of layers if that is asked for.
 */
static muc_status settle_config(synth *s)
{
    const muc_model_config *config = &s->checkpoint.config;
    bool failed;

    if (!json_is_object(s->config))
        return muc_fail(s->ctx, MUC_MALFORMED, s->options->shape, MUC_NO_OFFSET,
                        "is not an object");
    failed = json_object_set_new(s->config, "bos_token_id", json_integer(1)) != 0 ||
             json_object_set_new(s->config, "eos_token_id", json_integer(2)) != 0 ||
             json_object_set_new(s->config, "torch_dtype", json_string("bfloat16")) != 0;
    MUC_TRY(read_back(s)); /* the family says what its key of layers is called */
    if (s->options->layers) {
        json_object_del(s->config, "layer_types");
        failed |= json_object_set_new(s->config, muc_hf_keys_of(config->family)->layers,
                                      json_integer(s->options->layers)) != 0;
        MUC_TRY(read_back(s));
    }
    if (failed)
        return muc_fail_nomem(s->ctx, "config.json", 0);
    return muc_checkpoint_check_config(s->ctx, &s->checkpoint);
}

/* ---- the tensors ---- */

static muc_status add_tensor(synth *s, unsigned id, uint32_t layer)
{
    const muc_model_config all = s->checkpoint.config;
    const muc_model_config config = muc_config_of_layer(&all, layer);
    const muc_llama_tensor facts = muc_llama_tensor_of(&config, id);
    bool is_vector = facts.dims[1] == 0;
    muc_synth_tensor tensor = {
        .id = id,
        .layer = layer,
        .layers = all.layers,
        .rows = is_vector ? 1 : facts.dims[0],
        .columns = is_vector ? facts.dims[0] : facts.dims[1],
        .is_vector = is_vector,
        .channels = muc_synth_seed(s->options->seed, 0),
    };
    const char *pattern = muc_hf_stored_name(&all, id, &tensor.less_one);
    muc_tensor_view view = {
        .dtype = MUC_BF16,
        .rank = is_vector ? 1 : 2,
        .dims = { facts.dims[0], facts.dims[1] },
        .file = "model.safetensors",
    };

    if (!pattern)
        return muc_fail(s->ctx, MUC_UNSUPPORTED, s->options->shape, MUC_NO_OFFSET,
                        "folders of %s store tensors together or transposed, which muc synth does "
                        "not write",
                        all.architecture);
    MUC_TRY(muc_arena_format(s->ctx, &s->checkpoint.arena, &tensor.name, pattern, layer));
    /* by its name, so that tensors of other families change nothing */
    tensor.seed =
        muc_synth_seed(s->options->seed, UINT64_C(1) + muc_crc32(0, (const uint8_t *)tensor.name,
                                                                 strlen(tensor.name)));
    view.name = tensor.name;
    MUC_TRY(muc_tensor_measure(s->ctx, &view));
    MUC_TRY(MUC_ARENA_GROW(s->ctx, &s->checkpoint.arena, s->count + 1, &s->capacity, &s->tensors));
    MUC_TRY(
        MUC_ARENA_GROW(s->ctx, &s->checkpoint.arena, s->count + 1, &s->view_capacity, &s->views));
    s->tensors[s->count] = tensor;
    s->views[s->count++] = view;
    s->parameters += view.elements;
    return MUC_OK;
}

static muc_status list_tensors(synth *s)
{
    const muc_model_config *config = &s->checkpoint.config;

    for (unsigned id = 0; id < MUC_LLAMA_TENSOR_COUNT; id++) {
        const muc_llama_tensor facts = muc_llama_tensor_of(config, id);
        bool is_there = facts.present && !muc_hf_is_left_out(config, id);

        for (uint32_t layer = 0; is_there && layer < (facts.per_layer ? config->layers : 1);
             layer++)
            MUC_TRY(add_tensor(s, id, layer));
    }
    return MUC_OK;
}

/* ---- the weights ---- */

typedef struct block {
    const muc_synth_tensor *tensor;
    uint32_t first, count; /* rows */
    uint16_t *out;
} block;

static muc_status make_rows(void *arg, size_t i)
{
    const block *b = arg;
    uint32_t first = (uint32_t)i * BLOCK_ROWS;

    for (uint32_t r = first; r < b->count && r < first + BLOCK_ROWS; r++)
        muc_synth_row(b->tensor, b->first + r, b->out + (size_t)r * b->tensor->columns);
    return MUC_OK;
}

static bool next_head(synth *s, const void **data, size_t *size)
{
    if (s->head_is_out)
        return false;
    s->head_is_out = true;
    *data = s->head.data;
    *size = s->head.size;
    return true;
}

/* The file piece by piece: its head, then rows of one tensor after the other. */
static muc_status next_piece(void *arg, const void **data, size_t *size)
{
    synth *s = arg;
    const muc_synth_tensor *t;
    uint32_t most;
    block b;

    *size = 0;
    if (next_head(s, data, size) || s->tensor == s->count)
        return MUC_OK;
    t = &s->tensors[s->tensor];
    most = (uint32_t)(PIECE_BYTES / sizeof(*s->piece) / t->columns);
    most = most ? most : 1;
    b = (block){ t, s->row, t->rows - s->row < most ? t->rows - s->row : most, s->piece };
    MUC_TRY(muc_parallel_for(s->ctx, (b.count + BLOCK_ROWS - 1) / BLOCK_ROWS, make_rows, &b));
    s->row += b.count;
    if (s->row == t->rows) {
        s->row = 0;
        s->tensor++;
    }
    *data = s->piece;
    *size = (size_t)b.count * t->columns * sizeof(*s->piece);
    s->done += *size / sizeof(*s->piece);
    muc_progress(s->ctx, "weights", s->done, s->parameters);
    return MUC_OK;
}

/* ---- the folder ---- */

static muc_status write_config(synth *s, muc_folder *folder)
{
    char *text = json_dumps(s->config, JSON_INDENT(2));
    muc_status status;

    if (!text)
        return muc_fail_nomem(s->ctx, "config.json", 0);
    status = muc_folder_write(folder, "config.json", text, strlen(text));
    free(text);
    return status;
}

static muc_status write_tokenizer(synth *s, muc_folder *folder)
{
    const muc_string_view document = { words, sizeof(words) - 1 };
    uint32_t vocabulary = s->checkpoint.config.vocabulary;
    muc_text json = { 0 };
    muc_status status;

    if (vocabulary < MUC_LEARN_LEAST_PIECES)
        return MUC_OK;
    status =
        muc_tokenizer_learn(s->ctx, &document, 1, vocabulary < PIECES ? vocabulary : PIECES, &json);
    return muc_folder_write_text(folder, "tokenizer.json", status, &json);
}

static muc_status write_weights(synth *s, muc_folder *folder)
{
    size_t longest = PIECE_BYTES / sizeof(*s->piece);

    for (size_t i = 0; i < s->count; i++)
        longest = s->tensors[i].columns > longest ? s->tensors[i].columns : longest;
    MUC_TRY(muc_safetensors_print_head(s->ctx, s->views, s->count, &s->head));
    MUC_TRY(MUC_NEW_ARRAY(s->ctx, "weights", longest, &s->piece));
    return muc_folder_write_pieces(folder, "model.safetensors", next_piece, s);
}

static muc_status write_folder(synth *s, const char *path)
{
    muc_folder *folder;
    muc_status status;

    MUC_TRY(muc_folder_begin(s->ctx, path, &folder));
    status = write_config(s, folder);
    if (status == MUC_OK)
        status = write_tokenizer(s, folder);
    if (status == MUC_OK)
        status = write_weights(s, folder);
    return muc_folder_end(folder, status, NULL, NULL);
}

static muc_status report_synth(const synth *s, const char *path, muc_report **out)
{
    MUC_TRY(muc_report_new(s->ctx, out));
    muc_report_add_text(*out, "file", "%s", path);
    muc_report_add_text(*out, "shape", "%s", s->options->shape);
    muc_report_add_count(*out, "seed", s->options->seed);
    muc_report_add_count(*out, "parameters", s->parameters);
    muc_report_add_count(*out, "bytes", s->parameters * sizeof(*s->piece));
    muc_report_add_count(*out, "layers", s->checkpoint.config.layers);
    return muc_report_status(s->ctx, *out);
}

muc_status muc_synth(muc_context *ctx, const muc_synth_options *options, const char *out_path,
                     muc_report **out)
{
    MUC_IN_C_LOCALE;

    synth s = { .ctx = ctx, .options = options };
    muc_status status = muc_folder_precheck(ctx, out_path);

    if (status == MUC_OK)
        status = find_shape(&s);
    if (status == MUC_OK)
        status = settle_config(&s);
    if (status == MUC_OK)
        status = list_tensors(&s);
    if (status == MUC_OK)
        status = write_folder(&s, out_path);
    if (status == MUC_OK)
        status = report_synth(&s, out_path, out);
    json_decref(s.config);
    free(s.piece);
    muc_text_free(&s.head);
    muc_checkpoint_close(&s.checkpoint);
    return status;
}

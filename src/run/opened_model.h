/* opened_model.h - what muc_model_open found. */
#ifndef MUC_RUN_MODEL_H
#define MUC_RUN_MODEL_H

#include "base/file.h"
#include "formats/network.h"
#include "mur_tokenizer.h"
#include "muc/model.h"
#include "passes/unify/unify.h"
#include "quant/bdt.h"

typedef enum muc_model_kind {
    MUC_MODEL_CHECKPOINT,
    MUC_MODEL_BLOCKS,
    MUC_MODEL_NETWORK,
    MUC_MODEL_COMPILED, /* a language model as a target made it */
} muc_model_kind;

enum { MUC_MODEL_MAX_ENDS = 3 };

/* Tokens with a meaning; UINT32_MAX where there is none. Stored in .bdt files as it is. */
typedef struct muc_model_tokens {
    uint32_t begin, ends[MUC_MODEL_MAX_ENDS];
} muc_model_tokens;

struct muc_engine_kind; /* run/engine.h */
struct muc_target;      /* targets/target.h */

struct muc_model {
    muc_model_kind kind;
    bool may_list;    /* a NETWORK that lacks operators opens as a listing, for muc_inspect_file */
    const char *path; /* in the arena, as all that has no other home */
    muc_arena arena;
    muc_checkpoint checkpoint; /* of a CHECKPOINT */
    muc_file file;             /* of the others, unless they are folders, but a NETWORK */
    muc_network network;       /* of a NETWORK */
    muc_unified unified;       /* of several exports; its graph is the first, whose constants
                                  network's, that of all, borrows */
    const char *options;       /* of a NETWORK: those that decide what its graph is, as written */
    const char *one_sample;    /* of muc_model_one_sample */
    muc_network_options how;   /* to open an export again */
    const char **exports;      /* their files, [unified.export_count] */
    muc_tensor_view *arrays;   /* that were given with it, in the arena */
    size_t array_count;
    const char *image;            /* what was done to the picture that the array was; or NULL */
    uint32_t text_tokens;         /* of the text that the arrays were, or 0 */
    muc_tensor_view *calibration; /* that made it int8, in the arena */
    size_t calibration_count;
    muc_bdt blocks;                           /* of BLOCKS */
    const struct muc_target *target;          /* that made it, of COMPILED */
    void *compiled;                           /* of COMPILED: what its target opened */
    void (*release)(struct muc_model *model); /* of that; NULL: it is in the arena */
    const struct muc_engine_kind *engine;     /* how it continues text; NULL: it does not */
    double bits_per_weight;                   /* of COMPILED; 0: not told */
    muc_model_tokens tokens;
    const uint8_t *tokenizer_form;
    size_t tokenizer_bytes; /* 0: the model has no tokenizer */
    mur_tokenizer tokenizer;
    uint32_t context;            /* positions that it is run or compiled for */
    const char *prompt_template; /* with one "{prompt}" in it, or NULL */
};

/* As muc_model_open; may_list: a network with operators that muc does not have opens as a listing.
 */
muc_status muc_model_open_to_list(muc_context *ctx, const char *path,
                                  const muc_model_options *options, bool may_list, muc_model **out);
/* What is to be trained: the configuration at path (a config.json) and a tokenizer, the one given
 * or the one beside it, without weights. vocabulary: in place of the configuration's, whose special
 * tokens become the tokenizer's; 0: as it is. */
muc_status muc_model_open_untrained(muc_context *ctx, const char *path, const char *tokenizer,
                                    uint32_t vocabulary, muc_model **out);

/* Fills tokenizer_form from a file (NULL: what the checkpoint stores, if it does); pieces: the most
 * that the model has. */
muc_status muc_model_compile_tokenizer(muc_context *ctx, muc_model *model, const char *path,
                                       uint32_t pieces);
/* The tokens with a meaning, by the checkpoint's configuration and its tokenizer. */
void muc_model_set_tokens(muc_model *model);
/* Opens the tokenizer of a file that carries its own, or none: then the one that is given (or
 * NULL), of at most so many pieces. */
muc_status muc_model_open_carried(muc_context *ctx, muc_model *model, const char *given,
                                  uint32_t pieces);
/* The tokenizer in tokenizer_form, if there is one, is checked and opened. */
muc_status muc_model_open_tokenizer(muc_context *ctx, muc_model *model);
/* asked: positions, 0: as many as there are; MUC_USAGE if that is more than `most`. */
muc_status muc_model_set_context(muc_context *ctx, muc_model *model, uint32_t asked, uint32_t most);

/* Takes a copy of a prompt template, after checking it; source is for messages. */
muc_status muc_model_set_template(muc_context *ctx, muc_model *model, const char *source,
                                  const char *text, size_t size);

/* What of a tokenizer is to be copied, and under which names a model's folder has it. */
typedef struct muc_tokenizer_files {
    size_t count;
    struct {
        const char *path, *name;
    } files[2];
} muc_tokenizer_files;

/* path: of its file, or of its first. In the arena. */
muc_status muc_tokenizer_files_of(muc_context *ctx, const char *path, muc_arena *arena,
                                  muc_tokenizer_files *out);

/* Fails with MUC_USAGE if the model has no tokenizer, telling how to give one. */
muc_status muc_model_need_tokenizer(muc_context *ctx, const muc_model *model);

/* The prompt as the model was trained to see it, arena-owned; raw: as it is. */
muc_status muc_model_dress_prompt(muc_context *ctx, const muc_model *model, muc_arena *arena,
                                  const char *prompt, bool raw, const char **out);

/* Adds the key "tokenizer": pieces and checksum. */
void muc_model_add_tokenizer(muc_report *report, const muc_model *model);

/* True if the token ends a text. */
bool muc_model_is_end(const muc_model *model, uint32_t token);

#endif

/* format.h - the contract of a reader of checkpoints, and what readers share. */
#ifndef MUC_FORMAT_H
#define MUC_FORMAT_H

#include "base/file.h"
#include "formats/checkpoint.h"

enum { MUC_MAX_TENSORS = 65536, MUC_MAX_STRING = 65536, MUC_MAX_VOCABULARY = 1 << 20 };

/* What a user pointed at: a folder (bytes empty) or a mapped file. */
typedef struct muc_source {
    const char *path;
    bool is_folder;
    muc_bytes bytes;
    const char *folder; /* of a network: where files that it refers to lie; NULL: nowhere */
} muc_source;

/* True if the content looks like this format; reads a few bytes only. */
typedef bool muc_format_probe(const muc_source *source);
/* Adds all tensors and fills config; what concerns every format (order of tensors, checks of the
 * configuration and of shapes, order of q and k rows) is done by muc_checkpoint_finish after it. */
typedef muc_status muc_format_read(muc_context *ctx, const muc_source *source,
                                   muc_checkpoint *checkpoint);

typedef struct muc_format {
    const char *name, *meaning;
    muc_format_probe *probe;
    muc_format_read *read;
} muc_format;

/* The registry, in the order in which files are probed. */
extern const muc_format muc_formats[];
extern const size_t muc_format_count;

#define MUC_FORMAT(name, meaning) \
    muc_format_probe muc_##name##_probe; \
    muc_format_read muc_##name##_read;
#include "formats/registry.def"
#undef MUC_FORMAT

/* Files that are mapped as long as what was read from them lives; NULL is an empty list. Nodes
 * live in arena. */
muc_status muc_mapped_open(muc_context *ctx, muc_arena *arena, muc_mapped_file **list,
                           const char *path, muc_bytes *out);
/* The same for a path found in a file of the model's folder; see muc_file_open_beneath. */
muc_status muc_mapped_open_beneath(muc_context *ctx, muc_arena *arena, muc_mapped_file **list,
                                   const char *folder, const char *path, const char *owner,
                                   muc_bytes *out);
/* muc_file_rest of whichever file has these bytes; none may. */
void muc_mapped_rest(const muc_mapped_file *list, const uint8_t *data, size_t bytes);
void muc_mapped_close(muc_mapped_file *list);

/* Maps a file that lives as long as the checkpoint. */
muc_status muc_checkpoint_map(muc_context *ctx, muc_checkpoint *checkpoint, const char *path,
                              muc_bytes *out);
/* The same for a path found in a file of the model's folder; see muc_file_open_beneath. */
muc_status muc_checkpoint_map_beneath(muc_context *ctx, muc_checkpoint *checkpoint,
                                      const char *folder, const char *path, muc_bytes *out);

/* Appends a copy of view; its pointers must live as long as the checkpoint. */
muc_status muc_checkpoint_add(muc_context *ctx, muc_checkpoint *checkpoint,
                              const muc_tensor_view *view);

/* Fills elements and bytes from dtype and dims, or fails naming the tensor. */
muc_status muc_tensor_measure(muc_context *ctx, muc_tensor_view *view);

/* Makes config the row of families.def: what the family decides; all else is 0. */
void muc_config_set_family(muc_model_config *config, muc_family family);

/* Holds every number of config against its limits. muc_checkpoint_finish does it too; a reader
 * whose layout follows from the configuration does it before. */
muc_status muc_checkpoint_check_config(muc_context *ctx, const muc_checkpoint *checkpoint);

/* Fills config from the config.json at checkpoint->path, and tokenizer_path from its folder. */
muc_status muc_hf_read_config_file(muc_context *ctx, muc_checkpoint *checkpoint);

/* Sorts the tensors by name, so that muc_checkpoint_find works; two of one name are refused. */
muc_status muc_checkpoint_sort(muc_context *ctx, muc_checkpoint *checkpoint);

/* Makes a filled checkpoint what checkpoint.h promises: sorts the tensors, refuses two of one
 * name, decides whether the head is tied, checks config, finds every tensor that config asks for
 * with its shape and no other, and brings the rows of q and k into rotate-half order. */
muc_status muc_checkpoint_finish(muc_context *ctx, muc_checkpoint *checkpoint);

/* One tensor of the Llama family; dims[1] is 0 for a vector. */
typedef struct muc_llama_tensor {
    const char *hf, *gguf; /* format strings; of one %u, the layer, if per_layer */
    bool per_layer, present;
    uint32_t dims[2];
} muc_llama_tensor;

enum {
#define MUC_LLAMA_TENSOR(id, each, hf, gguf, rows, columns, when) MUC_LLAMA_##id,
#include "formats/llama_tensors.def"
#undef MUC_LLAMA_TENSOR
    MUC_LLAMA_TENSOR_COUNT
};

/* The row's facts for a model of this configuration. */
muc_llama_tensor muc_llama_tensor_of(const muc_model_config *config, unsigned id);
/* The canonical name, arena-owned; layer is ignored where the tensor exists once. */
muc_status muc_llama_tensor_name(muc_context *ctx, muc_arena *arena, unsigned id, uint32_t layer,
                                 const char **out);

enum { MUC_FUSED_PARTS = 3 };

/* Which of q, k and v (or of their biases) is part 0, 1, 2 of a tensor that holds all. */
unsigned muc_fused_part(bool is_matrix, unsigned part);
/* Adds the three parts of a matrix [q + k + v, in] or a vector [q + k + v] by the sizes of config,
 * which was checked. Fails with MUC_MALFORMED if it has not their rows. */
muc_status muc_checkpoint_add_fused(muc_context *ctx, muc_checkpoint *checkpoint,
                                    const muc_tensor_view *fused, uint32_t layer);

#endif

/* hf.c - reads a Hugging Face folder: config.json, weights whole or in shards, a tokenizer beside
 * them.
 *
 * A path to one .safetensors file stands for its folder, with the weights of that file alone.
 */
#include <string.h>

#include "base/json.h"
#include "formats/format.h"
#include "formats/hf/hf_config.h"
#include "formats/hf/hf_tensors.h"
#include "formats/hf/hf_lowbit.h"
#include "formats/hf/hf_packed.h"
#include "formats/hf/safetensors.h"
#include "formats/state_dict.h"

enum { MAX_SHARDS = 1024 };

static const char config_name[] = "config.json";
/* in the order in which they are looked for */
static const struct weights {
    const char *name;
    bool is_index;
} weights[] = {
    { "model.safetensors", false },
    { "model.safetensors.index.json", true },
    { "pytorch_model.bin", false },
    { "pytorch_model.bin.index.json", true },
};

bool muc_hf_probe(const muc_source *source)
{
    return source->is_folder || muc_safetensors_probe(source->bytes);
}

/* of a file */
static muc_status folder_of(muc_context *ctx, const char *path, muc_arena *arena, const char **out)
{
    const char *slash = strrchr(path, '/');

    *out = ".";
    return slash ? muc_arena_string(ctx, arena, path, (size_t)(slash - path) + 1, out) : MUC_OK;
}

static muc_status path_in(muc_context *ctx, muc_arena *arena, const char *folder, const char *name,
                          const char **out)
{
    const char *separator = folder[strlen(folder) - 1] == '/' ? "" : "/";

    return muc_arena_format(ctx, arena, out, "%s%s%s", folder, separator, name);
}

static muc_status read_config(muc_context *ctx, const char *folder, muc_checkpoint *checkpoint)
{
    const char *path;
    muc_bytes bytes;

    MUC_TRY(path_in(ctx, &checkpoint->arena, folder, config_name, &path));
    MUC_TRY(muc_checkpoint_map(ctx, checkpoint, path, &bytes));
    checkpoint->config_file = bytes;
    return muc_hf_read_config(ctx, bytes, checkpoint);
}

/* The tokenizer's own room reads it; where both forms exist, tokenizer.json also has the added
 * tokens. */
static muc_status find_tokenizer(muc_context *ctx, const char *folder, muc_checkpoint *checkpoint)
{
    static const char *const names[] = { "tokenizer.json", "tokenizer.model", "vocab.json" };

    for (size_t i = 0; i < MUC_COUNT(names) && !checkpoint->tokenizer_path; i++) {
        const char *path;

        MUC_TRY(path_in(ctx, &checkpoint->arena, folder, names[i], &path));
        if (muc_path_exists(path))
            checkpoint->tokenizer_path = path;
    }
    return MUC_OK;
}

#ifdef MUC_WITH_NPZ /* libzip */
/* every weight of a file that torch.save wrote */
static muc_status read_state(muc_context *ctx, muc_bytes bytes, muc_checkpoint *checkpoint)
{
    muc_torch_state state;

    MUC_TRY(muc_torch_read(ctx, &checkpoint->arena, bytes, &state));
    for (size_t i = 0; i < state.count; i++) {
        const muc_torch_weight *weight = &state.items[i];
        muc_tensor_view view = { .name = weight->name,
                                 .dtype = weight->dtype,
                                 .rank = weight->rank,
                                 .data = weight->stored,
                                 .file = bytes.name };
        uintptr_t place = (uintptr_t)weight->stored - (uintptr_t)bytes.data;

        view.offset = place < bytes.size ? place : MUC_NO_OFFSET;
        memcpy(view.dims, weight->dims, sizeof(weight->dims));
        MUC_TRY(muc_tensor_measure(ctx, &view));
        MUC_TRY(muc_checkpoint_add(ctx, checkpoint, &view));
    }
    return MUC_OK;
}
#endif

/* safetensors, or a file of torch.save, whatever its name is */
static muc_status read_tensors(muc_context *ctx, muc_bytes bytes, muc_checkpoint *checkpoint)
{
#ifdef MUC_WITH_NPZ
    if (muc_torch_probe(bytes))
        return read_state(ctx, bytes, checkpoint);
#else
    if (bytes.size >= 4 && memcmp(bytes.data, "PK\3\4", 4) == 0)
        return muc_fail(ctx, MUC_UNSUPPORTED, bytes.name, 0,
                        "a file of PyTorch: this muc was built without libzip");
#endif
    return muc_safetensors_read(ctx, bytes, checkpoint);
}

typedef struct shard_index {
    muc_context *ctx;
    const char *folder;
    const char *name; /* of the index file */
    const json_t *root;
    json_t *map;  /* tensor: shard */
    json_t *read; /* the keys are the shards read so far */
    muc_checkpoint *checkpoint;
    bool is_torch; /* one shard at least */
} shard_index;

#define MALFORMED(x, ...) muc_fail((x)->ctx, MUC_MALFORMED, (x)->name, MUC_NO_OFFSET, __VA_ARGS__)

/* Every tensor that the shard holds must be mapped to it. */
static muc_status read_shard(shard_index *x, const char *shard)
{
    size_t first = x->checkpoint->tensor_count;
    muc_bytes bytes;

    MUC_TRY(muc_checkpoint_map_beneath(x->ctx, x->checkpoint, x->folder, shard, &bytes));
    x->is_torch = x->is_torch || !muc_safetensors_probe(bytes);
    MUC_TRY(read_tensors(x->ctx, bytes, x->checkpoint));
    for (size_t i = first; i < x->checkpoint->tensor_count; i++) {
        const char *tensor = x->checkpoint->tensors[i].name;
        const char *mapped = json_string_value(json_object_get(x->map, tensor));

        if (!mapped || strcmp(mapped, shard) != 0)
            return MALFORMED(x, "tensor '%s' is in '%s', the weight map says '%s'", tensor, shard,
                             mapped ? mapped : "nowhere");
    }
    return MUC_OK;
}

static muc_status read_shard_once(shard_index *x, const char *tensor, const json_t *value)
{
    const char *shard = json_string_value(value);

    if (!shard)
        return MALFORMED(x, "tensor '%s' is mapped to no file name", tensor);
    if (json_object_get(x->read, shard))
        return MUC_OK;
    if (json_object_size(x->read) >= MAX_SHARDS)
        return muc_fail(x->ctx, MUC_UNSUPPORTED, x->name, MUC_NO_OFFSET, "more than %d shards",
                        MAX_SHARDS);
    if (json_object_set_new(x->read, shard, json_true()) != 0)
        return muc_fail_nomem(x->ctx, x->name, strlen(shard));
    return read_shard(x, shard);
}

/* of safetensors: tensors of torch.save that share their elements are counted once or twice */
static muc_status check_total(const shard_index *x)
{
    const json_t *metadata = json_object_get(x->root, "metadata");
    uint64_t bytes = 0, stated;

    for (size_t i = 0; i < x->checkpoint->tensor_count; i++)
        bytes += x->checkpoint->tensors[i].bytes;
    MUC_TRY(muc_json_u64_or(x->ctx, x->name, metadata, "total_size", 0, INT64_MAX, bytes, &stated));
    if (stated != bytes)
        return MALFORMED(x, "\"total_size\" is %llu, the tensors have %llu bytes",
                         (unsigned long long)stated, (unsigned long long)bytes);
    return MUC_OK;
}

static muc_status read_shards(shard_index *x)
{
    const char *tensor;
    json_t *value;

    if (!json_is_object(x->map))
        return MALFORMED(x, "\"weight_map\" is not an object");
    if (!x->read)
        return muc_fail_nomem(x->ctx, x->name, sizeof(json_t));
    json_object_foreach(x->map, tensor, value) MUC_TRY(read_shard_once(x, tensor, value));
    MUC_TRY(muc_checkpoint_sort(x->ctx, x->checkpoint));
    json_object_foreach(
        x->map, tensor,
        value) if (!muc_checkpoint_find(x->checkpoint,
                                        tensor)) return MALFORMED(x,
                                                                  "the weight map names tensor "
                                                                  "'%s', which '%s' does not hold",
                                                                  tensor, json_string_value(value));
    return x->is_torch ? MUC_OK : check_total(x);
}

static muc_status read_index(muc_context *ctx, const char *folder, muc_bytes bytes,
                             muc_checkpoint *checkpoint)
{
    shard_index x = { .ctx = ctx, .folder = folder, .name = bytes.name, .checkpoint = checkpoint };
    muc_status status;
    json_t *root;

    MUC_TRY(muc_json_parse(ctx, bytes, 0, &root));
    x.root = root;
    x.map = json_object_get(root, "weight_map");
    x.read = json_object();
    status = read_shards(&x);
    json_decref(x.read);
    json_decref(root);
    return status;
}

static muc_status read_weights(muc_context *ctx, const char *folder, muc_checkpoint *checkpoint)
{
    for (size_t i = 0; i < MUC_COUNT(weights); i++) {
        const char *path;
        muc_bytes bytes;

        MUC_TRY(path_in(ctx, &checkpoint->arena, folder, weights[i].name, &path));
        if (!muc_path_exists(path))
            continue;
        MUC_TRY(muc_checkpoint_map(ctx, checkpoint, path, &bytes));
        return weights[i].is_index ? read_index(ctx, folder, bytes, checkpoint)
                                   : read_tensors(ctx, bytes, checkpoint);
    }
    return muc_fail(ctx, MUC_IO, folder, MUC_NO_OFFSET,
                    "holds no weights: expected %s or %s, whole or in shards with %s or %s",
                    weights[0].name, weights[2].name, weights[1].name, weights[3].name);
}

/* Old checkpoints store RoPE's frequencies, which follow from rope_theta. */
static void drop_frequencies(muc_checkpoint *checkpoint)
{
    static const char suffix[] = ".rotary_emb.inv_freq";
    size_t kept = 0;

    for (size_t i = 0; i < checkpoint->tensor_count; i++) {
        size_t length = strlen(checkpoint->tensors[i].name), tail = sizeof(suffix) - 1;

        if (length < tail || strcmp(checkpoint->tensors[i].name + length - tail, suffix) != 0)
            checkpoint->tensors[kept++] = checkpoint->tensors[i];
    }
    checkpoint->tensor_count = kept;
}

muc_status muc_hf_read(muc_context *ctx, const muc_source *source, muc_checkpoint *checkpoint)
{
    const char *folder = source->path;

    if (!source->is_folder)
        MUC_TRY(folder_of(ctx, source->path, &checkpoint->arena, &folder));
    MUC_TRY(read_config(ctx, folder, checkpoint));
    MUC_TRY(find_tokenizer(ctx, folder, checkpoint));
    if (source->is_folder)
        MUC_TRY(read_weights(ctx, folder, checkpoint));
    else
        MUC_TRY(muc_safetensors_read(ctx, source->bytes, checkpoint));
    drop_frequencies(checkpoint);
    if (checkpoint->weights)
        MUC_TRY(muc_hf_unpack(ctx, checkpoint));
    if (checkpoint->packed)
        MUC_TRY(muc_hf_unpack_others(ctx, checkpoint));
    return muc_hf_rename(ctx, checkpoint);
}

muc_status muc_hf_read_config_file(muc_context *ctx, muc_checkpoint *checkpoint)
{
    const char *folder;
    muc_bytes bytes;

    checkpoint->format = "hf";
    MUC_TRY(folder_of(ctx, checkpoint->path, &checkpoint->arena, &folder));
    MUC_TRY(muc_checkpoint_map(ctx, checkpoint, checkpoint->path, &bytes));
    MUC_TRY(muc_hf_read_config(ctx, bytes, checkpoint));
    return find_tokenizer(ctx, folder, checkpoint);
}

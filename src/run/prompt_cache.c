/* prompt_cache.c - writes and reads the memory that an engine keeps between tokens, with the tokens
 * and a checksum of the model that made it. */
#include "run/prompt_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"

enum { VERSION = 1, WORDS = 5 };

static const char magic[8] = "MUCCACHE";

/* Behind the magic, little-endian; the tokens follow, then u64 bytes and the bytes of each part of
 * the engine's memory. */
typedef struct cache_head {
    uint32_t version, model, context, count, crc; /* crc: of all that follows */
} cache_head;

/* ---- which model ---- */

static uint32_t of_checkpoint(const muc_checkpoint *checkpoint)
{
    uint32_t crc = 0;

    for (size_t i = 0; i < checkpoint->tensor_count; i++) {
        const muc_tensor_view *t = &checkpoint->tensors[i];

        crc = muc_crc32(crc, (const uint8_t *)t->name, strlen(t->name));
        crc = muc_crc32(crc, t->data, (size_t)t->bytes);
        if (t->scales)
            crc =
                muc_crc32(crc, (const uint8_t *)t->scales, (size_t)t->dims[0] * sizeof(*t->scales));
    }
    return crc;
}

/* of a folder of code: its list has a checksum of every file */
static muc_status of_folder(muc_engine *engine, uint32_t *out)
{
    muc_arena arena = { 0 };
    const char *path;
    muc_status status;
    muc_file file;

    status = muc_arena_format(engine->ctx, &arena, &path, "%s/FILES", engine->model->path);
    if (status == MUC_OK)
        status = muc_file_open_own(engine->ctx, path, &file);
    if (status == MUC_OK) {
        *out = muc_crc32(0, file.bytes.data, file.bytes.size);
        muc_file_close(&file);
    }
    muc_arena_free(&arena);
    return status;
}

static muc_status fingerprint(muc_engine *engine, uint32_t *out)
{
    const muc_model *model = engine->model;

    *out = 0;
    if (model->kind == MUC_MODEL_CHECKPOINT)
        *out = of_checkpoint(&model->checkpoint);
    else if (model->file.bytes.size)
        *out = muc_crc32(0, model->file.bytes.data, model->file.bytes.size);
    else
        MUC_TRY(of_folder(engine, out));
    *out = muc_crc32(*out, model->tokenizer_form, model->tokenizer_bytes);
    return MUC_OK;
}

/* ---- loading ---- */

static muc_status not_a_cache(muc_engine *engine, const char *path)
{
    return muc_fail(engine->ctx, MUC_MALFORMED, path, MUC_NO_OFFSET,
                    "is not a whole prompt cache of this version; remove it, or name another file");
}

/* Copies the parts of the memory, of the sizes that they have at this position. */
static muc_status take_memory(muc_engine *engine, const char *path, const uint8_t *at,
                              const uint8_t *end)
{
    void *data;
    size_t bytes;

    for (size_t i = 0; engine->kind->memory(engine, i, &data, &bytes); i++) {
        if ((size_t)(end - at) < 8 || muc_load_u64(at) != bytes || (size_t)(end - at) - 8 < bytes)
            return not_a_cache(engine, path);
        memcpy(data, at + 8, bytes);
        at += 8 + bytes;
    }
    return at == end ? MUC_OK : not_a_cache(engine, path);
}

static muc_status check_head(muc_engine *engine, muc_bytes file, cache_head *out)
{
    const uint8_t *words = file.data + sizeof(magic);
    uint32_t model;

    if (file.size < sizeof(magic) + 4 * WORDS || memcmp(file.data, magic, sizeof(magic)) != 0)
        return not_a_cache(engine, file.name);
    *out = (cache_head){ muc_load_u32(words), muc_load_u32(words + 4), muc_load_u32(words + 8),
                         muc_load_u32(words + 12), muc_load_u32(words + 16) };
    words += 4 * WORDS;
    file.size -= sizeof(magic) + 4 * WORDS;
    if (out->version != VERSION || out->count > file.size / 4 ||
        out->crc != muc_crc32(0, words, file.size))
        return not_a_cache(engine, file.name);
    MUC_TRY(fingerprint(engine, &model));
    if (model != out->model || out->context != engine->facts.context ||
        out->count > engine->facts.context)
        return muc_fail(engine->ctx, MUC_MISMATCH, file.name, MUC_NO_OFFSET,
                        "is the prompt cache of another model or context than %s with %u "
                        "positions; name another file",
                        engine->model->path, engine->facts.context);
    return MUC_OK;
}

static muc_status load(muc_engine *engine, muc_bytes file, const uint32_t *tokens, size_t count,
                       uint32_t *taken)
{
    const uint8_t *at = file.data + sizeof(magic) + 4 * WORDS;
    cache_head head = { 0 };
    uint32_t same = 0;

    MUC_TRY(check_head(engine, file, &head));
    while (same < head.count && same + 1 < count && muc_load_u32(at + 4 * same) == tokens[same])
        same++;
    muc_engine_seek(engine, head.count);
    MUC_TRY(take_memory(engine, file.name, at + 4 * (size_t)head.count, file.data + file.size));
    muc_engine_seek(engine, same);
    *taken = same;
    return MUC_OK;
}

muc_status muc_prompt_cache_load(muc_engine *engine, const char *path, const uint32_t *tokens,
                                 size_t count, uint32_t *taken)
{
    muc_status status;
    muc_file file;

    *taken = 0;
    if (!muc_path_exists(path))
        return MUC_OK;
    MUC_TRY(muc_file_open_own(engine->ctx, path, &file));
    status = load(engine, file.bytes, tokens, count, taken);
    muc_file_close(&file);
    return status;
}

/* ---- saving ---- */

/* What follows the head: written, or with output NULL its checksum. */
static muc_status put_body(muc_engine *engine, const uint32_t *tokens, size_t count,
                           muc_output *output, uint32_t *crc)
{
    void *data = NULL;
    size_t bytes;

    *crc = muc_crc32(0, (const uint8_t *)tokens, count * sizeof(*tokens));
    if (output)
        MUC_TRY(muc_output_write(output, tokens, count * sizeof(*tokens)));
    for (size_t i = 0; engine->kind->memory(engine, i, &data, &bytes); i++) {
        uint8_t size[8];

        muc_store_u64(size, bytes);
        *crc = muc_crc32(muc_crc32(*crc, size, sizeof(size)), data, bytes);
        if (output)
            MUC_TRY(muc_output_write(output, size, sizeof(size)));
        if (output)
            MUC_TRY(muc_output_write(output, data, bytes));
    }
    return MUC_OK;
}

static muc_status put_all(muc_engine *engine, const uint32_t *tokens, size_t count,
                          muc_output *output)
{
    cache_head head = { VERSION, 0, engine->facts.context, (uint32_t)count, 0 };
    uint32_t unused;

    MUC_TRY(fingerprint(engine, &head.model));
    MUC_TRY(put_body(engine, tokens, count, NULL, &head.crc));
    MUC_TRY(muc_output_write(output, magic, sizeof(magic)));
    MUC_TRY(muc_output_write(output, &head, sizeof(head)));
    return put_body(engine, tokens, count, output, &unused);
}

muc_status muc_prompt_cache_save(muc_engine *engine, const char *path, const uint32_t *tokens,
                                 size_t count)
{
    muc_output *output;
    muc_status status;

    MUC_TRY(muc_output_begin(engine->ctx, path, &output));
    status = put_all(engine, tokens, count, output);
    if (status == MUC_OK)
        return muc_output_commit(output);
    muc_output_discard(output);
    return status;
}

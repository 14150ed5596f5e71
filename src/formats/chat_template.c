/* chat_template.c - the chat template that a checkpoint carries, as text. */
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "formats/checkpoint.h"

/* the folder that has the tokenizer, or the checkpoint itself, with a slash */
static muc_status folder_of(muc_context *ctx, const muc_checkpoint *checkpoint, muc_arena *arena,
                            const char **out)
{
    const char *tokenizer = checkpoint->tokenizer_path;
    const char *path = tokenizer ? tokenizer : checkpoint->path;
    const char *slash = strrchr(path, '/');

    if (!tokenizer && muc_path_is_dir(path))
        return muc_arena_format(ctx, arena, out, "%s/", path);
    return muc_arena_string(ctx, arena, path, slash ? (size_t)(slash + 1 - path) : 0, out);
}

/* one text, or a list of objects with a name and a template, of which one is "default" */
static const char *template_of(const json_t *value)
{
    const json_t *row;
    size_t i;

    if (!json_is_array(value))
        return json_string_value(value);
    json_array_foreach(value, i, row)
    {
        const char *name = json_string_value(json_object_get(row, "name"));

        if (name && strcmp(name, "default") == 0)
            return json_string_value(json_object_get(row, "template"));
    }
    return NULL;
}

static muc_status read_config(muc_context *ctx, muc_bytes bytes, muc_arena *arena, const char **out)
{
    const char *text;
    json_t *root;
    muc_status status = MUC_OK;

    MUC_TRY(muc_json_parse(ctx, bytes, 0, &root));
    text = template_of(json_object_get(root, "chat_template"));
    if (text)
        status = muc_arena_string(ctx, arena, text, strlen(text), out);
    json_decref(root);
    return status;
}

static muc_status read_text(muc_context *ctx, muc_bytes bytes, muc_arena *arena, const char **out)
{
    if (memchr(bytes.data, 0, bytes.size))
        return muc_fail(ctx, MUC_MALFORMED, bytes.name, MUC_NO_OFFSET,
                        "a chat template is text, without NUL bytes");
    return muc_arena_string(ctx, arena, (const char *)bytes.data, bytes.size, out);
}

muc_status muc_checkpoint_chat_template(muc_context *ctx, const muc_checkpoint *checkpoint,
                                        muc_arena *arena, const char **out)
{
    static const struct {
        const char *name;
        muc_status (*read)(muc_context *ctx, muc_bytes bytes, muc_arena *arena, const char **out);
    } files[] = { { "chat_template.jinja", read_text }, { "tokenizer_config.json", read_config } };
    const char *folder, *path;

    *out = checkpoint->chat_template;
    MUC_TRY(folder_of(ctx, checkpoint, arena, &folder));
    for (size_t i = 0; i < MUC_COUNT(files) && !*out; i++) {
        muc_status status;
        muc_file file;

        MUC_TRY(muc_arena_format(ctx, arena, &path, "%s%s", folder, files[i].name));
        if (!muc_path_exists(path))
            continue;
        MUC_TRY(muc_file_open(ctx, path, &file));
        status = files[i].read(ctx, file.bytes, arena, out);
        muc_file_close(&file);
        MUC_TRY(status);
    }
    return MUC_OK;
}

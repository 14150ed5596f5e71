/* torch_arch_text.c - splits a description into lines, words and blocks. */
#include <string.h>

#include "formats/torch/torch_arch.h"

enum { MAX_LINES = 1 << 14 };

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static muc_status split(muc_context *ctx, muc_arena *arena, const char *file, const char *text,
                        size_t size, muc_arch_line *line)
{
    size_t at = 0;

    line->count = 0;
    for (;;) {
        size_t start;

        while (at < size && is_space(text[at]))
            at++;
        if (at == size || text[at] == '#')
            return MUC_OK;
        if (line->count == MUC_ARCH_MAX_WORDS)
            return muc_fail(ctx, MUC_UNSUPPORTED, file, MUC_NO_OFFSET,
                            "line %u: more than %d words", line->number, MUC_ARCH_MAX_WORDS);
        for (start = at; at < size && !is_space(text[at]) && text[at] != '#';)
            at++;
        MUC_TRY(
            muc_arena_string(ctx, arena, text + start, at - start, &line->words[line->count++]));
    }
}

static muc_status read_lines(muc_context *ctx, muc_arena *arena, muc_bytes bytes,
                             muc_arch_text *out)
{
    const char *text = (const char *)bytes.data;
    size_t at = 0, capacity = 0;

    for (uint32_t number = 1; at < bytes.size; number++) {
        const char *end = memchr(text + at, '\n', bytes.size - at);
        size_t size = end ? (size_t)(end - text) - at : bytes.size - at;
        muc_arch_line line = { .number = number };

        if (number > MAX_LINES || memchr(text + at, '\0', size))
            return muc_fail(ctx, MUC_UNSUPPORTED, out->file, at,
                            "no description of a network: more than %d lines, or not text",
                            MAX_LINES);
        MUC_TRY(split(ctx, arena, out->file, text + at, size, &line));
        at += size + 1;
        if (line.count == 0)
            continue;
        MUC_TRY(MUC_ARENA_GROW(ctx, arena, out->line_count + 1u, &capacity, &out->lines));
        out->lines[out->line_count++] = line;
    }
    return MUC_OK;
}

static bool begins(const muc_arch_line *line, const char *word)
{
    return strcmp(line->words[0], word) == 0;
}

muc_status muc_arch_parse(muc_context *ctx, muc_arena *arena, muc_bytes bytes, muc_arch_text *out)
{
    const muc_arch_line *open = NULL;

    *out = (muc_arch_text){ .file = bytes.name };
    MUC_TRY(read_lines(ctx, arena, bytes, out));
    for (uint32_t i = 0; i < out->line_count; i++) {
        const muc_arch_line *line = &out->lines[i];
        bool starts = begins(line, "block"), ends = begins(line, "end");

        if ((starts && (open || line->count < 2)) || (ends && !open))
            return muc_fail(ctx, MUC_MALFORMED, out->file, MUC_NO_OFFSET,
                            "line %u: '%s' in the wrong place, or without a name", line->number,
                            line->words[0]);
        if (starts && out->block_count == MUC_ARCH_MAX_BLOCKS)
            return muc_fail(ctx, MUC_UNSUPPORTED, out->file, MUC_NO_OFFSET,
                            "line %u: more than %d blocks", line->number, MUC_ARCH_MAX_BLOCKS);
        if (starts) {
            open = line;
            out->blocks[out->block_count] = (muc_arch_block){ .head = line, .first = i + 1 };
        } else if (ends) {
            open = NULL;
            out->blocks[out->block_count++].end = i;
        }
    }
    return open ? muc_fail(ctx, MUC_MALFORMED, out->file, MUC_NO_OFFSET,
                           "line %u: the block '%s' has no end", open->number, open->words[1])
                : MUC_OK;
}

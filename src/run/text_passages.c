/* text_passages.c - cuts texts at marks, and strips white space. */
#include "run/text_passages.h"

#include <string.h>

bool muc_is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

muc_passage muc_strip(muc_passage p)
{
    while (p.size && muc_is_space(p.text[0]))
        p.text++, p.size--;
    while (p.size && muc_is_space(p.text[p.size - 1]))
        p.size--;
    return p;
}

muc_status muc_split_passages(muc_context *ctx, muc_bytes bytes, const char *mark, uint32_t limit,
                              muc_arena *arena, muc_passage **out, size_t *count)
{
    const char *at = (const char *)bytes.data, *end = at + bytes.size;
    size_t capacity = 0, length = strlen(mark);

    *out = NULL;
    *count = 0;
    while (bytes.size && at <= end && (limit == 0 || *count < limit)) {
        const char *next = muc_find_part(at, (size_t)(end - at), mark, length);
        muc_passage p = muc_strip((muc_passage){ at, (size_t)((next ? next : end) - at) });

        if (p.size) {
            MUC_TRY(MUC_ARENA_GROW(ctx, arena, *count + 1, &capacity, out));
            (*out)[(*count)++] = p;
        }
        at = next ? next + length : end + 1;
    }
    if (*count == 0)
        return muc_fail(ctx, MUC_MALFORMED, bytes.name, MUC_NO_OFFSET, "there is no text in it");
    return MUC_OK;
}

muc_status muc_read_case(muc_context *ctx, const char *name, muc_passage passage, size_t number,
                         muc_case *out)
{
    const char *end = passage.text + passage.size;
    const char *last = end, *colon;

    while (last > passage.text && last[-1] != '\n')
        last--;
    colon = memchr(last, ':', (size_t)(end - last));
    if (!colon)
        return muc_fail(ctx, MUC_MALFORMED, name, MUC_NO_OFFSET,
                        "case %zu: its last line is not \"LABEL: ANSWER\"", number + 1);
    out->prompt_bytes = (size_t)(colon + 1 - passage.text);
    out->answer = muc_strip((muc_passage){ colon + 1, (size_t)(end - colon - 1) });
    return MUC_OK;
}

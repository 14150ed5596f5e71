#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(muc_text *text, size_t more)
{
    size_t capacity = text->capacity ? text->capacity : 256;
    char *grown;

    if (text->failed || more >= SIZE_MAX / 4 - text->size)
        text->failed = true;
    if (text->failed)
        return false;
    while (capacity < text->size + more + 1)
        capacity *= 2;
    if (capacity == text->capacity)
        return true;
    grown = muc_calloc(capacity, 1);
    if (!grown) {
        text->failed = true;
        return false;
    }
    if (text->size)
        memcpy(grown, text->data, text->size);
    free(text->data);
    text->data = grown;
    text->capacity = capacity;
    return true;
}

void muc_text_add_bytes(muc_text *text, const void *data, size_t size)
{
    if (!reserve(text, size))
        return;
    if (size)
        memcpy(text->data + text->size, data, size);
    text->size += size;
    text->data[text->size] = '\0';
}

void muc_text_add_args(muc_text *text, const char *format, va_list args)
{
    va_list again;
    int length;

    va_copy(again, args);
    length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0 || !reserve(text, (size_t)length))
        return;
    vsnprintf(text->data + text->size, (size_t)length + 1, format, args);
    text->size += (size_t)length;
}

void muc_text_add(muc_text *text, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    muc_text_add_args(text, format, args);
    va_end(args);
}

void muc_text_add_json(muc_text *text, const char *string)
{
    muc_text_add(text, "\"");
    for (const unsigned char *p = (const unsigned char *)string; *p; p++) {
        if (*p == '"' || *p == '\\')
            muc_text_add(text, "\\%c", *p);
        else if (*p < 0x20)
            muc_text_add(text, "\\u%04x", *p);
        else
            muc_text_add_bytes(text, p, 1);
    }
    muc_text_add(text, "\"");
}

muc_status muc_text_status(muc_context *ctx, const muc_text *text)
{
    return text->failed ? muc_fail_nomem(ctx, "text", text->capacity * 2) : MUC_OK;
}

void muc_text_free(muc_text *text)
{
    free(text->data);
    memset(text, 0, sizeof(*text));
}

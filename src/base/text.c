/* text.c - builds strings that grow; a failed allocation is kept until its status is asked for. */
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/locale.h"
#include "base/visible_name.h"
#include "muc/visible.h"

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

void muc_text_add_visible(muc_text *text, const char *string)
{
    char piece[MUC_VISIBLE_BYTES];
    size_t step;

    for (; (step = muc_visible_character(string, piece)); string += step)
        muc_text_add_bytes(text, piece, strlen(piece));
}

void muc_text_add_utf8(muc_text *text, const char *string)
{
    size_t size;

    for (; *string; string += size)
        if (muc_utf8_read(string, strnlen(string, 4), &size) >= 0) {
            muc_text_add_bytes(text, string, size);
        } else {
            muc_text_add(text, "\\x%02x", (unsigned char)*string);
            size = 1;
        }
}

void muc_text_add_json(muc_text *text, const char *string)
{
    size_t size;

    muc_text_add(text, "\"");
    for (; *string; string += size) {
        int32_t code = muc_utf8_read(string, strnlen(string, 4), &size);

        if (code < 0) {
            muc_text_add(text, "\\\\x%02x", (unsigned char)*string);
            size = 1;
        } else if (code == '"' || code == '\\') {
            muc_text_add(text, "\\%c", *string);
        } else if (muc_is_harmful(code)) {
            muc_text_add(text, "\\u%04x", (unsigned)code);
        } else {
            muc_text_add_bytes(text, string, size);
        }
    }
    muc_text_add(text, "\"");
}

char *muc_json_string(const char *string)
{
    MUC_IN_C_LOCALE;

    muc_text text = { 0 };

    muc_text_add_json(&text, string);
    if (text.failed)
        muc_text_free(&text);
    return text.data;
}

void muc_text_add_csv(muc_text *text, const char *string)
{
    bool is_formula = *string && strchr("=+-@", *string);
    char piece[MUC_VISIBLE_BYTES];
    size_t step;

    if (!is_formula && !string[strcspn(string, ",\"")]) {
        muc_text_add_visible(text, string);
        return;
    }
    muc_text_add(text, is_formula ? "\"'" : "\"");
    for (; (step = muc_visible_character(string, piece)); string += step)
        muc_text_add(text, *string == '"' ? "\"\"" : "%s", piece);
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

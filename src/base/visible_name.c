/* visible_name.c - prints the names that files hold, by one rule. */
#include "base/visible_name.h"

#include <stdio.h>
#include <string.h>

int32_t muc_utf8_read(const char *text, size_t left, size_t *size)
{
    static const int32_t smallest[5] = { 0, 0, 0x80, 0x800, 0x10000 };
    const uint8_t *p = (const uint8_t *)text;
    int32_t code;

    *size = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (*size == 1)
        return p[0];
    if (p[0] < 0xc0 || p[0] > 0xf4 || *size > left)
        return -1;
    code = p[0] & (0x7f >> *size);
    for (size_t i = 1; i < *size; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return -1;
        code = code << 6 | (p[i] & 0x3f);
    }
    if (code < smallest[*size] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return -1;
    return code;
}

bool muc_is_utf8(const char *text, size_t size)
{
    size_t step;

    for (size_t at = 0; at < size; at += step)
        if (muc_utf8_read(text + at, size - at, &step) < 0)
            return false;
    return true;
}

size_t muc_utf8_write(uint32_t code, char out[4])
{
    size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

    for (size_t i = size; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(size == 1 ? code : (0xf00u >> size & 0xf0) | code);
    return size;
}

bool muc_is_harmful(int32_t code)
{
    static const struct {
        int32_t first, last;
    } ranges[] = {
        { 0, 0x1f },        /* control characters */
        { 0x7f, 0x9f },     /* DEL, and those that are the second set */
        { 0x61c, 0x61c },   /* turns the direction */
        { 0x200b, 0x200f }, /* without width, or turn the direction */
        { 0x2028, 0x202e }, /* ends of lines and paragraphs; embed and override directions */
        { 0x2060, 0x206f }, /* without width; isolate directions */
        { 0xfeff, 0xfeff }, /* byte order mark */
        { 0xfff9, 0xfffb }, /* annotations */
    };

    for (size_t i = 0; i < MUC_COUNT(ranges); i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    return false;
}

size_t muc_visible_character(const char *string, char out[MUC_VISIBLE_BYTES])
{
    static const char spelled[] = "\nn\rr\tt";
    size_t size = 0;
    int32_t code;

    out[0] = '\0';
    if (!*string)
        return 0;
    code = muc_utf8_read(string, strnlen(string, 4), &size);
    if (code < 0) {
        snprintf(out, MUC_VISIBLE_BYTES, "\\x%02x", (unsigned char)*string);
        return 1;
    }
    if (!muc_is_harmful(code)) {
        memcpy(out, string, size);
        out[size] = '\0';
    } else if (strchr(spelled, code) && code < 0x80) {
        snprintf(out, MUC_VISIBLE_BYTES, "\\%c", strchr(spelled, code)[1]);
    } else {
        snprintf(out, MUC_VISIBLE_BYTES, code < 0x80 ? "\\x%02x" : "\\u%04x", (unsigned)code);
    }
    return size;
}

size_t muc_visible(const char *string, char *out, size_t size)
{
    char piece[MUC_VISIBLE_BYTES];
    size_t bytes = 0, kept = 0, step;

    for (; (step = muc_visible_character(string, piece)); string += step) {
        size_t length = strlen(piece);

        if (kept == bytes && kept + length < size) {
            memcpy(out + kept, piece, length);
            kept += length;
        }
        bytes += length;
    }
    if (size)
        out[kept] = '\0';
    return bytes;
}

/* json_scan.c - reads JSON value by value, without building a tree. */
#include "base/json_scan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/visible_name.h"

static muc_status fail(const muc_json_scan *scan, const char *what)
{
    return muc_fail(scan->ctx, MUC_MALFORMED, scan->bytes.name, scan->at, "JSON: %s", what);
}

char muc_scan_peek(muc_json_scan *scan)
{
    while (scan->at < scan->bytes.size) {
        const char c = (char)scan->bytes.data[scan->at];

        if (c != ' ' && c != '\n' && c != '\r' && c != '\t')
            return c;
        scan->at++;
    }
    return '\0';
}

bool muc_scan_take(muc_json_scan *scan, char c)
{
    if (muc_scan_peek(scan) != c || scan->at == scan->bytes.size)
        return false;
    scan->at++;
    return true;
}

muc_status muc_scan_expect(muc_json_scan *scan, char c)
{
    const char what[] = { '\'', c, '\'', ' ', 'e', 'x', 'p', 'e', 'c', 't', 'e', 'd', '\0' };

    return muc_scan_take(scan, c) ? MUC_OK : fail(scan, what);
}

muc_status muc_scan_next(muc_json_scan *scan, char closing, bool *more)
{
    *more = muc_scan_take(scan, ',');
    return *more ? MUC_OK : muc_scan_expect(scan, closing);
}

/* ---- strings ---- */

static muc_status read_unit(muc_json_scan *scan, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++) {
        const char c = scan->at < scan->bytes.size ? (char)scan->bytes.data[scan->at] : '\0';
        const uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                               : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                               : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                      : 16;

        if (digit == 16)
            return fail(scan, "\\u without four hexadecimal digits");
        *out = *out * 16 + digit;
        scan->at++;
    }
    return MUC_OK;
}

/* after \u */
static muc_status read_code(muc_json_scan *scan, uint32_t *code)
{
    uint32_t low;

    MUC_TRY(read_unit(scan, code));
    if (*code == 0)
        return fail(scan, "\\u0000 in a string");
    if (*code < 0xd800 || *code >= 0xe000)
        return MUC_OK;
    if (*code >= 0xdc00 || scan->bytes.size - scan->at < 2 ||
        memcmp(scan->bytes.data + scan->at, "\\u", 2) != 0)
        return fail(scan, "half a surrogate pair");
    scan->at += 2;
    MUC_TRY(read_unit(scan, &low));
    if (low < 0xdc00 || low >= 0xe000)
        return fail(scan, "half a surrogate pair");
    *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
    return MUC_OK;
}

/* after the backslash; what it stands for goes to out */
static muc_status read_escape(muc_json_scan *scan, char out[4], size_t *size)
{
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char c = scan->at < scan->bytes.size ? (char)scan->bytes.data[scan->at++] : '\0';
    const char *letter = c ? strchr(letters, c) : NULL;
    uint32_t code;

    if (letter) {
        *out = values[letter - letters];
        *size = 1;
        return MUC_OK;
    }
    if (c != 'u')
        return fail(scan, "an unknown escape");
    MUC_TRY(read_code(scan, &code));
    *size = muc_utf8_write(code, out);
    return MUC_OK;
}

/* Where plain characters end: at a quote, a backslash or a control character. */
static size_t plain_end(const muc_json_scan *scan)
{
    size_t at = scan->at;

    while (at < scan->bytes.size && scan->bytes.data[at] != '"' && scan->bytes.data[at] != '\\' &&
           scan->bytes.data[at] >= 0x20)
        at++;
    return at;
}

static muc_status append(muc_json_scan *scan, size_t *size, const void *data, size_t more)
{
    if (more == 0)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_GROW(scan->ctx, scan->arena, *size + more, &scan->string_capacity,
                           &scan->string));
    memcpy(scan->string + *size, data, more);
    *size += more;
    return MUC_OK;
}

muc_status muc_scan_string(muc_json_scan *scan, muc_string_view *out)
{
    size_t size = 0, end;

    MUC_TRY(muc_scan_expect(scan, '"'));
    end = plain_end(scan);
    *out = (muc_string_view){ (const char *)scan->bytes.data + scan->at, end - scan->at };
    while (end < scan->bytes.size && scan->bytes.data[end] == '\\') {
        char escaped[4];
        size_t length = 0;

        MUC_TRY(append(scan, &size, scan->bytes.data + scan->at, end - scan->at));
        scan->at = end + 1;
        MUC_TRY(read_escape(scan, escaped, &length));
        MUC_TRY(append(scan, &size, escaped, length));
        end = plain_end(scan);
    }
    if (size > 0) {
        MUC_TRY(append(scan, &size, scan->bytes.data + scan->at, end - scan->at));
        *out = (muc_string_view){ scan->string, size };
    }
    scan->at = end;
    if (scan->at == scan->bytes.size || scan->bytes.data[scan->at] != '"')
        return fail(scan, "a string that does not end, or a control character in it");
    scan->at++;
    return MUC_OK;
}

/* ---- other values ---- */

muc_status muc_scan_count(muc_json_scan *scan, int64_t *out)
{
    enum { MOST_DIGITS = 10 };
    const size_t start = (muc_scan_peek(scan), scan->at);
    bool is_count = true;

    for (*out = 0; scan->at < scan->bytes.size; scan->at++) {
        const char c = (char)scan->bytes.data[scan->at];

        if (c == '\0' || strchr(",]} \n\r\t", c))
            break;
        if (strchr("\"[{", c))
            return fail(scan, "a number expected");
        is_count = is_count && c >= '0' && c <= '9' && scan->at - start < MOST_DIGITS;
        *out = is_count ? *out * 10 + (c - '0') : -1;
    }
    return scan->at > start ? MUC_OK : fail(scan, "a value expected");
}

muc_status muc_scan_number(muc_json_scan *scan, double *out)
{
    enum { MOST = 64 };
    char text[MOST + 1], *end;
    size_t size = 0;

    muc_scan_peek(scan);
    while (size < MOST && scan->at < scan->bytes.size && scan->bytes.data[scan->at] != '\0' &&
           strchr("+-.0123456789eE", scan->bytes.data[scan->at]))
        text[size++] = (char)scan->bytes.data[scan->at++];
    text[size] = '\0';
    *out = strtod(text, &end);
    return size > 0 && *end == '\0' && isfinite(*out) ? MUC_OK : fail(scan, "a number expected");
}

muc_status muc_scan_skip(muc_json_scan *scan)
{
    muc_string_view string;
    size_t depth = 0;

    do {
        const char c = muc_scan_peek(scan);

        if (scan->at == scan->bytes.size)
            return fail(scan, "a value that does not end");
        if (c == '"') {
            MUC_TRY(muc_scan_string(scan, &string));
            continue;
        }
        if (c == '[' || c == '{')
            depth++;
        else if (c == ']' || c == '}') {
            if (depth == 0)
                return fail(scan, "a bracket that closes nothing");
            depth--;
        } else if (depth == 0) { /* a number, true, false or null */
            int64_t count;

            return muc_scan_count(scan, &count);
        }
        scan->at++;
    } while (depth > 0);
    return MUC_OK;
}

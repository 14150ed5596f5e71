/* ini.c - reads INI files line by line, and keeps positions for messages. */
#include "base/ini.h"

#include <string.h>

bool muc_view_is(muc_string_view view, const char *word)
{
    return view.size == strlen(word) && memcmp(view.data, word, view.size) == 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static muc_string_view trimmed(const char *from, const char *to)
{
    while (from < to && is_blank(*from))
        from++;
    while (to > from && is_blank(to[-1]))
        to--;
    return (muc_string_view){ from, (size_t)(to - from) };
}

muc_subject muc_ini_subject(const muc_ini *ini, const char *at)
{
    size_t offset = (size_t)(at - (const char *)ini->text.data);

    return muc_subject_of(ini->ctx, ini->text.name, offset, "line %u, column %zu", ini->line,
                          offset - ini->at + 1);
}

muc_status muc_ini_refuse(const muc_ini *ini, const char *at, muc_choice *choice, const char *what)
{
    muc_text text = muc_choice_end(choice, what);
    muc_status status = muc_text_status(ini->ctx, &text);

    if (status == MUC_OK)
        status = muc_ini_fail(ini, at, "%s", text.data);
    muc_text_free(&text);
    return status;
}

static muc_status read_line(muc_ini *ini, muc_string_view line)
{
    const char *end = line.data + line.size, *equal = memchr(line.data, '=', line.size);

    if (line.data[0] == '[') {
        if (line.size < 3 || end[-1] != ']')
            return muc_ini_fail(ini, line.data, "expected [section]");
        ini->section = trimmed(line.data + 1, end - 1);
        ini->key = (muc_string_view){ end, 0 };
        return MUC_OK;
    }
    if (!equal)
        return muc_ini_fail(ini, line.data, "expected key = value");
    ini->key = trimmed(line.data, equal);
    ini->value = trimmed(equal + 1, end);
    return ini->key.size ? MUC_OK : muc_ini_fail(ini, line.data, "expected a key before '='");
}

bool muc_ini_next(muc_ini *ini, muc_status *status)
{
    const char *text = (const char *)ini->text.data;

    *status = MUC_OK;
    while (ini->next < ini->text.size) {
        const char *from = text + ini->next;
        const char *end = memchr(from, '\n', ini->text.size - ini->next), *to;
        muc_string_view line;

        if (!end)
            end = text + ini->text.size;
        for (to = from; to < end && *to != ';' && *to != '#'; to++)
            ;
        ini->at = ini->next;
        ini->next = (size_t)(end - text) + 1;
        ini->line++;
        line = trimmed(from, to);
        if (line.size) {
            *status = read_line(ini, line);
            return true;
        }
    }
    return false;
}

muc_status muc_ini_number(const muc_ini *ini, uint32_t *out)
{
    static const char digits[] = "0123456789abcdef";
    bool hex = ini->value.size > 2 && ini->value.data[0] == '0' && ini->value.data[1] == 'x';
    uint64_t value = 0, base = hex ? 16 : 10;

    if (ini->value.size == 0)
        return muc_ini_fail(ini, ini->value.data, "a number is missing");
    for (size_t i = hex ? 2 : 0; i < ini->value.size; i++) {
        const char *digit = memchr(digits, ini->value.data[i], base);

        if (!digit)
            return muc_ini_fail(ini, ini->value.data + i, "not a digit");
        value = base * value + (uint64_t)(digit - digits);
        if (value > UINT32_MAX)
            return muc_ini_fail(ini, ini->value.data, "the number is too large");
    }
    *out = (uint32_t)value;
    return MUC_OK;
}

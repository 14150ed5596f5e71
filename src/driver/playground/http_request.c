/* http_request.c - reads a request line and header fields as RFC 9112 has them, and refuses what
 * differs. */
#include "driver/playground/http_request.h"

#include <string.h>

typedef struct span {
    const unsigned char *text;
    size_t size;
} span;

static bool is_word(span s, const char *word)
{
    return s.size == strlen(word) && memcmp(s.text, word, s.size) == 0;
}

/* A character of a method's or a field's name (token). */
static bool is_token(unsigned char c)
{
    return c > ' ' && c < 0x7F && !strchr("\"(),/:;<=>?@[\\]{}", c);
}

static bool are_tokens(span s)
{
    for (size_t i = 0; i < s.size; i++)
        if (!is_token(s.text[i]))
            return false;
    return s.size > 0;
}

/* What stands before the mark, which goes away too; false: there is no such mark. */
static bool take_before(span *rest, const char *mark, span *out)
{
    const size_t length = strlen(mark);

    for (size_t i = 0; i + length <= rest->size; i++)
        if (memcmp(rest->text + i, mark, length) == 0) {
            *out = (span){ rest->text, i };
            rest->text += i + length;
            rest->size -= i + length;
            return true;
        }
    return false;
}

size_t http_head_size(const char *data, size_t size)
{
    span rest = { (const unsigned char *)data, size }, head;

    return take_before(&rest, "\r\n\r\n", &head) ? size - rest.size : 0;
}

static bool names_host(span name)
{
    static const char host[] = "host";

    if (name.size != sizeof(host) - 1)
        return false;
    for (size_t i = 0; i < name.size; i++)
        if ((name.text[i] | 0x20) != host[i])
            return false;
    return true;
}

/* Fields up to the empty line; of HTTP/1.1 one of them is Host. */
static bool are_fields(span rest, bool needs_host)
{
    unsigned hosts = 0;
    span line, name;

    while (take_before(&rest, "\r\n", &line) && line.size > 0) {
        if (!take_before(&line, ":", &name) || !are_tokens(name))
            return false;
        for (size_t i = 0; i < line.size; i++) /* control characters, line ends among them */
            if (line.text[i] < ' ' && line.text[i] != '\t')
                return false;
        hosts += names_host(name);
    }
    return needs_host ? hosts == 1 : hosts <= 1;
}

static bool is_version(span s)
{
    return s.size == 8 && memcmp(s.text, "HTTP/", 5) == 0 && s.text[5] >= '0' && s.text[5] <= '9' &&
           s.text[6] == '.' && s.text[7] >= '0' && s.text[7] <= '9';
}

http_answer http_judge(const char *head, size_t size, bool *is_head)
{
    span rest = { (const unsigned char *)head, size }, version, method, path;

    *is_head = false;
    if (!take_before(&rest, "\r\n", &version) || !take_before(&version, " ", &method) ||
        !take_before(&version, " ", &path) || !are_tokens(method) || path.size == 0 ||
        !is_version(version))
        return HTTP_400;
    for (size_t i = 0; i < path.size; i++)
        if (path.text[i] <= ' ' || path.text[i] >= 0x7F)
            return HTTP_400;
    if (version.text[5] != '1')
        return HTTP_505;
    if (!are_fields(rest, version.text[7] != '0'))
        return HTTP_400;
    *is_head = is_word(method, "HEAD");
    if (!*is_head && !is_word(method, "GET"))
        return HTTP_405;
    if (!is_word(path, "/"))
        return HTTP_404;
    return HTTP_200;
}

/* differ_reduce.c - a failing network, as text, made small: outputs, nodes and tensors are taken
 * out line by line while the verdict stays. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "differ.h"

enum { MOST_LINES = 2 * FUZZ_MOST_TENSORS, MOST_PROBES = 600, MOST_NAME = 64 };

typedef struct lines {
    char *text; /* that items point into */
    char *items[MOST_LINES];
    size_t count;
} lines;

static lines split_lines(const char *text)
{
    lines l = { .text = strdup(text) };

    for (char *at = l.text; at && *at && l.count < MOST_LINES;) {
        char *end = strchr(at, '\n');

        l.items[l.count++] = at;
        if (end)
            *end++ = '\0';
        at = end;
    }
    return l;
}

/* line `without` left out, `with` put before the first node instead */
static char *join_lines(const lines *l, size_t without, const char *with)
{
    muc_text text = { 0 };
    bool put = with == NULL;

    for (size_t i = 0; i < l->count; i++) {
        if (!put && strncmp(l->items[i], "node ", 5) == 0) {
            muc_text_add(&text, "%s", with);
            put = true;
        }
        if (i != without)
            muc_text_add(&text, "%s\n", l->items[i]);
    }
    return text.data;
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '-' && c <= ':') || c == '_';
}

/* whether a line reads or names a tensor */
static bool mentions(const char *line, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = strstr(line, name); at; at = strstr(at + 1, name))
        if ((at == line || !is_name(at[-1])) && !is_name(at[length]))
            return true;
    return false;
}

/* the next output of a node's line, before its '=': "NAME TYPE [DIMS] scale .. zero .." as the rest
 * of a line that declares it; NULL behind the last */
static const char *next_output(const char *at, char name[MOST_NAME], char rest[256])
{
    const char *equals = strstr(at, " = "), *bracket = strchr(at, ']'), *end;
    size_t length = strcspn(at, " ");

    if (!equals || !bracket || bracket > equals || length >= MOST_NAME)
        return NULL;
    memcpy(name, at, length);
    name[length] = '\0';
    end = bracket + 1;
    while (end < equals && !(end[0] == ',' && end[1] == ' ' && !strchr("0123456789-", end[2])))
        end++; /* numbers of a quantization are parted by commas too */
    if (end - at - (long)length >= 256)
        return NULL;
    snprintf(rest, 256, "%.*s", (int)(end - at - (long)length), at + length);
    return end < equals ? end + 2 : "";
}

/* lines that declare what the node makes, as inputs */
static bool declare_outputs(const char *node, muc_text *text)
{
    char name[MOST_NAME], rest[256];

    for (const char *at = node + 5; *at;) {
        at = next_output(at, name, rest);
        if (!at)
            return false;
        muc_text_add(text, "tensor %s = input%s\n", name, rest);
    }
    return true;
}

static bool is_needed(const lines *l, size_t line)
{
    char name[MOST_NAME], rest[256];
    const char *at = l->items[line];

    if (strncmp(at, "tensor ", 7) == 0) {
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(at + 7, " "), at + 7);
        for (size_t i = 0; i < l->count; i++)
            if (i != line && mentions(l->items[i], name))
                return true;
        return false;
    }
    if (strncmp(at, "node ", 5) != 0)
        return true;
    for (at += 5; at && *at;) {
        at = next_output(at, name, rest);
        for (size_t i = 0; at && i < l->count; i++)
            if (i != line && mentions(l->items[i], name))
                return true;
    }
    return false;
}

/* without the lines that nothing needs */
static char *sweep(char *text)
{
    for (bool again = true; again;) {
        lines l = split_lines(text);

        again = false;
        for (size_t i = l.count; i-- > 0 && !again;)
            if (!is_needed(&l, i)) {
                char *next = join_lines(&l, i, NULL);

                free(text);
                text = next;
                again = true;
            }
        free(l.text);
    }
    return text;
}

/* the text without a line, which may become declarations; NULL if that is nothing to try */
static char *without_line(const lines *l, size_t line)
{
    const char *at = l->items[line];
    muc_text declared = { 0 };
    char *text = NULL;

    if (strncmp(at, "output ", 7) == 0 || strncmp(at, "assume ", 7) == 0)
        return join_lines(l, line, NULL);
    if (strncmp(at, "node ", 5) == 0 && declare_outputs(at, &declared))
        text = join_lines(l, line, declared.data);
    muc_text_free(&declared);
    return text;
}

char *fuzz_reduce(const char *text, const fuzz_how *how, fuzz_verdict verdict)
{
    char *best = sweep(strdup(text)), message[FUZZ_MESSAGE];
    uint32_t probes = 0;

    for (bool again = true; again && probes < MOST_PROBES;) {
        lines l = split_lines(best);

        again = false;
        for (size_t i = l.count; i-- > 0 && !again && probes < MOST_PROBES;) {
            char *candidate = without_line(&l, i);

            if (!candidate)
                continue;
            candidate = sweep(candidate);
            probes++;
            if (fuzz_check_apart(candidate, how, message) == verdict) {
                free(best);
                best = candidate;
                again = true;
            } else {
                free(candidate);
            }
        }
        free(l.text);
    }
    return best;
}

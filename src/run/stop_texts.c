/* stop_texts.c - looks for stop texts in a text that comes in pieces. */
#include "run/stop_texts.h"

#include <string.h>

#include "base/bytes.h"

/* Where the stop text begins that is complete first, the longest of those, or SIZE_MAX: so it does
 * not matter how the text is cut. */
static size_t find(const muc_stop_texts *stops)
{
    size_t first = SIZE_MAX, first_end = SIZE_MAX;

    for (size_t i = 0; i < stops->count; i++) {
        size_t length = strlen(stops->texts[i]), begin;
        const char *at = muc_find_part(stops->held.data, stops->held.size, stops->texts[i], length);

        if (!at)
            continue;
        begin = (size_t)(at - stops->held.data);
        if (begin + length < first_end || (begin + length == first_end && begin < first)) {
            first = begin;
            first_end = begin + length;
        }
    }
    return first;
}

/* Bytes at the end that a stop text may begin with. */
static size_t undecided(const muc_stop_texts *stops)
{
    size_t most = 0;

    for (size_t i = 0; i < stops->count; i++) {
        size_t length = strlen(stops->texts[i]) - 1;

        length = length < stops->held.size ? length : stops->held.size;
        while (length > most &&
               memcmp(stops->held.data + stops->held.size - length, stops->texts[i], length) != 0)
            length--;
        most = length > most ? length : most;
    }
    return most;
}

/* Passes on the first bytes that are held. */
static bool pass(muc_stop_texts *stops, size_t size)
{
    muc_text *held = &stops->held;
    bool goes_on = size == 0 || !stops->next || stops->next(stops->arg, held->data, size);

    held->size -= size;
    if (held->size)
        memmove(held->data, held->data + size, held->size);
    return goes_on;
}

bool muc_stop_texts_take(void *arg, const char *text, size_t size)
{
    muc_stop_texts *stops = arg;
    size_t at;

    if (stops->count == 0)
        return !stops->next || stops->next(stops->arg, text, size);
    muc_text_add_bytes(&stops->held, text, size);
    if (stops->held.failed)
        return false;
    at = find(stops);
    if (at == SIZE_MAX)
        return pass(stops, stops->held.size - undecided(stops));
    stops->found = true;
    pass(stops, at);
    stops->held.size = 0;
    return false;
}

bool muc_stop_texts_end(muc_stop_texts *stops)
{
    stops->found = false;
    return pass(stops, stops->held.size);
}

void muc_stop_texts_free(muc_stop_texts *stops)
{
    muc_text_free(&stops->held);
}

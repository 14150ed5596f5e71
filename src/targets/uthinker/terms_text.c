/* terms_text.c - reads and writes terms of places and layers. */
#include "targets/uthinker/terms_text.h"

#include <string.h>

static const char letters[] = {
#define LETTER(letter, meaning) #letter[0],
    MUC_UTHINKER_TERMS(LETTER)
#undef LETTER
};

uint32_t muc_uthinker_count_layers(const muc_graph *graph)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < graph->node_count; i++)
        count += graph->nodes[i].op == MUC_OP_ATTENTION;
    return count;
}

/* Digits at *at as a number below limit; moves *at behind them. */
static bool read_layer(const char **at, uint32_t limit, uint32_t *out)
{
    const char *begin = *at;

    for (*out = 0; **at >= '0' && **at <= '9'; ++*at) {
        *out = 10 * *out + (uint32_t)(**at - '0');
        if (*out >= limit)
            return false;
    }
    return *at != begin;
}

/* One item at *at; moves *at behind it. False if it is none. */
static bool read_item(const char **at, muc_uthinker_terms *terms, uint32_t layers)
{
    const char *letter = **at ? memchr(letters, **at, sizeof(letters)) : NULL;
    uint32_t first = 0, last = layers - 1;

    if (letter) {
        ++*at;
        if (**at == ':' && *letter != 'l') {
            ++*at;
            if (!read_layer(at, layers, &first))
                return false;
            last = first;
            if (**at == '-') {
                ++*at;
                if (!read_layer(at, layers, &last) || last < first)
                    return false;
            }
        }
        if (*(*at)++ != '=')
            return false;
    }
    if (**at != '1' && **at != '2')
        return false;
    for (uint32_t l = first; l <= last; l++)
        for (unsigned i = 0; i < sizeof(letters); i++)
            if (!letter || letter == &letters[i])
                muc_uthinker_terms_at(&terms[l])[i] = (uint8_t)(**at - '0');
    ++*at;
    return **at == '\0' || **at == ',';
}

muc_status muc_uthinker_read_terms(muc_context *ctx, const char *text, muc_uthinker_terms *terms,
                                   uint32_t layers)
{
    const char *at = text;

    do {
        if (!read_item(&at, terms, layers))
            return muc_fail(ctx, MUC_USAGE, "terms of activations", MUC_NO_OFFSET,
                            "'%s': expected 1 or 2, auto, or places with theirs, as 2,p=1,v=1, or "
                            "of some layers, as 2,k:0-3=1; places are x q k p v o f h l, layers 0 "
                            "to %u",
                            text, layers - 1);
    } while (*at++ == ',');
    return MUC_OK;
}

static uint8_t at_layer(const muc_uthinker_terms *terms, uint32_t layer, unsigned place)
{
    muc_uthinker_terms own = terms[layer];

    return muc_uthinker_terms_at(&own)[place];
}

/* layers, one after the other, that have one term at a place */
static void write_place(const muc_uthinker_terms *terms, uint32_t layers, unsigned place,
                        muc_text *out)
{
    for (uint32_t first = 0, end; first < layers; first = end) {
        end = first + 1;
        if (at_layer(terms, first, place) != 1)
            continue;
        while (end < layers && at_layer(terms, end, place) == 1)
            end++;
        muc_text_add(out, ",%c", letters[place]);
        if (end - first < layers)
            muc_text_add(out, ":%u", first);
        if (end - first < layers && end - first > 1)
            muc_text_add(out, "-%u", end - 1);
        muc_text_add(out, "=1");
    }
}

void muc_uthinker_write_terms(const muc_uthinker_terms *terms, uint32_t layers, muc_text *out)
{
    muc_text_add(out, "2");
    for (unsigned place = 0; place < sizeof(letters); place++)
        write_place(terms, layers, place, out);
}

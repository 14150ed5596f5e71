/* audio_front_end.c - reads and prints the description of an audio front end. */
#include "audio/audio_front_end.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/choice.h"

typedef enum key_kind { KEY_COUNT, KEY_REAL, KEY_CHOICE } key_kind;

enum { MOST_WORDS = 4, LEAST_FFT = 64, MOST_VALUE = 32 };

typedef struct key_row {
    const char *name;
    key_kind kind;
    size_t offset; /* in muc_front_end */
    double least, most;
    const char *words[MOST_WORDS + 1]; /* of a choice */
} key_row;

#define WORD(key, word, meaning) #word,
static const key_row keys[] = {
#define FRONT_COUNT(key, least, most, fallback, meaning) \
    { #key, KEY_COUNT, offsetof(muc_front_end, key), least, most, { NULL } },
#define FRONT_REAL(key, least, most, fallback, meaning) \
    { #key, KEY_REAL, offsetof(muc_front_end, key), least, most, { NULL } },
#define FRONT_CHOICE(key, fallback, meaning) \
    { #key, KEY_CHOICE, offsetof(muc_front_end, key), 0, 0, { FRONT_WORDS_##key(WORD) NULL } },
#include "audio/front_end.def"
};

static const muc_front_end fallback = {
#define FRONT_COUNT(key, least, most, fallback, meaning) .key = fallback,
#define FRONT_REAL(key, least, most, fallback, meaning) .key = fallback,
#define FRONT_CHOICE(key, fallback, meaning) .key = MUC_FRONT_##key##_##fallback,
#include "audio/front_end.def"
};

static const char subject[] = "--features";

static muc_status find_key(muc_context *ctx, const char *name, const key_row **out)
{
    const char *names[MUC_COUNT(keys)];
    unsigned found;

    for (size_t i = 0; i < MUC_COUNT(keys); i++)
        names[i] = keys[i].name;
    MUC_TRY(muc_choose(ctx, subject, name, names, MUC_COUNT(names), &found));
    *out = &keys[found];
    return MUC_OK;
}

static muc_status set_number(muc_context *ctx, const key_row *key, const char *value, void *field)
{
    char *end;
    double number = strtod(value, &end);

    if (end == value || *end || !(number >= key->least && number <= key->most) ||
        (key->kind == KEY_COUNT && floor(number) < number))
        return muc_fail(ctx, MUC_USAGE, subject, MUC_NO_OFFSET,
                        "%s=%s: expected a%s number from %g to %g", key->name, value,
                        key->kind == KEY_COUNT ? " whole" : "", key->least, key->most);
    if (key->kind == KEY_COUNT)
        *(uint32_t *)field = (uint32_t)number;
    else
        *(double *)field = number;
    return MUC_OK;
}

/* item: "key=value" */
static muc_status set_key(muc_context *ctx, char *item, muc_front_end *front)
{
    char *value = strchr(item, '=');
    const key_row *key;
    size_t words = 0;
    void *field;

    if (!value)
        return muc_fail(ctx, MUC_USAGE, subject, MUC_NO_OFFSET,
                        "'%s': expected key=value, as in bands=40", item);
    *value++ = '\0';
    MUC_TRY(find_key(ctx, item, &key));
    field = (char *)front + key->offset;
    if (key->kind != KEY_CHOICE)
        return set_number(ctx, key, value, field);
    while (key->words[words])
        words++;
    return muc_choose(ctx, key->name, value, key->words, words, field);
}

static muc_status set_keys(muc_context *ctx, const char *says, muc_front_end *front)
{
    while (*says) {
        size_t length = strcspn(says, ",");
        char item[64];

        if (length >= sizeof(item))
            return muc_fail(ctx, MUC_USAGE, subject, MUC_NO_OFFSET, "'%.32s...' is not key=value",
                            says);
        memcpy(item, says, length);
        item[length] = '\0';
        MUC_TRY(set_key(ctx, item, front));
        says += length + (says[length] == ',');
    }
    return MUC_OK;
}

static muc_status make_consistent(muc_context *ctx, muc_front_end *front)
{
    if (front->fft == 0)
        for (front->fft = LEAST_FFT; front->fft < front->window;)
            front->fft *= 2;
    if (front->fft < LEAST_FFT || front->fft & (front->fft - 1))
        return muc_fail(ctx, MUC_USAGE, subject, MUC_NO_OFFSET,
                        "fft=%u is not a power of two from %d to 4096: the runtime has no other "
                        "transform; take the next greater one, and train the network with it",
                        front->fft, LEAST_FFT);
    if (front->fft < front->window)
        return muc_fail(ctx, MUC_USAGE, subject, MUC_NO_OFFSET, "fft=%u is shorter than window=%u",
                        front->fft, front->window);
    if (front->hop > front->window)
        return muc_fail(ctx, MUC_USAGE, subject, MUC_NO_OFFSET,
                        "hop=%u would leave out samples between windows of %u", front->hop,
                        front->window);
    if (!(front->low < front->high) || front->high > front->rate / 2.0)
        return muc_fail(ctx, MUC_USAGE, subject, MUC_NO_OFFSET,
                        "low=%g, high=%g: expected low < high, at most half of rate=%u", front->low,
                        front->high, front->rate);
    if (front->cepstra > front->bands)
        return muc_fail(ctx, MUC_USAGE, subject, MUC_NO_OFFSET,
                        "cepstra=%u: there are no more than bands=%u", front->cepstra,
                        front->bands);
    return MUC_OK;
}

muc_status muc_front_end_parse(muc_context *ctx, const char *says, muc_front_end *out)
{
    *out = fallback;
    if (says)
        MUC_TRY(set_keys(ctx, says, out));
    return make_consistent(ctx, out);
}

void muc_front_end_print(const muc_front_end *front, muc_text *text)
{
    for (size_t i = 0; i < MUC_COUNT(keys); i++) {
        const void *field = (const char *)front + keys[i].offset;

        if (keys[i].offset == offsetof(muc_front_end, numbers))
            continue;
        muc_text_add(text, "%s%s=", i ? "," : "", keys[i].name);
        if (keys[i].kind == KEY_COUNT)
            muc_text_add(text, "%u", *(const uint32_t *)field);
        else if (keys[i].kind == KEY_REAL)
            muc_text_add(text, "%.10g", *(const double *)field);
        else
            muc_text_add(text, "%s", keys[i].words[*(const unsigned *)field]);
    }
}

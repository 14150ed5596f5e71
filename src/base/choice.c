/* choice.c - finds a word in a list, and the word that a misspelt one was meant to be. */
#include "base/choice.h"

#include <string.h>

enum { LONGEST = 32, LEAST_BEGINNING = 3, MOST_TOLD = 20 };

/* insertions, deletions and replacements between two short words */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[LONGEST + 1];
    size_t rows = strlen(a), columns = strlen(b);

    if (rows > LONGEST || columns > LONGEST)
        return LONGEST;
    for (size_t j = 0; j <= columns; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= rows; i++) {
        unsigned diagonal = row[0];

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= columns; j++) {
            unsigned best = diagonal + (a[i - 1] != b[j - 1]);

            best = row[j] + 1 < best ? row[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[columns];
}

static bool begins(const char *word, const char *other)
{
    size_t length = strlen(other);

    return length >= LEAST_BEGINNING && strncmp(word, other, length) == 0;
}

void muc_guess_try(muc_guess *guess, const char *candidate)
{
    unsigned d = distance(guess->word, candidate);
    bool is_near = 3 * d <= strlen(candidate) + 2;

    if (!is_near && (begins(guess->word, candidate) || begins(candidate, guess->word))) {
        d = LONGEST; /* after those that are near by letters */
        is_near = true;
    }
    if (!is_near || (guess->best && d >= guess->distance))
        return;
    guess->best = candidate;
    guess->distance = d;
}

/* ---- words that are not found ---- */

void muc_choice_begin(muc_choice *choice, const char *word, size_t size)
{
    memset(choice, 0, sizeof(*choice));
    if (size >= sizeof(choice->word))
        size = sizeof(choice->word) - 1;
    memcpy(choice->word, word, size); /* cleared above */
    choice->guess.word = choice->word;
}

void muc_choice_add(muc_choice *choice, const char *name)
{
    if (choice->last && strcmp(choice->last, name) == 0)
        return;
    muc_guess_try(&choice->guess, name);
    if (choice->last && choice->count < MOST_TOLD)
        muc_text_add(&choice->list, "%s%s", choice->list.size ? ", " : "", choice->last);
    choice->last = name;
    choice->count++;
}

muc_text muc_choice_end(muc_choice *choice, const char *what)
{
    const char *list = choice->list.data;
    muc_text text = { 0 };

    muc_text_add(&text, "there is no %s%s'%s'; ", what, *what ? " " : "", choice->word);
    if (choice->count > MOST_TOLD)
        muc_text_add(&text, "expected %s or one of %zu more", list, choice->count - MOST_TOLD + 1);
    else if (choice->last)
        muc_text_add(&text, "expected %s%s%s", list ? list : "", list ? " or " : "", choice->last);
    else
        muc_text_add(&text, "there are none");
    if (choice->guess.best)
        muc_text_add(&text, "; did you mean '%s'?", choice->guess.best);
    text.failed |= choice->list.failed;
    muc_text_free(&choice->list);
    return text;
}

muc_status muc_choice_refuse(muc_context *ctx, muc_choice *choice, muc_status status,
                             const char *subject, const char *what)
{
    muc_text text = muc_choice_end(choice, what);
    muc_status told = muc_text_status(ctx, &text);

    if (told == MUC_OK)
        told = muc_fail(ctx, status, subject, MUC_NO_OFFSET, "%s", text.data);
    muc_text_free(&text);
    return told;
}

muc_status muc_choose(muc_context *ctx, const char *subject, const char *word,
                      const char *const *names, size_t count, unsigned *out)
{
    muc_choice choice;

    for (unsigned i = 0; i < count; i++)
        if (strcmp(word, names[i]) == 0) {
            *out = i;
            return MUC_OK;
        }
    muc_choice_begin(&choice, word, strlen(word));
    for (size_t i = 0; i < count; i++)
        muc_choice_add(&choice, names[i]);
    return muc_choice_refuse(ctx, &choice, MUC_USAGE, subject, "");
}

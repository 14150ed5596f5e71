/* choice.c - words in lists, and what a misspelt one was meant to be. */
#include "base/choice.h"

#include <string.h>

#include "base/text.h"
#include "muc/guess.h"

enum { LONGEST = 32, LEAST_BEGINNING = 3 };

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

muc_status muc_choose(muc_context *ctx, const char *subject, const char *word,
                      const char *const *names, size_t count, unsigned *out)
{
    muc_guess guess = { .word = word };
    muc_text list = { 0 };
    muc_status status;

    for (unsigned i = 0; i < count; i++) {
        if (strcmp(word, names[i]) == 0) {
            *out = i;
            muc_text_free(&list);
            return MUC_OK;
        }
        muc_guess_try(&guess, names[i]);
        muc_text_add(&list, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " or ", names[i]);
    }
    status = muc_text_status(ctx, &list);
    if (status == MUC_OK)
        status =
            muc_fail(ctx, MUC_USAGE, subject, MUC_NO_OFFSET, "there is no '%s'; expected %s%s%s%s",
                     word, list.data ? list.data : "nothing", guess.best ? "; did you mean '" : "",
                     guess.best ? guess.best : "", guess.best ? "'?" : "");
    muc_text_free(&list);
    return status;
}

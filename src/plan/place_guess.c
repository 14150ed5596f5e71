/* place_guess.c - makes an easier list to search of a hard one, by guesses.
 *
 * What is unused is taken for bodies (place_fill.c), and bodies that seem to lie side by side for
 * one (place_merge.c). The better the holes are guessed the more becomes one. So the guess is
 * changed here and there, and each change kept after which no more bodies are left.
 */
#include "plan/floors.h"

#include <stdlib.h>
#include <string.h>

enum {
    RISKS = 8,
    TRIES = 128, /* changes of a guess; of some that times a power of two */
    WINDOW = 8,  /* sections, at most, in which one changes it */
};

static uint64_t draw(muc_chance *chance)
{
    return (uint64_t)muc_chance_draw(chance, UINT32_MAX) << 32 |
           muc_chance_draw(chance, UINT32_MAX) | 1;
}

static void change(muc_chance *chance, uint64_t *seeds, uint32_t from, uint32_t end)
{
    for (uint32_t k = from; k < end; k++)
        seeds[k] = draw(chance);
}

/* Keeps the best of all tries in *out. seeds, changed: sections + 2; holes: three a section. */
static muc_status climb(muc_context *ctx, const muc_floors *floors, uint32_t guess,
                        muc_chance *chance, uint64_t *budget, uint64_t *seeds, uint64_t *changed,
                        muc_hole *holes, muc_bodies *out)
{
    uint32_t risk = muc_chance_draw(chance, RISKS), count = floors->sections + 2;
    uint64_t tries = TRIES * muc_luby((uint64_t)guess + 1);
    muc_chance same = { draw(chance) };

    change(chance, seeds, 0, count);
    for (uint64_t i = 0; i <= tries && (i == 0 || *budget > 0); i++) {
        uint32_t from = muc_chance_draw(chance, count), hole_count;
        uint32_t end = from + 1 + muc_chance_draw(chance, WINDOW);
        muc_bodies merged;
        muc_status status;

        memcpy(changed, seeds, count * sizeof(*seeds));
        if (i > 0)
            change(chance, changed, from, end < count ? end : count);
        MUC_TRY(muc_floors_fill(ctx, floors, guess, changed, holes, &hole_count));
        status = muc_floors_merge(ctx, floors, holes, hole_count, risk, same, budget, &merged);
        if (status == MUC_OK && (i == 0 || merged.count <= out->count)) {
            muc_bodies before = *out;

            *out = merged;
            merged = before;
            memcpy(seeds, changed, count * sizeof(*seeds));
        }
        muc_bodies_free(&merged);
        if (status != MUC_OK || hole_count == 0)
            return status;
    }
    return MUC_OK;
}

muc_status muc_floors_guess(muc_context *ctx, const muc_floors *floors, uint32_t guess,
                            muc_chance *chance, uint64_t *budget, muc_bodies *out)
{
    size_t count = (size_t)floors->sections + 2;
    uint64_t *seeds = NULL, *changed = NULL;
    muc_hole *holes = NULL;
    muc_status status = MUC_NEW_ARRAY(ctx, "plan", count, &seeds);

    *out = (muc_bodies){ 0 };
    if (status == MUC_OK)
        status = MUC_NEW_ARRAY(ctx, "plan", count, &changed);
    if (status == MUC_OK)
        status = MUC_NEW_ARRAY(ctx, "plan", 3 * count, &holes);
    if (status == MUC_OK)
        status = climb(ctx, floors, guess, chance, budget, seeds, changed, holes, out);
    free(seeds);
    free(changed);
    free(holes);
    return status;
}

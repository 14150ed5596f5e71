/* mur_lm.c - the loop around a program: tokens into IO, an entry run, logits out of IO. */
#include "mur_lm.h"

#include <string.h>

mur_status mur_lm_open(mur_lm *lm, const mur_program *program, const mur_hal *hal, void *io)
{
    memset(lm, 0, sizeof(*lm));
    lm->program = program;
    lm->hal = hal;
    lm->io = io;
    lm->budget = UINT32_MAX;
    if (program->steps == 0)
        return MUR_E_VERIFY;
    return mur_find_entry(program, MUR_ENTRY_DECODE, 1) < program->entry_count ? MUR_OK
                                                                               : MUR_E_UNSUPPORTED;
}

void mur_lm_reset(mur_lm *lm)
{
    lm->pos = lm->left = lm->fed = 0;
}

mur_status mur_lm_feed(mur_lm *lm, const uint32_t *tokens, uint32_t count)
{
    const mur_meta *meta = lm->program->meta;

    if (lm->left != 0 || count == 0 || count > meta->context - lm->pos)
        return MUR_E_INPUT;
    for (uint32_t i = 0; i < count; i++)
        if (tokens[i] >= meta->vocabulary)
            return MUR_E_INPUT;
    lm->tokens = tokens;
    lm->left = count;
    return MUR_OK;
}

/* The entry that takes the most tokens, up to *m; *m becomes how many. */
static uint32_t entry_for(const mur_program *program, uint32_t *m)
{
    for (; *m > 1; --*m) {
        uint32_t entry = mur_find_entry(program, MUR_ENTRY_PREFILL, *m);

        if (entry < program->entry_count)
            return entry;
    }
    return mur_find_entry(program, MUR_ENTRY_DECODE, 1);
}

/* where AMAX leaves the word address of the likeliest logit, behind the logits; NULL if IO has no
 * such place */
static uint32_t *choice_of(const mur_lm *lm)
{
    const mur_meta *meta = lm->program->meta;
    uint32_t at = (meta->logits + 4 * meta->vocabulary + 63) / 64 * 64;

    return at < meta->io_bytes ? (uint32_t *)(void *)(lm->io + at) : NULL;
}

static mur_status start_call(mur_lm *lm)
{
    /* the fewest calls there can be, of about as many tokens: none reads all weights for a few */
    uint32_t rows = lm->program->meta->rows, calls = (lm->left + rows - 1) / rows;
    uint32_t m = (lm->left + calls - 1) / calls, entry = entry_for(lm->program, &m);
    mur_status status;

    memcpy(lm->io, lm->tokens, 4 * (size_t)m);
    if (choice_of(lm) != NULL)
        *choice_of(lm) = 0;
    status = mur_start(&lm->run, lm->program, lm->hal, entry, lm->pos, m);
    if (status != MUR_OK)
        return status;
    if (lm->left != m && !lm->all_logits)
        mur_skip_logits(&lm->run);
    lm->fed = m;
    return MUR_OK;
}

mur_status mur_lm_run(mur_lm *lm)
{
    while (lm->left != 0) {
        mur_status status = lm->fed == 0 ? start_call(lm) : MUR_OK;

        if (status == MUR_OK)
            status = mur_run_some(&lm->run, lm->budget);
        if (status == MUR_OK && !lm->run.done)
            status = MUR_YIELD;
        if (status != MUR_OK)
            return status;
        lm->pos += lm->fed;
        lm->tokens += lm->fed;
        lm->left -= lm->fed;
        lm->fed = 0;
    }
    return MUR_OK;
}

float *mur_lm_logits(const mur_lm *lm)
{
    return (float *)(void *)(lm->io + lm->program->meta->logits);
}

uint32_t mur_lm_likeliest(const mur_lm *lm)
{
    const uint32_t *choice = choice_of(lm);
    uint32_t n = lm->program->meta->vocabulary, bits = MUR_LOWEST_LOGIT, best = n;

    if (choice != NULL) /* 0 if the program looked at none */
        best = *choice - lm->program->meta->logits / 4;
    if (best >= n)
        best = mur_sampler_greater(mur_lm_logits(lm), n, &bits);
    return best < n ? best : 0;
}

int mur_lm_ends(const mur_lm *lm, uint32_t token)
{
    const mur_meta *meta = lm->program->meta;

    return token == meta->eos || token == meta->eos2 || token == meta->eos3;
}

/* ---- text ---- */

mur_status mur_lm_begin(mur_lm_text *text, const uint32_t *prompt, uint32_t count, uint32_t most)
{
    mur_status status = mur_lm_feed(text->lm, prompt, count);

    if (status != MUR_OK)
        return status;
    text->end = most != 0 ? MUR_LM_GOING : MUR_LM_LENGTH;
    text->made = 0;
    text->most = most;
    text->token = prompt[count - 1];
    return MUR_OK;
}

mur_status mur_lm_step(mur_lm_text *text)
{
    mur_lm *lm = text->lm;
    uint32_t previous = text->token;
    const uint8_t *bytes;
    mur_status status;
    size_t count;

    if (text->end != MUR_LM_GOING)
        return MUR_OK;
    status = mur_lm_run(lm);
    if (status != MUR_OK)
        return status;
    text->token =
        mur_sampler_next_to(text->sampler, mur_lm_logits(lm), lm->program->meta->vocabulary,
                            mur_lm_likeliest(lm), text->sampler_scratch);
    if (mur_lm_ends(lm, text->token)) {
        text->end = MUR_LM_EOS;
        return MUR_OK;
    }
    text->made++;
    count = mur_tokenizer_decode(text->tokenizer, text->token, previous, &bytes);
    text->write(text->write_arg, bytes, count);
    if (text->made == text->most)
        text->end = MUR_LM_LENGTH;
    else if (mur_lm_feed(lm, &text->token, 1) != MUR_OK)
        text->end = MUR_LM_FULL;
    return MUR_OK;
}

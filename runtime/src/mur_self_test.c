/* mur_self_test.c - golden vectors on a board: every stage's checksum, then the logits'. */
#include "mur_lm.h"

#include <string.h>

typedef struct self_test {
    mur_lm *lm;
    const mur_hal *machine;
    const mur_gold *gold;
    const uint32_t *stages; /* rows of STAG, of the first positions */
    uint32_t count, stage_rows;
    uint32_t crc[MUR_STAGES]; /* of the stages under way */
    mur_lm_difference first;
    mur_stage_watch watch;
} self_test;

/* ---- stages ---- */

/* The stages from..to of a layer are over. */
static void settle(self_test *t, uint32_t from, uint32_t to, uint32_t layer)
{
    const mur_meta *meta = t->lm->program->meta;
    const uint32_t *row = t->stages + t->first.position * mur_stage_words(meta);

    for (uint32_t s = from; s <= to; s++) {
        uint32_t expected = row[mur_stage_index((enum mur_stage)s, layer)];

        if (t->crc[s] != expected && t->first.stage == MUR_STAGES) {
            t->first.stage = (enum mur_stage)s;
            t->first.layer = layer;
        }
        t->crc[s] = 0;
    }
}

/* A residual is what a half layer ends with. */
static void see_stage(void *arg, const mur_stage_values *values, const uint32_t *words,
                      uint32_t count)
{
    self_test *t = arg;
    enum mur_stage stage = values->stage;

    if (values->layer >= t->lm->program->meta->layers)
        return;
    t->crc[stage] = mur_crc32(t->crc[stage], words, 4 * (size_t)count);
    if (values->column + count < values->columns)
        return;
    if (stage == MUR_STAGE_EMBEDDING)
        settle(t, MUR_STAGE_EMBEDDING, MUR_STAGE_EMBEDDING, 0);
    else if (stage == MUR_STAGE_MIDDLE)
        settle(t, MUR_STAGE_QUERIES, MUR_STAGE_MIDDLE, values->layer);
    else if (stage == MUR_STAGE_RESIDUAL)
        settle(t, MUR_STAGE_GATE, MUR_STAGE_RESIDUAL, values->layer);
}

/* ---- positions ---- */

/* Feeds the vectors from lm's position to `end`. */
static mur_status feed(self_test *t, uint32_t end)
{
    mur_lm *lm = t->lm;
    uint32_t tokens[64];
    mur_status status = MUR_OK;

    while (status == MUR_OK && lm->pos != end) {
        uint32_t n = end - lm->pos < 64 ? end - lm->pos : 64;

        for (uint32_t i = 0; i < n; i++)
            tokens[i] = t->gold[lm->pos + i].token;
        status = mur_lm_feed(lm, tokens, n);
        if (status == MUR_OK) {
            do
                status = mur_lm_run(lm);
            while (status == MUR_YIELD);
        }
    }
    return status;
}

/* Feeds up to `end`; are the stages of one token, and the logits, those of the last vector? */
static mur_status check(self_test *t, uint32_t end)
{
    const mur_program *program = t->lm->program;
    int watched = t->lm->pos + 1 == end && end <= t->stage_rows;
    mur_status status;

    t->first.position = end - 1;
    if (watched) {
        memset(t->crc, 0, sizeof(t->crc));
        mur_stage_watch_begin(&t->watch, program->meta, t->machine, t->lm->io, see_stage, t);
        t->lm->hal = &t->watch.hal;
    }
    status = feed(t, end);
    t->lm->hal = t->machine;
    if (status != MUR_OK || t->first.stage != MUR_STAGES)
        return MUR_E_FAULT;
    if (mur_crc32(0, mur_lm_logits(t->lm), 4 * (size_t)program->meta->vocabulary) ==
        t->gold[end - 1].logits_crc)
        return MUR_OK;
    t->first.stage = MUR_STAGE_LOGITS;
    return MUR_E_FAULT;
}

mur_status mur_lm_self_test(mur_lm *lm, mur_lm_difference *first)
{
    const mur_program *program = lm->program;
    const uint32_t *bytes = program->section_bytes;
    self_test t = { .lm = lm, .machine = lm->hal, .first = { 0, MUR_STAGES, 0 } };
    mur_status status = MUR_OK;

    t.gold = (const mur_gold *)(const void *)program->section[MUR_SECTION_GOLD];
    t.count = bytes[MUR_SECTION_GOLD] / (uint32_t)sizeof(*t.gold);
    t.stages = (const uint32_t *)(const void *)program->section[MUR_SECTION_STAG];
    t.stage_rows = bytes[MUR_SECTION_STAG] / 4 / mur_stage_words(program->meta);
    if (t.count == 0)
        return MUR_E_UNSUPPORTED;
    mur_lm_reset(lm);
    for (uint32_t end = 1; status == MUR_OK && end <= t.count; end++)
        status = check(&t, end);
    if (status == MUR_OK) {
        mur_lm_reset(lm);
        status = check(&t, t.count);
    }
    if (status == MUR_OK)
        t.first.position = t.count;
    if (first)
        *first = t.first;
    mur_lm_reset(lm);
    return status;
}

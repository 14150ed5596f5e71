/* mur_stages.c - a model's stages by the instructions that complete them, and a HAL that watches.
 */
#include "mur_stages.h"
#include "mur_code.h"

#include <string.h>

enum {
#define MUR_INSN(name, opcode, words, engine, meaning) OPCODE_##name = opcode,
#define MUR_FIELD(insn, name, word, shift, width, unit) \
    WORD_##insn##_##name = word, SHIFT_##insn##_##name = shift, WIDTH_##insn##_##name = width,
#include "mur_isa.def"
    OPCODE_BITS = 8
};

#define FIELD(insn, name) \
    mur_bits(words[WORD_##insn##_##name], SHIFT_##insn##_##name, WIDTH_##insn##_##name)

/* NORM, or QUANT where layers have no norms there, reads the residual: after the embedding, or what
 * the half layer before has left. The last one reads the last token's alone. */
static uint32_t add_residual(mur_stages *s, mur_stage_values *out)
{
    uint32_t layer = s->norms / 2;
    enum mur_stage stage = MUR_STAGE_MIDDLE;

    if (s->norms % 2 == 0) {
        stage = layer != 0 ? MUR_STAGE_RESIDUAL : MUR_STAGE_EMBEDDING;
        layer -= layer != 0;
    }
    out->stage = stage;
    out->layer = layer;
    out->row = s->norms == 2 * s->meta->layers ? s->tokens - 1 : 0;
    if (s->norms == 0)
        s->residual = out->address;
    s->norms++;
    s->ropes = s->divisions = s->gates = 0;
    return 1;
}

/* By turns the queries of a kv head's group and its keys. A program that computes keys anew rotates
 * them chunk by chunk instead, and heads that turn in part are turned one by one; what they are
 * worth shows in the attention. */
static uint32_t add_rope(mur_stages *s, const uint32_t *words, mur_stage_values *out)
{
    uint32_t columns = FIELD(ROPE, heads) * FIELD(ROPE, k);

    if (s->ropes >= 2 * (s->divisions + 1) || FIELD(ROPE, k) != s->meta->head_width)
        return 0;
    *out = (mur_stage_values){ s->ropes % 2 == 0 ? MUR_STAGE_QUERIES : MUR_STAGE_KEYS,
                               (s->norms - 1) / 2,
                               0,
                               s->ropes / 2 * columns,
                               FIELD(ROPE, saddr),
                               FIELD(ROPE, spitch),
                               FIELD(ROPE, rows),
                               columns };
    s->ropes += s->meta->recompute ? 2 : 1;
    return 1;
}

static uint32_t add_division(mur_stages *s, const uint32_t *words, mur_stage_values *out)
{
    uint32_t columns = FIELD(DIV, group) * FIELD(DIV, k);

    *out = (mur_stage_values){ MUR_STAGE_ATTENTION,
                               (s->norms - 1) / 2,
                               0,
                               s->divisions++ * columns,
                               FIELD(DIV, daddr),
                               FIELD(DIV, dpitch),
                               FIELD(DIV, rows) / FIELD(DIV, group),
                               columns };
    return 1;
}

static uint32_t add_gate(mur_stages *s, const uint32_t *words, mur_stage_values *out)
{
    uint32_t k = FIELD(GLU, k);

    out[0] = (mur_stage_values){
        MUR_STAGE_GATE, (s->norms - 1) / 2, 0, s->gates, FIELD(GLU, saddr), k, FIELD(GLU, rows), k
    };
    out[1] = out[0];
    out[1].stage = MUR_STAGE_UP;
    out[1].address = FIELD(GLU, uaddr);
    s->gates += k;
    return 2;
}

uint32_t mur_stages_add(mur_stages *s, const uint32_t *words, mur_stage_values out[MUR_STAGE_MOST])
{
    uint32_t opcode = mur_bits(words[0], 0, OPCODE_BITS);

    if (opcode == OPCODE_NORM) {
        *out = (mur_stage_values){ .address = FIELD(NORM, saddr),
                                   .pitch = FIELD(NORM, spitch),
                                   .rows = FIELD(NORM, rows),
                                   .columns = FIELD(NORM, k) };
        return add_residual(s, out);
    }
    if (opcode == OPCODE_QUANT && (s->norms == 0 || FIELD(QUANT, saddr) == s->residual)) {
        *out = (mur_stage_values){ .address = FIELD(QUANT, saddr),
                                   .pitch = FIELD(QUANT, spitch),
                                   .rows = FIELD(QUANT, rows),
                                   .columns = FIELD(QUANT, k) };
        return add_residual(s, out);
    }
    if (opcode == OPCODE_EMBED) {
        s->tokens = FIELD(EMBED, rows);
        s->norms = 0;
    } else if (s->norms == 0) { /* a program that begins in another way shows no stages */
        return 0;
    } else if (opcode == OPCODE_ROPE) {
        return add_rope(s, words, out);
    } else if (opcode == OPCODE_DIV) {
        return add_division(s, words, out);
    } else if (opcode == OPCODE_GLU) {
        return add_gate(s, words, out);
    }
    return 0;
}

/* ---- a watch ---- */

static void wait_for(const mur_stage_watch *w, enum mur_engine engine)
{
    while (w->machine->completed(w->machine->arg, engine) != w->issued[engine]) {
    }
}

/* count words of GB from `address` on, to the room of the logits */
static mur_status fetch(mur_stage_watch *w, uint32_t address, uint32_t count)
{
    const uint32_t words[] = { OPCODE_ST,
                               4 * address << SHIFT_ST_addr | (uint32_t)MUR_GB << SHIFT_ST_buf |
                                   (uint32_t)MUR_IO << SHIFT_ST_region,
                               w->stages.meta->logits, 4 * count };
    mur_status status;

    do
        status = w->machine->dma(w->machine->arg, words);
    while (status == MUR_YIELD);
    if (status != MUR_OK)
        return status;
    w->issued[MUR_DMA]++;
    w->own++;
    wait_for(w, MUR_DMA);
    return MUR_OK;
}

static mur_status show(mur_stage_watch *w, const mur_stage_values *values)
{
    uint32_t most = w->stages.meta->vocabulary;
    mur_stage_values piece = *values;

    for (uint32_t r = 0; r < values->rows; r++, piece.row++)
        for (uint32_t at = 0; at < values->columns; at += most) {
            uint32_t left = values->columns - at, count = left < most ? left : most;
            mur_status status = fetch(w, values->address + r * values->pitch + at, count);

            if (status != MUR_OK)
                return status;
            piece.column = values->column + at;
            w->see(w->arg, &piece, (const uint32_t *)(const void *)(w->io + w->stages.meta->logits),
                   count);
        }
    return MUR_OK;
}

static mur_status watch_dma(void *arg, const uint32_t *words)
{
    mur_stage_watch *w = arg;
    mur_status status = w->machine->dma(w->machine->arg, words);

    w->issued[MUR_DMA] += status == MUR_OK;
    return status;
}

static mur_status watch_accel(void *arg, const uint32_t *words)
{
    mur_stage_watch *w = arg;
    mur_stage_values found[MUR_STAGE_MOST];
    mur_status status = w->machine->accel(w->machine->arg, words);
    uint32_t count;

    if (status != MUR_OK)
        return status;
    w->issued[MUR_ACC]++;
    count = mur_stages_add(&w->stages, words, found);
    if (count != 0)
        wait_for(w, MUR_ACC);
    for (uint32_t i = 0; status == MUR_OK && i < count; i++)
        status = show(w, &found[i]);
    return status;
}

static mur_status watch_host(void *arg, const uint32_t *words)
{
    mur_stage_watch *w = arg;
    mur_stage_values none[MUR_STAGE_MOST];

    (void)mur_stages_add(&w->stages, words, none);
    return w->machine->host(w->machine->arg, words);
}

static uint32_t watch_completed(void *arg, enum mur_engine engine)
{
    const mur_stage_watch *w = arg;

    return w->machine->completed(w->machine->arg, engine) - (engine == MUR_DMA ? w->own : 0);
}

void mur_stage_watch_begin(mur_stage_watch *watch, const mur_meta *meta, const mur_hal *machine,
                           void *io, mur_stage_see *see, void *arg)
{
    memset(watch, 0, sizeof(*watch));
    watch->hal =
        (mur_hal){ watch, watch_dma, watch_accel, watch_host, watch_completed, NULL, NULL };
    watch->machine = machine;
    watch->io = io;
    watch->stages.meta = meta;
    watch->see = see;
    watch->arg = arg;
    for (uint32_t i = 0; i < MUR_CPU; i++)
        watch->issued[i] = machine->completed(machine->arg, (enum mur_engine)i);
}

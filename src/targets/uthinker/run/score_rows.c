/* score_rows.c - logits after each token of a call, of a program that computes the last one's. */
#include "targets/uthinker/run/score_rows.h"

#include <stdlib.h>
#include <string.h>

#include "mur_code.h"
#include "targets/uthinker/sim/uthinker_sim_execute.h"

enum {
#define MUR_INSN(name, opcode, words, engine, meaning) OP_##name = opcode, WORDS_##name = words,
#define MUR_FIELD(insn, name, word, shift, width, unit) \
    WORD_##insn##_##name = word, SHIFT_##insn##_##name = shift, WIDTH_##insn##_##name = width,
#include "mur_isa.def"
    OPCODE_BITS = 8
};

#define FIELD(insn, name) \
    mur_bits(words[WORD_##insn##_##name], SHIFT_##insn##_##name, WIDTH_##insn##_##name)
#define PUT(words, insn, name, value) \
    put((words) + WORD_##insn##_##name, SHIFT_##insn##_##name, WIDTH_##insn##_##name, value)

static void put(uint32_t *word, uint32_t shift, uint32_t width, uint32_t value)
{
    uint32_t mask = (0xffffffffu >> (32u - width)) << shift;

    *word = (*word & ~mask) | (value << shift & mask);
}

/* The last NORM of a call begins its head; the rows of what read the residual before it, a NORM or
 * QUANT, are all tokens'. */
static void see_residual(muc_score *s, const uint32_t *words, const mur_stage_values *values)
{
    uint32_t own[WORDS_NORM], last = s->stages.tokens - 1;
    bool final = values->stage == MUR_STAGE_RESIDUAL && values->layer + 1 == s->stages.meta->layers;

    if (!final) {
        s->rows = values->rows;
        s->address = values->address;
        s->pitch = values->pitch;
        return;
    }
    s->in_head = true;
    s->dst = FIELD(NORM, dst);
    s->daddr = FIELD(NORM, daddr);
    s->slots_pitch = mur_sim_slots_bytes(FIELD(NORM, k), FIELD(NORM, terms));
    if (values->rows != 1 || s->rows != last + 1 || s->slots_pitch == 0 ||
        values->address != s->address + last * s->pitch ||
        s->aside->memory.buffer_bytes[s->dst] / s->slots_pitch < last) {
        s->unlike = true;
        return;
    }
    s->rows = last;
    mur_sim_do_kept(s->sim);
    memcpy(own, words, sizeof(own));
    PUT(own, NORM, saddr, s->address);
    PUT(own, NORM, rows, last);
    PUT(own, NORM, spitch, s->pitch);
    PUT(own, NORM, daddr, 0);
    s->unlike |= mur_sim_instructions[OP_NORM].run(s->aside, own) != NULL;
}

static void see_product(muc_score *s, const uint32_t *words)
{
    uint32_t pitch = s->sim->memory.buffer_bytes[MUR_GB] / 4, from = FIELD(MM, saddr) - s->daddr;
    mur_sim_product op = {
        .left = s->slots + from,
        .out = s->products + FIELD(MM, daddr),
        .rows = s->rows,
        .cols = FIELD(MM, cols),
        .k = FIELD(MM, k),
        .terms = FIELD(MM, terms),
        .left_pitch = s->slots_pitch,
        .out_pitch = pitch,
        .tile_rows = mur_tile_rows(s->sim->memory.isa),
        .tile_columns = mur_tile_columns(s->sim->memory.isa),
        .fresh = FIELD(MM, acc) == 0,
    };

    mur_sim_operand(s->sim, FIELD(MM, wsrc), FIELD(MM, waddr), FIELD(MM, wlen), &op);
    if (FIELD(MM, src) != s->dst || FIELD(MM, rows) != 1 || from > s->slots_pitch ||
        mur_sim_slots_bytes(op.k, op.terms) > s->slots_pitch - from) {
        s->unlike = true;
        return;
    }
    s->unlike |= !mur_sim_multiply(s->aside, &op);
}

static mur_status see_accelerator(void *arg, const uint32_t *words)
{
    muc_score *s = arg;
    mur_status status = s->machine.accel(s->machine.arg, words);
    mur_stage_values values[MUR_STAGE_MOST];
    uint32_t opcode = mur_bits(words[0], 0, OPCODE_BITS);

    if (status != MUR_OK || s->unlike)
        return status;
    if (s->in_head && opcode == OP_MM)
        see_product(s, words);
    else if (s->in_head)
        s->unlike = true;
    else if (mur_stages_add(&s->stages, words, values) == 1 &&
             (opcode == OP_NORM || opcode == OP_QUANT))
        see_residual(s, words, values);
    return status;
}

/* A transfer of logits is one of all rows'. */
static mur_status see_transfer(void *arg, const uint32_t *words)
{
    muc_score *s = arg;
    mur_status status = s->machine.dma(s->machine.arg, words);
    const mur_meta *meta = s->stages.meta;
    uint32_t pitch = s->sim->memory.buffer_bytes[MUR_GB] / 4, at, count, column;

    if (status != MUR_OK || s->unlike || !s->in_head || mur_bits(words[0], 0, OPCODE_BITS) != OP_ST)
        return status;
    at = FIELD(ST, addr) / 4;
    count = FIELD(ST, len) / 4;
    column = (FIELD(ST, off) - meta->logits) / 4;
    if (FIELD(ST, buf) != MUR_GB || FIELD(ST, region) != MUR_IO || column > meta->vocabulary ||
        count > meta->vocabulary - column) {
        s->unlike = true;
        return status;
    }
    mur_sim_do_kept(s->sim);
    mur_sim_settle(s->aside);
    s->unlike |= s->aside->fault.reason != NULL;
    for (uint32_t row = 0; row <= s->rows; row++) {
        const float *gb = row < s->rows ? s->products + (size_t)row * pitch : s->sim->memory.gb;

        memcpy(s->logits + (size_t)(s->base + row) * meta->vocabulary + column, gb + at,
               count * sizeof(float));
    }
    return status;
}

static mur_status see_host(void *arg, const uint32_t *words)
{
    muc_score *s = arg;
    mur_stage_values values[MUR_STAGE_MOST];

    if (mur_bits(words[0], 0, OPCODE_BITS) == OP_EMBED) {
        s->base += s->stages.tokens <= s->count - s->base ? s->stages.tokens : 0;
        s->in_head = false;
        mur_stages_add(&s->stages, words, values);
        s->unlike |= s->stages.tokens == 0 || s->stages.tokens > s->count - s->base;
    }
    return s->machine.host(s->machine.arg, words);
}

static uint32_t see_completed(void *arg, enum mur_engine engine)
{
    muc_score *s = arg;

    return s->machine.completed(s->machine.arg, engine);
}

muc_status muc_score_open(muc_context *ctx, muc_score *score, const mur_meta *meta, mur_sim *sim,
                          const mur_hal *machine)
{
    mur_sim_memory memory = sim->memory;
    size_t slots = (size_t)meta->rows * mur_sim_slots_bytes(meta->width, MUR_BLOCK_TERMS);

    *score = (muc_score){ .machine = *machine, .sim = sim, .stages.meta = meta };
    score->hal = (mur_hal){
        .arg = score,
        .dma = see_transfer,
        .accel = see_accelerator,
        .host = see_host,
        .completed = see_completed,
        .counts = machine->counts,
    };
    MUC_TRY(MUC_NEW_ARRAY(ctx, "simulator", 1, &score->aside));
    MUC_TRY(muc_new_array(ctx, "simulator", slots, 1, (void **)&score->slots));
    MUC_TRY(muc_new_array(ctx, "simulator", meta->rows, memory.buffer_bytes[MUR_GB],
                          (void **)&score->products));
    for (uint32_t b = 0; b < MUR_GB; b++) {
        memory.buffer[b] = score->slots;
        memory.buffer_bytes[b] = (uint32_t)slots;
    }
    *score->aside = *sim;
    score->aside->memory = memory;
    MUC_TRY(muc_fast_product_open(ctx, &score->product));
    muc_fast_product_keep(ctx, score->product, score->aside);
    return MUC_OK;
}

void muc_score_begin(muc_score *score, uint32_t count, float *logits)
{
    score->logits = logits;
    score->count = count;
    score->base = score->stages.tokens = 0;
    score->unlike = score->in_head = false;
}

void muc_score_close(muc_score *score)
{
    muc_fast_product_close(score->product);
    free(score->aside);
    free(score->slots);
    free(score->products);
}

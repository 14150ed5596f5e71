/* golden_vectors.c - runs a program on the simulator and notes the checksums of what it makes.
 *
 * The tokens are known before it runs, so that it takes them in calls as large as it can, which
 * read all weights a few times in place of once a token. The last two, behind a whole step, are
 * decoded. Both ways give the same bits, and a board that tests itself goes either way through all
 * of them.
 */
#include "targets/uthinker/golden_vectors.h"

#include <stdlib.h>
#include <string.h>

#include "mur_stages.h"
#include "run/engine.h"
#include "run/logits.h"
#include "targets/uthinker/isa/uthinker_isa.h"
#include "targets/uthinker/run/engine_machine.h"
#include "targets/uthinker/run/open_program.h"
#include "text/tokenizer.h"

static const char text[] =
    "The river rose for three days before anyone in the village spoke of leaving. On the fourth "
    "morning, 27 carts stood in the square, each with a lamp, a rope and a barrel of water. \"We "
    "go north,\" said the miller's daughter, \"and we do not stop until we can see the sea.\" Her "
    "brother counted the horses twice, wrote the number on his hand and closed the gate. Behind "
    "them the bells began to ring, slowly at first, then faster, as if they wanted to be heard on "
    "the other side of the mountains.";

typedef struct golden_run {
    muc_context *ctx;
    const mur_meta *meta;
    muc_golden_vectors *out;
    mur_stages seen;            /* of the call under way, */
    uint32_t position;          /* whose first token is at this position */
    uint32_t begin, end;        /* of the feed that it is in */
    mur_stage_values residuals; /* all tokens', of the layer's middle */
} golden_run;

/* ---- stages ---- */

/* A feed that is taken up once more, call by call, begins anew. */
static void begin_call(golden_run *run, uint32_t tokens_before)
{
    size_t row_words = mur_stage_words(run->meta);

    run->position += tokens_before;
    if (run->position + run->seen.tokens <= run->end)
        return;
    run->position = run->begin;
    memset(run->out->stages + run->begin * row_words, 0,
           (run->end - run->begin) * row_words * sizeof(*run->out->stages));
}

/* The last norm reads the last token's residual alone; those of the others lie before it. */
static void take_all_rows(const golden_run *run, mur_stage_values *values)
{
    values->address -= values->row * run->residuals.pitch;
    values->pitch = run->residuals.pitch;
    values->rows += values->row;
    values->row = 0;
}

static void add_stage(golden_run *run, const float *gb, mur_stage_values *of)
{
    uint32_t words = mur_stage_words(run->meta), *row;

    if (of->stage == MUR_STAGE_MIDDLE)
        run->residuals = *of;
    if (of->stage == MUR_STAGE_RESIDUAL && of->row > 0)
        take_all_rows(run, of);
    row = run->out->stages + (size_t)run->position * words + mur_stage_index(of->stage, of->layer);
    for (uint32_t r = 0; r < of->rows; r++, row += words)
        *row = muc_crc32(*row, (const uint8_t *)(gb + of->address + (size_t)r * of->pitch),
                         of->columns * sizeof(*gb));
}

/* Adds to the checksums of the call's tokens what an instruction has completed. */
static void see_instruction(void *arg, mur_sim *sim, enum mur_engine engine, const uint32_t *words)
{
    golden_run *run = arg;
    uint32_t tokens_before = run->seen.tokens;
    mur_stage_values found[MUR_STAGE_MOST];
    uint32_t count = mur_stages_add(&run->seen, words, found);

    (void)engine;
    if ((words[0] & MUC_WORD0_OPCODE) == muc_insn_get(MUC_INSN_EMBED)->opcode)
        begin_call(run, tokens_before);
    if (count > 0)
        mur_sim_do_kept(sim);
    for (uint32_t i = 0; i < count; i++)
        add_stage(run, sim->memory.gb, &found[i]);
}

/* ---- tokens and logits ---- */

static muc_status choose_tokens(muc_context *ctx, const muc_model *model, uint32_t vocabulary,
                                uint32_t tokens[MUC_GOLDEN_POSITIONS])
{
    uint32_t *ids;
    size_t count;

    for (uint32_t i = 0; i < MUC_GOLDEN_POSITIONS; i++)
        tokens[i] = i % vocabulary;
    if (model->tokenizer_bytes == 0)
        return MUC_OK;
    MUC_TRY(muc_tokenizer_encode(ctx, &model->tokenizer, text, strlen(text), MUR_ENCODE_BOS, &ids,
                                 &count));
    for (uint32_t i = 0; i < MUC_GOLDEN_POSITIONS && count > 0; i++)
        tokens[i] = ids[i % count];
    free(ids);
    return MUC_OK;
}

/* Feeds tokens up to position end. */
static muc_status feed(golden_run *run, muc_engine *engine, const uint32_t *tokens, uint32_t end)
{
    muc_golden_vectors *out = run->out;
    uint32_t vocabulary = run->meta->vocabulary, begin = run->end;
    size_t bytes = vocabulary * sizeof(float);
    const float *logits;

    run->position = run->begin = begin;
    run->end = end;
    run->seen.tokens = 0;
    MUC_TRY(muc_engine_feed(engine, tokens + begin, end - begin, true, &logits));
    for (uint32_t i = begin; i < end; i++, logits += vocabulary) {
        if (i < out->compared)
            memcpy(out->logits + (size_t)i * vocabulary, logits, bytes);
        out->rows[i] = (mur_gold){ .token = tokens[i],
                                   .logits_crc = muc_crc32(0, (const uint8_t *)logits, bytes),
                                   .arg_max = muc_logits_arg_max(logits, vocabulary) };
    }
    return MUC_OK;
}

static muc_status run_program(golden_run *run, const muc_model *model, muc_engine *engine)
{
    const uint32_t positions = run->out->positions;
    uint32_t tokens[MUC_GOLDEN_POSITIONS];

    MUC_TRY(choose_tokens(run->ctx, model, run->meta->vocabulary, tokens));
    while (run->end < positions) {
        uint32_t end = run->end + 1;

        if (run->end == 0)
            end = positions < MUC_ENGINE_MOST_TOKENS ? positions : MUC_ENGINE_MOST_TOKENS;
        muc_progress(run->ctx, "golden vectors", run->end, positions);
        MUC_TRY(feed(run, engine, tokens, end));
    }
    muc_progress(run->ctx, "golden vectors", positions, positions);
    return MUC_OK;
}

muc_status muc_make_golden_vectors(muc_context *ctx, muc_arena *arena, const muc_model *model,
                                   const muc_model *program, muc_golden_vectors *out)
{
    const mur_meta *meta = muc_model_program(program)->meta;
    golden_run run = { .ctx = ctx, .meta = meta, .out = out, .seen.meta = meta };
    muc_engine *engine;
    muc_status status;

    *out = (muc_golden_vectors){
        .positions = meta->context < MUC_GOLDEN_POSITIONS ? meta->context : MUC_GOLDEN_POSITIONS,
        .compared = meta->context < MUC_GOLDEN_COMPARED ? meta->context : MUC_GOLDEN_COMPARED,
    };
    MUC_TRY(
        MUC_ARENA_NEW(ctx, arena, (size_t)out->positions * mur_stage_words(meta), &out->stages));
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, (size_t)out->compared * meta->vocabulary, &out->logits));
    MUC_TRY(muc_engine_new(ctx, program, &engine));
    muc_engine_watch(engine, see_instruction, &run);
    status = run_program(&run, model, engine);
    muc_engine_free(engine);
    return status;
}

/* family_board.h - small models of any family with random weights, and boards that run their
 * programs. */
#ifndef FAMILY_BOARD_H
#define FAMILY_BOARD_H

#include "random_checkpoint.h"

#include "mur.h"
#include "passes/weights/quantize_blocks.h"
#include "ref/golden/uthinker_golden.h"
#include "targets/uthinker/sim/uthinker_sim.h"
#include "targets/uthinker/uthinker.h"

enum { MOST_CONTEXT = 320 };

/* How a case differs from Llama; `without` leaves one feature out again. */
typedef void change(muc_model_config *config);
typedef struct family {
    const char *name;
    change *with;
    change *without[8];
} family;

/* ---- a checkpoint in memory ---- */

static const muc_model_config llama = {
    .architecture = "LlamaForCausalLM",
    .family = MUC_FAMILY_LLAMA,
    .dim = 96,
    .ffn_dim = 160,
    .layers = 3,
    .heads = 4,
    .kv_heads = 2,
    .head_dim = 24,
    .vocabulary = 75,
    .context = MOST_CONTEXT,
    .norm_epsilon = 1e-5,
    .rope_theta = 10000,
};

static inline void make_checkpoint(muc_context *ctx, const family *f, muc_checkpoint *out)
{
    muc_model_config config = llama;

    f->with(&config);
    random_checkpoint(ctx, f->name, &config, 0.2, out);
}

static inline muc_graph *make_graph(muc_context *ctx, const muc_checkpoint *checkpoint)
{
    const muc_llama_options options = { 0 };
    const muc_quantize_options quantize = { .bits_per_weight = 9 };
    muc_quantize_result result;
    muc_graph *graph;

    CHECK_OK(ctx, muc_llama_build(ctx, checkpoint, &options, &graph));
    CHECK_OK(ctx, muc_quantize_weights(ctx, graph, &quantize, &result));
    return graph;
}

/* ---- a program and its board ---- */

typedef struct board {
    muc_context *ctx;
    muc_uthinker_build *build;
    void *image, *memory;
    mur_program program;
    mur_sim_memory places;
    mur_sim sim;
    mur_hal hal;
} board;

static inline void *take(uint8_t **at, size_t bytes)
{
    void *taken = *at;

    *at += (bytes + 15) / 16 * 16;
    return taken;
}

static inline void boot(board *b, muc_context *ctx, const muc_graph *graph,
                        const muc_uthinker_options *options, enum mur_sim_policy policy)
{
    static const muc_uthinker_tokens tokens = { .bos = UINT32_MAX };
    static mur_verifier verifier;
    muc_uthinker_machine machine;
    muc_arena arena = { 0 };
    size_t total = 256;
    uint8_t *at;

    *b = (board){ .ctx = ctx };
    CHECK_OK(ctx, muc_uthinker_read_machine(ctx, &arena, muc_uthinker_default_machine(), &machine));
    CHECK_OK(ctx, muc_uthinker_compile(ctx, graph, &machine, options, &tokens, &b->build));
    total += b->build->program.size;
    CHECK_EQ(mur_open(&b->program, b->build->program.data, b->build->program.size), MUR_OK);
    if (mur_verify(&b->program, &verifier) != MUR_OK)
        fail_msg("the verifier refuses word %u, reason %d", verifier.verdict.word,
                 (int)verifier.verdict.reason);
    memcpy(b->places.buffer_bytes, machine.buffer_bytes, sizeof(b->places.buffer_bytes));
    memcpy(b->places.region_bytes, b->program.region_bytes, sizeof(b->places.region_bytes));
    for (int i = 0; i < MUR_BUFFERS; i++)
        total += machine.buffer_bytes[i];
    total += b->program.region_bytes[MUR_KV] + b->program.region_bytes[MUR_IO];
    at = b->memory = calloc(1, total);
    assert_non_null(at);
    for (int i = 0; i < MUR_GB; i++)
        b->places.buffer[i] = take(&at, machine.buffer_bytes[i]);
    b->places.gb = take(&at, machine.buffer_bytes[MUR_GB]);
    b->places.io = take(&at, b->program.region_bytes[MUR_IO]);
    b->places.kv = take(&at, b->program.region_bytes[MUR_KV]);
    b->places.wgts = b->program.section[MUR_SECTION_WGTS];
    b->places.parm = b->program.section[MUR_SECTION_PARM];
    mur_sim_init(&b->sim, &b->places, policy, 7);
    b->hal = mur_sim_hal(&b->sim);
    muc_arena_free(&arena);
}

static inline void shut_down(board *b)
{
    muc_uthinker_build_free(b->build);
    free(b->memory);
}

/* the logits after tokens pos .. pos + m - 1 */
static const float *run(board *b, uint32_t pos, const int32_t *tokens, uint32_t m)
{
    enum mur_entry_kind kind = m == 1 ? MUR_ENTRY_DECODE : MUR_ENTRY_PREFILL;
    mur_run_state state;
    mur_status status;

    memcpy(b->places.io, tokens, m * sizeof(*tokens));
    CHECK_EQ(mur_start(&state, &b->program, &b->hal, mur_find_entry(&b->program, kind, m), pos, m),
             MUR_OK);
    do
        status = mur_run(&state);
    while (status == MUR_YIELD);
    if (status != MUR_OK || b->sim.fault.reason)
        fail_msg("pos %u, m %u: %s", pos, m, b->sim.fault.reason);
    return (const float *)(const void *)(b->places.io + b->program.meta->logits);
}

#endif

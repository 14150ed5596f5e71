/* uthinker_fixture.h - models compiled for µThinker, and their programs resolved. */
#ifndef UTHINKER_FIXTURE_H
#define UTHINKER_FIXTURE_H

#include "check.h"

#include "formats/checkpoint.h"
#include "models/llama.h"
#include "passes/weights/quantize_blocks.h"
#include "targets/uthinker/uthinker.h"

typedef struct fixture {
    muc_context *ctx;
    muc_checkpoint checkpoint;
    muc_graph *graph;
    muc_arena arena;
    muc_uthinker_machine machine;
    muc_uthinker_build *build;
} fixture;

static const muc_uthinker_tokens no_tokens = { .bos = UINT32_MAX,
                                               .eos = { UINT32_MAX, UINT32_MAX, UINT32_MAX } };

static inline void fixture_default_machine(fixture *f)
{
    CHECK_OK(f->ctx, muc_uthinker_read_machine(f->ctx, &f->arena, muc_uthinker_default_machine(),
                                               &f->machine));
}

/* the program with another section */
static inline void set_section(muc_context *ctx, muc_uthinker_build *build,
                               enum mur_section section, const uint8_t *data, size_t size)
{
    muc_uthinker_set_section(build, section, data, size);
    CHECK_OK(ctx, muc_uthinker_write(ctx, build));
}

/* f->ctx and f->checkpoint, for the default machine */
static inline void fixture_compile(fixture *f, const muc_uthinker_options *options)
{
    const muc_llama_options defaults = { 0 };
    const muc_quantize_options budget = { 0 };
    muc_quantize_result quantized;

    CHECK_OK(f->ctx, muc_llama_build(f->ctx, &f->checkpoint, &defaults, &f->graph));
    CHECK_OK(f->ctx, muc_quantize_weights(f->ctx, f->graph, &budget, &quantized));
    fixture_default_machine(f);
    CHECK_OK(f->ctx,
             muc_uthinker_compile(f->ctx, f->graph, &f->machine, options, &no_tokens, &f->build));
}

static inline void fixture_open(fixture *f, const char *path, const muc_uthinker_options *options)
{
    memset(f, 0, sizeof(*f));
    f->ctx = muc_context_new(2);
    CHECK_OK(f->ctx, muc_checkpoint_open(f->ctx, path, &f->checkpoint));
    fixture_compile(f, options);
}

/* a trained model of the shared data */
static inline void fixture_load(fixture *f, const char *path, const muc_uthinker_options *options)
{
    fixture_open(f, shared_data(path), options);
}

static inline void fixture_stories(fixture *f, const muc_uthinker_options *options)
{
    fixture_load(f, "llama/stories260K.bin", options);
}

/* The words of a resolved program: from a board that executes nothing. */
typedef struct fixture_words {
    uint32_t *words; /* free */
    size_t count, capacity;
    uint32_t issued[MUR_ENGINES];
} fixture_words;

static inline mur_status fixture_record(void *arg, const uint32_t *words)
{
    fixture_words *r = arg;
    uint32_t op;

    CHECK(muc_insn_find_opcode(words[0] & MUC_WORD0_OPCODE, &op));
    if (r->count + MUR_MAX_WORDS > r->capacity) {
        r->capacity = 2 * r->capacity + 1024;
        r->words = realloc(r->words, 4 * r->capacity);
        assert_non_null(r->words);
    }
    memcpy(r->words + r->count, words, 4 * (size_t)muc_insn_get(op)->words);
    r->count += muc_insn_get(op)->words;
    r->issued[muc_insn_get(op)->engine]++;
    return MUR_OK;
}

static inline uint32_t fixture_completed(void *arg, enum mur_engine engine)
{
    return ((const fixture_words *)arg)->issued[engine];
}

/* an entry for (pos, m), resolved by the runtime's interpreter; replaces what out held */
static inline void fixture_interpret(const mur_program *program, uint32_t entry, uint32_t pos,
                                     uint32_t m, fixture_words *out)
{
    const mur_hal hal = {
        out, fixture_record, fixture_record, fixture_record, fixture_completed, NULL, NULL
    };
    mur_run_state run;

    out->count = 0;
    CHECK_EQ(mur_start(&run, program, &hal, entry, pos, m), MUR_OK);
    CHECK_EQ(mur_run(&run), MUR_OK);
}

static inline void fixture_free(fixture *f)
{
    muc_uthinker_build_free(f->build);
    muc_graph_free(f->graph);
    muc_checkpoint_close(&f->checkpoint);
    muc_arena_free(&f->arena);
    muc_context_free(f->ctx);
}

#endif

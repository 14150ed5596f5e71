/* template_size.c - the tables of docs/TEMPLATE.md, for each checkpoint named on the command line.
 *
 * A template beside the programs that it stands for, unrolled for one length each; and what every
 * pass of the flattening saves, in words and in EVALs executed.
 *
 * template_size --unrotated PROGRAM CHECKPOINT writes the program whose stages begin with their own
 * first load, in place of tables, for docs/ABLATIONS.md.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "formats/checkpoint.h"
#include "models/llama.h"
#include "mur_code.h"
#include "passes/weights/quantize_blocks.h"
#include "targets/uthinker/uthinker.h"

typedef struct subject {
    muc_context *ctx;
    const char *path;
    muc_checkpoint checkpoint;
    muc_graph *graph;
    muc_arena arena;
    muc_uthinker_build *build;
} subject;

static const muc_uthinker_tokens no_tokens = { .bos = UINT32_MAX,
                                               .eos = { UINT32_MAX, UINT32_MAX, UINT32_MAX } };

static muc_status compile(subject *s, const muc_uthinker_options *options)
{
    const muc_llama_options llama = { 0 };
    const muc_quantize_options budget = { 0 };
    muc_quantize_result quantized;
    muc_uthinker_machine machine;

    MUC_TRY(muc_checkpoint_open(s->ctx, s->path, &s->checkpoint));
    MUC_TRY(muc_llama_build(s->ctx, &s->checkpoint, &llama, &s->graph));
    MUC_TRY(muc_quantize_weights(s->ctx, s->graph, &budget, &quantized));
    MUC_TRY(muc_uthinker_read_machine(s->ctx, &s->arena, muc_uthinker_default_machine(), &machine));
    return muc_uthinker_compile(s->ctx, s->graph, &machine, options, &no_tokens, &s->build);
}

/* ---- unrolled ---- */

typedef struct sum {
    uint64_t instructions, words;
} sum;

static muc_status count_words(void *arg, const muc_instruction *instruction, const uint32_t *words,
                              uint32_t count)
{
    sum *total = arg;

    (void)instruction, (void)words;
    total->instructions++;
    total->words += count;
    return MUC_OK;
}

/* the programs of an entry for m tokens from each of the positions first .. last */
static muc_status print_unrolled(const subject *s, uint32_t entry, const char *what, uint32_t m,
                                 uint32_t first, uint32_t last)
{
    sum total = { 0 };

    for (uint32_t pos = first; pos <= last; pos++)
        MUC_TRY(
            muc_ir_resolve(s->ctx, &s->build->templates[entry], pos, m, true, count_words, &total));
    printf("| %s | %llu | %llu |\n", what, (unsigned long long)total.instructions,
           (unsigned long long)(4 * total.words));
    return MUC_OK;
}

static muc_status print_sizes(const subject *s)
{
    const muc_flat *flat = s->build->flat;
    uint32_t context = s->build->layout.options.context, rows = s->build->layout.options.rows;
    char what[64];

    printf("\n%s, context %u\n\n| program | instructions | bytes |\n|---|---|---|\n", s->path,
           context);
    for (uint32_t i = 0; i < MUC_UTHINKER_ENTRIES; i++)
        printf("| template %s | %u | %zu |\n", s->build->templates[i].name, flat[i].instructions,
               4 * flat[i].count);
    printf("| tables of both | | %zu |\n", s->build->sections.section[MUR_SECTION_TABL].size);
    MUC_TRY(print_unrolled(s, 0, "unrolled DECODE, first position", 1, 0, 0));
    MUC_TRY(print_unrolled(s, 0, "unrolled DECODE, last position", 1, context - 1, context - 1));
    MUC_TRY(print_unrolled(s, 0, "unrolled DECODE, every position", 1, 0, context - 1));
    snprintf(what, sizeof(what), "unrolled PREFILL of %u, last position", rows);
    MUC_TRY(print_unrolled(s, 1, what, rows, context - rows, context - rows));
    snprintf(what, sizeof(what), "unrolled PREFILL of %u, every position", rows);
    return print_unrolled(s, 1, what, rows, 0, context - rows);
}

/* ---- passes ---- */

/* A board whose engines have done everything as soon as it is issued: arg counts it, for each. */
static mur_status issue_dma(void *arg, const uint32_t *words)
{
    (void)words;
    ((uint32_t *)arg)[MUR_DMA]++;
    return MUR_OK;
}

static mur_status issue_acc(void *arg, const uint32_t *words)
{
    (void)words;
    ((uint32_t *)arg)[MUR_ACC]++;
    return MUR_OK;
}

static mur_status issue_cpu(void *arg, const uint32_t *words)
{
    (void)arg, (void)words;
    return MUR_OK;
}

static uint32_t completed(void *arg, enum mur_engine engine)
{
    return ((const uint32_t *)arg)[engine];
}

static uint64_t executed_evals(const mur_program *program, uint32_t entry, uint32_t pos, uint32_t m)
{
    uint32_t issued[MUR_ENGINES] = { 0 };
    const mur_hal hal = { issued, issue_dma, issue_acc, issue_cpu, completed, NULL, NULL };
    uint64_t evals = 0;
    mur_run_state run;

    if (mur_start(&run, program, &hal, entry, pos, m) != MUR_OK)
        return 0;
    while (!run.done) {
        evals += mur_bits(program->code[run.at], 0, MUR_KIND_WIDTH) == MUR_EVAL;
        if (mur_step(&run) != MUR_OK)
            return 0;
    }
    return evals;
}

static muc_status print_choice(subject *s, const char *what, const muc_flatten_options *options)
{
    uint32_t pos = s->build->layout.options.context / 2, rows = s->build->layout.options.rows;
    muc_uthinker_entry entries[MUC_UTHINKER_ENTRIES];
    muc_flat flat[MUC_UTHINKER_ENTRIES];
    muc_container sections;
    mur_verifier verifier;
    mur_program program;
    muc_bytes file;

    for (uint32_t i = 0; i < MUC_UTHINKER_ENTRIES; i++) {
        const muc_template *template = &s->build->templates[i];

        MUC_TRY(muc_uthinker_flatten(s->ctx, &s->arena, template, options, &flat[i]));
        entries[i] = (muc_uthinker_entry){ i ? MUC_ENTRY_PREFILL : MUC_ENTRY_DECODE,
                                           template->min_m, template->max_m, &flat[i] };
    }
    MUC_TRY(muc_uthinker_emit(s->ctx, &s->arena, &s->build->model, &s->build->layout, entries,
                              &no_tokens, &sections));
    MUC_TRY(muc_container_write(s->ctx, &s->arena, &sections, &file));
    if (mur_open(&program, file.data, file.size) != MUR_OK ||
        mur_verify(&program, &verifier) != MUR_OK)
        return muc_fail(s->ctx, MUC_BUG, "bench", MUC_NO_OFFSET, "the program is refused");
    printf("| %s | %zu | %u | %llu | %llu | %u |\n", what, 4 * (flat[0].count + flat[1].count),
           flat[0].evals + flat[1].evals, (unsigned long long)executed_evals(&program, 0, pos, 1),
           (unsigned long long)executed_evals(&program, 1, pos, rows),
           flat[0].slots > flat[1].slots ? flat[0].slots : flat[1].slots);
    return MUC_OK;
}

static muc_status print_passes(subject *s)
{
    printf("\n| passes | bytes of CODE | EVALs in it | executed, DECODE | executed, PREFILL | "
           "slots |\n|---|---|---|---|---|---|\n");
    MUC_TRY(print_choice(s, "all", &(muc_flatten_options){ 0 }));
    MUC_TRY(print_choice(s, "without sharing", &(muc_flatten_options){ .no_sharing = true }));
    MUC_TRY(print_choice(s, "without hoisting", &(muc_flatten_options){ .no_hoisting = true }));
    MUC_TRY(print_choice(s, "without fusing lookups", &(muc_flatten_options){ .no_fusion = true }));
    return print_choice(
        s, "none",
        &(muc_flatten_options){ .no_sharing = true, .no_hoisting = true, .no_fusion = true });
}

/* program: where to write the unrotated one, or NULL for tables */
static muc_status report(subject *s, const char *program)
{
    muc_uthinker_options options = muc_uthinker_defaults;

    options.unrotated = program != NULL;
    MUC_TRY(compile(s, &options));
    if (program)
        return muc_file_write(s->ctx, program, s->build->program.data, s->build->program.size);
    MUC_TRY(print_sizes(s));
    return print_passes(s);
}

int main(int argc, char **argv)
{
    bool unrotated = argc == 4 && strcmp(argv[1], "--unrotated") == 0;

    for (int i = unrotated ? 3 : 1; i < argc; i++) {
        subject s = { .ctx = muc_context_new(0), .path = argv[i] };
        muc_status status = s.ctx ? report(&s, unrotated ? argv[2] : NULL) : MUC_NOMEM;

        if (status != MUC_OK) {
            fprintf(stderr, "%s\n", s.ctx ? muc_error_message(s.ctx) : "out of memory");
            return (int)status;
        }
        muc_uthinker_build_free(s.build);
        muc_graph_free(s.graph);
        muc_checkpoint_close(&s.checkpoint);
        muc_arena_free(&s.arena);
        muc_context_free(s.ctx);
    }
    return 0;
}

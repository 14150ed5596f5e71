/* quant_kinds.c - which kinds of BlockDialect blocks earn their place.
 *
 *     quant_kinds MODEL --text FILE | --task FILE
 *
 * For every budget and set of kinds the model's matrices are quantized and decoded again, and the
 * model with these weights (everything else in float32) is held against itself: on a text by
 * perplexity and divergence, on a task by exact answers. Prints a Markdown table.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "mxfp4.h"
#include "run/opened_model.h"
#include "muc/eval.h"
#include "quant/bd_sequence.h"

enum {
    B4 = 1 << MUC_BD_B4,
    B5 = 1 << MUC_BD_B5,
    R = 1 << MUC_BD_R,
    SHARED = MUC_BD_SHARING,
    /* not sets, but other ways to choose */
    AFFORD = 1 << 16,
    RULE_EXPONENT = 1 << 17
};

typedef struct set {
    const char *name;
    uint32_t kinds;
} set;
static const set sets[] = {
    { "all", B4 | B5 | R | SHARED },
    { "all but R", B4 | B5 | SHARED },
    { "all but B5", B4 | R | SHARED },
    { "all but B4", B5 | R | SHARED },
    { "all but sharing", B4 | B5 | R },
    { "B4, sharing", B4 | SHARED },
    { "B4 alone", B4 },
    { "as muc_bd_afford has it", AFFORD },
    { "B4 alone, the rule's exponent", RULE_EXPONENT },
};
static const double budgets[] = { 4.6, 4.8, 5.2, 5.9 };

typedef struct bench {
    muc_context *ctx;
    muc_model *original, *changed;
    muc_bd_matrix *matrices;    /* [count] */
    muc_tensor_view **replaced; /* [count] in changed */
    size_t count;
    const char *text, *task;
} bench;

static void *need(void *memory)
{
    if (!memory) {
        fputs("quant_kinds: memory is out\n", stderr);
        exit(MUC_NOMEM);
    }
    return memory;
}

static void check(const bench *b, muc_status status)
{
    if (status == MUC_OK)
        return;
    fprintf(stderr, "quant_kinds: %s\n", muc_error_message(b->ctx));
    exit((int)status);
}

static muc_status read_column(muc_context *ctx, const muc_bd_matrix *matrix, uint32_t column,
                              float *out)
{
    return muc_tensor_to_f32(ctx, matrix->data, (uint64_t)column * matrix->k, matrix->k, out);
}

/* every matrix of the original, and room for its quantized values in the other */
static void collect(bench *b)
{
    const muc_checkpoint *from = &b->original->checkpoint, *to = &b->changed->checkpoint;

    b->matrices = need(calloc(from->tensor_count, sizeof(*b->matrices)));
    b->replaced = need(calloc(from->tensor_count, sizeof(void *)));
    for (size_t i = 0; i < from->tensor_count; i++) {
        const muc_tensor_view *view = &from->tensors[i];

        if (view->rank != 2)
            continue;
        b->matrices[b->count] = (muc_bd_matrix){ .name = view->name,
                                                 .n = (uint32_t)view->dims[0],
                                                 .k = (uint32_t)view->dims[1],
                                                 .read = read_column,
                                                 .data = view };
        to->tensors[i].dtype = MUC_F32;
        to->tensors[i].bytes = view->elements * sizeof(float);
        to->tensors[i].data = need(calloc(view->elements, sizeof(float)));
        b->replaced[b->count++] = &to->tensors[i];
    }
}

typedef struct totals {
    double bytes, weights, error, energy;
    uint64_t blocks[MUC_BD_KIND_COUNT], shared;
} totals;

/* the exponent that just holds the largest element, as the online encoder has it */
static uint8_t rule_exponent(const float *w, unsigned n)
{
    float max = 0;
    int e16;

    for (unsigned i = 0; i < n; i++)
        max = fabsf(w[i]) > max ? fabsf(w[i]) : max;
    e16 = muc_f16_of_f32(max) >> 10;
    return (uint8_t)(e16 > 2 ? e16 - 2 : 0);
}

static void choose_block(const float *w, unsigned n, muc_bd_block *out)
{
    double least = INFINITY;

    for (uint8_t dialect = 0; dialect < 16; dialect++) {
        muc_bd_block block = { .kind = MUC_BD_B4, .term[0].dialect = dialect };
        double error;

        block.term[0].exponent = rule_exponent(w, n);
        for (unsigned i = 0; i < n; i++)
            muc_bd_round(&block, i, w[i]);
        error = muc_bd_error(&block, w, NULL, n, NULL);
        if (error < least) {
            least = error;
            *out = block;
        }
    }
}

static muc_status choose_by_rule_exponent(void *arg, uint32_t column, const float *w,
                                          muc_bd_column *tiles)
{
    const muc_bd_matrix *matrix = arg;

    (void)column;
    for (uint32_t k = 0; k < matrix->k; k += MUC_BD_ROWS, tiles++)
        for (unsigned b = 0; b < muc_bd_block_count(tiles->rows); b++)
            choose_block(w + k + b * MUC_BD_ELEMS, muc_bd_block_elements(tiles->rows, b),
                         &tiles->block[b]);
    return MUC_OK;
}

/* the matrix's values after quantization go into the changed model */
static void replace(const bench *b, size_t i, const muc_bd_rule *rule, totals *sum)
{
    muc_bd_matrix *matrix = &b->matrices[i];
    float *values = (float *)(uintptr_t)b->replaced[i]->data;
    muc_bd_sequence sequence;
    muc_bytes bytes;

    if (rule->kinds == RULE_EXPONENT)
        check(b, muc_bd_encode(b->ctx, matrix, choose_by_rule_exponent, matrix, &sequence));
    else
        check(b, muc_bd_quantize(b->ctx, matrix, rule, &sequence));
    bytes = (muc_bytes){ sequence.data, sequence.bytes, matrix->name };
    for (uint32_t c = 0; c < matrix->n; c++)
        check(b, muc_bd_decode_column(b->ctx, bytes, matrix->n, matrix->k, c,
                                      values + (size_t)c * matrix->k));
    sum->bytes += sequence.bytes;
    sum->weights += (double)matrix->n * matrix->k;
    sum->error += sequence.error;
    sum->energy += sequence.energy;
    for (unsigned kind = 0; kind < MUC_BD_KIND_COUNT; kind++)
        sum->blocks[kind] += sequence.blocks[kind];
    sum->shared += sequence.shared;
    muc_bd_sequence_free(&sequence);
}

static double number(const muc_report *report, const char *key)
{
    double value = NAN;

    muc_report_number(report, key, &value);
    return value;
}

static void print_quality(const bench *b)
{
    muc_eval_options options = { .reference = b->original };
    muc_report *report = NULL;

    if (b->text) {
        check(b, muc_eval_text(b->ctx, b->changed, b->text, &options, &report));
        printf(" %.3f | %.4f |", number(report, "perplexity"), number(report, "kl"));
    } else {
        options.reference = NULL;
        check(b, muc_eval_task(b->ctx, b->changed, b->task, &options, &report));
        printf(" %.0f of %.0f |", number(report, "exact"), number(report, "cases"));
    }
    muc_report_free(report);
}

static void run(const bench *b, const set *kinds, double budget)
{
    muc_bd_rule rule = { kinds->kinds, 0 };
    muc_status status = MUC_OK;
    totals sum = { 0 };

    if (kinds->kinds == AFFORD)
        status = muc_bd_afford(b->ctx, b->matrices, b->count, budget, &rule);
    else if (kinds->kinds != RULE_EXPONENT)
        status = muc_bd_plan(b->ctx, b->matrices, b->count, kinds->kinds, budget, &rule);
    if (status == MUC_NOFIT) {
        muc_error_clear(b->ctx);
        return;
    }
    check(b, status);
    for (size_t i = 0; i < b->count; i++)
        replace(b, i, &rule, &sum);
    if (8 * sum.bytes / sum.weights > budget)
        return;
    printf("| %.1f | %s | %.3f |", budget, kinds->name, 8 * sum.bytes / sum.weights);
    for (unsigned kind = 0; kind < MUC_BD_KIND_COUNT; kind++)
        printf(" %llu |", (unsigned long long)sum.blocks[kind]);
    printf(" %llu | %.2f |", (unsigned long long)sum.shared, 10 * log10(sum.energy / sum.error));
    print_quality(b);
    printf("\n");
    fflush(stdout);
}

static double error_of(const bench *b, const muc_bd_matrix *matrix, const float *values)
{
    float *column = need(calloc(matrix->k, sizeof(*column)));
    double error = 0;

    for (uint32_t c = 0; c < matrix->n; c++) {
        check(b, matrix->read(b->ctx, matrix, c, column));
        for (uint32_t k = 0; k < matrix->k; k++) {
            double miss = (double)column[k] - (double)values[(size_t)c * matrix->k + k];

            error += miss * miss;
        }
    }
    free(column);
    return error;
}

/* the yardstick: 4.25 bits, no choice */
static void run_mxfp4(const bench *b)
{
    double error = 0, energy = 0;

    for (size_t i = 0; i < b->count; i++) {
        const muc_bd_matrix *matrix = &b->matrices[i];
        float *values = (float *)(uintptr_t)b->replaced[i]->data;

        for (uint32_t c = 0; c < matrix->n; c++) {
            float *column = values + (size_t)c * matrix->k;

            check(b, matrix->read(b->ctx, matrix, c, column));
            for (uint32_t k = 0; k < matrix->k; k++)
                energy += (double)column[k] * (double)column[k];
            mxfp4_round(column, matrix->k);
        }
        error += error_of(b, matrix, values);
    }
    printf("| | MXFP4 | 4.250 |");
    for (unsigned kind = 0; kind <= MUC_BD_KIND_COUNT; kind++)
        printf(" |");
    printf(" %.2f |", 10 * log10(energy / error));
    print_quality(b);
    printf("\n");
}

static void print_head(const bench *b)
{
    printf("| budget | kinds | bits |");
#define MUC_BD_KIND(name, number) printf(" " #name " |");
    MUC_BD_KINDS(MUC_BD_KIND)
#undef MUC_BD_KIND
    printf(" shared | dB | %s |\n|", b->text ? "perplexity | divergence" : "exact");
    for (int i = 0; i < (b->text ? 7 : 6) + MUC_BD_KIND_COUNT; i++)
        printf("---|");
    printf("\n");
}

int main(int argc, char **argv)
{
    bench b = { .ctx = muc_context_new(0) };

    need(b.ctx);
    if (argc != 4 || (strcmp(argv[2], "--text") != 0 && strcmp(argv[2], "--task") != 0)) {
        fputs("usage: quant_kinds MODEL --text FILE | --task FILE\n", stderr);
        return MUC_USAGE;
    }
    b.text = strcmp(argv[2], "--text") == 0 ? argv[3] : NULL;
    b.task = argv[3];
    check(&b, muc_model_open(b.ctx, argv[1], NULL, &b.original));
    check(&b, muc_model_open(b.ctx, argv[1], NULL, &b.changed));
    collect(&b);
    print_head(&b);
    run_mxfp4(&b);
    for (size_t i = 0; i < MUC_COUNT(budgets); i++)
        for (size_t j = 0; j < MUC_COUNT(sets); j++)
            run(&b, &sets[j], budgets[i]);
    for (size_t i = 0; i < b.count; i++)
        free((void *)(uintptr_t)b.replaced[i]->data);
    free(b.replaced);
    free(b.matrices);
    muc_model_close(b.changed);
    muc_model_close(b.original);
    muc_context_free(b.ctx);
    return 0;
}

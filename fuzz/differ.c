/* differ.c - networks drawn by chance, as generated code beside the reference.
 *
 *     differ COUNT [FIRST SEED [STYLE]]     networks of seeds one after another
 *     differ FILE...                        networks as text, on every machine and in every way
 *
 * Prints the first failures of each kind, made small, and how many networks had what.
 */
#include <ctype.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "differ.h"

enum { SECONDS = 10, MOST_KINDS = 512, MOST_REDUCED = 24, EACH = 200, MOST_HASHES = 1 << 20 };

/* ---- how a network is compiled ---- */

static const char *const machine_names[] = { "host",     "host", "mps2-an500", "mps3-an547",
                                             "nrf52840", "rv32", "rv32f",      "siracusa" };
static const unsigned small_memories[] = { 1024, 4096, 16384 };
static char small_machines[MUC_COUNT(small_memories)][64];

static const char *const processing_elements[] = { "0", "4", "9", "16", "64", "256" };

enum { MACHINES = MUC_COUNT(machine_names) + MUC_COUNT(small_memories) };

static const char *machine_of(uint32_t i)
{
    return i < MUC_COUNT(machine_names) ? machine_names[i]
                                        : small_machines[i - MUC_COUNT(machine_names)];
}

static void remove_machines(void)
{
    for (size_t i = 0; i < MUC_COUNT(small_machines); i++)
        unlink(small_machines[i]);
}

/* machines with DMA whose small memory is too small for most networks */
static void write_machines(void)
{
    for (size_t i = 0; i < MUC_COUNT(small_machines); i++) {
        FILE *file;

        snprintf(small_machines[i], sizeof(small_machines[i]), "/tmp/muc_machine_XXXXXX");
        file = fdopen(mkstemp(small_machines[i]), "w");
        if (!file)
            abort();
        fprintf(file,
                "[machine]\nname = small%u\ncore = rv32imc\ncores = %zu\nclock_mhz = 100\n"
                "[memory]\nname = L2\nbytes = 1048576\ncycles_per_kb = 1024\n"
                "holds = weights arena state\n"
                "[memory]\nname = L1\nbytes = %u\ncycles_per_kb = 64\nholds = tiles\n"
                "[dma]\nsetup_cycles = 40\ncycles_per_kb = 128\n",
                small_memories[i], i == 1 ? (size_t)1 : (size_t)2, small_memories[i]);
        fclose(file);
    }
    atexit(remove_machines);
}

static fuzz_how draw_how(fuzz_chance *chance, fuzz_style style)
{
    fuzz_how how = { .machine = machine_of(fuzz_draw(chance, MACHINES)) };
    uint32_t patches = fuzz_draw(chance, 4), fuse = fuzz_draw(chance, 3);

    how.choices.patches = patches == 3 ? MUC_MCU_PATCHES_LEAST : (muc_mcu_patches)patches;
    how.choices.fuse = (muc_mcu_fuse)fuse;
    how.to_int8 = style == FUZZ_IN_QUANTIZED;
    if ((style == FUZZ_IN_IMAGE || style == FUZZ_IN_IMAGE_LAST) && fuzz_draw(chance, 4) == 0)
        how.chip = processing_elements[fuzz_draw(chance, MUC_COUNT(processing_elements))];
    how.seed = chance->state;
    return how;
}

/* ---- what was seen ---- */

typedef struct kind {
    fuzz_verdict verdict;
    char message[FUZZ_MESSAGE]; /* without numbers */
    uint64_t count, seed;       /* seed: of the first */
    uint32_t style;
} kind;

/* Shared by the processes that check networks. */
typedef struct tally {
    uint64_t current; /* the seed at work */
    uint32_t style;
    uint64_t networks, nodes, verdicts[FUZZ_VERDICT_COUNT], hash_count;
    uint32_t ops[MUC_OP_COUNT], dtypes[MUC_DTYPE_COUNT], styles[FUZZ_STYLE_COUNT];
    uint32_t first, last, open, states, chips, per_channel, per_tensor, lengths[7];
    uint32_t kind_count;
    kind kinds[MOST_KINDS];
    uint64_t hashes[MOST_HASHES];
} tally;

static tally *all;

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

/* operators, types, shapes and how they are joined */
static uint64_t structure_of(const muc_graph *graph)
{
    uint64_t hash = 1;

    for (uint32_t i = 0; i < graph->node_count; i++) {
        const muc_node *node = &graph->nodes[i];

        hash = mix(hash, node->op);
        for (uint32_t k = 0; k < node->input_count; k++)
            hash = mix(hash, node->inputs[k]);
        for (uint32_t k = 0; k < node->output_count; k++) {
            const muc_tensor *t = &graph->tensors[node->outputs[k]];

            hash = mix(hash, (uint64_t)t->dtype << 8 | t->rank);
            for (uint32_t d = 0; d < t->rank; d++)
                hash = mix(hash, muc_expr_get(graph->pool, t->dims[d])->hi);
        }
    }
    return hash;
}

static void count_nodes(const muc_graph *graph)
{
    bool ops[MUC_OP_COUNT] = { false }, first = false, last = false;

    for (uint32_t i = 0; i < graph->node_count; i++) {
        bool takes, required;

        ops[graph->nodes[i].op] = true;
        takes = muc_op_takes(graph->nodes[i].op, MUC_KEY_CHANNELS_LAST, &required);
        if (takes && muc_node_integer_or(&graph->nodes[i], MUC_KEY_CHANNELS_LAST, 0))
            last = true;
        else if (takes)
            first = true;
    }
    for (uint32_t i = 0; i < MUC_OP_COUNT; i++)
        all->ops[i] += ops[i];
    all->first += first;
    all->last += last;
    all->nodes += graph->node_count;
    all->lengths[graph->node_count < 60 ? graph->node_count / 10 : 6]++;
}

static void count_network(const muc_graph *graph, fuzz_style style)
{
    bool dtypes[MUC_DTYPE_COUNT] = { false }, state = false, channels = false, whole = false;

    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        const muc_tensor *t = &graph->tensors[i];

        dtypes[t->dtype] = true;
        state = state || t->kind == MUC_TENSOR_STATE;
        channels = channels || (t->quantization && t->quantization->count > 1);
        whole = whole || (t->quantization && t->quantization->count == 1);
    }
    for (uint32_t i = 0; i < MUC_DTYPE_COUNT; i++)
        all->dtypes[i] += dtypes[i];
    all->states += state;
    all->per_channel += channels;
    all->per_tensor += whole;
    all->open += muc_expr_input_count(graph->pool) > 0;
    all->styles[style]++;
    all->networks++;
    count_nodes(graph);
    if (all->hash_count < MOST_HASHES)
        all->hashes[all->hash_count++] = structure_of(graph);
}

/* numbers do not tell kinds apart */
static void without_numbers(char *text)
{
    char *out = text;

    for (const char *at = text; *at;) {
        if (isdigit((unsigned char)*at)) {
            while (isdigit((unsigned char)*at) || *at == '.')
                at++;
            *out++ = '0';
        } else {
            *out++ = *at++;
        }
    }
    *out = '\0';
}

static void note(fuzz_verdict verdict, const char *message, uint64_t seed, fuzz_style style)
{
    char plain[FUZZ_MESSAGE];
    uint32_t i = 0;

    all->verdicts[verdict]++;
    if (verdict == FUZZ_SAME)
        return;
    snprintf(plain, sizeof(plain), "%s", message);
    without_numbers(plain);
    if (verdict == FUZZ_WRONG || verdict == FUZZ_PASSES) /* the numbers differ in each */
        snprintf(plain, sizeof(plain), "%s, seed %" PRIu64, fuzz_style_name(style), seed);
    while (i < all->kind_count &&
           (all->kinds[i].verdict != verdict || strcmp(all->kinds[i].message, plain) != 0))
        i++;
    if (i == MOST_KINDS)
        return;
    if (i == all->kind_count) {
        all->kinds[i] = (kind){ .verdict = verdict, .seed = seed, .style = style };
        memcpy(all->kinds[i].message, plain, sizeof(plain));
        all->kind_count++;
    }
    all->kinds[i].count++;
}

/* ---- networks of seeds ---- */

/* the seed's network as text, and how it is to be compiled; the text is to be freed */
static char *draw(uint64_t seed, fuzz_style *style, fuzz_how *how, bool count)
{
    fuzz_chance chance = { .state = seed * 0x9e3779b97f4a7c15u };
    muc_context *ctx = muc_context_new(1);
    muc_graph *graph = fuzz_make_network(ctx, &chance, style);
    muc_text text = { 0 };

    *how = draw_how(&chance, *style);
    muc_graph_print_whole(graph, &text);
    if (count)
        count_network(graph, *style);
    muc_graph_free(graph);
    muc_context_free(ctx);
    return text.data;
}

static void check_seed(uint64_t seed, fuzz_style style)
{
    char message[FUZZ_MESSAGE];
    fuzz_verdict verdict;
    fuzz_how how;
    char *text;

    all->current = seed;
    all->style = style;
    text = draw(seed, &style, &how, true);
    all->chips += how.chip != NULL;
    all->style = style;
    alarm(SECONDS);
    verdict = fuzz_check(text, &how, message);
    alarm(0);
    free(text);
    note(verdict, message, seed, style);
}

static volatile sig_atomic_t enough;

static void stop(int number)
{
    (void)number;
    enough = 1;
}

/* seeds first..end - 1 in processes of EACH, which may die; fewer after SIGTERM */
static void check_seeds(uint64_t first, uint64_t end, fuzz_style style)
{
    const struct sigaction end_early = { .sa_handler = stop, .sa_flags = SA_RESTART };

    sigaction(SIGTERM, &end_early, NULL);
    while (first < end && !enough) {
        uint64_t last = end - first < EACH ? end : first + EACH;
        int status = 0;
        pid_t child;

        fflush(NULL);
        child = fork();
        if (child == 0) {
            signal(SIGTERM, SIG_IGN);
            for (uint64_t seed = first; seed < last; seed++)
                check_seed(seed, style);
            _exit(0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child)
            abort();
        first = last;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            continue;
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
            note(FUZZ_SLOW, "", all->current, all->style);
        else
            note(FUZZ_CRASHED, "", all->current, all->style);
        first = all->current + 1;
    }
}

/* ---- reports ---- */

static const struct {
    const char *name;
    bool fails;
} verdicts[] = {
#define FUZZ_VERDICT_ROW(id, name, fails, meaning) { name, fails },
    FUZZ_VERDICTS(FUZZ_VERDICT_ROW)
#undef FUZZ_VERDICT_ROW
};

static void print_how(const fuzz_how *how)
{
    static const char *const names[] = { "auto", "least", "off" };

    if (how->chip)
        printf("# cnnchip of %s processing elements (0: any number)\n", how->chip);
    printf("# machine %s, patch %s, fuse %s%s\n", how->machine, names[how->choices.patches],
           names[how->choices.fuse], how->to_int8 ? ", quant int8" : "");
}

static void print_failure(const kind *k, fuzz_style wanted)
{
    char message[FUZZ_MESSAGE], *text, *small;
    fuzz_style style = wanted;
    fuzz_how how;

    text = draw(k->seed, &style, &how, false);
    small = fuzz_reduce(text, &how, k->verdict);
    fuzz_check_apart(small, &how, message);
    printf("\n## %s: seed %" PRIu64 ", style %s: %s\n", verdicts[k->verdict].name, k->seed,
           fuzz_style_name(style), message);
    print_how(&how);
    printf("%s", small);
    free(small);
    free(text);
}

static void print_kinds(fuzz_style style)
{
    uint32_t reduced = 0;

    for (uint32_t v = 0; v < FUZZ_VERDICT_COUNT; v++)
        printf("%-10s %" PRIu64 "\n", verdicts[v].name, all->verdicts[v]);
    for (uint32_t i = 0; i < all->kind_count; i++)
        if (all->kinds[i].verdict == FUZZ_REFUSED || all->kinds[i].verdict == FUZZ_INVALID)
            printf("%s %" PRIu64 " (seed %" PRIu64 "): %s\n", verdicts[all->kinds[i].verdict].name,
                   all->kinds[i].count, all->kinds[i].seed, all->kinds[i].message);
    if (getenv("FUZZ_ONLY_COUNT")) /* of failures made small */
        return;
    for (uint32_t i = 0; i < all->kind_count && reduced < MOST_REDUCED; i++)
        if (verdicts[all->kinds[i].verdict].fails) {
            print_failure(&all->kinds[i], style);
            reduced++;
        }
}

static int compare_hashes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static uint64_t distinct(void)
{
    uint64_t count = 0;

    qsort(all->hashes, (size_t)all->hash_count, sizeof(*all->hashes), compare_hashes);
    for (uint64_t i = 0; i < all->hash_count; i++)
        count += i == 0 || all->hashes[i] != all->hashes[i - 1];
    return count;
}

static void print_counts(void)
{
    struct rusage own, children;
    double seconds;

    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    seconds = (double)(own.ru_utime.tv_sec + own.ru_stime.tv_sec + children.ru_utime.tv_sec +
                       children.ru_stime.tv_sec) +
              1e-6;
    printf("networks %" PRIu64 ", distinct %" PRIu64 ", nodes %" PRIu64
           ", %.0f processor seconds, %.0f networks a second\n",
           all->networks, distinct(), all->nodes, seconds, (double)all->networks / seconds);
    for (uint32_t i = 0; i < FUZZ_STYLE_COUNT; i++)
        printf("style %s %u\n", fuzz_style_name((fuzz_style)i), all->styles[i]);
    for (uint32_t i = 0; i < MUC_DTYPE_COUNT; i++)
        printf("type %s %u\n", muc_dtype_get((muc_dtype)i)->name, all->dtypes[i]);
    printf("channels first %u\nchannels last %u\nlengths of a run %u\nstates %u\n", all->first,
           all->last, all->open, all->states);
    printf("on the CNN chip %u\n", all->chips);
    printf("scales of tensors %u\nscales of channels %u\n", all->per_tensor, all->per_channel);
    for (uint32_t i = 0; i < MUC_COUNT(all->lengths); i++)
        printf("nodes from %u %u\n", 10 * i, all->lengths[i]);
    for (uint32_t i = 0; i < MUC_OP_COUNT; i++)
        printf("operator %s %u\n", muc_op_get((muc_op)i)->name, all->ops[i]);
}

static bool failed(void)
{
    for (uint32_t v = 0; v < FUZZ_VERDICT_COUNT; v++)
        if (verdicts[v].fails && all->verdicts[v])
            return true;
    return false;
}

/* ---- files ---- */

static bool check_text(const char *path, const char *text)
{
    char message[FUZZ_MESSAGE];
    bool ok = true;

    for (uint32_t i = 0; i < 3 * MACHINES; i++) {
        fuzz_how how = { .machine = machine_of(i / 3), .seed = i };
        fuzz_verdict verdict;

        how.choices.patches = (muc_mcu_patches)(i % 3);
        how.choices.fuse = (muc_mcu_fuse)(i % 3);
        verdict = fuzz_check_apart(text, &how, message);
        if (!verdicts[verdict].fails)
            continue;
        printf("%s: %s: %s\n", path, verdicts[verdict].name, message);
        print_how(&how);
        ok = false;
    }
    return ok;
}

static bool check_file(const char *path)
{
    muc_context *ctx = muc_context_new(1);
    muc_file file;
    char *text;
    bool ok;

    if (muc_file_open(ctx, path, &file) != MUC_OK) {
        fprintf(stderr, "%s\n", muc_error_message(ctx));
        return false;
    }
    text = strndup((const char *)file.bytes.data, file.bytes.size);
    ok = check_text(path, text);
    free(text);
    muc_file_close(&file);
    muc_context_free(ctx);
    return ok;
}

static fuzz_style find_style(const char *name)
{
    uint32_t i = 0;

    while (i < FUZZ_STYLE_COUNT && strcmp(fuzz_style_name((fuzz_style)i), name) != 0)
        i++;
    return (fuzz_style)i;
}

int main(int argc, char **argv)
{
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    fuzz_style style = argc > 3 ? find_style(argv[3]) : FUZZ_STYLE_COUNT;
    bool ok = true;

    write_machines();
    if (argc < 2)
        return EXIT_FAILURE;
    if (!isdigit((unsigned char)argv[1][0])) {
        for (int i = 1; i < argc; i++)
            ok = check_file(argv[i]) && ok;
        return ok ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        abort();
    check_seeds(first, first + strtoull(argv[1], NULL, 10), style);
    print_kinds(style);
    print_counts();
    return failed() ? EXIT_FAILURE : EXIT_SUCCESS;
}

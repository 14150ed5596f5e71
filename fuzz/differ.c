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
#include "differ_count.h"
#include "targets/cnnchip/isa/chip_isa.h"
#include "targets/cnnchip/sim/chip_sim.h"

enum { SECONDS = 10, MOST_KINDS = 512, MOST_REDUCED = 24, EACH = 200 };

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

static pid_t owner; /* of their files: processes that check networks leave them */

static void remove_machines(void)
{
    for (size_t i = 0; getpid() == owner && i < MUC_COUNT(small_machines); i++)
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
    owner = getpid();
    atexit(remove_machines);
}

/* what the chip may take */
static bool is_image(fuzz_style style)
{
    return style == FUZZ_IN_IMAGE || style == FUZZ_IN_IMAGE_LAST || style == FUZZ_IN_QUANTIZED ||
           style == FUZZ_IN_INT8_IMAGE;
}

/* whether a decoder's caches are i8 already */
static bool is_small(const muc_graph *graph)
{
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        if (graph->tensors[i].kind == MUC_TENSOR_STATE && graph->tensors[i].dtype == MUC_I8)
            return true;
    return false;
}

static fuzz_how draw_how(fuzz_chance *chance, fuzz_style style, const muc_graph *graph)
{
    fuzz_how how = { .machine = machine_of(fuzz_draw(chance, MACHINES)) };
    static const fuzz_quant decoders[] = { FUZZ_QUANT_NONE, FUZZ_QUANT_HYBRID, FUZZ_QUANT_BLOCKS };
    uint32_t patches = fuzz_draw(chance, 4), fuse = fuzz_draw(chance, 3);

    how.choices.patches = patches == 3 ? MUC_MCU_PATCHES_LEAST : (muc_mcu_patches)patches;
    how.choices.fuse = (muc_mcu_fuse)fuse;
    if (style == FUZZ_IN_QUANTIZED)
        how.quant = FUZZ_QUANT_INT8;
    if (style == FUZZ_IN_DECODER && !is_small(graph))
        how.quant = decoders[fuzz_draw(chance, MUC_COUNT(decoders))];
    if (is_image(style) && fuzz_draw(chance, 4) == 0) {
        how.chip = processing_elements[fuzz_draw(chance, MUC_COUNT(processing_elements))];
        how.element = style == FUZZ_IN_QUANTIZED || style == FUZZ_IN_INT8_IMAGE ? MUC_CNNCHIP_int8
                      : fuzz_draw(chance, 3)                                    ? MUC_CNNCHIP_fp32
                                                                                : MUC_CNNCHIP_fp16;
    }
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
    uint64_t verdicts[FUZZ_VERDICT_COUNT];
    uint32_t kind_count;
    kind kinds[MOST_KINDS];
    fuzz_counts counts;
} tally;

static tally *all;

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

/* The seed's network as text, to be freed, and how it is to be compiled; counted if traits are
 * wanted. */
static char *draw(uint64_t seed, fuzz_style *style, fuzz_how *how, fuzz_traits *traits)
{
    fuzz_chance chance = { .state = seed * 0x9e3779b97f4a7c15u };
    muc_context *ctx = muc_context_new(1);
    muc_graph *graph = fuzz_make_network(ctx, &chance, style);
    muc_text text = { 0 };

    *how = draw_how(&chance, *style, graph);
    muc_graph_print_whole(graph, &text);
    if (traits)
        fuzz_count_drawn(&all->counts, graph, *style, how, traits);
    muc_graph_free(graph);
    muc_context_free(ctx);
    return text.data;
}

static void check_seed(uint64_t seed, fuzz_style style)
{
    char message[FUZZ_MESSAGE];
    fuzz_verdict verdict;
    fuzz_traits traits;
    fuzz_how how;
    char *text;

    all->current = seed;
    all->style = style;
    text = draw(seed, &style, &how, &traits);
    all->style = style;
    alarm(SECONDS);
    verdict = fuzz_check(text, &how, message);
    alarm(0);
    free(text);
    note(verdict, message, seed, style);
    if (verdict != FUZZ_INVALID && verdict != FUZZ_REFUSED)
        fuzz_count_compared(&all->counts, &traits);
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
            exit(0);
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
    static const char *const quants[] = { "", ", quant int8", ", quant int8 of a decoder",
                                          ", quant bd4 of a decoder" };

    if (how->chip)
        printf("# cnnchip %s of %s processing elements (0: any number)\n",
               muc_cnnchip_element_name(how->element), how->chip);
    printf("# machine %s, patch %s, fuse %s%s\n", how->machine, names[how->choices.patches],
           names[how->choices.fuse], quants[how->quant]);
}

static void print_failure(const kind *k, fuzz_style wanted)
{
    char message[FUZZ_MESSAGE], *text, *small;
    fuzz_style style = wanted;
    fuzz_how how;

    text = draw(k->seed, &style, &how, NULL);
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
        if (all->kinds[i].verdict != FUZZ_UNSTABLE)
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

static void print_speed(void)
{
    struct rusage own, children;
    double seconds;

    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    seconds = (double)(own.ru_utime.tv_sec + own.ru_stime.tv_sec + children.ru_utime.tv_sec +
                       children.ru_stime.tv_sec) +
              1e-6;
    printf("%.0f processor seconds, %.0f networks a second\n", seconds,
           (double)all->counts.networks / seconds);
}

static bool failed(void)
{
    for (uint32_t v = 0; v < FUZZ_VERDICT_COUNT; v++)
        if (verdicts[v].fails && all->verdicts[v])
            return true;
    return false;
}

/* ---- files ---- */

/* way i: each machine with all choices, then what --quant makes of it, then the chip */
static bool way(uint32_t i, fuzz_how *how)
{
    *how = (fuzz_how){ .machine = machine_of(i / 3 % MACHINES), .seed = i };
    how->choices.patches = (muc_mcu_patches)(i % 3);
    how->choices.fuse = (muc_mcu_fuse)(i % 3);
    if (i < 3 * MACHINES)
        return true;
    i -= 3 * MACHINES;
    if (i < FUZZ_QUANT_BLOCKS) {
        how->quant = (fuzz_quant)(i + 1);
        return true;
    }
    i -= FUZZ_QUANT_BLOCKS;
    how->chip = processing_elements[i % 2 ? 2 : 0];
    how->element = i / 2;
    if (muc_cnnchip_element_name(how->element))
        return true;
    how->element = MUC_CNNCHIP_int8; /* last, of a network that becomes int8 first */
    how->quant = FUZZ_QUANT_INT8;
    return muc_cnnchip_element_name(i / 2 - 1);
}

/* A text that no way compares is a failure too. */
static bool check_text(const char *path, const char *text)
{
    char message[FUZZ_MESSAGE], why[FUZZ_MESSAGE] = "";
    uint32_t compared = 0;
    bool ok = true;
    fuzz_how how;

    for (uint32_t i = 0; way(i, &how); i++) {
        fuzz_verdict verdict = fuzz_check_apart(text, &how, message);

        if (verdicts[verdict].fails) {
            printf("%s: %s: %s\n", path, verdicts[verdict].name, message);
            print_how(&how);
            ok = false;
        }
        if (verdict != FUZZ_INVALID && verdict != FUZZ_REFUSED)
            compared++;
        else if (!why[0])
            memcpy(why, message, sizeof(why));
    }
    if (compared)
        return ok;
    printf("%s: nothing was compared: %s\n", path, why);
    return false;
}

static bool check_file(const char *path)
{
    muc_context *ctx = muc_context_new(1);
    muc_file file;
    char *text;
    bool ok;

    if (muc_file_open(ctx, path, &file) != MUC_OK) {
        printf("%s\n", muc_error_message(ctx));
        muc_context_free(ctx);
        return false;
    }
    text = strndup((const char *)file.bytes.data, file.bytes.size);
    ok = check_text(path, text);
    free(text);
    muc_file_close(&file);
    muc_context_free(ctx);
    return ok;
}

static bool find_style(const char *name, fuzz_style *out)
{
    uint32_t i = 0;

    while (i < FUZZ_STYLE_COUNT && strcmp(fuzz_style_name((fuzz_style)i), name) != 0)
        i++;
    *out = (fuzz_style)i;
    return i < FUZZ_STYLE_COUNT;
}

static int usage(void)
{
    fprintf(stderr, "usage: differ COUNT [FIRST SEED [STYLE]] | differ FILE...\n");
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    fuzz_style style = FUZZ_STYLE_COUNT;
    bool ok = true, enough_of_all;

    if (argc < 2)
        return usage();
    write_machines();
    if (!isdigit((unsigned char)argv[1][0])) {
        for (int i = 1; i < argc; i++)
            ok = check_file(argv[i]) && ok;
        return ok ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    if (argc > 3 && !find_style(argv[3], &style))
        return usage();
    all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        abort();
    check_seeds(first, first + strtoull(argv[1], NULL, 10), style);
    print_kinds(style);
    print_speed();
    enough_of_all = fuzz_print_counts(&all->counts);
    return failed() || !enough_of_all ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* main.c - what the interpreter takes of the CPU, item by item, and a program's calls as a whole.
 *
 * Each region for bench/instructions/count is one run. First come streams of one kind of item,
 * which bench/clock/count tells apart by subtraction, then the calls of the program that is linked
 * in, its EMBED, and the choice of the likeliest of its logits. The board's driver does what one of
 * real engines would: it writes an instruction's words to registers. Engines count what they have
 * completed without the CPU, and are never busy: in a run their counts are as far ahead as they can
 * be.
 */
#include "markers.h"
#include "mur_embed.h"
#include "mur_lm.h"
#include "semihosting.h"

#include <string.h>

extern const uint8_t program_file[], program_file_end[];

enum { EMBED = 0x08, AMAX = 0x09 };
enum { EMBEDDED = 32 }; /* tokens, of all parts of the vocabulary */
enum { MOST_WORDS = 4096, MOST_LOGITS = 1 << 16, IO_WORDS = 1 << 18 };

static mur_program program, synthetic;
static mur_verifier verifier;
static mur_run_state run;
static uint32_t code[MOST_WORDS], words;
static const uint32_t tables[] = { 1, 3, 8, 0, 10, 20, 30, 40 };
static mur_meta meta;
static mur_entr entry;
static uint32_t io[IO_WORDS];
static uint32_t embed_words[MUR_MAX_WORDS];

/* ---- a driver ---- */

static volatile uint32_t registers[MUR_ENGINES][MUR_MAX_WORDS];
static volatile uint32_t completed[MUR_ENGINES];

static mur_status put_dma(void *arg, const uint32_t *insn)
{
    volatile uint32_t *to = registers[MUR_DMA];

    (void)arg;
    to[0] = insn[0], to[1] = insn[1], to[2] = insn[2], to[3] = insn[3];
    return MUR_OK;
}

static mur_status put_accel(void *arg, const uint32_t *insn)
{
    volatile uint32_t *to = registers[MUR_ACC];

    (void)arg;
    to[0] = insn[0], to[1] = insn[1], to[2] = insn[2], to[3] = insn[3];
    to[4] = insn[4], to[5] = insn[5], to[6] = insn[6], to[7] = insn[7];
    return MUR_OK;
}

static mur_status put_host(void *arg, const uint32_t *insn)
{
    (void)arg;
    if ((insn[0] & 0xff) == EMBED)
        memcpy(embed_words, insn, 5 * sizeof(*insn));
    return MUR_OK;
}

static const mur_hal hal = { NULL, put_dma, put_accel, put_host, NULL, completed, NULL };

/* ---- runs ---- */

static void stop(const char *what)
{
    host_print(HOST_STDERR, what);
    host_print(HOST_STDERR, "\n");
    host_exit(1);
}

static void count_run(const mur_program *p, uint32_t number, uint32_t pos, uint32_t m)
{
    mur_status status;

    COUNT_BEGIN();
    status = mur_start(&run, p, &hal, number, pos, m);
    completed[MUR_DMA] += INT32_MAX;
    completed[MUR_ACC] += INT32_MAX;
    if (status == MUR_OK)
        status = mur_run(&run);
    COUNT_END();
    if (status != MUR_OK)
        stop("a run failed");
}

static void add(uint32_t word)
{
    code[words++] = word;
}

/* ends the stream and counts it */
static void count_stream(void)
{
    add(5);
    entry = (mur_entr){ MUR_ENTRY_DECODE, 0, words, 1, 1 };
    count_run(&synthetic, 0, 3, 1);
    words = 0;
}

enum { ITEMS = 100 };

/* ITEMS instructions of an engine: words, patches, tokens waited for */
static void count_instructions(uint32_t opcode, uint32_t length, uint32_t patches, uint32_t wait)
{
    for (uint32_t i = 0; i < ITEMS; i++) {
        add(1 | patches << 4 | length << 8);
        add(opcode | 1 << 8 | wait << 16);
        for (uint32_t w = 1; w < length; w++)
            add(0);
        for (uint32_t p = 0; p < patches; p++) /* slot 1, word 1, 1 bit */
            add(1 << 2 | 1 << 8 | p << 12 | 1 << 17);
    }
    count_stream();
}

/* ITEMS MMs: one signals token 0, the next token 1 and waits for both, so that one question to the
 * engine answers for two tokens, as it does in programs */
static void count_waits(void)
{
    for (uint32_t i = 0; i < ITEMS; i++) {
        add(1 | 7 << 8);
        add(0x10 | (1 + i % 2) << 8 | (i % 2 ? 3u << 16 : 0));
        for (uint32_t w = 1; w < 7; w++)
            add(0);
    }
    count_stream();
}

static void count_evaluations(uint32_t op, uint32_t immediate, uint32_t second)
{
    for (uint32_t i = 0; i < ITEMS; i++) {
        add(2 | op << 4 | 10 << 10 | 1 << 16 | immediate << 28);
        add(second);
    }
    count_stream();
}

static void count_items(void)
{
    synthetic.meta = &meta;
    synthetic.entries = &entry;
    synthetic.entry_count = 1;
    synthetic.code = code;
    synthetic.tables = tables;
    synthetic.steps = 1u << 30;
    memset(synthetic.region_bytes, 0xff, sizeof(synthetic.region_bytes));
    meta.context = 64;
    count_stream();                        /* the start and the end alone */
    count_instructions(0x01, 4, 0, 0);     /* LD */
    count_instructions(0x10, 7, 0, 0);     /* MM */
    count_instructions(0x24, 8, 0, 0);     /* SMAX */
    count_waits();                         /* MM, two tokens for every other one */
    count_instructions(0x01, 4, 1, 0);     /* LD with a patch */
    count_instructions(0x10, 7, 1, 0);     /* MM with a patch */
    count_instructions(0x10, 7, 4, 0);     /* with four */
    count_instructions(0x24, 8, 4, 0);     /* SMAX with four */
    count_evaluations(1, 1, 5);            /* ADD */
    count_evaluations(3, 1, 5);            /* MUL */
    count_evaluations(5, 1, 5);            /* DIV */
    count_evaluations(6, 1, 5);            /* MOD */
    count_evaluations(15, 0, 0);           /* TABLE */
    for (uint32_t i = 0; i < ITEMS; i++) { /* FOR of one round, and NEXT */
        add(3 | 9 << 4 | 1 << 16);
        add(1);
        add(0);
        add(4);
    }
    count_stream();
    add(3 | 9 << 4 | 1 << 16); /* FOR of 101 rounds */
    add(ITEMS + 1);
    add(0);
    add(4);
    count_stream();
}

static void open_program(void)
{
    if (mur_open(&program, program_file, (size_t)(program_file_end - program_file)) != MUR_OK ||
        mur_verify(&program, &verifier) != MUR_OK)
        stop("the program is refused");
    if (program.meta->io_bytes > sizeof(io) || program.meta->vocabulary > MOST_LOGITS)
        stop("the program's IO is too large for this bench");
}

static void count_program(void)
{
    uint32_t last = program.meta->context - 1, rows = program.meta->rows, most;
    mur_sampler drawn = { 0, 1, 0, 0.8f, 0 };
    float *logits = (float *)(void *)((uint8_t *)io + program.meta->logits);
    const uint32_t vocabulary = program.meta->vocabulary, at = program.meta->logits / 4;
    const uint32_t amax_words[] = { AMAX, at, vocabulary | 1u << 16, 0 }; /* to io[0], io[1] */
    uint32_t seed = 1;

    count_run(&program, mur_find_entry(&program, MUR_ENTRY_DECODE, 1), 0, 1);
    count_run(&program, mur_find_entry(&program, MUR_ENTRY_DECODE, 1), last / 2, 1);
    count_run(&program, mur_find_entry(&program, MUR_ENTRY_DECODE, 1), last, 1);
    most = mur_find_entry(&program, MUR_ENTRY_PREFILL, rows);
    if (most == program.entry_count)
        stop("no entry takes as many tokens as there are rows");
    count_run(&program, most, 0, rows);
    for (uint32_t i = 0; i < EMBEDDED; i++)
        io[i] = (i * vocabulary + i) / EMBEDDED;
    embed_words[2] = (embed_words[2] & 0xffff) | EMBEDDED << 16;
    COUNT_BEGIN();
    if (mur_embed(&program, io, embed_words) != MUR_OK)
        stop("EMBED fails");
    COUNT_END();
    for (uint32_t i = 0; i < vocabulary; i++) {
        seed = seed * 1664525u + 1013904223u;
        logits[i] = (float)(int32_t)(seed >> 8) / 1048576.0f - 8.0f;
    }
    COUNT_BEGIN();
    if (mur_embed(&program, io, amax_words) != MUR_OK)
        stop("AMAX fails");
    COUNT_END();
    mur_sampler_seed(&drawn, 1);
    COUNT_BEGIN();
    seed = mur_sampler_next_to(&drawn, logits, vocabulary, io[0] - at, NULL);
    COUNT_END();
}

int main(void);

int main(void)
{
    host_open();
    open_program();
    count_items();
    count_program();
    return 0;
}

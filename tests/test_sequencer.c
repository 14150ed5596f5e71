/* test_sequencer.c - programs on a machine with hardware tokens and a sequencer: its queues wait,
 * its sequencer repeats loops, and every bit is what it is on the machine without.
 *
 * The runtime's interpreter is compiled here as for a board that has both. */
#define MUR_HARDWARE_TOKENS
#define MUR_SEQUENCER
#include "../runtime/src/mur_run.c"

#include "program_board.h"
#include "targets/uthinker/asm/uthinker_asm.h"
#include "uthinker_fixture.h"

/* ---- the machine ---- */

enum { DEPTH = 4, TOKENS_FED = 130 };

typedef struct waiting {
    uint32_t words[MUR_MAX_WORDS];
    uint32_t need[MUR_CPU]; /* instructions that each engine must have completed */
} waiting;

typedef struct hardware {
    mur_hal hal;
    board *board; /* whose simulator executes an instruction when it is its turn */
    waiting queue[MUR_CPU][DEPTH];
    uint32_t issued[MUR_CPU], completed[MUR_CPU];
    uint32_t token_engine[MUR_TOKENS], token_count[MUR_TOKENS], signalled;
    uint64_t chance;
    /* the sequencer */
    uint32_t slot[MUR_SLOTS];
    const uint32_t *at, *end; /* NULL: it rests */
    struct {
        const uint32_t *body;
        uint32_t variable, left;
    } loop[MUR_MAX_NESTING];
    uint32_t depth, words[MUR_MAX_WORDS];
    uint32_t streams, streamed, by_cpu; /* loops and instructions, counted */
    uint32_t open;                      /* loops that ended before their last product */
} hardware;

static uint32_t below(hardware *h, uint32_t n)
{
    h->chance = h->chance * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(h->chance >> 33) % n;
}

/* an engine may execute the oldest instruction of its queue, if that need not wait */
static bool advance(hardware *h, uint32_t engine)
{
    const waiting *w = &h->queue[engine][h->completed[engine] % DEPTH];
    const mur_hal *sim = &h->board->hal;

    if (h->completed[engine] == h->issued[engine])
        return false;
    for (uint32_t e = 0; e < MUR_CPU; e++)
        if ((int32_t)(h->completed[e] - w->need[e]) < 0)
            return false;
    CHECK_EQ((engine == MUR_DMA ? sim->dma : sim->accel)(sim->arg, w->words), MUR_OK);
    h->completed[engine]++;
    return true;
}

/* time goes on; one of the two can always do something, or both rest */
static void pass_time(hardware *h)
{
    uint32_t first = below(h, 2);

    if (!advance(h, first))
        CHECK(advance(h, 1 - first) ||
              (h->completed[0] == h->issued[0] && h->completed[1] == h->issued[1]));
    while (below(h, 3) == 0)
        advance(h, below(h, 2));
}

static mur_status put(hardware *h, uint32_t engine, const uint32_t *words)
{
    waiting *w = &h->queue[engine][h->issued[engine] % DEPTH];
    uint32_t op, sig = words[0] >> 8 & 31;

    if (below(h, 2))
        pass_time(h);
    if (h->issued[engine] - h->completed[engine] == DEPTH)
        return MUR_YIELD;
    CHECK(muc_insn_find_opcode(words[0] & 0xff, &op));
    memcpy(w->words, words, 4 * muc_insn_get(op)->words);
    memset(w->need, 0, sizeof(w->need));
    for (uint32_t t = 0; t < MUR_TOKENS; t++)
        if ((words[0] >> (16 + t) & 1) != 0 && (h->signalled >> t & 1) != 0 &&
            h->token_count[t] > w->need[h->token_engine[t]])
            w->need[h->token_engine[t]] = h->token_count[t];
    h->issued[engine]++;
    if (sig != 0) {
        h->token_engine[sig - 1] = engine;
        h->token_count[sig - 1] = h->issued[engine];
        h->signalled |= 1u << (sig - 1);
    }
    return MUR_OK;
}

static mur_status put_dma(void *arg, const uint32_t *words)
{
    mur_status status = put(arg, MUR_DMA, words);

    ((hardware *)arg)->by_cpu += status == MUR_OK;
    if (status == MUR_YIELD)
        pass_time(arg);
    return status;
}

static mur_status put_accel(void *arg, const uint32_t *words)
{
    mur_status status = put(arg, MUR_ACC, words);

    ((hardware *)arg)->by_cpu += status == MUR_OK;
    if (status == MUR_YIELD)
        pass_time(arg);
    return status;
}

/* the CPU has waited for what its instruction names */
static mur_status put_host(void *arg, const uint32_t *words)
{
    hardware *h = arg;
    const mur_hal *sim = &h->board->hal;

    for (uint32_t t = 0; t < MUR_TOKENS; t++)
        if ((words[0] >> (16 + t) & 1) != 0 && (h->signalled >> t & 1) != 0)
            CHECK((int32_t)(h->completed[h->token_engine[t]] - h->token_count[t]) >= 0);
    return sim->host(sim->arg, words);
}

static uint32_t ask(void *arg, enum mur_engine engine)
{
    hardware *h = arg;

    pass_time(h);
    return h->completed[engine];
}

/* ---- the sequencer, from SPEC.md section 5 ---- */

static uint32_t calculate(uint32_t op, uint32_t a, uint32_t b, uint32_t c)
{
    const uint32_t results[] = { 0,
                                 a + b,
                                 a > b ? a - b : 0,
                                 a * b,
                                 b ? a / b + (a % b != 0) : 0,
                                 b ? a / b : 0,
                                 b ? a % b : 0,
                                 a < b ? a : b,
                                 a > b ? a : b,
                                 a & b,
                                 a == b,
                                 a < b,
                                 b < 32 ? a << b : 0,
                                 b < 32 ? a >> b : 0,
                                 a ? b : c };

    return results[op];
}

static void sequence_eval(hardware *h, const uint32_t *tables)
{
    uint32_t w0 = h->at[0], w1 = h->at[1], op = w0 >> 4 & 63, *dst = &h->slot[w0 >> 10 & 63];
    uint32_t a = h->slot[w0 >> 16 & 63], b = w0 >> 28 ? w1 : h->slot[w0 >> 22 & 63];

    if (op == 15) {
        dst[0] = tables[w1 + a];
        dst[1] = tables[w1 + a + 1] - dst[0];
    } else {
        *dst = calculate(op, a, b, op == 14 ? h->slot[w1] : 0);
    }
    h->at += 2;
}

static mur_status sequence_inst(hardware *h)
{
    uint32_t patches = h->at[0] >> 4 & 15, count = h->at[0] >> 8 & 15;
    mur_status status;

    memcpy(h->words, h->at + 1, 4 * count);
    for (uint32_t p = 0; p < patches; p++) {
        uint32_t patch = h->at[1 + count + p];

        h->words[patch >> 8 & 15] += h->slot[patch >> 2 & 63] << (patch >> 12 & 31);
    }
    status = put(h, (h->words[0] & 255) < 8 ? MUR_DMA : MUR_ACC, h->words);
    if (status == MUR_OK) {
        h->at += 1 + count + patches;
        h->streamed++;
    }
    return status;
}

static void sequence_for(hardware *h, uint32_t count)
{
    if (count == 0) {
        h->at += 3 + h->at[2] + 1;
        return;
    }
    h->loop[h->depth].variable = h->at[0] >> 4 & 63;
    h->loop[h->depth].left = count;
    h->slot[h->loop[h->depth].variable] = 0;
    h->at += 3;
    h->loop[h->depth++].body = h->at;
}

static void sequence_next(hardware *h)
{
    uint32_t inner = h->depth - 1;

    if (--h->loop[inner].left != 0) {
        h->slot[h->loop[inner].variable]++;
        h->at = h->loop[inner].body;
    } else {
        h->depth--;
        h->at++;
    }
}

static mur_status sequence(hardware *h, const uint32_t *tables)
{
    switch (h->at[0] & 15) {
    case 1:
        return sequence_inst(h);
    case 2:
        sequence_eval(h, tables);
        break;
    case 3:
        sequence_for(h, h->at[0] >> 16 & 1 ? h->at[1] : h->slot[h->at[0] >> 10 & 63]);
        break;
    default:
        sequence_next(h);
        break;
    }
    return MUR_OK;
}

static mur_status stream_loop(void *arg, mur_run_state *run, const uint32_t *item, uint32_t count)
{
    hardware *h = arg;

    if (!h->at) {
        memcpy(h->slot, run->slot, sizeof(h->slot));
        h->at = item;
        h->end = item + 3 + item[2] + 1;
        h->streams++;
        sequence_for(h, count);
    }
    while (h->at != h->end) {
        if (sequence(h, run->program->tables) == MUR_YIELD)
            pass_time(h);
        if (below(h, 20) == 0)
            return MUR_YIELD;
    }
    h->at = NULL;
    h->open += h->completed[MUR_ACC] != h->issued[MUR_ACC];
    memcpy(run->issued, h->issued, sizeof(h->issued));
    for (uint32_t t = 0; t < MUR_TOKENS; t++)
        if ((h->signalled >> t & 1) != 0) {
            run->token[t + 1] = (mur_run_token){ h->token_engine[t], h->token_count[t] };
            run->pending |= 2u << t;
        }
    return MUR_OK;
}

/* ---- programs ---- */

static fixture f;
static mur_program program;
static mur_verifier verifier;

/* the fixture's model again; no clock chooses, for it would run this interpreter */
static void compile(bool streamed, bool recompute)
{
    muc_uthinker_options options = muc_uthinker_defaults;

    options.recompute = recompute;
    options.split = (muc_uthinker_split){ .ffn_parts = 1, .late = true, .streamed = streamed };
    muc_uthinker_build_free(f.build);
    f.build = NULL;
    CHECK_OK(f.ctx,
             muc_uthinker_compile(f.ctx, f.graph, &f.machine, &options, &no_tokens, &f.build));
    CHECK_EQ(mur_open(&program, f.build->program.data, f.build->program.size), MUR_OK);
    CHECK_EQ(mur_verify(&program, &verifier), MUR_OK);
}

/* Feeds tokens in calls of several sizes and gives a checksum of all that the program stores. */
static uint32_t feed(board *b)
{
    static const uint32_t calls[] = { 40, 1, 1, 64, 1, 23 };
    uint32_t tokens[TOKENS_FED], fed = 0, crc;

    for (uint32_t i = 0; i < TOKENS_FED; i++)
        tokens[i] = (i * 7 + 1) % program.meta->vocabulary;
    for (uint32_t i = 0; i < MUC_COUNT(calls); fed += calls[i++]) {
        mur_status status = mur_lm_feed(&b->lm, tokens + fed, calls[i]);

        CHECK_EQ(status, MUR_OK);
        do
            status = mur_lm_run(&b->lm);
        while (status == MUR_YIELD);
        CHECK_EQ(status, MUR_OK);
    }
    CHECK_EQ(fed, TOKENS_FED);
    CHECK(b->sim.fault.reason == NULL);
    crc = mur_crc32(0, b->memory.kv, program.region_bytes[MUR_KV]);
    return mur_crc32(crc, b->memory.io, program.region_bytes[MUR_IO]);
}

static uint32_t feed_without(void)
{
    uint32_t crc;
    board b;

    board_open(&b, &program, MUR_SIM_EAGER);
    crc = feed(&b);
    board_close(&b);
    return crc;
}

static uint32_t feed_with(uint64_t seed, hardware *h)
{
    uint32_t crc;
    board b;

    memset(h, 0, sizeof(*h));
    h->hal = (mur_hal){ h, put_dma, put_accel, put_host, ask, NULL, stream_loop };
    h->chance = seed;
    board_open(&b, &program, MUR_SIM_EAGER);
    h->board = &b;
    CHECK_EQ(mur_lm_open(&b.lm, &program, &h->hal, b.memory.io), MUR_OK);
    crc = feed(&b);
    board_close(&b);
    return crc;
}

static void check_model(bool recompute)
{
    uint32_t expected;
    hardware h;

    compile(false, recompute);
    expected = feed_without();
    CHECK(feed_with(1, &h) == expected); /* queues wait, nothing is streamed */
    CHECK_EQ(h.streams, 0);
    compile(true, recompute);
    for (uint64_t seed = 1; seed < 5; seed++) {
        CHECK(feed_with(seed, &h) == expected);
        CHECK(h.streams > 0 && h.streamed > 20 * h.by_cpu);
    }
}

static void every_bit_is_that_of_the_machine_without(void **state)
{
    (void)state;
    fixture_open(&f, "models/rescue", &muc_uthinker_defaults);
    check_model(false);
    check_model(true);
    fixture_free(&f);
    fixture_stories(&f, &muc_uthinker_defaults);
    check_model(false);
    fixture_free(&f);
}

/* The text with the lines of AMAX moved to where the block that they are in begins, and waiting for
 * products, too. */
static muc_text moved(const char *from)
{
    static const char begins[] = "for with_logits", what[] = "AMAX wait=8 ";
    muc_text text = { 0 };

    for (const char *block; (block = strstr(from, begins));) {
        const char *to = strchr(block, '\n') + 1, *line = strstr(to, what);
        const char *rest = line + strlen(what), *end = strchr(line, '\n') + 1;

        muc_text_add(&text, "%.*sAMAX wait=4,5,8 %.*s", (int)(to - from), from, (int)(end - rest),
                     rest);
        muc_text_add(&text, "%.*s\n", (int)(line - to), to);
        from = end;
    }
    muc_text_add(&text, "%s", from);
    return text;
}

/* Behind the loop of layers, which is streamed, AMAX waits for the products of its last round: it
 * takes the logits of the call before. */
static void the_cpu_waits_for_what_a_stream_signals(void **state)
{
    uint32_t expected, open = 0;
    muc_arena arena = { 0 };
    muc_text text = { 0 }, other;
    muc_bytes made;
    hardware h;

    (void)state;
    fixture_open(&f, "models/rescue", &muc_uthinker_defaults);
    compile(true, false);
    CHECK_OK(f.ctx, muc_uthinker_disassemble(f.ctx, f.build->program, &text));
    other = moved(text.data);
    CHECK_OK(f.ctx, muc_text_status(f.ctx, &other));
    CHECK_OK(f.ctx, muc_uthinker_assemble(
                        f.ctx, &arena,
                        (muc_bytes){ (const uint8_t *)other.data, other.size, "text" }, &made));
    CHECK_EQ(mur_open(&program, made.data, made.size), MUR_OK);
    CHECK_EQ(mur_verify(&program, &verifier), MUR_OK);
    expected = feed_without();
    for (uint64_t seed = 1; seed < 9; seed++, open += h.open)
        CHECK(feed_with(seed, &h) == expected);
    CHECK(open > 0);
    muc_arena_free(&arena);
    muc_text_free(&text);
    muc_text_free(&other);
    fixture_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cpu_waits_for_what_a_stream_signals),
        cmocka_unit_test(every_bit_is_that_of_the_machine_without),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

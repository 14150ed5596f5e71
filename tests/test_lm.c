/* The language model's loop on the device, on the simulated machine: text, ends, self test. */
#include "program_board.h"
#include "tokenizer_fixture.h"
#include "uthinker_fixture.h"

#include "mur_embed.h"

/* ---- one compiled model with its tokenizer, for all tests ---- */

static fixture f;
static loaded vocabulary;
static mur_tokenizer tokenizer;
static mur_program program;
static mur_verifier verifier;

static void open_program(void)
{
    CHECK_EQ(mur_open(&program, f.build->program.data, f.build->program.size), MUR_OK);
    CHECK_EQ(mur_verify(&program, &verifier), MUR_OK);
}

static int have_model(void **state)
{
    muc_uthinker_options options = muc_uthinker_defaults;

    (void)state;
    if (access("../shared/data/llama/stories260K.bin", R_OK) != 0)
        return 0; /* each test says that it is skipped */
    options.context = 80;
    fixture_stories(&f, &options);
    vocabulary = load(f.ctx, shared_data("llama/tok512.bin"));
    CHECK_EQ(mur_tokenizer_open(&tokenizer, vocabulary.form, vocabulary.bytes, NULL), MUR_OK);
    open_program();
    return 0;
}

static int free_model(void **state)
{
    (void)state;
    if (!f.ctx)
        return 0;
    unload(&vocabulary);
    fixture_free(&f);
    return 0;
}

/* ---- EMBED ---- */

static void the_runtime_embeds_as_the_simulator_does(void **state)
{
    uint32_t words[5], *tokens, width, at;
    board b;
    uint8_t *io;

    (void)state;
    shared_data("llama/stories260K.bin");
    board_open(&b, &program, MUR_SIM_EAGER);
    width = program.meta->width;
    at = program.meta->embedded;
    io = calloc(1, program.region_bytes[MUR_IO]);
    tokens = (uint32_t *)(void *)b.memory.io;
    for (uint32_t token = 0; token < program.meta->vocabulary; token += 3) {
        uint32_t rows = token % 3 + 1;

        for (uint32_t i = 0; i < rows; i++)
            tokens[i] = (token + 7 * i) % program.meta->vocabulary;
        memcpy(io, tokens, 4 * (size_t)rows);
        words[0] = 0x08;
        words[1] = program.meta->embedding;
        words[2] = width | rows << 16;
        words[3] = program.meta->vocabulary;
        words[4] = at;
        CHECK_EQ(b.hal.host(b.hal.arg, words), MUR_OK);
        CHECK_EQ(mur_embed(&program, io, words), MUR_OK);
        assert_memory_equal(io + at, b.memory.io + at, 4 * (size_t)rows * width);
    }
    tokens = (uint32_t *)(void *)io;
    tokens[0] = program.meta->vocabulary;
    CHECK_EQ(mur_embed(&program, io, words), MUR_E_FAULT);
    tokens[0] = 0;
    words[4] = program.region_bytes[MUR_IO] - 4;
    CHECK_EQ(mur_embed(&program, io, words), MUR_E_FAULT);
    words[4] = at;
    words[1] = program.region_bytes[MUR_WGTS] - 3;
    CHECK_EQ(mur_embed(&program, io, words), MUR_E_FAULT);
    free(io);
    board_close(&b);
}

/* ---- AMAX ---- */

static mur_status look(const board *b, uint8_t *io, uint32_t at, uint32_t k, uint32_t first,
                       uint32_t dst)
{
    const uint32_t words[] = { 0x09, at, k | first << 16, dst };
    mur_status status = b ? b->hal.host(b->hal.arg, words) : mur_embed(&program, io, words);

    return status;
}

/* numbers of both signs, and NaN and infinities among them */
static uint32_t random_logit(uint32_t style, uint32_t *seed)
{
    static const uint32_t odd[] = { 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x7f7fffff,
                                    0xff7fffff, 0,          0x80000000, 1,          0x80000001 };
    uint32_t x = *seed = *seed * 1664525 + 1013904223;

    if (style % 2 && x >> 16 & 1)
        return odd[(x >> 20) % MUC_COUNT(odd)];
    return (style & 2 ? x | 0x80000000 : x) & (style & 4 ? 0x83ffffff : 0xffffffff);
}

static void the_runtime_finds_the_greatest_as_the_simulator_does(void **state)
{
    uint32_t seed = 1, at, n, last;
    board b;
    uint8_t *io;

    (void)state;
    shared_data("llama/stories260K.bin");
    board_open(&b, &program, MUR_SIM_EAGER);
    at = program.meta->logits / 4;
    n = program.meta->vocabulary;
    last = program.region_bytes[MUR_IO] / 4;
    io = calloc(1, program.region_bytes[MUR_IO]);
    for (uint32_t round = 0; round < 400; round++) {
        uint32_t plain = MUR_LOWEST_LOGIT, best;

        for (uint32_t i = 0; i < n; i++)
            ((uint32_t *)(void *)io)[at + i] = random_logit(round, &seed);
        memcpy(b.memory.io, io, 4 * (size_t)(at + n));
        for (uint32_t i = 0, k; i < n; i += k) {
            k = 1 + (round + i) % (n - i);
            CHECK_EQ(look(NULL, io, at + i, k, i == 0, 2), MUR_OK);
            CHECK_EQ(look(&b, NULL, at + i, k, i == 0, 2), MUR_OK);
            assert_memory_equal(io + 8, b.memory.io + 8, 8);
        }
        best = mur_sampler_greater((const float *)(const void *)io + at, n, &plain);
        CHECK_EQ(((uint32_t *)(void *)io)[2], at + (best < n ? best : 0));
        CHECK_EQ(((uint32_t *)(void *)io)[3], plain);
    }
    CHECK_EQ(look(NULL, io, last - 5, 5, 0, last - 2), MUR_OK);
    CHECK_EQ(look(NULL, io, last - 5, 6, 0, 0), MUR_E_FAULT);
    CHECK_EQ(look(NULL, io, last + 1, 0, 0, 0), MUR_E_FAULT);
    CHECK_EQ(look(NULL, io, 0, 1, 0, last - 1), MUR_E_FAULT);
    CHECK_EQ(look(NULL, io, 0, 1, 0, 0x3fffffff), MUR_E_FAULT);
    free(io);
    board_close(&b);
}

/* ---- text ---- */

enum { MOST = 30 };

typedef struct told {
    uint8_t text[4096];
    size_t size;
} told;

static void tell(void *arg, const uint8_t *bytes, size_t count)
{
    told *t = arg;

    CHECK(t->size + count <= sizeof(t->text));
    memcpy(t->text + t->size, bytes, count);
    t->size += count;
}

/* the prompt's tokens one at a time, then the likeliest ones: no loop but this one */
static uint32_t decode_greedily(board *b, const uint32_t *prompt, uint32_t count, uint32_t most,
                                uint32_t *tokens)
{
    uint32_t made = 0, token = prompt[0];

    for (uint32_t pos = 0; made < most; pos++) {
        uint32_t entry = mur_find_entry(&program, MUR_ENTRY_DECODE, 1), best = 0;
        const float *logits = mur_lm_logits(&b->lm);
        mur_run_state run;

        memcpy(b->memory.io, &token, 4);
        CHECK_EQ(mur_start(&run, &program, &b->hal, entry, pos, 1), MUR_OK);
        CHECK_EQ(mur_run(&run), MUR_OK);
        for (uint32_t i = 1; i < program.meta->vocabulary; i++)
            if (logits[i] > logits[best])
                best = i;
        token = pos + 1 < count ? prompt[pos + 1] : best;
        if (pos + 1 >= count)
            tokens[made++] = best;
    }
    return made;
}

static mur_status finish(mur_lm_text *text)
{
    mur_status status;

    do {
        status = mur_lm_step(text);
    } while (status == MUR_YIELD || (status == MUR_OK && text->end == MUR_LM_GOING));
    return status;
}

static const char prompt_text[] = "Once upon a time";

static uint32_t encode_prompt(uint32_t *ids, uint32_t capacity)
{
    uint8_t scratch[1024];
    size_t count;

    CHECK_EQ(mur_tokenizer_encode(&tokenizer, (const uint8_t *)prompt_text, strlen(prompt_text),
                                  MUR_ENCODE_BOS, scratch, sizeof(scratch), ids, capacity, &count),
             MUR_OK);
    CHECK(count > 1);
    return (uint32_t)count;
}

static void text_is_that_of_single_steps_however_busy_the_engines(void **state)
{
    uint32_t prompt[64], count, tokens[MOST], previous;
    mur_sampler sampler = { .temperature = 0 };
    told expected = { .size = 0 };
    board b;

    (void)state;
    shared_data("llama/stories260K.bin");
    count = encode_prompt(prompt, 64);
    board_open(&b, &program, MUR_SIM_EAGER);
    decode_greedily(&b, prompt, count, MOST, tokens);
    board_close(&b);
    previous = prompt[count - 1];
    for (uint32_t i = 0; i < MOST; previous = tokens[i++]) {
        const uint8_t *bytes;
        size_t size = mur_tokenizer_decode(&tokenizer, tokens[i], previous, &bytes);

        tell(&expected, bytes, size);
    }
    for (uint32_t policy = 0; policy < 3; policy++) {
        told got = { .size = 0 };
        mur_lm_text text = { &b.lm, &tokenizer, &sampler, NULL, tell, &got, 0, 0, 0, 0 };

        board_open(&b, &program, (enum mur_sim_policy)policy);
        CHECK_EQ(mur_lm_begin(&text, prompt, count, MOST), MUR_OK);
        CHECK_EQ(finish(&text), MUR_OK);
        CHECK_EQ(text.end, MUR_LM_LENGTH);
        CHECK_EQ(text.made, MOST);
        CHECK_EQ(b.lm.pos, count + MOST - 1);
        CHECK_EQ(got.size, expected.size);
        assert_memory_equal(got.text, expected.text, got.size);
        board_close(&b);
    }
}

static void a_text_ends_where_the_context_is_full(void **state)
{
    mur_sampler sampler = { .temperature = 0 };
    uint32_t prompt[64], count;
    told got = { .size = 0 };
    board b;
    mur_lm_text text = { &b.lm, &tokenizer, &sampler, NULL, tell, &got, 0, 0, 0, 0 };

    (void)state;
    shared_data("llama/stories260K.bin");
    count = encode_prompt(prompt, 64);
    board_open(&b, &program, MUR_SIM_EAGER);
    CHECK_EQ(mur_lm_begin(&text, prompt, count, 1000), MUR_OK);
    CHECK_EQ(finish(&text), MUR_OK);
    CHECK_EQ(text.end, MUR_LM_FULL);
    CHECK_EQ(b.lm.pos, 80);
    CHECK_EQ(text.made, 80 - count + 1); /* the last one is told and not fed */
    CHECK_EQ(mur_lm_begin(&text, prompt, 1, 1), MUR_E_INPUT);
    mur_lm_reset(&b.lm);
    CHECK_EQ(mur_lm_begin(&text, prompt, count, 0), MUR_OK);
    CHECK_EQ(mur_lm_step(&text), MUR_OK);
    CHECK_EQ(text.end, MUR_LM_LENGTH);
    board_close(&b);
}

static void a_text_ends_at_the_models_own_end(void **state)
{
    uint32_t prompt[64], count, tokens[8], *eos;
    mur_sampler sampler = { .temperature = 0 };

    (void)state;
    shared_data("llama/stories260K.bin");
    count = encode_prompt(prompt, 64);
    for (uint32_t which = 0; which < 3; which++) {
        told got = { .size = 0 };
        board b;
        mur_lm_text text = { &b.lm, &tokenizer, &sampler, NULL, tell, &got, 0, 0, 0, 0 };
        uint32_t before = 0;

        board_open(&b, &program, MUR_SIM_EAGER);
        decode_greedily(&b, prompt, count, 8, tokens);
        while (tokens[before] != tokens[7])
            before++;
        eos = (uint32_t *)(uintptr_t)&program.meta->eos + which;
        CHECK_EQ(*eos, UINT32_MAX);
        *eos = tokens[7];
        CHECK_EQ(mur_lm_begin(&text, prompt, count, MOST), MUR_OK);
        CHECK_EQ(finish(&text), MUR_OK);
        *eos = UINT32_MAX;
        CHECK_EQ(text.end, MUR_LM_EOS);
        CHECK_EQ(text.made, before); /* and the end itself is not told */
        board_close(&b);
    }
}

static void tokens_that_cannot_be_fed_are_refused(void **state)
{
    uint32_t tokens[81] = { 0 };
    board b;

    (void)state;
    shared_data("llama/stories260K.bin");
    board_open(&b, &program, MUR_SIM_EAGER);
    CHECK_EQ(mur_lm_feed(&b.lm, tokens, 0), MUR_E_INPUT);
    CHECK_EQ(mur_lm_feed(&b.lm, tokens, 81), MUR_E_INPUT);
    tokens[79] = program.meta->vocabulary;
    CHECK_EQ(mur_lm_feed(&b.lm, tokens, 80), MUR_E_INPUT);
    tokens[79] = 1;
    CHECK_EQ(mur_lm_feed(&b.lm, tokens, 80), MUR_OK);
    CHECK_EQ(mur_lm_feed(&b.lm, tokens, 1), MUR_E_INPUT); /* others are under way */
    CHECK_EQ(mur_lm_run(&b.lm), MUR_OK);
    CHECK_EQ(b.lm.pos, 80);
    board_close(&b);
}

/* Feeds tokens with a budget; gives how often the model had to be asked again. */
static uint32_t yields(board *b, uint32_t budget, const uint32_t *tokens, uint32_t count)
{
    uint32_t times = 0;
    mur_status status;

    mur_lm_reset(&b->lm);
    b->lm.budget = budget;
    CHECK_EQ(mur_lm_feed(&b->lm, tokens, count), MUR_OK);
    while ((status = mur_lm_run(&b->lm)) == MUR_YIELD)
        times++;
    CHECK_EQ(status, MUR_OK);
    return times;
}

static void a_call_executes_no_more_than_its_budget(void **state)
{
    const uint32_t tokens[] = { 1, 403, 7 };
    float *logits;
    uint32_t items;
    size_t bytes;
    board b;

    (void)state;
    shared_data("llama/stories260K.bin");
    bytes = 4 * (size_t)program.meta->vocabulary;
    board_open(&b, &program, MUR_SIM_EAGER);
    CHECK_EQ(yields(&b, UINT32_MAX, tokens, 3), 0);
    logits = malloc(bytes);
    memcpy(logits, mur_lm_logits(&b.lm), bytes);
    items = yields(&b, 1, tokens, 3) + 1; /* the last one ends the call */
    CHECK(items > 1000);
    for (uint32_t budget = 7; budget < 2 * items; budget *= 11) {
        memset(b.memory.io + program.meta->logits, 0, bytes);
        CHECK_EQ(yields(&b, budget, tokens, 3), (items - 1) / budget);
        assert_memory_equal(mur_lm_logits(&b.lm), logits, bytes);
    }
    free(logits);
    board_close(&b);
}

/* ---- logits ---- */

static uint32_t looks;

/* instructions of the CPU go to the simulator, those that look at logits are counted */
static mur_status count_looks(void *arg, const uint32_t *words)
{
    mur_sim *sim = arg;

    looks += (words[0] & 0xff) == 0x09;
    return mur_sim_hal(sim).host(sim, words);
}

/* Feeds 70 tokens, in two calls; returns how often the CPU looked at logits. */
static uint32_t feed_long(board *b, uint32_t all_logits)
{
    uint32_t tokens[70];

    CHECK(program.meta->rows < MUC_COUNT(tokens));
    for (uint32_t i = 0; i < MUC_COUNT(tokens); i++)
        tokens[i] = (i * 31 + 1) % program.meta->vocabulary;
    board_open(b, &program, MUR_SIM_EAGER);
    b->hal.host = count_looks;
    b->lm.all_logits = all_logits;
    looks = 0;
    CHECK_EQ(mur_lm_feed(&b->lm, tokens, MUC_COUNT(tokens)), MUR_OK);
    CHECK_EQ(mur_lm_run(&b->lm), MUR_OK);
    return looks;
}

static void only_the_call_that_ends_a_feed_computes_logits(void **state)
{
    uint32_t once, twice, likeliest;
    board last, all;

    (void)state;
    shared_data("llama/stories260K.bin");
    once = feed_long(&last, 0);
    twice = feed_long(&all, 1);
    CHECK(once > 0);
    CHECK_EQ(twice, 2 * once);
    likeliest = mur_lm_likeliest(&last.lm);
    CHECK_EQ(likeliest, mur_lm_likeliest(&all.lm));
    assert_memory_equal(mur_lm_logits(&last.lm), mur_lm_logits(&all.lm),
                        4 * (size_t)program.meta->vocabulary);
    assert_memory_equal(last.memory.kv, all.memory.kv, program.region_bytes[MUR_KV]);
    board_close(&last);
    board_close(&all);
}

/* ---- self test ---- */

static void golden_vectors_are_compared(void **state)
{
    static mur_gold gold[70];
    mur_lm_difference first;
    uint32_t bytes;
    board b;

    (void)state;
    shared_data("llama/stories260K.bin");
    bytes = 4 * program.meta->vocabulary;
    board_open(&b, &program, MUR_SIM_EAGER);
    CHECK_EQ(mur_lm_self_test(&b.lm, NULL), MUR_E_UNSUPPORTED); /* there are none */
    for (uint32_t i = 0; i < 70; i++) {
        gold[i].token = (i * 31 + 1) % 512;
        CHECK_EQ(mur_lm_feed(&b.lm, &gold[i].token, 1), MUR_OK);
        CHECK_EQ(mur_lm_run(&b.lm), MUR_OK);
        gold[i].logits_crc = mur_crc32(0, mur_lm_logits(&b.lm), bytes);
    }
    board_close(&b);
    for (uint32_t wrong = 0; wrong < 3; wrong++) {
        static const uint32_t places[] = { 70, 0, 69 }; /* 70: none */
        mur_status expected = wrong ? MUR_E_FAULT : MUR_OK;

        if (wrong)
            gold[places[wrong]].logits_crc ^= 1;
        set_section(f.ctx, f.build, MUR_SECTION_GOLD, (const uint8_t *)gold, sizeof(gold));
        open_program();
        board_open(&b, &program, wrong ? MUR_SIM_EAGER : MUR_SIM_RANDOM);
        CHECK_EQ(mur_lm_self_test(&b.lm, &first), expected);
        CHECK_EQ(first.position, places[wrong]);
        CHECK_EQ(first.stage, wrong ? MUR_STAGE_LOGITS : MUR_STAGES);
        CHECK_EQ(b.lm.pos, 0);
        board_close(&b);
        if (wrong)
            gold[places[wrong]].logits_crc ^= 1;
    }
    set_section(f.ctx, f.build, MUR_SECTION_GOLD, NULL, 0);
    open_program();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_runtime_embeds_as_the_simulator_does),
        cmocka_unit_test(the_runtime_finds_the_greatest_as_the_simulator_does),
        cmocka_unit_test(text_is_that_of_single_steps_however_busy_the_engines),
        cmocka_unit_test(a_text_ends_where_the_context_is_full),
        cmocka_unit_test(a_text_ends_at_the_models_own_end),
        cmocka_unit_test(tokens_that_cannot_be_fed_are_refused),
        cmocka_unit_test(a_call_executes_no_more_than_its_budget),
        cmocka_unit_test(only_the_call_that_ends_a_feed_computes_logits),
        cmocka_unit_test(golden_vectors_are_compared),
    };

    return cmocka_run_group_tests(tests, have_model, free_model);
}

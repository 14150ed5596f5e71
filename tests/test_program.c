/* test_program.c - compiled programs on the simulated machine: what must not change the result. */
#include "uthinker_fixture.h"

#include "targets/uthinker/sim/uthinker_sim.h"

/* A program on a machine of its own. */
typedef struct board {
    mur_program program;
    mur_sim sim;
    mur_sim_memory memory;
    void *blocks[8];
} board;

static void board_open(board *b, const muc_uthinker_build *build, enum mur_sim_policy policy)
{
    static mur_verifier verifier;
    const muc_uthinker_layout *y = &build->layout;
    const uint32_t *bytes = y->machine.buffer_bytes;

    memset(b, 0, sizeof(*b));
    CHECK_EQ(mur_open(&b->program, build->program.data, build->program.size), MUR_OK);
    CHECK_EQ(mur_verify(&b->program, &verifier), MUR_OK);
    for (uint32_t i = 0; i < MUR_GB; i++)
        b->memory.buffer[i] = b->blocks[i] = calloc(1, bytes[i]);
    b->memory.gb = b->blocks[MUR_GB] = calloc(1, bytes[MUR_GB]);
    memcpy(b->memory.buffer_bytes, bytes, sizeof(b->memory.buffer_bytes));
    b->memory.wgts = b->program.section[MUR_SECTION_WGTS];
    b->memory.parm = b->program.section[MUR_SECTION_PARM];
    b->memory.kv = b->blocks[5] = calloc(1, y->kv_bytes);
    b->memory.io = b->blocks[6] = calloc(1, y->io_bytes);
    memcpy(b->memory.region_bytes, b->program.region_bytes, sizeof(b->memory.region_bytes));
    mur_sim_init(&b->sim, &b->memory, policy, 7);
}

static void board_close(board *b)
{
    for (size_t i = 0; i < MUC_COUNT(b->blocks); i++)
        free(b->blocks[i]);
}

/* feeds m tokens at pos; the logits of the last, in the board's memory */
static const float *feed(board *b, enum mur_entry_kind kind, const uint32_t *tokens, uint32_t pos,
                         uint32_t m)
{
    mur_hal hal = mur_sim_hal(&b->sim);
    uint32_t entry = mur_find_entry(&b->program, kind, m);
    mur_run_state run;
    mur_status status;

    CHECK(entry < b->program.entry_count);
    memcpy(b->memory.io, tokens + pos, 4 * (size_t)m);
    CHECK_EQ(mur_start(&run, &b->program, &hal, entry, pos, m), MUR_OK);
    do {
        status = mur_run(&run);
    } while (status == MUR_YIELD);
    if (b->sim.fault.reason)
        fail_msg("pos %u, m %u: %s", pos, m, b->sim.fault.reason);
    CHECK_EQ(status, MUR_OK);
    return (const float *)(const void *)(b->memory.io + b->program.meta->logits);
}

enum { LENGTH = 150 };

/* the logits after each of LENGTH tokens, one DECODE each, then greedy tokens of its own */
static void decode_all(board *b, uint32_t vocabulary, uint32_t *tokens, float *logits)
{
    tokens[0] = 1;
    for (uint32_t pos = 0; pos < LENGTH; pos++) {
        float *row = logits + (size_t)pos * vocabulary;
        uint32_t best = 0;

        memcpy(row, feed(b, MUR_ENTRY_DECODE, tokens, pos, 1), 4 * (size_t)vocabulary);
        for (uint32_t i = 1; i < vocabulary; i++)
            if (row[i] > row[best])
                best = i;
        tokens[pos + 1] = best;
    }
}

/* calls of all the given lengths, in turn, must end in the logits that DECODEs gave */
static void check_grouping(const fixture *f, const uint32_t *tokens, const float *logits,
                           const uint32_t *lengths, uint32_t count, enum mur_sim_policy policy)
{
    uint32_t vocabulary = f->build->layout.vocabulary, pos = 0;
    board b;

    board_open(&b, f->build, policy);
    for (uint32_t i = 0; pos + lengths[i % count] <= LENGTH; i++) {
        uint32_t m = lengths[i % count];
        const float *last = feed(&b, MUR_ENTRY_PREFILL, tokens, pos, m);

        pos += m;
        if (memcmp(last, logits + (size_t)(pos - 1) * vocabulary, 4 * (size_t)vocabulary) != 0)
            fail_msg("call %u, of %u tokens up to position %u", i, m, pos);
    }
    board_close(&b);
}

static void tokens_in_one_call_or_in_many_give_the_same_bits(void **state)
{
    static const uint32_t lengths[][4] = { { 64, 64, 22, 1 }, { 63, 2, 64, 21 }, { 1, 50, 37, 5 } };
    uint32_t tokens[LENGTH + 1];
    float *logits;
    fixture f;
    board b;

    (void)state;
    fixture_stories(&f, &muc_uthinker_defaults);
    logits = calloc((size_t)LENGTH * f.build->layout.vocabulary, sizeof(*logits));
    assert_non_null(logits);
    board_open(&b, f.build, MUR_SIM_EAGER);
    decode_all(&b, f.build->layout.vocabulary, tokens, logits);
    board_close(&b);
    for (size_t i = 0; i < MUC_COUNT(lengths); i++)
        check_grouping(&f, tokens, logits, lengths[i], 4, (enum mur_sim_policy)i);
    free(logits);
    fixture_free(&f);
}

static void recomputed_keys_give_the_same_bits_as_cached_ones(void **state)
{
    muc_uthinker_options options = muc_uthinker_defaults;
    uint32_t tokens[2][LENGTH + 1];
    float *logits[2];

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        fixture f;
        board b;

        options.recompute = i;
        fixture_stories(&f, &options);
        logits[i] = calloc((size_t)LENGTH * f.build->layout.vocabulary, sizeof(float));
        assert_non_null(logits[i]);
        board_open(&b, f.build, MUR_SIM_LAZY);
        decode_all(&b, f.build->layout.vocabulary, tokens[i], logits[i]);
        board_close(&b);
        if (i)
            assert_memory_equal(logits[0], logits[1],
                                (size_t)LENGTH * f.build->layout.vocabulary * sizeof(float));
        fixture_free(&f);
    }
    free(logits[0]);
    free(logits[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_in_one_call_or_in_many_give_the_same_bits),
        cmocka_unit_test(recomputed_keys_give_the_same_bits_as_cached_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_self_test.c - a board's self test names the stage that a broken machine gets wrong first. */
#include "program_board.h"

#include <unistd.h>

#include "mur_code.h"
#include "muc/muc.h"

static char path[] = "/tmp/muc_self_test_XXXXXX";
static muc_context *ctx;
static mur_program program;
static mur_verifier verifier;
static void *image;

static void read_image(void)
{
    FILE *file = fopen(path, "rb");
    long size;

    CHECK(file != NULL);
    CHECK_EQ(fseek(file, 0, SEEK_END), 0);
    size = ftell(file);
    rewind(file);
    image = aligned_alloc(16, ((size_t)size + 15) / 16 * 16);
    CHECK_EQ(fread(image, 1, (size_t)size, file), size);
    CHECK_EQ(fclose(file), 0);
    CHECK_EQ(mur_open(&program, image, (size_t)size), MUR_OK);
    CHECK_EQ(mur_verify(&program, &verifier), MUR_OK);
}

/* the built-in model, by the road that users take */
static void compile(const muc_compile_options *options)
{
    muc_report *report;
    muc_model *model;

    CHECK_OK(ctx, muc_model_open(ctx, "models/rescue", NULL, &model));
    CHECK_OK(ctx, muc_compile(ctx, model, options, path, &report));
    muc_report_free(report);
    muc_model_close(model);
    free(image);
    read_image();
}

static int set_up(void **state)
{
    (void)state;
    ctx = muc_context_new(2);
    close(mkstemp(path));
    compile(&(muc_compile_options){ 0 });
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(image);
    muc_context_free(ctx);
    return unlink(path);
}

/* ---- machines that are broken ---- */

enum { LD = 0x01, EMBED = 0x08, NORM = 0x20, ROPE = 0x21, DIV = 0x25, GLU = 0x26 };

/* After the n-th instruction of an opcode since position `from`, the word of GB that field `word`
 * addresses is wrong by half; of LD from the caches to a W buffer the first block, of EMBED a word
 * of what it wrote. */
typedef struct fault {
    uint32_t opcode, word, n, from;
    uint32_t rows; /* of calls with fewer tokens nothing is wrong */
    uint32_t position;
    enum mur_stage stage;
    uint32_t layer;
} fault;

typedef struct machine {
    const fault *fault;
    board *board;
    uint32_t seen, tokens;
} machine;

static void spoil(void *arg, mur_sim *sim, enum mur_engine engine, const uint32_t *words)
{
    machine *b = arg;
    uint32_t opcode = words[0] & 255;
    uint32_t region = words[1] >> 23 & 7, buffer = words[1] >> 20 & 7;
    uint32_t *gb = (uint32_t *)(void *)sim->memory.gb;

    (void)engine;
    if (opcode == EMBED)
        b->tokens = words[2] >> 16 & 0xfff;
    if (opcode != b->fault->opcode || b->board->lm.pos < b->fault->from ||
        b->tokens < b->fault->rows ||
        (opcode == LD && (region != MUR_KV || (buffer != MUR_W0 && buffer != MUR_W1))) ||
        b->seen++ != b->fault->n)
        return;
    if (opcode == LD)
        sim->memory.buffer[buffer][(words[1] & 0xfffff) + 8] ^= 0x88;
    else if (opcode == EMBED)
        sim->memory.io[words[4]] ^= 1;
    else
        gb[words[b->fault->word] & 0x3ffff] ^= 1u << 22;
}

static void check_fault(const fault *f)
{
    mur_lm_difference first;
    machine broken = { .fault = f };
    board b;

    board_open(&b, &program, MUR_SIM_EAGER);
    broken.board = &b;
    b.sim.probe = spoil;
    b.sim.probe_arg = &broken;
    CHECK_EQ(mur_lm_self_test(&b.lm, &first), MUR_E_FAULT);
    CHECK_EQ(first.position, f->position);
    CHECK_EQ(first.stage, f->stage);
    CHECK_EQ(first.layer, f->layer);
    CHECK_EQ(b.lm.pos, 0);
    board_close(&b);
}

static void the_first_stage_that_differs_is_named(void **state)
{
    const uint32_t heads = program.meta->kv_heads, last = program.meta->layers - 1;
    const uint32_t rows = program.meta->rows;
    const fault faults[] = {
        /* opcode, word, n, from, rows, position, stage, layer */
        { EMBED, 4, 0, 0, 1, 0, MUR_STAGE_EMBEDDING, 0 },
        { NORM, 1, 0, 5, 1, 5, MUR_STAGE_EMBEDDING, 0 },
        { ROPE, 1, 0, 0, 1, 0, MUR_STAGE_QUERIES, 0 },
        { ROPE, 1, 1, 0, 1, 0, MUR_STAGE_KEYS, 0 },
        { ROPE, 1, 2 * heads * last, 3, 1, 3, MUR_STAGE_QUERIES, last },
        { DIV, 3, heads - 1, 0, 1, 0, MUR_STAGE_ATTENTION, 0 },
        { NORM, 1, 1, 0, 1, 0, MUR_STAGE_MIDDLE, 0 },
        { GLU, 1, 0, 0, 1, 0, MUR_STAGE_GATE, 0 },
        { GLU, 2, 0, 65, 1, 65, MUR_STAGE_UP, 0 },
        { NORM, 1, 2 * last + 2, 0, 1, 0, MUR_STAGE_RESIDUAL, last },
        /* what only a position behind a whole step of 64 reads */
        { LD, 1, 0, 64, 1, 64, MUR_STAGE_ATTENTION, 0 },
        /* what only calls of many tokens do is told by the logits after them */
        { DIV, 3, 0, 0, rows, 65, MUR_STAGE_LOGITS, 0 },
    };

    (void)state;
    CHECK(last > 0 && rows > 1);
    for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
        check_fault(&faults[i]);
}

static void a_machine_that_is_right_passes(void **state)
{
    static const enum mur_sim_policy policies[] = { MUR_SIM_EAGER, MUR_SIM_LAZY, MUR_SIM_RANDOM };
    mur_lm_difference first;
    board b;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        board_open(&b, &program, policies[i]);
        b.lm.budget = 1 + 99 * i;
        CHECK_EQ(mur_lm_self_test(&b.lm, &first), MUR_OK);
        CHECK_EQ(first.position, 66);
        CHECK_EQ(first.stage, MUR_STAGES);
        board_close(&b);
    }
}

/* An engine that fails is not a difference. */
static void spoil_weights(void *arg, mur_sim *sim, enum mur_engine engine, const uint32_t *words)
{
    const board *b = arg;

    if (engine == MUR_DMA && b->lm.pos == 2 && (words[1] >> 20 & 7) == MUR_W0)
        memset(sim->memory.buffer[MUR_W0] + (words[1] & 0xfffff), 0xff, words[3] & 0xffffff);
}

static void a_fault_of_an_engine_is_told_apart(void **state)
{
    mur_lm_difference first;
    board b;

    (void)state;
    board_open(&b, &program, MUR_SIM_EAGER);
    b.sim.probe = spoil_weights;
    b.sim.probe_arg = &b;
    CHECK_EQ(mur_lm_self_test(&b.lm, &first), MUR_E_FAULT);
    CHECK_EQ(first.position, 2);
    CHECK_EQ(first.stage, MUR_STAGES);
    board_close(&b);
}

/* Keys that are computed anew are not a stage of their own; without checksums the logits tell. */
static void programs_of_other_kinds_are_tested_too(void **state)
{
    const fault wrong = { DIV, 3, 0, 0, 1, 0, MUR_STAGE_ATTENTION, 0 };
    const fault late = { DIV, 3, 0, 0, 1, 0, MUR_STAGE_LOGITS, 0 };

    a_machine_that_is_right_passes(state);
    compile(&(muc_compile_options){ .attention = "recompute" });
    a_machine_that_is_right_passes(state);
    check_fault(&wrong);
    compile(&(muc_compile_options){ .strip = true });
    CHECK(program.section[MUR_SECTION_STAG] == NULL);
    a_machine_that_is_right_passes(state);
    check_fault(&late);
    compile(&(muc_compile_options){ 0 });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_machine_that_is_right_passes),
        cmocka_unit_test(the_first_stage_that_differs_is_named),
        cmocka_unit_test(a_fault_of_an_engine_is_told_apart),
        cmocka_unit_test(programs_of_other_kinds_are_tested_too),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}

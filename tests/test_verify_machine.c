/* test_verify_machine.c - a machine of someone's own is compared with the simulator, stage by
 * stage, whatever it does. */
#include "program_board.h"

#include <unistd.h>

#include "muc/muc.h"

/* what the machine under test does wrong from its n-th instruction on */
typedef enum conduct { RIGHT, REFUSES, WRONG, FAULTS, HANGS, STAYS_FULL } conduct;

typedef struct machine {
    conduct conduct;
    uint32_t n, taken;
    enum mur_sim_policy policy;
    mur_sim sim;
    mur_hal hal;
    void *buffer[MUR_BUFFERS];
    uint32_t stuck[MUR_ENGINES];
} machine;

static char path[] = "/tmp/muc_verify_machine_XXXXXX";
static muc_context *ctx;
static muc_model *program;

static bool bad(const machine *m, conduct which)
{
    return m->conduct == which && m->taken >= m->n;
}

static void spoil(void *arg, mur_sim *sim, enum mur_engine engine, const uint32_t *words)
{
    machine *m = arg;

    (void)engine;
    if (bad(m, WRONG) && (words[0] & 255) == 0x25) /* DIV */
        ((uint32_t *)(void *)sim->memory.gb)[(words[3] & 0x3ffff) + 1] ^= 1;
}

static bool start(void *arg, const muc_machine_memory *memory)
{
    machine *m = arg;
    mur_sim_memory own = { .isa = memory->isa,
                           .wgts = memory->wgts,
                           .parm = memory->parm,
                           .kv = memory->kv,
                           .io = memory->io,
                           .region_bytes = { memory->wgts_bytes, memory->parm_bytes,
                                             memory->kv_bytes, memory->io_bytes } };

    if (m->conduct == REFUSES)
        return false;
    memcpy(own.buffer_bytes, memory->buffer_bytes, sizeof(own.buffer_bytes));
    for (unsigned i = 0; i < MUR_BUFFERS; i++)
        m->buffer[i] = calloc(1, memory->buffer_bytes[i]);
    for (unsigned i = 0; i < MUR_GB; i++)
        own.buffer[i] = m->buffer[i];
    own.gb = m->buffer[MUR_GB];
    mur_sim_init(&m->sim, &own, m->policy, 5);
    m->sim.completed[MUR_DMA] = 0xfffffff0u; /* counts begin anywhere, and wrap */
    m->sim.probe = spoil;
    m->sim.probe_arg = m;
    m->hal = mur_sim_hal(&m->sim);
    return true;
}

static muc_machine_answer take(machine *m, mur_status (*put)(void *, const uint32_t *),
                               const uint32_t *words)
{
    mur_status status;

    if (bad(m, FAULTS))
        return MUC_MACHINE_FAULT;
    if (bad(m, STAYS_FULL))
        return MUC_MACHINE_BUSY;
    status = put(m->hal.arg, words);
    m->taken += status == MUR_OK;
    return status == MUR_OK ? MUC_MACHINE_TAKEN : MUC_MACHINE_BUSY;
}

static muc_machine_answer dma(void *arg, const uint32_t *words)
{
    machine *m = arg;

    return take(m, m->hal.dma, words);
}

static muc_machine_answer accelerator(void *arg, const uint32_t *words)
{
    machine *m = arg;

    return take(m, m->hal.accel, words);
}

static uint32_t completed(void *arg, muc_machine_engine engine)
{
    machine *m = arg;

    if (!bad(m, HANGS))
        m->stuck[engine] =
            m->hal.completed(m->hal.arg, engine == MUC_MACHINE_DMA ? MUR_DMA : MUR_ACC);
    return m->stuck[engine];
}

static muc_status verify(machine *m, const char *prompt, muc_report **out)
{
    const muc_machine under_test = { m, start, dma, accelerator, completed, 100000 };
    muc_status status;

    *out = NULL;
    status = muc_verify_machine(ctx, program, &under_test, prompt, out);
    for (unsigned i = 0; i < MUR_BUFFERS; i++)
        free(m->buffer[i]);
    return status;
}

static void a_machine_that_is_right_is_exact(void **state)
{
    static const enum mur_sim_policy policies[] = { MUR_SIM_EAGER, MUR_SIM_LAZY, MUR_SIM_RANDOM };
    double positions;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        machine m = { .conduct = RIGHT, .policy = policies[i] };
        muc_report *report;

        CHECK_OK(ctx, verify(&m, i == 1 ? "find fire in the lab" : NULL, &report));
        CHECK(muc_report_number(report, "positions", &positions));
        CHECK(i == 1 ? positions > 3 : positions == 66);
        CHECK(!muc_report_number(report, "position", &positions));
        muc_report_free(report);
    }
}

static void the_first_difference_is_told(void **state)
{
    machine m = { .conduct = WRONG, .policy = MUR_SIM_RANDOM, .n = 5000 };
    const char *stage, *words;
    double position, layer, column;
    muc_report *report;

    (void)state;
    CHECK_EQ(verify(&m, NULL, &report), MUC_MISMATCH);
    CHECK(muc_report_number(report, "position", &position));
    CHECK(muc_report_number(report, "layer", &layer));
    CHECK(muc_report_number(report, "column", &column));
    CHECK(muc_report_string(report, "stage", &stage));
    CHECK(muc_report_string(report, "first_divergence", &words));
    assert_string_equal(stage, "attention");
    CHECK(position >= 33); /* the first half of the tokens goes in one call */
    CHECK((unsigned)column % 64 == 1);
    CHECK(strstr(muc_error_message(ctx), words) != NULL);
    muc_error_clear(ctx);
    muc_report_free(report);
}

static void a_machine_that_stops_is_given_up(void **state)
{
    static const struct {
        conduct conduct;
        const char *words;
    } cases[] = {
        { FAULTS, "it reports a fault" },
        { HANGS, "it completes nothing more" },
        { STAYS_FULL, "its queue stays full" },
    };

    (void)state;
    for (unsigned i = 0; i < 9; i++) {
        machine m = { .conduct = cases[i % 3].conduct, .n = i / 3 * 777 };
        const char *words;
        muc_report *report;

        CHECK_EQ(verify(&m, NULL, &report), MUC_MISMATCH);
        CHECK(muc_report_string(report, "first_divergence", &words));
        CHECK(strstr(words, cases[i % 3].words) != NULL);
        CHECK(strstr(words, "the machine has stopped") != NULL);
        muc_error_clear(ctx);
        muc_report_free(report);
    }
}

static void what_cannot_be_run_is_refused(void **state)
{
    machine m = { .conduct = REFUSES };
    muc_model *checkpoint, *own = program;
    muc_report *report;

    (void)state;
    CHECK_EQ(verify(&m, NULL, &report), MUC_UNSUPPORTED);
    muc_error_clear(ctx);
    CHECK_OK(ctx, muc_model_open(ctx, "models/rescue", NULL, &checkpoint));
    program = checkpoint;
    CHECK_EQ(verify(&m, NULL, &report), MUC_USAGE);
    program = own;
    muc_error_clear(ctx);
    muc_model_close(checkpoint);
}

static int set_up(void **state)
{
    muc_report *report;
    muc_model *model;

    (void)state;
    ctx = muc_context_new(2);
    close(mkstemp(path));
    CHECK_OK(ctx, muc_model_open(ctx, "models/rescue", NULL, &model));
    CHECK_OK(ctx, muc_compile(ctx, model, &(muc_compile_options){ 0 }, path, &report));
    muc_report_free(report);
    muc_model_close(model);
    CHECK_OK(ctx, muc_model_open(ctx, path, NULL, &program));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    muc_model_close(program);
    muc_context_free(ctx);
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_machine_that_is_right_is_exact),
        cmocka_unit_test(the_first_difference_is_told),
        cmocka_unit_test(a_machine_that_stops_is_given_up),
        cmocka_unit_test(what_cannot_be_run_is_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}

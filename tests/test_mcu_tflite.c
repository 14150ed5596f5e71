/* Trained int8 networks as C for microcontrollers: the bits of TensorFlow Lite's arithmetic. */
#include "mcu_trained.h"

#include "targets/mcu/emit/emit_program.h"

static const char *const names[] = { "kws_ref_model", "pretrainedResnet_quant", "vww",
                                     "vww_96_int8" };
/* plain C and the kernels for SMLAD, which the host emulates */
static const char *const machines[] = { "host", "stm32f746" };

enum { NAMES = MUC_COUNT(names), ALL = NAMES * MUC_COUNT(machines) };

static void int8_networks_are_bit_exact(void **state)
{
    mcu_batch batch = mcu_batch_new();
    muc_network networks[ALL];

    (void)state;
    for (size_t i = 0; i < ALL; i++) {
        mcu_open_trained(&batch, names[i % NAMES], &networks[i]);
        mcu_batch_add(&batch, networks[i].graph, machines[i / NAMES]);
    }
    mcu_batch_build(&batch, "cc");
    for (size_t i = 0; i < ALL; i++) {
        const muc_mcu_program *program = &batch.networks[i].build->program;
        char path[96];

        print_message("%s, %s: arena %llu, at least %llu; constants %llu\n", names[i % NAMES],
                      machines[i / NAMES], (unsigned long long)program->plan.peak,
                      (unsigned long long)program->plan.least,
                      (unsigned long long)muc_mcu_constant_bytes(program));
        snprintf(path, sizeof(path), "%s.tflite", names[i % NAMES]);
        assert_string_equal(muc_mcu_origin(program), path);
        mcu_check_golden(&batch, i, names[i % NAMES]);
        batch.networks[i].graph = NULL; /* the network's */
    }
    mcu_batch_free(&batch);
    for (size_t i = 0; i < ALL; i++)
        muc_network_close(&networks[i]);
}

/* The golden outputs above are those of programs with patches; here is what they are for. */
static void patches_are_taken_only_where_they_lower_the_arena(void **state)
{
    static const char *const two[] = { "kws_ref_model", "vww" };
    muc_context *ctx = muc_context_new(1);

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(two); i++) {
        muc_mcu_build *with, *without;
        muc_network network;
        char path[96];

        snprintf(path, sizeof(path), "tflite/%s.tflite", two[i]);
        CHECK_OK(ctx, muc_network_open(ctx, shared_data(path), NULL, &network));
        CHECK_OK(ctx, muc_fold(ctx, network.graph));
        CHECK_OK(ctx, muc_canonicalise(ctx, network.graph));
        CHECK_OK(ctx, muc_fuse(ctx, network.graph));
        CHECK_OK(ctx, muc_lay_channels_last(ctx, network.graph));
        CHECK_OK(ctx,
                 muc_mcu_compile(ctx, network.graph, "n", "host", MUC_MCU_PATCHES_OFF, &without));
        CHECK_OK(ctx,
                 muc_mcu_compile(ctx, network.graph, "n", "host", MUC_MCU_PATCHES_LEAST, &with));
        assert_int_equal(without->program.loop.turns, 0);
        CHECK_EQ(with->program.loop.turns > 0, i == 1);
        if (i == 1) {
            assert_true(with->program.plan.peak < without->program.plan.peak);
            CHECK_EQ(with->program.loop.plain_peak, without->program.plan.peak);
        } else {
            CHECK_EQ(with->program.plan.peak, without->program.plan.peak);
        }
        muc_mcu_build_free(with);
        muc_mcu_build_free(without);
        muc_network_close(&network);
    }
    muc_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(int8_networks_are_bit_exact),
        cmocka_unit_test(patches_are_taken_only_where_they_lower_the_arena),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

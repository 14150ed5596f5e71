/* Trained int8 networks as C for microcontrollers: the bits of TensorFlow Lite's arithmetic. */
#include "mcu_trained.h"

#include "targets/mcu/emit.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(int8_networks_are_bit_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

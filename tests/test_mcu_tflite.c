/* Trained int8 networks as C for microcontrollers: the bits of TensorFlow Lite's arithmetic. */
#include "mcu_network.h"

#include "formats/network.h"
#include "formats/npy/npz.h"
#include "passes/canonical.h"
#include "passes/fold.h"
#include "targets/mcu/emit.h"

static const char *const names[] = { "kws_ref_model", "pretrainedResnet_quant", "vww",
                                     "vww_96_int8" };
/* plain C and the kernels for SMLAD, which the host emulates */
static const char *const machines[] = { "host", "stm32f746" };

enum { NAMES = MUC_COUNT(names), ALL = NAMES * MUC_COUNT(machines) };

static void check_golden(mcu_batch *batch, size_t i, const char *path)
{
    muc_tensor_view *arrays;
    muc_arena arena = { 0 };
    mcu_arena a = mcu_arena_new(batch, i);
    size_t count, runs, in_bytes, out_bytes;
    muc_file file;

    CHECK_OK(batch->ctx, muc_file_open(batch->ctx, path, &file));
    CHECK_OK(batch->ctx, muc_npz_read(batch->ctx, &arena, file.bytes, &arrays, &count));
    CHECK_EQ(count, 2);
    runs = (size_t)arrays[0].dims[0];
    in_bytes = (size_t)arrays[0].bytes / runs;
    out_bytes = (size_t)arrays[1].bytes / runs;
    for (size_t r = 0; r < runs; r++) {
        memcpy(a.in[0], arrays[0].data + r * in_bytes, in_bytes);
        a.run(a.arena);
        mcu_compare(i, path, MUC_I8, arrays[1].data + r * out_bytes, a.out[0], out_bytes, 0);
    }
    mcu_arena_free(&a);
    muc_arena_free(&arena);
    muc_file_close(&file);
}

static void int8_networks_are_bit_exact(void **state)
{
    mcu_batch batch = mcu_batch_new();
    muc_network networks[ALL];

    (void)state;
    for (size_t i = 0; i < ALL; i++) {
        char path[96];

        snprintf(path, sizeof(path), "tflite/%s.tflite", names[i % NAMES]);
        CHECK_OK(batch.ctx, muc_network_open(batch.ctx, shared_data(path), NULL, &networks[i]));
        CHECK_OK(batch.ctx, muc_fold(batch.ctx, networks[i].graph));
        CHECK_OK(batch.ctx, muc_canonicalise(batch.ctx, networks[i].graph));
        CHECK_OK(batch.ctx, muc_fuse(batch.ctx, networks[i].graph));
        CHECK_OK(batch.ctx, muc_lay_channels_last(batch.ctx, networks[i].graph));
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
        snprintf(path, sizeof(path), "tflite/golden/%s.npz", names[i % NAMES]);
        check_golden(&batch, i, shared_data(path));
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

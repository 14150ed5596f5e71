/* Networks in tiles: on a machine with eight cores and little memory beside them, what is computed
 * is the same bits, while the host's board checks every move. */
#include "mcu_graphs.h"
#include "mcu_small_machine.h"
#include "mcu_trained.h"
#include "operators.h"

/* of every set of kernels, some of which do not take every part of a layer that they take */
static const char *const cores[] = { "rv32imc",    "cortex-m4", "cortex-m7",
                                     "cortex-m55", "cortex-m3", "rv32imc_zve32x" };

static void trained_networks_in_tiles_are_bit_exact(void **state)
{
    static const struct {
        const char *name, *core;
    } trained[] = { { "kws_ref_model", "rv32imc" },
                    { "pretrainedResnet_quant", "rv32imc" },
                    { "kws_ref_model", "cortex-m4" },
                    { "kws_ref_model", "cortex-m7" } };
    mcu_batch batch = mcu_batch_new();
    muc_network networks[MUC_COUNT(trained)];

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(trained); i++) {
        char machine[64];

        write_machine(machine, trained[i].core, 49152);
        mcu_open_trained(&batch, trained[i].name, &networks[i]);
        mcu_batch_add(&batch, networks[i].graph, machine);
        unlink(machine);
    }
    mcu_batch_build(&batch, "cc");
    for (size_t i = 0; i < MUC_COUNT(trained); i++) {
        CHECK(batch.networks[i].build->program.tiles.count > 0);
        CHECK(batch.networks[i].build->program.tiles.peak <= 49152);
        mcu_check_golden(&batch, i, trained[i].name);
        batch.networks[i].graph = NULL; /* the network's */
    }
    mcu_batch_free(&batch);
    for (size_t i = 0; i < MUC_COUNT(trained); i++)
        muc_network_close(&networks[i]);
}

/* what the program says that its DMA moves in a run */
static uint64_t bytes_moved(const muc_mcu_program *program)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < program->step_count; i++)
        if (program->steps[i].tiles)
            bytes += program->steps[i].tiles->in_bytes + program->steps[i].tiles->out_bytes;
    return bytes;
}

static bool cuts_sums(const muc_mcu_program *program)
{
    for (uint32_t i = 0; i < program->step_count; i++)
        if (program->steps[i].tiles && program->steps[i].tiles->depth_tile &&
            program->steps[i].tiles->depth_tile < program->steps[i].tiles->depth)
            return true;
    return false;
}

static void operators_in_tiles_compute_what_ref_computes(void **state)
{
    mcu_batch batch = mcu_batch_new();
    size_t tiled = 0, sums = 0;
    const uint64_t *moved;

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(mcu_graphs); i++) {
        char text[2048], machine[64];

        write_machine(machine, cores[i % MUC_COUNT(cores)], 192);
        snprintf(text, sizeof(text), "graph test\n%s", mcu_graphs[i]);
        mcu_batch_add(&batch, graph_of(batch.ctx, text), machine);
        unlink(machine);
        tiled += batch.networks[i].build->program.tiles.count > 0;
        sums += cuts_sums(&batch.networks[i].build->program);
    }
    print_message("%zu of %zu work in tiles, %zu with partial sums\n", tiled, batch.count, sums);
    CHECK(tiled > batch.count / 2);
    CHECK(sums >= 5);
    mcu_batch_build(&batch, "cc -fsanitize=undefined -fno-sanitize-recover=undefined");
    *(const void **)&moved = dlsym(batch.library, "mur_hal_host_bytes");
    CHECK(moved != NULL);
    for (size_t i = 0; i < batch.count; i++) {
        uint64_t before = *moved;

        mcu_run(&batch, i, 1e-5);
        CHECK_EQ(*moved - before, bytes_moved(&batch.networks[i].build->program));
    }
    mcu_batch_free(&batch);
}

/* pointwise over one column, whose strides and pads say nothing of the next pixel */
static void columns_in_tiles_are_rows_of_neighbours(void **state)
{
    static const char *const graphs[] = {
        "tensor a = input i8 [1, 60, 1, 4] scale 0.1 zero 3\ntensor w = const i8 [3, 1, 1, 4] "
        "scale "
        "0.05 "
        "zero 0 values 1, -2, 3, 5, 1, 0, -1, 2, 3, 1, 0, 2\n"
        "node y i8 [1, 60, 1, 3] scale 0.1 zero 1 = conv a, w channels_last=1 strides=[1, "
        "2]\noutput "
        "y\n",
        "tensor a = input f32 [1, 60, 1, 4]\ntensor w = const f32 [3, 1, 1, 4] values 1, -2, 3, 5, "
        "1, "
        "0, "
        "-1, 2, 3, 1, 0, 2\n"
        "node y f32 [1, 60, 1, 3] = conv a, w channels_last=1 strides=[1, 3]\noutput y\n",
        "tensor a = input f32 [1, 60, 1, 4]\ntensor w = const f32 [3, 1, 1, 4] values 1, -2, 3, 5, "
        "1, "
        "0, "
        "-1, 2, 3, 1, 0, 2\ntensor c = const f32 [3] values 1, -1, 5\n"
        "node y f32 [1, 60, 1, 3] = conv a, w, c channels_last=1 strides=[1, 3] pads=[0, 1, 0, "
        "1]\noutput "
        "y\n",
    };
    mcu_batch batch = mcu_batch_new();
    char machine[64];

    (void)state;
    write_machine(machine, "cortex-m4", 1024);
    for (size_t i = 0; i < MUC_COUNT(graphs); i++) {
        char text[1024];

        snprintf(text, sizeof(text), "graph test\n%s", graphs[i]);
        mcu_batch_add(&batch, graph_of(batch.ctx, text), machine);
        CHECK(batch.networks[i].build->program.tiles.count > 0);
    }
    mcu_batch_build(&batch, "cc -fsanitize=undefined -fno-sanitize-recover=undefined");
    for (size_t i = 0; i < batch.count; i++)
        mcu_run(&batch, i, 1e-5);
    mcu_batch_free(&batch);
    unlink(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_in_tiles_compute_what_ref_computes),
        cmocka_unit_test(columns_in_tiles_are_rows_of_neighbours),
        cmocka_unit_test(trained_networks_in_tiles_are_bit_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Deeploy's integer networks as C code, by the kernels of every instruction set: what each makes of
 * its recorded inputs is what is recorded, to the last bit; no sum of 32 bits lies in memory. */
#include "mcu_network.h"

#include "deeploy_folder.h"
#include "targets/target.h"

static const struct {
    const char *name, *machine;
    uint64_t
        most_bytes; /* of the arena: what it took before sums were requantized in kernels / 2 */
} cases[] = {
    { "Models/MLPerf/KeywordSpotting", "stm32h743", 16000 },
    { "Models/MLPerf/ImageClassification", "stm32h743", 73728 },
    { "Models/MLPerf/ImageClassification", "mps3-an547", 73728 },
    { "Models/CNN_Linear1", "stm32h743", 33792 },
    { "Models/CNN_Linear1", "rv32", 33792 },
    { "Models/miniMobileNet", "rv32", 2816 },
    { "Models/miniMobileNet", "mps3-an547", 2816 },
    { "Models/miniMobileNet", "host", 2816 },
    { "Models/CCT/Int/ICCT", "stm32h743", 86016 },
    { "Kernels/Integer/Conv/PW_2D_RQ/Unsigned_RQ", "stm32h743", UINT64_MAX },
    { "Kernels/Integer/Conv/Regular_3x3_RQ", "host", UINT64_MAX },
    { "Kernels/Integer/Conv/DW_3x3_RQ", "stm32h743", UINT64_MAX },
    { "Kernels/Integer/GEMM/Batch_RQ", "stm32h743", UINT64_MAX },
    { "Kernels/Integer/GEMM/TransB_RQ", "host", UINT64_MAX },
    { "Kernels/Integer/Hardswish/Regular_RQ", "host", UINT64_MAX },
    { "Kernels/Integer/Add/Regular_RQ", "host", 73728 },
    { "Kernels/Integer/Attention", "host", UINT64_MAX },
};

static void expect_no_sums(const mcu_network *network, const char *name)
{
    const muc_graph *graph = network->graph;

    for (uint32_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].op == MUC_OP_CONV_INTEGER || graph->nodes[i].op == MUC_OP_REQUANT_SHIFT)
            CHECK(strstr(name, "Kernels/"));
}

/* the recorded inputs through the code, and the recorded outputs */
static void run_recorded(mcu_batch *batch, size_t n, folder *f)
{
    const muc_mcu_program *program = &batch->networks[n].build->program;
    mcu_arena a = mcu_arena_new(batch, n);

    for (uint32_t i = 0; i < program->inputs.count; i++) {
        const muc_mcu_value *value = &program->values[program->inputs.values[i]];
        size_t bytes;
        void *data = folder_convert(&f->inputs[i], value->tensor->dtype, &bytes);

        CHECK_EQ(bytes, value->bytes);
        memcpy(a.in[i], data, bytes);
        free(data);
    }
    a.run(a.arena);
    CHECK_EQ(program->outputs.count, f->output_count);
    for (uint32_t i = 0; i < program->outputs.count; i++) {
        const muc_mcu_value *value = &program->values[program->outputs.values[i]];
        uint32_t size = muc_dtype_get(value->tensor->dtype)->block_bytes;

        CHECK_EQ(value->bytes, f->outputs[i].elements * size);
        for (uint64_t k = 0; k < f->outputs[i].elements; k++) {
            int64_t found =
                muc_dtype_integer(value->tensor->dtype, (const uint8_t *)a.out[i] + k * size);

            if ((double)found != folder_number(&f->outputs[i], k))
                fail_msg("%s: output %u, element %d: %d", f->path, i, (int)k, (int)found);
        }
    }
    mcu_arena_free(&a);
}

static void code_gives_what_is_recorded(void **state)
{
    enum { CASES = MUC_COUNT(cases) };
    mcu_batch batch = mcu_batch_new();
    folder *folders[CASES];

    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        char path[512];

        snprintf(path, sizeof(path), "%s/%s", shared_data("deeploy"), cases[i].name);
        folders[i] = malloc(sizeof(*folders[i]));
        folder_open(batch.ctx, path, true, folders[i]);
        CHECK_OK(batch.ctx, muc_prepare_mcu(batch.ctx, folders[i]->network.graph));
        mcu_batch_add(&batch, folders[i]->network.graph, cases[i].machine);
        expect_no_sums(&batch.networks[i], cases[i].name);
        if (batch.networks[i].build->program.plan.peak > cases[i].most_bytes)
            fail_msg("%s takes %d bytes", cases[i].name,
                     (int)batch.networks[i].build->program.plan.peak);
    }
    mcu_batch_build(&batch, "cc");
    for (size_t i = 0; i < CASES; i++) {
        run_recorded(&batch, i, folders[i]);
        batch.networks[i].graph = NULL; /* the folder's */
    }
    mcu_batch_free(&batch);
    for (size_t i = 0; i < CASES; i++) {
        folder_close(folders[i]);
        free(folders[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_gives_what_is_recorded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Deeploy's networks in tiles on eight cores: what is computed is what ref computes, integers to
 * the last bit, while the host's board checks every move. */
#include "mcu_network.h"

#include "deeploy_folder.h"
#include "targets/target.h"
#include "targets/mcu/tiles/tiles.h"

static const char *const names[] = { "miniMobileNet", "MLPerf/KeywordSpotting", "TinyViT/Demo",
                                     "MLPerf/ImageClassification", "CCT/FP32/CCT_1_16_16_32" };

/* multiplications of the steps that work in tiles, of a hundred */
static unsigned percent_in_tiles(const muc_mcu_program *program)
{
    uint64_t all = 0, tiled = 0;

    for (uint32_t i = 0; i < program->step_count; i++) {
        all += program->steps[i].macs;
        tiled += program->steps[i].tiles ? program->steps[i].macs : 0;
    }
    return (unsigned)(tiled * 100 / all);
}

/* no operand has more bytes than what it lies in */
static void check_operands(const muc_mcu_program *program)
{
    for (uint32_t i = 0; i < program->step_count; i++) {
        const muc_mcu_tiled *tiled = program->steps[i].tiled;

        for (uint32_t k = 0; tiled && k < tiled->layer.operand_count; k++) {
            const muc_mcu_tile_operand *operand = &tiled->layer.operands[k];

            if (!operand->is_weights)
                CHECK((uint64_t)operand->rows * operand->pixels * operand->pixel_bytes <=
                      program->values[tiled->values[k]].bytes);
        }
    }
}

static void networks_in_tiles_compute_what_ref_computes(void **state)
{
    enum { NAMES = MUC_COUNT(names) };
    mcu_batch batch = mcu_batch_new();
    folder *folders[NAMES];

    (void)state;
    for (size_t i = 0; i < NAMES; i++) {
        char path[512];

        snprintf(path, sizeof(path), "%s/Models/%s", shared_data("deeploy"), names[i]);
        folders[i] = malloc(sizeof(*folders[i]));
        folder_open(batch.ctx, path, true, folders[i]);
        CHECK_OK(batch.ctx, muc_prepare_mcu(batch.ctx, folders[i]->network.graph));
        mcu_batch_add(&batch, folders[i]->network.graph, "siracusa");
        check_operands(&batch.networks[i].build->program);
        CHECK(percent_in_tiles(&batch.networks[i].build->program) >= 99);
    }
    mcu_batch_build(&batch, "cc");
    for (size_t i = 0; i < NAMES; i++) {
        mcu_run(&batch, i, 1e-4);
        batch.networks[i].graph = NULL; /* the folder's */
    }
    mcu_batch_free(&batch);
    for (size_t i = 0; i < NAMES; i++) {
        folder_close(folders[i]);
        free(folders[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_in_tiles_compute_what_ref_computes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Descriptions of microcontrollers, and folders that appear whole. */
#include "check.h"

#include <sys/stat.h>

#include "base/file.h"
#include "base/output_folder.h"
#include "targets/mcu/machines/mcu_machine.h"

static const char *const names[] = {
#define MUC_MCU_MACHINE(id, name, meaning) name,
#include "targets/mcu/machines/mcu_machines.def"
#undef MUC_MCU_MACHINE
};

static void every_built_in_machine_is_described_in_full(void **state)
{
    muc_context *ctx = muc_context_new(1);
    muc_arena arena = { 0 };
    muc_mcu_machine machine;

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(names); i++)
        CHECK_OK(ctx, muc_mcu_find_machine(ctx, &arena, names[i], &machine));
    CHECK_OK(ctx, muc_mcu_find_machine(ctx, &arena, "stm32f746", &machine));
    assert_string_equal(muc_mcu_core_get(machine.core)->name, "cortex-m7");
    CHECK_EQ(muc_mcu_core_get(machine.core)->isa, MUC_MCU_ISA_DSP);
    CHECK_EQ(muc_mcu_memory_for(&machine, MUC_MCU_ARENA)->bytes, 320 * 1024);
    CHECK(!muc_mcu_memory_for(&machine, MUC_MCU_TILES));
    CHECK_OK(ctx, muc_mcu_find_machine(ctx, &arena, "mps2-an547", &machine));
    assert_string_equal(muc_mcu_core_get(machine.core)->name, "cortex-m55");
    CHECK_OK(ctx, muc_mcu_find_machine(ctx, &arena, "siracusa", &machine));
    CHECK_EQ(machine.cores, 8);
    CHECK_EQ(muc_mcu_memory_for(&machine, MUC_MCU_TILES)->bytes, 256 * 1024);
    CHECK_FAILS(ctx, MUC_USAGE, "'stm32'; expected host, apollo4",
                muc_mcu_find_machine(ctx, &arena, "stm32", &machine));
    CHECK_FAILS(ctx, MUC_USAGE, "there is no 'mps2-an54'",
                muc_mcu_find_machine(ctx, &arena, "mps2-an54", &machine));
    muc_arena_free(&arena);
    muc_context_free(ctx);
}

static void check_machine(const char *text, muc_status status, const char *message)
{
    const muc_bytes bytes = { (const uint8_t *)text, strlen(text), "m.ini" };
    muc_context *ctx = muc_context_new(1);
    muc_arena arena = { 0 };
    muc_mcu_machine machine;

    if (status == MUC_OK)
        CHECK_OK(ctx, muc_mcu_read_machine(ctx, &arena, bytes, &machine));
    else
        CHECK_FAILS(ctx, status, message, muc_mcu_read_machine(ctx, &arena, bytes, &machine));
    muc_arena_free(&arena);
    muc_context_free(ctx);
}

static void descriptions_are_read_strictly(void **state)
{
#define MACHINE "[machine]\nname = x\ncore = cortex-m4\nclock_mhz = 1\n"
#define MEMORY(holds) "[memory]\nname = m\nbytes = 0\ncycles_per_kb = 1\nholds = " holds "\n"
    (void)state;
    check_machine(MACHINE MEMORY("weights arena state"), MUC_OK, "");
    check_machine(MACHINE MEMORY("weights arena state")
                      MEMORY("tiles") "[dma]\nsetup_cycles = 0\ncycles_per_kb = 1",
                  MUC_OK, "");
    check_machine(MACHINE "milliwatts = 5\npower_source = a book\n" MEMORY(
                      "weights arena state") "line_bytes = 32\n"
                                             "line_cycles = 7\n",
                  MUC_OK, "");
    check_machine(
        MACHINE "flash = a\nflash = b\n" MEMORY(
            "weights arena state") "origin = 0x20000000\n" MEMORY("code") "origin = 0xfffffffe\n",
        MUC_OK, "");
    check_machine(MACHINE MEMORY("weights arena state") "origin = 0xffffffff\n", MUC_MALFORMED,
                  "'origin' is 4294967295, expected 0..4294967294");
    check_machine(MACHINE MEMORY("weights arena state") "origin = 0x\n", MUC_MALFORMED,
                  "line 10, column 11: not a digit");
    check_machine(MACHINE MEMORY("weights arena state") MEMORY("code") MEMORY("code"),
                  MUC_MALFORMED, "2 memories hold code");
    check_machine(MACHINE MEMORY("weights arena state") "line_bytes = 32\n", MUC_MALFORMED,
                  "memory 'm' has one of line_bytes and line_cycles");
    check_machine("name = x\n", MUC_MALFORMED, "line 1, column 1: there is no key 'name'");
    check_machine("[machine]\ncore = z80\n", MUC_MALFORMED,
                  "line 2, column 8: there is no core 'z80'; expected");
    check_machine(MACHINE "cores = 65\n", MUC_MALFORMED, "'cores' is 65, expected 1..64");
    check_machine(MACHINE "name = y\n", MUC_MALFORMED, "line 5, column 1: this key is there twice");
    check_machine("[machine]\nname = x\n[memory]\n", MUC_MALFORMED, "the key 'core' of the");
    check_machine(MACHINE MEMORY("weights arena states"), MUC_MALFORMED, "line 9, column 23");
    check_machine(MACHINE MEMORY("weights arena"), MUC_MALFORMED, "0 memories hold state");
    check_machine(MACHINE MEMORY("weights arena state") MEMORY("arena"), MUC_MALFORMED,
                  "2 memories hold arena");
    check_machine(MACHINE MEMORY("weights arena state tiles"), MUC_MALFORMED,
                  "1 memories hold tiles, expected one with [dma]");
    check_machine(MACHINE "[flash]\n", MUC_MALFORMED, "line 5, column 1: expected one [machine]");
    check_machine(MACHINE MACHINE, MUC_MALFORMED, "expected one [machine]");
    check_machine("[machine\n", MUC_MALFORMED, "expected [section]");
    check_machine("", MUC_MALFORMED, "[machine] is missing");
}

/* ---- folders ---- */

typedef struct place {
    muc_context *ctx;
    char root[64], path[80], file[96];
} place;

static place make_place(void)
{
    place p = { .ctx = muc_context_new(1), .root = "/tmp/muc_test_XXXXXX" };

    CHECK(mkdtemp(p.root) != NULL);
    snprintf(p.path, sizeof(p.path), "%s/out", p.root);
    snprintf(p.file, sizeof(p.file), "%s/a/b", p.path);
    return p;
}

static muc_status write_folder(place *p, const char *name, const char *text)
{
    muc_folder *folder;

    MUC_TRY(muc_folder_begin(p->ctx, p->path, &folder));
    CHECK_OK(p->ctx, muc_folder_write(folder, name, text, strlen(text)));
    CHECK(!muc_path_exists(p->file) || strcmp(text, "new") == 0);
    return muc_folder_commit(folder, NULL, NULL);
}

static void clean_up(place *p)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r %s", p->root);
    CHECK_EQ(system(command), 0);
    muc_context_free(p->ctx);
}

static void a_folder_appears_whole_and_replaces_its_own_kind(void **state)
{
    place p = make_place();
    muc_folder *folder;
    muc_file file;

    (void)state;
    CHECK_OK(p.ctx, muc_folder_begin(p.ctx, p.path, &folder));
    CHECK_OK(p.ctx, muc_folder_write(folder, "a/b", "x", 1));
    muc_folder_discard(folder);
    CHECK(!muc_path_exists(p.path));
    CHECK_OK(p.ctx, write_folder(&p, "a/b", "old"));
    CHECK_OK(p.ctx, write_folder(&p, "a/b", "new"));
    CHECK_OK(p.ctx, muc_file_open(p.ctx, p.file, &file));
    assert_memory_equal(file.bytes.data, "new", 3);
    muc_file_close(&file);
    CHECK_OK(p.ctx, write_folder(&p, "c", "new"));
    CHECK(!muc_path_exists(p.file));
    clean_up(&p);
}

static void a_folder_with_foreign_files_is_left_alone(void **state)
{
    place p = make_place();

    (void)state;
    CHECK_OK(p.ctx, write_folder(&p, "a/b", "old"));
    snprintf(p.file, sizeof(p.file), "%s/mine", p.path);
    CHECK_OK(p.ctx, muc_file_write(p.ctx, p.file, "x", 1));
    CHECK_FAILS(p.ctx, MUC_USAGE, "no earlier run wrote it", write_folder(&p, "c", "new"));
    CHECK(muc_path_exists(p.file));
    clean_up(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_built_in_machine_is_described_in_full),
        cmocka_unit_test(descriptions_are_read_strictly),
        cmocka_unit_test(a_folder_appears_whole_and_replaces_its_own_kind),
        cmocka_unit_test(a_folder_with_foreign_files_is_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

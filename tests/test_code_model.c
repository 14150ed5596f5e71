/* test_code_model.c - a checkpoint becomes a folder of C, which is opened again and speaks. */
#include "check.h"

#include <stdbool.h>
#include <sys/stat.h>

#include "muc/muc.h"

typedef struct scene {
    muc_context *ctx;
    char root[64], folder[96];
} scene;

static void open_scene(scene *s)
{
    memset(s, 0, sizeof(*s));
    s->ctx = muc_context_new(1);
    strcpy(s->root, "/tmp/muc_code_XXXXXX");
    CHECK(mkdtemp(s->root) != NULL);
    snprintf(s->folder, sizeof(s->folder), "%s/out", s->root);
}

static void close_scene(scene *s)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r %s", s->root);
    CHECK_EQ(system(command), 0);
    muc_context_free(s->ctx);
}

static muc_status compile(scene *s, const char *path, const char *machine, const char *codec)
{
    const muc_compile_options options = {
        .target = "mcu",
        .machine = machine,
        .weights = { .codec = codec },
    };
    const muc_model_options how = { .context = 96 };
    muc_report *report = NULL;
    muc_model *model;
    muc_status status;

    CHECK_OK(s->ctx, muc_model_open(s->ctx, path, &how, &model));
    status = muc_compile(s->ctx, model, &options, s->folder, &report);
    muc_report_free(report);
    muc_model_close(model);
    return status;
}

/* the text after a prompt */
static void speak(scene *s, const char *path, const char *prompt, char *out, size_t size)
{
    const muc_run_options options = { .prompt = prompt, .most_tokens = 40 };
    muc_report *report;
    const char *text;
    muc_model *model;

    CHECK_OK(s->ctx, muc_model_open(s->ctx, path, NULL, &model));
    CHECK_OK(s->ctx, muc_run(s->ctx, model, &options, &report));
    CHECK(muc_report_string(report, "text", &text));
    snprintf(out, size, "%s", text);
    muc_report_free(report);
    muc_model_close(model);
}

static void the_folder_says_what_the_checkpoint_says(void **state)
{
    static const char *const prompts[] = { "search the north corridor for survivors and come back",
                                           "follow the wall on your right and stop at the door" };
    char expected[512], found[512];
    scene s;

    (void)state;
    open_scene(&s);
    CHECK(!muc_is_language_folder("models/rescue"));
    CHECK_OK(s.ctx, compile(&s, "models/rescue", "mps2-an500", "int8"));
    CHECK(muc_is_language_folder(s.folder));
    for (size_t i = 0; i < 2; i++) {
        speak(&s, "models/rescue", prompts[i], expected, sizeof(expected));
        speak(&s, s.folder, prompts[i], found, sizeof(found));
        assert_string_equal(found, expected);
    }
    close_scene(&s);
}

static void the_example_says_it_too(void **state)
{
    char command[512], line[512] = "";
    FILE *pipe;
    scene s;

    (void)state;
    open_scene(&s);
    CHECK_OK(s.ctx, compile(&s, "models/rescue", "host", NULL));
    snprintf(command, sizeof(command),
             "cd %s && cc -std=c99 -O1 -ffp-contract=off -Wall -Wextra -Wconversion -Werror -I. "
             "-Iinclude *.c src/*.c kernels/ref/*.c -o ../example && ../example 'search the north "
             "corridor for survivors and come back' 40",
             s.folder);
    pipe = popen(command, "r");
    CHECK(pipe && fgets(line, sizeof(line), pipe));
    CHECK_EQ(pclose(pipe), 0);
    assert_string_equal(line, "goto north corridor; scan survivor; return\n");
    close_scene(&s);
}

static void the_code_compiles_without_warnings_for_every_core(void **state)
{
    /* the first three also compile the megabytes of weights */
    static const char *const compilers[] = {
        "gcc -std=c11 -Wpedantic",
        "clang",
        "arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16",
        "arm-none-eabi-gcc -mcpu=cortex-m0 -mthumb",
        "arm-none-eabi-gcc -mcpu=cortex-m55 -mthumb -mfloat-abi=hard",
        "riscv64-unknown-elf-gcc -march=rv32imc -mabi=ilp32",
        "clang --target=riscv32-none-elf -march=rv32imc",
    };
    char command[1024], name[64];
    scene s;

    (void)state;
    open_scene(&s);
    CHECK_OK(s.ctx, compile(&s, "models/rescue", "nrf52840", NULL));
    for (size_t i = 0; i < sizeof(compilers) / sizeof(*compilers); i++) {
        sscanf(compilers[i], "%63s", name);
        snprintf(command, sizeof(command), "command -v %s >/dev/null", name);
        if (system(command) != 0) {
            print_message("skipped: %s is not at hand\n", name);
            continue;
        }
        snprintf(command, sizeof(command),
                 "for f in %s/%s.c %s/src/*.c %s/kernels/*/*.c; do %s -O0 -ffreestanding "
                 "-ffp-contract=off -Wall -Wextra -Wconversion -Werror -isystem "
                 "runtime/freestanding -I%s -I%s/include -c $f -o %s/object.o || exit 1; done",
                 s.folder, i < 3 ? "rescue*" : "rescue_lm", s.folder, s.folder, compilers[i],
                 s.folder, s.folder, s.root);
        if (system(command) != 0)
            fail_msg("%s", compilers[i]);
    }
    close_scene(&s);
}

static void what_cannot_be_is_refused_by_name(void **state)
{
    scene s;

    (void)state;
    open_scene(&s);
    CHECK_FAILS(s.ctx, MUC_USAGE, "no codec 'bd4'", compile(&s, "models/rescue", NULL, "bd4"));
    CHECK_FAILS(s.ctx, MUC_USAGE, "stm32f746", compile(&s, "models/rescue", "z80", NULL));
    CHECK_EQ(access(s.folder, F_OK), -1);
    close_scene(&s);
}

/* the description is a file that people may edit */
static void a_damaged_description_is_refused(void **state)
{
    static const char *const damages[] = {
        "s/\"vocabulary\": [0-9]*/\"vocabulary\": 0/",
        "s/\"context\": [0-9]*/\"context\": -3/",
        "s/\"tokenizer_bytes\": [0-9]*/\"tokenizer_bytes\": 5/",
        "s/\"arena_bytes\": [0-9]*/\"arena_bytes\": \"many\"/",
        "s/\"ends\": ./\"ends\": [1, 2, 3, 4, /",
    };
    char command[512];
    scene s;

    (void)state;
    open_scene(&s);
    CHECK_OK(s.ctx, compile(&s, "models/rescue", NULL, NULL));
    snprintf(command, sizeof(command), "cp %s/rescue.json %s/whole", s.folder, s.root);
    CHECK_EQ(system(command), 0);
    for (size_t i = 0; i < sizeof(damages) / sizeof(*damages); i++) {
        muc_model *model;

        snprintf(command, sizeof(command), "sed '%s' %s/whole >%s/rescue.json", damages[i], s.root,
                 s.folder);
        CHECK_EQ(system(command), 0);
        CHECK_FAILS(s.ctx, MUC_MALFORMED, "damaged", muc_model_open(s.ctx, s.folder, NULL, &model));
    }
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_folder_says_what_the_checkpoint_says),
        cmocka_unit_test(the_example_says_it_too),
        cmocka_unit_test(the_code_compiles_without_warnings_for_every_core),
        cmocka_unit_test(what_cannot_be_is_refused_by_name),
        cmocka_unit_test(a_damaged_description_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

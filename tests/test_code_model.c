/* test_code_model.c - a checkpoint becomes a folder of C, which is opened again and speaks. */
#include "chance.h"
#include "check.h"

#include <stdbool.h>
#include <sys/stat.h>

#include "muc/muc.h"

typedef struct scene {
    muc_context *ctx;
    char root[64], folder[96], tiny[96];
} scene;

/* a llama2.c file of a few thousand random weights, for the built-in model's tokenizer */
static void write_tiny(const char *path)
{
    enum { DIM = 12, FFN = 20, LAYERS = 1, HEADS = 2, VOCABULARY = 512, CONTEXT = 96 };
    const int32_t header[] = { DIM, FFN, LAYERS, HEADS, HEADS, VOCABULARY, CONTEXT };
    size_t count = VOCABULARY * DIM + LAYERS * (2 * DIM + 4 * DIM * DIM + 3 * DIM * FFN) + DIM +
                   CONTEXT * (DIM / HEADS);
    FILE *file = fopen(path, "wb");

    CHECK(file != NULL);
    fwrite(header, sizeof(header), 1, file);
    for (size_t i = 0; i < count; i++) {
        float value = (float)random_gaussian();

        fwrite(&value, sizeof(value), 1, file);
    }
    CHECK_EQ(fclose(file), 0);
}

static void open_scene(scene *s)
{
    memset(s, 0, sizeof(*s));
    s->ctx = muc_context_new(1);
    strcpy(s->root, "/tmp/muc_code_XXXXXX");
    CHECK(mkdtemp(s->root) != NULL);
    snprintf(s->folder, sizeof(s->folder), "%s/out", s->root);
    snprintf(s->tiny, sizeof(s->tiny), "%s/tiny.bin", s->root);
    write_tiny(s->tiny);
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
    const muc_model_options how = {
        .tokenizer = path == s->tiny ? "models/rescue/tokenizer.model" : NULL,
        .context = 96,
    };
    muc_report *report = NULL;
    muc_model *model;
    muc_status status;

    CHECK_OK(s->ctx, muc_model_open(s->ctx, path, &how, &model));
    status = muc_compile(s->ctx, model, &options, s->folder, &report);
    muc_report_free(report);
    muc_model_close(model);
    return status;
}

typedef struct speech {
    char text[4096];
    size_t size;
} speech;

static bool hear(void *arg, const char *text, size_t size)
{
    speech *s = arg;

    CHECK(s->size + size < sizeof(s->text));
    memcpy(s->text + s->size, text, size);
    s->size += size;
    return true;
}

/* a prompt and what follows it, byte by byte */
static speech speak(scene *s, const char *path, const char *prompt)
{
    speech heard = { .size = 0 };
    const muc_run_options options = {
        .prompt = prompt,
        .most_tokens = 40,
        .text = hear,
        .arg = &heard,
    };
    muc_report *report;
    muc_model *model;

    CHECK_OK(s->ctx, muc_model_open(s->ctx, path, NULL, &model));
    CHECK_OK(s->ctx, muc_run(s->ctx, model, &options, &report));
    muc_report_free(report);
    muc_model_close(model);
    return heard;
}

static void check_same(const speech *found, const speech *expected)
{
    CHECK_EQ(found->size, expected->size);
    assert_memory_equal(found->text, expected->text, expected->size);
}

static void the_folder_says_what_the_checkpoint_says(void **state)
{
    static const char *const prompts[] = { "search the north corridor for survivors and come back",
                                           "follow the wall on your right and stop at the door" };
    speech expected, found;
    scene s;

    (void)state;
    open_scene(&s);
    CHECK(!muc_is_language_folder("models/rescue"));
    CHECK_OK(s.ctx, compile(&s, "models/rescue", "mps2-an500", "int8"));
    CHECK(muc_is_language_folder(s.folder));
    for (size_t i = 0; i < 2; i++) {
        expected = speak(&s, "models/rescue", prompts[i]);
        found = speak(&s, s.folder, prompts[i]);
        check_same(&found, &expected);
    }
    close_scene(&s);
}

static void the_example_says_it_too(void **state)
{
    speech expected, found = { .size = 0 };
    char command[512];
    FILE *pipe;
    scene s;

    (void)state;
    open_scene(&s);
    CHECK_OK(s.ctx, compile(&s, s.tiny, "host", NULL));
    snprintf(command, sizeof(command),
             "cd %s && cc -std=c99 -O1 -ffp-contract=off -Wall -Wextra -Wconversion -Werror -I. "
             "-Iinclude *.c src/*.c kernels/*/*.c -o ../example && ../example 'turn left' 40",
             s.folder);
    pipe = popen(command, "r");
    CHECK(pipe != NULL);
    found.size = fread(found.text, 1, sizeof(found.text), pipe);
    CHECK_EQ(pclose(pipe), 0);
    expected = speak(&s, s.folder, "turn left");
    hear(&expected, "\n", 1);
    check_same(&found, &expected);
    close_scene(&s);
}

static void the_code_compiles_without_warnings_for_every_core(void **state)
{
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
    CHECK_OK(s.ctx, compile(&s, s.tiny, "nrf52840", NULL));
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
                 s.folder, "tiny*", s.folder, s.folder, compilers[i], s.folder, s.folder, s.root);
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
    CHECK_FAILS(s.ctx, MUC_USAGE, "no 'cb2'; expected int8 or bd4",
                compile(&s, s.tiny, NULL, "cb2"));
    CHECK_FAILS(s.ctx, MUC_USAGE, "esp32c3", compile(&s, s.tiny, "z80", NULL));
    CHECK_EQ(access(s.folder, F_OK), -1);
    close_scene(&s);
}

/* MUC_MISMATCH if a bit of a logit is not the reference's */
static void blocks_are_verified_as_blocks(void **state)
{
    static const muc_model_options how = { .tokenizer = "models/rescue/tokenizer.model",
                                           .context = 96 };
    muc_report *report = NULL;
    muc_model *model;
    scene s;

    (void)state;
    open_scene(&s);
    CHECK_OK(s.ctx, compile(&s, s.tiny, "mps3-an547", "bd4"));
    CHECK_OK(s.ctx, muc_model_open(s.ctx, s.tiny, &how, &model));
    CHECK_OK(s.ctx, muc_verify_language_folder(s.ctx, s.folder, model, "turn left", &report));
    muc_report_free(report);
    muc_model_close(model);
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
    CHECK_OK(s.ctx, compile(&s, s.tiny, NULL, NULL));
    snprintf(command, sizeof(command), "cp %s/tiny.json %s/whole", s.folder, s.root);
    CHECK_EQ(system(command), 0);
    for (size_t i = 0; i < sizeof(damages) / sizeof(*damages); i++) {
        muc_model *model;

        snprintf(command, sizeof(command), "sed '%s' %s/whole >%s/tiny.json", damages[i], s.root,
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
        cmocka_unit_test(blocks_are_verified_as_blocks),
        cmocka_unit_test(a_damaged_description_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

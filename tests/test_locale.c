/* test_locale.c - a program that has set a locale with a decimal comma, and with other letters,
 * gets the same bytes in every kind of file. */
#include <ctype.h>
#include <locale.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/text.h"
#include "check.h"
#include "muc/muc.h"

static muc_context *ctx;
static char base[] = "/tmp/muc_test_XXXXXX";
static char home[256];

/* no locale of the machine's: 1,5 is its number, and of the letters it knows 'a' alone */
static const char definition[] = "LC_CTYPE\nupper <A>\nlower <a>\nEND LC_CTYPE\n"
                                 "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\n"
                                 "grouping 3;3\nEND LC_NUMERIC\n";

static int setup(void **state)
{
    char command[512];

    (void)state;
    ctx = muc_context_new(3);
    memset(base + sizeof(base) - 7, 'X', 6);
    if (!ctx || !mkdtemp(base) || !getcwd(home, sizeof(home)) || chdir(base) != 0)
        return -1;
    if (muc_file_write(ctx, "definition", definition, strlen(definition)) != MUC_OK)
        return -1;
    snprintf(command, sizeof(command), "localedef -c -i ./definition ./comma >/dev/null 2>&1");
    if (system(command) == -1)
        return -1;
    snprintf(command, sizeof(command), "head -n 40 %s/models/rescue/test.txt >cases.txt", home);
    if (system(command) != 0)
        return -1;
    return setenv("LOCPATH", base, 1);
}

static int teardown(void **state)
{
    char command[64];

    (void)state;
    muc_context_free(ctx);
    snprintf(command, sizeof(command), "rm -r %s", base);
    return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

static const char *at_home(const char *name)
{
    static char path[512];

    snprintf(path, sizeof(path), "%s/%s", home, name);
    return path;
}

static void put(const char *name, const char *kind, const char *text)
{
    char path[64];

    snprintf(path, sizeof(path), "%s%s", name, kind);
    CHECK_OK(ctx, muc_file_write(ctx, path, text, strlen(text)));
}

/* a report in its four forms */
static void put_report(const char *name, muc_report *report)
{
    char *text, *json, *csv, *html;

    CHECK_OK(ctx, muc_report_as_text(ctx, report, &text));
    CHECK_OK(ctx, muc_report_as_json(ctx, report, &json));
    CHECK_OK(ctx, muc_report_as_html(ctx, report, name, &html));
    put(name, ".txt", text);
    put(name, ".json", json);
    put(name, ".html", html);
    if (muc_report_as_csv(ctx, report, NULL, &csv) == MUC_OK) {
        put(name, ".csv", csv);
        free(csv);
    }
    muc_error_clear(ctx);
    free(text);
    free(json);
    free(html);
    muc_report_free(report);
}

static void put_message(const char *name, muc_status status)
{
    CHECK(status != MUC_OK);
    put(name, ".message", muc_error_message(ctx));
    muc_error_clear(ctx);
}

static muc_model *open_model(const char *path, const muc_model_options *options)
{
    muc_model *model;

    CHECK_OK(ctx, muc_model_open(ctx, path, options, &model));
    return model;
}

static void put_language_model(void)
{
    static const muc_compile_options mcu = { .target = "mcu" }, none = { 0 };
    static const muc_weight_options too_few = { .bits = 0.25 }, bits = { .bits = 4.9 };
    static const muc_run_options prompt = { .prompt = "scan the lab",
                                            .most_tokens = 8,
                                            .sampling = { .temperature = 0.5, .top_p = 0.9 } };
    static const muc_eval_options eval = { .limit = 2 };
    static const muc_compress_options small = { .weights = "int4", .calibration = "none" };
    muc_model *model = open_model(NULL, &(muc_model_options){ .context = 64 });
    muc_report *report;

    CHECK_OK(ctx, muc_inspect(ctx, model, &report));
    put_report("inspect", report);
    CHECK_OK(ctx, muc_run(ctx, model, &prompt, &report));
    put_report("run", report);
    CHECK_OK(ctx, muc_eval_text(ctx, model, "../cases.txt", &eval, &report));
    put_report("eval", report);
    CHECK_OK(ctx, muc_compile(ctx, model, &mcu, "folder", &report));
    put_report("compile_mcu", report);
    CHECK_OK(ctx, muc_report_folder(ctx, "folder", NULL, &report));
    put_report("report", report);
    CHECK_OK(ctx, muc_compile(ctx, model, &none, "program.utp", &report));
    put_report("compile", report);
    CHECK_OK(ctx, muc_quantize(ctx, model, &bits, "blocks.bdt", &report));
    put_report("quantize", report);
    put_message("quantize", muc_quantize(ctx, model, &too_few, "none.bdt", &report));
    CHECK_OK(ctx, muc_compress(ctx, model, &small, "compressed", &report));
    put_report("compress", report);
    muc_model_close(model);
}

static void put_assembly(void)
{
    muc_report *report;
    char *text;

    CHECK_OK(ctx, muc_disassemble(ctx, "program.utp", &text));
    put("program", ".s", text);
    free(text);
    CHECK_OK(ctx, muc_assemble(ctx, "program.s", "again.utp"));
    CHECK_OK(ctx, muc_list_operators(ctx, &report));
    put_report("operators", report);
}

/* reads fractions, writes them into C, and names with letters */
static void put_networks(void)
{
    static const char text[] =
        "graph Scales\ntensor Image = input f32 [1, 4]\n"
        "tensor w = const f32 [2, 4] values 0.5847, -1.25, 0.0025, 1.5, 2.5, 3.5, 4.5, 5.5\n"
        "node Sum f32 [1, 2] = linear Image, w\n"
        "node y f32 [1, 2] = leaky_relu Sum alpha=0.3125\noutput y\n";
    static const muc_compile_options mcu = { .target = "mcu" }, chip = { .target = "cnnchip" };
    const char *small = at_home("examples/cnnchip/small.graph");
    muc_report *report;
    char *assembly;
    muc_model *model;

    CHECK_OK(ctx, muc_file_write(ctx, "scales.graph", text, strlen(text)));
    model = open_model("scales.graph", NULL);
    CHECK_OK(ctx, muc_inspect(ctx, model, &report));
    put_report("inspect_network", report);
    CHECK_OK(ctx, muc_compile(ctx, model, &mcu, "network", &report));
    put_report("compile_network", report);
    muc_model_close(model);
    model = open_model(small, NULL);
    CHECK_OK(ctx, muc_compile(ctx, model, &chip, "chip", &report));
    put_report("compile_chip", report);
    CHECK_OK(ctx, muc_disassemble(ctx, "chip/program.bin", &assembly));
    free(assembly);
    muc_model_close(model);
}

static void put_training(void)
{
    static const muc_train_options options = { .data = "../cases.txt",
                                               .held_out = "../cases.txt",
                                               .cases = true,
                                               .steps = 2,
                                               .batch = 64,
                                               .every = 1,
                                               .rate = 0.00125 };
    muc_report *report;
    const char *builtin;
    muc_status status;

    CHECK_OK(ctx, muc_builtin_path(ctx, &builtin));
    status = muc_train(ctx, builtin, &options, "trained", &report);
    if (status == MUC_OK)
        put_report("train", report);
    else
        put_message("train", status); /* a build without OpenBLAS */
}

/* what a clock measured; its separators stay */
static void hide_times(const char *dir)
{
    char command[512];

    snprintf(command, sizeof(command),
             "sed -E -i '/second/s/[0-9]+(\\.[0-9]+)?/9/g' %s/run.* %s/train.* && "
             "{ ! [ -e %s/trained ] || "
             "{ sed -E -i 's/^(([^,]*,){5})[0-9.]+/\\1/' %s/trained/train.csv && "
             "sed -i 's/^[0-9a-f]*  train.csv/train.csv/' %s/trained/FILES; }; }",
             dir, dir, dir, dir, dir);
    CHECK_EQ(system(command), 0);
}

/* all of it, in a folder of its own */
static void put_everything(const char *dir)
{
    CHECK_EQ(chdir(base), 0);
    CHECK_OK(ctx, muc_make_dir(ctx, dir));
    CHECK_EQ(chdir(dir), 0);
    put_language_model();
    put_assembly();
    put_networks();
    put_training();
    CHECK_EQ(chdir(base), 0);
    hide_times(dir);
}

static void a_comma_of_the_callers_changes_no_byte(void **state)
{
    char number[16];

    (void)state;
    put_everything("plain");
    if (!setlocale(LC_ALL, "comma"))
        skip(); /* a C library without localedef */
    snprintf(number, sizeof(number), "%.1f", 1.5);
    assert_string_equal(number, "1,5");
    CHECK(!isalpha('q'));
    put_everything("commas");
    snprintf(number, sizeof(number), "%.1f", 1.5); /* the caller's own, as before */
    assert_string_equal(number, "1,5");
    CHECK_EQ(system("LC_ALL=C diff -r plain commas"), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_comma_of_the_callers_changes_no_byte, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

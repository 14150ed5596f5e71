/* test_score_rows.c - the logits after each token of one call are those of a call a token. */
#include "check.h"

#include <unistd.h>

#include "muc/muc.h"
#include "run/engine.h"
#include "targets/uthinker/run/engine_machine.h"

static char path[] = "/tmp/muc_score_rows_XXXXXX";

/* EMBED begins each call of a program */
static void count_calls(void *arg, mur_sim *sim, enum mur_engine engine, const uint32_t *words)
{
    (void)sim;
    (void)engine;
    *(uint32_t *)arg += (words[0] & 255) == 0x08;
}

/* rescue compiled with options, and what follows from `calls` of so many tokens each */
static void check_calls(const muc_compile_options *options, const uint32_t *calls, size_t count)
{
    muc_context *ctx = muc_context_new(2);
    muc_model *model, *program;
    muc_engine *together, *alone;
    uint32_t token = 1, differ = 0, made = 0, tokens_fed = 0;
    muc_report *report;

    CHECK_OK(ctx, muc_model_open(ctx, "models/rescue", NULL, &model));
    CHECK_OK(ctx, muc_compile(ctx, model, options, path, &report));
    muc_report_free(report);
    CHECK_OK(ctx, muc_model_open(ctx, path, NULL, &program));
    CHECK_OK(ctx, muc_engine_new(ctx, program, &together));
    CHECK_OK(ctx, muc_engine_new(ctx, program, &alone));
    muc_engine_watch(together, count_calls, &made);
    for (size_t i = 0; i < count; i++) {
        const float *rows, *row, *first;
        uint32_t vocabulary = together->facts.vocabulary, tokens[64];

        for (uint32_t t = 0; t < calls[i]; t++)
            tokens[t] = token = (token * 75 + 74) % vocabulary;
        CHECK_OK(ctx, muc_engine_feed(together, tokens, calls[i], true, &rows));
        tokens_fed += calls[i];
        first = rows;
        for (uint32_t t = 0; t < calls[i]; t++, rows += vocabulary) {
            CHECK_OK(ctx, muc_engine_feed(alone, tokens + t, 1, false, &row));
            CHECK(memcmp(rows, row, vocabulary * sizeof(*row)) == 0);
            differ += memcmp(rows, first, vocabulary * sizeof(*row)) != 0;
        }
    }
    CHECK(differ > 0);
    CHECK(made <= count + tokens_fed / 8); /* not a call a token */
    muc_engine_free(together);
    muc_engine_free(alone);
    muc_model_close(program);
    muc_model_close(model);
    muc_context_free(ctx);
}

static void rows_of_a_call_are_those_of_single_tokens(void **state)
{
    static const uint32_t calls[] = { 1, 2, 64, 7, 33, 1, 40 };

    (void)state;
    check_calls(&(muc_compile_options){ 0 }, calls, 7);
    check_calls(&(muc_compile_options){ .attention = "recompute" }, calls, 5);
}

static int make_file(void **state)
{
    (void)state;
    return close(mkstemp(path));
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_a_call_are_those_of_single_tokens),
    };

    return cmocka_run_group_tests(tests, make_file, remove_file);
}

/* The base room: readers stay in bounds, outputs appear whole, halves round as IEEE says. */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/half.h"
#include "base/json.h"
#include "base/real.h"
#include "base/text.h"
#include "base/threads.h"
#include "base/visible_name.h"

#define CONTEXT_THREADS 3
#include "context_fixture.h"

static void first_message_wins(void **state)
{
    (void)state;
    muc_fail(ctx, MUC_MALFORMED, "a.bin", 12, "first %d", 1);
    muc_fail(ctx, MUC_IO, "b.bin", 13, "second");
    assert_string_equal(muc_error_message(ctx), "a.bin: offset 12: first 1");
}

static void messages_and_hints_show_what_a_terminal_would_obey(void **state)
{
    (void)state;
    muc_fail(ctx, MUC_MALFORMED, "a\x1b[2J", MUC_NO_OFFSET, "tensor '%s'", "b\n\x9b\xc2\x9b");
    muc_hint(ctx, "rename %s",
             "\xe2\x80\xae"
             "c\xc3\xa9");
    assert_string_equal(muc_error_message(ctx),
                        "a\\x1b[2J: tensor 'b\\n\\x9b\\u009b'; rename \\u202ec\xc3\xa9");
}

static void a_visible_name_is_cut_between_characters(void **state)
{
    static const char *const kept[] = { "",       "",       "a",
                                        "a",      "a",      "a",
                                        "a\\xff", "a\\xff", "a\\xff\xc3\xa9" };
    char out[9];

    (void)state;
    for (size_t size = 1; size < 9; size++) {
        CHECK_EQ(muc_visible("a\xff\xc3\xa9", out, size), 7);
        assert_string_equal(out, kept[size]);
    }
}

static void each_code_point_is_read_as_it_is_written(void **state)
{
    char text[4];
    size_t size;

    (void)state;
    for (int32_t code = 1; code < 0x110000; code++) {
        size_t written = muc_utf8_write((uint32_t)code, text);
        bool is_half = code >= 0xd800 && code < 0xe000;

        if (muc_utf8_read(text, written, &size) != (is_half ? -1 : code) || size != written)
            fail_msg("U+%04x", (unsigned)code);
    }
}

static void reader_refuses_to_leave_its_bytes(void **state)
{
    static const uint8_t data[5] = { 1, 2, 3, 4, 5 };
    muc_bytes bytes = { data, sizeof(data), "five" };
    muc_reader reader = muc_reader_of(ctx, bytes);
    const uint8_t *span;
    uint32_t word;

    (void)state;
    CHECK_OK(ctx, muc_read_u32(&reader, "word", &word));
    CHECK_EQ(word, 0x04030201);
    CHECK_FAILS(ctx, MUC_MALFORMED, "five: offset 4: word needs 4 bytes, the file has 1 left",
                muc_read_u32(&reader, "word", &word));
    CHECK_FAILS(ctx, MUC_MALFORMED, "span", muc_read_span(&reader, UINT64_MAX, "span", &span));
}

static void every_half_survives_the_round_trip(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        float value = muc_f32_of_f16((uint16_t)h);

        if (value != value)
            CHECK(isnan(muc_f32_of_f16(muc_f16_of_f32(value))));
        else
            CHECK_EQ(muc_f16_of_f32(value), h);
    }
}

/* between two neighbours the nearer wins, and of two equally near the even one */
static void halves_round_to_nearest_even(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7bff; h++) {
        double low = (double)muc_f32_of_f16((uint16_t)h);
        double high = (double)muc_f32_of_f16((uint16_t)(h + 1));
        float middle = (float)((low + high) / 2);

        CHECK_EQ(muc_f16_of_f32(middle), h & 1 ? h + 1 : h);
        CHECK_EQ(muc_f16_of_f32(nextafterf(middle, 0)), h);
        CHECK_EQ(muc_f16_of_f32(nextafterf(middle, 1e9f)), h + 1);
    }
    CHECK_EQ(muc_f16_of_f32(65520.0f), 0x7c00);
    CHECK_EQ(muc_f16_of_f32(65519.996f), 0x7bff);
}

static void elementary_functions_agree_with_libm(void **state)
{
    (void)state;
    for (int i = -5000; i <= 5000; i++) {
        double x = i * 0.1371;

        CHECK(fabs(muc_exp(x) - exp(x)) <= 4e-16 * exp(x) || !isfinite(exp(x)));
        CHECK(fabs(muc_sin(x) - sin(x)) <= 5e-16);
        CHECK(fabs(muc_cos(x) - cos(x)) <= 5e-16);
        if (i > 0) {
            CHECK(fabs(muc_log(x) - log(x)) <= 1e-15 * (fabs(log(x)) + 1));
            CHECK(fabs(muc_pow(x, 0.37) - pow(x, 0.37)) <= 4e-15 * pow(x, 0.37));
        }
    }
    CHECK(muc_exp(-1000) == 0);
}

static void exponentials_at_once_are_those_alone(void **state)
{
    double x[100],
        last[] = { 0, -0.0, NAN, HUGE_VAL, -HUGE_VAL, 709.78, 709.79, -745, -744.9, -691 };

    (void)state;
    for (int from = -7500; from < 7200; from += 100) {
        for (int i = 0; i < 100; i++)
            x[i] = (from + i) * 0.0999;
        muc_exps(x, 100);
        for (int i = 0; i < 100; i++)
            CHECK(x[i] == muc_exp((from + i) * 0.0999));
    }
    memcpy(x, last, sizeof(last));
    muc_exps(x, MUC_COUNT(last));
    for (size_t i = 0; i < MUC_COUNT(last); i++)
        CHECK(x[i] == muc_exp(last[i]) || (isnan(x[i]) && isnan(last[i])));
}

static void paths_cannot_leave_the_folder(void **state)
{
    muc_file file;

    (void)state;
    CHECK_FAILS(ctx, MUC_MALFORMED, "not inside",
                muc_file_open_beneath(ctx, "tests", "../meson.build", NULL, &file));
    CHECK_FAILS(ctx, MUC_MALFORMED, "not inside",
                muc_file_open_beneath(ctx, "tests", "/etc/passwd", NULL, &file));
    CHECK_FAILS(ctx, MUC_MALFORMED, "not inside",
                muc_file_open_beneath(ctx, "tests", "a/../../b", NULL, &file));
    CHECK_OK(ctx, muc_file_open_beneath(ctx, "tests", "check.h", NULL, &file));
    CHECK(file.bytes.size > 0);
    muc_file_close(&file);
    CHECK_FAILS(ctx, MUC_IO, "not a regular file", muc_file_open(ctx, "tests", &file));
}

/* in TMP/snapshot, as in the cache of Hugging Face's hub: links to TMP/blobs/data */
static void links_in_the_folder_are_followed_where_they_may_lead(void **state)
{
    static const char *const links[][2] = { { "../blobs/data", "hub" },
                                            { "../blobs/data", "owner" },
                                            { "/etc/passwd", "away" },
                                            { "nothing", "broken" } };
    char dir[] = "/tmp/muc_test_XXXXXX", command[64];
    int home = open(".", O_RDONLY | O_DIRECTORY);
    muc_file file;

    (void)state;
    assert_non_null(mkdtemp(dir));
    CHECK(home >= 0 && chdir(dir) == 0);
    CHECK(mkdir("blobs", 0777) == 0 && mkdir("snapshot", 0777) == 0);
    CHECK_OK(ctx, muc_file_write(ctx, "blobs/data", "data", 4));
    CHECK_OK(ctx, muc_file_write(ctx, "snapshot/own", "own", 3));
    CHECK_EQ(chdir("snapshot"), 0);
    for (size_t i = 0; i < MUC_COUNT(links); i++)
        CHECK_EQ(symlink(links[i][0], links[i][1]), 0);
    CHECK_EQ(chdir(".."), 0);

    CHECK_OK(ctx, muc_file_open_beneath(ctx, "snapshot", "hub", NULL, &file));
    assert_memory_equal(file.bytes.data, "data", file.bytes.size);
    muc_file_close(&file);
    CHECK_OK(ctx, muc_file_open_beneath(ctx, "snapshot", "away", NULL, &file));
    muc_file_close(&file);
    CHECK_FAILS(ctx, MUC_IO, "cannot open",
                muc_file_open_beneath(ctx, "snapshot", "broken", NULL, &file));

    CHECK_OK(ctx, muc_file_open_beneath(ctx, "snapshot", "hub", "snapshot/owner", &file));
    muc_file_close(&file);
    CHECK_OK(ctx, muc_file_open_beneath(ctx, "snapshot", "own", "snapshot/owner", &file));
    muc_file_close(&file);
    CHECK_FAILS(ctx, MUC_MALFORMED, "snapshot/hub: is a link that leads out of the model's folder",
                muc_file_open_beneath(ctx, "snapshot", "hub", "snapshot/own", &file));
    CHECK_FAILS(ctx, MUC_MALFORMED, "to '/etc/passwd'",
                muc_file_open_beneath(ctx, "snapshot", "away", "snapshot/owner", &file));
    CHECK_FAILS(ctx, MUC_IO, "cannot open",
                muc_file_open_beneath(ctx, "snapshot", "broken", "snapshot/own", &file));
    CHECK(fchdir(home) == 0 && close(home) == 0);
    snprintf(command, sizeof(command), "rm -r %s", dir);
    CHECK_EQ(system(command), 0);
}

static void what_a_path_leads_to_has_a_name(void **state)
{
    static const struct {
        const char *path, *name;
    } cases[] = {
        { "models/kws.int8.tflite", "kws.int8" },
        { "kws", "kws" },
        { ".hidden", ".hidden" },
        { "no/such/folder.d/", "folder" },
        { "/tmp/", "tmp" },
        { "/tmp/.", "tmp" },
        { "/usr/..", "" },
    };
    muc_arena arena = { 0 };
    const char *name;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        CHECK_OK(ctx, muc_name_of_path(ctx, &arena, cases[i].path, &name));
        assert_string_equal(name, cases[i].name);
    }
    muc_arena_free(&arena);
}

static void output_appears_whole_or_not_at_all(void **state)
{
    char dir[] = "/tmp/muc_test_XXXXXX", path[64];
    muc_output *output;
    muc_file file;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/out", dir);
    CHECK_OK(ctx, muc_output_begin(ctx, path, &output));
    CHECK_OK(ctx, muc_output_write(output, "abc", 3));
    CHECK(!muc_path_exists(path));
    CHECK_OK(ctx, muc_output_commit(output));
    CHECK_OK(ctx, muc_file_open(ctx, path, &file));
    CHECK_EQ(file.bytes.size, 3);
    muc_file_close(&file);
    CHECK_OK(ctx, muc_output_begin(ctx, path, &output));
    muc_output_discard(output);
    CHECK_OK(ctx, muc_file_open(ctx, path, &file));
    CHECK_EQ(file.bytes.size, 3);
    muc_file_close(&file);
    unlink(path);
    CHECK_EQ(rmdir(dir), 0); /* nothing temporary stays behind */
}

/* put, stored and mapped anew: the file has what its memory has, and is as long as that was last */
static void output_is_what_its_memory_holds(void **state)
{
    enum { BYTES = 3 << 20 };
    char dir[] = "/tmp/muc_test_XXXXXX", path[64];
    muc_large_file memory, before;
    muc_output *output;
    muc_file file;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/out", dir);
    CHECK_OK(ctx, muc_output_begin(ctx, path, &output));
    CHECK(muc_output_map(output, BYTES + 9, &before));
    CHECK(muc_output_map(output, BYTES, &memory));
    muc_large_put(&memory, BYTES - 3, "abc", 3);
    muc_large_close(&memory);
    CHECK(memcmp(memory.data + BYTES - 3, "abc", 3) == 0);
    muc_large_put(&memory, 1, "de", 2); /* without its file, too */
    memory.data[0] = 'f';
    muc_output_hasten(output);
    CHECK_OK(ctx, muc_output_write(output, memory.data, BYTES));
    CHECK_OK(ctx, muc_output_commit(output));
    CHECK_OK(ctx, muc_file_open(ctx, path, &file));
    CHECK_EQ(file.bytes.size, BYTES);
    CHECK(memcmp(file.bytes.data, memory.data, BYTES) == 0);
    CHECK(memcmp(file.bytes.data, "fde", 4) == 0);
    muc_file_close(&file);
    muc_large_free(memory.data, BYTES);
    muc_large_close(&before);
    muc_large_free(before.data, BYTES + 9);
    CHECK_OK(ctx, muc_output_begin(ctx, path, &output));
    CHECK(muc_output_map(output, BYTES, &memory));
    CHECK_OK(ctx, muc_output_write(output, "else", 4)); /* in place of what is mapped */
    CHECK_OK(ctx, muc_output_commit(output));
    CHECK_OK(ctx, muc_file_open(ctx, path, &file));
    CHECK_EQ(file.bytes.size, 4);
    muc_file_close(&file);
    muc_large_close(&memory);
    muc_large_free(memory.data, BYTES);
    unlink(path);
    CHECK_EQ(rmdir(dir), 0);
    CHECK_OK(ctx, muc_output_begin(ctx, "/dev/null", &output));
    CHECK(!muc_output_map(output, BYTES, &memory));
    CHECK_OK(ctx, muc_output_commit(output));
}

static void json_limits_hold(void **state)
{
    const size_t list_bytes = (1 << 23) + 1;
    uint8_t *long_list;
    char deep[200];
    json_t *json;
    muc_bytes bytes = { (const uint8_t *)deep, 130, "deep" };
    muc_bytes twice = { (const uint8_t *)"{\"a\":1,\"a\":2}", 13, "twice" };

    (void)state;
    memset(deep, '[', 65);
    memset(deep + 65, ']', 65);
    CHECK_FAILS(ctx, MUC_MALFORMED, "deep: offset 72: JSON nested deeper than 64",
                muc_json_parse(ctx, bytes, 8, &json));
    CHECK_FAILS(ctx, MUC_MALFORMED, "duplicate", muc_json_parse(ctx, twice, 0, &json));
    long_list = malloc(list_bytes);
    assert_non_null(long_list);
    memset(long_list, ',', list_bytes);
    CHECK_FAILS(ctx, MUC_UNSUPPORTED, "long: offset 8388608: JSON of more than 8388608 values",
                muc_json_parse(ctx, (muc_bytes){ long_list, list_bytes, "long" }, 0, &json));
    free(long_list);
}

static muc_status square(void *arg, size_t i)
{
    uint64_t *out = arg;

    out[i] = i * i;
    return i == 700 || i == 900 ? muc_fail(ctx, MUC_IO, "square", i, "no") : MUC_OK;
}

typedef struct loops {
    muc_context *ctx;
    uint32_t out[40][30];
} loops;

static muc_status inner(void *arg, size_t i)
{
    ((uint32_t *)arg)[i]++;
    return MUC_OK;
}

static muc_status outer(void *arg, size_t i)
{
    loops *l = arg;

    return muc_parallel_for(l->ctx, MUC_COUNT(l->out[i]), inner, l->out[i]);
}

static void *many_loops(void *arg)
{
    loops *l = arg;

    for (int round = 0; round < 300; round++)
        if (muc_parallel_for(l->ctx, MUC_COUNT(l->out), outer, l) != MUC_OK)
            return l;
    return NULL;
}

/* loops within loops, in two threads of ours at once, again and again */
static void loops_may_meet(void **state)
{
    static loops l[2];
    pthread_t thread;
    void *failed;

    (void)state;
    for (int t = 0; t < 2; t++)
        l[t].ctx = muc_context_new(3);
    CHECK_EQ(pthread_create(&thread, NULL, many_loops, &l[1]), 0);
    CHECK(many_loops(&l[0]) == NULL);
    CHECK_EQ(pthread_join(thread, &failed), 0);
    CHECK(failed == NULL);
    for (int t = 0; t < 2; t++) {
        for (size_t i = 0; i < MUC_COUNT(l[t].out); i++)
            for (size_t j = 0; j < MUC_COUNT(l[t].out[i]); j++)
                CHECK_EQ(l[t].out[i][j], 300);
        muc_context_free(l[t].ctx);
    }
}

static void parallel_for_runs_each_index_once(void **state)
{
    static uint64_t out[1000];

    (void)state;
    CHECK_OK(ctx, muc_parallel_for(ctx, 700, square, out));
    for (size_t i = 0; i < 700; i++)
        CHECK_EQ(out[i], i * i);
    CHECK_EQ(muc_parallel_for(ctx, 1000, square, out), MUC_IO);
    for (unsigned i = 0; i < 2000; i++) { /* while others sleep, wake and look */
        memset(out, 0, sizeof(out));
        CHECK_OK(ctx, muc_parallel_brief(ctx, 700, square, out));
        CHECK_EQ(out[699], 699 * 699);
    }
}

static void failed_allocations_are_told(void **state)
{
    muc_arena arena = { 0 };
    void *p;

    (void)state;
    muc_alloc_fail_after(0);
    CHECK_FAILS(ctx, MUC_NOMEM, "no memory", muc_arena_new(ctx, &arena, 10, 10, &p));
    muc_alloc_fail_after(-1);
    CHECK_FAILS(ctx, MUC_NOMEM, "no memory", muc_arena_new(ctx, &arena, SIZE_MAX, 16, &p));
    muc_arena_free(&arena);
}

/* by the polynomial, bit after bit */
static uint32_t crc_by_bits(const uint8_t *data, size_t size)
{
    uint32_t crc = UINT32_MAX;

    for (size_t bit = 0; bit < 8 * size; bit++)
        crc = crc >> 1 ^ ((crc ^ data[bit / 8] >> bit % 8) & 1 ? 0xedb88320 : 0);
    return ~crc;
}

static void crc_is_that_of_zlib(void **state)
{
    uint8_t data[700];

    (void)state;
    CHECK_EQ(muc_crc32(0, (const uint8_t *)"123456789", 9), 0xcbf43926);
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 167 + 13);
    for (size_t first = 0; first < 9; first++)
        for (size_t size = 0; size + first <= sizeof(data); size++)
            CHECK_EQ(muc_crc32(0, data + first, size), crc_by_bits(data + first, size));
    CHECK_EQ(muc_crc32(muc_crc32(0, data, 21), data + 21, 19), muc_crc32(0, data, 40));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, new_context, free_context)
    const struct CMUnitTest tests[] = {
        T(first_message_wins),
        T(messages_and_hints_show_what_a_terminal_would_obey),
        T(a_visible_name_is_cut_between_characters),
        T(each_code_point_is_read_as_it_is_written),
        T(reader_refuses_to_leave_its_bytes),
        T(every_half_survives_the_round_trip),
        T(halves_round_to_nearest_even),
        T(elementary_functions_agree_with_libm),
        T(exponentials_at_once_are_those_alone),
        T(paths_cannot_leave_the_folder),
        T(links_in_the_folder_are_followed_where_they_may_lead),
        T(what_a_path_leads_to_has_a_name),
        T(output_appears_whole_or_not_at_all),
        T(output_is_what_its_memory_holds),
        T(json_limits_hold),
        T(parallel_for_runs_each_index_once),
        T(loops_may_meet),
        T(failed_allocations_are_told),
        T(crc_is_that_of_zlib),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

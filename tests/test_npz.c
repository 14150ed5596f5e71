/* NumPy's archives: NumPy's own are read, ours are read by Python's zipfile and by ourselves. */
#include "base/file.h"
#include "formats/npy/npz.h"
#include "formats/state_dict.h"

#include "context_fixture.h"

static muc_arena arena;

static int teardown(void **state)
{
    muc_arena_free(&arena);
    return free_context(state);
}

static muc_bytes load(const char *path)
{
    muc_file file;
    uint8_t *copy;
    size_t size;

    CHECK_OK(ctx, muc_file_open(ctx, path, &file));
    size = file.bytes.size;
    CHECK_OK(ctx, MUC_ARENA_NEW(ctx, &arena, size, &copy));
    memcpy(copy, file.bytes.data, size);
    muc_file_close(&file);
    return (muc_bytes){ copy, size, "archive" };
}

static void run_python(const char *script)
{
    char command[4096];

    snprintf(command, sizeof(command), "python3 -c '%s'", script);
    CHECK_EQ(system(command), 0);
}

static void archives_of_numpy_are_read(void **state)
{
    muc_tensor_view *views;
    size_t count;

    (void)state;
    CHECK_OK(ctx,
             muc_npz_read(ctx, &arena, load(shared_data("deeploy/Models/CNN_Linear1/inputs.npz")),
                          &views, &count));
    CHECK_EQ(count, 1);
    assert_string_equal(views[0].name, "input");
    CHECK_EQ(views[0].bytes, 8320 - 128);
}

static const float floats[] = { 1, -2, 0.5f };
static const int64_t longs[] = { 7 };
static const muc_tensor_view two[] = {
    { .name = "x",
      .dtype = MUC_F32,
      .rank = 1,
      .dims = { 3 },
      .elements = 3,
      .bytes = 12,
      .data = (const uint8_t *)floats },
    { .name = "a/b",
      .dtype = MUC_I64,
      .rank = 0,
      .elements = 1,
      .bytes = 8,
      .data = (const uint8_t *)longs },
    { .name = "none", .dtype = MUC_U8, .rank = 2, .dims = { 4, 0 }, .data = (const uint8_t *)"" },
};
enum { WRITTEN = MUC_COUNT(two) };

static void what_is_written_is_read_by_us_and_by_python(void **state)
{
    char dir[] = "/tmp/muc_test_XXXXXX", path[64], script[1024];
    muc_tensor_view *views;
    muc_bytes first, again;
    size_t count;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/out.npz", dir);
    CHECK_OK(ctx, muc_npz_write(ctx, path, two, WRITTEN));
    first = load(path);
    CHECK_OK(ctx, muc_npz_read(ctx, &arena, first, &views, &count));
    CHECK_EQ(count, WRITTEN);
    for (size_t i = 0; i < WRITTEN; i++) {
        assert_string_equal(views[i].name, two[i].name);
        CHECK(views[i].dtype == two[i].dtype && views[i].rank == two[i].rank);
        assert_memory_equal(views[i].dims, two[i].dims, sizeof(two[i].dims));
        assert_memory_equal(views[i].data, two[i].data, (size_t)two[i].bytes);
    }
    snprintf(script, sizeof(script),
             "import zipfile, struct\n"
             "z = zipfile.ZipFile(\"%s\")\n"
             "assert z.testzip() is None and z.namelist() == [\"x.npy\", \"a/b.npy\", "
             "\"none.npy\"]\n"
             "assert z.read(\"x.npy\")[-12:] == struct.pack(\"<3f\", 1, -2, 0.5)",
             path);
    run_python(script);
    CHECK_OK(ctx, muc_npz_write(ctx, path, two, WRITTEN));
    again = load(path);
    CHECK_EQ(again.size, first.size);
    assert_memory_equal(again.data, first.data, first.size);
    unlink(path);
    rmdir(dir);
}

static void bad_archives_are_refused_by_name(void **state)
{
    static const struct {
        const char *script; /* writes to the archive z */
        muc_status status;
        const char *fragment;
    } cases[] = {
        { "z.writestr(\"big.npy\", bytes(1 << 27))", MUC_MALFORMED,
          "member 'big.npy' inflates to 134217728 bytes, out of proportion" },
        { "z.writestr(\"a.txt\", b\"text\")", MUC_UNSUPPORTED,
          "member 'a.txt' is not a .npy file" },
        { "z.writestr(\"a.npy\", b\"text\", compress_type=zipfile.ZIP_LZMA)", MUC_UNSUPPORTED,
          "compressed by method 14" },
        { "z.writestr(\"a.npy\", b\"no array\")", MUC_MALFORMED, "archive(a): offset 0: no .npy" },
    };
    char dir[] = "/tmp/muc_test_XXXXXX", path[64], script[512];
    muc_tensor_view *views;
    size_t count;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/bad.npz", dir);
    for (size_t i = 0; i < MUC_COUNT(cases); i++) {
        snprintf(script, sizeof(script),
                 "import zipfile\n"
                 "with zipfile.ZipFile(\"%s\", \"w\", zipfile.ZIP_DEFLATED) as z: %s",
                 path, cases[i].script);
        run_python(script);
        CHECK_FAILS(ctx, cases[i].status, cases[i].fragment,
                    muc_npz_read(ctx, &arena, load(path), &views, &count));
    }
    CHECK_FAILS(ctx, MUC_MALFORMED, "two arrays are named 'x'",
                muc_npz_write(ctx, path, (const muc_tensor_view[]){ two[0], two[0] }, 2));
    unlink(path);
    rmdir(dir);
}

/* weights in rows, however the archive says where it has them, stay in its bytes: no copy */
static void stored_members_are_borrowed(void **state)
{
    static const char *const seeds[] = { "fuzz/corpus/torch/archive",
                                         "fuzz/corpus/torch/archive_64" };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(seeds); i++) {
        muc_bytes archive = load(seeds[i]);
        muc_torch_state weights;
        const muc_torch_weight *w;
        uint32_t bits;

        CHECK_OK(ctx, muc_torch_read(ctx, &arena, archive, &weights));
        w = muc_torch_find(&weights, "c.bias");
        assert_non_null(w);
        CHECK(w->stored > archive.data && w->stored + 8 < archive.data + archive.size);
        memcpy(&bits, w->stored + 4, sizeof(bits));
        CHECK_EQ(bits, 0xbf800000u);              /* -1 */
        w = muc_torch_find(&weights, "l.weight"); /* by columns */
        assert_non_null(w);
        CHECK(w->stored < archive.data || w->stored >= archive.data + archive.size);
    }
}

static void damage_is_told_or_harmless(void **state)
{
    char dir[] = "/tmp/muc_test_XXXXXX", path[64];
    muc_tensor_view *views;
    muc_bytes whole;
    size_t count;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/out.npz", dir);
    CHECK_OK(ctx, muc_npz_write(ctx, path, two, WRITTEN));
    whole = load(path);
    for (size_t i = 0; i < whole.size; i++) {
        uint8_t *copy = malloc(whole.size);
        muc_arena scratch = { 0 };

        memcpy(copy, whole.data, whole.size);
        copy[i] ^= 0x55;
        muc_npz_read(ctx, &scratch, (muc_bytes){ copy, whole.size, "flipped" }, &views, &count);
        muc_error_clear(ctx);
        CHECK(muc_npz_read(ctx, &scratch, (muc_bytes){ whole.data, i, "cut" }, &views, &count) !=
              MUC_OK);
        muc_error_clear(ctx);
        muc_arena_free(&scratch);
        free(copy);
    }
    unlink(path);
    rmdir(dir);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, new_context, teardown)
    const struct CMUnitTest tests[] = {
        T(archives_of_numpy_are_read),       T(what_is_written_is_read_by_us_and_by_python),
        T(bad_archives_are_refused_by_name), T(stored_members_are_borrowed),
        T(damage_is_told_or_harmless),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

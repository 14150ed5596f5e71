/* NumPy's files: read against NumPy's own, written byte for byte as NumPy writes. */
#include "base/file.h"
#include "base/text.h"
#include "formats/npy/npy.h"

#include "context_fixture.h"

/* numpy.save of [[0.5, -2, 3]] as float32, by NumPy 1.24 */
static const uint8_t saved[] =
    "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }"
    "                                                          \n"
    "\x00\x00\x00\x3f\x00\x00\x00\xc0\x00\x00\x40\x40";
enum { SAVED_BYTES = sizeof(saved) - 1, HEADER_BYTES = 128 };

static muc_status read_text(const char *header, size_t data_bytes, muc_tensor_view *view)
{
    static char file[512];
    muc_bytes bytes = { (const uint8_t *)file, 10 + strlen(header) + data_bytes, "array" };

    memset(file, 0, sizeof(file));
    memcpy(file, saved, 8);
    file[8] = (char)strlen(header);
    memcpy(file + 10, header, strlen(header));
    return muc_npy_read(ctx, bytes, view);
}

static void a_saved_array_is_read(void **state)
{
    muc_tensor_view view;
    float values[3];

    (void)state;
    CHECK_EQ(SAVED_BYTES, HEADER_BYTES + 12);
    CHECK_OK(ctx, muc_npy_read(ctx, (muc_bytes){ saved, SAVED_BYTES, "array" }, &view));
    CHECK_EQ(view.dtype, MUC_F32);
    CHECK_EQ(view.rank, 2);
    CHECK(view.dims[0] == 1 && view.dims[1] == 3);
    CHECK_OK(ctx, muc_tensor_to_f32(ctx, &view, 0, 3, values));
    CHECK(values[0] == 0.5f && values[1] == -2 && values[2] == 3);
}

static void headers_of_any_order_and_rank_are_read(void **state)
{
    muc_tensor_view view;

    (void)state;
    CHECK_OK(ctx, read_text("{'shape':(),'fortran_order':False,'descr':'|i1'}", 1, &view));
    CHECK(view.rank == 0 && view.elements == 1 && view.dtype == MUC_I8);
    CHECK_OK(ctx,
             read_text("{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }\n", 16, &view));
    CHECK(view.rank == 1 && view.dims[0] == 2 && view.dtype == MUC_I64);
    CHECK_OK(ctx,
             read_text("{'descr': '<f2', 'fortran_order': False, 'shape': (2, 0, 3)}", 0, &view));
    CHECK(view.rank == 3 && view.elements == 0);
}

/* [[[1, 2, 3], [4, 5, 6]]], of which the first dimension is stored innermost */
static void arrays_of_fortran_order_are_turned(void **state)
{
    static const char header[] = "{'descr': '|i1', 'fortran_order': True, 'shape': (1, 2, 3)}";
    static const uint8_t stored[] = { 1, 4, 2, 5, 3, 6 }, expected[] = { 1, 2, 3, 4, 5, 6 };
    uint8_t file[128] = { 0 };
    size_t size = sizeof(header) - 1;
    muc_arena arena = { 0 };
    muc_tensor_view view;

    (void)state;
    memcpy(file, saved, 8);
    file[8] = (uint8_t)size;
    memcpy(file + 10, header, size);
    memcpy(file + 10 + size, stored, sizeof(stored));
    CHECK_OK(ctx,
             muc_npy_read_copy(ctx, &arena,
                               (muc_bytes){ file, 10 + size + sizeof(stored), "array" }, &view));
    CHECK(view.rank == 3 && view.dims[1] == 2 && view.elements == 6);
    assert_memory_equal(view.data, expected, sizeof(expected));
    muc_arena_free(&arena);
}

static void other_files_are_refused_by_name(void **state)
{
    static const struct {
        const char *header;
        size_t data;
        muc_status status;
        const char *fragment;
    } cases[] = {
        { "{'descr': '>f4', 'fortran_order': False, 'shape': (), }", 4, MUC_UNSUPPORTED,
          "there is no little-endian number type" },
        { "{'descr': '<f4', 'fortran_order': True, 'shape': (), }", 4, MUC_UNSUPPORTED,
          "Fortran order" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", 4,
          MUC_UNSUPPORTED, "more than 8 dimensions" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1), }", 4, MUC_MALFORMED,
          "'shape' is not a tuple" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", 4, MUC_MALFORMED,
          "no size" },
        { "{'descr': '<f4', 'shape': (1,), }", 4, MUC_MALFORMED, "lacks a key" },
        { "{'descr': '<f4', 'descr': '<f4', }", 4, MUC_MALFORMED, "a key twice" },
        { "{'other': 1}", 4, MUC_MALFORMED, "unknown key" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 4, MUC_MALFORMED,
          "the shape asks for 8 bytes, the file has 4" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } x", 4, MUC_MALFORMED,
          "goes on after its end" },
    };
    muc_tensor_view view;

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(cases); i++)
        CHECK_FAILS(ctx, cases[i].status, cases[i].fragment,
                    read_text(cases[i].header, cases[i].data, &view));
}

static void damage_is_told_or_harmless(void **state)
{
    muc_tensor_view view;

    (void)state;
    for (size_t size = 0; size < SAVED_BYTES; size++) {
        uint8_t *copy = malloc(size ? size : 1);

        memcpy(copy, saved, size);
        CHECK_EQ(muc_npy_read(ctx, (muc_bytes){ copy, size, "cut" }, &view), MUC_MALFORMED);
        muc_error_clear(ctx);
        free(copy);
    }
    for (size_t i = 0; i < HEADER_BYTES * 8; i++) {
        uint8_t *copy = malloc(SAVED_BYTES);

        memcpy(copy, saved, SAVED_BYTES);
        copy[i / 8] ^= (uint8_t)(1 << i % 8);
        if (muc_npy_read(ctx, (muc_bytes){ copy, SAVED_BYTES, "flipped" }, &view) == MUC_OK)
            CHECK(view.bytes == 12 && view.data == copy + HEADER_BYTES);
        muc_error_clear(ctx);
        free(copy);
    }
}

static void check_written(const muc_tensor_view *view, muc_bytes expected)
{
    char dir[] = "/tmp/muc_test_XXXXXX", path[64];
    muc_file file;

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/array.npy", dir);
    CHECK_OK(ctx, muc_npy_write(ctx, path, view));
    CHECK_OK(ctx, muc_file_open(ctx, path, &file));
    CHECK_EQ(file.bytes.size, expected.size);
    assert_memory_equal(file.bytes.data, expected.data, expected.size);
    muc_file_close(&file);
    unlink(path);
    rmdir(dir);
}

static void what_numpy_wrote_is_written_again(void **state)
{
    static const char *const names[] = { "llama/reference/logits_f64_pos0_59.npy",
                                         "llama/reference/tokens.npy" };
    muc_bytes bytes = { saved, SAVED_BYTES, "array" };
    muc_tensor_view view;

    (void)state;
    CHECK_OK(ctx, muc_npy_read(ctx, bytes, &view));
    check_written(&view, bytes);
    for (size_t i = 0; i < MUC_COUNT(names); i++) {
        muc_file file;

        CHECK_OK(ctx, muc_file_open(ctx, shared_data(names[i]), &file));
        CHECK_OK(ctx, muc_npy_read(ctx, file.bytes, &view));
        check_written(&view, file.bytes);
        muc_file_close(&file);
    }
    view.dtype = MUC_BF16;
    CHECK_FAILS(ctx, MUC_UNSUPPORTED, "NumPy has no type bf16",
                muc_npy_write(ctx, "absent/array.npy", &view));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, new_context, free_context)
    const struct CMUnitTest tests[] = {
        T(a_saved_array_is_read),
        T(headers_of_any_order_and_rank_are_read),
        T(arrays_of_fortran_order_are_turned),
        T(other_files_are_refused_by_name),
        T(damage_is_told_or_harmless),
        T(what_numpy_wrote_is_written_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

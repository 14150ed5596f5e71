/* Tensors of ONNX: every storage against numbers known beforehand, and what is refused. */
#include "base/file.h"
#include "base/half.h"
#include "formats/onnx/decode.h"
#include "formats/onnx/onnx_tensor.h"

#include "context_fixture.h"

static muc_arena arena;

static int teardown(void **state)
{
    muc_arena_free(&arena);
    return free_context(state);
}

#define READ(bytes, view) \
    muc_onnx_read_tensor(ctx, &arena, \
                         (muc_bytes){ (const uint8_t *)(bytes), sizeof(bytes) - 1, "file" }, view)

/* Fields of TensorProto: 08 dims, 10 data_type, 22 float_data packed, 2a int32_data packed,
 * 3a int64_data packed, 4a raw_data, 52 double_data packed, 5a uint64_data packed */
static void every_storage_gives_the_same_elements(void **state)
{
    static const struct {
        const char *file;
        size_t size;
        muc_dtype dtype;
        size_t bytes;
        const char *expected;
    } cases[] = {
#define CASE(file, dtype, expected) \
    { file, sizeof(file) - 1, dtype, sizeof(expected) - 1, expected }
        CASE("\x08\x02\x10\x01\x22\x08\0\0\x80\x3f\0\0\0\xc0", MUC_F32, "\0\0\x80\x3f\0\0\0\xc0"),
        CASE("\x08\x02\x10\x01\x25\0\0\x80\x3f\x25\0\0\0\xc0", MUC_F32, /* not packed */
             "\0\0\x80\x3f\0\0\0\xc0"),
        CASE("\x08\x02\x10\x01\x4a\x08\0\0\x80\x3f\0\0\0\xc0", MUC_F32, "\0\0\x80\x3f\0\0\0\xc0"),
        CASE("\x0a\x02\x01\x02\x10\x03\x2a\x0b\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x7f", MUC_I8,
             "\xff\x7f"), /* packed dims too; -1 takes ten bytes */
        CASE("\x08\x02\x10\x02\x28\xff\x01\x28\x01", MUC_U8, "\xff\x01"),
        CASE("\x08\x01\x10\x0a\x2a\x02\x80\x78", MUC_F16, "\x00\x3c"), /* 1.0 as a number */
        CASE("\x08\x01\x10\x10\x2a\x03\x80\xff\x02", MUC_BF16, "\x80\xbf"),
        CASE("\x08\x02\x10\x09\x2a\x02\x01\x00", MUC_BOOL, "\x01\x00"),
        CASE("\x08\x01\x10\x07\x3a\x0a\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", MUC_I64,
             "\xfe\xff\xff\xff\xff\xff\xff\xff"),
        CASE("\x10\x0c\x5a\x05\xff\xff\xff\xff\x0f", MUC_U32, "\xff\xff\xff\xff"),
        CASE("\x10\x0d\x58\x05", MUC_U64, "\x05\0\0\0\0\0\0\0"),
        CASE("\x10\x0b\x52\x08\0\0\0\0\0\0\xf0\x3f", MUC_F64, "\0\0\0\0\0\0\xf0\x3f"),
        CASE("\x08\x00\x10\x01", MUC_F32, ""),
        CASE("\x08\x03\x08\x00\x10\x06\x4a\x00", MUC_I32, ""),
#undef CASE
    };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(cases); i++) {
        muc_bytes file = { (const uint8_t *)cases[i].file, cases[i].size, "file" };
        muc_tensor_view view;

        CHECK_OK(ctx, muc_onnx_read_tensor(ctx, &arena, file, &view));
        CHECK_EQ(view.dtype, cases[i].dtype);
        CHECK_EQ(view.bytes, cases[i].bytes);
        assert_memory_equal(view.data, cases[i].expected, cases[i].bytes);
    }
}

static void what_is_wrong_is_named(void **state)
{
    muc_tensor_view view;

    (void)state;
    CHECK_FAILS(ctx, MUC_MALFORMED, "tensor 'w': 1 numbers of type FLOAT, the shape asks for 2",
                READ("\x08\x02\x10\x01\x22\x04\0\0\x80\x3f\x42\x01w", &view));
    CHECK_FAILS(ctx, MUC_MALFORMED, "tensor 'w': 3 bytes, the shape asks for 4",
                READ("\x08\x01\x10\x01\x4a\x03\0\0\0\x42\x01w", &view));
    CHECK_FAILS(ctx, MUC_UNSUPPORTED, "'w' is of type STRING (8)",
                READ("\x10\x08\x42\x01w", &view));
    CHECK_FAILS(ctx, MUC_UNSUPPORTED, "'w' is of type unknown (22)",
                READ("\x10\x16\x42\x01w", &view));
    CHECK_FAILS(ctx, MUC_MALFORMED, "tensor 'w': element 0, 300, is not a number of type UINT8",
                READ("\x10\x02\x28\xac\x02\x42\x01w", &view));
    CHECK_FAILS(ctx, MUC_MALFORMED, "tensor 'w': element 0 is 2, expected 0 or 1",
                READ("\x10\x09\x4a\x01\x02\x42\x01w", &view));
    CHECK_FAILS(ctx, MUC_MALFORMED, "dimension 0 is -1",
                READ("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\x01", &view));
    CHECK_FAILS(ctx, MUC_MALFORMED, "the shape overflows",
                READ("\x08\x80\x80\x80\x80\x80\x80\x80\x01\x08\x80\x80\x80\x80\x80\x80\x80\x01"
                     "\x10\x01",
                     &view));
    CHECK_FAILS(ctx, MUC_UNSUPPORTED, "9 dimensions, at most 8",
                READ("\x0a\x09\1\1\1\1\1\1\1\1\1\x10\x01", &view));
    CHECK_FAILS(ctx, MUC_MALFORMED, "field 9 has 5 bytes, the file 1 more",
                READ("\x10\x01\x4a\x05\x00", &view));
    CHECK_FAILS(ctx, MUC_MALFORMED, "wire type 3", READ("\x13", &view));
    /* external data, and a tensor that has no folder */
    CHECK_FAILS(ctx, MUC_UNSUPPORTED, "its data is in 'd', and this model has no folder",
                READ("\x10\x01\x70\x01\x6a\x0d\x0a\x08location\x12\x01"
                     "d",
                     &view));
    CHECK_FAILS(ctx, MUC_MALFORMED, "its external data has no location",
                READ("\x10\x01\x70\x01", &view));
}

/* a TypeProto of a sequence of a sequence of ..., each 2 bytes more */
static void deep_nesting_is_refused(void **state)
{
    uint8_t file[256];
    size_t at = sizeof(file);
    ProtobufCMessage *message;

    (void)state;
    while (at > 4) { /* TypeProto.sequence_type { elem_type { ... */
        size_t size = sizeof(file) - at;

        if (size > 118)
            break;
        file[--at] = (uint8_t)size;
        file[--at] = size % 4 ? 0x22 : 0x0a;
    }
    CHECK_FAILS(ctx, MUC_MALFORMED, "nested deeper than 32",
                muc_onnx_decode(ctx, &arena, (muc_bytes){ file + at, sizeof(file) - at, "deep" },
                                &onnx__type_proto__descriptor, &message));
}

/* each empty node is two bytes in the file and more than a hundred in memory */
static void what_is_out_of_proportion_is_refused(void **state)
{
    enum { NODES = 400000 };
    uint8_t *file = malloc(NODES * 2);
    ProtobufCMessage *message;

    (void)state;
    for (size_t i = 0; i < NODES; i++) {
        file[2 * i] = 0x0a; /* GraphProto.node */
        file[2 * i + 1] = 0;
    }
    CHECK_FAILS(ctx, MUC_MALFORMED, "out of proportion",
                muc_onnx_decode(ctx, &arena, (muc_bytes){ file, NODES * 2, "bomb" },
                                &onnx__graph_proto__descriptor, &message));
    free(file);
}

/* ---- external data ---- */

typedef struct folder {
    char dir[32];
    muc_mapped_file *files;
    muc_onnx_store store;
} folder;

static muc_status read_external(folder *f, const char *location, const char *offset,
                                const char *length, muc_tensor_view *view)
{
    Onnx__StringStringEntryProto entries[3], *list[3];
    Onnx__TensorProto tensor = ONNX__TENSOR_PROTO__INIT;
    const char *const keys[] = { "location", "offset", "length" };
    const char *const values[] = { location, offset, length };
    int64_t dims[] = { 2 };

    for (int i = 0; i < 3; i++) {
        onnx__string_string_entry_proto__init(&entries[i]);
        entries[i].key = (char *)(uintptr_t)keys[i];
        entries[i].value = (char *)(uintptr_t)values[i];
        list[i] = &entries[i];
    }
    tensor.name = (char *)(uintptr_t) "w";
    tensor.n_dims = 1;
    tensor.dims = dims;
    tensor.data_type = ONNX__TENSOR_PROTO__DATA_TYPE__INT16;
    tensor.has_data_location = 1;
    tensor.data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    tensor.n_external_data = 3;
    tensor.external_data = list;
    return muc_onnx_tensor(ctx, &f->store, &tensor, view);
}

static void external_data_stays_in_the_folder(void **state)
{
    folder f = { .dir = "/tmp/muc_test_XXXXXX" };
    muc_tensor_view view;
    char path[64], link[64], away[64];

    (void)state;
    assert_non_null(mkdtemp(f.dir));
    f.store = (muc_onnx_store){ "model", f.dir, &arena, &f.files };
    snprintf(path, sizeof(path), "%s/w.bin", f.dir);
    snprintf(link, sizeof(link), "%s/link", f.dir);
    CHECK_OK(ctx, muc_file_write(ctx, path, "\0\0\1\0\2\0", 6));
    snprintf(away, sizeof(away), "%s/away", f.dir);
    CHECK_EQ(symlink("w.bin", link), 0);
    CHECK_EQ(symlink("/etc/passwd", away), 0);

    CHECK_OK(ctx, read_external(&f, "w.bin", "2", "4", &view));
    CHECK_EQ(view.bytes, 4);
    assert_memory_equal(view.data, "\1\0\2\0", 4);
    CHECK_EQ(view.offset, 2);
    CHECK_FAILS(ctx, MUC_MALFORMED, "is beyond the 6 bytes of",
                read_external(&f, "w.bin", "3", "4", &view));
    CHECK_FAILS(ctx, MUC_MALFORMED, "has 5 bytes, the shape asks for 4",
                read_external(&f, "w.bin", "0", "5", &view));
    CHECK_FAILS(ctx, MUC_MALFORMED, "the offset of its external data is '-1'",
                read_external(&f, "w.bin", "-1", "4", &view));
    CHECK_FAILS(ctx, MUC_MALFORMED, "the offset of its external data is '18446744073709551615'",
                read_external(&f, "w.bin", "18446744073709551615", "4", &view));
    CHECK_FAILS(ctx, MUC_MALFORMED, "not inside the model's folder",
                read_external(&f, "../w.bin", "0", "4", &view));
    CHECK_FAILS(ctx, MUC_MALFORMED, "not inside the model's folder",
                read_external(&f, "/etc/passwd", "0", "4", &view));
    CHECK_FAILS(ctx, MUC_MALFORMED, "leads out of the model's folder",
                read_external(&f, "away", "0", "4", &view));
    CHECK_OK(ctx, read_external(&f, "link", "2", "4", &view));
    assert_memory_equal(view.data, "\1\0\2\0", 4);
    CHECK_FAILS(ctx, MUC_IO, "not a regular file", read_external(&f, ".", "0", "4", &view));
    muc_mapped_close(f.files);
    unlink(away);
    unlink(link);
    unlink(path);
    rmdir(f.dir);
}

/* outputs that ONNX publishes: their sizes are those of the networks' classes */
static void published_outputs_are_read(void **state)
{
    static const struct {
        const char *path;
        uint64_t elements;
    } cases[] = { { "onnx/light_resnet50_output_0.pb", 1000 },
                  { "onnx/light_squeezenet_output_0.pb", 1000 } };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(cases); i++) {
        muc_tensor_view view;
        muc_file file;

        CHECK_OK(ctx, muc_file_open(ctx, shared_data(cases[i].path), &file));
        CHECK_OK(ctx, muc_onnx_read_tensor(ctx, &arena, file.bytes, &view));
        CHECK_EQ(view.dtype, MUC_F32);
        CHECK_EQ(view.elements, cases[i].elements);
        muc_file_close(&file);
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, new_context, teardown)
    const struct CMUnitTest tests[] = {
        T(every_storage_gives_the_same_elements),
        T(what_is_wrong_is_named),
        T(deep_nesting_is_refused),
        T(what_is_out_of_proportion_is_refused),
        T(external_data_stays_in_the_folder),
        T(published_outputs_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

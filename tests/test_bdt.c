/* The quantized-model file: what is written is read, every damaged byte is noticed. */
#include "base/file.h"
#include "chance.h"
#include "quant/bd_sequence.h"
#include "quant/bdt.h"

#define CONTEXT_THREADS 2
#include "context_fixture.h"

static const char path[] = "test_bdt.tmp";
static int teardown(void **state)
{
    unlink(path);
    return free_context(state);
}

enum { N = 9, K = 70 };
static float norm[5] = { 1, -2, 0.5f, 3e-20f, 65504 };

static muc_bd_sequence some_sequence(void)
{
    muc_bd_rule rule = { MUC_BD_ALL_KINDS, 0 };
    muc_bd_matrix matrix;
    muc_bd_sequence out;
    float w[N * K];

    for (int i = 0; i < N * K; i++)
        w[i] = i % 3 ? (float)random_gaussian() : 0;
    matrix = muc_bd_matrix_of("w", w, N, K);
    CHECK_OK(ctx, muc_bd_quantize(ctx, &matrix, &rule, &out));
    return out;
}

static muc_status write_model(muc_context *own, const muc_bd_sequence *sequence)
{
    const muc_bdt_entry entries[] = {
        { "tokenizer", MUC_BDT_BYTES, 0, 0, NULL, 0 },
        { "config", MUC_BDT_BYTES, 0, 0, (const uint8_t *)"{\"dim\":70}", 10 },
        { "w", MUC_BDT_BD, N, K, sequence->data, sequence->bytes },
        { "norm", MUC_BDT_F32, 1, 5, (const uint8_t *)norm, sizeof(norm) },
    };
    muc_bdt_writer *writer;

    MUC_TRY(muc_bdt_begin(own, path, &writer));
    for (size_t i = 0; i < MUC_COUNT(entries); i++) {
        muc_status status = muc_bdt_add(writer, &entries[i]);

        if (status != MUC_OK) {
            muc_bdt_discard(writer);
            return status;
        }
    }
    return muc_bdt_commit(writer);
}

/* a private copy of a written model, and its size */
static uint8_t *model_bytes(size_t *size)
{
    muc_bd_sequence sequence = some_sequence();
    uint8_t *bytes;
    muc_file file;

    CHECK_OK(ctx, write_model(ctx, &sequence));
    muc_bd_sequence_free(&sequence);
    CHECK_OK(ctx, muc_file_open(ctx, path, &file));
    *size = file.bytes.size;
    bytes = malloc(*size);
    memcpy(bytes, file.bytes.data, *size);
    muc_file_close(&file);
    return bytes;
}

static void what_is_written_is_read(void **state)
{
    muc_bd_sequence sequence = some_sequence();
    const muc_bdt_entry *entry;
    muc_file file;
    muc_bdt bdt;

    (void)state;
    CHECK_OK(ctx, write_model(ctx, &sequence));
    CHECK_OK(ctx, muc_file_open(ctx, path, &file));
    CHECK(muc_bdt_probe(file.bytes));
    CHECK_OK(ctx, muc_bdt_read(ctx, file.bytes, &bdt));
    CHECK_EQ(bdt.count, 4);
    assert_string_equal(bdt.entries[0].name, "tokenizer");
    entry = muc_bdt_find(&bdt, "w");
    CHECK(entry && entry->encoding == MUC_BDT_BD && entry->n == N && entry->k == K);
    CHECK_EQ((uintptr_t)entry->data % 16, 0);
    CHECK_EQ(entry->bytes, sequence.bytes);
    assert_memory_equal(entry->data, sequence.data, sequence.bytes);
    entry = muc_bdt_find(&bdt, "norm");
    CHECK(entry && entry->encoding == MUC_BDT_F32 && entry->n == 1 && entry->k == 5);
    assert_memory_equal(entry->data, norm, sizeof(norm));
    entry = muc_bdt_find(&bdt, "config");
    CHECK(entry && entry->bytes == 10 && memcmp(entry->data, "{\"dim\":70}", 10) == 0);
    entry = muc_bdt_find(&bdt, "tokenizer");
    CHECK(entry && entry->bytes == 0);
    CHECK(muc_bdt_find(&bdt, "") == NULL);
    CHECK(muc_bdt_find(&bdt, "normal") == NULL);
    CHECK(muc_bdt_find(&bdt, "zzz") == NULL);
    muc_bdt_free(&bdt);
    muc_file_close(&file);
    muc_bd_sequence_free(&sequence);
}

/* the layout of docs/FORMAT-bdt.md by hand, so that writer and reader cannot err together */
static void a_file_with_one_entry_has_the_documented_bytes(void **state)
{
    static const uint8_t
        expected
            [] = {
                'm',  'u',  'c',  '-',  'b', 'd', 't', 0, 1,   0,  0, 0, 0, 0, 0, 0, /* header */
                'a',  'b',  'c',  0,    0,   0,   0,   0, 0,   0,  0, 0, 0, 0, 0, 0, /* payload */
                1,    0,    0,    0,    0,   0,   0,   0, 0,   0,  0, 0, 0, 0, 0, 0, /* table */
                16,   0,    0,    0,    0,   0,   0,   0, 3,   0,  0, 0, 0, 0, 0, 0,
                0xc2, 0x41, 0x24, 0x35, 0,   0,   0,   0, 'x', 32, 0, 0, 0, 0, 0, 0,
                0,    1,    0,    0,    0,   1,   0,   0, 0, /* trailer, up to its checksums */
            };
    const muc_bdt_entry entry = { "x", MUC_BDT_BYTES, 0, 0, (const uint8_t *)"abc", 3 };
    muc_bdt_writer *writer;
    muc_file file;

    (void)state;
    CHECK_OK(ctx, muc_bdt_begin(ctx, path, &writer));
    CHECK_OK(ctx, muc_bdt_add(writer, &entry));
    CHECK_OK(ctx, muc_bdt_commit(writer));
    CHECK_OK(ctx, muc_file_open(ctx, path, &file));
    CHECK_EQ(file.bytes.size, sizeof(expected) + 16);
    assert_memory_equal(file.bytes.data, expected, sizeof(expected));
    muc_file_close(&file);
}

static void every_cut_is_refused(void **state)
{
    size_t size;
    uint8_t *data = model_bytes(&size);
    muc_bdt bdt;

    (void)state;
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *copy = malloc(cut + 1); /* so that a sanitizer sees the first byte beyond */

        memcpy(copy, data, cut);
        CHECK_FAILS(ctx, MUC_MALFORMED, "file: offset",
                    muc_bdt_read(ctx, (muc_bytes){ copy, cut, "file" }, &bdt));
        free(copy);
    }
    free(data);
}

static void every_damaged_byte_is_refused(void **state)
{
    size_t size;
    uint8_t *data = model_bytes(&size);
    muc_bytes bytes = { data, size, "file" };
    muc_bdt bdt;

    (void)state;
    for (size_t at = 0; at < size; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            muc_status status;

            data[at] ^= (uint8_t)(1 << bit);
            status = muc_bdt_read(ctx, bytes, &bdt);
            CHECK(status == MUC_MALFORMED || status == MUC_UNSUPPORTED);
            CHECK(strstr(muc_error_message(ctx), "file: offset") != NULL);
            muc_error_clear(ctx);
            data[at] ^= (uint8_t)(1 << bit);
        }
    }
    CHECK_OK(ctx, muc_bdt_read(ctx, bytes, &bdt));
    muc_bdt_free(&bdt);
    free(data);
}

/* damage whose checksums are right again: a malicious file, or another writer's mistake */
static void seal(uint8_t *data, size_t size)
{
    uint8_t *trailer = data + size - 32;
    uint64_t table = muc_load_u64(trailer);

    muc_store_u32(trailer + 16, muc_crc32(0, data + table, size - 32 - (size_t)table));
    muc_store_u32(trailer + 28, muc_crc32(0, trailer, 28));
}

static void wrong_fields_are_refused_even_with_right_checksums(void **state)
{
    size_t size;
    uint8_t *data = model_bytes(&size);
    muc_bytes bytes = { data, size, "file" };
    size_t table = (size_t)muc_load_u64(data + size - 32);
    unsigned accepted = 0;
    muc_bdt bdt;

    (void)state;
    for (size_t at = table; at < size - 16; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            data[at] ^= (uint8_t)(1 << bit);
            if (at < size - 32) {
                seal(data, size);
                if (muc_bdt_read(ctx, bytes, &bdt) == MUC_OK) {
                    CHECK(at >= table + 4 * 40); /* another name is another name */
                    accepted++;
                    muc_bdt_free(&bdt);
                }
            } else {
                muc_store_u32(data + size - 4, muc_crc32(0, data + size - 32, 28));
                CHECK(muc_bdt_read(ctx, bytes, &bdt) != MUC_OK);
            }
            muc_error_clear(ctx);
            data[at] ^= (uint8_t)(1 << bit);
            seal(data, size);
        }
    }
    CHECK(accepted > 0);
    free(data);
}

static void a_name_that_is_taken_or_odd_is_refused(void **state)
{
    muc_bdt_entry entry = { "x", MUC_BDT_BYTES, 0, 0, NULL, 0 };
    muc_bdt_writer *writer;
    char too_long[257];

    (void)state;
    memset(too_long, 'a', 256);
    too_long[256] = '\0';
    CHECK_OK(ctx, muc_bdt_begin(ctx, path, &writer));
    CHECK_OK(ctx, muc_bdt_add(writer, &entry));
    CHECK_FAILS(ctx, MUC_USAGE, "two entries are named 'x'", muc_bdt_add(writer, &entry));
    entry.name = "a b";
    CHECK_FAILS(ctx, MUC_USAGE, "'a b' cannot be", muc_bdt_add(writer, &entry));
    entry.name = "";
    CHECK_FAILS(ctx, MUC_USAGE, "cannot be", muc_bdt_add(writer, &entry));
    entry.name = too_long;
    CHECK_FAILS(ctx, MUC_USAGE, "cannot be", muc_bdt_add(writer, &entry));
    muc_bdt_discard(writer);
}

static void failed_allocations_are_reported(void **state)
{
    muc_bd_sequence sequence = some_sequence();
    muc_context *own = muc_context_new(1);
    muc_status status = MUC_NOMEM;
    long failures = 0;

    (void)state;
    while (status == MUC_NOMEM) {
        muc_file file = { 0 };
        muc_bdt bdt = { 0 };

        muc_error_clear(own);
        muc_alloc_fail_after(failures++);
        status = write_model(own, &sequence);
        if (status == MUC_OK)
            status = muc_file_open(own, path, &file);
        if (status == MUC_OK)
            status = muc_bdt_read(own, file.bytes, &bdt);
        muc_alloc_fail_after(-1);
        muc_bdt_free(&bdt);
        muc_file_close(&file);
    }
    CHECK_OK(own, status);
    CHECK(failures > 5);
    muc_context_free(own);
    muc_bd_sequence_free(&sequence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(a_file_with_one_entry_has_the_documented_bytes),
        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(every_damaged_byte_is_refused),
        cmocka_unit_test(wrong_fields_are_refused_even_with_right_checksums),
        cmocka_unit_test(a_name_that_is_taken_or_odd_is_refused),
        cmocka_unit_test(failed_allocations_are_reported),
    };

    return cmocka_run_group_tests(tests, new_context, teardown);
}

/* flatbuffer.c - proves the offsets of a flatbuffer, and reads its fields.
 *
 * A table begins with the signed distance back to its vtable; a vtable holds its own size, the
 * table's size and the distance of each field from the table's begin, 0 for a field that is absent
 * (all 16 bits). A field of a vector, string or table holds the distance to it, always forward.
 */
#include "formats/tflite/flatbuffer.h"

#include <assert.h>
#include <string.h>

typedef struct field_row {
    muc_flat_table table, of;
    muc_flat_kind kind;
    unsigned slot;
    int32_t unless; /* what an absent scalar reads as */
    const char *name;
} field_row;

static const field_row fields[MUC_FLAT_FIELD_COUNT] = {
#define TFLITE_TABLE(table, option)
#define TFLITE_FIELD(table, slot, name, kind, of, unless) \
    [MUC_FLAT_##table##_##name] = { MUC_FLAT_##table, MUC_FLAT_##of,   MUC_FLAT_##kind, slot, \
                                    unless,           #table "." #name },
#include "formats/tflite/schema.def"
#undef TFLITE_TABLE
#undef TFLITE_FIELD
};

static const unsigned options[MUC_FLAT_TABLE_COUNT] = {
#define TFLITE_TABLE(table, option) [MUC_FLAT_##table] = option,
#define TFLITE_FIELD(table, slot, name, kind, of, unless)
#include "formats/tflite/schema.def"
#undef TFLITE_TABLE
#undef TFLITE_FIELD
};

/* bytes of a field in its table, and of an element of what the field leads to */
static const struct {
    unsigned width, element;
} kinds[] = {
    [MUC_FLAT_I8] = { 1, 0 },     [MUC_FLAT_U8] = { 1, 0 },    [MUC_FLAT_I32] = { 4, 0 },
    [MUC_FLAT_U32] = { 4, 0 },    [MUC_FLAT_U64] = { 8, 0 },   [MUC_FLAT_F32] = { 4, 0 },
    [MUC_FLAT_STRING] = { 4, 1 }, [MUC_FLAT_BYTES] = { 4, 1 }, [MUC_FLAT_I32S] = { 4, 4 },
    [MUC_FLAT_I64S] = { 4, 8 },   [MUC_FLAT_F32S] = { 4, 4 },  [MUC_FLAT_TABLE] = { 4, 0 },
    [MUC_FLAT_TABLES] = { 4, 4 }, [MUC_FLAT_UNION] = { 1, 0 },
};

enum { IDENTIFIER_AT = 4, LEAST_BYTES = 12, VTABLE_HEAD = 4 };

bool muc_flat_probe(muc_bytes file)
{
    return file.size >= LEAST_BYTES && memcmp(file.data + IDENTIFIER_AT, "TFL3", 4) == 0;
}

/* ---- what a verified file says ---- */

/* of a field, or 0; the table is verified, or its vtable at least */
static size_t slot_at(muc_flat table, unsigned slot)
{
    size_t vtable, entry = VTABLE_HEAD + 2 * (size_t)slot;
    unsigned distance;

    if (!table.data)
        return 0;
    vtable = table.at - (size_t)(int64_t)(int32_t)muc_load_u32(table.data + table.at);
    if (entry + 2 > muc_load_u16(table.data + vtable))
        return 0;
    distance = muc_load_u16(table.data + vtable + entry);
    return distance ? table.at + distance : 0;
}

static size_t field_at(muc_flat table, muc_flat_field field)
{
    return slot_at(table, fields[field].slot);
}

/* what an offset at `at` leads to, or 0 */
static size_t follow(muc_flat table, size_t at)
{
    return at ? at + muc_load_u32(table.data + at) : 0;
}

static size_t target_of(muc_flat table, muc_flat_field field)
{
    return follow(table, field_at(table, field));
}

static muc_flat table_or_none(muc_flat from, size_t at)
{
    return (muc_flat){ at ? from.data : NULL, at };
}

int64_t muc_flat_integer(muc_flat table, muc_flat_field field)
{
    size_t at = field_at(table, field);
    const uint8_t *p;

    if (!at)
        return fields[field].unless;
    p = table.data + at;
    if (kinds[fields[field].kind].width == 1)
        return fields[field].kind == MUC_FLAT_I8 ? (int64_t)(int8_t)*p : *p;
    assert(fields[field].kind == MUC_FLAT_I32 || fields[field].kind == MUC_FLAT_U32);
    return fields[field].kind == MUC_FLAT_I32 ? (int64_t)(int32_t)muc_load_u32(p) : muc_load_u32(p);
}

uint64_t muc_flat_unsigned(muc_flat table, muc_flat_field field)
{
    size_t at = field_at(table, field);

    assert(fields[field].kind == MUC_FLAT_U64);
    return at ? muc_load_u64(table.data + at) : 0;
}

static float load_real(const uint8_t *p)
{
    uint32_t bits = muc_load_u32(p);
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

float muc_flat_real(muc_flat table, muc_flat_field field)
{
    size_t at = field_at(table, field);

    assert(fields[field].kind == MUC_FLAT_F32);
    return at ? load_real(table.data + at) : (float)fields[field].unless;
}

muc_flat muc_flat_table_at(muc_flat table, muc_flat_field field)
{
    assert(fields[field].kind == MUC_FLAT_TABLE);
    return table_or_none(table, target_of(table, field));
}

unsigned muc_flat_option(muc_flat table, muc_flat_field field)
{
    size_t at = field_at(table, field);

    assert(fields[field].kind == MUC_FLAT_UNION);
    return at ? table.data[at] : 0;
}

unsigned muc_flat_option_of(muc_flat_table kind)
{
    return options[kind];
}

muc_flat muc_flat_union_at(muc_flat table, muc_flat_field field, muc_flat_table kind)
{
    bool there = options[kind] != 0 && options[kind] == muc_flat_option(table, field);

    return table_or_none(table, there ? follow(table, slot_at(table, fields[field].slot + 1)) : 0);
}

uint32_t muc_flat_count(muc_flat table, muc_flat_field field)
{
    size_t at = target_of(table, field);

    return at ? muc_load_u32(table.data + at) : 0;
}

const uint8_t *muc_flat_data(muc_flat table, muc_flat_field field)
{
    size_t at = target_of(table, field);

    return at ? table.data + at + 4 : NULL;
}

int64_t muc_flat_integer_of(muc_flat table, muc_flat_field field, uint32_t i)
{
    const uint8_t *p = muc_flat_data(table, field) + (size_t)i * kinds[fields[field].kind].element;

    if (fields[field].kind == MUC_FLAT_I64S)
        return (int64_t)muc_load_u64(p);
    assert(fields[field].kind == MUC_FLAT_I32S);
    return (int32_t)muc_load_u32(p);
}

float muc_flat_real_of(muc_flat table, muc_flat_field field, uint32_t i)
{
    assert(fields[field].kind == MUC_FLAT_F32S);
    return load_real(muc_flat_data(table, field) + 4 * (size_t)i);
}

muc_flat muc_flat_table_of(muc_flat table, muc_flat_field field, uint32_t i)
{
    assert(fields[field].kind == MUC_FLAT_TABLES);
    return table_or_none(table, follow(table, target_of(table, field) + 4 + 4 * (size_t)i));
}

/* ---- the proof ---- */

typedef struct proof {
    muc_context *ctx;
    muc_bytes file;
    size_t tables_left; /* that may still be visited */
} proof;

static muc_status prove_table(proof *p, muc_flat_table kind, size_t from, size_t at);

static muc_status refuse(const proof *p, size_t at, const char *what, const char *found)
{
    return muc_fail(p->ctx, MUC_MALFORMED, p->file.name, at, "%s %s", what, found);
}

/* what the offset at `at`, itself in bounds, leads to: at least 4 bytes in the file */
static muc_status prove_offset(const proof *p, size_t at, const char *what, size_t *out)
{
    uint32_t distance = muc_load_u32(p->file.data + at);

    if (distance == 0 || distance > p->file.size - at || p->file.size - at - distance < 4)
        return refuse(p, at, what, "leads out of the file");
    *out = at + distance;
    return MUC_OK;
}

static muc_status prove_vector(const proof *p, const field_row *row, size_t from, size_t *out,
                               uint32_t *count)
{
    MUC_TRY(prove_offset(p, from, row->name, out));
    *count = muc_load_u32(p->file.data + *out);
    if (*count > (p->file.size - *out - 4) / kinds[row->kind].element)
        return refuse(p, *out, row->name, "has more elements than the file has room for");
    return MUC_OK;
}

static muc_status prove_tables(proof *p, const field_row *row, size_t from)
{
    uint32_t count;
    size_t vector;

    MUC_TRY(prove_vector(p, row, from, &vector, &count));
    for (uint32_t i = 0; i < count; i++) {
        size_t entry = vector + 4 + 4 * (size_t)i, at;

        MUC_TRY(prove_offset(p, entry, row->name, &at));
        MUC_TRY(prove_table(p, row->of, entry, at));
    }
    return MUC_OK;
}

/* the table beside the number at `at`; those that schema.def lacks cannot be asked for */
static muc_status prove_union(proof *p, const field_row *row, muc_flat table, size_t at)
{
    size_t from = slot_at(table, row->slot + 1), target;

    for (unsigned kind = 0; from && kind < MUC_FLAT_TABLE_COUNT; kind++) {
        if (options[kind] == 0 || options[kind] != p->file.data[at])
            continue;
        MUC_TRY(prove_offset(p, from, row->name, &target));
        return prove_table(p, (muc_flat_table)kind, from, target);
    }
    return MUC_OK;
}

static muc_status prove_target(proof *p, const field_row *row, muc_flat table, size_t at)
{
    uint32_t count;
    size_t target;

    if (row->kind == MUC_FLAT_UNION)
        return prove_union(p, row, table, at);
    if (row->kind == MUC_FLAT_TABLES)
        return prove_tables(p, row, at);
    if (row->kind == MUC_FLAT_TABLE) {
        MUC_TRY(prove_offset(p, at, row->name, &target));
        return prove_table(p, row->of, at, target);
    }
    return kinds[row->kind].element ? prove_vector(p, row, at, &target, &count) : MUC_OK;
}

/* a slot's field lies in the table */
static muc_status prove_slot(const proof *p, const char *name, muc_flat table, unsigned slot,
                             unsigned width, size_t table_bytes)
{
    size_t at = slot_at(table, slot), distance = at - table.at;

    if (at && (distance < 4 || distance + width > table_bytes))
        return refuse(p, table.at, name, "lies outside its table");
    return MUC_OK;
}

/* vtable and extent of the table at `at`, of which 4 bytes are in the file */
static muc_status prove_vtable(const proof *p, size_t from, size_t at, size_t *table_bytes)
{
    int64_t vtable = (int64_t)at - (int32_t)muc_load_u32(p->file.data + at);
    size_t size;

    *table_bytes = 0;
    if (vtable < 0 || (uint64_t)vtable + VTABLE_HEAD > p->file.size)
        return refuse(p, from, "a table's vtable", "lies outside the file");
    size = muc_load_u16(p->file.data + vtable);
    *table_bytes = muc_load_u16(p->file.data + vtable + 2);
    if (size < VTABLE_HEAD || size % 2 != 0 || size > p->file.size - (size_t)vtable)
        return refuse(p, (size_t)vtable, "a vtable's size", "is impossible");
    if (*table_bytes < 4 || *table_bytes > p->file.size - at)
        return refuse(p, (size_t)vtable, "a table's size", "is impossible");
    return MUC_OK;
}

static muc_status prove_table(proof *p, muc_flat_table kind, size_t from, size_t at)
{
    muc_flat table = { p->file.data, at };
    size_t table_bytes;

    if (p->tables_left-- == 0)
        return refuse(p, from, "a table", "is one of more than the file has room for");
    MUC_TRY(prove_vtable(p, from, at, &table_bytes));
    for (size_t i = 0; i < MUC_FLAT_FIELD_COUNT; i++) {
        const field_row *row = &fields[i];
        size_t field;

        if (row->table != kind)
            continue;
        MUC_TRY(prove_slot(p, row->name, table, row->slot, kinds[row->kind].width, table_bytes));
        if (row->kind == MUC_FLAT_UNION)
            MUC_TRY(prove_slot(p, row->name, table, row->slot + 1, 4, table_bytes));
        field = slot_at(table, row->slot);
        if (field)
            MUC_TRY(prove_target(p, row, table, field));
    }
    return MUC_OK;
}

muc_status muc_flat_verify(muc_context *ctx, muc_bytes file, muc_flat *out)
{
    proof p = { ctx, file, file.size / 4 };
    size_t root;

    if (!muc_flat_probe(file))
        return refuse(&p, 0, "the file", "lacks TFLite's identifier TFL3");
    MUC_TRY(prove_offset(&p, 0, "the root table", &root));
    MUC_TRY(prove_table(&p, MUC_FLAT_MODEL, 0, root));
    *out = (muc_flat){ file.data, root };
    return MUC_OK;
}

/* flatbuffer.h - TFLite's container: bytes that are proven before they are read.
 *
 * muc_flat_verify walks everything that schema.def names, once, and bounds it: vtables, fields,
 * vectors, strings, tables below tables. What the readers after it return cannot leave the file;
 * nothing is assumed about alignment. A field that is absent reads as its default, a table, vector
 * or string that is absent as empty, and so does every field of an empty table.
 *
 * Objects may share bytes, as writers that merge equal ones do, but no more tables are visited
 * than the file has room for offsets, so sharing cannot make a small file expensive.
 */
#ifndef MUC_TFLITE_FLATBUFFER_H
#define MUC_TFLITE_FLATBUFFER_H

#include "base/bytes.h"

typedef enum muc_flat_table {
#define TFLITE_TABLE(table, option) MUC_FLAT_##table,
#define TFLITE_FIELD(table, slot, name, kind, of, unless)
#include "formats/tflite/schema.def"
#undef TFLITE_TABLE
#undef TFLITE_FIELD
    MUC_FLAT_TABLE_COUNT
} muc_flat_table;

typedef enum muc_flat_kind {
    MUC_FLAT_I8,
    MUC_FLAT_U8,
    MUC_FLAT_I32,
    MUC_FLAT_U32,
    MUC_FLAT_U64,
    MUC_FLAT_F32,
    MUC_FLAT_STRING,
    MUC_FLAT_BYTES, /* vectors of scalars */
    MUC_FLAT_I32S,
    MUC_FLAT_I64S,
    MUC_FLAT_F32S,
    MUC_FLAT_TABLE,
    MUC_FLAT_TABLES, /* a vector of tables */
    MUC_FLAT_UNION,
} muc_flat_kind;

/* MUC_FLAT_TENSOR_shape, ... */
typedef enum muc_flat_field {
#define TFLITE_TABLE(table, option)
#define TFLITE_FIELD(table, slot, name, kind, of, unless) MUC_FLAT_##table##_##name,
#include "formats/tflite/schema.def"
#undef TFLITE_TABLE
#undef TFLITE_FIELD
    MUC_FLAT_FIELD_COUNT
} muc_flat_field;

/* A verified table; data is the file, NULL for a table that is absent. */
typedef struct muc_flat {
    const uint8_t *data;
    size_t at;
} muc_flat;

/* True if the file could be TFLite's: its identifier stands there. */
bool muc_flat_probe(muc_bytes file);
/* Verifies file as a MODEL, whose root table is *out; borrows file. Fails with MUC_MALFORMED at
 * the offset of the field that leads astray. */
muc_status muc_flat_verify(muc_context *ctx, muc_bytes file, muc_flat *out);

/* Scalars; a field of another kind, or of another table than the one at hand, is a bug. */
int64_t muc_flat_integer(muc_flat table, muc_flat_field field);
uint64_t muc_flat_unsigned(muc_flat table, muc_flat_field field);
float muc_flat_real(muc_flat table, muc_flat_field field);
muc_flat muc_flat_table_at(muc_flat table, muc_flat_field field);
/* A UNION's number, 0 for none, and its table if the number is kind's; else an empty table. */
unsigned muc_flat_option(muc_flat table, muc_flat_field field);
unsigned muc_flat_option_of(muc_flat_table kind);
muc_flat muc_flat_union_at(muc_flat table, muc_flat_field field, muc_flat_table kind);
/* Elements of a vector or bytes of a string, and the first of them (no alignment). */
uint32_t muc_flat_count(muc_flat table, muc_flat_field field);
const uint8_t *muc_flat_data(muc_flat table, muc_flat_field field);
/* Element i < count. */
int64_t muc_flat_integer_of(muc_flat table, muc_flat_field field, uint32_t i);
float muc_flat_real_of(muc_flat table, muc_flat_field field, uint32_t i);
muc_flat muc_flat_table_of(muc_flat table, muc_flat_field field, uint32_t i);

#endif

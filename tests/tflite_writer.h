/* tflite_writer.h - writes TFLite files for tests, sound ones and others.
 *
 * A parent is written before its children and links to them. Every slot of a table has 8 bytes.
 */
#ifndef TFLITE_WRITER_H
#define TFLITE_WRITER_H

#include "base/bytes.h"
#include "check.h"

typedef struct flat_out {
    uint8_t data[1 << 16];
    size_t size;
} flat_out;

static inline size_t flat_reserve(flat_out *out, size_t bytes)
{
    size_t at = out->size;

    CHECK(at + bytes <= sizeof(out->data));
    memset(out->data + at, 0, bytes);
    out->size += bytes;
    return at;
}

static inline size_t flat_new_table(flat_out *out, unsigned slots)
{
    size_t vtable = flat_reserve(out, 4 + 2 * slots), at = flat_reserve(out, 4 + 8 * slots);

    muc_store_u16(out->data + vtable, (uint16_t)(4 + 2 * slots));
    muc_store_u16(out->data + vtable + 2, (uint16_t)(4 + 8 * slots));
    muc_store_u32(out->data + at, (uint32_t)(at - vtable));
    return at;
}

/* where the slot's value is to be written; it is present from now on */
static inline uint8_t *flat_slot(flat_out *out, size_t table, unsigned slot)
{
    size_t vtable = table - muc_load_u32(out->data + table);

    muc_store_u16(out->data + vtable + 4 + 2 * slot, (uint16_t)(4 + 8 * slot));
    return out->data + table + 4 + 8 * slot;
}

static inline void flat_put(flat_out *out, size_t table, unsigned slot, int64_t value)
{
    muc_store_u64(flat_slot(out, table, slot), (uint64_t)value);
}

static inline void flat_put_real(flat_out *out, size_t table, unsigned slot, float value)
{
    memcpy(flat_slot(out, table, slot), &value, sizeof(value));
}

static inline void flat_link(flat_out *out, size_t table, unsigned slot, size_t target)
{
    uint8_t *at = flat_slot(out, table, slot);

    muc_store_u32(at, (uint32_t)(target - (size_t)(at - out->data)));
}

static inline size_t flat_new_vector(flat_out *out, const void *items, uint32_t count, size_t width)
{
    size_t at = flat_reserve(out, 4 + count * width);

    muc_store_u32(out->data + at, count);
    if (items)
        memcpy(out->data + at + 4, items, count * width);
    return at;
}

static inline void flat_vector(flat_out *out, size_t table, unsigned slot, const void *items,
                               uint32_t count, size_t width)
{
    flat_link(out, table, slot, flat_new_vector(out, items, count, width));
}

static inline void flat_text(flat_out *out, size_t table, unsigned slot, const char *text)
{
    flat_vector(out, table, slot, text, (uint32_t)strlen(text), 1);
}

/* a vector of count tables of some slots each; tables[i] is where the i-th is */
static inline void flat_tables(flat_out *out, size_t table, unsigned slot, uint32_t count,
                               unsigned slots, size_t *tables)
{
    size_t vector = flat_new_vector(out, NULL, count, 4);

    flat_link(out, table, slot, vector);
    for (uint32_t i = 0; i < count; i++) {
        size_t cell = vector + 4 + 4 * (size_t)i;

        tables[i] = flat_new_table(out, slots);
        muc_store_u32(out->data + cell, (uint32_t)(tables[i] - cell));
    }
}

/* ---- a model ---- */

enum { TFL_F32 = 0, TFL_I32 = 2, TFL_U8 = 3, TFL_I64 = 4, TFL_I16 = 7, TFL_I8 = 9 };

typedef struct tfl_tensor {
    const char *name;
    int type;
    uint32_t rank;
    int32_t shape[6];
    uint32_t scale_count;
    const float *scales;
    const int64_t *zeros;
    int32_t axis;
    const void *data; /* NULL: no constant */
    uint32_t bytes;
} tfl_tensor;

/* options are written by a function into a table of 8 slots */
typedef struct tfl_operator {
    int code, version;
    uint32_t input_count, output_count;
    int32_t inputs[8], outputs[8];
    unsigned option;
    int32_t options[8]; /* slot i: an integer if set[i] is 'i', a float's bits if 'f' */
    const char *set;    /* "i.if": one character a slot, '.' for an absent one */
} tfl_operator;

typedef struct tfl_model {
    const tfl_tensor *tensors;
    const tfl_operator *operators;
    uint32_t tensor_count, operator_count, input_count, output_count;
    int32_t inputs[4], outputs[4];
    /* where they were written, for tests that spoil them */
    size_t root, graph, tensor_at[32], operator_at[16], code_at[16], buffer_at[33];
} tfl_model;

static inline void tfl_write_tensor(flat_out *out, tfl_model *model, uint32_t i)
{
    const tfl_tensor *tensor = &model->tensors[i];
    size_t at = model->tensor_at[i];

    flat_vector(out, at, 0, tensor->shape, tensor->rank, 4);
    flat_put(out, at, 1, tensor->type);
    flat_text(out, at, 3, tensor->name);
    if (tensor->scale_count) {
        size_t q = flat_new_table(out, 7);

        flat_link(out, at, 4, q);
        flat_vector(out, q, 2, tensor->scales, tensor->scale_count, 4);
        flat_vector(out, q, 3, tensor->zeros, tensor->scale_count, 8);
        flat_put(out, q, 6, tensor->axis);
    }
    if (tensor->data) {
        flat_put(out, at, 2, i + 1);
        flat_vector(out, model->buffer_at[i + 1], 0, tensor->data, tensor->bytes, 1);
    }
}

static inline void tfl_write_operator(flat_out *out, tfl_model *model, uint32_t i)
{
    const tfl_operator *op = &model->operators[i];
    size_t at = model->operator_at[i], code = model->code_at[i], options;

    flat_put(out, code, 0, op->code < 127 ? op->code : 127);
    flat_put(out, code, 2, op->version);
    flat_put(out, code, 3, op->code);
    flat_put(out, at, 0, i);
    flat_vector(out, at, 1, op->inputs, op->input_count, 4);
    flat_vector(out, at, 2, op->outputs, op->output_count, 4);
    if (!op->option)
        return;
    flat_put(out, at, 3, op->option);
    options = flat_new_table(out, 8);
    flat_link(out, at, 4, options);
    for (unsigned slot = 0; op->set[slot]; slot++)
        if (op->set[slot] != '.')
            flat_put(out, options, slot, op->options[slot]);
}

static inline void tfl_write(flat_out *out, tfl_model *model)
{
    size_t root;

    out->size = 0;
    memcpy(out->data + flat_reserve(out, 8) + 4, "TFL3", 4);
    root = model->root = flat_new_table(out, 8);
    muc_store_u32(out->data, (uint32_t)root);
    flat_put(out, root, 0, 3);
    flat_tables(out, root, 1, model->operator_count, 4, model->code_at);
    flat_tables(out, root, 2, 1, 5, &model->graph);
    flat_tables(out, root, 4, model->tensor_count + 1, 3, model->buffer_at);
    flat_tables(out, model->graph, 0, model->tensor_count, 8, model->tensor_at);
    flat_vector(out, model->graph, 1, model->inputs, model->input_count, 4);
    flat_vector(out, model->graph, 2, model->outputs, model->output_count, 4);
    flat_tables(out, model->graph, 3, model->operator_count, 5, model->operator_at);
    for (uint32_t i = 0; i < model->tensor_count; i++)
        tfl_write_tensor(out, model, i);
    for (uint32_t i = 0; i < model->operator_count; i++)
        tfl_write_operator(out, model, i);
}

#endif

/* decoder_tiles.c - a decoder's products and attention as layers that can be cut. */
#include "targets/mcu/decoder/decoder_tiles.h"

/* rows of bytes that are there for every token */
static muc_mcu_tile_operand token_rows(const char *name, uint32_t rows, uint32_t bytes)
{
    return (muc_mcu_tile_operand){
        .name = name, .rows = rows, .stride = 1, .window = 1, .pixels = 1, .pixel_bytes = bytes
    };
}

/* a number for each channel */
static muc_mcu_tile_operand channel_floats(const char *name, uint32_t channels)
{
    return (muc_mcu_tile_operand){ .name = name,
                                   .rows = 1,
                                   .stride = 1,
                                   .pixels = 1,
                                   .pixel_bytes = channels * (uint32_t)sizeof(float),
                                   .channel_bytes = sizeof(float),
                                   .is_constant = true };
}

muc_mcu_tile_layer muc_mcu_product_layer(const char *name, const muc_mcu_product *product)
{
    muc_mcu_tile_layer layer = {
        .name = name,
        .rows = product->rows,
        .by_parts = true,
        .channels = product->n,
        .multiple = product->n < product->multiple ? product->n : product->multiple,
        .operand_count = 3,
        .operands = { token_rows("vectors", product->rows, product->vector_bytes),
                      token_rows("scales", product->rows, sizeof(float)),
                      { .name = "packed",
                        .rows = 1,
                        .pixels = 1,
                        .is_weights = true,
                        .is_constant = true } },
        .work = product->k,
        .packed_bytes = product->packed_bytes,
        .subject = product->subject,
    };
    muc_mcu_tile_operand *result;

    if (product->has_scales)
        layer.operands[layer.operand_count++] = channel_floats("row_scales", product->n);
    if (product->has_bias)
        layer.operands[layer.operand_count++] = channel_floats("bias", product->n);
    result = &layer.operands[layer.operand_count++];
    *result = token_rows("y", product->rows, product->n * (uint32_t)sizeof(float));
    result->channel_bytes = sizeof(float);
    return layer;
}

muc_mcu_tile_layer muc_mcu_attention_layer(const char *name, const mur_attention_q8 *op,
                                           uint32_t rows, uint64_t scratch_bytes)
{
    const char *const names[] = { "q", "k", "v", "y" };
    uint32_t head = op->width * (uint32_t)sizeof(float), group = op->heads / op->kv_heads;
    muc_mcu_tile_layer layer = {
        .name = name,
        .rows = rows,
        .by_parts = true,
        .channels = op->kv_heads,
        .multiple = 1,
        .operand_count = 4,
        .work = (uint64_t)2 * group * op->context * op->width,
        .scratch_bytes = scratch_bytes,
    };

    for (uint32_t i = 0; i < layer.operand_count; i++) {
        uint32_t bytes = i == 0 || i == 3 ? group * head : head;

        layer.operands[i] = token_rows(names[i], rows, bytes * op->kv_heads);
        layer.operands[i].channel_bytes = bytes;
    }
    return layer;
}

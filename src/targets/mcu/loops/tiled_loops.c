/* tiled_loops.c - nests in tiles: one loop is cut into rows, or one into channels, or both; and the
 * one that sums, if need be.
 *
 * Rows of an operand lie one behind another, so that a tile of them is one piece of memory in which
 * every index keeps its meaning. A tile of channels is packed more densely than the operand: there
 * every stride that was a multiple of all channels becomes one of the tile's.
 */
#include <string.h>

#include "targets/mcu/loops/loop_nest.h"
#include "targets/mcu/tiles/tiles.h"

#define NO_LOOP UINT32_MAX

/* which loops are cut, or NO_LOOP */
typedef struct cut {
    uint32_t rows, channels, depth;
} cut;

static uint32_t extent_of(const muc_mcu_nest *nest, uint32_t loop)
{
    return muc_expr_get(nest->l->graph->pool, nest->extents[loop])->immediate;
}

static int64_t stride_at(const muc_mcu_operand *operand, uint32_t loop)
{
    return loop == NO_LOOP ? 0 : operand->strides[loop].factor;
}

/* the tensor behind an operand, or NULL where the node has none */
static const muc_tensor *tensor_of(const muc_mcu_nest *nest, const muc_node *node,
                                   const muc_mcu_operand *operand)
{
    if (strcmp(operand->name, muc_mcu_output_name(0)) == 0)
        return muc_mcu_output(nest->l, node, 0);
    for (uint32_t i = 0; i < node->input_count; i++)
        if (strcmp(operand->name, muc_mcu_input_name(i)) == 0)
            return muc_mcu_input(nest->l, node, i);
    return NULL;
}

static bool is_fixed(const muc_mcu_nest *nest, const muc_node *node)
{
    uint32_t inputs = 0, found = 0;

    for (uint32_t i = 0; i < nest->loops; i++)
        if (!muc_expr_is_const(nest->l->graph->pool, nest->extents[i]))
            return false;
    for (uint32_t i = 0; i < node->input_count; i++)
        inputs += node->inputs[i] != MUC_NO_ID;
    for (uint32_t k = 0; k < nest->operand_count; k++) {
        const muc_mcu_operand *operand = &nest->operands[k];
        const muc_tensor *tensor = tensor_of(nest, node, operand);
        uint32_t value;

        if (!tensor)
            continue;
        found++;
        value = nest->l->program->value_of[tensor - nest->l->graph->tensors];
        if (operand->offset_count || !muc_mcu_is_static(nest->l, tensor) ||
            (value != MUC_NO_ID && nest->l->program->values[value].layout))
            return false;
        for (uint32_t i = 0; i < nest->loops; i++)
            if (operand->strides[i].factor < 0 || operand->strides[i].expr != MUC_EXPR_NONE)
                return false;
    }
    return node->output_count == 1 && found == inputs + 1 && found <= MUR_TILES_OPERANDS;
}

/* elements from the first to the last that the loops reach whose strides are in [low, high), the
 * cut ones left out */
static uint64_t reach(const muc_mcu_nest *nest, const muc_mcu_operand *operand, cut c, int64_t low,
                      int64_t high)
{
    uint64_t last = 0;

    for (uint32_t i = 0; i < nest->loops; i++) {
        int64_t stride = operand->strides[i].factor;

        if (i != c.rows && i != c.channels && i != c.depth && stride >= low && stride < high)
            last += (uint64_t)(extent_of(nest, i) - 1) * (uint64_t)stride;
    }
    return last + 1;
}

/* whether an operand's rows do not lie one behind another: a piece of some needs all of it */
static bool is_woven(const muc_mcu_nest *nest, const muc_mcu_operand *operand, cut c,
                     uint64_t elements)
{
    uint64_t row = (uint64_t)stride_at(operand, c.rows);

    return row && (row * extent_of(nest, c.rows) > elements ||
                   reach(nest, operand, c, 0, INT64_MAX) > row);
}

/* an operand without channels */
static bool cut_rows(const muc_mcu_nest *nest, const muc_mcu_operand *operand, cut c,
                     uint64_t elements, uint32_t size, muc_mcu_tile_operand *out)
{
    uint64_t row = (uint64_t)stride_at(operand, c.rows);
    bool woven = is_woven(nest, operand, c, elements);

    out->rows = out->pixels = 1;
    out->pixel_bytes = (uint32_t)elements * size;
    if (row == 0 || woven)
        return !woven || (c.channels == NO_LOOP && c.depth == NO_LOOP);
    out->rows = extent_of(nest, c.rows);
    out->stride = out->window = 1;
    out->pixel_bytes = (uint32_t)row * size;
    return true;
}

static bool cut_channels(const muc_mcu_nest *nest, const muc_mcu_operand *operand, cut c,
                         uint64_t elements, uint32_t size, muc_mcu_tile_operand *out)
{
    int64_t row = stride_at(operand, c.rows), channel = stride_at(operand, c.channels);
    int64_t pixel = channel * extent_of(nest, c.channels);

    for (uint32_t i = 0; i < nest->loops; i++)
        if (operand->strides[i].factor >= channel && i != c.channels &&
            operand->strides[i].factor % pixel != 0)
            return false;
    out->channel_bytes = (uint32_t)channel * size;
    out->pixel_bytes = (uint32_t)pixel * size;
    out->rows = 1;
    out->pixels = (uint32_t)(elements / (uint64_t)pixel);
    if (reach(nest, operand, c, 0, channel) > (uint64_t)channel || elements % (uint64_t)pixel != 0)
        return false;
    if (row == 0)
        return true;
    out->rows = extent_of(nest, c.rows);
    out->stride = out->window = 1;
    out->pixels = (uint32_t)(row / pixel);
    return row >= pixel && (uint64_t)row * out->rows <= elements &&
           reach(nest, operand, c, pixel, INT64_MAX) <= (uint64_t)row;
}

/* an operand that is summed over: a vector for each row or channel, or a row for each element */
static bool cut_depth(const muc_mcu_nest *nest, const muc_mcu_operand *operand, cut c,
                      uint64_t elements, uint32_t size, muc_mcu_tile_operand *out)
{
    int64_t row = stride_at(operand, c.rows), channel = stride_at(operand, c.channels);
    int64_t step = stride_at(operand, c.depth), depth = extent_of(nest, c.depth);
    int64_t channels = c.channels == NO_LOOP ? 1 : extent_of(nest, c.channels);
    uint32_t rows = row ? extent_of(nest, c.rows) : 1;

    *out = (muc_mcu_tile_operand){
        .name = out->name, .rows = rows, .pixels = 1, .is_constant = out->is_constant
    };
    if (row)
        out->stride = out->window = 1;
    if (step == 1 && reach(nest, operand, c, 1, INT64_MAX) == 1 && (row == 0 || row == depth) &&
        (channel == 0 || (channel == depth && row == 0))) {
        out->depth_bytes = size;
        out->pixel_bytes = (uint32_t)(depth * (channel ? channels : 1)) * size;
        out->channel_bytes = (uint32_t)channel * size;
        return (uint64_t)(rows * depth * (channel ? channels : 1)) <= elements;
    }
    out->rows = (uint32_t)depth;
    out->rows_are_depth = true;
    out->pixel_bytes = (uint32_t)step * size;
    out->channel_bytes = (uint32_t)channel * size;
    return row == 0 && (uint64_t)(depth * step) <= elements &&
           (channel ? channel == 1 && step == channels && reach(nest, operand, c, 1, INT64_MAX) == 1
                    : reach(nest, operand, c, 1, INT64_MAX) <= (uint64_t)step);
}

/* one operand */
static bool cut_operand(const muc_mcu_nest *nest, const muc_mcu_operand *operand, cut c,
                        const muc_tensor *tensor, muc_mcu_tile_operand *out)
{
    uint64_t elements = muc_mcu_most_elements(nest->l, tensor);
    uint32_t size = muc_dtype_get(tensor->dtype)->block_bytes;

    *out = (muc_mcu_tile_operand){ .name = operand->name,
                                   .is_constant = tensor->kind == MUC_TENSOR_CONST };
    if (stride_at(operand, c.depth))
        return cut_depth(nest, operand, c, elements, size, out);
    if (stride_at(operand, c.channels))
        return cut_channels(nest, operand, c, elements, size, out);
    return cut_rows(nest, operand, c, elements, size, out);
}

/* the layer as tiles see it; the result is the last operand */
static bool describe(const muc_mcu_nest *nest, const muc_node *node, cut c,
                     muc_mcu_tile_layer *layer)
{
    *layer = (muc_mcu_tile_layer){
        .name = nest->l->step->name,
        .rows = c.rows == NO_LOOP ? 1 : extent_of(nest, c.rows),
        .channels = c.channels == NO_LOOP ? 1 : extent_of(nest, c.channels),
        .depth = c.depth == NO_LOOP ? 0 : extent_of(nest, c.depth),
        .multiple = 1,
        .work = 1,
    };
    for (uint32_t i = 0; i < nest->loops; i++)
        layer->work *= i == c.rows || i == c.channels || i == c.depth ? 1 : extent_of(nest, i);
    for (unsigned results = 0; results < 2; results++)
        for (uint32_t k = 0; k < nest->operand_count; k++) {
            const muc_mcu_operand *operand = &nest->operands[k];
            const muc_tensor *tensor = tensor_of(nest, node, operand);
            bool is_result = tensor == muc_mcu_output(nest->l, node, 0);
            muc_mcu_tile_operand *out = &layer->operands[layer->operand_count];

            if (!tensor || is_result != results)
                continue;
            layer->operand_count++;
            if (!cut_operand(nest, operand, c, tensor, out) ||
                (is_result && ((c.rows != NO_LOOP && !out->window) ||
                               (c.channels != NO_LOOP && !out->channel_bytes))))
                return false;
        }
    return true;
}

/* from now on the nest's text is that of a piece */
static void apply(muc_mcu_nest *nest, const muc_node *node, cut c)
{
    for (uint32_t k = 0; k < nest->operand_count; k++) {
        muc_mcu_operand *operand = &nest->operands[k];
        int64_t channel = stride_at(operand, c.channels), step = stride_at(operand, c.depth);
        const muc_tensor *tensor = tensor_of(nest, node, operand);

        operand->from_row =
            tensor && is_woven(nest, operand, c, muc_mcu_most_elements(nest->l, tensor));
        for (uint32_t i = 0; i < nest->loops; i++) {
            muc_mcu_stride *stride = &operand->strides[i];

            if (step == 1 && i != c.depth && stride->factor > 0) {
                stride->factor /= extent_of(nest, c.depth);
                stride->of_depths = true;
            } else if (step != 1 && channel && i != c.channels && stride->factor >= channel) {
                stride->factor /= extent_of(nest, c.channels);
                stride->of_channels = true;
            }
        }
    }
    if (c.depth != NO_LOOP)
        nest->depth_loop = c.depth + 1;
    if (c.rows != NO_LOOP)
        nest->row_loop = c.rows + 1;
    if (c.channels != NO_LOOP)
        nest->channel_loop = c.channels + 1;
}

typedef struct choice {
    muc_mcu_tile_layer layer;
    muc_mcu_tiling tiling;
    cut cut;
    bool found;
} choice;

/* takes a way to cut the nest if it fits and is cheaper than the one chosen */
static muc_status try_cut(const muc_mcu_nest *nest, const muc_node *node, cut c, choice *best)
{
    choice next = { .cut = c };

    next.found = describe(nest, node, c, &next.layer);
    if (next.found)
        MUC_TRY(muc_mcu_find_tiles(nest->l, &next.layer, &next.tiling, &next.found));
    if (next.found && (!best->found || next.tiling.plan.cycles < best->tiling.plan.cycles))
        *best = next;
    return MUC_OK;
}

muc_status muc_mcu_nest_tile(muc_mcu_nest *nest, const muc_node *node, uint32_t loops,
                             muc_mcu_cut cuts)
{
    muc_mcu_lowering *l = nest->l;
    uint32_t first = 0, last = NO_LOOP;
    choice best = { .found = false };

    if (!muc_mcu_has_tiles(l->program->machine) || !is_fixed(nest, node))
        return MUC_OK;
    while (first < loops && extent_of(nest, first) == 1)
        first++;
    for (uint32_t i = first + 1; i < loops; i++)
        last = extent_of(nest, i) > 1 ? i : last;
    if (first >= loops)
        return MUC_OK;
    for (unsigned sums = 0; sums <= (cuts == MUC_MCU_CUT_SUMS) && !best.found; sums++) {
        uint32_t depth = sums ? nest->loops - 1 : NO_LOOP;

        MUC_TRY(try_cut(nest, node, (cut){ first, NO_LOOP, depth }, &best));
        if (cuts == MUC_MCU_CUT_ROWS)
            break;
        if (last != NO_LOOP)
            MUC_TRY(try_cut(nest, node, (cut){ first, last, depth }, &best));
        if (sums || !best.found) /* rows suit chains */
            MUC_TRY(try_cut(nest, node, (cut){ NO_LOOP, first, depth }, &best));
    }
    l->step->note = best.found ? NULL : l->note;
    l->note = NULL;
    if (!best.found)
        return MUC_OK;
    apply(nest, node, best.cut);
    return muc_mcu_begin_pieces(l, &best.layer, &best.tiling);
}

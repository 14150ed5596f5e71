/* decoder.c - the operators of a decoder, by runtime/kernels: int8 matrices and caches
 * (mur_decoder.h), bit for bit as ref computes them.
 *
 * A vector that several matrices multiply is quantized once. A matrix that is looked up and
 * multiplied lies in flash once.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "mur_bd_arith.h"
#include "mur_decoder.h"
#include "targets/mcu/decoder/decoder.h"
#include "targets/mcu/decoder/decoder_tiles.h"
#include "targets/mcu/program/c_text.h"
#include "targets/mcu/steps/step_writer.h"
#include "targets/mcu/loops/loop_nest.h"
#include "targets/mcu/program/runtime_files.h"

/* What an instruction set runs, by the set whose kernels do it, and the host's side of them. */
typedef struct decoder_isa {
    muc_mcu_isa isa;
    const char *quantize, *product, *look_up, *low_look_up, *attention;
    uint32_t element_bytes; /* of a vector */
    size_t (*matrix_bytes)(uint32_t n, uint32_t k);
    void (*matrix_pack)(uint32_t n, uint32_t k, const int8_t *q, void *packed);
    bool cuts_heads; /* keys and values of a head lie together, so that heads can be tiles */
    size_t (*attention_bytes)(const mur_attention_q8 *op);
    size_t (*low_bytes)(uint32_t bits, uint32_t n, uint32_t k);
    void (*low_pack)(uint32_t bits, uint32_t n, uint32_t k, const int8_t *levels,
                     const uint16_t *scales, void *packed);
} decoder_isa;

static const decoder_isa isas[] = {
    { MUC_MCU_ISA_NONE, "ref", "plain", "ref", "plain", "plain", 1, mur_ref_matrix_bytes,
      mur_ref_matrix_pack, true, mur_dsp_attention_bytes, mur_plain_low_bytes, mur_plain_low_pack },
    { MUC_MCU_ISA_DSP, "dsp", "dsp", "dsp", "dsp", "dsp", 2, mur_dsp_matrix_bytes,
      mur_dsp_matrix_pack, false, mur_dsp_attention_bytes, mur_dsp_low_bytes, mur_dsp_low_pack },
    { MUC_MCU_ISA_MVE, "mve", "mve", "ref", "mve", "mve", 1, mur_ref_matrix_bytes,
      mur_ref_matrix_pack, false, mur_dsp_attention_bytes, mur_mve_low_bytes, mur_mve_low_pack },
    { MUC_MCU_ISA_HOST, "host", "host", "ref", "ref", "host", 1, mur_ref_matrix_bytes,
      mur_ref_matrix_pack, true, mur_ref_attention_bytes, mur_ref_low_bytes, mur_ref_low_pack },
};

static const decoder_isa *isa_of(const muc_mcu_lowering *l)
{
    const decoder_isa *found = &isas[0];

    for (size_t i = 1; i < MUC_COUNT(isas); i++)
        if (muc_mcu_isa_suits(l->isa, isas[i].isa) > muc_mcu_isa_suits(l->isa, found->isa))
            found = &isas[i];
    return found;
}

/* ---- what rows share ---- */

bool muc_mcu_is_f32(const muc_tensor *tensor)
{
    return tensor && tensor->dtype == MUC_F32;
}

bool muc_mcu_is_known(const muc_mcu_lowering *l, const muc_tensor *tensor)
{
    const muc_mcu_lm *lm = l->program->lm;

    return tensor->kind == MUC_TENSOR_CONST && (tensor->data || (lm && lm->shapes));
}

bool muc_mcu_is_vector_of(const muc_mcu_lowering *l, const muc_tensor *tensor, uint32_t count)
{
    return muc_mcu_is_f32(tensor) && muc_mcu_is_known(l, tensor) && tensor->rank == 1 &&
           muc_mcu_dim(l, tensor, 0) == count;
}

/* i8 [n, k] around zero with a scale a row */
static bool is_matrix(const muc_mcu_lowering *l, const muc_tensor *tensor)
{
    const muc_quantization *q = tensor->quantization;

    if (!muc_mcu_is_known(l, tensor) || tensor->dtype != MUC_I8 || !q || q->axis != 0 ||
        tensor->rank != 2)
        return false;
    for (uint32_t i = 0; i < q->count; i++)
        if (q->zero_points[i] != 0)
            return false;
    for (uint64_t i = 0; i < tensor->bytes && tensor->data; i++)
        if ((int8_t)tensor->data[i] == INT8_MIN)
            return false;
    return true;
}

static float scale_of_row(const muc_tensor *tensor, uint32_t row)
{
    return tensor->quantization->scales[tensor->quantization->count > 1 ? row : 0];
}

/* How a matrix is stored. All but FORM_Q8 have 16-bit scales among their bytes (mur_low.h). */
typedef enum form { FORM_Q8, FORM_BLOCKS, FORM_Q4, FORM_Q2 } matrix_form;

static const struct {
    const char *product, *look_up;
    uint32_t bits;
} forms[] = {
    [FORM_Q8] = { "linear", "embed", 8 },
    [FORM_BLOCKS] = { "linear_bd", "embed_bd", 4 },
    [FORM_Q4] = { "linear_q4", "embed_q4", 4 },
    [FORM_Q2] = { "linear_q2", "embed_q2", 2 },
};

static bool has_half_scales(const muc_mcu_lowering *l, const muc_tensor *tensor)
{
    for (uint32_t i = 0; i < muc_mcu_dim(l, tensor, 0); i++) {
        float scale = scale_of_row(tensor, i), stored = muc_f32_of_f16(muc_f16_of_f32(scale));

        if (stored < scale || stored > scale)
            return false;
    }
    return true;
}

static bool has_blocks(const muc_mcu_lowering *l, const muc_tensor *tensor)
{
    uint32_t n = muc_mcu_dim(l, tensor, 0), k = muc_mcu_dim(l, tensor, 1);

    for (uint32_t row = 0; row < n; row++)
        for (uint32_t i = 0; i < k; i += MUR_BD_ELEMS)
            if (mur_bd_header((const int8_t *)tensor->data + (size_t)row * k + i,
                              mur_bd_count(k, i)) < 0)
                return false;
    return true;
}

static matrix_form form_of(const muc_mcu_lowering *l, const muc_tensor *tensor)
{
    bool is_odd = true;
    int most = 0;

    if (!tensor->data)
        return l->program->lm->blocks ? FORM_BLOCKS : FORM_Q8;
    for (uint64_t i = 0; i < tensor->bytes; i++) {
        int level = abs((int8_t)tensor->data[i]);

        is_odd = is_odd && level % 2 != 0;
        most = level > most ? level : most;
    }
    if (!has_half_scales(l, tensor))
        return FORM_Q8;
    if (is_odd && most <= 15)
        return most <= 3 ? FORM_Q2 : FORM_Q4;
    return has_blocks(l, tensor) ? FORM_BLOCKS : FORM_Q8;
}

muc_status muc_mcu_pass_expr(muc_mcu_lowering *l, muc_expr e)
{
    muc_text text = { 0 };
    muc_status status;

    l->program->arguments |= muc_expr_get(l->graph->pool, e)->inputs;
    muc_mcu_print_expr(l->graph->pool, e, &text);
    status = muc_text_status(l->ctx, &text);
    if (status == MUC_OK)
        status = muc_mcu_pass_text(l, "%s", text.data);
    muc_text_free(&text);
    return status;
}

static muc_status pass_value(muc_mcu_lowering *l, muc_mcu_argument_kind kind, uint32_t value,
                             muc_dtype dtype)
{
    const muc_mcu_argument argument = { .kind = kind, .value = value, .dtype = dtype };

    return muc_mcu_add_argument(l->ctx, l->program, l->step, &argument);
}

static uint32_t find_value(const muc_mcu_program *program, const char *name)
{
    for (uint32_t i = 0; i < program->value_count; i++)
        if (strcmp(program->values[i].name, name) == 0)
            return i;
    return MUC_NO_ID;
}

muc_status muc_mcu_decoder_function(muc_mcu_lowering *l, const char *isa, const char *name,
                                    const char **out)
{
    MUC_TRY(muc_arena_format(l->ctx, &l->program->arena, out, "mur_%s%s%s", isa, *isa ? "_" : "",
                             name));
    l->program->uses_decoder = true;
    return muc_mcu_need_function(l->ctx, l->program, *out);
}

static muc_status begin(muc_mcu_lowering *l, const muc_node *node, const char *isa,
                        const char *name)
{
    const char *function;

    MUC_TRY(muc_mcu_decoder_function(l, isa, name, &function));
    return muc_mcu_begin_step(l, node, function);
}

muc_status muc_mcu_begin_either(muc_mcu_lowering *l, const muc_node *node, const char *kernel,
                                const char *runner, const muc_mcu_tile_layer *layer,
                                const muc_mcu_tiling *tiling)
{
    if (!layer)
        return muc_mcu_begin_step(l, node, kernel);
    MUC_TRY(muc_mcu_need_function(l->ctx, l->program, runner));
    l->program->tiles_decoder = true;
    MUC_TRY(muc_mcu_begin_step(l, node, runner));
    MUC_TRY(muc_mcu_use_tiles(l, layer, tiling, runner));
    return muc_mcu_pass_text(l, "&%s_tiles", l->step->name);
}

muc_status muc_mcu_pass_count(muc_mcu_lowering *l, const muc_tensor *tensor)
{
    muc_expr_pool *pool = l->graph->pool;
    muc_expr count = tensor->rank ? tensor->dims[0] : muc_expr_const(pool, 1);

    for (uint32_t i = 1; i < tensor->rank; i++)
        count = muc_expr_mul(pool, count, tensor->dims[i]);
    MUC_TRY(muc_expr_status(pool));
    return muc_mcu_pass_expr(l, count);
}

/* ---- matrices ---- */

/* how rows of a matrix are packed, for some of them or all */
typedef struct packing {
    const decoder_isa *isa;
    const muc_tensor *tensor;
    matrix_form form;
    uint32_t n, k;
} packing;

/* lives as long as the program, whose tiles are sized by it */
static muc_status packing_of(muc_mcu_lowering *l, const muc_tensor *tensor, packing **out)
{
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, 1, out));
    **out = (packing){ isa_of(l), tensor, form_of(l, tensor), muc_mcu_dim(l, tensor, 0),
                       muc_mcu_dim(l, tensor, 1) };
    return MUC_OK;
}

static uint64_t packed_bytes(const void *subject, uint32_t rows)
{
    const packing *p = subject;

    switch (p->form) {
    case FORM_Q8:
        return p->isa->matrix_bytes(rows, p->k);
    case FORM_BLOCKS:
        return mur_bd_bytes(rows, p->k);
    case FORM_Q4:
    case FORM_Q2:
    default:
        return p->isa->low_bytes(forms[p->form].bits, rows, p->k);
    }
}

/* scales: room for those of as many rows, unless the form has none */
static void pack_rows(const packing *p, uint32_t first, uint32_t rows, uint16_t *scales, void *out)
{
    const int8_t *q = (const int8_t *)p->tensor->data + (size_t)first * p->k;

    if (p->form == FORM_Q8) {
        p->isa->matrix_pack(rows, p->k, q, out);
        return;
    }
    for (uint32_t i = 0; i < rows; i++)
        scales[i] = muc_f16_of_f32(scale_of_row(p->tensor, first + i));
    if (p->form == FORM_BLOCKS)
        mur_bd_pack(rows, p->k, q, scales, out);
    else
        p->isa->low_pack(forms[p->form].bits, rows, p->k, q, scales, out);
}

/* The packed matrix as a constant of the program, in parts of so many rows if it is cut. */
static muc_status add_packed(muc_mcu_lowering *l, const packing *p, const mur_tiles *tiles,
                             const char *name)
{
    uint32_t part = tiles ? tiles->part : p->n, parts = (p->n + part - 1) / part, id;
    uint64_t part_bytes =
        tiles ? tiles->operands[MUC_MCU_PRODUCT_PACKED].part_bytes : packed_bytes(p, p->n);
    muc_mcu_value value = {
        .kind = MUC_MCU_CONST,
        .name = name,
        .tensor = p->tensor,
        .view_of = MUC_NO_ID,
        .bytes = parts * part_bytes,
        .used = true,
    };
    uint16_t *scales;
    uint8_t *data;

    if (!p->tensor->data)
        return muc_mcu_add_value(l->ctx, l->program, &value, &id);
    MUC_TRY(muc_arena_new(l->ctx, &l->program->arena, value.bytes, 1, (void **)&data));
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, part, &scales));
    memset(data, 0, value.bytes);
    for (uint32_t i = 0; i < parts; i++)
        pack_rows(p, i * part, p->n - i * part < part ? p->n - i * part : part, scales,
                  data + i * part_bytes);
    value.data = data;
    return muc_mcu_add_value(l->ctx, l->program, &value, &id);
}

/* "static const float NAME[] = { .. };" */
static void define_floats(muc_mcu_lowering *l, const char *name, const float *values,
                          uint32_t count)
{
    muc_text_add(&l->text, "static const float %s[%" PRIu32 "] = {", name, count);
    for (uint32_t i = 0; i < count; i++) {
        muc_text_add(&l->text, i % 6 ? " " : "\n    ");
        muc_mcu_print_real(&l->text, (double)values[i], false);
        muc_text_add(&l->text, ",");
    }
    muc_text_add(&l->text, "\n};\n");
}

static muc_status define_scales(muc_mcu_lowering *l, const muc_tensor *tensor, const char *name)
{
    uint32_t n = muc_mcu_dim(l, tensor, 0);
    float *scales;

    l->program->table_bytes += n * sizeof(*scales);
    if (!tensor->data)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, n, &scales));
    for (uint32_t i = 0; i < n; i++)
        scales[i] = scale_of_row(tensor, i);
    define_floats(l, name, scales, n);
    return MUC_OK;
}

/* A packed matrix whose rows follow one another gets zeros up to whole parts. */
static muc_status fill_parts(muc_mcu_lowering *l, uint32_t rows, const mur_tiles *tiles,
                             muc_mcu_value *value)
{
    uint64_t bytes = (rows + tiles->part - 1) / tiles->part *
                     (uint64_t)tiles->operands[MUC_MCU_PRODUCT_PACKED].part_bytes;
    uint8_t *data;

    if (bytes <= value->bytes)
        return MUC_OK;
    if (value->data) {
        MUC_TRY(muc_arena_new(l->ctx, &l->program->arena, bytes, 1, (void **)&data));
        memcpy(data, value->data, value->bytes);
        memset(data + value->bytes, 0, bytes - value->bytes);
        value->data = data;
    }
    value->bytes = bytes;
    return MUC_OK;
}

/* Passes the descriptor of input 1 as a matrix, cut if there are tiles; what it needs is defined
 * where it is used first. */
static muc_status pass_matrix(muc_mcu_lowering *l, const muc_node *node, const packing *p,
                              const mur_tiles *tiles)
{
    const muc_tensor *bias = NULL;
    uint32_t id = node->inputs[1], value, bias_value;
    bool is_q8 = p->form == FORM_Q8;
    const char *packed, *scales;

    if (node->op == MUC_OP_LINEAR)
        bias = muc_mcu_input(l, node, 2);
    MUC_TRY(muc_arena_format(l->ctx, &l->program->arena, &packed, "w%" PRIu32 "_packed", id));
    MUC_TRY(muc_arena_format(l->ctx, &l->program->arena, &scales, "w%" PRIu32 "_scales", id));
    value = find_value(l->program, packed);
    if (value == MUC_NO_ID) {
        MUC_TRY(add_packed(l, p, tiles, packed));
        if (is_q8)
            MUC_TRY(define_scales(l, p->tensor, scales));
        l->program->weights += (uint64_t)p->n * p->k;
        l->program->weight_bytes += packed_bytes(p, p->n) + (is_q8 ? p->n * sizeof(float) : 0);
    } else if (tiles) {
        MUC_TRY(fill_parts(l, p->n, tiles, &l->program->values[value]));
    }
    if (p->form == FORM_BLOCKS) /* where the levels are */
        MUC_TRY(muc_mcu_need_function(l->ctx, l->program, "mur_ref_embed_bd"));
    l->step->packed_bytes = packed_bytes(p, p->n) + (is_q8 ? p->n * sizeof(float) : 0);
    muc_text_add(&l->text,
                 "static const mur_matrix_%s %s_matrix = { %" PRIu32 ", %" PRIu32 ", %s, ",
                 is_q8 ? "q8" : "low", l->step->name, p->n, p->k, packed);
    if (is_q8)
        muc_text_add(&l->text, "%s, ", scales);
    if (bias) {
        MUC_TRY(muc_mcu_input_value(l, node, 2, &bias_value));
        l->program->values[bias_value].used = true;
        muc_text_add(&l->text, "%s };\n\n", l->program->values[bias_value].name);
    } else {
        muc_text_add(&l->text, "NULL };\n\n");
    }
    return muc_mcu_pass_text(l, "&%s_matrix", l->step->name);
}

/* Input 0 as vectors and scales, by a step of their own unless an earlier one made them. */
static muc_status quantize_input(muc_mcu_lowering *l, const muc_node *node, uint32_t values[2])
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    uint32_t k = muc_mcu_dim(l, x, x->rank - 1), from;
    uint64_t rows = muc_mcu_most_elements(l, x) / k;
    const decoder_isa *isa = isa_of(l);
    muc_mcu_value parts[] = {
        { .bytes = rows * MUR_REF_VECTOR_BYTES(k) * isa->element_bytes },
        { .bytes = rows * sizeof(float) },
    };
    const char *function;

    for (unsigned i = 0; i < 2; i++) {
        parts[i].kind = MUC_MCU_ACTIVATION;
        parts[i].view_of = MUC_NO_ID;
        MUC_TRY(muc_arena_format(l->ctx, &l->program->arena, &parts[i].name, "t%" PRIu32 "_%s",
                                 node->inputs[0], i ? "scales" : "vectors"));
        values[i] = find_value(l->program, parts[i].name);
    }
    if (values[0] != MUC_NO_ID)
        return MUC_OK;
    for (unsigned i = 0; i < 2; i++)
        MUC_TRY(muc_mcu_add_value(l->ctx, l->program, &parts[i], &values[i]));
    MUC_TRY(muc_mcu_input_value(l, node, 0, &from));
    MUC_TRY(muc_mcu_decoder_function(l, isa->quantize, "quantize", &function));
    MUC_TRY(muc_mcu_add_step(l->ctx, l->program, NULL, &l->step));
    l->step->function = function;
    l->step->text = "";
    MUC_TRY(muc_mcu_pass_expr(l, x->dims[0]));
    MUC_TRY(muc_mcu_pass_text(l, "%" PRIu32 "u", k));
    MUC_TRY(pass_value(l, MUC_MCU_READ, from, MUC_F32));
    MUC_TRY(pass_value(l, MUC_MCU_WORKING, values[0], MUC_U8));
    return pass_value(l, MUC_MCU_WRITE, values[1], MUC_F32);
}

bool muc_mcu_takes_linear_q8(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *w = muc_mcu_input(l, node, 1);
    const muc_tensor *bias = muc_mcu_input(l, node, 2);

    return muc_mcu_is_f32(x) && x->rank == 2 && is_matrix(l, w) &&
           (!bias || muc_mcu_is_vector_of(l, bias, muc_mcu_dim(l, w, 0)));
}

/* do others use the matrix, too? */
static bool is_shared(const muc_mcu_lowering *l, uint32_t tensor)
{
    uint32_t uses = 0;

    for (uint32_t n = 0; n < l->graph->node_count; n++)
        for (uint32_t i = 0; i < l->graph->nodes[n].input_count; i++)
            uses += l->graph->nodes[n].inputs[i] == tensor;
    return uses > 1;
}

/* Tiles of a product, if the machine has any and they fit. Each part of a matrix is packed as one
 * of its own: where the whole is used, too, that must come to the same. */
static muc_status find_product_tiles(muc_mcu_lowering *l, const muc_node *node, const packing *p,
                                     muc_mcu_tile_layer *layer, muc_mcu_tiling *tiling, bool *fits)
{
    enum { TOGETHER = 4, LOW_TOGETHER = 16 }; /* rows in the kernels */
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    const muc_expr_node *rows = muc_expr_get(l->graph->pool, x->dims[0]);
    muc_mcu_product product = {
        .rows = rows->hi,
        .n = p->n,
        .k = p->k,
        .multiple = p->form == FORM_Q8 ? TOGETHER : LOW_TOGETHER,
        .vector_bytes = MUR_REF_VECTOR_BYTES(p->k) * p->isa->element_bytes,
        .has_scales = p->form == FORM_Q8,
        .has_bias = muc_mcu_input(l, node, 2) != NULL,
        .packed_bytes = packed_bytes,
        .subject = p,
    };
    bool follow = p->form == FORM_Q8 && p->isa->matrix_bytes == mur_ref_matrix_bytes;

    *fits = muc_mcu_has_tiles(l->program->machine) && rows->lo > 0 &&
            (follow || !is_shared(l, node->inputs[1]));
    while (follow && (uint64_t)product.multiple * p->k % MUC_MCU_ALIGNMENT != 0)
        product.multiple *= 2;
    *layer = muc_mcu_product_layer(node->name, &product);
    return *fits ? muc_mcu_find_tiles(l, layer, tiling, fits) : MUC_OK;
}

muc_status muc_mcu_write_linear_q8(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *w = muc_mcu_input(l, node, 1);
    const char *kernel, *runner;
    muc_mcu_tile_layer layer;
    muc_mcu_tiling tiling;
    uint32_t vectors[2];
    packing *p;
    bool fits;

    MUC_TRY(packing_of(l, w, &p));
    runner = p->form == FORM_Q8 ? "mur_tiles_linear" : "mur_tiles_linear_low";
    MUC_TRY(quantize_input(l, node, vectors));
    MUC_TRY(muc_mcu_decoder_function(l, p->isa->product, forms[p->form].product, &kernel));
    MUC_TRY(find_product_tiles(l, node, p, &layer, &tiling, &fits));
    MUC_TRY(muc_mcu_begin_either(l, node, kernel, runner, fits ? &layer : NULL, &tiling));
    MUC_TRY(pass_matrix(l, node, p, fits ? &tiling.tiles : NULL));
    if (fits)
        MUC_TRY(muc_mcu_pass_text(l, "%s", kernel));
    MUC_TRY(muc_mcu_pass_expr(l, x->dims[0]));
    MUC_TRY(pass_value(l, MUC_MCU_READ, vectors[0], MUC_U8));
    MUC_TRY(pass_value(l, MUC_MCU_READ, vectors[1], MUC_F32));
    MUC_TRY(muc_mcu_pass_output(l, 0));
    if (fits)
        MUC_TRY(muc_mcu_pass_text(l, "tile_memory"));
    return muc_mcu_end_step(l, w->bytes * muc_expr_get(l->graph->pool, x->dims[0])->hi);
}

bool muc_mcu_takes_embed_q8(const muc_mcu_lowering *l, const muc_node *node)
{
    return muc_mcu_input(l, node, 0)->dtype == MUC_I32 && is_matrix(l, muc_mcu_input(l, node, 1));
}

muc_status muc_mcu_write_embed_q8(muc_mcu_lowering *l, const muc_node *node)
{
    packing *p;

    MUC_TRY(packing_of(l, muc_mcu_input(l, node, 1), &p));
    MUC_TRY(begin(l, node,
                  p->form == FORM_Q8       ? p->isa->look_up
                  : p->form == FORM_BLOCKS ? "ref"
                                           : p->isa->low_look_up,
                  forms[p->form].look_up));
    MUC_TRY(pass_matrix(l, node, p, NULL));
    /* a row a token */
    l->step->packed_bytes =
        l->step->packed_bytes / p->n * muc_mcu_most_elements(l, muc_mcu_input(l, node, 0));
    MUC_TRY(muc_mcu_pass_expr(l, muc_mcu_input(l, node, 0)->dims[0]));
    MUC_TRY(muc_mcu_pass_input(l, 0));
    MUC_TRY(muc_mcu_pass_output(l, 0));
    return muc_mcu_end_step(l, 0);
}

/* ---- attention ---- */

static mur_attention_q8 attention_of(const muc_mcu_lowering *l, const muc_node *node)
{
    return (mur_attention_q8){
        .heads = (uint32_t)muc_node_integer(node, MUC_KEY_HEADS),
        .kv_heads = (uint32_t)muc_node_integer(node, MUC_KEY_KV_HEADS),
        .width = (uint32_t)muc_node_integer(node, MUC_KEY_HEAD_DIM),
        .context = (muc_mcu_dim(l, muc_mcu_input(l, node, 3), 0) + 7) / 8 * 8,
        .scale = (float)muc_node_real(node, MUC_KEY_SCALE),
        .seen = (uint32_t)muc_node_integer_or(node, MUC_KEY_SEEN, 0),
        .cap = (float)muc_node_real_or(node, MUC_KEY_CAP, 0),
    };
}

bool muc_mcu_takes_attention_q8(const muc_mcu_lowering *l, const muc_node *node)
{
    mur_attention_q8 op = attention_of(l, node);

    return node->input_count == 7 && op.width % 2 == 0 && op.width <= 512 && op.context <= 65536;
}

/* caches are in the instruction set's own form, for positions up to a multiple of 8 */
static muc_status pass_cache(muc_mcu_lowering *l, const muc_node *node, uint32_t input,
                             uint64_t bytes)
{
    uint32_t value;

    MUC_TRY(muc_mcu_input_value(l, node, input, &value));
    l->program->values[value].bytes = bytes;
    return pass_value(l, MUC_MCU_WORKING, value, MUC_U8);
}

/* Tiles of heads; tokens are computed in order, so one head of keys is for one core. */
static muc_status find_attention_tiles(muc_mcu_lowering *l, const muc_node *node,
                                       const mur_attention_q8 *op, muc_mcu_tile_layer *layer,
                                       muc_mcu_tiling *tiling, bool *fits)
{
    const muc_expr_node *rows = muc_expr_get(l->graph->pool, muc_mcu_input(l, node, 0)->dims[0]);

    *layer = muc_mcu_attention_layer(node->name, op, rows->hi, isa_of(l)->attention_bytes(op));
    *fits = muc_mcu_has_tiles(l->program->machine) && rows->lo > 0 && op->kv_heads > 1 &&
            isa_of(l)->cuts_heads;
    if (*fits)
        MUC_TRY(muc_mcu_find_tiles(l, layer, tiling, fits));
    *fits = *fits && tiling->tiles.parts > 1;
    return MUC_OK;
}

muc_status muc_mcu_write_attention_q8(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *q = muc_mcu_input(l, node, 0);
    mur_attention_q8 op = attention_of(l, node);
    uint64_t rows = muc_expr_get(l->graph->pool, q->dims[0])->hi;
    static const char cap_scores[] = "mur_cap_scores";
    const char *kernel;
    muc_mcu_tile_layer layer;
    muc_mcu_tiling tiling;
    bool fits;

    MUC_TRY(muc_mcu_decoder_function(l, isa_of(l)->attention, "attention", &kernel));
    MUC_TRY(muc_mcu_need_function(l->ctx, l->program, "mur_attend"));
    if (op.cap > 0)
        MUC_TRY(muc_mcu_need_function(l->ctx, l->program, cap_scores));
    MUC_TRY(find_attention_tiles(l, node, &op, &layer, &tiling, &fits));
    MUC_TRY(muc_mcu_begin_either(l, node, kernel, "mur_tiles_attention", fits ? &layer : NULL,
                                 &tiling));
    muc_text_add(&l->text,
                 "static const mur_attention_q8 %s_heads = { %" PRIu32 ", %" PRIu32 ", %" PRIu32
                 ", %" PRIu32 ", ",
                 l->step->name, op.heads, op.kv_heads, op.width, op.context);
    muc_mcu_print_real(&l->text, (double)op.scale, false);
    muc_text_add(&l->text, ", %" PRIu32 ", ", op.seen);
    muc_mcu_print_real(&l->text, (double)op.cap, false);
    muc_text_add(&l->text, ", %s };\n\n", op.cap > 0 ? cap_scores : "NULL");
    MUC_TRY(muc_mcu_pass_text(l, "&%s_heads", l->step->name));
    if (fits)
        MUC_TRY(muc_mcu_pass_text(l, "%s", kernel));
    MUC_TRY(muc_mcu_pass_expr(l, muc_node_expr(node, MUC_KEY_POSITION)));
    MUC_TRY(muc_mcu_pass_expr(l, q->dims[0]));
    for (uint32_t i = 0; i < 3; i++)
        MUC_TRY(muc_mcu_pass_input(l, i));
    for (uint32_t i = 3; i < 7; i++)
        MUC_TRY(pass_cache(l, node, i,
                           i < 5 ? MUR_CACHE_BYTES(&op) : op.kv_heads * MUR_SCALES_BYTES(&op)));
    MUC_TRY(muc_mcu_pass_output(l, 0));
    if (fits)
        MUC_TRY(muc_mcu_pass_text(l, "tile_memory"));
    else
        MUC_TRY(muc_mcu_pass_scratch(l, isa_of(l)->attention_bytes(&op)));
    muc_mcu_may_overlap(l, 0, 0);
    return muc_mcu_end_step(l, 2 * rows * op.heads * op.context * op.width);
}

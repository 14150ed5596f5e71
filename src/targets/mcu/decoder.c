/* decoder.c - the operators of a decoder, by runtime/kernels: int8 matrices and caches
 * (mur_decoder.h), and binary32 between them in the runtime's own arithmetic, bit for bit ref's.
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
#include "targets/mcu/emit.h"
#include "targets/mcu/lower.h"
#include "targets/mcu/nest.h"
#include "targets/mcu/runtime.h"
#include "targets/mcu/tiles.h"

/* What an instruction set runs, by the set whose kernels do it, and the host's side of them. */
typedef struct decoder_isa {
    muc_mcu_isa isa;
    const char *quantize, *product, *look_up, *attention;
    const char *attention_helper; /* what attention calls and has in another file, or NULL */
    uint32_t element_bytes;       /* of a vector */
    size_t (*matrix_bytes)(uint32_t n, uint32_t k);
    void (*matrix_pack)(uint32_t n, uint32_t k, const int8_t *q, void *packed);
    size_t (*attention_bytes)(const mur_attention_q8 *op);
    size_t (*low_bytes)(uint32_t bits, uint32_t n, uint32_t k);
    void (*low_pack)(uint32_t bits, uint32_t n, uint32_t k, const int8_t *levels,
                     const uint16_t *scales, void *packed);
} decoder_isa;

static const decoder_isa isas[] = {
    { MUC_MCU_ISA_NONE, "ref", "ref", "ref", "ref", NULL, 1, mur_ref_matrix_bytes,
      mur_ref_matrix_pack, mur_ref_attention_bytes, mur_ref_low_bytes, mur_ref_low_pack },
    { MUC_MCU_ISA_DSP, "dsp", "dsp", "dsp", "dsp", "mur_dsp_quantize_one", 2, mur_dsp_matrix_bytes,
      mur_dsp_matrix_pack, mur_dsp_attention_bytes, mur_dsp_low_bytes, mur_dsp_low_pack },
    /* Armv8.1-M has Armv7E-M's instructions too */
    { MUC_MCU_ISA_MVE, "mve", "mve", "ref", "dsp", "mur_dsp_quantize_one", 1, mur_ref_matrix_bytes,
      mur_ref_matrix_pack, mur_dsp_attention_bytes, mur_mve_low_bytes, mur_mve_low_pack },
    { MUC_MCU_ISA_RV, "ref", "rv", "ref", "ref", NULL, 1, mur_ref_matrix_bytes, mur_ref_matrix_pack,
      mur_ref_attention_bytes, mur_rv_low_bytes, mur_rv_low_pack },
};

static const decoder_isa *isa_of(const muc_mcu_lowering *l)
{
    for (size_t i = 1; i < MUC_COUNT(isas); i++)
        if (isas[i].isa == l->isa)
            return &isas[i];
    return &isas[0];
}

/* ---- what rows share ---- */

static bool is_f32(const muc_tensor *tensor)
{
    return tensor && tensor->dtype == MUC_F32;
}

static bool is_vector_of(const muc_mcu_lowering *l, const muc_tensor *tensor, uint32_t count)
{
    return is_f32(tensor) && tensor->kind == MUC_TENSOR_CONST && tensor->data &&
           tensor->rank == 1 && muc_mcu_dim(l, tensor, 0) == count;
}

/* i8 [n, k] around zero with a scale a row */
static bool is_matrix(const muc_tensor *tensor)
{
    const muc_quantization *q = tensor->quantization;

    if (tensor->kind != MUC_TENSOR_CONST || tensor->dtype != MUC_I8 || !tensor->data || !q ||
        q->axis != 0 || tensor->rank != 2)
        return false;
    for (uint32_t i = 0; i < q->count; i++)
        if (q->zero_points[i] != 0)
            return false;
    for (uint64_t i = 0; i < tensor->bytes; i++)
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

/* rows of a tensor of columns, as C; its inputs become arguments of the run */
static muc_status pass_expr(muc_mcu_lowering *l, muc_expr e)
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

/* "mur_dsp_linear" */
static muc_status function_of(muc_mcu_lowering *l, const char *isa, const char *name,
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

    MUC_TRY(function_of(l, isa, name, &function));
    return muc_mcu_begin_step(l, node, function);
}

/* elements of a tensor whose columns are fixed: "m * 64u" */
static muc_status pass_count(muc_mcu_lowering *l, const muc_tensor *tensor)
{
    muc_expr_pool *pool = l->graph->pool;
    muc_expr count = tensor->rank ? tensor->dims[0] : muc_expr_const(pool, 1);

    for (uint32_t i = 1; i < tensor->rank; i++)
        count = muc_expr_mul(pool, count, tensor->dims[i]);
    MUC_TRY(muc_expr_status(pool));
    return pass_expr(l, count);
}

/* ---- matrices ---- */

/* the tensor's packed bytes as a constant of the program */
static muc_status add_packed(muc_mcu_lowering *l, const muc_tensor *tensor, const char *name)
{
    const decoder_isa *isa = isa_of(l);
    uint32_t n = muc_mcu_dim(l, tensor, 0), k = muc_mcu_dim(l, tensor, 1), id;
    muc_mcu_value value = {
        .kind = MUC_MCU_CONST,
        .name = name,
        .tensor = tensor,
        .view_of = MUC_NO_ID,
        .bytes = isa->matrix_bytes(n, k),
        .used = true,
    };
    uint8_t *data;

    MUC_TRY(muc_arena_new(l->ctx, &l->program->arena, value.bytes, 1, (void **)&data));
    isa->matrix_pack(n, k, (const int8_t *)tensor->data, data);
    value.data = data;
    return muc_mcu_add_value(l->ctx, l->program, &value, &id);
}

/* of another form than FORM_Q8 */
static size_t low_bytes(const muc_mcu_lowering *l, matrix_form form, uint32_t n, uint32_t k)
{
    return form == FORM_BLOCKS ? mur_bd_bytes(n, k) : isa_of(l)->low_bytes(forms[form].bits, n, k);
}

/* the same of such a matrix, its scales among the bytes */
static muc_status add_packed_low(muc_mcu_lowering *l, const muc_tensor *tensor, matrix_form form,
                                 const char *name)
{
    const decoder_isa *isa = isa_of(l);
    uint32_t n = muc_mcu_dim(l, tensor, 0), k = muc_mcu_dim(l, tensor, 1), id;
    muc_mcu_value value = {
        .kind = MUC_MCU_CONST,
        .name = name,
        .tensor = tensor,
        .view_of = MUC_NO_ID,
        .bytes = low_bytes(l, form, n, k),
        .used = true,
    };
    uint16_t *scales;
    uint8_t *data;

    MUC_TRY(muc_arena_new(l->ctx, &l->program->arena, value.bytes, 1, (void **)&data));
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, n, &scales));
    for (uint32_t i = 0; i < n; i++)
        scales[i] = muc_f16_of_f32(scale_of_row(tensor, i));
    if (form == FORM_BLOCKS)
        mur_bd_pack(n, k, (const int8_t *)tensor->data, scales, data);
    else
        isa->low_pack(forms[form].bits, n, k, (const int8_t *)tensor->data, scales, data);
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

    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, n, &scales));
    for (uint32_t i = 0; i < n; i++)
        scales[i] = scale_of_row(tensor, i);
    define_floats(l, name, scales, n);
    l->program->table_bytes += n * sizeof(*scales);
    return MUC_OK;
}

/* Passes the descriptor of input 1 as a matrix; what it needs is defined where it is used first. */
static muc_status pass_matrix(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *tensor = muc_mcu_input(l, node, 1), *bias = NULL;
    uint32_t id = node->inputs[1], bias_value;
    matrix_form form = form_of(l, tensor);
    uint32_t n = muc_mcu_dim(l, tensor, 0), k = muc_mcu_dim(l, tensor, 1);
    const char *packed, *scales;
    bool is_new;

    if (node->op == MUC_OP_LINEAR)
        bias = muc_mcu_input(l, node, 2);
    MUC_TRY(muc_arena_format(l->ctx, &l->program->arena, &packed, "w%" PRIu32 "_packed", id));
    MUC_TRY(muc_arena_format(l->ctx, &l->program->arena, &scales, "w%" PRIu32 "_scales", id));
    is_new = find_value(l->program, packed) == MUC_NO_ID;
    if (is_new && form != FORM_Q8)
        MUC_TRY(add_packed_low(l, tensor, form, packed));
    if (form == FORM_BLOCKS) /* where the levels are */
        MUC_TRY(muc_mcu_need_function(l->ctx, l->program, "mur_ref_embed_bd"));
    if (is_new && form == FORM_Q8) {
        MUC_TRY(add_packed(l, tensor, packed));
        MUC_TRY(define_scales(l, tensor, scales));
    }
    l->step->packed_bytes = form != FORM_Q8 ? low_bytes(l, form, n, k)
                                            : isa_of(l)->matrix_bytes(n, k) + n * sizeof(float);
    muc_text_add(&l->text,
                 "static const mur_matrix_%s %s_matrix = { %" PRIu32 ", %" PRIu32 ", %s, ",
                 form != FORM_Q8 ? "low" : "q8", l->step->name, n, k, packed);
    if (form == FORM_Q8)
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
    MUC_TRY(function_of(l, isa->quantize, "quantize", &function));
    MUC_TRY(muc_mcu_add_step(l->ctx, l->program, NULL, "quantize", &l->step));
    l->step->function = function;
    l->step->text = "";
    MUC_TRY(pass_expr(l, x->dims[0]));
    MUC_TRY(muc_mcu_pass_text(l, "%" PRIu32 "u", k));
    MUC_TRY(pass_value(l, MUC_MCU_READ, from, MUC_F32));
    MUC_TRY(pass_value(l, MUC_MCU_WORKING, values[0], MUC_U8));
    return pass_value(l, MUC_MCU_WRITE, values[1], MUC_F32);
}

bool muc_mcu_takes_linear_q8(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *w = muc_mcu_input(l, node, 1);
    const muc_tensor *bias = muc_mcu_input(l, node, 2);

    return is_f32(x) && x->rank == 2 && is_matrix(w) &&
           (!bias || is_vector_of(l, bias, muc_mcu_dim(l, w, 0)));
}

muc_status muc_mcu_write_linear_q8(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *w = muc_mcu_input(l, node, 1);
    uint32_t vectors[2];

    MUC_TRY(quantize_input(l, node, vectors));
    MUC_TRY(begin(l, node, isa_of(l)->product, forms[form_of(l, w)].product));
    MUC_TRY(pass_matrix(l, node));
    MUC_TRY(pass_expr(l, x->dims[0]));
    MUC_TRY(pass_value(l, MUC_MCU_READ, vectors[0], MUC_U8));
    MUC_TRY(pass_value(l, MUC_MCU_READ, vectors[1], MUC_F32));
    MUC_TRY(muc_mcu_pass_output(l, 0));
    return muc_mcu_end_step(l, w->bytes * muc_expr_get(l->graph->pool, x->dims[0])->hi);
}

bool muc_mcu_takes_embed_q8(const muc_mcu_lowering *l, const muc_node *node)
{
    return muc_mcu_input(l, node, 0)->dtype == MUC_I32 && is_matrix(muc_mcu_input(l, node, 1));
}

muc_status muc_mcu_write_embed_q8(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *matrix = muc_mcu_input(l, node, 1);
    const decoder_isa *isa = isa_of(l);
    uint32_t rows = muc_mcu_dim(l, matrix, 0);
    matrix_form form = form_of(l, matrix);

    MUC_TRY(begin(l, node,
                  form == FORM_Q8       ? isa->look_up
                  : form == FORM_BLOCKS ? "ref"
                                        : isa->product,
                  forms[form].look_up));
    MUC_TRY(pass_matrix(l, node));
    /* a row a token */
    l->step->packed_bytes =
        l->step->packed_bytes / rows * muc_mcu_most_elements(l, muc_mcu_input(l, node, 0));
    MUC_TRY(pass_expr(l, muc_mcu_input(l, node, 0)->dims[0]));
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
        .context = (muc_mcu_dim(l, muc_mcu_input(l, node, 3), 0) + 3) / 4 * 4,
        .scale = (float)muc_node_real(node, MUC_KEY_SCALE),
    };
}

bool muc_mcu_takes_attention_q8(const muc_mcu_lowering *l, const muc_node *node)
{
    mur_attention_q8 op = attention_of(l, node);

    return node->input_count == 7 && op.width % 2 == 0 && op.width <= 512 && op.context <= 65536;
}

/* caches are in the instruction set's own form, for positions up to a multiple of 4 */
static muc_status pass_cache(muc_mcu_lowering *l, const muc_node *node, uint32_t input,
                             uint64_t bytes)
{
    bool is_scales = input >= 5;
    uint32_t value;

    MUC_TRY(muc_mcu_input_value(l, node, input, &value));
    l->program->values[value].bytes = bytes;
    return pass_value(l, is_scales ? MUC_MCU_WRITE : MUC_MCU_WORKING, value, MUC_F32);
}

muc_status muc_mcu_write_attention_q8(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *q = muc_mcu_input(l, node, 0);
    mur_attention_q8 op = attention_of(l, node);
    uint64_t rows = muc_expr_get(l->graph->pool, q->dims[0])->hi;

    MUC_TRY(begin(l, node, isa_of(l)->attention, "attention"));
    if (isa_of(l)->attention_helper)
        MUC_TRY(muc_mcu_need_function(l->ctx, l->program, isa_of(l)->attention_helper));
    muc_text_add(&l->text,
                 "static const mur_attention_q8 %s_heads = { %" PRIu32 ", %" PRIu32 ", %" PRIu32
                 ", %" PRIu32 ", ",
                 l->step->name, op.heads, op.kv_heads, op.width, op.context);
    muc_mcu_print_real(&l->text, (double)op.scale, false);
    muc_text_add(&l->text, " };\n\n");
    MUC_TRY(muc_mcu_pass_text(l, "&%s_heads", l->step->name));
    MUC_TRY(pass_expr(l, muc_node_expr(node, MUC_KEY_POSITION)));
    MUC_TRY(pass_expr(l, q->dims[0]));
    for (uint32_t i = 0; i < 3; i++)
        MUC_TRY(muc_mcu_pass_input(l, i));
    for (uint32_t i = 3; i < 7; i++)
        MUC_TRY(pass_cache(l, node, i,
                           i < 5 ? MUR_CACHE_BYTES(&op)
                                 : (uint64_t)op.kv_heads * op.context * sizeof(float)));
    MUC_TRY(muc_mcu_pass_output(l, 0));
    MUC_TRY(muc_mcu_pass_scratch(l, isa_of(l)->attention_bytes(&op)));
    muc_mcu_may_overlap(l, 0, 0);
    return muc_mcu_end_step(l, 2 * rows * op.heads * op.context * op.width);
}

/* ---- binary32 ---- */

/* columns that are normalised together, or 0 */
static uint32_t norm_width(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    const muc_attribute *group = muc_node_attribute(node, MUC_KEY_GROUP);

    if (x->rank != 2 || muc_node_integer_or(node, MUC_KEY_AXIS, 1) != 1)
        return 0;
    return group ? (uint32_t)group->value.integer : muc_mcu_dim(l, x, 1);
}

bool muc_mcu_takes_rms_norm_f32(const muc_mcu_lowering *l, const muc_node *node)
{
    uint32_t width = norm_width(l, node);

    return is_f32(muc_mcu_input(l, node, 0)) && width &&
           is_vector_of(l, muc_mcu_input(l, node, 1), width);
}

static muc_status write_norm(muc_mcu_lowering *l, const muc_node *node, const char *function)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    muc_expr_pool *pool = l->graph->pool;
    uint32_t width = norm_width(l, node);
    muc_text epsilon = { 0 };
    muc_status status;

    MUC_TRY(begin(l, node, "", function));
    for (uint32_t i = 1; i < node->input_count; i++)
        MUC_TRY(muc_mcu_pass_input(l, i));
    muc_mcu_print_real(&epsilon, (double)(float)muc_node_real(node, MUC_KEY_EPSILON), false);
    status = muc_text_status(l->ctx, &epsilon);
    if (status == MUC_OK)
        status = muc_mcu_pass_text(l, "%s", epsilon.data);
    muc_text_free(&epsilon);
    MUC_TRY(status);
    MUC_TRY(pass_expr(
        l, muc_expr_mul(pool, x->dims[0], muc_expr_const(pool, muc_mcu_dim(l, x, 1) / width))));
    MUC_TRY(muc_mcu_pass_text(l, "%" PRIu32 "u", width));
    MUC_TRY(muc_mcu_pass_input(l, 0));
    MUC_TRY(muc_mcu_pass_output(l, 0));
    muc_mcu_may_overlap(l, 0, 0);
    return muc_mcu_end_step(l, 0);
}

muc_status muc_mcu_write_rms_norm_f32(muc_mcu_lowering *l, const muc_node *node)
{
    return write_norm(l, node, "rms_norm_f32");
}

bool muc_mcu_takes_layer_norm_f32(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *bias = muc_mcu_input(l, node, 2);
    uint32_t width = x->rank == 2 ? muc_mcu_dim(l, x, 1) : 0;

    return is_f32(x) && x->rank == 2 && muc_node_integer(node, MUC_KEY_AXIS) == 1 && bias &&
           node->output_count == 1 && !muc_mcu_has_tiles(l->program->machine) &&
           is_vector_of(l, muc_mcu_input(l, node, 1), width) && is_vector_of(l, bias, width);
}

muc_status muc_mcu_write_layer_norm_f32(muc_mcu_lowering *l, const muc_node *node)
{
    return write_norm(l, node, "layer_norm_f32");
}

bool muc_mcu_takes_rope_f32(const muc_mcu_lowering *l, const muc_node *node)
{
    for (uint32_t i = 1; i < 3; i++) {
        const muc_tensor *table = muc_mcu_input(l, node, i);

        if (!is_f32(table) || table->kind != MUC_TENSOR_CONST || !table->data)
            return false;
    }
    return true;
}

muc_status muc_mcu_write_rope_f32(muc_mcu_lowering *l, const muc_node *node)
{
    MUC_TRY(begin(l, node, "", "rope_f32"));
    MUC_TRY(muc_mcu_pass_input(l, 1));
    MUC_TRY(muc_mcu_pass_input(l, 2));
    MUC_TRY(pass_expr(l, muc_node_expr(node, MUC_KEY_POSITION)));
    MUC_TRY(pass_expr(l, muc_mcu_input(l, node, 0)->dims[0]));
    MUC_TRY(muc_mcu_pass_text(l, "%" PRId64 "u", muc_node_integer(node, MUC_KEY_HEADS)));
    MUC_TRY(muc_mcu_pass_text(l, "%" PRId64 "u", muc_node_integer(node, MUC_KEY_HEAD_DIM)));
    MUC_TRY(muc_mcu_pass_input(l, 0));
    MUC_TRY(muc_mcu_pass_output(l, 0));
    muc_mcu_may_overlap(l, 0, 0);
    return muc_mcu_end_step(l, 0);
}

bool muc_mcu_takes_silu_f32(const muc_mcu_lowering *l, const muc_node *node)
{
    return is_f32(muc_mcu_input(l, node, 0)) && muc_node_real_or(node, MUC_KEY_ALPHA, 1) == 1;
}

muc_status muc_mcu_write_silu_f32(muc_mcu_lowering *l, const muc_node *node)
{
    MUC_TRY(begin(l, node, "", "silu_f32"));
    MUC_TRY(pass_count(l, muc_mcu_input(l, node, 0)));
    MUC_TRY(muc_mcu_pass_input(l, 0));
    MUC_TRY(muc_mcu_pass_output(l, 0));
    muc_mcu_may_overlap(l, 0, 0);
    return muc_mcu_end_step(l, 0);
}

/* a and b of one shape, each computed at run time */
bool muc_mcu_takes_pair_f32(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *a = muc_mcu_input(l, node, 0), *b = muc_mcu_input(l, node, 1);

    return is_f32(a) && a->rank == b->rank && a->kind != MUC_TENSOR_CONST &&
           b->kind != MUC_TENSOR_CONST &&
           !muc_mcu_has_tiles(l->program->machine) && /* where the loops of others work in tiles */
           memcmp(a->dims, b->dims, a->rank * sizeof(a->dims[0])) == 0;
}

muc_status muc_mcu_write_pair_f32(muc_mcu_lowering *l, const muc_node *node)
{
    MUC_TRY(begin(l, node, "", node->op == MUC_OP_ADD ? "add_f32" : "mul_f32"));
    MUC_TRY(pass_count(l, muc_mcu_input(l, node, 0)));
    for (uint32_t i = 0; i < 2; i++)
        MUC_TRY(muc_mcu_pass_input(l, i));
    MUC_TRY(muc_mcu_pass_output(l, 0));
    for (uint32_t i = 0; i < 2; i++)
        muc_mcu_may_overlap(l, i, 0);
    return muc_mcu_end_step(l, 0);
}

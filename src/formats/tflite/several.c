/* several.c - operators of a TFLite model that are one operator together: a mean over one dimension
 * and then another, and a convolution between steps that spread an image into phases. */
#include "formats/tflite/tflite_import.h"

/* ---- what is around an operator ---- */

static const muc_tflite_operator *producer_of(const muc_tflite_model *model, int32_t tensor)
{
    for (uint32_t n = 0; n < model->operator_count; n++)
        for (uint32_t i = 0; i < model->operators[n].output_count; i++)
            if (model->operators[n].outputs[i] == tensor)
                return &model->operators[n];
    return NULL;
}

static uint32_t count_readers(const muc_tflite_model *model, int32_t tensor)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < model->output_count; i++)
        count += model->outputs[i] == tensor;
    for (uint32_t n = 0; n < model->operator_count; n++)
        for (uint32_t i = 0; i < model->operators[n].input_count; i++)
            count += model->operators[n].inputs[i] == tensor;
    return count;
}

static bool same_quantization(const muc_tflite_tensor *a, const muc_tflite_tensor *b)
{
    return muc_tflite_is_quantized(a) && muc_tflite_is_quantized(b) && a->quantization.count == 1 &&
           b->quantization.count == 1 && a->quantization.scales[0] == b->quantization.scales[0] &&
           a->quantization.zero_points[0] == b->quantization.zero_points[0];
}

/* ---- means ---- */

static bool keeps_dims(const muc_tflite_operator *op)
{
    muc_flat options =
        muc_flat_union_at(op->table, MUC_FLAT_OPERATOR_options, MUC_FLAT_REDUCER_OPTIONS);

    return muc_flat_integer(options, MUC_FLAT_REDUCER_OPTIONS_keep_dims) != 0;
}

static bool is_mean(const muc_tflite_operator *op)
{
    return op && op->code == MUC_TFLITE_MEAN_CODE && op->input_count == 2 &&
           op->output_count == 1 && op->inputs[0] != MUC_TFLITE_NONE &&
           op->inputs[1] != MUC_TFLITE_NONE;
}

/* the one axis of a mean as a constant has it; false: none, or several */
static bool one_axis(const muc_tflite_import *im, const muc_tflite_operator *op, int64_t *axis)
{
    const muc_tflite_tensor *axes = &im->model->tensors[op->inputs[1]];
    uint32_t rank = im->model->tensors[op->inputs[0]].rank, count;

    if (!muc_tflite_read_integers(axes, 1, axis, &count) || count != 1)
        return false;
    *axis += *axis < 0 ? rank : 0;
    return *axis >= 0 && *axis < rank;
}

static bool means_are_pool(const muc_tflite_import *im, const muc_tflite_operator *inner,
                           const muc_tflite_operator *outer, bool *channels_last)
{
    int64_t first, second;

    if (im->model->tensors[inner->inputs[0]].rank != 4 || !one_axis(im, inner, &first) ||
        !one_axis(im, outer, &second))
        return false;
    second += !keeps_dims(inner) && second >= first ? 1 : 0;
    *channels_last = first + second == 3; /* 1 and 2, not 2 and 3 */
    return first != second && first > 0 && second > 0 && first + second != 4;
}

/* A mean over width and then one over height, which some converters write, is an average pool:
 * rounded once, as TinyEngine and CMSIS-NN compute it and the published results of MCUNet are. */
static const muc_tflite_operator *find_inner_mean(const muc_tflite_import *im,
                                                  const muc_tflite_operator *outer)
{
    const muc_tflite_model *model = im->model;
    const muc_tflite_operator *inner;
    const muc_tflite_tensor *between;
    bool channels_last;

    if (!is_mean(outer))
        return NULL;
    inner = producer_of(model, outer->inputs[0]);
    if (!is_mean(inner) || is_mean(producer_of(model, inner->inputs[0])) ||
        keeps_dims(inner) != keeps_dims(outer) || count_readers(model, outer->inputs[0]) != 1)
        return NULL;
    between = &model->tensors[outer->inputs[0]];
    return same_quantization(&model->tensors[inner->inputs[0]], between) &&
                   same_quantization(between, &model->tensors[outer->outputs[0]]) &&
                   means_are_pool(im, inner, outer, &channels_last)
               ? inner
               : NULL;
}

static muc_status import_pool(muc_tflite_import *im, const muc_tflite_operator *inner)
{
    muc_tflite_import from = *im;
    bool channels_last;
    uint32_t id;

    from.op = inner;
    means_are_pool(im, inner, im->op, &channels_last);
    MUC_TRY(muc_tflite_input(&from, 0, &id));
    return muc_tflite_make(im, &id, 1, NULL, "%saverage_pool 0 kernel=%s%s",
                           keeps_dims(im->op) ? "" : "pool = ",
                           channels_last ? "in0.1,in0.2 channels_last=1" : "in0.2,in0.3",
                           keeps_dims(im->op) ? "" : "; reshape pool shape=out");
}

muc_status muc_tflite_import_mean(muc_tflite_import *im)
{
    const muc_tflite_operator *inner = find_inner_mean(im, im->op);

    return inner ? import_pool(im, inner) : muc_tflite_cook(im, ". 0 axes=#1 keep_dims=@keep_dims");
}

/* ---- dilated convolutions ---- */

static bool is_spread(const muc_tflite_operator *op, uint32_t code)
{
    return op && op->code == code && op->input_count == 3 && op->output_count == 1 &&
           op->inputs[0] != MUC_TFLITE_NONE && op->inputs[1] != MUC_TFLITE_NONE &&
           op->inputs[2] != MUC_TFLITE_NONE;
}

/* blocks and pads of two dimensions, if they are constants */
static bool read_blocks(const muc_tflite_model *model, const muc_tflite_operator *op,
                        muc_tflite_blocks *b)
{
    uint32_t pads;

    return muc_tflite_read_integers(&model->tensors[op->inputs[1]], 2, b->block, &b->count) &&
           muc_tflite_read_integers(&model->tensors[op->inputs[2]], 4, b->pads, &pads) &&
           b->count == 2 && pads == 4;
}

/* a convolution without padding, step after step */
static bool is_dense_conv(const muc_tflite_import *im, const muc_tflite_operator *op)
{
    muc_tflite_import from = *im;
    bool depthwise = op && op->code == MUC_TFLITE_DEPTHWISE_CONV_2D_CODE;

    if (!op || op->input_count < 2 || op->inputs[0] == MUC_TFLITE_NONE || op->output_count != 1 ||
        (op->code != MUC_TFLITE_CONV_2D_CODE && !depthwise))
        return false;
    from.table = depthwise ? MUC_FLAT_DEPTHWISE_CONV_2D_OPTIONS : MUC_FLAT_CONV_2D_OPTIONS;
    from.options = muc_flat_union_at(op->table, MUC_FLAT_OPERATOR_options, from.table);
    return muc_tflite_option(&from, "padding") == 1 && muc_tflite_option(&from, "stride_h") == 1 &&
           muc_tflite_option(&from, "stride_w") == 1 &&
           muc_tflite_option(&from, "dilation_h") == 1 &&
           muc_tflite_option(&from, "dilation_w") == 1;
}

static bool means_same(const muc_tflite_tensor *a, const muc_tflite_tensor *b)
{
    return (!muc_tflite_is_quantized(a) && !muc_tflite_is_quantized(b)) || same_quantization(a, b);
}

bool muc_tflite_find_phases(const muc_tflite_import *im, const muc_tflite_operator *back,
                            muc_tflite_phases *phases)
{
    const muc_tflite_model *model = im->model;
    muc_tflite_blocks to, from;

    if (!is_spread(back, MUC_TFLITE_BATCH_TO_SPACE_ND_CODE))
        return false;
    phases->conv = producer_of(model, back->inputs[0]);
    if (!is_dense_conv(im, phases->conv) || count_readers(model, back->inputs[0]) != 1)
        return false;
    phases->spread = producer_of(model, phases->conv->inputs[0]);
    if (!is_spread(phases->spread, MUC_TFLITE_SPACE_TO_BATCH_ND_CODE) ||
        !read_blocks(model, phases->spread, &to) || !read_blocks(model, back, &from) ||
        model->tensors[phases->spread->inputs[0]].rank != 4 ||
        !means_same(&model->tensors[phases->spread->inputs[0]],
                    &model->tensors[phases->spread->outputs[0]]) ||
        !means_same(&model->tensors[back->inputs[0]], &model->tensors[back->outputs[0]]))
        return false;
    for (uint32_t i = 0; i < 4; i++) {
        int64_t block = to.block[i / 2], before = to.pads[i], cropped = from.pads[i];

        if (block != from.block[i / 2] || block < 1 || block > INT32_MAX || cropped < 0 ||
            cropped > before || before - cropped > 1 << 24)
            return false;
        phases->dilations[i / 2] = block;
        phases->pads[i / 2 + 2 * (i % 2)] = before - cropped;
    }
    return true;
}

void muc_tflite_mark_inner(const muc_tflite_import *im)
{
    const muc_tflite_model *model = im->model;

    for (uint32_t n = 0; n < model->operator_count; n++) {
        const muc_tflite_operator *inner = find_inner_mean(im, &model->operators[n]);
        muc_tflite_phases phases;

        if (inner)
            im->is_inner[inner - model->operators] = true;
        if (!muc_tflite_find_phases(im, &model->operators[n], &phases))
            continue;
        im->is_inner[phases.conv - model->operators] = true;
        if (count_readers(model, phases.spread->outputs[0]) == 1)
            im->is_inner[phases.spread - model->operators] = true;
    }
}

/* inspect.c - reports what files hold and what the compiler supports, from the tables. */
#include <string.h>

#include "base/locale.h"
#include "base/text.h"
#include "run/opened_model.h"
#include "driver/inspect/network_report.h"
#include "formats/network.h"
#ifdef MUC_WITH_ONNX
#include "formats/onnx/onnx.h"
#endif
#include "graph/graph.h"
#include "ref/ref.h"
#include "report/report_builder.h"
#include "targets/mcu/lower/lower_nodes.h"
#include "targets/target.h"

static const char *shape_text(muc_text *text, const muc_tensor_view *tensor)
{
    text->size = 0;
    for (uint32_t i = 0; i < tensor->rank; i++)
        muc_text_add(text, "%s%llu", i ? "x" : "", (unsigned long long)tensor->dims[i]);
    return text->data ? text->data : "";
}

static void add_config(muc_report *report, const muc_model_config *config)
{
    muc_report_add_text(report, "architecture", "%s", config->architecture);
    muc_report_add_count(report, "dim", config->dim);
    muc_report_add_count(report, "ffn_dim", config->ffn_dim);
    muc_report_add_count(report, "layers", config->layers);
    muc_report_add_count(report, "heads", config->heads);
    muc_report_add_count(report, "kv_heads", config->kv_heads);
    muc_report_add_count(report, "head_dim", config->head_dim);
    muc_report_add_count(report, "vocabulary", config->vocabulary);
    muc_report_add_count(report, "context", config->context);
    muc_report_add_real(report, "norm_epsilon", config->norm_epsilon);
    if (config->position == MUC_POSITION_ROPE)
        muc_report_add_real(report, "rope_theta", config->rope_theta);
    muc_report_add_text(report, "norm", "%s",
                        config->norm == MUC_NORM_LAYER ? "LayerNorm" : "RMSNorm");
    muc_report_add_text(report, "positions", "%s",
                        config->position == MUC_POSITION_LEARNED ? "learned" : "RoPE");
    muc_report_add_text(report, "feed_forward", "%s%s",
                        muc_activation_get(config->activation)->name,
                        config->ffn == MUC_FFN_GATED ? ", gated" : "");
    muc_report_add_bool(report, "tied_head", config->tied);
}

static void add_checkpoint(muc_report *report, const muc_model *model)
{
    const muc_checkpoint *checkpoint = &model->checkpoint;
    uint64_t weights = 0, bytes;
    muc_text shape = { 0 };

    for (size_t i = 0; i < checkpoint->tensor_count; i++)
        weights += checkpoint->tensors[i].elements;
    muc_report_add_text(report, "format", "%s", checkpoint->format);
    add_config(report, &checkpoint->config);
    muc_report_add_count(report, "weights", weights);
    muc_checkpoint_weights(checkpoint, &weights, &bytes);
    muc_report_add_bits_per_weight(report, bytes, weights);
    muc_model_add_tokenizer(report, model);
    if (model->prompt_template)
        muc_report_add_text(report, "prompt_template", "%s", model->prompt_template);
    muc_report_begin_table(report, "tensors");
    for (size_t i = 0; i < checkpoint->tensor_count; i++) {
        const muc_tensor_view *tensor = &checkpoint->tensors[i];

        muc_report_begin_row(report);
        muc_report_add_text(report, "name", "%s", tensor->name);
        muc_report_add_text(report, "dtype", "%s", muc_dtype_get(tensor->dtype)->name);
        muc_report_add_text(report, "shape", "%s", shape_text(&shape, tensor));
        muc_report_add_count(report, "bytes", tensor->bytes);
        muc_report_end(report);
    }
    muc_report_end(report);
    muc_text_free(&shape);
}

static void add_blocks(muc_report *report, const muc_model *model)
{
    static const char *const encodings[] = {
        [MUC_BDT_BYTES] = "bytes",
        [MUC_BDT_F32] = "f32",
        [MUC_BDT_BD] = "blocks",
    };

    muc_report_add_count(report, "bytes", model->file.bytes.size);
    muc_model_add_tokenizer(report, model);
    muc_report_begin_table(report, "entries");
    for (uint32_t i = 0; i < model->blocks.count; i++) {
        const muc_bdt_entry *entry = &model->blocks.entries[i];

        muc_report_begin_row(report);
        muc_report_add_text(report, "name", "%s", entry->name);
        muc_report_add_text(report, "encoding", "%s", encodings[entry->encoding]);
        muc_report_add_count(report, "n", entry->n);
        muc_report_add_count(report, "k", entry->k);
        muc_report_add_count(report, "bytes", entry->bytes);
        muc_report_end(report);
    }
    muc_report_end(report);
}

muc_status muc_inspect(muc_context *ctx, const muc_model *model, muc_report **out)
{
    MUC_IN_C_LOCALE;
    muc_report *report;

    MUC_TRY(muc_report_new(ctx, out));
    report = *out;
    muc_report_add_text(report, "file", "%s", model->path);
    switch (model->kind) {
    case MUC_MODEL_CHECKPOINT:
        add_checkpoint(report, model);
        break;
    case MUC_MODEL_BLOCKS:
        add_blocks(report, model);
        break;
    case MUC_MODEL_NETWORK:
        MUC_TRY(muc_network_inspect(ctx, &model->network, report));
        break;
    case MUC_MODEL_COMPILED:
        model->target->inspect(model, report);
        break;
    }
    return muc_report_status(ctx, report);
}

muc_status muc_inspect_file(muc_context *ctx, const char *path, const muc_model_options *options,
                            muc_report **out)
{
    MUC_IN_C_LOCALE;
    muc_model *model;
    muc_status status;

    MUC_TRY(muc_model_open_to_list(ctx, path, options, true, &model));
    status = muc_inspect(ctx, model, out);
    muc_model_close(model);
    return status;
}

static void add_format(muc_report *report, const char *name, const char *kind, const char *meaning)
{
    muc_report_begin_row(report);
    muc_report_add_text(report, "name", "%s", name);
    muc_report_add_text(report, "kind", "%s", kind);
    muc_report_add_text(report, "meaning", "%s", meaning);
    muc_report_end(report);
}

muc_status muc_list_formats(muc_context *ctx, muc_report **out)
{
    MUC_IN_C_LOCALE;

    MUC_TRY(muc_report_new(ctx, out));
    muc_report_begin_table(*out, "formats");
    for (size_t i = 0; i < muc_format_count; i++) {
        add_format(*out, muc_formats[i].name, "checkpoint", muc_formats[i].meaning);
    }
    for (size_t i = 0; i < muc_network_format_count(); i++) {
        const muc_network_format *format = muc_network_format_get(i);

        add_format(*out, format->name, "network", format->meaning);
    }
    muc_report_end(*out);
    return muc_report_status(ctx, *out);
}

/* names of ONNX's operators that become op */
static void add_onnx(muc_report *report, muc_op op)
{
    muc_text names = { 0 };

#ifdef MUC_WITH_ONNX
    for (size_t i = 0; i < muc_onnx_operator_count(); i++) {
        muc_onnx_operator row = muc_onnx_operator_get(i);

        if (row.op == op)
            muc_text_add(&names, "%s%s%s%s", names.size ? " " : "", row.domain,
                         row.domain[0] ? "." : "", row.name);
    }
#else
    (void)op;
#endif
    muc_report_add_text(report, "onnx", "%s", names.data ? names.data : "");
    muc_text_free(&names);
}

typedef struct named_op {
    const char *name;
    muc_op op;
} named_op;

/* of TFLite's operators and of Keras's layers and activations; the last row ends the list */
static const named_op tflite_ops[] = {
#define TFLITE_ROW(number, name, version, options, least, most, shape, to, import, reals) \
    { #name, MUC_OP_##to },
#include "formats/tflite/tflite_ops.def"
    { NULL, MUC_OP_COUNT },
};
static const named_op keras_ops[] = {
#ifdef MUC_WITH_KERAS
#define KERAS_LAYER(name, least, most, least_inputs, most_inputs, spatial, op, import) \
    { #name, MUC_OP_##op },
#include "formats/keras/keras_layers.def"
#undef KERAS_LAYER
#define KERAS_ACTIVATION(name, op, recipe) { name, MUC_OP_##op },
#include "formats/keras/keras_activations.def"
#undef KERAS_ACTIVATION
#endif
    { NULL, MUC_OP_COUNT },
};

static void add_named(muc_report *report, const char *key, const named_op *rows, muc_op op)
{
    muc_text names = { 0 };

    for (; rows->name; rows++)
        if (rows->op == op)
            muc_text_add(&names, "%s%s", names.size ? " " : "", rows->name);
    muc_report_add_text(report, key, "%s", names.data ? names.data : "");
    muc_text_free(&names);
}

muc_status muc_list_operators(muc_context *ctx, muc_report **out)
{
    MUC_IN_C_LOCALE;

    MUC_TRY(muc_report_new(ctx, out));
    muc_report_begin_table(*out, "operators");
    for (unsigned op = 0; op < MUC_OP_COUNT; op++) {
        const muc_op_info *info = muc_op_get((muc_op)op);

        muc_report_begin_row(*out);
        muc_report_add_text(*out, "name", "%s", info->name);
        muc_report_add_count(*out, "inputs", info->least_inputs);
        muc_report_add_bool(*out, "reference", muc_ref_runs((muc_op)op));
        muc_report_add_bool(*out, "mcu", muc_mcu_runs((muc_op)op));
        add_onnx(*out, (muc_op)op);
        add_named(*out, "tflite", tflite_ops, (muc_op)op);
        add_named(*out, "keras", keras_ops, (muc_op)op);
        muc_report_add_text(*out, "meaning", "%s", info->meaning);
        muc_report_end(*out);
    }
    muc_report_end(*out);
    return muc_report_status(ctx, *out);
}

/* fused.c - splits q, k and v that a file keeps in one tensor. */
#include "formats/format.h"

unsigned muc_fused_part(bool is_matrix, unsigned part)
{
    static const unsigned matrices[] = { MUC_LLAMA_Q, MUC_LLAMA_K, MUC_LLAMA_V };
    static const unsigned biases[] = { MUC_LLAMA_Q_BIAS, MUC_LLAMA_K_BIAS, MUC_LLAMA_V_BIAS };

    return is_matrix ? matrices[part] : biases[part];
}

muc_status muc_checkpoint_add_fused(muc_context *ctx, muc_checkpoint *checkpoint,
                                    const muc_tensor_view *fused, uint32_t layer)
{
    const muc_model_config *config = &checkpoint->config;
    uint64_t at = 0, rows = fused->dims[0];
    muc_model_config one;

    if (layer >= config->layers)
        return muc_fail(ctx, MUC_UNSUPPORTED, fused->file, fused->offset,
                        "tensor '%s' has no place in a %s of %u layers", fused->name,
                        config->architecture, config->layers);
    one = muc_config_of_layer(config, layer);
    for (unsigned part = 0; part < MUC_FUSED_PARTS; part++) {
        unsigned id = muc_fused_part(fused->rank == 2, part);
        muc_tensor_view view = *fused;

        view.dims[0] = muc_llama_tensor_of(&one, id).dims[0];
        if (view.dims[0] > rows - at || (part + 1 == MUC_FUSED_PARTS && view.dims[0] + at != rows))
            return muc_fail(ctx, MUC_MALFORMED, fused->file, fused->offset,
                            "tensor '%s' has %llu outputs, expected those of q, k and v together",
                            fused->name, (unsigned long long)rows);
        MUC_TRY(muc_tensor_measure(ctx, &view));
        view.data = fused->data + fused->bytes / rows * at;
        view.scales = fused->scales ? fused->scales + at : NULL;
        at += view.dims[0];
        MUC_TRY(muc_llama_tensor_name(ctx, &checkpoint->arena, id, layer, &view.name));
        MUC_TRY(muc_checkpoint_add(ctx, checkpoint, &view));
    }
    return MUC_OK;
}

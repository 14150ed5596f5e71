/* llama_logits.c - the logits of llama.cpp after each token, in float32 throughout.
 *
 *     llama_logits MODEL.gguf FOLDER_OF_BACKENDS TOKEN...    writes [tokens][vocabulary] f32
 */
#include <stdio.h>
#include <stdlib.h>

#include "ggml-backend.h"
#include "llama.h"

static void quiet(enum ggml_log_level level, const char *text, void *unused)
{
    (void)unused;
    if (level >= GGML_LOG_LEVEL_ERROR)
        fputs(text, stderr);
}

int main(int argc, char **argv)
{
    struct llama_model_params model_params = llama_model_default_params();
    struct llama_context_params params = llama_context_default_params();
    int32_t count = argc - 3;
    struct llama_model *model;
    struct llama_context *context;
    struct llama_batch batch;
    size_t vocabulary;

    llama_log_set(quiet, NULL);
    ggml_backend_load_all_from_path(argv[2]);
    model_params.n_gpu_layers = 0;
    model = llama_model_load_from_file(argv[1], model_params);
    if (!model)
        return 1;
    params.n_ctx = 256;
    params.n_batch = params.n_ubatch = 256;
    params.n_threads = params.n_threads_batch = 1;
    params.type_k = params.type_v = GGML_TYPE_F32;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    context = llama_init_from_model(model, params);
    if (!context)
        return 1;
    batch = llama_batch_init(count, 0, 1);
    batch.n_tokens = count;
    for (int32_t i = 0; i < count; i++) {
        batch.token[i] = atoi(argv[3 + i]);
        batch.pos[i] = i;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i] = 1;
    }
    if (llama_decode(context, batch) != 0)
        return 1;
    vocabulary = (size_t)llama_vocab_n_tokens(llama_model_get_vocab(model));
    for (int32_t i = 0; i < count; i++)
        if (fwrite(llama_get_logits_ith(context, i), sizeof(float), vocabulary, stdout) !=
            vocabulary)
            return 1;
    return 0;
}

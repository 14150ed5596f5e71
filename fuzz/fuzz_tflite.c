#include "formats/tflite/model.h"
#include "fuzz.h"

/* every byte that a read model points to */
static void touch(const muc_tflite_model *model)
{
    volatile uint8_t sink = 0;

    for (uint32_t t = 0; t < model->tensor_count; t++)
        for (uint64_t i = 0; model->tensors[t].data && i < model->tensors[t].bytes; i++)
            sink ^= model->tensors[t].data[i];
    for (uint32_t n = 0; n < model->operator_count; n++)
        for (uint32_t i = 0; i < model->operators[n].input_count; i++)
            sink ^= (uint8_t)model->operators[n].inputs[i];
    (void)sink;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    muc_context *ctx = muc_context_new(1);
    muc_arena arena = { 0 };
    muc_tflite_model model;

    if (muc_tflite_read(ctx, (muc_bytes){ data, size, "fuzz" }, &arena, &model) == MUC_OK)
        touch(&model);
    muc_arena_free(&arena);
    muc_context_free(ctx);
    return 0;
}

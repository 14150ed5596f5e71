/* The forms of one trained model on hand are the same model, bit for bit. */
#include "base/file.h"
#include "formats/network.h"
#include "tiny_model.h"

#include "context_fixture.h"

static void check_same_floats(const muc_checkpoint *a, const muc_checkpoint *b)
{
    CHECK_EQ(a->tensor_count, b->tensor_count);
    for (size_t i = 0; i < a->tensor_count; i++) {
        const muc_tensor_view *x = &a->tensors[i], *y = &b->tensors[i];
        float *u = malloc(x->elements * sizeof(*u)), *v = malloc(x->elements * sizeof(*v));

        CHECK(u && v);
        assert_string_equal(x->name, y->name);
        CHECK_EQ(x->rank, y->rank);
        CHECK_EQ(x->elements, y->elements);
        CHECK_OK(ctx, muc_tensor_to_f32(ctx, x, 0, x->elements, u));
        CHECK_OK(ctx, muc_tensor_to_f32(ctx, y, 0, y->elements, v));
        assert_memory_equal(u, v, x->elements * sizeof(*u));
        free(u);
        free(v);
    }
}

static void the_forms_of_stories260k_agree(void **state)
{
    static const struct {
        const char *path, *format;
    } forms[] = {
        { "llama/stories260K-hf", "hf" },
        { "llama/stories260K-hf/sharded", "hf" },
        { "llama/stories260K-hf/model.safetensors", "hf" },
        { "llama/stories260K.bin", "llama2c" },
        { "llama/stories260K-f32.gguf", "gguf" },
    };
    muc_checkpoint first;

    (void)state;
    CHECK_OK(ctx, muc_checkpoint_open(ctx, shared_data(forms[0].path), &first));
    CHECK_EQ(first.config.dim, 64);
    CHECK_EQ(first.config.ffn_dim, 172);
    CHECK_EQ(first.config.layers, 5);
    CHECK_EQ(first.config.head_dim, 8);
    CHECK(first.config.tied);
    for (size_t i = 1; i < MUC_COUNT(forms); i++) {
        muc_checkpoint other;

        CHECK_OK(ctx, muc_checkpoint_open(ctx, shared_data(forms[i].path), &other));
        assert_string_equal(other.format, forms[i].format);
        check_same_floats(&first, &other);
        CHECK_EQ(other.config.dim, first.config.dim);
        CHECK_EQ(other.config.heads, first.config.heads);
        CHECK_EQ(other.config.kv_heads, first.config.kv_heads);
        CHECK_EQ(other.config.context, first.config.context);
        CHECK_EQ(other.config.bos, first.config.bos);
        CHECK_EQ(other.config.eos[0], first.config.eos[0]);
        CHECK_EQ((float)other.config.norm_epsilon == (float)first.config.norm_epsilon, 1);
        muc_checkpoint_close(&other);
    }
    muc_checkpoint_close(&first);
}

static void rescue_is_read_in_half_floats(void **state)
{
    muc_checkpoint checkpoint;
    const muc_tensor_view *view;

    (void)state;
    CHECK_OK(ctx, muc_checkpoint_open(ctx, shared_data("rescue"), &checkpoint));
    CHECK_EQ(checkpoint.config.kv_heads, 1);
    CHECK_EQ(checkpoint.config.head_dim, 64);
    assert_non_null(strstr(checkpoint.tokenizer_path, "rescue/tokenizer.model"));
    view = muc_checkpoint_find(&checkpoint, "model.layers.3.mlp.down_proj.weight");
    assert_non_null(view);
    CHECK_EQ(view->dtype, MUC_F16);
    CHECK(view->dims[0] == 128 && view->dims[1] == 384);
    muc_checkpoint_close(&checkpoint);
}

static void the_oldest_form_is_cut_and_flipped_without_harm(void **state)
{
    muc_file file;
    uint8_t *copy;

    (void)state;
    CHECK_OK(ctx, muc_file_open(ctx, shared_data("llama/stories260K.bin"), &file));
    copy = malloc(file.bytes.size);
    assert_non_null(copy);
    memcpy(copy, file.bytes.data, file.bytes.size);
    for (size_t size = 0; size < file.bytes.size; size += size < 64 ? 1 : 9973)
        CHECK(open_damaged(ctx, "damaged", copy, size) != MUC_OK);
    CHECK(open_damaged(ctx, "damaged", copy, file.bytes.size - 1) != MUC_OK);
    for (size_t i = 0; i < 28; i++) {
        copy[i] ^= 0xff;
        CHECK(open_damaged(ctx, "damaged", copy, file.bytes.size) != MUC_OK);
        copy[i] ^= 0xff;
    }
    free(copy);
    muc_file_close(&file);
}

static void an_unknown_file_names_what_was_tried(void **state)
{
    muc_checkpoint checkpoint;

    (void)state;
    CHECK_FAILS(ctx, MUC_UNSUPPORTED,
                "meson.build: no checkpoint or network of a known format; tried hf",
                muc_checkpoint_open(ctx, "meson.build", &checkpoint));
    CHECK_FAILS(ctx, MUC_IO, "cannot open", muc_checkpoint_open(ctx, "absent", &checkpoint));
}

static muc_status open_text(const char *text, muc_network *network)
{
    return muc_network_open_bytes(
        ctx, (muc_bytes){ (const uint8_t *)text, strlen(text), "net.graph" }, NULL, network);
}

static void a_graph_as_text_is_a_network(void **state)
{
    muc_network network;

    (void)state;
    CHECK_OK(ctx, open_text("graph scores\ntensor x = input f32 [1, 3]\n"
                            "tensor half = const f32 [1] values 0.5\n"
                            "node y f32 [1, 3] = mul x, half\noutput y\n",
                            &network));
    assert_string_equal(network.format, "text");
    CHECK_EQ(network.graph->node_count, 1);
    CHECK_EQ(network.graph->output_count, 1);
    muc_network_close(&network);
    CHECK_FAILS(ctx, MUC_UNSUPPORTED, "constant 'w'",
                open_text("graph big\ntensor x = input f32 [1, 100]\n"
                          "tensor w = const f32 [1, 100] bytes 400\n"
                          "node y f32 [1, 100] = mul x, w\noutput y\n",
                          &network));
    CHECK_FAILS(ctx, MUC_MALFORMED, "net.graph",
                open_text("graph wrong\ntensor x = input f32 [1, 3]\nnode y f32 [1, 4] = relu x\n",
                          &network));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, new_context, free_context)
    const struct CMUnitTest tests[] = {
        T(the_forms_of_stories260k_agree),
        T(rescue_is_read_in_half_floats),
        T(the_oldest_form_is_cut_and_flipped_without_harm),
        T(an_unknown_file_names_what_was_tried),
        T(a_graph_as_text_is_a_network),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* llama2.c checkpoints of all three versions, written here from the tiny model. */
#include "tiny_model.h"

#include "context_fixture.h"

enum { MAGIC = 0x616b3432, GROUP = 4 };

static void put_sizes(muc_text *out, bool negative)
{
    const int sizes[7] = { TINY_DIM,      TINY_FFN,
                           TINY_LAYERS,   TINY_HEADS,
                           TINY_KV_HEADS, negative ? -TINY_VOCABULARY : TINY_VOCABULARY,
                           TINY_CONTEXT };

    for (unsigned i = 0; i < 7; i++)
        put_u32(out, (uint32_t)sizes[i]);
}

static void put_floats(muc_text *out, unsigned t)
{
    for (unsigned layer = 0; layer < (tiny_tensors[t].per_layer ? TINY_LAYERS : 1); layer++)
        for (unsigned i = 0; i < tiny_elements(t); i++)
            put_f32(out, tiny_pair_value(t, layer, i));
}

/* The tiny values are multiples of 1/4 below 32: with that scale, int8 holds them exactly. */
static void put_groups(muc_text *out, unsigned t)
{
    for (unsigned layer = 0; layer < (tiny_tensors[t].per_layer ? TINY_LAYERS : 1); layer++) {
        for (unsigned i = 0; i < tiny_elements(t); i++) {
            int8_t q = (int8_t)(tiny_pair_value(t, layer, i) * 4);

            muc_text_add_bytes(out, &q, 1);
        }
        for (unsigned i = 0; i < tiny_elements(t) / GROUP; i++)
            put_f32(out, 0.25f);
    }
}

static muc_text version_0(bool tied)
{
    muc_text out = { 0 };

    put_sizes(&out, !tied);
    for (unsigned t = TINY_EMBED; t <= TINY_FINAL_NORM; t++)
        put_floats(&out, t);
    for (unsigned i = 0; i < TINY_CONTEXT * TINY_HEAD_DIM; i++)
        put_f32(&out, 77);
    if (!tied)
        put_floats(&out, TINY_HEAD);
    return out;
}

static muc_text version_1_or_2(unsigned version, bool tied)
{
    static const unsigned order[] = { TINY_EMBED, TINY_Q,    TINY_K,  TINY_V,   TINY_O,
                                      TINY_GATE,  TINY_DOWN, TINY_UP, TINY_HEAD };
    const uint8_t shared = tied;
    muc_text out = { 0 };

    put_u32(&out, MAGIC);
    put_u32(&out, version);
    put_sizes(&out, false);
    muc_text_add_bytes(&out, &shared, 1);
    if (version == 2)
        put_u32(&out, GROUP);
    while (out.size < 256)
        muc_text_add_bytes(&out, "", 1);
    put_floats(&out, TINY_NORM);
    put_floats(&out, TINY_FFN_NORM);
    put_floats(&out, TINY_FINAL_NORM);
    for (unsigned i = 0; i < (tied ? 8 : 9); i++) {
        if (version == 2)
            put_groups(&out, order[i]);
        else
            put_floats(&out, order[i]);
    }
    return out;
}

static muc_text file_of(unsigned version, bool tied)
{
    return version == 0 ? version_0(tied) : version_1_or_2(version, tied);
}

static void every_version_gives_the_same_floats(void **state)
{
    (void)state;
    for (unsigned version = 0; version < 3; version++) {
        for (unsigned tied = 0; tied < 2; tied++) {
            muc_text file = file_of(version, tied);
            muc_checkpoint checkpoint;

            CHECK_OK(ctx, muc_checkpoint_open_bytes(ctx, bytes_of(&file, "tiny"), &checkpoint));
            assert_string_equal(checkpoint.format, "llama2c");
            check_tiny(ctx, &checkpoint, tied);
            CHECK(checkpoint.config.rope_interleaved);
            muc_checkpoint_close(&checkpoint);
            muc_text_free(&file);
        }
    }
}

static void damage_is_told_or_harmless(void **state)
{
    (void)state;
    for (unsigned version = 0; version < 3; version++) {
        muc_text file = file_of(version, version == 1);

        check_damage(ctx, "damaged", &file, version ? 44 : 28);
        muc_text_free(&file);
    }
}

static void check_refused(muc_text *file, muc_status status, const char *fragment)
{
    muc_checkpoint checkpoint;

    CHECK_FAILS(ctx, status, fragment,
                muc_checkpoint_open_bytes(ctx, bytes_of(file, "tiny"), &checkpoint));
    muc_text_free(file);
}

static void messages_say_what_is_wrong(void **state)
{
    muc_text file = version_0(true);

    (void)state;
    muc_text_add_bytes(&file, "x", 1);
    check_refused(&file, MUC_MALFORMED, "the file 1 bytes later");
    file = version_0(true);
    file.size -= 4;
    check_refused(&file, MUC_MALFORMED, "the tables of RoPE needs 160 bytes");
    file = version_0(true);
    file.data[16] = 3;
    check_refused(&file, MUC_MALFORMED, "heads, 2, is not a multiple of kv_heads, 3");
    file = version_1_or_2(3, true);
    check_refused(&file, MUC_UNSUPPORTED, "offset 4: llama2.c checkpoint of version 3");
    file = version_1_or_2(2, true);
    file.data[37] = 5;
    check_refused(&file, MUC_MALFORMED, "is not whole groups of 5");
    file = version_1_or_2(1, true);
    file.data[36] = 2;
    check_refused(&file, MUC_MALFORMED, "offset 36: the shared-head byte is 2");
}

static void a_weight_that_is_no_number_is_named(void **state)
{
    muc_text file = version_1_or_2(2, true);
    size_t first_scale = 256 + 4 * (2 * TINY_LAYERS + 1) * TINY_DIM + TINY_VOCABULARY * TINY_DIM;
    muc_checkpoint checkpoint;
    float value[8];

    (void)state;
    memcpy(file.data + first_scale + 4, &(uint32_t){ 0x7f800000 }, 4);
    CHECK_OK(ctx, muc_checkpoint_open_bytes(ctx, bytes_of(&file, "tiny"), &checkpoint));
    CHECK_OK(ctx,
             muc_tensor_to_f32(ctx, muc_checkpoint_find(&checkpoint, "model.embed_tokens.weight"),
                               0, 4, value));
    CHECK_FAILS(ctx, MUC_MALFORMED, "tensor 'model.embed_tokens.weight': element 4 is not finite",
                muc_tensor_to_f32(ctx,
                                  muc_checkpoint_find(&checkpoint, "model.embed_tokens.weight"), 2,
                                  4, value));
    muc_checkpoint_close(&checkpoint);
    muc_text_free(&file);
}

static void every_failed_allocation_is_told(void **state)
{
    muc_text file = version_1_or_2(2, false);

    (void)state;
    check_failed_allocations(ctx, "tiny", &file);
    muc_text_free(&file);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, new_context, free_context)
    const struct CMUnitTest tests[] = {
        T(every_version_gives_the_same_floats), T(damage_is_told_or_harmless),
        T(messages_say_what_is_wrong),          T(a_weight_that_is_no_number_is_named),
        T(every_failed_allocation_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

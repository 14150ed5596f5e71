/* test_golden.c - the golden model of the machine's arithmetic: its blocks against the device's,
 * which was written apart from it, and its results against float32. */
#include "check.h"

#include <math.h>

#include "base/file.h"
#include "base/half.h"
#include "base/json.h"
#include "models/llama.h"
#include "mur_block.h"
#include "ref/golden/bd_golden.h"
#include "ref/golden/uthinker_golden.h"
#include "ref_model.h"

static uint64_t seed = 1;

static uint32_t random_bits(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 32);
}

static float normal_value(void)
{
    double sum = 0;

    for (int i = 0; i < 12; i++)
        sum += random_bits() / 4294967296.0;
    return (float)(sum - 6);
}

static void exp_is_that_of_the_specification(void **state)
{
    (void)state;
    CHECK(muc_ref_machine_exp(0) == 1);
    CHECK(muc_ref_machine_exp(-80.5f) == 0);
    CHECK(muc_ref_machine_exp(-INFINITY) == 0);
    CHECK(muc_ref_machine_exp(NAN) == 0);
    for (int i = 0; i <= 80000; i++) {
        float x = -(float)i / 1000;

        if (!(fabs(muc_ref_machine_exp(x) / exp((double)x) - 1) < 8e-6))
            fail_msg("exp(%g) = %g", (double)x, (double)muc_ref_machine_exp(x));
    }
}

/* one block encoded by both, in one and two terms */
static void check_encoders(const float *x, uint32_t n)
{
    for (uint32_t terms = 1; terms <= 2; terms++) {
        uint8_t device[MUR_BLOCK_MAX_BYTES], golden[MUR_BLOCK_MAX_BYTES];
        uint32_t size = mur_block_encode(x, n, terms, device);
        muc_golden_block block;
        float values[MUC_GOLDEN_BLOCK], parsed[MUC_GOLDEN_BLOCK];
        mur_block device_block;

        muc_golden_encode(x, n, terms, &block);
        CHECK_EQ(muc_golden_slots(&block, n, golden), size);
        if (memcmp(device, golden, size) != 0) {
            for (uint32_t i = 0; i < n; i++)
                print_message("%a ", (double)x[i]);
            fail_msg("two encodings of %u elements in %u terms", n, terms);
        }
        CHECK_EQ(mur_block_parse(device, size, n, MUR_BLOCK_NO_HEADER, &device_block), size);
        mur_block_values(&device_block, n, parsed);
        muc_golden_values(&block, n, values);
        for (uint32_t i = 0; i < n; i++)
            CHECK(values[i] == parsed[i]);
    }
}

static void both_encoders_give_the_same_slots(void **state)
{
    static const float edges[] = {
        0,        -0.0f,        65504,        65519.996f,    65520,    1e30f,
        INFINITY, -INFINITY,    NAN,          6.1035e-5f,    0x1p-14f, -0x1p-15f,
        0x1p-24f, 0x1.ffep-15f, 0x1.fffp-15f, 0x1.fff8p-15f, 1e-40f,   1
    };
    float x[MUC_GOLDEN_BLOCK];

    (void)state;
    for (uint32_t round = 0; round < 100000; round++) {
        uint32_t n = 1 + random_bits() % MUC_GOLDEN_BLOCK, style = random_bits() % 5;

        for (uint32_t i = 0; i < n; i++) {
            float scale = ldexpf(1, (int)(random_bits() % 44) - 26);

            x[i] = style == 0   ? normal_value()
                   : style == 1 ? normal_value() * scale
                   : style == 2 ? muc_f32_of_bits(random_bits())
                   : style == 3 ? edges[random_bits() % MUC_COUNT(edges)]
                                : muc_f32_of_f16((uint16_t)(random_bits() & 0xbfff));
        }
        check_encoders(x, n);
    }
}

/* every place of the two boundaries of every pair: one element at q, the largest at the pair's */
static void both_encoders_agree_at_every_boundary(void **state)
{
    float x[MUC_GOLDEN_BLOCK];

    (void)state;
    for (int most = 16; most < 32; most++)
        for (int q = 0; q <= most; q++)
            for (int r = 0; r <= most; r++)
                for (int bits = 0; bits < 4; bits++) {
                    x[0] = (float)most / 4;
                    x[1] = (float)q / 4 + (bits & 1 ? 0x1p-6f : 0);
                    x[2] = -(float)r / 4 - (bits & 2 ? 0x1p-6f : 0);
                    check_encoders(x, 3);
                }
}

/* Bytes that are mostly a valid block of n elements and sometimes anything. */
static void random_block(uint32_t n, bool may_share, uint8_t *block)
{
    uint32_t plane = (n + 7) / 8, nibbles = (n + 1) / 2, kind = random_bits() % 4, size;
    bool shared = may_share && random_bits() % 3 == 0;
    uint8_t *payload = block + (shared ? 1 : 3);

    for (uint32_t i = 0; i < MUR_BLOCK_MAX_BYTES; i++)
        block[i] = (uint8_t)random_bits();
    size = kind == MUR_BLOCK_B4   ? nibbles
           : kind == MUR_BLOCK_B5 ? plane + nibbles
                                  : 2 * nibbles + 2;
    if (kind == MUR_BLOCK_R)
        payload[nibbles] &= 0x80;
    if (!shared) {
        block[1] = (uint8_t)(kind << 4 | (random_bits() & 0x80));
        if (kind == MUR_BLOCK_B5)
            block[2] &= 0x0f;
    }
    block[0] = (uint8_t)(kind == 3 ? 0 : size + (shared ? 0x80 : 2));
    if (random_bits() % 4 == 0)
        block[random_bits() % 4] ^= (uint8_t)(1u << random_bits() % 8);
}

/* tiles of one column: both readers accept or refuse, and see the same values */
static void both_decoders_read_the_same_blocks(void **state)
{
    muc_context *ctx = muc_context_new(1);
    unsigned accepted[2] = { 0 };

    (void)state;
    for (uint32_t round = 0; round < 300000; round++) {
        uint8_t bytes[8 + 4 * MUR_BLOCK_MAX_BYTES] = { 0 };
        uint32_t k = random_bits() % 2 ? 64 : 1 + random_bits() % 64, size = 8;
        uint32_t header = MUR_BLOCK_NO_HEADER, blocks = 0;
        muc_golden_matrix matrix;
        muc_golden_block golden[2];
        mur_block device[2];
        bool valid = true;

        for (uint32_t at = 0; at < k && valid; at += 32, blocks++) {
            uint32_t n = k - at < 32 ? k - at : 32, taken;

            random_block(n, blocks == 1, bytes + size);
            taken = (uint32_t)mur_block_parse(bytes + size, MUR_BLOCK_MAX_BYTES, n, header,
                                              &device[blocks]);
            valid = taken != 0;
            header = device[blocks].header;
            size += taken;
        }
        muc_store_u32(bytes, 8);
        muc_store_u32(bytes + 4, size);
        if (!valid)
            size = sizeof(bytes); /* what the device refused is all there */
        matrix = (muc_golden_matrix){ bytes, size, k, 1 };
        CHECK_EQ(muc_golden_decode(ctx, "test", &matrix, 0, golden) == MUC_OK, valid);
        CHECK(valid || strstr(muc_error_message(ctx), "no valid block"));
        muc_error_clear(ctx);
        accepted[valid]++;
        for (uint32_t b = 0; valid && b < blocks; b++) {
            uint32_t n = k - 32 * b < 32 ? k - 32 * b : 32;
            float one[32], two[32];

            muc_golden_values(&golden[b], n, one);
            mur_block_values(&device[b], n, two);
            for (uint32_t i = 0; i < n; i++)
                CHECK(one[i] == two[i]);
        }
    }
    CHECK(accepted[0] > 30000 && accepted[1] > 30000);
    muc_context_free(ctx);
}

/* Weights become sequences of the online encoder's blocks. */
static void attach_sequence(model *m, muc_tensor *tensor, unsigned terms)
{
    size_t n = muc_expr_get(m->graph->pool, tensor->dims[0])->lo;
    size_t k = muc_expr_get(m->graph->pool, tensor->dims[1])->lo;
    size_t down = (k + 63) / 64, tiles = down * ((n + 7) / 8), at = 4 * (tiles + 1);
    size_t most = at + n * muc_golden_blocks(k) * MUR_BLOCK_MAX_BYTES;
    muc_golden_block blocks[2];
    float *row = malloc(k * sizeof(*row));
    uint8_t *out;

    assert_non_null(row);
    CHECK_OK(m->ctx, MUC_ARENA_NEW(m->ctx, &m->graph->arena, most, &out));
    for (size_t tile = 0; tile < tiles; tile++) {
        size_t first = tile % down * 64, count = k - first < 64 ? k - first : 64;

        muc_store_u32(out + 4 * tile, (uint32_t)at);
        for (size_t j = tile / down * 8; j < n && j < tile / down * 8 + 8; j++) {
            CHECK(muc_dtype_to_f32(tensor->dtype, tensor->data, j * k + first, count, row));
            muc_golden_encode(row, count, terms, blocks);
            at += muc_golden_slots(blocks, count, out + at);
        }
    }
    muc_store_u32(out + 4 * tiles, (uint32_t)at);
    tensor->sequence = out;
    tensor->sequence_bytes = at;
    free(row);
}

static void open_machine(model *m, const char *path, uint32_t max_tokens, unsigned threads,
                         unsigned terms)
{
    const muc_llama_options options = { .max_tokens = max_tokens };
    muc_ref_terms all = { .step = 64 };

    memset(&all, (int)terms, offsetof(muc_ref_terms, step));
    m->ctx = muc_context_new(threads);
    CHECK_OK(m->ctx, muc_checkpoint_open(m->ctx, path, &m->checkpoint));
    CHECK_OK(m->ctx, muc_llama_build(m->ctx, &m->checkpoint, &options, &m->graph));
    for (uint32_t i = 0; i < m->graph->node_count; i++) {
        const muc_node *node = &m->graph->nodes[i];

        if (node->op == MUC_OP_LINEAR || node->op == MUC_OP_EMBED)
            attach_sequence(m, &m->graph->tensors[node->inputs[1]], terms);
    }
    CHECK_OK(m->ctx, muc_ref_open_machine(m->ctx, m->graph, &all, &m->ref));
}

static void grouping_of_tokens_and_threads_change_no_bit(void **state)
{
    static const uint32_t groups[] = { 1, 2, 60, 3, 64, 63, 7 }; /* 200 tokens over 4 chunks */
    int32_t tokens[200];
    uint32_t pos = 0;
    model one, many;

    (void)state;
    open_machine(&one, shared_data("llama/stories260K.bin"), 1, 1, 2);
    open_machine(&many, shared_data("llama/stories260K.bin"), 64, 4, 2);
    for (int i = 0; i < 200; i++)
        tokens[i] = i * 167 % 512;
    for (size_t g = 0; g < MUC_COUNT(groups); g++) {
        const float *rows = logits_of(&many, pos, tokens + pos, groups[g]);

        for (uint32_t i = 0; i < groups[g]; i++, pos++)
            assert_memory_equal(rows + i * 512, logits_of(&one, pos, tokens + pos, 1),
                                512 * sizeof(float));
    }
    close_model(&one);
    close_model(&many);
}

/* root mean square of the difference of logits from float32 over 150 tokens, relative to theirs */
static double error_of(unsigned terms)
{
    double error = 0, power = 0;
    int32_t tokens[150];
    const float *found, *expected;
    size_t rows, columns;
    muc_ref *exact;
    model m;

    open_machine(&m, shared_data("llama/stories260K.bin"), 50, 2, terms);
    CHECK_OK(m.ctx, muc_ref_open(m.ctx, m.graph, &exact));
    for (int i = 0; i < 150; i++)
        tokens[i] = i ? i * 131 % 509 + 3 : 1;
    for (uint32_t pos = 0; pos < 150; pos += 50) {
        found = logits_of(&m, pos, tokens + pos, 50);
        CHECK_OK(m.ctx, muc_ref_run_tokens(exact, pos, tokens + pos, 50));
        expected = muc_ref_read(exact, "head", &rows, &columns);
        for (size_t i = 0; i < rows * columns; i++) {
            error += (double)(found[i] - expected[i]) * (double)(found[i] - expected[i]);
            power += (double)expected[i] * (double)expected[i];
        }
    }
    muc_ref_close(exact);
    close_model(&m);
    return sqrt(error / power);
}

static void more_terms_come_close_to_float32(void **state)
{
    double one = error_of(1), two = error_of(2);

    (void)state;
    print_message("relative error of logits: one term %.4f, two terms %.4f\n", one, two);
    CHECK(one < 0.3);
    CHECK(two < 0.03);
}

typedef struct seen {
    unsigned scores, weights, absorbed, slots;
    size_t slot_bytes;
    double sum;
} seen;

static void look(void *arg, const muc_node *node, const char *name, const float *data, size_t rows,
                 size_t columns)
{
    seen *s = arg;

    (void)node;
    if (strcmp(name, "layers.2.attention.scores") == 0 && rows == 24 && columns == 3)
        s->scores++;
    if (strcmp(name, "layers.2.attention.weights") == 0) {
        s->weights++;
        /* the first token sees itself alone, with weight 1 */
        s->sum = data[0] + data[1] + data[2];
    }
    s->absorbed += strcmp(name, "layers.2.o") == 0 || strcmp(name, "layers.2.down") == 0;
}

static void look_at_slots(void *arg, const muc_node *node, const uint8_t *slots, size_t rows,
                          size_t row_bytes)
{
    seen *s = arg;

    if (strcmp(node->name, "layers.2.residual") != 0)
        return;
    s->slots++;
    s->slot_bytes = rows * row_bytes;
    CHECK_EQ(slots[0], 36);
}

static void probes_see_inside_attention_and_the_slots(void **state)
{
    const int32_t tokens[] = { 1, 403, 407 };
    seen s = { 0 };
    model m;

    (void)state;
    open_machine(&m, shared_data("llama/stories260K.bin"), 3, 1, 2);
    muc_ref_set_probe(m.ref, look, &s);
    muc_ref_set_slots_probe(m.ref, look_at_slots, &s);
    logits_of(&m, 0, tokens, 3);
    CHECK_EQ(s.scores, 1);
    CHECK_EQ(s.weights, 1);
    CHECK_EQ(s.absorbed, 0);
    CHECK(s.sum == 1);
    /* the input of down: 172 elements are five slots of 37 bytes and one of 12 elements, 17 bytes
     */
    CHECK_EQ(s.slots, 1);
    CHECK_EQ(s.slot_bytes, 3 * (5 * 37 + 17));
    close_model(&m);
}

static void graphs_without_a_stage_are_refused_by_name(void **state)
{
    muc_ref_terms terms = { .step = 64 };
    muc_ref *ref;
    model m;

    (void)state;
    memset(&terms, 2, offsetof(muc_ref_terms, step));
    open_machine(&m, shared_data("llama/stories260K.bin"), 3, 1, 2);
    terms.h = 3;
    CHECK_FAILS(m.ctx, MUC_USAGE, "3 terms", muc_ref_open_machine(m.ctx, m.graph, &terms, &ref));
    terms.h = 1;
    terms.step = 16;
    CHECK_FAILS(m.ctx, MUC_USAGE, "16 tokens of a step",
                muc_ref_open_machine(m.ctx, m.graph, &terms, &ref));
    terms.step = 64;
    m.graph->tensors[muc_graph_find(m.graph, "model.layers.1.mlp.up_proj.weight")].sequence = NULL;
    CHECK_FAILS(m.ctx, MUC_UNSUPPORTED, "node 'layers.1.up'",
                muc_ref_open_machine(m.ctx, m.graph, &terms, &ref));
    close_model(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_that_of_the_specification),
        cmocka_unit_test(both_encoders_give_the_same_slots),
        cmocka_unit_test(both_encoders_agree_at_every_boundary),
        cmocka_unit_test(both_decoders_read_the_same_blocks),
        cmocka_unit_test(grouping_of_tokens_and_threads_change_no_bit),
        cmocka_unit_test(more_terms_come_close_to_float32),
        cmocka_unit_test(probes_see_inside_attention_and_the_slots),
        cmocka_unit_test(graphs_without_a_stage_are_refused_by_name),
    };

    return cmocka_run_group_tests_name("golden", tests, NULL, NULL);
}

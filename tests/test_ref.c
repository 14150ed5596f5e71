/* test_ref.c - the float32 reference against a Llama written a second time, naively, in double. */
#include "check.h"

#include <math.h>

#include "base/half.h"
#include "models/llama.h"
#include "ref/kernels.h"
#include "ref/ref.h"

enum {
    DIM = 24,
    FFN = 37,
    LAYERS = 2,
    HEADS = 6,
    KV_HEADS = 2,
    HEAD_DIM = 10,
    VOCABULARY = 29,
    CONTEXT = 40,
    Q_DIM = HEADS * HEAD_DIM,
    KV_DIM = KV_HEADS * HEAD_DIM,
    MAX_VIEWS = 64,
};

typedef struct weights {
    double input_norm[DIM], q[Q_DIM][DIM], k[KV_DIM][DIM], v[KV_DIM][DIM], o[DIM][Q_DIM];
    double q_bias[Q_DIM], k_bias[KV_DIM], v_bias[KV_DIM], o_bias[DIM];
    double q_norm[HEAD_DIM], k_norm[HEAD_DIM];
    double ffn_norm[DIM], gate[FFN][DIM], up[FFN][DIM], down[DIM][FFN];
} weights;

typedef struct network {
    muc_context *ctx;
    muc_checkpoint checkpoint;
    muc_tensor_view views[MAX_VIEWS];
    char names[MAX_VIEWS][80];
    bool with_extras; /* biases and head norms */
    double embedding[VOCABULARY][DIM], head[VOCABULARY][DIM], final_norm[DIM];
    weights layers[LAYERS];
    /* the naive model's cache */
    double keys[LAYERS][CONTEXT][KV_DIM], values[LAYERS][CONTEXT][KV_DIM];
    muc_graph *graph;
    muc_ref *ref;
} network;

static uint64_t seed;

static double random_weight(double around)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    /* multiples of 2^-9 around 0 or 1: exact in every float type */
    return around + ((double)(seed >> 56) - 128) / 512;
}

/* Fills values, and gives the checkpoint the same numbers in a type of their own. */
static void add(network *n, const char *name, unsigned layer, double *values, uint32_t rows,
                uint32_t columns, double around)
{
    static const muc_dtype types[] = { MUC_F32, MUC_F16, MUC_F64 };
    size_t count = (size_t)rows * (columns ? columns : 1), index = n->checkpoint.tensor_count++;
    muc_tensor_view *view = &n->views[index];
    uint8_t *data;

    CHECK(index < MAX_VIEWS);
    snprintf(n->names[index], sizeof(n->names[0]), name, layer);
    view->name = n->names[index];
    view->dtype = types[index % MUC_COUNT(types)];
    view->rank = columns ? 2 : 1;
    view->dims[0] = rows;
    view->dims[1] = columns;
    view->elements = count;
    view->file = "memory";
    view->bytes = count * muc_dtype_get(view->dtype)->block_bytes;
    /* an odd address: readers map files of any alignment */
    CHECK_OK(n->ctx, MUC_ARENA_NEW(n->ctx, &n->checkpoint.arena, view->bytes + 1, &data));
    data++;
    view->data = data;
    for (size_t i = 0; i < count; i++) {
        float single = (float)(values[i] = random_weight(around));
        uint16_t half = muc_f16_of_f32(single);

        if (view->dtype == MUC_F32)
            memcpy(data + 4 * i, &single, 4);
        else if (view->dtype == MUC_F16)
            memcpy(data + 2 * i, &half, 2);
        else
            memcpy(data + 8 * i, &values[i], 8);
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const muc_tensor_view *)a)->name, ((const muc_tensor_view *)b)->name);
}

#define LAYER(name) "model.layers.%u." name ".weight"

static void add_layer(network *n, unsigned i)
{
    weights *w = &n->layers[i];

    add(n, LAYER("input_layernorm"), i, w->input_norm, DIM, 0, 1);
    add(n, LAYER("self_attn.q_proj"), i, w->q[0], Q_DIM, DIM, 0);
    add(n, LAYER("self_attn.k_proj"), i, w->k[0], KV_DIM, DIM, 0);
    add(n, LAYER("self_attn.v_proj"), i, w->v[0], KV_DIM, DIM, 0);
    add(n, LAYER("self_attn.o_proj"), i, w->o[0], DIM, Q_DIM, 0);
    add(n, LAYER("post_attention_layernorm"), i, w->ffn_norm, DIM, 0, 1);
    add(n, LAYER("mlp.gate_proj"), i, w->gate[0], FFN, DIM, 0);
    add(n, LAYER("mlp.up_proj"), i, w->up[0], FFN, DIM, 0);
    add(n, LAYER("mlp.down_proj"), i, w->down[0], DIM, FFN, 0);
    if (!n->with_extras)
        return;
    add(n, "model.layers.%u.self_attn.q_proj.bias", i, w->q_bias, Q_DIM, 0, 0);
    add(n, "model.layers.%u.self_attn.k_proj.bias", i, w->k_bias, KV_DIM, 0, 0);
    add(n, "model.layers.%u.self_attn.v_proj.bias", i, w->v_bias, KV_DIM, 0, 0);
    add(n, "model.layers.%u.self_attn.o_proj.bias", i, w->o_bias, DIM, 0, 0);
    add(n, LAYER("self_attn.q_norm"), i, w->q_norm, HEAD_DIM, 0, 1);
    add(n, LAYER("self_attn.k_norm"), i, w->k_norm, HEAD_DIM, 0, 1);
}

static network *build_network(bool with_extras, unsigned threads)
{
    static const muc_llama_options options = { .max_tokens = 16 };
    network *n = calloc(1, sizeof(*n));
    muc_model_config *c;

    assert_non_null(n);
    seed = 7;
    n->ctx = muc_context_new(threads);
    n->with_extras = with_extras;
    c = &n->checkpoint.config;
    *c = (muc_model_config){ .architecture = "test",
                             .dim = DIM,
                             .ffn_dim = FFN,
                             .layers = LAYERS,
                             .heads = HEADS,
                             .kv_heads = KV_HEADS,
                             .head_dim = HEAD_DIM,
                             .vocabulary = VOCABULARY,
                             .context = CONTEXT,
                             .norm_epsilon = 1e-5,
                             .rope_theta = 100,
                             .tied = !with_extras,
                             .qkv_bias = with_extras,
                             .output_bias = with_extras,
                             .head_norm = with_extras };
    n->checkpoint.tensors = n->views;
    n->checkpoint.path = "memory";
    add(n, "model.embed_tokens.weight", 0, n->embedding[0], VOCABULARY, DIM, 0);
    for (unsigned i = 0; i < LAYERS; i++)
        add_layer(n, i);
    add(n, "model.norm.weight", 0, n->final_norm, DIM, 0, 1);
    if (with_extras)
        add(n, "lm_head.weight", 0, n->head[0], VOCABULARY, DIM, 0);
    else
        memcpy(n->head, n->embedding, sizeof(n->head));
    qsort(n->views, n->checkpoint.tensor_count, sizeof(n->views[0]), by_name);
    CHECK_OK(n->ctx, muc_llama_build(n->ctx, &n->checkpoint, &options, &n->graph));
    CHECK_OK(n->ctx, muc_ref_open(n->ctx, n->graph, &n->ref));
    return n;
}

static void free_network(network *n)
{
    muc_ref_close(n->ref);
    muc_graph_free(n->graph);
    muc_arena_free(&n->checkpoint.arena);
    muc_context_free(n->ctx);
    free(n);
}

/* The naive model. */
static void times(const double *w, const double *bias, const double *x, int rows, int columns,
                  double *y)
{
    for (int r = 0; r < rows; r++) {
        y[r] = bias[r];
        for (int c = 0; c < columns; c++)
            y[r] += w[r * columns + c] * x[c];
    }
}

static void normalise(const double *x, const double *gain, int count, double *y)
{
    double squares = 0;

    for (int i = 0; i < count; i++)
        squares += x[i] * x[i];
    for (int i = 0; i < count; i++)
        y[i] = x[i] / sqrt(squares / count + 1e-5) * gain[i];
}

static void rotate(double *head, int position)
{
    for (int i = 0; i < HEAD_DIM / 2; i++) {
        double angle = position * pow(100, -2.0 * i / HEAD_DIM);
        double re = head[i], im = head[i + HEAD_DIM / 2];

        head[i] = re * cos(angle) - im * sin(angle);
        head[i + HEAD_DIM / 2] = re * sin(angle) + im * cos(angle);
    }
}

static void naive_attention(network *n, int layer, int position, const double *q, double *out)
{
    for (int h = 0; h < HEADS; h++) {
        int first = h / (HEADS / KV_HEADS) * HEAD_DIM;
        double p[CONTEXT], sum = 0;

        for (int t = 0; t <= position; t++) {
            double score = 0;

            for (int i = 0; i < HEAD_DIM; i++)
                score += q[h * HEAD_DIM + i] * n->keys[layer][t][first + i];
            sum += p[t] = exp(score / sqrt(HEAD_DIM));
        }
        for (int i = 0; i < HEAD_DIM; i++) {
            out[h * HEAD_DIM + i] = 0;
            for (int t = 0; t <= position; t++)
                out[h * HEAD_DIM + i] += p[t] / sum * n->values[layer][t][first + i];
        }
    }
}

static void naive_layer(network *n, int layer, int position, double x[DIM])
{
    weights *w = &n->layers[layer];
    double *k = n->keys[layer][position], *v = n->values[layer][position];
    double normed[DIM], q[Q_DIM], y[Q_DIM], gate[FFN], up[FFN], sum[DIM];
    static const double none[Q_DIM];

    normalise(x, w->input_norm, DIM, normed);
    times(w->q[0], w->q_bias, normed, Q_DIM, DIM, q);
    times(w->k[0], w->k_bias, normed, KV_DIM, DIM, k);
    times(w->v[0], w->v_bias, normed, KV_DIM, DIM, v);
    for (int h = 0; h < HEADS; h++) {
        if (n->with_extras)
            normalise(q + h * HEAD_DIM, w->q_norm, HEAD_DIM, q + h * HEAD_DIM);
        rotate(q + h * HEAD_DIM, position);
    }
    for (int h = 0; h < KV_HEADS; h++) {
        if (n->with_extras)
            normalise(k + h * HEAD_DIM, w->k_norm, HEAD_DIM, k + h * HEAD_DIM);
        rotate(k + h * HEAD_DIM, position);
    }
    naive_attention(n, layer, position, q, y);
    times(w->o[0], w->o_bias, y, DIM, Q_DIM, sum);
    for (int i = 0; i < DIM; i++)
        x[i] += sum[i];
    normalise(x, w->ffn_norm, DIM, normed);
    times(w->gate[0], none, normed, FFN, DIM, gate);
    times(w->up[0], none, normed, FFN, DIM, up);
    for (int i = 0; i < FFN; i++)
        gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i];
    times(w->down[0], none, gate, DIM, FFN, sum);
    for (int i = 0; i < DIM; i++)
        x[i] += sum[i];
}

static void naive_step(network *n, int position, int32_t token, double logits[VOCABULARY])
{
    static const double none[VOCABULARY];
    double x[DIM], normed[DIM];

    memcpy(x, n->embedding[token], sizeof(x));
    for (int layer = 0; layer < LAYERS; layer++)
        naive_layer(n, layer, position, x);
    normalise(x, n->final_norm, DIM, normed);
    times(n->head[0], none, normed, VOCABULARY, DIM, logits);
}

static int32_t token_at(int position)
{
    return position * 11 % VOCABULARY;
}

static const float *run(network *n, uint32_t pos, uint32_t count)
{
    int32_t tokens[16];
    size_t rows, columns;

    for (uint32_t i = 0; i < count; i++)
        tokens[i] = token_at((int)(pos + i));
    CHECK_OK(n->ctx, muc_ref_run_tokens(n->ref, pos, tokens, count));
    return muc_ref_read(n->ref, "head", &rows, &columns);
}

static void check_against_naive(bool with_extras)
{
    network *n = build_network(with_extras, 1);

    for (int pos = 0; pos < CONTEXT; pos++) {
        const float *found = run(n, (uint32_t)pos, 1);
        double expected[VOCABULARY];

        naive_step(n, pos, token_at(pos), expected);
        for (int i = 0; i < VOCABULARY; i++)
            if (!(fabs(found[i] - expected[i]) < 2e-5))
                fail_msg("position %d, logit %d: %.8f, expected %.8f", pos, i, (double)found[i],
                         expected[i]);
    }
    free_network(n);
}

static void a_llama_with_grouped_queries_is_what_its_formula_says(void **state)
{
    (void)state;
    check_against_naive(false);
}

static void biases_head_norms_and_an_untied_head_count(void **state)
{
    (void)state;
    check_against_naive(true);
}

static void grouping_of_tokens_and_threads_change_no_bit(void **state)
{
    static const uint32_t groups[] = { 16, 1, 3, 4, 5, 11 };
    network *one = build_network(true, 1), *many = build_network(true, 4);
    uint32_t pos = 0;

    (void)state;
    for (size_t g = 0; g < MUC_COUNT(groups); g++) {
        const float *rows = run(many, pos, groups[g]);

        for (uint32_t i = 0; i < groups[g]; i++, pos++)
            assert_memory_equal(rows + i * VOCABULARY, run(one, pos, 1),
                                VOCABULARY * sizeof(float));
    }
    free_network(one);
    free_network(many);
}

/* The same bits from memory that activations share, and of those the graph's outputs alone. */
static void sharing_memory_changes_no_bit(void **state)
{
    static const uint32_t groups[] = { 3, 16, 1, 8 };
    network *own = build_network(true, 1), *shared = build_network(true, 2);
    const muc_graph *graph = shared->graph;
    muc_ref_view view;
    uint32_t pos = 0;

    (void)state;
    CHECK_OK(shared->ctx, muc_ref_share(shared->ref));
    for (size_t g = 0; g < MUC_COUNT(groups); pos += groups[g++])
        assert_memory_equal(run(shared, pos, groups[g]), run(own, pos, groups[g]),
                            groups[g] * VOCABULARY * sizeof(float));
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        if (graph->tensors[i].kind == MUC_TENSOR_ACTIVATION)
            CHECK_EQ(muc_ref_get(shared->ref, i, &view), i == graph->outputs[0]);
    free_network(own);
    free_network(shared);
}

/* The rows of logits that are skipped are the first, the others as they were. */
static void logits_of_the_last_tokens_are_those_of_all(void **state)
{
    const muc_llama_options options = { .skips = true };
    uint32_t bindings[MUC_EXPR_MAX_INPUTS] = { 0, 5 };
    network *n = build_network(true, 1);
    const int32_t tokens[] = { 0, 11, 22, 4, 15 }; /* token_at */
    const muc_ref_input input = { "tokens", tokens, sizeof(tokens) };
    const float *all = run(n, 0, 5), *found;
    muc_graph *graph;
    size_t rows, columns;
    muc_ref *ref;

    (void)state;
    CHECK_OK(n->ctx, muc_llama_build(n->ctx, &n->checkpoint, &options, &graph));
    CHECK_OK(n->ctx, muc_ref_open(n->ctx, graph, &ref));
    for (uint32_t skip = 0; skip < 5; skip++) {
        bindings[2] = skip;
        CHECK_OK(n->ctx, muc_ref_run(ref, bindings, &input, 1));
        found = muc_ref_read(ref, "head", &rows, &columns);
        CHECK_EQ(rows, 5 - skip);
        assert_memory_equal(found, all + skip * VOCABULARY, rows * VOCABULARY * sizeof(float));
    }
    muc_ref_close(ref);
    muc_graph_free(graph);
    free_network(n);
}

static void reset_forgets_the_past(void **state)
{
    network *n = build_network(false, 1);
    float first[VOCABULARY];
    size_t rows, columns;
    const float *cache;

    (void)state;
    memcpy(first, run(n, 0, 1), sizeof(first));
    run(n, 1, 16);
    muc_ref_reset(n->ref);
    cache = muc_ref_read(n->ref, "layers.1.k_cache", &rows, &columns);
    CHECK_EQ(rows, CONTEXT);
    CHECK_EQ(columns, KV_DIM);
    for (size_t i = 0; i < rows * columns; i++)
        CHECK(cache[i] == 0);
    assert_memory_equal(run(n, 0, 1), first, sizeof(first));
    free_network(n);
}

typedef struct seen {
    unsigned calls;
    size_t rows;
    bool gate;
} seen;

static void look(void *arg, const muc_node *node, const char *name, const float *data, size_t rows,
                 size_t columns)
{
    seen *s = arg;

    s->calls++;
    s->rows = rows;
    s->gate = s->gate || (strcmp(name, "layers.1.gate") == 0 && columns == FFN &&
                          node->op == MUC_OP_LINEAR && isfinite(data[rows * columns - 1]));
}

static void the_probe_sees_every_node(void **state)
{
    network *n = build_network(false, 1);
    seen s = { 0 };

    (void)state;
    muc_ref_set_probe(n->ref, look, &s);
    run(n, 0, 5);
    CHECK_EQ(s.calls, n->graph->node_count);
    CHECK_EQ(s.rows, 5);
    CHECK(s.gate);
    free_network(n);
}

static void what_cannot_run_is_refused(void **state)
{
    network *n = build_network(false, 1);
    const muc_ref_input wrong = { "tokens", "1234567", 7 };
    const uint32_t bindings[] = { 0, 1 };
    muc_text text = { 0 };
    muc_graph *bare;
    muc_bytes bytes;
    muc_ref *ref;
    float nan = NAN;

    (void)state;
    CHECK_FAILS(n->ctx, MUC_USAGE, "input 'tokens' has 7 bytes, expected 4",
                muc_ref_run(n->ref, bindings, &wrong, 1));
    CHECK_FAILS(n->ctx, MUC_USAGE, "input 'tokens' is missing",
                muc_ref_run(n->ref, bindings, NULL, 0));
    muc_graph_print(n->graph, &text);
    bytes = (muc_bytes){ (const uint8_t *)text.data, text.size, "text" };
    CHECK_OK(n->ctx, muc_graph_parse(n->ctx, bytes, &bare));
    CHECK_FAILS(n->ctx, MUC_UNSUPPORTED, "has no data", muc_ref_open(n->ctx, bare, &ref));
    muc_graph_free(bare);
    muc_text_free(&text);
    /* views[0] by name is model.embed_tokens.weight, added first and so f32 */
    memcpy((void *)(uintptr_t)(n->views[0].data + 8), &nan, sizeof(nan));
    CHECK_FAILS(n->ctx, MUC_MALFORMED, "element 2 is not finite",
                muc_ref_open(n->ctx, n->graph, &ref));
    free_network(n);
}

static void the_first_weight_that_is_not_finite_is_found(void **state)
{
    enum { COUNT = 5000 };
    static const struct {
        muc_dtype dtype;
        uint32_t finite[2], others[3]; /* the greatest; infinite, and two that are not numbers */
    } rows[] = { { MUC_F32, { 0x7f7fffff, 0xff7fffff }, { 0x7f800000, 0xff800000, 0x7f800001 } },
                 { MUC_F16, { 0x7bff, 0xfbff }, { 0x7c00, 0xfc00, 0x7c01 } },
                 { MUC_BF16, { 0x7f7f, 0xff7f }, { 0x7f80, 0xff80, 0x7f81 } } };
    static const size_t places[] = { 0, 2047, 2048, 4097, COUNT - 1 };
    network *n = build_network(false, 1);
    static uint32_t words[COUNT];
    uint8_t *data = (uint8_t *)words;

    (void)state;
    for (size_t r = 0; r < MUC_COUNT(rows); r++) {
        const muc_ref_value value = { .dtype = rows[r].dtype, .elements = COUNT, .read = data };
        size_t width = muc_dtype_get(rows[r].dtype)->block_bytes;

        for (size_t i = 0; i < COUNT; i++)
            memcpy(data + i * width, &rows[r].finite[i % 2], width);
        CHECK_OK(n->ctx, muc_ref_check_finite(n->ctx, n->graph, 0, &value));
        for (size_t p = 0; p < MUC_COUNT(places); p++)
            for (size_t o = 0; o < MUC_COUNT(rows[r].others); o++) {
                char message[64];

                snprintf(message, sizeof(message), "element %zu is not finite", places[p]);
                memcpy(data + places[p] * width, &rows[r].others[o], width);
                CHECK_FAILS(n->ctx, MUC_MALFORMED, message,
                            muc_ref_check_finite(n->ctx, n->graph, 0, &value));
                memcpy(data + places[p] * width, &rows[r].finite[0], width);
            }
    }
    free_network(n);
}

static void every_failed_allocation_is_told(void **state)
{
    network *n = build_network(true, 1);
    const int32_t token = 3;

    (void)state;
    for (long k = 0;; k++) {
        static const muc_llama_options options = { .max_tokens = 2 };
        muc_graph *graph = NULL;
        muc_ref *ref = NULL;
        muc_status status;

        muc_alloc_fail_after(k);
        status = muc_llama_build(n->ctx, &n->checkpoint, &options, &graph);
        if (status == MUC_OK)
            status = muc_ref_open(n->ctx, graph, &ref);
        if (status == MUC_OK)
            status = muc_ref_share(ref);
        if (status == MUC_OK)
            status = muc_ref_run_tokens(ref, 0, &token, 1);
        muc_alloc_fail_after(-1);
        muc_ref_close(ref);
        muc_graph_free(graph);
        if (status == MUC_OK)
            break;
        CHECK_EQ(status, MUC_NOMEM);
        CHECK(*muc_error_message(n->ctx) != '\0');
        muc_error_clear(n->ctx);
    }
    free_network(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_llama_with_grouped_queries_is_what_its_formula_says),
        cmocka_unit_test(biases_head_norms_and_an_untied_head_count),
        cmocka_unit_test(grouping_of_tokens_and_threads_change_no_bit),
        cmocka_unit_test(sharing_memory_changes_no_bit),
        cmocka_unit_test(logits_of_the_last_tokens_are_those_of_all),
        cmocka_unit_test(reset_forgets_the_past),
        cmocka_unit_test(the_probe_sees_every_node),
        cmocka_unit_test(what_cannot_run_is_refused),
        cmocka_unit_test(the_first_weight_that_is_not_finite_is_found),
        cmocka_unit_test(every_failed_allocation_is_told),
    };

    return cmocka_run_group_tests_name("ref", tests, NULL, NULL);
}

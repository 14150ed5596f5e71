/* test_uthinker_families.c - what families of language models have that Llama has not, as programs
 * on the simulator against the golden model: the same logits to the bit after calls of all lengths,
 * and other ones if the feature is left out. */
#include "family_board.h"
#include "targets/uthinker/clock/clock.h"
#include "targets/uthinker/clock/clock_work.h"

/* ---- the comparison ---- */

static uint32_t next_call(const board *b, uint32_t pos, uint32_t call)
{
    static const uint32_t sizes[] = { 1, 3, 64, 1, 63, 1, 1, 40, 2, 64, 64 };
    uint32_t m = sizes[call % MUC_COUNT(sizes)], rows = b->program.meta->rows;

    m = m < rows ? m : rows;
    return m < MOST_CONTEXT - pos ? m : MOST_CONTEXT - pos;
}

static const float *golden_logits(muc_ref *golden, muc_context *ctx, uint32_t pos,
                                  const int32_t *tokens, uint32_t m)
{
    size_t rows, columns;
    const float *logits;

    CHECK_OK(ctx, muc_ref_run_tokens(golden, pos, tokens + pos, m));
    logits = muc_ref_read(golden, "head", &rows, &columns);
    assert_non_null(logits);
    CHECK_EQ(columns, llama.vocabulary);
    return logits + (rows - 1) * columns;
}

enum { MOST_LAYERS = 6 };

static muc_ref_terms terms_of(const muc_uthinker_terms *terms)
{
    return (muc_ref_terms){
#define SAME_TERM(letter, meaning) .letter = terms->letter,
        MUC_UTHINKER_TERMS(SAME_TERM)
#undef SAME_TERM
            .step = 64,
    };
}

static muc_ref_terms golden_terms(const muc_uthinker_options *options,
                                  muc_ref_terms layers[MOST_LAYERS])
{
    muc_ref_terms out = terms_of(options->layer_terms ? options->layer_terms : &options->terms);

    for (uint32_t l = 0; l < MOST_LAYERS && options->layer_terms; l++)
        layers[l] = terms_of(&options->layer_terms[l]);
    out.layers = options->layer_terms ? layers : NULL;
    out.layer_count = MOST_LAYERS;
    return out;
}

/* ---- the least bytes: SPEC.md 9.6 ---- */

/* Which bytes of the regions a call reads and writes. */
typedef struct touched {
    const mur_program *program;
    uint8_t *seen; /* of all regions: 1 read, 2 written */
    uint64_t bytes;
} touched;

static void touch(void *arg, const muc_clock_event *event)
{
    touched *t = arg;
    const muc_clock_work *work = event->work;
    uint8_t bit = work->op == MUC_INSN_ST ? 2 : 1, *at = t->seen;

    if (event->part != MUC_PART_DMA)
        return;
    for (uint32_t r = 0; r < work->region; r++)
        at += t->program->region_bytes[r];
    for (uint64_t i = work->offset; i < work->offset + work->bytes; i++) {
        t->bytes += !(at[i] & bit);
        at[i] |= bit;
    }
}

static void pass(void *arg, uint64_t from, uint64_t to, muc_clock_reason reason, uint32_t at)
{
    (void)arg, (void)from, (void)to, (void)reason, (void)at;
}

/* No byte is read or written in vain but by a machine that loads whole steps of 64 tokens where a
 * window begins inside one, and the tail of values that it does not see. */
static void check_least(const board *b, const muc_uthinker_layout *layout, uint32_t pos, uint32_t m)
{
    uint64_t all = 0, row = muc_uthinker_slots_bytes(24, 2) + 4 * 24;
    touched t = { .program = &b->program };
    const muc_clock_watch watch = { &t, pass, touch };
    muc_clock_sums sums = { 0 };

    for (uint32_t r = 0; r < MUR_REGIONS; r++)
        all += b->program.region_bytes[r];
    t.seen = calloc(1, all);
    assert_non_null(t.seen);
    CHECK_OK(b->ctx, muc_clock_watched(b->ctx, &b->program, &layout->machine, pos, m,
                                       MUC_CLOCK_LIKELIEST, &watch, &sums));
    if (!layout->windows && !layout->options.recompute)
        CHECK_EQ(sums.least_bytes, t.bytes);
    CHECK(sums.least_bytes <= t.bytes);
    if (!layout->options.recompute)
        CHECK(t.bytes - sums.least_bytes <= (uint64_t)layout->layers * layout->kv_heads * 63 * row);
    free(t.seen);
}

/* all of the context; `last` gets the logits at its end */
static void check_run(muc_context *ctx, const family *f, muc_graph *graph,
                      const muc_uthinker_options *options, const int32_t *tokens, float *last)
{
    muc_ref_terms layers[MOST_LAYERS];
    const muc_ref_terms terms = golden_terms(options, layers);
    size_t bytes = llama.vocabulary * sizeof(float);
    muc_ref *golden;
    board b;

    boot(&b, ctx, graph, options, MUR_SIM_LAZY);
    CHECK_OK(ctx, muc_ref_open_machine(ctx, graph, &terms, &golden));
    for (uint32_t pos = 0, call = 0; pos < MOST_CONTEXT; call++) {
        uint32_t m = next_call(&b, pos, call);
        const float *found = run(&b, pos, tokens + pos, m);
        const float *expected = golden_logits(golden, ctx, pos, tokens, m);

        if (memcmp(found, expected, bytes) != 0)
            fail_msg("%s: other logits after position %u in a call of %u", f->name, pos + m - 1, m);
        memcpy(last, found, bytes);
        check_least(&b, &b.build->layout, pos, m);
        pos += m;
    }
    muc_ref_close(golden);
    shut_down(&b);
}

/* the golden model without a feature gives other logits */
static void check_feature(muc_context *ctx, const family *f, const muc_checkpoint *checkpoint,
                          change *without, const muc_uthinker_options *options,
                          const int32_t *tokens, const float *last)
{
    muc_ref_terms layers[MOST_LAYERS];
    const muc_ref_terms terms = golden_terms(options, layers);
    muc_checkpoint other = *checkpoint;
    const float *found = NULL;
    muc_graph *graph;
    muc_ref *golden;

    without(&other.config);
    graph = make_graph(ctx, &other);
    CHECK_OK(ctx, muc_ref_open_machine(ctx, graph, &terms, &golden));
    for (uint32_t pos = 0; pos < MOST_CONTEXT; pos += 64)
        found = golden_logits(golden, ctx, pos, tokens, 64);
    if (memcmp(found, last, llama.vocabulary * sizeof(float)) == 0)
        fail_msg("%s: without a feature the logits are the same", f->name);
    muc_ref_close(golden);
    muc_graph_free(graph);
}

/* on tiles of 64 rows */
static bool can_split(const muc_model_config *c, muc_uthinker_split split)
{
    uint32_t queries = c->heads * c->head_dim;

    return c->ffn_dim % (64 * (split.ffn_parts ? split.ffn_parts : 1)) == 0
               ? !split.o_by_head || queries % (64 * c->kv_heads) == 0
               : split.ffn_parts == 0;
}

/* with a message that says why */
static void check_refused(muc_context *ctx, const muc_graph *graph,
                          const muc_uthinker_options *options, const char *why)
{
    static const muc_uthinker_tokens tokens = { .bos = UINT32_MAX };
    muc_uthinker_machine machine;
    muc_arena arena = { 0 };
    muc_uthinker_build *build;

    CHECK_OK(ctx, muc_uthinker_read_machine(ctx, &arena, muc_uthinker_default_machine(), &machine));
    CHECK_EQ(muc_uthinker_compile(ctx, graph, &machine, options, &tokens, &build), MUC_UNSUPPORTED);
    if (!strstr(muc_error_message(ctx), why))
        fail_msg("refused with: %s", muc_error_message(ctx));
    muc_arena_free(&arena);
}

/* whatever the options, before any weight is quantized */
static void check_refusal(const family *f, const char *why)
{
    muc_context *ctx = muc_context_new(1);
    muc_checkpoint checkpoint;
    muc_graph *graph;

    make_checkpoint(ctx, f, &checkpoint);
    graph = make_graph(ctx, &checkpoint);
    check_refused(ctx, graph, &muc_uthinker_defaults, why);
    muc_graph_free(graph);
    muc_checkpoint_close(&checkpoint);
    muc_context_free(ctx);
}

static void check_family(const family *f)
{
    static const muc_uthinker_terms layers[MOST_LAYERS] = {
        { 2, 1, 2, 1, 2, 1, 2, 2, 2 }, { 1, 2, 1, 2, 1, 2, 1, 1, 2 }, { 1, 2, 1, 2, 1, 2, 1, 1, 2 },
        { 2, 2, 1, 2, 2, 2, 1, 2, 2 }, { 1, 1, 2, 1, 1, 1, 2, 1, 2 }, { 2, 2, 2, 1, 2, 2, 2, 2, 2 },
    };
    static const muc_uthinker_options options[] = {
        { .terms = { 2, 2, 2, 2, 2, 2, 2, 2, 2 } },
        { .terms = { 2, 1, 1, 2, 1, 2, 1, 1, 2 }, .recompute = true },
        { .terms = { 1, 2, 1, 2, 2, 1, 2, 1, 1 }, .split = { .ffn_parts = 2, .o_by_head = true } },
        { .layer_terms = layers },
        { .layer_terms = layers, .recompute = true },
    };
    static size_t turn; /* a brief test takes the options but the first by turns */
    muc_context *ctx = muc_context_new(1);
    int32_t tokens[MOST_CONTEXT];
    float last[MUC_COUNT(options)][128];
    muc_checkpoint checkpoint;
    muc_graph *graph;

    make_checkpoint(ctx, f, &checkpoint);
    graph = make_graph(ctx, &checkpoint);
    for (size_t i = 0; i < MUC_COUNT(tokens); i++)
        tokens[i] = (int32_t)(random_u32() % llama.vocabulary);
    for (size_t i = 0; i < MUC_COUNT(options); i++)
        if (brief() && i > 0 && i != 1 + turn % (MUC_COUNT(options) - 1))
            continue;
        else if (options[i].recompute && checkpoint.config.whole_norm)
            check_refused(ctx, graph, &options[i], "over all heads together");
        else if (can_split(&checkpoint.config, options[i].split))
            check_run(ctx, f, graph, &options[i], tokens, last[i]);
    turn++;
    for (size_t i = 0; i < MUC_COUNT(f->without) && f->without[i] && !brief(); i++)
        check_feature(ctx, f, &checkpoint, f->without[i], &options[0], tokens, last[0]);
    muc_graph_free(graph);
    muc_checkpoint_close(&checkpoint);
    muc_context_free(ctx);
}

/* ---- the families ---- */

static void run_twice(muc_model_config *c)
{
    c->layers_twice = true;
    c->tied = true;
}

static void run_once(muc_model_config *c)
{
    c->layers_twice = false;
}

static void shared_layers_are_stored_once(void **state)
{
    const family f = { "MobileLLM-LS", run_twice, { run_once } };
    const family same = { "MobileLLM", run_once, { NULL } };
    const family *both[] = { &f, &same };
    uint32_t bytes[2];

    (void)state;
    check_family(&f);
    for (int i = 0; i < 2; i++) {
        muc_context *ctx = muc_context_new(1);
        muc_checkpoint checkpoint;
        muc_graph *graph;
        board b;

        make_checkpoint(ctx, both[i], &checkpoint);
        graph = make_graph(ctx, &checkpoint);
        boot(&b, ctx, graph, &muc_uthinker_defaults, MUR_SIM_EAGER);
        CHECK_EQ(b.build->layout.own_layers, llama.layers);
        CHECK_EQ(b.build->layout.layers, (2u - (unsigned)i) * llama.layers);
        bytes[i] = b.build->layout.matrix[MUC_MATRIX_Q].tiles;
        shut_down(&b);
        muc_graph_free(graph);
        muc_checkpoint_close(&checkpoint);
        muc_context_free(ctx);
    }
    CHECK_EQ(bytes[0], bytes[1]);
}

static void with_biases(muc_model_config *c)
{
    c->qkv_bias = true;
}

static void without_biases(muc_model_config *c)
{
    c->qkv_bias = false;
}

static void biases_start_the_accumulators(void **state)
{
    const family f = { "Qwen2", with_biases, { without_biases } };

    (void)state;
    check_family(&f);
}

static void with_head_norms(muc_model_config *c)
{
    c->head_norm = true;
    c->layers_twice = true;
}

static void without_head_norms(muc_model_config *c)
{
    c->head_norm = false;
}

static void heads_are_normalised(void **state)
{
    const family f = { "Qwen3", with_head_norms, { without_head_norms } };

    (void)state;
    check_family(&f);
}

static void like_gemma(muc_model_config *c)
{
    c->activation = MUC_ACTIVATION_GELU_NEW;
    c->tied = true;
    c->embedding_factor = 9.797959;
    c->output_norms = true;
    c->attention_cap = 2;
    c->logit_cap = 3;
    c->attention_factor = 0.25;
}

static void with_silu(muc_model_config *c)
{
    c->activation = MUC_ACTIVATION_SILU;
}

static void without_embedding_factor(muc_model_config *c)
{
    c->embedding_factor = 0;
}

static void without_output_norms(muc_model_config *c)
{
    c->output_norms = false;
}

static void without_attention_cap(muc_model_config *c)
{
    c->attention_cap = 0;
}

static void without_logit_cap(muc_model_config *c)
{
    c->logit_cap = 0;
}

static void without_attention_factor(muc_model_config *c)
{
    c->attention_factor = 0;
}

static void gelu_norms_of_results_and_caps(void **state)
{
    const family f = { "Gemma 2",
                       like_gemma,
                       { with_silu, without_embedding_factor, without_output_norms,
                         without_attention_cap, without_logit_cap, without_attention_factor } };

    (void)state;
    check_family(&f);
}

static void like_granite(muc_model_config *c)
{
    c->embedding_factor = 12;
    c->residual_factor = 0.22;
    c->logit_factor = 0.125;
    c->attention_factor = 0.015625;
    c->heads = 6;
    c->kv_heads = 3;
    c->head_dim = 32;
    c->ffn_dim = 256;
}

static void without_residual_factor(muc_model_config *c)
{
    c->residual_factor = 0;
}

static void without_logit_factor(muc_model_config *c)
{
    c->logit_factor = 0;
}

static void factors_of_rows_results_and_logits(void **state)
{
    const family f = { "Granite",
                       like_granite,
                       { without_embedding_factor, without_residual_factor, without_logit_factor,
                         without_attention_factor } };

    (void)state;
    check_family(&f);
}

static const muc_layer_view windows[] = { { .window = 100 }, { .window = 100 }, { .window = 100 } };
static const muc_layer_view narrow[] = { { .window = 20 }, { .window = 200 }, { .window = 1 } };
static const muc_layer_view wide[] = { { .window = 200 }, { 0 }, { .window = 200 } };
static const muc_layer_view mixed[] = { { .window = 40, .angles = MUC_ANGLES_LOCAL },
                                        { .window = 40, .angles = MUC_ANGLES_LOCAL },
                                        { .angles = MUC_ANGLES_GLOBAL } };
static const muc_layer_view mixed_whole[] = { { .angles = MUC_ANGLES_LOCAL },
                                              { .angles = MUC_ANGLES_LOCAL },
                                              { .angles = MUC_ANGLES_GLOBAL } };
static const muc_layer_view mixed_global[] = { { .window = 40 }, { .window = 40 }, { 0 } };
static const muc_layer_view some_turn[] = { { 0 }, { .angles = MUC_ANGLES_NONE }, { 0 } };

static void with_windows(muc_model_config *c)
{
    c->layer_views = windows;
}

static void without_views(muc_model_config *c)
{
    c->layer_views = NULL;
}

static void with_narrow_windows(muc_model_config *c)
{
    c->layer_views = narrow;
    c->heads = 3;
    c->kv_heads = 1;
}

/* what the DMA reads of region KV for the context's last token, if it is fed alone */
static uint64_t cache_bytes(const family *f)
{
    const int32_t tokens[1] = { 0 };
    muc_context *ctx = muc_context_new(1);
    muc_checkpoint checkpoint;
    muc_graph *graph;
    uint64_t bytes;
    board b;

    make_checkpoint(ctx, f, &checkpoint);
    graph = make_graph(ctx, &checkpoint);
    boot(&b, ctx, graph, &muc_uthinker_defaults, MUR_SIM_EAGER);
    for (uint32_t pos = 0; pos < MOST_CONTEXT - 1; pos++)
        run(&b, pos, tokens, 1);
    bytes = b.sim.loaded_bytes[MUR_KV];
    run(&b, MOST_CONTEXT - 1, tokens, 1);
    bytes = b.sim.loaded_bytes[MUR_KV] - bytes;
    shut_down(&b);
    muc_graph_free(graph);
    muc_checkpoint_close(&checkpoint);
    muc_context_free(ctx);
    return bytes;
}

static void with_wide_windows(muc_model_config *c)
{
    c->layer_views = wide;
}

static void queries_see_windows(void **state)
{
    const family f = { "Mistral", with_windows, { without_views } };
    const family whole = { "Llama", without_views, { NULL } };
    const family g = { "narrow windows", with_narrow_windows, { without_views } };

    (void)state;
    check_family(&f);
    check_family(&g);
    check_family(&(const family){ "wide windows", with_wide_windows, { without_views } });
    CHECK(3 * cache_bytes(&f) < 2 * cache_bytes(&whole));
}

static void like_gemma3(muc_model_config *c)
{
    like_gemma(c);
    c->attention_cap = c->logit_cap = 0;
    c->head_norm = true;
    c->rope_local_theta = 100;
    c->layer_views = mixed;
}

static void without_windows(muc_model_config *c)
{
    c->layer_views = mixed_whole;
}

static void without_local_angles(muc_model_config *c)
{
    c->layer_views = mixed_global;
}

static void layers_see_and_turn_in_ways_of_their_own(void **state)
{
    const family f = { "Gemma 3",
                       like_gemma3,
                       { without_windows, without_local_angles, without_head_norms } };

    (void)state;
    check_family(&f);
}

static void with_all_biases(muc_model_config *c)
{
    c->qkv_bias = c->output_bias = c->ffn_bias = true;
}

static void in_parts(muc_model_config *c)
{
    with_all_biases(c);
    c->heads = 6;
    c->kv_heads = 3;
    c->head_dim = 32;
    c->ffn_dim = 256;
}

/* one kv head has two queries, so that heads are taken together in groups */
static void like_olmo2(muc_model_config *c)
{
    c->output_norms = c->no_input_norms = c->whole_norm = true;
}

static void olmo2_in_parts(muc_model_config *c)
{
    like_olmo2(c);
    in_parts(c);
    c->layers_twice = true;
}

static void without_whole_norms(muc_model_config *c)
{
    c->whole_norm = false;
}

static void norms_behind_and_of_all_heads_together(void **state)
{
    const family f = { "OLMo 2", like_olmo2, { without_whole_norms, without_output_norms } };
    const family g = { "OLMo 2 in parts, with biases", olmo2_in_parts, { without_whole_norms } };

    (void)state;
    check_family(&f);
    check_family(&g);
}

static void without_output_bias(muc_model_config *c)
{
    c->output_bias = false;
}

static void without_ffn_bias(muc_model_config *c)
{
    c->ffn_bias = false;
}

static void with_biases_apart(muc_model_config *c)
{
    with_all_biases(c);
    c->output_norms = true;
    c->residual_factor = 0.5;
}

static void every_product_may_have_a_bias(void **state)
{
    const family f = { "biases",
                       with_all_biases,
                       { without_output_bias, without_ffn_bias, without_biases } };
    const family g = { "biases of what is normalised",
                       with_biases_apart,
                       { without_output_bias, without_ffn_bias } };
    const family h = { "biases of parts", in_parts, { without_output_bias, without_ffn_bias } };

    (void)state;
    check_family(&f);
    check_family(&g);
    check_family(&h);
}

static void with_one_wide_head_of_keys(muc_model_config *c)
{
    c->heads = 3;
    c->kv_heads = 1;
    c->head_dim = 90;
}

static void with_heads_of_20(muc_model_config *c)
{
    c->head_dim = 20;
}

static void heads_need_whole_tiles_if_there_are_several(void **state)
{
    const family one = { "one head of keys", with_one_wide_head_of_keys, { NULL } };
    const family two = { "heads of 20", with_heads_of_20, { NULL } };

    (void)state;
    check_family(&one);
    check_refusal(&two, "heads of 20 columns do not begin with tiles of 8");
}

static void with_layer_norms(muc_model_config *c)
{
    c->norm = MUC_NORM_LAYER;
}

static void with_a_plain_ffn(muc_model_config *c)
{
    c->ffn = MUC_FFN_PLAIN;
}

static void with_learned_positions(muc_model_config *c)
{
    c->position = MUC_POSITION_LEARNED;
}

static void with_norms_inside(muc_model_config *c)
{
    c->inner_norms = true;
}

static void in_parallel(muc_model_config *c)
{
    c->parallel = true;
}

static void what_no_stage_computes_is_refused_by_name(void **state)
{
    (void)state;
    check_refusal(&(const family){ "GPT-NeoX", with_layer_norms, { NULL } },
                  "node 'final_norm' is layer_norm");
    check_refusal(&(const family){ "OPT", with_a_plain_ffn, { NULL } },
                  "node 'layers.2.silu' is silu");
    check_refusal(&(const family){ "GPT-2", with_learned_positions, { NULL } },
                  "node 'embed' is embed");
    check_refusal(&(const family){ "BitNet", with_norms_inside, { NULL } },
                  "node 'layers.2.ffn_inner_norm' is rmsnorm");
    check_refusal(&(const family){ "parallel layers", in_parallel, { NULL } },
                  "node 'layers.2.ffn_norm'");
}

static void turning_in_part(muc_model_config *c)
{
    c->rotary_dim = 16;
}

static void turning_whole(muc_model_config *c)
{
    c->rotary_dim = 0;
}

static void heads_turn_in_part(void **state)
{
    const family f = { "partial RoPE", turning_in_part, { turning_whole } };

    (void)state;
    check_family(&f);
}

static void some_layers_turn(muc_model_config *c)
{
    c->layer_views = some_turn;
}

static void layers_may_not_turn(void **state)
{
    const family f = { "SmolLM3", some_layers_turn, { without_views } };

    (void)state;
    check_family(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shared_layers_are_stored_once),
        cmocka_unit_test(biases_start_the_accumulators),
        cmocka_unit_test(heads_are_normalised),
        cmocka_unit_test(gelu_norms_of_results_and_caps),
        cmocka_unit_test(factors_of_rows_results_and_logits),
        cmocka_unit_test(queries_see_windows),
        cmocka_unit_test(layers_see_and_turn_in_ways_of_their_own),
        cmocka_unit_test(layers_may_not_turn),
        cmocka_unit_test(norms_behind_and_of_all_heads_together),
        cmocka_unit_test(every_product_may_have_a_bias),
        cmocka_unit_test(heads_turn_in_part),
        cmocka_unit_test(heads_need_whole_tiles_if_there_are_several),
        cmocka_unit_test(what_no_stage_computes_is_refused_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_lower.c - from a graph to a program: what is recognised, what fits, what comes out. */
#include <inttypes.h>
#include "random_checkpoint.h"
#include "uthinker_fixture.h"

/* ---- programs ---- */

static void open_verified(const muc_uthinker_build *build, mur_program *program)
{
    static const char *const reasons[] = {
#define MUR_REASON(name, operand, sentence) #name ": " sentence,
#include "mur_reasons.def"
    };
    mur_verifier verifier;
    const mur_verdict *verdict = &verifier.verdict;
    enum mur_section section;

    CHECK_EQ(mur_open(program, build->program.data, build->program.size), MUR_OK);
    CHECK_EQ(mur_check(program, &section), MUR_OK);
    if (mur_verify(program, &verifier) != MUR_OK)
        fail_msg("entry %u, word %u: %s (operand %u, value %" PRIu64 ", limit %u)", verdict->entry,
                 verdict->word, reasons[verdict->reason], verdict->operand, verdict->value,
                 verdict->limit);
}

typedef struct expectation {
    const fixture_words *got;
    size_t at;
} expectation;

static muc_status expect(void *arg, const muc_instruction *instruction, const uint32_t *words,
                         uint32_t count)
{
    expectation *e = arg;

    if (e->at + count > e->got->count ||
        memcmp(e->got->words + e->at, words, 4 * (size_t)count) != 0)
        fail_msg("word %zu of %zu, stage %s", e->at, e->got->count, instruction->stage);
    e->at += count;
    return MUC_OK;
}

/* the interpreter on the emitted words against the template's own expressions */
static void check_resolved(const fixture *f, const mur_program *program, uint32_t entry,
                           uint32_t pos, uint32_t m, fixture_words *words)
{
    expectation e = { words, 0 };

    fixture_interpret(program, entry, pos, m, words);
    CHECK_OK(f->ctx, muc_ir_resolve(f->ctx, &f->build->templates[entry], pos, m, true, expect, &e));
    CHECK_EQ(e.at, words->count);
}

static void the_interpreter_resolves_what_the_template_says(void **state)
{
    fixture_words words = { 0 };
    mur_program program;
    fixture f;

    (void)state;
    fixture_stories(&f, &muc_uthinker_defaults);
    open_verified(f.build, &program);
    for (uint32_t pos = 0; pos < 512; pos += 1 + pos % 7)
        check_resolved(&f, &program, 0, pos, 1, &words);
    for (uint32_t m = 1; m <= 64; m += 1 + m % 5)
        for (uint32_t pos = 0; pos + m <= 512; pos += 13)
            check_resolved(&f, &program, 1, pos, m, &words);
    free(words.words);
    fixture_free(&f);
}

static void the_same_model_gives_the_same_bytes(void **state)
{
    fixture a, b;

    (void)state;
    fixture_stories(&a, &muc_uthinker_defaults);
    fixture_stories(&b, &muc_uthinker_defaults);
    CHECK_EQ(a.build->program.size, b.build->program.size);
    assert_memory_equal(a.build->program.data, b.build->program.data, a.build->program.size);
    fixture_free(&a);
    fixture_free(&b);
}

static void fewer_rows_and_positions_can_be_asked_for(void **state)
{
    muc_uthinker_options options = muc_uthinker_defaults;
    mur_program program;
    fixture f;

    (void)state;
    options.context = 100;
    options.rows = 5;
    fixture_stories(&f, &options);
    open_verified(f.build, &program);
    CHECK_EQ(program.meta->context, 100);
    CHECK_EQ(program.meta->rows, 5);
    CHECK_EQ(program.entries[1].max_m, 5);
    fixture_free(&f);
}

/* the build of the fixture's graph under other terms must fail */
static void check_does_not_fit(fixture *f, muc_status status, const char *message,
                               const muc_uthinker_machine *machine,
                               const muc_uthinker_options *options)
{
    muc_uthinker_build *build;

    CHECK_FAILS(f->ctx, status, message,
                muc_uthinker_compile(f->ctx, f->graph, machine, options, &no_tokens, &build));
}

static void what_does_not_fit_is_named_with_its_bytes(void **state)
{
    muc_uthinker_options options = muc_uthinker_defaults;
    muc_uthinker_machine small;
    fixture f;

    (void)state;
    fixture_stories(&f, &options);
    small = f.machine;
    small.buffer_bytes[MUR_GB] = 2048; /* VT alone is 64 rows of 8 words */
    check_does_not_fit(&f, MUC_NOFIT, "GB needs ", &small, &options);
    small = f.machine;
    small.buffer_bytes[MUR_I0] = 64; /* a row of X is 74 */
    check_does_not_fit(&f, MUC_NOFIT, "I0 needs ", &small, &options);
    small = f.machine;
    small.buffer_bytes[MUR_W1] = 512;
    check_does_not_fit(&f, MUC_NOFIT,
                       "8 columns of 'model.layers.0.mlp.down_proj.weight' need 822 bytes, 310 "
                       "more than a W buffer has",
                       &small, &options);
    options.rows = 65;
    check_does_not_fit(&f, MUC_USAGE, "65 tokens in one call, at most 64", &f.machine, &options);
    options.rows = 0;
    options.context = 513;
    check_does_not_fit(&f, MUC_USAGE, "a context of 513", &f.machine, &options);
    fixture_free(&f);
}

static void flash_and_dram_have_their_limits(void **state)
{
    const muc_uthinker_tokens stripped = { .bos = UINT32_MAX, .strip = true };
    muc_uthinker_options options = muc_uthinker_defaults;
    muc_uthinker_machine small;
    muc_uthinker_build *build;
    fixture f;

    (void)state;
    fixture_stories(&f, &options);
    CHECK_OK(f.ctx, muc_uthinker_compile(f.ctx, f.graph, &f.machine, &options, &stripped, &build));
    options.split = build->layout.options.split; /* another one may need less */
    small = f.machine;
    small.flash_bytes = (uint32_t)build->program.size;
    small.dram_bytes = build->layout.kv_bytes + build->layout.io_bytes;
    muc_uthinker_build_free(build);
    CHECK_OK(f.ctx, muc_uthinker_compile(f.ctx, f.graph, &small, &options, &no_tokens, &build));
    muc_uthinker_build_free(build);
    small.flash_bytes--;
    check_does_not_fit(&f, MUC_NOFIT, "1 more than the machine has; the weights", &small, &options);
    small.flash_bytes++;
    small.dram_bytes--;
    check_does_not_fit(&f, MUC_NOFIT, "1 more than the machine has; KV takes", &small, &options);
    fixture_free(&f);
}

/* for a flash with as many bytes as the fixture's program, less `fewer` */
static muc_uthinker_build *compile_for_flash(fixture *f, const muc_uthinker_machine *machine,
                                             uint32_t fewer)
{
    muc_uthinker_machine small = *machine;
    muc_uthinker_build *build;

    small.flash_bytes = (uint32_t)f->build->program.size - fewer;
    CHECK_OK(f->ctx, muc_uthinker_compile(f->ctx, f->graph, &small, &muc_uthinker_defaults,
                                          &no_tokens, &build));
    CHECK(build->program.size <= small.flash_bytes);
    return build;
}

static void names_that_flash_has_no_room_for_go_first_then_code(void **state)
{
    muc_uthinker_build *build;
    uint32_t bytes;
    fixture f;

    (void)state;
    fixture_stories(&f, &muc_uthinker_defaults);
    CHECK(f.build->layout.heads_made > 1 && !f.build->stripped);
    CHECK_EQ(f.build->layout.gain_rows, 5 + 1 + 5); /* all there are, for GB has room */
    build = compile_for_flash(&f, &f.machine, 1);
    CHECK(build->layout.heads_made > 1 && build->stripped);
    bytes = (uint32_t)(f.build->program.size - build->program.size);
    muc_uthinker_build_free(build);
    build = compile_for_flash(&f, &f.machine, bytes);
    CHECK(build->layout.heads_made > 1 && build->stripped);
    muc_uthinker_build_free(build);
    build = compile_for_flash(&f, &f.machine, bytes + 1);
    CHECK_EQ(build->layout.heads_made, 1);
    muc_uthinker_build_free(build);
    fixture_free(&f);
}

/* and what takes its place goes by the same clock: a sequencer has its loops */
static void less_code_is_streamed_too(void **state)
{
    muc_uthinker_machine machine;
    muc_uthinker_build *build;
    uint32_t bytes;
    fixture f;

    (void)state;
    fixture_stories(&f, &muc_uthinker_defaults);
    CHECK_OK(f.ctx, muc_uthinker_find_machine(f.ctx, &f.arena, "uthinker-sequencer", &machine));
    build = compile_for_flash(&f, &machine, 1);
    bytes = (uint32_t)(f.build->program.size - build->program.size);
    muc_uthinker_build_free(build);
    build = compile_for_flash(&f, &machine, bytes + 1);
    CHECK_EQ(build->layout.heads_made, 1);
    CHECK(build->layout.options.split.streamed);
    muc_uthinker_build_free(build);
    fixture_free(&f);
}

/* golden vectors come later, but have their place; names and checksums of stages are left out */
static void flash_must_have_room_for_golden_vectors_too(void **state)
{
    const muc_uthinker_tokens golden = { .bos = UINT32_MAX, .golden = 66 };
    muc_uthinker_options options = muc_uthinker_defaults;
    muc_uthinker_machine small;
    muc_uthinker_build *build;
    uint64_t bytes;
    fixture f;

    (void)state;
    fixture_stories(&f, &options);
    options.split = f.build->layout.options.split; /* another one may need less */
    CHECK_OK(f.ctx, muc_uthinker_compile(f.ctx, f.graph, &f.machine, &options, &golden, &build));
    bytes = build->program.size;
    CHECK_EQ(build->sections.section[MUR_SECTION_GOLD].size, 66 * sizeof(mur_gold));
    muc_uthinker_build_free(build);
    small = f.machine;
    small.flash_bytes = (uint32_t)bytes;
    CHECK_OK(f.ctx, muc_uthinker_compile(f.ctx, f.graph, &small, &options, &golden, &build));
    muc_uthinker_build_free(build);
    small.flash_bytes--;
    CHECK_OK(f.ctx, muc_uthinker_compile(f.ctx, f.graph, &small, &options, &golden, &build));
    CHECK(build->stripped && build->sections.section[MUR_SECTION_DEBG].size == 0);
    small.flash_bytes = (uint32_t)build->program.size;
    muc_uthinker_build_free(build);
    CHECK_OK(f.ctx, muc_uthinker_compile(f.ctx, f.graph, &small, &options, &golden, &build));
    muc_uthinker_build_free(build);
    small.flash_bytes--;
    CHECK_FAILS(f.ctx, MUC_NOFIT, "1 more than the machine has",
                muc_uthinker_compile(f.ctx, f.graph, &small, &options, &golden, &build));
    fixture_free(&f);
}

static void a_smaller_machine_takes_fewer_rows(void **state)
{
    muc_uthinker_machine small;
    muc_uthinker_build *build;
    mur_program program;
    fixture f;

    (void)state;
    fixture_stories(&f, &muc_uthinker_defaults);
    small = f.machine;
    small.buffer_bytes[MUR_GB] = 32768;
    CHECK_OK(f.ctx, muc_uthinker_compile(f.ctx, f.graph, &small, &muc_uthinker_defaults, &no_tokens,
                                         &build));
    open_verified(build, &program);
    CHECK(build->layout.options.rows > 1 && build->layout.options.rows < 64);
    CHECK(build->layout.used_bytes[MUR_GB] <= 32768);
    muc_uthinker_build_free(build);
    fixture_free(&f);
}

/* the fixture's model on the machine with a buffer of each size from least to most */
static void check_sizes(fixture *f, muc_uthinker_machine machine, enum mur_buffer buffer,
                        uint32_t least, uint32_t most)
{
    for (uint32_t bytes = least; bytes <= most; bytes += MUC_UTHINKER_BUFFER_MULTIPLE) {
        muc_uthinker_build *build;
        mur_program program;

        machine.buffer_bytes[buffer] = bytes;
        CHECK_OK(f->ctx, muc_uthinker_compile(f->ctx, f->graph, &machine, &muc_uthinker_defaults,
                                              &no_tokens, &build));
        open_verified(build, &program);
        muc_uthinker_build_free(build);
    }
}

/* Intervals see more of a place than is used. What of that lies behind a buffer's end was forgotten
 * for probabilities in steps of 32, and for the values of DECODE. */
static void what_fits_a_buffer_passes_the_verifier(void **state)
{
    const muc_model_config config = { .architecture = "random",
                                      .layers = 5,
                                      .dim = 192,
                                      .ffn_dim = 360,
                                      .heads = 6,
                                      .kv_heads = 3,
                                      .head_dim = 32,
                                      .vocabulary = 300,
                                      .context = 64,
                                      .norm_epsilon = 1e-5,
                                      .rope_theta = 10000 };
    fixture f;

    (void)state;
    fixture_stories(&f, &muc_uthinker_defaults);
    f.machine.tokens = f.machine.rows = 32;
    check_sizes(&f, f.machine, MUR_I1, 832, 2624);
    fixture_free(&f);

    memset(&f, 0, sizeof(f));
    f.ctx = muc_context_new(2);
    random_checkpoint(f.ctx, "memory", &config, 0.1, &f.checkpoint);
    fixture_compile(&f, &muc_uthinker_defaults);
    f.machine.rows = 2;
    f.machine.buffer_bytes[MUR_I0] = 8448;
    check_sizes(&f, f.machine, MUR_GB, 33344, 33536);
    fixture_free(&f);
}

static void every_failed_allocation_is_told(void **state)
{
    fixture f;

    (void)state;
    fixture_stories(&f, &muc_uthinker_defaults);
    for (long k = 0;; k++) {
        muc_uthinker_build *build = NULL;
        muc_status status;

        muc_alloc_fail_after(k);
        status = muc_uthinker_compile(f.ctx, f.graph, &f.machine, &muc_uthinker_defaults,
                                      &no_tokens, &build);
        muc_alloc_fail_after(-1);
        if (status == MUC_OK) {
            muc_uthinker_build_free(build);
            CHECK(k > 10);
            break;
        }
        CHECK_EQ(status, MUC_NOMEM);
        muc_error_clear(f.ctx);
    }
    fixture_free(&f);
}

/* ---- graphs ---- */

/* the text of stories260K's graph with one occurrence replaced, or something appended after it */
static void check_refused(const muc_text *text, const char *found, const char *replacement,
                          const char *message)
{
    muc_context *ctx = muc_context_new(1);
    const char *at = strstr(text->data, found);
    muc_text changed = { 0 };
    muc_uthinker_model model;
    muc_arena arena = { 0 };
    muc_graph *graph;

    assert_non_null(at);
    muc_text_add_bytes(&changed, text->data, (size_t)(at - text->data));
    muc_text_add(&changed, "%s%s", replacement, at + strlen(found));
    CHECK_OK(ctx,
             muc_graph_parse(
                 ctx, (muc_bytes){ (const uint8_t *)changed.data, changed.size, "text" }, &graph));
    CHECK_FAILS(ctx, MUC_UNSUPPORTED, message, muc_uthinker_match(ctx, &arena, graph, &model));
    muc_graph_free(graph);
    muc_arena_free(&arena);
    muc_text_free(&changed);
    muc_context_free(ctx);
}

static void a_graph_that_departs_is_refused_with_the_nodes_name(void **state)
{
    muc_text text = { 0 };
    fixture f;

    (void)state;
    fixture_stories(&f, &muc_uthinker_defaults);
    muc_graph_print(f.graph, &text);
#define NODE(name) "node layers.2." name " f32 [m, 64] = "
    check_refused(&text, "layers.2.attention_norm, model.layers.2.self_attn.q_proj.weight",
                  "layers.2.attention_norm, model.layers.2.self_attn.q_proj.weight, "
                  "model.norm.weight",
                  "node 'layers.2.attention': its layer has other biases or norms than the first");
    check_refused(&text, "final_norm, model.embed_tokens.weight\n",
                  "final_norm, model.embed_tokens.weight\nnode more f32 [m, 512] = silu head\n",
                  "node 'more': no stage of the schedule computes it");
    check_refused(&text, "silu layers.2.gate\n", "relu layers.2.gate\n",
                  "node 'layers.2.gated': no operand is an activation of the machine");
    check_refused(&text, "silu layers.2.gate\n", "silu layers.2.gate alpha=2\n",
                  "node 'layers.2.gated': no operand is an activation of the machine");
    check_refused(&text, "output head", "output final_norm", "does not end in one linear");
    check_refused(&text, NODE("q_rope") "rope layers.2.q,",
                  NODE("q_norm") "rmsnorm layers.2.q, model.norm.weight epsilon=1e-05\n" NODE(
                      "q_rope") "rope layers.2.q_norm,",
                  "node 'layers.2.attention': its layer has other biases or norms than the first");
    check_refused(&text, "layers.2.attention, model.layers.2.self_attn.o_proj.weight",
                  "layers.2.attention, model.layers.2.self_attn.o_proj.weight, model.norm.weight",
                  "node 'layers.2.attention': its layer has other biases or norms than the first");
    check_refused(&text, "linear layers.2.ffn_norm, model.layers.2.mlp.gate_proj.weight",
                  "linear layers.2.attention_residual, model.layers.2.mlp.gate_proj.weight",
                  "node 'layers.2.up': input 0 is 'layers.2.ffn_norm', uthinker's schedule has "
                  "'layers.2.attention_residual' here");
    check_refused(&text, "linear layers.2.ffn_norm, model.layers.2.mlp.up_proj.weight",
                  "linear layers.2.attention_norm, model.layers.2.mlp.up_proj.weight",
                  "node 'layers.2.up': input 0 is 'layers.2.attention_norm', uthinker's "
                  "schedule has 'layers.2.ffn_norm' here");
    check_refused(&text,
                  "model.layers.2.post_attention_layernorm.weight epsilon=1.0000000000000001e-05",
                  "model.layers.2.post_attention_layernorm.weight epsilon=1e-06",
                  "node 'layers.2.ffn_norm': its epsilon is not that of the final norm");
    check_refused(&text, "rope layers.2.k, rope.cos, rope.sin",
                  "rope layers.2.k, rope.sin, rope.cos",
                  "node 'layers.2.k_rope': its table is not that of the queries");
    check_refused(&text, "layers.2.v, layers.2.k_cache, layers.2.v_cache",
                  "layers.2.v, layers.2.k_cache, layers.1.v_cache",
                  "its caches are those of another attention");
    check_refused(&text, "mul layers.2.silu, layers.2.up", "mul layers.2.silu, layers.2.gate",
                  "node 'layers.2.up': no stage of the schedule computes it");
    check_refused(&text, "silu layers.2.gate", "silu layers.2.up",
                  "node 'layers.2.gate': no stage");
    check_refused(&text, "add layers.2.attention_residual, layers.2.down",
                  "add layers.2.down, layers.2.down",
                  "node 'layers.2.ffn_norm': input 0 is 'layers.2.attention_residual'");
    /* a graph that was read from text has no weights */
    check_refused(&text, "rmsnorm embed,", "rmsnorm embed,",
                  "node 'embed': weight 'model.embed_tokens.weight' is not quantized");
#undef NODE
    muc_text_free(&text);
    fixture_free(&f);
}

/* the operands of sums and products may come either way */
static void sums_and_products_match_in_either_order(void **state)
{
    muc_uthinker_model model;
    fixture f;

    (void)state;
    fixture_stories(&f, &muc_uthinker_defaults);
    for (uint32_t i = 0; i < f.graph->node_count; i++) {
        const muc_node *node = &f.graph->nodes[i];
        uint32_t *inputs = (uint32_t *)(uintptr_t)node->inputs, first = inputs[0];

        if (node->op != MUC_OP_ADD && node->op != MUC_OP_MUL)
            continue;
        inputs[0] = inputs[1];
        inputs[1] = first;
    }
    CHECK_OK(f.ctx, muc_uthinker_match(f.ctx, &f.arena, f.graph, &model));
    CHECK_EQ(model.layers, 5);
    CHECK_EQ(model.ffn_width, 172);
    fixture_free(&f);
}

/* ---- machines ---- */

static void check_machine(const char *text, muc_status status, const char *message)
{
    muc_context *ctx = muc_context_new(1);
    muc_uthinker_machine machine;
    muc_arena arena = { 0 };
    muc_bytes bytes = { (const uint8_t *)text, strlen(text), "m.ini" };

    if (status == MUC_OK)
        CHECK_OK(ctx, muc_uthinker_read_machine(ctx, &arena, bytes, &machine));
    else
        CHECK_FAILS(ctx, status, message, muc_uthinker_read_machine(ctx, &arena, bytes, &machine));
    muc_arena_free(&arena);
    muc_context_free(ctx);
}

static void machine_descriptions_are_read_strictly(void **state)
{
    static const uint32_t bytes[] = { 65536, 32768, 49152, 49152, 262144 };
    muc_context *ctx = muc_context_new(1);
    muc_uthinker_machine machine;
    muc_arena arena = { 0 };

    (void)state;
    CHECK_OK(ctx, muc_uthinker_read_machine(ctx, &arena, muc_uthinker_default_machine(), &machine));
    assert_memory_equal(machine.buffer_bytes, bytes, sizeof(bytes));
    CHECK_EQ(machine.rows, 64);
    assert_string_equal(machine.name, "uthinker");
    muc_arena_free(&arena);
    muc_context_free(ctx);
#define BUFFERS \
    "ibuf0 = 128\nibuf1=192 ; two\nwbuf0 = 128\r\nwbuf1 =128\n# none\ngb = 128\n" \
    "flash = 0\ndram = 4096\n"
    check_machine("[machine]\nname = x\nisa = 1\n" BUFFERS "rows = 1", MUC_OK, "");
    check_machine("name = x\n", MUC_MALFORMED,
                  "m.ini: offset 0: line 1, column 1: expected [machine]");
    check_machine("[machine]\nname = x\nisa = 2\n", MUC_UNSUPPORTED, "line 3: isa 2");
    check_machine("[machine]\n  depth = 1\n", MUC_MALFORMED,
                  "line 2, column 3: there is no key 'depth'");
    check_machine("[machine]\nrows = 65\n", MUC_MALFORMED,
                  "line 2, column 8: 'rows' is 65, expected 1..64");
    check_machine("[machine]\ngb = 100\n", MUC_MALFORMED, "'gb' is 100, expected 128..1048576");
    check_machine("[machine]\ngb = 129\n", MUC_MALFORMED, "column 6: not a multiple of 64 bytes");
    check_machine("[machine]\ngb = 12x\n", MUC_MALFORMED, "line 2, column 8: not a digit");
    check_machine("[machine]\ngb =\n", MUC_MALFORMED, "line 2, column 5: a number is missing");
    check_machine("[machine]\ngb\n", MUC_MALFORMED, "expected key = value");
    check_machine("[machine]\nrows = 1\nrows = 1\n", MUC_MALFORMED, "line 3, column 1: this key");
    check_machine("[machine]\n[machine]\n", MUC_MALFORMED,
                  "line 2, column 1: expected one section");
    check_machine("[machine]\nisa = 1\n" BUFFERS "rows = 1", MUC_MALFORMED,
                  "key 'name' is missing");
    check_machine("[machine]\nname = x\nisa = 1\n" BUFFERS, MUC_MALFORMED, "'rows' is missing");
#undef BUFFERS
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_interpreter_resolves_what_the_template_says),
        cmocka_unit_test(the_same_model_gives_the_same_bytes),
        cmocka_unit_test(fewer_rows_and_positions_can_be_asked_for),
        cmocka_unit_test(what_does_not_fit_is_named_with_its_bytes),
        cmocka_unit_test(flash_and_dram_have_their_limits),
        cmocka_unit_test(names_that_flash_has_no_room_for_go_first_then_code),
        cmocka_unit_test(less_code_is_streamed_too),
        cmocka_unit_test(flash_must_have_room_for_golden_vectors_too),
        cmocka_unit_test(a_smaller_machine_takes_fewer_rows),
        cmocka_unit_test(what_fits_a_buffer_passes_the_verifier),
        cmocka_unit_test(every_failed_allocation_is_told),
        cmocka_unit_test(a_graph_that_departs_is_refused_with_the_nodes_name),
        cmocka_unit_test(sums_and_products_match_in_either_order),
        cmocka_unit_test(machine_descriptions_are_read_strictly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

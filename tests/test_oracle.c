/* One program serves every length: what the interpreter issues for (pos, m) is what a compiler for
 * just that length writes (oracle/static_uthinker.c), word for word. */
#include "check.h"

#include "base/bytes.h"
#include "models/llama.h"
#include "oracle/static_uthinker.h"
#include "targets/uthinker/lower/split_rows.h"
#include "passes/weights/quantize_blocks.h"
#include "targets/uthinker/uthinker.h"
#include "xorshift.h"

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
    return random_next(&random_state) / 2 % n;
}

static const muc_uthinker_machine machine = { .name = "uthinker",
                                              .buffer_bytes = { 65536, 32768, 49152, 49152,
                                                                262144 },
                                              .tile_k = 64,
                                              .tile_n = 8,
                                              .tokens = 64,
                                              .rows = 64 };

typedef struct shape {
    uint32_t layers, width, heads, kv_heads, head_width, ffn_width, vocabulary, context;
    bool tied;
    uint32_t own_layers; /* with weights of their own; 0: all */
    bool relative;       /* with what other families have, by chance */
} shape;

static const shape stories260k = { 5, 64, 8, 4, 8, 172, 512, 512, true, 5, false };

/* Tiles of random sizes; a program's code depends on no more of a sequence than its index. */
static void random_sequence(muc_context *ctx, muc_arena *arena, muc_matrix_shape matrix,
                            muc_uthinker_weight *out)
{
    uint32_t down = (matrix.k + 63) / 64, tiles = (matrix.n + 7) / 8 * down;
    uint32_t *index, *sizes, at = 4 * (tiles + 1), total = at;

    CHECK_OK(ctx, MUC_ARENA_NEW(ctx, arena, tiles + 1, &sizes));
    for (uint32_t t = 0; t < tiles; t++)
        total += sizes[t] = 8 + random_below(16 * 24);
    CHECK_OK(ctx, MUC_ARENA_NEW(ctx, arena, total / 4 + 1, &index));
    for (uint32_t t = 0; t <= tiles; t++) {
        index[t] = at;
        at += sizes[t];
    }
    *out = (muc_uthinker_weight){ .name = "w", .sequence = (const uint8_t *)index, .bytes = total };
}

/* windows and tables of RoPE, as sums over the layers before */
static void random_layers(muc_context *ctx, muc_arena *arena, muc_uthinker_model *out)
{
    uint32_t *windows, *angles;
    float *rope;

    CHECK_OK(ctx, MUC_ARENA_NEW(ctx, arena, out->layers + 1, &windows));
    CHECK_OK(ctx, MUC_ARENA_NEW(ctx, arena, out->layers + 1, &angles));
    for (uint32_t l = 0; l < out->layers; l++) {
        windows[l + 1] = windows[l] + 1 + random_below(out->context);
        angles[l + 1] = angles[l] + (l > 0 && random_below(2));
    }
    if (random_below(2))
        out->windows = windows;
    if (angles[out->layers] == 0)
        return;
    out->angle_sums = angles;
    out->angles = 2;
    CHECK_OK(ctx, MUC_ARENA_NEW(ctx, arena, 2 * (size_t)out->context * out->head_width, &rope));
    out->rope = rope;
}

static void random_vectors(muc_context *ctx, muc_arena *arena, muc_uthinker_model *out)
{
    const uint32_t d = out->width, f = out->ffn_width, q = out->heads * out->head_width;
    const uint32_t kv = out->kv_heads * out->head_width;
    const uint32_t qn = out->whole_norms ? q : out->head_width;
    const uint32_t kn = out->whole_norms ? kv : out->head_width;
    const uint32_t elements[] = {
#define MUC_UTHINKER_VECTOR(id, elements, meaning) elements,
        MUC_UTHINKER_VECTORS(MUC_UTHINKER_VECTOR)
#undef MUC_UTHINKER_VECTOR
    };
    float *vectors;

    for (uint32_t i = 0; i < MUC_VECTOR_COUNT; i++) {
        bool is_norm = i == MUC_VECTOR_Q_NORM || i == MUC_VECTOR_K_NORM;

        if (random_below(3) == 0 || (is_norm && out->whole_norms))
            out->vector_elements[i] = elements[i];
        out->row_elements += out->vector_elements[i];
    }
    CHECK_OK(ctx, MUC_ARENA_NEW(ctx, arena, (size_t)out->layers * out->row_elements + 1, &vectors));
    out->vectors = vectors;
}

static void random_family(muc_context *ctx, muc_arena *arena, const shape *s,
                          muc_uthinker_model *out)
{
    (void)s;
    out->gelu = random_below(2);
    out->input_norms = random_below(4) != 0;
    out->whole_norms = random_below(3) == 0;
    if (random_below(3) == 0)
        out->rotary = 2 * (1 + random_below(out->head_width / 2));
    if (random_below(3) == 0)
        out->embedding_factor = 3;
    if (random_below(3) == 0)
        out->residual_factor = 0.5f;
    if (random_below(3) == 0)
        out->logit_factor = 0.25f;
    if (random_below(3) == 0) {
        out->score_factor = 0.125f;
        out->score_cap = 20;
    }
    if (random_below(3) == 0) {
        out->logit_uncap = 0.0625f;
        out->logit_cap = 16;
    }
    random_layers(ctx, arena, out);
    random_vectors(ctx, arena, out);
}

static void random_model(muc_context *ctx, muc_arena *arena, const shape *s,
                         muc_uthinker_model *out)
{
    float *zeros;
    uint32_t most = s->layers * s->width > s->context * s->head_width ? s->layers * s->width
                                                                      : s->context * s->head_width;

    CHECK_OK(ctx, MUC_ARENA_NEW(ctx, arena, most, &zeros));
    *out = (muc_uthinker_model){ .layers = s->layers,
                                 .own_layers = s->own_layers ? s->own_layers : s->layers,
                                 .width = s->width,
                                 .heads = s->heads,
                                 .kv_heads = s->kv_heads,
                                 .head_width = s->head_width,
                                 .ffn_width = s->ffn_width,
                                 .vocabulary = s->vocabulary,
                                 .context = s->context,
                                 .ffn_parts = 1,
                                 .o_parts = 1,
                                 .tied = s->tied,
                                 .epsilon = 1e-5f,
                                 .scale = 0.25f,
                                 .angles = 1,
                                 .input_norms = true,
                                 .rotary = s->head_width,
                                 .embedding_factor = 1,
                                 .residual_factor = 1,
                                 .logit_factor = 1,
                                 .gain_attention = zeros,
                                 .gain_ffn = zeros,
                                 .gain_final = zeros,
                                 .rope = zeros };
    if (s->relative)
        random_family(ctx, arena, s, out);
    for (uint32_t kind = 0; kind < MUC_MATRIX_COUNT; kind++) {
        muc_matrix_shape matrix = muc_uthinker_matrix_shape(out, (muc_matrix_kind)kind);

        CHECK_OK(ctx, MUC_ARENA_NEW(ctx, arena, matrix.count + 1, &out->weights[kind]));
        for (uint32_t i = 0; i < matrix.count; i++)
            random_sequence(ctx, arena, matrix, &out->weights[kind][i]);
    }
}

typedef struct compiled {
    muc_context *ctx;
    muc_arena arena;
    muc_uthinker_layout layout;
    mur_program program;
} compiled;

static void verify(compiled *c)
{
    static mur_verifier verifier;

    if (mur_verify(&c->program, &verifier) != MUR_OK)
        fail_msg("the verifier refuses word %u, reason %d", verifier.verdict.word,
                 (int)verifier.verdict.reason);
}

/* some split that the model can have, with either order of loads and products */
static muc_uthinker_split random_split(const muc_uthinker_model *model,
                                       const muc_uthinker_machine *of)
{
    muc_uthinker_split passes = { .ffn_parts = 1 + random_below(4) };
    muc_uthinker_split heads = { .ffn_parts = 1, .o_by_head = random_below(2) };

    muc_uthinker_split together = { .ffn_parts = 1, .together = random_below(2) };

    together.together &= muc_uthinker_can_split(model, of, together);
    return (muc_uthinker_split){
        .ffn_parts = muc_uthinker_can_split(model, of, passes) ? passes.ffn_parts : 1,
        .o_by_head =
            !together.together && heads.o_by_head && muc_uthinker_can_split(model, of, heads),
        .together = together.together,
        .gains_once = random_below(2),
        .late = model->vocabulary % 2 != 0,
    };
}

static muc_status compile(compiled *c, const shape *s, uint32_t w_bytes,
                          const muc_uthinker_options *options)
{
    static const muc_entry_kind kinds[] = { MUC_ENTRY_DECODE, MUC_ENTRY_PREFILL };
    static const muc_uthinker_tokens tokens = { 0 };
    const muc_flatten_options all_passes = { 0 };
    muc_uthinker_entry entries[MUC_UTHINKER_ENTRIES];
    muc_template templates[MUC_UTHINKER_ENTRIES];
    muc_flat flat[MUC_UTHINKER_ENTRIES];
    muc_uthinker_machine smaller = machine;
    muc_uthinker_options chosen = *options;
    muc_uthinker_model whole, model;
    muc_container sections;
    muc_bytes file;
    muc_status status;

    if (w_bytes < machine.buffer_bytes[MUR_W0])
        smaller.buffer_bytes[MUR_I1] /= 4;
    smaller.buffer_bytes[MUR_W0] = smaller.buffer_bytes[MUR_W1] = w_bytes;
    memset(c, 0, sizeof(*c));
    c->ctx = muc_context_new(1);
    random_model(c->ctx, &c->arena, s, &whole);
    chosen.split = random_split(&whole, &smaller);
    CHECK_OK(c->ctx,
             muc_uthinker_split_rows(c->ctx, &c->arena, &whole, &smaller, chosen.split, &model));
    status = muc_uthinker_lay_out(c->ctx, &c->arena, &model, &smaller, &chosen, &c->layout);
    if (status != MUC_OK)
        return status;
    for (uint32_t i = 0; i < MUC_UTHINKER_ENTRIES; i++) {
        CHECK_OK(c->ctx,
                 muc_uthinker_lower(c->ctx, &c->arena, &c->layout, kinds[i], &templates[i]));
        CHECK_OK(c->ctx,
                 muc_uthinker_flatten(c->ctx, &c->arena, &templates[i], &all_passes, &flat[i]));
        entries[i] =
            (muc_uthinker_entry){ kinds[i], templates[i].min_m, templates[i].max_m, &flat[i] };
    }
    CHECK_OK(c->ctx,
             muc_uthinker_emit(c->ctx, &c->arena, &model, &c->layout, entries, &tokens, &sections));
    CHECK_OK(c->ctx, muc_container_write(c->ctx, &c->arena, &sections, &file));
    CHECK_OK(c->ctx, muc_container_open(c->ctx, file, &sections, &c->program));
    verify(c);
    return MUC_OK;
}

static void release(compiled *c)
{
    muc_arena_free(&c->arena);
    muc_context_free(c->ctx);
}

/* ---- comparison ---- */

typedef struct stream {
    uint32_t *words;
    size_t count, capacity, at;
    uint32_t completed[MUR_ENGINES];
} stream;

static void record(void *arg, const uint32_t *words, uint32_t count)
{
    stream *s = arg;

    if (s->count + count > s->capacity) {
        s->capacity = 2 * s->capacity + 1024;
        s->words = realloc(s->words, 4 * s->capacity);
        assert_non_null(s->words);
    }
    memcpy(s->words + s->count, words, 4 * (size_t)count);
    s->count += count;
}

/* A board that executes nothing: each instruction must be the next of the stream. */
static mur_status compare(void *arg, const uint32_t *words)
{
    stream *s = arg;
    const uint32_t *expected = s->words + s->at;
    uint32_t op, count;

    CHECK(muc_insn_find_opcode(words[0] & 255, &op));
    count = muc_insn_get(op)->words;
    if (s->at + count > s->count || memcmp(words, expected, 4 * (size_t)count) != 0) {
        for (uint32_t i = 0; i < count; i++)
            print_message("%08x, expected %08x\n", words[i],
                          s->at + i < s->count ? expected[i] : 0);
        return MUR_E_FAULT;
    }
    s->at += count;
    s->completed[muc_insn_get(op)->engine]++;
    return MUR_OK;
}

static uint32_t completed(void *arg, enum mur_engine engine)
{
    const stream *s = arg;

    return s->completed[engine];
}

static void check_entry(const compiled *c, enum mur_entry_kind kind, uint32_t pos, uint32_t m,
                        uint32_t logits)
{
    static stream expected;
    static const mur_hal board = { &expected, compare, compare, compare, completed, NULL, NULL };
    mur_run_state run;

    expected.count = expected.at = 0;
    static_uthinker_compile(&c->layout, kind == MUR_ENTRY_DECODE, pos, m, logits, record,
                            &expected);
    CHECK_EQ(mur_start(&run, &c->program, &board, mur_find_entry(&c->program, kind, m), pos, m),
             MUR_OK);
    if (!logits)
        mur_skip_logits(&run);
    if (mur_run(&run) != MUR_OK)
        fail_msg("pos %u, m %u, logits %u: instruction at word %zu of %zu, CODE word %u", pos, m,
                 logits, expected.at, expected.count, run.at);
    CHECK_EQ(expected.at, expected.count);
}

static void check_length(const compiled *c, uint32_t pos, uint32_t m)
{
    uint32_t logits = (pos + m) % 2; /* either, for every pos and every m */

    check_entry(c, MUR_ENTRY_PREFILL, pos, m, logits);
    if (m == 1)
        check_entry(c, MUR_ENTRY_DECODE, pos, m, logits);
}

static muc_uthinker_terms random_terms(void)
{
    muc_uthinker_terms terms;

#define RANDOM_TERM(letter, meaning) terms.letter = (uint8_t)(1 + random_below(2));
    MUC_UTHINKER_TERMS(RANDOM_TERM)
#undef RANDOM_TERM
    return terms;
}

/* ---- tests ---- */

static void check_every_position(const compiled *c)
{
    static const uint32_t lengths[] = { 1, 2, 63, 64 };

    CHECK_EQ(c->layout.options.rows, 64);
    for (uint32_t i = 0; i < MUC_COUNT(lengths); i++)
        for (uint32_t pos = 0; pos + lengths[i] <= 512; pos++)
            check_length(c, pos, lengths[i]);
}

static void check_stories_shape(bool recompute)
{
    muc_uthinker_options options = { .terms = random_terms(), .recompute = recompute };
    compiled c;

    CHECK_EQ(compile(&c, &stories260k, 49152, &options), MUC_OK);
    check_every_position(&c);
    release(&c);
}

static void every_position_of_a_model_like_stories260k_resolves_to_its_static_program(void **state)
{
    (void)state;
    check_stories_shape(false);
}

static void so_it_does_when_attention_recomputes_its_keys(void **state)
{
    (void)state;
    check_stories_shape(true);
}

static void every_position_of_stories260k_resolves_to_its_static_program(void **state)
{
    const char *path = shared_data("llama/stories260K.bin");
    static const muc_uthinker_tokens tokens = { 0 };
    const muc_llama_options llama = { 0 };
    const muc_quantize_options quantize = { 0 };
    muc_context *ctx = muc_context_new(0);
    muc_checkpoint checkpoint;
    muc_graph *graph;
    muc_quantize_result quantized;

    (void)state;
    CHECK_OK(ctx, muc_checkpoint_open(ctx, path, &checkpoint));
    CHECK_OK(ctx, muc_llama_build(ctx, &checkpoint, &llama, &graph));
    CHECK_OK(ctx, muc_quantize_weights(ctx, graph, &quantize, &quantized));
    for (int recompute = 0; recompute < 2; recompute++) {
        muc_uthinker_options options = muc_uthinker_defaults;
        muc_uthinker_build *build;
        muc_container sections;
        compiled c = { .ctx = ctx };

        options.recompute = recompute;
        CHECK_OK(ctx, muc_uthinker_compile(ctx, graph, &machine, &options, &tokens, &build));
        CHECK_OK(ctx, muc_container_open(ctx, build->program, &sections, &c.program));
        verify(&c);
        c.layout = build->layout;
        check_every_position(&c);
        muc_uthinker_build_free(build);
    }
    muc_graph_free(graph);
    muc_checkpoint_close(&checkpoint);
    muc_context_free(ctx);
}

enum { MOST_LAYERS = 3 };

static shape random_shape(void)
{
    static const uint32_t head_widths[] = { 8, 32, 64, 96, 128 };
    shape s = { .layers = 1 + random_below(MOST_LAYERS), .kv_heads = 1 + random_below(3) };

    s.head_width = head_widths[random_below(MUC_COUNT(head_widths))];
    s.heads = s.kv_heads * (1 + random_below(8));
    s.width = 8 * (1 + random_below(60));
    s.ffn_width = random_below(2) ? 4 * (1 + random_below(200)) : 64 * (1 + random_below(16));
    s.vocabulary = 1 + random_below(3000);
    s.context = 1 + random_below(400);
    s.tied = random_below(2);
    s.relative = random_below(2);
    if (s.layers == 2)
        s.own_layers = 1 + random_below(2);
    return s;
}

static void random_shapes_resolve_to_their_static_programs(void **state)
{
    uint32_t done = 0, groups = 0, widths = 0, chunked = 0, by_head = 0, in_passes = 0;
    uint32_t shared = 0, small_tiles = 0, exchanged = 0, relatives = 0, whole_norms = 0;
    uint32_t windows = 0, angles = 0, in_part = 0, biases = 0, apart = 0, late = 0;
    uint32_t residual_apart = 0, layered = 0, together = 0, gains_once = 0;

    (void)state;
    random_state = 20260;
    for (uint32_t round = 0; round < 250; round++) {
        muc_uthinker_options options = { .terms = random_terms(), .recompute = random_below(2) };
        muc_uthinker_terms layers[MOST_LAYERS];
        shape s = random_shape();
        compiled c;
        muc_status status;

        for (uint32_t l = 0; l < MOST_LAYERS; l++) {
            layers[l] = l && random_below(2) ? layers[l - 1] : random_terms();
            layers[l].l = layers[0].l;
        }
        if (random_below(2))
            options.layer_terms = layers;
        status = compile(&c, &s, round % 2 ? 49152 : 24576, &options);

        if (status != MUC_OK) /* recompute attention and norms of all heads together */
            CHECK(status == MUC_NOFIT || (status == MUC_UNSUPPORTED && options.recompute));
        for (uint32_t i = 0; i < 12 && status == MUC_OK; i++) {
            uint32_t most = c.layout.options.rows, m = i < 2 ? 1 + i * (most - 1) : 0, pos;

            m = m ? m : 1 + random_below(most);
            pos = random_below(s.context - m + 1);
            check_length(&c, pos, m);
        }
        if (status == MUC_OK) {
            done++;
            groups |= 1u << (s.heads / s.kv_heads);
            widths |= s.head_width;
            chunked += c.layout.matrix[MUC_MATRIX_GATE].chunks > 2;
            shared += c.layout.own_layers < c.layout.layers;
            by_head += c.layout.o_parts > 1;
            in_passes += c.layout.ffn_parts > 1;
            small_tiles += c.layout.options.rows > 1 && c.layout.prefill.tile < 32;
            exchanged += c.layout.prefill.exchanged;
            relatives += s.relative;
            whole_norms += c.layout.whole_norms;
            windows += c.layout.windows != NULL;
            angles += c.layout.angles > 1;
            in_part += c.layout.rotary < c.layout.head_width;
            biases += c.layout.vector_elements[MUC_VECTOR_UP_BIAS] > 0;
            apart += muc_uthinker_adds_apart(&c.layout);
            late += c.layout.prefill.late;
            layered += c.layout.options.layer_terms != NULL;
            together += c.layout.heads_made > 1;
            gains_once += c.layout.gain_rows > 1;
            residual_apart += c.layout.prefill.residual_apart && !c.layout.prefill.apart;
        }
        release(&c);
    }
    CHECK(done >= 100);
    CHECK(chunked >= 20);
    CHECK(shared >= 10);
    CHECK(by_head >= 10 && in_passes >= 20);
    CHECK(small_tiles >= 5 && exchanged >= 5);
    CHECK(relatives >= 50 && windows >= 20 && angles >= 15 && in_part >= 15);
    CHECK(whole_norms >= 8 && biases >= 15 && apart >= 15);
    CHECK(late >= 40 && residual_apart >= 5 && layered >= 30 && together >= 20);
    CHECK(gains_once >= 40);
    CHECK_EQ(groups, 0x1fe); /* 1 to 8 queries a kv head */
    CHECK_EQ(widths, 8 | 32 | 64 | 96 | 128);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_position_of_stories260k_resolves_to_its_static_program),
        cmocka_unit_test(every_position_of_a_model_like_stories260k_resolves_to_its_static_program),
        cmocka_unit_test(so_it_does_when_attention_recomputes_its_keys),
        cmocka_unit_test(random_shapes_resolve_to_their_static_programs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

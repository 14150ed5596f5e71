/* One template serves every length: resolved for (pos, m) it is the program that a compiler for
 * just that length writes (oracle/static_uthinker.c), word for word. */
#include "check.h"

#include "base/bytes.h"
#include "oracle/static_uthinker.h"
#include "targets/uthinker/lower.h"

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (uint32_t)(random_state * 0x2545f4914f6cdd1du >> 33) % n;
}

static const muc_uthinker_machine machine = {
    .name = "uthinker", .buffer_bytes = { 65536, 32768, 49152, 49152, 262144 }, .rows = 64
};

typedef struct shape {
    uint32_t layers, width, heads, kv_heads, head_width, ffn_width, vocabulary, context;
    bool tied;
} shape;

static const shape stories260k = { 5, 64, 8, 4, 8, 172, 512, 512, true };

/* An index of tiles of random sizes: all that a layout reads of a sequence. */
static void random_sequence(muc_context *ctx, muc_arena *arena, muc_matrix_shape matrix,
                            muc_uthinker_weight *out)
{
    uint32_t down = (matrix.k + 63) / 64, tiles = (matrix.n + 7) / 8 * down, *index, at;

    CHECK_OK(ctx, MUC_ARENA_NEW(ctx, arena, tiles + 1, &index));
    at = 4 * (tiles + 1);
    for (uint32_t t = 0; t <= tiles; t++) {
        index[t] = at;
        at += 8 + random_below(16 * 24);
    }
    *out = (muc_uthinker_weight){ "w", (const uint8_t *)index, index[tiles] };
}

static void random_model(muc_context *ctx, muc_arena *arena, const shape *s,
                         muc_uthinker_model *out)
{
    *out = (muc_uthinker_model){ .layers = s->layers,
                                 .width = s->width,
                                 .heads = s->heads,
                                 .kv_heads = s->kv_heads,
                                 .head_width = s->head_width,
                                 .ffn_width = s->ffn_width,
                                 .vocabulary = s->vocabulary,
                                 .context = s->context,
                                 .tied = s->tied,
                                 .epsilon = 1e-5f,
                                 .scale = 0.25f };
    for (uint32_t kind = 0; kind < MUC_MATRIX_COUNT; kind++) {
        muc_matrix_shape matrix = muc_uthinker_matrix_shape(out, (muc_matrix_kind)kind);

        CHECK_OK(ctx, MUC_ARENA_NEW(ctx, arena, matrix.count + 1, &out->weights[kind]));
        for (uint32_t i = 0; i < matrix.count; i++)
            random_sequence(ctx, arena, matrix, &out->weights[kind][i]);
    }
}

/* ---- comparison ---- */

typedef struct stream {
    uint32_t *words;
    size_t count, capacity;
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

typedef struct comparison {
    const stream *expected;
    size_t at;
    uint32_t pos, m;
} comparison;

static muc_status compare(void *arg, const muc_instruction *instruction, const uint32_t *words,
                          uint32_t count)
{
    comparison *c = arg;
    const uint32_t *expected = c->expected->words + c->at;

    if (c->at + count > c->expected->count || memcmp(words, expected, 4 * (size_t)count) != 0) {
        print_message("pos %u, m %u, word %zu, stage %s\n", c->pos, c->m, c->at,
                      instruction->stage);
        for (uint32_t i = 0; i < count; i++)
            print_message("%08x, expected %08x\n", words[i],
                          c->at + i < c->expected->count ? expected[i] : 0);
        fail();
    }
    c->at += count;
    return MUC_OK;
}

static size_t check_length(muc_context *ctx, const muc_uthinker_layout *layout,
                           const muc_template *template, uint32_t pos, uint32_t m)
{
    static stream expected;
    comparison c = { &expected, 0, pos, m };

    expected.count = 0;
    static_uthinker_compile(layout, pos, m, record, &expected);
    CHECK_OK(ctx, muc_ir_resolve(ctx, template, pos, m, compare, &c));
    CHECK_EQ(c.at, expected.count);
    return c.at;
}

typedef struct compiled {
    muc_context *ctx;
    muc_arena arena;
    muc_uthinker_layout layout;
    muc_template decode, prefill;
} compiled;

static muc_status compile(compiled *c, const shape *s, const muc_uthinker_options *options)
{
    muc_uthinker_model model;
    muc_status status;

    memset(c, 0, sizeof(*c));
    c->ctx = muc_context_new(1);
    random_model(c->ctx, &c->arena, s, &model);
    status = muc_uthinker_lay_out(c->ctx, &c->arena, &model, &machine, options, &c->layout);
    if (status != MUC_OK)
        return status;
    CHECK_OK(c->ctx,
             muc_uthinker_lower(c->ctx, &c->arena, &c->layout, MUC_ENTRY_DECODE, &c->decode));
    CHECK_OK(c->ctx,
             muc_uthinker_lower(c->ctx, &c->arena, &c->layout, MUC_ENTRY_PREFILL, &c->prefill));
    return MUC_OK;
}

static void release(compiled *c)
{
    muc_arena_free(&c->arena);
    muc_context_free(c->ctx);
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

static void check_every_position(bool recompute)
{
    static const uint32_t lengths[] = { 1, 2, 63, 64 };
    muc_uthinker_options options = { .terms = random_terms(), .recompute = recompute };
    compiled c;

    CHECK_OK(c.ctx, compile(&c, &stories260k, &options));
    CHECK_EQ(c.layout.options.rows, 64);
    for (uint32_t i = 0; i < MUC_COUNT(lengths); i++)
        for (uint32_t pos = 0; pos + lengths[i] <= 512; pos++) {
            check_length(c.ctx, &c.layout, &c.prefill, pos, lengths[i]);
            if (lengths[i] == 1)
                check_length(c.ctx, &c.layout, &c.decode, pos, 1);
        }
    release(&c);
}

static void every_position_of_stories260k_resolves_to_its_static_program(void **state)
{
    (void)state;
    check_every_position(false);
}

static void so_it_does_when_attention_recomputes_its_keys(void **state)
{
    (void)state;
    check_every_position(true);
}

static shape random_shape(void)
{
    static const uint32_t head_widths[] = { 8, 32, 64, 96, 128 };
    shape s = { .layers = 1 + random_below(3), .kv_heads = 1 + random_below(3) };

    s.head_width = head_widths[random_below(MUC_COUNT(head_widths))];
    s.heads = s.kv_heads * (1 + random_below(8));
    s.width = 8 * (1 + random_below(60));
    s.ffn_width = 4 * (1 + random_below(200));
    s.vocabulary = 1 + random_below(3000);
    s.context = 1 + random_below(400);
    s.tied = random_below(2);
    return s;
}

static void random_shapes_resolve_to_their_static_programs(void **state)
{
    uint32_t done = 0, groups = 0, widths = 0;

    (void)state;
    random_state = 20260;
    for (uint32_t round = 0; round < 150; round++) {
        muc_uthinker_options options = { .terms = random_terms(), .recompute = random_below(2) };
        shape s = random_shape();
        compiled c;
        muc_status status = compile(&c, &s, &options);

        if (status != MUC_OK)
            CHECK_EQ(status, MUC_NOFIT);
        for (uint32_t i = 0; i < 12 && status == MUC_OK; i++) {
            uint32_t most = c.layout.options.rows, m = i < 2 ? 1 + i * (most - 1) : 0, pos;

            m = m ? m : 1 + random_below(most);
            pos = random_below(s.context - m + 1);
            check_length(c.ctx, &c.layout, &c.prefill, pos, m);
            if (m == 1)
                check_length(c.ctx, &c.layout, &c.decode, pos, m);
        }
        if (status == MUC_OK) {
            done++;
            groups |= 1u << (s.heads / s.kv_heads);
            widths |= s.head_width;
        }
        release(&c);
    }
    CHECK(done >= 100);
    CHECK_EQ(groups, 0x1fe); /* 1 to 8 queries a kv head */
    CHECK_EQ(widths, 8 | 32 | 64 | 96 | 128);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_position_of_stories260k_resolves_to_its_static_program),
        cmocka_unit_test(so_it_does_when_attention_recomputes_its_keys),
        cmocka_unit_test(random_shapes_resolve_to_their_static_programs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

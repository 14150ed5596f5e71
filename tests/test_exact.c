/* A compiled program, run by the interpreter on the simulator, against the golden model: every
 * stage of every layer, bit for bit, whatever the shape, the terms and the grouping of tokens. */
#include "check.h"

#include "mur_block.h"
#include "models/llama.h"
#include "passes/weights/quantize_blocks.h"
#include "random_model.h"
#include "ref/golden/uthinker_golden.h"
#include "targets/uthinker/sim/uthinker_sim.h"
#include "targets/uthinker/uthinker.h"

/* ---- a model, compiled, and its golden model ---- */

/* One result of the golden model's last call. */
typedef struct golden_value {
    char *name;
    float *data;
    size_t rows, columns;
} golden_value;

typedef struct subject {
    muc_context *ctx;
    muc_checkpoint checkpoint;
    muc_graph *graph;
    muc_uthinker_build *build;
    mur_program program;
    muc_ref *golden;
    golden_value *values;
    size_t value_count;
} subject;

static void record(void *arg, const muc_node *node, const char *name, const float *data,
                   size_t rows, size_t columns)
{
    subject *s = arg;
    golden_value *value;
    size_t i = 0;

    (void)node;
    while (i < s->value_count && strcmp(s->values[i].name, name) != 0)
        i++;
    if (i == s->value_count) {
        s->values = realloc(s->values, ++s->value_count * sizeof(*s->values));
        assert_non_null(s->values);
        s->values[i] = (golden_value){ .name = strdup(name) };
    }
    value = &s->values[i];
    free(value->data);
    value->data = malloc(rows * columns * sizeof(float));
    assert_non_null(value->data);
    memcpy(value->data, data, rows * columns * sizeof(float));
    value->rows = rows;
    value->columns = columns;
}

static muc_ref_terms golden_terms(const muc_uthinker_terms *terms)
{
    muc_ref_terms out = { .step = 64 }; /* the default machine's tokens */

#define SAME_TERM(letter, meaning) out.letter = terms->letter;
    MUC_UTHINKER_TERMS(SAME_TERM)
#undef SAME_TERM
    return out;
}

/* s->checkpoint is open */
static void compile(subject *s, const muc_uthinker_options *options, double bits_per_weight)
{
    static mur_verifier verifier;
    static const muc_uthinker_tokens tokens = { .bos = UINT32_MAX };
    const muc_llama_options llama = { 0 };
    const muc_quantize_options quantize = { .bits_per_weight = bits_per_weight };
    const muc_ref_terms terms = golden_terms(&options->terms);
    muc_uthinker_machine machine;
    muc_quantize_result quantized;
    muc_container sections;

    CHECK_OK(s->ctx, muc_llama_build(s->ctx, &s->checkpoint, &llama, &s->graph));
    CHECK_OK(s->ctx, muc_quantize_weights(s->ctx, s->graph, &quantize, &quantized));
    CHECK_OK(s->ctx, muc_uthinker_read_machine(s->ctx, &s->graph->arena,
                                               muc_uthinker_default_machine(), &machine));
    CHECK_OK(s->ctx, muc_uthinker_compile(s->ctx, s->graph, &machine, options, &tokens, &s->build));
    CHECK_OK(s->ctx, muc_container_open(s->ctx, s->build->program, &sections, &s->program));
    CHECK_EQ(mur_verify(&s->program, &verifier), MUR_OK);
    CHECK_OK(s->ctx, muc_ref_open_machine(s->ctx, s->graph, &terms, &s->golden));
    muc_ref_set_probe(s->golden, record, s);
}

static void open_random(subject *s, const random_shape *shape, const muc_uthinker_options *options,
                        double bits_per_weight)
{
    memset(s, 0, sizeof(*s));
    s->ctx = muc_context_new(1);
    random_checkpoint(s->ctx, shape, &s->checkpoint);
    compile(s, options, bits_per_weight);
}

static void close_subject(subject *s)
{
    for (size_t i = 0; i < s->value_count; i++) {
        free(s->values[i].name);
        free(s->values[i].data);
    }
    free(s->values);
    muc_ref_close(s->golden);
    muc_uthinker_build_free(s->build);
    muc_graph_free(s->graph);
    muc_checkpoint_close(&s->checkpoint);
    muc_context_free(s->ctx);
}

/* ---- a board ---- */

typedef struct board {
    subject *s;
    const muc_uthinker_layout *y;
    const muc_uthinker_chip *chip; /* of the entry at hand */
    mur_sim sim;
    mur_hal hal;
    uint8_t *memory; /* of all that follows */
    uint8_t *kv, *io;
    mur_run_state run;
    const muc_flat *flat; /* of the entry at hand */
    uint32_t pos, m;
    /* where in the schedule the run is */
    uint32_t norms, layer, head, slab, column;
    uint32_t chunk[64]; /* of each token of the call: steps of attention that it has seen */
    uint32_t compared[MUR_SIM_OPCODES];
} board;

static void open_board(board *b, subject *s, enum mur_sim_policy policy, uint32_t seed)
{
    const mur_program *p = &s->program;
    mur_sim_memory memory = { .wgts = p->section[MUR_SECTION_WGTS],
                              .parm = p->section[MUR_SECTION_PARM] };
    size_t total = p->region_bytes[MUR_KV] + p->region_bytes[MUR_IO] + 64;
    uint8_t *at;

    memset(b, 0, sizeof(*b));
    b->s = s;
    b->y = &s->build->layout;
    for (int i = 0; i < MUR_BUFFERS; i++)
        total += memory.buffer_bytes[i] = b->y->machine.buffer_bytes[i];
    memcpy(memory.region_bytes, p->region_bytes, sizeof(memory.region_bytes));
    at = b->memory = calloc(1, total);
    assert_non_null(at);
    memory.gb = (float *)(void *)at;
    at += memory.buffer_bytes[MUR_GB];
    for (int i = 0; i < MUR_GB; i++) {
        memory.buffer[i] = at;
        at += memory.buffer_bytes[i];
    }
    b->io = memory.io = at;
    b->kv = memory.kv = at + p->region_bytes[MUR_IO];
    mur_sim_init(&b->sim, &memory, policy, seed);
    b->hal = mur_sim_hal(&b->sim);
}

static void close_board(board *b)
{
    free(b->memory);
}

static void run_tokens(board *b, enum mur_entry_kind kind, uint32_t pos, const int32_t *tokens,
                       uint32_t m)
{
    uint32_t entry = mur_find_entry(&b->s->program, kind, m);
    mur_status status;

    b->pos = pos;
    b->m = m;
    b->norms = 0;
    b->chip = kind == MUR_ENTRY_DECODE ? &b->y->decode : &b->y->prefill;
    b->flat = &b->s->build->flat[entry];
    memcpy(b->io, tokens, m * sizeof(*tokens));
    CHECK_EQ(mur_start(&b->run, &b->s->program, &b->hal, entry, pos, m), MUR_OK);
    do { /* so that b->run.at is always that of the instruction at hand */
        status = mur_step(&b->run);
    } while (status == MUR_YIELD || (status == MUR_OK && !b->run.done));
    if (b->sim.fault.reason)
        fail_msg("fault: %s", b->sim.fault.reason);
    CHECK_EQ(status, MUR_OK);
}

static const float *logits_of(const board *b)
{
    return (const float *)(const void *)(b->io + b->y->logits);
}

/* ---- the comparison, after each instruction ---- */

#define GET(words, insn, name) get(words, MUC_FIELD_##insn##_##name)

static uint32_t get(const uint32_t *words, uint32_t field)
{
    const muc_field_info *info = muc_field_get(field);

    return words[info->word] >> info->shift & (uint32_t)((1ull << info->width) - 1);
}

/* Rows of the golden model's last call; name has a %u for the layer, if it is of one. */
static const golden_value *golden(const board *b, const char *name)
{
    char full[64];

    snprintf(full, sizeof(full), name, b->layer);
    for (size_t i = 0; i < b->s->value_count; i++)
        if (strcmp(b->s->values[i].name, full) == 0)
            return &b->s->values[i];
    fail_msg("the golden model has no '%s'", full);
    return NULL;
}

static const float *golden_row(const board *b, const char *name, uint32_t row, uint32_t column,
                               uint32_t columns)
{
    const golden_value *value = golden(b, name);

    CHECK(row < value->rows && column + columns <= value->columns);
    return value->data + row * value->columns + column;
}

static void differ(const board *b, const char *name, uint32_t row)
{
    fail_msg("pos %u, m %u, layer %u, kv head %u: '%s' row %u differs", b->pos, b->m, b->layer,
             b->head, name, row);
}

/* GB at word: rows 0..m-1, `pitch` apart, against columns of a golden value */
static void check_rows(const board *b, const char *name, uint32_t word, uint32_t pitch,
                       uint32_t column, uint32_t columns)
{
    for (uint32_t r = 0; r < b->m; r++)
        if (memcmp(b->sim.memory.gb + word + r * pitch, golden_row(b, name, r, column, columns),
                   4 * (size_t)columns) != 0)
            differ(b, name, r);
}

/* a row of slots against the slots of a golden row's columns */
static void check_slots(const board *b, const char *name, const uint8_t *slots, uint32_t row,
                        uint32_t column, uint32_t columns, uint32_t terms)
{
    const float *x = golden_row(b, name, row, column, columns);
    uint8_t expected[MUR_BLOCK_MAX_BYTES];

    for (uint32_t i = 0; i < columns; i += MUR_BLOCK_ELEMS) {
        uint32_t n = columns - i < MUR_BLOCK_ELEMS ? columns - i : MUR_BLOCK_ELEMS;
        uint32_t bytes = mur_block_encode(x + i, n, terms, expected);

        if (memcmp(slots, expected, bytes) != 0)
            differ(b, name, row);
        slots += bytes;
    }
}

static void check_norm(board *b, const uint32_t *w)
{
    const uint8_t *out = b->sim.memory.buffer[GET(w, NORM, dst)] + GET(w, NORM, daddr);
    uint32_t k = GET(w, NORM, k), terms = GET(w, NORM, terms), rows = GET(w, NORM, rows);
    uint32_t last = b->norms == 2 * b->y->layers;
    const char *name = last           ? "final_norm"
                       : b->norms % 2 ? "layers.%u.ffn_norm"
                                      : "layers.%u.attention_norm";

    b->layer = b->norms++ / 2;
    b->head = b->column = 0;
    CHECK_EQ(rows, last ? 1 : b->m);
    for (uint32_t r = 0; r < rows; r++)
        check_slots(b, name, out + r * muc_uthinker_slots_bytes(k, terms), last ? b->m - 1 : r, 0,
                    k, terms);
}

/* Whether one token's queries of all kv heads lie in Q, and what is made of them beside each other.
 */
static bool is_kept(const board *b)
{
    return muc_uthinker_keeps_queries(b->y, b->chip);
}

/* What begins `before` queries behind a place's begin is of a kv head, and of a token of the call.
 */
static uint32_t head_of(const board *b, uint32_t before)
{
    return is_kept(b) ? before : b->head;
}

static uint32_t token_of(const board *b, uint32_t before)
{
    return is_kept(b) ? 0 : before;
}

/* the scores of a step for a tile of queries, once all slabs are added up, as far as each looks */
static void check_scores(board *b, const uint32_t *w)
{
    uint32_t group = b->y->group, last = b->pos + b->m - 1, pitch = GET(w, MM, spitch);
    uint32_t first_query = (GET(w, MM, saddr) - b->chip->address[MUC_PLACE_Q]) / (group * pitch);
    uint32_t first = 64 * b->chunk[first_query];

    b->slab = GET(w, MM, acc) ? b->slab + 1 : 0;
    if (b->slab + 1 < b->y->slabs)
        return;
    for (uint32_t r = 0; r < GET(w, MM, rows); r++) {
        uint32_t query = token_of(b, first_query) + r / group, token = b->pos + query, n;
        uint32_t row = query * b->y->heads + head_of(b, first_query) * group + r % group;

        n = token < first ? 0 : token - first < 63 ? token - first + 1 : 64;
        CHECK(n == 0 || first + n <= last + 1);
        if (n != 0 &&
            memcmp(b->sim.memory.gb + GET(w, MM, daddr) + 64 * r,
                   golden_row(b, "layers.%u.attention.scores", row, first, n), 4 * (size_t)n) != 0)
            differ(b, "scores", row);
    }
}

static void check_probabilities(board *b, const uint32_t *w)
{
    const uint8_t *out = b->sim.memory.buffer[GET(w, SMAX, dst)] + GET(w, SMAX, daddr);
    uint32_t group = b->y->group, hd = b->y->head_width;
    uint32_t first_query =
        (GET(w, SMAX, oaddr) - b->chip->address[MUC_PLACE_OA] / 4) / (group * hd);

    for (uint32_t r = 0; r < GET(w, SMAX, rows); r++) {
        uint32_t query = token_of(b, first_query) + r / group, token = b->pos + query;
        uint32_t row = query * b->y->heads + head_of(b, first_query) * group + r % group;
        uint32_t *chunk = &b->chunk[first_query + r / group], first = 64 * *chunk;

        CHECK(token >= first);
        check_slots(b, "layers.%u.attention.weights", out + r * GET(w, SMAX, dpitch), row, first,
                    token - first < 63 ? token - first + 1 : 64, GET(w, SMAX, terms));
        *chunk += r % group + 1 == group;
    }
}

/* every query has seen every step up to its own */
static void check_steps(board *b)
{
    uint32_t count = is_kept(b) ? b->y->kv_heads : b->m;

    for (uint32_t i = 0; i < count; i++)
        CHECK_EQ(b->chunk[i], (b->pos + token_of(b, i)) / 64 + 1);
    memset(b->chunk, 0, sizeof(b->chunk));
}

/* whether the residual has all of what O, or down, adds to it by parts of its rows */
static bool is_whole(const board *b, const char *stage)
{
    if (strcmp(stage, "O") == 0)
        return b->head == b->y->kv_heads;
    return strcmp(stage, "DN") != 0 || b->column == b->y->ffn_width;
}

static void check_mm(board *b, const char *stage, const uint32_t *w)
{
    uint32_t daddr = GET(w, MM, daddr), cols = GET(w, MM, cols), dpitch = GET(w, MM, dpitch);
    uint32_t hd = b->y->head_width, gate = b->chip->address[MUC_PLACE_GA] / 4;
    const struct {
        const char *stage, *name;
        muc_uthinker_place place;
        uint32_t row, column; /* of the place's first word */
    } products[] = {
        { "Q", "layers.%u.q", MUC_PLACE_QF, 0, b->head * b->y->group * hd },
        { "K", "layers.%u.k", MUC_PLACE_KF, 0, b->head * hd },
        { "V", "layers.%u.v", MUC_PLACE_VT, b->pos % 64, b->head * hd },
        { "O", "layers.%u.attention_residual", MUC_PLACE_RES, 0, 0 },
        { "DN", "layers.%u.residual", MUC_PLACE_RES, 0, 0 },
    };

    for (size_t i = 0; i < MUC_COUNT(products); i++) {
        uint32_t origin = b->chip->address[products[i].place] / 4 + products[i].row * dpitch;

        if (strcmp(stage, products[i].stage) == 0 && is_whole(b, stage))
            check_rows(b, products[i].name, daddr, dpitch, products[i].column + daddr - origin,
                       cols);
    }
    if (strcmp(stage, "UP+GATE") == 0)
        check_rows(b, daddr == gate ? "layers.%u.gate" : "layers.%u.up", daddr, dpitch, b->column,
                   cols);
    if (strcmp(stage, "QK") == 0)
        check_scores(b, w);
}

static void check_rope(const board *b, const char *stage, const uint32_t *w)
{
    uint32_t columns = muc_uthinker_query_columns(b->y), keys = muc_uthinker_key_columns(b->y);

    if (strcmp(stage, "Q") == 0)
        check_rows(b, "layers.%u.q_rope", GET(w, ROPE, saddr), columns, b->head * columns, columns);
    if (strcmp(stage, "K") == 0)
        check_rows(b, "layers.%u.k_rope", GET(w, ROPE, saddr), keys, b->head * keys, keys);
}

static void check_quant(const board *b, const char *stage, const uint32_t *w)
{
    const uint8_t *out = b->sim.memory.buffer[GET(w, QUANT, dst)] + GET(w, QUANT, daddr);
    uint32_t hd = b->y->head_width, group = b->y->group, k = GET(w, QUANT, k);
    bool apart = b->y->heads_made > 1 && !is_kept(b); /* a head's queries of all tokens */
    uint32_t from = GET(w, QUANT, saddr) - b->chip->address[MUC_PLACE_KF] / 4;
    uint32_t query = (GET(w, QUANT, saddr) - b->chip->address[MUC_PLACE_QF] / 4) / hd;
    uint32_t own = b->y->heads_made * group, first = b->y->heads_made > 1 ? 0 : b->head;

    for (uint32_t r = 0; r < GET(w, QUANT, rows); r++) {
        const uint8_t *slots = out + r * GET(w, QUANT, dpitch);
        uint32_t terms = GET(w, QUANT, terms);

        if (strcmp(stage, "Q") == 0)
            check_slots(b, "layers.%u.q_rope", slots, apart ? r : r / own,
                        (apart ? query : first * group + r % own) * hd, k, terms);
        if (strcmp(stage, "K") == 0)
            check_slots(b, "layers.%u.k_rope", slots, r, first * hd + from, k, terms);
        if (strcmp(stage, "O") == 0)
            check_slots(b, "layers.%u.attention", slots, r,
                        b->y->o_parts > 1 ? (b->head - 1) * k : 0, k, terms);
    }
}

static void check_div(board *b, const uint32_t *w)
{
    uint32_t heads = is_kept(b) ? b->y->kv_heads : 1;
    uint32_t columns = heads * b->y->group * b->y->head_width;

    check_rows(b, "layers.%u.attention", GET(w, DIV, daddr), GET(w, DIV, dpitch), b->head * columns,
               columns);
    b->head += heads;
    check_steps(b);
}

static void check_glu(board *b, const uint32_t *w)
{
    const uint8_t *out = b->sim.memory.buffer[GET(w, GLU, dst)] + GET(w, GLU, daddr);

    for (uint32_t r = 0; r < b->m; r++)
        check_slots(b, "layers.%u.gated", out + r * GET(w, GLU, dpitch), r, b->column,
                    GET(w, GLU, k), GET(w, GLU, terms));
    b->column += GET(w, GLU, k);
}

static const char *stage_of(const board *b)
{
    uint32_t entry = (uint32_t)(b->flat - b->s->build->flat);
    uint32_t word = b->run.at - b->s->program.entries[entry].start;

    for (size_t i = 0; i < b->flat->label_count; i++)
        if (b->flat->labels[i].word == word)
            return b->flat->labels[i].name;
    fail_msg("CODE word %u has no label", b->run.at);
    return NULL;
}

static void compare(void *arg, mur_sim *sim, enum mur_engine engine, const uint32_t *w)
{
    board *b = arg;
    const char *stage = stage_of(b);
    uint32_t op;

    (void)sim;
    (void)engine;
    CHECK(muc_insn_find_opcode(w[0] & 255, &op));
    b->compared[w[0] & 255]++;
    if (op == MUC_INSN_LD && GET(w, LD, region) == MUR_IO)
        check_rows(b, "embed", b->chip->address[MUC_PLACE_RES] / 4, b->y->width, 0, b->y->width);
    else if (op == MUC_INSN_NORM)
        check_norm(b, w);
    else if (op == MUC_INSN_MM)
        check_mm(b, stage, w);
    else if (op == MUC_INSN_ROPE)
        check_rope(b, stage, w);
    else if (op == MUC_INSN_QUANT)
        check_quant(b, stage, w);
    else if (op == MUC_INSN_SMAX)
        check_probabilities(b, w);
    else if (op == MUC_INSN_DIV)
        check_div(b, w);
    else if (op == MUC_INSN_GLU)
        check_glu(b, w);
}

/* ---- tests ---- */

static void random_tokens(const subject *s, int32_t *tokens, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        tokens[i] = (int32_t)(random_u32() % s->build->layout.vocabulary);
}

/* Calls of at most `rows` tokens, of all sizes and across chunks, until the context is full. */
static uint32_t next_call(const muc_uthinker_layout *y, uint32_t pos, uint32_t call)
{
    static const uint32_t sizes[] = { 3, 1, 64, 1, 63, 1, 1, 40, 2, 64, 64 };
    uint32_t m = sizes[call % MUC_COUNT(sizes)];

    m = m < y->options.rows ? m : y->options.rows;
    return m < y->options.context - pos ? m : y->options.context - pos;
}

/* every stage of a whole context in calls of several sizes */
static void check_stages(subject *s)
{
    static const uint32_t opcodes[] = { 0x01, 0x10, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26 };
    int32_t tokens[512];
    board b;

    open_board(&b, s, MUR_SIM_EAGER, 1);
    CHECK(b.y->options.context <= 512);
    random_tokens(s, tokens, b.y->options.context);
    b.sim.probe = compare;
    b.sim.probe_arg = &b;
    for (uint32_t pos = 0, call = 0; pos < b.y->options.context; call++) {
        uint32_t m = next_call(b.y, pos, call), last = m - 1;

        CHECK_OK(s->ctx, muc_ref_run_tokens(s->golden, pos, tokens + pos, m));
        run_tokens(&b, m == 1 ? MUR_ENTRY_DECODE : MUR_ENTRY_PREFILL, pos, tokens + pos, m);
        CHECK_EQ(b.norms, 2 * b.y->layers + 1);
        assert_memory_equal(logits_of(&b), golden_row(&b, "head", last, 0, b.y->vocabulary),
                            4 * (size_t)b.y->vocabulary);
        pos += m;
    }
    for (size_t i = 0; i < MUC_COUNT(opcodes); i++)
        CHECK(b.compared[opcodes[i]] > 0);
    close_board(&b);
}

static const random_shape shapes[] = {
    /* heads in one block; feed-forward and vocabulary with tails; one query a kv head */
    { 2, 40, 3, 3, 8, 44, 70, 150, true },
    /* groups of 4, a head of one whole block, untied */
    { 2, 72, 4, 1, 32, 100, 75, 140, false },
    /* two slabs, the second short; groups of 2 */
    { 1, 96, 4, 2, 72, 130, 67, 200, true },
    /* weights in several chunks, groups of 3 */
    { 1, 256, 6, 2, 64, 700, 1000, 130, false },
    /* groups of two steps in DECODE and of one in PREFILL, up to six of them */
    { 1, 64, 2, 1, 128, 64, 66, 400, true },
    /* rows of O and of down in parts */
    { 2, 256, 6, 3, 64, 768, 300, 150, true },
};

/* the last one's is asked for; the others' are chosen */
static muc_uthinker_split split_of(size_t shape)
{
    static const muc_uthinker_split chosen, asked = {
        .ffn_parts = 3, .o_by_head = true, .gains_once = true, .late = true, .streamed = true
    };

    return shape + 1 == MUC_COUNT(shapes) ? asked : chosen;
}

static const muc_uthinker_terms all_two = { 2, 2, 2, 2, 2, 2, 2, 2, 2 };
static const muc_uthinker_terms all_one = { 1, 1, 1, 1, 1, 1, 1, 1, 1 };
static const muc_uthinker_terms mixed[] = { { 2, 1, 2, 1, 2, 1, 2, 1, 2 },
                                            { 1, 2, 1, 2, 1, 2, 1, 2, 1 } };

static void every_stage_is_the_golden_models_on_random_models(void **state)
{
    (void)state;
    for (size_t i = 0; i < MUC_COUNT(shapes); i++)
        for (uint32_t t = brief() ? 2 : 0; t < 4; t++) {
            const muc_uthinker_options options = { .terms = t == 0   ? all_two
                                                            : t == 1 ? all_one
                                                                     : mixed[t - 2],
                                                   .split = split_of(i),
                                                   .unrotated = t == 3 };
            subject s;

            open_random(&s, &shapes[i], &options, t % 2 ? 7 : 12);
            check_stages(&s);
            close_subject(&s);
        }
}

static void recomputed_keys_give_the_same_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < MUC_COUNT(shapes); i++) {
        const muc_uthinker_options options = {
            .terms = mixed[i % 2], .recompute = true, .split = split_of(i), .unrotated = i % 2
        };
        subject s;

        open_random(&s, &shapes[i], &options, 8);
        check_stages(&s);
        close_subject(&s);
    }
}

static void every_stage_is_the_golden_models_on_stories260k(void **state)
{
    const char *path = shared_data("llama/stories260K.bin");

    (void)state;
    for (int recompute = brief(); recompute < 2; recompute++) {
        const muc_uthinker_options options = { .terms = all_two, .recompute = recompute };
        subject s;

        memset(&s, 0, sizeof(s));
        s.ctx = muc_context_new(0);
        CHECK_OK(s.ctx, muc_checkpoint_open(s.ctx, path, &s.checkpoint));
        compile(&s, &options, 0);
        check_stages(&s);
        close_subject(&s);
    }
}

/* the parts of region KV that later calls read: whole caches, and the tail's rows so far */
static void same_state(const board *a, const board *b, uint32_t end)
{
    uint32_t row = 4 * muc_uthinker_key_columns(a->y);
    uint32_t heads = a->y->layers * a->y->kv_heads / a->y->heads_made;

    assert_memory_equal(a->kv, b->kv, a->y->v_tail);
    for (uint32_t i = 0; i < heads; i++)
        assert_memory_equal(a->kv + a->y->v_tail + i * 64 * row,
                            b->kv + a->y->v_tail + i * 64 * row, end % 64 * row);
}

static void prefill_of_m_tokens_is_m_decodes(void **state)
{
    (void)state;
    for (size_t i = 0; i < MUC_COUNT(shapes); i++) {
        const muc_uthinker_options options = { .terms = mixed[i % 2], .split = split_of(i) };
        int32_t tokens[512];
        board prefill, decode;
        subject s;

        open_random(&s, &shapes[i], &options, 8);
        open_board(&prefill, &s, MUR_SIM_EAGER, 1);
        open_board(&decode, &s, MUR_SIM_EAGER, 1);
        random_tokens(&s, tokens, shapes[i].context);
        for (uint32_t pos = 0, call = 0; pos < shapes[i].context; call++) {
            uint32_t m = next_call(prefill.y, pos, call), end = pos + m;

            run_tokens(&prefill, MUR_ENTRY_PREFILL, pos, tokens + pos, m);
            for (; pos < end; pos++)
                run_tokens(&decode, MUR_ENTRY_DECODE, pos, tokens + pos, 1);
            assert_memory_equal(logits_of(&prefill), logits_of(&decode),
                                4 * (size_t)shapes[i].vocabulary);
            same_state(&prefill, &decode, end);
        }
        close_board(&prefill);
        close_board(&decode);
        close_subject(&s);
    }
}

static void queues_may_run_in_any_order(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 4; round++) {
        size_t number = MUC_COUNT(shapes) - 1 - round;
        const muc_uthinker_options options = { .terms = all_two,
                                               .recompute = round % 2,
                                               .split = split_of(number) };
        const random_shape *shape = &shapes[number];
        int32_t tokens[512];
        board eager, other;
        subject s;

        open_random(&s, shape, &options, 8);
        random_tokens(&s, tokens, shape->context);
        for (uint32_t order = 0; order < (brief() ? 2 : 4); order++) {
            open_board(&eager, &s, MUR_SIM_EAGER, 1);
            open_board(&other, &s, order == 0 ? MUR_SIM_LAZY : MUR_SIM_RANDOM, order);
            for (uint32_t pos = 0, call = 0; pos < shape->context; call++) {
                uint32_t m = next_call(eager.y, pos, call);

                run_tokens(&eager, MUR_ENTRY_PREFILL, pos, tokens + pos, m);
                run_tokens(&other, MUR_ENTRY_PREFILL, pos, tokens + pos, m);
                assert_memory_equal(eager.memory, other.memory,
                                    (size_t)(eager.kv - eager.memory) + eager.y->kv_bytes);
                pos += m;
            }
            close_board(&eager);
            close_board(&other);
        }
        close_subject(&s);
    }
}

static void both_exponentials_are_the_same(void **state)
{
    (void)state;
    for (int i = 0; i <= 3000000; i++) {
        float x = -(float)i / 37037.0f, found = mur_sim_exp(x), expected = muc_ref_machine_exp(x);

        if (memcmp(&found, &expected, sizeof(found)) != 0)
            fail_msg("exp(%a) is %a, %a to the golden model", (double)x, (double)found,
                     (double)expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_exponentials_are_the_same),
        cmocka_unit_test(every_stage_is_the_golden_models_on_random_models),
        cmocka_unit_test(recomputed_keys_give_the_same_bits),
        cmocka_unit_test(every_stage_is_the_golden_models_on_stories260k),
        cmocka_unit_test(prefill_of_m_tokens_is_m_decodes),
        cmocka_unit_test(queues_may_run_in_any_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

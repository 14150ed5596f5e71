/* test_uthinker_golden.c - a compiled program on the simulator against the golden model: the graph
 * run in the machine's arithmetic by code that knows nothing of instructions. Every stage, every
 * bit. */
#include "random_checkpoint.h"
#include "uthinker_fixture.h"

#include "mur.h"
#include "ref/golden/uthinker_golden.h"
#include "targets/uthinker/sim/uthinker_sim.h"

enum { MAX_RECORDS = 256, CHUNK = 64 };

/* What the golden model showed of one call: a node's floats, or the slots that a node reads. */
typedef struct record {
    char name[64];
    bool slots;
    size_t rows, row_bytes;
    uint8_t *data;
} record;

typedef struct board {
    fixture f;
    muc_ref *golden;
    void *image;
    mur_program program;
    mur_verifier verifier;
    mur_sim sim;
    mur_sim_memory memory;
    record records[MAX_RECORDS];
    size_t record_count;
    /* where the program is: counted from the instructions that pass */
    uint32_t softmaxes[64]; /* that each token of the call has seen */
    uint32_t norms, ropes, divisions, products, columns_done, compared;
    uint32_t pos, m;
} board;

static void keep(board *b, const char *name, bool slots, const void *data, size_t rows,
                 size_t row_bytes)
{
    record *r = &b->records[b->record_count++];

    CHECK(b->record_count <= MAX_RECORDS);
    snprintf(r->name, sizeof(r->name), "%s", name);
    r->slots = slots;
    r->rows = rows;
    r->row_bytes = row_bytes;
    r->data = malloc(rows * row_bytes);
    assert_non_null(r->data);
    memcpy(r->data, data, rows * row_bytes);
}

static void keep_floats(void *arg, const muc_node *node, const char *name, const float *data,
                        size_t rows, size_t columns)
{
    (void)node;
    keep(arg, name, false, data, rows, columns * sizeof(float));
}

static void keep_slots(void *arg, const muc_node *node, const uint8_t *slots, size_t rows,
                       size_t row_bytes)
{
    keep(arg, node->name, true, slots, rows, row_bytes);
}

/* The record of a layer's stage; layer UINT32_MAX: the name as it is. */
static const record *find(const board *b, uint32_t layer, const char *stage, bool slots)
{
    char name[64];

    if (layer == UINT32_MAX)
        snprintf(name, sizeof(name), "%s", stage);
    else
        snprintf(name, sizeof(name), "layers.%u.%s", layer, stage);
    for (size_t i = 0; i < b->record_count; i++)
        if (b->records[i].slots == slots && strcmp(b->records[i].name, name) == 0)
            return &b->records[i];
    fail_msg("the golden model showed nothing of '%s'", name);
    return NULL;
}

/* bytes of a row of the record from offset on are those of the machine */
static void check_row(board *b, const record *r, size_t row, size_t offset, const void *found,
                      size_t bytes)
{
    CHECK(row < r->rows && offset + bytes <= r->row_bytes);
    if (memcmp(r->data + row * r->row_bytes + offset, found, bytes) != 0)
        fail_msg("pos %u, m %u: row %zu of %s '%s' differs from offset %zu on", b->pos, b->m, row,
                 r->slots ? "the slots read by" : "the result of", r->name, offset);
    b->compared++;
}

static uint32_t field(const uint32_t *words, muc_uthinker_field which)
{
    const muc_field_info *info = muc_field_get(which);

    return words[info->word] >> info->shift & muc_field_max(which);
}
#define FIELD(insn, name) field(words, MUC_FIELD_##insn##_##name)

static void check_norm(board *b, const uint32_t *words)
{
    uint32_t layers = b->f.build->layout.layers, layer = b->norms / 2;
    bool last = b->norms == 2 * layers, first = b->norms % 2 == 0;
    const record *before = b->norms == 0 ? find(b, UINT32_MAX, "embed", false)
                           : first       ? find(b, layer - 1, "residual", false)
                                         : find(b, layer, "attention_residual", false);
    const record *slots =
        last ? find(b, UINT32_MAX, "head", true) : find(b, layer, first ? "q" : "gate", true);

    for (uint32_t r = 0; r < FIELD(NORM, rows); r++) {
        uint32_t row = last ? b->m - 1 : r;

        check_row(b, before, row, 0, b->memory.gb + FIELD(NORM, saddr) + r * FIELD(NORM, spitch),
                  FIELD(NORM, k) * sizeof(float));
        check_row(b, slots, row, 0,
                  b->memory.buffer[FIELD(NORM, dst)] + FIELD(NORM, daddr) + r * slots->row_bytes,
                  slots->row_bytes);
    }
    b->norms++;
    b->ropes = b->divisions = b->products = b->columns_done = 0;
}

/* Whether one token's queries of all kv heads lie beside each other. */
static bool is_kept(const board *b)
{
    const muc_uthinker_layout *layout = &b->f.build->layout;

    return muc_uthinker_keeps_queries(layout, b->m == 1 ? &layout->decode : &layout->prefill);
}

/* queries of a kv head's group, or of all, then its keys */
static void check_rope(board *b, const uint32_t *words)
{
    const muc_uthinker_layout *layout = &b->f.build->layout;
    bool queries = b->ropes % 2 == 0;
    const record *r = find(b, (b->norms - 1) / 2, queries ? "q_rope" : "k_rope", false);
    uint32_t columns =
        queries ? muc_uthinker_query_columns(layout) : muc_uthinker_key_columns(layout);

    CHECK_EQ(columns, FIELD(ROPE, heads) * FIELD(ROPE, k));
    for (uint32_t i = 0; i < b->m; i++)
        check_row(b, r, i, b->ropes / 2 * columns * sizeof(float),
                  b->memory.gb + FIELD(ROPE, saddr) + i * FIELD(ROPE, spitch),
                  columns * sizeof(float));
    b->ropes++;
    memset(b->softmaxes, 0, sizeof(b->softmaxes));
}

/* queries, keys in slabs, or attention's result */
static void check_quant(board *b, const uint32_t *words)
{
    const muc_uthinker_layout *layout = &b->f.build->layout;
    const uint8_t *out = b->memory.buffer[FIELD(QUANT, dst)] + FIELD(QUANT, daddr);
    uint32_t layer = (b->norms - 1) / 2, kv_head = (b->ropes - 1) / 2;
    const muc_uthinker_chip *chip = b->m == 1 ? &layout->decode : &layout->prefill;
    uint32_t query = (FIELD(QUANT, saddr) - chip->address[MUC_PLACE_QF] / 4) / layout->head_width;
    const record *r;

    if (FIELD(QUANT, dst) == MUR_I0) {
        r = find(b, layer, "attention_residual", true);
        for (uint32_t i = 0; i < b->m; i++)
            check_row(b, r, i, layout->o_parts > 1 ? kv_head * FIELD(QUANT, dpitch) : 0,
                      out + i * FIELD(QUANT, dpitch), FIELD(QUANT, dpitch));
    } else if (FIELD(QUANT, dst) == MUR_I1) {
        r = find(b, layer, "attention", true);
        for (uint32_t i = 0; i < FIELD(QUANT, rows) && layout->heads_made > 1; i++)
            check_row(b, r, is_kept(b) ? i : i * layout->heads + query, 0,
                      out + i * FIELD(QUANT, dpitch), r->row_bytes);
        for (uint32_t i = 0; i < FIELD(QUANT, rows) && layout->heads_made == 1; i++)
            check_row(b, r,
                      i / layout->group * layout->heads + kv_head * layout->group +
                          i % layout->group,
                      0, out + i * FIELD(QUANT, dpitch), r->row_bytes);
    }
}

/* the scores that it reads */
static void check_softmax(board *b, const uint32_t *words)
{
    const muc_uthinker_layout *layout = &b->f.build->layout;
    const record *r = find(b, (b->norms - 1) / 2, "attention.scores", false);
    uint32_t group = FIELD(SMAX, group);
    uint32_t kv_head = layout->heads_made > 1 ? b->divisions : (b->ropes - 1) / 2;
    const muc_uthinker_chip *chip = b->m == 1 ? &layout->decode : &layout->prefill;
    uint32_t first =
        (FIELD(SMAX, oaddr) - chip->address[MUC_PLACE_OA] / 4) / (group * FIELD(SMAX, k));

    CHECK_EQ(FIELD(SMAX, skip), 0);
    for (uint32_t row = 0; row < FIELD(SMAX, rows); row++) {
        uint32_t i = row / group, count = FIELD(SMAX, valid) + i;
        uint32_t token = is_kept(b) ? 0 : first + i, head = is_kept(b) ? first : kv_head;

        check_row(b, r, token * layout->heads + head * group + row % group,
                  b->softmaxes[first + i] * CHUNK * sizeof(float),
                  b->memory.gb + FIELD(SMAX, saddr) + CHUNK * row,
                  (count < CHUNK ? count : CHUNK) * sizeof(float));
        b->softmaxes[first + i] += row % group + 1 == group;
    }
}

static void check_division(board *b, const uint32_t *words)
{
    const record *r = find(b, (b->norms - 1) / 2, "attention", false);
    uint32_t columns = FIELD(DIV, group) * FIELD(DIV, k);

    for (uint32_t i = 0; i < b->m; i++)
        check_row(b, r, i, b->divisions * columns * sizeof(float),
                  b->memory.gb + FIELD(DIV, daddr) + i * FIELD(DIV, dpitch),
                  columns * sizeof(float));
    b->divisions++;
    memset(b->softmaxes, 0, sizeof(b->softmaxes));
}

static void check_product(board *b, const uint32_t *words)
{
    uint32_t layer = (b->norms - 1) / 2, k = FIELD(GLU, k), at = b->columns_done;
    const record *gate = find(b, layer, "gate", false), *up = find(b, layer, "up", false);
    const record *slots = find(b, layer, "residual", true);
    uint32_t terms = FIELD(GLU, terms);

    for (uint32_t i = 0; i < b->m; i++) {
        check_row(b, gate, i, at * sizeof(float), b->memory.gb + FIELD(GLU, saddr) + i * k,
                  k * sizeof(float));
        check_row(b, up, i, at * sizeof(float), b->memory.gb + FIELD(GLU, uaddr) + i * k,
                  k * sizeof(float));
        check_row(b, slots, i, muc_uthinker_slots_bytes(at, terms),
                  b->memory.buffer[FIELD(GLU, dst)] + FIELD(GLU, daddr) + i * FIELD(GLU, dpitch),
                  muc_uthinker_slots_bytes(k, terms));
    }
    b->columns_done += k;
}

static void watch(void *arg, mur_sim *sim, enum mur_engine engine, const uint32_t *words)
{
    board *b = arg;
    uint32_t op;

    (void)sim;
    (void)engine;
    CHECK(muc_insn_find_opcode(words[0] & MUC_WORD0_OPCODE, &op));
    if (op == MUC_INSN_NORM)
        check_norm(b, words);
    else if (op == MUC_INSN_ROPE)
        check_rope(b, words);
    else if (op == MUC_INSN_QUANT)
        check_quant(b, words);
    else if (op == MUC_INSN_SMAX)
        check_softmax(b, words);
    else if (op == MUC_INSN_DIV)
        check_division(b, words);
    else if (op == MUC_INSN_GLU)
        check_product(b, words);
}

/* f holds a compiled model; probed: every stage is compared, not the logits alone */
static void boot(board *b, const muc_uthinker_options *options, enum mur_sim_policy policy,
                 bool probed)
{
    const muc_uthinker_terms *t = &options->terms;
    const muc_ref_terms terms = {
        t->x, t->q, t->k, t->v, t->p, t->o, t->f, t->h, t->l, 64, 0, NULL
    };
    size_t size;

    CHECK_OK(b->f.ctx, muc_ref_open_machine(b->f.ctx, b->f.graph, &terms, &b->golden));
    muc_ref_set_probe(b->golden, keep_floats, b);
    muc_ref_set_slots_probe(b->golden, keep_slots, b);
    size = b->f.build->program.size;
    b->image =
        aligned_alloc(MUR_ALIGNMENT, (size + MUR_ALIGNMENT - 1) / MUR_ALIGNMENT * MUR_ALIGNMENT);
    assert_non_null(b->image);
    memcpy(b->image, b->f.build->program.data, size);
    CHECK_EQ(mur_open(&b->program, b->image, size), MUR_OK);
    CHECK_EQ(mur_verify(&b->program, &b->verifier), MUR_OK);
    memcpy(b->memory.buffer_bytes, b->f.machine.buffer_bytes, sizeof(b->memory.buffer_bytes));
    for (int i = 0; i < MUR_GB; i++)
        b->memory.buffer[i] = calloc(1, b->memory.buffer_bytes[i]);
    b->memory.gb = calloc(1, b->memory.buffer_bytes[MUR_GB]);
    memcpy(b->memory.region_bytes, b->program.region_bytes, sizeof(b->memory.region_bytes));
    b->memory.wgts = b->program.section[MUR_SECTION_WGTS];
    b->memory.parm = b->program.section[MUR_SECTION_PARM];
    b->memory.kv = calloc(1, b->program.region_bytes[MUR_KV]);
    b->memory.io = calloc(1, b->program.region_bytes[MUR_IO]);
    mur_sim_init(&b->sim, &b->memory, policy, 1);
    b->sim.probe = probed ? watch : NULL;
    b->sim.probe_arg = b;
}

static void shut_down(board *b)
{
    for (int i = 0; i < MUR_GB; i++)
        free(b->memory.buffer[i]);
    free(b->memory.gb);
    free(b->memory.kv);
    free(b->memory.io);
    free(b->image);
    muc_ref_close(b->golden);
    fixture_free(&b->f);
    free(b);
}

static void run(board *b, uint32_t pos, uint32_t m)
{
    enum mur_entry_kind kind = m == 1 ? MUR_ENTRY_DECODE : MUR_ENTRY_PREFILL;
    mur_hal hal = mur_sim_hal(&b->sim);
    mur_run_state state;
    int32_t tokens[64];
    mur_status status;
    const record *logits;

    b->pos = pos;
    b->m = m;
    b->norms = 0;
    for (uint32_t i = 0; i < m; i++)
        tokens[i] = (int32_t)((pos + i) * 167 % b->f.checkpoint.config.vocabulary);
    CHECK_OK(b->f.ctx, muc_ref_run_tokens(b->golden, pos, tokens, m));
    memcpy(b->memory.io, tokens, m * sizeof(tokens[0]));
    CHECK_EQ(mur_start(&state, &b->program, &hal, mur_find_entry(&b->program, kind, m), pos, m),
             MUR_OK);
    do
        status = mur_run(&state);
    while (status == MUR_YIELD);
    if (status != MUR_OK || b->sim.fault.reason)
        fail_msg("the run ends with %d: %s", (int)status, b->sim.fault.reason);
    if (b->sim.probe)
        CHECK_EQ(b->norms, 2 * b->f.build->layout.layers + 1);
    logits = find(b, UINT32_MAX, "head", false);
    check_row(b, logits, m - 1, 0, b->memory.io + b->program.meta->logits, logits->row_bytes);
    for (size_t i = 0; i < b->record_count; i++)
        free(b->records[i].data);
    b->record_count = 0;
}

/* Calls of every kind of length up to the model's context, and its rows. */
static void check_board(board *b)
{
    static const uint32_t calls[] = { 1, 1, 1, 5, 64, 1, 64, 33, 1, 1, 60, 64, 1, 63, 2 };
    uint32_t pos = 0, context = b->f.build->layout.options.context;

    for (size_t i = 0; i < MUC_COUNT(calls); i++) {
        uint32_t m = calls[i] < b->program.meta->rows ? calls[i] : b->program.meta->rows;

        if (m > context - pos)
            break;
        run(b, pos, m);
        pos += m;
    }
    print_message("%u positions, %u rows compared\n", pos, b->compared);
    CHECK(pos > 100);
    shut_down(b);
}

static board *new_board(void)
{
    board *b = calloc(1, sizeof(*b));

    assert_non_null(b);
    return b;
}

static void check_trained(const char *path, const muc_uthinker_options *options,
                          enum mur_sim_policy policy)
{
    board *b = new_board();

    fixture_load(&b->f, path, options);
    boot(b, options, policy, !options->recompute);
    check_board(b);
}

static void every_stage_has_the_golden_models_bits_in_two_terms(void **state)
{
    (void)state;
    check_trained("llama/stories260K.bin", &muc_uthinker_defaults, MUR_SIM_LAZY);
    check_trained("rescue", &muc_uthinker_defaults, MUR_SIM_LAZY);
}

static void every_stage_has_the_golden_models_bits_in_one_term(void **state)
{
    muc_uthinker_options options = muc_uthinker_defaults;

    (void)state;
    memset(&options.terms, 1, sizeof(options.terms));
    check_trained("llama/stories260K.bin", &options, MUR_SIM_RANDOM);
}

static void terms_are_a_choice_of_each_stage(void **state)
{
    muc_uthinker_options options = muc_uthinker_defaults;

    (void)state;
    options.terms = (muc_uthinker_terms){
        .x = 1, .k = 1, .p = 1, .f = 1, .l = 1, .q = 2, .v = 2, .o = 2, .h = 2
    };
    check_trained("llama/stories260K.bin", &options, MUR_SIM_EAGER);
    if (brief())
        return;
    options.terms = (muc_uthinker_terms){
        .x = 2, .k = 2, .p = 2, .f = 2, .l = 2, .q = 1, .v = 1, .o = 1, .h = 1
    };
    check_trained("llama/stories260K.bin", &options, MUR_SIM_EAGER);
}

/* the ablation computes keys anew for every chunk: the same logits */
static void recomputed_keys_give_the_same_bits(void **state)
{
    muc_uthinker_options options = muc_uthinker_defaults;

    (void)state;
    options.recompute = true;
    check_trained("llama/stories260K.bin", &options, MUR_SIM_RANDOM);
}

/* heads of one and of several slabs, groups of 1 to 6, nothing a multiple of a block or a tile */
static void shapes_with_tails_agree(void **state)
{
    static const struct {
        uint32_t dim, ffn, heads, kv_heads, head_dim, vocabulary;
        bool tied;
    } shapes[] = {
        { 72, 100, 4, 2, 80, 77, false },
        { 40, 52, 6, 1, 8, 131, true },
        { 97, 65, 2, 2, 136, 33, false },
        { 33, 200, 3, 1, 64, 9, true },
    };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(shapes); i++) {
        muc_model_config config = { .architecture = "random",
                                    .dim = shapes[i].dim,
                                    .ffn_dim = shapes[i].ffn,
                                    .layers = 2,
                                    .heads = shapes[i].heads,
                                    .kv_heads = shapes[i].kv_heads,
                                    .head_dim = shapes[i].head_dim,
                                    .vocabulary = shapes[i].vocabulary,
                                    .context = 150,
                                    .norm_epsilon = 1e-5,
                                    .rope_theta = 10000,
                                    .tied = shapes[i].tied };
        board *b = new_board();

        b->f.ctx = muc_context_new(2);
        random_checkpoint(b->f.ctx, "memory", &config, 0.1, &b->f.checkpoint);
        fixture_compile(&b->f, &muc_uthinker_defaults);
        boot(b, &muc_uthinker_defaults, MUR_SIM_RANDOM, true);
        check_board(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_stage_has_the_golden_models_bits_in_two_terms),
        cmocka_unit_test(every_stage_has_the_golden_models_bits_in_one_term),
        cmocka_unit_test(terms_are_a_choice_of_each_stage),
        cmocka_unit_test(recomputed_keys_give_the_same_bits),
        cmocka_unit_test(shapes_with_tails_agree),
    };

    return cmocka_run_group_tests_name("uthinker_golden", tests, NULL, NULL);
}

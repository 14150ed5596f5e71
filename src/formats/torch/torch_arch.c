/* torch_arch.c - builds a graph from a description's statements, one after the other. Channels come
 * first. */
#include "formats/torch/torch_arch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "import/free_name.h"
#include "import/recipe.h"

enum { MAX_STATEMENTS = 1 << 14, MAX_KEPT = 64, MAX_DEPTH = 8, MOST = 1 << 20, SPATIAL = 2 };

/* One use of a block, or the network itself. */
typedef struct scope {
    const char *prefix;              /* of weights: "layer1.0." */
    const muc_arch_line *head, *use; /* parameters and arguments from word 2 on; NULL */
    struct {
        const char *name;
        uint32_t id;
    } kept[MAX_KEPT];
    uint32_t kept_count;
} scope;

typedef struct builder {
    muc_context *ctx;
    muc_arena *arena;
    const muc_arch_text *text;
    muc_torch_state *state;
    muc_graph *graph;
    muc_arch_line line; /* at work, parameters replaced */
    scope *scope;
    uint32_t last;    /* what the last statement gave, or MUC_NO_ID */
    const char *name; /* of a recipe's node: of its weights, or the statement */
    uint64_t outputs; /* dimension 0 of the weights read last */
    uint32_t statements, depth;
} builder;

typedef struct row row;
typedef muc_status importer(builder *b, const row *r);
struct row {
    const char *name;
    uint32_t least, most;
    const char *keys;
    muc_op op;
    importer *import;
    const char *recipe; /* NULL: its importer is one of its own */
};

static muc_subject subject(const void *self)
{
    const builder *b = self;

    return muc_subject_of(b->ctx, b->text->file, MUC_NO_OFFSET, "line %u, '%.100s'", b->line.number,
                          b->line.words[0]);
}

#define refuse(b, status, ...) muc_fail_on(subject(b), status, __VA_ARGS__)

/* ---- words ---- */

/* a word that is not a KEY=VALUE; there are as many as the row asks for */
static const char *word(const builder *b, uint32_t i)
{
    return b->line.words[1 + i];
}

static const char *option(const builder *b, const char *key)
{
    size_t length = strlen(key);

    for (uint32_t i = 1; i < b->line.count; i++)
        if (strncmp(b->line.words[i], key, length) == 0 && b->line.words[i][length] == '=')
            return b->line.words[i] + length + 1;
    return NULL;
}

static muc_status integer(const builder *b, const char *text, int64_t least, const char **end,
                          int64_t *out)
{
    char *after;

    errno = 0;
    *out = strtoll(text, &after, 10);
    *end = after;
    return after != text && errno == 0 && *out >= least && *out <= MOST
               ? MUC_OK
               : refuse(b, MUC_MALFORMED, "'%.40s' is not a number from %" PRId64 " to %d", text,
                        least, MOST);
}

/* "N", or "NxM": of rows and of columns */
static muc_status pair_of(const builder *b, const char *text, int64_t least, int64_t *out)
{
    const char *end;

    MUC_TRY(integer(b, text, least, &end, &out[0]));
    out[1] = out[0];
    if (*end == 'x')
        MUC_TRY(integer(b, end + 1, least, &end, &out[1]));
    return *end ? refuse(b, MUC_MALFORMED, "'%.40s' is neither N nor NxM", text) : MUC_OK;
}

static muc_status option_pair(const builder *b, const char *key, int64_t least, int64_t fallback,
                              int64_t *out)
{
    const char *text = option(b, key);

    out[0] = out[1] = fallback;
    return text ? pair_of(b, text, least, out) : MUC_OK;
}

static muc_status real(const builder *b, const char *text, double fallback, double *out)
{
    char *end;

    *out = fallback;
    if (!text)
        return MUC_OK;
    *out = strtod(text, &end);
    return end != text && !*end && *out >= 0 && *out <= MOST
               ? MUC_OK
               : refuse(b, MUC_MALFORMED, "'%.40s' is not a number from 0 to %d", text, MOST);
}

/* ---- values and weights ---- */

static muc_status find_kept(const builder *b, const char *name, uint32_t *id)
{
    const scope *s = b->scope;

    if (strcmp(name, "last") == 0) {
        *id = b->last;
        return MUC_OK;
    }
    for (uint32_t i = s->kept_count; i-- > 0;)
        if (strcmp(s->kept[i].name, name) == 0) {
            *id = s->kept[i].id;
            return MUC_OK;
        }
    return refuse(b, MUC_MALFORMED, "nothing is kept as '%.100s' here", name);
}

static muc_status keep(builder *b, const char *name, uint32_t id)
{
    scope *s = b->scope;

    if (s->kept_count == MAX_KEPT)
        return refuse(b, MUC_UNSUPPORTED, "more than %d values are kept", MAX_KEPT);
    s->kept[s->kept_count].name = name;
    s->kept[s->kept_count++].id = id;
    return MUC_OK;
}

static uint32_t rank_of(const builder *b)
{
    return b->graph->tensors[b->last].rank;
}

static int64_t dim_of(const builder *b, uint32_t i)
{
    return muc_expr_get(b->graph->pool, b->graph->tensors[b->last].dims[i])->hi;
}

static muc_status need_pixels(const builder *b)
{
    return rank_of(b) == 2 + SPATIAL
               ? MUC_OK
               : refuse(b, MUC_MALFORMED,
                        "takes [1, channels, rows, columns], not %" PRIu32 " dimensions",
                        rank_of(b));
}

static muc_status add_constant(builder *b, const char *name, uint32_t rank, const uint64_t *dims,
                               const float *data, uint32_t *id)
{
    muc_tensor tensor = { .kind = MUC_TENSOR_CONST, .dtype = MUC_F32, .rank = rank };

    *id = muc_graph_find(b->graph, name);
    if (*id != MUC_NO_ID && b->graph->tensors[*id].kind == MUC_TENSOR_CONST)
        return MUC_OK; /* weights may be shared */
    tensor.name = name;
    tensor.bytes = sizeof(float);
    for (uint32_t i = 0; i < rank; i++) {
        tensor.dims[i] = muc_expr_const(b->graph->pool, (uint32_t)dims[i]);
        tensor.bytes *= dims[i];
    }
    MUC_TRY(muc_expr_status(b->graph->pool));
    tensor.data = (const uint8_t *)data;
    return muc_graph_add_tensor(b->ctx, b->graph, &tensor, id);
}

/* weight PREFIX + WORD + suffix of the rank and, where they are not 0, the dims; without it *id is
 * MUC_NO_ID if it is optional. *out may be NULL. */
static muc_status weight(builder *b, const char *suffix, bool optional, uint32_t rank,
                         const uint64_t *dims, uint32_t *id, const muc_torch_weight **out)
{
    muc_torch_weight *w;
    const char *name;

    MUC_TRY(
        muc_arena_format(b->ctx, b->arena, &name, "%s%s.%s", b->scope->prefix, word(b, 0), suffix));
    *id = MUC_NO_ID;
    w = muc_torch_find(b->state, name);
    if (!w && optional)
        return MUC_OK;
    if (!w || !w->data)
        return refuse(b, MUC_MALFORMED, "'%.200s' has no weights '%.200s'", b->state->bytes.name,
                      name);
    if (w->rank != rank)
        return refuse(b, MUC_MALFORMED, "'%.200s' has %" PRIu32 " dimensions, expected %" PRIu32,
                      name, w->rank, rank);
    for (uint32_t i = 0; i < rank; i++)
        if (w->dims[i] == 0 || w->dims[i] > UINT32_MAX || (dims[i] != 0 && w->dims[i] != dims[i]))
            return refuse(b, MUC_MALFORMED,
                          "dimension %" PRIu32 " of '%.200s' is %" PRIu64 ", expected %" PRIu64, i,
                          name, w->dims[i], dims[i]);
    w->used = true;
    if (out)
        *out = w;
    return add_constant(b, name, rank, w->dims, w->data, id);
}

/* ---- nodes ---- */

/* name: "layer1.0.conv1", or the statement where it has no weights; the last value from now on */
static muc_status add(builder *b, muc_op op, const char *name, const uint32_t *inputs,
                      uint32_t count, const muc_attributes *a)
{
    const char *wanted, *full;

    MUC_TRY(muc_arena_format(b->ctx, b->arena, &wanted, "%s%s", b->scope->prefix, name));
    MUC_TRY(muc_free_name(b->ctx, b->graph, b->arena, wanted, '#', &full));
    return muc_graph_add_node(b->ctx, b->graph, op, full, inputs, count, a ? a->items : NULL,
                              a ? a->count : 0, &b->last);
}

/* one slope, or one per channel: [channels, 1, 1] */
static muc_status import_prelu(builder *b, const row *r)
{
    uint64_t any = 0, dims[1 + SPATIAL] = { 0, 1, 1 };
    uint32_t inputs[2] = { b->last }, stored;
    const muc_torch_weight *slope;
    const char *name;

    MUC_TRY(need_pixels(b));
    MUC_TRY(weight(b, "weight", false, 1, &any, &stored, &slope));
    dims[0] = slope->dims[0];
    MUC_TRY(muc_arena_format(b->ctx, b->arena, &name, "%s/slope", slope->name));
    MUC_TRY(add_constant(b, name, 1 + SPATIAL, dims, slope->data, &inputs[1]));
    return add(b, r->op, word(b, 0), inputs, 2, NULL);
}

/* ---- recipes ---- */

/* "0" is the first word, "stride,0" the option or without it the first word; pads are given twice,
 * for both sides */
static muc_status attribute(void *self, const char *name, muc_value_type wanted, muc_value *out)
{
    enum { MOST_CHARS = 16 };
    const builder *b = self;
    size_t length = strcspn(name, ",");
    char key[MOST_CHARS] = { 0 };
    const char *text;
    int64_t *pair;

    memcpy(key, name, length < MOST_CHARS ? length : MOST_CHARS - 1);
    text = key[0] != '0' ? option(b, key) : b->line.count > 1 ? word(b, 0) : NULL;
    if (!text && name[length])
        return attribute(self, name + length + 1, wanted, out);
    *out = (muc_value){ .type = text ? wanted : MUC_VALUE_ABSENT };
    if (!text)
        return MUC_OK;
    if (wanted == MUC_VALUE_REAL)
        return real(b, text, 0, &out->real);
    MUC_TRY(MUC_ARENA_NEW(b->ctx, b->arena, 2 * SPATIAL, &pair));
    MUC_TRY(pair_of(b, text, strcmp(key, "pad") != 0, pair));
    memcpy(pair + SPATIAL, pair, SPATIAL * sizeof(*pair));
    out->integer = pair[0];
    out->items = pair;
    out->count = strcmp(key, "pad") == 0 ? 2 * SPATIAL : SPATIAL;
    return MUC_OK;
}

/* the last value, then what words name */
static muc_status input(void *self, uint32_t i, uint32_t *id)
{
    const builder *b = self;

    *id = b->last;
    return i > 0 ? find_kept(b, word(b, i - 1), id) : MUC_OK;
}

static muc_status constant(void *self, const char *name, muc_dtype dtype, const double *values,
                           uint32_t count, uint32_t *id)
{
    builder *b = self;
    const char *full;
    float *data;

    (void)dtype; /* there are but scalars of f32 */
    (void)count;
    MUC_TRY(MUC_ARENA_NEW(b->ctx, b->arena, 1, &data));
    *data = (float)*values;
    MUC_TRY(muc_arena_format(b->ctx, b->arena, &full, "%s/%s", b->line.words[0], name));
    return add_constant(b, full, 0, NULL, data, id);
}

static muc_status last(void *self, muc_op op, const uint32_t *inputs, uint32_t count,
                       muc_attributes *a)
{
    builder *b = self;

    return add(b, op, b->name, inputs, count, a);
}

/* what a letter says of a dimension of weights; 0: it may be anything */
static uint64_t size_of(const builder *b, char letter)
{
    return letter == 'c'   ? rank_of(b) > 1 ? (uint64_t)dim_of(b, 1) : 0
           : letter == 'l' ? (uint64_t)dim_of(b, rank_of(b) - 1)
           : letter == 'o' ? b->outputs
                           : 0;
}

/* "pixels", or weights and their dimensions, "weight:*l", "bias?:o": see torch_arch.def */
static muc_status take_word(void *self, const char *text, uint32_t *id)
{
    builder *b = self;
    const char *letters = strchr(text, ':'), *name;
    const muc_torch_weight *found = NULL;
    uint64_t dims[2 + SPATIAL];
    uint32_t rank = 0;

    if (strcmp(text, "pixels") == 0)
        return need_pixels(b);
    if (!letters || strlen(letters + 1) > MUC_COUNT(dims))
        return refuse(b, MUC_BUG, "no word of recipes: '%s'", text);
    for (; letters[1 + rank]; rank++)
        dims[rank] = size_of(b, letters[1 + rank]);
    MUC_TRY(muc_arena_string(b->ctx, b->arena, text, strcspn(text, "?:"), &name));
    MUC_TRY(weight(b, name, letters[-1] == '?', rank, dims, id, &found));
    if (found)
        b->outputs = found->dims[0];
    b->name = word(b, 0);
    return MUC_OK;
}

static muc_file_node node_of(builder *b, const row *r)
{
    static const muc_file_node_functions functions = { .subject = subject,
                                                       .attribute = attribute,
                                                       .input = input,
                                                       .constant = constant,
                                                       .last = last,
                                                       .word = take_word };

    b->name = b->line.words[0];
    return (muc_file_node){ .functions = &functions,
                            .self = b,
                            .ctx = b->ctx,
                            .graph = b->graph,
                            .arena = b->arena,
                            .input_count = b->line.count,
                            .op = r->op };
}

static muc_status import_recipe(builder *b, const row *r)
{
    return muc_import_format(node_of(b, r), "%s", r->recipe);
}

/* every Nth row and column from the first */
static muc_status import_subsample(builder *b, const row *r)
{
    int64_t steps[SPATIAL], sizes[SPATIAL];

    MUC_TRY(need_pixels(b));
    MUC_TRY(pair_of(b, word(b, 0), 1, steps));
    for (uint32_t i = 0; i < SPATIAL; i++)
        sizes[i] = (dim_of(b, 2 + i) + steps[i] - 1) / steps[i];
    return muc_import_format(node_of(b, r), ". 0 axes=2,3 sizes=%s steps=@0 starts=0,0",
                             MUC_LIST(sizes, SPATIAL));
}

static muc_status import_upsample(builder *b, const row *r)
{
    const char *mode = option(b, "mode");
    bool linear = mode && strcmp(mode, "bilinear") == 0;
    int64_t sizes[SPATIAL];

    MUC_TRY(need_pixels(b));
    MUC_TRY(pair_of(b, word(b, 0), 1, sizes));
    if (mode && !linear && strcmp(mode, "nearest") != 0)
        return refuse(b, MUC_UNSUPPORTED, "mode '%.40s', expected nearest or bilinear", mode);
    for (uint32_t i = 0; i < SPATIAL; i++) {
        sizes[i] *= dim_of(b, 2 + i);
        if (sizes[i] > MOST)
            return refuse(b, MUC_UNSUPPORTED, "more than %d rows or columns", MOST);
    }
    return muc_import_format(
        node_of(b, r), ". 0 sizes=in0.0,in0.1,%s mode=%s", MUC_LIST(sizes, SPATIAL),
        linear ? "linear coordinates=half_pixel" : "nearest coordinates=asymmetric rounding=floor");
}

/* zeros on all sides */
static muc_status import_pad(builder *b, const row *r)
{
    int64_t pixels[SPATIAL], channels[SPATIAL];

    MUC_TRY(need_pixels(b));
    MUC_TRY(option_pair(b, "pixels", 0, 0, pixels));
    MUC_TRY(option_pair(b, "channels", 0, 0, channels));
    return muc_import_format(node_of(b, r), ". 0 pads=0,%d,%s,0,%d,%s", (int)channels[0],
                             MUC_LIST(pixels, SPATIAL), (int)channels[1],
                             MUC_LIST(pixels, SPATIAL));
}

/* ---- statements ---- */

static const row rows[] = {
#define ARCH_OP(name, least, most, keys, op, import) \
    { #name, least, most, keys, MUC_OP_##op, import_##import, NULL },
#define ARCH_RECIPE(name, least, most, keys, op, recipe) \
    { #name, least, most, keys, MUC_OP_##op, import_recipe, recipe },
#include "formats/torch/torch_arch.def"
#undef ARCH_OP
};

/* "input NAME CHANNELS ROWS COLUMNS", or fewer dimensions; the batch is 1 */
static muc_status add_input(builder *b)
{
    muc_tensor tensor = { .kind = MUC_TENSOR_INPUT, .dtype = MUC_F32 };
    const char *end;
    int64_t size;

    if (b->last != MUC_NO_ID || b->depth > 1)
        return refuse(b, MUC_MALFORMED, "comes first, once, outside of blocks");
    if (b->line.count < 3 || b->line.count > 2 + MUC_GRAPH_MAX_RANK - 1)
        return refuse(b, MUC_MALFORMED, "expected a name and 1 to 7 dimensions");
    tensor.name = word(b, 0);
    tensor.dims[tensor.rank++] = muc_expr_const(b->graph->pool, 1);
    for (uint32_t i = 2; i < b->line.count; i++) {
        MUC_TRY(integer(b, b->line.words[i], 1, &end, &size));
        if (*end)
            return refuse(b, MUC_MALFORMED, "'%.40s' is not a number", b->line.words[i]);
        tensor.dims[tensor.rank++] = muc_expr_const(b->graph->pool, (uint32_t)size);
    }
    MUC_TRY(muc_expr_status(b->graph->pool));
    MUC_TRY(muc_graph_add_tensor(b->ctx, b->graph, &tensor, &b->last));
    return keep(b, word(b, 0), b->last);
}

static bool takes(const row *r, const char *option)
{
    size_t length = strcspn(option, "=");

    for (const char *key = r->keys; *key; key += strspn(key, " ")) {
        size_t size = strcspn(key, " ");

        if (size == length && memcmp(key, option, length) == 0)
            return true;
        key += size;
    }
    return false;
}

/* words first, then options that the row knows */
static muc_status check_words(const builder *b, const row *r)
{
    uint32_t words = 0;

    for (uint32_t i = 1; i < b->line.count; i++) {
        bool is_option = strchr(b->line.words[i], '=') != NULL;

        if (is_option ? !takes(r, b->line.words[i]) : i != words + 1)
            return refuse(b, MUC_MALFORMED, "'%.100s' is not expected here", b->line.words[i]);
        words += !is_option;
    }
    if (words < r->least || words > r->most)
        return refuse(b, MUC_MALFORMED, "%" PRIu32 " words, expected %" PRIu32 " to %" PRIu32,
                      words, r->least, r->most);
    return MUC_OK;
}

/* "$NAME" in a word becomes the argument of that name */
static muc_status replace(builder *b, const char *text, const char **out)
{
    const char *dollar = strchr(text, '$');
    const scope *s = b->scope;

    *out = text;
    if (!dollar)
        return MUC_OK;
    for (uint32_t i = 2; s->head && i < s->head->count; i++)
        if (strcmp(s->head->words[i], dollar + 1) == 0)
            return muc_arena_format(b->ctx, b->arena, out, "%.*s%s", (int)(dollar - text), text,
                                    s->use->words[i]);
    return refuse(b, MUC_MALFORMED, "'%.100s' is not a parameter of this block", dollar);
}

static muc_status run_lines(builder *b, uint32_t first, uint32_t end);

/* "NAME PREFIX ARGUMENT..": the block's lines, with weights below the prefix ("." is none); "in" is
 * what came before */
static muc_status use_block(builder *b, const muc_arch_block *block)
{
    const muc_arch_line use = b->line;
    scope *outer = b->scope;
    muc_status status;
    scope *inner;

    if (use.count != block->head->count)
        return refuse(b, MUC_MALFORMED,
                      "%" PRIu32 " words, expected a prefix and %" PRIu32 " arguments",
                      use.count - 1, block->head->count - 2);
    if (b->depth == MAX_DEPTH)
        return refuse(b, MUC_UNSUPPORTED, "blocks are used more than %d deep", MAX_DEPTH);
    MUC_TRY(MUC_ARENA_NEW(b->ctx, b->arena, 1, &inner));
    inner->head = block->head;
    inner->use = &use;
    inner->prefix = outer->prefix;
    if (strcmp(use.words[1], ".") != 0)
        MUC_TRY(muc_arena_format(b->ctx, b->arena, &inner->prefix, "%s%s.", outer->prefix,
                                 use.words[1]));
    b->scope = inner;
    status = keep(b, "in", b->last);
    if (status == MUC_OK)
        status = run_lines(b, block->first, block->end);
    b->scope = outer;
    return status;
}

static muc_status run_statement(builder *b)
{
    const char *name = b->line.words[0];

    if (strcmp(name, "input") == 0)
        return add_input(b);
    if (b->last == MUC_NO_ID)
        return refuse(b, MUC_MALFORMED, "comes before any 'input NAME DIMENSION..'");
    if (strcmp(name, "keep") == 0 || strcmp(name, "use") == 0) {
        if (b->line.count != 2)
            return refuse(b, MUC_MALFORMED, "expected one name");
        return name[0] == 'k' ? keep(b, word(b, 0), b->last) : find_kept(b, word(b, 0), &b->last);
    }
    for (size_t i = 0; i < MUC_COUNT(rows); i++) {
        if (strcmp(rows[i].name, name) != 0)
            continue;
        MUC_TRY(check_words(b, &rows[i]));
        return rows[i].import(b, &rows[i]);
    }
    for (uint32_t i = 0; i < b->text->block_count; i++)
        if (strcmp(b->text->blocks[i].head->words[1], name) == 0)
            return use_block(b, &b->text->blocks[i]);
    return refuse(b, MUC_UNSUPPORTED, "neither a statement nor a block");
}

static muc_status run_lines(builder *b, uint32_t first, uint32_t end)
{
    b->depth++;
    for (uint32_t i = first; i < end; i++) {
        const muc_arch_line *line = &b->text->lines[i];

        b->line = *line;
        if (++b->statements > MAX_STATEMENTS)
            return refuse(b, MUC_UNSUPPORTED, "more than %d statements", MAX_STATEMENTS);
        for (uint32_t w = 0; w < line->count; w++)
            MUC_TRY(replace(b, line->words[w], &b->line.words[w]));
        MUC_TRY(run_statement(b));
    }
    b->depth--;
    return MUC_OK;
}

muc_status muc_arch_build(const muc_arch_text *text, muc_torch_state *state, muc_graph *graph)
{
    builder b = { .ctx = state->ctx,
                  .arena = state->arena,
                  .text = text,
                  .state = state,
                  .graph = graph,
                  .last = MUC_NO_ID };
    uint32_t from = 0;

    MUC_TRY(MUC_ARENA_NEW(b.ctx, b.arena, 1, &b.scope));
    b.scope->prefix = "";
    for (uint32_t i = 0; i < text->block_count; i++) { /* the lines between blocks */
        MUC_TRY(run_lines(&b, from, text->blocks[i].first - 1));
        from = text->blocks[i].end + 1;
    }
    MUC_TRY(run_lines(&b, from, text->line_count));
    if (b.last == MUC_NO_ID)
        return muc_fail(b.ctx, MUC_MALFORMED, text->file, MUC_NO_OFFSET,
                        "the description has no statement");
    MUC_TRY(muc_torch_check_used(state));
    return muc_graph_add_output(b.ctx, graph, b.last);
}

/* import_einsum.c - Einsum as transposes, sums and products of matrices.
 *
 * Operands are taken from the left, two at a time. Letters that nothing behind them needs are
 * summed away; of the others those of both operands are a stack (needed later) or the dimension
 * along which a product sums, those of one are rows or columns:
 *
 *   [stack, rows, summed] x [stack, summed, columns] = [stack, rows, columns]
 */
#include <string.h>

#include "formats/onnx/onnx_operators.h"

enum { MAX_OPERANDS = 16 };

/* A tensor whose dimensions have letters. */
typedef struct term {
    uint32_t tensor;
    uint32_t rank;
    char letters[MUC_GRAPH_MAX_RANK];
    muc_expr dims[MUC_GRAPH_MAX_RANK];
} term;

typedef struct equation {
    onnx_call *call;
    const char *text;
    uint32_t count;
    term operands[MAX_OPERANDS];
    term result; /* letters alone */
} equation;

static bool has(const term *t, char letter)
{
    return memchr(t->letters, letter, t->rank) != NULL;
}

/* ---- reading ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* the letters up to the next ',' or "->" */
static muc_status read_letters(equation *e, const char **at, term *out)
{
    for (; **at && **at != ',' && strncmp(*at, "->", 2) != 0; (*at)++) {
        if (**at == ' ')
            continue;
        if (!is_letter(**at) || out->rank == MUC_GRAPH_MAX_RANK || has(out, **at))
            return onnx_fail(e->call, MUC_UNSUPPORTED,
                             "equation '%s': expected letters, at most %d a tensor and none twice",
                             e->text, MUC_GRAPH_MAX_RANK);
        out->letters[out->rank++] = **at;
    }
    return MUC_OK;
}

/* without "->": letters that are there once, by the alphabet */
static muc_status implied_result(equation *e)
{
    for (char c = 'A'; c <= 'z'; c++) {
        uint32_t times = 0;

        for (uint32_t i = 0; i < e->count; i++)
            times += has(&e->operands[i], c);
        if (times == 1 && e->result.rank == MUC_GRAPH_MAX_RANK)
            return onnx_fail(e->call, MUC_UNSUPPORTED,
                             "equation '%s': a result of over %d dimensions", e->text,
                             MUC_GRAPH_MAX_RANK);
        if (times == 1)
            e->result.letters[e->result.rank++] = c;
    }
    return MUC_OK;
}

static muc_status read_equation(equation *e)
{
    const char *at = e->text;

    do {
        at += e->count > 0; /* the comma */
        if (e->count == MAX_OPERANDS)
            return onnx_fail(e->call, MUC_UNSUPPORTED, "over %d operands", MAX_OPERANDS);
        MUC_TRY(read_letters(e, &at, &e->operands[e->count++]));
    } while (*at == ',');
    if (*at == '\0')
        return implied_result(e);
    at += strlen("->");
    MUC_TRY(read_letters(e, &at, &e->result));
    if (*at)
        return onnx_fail(e->call, MUC_MALFORMED, "equation '%s' goes on after its result", e->text);
    for (uint32_t i = 0; i < e->result.rank; i++) {
        bool found = false;

        for (uint32_t k = 0; k < e->count; k++)
            found = found || has(&e->operands[k], e->result.letters[i]);
        if (!found)
            return onnx_fail(e->call, MUC_MALFORMED, "equation '%s': no operand has '%c'", e->text,
                             e->result.letters[i]);
    }
    return MUC_OK;
}

static muc_status take_operands(equation *e)
{
    onnx_call *call = e->call;

    if (onnx_input_count(call) != e->count)
        return onnx_fail(call, MUC_MALFORMED, "equation '%s' has %u operands, the node %u inputs",
                         e->text, e->count, onnx_input_count(call));
    for (uint32_t i = 0; i < e->count; i++) {
        term *t = &e->operands[i];
        onnx_shape shape;

        MUC_TRY(onnx_input(call, i, &t->tensor));
        shape = onnx_shape_of(call, t->tensor);
        if (shape.rank != t->rank)
            return onnx_fail(call, MUC_MALFORMED,
                             "equation '%s': operand %u has %u letters and %u dimensions", e->text,
                             i, t->rank, shape.rank);
        memcpy(t->dims, shape.dims, sizeof(t->dims));
    }
    return MUC_OK;
}

/* ---- steps ---- */

/* the result, or an operand from `first` on, has the letter */
static bool needed(const equation *e, uint32_t first, char letter)
{
    for (uint32_t i = first; i < e->count; i++)
        if (has(&e->operands[i], letter))
            return true;
    return has(&e->result, letter);
}

/* sums over letters that neither `other`, which may be NULL, nor anything from `first` on has */
static muc_status sum_away(equation *e, term *t, const term *other, uint32_t first)
{
    int64_t axes[MUC_GRAPH_MAX_RANK];
    uint32_t count = 0, kept = 0;

    for (uint32_t i = 0; i < t->rank; i++) {
        if (!needed(e, first, t->letters[i]) && !(other && has(other, t->letters[i]))) {
            axes[count++] = i;
            continue;
        }
        t->letters[kept] = t->letters[i];
        t->dims[kept++] = t->dims[i];
    }
    if (count == 0)
        return MUC_OK;
    t->rank = kept;
    return onnx_make(e->call, &t->tensor, 1, &t->tensor, "reduce_sum 0 axes=%s keep_dims=0",
                     MUC_LIST(axes, count));
}

/* the dimensions in the order of these letters, which are t's */
static muc_status arrange(equation *e, term *t, const char *letters)
{
    int64_t perm[MUC_GRAPH_MAX_RANK];
    bool same = true;
    term from = *t;

    for (uint32_t i = 0; i < t->rank; i++) {
        const char *at = memchr(from.letters, letters[i], from.rank);

        perm[i] = at - from.letters;
        t->letters[i] = letters[i];
        t->dims[i] = from.dims[perm[i]];
        same = same && perm[i] == i;
    }
    if (same)
        return MUC_OK;
    return onnx_make(e->call, &t->tensor, 1, &t->tensor, "transpose 0 perm=%s",
                     MUC_LIST(perm, t->rank));
}

static muc_status reshape(equation *e, uint32_t *tensor, const muc_expr *dims, uint32_t rank)
{
    onnx_shape from = onnx_shape_of(e->call, *tensor);
    muc_attributes a = { .count = 0 };

    if (from.rank == rank && memcmp(from.dims, dims, rank * sizeof(*dims)) == 0)
        return MUC_OK;
    muc_attributes_set_exprs(&a, MUC_KEY_SHAPE, dims, rank);
    return onnx_step(e->call, MUC_OP_RESHAPE, tensor, 1, &a, tensor);
}

/* Letters of two terms in groups. */
enum { STACK, ROWS, SUMMED, COLUMNS, GROUPS };
typedef struct groups {
    char letters[GROUPS][MUC_GRAPH_MAX_RANK];
    muc_expr dims[GROUPS][MUC_GRAPH_MAX_RANK];
    muc_expr product[GROUPS];
    uint32_t count[GROUPS];
} groups;

static muc_status group(equation *e, const term *x, const term *y, uint32_t next, groups *g)
{
    muc_expr_pool *pool = e->call->im->graph->pool;

    memset(g, 0, sizeof(*g));
    for (int i = 0; i < GROUPS; i++)
        g->product[i] = muc_expr_const(pool, 1);
    for (uint32_t i = 0; i < x->rank + y->rank; i++) {
        const term *t = i < x->rank ? x : y, *other = i < x->rank ? y : x;
        uint32_t d = i < x->rank ? i : i - x->rank;
        bool both = has(other, t->letters[d]);
        int to = both ? needed(e, next, t->letters[d]) ? STACK : SUMMED : t == x ? ROWS : COLUMNS;

        if (both && t == y)
            continue; /* was counted as x's */
        g->letters[to][g->count[to]] = t->letters[d];
        g->dims[to][g->count[to]++] = t->dims[d];
        g->product[to] = muc_expr_mul(pool, g->product[to], t->dims[d]);
    }
    if (g->count[STACK] + 2 > MUC_GRAPH_MAX_RANK ||
        g->count[STACK] + g->count[ROWS] + g->count[COLUMNS] > MUC_GRAPH_MAX_RANK)
        return onnx_fail(e->call, MUC_UNSUPPORTED, "equation '%s': over %d dimensions on the way",
                         e->text, MUC_GRAPH_MAX_RANK);
    return muc_expr_status(pool);
}

/* t as a stack of matrices whose rows and columns are two groups */
static muc_status as_matrices(equation *e, term *t, const groups *g, int rows, int columns)
{
    const int order[] = { STACK, rows, columns };
    char letters[3 * MUC_GRAPH_MAX_RANK];
    muc_expr dims[MUC_GRAPH_MAX_RANK];
    uint32_t rank = 0;

    for (int i = 0; i < 3; i++) {
        memcpy(letters + rank, g->letters[order[i]], g->count[order[i]]);
        rank += g->count[order[i]];
    }
    MUC_TRY(arrange(e, t, letters));
    memcpy(dims, g->dims[STACK], sizeof(dims));
    dims[g->count[STACK]] = g->product[rows];
    dims[g->count[STACK] + 1] = g->product[columns];
    return reshape(e, &t->tensor, dims, g->count[STACK] + 2);
}

/* *x = x * y; `next` is the first operand that comes later */
static muc_status multiply(equation *e, term *x, term *y, uint32_t next)
{
    static const int order[] = { STACK, ROWS, COLUMNS };
    groups g;

    MUC_TRY(sum_away(e, x, y, next));
    MUC_TRY(sum_away(e, y, x, next));
    MUC_TRY(group(e, x, y, next, &g));
    MUC_TRY(as_matrices(e, x, &g, ROWS, SUMMED));
    MUC_TRY(as_matrices(e, y, &g, SUMMED, COLUMNS));
    MUC_TRY(onnx_step2(e->call, MUC_OP_MATMUL, x->tensor, y->tensor, &x->tensor));
    x->rank = 0;
    for (int i = 0; i < 3; i++)
        for (uint32_t k = 0; k < g.count[order[i]]; k++) {
            x->letters[x->rank] = g.letters[order[i]][k];
            x->dims[x->rank++] = g.dims[order[i]][k];
        }
    return reshape(e, &x->tensor, x->dims, x->rank);
}

muc_status onnx_import_einsum(onnx_call *call)
{
    equation *e;
    term *x;

    MUC_TRY(MUC_ARENA_NEW(call->im->ctx, &call->im->arena, 1, &e));
    e->call = call;
    MUC_TRY(onnx_string(call, "equation", "", &e->text));
    MUC_TRY(read_equation(e));
    MUC_TRY(take_operands(e));
    x = &e->operands[0];
    for (uint32_t i = 1; i < e->count; i++)
        MUC_TRY(multiply(e, x, &e->operands[i], i + 1));
    MUC_TRY(sum_away(e, x, NULL, e->count));
    MUC_TRY(arrange(e, x, e->result.letters));
    return onnx_emit(call, MUC_OP_IDENTITY, &x->tensor, 1, NULL, 1);
}

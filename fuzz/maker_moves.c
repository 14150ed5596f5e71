/* maker_moves.c - writers of operators that move elements, with and without indices. */
#include <string.h>

#include "maker.h"

static muc_expr *dims_of(fuzz_maker *m, uint32_t x, muc_expr dims[MUC_GRAPH_MAX_RANK])
{
    const muc_tensor *t = fuzz_tensor(m, x);

    memcpy(dims, t->dims, t->rank * sizeof(*dims));
    return dims;
}

/* splits a dimension, joins two, puts a 1 somewhere, or flattens */
void fuzz_write_reshape(fuzz_maker *m, muc_op op, uint32_t x)
{
    muc_expr dims[MUC_GRAPH_MAX_RANK + 1];
    uint32_t rank = fuzz_tensor(m, x)->rank, kind = fuzz_pick(m, 4);
    uint32_t at = rank ? fuzz_pick(m, rank) : 0, size = rank ? fuzz_dim(m, x, at) : 0;

    dims_of(m, x, dims);
    if (kind == 0 && rank && rank < 5 && size > 1) {
        uint32_t part = size % 2 ? size : 2;

        memmove(dims + at + 1, dims + at, (rank - at) * sizeof(*dims));
        dims[at] = fuzz_number(m, part);
        dims[at + 1] = fuzz_number(m, size / part);
        rank++;
    } else if (kind == 1 && at + 1 < rank) {
        dims[at] = muc_expr_mul(m->graph->pool, dims[at], dims[at + 1]);
        memmove(dims + at + 1, dims + at + 2, (rank - at - 2) * sizeof(*dims));
        rank--;
    } else if (kind == 2 && rank < 5) {
        memmove(dims + at + 1, dims + at, (rank - at) * sizeof(*dims));
        dims[at] = fuzz_number(m, 1);
        rank++;
    } else {
        for (uint32_t i = 1; i < rank; i++)
            dims[0] = muc_expr_mul(m->graph->pool, dims[0], dims[i]);
        rank = rank ? 1 : 0;
    }
    fuzz_set_exprs(m, MUC_KEY_SHAPE, dims, rank);
    fuzz_add(m, op, &x, 1, 1, m->ranges[x]);
}

void fuzz_write_transpose(fuzz_maker *m, muc_op op, uint32_t x)
{
    uint32_t rank = fuzz_tensor(m, x)->rank;
    int64_t perm[MUC_GRAPH_MAX_RANK];

    for (uint32_t i = 0; i < rank; i++)
        perm[i] = i;
    for (uint32_t i = rank; i > 1; i--) {
        uint32_t k = fuzz_pick(m, i);
        int64_t swap = perm[i - 1];

        perm[i - 1] = perm[k];
        perm[k] = swap;
    }
    fuzz_set_integers(m, MUC_KEY_PERM, perm, rank);
    fuzz_add(m, op, &x, 1, 1, m->ranges[x]);
}

/* a live value that differs from x in dimension axis at most, or x again */
static uint32_t neighbour(fuzz_maker *m, uint32_t x, uint32_t axis)
{
    const muc_tensor *t = fuzz_tensor(m, x);
    uint32_t first = fuzz_pick(m, m->live_count);

    for (uint32_t i = 0; i < m->live_count; i++) {
        uint32_t id = m->live[(first + i) % m->live_count];
        const muc_tensor *other = fuzz_tensor(m, id);
        bool fits = other->rank == t->rank && other->dtype == t->dtype &&
                    !other->quantization == !t->quantization;

        for (uint32_t d = 0; fits && d < t->rank; d++)
            fits = d == axis || other->dims[d] == t->dims[d];
        if (fits && t->quantization) /* what a concat gives has one scale */
            fits = other->quantization->scales[0] == t->quantization->scales[0] &&
                   other->quantization->zero_points[0] == t->quantization->zero_points[0];
        if (fits)
            return id;
    }
    return x;
}

void fuzz_write_concat(fuzz_maker *m, muc_op op, uint32_t x)
{
    uint32_t rank = fuzz_tensor(m, x)->rank, inputs[4], count = fuzz_between(m, 2, 4), axis;

    if (rank == 0)
        return;
    axis = fuzz_pick(m, rank);
    inputs[0] = x;
    for (uint32_t i = 1; i < count; i++)
        inputs[i] = neighbour(m, x, axis);
    fuzz_set_integer(m, MUC_KEY_AXIS, axis);
    fuzz_add(m, op, inputs, count, 1, m->ranges[x]);
}

void fuzz_write_slice(fuzz_maker *m, muc_op op, uint32_t x)
{
    muc_expr starts[MUC_GRAPH_MAX_RANK], sizes[MUC_GRAPH_MAX_RANK];
    int64_t axes[MUC_GRAPH_MAX_RANK], steps[MUC_GRAPH_MAX_RANK];
    uint32_t count = 0, rank = fuzz_tensor(m, x)->rank;

    for (uint32_t i = 0; i < rank; i++) {
        uint32_t dim = fuzz_dim(m, x, i), size, step, start;

        if (dim == 0 || fuzz_one_in(m, 2))
            continue;
        step = fuzz_one_in(m, 3) ? 2 : 1;
        size = fuzz_between(m, 1, (dim - 1) / step + 1);
        start = fuzz_pick(m, dim - (size - 1) * step);
        axes[count] = i;
        steps[count] = step;
        if (fuzz_one_in(m, 5)) {
            start += (size - 1) * step;
            steps[count] = -(int64_t)step;
        }
        starts[count] = fuzz_number(m, start);
        sizes[count++] = fuzz_number(m, size);
    }
    if (count == 0)
        return;
    fuzz_set_integers(m, MUC_KEY_AXES, axes, count);
    fuzz_set_exprs(m, MUC_KEY_STARTS, starts, count);
    fuzz_set_exprs(m, MUC_KEY_SIZES, sizes, count);
    fuzz_set_integers(m, MUC_KEY_STEPS, steps, count);
    fuzz_add(m, op, &x, 1, 1, m->ranges[x]);
}

void fuzz_write_split(fuzz_maker *m, muc_op op, uint32_t x)
{
    uint32_t rank = fuzz_tensor(m, x)->rank, axis, left, count = 0;
    muc_expr sizes[8];

    if (rank == 0)
        return;
    axis = fuzz_pick(m, rank);
    left = fuzz_dim(m, x, axis);
    if (left < 2)
        return;
    while (left && count < 3) {
        uint32_t size = count == 2 ? left : fuzz_between(m, 1, left);

        sizes[count++] = fuzz_number(m, size);
        left -= size;
    }
    fuzz_set_integer(m, MUC_KEY_AXIS, axis);
    fuzz_set_exprs(m, MUC_KEY_SIZES, sizes, count);
    fuzz_add(m, op, &x, 1, count, m->ranges[x]);
}

void fuzz_write_pad(fuzz_maker *m, muc_op op, uint32_t x)
{
    static const muc_word modes[] = { MUC_WORD_CONSTANT, MUC_WORD_CONSTANT, MUC_WORD_EDGE,
                                      MUC_WORD_REFLECT, MUC_WORD_WRAP };
    const muc_tensor *t = fuzz_tensor(m, x);
    muc_word mode = modes[fuzz_pick(m, MUC_COUNT(modes))];
    uint32_t inputs[2] = { x, MUC_NO_ID };
    int64_t pads[2 * MUC_GRAPH_MAX_RANK];

    for (uint32_t i = 0; i < 2 * t->rank; i++) {
        uint32_t dim = fuzz_dim(m, x, i % t->rank);

        pads[i] = dim == 0 || fuzz_one_in(m, 2) ? 0 : fuzz_pick(m, dim < 3 ? dim : 3);
        if (mode == MUC_WORD_CONSTANT && dim > 2 && fuzz_one_in(m, 8))
            pads[i] = -1;
    }
    if (mode == MUC_WORD_CONSTANT && fuzz_one_in(m, 2) && !t->quantization)
        inputs[1] = fuzz_operand(m, &FUZZ_SCALAR(t->dtype), 0, 1, NULL);
    fuzz_set_integers(m, MUC_KEY_PADS, pads, 2 * t->rank);
    fuzz_set_integer(m, MUC_KEY_MODE, mode);
    fuzz_add(m, op, inputs, 2, 1, m->ranges[x]);
}

void fuzz_write_expand(fuzz_maker *m, muc_op op, uint32_t x)
{
    muc_expr dims[MUC_GRAPH_MAX_RANK + 1];
    uint32_t rank = fuzz_tensor(m, x)->rank;

    dims_of(m, x, dims);
    for (uint32_t i = 0; i < rank; i++)
        if (fuzz_dim(m, x, i) == 1)
            dims[i] = fuzz_number(m, fuzz_between(m, 1, 4));
    if (rank < 4 && fuzz_one_in(m, 2)) {
        memmove(dims + 1, dims, rank++ * sizeof(*dims));
        dims[0] = fuzz_number(m, fuzz_between(m, 1, 3));
    }
    fuzz_set_exprs(m, MUC_KEY_SHAPE, dims, rank);
    fuzz_add(m, op, &x, 1, 1, m->ranges[x]);
}

void fuzz_write_tile(fuzz_maker *m, muc_op op, uint32_t x)
{
    muc_expr repeats[MUC_GRAPH_MAX_RANK];
    uint32_t rank = fuzz_tensor(m, x)->rank;

    for (uint32_t i = 0; i < rank; i++)
        repeats[i] = fuzz_number(m, fuzz_one_in(m, 2) ? 1 : fuzz_between(m, 1, 3));
    fuzz_set_exprs(m, MUC_KEY_REPEATS, repeats, rank);
    fuzz_add(m, op, &x, 1, 1, m->ranges[x]);
}

void fuzz_write_trilu(fuzz_maker *m, muc_op op, uint32_t x)
{
    fuzz_set_integer(m, MUC_KEY_UPPER, fuzz_pick(m, 2));
    fuzz_set_integer(m, MUC_KEY_DIAGONAL, (int64_t)fuzz_pick(m, 5) - 2);
    fuzz_add(m, op, &x, 1, 1, m->ranges[x]);
}

/* ---- indices ---- */

/* of 0..count - 1, negative ones from the end */
static uint32_t indices(fuzz_maker *m, fuzz_shape shape, uint32_t count)
{
    shape.dtype = fuzz_one_in(m, 2) ? MUC_I32 : MUC_I64;
    return fuzz_operand(m, &shape, fuzz_one_in(m, 2) ? -(double)count : 0, (double)count - 1, NULL);
}

void fuzz_write_gather(fuzz_maker *m, muc_op op, uint32_t x)
{
    uint32_t rank = fuzz_tensor(m, x)->rank, axis, inputs[2] = { x };
    fuzz_shape shape = { MUC_I64, fuzz_pick(m, 3), { fuzz_between(m, 1, 4), 2 } };

    if (rank == 0)
        return;
    axis = fuzz_pick(m, rank);
    if (!fuzz_dim(m, x, axis))
        return;
    inputs[1] = indices(m, shape, fuzz_dim(m, x, axis));
    fuzz_set_integer(m, MUC_KEY_AXIS, axis);
    fuzz_add(m, op, inputs, 2, 1, m->ranges[x]);
}

/* tuples of indices into the first dimensions, of which one is shared by all: in 0..least - 1 */
static uint32_t tuples(fuzz_maker *m, uint32_t x, uint32_t depth, uint32_t rows)
{
    uint32_t least = fuzz_dim(m, x, 0);

    for (uint32_t i = 1; i < depth; i++)
        least = fuzz_dim(m, x, i) < least ? fuzz_dim(m, x, i) : least;
    return fuzz_operand(m, &FUZZ_SHAPE(MUC_I64, rows, depth), 0, (double)least - 1, NULL);
}

void fuzz_write_gather_nd(fuzz_maker *m, muc_op op, uint32_t x)
{
    uint32_t rank = fuzz_tensor(m, x)->rank, inputs[2] = { x };

    if (rank == 0 || !fuzz_is_fixed(m, x))
        return;
    inputs[1] = tuples(m, x, fuzz_between(m, 1, rank), fuzz_between(m, 1, 4));
    fuzz_add(m, op, inputs, 2, 1, m->ranges[x]);
}

static muc_word reduction(fuzz_maker *m, uint32_t x)
{
    static const muc_word words[] = { MUC_WORD_NONE, MUC_WORD_ADD, MUC_WORD_MUL, MUC_WORD_MIN,
                                      MUC_WORD_MAX };

    if (fuzz_tensor(m, x)->quantization || fuzz_tensor(m, x)->dtype == MUC_BOOL)
        return MUC_WORD_NONE;
    return words[fuzz_pick(m, MUC_COUNT(words))];
}

/* updates of x's type, of this shape */
static uint32_t updates(fuzz_maker *m, uint32_t x, fuzz_shape shape)
{
    const muc_tensor *t = fuzz_tensor(m, x);

    shape.dtype = t->dtype;
    return fuzz_operand(m, &shape, fuzz_is_real(m, x) ? -2 : 0, fuzz_is_real(m, x) ? 2 : 20,
                        t->quantization);
}

/* gather_elements, or scatter_elements with what it puts there */
void fuzz_write_elements(fuzz_maker *m, muc_op op, uint32_t x)
{
    bool scatters = op == MUC_OP_SCATTER_ELEMENTS;
    const muc_tensor *t = fuzz_tensor(m, x);
    fuzz_shape shape = { MUC_I64, t->rank, { 0 } };
    uint32_t axis, inputs[3] = { x };

    if (t->rank == 0 || !fuzz_is_fixed(m, x))
        return;
    axis = fuzz_pick(m, t->rank);
    for (uint32_t i = 0; i < t->rank; i++)
        shape.dims[i] = fuzz_between(m, 1, fuzz_dim(m, x, i));
    inputs[1] = indices(m, shape, fuzz_dim(m, x, axis));
    fuzz_set_integer(m, MUC_KEY_AXIS, axis);
    if (scatters) {
        inputs[2] = updates(m, x, shape);
        fuzz_set_integer(m, MUC_KEY_REDUCTION, reduction(m, x));
    }
    fuzz_add(m, op, inputs, scatters ? 3 : 2, 1, m->ranges[x]);
}

void fuzz_write_scatter_nd(fuzz_maker *m, muc_op op, uint32_t x)
{
    const muc_tensor *t = fuzz_tensor(m, x);
    uint32_t depth, rows = fuzz_between(m, 1, 4), inputs[3] = { x };
    fuzz_shape shape = { t->dtype, 1, { rows } };

    if (t->rank == 0 || !fuzz_is_fixed(m, x))
        return;
    depth = fuzz_between(m, 1, t->rank);
    for (uint32_t i = depth; i < t->rank; i++)
        shape.dims[shape.rank++] = fuzz_dim(m, x, i);
    inputs[1] = tuples(m, x, depth, rows);
    inputs[2] = updates(m, x, shape);
    fuzz_set_integer(m, MUC_KEY_REDUCTION, reduction(m, x));
    fuzz_add(m, op, inputs, 3, 1, m->ranges[x]);
}

void fuzz_write_reverse_sequence(fuzz_maker *m, muc_op op, uint32_t x)
{
    uint32_t rank = fuzz_tensor(m, x)->rank, batch = fuzz_pick(m, 2), inputs[2] = { x };

    if (rank < 2 || !fuzz_dim(m, x, 0) || !fuzz_dim(m, x, 1))
        return;
    inputs[1] =
        fuzz_operand(m, &FUZZ_SHAPE(fuzz_one_in(m, 2) ? MUC_I64 : MUC_I32, fuzz_dim(m, x, batch)),
                     1, fuzz_dim(m, x, 1 - batch), NULL);
    fuzz_set_integer(m, MUC_KEY_BATCH_AXIS, batch);
    fuzz_set_integer(m, MUC_KEY_TIME_AXIS, 1 - batch);
    fuzz_add(m, op, inputs, 2, 1, m->ranges[x]);
}

/* indices of their own: what there is of x does not matter */
void fuzz_write_one_hot(fuzz_maker *m, muc_op op, uint32_t x)
{
    fuzz_shape shape = { MUC_I64, fuzz_between(m, 1, 2), { fuzz_between(m, 1, 4), 2 } };
    uint32_t size = fuzz_between(m, 2, 5), inputs[2];

    (void)x;
    inputs[0] = indices(m, shape, size);
    inputs[1] = fuzz_operand(m, &FUZZ_SHAPE(fuzz_one_in(m, 3) ? MUC_I32 : MUC_F32, 2), -2, 2, NULL);
    fuzz_set_integer(m, MUC_KEY_AXIS, fuzz_pick(m, shape.rank + 1));
    fuzz_set_expr(m, MUC_KEY_SIZE, fuzz_number(m, size));
    fuzz_add(m, op, inputs, 2, 1, (fuzz_range){ -2, 2 });
}

void fuzz_write_range(fuzz_maker *m, muc_op op, uint32_t x)
{
    muc_dtype dtype = fuzz_one_in(m, 2) ? MUC_F32 : fuzz_one_in(m, 2) ? MUC_I32 : MUC_I64;
    uint32_t inputs[2];

    (void)x;
    inputs[0] = fuzz_operand(m, &FUZZ_SCALAR(dtype), -3, 3, NULL);
    inputs[1] = fuzz_operand(m, &FUZZ_SCALAR(dtype), 1, 3, NULL);
    fuzz_set_expr(m, MUC_KEY_SIZE, fuzz_number(m, fuzz_between(m, 1, 9)));
    fuzz_add(m, op, inputs, 2, 1, (fuzz_range){ -30, 30 });
}

/* of dimensions of x */
void fuzz_write_expressions(fuzz_maker *m, muc_op op, uint32_t x)
{
    muc_expr dims[MUC_GRAPH_MAX_RANK + 1];
    uint32_t rank = fuzz_tensor(m, x)->rank;

    dims_of(m, x, dims)[rank] = fuzz_number(m, 3);
    fuzz_set_exprs(m, MUC_KEY_VALUES, dims, rank + 1);
    fuzz_set_integer(m, MUC_KEY_TO, fuzz_one_in(m, 2) ? MUC_I64 : MUC_I32);
    fuzz_add(m, op, NULL, 0, 1, (fuzz_range){ 0, 16 });
}

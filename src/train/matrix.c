/* matrix.c - products with weights, cut into pieces that do not depend on threads.
 *
 * The library's own threads are not used: how it cuts a product depends on their number, and so
 * may the last bit.
 */
#include "base/threads.h"
#include "train/ops.h"

enum { ROWS = 512, WEIGHT_PIECES = 8, LEAST_WEIGHT_ROWS = 64, COLUMNS = 16 };

typedef struct product {
    size_t rows, in, out, piece;
    const muc_scalar *x, *w, *bias, *dy;
    muc_scalar *y, *dx, *dw, *dbias;
    bool add;
} product;

static size_t pieces_of(size_t count, size_t piece)
{
    return (count + piece - 1) / piece;
}

static size_t length_of(size_t count, size_t piece, size_t first)
{
    return count - first < piece ? count - first : piece;
}

static muc_status forward_rows(void *arg, size_t i)
{
    const product *p = arg;
    size_t first = i * ROWS, rows = length_of(p->rows, ROWS, first);
    muc_scalar *y = p->y + first * p->out;

    for (size_t r = 0; p->bias && r < rows; r++)
        memcpy(y + r * p->out, p->bias, p->out * sizeof(*y));
    muc_train_gemm(false, true, rows, p->out, p->in, 1, p->x + first * p->in, p->in, p->w, p->in,
                   p->bias ? 1 : 0, y, p->out);
    return MUC_OK;
}

muc_status muc_train_linear(muc_context *ctx, size_t rows, size_t in, size_t out,
                            const muc_scalar *x, const muc_scalar *w, const muc_scalar *bias,
                            muc_scalar *y)
{
    product p = { .rows = rows, .in = in, .out = out, .x = x, .w = w, .bias = bias, .y = y };

    return muc_parallel_for(ctx, pieces_of(rows, ROWS), forward_rows, &p);
}

static muc_status backward_rows(void *arg, size_t i)
{
    const product *p = arg;
    size_t first = i * ROWS;

    muc_train_gemm(false, false, length_of(p->rows, ROWS, first), p->in, p->out, 1,
                   p->dy + first * p->out, p->out, p->w, p->in, p->add ? 1 : 0,
                   p->dx + first * p->in, p->in);
    return MUC_OK;
}

static muc_status weight_rows(void *arg, size_t i)
{
    const product *p = arg;
    size_t first = i * p->piece;

    muc_train_gemm(true, false, length_of(p->out, p->piece, first), p->in, p->rows, 1,
                   p->dy + first, p->out, p->x, p->in, 1, p->dw + first * p->in, p->in);
    return MUC_OK;
}

MUC_VECTOR_LOOP static muc_status bias_columns(void *arg, size_t i)
{
    const product *p = arg;
    size_t first = i * COLUMNS, count = length_of(p->out, COLUMNS, first);

    for (size_t r = 0; r < p->rows; r++)
        for (size_t c = first; c < first + count; c++)
            p->dbias[c] += p->dy[r * p->out + c];
    return MUC_OK;
}

muc_status muc_train_linear_back(muc_context *ctx, size_t rows, size_t in, size_t out,
                                 const muc_scalar *x, const muc_scalar *w, const muc_scalar *dy,
                                 bool add, muc_scalar *dx, muc_scalar *dw, muc_scalar *dbias)
{
    product p = { .rows = rows,
                  .in = in,
                  .out = out,
                  .x = x,
                  .w = w,
                  .dy = dy,
                  .add = add,
                  .dx = dx,
                  .dw = dw,
                  .dbias = dbias };

    p.piece = pieces_of(out, WEIGHT_PIECES);
    if (p.piece < LEAST_WEIGHT_ROWS)
        p.piece = LEAST_WEIGHT_ROWS;
    MUC_TRY(muc_parallel_for(ctx, pieces_of(rows, ROWS), backward_rows, &p));
    MUC_TRY(muc_parallel_for(ctx, pieces_of(out, p.piece), weight_rows, &p));
    return dbias ? muc_parallel_for(ctx, pieces_of(out, COLUMNS), bias_columns, &p) : MUC_OK;
}

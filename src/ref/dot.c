/* dot.c - products of float32 matrices: every sum in one order, whatever its neighbours. */
#include "ref/kernels.h"

#include "base/bytes.h"
#include "base/half.h"
#include "base/vector_loop.h"
#include "ref/dot_avx512.h"

/* Elements that are added beside each other, rows of x and of w that are multiplied together. */
enum { LANES = 8, X_ROWS = 3, W_ROWS = 4 };
/* Bytes from weights at work to those that are fetched: a processor sees no stream in four short
 * rows beside each other. */
enum { AHEAD = 16384 };

/* Element-wise IEEE operations: the compiler's choice of instructions cannot change a bit. */
typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));
typedef uint16_t half_lanes
    __attribute__((vector_size(LANES * sizeof(uint16_t)), aligned(1), may_alias));
typedef uint32_t bit_lanes __attribute__((vector_size(LANES * sizeof(uint32_t))));

/* weights as they lie in memory: how eight of them, and one, become float32 */
#define LOAD_F32(p) (*(const lanes *)(const void *)(p))
#define ONE_F32(p) (*(p))
#define LOAD_BF16(p) \
    ((lanes)(__builtin_convertvector(*(const half_lanes *)(const void *)(p), bit_lanes) << 16))
#define ONE_BF16(p) muc_f32_of_bf16(muc_load_u16((const uint8_t *)(p)))

/* out[r][c] = dot(x row r, w row c) for ROWS x COLUMNS of them, all sums in registers: eight
 * interleaved sums added as a tree, then the tail, the order of every dot product here. Macros,
 * because a vector that passes a function's boundary is cut to the size that all processors have.
 */
#define TILE(ROWS, COLUMNS, LOAD_W, ONE_W) \
    { \
        lanes s[ROWS][COLUMNS], a[ROWS], b; \
        size_t i = 0; \
        EACH(r_, ROWS) EACH(c_, COLUMNS) s[r_][c_] = (lanes){ 0 }; \
        for (; i + LANES <= p->k; i += LANES) { \
            EACH(r_, ROWS) a[r_] = LOAD_F32(x + r_ * p->x_stride + i); \
            EACH(c_, COLUMNS) \
            { \
                if ((ROWS) == 1 && (COLUMNS) > 1) \
                    __builtin_prefetch((const char *)(w + c_ * p->w_stride + i) + AHEAD); \
                b = LOAD_W(w + c_ * p->w_stride + i); \
                EACH(r_, ROWS) s[r_][c_] += a[r_] * b; \
            } \
        } \
        EACH(r_, ROWS) EACH(c_, COLUMNS) \
        { \
            lanes t = s[r_][c_]; \
            float sum = ((t[0] + t[4]) + (t[2] + t[6])) + ((t[1] + t[5]) + (t[3] + t[7])); \
            for (size_t j = i; j < p->k; j++) \
                sum += x[r_ * p->x_stride + j] * ONE_W(w + c_ * p->w_stride + j); \
            out[r_ * p->out_stride + c_] = sum; \
        } \
    }
#define EACH(index, count) _Pragma("GCC unroll 8") for (size_t index = 0; index < (count); index++)

typedef struct product {
    const float *x;
    const void *w;
    float *out;
    size_t rows, columns, k;               /* rows of x, rows of w, their elements */
    size_t x_stride, w_stride, out_stride; /* elements from one row to the next */
    size_t wide;                           /* rows of w beside each other: W_ROWS or 1 */
} product;

#define MULTIPLY(name, type, LOAD_W, ONE_W) \
    MUC_VECTOR_LOOP static void name(const product *p) \
    { \
        for (size_t c = 0, wide; c < p->columns; c += wide) { \
            const type *w = (const type *)p->w + c * p->w_stride; \
            wide = p->columns - c < p->wide ? 1 : p->wide; \
            for (size_t r = 0, step; r < p->rows; r += step) { \
                const float *x = p->x + r * p->x_stride; \
                float *out = p->out + r * p->out_stride + c; \
                step = p->rows - r < X_ROWS ? p->rows - r : X_ROWS; \
                switch (wide * X_ROWS + step) { \
                case W_ROWS *X_ROWS + 3: \
                    TILE(3, W_ROWS, LOAD_W, ONE_W) break; \
                case W_ROWS *X_ROWS + 2: \
                    TILE(2, W_ROWS, LOAD_W, ONE_W) break; \
                case W_ROWS *X_ROWS + 1: \
                    TILE(1, W_ROWS, LOAD_W, ONE_W) break; \
                case X_ROWS + 3: \
                    TILE(3, 1, LOAD_W, ONE_W) break; \
                case X_ROWS + 2: \
                    TILE(2, 1, LOAD_W, ONE_W) break; \
                case X_ROWS + 1: \
                    TILE(1, 1, LOAD_W, ONE_W) break; \
                } \
            } \
        } \
    }

MULTIPLY(multiply_f32, float, LOAD_F32, ONE_F32)
MULTIPLY(multiply_bf16, uint16_t, LOAD_BF16, ONE_BF16)

float muc_ref_dot(const float *a, const float *b, size_t n)
{
    float sum;

    muc_ref_matmul(a, 1, b, n, 1, n, &sum, 1);
    return sum;
}

void muc_ref_matmul(const float *x, size_t rows, const float *w, size_t w_stride, size_t columns,
                    size_t k, float *out, size_t out_stride)
{
    const product p = { x, w, out, rows, columns, k, k, w_stride, out_stride, W_ROWS };

    multiply_f32(&p);
}

/* columns of one run over all rows: their sums stay in registers */
enum { SUMS = 8 * LANES };

MUC_VECTOR_LOOP void muc_ref_weighted_sum(const float *weights, const float *rows, size_t stride,
                                          size_t count, size_t columns, float *out)
{
    size_t c = 0;

    for (; c + SUMS <= columns; c += SUMS) {
        lanes s[SUMS / LANES];

        EACH(i, SUMS / LANES) s[i] = (lanes){ 0 };
        for (size_t r = 0; r < count; r++)
            EACH(i, SUMS / LANES) s[i] += weights[r] * LOAD_F32(rows + r * stride + c + i * LANES);
        EACH(i, SUMS / LANES) * (lanes *)(void *)(out + c + i * LANES) = s[i];
    }
    for (; c + LANES <= columns; c += LANES) {
        lanes s = { 0 };

        for (size_t r = 0; r < count; r++)
            s += weights[r] * LOAD_F32(rows + r * stride + c);
        *(lanes *)(void *)(out + c) = s;
    }
    for (size_t i = c; i < columns; i++)
        out[i] = 0;
    for (size_t r = 0; r < count; r++)
        for (size_t i = c; i < columns; i++)
            out[i] += weights[r] * rows[r * stride + i];
}

size_t muc_ref_panel(const muc_ref_value *w)
{
    return 2 * MUC_DOT_PANEL * w->columns;
}

/* Of MUC_DOT_PANEL rows from c on, fewer at the end. Many rows of x: weights are widened once for
 * all of them, and stay in the first cache. */
static void multiply_panel(const float *x, size_t rows, const muc_ref_value *w, size_t c,
                           size_t count, float *panel, float *out, size_t out_stride)
{
    size_t k = w->columns;
    product p = { x, NULL, out, rows, count, k, k, k, out_stride, W_ROWS };
    bool few = rows <= X_ROWS, is_bf16 = w->dtype == MUC_BF16;
    bool stream = rows == 1 && w->dtype == MUC_F32 && k >= MUC_DOT_STREAMED;
    bool pairs = !stream && count == MUC_DOT_PANEL && k % LANES == 0 && muc_dot_has_avx512();
    muc_dot_weights kind = is_bf16 ? MUC_DOT_BF16 : MUC_DOT_F32;
    float *packed = panel + MUC_DOT_PANEL * k;

    if (is_bf16 && (few || pairs))
        p.w = (const uint16_t *)w->read + c * k;
    else
        p.w = muc_ref_widen(w, c, count, panel);
    if (stream)
        p.wide = 1;
    if (pairs && !few) {
        muc_dot_pack(kind, p.w, k, packed);
        muc_dot_multiply(MUC_DOT_PACKED, x, rows, packed, k, out, out_stride);
    } else if (pairs) {
        muc_dot_multiply(kind, x, rows, p.w, k, out, out_stride);
    } else if (is_bf16 && few) {
        multiply_bf16(&p);
    } else {
        multiply_f32(&p);
    }
}

void muc_ref_linear(const float *x, size_t rows, const muc_ref_value *w, size_t first, size_t end,
                    float *panel, float *out, size_t out_stride)
{
    for (size_t c = first, count; c < end; c += count) {
        count = end - c < MUC_DOT_PANEL ? end - c : MUC_DOT_PANEL;
        multiply_panel(x, rows, w, c, count, panel, out + c, out_stride);
    }
}

const float *muc_ref_widen(const muc_ref_value *value, size_t row, size_t rows, float *scratch)
{
    size_t first = row * value->columns, count = rows * value->columns;

    if (value->dtype == MUC_F32)
        return muc_ref_floats(value) + first;
    muc_dtype_to_f32(value->dtype, value->read, first, count, scratch);
    return scratch;
}

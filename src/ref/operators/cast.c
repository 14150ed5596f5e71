/* cast.c - copies, and copies into another element type. */
#include <math.h>
#include <string.h>

#include "ref/walk.h"

enum { CHUNK = 256 }; /* elements on the way from one type to another */

#define LOAD(out_type, id, type) \
    case MUC_##id: \
        for (size_t i = 0; i < n; i++) \
            out[i] = (out_type)((const type *)from->read)[first + i]; \
        break;

void muc_ref_load_reals(const muc_ref_value *from, size_t first, size_t n, double *out)
{
    switch ((unsigned)from->dtype) {
        MUC_REF_NUMBERS(LOAD, double)
        LOAD(double, BOOL, uint8_t)
    }
}

void muc_ref_load_integers(const muc_ref_value *from, size_t first, size_t n, int64_t *out)
{
    switch ((unsigned)from->dtype) {
        MUC_REF_INTEGERS(LOAD, int64_t)
        LOAD(int64_t, BOOL, uint8_t)
    }
}

/* Toward zero, NaN to 0, beyond the ends to them: the integer's bits. greatest + 1 is exact. */
static uint64_t truncate(double x, double least, double above)
{
    if (x != x)
        return 0;
    if (x <= least)
        return (uint64_t)(int64_t)least;
    if (x >= above)
        return above > 1e19 ? UINT64_MAX : (uint64_t)above - 1;
    return x < 0 ? (uint64_t)(int64_t)x : (uint64_t)x;
}

#define STORE(value, id, type) \
    case MUC_##id: \
        for (size_t i = 0; i < n; i++) \
            ((type *)to->data)[first + i] = (type)(value); \
        break;

void muc_ref_store_reals(const muc_ref_value *to, size_t first, size_t n, const double *from)
{
    int bits = (int)(8 * muc_ref_width(to));
    bool is_signed = muc_dtype_is_signed(to->dtype);
    double least = is_signed ? -ldexp(1, bits - 1) : 0, above = ldexp(1, bits - is_signed);

    switch ((unsigned)to->dtype) {
        MUC_REF_REALS(STORE, from[i])
        MUC_REF_INTEGERS(STORE, truncate(from[i], least, above))
        STORE(from[i] != 0, BOOL, uint8_t)
    }
}

void muc_ref_store_integers(const muc_ref_value *to, size_t first, size_t n, const int64_t *from)
{
    switch ((unsigned)to->dtype) {
        MUC_REF_NUMBERS(STORE, from[i])
        STORE(from[i] != 0, BOOL, uint8_t)
    }
}

static void cast_integers(const muc_ref_value *from, const muc_ref_value *to, size_t first,
                          size_t n)
{
    int64_t integers[CHUNK];

    muc_ref_load_integers(from, first, n, integers);
    muc_ref_store_integers(to, first, n, integers);
}

static void cast_reals(const muc_ref_value *from, const muc_ref_value *to, size_t first, size_t n)
{
    double reals[CHUNK];

    muc_ref_load_reals(from, first, n, reals);
    muc_ref_store_reals(to, first, n, reals);
}

muc_status muc_kernel_cast(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0], *y = call->output;
    /* u64 to a real type goes through double: its bits are not an int64's */
    bool by_reals = muc_ref_is_real(x) || (x->dtype == MUC_U64 && muc_ref_is_real(y));

    for (size_t at = 0; at < x->elements; at += CHUNK) {
        size_t n = x->elements - at < CHUNK ? x->elements - at : CHUNK;

        (by_reals ? cast_reals : cast_integers)(x, y, at, n);
    }
    return MUC_OK;
}

muc_status muc_kernel_copy(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0];

    if (x->elements != call->output->elements)
        return muc_ref_fail(call, "%zu elements to %zu", x->elements, call->output->elements);
    memcpy(call->output->data, x->read, x->elements * muc_ref_width(x));
    return MUC_OK;
}

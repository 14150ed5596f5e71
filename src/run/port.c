/* port.c - converts elements of arrays to the type, and the quantization, that an input has. */
#include "run/port.h"

#include <math.h>
#include <string.h>

#include "run/arrays.h"
#include "run/network_run.h"

/* as TensorFlow Lite quantizes: nearest, halves away from zero, saturated */
static double quantize(const muc_port *input, double real)
{
    unsigned bits = muc_dtype_get(input->dtype)->block_bytes * 8;
    bool is_signed = input->dtype == MUC_I8 || input->dtype == MUC_I16 || input->dtype == MUC_I32;
    double least = is_signed ? -ldexp(1, (int)bits - 1) : 0;
    double most = ldexp(1, (int)bits - is_signed) - 1;
    double q = (double)roundf((float)real / (float)input->scale) + input->zero;

    if (q != q) /* no number is nothing, as for the reference */
        return input->zero;
    return q < least ? least : q > most ? most : q;
}

static bool is_real(muc_dtype dtype)
{
    return muc_dtype_get(dtype)->kind == MUC_DTYPE_FLOAT;
}

muc_status muc_port_convert(muc_context *ctx, const muc_port *input, const muc_tensor_view *array,
                            uint8_t *out)
{
    uint32_t size = muc_dtype_get(input->dtype)->block_bytes;
    bool quantizes = input->quantized && is_real(array->dtype);

    if (array->elements != input->bytes / size)
        return muc_fail(ctx, MUC_USAGE, array->file, array->offset,
                        "'%s' has %llu elements, '%s' takes %llu", array->name,
                        (unsigned long long)array->elements, input->name,
                        (unsigned long long)(input->bytes / size));
    if (muc_is_reordered(array, input->rank, input->dims))
        return muc_fail(ctx, MUC_USAGE, array->file, array->offset,
                        "'%s' has the dimensions of '%s' in another order", array->name,
                        input->name);
    if (array->dtype == input->dtype) {
        memcpy(out, array->data, (size_t)array->bytes);
        return MUC_OK;
    }
    for (uint64_t i = 0; i < array->elements; i++) {
        double real = muc_array_element(array, i), whole = quantizes ? quantize(input, real) : 0;
        const muc_tensor_view level = { .dtype = MUC_F64, .data = (const uint8_t *)&whole };

        if (!muc_array_store(quantizes ? &level : array, quantizes ? 0 : i, input->dtype,
                             out + i * size))
            return muc_fail(ctx, MUC_USAGE, array->file, array->offset,
                            "'%s': element %llu, %g, is not a number of type %s", array->name,
                            (unsigned long long)i, real, muc_dtype_get(input->dtype)->name);
    }
    return MUC_OK;
}

double muc_port_real(const muc_port *port, double element)
{
    return port->quantized ? (element - port->zero) * port->scale : element;
}

muc_tensor_view muc_port_array(const muc_port *input, const uint8_t *data, const char *file)
{
    muc_tensor_view array = {
        .name = input->name, .dtype = input->dtype, .rank = input->rank, .data = data, .file = file
    };

    memcpy(array.dims, input->dims, sizeof(array.dims));
    return array;
}

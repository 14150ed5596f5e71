/* port.h - an input or output of what was compiled, and arrays as it takes them. */
#ifndef MUC_RUN_PORT_H
#define MUC_RUN_PORT_H

#include "base/json.h"
#include "formats/checkpoint.h"
#include "graph/graph.h"

typedef struct muc_port {
    const char *name, *field; /* the graph's, the C struct's */
    muc_dtype dtype;
    uint32_t rank;
    uint64_t dims[MUC_MAX_RANK]; /* the most */
    uint64_t bytes;
    bool quantized;
    double scale;
    int32_t zero;
    const json_t
        *extents; /* expressions of the folder's arguments, one per dimension; NULL: fixed */
} muc_port;

/* Elements of an array as an input wants them: real numbers are quantized where it carries
 * quantization, others are stored as muc_array_store does. out holds input->bytes. */
muc_status muc_port_convert(muc_context *ctx, const muc_port *input, const muc_tensor_view *array,
                            uint8_t *out);

/* The real number that an element of it stands for: (element - zero) * scale where it carries
 * quantization. */
double muc_port_real(const muc_port *port, double element);

/* An array of an input's type and shape, of these bytes, which it borrows. */
muc_tensor_view muc_port_array(const muc_port *input, const uint8_t *data, const char *file);

#endif

/* onnx.h - which operators of ONNX are read, for lists. */
#ifndef MUC_ONNX_H
#define MUC_ONNX_H

#include "graph/graph.h"

typedef struct muc_onnx_operator {
    const char *domain, *name;
    int64_t first, last; /* versions of the operator set */
    muc_op op;           /* what it becomes, or the most of it */
} muc_onnx_operator;

size_t muc_onnx_operator_count(void);
muc_onnx_operator muc_onnx_operator_get(size_t i);

#endif

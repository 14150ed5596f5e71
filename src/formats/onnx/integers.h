/* integers.h - which values of a graph are integers although the file calls them FLOAT.
 *
 * Exports of QuantLib (Deeploy's networks) declare every value FLOAT and mean integers. Integer is
 * what an operator of QuantLib reads or gives, and what is joined to such a value by operators that
 * move or compute integers (integers.def), constants of whole numbers fitting either kind. Where no
 * such operator is and the caller names no integer input, nothing is an integer but what the file
 * calls one; unless sample inputs and results are whole numbers, the constants too, and every
 * operator has a row: then all is integer, and inputs that the file calls FLOAT have the smallest
 * type that holds the sample. An input that is an integer has the type that the caller gave, else
 * that of the integers it is moved together with (a cache), else i16, which holds signed and
 * unsigned bytes.
 */
#ifndef MUC_ONNX_INTEGERS_H
#define MUC_ONNX_INTEGERS_H

#include "formats/onnx/onnx_import.h"

typedef enum onnx_integer_rule { /* integers.def */
                                 ONNX_NOTHING,
                                 ONNX_MOVES,
                                 ONNX_COMPUTES,
                                 ONNX_NEEDS,
} onnx_integer_rule;

onnx_integer_rule onnx_integer_rule_of(const char *op_type);

/* *out lives in the import's arena; NULL where all values are what the file says. */
muc_status onnx_find_integers(onnx_import *im, const Onnx__GraphProto *graph,
                              onnx_integer_values **out);

/* Whether the value, declared FLOAT, is an integer. integers may be NULL. A constant is none: its
 * users make of it what they need. */
bool onnx_is_integer(const onnx_integer_values *integers, const char *name);
/* Whether the file itself says so; the name is of the graph. */
bool onnx_is_declared_integer(const onnx_integer_values *integers, const char *name);
/* The type of an input for which onnx_is_integer is true. */
muc_dtype onnx_integer_type(const onnx_integer_values *integers, const char *name);

#endif

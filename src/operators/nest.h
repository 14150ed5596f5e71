/* nest.h - loops that say what an operator computes: written once, compiled for ref for each type
 * of elements, and printed by mcu.
 *
 *     #define NUMBERS(X) X(outer) X(extent)
 *     MUC_NEST_REAL(name, NUMBERS, measure, flags, { loops })
 *
 * Loops are C in braces, every body of a loop too. They read the inputs a, b, c and write the
 * outputs y and y1, packed and row-major, and know the NUMBERS of the node, which `measure` takes
 * from its shapes and attributes. Types: T of input 0's elements, A
 * of their sums, Y and B of the elements of y and b; INDEX is unsigned, PLACE signed. ABOVE(p, q)
 * is whether p is greater than q, NaN than all others; LESSER(p, q) and LARGER(p, q) are q if NaN
 * or neither is less; AT(index, extent) is the place of an index, a negative one from the end.
 * There are no other macros in loops; a number that is not whole is a cast, (T)0.5.
 */
#ifndef MUC_NEST_H
#define MUC_NEST_H

#include "graph/graph.h"

enum { MUC_NEST_MOST_NUMBERS = 40, MUC_NEST_MOST_INPUTS = 3, MUC_NEST_MOST_OUTPUTS = 2 };

/* The loops for one type of elements; arrays that are absent are NULL. */
typedef void muc_nest_loops(const void *const *in, void *const *out, const size_t *numbers);

/* A node whose shapes are known: those of its inputs, then those of its outputs. */
typedef struct muc_nest_shape {
    uint32_t rank;
    size_t dims[MUC_GRAPH_MAX_RANK];
} muc_nest_shape;
typedef struct muc_nest_node {
    const muc_node *node;
    muc_nest_shape inputs[MUC_NEST_MOST_INPUTS], outputs[MUC_NEST_MOST_OUTPUTS];
} muc_nest_node;

enum {
    MUC_NEST_QUANTIZED = 1, /* also of integers that carry quantization */
    MUC_NEST_IN_PLACE = 2,  /* y may be a */
    MUC_NEST_INDICES = 4,   /* b holds indices or lengths within graph/bounds.h */
    MUC_NEST_COMBINES = 8,  /* numbers without quantization where the node names a reduction */
};

typedef struct muc_nest {
    const char *text;         /* the loops, blanks between their words */
    const char *const *names; /* of the numbers; NULL behind the last */
    void (*measure)(const muc_nest_node *n, void *numbers); /* fills in the struct of them */
    unsigned flags;
    muc_nest_loops *loops[MUC_DTYPE_COUNT]; /* by input 0's type; NULL: not of that */
} muc_nest;

/* NULL: the operator has none (the fact NEST of ops.def). */
const muc_nest *muc_nest_of(muc_op op);

/* Elements before, along and after a dimension: x [outer][extent][inner]. */
typedef struct muc_nest_along {
    size_t outer, extent, inner;
} muc_nest_along;
muc_nest_along muc_nest_along_of(const muc_nest_shape *shape, uint32_t axis);
/* The product of dims[first..end-1]. */
size_t muc_nest_elements(const muc_nest_shape *shape, uint32_t first, uint32_t end);

#define ABOVE(p, q) ((p) > (q) || ((p) != (p) && (q) == (q)))
#define LESSER(p, q) ((p) < (q) || (p) != (p) ? (p) : (q))
#define LARGER(p, q) ((p) > (q) || (p) != (p) ? (p) : (q))
#define AT(index, extent) (INDEX)((index) < 0 ? (index) + (int64_t)(extent) : (index))
#define MUC_NEST_FIELD(name) size_t name;
#define MUC_NEST_NAME(name) #name,
#define MUC_NEST_NUMBER(name) \
    const INDEX name = *given++; \
    (void)name;
#define MUC_NEST_LOOPS(id, numbers_of, t, sum, of_y, of_b, ...) \
    static void id(const void *const *in, void *const *out, const size_t *given) \
    { \
        typedef t T; \
        typedef sum A; \
        typedef of_y Y; \
        typedef of_b B; \
        typedef size_t INDEX; \
        typedef ptrdiff_t PLACE; \
        const T *a = in[0]; \
        const B *b = in[1]; \
        const T *c = in[2]; \
        Y *y = out[0]; \
        int64_t *y1 = out[1]; \
        numbers_of(MUC_NEST_NUMBER); \
        (void)sizeof(A), (void)sizeof(PLACE), (void)a, (void)b, (void)c, (void)y1; \
        __VA_ARGS__ \
    }
#define MUC_NEST_ROW(name, numbers_of, measuring, flags, text, ...) \
    static const char *const name##_names[] = { numbers_of(MUC_NEST_NAME) NULL }; \
    const muc_nest muc_nest_##name = { text, name##_names, measuring, flags, { __VA_ARGS__ } };

/* Loops over real numbers; B and Y are T. */
#define MUC_NEST_REAL(name, numbers_of, measure, flags, ...) \
    MUC_NEST_LOOPS(name##_F32, numbers_of, float, double, T, T, __VA_ARGS__) \
    MUC_NEST_LOOPS(name##_F64, numbers_of, double, double, T, T, __VA_ARGS__) \
    MUC_NEST_ROW(name, numbers_of, measure, flags, \
                 #__VA_ARGS__, [MUC_F32] = name##_F32, [MUC_F64] = name##_F64)

#define MUC_NEST_ARITHMETIC(name, numbers_of, of_y, of_b, ...) \
    MUC_NEST_LOOPS(name##_F32, numbers_of, float, double, of_y, of_b, __VA_ARGS__) \
    MUC_NEST_LOOPS(name##_F64, numbers_of, double, double, of_y, of_b, __VA_ARGS__) \
    MUC_NEST_LOOPS(name##_I64, numbers_of, int64_t, uint64_t, of_y, of_b, __VA_ARGS__) \
    MUC_NEST_LOOPS(name##_I32, numbers_of, int32_t, uint64_t, of_y, of_b, __VA_ARGS__) \
    MUC_NEST_LOOPS(name##_I16, numbers_of, int16_t, uint64_t, of_y, of_b, __VA_ARGS__) \
    MUC_NEST_LOOPS(name##_I8, numbers_of, int8_t, uint64_t, of_y, of_b, __VA_ARGS__) \
    MUC_NEST_LOOPS(name##_U64, numbers_of, uint64_t, uint64_t, of_y, of_b, __VA_ARGS__) \
    MUC_NEST_LOOPS(name##_U32, numbers_of, uint32_t, uint64_t, of_y, of_b, __VA_ARGS__) \
    MUC_NEST_LOOPS(name##_U16, numbers_of, uint16_t, uint64_t, of_y, of_b, __VA_ARGS__) \
    MUC_NEST_LOOPS(name##_U8, numbers_of, uint8_t, uint64_t, of_y, of_b, __VA_ARGS__)
#define MUC_NEST_OF_NUMBERS(name) \
    [MUC_F32] = name##_F32, [MUC_F64] = name##_F64, [MUC_I64] = name##_I64, \
    [MUC_I32] = name##_I32, [MUC_I16] = name##_I16, [MUC_I8] = name##_I8, [MUC_U64] = name##_U64, \
    [MUC_U32] = name##_U32, [MUC_U16] = name##_U16, [MUC_U8] = name##_U8

/* Loops over real numbers or integers, whose sums wrap; B is T, Y is given. */
#define MUC_NEST_NUMBERS(name, numbers_of, measure, flags, of_y, ...) \
    MUC_NEST_ARITHMETIC(name, numbers_of, of_y, T, __VA_ARGS__) \
    MUC_NEST_ROW(name, numbers_of, measure, flags, #__VA_ARGS__, MUC_NEST_OF_NUMBERS(name))

/* Loops over numbers and, where they only move them, elements of any type; Y is T, B is given. */
#define MUC_NEST_ANY(name, numbers_of, measure, flags, of_b, ...) \
    MUC_NEST_ARITHMETIC(name, numbers_of, T, of_b, __VA_ARGS__) \
    MUC_NEST_ROW(name, numbers_of, measure, (flags) | MUC_NEST_QUANTIZED, #__VA_ARGS__, \
                 MUC_NEST_OF_NUMBERS(name), [MUC_F16] = name##_U16, [MUC_BF16] = name##_U16, \
                 [MUC_BOOL] = name##_U8)

/* Loops that move elements, whatever their type; T is an unsigned integer as wide, B is given. */
#define MUC_NEST_MOVE(name, numbers_of, measure, flags, of_b, ...) \
    MUC_NEST_LOOPS(name##_64, numbers_of, uint64_t, T, T, of_b, __VA_ARGS__) \
    MUC_NEST_LOOPS(name##_32, numbers_of, uint32_t, T, T, of_b, __VA_ARGS__) \
    MUC_NEST_LOOPS(name##_16, numbers_of, uint16_t, T, T, of_b, __VA_ARGS__) \
    MUC_NEST_LOOPS(name##_8, numbers_of, uint8_t, T, T, of_b, __VA_ARGS__) \
    MUC_NEST_ROW( \
        name, numbers_of, measure, (flags) | MUC_NEST_QUANTIZED, \
        #__VA_ARGS__, [MUC_F64] = name##_64, [MUC_I64] = name##_64, [MUC_U64] = name##_64, \
        [MUC_F32] = name##_32, [MUC_I32] = name##_32, [MUC_U32] = name##_32, \
        [MUC_F16] = name##_16, [MUC_BF16] = name##_16, [MUC_I16] = name##_16, \
        [MUC_U16] = name##_16, [MUC_I8] = name##_8, [MUC_U8] = name##_8, [MUC_BOOL] = name##_8)

#endif

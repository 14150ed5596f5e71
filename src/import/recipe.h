/* recipe.h - the neutral node of a file, and what operators of the graph it becomes.
 *
 * A format gives its node as inputs and attributes by name; a row of its table says in one line
 * what that is in the graph:
 *
 *   "leaky_relu 0 alpha=@alpha:0.01"
 *   "root = sqrt 0; reciprocal root"
 *   "[1] sum = add 0 1; gelu sum | gelu 0"
 *
 * Statements are parted by ";", the last gives the node's output. The operator "." is the row's.
 * "x>2 = .." also gives output 2; ">2 = .." stands only where the file wants it, and a recipe that
 * ends with ";" gives no output 0. "?turn x = transpose 0 .." is input 0 itself where the attribute
 * turn is absent or 0. Alternatives are parted by "|"; the first counts all of whose brackets fit:
 * [1], input 1 is there; [in:f32], [out:f32], input 0 and output 0 are of this type; [rank<3],
 * input 0 has fewer dimensions; [@name==1], the attribute is there and has this value.
 *
 * Operands: 0, 1, .. inputs of the node, 1? one that may be left out, 1:i64:name input 1 as this
 * type, by a cast, 1:i32 as the format gives it in this type; * all of them,
 * 1.. from 1 on; a name that an earlier
 * statement gave; {0.5} or name{0.5} a constant of the type of the operand before, {0.5}~0 of input
 * 0's, {7}:i32 of this type, {@lr}, {@lr:1} of an attribute; of f32 beyond its range it is left
 * out; {@a,@b} a list. Attributes: key=value, where value is 0.5, tanh, f32 itself
 *   @name                 the node's attribute; without it the operator has none either
 *   @name:1  @name/1      the same, 1 where it is absent; left out where it is 1
 *   @name#1               the same, the elements of input 1 where it is absent
 *   log2@name             the exponent of a power of two
 *   tanh?@name            tanh, where the node's attribute is there and not 0
 *   #1  pairs#1           the elements of input 1, a constant; pairs (before, after) of each
 *                         dimension as all before and then all after
 *   out, in1              the shape or the type that output 0 is to have, that input 1 has
 * and of lists, with commas between: 2, -1, $name or $name:1 a number, of an attribute; 1.. or
 * 0..-2 dimensions of the first operand by their numbers, from the end if negative, the second left
 * out; in0.1, in0.1.. dimensions of input 0, *in0.1.. their product, in0.1/$name a part. Axes may
 * count from the end, of the first operand's dimensions (one more for one_hot).
 * @name alone is an attribute that means nothing here, @name==1 one of which 1 alone is read, 1.0
 * of a real one; "given" adds attributes that an importer prepared. Other words are the format's
 * own.
 */
#ifndef MUC_RECIPE_H
#define MUC_RECIPE_H

#include "import/attributes.h"

/* A typed attribute of a file's node. */
typedef enum muc_value_type {
    MUC_VALUE_ABSENT,
    MUC_VALUE_INTEGER,
    MUC_VALUE_REAL,
    MUC_VALUE_TEXT,
    MUC_VALUE_INTEGERS,
} muc_value_type;

typedef struct muc_value {
    muc_value_type type;
    int64_t integer;
    double real;
    const char *text;
    const int64_t *items;  /* borrowed from the file or the arena */
    const muc_expr *exprs; /* of items that depend on dimensions, else MUC_EXPR_NONE; NULL: none */
    size_t count;
} muc_value;

/* What a format tells of the node at work, self. Those that say "or NULL" need not be there. */
typedef struct muc_file_node_functions {
    /* File and node, for messages. */
    muc_subject (*subject)(const void *self);
    /* The attribute as the type wanted, or ABSENT; refuses one of another type. */
    muc_status (*attribute)(void *self, const char *name, muc_value_type wanted, muc_value *out);
    /* The graph's tensor of an input, MUC_NO_ID where it is left out. */
    muc_status (*input)(void *self, uint32_t i, uint32_t *id);
    /* or NULL: the integers of a constant input */
    muc_status (*integers)(void *self, uint32_t i, muc_value *out);
    /* A constant: a scalar, or a list of several values; name may be "". */
    muc_status (*constant)(void *self, const char *name, muc_dtype dtype, const double *values,
                           uint32_t count, uint32_t *id);
    /* A node on the way, and the one that gives the outputs. */
    muc_status (*step)(void *self, muc_op op, const char *name, const uint32_t *inputs,
                       uint32_t count, const muc_attributes *a, uint32_t *id);
    muc_status (*last)(void *self, muc_op op, const uint32_t *inputs, uint32_t count,
                       muc_attributes *a);
    /* or NULL: type, rank and dims that the file says of output 0 */
    muc_tensor (*output)(void *self);
    /* or NULL: a word of the format's own, which may give *id, an operand */
    muc_status (*word)(void *self, const char *word, uint32_t *id);
    /* or NULL, where no recipe has ">": whether the file wants output i, and what it is */
    bool (*wants)(const void *self, uint32_t i);
    muc_status (*bind)(void *self, uint32_t i, uint32_t id);
    /* or NULL, where no recipe has "1:i32": the graph's tensor of an input as this type */
    muc_status (*typed)(void *self, uint32_t i, muc_dtype dtype, uint32_t *id);
} muc_file_node_functions;

typedef struct muc_file_node {
    const muc_file_node_functions *functions;
    void *self;
    muc_context *ctx;
    const muc_graph *graph;
    muc_arena *arena;
    uint32_t input_count;
    muc_op op;                   /* the row's */
    const muc_attributes *given; /* what the word "given" adds to a statement, or NULL */
    const uint32_t *operands;    /* [input_count], the inputs instead of the file's, or NULL */
    uint32_t *result; /* where the last statement is a step, too: what it gives; else NULL */
} muc_file_node;

/* Adds to the graph what the recipe says of the node; "" is ". *". */
muc_status muc_import_recipe(const muc_file_node *node, const char *recipe);
/* Numbers as a recipe has them, "1,2,3", until the block ends. */
enum { MUC_LIST_CHARS = 320 };
#define MUC_LIST(items, count) muc_import_list((char[MUC_LIST_CHARS]){ 0 }, items, count)
const char *muc_import_list(char text[MUC_LIST_CHARS], const int64_t *items, uint32_t count);
/* The same of a recipe to be formatted. */
muc_status muc_import_format(muc_file_node node, const char *format, ...) MUC_PRINTF(2, 3);

/* The node with attributes that a recipe's word "given" adds. */
static inline muc_file_node muc_node_given(muc_file_node node, const muc_attributes *given)
{
    node.given = given;
    return node;
}

/* The node of these tensors, or with ids NULL of its own inputs; what a recipe gives is *out, or
 * with out NULL the node's output. */
static inline muc_file_node muc_node_of(muc_file_node node, const uint32_t *ids, uint32_t count,
                                        uint32_t *out)
{
    node.operands = ids;
    node.input_count = ids ? count : node.input_count;
    node.result = out;
    return node;
}

#endif

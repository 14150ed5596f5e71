/* template_ir.h - the templated IR of the µCompiler paper, section 3.2.
 *
 * A template is Code: a list of Instructions and Fors. An Instruction's fields are Variables; a
 * Variable is an Immediate if it is known when compiling, and a Placeholder if it depends on the
 * program's inputs or on the variable of a For around it. Nobody says which: a Variable is an
 * expression, and what the expression depends on decides.
 */
#ifndef MUC_UTHINKER_IR_H
#define MUC_UTHINKER_IR_H

#include "base/arena.h"
#include "expr/expr.h"
#include "targets/uthinker/isa/uthinker_isa.h"

/* The expression is both the Placeholder's resolve function and, through the inputs it names, the
 * set of its dependencies. */
typedef struct muc_variable {
    muc_expr resolve;
} muc_variable;

typedef struct muc_instruction {
    uint32_t op;       /* muc_uthinker_op */
    uint8_t sig;       /* 0: none, else token sig - 1 */
    uint16_t wait;     /* one bit a token */
    const char *stage; /* which row of SPEC.md's table it belongs to; a literal */
    muc_variable fields[MUC_INSN_MAX_FIELDS];
} muc_instruction;

typedef struct muc_code_item muc_code_item;

typedef struct muc_code {
    muc_code_item *items;
    size_t count, capacity;
} muc_code;

/* Runs body count times with variable = 0, 1, .. */
typedef struct muc_for {
    uint32_t input; /* of the pool: the loop's variable; each For has its own */
    muc_variable count;
    uint32_t most; /* the largest count */
    muc_code body;
} muc_for;

/* Exactly one is set. */
struct muc_code_item {
    muc_instruction *instruction;
    muc_for *loop;
};

/* Inputs 0 to 3 of the pool are pos, m, end = pos + m, and logits, 1 if the call computes them. */
enum { MUC_INPUT_POS, MUC_INPUT_M, MUC_INPUT_END, MUC_INPUT_LOGITS, MUC_TEMPLATE_INPUTS };

/* One entry point. Everything is in the arena given to the builder. */
typedef struct muc_template {
    const char *name; /* "DECODE" */
    muc_expr_pool *pool;
    uint32_t min_m, max_m;
    muc_code code;
} muc_template;

/* Appends to the innermost open For of a template. All-zero but ctx, arena and template to begin
 * with. The first failure is kept; a builder that failed ignores all that follows. */
typedef struct muc_ir_builder {
    muc_context *ctx;
    muc_arena *arena;
    muc_template *template;
    muc_for *open[MUR_MAX_NESTING]; /* NULL: one of constant count 1 */
    uint32_t depth;
    muc_status status;
} muc_ir_builder;

void muc_ir_add(muc_ir_builder *builder, const muc_instruction *instruction);
/* Opens a For over a new variable and returns the variable's expression: 0 if count is at most 1.
 * One of constant count 1 is its body. */
muc_expr muc_ir_for(muc_ir_builder *builder, const char *name, muc_expr count);
/* The same, a loop even if count is 1. */
muc_expr muc_ir_loop(muc_ir_builder *builder, const char *name, uint32_t count);
void muc_ir_end_for(muc_ir_builder *builder);
/* Fails if the builder, or a builder of expressions, did, or if a For is still open. */
muc_status muc_ir_finish(muc_ir_builder *builder);

/* Called with every instruction's words, in the order issued, for given inputs: the template
 * resolved straight from its expressions. */
typedef muc_status muc_resolved_fn(void *arg, const muc_instruction *instruction,
                                   const uint32_t *words, uint32_t count);
muc_status muc_ir_resolve(muc_context *ctx, const muc_template *template, uint32_t pos, uint32_t m,
                          bool logits, muc_resolved_fn *fn, void *arg);

#endif

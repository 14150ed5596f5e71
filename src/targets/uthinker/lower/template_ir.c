/* template_ir.c - building and resolving templates. */
#include "targets/uthinker/lower/template_ir.h"

#include <string.h>

/* a body that runs once is part of what is around it */
static muc_code *innermost(muc_ir_builder *builder)
{
    for (uint32_t i = builder->depth; i > 0; i--)
        if (builder->open[i - 1])
            return &builder->open[i - 1]->body;
    return &builder->template->code;
}

static muc_code_item *append(muc_ir_builder *builder)
{
    muc_code *code = innermost(builder);

    if (builder->status == MUC_OK)
        builder->status =
            muc_arena_grow(builder->ctx, builder->arena, code->count + 1, sizeof(*code->items),
                           &code->capacity, (void **)&code->items);
    return builder->status == MUC_OK ? &code->items[code->count] : NULL;
}

void muc_ir_add(muc_ir_builder *builder, const muc_instruction *instruction)
{
    muc_code_item *item = append(builder);
    muc_instruction *copy;

    if (!item)
        return;
    builder->status = MUC_ARENA_NEW(builder->ctx, builder->arena, 1, &copy);
    if (builder->status != MUC_OK)
        return;
    *copy = *instruction;
    *item = (muc_code_item){ copy, NULL };
    innermost(builder)->count++;
}

static muc_expr open_for(muc_ir_builder *builder, const char *name, muc_expr count, bool folds)
{
    muc_expr_pool *pool = builder->template->pool;
    muc_code_item *item = append(builder);
    muc_for *loop;
    muc_expr variable;

    if (!item || count == MUC_EXPR_NONE)
        return MUC_EXPR_NONE;
    if (builder->depth == MUR_MAX_NESTING) {
        builder->status = muc_fail(builder->ctx, MUC_BUG, "uthinker", MUC_NO_OFFSET,
                                   "For '%s' is nested too deep", name);
        return MUC_EXPR_NONE;
    }
    if (folds && count == muc_expr_const(pool, 1)) {
        builder->open[builder->depth++] = NULL;
        return muc_expr_const(pool, 0);
    }
    builder->status = MUC_ARENA_NEW(builder->ctx, builder->arena, 1, &loop);
    if (builder->status != MUC_OK)
        return MUC_EXPR_NONE;
    loop->count.resolve = count;
    loop->most = muc_expr_get(pool, count)->hi;
    variable = muc_expr_new_input(pool, name, 0, loop->most ? loop->most - 1 : 0, 1);
    loop->input = muc_expr_find_input(pool, name);
    *item = (muc_code_item){ NULL, loop };
    innermost(builder)->count++;
    builder->open[builder->depth++] = loop;
    return loop->most > 1 ? variable : muc_expr_const(pool, 0);
}

muc_expr muc_ir_for(muc_ir_builder *builder, const char *name, muc_expr count)
{
    return open_for(builder, name, count, true);
}

muc_expr muc_ir_loop(muc_ir_builder *builder, const char *name, uint32_t count)
{
    return open_for(builder, name, muc_expr_const(builder->template->pool, count), false);
}

void muc_ir_end_for(muc_ir_builder *builder)
{
    if (builder->status == MUC_OK)
        builder->depth--;
}

muc_status muc_ir_finish(muc_ir_builder *builder)
{
    MUC_TRY(builder->status);
    MUC_TRY(muc_expr_status(builder->template->pool));
    return builder->depth == 0 ? MUC_OK
                               : muc_fail(builder->ctx, MUC_BUG, "uthinker", MUC_NO_OFFSET,
                                          "a For of the template is not closed");
}

/* ---- resolving ---- */

typedef struct resolver {
    muc_context *ctx;
    const muc_template *template;
    uint32_t values[MUC_EXPR_MAX_INPUTS];
    muc_resolved_fn *fn;
    void *arg;
} resolver;

static muc_status resolve_instruction(resolver *r, const muc_instruction *instruction)
{
    const muc_insn_info *info = muc_insn_get(instruction->op);
    uint32_t words[MUR_MAX_WORDS] = { info->opcode |
                                      (uint32_t)instruction->sig << MUC_WORD0_SIG_SHIFT |
                                      (uint32_t)instruction->wait << MUC_WORD0_WAIT_SHIFT };

    for (uint32_t i = 0; i < muc_insn_fields(instruction->op); i++) {
        uint32_t value;

        MUC_TRY(muc_expr_eval(r->ctx, r->template->pool, instruction->fields[i].resolve, r->values,
                              &value));
        if (!muc_field_put(info->first_field + i, value, words))
            return muc_fail(r->ctx, MUC_BUG, "uthinker", MUC_NO_OFFSET, "%s.%s cannot hold %u",
                            info->name, muc_field_get(info->first_field + i)->name, value);
    }
    return r->fn(r->arg, instruction, words, info->words);
}

/* recursion is as deep as Fors nest: MUR_MAX_NESTING */
static muc_status resolve_code(resolver *r, const muc_code *code)
{
    for (size_t i = 0; i < code->count; i++) {
        const muc_for *loop = code->items[i].loop;
        uint32_t count;

        if (!loop) {
            MUC_TRY(resolve_instruction(r, code->items[i].instruction));
            continue;
        }
        MUC_TRY(muc_expr_eval(r->ctx, r->template->pool, loop->count.resolve, r->values, &count));
        for (uint32_t k = 0; k < count; k++) {
            r->values[loop->input] = k;
            MUC_TRY(resolve_code(r, &loop->body));
        }
    }
    return MUC_OK;
}

muc_status muc_ir_resolve(muc_context *ctx, const muc_template *template, uint32_t pos, uint32_t m,
                          bool logits, muc_resolved_fn *fn, void *arg)
{
    resolver r = { .ctx = ctx,
                   .template = template,
                   .values = { pos, m, pos + m, logits },
                   .fn = fn,
                   .arg = arg };

    MUC_TRY(muc_expr_check_bindings(ctx, template->pool, r.values));
    return resolve_code(&r, &template->code);
}

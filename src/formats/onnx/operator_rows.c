/* operator_rows.c - finds a node's row in the table of operators, and imports what is a recipe. */
#include <inttypes.h>
#include <string.h>

#include "formats/onnx/evaluate.h"
#include "formats/onnx/onnx.h"
#include "formats/onnx/onnx_operators.h"

static const onnx_row rows[] = {
#define ONNX_OP(domain, name, first, last, op, import, evaluate) \
    { \
        domain, name, first, last, onnx_import_##import, MUC_OP_##op, onnx_evaluate_##evaluate, NULL \
    },
#define ONNX_RECIPE(domain, name, first, last, op, recipe, evaluate) \
    { \
        domain, name, first, last, onnx_import_recipe, MUC_OP_##op, onnx_evaluate_##evaluate, recipe \
    },
#include "formats/onnx/onnx_ops.def"
#undef ONNX_OP
};

size_t muc_onnx_operator_count(void)
{
    return MUC_COUNT(rows);
}

muc_onnx_operator muc_onnx_operator_get(size_t i)
{
    return (muc_onnx_operator){ rows[i].domain, rows[i].name, rows[i].first, rows[i].last,
                                rows[i].op };
}

static bool is_row_of(const onnx_row *row, const char *domain, const char *name)
{
    return strcmp(row->name, name) == 0 &&
           (strcmp(row->domain, domain) == 0 || strcmp(row->domain, "*") == 0);
}

bool onnx_has_row(const char *domain, const char *name)
{
    for (size_t i = 0; i < MUC_COUNT(rows); i++)
        if (is_row_of(&rows[i], domain, name))
            return true;
    return false;
}

muc_status onnx_find_row(onnx_call *call)
{
    const char *domain = call->proto->domain, *name = call->proto->op_type;
    const onnx_row *other = NULL;

    for (size_t i = 0; i < MUC_COUNT(rows); i++) {
        if (!is_row_of(&rows[i], domain, name))
            continue;
        call->row = other = &rows[i];
        if (call->version >= rows[i].first && call->version <= rows[i].last)
            return MUC_OK;
    }
    if (call->version == 0)
        return onnx_fail(call, MUC_MALFORMED, "the model imports no operator set of domain '%s'",
                         domain);
    if (other)
        return onnx_fail(call, MUC_UNSUPPORTED,
                         "version %" PRId64 " of the operator set of domain '%s'; muc reads the "
                         "operator in versions %" PRId64 " to %" PRId64,
                         call->version, domain, other->first, other->last);
    if (muc_listing_is_short(&call->im->network->listing)) /* of a branch */
        return muc_listing_refuse(call->im->ctx, call->im->source->path,
                                  &call->im->network->listing);
    return onnx_fail(call, MUC_UNSUPPORTED,
                     "muc knows no such operator of domain '%s', version %" PRId64, domain,
                     call->version);
}

/* ---- what importers share ---- */

uint32_t onnx_output_count(const onnx_call *call, muc_op op)
{
    uint32_t count = op == call->row->op && !call->binds ? (uint32_t)call->proto->n_output : 1,
             least = muc_op_get(op)->least_outputs;

    if (call->row->import == onnx_import_recurrent) /* states are there whether named or not */
        return muc_op_get(op)->most_outputs;
    while (count > least && !onnx_has_output(call, count - 1))
        count--;
    return count > least ? count : least;
}

muc_status onnx_import_recipe(onnx_call *call)
{
    return onnx_cook(call, "%s", call->row->recipe);
}

/* results of these are always known where the node is right */
muc_status onnx_import_known(onnx_call *call)
{
    return onnx_fail(call, MUC_MALFORMED, "%zu outputs, expected 1", call->proto->n_output);
}

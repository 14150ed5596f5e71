/* rows.c - the table of operators, and the importer of those that are one node as they are. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "formats/onnx/evaluate.h"
#include "formats/onnx/onnx.h"
#include "formats/onnx/operators.h"

static const onnx_row rows[] = {
#define ONNX_OP(domain, name, first, last, op, import, evaluate) \
    { domain, name, first, last, onnx_import_##import, MUC_OP_##op, onnx_evaluate_##evaluate },
#include "formats/onnx/ops.def"
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

static const char *text(const char *s)
{
    return s ? s : "";
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
    const char *domain = text(call->proto->domain), *name = text(call->proto->op_type);
    const onnx_row *other = NULL;

    if (strcmp(domain, "ai.onnx") == 0)
        domain = "";
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

/* ---- plain ---- */

#define NONE NAN
static const struct attribute {
    const char *op, *name;
    enum { INTEGER, REAL, INTEGERS, WORD, AXIS, IGNORED, UNUSED } kind;
    muc_attribute_key key;
    double fallback;
} attributes[] = {
#define ONNX_ATTRIBUTE(op, name, kind, key, fallback) { op, name, kind, MUC_KEY_##key, fallback },
#include "formats/onnx/attributes.def"
#undef ONNX_ATTRIBUTE
};

muc_status onnx_word(const onnx_call *call, const char *name, const char *value, muc_word *out)
{
    char lower[64];
    size_t i;

    for (i = 0; value[i] && i < sizeof(lower) - 1; i++)
        lower[i] = (char)tolower((unsigned char)value[i]);
    lower[i] = '\0';
    return muc_word_find(lower, out)
               ? MUC_OK
               : onnx_fail(call, MUC_UNSUPPORTED, "attribute '%s' is '%.60s'", name, value);
}

static muc_status take_word(onnx_call *call, const struct attribute *row, muc_attributes *out)
{
    const char *value;
    muc_word word;

    MUC_TRY(onnx_string(call, row->name, NULL, &value));
    if (!value)
        return MUC_OK;
    MUC_TRY(onnx_word(call, row->name, value, &word));
    muc_attributes_set(out, row->key, word);
    return MUC_OK;
}

static muc_status take_integer(onnx_call *call, const struct attribute *row, muc_attributes *out)
{
    int64_t value, fallback = isnan(row->fallback) ? 0 : (int64_t)row->fallback;
    uint32_t tensor, axis;

    MUC_TRY(onnx_integer(call, row->name, fallback, &value));
    if (row->kind == IGNORED)
        return value == fallback ? MUC_OK
                                 : onnx_fail(call, MUC_UNSUPPORTED, "attribute '%s' is %" PRId64,
                                             row->name, value);
    if (row->kind == AXIS) {
        MUC_TRY(onnx_input(call, 0, &tensor));
        MUC_TRY(onnx_axis(call, value, onnx_tensor(call, tensor)->rank, &axis));
        value = axis;
    }
    muc_attributes_set(out, row->key, value);
    return MUC_OK;
}

static bool is_there(const onnx_call *call, const char *name)
{
    for (size_t i = 0; i < call->proto->n_attribute; i++)
        if (call->proto->attribute[i]->name && strcmp(call->proto->attribute[i]->name, name) == 0)
            return true;
    return false;
}

static muc_status take_attribute(onnx_call *call, const struct attribute *row, muc_attributes *out)
{
    const Onnx__AttributeProto *unused;
    const int64_t *items;
    size_t count;
    double real;

    if (isnan(row->fallback) && !is_there(call, row->name))
        return MUC_OK;
    switch (row->kind) {
    case REAL:
        MUC_TRY(onnx_real(call, row->name, row->fallback, &real));
        muc_attributes_set_real(out, row->key, real);
        return MUC_OK;
    case WORD:
        return take_word(call, row, out);
    case INTEGERS:
        MUC_TRY(onnx_integers(call, row->name, &items, &count));
        muc_attributes_set_integers(out, row->key, items, (uint32_t)count);
        return MUC_OK;
    case UNUSED:
        return onnx_attribute(call, row->name, &unused);
    case INTEGER:
    case AXIS:
    case IGNORED:
        break;
    }
    return take_integer(call, row, out);
}

muc_status onnx_plain_attributes(onnx_call *call, muc_attributes *out)
{
    out->count = 0;
    for (size_t i = 0; i < MUC_COUNT(attributes); i++)
        if (strcmp(attributes[i].op, call->row->name) == 0)
            MUC_TRY(take_attribute(call, &attributes[i], out));
    return MUC_OK;
}

muc_status onnx_all_inputs(onnx_call *call, uint32_t **out, uint32_t *count)
{
    *count = onnx_input_count(call);
    if (call->proto->n_input > MUC_GRAPH_MAX_INPUTS)
        return onnx_fail(call, MUC_UNSUPPORTED, "%zu inputs, at most %d", call->proto->n_input,
                         MUC_GRAPH_MAX_INPUTS);
    MUC_TRY(MUC_ARENA_NEW(call->im->ctx, &call->im->arena, *count + (size_t)1, out));
    for (uint32_t i = 0; i < *count; i++)
        MUC_TRY(onnx_input_or_none(call, i, &(*out)[i]));
    return MUC_OK;
}

/* outputs that the file wants, but no fewer than the operator has */
uint32_t onnx_output_count(const onnx_call *call)
{
    uint32_t count = (uint32_t)call->proto->n_output,
             least = muc_op_get(call->row->op)->least_outputs;

    while (count > least && !onnx_has_output(call, count - 1))
        count--;
    return count > least ? count : least;
}

muc_status onnx_import_plain(onnx_call *call)
{
    muc_attributes a;
    uint32_t *inputs, count;

    MUC_TRY(onnx_plain_attributes(call, &a));
    MUC_TRY(onnx_all_inputs(call, &inputs, &count));
    return onnx_emit(call, call->row->op, inputs, count, &a, onnx_output_count(call));
}

/* results of these are always known where the node is right */
muc_status onnx_import_known(onnx_call *call)
{
    return onnx_fail(call, MUC_MALFORMED, "%zu outputs, expected 1", call->proto->n_output);
}

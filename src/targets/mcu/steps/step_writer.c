/* step_writer.c - values and steps of a program, made from a graph's tensors and nodes. */
#include "targets/mcu/steps/step_writer.h"

#include <string.h>

/* ---- tensors ---- */

const muc_tensor *muc_mcu_input(const muc_mcu_lowering *l, const muc_node *node, uint32_t i)
{
    uint32_t id = muc_node_input(node, i);

    return id == MUC_NO_ID ? NULL : &l->graph->tensors[id];
}

bool muc_mcu_is_state(const muc_mcu_lowering *l, const muc_node *node, uint32_t i)
{
    const muc_tensor *tensor = muc_mcu_input(l, node, i);

    return tensor && tensor->kind == MUC_TENSOR_STATE;
}

const muc_tensor *muc_mcu_output(const muc_mcu_lowering *l, const muc_node *node, uint32_t i)
{
    return &l->graph->tensors[node->outputs[i]];
}

uint32_t muc_mcu_dim(const muc_mcu_lowering *l, const muc_tensor *tensor, uint32_t i)
{
    const muc_expr_node *e = muc_expr_get(l->graph->pool, tensor->dims[i]);

    return e->op == MUC_EXPR_CONST ? e->immediate : 0;
}

uint64_t muc_mcu_elements(const muc_mcu_lowering *l, const muc_tensor *tensor, uint32_t from,
                          uint32_t end)
{
    uint64_t count = 1;

    for (uint32_t i = from; i < end; i++)
        count *= muc_mcu_dim(l, tensor, i);
    return count;
}

uint64_t muc_mcu_most_elements(const muc_mcu_lowering *l, const muc_tensor *tensor)
{
    uint64_t count = 1;

    for (uint32_t i = 0; i < tensor->rank; i++)
        if (!muc_mul_u64(count, muc_expr_get(l->graph->pool, tensor->dims[i])->hi, &count))
            return UINT64_MAX;
    return count;
}

bool muc_mcu_is_static(const muc_mcu_lowering *l, const muc_tensor *tensor)
{
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (!muc_expr_is_const(l->graph->pool, tensor->dims[i]))
            return false;
    return true;
}

/* ---- values ---- */

static muc_status measure(const muc_mcu_lowering *l, const muc_tensor *tensor, uint64_t *bytes)
{
    uint64_t count = muc_mcu_most_elements(l, tensor);
    const muc_dtype_info *info = muc_dtype_get(tensor->dtype);

    if (info->block_elements != 1)
        return muc_fail(l->ctx, MUC_UNSUPPORTED, l->graph->name, MUC_NO_OFFSET,
                        "tensor '%s': C code has no type for %s", tensor->name, info->name);
    if (muc_mul_u64(count, info->block_bytes, bytes) && *bytes <= UINT32_MAX)
        return MUC_OK;
    return muc_fail(l->ctx, MUC_NOFIT, l->graph->name, MUC_NO_OFFSET,
                    "tensor '%s' has more than 4 GiB", tensor->name);
}

/* words that a header for C and C++ cannot call a member, and a port whose sizes would be the
 * arena's */
static bool is_reserved(const char *name)
{
    static const char *const words[] = {
        "alignas",  "alignof",   "and",     "and_eq",     "arena",     "asm",       "auto",
        "bitand",   "bitor",     "bool",    "break",      "case",      "catch",     "char",
        "class",    "compl",     "const",   "const_cast", "constexpr", "continue",  "decltype",
        "default",  "delete",    "do",      "double",     "else",      "enum",      "explicit",
        "export",   "extern",    "false",   "float",      "for",       "friend",    "goto",
        "if",       "inline",    "int",     "long",       "mutable",   "namespace", "new",
        "noexcept", "not",       "not_eq",  "nullptr",    "operator",  "or",        "or_eq",
        "private",  "protected", "public",  "register",   "restrict",  "return",    "short",
        "signed",   "sizeof",    "static",  "struct",     "switch",    "template",  "this",
        "throw",    "true",      "try",     "typedef",    "typeid",    "typename",  "union",
        "unsigned", "using",     "virtual", "void",       "volatile",  "wchar_t",   "while",
        "xor",      "xor_eq",
    };

    for (size_t i = 0; i < MUC_COUNT(words); i++)
        if (muc_are_alike(words[i], name, strlen(words[i]) + 1))
            return true;
    return false;
}

static bool name_is_taken(const muc_mcu_program *program, const char *name)
{
    for (uint32_t i = 0; i < program->value_count; i++)
        if (muc_are_alike(program->values[i].name, name, strlen(name) + 1))
            return true; /* macros are capitals */
    return false;
}

/* inputs and outputs have names that their users see; others only need to differ */
static muc_status name_value(muc_mcu_lowering *l, const muc_tensor *tensor, bool is_port,
                             const char **out)
{
    muc_mcu_program *program = l->program;
    const char *name;

    if (!is_port)
        return muc_arena_format(l->ctx, &program->arena, out, "%s%u",
                                tensor->kind == MUC_TENSOR_CONST ? "w" : "t",
                                (unsigned)(tensor - l->graph->tensors));
    MUC_TRY(muc_mcu_identifier(l->ctx, &program->arena, tensor->name, &name));
    if (is_reserved(name))
        MUC_TRY(muc_arena_format(l->ctx, &program->arena, &name, "%s_", name));
    *out = name;
    for (unsigned i = 2; name_is_taken(program, *out); i++)
        MUC_TRY(muc_arena_format(l->ctx, &program->arena, out, "%s_%u", name, i));
    return MUC_OK;
}

static bool is_graph_output(const muc_graph *graph, uint32_t tensor)
{
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (graph->outputs[i] == tensor)
            return true;
    return false;
}

uint32_t muc_mcu_inner_input(const muc_mcu_lowering *l, uint32_t id)
{
    const muc_graph *graph = l->graph;
    uint32_t inner = id, readers = 0;

    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t j = 0; j < graph->nodes[i].input_count; j++)
            if (graph->nodes[i].inputs[j] == id) {
                readers++;
                if (graph->nodes[i].op == MUC_OP_QUANTIZE)
                    inner = graph->nodes[i].outputs[0];
            }
    return readers == 1 && graph->tensors[id].dtype == MUC_F32 && !is_graph_output(graph, id)
               ? inner
               : id;
}

bool muc_mcu_is_boundary(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_graph *graph = l->graph;

    if (node->op == MUC_OP_QUANTIZE)
        return graph->tensors[node->inputs[0]].kind == MUC_TENSOR_INPUT &&
               muc_mcu_inner_input(l, node->inputs[0]) == node->outputs[0];
    if (muc_graph_integers_of(graph, node->outputs[0]) == MUC_NO_ID ||
        !is_graph_output(graph, node->outputs[0]) || is_graph_output(graph, node->inputs[0]))
        return false;
    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t j = 0; j < graph->nodes[i].input_count; j++)
            if (graph->nodes[i].inputs[j] == node->outputs[0])
                return false;
    return true;
}

/* whether the program gives this tensor to its user */
static bool is_program_output(const muc_mcu_lowering *l, uint32_t id)
{
    const muc_graph *graph = l->graph;

    if (is_graph_output(graph, id))
        return true;
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (muc_graph_integers_of(graph, graph->nodes[i].outputs[0]) == id &&
            muc_mcu_is_boundary(l, &graph->nodes[i]))
            return true;
    return false;
}

/* what the user may see beside outputs: the value keeps its name */
static bool is_outside(const muc_mcu_lowering *l, uint32_t id)
{
    const muc_graph *graph = l->graph;

    if (graph->tensors[id].kind == MUC_TENSOR_INPUT || graph->tensors[id].kind == MUC_TENSOR_STATE)
        return true;
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        if (graph->tensors[i].kind == MUC_TENSOR_INPUT && muc_mcu_inner_input(l, i) == id)
            return true;
    return false;
}

muc_status muc_mcu_add_tensor(muc_mcu_lowering *l, uint32_t id, uint32_t *out)
{
    static const muc_mcu_value_kind kinds[] = {
        [MUC_TENSOR_INPUT] = MUC_MCU_INPUT,
        [MUC_TENSOR_CONST] = MUC_MCU_CONST,
        [MUC_TENSOR_STATE] = MUC_MCU_STATE_DATA,
        [MUC_TENSOR_ACTIVATION] = MUC_MCU_ACTIVATION,
    };
    const muc_tensor *tensor = &l->graph->tensors[id];
    muc_mcu_value value = {
        .kind = kinds[tensor->kind],
        .tensor = tensor,
        .view_of = MUC_NO_ID,
        .data = tensor->data,
        .is_output = is_program_output(l, id),
    };

    value.used = value.is_output;
    MUC_TRY(measure(l, tensor, &value.bytes));
    MUC_TRY(name_value(l, tensor, value.is_output || is_outside(l, id), &value.name));
    MUC_TRY(muc_mcu_add_value(l->ctx, l->program, &value, out));
    l->program->value_of[id] = *out;
    return MUC_OK;
}

muc_status muc_mcu_input_value(muc_mcu_lowering *l, const muc_node *node, uint32_t i, uint32_t *out)
{
    uint32_t id = node->inputs[i];

    *out = l->program->value_of[id];
    return *out != MUC_NO_ID ? MUC_OK : muc_mcu_add_tensor(l, id, out);
}

muc_status muc_mcu_output_value(muc_mcu_lowering *l, const muc_node *node, uint32_t i,
                                uint32_t *out)
{
    return muc_mcu_add_tensor(l, node->outputs[i], out);
}

muc_status muc_mcu_make_view(muc_mcu_lowering *l, const muc_node *node, uint64_t offset)
{
    uint32_t in, out;
    uint64_t in_root;

    MUC_TRY(muc_mcu_input_value(l, node, 0, &in));
    MUC_TRY(muc_mcu_output_value(l, node, 0, &out));
    l->program->values[out].view_of = in;
    l->program->values[out].view_offset = offset;
    if (l->program->values[out].is_output)
        l->program->values[muc_mcu_root(l->program, out, &in_root)].used = true;
    return MUC_OK;
}

muc_status muc_mcu_new_constant(muc_mcu_lowering *l, const char *name, const void *data,
                                uint64_t bytes, uint32_t *out)
{
    muc_mcu_value value = {
        .kind = MUC_MCU_CONST,
        .view_of = MUC_NO_ID,
        .bytes = bytes,
        .data = data,
    };

    MUC_TRY(
        muc_arena_format(l->ctx, &l->program->arena, &value.name, "%s_%s", l->step->name, name));
    return muc_mcu_add_value(l->ctx, l->program, &value, out);
}

muc_status muc_mcu_new_packed(muc_mcu_lowering *l, const char *name, const void *data,
                              uint64_t bytes, uint32_t *out)
{
    MUC_TRY(muc_mcu_new_constant(l, name, data, bytes, out));
    l->program->values[*out].used = true;
    l->step->packed_bytes = bytes;
    return MUC_OK;
}

/* ---- steps ---- */

muc_status muc_mcu_begin_step(muc_mcu_lowering *l, const muc_node *node, const char *function)
{
    l->text.size = 0;
    MUC_TRY(muc_mcu_add_step(l->ctx, l->program, node, &l->step));
    l->step->function = function ? function : l->step->name;
    l->step->note = l->note;
    l->note = NULL;
    for (uint32_t i = 0; i < node->output_count; i++) {
        uint32_t value;

        MUC_TRY(muc_mcu_output_value(l, node, i, &value));
    }
    return MUC_OK;
}

static muc_status pass(muc_mcu_lowering *l, muc_mcu_argument_kind kind, uint32_t value)
{
    muc_mcu_argument argument = { .kind = kind, .value = value, .dtype = MUC_U8 };

    if (l->program->values[value].tensor)
        argument.dtype = l->program->values[value].tensor->dtype;
    return muc_mcu_add_argument(l->ctx, l->program, l->step, &argument);
}

muc_status muc_mcu_pass_text(muc_mcu_lowering *l, const char *format, ...)
{
    muc_mcu_argument argument = { .kind = MUC_MCU_TEXT };
    muc_text text = { 0 };
    muc_status status;
    va_list args;

    va_start(args, format);
    muc_text_add_args(&text, format, args);
    va_end(args);
    status = muc_text_status(l->ctx, &text);
    if (status == MUC_OK)
        status = muc_arena_string(l->ctx, &l->program->arena, text.data ? text.data : "", text.size,
                                  &argument.text);
    muc_text_free(&text);
    MUC_TRY(status);
    return muc_mcu_add_argument(l->ctx, l->program, l->step, &argument);
}

muc_status muc_mcu_pass_input(muc_mcu_lowering *l, uint32_t i)
{
    uint32_t value;

    MUC_TRY(muc_mcu_input_value(l, l->step->node, i, &value));
    return pass(l, muc_mcu_is_state(l, l->step->node, i) ? MUC_MCU_WRITE : MUC_MCU_READ, value);
}

muc_status muc_mcu_pass_output(muc_mcu_lowering *l, uint32_t i)
{
    return pass(l, MUC_MCU_WRITE, l->program->value_of[l->step->node->outputs[i]]);
}

muc_status muc_mcu_pass_constant(muc_mcu_lowering *l, uint32_t value, muc_dtype dtype)
{
    const muc_mcu_argument argument = { .kind = MUC_MCU_READ, .value = value, .dtype = dtype };

    return muc_mcu_add_argument(l->ctx, l->program, l->step, &argument);
}

muc_status muc_mcu_pass_scratch(muc_mcu_lowering *l, uint64_t bytes)
{
    muc_mcu_value value = { .kind = MUC_MCU_SCRATCH, .view_of = MUC_NO_ID, .bytes = bytes };
    uint32_t id;

    if (bytes == 0)
        return muc_mcu_pass_text(l, "NULL");
    MUC_TRY(muc_arena_format(l->ctx, &l->program->arena, &value.name, "%s_scratch", l->step->name));
    MUC_TRY(muc_mcu_add_value(l->ctx, l->program, &value, &id));
    return pass(l, MUC_MCU_WORKING, id);
}

void muc_mcu_may_overlap(muc_mcu_lowering *l, uint32_t i, int64_t lead)
{
    muc_mcu_step *step = l->step;

    if (step->overlap_count < MUC_MCU_MOST_OVERLAPS)
        step->overlaps[step->overlap_count++] = (muc_mcu_overlap){
            .in = l->program->value_of[step->node->inputs[i]],
            .out = l->program->value_of[step->node->outputs[0]],
            .lead = lead,
        };
}

muc_status muc_mcu_end_step(muc_mcu_lowering *l, uint64_t macs)
{
    l->step->macs = macs;
    MUC_TRY(muc_text_status(l->ctx, &l->text));
    return muc_arena_string(l->ctx, &l->program->arena, l->text.data ? l->text.data : "",
                            l->text.size, &l->step->text);
}

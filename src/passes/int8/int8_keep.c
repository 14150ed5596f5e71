/* int8_keep.c - marks the nodes that the user asks to keep in float32, by name or by operator. */
#include <ctype.h>

#include "base/choice.h"
#include "passes/int8/int8_pass.h"

/* "LeakyRelu" is leaky_relu */
static bool is_operator(muc_op op, const char *word, size_t length)
{
    const char *name = muc_op_get(op)->name;

    for (size_t i = 0; i < length; i++) {
        if (word[i] == '_')
            continue;
        while (*name == '_')
            name++;
        if (tolower((unsigned char)word[i]) != *name++)
            return false;
    }
    return *name == '\0';
}

/* by name, or by that which its result has with channels last */
static bool is_called(const char *name, const char *word, size_t length)
{
    return strncmp(name, word, length) == 0 &&
           (name[length] == '\0' || strcmp(name + length, "/last") == 0);
}

static bool is_node(const muc_rewrite *r, const muc_node *node, const char *word, size_t length)
{
    for (uint32_t i = 0; i < node->output_count; i++)
        if (is_called(muc_rewrite_old(r, node->outputs[i])->name, word, length))
            return true;
    return is_operator(node->op, word, length);
}

bool muc_int8_is_kept(const muc_rewrite *r, const muc_node *node, const char *list)
{
    for (const char *at = list; at && *at; at += *at != '\0') {
        size_t length = strcspn(at, ",\n");

        if (is_node(r, node, at, length))
            return true;
        at += length;
    }
    return false;
}

/* whether a node before has the operator, too */
static bool is_told(const pass *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (p->r.needed[i] && p->r.old.nodes[i].op == p->r.old.nodes[n].op)
            return true;
    return false;
}

static muc_status unknown(const pass *p, const char *word, size_t length)
{
    muc_choice choice;

    muc_choice_begin(&choice, word, length);
    for (uint32_t n = 0; n < p->r.old.node_count; n++)
        if (p->r.needed[n] && !is_told(p, n))
            muc_choice_add(&choice, muc_op_get(p->r.old.nodes[n].op)->name);
    for (uint32_t n = 0; n < p->r.old.node_count; n++)
        if (p->r.needed[n])
            muc_choice_add(&choice, p->r.old.nodes[n].name);
    return muc_choice_refuse(p->r.ctx, &choice, MUC_USAGE, p->r.old.name,
                             "operator or node to keep in float32 called");
}

static bool keep_nodes(pass *p, const char *word, size_t length)
{
    bool found = false;

    for (uint32_t n = 0; n < p->r.old.node_count; n++)
        if (p->r.needed[n] && is_node(&p->r, &p->r.old.nodes[n], word, length))
            p->kept[n] = found = true;
    return found;
}

muc_status muc_int8_keep(pass *p, const char *list)
{
    for (const char *at = list; at && *at; at += *at == ',') {
        const char *first = at, *end = at + strcspn(at, ",");
        bool found = false;

        for (; !found && at < end; at += *at == '\n') {
            size_t length = strcspn(at, ",\n");

            found = keep_nodes(p, at, length);
            at += length;
        }
        if (!found)
            return unknown(p, first, strcspn(first, ",\n"));
        at = end;
    }
    return MUC_OK;
}

/* ---- before passes change the network ---- */

/* whether the node before may take over what the operator does */
static bool is_absorbed(muc_op op)
{
    return muc_op_has(op, MUC_OP_AFFINE | MUC_OP_MOVES);
}

/* the names of what may become of the tensor */
static void trace(const muc_graph *graph, uint32_t tensor, muc_text *text)
{
    for (uint32_t hops = 0; hops < graph->node_count; hops++) {
        uint32_t input;
        const muc_node *reader = muc_graph_only_reader(graph, tensor, &input);

        if (!reader || !is_absorbed(reader->op))
            return;
        tensor = reader->outputs[0];
        muc_text_add(text, "\n%s", graph->tensors[tensor].name);
    }
}

muc_status muc_int8_trace(muc_context *ctx, const muc_graph *graph, const char *keep,
                          muc_arena *arena, const char **out)
{
    muc_text text = { 0 };
    muc_status status;

    *out = NULL;
    for (const char *at = keep; at && *at; at += *at == ',') {
        size_t length = strcspn(at, ",");

        muc_text_add(&text, at == keep ? "%.*s" : ",%.*s", (int)length, at);
        for (uint32_t i = 0; i < graph->tensor_count; i++)
            if (graph->tensors[i].kind == MUC_TENSOR_ACTIVATION &&
                strlen(graph->tensors[i].name) == length &&
                memcmp(graph->tensors[i].name, at, length) == 0)
                trace(graph, i, &text);
        at += length;
    }
    status = muc_text_status(ctx, &text);
    if (status == MUC_OK && text.size)
        status = muc_arena_string(ctx, arena, text.data, text.size, out);
    muc_text_free(&text);
    return status;
}

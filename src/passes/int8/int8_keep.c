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

static bool is_node(const pass *p, const muc_node *node, const char *word, size_t length)
{
    for (uint32_t i = 0; i < node->output_count; i++) {
        const char *name = old(p, node->outputs[i])->name;

        if (strlen(name) == length && memcmp(name, word, length) == 0)
            return true;
    }
    return is_operator(node->op, word, length);
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

muc_status muc_int8_keep(pass *p, const char *list)
{
    for (const char *at = list; at && *at; at += *at == ',') {
        size_t length = strcspn(at, ",");
        bool found = false;

        for (uint32_t n = 0; n < p->r.old.node_count; n++)
            if (p->r.needed[n] && is_node(p, &p->r.old.nodes[n], at, length))
                p->kept[n] = found = true;
        if (!found)
            return unknown(p, at, length);
        at += length;
    }
    return MUC_OK;
}

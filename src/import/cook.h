/* cook.h - a recipe at work: what recipe.c and recipe_attributes.c share. */
#ifndef MUC_COOK_H
#define MUC_COOK_H

#include "import/recipe.h"

enum { WORD = 384, MOST_VALUES = 24, MOST_NUMBERS = 8, MAX_RANK = MUC_GRAPH_MAX_RANK };

typedef struct cook {
    const muc_file_node *node;
    const char *recipe, *at;
    char word[WORD]; /* the last that was read */
    struct {
        char name[WORD];
        uint32_t id;
    } values[MOST_VALUES]; /* of earlier statements */
    uint32_t value_count;
    uint32_t *inputs, count; /* of the statement at work */
    muc_attributes a;
} cook;

static inline const muc_tensor *muc_cook_tensor(const cook *c, uint32_t id)
{
    return &c->node->graph->tensors[id];
}

#define muc_cook_refuse(node, status, ...) \
    muc_fail_on((node)->functions->subject((node)->self), status, __VA_ARGS__)
/* The recipe itself is wrong at the last word. */
muc_status muc_cook_no_sense(const cook *c);
/* An input, MUC_NO_ID where it is left out; the other must be there. */
muc_status muc_cook_input_or_none(const cook *c, uint32_t i, uint32_t *id);
muc_status muc_cook_input(const cook *c, uint32_t i, uint32_t *id);
/* "0.5", "@name" or "@name:fallback" */
muc_status muc_cook_real(const cook *c, char *text, double *out);
/* The word "key=value", to the statement's attributes. */
muc_status muc_cook_attribute(cook *c, muc_op op, char *equals);
/* "name", of no meaning, or "name==value", of which the value alone is read. */
muc_status muc_cook_check(const cook *c, char *name);
/* Whether the attribute of "name==value" has the value; name is cut off behind the name. */
muc_status muc_cook_compare(const cook *c, char *name, bool *is_absent, bool *is_equal);

#endif

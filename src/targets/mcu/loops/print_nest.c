/* print_nest.c - writes down the loops that src/operators has for an operator. */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "operators/nest.h"
#include "targets/mcu/loops/loop_nest.h"
#include "targets/mcu/program/c_text.h"

/* A nest at work. */
typedef struct printing {
    muc_mcu_lowering *l;
    const muc_nest *nest;
    const muc_node *node;
    size_t numbers[MUC_NEST_MOST_NUMBERS];
    unsigned depth;
    bool at_start; /* of a line */
} printing;

static muc_nest_shape shape_of(const muc_mcu_lowering *l, const muc_tensor *tensor)
{
    muc_nest_shape shape = { tensor->rank, { 0 } };

    for (uint32_t i = 0; i < tensor->rank; i++)
        shape.dims[i] = muc_mcu_dim(l, tensor, i);
    return shape;
}

bool muc_mcu_takes_nest(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_nest *nest = muc_nest_of(node->op);
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    bool moves = nest->loops[MUC_F16] != NULL; /* any type */
    bool is_number = !x->quantization &&
                     (x->dtype == MUC_F32 || muc_dtype_get(x->dtype)->kind == MUC_DTYPE_INTEGER);

    for (uint32_t i = 0; i < node->input_count; i++)
        if (!muc_mcu_is_static(l, muc_mcu_input(l, node, i)))
            return false;
    if (nest->flags & MUC_NEST_COMBINES &&
        muc_node_word_or(node, MUC_KEY_REDUCTION, MUC_WORD_NONE) != MUC_WORD_NONE)
        return is_number;
    return muc_mcu_is_static(l, muc_mcu_output(l, node, 0)) && nest->loops[x->dtype] &&
           (x->dtype != MUC_F64 || moves) && (!x->quantization || nest->flags & MUC_NEST_QUANTIZED);
}

/* what C calls a type of the loops; NULL: the word is none */
static const char *type_of(const printing *p, const char *word, size_t length)
{
    const muc_tensor *x = muc_mcu_input(p->l, p->node, 0);

    if (length == 1 && *word == 'A' && x->dtype != MUC_F32) /* unsigned sums wrap */
        return muc_dtype_get(x->dtype)->block_bytes > 4 ? "uint64_t" : "uint32_t";
    if (length == 1 && (*word == 'T' || *word == 'A'))
        return muc_mcu_c_type(x->dtype);
    if (length == 5 && memcmp(word, "ABOVE", 5) == 0)
        return x->dtype == MUC_F32 ? "mur_above" : "mur_above_whole";
    if (length == 6 && memcmp(word, "LESSER", 6) == 0)
        return x->dtype == MUC_F32 ? "mur_min" : "mur_lesser";
    if (length == 6 && memcmp(word, "LARGER", 6) == 0)
        return x->dtype == MUC_F32 ? "mur_max" : "mur_larger";
    if (length == 2 && memcmp(word, "AT", 2) == 0)
        return "mur_wrap_index";
    if (length == 1 && *word == 'Y')
        return muc_mcu_c_type(muc_mcu_output(p->l, p->node, 0)->dtype);
    if (length == 1 && *word == 'B')
        return muc_mcu_c_type(muc_mcu_input(p->l, p->node, 1)->dtype);
    return length == 5 && memcmp(word, "INDEX", 5) == 0   ? "uint32_t"
           : length == 5 && memcmp(word, "PLACE", 5) == 0 ? "int32_t"
                                                          : NULL;
}

static void print_word(printing *p, const char *word, size_t length)
{
    const char *type = type_of(p, word, length);
    muc_text *text = &p->l->text;

    for (size_t i = 0; p->nest->names[i]; i++)
        if (strlen(p->nest->names[i]) == length && memcmp(p->nest->names[i], word, length) == 0) {
            muc_text_add(text, "%zuu", p->numbers[i]);
            return;
        }
    muc_text_add(text, "%.*s", type ? (int)strlen(type) : (int)length, type ? type : word);
}

static void end_line(printing *p)
{
    muc_text_add(&p->l->text, "\n");
    p->at_start = true;
}

/* the sign at *at, which may open or end a block or a statement; what `=` opens stays in its line
 */
static void print_sign(printing *p, const char *at, unsigned *parentheses, unsigned *values)
{
    *parentheses += *at == '(';
    *parentheses -= *at == ')';
    *values += *at == '{' && (*values || at[-2] == '=');
    if (*at == '}' && !*values)
        p->depth--;
    if (p->at_start && *at != ' ')
        muc_mcu_indent(&p->l->text, p->depth);
    if (!p->at_start || *at != ' ')
        muc_text_add(&p->l->text, "%c", *at);
    p->at_start = p->at_start && *at == ' ';
    if (*at == '{' && !*values)
        p->depth++;
    if (!*values && !*parentheses && (*at == ';' || *at == '{' || *at == '}'))
        end_line(p);
    *values -= *at == '}' && *values;
}

/* the loops without their outermost braces */
static void print_loops(printing *p)
{
    const char *at = p->nest->text + 1, *end = p->nest->text + strlen(p->nest->text) - 1;
    unsigned parentheses = 0, values = 0;

    while (at < end) {
        size_t length = 0;

        while (isalnum((unsigned char)at[length]) || at[length] == '_' || at[length] == '.')
            length++;
        if (!length) {
            print_sign(p, at++, &parentheses, &values);
            continue;
        }
        if (p->at_start)
            muc_mcu_indent(&p->l->text, p->depth);
        p->at_start = false;
        print_word(p, at, length);
        at += length;
    }
}

muc_status muc_mcu_write_nest(muc_mcu_lowering *l, const muc_node *node)
{
    printing p = {
        .l = l, .nest = muc_nest_of(node->op), .node = node, .depth = 1, .at_start = true
    };
    muc_nest_node n = { .node = node };

    for (uint32_t i = 0; i < node->input_count; i++)
        n.inputs[i] = shape_of(l, muc_mcu_input(l, node, i));
    for (uint32_t i = 0; i < node->output_count; i++)
        n.outputs[i] = shape_of(l, muc_mcu_output(l, node, i));
    p.nest->measure(&n, p.numbers);
    MUC_TRY(muc_mcu_begin_function(l, node));
    print_loops(&p);
    MUC_TRY(muc_mcu_end_function(l, 0, 0));
    if (p.nest->flags & MUC_NEST_IN_PLACE)
        muc_mcu_may_overlap(l, 0, 0);
    return MUC_OK;
}

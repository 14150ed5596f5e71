/* step_function.c - a step written as a function of the program itself. */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "graph/scales.h"
#include "targets/mcu/program/c_text.h"
#include "targets/mcu/loops/loop_nest.h"
#include "targets/mcu/tiles/tiles.h"

const char *muc_mcu_input_name(uint32_t i)
{
    static const char names[][2] = { "a", "b", "c", "d", "e", "f", "g", "h", "j", "k", "l", "n",
                                     "o", "p", "q", "r", "s", "t", "u", "v", "w", "x", "z" };

    return i < MUC_COUNT(names) ? names[i] : "?";
}

const char *muc_mcu_output_name(uint32_t i)
{
    static const char names[][4] = { "y",  "y1", "y2",  "y3",  "y4",  "y5",  "y6",  "y7",
                                     "y8", "y9", "y10", "y11", "y12", "y13", "y14", "y15" };

    return i < MUC_COUNT(names) ? names[i] : "?";
}

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* whether a text has the identifier that is prefix and word */
static bool has_word(const char *text, const char *prefix, const char *word)
{
    size_t before = strlen(prefix), length = strlen(word);

    for (const char *at = text; (at = strstr(at, prefix)); at++)
        if ((at == text || !in_word(at[-1])) && strncmp(at + before, word, length) == 0 &&
            !in_word(at[before + length]))
            return true;
    return false;
}

/* whether a text speaks of an identifier */
static bool speaks_of(const char *text, const char *word)
{
    return has_word(text, word, "");
}

static bool speaks_of_dim(const char *text, const muc_expr_pool *pool, uint32_t input)
{
    return has_word(text, MUC_MCU_DIM, muc_expr_get_input(pool, input)->name);
}

muc_status muc_mcu_begin_function(muc_mcu_lowering *l, const muc_node *node)
{
    return muc_mcu_begin_step(l, node, NULL);
}

/* whether tiles of an array come to the function */
static bool is_in_pieces(const muc_mcu_lowering *l, const char *name)
{
    for (uint32_t i = 0; l->pieces && i < l->pieces->count; i++)
        if (strcmp(l->pieces->names[i], name) == 0)
            return true;
    return false;
}

/* the parameters that the body uses, and the arguments for them */
static muc_status pass_all(muc_mcu_lowering *l, const char *body, uint64_t scratch_bytes,
                           muc_text *head)
{
    const muc_expr_pool *pool = l->graph->pool;
    const muc_node *node = l->step->node;

    for (uint32_t i = 0; i < node->input_count; i++) {
        const char *name = muc_mcu_input_name(i);

        if (node->inputs[i] == MUC_NO_ID || !(speaks_of(body, name) || is_in_pieces(l, name)))
            continue;
        muc_text_add(head, "%s%s *%s, ", muc_mcu_is_state(l, node, i) ? "" : "const ",
                     muc_mcu_c_type(muc_mcu_input(l, node, i)->dtype), name);
        MUC_TRY(muc_mcu_pass_input(l, i));
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!speaks_of(body, muc_mcu_output_name(i)) && !is_in_pieces(l, muc_mcu_output_name(i)))
            continue;
        muc_text_add(head, "%s *%s, ", muc_mcu_c_type(muc_mcu_output(l, node, i)->dtype),
                     muc_mcu_output_name(i));
        MUC_TRY(muc_mcu_pass_output(l, i));
    }
    if (scratch_bytes) {
        muc_text_add(head, "void *scratch, ");
        MUC_TRY(muc_mcu_pass_scratch(l, scratch_bytes));
    }
    for (uint32_t i = 0; i < muc_expr_input_count(pool); i++) {
        if (!speaks_of_dim(body, pool, i))
            continue;
        muc_text_add(head, "uint32_t ");
        muc_mcu_print_dim(pool, i, head);
        muc_text_add(head, ", ");
        l->program->arguments |= UINT64_C(1) << i;
        MUC_TRY(muc_mcu_pass_text(l, MUC_MCU_DIM "%s", muc_expr_get_input(pool, i)->name));
    }
    return MUC_OK;
}

void muc_mcu_print_table(muc_mcu_lowering *l, muc_dtype dtype, const char *name,
                         const int32_t *numbers, uint64_t count)
{
    muc_text_add(&l->text, "    static const %s %s[%" PRIu64 "] = {", muc_mcu_c_type(dtype), name,
                 count);
    for (uint64_t i = 0; i < count; i++)
        muc_text_add(&l->text, "%s%" PRId32 ",", i % 8 ? " " : "\n        ", numbers[i]);
    muc_text_add(&l->text, "\n    };\n");
    l->program->table_bytes += count * muc_dtype_get(dtype)->block_bytes;
}

/* what the piece function's operands are called there */
static void name_operands(const muc_mcu_lowering *l, const char *body, muc_text *text)
{
    const muc_node *node = l->step->node;

    for (uint32_t k = 0; k < l->pieces->count; k++) {
        const char *name = l->pieces->names[k], *type;
        uint32_t i = 0;

        if (!speaks_of(body, name))
            continue;
        while (i < node->input_count && strcmp(name, muc_mcu_input_name(i)) != 0)
            i++;
        type = muc_mcu_c_type(i < node->input_count ? muc_mcu_input(l, node, i)->dtype
                                                    : muc_mcu_output(l, node, 0)->dtype);
        if (i < node->input_count)
            muc_text_add(text, "    const %s *%s = (const %s *)(const void *)", type, name, type);
        else
            muc_text_add(text, "    %s *%s = (%s *)(void *)", type, name, type);
        muc_text_add(text, "piece->data[%" PRIu32 "];\n", k);
    }
}

/* the function of a piece, and *body becomes what runs it on all of them */
static void print_pieces(const muc_mcu_lowering *l, muc_text *body, muc_text *text)
{
    static const char *const words[] = { "rows", "channels", "depths" };
    const muc_mcu_pieces *pieces = l->pieces;
    const char *name = l->step->name;

    muc_text_add(
        text, "static void %s_piece(const mur_tiles_piece *piece, const void *kernel)\n{\n", name);
    name_operands(l, body->data, text);
    for (size_t i = 0; i < MUC_COUNT(words); i++)
        if (speaks_of(body->data, words[i]))
            muc_text_add(text, "    const uint32_t %s = piece->%s;\n", words[i], words[i]);
    muc_text_add(text, "\n    (void)kernel;\n%s}\n\n", body->data);
    body->size = 0;
    muc_text_add(body, "    void *const data[MUR_TILES_OPERANDS] = { ");
    for (uint32_t k = 0; k < pieces->count; k++)
        muc_text_add(body, k + 1 < pieces->count ? "(void *)(uintptr_t)%s, " : "%s };\n\n",
                     pieces->names[k]);
    muc_text_add(body, "    mur_tiles_run(&%s_tiles, NULL, %s_piece, NULL, data, tile_memory);\n",
                 name, name);
}

/* the values that the pieces' operands are */
static void name_values(const muc_mcu_lowering *l)
{
    const muc_node *node = l->step->node;

    for (uint32_t k = 0; k < l->pieces->count; k++) {
        uint32_t i = 0;

        while (i < node->input_count && strcmp(l->pieces->names[k], muc_mcu_input_name(i)) != 0)
            i++;
        l->step->tiled->values[k] =
            l->program->value_of[i < node->input_count ? node->inputs[i] : node->outputs[0]];
    }
}

/* the function's own text; of pieces, the one that runs them is kept apart */
static muc_status print_function(muc_mcu_lowering *l, muc_text *head, muc_text *body)
{
    muc_text runner = { 0 }, *text = &l->text;
    muc_status status;

    if (l->pieces) {
        print_pieces(l, body, &l->text);
        name_values(l);
        text = &runner;
    }
    MUC_TRY(muc_text_status(l->ctx, body));
    if (head->data[head->size - 1] == ' ')
        head->size -= 2; /* the comma after the last parameter */
    else
        muc_text_add(head, "void");
    muc_text_add(text, "%.*s)\n{\n%s}\n\n", (int)head->size, head->data,
                 body->data ? body->data : "");
    status = muc_text_status(l->ctx, text);
    if (status == MUC_OK && l->pieces)
        status = muc_arena_string(l->ctx, &l->program->arena, runner.data, runner.size,
                                  &l->step->tiled->runner);
    muc_text_free(&runner);
    return status;
}

/* ---- one piece ---- */

enum { IN_PER_OUT = 8, IN_AT_LEAST = 1024 }; /* bytes */

/* whether a tensor's bytes lie together, as many in every run */
static bool is_plain(const muc_mcu_lowering *l, uint32_t id)
{
    const muc_tensor *tensor = &l->graph->tensors[id];
    uint32_t value = l->program->value_of[id];

    return muc_mcu_is_static(l, tensor) &&
           (value == MUC_NO_ID || !l->program->values[value].layout) &&
           tensor->kind != MUC_TENSOR_STATE;
}

static uint64_t bytes_of(const muc_mcu_lowering *l, const muc_tensor *tensor)
{
    return muc_mcu_most_elements(l, tensor) * muc_dtype_get(tensor->dtype)->block_bytes;
}

static void add_whole(muc_mcu_tile_layer *layer, const char *name, uint64_t bytes, bool is_constant)
{
    layer->operands[layer->operand_count++] = (muc_mcu_tile_operand){
        .name = name,
        .rows = 1,
        .stride = 1,
        .window = 1,
        .pixels = 1,
        .pixel_bytes = (uint32_t)bytes,
        .is_constant = is_constant,
    };
}

/* A function that does not cut its arrays as one piece of them all; false if it uses more than they
 * are, or reads few of their bytes. */
static bool is_whole(const muc_mcu_lowering *l, const char *body, uint64_t macs,
                     muc_mcu_tile_layer *layer)
{
    const muc_node *node = l->step->node;
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    uint64_t out = bytes_of(l, y), in = 0;

    if (node->output_count != 1 || !is_plain(l, node->outputs[0]) ||
        l->program->values[l->program->value_of[node->outputs[0]]].view_of != MUC_NO_ID)
        return false;
    for (uint32_t i = 0; i < muc_expr_input_count(l->graph->pool); i++)
        if (speaks_of_dim(body, l->graph->pool, i))
            return false;
    *layer = (muc_mcu_tile_layer){
        .name = l->step->name, .rows = 1, .channels = 1, .multiple = 1, .work = macs
    };
    for (uint32_t i = 0; i < node->input_count; i++) {
        const muc_tensor *x = muc_mcu_input(l, node, i);

        if (!x || !speaks_of(body, muc_mcu_input_name(i)))
            continue;
        if (!is_plain(l, node->inputs[i]) || layer->operand_count + 1 == MUR_TILES_OPERANDS ||
            bytes_of(l, x) > UINT32_MAX / 2 || bytes_of(l, x) == 0)
            return false;
        in += bytes_of(l, x);
        add_whole(layer, muc_mcu_input_name(i), bytes_of(l, x), x->kind == MUC_TENSOR_CONST);
    }
    add_whole(layer, muc_mcu_output_name(0), out, false);
    layer->work += muc_mcu_most_elements(l, y);
    return out > 0 && in > 0 && out <= UINT32_MAX / 2 && in <= IN_PER_OUT * out + IN_AT_LEAST;
}

/* on a machine with tiles, what was not cut works on all of its arrays in the small memory */
static muc_status try_whole(muc_mcu_lowering *l, const char *body, uint64_t macs)
{
    muc_mcu_tile_layer layer;
    muc_mcu_tiling tiling;
    bool fits;

    if (l->pieces || !muc_mcu_has_tiles(l->program->machine) || !is_whole(l, body, macs, &layer))
        return MUC_OK;
    MUC_TRY(muc_mcu_find_tiles(l, &layer, &tiling, &fits));
    if (!l->step->note)
        l->step->note = l->note;
    l->note = NULL;
    return fits ? muc_mcu_begin_pieces(l, &layer, &tiling) : MUC_OK;
}

muc_status muc_mcu_end_function(muc_mcu_lowering *l, uint64_t scratch_bytes, uint64_t macs)
{
    muc_text body = l->text, head = { 0 };
    muc_status status;

    l->text = (muc_text){ 0 };
    muc_text_add(&head, "static void %s(", l->step->name);
    status = muc_text_status(l->ctx, &body);
    if (status == MUC_OK && !scratch_bytes)
        status = try_whole(l, body.data ? body.data : "", macs);
    if (status == MUC_OK)
        status = pass_all(l, body.data ? body.data : "", scratch_bytes, &head);
    if (status == MUC_OK)
        status = muc_text_status(l->ctx, &head);
    if (status == MUC_OK)
        status = print_function(l, &head, &body);
    if (status == MUC_OK)
        status = muc_mcu_end_step(l, macs);
    l->pieces = NULL;
    muc_text_free(&body);
    muc_text_free(&head);
    return status;
}

void muc_mcu_print_sigmoid_table(muc_mcu_lowering *l)
{
    uint16_t table[256];

    muc_scale_sigmoid_table(table);
    muc_text_add(&l->text, "    static const uint16_t sigmoid[256] = {");
    for (unsigned i = 0; i < 256; i++)
        muc_text_add(&l->text, "%s%u,", i % 12 ? " " : "\n        ", table[i]);
    muc_text_add(&l->text, "\n    };\n");
    l->program->table_bytes += sizeof(table);
}

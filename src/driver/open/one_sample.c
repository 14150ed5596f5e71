/* one_sample.c - finds the dimension of a network that counts samples. */
#include "driver/open/one_sample.h"

#include <stdlib.h>
#include <string.h>

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), length = strlen(end);

    return size >= length && strcmp(text + size - length, end) == 0;
}

/* Exporters of PyTorch, Keras and TensorFlow give these names, or none: then readers call the first
 * dimension INPUT_0. */
static bool counts_samples(const char *input, const char *name)
{
    static const char *const whole[] = { "N", "n", "B", "b", "bs", "None" };
    static const char *const begins[] = { "batch", "Batch", "BATCH", "unk__", "num_samples" };
    size_t size = strlen(input);

    for (size_t i = 0; i < MUC_COUNT(whole); i++)
        if (strcmp(name, whole[i]) == 0)
            return true;
    for (size_t i = 0; i < MUC_COUNT(begins); i++)
        if (strncmp(name, begins[i], strlen(begins[i])) == 0)
            return true;
    return ends_with(name, "_dynamic_axes_1") ||
           (strncmp(name, input, size) == 0 && strcmp(name + size, "_0") == 0);
}

/* the name of an input's first dimension if nothing is said of it, or NULL */
static const char *first_of(const muc_graph *graph, const muc_tensor *tensor,
                            const muc_network_options *how)
{
    const muc_expr_input *open;
    const muc_expr_node *first;

    if (tensor->kind != MUC_TENSOR_INPUT || tensor->rank == 0)
        return NULL;
    first = muc_expr_get(graph->pool, tensor->dims[0]);
    if (first->op != MUC_EXPR_INPUT)
        return NULL;
    open = muc_expr_get_input(graph->pool, first->immediate);
    if (open->lo != 1 || open->hi != MUC_NETWORK_MOST_DIM)
        return NULL;
    for (size_t i = 0; i < how->dim_count; i++)
        if (strcmp(how->dims[i].name, open->name) == 0)
            return NULL;
    return counts_samples(tensor->name, open->name) ? open->name : NULL;
}

/* whether "NAME=1" is in the list already */
static bool is_listed(const char *list, const char *name)
{
    size_t size = strlen(name);

    for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strncmp(at, name, size) == 0 && at[size] == '=')
            return true;
    return false;
}

muc_status muc_find_samples(muc_context *ctx, muc_model *model, const muc_network_options *how,
                            const char **out)
{
    const muc_graph *graph = model->network.graph;

    *out = NULL;
    for (uint32_t i = 0; graph && i < graph->tensor_count; i++) {
        const char *name = first_of(graph, &graph->tensors[i], how);

        if (name && !is_listed(*out, name))
            MUC_TRY(muc_arena_format(ctx, &model->arena, out, "%s%s%s=1", *out ? *out : "",
                                     *out ? "," : "", name));
    }
    return MUC_OK;
}

/* cnnchip_check.h - what tests of the CNN chip share. */
#ifndef MUC_CNNCHIP_CHECK_H
#define MUC_CNNCHIP_CHECK_H

#include "chance.h"
#include "check.h"

#include "formats/format.h"
#include "graph/graph.h"

/* Numbers for an input of fixed sizes, in -1..1, or bytes. */
static inline muc_tensor_view random_input(muc_arena *arena, const muc_graph *graph, uint32_t id)
{
    const muc_tensor *t = &graph->tensors[id];
    muc_tensor_view view = { .name = t->name, .dtype = t->dtype, .rank = t->rank, .file = "test" };
    float *data;

    for (uint32_t i = 0; i < t->rank; i++)
        view.dims[i] = muc_expr_get(graph->pool, t->dims[i])->immediate;
    CHECK_EQ(muc_tensor_measure(NULL, &view), MUC_OK);
    CHECK_EQ(MUC_ARENA_NEW(NULL, arena, (size_t)view.elements, &data), MUC_OK);
    for (uint64_t i = 0; i < view.elements; i++) {
        if (t->dtype == MUC_F32)
            data[i] = (float)(2 * random_unit() - 1);
        else
            ((uint8_t *)data)[i] = (uint8_t)random_u32();
    }
    view.data = (const uint8_t *)data;
    return view;
}

static inline void remove_folder(const char *path)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf %s", path);
    CHECK_EQ(system(command), 0);
}

#endif

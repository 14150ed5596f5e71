/* free_name.c - finds a name that no tensor of the graph has. */
#include "import/free_name.h"

#include <inttypes.h>

muc_status muc_free_name(muc_context *ctx, const muc_graph *graph, muc_arena *arena,
                         const char *wanted, char mark, const char **out)
{
    *out = wanted;
    for (uint32_t i = 2; muc_graph_find(graph, *out) != MUC_NO_ID; i++)
        MUC_TRY(muc_arena_format(ctx, arena, out, "%s%c%" PRIu32, wanted, mark, i));
    return MUC_OK;
}

/* differ_count.c - how many of the networks had what. */
#include "differ_count.h"

#include <inttypes.h>
#include <stdio.h>

enum { LEAST = 500, OF = 100000 };

/* ---- structures ---- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

/* operators, types, shapes and how they are joined; never 0 */
static uint64_t structure_of(const muc_graph *graph)
{
    uint64_t hash = 1;

    for (uint32_t i = 0; i < graph->node_count; i++) {
        const muc_node *node = &graph->nodes[i];

        hash = mix(hash, node->op);
        for (uint32_t k = 0; k < node->input_count; k++)
            hash = mix(hash, node->inputs[k]);
        for (uint32_t k = 0; k < node->output_count; k++) {
            const muc_tensor *t = &graph->tensors[node->outputs[k]];

            hash = mix(hash, (uint64_t)t->dtype << 8 | t->rank);
            for (uint32_t d = 0; d < t->rank; d++)
                hash = mix(hash, muc_expr_get(graph->pool, t->dims[d])->hi);
        }
    }
    return hash ? hash : 1;
}

/* whether no network before had it; a full table knows no new ones */
static bool is_new(fuzz_counts *counts, uint64_t hash)
{
    uint64_t at = hash & (FUZZ_MOST_HASHES - 1);

    while (counts->hashes[at] && counts->hashes[at] != hash)
        at = (at + 1) & (FUZZ_MOST_HASHES - 1);
    if (counts->hashes[at] == hash || counts->distinct >= FUZZ_MOST_HASHES / 2)
        return false;
    counts->hashes[at] = hash;
    return true;
}

/* ---- traits ---- */

static void note_tensor(const muc_graph *graph, const muc_tensor *t, bool *has)
{
    has[FUZZ_DTYPES + t->dtype] = true;
    has[FUZZ_HAS_STATE] = has[FUZZ_HAS_STATE] || t->kind == MUC_TENSOR_STATE;
    for (uint32_t d = 0; t->kind == MUC_TENSOR_INPUT && d < t->rank && d < 4; d++)
        if (!muc_expr_is_const(graph->pool, t->dims[d]))
            has[FUZZ_HAS_OPEN_0 + d] = true;
    if (!t->quantization)
        return;
    if (t->dtype == MUC_I8)
        has[t->quantization->count > 1 ? FUZZ_HAS_CHANNELS_I8 : FUZZ_HAS_WHOLE_I8] = true;
    if (t->dtype == MUC_U8)
        has[t->quantization->count > 1 ? FUZZ_HAS_CHANNELS_U8 : FUZZ_HAS_WHOLE_U8] = true;
    if (t->dtype == MUC_I16)
        has[FUZZ_HAS_WHOLE_I16] = true;
}

static void note_node(const muc_graph *graph, const muc_node *node, bool *has)
{
    bool required, takes = muc_op_takes(node->op, MUC_KEY_CHANNELS_LAST, &required);

    has[FUZZ_OPS + node->op] = true;
    if (takes)
        has[muc_node_integer_or(node, MUC_KEY_CHANNELS_LAST, 0) ? FUZZ_HAS_LAST : FUZZ_HAS_FIRST] =
            true;
    if (node->op == MUC_OP_LINEAR && graph->tensors[node->inputs[0]].dtype == MUC_F32 &&
        graph->tensors[node->inputs[1]].quantization)
        has[FUZZ_HAS_ROWS] = true;
}

static void note_how(const fuzz_how *how, bool *has)
{
    has[FUZZ_HAS_QUANT] = how->quant == FUZZ_QUANT_INT8;
    has[FUZZ_HAS_HYBRID] = how->quant == FUZZ_QUANT_HYBRID;
    has[FUZZ_HAS_BLOCKS] = how->quant == FUZZ_QUANT_BLOCKS;
    if (how->chip)
        has[FUZZ_HAS_CHIP_FP32 + how->element] = true;
}

void fuzz_count_drawn(fuzz_counts *counts, const muc_graph *graph, fuzz_style style,
                      const fuzz_how *how, fuzz_traits *out)
{
    *out = (fuzz_traits){ .counts = graph->node_count >= FUZZ_FEWEST_NODES &&
                                    graph->node_count <= FUZZ_MOST_NODES &&
                                    is_new(counts, structure_of(graph)) };
    out->has[FUZZ_STYLES + style] = true;
    out->has[FUZZ_HAS_TWO_LENGTHS] = muc_expr_input_count(graph->pool) > 1;
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        note_tensor(graph, &graph->tensors[i], out->has);
    for (uint32_t i = 0; i < graph->node_count; i++)
        note_node(graph, &graph->nodes[i], out->has);
    note_how(how, out->has);
    counts->networks++;
    if (!out->counts)
        return;
    counts->distinct++;
    counts->nodes += graph->node_count;
    counts->lengths[graph->node_count / 10]++;
    for (uint32_t i = 0; i < FUZZ_TRAIT_COUNT; i++)
        counts->drawn[i] += out->has[i];
}

void fuzz_count_compared(fuzz_counts *counts, const fuzz_traits *traits)
{
    for (uint32_t i = 0; i < FUZZ_TRAIT_COUNT; i++)
        counts->compared[i] += traits->counts && traits->has[i];
}

/* ---- the table ---- */

static void name_trait(uint32_t i, char name[64])
{
    static const char *const plain[] = {
#define FUZZ_TRAIT_NAME(id, name) name,
        FUZZ_TRAITS(FUZZ_TRAIT_NAME)
#undef FUZZ_TRAIT_NAME
    };

    if (i < FUZZ_OPS)
        snprintf(name, 64, "%s", plain[i]);
    else if (i < FUZZ_DTYPES)
        snprintf(name, 64, "operator %s", muc_op_get((muc_op)(i - FUZZ_OPS))->name);
    else if (i < FUZZ_STYLES)
        snprintf(name, 64, "type %s", muc_dtype_get((muc_dtype)(i - FUZZ_DTYPES))->name);
    else
        snprintf(name, 64, "style %s", fuzz_style_name((fuzz_style)(i - FUZZ_STYLES)));
}

bool fuzz_print_counts(const fuzz_counts *counts)
{
    uint32_t rare = 0;
    char name[64];

    printf("networks %" PRIu64 ", distinct with %u to %u nodes %" PRIu64 ", their nodes %" PRIu64
           "\n",
           counts->networks, FUZZ_FEWEST_NODES, FUZZ_MOST_NODES, counts->distinct, counts->nodes);
    for (uint32_t i = 0; i < MUC_COUNT(counts->lengths); i++)
        printf("nodes from %u: %" PRIu64 "\n", 10 * i, counts->lengths[i]);
    printf("%-32s %10s %10s\n", "networks with", "drawn", "compared");
    for (uint32_t i = 0; i < FUZZ_TRAIT_COUNT; i++) {
        bool is_rare = counts->drawn[i] * OF < counts->distinct * LEAST;

        name_trait(i, name);
        printf("%-32s %10" PRIu64 " %10" PRIu64 "%s\n", name, counts->drawn[i], counts->compared[i],
               is_rare ? "  RARE" : "");
        rare += is_rare;
    }
    if (rare)
        printf("%u of these are in fewer than %u of %u networks\n", rare, LEAST, OF);
    return rare == 0 || counts->distinct < OF;
}

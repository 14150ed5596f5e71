/* test_plan_tile.c - tile search: its costs against loops that are walked one by one, its choice
 * against every choice there is. */
#include "check.h"
#include "chance.h"

#include "plan/tile.h"

/* ---- a machine that walks the loops ---- */

typedef struct walk {
    uint64_t moved[MUC_TILE_OPERANDS], transfers, single, doubled;
} walk;

/* bytes of an operand for the box of work from..to along each dimension, element by element */
static uint64_t bytes_of(const muc_tile_node *node, const muc_tile_operand *operand,
                         const uint32_t *from, const uint32_t *to)
{
    uint64_t bytes = operand->unit_bytes;

    for (uint32_t i = 0; i < operand->axis_count; i++) {
        const muc_tile_axis *axis = &operand->axes[i];
        int64_t limit = axis->limit ? axis->limit : node->dims[axis->dim].extent, elements = 0;
        int64_t first = (int64_t)from[axis->dim] * axis->stride - axis->pad;
        int64_t last = (int64_t)(to[axis->dim] - 1) * axis->stride - axis->pad + axis->window - 1;

        for (int64_t e = first; e <= last; e++)
            elements += e >= 0 && e < limit;
        bytes *= (uint64_t)elements;
    }
    return bytes;
}

static uint64_t dma(const muc_tile_machine *machine, uint64_t bytes)
{
    return bytes ? machine->dma_setup_cycles +
                       (bytes + machine->dma_bytes_per_cycle - 1) / machine->dma_bytes_per_cycle
                 : 0;
}

typedef struct iteration {
    uint32_t from[MUC_TILE_DIMS], to[MUC_TILE_DIMS];
} iteration;

static bool same_tile(const muc_tile_operand *operand, const iteration *a, const iteration *b)
{
    for (uint32_t i = 0; i < operand->axis_count; i++)
        if (a->from[operand->axes[i].dim] != b->from[operand->axes[i].dim])
            return false;
    return true;
}

/* the iterations of four nested loops */
static uint32_t list_iterations(const muc_tile_node *node, const muc_tile_plan *plan,
                                iteration *list, uint32_t most)
{
    uint32_t count = 0, at[MUC_TILE_DIMS] = { 0 };

    for (;;) {
        uint32_t p = node->dim_count;

        CHECK(count < most);
        for (uint32_t d = 0; d < node->dim_count; d++) {
            list[count].from[d] = at[d];
            list[count].to[d] = at[d] + plan->tile[d] < node->dims[d].extent ? at[d] + plan->tile[d]
                                                                             : node->dims[d].extent;
        }
        count++;
        for (; p > 0; p--) {
            uint32_t d = plan->loops[p - 1];

            at[d] += plan->tile[d];
            if (at[d] < node->dims[d].extent)
                break;
            at[d] = 0;
        }
        if (p == 0)
            return count;
    }
}

static void walk_plan(const muc_tile_node *node, const muc_tile_machine *machine,
                      const muc_tile_plan *plan, walk *out)
{
    enum { MOST = 20000 };
    static iteration list[MOST];
    static uint64_t in[MOST], work[MOST], result[MOST];
    uint32_t count = list_iterations(node, plan, list, MOST);

    memset(out, 0, sizeof(*out));
    for (uint32_t i = 0; i < count; i++) {
        uint64_t units = machine->cycles;

        in[i] = result[i] = 0;
        for (uint32_t k = 0; k < node->operand_count; k++) {
            const muc_tile_operand *o = &node->operands[k];
            uint64_t bytes = bytes_of(node, o, list[i].from, list[i].to);
            bool comes =
                o->role == MUC_TILE_INPUT && (i == 0 || !same_tile(o, &list[i], &list[i - 1]));
            bool goes = o->role == MUC_TILE_OUTPUT &&
                        (i + 1 == count || !same_tile(o, &list[i], &list[i + 1]));

            if (comes)
                in[i] += dma(machine, bytes);
            if (goes)
                result[i] += dma(machine, bytes);
            out->moved[k] += comes || goes ? bytes : 0;
            out->transfers += (comes || goes) && bytes;
        }
        for (uint32_t d = 0; d < node->dim_count; d++) {
            uint32_t lanes = node->dims[d].lanes ? node->dims[d].lanes : 1;

            units *= (list[i].to[d] - list[i].from[d] + lanes - 1) / lanes * lanes;
        }
        work[i] = machine->call_cycles +
                  (units + machine->units_per_cycles - 1) / machine->units_per_cycles;
        out->single += in[i] + work[i] + result[i];
    }
    out->doubled = in[0] + result[count - 1];
    for (uint32_t i = 0; i < count; i++) {
        uint64_t beside = (i + 1 < count ? in[i + 1] : 0) + (i ? result[i - 1] : 0);

        out->doubled += work[i] > beside ? work[i] : beside;
    }
}

static void check_plan(const muc_tile_node *node, const muc_tile_machine *machine,
                       const muc_tile_plan *plan)
{
    walk walked;
    uint64_t bytes = 0;

    walk_plan(node, machine, plan, &walked);
    for (uint32_t k = 0; k < node->operand_count; k++) {
        CHECK_EQ(plan->moved_bytes[k], walked.moved[k]);
        CHECK(plan->copies[k] == 1 || plan->double_buffered);
        bytes += plan->buffer_bytes[k];
    }
    CHECK_EQ(plan->transfers, walked.transfers);
    CHECK_EQ(plan->cycles, plan->double_buffered ? walked.doubled : walked.single);
    CHECK_EQ(plan->bytes, bytes);
    CHECK(bytes <= machine->capacity_bytes);
}

/* every tile lies within its buffer, and some fill it */
static void check_buffers(const muc_tile_node *node, const muc_tile_machine *machine,
                          const muc_tile_plan *plan)
{
    static iteration list[20000];
    uint32_t count = list_iterations(node, plan, list, 20000);
    uint32_t unit = machine->alignment ? machine->alignment : 1;

    for (uint32_t k = 0; k < node->operand_count; k++) {
        uint64_t most = 0;

        for (uint32_t i = 0; i < count; i++) {
            uint64_t bytes = bytes_of(node, &node->operands[k], list[i].from, list[i].to);

            most = bytes > most ? bytes : most;
        }
        CHECK_EQ(plan->buffer_bytes[k], (most + unit - 1) / unit * unit * plan->copies[k]);
    }
}

/* ---- random nodes ---- */

static void random_convolution(muc_tile_node *node, uint32_t most)
{
    uint32_t kernel = 1 + random_u32() % 3, stride = 1 + random_u32() % 2;
    uint32_t pad = random_u32() % (kernel + 1), multiple = 1 + random_u32() % 2;

    memset(node, 0, sizeof(*node));
    node->name = "conv";
    node->dim_count = 2 + random_u32() % 3;
    for (uint32_t d = 0; d < node->dim_count; d++)
        node->dims[d] = (muc_tile_dim){ .name = "d",
                                        .extent = 1 + random_u32() % most,
                                        .multiple = multiple,
                                        .lanes = multiple * (random_u32() % 3) };
    node->operands[node->operand_count++] = (muc_tile_operand){
        .name = "x",
        .role = MUC_TILE_INPUT,
        .unit_bytes = 1 + random_u32() % 4,
        .axis_count = 2,
        .axes = { { 0, stride, kernel, pad, (node->dims[0].extent - 1) * stride + kernel - pad },
                  { 1, 1, 1, 0, 0 } }
    };
    node->operands[node->operand_count++] =
        (muc_tile_operand){ .name = "w",
                            .role = MUC_TILE_INPUT,
                            .unit_bytes = kernel,
                            .axis_count = 1,
                            .axes = { { node->dim_count - 1, 1, 1, 0, 0 } } };
    node->operands[node->operand_count++] =
        (muc_tile_operand){ .name = "y",
                            .role = MUC_TILE_OUTPUT,
                            .unit_bytes = 1,
                            .axis_count = 2,
                            .axes = { { 0, 1, 1, 0, 0 }, { node->dim_count - 1, 1, 1, 0, 0 } } };
    if (node->dim_count < 3)
        return;
    node->dims[1].reduction = true; /* channels in */
    if (random_u32() % 2) {
        muc_tile_operand sums = node->operands[2];

        sums.name = "sums";
        sums.role = MUC_TILE_ACCUMULATOR;
        sums.unit_bytes = 4;
        node->operands[node->operand_count++] = sums;
    }
}

static void random_machine(muc_tile_machine *machine)
{
    *machine = (muc_tile_machine){ .capacity_bytes = 40 + random_u32() % 1000,
                                   .alignment = 1u << random_u32() % 4,
                                   .dma_bytes_per_cycle = 1 + random_u32() % 8,
                                   .dma_setup_cycles = random_u32() % 30,
                                   .double_buffers = random_u32() % 2,
                                   .call_cycles = random_u32() % 20,
                                   .cycles = 1 + random_u32() % 3,
                                   .units_per_cycles = 1 + random_u32() % 8 };
}

static void costs_are_those_of_the_loops_walked(void **state)
{
    muc_context *ctx = muc_context_new(1);
    uint32_t fits = 0, doubled = 0, summed = 0;

    (void)state;
    for (uint32_t round = 0; round < 300; round++) {
        muc_tile_node node;
        muc_tile_machine machine;
        static muc_tile_result result;

        random_convolution(&node, 12);
        random_machine(&machine);
        if (muc_tile_search(ctx, &node, &machine, &result) == MUC_NOFIT) {
            CHECK(result.least_bytes > machine.capacity_bytes);
            muc_error_clear(ctx);
            continue;
        }
        CHECK(strcmp(muc_error_message(ctx), "") == 0);
        fits++;
        for (uint32_t i = 0; i < result.front_count; i++) {
            const muc_tile_plan *plan = &result.front[i];

            check_plan(&node, &machine, plan);
            check_buffers(&node, &machine, plan);
            CHECK(i == 0 || (plan->bytes > plan[-1].bytes && plan->cycles < plan[-1].cycles));
            doubled += plan->double_buffered;
            summed += node.dim_count > 2 && plan->tiles[1] > 1;
        }
        CHECK_EQ(result.best.cycles, result.front[result.front_count - 1].cycles);
        CHECK(result.front[0].bytes >= result.least_bytes);
    }
    CHECK(fits > 200);
    CHECK(doubled > 100);
    CHECK(summed > 100);
    muc_context_free(ctx);
}

/* ---- every plan there is ---- */

static bool is_worth_trying(const muc_tile_dim *dim, uint32_t tile, bool has_accumulator)
{
    uint32_t e = dim->extent, lanes = dim->lanes > 1 ? dim->lanes : 1;

    if (tile == e)
        return true;
    return tile % dim->multiple == 0 && (!dim->reduction || has_accumulator) &&
           /* the smallest of its kind that gives so many tiles */
           ((e + tile - 1) / tile < (tile > dim->multiple
                                         ? (e + tile - dim->multiple - 1) / (tile - dim->multiple)
                                         : UINT32_MAX) ||
            (tile % lanes == 0 &&
             (tile == lanes || (e + tile - 1) / tile < (e + tile - lanes - 1) / (tile - lanes))));
}

static uint64_t size_of(const muc_tile_node *node, const muc_tile_machine *machine,
                        const muc_tile_plan *plan)
{
    static iteration list[20000];
    uint32_t count = list_iterations(node, plan, list, 20000);
    uint64_t sum = 0, unit = machine->alignment;

    for (uint32_t k = 0; k < node->operand_count; k++) {
        const muc_tile_operand *o = &node->operands[k];
        uint64_t most = 0;
        bool streamed = false;

        for (uint32_t i = 0; i < count; i++) {
            uint64_t bytes = bytes_of(node, o, list[i].from, list[i].to);

            most = bytes > most ? bytes : most;
            streamed = streamed || !same_tile(o, &list[i], &list[0]);
        }
        streamed = streamed && (o->role == MUC_TILE_INPUT || o->role == MUC_TILE_OUTPUT);
        sum += (most + unit - 1) / unit * unit * (plan->double_buffered && streamed ? 2 : 1);
    }
    return sum;
}

/* results' tiles come back to no tile that they left: else sums would be incomplete */
static bool sums_complete(const muc_tile_node *node, const muc_tile_plan *plan)
{
    static iteration list[20000];
    uint32_t count = list_iterations(node, plan, list, 20000);

    for (uint32_t k = 0; k < node->operand_count; k++) {
        const muc_tile_operand *o = &node->operands[k];

        if (o->role != MUC_TILE_OUTPUT)
            continue;
        for (uint32_t i = 1; i < count; i++)
            for (uint32_t j = 0; j + 1 < i && !same_tile(o, &list[i], &list[i - 1]); j++)
                if (same_tile(o, &list[i], &list[j]))
                    return false;
    }
    return true;
}

static void the_best_is_the_best_of_all(void **state)
{
    static const uint32_t orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
                                           { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
    muc_context *ctx = muc_context_new(1);

    (void)state;
    for (uint32_t round = 0; round < 60; round++) {
        muc_tile_node node;
        muc_tile_machine machine;
        static muc_tile_result result;
        muc_tile_plan plan = { 0 };
        uint64_t best = UINT64_MAX;
        uint32_t tile[3];

        do
            random_convolution(&node, 7);
        while (node.dim_count != 3);
        random_machine(&machine);
        for (tile[0] = 1; tile[0] <= node.dims[0].extent; tile[0]++)
            for (tile[1] = 1; tile[1] <= node.dims[1].extent; tile[1]++)
                for (tile[2] = 1; tile[2] <= node.dims[2].extent; tile[2]++)
                    for (uint32_t order = 0; order < 12; order++) {
                        walk walked;
                        bool worth = true;

                        for (uint32_t d = 0; d < 3; d++)
                            worth = worth && is_worth_trying(&node.dims[d], tile[d],
                                                             node.operand_count == 4);
                        if (!worth || (order >= 6 && !machine.double_buffers))
                            continue;
                        memcpy(plan.tile, tile, sizeof(tile));
                        memcpy(plan.loops, orders[order % 6], sizeof(orders[0]));
                        plan.double_buffered = order >= 6;
                        if (size_of(&node, &machine, &plan) > machine.capacity_bytes ||
                            !sums_complete(&node, &plan))
                            continue;
                        walk_plan(&node, &machine, &plan, &walked);
                        if (plan.double_buffered && walked.doubled < best)
                            best = walked.doubled;
                        if (!plan.double_buffered && walked.single < best)
                            best = walked.single;
                    }
        if (best == UINT64_MAX) {
            CHECK_FAILS(ctx, MUC_NOFIT, "the smallest tiles of 'conv' need",
                        muc_tile_search(ctx, &node, &machine, &result));
            continue;
        }
        CHECK_OK(ctx, muc_tile_search(ctx, &node, &machine, &result));
        CHECK_EQ(result.best.cycles, best);
    }
    muc_context_free(ctx);
}

/* ---- by hand ---- */

/* weights that do not fit: y[64] = W[64x256] x[256]. Rows of W in two buffers, x once. */
static void a_matrix_by_a_vector_streams_its_rows(void **state)
{
    muc_context *ctx = muc_context_new(1);
    const muc_tile_node node = {
        .name = "gemv",
        .dim_count = 2,
        .operand_count = 3,
        .dims = { { .name = "out", .extent = 64, .multiple = 8 },
                  { .name = "in", .extent = 256, .reduction = true } },
        .operands = { { "x", MUC_TILE_INPUT, 1, 1, { { 1, 1, 1, 0, 0 } } },
                      { "w", MUC_TILE_INPUT, 1, 2, { { 0, 1, 1, 0, 0 }, { 1, 1, 1, 0, 0 } } },
                      { "y", MUC_TILE_OUTPUT, 1, 1, { { 0, 1, 1, 0, 0 } } } }
    };
    const muc_tile_machine machine = { .capacity_bytes = 256 + 2 * 2048 + 2 * 8,
                                       .dma_bytes_per_cycle = 8,
                                       .dma_setup_cycles = 10,
                                       .double_buffers = true,
                                       .cycles = 1,
                                       .units_per_cycles = 8 };
    static muc_tile_result result;

    (void)state;
    CHECK_OK(ctx, muc_tile_search(ctx, &node, &machine, &result));
    CHECK(result.best.double_buffered);
    CHECK_EQ(result.best.tile[0], 8);
    CHECK_EQ(result.best.moved_bytes[0], 256);
    CHECK_EQ(result.best.moved_bytes[1], 64 * 256);
    /* x and the first rows; seven times rows in beside compute, results out beside; the last */
    CHECK_EQ(result.best.cycles, 42 + 266 + 266 + 6 * (266 + 11) + 256 + 11);
    muc_context_free(ctx);
}

static void what_cannot_be_is_refused(void **state)
{
    muc_context *ctx = muc_context_new(1);
    muc_tile_node node = { .name = "add",
                           .dim_count = 1,
                           .operand_count = 2,
                           .dims = { { .name = "n", .extent = 1000, .multiple = 16 } },
                           .operands = { { "x", MUC_TILE_INPUT, 4, 1, { { 0, 1, 1, 0, 0 } } },
                                         { "y", MUC_TILE_OUTPUT, 1, 1, { { 0, 1, 1, 0, 0 } } } } };
    muc_tile_machine machine = {
        .capacity_bytes = 79, .dma_bytes_per_cycle = 4, .cycles = 1, .units_per_cycles = 1
    };
    static muc_tile_result result;

    (void)state;
    CHECK_FAILS(ctx, MUC_NOFIT,
                "the smallest tiles of 'add' need 80 bytes, 1 more than there are; the largest is "
                "'x' with 64",
                muc_tile_search(ctx, &node, &machine, &result));
    machine.capacity_bytes = 80;
    CHECK_OK(ctx, muc_tile_search(ctx, &node, &machine, &result));
    CHECK_EQ(result.best.tile[0], 16);
    node.dims[0].reduction = true;
    CHECK_FAILS(ctx, MUC_USAGE, "a result depends on a dimension that is summed over",
                muc_tile_search(ctx, &node, &machine, &result));
    node.dims[0].reduction = false;
    node.operands[0].axes[0].dim = 1;
    CHECK_FAILS(ctx, MUC_USAGE, "axes are not of different dimensions",
                muc_tile_search(ctx, &node, &machine, &result));
    node.operands[0].axes[0].dim = 0;
    node.operands[0].unit_bytes = UINT64_MAX / 2;
    CHECK_FAILS(ctx, MUC_NOFIT, "the smallest tiles of 'add' need 18446744073709551615 bytes",
                muc_tile_search(ctx, &node, &machine, &result));
    muc_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_are_those_of_the_loops_walked),
        cmocka_unit_test(the_best_is_the_best_of_all),
        cmocka_unit_test(a_matrix_by_a_vector_streams_its_rows),
        cmocka_unit_test(what_cannot_be_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

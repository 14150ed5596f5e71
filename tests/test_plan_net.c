/* test_plan_net.c - the order of a network's nodes, held against every order there is. */
#include "check.h"
#include "chance.h"

#include "plan/order.h"

enum { MOST_NODES = 12, MOST_TENSORS = 32, MOST_LISTED = 3, MOST_SHARES = 3 };

/* what a node of the random networks does; the sizes of its tensors follow */
typedef enum work { OPAQUE, ELEMENTWISE, WINDOW } work;

typedef struct random_net {
    muc_net net;
    muc_net_tensor tensors[MOST_TENSORS];
    muc_net_node nodes[MOST_NODES];
    uint32_t inputs[MOST_NODES][MOST_LISTED], outputs[MOST_NODES][MOST_LISTED];
    muc_net_share shares[MOST_NODES][MOST_SHARES];
    work work[MOST_NODES];
} random_net;

/* ---- random networks ---- */

static uint32_t add_tensor(random_net *r, uint64_t bytes)
{
    uint32_t id = r->net.tensor_count++;

    r->tensors[id] = (muc_net_tensor){ .name = "t", .bytes = bytes };
    return id;
}

static void add_share(random_net *r, uint32_t node, uint32_t input, int64_t offset)
{
    r->shares[node][r->nodes[node].share_count++] = (muc_net_share){ input, 0, offset };
}

static uint32_t some_tensor(const random_net *r)
{
    uint32_t near = r->net.tensor_count < 4 ? r->net.tensor_count : 4;

    if (random_u32() % 3)
        return r->net.tensor_count - 1 - random_u32() % near;
    return random_u32() % r->net.tensor_count;
}

/* the output's bytes, after inputs and shares were chosen */
static uint64_t add_work(random_net *r, uint32_t node)
{
    muc_net_node *n = &r->nodes[node];
    uint64_t first = r->tensors[r->inputs[node][0]].bytes;

    switch (r->work[node]) {
    case OPAQUE:
        return 1 + random_u32() % 40;
    case ELEMENTWISE:
        for (uint32_t i = 0; i < n->input_count; i++)
            if (r->tensors[r->inputs[node][i]].bytes == first && random_u32() % 4)
                add_share(r, node, i, 0);
        return first;
    case WINDOW: /* begins before its input, which it reads front to back */
        add_share(r, node, 0, -(int64_t)(random_u32() % 12));
        return 1 + random_u32() % 40;
    }
    return 0;
}

static void make_net(random_net *r, uint32_t nodes)
{
    memset(r, 0, sizeof(*r));
    r->net = (muc_net){ .tensors = r->tensors, .nodes = r->nodes, .node_count = nodes };
    for (uint32_t i = 0; i < 1 + random_u32() % 2; i++)
        r->tensors[add_tensor(r, 4 + random_u32() % 40)].input = true;
    if (random_u32() % 3 == 0)
        r->tensors[add_tensor(r, 1 + random_u32() % 20)].persistent = true;
    for (uint32_t i = 0; i < nodes; i++) {
        muc_net_node *n = &r->nodes[i];
        uint64_t bytes;

        *n = (muc_net_node){ .name = "n",
                             .inputs = r->inputs[i],
                             .outputs = r->outputs[i],
                             .output_count = 1,
                             .shares = r->shares[i] };
        r->work[i] = (work)(random_u32() % 3);
        n->input_count = r->work[i] == WINDOW ? 1 : 1 + random_u32() % 2;
        for (uint32_t k = 0; k < n->input_count; k++)
            r->inputs[i][k] = some_tensor(r);
        bytes = add_work(r, i);
        r->outputs[i][0] = add_tensor(r, bytes);
        if (random_u32() % 3 == 0)
            n->scratch_bytes = random_u32() % 20;
    }
    r->tensors[r->net.tensor_count - 1].output = true;
    if (random_u32() % 2)
        r->tensors[some_tensor(r)].output = true;
}

/* ---- order, by definition ---- */

static bool is_read_after(const random_net *r, const uint32_t *order, uint32_t step,
                          uint32_t tensor)
{
    if (r->tensors[tensor].output || r->tensors[tensor].persistent)
        return true;
    for (uint32_t i = step; i < r->net.node_count; i++)
        for (uint32_t k = 0; k < r->nodes[order[i]].input_count; k++)
            if (r->inputs[order[i]][k] == tensor)
                return true;
    return false;
}

static uint64_t overlap_at(const random_net *r, const uint32_t *order, uint32_t step)
{
    uint32_t node = order[step], out = r->outputs[node][0];

    for (uint32_t s = 0; s < r->nodes[node].share_count; s++) {
        const muc_net_share *share = &r->shares[node][s];
        uint32_t in = r->inputs[node][share->input], leaves = 0, reads = 0;
        int64_t low, high;

        for (uint32_t k = 0; k < r->nodes[node].input_count; k++)
            reads += r->inputs[node][k] == in;
        for (uint32_t k = 0; k < r->nodes[node].share_count; k++)
            leaves += r->inputs[node][r->shares[node][k].input] == in;
        if (leaves < reads || is_read_after(r, order, step + 1, in))
            continue;
        low = share->offset > 0 ? share->offset : 0;
        high = share->offset + (int64_t)r->tensors[out].bytes;
        high = high < (int64_t)r->tensors[in].bytes ? high : (int64_t)r->tensors[in].bytes;
        if (high > low)
            return (uint64_t)(high - low);
    }
    return 0;
}

static uint64_t peak_of(const random_net *r, const uint32_t *order)
{
    uint64_t peak = 0;

    for (uint32_t step = 0; step < r->net.node_count; step++) {
        bool is_there[MOST_TENSORS] = { false };
        uint64_t bytes = r->nodes[order[step]].scratch_bytes;

        for (uint32_t i = 0; i < r->net.tensor_count; i++)
            is_there[i] = r->tensors[i].input || r->tensors[i].persistent;
        for (uint32_t i = 0; i < step; i++)
            is_there[r->outputs[order[i]][0]] = true;
        for (uint32_t i = 0; i < r->net.tensor_count; i++)
            if ((is_there[i] && is_read_after(r, order, step, i)) ||
                r->outputs[order[step]][0] == i)
                bytes += r->tensors[i].bytes;
        bytes -= overlap_at(r, order, step);
        peak = bytes > peak ? bytes : peak;
    }
    return peak;
}

static bool can_run(const random_net *r, const uint32_t *order, uint32_t step, uint32_t node)
{
    for (uint32_t k = 0; k < r->nodes[node].input_count; k++) {
        uint32_t tensor = r->inputs[node][k];
        bool is_there = r->tensors[tensor].input || r->tensors[tensor].persistent;

        for (uint32_t i = 0; i < step; i++)
            is_there = is_there || r->outputs[order[i]][0] == tensor;
        if (!is_there)
            return false;
    }
    return true;
}

static uint64_t least_peak(const random_net *r, uint32_t *order, uint32_t step, uint64_t least)
{
    uint64_t peak;

    if (step == r->net.node_count) {
        peak = peak_of(r, order);
        return peak < least ? peak : least;
    }
    for (uint32_t node = 0; node < r->net.node_count; node++) {
        bool is_new = true;

        for (uint32_t i = 0; i < step; i++)
            is_new = is_new && order[i] != node;
        order[step] = node;
        if (is_new && can_run(r, order, step, node))
            least = least_peak(r, order, step + 1, least);
    }
    return least;
}

static void the_order_found_is_the_best_of_all(void **state)
{
    muc_context *ctx = muc_context_new(1);
    uint32_t better = 0;

    (void)state;
    for (uint32_t round = 0; round < 400; round++) {
        random_net r;
        uint32_t order[MOST_NODES], tried[MOST_NODES];
        muc_order found;

        make_net(&r, 2 + random_u32() % 6);
        CHECK_OK(ctx, muc_order_find(ctx, &r.net, order, &found));
        CHECK(found.optimal);
        CHECK_EQ(found.peak_bytes, peak_of(&r, order));
        CHECK_EQ(found.peak_bytes, least_peak(&r, tried, 0, UINT64_MAX));
        for (uint32_t i = 0; i < r.net.node_count; i++)
            tried[i] = i;
        CHECK_EQ(found.given_bytes, peak_of(&r, tried));
        better += found.peak_bytes < found.given_bytes;
    }
    CHECK(better > 50);
    muc_context_free(ctx);
}

/* ---- larger networks ---- */

/* heads that each blow up and shrink again: side by side they need `heads` large tensors, one
 * after the other one */
static void branches_run_one_after_the_other(void **state)
{
    enum { HEADS = 40, COUNT = 2 * HEADS + 1 };
    static muc_net_tensor tensors[2 * HEADS + 2];
    static muc_net_node nodes[COUNT];
    static uint32_t ids[2 * HEADS + 2], ends[HEADS];
    muc_net net = { tensors, 2 * HEADS + 2, nodes, COUNT };
    muc_context *ctx = muc_context_new(1);
    uint32_t order[COUNT];
    muc_order found;

    (void)state;
    for (uint32_t i = 0; i < 2 * HEADS + 2; i++)
        ids[i] = i;
    tensors[0] = (muc_net_tensor){ .name = "x", .bytes = 10, .input = true };
    for (uint32_t i = 0; i < HEADS; i++) {
        tensors[1 + i] = (muc_net_tensor){ .name = "large", .bytes = 1000 };
        tensors[1 + HEADS + i] = (muc_net_tensor){ .name = "small", .bytes = 10 };
        nodes[i] = (muc_net_node){ .name = "grow",
                                   .inputs = ids,
                                   .outputs = ids + 1 + i,
                                   .input_count = 1,
                                   .output_count = 1 };
        nodes[HEADS + i] = (muc_net_node){ .name = "shrink",
                                           .inputs = ids + 1 + i,
                                           .outputs = ids + 1 + HEADS + i,
                                           .input_count = 1,
                                           .output_count = 1 };
        ends[i] = 1 + HEADS + i;
    }
    tensors[2 * HEADS + 1] = (muc_net_tensor){ .name = "y", .bytes = 10, .output = true };
    nodes[2 * HEADS] = (muc_net_node){ .name = "sum",
                                       .inputs = ends,
                                       .outputs = ids + 2 * HEADS + 1,
                                       .input_count = HEADS,
                                       .output_count = 1 };
    CHECK_OK(ctx, muc_order_find(ctx, &net, order, &found));
    CHECK_EQ(found.given_bytes, 10 + HEADS * 1000);
    CHECK_EQ(found.peak_bytes, 1000 + HEADS * 10);
    print_message("%u states, %s\n", found.states, found.optimal ? "optimal" : "not proven");
    muc_context_free(ctx);
}

static void what_contradicts_itself_is_refused(void **state)
{
    muc_context *ctx = muc_context_new(1);
    const muc_net_tensor tensors[] = { { .name = "x", .bytes = 4, .input = true },
                                       { .name = "y", .bytes = 4 },
                                       { .name = "z", .bytes = 8, .output = true } };
    const uint32_t ids[] = { 0, 1, 2 };
    const muc_net_share absent = { 0, 1, 0 };
    muc_net_node nodes[] = {
        { .name = "a", .inputs = ids, .outputs = ids + 1, .input_count = 1, .output_count = 1 },
        { .name = "b", .inputs = ids + 1, .outputs = ids + 2, .input_count = 1, .output_count = 1 }
    };
    muc_net net = { tensors, 3, nodes, 2 };
    uint32_t order[2];
    muc_order found;

    (void)state;
    CHECK_OK(ctx, muc_order_find(ctx, &net, order, &found));
    nodes[0].shares = &absent;
    nodes[0].share_count = 1;
    CHECK_FAILS(ctx, MUC_USAGE, "a share names an input or output that it does not have",
                muc_order_find(ctx, &net, order, &found));
    nodes[0].share_count = 0;
    nodes[0].inputs = ids + 2;
    CHECK_FAILS(ctx, MUC_USAGE, "node 'a': reads a tensor that nothing before it makes",
                muc_order_find(ctx, &net, order, &found));
    nodes[0].inputs = ids;
    nodes[1].outputs = ids;
    CHECK_FAILS(ctx, MUC_USAGE, "node 'b': makes a tensor that is there already",
                muc_order_find(ctx, &net, order, &found));
    muc_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_found_is_the_best_of_all),
        cmocka_unit_test(branches_run_one_after_the_other),
        cmocka_unit_test(what_contradicts_itself_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_plan_net.c - order and lives of a network's tensors: against every order there is, and by
 * running random networks in an arena in which each byte says what it holds. */
#include "check.h"
#include "chance.h"

#include "plan/lifetimes.h"
#include "plan/order.h"

enum { MOST_NODES = 12, MOST_TENSORS = 32, MOST_LISTED = 3, MOST_SHARES = 3, ARENA = 1 << 14 };

/* what a node of the random networks does; the sizes of its tensors follow */
typedef enum work { OPAQUE, ELEMENTWISE, WINDOW, SLICE, CONCAT } work;

typedef struct random_net {
    muc_net net;
    muc_net_tensor tensors[MOST_TENSORS];
    muc_net_node nodes[MOST_NODES];
    uint32_t inputs[MOST_NODES][MOST_LISTED], outputs[MOST_NODES][MOST_LISTED];
    muc_net_share shares[MOST_NODES][MOST_SHARES];
    work work[MOST_NODES];
    muc_share_window window[MOST_NODES];
    uint32_t kernel[MOST_NODES];
    uint32_t cut[MOST_NODES]; /* of a slice: where it begins */
} random_net;

/* ---- random networks ---- */

static uint32_t add_tensor(random_net *r, uint64_t bytes)
{
    uint32_t id = r->net.tensor_count++;

    r->tensors[id] = (muc_net_tensor){ .name = "t", .bytes = bytes };
    return id;
}

static void add_share(random_net *r, uint32_t node, uint32_t input, muc_share_kind kind,
                      int64_t offset)
{
    r->shares[node][r->nodes[node].share_count++] = (muc_net_share){ input, 0, kind, offset };
}

static uint32_t some_tensor(const random_net *r)
{
    uint32_t near = r->net.tensor_count < 4 ? r->net.tensor_count : 4;

    if (random_u32() % 3)
        return r->net.tensor_count - 1 - random_u32() % near;
    return random_u32() % r->net.tensor_count;
}

static uint64_t add_window(random_net *r, uint32_t node, uint32_t in)
{
    muc_share_window *w = &r->window[node];
    uint32_t kernel = 1 + random_u32() % 3;
    uint64_t rows = r->tensors[in].bytes, width = rows % 4 == 0 ? 4 : rows % 2 == 0 ? 2 : 1;

    *w = (muc_share_window){ .in_rows = rows / width,
                             .in_row_bytes = width,
                             .out_row_bytes = 1 + random_u32() % 8,
                             .stride = 1 + random_u32() % 3,
                             .pad = random_u32() % 4,
                             .dilation = 1 + random_u32() % 2,
                             .buffered = random_u32() % 2 };
    r->kernel[node] = kernel;
    w->out_rows = (w->in_rows + w->pad + w->stride - 1) / w->stride;
    add_share(r, node, 0, MUC_SHARE_OVERWRITE, -(int64_t)muc_share_distance(w));
    return w->out_rows * w->out_row_bytes;
}

/* the output's bytes, after inputs and shares were chosen */
static uint64_t add_work(random_net *r, uint32_t node)
{
    muc_net_node *n = &r->nodes[node];
    uint64_t first = r->tensors[r->inputs[node][0]].bytes, bytes = 0;

    switch (r->work[node]) {
    case OPAQUE:
        return 1 + random_u32() % 40;
    case ELEMENTWISE:
        for (uint32_t i = 0; i < n->input_count; i++)
            if (r->tensors[r->inputs[node][i]].bytes == first && random_u32() % 4)
                add_share(r, node, i, MUC_SHARE_OVERWRITE, 0);
        return first;
    case WINDOW:
        return add_window(r, node, r->inputs[node][0]);
    case SLICE:
        r->cut[node] = random_u32() % (uint32_t)first;
        bytes = 1 + random_u32() % (first - r->cut[node]);
        if (random_u32() % 4 == 0)
            r->cut[node] = 0, bytes = first; /* a reshape */
        add_share(r, node, 0, MUC_SHARE_VIEW, r->cut[node]);
        return bytes;
    case CONCAT:
        for (uint32_t i = 0; i < n->input_count; i++) {
            add_share(r, node, i, MUC_SHARE_VIEW, -(int64_t)bytes);
            bytes += r->tensors[r->inputs[node][i]].bytes;
        }
        return bytes;
    }
    return 0;
}

static void make_net(random_net *r, uint32_t nodes, bool views)
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
        r->work[i] = (work)(random_u32() % (views ? 5 : 3));
        n->input_count = r->work[i] == WINDOW || r->work[i] == SLICE ? 1 : 1 + random_u32() % 2;
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

/* ---- order, by definition; networks without views ---- */

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

static bool all_inputs_are_read(const random_net *r)
{
    const uint32_t order[MOST_NODES] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };

    for (uint32_t i = 0; i < r->net.tensor_count; i++)
        if (r->tensors[i].input && !is_read_after(r, order, 0, i))
            return false;
    return true;
}

static void the_order_found_is_the_best_of_all(void **state)
{
    muc_context *ctx = muc_context_new(1);
    uint32_t better = 0;

    (void)state;
    for (uint32_t round = 0; round < 400; round++) {
        random_net r;
        uint32_t order[MOST_NODES], tried[MOST_NODES];
        uint64_t peak, bound;
        muc_order found;
        muc_lifetimes lives;
        muc_arena arena = { 0 };

        make_net(&r, 2 + random_u32() % 6, false);
        CHECK_OK(ctx, muc_order_find(ctx, &r.net, order, &found));
        CHECK(found.optimal);
        CHECK_EQ(found.peak_bytes, peak_of(&r, order));
        CHECK_EQ(found.peak_bytes, least_peak(&r, tried, 0, UINT64_MAX));
        CHECK_OK(ctx, muc_order_peak(ctx, &r.net, order, &peak));
        CHECK_EQ(found.peak_bytes, peak);
        for (uint32_t i = 0; i < r.net.node_count; i++)
            tried[i] = i;
        CHECK_EQ(found.given_bytes, peak_of(&r, tried));
        better += found.peak_bytes < found.given_bytes;
        CHECK_OK(ctx, muc_lifetimes_find(ctx, &arena, &r.net, order, &lives));
        {
            muc_plan plan = {
                .arena = "A", .alignment = 1, .buffers = lives.buffers, .count = lives.count
            };

            CHECK_OK(ctx, muc_plan_place(ctx, &plan));
            bound = plan.live_bound;
        }
        if (all_inputs_are_read(&r)) /* one that is not is filled all the same */
            CHECK_EQ(bound, peak);
        muc_arena_free(&arena);
    }
    CHECK(better > 50);
    muc_context_free(ctx);
}

/* ---- running a network ---- */

typedef struct machine {
    const random_net *r;
    const muc_lifetimes *lives;
    const muc_plan *plan;
    uint32_t arena[ARENA];                   /* of each byte: which value it holds */
    uint32_t value[MOST_TENSORS][ARENA / 4]; /* of each tensor's byte: which it should */
    uint32_t values;
} machine;

static uint32_t *at(machine *m, uint32_t tensor, uint64_t byte)
{
    uint64_t address = m->lives->buffers[tensor].address + byte;

    CHECK(address < m->plan->peak);
    return &m->arena[address];
}

static void check_bytes(machine *m, uint32_t tensor, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++)
        CHECK_EQ(*at(m, tensor, i), m->value[tensor][i]);
}

static void new_values(machine *m, uint32_t tensor)
{
    for (uint64_t i = 0; i < m->r->tensors[tensor].bytes; i++)
        m->value[tensor][i] = ++m->values;
}

static void write_bytes(machine *m, uint32_t tensor, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++)
        *at(m, tensor, i) = m->value[tensor][i];
}

/* inputs without a share are read whole before each byte is written */
static void check_others(machine *m, uint32_t node)
{
    const muc_net_node *n = &m->r->nodes[node];

    for (uint32_t i = 0; i < n->input_count; i++) {
        bool is_shared = false;

        for (uint32_t k = 0; k < n->share_count; k++)
            is_shared = is_shared || n->shares[k].input == i;
        if (!is_shared)
            check_bytes(m, n->inputs[i], 0, m->r->tensors[n->inputs[i]].bytes);
    }
}

static void run_elementwise(machine *m, uint32_t node)
{
    const muc_net_node *n = &m->r->nodes[node];

    for (uint64_t i = 0; i < m->r->tensors[n->outputs[0]].bytes; i++) {
        check_others(m, node);
        for (uint32_t k = 0; k < n->share_count; k++)
            check_bytes(m, n->inputs[n->shares[k].input], i, i + 1);
        write_bytes(m, n->outputs[0], i, i + 1);
    }
}

static void check_row(machine *m, uint32_t node, uint64_t row)
{
    const muc_share_window *w = &m->r->window[node];

    for (uint32_t k = 0; k < m->r->kernel[node]; k++) {
        int64_t in = (int64_t)(row * w->stride + k * w->dilation) - w->pad;

        if (in >= 0 && (uint64_t)in < w->in_rows)
            check_bytes(m, m->r->inputs[node][0], (uint64_t)in * w->in_row_bytes,
                        ((uint64_t)in + 1) * w->in_row_bytes);
    }
}

static void run_window(machine *m, uint32_t node)
{
    const muc_share_window *w = &m->r->window[node];
    uint32_t out = m->r->outputs[node][0];

    for (uint64_t row = 0; row < w->out_rows; row++) {
        check_row(m, node, row);
        for (uint64_t i = 0; i < w->out_row_bytes; i++) {
            if (!w->buffered)
                check_row(m, node, row);
            write_bytes(m, out, row * w->out_row_bytes + i, row * w->out_row_bytes + i + 1);
        }
    }
}

/* a view has its values where it is; another is copied */
static void run_view(machine *m, uint32_t node)
{
    const muc_net_node *n = &m->r->nodes[node];
    uint32_t out = n->outputs[0];

    for (uint32_t k = 0; k < n->share_count; k++) {
        uint32_t in = n->inputs[n->shares[k].input];
        uint64_t from = n->shares[k].offset > 0 ? (uint64_t)n->shares[k].offset : 0;
        uint64_t to = n->shares[k].offset < 0 ? (uint64_t)-n->shares[k].offset : 0;
        uint64_t bytes = m->r->tensors[m->r->work[node] == SLICE ? out : in].bytes;

        check_bytes(m, in, from, from + bytes);
        memcpy(&m->value[out][to], &m->value[in][from], bytes * sizeof(m->value[0][0]));
        if (!m->lives->used[node][k])
            write_bytes(m, out, to, to + bytes);
    }
    check_bytes(m, out, 0, m->r->tensors[out].bytes);
}

static void spoil_scratch(machine *m, uint32_t node)
{
    const muc_plan_buffer *scratch = &m->lives->buffers[m->r->net.tensor_count + node];

    for (uint64_t i = 0; i < scratch->bytes; i++)
        m->arena[scratch->address + i] = ++m->values;
}

static void run_node(machine *m, uint32_t node)
{
    const muc_net_node *n = &m->r->nodes[node];

    spoil_scratch(m, node);
    for (uint32_t i = 0; i < n->input_count; i++)
        check_bytes(m, n->inputs[i], 0, m->r->tensors[n->inputs[i]].bytes);
    if (m->r->work[node] < SLICE)
        new_values(m, n->outputs[0]);
    switch (m->r->work[node]) {
    case OPAQUE:
        for (uint64_t i = 0; i < m->r->tensors[n->outputs[0]].bytes; i++) {
            check_others(m, node);
            write_bytes(m, n->outputs[0], i, i + 1);
        }
        break;
    case ELEMENTWISE:
        run_elementwise(m, node);
        break;
    case WINDOW:
        run_window(m, node);
        break;
    case SLICE:
    case CONCAT:
        run_view(m, node);
        break;
    }
    spoil_scratch(m, node);
}

static void run_net(machine *m, const uint32_t *order)
{
    const random_net *r = m->r;

    for (uint32_t i = 0; i < r->net.tensor_count; i++)
        if (r->tensors[i].input || r->tensors[i].persistent) {
            new_values(m, i);
            write_bytes(m, i, 0, r->tensors[i].bytes);
        }
    for (uint32_t i = 0; i < r->net.node_count; i++)
        run_node(m, order[i]);
    for (uint32_t i = 0; i < r->net.tensor_count; i++)
        if (r->tensors[i].output || r->tensors[i].persistent)
            check_bytes(m, i, 0, r->tensors[i].bytes);
}

static void no_value_is_lost_before_its_last_reader(void **state)
{
    static machine m;
    muc_context *ctx = muc_context_new(1);
    uint64_t views = 0, overwrites = 0, shared = 0, apart = 0;

    (void)state;
    for (uint32_t round = 0; round < 1500; round++) {
        random_net r;
        uint32_t order[MOST_NODES];
        muc_order found;
        muc_lifetimes lives;
        muc_arena arena = { 0 };
        muc_plan plan = { .arena = "A", .alignment = round % 2 ? 1 : 4 };

        make_net(&r, 1 + random_u32() % MOST_NODES, true);
        CHECK_OK(ctx, muc_order_find(ctx, &r.net, order, &found));
        CHECK(found.peak_bytes <= found.given_bytes);
        CHECK_OK(ctx, muc_lifetimes_find(ctx, &arena, &r.net, order, &lives));
        plan.buffers = lives.buffers;
        plan.count = lives.count;
        CHECK_OK(ctx, muc_plan_place(ctx, &plan));
        m = (machine){ .r = &r, .lives = &lives, .plan = &plan };
        run_net(&m, order);
        views += lives.views;
        overwrites += lives.overwrites;
        shared += plan.peak;
        for (uint32_t i = 0; i < r.net.node_count; i++)
            r.nodes[i].share_count = 0;
        CHECK_OK(ctx, muc_lifetimes_find(ctx, &arena, &r.net, order, &lives));
        plan.buffers = lives.buffers;
        CHECK_OK(ctx, muc_plan_place(ctx, &plan));
        apart += plan.peak;
        muc_arena_free(&arena);
    }
    CHECK(views > 1000);
    CHECK(overwrites > 1000);
    CHECK(shared * 10 < apart * 9);
    print_message("%llu views, %llu overwrites, %llu bytes for %llu\n", (unsigned long long)views,
                  (unsigned long long)overwrites, (unsigned long long)shared,
                  (unsigned long long)apart);
    muc_context_free(ctx);
}

/* ---- distances ---- */

/* a pointwise layer from 8 to 16 channels over 10 pixels needs 8 bytes a pixel of lead */
static void a_growing_layer_leads_by_what_it_gains(void **state)
{
    const muc_share_window grows = { .in_rows = 10,
                                     .in_row_bytes = 8,
                                     .out_rows = 10,
                                     .out_row_bytes = 16,
                                     .stride = 1,
                                     .dilation = 1,
                                     .buffered = true };
    const muc_share_window same = { .in_rows = 10,
                                    .in_row_bytes = 8,
                                    .out_rows = 10,
                                    .out_row_bytes = 8,
                                    .stride = 1,
                                    .pad = 1,
                                    .dilation = 1,
                                    .buffered = true };
    const muc_share_window halves = { .in_rows = 10,
                                      .in_row_bytes = 8,
                                      .out_rows = 5,
                                      .out_row_bytes = 8,
                                      .stride = 2,
                                      .dilation = 1 };

    (void)state;
    CHECK_EQ(muc_share_distance(&grows), 8 * 9); /* after the last pixel nothing is read */
    CHECK_EQ(muc_share_distance(&same), 8);      /* row r+1 still reads row r */
    CHECK_EQ(muc_share_distance(&halves), 8);
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
    const muc_net_share wide = { 0, 0, MUC_SHARE_VIEW, 1 };
    muc_net_node nodes[] = {
        { .name = "a", .inputs = ids, .outputs = ids + 1, .input_count = 1, .output_count = 1 },
        { .name = "b", .inputs = ids + 1, .outputs = ids + 2, .input_count = 1, .output_count = 1 }
    };
    muc_net net = { tensors, 3, nodes, 2 };
    const uint32_t backwards[] = { 1, 0 }, twice[] = { 0, 0 };
    uint32_t order[2];
    uint64_t peak;
    muc_order found;
    muc_lifetimes lives;
    muc_arena arena = { 0 };

    (void)state;
    CHECK_OK(ctx, muc_order_find(ctx, &net, order, &found));
    CHECK_FAILS(ctx, MUC_USAGE, "runs node 1, which is not ready",
                muc_order_peak(ctx, &net, backwards, &peak));
    CHECK_FAILS(ctx, MUC_USAGE, "before 'y', which it reads, is made",
                muc_lifetimes_find(ctx, &arena, &net, backwards, &lives));
    CHECK_FAILS(ctx, MUC_USAGE, "step 1 of the order names node 0",
                muc_lifetimes_find(ctx, &arena, &net, twice, &lives));
    nodes[0].shares = &wide;
    nodes[0].share_count = 1;
    CHECK_FAILS(ctx, MUC_USAGE, "node 'a': of a view's input and output, neither lies in the other",
                muc_order_find(ctx, &net, order, &found));
    nodes[0].share_count = 0;
    nodes[0].inputs = ids + 2;
    CHECK_FAILS(ctx, MUC_USAGE, "node 'a': reads a tensor that nothing before it makes",
                muc_order_find(ctx, &net, order, &found));
    nodes[0].inputs = ids;
    nodes[1].outputs = ids;
    CHECK_FAILS(ctx, MUC_USAGE, "node 'b': makes a tensor that is there already",
                muc_order_find(ctx, &net, order, &found));
    muc_arena_free(&arena);
    muc_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_found_is_the_best_of_all),
        cmocka_unit_test(no_value_is_lost_before_its_last_reader),
        cmocka_unit_test(a_growing_layer_leads_by_what_it_gains),
        cmocka_unit_test(branches_run_one_after_the_other),
        cmocka_unit_test(what_contradicts_itself_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

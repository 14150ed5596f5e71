/* Chains: whatever the windows and the number of turns, each row is there when it is needed, comes
 * once, and stays as long as someone will need it. */
#include "check.h"

#include <string.h>

#include "plan/chain.h"

static uint32_t chance = 1;

static uint32_t choose(uint32_t least, uint32_t most)
{
    chance = chance * 1664525u + 1013904223u;
    return least + (chance >> 8) % (most - least + 1);
}

static const muc_chain_machine machine = { .capacity_bytes = 1 << 30,
                                           .alignment = 16,
                                           .dma_bytes_per_cycle = 8,
                                           .dma_setup_cycles = 40,
                                           .call_cycles = 100 };

/* a link that reads what the one before made, or what comes, by a window; at times all of a second
 * thing, or an earlier result */
static void add_link(muc_chain *c)
{
    uint32_t k = c->link_count, before = k ? c->links[k - 1].rows : choose(8, 40);
    uint32_t row_bytes = k ? (uint32_t)c->columns[c->links[k - 1].result].row_bytes : choose(1, 9);
    muc_chain_link *link = &c->links[c->link_count++];
    uint32_t window = choose(1, 4), stride = choose(1, 2), pad = choose(0, window - 1);

    if (before + 2 * pad < window)
        window = stride = 1;
    *link = (muc_chain_link){ .cores = choose(1, 8), .row_cycles = choose(1, 500) };
    link->rows = (before + 2 * pad - window) / stride + 1;
    if (pad >= window || (link->rows - 1) * stride - pad >= before) {
        window = stride = 1;
        pad = 0;
        link->rows = before;
    }
    link->reads[link->read_count++] =
        (muc_chain_read){ .column = k ? c->links[k - 1].result : c->column_count,
                          .rows = before,
                          .stride = stride,
                          .window = window,
                          .pad = pad,
                          .row_bytes = row_bytes };
    if (k == 0)
        c->columns[c->column_count++] = (muc_chain_column){
            .maker = MUC_CHAIN_NONE, .rows = before, .row_bytes = row_bytes, .transfers = 1
        };
    if (choose(0, 2) == 0) { /* all of something, as weights */
        c->columns[c->column_count] = (muc_chain_column){
            .maker = MUC_CHAIN_NONE, .fetcher = k, .rows = 1, .row_bytes = 100, .transfers = 1
        };
        link->reads[link->read_count++] =
            (muc_chain_read){ .column = c->column_count++, .rows = 1, .row_bytes = 100 };
    } else if (k > 1 && choose(0, 2) == 0) { /* all of what an earlier link made */
        const muc_chain_column *earlier = &c->columns[c->links[k - 2].result];

        link->reads[link->read_count++] = (muc_chain_read){ .column = c->links[k - 2].result,
                                                            .rows = earlier->rows,
                                                            .row_bytes = earlier->row_bytes };
    }
    link->result = c->column_count;
    c->columns[c->column_count++] = (muc_chain_column){ .maker = k,
                                                        .rows = link->rows,
                                                        .row_bytes = choose(1, 9),
                                                        .transfers = 1,
                                                        .is_stored = choose(0, 3) == 0 };
}

/* walks the turns and looks at each row that is needed */
static void walk(const muc_chain *c, const muc_chain_plan *plan)
{
    static uint8_t seen[MUC_CHAIN_COLUMNS][64]; /* how often a row came */
    uint32_t done[MUC_CHAIN_LINKS] = { 0 };
    uint64_t in = 0, out = 0;

    memset(seen, 0, sizeof(seen));
    for (uint32_t turn = 0; turn < plan->turns; turn++) {
        for (uint32_t i = 0; i < c->column_count; i++) {
            muc_chain_span now = plan->spans[turn][i];
            uint32_t had = turn ? plan->spans[turn - 1][i].end : 0;

            CHECK(now.first <= now.end && now.end <= c->columns[i].rows && now.end >= had);
            CHECK(!turn || now.first >= plan->spans[turn - 1][i].first);
            CHECK((now.end - now.first) * c->columns[i].row_bytes <= plan->rooms[i].bytes);
            for (uint32_t row = had > now.first ? had : now.first; row < now.end; row++)
                seen[i][row]++;
        }
        for (uint32_t k = 0; k < c->link_count; k++) {
            const muc_chain_link *link = &c->links[k];
            uint32_t end = plan->spans[turn][link->result].end;

            CHECK(plan->spans[turn][link->result].first <= done[k]); /* new rows have a place */
            for (uint32_t row = done[k]; row < end; row++)
                for (uint32_t i = 0; i < link->read_count; i++) {
                    const muc_chain_read *read = &link->reads[i];
                    muc_chain_span there = plan->spans[turn][read->column];

                    for (uint32_t w = 0; w < (read->window ? read->window : read->rows); w++) {
                        int64_t at = read->window ? (int64_t)row * read->stride - read->pad + w : w;

                        if (at >= 0 && at < read->rows)
                            CHECK(at >= there.first && at < there.end);
                    }
                }
            done[k] = end;
        }
    }
    for (uint32_t i = 0; i < c->column_count; i++) {
        const muc_chain_column *column = &c->columns[i];

        for (uint32_t row = 0; row < column->rows; row++) {
            CHECK(seen[i][row] <= 1);
            CHECK(column->maker == MUC_CHAIN_NONE || seen[i][row] == 1);
            in += column->maker == MUC_CHAIN_NONE ? seen[i][row] * column->row_bytes : 0;
            out += column->is_stored ? column->row_bytes : 0;
        }
    }
    CHECK_EQ(plan->in_bytes, in);
    CHECK_EQ(plan->out_bytes, out);
}

static void rows_come_once_and_are_there_when_needed(void **state)
{
    static muc_chain chain;
    static muc_chain_plan plan;

    (void)state;
    for (uint32_t i = 0; i < 400; i++) {
        uint32_t links = choose(1, 6), rows;

        chain = (muc_chain){ .machine = &machine };
        for (uint32_t k = 0; k < links; k++)
            add_link(&chain);
        chain.columns[chain.links[links - 1].result].is_stored = true;
        rows = chain.links[links - 1].rows;
        for (uint32_t turns = 1; turns <= (links > 1 ? rows : 1); turns += choose(1, 4)) {
            CHECK(muc_chain_try(&chain, turns, &plan));
            walk(&chain, &plan);
            CHECK(plan.cycles >= plan.compute_cycles && plan.cycles >= plan.dma_cycles);
            CHECK(plan.cycles <= plan.compute_cycles + plan.dma_cycles);
        }
    }
}

static void more_turns_need_less_room(void **state)
{
    static muc_chain chain;
    static muc_chain_plan whole, turns;

    (void)state;
    chain = (muc_chain){ .machine = &machine, .link_count = 2, .column_count = 3 };
    for (uint32_t k = 0; k < 2; k++) /* 3x3 windows over 64 rows of 100 bytes */
        chain.links[k] = (muc_chain_link){
            .rows = 64,
            .result = k + 1,
            .cores = 1,
            .row_cycles = 10,
            .read_count = 1,
            .reads = { { .column = k,
                         .rows = 64,
                         .stride = 1,
                         .window = 3,
                         .pad = 1,
                         .row_bytes = 100 } },
        };
    for (uint32_t i = 0; i < 3; i++)
        chain.columns[i] = (muc_chain_column){ .maker = i ? i - 1 : MUC_CHAIN_NONE,
                                               .rows = 64,
                                               .row_bytes = 100,
                                               .transfers = 1,
                                               .is_stored = i == 2 };
    CHECK(muc_chain_try(&chain, 1, &whole));
    CHECK(muc_chain_try(&chain, 16, &turns));
    CHECK_EQ(whole.peak, 2 * 6400); /* what the first reads is gone when the second works */
    /* 4 rows of the result, and of what is read 2 that stay and, in the first turn, one or two
     * ahead: 5 + 6 of what comes */
    CHECK_EQ(turns.peak, (400 + 608 + 608));
    CHECK_EQ(turns.in_bytes, 6400);
    CHECK_EQ(turns.out_bytes, 6400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_once_and_are_there_when_needed),
        cmocka_unit_test(more_turns_need_less_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

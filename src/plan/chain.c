/* chain.c - plans chains of layers in tiles: spans of columns from the last layer back, then bytes
 * and cycles. */
#include "plan/chain.h"

#include <string.h>

/* a chain, and who reads each of its columns */
typedef struct view {
    const muc_chain *chain;
    muc_chain_plan *plan;
    uint16_t readers[MUC_CHAIN_COLUMNS + 1]; /* where a column's begin among these: */
    struct {
        uint8_t link, read;
    } reader[MUC_CHAIN_LINKS * MUC_CHAIN_READS];
    uint16_t columns[MUC_CHAIN_LINKS + 1]; /* the first that a link fetches or makes */
} view;

static void look(view *v)
{
    uint16_t at[MUC_CHAIN_COLUMNS + 1] = { 0 };
    const muc_chain *chain = v->chain;
    uint32_t c = 0;

    for (uint32_t k = 0; k < chain->link_count; k++)
        for (uint32_t i = 0; i < chain->links[k].read_count; i++)
            at[chain->links[k].reads[i].column + 1]++;
    for (uint32_t i = 0; i < chain->column_count; i++)
        at[i + 1] = (uint16_t)(at[i + 1] + at[i]);
    memcpy(v->readers, at, sizeof(at));
    for (uint32_t k = 0; k < chain->link_count; k++)
        for (uint32_t i = 0; i < chain->links[k].read_count; i++) {
            uint32_t place = at[chain->links[k].reads[i].column]++;

            v->reader[place].link = (uint8_t)k;
            v->reader[place].read = (uint8_t)i;
        }
    for (uint32_t k = 0; k < chain->link_count; k++) {
        v->columns[k] = (uint16_t)c;
        while (c < chain->column_count &&
               (chain->columns[c].maker == MUC_CHAIN_NONE ? chain->columns[c].fetcher
                                                          : chain->columns[c].maker) == k)
            c++;
        v->columns[k + 1] = (uint16_t)c;
    }
}

typedef struct bytes {
    uint64_t begin, end;
} bytes;

/* of a column, for a link's result rows first..end-1 */
static bytes needed(const muc_chain_read *read, uint32_t first, uint32_t end)
{
    uint64_t begin = 0, last = read->rows;

    if (read->window) {
        uint64_t from = (uint64_t)first * read->stride;
        uint64_t to = (uint64_t)(end - 1) * read->stride + read->window;

        begin = from > read->pad ? from - read->pad : 0;
        begin = begin < read->rows ? begin : read->rows;
        to = to > read->pad ? to - read->pad : 0;
        last = to < read->rows ? to : read->rows;
        last = last > begin ? last : begin;
    }
    return (bytes){ read->skip + begin * read->row_bytes, read->skip + last * read->row_bytes };
}

static uint32_t least_row(const muc_chain_column *column, uint64_t at)
{
    uint64_t row = at / column->row_bytes;

    return row < column->rows ? (uint32_t)row : column->rows;
}

static uint32_t most_row(const muc_chain_column *column, uint64_t end)
{
    uint64_t row = (end + column->row_bytes - 1) / column->row_bytes;

    return row < column->rows ? (uint32_t)row : column->rows;
}

/* a column's span in a turn, when those of its readers' results are known */
static muc_chain_span span_of(const view *v, uint32_t turn, uint32_t c)
{
    const muc_chain_plan *plan = v->plan;
    const muc_chain_column *column = &v->chain->columns[c];
    uint32_t before = turn ? plan->spans[turn - 1][c].end : 0;
    muc_chain_span span = { column->rows, before };

    for (uint32_t r = v->readers[c]; r < v->readers[c + 1]; r++) {
        const muc_chain_link *link = &v->chain->links[v->reader[r].link];
        const muc_chain_read *read = &link->reads[v->reader[r].read];
        uint32_t from = turn ? plan->spans[turn - 1][link->result].end : 0, row;
        uint32_t to = plan->spans[turn][link->result].end;

        if (from < link->rows) { /* it needs these now, or later on */
            row = least_row(column, needed(read, from, from + 1).begin);
            span.first = row < span.first ? row : span.first;
        }
        if (to > from) {
            row = most_row(column, needed(read, from, to).end);
            span.end = row > span.end ? row : span.end;
        }
    }
    if (column->maker != MUC_CHAIN_NONE) {
        if (v->readers[c] == v->readers[c + 1])
            span.end = (uint32_t)((uint64_t)column->rows * (turn + 1) / plan->turns);
        if (turn + 1 == plan->turns)
            span.end = column->rows;
        span.first = before < span.first ? before : span.first;
    }
    span.first = span.first < span.end ? span.first : span.end;
    return span;
}

static void find_spans(const view *v)
{
    muc_chain_plan *plan = v->plan;

    for (uint32_t turn = 0; turn < plan->turns; turn++)
        for (uint32_t c = v->chain->column_count; c-- > 0;)
            plan->spans[turn][c] = span_of(v, turn, c);
}

/* rows of a column that are new in a turn */
static uint32_t new_rows(const muc_chain_plan *plan, uint32_t turn, uint32_t c)
{
    muc_chain_span now = plan->spans[turn][c];
    uint32_t from = now.first;

    if (turn && plan->spans[turn - 1][c].end > from)
        from = plan->spans[turn - 1][c].end;
    return now.end > from ? now.end - from : 0;
}

static uint64_t align(const muc_chain *chain, uint64_t size)
{
    uint64_t unit = chain->machine->alignment ? chain->machine->alignment : 1;

    return (size + unit - 1) / unit * unit;
}

/* ---- room ---- */

static void find_room(const view *v, uint32_t c)
{
    const muc_chain *chain = v->chain;
    muc_chain_plan *plan = v->plan;
    const muc_chain_column *column = &chain->columns[c];
    bool is_fetched = column->maker == MUC_CHAIN_NONE, stays = false;
    uint32_t last = chain->link_count - 1, begin = is_fetched ? column->fetcher : column->maker;
    muc_chain_room *room = &plan->rooms[c];
    uint64_t rows = 0;

    for (uint32_t turn = 0; turn < plan->turns; turn++) {
        muc_chain_span now = plan->spans[turn][c];

        rows = now.end - now.first > rows ? now.end - now.first : rows;
        stays = stays || (turn && plan->spans[turn - 1][c].end > now.first);
    }
    *room = (muc_chain_room){ align(chain, rows * column->row_bytes), begin, begin };
    if (v->readers[c] < v->readers[c + 1]) /* in the order of links */
        room->last = v->reader[v->readers[c + 1] - 1].link;
    if (is_fetched) /* it comes while the link before works */
        room->first = begin ? begin - 1 : 0;
    else if (column->is_stored && room->last == begin && begin < last) /* and goes in the next */
        room->last = begin + 1;
    if (plan->turns > 1 &&
        (stays || (is_fetched && begin == 0) || (column->is_stored && begin == last))) {
        room->first = 0;
        room->last = last;
    }
}

static void find_peak(const view *v)
{
    uint64_t live = 0, gone[MUC_CHAIN_LINKS + 1] = { 0 }, come[MUC_CHAIN_LINKS + 1] = { 0 };

    for (uint32_t c = 0; c < v->chain->column_count; c++) {
        const muc_chain_room *room = &v->plan->rooms[c];

        find_room(v, c);
        come[room->first] += room->bytes;
        gone[room->last + 1] += room->bytes;
    }
    v->plan->peak = 0;
    for (uint32_t k = 0; k < v->chain->link_count; k++) {
        uint64_t scratch = v->chain->links[k].scratch_bytes;

        live += come[k] - gone[k];
        v->plan->peak = live + scratch > v->plan->peak ? live + scratch : v->plan->peak;
    }
}

/* ---- cycles ---- */

static uint64_t move_cycles(const muc_chain *chain, const muc_chain_plan *plan, uint32_t turn,
                            uint32_t c, uint64_t *moved)
{
    const muc_chain_column *column = &chain->columns[c];
    uint32_t rows = new_rows(plan, turn, c), speed = chain->machine->dma_bytes_per_cycle;
    uint64_t size = rows * column->row_bytes;

    *moved += size;
    return rows ? (uint64_t)column->transfers * chain->machine->dma_setup_cycles +
                      (size + speed - 1) / speed
                : 0;
}

/* of what a link fetches, or of its result */
static uint64_t link_cycles(const view *v, uint32_t turn, uint32_t link, bool stores)
{
    muc_chain_plan *plan = v->plan;
    uint64_t cycles = 0;

    for (uint32_t c = v->columns[link]; c < v->columns[link + 1]; c++) {
        const muc_chain_column *column = &v->chain->columns[c];

        if (stores ? column->is_stored : column->maker == MUC_CHAIN_NONE)
            cycles +=
                move_cycles(v->chain, plan, turn, c, stores ? &plan->out_bytes : &plan->in_bytes);
    }
    plan->dma_cycles += cycles;
    return cycles;
}

static uint64_t compute_cycles(const view *v, uint32_t turn, uint32_t link)
{
    const muc_chain_link *l = &v->chain->links[link];
    uint32_t rows = new_rows(v->plan, turn, l->result);
    uint64_t cycles = rows ? v->chain->machine->call_cycles : 0;

    cycles += (uint64_t)(rows / l->cores + (rows % l->cores != 0)) * l->row_cycles;
    v->plan->compute_cycles += cycles;
    return cycles;
}

static void find_cycles(const view *v)
{
    muc_chain_plan *plan = v->plan;
    uint32_t links = v->chain->link_count, slots = plan->turns * links;
    uint64_t stored = 0;

    plan->compute_cycles = plan->dma_cycles = plan->in_bytes = plan->out_bytes = 0;
    plan->cycles = link_cycles(v, 0, 0, false);
    for (uint32_t n = 0; n < slots; n++) {
        uint64_t compute = compute_cycles(v, n / links, n % links), moves = stored;

        if (n + 1 < slots)
            moves += link_cycles(v, (n + 1) / links, (n + 1) % links, false);
        plan->cycles += compute > moves ? compute : moves;
        stored = link_cycles(v, n / links, n % links, true);
    }
    plan->cycles += stored;
}

bool muc_chain_try(const muc_chain *chain, uint32_t turns, muc_chain_plan *plan)
{
    view v = { .chain = chain, .plan = plan };

    plan->turns = turns;
    look(&v);
    find_spans(&v);
    find_peak(&v);
    if (plan->peak > chain->machine->capacity_bytes)
        return false;
    find_cycles(&v);
    return true;
}

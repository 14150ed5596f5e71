/* mur_hal_host.c - a DMA and cores that a host emulates, strictly.
 *
 * A move copies nothing until it is waited for. Its destination is filled with bytes that depend on
 * their place and the move, its source is summed; both are looked at again when it ends, so that a
 * write to either is found, and a read of the destination too early gives wrong results for
 * certain. Forked tasks run at the join, one after another, in an order drawn anew each time.
 */
#ifndef MUR_HAL_BOARD
#include <stddef.h>

#include "mur_hal.h"
#include "mur_hal_host.h"

typedef struct flight {
    mur_hal_move move;
    mur_hal_ticket ticket;
    uint32_t sum; /* of the source */
} flight;

void (*mur_hal_host_problem)(const char *what);
uint32_t mur_hal_host_moves;
uint64_t mur_hal_host_bytes;

static flight flights[MUR_HAL_MOST_MOVES]; /* the oldest first */
static uint32_t flight_count;
static mur_hal_ticket last_ticket;
static uint32_t state = 1;

enum { MOST_TASKS = 64 };
static struct {
    mur_hal_task *task;
    void *context;
    uint32_t count;
} forked;

static void complain(const char *what)
{
    if (!mur_hal_host_problem)
        __builtin_trap();
    mur_hal_host_problem(what);
}

static uint32_t draw(void)
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

void mur_hal_host_seed(uint32_t seed)
{
    state = seed;
}

static uint8_t poison(const flight *f, uint32_t row, uint32_t i)
{
    return (uint8_t)((f->ticket * 2654435761u + row * 40503u + i * 167u) >> 5 ^ 0xa5u);
}

static uint32_t sum_source(const mur_hal_move *move)
{
    const uint8_t *from = move->from;
    uint32_t sum = 2166136261u;

    for (uint32_t row = 0; row < move->rows; row++)
        for (uint32_t i = 0; i < move->row_bytes; i++)
            sum = (sum ^ from[(size_t)row * move->from_pitch + i]) * 16777619u;
    return sum;
}

static void fill_destination(const flight *f)
{
    uint8_t *to = f->move.to;

    for (uint32_t row = 0; row < f->move.rows; row++)
        for (uint32_t i = 0; i < f->move.row_bytes; i++)
            to[(size_t)row * f->move.to_pitch + i] = poison(f, row, i);
}

static int is_filled(const flight *f)
{
    const uint8_t *to = f->move.to;

    for (uint32_t row = 0; row < f->move.rows; row++)
        for (uint32_t i = 0; i < f->move.row_bytes; i++)
            if (to[(size_t)row * f->move.to_pitch + i] != poison(f, row, i))
                return 0;
    return 1;
}

/* does [at, at + bytes) meet one of the rows? */
static int meets_rows(uintptr_t at, uint32_t bytes, uintptr_t rows_at, uint32_t rows,
                      uint32_t row_bytes, uint32_t pitch)
{
    uintptr_t first;

    if (at + bytes <= rows_at)
        return 0;
    /* the last row that begins at or before `at`, and the one after it */
    first = at <= rows_at || rows == 1 ? 0 : (at - rows_at) / pitch;
    for (uintptr_t row = first; row < rows && row < first + 2; row++) {
        uintptr_t begin = rows_at + row * pitch;

        if (at < begin + row_bytes && begin < at + bytes)
            return 1;
    }
    return 0;
}

static int meets(const void *a, uint32_t a_rows, uint32_t a_bytes, uint32_t a_pitch, const void *b,
                 uint32_t b_rows, uint32_t b_bytes, uint32_t b_pitch)
{
    for (uint32_t row = 0; row < a_rows; row++)
        if (meets_rows((uintptr_t)a + (uintptr_t)row * a_pitch, a_bytes, (uintptr_t)b, b_rows,
                       b_bytes, b_pitch))
            return 1;
    return 0;
}

static int writes_source(const mur_hal_move *a, const mur_hal_move *b)
{
    return meets(a->to, a->rows, a->row_bytes, a->to_pitch, b->from, b->rows, b->row_bytes,
                 b->from_pitch);
}

static int writes_destination(const mur_hal_move *a, const mur_hal_move *b)
{
    return meets(a->to, a->rows, a->row_bytes, a->to_pitch, b->to, b->rows, b->row_bytes,
                 b->to_pitch);
}

static void check_start(const mur_hal_move *move)
{
    if (!move->rows || !move->row_bytes) {
        complain("a move of no bytes");
        return;
    }
    if (move->rows > 1 &&
        (move->to_pitch < move->row_bytes || move->from_pitch < move->row_bytes)) {
        complain("a move whose rows overlap");
        return;
    }
    if (writes_source(move, move))
        complain("a move onto its own source");
    for (uint32_t i = 0; i < flight_count; i++) {
        if (writes_source(move, &flights[i].move))
            complain("a move onto the source of one in flight");
        if (writes_source(&flights[i].move, move))
            complain("a move from the destination of one in flight");
        if (writes_destination(move, &flights[i].move))
            complain("two moves in flight to one place");
    }
}

static void end_oldest(void)
{
    const flight *f = &flights[0];
    const mur_hal_move *move = &f->move;

    if (!is_filled(f))
        complain("the destination of a move in flight was written");
    if (sum_source(move) != f->sum)
        complain("the source of a move in flight was written");
    for (uint32_t row = 0; row < move->rows; row++)
        for (uint32_t i = 0; i < move->row_bytes; i++)
            ((uint8_t *)move->to)[(size_t)row * move->to_pitch + i] =
                ((const uint8_t *)move->from)[(size_t)row * move->from_pitch + i];
    flight_count--;
    for (uint32_t i = 0; i < flight_count; i++)
        flights[i] = flights[i + 1];
}

mur_hal_ticket mur_hal_start(const mur_hal_move *move)
{
    flight *f;

    check_start(move);
    if (flight_count == MUR_HAL_MOST_MOVES) {
        complain("more moves in flight than MUR_HAL_MOST_MOVES");
        end_oldest();
    }
    if (++last_ticket == 0)
        last_ticket = 1;
    f = &flights[flight_count++];
    *f = (flight){ .move = *move, .ticket = last_ticket, .sum = sum_source(move) };
    fill_destination(f);
    mur_hal_host_moves++;
    mur_hal_host_bytes += (uint64_t)move->rows * move->row_bytes;
    return last_ticket;
}

void mur_hal_wait(mur_hal_ticket ticket)
{
    if (!ticket)
        return;
    if (ticket - last_ticket - 1 < 0x7fffffffu)
        complain("a wait for a move that was never started");
    /* in the order of starts, so those up to the ticket are the first */
    while (flight_count && ticket - flights[0].ticket < 0x80000000u)
        end_oldest();
}

void mur_hal_fork(mur_hal_task *task, void *context, uint32_t count)
{
    if (forked.task)
        complain("a fork before the join of another");
    if (!count || count > MOST_TASKS)
        complain("a fork of no tasks, or of more than 64");
    forked.task = task;
    forked.context = context;
    forked.count = count > MOST_TASKS ? MOST_TASKS : count;
}

void mur_hal_join(void)
{
    uint8_t order[MOST_TASKS];
    mur_hal_task *task = forked.task;

    if (!task) {
        complain("a join without a fork");
        return;
    }
    for (uint32_t i = 0; i < forked.count; i++) { /* inside-out shuffle */
        uint32_t j = draw() % (i + 1);

        order[i] = order[j];
        order[j] = (uint8_t)i;
    }
    for (uint32_t i = 0; i < forked.count; i++)
        task(forked.context, order[i], forked.count);
    forked.task = NULL;
}
#else
typedef int mur_hal_host_is_not_used;
#endif

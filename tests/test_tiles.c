/* test_tiles.c - layers in tiles give the bits of whole layers, whatever the tiles, the order of
 * the cores and the moves in flight; and the host's board finds every broken contract. */
#include "mur_tiles.h"

#include <string.h>

#include "chance.h"
#include "check.h"
#include "mur_hal.h"
#include "mur_hal_host.h"

/* the loop over tiles once more, with waits that can be left out */
static void faulty_wait(mur_hal_ticket ticket);
#define mur_hal_wait faulty_wait
#define mur_tiles_run faulty_tiles_run
void faulty_tiles_run(const mur_tiles *tiles, const void *layer, mur_tiles_compute *compute,
                      const void *kernel, void *const data[MUR_TILES_OPERANDS], uint8_t *small);
#include "../runtime/kernels/tiles/mur_tiles.c"
#undef mur_hal_wait
#undef mur_tiles_run

enum { MOST = 1 << 15, SMALL = 1 << 18, ROUNDS = 2000 };

static int8_t in[MOST], out[MOST], expected[MOST], weights[MOST];
static uint8_t small[SMALL], packed[8 * MOST], whole_packed[8 * MOST], scratch[8 * MOST];

static unsigned problems;
static const char *last_problem;

static void note(const char *what)
{
    problems++;
    last_problem = what;
}

static uint32_t between(uint32_t least, uint32_t most)
{
    return least + random_u32() % (most - least + 1);
}

static void draw_bytes(int8_t *data, size_t count)
{
    for (size_t i = 0; i < count; i++)
        data[i] = (int8_t)random_u32();
}

/* ---- the host's board ---- */

static void a_move_arrives_when_it_is_waited_for(void **state)
{
    uint8_t from[64], to[64];
    const mur_hal_move move = { to, from, 3, 5, 7, 11 };
    mur_hal_ticket ticket;

    (void)state;
    problems = 0;
    for (unsigned i = 0; i < sizeof(from); i++)
        from[i] = (uint8_t)i;
    memset(to, 99, sizeof(to));
    ticket = mur_hal_start(&move);
    CHECK(memcmp(to, from, 5) != 0);
    mur_hal_wait(ticket);
    for (unsigned row = 0; row < 3; row++)
        CHECK(memcmp(to + 7 * row, from + 11 * row, 5) == 0);
    CHECK_EQ(to[5], 99);
    CHECK_EQ(problems, 0);
}

static void touched_buffers_are_found(void **state)
{
    uint8_t from[16] = { 0 }, to[16], other[16] = { 0 };
    const mur_hal_move move = { to, from, 1, 16, 16, 16 };
    const mur_hal_move onto_source = { from, other, 1, 4, 4, 4 };
    const mur_hal_move onto_destination = { to + 12, other, 1, 4, 4, 4 };
    const mur_hal_move from_destination = { other, to + 15, 1, 1, 1, 1 };
    const mur_hal_move *const clashing[] = { &onto_source, &onto_destination, &from_destination };
    mur_hal_ticket ticket;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        ticket = mur_hal_start(&move);
        problems = 0;
        ticket = mur_hal_start(clashing[i]);
        CHECK_EQ(problems, 1);
        mur_hal_wait(ticket);
    }
    ticket = mur_hal_start(&move);
    from[3] ^= 1;
    problems = 0;
    mur_hal_wait(ticket);
    CHECK_EQ(problems, 1);
    CHECK(strstr(last_problem, "source") != NULL);
    ticket = mur_hal_start(&move);
    to[7] ^= 1;
    mur_hal_wait(ticket);
    CHECK_EQ(problems, 2);
    CHECK(strstr(last_problem, "destination") != NULL);
    mur_hal_wait(ticket + 1);
    CHECK_EQ(problems, 3);
    mur_hal_join();
    CHECK_EQ(problems, 4);
}

/* ---- tiles ---- */

/* how an operand's axes are cut, and its two buffers; advances *at */
static void place(const mur_tiles *t, mur_tiles_operand *operand, uint32_t *at)
{
    uint32_t rows =
        operand->window ? (t->row_tile - 1) * operand->stride + operand->window : operand->rows;
    uint32_t bytes;

    if (rows > operand->rows)
        rows = operand->rows;
    if (operand->channel_bytes)
        operand->part_bytes = rows * operand->pixels * t->part * operand->channel_bytes;
    bytes = operand->part_bytes ? operand->part_bytes * t->parts
                                : rows * operand->pixels * operand->pixel_bytes;
    bytes = (bytes + 15) / 16 * 16;
    operand->at[0] = *at;
    operand->at[1] = *at + (t->double_buffered ? bytes : 0);
    *at = operand->at[1] + bytes;
}

static mur_tiles draw_tiles(uint32_t rows, uint32_t channels)
{
    mur_tiles t = { .rows = rows, .channels = channels, .cores = (uint8_t)between(1, 8) };

    t.row_tile = between(1, rows);
    t.part = between(1, channels);
    t.parts = between(1, MUR_TILES_MOST_PARTS);
    if (t.parts > (channels + t.part - 1) / t.part)
        t.parts = (channels + t.part - 1) / t.part;
    t.channels_outer = random_u32() & 1;
    t.double_buffered = random_u32() & 1;
    return t;
}

static mur_conv_s8 draw_conv(void)
{
    mur_conv_s8 l = {
        .shape = {
            .in_h = (int32_t)between(3, 9),
            .in_w = (int32_t)between(3, 9),
            .in_c = (int32_t)between(1, 9),
            .out_c = (int32_t)between(1, 13),
            .groups = 1,
            .kernel_h = (uint16_t)between(1, 3),
            .kernel_w = (uint16_t)between(1, 3),
            .stride_h = (uint16_t)between(1, 2),
            .stride_w = (uint16_t)between(1, 2),
            .dilation_h = 1,
            .dilation_w = 1,
        },
        .in_zero = (int8_t)random_u32(),
        .output = { .kind = MUR_REQUANT_Q31, .zero = 3, .min = -128, .max = 127 },
    };

    if (random_u32() & 1)
        l.shape.groups = l.shape.out_c = l.shape.in_c;
    l.shape.pad_top = (uint16_t)between(0, l.shape.kernel_h - 1u);
    l.shape.pad_left = (uint16_t)between(0, l.shape.kernel_w - 1u);
    l.shape.out_h = (l.shape.in_h + 2 * l.shape.pad_top - l.shape.kernel_h) / l.shape.stride_h + 1;
    l.shape.out_w = (l.shape.in_w + 2 * l.shape.pad_left - l.shape.kernel_w) / l.shape.stride_w + 1;
    l.shape.in_pitch = l.shape.in_w * l.shape.in_c;
    l.shape.out_pitch = l.shape.out_w * l.shape.out_c;
    return l;
}

/* packs the parts of a layer's channels one after another; bytes from one to the next */
static uint32_t pack_parts(const mur_conv_s8 *layer, const mur_conv_plain *plain, uint32_t part)
{
    mur_conv_s8 some = *layer;
    uint32_t inputs = (uint32_t)(layer->shape.kernel_h * layer->shape.kernel_w *
                                 (layer->shape.in_c / layer->shape.groups));
    uint32_t bytes;

    some.shape.out_c = (int32_t)part;
    bytes = ((uint32_t)mur_ref_conv_s8_packed_bytes(&some) + 15) / 16 * 16;
    for (uint32_t c = 0; c < (uint32_t)layer->shape.out_c; c += part) {
        mur_conv_plain p = { plain->weights + c * inputs, plain->bias + c, plain->mul + c,
                             plain->shift + c };

        if ((uint32_t)layer->shape.out_c - c < part)
            some.shape.out_c = layer->shape.out_c - (int32_t)c;
        if (layer->shape.groups > 1)
            some.shape.in_c = some.shape.groups = some.shape.out_c;
        mur_ref_conv_s8_pack(&some, &p, packed + c / part * bytes);
    }
    return bytes;
}

static void convolutions_in_tiles_are_those_in_one_piece(void **state)
{
    int32_t bias[16], mul[16], shift[16];
    const mur_conv_plain plain = { weights, bias, mul, shift };

    (void)state;
    problems = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        mur_conv_s8 layer = draw_conv();
        mur_tiles t = draw_tiles((uint32_t)layer.shape.out_h, (uint32_t)layer.shape.out_c);
        uint32_t at = 0, bytes = (uint32_t)(layer.shape.out_h * layer.shape.out_pitch);

        for (unsigned c = 0; c < 16; c++) {
            bias[c] = (int32_t)between(0, 2000) - 1000;
            mul[c] = (int32_t)between(1u << 30, 0x7fffffff);
            shift[c] = -(int32_t)between(4, 9);
        }
        draw_bytes(in, (size_t)(layer.shape.in_h * layer.shape.in_pitch));
        draw_bytes(weights, 2048);
        mur_ref_conv_s8_pack(&layer, &plain, whole_packed);
        layer.packed = whole_packed;
        mur_ref_conv_s8(&layer, in, expected, scratch);

        t.operand_count = 3;
        t.operands[0] = (mur_tiles_operand){ .pixel_bytes = (uint32_t)layer.shape.in_c,
                                             .pixels = (uint32_t)layer.shape.in_w,
                                             .channel_bytes = layer.shape.groups > 1,
                                             .rows = (uint32_t)layer.shape.in_h,
                                             .stride = layer.shape.stride_h,
                                             .window = layer.shape.kernel_h,
                                             .pad = layer.shape.pad_top };
        t.operands[1] = (mur_tiles_operand){ .rows = 1, .pixels = 1 };
        t.operands[1].part_bytes = pack_parts(&layer, &plain, t.part);
        t.operands[2] = (mur_tiles_operand){ .pixel_bytes = (uint32_t)layer.shape.out_c,
                                             .pixels = (uint32_t)layer.shape.out_w,
                                             .channel_bytes = 1,
                                             .rows = (uint32_t)layer.shape.out_h,
                                             .stride = 1,
                                             .window = 1 };
        for (unsigned i = 0; i < 3; i++)
            place(&t, &t.operands[i], &at);
        t.scratch = at;
        t.scratch_bytes = ((uint32_t)mur_ref_conv_s8_scratch_bytes(&layer) + 15) / 16 * 16;
        CHECK(at + t.cores * t.scratch_bytes <= SMALL);
        layer.packed = packed;
        memset(out, 0, bytes);
        mur_hal_host_seed(round);
        mur_tiles_conv_s8(&t, &layer, mur_ref_conv_s8, in, out, small);
        CHECK(memcmp(out, expected, bytes) == 0);
    }
    CHECK_EQ(problems, 0);
}

static void a_tile_that_stays_is_not_fetched_again(void **state)
{
    /* 4 rows of one pixel, two channels in one part: the weights come once */
    mur_conv_s8 layer = {
        .shape = {
            .in_h = 4,
            .in_w = 1,
            .in_c = 2,
            .out_h = 4,
            .out_w = 1,
            .out_c = 2,
            .in_pitch = 2,
            .out_pitch = 2,
            .kernel_h = 1,
            .kernel_w = 1,
            .stride_h = 1,
            .stride_w = 1,
            .dilation_h = 1,
            .dilation_w = 1,
            .groups = 1,
        },
        .packed = packed,
        .output = { .kind = MUR_REQUANT_Q31, .min = -128, .max = 127 },
    };
    const mur_tiles t = {
        .rows = 4,
        .channels = 2,
        .row_tile = 1,
        .part = 2,
        .parts = 1,
        .cores = 1,
        .operand_count = 3,
        .scratch = 4096,
        .operands = { { .at = { 0, 0 },
                        .pixel_bytes = 2,
                        .pixels = 1,
                        .rows = 4,
                        .stride = 1,
                        .window = 1 },
                      { .at = { 16, 16 }, .part_bytes = 64, .rows = 1, .pixels = 1 },
                      { .at = { 80, 80 },
                        .part_bytes = 2,
                        .pixel_bytes = 2,
                        .pixels = 1,
                        .channel_bytes = 1,
                        .rows = 4,
                        .stride = 1,
                        .window = 1 } },
    };
    uint32_t moves = mur_hal_host_moves;
    uint64_t bytes = mur_hal_host_bytes;

    (void)state;
    problems = 0;
    memset(packed, 0, 64);
    mur_tiles_conv_s8(&t, &layer, mur_ref_conv_s8, in, out, small);
    CHECK_EQ(mur_hal_host_moves - moves, 4 + 1 + 4);
    CHECK_EQ(mur_hal_host_bytes - bytes, 4 * 2 + 64 + 4 * 2);
    CHECK_EQ(problems, 0);
}

/* ---- waits left out ---- */

static unsigned waits, left_out; /* waits for moves that had not ended; which one, from 1 */
static mur_hal_ticket ended;

static void faulty_wait(mur_hal_ticket ticket)
{
    if (ticket <= ended)
        return;
    if (++waits == left_out)
        return;
    ended = ticket;
    mur_hal_wait(ticket);
}

/* the result is the input */
static void copy_piece(const mur_tiles_piece *piece, const void *kernel)
{
    (void)kernel;
    memcpy(piece->data[1], piece->data[0], piece->rows);
}

static void a_wait_left_out_is_noticed(void **state)
{
    enum { ROWS = 64, TILE = 16 };
    mur_tiles t = {
        .rows = ROWS,
        .channels = 1,
        .row_tile = TILE,
        .part = 1,
        .parts = 1,
        .cores = 3,
        .operand_count = 2,
        .operands = { { .pixel_bytes = 1, .pixels = 1, .rows = ROWS, .stride = 1, .window = 1 },
                      { .pixel_bytes = 1, .pixels = 1, .rows = ROWS, .stride = 1, .window = 1 } }
    };
    void *const data[MUR_TILES_OPERANDS] = { in, out };

    (void)state;
    for (unsigned two = 0; two < 2; two++) {
        unsigned count = 0;

        t.double_buffered = (uint8_t)two;
        t.operands[0].at[1] = two * TILE;
        t.operands[1].at[0] = (two + 1) * TILE;
        t.operands[1].at[1] = t.operands[1].at[0] + two * TILE;
        for (left_out = 0; left_out <= count; left_out++) {
            waits = problems = 0;
            ended = mur_hal_host_moves;
            draw_bytes(in, ROWS);
            memset(out, 0, ROWS);
            faulty_tiles_run(&t, NULL, copy_piece, NULL, data, small);
            if (left_out == 0)
                count = waits;
            /* what the last wait but one is for, the last one covers */
            if (left_out == 0 || (two && left_out == count - 1))
                CHECK(problems == 0 && memcmp(in, out, ROWS) == 0);
            else
                CHECK(problems != 0 || memcmp(in, out, ROWS) != 0);
            mur_hal_wait(mur_hal_host_moves);
        }
        CHECK(count > ROWS / TILE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_move_arrives_when_it_is_waited_for),
        cmocka_unit_test(touched_buffers_are_found),
        cmocka_unit_test(convolutions_in_tiles_are_those_in_one_piece),
        cmocka_unit_test(a_tile_that_stays_is_not_fetched_again),
        cmocka_unit_test(a_wait_left_out_is_noticed),
    };

    mur_hal_host_problem = note;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

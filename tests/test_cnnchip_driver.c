/* The master's driver of the CNN chip, against the chip's registers around its simulator. */
#include "base/half.h"
#include "check.h"
#include "cnnchip_insn.h"
#include "mur.h"
#include "mur_cnnchip.h"
#include "mur_half.h"
#include "targets/cnnchip/sim/chip_sim_registers.h"

enum { BUS = 4096, FRAME = 256, FILTER = 1024, PROGRAM = 2048, HEADER = 64, PORT = 48, PORTS = 4 };

typedef struct fixture {
    muc_cnnchip_device device;
    mur_cnnchip_board board;
    mur_cnnchip_files files;
    mur_cnnchip chip;
    uint8_t bus[BUS], frame_image[64], filter_image[80];
} fixture;

static uint32_t read_register(void *arg, uint32_t offset)
{
    return muc_cnnchip_read_register(arg, offset);
}

static void write_register(void *arg, uint32_t offset, uint32_t value)
{
    muc_cnnchip_write_register(arg, offset, value);
}

/* 2 x 2 windows of ones over the 2 x 2 input and its border: 3 x 3 sums */
static const insn conv = {
    .opcode = CONV,
    .src = 0,
    .in_c = 1,
    .in_h = 4,
    .in_w = 4,
    .groups = 1,
    .src_rows = 4,
    .src_pitch = 4,
    .dst = 64,
    .out_c = 1,
    .out_h = 3,
    .out_w = 3,
    .step_h = 1,
    .step_w = 1,
    .dst_rows = 3,
    .dst_pitch = 3,
    .kernel_h = 2,
    .kernel_w = 2,
    .stride_h = 1,
    .stride_w = 1,
    .dilation_h = 1,
    .dilation_w = 1,
};
/* the sums thrice */
static const insn thrice = {
    .opcode = ADD,
    .flags = ONE,
    .src = 64,
    .src_rows = 3,
    .src_pitch = 3,
    .dst = 100,
    .out_c = 1,
    .out_h = 3,
    .out_w = 3,
    .step_h = 1,
    .step_w = 1,
    .dst_rows = 3,
    .dst_pitch = 3,
    .factor = 0x40400000,
};

static void put_port(uint8_t *p, uint32_t kind, uint32_t step, uint32_t address, uint32_t channels,
                     uint32_t size, uint32_t pitch, uint32_t last)
{
    const uint32_t words[] = { kind,  address,    channels, size, size, pitch,
                               pitch, 0x3f800000, 0,        step, last, 0 };

    for (int i = 0; i < 12; i++)
        put_word(p + 4 * i, words[i]);
}

static void seal(fixture *f)
{
    uint8_t *file = f->bus + PROGRAM;

    put_word(file + 48, mur_crc32(0, f->frame_image, f->files.frame_bytes));
    put_word(file + 52, mur_crc32(0, f->filter_image, f->files.filter_bytes));
    put_word(file + 56, mur_crc32(0, file + HEADER, f->files.program_bytes - HEADER));
    put_word(file + 60, mur_crc32(0, file, 60));
}

static void set_up(fixture *f, uint32_t made_for, uint32_t pes)
{
    uint8_t *file = f->bus + PROGRAM;
    uint32_t code = HEADER + PORTS * PORT, at = code;
    const insn step = { .opcode = END, .code = 1 }, end = { .opcode = END };

    memset(f, 0, sizeof(*f));
    for (int i = 0; i < 4; i++)
        put_word(f->filter_image + 4 * i, 0x3f800000);
    at += put_insn(file + at, &conv);
    at += put_insn(file + at, &step);
    at += put_insn(file + at, &thrice);
    at += put_insn(file + at, &end);
    put_port(file + HEADER, 0, 0, 20, 1, 2, 4, 0);
    put_port(file + HEADER + PORT, 1, 0, 100, 1, 3, 3, 0);
    put_port(file + HEADER + 2 * PORT, 2, 1, 64, 1, 3, 3, 0);
    put_port(file + HEADER + 3 * PORT, 3, 1, 80, 1, 1, 1, 0);
    f->files = (mur_cnnchip_files){ .program = file,
                                    .program_bytes = at,
                                    .frame = f->frame_image,
                                    .frame_bytes = 64,
                                    .filter = f->filter_image,
                                    .filter_bytes = 16 };
    const uint32_t header[] = {
        MUR_CNNCHIP_MAGIC, 1, 0, made_for, code, at - code, 4, 136, 32, 64, 16, PORTS
    };
    for (int i = 0; i < 12; i++)
        put_word(file + 4 * i, header[i]);
    seal(f);
    f->device.bus = f->bus;
    f->device.bus_bytes = BUS;
    f->device.sim.pes = pes;
    f->device.busy_reads = 3;
    f->board = (mur_cnnchip_board){ .frame = f->bus + FRAME,
                                    .filter = f->bus + FILTER,
                                    .frame_bytes = 512,
                                    .filter_bytes = 512,
                                    .frame_bus = FRAME,
                                    .filter_bus = FILTER,
                                    .program_bus = PROGRAM,
                                    .read = read_register,
                                    .write = write_register,
                                    .arg = &f->device };
}

static mur_status open_chip(fixture *f)
{
    return mur_cnnchip_open(&f->chip, &f->board, &f->files);
}

/* polls until the chip stops; how often it was busy must be what the device was told */
static mur_status stopped(fixture *f)
{
    mur_status status = MUR_YIELD;
    uint32_t polls = 0;

    for (; status == MUR_YIELD; polls++)
        status = mur_cnnchip_poll(&f->chip);
    CHECK_EQ(polls, f->device.busy_reads + 1);
    return status;
}

static void a_network_runs_with_its_host_step_again_and_again(void **state)
{
    static const float image[] = { 1, 2, 3, 4 };
    static const float expected[] = { 3, 9, 6, 12, 300, 18, 9, 21, 12 };
    static fixture f;
    float out[9], middle;

    (void)state;
    set_up(&f, 4, 4);
    CHECK_EQ(open_chip(&f), MUR_OK);
    for (int run = 0; run < 3; run++) {
        memset(f.bus + FRAME, 0xee, 512); /* a run may overwrite borders */
        mur_cnnchip_begin(&f.chip);
        CHECK_EQ(mur_cnnchip_put(&f.chip, 0, image), MUR_OK);
        mur_cnnchip_start(&f.chip);
        CHECK_EQ(stopped(&f), MUR_OK);
        CHECK_EQ(f.chip.step, 1);
        CHECK_EQ(mur_cnnchip_get(&f.chip, 2, out), MUR_OK); /* the host's step */
        assert_float_equal(out[4], 10.0f, 0);
        middle = 100.0f;
        CHECK_EQ(mur_cnnchip_put(&f.chip, 3, &middle), MUR_OK);
        mur_cnnchip_resume(&f.chip);
        CHECK_EQ(stopped(&f), MUR_OK);
        CHECK_EQ(f.chip.step, 0);
        CHECK_EQ(mur_cnnchip_get(&f.chip, 1, out), MUR_OK);
        assert_memory_equal(out, expected, sizeof(out));
        CHECK_EQ(mur_cnnchip_cycles(&f.chip), 9 + 3); /* 9 sums; 9 elements by 4 */
    }
    CHECK_EQ(mur_cnnchip_put(&f.chip, PORTS, image), MUR_E_INPUT);
}

static void every_damaged_byte_is_found(void **state)
{
    static fixture f;

    (void)state;
    set_up(&f, 4, 4);
    for (uint32_t i = 0; i < f.files.program_bytes; i++) {
        f.bus[PROGRAM + i] ^= 0x10;
        CHECK(open_chip(&f) != MUR_OK);
        f.bus[PROGRAM + i] ^= 0x10;
    }
    for (uint32_t i = 0; i < 16; i++) {
        f.filter_image[i] ^= 1;
        CHECK_EQ(open_chip(&f), MUR_E_MALFORMED);
        f.filter_image[i] ^= 1;
    }
    f.files.frame_bytes = 60;
    CHECK_EQ(open_chip(&f), MUR_E_MALFORMED);
    f.files.frame_bytes = 64;
    for (f.files.program_bytes--; f.files.program_bytes > 0; f.files.program_bytes--)
        CHECK_EQ(open_chip(&f), MUR_E_MALFORMED);
}

/* sealed anew: only the check of the field itself can find it */
static void refuses(uint32_t offset, uint32_t value, mur_status status)
{
    static fixture f;

    set_up(&f, 4, 4);
    put_word(f.bus + PROGRAM + offset, value);
    seal(&f);
    CHECK_EQ(open_chip(&f), status);
}

static void headers_and_ports_that_cannot_be_are_refused(void **state)
{
    (void)state;
    refuses(4, 2, MUR_E_UNSUPPORTED);         /* version */
    refuses(8, 3, MUR_E_UNSUPPORTED);         /* element */
    refuses(16, 60, MUR_E_MALFORMED);         /* where instructions begin */
    refuses(44, 0x10000000, MUR_E_MALFORMED); /* ports */
    refuses(28, 63, MUR_E_MALFORMED);         /* FRAME below its image */
    refuses(28, 135, MUR_E_MALFORMED);        /* the output ends behind it */
    refuses(28, 513, MUR_E_NOFIT);
    refuses(32, 513, MUR_E_NOFIT);
    refuses(HEADER, 4, MUR_E_MALFORMED);      /* no kind */
    refuses(HEADER, 2, MUR_E_MALFORMED);      /* of no host step */
    refuses(HEADER + 36, 1, MUR_E_MALFORMED); /* an input of a host step */
    refuses(HEADER + 40, 2, MUR_E_MALFORMED); /* no order */
    refuses(HEADER + 4, 0xfffffffc, MUR_E_MALFORMED);
    refuses(HEADER + 8, 0xffff, MUR_E_MALFORMED); /* channels */
    refuses(HEADER + 24, 1, MUR_E_MALFORMED);     /* pitch below the width */
    refuses(HEADER + 28, 0x7fc00000, MUR_E_MALFORMED);
}

static void a_chip_that_is_too_small_or_none_is_refused(void **state)
{
    static const uint32_t pairs[][3] = { { 4, 0, MUR_OK },         { 4, 4, MUR_OK },
                                         { 4, 64, MUR_OK },        { 8, 4, MUR_E_MACHINE },
                                         { 0, 64, MUR_E_MACHINE }, { 0, 0, MUR_OK } };
    static fixture f;

    (void)state;
    for (int i = 0; i < 6; i++) {
        set_up(&f, pairs[i][0], pairs[i][1]);
        CHECK_EQ(open_chip(&f), pairs[i][2]);
    }
    f.device.sim.pes = 0;
    f.board.arg = &(muc_cnnchip_device){ .sim = { .pes = 0 } };
    CHECK_EQ(open_chip(&f), MUR_OK);
}

static void a_fault_says_which_and_where(void **state)
{
    static fixture f;

    (void)state;
    set_up(&f, 0, 0);
    put_word(f.bus + PROGRAM + HEADER + PORTS * PORT + 4, 2); /* CONV's source */
    seal(&f);
    CHECK_EQ(open_chip(&f), MUR_OK);
    mur_cnnchip_begin(&f.chip);
    mur_cnnchip_start(&f.chip);
    CHECK_EQ(stopped(&f), MUR_E_FAULT);
    CHECK_EQ(f.chip.fault, MUC_CNNCHIP_FAULT_align);
    CHECK_EQ(f.chip.pc, 0);
    f.board.frame_bus = BUS - 8;
    CHECK_EQ(open_chip(&f), MUR_OK);
    mur_cnnchip_start(&f.chip);
    CHECK_EQ(stopped(&f), MUR_E_FAULT);
    CHECK_EQ(f.chip.fault, MUC_CNNCHIP_FAULT_frame);
}

/* middles go away from 0, as in the reference */
static void integers_are_quantized_as_the_network_quantizes(void **state)
{
    static const float values[] = { 0.75f, 0.25f, -0.25f, 1000.0f };
    static const uint8_t bytes[] = { 7 + 2, 7 + 1, 7 - 1, 127 };
    static fixture f;
    float back[4];

    (void)state;
    set_up(&f, 0, 0);
    put_word(f.bus + PROGRAM + 8, 2);                    /* int8 */
    put_word(f.bus + PROGRAM + HEADER + 28, 0x3f000000); /* scale 0.5 */
    put_word(f.bus + PROGRAM + HEADER + 32, 7);
    seal(&f);
    CHECK_EQ(open_chip(&f), MUR_OK);
    CHECK_EQ(mur_cnnchip_put(&f.chip, 0, values), MUR_OK);
    CHECK_EQ(f.bus[FRAME + 20], bytes[0]);
    CHECK_EQ(f.bus[FRAME + 21], bytes[1]);
    CHECK_EQ(f.bus[FRAME + 24], bytes[2]);
    CHECK_EQ(f.bus[FRAME + 25], bytes[3]);
    CHECK_EQ(mur_cnnchip_get(&f.chip, 0, back), MUR_OK);
    assert_float_equal(back[0], 1.0f, 0);
    assert_float_equal(back[3], 60.0f, 0);
}

/* the same bytes of FRAME as [2][2][2] with channels first and last, and as elements */
static void the_networks_order_may_have_channels_last(void **state)
{
    static const float first[] = { 1, 2, 3, 4, 5, 6, 7, 8 }, last[] = { 1, 5, 2, 6, 3, 7, 4, 8 };
    static fixture f;
    float back[8];

    (void)state;
    for (uint32_t order = 0; order < 2; order++) {
        const float *values = order ? last : first;

        set_up(&f, 0, 0);
        put_port(f.bus + PROGRAM + HEADER, 0, 0, 20, 2, 2, 4, order);
        seal(&f);
        CHECK_EQ(open_chip(&f), MUR_OK);
        CHECK_EQ(mur_cnnchip_put(&f.chip, 0, values), MUR_OK);
        for (uint32_t i = 0; i < 8; i++)
            assert_memory_equal(f.bus + FRAME + 20 + 4 * (i / 4 * 16 + i / 2 % 2 * 4 + i % 2),
                                &first[i], 4);
        CHECK_EQ(mur_cnnchip_get(&f.chip, 0, back), MUR_OK);
        assert_memory_equal(back, values, sizeof(back));
        memset(back, 0, sizeof(back));
        CHECK_EQ(mur_cnnchip_get_elements(&f.chip, 0, back), MUR_OK);
        assert_memory_equal(back, values, sizeof(back));
        memset(f.bus + FRAME, 0, 128);
        CHECK_EQ(mur_cnnchip_put_elements(&f.chip, 0, values), MUR_OK);
        assert_memory_equal(f.bus + FRAME + 20 + 4 * 20, &first[6], 4);
    }
}

static void halves_agree_with_the_compilers(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        float value = mur_float_of_half((uint16_t)bits), host = muc_f32_of_f16((uint16_t)bits);

        CHECK_EQ(bits_of(value), bits_of(host));
        if (value == value)
            CHECK_EQ(mur_half_of_float(value), bits);
    }
    for (uint64_t bits = 0; bits < 0x100000000u; bits += 4099) {
        float value = muc_f32_of_bits((uint32_t)bits);

        CHECK_EQ(mur_half_of_float(value), muc_f16_of_f32(value));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_network_runs_with_its_host_step_again_and_again),
        cmocka_unit_test(every_damaged_byte_is_found),
        cmocka_unit_test(headers_and_ports_that_cannot_be_are_refused),
        cmocka_unit_test(a_chip_that_is_too_small_or_none_is_refused),
        cmocka_unit_test(a_fault_says_which_and_where),
        cmocka_unit_test(integers_are_quantized_as_the_network_quantizes),
        cmocka_unit_test(the_networks_order_may_have_channels_last),
        cmocka_unit_test(halves_agree_with_the_compilers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

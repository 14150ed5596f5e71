/* main.c - a master processor's firmware: a network of `muc compile --target cnnchip` in flash, its
 * inputs beside it, the chip behind its registers.
 *
 * The chip is the simulator that muc itself runs networks on; a board with a real one gives
 * mur_cnnchip_board its addresses instead. network.h, which scripts/run_chip makes of map.json,
 * moves inputs and outputs and does host steps; outputs go to standard output.
 */
#include <string.h>

#include "firmware.h"
#include "mur_cnnchip.h"
#include "network.h"
#include "targets/cnnchip/sim/chip_sim_registers.h"

extern const uint8_t program_file[], program_file_end[], frame_file[], frame_file_end[];
extern const uint8_t filter_file[], filter_file_end[], inputs[], inputs_end[];

static muc_cnnchip_device device;
static mur_cnnchip chip;

static uint32_t read_register(void *arg, uint32_t offset)
{
    return muc_cnnchip_read_register(arg, offset);
}

static void write_register(void *arg, uint32_t offset, uint32_t value)
{
    muc_cnnchip_write_register(arg, offset, value);
}

/* The bus of the simulated chip begins where the heap does, and a copy of the program lies in it.
 */
static void open_chip(void)
{
    static mur_cnnchip_board board = { .read = read_register, .write = write_register };
    static mur_cnnchip_files files;
    uint32_t program_bytes = (uint32_t)(program_file_end - program_file);
    uint8_t *program = take(program_bytes);
    mur_status status;

    memcpy(program, program_file, program_bytes);
    board.frame = take(FRAME_BYTES);
    board.filter = take(FILTER_BYTES);
    board.frame_bytes = FRAME_BYTES;
    board.filter_bytes = FILTER_BYTES;
    board.frame_bus = (uint32_t)(board.frame - heap_start);
    board.filter_bus = (uint32_t)(board.filter - heap_start);
    board.program_bus = (uint32_t)(program - heap_start);
    board.arg = &device;
    device.bus = heap_start;
    device.bus_bytes = (uint32_t)(heap_end - heap_start);
    device.busy_reads = 2;
    files.program = program;
    files.program_bytes = program_bytes;
    files.frame = frame_file;
    files.frame_bytes = (uint32_t)(frame_file_end - frame_file);
    files.filter = filter_file;
    files.filter_bytes = (uint32_t)(filter_file_end - filter_file);
    status = mur_cnnchip_open(&chip, &board, &files);
    if (status != MUR_OK)
        stop("open", status);
}

static void write_bytes(const uint8_t *bytes, uint32_t count)
{
    host_write(HOST_STDOUT, bytes, count);
}

static void run(void)
{
    mur_status status;

    mur_cnnchip_begin(&chip);
    if (inputs_end - inputs != INPUT_BYTES)
        stop("inputs", MUR_E_INPUT);
    network_put_inputs(&chip, inputs);
    mur_cnnchip_start(&chip);
    for (;;) {
        while ((status = mur_cnnchip_poll(&chip)) == MUR_YIELD) {
            /* a real master sleeps until the chip's interrupt */
        }
        if (status != MUR_OK)
            stop("run", status);
        if (chip.step == 0)
            return;
        status = network_step(&chip);
        if (status != MUR_OK)
            stop("host step", status);
        mur_cnnchip_resume(&chip);
    }
}

int main(void)
{
    host_open();
    heap = heap_start;
    open_chip();
    run();
    host_print(HOST_STDERR, "cycles of the chip: ");
    host_print_number(HOST_STDERR, (uint32_t)mur_cnnchip_cycles(&chip));
    host_print(HOST_STDERR, "\n");
    network_write_outputs(&chip, write_bytes);
    host_exit(0);
    return 0;
}

/* mur_cnnchip.c - opens a program file of the CNN chip, and drives the chip's registers. */
#include "mur_cnnchip.h"

#include <string.h>

#include "mur.h"
#include "mur_half.h"

/* words of a program file's header */
enum header {
    MAGIC,
    VERSION,
    ELEMENT,
    PES,
    CODE_OFFSET,
    CODE_BYTES,
    INSTRUCTIONS,
    FRAME_NEED,
    FILTER_NEED,
    FRAME_IMAGE,
    FILTER_IMAGE,
    PORTS,
    FRAME_CRC,
    FILTER_CRC,
    FILE_CRC,
    HEADER_CRC,
    HEADER_WORDS
};

enum { PORT_WORDS = 12, FP32 = 0, FP16 = 1, INT8 = 2, STOPPED_BY_END = 2, BUSY = 1 };

static uint32_t word(const mur_cnnchip *chip, uint32_t number)
{
    const uint8_t *p = chip->files.program + 4 * number;

    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t element_bytes(const mur_cnnchip *chip)
{
    return 4u >> chip->element;
}

static mur_status check_header(const mur_cnnchip *chip)
{
    const mur_cnnchip_files *files = &chip->files;
    uint32_t bytes = files->program_bytes, from;

    if (bytes < 4 * HEADER_WORDS || word(chip, MAGIC) != MUR_CNNCHIP_MAGIC ||
        word(chip, HEADER_CRC) != mur_crc32(0, files->program, 4 * HEADER_CRC))
        return MUR_E_MALFORMED;
    if (word(chip, VERSION) != 1 || word(chip, ELEMENT) > INT8)
        return MUR_E_UNSUPPORTED;
    from = word(chip, CODE_OFFSET);
    if (word(chip, PORTS) > (bytes - 4 * HEADER_WORDS) / (4 * PORT_WORDS) ||
        from != 4 * (HEADER_WORDS + PORT_WORDS * word(chip, PORTS)) ||
        word(chip, CODE_BYTES) != bytes - from || bytes % 4)
        return MUR_E_MALFORMED;
    if (word(chip, FILE_CRC) !=
        mur_crc32(0, files->program + 4 * HEADER_WORDS, bytes - 4 * HEADER_WORDS))
        return MUR_E_MALFORMED;
    return MUR_OK;
}

static mur_status check_images(const mur_cnnchip *chip)
{
    const mur_cnnchip_files *files = &chip->files;

    if (word(chip, FRAME_IMAGE) != files->frame_bytes ||
        word(chip, FILTER_IMAGE) != files->filter_bytes ||
        files->frame_bytes > word(chip, FRAME_NEED) ||
        files->filter_bytes > word(chip, FILTER_NEED) ||
        word(chip, FRAME_CRC) != mur_crc32(0, files->frame, files->frame_bytes) ||
        word(chip, FILTER_CRC) != mur_crc32(0, files->filter, files->filter_bytes))
        return MUR_E_MALFORMED;
    return MUR_OK;
}

/* whether all of a port's elements lie in the FRAME that the program asks for */
static mur_status check_port(const mur_cnnchip *chip, uint32_t number)
{
    uint32_t room = word(chip, FRAME_NEED);
    mur_cnnchip_port port;
    uint64_t elements;

    if (mur_cnnchip_port_of(chip, number, &port) != MUR_OK || port.kind > MUR_CNNCHIP_STEP_WRITES ||
        (port.kind < MUR_CNNCHIP_STEP_READS) != (port.step == 0) || port.channels_last > 1 ||
        !port.channels || !port.height || !port.width || port.rows > 0xffff ||
        port.pitch > 0xffff || port.channels > 0xffff || port.height > port.rows ||
        port.width > port.pitch)
        return MUR_E_MALFORMED;
    elements = ((uint64_t)(port.channels - 1) * port.rows + port.height - 1) * port.pitch;
    elements += port.width;
    if (port.address + elements * element_bytes(chip) > room ||
        !(port.scale > 0.0f && port.scale < 3e38f) || port.zero < -128 || port.zero > 127)
        return MUR_E_MALFORMED;
    return MUR_OK;
}

static mur_status check_board(const mur_cnnchip *chip)
{
    const mur_cnnchip_board *board = chip->board;
    uint32_t wanted = word(chip, PES), pes;

    if (board->frame_bytes < word(chip, FRAME_NEED) ||
        board->filter_bytes < word(chip, FILTER_NEED))
        return MUR_E_NOFIT;
    if (board->read(board->arg, MUR_CNNCHIP_ID) != MUR_CNNCHIP_MAGIC)
        return MUR_E_MACHINE;
    pes = board->read(board->arg, MUR_CNNCHIP_PES);
    return pes == 0 || (wanted != 0 && pes >= wanted) ? MUR_OK : MUR_E_MACHINE;
}

static void set_registers(const mur_cnnchip *chip)
{
    const mur_cnnchip_board *board = chip->board;
    const uint32_t values[][2] = {
        { MUR_CNNCHIP_FRAME_BASE, board->frame_bus },
        { MUR_CNNCHIP_FRAME_BYTES, word(chip, FRAME_NEED) },
        { MUR_CNNCHIP_FILTER_BASE, board->filter_bus },
        { MUR_CNNCHIP_FILTER_BYTES, word(chip, FILTER_NEED) },
        { MUR_CNNCHIP_FILTER_IMAGE_BYTES, word(chip, FILTER_IMAGE) },
        { MUR_CNNCHIP_PROGRAM_BASE, board->program_bus + word(chip, CODE_OFFSET) },
        { MUR_CNNCHIP_PROGRAM_BYTES, word(chip, CODE_BYTES) },
        { MUR_CNNCHIP_ELEMENT, chip->element },
    };

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        board->write(board->arg, values[i][0], values[i][1]);
}

mur_status mur_cnnchip_open(mur_cnnchip *chip, const mur_cnnchip_board *board,
                            const mur_cnnchip_files *files)
{
    mur_status status;

    memset(chip, 0, sizeof(*chip));
    chip->board = board;
    chip->files = *files;
    status = check_header(chip);
    if (status != MUR_OK)
        return status;
    chip->element = word(chip, ELEMENT);
    chip->ports = word(chip, PORTS);
    status = check_images(chip);
    for (uint32_t i = 0; status == MUR_OK && i < chip->ports; i++)
        status = check_port(chip, i);
    if (status == MUR_OK)
        status = check_board(chip);
    if (status != MUR_OK) {
        chip->ports = 0;
        return status;
    }
    memcpy(board->filter, files->filter, files->filter_bytes);
    set_registers(chip);
    return MUR_OK;
}

void mur_cnnchip_begin(const mur_cnnchip *chip)
{
    memcpy(chip->board->frame, chip->files.frame, chip->files.frame_bytes);
}

/* ---- ports ---- */

mur_status mur_cnnchip_port_of(const mur_cnnchip *chip, uint32_t number, mur_cnnchip_port *out)
{
    uint32_t first = HEADER_WORDS + PORT_WORDS * number, scale;

    if (number >= chip->ports)
        return MUR_E_INPUT;
    out->kind = word(chip, first);
    out->address = word(chip, first + 1);
    out->channels = word(chip, first + 2);
    out->height = word(chip, first + 3);
    out->width = word(chip, first + 4);
    out->rows = word(chip, first + 5);
    out->pitch = word(chip, first + 6);
    scale = word(chip, first + 7);
    memcpy(&out->scale, &scale, sizeof(out->scale));
    out->zero = (int32_t)word(chip, first + 8);
    out->step = word(chip, first + 9);
    out->channels_last = word(chip, first + 10);
    return MUR_OK;
}

/* value / scale to the nearest, halves away from zero as networks are quantized, + zero, limited */
static uint8_t quantize(float value, float scale, int32_t zero)
{
    float ratio = value / scale, part;
    int32_t q;

    if (ratio != ratio)
        ratio = 0.0f;
    ratio = ratio < -512.0f ? -512.0f : ratio > 512.0f ? 512.0f : ratio;
    q = (int32_t)ratio;
    part = ratio - (float)q;
    if (part >= 0.5f)
        q++;
    else if (part <= -0.5f)
        q--;
    q += zero;
    return (uint8_t)(q < -128 ? -128 : q > 127 ? 127 : q);
}

static void put_element(const mur_cnnchip_port *port, uint32_t element, uint8_t *p, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    if (element == INT8) {
        p[0] = quantize(value, port->scale, port->zero);
        return;
    }
    if (element == FP16)
        bits = mur_half_of_float(value);
    p[0] = (uint8_t)bits;
    p[1] = (uint8_t)(bits >> 8);
    if (element == FP32) {
        p[2] = (uint8_t)(bits >> 16);
        p[3] = (uint8_t)(bits >> 24);
    }
}

static float get_element(const mur_cnnchip_port *port, uint32_t element, const uint8_t *p)
{
    uint32_t bits;
    float value;

    if (element == INT8)
        return port->scale * (float)((int32_t)(p[0] ^ 128u) - 128 - port->zero);
    bits = p[0] | (uint32_t)p[1] << 8;
    if (element == FP16)
        return mur_float_of_half((uint16_t)bits);
    bits |= (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

typedef enum transfer { PUT_VALUES, GET_VALUES, PUT_ELEMENTS, GET_ELEMENTS } transfer;

/* element number `at` of the network's order, between FRAME and the caller's array */
static void move(const mur_cnnchip_port *port, uint32_t element, transfer what, uint8_t *frame,
                 size_t at, uint8_t *array)
{
    uint32_t size = 4u >> element;
    float value;

    switch (what) {
    case PUT_VALUES:
        memcpy(&value, array + 4 * at, sizeof(value));
        put_element(port, element, frame, value);
        break;
    case GET_VALUES:
        value = get_element(port, element, frame);
        memcpy(array + 4 * at, &value, sizeof(value));
        break;
    case PUT_ELEMENTS:
        memcpy(frame, array + size * at, size);
        break;
    case GET_ELEMENTS:
        memcpy(array + size * at, frame, size);
        break;
    }
}

/* array is only read where values or elements are put */
static mur_status each_element(const mur_cnnchip *chip, uint32_t number, transfer what,
                               uint8_t *array)
{
    uint32_t size = element_bytes(chip);
    mur_cnnchip_port port;

    if (mur_cnnchip_port_of(chip, number, &port) != MUR_OK)
        return MUR_E_INPUT;
    for (uint32_t c = 0; c < port.channels; c++)
        for (uint32_t y = 0; y < port.height; y++) {
            size_t row = ((size_t)c * port.rows + y) * port.pitch;
            uint8_t *p = chip->board->frame + port.address + row * size;

            for (uint32_t x = 0; x < port.width; x++, p += size) {
                size_t pixel = (size_t)y * port.width + x;
                size_t at = port.channels_last ? pixel * port.channels + c
                                               : (size_t)c * port.height * port.width + pixel;

                move(&port, chip->element, what, p, at, array);
            }
        }
    return MUR_OK;
}

mur_status mur_cnnchip_put(const mur_cnnchip *chip, uint32_t number, const float *values)
{
    return each_element(chip, number, PUT_VALUES, (uint8_t *)(uintptr_t)values);
}

mur_status mur_cnnchip_get(const mur_cnnchip *chip, uint32_t number, float *values)
{
    return each_element(chip, number, GET_VALUES, (uint8_t *)values);
}

mur_status mur_cnnchip_put_elements(const mur_cnnchip *chip, uint32_t number, const void *elements)
{
    return each_element(chip, number, PUT_ELEMENTS, (uint8_t *)(uintptr_t)elements);
}

mur_status mur_cnnchip_get_elements(const mur_cnnchip *chip, uint32_t number, void *elements)
{
    return each_element(chip, number, GET_ELEMENTS, elements);
}

/* ---- the run ---- */

void mur_cnnchip_start(mur_cnnchip *chip)
{
    chip->steps_done = 0;
    chip->step = 0;
    chip->board->write(chip->board->arg, MUR_CNNCHIP_CONTROL, 1);
}

void mur_cnnchip_resume(mur_cnnchip *chip)
{
    chip->steps_done = chip->step;
    chip->board->write(chip->board->arg, MUR_CNNCHIP_CONTROL, 2);
}

mur_status mur_cnnchip_poll(mur_cnnchip *chip)
{
    const mur_cnnchip_board *board = chip->board;
    uint32_t status = board->read(board->arg, MUR_CNNCHIP_STATUS);
    uint32_t code;

    if (status == BUSY)
        return MUR_YIELD;
    code = board->read(board->arg, MUR_CNNCHIP_CODE);
    if (status == STOPPED_BY_END && (code == 0 || code == chip->steps_done + 1)) {
        chip->step = code;
        return MUR_OK;
    }
    chip->fault = code;
    chip->pc = board->read(board->arg, MUR_CNNCHIP_PC);
    return MUR_E_FAULT;
}

uint64_t mur_cnnchip_cycles(const mur_cnnchip *chip)
{
    const mur_cnnchip_board *board = chip->board;
    uint32_t low = board->read(board->arg, MUR_CNNCHIP_CYCLES_LOW);

    return low | (uint64_t)board->read(board->arg, MUR_CNNCHIP_CYCLES_HIGH) << 32;
}

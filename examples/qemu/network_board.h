/* network_board.h - what main.c of a generated network needs of an emulated board: inputs are
 * linked in as program_file, outputs go to the debugger's standard output, markers stand around the
 * run.
 */
#ifndef NETWORK_BOARD_H
#define NETWORK_BOARD_H

#include <string.h>

#include "markers.h"
#include "semihosting.h"

extern const uint8_t program_file[], program_file_end[];

static inline int board_read(void *data, size_t bytes)
{
    static const uint8_t *at;

    if (!at) {
        host_open();
        at = program_file;
    }
    if (bytes > (size_t)(program_file_end - at))
        return 0;
    memcpy(data, at, bytes);
    at += bytes;
    return 1;
}

static inline int board_write(const void *data, size_t bytes)
{
    host_write(HOST_STDOUT, data, bytes);
    return 1;
}

/* lengths that a run decides come before the inputs */
static inline uint32_t board_length(void)
{
    uint32_t length = 0;

    (void)board_read(&length, sizeof(length));
    return length;
}

#define BOARD_LENGTH(argc, argv, i) ((void)(argc), (void)(argv), board_length())
#define BOARD_READ(data, bytes) board_read(data, bytes)
#define BOARD_WRITE(data, bytes) board_write(data, bytes)
#define BOARD_BEGIN() COUNT_BEGIN()
#define BOARD_END() COUNT_END()

#endif

/* main.c - firmware for an emulated board: hears a recording, which lies in flash, as a microphone
 * would give it, and prints the words. */
#include <string.h>

#include "ears.h"
#include "semihosting.h"
#include "spotter.h"

/* a RIFF WAVE file of 16-bit samples */
extern const uint8_t program_file[], program_file_end[];

enum { BLOCK = 160 }; /* samples that the microphone has ready at once: 10 ms */

/* where the samples begin, and how many there are */
static const int16_t *find_samples(uint32_t *count)
{
    const uint8_t *at = program_file + 12;
    uint32_t bytes;

    for (;; at += 8 + bytes + bytes % 2) {
        if (program_file_end - at < 8)
            return NULL;
        memcpy(&bytes, at + 4, sizeof(bytes));
        if (bytes > (uint32_t)(program_file_end - at) - 8)
            bytes = (uint32_t)(program_file_end - at) - 8;
        if (memcmp(at, "data", 4) == 0)
            break;
    }
    *count = bytes / 2;
    return (const int16_t *)(const void *)(at + 8);
}

int main(void)
{
    uint32_t count = 0;
    const int16_t *samples = find_samples(&count);
    int word;

    host_open();
    if (!samples)
        return 1;
    spotter_open();
    for (uint32_t at = 0; at + BLOCK <= count; at += BLOCK) {
        spotter_put(samples + at, BLOCK); /* an interrupt's work */
        while (spotter_next(&word)) {     /* the main loop's */
            if (word == SPOTTER_NOTHING)
                continue;
            host_print_number(HOST_STDOUT, at / (EARS_RATE / 1000));
            host_print(HOST_STDOUT, " ms: ");
            host_print(HOST_STDOUT, spotter_name(word));
            host_print(HOST_STDOUT, "\n");
        }
    }
    return 0;
}

/* main.c - what a token costs: a model's own code makes TOKENS tokens, the likeliest each time,
 * from the one that begins a text. Each token is a region for bench/instructions/count: its run and
 * the choice of the next. Printed are the tokens and a checksum of each row of logits, the same on
 * every machine.
 *
 * LM_HEADER is the model's NAME_lm.h, LM(x) is NAME_x; TOKENS at most its context.
 */
#include LM_HEADER

#if defined(__arm__) || defined(__riscv)
#include "markers.h"
#else
#define COUNT_BEGIN()
#define COUNT_END()
#endif
#include "semihosting.h"

static uint8_t arena[ARENA_BYTES] __attribute__((aligned(16)));

static uint32_t checksum(const uint8_t *bytes, size_t count)
{
    uint32_t crc = 0xffffffffu;

    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (unsigned bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (0xedb88320u & (0u - (crc & 1u)));
    }
    return ~crc;
}

int main(void);

int main(void)
{
    mur_sampler sampler = { 0, 1, 0, 0, 0 };
    uint32_t token = FIRST_TOKEN;

    host_open();
    for (uint32_t pos = 0; pos < TOKENS; pos++) {
        const float *logits;

        COUNT_BEGIN();
        logits = LM(feed)(arena, pos, &token, 1);
        token = mur_sampler_next(&sampler, logits, VOCABULARY, NULL);
        COUNT_END();
        host_print_number(HOST_STDOUT, token);
        host_print(HOST_STDOUT, " ");
        host_print_number(HOST_STDOUT, checksum((const uint8_t *)logits, 4 * VOCABULARY));
        host_print(HOST_STDOUT, "\n");
    }
    return 0;
}

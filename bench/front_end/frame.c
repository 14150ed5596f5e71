/* frame.c - features of a frame in floats and in integers, between markers of
 * bench/instructions/count; prints a checksum of the bits of each. */
#include "ears.h"
#include "markers.h"
#include "semihosting.h"

static int16_t samples[EARS_WINDOW];
static uint64_t scratch[EARS_SCRATCH_BYTES / 8 + 1];
static union {
    float real[EARS_FEATURES];
    int32_t fixed[EARS_FEATURES];
    uint8_t bytes[4 * EARS_FEATURES];
} features;

/* a loud tone with noise */
static void make_samples(void)
{
    uint32_t noise = 1, phase = 0;

    for (uint32_t i = 0; i < EARS_WINDOW; i++) {
        noise = noise * 1664525u + 1013904223u;
        phase = (phase + 4200) % 65536;
        samples[i] = (int16_t)((phase < 32768 ? 12000 : -12000) + (int32_t)(noise >> 20) - 2048);
    }
}

static void tell(const char *name)
{
    uint32_t hash = 2166136261u;

    for (uint32_t i = 0; i < sizeof(features); i++)
        hash = (hash ^ features.bytes[i]) * 16777619u;
    host_print(HOST_STDOUT, name);
    host_print_number(HOST_STDOUT, hash);
    host_print(HOST_STDOUT, "\n");
}

int main(void)
{
    host_open();
    make_samples();
    COUNT_BEGIN();
    mur_front_end_f32_run(&ears_f32, samples, scratch, features.real);
    COUNT_END();
    tell("float ");
    COUNT_BEGIN();
    mur_front_end_q16_run(&ears_q16, samples, scratch, features.fixed);
    COUNT_END();
    tell("fixed ");
    return 0;
}

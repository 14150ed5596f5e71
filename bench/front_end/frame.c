/* frame.c - features of a frame in floats and in integers, and a camera's picture in the size of a
 * network, between markers of bench/instructions/count; prints a checksum of the bits of each. */
#include "ears.h"
#include "markers.h"
#include "mur_image.h"
#include "semihosting.h"

enum { WIDTH = 160, HEIGHT = 120, SIDE = 96, CHANNELS = 3 };

static uint8_t camera[HEIGHT * WIDTH * CHANNELS], picture[SIDE * SIDE * CHANNELS];
static uint32_t row[MUR_IMAGE_SCRATCH_BYTES(SIDE, CHANNELS) / 4];
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

static void tell(const char *name, const uint8_t *bytes, uint32_t count)
{
    uint32_t hash = 2166136261u;

    for (uint32_t i = 0; i < count; i++)
        hash = (hash ^ bytes[i]) * 16777619u;
    host_print(HOST_STDOUT, name);
    host_print_number(HOST_STDOUT, hash);
    host_print(HOST_STDOUT, "\n");
}

static void scale(const char *name, mur_image_filter filter)
{
    const mur_image image = { camera, WIDTH, HEIGHT, WIDTH * CHANNELS, CHANNELS };
    const mur_image_part middle = { (WIDTH - HEIGHT) / 2, 0, HEIGHT, HEIGHT };
    const mur_image_target target = { picture, SIDE, SIDE, 0x80 };

    COUNT_BEGIN();
    mur_image_scale(&image, &middle, filter, row, &target);
    COUNT_END();
    tell(name, picture, sizeof(picture));
}

int main(void)
{
    host_open();
    make_samples();
    COUNT_BEGIN();
    mur_front_end_f32_run(&ears_f32, samples, scratch, features.real);
    COUNT_END();
    tell("float ", features.bytes, sizeof(features));
    COUNT_BEGIN();
    mur_front_end_q16_run(&ears_q16, samples, scratch, features.fixed);
    COUNT_END();
    tell("fixed ", features.bytes, sizeof(features));
    for (uint32_t i = 0; i < sizeof(camera); i++)
        camera[i] = (uint8_t)(i * i >> 7);
    scale("nearest ", MUR_IMAGE_NEAREST);
    scale("bilinear ", MUR_IMAGE_BILINEAR);
    scale("mean ", MUR_IMAGE_MEAN);
    return 0;
}

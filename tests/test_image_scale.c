/* Scaled pictures: every filter beside real numbers by its definition, sizes and parts by chance,
 * and what is refused. */
#include <math.h>

#include "chance.h"
#include "check.h"
#include "mur_image.h"

enum { MOST = 60, CHANNELS = 4 };

/* a pixel of the result by the definition: of taps as far as `reach` from the middle, a mean by a
 * triangle */
static double define(const mur_image *image, const mur_image_part *part, mur_image_filter filter,
                     const mur_image_target *target, uint32_t row, uint32_t column, uint32_t c)
{
    double sy = (double)part->height / target->height, sx = (double)part->width / target->width;
    double y = part->y + (row + 0.5) * sy, x = part->x + (column + 0.5) * sx, sum = 0, all = 0;
    double ry = filter == MUR_IMAGE_MEAN ? fmax(sy, 1) : 1;
    double rx = filter == MUR_IMAGE_MEAN ? fmax(sx, 1) : 1;

    for (uint32_t i = 0; i < image->height; i++)
        for (uint32_t j = 0; j < image->width; j++) {
            double wy = fmax(0, 1 - fabs(i + 0.5 - y) / ry),
                   wx = fmax(0, 1 - fabs(j + 0.5 - x) / rx);

            sum += wy * wx * image->pixels[i * image->pitch + j * image->channels + c];
            all += wy * wx;
        }
    return sum / all;
}

/* the pixel whose square holds the middle */
static uint8_t define_nearest(const mur_image *image, const mur_image_part *part,
                              const mur_image_target *target, uint32_t row, uint32_t column,
                              uint32_t c)
{
    uint32_t i = part->y + (2 * row + 1) * part->height / (2u * target->height);
    uint32_t j = part->x + (2 * column + 1) * part->width / (2u * target->width);

    return image->pixels[i * image->pitch + j * image->channels + c];
}

static void check_one(const mur_image *image, const mur_image_part *part, mur_image_filter filter,
                      uint16_t width, uint16_t height)
{
    uint32_t scratch[MOST * CHANNELS + 1];
    uint8_t out[MOST * MOST * CHANNELS + 1];
    const mur_image_target target = { out, width, height, random_u32() % 2 ? 0x80 : 0 };
    uint32_t size = (uint32_t)width * height * image->channels;

    out[size] = 77;
    scratch[width * image->channels] = 77;
    assert_int_equal(mur_image_scale(image, part, filter, scratch, &target), 0);
    assert_int_equal(out[size], 77);
    assert_int_equal(scratch[width * image->channels], 77);
    for (uint32_t i = 0; i < size; i++) {
        uint32_t c = i % image->channels, column = i / image->channels % width;
        uint32_t row = i / image->channels / width;
        int found = out[i] ^ target.flipped;

        if (filter == MUR_IMAGE_NEAREST)
            assert_int_equal(found, define_nearest(image, part, &target, row, column, c));
        else if (fabs(found - define(image, part, filter, &target, row, column, c)) > 0.6)
            fail_msg("filter %d, %ux%u of %ux%u: %d, expected %g", (int)filter, width, height,
                     part->width, part->height, found,
                     define(image, part, filter, &target, row, column, c));
    }
}

static void pictures_are_scaled_as_defined(void **state)
{
    static uint8_t pixels[MOST * (MOST * CHANNELS + 7)];

    (void)state;
    for (int round = 0; round < (brief() ? 60 : 300); round++) {
        mur_image image = { pixels, (uint16_t)(1 + random_u32() % MOST),
                            (uint16_t)(1 + random_u32() % MOST), 0,
                            (uint8_t)(1 + random_u32() % CHANNELS) };
        mur_image_part part;

        image.pitch = (uint32_t)image.width * image.channels + random_u32() % 8;
        for (uint32_t i = 0; i < sizeof(pixels); i++)
            pixels[i] = (uint8_t)(random_u32() % 3 ? random_u32() : random_u32() % 2 * 255);
        part.x = (uint16_t)(random_u32() % image.width);
        part.y = (uint16_t)(random_u32() % image.height);
        part.width = (uint16_t)(1 + random_u32() % (image.width - part.x));
        part.height = (uint16_t)(1 + random_u32() % (image.height - part.y));
        check_one(&image, &part, (mur_image_filter)(round % 3), (uint16_t)(1 + random_u32() % 40),
                  (uint16_t)(1 + random_u32() % 40));
    }
}

static void the_same_size_is_the_same_picture(void **state)
{
    uint8_t pixels[7 * 9 * 3], out[7 * 9 * 3];
    const mur_image image = { pixels, 9, 7, 27, 3 };
    const mur_image_part whole = { 0, 0, 9, 7 };
    const mur_image_target target = { out, 9, 7, 0 };
    uint32_t scratch[27];

    (void)state;
    for (uint32_t i = 0; i < sizeof(pixels); i++)
        pixels[i] = (uint8_t)random_u32();
    for (int filter = 0; filter < 3; filter++) {
        assert_int_equal(
            mur_image_scale(&image, &whole, (mur_image_filter)filter, scratch, &target), 0);
        assert_memory_equal(out, pixels, sizeof(pixels));
    }
}

/* sums have no room to spare there */
static void the_smallest_of_a_white_picture_is_white(void **state)
{
    enum { SIDE = 4000, SMALL = SIDE / 250 };
    uint8_t *pixels = malloc(SIDE * 600), out[SMALL * 3];
    const mur_image image = { pixels, SIDE, 600, SIDE, 1 };
    const mur_image_part whole = { 0, 0, SIDE, 600 };
    const mur_image_target target = { out, SMALL, 3, 0 };
    uint32_t scratch[SMALL];

    (void)state;
    memset(pixels, 255, SIDE * 600);
    assert_int_equal(mur_image_scale(&image, &whole, MUR_IMAGE_MEAN, scratch, &target), 0);
    for (uint32_t i = 0; i < sizeof(out); i++)
        assert_int_equal(out[i], 255);
    free(pixels);
}

static void what_does_not_fit_is_refused(void **state)
{
    static const struct {
        mur_image_part part;
        uint16_t width, height;
        uint8_t channels;
    } wrong[] = {
        { { 0, 0, 0, 4 }, 2, 2, 1 },     { { 0, 0, 4, 4 }, 0, 2, 1 }, { { 1, 0, 4, 4 }, 2, 2, 1 },
        { { 0, 65535, 4, 2 }, 2, 2, 1 }, { { 0, 0, 4, 4 }, 2, 2, 0 }, { { 0, 0, 4, 4 }, 2, 2, 5 },
        { { 0, 0, 4, 4 }, 40000, 2, 1 },
    };
    uint8_t pixels[16] = { 0 }, out = 7;
    uint32_t scratch = 7;

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        const mur_image image = { pixels, 4, 4, 4, wrong[i].channels };
        const mur_image_target target = { &out, wrong[i].width, wrong[i].height, 0 };

        assert_int_equal(
            mur_image_scale(&image, &wrong[i].part, MUR_IMAGE_BILINEAR, &scratch, &target), 1);
        assert_true(out == 7 && scratch == 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_are_scaled_as_defined),
        cmocka_unit_test(the_same_size_is_the_same_picture),
        cmocka_unit_test(the_smallest_of_a_white_picture_is_white),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

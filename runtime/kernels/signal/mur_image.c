/* mur_image.c - scales pictures: one axis after the other, row by row of the result. */
#include <string.h>

#include "mur_image.h"

enum { MOST_SIDE = 32767, MOST_RATIO = 250, ONE = 1 << 16 };
/* of all pixels of an axis, so that samples of 8 bits, and 6 more behind the point, sum to 32 */
enum { MOST_WEIGHT = 250000 };

/* one axis: `extent` pixels from `from` on become `count` */
typedef struct axis {
    uint32_t from, extent, count, length; /* length: of the whole picture */
    uint32_t reach;                       /* of the triangle to either side, times 2^16 */
    uint32_t shift;                       /* by which distances are cut to weights */
} axis;

/* the pixels below a pixel of the result */
typedef struct taps {
    uint32_t first, end;
    uint32_t middle; /* times 2^16 */
} taps;

static axis make_axis(uint32_t from, uint32_t extent, uint32_t count, uint32_t length, int means)
{
    axis a = { from, extent, count, length, ONE, 0 };

    if (means && extent > count)
        a.reach = extent / count * ONE + extent % count * ONE / count;
    while ((a.reach / ONE + 1) * (a.reach >> a.shift) > MOST_WEIGHT)
        a.shift++;
    return a;
}

/* where the middle of pixel i of the result lies */
static uint32_t middle_of(const axis *a, uint32_t i)
{
    uint32_t whole = (2 * i + 1) * a->extent, parts = 2 * a->count;

    return (a->from + whole / parts) * ONE + whole % parts * (ONE / 2) / a->count;
}

/* a triangle around the middle */
static inline uint32_t weight_of(const axis *a, const taps *t, uint32_t pixel)
{
    uint32_t at = pixel * ONE + ONE / 2;
    uint32_t distance = at > t->middle ? at - t->middle : t->middle - at;

    return distance < a->reach ? (a->reach - distance) >> a->shift : 0;
}

static taps taps_of(const axis *a, uint32_t i)
{
    taps t = { 0, a->length, middle_of(a, i) };
    uint32_t end = (t.middle + a->reach + ONE / 2) / ONE;

    if (t.middle > a->reach)
        t.first = (t.middle - a->reach) / ONE;
    t.end = end < t.end ? end : t.end;
    return t;
}

/* adds a row of the picture, scaled along x, times weight to sums [width][channels] */
static void add_row(const axis *x, const uint8_t *row, uint32_t channels, uint32_t weight,
                    uint32_t *sums)
{
    for (uint32_t i = 0; i < x->count; i++, sums += channels) {
        taps t = taps_of(x, i);
        uint32_t sum[4] = { 0 }, all = 0;

        for (uint32_t j = t.first; j < t.end; j++) {
            uint32_t w = weight_of(x, &t, j);

            all += w;
            for (uint32_t c = 0; c < channels; c++)
                sum[c] += w * row[j * channels + c];
        }
        for (uint32_t c = 0; c < channels; c++) /* with 6 more bits */
            sums[c] += weight * ((sum[c] * 64 + all / 2) / all);
    }
}

static void scale_row(const mur_image *image, const axis *x, const axis *y, uint32_t i,
                      uint32_t *sums, const mur_image_target *target)
{
    uint32_t samples = (uint32_t)target->width * image->channels, all = 0;
    uint8_t *out = target->pixels + i * samples;
    taps t = taps_of(y, i);

    memset(sums, 0, samples * sizeof(*sums));
    for (uint32_t j = t.first; j < t.end; j++) {
        uint32_t weight = weight_of(y, &t, j);

        all += weight;
        if (weight)
            add_row(x, image->pixels + j * image->pitch, image->channels, weight, sums);
    }
    for (uint32_t s = 0; s < samples; s++)
        out[s] = (uint8_t)((sums[s] + 32 * all) / (64 * all) ^ target->flipped);
}

static void take_nearest(const mur_image *image, const axis *x, const axis *y,
                         const mur_image_target *target)
{
    uint8_t *out = target->pixels;

    for (uint32_t i = 0; i < y->count; i++) {
        const uint8_t *row = image->pixels + middle_of(y, i) / ONE * image->pitch;

        for (uint32_t j = 0; j < x->count; j++) {
            const uint8_t *pixel = row + middle_of(x, j) / ONE * image->channels;

            for (uint32_t c = 0; c < image->channels; c++)
                *out++ = pixel[c] ^ target->flipped;
        }
    }
}

static int fits(uint32_t from, uint32_t extent, uint32_t length, uint32_t count)
{
    return extent >= 1 && count >= 1 && length <= MOST_SIDE && count <= MOST_SIDE &&
           from + extent <= length && extent <= MOST_RATIO * count;
}

int mur_image_scale(const mur_image *image, const mur_image_part *part, mur_image_filter filter,
                    void *scratch, const mur_image_target *target)
{
    int means = filter == MUR_IMAGE_MEAN;
    axis x, y;

    if (!fits(part->x, part->width, image->width, target->width) ||
        !fits(part->y, part->height, image->height, target->height) || image->channels < 1 ||
        image->channels > 4)
        return 1;
    x = make_axis(part->x, part->width, target->width, image->width, means);
    y = make_axis(part->y, part->height, target->height, image->height, means);
    if (filter == MUR_IMAGE_NEAREST)
        take_nearest(image, &x, &y, target);
    for (uint32_t i = 0; filter != MUR_IMAGE_NEAREST && i < y.count; i++)
        scale_row(image, &x, &y, i, scratch, target);
    return 0;
}

/* pnm.c - reads Netpbm's grey and colour pictures: P2, P3 (decimal numbers), P5, P6 (bytes). */
#include "formats/image/image.h"

typedef struct pnm {
    muc_context *ctx;
    muc_bytes bytes;
    size_t at;
    uint32_t greatest; /* sample, 1..65535 */
} pnm;

static bool is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void skip_space(pnm *p, bool comments)
{
    while (p->at < p->bytes.size) {
        uint8_t c = p->bytes.data[p->at];

        if (comments && c == '#')
            while (p->at < p->bytes.size && p->bytes.data[p->at] != '\n')
                p->at++;
        else if (is_space(c))
            p->at++;
        else
            break;
    }
}

/* a decimal number of at most `most` */
static muc_status read_number(pnm *p, const char *what, uint32_t most, bool comments, uint32_t *out)
{
    uint32_t value = 0;
    size_t start;

    skip_space(p, comments);
    start = p->at;
    while (p->at < p->bytes.size && p->bytes.data[p->at] >= '0' && p->bytes.data[p->at] <= '9') {
        value = value * 10 + (p->bytes.data[p->at] - '0');
        if (value > most)
            return muc_fail(p->ctx, MUC_MALFORMED, p->bytes.name, start, "%s: more than %u", what,
                            most);
        p->at++;
    }
    if (p->at == start)
        return muc_fail(p->ctx, MUC_MALFORMED, p->bytes.name, start, "%s: expected a number", what);
    *out = value;
    return MUC_OK;
}

static uint8_t to_byte(const pnm *p, uint32_t sample)
{
    sample = sample < p->greatest ? sample : p->greatest;
    return (uint8_t)((sample * 255 + p->greatest / 2) / p->greatest);
}

static muc_status read_text(pnm *p, size_t samples, uint8_t *out)
{
    for (size_t i = 0; i < samples; i++) {
        uint32_t sample;

        MUC_TRY(read_number(p, "sample", p->greatest, false, &sample));
        out[i] = to_byte(p, sample);
    }
    return MUC_OK;
}

static void read_bytes(const pnm *p, size_t samples, uint8_t *out)
{
    const uint8_t *in = p->bytes.data + p->at;

    for (size_t i = 0; i < samples; i++)
        out[i] = p->greatest < 256 ? to_byte(p, in[i])
                                   : to_byte(p, (uint32_t)in[2 * i] << 8 | in[2 * i + 1]);
}

muc_status muc_image_read_pnm(muc_context *ctx, muc_arena *arena, muc_bytes bytes, muc_image *out)
{
    pnm p = { .ctx = ctx, .bytes = bytes, .at = 2 };
    bool is_text = bytes.data[1] < '5';
    uint32_t channels = bytes.data[1] == '3' || bytes.data[1] == '6' ? 3 : 1, width, height;
    uint64_t samples, least;
    uint8_t *data;

    MUC_TRY(read_number(&p, "width", 1000000, true, &width));
    MUC_TRY(read_number(&p, "height", 1000000, true, &height));
    MUC_TRY(read_number(&p, "greatest sample", 65535, true, &p.greatest));
    if (p.greatest == 0)
        return muc_fail(ctx, MUC_MALFORMED, bytes.name, p.at, "greatest sample: 0");
    p.at++; /* one white space */
    samples = (uint64_t)width * height * channels;
    /* a digit and a space a sample but for the last, or its bytes */
    least = is_text ? 2 * samples - 1 : samples * (p.greatest < 256 ? 1 : 2);
    if (samples && (p.at > bytes.size || least > bytes.size - p.at))
        return muc_fail(ctx, MUC_MALFORMED, bytes.name, bytes.size,
                        "ends before the %u x %u pixels that it announces", width, height);
    MUC_TRY(muc_image_new(ctx, arena, bytes, width, height, channels, out, &data));
    if (is_text)
        return read_text(&p, (size_t)samples, data);
    read_bytes(&p, (size_t)samples, data);
    return MUC_OK;
}

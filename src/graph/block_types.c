/* block_types.c - decodes element types that pack several elements in a block, as GGUF stores them,
 * to float32.
 *
 * Every type is a scale times an integer, plus or minus a minimum, with one rounding after each
 * operation (the build forbids contraction), in the order of ggml's own dequantization. */
#include "graph/block_types.h"

#include "base/bytes.h"
#include "base/half.h"

enum { HALF = 16, LEGACY = 32, GROUP = 16, SUPER = 256, WIDE = 32 };

static float load_half(const uint8_t *p)
{
    return muc_f32_of_f16(muc_load_u16(p));
}

/* Q8_0: scale, 32 int8 */
static void decode_q8_0(const uint8_t *block, float *out)
{
    float scale = load_half(block);

    for (int i = 0; i < LEGACY; i++)
        out[i] = scale * (float)(int8_t)block[2 + i];
}

/* 16 bytes hold elements 0..15 in their low halves and 16..31 in their high halves. */
static int nibble(const uint8_t *bytes, int i)
{
    return i < HALF ? bytes[i] & 15 : bytes[i - HALF] >> 4;
}

static void decode_q4_0(const uint8_t *block, float *out)
{
    float scale = load_half(block);

    for (int i = 0; i < LEGACY; i++)
        out[i] = (float)(nibble(block + 2, i) - 8) * scale;
}

static void decode_q4_1(const uint8_t *block, float *out)
{
    float scale = load_half(block), minimum = load_half(block + 2);

    for (int i = 0; i < LEGACY; i++)
        out[i] = (float)nibble(block + 4, i) * scale + minimum;
}

/* The fifth bit of element i is bit i of a word before the nibbles. */
static int five_bits(const uint8_t *bits, int i)
{
    return nibble(bits + 4, i) | (int)(muc_load_u32(bits) >> i & 1) << 4;
}

static void decode_q5_0(const uint8_t *block, float *out)
{
    float scale = load_half(block);

    for (int i = 0; i < LEGACY; i++)
        out[i] = (float)(five_bits(block + 2, i) - 16) * scale;
}

static void decode_q5_1(const uint8_t *block, float *out)
{
    float scale = load_half(block), minimum = load_half(block + 2);

    for (int i = 0; i < LEGACY; i++)
        out[i] = (float)five_bits(block + 4, i) * scale + minimum;
}

/* Element i of 2-bit fields: 128 elements lie in 32 bytes, 32 elements in each pair of bits. */
static int two_bits(const uint8_t *bytes, int i)
{
    return bytes[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
}

/* Q2_K: 16 bytes of a 4-bit scale and a 4-bit minimum, 64 bytes of fields, scale, minimum */
static void decode_q2_k(const uint8_t *block, float *out)
{
    float scale = load_half(block + 80), minimum = load_half(block + 82);

    for (int i = 0; i < SUPER; i++) {
        uint8_t group = block[i / GROUP];

        out[i] = scale * (float)(group & 15) * (float)two_bits(block + 16, i) -
                 minimum * (float)(group >> 4);
    }
}

/* Q3_K: 32 bytes of third bits, 64 bytes of two bits, 16 6-bit scales in 12 bytes, scale */
static void decode_q3_k(const uint8_t *block, float *out)
{
    const uint8_t *scales = block + 96;
    float scale = load_half(block + 108);

    for (int i = 0; i < SUPER; i++) {
        int g = i / GROUP, low = g < 8 ? scales[g] & 15 : scales[g - 8] >> 4;
        int factor = (low | (scales[8 + g % 4] >> (g / 4 * 2) & 3) << 4) - 32;
        int third = block[i % 32] >> (i / 32) & 1;

        out[i] = scale * (float)factor * (float)(two_bits(block + 32, i) - (third ? 0 : 4));
    }
}

/* The 6-bit scale and minimum of group g, of Q4_K and Q5_K: 12 bytes for 8 groups of 32. */
static void scale_and_minimum(const uint8_t *packed, int g, int *scale, int *minimum)
{
    if (g < 4) {
        *scale = packed[g] & 63;
        *minimum = packed[g + 4] & 63;
    } else {
        *scale = (packed[g + 4] & 15) | packed[g - 4] >> 6 << 4;
        *minimum = packed[g + 4] >> 4 | packed[g] >> 6 << 4;
    }
}

/* Q4_K: scale, minimum, 12 bytes of groups', 128 bytes; Q5_K: 32 bytes of fifth bits before those.
 * 64 elements lie in 32 bytes: the low halves, then the high halves. */
static void decode_k(const uint8_t *block, const uint8_t *fifth, const uint8_t *fields, float *out)
{
    float scale = load_half(block), minimum = load_half(block + 2);

    for (int i = 0; i < SUPER; i++) {
        int g = i / WIDE, factor, lower;
        int q = fields[i / 64 * 32 + i % 32] >> (g % 2 * 4) & 15;

        scale_and_minimum(block + 4, g, &factor, &lower);
        if (fifth)
            q |= (fifth[i % 32] >> g & 1) << 4;
        out[i] = scale * (float)factor * (float)q - minimum * (float)lower;
    }
}

static void decode_q4_k(const uint8_t *block, float *out)
{
    decode_k(block, NULL, block + 16, out);
}

static void decode_q5_k(const uint8_t *block, float *out)
{
    decode_k(block, block + 16, block + 48, out);
}

/* Q6_K: 128 bytes of low halves, 64 bytes of upper pairs of bits, 16 int8 scales, scale.
 * Of 128 elements, the low halves lie in 64 bytes: 64 elements low, 64 high. */
static void decode_q6_k(const uint8_t *block, float *out)
{
    float scale = load_half(block + 208);

    for (int i = 0; i < SUPER; i++) {
        int low = block[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4) & 15;
        int q = (low | two_bits(block + 128, i) << 4) - 32;

        out[i] = scale * (float)(int8_t)block[192 + i / GROUP] * (float)q;
    }
}

static const int8_t iq4_values[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                       1,    13,   25,  38,  53,  69,  89,  113 };

static void decode_iq4_nl(const uint8_t *block, float *out)
{
    float scale = load_half(block);

    for (int i = 0; i < LEGACY; i++)
        out[i] = scale * (float)iq4_values[nibble(block + 2, i)];
}

/* IQ4_XS: scale, the upper pairs of bits of 8 scales, their low halves, 8 times 16 bytes */
static void decode_iq4_xs(const uint8_t *block, float *out)
{
    float scale = load_half(block);

    for (int i = 0; i < SUPER; i++) {
        int g = i / WIDE, low = block[4 + g / 2] >> (g % 2 * 4) & 15;
        int factor = (low | (muc_load_u16(block + 2) >> (2 * g) & 3) << 4) - 32;

        out[i] = scale * (float)factor * (float)iq4_values[nibble(block + 8 + g * HALF, i % WIDE)];
    }
}

/* MXFP4: a power of two (E8M0; halved, as the table holds doubled values), 16 bytes of E2M1 */
static void decode_mxfp4(const uint8_t *block, float *out)
{
    static const int8_t doubled[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };
    float scale = muc_f32_of_bits(block[0] < 2 ? UINT32_C(0x00200000) << block[0]
                                               : (uint32_t)(block[0] - 1) << 23);

    for (int i = 0; i < LEGACY; i++)
        out[i] = (float)doubled[nibble(block + 1, i)] * scale;
}

/* Digit n (the first is the most significant) of five ternary digits held as a fraction of 256. */
static int ternary(uint8_t byte, int n)
{
    static const uint8_t power[5] = { 1, 3, 9, 27, 81 };

    return (uint8_t)(byte * power[n]) * 3 >> 8;
}

/* TQ1_0: 32 bytes of five digits in steps of 32 elements, 16 of five in steps of 16, 4 of four in
 * steps of 4; scale */
static void decode_tq1_0(const uint8_t *block, float *out)
{
    float scale = load_half(block + 52);

    for (int i = 0; i < SUPER; i++) {
        int digit = i < 160   ? ternary(block[i % 32], i / 32)
                    : i < 240 ? ternary(block[32 + (i - 160) % 16], (i - 160) / 16)
                              : ternary(block[48 + (i - 240) % 4], (i - 240) / 4);

        out[i] = (float)(digit - 1) * scale;
    }
}

static void decode_tq2_0(const uint8_t *block, float *out)
{
    float scale = load_half(block + 64);

    for (int i = 0; i < SUPER; i++)
        out[i] = (float)(two_bits(block, i) - 1) * scale;
}

void muc_block_to_f32(muc_dtype dtype, const uint8_t *block, float *out)
{
    static void (*const decode[MUC_DTYPE_COUNT])(const uint8_t *, float *) = {
        [MUC_Q8_0] = decode_q8_0,   [MUC_Q4_0] = decode_q4_0,     [MUC_Q4_1] = decode_q4_1,
        [MUC_Q5_0] = decode_q5_0,   [MUC_Q5_1] = decode_q5_1,     [MUC_Q2_K] = decode_q2_k,
        [MUC_Q3_K] = decode_q3_k,   [MUC_Q4_K] = decode_q4_k,     [MUC_Q5_K] = decode_q5_k,
        [MUC_Q6_K] = decode_q6_k,   [MUC_IQ4_NL] = decode_iq4_nl, [MUC_IQ4_XS] = decode_iq4_xs,
        [MUC_MXFP4] = decode_mxfp4, [MUC_TQ1_0] = decode_tq1_0,   [MUC_TQ2_0] = decode_tq2_0,
    };

    decode[dtype](block, out);
}

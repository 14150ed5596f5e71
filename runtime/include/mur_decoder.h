/* mur_decoder.h - the operators of a decoder (Llama and its relatives, GPT-2) with int8 weights.
 *
 * Activations are binary32 between operators. A matrix is int8 with one scale a row; what it
 * multiplies is quantized to int8 when it comes, with one scale a token; sums are int32. Keys and
 * values are cached as int8 with one scale a token and head. Every result below is given as a
 * formula of IEEE operations, each rounded once (compile with -ffp-contract=off): the same bits on
 * every machine and for every instruction set, and for any division of tokens into calls.
 *
 * rne is rounding to the nearest integer, halves to even. Quantizing a vector x:
 *     most = max |x[i]|;  if most < 2^-100: q = 0, s = 0
 *     s = most / 127;  q[i] = rne(x[i] * (127 / most))
 * dot(a, b) sums eight interleaved parts: part[j] is the sum of a[i] * b[i] for i = j, j + 8, ..
 * below the last multiple of 8, from 0 on; with r[j] = part[j] + part[j + 4] it is
 * (r[0] + r[2]) + (r[1] + r[3]), to which the rest is added element by element.
 *
 * Kernels whose name has an instruction set are there for `ref` (C that is easy to read) and, with
 * forms of their own for quantized vectors, packed matrices and caches, `dsp` (Cortex-M4, M7, M33).
 * `mve` (Cortex-M55) has products of ref's vectors and matrices, and attention with values of its
 * own form; `plain`, for all other cores, fast products of ref's vectors and matrices, and
 * attention with ref's caches; `host`, the machine that runs the compiler, has ref's forms of all.
 * The functions mur_ISA_.._pack and .._bytes (kernels/ISA/pack_decoder.c) are the host's.
 *
 * Alignment: 4 bytes for everything.
 */
#ifndef MUR_DECODER_H
#define MUR_DECODER_H

#include <stddef.h>
#include <stdint.h>

#include "mur_low.h"

/* A vector of a token in the form of an instruction set: k elements of int8 (ref) or int16 (dsp),
 * zeros up to a multiple of 4. */
#define MUR_REF_VECTOR_BYTES(k) (((uint32_t)(k) + 3u) / 4u * 4u)
#define MUR_DSP_VECTOR_BYTES(k) (((uint32_t)(k) + 3u) / 4u * 8u)

/* A matrix [n][k]. Both may lie in flash. */
typedef struct mur_matrix_q8 {
    uint32_t n, k;
    const void *packed;  /* what mur_ISA_matrix_pack made of int8 [n][k], each -127..127 */
    const float *scales; /* [n] */
    const float *bias;   /* [n] or NULL */
} mur_matrix_q8;

/* Causal attention with grouped queries. */
typedef struct mur_attention_q8 {
    uint32_t heads, kv_heads, width; /* heads a multiple of kv_heads; width: of a head, even */
    uint32_t context;                /* positions of the caches, at most 65536; a multiple of 8 */
    float scale;                     /* of scores */
    uint32_t seen;                   /* positions that a query sees, its own the last; 0: all */
    float cap;                       /* of scores, for cap_scores */
    /* mur_cap_scores, or NULL: scores have no cap, and its code is not linked */
    void (*cap_scores)(float cap, uint32_t count, float *scores);
} mur_attention_q8;

/* Bytes of an attention's keys, and of its values. What they, and their scales, hold before their
 * first use does not matter. */
#define MUR_CACHE_BYTES(op) ((size_t)(op)->kv_heads * (op)->context * (op)->width)
/* Bytes of the scales of one head's keys, or values. */
#define MUR_SCALES_BYTES(op) ((size_t)(op)->context * 3)

/* ---- on binary32; rows follow one another ---- */

/* y = (x * (1 / sqrt(dot(x, x) / width + epsilon))) * gain for each of count groups of width;
 * gain [width]. y may be x. */
void mur_rms_norm_f32(const float *gain, float epsilon, uint32_t count, uint32_t width,
                      const float *x, float *y);

/* y = ((x - mean) * (1 / sqrt(dot(d, d) / width + epsilon))) * gain + bias, d = x - mean, mean =
 * sum / width, the sum in the order of dot; for each of count groups of width. gain, bias [width].
 * y may be x. */
void mur_layer_norm_f32(const float *gain, const float *bias, float epsilon, uint32_t count,
                        uint32_t width, const float *x, float *y);

/* Rotates the first `turned` columns, an even number, of each head of rows of x, the first at
 * position pos: with a and b their halves, y = (a * cos - b * sin, b * cos + a * sin); other
 * columns stay. cosines, sines: [..][turned / 2]. y may be x. */
void mur_rope_f32(const float *cosines, const float *sines, uint32_t pos, uint32_t rows,
                  uint32_t heads, uint32_t width, uint32_t turned, const float *x, float *y);

/* y = x / (1 + exp(-x)); the exponential is the series of mur_real.h. y may be x. */
void mur_silu_f32(uint32_t count, const float *x, float *y);
void mur_mve_silu_f32(uint32_t count, const float *x, float *y);
/* y may be a or b */
void mur_mul_f32(uint32_t count, const float *a, const float *b, float *y);
void mur_add_f32(uint32_t count, const float *a, const float *b, float *y);

/* Each score s becomes cap * tanh(s / cap); the hyperbolic tangent is mur_real_tanh, cap > 0. */
void mur_cap_scores(float cap, uint32_t count, float *scores);

/* ---- on int8, for one instruction set each ---- */

#define MUR_QUANTIZE(isa) \
    /* Quantizes rows of k elements to vectors, and their scales. */ \
    void mur_##isa##_quantize(uint32_t rows, uint32_t k, const float *x, void *vectors, \
                              float *scales);

#define MUR_LINEAR_Q8(isa) \
    /* out[r][n] = (float)sum * (scales[r] * matrix->scales[n]) (+ bias[n]); the sum is exact, \
     * k at most 132104. */ \
    void mur_##isa##_linear(const mur_matrix_q8 *matrix, uint32_t rows, const void *vectors, \
                            const float *scales, float *out);

#define MUR_MATRIX_Q8(isa) \
    /* out[r] = the matrix's row tokens[r], (float)q * its scale; tokens are 0..n-1 */ \
    void mur_##isa##_embed(const mur_matrix_q8 *matrix, uint32_t rows, const int32_t *tokens, \
                           float *out); \
    /* on the host */ \
    size_t mur_##isa##_matrix_bytes(uint32_t n, uint32_t k); \
    void mur_##isa##_matrix_pack(uint32_t n, uint32_t k, const int8_t *q, void *packed);

#define MUR_ATTENTION_Q8(isa) \
    /* Appends rows tokens' keys and values at position pos, quantized by head, then for each row \
     * and head mixes the values of the positions up to its own that it sees, in the integers that \
     * mur_attend.h describes. q, out: [rows][heads * width], out may be q; k, v: \
     * [rows][kv_heads * width]; keys, values: MUR_CACHE_BYTES; their scales: kv_heads times \
     * MUR_SCALES_BYTES; scratch: mur_##isa##_attention_bytes. */ \
    void mur_##isa##_attention(const mur_attention_q8 *op, uint32_t pos, uint32_t rows, \
                               const float *q, const float *k, const float *v, void *keys, \
                               void *values, void *key_scales, void *value_scales, float *out, \
                               void *scratch);

#define MUR_ATTENTION_BYTES(isa) \
    /* on the host; host has ref's, mve and plain have dsp's */ \
    size_t mur_##isa##_attention_bytes(const mur_attention_q8 *op);

MUR_QUANTIZE(ref)
MUR_QUANTIZE(dsp)
MUR_QUANTIZE(mve)
MUR_QUANTIZE(host)
MUR_LINEAR_Q8(ref)
MUR_LINEAR_Q8(dsp)
MUR_LINEAR_Q8(mve)
MUR_LINEAR_Q8(plain)
MUR_LINEAR_Q8(host)
MUR_MATRIX_Q8(ref)
MUR_MATRIX_Q8(dsp)
MUR_ATTENTION_Q8(ref)
MUR_ATTENTION_Q8(dsp)
MUR_ATTENTION_Q8(mve)
MUR_ATTENTION_Q8(plain)
MUR_ATTENTION_Q8(host)
MUR_ATTENTION_BYTES(ref)
MUR_ATTENTION_BYTES(dsp)

#endif

/* mur_nn.h - the operators of neural networks, for cores without an accelerator.
 *
 * Every kernel is one function of one const descriptor, its operands and a scratch area; nothing
 * is allocated, nothing is kept between calls, and a descriptor may lie in flash. Data are NHWC,
 * one image a call (a batch is a loop). An int8 value q stands for scale * (q - zero); unsigned
 * bytes are int8 whose top bit is flipped and whose zero point is 128 less.
 *
 * A kernel NAME exists for several instruction sets ISA: `ref` (plain C99, always there), `dsp`
 * (Cortex-M4, M7, M33), `single` (the same in an order for cores that issue one instruction at a
 * time, Cortex-M4 and M33), `mve` (Cortex-M55), `rv` (RV32IM), `rvv` (RISC-V's vectors). mur_nn.def
 * lists which, and all of them compute the same bits. Kernels with weights come as five functions:
 *
 *   mur_ISA_NAME              runs a layer on the device
 *   mur_ISA_NAME_fits         can it run this layer, with these weights? (on the host)
 *   mur_ISA_NAME_packed_bytes size of the layer's weights, biases and multipliers as it wants them
 *   mur_ISA_NAME_pack         writes them; the result does not depend on the spatial dimensions
 *   mur_ISA_NAME_scratch_bytes
 *
 * The last four stand in files kernels/ISA/pack_*.c, which a device does not need. `ref` fits all.
 *
 * Alignment: packed weights and scratch to 16 bytes; int8 data to nothing.
 */
#ifndef MUR_NN_H
#define MUR_NN_H

#include <stddef.h>
#include <stdint.h>

/* How a sum becomes an int8.
 * MUR_REQUANT_Q31: TensorFlow Lite's arithmetic, rounded twice.
 *     x = sum * 2^max(shift, 0), wrapping; x = (x * mul + 2^30) >> 31; then
 *     x / 2^max(-shift, 0), halves away from zero; y = clamp(x + zero, min, max)
 *     mul: Q31, 2^30 <= mul < 2^31, or 0; shift: -31..30
 * MUR_REQUANT_SHIFT: Deeploy's RequantShift.
 *     y = clamp((sum * mul + add) >> shift, min, max), exact in 64 bits
 *     (its rounding, and a zero point, are the caller's to add to `add`) */
enum { MUR_REQUANT_Q31, MUR_REQUANT_SHIFT };

/* What a layer's output channels have in common. */
typedef struct mur_output_s8 {
    uint8_t kind;  /* MUR_REQUANT_... */
    uint8_t shift; /* of MUR_REQUANT_SHIFT, 0..62 */
    int8_t zero;   /* of MUR_REQUANT_Q31; otherwise 0 */
    int8_t min, max;
} mur_output_s8;

/* The dimensions of a convolution, a depthwise convolution (groups = in_c), or a fully connected
 * layer (a 1x1 image, or n vectors as an image of n pixels), whatever the elements. A pointwise
 * layer over dense rows should be described as one row of h * w pixels. */
typedef struct mur_conv_shape {
    int32_t in_h, in_w, in_c;
    int32_t out_h, out_w, out_c;
    int32_t in_pitch, out_pitch; /* elements from row to row, at least w * c */
    uint16_t kernel_h, kernel_w;
    uint16_t stride_h, stride_w;
    uint16_t dilation_h, dilation_w;
    uint16_t pad_top, pad_left; /* the rest follows from out_h and out_w */
    int32_t groups;
} mur_conv_shape;

/* A layer on int8.
 *
 * in: int8 [in_h][in_pitch], out: int8 [out_h][out_pitch], a pixel's channels side by side.
 * Taps outside the image are in_zero. Sums must fit 32 bits. Kernels for weights of another zero
 * point than 0 are few: _fits tells.
 *
 * Order: a conv kernel writes pixels row by row from left to right, and a pixel only after all of
 * its inputs are read, or of groups only a group's, up to four pixels at a time; so in and out may
 * overlap: see mur_conv_s8_lead. An fc kernel takes layers
 * of up to three vectors and writes their outputs in order, each as soon as it is known: see
 * mur_fc_s8_lead. A depthwise kernel's `out`
 * may be `in` if out_c = in_c, in_pitch = in_w * in_c, out_pitch = out_w * out_c, out_h <= in_h and
 * out_w <= in_w. */
typedef struct mur_conv_s8 {
    mur_conv_shape shape;
    int8_t in_zero, weight_zero;
    mur_output_s8 output;
    const void *packed; /* what mur_ISA_NAME_pack wrote */
} mur_conv_s8;

/* Bytes of input, output and scratch that are too few for a depthwise layer to be computed in bands
 * of rows, which would share less scratch. */
enum { MUR_CONV_SMALL = 2048 };

/* A layer's weights as the world knows them. */
typedef struct mur_conv_plain {
    const int8_t *weights; /* [out_c][kernel_h][kernel_w][in_c / groups] */
    const int32_t *bias;   /* [out_c], or NULL for zeros */
    const int32_t *mul;    /* [out_c] */
    const int32_t *shift;  /* [out_c]: shift of MUR_REQUANT_Q31, add of MUR_REQUANT_SHIFT */
} mur_conv_plain;

/* The fewest bytes by which `in` must start after `out` for every conv kernel (not depthwise) to
 * overwrite its input: negative if it may start before, INT32_MIN if anything goes. On the host. */
int32_t mur_conv_s8_lead(const mur_conv_shape *shape);
/* the same for every fc kernel: at least out_c */
int32_t mur_fc_s8_lead(const mur_conv_shape *shape);

/* Whether mur_mve_conv_apart_s8 takes fewer instructions than mur_mve_depthwise_s8: of a layer that
 * both fit, with few pixels. On the host. */
int mur_mve_is_apart(const mur_conv_shape *shape);

/* Max and average pooling. Taps outside the image do not count. The average is rounded, halves
 * away from zero, and has its input's scale and zero point. out may be in if there is no padding,
 * the strides are at least the kernel's dimensions, and rows are dense. */
typedef struct mur_pool_s8 {
    int32_t in_h, in_w, c;
    int32_t out_h, out_w;
    int32_t in_pitch, out_pitch;
    uint16_t kernel_h, kernel_w;
    uint16_t stride_h, stride_w;
    uint16_t pad_top, pad_left;
    int8_t min, max;
} mur_pool_s8;

/* Mean over all pixels: y = requant(sum of (q - in_zero)), with 1 / pixels in the multiplier.
 * in: int8 [pixels][c], out: int8 [c], which may be in. */
typedef struct mur_mean_s8 {
    int32_t pixels, c;
    int32_t mul, shift; /* as in mur_conv_plain */
    int8_t in_zero;
    mur_output_s8 output;
} mur_mean_s8;

/* Addition and subtraction in TensorFlow Lite's arithmetic: each side is
 * (q - zero) << left_shift, scaled by its multiplier (MUR_REQUANT_Q31, before the clamp), and the
 * sum or difference is requantized. b repeats: element i meets b[i % b_count]; b_count divides
 * count. out may be a or b, if that is as long.
 *
 * A line_s8 gives the same bits with less work for nearly all layers; the compiler finds numbers
 * and tries all pairs: y = clamp((a_mul a + b_mul b + mul) / 2^21, min, max), rounded down. Of both
 * factors the size is below 2^23, of the sum below 2^31; nothing else is read. */
enum { MUR_LINE_PLACES = 21 };
typedef struct mur_add_s8 {
    int32_t count, b_count;
    int32_t a_mul, a_shift, b_mul, b_shift; /* shifts -31..0 */
    int32_t mul, shift;                     /* -31..0 */
    uint8_t left_shift;                     /* 0..20 */
    uint8_t subtract;                       /* 1: a - b */
    int8_t a_zero, b_zero, zero, min, max;
} mur_add_s8;

/* y = requant((a - a_zero) * (b - b_zero)); b repeats as in mur_add_s8. */
typedef struct mur_mul_s8 {
    int32_t count, b_count;
    int32_t mul, shift; /* as in mur_conv_plain */
    int8_t a_zero, b_zero;
    mur_output_s8 output;
} mur_mul_s8;

/* Products of two matrices that a run computes:
 *     out[i][j] = requant(sum over k < depth of (a[i][k] - a_zero) * (b[k][j] - b_zero))
 * a's rows lie a_pitch apart, out's out_pitch, with a row's bytes side by side; b's rows lie b_row
 * apart, its columns b_column, one of the two being 1. Each is of int8 or, if its flip is 0x80, of
 * uint8, whose zero point (and least and greatest) stand here as int8, 128 less. mul: of all
 * outputs; shift: of MUR_REQUANT_Q31, add: of MUR_REQUANT_SHIFT, whose products and sums must fit
 * 63 bits. depth: 32768 at most. out overlaps neither a nor b. */
typedef struct mur_matmul_s8 {
    int32_t rows, columns, depth;
    int32_t a_pitch, b_row, b_column, out_pitch;
    uint8_t a_flip, b_flip, out_flip;
    int8_t a_zero, b_zero;
    int32_t mul, shift;
    int64_t add;
    mur_output_s8 output;
} mur_matmul_s8;

/* Softmax in TensorFlow Lite's fixed-point arithmetic; the output's scale is 1/256, its zero point
 * -128. mul, shift (0..31): beta * the input's scale * 2^26 as a Q31 multiplier; differences from
 * the row's greatest below diff_min, of which 32 bits hold diff_min 2^shift, count as nothing.
 * exps: the exponentials in Q0.31 of all differences, exps[d] for greatest - d, 0 for what counts
 * as nothing; the same bits. Only softmax_exps_s8 and kernels of vectors, where it is not NULL,
 * read it. in may be out. */
typedef struct mur_softmax_s8 {
    int32_t rows, columns; /* columns below 4096 */
    int32_t mul, shift, diff_min;
    const int32_t *exps; /* [256] */
} mur_softmax_s8;

/* Norms of rows, centred or by the root mean square. A row is runs times width elements, columns in
 * all (65536 at most), its runs step apart; groups rows of an image begin next apart, and an image
 * behind their elements. Of a row q, c is the sum of q - in_zero, or 0; d = columns (q - in_zero) -
 * c, and W the sum of d^2 / columns, times 2^8, plus epsilon, at least 1. In floors, and in this
 * order: W = w 4^s with w in 2^30 .. 2^32 - 1; r = min(2^31 / sqrt(w) * 2^15, 2^31 - 1)
 * v = (d 2^head r / 2^32) gain / 2^32
 * v = v / 2^(shift + s), by 31 at most; where that is negative, clamp(v, -2^20, 2^20) times the
 * power, 2^10 at most
 * y = clamp((v + bias) / 2^8, min, max)
 * |columns 255 2^head| below 2^31, |gain| below 2^31, |bias| below 2^29. in may be out. */
typedef struct mur_norm_s8 {
    int32_t rows, columns;
    int32_t groups, runs, width, step, next;
    int32_t head, shift;
    int64_t epsilon;               /* 0 .. 2^56 */
    const int32_t *gains, *biases; /* [groups][of_runs ? runs : width] */
    uint8_t of_runs, is_centred;
    int8_t in_zero, min, max;
} mur_norm_s8;

/* Logarithm of softmax, by integers: an element k below its row's greatest counts as exps[k], which
 * is 2^20 e^-(k * scale); log is log2 of their sum in 2^-16ths, less 20 2^16, rounded down bit by
 * bit. y = clamp((2^16 zero + 2^15 - k step - (log log_step / 2^16)) / 2^16, min, max), in floors
 * step below 2^22, log_step below 2^25. in may be out. */
typedef struct mur_log_softmax_s8 {
    int32_t rows, columns; /* columns below 4096 */
    const uint32_t *exps;  /* [256] */
    int32_t step, log_step;
    int8_t zero, min, max;
} mur_log_softmax_s8;

/* ---- the kernels ----
 *
 * A row MUR_NN(ISA, NAME, KIND, DESCRIPTOR) of mur_nn.def declares what MUR_NN_KIND says. */

/* a kernel with weights: see the top of this file */
#define MUR_NN_CONV(isa, name, descriptor) \
    void mur_##isa##_##name(const descriptor *layer, const int8_t *in, int8_t *out, \
                            void *scratch); \
    int mur_##isa##_##name##_fits(const descriptor *layer, const mur_conv_plain *plain); \
    size_t mur_##isa##_##name##_packed_bytes(const descriptor *layer); \
    void mur_##isa##_##name##_pack(const descriptor *layer, const mur_conv_plain *plain, \
                                   void *packed); \
    size_t mur_##isa##_##name##_scratch_bytes(const descriptor *layer);

/* one input */
#define MUR_NN_UNARY(isa, name, descriptor) \
    void mur_##isa##_##name(const descriptor *layer, const int8_t *in, int8_t *out);

/* two inputs */
#define MUR_NN_BINARY(isa, name, descriptor) \
    void mur_##isa##_##name(const descriptor *layer, const int8_t *a, const int8_t *b, int8_t *out);

/* two matrices, of bytes; scratch_bytes on the host */
#define MUR_NN_PRODUCT(isa, name, descriptor) \
    void mur_##isa##_##name(const descriptor *layer, const void *a, const void *b, void *out, \
                            void *scratch); \
    size_t mur_##isa##_##name##_scratch_bytes(const descriptor *layer);

#define MUR_NN(isa, name, kind, descriptor) MUR_NN_##kind(isa, name, descriptor)
#include "mur_nn.def"
#undef MUR_NN

/* What such a kernel has on the host, where its weights are another one's. */
#define MUR_CONV_WEIGHTS_AS(isa, name, other) \
    size_t mur_##isa##_##name##_packed_bytes(const mur_conv_s8 *layer) \
    { \
        return mur_##isa##_##other##_packed_bytes(layer); \
    } \
    void mur_##isa##_##name##_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, \
                                   void *packed) \
    { \
        mur_##isa##_##other##_pack(layer, plain, packed); \
    }

/* The same where its scratch is, too. */
#define MUR_CONV_PACKS_AS(isa, name, other) \
    MUR_CONV_WEIGHTS_AS(isa, name, other) \
    size_t mur_##isa##_##name##_scratch_bytes(const mur_conv_s8 *layer) \
    { \
        return mur_##isa##_##other##_scratch_bytes(layer); \
    }

/* The same softmax to int16, of zero point -32768 and scale 1 / 65536; out is not in. */
void mur_ref_softmax_s16(const mur_softmax_s8 *layer, const int8_t *in, int16_t *out);

/* out[i] = table[in[i] + 128]: every function of one int8. in may be out. */
void mur_ref_table_s8(const int8_t table[256], size_t count, const int8_t *in, int8_t *out);

/* y = clamp(round(x / scale) + zero, -128, 127), halves away from zero; NaN becomes zero's value.
 * The division is one binary32 operation. */
void mur_ref_quantize_f32(float scale, int8_t zero, size_t count, const float *in, int8_t *out);

/* y = scale * (q - zero), one rounding */
void mur_ref_dequantize_s8(float scale, int8_t zero, size_t count, const int8_t *in, float *out);

#endif

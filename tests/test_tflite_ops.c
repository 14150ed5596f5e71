/* TFLite's operators one by one: written, imported, run by ref, against numbers worked out by hand
 * or by real arithmetic. */
#include <math.h>

#include "formats/network.h"
#include "ref/ref.h"
#include "tflite_writer.h"

#include "context_fixture.h"

enum { MOST = 4096 };

static flat_out file;

/* codes of BuiltinOperator and of BuiltinOptions that the cases below need */
enum { NO_OPTIONS = 0 };

static const int64_t zero0 = 0, zero3 = 3, zero128 = 128, minus128 = -128;
static const float one = 1, half = 0.5f, quarter = 0.25f;

/* tensors: activations first, then constants */
typedef struct net {
    tfl_tensor tensors[16];
    tfl_operator operators[8];
    uint32_t tensor_count, operator_count;
    int32_t input, outputs[4];
    uint32_t output_count;
} net;

static void write_net(const net *n)
{
    tfl_model model = { .tensors = n->tensors,
                        .operators = n->operators,
                        .tensor_count = n->tensor_count,
                        .operator_count = n->operator_count,
                        .input_count = 1,
                        .inputs = { n->input },
                        .output_count = n->output_count ? n->output_count : 1 };

    memcpy(model.outputs, n->outputs, sizeof(model.outputs));
    tfl_write(&file, &model);
}

/* the network's outputs one after the other, for an input of bytes */
static size_t run(const net *n, const void *input, size_t bytes, void *out)
{
    const uint32_t bindings[MUC_EXPR_MAX_INPUTS] = { 0 };
    muc_ref_input given = { n->tensors[n->input].name, input, bytes };
    muc_network network;
    muc_ref *ref;
    size_t at = 0;

    write_net(n);
    CHECK_OK(ctx, muc_network_open_bytes(ctx, (muc_bytes){ file.data, file.size, "net" }, NULL,
                                         &network));
    CHECK_OK(ctx, muc_ref_open(ctx, network.graph, &ref));
    CHECK_OK(ctx, muc_ref_run(ref, bindings, &given, 1));
    for (uint32_t i = 0; i < network.graph->output_count; i++) {
        muc_ref_view view;

        CHECK(muc_ref_get(ref, network.graph->outputs[i], &view));
        memcpy((uint8_t *)out + at, view.data,
               view.elements * muc_dtype_get(view.dtype)->block_bytes);
        at += view.elements * muc_dtype_get(view.dtype)->block_bytes;
    }
    muc_ref_close(ref);
    muc_network_close(&network);
    return at;
}

#define CHECK_RUN(n, input, expected) \
    do { \
        uint8_t found_[MOST]; \
        size_t bytes_ = run(&(n), input, sizeof(input), found_); \
        CHECK_EQ(bytes_, sizeof(expected)); \
        assert_memory_equal(found_, expected, sizeof(expected)); \
    } while (0)

#define F32(name, rank, ...) \
    { \
        name, TFL_F32, rank, __VA_ARGS__, 0, NULL, NULL, 0, NULL, 0 \
    }
#define DIMS(...) \
    { \
        __VA_ARGS__ \
    }
#define Q(name, type, rank, dims, scale, zero) \
    { \
        name, type, rank, dims, 1, scale, zero, 0, NULL, 0 \
    }
#define CONST_Q(name, type, rank, dims, scale, zero, data) \
    { \
        name, type, rank, dims, 1, scale, zero, 0, data, sizeof(data) \
    }
#define CONST(name, type, rank, dims, data) \
    { \
        name, type, rank, dims, 0, NULL, NULL, 0, data, sizeof(data) \
    }

/* ---- convolutions: the scales' product is 1, so sums show as they are ---- */

/* uint8 with zero points everywhere, SAME, stride 2: the padding at the end alone; RELU6 */
static void a_legacy_convolution_has_zero_points_in_its_weights(void **state)
{
    static const uint8_t weights[4] = { 4, 2, 3, 5 }; /* 1, -1, 0, 2 */
    static const int32_t bias[1] = { 10 };
    static const uint8_t x[9] = { 4, 5, 6, 7, 8, 9, 10, 11, 12 }; /* 1..9 */
    /* 1 - 2 + 2*5 + 10 = 19, clamped to 6 / 0.25 + 3 = 27: 22; 3 + 10: 16; 7 - 8 + 10 = 9: 12;
     * 9 + 10: 22 */
    static const uint8_t expected[4] = { 22, 16, 12, 22 };
    net n = { .tensors = { Q("x", TFL_U8, 4, DIMS(1, 3, 3, 1), &half, &zero3),
                           Q("y", TFL_U8, 4, DIMS(1, 2, 2, 1), &quarter, &zero3),
                           CONST_Q("w", TFL_U8, 4, DIMS(1, 2, 2, 1), &half, &zero3, weights),
                           CONST_Q("b", TFL_I32, 1, DIMS(1), &quarter, &zero0, bias) },
              .operators = { { 3, 1, 3, 1, { 0, 2, 3 }, { 1 }, 1, { 0, 2, 2, 3 }, "iiii" } },
              .tensor_count = 4,
              .operator_count = 1,
              .outputs = { 1 } };

    (void)state;
    CHECK_RUN(n, x, expected);
}

/* channel c gives outputs 2c and 2c + 1; dilation 2 */
static void a_depthwise_convolution_multiplies_channels(void **state)
{
    /* [1, 1, 2, 4]: taps of outputs 0..3 */
    static const int8_t weights[8] = { 1, 2, 3, 4, 10, 20, 30, 40 };
    static const int8_t x[6] = { 1, 2, 0, 0, -1, 1 }; /* [1, 1, 3, 2] */
    static const int8_t expected[4] = { 1 - 10, 2 - 20, 6 + 30, 8 + 40 };
    net n = {
        .tensors = { Q("x", TFL_I8, 4, DIMS(1, 1, 3, 2), &one, &zero0),
                     Q("y", TFL_I8, 4, DIMS(1, 1, 1, 4), &one, &zero0),
                     CONST_Q("w", TFL_I8, 4, DIMS(1, 1, 2, 4), &one, &zero0, weights) },
        .operators = { { 4, 3, 2, 1, { 0, 2 }, { 1 }, 2, { 1, 1, 1, 2, 0, 2, 1 }, "iiiiiii" } },
        .tensor_count = 3,
        .operator_count = 1,
        .outputs = { 1 }
    };

    (void)state;
    CHECK_RUN(n, x, expected);
}

/* stride 2, VALID: every input element puts its kernel, overlaps add up */
static void a_transposed_convolution_scatters(void **state)
{
    static const int32_t shape[4] = { 1, 1, 5, 1 };
    static const int8_t weights[3] = { 1, 2, 3 };
    static const int8_t x[2] = { 1, 10 };
    static const int8_t expected[5] = { 1, 2, 3 + 10, 20, 30 };
    net n = { .tensors = { Q("x", TFL_I8, 4, DIMS(1, 1, 2, 1), &one, &zero0),
                           Q("y", TFL_I8, 4, DIMS(1, 1, 5, 1), &one, &zero0),
                           CONST_Q("w", TFL_I8, 4, DIMS(1, 1, 3, 1), &one, &zero0, weights),
                           CONST("shape", TFL_I32, 1, DIMS(4), shape) },
              .operators = { { 67, 3, 3, 1, { 3, 2, 0 }, { 1 }, 49, { 1, 2, 2 }, "iii" } },
              .tensor_count = 4,
              .operator_count = 1,
              .outputs = { 1 } };

    (void)state;
    CHECK_RUN(n, x, expected);
}

/* SAME: the output is twice as large, one column of the kernel falls off */
static void a_transposed_convolution_keeps_the_same_padding(void **state)
{
    static const int32_t shape[4] = { 1, 1, 4, 1 };
    static const float weights[3] = { 1, 2, 3 };
    static const float x[2] = { 1, 10 };
    static const float expected[4] = { 1, 2, 3 + 10, 20 };
    net n = { .tensors = { F32("x", 4, DIMS(1, 1, 2, 1)), F32("y", 4, DIMS(1, 1, 4, 1)),
                           CONST("w", TFL_F32, 4, DIMS(1, 1, 3, 1), weights),
                           CONST("shape", TFL_I32, 1, DIMS(4), shape) },
              .operators = { { 67, 3, 3, 1, { 3, 2, 0 }, { 1 }, 49, { 0, 2, 2 }, "iii" } },
              .tensor_count = 4,
              .operator_count = 1,
              .outputs = { 1 } };

    (void)state;
    CHECK_RUN(n, x, expected);
}

/* int8 weights beside real activations, an input of four dimensions, a fused RELU */
static void a_hybrid_fully_connected_takes_rows(void **state)
{
    static const int8_t weights[8] = { 1, 2, 3, 4, -1, 0, 0, 1 };
    static const float bias[2] = { 0.5f, 100 };
    static const float x[8] = { 1, 1, 1, 1, -8, 0, 0, 0 };
    static const float expected[4] = { 5.5f, 100, 0, 104 };
    net n = { .tensors = { F32("x", 4, DIMS(2, 2, 2, 1)), F32("y", 2, DIMS(2, 2)),
                           CONST_Q("w", TFL_I8, 2, DIMS(2, 4), &half, &zero0, weights),
                           CONST("b", TFL_F32, 1, DIMS(2), bias) },
              .operators = { { 9, 3, 3, 1, { 0, 2, 3 }, { 1 }, 8, { 1 }, "i" } },
              .tensor_count = 4,
              .operator_count = 1,
              .outputs = { 1 } };

    (void)state;
    CHECK_RUN(n, x, expected);
}

/* padding does not count in the mean; halves go away from zero */
static void an_average_pool_counts_what_is_there(void **state)
{
    static const int8_t x[9] = { 1, 2, 3, -4, -5, -6, 7, 8, -10 };
    static const int8_t expected[4] = { -2, -2, 8, -10 }; /* -1.5, -1.5, 7.5, -10 */
    net n = { .tensors = { Q("x", TFL_I8, 4, DIMS(1, 3, 3, 1), &one, &zero0),
                           Q("y", TFL_I8, 4, DIMS(1, 2, 2, 1), &one, &zero0) },
              .operators = { { 1, 2, 1, 1, { 0 }, { 1 }, 5, { 0, 2, 2, 2, 2 }, "iiiii" } },
              .tensor_count = 2,
              .operator_count = 1,
              .outputs = { 1 } };

    (void)state;
    CHECK_RUN(n, x, expected);
}

/* sum * multiplier / 2^31, rounded, then / 2^right, halves away from zero: as TFLite says it, in
 * terms of floors */
static int64_t multiplied(int64_t sum, int64_t multiplier, int left, int right)
{
    int64_t product = sum * ((int64_t)1 << left) * multiplier;
    int64_t high = (product + (product < 0 ? 1 - (1 << 30) : 1 << 30)) / ((int64_t)1 << 31);
    int64_t whole = (int64_t)floor(fabs((double)high) / ldexp(1, right) + 0.5);

    return high < 0 ? -whole : whole;
}

/* TFLite divides its multiplier by the count, shifted left as far as the count has bits */
static int8_t mean_of(const int8_t *x, int count, int step, const float *scales,
                      const int64_t *zeros)
{
    int shift, bits = 0;
    int64_t multiplier = llround(ldexp(frexp((double)scales[0] / (double)scales[1], &shift), 31));
    int64_t sum = 0, y;

    while (count >> (bits + 1))
        bits++;
    for (int i = 0; i < count; i++)
        sum += x[i * step] - zeros[0];
    multiplier = multiplier * ((int64_t)1 << bits) / count;
    shift -= bits;
    y = zeros[1] + multiplied(sum, multiplier, shift > 0 ? shift : 0, shift < 0 ? -shift : 0);
    return (int8_t)(y < -128 ? -128 : y > 127 ? 127 : y);
}

/* the middle dimension's, for all its lengths */
static void a_mean_rounds_as_tflite_does(void **state)
{
    enum { MOST_COUNT = 13, COLUMNS = 40 };
    static const float scales[3][2] = { { 1, 1 }, { 0.37f, 0.21f }, { 0.043f, 0.39f } };
    static const int64_t zeros[3][2] = { { 0, 0 }, { -5, 17 }, { 100, -128 } };
    static const int32_t axis[1] = { 1 };
    /* 1.5 and -1.5 at scale 1: the first rounding takes a negative half up */
    static const int8_t pair[4] = { 1, -1, 2, -2 }, halves[2] = { 2, -1 };

    (void)state;
    for (int count = 1; count <= MOST_COUNT; count++) {
        for (int k = 0; k < 3; k++) {
            net n = { .tensors = { Q("x", TFL_I8, 3, DIMS(1, count, COLUMNS), &scales[k][0],
                                     &zeros[k][0]),
                                   Q("y", TFL_I8, 2, DIMS(1, COLUMNS), &scales[k][1], &zeros[k][1]),
                                   CONST("axis", TFL_I32, 1, DIMS(1), axis) },
                      .operators = { { 40, 2, 2, 1, { 0, 2 }, { 1 }, 27, { 0 }, "" } },
                      .tensor_count = 3,
                      .operator_count = 1,
                      .outputs = { 1 } };
            int8_t x[MOST_COUNT * COLUMNS], found[MOST];

            for (int i = 0; i < count * COLUMNS; i++)
                x[i] = (int8_t)((i * 89 + i / 7 * 31 + k) % 256 - 128);
            if (k == 0 && count == 2)
                for (int i = 0; i < 4; i++)
                    x[i / 2 * COLUMNS + i % 2] = pair[i];
            CHECK_EQ(run(&n, x, (size_t)(count * COLUMNS), found), COLUMNS);
            for (int j = 0; j < COLUMNS; j++)
                CHECK_EQ(found[j], mean_of(x + j, count, COLUMNS, scales[k], zeros[k]));
            if (k == 0 && count == 2)
                assert_memory_equal(found, halves, sizeof(halves));
        }
    }
}

/* ---- element by element, for all values, within one unit of real arithmetic ---- */

typedef double real_function(double x);

static double real_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double real_hard_swish(double x)
{
    return x * fmin(6, fmax(0, x + 3)) / 6;
}

static double real_leaky(double x)
{
    return x < 0 ? 0.125 * x : x;
}

static double real_relu6(double x)
{
    return fmin(6, fmax(0, x));
}

static double real_elu(double x)
{
    return x < 0 ? exp(x) - 1 : x;
}

static void every_value_of_a_function_is_right(void **state)
{
    static const float scales[] = { 0.06f, 1.0f / 256, 1.0f / 128, 0.05f, 0.0625f };
    static const struct {
        const char *name;
        int code, version;
        unsigned option;
        real_function *f;
        const float *scale;
        const int64_t *zero;
    } cases[] = {
        { "logistic", 14, 2, NO_OPTIONS, real_sigmoid, &scales[1], &minus128 },
        { "tanh", 28, 2, NO_OPTIONS, tanh, &scales[2], &zero0 },
        { "elu", 111, 1, NO_OPTIONS, real_elu, &scales[3], &zero0 },
        { "hard_swish", 117, 1, NO_OPTIONS, real_hard_swish, &scales[3], &zero0 },
        { "leaky_relu", 98, 2, 75, real_leaky, &scales[4], &zero3 },
        { "relu6", 21, 2, NO_OPTIONS, real_relu6, &scales[3], &zero0 },
        { "quantize", 114, 2, NO_OPTIONS, NULL, &scales[4], &zero3 },
    };

    (void)state;
    for (size_t k = 0; k < MUC_COUNT(cases); k++) {
        net n = { .tensors = { Q("x", TFL_I8, 1, DIMS(256), &scales[0], &zero3),
                               Q("y", TFL_I8, 1, DIMS(256), cases[k].scale, cases[k].zero) },
                  .operators = { { cases[k].code,
                                   cases[k].version,
                                   1,
                                   1,
                                   { 0 },
                                   { 1 },
                                   cases[k].option,
                                   { 0x3E000000 },
                                   "i" } }, /* 0.125f */
                  .tensor_count = 2,
                  .operator_count = 1,
                  .outputs = { 1 } };
        int8_t x[256], y[256];

        for (int i = 0; i < 256; i++)
            x[i] = (int8_t)(i - 128);
        CHECK_EQ(run(&n, x, sizeof(x), y), sizeof(y));
        for (int i = 0; i < 256; i++) {
            double real = (double)scales[0] * (x[i] - 3);
            double expected = (cases[k].f ? cases[k].f(real) : real) / (double)*cases[k].scale +
                              (double)*cases[k].zero;

            expected = fmin(127, fmax(-128, expected));
            if (!(fabs(y[i] - expected) <= 1))
                fail_msg("%s of %d is %d, expected %g", cases[k].name, x[i], y[i], expected);
        }
    }
}

static void sums_and_products_of_integers_are_those_of_reals(void **state)
{
    static const int codes[] = { 0, 41, 18, 54 }; /* ADD, SUB, MUL, PRELU */
    static const unsigned options[] = { 11, 28, 21, NO_OPTIONS };
    static const float scales[3] = { 0.05f, 0.02f, 0.125f };
    static const int64_t minus7 = -7;
    static int8_t b[256];
    int8_t x[256], y[256];

    (void)state;
    for (int i = 0; i < 256; i++) {
        x[i] = (int8_t)(i - 128);
        b[i] = (int8_t)(i * 37 + 5);
    }
    for (size_t k = 0; k < MUC_COUNT(codes); k++) {
        net n = { .tensors = { Q("x", TFL_I8, 1, DIMS(256), &scales[0], &zero3),
                               Q("y", TFL_I8, 1, DIMS(256), &scales[2], &minus7),
                               CONST_Q("b", TFL_I8, 1, DIMS(256), &scales[1], &zero0, b) },
                  .operators = { { codes[k], 1, 2, 1, { 0, 2 }, { 1 }, options[k], { 0 }, "i" } },
                  .tensor_count = 3,
                  .operator_count = 1,
                  .outputs = { 1 } };

        CHECK_EQ(run(&n, x, sizeof(x), y), sizeof(y));
        for (int i = 0; i < 256; i++) {
            double p = (double)scales[0] * (x[i] - 3), q = (double)scales[1] * b[i];
            double real = k == 0 ? p + q : k == 1 ? p - q : k == 2 || p < 0 ? p * q : p;
            double expected = fmin(127, fmax(-128, real / (double)scales[2] - 7));

            if (!(fabs(y[i] - expected) <= 1))
                fail_msg("operator %d: element %d is %d, expected %g", codes[k], i, y[i], expected);
        }
    }
}

static void a_softmax_sums_to_one(void **state)
{
    static const float scale_x = 0.1f, scale_y = 1.0f / 256;
    static const int8_t x[8] = { 10, 20, -30, 40, 0, -128, 35, 127 };
    net n = { .tensors = { Q("x", TFL_I8, 2, DIMS(2, 4), &scale_x, &zero0),
                           Q("y", TFL_I8, 2, DIMS(2, 4), &scale_y, &minus128) },
              .operators = { { 25, 2, 1, 1, { 0 }, { 1 }, 9, { 0x3F800000 }, "i" } },
              .tensor_count = 2,
              .operator_count = 1,
              .outputs = { 1 } };
    int8_t y[8];

    (void)state;
    CHECK_EQ(run(&n, x, sizeof(x), y), sizeof(y));
    for (int r = 0; r < 2; r++) {
        double sum = 0;

        for (int i = 0; i < 4; i++)
            sum += exp((double)scale_x * x[4 * r + i]);
        for (int i = 0; i < 4; i++)
            CHECK(fabs(y[4 * r + i] + 128 -
                       fmin(255, exp((double)scale_x * x[4 * r + i]) / sum * 256)) <= 1);
    }
}

/* ---- elements that move ---- */

/* Keras's flatten with an open batch: shape, slice, pack; none of it is in the graph */
static void a_computed_shape_is_taken_from_the_file(void **state)
{
    static const int32_t begin[1] = { 0 }, end[1] = { 1 }, step[1] = { 1 }, minus1[1] = { -1 };
    static const float x[4] = { 1, 2, 3, 4 };
    net n = { .tensors = { F32("x", 3, DIMS(1, 2, 2)),
                           F32("y", 2, DIMS(1, 4)),
                           { "shape", TFL_I32, 1, { 3 }, 0, NULL, NULL, 0, NULL, 0 },
                           { "batch", TFL_I32, 0, { 0 }, 0, NULL, NULL, 0, NULL, 0 },
                           { "packed", TFL_I32, 1, { 2 }, 0, NULL, NULL, 0, NULL, 0 },
                           CONST("begin", TFL_I32, 1, DIMS(1), begin),
                           CONST("end", TFL_I32, 1, DIMS(1), end),
                           CONST("step", TFL_I32, 1, DIMS(1), step),
                           CONST("minus1", TFL_I32, 0, DIMS(0), minus1) },
              .operators = { { 77, 1, 1, 1, { 0 }, { 2 }, 55, { 2 }, "i" },
                             { 45, 1, 4, 1, { 2, 5, 6, 7 }, { 3 }, 32, { 0, 0, 0, 0, 1 }, "....i" },
                             { 83, 1, 2, 1, { 3, 8 }, { 4 }, 59, { 2, 0 }, "ii" },
                             { 22, 1, 2, 1, { 0, 4 }, { 1 }, NO_OPTIONS, { 0 }, "" } },
              .tensor_count = 9,
              .operator_count = 4,
              .outputs = { 1 } };
    muc_network network;

    (void)state;
    CHECK_RUN(n, x, x);
    CHECK_OK(ctx, muc_network_open_bytes(ctx, (muc_bytes){ file.data, file.size, "net" }, NULL,
                                         &network));
    CHECK_EQ(network.graph->node_count, 1);
    muc_network_close(&network);
}

/* x[::-1, 1, -3:] of [2, 3, 4]: backwards, an axis that goes, the end of another */
static void a_strided_slice_is_numpys(void **state)
{
    static const int32_t begin[3] = { 0, 1, -3 }, end[3] = { 0, 2, 0 }, step[3] = { -1, 1, 1 };
    static const float x[24] = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23 };
    static const float expected[6] = { 17, 18, 19, 5, 6, 7 };
    net n = {
        .tensors = { F32("x", 3, DIMS(2, 3, 4)), F32("y", 2, DIMS(2, 3)),
                     CONST("begin", TFL_I32, 1, DIMS(3), begin),
                     CONST("end", TFL_I32, 1, DIMS(3), end),
                     CONST("step", TFL_I32, 1, DIMS(3), step) },
        .operators = { { 45, 1, 4, 1, { 0, 2, 3, 4 }, { 1 }, 32, { 1, 5, 0, 0, 2 }, "iiiii" } },
        .tensor_count = 5,
        .operator_count = 1,
        .outputs = { 1 }
    };

    (void)state;
    CHECK_RUN(n, x, expected);
}

static void what_is_unpacked_can_be_split_and_joined(void **state)
{
    static const int32_t axis[1] = { 0 };
    static const float x[6] = { 1, 2, 3, 4, 5, 6 };
    /* columns 1..3 of [2, 3]; the middle one split in two, and the parts packed */
    static const float expected[8] = { 1, 4, 2, 5, 3, 6, 5, 2 };
    net n = { .tensors = { F32("x", 2, DIMS(2, 3)), F32("a", 1, DIMS(2)), F32("b", 1, DIMS(2)),
                           F32("c", 1, DIMS(2)), F32("b0", 1, DIMS(1)), F32("b1", 1, DIMS(1)),
                           F32("y", 2, DIMS(2, 1)), CONST("axis", TFL_I32, 0, DIMS(0), axis) },
              .operators = { { 88, 1, 1, 3, { 0 }, { 1, 2, 3 }, 64, { 3, 1 }, "ii" },
                             { 49, 1, 2, 2, { 7, 2 }, { 4, 5 }, 35, { 2 }, "i" },
                             { 83, 1, 2, 1, { 5, 4 }, { 6 }, 59, { 2, 0 }, "ii" } },
              .tensor_count = 8,
              .operator_count = 3,
              .outputs = { 1, 2, 3, 6 },
              .output_count = 4 };

    (void)state;
    CHECK_RUN(n, x, expected);
}

static void padding_is_the_zero_point(void **state)
{
    static const int32_t pads[4] = { 1, 0, 0, 1 };
    static const int8_t x[2] = { 7, 8 }, expected[6] = { 3, 3, 3, 7, 8, 3 };
    net n = { .tensors = { Q("x", TFL_I8, 2, DIMS(1, 2), &one, &zero3),
                           Q("y", TFL_I8, 2, DIMS(2, 3), &one, &zero3),
                           CONST("pads", TFL_I32, 2, DIMS(2, 2), pads) },
              .operators = { { 34, 1, 2, 1, { 0, 2 }, { 1 }, 22, { 0 }, "" } },
              .tensor_count = 3,
              .operator_count = 1,
              .outputs = { 1 } };

    (void)state;
    CHECK_RUN(n, x, expected);
}

/* inputs of another scale are scaled before they are joined */
static void a_concatenation_has_one_scale(void **state)
{
    static const uint8_t other[2] = { 130, 120 }; /* 1, -4 */
    static const uint8_t x[2] = { 128, 132 }, expected[4] = { 128, 132, 129, 124 };
    net n = { .tensors = { Q("x", TFL_U8, 1, DIMS(2), &one, &zero128),
                           Q("y", TFL_U8, 1, DIMS(4), &one, &zero128),
                           CONST_Q("b", TFL_U8, 1, DIMS(2), &half, &zero128, other) },
              .operators = { { 2, 1, 2, 1, { 0, 2 }, { 1 }, 10, { 0 }, "i" } },
              .tensor_count = 3,
              .operator_count = 1,
              .outputs = { 1 } };

    (void)state;
    CHECK_RUN(n, x, expected);
}

static void resizing_is_in_integers(void **state)
{
    static const int32_t size[2] = { 1, 4 };
    static const int8_t x[2] = { 10, -20 };
    /* nearest: x / 2; bilinear asymmetric: 0, 0.5, 1, 1.5; half pixels: -0.25, 0.25, 0.75, 1.25 */
    static const int8_t nearest[4] = { 10, 10, -20, -20 }, linear[4] = { 10, -5, -20, -20 };
    static const int8_t centers[4] = { 10, 3, -13, -20 }; /* 2.5, -12.5 */
    net n = { .tensors = { Q("x", TFL_I8, 4, DIMS(1, 1, 2, 1), &one, &zero0),
                           Q("y", TFL_I8, 4, DIMS(1, 1, 4, 1), &one, &zero0),
                           CONST("size", TFL_I32, 1, DIMS(2), size) },
              .operators = { { 97, 2, 2, 1, { 0, 2 }, { 1 }, 74, { 0, 0 }, "ii" } },
              .tensor_count = 3,
              .operator_count = 1,
              .outputs = { 1 } };

    (void)state;
    CHECK_RUN(n, x, nearest);
    n.operators[0] = (tfl_operator){ 23, 2, 2, 1, { 0, 2 }, { 1 }, 15, { 0, 0, 0, 0 }, "..ii" };
    CHECK_RUN(n, x, linear);
    n.operators[0].options[3] = 1;
    CHECK_RUN(n, x, centers);
}

/* of real numbers the same, exactly */
static void resizing_of_reals_agrees(void **state)
{
    static const int32_t size[2] = { 1, 4 };
    static const float x[2] = { 10, -20 }, linear[4] = { 10, -5, -20, -20 };
    static const float centers[4] = { 10, 2.5f, -12.5f, -20 };
    net n = { .tensors = { F32("x", 4, DIMS(1, 1, 2, 1)), F32("y", 4, DIMS(1, 1, 4, 1)),
                           CONST("size", TFL_I32, 1, DIMS(2), size) },
              .operators = { { 23, 2, 2, 1, { 0, 2 }, { 1 }, 15, { 0, 0, 0, 0 }, "..ii" } },
              .tensor_count = 3,
              .operator_count = 1,
              .outputs = { 1 } };

    (void)state;
    CHECK_RUN(n, x, linear);
    n.operators[0].options[3] = 1;
    CHECK_RUN(n, x, centers);
}

static void the_greatest_is_found_among_integers(void **state)
{
    static const int32_t axis[1] = { -1 };
    static const int8_t x[6] = { -5, 7, 7, 3, 2, 1 };
    static const int32_t expected[2] = { 1, 0 };
    net n = { .tensors = { Q("x", TFL_I8, 2, DIMS(2, 3), &half, &zero3),
                           { "y", TFL_I32, 1, { 2 }, 0, NULL, NULL, 0, NULL, 0 },
                           CONST("axis", TFL_I32, 0, DIMS(0), axis) },
              .operators = { { 56, 2, 2, 1, { 0, 2 }, { 1 }, 40, { 2 }, "i" } },
              .tensor_count = 3,
              .operator_count = 1,
              .outputs = { 1 } };

    (void)state;
    CHECK_RUN(n, x, expected);
}

/* ---- refusals ---- */

static void what_no_row_implements_is_named(void **state)
{
    net n = { .tensors = { F32("x", 2, DIMS(2, 3)), F32("y", 2, DIMS(2, 3)) },
              .operators = { { 16, 1, 1, 1, { 0 }, { 1 }, NO_OPTIONS, { 0 }, "" } },
              .tensor_count = 2,
              .operator_count = 1,
              .outputs = { 1 } };
    muc_network network;

    (void)state;
    write_net(&n);
    CHECK_FAILS(
        ctx, MUC_UNSUPPORTED, "an operator of the network: LSTM (1 node, 'y'); muc ops",
        muc_network_open_bytes(ctx, (muc_bytes){ file.data, file.size, "net" }, NULL, &network));
    n.operators[0].code = 14;
    n.operators[0].version = 9;
    write_net(&n);
    CHECK_FAILS(
        ctx, MUC_UNSUPPORTED, "operator 0 (LOGISTIC) 'y': version 9, known up to 3",
        muc_network_open_bytes(ctx, (muc_bytes){ file.data, file.size, "net" }, NULL, &network));
    n.operators[0].version = 1;
    n.tensors[1].shape[1] = 4;
    write_net(&n);
    CHECK_FAILS(
        ctx, MUC_MALFORMED, "computes f32 [2, 3], which is not what the file says",
        muc_network_open_bytes(ctx, (muc_bytes){ file.data, file.size, "net" }, NULL, &network));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, new_context, free_context)
    const struct CMUnitTest tests[] = {
        T(a_legacy_convolution_has_zero_points_in_its_weights),
        T(a_depthwise_convolution_multiplies_channels),
        T(a_transposed_convolution_scatters),
        T(a_transposed_convolution_keeps_the_same_padding),
        T(a_hybrid_fully_connected_takes_rows),
        T(an_average_pool_counts_what_is_there),
        T(a_mean_rounds_as_tflite_does),
        T(every_value_of_a_function_is_right),
        T(sums_and_products_of_integers_are_those_of_reals),
        T(a_softmax_sums_to_one),
        T(a_computed_shape_is_taken_from_the_file),
        T(a_strided_slice_is_numpys),
        T(what_is_unpacked_can_be_split_and_joined),
        T(padding_is_the_zero_point),
        T(a_concatenation_has_one_scale),
        T(resizing_is_in_integers),
        T(resizing_of_reals_agrees),
        T(the_greatest_is_found_among_integers),
        T(what_no_row_implements_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
